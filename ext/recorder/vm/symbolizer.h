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
#include "core/mailbox.h"
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

/* Where the scanner asks for it, and finds what it did. Runs on: any. */
struct sdb_mailbox *sdb_symbolizer_mailbox(void);

/* In a forked child: forgets the thread, which did not come along. Runs on: atfork child handler. */
void sdb_symbolizer_forked(void);

#endif
