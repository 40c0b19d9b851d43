/* SPDX-License-Identifier: MIT
 *
 * tick_cost.h - what an empty wake-up costs on this host: to a busy thread on the same core, to one on another core, and to
 * the thread that wakes up. The floor of every sampler that wakes up; see PROTOCOL.md, budget.
 *
 * Runs on: any thread without the GVL; for `sdb doctor`
 */
#ifndef SDB_TICK_COST_H
#define SDB_TICK_COST_H

#include <stdbool.h>
#include <stdint.h>

enum { SDB_TICK_COST_INTERVAL_NS = 1000000 };

struct sdb_tick_cost { /* ns a tick; medians of paired slices */
    /* what a spinning thread on the ticking core loses; may be below 0 by noise */
    int64_t same_core_ns;
    int64_t same_off_ns;   /* how far off that may be */
    int64_t other_core_ns; /* what one on another core loses; 0 when cpus is 1 */
    int64_t other_off_ns;
    uint64_t own_cpu_ns; /* what the ticking thread's own CPU clock shows */
    uint32_t cpus;       /* that this process may run on */
    uint32_t ticks;      /* measured */
    bool disturbed; /* other programs used the core: the figures are by CPU clocks, a little low */
};

/* Spins on one core (two where it may) for about `budget_ns` (0.2 to 10 s, else SDB_ERR_INVALID; at most twice that on a crowded host) with two threads of
 * its own. 0, SDB_ERR_THREAD when they cannot be started, SDB_ERR_UNSUPPORTED when they cannot be kept on a core.
 * Blocks. Allocates only the threads. */
int sdb_tick_cost_measure(uint64_t budget_ns, struct sdb_tick_cost *out);

#endif
