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

/* A second in which the app worked for `worked` of 100, and the scanner for `cpu` of 1000. */
static bool
second(struct sdb_pacing *p, uint64_t cpu, uint64_t worked)
{
    struct sdb_pacing_use use = p->last;

    use.cpu_ns += cpu * SECOND / 1000;
    use.worked_ns += worked * SECOND / 100;
    return sdb_pacing_govern(p, &use, p->last_at_ns + SECOND);
}

static void
too_dear_for_its_budget_it_ticks_more_rarely_and_later_again_more_often(void)
{
    struct sdb_pacing p;

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    CHECK(!second(&p, 100, 100)); /* 10 % of a core, once */
    CHECK(second(&p, 100, 100));
    CHECK_EQ(p.interval_ns, 2 * MS);
    for (int i = 0; i < 20; i++) second(&p, 40, 100); /* 4 %: as it should be */
    CHECK_EQ(p.interval_ns, 2 * MS);
    for (int i = 0; i < 3; i++) CHECK(!second(&p, 10, 100)); /* 1 %: not yet, by all ten */
    for (int i = 0; i < SDB_GOVERNOR_SECONDS; i++) second(&p, 10, 100);
    CHECK_EQ(p.interval_ns, MS);
}

static void
idle_seconds_make_no_busy_one_cheaper(void)
{
    struct sdb_pacing p;
    int busy = 0;

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    for (int i = 0; i < 40 && p.step == 0; i++) {
        if (i % 10 == 9) busy++, second(&p, 80, 100);
        else second(&p, 4, 5);
    }
    CHECK_EQ(p.interval_ns, 2 * MS);
    CHECK_EQ(busy, 2);
    for (int i = 0; i < 100; i++) CHECK(!second(&p, 0, 0));
    for (int i = 0; i < SDB_GOVERNOR_SECONDS - 1; i++) CHECK(!second(&p, 2, 5));
    CHECK(second(&p, 2, 5)); /* little to do for long: it can again */
    CHECK_EQ(p.interval_ns, MS);
}

static void
an_idle_app_that_costs_too_much_is_judged_too(void)
{
    struct sdb_pacing p;

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    second(&p, 60, 30);
    CHECK(second(&p, 60, 30));
}

static void
displaced_ticks_count_as_cost(void)
{
    struct sdb_pacing p;
    struct sdb_pacing_use use = {0};

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    for (int i = 1; i <= 2; i++) {
        use.displaced += SECOND / SDB_DISPLACED_NS / 10;
        use.worked_ns += SECOND;
        CHECK_EQ(sdb_pacing_govern(&p, &use, (uint64_t)i * SECOND), i == 2);
    }
}

static void
neither_the_start_nor_a_short_run_are_judged(void)
{
    struct sdb_pacing p;
    struct sdb_pacing_use use = {.cpu_ns = 5 * MS, .worked_ns = 10 * MS};

    sdb_pacing_init(&p, MS, BUDGET_PPM, 0);
    CHECK(!sdb_pacing_govern(&p, &use, 10 * MS));
    use = (struct sdb_pacing_use){.cpu_ns = 30 * MS, .worked_ns = 200 * MS};
    CHECK(!sdb_pacing_govern(&p, &use, 200 * MS)); /* the last one, when the recording stops */
    CHECK_EQ(p.interval_ns, MS);
}

static void
without_a_budget_nothing_changes(void)
{
    struct sdb_pacing p;

    sdb_pacing_init(&p, MS, 0, 0);
    for (uint64_t s = 1; s < 20; s++) CHECK(!second(&p, 1000, 100));
    CHECK_EQ(p.interval_ns, MS);
}

int
main(void)
{
    RUN(missed_ticks_are_skipped_on_the_grid);
    RUN(too_dear_for_its_budget_it_ticks_more_rarely_and_later_again_more_often);
    RUN(idle_seconds_make_no_busy_one_cheaper);
    RUN(an_idle_app_that_costs_too_much_is_judged_too);
    RUN(displaced_ticks_count_as_cost);
    RUN(neither_the_start_nor_a_short_run_are_judged);
    RUN(without_a_budget_nothing_changes);
    return t_done();
}
