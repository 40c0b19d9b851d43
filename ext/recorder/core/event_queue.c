/* SPDX-License-Identifier: MIT
 *
 * event_queue.c - a byte ring. Positions only grow; an entry never wraps: where it would, a pad entry fills
 * the rest of the ring and the entry begins at its start.
 *
 * Runs on: see event_queue.h
 */
#include "core/event_queue.h"

#include <string.h>
#include <sys/mman.h>
#include "sdb_atomic.h"

enum { MIN_BYTES = 1024, MAX_BYTES = 1 << 20, LINE = 64 };

#define PAD_TYPE UINT32_MAX

struct entry {
    uint32_t type;
    uint32_t bytes; /* payload; of a pad: nothing is read */
    uint64_t at_ns;
};

struct sdb_event_queue {
    /* immutable after new */
    size_t size;
    uint8_t *ring;

    /* owner: producer. Each side keeps the other's last known position, so that it seldom touches the
     * line that the other writes */
    _Alignas(LINE) uint64_t head; /* shared: atomic; end of what is published */
    uint64_t tail_seen;
    uint64_t dropped; /* shared: atomic */

    /* owner: consumer */
    _Alignas(LINE) uint64_t tail; /* shared: atomic; end of what is taken */
    uint64_t head_seen;
};

static size_t
entry_bytes(size_t payload)
{
    return sizeof(struct entry) + ((payload + 7) & ~(size_t)7);
}

struct sdb_event_queue *
sdb_event_queue_new(size_t ring_bytes)
{
    struct sdb_event_queue *q;

    if (ring_bytes < MIN_BYTES || ring_bytes > MAX_BYTES || (ring_bytes & (ring_bytes - 1)) != 0)
        return NULL;
    /* A mapping of its own: most threads use little of it, and one that ends gives it all back. From malloc it would be
     * in the arena of its native thread, and freed by another. */
    q = mmap(NULL, sizeof *q + ring_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
             0);
    if (q == MAP_FAILED) return NULL;
    q->ring = (uint8_t *)(q + 1);
    q->size = ring_bytes;
    return q;
}

void
sdb_event_queue_free(struct sdb_event_queue *q)
{
    if (q != NULL) munmap(q, sizeof *q + q->size);
}

static bool
has_room(struct sdb_event_queue *q, uint64_t head, size_t need)
{
    if (head + need - q->tail_seen <= q->size) return true;
    /* acquire pairs with the release in pop: what lies before the tail is no longer being read */
    q->tail_seen = sdb_load_acquire(&q->tail);
    return head + need - q->tail_seen <= q->size;
}

bool
sdb_event_queue_push(struct sdb_event_queue *q, uint32_t type, uint64_t at_ns, const void *payload,
                     size_t bytes)
{
    return sdb_event_queue_push_keeping(q, type, at_ns, payload, bytes, 0);
}

bool
sdb_event_queue_push_keeping(struct sdb_event_queue *q, uint32_t type, uint64_t at_ns,
                             const void *payload, size_t bytes, size_t keep)
{
    uint64_t head = q->head; /* only this thread writes it */
    size_t offset = head & (q->size - 1), pad = 0, need;
    struct entry entry = {type, (uint32_t)bytes, at_ns};

    if (type == PAD_TYPE || bytes > q->size / 2 - sizeof entry) goto drop;
    need = entry_bytes(bytes);
    if (need > q->size - offset) pad = q->size - offset;
    if (!has_room(q, head, pad + need + keep)) goto drop;
    if (pad > 0) {
        uint32_t pad_type = PAD_TYPE;

        /* sizes are multiples of 8, so 8 bytes for type and length are always there */
        memcpy(q->ring + offset, &pad_type, sizeof pad_type);
        offset = 0;
    }
    memcpy(q->ring + offset, &entry, sizeof entry);
    if (bytes > 0) memcpy(q->ring + offset + sizeof entry, payload, bytes);
    /* release pairs with the acquire in peek: who sees the head sees the entry */
    sdb_store_release(&q->head, head + pad + need);
    return true;

drop:
    sdb_store_relaxed(&q->dropped, q->dropped + 1); /* one writer */
    return false;
}

bool
sdb_event_queue_peek(struct sdb_event_queue *q, struct sdb_event *event)
{
    uint64_t tail = q->tail; /* only this thread writes it */
    size_t offset;
    struct entry entry;
    uint32_t type;

    if (tail == q->head_seen) {
        q->head_seen = sdb_load_acquire(&q->head); /* pairs with the release in push */
        if (tail == q->head_seen) return false;
    }
    offset = tail & (q->size - 1);
    memcpy(&type, q->ring + offset, sizeof type);
    if (type == PAD_TYPE) { /* published together with the entry behind it */
        tail += q->size - offset;
        sdb_store_release(&q->tail, tail);
        offset = 0;
    }
    memcpy(&entry, q->ring + offset, sizeof entry);
    event->type = entry.type;
    event->bytes = entry.bytes;
    event->at_ns = entry.at_ns;
    event->payload = q->ring + offset + sizeof entry;
    return true;
}

void
sdb_event_queue_pop(struct sdb_event_queue *q)
{
    struct entry entry;

    memcpy(&entry, q->ring + (q->tail & (q->size - 1)), sizeof entry);
    /* release pairs with the acquire in has_room: our reads are over */
    sdb_store_release(&q->tail, q->tail + entry_bytes(entry.bytes));
}

uint64_t
sdb_event_queue_dropped(const struct sdb_event_queue *q)
{
    return sdb_load_relaxed(&q->dropped);
}
