/* SPDX-License-Identifier: MIT
 *
 * scanner.c - the scanner's loop: pacing, the ticks, parking. See scanner.h.
 */
#include "scan/scanner.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "error.h"
#include "sdb_atomic.h"
#include "scan/flush.h"
#include "scan/open_work.h"
#include "scan/states.h"
#include "scan/upkeep.h"
#include "scan/visit.h"
#include "scan/walk.h"

enum {
    IDLE_ASK_NS = 100000000,
    IDLE_ASK_MAX_NS = 2000000000,
    PARKED_LOOKS = 10, /* for names, before nothing but a thread that runs ends the wait */
    SLOW_TICK_NS = 10000000,
    SLOW_AFTER_TICKS = 50,
    /* a slow tick is so much of the time for which nothing ran: late by 0.5 % of it at most */
    SLOW_PART = 200,
};

/* Did this tick take the core from a running Ruby thread? By the cpu on which it last got the GVL: threads
 * migrate rarely between two GVL switches. Ruby 3.1: see states_inferred.c. */
static void
count_displaced(struct sdb_scanner *sc, const struct sdb_slot *slot)
{
    if (sdb_load_relaxed(&slot->state) == SDB_RUNNING &&
        (int)sdb_load_relaxed(&slot->cpu) == sc->tick.cpu) {
        sdb_count(sc, SDB_C_DISPLACED_TICKS, 1);
    }
}

/* True when there were any. */
static bool
visit_active(struct sdb_scanner *sc)
{
    uint64_t used = sdb_load_acquire(&sc->threads->live.segments_used);
    bool any = false;
    for (uint32_t segment = 0; segment < used; segment++) {
        if (!sdb_load_relaxed(&sc->threads->active[segment])) continue;
        /* taken before the slots are read, so that a hook that acts meanwhile sets its bit again; pairs with
         * thread_table.c:sdb_thread_activate */
        uint64_t bits = __atomic_exchange_n(&sc->threads->active[segment], 0, __ATOMIC_SEQ_CST);
        while (bits) {
            uint32_t index = segment * SDB_SEGMENT_SLOTS + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            struct sdb_slot *slot = sdb_thread_slot(sc->threads, index);
            if (sc->exact) count_displaced(sc, slot);
            sdb_visit(sc, slot);
            any = true;
        }
    }
    return any;
}

static void
visit_all(struct sdb_scanner *sc)
{
    struct sdb_slot *slot;
    sdb_thread_each (slot, sc->threads) {
        if (sdb_load_relaxed(&slot->life) != SDB_SLOT_FREE) sdb_visit(sc, slot);
    }
}

/* How long the next tick may wait where nothing wakes us (3.1): longer, the longer nothing ran. */
static uint64_t
slow_tick_ns(const struct sdb_scanner *sc)
{
    uint64_t part = (sc->host.monotonic_ns() - sc->inferred.ran_ns) / SLOW_PART;
    if (part > SLOW_TICK_NS) part = SLOW_TICK_NS;
    return part > sc->pacing.interval_ns ? part : sc->pacing.interval_ns;
}

static void
note_gap(struct sdb_scanner *sc)
{
    if (!sc->tick.previous_ns) return;
    uint64_t passed = sc->tick.now_ns - sc->tick.previous_ns;
    if (sdb_load_relaxed(&sc->counters[SDB_C_PARKED]) ||
        passed <= SDB_GAP_INTERVALS * sc->pacing.interval_ns)
        return;
    uint64_t gap = passed - sc->pacing.interval_ns;
    sdb_ring_writer_gap(sc->writer, gap, SDB_GAP_LATE);
    sdb_count(sc, SDB_C_LOST_GAP_NS, gap);
}

void
sdb_scanner_tick(struct sdb_scanner *sc, uint64_t now_ns)
{
    sc->tick.now_ns = now_ns;
    sc->tick.number++;
    sc->tick.ended_waiting = 0;
    sdb_count(sc, SDB_C_TICKS, 1);
    sdb_count(sc, SDB_C_THREAD_SAMPLES, sdb_load_relaxed(&sc->threads->live_count));
    if (sdb_pacing_late(&sc->pacing, now_ns)) sdb_count(sc, SDB_C_LATE_TICKS, 1);
    note_gap(sc);
    bool parked = sdb_load_relaxed(&sc->counters[SDB_C_PARKED]);
    sdb_set_counter(sc, SDB_C_PARKED, 0);
    sdb_ring_writer_tick(sc->writer, now_ns);
    sc->tick.gc = !sc->gc_events && sc->host.during_gc();

    sc->tick.cpu = sc->host.cpu();
    bool all = sc->states->began(sc);
    bool any = visit_active(sc);
    if (all) visit_all(sc);
    any = sc->states->ended(sc, any);
    sc->tick.idle = any ? 0 : sc->tick.idle + 1;
    if (sc->tick.idle == 0 && !parked && sc->tick.previous_ns)
        sc->worked_ns += now_ns - sc->tick.previous_ns;
    if (sc->chunk != sdb_ring_writer_chunk(sc->writer) || sc->tick.last) {
        sc->chunk = sdb_ring_writer_chunk(sc->writer);
        sdb_work_repeat(sc);
        visit_all(sc);
    }
    sdb_upkeep_tick(sc);
    sc->tick.previous_ns = now_ns;
    sdb_count(sc, SDB_C_SCAN_NS, sc->host.monotonic_ns() - now_ns);
}

static bool
any_active(const struct sdb_scanner *sc)
{
    uint64_t used = sdb_load_acquire(&sc->threads->live.segments_used);
    for (uint32_t s = 0; s < used; s++) {
        if (sdb_load_seq_cst(&sc->threads->active[s])) return true;
    }
    return false;
}

/* Sleeps until a thread can run again. Called at a tick boundary with everything written. */
static void
park(struct sdb_scanner *sc)
{
    if (sdb_code_table_young_count(sc->codes) || sc->asks.soon) {
        sc->asks.soon = false;
        sdb_scanner_ask(sc, SDB_ASK_WORK);
    }
    sdb_ring_writer_park(sc->writer);
    sdb_count(sc, SDB_C_PARKS, 1);
    sdb_set_counter(sc, SDB_C_PARKED, 1);
    sc->tick.now_ns = sc->host.monotonic_ns();
    sdb_flush(sc); /* nothing is written until somebody runs */

    /* seq_cst store before the look at the bits; a hook sets its bit before it looks at `parked` */
    sdb_store_seq_cst(&sc->threads->parked, 1);
    sdb_fence_seq_cst();
    uint64_t patience = IDLE_ASK_NS;
    unsigned looks = 0;
    while (sdb_load_acquire(&sc->threads->parked) && !any_active(sc) &&
           !sdb_load_acquire(&sc->stop) && sdb_load_acquire(&sc->dump_asked) == sc->dump_done) {
        sc->host.wait_parked(&sc->threads->parked, patience);
        if (!patience || !sdb_load_acquire(&sc->threads->parked)) continue;
        /* idle for a while, not just between two requests: the file shall say so, and the names of what hangs here must
         * get into it although nobody runs */
        bool unnamed = sdb_code_table_young_count(sc->codes) != 0;
        sc->tick.now_ns = sc->host.monotonic_ns();
        sdb_upkeep_parked(sc);
        if (looks++ == 0) sdb_scanner_ask(sc, SDB_ASK_IDLE);
        patience = unnamed && looks < PARKED_LOOKS ? IDLE_ASK_NS : 0;
    }
    sdb_store_seq_cst(&sc->threads->parked, 0);
    sc->tick.idle = 0;
    sc->pacing.deadline_ns = sc->host.monotonic_ns();
}

static void
loop(struct sdb_scanner *sc)
{
    sc->pacing.deadline_ns = sc->host.monotonic_ns();
    uint64_t ask_ns = 0, patience = 0; /* when to ask next, and for how long not to */
    while (!sdb_load_acquire(&sc->stop)) {
        uint64_t deadline = sdb_pacing_next(&sc->pacing, sc->host.monotonic_ns());
        if (!sc->exact && sc->tick.idle > SLOW_AFTER_TICKS) {
            /* 3.1: nothing wakes us, so look less often; what then ran is known from the CPU clocks */
            sdb_ring_writer_park(sc->writer);
            sdb_set_counter(sc, SDB_C_PARKED, 1);
            if (sc->host.monotonic_ns() >= ask_ns && patience <= IDLE_ASK_MAX_NS) {
                /* a thread that ends at once is not seen to run: so not once, but more and more rarely */
                sdb_scanner_ask(sc, SDB_ASK_IDLE | SDB_ASK_WORK);
                patience = patience ? patience * 2 : IDLE_ASK_NS;
                ask_ns = sc->host.monotonic_ns() + patience;
            }
            deadline = sc->pacing.deadline_ns = sc->host.monotonic_ns() + slow_tick_ns(sc);
        } else if (!sc->exact) {
            ask_ns = patience = 0;
        }
        sc->host.sleep_until(deadline);
        if (!sdb_load_acquire(&sc->stop)) sdb_scanner_tick(sc, sc->host.monotonic_ns());
        if (sc->exact && sc->tick.idle >= SDB_PARK_TICKS) park(sc);
    }
}

void
sdb_scanner_run(struct sdb_scanner *sc)
{
    sc->thread = pthread_self(); /* pthread_create may not have stored it yet */
    sdb_upkeep_second(sc);
    loop(sc);
    sc->tick.last = true;
    sdb_scanner_tick(sc, sc->host.monotonic_ns());
    sdb_flush(sc);
    sc->cpu_ns = sc->host.own_cpu_ns();
}

void
sdb_scanner_free(struct sdb_scanner *sc)
{
    /* who reads this process's memory when it is killed must find nothing that is gone */
    sc->threads->live.magic = 0;
    sc->threads->live.pending_bytes = 0;
    sdb_walker_free(sc->walker);
    sdb_code_table_free(sc->codes);
    sdb_edge_set_free(sc->edges);
    sdb_ring_writer_free(sc->writer);
    sdb_symbol_area_free(sc->symbols);
    sdb_open_work_free(sc->work);
    sc->walker = NULL;
    sc->codes = NULL;
    sc->edges = NULL;
    sc->writer = NULL;
    sc->symbols = NULL;
    sc->work = NULL;
}

/* What others read of this process, also after it is dead. */
static void
publish_table(struct sdb_scanner *sc, const struct sdb_layout *layout)
{
    struct sdb_live_table *live = &sc->threads->live;
    live->magic = SDB_LIVE_MAGIC;
    live->version = SDB_LIVE_VERSION;
    live->slot_bytes = sizeof(struct sdb_slot);
    live->segment_slots = SDB_SEGMENT_SLOTS;
    live->thread_ec = layout->thread_ec;
    live->ec_vm_stack = layout->ec_vm_stack;
    live->ec_vm_stack_size = layout->ec_vm_stack_size;
    live->ec_cfp = layout->ec_cfp;
    live->cfp_bytes = layout->cfp_bytes;
    live->cfp_pc = layout->cfp_pc;
    live->cfp_iseq = layout->cfp_iseq;
    live->cfp_ep = layout->cfp_ep;
    live->counters = (uint64_t)(uintptr_t)sc->counters;
}

int
sdb_scanner_init(struct sdb_scanner *sc, const struct sdb_scanner_config *config)
{
    uint64_t interval_ns = config->file.interval_ns, now_ns = config->file.start_monotonic_ns;
    memset(sc, 0, sizeof *sc);
    sc->threads = config->threads;
    sc->mailbox = config->mailbox;
    sc->periods = config->periods;
    sc->host = config->host;
    sc->exact = config->exact;
    sc->states = config->exact ? &sdb_states_exact : &sdb_states_inferred;
    sc->gc_events = config->gc_events;
    sc->file_config = config->file;
    sc->file.own = SDB_OWN_FD_NONE;
    sc->start_ns = now_ns;
    sc->chunk = UINT64_MAX;
    sc->codes = sdb_code_table_new();
    sc->edges = sdb_edge_set_new();
    sc->writer = sdb_ring_writer_new(now_ns, interval_ns);
    sc->symbols = sdb_symbol_area_new();
    sc->work = sdb_open_work_new();
    struct sdb_walker_config walker = {
        .layout = config->layout,
        .stacks_last = config->stacks_last,
        .drop_top = config->drop_top,
        .main_thread = config->main_thread,
        .codes = sc->codes,
        .edges = sc->edges,
        .gc_epoch = config->gc_epoch,
        .host = &sc->host,
    };
    sc->walker = sc->codes && sc->edges ? sdb_walker_new(&walker) : NULL;
    if (!sc->walker || !sc->writer || !sc->symbols || !sc->work) {
        sdb_scanner_free(sc);
        return SDB_ERR_NOMEM;
    }
    sdb_pacing_init(&sc->pacing, interval_ns, config->max_cpu_ppm, now_ns);
    sdb_set_counter(sc, SDB_C_EFFECTIVE_INTERVAL_NS, interval_ns);
    sdb_set_counter(sc, SDB_C_MAX_CPU_PPM, config->max_cpu_ppm);
    publish_table(sc, &config->layout);
    return 0;
}

void
sdb_scanner_wake(struct sdb_scanner *sc)
{
    sdb_store_seq_cst(&sc->threads->parked, 0);
    syscall(SYS_futex, &sc->threads->parked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
