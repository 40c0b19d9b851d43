/* SPDX-License-Identifier: MIT
 *
 * sums.c - sums over a selection, and its segments. Rows come as binary Strings of native-endian numbers.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <stdlib.h>

#include "error.h"
#include "glue/glue.h"
#include "log/memory.h"
#include "profile/aggregate.h"

static enum sdb_metric
metric_of(VALUE number)
{
    unsigned metric = NUM2UINT(number);
    if (metric >= SDB_METRIC_COUNT) rb_raise(rb_eArgError, "no such metric");
    return metric;
}

/* [total_ns, samples, unnamed_ns, threads, (self, total) per function] */
static VALUE
sum_functions(VALUE self, VALUE selection, VALUE metric)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_selection s;
    struct sdb_sums sums;
    rb_sdb_selection(selection, p, &s);
    rb_sdb_check(sdb_sum_functions(p, &s, metric_of(metric), &sums), "functions");
    VALUE times = rb_sdb_take_rows(sums.functions, p->funcs_count, sizeof(*sums.functions));
    RB_GC_GUARD(selection);
    return rb_ary_new_from_args(5, ULL2NUM(sums.total_ns), ULL2NUM(sums.samples),
                                ULL2NUM(sums.unnamed_ns), SIZET2NUM(sums.threads), times);
}

/* (self, total) per line, from 0 */
static VALUE
sum_lines(VALUE self, VALUE selection, VALUE metric, VALUE path)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_selection s;
    struct sdb_times *times;
    size_t count;
    StringValue(path);
    rb_sdb_selection(selection, p, &s);
    uint32_t string = sdb_string_find(p, RSTRING_PTR(path), (size_t)RSTRING_LEN(path));
    rb_sdb_check(sdb_sum_lines(p, &s, metric_of(metric), string, &times, &count), "lines");
    RB_GC_GUARD(selection);
    return rb_sdb_take_rows(times, count, sizeof(*times));
}

/* per thread: five states, cpu, first, last */
static VALUE
sum_threads(VALUE self, VALUE selection)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_selection s;
    rb_sdb_selection(selection, p, &s);
    VALUE rows = rb_str_new(NULL, (long)(p->threads_count * sizeof(struct sdb_thread_times)));
    rb_sdb_check(sdb_sum_threads(p, &s, (struct sdb_thread_times *)RSTRING_PTR(rows)), "threads");
    RB_GC_GUARD(selection);
    return rows;
}

/* rows { u32 parent, function, line, 0; u64 self, total } */
static VALUE
sum_tree(VALUE self, VALUE selection, VALUE metric, VALUE by_line)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_selection s;
    struct sdb_tree_node *nodes;
    size_t count;
    rb_sdb_selection(selection, p, &s);
    rb_sdb_check(sdb_sum_tree(p, &s, metric_of(metric), RTEST(by_line), &nodes, &count), "tree");
    RB_GC_GUARD(selection);
    return rb_sdb_take_rows(nodes, count, sizeof(*nodes));
}

/* targets: a byte per function. [total, own self, own total, callers, callees] */
static VALUE
sum_edges(VALUE self, VALUE selection, VALUE metric, VALUE targets)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_selection s;
    struct sdb_edges edges;
    Check_Type(targets, T_STRING);
    if ((size_t)RSTRING_LEN(targets) < p->funcs_count) rb_raise(rb_eArgError, "targets: too short");
    rb_sdb_selection(selection, p, &s);
    rb_sdb_check(
        sdb_sum_edges(p, &s, metric_of(metric), (const uint8_t *)RSTRING_PTR(targets), &edges),
        "edges");
    VALUE callees = rb_sdb_take_rows(edges.callees, p->funcs_count, sizeof(struct sdb_times));
    VALUE callers = rb_sdb_take_rows(edges.callers, p->funcs_count, sizeof(struct sdb_times));
    RB_GC_GUARD(selection);
    RB_GC_GUARD(targets);
    return rb_ary_new_from_args(5, ULL2NUM(edges.total_ns), ULL2NUM(edges.own.self_ns),
                                ULL2NUM(edges.own.total_ns), callers, callees);
}

struct cell_rows {
    struct sdb_cell *cells;
    size_t count;
};

static VALUE
cells_copy(VALUE arg)
{
    const struct cell_rows *rows = (const struct cell_rows *)arg;
    VALUE thread = rb_str_new(NULL, (long)(rows->count * 4)),
          stack = rb_str_new(NULL, (long)(rows->count * 4));
    VALUE result = rb_ary_new_from_args(3, SIZET2NUM(rows->count), thread, stack);
    for (size_t i = 0; i < rows->count; i++) {
        ((uint32_t *)RSTRING_PTR(thread))[i] = rows->cells[i].thread;
        ((uint32_t *)RSTRING_PTR(stack))[i] = rows->cells[i].stack;
    }
    for (int metric = 0; metric < SDB_METRIC_COUNT; metric++) {
        VALUE column = rb_str_new(NULL, (long)(rows->count * 8));
        for (size_t i = 0; i < rows->count; i++)
            ((uint64_t *)RSTRING_PTR(column))[i] = rows->cells[i].ns[metric];
        rb_ary_push(result, column);
    }
    return result;
}

static VALUE
cells_free(VALUE arg)
{
    free(((struct cell_rows *)arg)->cells);
    return Qnil;
}

/* [count, thread u32, stack u32, then u64 per metric] */
static VALUE
sum_cells(VALUE self, VALUE selection)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_selection s;
    struct cell_rows rows;
    rb_sdb_selection(selection, p, &s);
    rb_sdb_check(sdb_sum_cells(p, &s, &rows.cells, &rows.count), "stacks");
    RB_GC_GUARD(selection);
    return rb_ensure(cells_copy, (VALUE)&rows, cells_free, (VALUE)&rows);
}

struct columns {
    struct sdb_piece *pieces;
    size_t count, capacity;
};

static int
piece_add(const struct sdb_piece *piece, void *data)
{
    struct columns *c = data;
    int err = sdb_grow(&c->pieces, &c->capacity, c->count + 1, sizeof(*c->pieces));
    if (!err) c->pieces[c->count++] = *piece;
    return err;
}

static VALUE
columns_copy(VALUE arg)
{
    const struct columns *c = (const struct columns *)arg;
    size_t n = c->count;
    VALUE thread = rb_str_new(NULL, (long)(n * 4)), stack = rb_str_new(NULL, (long)(n * 4));
    VALUE state = rb_str_new(NULL, (long)n), start = rb_str_new(NULL, (long)(n * 8));
    VALUE duration = rb_str_new(NULL, (long)(n * 8)), cpu = rb_str_new(NULL, (long)(n * 8));
    uint32_t *threads = (uint32_t *)RSTRING_PTR(thread), *stacks = (uint32_t *)RSTRING_PTR(stack);
    uint8_t *states = (uint8_t *)RSTRING_PTR(state);
    uint64_t *starts = (uint64_t *)RSTRING_PTR(start),
             *durations = (uint64_t *)RSTRING_PTR(duration);
    uint64_t *cpus = (uint64_t *)RSTRING_PTR(cpu);
    for (size_t i = 0; i < n; i++) {
        const struct sdb_piece *piece = &c->pieces[i];
        threads[i] = piece->thread;
        stacks[i] = piece->stack;
        states[i] = (uint8_t)piece->state;
        starts[i] = piece->t0;
        durations[i] = piece->t1 - piece->t0;
        cpus[i] = piece->cpu_ns;
    }
    return rb_ary_new_from_args(7, SIZET2NUM(n), thread, start, duration, stack, state, cpu);
}

static VALUE
columns_free(VALUE arg)
{
    free(((struct columns *)arg)->pieces);
    return Qnil;
}

/* [count, thread u32, start u64, duration u64, stack u32, state u8, cpu u64] */
static VALUE
segments(VALUE self, VALUE selection)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    struct sdb_selection s;
    struct columns c = {0};
    rb_sdb_selection(selection, p, &s);
    int err = sdb_select(p, &s, piece_add, &c);
    if (err) free(c.pieces);
    rb_sdb_check(err, "segments");
    RB_GC_GUARD(selection);
    return rb_ensure(columns_copy, (VALUE)&c, columns_free, (VALUE)&c);
}

/* [stack, state, since] of a thread at an instant, nil when it does not live then. Its end counts as inside. */
static VALUE
stack_at(VALUE self, VALUE thread, VALUE at)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    size_t number = NUM2SIZET(thread);
    uint64_t instant = NUM2ULL(at);
    if (number >= p->threads_count) rb_raise(rb_eArgError, "no such thread");
    const struct sdb_thread *t = &p->threads[number];
    if (t->segment_count == 0 || instant < t->segments[0].t0 || instant > t->end) return Qnil;
    size_t i = instant == t->end ? t->segment_count - 1 : sdb_segment_find(t, instant);
    const struct sdb_segment *segment = &t->segments[i];
    return rb_ary_new_from_args(3, UINT2NUM(segment->stack), UINT2NUM(segment->state),
                                ULL2NUM(segment->t0));
}

void
rb_sdb_init_sums(VALUE profile)
{
    rb_define_method(profile, "sum_functions", sum_functions, 2);
    rb_define_method(profile, "sum_lines", sum_lines, 3);
    rb_define_method(profile, "sum_threads", sum_threads, 1);
    rb_define_method(profile, "sum_tree", sum_tree, 3);
    rb_define_method(profile, "sum_edges", sum_edges, 3);
    rb_define_method(profile, "sum_cells", sum_cells, 1);
    rb_define_method(profile, "segments", segments, 1);
    rb_define_method(profile, "stack_at", stack_at, 2);
}
