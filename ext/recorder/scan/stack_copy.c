/* SPDX-License-Identifier: MIT
 *
 * stack_copy.c - see stack_copy.h.
 */
#include "scan/stack_copy.h"

#include <stdlib.h>
#include "core/own_heap.h"
#include "core/safe_read.h"

int
sdb_stack_read_bounds(const struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_stack *s)
{
    const struct sdb_layout *l = &w->config.layout;
    s->ec = sdb_stack_word(slot->th + l->thread_ec);
    if (!s->ec) return SDB_WALK_NO_STACK;
    s->root = s->ec == slot->root_ec;
    uint64_t size;
    if (s->root) {
        s->low = sdb_stack_word(s->ec + l->ec_vm_stack);
        size = sdb_stack_word(s->ec + l->ec_vm_stack_size);
        s->cfp = sdb_stack_word(s->ec + l->ec_cfp);
    } else {
        uint64_t words[3];
        if (l->ec_vm_stack != 0 || l->ec_vm_stack_size != 8 || l->ec_cfp != 16)
            return SDB_WALK_UNREADABLE;
        if (sdb_safe_read(words, s->ec, sizeof words) != 0) return SDB_WALK_NO_STACK;
        s->low = words[0];
        size = words[1];
        s->cfp = words[2];
    }
    if (!s->low || !s->cfp || !size) return SDB_WALK_NO_STACK;
    if ((s->low | s->cfp) & 7 || size < 1024 || size > 1 << 24) return SDB_WALK_TORN;
    s->high = s->low + 8 * size;
    if (s->cfp < s->low || s->cfp >= s->high || (s->high - s->cfp) % l->cfp_bytes)
        return SDB_WALK_TORN;
    s->depth = (uint32_t)((s->high - s->cfp) / l->cfp_bytes);
    s->direct = s->root && (w->config.stacks_last || slot->thread_value == w->config.main_thread);
    return 0;
}

bool
sdb_stack_bounds_hold(const struct sdb_walker *w, const struct sdb_slot *slot,
                      const struct sdb_stack *s)
{
    struct sdb_stack now;
    return sdb_stack_read_bounds(w, slot, &now) == 0 && now.ec == s->ec && now.cfp == s->cfp &&
           now.low == s->low;
}

static bool
grow_copy(uint8_t **copy, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity) return true;
    uint8_t *bigger = sdb_own_realloc(*copy, bytes + bytes / 2);
    if (!bigger) return false;
    *copy = bigger;
    *capacity = bytes + bytes / 2;
    return true;
}

bool
sdb_stack_copy(struct sdb_walker *w, struct sdb_stack *s, uint32_t from, uint64_t values_low,
               uint64_t values_high)
{
    if (s->direct) {
        s->frames_end = s->high;
        return true;
    }
    size_t bytes = (size_t)(s->depth - from) * w->config.layout.cfp_bytes;
    uint64_t newest = s->high - (uint64_t)s->depth * w->config.layout.cfp_bytes;
    if (values_low < s->low) values_low = s->low;
    if (values_high > newest) values_high = newest;
    size_t value_bytes = values_high > values_low ? values_high - values_low : 0;
    if (!grow_copy(&w->copy, &w->copy_bytes, bytes) ||
        !grow_copy(&w->values, &w->values_bytes, value_bytes))
        return false;
    struct sdb_safe_piece pieces[] = {
        {.dst = w->copy, .src = newest, .bytes = bytes},
        {.dst = w->values, .src = values_low, .bytes = value_bytes},
    };
    if (bytes && (sdb_safe_readv(pieces, value_bytes ? 2 : 1) < 1 || pieces[0].err)) return false;
    /* so that frames_end - cfp_bytes * (i + 1) is frame i, as on the stack itself */
    s->frames_end = (uint64_t)(uintptr_t)w->copy + (uint64_t)s->depth * w->config.layout.cfp_bytes;
    bool have_values = value_bytes && !pieces[1].err;
    s->values = have_values ? w->values : NULL;
    s->values_low = values_low;
    s->values_high = values_high;
    return true;
}

uint32_t
sdb_stack_common_prefix(const struct sdb_walker *w, const struct sdb_stack *s,
                        const struct sdb_scan *scan)
{
    uint32_t limit = s->depth < scan->depth ? s->depth : scan->depth, i;
    for (i = 0; i < limit; i++) {
        struct sdb_raw_frame f;
        sdb_stack_read_frame(w, s, i, &f);
        if (!sdb_stack_unchanged(s, &f, &scan->frames[i], true)) break;
    }
    return i;
}
