/* SPDX-License-Identifier: MIT
 *
 * walk.h - reads the stack of one thread while it moves, proves the reading, and finds which code each
 * frame runs. The protocol and its reasons: PROTOCOL.md; every racy read: VM_ACCESS.md.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_WALK_H
#define SDB_WALK_H

#include <stdbool.h>
#include <stdint.h>
#include "live_table.h"
#include "scan/thread_memory.h"
#include "scan/walker.h"

struct sdb_walker *sdb_walker_new(const struct sdb_walker_config *config);
void sdb_walker_free(struct sdb_walker *w);

/* Reads the stack of a LIVE slot into scan->frames (entry and node of unchanged frames are kept).
 * still: the thread cannot run meanwhile as far as its state says; then no edge needs proof.
 * *changed_from: lowest index whose frame is new. On anything but WHOLE and TORN_TOP scan is untouched. */
enum sdb_walk_result sdb_walk(struct sdb_walker *w, const struct sdb_slot *slot,
                              struct sdb_scan *scan, bool still, uint64_t stamp,
                              uint32_t *changed_from);

/* True when the frames at the top differ from the last walk: a cheap look at ec->cfp and the top frame. */
bool sdb_walk_moved(struct sdb_walker *w, const struct sdb_slot *slot, const struct sdb_scan *scan);

/* Call site of a frame as the ring has it (`where` of SDB_R_NODE). */
uint64_t sdb_walk_where(const struct sdb_walker *w, const struct sdb_frame *f);

const struct sdb_walk_counters *sdb_walker_counters(const struct sdb_walker *w);
uint64_t sdb_walker_memory_bytes(const struct sdb_walker *w);

#endif
