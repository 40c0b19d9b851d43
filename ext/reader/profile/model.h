/* SPDX-License-Identifier: MIT
 *
 * model.h - the columnar profile: what all rings together hold, in tables that refer to each other by
 * number. Built once (load.h), then only read (select.h, aggregate.h, spans.h, blame.h).
 *
 * Times are ns on one line for all rings: 0 is the start of the earliest ring; a ring's own (rel) times are
 * these less its base_ns.
 *
 * Runs on: offline
 */
#ifndef SDB_MODEL_H
#define SDB_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/map.h"
#include "log/memory.h"
#include "log/ring_reader.h"

#define SDB_NO_TIME UINT64_MAX
#define SDB_NONE UINT32_MAX

/* States of a segment: those of enum sdb_thread_state, and: */
enum { SDB_UNKNOWN = 4, SDB_STATE_COUNT = 5 };

/* Functions and stacks that are always there, with these numbers. */
enum sdb_fixed {
    SDB_FUNC_UNKNOWN = 0,    /* "(unknown)": nothing was seen */
    SDB_FUNC_NO_FRAMES = 1,  /* "(no Ruby frames)" */
    SDB_FUNC_UNNAMED = 2,    /* "(not yet named)" */
    SDB_FUNC_UNRESOLVED = 3, /* "(unresolved)" */
    SDB_FUNC_FIXED_COUNT,
    SDB_STACK_ROOT = 0, /* parent of all; no segment has it */
    SDB_STACK_UNKNOWN = 1,
    SDB_STACK_NO_FRAMES = 2,
    SDB_STACK_FIXED_COUNT,
};

struct sdb_reader_text { /* a string in the arena */
    const char *at;
    uint32_t n;
};

struct sdb_func {
    uint32_t name, path; /* strings */
    uint32_t line;       /* first line, 0 none */
    uint32_t kind;       /* enum sdb_code_kind; 0 for the fixed ones */
};

struct sdb_reader_frame {
    uint32_t func, line;
};

struct sdb_reader_stack {
    uint32_t parent; /* below its own number */
    uint32_t frame;
    uint32_t depth : 31;
    uint32_t again : 1; /* its function is among its ancestors too */
};

/* One thread on one stack in one state, from t0 to the next segment's t0 (the last: to the thread's end). */
struct sdb_segment {
    uint64_t t0;
    uint64_t cpu_ns;
    uint32_t stack;
    uint32_t ticks : 29; /* ticks at which it was seen so */
    uint32_t state : 3;
};

struct sdb_reader_changes {
    uint64_t first, last;
};

struct sdb_thread {
    uint32_t ring, tid, flags; /* SDB_THREAD_* */
    uint32_t name;             /* string, SDB_NONE none */
    uint64_t serial;
    uint64_t birth, death; /* SDB_NO_TIME: not known, not dead */
    uint64_t end;          /* where its last segment ends */
    struct sdb_segment *segments;
    size_t segment_count, segment_capacity;
    uint64_t carry_cpu_ns; /* of a segment without length: goes to the next */
    uint32_t carry_ticks;
    /* while loading: its slot, and changes of its inner spans since the tick before, and behind this tick; all else: labels.h */
    uint32_t slot;
    struct sdb_reader_changes changes, early_changes;
};

struct sdb_pair { /* a tag */
    uint32_t key, value;
};

enum {
    SDB_SPAN_OPEN = 1,  /* no end was seen */
    SDB_SPAN_EXACT = 2, /* cpu, wait, blocked, gc are the recorder's own */
};

struct sdb_span {
    uint32_t ring, thread; /* thread it began on, SDB_NONE unknown */
    uint32_t parent;       /* span, SDB_NONE none or unknown */
    uint32_t flags;
    uint64_t id, parent_id;
    uint64_t begin, end;                       /* end of an open one: the ring's */
    uint32_t kind, name, request_id, trace_id; /* strings */
    uint64_t status, cpu_ns, running_ns, wait_ns, blocked_ns, gc_ns, allocations;
    uint32_t tags_off, tags_n; /* in pairs */
};

/* Thread `thread` worked for span `span` (innermost) from t0 to t1. */
struct sdb_span_piece {
    uint32_t span, thread;
    uint64_t t0, t1;
};

struct sdb_span_event { /* only while loading */
    uint64_t at;
    uint32_t kind, span, thread;
    uint32_t order;
};

struct sdb_tag_set { /* of a thread, until its next one */
    uint64_t at;
    uint32_t thread;
    uint32_t tags_off, tags_n;
};

struct sdb_clock {
    uint64_t at, realtime_ns;
};

struct sdb_gap_row {
    uint64_t at, ns;
    uint32_t ring, reason; /* enum sdb_gap; 0: chunks lost */
};

struct sdb_gc_row {
    uint64_t at, ns, count, heap_live, malloc_increase;
    uint32_t ring, thread, flags;
};

struct sdb_memory_row {
    uint64_t at, rss, cgroup, limit;
    uint32_t ring;
};

struct sdb_counter_row {
    uint64_t at;
    uint32_t ring;
    uint64_t values[SDB_COUNTER_COUNT];
};

struct sdb_mark_row {
    uint64_t at;
    uint32_t ring, text;
    uint32_t level;                /* PRE_OOM: percent, with tags; else 0 */
    uint32_t values_off, values_n; /* in pre_oom_values */
};

struct sdb_number { /* a PRE_OOM figure */
    uint32_t key;
    uint64_t value;
};

struct sdb_loss { /* what the reading of a ring met */
    uint64_t chunks_missing, chunks_lapped, chunks_damaged;
    uint64_t records_ignored;
    uint64_t unknown_ns;                    /* spans of threads that nobody knows of */
    uint64_t torn_top, truncated, no_stack; /* samples so flagged */
    uint64_t thread_samples;                /* threads seen at ticks, changed or not */
};

struct sdb_ring_row {
    uint64_t base_ns;         /* its rel zero on the common line */
    uint64_t first, last;     /* what is retained */
    struct sdb_clock *clocks; /* by time */
    size_t clock_count, clock_capacity;
    struct sdb_loss loss;
    bool truncated;
};

#define SDB_TABLE(type, name)                                                                      \
    type *name;                                                                                    \
    size_t name##_count, name##_capacity

struct sdb_profile {
    SDB_TABLE(struct sdb_ring_row, rings);
    SDB_TABLE(struct sdb_reader_text, strings);
    SDB_TABLE(struct sdb_func, funcs);
    SDB_TABLE(struct sdb_reader_frame, frames);
    SDB_TABLE(struct sdb_reader_stack, stacks);
    SDB_TABLE(struct sdb_thread, threads);
    SDB_TABLE(struct sdb_span, spans);
    SDB_TABLE(struct sdb_span_piece, pieces);
    SDB_TABLE(struct sdb_span_event, span_events);
    SDB_TABLE(struct sdb_pair, pairs);
    SDB_TABLE(struct sdb_tag_set, tag_sets);
    SDB_TABLE(struct sdb_gap_row, gaps);
    SDB_TABLE(struct sdb_gc_row, gcs);
    SDB_TABLE(struct sdb_memory_row, memory);
    SDB_TABLE(struct sdb_counter_row, counters);
    SDB_TABLE(struct sdb_mark_row, marks);
    SDB_TABLE(struct sdb_number, numbers);
    struct sdb_arena arena;
    struct sdb_map string_map, func_map, frame_map, stack_map, thread_map, span_map;
    uint64_t string_seed;
};

/* One more element of table `name`, uncleared: 0 or SDB_ERR_NOMEM. */
#define sdb_table_room(p, name)                                                                    \
    sdb_grow(&(p)->name, &(p)->name##_capacity, (p)->name##_count + 1, sizeof(*(p)->name))

/* NULL when out of memory. Has the fixed functions and stacks. */
struct sdb_profile *sdb_profile_new(void);
void sdb_profile_free(struct sdb_profile *p); /* accepts NULL */

/* Number of an equal element, made when new. 0 or SDB_ERR_NOMEM, _FULL. */
int sdb_profile_string(struct sdb_profile *p, const void *bytes, size_t n, uint32_t *string);
/* As above but only looks: SDB_NONE when there is none. */
uint32_t sdb_string_find(const struct sdb_profile *p, const void *bytes, size_t n);
int sdb_profile_func(struct sdb_profile *p, struct sdb_func func, uint32_t *number);
int sdb_profile_frame(struct sdb_profile *p, uint32_t func, uint32_t line, uint32_t *frame);
/* A stack that would be deeper than SDB_MAX_DEPTH is its parent. */
int sdb_profile_stack(struct sdb_profile *p, uint32_t parent, uint32_t frame, uint32_t *stack);

/* Walks the tree of stacks, a parent before its children; leaves each after its children. 0 or SDB_ERR_NOMEM. */
typedef void sdb_stack_step(uint32_t stack, void *data);
int sdb_profile_walk(const struct sdb_profile *p, sdb_stack_step *enter, sdb_stack_step *leave,
                     void *data);

/* Sets `again` of all stacks; once, after the last was added. 0 or SDB_ERR_NOMEM. */
int sdb_profile_mark_recursion(struct sdb_profile *p);

/* End of segment `i` of a thread. */
static inline uint64_t
sdb_segment_end(const struct sdb_thread *t, size_t i)
{
    return i + 1 < t->segment_count ? t->segments[i + 1].t0 : t->end;
}

/* Index of the segment that holds instant `at`, or of the first behind it; segment_count when none. */
size_t sdb_segment_find(const struct sdb_thread *t, uint64_t at);

#endif
