/* SPDX-License-Identifier: MIT
 *
 * sums.c - sums over a selection.
 *
 * Runs on: any Ruby thread, GVL; the summing itself without
 */
#include <stdlib.h>

#include "error.h"
#include "glue/glue.h"
#include "glue/init.h"
#include "profile/aggregate.h"

struct ask { /* what all of them are asked with */
    const struct sdb_profile *profile;
    struct rb_sdb_selection selection;
    enum sdb_metric metric;
};

static void
ask_fill(struct ask *ask, VALUE self, VALUE selection, VALUE metric)
{
    ask->profile = rb_sdb_profile_get(self);
    rb_sdb_selection(selection, ask->profile, &ask->selection);
    ask->metric = NIL_P(metric) ? SDB_WALL : rb_sdb_metric(metric);
}

/* {self_ns: u64s, total_ns: u64s}; frees times, also when it raises. */
static VALUE
times_columns(struct sdb_reader_times *times, size_t n)
{
    VALUE copy = rb_sdb_take_rows(times, n, sizeof(*times)), columns = rb_hash_new();
    uint64_t *self = rb_sdb_put_column(columns, "self_ns", n, sizeof(*self));
    uint64_t *total = rb_sdb_put_column(columns, "total_ns", n, sizeof(*total));
    const struct sdb_reader_times *rows = (const struct sdb_reader_times *)RSTRING_PTR(copy);
    for (size_t i = 0; i < n; i++) {
        self[i] = rows[i].self_ns;
        total[i] = rows[i].total_ns;
    }
    RB_GC_GUARD(copy);
    return columns;
}

struct ask_functions {
    struct ask ask;
    struct sdb_sums sums;
};

static int
functions_run(void *data)
{
    struct ask_functions *a = data;
    return sdb_sum_functions(a->ask.profile, &a->ask.selection.native, a->ask.metric, &a->sums);
}

/* {total_ns:, samples:, unnamed_ns:, threads:, functions: {self_ns:, total_ns:} per function} */
static VALUE
sum_functions(VALUE self, VALUE selection, VALUE metric)
{
    struct ask_functions a;
    ask_fill(&a.ask, self, selection, metric);
    rb_sdb_check(rb_sdb_ask(functions_run, &a), "functions");
    VALUE functions = times_columns(a.sums.functions, a.ask.profile->funcs_count);
    VALUE answer = rb_hash_new();
    rb_sdb_put(answer, "total_ns", ULL2NUM(a.sums.total_ns));
    rb_sdb_put(answer, "samples", ULL2NUM(a.sums.samples));
    rb_sdb_put(answer, "unnamed_ns", ULL2NUM(a.sums.unnamed_ns));
    rb_sdb_put(answer, "threads", SIZET2NUM(a.sums.threads));
    rb_sdb_put(answer, "functions", functions);
    RB_SDB_GUARD(a.ask.selection);
    RB_GC_GUARD(self);
    return answer;
}

struct ask_lines {
    struct ask ask;
    uint32_t path;
    struct sdb_line_times *lines;
    size_t count;
};

static int
lines_run(void *data)
{
    struct ask_lines *a = data;
    return sdb_sum_lines(a->ask.profile, &a->ask.selection.native, a->ask.metric, a->path,
                         &a->lines, &a->count);
}

/* {line: u32s, self_ns: u64s, total_ns: u64s} of the lines with time, by line */
static VALUE
sum_lines(VALUE self, VALUE selection, VALUE metric, VALUE path)
{
    struct ask_lines a;
    ask_fill(&a.ask, self, selection, metric);
    StringValue(path);
    a.path = sdb_string_find(a.ask.profile, RSTRING_PTR(path), (size_t)RSTRING_LEN(path));
    rb_sdb_check(rb_sdb_ask(lines_run, &a), "lines");
    VALUE copy = rb_sdb_take_rows(a.lines, a.count, sizeof(*a.lines)), columns = rb_hash_new();
    uint32_t *line = rb_sdb_put_column(columns, "line", a.count, sizeof(*line));
    uint64_t *own = rb_sdb_put_column(columns, "self_ns", a.count, sizeof(*own));
    uint64_t *total = rb_sdb_put_column(columns, "total_ns", a.count, sizeof(*total));
    const struct sdb_line_times *rows = (const struct sdb_line_times *)RSTRING_PTR(copy);
    for (size_t i = 0; i < a.count; i++) {
        line[i] = rows[i].line;
        own[i] = rows[i].times.self_ns;
        total[i] = rows[i].times.total_ns;
    }
    RB_GC_GUARD(copy);
    RB_SDB_GUARD(a.ask.selection);
    RB_GC_GUARD(self);
    return columns;
}

struct ask_threads {
    struct ask ask;
    struct sdb_thread_times *times;
};

static int
threads_run(void *data)
{
    struct ask_threads *a = data;
    return sdb_sum_threads(a->ask.profile, &a->ask.selection.native, a->times);
}

static VALUE
thread_row(const struct sdb_thread_times *times)
{
    if (times->first > times->last) return Qnil;
    VALUE row = rb_hash_new();
    rb_sdb_put(row, "running_ns", ULL2NUM(times->state_ns[SDB_RUNNING]));
    rb_sdb_put(row, "gvl_wait_ns", ULL2NUM(times->state_ns[SDB_GVL_WAIT]));
    rb_sdb_put(row, "blocked_ns", ULL2NUM(times->state_ns[SDB_BLOCKED]));
    rb_sdb_put(row, "gc_ns", ULL2NUM(times->state_ns[SDB_GC]));
    rb_sdb_put(row, "unknown_ns", ULL2NUM(times->state_ns[SDB_UNKNOWN]));
    rb_sdb_put(row, "cpu_ns", ULL2NUM(times->cpu_ns));
    rb_sdb_put(row, "first", ULL2NUM(times->first));
    rb_sdb_put(row, "last", ULL2NUM(times->last));
    return row;
}

/* per thread {running_ns:, ...}, nil without time in the selection */
static VALUE
sum_threads(VALUE self, VALUE selection)
{
    struct ask_threads a;
    ask_fill(&a.ask, self, selection, Qnil);
    size_t n = a.ask.profile->threads_count;
    VALUE bytes = rb_str_new(NULL, (long)(n * sizeof(*a.times))), rows = rb_ary_new_capa((long)n);
    a.times = (struct sdb_thread_times *)RSTRING_PTR(bytes);
    rb_sdb_check(rb_sdb_ask(threads_run, &a), "threads");
    for (size_t i = 0; i < n; i++) rb_ary_push(rows, thread_row(&a.times[i]));
    RB_GC_GUARD(bytes);
    RB_SDB_GUARD(a.ask.selection);
    RB_GC_GUARD(self);
    return rows;
}

struct ask_tree {
    struct ask ask;
    bool by_line;
    struct sdb_tree_node *nodes;
    size_t count;
};

static int
tree_run(void *data)
{
    struct ask_tree *a = data;
    return sdb_sum_tree(a->ask.profile, &a->ask.selection.native, a->ask.metric, a->by_line,
                        &a->nodes, &a->count);
}

/* {parent: u32s, function: u32s, line: u32s, self_ns: u64s, total_ns: u64s}; node 0 is the root */
static VALUE
sum_tree(VALUE self, VALUE selection, VALUE metric, VALUE by_line)
{
    struct ask_tree a;
    ask_fill(&a.ask, self, selection, metric);
    a.by_line = RTEST(by_line);
    rb_sdb_check(rb_sdb_ask(tree_run, &a), "tree");
    size_t n = a.count;
    VALUE copy = rb_sdb_take_rows(a.nodes, n, sizeof(*a.nodes)), columns = rb_hash_new();
    uint32_t *parent = rb_sdb_put_column(columns, "parent", n, sizeof(*parent));
    uint32_t *function = rb_sdb_put_column(columns, "function", n, sizeof(*function));
    uint32_t *line = rb_sdb_put_column(columns, "line", n, sizeof(*line));
    uint64_t *own = rb_sdb_put_column(columns, "self_ns", n, sizeof(*own));
    uint64_t *total = rb_sdb_put_column(columns, "total_ns", n, sizeof(*total));
    const struct sdb_tree_node *nodes = (const struct sdb_tree_node *)RSTRING_PTR(copy);
    for (size_t i = 0; i < n; i++) {
        parent[i] = nodes[i].parent;
        function[i] = nodes[i].func;
        line[i] = nodes[i].line;
        own[i] = nodes[i].self_ns;
        total[i] = nodes[i].total_ns;
    }
    RB_GC_GUARD(copy);
    RB_SDB_GUARD(a.ask.selection);
    RB_GC_GUARD(self);
    return columns;
}

struct ask_edges {
    struct ask ask;
    const uint8_t *targets;
    struct sdb_edges edges;
};

static int
edges_run(void *data)
{
    struct ask_edges *a = data;
    return sdb_sum_edges(a->ask.profile, &a->ask.selection.native, a->ask.metric, a->targets,
                         &a->edges);
}

/* targets: a byte per function. {total_ns:, self_ns: and target_ns: of the targets, callers: and callees:
 * {self_ns:, total_ns:} per function} */
static VALUE
sum_edges(VALUE self, VALUE selection, VALUE metric, VALUE targets)
{
    struct ask_edges a;
    ask_fill(&a.ask, self, selection, metric);
    Check_Type(targets, T_STRING);
    size_t n = a.ask.profile->funcs_count;
    if ((size_t)RSTRING_LEN(targets) < n) rb_raise(rb_eArgError, "targets: too short");
    a.targets = (const uint8_t *)RSTRING_PTR(targets);
    rb_sdb_check(rb_sdb_ask(edges_run, &a), "edges");
    VALUE answer = rb_hash_new();
    rb_sdb_put(answer, "callees", times_columns(a.edges.callees, n));
    rb_sdb_put(answer, "callers", times_columns(a.edges.callers, n));
    rb_sdb_put(answer, "total_ns", ULL2NUM(a.edges.total_ns));
    rb_sdb_put(answer, "self_ns", ULL2NUM(a.edges.own.self_ns));
    rb_sdb_put(answer, "target_ns", ULL2NUM(a.edges.own.total_ns));
    RB_SDB_GUARD(a.ask.selection);
    RB_GC_GUARD(targets);
    RB_GC_GUARD(self);
    return answer;
}

struct ask_cells {
    struct ask ask;
    struct sdb_cell *cells;
    size_t count;
};

static int
cells_run(void *data)
{
    struct ask_cells *a = data;
    return sdb_sum_cells(a->ask.profile, &a->ask.selection.native, &a->cells, &a->count);
}

/* {count:, thread: u32s, stack: u32s, wall: u64s, and one for each other metric} */
static VALUE
sum_cells(VALUE self, VALUE selection)
{
    struct ask_cells a;
    ask_fill(&a.ask, self, selection, Qnil);
    rb_sdb_check(rb_sdb_ask(cells_run, &a), "stacks");
    size_t n = a.count;
    VALUE copy = rb_sdb_take_rows(a.cells, n, sizeof(*a.cells)), columns = rb_hash_new();
    const struct sdb_cell *cells = (const struct sdb_cell *)RSTRING_PTR(copy);
    rb_sdb_put(columns, "count", SIZET2NUM(n));
    uint32_t *thread = rb_sdb_put_column(columns, "thread", n, sizeof(*thread));
    uint32_t *stack = rb_sdb_put_column(columns, "stack", n, sizeof(*stack));
    for (size_t i = 0; i < n; i++) {
        thread[i] = cells[i].thread;
        stack[i] = cells[i].stack;
    }
    for (unsigned metric = 0; metric < SDB_METRIC_COUNT; metric++) {
        uint64_t *ns = rb_sdb_put_column(columns, rb_sdb_metric_name(metric), n, sizeof(*ns));
        for (size_t i = 0; i < n; i++) ns[i] = cells[i].ns[metric];
    }
    RB_GC_GUARD(copy);
    RB_SDB_GUARD(a.ask.selection);
    RB_GC_GUARD(self);
    return columns;
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
}
