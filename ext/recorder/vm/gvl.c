/* SPDX-License-Identifier: MIT
 *
 * gvl.c - see gvl.h. Hook facts (thread which runs them, order, what is set): VM_ACCESS.md.
 */
#define _GNU_SOURCE
#include "vm/gvl.h"

#include <ruby/debug.h>
#include <ruby/thread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/clock.h"
#include "sdb_atomic.h"
#include "vm/allocations.h"

static struct {
    /* immutable after install */
    struct sdb_thread_table *table;
    uint32_t thread_ec_off;
    bool installed;
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
    rb_internal_thread_specific_key_t key;
#endif
    uint64_t enabled; /* shared: atomic */
} gvl;

/* The slot of the thread that runs here. Only a hint: a native thread may carry several Ruby threads (M:N),
 * so slot->thread_value is compared wherever the VM tells which thread it is. */
static __thread struct sdb_slot *own_slot;
static __thread uint64_t own_tid;
static __thread pid_t own_tid_pid; /* a fork changes the tid */

static uint64_t
native_tid(void)
{
    pid_t pid = getpid();
    if (!own_tid || own_tid_pid != pid) {
        own_tid = (uint64_t)syscall(SYS_gettid);
        own_tid_pid = pid;
    }
    return own_tid;
}

static struct sdb_slot *
valid_slot(struct sdb_slot *slot, VALUE thread)
{
    if (!slot || sdb_load_acquire(&slot->life) != SDB_SLOT_LIVE) return NULL;
    return thread && sdb_load_relaxed(&slot->thread_value) != thread ? NULL : slot;
}

static struct sdb_slot *
register_thread(VALUE thread, uint64_t flags, uint64_t state, uint64_t tid)
{
    uint64_t th = (uint64_t)(uintptr_t)RTYPEDDATA_DATA(thread);
    uint64_t ec = th ? sdb_load_relaxed((const uint64_t *)(uintptr_t)(th + gvl.thread_ec_off)) : 0;
    if (!ec) return NULL;
    return sdb_thread_claim(gvl.table, (uint64_t)thread, th, ec, tid, flags, state, sdb_monotonic_ns());
}

uint64_t
sdb_gvl_current_ec(const struct sdb_slot *slot)
{
    return sdb_load_relaxed((const uint64_t *)(uintptr_t)(sdb_load_relaxed(&slot->th) + gvl.thread_ec_off));
}

bool
sdb_gvl_exact(void)
{
#ifdef HAVE_RB_INTERNAL_THREAD_ADD_EVENT_HOOK
    return true;
#else
    return false;
#endif
}

void
sdb_gvl_enable(bool on)
{
    sdb_store_release(&gvl.enabled, on);
}

#ifdef HAVE_RB_INTERNAL_THREAD_ADD_EVENT_HOOK

/* Runs on: 3.2 the thread itself; 3.3+ READY also on a waker or the M:N timer thread. The VM's scheduler lock
 * is held: nothing here may need the GVL, allocate an object or wait. */
static void
on_thread_event(rb_event_flag_t event, const rb_internal_thread_event_data_t *data, void *unused)
{
    (void)unused;
    (void)data;
    if (!sdb_load_acquire(&gvl.enabled)) return;
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
    VALUE thread = data->thread;
    struct sdb_slot *slot = valid_slot(rb_internal_thread_specific_get(thread, gvl.key), thread);
#else
    struct sdb_slot *slot = valid_slot(own_slot, 0);
    VALUE thread = 0;
#endif
    if (event == RUBY_INTERNAL_THREAD_EVENT_RESUMED) {
        if (!slot) {
#ifndef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
            /* 3.2: this thread holds the GVL and is the current one, but its Thread object can be asked
             * for only when it has one: rb_thread_current reads the ec set before RESUMED (thread.c) */
            if (!ruby_native_thread_p()) return;
            thread = rb_thread_current();
#endif
            slot = register_thread(thread, 0, SDB_RUNNING, native_tid());
            if (!slot) return;
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
            rb_internal_thread_specific_set(thread, gvl.key, slot);
#endif
            own_slot = slot;
            sdb_allocations_turn(slot);
            return;
        }
        own_slot = slot;
        uint64_t tid = native_tid();
        if (sdb_load_relaxed(&slot->tid) != tid) sdb_store_relaxed(&slot->tid, tid);
        sdb_store_relaxed(&slot->cpu, (uint64_t)sched_getcpu());
        sdb_allocations_turn(slot);
        sdb_thread_enter(slot, SDB_RUNNING, sdb_monotonic_ns());
    } else if (!slot) {
        return;
    } else if (event == RUBY_INTERNAL_THREAD_EVENT_READY) {
        sdb_thread_enter(slot, SDB_GVL_WAIT, sdb_monotonic_ns());
    } else if (event == RUBY_INTERNAL_THREAD_EVENT_SUSPENDED) {
        sdb_thread_enter(slot, SDB_BLOCKED, sdb_monotonic_ns());
    } else if (event == RUBY_INTERNAL_THREAD_EVENT_EXITED) {
        own_slot = NULL;
        /* the hook runs on the thread itself (thread.c:thread_start_func_2), unless it was a native thread of M:N */
        bool itself = sdb_load_relaxed(&slot->tid) == native_tid();
        sdb_thread_ended(gvl.table, slot, sdb_monotonic_ns(), itself ? sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0);
        return;
    }
    bool own = sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN;
    if (!own) sdb_thread_activate(gvl.table, slot, event != RUBY_INTERNAL_THREAD_EVENT_SUSPENDED);
}

static void
install_hooks(void)
{
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
    gvl.key = rb_internal_thread_specific_key_create();
#endif
    rb_internal_thread_add_event_hook(on_thread_event,
                                      RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
                                          RUBY_INTERNAL_THREAD_EVENT_SUSPENDED |
                                          RUBY_INTERNAL_THREAD_EVENT_EXITED,
                                      NULL);
}

#else /* Ruby 3.1 */

/* Runs on: the thread itself, GVL. END does not come for kill, raise and Thread.exit: infer.c finds those
 * by their cleared stack. */
static void
on_thread_begin_end(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    (void)data, (void)self, (void)id, (void)klass;
    if (!sdb_load_acquire(&gvl.enabled)) return;
    if (event == RUBY_EVENT_THREAD_BEGIN) {
        if (valid_slot(own_slot, rb_thread_current())) return;
        own_slot = register_thread(rb_thread_current(), SDB_THREAD_INFERRED, SDB_RUNNING, native_tid());
    } else if (valid_slot(own_slot, rb_thread_current())) {
        sdb_thread_ended(gvl.table, own_slot, sdb_monotonic_ns(), sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID));
        own_slot = NULL;
    }
}

static void
install_hooks(void)
{
    rb_add_event_hook(on_thread_begin_end, RUBY_EVENT_THREAD_BEGIN | RUBY_EVENT_THREAD_END, Qnil);
}

#endif

void
sdb_gvl_install(struct sdb_thread_table *table, uint32_t thread_ec_off)
{
    gvl.table = table;
    gvl.thread_ec_off = thread_ec_off;
    if (gvl.installed) return;
    install_hooks();
    gvl.installed = true;
}

void
sdb_gvl_seed(struct sdb_thread_table *table)
{
    VALUE list = rb_funcall(rb_cThread, rb_intern("list"), 0);
    VALUE main_thread = rb_funcall(rb_cThread, rb_intern("main"), 0), current = rb_thread_current();
    uint64_t inferred = sdb_gvl_exact() ? 0 : SDB_THREAD_INFERRED;
    for (long i = 0; i < RARRAY_LEN(list); i++) {
        VALUE thread = RARRAY_AREF(list, i);
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
        if (valid_slot(rb_internal_thread_specific_get(thread, gvl.key), thread)) continue;
#endif
        VALUE tid = rb_funcall(thread, rb_intern("native_thread_id"), 0);
        VALUE status = rb_funcall(thread, rb_intern("status"), 0);
        /* "run" but not current: it waits for the GVL; "sleep": blocked, until an event says more */
        bool asleep = RB_TYPE_P(status, T_STRING) && strcmp(StringValueCStr(status), "sleep") == 0;
        uint64_t state = thread == current ? SDB_RUNNING : asleep ? SDB_BLOCKED : SDB_GVL_WAIT;
        uint64_t flags = inferred | (thread == main_thread ? SDB_THREAD_MAIN : 0);
        /* in a forked process before 3.2 the VM goes on telling the parent's tid (thread_pthread.c) */
        uint64_t native = thread == current ? native_tid() : NIL_P(tid) ? 0 : NUM2ULL(tid);
        struct sdb_slot *slot = register_thread(thread, flags, state, native);
        if (!slot) continue;
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
        rb_internal_thread_specific_set(thread, gvl.key, slot);
#endif
        if (thread == current) own_slot = slot;
    }
    (void)table;
    RB_GC_GUARD(list);
}

void
sdb_gvl_seed_forked(struct sdb_thread_table *table, VALUE thread, uint64_t th, uint64_t root_ec,
                    uint64_t flags)
{
    own_slot = sdb_thread_claim(table, (uint64_t)thread, th, root_ec, native_tid(), flags, SDB_RUNNING,
                                sdb_monotonic_ns());
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
    if (own_slot) rb_internal_thread_specific_set(thread, gvl.key, own_slot);
#endif
}

struct sdb_slot *
sdb_gvl_current_slot(void)
{
    return sdb_load_acquire(&gvl.enabled) ? sdb_gvl_current_slot_unchecked() : NULL;
}

struct sdb_slot *
sdb_gvl_current_slot_unchecked(void)
{
    VALUE thread = rb_thread_current();
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
    return valid_slot(rb_internal_thread_specific_get(thread, gvl.key), thread);
#else
    struct sdb_slot *slot = valid_slot(own_slot, thread);
    if (slot) return slot;
    /* a thread that existed at start and got its slot from another thread: found once, kept in own_slot */
    uint64_t used = sdb_load_acquire(&gvl.table->live.segments_used);
    for (uint32_t i = 0; i < used * SDB_SEGMENT_SLOTS; i++) {
        struct sdb_slot *candidate = valid_slot(sdb_thread_slot(gvl.table, i), thread);
        if (candidate) return own_slot = candidate;
    }
    return NULL;
#endif
}

void
sdb_gvl_set_own(void)
{
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (!slot || sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN) return;
    sdb_store_relaxed(&slot->flags, sdb_load_relaxed(&slot->flags) | SDB_THREAD_OWN);
    sdb_add_relaxed(&gvl.table->live_count, (uint64_t)-1); /* counts the app's threads */
}
