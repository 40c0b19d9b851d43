/* SPDX-License-Identifier: MIT
 *
 * load.c - see load.h.
 *
 * Runs on: offline
 */
#include "profile/load.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "profile/attribution.h"
#include "profile/decoder.h"
#include "profile/span_load.h"

static bool
same_boot(const struct sdb_identity *a, const struct sdb_identity *b)
{
    static const uint8_t unknown[16];
    return memcmp(a->boot_id, b->boot_id, 16) == 0 && memcmp(a->boot_id, unknown, 16) != 0;
}

void
sdb_align_rings(struct sdb_ring_reader *const *readers, size_t n, uint64_t *bases)
{
    uint64_t earliest = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        const struct sdb_identity *id = &readers[i]->identity, *boot = id;
        for (size_t k = 0; k < i && boot == id; k++)
            if (same_boot(&readers[k]->identity, id)) boot = &readers[k]->identity;
        bases[i] = boot->start_realtime_ns + (id->start_monotonic_ns - boot->start_monotonic_ns);
        if (bases[i] < earliest) earliest = bases[i];
    }
    for (size_t i = 0; i < n; i++) {
        bases[i] -= earliest;
        if (bases[i] > SDB_REL_MAX) bases[i] = 0; /* centuries apart: a lie */
    }
}

/* Chunks [*from, *to) of the index overlap the window. */
static void
chunks_choose(const struct sdb_ring_reader *r, uint64_t base, const struct sdb_load_window *window,
              size_t *from, size_t *to)
{
    *from = 0;
    *to = r->chunk_count;
    if (!window || r->chunk_count == 0) return;
    int64_t newest = (int64_t)(base + (r->chunks[r->chunk_count - 1].first_ns & (SDB_REL_MAX - 1)));
    int64_t first = window->from_ns < 0 ? newest + window->from_ns : window->from_ns;
    while (*from + 1 < *to &&
           (int64_t)(base + (r->chunks[*from + 1].first_ns & (SDB_REL_MAX - 1))) <= first)
        ++*from;
    while (*to > *from + 1 && base + r->chunks[*to - 1].first_ns > window->to_ns) --*to;
}

static int
lost_note(struct sdb_decoder *d, uint64_t from, uint64_t to)
{
    struct sdb_profile *p = d->profile;
    if (to <= from) return SDB_OK;
    int err = sdb_table_room(p, gaps);
    if (!err) p->gaps[p->gaps_count++] = (struct sdb_gap_row){from, to - from, d->ring, 0};
    return err;
}

static int
chunks_decode(struct sdb_decoder *d, const struct sdb_ring_reader *r, size_t from, size_t to,
              uint8_t *buffer)
{
    struct sdb_loss *loss = &d->profile->rings[d->ring].loss;
    uint64_t expected = from < to ? r->chunks[from].seq : 0;
    bool hole = false;
    for (size_t i = from; i < to; i++) {
        uint64_t seq = r->chunks[i].seq, missing = seq - expected;
        /* never more than there are: the writer may have lost the chunk before those it skipped, too */
        missing -= missing < r->chunks[i].skipped ? missing : r->chunks[i].skipped;
        if (missing) {
            loss->chunks_missing += missing;
            hole = true;
        }
        expected = seq + 1;
        size_t n;
        int err = sdb_ring_reader_chunk(r, i, buffer, &n);
        if (err == SDB_ERR_AGAIN) {
            loss->chunks_lapped++;
            hole = true;
            continue;
        }
        if (err) return err;
        uint64_t before = d->now, ordinal = d->chunk;
        err = sdb_decoder_chunk(d, buffer, n);
        if (err && err != SDB_ERR_CORRUPT) return err;
        if (hole && ordinal && d->chunk != ordinal) {
            int note_err = lost_note(d, before, d->chunk_first);
            if (note_err) return note_err;
        }
        if (d->chunk != ordinal) hole = false;
        if (err == SDB_ERR_CORRUPT) {
            loss->chunks_damaged++;
            hole = true;
        }
    }
    return SDB_OK;
}

/* A thread that was never sampled lived all the same. */
static int
unseen_threads_fill(struct sdb_profile *p, uint32_t ring)
{
    const struct sdb_ring_row *row = &p->rings[ring];
    for (size_t i = 0; i < p->threads_count; i++) {
        struct sdb_thread *t = &p->threads[i];
        if (t->ring != ring || t->segment_count) continue;
        uint64_t start = t->birth != SDB_NO_TIME && t->birth > row->first ? t->birth : row->first;
        uint64_t end = t->death < row->last ? t->death : row->last;
        t->end = start;
        if (end <= start) continue;
        int err = sdb_thread_push(t, end - start, SDB_STACK_UNKNOWN, SDB_UNKNOWN, 0, 0);
        if (err) return err;
    }
    return SDB_OK;
}

static int
ring_load(struct sdb_profile *p, struct sdb_ring_reader *r, uint32_t ring, uint64_t now_rel,
          const struct sdb_load_window *window)
{
    uint64_t base = p->rings[ring].base_ns;
    int err = sdb_ring_reader_refresh(r);
    if (err) return err;
    size_t from, to;
    chunks_choose(r, base, window, &from, &to);

    struct sdb_decoder d = {0};
    uint8_t *buffer = malloc((size_t)r->identity.chunk_bytes);
    if (!buffer) return SDB_ERR_NOMEM;
    err = sdb_decoder_open(&d, p, r, ring, base);
    if (!err) err = chunks_decode(&d, r, from, to, buffer);
    if (!err) err = sdb_decoder_finish(&d, now_rel && now_rel < SDB_REL_MAX ? base + now_rel : 0);
    if (!err) err = unseen_threads_fill(p, ring);
    p->rings[ring].loss.records_ignored += d.symbols.damaged_records;
    sdb_decoder_close(&d);
    free(buffer);
    return err;
}

int
sdb_profile_load(struct sdb_profile *p, struct sdb_ring_reader *const *readers, size_t n,
                 const uint64_t *now_rel, const struct sdb_load_window *window)
{
    if (n == 0) return SDB_OK;
    uint64_t *bases = calloc(n, sizeof(*bases));
    if (!bases) return SDB_ERR_NOMEM;
    sdb_align_rings(readers, n, bases);
    int err = SDB_OK;
    for (size_t i = 0; i < n && !err; i++) {
        err = sdb_table_room(p, rings);
        if (err) break;
        p->rings[p->rings_count++] = (struct sdb_ring_row){.base_ns = bases[i],
                                                           .first = bases[i],
                                                           .last = bases[i],
                                                           .truncated = readers[i]->truncated};
        err = ring_load(p, readers[i], (uint32_t)i, now_rel ? now_rel[i] : 0, window);
    }
    free(bases);
    if (!err) err = sdb_profile_mark_recursion(p);
    if (!err) err = sdb_spans_settle(p);
    return err;
}
