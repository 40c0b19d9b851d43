/* SPDX-License-Identifier: MIT - test_stack_tree.c - node ids, growth, reset; and the string table beside it. */
#include "core/stack_tree.h"
#include "core/string_table.h"
#include "t.h"

static void
ids_count_from_one_and_stay(void)
{
    struct sdb_stack_tree t;
    bool is_new;

    NEED(sdb_stack_tree_init(&t) == 0);
    CHECK_EQ(sdb_stack_tree_find(&t, 0, 7, 3), 0);
    CHECK_EQ(sdb_stack_tree_add(&t, 0, 7, 3, &is_new), 1);
    CHECK(is_new);
    CHECK_EQ(sdb_stack_tree_add(&t, 1, 7, 3, &is_new), 2);
    CHECK_EQ(sdb_stack_tree_add(&t, 0, 7, 5, &is_new), 3);
    CHECK_EQ(sdb_stack_tree_add(&t, 0, 7, 3, &is_new), 1);
    CHECK(!is_new);
    CHECK_EQ(sdb_stack_tree_find(&t, 1, 7, 3), 2);
    sdb_stack_tree_reset(&t);
    CHECK_EQ(sdb_stack_tree_find(&t, 0, 7, 3), 0);
    CHECK_EQ(sdb_stack_tree_add(&t, 0, 9, 9, &is_new), 1);
    sdb_stack_tree_free(&t);
}

static void
a_hundred_thousand_nodes_are_found_again(void)
{
    enum { N = 100000 };
    struct sdb_stack_tree t;
    uint64_t seed = 3;
    uint32_t *parents = malloc(N * sizeof *parents), wrong = 0;
    bool is_new;

    NEED(sdb_stack_tree_init(&t) == 0);
    for (int round = 0; round < 2; round++) { /* again after a reset, in the grown table */
        for (uint32_t i = 0; i < N; i++) {
            parents[i] = (uint32_t)(t_random(&seed) % (i + 1));
            wrong +=
                sdb_stack_tree_add(&t, parents[i], i, (uint64_t)i << 40 | 1, &is_new) != i + 1 ||
                !is_new;
        }
        for (uint32_t i = 0; i < N; i++) {
            wrong += sdb_stack_tree_find(&t, parents[i], i, (uint64_t)i << 40 | 1) != i + 1;
            wrong += sdb_stack_tree_find(&t, parents[i], i, (uint64_t)i << 40) != 0;
        }
        sdb_stack_tree_reset(&t);
    }
    CHECK_EQ(wrong, 0);
    sdb_stack_tree_free(&t);
    free(parents);
}

static void
marks_of_an_old_generation_stay_void_when_the_counter_wraps(void)
{
    struct sdb_stack_tree t;
    bool is_new;

    NEED(sdb_stack_tree_init(&t) == 0);
    sdb_stack_tree_add(&t, 0, 1, 1, &is_new); /* written by generation 1 */
    t.generation = UINT32_MAX;
    sdb_stack_tree_reset(&t);
    CHECK_EQ(t.generation, 1);
    CHECK_EQ(sdb_stack_tree_find(&t, 0, 1, 1), 0);
    sdb_stack_tree_free(&t);
}

static void
equal_strings_have_one_id(void)
{
    struct sdb_string_table t;
    char s[32];
    int wrong = 0;

    sdb_string_table_init(&t);
    CHECK_EQ(sdb_string_table_find(&t, "a", 1), 0);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 1; i <= 5000; i++) {
            size_t n = (size_t)snprintf(s, sizeof s, "string %u", i);
            wrong += sdb_string_table_find(&t, s, n) != 0;
            wrong += sdb_string_table_add(&t, s, n) != i;
        }
        for (uint32_t i = 1; i <= 5000; i++) {
            size_t n = (size_t)snprintf(s, sizeof s, "string %u", i);
            wrong += sdb_string_table_find(&t, s, n) != i;
        }
        wrong += sdb_string_table_find(&t, "string", 6) != 0;
        sdb_string_table_reset(&t);
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(sdb_string_table_add(&t, "", 0), 1); /* the empty string is one, too */
    CHECK_EQ(sdb_string_table_find(&t, "", 0), 1);
    sdb_string_table_free(&t);
}

static void
text_is_cut_between_characters(void)
{
    CHECK_EQ(sdb_utf8_cut("abc", 3, 4), 3);
    CHECK_EQ(sdb_utf8_cut("abcdef", 6, 4), 4);
    CHECK_EQ(sdb_utf8_cut("ab\xc3\xa9z", 5, 3), 2); /* é does not fit */
    CHECK_EQ(sdb_utf8_cut("ab\xc3\xa9z", 5, 4), 4);
    CHECK_EQ(sdb_utf8_cut("a\xf0\x9f\x98\x80z", 6, 4), 1);
    CHECK_EQ(sdb_utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 5); /* not UTF-8 */
}

int
main(void)
{
    RUN(ids_count_from_one_and_stay);
    RUN(a_hundred_thousand_nodes_are_found_again);
    RUN(marks_of_an_old_generation_stay_void_when_the_counter_wraps);
    RUN(equal_strings_have_one_id);
    RUN(text_is_cut_between_characters);
    return t_done();
}
