/* SPDX-License-Identifier: MIT
 *
 * walk_proof.c - what makes a reading true: all of it once more, and with new edges three times more. Why: PROTOCOL.md,
 * "One walk".
 *
 * Runs on: scanner thread, no GVL
 */
#include "scan/walk_proof.h"

#include "core/edge_set.h"
#include "sdb_atomic.h"
#include "scan/frame_code.h"
#include "scan/stack_copy.h"

enum { EDGE_PROOFS = 3 };

/* How many frames are on the stack now and certainly whole: memory above the top still shows the frames that were
 * there before, equal in each collect. 0: it is another stack. */
static uint32_t
depth_now(const struct sdb_walker *w, const struct sdb_slot *slot, const struct sdb_stack *s)
{
    struct sdb_stack now;
    if (sdb_stack_read_bounds(w, slot, &now) != 0 || now.ec != s->ec || now.low != s->low) return 0;
    return w->config.drop_top ? now.depth - 1 : now.depth;
}

uint32_t
sdb_walk_collect_again(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_stack *s,
                       const struct sdb_scan *scan, uint32_t from, uint32_t to)
{
    struct sdb_raw_frame f;
    uint32_t first = from ? from - 1 : 0, same = to;
    uint64_t low = UINT64_MAX, high = 0; /* of the eps that are compared */
    for (uint32_t i = from; i < to && !s->direct; i++) {
        uint64_t ep = w->raw[i - from].ep;
        if (!w->raw[i - from].on_stack) continue;
        if (ep < low) low = ep;
        if (ep > high) high = ep;
    }
    const struct sdb_frame *below = from ? &scan->frames[from - 1] : NULL;
    if (below && below->me && below->ep >= s->low && below->ep < low) low = below->ep;
    if (!sdb_stack_copy(w, s, first, low - 16, high + 8)) return first;
    if (from) {
        sdb_stack_read_frame(w, s, from - 1, &f);
        const struct sdb_frame *last = &scan->frames[from - 1];
        /* found unchanged in this very walk: the words of its env on the heap need no second look (see
         * sdb_frame_words_hold) */
        bool holds =
            sdb_stack_same_place(&f, last) && (!last->me || !sdb_frame_is_on_stack(s, f.ep) ||
                                               sdb_frame_method_entry(s, f.ep) == last->me);
        if (!holds) return from - 1;
        if (from != s->depth && f.pc != last->pc) to = same = from;
    }
    for (uint32_t i = from; i < to && same == to; i++) {
        const struct sdb_raw_frame *before = &w->raw[i - from];
        sdb_stack_read_frame(w, s, i, &f);
        if (!sdb_stack_same_frame(&f, before) || !sdb_frame_words_hold(s, before)) same = i;
        /* it moved on, so it stays itself, and what it had called is gone */
        else if (i + 1 != s->depth && f.pc != before->pc) same = i + 1;
    }
    sdb_fence_acquire();
    uint32_t depth = depth_now(w, slot, s);
    return same < depth ? same : depth;
}

static void
pause_randomly(struct sdb_walker *w)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    uint64_t end = w->config.host->monotonic_ns() + 100 + w->random % 500;
    while (w->config.host->monotonic_ns() < end) {}
}

/* The same frames again and again, at random moments, with as many on the stack before as after each. Returns the end of
 * what stayed. */
static uint32_t
collect_at_random(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_stack *s,
                  const struct sdb_scan *scan, uint32_t from, uint32_t to)
{
    uint32_t end = to;
    for (int i = 0; i < EDGE_PROOFS && end > from; i++) {
        pause_randomly(w);
        uint32_t depth = depth_now(w, slot, s);
        if (depth < end) end = depth;
        uint32_t same = sdb_walk_collect_again(w, slot, s, scan, from, end > from ? end : from);
        if (same < end) end = same;
    }
    return end;
}

static inline uint64_t
edge_of(uint64_t iseq, uint64_t ment, uint64_t pc, const struct sdb_raw_frame *f)
{
    return sdb_edge(iseq * 31 + ment, pc, f->shown_iseq, f->ment);
}

uint32_t
sdb_walk_prove_edges(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_stack *s,
                     const struct sdb_scan *scan, uint32_t from, uint32_t to, bool still)
{
    uint64_t iseq = 0, ment = 0, pc = 0;
    for (uint32_t i = from; i-- > 0;) { /* the caller: the nearest older frame that is shown */
        if (!scan->frames[i].entry) continue;
        iseq = scan->frames[i].iseq;
        ment = scan->frames[i].ment;
        pc = scan->frames[i].pc;
        break;
    }
    bool waited = still;
    uint32_t proven = to;
    for (uint32_t i = from; i < proven; i++) {
        const struct sdb_raw_frame *f = &w->raw[i - from];
        if (!f->shown) continue;
        uint64_t edge = edge_of(iseq, ment, pc, f);
        if (!sdb_edge_set_has(w->config.edges, edge)) {
            if (!waited) {
                uint32_t same = collect_at_random(w, slot, s, scan, from, to);
                proven = same > i ? same : i;
                waited = true;
                if (proven == i) break;
            }
            sdb_edge_set_add(w->config.edges, edge);
        }
        iseq = f->shown_iseq;
        ment = f->ment;
        pc = f->pc;
    }
    return proven;
}
