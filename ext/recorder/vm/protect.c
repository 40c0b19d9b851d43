/* SPDX-License-Identifier: MIT
 *
 * protect.c - see protect.h
 */
#include "vm/protect.h"

/* What rb_errinfo shows after a jump is an exception for raise, an integer for Thread#kill, and an internal object for
 * throw, break and the like (eval_intern.h, vm_core.h:THROW_DATA). */
static bool
is_exception(VALUE error)
{
    return !RB_SPECIAL_CONST_P(error) && RB_BUILTIN_TYPE(error) != T_IMEMO &&
           RTEST(rb_obj_is_kind_of(error, rb_eException));
}

static bool
is_of_the_code(VALUE error)
{
    return is_exception(error) && !RTEST(rb_obj_is_kind_of(error, rb_eSignal)) &&
           !RTEST(rb_obj_is_kind_of(error, rb_eSystemExit));
}

/* What left f, for the caller to keep; what cannot be kept goes on from here. */
static VALUE
call(VALUE (*f)(VALUE), VALUE argument, bool (*keeps)(VALUE))
{
    int state = 0;
    VALUE before = rb_errinfo();
    rb_protect(f, argument, &state);
    if (!state) return Qnil;
    VALUE error = rb_errinfo();
    if (!keeps(error)) rb_jump_tag(state);
    /* rb_set_errinfo takes nothing else; an ensure that we run in restores the rest by itself */
    rb_set_errinfo(is_exception(before) ? before : Qnil);
    return error;
}

bool
sdb_protect(VALUE (*f)(VALUE), VALUE argument, VALUE *error)
{
    VALUE left = call(f, argument, is_of_the_code);
    if (error) *error = left;
    return NIL_P(left);
}

bool
sdb_hold(VALUE (*f)(VALUE), VALUE argument, VALUE *held)
{
    VALUE left = call(f, argument, is_exception);
    if (NIL_P(*held)) *held = left;
    return NIL_P(left);
}

void
sdb_go_on(VALUE held)
{
    if (!NIL_P(held)) rb_exc_raise(held);
}
