/* SPDX-License-Identifier: MIT - test_code_table.c - codes come, are found, are let go in time, and come back. */
#include "core/code_age.h"
#include "core/code_table.h"
#include "t.h"

#include <string.h>

#define SECOND 1000000000ull

static const struct sdb_symbol some_symbol = {
    .kind = SDB_CODE_RUBY, .name = "Foo#bar", .name_bytes = 7, .path = "foo.rb", .path_bytes = 6};

/* As the symbolizer names it and the scanner then finds it named, at this tick. */
static struct sdb_code *
add_named(struct sdb_code_table *t, uint64_t iseq, uint32_t pin, uint64_t tick)
{
    struct sdb_young young;
    struct sdb_named *named = calloc(1, sizeof *named);
    uint32_t entry = sdb_code_table_add(t, iseq, 0, 0);

    NEED(named != NULL && entry != 0);
    sdb_code_table_publish(t);
    NEED(sdb_code_table_young_peek(t, &young) && young.iseq == iseq);
    named->symbol = some_symbol;
    named->pin = pin;
    sdb_code_table_young_named(t, named);
    NEED(sdb_code_table_next_named(t) == entry);
    struct sdb_code *code = sdb_code_table_entry(t, entry);
    code->in_area = SDB_CODE_WRITTEN;
    code->born = code->stamp = tick;
    return code;
}

static size_t
unused_at(struct sdb_code_table *t, uint64_t tick, uint64_t least, uint64_t most)
{
    const struct sdb_code_limits limits = {least, most};
    size_t gone = sdb_code_table_has_unused(t, tick, &limits)
                      ? sdb_code_table_evict_unused(t, tick, &limits)
                      : 0;

    CHECK(!sdb_code_table_has_unused(t, tick, &limits));
    return gone;
}

static void
a_code_is_kept_for_twice_the_time_it_was_in_use(void)
{
    struct sdb_code_table *t = sdb_code_table_new();

    NEED(t != NULL);
    struct sdb_code *code = add_named(t, 0x1000, 7, 100);
    CHECK(unused_at(t, 150, 60, 10000) == 0);
    code->stamp = 400; /* used for 300 */
    CHECK(unused_at(t, 1000, 60, 10000) == 0);
    CHECK(unused_at(t, 1001, 60, 10000) == 1);
    CHECK(sdb_code_table_find(t, 0x1000, 0) == 0);

    code = add_named(t, 0x1000, 8, 2000);
    code->stamp = 50000;
    CHECK(unused_at(t, 60000, 60, 10000) == 0);
    CHECK(unused_at(t, 60001, 60, 10000) == 1);
    sdb_code_table_free(t);
}

static void
what_was_let_go_needs_no_pin_and_gets_another_id(void)
{
    struct sdb_code_table *t = sdb_code_table_new();

    NEED(t != NULL);
    uint32_t id = add_named(t, 0x1000, 7, 0)->id;
    add_named(t, 0x2000, 9, 95);
    CHECK(!sdb_code_table_pin_is_idle(t, 7));
    CHECK(unused_at(t, 100, 60, 10000) == 1);
    CHECK(sdb_code_table_pin_is_idle(t, 7));
    CHECK(!sdb_code_table_pin_is_idle(t, 9));

    struct sdb_named *named = sdb_code_table_take_evicted(t);
    NEED(named != NULL);
    CHECK(named->pin == 7);
    sdb_code_table_pin_freed(t, named->pin);
    free(named);
    CHECK(!sdb_code_table_pin_is_idle(t, 7));
    CHECK(sdb_code_table_take_evicted(t) == NULL);
    CHECK(add_named(t, 0x1000, 7, 200)->id != id);
    sdb_code_table_free(t);
}

static void
many_codes_are_found_and_none_of_those_that_went(void)
{
    enum { COUNT = 20000 };
    struct sdb_code_table *t = sdb_code_table_new();
    int wrong = 0;

    NEED(t != NULL);
    for (uint64_t i = 1; i <= COUNT; i++) {
        add_named(t, i * 40, (uint32_t)i, i);
        if (i % 1000) continue;
        unused_at(t, i, 4000, 100000);
        struct sdb_named *named;
        while ((named = sdb_code_table_take_evicted(t)) != NULL) free(named);
    }
    for (uint64_t i = 1; i <= COUNT; i++)
        wrong += (sdb_code_table_find(t, i * 40, 0) != 0) != (COUNT - i <= 4000);
    CHECK(wrong == 0);
    CHECK(sdb_code_table_count(t) == 4001);
    sdb_code_table_free(t);
}

static struct sdb_symbol
symbol_at(uint64_t iseq)
{
    struct sdb_symbol s = some_symbol;
    s.iseq = iseq;
    return s;
}

static void
the_more_is_new_the_sooner_it_goes(void)
{
    static struct sdb_code_age a;
    uint64_t now = 100 * SECOND;

    CHECK(sdb_code_age_limit_ns(&a, now) == SDB_CODE_AGE_MAX_MS * 1000000ull);
    for (uint64_t i = 1; i <= 1000; i++) {
        struct sdb_symbol s = symbol_at(i * 8);
        CHECK_EQ(sdb_code_age_named(&a, &s), 0);
        now += SECOND / 1000; /* 1000 a second */
        sdb_code_age_limit_ns(&a, now);
    }
    CHECK(sdb_code_age_limit_ns(&a, now) == SDB_CODE_AGE_MIN_MS * 1000000ull);
    uint64_t before = 0;
    for (int i = 0; i < 8; i++, now += SECOND / 2) {
        uint64_t limit = sdb_code_age_limit_ns(&a, now);
        CHECK(limit >= before);
        before = limit;
    }
    CHECK(sdb_code_age_limit_ns(&a, now + 20 * SECOND) == SDB_CODE_AGE_MAX_MS * 1000000ull);
}

static void
what_comes_back_is_not_new_and_kept_longer_each_time(void)
{
    static struct sdb_code_age a;
    uint64_t now = SECOND;

    sdb_code_age_limit_ns(&a, now);
    for (int round = 0; round < 500; round++) {
        static const uint64_t kept[] = {0, 1 * SECOND, 4 * SECOND, 16 * SECOND, 64 * SECOND};
        for (uint64_t i = 1; i <= 20; i++) {
            struct sdb_symbol s = symbol_at(i * 8);
            CHECK_EQ(sdb_code_age_named(&a, &s), kept[round < 4 ? round : 4]);
        }
        now += SECOND / 100;
        sdb_code_age_limit_ns(&a, now);
    }
    CHECK(sdb_code_age_limit_ns(&a, now) == SDB_CODE_AGE_MAX_MS * 1000000ull);
}

int
main(void)
{
    RUN(a_code_is_kept_for_twice_the_time_it_was_in_use);
    RUN(what_was_let_go_needs_no_pin_and_gets_another_id);
    RUN(many_codes_are_found_and_none_of_those_that_went);
    RUN(the_more_is_new_the_sooner_it_goes);
    RUN(what_comes_back_is_not_new_and_kept_longer_each_time);
    return t_done();
}
