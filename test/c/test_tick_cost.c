/* SPDX-License-Identifier: MIT - test_tick_cost.c - the measurement ends in time and with figures that can be. */
#include "core/tick_cost.c" /* used by `sdb doctor` alone, so not among the core's units; defines _GNU_SOURCE */

#include "t.h"

static void
a_measurement_is_plausible_and_ends_in_time(void)
{
    struct sdb_tick_cost cost = {0};
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    CHECK_EQ(sdb_tick_cost_measure(400000000, &cost), 0);
    uint64_t took = clock_ns(CLOCK_MONOTONIC) - begin;
    CHECK(took < 3000000000ull);
    CHECK(cost.ticks > 20);
    CHECK(cost.cpus >= 1);
    CHECK(cost.own_cpu_ns > 100 && cost.own_cpu_ns < 500000);
    /* on a crowded host anything can come out, and the result says so */
    CHECK(cost.disturbed || (cost.same_core_ns > -200000 && cost.same_core_ns < 1000000));
    if (cost.cpus == 1) CHECK_EQ(cost.other_core_ns, 0);
    printf("same core %" PRId64 " +-%" PRId64 " ns, other %" PRId64 " +-%" PRId64
           " ns, own %" PRIu64 " ns, %u ticks, %s\n",
           cost.same_core_ns, cost.same_off_ns, cost.other_core_ns, cost.other_off_ns,
           cost.own_cpu_ns, cost.ticks, cost.disturbed ? "disturbed" : "undisturbed");
}

static void
it_leaves_signals_and_affinity_of_the_caller_alone(void)
{
    sigset_t before, after;
    cpu_set_t cpus_before, cpus_after;
    struct sdb_tick_cost cost;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sched_getaffinity(0, sizeof(cpus_before), &cpus_before);
    CHECK_EQ(sdb_tick_cost_measure(200000000, &cost), 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    sched_getaffinity(0, sizeof(cpus_after), &cpus_after);
    CHECK(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGUSR2) == 0);
    CHECK(CPU_EQUAL(&cpus_before, &cpus_after));
}

static void
budgets_out_of_range_are_refused_and_leave_the_result_alone(void)
{
    struct sdb_tick_cost cost = {.ticks = 42};
    CHECK_EQ(sdb_tick_cost_measure(0, &cost), SDB_ERR_INVALID);
    CHECK_EQ(sdb_tick_cost_measure(20000000000ull, &cost), SDB_ERR_INVALID);
    CHECK_EQ(cost.ticks, 42);
}

static void
the_median_and_its_distance(void)
{
    int64_t values[] = {5, 1, 3, 100, 4, 2, 6, 7, -50}, off;
    CHECK_EQ(median(values, 9, &off), 4);
    CHECK_EQ(off, (6 - 2) / 3); /* quartiles 2 and 6, sqrt(9) */
    CHECK_EQ(median(values, 0, &off), 0);
}

int
main(void)
{
    RUN(a_measurement_is_plausible_and_ends_in_time);
    RUN(it_leaves_signals_and_affinity_of_the_caller_alone);
    RUN(budgets_out_of_range_are_refused_and_leave_the_result_alone);
    RUN(the_median_and_its_distance);
    return t_done();
}
