/* SPDX-License-Identifier: MIT
 *
 * clock.h - the clocks, in ns. Runs on: any.
 */
#ifndef SDB_CLOCK_H
#define SDB_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
sdb_clock_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t) != 0) return 0;
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static inline uint64_t
sdb_monotonic_ns(void)
{
    return sdb_clock_ns(CLOCK_MONOTONIC);
}

/* CPU clock of thread `tid` of this process: what pthread_getcpuclockid computes, from a tid, so that no
 * pthread_t of a thread that may be gone is touched (linux/kernel/time/posix-cpu-timers.c). */
static inline clockid_t
sdb_thread_cpu_clock(uint32_t tid)
{
    return (clockid_t)((~(unsigned)tid << 3) | 6u);
}

#endif
