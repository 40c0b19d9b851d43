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
    SDB_FLUSH_NS = 4000000,    /* oldest byte not on the file; "at most 5 ms lost" */
    SDB_PARK_TICKS = 5,        /* ticks without a runnable thread before parking */
    SDB_HEARTBEAT_TICKS = 100, /* a running thread is written at least so often, for its CPU time */
    SDB_CHILD_FILE_NS =
        10000000, /* a forked child gets its file after this long: most exec before */
    SDB_GAP_INTERVALS = 5,
};

struct sdb_scanner {
    /* immutable while running */
    struct sdb_thread_table *threads;
    struct sdb_code_table *codes;
    struct sdb_edge_set *edges;
    struct sdb_walker *walker;
    struct sdb_ring_writer *writer;
    struct sdb_symbol_area *symbols;
    struct sdb_open_work *work;      /* open_work.h */
    const struct sdb_states *states; /* where the states of threads come from: states.h */
    bool exact;                      /* from GVL events */
    bool gc_events;                  /* GC timed by events */
    struct sdb_host host;            /* what it asks of the world, also for the walker */
    struct sdb_mailbox *mailbox;     /* the symbolizer's */
    struct sdb_gc_periods *periods;  /* GC as events told of it */
    void (*every_second)(
        void *); /* upkeep of other layers (registration with the OOM daemon); may be NULL */
    void *every_second_data;

    /* file: made at start, or by the scanner itself in a forked child */
    struct sdb_ring_file file;
    struct sdb_ring_config file_config;
    bool has_file;
    uint64_t file_due_ns; /* 0: has one */

    /* owner: scanner */
    struct sdb_pacing pacing;
    uint64_t tick; /* number */
    uint64_t now_ns, previous_ns, start_ns;
    uint64_t chunk;
    bool last_tick; /* every thread is written, for what it used up to the end */
    uint64_t idle_ticks;
    uint64_t worked_ns; /* time in which threads of the app ran, since the start */
    int cpu;            /* that this tick runs on */
    uint64_t ran_ns;    /* inferred states: when a tick last found that something ran */
    uint64_t flushed_ns, second_ns, memory_ns, asked_ns;
    bool
        ask_soon; /* a thread began or ended, or a second passed: the symbolizer has something to do */
    struct sdb_memory_probe memory_probe;
    struct sdb_memory memory; /* as last read */
    uint64_t memory_opened_ns, memory_chunk;
    uint32_t memory_level;  /* highest PRE_OOM level written since usage was low */
    bool memory_short;      /* near the cgroup's limit: flush at every tick */
    uint64_t others_cpu_ns; /* Ruby 3.1: did anything run? */
    /* Ruby 3.1: a thread did in this tick; one counts as running; the one that did, did not all the time */
    bool inferred_ran, inferred_running, inferred_stopped;
    uint64_t explained_at_ns,
        explained_cpu_ns; /* Ruby 3.1: the app's CPU as last compared; what looks since then found */
    int64_t unexplained_ns; /* ... and what they did not */
    uint64_t beside_ns; /* Ruby 3.1: CPU that threads used on this tick's cpu, as far as is known */
    bool one_cpu;       /* Ruby 3.1: there is no other */
    bool gc_now;
    struct sdb_code_age code_age;
    uint64_t aged_ns;     /* when codes were last let go */
    uint32_t invalid[64]; /* entries that failed their proof, to be dropped; oldest first */
    uint32_t invalid_count;
    uint64_t cpu_ns;      /* of the scanner's thread, as last read by itself */
    bool symbolizer_gone; /* a second ago; when it still is, another is requested */

    /* shared: atomic */
    uint64_t counters[SDB_COUNTER_COUNT];
    uint64_t stop;
    uint64_t dump_asked, dump_done; /* flush on request */
    struct sdb_scanner_life {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        enum { SDB_AT_BEGIN, SDB_AT_OPEN, SDB_AT_HALT } at;               /* the scanner says */
        enum { SDB_MAY_OPEN, SDB_MAY_RUN, SDB_MAY_SEAL, SDB_MAY_GO } may; /* others allow */
        int file_err;
    } life;
    pthread_mutex_t tick_lock; /* held during a tick, so that fork finds a tick boundary */
    pthread_t thread;
    bool started;
};

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
