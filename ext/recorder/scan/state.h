/* SPDX-License-Identifier: MIT
 *
 * state.h - the scanner's struct: its parts, and what it remembers from tick to tick. Each file of scan/ uses some of it.
 */
#ifndef SDB_STATE_H
#define SDB_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/code_age.h"
#include "core/code_table.h"
#include "core/edge_set.h"
#include "core/gc_periods.h"
#include "core/mailbox.h"
#include "core/memory_probe.h"
#include "core/pacing.h"
#include "core/ring_file.h"
#include "core/ring_writer.h"
#include "core/symbol_area.h"
#include "scan/host.h"
#include "scan/thread_table.h"
#include "scan/walk.h"

struct sdb_open_work;
struct sdb_states;

enum {
    /* a byte is on the file so soon after it was collected: "at most 5 ms lost" */
    SDB_FLUSH_NS = 4000000,
    /* ticks without a runnable thread before parking */
    SDB_PARK_TICKS = 5,
    /* a running thread is written at least so often, for its CPU time */
    SDB_HEARTBEAT_TICKS = 100,
    /* a forked child gets its file after this long: most exec before */
    SDB_CHILD_FILE_NS = 10000000,
    SDB_GAP_INTERVALS = 5,
    /* codes that failed their proof and are remembered, to be dropped */
    SDB_INVALID_MAX = 64,
};

/* ---- what it remembers, by concern. owner: scanner ---- */

struct sdb_tick {
    uint64_t number;
    uint64_t now_ns, previous_ns;
    /* threads that ended and wait for their last name, as met in this tick */
    uint32_t ended_waiting;
    /* ticks since a thread of the app ran */
    uint64_t idle;
    /* that this tick runs on */
    int cpu;
    /* a GC runs, as far as no event tells */
    bool gc;
    /* the last one: every thread is written, for what it used up to the end */
    bool last;
};

/* states_inferred.c (Ruby 3.1): did anything run? */
struct sdb_inferred {
    /* when a tick last found that something ran */
    uint64_t ran_ns;
    /* CPU of the app's threads, as of then */
    uint64_t others_cpu_ns;
    /* a thread ran in this tick; one counts as running; the one that did, did not all the time */
    bool ran, running, stopped;
    /* the app's CPU as last compared, what looks since then found of it, and what they did not */
    uint64_t explained_at_ns, explained_cpu_ns;
    int64_t unexplained_ns;
    /* CPU that threads used on this tick's cpu, as far as is known */
    uint64_t beside_ns;
    /* there is no other */
    bool one_cpu;
};

/* names.c */
struct sdb_names {
    struct sdb_code_age age;
    /* when codes were last let go */
    uint64_t aged_ns;
    /* entries that failed their proof, oldest first */
    uint32_t invalid[SDB_INVALID_MAX];
    uint32_t invalid_count;
};

/* memory_log.c */
struct sdb_memory_watch {
    struct sdb_memory_probe probe;
    /* as last read */
    struct sdb_memory last;
    uint64_t looked_ns, opened_ns, chunk;
    /* highest PRE_OOM level written since usage was low */
    uint32_t level;
    /* near the cgroup's limit: flush at every tick */
    bool short_of;
};

/* upkeep.c: what the symbolizer is asked for */
struct sdb_asks {
    uint64_t asked_ns;
    /* slots that wait for it to be freed, each with its Thread and that one's stack; since it was asked */
    uint32_t retired;
    /* a thread began or ended, or a second passed: it has something to do */
    bool soon;
};

/* scanner_life.c */
struct sdb_scanner_life {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* how far the scanner is, as it says */
    enum { SDB_AT_BEGIN, SDB_AT_OPEN, SDB_AT_HALT } at;
    /* how far others let it go */
    enum { SDB_MAY_OPEN, SDB_MAY_RUN, SDB_MAY_SEAL, SDB_MAY_GO } may;
    int file_err;
};

struct sdb_scanner {
    /* parts; immutable while running */
    struct sdb_thread_table *threads;
    struct sdb_code_table *codes;
    struct sdb_edge_set *edges;
    struct sdb_walker *walker;
    struct sdb_ring_writer *writer;
    struct sdb_symbol_area *symbols;
    struct sdb_open_work *work;
    /* what it asks of the world, also for the walker */
    struct sdb_host host;
    /* the symbolizer's */
    struct sdb_mailbox *mailbox;
    /* GC as events told of it */
    struct sdb_gc_periods *periods;

    /* facts; immutable while running */
    /* where the states of threads come from */
    const struct sdb_states *states;
    /* from GVL events, so that a state's begin is known */
    bool exact;
    /* GC is timed by events */
    bool gc_events;
    /* monotonic: the zero of all times in the log */
    uint64_t start_ns;
    /* registration with the OOM daemon; may be NULL */
    void (*every_second)(void *);
    void *every_second_data;

    /* the file: made at start, or later in a forked child */
    struct sdb_ring_file file;
    struct sdb_ring_config file_config;
    bool has_file;
    /* when it is to be made; 0: it has been */
    uint64_t file_due_ns;

    /* owner: scanner */
    struct sdb_tick tick;
    struct sdb_inferred inferred;
    struct sdb_names names;
    struct sdb_memory_watch memory;
    struct sdb_asks asks;
    struct sdb_pacing pacing;
    /* that every thread has a sample in */
    uint64_t chunk;
    uint64_t flushed_ns, second_ns;
    /* time in which threads of the app ran, since the start */
    uint64_t worked_ns;
    /* CPU of the scanner's thread, as last read by itself */
    uint64_t cpu_ns;

    /* shared: atomic */
    uint64_t counters[SDB_COUNTER_COUNT];
    uint64_t stop;
    /* 1: a forked child could not make its file; life.file_err and file.reason say why */
    uint64_t refused;
    /* flush on request: how many were asked for, how many are done */
    uint64_t dump_asked, dump_done;

    struct sdb_scanner_life life;
    pthread_t thread;
    bool started;
};

/* Asks the symbolizer for what (enum sdb_ask). Runs on: scanner. */
static inline void
sdb_scanner_ask(struct sdb_scanner *sc, uint64_t what)
{
    sdb_mailbox_ask(sc->mailbox, what);
    sc->host.request_symbolizer();
}

static inline void
sdb_count(struct sdb_scanner *sc, enum sdb_counter counter, uint64_t n)
{
    /* one writer: a plain add would do, but status reads it from other threads */
    __atomic_store_n(&sc->counters[counter], sc->counters[counter] + n, __ATOMIC_RELAXED);
}

static inline void
sdb_set_counter(struct sdb_scanner *sc, enum sdb_counter counter, uint64_t value)
{
    __atomic_store_n(&sc->counters[counter], value, __ATOMIC_RELAXED);
}

#endif
