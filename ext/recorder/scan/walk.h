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
#include "core/code_table.h"
#include "core/edge_set.h"
#include "live_table.h"
#include "scan/host.h"
#include "scan/offsets.h"

enum {
    SDB_WALK_TRIES = 6,
    SDB_WALK_TORN_TRIES = 20,
};

struct sdb_frame { /* one control frame as last read; index 0 is the oldest */
    uint64_t iseq, pc, ep, self;
    uint64_t me;    /* ep[-2] of a C frame, else 0 */
    uint64_t ment;  /* of the method it stands in, BMETHOD bit included; 0 none */
    uint32_t entry; /* code table entry; 0: a frame that is not shown */
    uint32_t node;  /* in the chunk `sdb_scan.node_chunk`; visit.c */
};

struct sdb_scan { /* what the scanner remembers of a slot. owner: scanner */
    struct sdb_frame *frames;
    uint32_t depth, capacity;
    uint64_t value_bytes; /* of the value stack below the top frame's ep, at the last walk */
    uint64_t serial;      /* of the thread it is about */
    uint64_t node_chunk;
    uint64_t thread_chunk, sample_chunk; /* where its THREAD and its last SAMPLE stand */
    uint64_t resumes;                    /* of the slot at the last complete walk */
    uint64_t state, since_ns, cpu_ns;    /* as last written */
    uint64_t sample_tick;                /* tick number of the last SAMPLE */
    uint64_t cpu_base_ns;
    uint64_t phantom_since_ns;   /* runs although the VM said SUSPENDED, see visit.c; 0 no */
    uint64_t phantom_blocked_ns; /* time so far counted as blocked by the slot but not by us */
    uint64_t name;               /* as last written */
    uint64_t death_pass;         /* symbolizer's pass that will have seen its last name; 0 alive */
    uint64_t checked_ns, next_check_ns, seen_cpu_ns; /* Ruby 3.1: see states_inferred.c */
    uint64_t clock_ns, clock_tick; /* Ruby 3.1: its CPU clock as read, and at which tick */
    bool span_moved;               /* its span or tags changed, and its stack was not read since */
    bool span_behind; /* they changed after the last tick's time: `node` is of before */
    bool stack_due;   /* Ruby 3.1: it ran, and its stack was not read since (a GC was on, say) */
    uint64_t idle_checks, inferred_state, inferred_blocked_ns;
    uint64_t gc_sampled_ns; /* GC time by sampling, where no GC events exist */
    uint32_t node;          /* of the last SAMPLE */
    uint32_t more;
    uint32_t tid;
    uint32_t probation; /* ticks since SUSPENDED that its stack is still looked at */
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

struct sdb_walker; /* scratch buffers and what all walks share */

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

/* Call site of a frame as the ring has it (`where` of SDB_R_NODE). top: the newest frame. */
uint64_t sdb_walk_where(const struct sdb_walker *w, const struct sdb_frame *f);

struct sdb_walk_counters {
    uint64_t frames_read, truncated;
};
const struct sdb_walk_counters *sdb_walker_counters(const struct sdb_walker *w);
uint64_t sdb_walker_memory_bytes(const struct sdb_walker *w);

#endif
