/* SPDX-License-Identifier: MIT
 *
 * blame.c - see blame.h.
 *
 * Runs on: offline
 */
#include "profile/blame.h"

#include <stdlib.h>

#include "error.h"
#include "profile/spans.h"

struct search {
    const struct sdb_profile *profile;
    struct sdb_map map; /* (thread and stack, span) -> row */
    struct sdb_blame *rows;
    size_t count, capacity;
};

static int
holder_add(struct search *s, uint32_t thread, uint32_t stack, uint64_t at, uint64_t ns)
{
    uint32_t span = sdb_span_at(s->profile, thread, at);
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

static int
wait_visit(const struct sdb_piece *wait, void *data)
{
    struct search *s = data;
    const struct sdb_profile *p = s->profile;
    for (size_t i = 0; i < p->threads_count; i++) {
        const struct sdb_thread *t = &p->threads[i];
        if (i == wait->thread || t->ring != p->threads[wait->thread].ring) continue;
        for (size_t k = sdb_segment_find(t, wait->t0);
             k < t->segment_count && t->segments[k].t0 < wait->t1; k++) {
            const struct sdb_segment *segment = &t->segments[k];
            if (segment->state != SDB_RUNNING && segment->state != SDB_GC) continue;
            uint64_t t0 = segment->t0 > wait->t0 ? segment->t0 : wait->t0,
                     t1 = sdb_segment_end(t, k);
            if (t1 > wait->t1) t1 = wait->t1;
            int err = t0 < t1 ? holder_add(s, (uint32_t)i, segment->stack, t0, t1 - t0) : SDB_OK;
            if (err) return err;
        }
    }
    return 0;
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
    struct search s = {.profile = p};
    struct sdb_selection waits = {.to = SDB_NO_TIME,
                                  .intervals = intervals,
                                  .interval_count = n,
                                  .states = 1u << SDB_GVL_WAIT};
    int err = n ? sdb_select(p, &waits, wait_visit, &s) : SDB_OK;
    if (!err) err = sdb_grow(&s.rows, &s.capacity, 1, sizeof(*s.rows));
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
