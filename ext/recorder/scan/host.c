/* SPDX-License-Identifier: MIT
 *
 * host.c - see host.h: the machine itself.
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include "scan/host.h"

#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/memory_probe.h"

static uint64_t
realtime_ns(void)
{
    return sdb_clock_ns(CLOCK_REALTIME);
}

static uint64_t
thread_cpu_ns(uint32_t tid)
{
    return sdb_clock_ns(sdb_thread_cpu_clock(tid));
}

static uint64_t
own_cpu_ns(void)
{
    return sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static uint64_t
process_cpu_ns(void)
{
    return sdb_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static bool
one_cpu(void)
{
    cpu_set_t cpus;
    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1;
}

static struct timespec
timespec_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000ull),
                             .tv_nsec = (long)(ns % 1000000000ull)};
}

static void
sleep_until(uint64_t deadline_ns)
{
    struct timespec t = timespec_of(deadline_ns);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void
wait_parked(uint64_t *parked, uint64_t timeout_ns)
{
    struct timespec t = timespec_of(timeout_ns);
    uint32_t yes = 1;
    syscall(SYS_futex, parked, FUTEX_WAIT_PRIVATE, yes, timeout_ns ? &t : NULL, NULL, 0);
}

static int
no_gc(void)
{
    return 0;
}

static void
nothing(void)
{
}

const struct sdb_host sdb_real_host = {
    .monotonic_ns = sdb_monotonic_ns,
    .realtime_ns = realtime_ns,
    .thread_cpu_ns = thread_cpu_ns,
    .own_cpu_ns = own_cpu_ns,
    .process_cpu_ns = process_cpu_ns,
    .cpu = sched_getcpu,
    .one_cpu = one_cpu,
    .sleep_until = sleep_until,
    .wait_parked = wait_parked,
    .read_memory = sdb_memory_probe_read,
    .read_process_memory = sdb_memory_probe_status,
    .during_gc = no_gc,
    .request_symbolizer = nothing,
};
