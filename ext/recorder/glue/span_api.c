/* SPDX-License-Identifier: MIT
 *
 * span_api.c - Sdb.span, .tag, .tags, .mark, .current_span (Sdb::Native::SpanMethods, put before the stand-ins of
 * lib/sdb/span.rb), and Sdb::Native::Span, the handle of one open span.
 *
 * Arguments become Strings in UTF-8 here, before anything is begun: their to_s may do anything.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "glue/span_api.h"

#include <ruby/ractor.h>
#include "spans/spans.h"
#include "vm/utf8.h"

static ID id_kind, id_id, id_call;
static VALUE span_class;
static VALUE
    tag_filter; /* nil: none. Takes a Hash of tags and returns the one to record; see Sdb.filter */
static rb_ractor_local_key_t main_ractor; /* not NULL there */

/* Elsewhere the functions do what the stand-ins do: each other Ractor has a GVL of its own, and spans are guarded by
 * one. */
static bool
in_main_ractor(void)
{
    return rb_ractor_local_storage_ptr(main_ractor) != NULL;
}

static bool
spans_on(void)
{
    return sdb_spans_on() && in_main_ractor();
}

/* ---- arguments ---- */

static VALUE
string_of(VALUE value)
{
    if (!RB_TYPE_P(value, T_STRING))
        value = SYMBOL_P(value) ? rb_sym2str(value) : rb_obj_as_string(value);
    return sdb_utf8(value);
}

static VALUE
string_or_nil(VALUE value)
{
    return NIL_P(value) ? Qnil : rb_str_new_frozen(string_of(value));
}

static struct sdb_text
text_of(VALUE string)
{
    return (struct sdb_text){RSTRING_PTR(string), (size_t)RSTRING_LEN(string)};
}

/* The keywords of a call as they are; nil: none. Not rb_scan_args, which copies them. Fewer or more than `named`
 * arguments before them: ArgumentError. */
static VALUE
keywords(int argc, VALUE *argv, int named)
{
    VALUE options = Qnil;
    if (argc > named && rb_keyword_given_p()) options = argv[--argc];
    rb_check_arity(argc, named, named);
    return options;
}

struct tag_arguments {
    VALUE tags, texts; /* nil: none */
    VALUE kind, id;    /* undef: not given, or not looked for */
    bool span;
    struct sdb_tag_text *encoded; /* of a span: instead of texts */
};

static int
take_argument(VALUE key, VALUE value, VALUE data)
{
    struct tag_arguments *a = (struct tag_arguments *)data;
    if (a->span && SYMBOL_P(key)) {
        if (SYM2ID(key) == id_kind) {
            a->kind = value;
            return ST_CONTINUE;
        }
        if (SYM2ID(key) == id_id) {
            a->id = value;
            return ST_CONTINUE;
        }
    }
    VALUE key_text = string_of(key), text = string_of(value);
    if (NIL_P(a->tags)) {
        a->tags = rb_hash_new();
        if (!a->encoded) a->texts = rb_hash_new();
    }
    rb_hash_aset(a->tags, key, value);
    if (a->encoded) sdb_tag_text_add(a->encoded, text_of(key_text), text_of(text));
    else rb_hash_aset(a->texts, key_text, rb_str_new_frozen(text));
    RB_GC_GUARD(key_text);
    RB_GC_GUARD(text);
    return ST_CONTINUE;
}

/* What of the arguments the filter lets through. A span's own keywords are none of its business. */
static VALUE
filtered(VALUE hash, const struct tag_arguments *a)
{
    VALUE tags = rb_hash_dup(hash), own = rb_hash_new();
    if (a->span) {
        ID names[] = {id_kind, id_id};
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
            VALUE value = rb_hash_lookup2(hash, ID2SYM(names[i]), Qundef);
            if (value == Qundef) continue;
            rb_hash_aset(own, ID2SYM(names[i]), value);
            rb_hash_delete(tags, ID2SYM(names[i]));
        }
    }
    if (RHASH_SIZE(tags)) tags = rb_funcall(tag_filter, id_call, 1, tags);
    return RB_TYPE_P(tags, T_HASH) ? rb_funcall(own, rb_intern("update"), 1, tags) : own;
}

static void
take_arguments(VALUE hash, struct tag_arguments *a, bool span, struct sdb_tag_text *encoded)
{
    *a = (struct tag_arguments){Qnil, Qnil, Qundef, Qundef, span, encoded};
    if (encoded) sdb_tag_text_clear(encoded);
    if (NIL_P(hash)) return;
    if (!NIL_P(tag_filter)) hash = filtered(hash, a);
    rb_hash_foreach(hash, take_argument, (VALUE)a);
    RB_GC_GUARD(hash);
}

/* filter = callable or nil */
static VALUE
api_set_filter(VALUE self, VALUE callable)
{
    (void)self;
    return tag_filter = callable;
}

/* ---- blocks ---- */

struct block_call {
    VALUE context;
    uint64_t token;
    bool done;
};

static VALUE
call_block(VALUE data)
{
    VALUE result = rb_yield_values2(0, NULL);
    ((struct block_call *)data)->done = true;
    return result;
}

/* What left the block: an exception, or something that is no failure (break, throw, return; also Thread#kill, which looks
 * the same from here: eval.c:rb_ensure shows nil for all but exceptions)? */
static uint32_t
status_of_exit(void)
{
    VALUE err = rb_errinfo();
    return NIL_P(err) ? SDB_STATUS_ENDED : SDB_STATUS_RAISED;
}

static VALUE
end_span(VALUE data)
{
    const struct block_call *call = (const struct block_call *)data;
    sdb_span_end(call->context, call->token, call->done ? SDB_STATUS_ENDED : status_of_exit());
    return Qnil;
}

static VALUE
end_tags(VALUE data)
{
    const struct block_call *call = (const struct block_call *)data;
    sdb_tags_end(call->context, call->token);
    return Qnil;
}

/* span(name, kind: :span, id: nil, **tags) { } */
static VALUE
api_span(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    rb_need_block();
    VALUE options = keywords(argc, argv, 1);
    if (!spans_on()) return rb_yield_values2(0, NULL);

    struct tag_arguments a;
    struct sdb_tag_text tags;
    take_arguments(options, &a, true, &tags);
    VALUE name = string_of(argv[0]);
    VALUE kind = a.kind == Qundef || NIL_P(a.kind) ? Qnil : string_of(a.kind);
    VALUE id = a.id == Qundef ? Qnil : string_or_nil(a.id);
    struct sdb_span_start start = {
        .kind = NIL_P(kind) ? (struct sdb_text){"span", 4} : text_of(kind),
        .name = text_of(name),
        .request = id,
        .wants_request = a.id != Qundef,
        .trace = Qnil,
        .tags = a.tags,
        .text = &tags,
    };
    struct block_call call = {Qnil, 0, false};
    call.token = sdb_span_begin(&start, &call.context);
    RB_GC_GUARD(name);
    RB_GC_GUARD(kind);
    RB_GC_GUARD(id);
    RB_GC_GUARD(a.tags);
    if (!call.token) return rb_yield_values2(0, NULL);
    VALUE result = rb_ensure(call_block, (VALUE)&call, end_span, (VALUE)&call);
    RB_GC_GUARD(call.context);
    return result;
}

/* tag(k: v) { } -> the block's value; tag(k: v) -> whether a span was open to take them */
static VALUE
api_tag(int argc, VALUE *argv, VALUE self)
{
    (void)self;
    VALUE options = keywords(argc, argv, 0);
    bool block = rb_block_given_p();
    if (!spans_on()) return block ? rb_yield_values2(0, NULL) : Qfalse;

    struct tag_arguments a;
    take_arguments(options, &a, false, NULL);
    struct block_call call = {Qnil, 0, false};
    if (!block) {
        uint64_t span = sdb_span_current(&call.context);
        if (span && !NIL_P(a.tags)) sdb_span_add_tags(call.context, span, a.tags, a.texts);
        RB_GC_GUARD(a.tags);
        RB_GC_GUARD(a.texts);
        return span ? Qtrue : Qfalse;
    }
    call.token = NIL_P(a.tags) ? 0 : sdb_tags_begin(a.tags, a.texts, &call.context);
    RB_GC_GUARD(a.tags);
    RB_GC_GUARD(a.texts);
    if (!call.token) return rb_yield_values2(0, NULL);
    VALUE result = rb_ensure(call_block, (VALUE)&call, end_tags, (VALUE)&call);
    RB_GC_GUARD(call.context);
    return result;
}

static VALUE
api_tags(VALUE self)
{
    (void)self;
    VALUE tags = in_main_ractor() ? sdb_tags_current() : Qnil;
    return NIL_P(tags) ? rb_obj_freeze(rb_hash_new()) : tags;
}

static VALUE
api_mark(VALUE self, VALUE text)
{
    (void)self;
    text = string_of(text);
    if (in_main_ractor()) sdb_mark_now(text_of(text));
    RB_GC_GUARD(text);
    return Qnil;
}

/* ---- handles ---- */

struct handle {
    VALUE context;
    uint64_t id;
};

static void
handle_mark(void *data)
{
    rb_gc_mark(((struct handle *)data)->context);
}

static const rb_data_type_t handle_type = {
    .wrap_struct_name = "sdb span",
    .function = {.dmark = handle_mark, .dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE
handle_new(VALUE context, uint64_t id)
{
    struct handle *h;
    VALUE self = TypedData_Make_Struct(span_class, struct handle, &handle_type, h);
    h->context = context;
    h->id = id;
    return self;
}

static struct handle *
handle_of(VALUE self)
{
    return rb_check_typeddata(self, &handle_type);
}

/* current_span -> Span or nil */
static VALUE
api_current_span(VALUE self)
{
    (void)self;
    VALUE context = Qnil;
    uint64_t id = in_main_ractor() ? sdb_span_current(&context) : 0;
    return id ? handle_new(context, id) : Qnil;
}

/* begin_span(name, kind, id, trace, tags, outermost) -> Span, or nil when nothing is recorded */
static VALUE
api_begin_span(VALUE self, VALUE name, VALUE kind, VALUE id, VALUE trace, VALUE tags,
               VALUE outermost)
{
    (void)self;
    if (!spans_on()) return Qnil;
    struct tag_arguments a;
    struct sdb_tag_text encoded;
    take_arguments(tags, &a, false, &encoded);
    name = string_of(name);
    kind = string_of(kind);
    id = string_or_nil(id);
    trace = string_or_nil(trace);
    struct sdb_span_start start = {
        .kind = text_of(kind),
        .name = text_of(name),
        .request = id,
        .wants_request = RTEST(outermost),
        .trace = trace,
        .tags = a.tags,
        .text = &encoded,
        .outermost = RTEST(outermost),
    };
    VALUE context = Qnil;
    uint64_t token = sdb_span_begin(&start, &context);
    RB_GC_GUARD(name);
    RB_GC_GUARD(kind);
    RB_GC_GUARD(id);
    RB_GC_GUARD(trace);
    RB_GC_GUARD(a.tags);
    return token ? handle_new(context, token) : Qnil;
}

/* id -> request id; nil without one, and when it has ended */
static VALUE
span_id(VALUE self)
{
    const struct handle *h = handle_of(self);
    return sdb_span_request_id(h->context, h->id);
}

static VALUE
span_trace_id(VALUE self)
{
    const struct handle *h = handle_of(self);
    return sdb_span_trace_id(h->context, h->id);
}

static VALUE
span_set_trace_id(VALUE self, VALUE trace)
{
    VALUE text = string_or_nil(trace);
    const struct handle *h = handle_of(self);
    sdb_span_set_trace(h->context, h->id, text);
    return trace;
}

static VALUE
span_set_name(VALUE self, VALUE name)
{
    VALUE text = string_or_nil(name);
    const struct handle *h = handle_of(self);
    sdb_span_set_name(h->context, h->id, text);
    return name;
}

static VALUE
span_set_status(VALUE self, VALUE status)
{
    const struct handle *h = handle_of(self);
    sdb_span_set_status(h->context, h->id, NUM2UINT(status));
    return status;
}

static VALUE
span_tag(int argc, VALUE *argv, VALUE self)
{
    struct tag_arguments a;
    take_arguments(keywords(argc, argv, 0), &a, false, NULL);
    const struct handle *h = handle_of(self);
    if (!NIL_P(a.tags)) sdb_span_add_tags(h->context, h->id, a.tags, a.texts);
    RB_GC_GUARD(a.tags);
    RB_GC_GUARD(a.texts);
    return self;
}

static VALUE
span_returned(VALUE self)
{
    const struct handle *h = handle_of(self);
    sdb_span_returned(h->context, h->id);
    return self;
}

/* finish(status = ended) */
static VALUE
span_finish(int argc, VALUE *argv, VALUE self)
{
    const struct handle *h = handle_of(self);
    rb_check_arity(argc, 0, 1);
    if (argc == 1 && !NIL_P(argv[0])) sdb_span_set_status(h->context, h->id, NUM2UINT(argv[0]));
    sdb_span_end(h->context, h->id, SDB_STATUS_ENDED);
    return Qnil;
}

void
Init_sdb_span_api(VALUE native)
{
    static const struct rb_ractor_local_storage_type not_freed = {NULL, NULL};
    id_kind = rb_intern("kind");
    id_id = rb_intern("id");
    id_call = rb_intern("call");
    tag_filter = Qnil;
    rb_gc_register_address(&tag_filter);
    main_ractor = rb_ractor_local_storage_ptr_newkey(&not_freed);
    rb_ractor_local_storage_ptr_set(main_ractor, &main_ractor);
    VALUE methods = rb_define_module_under(native, "SpanMethods");
    RB_EXT_RACTOR_SAFE(true);
    rb_define_method(methods, "span", api_span, -1);
    rb_define_method(methods, "tag", api_tag, -1);
    rb_define_method(methods, "tags", api_tags, 0);
    rb_define_method(methods, "mark", api_mark, 1);
    rb_define_method(methods, "current_span", api_current_span, 0);
    rb_define_method(methods, "begin_span", api_begin_span, 6);
    RB_EXT_RACTOR_SAFE(false);

    rb_define_singleton_method(methods, "filter=", api_set_filter, 1);

    rb_gc_register_mark_object(span_class = rb_define_class_under(native, "Span", rb_cObject));
    rb_undef_alloc_func(span_class);
    rb_define_method(span_class, "id", span_id, 0);
    rb_define_method(span_class, "trace_id", span_trace_id, 0);
    rb_define_method(span_class, "trace_id=", span_set_trace_id, 1);
    rb_define_method(span_class, "name=", span_set_name, 1);
    rb_define_method(span_class, "status=", span_set_status, 1);
    rb_define_method(span_class, "tag", span_tag, -1);
    rb_define_method(span_class, "returned", span_returned, 0);
    rb_define_method(span_class, "finish", span_finish, -1);
}
