/* SPDX-License-Identifier: MIT - test_scan_events.c - spans, tags and marks on their way from a thread's queue into the log,
 * in the order and at the moments that they have. */
#define _GNU_SOURCE 1 /* memmem */
#include "scan_log.h"

#include "core/event_queue.h"
#include "scan/event_feed.h"

static struct fake_ment ment_a, ment_b;
static const uint64_t iseq_a[4], iseq_b[4];
static struct fake_thread t, other;

static void
begin_thread(struct fake_thread *thread, uint32_t tid)
{
    fake_thread_begin(thread, tid, SDB_RUNNING);
    fake_call(thread, (uint64_t)(uintptr_t)iseq_a, fake_ment(&ment_a), 8);
}

static void
begin(void)
{
    fake_begin(true);
    fake_tick();
    begin_thread(&t, 1);
    fake_tick();
}

static uint8_t *
put_text(uint8_t *to, const char *text)
{
    size_t n = strlen(text);
    memcpy(to, text, n);
    return to + n;
}

static uint8_t *
put_tag(uint8_t *to, const char *key, const char *value)
{
    uint16_t lengths[2] = {(uint16_t)strlen(key), (uint16_t)strlen(value)};
    memcpy(to, lengths, sizeof lengths);
    return put_text(put_text(to + sizeof lengths, key), value);
}

static bool
push(struct fake_thread *thread, enum sdb_event_type type, const void *payload, size_t bytes)
{
    return sdb_events_push(&fake.threads, thread->slot, type, world.now_ns, payload, bytes, 0);
}

static bool
span_begins(struct fake_thread *thread, uint64_t id, const char *request)
{
    uint8_t bytes[512], *to;
    struct sdb_begin_event b = {.id = id,
                                .kind_bytes = 7,
                                .name_bytes = 3,
                                .request_bytes = (uint16_t)strlen(request),
                                .trace_bytes = 2,
                                .tag_count = 1};
    memcpy(bytes, &b, sizeof b);
    to = put_text(put_text(bytes + sizeof b, "request"), "A#b");
    to = put_tag(put_text(put_text(to, request), "tr"), "customer", "7");
    return push(thread, SDB_E_SPAN_BEGIN, bytes, (size_t)(to - bytes));
}

static bool
span_ends(struct fake_thread *thread, uint64_t id, uint64_t next)
{
    uint8_t bytes[128], *to;
    struct sdb_end_event end = {
        .id = id, .next = next, .status = 200, .name_bytes = 3, .trace_bytes = 2, .tag_count = 1};
    memcpy(bytes, &end, sizeof end);
    to = put_tag(put_text(put_text(bytes + sizeof end, "C#d"), "t2"), "late", "1");
    return push(thread, SDB_E_SPAN_END, bytes, (size_t)(to - bytes));
}

static bool
tags_become(struct fake_thread *thread, const char *value)
{
    uint8_t bytes[256];
    struct sdb_tags_event tags = {.tag_count = value ? 1 : 0};
    memcpy(bytes, &tags, sizeof tags);
    uint8_t *to = value ? put_tag(bytes + sizeof tags, "k", value) : bytes + sizeof tags;
    return push(thread, SDB_E_TAGS, bytes, (size_t)(to - bytes));
}

static bool
has_string(const char *text)
{
    for (unsigned i = 0; i < fake_log.count; i++) {
        const struct walk_record *r = &fake_log.records[i].r;
        if (r->type == SDB_R_STRING && memmem(r->payload, r->bytes, text, strlen(text)))
            return true;
    }
    return false;
}

static void
a_span_has_its_own_moments_not_those_of_ticks(void)
{
    begin();
    world.now_ns += 250000;
    uint64_t began = world.now_ns - START_NS;
    CHECK(span_begins(&t, 5, "req-1"));
    world.now_ns += 120000;
    uint64_t ended = world.now_ns - START_NS;
    CHECK(span_ends(&t, 5, 0));
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_EVENTS], 2);
    log_read();
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_BEGIN, 0), 1), 5);
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_BEGIN, 0), 3), began);
    CHECK(memmem(log_nth(SDB_R_SPAN_BEGIN, 0)->payload, log_nth(SDB_R_SPAN_BEGIN, 0)->bytes,
                 "req-1", 5) != NULL);
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_END, 0), 0), 5);
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_END, 0), 1), ended);
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_END, 0), 3), 200);
    CHECK(has_string("request") && has_string("A#b") && has_string("customer") &&
          has_string("C#d") && has_string("late"));
}

static void
an_end_told_by_another_thread_waits_for_its_begin(void)
{
    begin();
    begin_thread(&other, 2);
    fake_tick();
    /* the second slot is visited after the first: the end is seen before the begin */
    CHECK(span_ends(&t, 9, 0));
    fake_tick();
    CHECK(span_begins(&other, 9, "r"));
    fake_tick();
    log_read();
    CHECK_EQ(log_count(SDB_R_SPAN_BEGIN), 1);
    CHECK_EQ(log_count(SDB_R_SPAN_END), 1);
}

static void
an_end_without_begin_is_forgotten_after_some_ticks(void)
{
    begin();
    for (int i = 0; i < 70; i++)
        CHECK(span_ends(&t, 100 + (uint64_t)i, 0)); /* more than are kept */
    for (int i = 0; i < 5; i++) fake_tick();
    CHECK(span_begins(&t, 100, "r"));
    fake_tick();
    log_read();
    CHECK_EQ(log_count(SDB_R_SPAN_END), 0);
    CHECK_EQ(log_count(SDB_R_SPAN_BEGIN), 1);
}

static void
a_span_whose_fiber_was_collected_ends(void)
{
    begin();
    CHECK(span_begins(&t, 3, "r"));
    fake_tick();
    sdb_events_abandon(3, world.now_ns);
    sdb_events_abandon(4, world.now_ns); /* nobody knows it */
    fake_tick();
    sdb_events_abandon(5, world.now_ns);
    sdb_events_forget_abandoned();
    fake_tick();
    log_read();
    CHECK_EQ(log_count(SDB_R_SPAN_END), 1);
}

static void
marks_and_switches_and_tags_are_told(void)
{
    begin();
    static char text[SDB_EVENT_TEXT_MAX + 50];
    memset(text, 'm', sizeof text);
    CHECK(push(&t, SDB_E_MARK, "deploy", 6));
    CHECK(push(&t, SDB_E_MARK, text, sizeof text));
    const struct sdb_switch_event to = {.id = 8};
    CHECK(push(&t, SDB_E_SPAN_SWITCH, &to, sizeof to));
    CHECK(tags_become(&t, "blue"));
    fake_tick();
    CHECK(tags_become(&t, NULL));
    fake_tick();
    log_read();
    CHECK_EQ(log_count(SDB_R_MARK), 2);
    CHECK(memmem(log_nth(SDB_R_MARK, 0)->payload, log_nth(SDB_R_MARK, 0)->bytes, "deploy", 6) !=
          NULL);
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_SWITCH, 0), 1), 8);
    CHECK_EQ(log_number(log_nth(SDB_R_TAGS, 0), 2), 1);
    CHECK_EQ(log_number(log_nth(SDB_R_TAGS, 1), 2), 0);
    CHECK(has_string("blue"));
}

static void
a_full_queue_drops_and_counts_what_it_drops(void)
{
    begin();
    unsigned fitted = 0;
    while (span_begins(&t, 1 + fitted, "a request id of some length that fills the queue"))
        fitted++;
    CHECK(!span_begins(&t, 1, "another"));
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_EVENTS], fitted);
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_QUEUE_FULL], 2);
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_QUEUE_FULL], 2); /* counted once */
    log_read();
    CHECK_EQ(log_count(SDB_R_SPAN_BEGIN), fitted);
}

static void
a_payload_that_says_more_than_it_holds_is_cut(void)
{
    begin();
    struct sdb_begin_event b = {
        .id = 1, .kind_bytes = 200, .name_bytes = 200, .request_bytes = 9, .tag_count = 60};
    CHECK(push(&t, SDB_E_SPAN_BEGIN, &b, sizeof b));
    struct {
        struct sdb_tags_event head;
        uint16_t lengths[2];
    } tags = {.head = {.tag_count = 2}, .lengths = {500, 500}};
    CHECK(push(&t, SDB_E_TAGS, &tags, sizeof tags));
    fake_tick();
    log_read();
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_BEGIN, 0), 1), 1);
    CHECK_EQ(log_number(log_nth(SDB_R_TAGS, 0), 2), 0);
}

/* The stack that was known before a change is not that of what comes after it. */
static void
a_span_that_begins_behind_the_ticks_time_gets_no_time_of_the_stack_before(void)
{
    begin();
    fake_tick();
    world.now_ns = (world.now_ns / MS + 1) * MS;
    uint64_t tick_ns = world.now_ns;
    world.now_ns += 5000; /* the tick is late by a little, and the span began meanwhile */
    CHECK(span_begins(&t, 5, "r"));
    fake_call(&t, (uint64_t)(uintptr_t)iseq_b, fake_ment(&ment_b), 8);
    sdb_scanner_tick(&fake.scanner, tick_ns);
    fake_tick();
    log_read();
    /* the tick itself tells nothing of the deeper stack; the next does */
    CHECK_EQ(log_depth(log_sample(-1)), 2);
    for (unsigned i = 0; i + 1 < log_count(WALK_SAMPLE); i++)
        CHECK(log_depth(log_sample((int)i)) <= 1);
}

static void
a_change_of_tags_whose_stack_could_not_be_read_leaves_no_frames(void)
{
    begin();
    CHECK(tags_become(&t, "a"));
    world.gc = 1; /* no stack can be read in this tick */
    fake_tick();
    world.gc = 0;
    fake_tick();
    log_read();
    CHECK_EQ(log_sample(1)->node, 0);
    CHECK_EQ(log_depth(log_sample(-1)), 1);
}

static void
what_is_open_or_set_is_said_again_in_each_chunk(void)
{
    begin();
    begin_thread(&other, 2);
    CHECK(span_begins(&t, 5, "r"));
    CHECK(tags_become(&other, "green"));
    fake_tick();
    uint64_t chunk = sdb_ring_writer_chunk(fake.scanner.writer);
    for (int i = 0; i < 3000 && sdb_ring_writer_chunk(fake.scanner.writer) == chunk; i++) {
        uint8_t filler[4000] = {0};
        CHECK(push(&t, SDB_E_MARK, filler, 1000));
        sdb_ring_writer_sized(fake.scanner.writer, SDB_R_MARK, filler, sizeof filler);
        fake_tick();
    }
    CHECK_EQ(sdb_ring_writer_chunk(fake.scanner.writer), chunk + 1);
    fake_tick();
    log_read();
    const struct walk_record *last = log_nth(SDB_R_SPAN_BEGIN, -1), *tags = log_nth(SDB_R_TAGS, -1);
    CHECK_EQ(last->seq, chunk + 1);
    CHECK_EQ(log_number(last, 1), 5);
    CHECK_EQ(tags->seq, chunk + 1);
    CHECK_EQ(log_number(log_nth(SDB_R_SPAN_SWITCH, -1), 1),
             0); /* that of the other thread, which has no span */
}

static void
what_a_thread_that_ends_still_had_to_say_is_said(void)
{
    begin();
    CHECK(span_begins(&t, 5, "r"));
    CHECK(span_ends(&t, 5, 0));
    CHECK(tags_become(&t, "x"));
    sdb_store_release(&fake.mailbox.alive, 0);
    sdb_thread_ended(&fake.threads, t.slot, world.now_ns, 0);
    fake_tick();
    CHECK_EQ(t.slot->life, SDB_SLOT_RETIRED);
    log_read();
    CHECK_EQ(log_count(SDB_R_SPAN_BEGIN), 1);
    CHECK_EQ(log_count(SDB_R_SPAN_END), 1);
}

static void
what_is_in_the_queues_when_the_recording_ends_is_written(void)
{
    begin();
    CHECK(span_begins(&t, 5, "last"));
    log_read(); /* without another tick */
    CHECK_EQ(log_count(SDB_R_SPAN_BEGIN), 1);
}

static void
thousands_of_open_spans_do_not_fill_the_next_chunk(void)
{
    begin();
    char request[200];
    memset(request, 'r', sizeof request - 1);
    request[sizeof request - 1] = '\0';
    for (uint64_t id = 1; id <= 8000; id++) {
        CHECK(span_begins(&t, id, request));
        if (id % 100 == 0) fake_tick();
    }
    fake_tick();
    log_read();
    unsigned again = 0;
    const struct walk_record *last = log_nth(SDB_R_SPAN_BEGIN, -1);
    for (unsigned i = 0; i < fake_log.count; i++) {
        const struct walk_record *r = &fake_log.records[i].r;
        again += r->type == SDB_R_SPAN_BEGIN && r->seq == last->seq;
    }
    CHECK(last->seq > 0);
    CHECK(again < 8000);
}

int
main(void)
{
    RUN(a_span_has_its_own_moments_not_those_of_ticks);
    RUN(an_end_told_by_another_thread_waits_for_its_begin);
    RUN(an_end_without_begin_is_forgotten_after_some_ticks);
    RUN(a_span_whose_fiber_was_collected_ends);
    RUN(marks_and_switches_and_tags_are_told);
    RUN(a_full_queue_drops_and_counts_what_it_drops);
    RUN(a_payload_that_says_more_than_it_holds_is_cut);
    RUN(a_span_that_begins_behind_the_ticks_time_gets_no_time_of_the_stack_before);
    RUN(a_change_of_tags_whose_stack_could_not_be_read_leaves_no_frames);
    RUN(what_is_open_or_set_is_said_again_in_each_chunk);
    RUN(what_a_thread_that_ends_still_had_to_say_is_said);
    RUN(what_is_in_the_queues_when_the_recording_ends_is_written);
    RUN(thousands_of_open_spans_do_not_fill_the_next_chunk);
    return t_done();
}
