/* SPDX-License-Identifier: MIT
 *
 * span_load.c - see span_load.h.
 *
 * Runs on: offline
 */
#include "profile/span_load.h"

#include <stdlib.h>

#include "error.h"

enum { PARENTS_MAX = 256 }; /* a longer way up is not walked */

enum event_kind { EVENT_BEGIN, EVENT_SWITCH, EVENT_END };

uint32_t
sdb_span_find(const struct sdb_profile *p, uint32_t ring, uint64_t id)
{
    return sdb_map_get(&p->span_map, id, ring);
}

static int
event_add(struct sdb_profile *p, uint64_t at, enum event_kind kind, uint32_t span, uint32_t thread)
{
    if (p->span_events_count >= UINT32_MAX) return SDB_ERR_FULL;
    int err = sdb_table_room(p, span_events);
    if (err) return err;
    uint32_t order = (uint32_t)p->span_events_count;
    p->span_events[p->span_events_count++] = (struct sdb_span_event){at, kind, span, thread, order};
    return SDB_OK;
}

int
sdb_profile_span_begin(struct sdb_profile *p, const struct sdb_span *span)
{
    if (p->spans_count >= SDB_NONE - 1) return SDB_ERR_FULL;
    uint32_t number = (uint32_t)p->spans_count;
    int err = sdb_table_room(p, spans);
    if (!err) err = sdb_map_set(&p->span_map, span->id, span->ring, number);
    if (err) return err;
    p->spans[p->spans_count++] = *span;
    return span->thread == SDB_NONE ? SDB_OK
                                    : event_add(p, span->begin, EVENT_BEGIN, number, span->thread);
}

int
sdb_span_switch(struct sdb_profile *p, uint32_t thread, uint32_t span, uint64_t at)
{
    return event_add(p, at, EVENT_SWITCH, span, thread);
}

/* The tags of begin and end in one row; those of the end win. */
static int
tags_join(struct sdb_profile *p, struct sdb_span *span, const struct sdb_span *end)
{
    if (end->tags_n == 0) return SDB_OK;
    uint32_t off = end->tags_off, n = end->tags_n;
    for (uint32_t i = 0; i < span->tags_n; i++) {
        struct sdb_pair pair = p->pairs[span->tags_off + i];
        bool again = false;
        for (uint32_t k = 0; k < end->tags_n && !again; k++)
            again = p->pairs[end->tags_off + k].key == pair.key;
        if (again) continue;
        int err = sdb_table_room(p, pairs);
        if (err) return err;
        p->pairs[p->pairs_count++] =
            pair; /* the end's tags are the newest row: this stays behind them */
        n++;
    }
    span->tags_off = off;
    span->tags_n = n;
    return SDB_OK;
}

int
sdb_profile_span_end(struct sdb_profile *p, uint32_t number, const struct sdb_span *end)
{
    struct sdb_span *span = &p->spans[number];
    if (!(span->flags & SDB_SPAN_OPEN)) return SDB_OK;
    span->flags &= ~(uint32_t)SDB_SPAN_OPEN;
    bool inferred =
        span->thread != SDB_NONE && p->threads[span->thread].flags & SDB_THREAD_INFERRED;
    if (!inferred) span->flags |= SDB_SPAN_EXACT;
    span->end = end->end > span->begin ? end->end : span->begin;
    if (end->name) span->name = end->name;
    if (end->trace_id) span->trace_id = end->trace_id;
    if (end->trace_id) span->trace_id = end->trace_id;
    span->status = end->status;
    span->cpu_ns = end->cpu_ns;
    span->wait_ns = end->wait_ns;
    span->blocked_ns = end->blocked_ns;
    span->gc_ns = end->gc_ns;
    span->allocations = end->allocations;
    uint64_t wall = span->end - span->begin, other = span->wait_ns + span->blocked_ns + span->gc_ns;
    span->running_ns = other < wall ? wall - other : 0;
    int err = tags_join(p, span, end);
    return err ? err : event_add(p, span->end, EVENT_END, number, SDB_NONE);
}

static void
parents_resolve(struct sdb_profile *p)
{
    for (size_t i = 0; i < p->spans_count; i++) {
        struct sdb_span *span = &p->spans[i];
        if (span->parent_id) span->parent = sdb_span_find(p, span->ring, span->parent_id);
        if (span->parent == i) span->parent = SDB_NONE;
        if (span->flags & SDB_SPAN_OPEN) {
            uint64_t last = p->rings[span->ring].last;
            span->end = last > span->begin ? last : span->begin;
        }
    }
    /* A file may claim a circle: each walk up marks its way and cuts where it meets itself. */
    uint32_t *mark = calloc(p->spans_count ? p->spans_count : 1, sizeof(*mark));
    for (size_t i = 0; i < p->spans_count; i++) {
        if (!mark) {
            p->spans[i].parent = SDB_NONE;
            continue;
        }
        uint32_t at = (uint32_t)i, previous = SDB_NONE;
        while (at != SDB_NONE && mark[at] == 0) {
            mark[at] = (uint32_t)i + 1;
            previous = at;
            at = p->spans[at].parent;
        }
        if (at != SDB_NONE && previous != SDB_NONE && mark[at] == (uint32_t)i + 1)
            p->spans[previous].parent = SDB_NONE;
    }
    free(mark);
}

static int
by_time(const void *left, const void *right)
{
    const struct sdb_span_event *a = left, *b = right;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static int
by_thread(const void *left, const void *right)
{
    const struct sdb_span_piece *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    return a->t0 < b->t0 ? -1 : a->t0 > b->t0;
}

struct work { /* what a thread works for now */
    uint64_t since;
    uint32_t span;
};

static int
work_change(struct sdb_profile *p, struct work *work, uint32_t thread, uint32_t span, uint64_t at)
{
    struct work *w = &work[thread];
    if (w->span == span) return SDB_OK;
    if (w->span != SDB_NONE && at > w->since) {
        int err = sdb_table_room(p, pieces);
        if (err) return err;
        p->pieces[p->pieces_count++] = (struct sdb_span_piece){w->span, thread, w->since, at};
    }
    *w = (struct work){at, span};
    return SDB_OK;
}

static uint32_t
open_parent(const struct sdb_profile *p, uint32_t span, uint64_t at)
{
    uint32_t parent = p->spans[span].parent;
    for (int i = 0; i < PARENTS_MAX && parent != SDB_NONE; i++) {
        if (p->spans[parent].end > at || p->spans[parent].flags & SDB_SPAN_OPEN) return parent;
        parent = p->spans[parent].parent;
    }
    return SDB_NONE;
}

static int
pieces_make(struct sdb_profile *p, struct work *work, uint32_t *worker)
{
    int err = SDB_OK;
    for (size_t i = 0; i < p->span_events_count && !err; i++) {
        const struct sdb_span_event *e = &p->span_events[i];
        uint32_t thread = e->thread, span = e->span;
        if (e->kind == EVENT_END) {
            thread = worker[span];
            if (thread == SDB_NONE || work[thread].span != span) continue;
            span = open_parent(p, span, e->at);
        } else if (span != SDB_NONE && e->at >= p->spans[span].end &&
                   !(p->spans[span].flags & SDB_SPAN_OPEN)) {
            span = open_parent(p, span, e->at);
        }
        if (span != SDB_NONE) worker[span] = thread;
        err = work_change(p, work, thread, span, e->at);
    }
    for (size_t i = 0; i < p->threads_count && !err; i++) {
        if (work[i].span != SDB_NONE)
            err = work_change(p, work, (uint32_t)i, SDB_NONE, p->spans[work[i].span].end);
    }
    return err;
}

/* Open spans, and those of threads whose states are inferred, get the times of the segments in their pieces. */
static void
times_fill(struct sdb_profile *p)
{
    for (size_t i = 0; i < p->spans_count; i++) {
        struct sdb_span *span = &p->spans[i];
        if (span->flags & SDB_SPAN_EXACT) continue;
        span->running_ns = span->wait_ns = span->blocked_ns = span->gc_ns = 0;
        if (span->flags & SDB_SPAN_OPEN) span->cpu_ns = 0; /* else its thread's own clock told it */
    }
    for (size_t i = 0; i < p->pieces_count; i++) {
        const struct sdb_span_piece *piece = &p->pieces[i];
        bool wanted = false;
        uint32_t at = piece->span;
        for (int k = 0; k < PARENTS_MAX && at != SDB_NONE && !wanted; k++, at = p->spans[at].parent)
            wanted = !(p->spans[at].flags & SDB_SPAN_EXACT);
        if (!wanted) continue;
        struct sdb_span sum = {0};
        const struct sdb_thread *t = &p->threads[piece->thread];
        for (size_t k = sdb_segment_find(t, piece->t0);
             k < t->segment_count && t->segments[k].t0 < piece->t1; k++) {
            const struct sdb_segment *segment = &t->segments[k];
            uint64_t end = sdb_segment_end(t, k), length = end - segment->t0;
            uint64_t t0 = segment->t0 > piece->t0 ? segment->t0 : piece->t0,
                     t1 = end < piece->t1 ? end : piece->t1;
            if (t1 <= t0) continue;
            sum.cpu_ns +=
                (uint64_t)((double)segment->cpu_ns * ((double)(t1 - t0) / (double)length));
            if (segment->state == SDB_RUNNING) sum.running_ns += t1 - t0;
            if (segment->state == SDB_GVL_WAIT) sum.wait_ns += t1 - t0;
            if (segment->state == SDB_BLOCKED) sum.blocked_ns += t1 - t0;
            if (segment->state == SDB_GC) sum.gc_ns += t1 - t0;
        }
        at = piece->span;
        for (int k = 0; k < PARENTS_MAX && at != SDB_NONE; k++, at = p->spans[at].parent) {
            struct sdb_span *span = &p->spans[at];
            if (span->flags & SDB_SPAN_EXACT) continue;
            if (span->flags & SDB_SPAN_OPEN) span->cpu_ns += sum.cpu_ns;
            span->running_ns += sum.running_ns;
            span->wait_ns += sum.wait_ns;
            span->blocked_ns += sum.blocked_ns;
            span->gc_ns += sum.gc_ns;
        }
    }
}

static int
by_thread_time(const void *left, const void *right)
{
    const struct sdb_tag_set *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

int
sdb_spans_settle(struct sdb_profile *p)
{
    parents_resolve(p);
    struct work *work = malloc((p->threads_count + 1) * sizeof(*work));
    uint32_t *worker = malloc((p->spans_count + 1) * sizeof(*worker));
    int err = work && worker ? SDB_OK : SDB_ERR_NOMEM;
    if (!err) {
        for (size_t i = 0; i < p->threads_count; i++) work[i] = (struct work){0, SDB_NONE};
        for (size_t i = 0; i < p->spans_count; i++) worker[i] = SDB_NONE;
        if (p->span_events_count)
            qsort(p->span_events, p->span_events_count, sizeof(*p->span_events), by_time);
        err = pieces_make(p, work, worker);
    }
    if (!err && p->pieces_count) qsort(p->pieces, p->pieces_count, sizeof(*p->pieces), by_thread);
    if (!err && p->tag_sets_count)
        qsort(p->tag_sets, p->tag_sets_count, sizeof(*p->tag_sets), by_thread_time);
    if (!err) times_fill(p);
    free(work);
    free(worker);
    free(p->span_events);
    p->span_events = NULL;
    p->span_events_count = p->span_events_capacity = 0;
    return err;
}
