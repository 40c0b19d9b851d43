/* SPDX-License-Identifier: MIT - test_pacing.c - deadlines, and the governor that lengthens the interval. */
#include "core/pacing.h"
#include "t.h"

enum { MS = 1000000, BUDGET_PPM = 50000 };
static const uint64_t SECOND = 1000000000ull;

static void
missed_ticks_are_skipped_on_the_grid(void)
{
    struct sdb_pacing p;

    sdb_pacing_init(&p, MS, 0, 0);
    CHECK_EQ(sdb_pacing_next(&p, 0), MS);
    CHECK_EQ(sdb_pacing_next(&p, 5 * MS + 100), 6 * MS);
    CHECK(!sdb_pacing_late(&p, 6 * MS + MS / 2));
    CHECK(sdb_pacing_late(&p, 6 * MS + MS / 2 + 1));
}

static void
too_dear_for_its_budget_it_ticks_more_rarely_and_later_again_more_often(void)
{
    struct sdb_pacing p;
    uint64_t now = 0, cpu = 0;

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    CHECK(!sdb_pacing_govern(&p, cpu, 0, now));
    CHECK(sdb_pacing_govern(&p, cpu += SECOND / 10, 0, now += SECOND)); /* 10 % of a core */
    CHECK_EQ(p.interval_ns, 2 * MS);
    for (int i = 0; i < 20; i++)
        sdb_pacing_govern(&p, cpu += SECOND / 25, 0, now += SECOND); /* 4 %: as it should be */
    CHECK_EQ(p.interval_ns, 2 * MS);
    for (int i = 0; i < 20; i++)
        sdb_pacing_govern(&p, cpu += SECOND / 100, 0, now += SECOND); /* 1 % */
    CHECK_EQ(p.interval_ns, MS);
}

static void
displaced_ticks_count_as_cost(void)
{
    struct sdb_pacing p;

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    sdb_pacing_govern(&p, 0, 0, 0);
    CHECK(sdb_pacing_govern(&p, 0, SECOND / SDB_DISPLACED_NS / 10, SECOND));
}

static void
neither_the_start_nor_a_short_run_are_judged(void)
{
    struct sdb_pacing p;

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    CHECK(!sdb_pacing_govern(&p, 5 * MS, 0, 10 * MS));
    CHECK(
        !sdb_pacing_govern(&p, 30 * MS, 0, 200 * MS)); /* the last one, when the recording stops */
    CHECK_EQ(p.interval_ns, MS);
}

static void
without_a_budget_nothing_changes(void)
{
    struct sdb_pacing p;

    sdb_pacing_init(&p, MS, 0, 0);
    for (uint64_t s = 1; s < 20; s++) CHECK(!sdb_pacing_govern(&p, s * SECOND, 0, s * SECOND));
    CHECK_EQ(p.interval_ns, MS);
}

int
main(void)
{
    RUN(missed_ticks_are_skipped_on_the_grid);
    RUN(too_dear_for_its_budget_it_ticks_more_rarely_and_later_again_more_often);
    RUN(displaced_ticks_count_as_cost);
    RUN(neither_the_start_nor_a_short_run_are_judged);
    RUN(without_a_budget_nothing_changes);
    return t_done();
}
