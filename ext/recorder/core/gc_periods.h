/* SPDX-License-Identifier: MIT
 *
 * gc_periods.h - finished stretches of GC on their way from the threads that collected to the scanner: a bounded
 * queue without locks. One producer at a time, as the VM's own GC lock has it; one consumer.
 */
#ifndef SDB_GC_PERIODS_H
#define SDB_GC_PERIODS_H

#include <stdbool.h>
#include <stdint.h>

enum { SDB_GC_PERIOD_COUNT = 1024 };

struct sdb_gc_period {
    uint64_t serial; /* of the thread that collected */
    uint64_t begin_ns, ns;
    uint64_t flags; /* SDB_GC_* */
    /* of GC.stat as it ended */
    uint64_t count;
};

struct sdb_gc_periods { /* zero-filled: empty */
    /* shared: atomic */
    struct sdb_gc_period periods[SDB_GC_PERIOD_COUNT];
    uint64_t head, tail;
};

/* False when the queue is full: the period is not in the log. Runs on: GC (no alloc, no raise). */
bool sdb_gc_periods_push(struct sdb_gc_periods *q, const struct sdb_gc_period *period);
/* The next period not yet taken; false when there is none. Runs on: scanner. */
bool sdb_gc_periods_take(struct sdb_gc_periods *q, struct sdb_gc_period *out);

#endif
