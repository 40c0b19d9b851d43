/* SPDX-License-Identifier: MIT
 *
 * symbolizer.h - the one Ruby thread that names what the scanner met. Parked without the GVL; takes it in
 * small turns, only for codes and threads never seen before.
 *
 * Files: symbolizer.c the life of the thread; symbolizer_work.c what it does in a turn.
 */
#ifndef SDB_SYMBOLIZER_H
#define SDB_SYMBOLIZER_H

#include <ruby.h>
#include <stdbool.h>
#include "core/code_table.h"
#include "vm/layout.h"
#include "scan/thread_table.h"

/* Starts the thread when there is none. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_start(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                          const struct sdb_layout *layout);
/* The same inside a postponed job, which swallows what is raised in it: gives the VM no occasion to. Runs on: any Ruby
 * thread, GVL. */
void sdb_symbolizer_start_in_job(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                                 const struct sdb_layout *layout);
/* Asks it to end and waits until it did. Runs on: any Ruby thread, GVL (given up meanwhile). */
void sdb_symbolizer_stop(void);
/* Names everything pending, on the calling thread, after the symbolizer ended. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_run_here_for(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                                 const struct sdb_layout *layout);

enum { SDB_ASK_WORK = 1, SDB_ASK_IDLE = 2 };
/* Wakes it for what is pending (WORK), or tells it that no thread of the process ran for a while (IDLE), when
 * it must see whether its own existence keeps the program from ending. Runs on: scanner. */
void sdb_symbolizer_ask(uint64_t what);
/* Total GVL time it took, ns. Runs on: any. */
uint64_t sdb_symbolizer_gvl_ns(void);
/* Passes over the threads' names begun and ended so far. Runs on: any. */
uint64_t sdb_symbolizer_passes_begun(void);
uint64_t sdb_symbolizer_passes_ended(void);
/* True when there is none: it was not started, or ended, perhaps without being asked to. Runs on: any. */
bool sdb_symbolizer_is_gone(void);
/* CPU the present symbolizer thread has used, ns; one system call. Runs on: any. */
uint64_t sdb_symbolizer_cpu_ns(void);
/* Memory of the symbols alive, bytes. Runs on: any. */
uint64_t sdb_symbolizer_memory_bytes(void);

struct sdb_gc_figures { /* of GC.stat, as of the symbolizer's last turn */
    uint64_t count, heap_live_slots, malloc_increase_bytes, oldmalloc_increase_bytes;
};
/* Runs on: any. */
void sdb_symbolizer_gc_figures(struct sdb_gc_figures *out);

/* In a forked child: forgets the thread, which did not come along. Runs on: atfork child handler. */
void sdb_symbolizer_forked(void);

#endif
