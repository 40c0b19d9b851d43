/* SPDX-License-Identifier: MIT
 *
 * segments.c - what threads did when: their segments inside a selection, and at an instant.
 *
 * Runs on: any Ruby thread, GVL; the selecting itself without
 */
#include <stdlib.h>

#include "error.h"
#include "glue/glue.h"
#include "glue/init.h"
#include "log/memory.h"

struct pieces {
    const struct sdb_profile *profile;
    struct rb_sdb_selection selection;
    struct sdb_piece *rows;
    size_t count, capacity;
};

static int
piece_add(const struct sdb_piece *piece, void *data)
{
    struct pieces *p = data;
    int err = sdb_grow(&p->rows, &p->capacity, p->count + 1, sizeof(*p->rows));
    if (!err) p->rows[p->count++] = *piece;
    return err;
}

static int
pieces_run(void *data)
{
    struct pieces *p = data;
    p->rows = NULL;
    p->count = p->capacity = 0;
    int err = sdb_select(p->profile, &p->selection.native, piece_add, p);
    if (err) free(p->rows);
    return err;
}

/* {count:, thread: u32s, start_ns: u64s, duration_ns: u64s, stack: u32s, state: u8s (STATES), cpu_ns: u64s} */
static VALUE
segments(VALUE self, VALUE selection)
{
    struct pieces p = {.profile = rb_sdb_profile_get(self)};
    rb_sdb_selection(selection, p.profile, &p.selection);
    rb_sdb_check(rb_sdb_ask(pieces_run, &p), "segments");
    size_t n = p.count;
    VALUE copy = rb_sdb_take_rows(p.rows, n, sizeof(*p.rows)), columns = rb_hash_new();
    const struct sdb_piece *rows = (const struct sdb_piece *)RSTRING_PTR(copy);
    rb_sdb_put(columns, "count", SIZET2NUM(n));
    uint32_t *thread = rb_sdb_put_column(columns, "thread", n, sizeof(*thread));
    uint64_t *start = rb_sdb_put_column(columns, "start_ns", n, sizeof(*start));
    uint64_t *duration = rb_sdb_put_column(columns, "duration_ns", n, sizeof(*duration));
    uint32_t *stack = rb_sdb_put_column(columns, "stack", n, sizeof(*stack));
    uint8_t *state = rb_sdb_put_column(columns, "state", n, sizeof(*state));
    uint64_t *cpu = rb_sdb_put_column(columns, "cpu_ns", n, sizeof(*cpu));
    for (size_t i = 0; i < n; i++) {
        thread[i] = rows[i].thread;
        start[i] = rows[i].t0;
        duration[i] = rows[i].t1 - rows[i].t0;
        stack[i] = rows[i].stack;
        state[i] = (uint8_t)rows[i].state;
        cpu[i] = rows[i].cpu_ns;
    }
    RB_GC_GUARD(copy);
    RB_SDB_GUARD(p.selection);
    RB_GC_GUARD(self);
    return columns;
}

/* {stack:, state: (STATES), since:} of a thread at an instant, nil when it does not live then. Its end counts as
 * inside. */
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
    VALUE row = rb_hash_new();
    rb_sdb_put(row, "stack", UINT2NUM(segment->stack));
    rb_sdb_put(row, "state", UINT2NUM(segment->state));
    rb_sdb_put(row, "since", ULL2NUM(segment->t0));
    return row;
}

void
rb_sdb_init_segments(VALUE profile)
{
    rb_define_method(profile, "segments", segments, 1);
    rb_define_method(profile, "stack_at", stack_at, 2);
}
