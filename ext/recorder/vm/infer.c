/* SPDX-License-Identifier: MIT
 *
 * infer.c - Ruby 3.1 has no GVL events: a thread whose CPU clock advances is running, any other is blocked.
 * That cannot tell who waits for the GVL, so reports call these states inferred.
 *
 * Runs on: scanner thread, no GVL
 */
#include "core/clock.h"
#include "sdb_atomic.h"
#include "vm/scanner.h"
#include "vm/symbolizer.h"

enum {
    NOISE_NS = 3000,
    RAN_NS = 1000,        /* less than this of CPU since the last look is noise of the clock */
    EACH_TICK_CHECKS = 4, /* looks at a standing clock before they become rarer */
    RAREST_SHIFT = 4,     /* then up to each 16th tick */
};

bool
sdb_infer_anything_ran(struct sdb_scanner *sc)
{
    uint64_t process = sdb_clock_ns(CLOCK_PROCESS_CPUTIME_ID), own = sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    /* CPU of the app's threads; off by what the two later reads take. The symbolizer's turns are ours: would they
     * count, its own housekeeping would keep an idle process from being idle */
    uint64_t others = process - own - sdb_symbolizer_cpu_ns();
    /* compared with the last time something ran, not with the last tick: little by little adds up, noise does not */
    if (sc->others_cpu_ns && (int64_t)(others - sc->others_cpu_ns) < NOISE_NS) return false;
    sc->others_cpu_ns = others;
    return true;
}

bool
sdb_infer_state(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
                struct sdb_state_view *out, bool *ran)
{
    *out = (struct sdb_state_view){
        .state = scan->inferred_state,
        .since_ns = scan->inferred_blocked_ns, /* changes when there is something to write */
        .blocked_ns = scan->inferred_blocked_ns,
        .resumes = scan->resumes,
        .tid = sdb_load_relaxed(&slot->tid),
    };
    *ran = false;
    bool first = scan->seen_cpu_ns == 0;
    if (scan->stack_due || scan->inferred_state == SDB_RUNNING) sc->inferred_running = true; /* look again next tick */
    if (!first && !scan->stack_due && sc->now_ns < scan->next_check_ns) return false;
    uint64_t cpu = out->tid ? sdb_clock_ns(sdb_thread_cpu_clock((uint32_t)out->tid)) : 0;
    uint64_t used = first ? 0 : cpu - scan->seen_cpu_ns, elapsed = sc->now_ns - scan->checked_ns;
    scan->seen_cpu_ns = cpu;
    scan->checked_ns = sc->now_ns;
    *ran = first || used > RAN_NS;
    if (*ran) {
        sc->inferred_ran = true;
        scan->stack_due = true;
        sdb_store_relaxed(&slot->since_ns, sc->now_ns); /* for sdb_thread_last_blocked */
    }
    scan->idle_checks = *ran ? 0 : scan->idle_checks + 1;
    uint64_t shift = scan->idle_checks > EACH_TICK_CHECKS ? scan->idle_checks - EACH_TICK_CHECKS : 0;
    if (shift > RAREST_SHIFT) shift = RAREST_SHIFT;
    scan->next_check_ns = sc->now_ns + ((sc->pacing.interval_ns << shift) - sc->pacing.interval_ns / 2);

    uint64_t before = scan->inferred_state;
    /* half of the time on a CPU: running all of it (the rest: other processes had the CPU) */
    bool running = used * 2 >= elapsed || (first && used == 0 && cpu > 0 && slot->flags & SDB_THREAD_MAIN);
    if (!running && elapsed > used) scan->inferred_blocked_ns += elapsed - used;
    scan->inferred_state = running ? SDB_RUNNING : SDB_BLOCKED;
    if (running) sc->inferred_running = true;
    out->state = scan->inferred_state;
    out->blocked_ns = scan->inferred_blocked_ns;
    /* blocked on and on is no news; the total is written with the next change */
    if (*ran || running || before != out->state) out->since_ns = scan->inferred_blocked_ns;
    else out->since_ns = scan->since_ns;
    return true;
}
