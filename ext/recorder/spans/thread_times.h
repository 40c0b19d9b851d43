/* SPDX-License-Identifier: MIT
 *
 * thread_times.h - what the calling thread used so far: CPU time, time without the GVL, GC, objects.
 *
 * Runs on: the thread it is about, GVL
 */
#ifndef SDB_THREAD_TIMES_H
#define SDB_THREAD_TIMES_H

#include <stdint.h>

struct sdb_slot;

struct sdb_times { /* totals since some moment */
    uint64_t cpu_ns, wait_ns, blocked_ns, gc_ns, allocations;
};

/* Only differences mean something. Waits and GC are 0 where no events tell of them (Ruby 3.1; GC before 3.3). */
struct sdb_times sdb_thread_times(struct sdb_slot *slot, uint64_t now_ns);

/* The same of another thread, as far as it ended a period; all 0 when it is gone. Runs on: any Ruby thread, GVL. */
struct sdb_times sdb_thread_times_of(const struct sdb_slot *slot, uint64_t serial);

static inline uint64_t
sdb_since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

/* sum += now - before */
static inline void
sdb_times_add_since(struct sdb_times *sum, const struct sdb_times *now,
                    const struct sdb_times *before)
{
    sum->cpu_ns += sdb_since(now->cpu_ns, before->cpu_ns);
    sum->wait_ns += sdb_since(now->wait_ns, before->wait_ns);
    sum->blocked_ns += sdb_since(now->blocked_ns, before->blocked_ns);
    sum->gc_ns += sdb_since(now->gc_ns, before->gc_ns);
    sum->allocations += sdb_since(now->allocations, before->allocations);
}

#endif
