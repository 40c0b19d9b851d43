/* SPDX-License-Identifier: MIT
 *
 * symbolizer.c - see symbolizer.h. When its thread comes and goes; how it waits: symbolizer_wait.c; what it does when the
 * program stands still: symbolizer_idle.c; what it does in a turn: symbolizer_work.c.
 *
 * A Ruby thread more changes a program: it is in Thread.list and counts as alive. So from 3.3 on there is none as long as
 * there is little to name: the scanner asks for a postponed job, which names it where it is. Only where a job finds more
 * than a few codes, as when a program starts or enters a part of itself for the first time, a thread comes, names the
 * rest, stays a moment for what is about to follow (a job runs on threads that run; what the program was doing when it
 * stopped to wait must have a name, too), and leaves.
 */
#include "vm/symbolizer.h"

#include <ruby/thread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/clock.h"
#include "sdb_atomic.h"
#include "vm/gc.h"
#include "vm/gvl.h"
#include "vm/protect.h"
#include "vm/symbolizer_impl.h"
#include "vm/symbolizer_work.h"
#include "vm/thread_name.h"

enum {
    LINGER_NS = 200000000,
    FEW_CODES = 4, /* so many new ones in a turn mean that more will follow */
};

struct sdb_symbolizer sdb_symbolizer = {.thread = Qnil, .pipe = SDB_WAKE_PIPE_NONE};
#define sym sdb_symbolizer

#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
static rb_postponed_job_handle_t job = POSTPONED_JOB_HANDLE_INVALID;
#endif

void
sdb_symbolizer_prepare(void (*run)(void *))
{
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    job = rb_postponed_job_preregister(0, run, NULL);
#else
    (void)run;
    sdb_gc_on_mark(sdb_symbolizer_in_gc);
#endif
}

void
sdb_symbolizer_summon(void)
{
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    if (job != POSTPONED_JOB_HANDLE_INVALID) rb_postponed_job_trigger(job);
#endif
}

void
sdb_symbolizer_come(void)
{
    uint64_t none = 0;
    sdb_cas_acq_rel(&sym.asked_ns, &none, sdb_monotonic_ns());
    /* pairs with leave(): either it finds what is asked, or we find that it is gone */
    if (SDB_SYMBOLIZER_STAYS) sdb_symbolizer_ring();
    else if (!sdb_load_seq_cst(&sym.present) || sdb_load_acquire(&sym.sleeps))
        sdb_symbolizer_summon(); /* each time: the thread that was to run the job may have gone to sleep before */
}

struct sdb_mailbox *
sdb_symbolizer_mailbox(void)
{
    return &sym.box;
}

static VALUE symbolizer_main(void *unused);

static VALUE
create_thread(VALUE unused)
{
    (void)unused;
    sym.thread = rb_thread_create(symbolizer_main, NULL);
    return Qnil;
}

/* Checks no interrupts: rb_thread_create does not, each rb_funcall does (vm_eval.c:vm_call0_body). False where no thread
 * can be made (a frozen ThreadGroup, a limit). */
static bool
begin_thread(void)
{
    sdb_store_seq_cst(&sym.present, 1);
    if (sdb_protect(create_thread, Qnil, NULL)) {
        sdb_gvl_adopt_own(sym.thread);
        sdb_gc_set_symbolizer(sym.thread);
        return true;
    }
    sdb_store_seq_cst(&sym.present, 0);
    return false;
}

void
sdb_symbolizer_succeed(void)
{
    sym.in_haste = true;
    if (!begin_thread()) sym.thread = Qnil;
}

static VALUE
call_tell_of_log(VALUE unused)
{
    (void)unused;
    return rb_funcall(rb_path2class("Sdb::Recorder"), rb_intern("tell_of_log"), 0);
}

static bool tell_due; /* guarded by the GVL */

/* Not in a job: it prints, so it may wait, or run what the app put in $stderr's place. */
static void
tell(void)
{
    if (!tell_due) return;
    tell_due = false;
    sdb_protect(call_tell_of_log, Qnil, NULL);
}

/* What was asked since the last time. */
static uint64_t
take_asked(void)
{
    uint64_t since = sdb_exchange_acq_rel(&sym.asked_ns, 0);
    uint64_t asked;
    sdb_symbolizer_work_due(since ? since : sdb_monotonic_ns());
    asked = sdb_mailbox_take(&sym.box);
    if (asked & SDB_ASK_TELL) tell_due = true;
    return asked;
}

static void
work(void)
{
    while (!sdb_load_acquire(&sym.stop) && sdb_symbolizer_work_turn())
        rb_thread_schedule(); /* whoever waits for the GVL goes first */
}

static void
stay(VALUE self)
{
    bool in_haste = sym.in_haste;
    sym.in_haste = false;
    while (!sdb_load_acquire(&sym.stop)) {
        if (!in_haste) sdb_symbolizer_wait(0);
        rb_thread_check_ints();
        if (sym.thread != self) break; /* another took our place */
        uint64_t asked = take_asked() | (in_haste ? SDB_ASK_IDLE : 0);
        in_haste = false;
        tell();
        work();
        if (sdb_load_acquire(&sym.stop)) break;
        if ((asked & SDB_ASK_IDLE) && sdb_symbolizer_stand_aside()) break;
    }
}

/* Nothing new came for a while. False: something was asked meanwhile. */
static bool
leave(void)
{
    if (sdb_symbolizer_stand_aside()) return true;
    sdb_store_seq_cst(&sym.present, 0);
    if (!sdb_load_seq_cst(&sym.box.asked)) return true;
    sdb_store_seq_cst(&sym.present, 1);
    return false;
}

static void
visit(VALUE self)
{
    uint64_t named = sdb_symbolizer_named(), quiet_ns = sym.in_haste ? 0 : sdb_monotonic_ns();
    sym.in_haste = false;
    while (!sdb_load_acquire(&sym.stop) && sym.thread == self) {
        take_asked();
        tell();
        work();
        uint64_t now = sdb_monotonic_ns();
        if (named != sdb_symbolizer_named()) quiet_ns = now;
        named = sdb_symbolizer_named();
        if (now >= quiet_ns + LINGER_NS) {
            if (leave()) break;
            continue;
        }
        sdb_symbolizer_wait(quiet_ns + LINGER_NS - now);
    }
}

static VALUE
symbolizer_loop(RB_BLOCK_CALL_FUNC_ARGLIST(unused, self))
{
    (void)unused, (void)argc, (void)argv, (void)blockarg;
    sdb_thread_name_measure(self);
    if (SDB_SYMBOLIZER_STAYS) stay(self);
    else visit(self);
    return Qnil;
}

static VALUE
name_thread(VALUE thread)
{
    rb_funcall(thread, rb_intern("name="), 1, rb_str_new_cstr("sdb symbolizer"));
    return Qnil;
}

/* A thread inherits what its creator has masked, but one that stays must end when the app wants it to. */
static VALUE
symbolizer_unmasked(VALUE self)
{
    if (!SDB_SYMBOLIZER_STAYS) return symbolizer_loop(Qnil, self, 0, NULL, Qnil);
    VALUE mask = rb_hash_new();
    rb_hash_aset(mask, rb_cObject, ID2SYM(rb_intern("immediate")));
    name_thread(self);
    return rb_block_call(rb_cThread, rb_intern("handle_interrupt"), 1, &mask, symbolizer_loop,
                         self);
}

/* What the app raises into every thread it finds ends this one, and is reported to nobody. */
static VALUE
symbolizer_protected(VALUE self)
{
    sdb_protect(symbolizer_unmasked, self, NULL);
    return Qnil;
}

static VALUE
symbolizer_ended(VALUE self)
{
    if (sym.thread != self) return Qnil;
    sym.thread = Qnil;
    sdb_gc_set_symbolizer(Qnil);
    sdb_store_seq_cst(&sym.present, 0);
    if (!SDB_SYMBOLIZER_STAYS) return Qnil;
    sdb_store_release(&sym.box.alive, 0); /* perhaps the app killed every thread it found */
    sdb_wake_pipe_close(&sym.pipe);
    return Qnil;
}

static VALUE
symbolizer_main(void *unused)
{
    (void)unused;
    VALUE self = rb_thread_current();
    sdb_store_relaxed(&sym.box.tid, (uint64_t)syscall(SYS_gettid));
    prctl(PR_SET_NAME, "sdb symbolizer", 0, 0, 0);
    sdb_gvl_set_own();
    return rb_ensure(symbolizer_protected, self, symbolizer_ended, self);
}

void
sdb_symbolizer_start(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                     const struct sdb_layout *layout)
{
    sdb_symbolizer_work_on(&sym.box, codes, threads, layout);
    sym.threads = threads;
    sdb_store_release(&sym.stop, 0);
    if (!sdb_mailbox_nobody(&sym.box)) return;
    sym.joiner_count = 0;
    sym.in_haste = false;
    sdb_store_release(&sym.box.alive, 1);
    if (!SDB_SYMBOLIZER_STAYS) return;
    if (!begin_thread()) sdb_store_release(&sym.box.alive, 0);
    else sdb_protect(name_thread, sym.thread, NULL); /* from the first line on */
}

void
sdb_symbolizer_begin(void)
{
    if (SDB_SYMBOLIZER_STAYS || sdb_load_acquire(&sym.present)) return;
    begin_thread(); /* where there can be none, the jobs have to do */
}

void
sdb_symbolizer_job(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                   const struct sdb_layout *layout)
{
    sdb_symbolizer_start(codes, threads, layout); /* a child that C code forked begins here */
    if (SDB_SYMBOLIZER_STAYS) return;
    if (sdb_load_acquire(&sym.present)) {
        sdb_symbolizer_rouse();
        return;
    }
    take_asked();
    uint64_t named = sdb_symbolizer_named();
    bool more = sdb_symbolizer_work_turn_in_job();
    if (!more && !tell_due && sdb_symbolizer_named() - named < FEW_CODES &&
        sdb_thread_name_measured())
        return;
    sym.joiner_count = 0;
    sym.in_haste = false;
    begin_thread(); /* where there can be none, the next job goes on */
}

static void
call_to_end(void)
{
    sdb_store_release(&sym.stop, 1);
    sdb_mailbox_call(&sym.box, SDB_ASK_WORK);
    sdb_symbolizer_ring();
}

static void
forget(void)
{
    sym.thread = Qnil;
    sdb_gc_set_symbolizer(Qnil);
    sdb_store_seq_cst(&sym.present, 0);
    sdb_store_release(&sym.box.alive, 0);
}

bool
sdb_symbolizer_dismiss(void)
{
    call_to_end();
    if (sdb_symbolizer_works() && sym.thread != rb_thread_current()) return false;
    forget();
    return true;
}

void
sdb_symbolizer_stop(void)
{
    call_to_end();
    VALUE thread = sym.thread;
    if (thread == rb_thread_current()) return;
    /* not joined: an app that raises into every thread it finds would hear of it here */
    while (!NIL_P(thread) && RTEST(rb_funcall(thread, rb_intern("alive?"), 0))) {
        sdb_symbolizer_rouse();
        sdb_symbolizer_ring();
        rb_thread_wait_for((struct timeval){.tv_usec = 200});
    }
    forget();
}

void
sdb_symbolizer_forked(void)
{
    sym.thread = Qnil;
    sym.joiner_count = 0;
    sym.in_haste = false;
    sdb_gc_set_symbolizer(Qnil);
    sdb_wake_pipe_close(&sym.pipe);
    sdb_store_relaxed(&sym.box.tid, 0);
    sdb_store_relaxed(&sym.present, 0);
    sdb_store_relaxed(&sym.sleeps, 0);
    sdb_store_relaxed(&sym.lost, 0);
    sdb_store_relaxed(&sym.waits, 0);
    sdb_store_relaxed(&sym.box.asked, 0);
    sdb_store_relaxed(&sym.asked_ns, 0);
    sdb_store_relaxed(&sym.stop, 0);
    sdb_store_relaxed(&sym.box.alive, !SDB_SYMBOLIZER_STAYS); /* a job needs nobody to begin it */
}

void
sdb_symbolizer_run_here_for(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                            const struct sdb_layout *layout)
{
    sdb_symbolizer_work_on(&sym.box, codes, threads, layout);
    sdb_symbolizer_work_due(sdb_monotonic_ns());
    while (sdb_symbolizer_work_turn()) {}
}
