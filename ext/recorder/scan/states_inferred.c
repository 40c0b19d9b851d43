/* SPDX-License-Identifier: MIT
 *
 * states_inferred.c - Ruby 3.1 has no GVL events: a thread whose CPU clock advances is running, any other is blocked.
 * That cannot tell who waits for the GVL, so reports call these states inferred.
 *
 * Runs on: scanner thread, no GVL
 */
#include "sdb_atomic.h"
#include "scan/states.h"

enum {
    NOISE_NS = 3000,
    RAN_NS = 1000, /* less than this of CPU since the last look is noise of the clock */
    /* With so few threads each one's clock is read at each tick: that costs no more than to find out whether one that
     * stood has run. With more: */
    FEW_THREADS = 16,
    EACH_TICK_CHECKS = 4, /* looks at a standing clock before they become rarer */
    RAREST_SHIFT = 4,     /* then up to each 16th tick, unless CPU is unexplained: */
    /* what a clock costs to read; less unexplained CPU than that is not looked for */
    LOOK_NS = 500,
    MOST_UNEXPLAINED_NS = 200000,
    /* a running thread's clock that lags so much behind the time: another may run now */
    STOPPED_NS = 20000,
};

/* 0 when there is no such thread. */
static uint64_t
clock_of(const struct sdb_scanner *sc, uint64_t tid)
{
    return tid ? sc->host.thread_cpu_ns((uint32_t)tid) : 0;
}

/* CPU of the app's threads; off by what the two later reads take. The symbolizer's turns are ours: would they count,
 * its own housekeeping would keep an idle process from being idle. */
static uint64_t
others_cpu(const struct sdb_scanner *sc)
{
    uint64_t process = sc->host.process_cpu_ns(), own = sc->host.own_cpu_ns();
    return process - own - clock_of(sc, sdb_load_relaxed(&sc->mailbox->tid));
}

static bool
anything_ran(struct sdb_scanner *sc)
{
    uint64_t others = others_cpu(sc);
    /* compared with the last time something ran, not with the last tick: little by little adds up, noise does not */
    if (sc->inferred.others_cpu_ns && (int64_t)(others - sc->inferred.others_cpu_ns) < NOISE_NS)
        return false;
    sc->inferred.others_cpu_ns = others;
    return true;
}

static void
read_clock(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan)
{
    scan->clock_ns = clock_of(sc, sdb_load_relaxed(&slot->tid));
    scan->clock_tick = sc->tick.number;
    if (scan->seen_cpu_ns) sc->inferred.explained_cpu_ns += scan->clock_ns - scan->seen_cpu_ns;
}

static bool
is_due(const struct sdb_scanner *sc, const struct sdb_scan *scan)
{
    /* what is written all the same must say how long it has been blocked */
    return scan->seen_cpu_ns == 0 || scan->stack_due || sc->tick.last ||
           scan->sample_chunk != sdb_ring_writer_chunk(sc->writer);
}

/* Reads the clocks of the threads that have been looked at before: all, or those that are due. Returns how many were
 * left out. A thread that ran is read last, so that the process' clock is read just after it. */
static uint64_t
read_clocks(struct sdb_scanner *sc, bool all)
{
    struct sdb_slot *slot, *last = NULL;
    uint64_t left_out = 0;
    sdb_thread_each (slot, sc->threads) {
        if (sdb_load_acquire(&slot->life) != SDB_SLOT_LIVE ||
            sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN)
            continue;
        struct sdb_scan *scan = (struct sdb_scan *)(uintptr_t)slot->scan;
        if (!scan || scan->serial != sdb_load_relaxed(&slot->serial) || !scan->seen_cpu_ns ||
            scan->clock_tick == sc->tick.number)
            continue;
        if (!all && !is_due(sc, scan) && sc->tick.now_ns < scan->next_check_ns) {
            left_out++;
        } else if (scan->inferred_state == SDB_RUNNING && !last) {
            last = slot;
        } else {
            read_clock(sc, slot, scan);
        }
    }
    if (!last) return left_out;
    struct sdb_scan *scan = (struct sdb_scan *)(uintptr_t)last->scan;
    read_clock(sc, last, scan);
    uint64_t ran = scan->clock_ns - scan->seen_cpu_ns, passed = sc->tick.now_ns - scan->checked_ns;
    sc->inferred.stopped = ran + STOPPED_NS < passed;
    return left_out;
}

/* A thread whose clock stood is asked more and more rarely; would it be found only then that it ran, up to 16 ticks
 * would be its old stack's. The process' clock tells it in this tick: it has used more than the threads that were read.
 * What is left over is carried on. */
static bool
unexplained(struct sdb_scanner *sc, uint64_t left_out)
{
    uint64_t others = others_cpu(sc);
    int64_t more = sc->inferred.explained_at_ns ? (int64_t)(others - sc->inferred.explained_at_ns) -
                                                      (int64_t)sc->inferred.explained_cpu_ns
                                                : 0;
    /* nobody is known to run: the clocks are exact, and somebody went from one wait to another */
    bool woke = sc->inferred.explained_cpu_ns == 0 && !sc->inferred.running && more >= NOISE_NS;
    /* the kernel counts what a thread uses when it stops, or is asked for: one that runs now may not be in it yet */
    bool stopped = sc->inferred.stopped;
    sc->inferred.unexplained_ns += more;
    sc->inferred.explained_at_ns = others;
    sc->inferred.explained_cpu_ns = 0;
    sc->inferred.stopped = false;
    int64_t worth = (int64_t)left_out * LOOK_NS;
    if (worth < 2 * NOISE_NS) worth = 2 * NOISE_NS;
    if (worth > MOST_UNEXPLAINED_NS) worth = MOST_UNEXPLAINED_NS;
    if (!woke && !stopped && sc->inferred.unexplained_ns < worth) {
        if (sc->inferred.unexplained_ns < -MOST_UNEXPLAINED_NS)
            sc->inferred.unexplained_ns = 0; /* a clock was read late */
        return false;
    }
    sc->inferred.unexplained_ns = 0;
    return true;
}

static bool
read_what_may_have_run(struct sdb_scanner *sc)
{
    if (sdb_load_relaxed(&sc->threads->live_count) <= FEW_THREADS) {
        read_clocks(sc, true);
        /* the process' clock starts anew when the threads become many */
        sc->inferred.explained_at_ns = sc->inferred.explained_cpu_ns = 0;
        sc->inferred.stopped = false;
        return true;
    }
    if (!sc->inferred.running && !anything_ran(sc)) return false;
    uint64_t left_out = read_clocks(sc, false);
    if (unexplained(sc, left_out) && left_out) {
        read_clocks(sc, true);
        sc->inferred.explained_cpu_ns = 0; /* it was before the process' clock was read */
    }
    return true;
}

static bool
began(struct sdb_scanner *sc)
{
    bool look = read_what_may_have_run(sc);
    sc->inferred.running = sc->inferred.ran = false; /* of the tick before */
    return look;
}

static bool
ended(struct sdb_scanner *sc, bool any)
{
    (void)any; /* no event says who did something; the clocks do */
    if (sc->inferred.beside_ns * 2 >= sc->tick.now_ns - sc->tick.previous_ns)
        sdb_count(sc, SDB_C_DISPLACED_TICKS, 1);
    sc->inferred.beside_ns = 0;
    if (!sc->inferred.ran && !sc->inferred.running) return false;
    sc->inferred.ran_ns = sc->tick.now_ns;
    return true;
}

/* A thread says where it runs when a span begins or ends; where there is one cpu only, all do. */
static void
second(struct sdb_scanner *sc)
{
    sc->inferred.one_cpu = sc->host.one_cpu();
}

/* Whether its clock went on since it was read, a few microseconds ago. */
static bool
runs_now(const struct sdb_scanner *sc, uint64_t tid, uint64_t cpu_ns)
{
    return clock_of(sc, tid) > cpu_ns;
}

/* False: not due, or nothing new. */
static bool
infer(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
      struct sdb_state_view *out)
{
    *out = (struct sdb_state_view){
        .state = scan->inferred_state,
        .since_ns = scan->inferred_blocked_ns, /* changes when there is something to write */
        .blocked_ns = scan->inferred_blocked_ns,
        .resumes = scan->resumes,
        .tid = sdb_load_relaxed(&slot->tid),
    };
    bool first = scan->seen_cpu_ns == 0;
    if (scan->stack_due || scan->inferred_state == SDB_RUNNING)
        sc->inferred.running = true; /* look again next tick */
    if (!first && scan->checked_ns == sc->tick.now_ns) return false;
    if (scan->clock_tick != sc->tick.number) {
        if (!is_due(sc, scan)) return false;
        read_clock(sc, slot, scan);
    }
    uint64_t cpu = scan->clock_ns;
    uint64_t used = first ? 0 : cpu - scan->seen_cpu_ns;
    /* it may be born after this tick began */
    uint64_t since = sc->tick.now_ns > scan->checked_ns ? sc->tick.now_ns - scan->checked_ns : 0;
    /* while it was not asked, its clock stood (see unexplained) */
    uint64_t quiet = !first && sc->tick.previous_ns > scan->checked_ns
                         ? sc->tick.previous_ns - scan->checked_ns
                         : 0;
    if (since < quiet + used) quiet = 0;
    uint64_t elapsed = since - quiet;
    scan->inferred_blocked_ns += quiet;
    scan->seen_cpu_ns = cpu;
    if (sc->inferred.one_cpu || (int)sdb_load_relaxed(&slot->cpu) == sc->tick.cpu)
        sc->inferred.beside_ns += used;
    scan->checked_ns = sc->tick.now_ns;
    bool ran = first || used > RAN_NS;
    if (ran) {
        sc->inferred.ran = true;
        scan->stack_due = true;
        sdb_store_relaxed(&slot->since_ns, sc->tick.now_ns); /* for sdb_thread_last_blocked */
    }
    scan->idle_checks = ran ? 0 : scan->idle_checks + 1;
    /* it stopped: once more, now that it stands still, so that what it waits in is whole and certain. Unless it stood
     * already when its stack was read, just after its clock was */
    if (scan->idle_checks == 1 && used) scan->stack_due = true;
    uint64_t shift =
        scan->idle_checks > EACH_TICK_CHECKS ? scan->idle_checks - EACH_TICK_CHECKS : 0;
    if (shift > RAREST_SHIFT) shift = RAREST_SHIFT;
    scan->next_check_ns =
        sc->tick.now_ns + ((sc->pacing.interval_ns << shift) - sc->pacing.interval_ns / 2);

    uint64_t before = scan->inferred_state;
    /* half of the time on a CPU: running all of it (the rest: other processes had the CPU) */
    bool all_of_it =
        used * 2 >= elapsed || (first && used == 0 && cpu > 0 && slot->flags & SDB_THREAD_MAIN);
    if (!all_of_it && elapsed > used) scan->inferred_blocked_ns += elapsed - used;
    /* one that woke in the interval and still runs: what it was blocked is then not its present stack's */
    bool running =
        all_of_it || (ran && !first && before == SDB_BLOCKED && runs_now(sc, out->tid, cpu));
    scan->inferred_state = running ? SDB_RUNNING : SDB_BLOCKED;
    if (running) sc->inferred.running = true;
    out->state = scan->inferred_state;
    out->blocked_ns = scan->inferred_blocked_ns;
    /* blocked on and on is no news; the total is written with the next change */
    if (ran || running || before != out->state) out->since_ns = scan->inferred_blocked_ns;
    else out->since_ns = scan->since_ns;
    return true;
}

static bool
look(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan, bool due,
     struct sdb_look *out)
{
    if (!infer(sc, slot, scan, &out->view) && !due) return false;
    out->state = out->view.state;
    out->running = out->view.state == SDB_RUNNING;
    out->still = false;
    out->stack_due = scan->stack_due;
    return true;
}

static void
looked(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
       const struct sdb_look *look)
{
    (void)sc, (void)slot, (void)scan, (void)look;
}

const struct sdb_states sdb_states_inferred = {
    .began = began, .look = look, .looked = looked, .ended = ended, .second = second};
