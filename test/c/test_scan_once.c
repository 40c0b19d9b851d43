/* SPDX-License-Identifier: MIT - test_scan_once.c - ticks of the scanner in a world that stands still between them. */
#include "scan_support.h"

#include "core/testpoint.h"

static struct fake_ment ment_a, ment_b, ment_c;
static const uint64_t iseq_a[4], iseq_b[4], iseq_c[4];

static uint64_t
at(const uint64_t *object)
{
    return (uint64_t)(uintptr_t)object;
}

struct seen {
    unsigned samples, nodes, with_frames;
    uint32_t last_state, last_node, last_more;
};

static void
note(const struct walk_record *r, void *data)
{
    struct seen *seen = data;
    if (r->type == SDB_R_NODE) seen->nodes++;
    if (r->type != WALK_SAMPLE) return;
    seen->samples++;
    if (r->node) seen->with_frames++;
    seen->last_state = r->state;
    seen->last_node = r->node;
    seen->last_more = r->more;
}

static struct seen
end_and_read(void)
{
    struct walk_file file;
    struct seen seen = {0};
    fake_end(&file);
    struct walk_result result = walk_chunks(&file, note, &seen);
    CHECK_EQ(result.damaged, 0);
    walk_close(&file);
    return seen;
}

static void
a_running_thread_is_written_with_its_stack_and_once(void)
{
    static struct fake_thread t;
    struct sdb_scanner *sc = fake_begin(true);
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, at(iseq_a), fake_ment(&ment_a), 8);
    fake_call(&t, at(iseq_b), fake_ment(&ment_b), 8);
    for (int i = 0; i < 5; i++) fake_tick();
    CHECK_EQ(sc->counters[SDB_C_TICKS], 5);
    CHECK_EQ(sc->counters[SDB_C_SCANS], 6); /* and once more as the first chunk begins */
    struct seen seen = end_and_read();
    CHECK_EQ(seen.samples, 1);
    CHECK_EQ(seen.nodes, 2);
    CHECK_EQ(seen.last_state, SDB_RUNNING);
    CHECK_EQ(seen.last_node, 2);
}

static void
a_blocked_thread_keeps_its_stack_and_is_looked_at_no_more(void)
{
    static struct fake_thread t;
    struct sdb_scanner *sc = fake_begin(true);
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, at(iseq_a), fake_ment(&ment_a), 8);
    fake_tick();
    fake_enter(&t, SDB_BLOCKED);
    for (int i = 0; i < 40; i++) fake_tick();
    uint64_t scans = sc->counters[SDB_C_SCANS];
    for (int i = 0; i < 40; i++) fake_tick();
    CHECK_EQ(sc->counters[SDB_C_SCANS], scans);
    struct seen seen = end_and_read();
    CHECK_EQ(seen.last_state, SDB_BLOCKED);
    CHECK_EQ(seen.last_node, 1);
}

/* Between the two readings of one walk it returns from b and calls c: a frame of b under one of c never was. */
static struct fake_thread *moving;
static int moves;

static void
move(const char *point)
{
    if (strcmp(point, "walk_collected") != 0 || moves == 0) return;
    moves--;
    fake_return(moving);
    fake_call(moving, moves % 2 ? at(iseq_c) : at(iseq_b), fake_ment(moves % 2 ? &ment_c : &ment_b),
              8);
}

static void
a_top_frame_that_never_stands_still_is_left_out_and_said_to_be(void)
{
    static struct fake_thread t;
    struct sdb_scanner *sc = fake_begin(true);
    fake_tick(); /* the first chunk begins here, so that the thread is looked at once in the next */
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, at(iseq_a), fake_ment(&ment_a), 8);
    fake_call(&t, at(iseq_b), fake_ment(&ment_b), 8);
    moving = &t;
    moves = SDB_WALK_TRIES;
    sdb_testpoint_hook = move;
    fake_tick();
    sdb_testpoint_hook = NULL;
    CHECK_EQ(moves, 0);
    CHECK_EQ(sc->counters[SDB_C_LOST_TORN_TOP], 1);
    struct seen seen = end_and_read();
    CHECK_EQ(seen.nodes, 1);
    CHECK_EQ(seen.last_node, 1);
    CHECK_EQ(seen.last_more & SDB_MORE_TORN_TOP, SDB_MORE_TORN_TOP);
}

static void
without_events_a_thread_runs_whose_clock_goes_on(void)
{
    static struct fake_thread t;
    fake_begin(false);
    world.thread_cpu_ns[1] = MS;
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, at(iseq_a), fake_ment(&ment_a), 8);
    for (int i = 0; i < 5; i++) {
        world.thread_cpu_ns[1] += MS;
        fake_tick();
    }
    CHECK_EQ(((struct sdb_scan *)(uintptr_t)t.slot->scan)->state, SDB_RUNNING);
    for (int i = 0; i < 5; i++) fake_tick();
    struct seen seen = end_and_read();
    CHECK_EQ(seen.last_state, SDB_BLOCKED);
    CHECK_EQ(seen.last_node, 1);
}

/* The whole life on a thread of its own, with another one that begins to run while it is parked. */
static int sleeps, parked_sleeps;
static struct fake_thread *sleeper;

static void
while_it_sleeps(void)
{
    sleeps++;
    if (sleeps == 3) fake_enter(sleeper, SDB_BLOCKED);
    if (sdb_load_relaxed(&fake.threads.parked) && ++parked_sleeps == 2)
        fake_enter(sleeper, SDB_RUNNING);
    if (sleeps == 60) sdb_store_release(&fake.scanner.stop, 1);
}

static void *
run(void *sc)
{
    sdb_scanner_run(sc);
    return NULL;
}

static void
it_parks_when_nobody_runs_and_goes_on_when_somebody_does(void)
{
    static struct fake_thread t;
    pthread_t thread;
    struct sdb_scanner *sc = fake_begin(true);
    sleeper = &t;
    sleeps = parked_sleeps = 0;
    world.slept = while_it_sleeps;
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, at(iseq_a), fake_ment(&ment_a), 8);
    NEED(pthread_create(&thread, NULL, run, sc) == 0);
    pthread_join(thread, NULL);
    CHECK_EQ(sc->counters[SDB_C_PARKS], 1);
    CHECK_EQ(fake.mailbox.asked & SDB_ASK_IDLE, SDB_ASK_IDLE);
    struct seen seen = end_and_read();
    CHECK_EQ(seen.last_state, SDB_RUNNING);
}

int
main(void)
{
    RUN(a_running_thread_is_written_with_its_stack_and_once);
    RUN(a_blocked_thread_keeps_its_stack_and_is_looked_at_no_more);
    RUN(a_top_frame_that_never_stands_still_is_left_out_and_said_to_be);
    RUN(without_events_a_thread_runs_whose_clock_goes_on);
    RUN(it_parks_when_nobody_runs_and_goes_on_when_somebody_does);
    return t_done();
}
