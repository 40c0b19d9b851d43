/* SPDX-License-Identifier: MIT
 *
 * event_queue.h - from one app thread to the scanner: a bounded queue of events of any size (span begin and
 * end, tags, marks). One producer, one consumer, no lock, no wait: when it is full the event is dropped
 * and counted. Knows nothing of what the payload means.
 *
 * Runs on: _push: the thread that owns the queue (GVL); _peek, _pop, _dropped: scanner thread, no GVL
 */
#ifndef SDB_EVENT_QUEUE_H
#define SDB_EVENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SDB_EVENT_QUEUE_BYTES = 16384 };

struct sdb_event_queue;

struct sdb_event {
    uint32_t type;
    uint32_t bytes;
    uint64_t at_ns;         /* monotonic */
    const uint8_t *payload; /* borrowed until _pop; in one piece, aligned to 8 */
};

/* ring_bytes: a power of two from 1024 to 1 MiB. NULL when out of memory or not that. */
struct sdb_event_queue *sdb_event_queue_new(size_t ring_bytes);
void sdb_event_queue_free(struct sdb_event_queue *q); /* accepts NULL; nobody uses it any more */

/* false: dropped, because full or bytes > ring_bytes / 2 - 16. Takes about 20 ns, allocates nothing. */
bool sdb_event_queue_push(struct sdb_event_queue *q, uint32_t type, uint64_t at_ns,
                          const void *payload, size_t bytes);
/* The same, but also false when less than `keep` bytes would be left free: so a begin that comes now cannot take the
 * room that the ends of what is open will need. keep < ring_bytes. */
bool sdb_event_queue_push_keeping(struct sdb_event_queue *q, uint32_t type, uint64_t at_ns,
                                  const void *payload, size_t bytes, size_t keep);
/* The oldest event; false when empty. */
bool sdb_event_queue_peek(struct sdb_event_queue *q, struct sdb_event *event);
/* Takes away the event that peek gave. */
void sdb_event_queue_pop(struct sdb_event_queue *q);
/* Events dropped so far; only grows. */
uint64_t sdb_event_queue_dropped(const struct sdb_event_queue *q);

#endif
