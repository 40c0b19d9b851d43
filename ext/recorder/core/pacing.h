/* SPDX-License-Identifier: MIT
 *
 * pacing.h - when the next tick is, and how long the interval must be so that the true cost stays within its
 * budget: own CPU plus what ticks that ran on the app's own core took from it. It is judged over the last ten seconds
 * in which the app worked: idle time before a burst of requests makes none of them cheaper.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_PACING_H
#define SDB_PACING_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* what a tick on the app's core costs it beyond the scanner's own CPU: on virtual machines
     * 35 us of a spin loop, whose caches are small (`sdb doctor`), and 20 to 80 us of a
     * Rails app (`rake bench:overhead`, floor) */
    SDB_DISPLACED_NS = 60000,
    SDB_GOVERNOR_SECONDS = 10,
    SDB_INTERVAL_STEPS_MAX = 5, /* nominal interval x 32 */
};

struct sdb_pacing_use { /* totals since the start */
    uint64_t cpu_ns;    /* of the scanner */
    uint64_t displaced; /* ticks that took the core from the app */
    uint64_t worked_ns; /* time in which threads of the app ran */
};

struct sdb_pacing {
    uint64_t nominal_ns, interval_ns, deadline_ns;
    uint64_t max_cpu_ppm;                   /* of one core; 0: no governor */
    uint64_t displaced_ns;                  /* cost of one displaced tick */
    uint32_t step;                          /* interval = nominal << step */
    uint64_t cost_ns[SDB_GOVERNOR_SECONDS]; /* of the last seconds in which the app worked */
    uint64_t span_ns[SDB_GOVERNOR_SECONDS];
    uint32_t seconds; /* so many at this interval */
    uint32_t quiet;   /* seconds since then */
    struct sdb_pacing_use last;
    uint64_t last_at_ns;
};

void sdb_pacing_init(struct sdb_pacing *p, uint64_t interval_ns, uint64_t max_cpu_ppm,
                     uint64_t now_ns);
/* Deadline of the next tick. Never in the past: missed ticks are not made up for. */
uint64_t sdb_pacing_next(struct sdb_pacing *p, uint64_t now_ns);
/* True when a tick that begins now is late by more than half an interval. */
bool sdb_pacing_late(const struct sdb_pacing *p, uint64_t now_ns);
/* Once a second. True when the interval changed. */
bool sdb_pacing_govern(struct sdb_pacing *p, const struct sdb_pacing_use *use, uint64_t now_ns);

#endif
