/* SPDX-License-Identifier: MIT
 *
 * blame_rows.c - who held the GVL while others waited for it.
 *
 * Runs on: any Ruby thread, GVL; the search itself without
 */
#include <stdlib.h>

#include "error.h"
#include "glue/glue.h"
#include "glue/init.h"
#include "profile/blame.h"

struct blame {
    const struct sdb_profile *profile;
    const struct sdb_interval *intervals;
    size_t n;
    bool each;
    struct sdb_blame *rows;
    size_t count;
};

static int
blame_run(void *data)
{
    struct blame *b = data;
    if (b->each) {
        b->count = b->n;
        return sdb_blame_each(b->profile, b->intervals, b->n, &b->rows);
    }
    return sdb_blame_find(b->profile, b->intervals, b->n, &b->rows, &b->count);
}

/* {thread:, stack:, span: or nil, ns:} */
static VALUE
blame_row(const struct sdb_blame *blame)
{
    VALUE row = rb_hash_new();
    rb_sdb_put(row, "thread", UINT2NUM(blame->thread));
    rb_sdb_put(row, "stack", UINT2NUM(blame->stack));
    rb_sdb_put(row, "span", rb_sdb_number(blame->span));
    rb_sdb_put(row, "ns", ULL2NUM(blame->ns));
    return row;
}

static VALUE
blame_ask(VALUE self, VALUE intervals, bool each)
{
    Check_Type(intervals, T_STRING);
    struct blame b = {rb_sdb_profile_get(self),
                      (const struct sdb_interval *)RSTRING_PTR(intervals),
                      (size_t)RSTRING_LEN(intervals) / sizeof(struct sdb_interval),
                      each,
                      NULL,
                      0};
    rb_sdb_check(rb_sdb_ask(blame_run, &b), "blame");
    RB_GC_GUARD(intervals);
    RB_GC_GUARD(self);
    return rb_sdb_take_rows(b.rows, b.count, sizeof(*b.rows));
}

/* Of all waits for the GVL in the intervals together: the longest holders first, at most limit */
static VALUE
blame(VALUE self, VALUE intervals, VALUE limit)
{
    VALUE bytes = blame_ask(self, intervals, false), rows = rb_ary_new();
    size_t most = NUM2SIZET(limit), count = (size_t)RSTRING_LEN(bytes) / sizeof(struct sdb_blame);
    for (size_t i = 0; i < count && i < most; i++)
        rb_ary_push(rows, blame_row((const struct sdb_blame *)RSTRING_PTR(bytes) + i));
    RB_GC_GUARD(bytes);
    return rows;
}

/* For each interval, a wait of its thread: who held the GVL longest in it, or nil */
static VALUE
holders(VALUE self, VALUE intervals)
{
    VALUE bytes = blame_ask(self, intervals, true), rows = rb_ary_new();
    size_t count = (size_t)RSTRING_LEN(bytes) / sizeof(struct sdb_blame);
    for (size_t i = 0; i < count; i++) {
        const struct sdb_blame *row = (const struct sdb_blame *)RSTRING_PTR(bytes) + i;
        rb_ary_push(rows, row->ns ? blame_row(row) : Qnil);
    }
    RB_GC_GUARD(bytes);
    return rows;
}

void
rb_sdb_init_blame(VALUE profile)
{
    rb_define_method(profile, "blame", blame, 2);
    rb_define_method(profile, "holders", holders, 1);
}
