/* SPDX-License-Identifier: MIT
 *
 * testing.c - see testing.h.
 */
#ifdef SDB_TESTING

#include "glue/testing.h"

#include <errno.h>
#include <poll.h>
#include <ruby/thread.h>
#include <time.h>
#include "core/clock.h"
#include "core/testpoint.h"
#include "recorder/recorder.h"

/* sleep_holding_gvl(seconds): what a C extension does that forgets to give the GVL up. */
static VALUE
sleep_holding_gvl(VALUE self, VALUE seconds)
{
    (void)self;
    double s = NUM2DBL(seconds);
    struct timespec t = {.tv_sec = (time_t)s, .tv_nsec = (long)((s - (double)(time_t)s) * 1e9)};
    nanosleep(&t, NULL);
    return Qnil;
}

/* spin_holding_gvl(seconds): computes in C for so long, of the thread's own CPU time. */
static VALUE
spin_holding_gvl(VALUE self, VALUE seconds)
{
    (void)self;
    uint64_t end = sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID) + (uint64_t)(NUM2DBL(seconds) * 1e9);
    volatile uint64_t x = 0;
    while (sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
        for (int i = 0; i < 1000; i++) x += (uint64_t)i;
    }
    return Qnil;
}

static void *
spin_free(void *argument)
{
    uint64_t end = sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID) + *(uint64_t *)argument;
    volatile uint64_t x = 0;
    while (sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
        for (int i = 0; i < 1000; i++) x += (uint64_t)i;
    }
    return NULL;
}

/* spin_without_gvl(seconds): as bcrypt and zlib do. */
static VALUE
spin_without_gvl(VALUE self, VALUE seconds)
{
    (void)self;
    uint64_t ns = (uint64_t)(NUM2DBL(seconds) * 1e9);
    rb_thread_call_without_gvl(spin_free, &ns, NULL, NULL);
    return Qnil;
}

/* poll_once(milliseconds) -> errno of one poll() that nobody retries (C11) */
static VALUE
poll_once(VALUE self, VALUE milliseconds)
{
    (void)self;
    return INT2NUM(poll(NULL, 0, NUM2INT(milliseconds)) < 0 ? errno : 0);
}

void
Init_sdb_testing(VALUE module)
{
    sdb_testpoint_from_env(); /* SDB_TESTPOINT: where this process is to die */
    rb_define_module_function(module, "sleep_holding_gvl", sleep_holding_gvl, 1);
    rb_define_module_function(module, "spin_holding_gvl", spin_holding_gvl, 1);
    rb_define_module_function(module, "spin_without_gvl", spin_without_gvl, 1);
    rb_define_module_function(module, "poll_once", poll_once, 1);
}

#endif
