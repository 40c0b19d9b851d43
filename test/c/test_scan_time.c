/* SPDX-License-Identifier: MIT - test_scan_time.c - what a tick does beside looking at threads: gaps, parks, flushes, the
 * figures of each second, memory, GC, chunks that turn, files that fail. */
#include "scan_log.h"

#include "scan/oom_beacon.h"
#include "scan/scanner.h"
#include "scan/upkeep.h"

static struct fake_ment ment_a;
static const uint64_t iseq_a[4];
static struct fake_thread t;

static void
begin(void)
{
    fake_begin(true);
    fake_tick();
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
    fake_tick();
}

static void
begin_in_a_child(void)
{
    fake_init(true);
    fake_tick();
    fake_thread_begin(&t, 1, SDB_RUNNING);
    fake_call(&t, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
    fake_tick();
}

static uint64_t
counter(enum sdb_counter which)
{
    return fake.scanner.counters[which];
}

/* What stands on the file now, while the recording goes on. */
static unsigned
blocks_on_file(void)
{
    struct walk_file file;
    NEED(walk_open(&file, fake.scanner.file.path));
    unsigned blocks = walk_chunks(&file, NULL, NULL).blocks;
    walk_close(&file);
    return blocks;
}

static void
a_hole_between_two_ticks_is_a_gap_with_its_length(void)
{
    begin();
    world.now_ns += 3 * MS;
    fake_tick(); /* four intervals late: not yet a hole */
    CHECK_EQ(counter(SDB_C_LOST_GAP_NS), 0);
    world.now_ns += 3000ull * MS; /* SIGSTOP, or a machine without a CPU for us */
    fake_tick();
    uint64_t gap = counter(SDB_C_LOST_GAP_NS);
    CHECK(gap >= 3000ull * MS && gap <= 3001ull * MS);
    log_read();
    CHECK_EQ(log_count(SDB_R_GAP), 1);
}

static void
a_late_tick_is_counted_and_not_made_up_for(void)
{
    begin();
    fake.scanner.pacing.deadline_ns = world.now_ns;
    world.now_ns += 600000;
    sdb_scanner_tick(&fake.scanner, world.now_ns);
    CHECK_EQ(counter(SDB_C_LATE_TICKS) > 0, true);
    uint64_t next = sdb_pacing_next(&fake.scanner.pacing, world.now_ns + 10 * MS);
    CHECK(next > world.now_ns + 10 * MS);
    log_read();
}

static void
the_oldest_byte_is_on_the_file_after_four_ms(void)
{
    begin();
    sdb_flush(&fake.scanner);
    unsigned before = blocks_on_file();
    fake_enter(&t, SDB_BLOCKED);
    fake_tick();
    CHECK_EQ(blocks_on_file(), before);
    for (int i = 0; i < 4; i++) fake_tick();
    CHECK(blocks_on_file() > before);
    log_read();
}

static void
who_asks_for_it_gets_it_at_the_next_tick(void)
{
    begin();
    sdb_flush(&fake.scanner);
    unsigned before = blocks_on_file();
    fake_enter(&t, SDB_BLOCKED);
    fake.scanner.dump_asked = 1;
    fake_tick();
    CHECK_EQ(fake.scanner.dump_done, 1);
    CHECK(blocks_on_file() > before);
    log_read();
}

static void
what_is_not_yet_on_the_file_can_be_found_in_memory(void)
{
    begin();
    sdb_flush(&fake.scanner);
    fake_enter(&t, SDB_BLOCKED);
    fake_tick();
    const struct sdb_live_table *live = &fake.threads.live;
    CHECK_EQ(live->pending_seq % 2, 0);
    CHECK(live->pending_bytes > 0 && live->pending != 0 && live->pending_off > 0);
    log_read();
    CHECK_EQ(live->magic, 0);
    CHECK_EQ(live->pending_bytes, 0);
}

static void
each_second_has_its_figures_and_clocks(void)
{
    begin();
    world.own_cpu_ns = 12345;
    for (int i = 0; i < 2100; i++) fake_tick();
    log_read();
    CHECK(log_count(SDB_R_COUNTERS) >= 3);
    CHECK(log_count(SDB_R_CLOCK) >= 3);
    CHECK_EQ(log_number(log_nth(SDB_R_COUNTERS, -1), 0), SDB_COUNTER_COUNT);
}

static unsigned seconds;

static void
each_second(void *data)
{
    CHECK(data == &fake.scanner);
    seconds++;
}

static void
other_layers_are_called_each_second(void)
{
    begin();
    seconds = 0;
    fake.scanner.every_second = each_second;
    fake.scanner.every_second_data = &fake.scanner;
    for (int i = 0; i < 2100; i++) fake_tick();
    CHECK_EQ(seconds, 2);
    fake.scanner.every_second = NULL;
    log_read();
}

static void
above_its_budget_the_interval_grows_and_the_log_says_so(void)
{
    begin();
    sdb_pacing_init(&fake.scanner.pacing, MS, 10000, world.now_ns); /* one percent of a core */
    fake.scanner.thread = pthread_self();
    for (int s = 0; s < 15; s++) {
        world.own_cpu_ns += 100 * MS; /* ten percent */
        for (int i = 0; i < 1000; i++) fake_tick();
    }
    CHECK(counter(SDB_C_EFFECTIVE_INTERVAL_NS) > MS);
    log_read();
    CHECK(log_count(SDB_R_INTERVAL) > 0);
}

static void
gc_is_told_with_its_begin_and_length(void)
{
    begin();
    const struct sdb_gc_period period = {.serial = 7, .begin_ns = START_NS + 500, .ns = 250000};
    CHECK(sdb_gc_periods_push(&fake.periods, &period));
    fake_tick();
    log_read();
    CHECK_EQ(log_count(SDB_R_GC), 1);
    CHECK_EQ(log_number(log_nth(SDB_R_GC, 0), 0), 7);
}

static void
memory_is_told_when_it_moved(void)
{
    begin();
    world.memory =
        (struct sdb_memory){.rss = 50 << 20, .cgroup_usage = 60 << 20, .cgroup_limit = 1000 << 20};
    for (int i = 0; i < 120; i++) fake_tick();
    world.memory.rss += 1000; /* no news */
    for (int i = 0; i < 60; i++) fake_tick();
    world.memory.rss += 1 << 20;
    for (int i = 0; i < 60; i++) fake_tick();
    log_read();
    CHECK_EQ(log_number(log_nth(SDB_R_MEMORY, -1), 1), (50 << 20) + 1000 + (1 << 20));
    CHECK_EQ(log_count(SDB_R_PRE_OOM), 0);
}

static void
near_the_limit_each_level_is_told_once_and_every_tick_is_on_the_file(void)
{
    begin();
    world.memory =
        (struct sdb_memory){.rss = 10 << 20, .cgroup_usage = 100 << 20, .cgroup_limit = 1000 << 20};
    for (int i = 0; i < 60; i++) fake_tick();
    for (int percent = 81; percent < 99; percent += 5) {
        world.memory.cgroup_usage = (uint64_t)percent * 10 << 20;
        for (int i = 0; i < 120; i++) fake_tick();
    }
    CHECK(fake.scanner.memory.short_of);
    unsigned before = blocks_on_file();
    fake_enter(&t, SDB_BLOCKED);
    fake_tick();
    CHECK(blocks_on_file() > before);
    world.memory.cgroup_usage = 500 << 20; /* it fell, and rises again */
    for (int i = 0; i < 120; i++) fake_tick();
    CHECK(!fake.scanner.memory.short_of);
    world.memory.cgroup_usage = 850 << 20;
    for (int i = 0; i < 120; i++) fake_tick();
    log_read();
    CHECK(log_count(SDB_R_PRE_OOM) >= 4 && log_count(SDB_R_PRE_OOM) <= 6);
}

static void
memory_that_grows_to_its_limit_within_two_seconds_is_short(void)
{
    begin();
    bool was_short = false;
    world.memory = (struct sdb_memory){.cgroup_usage = 400 << 20, .cgroup_limit = 1000 << 20};
    for (int i = 0; i < 60; i++) fake_tick();
    for (int step = 0; step < 4; step++) {
        world.memory.cgroup_usage += 60 << 20; /* 1.2 GB a second */
        for (int i = 0; i < 50; i++) {
            fake_tick();
            was_short |= fake.scanner.memory.short_of;
        }
    }
    CHECK(was_short);
    log_read();
    CHECK(log_count(SDB_R_PRE_OOM) >= 1);
}

static void
a_chunk_that_turns_tells_every_thread_again(void)
{
    static struct fake_thread sleeper;
    static const uint8_t filler[4000];
    begin();
    fake_thread_begin(&sleeper, 2, SDB_BLOCKED);
    fake_call(&sleeper, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
    for (int i = 0; i < 20; i++) fake_tick();
    uint64_t chunk = sdb_ring_writer_chunk(fake.scanner.writer);
    while (sdb_ring_writer_chunk(fake.scanner.writer) == chunk) {
        sdb_ring_writer_reserve(fake.scanner.writer, sizeof filler);
        sdb_ring_writer_sized(fake.scanner.writer, SDB_R_MARK, filler, sizeof filler);
    }
    fake_tick();
    log_read();
    unsigned threads = 0, samples = 0;
    for (unsigned i = 0; i < fake_log.count; i++) {
        const struct walk_record *r = &fake_log.records[i].r;
        if (r->seq != chunk + 1) continue;
        threads += r->type == SDB_R_THREAD;
        samples += r->type == WALK_SAMPLE;
    }
    CHECK_EQ(threads, 2);
    CHECK(samples >= 2);
}

static void
a_ring_that_is_full_keeps_its_newest_chunks(void)
{
    static uint8_t filler[4000];
    begin();
    for (int i = 0; i < 6000; i++) {
        sdb_ring_writer_reserve(fake.scanner.writer, sizeof filler);
        sdb_ring_writer_sized(fake.scanner.writer, SDB_R_MARK, filler, sizeof filler);
        if (i % 10 == 0) fake_tick();
    }
    uint64_t newest = sdb_ring_writer_chunk(fake.scanner.writer);
    struct walk_file file;
    fake_end(&file);
    struct walk_result result = walk_chunks(&file, NULL, NULL);
    walk_close(&file);
    CHECK_EQ(result.damaged, 0);
    CHECK_EQ(result.newest_seq, newest);
    CHECK(result.oldest_seq > 0 && result.oldest_seq < newest);
}

static void
a_file_that_was_deleted_or_cannot_be_written_costs_the_log_and_no_more(void)
{
    begin();
    CHECK_EQ(unlink(fake.scanner.file.path), 0);
    for (int i = 0; i < 50; i++) {
        fake_enter(&t, i % 2 ? SDB_RUNNING : SDB_BLOCKED);
        fake_tick();
    }
    CHECK_EQ(counter(SDB_C_TICKS) > 50, true);
    sdb_upkeep_close(&fake.scanner, "the file is gone");
    sdb_scanner_free(&fake.scanner);
    remove_dir(fake.dir);
}

static void
a_forked_childs_file_is_made_a_little_later_and_holds_all(void)
{
    begin_in_a_child();
    fake.scanner.file_due_ns = world.now_ns + SDB_CHILD_FILE_NS;
    for (int i = 0; i < 5; i++) fake_tick();
    CHECK_EQ(count_files(fake.dir), 0);
    for (int i = 0; i < 10; i++) fake_tick();
    CHECK(fake.scanner.has_file);
    CHECK_EQ(count_files(fake.dir), 1);
    log_read();
}

static void
a_child_that_ends_before_its_file_was_due_has_one_all_the_same(void)
{
    begin_in_a_child();
    fake.scanner.file_due_ns = world.now_ns + 1000 * MS;
    fake_tick();
    CHECK_EQ(count_files(fake.dir), 0);
    sdb_upkeep_close(&fake.scanner, NULL);
    struct walk_file file;
    NEED(walk_open(&file, fake.scanner.file.path));
    CHECK_EQ(walk_state(&file), SDB_RING_CLOSED);
    CHECK(walk_chunks(&file, NULL, NULL).records > 0);
    walk_close(&file);
    sdb_scanner_free(&fake.scanner);
    remove_dir(fake.dir);
}

static void
a_process_that_parks_before_its_file_is_due_gets_it_while_parked(void)
{
    begin_in_a_child();
    fake.scanner.file_due_ns = world.now_ns + 5 * MS;
    fake.scanner.tick.now_ns = world.now_ns + 10 * MS;
    sdb_upkeep_parked(&fake.scanner);
    CHECK(fake.scanner.has_file);
    log_read();
}

/* With its own thread and the real system calls around the fake VM: the life that a process leads it through. */
static void
it_opens_runs_halts_and_seals_when_it_is_told_to(void)
{
    begin_in_a_child();
    char path[SDB_PATH_MAX];
    NEED(sdb_scanner_launch(&fake.scanner) == 0);
    CHECK_EQ(count_files(fake.dir), 1);
    sdb_scanner_go(&fake.scanner);
    sdb_scanner_halt(&fake.scanner);
    sdb_scanner_halt(&fake.scanner);
    snprintf(path, sizeof path, "%s", fake.scanner.file.path);
    sdb_scanner_end(&fake.scanner, true);
    sdb_scanner_end(&fake.scanner, true);
    struct walk_file file;
    NEED(walk_open(&file, path));
    CHECK_EQ(walk_state(&file), SDB_RING_CLOSED);
    walk_close(&file);
    sdb_scanner_free(&fake.scanner);
    remove_dir(fake.dir);
}

static void
a_directory_that_is_none_refuses_the_launch(void)
{
    begin_in_a_child();
    fake.scanner.file_config.dir = "/dev/null/none";
    CHECK(sdb_scanner_launch(&fake.scanner) < 0);
    CHECK(!fake.scanner.started);
    sdb_scanner_free(&fake.scanner);
    remove_dir(fake.dir);
}

static void
a_tag_of_the_service_is_found_for_the_daemon_and_an_absent_daemon_changes_nothing(void)
{
    static const char text[] = "ruby=3.3\0service=shop\0argv.0=x\0";
    begin();
    setenv("SDB_OOM_SOCKET", "/nonexistent/sdb-oomd.sock", 1);
    sdb_oom_beacon_configure(text, sizeof text - 1);
    fake.scanner.every_second = sdb_oom_beacon_second;
    fake.scanner.every_second_data = &fake.scanner;
    sdb_upkeep_second(&fake.scanner);
    setenv("SDB_OOM_SOCKET", "0", 1);
    sdb_oom_beacon_configure(text, sizeof text - 1);
    sdb_upkeep_second(&fake.scanner);
    unsetenv("SDB_OOM_SOCKET");
    fake.scanner.every_second = NULL;
    CHECK_EQ(counter(SDB_C_WRITE_ERRNO), 0);
    log_read();
}

int
main(void)
{
    RUN(a_hole_between_two_ticks_is_a_gap_with_its_length);
    RUN(a_late_tick_is_counted_and_not_made_up_for);
    RUN(the_oldest_byte_is_on_the_file_after_four_ms);
    RUN(who_asks_for_it_gets_it_at_the_next_tick);
    RUN(what_is_not_yet_on_the_file_can_be_found_in_memory);
    RUN(each_second_has_its_figures_and_clocks);
    RUN(other_layers_are_called_each_second);
    RUN(above_its_budget_the_interval_grows_and_the_log_says_so);
    RUN(gc_is_told_with_its_begin_and_length);
    RUN(memory_is_told_when_it_moved);
    RUN(near_the_limit_each_level_is_told_once_and_every_tick_is_on_the_file);
    RUN(memory_that_grows_to_its_limit_within_two_seconds_is_short);
    RUN(a_chunk_that_turns_tells_every_thread_again);
    RUN(a_ring_that_is_full_keeps_its_newest_chunks);
    RUN(a_file_that_was_deleted_or_cannot_be_written_costs_the_log_and_no_more);
    RUN(a_forked_childs_file_is_made_a_little_later_and_holds_all);
    RUN(a_child_that_ends_before_its_file_was_due_has_one_all_the_same);
    RUN(a_process_that_parks_before_its_file_is_due_gets_it_while_parked);
    RUN(it_opens_runs_halts_and_seals_when_it_is_told_to);
    RUN(a_directory_that_is_none_refuses_the_launch);
    RUN(a_tag_of_the_service_is_found_for_the_daemon_and_an_absent_daemon_changes_nothing);
    return t_done();
}
