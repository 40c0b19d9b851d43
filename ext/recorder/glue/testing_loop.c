/* SPDX-License-Identifier: MIT
 *
 * testing_loop.c - a native thread that wakes up as the scanner does and does nothing: the floor to hold the
 * scanner's cost against.
 */
#define _GNU_SOURCE
#ifdef SDB_TESTING

#include "glue/testing_loop.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "sdb_atomic.h"

static struct {
    uint64_t interval_ns, ticks;
    uint64_t stop, tid; /* shared: atomic */
    pthread_t thread;
    bool runs;
} loop;

static void *
tick_emptily(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "sdb empty loop", 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    sdb_store_release(&loop.tid, (uint64_t)syscall(SYS_gettid));
    uint64_t next = sdb_monotonic_ns();
    while (!sdb_load_acquire(&loop.stop)) {
        next += loop.interval_ns;
        uint64_t now = sdb_monotonic_ns();
        if (next < now) next = now; /* no burst, like the scanner */
        struct timespec t = {.tv_sec = (time_t)(next / 1000000000ull), .tv_nsec = (long)(next % 1000000000ull)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
        sdb_add_relaxed(&loop.ticks, 1);
    }
    return NULL;
}

/* empty_loop_start(seconds between two ticks) -> its native thread id */
static VALUE
empty_loop_start(VALUE self, VALUE seconds)
{
    (void)self;
    if (loop.runs) rb_raise(rb_eRuntimeError, "it runs");
    loop.interval_ns = (uint64_t)(NUM2DBL(seconds) * 1e9);
    loop.stop = loop.tid = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&loop.thread, NULL, tick_emptily, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) rb_raise(rb_eRuntimeError, "no thread");
    loop.runs = true;
    while (!sdb_load_acquire(&loop.tid)) usleep(100);
    return ULL2NUM(loop.tid);
}

/* empty_loop_ticks -> how often it woke up */
static VALUE
empty_loop_ticks(VALUE self)
{
    (void)self;
    return ULL2NUM(sdb_load_relaxed(&loop.ticks));
}

static VALUE
empty_loop_stop(VALUE self)
{
    (void)self;
    if (!loop.runs) return Qnil;
    sdb_store_release(&loop.stop, 1);
    pthread_join(loop.thread, NULL);
    loop.runs = false;
    return Qnil;
}

void
Init_sdb_testing_loop(VALUE module)
{
    rb_define_module_function(module, "empty_loop_start", empty_loop_start, 1);
    rb_define_module_function(module, "empty_loop_ticks", empty_loop_ticks, 0);
    rb_define_module_function(module, "empty_loop_stop", empty_loop_stop, 0);
}

#endif
