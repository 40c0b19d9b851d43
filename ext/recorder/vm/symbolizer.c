/* SPDX-License-Identifier: MIT
 *
 * symbolizer.c - see symbolizer.h. The life of its thread; what it does in a turn: symbolizer_work.c.
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

#include <ruby/thread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "sdb_atomic.h"
#include "vm/gc.h"
#include "vm/gvl.h"
#include "vm/protect.h"
#include "vm/symbolizer_work.h"

enum { JOINERS_MAX = 16, INEXACT_NS = 50000000 };

static struct {
    struct sdb_thread_table *threads; /* immutable while alive */
    /* guarded by the GVL */
    VALUE thread;
    VALUE joiners
        [JOINERS_MAX]; /* who sat in join when the present thread began; compared, never followed */
    int joiner_count;
    bool described; /* has its name */
    /* shared: atomic */
    struct sdb_mailbox box;
    uint64_t stop, interrupted;
} sym = {.thread = Qnil};

struct sdb_mailbox *
sdb_symbolizer_mailbox(void)
{
    return &sym.box;
}

static void *
wait_for_work(void *unused)
{
    (void)unused;
    while (!sdb_load_acquire(&sym.box.asked) && !sdb_load_acquire(&sym.stop) &&
           !sdb_load_acquire(&sym.interrupted)) {
        sdb_mailbox_wait(&sym.box);
    }
    sdb_symbolizer_work_due();
    return NULL;
}

static void
interrupt_wait(void *unused)
{
    (void)unused;
    sdb_store_release(&sym.interrupted, 1);
    sdb_mailbox_call(&sym.box, SDB_ASK_WORK);
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

static VALUE
create_thread(VALUE unused)
{
    (void)unused;
    sym.thread = rb_thread_create(symbolizer_main, NULL);
    return Qnil;
}

static VALUE
describe_thread(VALUE thread)
{
    sym.described = true;
    rb_funcall(thread, rb_intern("name="), 1, rb_str_new_cstr("sdb symbolizer"));
    rb_funcall(thread, rb_intern("report_on_exception="), 1, Qfalse);
    return Qnil;
}

/* Checks no interrupts: rb_thread_create does not, each rb_funcall does (vm_eval.c:vm_call0_body). No thread where none
 * can be made (a frozen ThreadGroup, a limit). */
static void
begin_bare_thread(void)
{
    sym.described = false;
    sdb_store_release(&sym.box.alive, 1);
    if (sdb_protect(create_thread, Qnil, NULL)) {
        sdb_gc_set_symbolizer(sym.thread);
    } else {
        sdb_store_release(&sym.box.alive, 0);
    }
}

static void
begin_thread(void)
{
    begin_bare_thread();
    /* from here, not by itself: the app may raise into it before it has begun */
    if (!NIL_P(sym.thread)) sdb_protect(describe_thread, sym.thread, NULL);
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
    if (!sdb_protect(look_at_sleepers, (VALUE)&s, NULL) || s.others_awake) return false;
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
    if (sdb_protect(look_at_sleepers, (VALUE)&again, NULL) && !again.others_awake &&
        !again.timeless_sleeps && !sdb_load_acquire(&sym.stop)) {
        rb_thread_sleep_deadly();
    }
    return false;
}

static VALUE
symbolizer_loop(RB_BLOCK_CALL_FUNC_ARGLIST(unused, self))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    if (!sym.described) sdb_protect(describe_thread, self, NULL);
    while (!sdb_load_acquire(&sym.stop)) {
        sdb_store_release(&sym.interrupted, 0);
        rb_thread_call_without_gvl(wait_for_work, NULL, interrupt_wait, NULL);
        rb_thread_check_ints();
        if (sym.thread != self) break; /* another took our place */
        uint64_t asked = sdb_mailbox_take(&sym.box);
        while (!sdb_load_acquire(&sym.stop) && sdb_symbolizer_work_turn())
            rb_thread_schedule(); /* whoever waits for the GVL goes first */
        if (sdb_load_acquire(&sym.stop)) break;
        if ((asked & SDB_ASK_IDLE) && stand_aside()) break;
    }
    return Qnil;
}

/* A thread inherits what its creator has masked, but this one must end when the app wants it to. */
static VALUE
symbolizer_unmasked(VALUE self)
{
    VALUE mask = rb_hash_new();
    rb_hash_aset(mask, rb_cObject, ID2SYM(rb_intern("immediate")));
    return rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &mask, symbolizer_loop,
                         self);
}

static VALUE
symbolizer_ended(VALUE self)
{
    if (sym.thread == self) {
        sdb_store_release(&sym.box.alive, 0); /* perhaps the app killed every thread it found */
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
    sdb_store_relaxed(&sym.box.tid, (uint64_t)syscall(SYS_gettid));
    sdb_gvl_set_own();
    return rb_ensure(symbolizer_unmasked, self, symbolizer_ended, self);
}

static void
start(struct sdb_code_table *codes, struct sdb_thread_table *threads,
      const struct sdb_layout *layout, void (*begin)(void))
{
    sdb_symbolizer_work_on(codes, threads, layout);
    sym.threads = threads;
    sdb_store_release(&sym.stop, 0);
    if (!sdb_mailbox_nobody(&sym.box)) return;
    sym.joiner_count = 0;
    begin();
}

void
sdb_symbolizer_start(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                     const struct sdb_layout *layout)
{
    start(codes, threads, layout, begin_thread);
}

void
sdb_symbolizer_start_in_job(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                            const struct sdb_layout *layout)
{
    start(codes, threads, layout, begin_bare_thread);
}

void
sdb_symbolizer_stop(void)
{
    sdb_store_release(&sym.stop, 1);
    sdb_mailbox_call(&sym.box, SDB_ASK_WORK);
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
    sdb_store_relaxed(&sym.box.tid, 0);
    sdb_store_relaxed(&sym.box.alive, 0);
    sdb_store_relaxed(&sym.box.asked, 0);
    sdb_store_relaxed(&sym.interrupted, 0);
    sdb_store_relaxed(&sym.stop, 0);
}
