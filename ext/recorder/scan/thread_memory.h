/* SPDX-License-Identifier: MIT
 *
 * thread_memory.h - what the scanner remembers of a thread from tick to tick: its stack as last read, and what of it the
 * log knows.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_THREAD_MEMORY_H
#define SDB_THREAD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

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
    bool span_told;   /* they changed, and no sample was written since */
    bool stack_due;   /* Ruby 3.1: it ran, and its stack was not read since (a GC was on, say) */
    uint64_t idle_checks, inferred_state, inferred_blocked_ns;
    uint64_t gc_sampled_ns; /* GC time by sampling, where no GC events exist */
    uint32_t node;          /* of the last SAMPLE */
    uint32_t more;
    uint32_t tid;
    uint32_t probation; /* ticks since SUSPENDED that its stack is still looked at */
};

#endif
