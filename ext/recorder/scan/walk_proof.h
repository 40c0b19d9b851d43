/* SPDX-License-Identifier: MIT
 *
 * walk_proof.h - the second collect of a walk, and the proof of new edges. For walk.c only. Why: PROTOCOL.md, "One walk".
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_WALK_PROOF_H
#define SDB_WALK_PROOF_H

#include <stdbool.h>
#include <stdint.h>
#include "live_table.h"
#include "scan/thread_memory.h"
#include "scan/walker.h"

/* Reads frames [from, to) again; returns the first index that is no longer as in w->raw (to: none). The
 * top frame's pc may move. Frame from - 1, the last unchanged one, must hold too. */
uint32_t sdb_walk_collect_again(struct sdb_walker *w, const struct sdb_slot *slot,
                                struct sdb_stack *s, const struct sdb_scan *scan, uint32_t from,
                                uint32_t to);
/* Proves the edges of frames [from, to) that were never seen: they must be there three times more, at
 * random moments. Returns the end of what is proven. */
uint32_t sdb_walk_prove_edges(struct sdb_walker *w, const struct sdb_slot *slot,
                              struct sdb_stack *s, const struct sdb_scan *scan, uint32_t from,
                              uint32_t to, bool still);

#endif
