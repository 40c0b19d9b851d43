/* SPDX-License-Identifier: MIT
 *
 * allocations.c - see allocations.h. Nothing is read before the first span asks: until then a turn costs one load.
 */
#include "spans/allocations.h"

#include <ruby.h>
#include <stdbool.h>
#include "live_table.h"
#include "sdb_atomic.h"
#include "vm/gvl.h"

static struct {
    /* guarded by the GVL */
    VALUE symbol;
    bool asked;
    struct sdb_slot *holder; /* whose turn it is; NULL nobody known */
    uint64_t serial;         /* of its thread */
    uint64_t last;           /* process count when the turn began */
} alloc;

static uint64_t
process_count(void)
{
    return rb_gc_stat(
        alloc.symbol); /* 7 ns with a symbol: no object, no GC (CRuby's gc.c:rb_gc_stat, 3.1-4.0) */
}

void
sdb_allocations_start(void)
{
    alloc.asked = false;
    alloc.holder = NULL;
}

static void
settle(uint64_t now)
{
    struct sdb_slot *holder = alloc.holder;
    if (holder && sdb_load_relaxed(&holder->serial) == alloc.serial) {
        sdb_store_relaxed(&holder->allocations,
                          sdb_load_relaxed(&holder->allocations) + now - alloc.last);
    }
    alloc.last = now;
}

void
sdb_allocations_turn(struct sdb_slot *slot)
{
    uint64_t serial = slot ? sdb_load_relaxed(&slot->serial) : 0;
    if (!alloc.asked || (alloc.holder == slot && alloc.serial == serial)) return;
    settle(process_count());
    alloc.holder = slot;
    alloc.serial = serial;
}

uint64_t
sdb_allocations_of(struct sdb_slot *slot)
{
    if (!alloc.asked) {
        alloc.symbol = ID2SYM(rb_intern("total_allocated_objects"));
        alloc.asked = true;
        alloc.last = process_count();
    }
    if (!sdb_gvl_exact()) return process_count();
    sdb_allocations_turn(slot);
    settle(process_count());
    return sdb_load_relaxed(&slot->allocations);
}
