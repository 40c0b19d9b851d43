/* SPDX-License-Identifier: MIT
 *
 * infer.c - Ruby 3.1 has no GVL events: a thread whose CPU clock advances is running, any other is blocked.
 * That cannot tell who waits for the GVL, so reports call these states inferred.
 *
 * Runs on: scanner thread, no GVL
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include <sched.h>
#include "core/clock.h"
#include "sdb_atomic.h"
#include "vm/scanner.h"
#include "vm/symbolizer.h"

enum {
    NOISE_NS = 3000,
    UNEXPLAINED_NS =
        200000,    /* CPU that no thread looked at has used: more than the clocks are read apart */
    RAN_NS = 1000, /* less than this of CPU since the last look is noise of the clock */
    EACH_TICK_CHECKS = 4, /* looks at a standing clock before they become rarer */
    RAREST_SHIFT = 4,     /* then up to each 16th tick */
};

/* CPU of the app's threads; off by what the two later reads take. The symbolizer's turns are ours: would they count,
 * its own housekeeping would keep an idle process from being idle. */
static uint64_t
others_cpu(void)
{
    uint64_t process = sdb_clock_ns(CLOCK_PROCESS_CPUTIME_ID),
             own = sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return process - own - sdb_symbolizer_cpu_ns();
}

bool
sdb_infer_anything_ran(struct sdb_scanner *sc)
{
    uint64_t others = others_cpu();
    /* compared with the last time something ran, not with the last tick: little by little adds up, noise does not */
    if (sc->others_cpu_ns && (int64_t)(others - sc->others_cpu_ns) < NOISE_NS) return false;
    sc->others_cpu_ns = others;
    return true;
}

/* A thread whose clock stood is asked more and more rarely; would it be found only then that it ran, up to 16 ticks
 * would be its old stack's. The process' clock tells it in this tick. What is left over is carried on: a thread goes
 * on running between the look at its clock and this one, and makes up for it at the next. */
bool
sdb_infer_unexplained(struct sdb_scanner *sc)
{
    uint64_t others = others_cpu();
    int64_t more = sc->explained_at_ns
                       ? (int64_t)(others - sc->explained_at_ns) - (int64_t)sc->explained_cpu_ns
                       : 0;
    /* nobody is known to run: the clocks are exact, and somebody went from one wait to another */
    bool woke = sc->explained_cpu_ns == 0 && !sc->inferred_running && more >= NOISE_NS;
    sc->unexplained_ns += more;
    sc->explained_at_ns = others;
    sc->explained_cpu_ns = 0;
    if (!woke && sc->unexplained_ns < UNEXPLAINED_NS) {
        if (sc->unexplained_ns < -UNEXPLAINED_NS)
            sc->unexplained_ns = 0; /* a clock was read late */
        return false;
    }
    sc->unexplained_ns = 0;
    return true;
}

/* A thread says where it runs when a span begins or ends; where there is one cpu only, all do. */
void
sdb_infer_second(struct sdb_scanner *sc)
{
    cpu_set_t cpus;
    sc->one_cpu =
        !sc->exact && sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1;
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
    if (scan->stack_due || scan->inferred_state == SDB_RUNNING)
        sc->inferred_running = true; /* look again next tick */
    /* what is written all the same must say how long it has been blocked */
    bool due = scan->stack_due || sc->now_ns >= scan->next_check_ns || sc->look_at_all ||
               sc->last_tick || scan->sample_chunk != sdb_ring_writer_chunk(sc->writer);
    if (!first && (!due || scan->checked_ns == sc->now_ns)) return false;
    uint64_t cpu = out->tid ? sdb_clock_ns(sdb_thread_cpu_clock((uint32_t)out->tid)) : 0;
    uint64_t used = first ? 0 : cpu - scan->seen_cpu_ns;
    /* it may be born after this tick began */
    uint64_t since = sc->now_ns > scan->checked_ns ? sc->now_ns - scan->checked_ns : 0;
    /* while it was not asked, its clock stood (see sdb_infer_unexplained) */
    uint64_t quiet =
        !first && sc->previous_ns > scan->checked_ns ? sc->previous_ns - scan->checked_ns : 0;
    if (since < quiet + used) quiet = 0;
    uint64_t elapsed = since - quiet;
    scan->inferred_blocked_ns += quiet;
    scan->seen_cpu_ns = cpu;
    if (!sc->look_at_all) sc->explained_cpu_ns += used;
    if (sc->one_cpu || (int)sdb_load_relaxed(&slot->cpu) == sc->cpu) sc->beside_ns += used;
    scan->checked_ns = sc->now_ns;
    *ran = first || used > RAN_NS;
    if (*ran) {
        sc->inferred_ran = true;
        scan->stack_due = true;
        sdb_store_relaxed(&slot->since_ns, sc->now_ns); /* for sdb_thread_last_blocked */
    }
    scan->idle_checks = *ran ? 0 : scan->idle_checks + 1;
    /* it stopped: once more, now that it stands still, so that what it waits in is whole and certain. Unless it stood
     * already when its stack was read, just after its clock was */
    if (scan->idle_checks == 1 && used) scan->stack_due = true;
    uint64_t shift =
        scan->idle_checks > EACH_TICK_CHECKS ? scan->idle_checks - EACH_TICK_CHECKS : 0;
    if (shift > RAREST_SHIFT) shift = RAREST_SHIFT;
    scan->next_check_ns =
        sc->now_ns + ((sc->pacing.interval_ns << shift) - sc->pacing.interval_ns / 2);

    uint64_t before = scan->inferred_state;
    /* half of the time on a CPU: running all of it (the rest: other processes had the CPU) */
    bool running =
        used * 2 >= elapsed || (first && used == 0 && cpu > 0 && slot->flags & SDB_THREAD_MAIN);
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
