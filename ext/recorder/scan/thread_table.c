/* SPDX-License-Identifier: MIT
 *
 * thread_table.c - see thread_table.h. Segments are never freed, so a pointer to a slot is always readable;
 * `life` and `thread_value` say whether it still means the thread one thinks of.
 */
#include "scan/thread_table.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/event_queue.h"
#include "core/string_table.h"
#include "sdb_atomic.h"

static struct sdb_slot *
segment_at(struct sdb_thread_table *t, uint32_t segment)
{
    uint64_t p = sdb_load_acquire(&t->live.segments[segment]);
    if (p) return (struct sdb_slot *)(uintptr_t)p;
    struct sdb_slot *fresh = aligned_alloc(64, SDB_SEGMENT_SLOTS * sizeof *fresh);
    if (!fresh) return NULL;
    memset(fresh, 0, SDB_SEGMENT_SLOTS * sizeof *fresh);
    for (uint32_t i = 0; i < SDB_SEGMENT_SLOTS; i++)
        fresh[i].index = segment * SDB_SEGMENT_SLOTS + i;
    uint64_t expected = 0;
    if (!sdb_cas_acq_rel(&t->live.segments[segment], &expected, (uint64_t)(uintptr_t)fresh)) {
        free(fresh); /* another Ractor was faster */
        return (struct sdb_slot *)(uintptr_t)expected;
    }
    uint64_t used = sdb_load_relaxed(&t->live.segments_used);
    while (used < segment + 1 && !sdb_cas_acq_rel(&t->live.segments_used, &used, segment + 1)) {}
    return fresh;
}

static struct sdb_slot *
claim_free(struct sdb_thread_table *t)
{
    uint64_t hint = sdb_load_relaxed(&t->claim_hint);
    for (uint32_t i = 0; i < SDB_SLOT_COUNT; i++) {
        uint32_t index = (uint32_t)((hint + i) % SDB_SLOT_COUNT);
        /* do not open a new segment while an old one may have room: wrap at the used part first */
        if (index / SDB_SEGMENT_SLOTS >= sdb_load_relaxed(&t->live.segments_used) && hint) {
            hint = 0;
            i = (uint32_t)-1;
            continue;
        }
        struct sdb_slot *segment = segment_at(t, index / SDB_SEGMENT_SLOTS);
        if (!segment) return NULL;
        struct sdb_slot *slot = &segment[index % SDB_SEGMENT_SLOTS];
        uint64_t expected = SDB_SLOT_FREE;
        if (sdb_load_relaxed(&slot->life) == SDB_SLOT_FREE &&
            sdb_cas_acq_rel(&slot->life, &expected, SDB_SLOT_CLAIMED)) {
            sdb_store_relaxed(&t->claim_hint, index + 1);
            return slot;
        }
    }
    return NULL;
}

struct sdb_slot *
sdb_thread_claim(struct sdb_thread_table *t, const struct sdb_thread_birth *birth)
{
    struct sdb_slot *slot = claim_free(t);
    if (!slot) {
        sdb_add_relaxed(&t->refused, 1);
        return NULL;
    }
    /* relaxed: published by the release of `life` */
    sdb_store_relaxed(&slot->seq, sdb_load_relaxed(&slot->seq) + 2);
    sdb_store_relaxed(&slot->state, birth->state);
    sdb_store_relaxed(&slot->since_ns, birth->now_ns);
    sdb_store_relaxed(&slot->wait_ns, 0);
    sdb_store_relaxed(&slot->blocked_ns, 0);
    sdb_store_relaxed(&slot->gc_ns, 0);
    sdb_store_relaxed(&slot->resumes, 1);
    sdb_store_relaxed(&slot->tid, birth->tid);
    sdb_store_relaxed(&slot->thread_value, birth->thread_value);
    sdb_store_relaxed(&slot->th, birth->th);
    sdb_store_relaxed(&slot->root_ec, birth->root_ec);
    sdb_store_relaxed(&slot->serial, sdb_add_relaxed(&t->next_serial, 1) + 1);
    sdb_store_relaxed(&slot->birth_ns, birth->now_ns);
    sdb_store_relaxed(&slot->flags, birth->flags);
    sdb_store_relaxed(&slot->death_ns, 0);
    sdb_store_relaxed(&slot->begin_cpu_ns, birth->cpu_ns);
    sdb_store_relaxed(&slot->end_cpu_ns, 0);
    sdb_store_relaxed(&slot->cpu, UINT64_MAX); /* not known */
    sdb_store_relaxed(&slot->name, 0);
    sdb_store_relaxed(&slot->queue, 0);
    sdb_store_relaxed(&slot->span_id, 0);
    sdb_store_relaxed(&slot->context, 0);
    sdb_store_relaxed(&slot->allocations, 0);
    sdb_store_relaxed(&slot->tags_token, 0);
    sdb_store_release(&slot->life, SDB_SLOT_LIVE); /* pairs with visit.c:sdb_visit */
    sdb_add_relaxed(&t->live_count, 1);
    sdb_thread_activate(t, slot, true);
    return slot;
}

void
sdb_thread_ended(struct sdb_thread_table *t, struct sdb_slot *slot, uint64_t now_ns,
                 uint64_t cpu_ns)
{
    uint64_t expected = SDB_SLOT_LIVE;
    sdb_store_relaxed(&slot->death_ns, now_ns);
    sdb_store_relaxed(&slot->end_cpu_ns, cpu_ns);
    if (!sdb_cas_acq_rel(&slot->life, &expected, SDB_SLOT_DEAD)) return;
    if (!(sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN)) {
        sdb_add_relaxed(&t->live_count, (uint64_t)-1);
        sdb_store_relaxed(&t->last_ended_ns, now_ns);
    }
    sdb_thread_activate(t, slot, true);
}

void
sdb_thread_enter(struct sdb_slot *slot, uint64_t state, uint64_t now_ns)
{
    uint64_t seq = sdb_load_relaxed(&slot->seq), old = sdb_load_relaxed(&slot->state);
    uint64_t since = sdb_load_relaxed(&slot->since_ns), spent = now_ns > since ? now_ns - since : 0;
    sdb_store_relaxed(&slot->seq, seq + 1);
    sdb_fence_release(); /* odd before the fields; pairs with sdb_thread_view */
    uint64_t *total = old == SDB_GVL_WAIT  ? &slot->wait_ns
                      : old == SDB_BLOCKED ? &slot->blocked_ns
                      : old == SDB_GC      ? &slot->gc_ns
                                           : NULL;
    if (total) sdb_store_relaxed(total, sdb_load_relaxed(total) + spent);
    sdb_store_relaxed(&slot->state, state);
    sdb_store_relaxed(&slot->since_ns, now_ns);
    if (state == SDB_RUNNING && old != SDB_GC) {
        sdb_store_relaxed(&slot->resumes, sdb_load_relaxed(&slot->resumes) + 1);
    }
    sdb_store_release(&slot->seq, seq + 2);
}

uint64_t
sdb_thread_last_blocked(const struct sdb_thread_table *t)
{
    const struct sdb_slot *slot;
    uint64_t last = 0;
    sdb_thread_each (slot, t) {
        if (sdb_load_acquire(&slot->life) != SDB_SLOT_LIVE) continue;
        uint64_t flags = sdb_load_relaxed(&slot->flags), since = sdb_load_relaxed(&slot->since_ns);
        if (flags & SDB_THREAD_OWN) continue;
        /* on 3.1 the state is not in the slot; its since is when the scanner last saw the thread run */
        if (!(flags & SDB_THREAD_INFERRED) && sdb_load_relaxed(&slot->state) != SDB_BLOCKED)
            return 0;
        if (since > last) last = since;
    }
    return last;
}

bool
sdb_thread_set_name(struct sdb_thread_table *t, struct sdb_slot *slot, const char *text,
                    size_t bytes)
{
    uint64_t words[SDB_NAME_WORDS] = {0};
    bytes = sdb_text_put((char *)words, text, bytes, sizeof words);
    struct sdb_slot_name *name = (struct sdb_slot_name *)(uintptr_t)sdb_load_relaxed(&slot->name);
    if (!name) {
        name = calloc(1, sizeof *name);
        if (!name) return false;
        sdb_store_release(&slot->name, (uint64_t)(uintptr_t)name); /* pairs with get_name */
    } else if (name->bytes == bytes && !memcmp(name->words, words, sizeof words)) {
        return true;
    }
    uint64_t seq = sdb_load_relaxed(&name->seq);
    sdb_store_relaxed(&name->seq, seq + 1);
    sdb_fence_release();
    sdb_store_relaxed(&name->bytes, bytes);
    for (int i = 0; i < SDB_NAME_WORDS; i++) sdb_store_relaxed(&name->words[i], words[i]);
    sdb_store_release(&name->seq, seq + 2);
    sdb_thread_activate(t, slot,
                        true); /* it may sleep for ever and not be visited for its own sake */
    return true;
}

int
sdb_thread_get_name(const struct sdb_slot *slot, char *text, uint64_t *version)
{
    const struct sdb_slot_name *name =
        (const struct sdb_slot_name *)(uintptr_t)sdb_load_acquire(&slot->name);
    *version = 0;
    if (!name) return -1;
    uint64_t seq = sdb_load_acquire(&name->seq);
    if ((seq & 1) || !seq) return -1;
    uint64_t bytes = sdb_load_relaxed(&name->bytes);
    for (int i = 0; i < SDB_NAME_WORDS; i++) {
        uint64_t word = sdb_load_relaxed(&name->words[i]);
        memcpy(text + 8 * i, &word, 8);
    }
    sdb_fence_acquire();
    if (sdb_load_relaxed(&name->seq) != seq) return -1;
    *version = seq;
    return (int)bytes;
}

bool
sdb_thread_view(const struct sdb_slot *slot, struct sdb_state_view *out)
{
    for (int tries = 0; tries < 4; tries++) {
        uint64_t seq = sdb_load_acquire(&slot->seq);
        if (seq & 1) continue;
        struct sdb_state_view v = {
            .state = sdb_load_relaxed(&slot->state),
            .since_ns = sdb_load_relaxed(&slot->since_ns),
            .wait_ns = sdb_load_relaxed(&slot->wait_ns),
            .blocked_ns = sdb_load_relaxed(&slot->blocked_ns),
            .gc_ns = sdb_load_relaxed(&slot->gc_ns),
            .resumes = sdb_load_relaxed(&slot->resumes),
            .tid = sdb_load_relaxed(&slot->tid),
        };
        sdb_fence_acquire();
        if (sdb_load_relaxed(&slot->seq) == seq) {
            *out = v;
            return true;
        }
    }
    return false;
}

void
sdb_thread_activate(struct sdb_thread_table *t, struct sdb_slot *slot, bool wake)
{
    uint64_t index = slot->index;
    /* An unconditional read-modify-write: it orders the caller's stores to the slot before the scanner's
     * clearing of the bit (scanner.c:visit_active) and before our look at `parked` (scanner.c:park). To
     * test the bit first would let both sides miss each other. */
    sdb_or_seq_cst(&t->active[index / SDB_SEGMENT_SLOTS], 1ull << (index % SDB_SEGMENT_SLOTS));
    if (wake && sdb_load_seq_cst(&t->parked) && sdb_exchange_acq_rel(&t->parked, 0)) {
        syscall(SYS_futex, &t->parked, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

void
sdb_thread_table_reset(struct sdb_thread_table *t)
{
    /* segments stay: a hook that is just leaving may still hold a slot pointer */
    struct sdb_slot *slot;
    sdb_thread_each (slot, t) {
        free((void *)(uintptr_t)sdb_load_relaxed(&slot->name));
        sdb_event_queue_free((struct sdb_event_queue *)(uintptr_t)sdb_load_relaxed(&slot->queue));
        uint64_t seq = sdb_load_relaxed(&slot->seq);
        struct sdb_slot kept = {.seq = (seq + 2) & ~1ull, .scan = slot->scan, .index = slot->index};
        *slot = kept; /* the scanner's buffer is kept for the slot's next thread */
        sdb_store_relaxed(&t->active[slot->index / SDB_SEGMENT_SLOTS], 0);
    }
    sdb_store_relaxed(&t->live_count, 0);
    sdb_store_relaxed(&t->last_ended_ns, 0);
    sdb_store_relaxed(&t->claim_hint, 0);
    sdb_store_relaxed(&t->parked, 0);
}

void
sdb_thread_table_forked(struct sdb_thread_table *t)
{
    struct sdb_slot *slot;
    sdb_thread_each (slot, t) slot->scan = 0;
}
