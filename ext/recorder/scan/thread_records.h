/* SPDX-License-Identifier: MIT
 *
 * thread_records.h - what the scanner remembers of a slot's thread, and the THREAD record that each chunk has of it before
 * any other record about it.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_THREAD_RECORDS_H
#define SDB_THREAD_RECORDS_H

#include <stdint.h>
#include "sdb_atomic.h"
#include "scan/state.h"

/* Of the slot's thread, empty when it is new in the slot. NULL when out of memory. */
struct sdb_scan *sdb_thread_memory(struct sdb_scanner *sc, struct sdb_slot *slot);
/* Writes the THREAD record. */
void sdb_thread_write(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan);
/* Writes it when this chunk has it not yet, and the slot's thread still is the one of that serial. */
void sdb_thread_written(struct sdb_scanner *sc, struct sdb_slot *slot, uint64_t serial);
/* Changes with the thread's name; 0 without one. */
uint64_t sdb_thread_name_version(const struct sdb_slot *slot);
/* The slot is to be visited at the next tick, whatever its thread does. */
static inline void
sdb_thread_keep_active(struct sdb_scanner *sc, const struct sdb_slot *slot)
{
    sdb_or_seq_cst(&sc->threads->active[slot->index / SDB_SEGMENT_SLOTS],
                   1ull << (slot->index % SDB_SEGMENT_SLOTS));
}

#endif
