/* SPDX-License-Identifier: MIT
 *
 * ring_records.c - encodes the records of a chunk.
 *
 * Runs on: scanner thread, no GVL
 */
#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"
#include "core/ring_writer_impl.h"
#include "live_table.h"
#include "varint.h"

enum {
    SIZED_LIMIT_BYTES = SDB_BLOCK_MAX_BYTES - 16,
    STRING_MAX_BYTES = 1024,
    NAME_MAX_BYTES = 256
};

static uint64_t
rel_ns(const struct sdb_ring_writer *w, uint64_t monotonic_ns)
{
    return monotonic_ns > w->start_ns ? monotonic_ns - w->start_ns : 0;
}

/* ---- nodes ---- */

uint32_t
sdb_ring_writer_find_node(struct sdb_ring_writer *w, uint32_t parent, uint32_t code, uint64_t where)
{
    return sdb_stack_tree_find(&w->tree, parent, code, where);
}

uint32_t
sdb_ring_writer_node(struct sdb_ring_writer *w, uint32_t parent, uint32_t code, uint64_t where,
                     bool *is_new)
{
    uint32_t id = sdb_stack_tree_find(&w->tree, parent, code, where);
    bool added = false;
    uint8_t *p;

    if (is_new != NULL) *is_new = false;
    if (id != 0) return id;
    /* room first: a node that is in the tree but not in the chunk would be worse than none */
    p = sdb_ring_writer_room(w, 1 + 3 * SDB_VARINT_MAX);
    if (p == NULL) return 0;
    id = sdb_stack_tree_add(&w->tree, parent, code, where, &added);
    if (id == 0) {
        w->chunk.dead = true; /* out of memory: what follows would build on a missing node */
        w->records_dropped++;
        return 0;
    }
    *p++ = SDB_R_NODE;
    p = sdb_varint_put(p, id - parent);
    p = sdb_varint_put(p, code);
    sdb_chunk_commit(&w->chunk, sdb_varint_put(p, where));
    if (is_new != NULL) *is_new = true;
    return id;
}

/* ---- threads and samples ---- */

static struct sdb_slot_last *
slot_last(struct sdb_ring_writer *w, uint32_t slot)
{
    if (slot >= SDB_SLOT_COUNT) return NULL;
    if (slot >= w->slot_room) {
        uint32_t room = w->slot_room == 0 ? SDB_SEGMENT_SLOTS : w->slot_room;
        struct sdb_slot_last *more;

        while (room <= slot) room *= 2;
        more = sdb_own_realloc(w->slots, room * sizeof *more);
        if (more == NULL) return NULL;
        memset(more + w->slot_room, 0, (room - w->slot_room) * sizeof *more);
        w->slots = more;
        w->slot_room = room;
    }
    return &w->slots[slot];
}

void
sdb_ring_writer_thread(struct sdb_ring_writer *w, const struct sdb_thread_record *t)
{
    struct sdb_slot_last *last = slot_last(w, t->slot);
    uint64_t birth = rel_ns(w, t->birth_ns);
    uint8_t payload[5 * SDB_VARINT_MAX + NAME_MAX_BYTES], *p = payload;

    if (last == NULL) {
        w->records_dropped++;
        return;
    }
    if (last->serial != t->serial) { /* a new thread in this slot */
        *last = (struct sdb_slot_last){.serial = t->serial, .at_us = birth / 1000};
        if (last->at_us > w->tick_us) last->at_us = w->tick_us;
    }
    p = sdb_varint_put(p, t->slot);
    p = sdb_varint_put(p, t->serial);
    p = sdb_varint_put(p, t->tid);
    p = sdb_varint_put(p, birth);
    if (t->name == NULL) {
        p = sdb_varint_put(p, t->flags & ~(uint32_t)SDB_THREAD_HAS_NAME);
    } else {
        size_t n = sdb_utf8_cut(t->name, t->name_bytes, NAME_MAX_BYTES);

        p = sdb_varint_put(p, t->flags | SDB_THREAD_HAS_NAME);
        memcpy(p, t->name, n);
        p += n;
    }
    sdb_ring_writer_sized(w, SDB_R_THREAD, payload, (size_t)(p - payload));
}

/* Whole us since the last one, and *last_us moved on. A total that steps back counts as standing still. */
static uint64_t
step_us(uint64_t *last_us, uint64_t total_ns)
{
    uint64_t us = total_ns / 1000, step;

    if (us < *last_us) return 0;
    step = us - *last_us;
    *last_us = us;
    return step;
}

void
sdb_ring_writer_thread_end(struct sdb_ring_writer *w, uint32_t slot, uint64_t serial,
                           uint64_t end_ns, const struct sdb_sample *totals)
{
    struct sdb_slot_last *last = slot_last(w, slot);
    uint8_t payload[7 * SDB_VARINT_MAX], *p = payload;

    p = sdb_varint_put(p, slot);
    p = sdb_varint_put(p, serial);
    p = sdb_varint_put(p, rel_ns(w, end_ns));
    if (totals != NULL && last != NULL && last->serial == serial) {
        p = sdb_varint_put(p, step_us(&last->cpu_us, totals->cpu_ns));
        p = sdb_varint_put(p, step_us(&last->wait_us, totals->wait_ns));
        p = sdb_varint_put(p, step_us(&last->blocked_us, totals->blocked_ns));
        p = sdb_varint_put(p, step_us(&last->gc_us, totals->gc_ns));
    }
    sdb_ring_writer_sized(w, SDB_R_THREAD_END, payload, (size_t)(p - payload));
}

void
sdb_ring_writer_sample(struct sdb_ring_writer *w, const struct sdb_sample *s)
{
    struct sdb_slot_last *last = slot_last(w, s->slot);
    uint8_t *start = last == NULL ? NULL : sdb_ring_writer_room(w, 3 + 8 * SDB_VARINT_MAX), *p;
    uint64_t elapsed, cpu, wait, blocked, gc;
    uint32_t more = s->more & (SDB_MORE_TORN_TOP | SDB_MORE_TRUNCATED | SDB_MORE_NO_STACK);
    uint8_t first = (uint8_t)(SDB_SAMPLE_BIT | (s->state & 3) << SDB_SAMPLE_STATE_SHIFT);
    int64_t busy;

    if (start == NULL) {
        if (last == NULL) w->records_dropped++;
        return;
    }
    if (last->serial == 0 && last->chunk_mark == 0) last->at_us = w->tick_us;
    if (last->chunk_mark != w->chunk.seq + 1) {
        last->chunk_mark = w->chunk.seq + 1;
        last->node = 0;
        more |= SDB_MORE_ELAPSED;
    }
    elapsed = w->tick_us - last->at_us;
    last->at_us = w->tick_us;
    cpu = step_us(&last->cpu_us, s->cpu_ns);
    wait = step_us(&last->wait_us, s->wait_ns);
    blocked = step_us(&last->blocked_us, s->blocked_ns);
    gc = step_us(&last->gc_us, s->gc_ns);
    busy = (int64_t)(elapsed - wait - blocked);
    if (gc > 0) more |= SDB_MORE_GC;
    if (s->has_age) more |= SDB_MORE_AGE;

    if (more != 0) first |= SDB_SAMPLE_HAS_MORE;
    if (s->node != last->node) first |= SDB_SAMPLE_HAS_NODE;
    if ((int64_t)cpu != busy) first |= SDB_SAMPLE_HAS_CPU;
    if (wait > 0) first |= SDB_SAMPLE_HAS_WAIT;
    if (blocked > 0) first |= SDB_SAMPLE_HAS_BLOCKED;
    p = start;
    *p++ = first;
    p = sdb_varint_put(p, s->slot);
    if (more != 0) p = sdb_varint_put(p, more);
    if (first & SDB_SAMPLE_HAS_NODE) p = sdb_zigzag_put(p, (int64_t)s->node - (int64_t)last->node);
    if (first & SDB_SAMPLE_HAS_CPU) p = sdb_zigzag_put(p, (int64_t)cpu - busy);
    if (wait > 0) p = sdb_varint_put(p, wait);
    if (blocked > 0) p = sdb_varint_put(p, blocked);
    if (gc > 0) p = sdb_varint_put(p, gc);
    if (s->has_age) p = sdb_varint_put(p, s->age_ns / 1000);
    if (more & SDB_MORE_ELAPSED) p = sdb_varint_put(p, elapsed);
    last->node = s->node;
    sdb_chunk_commit(&w->chunk, p);
    w->sample_records++;
}

/* ---- the rest ---- */

void
sdb_ring_writer_park(struct sdb_ring_writer *w)
{
    uint8_t *p = sdb_ring_writer_room(w, 1);

    if (p == NULL) return;
    *p++ = SDB_R_PARK;
    sdb_chunk_commit(&w->chunk, p);
}

void
sdb_ring_writer_gap(struct sdb_ring_writer *w, uint64_t gap_ns, enum sdb_gap reason)
{
    uint8_t *p = sdb_ring_writer_room(w, 1 + 2 * SDB_VARINT_MAX);

    if (p == NULL) return;
    *p++ = SDB_R_GAP;
    p = sdb_varint_put(p, gap_ns / 1000);
    sdb_chunk_commit(&w->chunk, sdb_varint_put(p, reason));
}

void
sdb_ring_writer_interval(struct sdb_ring_writer *w, uint64_t interval_ns)
{
    uint64_t us = interval_ns < 1000 ? 1 : interval_ns / 1000;
    uint8_t *p;

    w->interval_us =
        us; /* also when dropped: the next chunk begins with it, and this one is over */
    if (!w->begun) return;
    p = sdb_ring_writer_room(w, 1 + SDB_VARINT_MAX);
    if (p == NULL) return;
    *p++ = SDB_R_INTERVAL;
    sdb_chunk_commit(&w->chunk, sdb_varint_put(p, us));
}

void
sdb_ring_writer_clock(struct sdb_ring_writer *w, uint64_t monotonic_ns, uint64_t realtime_ns)
{
    uint8_t payload[2 * SDB_VARINT_MAX], *p = payload;

    p = sdb_varint_put(p, rel_ns(w, monotonic_ns));
    p = sdb_varint_put(p, realtime_ns);
    sdb_ring_writer_sized(w, SDB_R_CLOCK, payload, (size_t)(p - payload));
}

void
sdb_ring_writer_sized(struct sdb_ring_writer *w, enum sdb_record type, const void *payload,
                      size_t bytes)
{
    uint8_t *p;

    if (bytes >= SIZED_LIMIT_BYTES) {
        w->records_dropped++;
        return;
    }
    p = sdb_ring_writer_room(w, 1 + SDB_VARINT_MAX + bytes);
    if (p == NULL) return;
    *p++ = (uint8_t)type;
    p = sdb_varint_put(p, bytes);
    if (bytes > 0) memcpy(p, payload, bytes);
    sdb_chunk_commit(&w->chunk, p + bytes);
}

uint32_t
sdb_ring_writer_string(struct sdb_ring_writer *w, const char *s, size_t bytes)
{
    size_t n;
    uint32_t id;
    uint8_t *p;

    if (s == NULL) return 0;
    n = sdb_utf8_cut(s, bytes, STRING_MAX_BYTES);
    id = sdb_string_table_find(&w->strings, s, n);
    if (id != 0) return id;
    p = sdb_ring_writer_room(w, 1 + 2 * SDB_VARINT_MAX + n);
    if (p == NULL) return 0;
    id = sdb_string_table_add(&w->strings, s, n);
    if (id == 0) return 0;
    *p++ = SDB_R_STRING;
    p = sdb_varint_put(p, sdb_varint_size(id) + n);
    p = sdb_varint_put(p, id);
    if (n > 0) memcpy(p, s, n);
    sdb_chunk_commit(&w->chunk, p + n);
    return id;
}
