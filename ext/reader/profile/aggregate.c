/* SPDX-License-Identifier: MIT
 *
 * aggregate.c - see aggregate.h. First self time per stack in one pass over the segments, then totals in one
 * pass over the stacks from the last to the first: a parent's number is below its children's.
 *
 * Runs on: offline
 */
#include "profile/aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

struct stack_sum {
    enum sdb_metric metric;
    uint64_t *self;
    uint64_t total_ns, samples;
    size_t threads;
    uint32_t last_thread;
};

static int
stack_sum_visit(const struct sdb_piece *piece, void *data)
{
    struct stack_sum *sum = data;
    uint64_t ns = sdb_piece_ns(piece, sum->metric);
    if (piece->thread != sum->last_thread) {
        sum->last_thread = piece->thread;
        sum->threads++;
    }
    sum->self[piece->stack] += ns;
    sum->total_ns += ns;
    sum->samples += piece->ticks;
    return 0;
}

static int
sum_stacks(const struct sdb_profile *p, const struct sdb_selection *s, enum sdb_metric metric,
           struct stack_sum *sum)
{
    *sum = (struct stack_sum){.metric = metric, .last_thread = SDB_NONE};
    sum->self = calloc(p->stacks_count, sizeof(*sum->self));
    if (!sum->self) return SDB_ERR_NOMEM;
    int err = sdb_select(p, s, stack_sum_visit, sum);
    if (err) free(sum->self);
    return err;
}

/* Per stack the number of the first shown one from it downwards to the root, SDB_STACK_ROOT none. */
static uint32_t *
shown_stacks(const struct sdb_profile *p, const struct sdb_selection *s)
{
    uint32_t *shown = malloc(p->stacks_count * sizeof(*shown));
    if (!shown) return NULL;
    shown[SDB_STACK_ROOT] = SDB_STACK_ROOT;
    for (size_t i = 1; i < p->stacks_count; i++) {
        bool hidden =
            s->func_marks && s->func_marks[p->frames[p->stacks[i].frame].func] & SDB_MARK_HIDE;
        shown[i] = hidden ? shown[p->stacks[i].parent] : (uint32_t)i;
    }
    return shown;
}

/* self[] becomes the time at or above each stack. */
static void
accumulate(const struct sdb_profile *p, uint64_t *self)
{
    for (size_t i = p->stacks_count; i-- > 1;) self[p->stacks[i].parent] += self[i];
}

int
sdb_sum_functions(const struct sdb_profile *p, const struct sdb_selection *s,
                  enum sdb_metric metric, struct sdb_sums *sums)
{
    struct stack_sum sum;
    struct sdb_reader_times *times = calloc(p->funcs_count, sizeof(*times));
    uint32_t *shown = shown_stacks(p, s);
    int err = times && shown ? sum_stacks(p, s, metric, &sum) : SDB_ERR_NOMEM;
    if (err) {
        free(times);
        free(shown);
        return err;
    }
    for (size_t i = 1; i < p->stacks_count; i++) {
        if (!sum.self[i]) continue;
        uint32_t owner = shown[i];
        uint32_t func =
            owner == SDB_STACK_ROOT ? SDB_FUNC_NO_FRAMES : p->frames[p->stacks[owner].frame].func;
        times[func].self_ns += sum.self[i];
        if (owner == SDB_STACK_ROOT) times[func].total_ns += sum.self[i];
    }
    accumulate(p, sum.self);
    for (size_t i = 1; i < p->stacks_count; i++)
        if (shown[i] == i && !p->stacks[i].again)
            times[p->frames[p->stacks[i].frame].func].total_ns += sum.self[i];
    *sums = (struct sdb_sums){sum.total_ns, sum.samples, times[SDB_FUNC_UNNAMED].self_ns,
                              sum.threads, times};
    free(sum.self);
    free(shown);
    return SDB_OK;
}

struct line_walk {
    const struct sdb_profile *profile;
    const uint32_t *shown;
    const uint64_t *total;
    uint32_t *row_of; /* per frame; SDB_NONE: of another file */
    struct sdb_line_times *rows;
    uint32_t *on_path; /* per row */
    size_t count, capacity;
};

/* The row of a stack's frame when it is shown and of the file, SDB_NONE. */
static uint32_t
row_of(const struct line_walk *w, uint32_t stack)
{
    return w->shown[stack] == stack ? w->row_of[w->profile->stacks[stack].frame] : SDB_NONE;
}

static void
line_enter(uint32_t stack, void *data)
{
    struct line_walk *w = data;
    uint32_t row = row_of(w, stack);
    if (row != SDB_NONE && w->on_path[row]++ == 0) w->rows[row].times.total_ns += w->total[stack];
}

static void
line_leave(uint32_t stack, void *data)
{
    struct line_walk *w = data;
    uint32_t row = row_of(w, stack);
    if (row != SDB_NONE) w->on_path[row]--;
}

/* A row for each line that a frame of the file is on: a log may name line 4,000,000,000. */
static int
line_rows_make(struct line_walk *w, uint32_t path)
{
    const struct sdb_profile *p = w->profile;
    struct sdb_map rows = {0};
    int err = sdb_grow(&w->rows, &w->capacity, 1, sizeof(*w->rows));
    for (size_t i = 0; i < p->frames_count && !err; i++) {
        w->row_of[i] = SDB_NONE;
        if (p->funcs[p->frames[i].func].path != path) continue;
        uint32_t line = p->frames[i].line, row = sdb_map_get(&rows, line, 0);
        if (row == SDB_MAP_NONE) {
            row = (uint32_t)w->count;
            err = sdb_grow(&w->rows, &w->capacity, w->count + 1, sizeof(*w->rows));
            if (!err) err = sdb_map_set(&rows, line, 0, row);
            if (!err) w->rows[w->count++] = (struct sdb_line_times){line, {0, 0}};
        }
        w->row_of[i] = row;
    }
    sdb_map_free(&rows);
    if (err) return err;
    w->on_path = calloc(w->count + 1, sizeof(*w->on_path));
    return w->on_path ? SDB_OK : SDB_ERR_NOMEM;
}

static int
by_line(const void *left, const void *right)
{
    const struct sdb_line_times *a = left, *b = right;
    return a->line < b->line ? -1 : a->line > b->line;
}

int
sdb_sum_lines(const struct sdb_profile *p, const struct sdb_selection *s, enum sdb_metric metric,
              uint32_t path, struct sdb_line_times **lines, size_t *count)
{
    struct stack_sum sum;
    uint32_t *shown = shown_stacks(p, s);
    struct line_walk w = {p, shown, NULL, malloc((p->frames_count + 1) * sizeof(*w.row_of)),
                          .rows = NULL};
    int err = shown && w.row_of ? line_rows_make(&w, path) : SDB_ERR_NOMEM;
    if (!err) err = sum_stacks(p, s, metric, &sum);
    if (err) goto out;
    for (size_t i = 1; i < p->stacks_count; i++) {
        uint32_t row = sum.self[i] && shown[i] != SDB_STACK_ROOT ? row_of(&w, shown[i]) : SDB_NONE;
        if (row != SDB_NONE) w.rows[row].times.self_ns += sum.self[i];
    }
    accumulate(p, sum.self);
    w.total = sum.self;
    err = sdb_profile_walk(p, line_enter, line_leave, &w);
    free(sum.self);
    if (err) goto out;
    size_t kept = 0;
    for (size_t i = 0; i < w.count; i++)
        if (w.rows[i].times.total_ns || w.rows[i].times.self_ns) w.rows[kept++] = w.rows[i];
    qsort(w.rows, kept, sizeof(*w.rows), by_line);
    *lines = w.rows;
    *count = kept;
    w.rows = NULL;
out:
    free(w.rows);
    free(w.row_of);
    free(w.on_path);
    free(shown);
    return err;
}

int
sdb_sum_edges(const struct sdb_profile *p, const struct sdb_selection *s, enum sdb_metric metric,
              const uint8_t *targets, struct sdb_edges *edges)
{
    struct stack_sum sum = {0};
    uint32_t *shown = shown_stacks(p, s);
    uint8_t *below =
        calloc(p->stacks_count, 1); /* 1: the outermost target is at or below, 2: it is this one */
    uint64_t *total = malloc(p->stacks_count * sizeof(*total));
    struct sdb_reader_times *callers = calloc(p->funcs_count, sizeof(*callers));
    struct sdb_reader_times *callees = calloc(p->funcs_count, sizeof(*callees));
    int err = shown && below && total && callers && callees ? sum_stacks(p, s, metric, &sum)
                                                            : SDB_ERR_NOMEM;
    if (err) goto out;
    edges->total_ns = sum.total_ns;
    for (size_t i = p->stacks_count; i-- > 1;) { /* time of hidden frames goes to their callers */
        if (shown[i] == i || shown[i] == SDB_STACK_ROOT) continue;
        sum.self[shown[i]] += sum.self[i];
        sum.self[i] = 0;
    }
    memcpy(total, sum.self, p->stacks_count * sizeof(*total));
    accumulate(p, total);
    edges->own = (struct sdb_reader_times){0, 0};
    for (size_t i = 1; i < p->stacks_count; i++) {
        uint32_t func = p->frames[p->stacks[i].frame].func, parent = p->stacks[i].parent;
        uint32_t caller = shown[parent];
        below[i] = below[parent] ? 1 : 0;
        if (shown[i] != i) continue;
        if (targets[func]) edges->own.self_ns += sum.self[i];
        if (targets[func] && !below[i]) {
            below[i] = 2;
            uint32_t from = caller == SDB_STACK_ROOT ? SDB_FUNC_NO_FRAMES
                                                     : p->frames[p->stacks[caller].frame].func;
            edges->own.total_ns += total[i];
            callers[from].total_ns += total[i];
            callers[from].self_ns += sum.self[i];
        } else if (caller != SDB_STACK_ROOT && below[caller] == 2) {
            callees[func].total_ns += total[i];
            callees[func].self_ns += sum.self[i];
        }
    }
    edges->callers = callers;
    edges->callees = callees;
    callers = callees = NULL;
out:
    free(sum.self);
    free(shown);
    free(below);
    free(total);
    free(callers);
    free(callees);
    return err;
}

static int
threads_visit(const struct sdb_piece *piece, void *data)
{
    struct sdb_thread_times *times = &((struct sdb_thread_times *)data)[piece->thread];
    times->state_ns[piece->state] += piece->t1 - piece->t0;
    times->cpu_ns += piece->cpu_ns;
    if (piece->t0 < times->first) times->first = piece->t0;
    if (piece->t1 > times->last) times->last = piece->t1;
    return 0;
}

int
sdb_sum_threads(const struct sdb_profile *p, const struct sdb_selection *s,
                struct sdb_thread_times *times)
{
    for (size_t i = 0; i < p->threads_count; i++)
        times[i] = (struct sdb_thread_times){.first = SDB_NO_TIME};
    return sdb_select(p, s, threads_visit, times);
}

struct cells {
    struct sdb_cell *cells;
    size_t count, capacity;
    uint32_t *
        cell_of; /* of the present thread, per stack; valid when at or behind `first` and for that stack */
    size_t first;
    uint32_t thread;
};

static int
cells_visit(const struct sdb_piece *piece, void *data)
{
    struct cells *c = data;
    if (piece->thread != c->thread) {
        c->thread = piece->thread;
        c->first = c->count;
    }
    uint32_t at = c->cell_of[piece->stack];
    if (at < c->first || at >= c->count || c->cells[at].stack != piece->stack) {
        if (c->count >= SDB_NONE) return SDB_ERR_FULL;
        int err = sdb_grow(&c->cells, &c->capacity, c->count + 1, sizeof(*c->cells));
        if (err) return err;
        at = c->cell_of[piece->stack] = (uint32_t)c->count++;
        c->cells[at] = (struct sdb_cell){.thread = piece->thread, .stack = piece->stack};
    }
    for (int metric = 0; metric < SDB_METRIC_COUNT; metric++)
        c->cells[at].ns[metric] += sdb_piece_ns(piece, (enum sdb_metric)metric);
    return 0;
}

int
sdb_sum_cells(const struct sdb_profile *p, const struct sdb_selection *s, struct sdb_cell **cells,
              size_t *count)
{
    struct cells c = {.cell_of = calloc(p->stacks_count, sizeof(*c.cell_of)), .thread = SDB_NONE};
    int err = c.cell_of ? sdb_grow(&c.cells, &c.capacity, 1, sizeof(*c.cells)) : SDB_ERR_NOMEM;
    if (!err) err = sdb_select(p, s, cells_visit, &c);
    free(c.cell_of);
    if (err) {
        free(c.cells);
        return err;
    }
    *cells = c.cells;
    *count = c.count;
    return SDB_OK;
}

/* Maps each stack with time to its node; nodes are made in order of stacks, so parents come first. */
int
sdb_sum_tree(const struct sdb_profile *p, const struct sdb_selection *s, enum sdb_metric metric,
             bool by_line, struct sdb_tree_node **nodes, size_t *count)
{
    struct stack_sum sum;
    struct sdb_map map = {0};
    uint32_t *node_of = calloc(p->stacks_count, sizeof(*node_of));
    struct sdb_tree_node *made = NULL;
    size_t n = 0, capacity = 0;
    if (!node_of) return SDB_ERR_NOMEM;
    int err = sum_stacks(p, s, metric, &sum);
    if (err) {
        free(node_of);
        return err;
    }
    uint64_t *total = malloc(p->stacks_count * sizeof(*total));
    err = total ? sdb_grow(&made, &capacity, 1, sizeof(*made)) : SDB_ERR_NOMEM;
    if (err) goto out;
    memcpy(total, sum.self, p->stacks_count * sizeof(*total));
    accumulate(p, total);
    made[n++] = (struct sdb_tree_node){0, SDB_NONE, 0, 0, total[SDB_STACK_ROOT]};
    for (size_t i = 1; i < p->stacks_count; i++) {
        if (!total[i]) continue;
        const struct sdb_reader_frame *frame = &p->frames[p->stacks[i].frame];
        uint32_t parent = node_of[p->stacks[i].parent], node = parent;
        if (!(s->func_marks && s->func_marks[frame->func] & SDB_MARK_HIDE)) {
            uint32_t line = by_line ? frame->line : 0;
            node = sdb_map_get(&map, (uint64_t)parent << 32 | line, frame->func);
            if (node == SDB_MAP_NONE) {
                err = sdb_grow(&made, &capacity, n + 1, sizeof(*made));
                if (!err)
                    err =
                        sdb_map_set(&map, (uint64_t)parent << 32 | line, frame->func, (uint32_t)n);
                if (err) goto out;
                node = (uint32_t)n++;
                made[node] = (struct sdb_tree_node){parent, frame->func, line, 0, 0};
            }
        }
        node_of[i] = node;
        made[node].self_ns += sum.self[i];
    }
    for (size_t i = 1; i < n; i++) made[i].total_ns = made[i].self_ns;
    for (size_t i = n; i-- > 1;)
        if (made[i].parent) made[made[i].parent].total_ns += made[i].total_ns;
    *nodes = made;
    *count = n;
    made = NULL;
out:
    free(made);
    free(total);
    free(sum.self);
    free(node_of);
    sdb_map_free(&map);
    return err;
}
