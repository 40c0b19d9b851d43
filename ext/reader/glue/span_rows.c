/* SPDX-License-Identifier: MIT
 *
 * span_rows.c - finding spans, their intervals, and who held the GVL meanwhile.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <stdlib.h>

#include "error.h"
#include "glue/glue.h"
#include "profile/blame.h"
#include "profile/spans.h"

static uint32_t
string_number(const struct sdb_profile *p, VALUE text)
{
    StringValue(text);
    return sdb_string_find(p, RSTRING_PTR(text), (size_t)RSTRING_LEN(text));
}

static VALUE
numbers_array(uint32_t *numbers, size_t n)
{
    VALUE packed = rb_sdb_take_rows(numbers, n, sizeof(*numbers));
    return rb_funcall(packed, rb_intern("unpack"), 1, rb_str_new_cstr("L*"));
}

/* Names of spans: [[string number, name], ...] */
static VALUE
span_names(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE seen = rb_str_new(NULL, (long)p->strings_count), rows = rb_ary_new();
    memset(RSTRING_PTR(seen), 0, p->strings_count);
    for (size_t i = 0; i < p->spans_count; i++) {
        uint32_t name = p->spans[i].name;
        if (RSTRING_PTR(seen)[name]) continue;
        RSTRING_PTR(seen)[name] = 1;
        rb_ary_push(rows, rb_assoc_new(UINT2NUM(name), rb_sdb_text(p, name)));
    }
    return rows;
}

/* spans_find(names or nil, request, trace, tags [[k, v]], roots, min_ns, percentile, from, to, threads) -> numbers.
 * names: Array of string numbers. */
static VALUE
spans_find(int argc, VALUE *argv, VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    rb_check_arity(argc, 10, 10);
    struct sdb_span_query q = {
        .by_request = !NIL_P(argv[1]),
        .by_trace = !NIL_P(argv[2]),
        .request = NIL_P(argv[1]) ? 0 : string_number(p, argv[1]),
        .trace = NIL_P(argv[2]) ? 0 : string_number(p, argv[2]),
        .roots = RTEST(argv[4]),
        .min_ns = NUM2ULL(argv[5]),
        .percentile = NUM2DBL(argv[6]),
        .from = NUM2ULL(argv[7]),
        .to = NIL_P(argv[8]) ? SDB_NO_TIME : NUM2ULL(argv[8]),
    };
    VALUE names = Qnil, tags_buffer = Qnil;
    if (!NIL_P(argv[0])) {
        names = rb_str_new(NULL, (long)p->strings_count);
        memset(RSTRING_PTR(names), 0, p->strings_count);
        for (long i = 0; i < RARRAY_LEN(argv[0]); i++) {
            size_t number = NUM2SIZET(rb_ary_entry(argv[0], i));
            if (number < p->strings_count) RSTRING_PTR(names)[number] = 1;
        }
        q.names = (const uint8_t *)RSTRING_PTR(names);
    }
    Check_Type(argv[3], T_ARRAY);
    q.tag_count = (size_t)RARRAY_LEN(argv[3]);
    struct sdb_tag *tags = ALLOCV_N(struct sdb_tag, tags_buffer, q.tag_count + 1);
    for (size_t i = 0; i < q.tag_count; i++) {
        VALUE pair = rb_ary_entry(argv[3], (long)i);
        tags[i] = (struct sdb_tag){string_number(p, rb_ary_entry(pair, 0)),
                                   string_number(p, rb_ary_entry(pair, 1))};
    }
    q.tags = tags;
    if (!NIL_P(argv[9])) {
        Check_Type(argv[9], T_STRING);
        if ((size_t)RSTRING_LEN(argv[9]) < p->threads_count)
            rb_raise(rb_eArgError, "threads: too short");
        q.threads = (const uint8_t *)RSTRING_PTR(argv[9]);
    }
    uint32_t *found;
    size_t count;
    rb_sdb_check(sdb_spans_find(p, &q, &found, &count), "spans");
    ALLOCV_END(tags_buffer);
    RB_GC_GUARD(names);
    return numbers_array(found, count);
}

/* [ring, thread, parent, id, flags, begin, end, kind, name, request, trace, status, cpu, running, wait, blocked, gc,
 *  allocations, {tags}] */
static VALUE
span_row(VALUE self, VALUE number)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    size_t i = NUM2SIZET(number);
    if (i >= p->spans_count) rb_raise(rb_eArgError, "no such span");
    const struct sdb_span *s = &p->spans[i];
    VALUE tags = rb_hash_new();
    for (uint32_t k = 0; k < s->tags_n; k++) {
        const struct sdb_pair *pair = &p->pairs[s->tags_off + k];
        rb_hash_aset(tags, rb_sdb_text(p, pair->key), rb_sdb_text(p, pair->value));
    }
    return rb_ary_new_from_args(
        19, UINT2NUM(s->ring), rb_sdb_number(s->thread), rb_sdb_number(s->parent), ULL2NUM(s->id),
        UINT2NUM(s->flags), ULL2NUM(s->begin), ULL2NUM(s->end), rb_sdb_text(p, s->kind),
        rb_sdb_text(p, s->name), rb_sdb_text(p, s->request_id), rb_sdb_text(p, s->trace_id),
        ULL2NUM(s->status), ULL2NUM(s->cpu_ns), ULL2NUM(s->running_ns), ULL2NUM(s->wait_ns),
        ULL2NUM(s->blocked_ns), ULL2NUM(s->gc_ns), ULL2NUM(s->allocations), tags);
}

/* All spans in columns, for sorting: [begin u64, wall u64] */
static VALUE
span_times(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE begins = rb_str_new(NULL, (long)(p->spans_count * 8)),
          walls = rb_str_new(NULL, (long)(p->spans_count * 8));
    for (size_t i = 0; i < p->spans_count; i++) {
        ((uint64_t *)RSTRING_PTR(begins))[i] = p->spans[i].begin;
        ((uint64_t *)RSTRING_PTR(walls))[i] = p->spans[i].end - p->spans[i].begin;
    }
    return rb_assoc_new(begins, walls);
}

static VALUE
span_intervals(VALUE self, VALUE numbers)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    Check_Type(numbers, T_ARRAY);
    VALUE packed = rb_funcall(numbers, rb_intern("pack"), 1, rb_str_new_cstr("L*"));
    struct sdb_interval *out;
    size_t count;
    rb_sdb_check(sdb_spans_intervals(p, (const uint32_t *)RSTRING_PTR(packed),
                                     (size_t)RSTRING_LEN(packed) / 4, &out, &count),
                 "spans");
    RB_GC_GUARD(packed);
    return rb_sdb_take_rows(out, count, sizeof(*out));
}

static VALUE
tag_intervals(VALUE self, VALUE key, VALUE value)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_tag tag = {string_number(p, key), string_number(p, value)};
    struct sdb_interval *out;
    size_t count;
    rb_sdb_check(sdb_tag_intervals(p, tag, &out, &count), "tags");
    return rb_sdb_take_rows(out, count, sizeof(*out));
}

static VALUE
intersect(VALUE self, VALUE left, VALUE right)
{
    Check_Type(left, T_STRING);
    Check_Type(right, T_STRING);
    size_t a = (size_t)RSTRING_LEN(left) / sizeof(struct sdb_interval);
    size_t b = (size_t)RSTRING_LEN(right) / sizeof(struct sdb_interval);
    struct sdb_interval *out = malloc((a + b + 1) * sizeof(*out));
    if (!out) rb_sdb_check(SDB_ERR_NOMEM, "intervals");
    size_t n = sdb_intervals_intersect((const struct sdb_interval *)RSTRING_PTR(left), a,
                                       (const struct sdb_interval *)RSTRING_PTR(right), b, out);
    RB_GC_GUARD(left);
    RB_GC_GUARD(right);
    return rb_sdb_take_rows(out, n, sizeof(*out));
}

/* Intervals in any order, sorted and joined */
static VALUE
normalize(VALUE self, VALUE intervals)
{
    VALUE copy = rb_str_new(RSTRING_PTR(StringValue(intervals)), RSTRING_LEN(intervals));
    size_t n = sdb_intervals_normalize((struct sdb_interval *)RSTRING_PTR(copy),
                                       (size_t)RSTRING_LEN(copy) / sizeof(struct sdb_interval));
    return rb_str_substr(copy, 0, (long)(n * sizeof(struct sdb_interval)));
}

/* A thread from t0 to t1 */
static VALUE
interval(VALUE self, VALUE thread, VALUE t0, VALUE t1)
{
    struct sdb_interval in;
    memset(&in, 0, sizeof(in));
    in.thread = NUM2UINT(thread);
    in.t0 = NUM2ULL(t0);
    in.t1 = NUM2ULL(t1);
    return rb_str_new((const char *)&in, sizeof(in));
}

/* rows [thread, stack, span or nil, ns], the longest first, at most limit */
static VALUE
blame(VALUE self, VALUE intervals, VALUE limit)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    Check_Type(intervals, T_STRING);
    size_t most = NUM2SIZET(limit);
    struct sdb_blame *rows;
    size_t count;
    rb_sdb_check(sdb_blame_find(p, (const struct sdb_interval *)RSTRING_PTR(intervals),
                                (size_t)RSTRING_LEN(intervals) / sizeof(struct sdb_interval), &rows,
                                &count),
                 "blame");
    if (count > most) count = most;
    VALUE copy = rb_sdb_take_rows(rows, count, sizeof(*rows)),
          result = rb_ary_new_capa((long)count);
    for (size_t i = 0; i < count; i++) {
        const struct sdb_blame *row = (const struct sdb_blame *)RSTRING_PTR(copy) + i;
        rb_ary_push(result, rb_ary_new_from_args(4, UINT2NUM(row->thread), UINT2NUM(row->stack),
                                                 rb_sdb_number(row->span), ULL2NUM(row->ns)));
    }
    RB_GC_GUARD(copy);
    RB_GC_GUARD(intervals);
    return result;
}

static VALUE
span_at(VALUE self, VALUE thread, VALUE at)
{
    return rb_sdb_number(sdb_span_at(rb_sdb_profile_get(self), NUM2UINT(thread), NUM2ULL(at)));
}

void
rb_sdb_init_spans(VALUE profile)
{
    rb_define_method(profile, "span_names", span_names, 0);
    rb_define_method(profile, "spans_find", spans_find, -1);
    rb_define_method(profile, "span_row", span_row, 1);
    rb_define_method(profile, "span_times", span_times, 0);
    rb_define_method(profile, "span_intervals", span_intervals, 1);
    rb_define_method(profile, "tag_intervals", tag_intervals, 2);
    rb_define_method(profile, "intersect", intersect, 2);
    rb_define_method(profile, "normalize", normalize, 1);
    rb_define_method(profile, "interval", interval, 3);
    rb_define_method(profile, "blame", blame, 2);
    rb_define_method(profile, "span_at", span_at, 2);
}
