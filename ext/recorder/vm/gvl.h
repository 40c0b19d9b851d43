/* SPDX-License-Identifier: MIT
 *
 * gvl.h - from VM events to slots: threads that begin and end, and on Ruby 3.2+ who waits for, holds and
 * gives up the GVL, exactly. Hooks are added once per process and never removed: a flag gates them (adding
 * or removing in a forked child would touch a lock that fork does not reset, vm: thread.c 3.2-4.0).
 */
#ifndef SDB_GVL_H
#define SDB_GVL_H

#include <ruby.h>
#include <stdbool.h>
#include "vm/layout.h"
#include "scan/thread_table.h"

/* Adds the hooks. on_turn is called when a thread gets the GVL, on that thread: no alloc, no raise.
 * Runs on: any Ruby thread, GVL. Raises what Ruby raises (once per process). */
void sdb_gvl_install(struct sdb_thread_table *table, const struct sdb_layout *layout,
                     void (*on_turn)(struct sdb_slot *));
/* The table that it was installed with. Runs on: any, after _install. */
struct sdb_thread_table *sdb_gvl_threads(void);
/* In a forked child, first of all: the calling thread has a new tid. */
void sdb_gvl_forked(void);
/* While off, hooks return at once. Runs on: any. */
void sdb_gvl_enable(bool on);
/* Gives every thread of Thread.list a slot (they got no event). Runs on: any Ruby thread, GVL. */
void sdb_gvl_seed(struct sdb_thread_table *table);
/* In a forked child: a slot for the only thread left. Calls nothing of the VM. `thread` is its VALUE.
 * Runs on: the forking thread, in the atfork handler. */
void sdb_gvl_seed_forked(struct sdb_thread_table *table, VALUE thread, uint64_t th,
                         uint64_t root_ec, uint64_t flags);
/* The calling thread's slot, NULL when it has none. Runs on: any Ruby thread, GVL. */
struct sdb_slot *sdb_gvl_current_slot(void);
/* The same while hooks are off, for the atfork handler. */
struct sdb_slot *sdb_gvl_current_slot_unchecked(void);
/* Execution context of the fiber that the slot's thread runs. Runs on: that thread, GVL. */
uint64_t sdb_gvl_current_ec(const struct sdb_slot *slot);
/* Whether states come from events (3.2+). */
bool sdb_gvl_exact(void);
/* 3.1, where no event tells: whether some thread of the app ran after the one that ended at ended_ns, by the CPU clocks
 * as they were then. False also when that is not known. Runs on: any Ruby thread, GVL. */
bool sdb_gvl_ran_since(uint64_t ended_ns);
/* Marks the calling thread as sdb's own. Runs on: the symbolizer. */
void sdb_gvl_set_own(void);
/* The same for a thread that was made a moment ago and has not run yet, where the VM allows it (3.3+). Runs on: any Ruby
 * thread, GVL. */
void sdb_gvl_adopt_own(VALUE thread);

#endif
