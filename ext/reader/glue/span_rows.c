/* SPDX-License-Identifier: MIT
 *
 * span_rows.c - finding spans, what they hold, and their intervals.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "glue/glue.h"
#include "glue/init.h"
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

/* Names of spans: {string number => name} */
static VALUE
span_names(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE seen = rb_str_new(NULL, (long)p->strings_count), rows = rb_hash_new();
    memset(RSTRING_PTR(seen), 0, p->strings_count);
    for (size_t i = 0; i < p->spans_count; i++) {
        uint32_t name = p->spans[i].name;
        if (RSTRING_PTR(seen)[name]) continue;
        RSTRING_PTR(seen)[name] = 1;
        rb_hash_aset(rows, UINT2NUM(name), rb_sdb_text(p, name));
    }
    return rows;
}

/* Bytes, one per string: 1 for the numbers in the Array. */
static VALUE
marked_strings(const struct sdb_profile *p, VALUE numbers)
{
    VALUE marks = rb_str_new(NULL, (long)p->strings_count);
    memset(RSTRING_PTR(marks), 0, p->strings_count);
    for (long i = 0; i < RARRAY_LEN(numbers); i++) {
        size_t number = NUM2SIZET(rb_ary_entry(numbers, i));
        if (number < p->strings_count) RSTRING_PTR(marks)[number] = 1;
    }
    return marks;
}

/* spans_find({names:, request:, trace:, tags:, roots:, min_ns:, percentile:, from:, to:, threads:}) -> numbers.
 * names: Array of string numbers, nil any; tags: {key => value}; percentile nil: all. */
static VALUE
spans_find(VALUE self, VALUE query)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    Check_Type(query, T_HASH);
    VALUE names = rb_sdb_get(query, "names"), request = rb_sdb_get(query, "request"),
          trace = rb_sdb_get(query, "trace"), pairs = rb_sdb_get(query, "tags"),
          percentile = rb_sdb_get(query, "percentile"), to = rb_sdb_get(query, "to"),
          threads = rb_sdb_get(query, "threads"), marks = Qnil, tags_buffer = Qnil;
    struct sdb_span_query q = {
        .by_request = !NIL_P(request),
        .by_trace = !NIL_P(trace),
        .request = NIL_P(request) ? 0 : string_number(p, request),
        .trace = NIL_P(trace) ? 0 : string_number(p, trace),
        .roots = RTEST(rb_sdb_get(query, "roots")),
        .min_ns = NUM2ULL(rb_sdb_get(query, "min_ns")),
        .percentile = NIL_P(percentile) ? -1.0 : NUM2DBL(percentile),
        .from = NUM2ULL(rb_sdb_get(query, "from")),
        .to = NIL_P(to) ? SDB_NO_TIME : NUM2ULL(to),
    };
    if (!NIL_P(names)) {
        marks = marked_strings(p, names);
        q.names = (const uint8_t *)RSTRING_PTR(marks);
    }
    Check_Type(pairs, T_ARRAY);
    q.tag_count = (size_t)RARRAY_LEN(pairs);
    struct sdb_tag *tags = ALLOCV_N(struct sdb_tag, tags_buffer, q.tag_count + 1);
    for (size_t i = 0; i < q.tag_count; i++) {
        VALUE pair = rb_ary_entry(pairs, (long)i);
        tags[i] = (struct sdb_tag){string_number(p, rb_ary_entry(pair, 0)),
                                   string_number(p, rb_ary_entry(pair, 1))};
    }
    q.tags = tags;
    if (!NIL_P(threads)) {
        Check_Type(threads, T_STRING);
        if ((size_t)RSTRING_LEN(threads) < p->threads_count)
            rb_raise(rb_eArgError, "threads: too short");
        q.threads = (const uint8_t *)RSTRING_PTR(threads);
    }
    uint32_t *found;
    size_t count;
    rb_sdb_check(sdb_spans_find(p, &q, &found, &count), "spans");
    ALLOCV_END(tags_buffer);
    RB_GC_GUARD(marks);
    RB_GC_GUARD(threads);
    return numbers_array(found, count);
}

static VALUE
span_tags(const struct sdb_profile *p, const struct sdb_span *s)
{
    VALUE tags = rb_hash_new();
    for (uint32_t k = 0; k < s->tags_n; k++) {
        const struct sdb_pair *pair = &p->pairs[s->tags_off + k];
        rb_hash_aset(tags, rb_sdb_text(p, pair->key), rb_sdb_text(p, pair->value));
    }
    return tags;
}

/* {ring:, thread:, ..., tags: {}} */
static VALUE
span_row(VALUE self, VALUE number)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    size_t i = NUM2SIZET(number);
    if (i >= p->spans_count) rb_raise(rb_eArgError, "no such span");
    const struct sdb_span *s = &p->spans[i];
    VALUE row = rb_hash_new();
    rb_sdb_put(row, "ring", UINT2NUM(s->ring));
    rb_sdb_put(row, "thread", rb_sdb_number(s->thread));
    rb_sdb_put(row, "parent", rb_sdb_number(s->parent));
    rb_sdb_put(row, "id", ULL2NUM(s->id));
    rb_sdb_put(row, "open", s->flags & SDB_SPAN_OPEN ? Qtrue : Qfalse);
    rb_sdb_put(row, "begin_ns", ULL2NUM(s->begin));
    rb_sdb_put(row, "end_ns", ULL2NUM(s->end));
    rb_sdb_put(row, "kind", rb_sdb_text(p, s->kind));
    rb_sdb_put(row, "name", rb_sdb_text(p, s->name));
    rb_sdb_put(row, "request_id", rb_sdb_text(p, s->request_id));
    rb_sdb_put(row, "trace_id", rb_sdb_text(p, s->trace_id));
    rb_sdb_put(row, "status", ULL2NUM(s->status));
    rb_sdb_put(row, "cpu_ns", ULL2NUM(s->cpu_ns));
    rb_sdb_put(row, "running_ns", ULL2NUM(s->running_ns));
    rb_sdb_put(row, "gvl_wait_ns", ULL2NUM(s->wait_ns));
    rb_sdb_put(row, "blocked_ns", ULL2NUM(s->blocked_ns));
    rb_sdb_put(row, "gc_ns", ULL2NUM(s->gc_ns));
    rb_sdb_put(row, "allocations", ULL2NUM(s->allocations));
    rb_sdb_put(row, "tags", span_tags(p, s));
    return row;
}

/* The outermost span that a span is in. */
static VALUE
span_root(VALUE self, VALUE number)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    size_t i = NUM2SIZET(number);
    if (i >= p->spans_count) rb_raise(rb_eArgError, "no such span");
    return UINT2NUM(sdb_span_root(p, (uint32_t)i));
}

static VALUE
span_name(VALUE self, VALUE number)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    size_t i = NUM2SIZET(number);
    if (i >= p->spans_count) rb_raise(rb_eArgError, "no such span");
    return rb_sdb_text(p, p->spans[i].name);
}

/* Of all spans, for sorting: {begin: u64s, wall: u64s} */
static VALUE
span_times(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE columns = rb_hash_new();
    uint64_t *begin = rb_sdb_put_column(columns, "begin", p->spans_count, sizeof(*begin));
    uint64_t *wall = rb_sdb_put_column(columns, "wall", p->spans_count, sizeof(*wall));
    for (size_t i = 0; i < p->spans_count; i++) {
        begin[i] = p->spans[i].begin;
        wall[i] = p->spans[i].end - p->spans[i].begin;
    }
    return columns;
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

/* Whether a thread is inside the intervals (sorted, without overlaps) at an instant; its end counts as inside. */
static VALUE
inside_p(VALUE self, VALUE intervals, VALUE thread, VALUE at)
{
    (void)self;
    Check_Type(intervals, T_STRING);
    const struct sdb_interval *rows = (const struct sdb_interval *)RSTRING_PTR(intervals);
    size_t n = (size_t)RSTRING_LEN(intervals) / sizeof(*rows);
    bool inside = sdb_intervals_cover(rows, n, NUM2UINT(thread), NUM2ULL(at));
    RB_GC_GUARD(intervals);
    return inside ? Qtrue : Qfalse;
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
    rb_define_method(profile, "spans_find", spans_find, 1);
    rb_define_method(profile, "span_root", span_root, 1);
    rb_define_method(profile, "span_name", span_name, 1);
    rb_define_method(profile, "span_row", span_row, 1);
    rb_define_method(profile, "span_times", span_times, 0);
    rb_define_method(profile, "span_intervals", span_intervals, 1);
    rb_define_method(profile, "tag_intervals", tag_intervals, 2);
    rb_define_method(profile, "intersect", intersect, 2);
    rb_define_method(profile, "normalize", normalize, 1);
    rb_define_method(profile, "interval", interval, 3);
    rb_define_method(profile, "inside?", inside_p, 3);
    rb_define_method(profile, "span_at", span_at, 2);
}
