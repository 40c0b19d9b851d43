/* SPDX-License-Identifier: MIT
 *
 * walk_impl.h - the walker's own fields, for walk.c (the order of a walk, codes, commit), stack_copy.c (where the
 * stack lies, its frames) and walk_proof.c (the second collect, the proof of new edges). Nobody else includes it.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_WALK_IMPL_H
#define SDB_WALK_IMPL_H

#include "scan/frame_code.h"
#include "scan/walk.h"

struct sdb_walker {
    struct sdb_walker_config config; /* immutable */
    /* owner: scanner */
    struct sdb_raw_frame *raw; /* of the frames that changed: raw[i - first] */
    uint8_t *copy, *values;    /* frames and values of a stack that is read safely */
    size_t copy_bytes, values_bytes;
    uint32_t raw_capacity;
    uint64_t random;
    struct sdb_walk_counters counters;
};

/* walk_proof.c: reads frames [from, to) again; returns the first index that is no longer as in w->raw (to: none). The
 * top frame's pc may move. Frame from - 1, the last unchanged one, must hold too. */
uint32_t sdb_walk_collect_again(struct sdb_walker *w, const struct sdb_slot *slot,
                                struct sdb_stack *s, const struct sdb_scan *scan, uint32_t from,
                                uint32_t to);
/* walk_proof.c: proves the edges of frames [from, to) that were never seen: they must be there three times more, at
 * random moments. Returns the end of what is proven. */
uint32_t sdb_walk_prove_edges(struct sdb_walker *w, const struct sdb_slot *slot,
                              struct sdb_stack *s, const struct sdb_scan *scan, uint32_t from,
                              uint32_t to, bool still);

#endif
