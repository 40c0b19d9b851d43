/* SPDX-License-Identifier: MIT
 *
 * spans.c - see spans.h.
 *
 * Runs on: offline
 */
#include "profile/spans.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

enum { PARENTS_MAX = 256 };

static bool
pairs_have(const struct sdb_profile *p, uint32_t off, uint32_t n, struct sdb_tag tag)
{
    for (uint32_t i = 0; i < n; i++)
        if (p->pairs[off + i].key == tag.key && p->pairs[off + i].value == tag.value) return true;
    return false;
}

/* Index of the first tag set of (thread, later than at); sets are sorted by thread and time. */
static size_t
tag_set_after(const struct sdb_profile *p, uint32_t thread, uint64_t at)
{
    size_t low = 0, high = p->tag_sets_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sdb_tag_set *set = &p->tag_sets[middle];
        if (set->thread < thread || (set->thread == thread && set->at <= at)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool
span_has_tag(const struct sdb_profile *p, uint32_t number, struct sdb_tag tag)
{
    uint32_t at = number;
    for (int i = 0; i < PARENTS_MAX && at != SDB_NONE; i++, at = p->spans[at].parent)
        if (pairs_have(p, p->spans[at].tags_off, p->spans[at].tags_n, tag)) return true;
    const struct sdb_span *span = &p->spans[number];
    if (span->thread == SDB_NONE) return false;
    size_t after = tag_set_after(p, span->thread, span->begin);
    if (after == 0 || p->tag_sets[after - 1].thread != span->thread) return false;
    return pairs_have(p, p->tag_sets[after - 1].tags_off, p->tag_sets[after - 1].tags_n, tag);
}

static bool
span_matches(const struct sdb_profile *p, const struct sdb_span_query *q, uint32_t number)
{
    const struct sdb_span *span = &p->spans[number];
    if (q->names && !q->names[span->name]) return false;
    if (q->by_request && span->request_id != q->request) return false;
    if (q->by_trace && span->trace_id != q->trace) return false;
    if (q->roots && span->parent != SDB_NONE) return false;
    if (span->end - span->begin < q->min_ns) return false;
    if (span->begin >= q->to || span->end < q->from) return false;
    if (q->threads && span->thread != SDB_NONE && !q->threads[span->thread]) return false;
    for (size_t i = 0; i < q->tag_count; i++)
        if (!span_has_tag(p, number, q->tags[i])) return false;
    return true;
}

struct found { /* for sorting: by name and length, then by begin */
    uint64_t begin, wall;
    uint32_t number, name;
};

static int
by_name_and_length(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    if (a->name != b->name) return a->name < b->name ? -1 : 1;
    return a->wall < b->wall ? -1 : a->wall > b->wall;
}

static int
by_begin(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

/* Keeps of each name the spans at or above the percentile of their lengths. */
static size_t
keep_percentile(struct found *rows, size_t n, double percentile)
{
    size_t kept = 0;
    qsort(rows, n, sizeof(*rows), by_name_and_length);
    for (size_t from = 0, to; from < n; from = to) {
        for (to = from; to < n && rows[to].name == rows[from].name;) to++;
        double rank = percentile / 100.0 * (double)(to - from);
        size_t first = from + (size_t)rank; /* nearest rank: the ceil(rank)-th of them */
        if (first > from && (double)(size_t)rank == rank) first--;
        if (first >= to) first = to - 1;
        while (first > from && rows[first - 1].wall == rows[first].wall) first--;
        for (size_t i = first; i < to; i++) rows[kept++] = rows[i];
    }
    return kept;
}

int
sdb_spans_find(const struct sdb_profile *p, const struct sdb_span_query *q, uint32_t **found,
               size_t *count)
{
    struct found *rows = NULL;
    size_t n = 0, capacity = 0;
    for (size_t i = 0; i < p->spans_count; i++) {
        if (!span_matches(p, q, (uint32_t)i)) continue;
        int err = sdb_grow(&rows, &capacity, n + 1, sizeof(*rows));
        if (err) {
            free(rows);
            return err;
        }
        const struct sdb_span *span = &p->spans[i];
        rows[n++] = (struct found){span->begin, span->end - span->begin, (uint32_t)i, span->name};
    }
    if (n && q->percentile >= 0) n = keep_percentile(rows, n, q->percentile);
    if (n) qsort(rows, n, sizeof(*rows), by_begin);
    uint32_t *numbers = malloc((n ? n : 1) * sizeof(*numbers));
    for (size_t i = 0; numbers && i < n; i++) numbers[i] = rows[i].number;
    free(rows);
    if (!numbers) return SDB_ERR_NOMEM;
    *found = numbers;
    *count = n;
    return SDB_OK;
}

enum { INSIDE = 1, OUTSIDE = 2 };

/* Spreads INSIDE from chosen spans to all spans in them; what remains becomes OUTSIDE. */
static void
inside_spread(const struct sdb_profile *p, uint8_t *inside)
{
    for (size_t i = 0; i < p->spans_count; i++) {
        uint32_t at = (uint32_t)i;
        while (at != SDB_NONE && inside[at] == 0) at = p->spans[at].parent;
        uint8_t verdict = at == SDB_NONE ? OUTSIDE : inside[at];
        for (at = (uint32_t)i; at != SDB_NONE && inside[at] == 0; at = p->spans[at].parent)
            inside[at] = verdict;
    }
}

static int
pieces_inside(const struct sdb_profile *p, uint8_t *inside, struct sdb_interval **out,
              size_t *count)
{
    struct sdb_interval *intervals = NULL;
    size_t n = 0, capacity = 0;
    inside_spread(p, inside);
    int err = sdb_grow(&intervals, &capacity, 1, sizeof(*intervals));
    for (size_t i = 0; i < p->pieces_count && !err; i++) {
        const struct sdb_span_piece *piece = &p->pieces[i];
        if (inside[piece->span] != INSIDE) continue;
        err = sdb_grow(&intervals, &capacity, n + 1, sizeof(*intervals));
        if (!err) intervals[n++] = (struct sdb_interval){piece->thread, piece->t0, piece->t1};
    }
    if (err) {
        free(intervals);
        return err;
    }
    *out = intervals;
    *count = sdb_intervals_normalize(intervals, n);
    return SDB_OK;
}

int
sdb_spans_intervals(const struct sdb_profile *p, const uint32_t *spans, size_t n,
                    struct sdb_interval **out, size_t *count)
{
    uint8_t *inside = calloc(p->spans_count + 1, 1);
    if (!inside) return SDB_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        if (spans[i] < p->spans_count) inside[spans[i]] = INSIDE;
    int err = pieces_inside(p, inside, out, count);
    free(inside);
    return err;
}

int
sdb_tag_intervals(const struct sdb_profile *p, struct sdb_tag tag, struct sdb_interval **out,
                  size_t *count)
{
    uint8_t *inside = calloc(p->spans_count + 1, 1);
    if (!inside) return SDB_ERR_NOMEM;
    for (size_t i = 0; i < p->spans_count; i++)
        if (pairs_have(p, p->spans[i].tags_off, p->spans[i].tags_n, tag)) inside[i] = INSIDE;
    struct sdb_interval *intervals = NULL;
    size_t n = 0;
    int err = pieces_inside(p, inside, &intervals, &n);
    free(inside);
    size_t capacity = 0; /* not known: the next growth copies once */
    struct sdb_interval *all = NULL;
    if (!err) err = sdb_grow(&all, &capacity, n + 1, sizeof(*all));
    if (!err && n) memcpy(all, intervals, n * sizeof(*all));
    free(intervals);
    for (size_t i = 0; i < p->tag_sets_count && !err; i++) {
        const struct sdb_tag_set *set = &p->tag_sets[i];
        if (!pairs_have(p, set->tags_off, set->tags_n, tag)) continue;
        bool last = i + 1 == p->tag_sets_count || p->tag_sets[i + 1].thread != set->thread;
        err = sdb_grow(&all, &capacity, n + 1, sizeof(*all));
        if (err) break;
        all[n++] = (struct sdb_interval){
            set->thread, set->at, last ? p->threads[set->thread].end : p->tag_sets[i + 1].at};
    }
    if (err) {
        free(all);
        return err;
    }
    *out = all;
    *count = sdb_intervals_normalize(all, n);
    return SDB_OK;
}

uint32_t
sdb_span_root(const struct sdb_profile *p, uint32_t span)
{
    for (int i = 0; i < PARENTS_MAX && p->spans[span].parent != SDB_NONE; i++)
        span = p->spans[span].parent;
    return span;
}

/* Index of the first piece of (thread, later than at); pieces are sorted by thread and time. */
static size_t
piece_after(const struct sdb_profile *p, uint32_t thread, uint64_t at)
{
    size_t low = 0, high = p->pieces_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct sdb_span_piece *piece = &p->pieces[middle];
        if (piece->thread < thread || (piece->thread == thread && piece->t0 <= at))
            low = middle + 1;
        else high = middle;
    }
    return low;
}

uint64_t
sdb_span_change(const struct sdb_profile *p, uint32_t thread, uint64_t at)
{
    size_t after = piece_after(p, thread, at);
    const struct sdb_span_piece *inside = after ? &p->pieces[after - 1] : NULL;
    if (inside && inside->thread == thread && at < inside->t1) return inside->t1;
    if (after < p->pieces_count && p->pieces[after].thread == thread) return p->pieces[after].t0;
    return SDB_NO_TIME;
}

uint32_t
sdb_span_at(const struct sdb_profile *p, uint32_t thread, uint64_t at)
{
    size_t after = piece_after(p, thread, at);
    if (after == 0) return SDB_NONE;
    const struct sdb_span_piece *piece = &p->pieces[after - 1];
    bool open_end = piece->t1 == at && p->spans[piece->span].flags & SDB_SPAN_OPEN;
    return piece->thread == thread && (at < piece->t1 || open_end) ? piece->span : SDB_NONE;
}
