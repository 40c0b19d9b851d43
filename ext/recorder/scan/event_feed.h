/* SPDX-License-Identifier: MIT
 *
 * event_feed.h - what app threads tell the scanner: events of spans, tags and marks, through a queue of each thread. What
 * the scanner does with them: open_work.h.
 */
#ifndef SDB_EVENT_FEED_H
#define SDB_EVENT_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sdb_event_type {
    SDB_E_SPAN_BEGIN = 1,
    SDB_E_SPAN_END,
    SDB_E_SPAN_SWITCH,
    SDB_E_TAGS,
    SDB_E_MARK, /* payload: the text */
};

enum {
    SDB_EVENT_TEXT_MAX = 1024,  /* bytes of a string of an event, as of a chunk's string */
    SDB_EVENT_TAGS_MAX = 64,    /* of one span or set */
    SDB_EVENT_BYTES_MAX = 8192, /* of a payload */
    SDB_SPAN_QUEUE_BYTES = 1 << 16,
};

/* Tags in a payload: for each { uint16_t key bytes, value bytes; key; value } */

struct sdb_begin_event { /* then kind, name, request, trace, tags */
    uint64_t id, parent;
    uint16_t kind_bytes, name_bytes, request_bytes, trace_bytes;
    uint32_t tag_count;
};

struct sdb_end_event { /* then name, trace, tags */
    uint64_t id;
    uint64_t next; /* the span that its thread works for now, 0 none */
    uint64_t cpu_ns, wait_ns, blocked_ns, gc_ns, allocations;
    uint32_t status;
    uint16_t name_bytes, trace_bytes;
    uint32_t tag_count;
};

struct sdb_switch_event {
    uint64_t id; /* 0 none */
};

struct sdb_tags_event { /* then tags: the whole set */
    uint32_t tag_count;
};

struct sdb_slot;
struct sdb_thread_table;

/* Queues an event for the scanner; false when it did not fit or memory is out. keep: as sdb_event_queue_push_keeping.
 * Runs on: the slot's thread, GVL. Allocates the queue the first time. */
bool sdb_events_push(struct sdb_thread_table *threads, struct sdb_slot *slot,
                     enum sdb_event_type type, uint64_t at_ns, const void *payload, size_t bytes,
                     size_t keep);
/* Tells the scanner that a span ended unseen: its fiber was collected. Runs on: any Ruby thread, GC included. */
void sdb_events_abandon(uint64_t id, uint64_t at_ns);
struct sdb_abandoned_span {
    struct sdb_abandoned_span *next;
    uint64_t id, at_ns;
};
/* What was told since the last call, newest first; the caller frees each. Runs on: scanner. */
struct sdb_abandoned_span *sdb_events_take_abandoned(void);
/* Forgets what was told; when a recording begins. Runs on: GVL, or the atfork child handler. */
void sdb_events_forget_abandoned(void);

#endif
