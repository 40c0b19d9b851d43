/* SPDX-License-Identifier: MIT
 *
 * recorder_glue.c - Sdb::Native::Recorder: the recorder's functions for Ruby. lib/sdb/recorder.rb is its only caller.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <ruby.h>
#include "error.h"
#include "glue/doctor.h"
#include "glue/span_api.h"
#include "vm/gvl.h"
#include "vm/protect.h"
#include "recorder/recorder.h"
#ifdef SDB_TESTING
#include "glue/testing.h"
#include "glue/testing_layout.h"
#include "glue/testing_states.h"
#endif

static VALUE
fetch(VALUE hash, const char *key)
{
    return rb_hash_fetch(hash, ID2SYM(rb_intern(key)));
}

/* start(dir:, ring_bytes:, interval_ns:, max_cpu_ppm:, keep:, text:, yjit:) -> nil, or why not (String) */
static VALUE
recorder_start(VALUE self, VALUE options)
{
    (void)self;
    Check_Type(options, T_HASH);
    VALUE dir = fetch(options, "dir"), tmp = fetch(options, "tmp"), text = fetch(options, "text");
    StringValue(text);
    struct sdb_recorder_options o = {
        .dir = StringValueCStr(dir),
        .tmp = StringValueCStr(tmp),
        .dir_named = RTEST(fetch(options, "dir_named")),
        .ring_bytes = NUM2ULL(fetch(options, "ring_bytes")),
        .interval_ns = NUM2ULL(fetch(options, "interval_ns")),
        .keep_files = NUM2ULL(fetch(options, "keep")),
        .max_cpu_ppm = NUM2ULL(fetch(options, "max_cpu_ppm")),
        .text = RSTRING_PTR(text),
        .text_bytes = (size_t)RSTRING_LEN(text),
        .yjit = RTEST(fetch(options, "yjit")),
    };
    char reason[SDB_REASON_BYTES] = "";
    int err = sdb_recorder_start(&o, reason);
    RB_GC_GUARD(dir);
    RB_GC_GUARD(tmp);
    RB_GC_GUARD(text);
    if (err == SDB_OK) return Qnil;
    return rb_utf8_str_new_cstr(reason[0] ? reason : sdb_error_text(err));
}

/* stop -> path of the ring, nil when nothing ran */
static VALUE
recorder_stop(VALUE self)
{
    (void)self;
    VALUE held = Qnil;
    bool ran = sdb_recorder_stop(&held);
    sdb_go_on(held);
    if (!ran) return Qnil;
    struct sdb_recorder_status status;
    sdb_recorder_status(&status);
    return status.path[0] ? rb_utf8_str_new_cstr(status.path) : Qnil;
}

static VALUE
recorder_running(VALUE self)
{
    (void)self;
    return sdb_recorder_running() ? Qtrue : Qfalse;
}

static VALUE
recorder_flush(VALUE self)
{
    (void)self;
    sdb_recorder_flush();
    return Qnil;
}

/* child_text("tag.worker=2" or nil): what the rings of children forked from now on say beside */
static VALUE
recorder_child_text(VALUE self, VALUE text)
{
    (void)self;
    sdb_recorder_label_children(NIL_P(text) ? NULL : StringValueCStr(text));
    return Qnil;
}

static VALUE
recorder_after_fork(VALUE self)
{
    (void)self;
    sdb_recorder_after_fork();
    return Qnil;
}

static void
set(VALUE hash, const char *key, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(key)), value);
}

/* {ticks: 12, late_ticks: 0, ...}: every counter by its name in ring_format.h */
static VALUE
counters_hash(const uint64_t *values)
{
    VALUE hash = rb_hash_new();
#define SET_COUNTER(NAME, name) set(hash, #name, ULL2NUM(values[SDB_C_##NAME]));
    SDB_COUNTERS(SET_COUNTER)
#undef SET_COUNTER
    return hash;
}

/* status -> Hash: running, parked, exact, silent, refused, log_reason, path, safe_read, ring_bytes, interval_ns, counters */
static VALUE
recorder_status(VALUE self)
{
    (void)self;
    struct sdb_recorder_status s;
    sdb_recorder_status(&s);
    VALUE hash = rb_hash_new();
    set(hash, "running", s.running ? Qtrue : Qfalse);
    set(hash, "parked", s.parked ? Qtrue : Qfalse);
    set(hash, "exact", s.exact ? Qtrue : Qfalse);
    set(hash, "silent", s.forked_silent ? Qtrue : Qfalse);
    set(hash, "refused", s.refused ? Qtrue : Qfalse);
    set(hash, "log_reason", s.log_reason[0] ? rb_utf8_str_new_cstr(s.log_reason) : Qnil);
    set(hash, "path", s.path[0] ? rb_utf8_str_new_cstr(s.path) : Qnil);
    set(hash, "safe_read", rb_utf8_str_new_cstr(s.safe_read));
    set(hash, "ring_bytes", ULL2NUM(s.ring_bytes));
    set(hash, "interval_ns", ULL2NUM(s.interval_ns));
    set(hash, "effective_interval_ns", ULL2NUM(s.effective_interval_ns));
    set(hash, "counters", counters_hash(s.counters));
    return hash;
}

__attribute__((visibility("default"))) void
Init_sdb_recorder(void)
{
    VALUE sdb = rb_define_module("Sdb");
    VALUE native = rb_define_module_under(sdb, "Native");
    VALUE module = rb_define_module_under(native, "Recorder");
    rb_define_module_function(module, "start", recorder_start, 1);
    rb_define_module_function(module, "stop", recorder_stop, 0);
    rb_define_module_function(module, "running?", recorder_running, 0);
    rb_define_module_function(module, "flush", recorder_flush, 0);
    rb_define_module_function(module, "after_fork", recorder_after_fork, 0);
    rb_define_module_function(module, "child_text", recorder_child_text, 1);
    rb_define_module_function(module, "status", recorder_status, 0);
    Init_sdb_doctor(module);
    Init_sdb_span_api(native);
#ifdef SDB_TESTING
    VALUE testing = rb_define_module_under(native, "Testing");
    Init_sdb_testing(testing);
    Init_sdb_testing_layout(testing);
    Init_sdb_testing_states(testing);
#endif
}
