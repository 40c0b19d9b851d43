/* SPDX-License-Identifier: MIT
 *
 * walk.c - see walk.h. The order of one walk:
 *   bounds -> first collect (frames that differ from the last walk, and what their ep shows)
 *   -> code of each -> second collect (all of it again, must be equal) -> proof of new edges
 *   -> publication of new codes under the GC epoch -> commit to the slot's memory.
 */
#include "vm/walk.h"

#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "core/safe_read.h"
#include "ring_format.h"
#include "sdb_atomic.h"
#include "vm/frame_code.h"

enum { VALUE_SLACK = 1024 };

struct sdb_walker {
    struct sdb_walker_config config; /* immutable */
    /* owner: scanner */
    struct sdb_raw_frame *raw; /* of the frames that changed: raw[i - first] */
    uint8_t *copy, *values;    /* frames and values of a stack that is read safely */
    size_t copy_bytes, values_bytes;
    uint32_t raw_capacity;
    uint64_t random;
    struct sdb_walk_counters counters;
};

struct sdb_walker *
sdb_walker_new(const struct sdb_walker_config *config)
{
    struct sdb_walker *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->config = *config;
    w->random = sdb_monotonic_ns() | 1;
    w->raw_capacity = 512;
    w->raw = malloc(w->raw_capacity * sizeof *w->raw);
    if (!w->raw) {
        free(w);
        return NULL;
    }
    return w;
}

void
sdb_walker_free(struct sdb_walker *w)
{
    if (!w) return;
    free(w->raw);
    free(w->copy);
    free(w->values);
    free(w);
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

static inline uint64_t
word_at(uint64_t address)
{
    return sdb_load_relaxed((const uint64_t *)(uintptr_t)address);
}

/* Where the stack lies now. 0 or a walk result. th is pinned through its Thread, so th->ec and the root ec
 * may be loaded; a fiber's ec may be freed meanwhile and is read safely. */
static int
read_bounds(const struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_stack *s)
{
    const struct sdb_layout *l = &w->config.layout;
    s->ec = word_at(slot->th + l->thread_ec);
    if (!s->ec) return SDB_WALK_NO_STACK;
    s->root = s->ec == slot->root_ec;
    uint64_t size;
    if (s->root) {
        s->low = word_at(s->ec + l->ec_vm_stack);
        size = word_at(s->ec + l->ec_vm_stack_size);
        s->cfp = word_at(s->ec + l->ec_cfp);
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

static bool
bounds_hold(const struct sdb_walker *w, const struct sdb_slot *slot, const struct sdb_stack *s)
{
    struct sdb_stack now;
    return read_bounds(w, slot, &now) == 0 && now.ec == s->ec && now.cfp == s->cfp &&
           now.low == s->low;
}

static bool
grow_copy(uint8_t **copy, size_t *capacity, size_t bytes)
{
    if (bytes <= *capacity) return true;
    uint8_t *bigger = realloc(*copy, bytes + bytes / 2);
    if (!bigger) return false;
    *copy = bigger;
    *capacity = bytes + bytes / 2;
    return true;
}

/* For a stack that may vanish: frames [from, depth) and the values [values_low, values_high) into our copies, with
 * one system call, so that the two are as little apart in time as can be. */
static bool
copy_stack(struct sdb_walker *w, struct sdb_stack *s, uint32_t from, uint64_t values_low,
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

static inline void
read_frame(const struct sdb_walker *w, const struct sdb_stack *s, uint32_t i,
           struct sdb_raw_frame *f)
{
    const struct sdb_layout *l = &w->config.layout;
    uint64_t cfp = s->frames_end - (uint64_t)l->cfp_bytes * (i + 1);
    f->iseq = word_at(cfp + l->cfp_iseq);
    f->pc = word_at(cfp + l->cfp_pc);
    f->ep = word_at(cfp + l->cfp_ep);
    f->self = word_at(cfp + l->cfp_self);
    f->jit = word_at(cfp + l->cfp_jit_return);
}

static inline bool
same_frame(const struct sdb_raw_frame *a, const struct sdb_raw_frame *b)
{
    return a->iseq == b->iseq && a->ep == b->ep && a->self == b->self;
}

static inline bool
same_place(const struct sdb_raw_frame *f, const struct sdb_frame *old)
{
    return f->iseq == old->iseq && f->ep == old->ep && f->self == old->self;
}

/* Whether a frame is the one of the last walk. iseq, ep and pc are not enough: one call site may run a C method and
 * then another at the same place of the stack (all of them have iseq 0), or one iseq for objects of two classes. The
 * receiver tells the classes apart, the method entry tells C methods apart. with_pc: false for a top frame whose pc
 * may move on. */
static inline bool
unchanged(const struct sdb_stack *s, const struct sdb_raw_frame *f, const struct sdb_frame *old,
          bool with_pc)
{
    if (!same_place(f, old) || (with_pc && f->pc != old->pc)) return false;
    return !old->me || sdb_frame_method_entry(s, f->ep) == old->me;
}

/* Index of the first frame that differs from the last walk. */
static uint32_t
common_prefix(const struct sdb_walker *w, const struct sdb_stack *s, const struct sdb_scan *scan)
{
    uint32_t limit = s->depth < scan->depth ? s->depth : scan->depth, i;
    for (i = 0; i < limit; i++) {
        struct sdb_raw_frame f;
        read_frame(w, s, i, &f);
        if (!unchanged(s, &f, &scan->frames[i], true)) break;
    }
    return i;
}

static bool
grow_raw(struct sdb_walker *w, uint32_t n)
{
    if (n <= w->raw_capacity) return true;
    uint32_t capacity = w->raw_capacity;
    while (capacity < n) capacity *= 2;
    struct sdb_raw_frame *bigger = realloc(w->raw, capacity * sizeof *bigger);
    if (!bigger) return false;
    w->raw = bigger;
    w->raw_capacity = capacity;
    return true;
}

/* How many frames are on the stack now and certainly whole: memory above the top still shows the frames that were
 * there before, equal in each collect. 0: it is another stack. */
static uint32_t
depth_now(const struct sdb_walker *w, const struct sdb_slot *slot, const struct sdb_stack *s)
{
    struct sdb_stack now;
    if (read_bounds(w, slot, &now) != 0 || now.ec != s->ec || now.low != s->low) return 0;
    return w->config.drop_top ? now.depth - 1 : now.depth;
}

/* Reads frames [from, to) again; returns the first index that is no longer as in w->raw (to: none). The
 * top frame's pc may move. Frame from - 1, the last unchanged one, must hold too. */
static uint32_t
collect_again(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_stack *s,
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
    if (!copy_stack(w, s, first, low - 16, high + 8)) return first;
    if (from) {
        read_frame(w, s, from - 1, &f);
        const struct sdb_frame *last = &scan->frames[from - 1];
        /* found unchanged in this very walk: the words of its env on the heap need no second look (see
         * sdb_frame_words_hold) */
        bool holds = same_place(&f, last) && (!last->me || !sdb_frame_is_on_stack(s, f.ep) ||
                                              sdb_frame_method_entry(s, f.ep) == last->me);
        if (!holds) return from - 1;
        if (from != s->depth && f.pc != last->pc) to = same = from;
    }
    for (uint32_t i = from; i < to && same == to; i++) {
        const struct sdb_raw_frame *before = &w->raw[i - from];
        read_frame(w, s, i, &f);
        if (!same_frame(&f, before) || !sdb_frame_words_hold(s, before)) same = i;
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
    uint64_t end = sdb_monotonic_ns() + 100 + w->random % 500;
    while (sdb_monotonic_ns() < end) {}
}

static inline uint64_t
edge_of(uint64_t iseq, uint64_t ment, uint64_t pc, const struct sdb_raw_frame *f)
{
    return sdb_edge(iseq * 31 + ment, pc, f->shown_iseq, f->ment);
}

/* Proves the edges of frames [from, to) that were never seen: they must be there once more, a random moment
 * later. Returns the end of what is proven. */
static uint32_t
prove_edges(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_stack *s,
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
                pause_randomly(w);
                uint32_t same = collect_again(w, slot, s, scan, from, to);
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

static bool
grow_scan(struct sdb_scan *scan, uint32_t depth)
{
    if (depth <= scan->capacity) return true;
    uint32_t capacity = scan->capacity ? scan->capacity : 32;
    while (capacity < depth) capacity += capacity / 2;
    struct sdb_frame *bigger = realloc(scan->frames, capacity * sizeof *bigger);
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
    sdb_fence_seq_cst(); /* our store of young_tail before the load of the epoch; pairs with gc.c:mark */
    if (sdb_load_acquire(w->config.gc_epoch) != epoch || w->config.during_gc()) {
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
    int bad = read_bounds(w, slot, s);
    if (bad) return bad;
    if (w->config.drop_top && !still && s->depth > 1) s->depth--;
    if (s->depth > SDB_MAX_DEPTH) {
        s->depth = SDB_MAX_DEPTH;
        s->truncated = true;
    }
    /* the values up to where they reached last time, and some more; an ep beyond is read by itself */
    if (!copy_stack(w, s, 0, s->low, s->low + scan->value_bytes + VALUE_SLACK))
        return SDB_WALK_NO_STACK;
    *from = common_prefix(w, s, scan);
    if (!grow_raw(w, s->depth - *from)) return SDB_WALK_TORN;
    for (uint32_t i = *from; i < s->depth; i++) read_frame(w, s, i, &w->raw[i - *from]);
    w->counters.frames_read += s->depth;
    *end = *from + sdb_frame_codes(w->config.codes, s, scan, *from, w->raw, s->depth - *from);
    if (!still) {
        sdb_fence_acquire();
        uint32_t same = collect_again(w, slot, s, scan, *from, *end);
        if (same < *from) { /* it fell below what was unchanged: that part is certain only so far */
            if (!same) return SDB_WALK_TORN;
            *from = same;
        }
        *end = same;
    }
    if (*end == s->depth && s->depth < SDB_MAX_DEPTH && !bounds_hold(w, slot, s) && still) {
        return SDB_WALK_TORN; /* it was not still after all */
    }
    return 0;
}

enum sdb_walk_result
sdb_walk(struct sdb_walker *w, const struct sdb_slot *slot, struct sdb_scan *scan, bool still,
         uint64_t stamp, uint32_t *changed_from)
{
    uint64_t epoch = sdb_load_acquire(w->config.gc_epoch);
    if ((epoch & 1) || w->config.during_gc()) return SDB_WALK_GC;

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
            end = prove_edges(w, slot, &s, scan, from, end, still);
            if (end == s.depth) break;
        }
    }
    if (result != 0) return SDB_WALK_TORN;
    bool torn = end < s.depth || (w->config.drop_top && !still);
    if (torn && end < s.depth) end = prove_edges(w, slot, &s, scan, from, end, still);
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
    if (read_bounds(w, slot, &s) != 0) return false;
    if (s.depth != scan->depth) return true;
    if (!s.depth || !copy_stack(w, &s, s.depth - 1, 0, 0)) return false;
    struct sdb_raw_frame f;
    read_frame(w, &s, s.depth - 1, &f);
    const struct sdb_frame *old = &scan->frames[s.depth - 1];
    return !unchanged(&s, &f, old, old->pc != 0);
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
