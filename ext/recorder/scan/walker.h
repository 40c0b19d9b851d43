/* SPDX-License-Identifier: MIT
 *
 * walker.h - what all walks share: how this VM lays out its stacks, and the buffers. For walk.c (the order of a walk,
 * codes, commit), stack_copy.c (where the stack lies, its frames) and walk_proof.c (the second collect, the proof of new
 * edges); others fill a config and leave the rest to walk.h.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_WALKER_H
#define SDB_WALKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/code_table.h"
#include "core/edge_set.h"
#include "scan/frame_code.h"
#include "scan/host.h"
#include "scan/offsets.h"

enum {
    SDB_WALK_TRIES = 6,
    SDB_WALK_TORN_TRIES = 20,
};

enum sdb_walk_result {
    SDB_WALK_WHOLE,
    SDB_WALK_TORN_TOP,   /* the newest frames were left out */
    SDB_WALK_TORN,       /* nothing could be read in a stable way */
    SDB_WALK_GC,         /* a GC ran or began: nothing may be kept */
    SDB_WALK_NO_STACK,   /* the thread has none (not begun, ending) */
    SDB_WALK_UNREADABLE, /* this process may not read it safely */
    SDB_WALK_BUSY,       /* too many unnamed codes: the symbolizer must catch up first */
};

struct sdb_walker_config {
    struct sdb_layout layout;
    bool stacks_last;     /* 3.3+: a thread's VM stack lives as long as its Thread */
    bool drop_top;        /* this VM publishes frames before filling them (YJIT of 3.1, 3.2) */
    uint64_t main_thread; /* VALUE; its stack lives as long as the VM */
    struct sdb_code_table *codes;
    struct sdb_edge_set *edges;
    const uint64_t *gc_epoch;    /* odd while GC marks our objects; vm/gc.c */
    const struct sdb_host *host; /* outlives the walker */
};

struct sdb_walk_counters {
    uint64_t frames_read, truncated;
};

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

#endif
