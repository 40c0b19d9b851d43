/* SPDX-License-Identifier: MIT
 *
 * symbolizer_work.c - what the symbolizer does when it has the GVL, in turns: names codes and threads, frees evicted
 * codes and the slots of threads that are gone. When, and on which thread: symbolizer.c.
 *
 * Runs on: symbolizer, GVL, but for _work_due and the figures that others ask for
 */
#include "vm/symbolizer_work.h"

#include <stdlib.h>
#include "core/clock.h"
#include "core/event_queue.h"
#include "sdb_atomic.h"
#include "vm/gc.h"
#include "vm/protect.h"
#include "vm/symbols.h"
#include "vm/thread_name.h"
#include "vm/utf8.h"

enum {
    BATCH_NS = 200000,
    BATCH_MAX_NS = 5000000,
    /* who had to wait 100 ms for the GVL takes it for 5 ms if there is so much to do */
    BATCH_PART = 20,
};

static struct {
    /* immutable while the symbolizer is alive */
    struct sdb_mailbox *box;
    struct sdb_code_table *codes;
    struct sdb_thread_table *threads;
    const struct sdb_layout *layout;
    /* guarded by the GVL */
    struct sdb_young current; /* being named, for sdb_protect */
    struct sdb_named *made;
    uint64_t ready_ns; /* since when the GVL is wanted */
    uint64_t named;    /* codes so far */
    bool busy;
    bool in_job, needs_thread; /* the second: met in a job what only a thread can name */
} work;

static VALUE
make_protected(VALUE unused)
{
    (void)unused;
    work.made = sdb_symbol_make(work.layout, &work.current);
    return Qnil;
}

/* Names the oldest young code. False when there is none or no memory. */
static bool
name_one(void)
{
    if (!sdb_code_table_young_peek(work.codes, &work.current)) return false;
    work.made = NULL;
    if (!sdb_protect(make_protected, Qnil, NULL)) {
        /* a class whose name raises: keep the code without one, never ask again */
        static const struct sdb_symbol nameless = {
            .kind = SDB_CODE_INVALID, .name = "", .path = "", .class_name = ""};
        work.made = calloc(1, sizeof *work.made);
        if (work.made)
            *work.made = (struct sdb_named){.symbol = nameless, .memory_bytes = sizeof *work.made};
    }
    if (!work.made) return false;
    if (work.in_job && sdb_utf8_deferred()) {
        free(work.made);
        work.needs_thread = true;
        return false;
    }
    VALUE iseq = 0, ment = 0;
    if (work.made->symbol.kind != SDB_CODE_INVALID) {
        iseq = (VALUE)work.current.iseq;
        ment = (VALUE)(work.current.ment & ~(uint64_t)SDB_CODE_BMETHOD);
    }
    work.made->pin = sdb_gc_pin(iseq, ment, work.made);
    if (work.made->pin == UINT32_MAX) {
        free(work.made);
        return false;
    }
    sdb_add_relaxed(&work.box->memory_bytes, work.made->memory_bytes);
    sdb_code_table_young_named(work.codes, work.made);
    work.named++;
    return true;
}

static void
name_thread(struct sdb_slot *slot)
{
    VALUE thread = (VALUE)sdb_load_relaxed(&slot->thread_value), name = sdb_thread_name(thread);
    if (name == Qundef) {
        if (work.in_job) {
            work.needs_thread = true;
            return;
        }
        name = rb_funcall(thread, rb_intern("name"), 0);
    }
    if (!RB_TYPE_P(name, T_STRING)) return;
    name = sdb_utf8(name);
    if (work.in_job && sdb_utf8_deferred()) {
        work.needs_thread = true;
        return;
    }
    sdb_thread_set_name(work.threads, slot, RSTRING_PTR(name), (size_t)RSTRING_LEN(name));
    RB_GC_GUARD(name);
}

static uint64_t
gc_stat(const char *key)
{
    return (uint64_t)rb_gc_stat(ID2SYM(rb_intern(key)));
}

static void
read_gc_figures(void)
{
    struct sdb_gc_figures figures = {
        .count = gc_stat("count"),
        .heap_live_slots = gc_stat("heap_live_slots"),
        .malloc_increase_bytes = gc_stat("malloc_increase_bytes"),
        .oldmalloc_increase_bytes = gc_stat("oldmalloc_increase_bytes"),
    };
    sdb_mailbox_set_gc_figures(work.box, &figures);
}

static VALUE
housekeeping(VALUE unused)
{
    (void)unused;
    struct sdb_mailbox *box = work.box;
    read_gc_figures();
    uint64_t pass = sdb_load_relaxed(&box->passes_begun) + 1;
    sdb_store_release(&box->passes_begun, pass); /* pairs with visit.c:name_is_final */
    struct sdb_named *gone;
    while ((gone = sdb_code_table_take_evicted(work.codes))) {
        sdb_gc_unpin(gone->pin);
        sdb_code_table_pin_freed(work.codes, gone->pin);
        sdb_add_relaxed(&box->memory_bytes, -(uint64_t)gone->memory_bytes);
        free(gone);
    }
    struct sdb_slot *slot;
    sdb_thread_each (slot, work.threads) {
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
    sdb_store_release(&box->passes_ended, pass);
    return Qnil;
}

void
sdb_symbolizer_work_on(struct sdb_mailbox *box, struct sdb_code_table *codes,
                       struct sdb_thread_table *threads, const struct sdb_layout *layout)
{
    work.box = box;
    work.codes = codes;
    work.threads = threads;
    work.layout = layout;
}

void
sdb_symbolizer_work_due(uint64_t since_ns)
{
    work.ready_ns = since_ns;
}

uint64_t
sdb_symbolizer_named(void)
{
    return work.named;
}

/* How long a turn may be. Beside a thread that computes, turns are a time slice (100 ms) apart: 0.2 ms each
 * would leave a program that starts without names for many seconds. */
static uint64_t
turn_ns(uint64_t now)
{
    uint64_t part = (now - work.ready_ns) / BATCH_PART;
    if (part < BATCH_NS) return BATCH_NS;
    return part < BATCH_MAX_NS ? part : BATCH_MAX_NS;
}

static bool
turn(uint64_t begin, uint64_t budget)
{
    uint64_t now = begin;
    bool more = true;
    work.busy = true;
    while (more && now - begin < budget) {
        more = name_one();
        now = sdb_monotonic_ns();
    }
    if (!more) sdb_protect(housekeeping, Qnil, NULL);
    now = sdb_monotonic_ns();
    sdb_add_relaxed(&work.box->gvl_ns, now - begin);
    work.ready_ns = now;
    work.busy = false;
    return more;
}

bool
sdb_symbolizer_works(void)
{
    return work.busy;
}

bool
sdb_symbolizer_work_turn(void)
{
    uint64_t begin = sdb_monotonic_ns();
    return turn(begin, turn_ns(begin));
}

bool
sdb_symbolizer_work_turn_in_job(void)
{
    work.in_job = true;
    work.needs_thread = false;
    sdb_utf8_defer(true);
    bool more = turn(sdb_monotonic_ns(), BATCH_NS);
    sdb_utf8_defer(false);
    work.in_job = false;
    return more || work.needs_thread;
}
