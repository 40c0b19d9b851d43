/* SPDX-License-Identifier: MIT
 *
 * tables.c - the tables of a profile, as Arrays and as binary Strings.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "glue/glue.h"

static VALUE
functions(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->funcs_count);
    for (size_t i = 0; i < p->funcs_count; i++) {
        const struct sdb_func *f = &p->funcs[i];
        rb_ary_push(rows, rb_ary_new_from_args(4, rb_sdb_text(p, f->name), rb_sdb_text(p, f->path),
                                               UINT2NUM(f->line), UINT2NUM(f->kind)));
    }
    return rows;
}

static VALUE
column_u32(size_t n)
{
    VALUE column = rb_str_new(NULL, (long)(n * 4));
    return column;
}

/* [functions, lines] of frames: u32 each */
static VALUE
frames(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE funcs = column_u32(p->frames_count), lines = column_u32(p->frames_count);
    uint32_t *func = (uint32_t *)RSTRING_PTR(funcs), *line = (uint32_t *)RSTRING_PTR(lines);
    for (size_t i = 0; i < p->frames_count; i++) {
        func[i] = p->frames[i].func;
        line[i] = p->frames[i].line;
    }
    return rb_assoc_new(funcs, lines);
}

/* [parents, frames] of stacks: u32 each */
static VALUE
stacks(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE parents = column_u32(p->stacks_count), tops = column_u32(p->stacks_count);
    uint32_t *parent = (uint32_t *)RSTRING_PTR(parents), *top = (uint32_t *)RSTRING_PTR(tops);
    for (size_t i = 0; i < p->stacks_count; i++) {
        parent[i] = p->stacks[i].parent;
        top[i] = p->stacks[i].frame;
    }
    return rb_assoc_new(parents, tops);
}

/* [function, line] pairs of a stack, root first */
static VALUE
stack_frames(VALUE self, VALUE number)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    uint32_t at = NUM2UINT(number);
    if (at >= p->stacks_count) rb_raise(rb_eArgError, "no such stack");
    long depth = (long)p->stacks[at].depth;
    VALUE rows = rb_ary_new_capa(depth);
    for (; at != SDB_STACK_ROOT; at = p->stacks[at].parent) {
        const struct sdb_frame *f = &p->frames[p->stacks[at].frame];
        rb_ary_push(rows, rb_assoc_new(UINT2NUM(f->func), UINT2NUM(f->line)));
    }
    return rb_funcall(rows, rb_intern("reverse!"), 0);
}

/* [ring, serial, tid, flags, name, birth, death, first, last] */
static VALUE
threads(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->threads_count);
    for (size_t i = 0; i < p->threads_count; i++) {
        const struct sdb_thread *t = &p->threads[i];
        uint64_t first = t->segment_count ? t->segments[0].t0 : t->end;
        rb_ary_push(rows, rb_ary_new_from_args(
                              9, UINT2NUM(t->ring), ULL2NUM(t->serial), UINT2NUM(t->tid),
                              UINT2NUM(t->flags), rb_sdb_text(p, t->name), rb_sdb_time(t->birth),
                              rb_sdb_time(t->death), ULL2NUM(first), ULL2NUM(t->end)));
    }
    return rows;
}

/* {base:, first:, last:, losses...} per ring */
static VALUE
rings(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new();
    for (size_t i = 0; i < p->rings_count; i++) {
        const struct sdb_ring_row *r = &p->rings[i];
        const struct {
            const char *name;
            uint64_t value;
        } fields[] = {
            {"base", r->base_ns},
            {"first", r->first},
            {"last", r->last},
            {"chunks_missing", r->loss.chunks_missing},
            {"chunks_lapped", r->loss.chunks_lapped},
            {"chunks_damaged", r->loss.chunks_damaged},
            {"records_ignored", r->loss.records_ignored},
            {"unknown_ns", r->loss.unknown_ns},
            {"torn_top", r->loss.torn_top},
            {"truncated_stacks", r->loss.truncated},
            {"no_stack", r->loss.no_stack},
        };
        VALUE row = rb_hash_new();
        for (size_t k = 0; k < sizeof(fields) / sizeof(*fields); k++)
            rb_hash_aset(row, ID2SYM(rb_intern(fields[k].name)), ULL2NUM(fields[k].value));
        rb_ary_push(rows, row);
    }
    return rows;
}

/* [at, realtime] pairs of a ring, u64 each */
static VALUE
clocks(VALUE self, VALUE ring)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    size_t number = NUM2SIZET(ring);
    if (number >= p->rings_count) rb_raise(rb_eArgError, "no such ring");
    const struct sdb_ring_row *r = &p->rings[number];
    return rb_str_new((const char *)r->clocks, (long)(r->clock_count * sizeof(*r->clocks)));
}

static VALUE
gaps(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new();
    for (size_t i = 0; i < p->gaps_count; i++) {
        const struct sdb_gap_row *g = &p->gaps[i];
        if (g->at == SDB_NO_TIME) continue;
        rb_ary_push(rows, rb_ary_new_from_args(4, UINT2NUM(g->ring), ULL2NUM(g->at), ULL2NUM(g->ns),
                                               UINT2NUM(g->reason)));
    }
    return rows;
}

static VALUE
gcs(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->gcs_count);
    for (size_t i = 0; i < p->gcs_count; i++) {
        const struct sdb_gc_row *g = &p->gcs[i];
        rb_ary_push(rows, rb_ary_new_from_args(8, UINT2NUM(g->ring), rb_sdb_number(g->thread),
                                               UINT2NUM(g->flags), ULL2NUM(g->at), ULL2NUM(g->ns),
                                               ULL2NUM(g->count), ULL2NUM(g->heap_live),
                                               ULL2NUM(g->malloc_increase)));
    }
    return rows;
}

static VALUE
memory(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->memory_count);
    for (size_t i = 0; i < p->memory_count; i++) {
        const struct sdb_memory_row *m = &p->memory[i];
        rb_ary_push(rows,
                    rb_ary_new_from_args(5, UINT2NUM(m->ring), ULL2NUM(m->at), ULL2NUM(m->rss),
                                         ULL2NUM(m->cgroup), ULL2NUM(m->limit)));
    }
    return rows;
}

/* [ring, at, {ticks: .., ...}] */
static VALUE
counters(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->counters_count);
    for (size_t i = 0; i < p->counters_count; i++) {
        const struct sdb_counter_row *c = &p->counters[i];
        VALUE values = rb_hash_new();
#define SET_COUNTER(NAME, name)                                                                    \
    rb_hash_aset(values, ID2SYM(rb_intern(#name)), ULL2NUM(c->values[SDB_C_##NAME]));
        SDB_COUNTERS(SET_COUNTER)
#undef SET_COUNTER
        rb_ary_push(rows, rb_ary_new_from_args(3, UINT2NUM(c->ring), ULL2NUM(c->at), values));
    }
    return rows;
}

/* [ring, at, text, level, {name => number}]; level 0: a mark, else PRE_OOM */
static VALUE
marks(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->marks_count);
    for (size_t i = 0; i < p->marks_count; i++) {
        const struct sdb_mark_row *m = &p->marks[i];
        VALUE numbers = rb_hash_new();
        for (uint32_t k = 0; k < m->values_n; k++) {
            const struct sdb_number *n = &p->numbers[m->values_off + k];
            rb_hash_aset(numbers, rb_sdb_text(p, n->key), ULL2NUM(n->value));
        }
        rb_ary_push(rows,
                    rb_ary_new_from_args(5, UINT2NUM(m->ring), ULL2NUM(m->at),
                                         rb_sdb_text(p, m->text), UINT2NUM(m->level), numbers));
    }
    return rows;
}

void
rb_sdb_init_tables(VALUE profile)
{
    rb_define_method(profile, "functions", functions, 0);
    rb_define_method(profile, "frames", frames, 0);
    rb_define_method(profile, "stacks", stacks, 0);
    rb_define_method(profile, "stack_frames", stack_frames, 1);
    rb_define_method(profile, "threads", threads, 0);
    rb_define_method(profile, "rings", rings, 0);
    rb_define_method(profile, "clocks", clocks, 1);
    rb_define_method(profile, "gaps", gaps, 0);
    rb_define_method(profile, "gcs", gcs, 0);
    rb_define_method(profile, "memory", memory, 0);
    rb_define_method(profile, "counters", counters, 0);
    rb_define_method(profile, "marks", marks, 0);
}
