/* SPDX-License-Identifier: MIT
 *
 * symbolizer.c - see symbolizer.h.
 *
 * One more Ruby thread must not change what a program does. Two things could: somebody joins every thread of
 * Thread.list and so waits for ours for ever; and the VM's deadlock check, which counts a parked thread as
 * alive, would leave a deadlocked program hanging instead of raising. So when nothing ran for a while the
 * scanner asks (SDB_ASK_IDLE), and:
 *   1. if a thread sits in join that did not when ours began, ours ends and another takes its place: whoever
 *      waited for it goes on, nobody can wait for the new one yet;
 *   2. if still every other thread sleeps in a way the VM's check counts, ours sleeps that way too
 *      (rb_thread_sleep_deadly) and the VM decides; but only where it would have looked without us: it does so
 *      when a thread goes to sleep, not when one ends (thread.c:rb_check_deadlock).
 */
#include "vm/symbolizer.h"

#include <limits.h>
#include <linux/futex.h>
#include <ruby/thread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/event_queue.h"
#include "sdb_atomic.h"
#include "vm/gc.h"
#include "vm/gvl.h"
#include "vm/symbols.h"

enum {
    BATCH_NS = 200000,
    BATCH_MAX_NS = 5000000,
    BATCH_PART =
        20, /* who had to wait 100 ms for the GVL takes it for 5 ms if there is so much to do */
    JOINERS_MAX = 16,
    INEXACT_NS = 50000000
};

static struct {
    /* immutable while alive */
    struct sdb_code_table *codes;
    struct sdb_thread_table *threads;
    const struct sdb_layout *layout;
    /* guarded by the GVL */
    VALUE thread;
    VALUE joiners
        [JOINERS_MAX]; /* who sat in join when the present thread began; compared, never followed */
    int joiner_count;
    struct sdb_young current; /* being named, for rb_protect */
    struct sdb_named *made;
    uint64_t ready_ns; /* own thread: since when it wants the GVL */
    /* shared: atomic */
    uint64_t asked; /* SDB_ASK_* bits; the futex is its low half */
    uint64_t tid, alive, passes_begun, passes_ended;
    uint64_t stop, interrupted, gvl_ns, memory_bytes;
    uint64_t gc_figures[4]; /* struct sdb_gc_figures */
} sym = {.thread = Qnil};

static void
wake(void)
{
    syscall(SYS_futex, &sym.asked, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void
sdb_symbolizer_ask(uint64_t what)
{
    if ((sdb_or_seq_cst(&sym.asked, what) & what) != what) wake();
}

uint64_t
sdb_symbolizer_gvl_ns(void)
{
    return sdb_load_relaxed(&sym.gvl_ns);
}

uint64_t
sdb_symbolizer_passes_begun(void)
{
    return sdb_load_acquire(&sym.passes_begun);
}

uint64_t
sdb_symbolizer_passes_ended(void)
{
    return sdb_load_acquire(&sym.passes_ended);
}

bool
sdb_symbolizer_is_gone(void)
{
    return !sdb_load_acquire(&sym.alive);
}

uint64_t
sdb_symbolizer_cpu_ns(void)
{
    uint64_t tid = sdb_load_relaxed(&sym.tid);
    return tid ? sdb_clock_ns(sdb_thread_cpu_clock((uint32_t)tid)) : 0;
}

uint64_t
sdb_symbolizer_memory_bytes(void)
{
    return sdb_load_relaxed(&sym.memory_bytes);
}

static VALUE
make_protected(VALUE unused)
{
    (void)unused;
    sym.made = sdb_symbol_make(sym.layout, &sym.current);
    return Qnil;
}

/* Names the oldest young code. False when there is none or no memory. */
static bool
name_one(void)
{
    if (!sdb_code_table_young_peek(sym.codes, &sym.current)) return false;
    int raised = 0;
    sym.made = NULL;
    rb_protect(make_protected, Qnil, &raised);
    if (raised) {
        rb_set_errinfo(Qnil);
        /* a class whose name raises: keep the code without one, never ask again */
        static const struct sdb_symbol nameless = {
            .kind = SDB_CODE_INVALID, .name = "", .path = "", .class_name = ""};
        sym.made = calloc(1, sizeof *sym.made);
        if (sym.made)
            *sym.made = (struct sdb_named){.symbol = nameless, .memory_bytes = sizeof *sym.made};
    }
    if (!sym.made) return false;
    VALUE iseq = 0, ment = 0;
    if (sym.made->symbol.kind != SDB_CODE_INVALID) {
        iseq = (VALUE)sym.current.iseq;
        ment = (VALUE)(sym.current.ment & ~(uint64_t)SDB_CODE_BMETHOD);
    }
    sym.made->pin = sdb_gc_pin(iseq, ment);
    if (sym.made->pin == UINT32_MAX) {
        free(sym.made);
        return false;
    }
    sdb_add_relaxed(&sym.memory_bytes, sym.made->memory_bytes);
    sdb_code_table_young_named(sym.codes, sym.made);
    return true;
}

static void
name_thread(struct sdb_slot *slot)
{
    VALUE thread = (VALUE)sdb_load_relaxed(&slot->thread_value);
    VALUE name = rb_funcall(thread, rb_intern("name"), 0);
    if (!RB_TYPE_P(name, T_STRING)) return;
    sdb_thread_set_name(sym.threads, slot, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
}

static void
read_gc_figures(void)
{
    static const char *const keys[] = {"count", "heap_live_slots", "malloc_increase_bytes",
                                       "oldmalloc_increase_bytes"};
    for (int i = 0; i < 4; i++) {
        sdb_store_relaxed(&sym.gc_figures[i], (uint64_t)rb_gc_stat(ID2SYM(rb_intern(keys[i]))));
    }
}

void
sdb_symbolizer_gc_figures(struct sdb_gc_figures *out)
{
    *out = (struct sdb_gc_figures){
        .count = sdb_load_relaxed(&sym.gc_figures[0]),
        .heap_live_slots = sdb_load_relaxed(&sym.gc_figures[1]),
        .malloc_increase_bytes = sdb_load_relaxed(&sym.gc_figures[2]),
        .oldmalloc_increase_bytes = sdb_load_relaxed(&sym.gc_figures[3]),
    };
}

static VALUE
housekeeping(VALUE unused)
{
    (void)unused;
    read_gc_figures();
    uint64_t pass = sdb_load_relaxed(&sym.passes_begun) + 1;
    sdb_store_release(&sym.passes_begun, pass); /* pairs with visit.c:name_is_final */
    struct sdb_named *gone;
    while ((gone = sdb_code_table_take_evicted(sym.codes))) {
        sdb_gc_unpin(gone->pin);
        sdb_add_relaxed(&sym.memory_bytes, -(uint64_t)gone->memory_bytes);
        free(gone);
    }
    uint64_t used = sdb_load_acquire(&sym.threads->live.segments_used);
    for (uint32_t i = 0; i < used * SDB_SEGMENT_SLOTS; i++) {
        struct sdb_slot *slot = sdb_thread_slot(sym.threads, i);
        uint64_t life = sdb_load_acquire(&slot->life);
        if (life == SDB_SLOT_LIVE || life == SDB_SLOT_DEAD) name_thread(slot);
        if (life != SDB_SLOT_RETIRED) continue;
        free((void *)(uintptr_t)sdb_load_relaxed(&slot->name));
        sdb_store_relaxed(&slot->name, 0);
        sdb_event_queue_free((struct sdb_event_queue *)(uintptr_t)sdb_load_relaxed(&slot->queue));
        sdb_store_relaxed(&slot->queue, 0);
        sdb_store_relaxed(&slot->context, 0);
        sdb_store_relaxed(&slot->thread_value, 0);
        sdb_store_release(&slot->life, SDB_SLOT_FREE); /* unpinned: gc.c marks no FREE slot */
    }
    sdb_store_release(&sym.passes_ended, pass);
    return Qnil;
}

/* How long a turn may be. Beside a thread that computes, turns are a time slice (100 ms) apart: 0.2 ms each
 * would leave a program that starts without names for many seconds. */
static uint64_t
turn_ns(uint64_t now)
{
    uint64_t part = (now - sym.ready_ns) / BATCH_PART;
    if (part < BATCH_NS) return BATCH_NS;
    return part < BATCH_MAX_NS ? part : BATCH_MAX_NS;
}

static bool
work_turn(void)
{
    uint64_t begin = sdb_monotonic_ns(), now = begin, budget = turn_ns(begin);
    bool more = true;
    while (more && now - begin < budget) {
        more = name_one();
        now = sdb_monotonic_ns();
    }
    if (!more) {
        int raised = 0;
        rb_protect(housekeeping, Qnil, &raised);
        if (raised) rb_set_errinfo(Qnil);
    }
    now = sdb_monotonic_ns();
    sdb_add_relaxed(&sym.gvl_ns, now - begin);
    sym.ready_ns = now;
    return more;
}

void
sdb_symbolizer_run_here_for(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                            const struct sdb_layout *layout)
{
    sym.codes = codes;
    sym.threads = threads;
    sym.layout = layout;
    sym.ready_ns = sdb_monotonic_ns();
    while (work_turn()) {}
}

static void *
wait_for_work(void *unused)
{
    (void)unused;
    while (!sdb_load_acquire(&sym.asked) && !sdb_load_acquire(&sym.stop) &&
           !sdb_load_acquire(&sym.interrupted)) {
        syscall(SYS_futex, &sym.asked, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    sym.ready_ns = sdb_monotonic_ns();
    return NULL;
}

static void
interrupt_wait(void *unused)
{
    (void)unused;
    sdb_store_release(&sym.interrupted, 1);
    /* the futex compares `asked`: make it differ so that a wait about to begin returns at once */
    sdb_or_seq_cst(&sym.asked, SDB_ASK_WORK);
    wake();
}

static void *
wait_briefly(void *unused)
{
    (void)unused;
    usleep(10000);
    return NULL;
}

struct sleepers {
    int joiners, others_awake, timeless_sleeps;
    VALUE joining[JOINERS_MAX];
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
        if (!strstr(StringValueCStr(text), "sleep_forever")) {
            s->others_awake++;
            return Qnil;
        }
        VALUE label = top_label(thread);
        const char *name = RB_TYPE_P(label, T_STRING) ? StringValueCStr(label) : "";
        if (!strcmp(name, "sleep")) s->timeless_sleeps++;
        if ((!strcmp(name, "join") || !strcmp(name, "value")) && s->joiners < JOINERS_MAX) {
            s->joining[s->joiners++] = thread;
        }
    }
    return Qnil;
}

static bool
is_new_joiner(VALUE thread)
{
    for (int i = 0; i < sym.joiner_count; i++) {
        if (sym.joiners[i] == thread) return false;
    }
    return true;
}

static VALUE symbolizer_main(void *unused);

static void
begin_thread(void)
{
    sdb_store_release(&sym.alive, 1);
    sym.thread = rb_thread_create(symbolizer_main, NULL);
    sdb_gc_set_symbolizer(sym.thread);
    /* from here, not by itself: the app may raise into it before it has begun */
    rb_funcall(sym.thread, rb_intern("name="), 1, rb_str_new_cstr("sdb symbolizer"));
    rb_funcall(sym.thread, rb_intern("report_on_exception="), 1, Qfalse);
}

/* Whether the last thing that happened was a thread that went to sleep. Where that is only known to a few ticks
 * (3.1), in doubt not: to hang as the program would is better than to raise where it would go on. */
static bool
deadlock_would_be_seen(void)
{
    uint64_t ended = sdb_load_relaxed(&sym.threads->last_ended_ns),
             blocked = sdb_thread_last_blocked(sym.threads);
    return blocked && (!ended || blocked > ended + (sdb_gvl_exact() ? 0 : INEXACT_NS));
}

/* See the top of the file. True: this thread must end. */
static bool
stand_aside(void)
{
    struct sleepers s = {0};
    int raised = 0;
    rb_protect(look_at_sleepers, (VALUE)&s, &raised);
    if (raised) {
        rb_set_errinfo(Qnil);
        return false;
    }
    if (s.others_awake) return false;
    for (int i = 0; i < s.joiners; i++) {
        if (!is_new_joiner(s.joining[i])) continue;
        sym.joiner_count = s.joiners;
        memcpy(sym.joiners, s.joining, sizeof s.joining);
        begin_thread();
        return true;
    }
    if (!deadlock_would_be_seen()) return false;
    if (s.timeless_sleeps) return false; /* `sleep` for ever is no deadlock to the VM */
    struct sleepers again = {0};
    rb_thread_call_without_gvl(wait_briefly, NULL, RUBY_UBF_IO, NULL);
    rb_protect(look_at_sleepers, (VALUE)&again, &raised);
    if (raised) rb_set_errinfo(Qnil);
    else if (!again.others_awake && !again.timeless_sleeps && !sdb_load_acquire(&sym.stop)) {
        rb_thread_sleep_deadly();
    }
    return false;
}

static VALUE
symbolizer_loop(VALUE self)
{
    while (!sdb_load_acquire(&sym.stop)) {
        sdb_store_release(&sym.interrupted, 0);
        rb_thread_call_without_gvl(wait_for_work, NULL, interrupt_wait, NULL);
        rb_thread_check_ints();
        if (sym.thread != self) break; /* another took our place */
        uint64_t asked = sdb_exchange_acq_rel(&sym.asked, 0);
        if (sdb_load_acquire(&sym.stop)) break;
        while (work_turn()) rb_thread_schedule(); /* whoever waits for the GVL goes first */
        if ((asked & SDB_ASK_IDLE) && stand_aside()) break;
    }
    return Qnil;
}

static VALUE
symbolizer_ended(VALUE self)
{
    if (sym.thread == self) {
        sdb_store_release(&sym.alive, 0); /* perhaps the app killed every thread it found */
        sym.thread = Qnil;
        sdb_gc_set_symbolizer(Qnil);
    }
    return Qnil;
}

static VALUE
symbolizer_main(void *unused)
{
    (void)unused;
    VALUE self = rb_thread_current();
    sdb_store_relaxed(&sym.tid, (uint64_t)syscall(SYS_gettid));
    sdb_gvl_set_own();
    return rb_ensure(symbolizer_loop, self, symbolizer_ended, self);
}

void
sdb_symbolizer_start(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                     const struct sdb_layout *layout)
{
    sym.codes = codes;
    sym.threads = threads;
    sym.layout = layout;
    sdb_store_release(&sym.stop, 0);
    if (sdb_symbolizer_alive()) return;
    sym.joiner_count = 0;
    begin_thread();
}

bool
sdb_symbolizer_alive(void)
{
    return !NIL_P(sym.thread) && RTEST(rb_funcall(sym.thread, rb_intern("alive?"), 0));
}

void
sdb_symbolizer_stop(void)
{
    sdb_store_release(&sym.stop, 1);
    sdb_or_seq_cst(&sym.asked, SDB_ASK_WORK);
    wake();
    VALUE thread = sym.thread;
    if (NIL_P(thread) || thread == rb_thread_current()) return;
    /* not joined: an app that raises into every thread it finds would hear of it here */
    while (RTEST(rb_funcall(thread, rb_intern("alive?"), 0))) {
        rb_thread_wakeup_alive(thread); /* it may sleep deadly */
        rb_thread_wait_for((struct timeval){.tv_usec = 200});
    }
    sym.thread = Qnil;
    sdb_gc_set_symbolizer(Qnil);
}

void
sdb_symbolizer_forked(void)
{
    sym.thread = Qnil;
    sym.joiner_count = 0;
    sdb_gc_set_symbolizer(Qnil);
    sdb_store_relaxed(&sym.tid, 0);
    sdb_store_relaxed(&sym.alive, 0);
    sdb_store_relaxed(&sym.asked, 0);
    sdb_store_relaxed(&sym.interrupted, 0);
    sdb_store_relaxed(&sym.stop, 0);
}
