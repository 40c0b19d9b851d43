/* SPDX-License-Identifier: MIT
 *
 * open_spans.c - a dense array, and a hash of ids into it (linear probing; removal moves the followers back, so
 * there are no tombstones). A removed span's buffer stays at its place in the array for the next one.
 */
#include "core/open_spans.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"

enum { FIRST_ROOM = 64, KEEP_BUFFER_BYTES = 512 };

struct sdb_open_spans {
    /* owner: scanner */
    struct sdb_open_span *spans; /* [0, count) are open, the rest are buffers to use again */
    uint32_t *index;             /* position + 1, 0 empty; twice as long as spans */
    uint32_t count, room;
    size_t buffer_bytes;
};

static uint32_t
home(const struct sdb_open_spans *t, uint64_t id)
{
    return (uint32_t)(id * 0x9e3779b97f4a7c15ull >> 32) & (2 * t->room - 1);
}

static void
index_put(struct sdb_open_spans *t, uint64_t id, uint32_t position)
{
    uint32_t i = home(t, id);
    while (t->index[i]) i = (i + 1) & (2 * t->room - 1);
    t->index[i] = position + 1;
}

/* Where the id stands in the index; an empty place when it does not. */
static uint32_t
index_find(const struct sdb_open_spans *t, uint64_t id)
{
    uint32_t i = home(t, id);
    while (t->index[i] && t->spans[t->index[i] - 1].id != id) i = (i + 1) & (2 * t->room - 1);
    return i;
}

static void
index_remove(struct sdb_open_spans *t, uint32_t hole)
{
    uint32_t mask = 2 * t->room - 1;
    for (uint32_t i = (hole + 1) & mask; t->index[i]; i = (i + 1) & mask) {
        uint32_t wanted = home(t, t->spans[t->index[i] - 1].id);
        /* may it move back to the hole? only if its home is not behind the hole, going round */
        if (((i - wanted) & mask) < ((i - hole) & mask)) continue;
        t->index[hole] = t->index[i];
        hole = i;
    }
    t->index[hole] = 0;
}

static bool
grow(struct sdb_open_spans *t)
{
    uint32_t room = t->room ? 2 * t->room : FIRST_ROOM;
    if (room > SDB_OPEN_SPANS_MAX) return false;
    uint32_t *index = sdb_own_calloc(2 * (size_t)room, sizeof *index);
    struct sdb_open_span *spans = index ? sdb_own_realloc(t->spans, room * sizeof *spans) : NULL;
    if (!spans) {
        sdb_own_free(index);
        return false;
    }
    memset(spans + t->room, 0, (room - t->room) * sizeof *spans);
    sdb_own_free(t->index);
    t->spans = spans;
    t->index = index;
    t->room = room;
    for (uint32_t i = 0; i < t->count; i++) index_put(t, spans[i].id, i);
    return true;
}

struct sdb_open_spans *
sdb_open_spans_new(void)
{
    struct sdb_open_spans *t = sdb_own_calloc(1, sizeof *t);
    if (t && grow(t)) return t;
    sdb_own_free(t);
    return NULL;
}

void
sdb_open_spans_free(struct sdb_open_spans *t)
{
    if (!t) return;
    for (uint32_t i = 0; i < t->room; i++) sdb_own_free(t->spans[i].payload);
    sdb_own_free(t->spans);
    sdb_own_free(t->index);
    sdb_own_free(t);
}

bool
sdb_open_spans_add(struct sdb_open_spans *t, const struct sdb_open_span *span)
{
    if (t->index[index_find(t, span->id)]) return false;
    if (t->count == t->room && !grow(t)) return false;
    struct sdb_open_span *place = &t->spans[t->count];
    if (place->room < span->bytes) {
        uint32_t room = (span->bytes + 127) & ~127u;
        uint8_t *bigger = sdb_own_realloc(place->payload, room);
        if (!bigger) return false;
        t->buffer_bytes += room - place->room;
        place->payload = bigger;
        place->room = room;
    }
    if (span->bytes) memcpy(place->payload, span->payload, span->bytes);
    place->id = span->id;
    place->serial = span->serial;
    place->at_ns = span->at_ns;
    place->slot = span->slot;
    place->bytes = span->bytes;
    index_put(t, span->id, t->count++);
    return true;
}

bool
sdb_open_spans_remove(struct sdb_open_spans *t, uint64_t id)
{
    uint32_t i = index_find(t, id);
    if (!t->index[i]) return false;
    uint32_t position = t->index[i] - 1, last = t->count - 1;
    index_remove(t, i);
    struct sdb_open_span gone = t->spans[position];
    if (gone.room > KEEP_BUFFER_BYTES) {
        t->buffer_bytes -= gone.room;
        sdb_own_free(gone.payload);
        gone.payload = NULL;
        gone.room = 0;
    }
    if (position != last) {
        t->index[index_find(t, t->spans[last].id)] = position + 1;
        t->spans[position] = t->spans[last];
    }
    t->spans[last] = gone;
    t->count = last;
    return true;
}

const struct sdb_open_span *
sdb_open_spans_find(const struct sdb_open_spans *t, uint64_t id)
{
    uint32_t place = t->index[index_find(t, id)];
    return place ? &t->spans[place - 1] : NULL;
}

size_t
sdb_open_spans_count(const struct sdb_open_spans *t)
{
    return t->count;
}

const struct sdb_open_span *
sdb_open_spans_at(const struct sdb_open_spans *t, size_t i)
{
    return &t->spans[i];
}

size_t
sdb_open_spans_memory_bytes(const struct sdb_open_spans *t)
{
    return sizeof *t + t->room * (sizeof *t->spans + 2 * sizeof *t->index) + t->buffer_bytes;
}
