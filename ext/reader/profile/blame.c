/* SPDX-License-Identifier: MIT
 *
 * blame.c - see blame.h. All waits together are swept by time: how many waited at each instant, summed up, says what a
 * running segment is worth in one subtraction. So the work grows with waits plus segments and not with their product.
 *
 * Runs on: offline
 */
#include "profile/blame.h"

#include <stdlib.h>

#include "error.h"
#include "log/stop.h"
#include "profile/spans.h"

struct mark { /* from `at` on `waiting` threads of the ring wait */
    uint64_t at;
    uint32_t ring;
    int32_t waiting; /* at first by how many more or fewer */
    uint64_t waited; /* by all together, from the ring's first mark up to here */
};

struct marks {
    const struct sdb_profile *profile;
    struct mark *rows;
    size_t count, capacity;
};

struct search {
    const struct sdb_profile *profile;
    struct sdb_map map; /* (thread and stack, span) -> row */
    struct sdb_blame *rows;
    size_t count, capacity;
};

static bool
holds(const struct sdb_segment *segment)
{
    return segment->state == SDB_RUNNING || segment->state == SDB_GC;
}

static int
wait_visit(const struct sdb_piece *wait, void *data)
{
    struct marks *m = data;
    uint32_t ring = m->profile->threads[wait->thread].ring;
    int err = sdb_grow(&m->rows, &m->capacity, m->count + 2, sizeof(*m->rows));
    if (err) return err;
    m->rows[m->count++] = (struct mark){wait->t0, ring, 1, 0};
    m->rows[m->count++] = (struct mark){wait->t1, ring, -1, 0};
    return SDB_OK;
}

static int
by_ring_and_time(const void *left, const void *right)
{
    const struct mark *a = left, *b = right;
    if (a->ring != b->ring) return a->ring < b->ring ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static void
marks_sum_up(struct marks *m)
{
    if (m->count) qsort(m->rows, m->count, sizeof(*m->rows), by_ring_and_time);
    for (size_t i = 1; i < m->count; i++) {
        struct mark *now = &m->rows[i], *before = now - 1;
        if (now->ring != before->ring) continue;
        now->waited = before->waited + (now->at - before->at) * (uint64_t)before->waiting;
        now->waiting += before->waiting;
    }
}

/* By all threads of the ring whose marks are [first, end), up to an instant. */
static uint64_t
waited_until(const struct mark *first, const struct mark *end, uint64_t at)
{
    const struct mark *low = first, *high = end; /* the first behind it */
    while (low < high) {
        const struct mark *middle = low + (high - low) / 2;
        if (middle->at <= at) low = middle + 1;
        else high = middle;
    }
    if (low == first) return 0;
    return low[-1].waited + (at - low[-1].at) * (uint64_t)low[-1].waiting;
}

static int
holder_add(struct search *s, uint32_t thread, uint32_t stack, uint32_t span, uint64_t ns)
{
    uint64_t key = (uint64_t)thread << 32 | stack;
    uint32_t row = sdb_map_get(&s->map, key, span);
    if (row == SDB_MAP_NONE) {
        int err = sdb_grow(&s->rows, &s->capacity, s->count + 1, sizeof(*s->rows));
        if (!err) err = sdb_map_set(&s->map, key, span, (uint32_t)s->count);
        if (err) return err;
        row = (uint32_t)s->count++;
        s->rows[row] = (struct sdb_blame){thread, stack, span, 0};
    }
    s->rows[row].ns += ns;
    return SDB_OK;
}

/* What a running segment kept others waiting, divided where its thread went on to another span. */
static int
segment_blame(struct search *s, uint32_t thread, const struct sdb_segment *segment, uint64_t end,
              const struct mark *first, const struct mark *last)
{
    uint64_t at = segment->t0, waited = waited_until(first, last, at);
    uint64_t whole = waited_until(first, last, end);
    while (at < end && waited < whole) {
        uint64_t until = sdb_span_change(s->profile, thread, at);
        if (until > end) until = end;
        uint64_t then = until == end ? whole : waited_until(first, last, until);
        int err = then > waited ? holder_add(s, thread, segment->stack,
                                             sdb_span_at(s->profile, thread, at), then - waited)
                                : SDB_OK;
        if (err) return err;
        at = until;
        waited = then;
    }
    return SDB_OK;
}

static int
ring_blame(struct search *s, const struct mark *first, const struct mark *end)
{
    const struct sdb_profile *p = s->profile;
    for (size_t i = 0; i < p->threads_count; i++) {
        const struct sdb_thread *t = &p->threads[i];
        if (t->ring != first->ring) continue;
        if (sdb_stop_asked()) return SDB_ERR_STOPPED;
        for (size_t k = t->end > first->at ? sdb_segment_find(t, first->at) : t->segment_count;
             k < t->segment_count && t->segments[k].t0 < end[-1].at; k++) {
            if (!holds(&t->segments[k])) continue;
            int err =
                segment_blame(s, (uint32_t)i, &t->segments[k], sdb_segment_end(t, k), first, end);
            if (err) return err;
        }
    }
    return SDB_OK;
}

static int
longest_first(const void *left, const void *right)
{
    const struct sdb_blame *a = left, *b = right;
    if (a->ns != b->ns) return a->ns > b->ns ? -1 : 1;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    return a->stack < b->stack ? -1 : a->stack > b->stack;
}

int
sdb_blame_find(const struct sdb_profile *p, const struct sdb_interval *intervals, size_t n,
               struct sdb_blame **rows, size_t *count)
{
    struct marks m = {.profile = p};
    struct search s = {.profile = p};
    struct sdb_selection waits = {.to = SDB_NO_TIME,
                                  .intervals = intervals,
                                  .interval_count = n,
                                  .states = 1u << SDB_GVL_WAIT};
    int err = n ? sdb_select(p, &waits, wait_visit, &m) : SDB_OK;
    if (!err) err = sdb_grow(&s.rows, &s.capacity, 1, sizeof(*s.rows));
    if (!err) marks_sum_up(&m);
    for (size_t from = 0, to; from < m.count && !err; from = to) {
        for (to = from; to < m.count && m.rows[to].ring == m.rows[from].ring;) to++;
        err = ring_blame(&s, m.rows + from, m.rows + to);
    }
    free(m.rows);
    sdb_map_free(&s.map);
    if (err) {
        free(s.rows);
        return err;
    }
    qsort(s.rows, s.count, sizeof(*s.rows), longest_first);
    *rows = s.rows;
    *count = s.count;
    return SDB_OK;
}

/* --- one holder for each wait ---------------------------------------------------------------------------------- */

/* With a GVL hardly more than one thread runs at a time. A log in which thousands do is answered in part. */
enum { PAIRS_MAX = 1 << 22 };

struct held { /* a segment in which a thread held the GVL */
    uint64_t t0, t1;
    uint32_t thread, stack;
};

struct sweep {
    const struct sdb_profile *profile;
    struct held *held; /* by t0 */
    size_t held_count, held_capacity;
    uint32_t *active; /* of held: those that may reach into the waits to come */
    size_t active_count, next;
    struct sdb_blame *parts; /* of one wait */
    size_t parts_count, parts_capacity;
    size_t pairs;
};

static int
by_begin(const void *left, const void *right)
{
    const struct held *a = left, *b = right;
    return a->t0 < b->t0 ? -1 : a->t0 > b->t0;
}

static int
held_gather(struct sweep *s, uint32_t ring, uint64_t from, uint64_t to)
{
    const struct sdb_profile *p = s->profile;
    int err = sdb_grow(&s->held, &s->held_capacity, 1, sizeof(*s->held));
    for (size_t i = 0; i < p->threads_count && !err; i++) {
        const struct sdb_thread *t = &p->threads[i];
        if (t->ring != ring || t->end <= from) continue;
        for (size_t k = sdb_segment_find(t, from);
             k < t->segment_count && t->segments[k].t0 < to && !err; k++) {
            if (!holds(&t->segments[k])) continue;
            err = sdb_grow(&s->held, &s->held_capacity, s->held_count + 1, sizeof(*s->held));
            if (err) break;
            s->held[s->held_count++] = (struct held){t->segments[k].t0, sdb_segment_end(t, k),
                                                     (uint32_t)i, t->segments[k].stack};
        }
    }
    if (!err && s->held_count) qsort(s->held, s->held_count, sizeof(*s->held), by_begin);
    s->active = err ? NULL : malloc((s->held_count + 1) * sizeof(*s->active));
    return err ? err : s->active ? SDB_OK : SDB_ERR_NOMEM;
}

static int
by_holder(const void *left, const void *right)
{
    const struct sdb_blame *a = left, *b = right;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    if (a->stack != b->stack) return a->stack < b->stack ? -1 : 1;
    return a->span < b->span ? -1 : a->span > b->span;
}

/* Sums the parts up by holder and returns the longest. */
static struct sdb_blame
longest_of(struct sdb_blame *parts, size_t n)
{
    struct sdb_blame best = {.span = SDB_NONE}, sum = best;
    if (n > 1) qsort(parts, n, sizeof(*parts), by_holder);
    for (size_t i = 0; i < n; i++) {
        if (i && by_holder(&parts[i], &parts[i - 1]) == 0) sum.ns += parts[i].ns;
        else sum = parts[i];
        if (sum.ns > best.ns) best = sum;
    }
    return best;
}

/* The waits come by t0. */
static int
wait_sweep(struct sweep *s, const struct sdb_interval *wait, struct sdb_blame *row)
{
    while (s->next < s->held_count && s->held[s->next].t0 < wait->t1)
        s->active[s->active_count++] = (uint32_t)s->next++;
    size_t kept = 0;
    s->parts_count = 0;
    for (size_t i = 0; i < s->active_count; i++, s->pairs++) {
        const struct held *held = &s->held[s->active[i]];
        if (held->t1 <= wait->t0) continue;
        s->active[kept++] = s->active[i];
        uint64_t t0 = held->t0 > wait->t0 ? held->t0 : wait->t0,
                 t1 = held->t1 < wait->t1 ? held->t1 : wait->t1;
        if (t0 >= t1 || held->thread == wait->thread) continue;
        int err = sdb_grow(&s->parts, &s->parts_capacity, s->parts_count + 1, sizeof(*s->parts));
        if (err) return err;
        s->parts[s->parts_count++] = (struct sdb_blame){
            held->thread, held->stack, sdb_span_at(s->profile, held->thread, t0), t1 - t0};
    }
    s->active_count = kept;
    *row = longest_of(s->parts, s->parts_count);
    return SDB_OK;
}

struct turn {
    uint64_t t0;
    size_t number;
};

static int
by_turn(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    return a->t0 < b->t0 ? -1 : a->t0 > b->t0;
}

int
sdb_blame_each(const struct sdb_profile *p, const struct sdb_interval *intervals, size_t n,
               struct sdb_blame **rows)
{
    struct sweep s = {.profile = p};
    struct sdb_blame *made = calloc(n + 1, sizeof(*made));
    struct turn *turns = malloc((n + 1) * sizeof(*turns));
    int err = made && turns ? SDB_OK : SDB_ERR_NOMEM;
    uint64_t from = SDB_NO_TIME, to = 0;
    uint32_t ring = SDB_NONE; /* of the first: a span's threads are all of one process */
    for (size_t i = 0; i < n && !err; i++) {
        turns[i] = (struct turn){intervals[i].t0, i};
        if (intervals[i].thread < p->threads_count && ring == SDB_NONE)
            ring = p->threads[intervals[i].thread].ring;
        if (intervals[i].t0 < from) from = intervals[i].t0;
        if (intervals[i].t1 > to) to = intervals[i].t1;
    }
    if (!err && n) qsort(turns, n, sizeof(*turns), by_turn);
    if (!err) err = held_gather(&s, ring, from, to);
    for (size_t i = 0; i < n && !err && s.pairs < PAIRS_MAX; i++) {
        const struct sdb_interval *wait = &intervals[turns[i].number];
        if (wait->thread >= p->threads_count || p->threads[wait->thread].ring != ring) continue;
        err = sdb_stop_asked() ? SDB_ERR_STOPPED : wait_sweep(&s, wait, &made[turns[i].number]);
    }
    free(s.held);
    free(s.active);
    free(s.parts);
    free(turns);
    if (err) {
        free(made);
        return err;
    }
    *rows = made;
    return SDB_OK;
}
