/* SPDX-License-Identifier: MIT
 *
 * walk.c - see walk.h. The order of one walk:
 *   bounds -> first collect (frames that differ from the last walk, and what their ep shows)
 *   -> code of each -> second collect (all of it again, must be equal) -> proof of new edges
 *   -> publication of new codes under the GC epoch -> commit to the slot's memory.
 * How a stack is read: stack_copy.c. The second collect and the proof: walk_proof.c.
 */
#include "scan/walk.h"

#include <stdlib.h>
#include "core/own_heap.h"
#include "core/testpoint.h"
#include "ring_format.h"
#include "sdb_atomic.h"
#include "scan/frame_code.h"
#include "scan/stack_copy.h"
#include "scan/walk_proof.h"

enum { VALUE_SLACK = 1024 };

struct sdb_walker *
sdb_walker_new(const struct sdb_walker_config *config)
{
    struct sdb_walker *w = sdb_own_calloc(1, sizeof *w);
    if (!w) return NULL;
    w->config = *config;
    w->random = config->host->monotonic_ns() | 1;
    w->raw_capacity = 512;
    w->raw = sdb_own_alloc(w->raw_capacity * sizeof *w->raw);
    if (!w->raw) {
        sdb_own_free(w);
        return NULL;
    }
    return w;
}

void
sdb_walker_free(struct sdb_walker *w)
{
    if (!w) return;
    sdb_own_free(w->raw);
    sdb_own_free(w->copy);
    sdb_own_free(w->values);
    sdb_own_free(w);
}

const struct sdb_walk_counters *
sdb_walker_counters(const struct sdb_walker *w)
{
    return &w->counters;
}

uint64_t
sdb_walker_memory_bytes(const struct sdb_walker *w)
{
    return w->copy_bytes + w->values_bytes + w->raw_capacity * sizeof *w->raw;
}

static bool
grow_raw(struct sdb_walker *w, uint32_t n)
{
    if (n <= w->raw_capacity) return true;
    uint32_t capacity = w->raw_capacity;
    while (capacity < n) capacity *= 2;
    struct sdb_raw_frame *bigger = sdb_own_realloc(w->raw, capacity * sizeof *bigger);
    if (!bigger) return false;
    w->raw = bigger;
    w->raw_capacity = capacity;
    return true;
}

static bool
grow_scan(struct sdb_scan *scan, uint32_t depth)
{
    if (depth <= scan->capacity) return true;
    uint32_t capacity = scan->capacity ? scan->capacity : 32;
    while (capacity < depth) capacity += capacity / 2;
    struct sdb_frame *bigger = sdb_own_realloc(scan->frames, capacity * sizeof *bigger);
    if (!bigger) return false;
    scan->frames = bigger;
    scan->capacity = capacity;
    return true;
}

static bool
is_invalid(const struct sdb_code *code)
{
    const struct sdb_named *named =
        (const struct sdb_named *)(uintptr_t)sdb_load_acquire(&code->named);
    return named && named->symbol.kind == SDB_CODE_INVALID;
}

/* Finds or adds the code of each shown frame in [from, *to). A code that failed its proof before (one method's iseq
 * with another's entry, read from two calls in turn) ends the part that is kept. False: no room. */
static bool
find_codes(struct sdb_walker *w, const struct sdb_stack *s, uint32_t from, uint32_t *to,
           uint64_t stamp)
{
    for (uint32_t i = from; i < *to; i++) {
        struct sdb_raw_frame *f = &w->raw[i - from];
        if (!f->shown) {
            f->entry = 0;
            continue;
        }
        if (!f->entry) f->entry = sdb_code_table_find(w->config.codes, f->shown_iseq, f->ment);
        if (!f->entry) {
            uint64_t proof = i + 1 == s->depth ? 0 : f->pc; /* the top's may be stale under a JIT */
            f->entry = sdb_code_table_add(w->config.codes, f->shown_iseq, f->ment, proof);
            if (!f->entry) return false;
        }
        struct sdb_code *code = sdb_code_table_entry(w->config.codes, f->entry);
        if (is_invalid(code)) *to = i;
        else code->stamp = stamp;
    }
    return true;
}

/* New codes become visible only when no GC can have freed them: it either saw them in young, or moved the
 * epoch, or is running now. */
static bool
publish(struct sdb_walker *w, uint64_t epoch)
{
    if (!sdb_code_table_has_added(w->config.codes)) return true;
    SDB_TESTPOINT(walk_publish);
    sdb_fence_seq_cst(); /* our store of young_tail before the load of the epoch; pairs with gc.c:mark_young */
    if (sdb_load_acquire(w->config.gc_epoch) != epoch || w->config.host->during_gc()) {
        sdb_code_table_retract(w->config.codes);
        return false;
    }
    sdb_code_table_publish(w->config.codes);
    return true;
}

static enum sdb_walk_result
commit(struct sdb_walker *w, const struct sdb_stack *s, struct sdb_scan *scan, uint32_t from,
       uint32_t to, bool torn)
{
    if (!grow_scan(scan, to)) return SDB_WALK_TORN;
    for (uint32_t i = from; i < to; i++) {
        const struct sdb_raw_frame *f = &w->raw[i - from];
        scan->frames[i] = (struct sdb_frame){.iseq = f->iseq,
                                             .pc = f->pc,
                                             .ep = f->ep,
                                             .self = f->self,
                                             .ment = f->ment,
                                             .entry = f->entry,
                                             .me = f->c_frame ? f->me : 0};
    }
    /* the newest frame of a JIT has a stale pc: no call site, so no line */
    if (to == s->depth && to > from && w->raw[to - 1 - from].jit) scan->frames[to - 1].pc = 0;
    scan->depth = to;
    scan->value_bytes = 0;
    for (uint32_t i = to; i-- > 0 && !s->direct;) {
        if (scan->frames[i].ep < s->low || scan->frames[i].ep >= s->high) continue;
        scan->value_bytes = scan->frames[i].ep + 8 - s->low;
        break;
    }
    scan->more = torn ? SDB_MORE_TORN_TOP : s->truncated ? SDB_MORE_TRUNCATED : 0;
    if (s->truncated) w->counters.truncated++;
    return torn ? SDB_WALK_TORN_TOP : SDB_WALK_WHOLE;
}

/* One try. *end: where the reading stopped being stable; equal to the depth when all of it was. */
static int
try_walk(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_scan *scan, bool still,
         struct sdb_stack *s, uint32_t *from, uint32_t *end)
{
    int bad = sdb_stack_read_bounds(w, slot, s);
    if (bad) return bad;
    SDB_TESTPOINT(walk_bounds);
    if (w->config.drop_top && !still && s->depth > 1) s->depth--;
    if (s->depth > SDB_MAX_DEPTH) {
        s->depth = SDB_MAX_DEPTH;
        s->truncated = true;
    }
    /* the values up to where they reached last time, and some more; an ep beyond is read by itself */
    if (!sdb_stack_copy(w, s, 0, s->low, s->low + scan->value_bytes + VALUE_SLACK))
        return SDB_WALK_NO_STACK;
    *from = sdb_stack_common_prefix(w, s, scan);
    if (!grow_raw(w, s->depth - *from)) return SDB_WALK_TORN;
    for (uint32_t i = *from; i < s->depth; i++) sdb_stack_read_frame(w, s, i, &w->raw[i - *from]);
    w->counters.frames_read += s->depth;
    *end = *from + sdb_frame_codes(w->config.codes, s, scan, *from, w->raw, s->depth - *from);
    SDB_TESTPOINT(walk_collected);
    if (!still) {
        sdb_fence_acquire();
        uint32_t same = sdb_walk_collect_again(w, slot, s, scan, *from, *end);
        if (same < *from) { /* it fell below what was unchanged: that part is certain only so far */
            if (!same) return SDB_WALK_TORN;
            *from = same;
        }
        *end = same;
    }
    if (still && *end == s->depth && s->depth < SDB_MAX_DEPTH &&
        !sdb_stack_bounds_hold(w, slot, s)) {
        return SDB_WALK_TORN; /* it was not still after all */
    }
    return 0;
}

enum sdb_walk_result
sdb_walk(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_scan *scan, bool still,
         uint64_t stamp, uint32_t *changed_from)
{
    uint64_t epoch = sdb_load_acquire(w->config.gc_epoch);
    if ((epoch & 1) || w->config.host->during_gc()) return SDB_WALK_GC;

    struct sdb_stack s = {0};
    uint32_t from = 0, end = 0;
    int result = SDB_WALK_TORN;
    int torn_tries =
        0; /* it changed to another fiber's stack meanwhile: that takes no time to find out */
    for (int tries = 0; tries < SDB_WALK_TRIES; tries++) {
        result = try_walk(w, slot, scan, still, &s, &from, &end);
        if (result == SDB_WALK_NO_STACK || result == SDB_WALK_UNREADABLE) return result;
        if (result == SDB_WALK_TORN && torn_tries++ < SDB_WALK_TORN_TRIES) tries--;
        if (result == 0 && end == s.depth) {
            end = sdb_walk_prove_edges(w, slot, &s, scan, from, end, still);
            if (end == s.depth) break;
        }
    }
    if (result != 0) return SDB_WALK_TORN;
    bool torn = end < s.depth || (w->config.drop_top && !still);
    if (torn && end < s.depth) end = sdb_walk_prove_edges(w, slot, &s, scan, from, end, still);
    uint32_t proven = end;
    if (!find_codes(w, &s, from, &end, stamp)) {
        sdb_code_table_retract(w->config.codes);
        return SDB_WALK_BUSY;
    }
    if (end < proven) torn = true;
    if (!publish(w, epoch)) return SDB_WALK_GC;
    if (end == 0) return SDB_WALK_TORN;
    *changed_from = from < end ? from : end;
    return commit(w, &s, scan, from, end, torn);
}

bool
sdb_walk_moved(struct sdb_walker *w, const struct sdb_slot *slot, const struct sdb_scan *scan)
{
    struct sdb_stack s = {0};
    if (sdb_stack_read_bounds(w, slot, &s) != 0) return false;
    if (s.depth != scan->depth) return true;
    if (!s.depth || !sdb_stack_copy(w, &s, s.depth - 1, 0, 0)) return false;
    struct sdb_raw_frame f;
    sdb_stack_read_frame(w, &s, s.depth - 1, &f);
    const struct sdb_frame *old = &scan->frames[s.depth - 1];
    return !sdb_stack_unchanged(&s, &f, old, old->pc != 0);
}

uint64_t
sdb_walk_where(const struct sdb_walker *w, const struct sdb_frame *f)
{
    if (!f->iseq || !f->pc) return 0;
    const struct sdb_code *code = sdb_code_table_entry(w->config.codes, f->entry);
    const struct sdb_named *named =
        (const struct sdb_named *)(uintptr_t)sdb_load_acquire(&code->named);
    if (!named) return f->pc; /* raw: the reader knows base when the name has come */
    const struct sdb_symbol *symbol = &named->symbol;
    if (!symbol->base || f->pc < symbol->base ||
        f->pc > symbol->base + 8ull * symbol->instruction_count) {
        return 0;
    }
    /* pc points behind the instruction; all instructions of a line are one `where`, so that a thread that
     * works its way through one line writes nothing */
    uint32_t index = f->pc == symbol->base ? 0 : (uint32_t)((f->pc - symbol->base) / 8 - 1);
    uint32_t low = 0, high = symbol->line_run_count;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (symbol->line_runs[middle].index <= index) low = middle;
        else high = middle;
    }
    return symbol->line_run_count ? (uint64_t)symbol->line_runs[low].index << 1 | 1
                                  : (uint64_t)index << 1 | 1;
}
