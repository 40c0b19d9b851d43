/* SPDX-License-Identifier: MIT
 *
 * samples.c - SAMPLE records: the last sample of a thread and the next make a step, whose time is dealt out by
 * attribution.c; what follows the last of all.
 *
 * Runs on: offline
 */
#include "error.h"
#include "profile/attribution.h"
#include "profile/decoder.h"

enum {
    CPU_SLACK_US = 100000
}; /* more CPU than time by at most so much: the clocks are read one after the other */

static struct sdb_ring_row *
row(struct sdb_decoder *d)
{
    return &d->profile->rings[d->ring];
}

static uint64_t
us_up(uint64_t ns)
{
    return (ns + 999) / 1000;
}

int
sdb_decoder_end(struct sdb_decoder *d, struct sdb_track *track, uint64_t until,
                const struct sdb_last_times *times)
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
        .unseen_stack =
            SDB_STACK_UNKNOWN, /* it ended, or the log did: nothing says that it went on so */
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
    /* nobody looked again since the time counts for something else */
    struct sdb_division division;
    if (sdb_labels_divide(d->profile, &track->labels, d->before, until, &division)) {
        step.has_change = true;
        step.after_change_us = us_up(until - division.first);
        step.uncertain_us = us;
        step.s_stack = SDB_STACK_UNKNOWN;
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
    bool newborn = !track->seen && t->segment_count == 0 && elapsed <= d->now &&
                   t->birth != SDB_NO_TIME &&
                   (start > t->birth ? start - t->birth : t->birth - start) <= 1000;
    if (newborn) {
        t->end = start;
        step->p_state = step->s_state;
        step->p_stack = step->s_stack;
        step->ticks = 1;
        struct sdb_division division;
        if (sdb_labels_divide(d->profile, &track->labels, start, d->now, &division)) {
            step->has_change = true; /* and only what lies behind it is known */
            step->after_change_us = us_up(d->now - division.last);
            step->hidden_us = step->elapsed_us;
            step->uncertain_us = step->elapsed_us;
        }
        return sdb_attribute(t, step);
    }
    int err = sdb_decoder_hold(d, track, d->before);
    if (err) return err;
    if (t->segment_count == 0) {
        uint64_t first = row(d)->first;
        t->end =
            t->birth != SDB_NO_TIME && t->birth > first && t->birth < d->now ? t->birth : d->now;
    }
    if (t->end < d->now) {
        row(d)->loss.unknown_ns += d->now - t->end;
        err = sdb_thread_push(t, d->now - t->end, SDB_STACK_UNKNOWN, SDB_UNKNOWN, 0, 0);
    }
    t->carry_ticks++;
    return err;
}

/* The gaps in a step. Where the VM's events tell the states, a thread that used CPU is known to have run, if not
 * where. */
static int
unseen_fill(struct sdb_decoder *d, const struct sdb_track *track, struct sdb_step *step)
{
    step->unseen_us = (d->unseen_ns - track->unseen_ns) / 1000;
    if (step->unseen_us == 0) return SDB_OK;
    bool exact = (d->reader->identity.flags & SDB_FLAG_STATES_EXACT) != 0;
    step->blocked_is_guess = !exact;
    step->unseen_state = exact || step->p_stack == step->s_stack ? SDB_RUNNING : SDB_UNKNOWN;
    if (step->hidden_us) {
        step->unseen_stack = SDB_STACK_UNKNOWN; /* nor is what both agree on certain there */
        return SDB_OK;
    }
    uint64_t walk =
        d->profile->stacks[step->p_stack].depth + d->profile->stacks[step->s_stack].depth;
    d->unseen_walk += walk;
    if (d->unseen_walk > SDB_WALK_MAX) {
        step->unseen_stack = SDB_STACK_UNKNOWN;
        return SDB_OK;
    }
    return sdb_unseen_stack(d->profile, step->p_stack, step->s_stack, &step->unseen_stack);
}

void
sdb_decoder_changes(const struct sdb_decoder *d, struct sdb_thread *t)
{
    struct sdb_reader_changes *now = &t->changes, *early = &t->early_changes;
    if (early->first == 0 || early->first > d->now) return;
    if (now->last <= d->before) now->first = early->first;
    now->last = early->last;
    *early = (struct sdb_reader_changes){0, 0};
}

static void
change_fill(const struct sdb_decoder *d, struct sdb_track *track, struct sdb_step *step)
{
    struct sdb_thread *t = &d->profile->threads[track->thread];
    struct sdb_division division;
    sdb_decoder_changes(d, t);
    if (sdb_labels_divide(d->profile, &track->labels, d->before, d->now, &division)) {
        step->has_change = true;
        step->after_change_us = us_up(d->now - division.last);
        step->hidden_us = us_up(d->now - division.first) - step->after_change_us;
        return;
    }
    const struct sdb_reader_changes *c = &t->changes;
    if (c->last <= d->before) return;
    uint64_t middle = c->first + (c->last - c->first) / 2;
    step->has_change = true;
    step->after_change_us = middle < d->now ? us_up(d->now - middle) : 0;
}

int
sdb_decoder_sample(struct sdb_decoder *d, struct sdb_cursor *c, uint8_t head)
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
        change_fill(d, track, &step);
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
