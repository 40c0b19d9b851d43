/* SPDX-License-Identifier: MIT
 *
 * scanner.c - the scanner's loop: pacing, the ticks, parking. See scanner.h.
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include "scan/scanner.h"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/clock.h"
#include "error.h"
#include "sdb_atomic.h"
#include "vm/symbolizer.h"

enum {
    IDLE_ASK_NS = 100000000,
    SLOW_TICK_NS = 10000000,
    SLOW_AFTER_TICKS = 50,
    SLOW_PART =
        200, /* a slow tick is so much of the time for which nothing ran: late by 0.5 % of it at most */
    STACK_BYTES = 256 * 1024
};

/* Did this tick take the core from a running Ruby thread? By the cpu on which it last got the GVL: threads
 * migrate rarely between two GVL switches. Ruby 3.1: see states_inferred.c. */
static void
count_displaced(struct sdb_scanner *sc, const struct sdb_slot *slot)
{
    if (sdb_load_relaxed(&slot->state) == SDB_RUNNING &&
        (int)sdb_load_relaxed(&slot->cpu) == sc->cpu) {
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
            sdb_visit(sc, slot, index);
            any = true;
        }
    }
    return any;
}

static void
visit_all(struct sdb_scanner *sc)
{
    uint64_t used = sdb_load_acquire(&sc->threads->live.segments_used);
    for (uint32_t i = 0; i < used * SDB_SEGMENT_SLOTS; i++) {
        struct sdb_slot *slot = sdb_thread_slot(sc->threads, i);
        if (slot && sdb_load_relaxed(&slot->life) != SDB_SLOT_FREE) sdb_visit(sc, slot, i);
    }
}

/* How long the next tick may wait where nothing wakes us (3.1): longer, the longer nothing ran. */
static uint64_t
slow_tick_ns(const struct sdb_scanner *sc)
{
    uint64_t part = (sdb_monotonic_ns() - sc->ran_ns) / SLOW_PART;
    if (part > SLOW_TICK_NS) part = SLOW_TICK_NS;
    return part > sc->pacing.interval_ns ? part : sc->pacing.interval_ns;
}

/* Ruby 3.1: no event says who did something; the threads' CPU clocks do. True when one ran. */
static bool
visit_inferred(struct sdb_scanner *sc, bool look)
{
    if (look) visit_all(sc);
    if (sc->beside_ns * 2 >= sc->now_ns - sc->previous_ns) sdb_count(sc, SDB_C_DISPLACED_TICKS, 1);
    sc->beside_ns = 0;
    if (!sc->inferred_ran && !sc->inferred_running) return false;
    sc->ran_ns = sc->now_ns;
    return true;
}

static void
note_gap(struct sdb_scanner *sc)
{
    if (!sc->previous_ns) return;
    uint64_t passed = sc->now_ns - sc->previous_ns;
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
    sc->now_ns = now_ns;
    sc->tick++;
    sdb_count(sc, SDB_C_TICKS, 1);
    sdb_count(sc, SDB_C_THREAD_SAMPLES, sdb_load_relaxed(&sc->threads->live_count));
    if (sdb_pacing_late(&sc->pacing, now_ns)) sdb_count(sc, SDB_C_LATE_TICKS, 1);
    note_gap(sc);
    bool parked = sdb_load_relaxed(&sc->counters[SDB_C_PARKED]);
    sdb_set_counter(sc, SDB_C_PARKED, 0);
    sdb_ring_writer_tick(sc->writer, now_ns);
    sc->gc_now = !sc->gc_events && sc->during_gc();

    sc->cpu = sched_getcpu();
    bool look = !sc->exact && sdb_infer_clocks(sc);
    bool any = visit_active(sc);
    if (!sc->exact) any = visit_inferred(sc, look);
    sc->idle_ticks = any ? 0 : sc->idle_ticks + 1;
    if (sc->idle_ticks == 0 && !parked && sc->previous_ns)
        sc->worked_ns += now_ns - sc->previous_ns;
    if (sc->chunk != sdb_ring_writer_chunk(sc->writer) || sc->last_tick) {
        sc->chunk = sdb_ring_writer_chunk(sc->writer);
        sdb_events_repeat(sc);
        visit_all(sc);
    }
    sdb_upkeep_tick(sc);
    sc->previous_ns = now_ns;
    sdb_count(sc, SDB_C_SCAN_NS, sdb_monotonic_ns() - now_ns);
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

static void
wait_unparked(struct sdb_scanner *sc, uint64_t timeout_ns)
{
    struct timespec t = {.tv_sec = (time_t)(timeout_ns / 1000000000ull),
                         .tv_nsec = (long)(timeout_ns % 1000000000ull)};
    uint32_t parked = 1;
    syscall(SYS_futex, &sc->threads->parked, FUTEX_WAIT_PRIVATE, parked, timeout_ns ? &t : NULL,
            NULL, 0);
}

/* Sleeps until a thread can run again. Called at a tick boundary with everything written. */
static void
park(struct sdb_scanner *sc)
{
    if (sdb_code_table_young_count(sc->codes) || sc->ask_soon) {
        sc->ask_soon = false;
        sdb_symbolizer_ask(SDB_ASK_WORK);
    }
    pthread_mutex_lock(&sc->tick_lock);
    sdb_ring_writer_park(sc->writer);
    sdb_count(sc, SDB_C_PARKS, 1);
    sdb_set_counter(sc, SDB_C_PARKED, 1);
    sc->now_ns = sdb_monotonic_ns();
    sdb_upkeep_flush(sc); /* nothing is written until somebody runs */
    pthread_mutex_unlock(&sc->tick_lock);

    /* seq_cst store before the look at the bits; a hook sets its bit before it looks at `parked` */
    sdb_store_seq_cst(&sc->threads->parked, 1);
    sdb_fence_seq_cst();
    bool asked = false;
    while (sdb_load_acquire(&sc->threads->parked) && !any_active(sc) &&
           !sdb_load_acquire(&sc->stop) && sdb_load_acquire(&sc->dump_asked) == sc->dump_done) {
        wait_unparked(sc, asked ? 0 : IDLE_ASK_NS);
        if (asked || !sdb_load_acquire(&sc->threads->parked)) continue;
        /* idle for a while, not just between two requests: the file shall say so */
        sc->now_ns = sdb_monotonic_ns();
        sdb_upkeep_state(sc);
        sdb_symbolizer_ask(SDB_ASK_IDLE);
        asked = true;
    }
    sdb_store_seq_cst(&sc->threads->parked, 0);
    sc->idle_ticks = 0;
    sc->pacing.deadline_ns = sdb_monotonic_ns();
}

static void
sleep_until(uint64_t deadline_ns)
{
    struct timespec t = {.tv_sec = (time_t)(deadline_ns / 1000000000ull),
                         .tv_nsec = (long)(deadline_ns % 1000000000ull)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void
loop(struct sdb_scanner *sc)
{
    sc->pacing.deadline_ns = sdb_monotonic_ns();
    bool idle_asked = false;
    while (!sdb_load_acquire(&sc->stop)) {
        uint64_t deadline = sdb_pacing_next(&sc->pacing, sdb_monotonic_ns());
        if (!sc->exact && sc->idle_ticks > SLOW_AFTER_TICKS) {
            /* 3.1: nothing wakes us, so look less often; what then ran is known from the CPU clocks */
            sdb_ring_writer_park(sc->writer);
            sdb_set_counter(sc, SDB_C_PARKED, 1);
            if (!idle_asked) sdb_symbolizer_ask(SDB_ASK_IDLE | SDB_ASK_WORK);
            idle_asked = true;
            deadline = sc->pacing.deadline_ns = sdb_monotonic_ns() + slow_tick_ns(sc);
        } else if (!sc->exact) {
            idle_asked = false;
        }
        sleep_until(deadline);
        pthread_mutex_lock(&sc->tick_lock);
        if (!sdb_load_acquire(&sc->stop)) sdb_scanner_tick(sc, sdb_monotonic_ns());
        pthread_mutex_unlock(&sc->tick_lock);
        if (sc->exact && sc->idle_ticks >= SDB_PARK_TICKS) park(sc);
    }
}

static void *
scanner_main(void *argument)
{
    struct sdb_scanner *sc = argument;
    prctl(PR_SET_NAME, "sdb scanner", 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    sc->thread = pthread_self(); /* pthread_create may not have stored it yet */
    sdb_upkeep_second(sc);
    loop(sc);
    pthread_mutex_lock(&sc->tick_lock);
    sc->last_tick = true;
    sdb_scanner_tick(sc, sdb_monotonic_ns());
    sdb_upkeep_flush(sc);
    sc->cpu_ns = sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_unlock(&sc->tick_lock);
    return NULL;
}

int
sdb_scanner_launch(struct sdb_scanner *sc)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return SDB_ERR_THREAD;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* the app's signals are the app's: the scanner inherits a mask that blocks them all */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sdb_store_release(&sc->stop, 0);
    int failed = pthread_create(&sc->thread, &attributes, scanner_main, sc);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed) return SDB_ERR_THREAD;
    sc->started = true;
    return 0;
}

void
sdb_scanner_wake(struct sdb_scanner *sc)
{
    sdb_store_seq_cst(&sc->threads->parked, 0);
    syscall(SYS_futex, &sc->threads->parked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void
sdb_scanner_join(struct sdb_scanner *sc)
{
    if (!sc->started) return;
    sdb_store_release(&sc->stop, 1);
    sdb_scanner_wake(sc);
    pthread_join(sc->thread, NULL);
    sc->started = false;
}
