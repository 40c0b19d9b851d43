/* SPDX-License-Identifier: MIT
 *
 * open_work.h - the scanner's side of the events of app threads (event_feed.h): they become records, and what is open or
 * set is repeated at the start of each chunk.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_OPEN_WORK_H
#define SDB_OPEN_WORK_H

#include <stddef.h>
#include <stdint.h>
#include "scan/state.h"

struct sdb_open_work *sdb_open_work_new(void);    /* NULL when out of memory */
void sdb_open_work_free(struct sdb_open_work *e); /* accepts NULL */
size_t sdb_open_work_memory_bytes(const struct sdb_open_work *e);

struct sdb_changes { /* of a thread's span or tags, ns (monotonic); 0, 0: none */
    uint64_t first_ns, last_ns;
};
/* Writes what the slot's thread queued, during a tick. */
struct sdb_changes sdb_work_drain(struct sdb_scanner *sc, struct sdb_slot *slot);
/* The same for all slots, when the recording ends. Runs on: who stops it, the scanner's thread being gone. */
void sdb_work_drain_all(struct sdb_scanner *sc);
/* Repeats what is open in a chunk that has it not yet. */
void sdb_work_repeat(struct sdb_scanner *sc);
/* End of a tick: ends that came before their begins, spans of collected fibers. */
void sdb_work_tick(struct sdb_scanner *sc);
/* The slot's thread is gone and its queue empty. */
void sdb_work_retire(struct sdb_scanner *sc, struct sdb_slot *slot);

#endif
