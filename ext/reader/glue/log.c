/* SPDX-License-Identifier: MIT
 *
 * log.c - Sdb::Native::Log: one ring file, its fixed parts.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <errno.h>
#include <string.h>
#include <ruby/encoding.h>

#include "error.h"
#include "glue/glue.h"
#include "glue/init.h"

struct log {
    struct sdb_ring_reader reader;
    bool open;
};

static void
log_free(void *data)
{
    struct log *log = data;
    if (log->open) sdb_ring_reader_close(&log->reader);
    xfree(log);
}

static size_t
log_size(const void *data)
{
    const struct log *log = data;
    return sizeof(*log) + log->reader.chunk_capacity * sizeof(struct sdb_chunk_ref);
}

static const rb_data_type_t log_type = {
    .wrap_struct_name = "Sdb::Native::Log",
    .function = {.dfree = log_free, .dsize = log_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE
log_alloc(VALUE klass)
{
    struct log *log;
    return TypedData_Make_Struct(klass, struct log, &log_type, log);
}

static struct sdb_ring_reader *
reader_of(VALUE self)
{
    struct log *log;
    TypedData_Get_Struct(self, struct log, &log_type, log);
    if (!log->open) rb_raise(rb_eRuntimeError, "log is closed");
    return &log->reader;
}

struct sdb_ring_reader *
rb_sdb_log_reader(VALUE log)
{
    return reader_of(log);
}

/* Log.new(path, fd = nil): opens it, or a descriptor of it that is open already, and proves it. */
static VALUE
log_initialize(int argc, VALUE *argv, VALUE self)
{
    VALUE path, fd;
    rb_scan_args(argc, argv, "11", &path, &fd);
    struct log *log;
    TypedData_Get_Struct(self, struct log, &log_type, log);
    if (log->open) rb_raise(rb_eRuntimeError, "already open");
    const char *name = StringValueCStr(path);
    struct sdb_source source;
    int err =
        NIL_P(fd) ? sdb_source_open(&source, name) : sdb_source_open_again(&source, NUM2INT(fd));
    if (!err) err = sdb_ring_reader_open(&log->reader, source);
    if (!err) log->open = true;
    rb_sdb_check(err, name);
    rb_ivar_set(self, rb_intern("path"), rb_str_new_frozen(path));
    return self;
}

static const char *
path_of(VALUE self)
{
    VALUE path = rb_ivar_get(self, rb_intern("path"));
    return StringValueCStr(path);
}

static VALUE
log_close(VALUE self)
{
    struct log *log;
    TypedData_Get_Struct(self, struct log, &log_type, log);
    if (log->open) sdb_ring_reader_close(&log->reader);
    log->open = false;
    return Qnil;
}

static VALUE
log_refresh(VALUE self)
{
    rb_sdb_check(sdb_ring_reader_refresh(reader_of(self)), path_of(self));
    return self;
}

static VALUE
name_of(const char *name)
{
    return ID2SYM(rb_intern2(name, (long)strlen(name)));
}

/* :creating, :live, :closed, nil of a number that means none of them */
static VALUE
state_name(uint32_t state)
{
    switch (state) {
    case SDB_RING_CREATING:
        return name_of("creating");
    case SDB_RING_LIVE:
        return name_of("live");
    case SDB_RING_CLOSED:
        return name_of("closed");
    default:
        return Qnil;
    }
}

static VALUE
flag_names(uint32_t flags)
{
    VALUE names = rb_ary_new();
    if (flags & SDB_FLAG_STATES_EXACT) rb_ary_push(names, name_of("states_exact"));
    if (flags & SDB_FLAG_YJIT) rb_ary_push(names, name_of("yjit"));
    return names;
}

/* {pid:, ..., text: "key=value\0..." binary} */
static VALUE
log_identity(VALUE self)
{
    const struct sdb_ring_reader *r = reader_of(self);
    const struct sdb_identity *id = &r->identity;
    VALUE hash = rb_hash_new();
    rb_sdb_put(hash, "major", UINT2NUM(id->major));
    rb_sdb_put(hash, "minor", UINT2NUM(id->minor));
    rb_sdb_put(hash, "state", state_name(id->state));
    rb_sdb_put(hash, "file_bytes", ULL2NUM(id->file_bytes));
    rb_sdb_put(hash, "area_bytes", ULL2NUM(id->area_bytes));
    rb_sdb_put(hash, "chunk_bytes", ULL2NUM(id->chunk_bytes));
    rb_sdb_put(hash, "chunk_count", ULL2NUM(id->chunk_count));
    rb_sdb_put(hash, "start_monotonic_ns", ULL2NUM(id->start_monotonic_ns));
    rb_sdb_put(hash, "start_realtime_ns", ULL2NUM(id->start_realtime_ns));
    rb_sdb_put(hash, "process_start_ticks", ULL2NUM(id->process_start_ticks));
    rb_sdb_put(hash, "interval_ns", ULL2NUM(id->interval_ns));
    rb_sdb_put(hash, "pid", UINT2NUM(id->pid));
    rb_sdb_put(hash, "ppid", UINT2NUM(id->ppid));
    rb_sdb_put(hash, "pid_namespace", ULL2NUM(id->pid_namespace));
    rb_sdb_put(hash, "flags", flag_names(id->flags));
    rb_sdb_put(hash, "boot_id", rb_str_new((const char *)id->boot_id, sizeof(id->boot_id)));
    rb_sdb_put(hash, "text", rb_str_new(r->text, (long)r->text_bytes));
    rb_sdb_put(hash, "truncated", r->truncated ? Qtrue : Qfalse);
    rb_sdb_put(hash, "dump", r->source.off != 0 ? Qtrue : Qfalse);
    rb_sdb_put(hash, "killed_monotonic_ns", ULL2NUM(r->source.killed_monotonic_ns));
    return hash;
}

/* {seq:, state:, at_ns:, realtime_ns:, reason:, counters: {ticks: ..}} or nil. Of the counters only those the page has. */
static VALUE
log_state_page(VALUE self)
{
    const struct sdb_ring_reader *r = reader_of(self);
    const struct sdb_state_page *page = &r->state_page;
    if (!r->has_state_page) return Qnil;
    VALUE hash = rb_hash_new(), counters = rb_hash_new();
#define PUT_COUNTER(NAME, name)                                                                    \
    if (SDB_C_##NAME < page->counter_count)                                                        \
        rb_sdb_put(counters, #name, ULL2NUM(page->counters[SDB_C_##NAME]));
    SDB_COUNTERS(PUT_COUNTER)
#undef PUT_COUNTER
    rb_sdb_put(hash, "seq", ULL2NUM(page->seq));
    rb_sdb_put(hash, "state", state_name(page->state));
    rb_sdb_put(hash, "at_ns", ULL2NUM(page->at_ns));
    rb_sdb_put(hash, "realtime_ns", ULL2NUM(page->realtime_ns));
    rb_sdb_put(hash, "reason", rb_str_new(page->text, page->reason_bytes));
    rb_sdb_put(hash, "counters", counters);
    return hash;
}

/* true, false, or nil when it cannot be told */
static VALUE
log_alive_p(VALUE self)
{
    int alive = sdb_ring_reader_alive(reader_of(self));
    return alive < 0 ? Qnil : alive ? Qtrue : Qfalse;
}

/* [[seq, first rel ns], ...] */
static VALUE
log_chunks(VALUE self)
{
    const struct sdb_ring_reader *r = reader_of(self);
    VALUE rows = rb_ary_new_capa((long)r->chunk_count);
    for (size_t i = 0; i < r->chunk_count; i++)
        rb_ary_push(rows, rb_assoc_new(ULL2NUM(r->chunks[i].seq), ULL2NUM(r->chunks[i].first_ns)));
    return rows;
}

VALUE
rb_sdb_init_log(VALUE native)
{
    VALUE log = rb_define_class_under(native, "Log", rb_cObject);
    rb_define_alloc_func(log, log_alloc);
    rb_define_method(log, "initialize", log_initialize, -1);
    rb_define_method(log, "close", log_close, 0);
    rb_define_method(log, "refresh", log_refresh, 0);
    rb_define_method(log, "identity", log_identity, 0);
    rb_define_method(log, "state_page", log_state_page, 0);
    rb_define_method(log, "alive?", log_alive_p, 0);
    rb_define_method(log, "chunks", log_chunks, 0);
    return log;
}
