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
#include "profile/attribution.h"

enum {
    NODE_MAX = 1 << 24,
    INTERVAL_MAX_US = 1000000000,
    CPU_SLACK_US = 100000,
    WALK_MAX = 1 << 28, /* a second's work: no recorder's log comes near, a hostile one is answered with less */
};

int
sdb_decoder_open(struct sdb_decoder *d, struct sdb_profile *profile, const struct sdb_ring_reader *reader,
                 uint32_t ring, uint64_t base)
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

int
sdb_decoder_end(struct sdb_decoder *d, struct sdb_track *track, uint64_t until, const struct sdb_last_times *times)
{
    struct sdb_thread *t = &d->profile->threads[track->thread];
    if (!track->seen || until <= t->end) return SDB_OK;
    uint64_t us = (until - t->end) / 1000;
    bool runs = track->state == SDB_RUNNING || track->state == SDB_GC;
    struct sdb_step step = {
        .elapsed_us = us,
        .wait_us = track->state == SDB_GVL_WAIT ? us : 0,
        .blocked_us = track->state == SDB_BLOCKED ? us : 0,
        .gc_us = track->state == SDB_GC ? us : 0,
        .cpu_us = runs ? us : 0,
        .unseen_us = runs || times ? (d->unseen_ns - track->unseen_ns) / 1000 : 0,
        .unseen_stack = SDB_STACK_UNKNOWN, /* it ended, or the log did: nothing says that it went on so */
        .unseen_state = SDB_UNKNOWN,
        .ticks = (uint32_t)(d->ticks - track->ticks),
        .p_state = track->state,
        .p_stack = track->stack,
        .s_state = track->state,
        .s_stack = track->stack,
    };
    if (times) {
        step.wait_us = times->wait_us;
        step.blocked_us = times->blocked_us;
        step.gc_us = times->gc_us;
        step.cpu_us = times->cpu_us < us + CPU_SLACK_US ? times->cpu_us : us + CPU_SLACK_US;
    }
    track->at = until;
    track->ticks = d->ticks;
    track->unseen_ns = d->unseen_ns;
    return sdb_attribute(t, &step);
}

int
sdb_decoder_hold(struct sdb_decoder *d, struct sdb_track *track, uint64_t until)
{
    return sdb_decoder_end(d, track, until, NULL);
}

/* The first sample of a thread, or one whose predecessor is lost: what lies before it is nobody's, unless the
 * thread was born then. */
static int
sample_without_predecessor(struct sdb_decoder *d, struct sdb_track *track, struct sdb_step *step)
{
    struct sdb_thread *t = &d->profile->threads[track->thread];
    uint64_t elapsed = step->elapsed_us * 1000;
    uint64_t start = elapsed <= d->now ? d->now - elapsed : 0;
    bool newborn = !track->seen && t->segment_count == 0 && elapsed <= d->now && t->birth != SDB_NO_TIME &&
                   (start > t->birth ? start - t->birth : t->birth - start) <= 1000;
    if (newborn) {
        t->end = start;
        step->p_state = step->s_state;
        step->p_stack = step->s_stack;
        step->ticks = 1;
        return sdb_attribute(t, step);
    }
    int err = sdb_decoder_hold(d, track, d->before);
    if (err) return err;
    if (t->segment_count == 0) {
        uint64_t first = row(d)->first;
        t->end = t->birth != SDB_NO_TIME && t->birth > first && t->birth < d->now ? t->birth : d->now;
    }
    if (t->end < d->now) {
        row(d)->loss.unknown_ns += d->now - t->end;
        err = sdb_thread_push(t, d->now - t->end, SDB_STACK_UNKNOWN, SDB_UNKNOWN, 0, 0);
    }
    t->carry_ticks++;
    return err;
}

/* The gaps in a step. Where the VM's events tell the states, a thread that ran is known to have, if not where. */
static int
unseen_fill(struct sdb_decoder *d, const struct sdb_track *track, struct sdb_step *step)
{
    step->unseen_us = (d->unseen_ns - track->unseen_ns) / 1000;
    if (step->unseen_us == 0) return SDB_OK;
    bool exact = (d->reader->identity.flags & SDB_FLAG_STATES_EXACT) != 0;
    step->unseen_state = exact || step->p_stack == step->s_stack ? SDB_RUNNING : SDB_UNKNOWN;
    uint64_t walk = d->profile->stacks[step->p_stack].depth + d->profile->stacks[step->s_stack].depth;
    d->unseen_walk += walk;
    if (d->unseen_walk > WALK_MAX) {
        step->unseen_stack = SDB_STACK_UNKNOWN;
        return SDB_OK;
    }
    return sdb_unseen_stack(d->profile, step->p_stack, step->s_stack, &step->unseen_stack);
}

static int
sample_take(struct sdb_decoder *d, struct sdb_cursor *c, uint8_t head)
{
    struct sdb_step step = {.s_state = (head >> SDB_SAMPLE_STATE_SHIFT) & 3};
    uint64_t slot = sdb_take_varint(c);
    uint64_t more = head & SDB_SAMPLE_HAS_MORE ? sdb_take_varint(c) : 0;
    int64_t node_delta = head & SDB_SAMPLE_HAS_NODE ? sdb_take_zigzag(c) : 0;
    int64_t cpu_delta = head & SDB_SAMPLE_HAS_CPU ? sdb_take_zigzag(c) : 0;
    if (head & SDB_SAMPLE_HAS_WAIT) step.wait_us = sdb_take_varint(c);
    if (head & SDB_SAMPLE_HAS_BLOCKED) step.blocked_us = sdb_take_varint(c);
    if (more & SDB_MORE_GC) step.gc_us = sdb_take_varint(c);
    if (more & SDB_MORE_AGE) {
        step.age_us = sdb_take_varint(c);
        step.has_age = true;
    }
    uint64_t elapsed_us = more & SDB_MORE_ELAPSED ? sdb_take_varint(c) : 0;
    if (c->bad) return SDB_ERR_CORRUPT;

    struct sdb_loss *loss = &row(d)->loss;
    struct sdb_track *track = slot < d->track_count ? &d->tracks[slot] : NULL;
    if (!track || track->thread == SDB_NONE || track->chunk != d->chunk) {
        loss->records_ignored++;
        return SDB_OK;
    }
    uint64_t node = (uint64_t)track->node + (uint64_t)node_delta;
    if (node > d->node_count) {
        loss->records_ignored++;
        return SDB_OK;
    }
    if (more & SDB_MORE_TORN_TOP) loss->torn_top++;
    if (more & SDB_MORE_TRUNCATED) loss->truncated++;
    if (more & SDB_MORE_NO_STACK) loss->no_stack++;
    track->node = (uint32_t)node;
    step.s_stack = node ? d->nodes[node - 1] : SDB_STACK_NO_FRAMES;

    bool joined = track->seen;
    if (more & SDB_MORE_ELAPSED) {
        uint64_t ns = elapsed_us <= SDB_REL_MAX / 1000 ? elapsed_us * 1000 : SDB_REL_MAX;
        if (joined) { /* does it begin where the last known sample was? */
            uint64_t known = d->now - track->at;
            joined = (ns > known ? ns - known : known - ns) <= 1000;
        }
        step.elapsed_us = joined ? (d->now - track->at) / 1000 : ns / 1000;
    } else {
        joined = joined && !track->fresh;
        step.elapsed_us = joined ? (d->now - track->at) / 1000 : 0;
    }
    /* cpu_us = busy_us + delta, busy_us maybe negative by rounding */
    int64_t busy = (int64_t)step.elapsed_us - (int64_t)(step.wait_us & (SDB_REL_MAX - 1)) -
                   (int64_t)(step.blocked_us & (SDB_REL_MAX - 1));
    int64_t cpu = (int64_t)((uint64_t)busy + (uint64_t)cpu_delta);
    uint64_t cpu_limit = step.elapsed_us + CPU_SLACK_US;
    step.cpu_us = cpu <= 0 ? 0 : (uint64_t)cpu < cpu_limit ? (uint64_t)cpu : cpu_limit;

    int err;
    if (joined) {
        step.uncertain_us = (d->now - d->before) / 1000;
        step.ticks = (uint32_t)(d->ticks - track->ticks);
        step.p_state = track->state;
        step.p_stack = track->stack;
        err = unseen_fill(d, track, &step);
        if (!err) err = sdb_attribute(&d->profile->threads[track->thread], &step);
    } else {
        err = sample_without_predecessor(d, track, &step);
    }
    track->seen = true;
    track->fresh = false;
    track->at = d->now;
    track->state = step.s_state;
    track->stack = step.s_stack;
    track->ticks = d->ticks;
    track->unseen_ns = d->unseen_ns;
    return err;
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
    const struct sdb_code *symbol = sdb_symbols_find(&d->symbols, code);
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
        int err = sdb_profile_string(p, symbol->name.at, symbol->name.n, &made.name);
        if (!err) err = sdb_profile_string(p, symbol->path.at, symbol->path.n, &made.path);
        if (!err) err = sdb_profile_func(p, made, &func);
        if (err) return err;
        d->line_walk += symbol->run_count;
        line = d->line_walk <= WALK_MAX ? sdb_code_line(symbol, where) : 0;
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
    if (__builtin_add_overflow((int64_t)d->interval_us, deviation_us, &us) || us <= 0) return SDB_ERR_CORRUPT;
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
    return gap_add(d, SDB_NO_TIME, us * 1000, reason >= 1 && reason <= 4 ? (uint32_t)reason : SDB_GAP_LATE);
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
            err = sample_take(d, &c, head);
        } else if (head & SDB_TICK_BIT) {
            bool gap = d->pending_unseen_ns != 0;
            err = tick_take(d, (int64_t)(head & 0x3f) - SDB_TICK_BIAS);
            if (gap && !err) gaps_place(d);
        } else if (head >= SDB_R_FIRST_SIZED) {
            struct sdb_bytes record = sdb_take_string(&c);
            if (c.bad) return SDB_ERR_CORRUPT;
            err = sdb_decoder_event(d, head, (struct sdb_cursor){record.at, record.at + record.n, false});
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
    while (!err && sdb_block_next(&at, end, h.seq, &payload)) err = block_decode(d, payload);
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
