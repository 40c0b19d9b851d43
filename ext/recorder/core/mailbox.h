/* SPDX-License-Identifier: MIT
 *
 * mailbox.h - what the scanner and the symbolizer ask and tell each other: plain atomics, so that neither has to know the
 * other. The scanner asks; the symbolizer tells whether it is alive and what it has done so far.
 *
 * One symbolizer writes at a time. `asked` is written by both, with read-modify-write operations only.
 */
#ifndef SDB_MAILBOX_H
#define SDB_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>
#include "sdb_atomic.h"

enum sdb_ask {
    SDB_ASK_WORK = 1, /* something waits to be named, or it is time to look at the threads' names */
    /* No thread of the process ran for a while: see whether your own existence keeps the program from ending. */
    SDB_ASK_IDLE = 2,
    SDB_ASK_TELL = 4, /* tell the user what became of the log of a forked child */
};

struct sdb_gc_figures { /* of GC.stat, as of the symbolizer's last turn */
    uint64_t count, heap_live_slots, malloc_increase_bytes, oldmalloc_increase_bytes;
};

/* Zero-filled: no symbolizer, nothing asked. Every field is shared and atomic. */
struct sdb_mailbox {
    uint64_t asked; /* SDB_ASK_* bits; its low half is a futex */
    uint64_t alive; /* 0: it was not started, or it ended, perhaps without being asked to */
    uint64_t tid;   /* of its native thread; 0 none */
    uint64_t passes_begun, passes_ended; /* over the threads' names */
    uint64_t gvl_ns;                     /* for how long it held the GVL */
    uint64_t memory_bytes;               /* of the symbols alive */
    struct sdb_gc_figures gc;
};

/* Asks for what, and wakes the symbolizer when it had not been asked yet. Runs on: any. */
void sdb_mailbox_ask(struct sdb_mailbox *box, uint64_t what);
/* The same, but wakes it in any case. Runs on: any. */
void sdb_mailbox_call(struct sdb_mailbox *box, uint64_t what);
/* What was asked since the last call. Runs on: symbolizer. */
uint64_t sdb_mailbox_take(struct sdb_mailbox *box);
/* GVL time and memory count from 0 again: a recording begins. Runs on: who starts it, or the atfork child handler. */
void sdb_mailbox_figures_begin(struct sdb_mailbox *box);
/* Runs on: any. */
void sdb_mailbox_gc_figures(const struct sdb_mailbox *box, struct sdb_gc_figures *out);
/* Runs on: symbolizer. */
void sdb_mailbox_set_gc_figures(struct sdb_mailbox *box, const struct sdb_gc_figures *figures);

static inline bool
sdb_mailbox_nobody(const struct sdb_mailbox *box)
{
    return !sdb_load_acquire(&box->alive);
}

#endif
