/* SPDX-License-Identifier: MIT
 *
 * thread_times.c - see thread_times.h.
 *
 * A thread's CPU clock is a system call: 0.2 us on bare metal, 2 us on some virtual machines, so twice more than a whole
 * span may cost. It is read at most once in a window; inside the window a thread that holds the GVL counts as
 * running all the time that it was neither blocked nor waiting. What the kernel took from it meanwhile is the error, at
 * most a window at either end of a span.
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include "spans/thread_times.h"

#include <sched.h>

#include "core/clock.h"
#include "live_table.h"
#include "sdb_atomic.h"
#include "spans/allocations.h"
#include "vm/gvl.h"
#include "scan/thread_table.h"

enum { WINDOW_NS = 250000, WINDOW_INFERRED_NS = 100000 };

static __thread struct {
    const struct sdb_slot *slot;
    uint64_t serial, at_ns, cpu_ns, idle_ns;
} anchor; /* of the native thread, as its clock is */

static uint64_t
cpu_ns(const struct sdb_slot *slot, uint64_t idle_ns, uint64_t now_ns)
{
    uint64_t window = sdb_gvl_exact() ? WINDOW_NS : WINDOW_INFERRED_NS,
             serial = sdb_load_relaxed(&slot->serial);
    if (anchor.slot == slot && anchor.serial == serial && now_ns >= anchor.at_ns &&
        now_ns - anchor.at_ns <= window) {
        return anchor.cpu_ns + sdb_since(now_ns - anchor.at_ns, sdb_since(idle_ns, anchor.idle_ns));
    }
    anchor.slot = slot;
    anchor.serial = serial;
    anchor.at_ns = now_ns;
    anchor.idle_ns = idle_ns;
    anchor.cpu_ns = sdb_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return anchor.cpu_ns;
}

struct sdb_times
sdb_thread_times(struct sdb_slot *slot, uint64_t now_ns)
{
    /* it runs and holds the GVL, so no hook changes the slot now */
    struct sdb_times t = {
        .wait_ns = sdb_load_relaxed(&slot->wait_ns),
        .blocked_ns = sdb_load_relaxed(&slot->blocked_ns),
        .gc_ns = sdb_load_relaxed(&slot->gc_ns),
        .allocations = sdb_allocations_of(slot),
    };
    t.cpu_ns = cpu_ns(slot, t.wait_ns + t.blocked_ns, now_ns);
    if (!sdb_gvl_exact())
        sdb_store_relaxed(&slot->cpu, (uint64_t)sched_getcpu()); /* no GVL event tells */
    return t;
}

struct sdb_times
sdb_thread_times_of(const struct sdb_slot *slot, uint64_t serial)
{
    struct sdb_state_view v;
    if (sdb_load_acquire(&slot->life) != SDB_SLOT_LIVE ||
        sdb_load_relaxed(&slot->serial) != serial || !sdb_thread_view(slot, &v)) {
        return (struct sdb_times){0};
    }
    return (struct sdb_times){
        .cpu_ns = v.tid ? sdb_clock_ns(sdb_thread_cpu_clock((uint32_t)v.tid)) : 0,
        .wait_ns = v.wait_ns,
        .blocked_ns = v.blocked_ns,
        .gc_ns = v.gc_ns,
        .allocations = sdb_load_relaxed(&slot->allocations),
    };
}
