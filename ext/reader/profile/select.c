/* SPDX-License-Identifier: MIT
 *
 * select.c - see select.h.
 *
 * Runs on: offline
 */
#include "profile/select.h"

#include <stdlib.h>

#include "error.h"
#include "log/stop.h"

enum { LOOK_EACH = 1024 }; /* pieces between two looks whether anybody wants them still */

/* 1 per stack that holds a function in focus. Parents come first. */
static uint8_t *
focused_stacks(const struct sdb_profile *p, const struct sdb_selection *s)
{
    uint8_t *passes = calloc(p->stacks_count, 1);
    if (!passes) return NULL;
    for (size_t i = 1; i < p->stacks_count; i++) {
        const struct sdb_reader_stack *stack = &p->stacks[i];
        passes[i] =
            passes[stack->parent] || s->func_marks[p->frames[stack->frame].func] & SDB_MARK_FOCUS;
    }
    return passes;
}

static uint64_t
part_of(uint64_t whole, uint64_t part, uint64_t length)
{
    if (part == length) return whole;
    return (uint64_t)((double)whole * ((double)part / (double)length));
}

struct walk {
    const struct sdb_profile *profile;
    const struct sdb_selection *selection;
    const uint8_t *stacks;
    sdb_piece_visit *visit;
    void *data;
    unsigned looked; /* pieces and ranges so far */
};

static int
walk_range(struct walk *w, uint32_t thread, uint64_t from, uint64_t to)
{
    const struct sdb_thread *t = &w->profile->threads[thread];
    if (from < w->selection->from) from = w->selection->from;
    if (to > w->selection->to) to = w->selection->to;
    if (to > t->end) to = t->end;
    if (++w->looked % LOOK_EACH == 0 && sdb_stop_asked()) return SDB_ERR_STOPPED;
    for (size_t i = from < to ? sdb_segment_find(t, from) : t->segment_count; i < t->segment_count;
         i++) {
        const struct sdb_segment *segment = &t->segments[i];
        if (segment->t0 >= to) break;
        if (++w->looked % LOOK_EACH == 0 && sdb_stop_asked()) return SDB_ERR_STOPPED;
        if (!(w->selection->states >> segment->state & 1)) continue;
        if (w->stacks && !w->stacks[segment->stack]) continue;
        uint64_t end = sdb_segment_end(t, i);
        struct sdb_piece piece = {thread,         segment->stack, segment->state,
                                  segment->ticks, segment->t0,    end,
                                  segment->cpu_ns};
        if (piece.t0 < from || piece.t1 > to) {
            uint64_t length = end - segment->t0;
            if (piece.t0 < from) piece.t0 = from;
            if (piece.t1 > to) piece.t1 = to;
            piece.cpu_ns = part_of(segment->cpu_ns, piece.t1 - piece.t0, length);
            piece.ticks = (uint32_t)part_of(segment->ticks, piece.t1 - piece.t0, length);
        }
        int stop = w->visit(&piece, w->data);
        if (stop) return stop;
    }
    return 0;
}

int
sdb_select(const struct sdb_profile *p, const struct sdb_selection *s, sdb_piece_visit *visit,
           void *data)
{
    uint8_t *stacks = s->focus ? focused_stacks(p, s) : NULL;
    if (s->focus && !stacks) return SDB_ERR_NOMEM;
    struct walk w = {p, s, stacks, visit, data, 0};
    int stop = 0;
    if (s->intervals) {
        for (size_t i = 0; i < s->interval_count && !stop; i++) {
            const struct sdb_interval *in = &s->intervals[i];
            if (in->thread >= p->threads_count || (s->threads && !s->threads[in->thread])) continue;
            stop = walk_range(&w, in->thread, in->t0, in->t1);
        }
    } else {
        for (size_t i = 0; i < p->threads_count && !stop; i++)
            if (!s->threads || s->threads[i]) stop = walk_range(&w, (uint32_t)i, 0, SDB_NO_TIME);
    }
    free(stacks);
    return stop;
}

static int
by_thread(const void *left, const void *right)
{
    const struct sdb_interval *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    return a->t0 < b->t0 ? -1 : a->t0 > b->t0;
}

size_t
sdb_intervals_normalize(struct sdb_interval *intervals, size_t n)
{
    if (n > 1) qsort(intervals, n, sizeof(*intervals), by_thread);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct sdb_interval in = intervals[i];
        if (in.t1 <= in.t0) continue;
        struct sdb_interval *last = kept ? &intervals[kept - 1] : NULL;
        if (last && last->thread == in.thread && in.t0 <= last->t1) {
            if (in.t1 > last->t1) last->t1 = in.t1;
        } else {
            intervals[kept++] = in;
        }
    }
    return kept;
}

bool
sdb_intervals_cover(const struct sdb_interval *intervals, size_t n, uint32_t thread, uint64_t at)
{
    size_t low = 0, high = n; /* the last that begins at or before */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sdb_interval *in = &intervals[middle];
        if (in->thread < thread || (in->thread == thread && in->t0 <= at)) low = middle + 1;
        else high = middle;
    }
    return low && intervals[low - 1].thread == thread && at <= intervals[low - 1].t1;
}

size_t
sdb_intervals_intersect(const struct sdb_interval *a, size_t a_n, const struct sdb_interval *b,
                        size_t b_n, struct sdb_interval *out)
{
    size_t i = 0, k = 0, n = 0;
    while (i < a_n && k < b_n) {
        const struct sdb_interval *x = &a[i], *y = &b[k];
        if (x->thread == y->thread) {
            uint64_t t0 = x->t0 > y->t0 ? x->t0 : y->t0, t1 = x->t1 < y->t1 ? x->t1 : y->t1;
            if (t0 < t1) out[n++] = (struct sdb_interval){x->thread, t0, t1};
        }
        bool x_first = x->thread != y->thread ? x->thread < y->thread : x->t1 <= y->t1;
        if (x_first) i++;
        else k++;
    }
    return n;
}
