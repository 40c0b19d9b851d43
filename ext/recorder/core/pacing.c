/* SPDX-License-Identifier: MIT
 *
 * pacing.c - see pacing.h.
 */
#include "core/pacing.h"

#include <string.h>

enum { BRIEF_NS = 900000000 };

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

bool
sdb_pacing_govern(struct sdb_pacing *p, uint64_t cpu_ns, uint64_t displaced, uint64_t now_ns)
{
    uint32_t i = p->second++ % SDB_GOVERNOR_SECONDS;
    p->cost_ns[i] = cpu_ns - p->last_cpu_ns + (displaced - p->last_displaced) * p->displaced_ns;
    p->span_ns[i] = now_ns - p->last_at_ns;
    p->last_cpu_ns = cpu_ns;
    p->last_displaced = displaced;
    p->last_at_ns = now_ns;
    if (!p->max_cpu_ppm) return false;

    uint64_t cost = 0, span = 0;
    for (int k = 0; k < SDB_GOVERNOR_SECONDS; k++) {
        cost += p->cost_ns[k];
        span += p->span_ns[k];
    }
    /* the first seconds have no history: act on what there is, but not on the start alone or a short run */
    if (p->second < 2 || span < BRIEF_NS) return false;
    uint64_t ppm = cost * 1000000 / span;
    uint32_t step = p->step;
    if (ppm > p->max_cpu_ppm && step < SDB_INTERVAL_STEPS_MAX) step++;
    else if (step > 0 && ppm * 5 < p->max_cpu_ppm * 2)
        step--; /* halving the interval may double the cost */
    if (step == p->step) return false;
    p->step = step;
    p->interval_ns = p->nominal_ns << step;
    memset(p->cost_ns, 0, sizeof p->cost_ns); /* what came before was at another interval */
    memset(p->span_ns, 0, sizeof p->span_ns);
    p->second = 0;
    return true;
}
