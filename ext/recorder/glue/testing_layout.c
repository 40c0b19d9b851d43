/* SPDX-License-Identifier: MIT
 *
 * testing_layout.c - lets tests see and falsify the layout table and calibration. Nothing in a released gem.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifdef SDB_TESTING

#include "glue/testing_layout.h"

#include "vm/layout.h"
#include "vm/layout_fields.h"
#include "vm/vm_heap.h"

#include <ruby/debug.h>

static VALUE
to_hash(const struct sdb_layout *layout)
{
    VALUE hash = rb_hash_new();
#define FIELD(words, member, measured)                                                             \
    rb_hash_aset(hash, rb_str_new_cstr(words), UINT2NUM(layout->member));
    SDB_LAYOUT_FIELDS(FIELD)
#undef FIELD
    return hash;
}

static VALUE
result(int err, const struct sdb_layout *layout, const char *reason)
{
    return err ? rb_str_new_cstr(reason) : to_hash(layout);
}

/* layout_table("3.3") -> Hash of field => bytes, nil where there is no row; without argument the running Ruby's,
 * or a String with the reason. */
static VALUE
layout_table(int argc, VALUE *argv, VALUE self)
{
    char reason[SDB_REASON_BYTES] = "";
    rb_check_arity(argc, 0, 1);
    if (argc == 1) {
        const struct sdb_layout *row = sdb_layout_for(StringValueCStr(argv[0]));
        return row ? to_hash(row) : Qnil;
    }
    const struct sdb_layout *row = sdb_layout_table(reason);
    return result(row == NULL, row, reason);
}

/* calibrate -> Hash of field => bytes (0 for those not measured), or a String with the reason. */
static VALUE
calibrate(VALUE self)
{
    char reason[SDB_REASON_BYTES] = "";
    struct sdb_layout measured;
    int err = sdb_calibrate(&measured, reason);
    return result(err, &measured, reason);
}

/* prove_layout -> Hash, or a String with the reason. */
static VALUE
prove_layout(VALUE self)
{
    char reason[SDB_REASON_BYTES] = "";
    struct sdb_layout proven;
    int err = sdb_layout_prove(&proven, reason);
    return result(err, &proven, reason);
}

/* force_layout("cfp size", :table | :measured, bytes); force_layout(nil) ends it. true, or false for no such field. */
static VALUE
force_layout(int argc, VALUE *argv, VALUE self)
{
    if (argc == 1 && NIL_P(argv[0])) {
        return sdb_layout_force(NULL, false, 0) ? Qtrue : Qfalse;
    }
    rb_check_arity(argc, 3, 3);
    bool measured = argv[1] == ID2SYM(rb_intern("measured"));
    return sdb_layout_force(StringValueCStr(argv[0]), measured, NUM2UINT(argv[2])) ? Qtrue : Qfalse;
}

static void
add_row(const char *field, uint32_t table, uint32_t measured, bool compared, void *rows)
{
    rb_ary_push((VALUE)rows, rb_ary_new_from_args(4, rb_str_new_cstr(field), UINT2NUM(table),
                                                  UINT2NUM(measured), compared ? Qtrue : Qfalse));
}

/* layout_each -> [[field, table, measured, compared], ...], or a String with the reason. */
static VALUE
layout_each(VALUE self)
{
    char reason[SDB_REASON_BYTES] = "";
    VALUE rows = rb_ary_new();
    int err = sdb_layout_each(add_row, (void *)rows, reason);
    return err ? rb_str_new_cstr(reason) : rows;
}

/* heap_kind(address) -> :iseq, :ment or nil. */
static VALUE
heap_kind(VALUE self, VALUE address)
{
    uint64_t value = NUM2ULL(address);
    if (sdb_vm_is_iseq(value)) {
        return ID2SYM(rb_intern("iseq"));
    }
    return sdb_vm_is_ment(value) ? ID2SYM(rb_intern("ment")) : Qnil;
}

/* frame_addresses -> the words that rb_profile_frames returns for the caller's stack, as Integers. Pinned by this very
 * stack until the caller returns. */
static VALUE
frame_addresses(VALUE self)
{
    VALUE frames[64], list = rb_ary_new();
    int count = rb_profile_frames(0, 64, frames, NULL);
    for (int i = 0; i < count; i++) {
        rb_ary_push(list, ULL2NUM(frames[i]));
    }
    return list;
}

void
Init_sdb_testing_layout(VALUE module)
{
    rb_define_singleton_method(module, "layout_table", layout_table, -1);
    rb_define_singleton_method(module, "calibrate", calibrate, 0);
    rb_define_singleton_method(module, "prove_layout", prove_layout, 0);
    rb_define_singleton_method(module, "force_layout", force_layout, -1);
    rb_define_singleton_method(module, "layout_each", layout_each, 0);
    rb_define_singleton_method(module, "heap_kind", heap_kind, 1);
    rb_define_singleton_method(module, "frame_addresses", frame_addresses, 0);
}

#endif
