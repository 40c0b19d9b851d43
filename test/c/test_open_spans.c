/* SPDX-License-Identifier: MIT - test_open_spans.c - what is open is found, and nothing else; memory stays small. */
#include "core/open_spans.h"
#include "t.h"

static bool
put(struct sdb_open_spans *t, uint64_t id, uint32_t bytes)
{
    static uint8_t payload[8192];
    struct sdb_open_span span = {
        .id = id, .serial = id * 3, .at_ns = id * 7, .slot = (uint32_t)id, .bytes = bytes};

    memset(payload, (int)id, bytes);
    span.payload = payload;
    return sdb_open_spans_add(t, &span);
}

static int
wrong(const struct sdb_open_spans *t, uint64_t id, uint32_t bytes)
{
    const struct sdb_open_span *s = sdb_open_spans_find(t, id);

    if (s == NULL || s->serial != id * 3 || s->at_ns != id * 7 || s->slot != (uint32_t)id ||
        s->bytes != bytes)
        return 1;
    for (uint32_t i = 0; i < bytes; i++)
        if (s->payload[i] != (uint8_t)id) return 1;
    return 0;
}

static void
a_random_mix_agrees_with_a_plain_array(void)
{
    enum { IDS = 100000, WINDOW = 3000 };
    static uint32_t open[IDS]; /* bytes + 1, 0 not open */
    struct sdb_open_spans *t = sdb_open_spans_new();
    uint64_t seed = 11, next = 1, id;
    size_t count = 0;
    int bad = 0;

    NEED(t != NULL);
    while (next < IDS) {
        if (t_random(&seed) % 2 == 0) {
            uint32_t bytes = (uint32_t)(t_random(&seed) % 700);

            bad += !put(t, next, bytes);
            open[next++] = bytes + 1;
            count++;
        }
        id = (next > WINDOW ? next - WINDOW : 0) + t_random(&seed) % WINDOW;
        if (id == 0 || id >= next) continue;
        bad += (sdb_open_spans_find(t, id) != NULL) != (open[id] != 0);
        if (open[id] != 0) bad += wrong(t, id, open[id] - 1);
        bad += sdb_open_spans_remove(t, id) != (open[id] != 0);
        count -= open[id] != 0;
        open[id] = 0;
        bad += sdb_open_spans_count(t) != count;
    }
    CHECK_EQ(bad, 0);
    CHECK(count > 0);
    for (size_t i = 0; i < sdb_open_spans_count(t); i++) {
        id = sdb_open_spans_at(t, i)->id;
        bad += open[id] == 0 || wrong(t, id, open[id] - 1);
        open[id] = 0; /* so that one named twice shows */
    }
    CHECK_EQ(bad, 0);
    sdb_open_spans_free(t);
}

static void
the_same_id_twice_is_refused(void)
{
    struct sdb_open_spans *t = sdb_open_spans_new();

    CHECK(put(t, 5, 10));
    CHECK(!put(t, 5, 20));
    CHECK(wrong(t, 5, 10) == 0);
    CHECK(sdb_open_spans_remove(t, 5));
    CHECK(!sdb_open_spans_remove(t, 5));
    CHECK(sdb_open_spans_find(t, 5) == NULL);
    sdb_open_spans_free(t);
}

static void
memory_does_not_grow_with_the_number_of_spans_seen(void)
{
    struct sdb_open_spans *t = sdb_open_spans_new();
    size_t before;

    for (uint64_t id = 1; id <= 1000; id++) {
        put(t, id, 8000);
        sdb_open_spans_remove(t, id);
    }
    before = sdb_open_spans_memory_bytes(t);
    CHECK(before < 100000);
    for (uint64_t id = 1001; id <= 1000000; id++) {
        put(t, id, 100);
        if (id > 1010) sdb_open_spans_remove(t, id - 10);
    }
    CHECK(sdb_open_spans_memory_bytes(t) < before + 10000);
    sdb_open_spans_free(t);
}

static void
a_full_table_refuses_and_goes_on(void)
{
    struct sdb_open_spans *t = sdb_open_spans_new();
    int bad = 0;

    for (uint64_t id = 1; id <= SDB_OPEN_SPANS_MAX; id++) bad += !put(t, id, 0);
    CHECK_EQ(bad, 0);
    CHECK(!put(t, SDB_OPEN_SPANS_MAX + 1, 0));
    CHECK(sdb_open_spans_remove(t, 77));
    CHECK(put(t, SDB_OPEN_SPANS_MAX + 1, 0));
    for (uint64_t id = 1; id <= SDB_OPEN_SPANS_MAX; id++)
        bad += (sdb_open_spans_find(t, id) == NULL) != (id == 77);
    CHECK_EQ(bad, 0);
    sdb_open_spans_free(t);
}

int
main(void)
{
    RUN(a_random_mix_agrees_with_a_plain_array);
    RUN(the_same_id_twice_is_refused);
    RUN(memory_does_not_grow_with_the_number_of_spans_seen);
    RUN(a_full_table_refuses_and_goes_on);
    return t_done();
}
