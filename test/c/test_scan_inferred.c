/* SPDX-License-Identifier: MIT - test_scan_inferred.c - states of Ruby 3.1, which reports no thread events: from CPU clocks
 * that the test moves. */
#include "scan_log.h"

#include "scan/event_feed.h"
#include "scan/upkeep.h"
#include "scan/walk.h"

enum { MANY = 40 };

static struct fake_ment ment_a, ment_b;
static const uint64_t iseq_a[4], iseq_b[4];
static struct fake_thread t, many[MANY];

static void
begin(void)
{
    fake_begin(false);
    world.thread_cpu_ns[1] = 7 * MS;
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
    fake_tick();
}

/* A tick before which the thread used so much CPU. */
static void
tick_with(uint64_t cpu_ns)
{
    world.thread_cpu_ns[1] += cpu_ns;
    world.process_cpu_ns += cpu_ns;
    fake_tick();
}

static uint64_t
state_of(const struct fake_thread *thread)
{
    return ((const struct sdb_scan *)(uintptr_t)thread->slot->scan)->state;
}

static void
who_used_half_of_the_interval_ran_all_of_it(void)
{
    begin();
    tick_with(600000);
    CHECK_EQ(state_of(&t), SDB_RUNNING);
    log_read();
    CHECK_EQ(log_sample(-1)->blocked_us, 0);
}

static void
who_used_less_was_blocked_for_the_rest(void)
{
    begin();
    tick_with(MS);
    tick_with(100000);
    CHECK_EQ(state_of(&t), SDB_BLOCKED);
    for (int i = 0; i < 3; i++) tick_with(0);
    tick_with(MS);
    log_read();
    const struct walk_record *stopped = log_sample(-2), *again = log_sample(-1);
    CHECK_EQ(stopped->blocked_us, 900);
    CHECK_EQ(stopped->busy_us, 100);
    CHECK_EQ(again->state, SDB_RUNNING);
    CHECK_EQ(again->blocked_us, 3000);
    CHECK_EQ(again->busy_us, 1000);
}

static void
less_than_a_microsecond_is_noise(void)
{
    begin();
    tick_with(MS);
    tick_with(0);
    uint64_t scans = fake.scanner.counters[SDB_C_SCANS];
    for (int i = 0; i < 20; i++) tick_with(900);
    CHECK_EQ(state_of(&t), SDB_BLOCKED);
    CHECK(fake.scanner.counters[SDB_C_SCANS] <= scans + 1);
    log_read();
}

static void
what_it_waits_in_is_read_once_it_stands(void)
{
    begin();
    tick_with(MS);
    fake_call(&t, (uint64_t)(uintptr_t)iseq_b, fake_ment(&ment_b), 8); /* it went into a wait */
    tick_with(50000);
    tick_with(0);
    tick_with(0);
    log_read();
    CHECK_EQ(log_sample(-1)->state, SDB_BLOCKED);
    CHECK_EQ(log_depth(log_sample(-1)), 2);
}

static void
a_gc_seen_at_a_tick_is_the_running_threads_state(void)
{
    begin();
    tick_with(MS);
    world.gc = 1;
    tick_with(MS);
    world.gc = 0;
    tick_with(MS);
    log_read();
    CHECK_EQ(log_sample(-2)->state, SDB_GC);
    CHECK_EQ(log_sample(-2)->gc_us, 1000);
    CHECK_EQ(log_sample(-1)->state, SDB_RUNNING);
}

static void
a_thread_that_was_killed_is_known_by_its_cleared_stack(void)
{
    begin();
    tick_with(MS);
    t.ec[0] = 0;
    tick_with(MS);
    sdb_store_release(&fake.mailbox.alive, 0);
    fake_tick();
    CHECK_EQ(t.slot->life, SDB_SLOT_RETIRED);
    log_read();
    CHECK_EQ(log_count(SDB_R_THREAD_END), 1);
}

static void
a_thread_that_told_its_end_has_its_last_cpu_and_waits(void)
{
    begin();
    tick_with(MS);
    sdb_store_release(&fake.mailbox.alive, 0);
    world.now_ns = (world.now_ns / MS + 1) * MS - 200000;
    sdb_thread_ended(&fake.threads, t.slot, world.now_ns, world.thread_cpu_ns[1] + 100000);
    fake_tick();
    log_read();
    CHECK_EQ(log_count(SDB_R_THREAD_END), 1);
}

static void
begin_many(void)
{
    fake_begin(false);
    for (int i = 0; i < MANY; i++) {
        world.thread_cpu_ns[i + 1] = MS;
        fake_thread_begin(&many[i], (uint32_t)i + 1, SDB_RUNNING);
        fake_call(&many[i], (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
    }
    world.process_cpu_ns = 1000 * MS;
    for (int i = 0; i < 60; i++)
        fake_tick(); /* their clocks stand: they are looked at ever more rarely */
}

static void
work_of(int i, uint64_t cpu_ns)
{
    world.thread_cpu_ns[i + 1] += cpu_ns;
    world.process_cpu_ns += cpu_ns;
}

static void
among_many_a_thread_that_ran_unexpectedly_is_found_at_this_tick(void)
{
    begin_many();
    work_of(MANY - 1, 300000);
    fake_call(&many[MANY - 1], (uint64_t)(uintptr_t)iseq_b, fake_ment(&ment_b), 8);
    fake_tick();
    fake_tick();
    CHECK_EQ(((struct sdb_scan *)(uintptr_t)many[MANY - 1].slot->scan)->depth, 2);
    log_read();
}

static void
among_many_nobody_is_asked_while_the_process_uses_nothing(void)
{
    begin_many();
    uint64_t scans = fake.scanner.counters[SDB_C_SCANS];
    for (int i = 0; i < 100; i++) fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_SCANS], scans);
    CHECK(fake.scanner.tick.idle >= 100);
    log_read();
}

static void
among_many_one_that_works_is_followed_and_another_that_wakes_is_found(void)
{
    begin_many();
    for (int i = 0; i < 10; i++) {
        work_of(0, MS);
        fake_tick();
    }
    CHECK_EQ(state_of(&many[0]), SDB_RUNNING);
    /* the first stops after 0.4 ms, another runs for the rest */
    work_of(0, 400000);
    work_of(7, 600000);
    fake_tick();
    CHECK_EQ(state_of(&many[7]), SDB_RUNNING);
    work_of(7, MS);
    fake_tick();
    CHECK_EQ(state_of(&many[0]), SDB_BLOCKED);
    log_read();
}

static void
a_clock_read_late_is_not_held_against_the_process_for_ever(void)
{
    begin_many();
    for (int i = 0; i < 30; i++) {
        world.thread_cpu_ns[1] += MS; /* its own clock goes on, the process' does not yet */
        fake_tick();
    }
    CHECK(fake.scanner.inferred.unexplained_ns >= -MS);
    log_read();
}

static void
a_tick_that_shares_its_core_is_counted_where_that_is_known(void)
{
    begin();
    world.one_cpu = true;
    sdb_upkeep_second(&fake.scanner);
    tick_with(MS);
    CHECK_EQ(fake.scanner.counters[SDB_C_DISPLACED_TICKS], 1);
    log_read();
}

static void
an_event_of_its_own_says_that_it_ran(void)
{
    begin();
    tick_with(MS);
    for (int i = 0; i < 10; i++) tick_with(0);
    fake_call(&t, (uint64_t)(uintptr_t)iseq_b, fake_ment(&ment_b), 8);
    const struct sdb_switch_event to = {.id = 0};
    CHECK(
        sdb_events_push(&fake.threads, t.slot, SDB_E_SPAN_SWITCH, world.now_ns, &to, sizeof to, 0));
    tick_with(0);
    tick_with(0);
    CHECK_EQ(((struct sdb_scan *)(uintptr_t)t.slot->scan)->depth, 2);
    log_read();
}

/* ---- on a thread of its own: where nothing wakes it, it looks more rarely ---- */

static int sleeps;
static uint64_t longest_ns, before_ns;

static void
while_it_sleeps(void)
{
    if (before_ns && world.now_ns - before_ns > longest_ns) longest_ns = world.now_ns - before_ns;
    before_ns = world.now_ns;
    if (++sleeps == 2000) sdb_store_release(&fake.scanner.stop, 1);
}

static void *
run(void *sc)
{
    sdb_scanner_run(sc);
    return NULL;
}

static void
an_idle_process_is_looked_at_each_ten_ms_and_asked_whether_it_hangs(void)
{
    pthread_t thread;
    begin();
    sleeps = 0;
    longest_ns = before_ns = 0;
    world.slept = while_it_sleeps;
    NEED(pthread_create(&thread, NULL, run, &fake.scanner) == 0);
    pthread_join(thread, NULL);
    CHECK(longest_ns > 9 * MS && longest_ns < 11 * MS);
    CHECK_EQ(fake.mailbox.asked & SDB_ASK_IDLE, SDB_ASK_IDLE);
    log_read();
    CHECK_EQ(log_sample(-1)->state, SDB_BLOCKED);
}

int
main(void)
{
    RUN(who_used_half_of_the_interval_ran_all_of_it);
    RUN(who_used_less_was_blocked_for_the_rest);
    RUN(less_than_a_microsecond_is_noise);
    RUN(what_it_waits_in_is_read_once_it_stands);
    RUN(a_gc_seen_at_a_tick_is_the_running_threads_state);
    RUN(a_thread_that_was_killed_is_known_by_its_cleared_stack);
    RUN(a_thread_that_told_its_end_has_its_last_cpu_and_waits);
    RUN(among_many_a_thread_that_ran_unexpectedly_is_found_at_this_tick);
    RUN(among_many_nobody_is_asked_while_the_process_uses_nothing);
    RUN(among_many_one_that_works_is_followed_and_another_that_wakes_is_found);
    RUN(a_clock_read_late_is_not_held_against_the_process_for_ever);
    RUN(a_tick_that_shares_its_core_is_counted_where_that_is_known);
    RUN(an_event_of_its_own_says_that_it_ran);
    RUN(an_idle_process_is_looked_at_each_ten_ms_and_asked_whether_it_hangs);
    return t_done();
}
