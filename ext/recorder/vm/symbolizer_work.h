/* SPDX-License-Identifier: MIT
 *
 * symbolizer_work.h - one turn of the symbolizer's work, for symbolizer.c, which says when. Nobody else includes it.
 */
#ifndef SDB_SYMBOLIZER_WORK_H
#define SDB_SYMBOLIZER_WORK_H

#include <stdbool.h>
#include "core/code_table.h"
#include "core/mailbox.h"
#include "vm/layout.h"
#include "scan/thread_table.h"

/* Whose codes and threads are named from now on, and where to tell of it. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_work_on(struct sdb_mailbox *box, struct sdb_code_table *codes,
                            struct sdb_thread_table *threads, const struct sdb_layout *layout);
/* Since since_ns the GVL is wanted: the longer it took to get it, the longer the turn. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_work_due(uint64_t since_ns);
/* One turn. True: there is more to do. Runs on: symbolizer, or the caller of _run_here_for; GVL. */
bool sdb_symbolizer_work_turn(void);
/* The same, never longer than 0.2 ms, and checks no interrupts. Runs on: any Ruby thread, GVL. */
bool sdb_symbolizer_work_turn_in_job(void);

/* Codes named so far. Runs on: any Ruby thread, GVL. */
uint64_t sdb_symbolizer_named(void);

/* Whether some thread is in the midst of a turn. Runs on: any Ruby thread, GVL. */
bool sdb_symbolizer_works(void);

#endif
