/* SPDX-License-Identifier: MIT
 *
 * gvl.c - see gvl.h. Hook facts (thread which runs them, order, what is set): VM_ACCESS.md.
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include "vm/gvl.h"

#include <ruby/debug.h>
#include <ruby/thread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/clock.h"
#include "sdb_atomic.h"

static struct {
    /* immutable after install */
    struct sdb_thread_table *table;
    uint32_t thread_ec_off, ec_vm_stack_off, ec_vm_stack_size_off;
    uint64_t thread_stack_bytes, fiber_stack_bytes;
    void (*on_turn)(struct sdb_slot *);
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

static uint64_t
native_tid(void)
{
    /* a fork changes it: sdb_gvl_forked. Not compared with getpid(), which is a system call on each event */
    if (!own_tid) own_tid = (uint64_t)syscall(SYS_gettid);
    return own_tid;
}

void
sdb_gvl_forked(void)
{
    own_tid = 0;
}

static struct sdb_slot *
valid_slot(struct sdb_slot *slot, VALUE thread)
{
    if (!slot || sdb_load_acquire(&slot->life) != SDB_SLOT_LIVE) return NULL;
    return thread && sdb_load_relaxed(&slot->thread_value) != thread ? NULL : slot;
}

/* The ec a thread has now is its root one unless it is inside a Fiber, whose ec may be freed. A stack of a thread's
 * size says root; where fibers have the same size nothing does, and then none is taken for root (0): every read of
 * that thread's stack is a safe one. A stack not installed yet is that of a thread about to begin. */
static uint64_t
root_or_none(uint64_t ec)
{
    uint64_t stack = sdb_load_relaxed((const uint64_t *)(uintptr_t)(ec + gvl.ec_vm_stack_off));
    uint64_t words = sdb_load_relaxed((const uint64_t *)(uintptr_t)(ec + gvl.ec_vm_stack_size_off));
    if (!stack || !words) return ec;
    return words * 8 == gvl.thread_stack_bytes && gvl.thread_stack_bytes != gvl.fiber_stack_bytes
               ? ec
               : 0;
}

/* state: SDB_RUNNING is the calling thread. */
static struct sdb_slot *
register_thread(VALUE thread, uint64_t flags, uint64_t state, uint64_t tid)
{
    uint64_t th = (uint64_t)(uintptr_t)RTYPEDDATA_DATA(thread);
    uint64_t ec = th ? sdb_load_relaxed((const uint64_t *)(uintptr_t)(th + gvl.thread_ec_off)) : 0;
    if (!ec) return NULL;
    struct sdb_thread_birth birth = {
        .thread_value = (uint64_t)thread,
        .th = th,
        .root_ec = root_or_none(ec),
        .tid = tid,
        .flags = flags,
        .state = state,
        .now_ns = sdb_monotonic_ns(),
        .cpu_ns = tid ? sdb_clock_ns(sdb_thread_cpu_clock((uint32_t)tid)) : 0,
    };
    struct sdb_slot *slot = sdb_thread_claim(gvl.table, &birth);
    if (slot && state == SDB_RUNNING) sdb_store_relaxed(&slot->cpu, (uint64_t)sched_getcpu());
    return slot;
}

uint64_t
sdb_gvl_current_ec(const struct sdb_slot *slot)
{
    return sdb_load_relaxed(
        (const uint64_t *)(uintptr_t)(sdb_load_relaxed(&slot->th) + gvl.thread_ec_off));
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

#ifndef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET

/* Ruby 3.1 and 3.2. Runs on: the new thread itself, GVL. */
static void
on_thread_begin(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    (void)event, (void)data, (void)self, (void)id, (void)klass;
    if (!sdb_load_acquire(&gvl.enabled) || valid_slot(own_slot, rb_thread_current())) return;
    uint64_t flags = sdb_gvl_exact() ? 0 : SDB_THREAD_INFERRED;
    own_slot = register_thread(rb_thread_current(), flags, SDB_RUNNING, native_tid());
    if (sdb_gvl_exact()) gvl.on_turn(own_slot); /* 3.2: RESUMED could not tell whose turn it is */
}

#endif

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
#endif
    if (event == RUBY_INTERNAL_THREAD_EVENT_RESUMED) {
        if (!slot) {
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
            slot = register_thread(thread, 0, SDB_RUNNING, native_tid());
            if (slot) rb_internal_thread_specific_set(thread, gvl.key, slot);
            own_slot = slot;
            gvl.on_turn(slot);
            return;
#else
            /* 3.2: the first RESUMED of a thread comes before it is the current one (no ec yet): THREAD_BEGIN
             * registers it. One that existed at start has a slot, which it does not know yet. */
            bool known = ruby_native_thread_p();
            if (known) slot = sdb_gvl_current_slot_unchecked();
            if (!slot) {
                /* a thread of another Ractor: hooks of THREAD_BEGIN are those of the Ractor that added them
                 * (vm_trace.c:rb_ec_ractor_hooks), so it is met when it gets its GVL for the second time */
                if (known)
                    slot = register_thread(rb_thread_current(), 0, SDB_RUNNING, native_tid());
                own_slot = slot;
                gvl.on_turn(slot);
                return;
            }
#endif
        }
        own_slot = slot;
        uint64_t tid = native_tid();
        if (sdb_load_relaxed(&slot->tid) != tid) sdb_store_relaxed(&slot->tid, tid);
        sdb_store_relaxed(&slot->cpu, (uint64_t)sched_getcpu());
        gvl.on_turn(slot);
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
        sdb_thread_ended(gvl.table, slot, sdb_monotonic_ns(),
                         itself ? sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0);
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
#else
    rb_add_event_hook(on_thread_begin, RUBY_EVENT_THREAD_BEGIN, Qnil);
#endif
    rb_internal_thread_add_event_hook(
        on_thread_event,
        RUBY_INTERNAL_THREAD_EVENT_READY | RUBY_INTERNAL_THREAD_EVENT_RESUMED |
            RUBY_INTERNAL_THREAD_EVENT_SUSPENDED | RUBY_INTERNAL_THREAD_EVENT_EXITED,
        NULL);
}

#else /* Ruby 3.1 */

enum {
    ENDED_BESIDE = 16,
    /* what a thread may use after it gave up the GVL, on its way to sleep */
    GOING_TO_SLEEP_NS = 10000,
};

/* The CPU clocks of the other threads when the last one ended; guarded by the GVL. */
static struct {
    uint64_t ns;
    uint32_t count;
    bool whole;
    struct {
        uint64_t serial, cpu_ns;
    } at[ENDED_BESIDE];
} last_end;

static uint64_t
cpu_of(const struct sdb_slot *slot)
{
    uint64_t tid = sdb_load_relaxed(&slot->tid);
    return tid ? sdb_clock_ns(sdb_thread_cpu_clock((uint32_t)tid)) : 0;
}

/* The next of the app's threads that are alive, from *index on. */
static const struct sdb_slot *
next_live(uint32_t *index)
{
    const struct sdb_slot *slot;
    while ((slot = sdb_thread_next(gvl.table, index))) {
        if (sdb_load_acquire(&slot->life) == SDB_SLOT_LIVE &&
            !(sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN))
            return slot;
    }
    return NULL;
}

static void
note_end(const struct sdb_slot *ended, uint64_t now)
{
    last_end.ns = now;
    last_end.count = 0;
    last_end.whole = sdb_load_relaxed(&gvl.table->live_count) <= ENDED_BESIDE;
    uint32_t index = 0;
    for (const struct sdb_slot *slot; last_end.whole && (slot = next_live(&index));) {
        if (slot == ended || last_end.count == ENDED_BESIDE) continue;
        last_end.at[last_end.count].serial = sdb_load_relaxed(&slot->serial);
        last_end.at[last_end.count++].cpu_ns = cpu_of(slot);
    }
}

static bool
ran_since_end(const struct sdb_slot *slot)
{
    for (uint32_t i = 0; i < last_end.count; i++) {
        if (last_end.at[i].serial == sdb_load_relaxed(&slot->serial))
            return cpu_of(slot) > last_end.at[i].cpu_ns + GOING_TO_SLEEP_NS;
    }
    return sdb_load_relaxed(&slot->birth_ns) > last_end.ns;
}

bool
sdb_gvl_ran_since(uint64_t ended_ns)
{
    /* of a thread that was killed the scanner finds the end, later */
    if (!last_end.whole || last_end.ns != ended_ns) return false;
    uint32_t index = 0;
    for (const struct sdb_slot *slot; (slot = next_live(&index));) {
        if (ran_since_end(slot)) return true;
    }
    return false;
}

/* Runs on: the thread itself, GVL. END does not come for kill, raise and Thread.exit: those are found by their
 * cleared stack (visit.c). */
static void
on_thread_end(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    (void)event, (void)data, (void)self, (void)id, (void)klass;
    if (!sdb_load_acquire(&gvl.enabled)) return;
    struct sdb_slot *slot = sdb_gvl_current_slot_unchecked();
    own_slot = NULL;
    if (!slot) return;
    uint64_t now = sdb_monotonic_ns();
    if (!(sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN)) note_end(slot, now);
    sdb_thread_ended(gvl.table, slot, now, sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

static void
install_hooks(void)
{
    rb_add_event_hook(on_thread_begin, RUBY_EVENT_THREAD_BEGIN, Qnil);
    rb_add_event_hook(on_thread_end, RUBY_EVENT_THREAD_END, Qnil);
}

#endif

#ifdef HAVE_RB_INTERNAL_THREAD_ADD_EVENT_HOOK
bool
sdb_gvl_ran_since(uint64_t ended_ns)
{
    (void)ended_ns; /* the events tell */
    return false;
}
#endif

/* RubyVM::DEFAULT_PARAMS[key]: VM stack sizes in bytes (vm.c:vm_default_params). 0 when there is none. */
static uint64_t
default_param(const char *key)
{
    VALUE params = rb_const_get(rb_path2class("RubyVM"), rb_intern("DEFAULT_PARAMS"));
    VALUE value = RB_TYPE_P(params, T_HASH) ? rb_hash_lookup(params, ID2SYM(rb_intern(key))) : Qnil;
    return FIXNUM_P(value) ? (uint64_t)FIX2LONG(value) : 0;
}

void
sdb_gvl_install(struct sdb_thread_table *table, const struct sdb_layout *layout,
                void (*on_turn)(struct sdb_slot *))
{
    gvl.table = table;
    gvl.on_turn = on_turn;
    gvl.thread_ec_off = layout->thread_ec;
    gvl.ec_vm_stack_off = layout->ec_vm_stack;
    gvl.ec_vm_stack_size_off = layout->ec_vm_stack_size;
    gvl.thread_stack_bytes = default_param("thread_vm_stack_size");
    gvl.fiber_stack_bytes = default_param("fiber_vm_stack_size");
    if (gvl.installed) return;
    install_hooks();
    gvl.installed = true;
}

struct sdb_thread_table *
sdb_gvl_threads(void)
{
    return gvl.table;
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
    struct sdb_thread_birth birth = {
        .thread_value = (uint64_t)thread,
        .th = th,
        .root_ec = root_ec,
        .tid = native_tid(),
        .flags = flags,
        .state = SDB_RUNNING,
        .now_ns = sdb_monotonic_ns(),
        .cpu_ns = sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID),
    };
    own_slot = sdb_thread_claim(table, &birth);
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
    sdb_thread_each (slot, gvl.table) {
        if (valid_slot(slot, thread)) return own_slot = slot;
    }
    return NULL;
#endif
}

void
sdb_gvl_adopt_own(VALUE thread)
{
#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET
    if (!sdb_load_acquire(&gvl.enabled)) return;
    struct sdb_slot *slot = register_thread(thread, SDB_THREAD_OWN, SDB_GVL_WAIT, 0);
    if (!slot) return;
    sdb_add_relaxed(&gvl.table->live_count, (uint64_t)-1); /* counts the app's threads */
    rb_internal_thread_specific_set(thread, gvl.key, slot);
#else
    (void)thread; /* its begin registers it, then it calls set_own */
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
