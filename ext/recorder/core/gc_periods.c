/* SPDX-License-Identifier: MIT
 *
 * gc_periods.c - see gc_periods.h.
 */
#include "core/gc_periods.h"

#include "sdb_atomic.h"

bool
sdb_gc_periods_push(struct sdb_gc_periods *q, const struct sdb_gc_period *period)
{
    uint64_t tail = sdb_load_relaxed(&q->tail);
    if (tail - sdb_load_acquire(&q->head) >= SDB_GC_PERIOD_COUNT) return false;
    struct sdb_gc_period *p = &q->periods[tail % SDB_GC_PERIOD_COUNT];
    sdb_store_relaxed(&p->serial, period->serial);
    sdb_store_relaxed(&p->begin_ns, period->begin_ns);
    sdb_store_relaxed(&p->ns, period->ns);
    sdb_store_relaxed(&p->flags, period->flags);
    sdb_store_relaxed(&p->count, period->count);
    sdb_store_release(&q->tail, tail + 1); /* pairs with gc_periods.c:sdb_gc_periods_take */
    return true;
}

bool
sdb_gc_periods_take(struct sdb_gc_periods *q, struct sdb_gc_period *out)
{
    uint64_t head = sdb_load_relaxed(&q->head);
    if (head == sdb_load_acquire(&q->tail)) return false;
    const struct sdb_gc_period *p = &q->periods[head % SDB_GC_PERIOD_COUNT];
    *out = (struct sdb_gc_period){
        .serial = sdb_load_relaxed(&p->serial),
        .begin_ns = sdb_load_relaxed(&p->begin_ns),
        .ns = sdb_load_relaxed(&p->ns),
        .flags = sdb_load_relaxed(&p->flags),
        .count = sdb_load_relaxed(&p->count),
    };
    sdb_store_release(&q->head, head + 1);
    return true;
}
