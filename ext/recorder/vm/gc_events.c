/* SPDX-License-Identifier: MIT
 *
 * gc_events.c - see gc_events.h. A GC is done in stretches: marking in one or several, sweeping a little at a time as
 * objects are allocated. What a stretch did follows from what the VM was about before and after it.
 */
#include "vm/gc_events.h"

#include <ruby.h>
#include <ruby/debug.h>
#include "core/clock.h"
#include "sdb_atomic.h"
#include "vm/gvl.h"
#include "vm/protect.h"

static struct {
    /* immutable after install */
    struct sdb_thread_table *threads;
    VALUE tracepoint;
    struct {
        VALUE state, none, marking, sweeping, major_by;
        VALUE compact_count;
        /* the VM knows the keys above */
        bool known;
    } words;
    /* guarded by the VM's GC lock: before the present stretch */
    VALUE state_before;
    size_t compactions_before;
    /* shared: atomic */
    uint64_t on;
    struct sdb_gc_periods periods;
} timing;

struct sdb_gc_periods *
sdb_gc_periods(void)
{
    return &timing.periods;
}

void
sdb_gc_events_enable(bool on)
{
    sdb_store_release(&timing.on, on);
}

#ifdef HAVE_RB_INTERNAL_THREAD_SPECIFIC_GET /* 3.3+ */

enum { PERIOD_MIN_NS = 50000 };

/* SDB_GC_* of a stretch that ends now. */
static uint32_t
phases(void)
{
    VALUE before = timing.state_before, after = rb_gc_latest_gc_info(timing.words.state);
    bool begins = before == timing.words.none, swept = before == timing.words.sweeping;
    uint32_t flags = 0;
    if (begins || before == timing.words.marking) flags |= SDB_GC_MARK;
    if (swept || after == timing.words.sweeping || (flags && after == timing.words.none))
        flags |= SDB_GC_SWEEP;
    if (!NIL_P(rb_gc_latest_gc_info(timing.words.major_by))) flags |= SDB_GC_MAJOR;
    if (rb_gc_stat(timing.words.compact_count) != timing.compactions_before)
        flags |= SDB_GC_COMPACT;
    return flags;
}

static void
fill_figures(struct sdb_gc_period *period)
{
    period->count = rb_gc_count();
    if (!timing.words.known) return;
    period->flags = phases();
}

/* Runs on: the thread that does the GC; no alloc, no raise. The keys it asks for are symbols, and what they give is small:
 * rb_gc_stat makes a Bignum of a number that is none, and heap_live_slots and malloc_increase_bytes may fall below zero
 * where there are Ractors (CRuby's gc.c:gc_stat_internal, gc_info_decode; gc/default/default.c since 3.4). To allocate here
 * aborts the process. */
static void
on_gc_event(VALUE tracepoint, void *unused)
{
    (void)unused;
    if (!sdb_load_acquire(&timing.on)) return;
    rb_event_flag_t event = rb_tracearg_event_flag(rb_tracearg_from_tracepoint(tracepoint));
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (!slot) return;
    uint64_t now = sdb_monotonic_ns();
    if (event == RUBY_INTERNAL_EVENT_GC_ENTER) {
        if (sdb_load_relaxed(&slot->state) == SDB_GC) return;
        sdb_thread_enter(slot, SDB_GC, now);
        if (!timing.words.known) return;
        timing.state_before = rb_gc_latest_gc_info(timing.words.state);
        timing.compactions_before = rb_gc_stat(timing.words.compact_count);
        return;
    }
    if (sdb_load_relaxed(&slot->state) != SDB_GC) return;
    uint64_t begin = sdb_load_relaxed(&slot->since_ns);
    sdb_thread_enter(slot, SDB_RUNNING,
                     now); /* who collects holds the GVL, whatever its state said */
    sdb_thread_activate(timing.threads, slot, false);
    if (now - begin < PERIOD_MIN_NS) return;
    struct sdb_gc_period period = {
        .serial = sdb_load_relaxed(&slot->serial), .begin_ns = begin, .ns = now - begin};
    fill_figures(&period);
    sdb_gc_periods_push(&timing.periods, &period);
}

/* Asked once outside of a GC: an unknown key raises, and the VM makes its own table of keys at the first question. */
static VALUE
try_keys(VALUE unused)
{
    rb_gc_latest_gc_info(timing.words.state);
    rb_gc_latest_gc_info(timing.words.major_by);
    rb_gc_stat(timing.words.compact_count);
    return unused;
}

static VALUE
word(const char *name)
{
    return ID2SYM(rb_intern(name));
}

bool
sdb_gc_events_install(struct sdb_thread_table *threads)
{
    if (timing.tracepoint) return true;
    timing.threads = threads;
    timing.words.state = word("state");
    timing.words.none = word("none");
    timing.words.marking = word("marking");
    timing.words.sweeping = word("sweeping");
    timing.words.major_by = word("major_by");
    timing.words.compact_count = word("compact_count");
    timing.words.known = sdb_protect(try_keys, Qnil, NULL);
    rb_gc_register_address(&timing.tracepoint);
    timing.tracepoint = rb_tracepoint_new(
        0, RUBY_INTERNAL_EVENT_GC_ENTER | RUBY_INTERNAL_EVENT_GC_EXIT, on_gc_event, NULL);
    rb_tracepoint_enable(timing.tracepoint);
    return true;
}

#else

bool
sdb_gc_events_install(struct sdb_thread_table *threads)
{
    timing.threads = threads;
    return false;
}

#endif
