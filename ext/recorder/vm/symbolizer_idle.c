/* SPDX-License-Identifier: MIT
 *
 * symbolizer_idle.c - what the symbolizer's thread does when the whole program stands still.
 *
 * Two things could go wrong: somebody joins every thread of Thread.list and so waits for ours for ever; and the VM's
 * deadlock check, which counts ours as alive, leaves a deadlocked program hanging instead of raising. That check is made
 * when a thread goes to sleep; the end of a thread is no substitute, for the ending thread still counts (thread.c:
 * thread_start_func_2, before rb_ractor_living_threads_remove). So, before ours ends, and again whenever the scanner says
 * that nothing ran for a while:
 *   1. if a thread sits in join that did not when ours began, ours ends and another takes its place: whoever waited for
 *      it goes on, nobody can wait for the new one yet;
 *   2. if still every other thread sleeps in a way the VM's check counts, ours sleeps that way too
 *      (rb_thread_sleep_deadly) and the VM decides; but only where it would have looked without us: when the last thing
 *      that happened was a thread that went to sleep, not one that ended.
 * Such a sleep ends when a Ruby thread allocates an object: only who has the GVL may wake a sleeper.
 *
 * Runs on: symbolizer, GVL, but for _rouse
 */
#include <ruby.h>

#include <ruby/debug.h>
#include <ruby/thread.h>
#include <string.h>
#include <unistd.h>
#include "core/clock.h"
#include "sdb_atomic.h"
#include "vm/gvl.h"
#include "vm/protect.h"
#include "vm/symbolizer.h"
#include "vm/symbolizer_impl.h"

enum { INEXACT_NS = 50000000, LATELY_NS = 40000000 };

struct sleepers {
    int joiners, others_awake;
    VALUE joining[SDB_JOINERS_MAX];
};

/* The C method at the top of a thread's stack, e.g. "join". Qnil when it has none. */
static VALUE
top_label(VALUE thread)
{
    VALUE locations =
        rb_funcall(thread, rb_intern("backtrace_locations"), 2, INT2FIX(0), INT2FIX(1));
    if (!RB_TYPE_P(locations, T_ARRAY) || RARRAY_LEN(locations) == 0) return Qnil;
    return rb_funcall(RARRAY_AREF(locations, 0), rb_intern("base_label"), 0);
}

static VALUE
look_at_sleepers(VALUE argument)
{
    struct sleepers *s = (struct sleepers *)argument;
    VALUE list = rb_funcall(rb_cThread, rb_intern("list"), 0);
    VALUE inspect =
        rb_funcall(rb_cThread, rb_intern("instance_method"), 1, ID2SYM(rb_intern("inspect")));
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE thread = RARRAY_AREF(list, i);
        if (thread == rb_thread_current()) continue;
        VALUE text = rb_funcall(inspect, rb_intern("bind_call"), 1, thread);
        /* `sleep` without a time is "sleep": the VM's check does not count it either */
        if (!strstr(StringValueCStr(text), " sleep_forever>")) {
            s->others_awake++;
            return Qnil;
        }
        VALUE label = top_label(thread);
        const char *name = RB_TYPE_P(label, T_STRING) ? StringValueCStr(label) : "";
        if ((!strcmp(name, "join") || !strcmp(name, "value")) && s->joiners < SDB_JOINERS_MAX) {
            s->joining[s->joiners++] = thread;
        }
    }
    return Qnil;
}

static bool
all_sleep(struct sleepers *s)
{
    *s = (struct sleepers){0};
    return sdb_protect(look_at_sleepers, (VALUE)s, NULL) && !s->others_awake;
}

static bool
is_new_joiner(VALUE thread)
{
    for (int i = 0; i < sdb_symbolizer.joiner_count; i++) {
        if (sdb_symbolizer.joiners[i] == thread) return false;
    }
    return true;
}

/* Whether the last thing that happened was a thread that went to sleep. In doubt not (3.1): to hang as the program would
 * is better than to raise where it would go on. */
static bool
deadlock_would_be_seen(void)
{
    uint64_t ended = sdb_load_relaxed(&sdb_symbolizer.threads->last_ended_ns),
             blocked = sdb_thread_last_blocked(sdb_symbolizer.threads);
    if (!blocked || !ended) return blocked;
    return sdb_gvl_exact() ? blocked > ended
                           : sdb_gvl_ran_since(ended) || blocked > ended + INEXACT_NS;
}

/* What was asked may have waited for the GVL. An app that works must not see us look. */
static bool
somebody_ran(void)
{
    uint64_t last = sdb_thread_last_blocked(sdb_symbolizer.threads), now = sdb_monotonic_ns();
    if (sdb_gvl_exact()) return !last;
    if (now >= last + LATELY_NS) return false;
    rb_thread_wait_for((struct timeval){.tv_usec = (suseconds_t)((last + LATELY_NS - now) / 1000)});
    return sdb_thread_last_blocked(sdb_symbolizer.threads) != last;
}

static void *
wait_briefly(void *unused)
{
    (void)unused;
    usleep(10000);
    return NULL;
}

#ifndef HAVE_RB_POSTPONED_JOB_PREREGISTER
static void
rouse_in_job(void *unused)
{
    (void)unused;
    sdb_symbolizer_rouse();
}
#endif

/* Runs on: whoever allocates, GVL; no alloc, no raise. */
static void
on_allocation(VALUE tracepoint, void *unused)
{
    (void)tracepoint, (void)unused;
    if (!sdb_load_acquire(&sdb_symbolizer.sleeps) ||
        rb_thread_current() == sdb_symbolizer.thread) /* the `fatal` that the check itself made */
        return;
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    sdb_symbolizer_summon();
#else
    rb_postponed_job_register_one(0, rouse_in_job, NULL); /* with the GVL no slot is half written */
#endif
}

void
sdb_symbolizer_in_gc(void)
{
#ifndef HAVE_RB_POSTPONED_JOB_PREREGISTER
    if (sdb_load_relaxed(&sdb_symbolizer.lost))
        rb_postponed_job_register_one(0, rouse_in_job, NULL);
#endif
}

void
sdb_symbolizer_rouse(void)
{
    if (!sdb_load_acquire(&sdb_symbolizer.sleeps) && !sdb_load_relaxed(&sdb_symbolizer.lost))
        return;
    if (!NIL_P(sdb_symbolizer.thread)) rb_thread_wakeup_alive(sdb_symbolizer.thread);
}

static VALUE
sleep_deadly(VALUE unused)
{
    sdb_store_release(&sdb_symbolizer.sleeps, 1);
    rb_tracepoint_enable(sdb_symbolizer.on_allocation);
    rb_thread_sleep_deadly();
    return unused;
}

static VALUE
awake(VALUE unused)
{
    sdb_store_release(&sdb_symbolizer.sleeps, 0);
    rb_tracepoint_disable(sdb_symbolizer.on_allocation);
    return unused;
}

static void
ask_the_vm(void)
{
    if (!sdb_symbolizer.on_allocation) {
        rb_gc_register_address(&sdb_symbolizer.on_allocation);
        sdb_symbolizer.on_allocation =
            rb_tracepoint_new(0, RUBY_INTERNAL_EVENT_NEWOBJ, on_allocation, NULL);
    }
    rb_ensure(sleep_deadly, Qnil, awake, Qnil);
}

bool
sdb_symbolizer_stand_aside(void)
{
    struct sleepers s;
    if (somebody_ran()) return false;
    if (!all_sleep(&s)) return false;
    /* who ran since may have left its join and sit in another one */
    if (sdb_thread_last_blocked(sdb_symbolizer.threads) > sdb_symbolizer.joiners_ns)
        sdb_symbolizer.joiner_count = 0;
    for (int i = 0; i < s.joiners; i++) {
        if (!is_new_joiner(s.joining[i])) continue;
        sdb_symbolizer.joiner_count = s.joiners;
        sdb_symbolizer.joiners_ns = sdb_monotonic_ns();
        memcpy(sdb_symbolizer.joiners, s.joining, sizeof s.joining);
        sdb_symbolizer_succeed();
        return true;
    }
    if (!deadlock_would_be_seen()) return false;
    rb_thread_call_without_gvl(wait_briefly, NULL, RUBY_UBF_IO, NULL);
    if (all_sleep(&s) && !sdb_load_acquire(&sdb_symbolizer.stop)) ask_the_vm();
    return false;
}
