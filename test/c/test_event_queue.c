/* SPDX-License-Identifier: MIT - test_event_queue.c - order, fullness, wrapping; two threads (for TSan). */
#include <pthread.h>
#include <sched.h>
#include "core/event_queue.h"
#include "t.h"

static void
events_come_out_in_order_and_whole(void)
{
    struct sdb_event_queue *q = sdb_event_queue_new(1024);
    struct sdb_event e;
    uint8_t payload[500];
    uint64_t seed = 4;
    int wrong = 0;

    NEED(q != NULL);
    CHECK(!sdb_event_queue_peek(q, &e));
    for (uint32_t i = 0; i < 10000; i++) {
        size_t n = t_random(&seed) % (1024 / 2 - 16 + 1);

        memset(payload, (int)i, n < sizeof payload ? n : sizeof payload);
        if (n > sizeof payload) n = sizeof payload;
        wrong += !sdb_event_queue_push(q, i, i * 7ull, payload, n);
        wrong += !sdb_event_queue_peek(q, &e) || e.type != i || e.at_ns != i * 7ull || e.bytes != n;
        wrong += ((uintptr_t)e.payload & 7) != 0 || memcmp(e.payload, payload, n) != 0;
        sdb_event_queue_pop(q);
        wrong += sdb_event_queue_peek(q, &e);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(sdb_event_queue_dropped(q), 0);
    sdb_event_queue_free(q);
}

static void
a_full_queue_drops_and_counts(void)
{
    struct sdb_event_queue *q = sdb_event_queue_new(1024);
    struct sdb_event e;
    int taken = 0;

    for (int i = 0; i < 100; i++) sdb_event_queue_push(q, (uint32_t)i, 0, "12345678", 8);
    CHECK_EQ(sdb_event_queue_dropped(q), 100 - 1024 / 24);
    CHECK(!sdb_event_queue_push(q, 1, 0, NULL, 512)); /* never fits */
    while (sdb_event_queue_peek(q, &e)) {
        CHECK_EQ(e.type, taken);
        taken++;
        sdb_event_queue_pop(q);
    }
    CHECK_EQ(taken, 1024 / 24);
    CHECK(sdb_event_queue_push(q, 1, 0, NULL, 0));
    CHECK(sdb_event_queue_peek(q, &e) && e.bytes == 0);
    sdb_event_queue_free(q);
    CHECK(sdb_event_queue_new(1000) == NULL);
    CHECK(sdb_event_queue_new(512) == NULL);
}

static void
what_must_be_kept_free_is_kept(void)
{
    struct sdb_event_queue *q = sdb_event_queue_new(1024);
    int taken = 0;

    while (sdb_event_queue_push_keeping(q, 1, 0, "12345678", 8, 240)) taken++;
    CHECK_EQ(taken, (1024 - 240) / 24);
    CHECK_EQ(sdb_event_queue_dropped(q), 1);
    for (int i = 0; i < 240 / 24; i++) CHECK(sdb_event_queue_push(q, 2, 0, "12345678", 8));
    CHECK(sdb_event_queue_dropped(q) == 1);
    sdb_event_queue_free(q);
}

enum { EVENTS = 200000 };

static void *
produce(void *data)
{
    struct sdb_event_queue *q = data;
    uint64_t seed = 5, words[40];

    for (uint64_t i = 0; i < EVENTS; i++) {
        size_t n = t_random(&seed) % 40;

        for (size_t k = 0; k < n; k++) words[k] = i + k;
        if (!sdb_event_queue_push(q, (uint32_t)(i % 1000), i, words, n * 8)) sched_yield();
    }
    return NULL;
}

static void
one_thread_produces_while_another_consumes(void)
{
    struct sdb_event_queue *q = sdb_event_queue_new(SDB_EVENT_QUEUE_BYTES);
    struct sdb_event e;
    pthread_t thread;
    uint64_t taken = 0, last = 0, wrong = 0;

    NEED(pthread_create(&thread, NULL, produce, q) == 0);
    while (taken + sdb_event_queue_dropped(q) < EVENTS) {
        if (!sdb_event_queue_peek(q, &e)) {
            sched_yield();
            continue;
        }
        wrong += taken > 0 && e.at_ns <= last;
        wrong += e.type != e.at_ns % 1000 || e.bytes % 8 != 0;
        for (uint32_t k = 0; k < e.bytes / 8; k++) {
            uint64_t word;

            memcpy(&word, e.payload + 8 * k, 8);
            wrong += word != e.at_ns + k;
        }
        last = e.at_ns;
        taken++;
        sdb_event_queue_pop(q);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(wrong, 0);
    CHECK(!sdb_event_queue_peek(q, &e));
    CHECK_EQ(taken + sdb_event_queue_dropped(q), EVENTS);
    CHECK(taken > 0);
    sdb_event_queue_free(q);
}

int
main(void)
{
    RUN(events_come_out_in_order_and_whole);
    RUN(a_full_queue_drops_and_counts);
    RUN(what_must_be_kept_free_is_kept);
    RUN(one_thread_produces_while_another_consumes);
    return t_done();
}
