/* SPDX-License-Identifier: MIT - test_scan_states.c - what a tick writes of a thread's state, times, name and end, with GVL
 * events (Ruby 3.2 and later). */
#define _GNU_SOURCE 1 /* memmem */
#include "scan_log.h"

#include "scan/event_feed.h"
#include "scan/upkeep.h"
#include "scan/walk.h"

static struct fake_ment ment_a, ment_b;
static const uint64_t iseq_a[4], iseq_b[4];
static struct fake_thread t, other;

static void
begin(uint64_t state)
{
    fake_begin(true);
    fake_tick(); /* the first chunk begins: after it a thread is looked at once a tick */
    fake_thread_begin(&t, 1, state);
    fake_call(&t, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
}

/* The thread enters a state so long before the next tick. */
static void
enter_before_tick(struct fake_thread *thread, uint64_t state, uint64_t ns)
{
    world.now_ns = (world.now_ns / MS + 1) * MS - ns;
    fake_enter(thread, state);
}

static void
waits_and_blocks_are_exact_to_the_moment(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    enter_before_tick(&t, SDB_BLOCKED, 300000);
    fake_tick();
    enter_before_tick(&t, SDB_GVL_WAIT, 200000);
    fake_tick();
    enter_before_tick(&t, SDB_RUNNING, 100000);
    fake_tick();
    log_read();
    NEED(log_count(WALK_SAMPLE) >= 4);
    const struct walk_record *blocked = log_sample(1), *waiting = log_sample(2),
                             *running = log_sample(3);
    CHECK_EQ(blocked->state, SDB_BLOCKED);
    CHECK_EQ(blocked->age_us, 300);
    CHECK_EQ(blocked->blocked_us, 300);
    CHECK_EQ(waiting->state, SDB_GVL_WAIT);
    CHECK_EQ(waiting->age_us, 200);
    CHECK_EQ(waiting->blocked_us, 800); /* 0.3 ms before the tick before, 0.8 ms since */
    CHECK_EQ(waiting->wait_us, 200);
    CHECK_EQ(running->state, SDB_RUNNING);
    CHECK_EQ(running->wait_us, 900 - 200 + 200); /* 0.9 ms of the last interval */
    CHECK_EQ(running->busy_us, 100);
}

static void
a_state_left_and_entered_again_between_two_ticks_has_its_new_age(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    enter_before_tick(&t, SDB_BLOCKED, 500000);
    fake_tick();
    enter_before_tick(&t, SDB_RUNNING, 600000);
    enter_before_tick(&t, SDB_BLOCKED, 400000);
    fake_tick();
    log_read();
    const struct walk_record *again = log_sample(2);
    CHECK_EQ(again->state, SDB_BLOCKED);
    CHECK_EQ(again->age_us, 400);
    CHECK_EQ(again->blocked_us, 800);
    CHECK_EQ(again->busy_us, 200);
}

static void
a_gc_inside_the_thread_is_its_state_and_its_time(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    enter_before_tick(&t, SDB_GC, 250000);
    fake_tick();
    enter_before_tick(&t, SDB_RUNNING, 750000);
    fake_tick();
    log_read();
    CHECK_EQ(log_sample(1)->state, SDB_GC);
    CHECK_EQ(log_sample(1)->gc_us, 250);
    CHECK_EQ(log_sample(2)->state, SDB_RUNNING);
    CHECK_EQ(log_sample(2)->gc_us, 250);
}

static void
no_stack_is_read_while_a_gc_runs_and_that_is_counted(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    world.gc = 1;
    fake_call(&t, (uint64_t)(uintptr_t)iseq_b, fake_ment(&ment_b), 8);
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_GC], 1);
    world.gc = 0;
    fake.gc_epoch = 1; /* our objects are being marked */
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_GC], 2);
    fake.gc_epoch = 2;
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_GC], 2);
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 1);
    CHECK_EQ(log_depth(log_sample(-1)), 2);
}

static void
a_running_thread_that_changes_nothing_is_written_each_hundred_ticks_with_its_cpu(void)
{
    begin(SDB_RUNNING);
    for (int i = 0; i < 250; i++) {
        world.thread_cpu_ns[1] += MS;
        fake_tick();
    }
    log_read();
    CHECK_EQ(log_count(WALK_SAMPLE), 3);
    CHECK_EQ(log_sample(1)->elapsed_us, 100000);
    CHECK_EQ(log_sample(1)->cpu_us, 100000);
}

static void
a_thread_that_moves_to_another_native_thread_keeps_its_cpu_time(void)
{
    begin(SDB_RUNNING);
    world.thread_cpu_ns[1] = 5 * MS;
    fake_tick();
    world.thread_cpu_ns[2] = 900 * MS; /* what others did there */
    sdb_store_relaxed(&t.slot->tid, 2);
    for (int i = 0; i < 200; i++) {
        world.thread_cpu_ns[2] += MS / 2;
        fake_tick();
    }
    log_read();
    CHECK_EQ(log_sample(1)->cpu_us, 0); /* its first look at the new clock */
    CHECK_EQ(log_sample(2)->cpu_us, 50000);
}

static void
a_hook_in_the_middle_of_its_update_is_waited_for(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    uint64_t seq = t.slot->seq;
    sdb_store_relaxed(&t.slot->seq, seq + 1); /* it got so far, and lost its cpu */
    sdb_thread_activate(&fake.threads, t.slot, false);
    fake_tick();
    fake_tick();
    sdb_store_relaxed(&t.slot->state, SDB_BLOCKED);
    sdb_store_relaxed(&t.slot->since_ns, world.now_ns);
    sdb_store_release(&t.slot->seq, seq + 2);
    fake_tick();
    log_read();
    CHECK_EQ(log_count(WALK_SAMPLE), 2);
    CHECK_EQ(log_sample(1)->state, SDB_BLOCKED);
    CHECK_EQ(log_sample(1)->elapsed_us, 3000);
}

static void
a_slot_that_is_being_claimed_is_looked_at_again(void)
{
    begin(SDB_RUNNING);
    sdb_store_release(&t.slot->life, SDB_SLOT_CLAIMED);
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_SCANS], 0);
    sdb_store_release(&t.slot->life, SDB_SLOT_LIVE);
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_SCANS], 1);
    log_read();
}

/* 3.3+: SUSPENDED was told, but the thread was interrupted and runs on without another event. */
static void
a_thread_called_blocked_whose_top_moves_runs(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    enter_before_tick(&t, SDB_BLOCKED, 100000);
    fake_tick();
    fake_call(&t, (uint64_t)(uintptr_t)iseq_b, fake_ment(&ment_b), 8);
    fake_tick();
    fake_tick();
    enter_before_tick(&t, SDB_GVL_WAIT, 500000); /* the next event ends it */
    fake_tick();
    log_read();
    const struct walk_record *phantom = log_sample(2), *after = log_sample(3);
    CHECK_EQ(phantom->state, SDB_RUNNING);
    CHECK_EQ(log_depth(phantom), 2);
    CHECK_EQ(phantom->blocked_us, 0);
    CHECK_EQ(after->state, SDB_GVL_WAIT);
    CHECK_EQ(after->wait_us, 500);
    CHECK_EQ(after->blocked_us, 0);
}

static void
a_thread_without_a_stack_yet_is_there_and_gets_one_later(void)
{
    fake_begin(true);
    fake_tick();
    fake_thread_begin(&t, 1, SDB_RUNNING);
    t.ec[0] = 0; /* VM stack not installed */
    fake_tick();
    t.ec[0] = (uint64_t)(uintptr_t)t.stack;
    fake_call(&t, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
    fake_tick();
    t.thread[48 / 8] = 0; /* no ec at all, as a thread of an M:N scheduler may have */
    fake_tick();
    log_read();
    CHECK_EQ(log_sample(0)->node, 0);
    CHECK_EQ(log_depth(log_sample(1)), 1);
    CHECK_EQ(log_sample(2)->node, 0);
}

static void
an_ended_thread_has_its_totals_and_its_last_name(void)
{
    begin(SDB_RUNNING);
    world.thread_cpu_ns[1] = MS;
    fake_tick();
    world.now_ns += 400000;
    sdb_thread_ended(&fake.threads, t.slot, world.now_ns, 1400000);
    fake_tick();
    CHECK_EQ(t.slot->life, SDB_SLOT_DEAD); /* the symbolizer has not looked at it since */
    CHECK_EQ(fake.mailbox.asked & SDB_ASK_WORK, SDB_ASK_WORK);
    sdb_thread_set_name(&fake.threads, t.slot, "last", 4);
    sdb_store_release(&fake.mailbox.passes_begun, 1);
    sdb_store_release(&fake.mailbox.passes_ended, 1);
    fake_tick();
    CHECK_EQ(t.slot->life, SDB_SLOT_RETIRED);
    log_read();
    CHECK_EQ(log_count(SDB_R_THREAD_END), 1);
    const struct walk_record *named = log_nth(SDB_R_THREAD, -1);
    CHECK(memmem(named->payload, named->bytes, "last", 4) != NULL);
}

static void
a_name_is_not_waited_for_longer_than_200_ms(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    sdb_thread_ended(&fake.threads, t.slot, world.now_ns, 0);
    for (int i = 0; i < 199; i++) fake_tick();
    CHECK_EQ(t.slot->life, SDB_SLOT_DEAD);
    for (int i = 0; i < 3; i++) fake_tick();
    CHECK_EQ(t.slot->life, SDB_SLOT_RETIRED);
    log_read();
    CHECK_EQ(log_count(SDB_R_THREAD_END), 1);
}

static void
without_a_symbolizer_no_name_is_waited_for(void)
{
    begin(SDB_RUNNING);
    fake_tick();
    sdb_store_release(&fake.mailbox.alive, 0);
    sdb_thread_ended(&fake.threads, t.slot, world.now_ns, 0);
    fake_tick();
    CHECK_EQ(t.slot->life, SDB_SLOT_RETIRED);
    log_read();
}

static void
a_slot_taken_again_is_another_thread(void)
{
    begin(SDB_RUNNING);
    fake_call(&t, (uint64_t)(uintptr_t)iseq_b, fake_ment(&ment_b), 8);
    fake_tick();
    sdb_store_release(&fake.mailbox.alive, 0);
    sdb_thread_ended(&fake.threads, t.slot, world.now_ns, 0);
    fake_tick();
    sdb_store_release(&t.slot->life, SDB_SLOT_FREE); /* as the symbolizer does */
    sdb_store_relaxed(&fake.threads.claim_hint, 0);
    fake_thread_begin(&other, 3, SDB_RUNNING);
    CHECK(other.slot == t.slot);
    fake_call(&other, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_THREADS_SEEN], 2);
    log_read();
    CHECK_EQ(log_depth(log_sample(-1)), 1);
    CHECK(log_number(log_nth(SDB_R_THREAD, 0), 1) != log_number(log_nth(SDB_R_THREAD, -1), 1));
}

static void
a_name_given_later_is_told(void)
{
    begin(SDB_BLOCKED);
    fake_tick();
    sdb_thread_set_name(&fake.threads, t.slot, "puma", 4);
    fake_tick();
    sdb_thread_set_name(&fake.threads, t.slot, "puma", 4); /* the same: no news */
    fake_tick();
    log_read();
    CHECK_EQ(log_count(SDB_R_THREAD), 2);
    CHECK(memmem(log_nth(SDB_R_THREAD, 1)->payload, log_nth(SDB_R_THREAD, 1)->bytes, "puma", 4) !=
          NULL);
}

static void
a_tick_on_the_core_of_a_running_thread_is_counted(void)
{
    begin(SDB_RUNNING);
    world.cpu = 3;
    sdb_store_relaxed(&t.slot->cpu, 3);
    fake_tick();
    world.cpu = 1;
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_DISPLACED_TICKS], 1);
    log_read();
}

static void
our_own_thread_is_in_no_log(void)
{
    begin(SDB_RUNNING);
    sdb_store_relaxed(&t.slot->flags, SDB_THREAD_OWN);
    fake_tick();
    sdb_thread_ended(&fake.threads, t.slot, world.now_ns, 0);
    sdb_store_release(&fake.mailbox.alive, 0);
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_THREADS_SEEN], 0);
    log_read();
    CHECK_EQ(log_count(WALK_SAMPLE), 0);
    CHECK_EQ(log_count(SDB_R_THREAD_END), 0);
}

int
main(void)
{
    RUN(waits_and_blocks_are_exact_to_the_moment);
    RUN(a_state_left_and_entered_again_between_two_ticks_has_its_new_age);
    RUN(a_gc_inside_the_thread_is_its_state_and_its_time);
    RUN(no_stack_is_read_while_a_gc_runs_and_that_is_counted);
    RUN(a_running_thread_that_changes_nothing_is_written_each_hundred_ticks_with_its_cpu);
    RUN(a_thread_that_moves_to_another_native_thread_keeps_its_cpu_time);
    RUN(a_hook_in_the_middle_of_its_update_is_waited_for);
    RUN(a_slot_that_is_being_claimed_is_looked_at_again);
    RUN(a_thread_called_blocked_whose_top_moves_runs);
    RUN(a_thread_without_a_stack_yet_is_there_and_gets_one_later);
    RUN(an_ended_thread_has_its_totals_and_its_last_name);
    RUN(a_name_is_not_waited_for_longer_than_200_ms);
    RUN(without_a_symbolizer_no_name_is_waited_for);
    RUN(a_slot_taken_again_is_another_thread);
    RUN(a_name_given_later_is_told);
    RUN(a_tick_on_the_core_of_a_running_thread_is_counted);
    RUN(our_own_thread_is_in_no_log);
    return t_done();
}
