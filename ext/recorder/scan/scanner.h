/* SPDX-License-Identifier: MIT
 *
 * scanner.h - the thread that never takes the GVL: each interval it looks at the threads that did something,
 * reads their stacks, and writes what changed. The only writer of the ring.
 *
 * Files: scanner.c the loop and parking; scanner_life.c its thread, from the file's making to its sealing; visit.c one thread at one tick; states_inferred.c states on Ruby 3.1;
 * upkeep.c what happens each few ms and each second.
 */
#ifndef SDB_SCANNER_H
#define SDB_SCANNER_H

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
#include "scan/events.h"
#include "scan/host.h"
#include "scan/thread_table.h"
#include "scan/walk.h"

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
    struct sdb_events *events;
    bool exact;                     /* states from GVL events */
    bool gc_events;                 /* GC timed by events */
    struct sdb_host host;           /* what it asks of the world, also for the walker */
    struct sdb_mailbox *mailbox;    /* the symbolizer's */
    struct sdb_gc_periods *periods; /* GC as events told of it */
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

struct sdb_scanner_config {
    /* borrowed, and alive as long as the scanner */
    struct sdb_thread_table *threads;
    struct sdb_mailbox *mailbox;
    struct sdb_gc_periods *periods;
    const uint64_t *gc_epoch; /* odd while GC marks our objects; vm/gc.c */
    /* copied */
    struct sdb_host host;
    struct sdb_layout layout;
    struct sdb_ring_config file; /* start_monotonic_ns: the zero of all times */
    uint64_t max_cpu_ppm;
    uint64_t main_thread; /* VALUE; its stack lives as long as the VM */
    bool exact;           /* states come from GVL events */
    bool gc_events;       /* GC is timed by events */
    bool stacks_last;     /* 3.3+: a thread's VM stack lives as long as its Thread */
    bool drop_top;        /* this VM publishes frames before filling them (YJIT of 3.1, 3.2) */
};

/* All parts of a recording, without a file yet. 0 or SDB_ERR_NOMEM, and then nothing is to be freed. Runs on: any. */
int sdb_scanner_init(struct sdb_scanner *sc, const struct sdb_scanner_config *config);
/* Frees the parts, with the native thread ended. Does not close the file. Runs on: any. */
void sdb_scanner_free(struct sdb_scanner *sc);
/* Creates the ring and attaches it. 0 or a negative error, and the errno is in sc->file.last_errno. Runs on: any thread
 * that may block. */
int sdb_scanner_open_file(struct sdb_scanner *sc);

/* The thread does all that is done with files, from the first to the last: they are in a descriptor table of its own
 * (core/own_files.h). scanner_life.c: */

/* Starts the native thread and waits until it has made the file: 0, what sdb_ring_file_create returned, or
 * SDB_ERR_THREAD; then it has ended. It ticks after sdb_scanner_go. Where a file is due later (a forked child) it waits
 * for nothing and ticks at once. */
int sdb_scanner_launch(struct sdb_scanner *sc);
void sdb_scanner_go(struct sdb_scanner *sc);
/* Returns after its last tick and flush; the thread waits then. Again: nothing. Runs on: any thread; needs no GVL. */
void sdb_scanner_halt(struct sdb_scanner *sc);
/* After a halt: ends the thread, with the ring sealed or as if the process had been killed. Again: nothing. */
void sdb_scanner_end(struct sdb_scanner *sc, bool seal);
/* Wakes it from parking. Runs on: any. */
void sdb_scanner_wake(struct sdb_scanner *sc);
/* The scanner's life on the calling thread, until `stop`. Runs on: its own thread, or a test. */
void sdb_scanner_run(struct sdb_scanner *sc);
/* One tick on the calling thread. For tests, with the native thread not running. */
void sdb_scanner_tick(struct sdb_scanner *sc, uint64_t now_ns);

/* ---- between the scanner's own files ---- */

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

void sdb_visit(struct sdb_scanner *sc, struct sdb_slot *slot, uint32_t index);
/* Writes the THREAD record of the slot's thread when this chunk has it not yet, and it still is the one of that serial. */
void sdb_visit_thread(struct sdb_scanner *sc, struct sdb_slot *slot, uint64_t serial);
/* Ruby 3.1: what the slot's CPU clock says. False: not due, or nothing new. */
bool sdb_infer_state(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
                     struct sdb_state_view *out, bool *ran);
/* Ruby 3.1, begin of a tick: reads the CPU clocks of the threads that may have run. False: none has. */
bool sdb_infer_clocks(struct sdb_scanner *sc);
/* Ruby 3.1, once a second. */
void sdb_infer_second(struct sdb_scanner *sc);
void sdb_upkeep_tick(struct sdb_scanner *sc);   /* end of each tick */
void sdb_upkeep_flush(struct sdb_scanner *sc);  /* to the file */
void sdb_upkeep_memory(struct sdb_scanner *sc); /* memory.c */
void sdb_upkeep_state(struct sdb_scanner *sc);  /* the state page */
void sdb_upkeep_parked(struct sdb_scanner *sc); /* names that came since, and that it is parked */
void sdb_upkeep_second(
    struct sdb_scanner *sc); /* that, counters and clocks into the log, the governor */
/* After the last tick: last names, figures, state CLOSED, closes the file. reason: why it stopped, NULL when asked
 * to. */
void sdb_upkeep_close(struct sdb_scanner *sc, const char *reason);
/* Closes what is open, without sealing. */
void sdb_upkeep_abandon(struct sdb_scanner *sc);

#endif
