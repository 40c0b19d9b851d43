/* SPDX-License-Identifier: MIT
 *
 * decoder.c - see decoder.h.
 *
 * Runs on: offline
 */
#include "profile/decoder.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "log/stop.h"

enum {
    NODE_MAX = 1 << 24,
    INTERVAL_MAX_US = 1000000000,
};

int
sdb_decoder_open(struct sdb_decoder *d, struct sdb_profile *profile,
                 const struct sdb_ring_reader *reader, uint32_t ring, uint64_t base)
{
    *d = (struct sdb_decoder){.profile = profile, .reader = reader, .ring = ring, .base = base};
    return sdb_symbols_read(&d->symbols, reader);
}

void
sdb_decoder_close(struct sdb_decoder *d)
{
    sdb_symbols_free(&d->symbols);
    sdb_map_free(&d->where_frames);
    free(d->tracks);
    free(d->nodes);
    free(d->strings);
    *d = (struct sdb_decoder){0};
}

static struct sdb_ring_row *
row(struct sdb_decoder *d)
{
    return &d->profile->rings[d->ring];
}

/* Function and line of (code, where). A code without a name may have got one since the areas were read. */
static int
frame_find(struct sdb_decoder *d, uint32_t code, uint64_t where, uint32_t *frame)
{
    uint32_t found = sdb_map_get(&d->where_frames, where, code);
    if (found != SDB_MAP_NONE) {
        *frame = found;
        return SDB_OK;
    }
    struct sdb_profile *p = d->profile;
    const struct sdb_reader_code *symbol = sdb_symbols_find(&d->symbols, code);
    if (!symbol && !d->symbols_tried) {
        d->symbols_tried = true;
        int err = sdb_symbols_read(&d->symbols, d->reader);
        if (err) return err;
        symbol = sdb_symbols_find(&d->symbols, code);
    }
    uint32_t func = SDB_FUNC_UNNAMED, line = 0;
    if (symbol && symbol->kind != SDB_CODE_RUBY && symbol->kind != SDB_CODE_C) {
        func = SDB_FUNC_UNRESOLVED;
    } else if (symbol) {
        struct sdb_func made = {.line = symbol->first_line, .kind = symbol->kind};
        if (made.line > INT32_MAX) made.line = 0; /* a template's own code, in logs of old */
        int err = sdb_profile_string(p, symbol->name.at, symbol->name.n, &made.name);
        if (!err) err = sdb_profile_string(p, symbol->path.at, symbol->path.n, &made.path);
        if (!err) err = sdb_profile_func(p, made, &func);
        if (err) return err;
        d->line_walk += symbol->run_count;
        line = d->line_walk <= SDB_WALK_MAX ? sdb_code_line(symbol, where) : 0;
    }
    int err = sdb_profile_frame(p, func, line, frame);
    if (!err && symbol) err = sdb_map_set(&d->where_frames, where, code, *frame);
    return err;
}

static int
node_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    uint64_t up = sdb_take_varint(c);
    uint32_t code = sdb_take_u32(c);
    uint64_t where = sdb_take_varint(c);
    uint64_t id = d->node_count + 1;
    if (c->bad || up == 0 || up > id || id > NODE_MAX) return SDB_ERR_CORRUPT;
    uint32_t parent = up == id ? SDB_STACK_ROOT : d->nodes[id - up - 1];
    uint32_t frame, stack;
    int err = frame_find(d, code, where, &frame);
    if (!err) err = sdb_profile_stack(d->profile, parent, frame, &stack);
    if (!err) err = sdb_grow(&d->nodes, &d->node_capacity, id, sizeof(*d->nodes));
    if (!err) d->nodes[d->node_count++] = stack;
    return err;
}

static int
tick_take(struct sdb_decoder *d, int64_t deviation_us)
{
    int64_t us;
    if (__builtin_add_overflow((int64_t)d->interval_us, deviation_us, &us) || us <= 0)
        return SDB_ERR_CORRUPT;
    if ((uint64_t)us > (SDB_REL_MAX - (d->now - d->base)) / 1000) return SDB_ERR_CORRUPT;
    d->before = d->now;
    d->now += (uint64_t)us * 1000;
    d->ticks++;
    d->unseen_ns += d->pending_unseen_ns;
    d->pending_unseen_ns = 0;
    d->parked = false;
    return SDB_OK;
}

static int
gap_add(struct sdb_decoder *d, uint64_t at, uint64_t ns, uint32_t reason)
{
    struct sdb_profile *p = d->profile;
    int err = sdb_table_room(p, gaps);
    if (err) return err;
    p->gaps[p->gaps_count++] = (struct sdb_gap_row){at, ns, d->ring, reason};
    return SDB_OK;
}

/* The record is written before the tick that ends the gap: where it lies is known to that tick only. */
static int
gap_take(struct sdb_decoder *d, struct sdb_cursor *c)
{
    uint64_t us = sdb_take_varint(c), reason = sdb_take_varint(c);
    if (c->bad || us > SDB_REL_MAX / 1000) return SDB_ERR_CORRUPT;
    d->pending_unseen_ns += us * 1000;
    if (d->pending_unseen_ns > SDB_REL_MAX) d->pending_unseen_ns = SDB_REL_MAX;
    return gap_add(d, SDB_NO_TIME, us * 1000,
                   reason >= 1 && reason <= 4 ? (uint32_t)reason : SDB_GAP_LATE);
}

/* Gaps noted since the tick before lie right before this one. */
static void
gaps_place(struct sdb_decoder *d)
{
    struct sdb_profile *p = d->profile;
    for (size_t i = p->gaps_count; i-- > 0 && p->gaps[i].at == SDB_NO_TIME;) {
        struct sdb_gap_row *gap = &p->gaps[i];
        if (gap->ns > d->now - d->before) gap->ns = d->now - d->before;
        gap->at = d->now - gap->ns;
    }
}

static int
block_decode(struct sdb_decoder *d, struct sdb_bytes payload)
{
    struct sdb_cursor c = {payload.at, payload.at + payload.n, false};
    int err = SDB_OK;
    while (!err && c.at < c.end) {
        uint8_t head = *c.at++;
        if (head & SDB_SAMPLE_BIT) {
            err = sdb_decoder_sample(d, &c, head);
        } else if (head & SDB_TICK_BIT) {
            bool gap = d->pending_unseen_ns != 0;
            err = tick_take(d, (int64_t)(head & 0x3f) - SDB_TICK_BIAS);
            if (gap && !err) gaps_place(d);
        } else if (head >= SDB_R_FIRST_SIZED) {
            struct sdb_bytes record = sdb_take_string(&c);
            if (c.bad) return SDB_ERR_CORRUPT;
            err = sdb_decoder_event(d, head,
                                    (struct sdb_cursor){record.at, record.at + record.n, false});
        } else if (head == SDB_R_NODE) {
            err = node_take(d, &c);
        } else if (head == SDB_R_TICK) {
            bool gap = d->pending_unseen_ns != 0;
            int64_t deviation = sdb_take_zigzag(&c);
            err = c.bad ? SDB_ERR_CORRUPT : tick_take(d, deviation);
            if (gap && !err) gaps_place(d);
        } else if (head == SDB_R_INTERVAL) {
            uint64_t us = sdb_take_varint(&c);
            if (c.bad || us == 0 || us > INTERVAL_MAX_US) return SDB_ERR_CORRUPT;
            d->interval_us = us;
        } else if (head == SDB_R_PARK) {
            d->parked = true;
        } else if (head == SDB_R_GAP) {
            err = gap_take(d, &c);
        } else {
            return SDB_ERR_CORRUPT;
        }
    }
    return err;
}

/* A live thread is told of in each chunk: one that was not in a whole one is gone, and its end was lost. */
static int
gone_threads_end(struct sdb_decoder *d)
{
    for (size_t i = 0; i < d->track_count; i++) {
        struct sdb_track *track = &d->tracks[i];
        if (track->thread == SDB_NONE || track->chunk == d->chunk) continue;
        int err = sdb_decoder_hold(d, track, d->chunk_first);
        if (err) return err;
        track->thread = SDB_NONE;
    }
    return SDB_OK;
}

/* A chunk's first_ns is a tick, or the very tick in which the chunk before ran full. */
static int
chunk_begin(struct sdb_decoder *d, uint64_t first)
{
    if (d->chunk_whole) {
        int err = gone_threads_end(d);
        if (err) return err;
    }
    d->chunk++;
    d->chunk_first = first;
    d->node_count = d->string_count = 0;
    d->symbols_tried = false;
    d->interval_us = d->reader->identity.interval_ns / 1000;
    if (d->interval_us == 0) d->interval_us = 1;
    if (d->interval_us > INTERVAL_MAX_US) d->interval_us = INTERVAL_MAX_US;
    if (d->chunk == 1) {
        d->now = d->before = first;
        d->ticks = 1;
        row(d)->first = first;
    } else if (first != d->now) {
        d->before = d->now;
        d->now = first;
        d->ticks++;
        d->unseen_ns += d->pending_unseen_ns;
        d->pending_unseen_ns = 0;
        gaps_place(d);
    }
    d->parked = false;
    for (size_t i = 0; i < d->track_count; i++) {
        d->tracks[i].node = 0;
        d->tracks[i].fresh = true;
    }
    return SDB_OK;
}

int
sdb_decoder_chunk(struct sdb_decoder *d, const uint8_t *bytes, size_t n)
{
    struct sdb_area_header h;
    if (n < sizeof(h)) return SDB_ERR_CORRUPT;
    memcpy(&h, bytes, sizeof(h));
    if (h.first_ns >= SDB_REL_MAX) return SDB_ERR_CORRUPT;
    uint64_t first = d->base + h.first_ns;
    if (d->chunk && first < d->now) return SDB_ERR_CORRUPT;

    int err = chunk_begin(d, first);
    const uint8_t *at = bytes + SDB_AREA_HEADER_BYTES, *end = bytes + n;
    struct sdb_bytes payload;
    while (!err && sdb_block_next(&at, end, h.seq, &payload))
        err = sdb_stop_asked() ? SDB_ERR_STOPPED : block_decode(d, payload);
    d->chunk_whole = !err && at > bytes + SDB_AREA_HEADER_BYTES;
    return err;
}

int
sdb_decoder_finish(struct sdb_decoder *d, uint64_t until)
{
    if (d->chunk == 0) return SDB_OK;
    uint64_t last = d->now;
    if (d->parked && d->last_clock > last) last = d->last_clock;
    if (d->parked && until > last) last = until;
    last -= (last - d->now) %
            1000; /* steps are whole microseconds: no thread shall end before the log */
    d->unseen_ns += d->pending_unseen_ns;
    d->pending_unseen_ns = 0;
    for (size_t i = 0; i < d->track_count; i++) {
        if (d->tracks[i].thread == SDB_NONE) continue;
        int err = sdb_decoder_hold(d, &d->tracks[i], last);
        if (err) return err;
    }
    d->before = d->now;
    d->now = last;
    gaps_place(d);
    row(d)->last = last;
    return SDB_OK;
}
