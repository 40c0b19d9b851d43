/* SPDX-License-Identifier: MIT
 *
 * tick_cost.c - a thread that spins and counts, a thread that wakes up each millisecond or sleeps: slices with
 * and without the ticks in the order A B B A, so that a drift of the host's speed cancels out.
 *
 * Runs on: two threads of its own
 */
#define _GNU_SOURCE
#include "core/tick_cost.h"

#include "error.h"
#include "sdb_atomic.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

enum {
    SLICE_NS = 8000000,
    SLICES_A_PAIR = 2,
    PAIRS_MIN = 6,
    PAIRS_MAX = 256,
    ADDS_BETWEEN_CLOCKS = 8000,
};

struct bench {
    /* immutable after start */
    int spin_cpu, tick_cpu;
    unsigned pairs;
    uint64_t deadline_ns; /* monotonic; on a crowded host slices take long */
    /* shared: atomic */
    uint32_t on, stop, ticks;
    sem_t wake; /* spinner -> ticker: on or stop changed */
    /* owner: spinner; read after join */
    int64_t wall_lost_ns[PAIRS_MAX]; /* a tick; of clean pairs */
    int64_t cpu_lost_ns[PAIRS_MAX];  /* a tick; of all pairs */
    unsigned clean, count;
    int err;
    /* owner: ticker; read after join */
    uint64_t cpu_ns;
};

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool
stay_on(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) == 0;
}

static void *
tick(void *argument)
{
    struct bench *b = argument;
    stay_on(b->tick_cpu); /* the spinner reports a cpu that we may not use */
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    for (;;) {
        while (sem_wait(&b->wake) != 0) {}
        if (sdb_load_acquire(&b->stop)) {
            break;
        }
        uint64_t next = clock_ns(CLOCK_MONOTONIC);
        while (sdb_load_acquire(&b->on)) {
            next += SDB_TICK_COST_INTERVAL_NS;
            struct timespec t = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
            sdb_add_relaxed(&b->ticks, 1);
        }
    }
    b->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return NULL;
}

static uint64_t
preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nivcsw : 0;
}

struct slice {
    double wall_rate; /* work a ns */
    double cpu_rate;  /* work a ns of the spinner's own CPU time */
    double ticks;     /* that came while the spinner was on its core */
    bool clean;       /* nothing but ticks took the spinner off its core */
};

/* Spins for a slice of CPU time. */
static struct slice
spin_slice(struct bench *b, bool with)
{
    struct slice result;
    uint64_t units = 0, cpu, wall = clock_ns(CLOCK_MONOTONIC),
             begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint32_t before = sdb_load_relaxed(&b->ticks);
    uint64_t switches = preemptions();
    volatile uint64_t sum = 0;
    if (with) {
        sdb_store_release(&b->on, 1);
        sem_post(&b->wake);
    }
    do {
        for (unsigned i = 0; i < ADDS_BETWEEN_CLOCKS; i++) {
            sum += i;
        }
        units++;
        cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    } while (cpu < SLICE_NS);
    wall = clock_ns(CLOCK_MONOTONIC) - wall;
    uint32_t ticks = sdb_load_relaxed(&b->ticks) - before;
    result.clean = preemptions() - switches <= ticks + 1;
    result.wall_rate = (double)units / (double)wall;
    result.cpu_rate = (double)units / (double)cpu;
    result.ticks = (double)ticks * (double)cpu / (double)wall;
    if (with) {
        sdb_store_release(&b->on, 0);
        struct timespec settle = {0,
                                  2 * SDB_TICK_COST_INTERVAL_NS}; /* the tick that is still due */
        nanosleep(&settle, NULL);
    }
    return result;
}

static void *
spin(void *argument)
{
    struct bench *b = argument;
    b->err = stay_on(b->spin_cpu) ? 0 : SDB_ERR_UNSUPPORTED;
    spin_slice(b, false); /* warms up */
    for (unsigned i = 0; i < b->pairs && !b->err && clock_ns(CLOCK_MONOTONIC) < b->deadline_ns;
         i++) {
        struct slice without, with;
        if (i % 2) { /* A B, B A, ... */
            with = spin_slice(b, true);
            without = spin_slice(b, false);
        } else {
            without = spin_slice(b, false);
            with = spin_slice(b, true);
        }
        if (with.ticks < 1) {
            continue;
        }
        b->cpu_lost_ns[b->count++] =
            (int64_t)((1 - with.cpu_rate / without.cpu_rate) * SLICE_NS / with.ticks);
        if (without.clean && with.clean) {
            b->wall_lost_ns[b->clean++] =
                (int64_t)((without.wall_rate / with.wall_rate - 1) * SLICE_NS / with.ticks);
        }
    }
    sdb_store_release(&b->stop, 1);
    sem_post(&b->wake);
    return NULL;
}

static int
by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Not sqrt(3): it would be the only use of libm. */
static double
square_root(double x)
{
    double root = x;
    for (unsigned i = 0; i < 20; i++) {
        root = (root + x / root) / 2;
    }
    return root;
}

/* Runs one placement of the two threads. */
static int
run(struct bench *b)
{
    pthread_t spinner, ticker;
    sigset_t all, before;
    if (sem_init(&b->wake, 0, 0) != 0) {
        return SDB_ERR_THREAD;
    }
    sigfillset(
        &all); /* the app's signals belong to the app's threads; new threads inherit the mask */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool ticks = pthread_create(&ticker, NULL, tick, b) == 0;
    bool spins = ticks && pthread_create(&spinner, NULL, spin, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (spins) {
        pthread_join(spinner, NULL);
    } else if (ticks) {
        sdb_store_release(&b->stop, 1);
        sem_post(&b->wake);
    }
    if (ticks) {
        pthread_join(ticker, NULL);
    }
    sem_destroy(&b->wake);
    if (!spins) {
        return SDB_ERR_THREAD;
    }
    return b->err;
}

/* The median of what a tick took, and how far off it may be: quartile distance / sqrt(n), about 1.3 standard errors. */
static int64_t
median(int64_t *values, unsigned count, int64_t *off)
{
    if (count == 0) {
        *off = 0;
        return 0;
    }
    qsort(values, count, sizeof(values[0]), by_value);
    *off = (int64_t)((double)(values[3 * count / 4] - values[count / 4]) / square_root(count));
    return values[count / 2];
}

/* By the wall clock, which sees all that a tick costs, when this core was ours; else by the CPU clocks of the
 * two threads, which see it but for what the kernel and a hypervisor spend between them. */
static int64_t
lost(struct bench *b, bool same_core, struct sdb_tick_cost *cost, int64_t *off)
{
    if (b->clean >= PAIRS_MIN && b->clean * 2 >= b->count) {
        return median(b->wall_lost_ns, b->clean, off);
    }
    cost->disturbed = true;
    return median(b->cpu_lost_ns, b->count, off) + (same_core ? (int64_t)cost->own_cpu_ns : 0);
}

int
sdb_tick_cost_measure(uint64_t budget_ns, struct sdb_tick_cost *out)
{
    cpu_set_t allowed;
    int cpus[2] = {-1, -1};
    uint32_t count = 0;
    struct sdb_tick_cost cost = {0};
    if (budget_ns < 200000000 || budget_ns > 10000000000ull) {
        return SDB_ERR_INVALID;
    }
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return SDB_ERR_UNSUPPORTED;
    }
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            if (count < 2) {
                cpus[count] = cpu;
            }
            count++;
        }
    }
    if (count == 0) {
        return SDB_ERR_UNSUPPORTED;
    }
    unsigned placements = count > 1 ? 2 : 1;
    unsigned pairs = (unsigned)(budget_ns / placements / (SLICES_A_PAIR * SLICE_NS));
    pairs = pairs > PAIRS_MAX ? PAIRS_MAX : pairs < PAIRS_MIN ? PAIRS_MIN : pairs;
    for (unsigned i = 0; i < placements; i++) {
        struct bench b = {.spin_cpu = cpus[0],
                          .tick_cpu = cpus[i],
                          .pairs = pairs,
                          .deadline_ns = clock_ns(CLOCK_MONOTONIC) + 2 * budget_ns / placements};
        int err = run(&b);
        if (err) {
            return err;
        }
        if (i == 0) {
            cost.own_cpu_ns = b.ticks ? b.cpu_ns / b.ticks : 0;
            cost.same_core_ns = lost(&b, true, &cost, &cost.same_off_ns);
        } else {
            cost.other_core_ns = lost(&b, false, &cost, &cost.other_off_ns);
        }
        cost.ticks += b.ticks;
    }
    cost.cpus = count;
    *out = cost;
    return 0;
}
