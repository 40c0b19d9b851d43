/* SPDX-License-Identifier: MIT
 *
 * events.c - the records with a length: threads, clocks, GC, memory, counters, spans, tags, marks. A record
 * whose fields do not fit its payload is ignored and counted.
 *
 * Runs on: offline
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "profile/decoder.h"
#include "profile/span_load.h"

enum {
    IGNORED = 1, /* beside 0 and the negative errors */
    PARENTS_MAX = 256,
    TAGS_MAX = 64, /* of one span or set; more are left out */
};

static bool
rel_time(const struct sdb_decoder *d, uint64_t rel, uint64_t *at)
{
    if (rel > SDB_REL_MAX) return false;
    *at = d->base + rel;
    return true;
}

static uint32_t
string_of(const struct sdb_decoder *d, uint64_t id)
{
    return id >= 1 && id <= d->string_count ? d->strings[id - 1]
                                            : 0; /* the profile's string 0 is "" */
}

static uint32_t
thread_of(const struct sdb_decoder *d, uint64_t serial)
{
    return serial ? sdb_map_get(&d->profile->thread_map, serial, d->ring) : SDB_NONE;
}

static int
tags_take(struct sdb_decoder *d, struct sdb_cursor *c, uint32_t *off, uint32_t *n)
{
    struct sdb_profile *p = d->profile;
    uint64_t count = sdb_take_varint(c);
    if (c->bad || count > sdb_cursor_left(c) / 2) return IGNORED;
    *off = (uint32_t)p->pairs_count;
    *n = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t key = string_of(d, sdb_take_varint(c)), value = string_of(d, sdb_take_varint(c));
        if (c->bad) {
            p->pairs_count = *off;
            return IGNORED;
        }
        if (key == 0 || *n >= TAGS_MAX) continue;
        if (p->pairs_count >= UINT32_MAX) return SDB_ERR_FULL;
        int err = sdb_table_room(p, pairs);
        if (err) return err;
        p->pairs[p->pairs_count++] = (struct sdb_pair){key, value};
        (*n)++;
    }
    return SDB_OK;
}

static int
thread_add(struct sdb_decoder *d, uint64_t serial, uint32_t *number)
{
    struct sdb_profile *p = d->profile;
    *number = thread_of(d, serial);
    if (*number != SDB_NONE) return SDB_OK;
    if (p->threads_count >= SDB_NONE - 1) return SDB_ERR_FULL;
    int err = sdb_table_room(p, threads);
    if (!err) err = sdb_map_set(&p->thread_map, serial, d->ring, (uint32_t)p->threads_count);
    if (err) return err;
    *number = (uint32_t)p->threads_count++;
    p->threads[*number] = (struct sdb_thread){.ring = d->ring,
                                              .serial = serial,
                                              .name = SDB_NONE,
                                              .birth = SDB_NO_TIME,
                                              .death = SDB_NO_TIME};
    return SDB_OK;
}

static int
tracks_reach(struct sdb_decoder *d, uint64_t slot)
{
    int err = sdb_grow(&d->tracks, &d->track_capacity, slot + 1, sizeof(*d->tracks));
    if (err) return err;
    while (d->track_count <= slot)
        d->tracks[d->track_count++] = (struct sdb_track){.thread = SDB_NONE};
    return SDB_OK;
}

static int
thread_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    uint64_t slot = sdb_take_varint(c), serial = sdb_take_varint(c), tid = sdb_take_varint(c);
    uint64_t birth = sdb_take_varint(c), flags = sdb_take_varint(c);
    struct sdb_bytes name = sdb_take_rest(c);
    if (c->bad || slot >= SDB_SLOT_MAX || serial == 0 || tid > UINT32_MAX) return IGNORED;

    uint32_t number;
    int err = thread_add(d, serial, &number);
    if (!err) err = tracks_reach(d, slot);
    if (err) return err;
    struct sdb_thread *t = &d->profile->threads[number];
    t->tid = (uint32_t)tid;
    t->flags = (uint32_t)flags;
    t->death = SDB_NO_TIME;
    if (t->birth == SDB_NO_TIME && !rel_time(d, birth, &t->birth)) t->birth = SDB_NO_TIME;
    if (flags & SDB_THREAD_HAS_NAME) {
        err = sdb_profile_string(d->profile, name.at, name.n, &t->name);
        if (err) return err;
    }
    t->slot = (uint32_t)slot;
    struct sdb_track *track = &d->tracks[slot];
    if (track->thread != number || track->serial != serial) {
        if (track->thread != SDB_NONE) err = sdb_decoder_hold(d, track, d->before);
        *track = (struct sdb_track){
            .thread = number, .serial = serial, .fresh = true, .ticks = d->ticks};
        sdb_labels_reset(&track->labels);
    }
    track->chunk = d->chunk;
    return err;
}

static int
thread_end_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    uint64_t slot = sdb_take_varint(c), serial = sdb_take_varint(c), rel = sdb_take_varint(c), at;
    if (c->bad || !rel_time(d, rel, &at)) return IGNORED;
    uint32_t number = thread_of(d, serial);
    if (number == SDB_NONE) return IGNORED;
    struct sdb_last_times times = {0};
    bool told = sdb_cursor_left(c) > 0;
    if (told) {
        times.cpu_us = sdb_take_varint(c);
        times.wait_us = sdb_take_varint(c);
        times.blocked_us = sdb_take_varint(c);
        times.gc_us = sdb_take_varint(c);
        if (c->bad) return IGNORED;
    }
    int err = SDB_OK;
    if (slot < d->track_count && d->tracks[slot].thread == number) {
        err = sdb_decoder_end(d, &d->tracks[slot], at < d->now ? at : d->now, told ? &times : NULL);
        d->tracks[slot] = (struct sdb_track){.thread = SDB_NONE};
    }
    d->profile->threads[number].death = at;
    return err;
}

static int
clock_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_ring_row *ring = &d->profile->rings[d->ring];
    uint64_t rel = sdb_take_varint(c), realtime = sdb_take_varint(c), at;
    if (c->bad || !rel_time(d, rel, &at)) return IGNORED;
    if (ring->clock_count && at < ring->clocks[ring->clock_count - 1].at) return IGNORED;
    int err = sdb_grow(&ring->clocks, &ring->clock_capacity, ring->clock_count + 1,
                       sizeof(*ring->clocks));
    if (err) return err;
    ring->clocks[ring->clock_count++] = (struct sdb_clock){at, realtime};
    d->last_clock = at;
    return SDB_OK;
}

static int
gc_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_profile *p = d->profile;
    struct sdb_gc_row gc = {.ring = d->ring, .thread = thread_of(d, sdb_take_varint(c))};
    gc.flags = (uint32_t)sdb_take_varint(c);
    uint64_t rel = sdb_take_varint(c);
    gc.ns = sdb_take_varint(c);
    gc.count = sdb_take_varint(c);
    gc.heap_live = sdb_take_varint(c);
    gc.malloc_increase = sdb_take_varint(c);
    if (c->bad || gc.ns > SDB_REL_MAX || !rel_time(d, rel, &gc.at)) return IGNORED;
    int err = sdb_table_room(p, gcs);
    if (!err) p->gcs[p->gcs_count++] = gc;
    return err;
}

static int
memory_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_profile *p = d->profile;
    struct sdb_memory_row memory = {.ring = d->ring};
    uint64_t rel = sdb_take_varint(c);
    memory.rss = sdb_take_varint(c);
    memory.cgroup = sdb_take_varint(c);
    memory.limit = sdb_take_varint(c);
    if (c->bad || !rel_time(d, rel, &memory.at)) return IGNORED;
    int err = sdb_table_room(p, memory);
    if (!err) p->memory[p->memory_count++] = memory;
    return err;
}

/* Written each second; more than ten a second are not kept. */
static int
counters_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_profile *p = d->profile;
    uint64_t n = sdb_take_varint(c);
    if (c->bad || n == 0 || n > sdb_cursor_left(c)) return IGNORED;
    if (d->last_counters && d->now - d->last_counters < 100000000) return SDB_OK;
    struct sdb_counter_row counters = {.at = d->now, .ring = d->ring};
    for (uint64_t i = 0; i < n && i < SDB_COUNTER_COUNT; i++)
        counters.values[i] = sdb_take_varint(c);
    if (c->bad) return IGNORED;
    int err = sdb_table_room(p, counters);
    if (!err) p->counters[p->counters_count++] = counters;
    d->last_counters = d->now;
    return err;
}

static int
string_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    uint64_t id = sdb_take_varint(c);
    struct sdb_bytes text = sdb_take_rest(c);
    if (c->bad || id != d->string_count + 1) return IGNORED;
    uint32_t string;
    int err = sdb_profile_string(d->profile, text.at, text.n, &string);
    if (!err) err = sdb_grow(&d->strings, &d->string_capacity, id, sizeof(*d->strings));
    if (!err) d->strings[d->string_count++] = string;
    return err;
}

/* NULL when the thread has no slot now. */
static struct sdb_labels *
labels_of(struct sdb_decoder *d, uint32_t thread)
{
    if (thread == SDB_NONE) return NULL;
    uint32_t slot = d->profile->threads[thread].slot;
    return slot < d->track_count && d->tracks[slot].thread == thread ? &d->tracks[slot].labels
                                                                     : NULL;
}

static void
root_note(struct sdb_decoder *d, uint32_t thread, uint64_t at, uint32_t root)
{
    struct sdb_labels *labels = labels_of(d, thread);
    if (!labels) return;
    struct sdb_label label = sdb_labels_newest(labels);
    label.root = root;
    sdb_labels_change(labels, at, label);
}

/* The outermost span of one whose parents are known by their ids. */
static uint32_t
root_of(const struct sdb_decoder *d, uint32_t span)
{
    for (int i = 0; i < PARENTS_MAX && span != SDB_NONE && d->profile->spans[span].parent_id; i++) {
        uint32_t parent = sdb_span_find(d->profile, d->ring, d->profile->spans[span].parent_id);
        if (parent == SDB_NONE || parent == span) return span;
        span = parent;
    }
    return span;
}

/* Of a span inside another: what is seen at either end is of the same root. */
static void
change_note(struct sdb_decoder *d, uint32_t thread, uint64_t at)
{
    if (thread == SDB_NONE || at <= d->before) return;
    struct sdb_thread *t = &d->profile->threads[thread];
    sdb_decoder_changes(d, t);
    bool early = at > d->now; /* the scanner took it a little behind its tick */
    struct sdb_reader_changes *c = early ? &t->early_changes : &t->changes;
    bool first = early ? c->first == 0 : c->last <= d->before;
    if (first || at < c->first) c->first = at;
    if (first || at > c->last) c->last = at;
}

static int
span_begin_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_profile *p = d->profile;
    struct sdb_span span = {
        .ring = d->ring, .parent = SDB_NONE, .flags = SDB_SPAN_OPEN, .end = SDB_NO_TIME};
    span.thread = thread_of(d, sdb_take_varint(c));
    span.id = sdb_take_varint(c);
    span.parent_id = sdb_take_varint(c);
    uint64_t rel = sdb_take_varint(c);
    span.kind = string_of(d, sdb_take_varint(c));
    span.name = string_of(d, sdb_take_varint(c));
    struct sdb_bytes request_id = sdb_take_string(c), trace_id = sdb_take_string(c);
    if (c->bad || span.id == 0 || !rel_time(d, rel, &span.begin)) return IGNORED;
    if (sdb_span_find(p, d->ring, span.id) != SDB_NONE)
        return SDB_OK; /* told again at a chunk's start */

    int err = tags_take(d, c, &span.tags_off, &span.tags_n);
    if (!err) err = sdb_profile_string(p, request_id.at, request_id.n, &span.request_id);
    if (!err) err = sdb_profile_string(p, trace_id.at, trace_id.n, &span.trace_id);
    if (!err) err = sdb_profile_span_begin(p, &span);
    if (!err && span.parent_id == 0)
        root_note(d, span.thread, span.begin, (uint32_t)p->spans_count - 1);
    else if (!err) change_note(d, span.thread, span.begin);
    return err;
}

static int
span_end_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_span end = {.ring = d->ring};
    end.id = sdb_take_varint(c);
    uint64_t rel = sdb_take_varint(c);
    end.name = string_of(d, sdb_take_varint(c));
    end.status = sdb_take_varint(c);
    end.cpu_ns = sdb_take_varint(c);
    end.wait_ns = sdb_take_varint(c);
    end.blocked_ns = sdb_take_varint(c);
    end.gc_ns = sdb_take_varint(c);
    end.allocations = sdb_take_varint(c);
    if (c->bad || !rel_time(d, rel, &end.end)) return IGNORED;
    uint32_t number = sdb_span_find(d->profile, d->ring, end.id);
    if (number == SDB_NONE) return IGNORED;
    const struct sdb_span *begun = &d->profile->spans[number];
    struct sdb_labels *labels = begun->parent_id ? NULL : labels_of(d, begun->thread);
    if (!labels) change_note(d, begun->thread, end.end);
    else if (sdb_labels_newest(labels).root == number)
        root_note(d, begun->thread, end.end, SDB_NONE);
    int err = tags_take(d, c, &end.tags_off, &end.tags_n);
    if (!err && sdb_cursor_left(c)) {
        struct sdb_bytes trace_id = sdb_take_string(c);
        if (!c->bad) err = sdb_profile_string(d->profile, trace_id.at, trace_id.n, &end.trace_id);
    }
    return err ? err : sdb_profile_span_end(d->profile, number, &end);
}

static int
span_switch_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    uint32_t thread = thread_of(d, sdb_take_varint(c));
    uint64_t id = sdb_take_varint(c), rel = sdb_take_varint(c), at;
    if (c->bad || thread == SDB_NONE || !rel_time(d, rel, &at)) return IGNORED;
    uint32_t span = id ? sdb_span_find(d->profile, d->ring, id) : SDB_NONE;
    root_note(d, thread, at, root_of(d, span));
    return sdb_span_switch(d->profile, thread, span, at);
}

static int
thread_tags_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_profile *p = d->profile;
    struct sdb_tag_set set = {.thread = thread_of(d, sdb_take_varint(c))};
    uint64_t rel = sdb_take_varint(c);
    if (c->bad || set.thread == SDB_NONE || !rel_time(d, rel, &set.at)) return IGNORED;
    int err = tags_take(d, c, &set.tags_off, &set.tags_n);
    struct sdb_labels *labels = err ? NULL : labels_of(d, set.thread);
    if (labels) {
        struct sdb_label label = sdb_labels_newest(labels);
        label.tags_off = set.tags_off;
        label.tags_n = set.tags_n;
        sdb_labels_change(labels, set.at, label);
    }
    if (!err) err = sdb_table_room(p, tag_sets);
    if (!err) p->tag_sets[p->tag_sets_count++] = set;
    return err;
}

static int
mark_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_profile *p = d->profile;
    struct sdb_mark_row mark = {.ring = d->ring};
    uint64_t rel = sdb_take_varint(c);
    struct sdb_bytes text = sdb_take_rest(c);
    if (c->bad || !rel_time(d, rel, &mark.at)) return IGNORED;
    int err = sdb_profile_string(p, text.at, text.n, &mark.text);
    if (!err) err = sdb_table_room(p, marks);
    if (!err) p->marks[p->marks_count++] = mark;
    return err;
}

static int
pre_oom_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    struct sdb_profile *p = d->profile;
    struct sdb_mark_row mark = {.ring = d->ring};
    uint64_t rel = sdb_take_varint(c), level = sdb_take_varint(c), n = sdb_take_varint(c);
    if (c->bad || level > 1000 || n > sdb_cursor_left(c) / 2 || !rel_time(d, rel, &mark.at))
        return IGNORED;
    mark.level = level ? (uint32_t)level : 1;
    mark.values_off = (uint32_t)p->numbers_count;
    for (uint64_t i = 0; i < n; i++) {
        struct sdb_number number = {string_of(d, sdb_take_varint(c)), sdb_take_varint(c)};
        if (c->bad || p->numbers_count >= UINT32_MAX) {
            p->numbers_count = mark.values_off;
            return IGNORED;
        }
        int err = sdb_table_room(p, numbers);
        if (err) return err;
        p->numbers[p->numbers_count++] = number;
    }
    mark.values_n = (uint32_t)n;
    int err = sdb_table_room(p, marks);
    if (!err) p->marks[p->marks_count++] = mark;
    return err;
}

int
sdb_decoder_event(struct sdb_decoder *d, uint8_t type, struct sdb_cursor c)
{
    int err = SDB_OK;
    switch (type) {
    case SDB_R_THREAD:
        err = thread_take(d, &c);
        break;
    case SDB_R_THREAD_END:
        err = thread_end_take(d, &c);
        break;
    case SDB_R_CLOCK:
        err = clock_take(d, &c);
        break;
    case SDB_R_GC:
        err = gc_take(d, &c);
        break;
    case SDB_R_MEMORY:
        err = memory_take(d, &c);
        break;
    case SDB_R_COUNTERS:
        err = counters_take(d, &c);
        break;
    case SDB_R_STRING:
        err = string_take(d, &c);
        break;
    case SDB_R_SPAN_BEGIN:
        err = span_begin_take(d, &c);
        break;
    case SDB_R_SPAN_END:
        err = span_end_take(d, &c);
        break;
    case SDB_R_SPAN_SWITCH:
        err = span_switch_take(d, &c);
        break;
    case SDB_R_TAGS:
        err = thread_tags_take(d, &c);
        break;
    case SDB_R_MARK:
        err = mark_take(d, &c);
        break;
    case SDB_R_PRE_OOM:
        err = pre_oom_take(d, &c);
        break;
    default:
        break; /* of a later minor version */
    }
    if (err == IGNORED) {
        d->profile->rings[d->ring].loss.records_ignored++;
        return SDB_OK;
    }
    return err;
}
