/* SPDX-License-Identifier: MIT
 *
 * mailbox.c - see mailbox.h.
 */
#include "core/mailbox.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static void
wake(struct sdb_mailbox *box)
{
    syscall(SYS_futex, &box->asked, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void
sdb_mailbox_ask(struct sdb_mailbox *box, uint64_t what)
{
    if ((sdb_or_seq_cst(&box->asked, what) & what) != what) wake(box);
}

void
sdb_mailbox_call(struct sdb_mailbox *box, uint64_t what)
{
    /* the futex compares `asked`: made to differ, so that a wait about to begin returns at once */
    sdb_or_seq_cst(&box->asked, what);
    wake(box);
}

uint64_t
sdb_mailbox_take(struct sdb_mailbox *box)
{
    return sdb_exchange_acq_rel(&box->asked, 0);
}

void
sdb_mailbox_figures_begin(struct sdb_mailbox *box)
{
    sdb_store_relaxed(&box->gvl_ns, 0);
    sdb_store_relaxed(&box->memory_bytes, 0);
}

void
sdb_mailbox_gc_figures(const struct sdb_mailbox *box, struct sdb_gc_figures *out)
{
    *out = (struct sdb_gc_figures){
        .count = sdb_load_relaxed(&box->gc.count),
        .heap_live_slots = sdb_load_relaxed(&box->gc.heap_live_slots),
        .malloc_increase_bytes = sdb_load_relaxed(&box->gc.malloc_increase_bytes),
        .oldmalloc_increase_bytes = sdb_load_relaxed(&box->gc.oldmalloc_increase_bytes),
    };
}

void
sdb_mailbox_set_gc_figures(struct sdb_mailbox *box, const struct sdb_gc_figures *figures)
{
    sdb_store_relaxed(&box->gc.count, figures->count);
    sdb_store_relaxed(&box->gc.heap_live_slots, figures->heap_live_slots);
    sdb_store_relaxed(&box->gc.malloc_increase_bytes, figures->malloc_increase_bytes);
    sdb_store_relaxed(&box->gc.oldmalloc_increase_bytes, figures->oldmalloc_increase_bytes);
}
