/* SPDX-License-Identifier: MIT
 *
 * pacing.c - see pacing.h.
 */
#include "core/pacing.h"

#include <string.h>

enum {
    BRIEF_NS = 900000000,
    IDLE_PART = 50,  /* less work than this part of a second is none */
    JUDGED_FROM = 2, /* seconds at an interval: the first one also names what was never seen */
};

void
sdb_pacing_init(struct sdb_pacing *p, uint64_t interval_ns, uint64_t max_cpu_ppm, uint64_t now_ns)
{
    memset(p, 0, sizeof *p);
    p->nominal_ns = p->interval_ns = interval_ns;
    p->max_cpu_ppm = max_cpu_ppm;
    p->displaced_ns = SDB_DISPLACED_NS;
    p->deadline_ns = now_ns;
    p->last_at_ns = now_ns;
}

uint64_t
sdb_pacing_next(struct sdb_pacing *p, uint64_t now_ns)
{
    p->deadline_ns += p->interval_ns;
    if (p->deadline_ns <= now_ns) {
        /* keep the grid, skip what was missed: a burst would cost the app most when it is busiest */
        p->deadline_ns +=
            (now_ns - p->deadline_ns) / p->interval_ns * p->interval_ns + p->interval_ns;
    }
    return p->deadline_ns;
}

bool
sdb_pacing_late(const struct sdb_pacing *p, uint64_t now_ns)
{
    return now_ns > p->deadline_ns + p->interval_ns / 2;
}

static bool
change(struct sdb_pacing *p, uint32_t step)
{
    p->step = step;
    p->interval_ns = p->nominal_ns << step;
    memset(p->cost_ns, 0, sizeof p->cost_ns); /* what came before was at another interval */
    memset(p->span_ns, 0, sizeof p->span_ns);
    p->seconds = p->quiet = 0;
    return true;
}

/* Halving the interval may double the cost. */
static bool
affords_half(const struct sdb_pacing *p, uint64_t ppm)
{
    return p->step > 0 && ppm * 5 < p->max_cpu_ppm * 2;
}

bool
sdb_pacing_govern(struct sdb_pacing *p, const struct sdb_pacing_use *use, uint64_t now_ns)
{
    uint64_t cost = use->cpu_ns - p->last.cpu_ns +
                    (use->displaced - p->last.displaced) * p->displaced_ns,
             worked = use->worked_ns - p->last.worked_ns, span = now_ns - p->last_at_ns;
    p->last = *use;
    p->last_at_ns = now_ns;
    /* neither the start alone nor the rest of a second when the recording stops */
    if (!p->max_cpu_ppm || span < BRIEF_NS) return false;

    uint64_t ppm = cost * 1000000 / span;
    if (worked * 2 < span && ppm <= p->max_cpu_ppm) {
        if (worked * IDLE_PART < span) return false; /* says nothing about when it works */
        bool long_quiet = ++p->quiet >= SDB_GOVERNOR_SECONDS;
        return long_quiet && affords_half(p, ppm) ? change(p, p->step - 1) : false;
    }
    p->quiet = 0;
    uint32_t i = p->seconds++ % SDB_GOVERNOR_SECONDS;
    p->cost_ns[i] = cost;
    p->span_ns[i] = span;
    if (p->seconds < JUDGED_FROM) return false;
    cost = span = 0;
    for (int k = 0; k < SDB_GOVERNOR_SECONDS; k++) {
        cost += p->cost_ns[k];
        span += p->span_ns[k];
    }
    ppm = cost * 1000000 / span;
    if (ppm > p->max_cpu_ppm && p->step < SDB_INTERVAL_STEPS_MAX) return change(p, p->step + 1);
    if (p->seconds >= SDB_GOVERNOR_SECONDS && affords_half(p, ppm)) return change(p, p->step - 1);
    return false;
}
