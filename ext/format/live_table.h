/* SPDX-License-Identifier: MIT
 *
 * live_table.h - the thread table as it lies in the profiled process. The recorder keeps it; a BPF program
 * reads it out of a dying process (see bpf/README.md). Not part of the file format: `version` changes
 * whenever a field moves, and a reader that does not know it says layout_unknown.
 *
 * Runs on: any
 */
#ifndef SDB_LIVE_TABLE_H
#define SDB_LIVE_TABLE_H

#include <stdint.h>

#define SDB_LIVE_MAGIC 0x656c626174736273ull
#define SDB_LIVE_VERSION 1

enum {
    SDB_SEGMENT_SLOTS = 64,  /* one bitmap word a segment */
    SDB_SEGMENT_COUNT = 256, /* so 16384 live threads at most */
    SDB_SLOT_COUNT = SDB_SEGMENT_SLOTS * SDB_SEGMENT_COUNT,
};

enum sdb_slot_life {
    SDB_SLOT_FREE = 0,
    SDB_SLOT_CLAIMED = 1, /* being filled by the thread that registers */
    SDB_SLOT_LIVE = 2,
    SDB_SLOT_DEAD = 3,    /* its thread ended; the scanner has not retired it yet */
    SDB_SLOT_RETIRED = 4, /* the scanner is done with it; the VALUE may be unpinned, then FREE */
};

/* One Ruby thread. 256 bytes; `life` says who may touch the rest. */
struct sdb_slot {
    /* shared: atomic. `life` first: CLAIMED -> LIVE (release) by the registering thread, LIVE -> DEAD by
     * the hook, DEAD -> RETIRED by the scanner, RETIRED -> FREE by the symbolizer (GVL) */
    uint64_t life;
    /* seqlock over the next seven; written by GVL and GC hooks on behalf of this thread only */
    uint64_t seq;
    uint64_t state;                      /* enum sdb_thread_state */
    uint64_t since_ns;                   /* monotonic, when it entered `state` */
    uint64_t wait_ns, blocked_ns, gc_ns; /* totals of ended periods */
    uint64_t resumes;                    /* +1 each time it gets the GVL */
    uint64_t tid;                        /* native thread id; may change under M:N */

    /* immutable while LIVE */
    uint64_t thread_value; /* the pinned Thread */
    uint64_t th;           /* rb_thread_t */
    uint64_t root_ec;
    uint64_t serial; /* never reused */
    uint64_t birth_ns;
    uint64_t flags; /* SDB_THREAD_* of ring_format.h */

    /* shared: atomic */
    uint64_t death_ns;
    /* const struct sdb_slot_name *, swapped by the symbolizer, freed at RETIRED -> FREE */
    uint64_t name;
    uint64_t queue;   /* struct sdb_event_queue *, made at first use by the thread itself */
    uint64_t span_id; /* the span it works for, 0 none, as its events told */
    uint64_t cpu; /* where it last got the GVL (3.1: began or ended a span); UINT64_MAX not known */
    uint64_t begin_cpu_ns; /* its CPU clock when it got the slot, 0 not known */
    /* its CPU clock as it ended, stored before DEAD by itself (nobody can ask later); 0 not known */
    uint64_t end_cpu_ns;

    /* guarded by the GVL */
    /* VALUE, what the fiber works for that its thread runs now (spans/context.h); 0 none */
    uint64_t context;
    uint64_t allocations; /* spans/allocations.h */
    uint64_t tags_token;  /* which tag set the log knows of, 0 the empty one */

    /* owner: scanner */
    uint64_t scan; /* struct sdb_scan *: previous copy of its stack */

    /* immutable from the segment's birth */
    uint64_t index; /* of the slot in the table */

    uint64_t reserved[5];
};

struct sdb_live_table {
    uint64_t magic, version;
    uint64_t slot_bytes, segment_slots;
    uint64_t segments_used;               /* atomic; grows only */
    uint64_t segments[SDB_SEGMENT_COUNT]; /* struct sdb_slot *, never freed or moved */
    /* layout of this Ruby, for the reader: see vm/layout.h */
    uint64_t thread_ec, ec_vm_stack, ec_vm_stack_size, ec_cfp, cfp_bytes, cfp_pc, cfp_iseq, cfp_ep;
    uint64_t counters; /* uint64_t[SDB_COUNTER_COUNT] of ring_format.h, the scanner's own */
    /* bytes the scanner has collected and not yet written: [pending, pending + pending_bytes) belong at
     * pending_off of the ring file; a seqlock guards the three */
    uint64_t pending_seq, pending, pending_bytes, pending_off;
    uint64_t reserved[16];
};

_Static_assert(sizeof(struct sdb_slot) == 256, "a slot is four cache lines");

#endif
