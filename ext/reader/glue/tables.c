/* SPDX-License-Identifier: MIT
 *
 * tables.c - the tables of a profile: Arrays of Hashes, and Hashes of columns.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "glue/glue.h"
#include "glue/init.h"

/* {name:, path:, line:, kind:}, ... */
static VALUE
functions(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->funcs_count);
    for (size_t i = 0; i < p->funcs_count; i++) {
        const struct sdb_func *f = &p->funcs[i];
        VALUE row = rb_hash_new();
        rb_sdb_put(row, "name", rb_sdb_text(p, f->name));
        rb_sdb_put(row, "path", rb_sdb_text(p, f->path));
        rb_sdb_put(row, "line", UINT2NUM(f->line));
        rb_sdb_put(row, "kind", UINT2NUM(f->kind));
        rb_ary_push(rows, row);
    }
    return rows;
}

/* {function: u32s, line: u32s} */
static VALUE
frames(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE columns = rb_hash_new();
    uint32_t *func = rb_sdb_put_column(columns, "function", p->frames_count, sizeof(*func));
    uint32_t *line = rb_sdb_put_column(columns, "line", p->frames_count, sizeof(*line));
    for (size_t i = 0; i < p->frames_count; i++) {
        func[i] = p->frames[i].func;
        line[i] = p->frames[i].line;
    }
    return columns;
}

/* {parent: u32s, frame: u32s} */
static VALUE
stacks(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE columns = rb_hash_new();
    uint32_t *parent = rb_sdb_put_column(columns, "parent", p->stacks_count, sizeof(*parent));
    uint32_t *frame = rb_sdb_put_column(columns, "frame", p->stacks_count, sizeof(*frame));
    for (size_t i = 0; i < p->stacks_count; i++) {
        parent[i] = p->stacks[i].parent;
        frame[i] = p->stacks[i].frame;
    }
    return columns;
}

static VALUE
stack_count(VALUE self)
{
    return SIZET2NUM(rb_sdb_profile_get(self)->stacks_count);
}

static VALUE
stack_depth(VALUE self, VALUE number)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    uint32_t at = NUM2UINT(number);
    if (at >= p->stacks_count) rb_raise(rb_eArgError, "no such stack");
    return UINT2NUM(p->stacks[at].depth);
}

/* Pairs of function and line of a stack, root first: those of the `oldest` outermost and the `newest` innermost frames;
 * nil in between where some were left out. */
static VALUE
stack_frames(VALUE self, VALUE number, VALUE oldest, VALUE newest)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    uint32_t at = NUM2UINT(number);
    size_t first = NUM2SIZET(oldest), last = NUM2SIZET(newest);
    if (at >= p->stacks_count) rb_raise(rb_eArgError, "no such stack");
    size_t depth = p->stacks[at].depth;
    bool cut = depth > first && depth - first > last;
    VALUE rows = rb_ary_new_capa((long)(cut ? first + last + 1 : depth));
    for (size_t i = depth; at != SDB_STACK_ROOT; at = p->stacks[at].parent, i--) {
        if (cut && i <= depth - last && i > first) {
            if (i == depth - last) rb_ary_push(rows, Qnil);
            continue;
        }
        const struct sdb_reader_frame *f = &p->frames[p->stacks[at].frame];
        rb_ary_push(rows, rb_assoc_new(UINT2NUM(f->func), UINT2NUM(f->line)));
    }
    return rb_ary_reverse(rows);
}

/* {ring:, serial:, ...} */
static VALUE
threads(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->threads_count);
    for (size_t i = 0; i < p->threads_count; i++) {
        const struct sdb_thread *t = &p->threads[i];
        VALUE row = rb_hash_new();
        rb_sdb_put(row, "ring", UINT2NUM(t->ring));
        rb_sdb_put(row, "serial", ULL2NUM(t->serial));
        rb_sdb_put(row, "tid", UINT2NUM(t->tid));
        rb_sdb_put(row, "name", rb_sdb_text(p, t->name));
        rb_sdb_put(row, "birth", rb_sdb_time(t->birth));
        rb_sdb_put(row, "death", rb_sdb_time(t->death));
        rb_sdb_put(row, "first", ULL2NUM(t->segment_count ? t->segments[0].t0 : t->end));
        rb_sdb_put(row, "last", ULL2NUM(t->end));
        rb_sdb_put(row, "own", t->flags & SDB_THREAD_OWN ? Qtrue : Qfalse);
        rb_sdb_put(row, "main", t->flags & SDB_THREAD_MAIN ? Qtrue : Qfalse);
        rb_sdb_put(row, "inferred", t->flags & SDB_THREAD_INFERRED ? Qtrue : Qfalse);
        rb_ary_push(rows, row);
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
            rb_sdb_put(row, fields[k].name, ULL2NUM(fields[k].value));
        rb_ary_push(rows, row);
    }
    return rows;
}

/* {at: u64s, realtime: u64s} of a ring */
static VALUE
clocks(VALUE self, VALUE ring)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    size_t number = NUM2SIZET(ring);
    if (number >= p->rings_count) rb_raise(rb_eArgError, "no such ring");
    const struct sdb_ring_row *r = &p->rings[number];
    VALUE columns = rb_hash_new();
    uint64_t *at = rb_sdb_put_column(columns, "at", r->clock_count, sizeof(*at));
    uint64_t *real = rb_sdb_put_column(columns, "realtime", r->clock_count, sizeof(*real));
    for (size_t i = 0; i < r->clock_count; i++) {
        at[i] = r->clocks[i].at;
        real[i] = r->clocks[i].realtime_ns;
    }
    return columns;
}

static const char *
gap_reason(uint32_t reason)
{
    switch (reason) {
    case 0:
        return "lost";
    case SDB_GAP_FORK:
        return "fork";
    case SDB_GAP_WRITE:
        return "write";
    case SDB_GAP_PAUSED:
        return "paused";
    default:
        return "late";
    }
}

static VALUE
gaps(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new();
    for (size_t i = 0; i < p->gaps_count; i++) {
        const struct sdb_gap_row *g = &p->gaps[i];
        if (g->at == SDB_NO_TIME) continue;
        VALUE row = rb_hash_new();
        rb_sdb_put(row, "ring", UINT2NUM(g->ring));
        rb_sdb_put(row, "at", ULL2NUM(g->at));
        rb_sdb_put(row, "ns", ULL2NUM(g->ns));
        rb_sdb_put(row, "reason", rb_utf8_str_new_cstr(gap_reason(g->reason)));
        rb_ary_push(rows, row);
    }
    return rows;
}

/* "major mark" */
static VALUE
gc_phase(uint32_t flags)
{
    static const struct {
        uint32_t bit;
        const char *name;
    } phases[] = {{SDB_GC_MAJOR, "major"},
                  {SDB_GC_MARK, "mark"},
                  {SDB_GC_SWEEP, "sweep"},
                  {SDB_GC_COMPACT, "compact"}};
    VALUE text = rb_utf8_str_new_cstr("");
    for (size_t i = 0; i < sizeof(phases) / sizeof(*phases); i++) {
        if (!(flags & phases[i].bit)) continue;
        if (RSTRING_LEN(text)) rb_str_cat_cstr(text, " ");
        rb_str_cat_cstr(text, phases[i].name);
    }
    return text;
}

static VALUE
gcs(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->gcs_count);
    for (size_t i = 0; i < p->gcs_count; i++) {
        const struct sdb_gc_row *g = &p->gcs[i];
        VALUE row = rb_hash_new();
        rb_sdb_put(row, "ring", UINT2NUM(g->ring));
        rb_sdb_put(row, "thread", rb_sdb_number(g->thread));
        rb_sdb_put(row, "phase", gc_phase(g->flags));
        rb_sdb_put(row, "at", ULL2NUM(g->at));
        rb_sdb_put(row, "ns", ULL2NUM(g->ns));
        rb_sdb_put(row, "count", ULL2NUM(g->count));
        rb_sdb_put(row, "heap_live", ULL2NUM(g->heap_live));
        rb_sdb_put(row, "malloc_increase", ULL2NUM(g->malloc_increase));
        rb_ary_push(rows, row);
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
        VALUE row = rb_hash_new();
        rb_sdb_put(row, "ring", UINT2NUM(m->ring));
        rb_sdb_put(row, "at", ULL2NUM(m->at));
        rb_sdb_put(row, "rss", ULL2NUM(m->rss));
        rb_sdb_put(row, "cgroup", ULL2NUM(m->cgroup));
        rb_sdb_put(row, "limit", ULL2NUM(m->limit));
        rb_ary_push(rows, row);
    }
    return rows;
}

/* {ring:, at:, values: {ticks: .., ...}} */
static VALUE
counters(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->counters_count);
    for (size_t i = 0; i < p->counters_count; i++) {
        const struct sdb_counter_row *c = &p->counters[i];
        VALUE row = rb_hash_new(), values = rb_hash_new();
#define PUT_COUNTER(NAME, name) rb_sdb_put(values, #name, ULL2NUM(c->values[SDB_C_##NAME]));
        SDB_COUNTERS(PUT_COUNTER)
#undef PUT_COUNTER
        rb_sdb_put(row, "ring", UINT2NUM(c->ring));
        rb_sdb_put(row, "at", ULL2NUM(c->at));
        rb_sdb_put(row, "values", values);
        rb_ary_push(rows, row);
    }
    return rows;
}

/* {ring:, at:, text:, level:, numbers: {name => number}}; level nil: a mark, else PRE_OOM */
static VALUE
marks(VALUE self)
{
    const struct sdb_profile *p = rb_sdb_profile_get(self);
    VALUE rows = rb_ary_new_capa((long)p->marks_count);
    for (size_t i = 0; i < p->marks_count; i++) {
        const struct sdb_mark_row *m = &p->marks[i];
        VALUE row = rb_hash_new(), numbers = rb_hash_new();
        for (uint32_t k = 0; k < m->values_n; k++) {
            const struct sdb_number *n = &p->numbers[m->values_off + k];
            rb_hash_aset(numbers, rb_sdb_text(p, n->key), ULL2NUM(n->value));
        }
        rb_sdb_put(row, "ring", UINT2NUM(m->ring));
        rb_sdb_put(row, "at", ULL2NUM(m->at));
        rb_sdb_put(row, "text", rb_sdb_text(p, m->text));
        rb_sdb_put(row, "level", m->level ? UINT2NUM(m->level) : Qnil);
        rb_sdb_put(row, "numbers", numbers);
        rb_ary_push(rows, row);
    }
    return rows;
}

void
rb_sdb_init_tables(VALUE profile)
{
    rb_define_method(profile, "functions", functions, 0);
    rb_define_method(profile, "frames", frames, 0);
    rb_define_method(profile, "stacks", stacks, 0);
    rb_define_method(profile, "stack_count", stack_count, 0);
    rb_define_method(profile, "stack_depth", stack_depth, 1);
    rb_define_method(profile, "stack_frames", stack_frames, 3);
    rb_define_method(profile, "threads", threads, 0);
    rb_define_method(profile, "rings", rings, 0);
    rb_define_method(profile, "clocks", clocks, 1);
    rb_define_method(profile, "gaps", gaps, 0);
    rb_define_method(profile, "gcs", gcs, 0);
    rb_define_method(profile, "memory", memory, 0);
    rb_define_method(profile, "counters", counters, 0);
    rb_define_method(profile, "marks", marks, 0);
    rb_define_const(profile, "FIXED_FUNCTIONS", UINT2NUM(SDB_FUNC_FIXED_COUNT));
    rb_define_const(profile, "NO_FRAMES_FUNCTION", UINT2NUM(SDB_FUNC_NO_FRAMES));
    rb_define_const(profile, "FIXED_STACKS", UINT2NUM(SDB_STACK_FIXED_COUNT));
    rb_define_const(profile, "DEPTH_MAX", UINT2NUM(SDB_MAX_DEPTH));
}
