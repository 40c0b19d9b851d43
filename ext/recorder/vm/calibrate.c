/* SPDX-License-Identifier: MIT
 *
 * calibrate.c - makes a stack whose frames are known, asks the VM about it, and lets calibrate_walk.c find
 * the same in memory; at two depths, then on a second thread. Leaves no constant, method or thread behind:
 * all hangs on one object that nobody holds afterwards.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "vm/layout.h"

#include "error.h"
#include "sdb_atomic.h"
#include "vm/calibrate_walk.h"
#include "vm/protect.h"
#include "vm/vm_heap.h"
#include "core/self_read.h"

#include <ruby.h>
#include <ruby/debug.h>
#include <ruby/thread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifdef HAVE_RB_ISEQ_LINE_NO
unsigned int rb_iseq_line_no(const void *iseq,
                             size_t position); /* iseq.h: exported, not in the headers */
#endif

/* In order of calls: x (a define_method), a once or more, y (a define_method), b, c, the block in b, and from it the C
 * method `measure`. The assignments put the calls beyond SDB_SEARCH_MIN_POS; a call is never last, so that
 * no setting makes a tail call of it; each is on a line of its own; nothing here calls a method that an app could
 * have redefined, but define_singleton_method. Names begin with _ for `ruby -w`. */
static const char script[] = "proc do |o|\n"
                             "  o.define_singleton_method(:x) do |deep|\n"
                             "    _v = nil; _v = nil; _v = nil; _v = nil; _v = nil; _v = nil\n"
                             "    a(deep)\n"
                             "    nil\n"
                             "  end\n"
                             "  def o.a(deep)\n"
                             "    _v = nil; _v = nil; _v = nil; _v = nil; _v = nil; _v = nil\n"
                             "    deep ? a(nil) : y\n"
                             "    nil\n"
                             "  end\n"
                             "  o.define_singleton_method(:y) do\n"
                             "    _v = nil; _v = nil; _v = nil; _v = nil; _v = nil; _v = nil\n"
                             "    b\n"
                             "    nil\n"
                             "  end\n"
                             "  def o.b\n"
                             "    _v = nil; _v = nil; _v = nil; _v = nil; _v = nil; _v = nil\n"
                             "    c do\n"
                             "      _v = nil; _v = nil; _v = nil; _v = nil; _v = nil; _v = nil\n"
                             "      measure\n"
                             "      nil\n"
                             "    end\n"
                             "    nil\n"
                             "  end\n"
                             "  def o.c\n"
                             "    _v = nil; _v = nil; _v = nil; _v = nil; _v = nil; _v = nil\n"
                             "    yield\n"
                             "    nil\n"
                             "  end\n"
                             "  nil\n"
                             "end\n";

struct calibration {
    unsigned deep; /* further calls of a */
    unsigned measured;
    int err;
    struct sdb_layout found[2];
    char *reason;
};

static const rb_data_type_t calibration_type = {
    .wrap_struct_name = "sdb calibration",
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static uint64_t
thread_pointer(VALUE thread)
{
    return (uint64_t)(uintptr_t)RTYPEDDATA_DATA(thread);
}

#ifdef HAVE_RB_ISEQ_LINE_NO
static unsigned
line_of(uint64_t iseq, unsigned position)
{
    return rb_iseq_line_no((const void *)(uintptr_t)iseq, position);
}

/* The frames as the script makes them. */
static unsigned
expected_frames(unsigned deep, struct sdb_search_frame frames[SDB_SEARCH_MAX_FRAMES])
{
    static const enum sdb_search_kind newest[] = {SDB_SEARCH_C, SDB_SEARCH_BLOCK, SDB_SEARCH_METHOD,
                                                  SDB_SEARCH_METHOD, SDB_SEARCH_BMETHOD};
    unsigned count = 0;
    for (; count < sizeof(newest) / sizeof(newest[0]); count++) {
        frames[count].kind = newest[count];
        frames[count].home = 3;
    }
    for (unsigned i = 0; i <= deep; i++) {
        frames[count++].kind = SDB_SEARCH_METHOD;
    }
    frames[count++].kind = SDB_SEARCH_BMETHOD;
    return count;
}

/* The C method at the end of the script. Allocates nothing, so that nothing moves. */
static VALUE
measure(VALUE self)
{
    struct calibration *c = rb_check_typeddata(self, &calibration_type);
    if (!c || c->err || c->measured >= sizeof(c->found) / sizeof(c->found[0])) {
        return Qnil;
    }
    struct sdb_search_frame frames[SDB_SEARCH_MAX_FRAMES];
    VALUE entries[SDB_SEARCH_MAX_FRAMES];
    int lines[SDB_SEARCH_MAX_FRAMES];
    unsigned count = expected_frames(c->deep, frames);
    if (rb_profile_frames(0, (int)count, entries, lines) != (int)count ||
        entries[1] != entries[3]) {
        snprintf(c->reason, SDB_REASON_BYTES,
                 "rb_profile_frames does not return the frames of a known call");
        c->err = SDB_ERR_UNSUPPORTED;
        return Qnil;
    }
    for (unsigned i = 0; i < count; i++) {
        frames[i].entry = entries[i];
        frames[i].line = lines[i];
        bool known = frames[i].kind == SDB_SEARCH_BMETHOD ? sdb_vm_is_iseq(entries[i])
                                                          : sdb_vm_is_ment(entries[i]);
        if (!known) {
            snprintf(c->reason, SDB_REASON_BYTES,
                     "iseqs and method entries are not the imemo types 7 and 6");
            c->err = SDB_ERR_UNSUPPORTED;
            return Qnil;
        }
    }
    c->err = sdb_search_find(thread_pointer(rb_thread_current()), frames, count, line_of,
                             &c->found[c->measured], c->reason);
    c->measured++;
    return Qnil;
}

static VALUE
run_script(VALUE argument)
{
    struct calibration *c = (struct calibration *)argument;
    VALUE object = rb_data_typed_object_wrap(rb_cObject, NULL, &calibration_type);
    rb_define_singleton_method(object, "measure", measure, 0);
    VALUE path = rb_str_new_cstr("(sdb calibration)");
    /* Compiled this way and not with eval: Coverage with eval: true would list it. */
    VALUE code = rb_funcall(rb_path2class("RubyVM::InstructionSequence"), rb_intern("compile"), 3,
                            rb_str_new_cstr(script), path, path);
    VALUE proc = rb_funcall(code, rb_intern("eval"), 0);
    rb_proc_call_kw(proc, rb_ary_new_from_args(1, object), RB_NO_KEYWORDS);
    DATA_PTR(object) = c;
    for (c->deep = 0; c->deep < 2; c->deep++) {
        rb_funcall(object, rb_intern("x"), 1, c->deep ? Qtrue : Qnil);
    }
    DATA_PTR(object) = NULL; /* c is on our caller's stack */
    return Qnil;
}

/* ---- the second thread ---- */

struct second {
    const struct sdb_layout *layout;
    VALUE thread;
    bool fits;
    uint32_t done; /* shared: atomic */
};

static VALUE
check_own_thread(void *argument)
{
    struct second *second = argument;
    second->fits = sdb_search_check(second->layout, thread_pointer(rb_thread_current())) == 0;
    sdb_store_release(&second->done, 1); /* -> wait_for_second's load */
    return Qnil;
}

static void *
nap(void *unused)
{
    (void)unused;
    struct timespec t = {0, 50000};
    nanosleep(&t, NULL);
    return NULL;
}

/* Not Thread#join: in a fiber with a scheduler that runs the app's code. */
static VALUE
wait_for_second(VALUE argument)
{
    struct second *second = (struct second *)argument;
    while (!sdb_load_acquire(&second->done) ||
           RTEST(rb_funcall(second->thread, rb_intern("alive?"), 0))) {
        rb_thread_call_without_gvl(nap, NULL, NULL, NULL);
    }
    return Qnil;
}

/* One of the app's own threads if it has another that stands still, else one that we make and see end. */
static VALUE
check_second_thread(VALUE argument)
{
    struct second *second = (struct second *)argument;
    VALUE threads = rb_funcall(rb_cThread, rb_intern("list"), 0);
    for (long i = 0; i < RARRAY_LEN(threads); i++) {
        VALUE thread = RARRAY_AREF(threads, i);
        if (thread != rb_thread_current() &&
            sdb_search_check(second->layout, thread_pointer(thread)) == 0) {
            second->fits = true;
            return Qnil;
        }
    }
    second->thread = rb_thread_create(check_own_thread, second);
    /* `second` is on our caller's stack, so wait for the thread whatever happens */
    VALUE held = Qnil;
    while (!sdb_hold(wait_for_second, argument, &held) && !sdb_load_acquire(&second->done)) {}
    sdb_go_on(held);
    return Qnil;
}

/* Calls f(argument); what it raises becomes words. */
static int
guarded(VALUE (*f)(VALUE), void *argument, const char *what, char reason[SDB_REASON_BYTES])
{
    VALUE error = Qnil;
    if (sdb_protect(f, (VALUE)argument, &error)) return 0;
    snprintf(reason, SDB_REASON_BYTES, "%s: %s", what, rb_obj_classname(error));
    return SDB_ERR_UNSUPPORTED;
}

static int
calibrate(struct sdb_layout *out, char reason[SDB_REASON_BYTES])
{
    struct calibration c = {.reason = reason};
    /* Not when it is known: the scanner may be reading, and a probe must not run beside a read. */
    if (sdb_safe_read_way() == SDB_SAFE_READ_NONE && sdb_safe_read_probe() == SDB_SAFE_READ_NONE) {
        snprintf(reason, SDB_REASON_BYTES,
                 "this process may not read its own memory safely "
                 "(process_vm_readv and /proc/self/mem are both refused)");
        return SDB_ERR_UNSUPPORTED;
    }
    int err = guarded(run_script, &c, "calibration raised", reason);
    if (err || c.err) {
        return err ? err : c.err;
    }
    if (c.measured != 2 || memcmp(&c.found[0], &c.found[1], sizeof(c.found[0])) != 0) {
        snprintf(reason, SDB_REASON_BYTES, "two measurements of the same thread differ");
        return SDB_ERR_UNSUPPORTED;
    }
    struct second second = {.layout = &c.found[0]};
    err = guarded(check_second_thread, &second, "no second thread to calibrate with", reason);
    if (err) {
        return err;
    }
    if (!second.fits) {
        snprintf(reason, SDB_REASON_BYTES, "what fits one thread does not fit another");
        return SDB_ERR_UNSUPPORTED;
    }
    *out = c.found[0];
    return 0;
}
#endif

int
sdb_calibrate(struct sdb_layout *out, char reason[SDB_REASON_BYTES])
{
#ifdef HAVE_RB_ISEQ_LINE_NO
    return calibrate(out, reason);
#else
    (void)out;
    snprintf(reason, SDB_REASON_BYTES, "this Ruby does not export rb_iseq_line_no");
    return SDB_ERR_UNSUPPORTED;
#endif
}
