/* SPDX-License-Identifier: MIT
 *
 * events.h - what app threads tell the scanner through their queues (spans, tags, marks), and the scanner's side of
 * it: events become records, and what is open or set is repeated at the start of each chunk.
 */
#ifndef SDB_EVENTS_H
#define SDB_EVENTS_H

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

struct sdb_scanner;
struct sdb_slot;
struct sdb_thread_table;
struct sdb_events; /* the scanner's memory of what is open */

struct sdb_events *sdb_events_new(void);    /* NULL when out of memory */
void sdb_events_free(struct sdb_events *e); /* accepts NULL */
size_t sdb_events_memory_bytes(const struct sdb_events *e);

struct sdb_changes { /* of a thread's span or tags, ns (monotonic); 0, 0: none */
    uint64_t first_ns, last_ns;
};
/* Writes what the slot's thread queued. Runs on: scanner, during a tick. */
struct sdb_changes sdb_events_drain(struct sdb_scanner *sc, struct sdb_slot *slot);
/* The same for all slots, when the recording ends. Runs on: who stops it, the scanner's thread being gone. */
void sdb_events_drain_all(struct sdb_scanner *sc);
/* Repeats what is open in a chunk that has it not yet. Runs on: scanner. */
void sdb_events_repeat(struct sdb_scanner *sc);
/* End of a tick: ends that came before their begins, spans of collected fibers. Runs on: scanner. */
void sdb_events_tick(struct sdb_scanner *sc);
/* The slot's thread is gone and its queue empty. Runs on: scanner. */
void sdb_events_retire(struct sdb_scanner *sc, struct sdb_slot *slot);

/* Queues an event for the scanner; false when it did not fit or memory is out. keep: as sdb_event_queue_push_keeping.
 * Runs on: the slot's thread, GVL. Allocates the queue the first time. */
bool sdb_events_push(struct sdb_thread_table *threads, struct sdb_slot *slot,
                     enum sdb_event_type type, uint64_t at_ns, const void *payload, size_t bytes,
                     size_t keep);
/* Tells the scanner that a span ended unseen: its fiber was collected. Runs on: any Ruby thread, GC included. */
void sdb_events_abandon(uint64_t id, uint64_t at_ns);
/* Forgets what was told; when a recording begins. Runs on: GVL, or the atfork child handler. */
void sdb_events_forget_abandoned(void);

#endif
