/* SPDX-License-Identifier: MIT
 *
 * testing_states.c - a second clock of thread states, to hold the recorder's against: its own hook, its own times,
 * nothing shared with vm/gvl.c. Ruby 3.3+, where the VM says which thread an event is about.
 */
#ifdef SDB_TESTING

#include "glue/testing_states.h"

#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>
#include "core/clock.h"

#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET

enum { RUNNING, WAITING, BLOCKED, STATES };

struct clock_of_thread {
    uint64_t ns[STATES], since_ns;
    int state;
};

static rb_internal_thread_specific_key_t key;
static bool started;

static void
on_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    (void)unused;
    struct clock_of_thread *c = rb_internal_thread_specific_get(data->thread, key);
    if (!c) return;
    if (event == RUBY_INTERNAL_THREAD_EVENT_EXITED) {
        rb_internal_thread_specific_set(data->thread, key, NULL);
        free(c);
        return;
    }
    uint64_t now = sdb_monotonic_ns();
    c->ns[c->state] += now - c->since_ns;
    c->since_ns = now;
    c->state = event == RUBY_INTERNAL_THREAD_EVENT_READY     ? WAITING
               : event == RUBY_INTERNAL_THREAD_EVENT_RESUMED ? RUNNING
                                                             : BLOCKED;
}

/* state_clock_start: the current thread's clock begins, in state running. false where there are no such events. */
static VALUE
state_clock_start(VALUE self)
{
    (void)self;
    if (!started) {
        key = rb_internal_thread_specific_key_create();
        rb_internal_thread_add_event_hook(
            on_event,
            RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                RUBY_INTERNAL_THREAD_EVENT_SUSPENDED | RUBY_INTERNAL_THREAD_EVENT_EXITED,
            NULL);
        started = true;
    }
    struct clock_of_thread *c = calloc(1, sizeof *c);
    if (!c) rb_memerror();
    c->since_ns = sdb_monotonic_ns();
    rb_internal_thread_specific_set(rb_thread_current(), key, c);
    return Qtrue;
}

/* state_clock -> [running, gvl_wait, blocked] ns of the current thread since its clock began */
static VALUE
state_clock(VALUE self)
{
    (void)self;
    struct clock_of_thread *c = rb_internal_thread_specific_get(rb_thread_current(), key);
    if (!c) return Qnil;
    uint64_t running = c->ns[RUNNING] + (sdb_monotonic_ns() - c->since_ns);
    return rb_ary_new_from_args(STATES, ULL2NUM(running), ULL2NUM(c->ns[WAITING]),
                                ULL2NUM(c->ns[BLOCKED]));
}

#else

static VALUE
state_clock_start(VALUE self)
{
    (void)self;
    return Qfalse;
}

static VALUE
state_clock(VALUE self)
{
    (void)self;
    return Qnil;
}

#endif

void
Init_sdb_testing_states(VALUE module)
{
    rb_define_module_function(module, "state_clock_start", state_clock_start, 0);
    rb_define_module_function(module, "state_clock", state_clock, 0);
}

#endif
