/* SPDX-License-Identifier: MIT
 *
 * scanner.h - the thread that never takes the GVL: each interval it looks at the threads that did something,
 * reads their stacks, and writes what changed. The only writer of the ring.
 *
 * Files: scanner.c the loop and parking; scanner_life.c its thread, from the file's making to its sealing; visit.c one
 * thread at one tick; states_exact.c and states_inferred.c what a thread does; open_work.c spans and tags; names.c,
 * memory_log.c and upkeep.c what happens each few ms and each second.
 */
#ifndef SDB_SCANNER_H
#define SDB_SCANNER_H

#include <stdbool.h>
#include <stdint.h>
#include "scan/state.h"

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

#endif
