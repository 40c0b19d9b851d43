/* SPDX-License-Identifier: MIT
 *
 * profile.c - Sdb::Native::Profile: built from Logs, immutable from then on. Its questions are in
 * tables.c, sums.c and span_rows.c.
 *
 * Runs on: any Ruby thread, GVL; the loading itself without
 */
#include <errno.h>
#include <stdlib.h>
#include <ruby.h>
#include <ruby/thread.h>

#include "error.h"
#include "glue/glue.h"
#include "profile/load.h"

static void
profile_free(void *data)
{
    sdb_profile_free(data);
}

static size_t
profile_size(const void *data)
{
    const struct sdb_profile *p = data;
    if (!p) return 0;
    size_t bytes = sizeof(*p) + p->arena.total_bytes + p->stacks_capacity * sizeof(*p->stacks);
    for (size_t i = 0; i < p->threads_count; i++)
        bytes += p->threads[i].segment_capacity * sizeof(struct sdb_segment);
    return bytes;
}

static const rb_data_type_t profile_type = {
    .wrap_struct_name = "Sdb::Native::Profile",
    .function = {.dfree = profile_free, .dsize = profile_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE
profile_alloc(VALUE klass)
{
    return TypedData_Wrap_Struct(klass, &profile_type, NULL);
}

struct sdb_profile *
rb_sdb_profile_get(VALUE self)
{
    struct sdb_profile *p;
    TypedData_Get_Struct(self, struct sdb_profile, &profile_type, p);
    if (!p) rb_raise(rb_eRuntimeError, "profile is not loaded");
    return p;
}

struct load {
    struct sdb_profile *profile;
    struct sdb_ring_reader **readers;
    uint64_t *now;
    size_t n;
    struct sdb_load_window window;
    int err, saved_errno;
};

static void *
load_run(void *data)
{
    struct load *load = data;
    load->err = sdb_profile_load(load->profile, load->readers, load->n, load->now, &load->window);
    load->saved_errno = errno;
    return NULL;
}

/* Profile.new(logs, now_rel numbers, from, to or nil) */
static VALUE
profile_initialize(VALUE self, VALUE logs, VALUE now, VALUE from, VALUE to)
{
    Check_Type(logs, T_ARRAY);
    Check_Type(now, T_ARRAY);
    struct load load = {.n = (size_t)RARRAY_LEN(logs)};
    if ((size_t)RARRAY_LEN(now) != load.n) rb_raise(rb_eArgError, "logs and now differ in length");
    VALUE readers_buffer, now_buffer;
    load.readers = ALLOCV_N(struct sdb_ring_reader *, readers_buffer, load.n + 1);
    load.now = ALLOCV_N(uint64_t, now_buffer, load.n + 1);
    for (size_t i = 0; i < load.n; i++) {
        load.readers[i] = rb_sdb_log_reader(rb_ary_entry(logs, (long)i));
        load.now[i] = NUM2ULL(rb_ary_entry(now, (long)i));
    }
    load.window = (struct sdb_load_window){NUM2LL(from), NIL_P(to) ? SDB_NO_TIME : NUM2ULL(to)};
    load.profile = sdb_profile_new();
    if (!load.profile) rb_sdb_check(SDB_ERR_NOMEM, "profile");
    RTYPEDDATA_DATA(self) = load.profile;
    rb_thread_call_without_gvl(load_run, &load, NULL, NULL);
    errno = load.saved_errno;
    rb_sdb_check(load.err, "reading the log");
    RB_GC_GUARD(logs);
    ALLOCV_END(readers_buffer);
    ALLOCV_END(now_buffer);
    return self;
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
rb_sdb_selection(VALUE array, const struct sdb_profile *p, struct sdb_selection *s)
{
    Check_Type(array, T_ARRAY);
    if (RARRAY_LEN(array) != 7) rb_raise(rb_eArgError, "a selection has 7 parts");
    VALUE to = rb_ary_entry(array, 1), intervals = rb_ary_entry(array, 3);
    *s = (struct sdb_selection){
        .from = NUM2ULL(rb_ary_entry(array, 0)),
        .to = NIL_P(to) ? SDB_NO_TIME : NUM2ULL(to),
        .threads = bytes_of(rb_ary_entry(array, 2), p->threads_count, "threads"),
        .intervals = (const struct sdb_interval *)bytes_of(intervals, 0, "intervals"),
        .interval_count =
            NIL_P(intervals) ? 0 : (size_t)RSTRING_LEN(intervals) / sizeof(struct sdb_interval),
        .states = NUM2UINT(rb_ary_entry(array, 4)),
        .func_marks = bytes_of(rb_ary_entry(array, 5), p->funcs_count, "marks"),
        .focus = RTEST(rb_ary_entry(array, 6)),
    };
    if (s->focus && !s->func_marks) rb_raise(rb_eArgError, "focus without marks");
}

void
rb_sdb_init_profile(VALUE native)
{
    VALUE profile = rb_define_class_under(native, "Profile", rb_cObject);
    rb_define_alloc_func(profile, profile_alloc);
    rb_define_method(profile, "initialize", profile_initialize, 4);
    rb_sdb_init_tables(profile);
    rb_sdb_init_sums(profile);
    rb_sdb_init_spans(profile);
}
