/* SPDX-License-Identifier: MIT
 *
 * profile.c - Sdb::Native::Profile: built from Logs, immutable from then on. Its questions are in
 * tables.c, sums.c, segments.c, span_rows.c and blame_rows.c.
 *
 * Runs on: any Ruby thread, GVL; the loading itself without
 */
#include <ruby.h>

#include "error.h"
#include "glue/glue.h"
#include "glue/init.h"
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
    struct sdb_profile **profile;
    struct sdb_ring_reader **readers;
    uint64_t *now;
    size_t n;
    struct sdb_load_window window;
};

static int
load_run(void *data)
{
    struct load *load = data;
    sdb_profile_free(*load->profile); /* what was read when it was stopped before */
    *load->profile = sdb_profile_new();
    if (!*load->profile) return SDB_ERR_NOMEM;
    return sdb_profile_load(*load->profile, load->readers, load->n, load->now, &load->window);
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
    load.profile = (struct sdb_profile **)&RTYPEDDATA_DATA(self);
    rb_sdb_check(rb_sdb_ask(load_run, &load), "reading the log");
    RB_GC_GUARD(logs);
    RB_GC_GUARD(self);
    ALLOCV_END(readers_buffer);
    ALLOCV_END(now_buffer);
    return self;
}

VALUE
rb_sdb_init_profile(VALUE native)
{
    VALUE profile = rb_define_class_under(native, "Profile", rb_cObject);
    rb_define_alloc_func(profile, profile_alloc);
    rb_define_method(profile, "initialize", profile_initialize, 4);
    return profile;
}
