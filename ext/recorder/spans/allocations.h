/* SPDX-License-Identifier: MIT
 *
 * allocations.h - how many objects a thread allocated. The VM counts for the process only, but whoever allocates
 * holds the GVL: with GVL events (3.2+) the count between two turns belongs to the thread that had the turn. On 3.1
 * it is the count of the process.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_ALLOCATIONS_H
#define SDB_ALLOCATIONS_H

#include <stdint.h>

struct sdb_slot;

/* Begins to count; when a recording begins, or in a forked child. The caller's thread has the turn. */
void sdb_allocations_start(void);
/* Another thread got the GVL, or the same again; NULL: one that has no slot (yet). Runs on: RESUMED hook, THREAD_BEGIN
 * (3.2). */
void sdb_allocations_turn(struct sdb_slot *slot);
/* Objects so far of the thread that calls. Only differences mean something. */
uint64_t sdb_allocations_of(struct sdb_slot *slot);

#endif
