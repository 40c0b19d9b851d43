/* SPDX-License-Identifier: MIT
 *
 * symbolizer_impl.h - what the files of the symbolizer share: symbolizer.c when its thread comes and goes,
 * symbolizer_wait.c how it waits, symbolizer_idle.c what it does when the whole program stands still.
 */
#ifndef SDB_SYMBOLIZER_IMPL_H
#define SDB_SYMBOLIZER_IMPL_H

#include <ruby.h>
#include <ruby/debug.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/mailbox.h"
#include "scan/thread_table.h"
#include "vm/wake_pipe.h"

/* 3.3+: any thread may ask for a job in which a Ruby thread can be made, so none needs to wait for work. Before, a job
 * asked for from outside the VM can meet a half-written slot (ruby bug 19991): one thread stays. */
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
enum { SDB_SYMBOLIZER_STAYS = 0 };
#else
enum { SDB_SYMBOLIZER_STAYS = 1 };
#endif

enum { SDB_JOINERS_MAX = 16 };

struct sdb_symbolizer {
    struct sdb_thread_table *threads; /* immutable while alive */
    /* guarded by the GVL */
    VALUE thread;
    VALUE joiners
        [SDB_JOINERS_MAX]; /* who sat in join when the present thread began; compared, never followed */
    int joiner_count;
    uint64_t joiners_ns;
    bool in_haste;       /* the present thread took another's place and has nothing to wait for */
    VALUE on_allocation; /* the TracePoint that ends a deadly sleep */
    /* shared: atomic */
    struct sdb_mailbox box;
    uint64_t asked_ns; /* since when something is asked; 0 nothing */
    uint64_t present;  /* there is a thread */
    uint64_t sleeps;   /* it sleeps deadly */
    uint64_t waits;    /* it waits for the pipe, before 3.3 */
    uint64_t lost;     /* which was closed: it cannot be reached from outside the VM */
    uint64_t stop;
    struct sdb_wake_pipe pipe;
};

extern struct sdb_symbolizer sdb_symbolizer;

/* ---- symbolizer_wait.c ---- */

/* Sleeps until something is asked, it is told to stop, or timeout_ns passed (0: for ever). May raise what others send.
 * Runs on: symbolizer, GVL (given up meanwhile). */
void sdb_symbolizer_wait(uint64_t timeout_ns);
/* Ends it where the mailbox's futex does not. Runs on: any. */
void sdb_symbolizer_ring(void);

/* ---- symbolizer_idle.c ---- */

/* True: *successor, and the calling thread must end. Runs on: symbolizer, GVL. */
bool sdb_symbolizer_stand_aside(void);
/* An occasion, before 3.3, to reach a symbolizer that lost its descriptor. Runs on: GC (no alloc, no raise). */
void sdb_symbolizer_in_gc(void);
/* Wakes the symbolizer from a sleep that nothing else ends: the deadly one, or for a pipe that is gone. Checks no interrupts. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_rouse(void);

/* ---- symbolizer.c ---- */

/* Another thread in place of the present one. Runs on: symbolizer, GVL. */
void sdb_symbolizer_succeed(void);
/* 3.3+: the next turn of a Ruby thread will run the job. Runs on: any. */
void sdb_symbolizer_summon(void);

#endif
