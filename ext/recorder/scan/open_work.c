/* SPDX-License-Identifier: MIT
 *
 * open_work.c - see open_work.h. Everything here tolerates lost events: an end without begin, a switch to a span nobody
 * knows. What a record holds: event_records.c.
 */
#include "scan/open_work.h"

#include <stdlib.h>
#include <string.h>
#include "core/event_queue.h"
#include "core/open_spans.h"
#include "core/own_heap.h"
#include "sdb_atomic.h"
#include "scan/event_feed.h"
#include "scan/event_records.h"
#include "scan/thread_records.h"

enum {
    LATE_MAX = 64, /* ends kept because their begin lies in a queue not drained yet */
    LATE_TICKS = 3,
    REPEAT_MAX_BYTES = 256 * 1024, /* a quarter of a chunk; spans beyond are not repeated */
};

struct late_end {
    uint64_t tick, at_ns;
    uint32_t bytes;
    uint8_t *payload;
};

struct work {        /* what a thread works for, as last written. By slot. */
    uint64_t serial; /* 0: nothing known */
    uint64_t span;
    uint64_t dropped; /* of its queue, as last counted */
    uint8_t *tags;    /* payload of the last TAGS event */
    uint32_t tags_bytes, tags_room;
};

struct sdb_open_work {
    struct sdb_open_spans *open;
    struct work *work;
    uint32_t work_room;
    uint64_t chunk; /* whose start has been written */
    struct late_end late[LATE_MAX];
    uint32_t late_count;
};

struct sdb_open_work *
sdb_open_work_new(void)
{
    struct sdb_open_work *e = sdb_own_calloc(1, sizeof *e);
    if (!e) return NULL;
    e->chunk = UINT64_MAX;
    e->open = sdb_open_spans_new();
    if (e->open) return e;
    sdb_own_free(e);
    return NULL;
}

void
sdb_open_work_free(struct sdb_open_work *e)
{
    if (!e) return;
    for (uint32_t i = 0; i < e->late_count; i++) sdb_own_free(e->late[i].payload);
    for (uint32_t i = 0; i < e->work_room; i++) sdb_own_free(e->work[i].tags);
    sdb_own_free(e->work);
    sdb_open_spans_free(e->open);
    sdb_own_free(e);
}

size_t
sdb_open_work_memory_bytes(const struct sdb_open_work *e)
{
    return sizeof *e + sdb_open_spans_memory_bytes(e->open) + e->work_room * sizeof *e->work;
}

/* NULL when out of memory. */
static struct work *
work_of(struct sdb_open_work *e, const struct sdb_slot *slot)
{
    uint64_t index = slot->index, serial = sdb_load_relaxed(&slot->serial);
    if (index >= e->work_room) {
        uint32_t room = (uint32_t)(index / SDB_SEGMENT_SLOTS + 1) * SDB_SEGMENT_SLOTS;
        struct work *more = sdb_own_realloc(e->work, room * sizeof *more);
        if (!more) return NULL;
        memset(more + e->work_room, 0, (room - e->work_room) * sizeof *more);
        e->work = more;
        e->work_room = room;
    }
    struct work *w = &e->work[index];
    if (w->serial == serial) return w;
    *w = (struct work){.serial = serial, .tags = w->tags, .tags_room = w->tags_room};
    return w;
}

/* ---- the start of a chunk ---- */

void
sdb_work_repeat(struct sdb_scanner *sc)
{
    struct sdb_open_work *e = sc->work;
    uint64_t chunk = sdb_ring_writer_chunk(sc->writer);
    if (e->chunk == chunk) return;
    e->chunk = chunk;
    size_t written = 0;
    for (size_t i = 0; i < sdb_open_spans_count(e->open) && written < REPEAT_MAX_BYTES; i++) {
        const struct sdb_open_span *s = sdb_open_spans_at(e->open, i);
        sdb_thread_written(sc, sdb_thread_slot(sc->threads, s->slot), s->serial);
        sdb_event_write_begin(sc, s->serial, s->at_ns, s->payload, s->bytes);
        written += s->bytes + 128;
    }
    for (uint32_t i = 0; i < e->work_room && written < REPEAT_MAX_BYTES; i++) {
        const struct work *w = &e->work[i];
        if (!w->serial || (!w->span && !w->tags_bytes)) continue;
        sdb_thread_written(sc, sdb_thread_slot(sc->threads, i), w->serial);
        uint64_t span =
            sdb_open_spans_find(e->open, w->span) ? w->span : 0; /* maybe another thread ended it */
        sdb_event_write_switch(sc, w->serial, span, sc->tick.now_ns);
        if (w->tags_bytes)
            sdb_event_write_tags(sc, w->serial, sc->tick.now_ns, w->tags, w->tags_bytes);
        written += w->tags_bytes + 128;
    }
}

/* ---- one event ---- */

/* So that what belongs together stands in one chunk, behind the thread it is about. */
static void
make_room(struct sdb_scanner *sc, struct sdb_slot *slot, uint32_t bytes)
{
    sdb_ring_writer_reserve(sc->writer, 2ull * bytes + 4096);
    sdb_work_repeat(sc);
    sdb_thread_written(sc, slot, sdb_load_relaxed(&slot->serial));
}

static void
take_begin(struct sdb_scanner *sc, struct sdb_slot *slot, struct work *w,
           const struct sdb_event *event)
{
    struct sdb_begin_event b;
    memcpy(&b, event->payload, sizeof b);
    struct sdb_open_span span = {
        .id = b.id,
        .serial = sdb_load_relaxed(&slot->serial),
        .at_ns = event->at_ns,
        .slot = (uint32_t)slot->index,
        .bytes = event->bytes,
        .payload = (uint8_t *)(uintptr_t)event->payload,
    };
    if (!sdb_open_spans_add(sc->work->open, &span)) sdb_count(sc, SDB_C_LOST_QUEUE_FULL, 1);
    sdb_event_write_begin(sc, span.serial, event->at_ns, event->payload, event->bytes);
    w->span = b.id;
}

static bool
end_span(struct sdb_scanner *sc, uint64_t at_ns, const uint8_t *payload, uint32_t bytes)
{
    struct sdb_end_event end;
    memcpy(&end, payload, sizeof end);
    if (!sdb_open_spans_remove(sc->work->open, end.id)) return false;
    sdb_event_write_end(sc, at_ns, payload, bytes);
    return true;
}

static void
take_end(struct sdb_scanner *sc, struct work *w, const struct sdb_event *event)
{
    struct sdb_open_work *e = sc->work;
    struct sdb_end_event end;
    memcpy(&end, event->payload, sizeof end);
    if (w->span == end.id) w->span = end.next;
    if (end_span(sc, event->at_ns, event->payload, event->bytes) || e->late_count == LATE_MAX)
        return;
    struct late_end *late = &e->late[e->late_count]; /* ended by another thread than began it */
    late->payload = sdb_own_alloc(event->bytes);
    if (!late->payload) return;
    memcpy(late->payload, event->payload, event->bytes);
    late->bytes = event->bytes;
    late->at_ns = event->at_ns;
    late->tick = sc->tick.number;
    e->late_count++;
}

static void
take_tags(struct sdb_scanner *sc, struct sdb_slot *slot, struct work *w,
          const struct sdb_event *event)
{
    struct sdb_tags_event tags;
    memcpy(&tags, event->payload, sizeof tags);
    sdb_event_write_tags(sc, sdb_load_relaxed(&slot->serial), event->at_ns, event->payload,
                         event->bytes);
    w->tags_bytes = 0;
    if (!tags.tag_count) return;
    if (w->tags_room < event->bytes) {
        uint8_t *bigger = sdb_own_realloc(w->tags, event->bytes);
        if (!bigger) return;
        w->tags = bigger;
        w->tags_room = event->bytes;
    }
    memcpy(w->tags, event->payload, event->bytes);
    w->tags_bytes = event->bytes;
}

static void
take_switch(struct sdb_scanner *sc, struct sdb_slot *slot, struct work *w,
            const struct sdb_event *event)
{
    struct sdb_switch_event to;
    memcpy(&to, event->payload, sizeof to);
    sdb_event_write_switch(sc, sdb_load_relaxed(&slot->serial), to.id, event->at_ns);
    w->span = to.id;
}

struct sdb_changes
sdb_work_drain(struct sdb_scanner *sc, struct sdb_slot *slot)
{
    struct sdb_changes changes = {0};
    struct sdb_event_queue *q = (struct sdb_event_queue *)(uintptr_t)sdb_load_acquire(&slot->queue);
    struct sdb_event event;
    if (!q || !sdb_event_queue_peek(q, &event)) return changes;
    struct work *w = work_of(sc->work, slot);
    if (!w) return changes;
    do {
        make_room(sc, slot, event.bytes);
        switch (event.type) {
        case SDB_E_SPAN_BEGIN:
            take_begin(sc, slot, w, &event);
            break;
        case SDB_E_SPAN_END:
            take_end(sc, w, &event);
            break;
        case SDB_E_SPAN_SWITCH:
            take_switch(sc, slot, w, &event);
            break;
        case SDB_E_TAGS:
            take_tags(sc, slot, w, &event);
            break;
        case SDB_E_MARK:
            sdb_event_write_mark(sc, event.at_ns, event.payload, event.bytes);
            break;
        }
        sdb_count(sc, SDB_C_EVENTS, 1);
        if (event.type != SDB_E_MARK) {
            if (!changes.last_ns) changes.first_ns = event.at_ns;
            changes.last_ns = event.at_ns;
        }
        sdb_event_queue_pop(q);
    } while (sdb_event_queue_peek(q, &event));
    uint64_t dropped = sdb_event_queue_dropped(q);
    sdb_count(sc, SDB_C_LOST_QUEUE_FULL, dropped - w->dropped);
    w->dropped = dropped;
    return changes;
}

void
sdb_work_retire(struct sdb_scanner *sc, struct sdb_slot *slot)
{
    struct sdb_open_work *e = sc->work;
    if (slot->index >= e->work_room) return;
    struct work *w = &e->work[slot->index];
    sdb_own_free(w->tags);
    *w = (struct work){0};
}

/* ---- between ticks ---- */

static void
take_abandoned(struct sdb_scanner *sc)
{
    struct sdb_abandoned_span *a = sdb_events_take_abandoned();
    while (a) {
        struct sdb_abandoned_span *next = a->next;
        struct sdb_end_event end = {.id = a->id};
        sdb_ring_writer_reserve(sc->writer, 4096);
        sdb_work_repeat(sc);
        end_span(sc, a->at_ns, (const uint8_t *)&end, sizeof end);
        free(a);
        a = next;
    }
}

void
sdb_work_tick(struct sdb_scanner *sc)
{
    struct sdb_open_work *e = sc->work;
    take_abandoned(sc);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->late_count; i++) {
        struct late_end *late = &e->late[i];
        sdb_ring_writer_reserve(sc->writer, 2ull * late->bytes + 4096);
        sdb_work_repeat(sc);
        if (!end_span(sc, late->at_ns, late->payload, late->bytes) &&
            sc->tick.number - late->tick < LATE_TICKS) {
            e->late[kept++] = *late;
        } else {
            sdb_own_free(late->payload);
        }
    }
    e->late_count = kept;
}

void
sdb_work_drain_all(struct sdb_scanner *sc)
{
    struct sdb_slot *slot;
    sdb_thread_each (slot, sc->threads) {
        uint64_t life = sdb_load_acquire(&slot->life);
        if (life == SDB_SLOT_LIVE || life == SDB_SLOT_DEAD) sdb_work_drain(sc, slot);
    }
    sdb_work_tick(sc);
}
