/* SPDX-License-Identifier: MIT
 *
 * selection.c - what part of a profile a question is about, as Ruby says it.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <string.h>

#include "glue/glue.h"

static const char *const metric_names[SDB_METRIC_COUNT] = {
    [SDB_WALL] = "wall",
    [SDB_CPU] = "cpu",
    [SDB_METRIC_GVL_WAIT] = "gvl_wait",
    [SDB_METRIC_BLOCKED] = "blocked",
    [SDB_METRIC_GC] = "gc",
};

static const char *const state_names[SDB_STATE_COUNT] = {
    [SDB_RUNNING] = "running", [SDB_GVL_WAIT] = "gvl_wait", [SDB_BLOCKED] = "blocked",
    [SDB_GC] = "gc",           [SDB_UNKNOWN] = "unknown",
};

enum sdb_metric
rb_sdb_metric(VALUE name)
{
    const char *wanted = rb_id2name(SYM2ID(rb_to_symbol(name)));
    for (unsigned i = 0; i < SDB_METRIC_COUNT; i++)
        if (strcmp(wanted, metric_names[i]) == 0) return (enum sdb_metric)i;
    rb_raise(rb_eArgError, "no such metric");
}

const char *
rb_sdb_metric_name(unsigned metric)
{
    return metric_names[metric];
}

static const uint8_t *
bytes_of(VALUE string, size_t least, const char *what)
{
    if (NIL_P(string)) return NULL;
    Check_Type(string, T_STRING);
    if ((size_t)RSTRING_LEN(string) < least) rb_raise(rb_eArgError, "%s: too short", what);
    return (const uint8_t *)RSTRING_PTR(string);
}

void
rb_sdb_selection(VALUE hash, const struct sdb_profile *p, struct rb_sdb_selection *s)
{
    Check_Type(hash, T_HASH);
    VALUE to = rb_sdb_get(hash, "to");
    s->threads = rb_sdb_get(hash, "threads");
    s->intervals = rb_sdb_get(hash, "intervals");
    s->marks = rb_sdb_get(hash, "marks");
    s->native = (struct sdb_selection){
        .from = NUM2ULL(rb_sdb_get(hash, "from")),
        .to = NIL_P(to) ? SDB_NO_TIME : NUM2ULL(to),
        .threads = bytes_of(s->threads, p->threads_count, "threads"),
        .intervals = (const struct sdb_interval *)bytes_of(s->intervals, 0, "intervals"),
        .interval_count = NIL_P(s->intervals)
                              ? 0
                              : (size_t)RSTRING_LEN(s->intervals) / sizeof(struct sdb_interval),
        .states = NUM2UINT(rb_sdb_get(hash, "states")),
        .func_marks = bytes_of(s->marks, p->funcs_count, "marks"),
        .focus = RTEST(rb_sdb_get(hash, "focus")),
    };
    if (s->native.focus && !s->native.func_marks) rb_raise(rb_eArgError, "focus without marks");
}

static void
names_define(VALUE profile, const char *constant, const char *const *names, size_t n)
{
    VALUE list = rb_ary_new_capa((long)n);
    for (size_t i = 0; i < n; i++) rb_ary_push(list, rb_obj_freeze(rb_utf8_str_new_cstr(names[i])));
    rb_define_const(profile, constant, rb_obj_freeze(list));
}

void
rb_sdb_init_selection(VALUE profile)
{
    names_define(profile, "STATES", state_names, SDB_STATE_COUNT);
    names_define(profile, "METRICS", metric_names, SDB_METRIC_COUNT);
    rb_define_const(profile, "MARK_FOCUS", UINT2NUM(SDB_MARK_FOCUS));
    rb_define_const(profile, "MARK_HIDE", UINT2NUM(SDB_MARK_HIDE));
}
