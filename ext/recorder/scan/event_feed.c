/* SPDX-License-Identifier: MIT
 *
 * event_feed.c - see event_feed.h.
 */
#include "scan/event_feed.h"

#include <stdlib.h>
#include "core/event_queue.h"
#include "sdb_atomic.h"
#include "scan/thread_table.h"

static struct sdb_abandoned_span *abandoned; /* shared: atomic; a stack */

bool
sdb_events_push(struct sdb_thread_table *threads, struct sdb_slot *slot, enum sdb_event_type type,
                uint64_t at_ns, const void *payload, size_t bytes, size_t keep)
{
    struct sdb_event_queue *q = (struct sdb_event_queue *)(uintptr_t)sdb_load_relaxed(&slot->queue);
    if (!q) {
        q = sdb_event_queue_new(SDB_SPAN_QUEUE_BYTES);
        sdb_store_release(&slot->queue,
                          (uint64_t)(uintptr_t)q); /* pairs with open_work.c:sdb_work_drain */
    }
    if (!q || !sdb_event_queue_push_keeping(q, type, at_ns, payload, bytes, keep)) return false;
    /* 3.2+: who runs is visited at the next tick anyhow */
    if (sdb_load_relaxed(&slot->flags) & SDB_THREAD_INFERRED)
        sdb_thread_activate(threads, slot, false);
    return true;
}

void
sdb_events_abandon(uint64_t id, uint64_t at_ns)
{
    struct sdb_abandoned_span *a = malloc(sizeof *a);
    if (!a) return;
    a->id = id;
    a->at_ns = at_ns;
    a->next = __atomic_load_n(&abandoned, __ATOMIC_RELAXED);
    /* release pairs with event_feed.c:sdb_events_take_abandoned */
    while (!__atomic_compare_exchange_n(&abandoned, &a->next, a, 0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {}
}

struct sdb_abandoned_span *
sdb_events_take_abandoned(void)
{
    if (!__atomic_load_n(&abandoned, __ATOMIC_RELAXED)) return NULL;
    return __atomic_exchange_n(&abandoned, NULL, __ATOMIC_ACQUIRE);
}

void
sdb_events_forget_abandoned(void)
{
    struct sdb_abandoned_span *a = sdb_events_take_abandoned();
    while (a) {
        struct sdb_abandoned_span *next = a->next;
        free(a);
        a = next;
    }
}
