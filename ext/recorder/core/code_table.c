/* SPDX-License-Identifier: MIT
 *
 * code_table.c - see code_table.h. Entries live in segments that never move, so the symbolizer may store a
 * name while the scanner grows the table.
 */
#include "core/code_table.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"
#include "sdb_atomic.h"

enum {
    SEGMENT_ENTRIES = 1024,
    SEGMENT_COUNT = 2 * SDB_CODE_MAX / SEGMENT_ENTRIES,
    FIRST_BUCKETS = 1 << 12,
};

struct sdb_code_table {
    /* owner: scanner */
    struct sdb_code *segments[SEGMENT_COUNT]; /* pointer read by the symbolizer after young_valid */
    uint32_t *buckets;                        /* entry index or 0; open addressing, linear */
    uint32_t bucket_mask;
    uint32_t entry_count; /* entries ever handed out, 1.. */
    uint32_t live_count;
    uint32_t free_list; /* entry index, next in .id */
    uint32_t next_id;
    uint64_t named_cursor; /* young index up to which names were collected */
    uint64_t segment_bytes;

    /* young: [head, valid) symbolizer may take, [head, tail) GC marks. head is written by the symbolizer,
     * valid and tail by the scanner */
    struct sdb_young young[SDB_YOUNG_COUNT];
    uint64_t young_head, young_valid, young_tail;

    /* evicted: head symbolizer, tail scanner */
    uint64_t evicted[SDB_EVICTED_COUNT];
    uint64_t evicted_head, evicted_tail;
    uint64_t idle_pins[SDB_PIN_MAX / 64]; /* bits; set by the scanner, cleared by the symbolizer */
};

static uint64_t
hash_key(uint64_t iseq, uint64_t ment)
{
    uint64_t h = iseq * 0x9e3779b97f4a7c15ull ^ (ment + 0x7f4a7c15u) * 0xc2b2ae3d27d4eb4full;
    return h ^ (h >> 29);
}

struct sdb_code_table *
sdb_code_table_new(void)
{
    struct sdb_code_table *t = sdb_own_calloc(1, sizeof *t);
    if (!t) return NULL;
    t->bucket_mask = FIRST_BUCKETS - 1;
    t->buckets = sdb_own_calloc(FIRST_BUCKETS, sizeof *t->buckets);
    if (!t->buckets) {
        sdb_own_free(t);
        return NULL;
    }
    t->next_id = 1;
    return t;
}

struct sdb_code *
sdb_code_table_entry(const struct sdb_code_table *t, uint32_t entry)
{
    return &t->segments[entry / SEGMENT_ENTRIES][entry % SEGMENT_ENTRIES];
}

void
sdb_code_table_free(struct sdb_code_table *t)
{
    if (!t) return;
    for (uint32_t i = 1; i <= t->entry_count; i++) {
        struct sdb_code *c = sdb_code_table_entry(t, i);
        if (c->iseq || c->ment) free((void *)(uintptr_t)c->named);
    }
    struct sdb_named *named;
    while ((named = sdb_code_table_take_evicted(t))) free(named);
    for (int i = 0; i < SEGMENT_COUNT; i++) sdb_own_free(t->segments[i]);
    sdb_own_free(t->buckets);
    sdb_own_free(t);
}

uint32_t
sdb_code_table_find(const struct sdb_code_table *t, uint64_t iseq, uint64_t ment)
{
    for (uint32_t b = (uint32_t)hash_key(iseq, ment) & t->bucket_mask;;
         b = (b + 1) & t->bucket_mask) {
        uint32_t entry = t->buckets[b];
        if (!entry) return 0;
        const struct sdb_code *c = sdb_code_table_entry(t, entry);
        if (c->iseq == iseq && c->ment == ment) return entry;
    }
}

static void
bucket_insert(struct sdb_code_table *t, uint32_t entry)
{
    const struct sdb_code *c = sdb_code_table_entry(t, entry);
    uint32_t b = (uint32_t)hash_key(c->iseq, c->ment) & t->bucket_mask;
    while (t->buckets[b]) b = (b + 1) & t->bucket_mask;
    t->buckets[b] = entry;
}

/* Keeps the buckets at most a quarter full. False when out of memory and so full that a search would be slow. */
static bool
grow_buckets(struct sdb_code_table *t)
{
    if (4 * (uint64_t)t->live_count < t->bucket_mask) return true;
    uint32_t *old = t->buckets,
             *more = sdb_own_calloc(2 * ((size_t)t->bucket_mask + 1), sizeof *more);
    if (!more) return 2 * (uint64_t)t->live_count < t->bucket_mask;
    t->buckets = more;
    t->bucket_mask = 2 * t->bucket_mask + 1;
    for (uint32_t b = 0; b <= t->bucket_mask / 2; b++)
        if (old[b]) bucket_insert(t, old[b]);
    sdb_own_free(old);
    return true;
}

static void
bucket_remove(struct sdb_code_table *t, uint32_t entry)
{
    const struct sdb_code *c = sdb_code_table_entry(t, entry);
    uint32_t hole = (uint32_t)hash_key(c->iseq, c->ment) & t->bucket_mask;
    while (t->buckets[hole] != entry) hole = (hole + 1) & t->bucket_mask;
    t->buckets[hole] = 0;
    /* close the gap: whoever probed past the hole moves into it (linear probing, no tombstones) */
    for (uint32_t b = (hole + 1) & t->bucket_mask; t->buckets[b]; b = (b + 1) & t->bucket_mask) {
        const struct sdb_code *other = sdb_code_table_entry(t, t->buckets[b]);
        uint32_t home = (uint32_t)hash_key(other->iseq, other->ment) & t->bucket_mask;
        if (((b - home) & t->bucket_mask) >= ((b - hole) & t->bucket_mask)) {
            t->buckets[hole] = t->buckets[b];
            t->buckets[b] = 0;
            hole = b;
        }
    }
}

static uint32_t
entry_alloc(struct sdb_code_table *t)
{
    if (t->free_list) {
        uint32_t entry = t->free_list;
        t->free_list = sdb_code_table_entry(t, entry)->id;
        return entry;
    }
    uint32_t entry = t->entry_count + 1, segment = entry / SEGMENT_ENTRIES;
    if (segment >= SEGMENT_COUNT) return 0;
    if (!t->segments[segment]) {
        t->segments[segment] = sdb_own_calloc(SEGMENT_ENTRIES, sizeof(struct sdb_code));
        if (!t->segments[segment]) return 0;
        t->segment_bytes += SEGMENT_ENTRIES * sizeof(struct sdb_code);
    }
    t->entry_count = entry;
    return entry;
}

uint32_t
sdb_code_table_add(struct sdb_code_table *t, uint64_t iseq, uint64_t ment, uint64_t pc)
{
    /* named_cursor, not young_head: a slot is free once the scanner has collected its name */
    if (t->young_tail - t->named_cursor >= SDB_YOUNG_COUNT) return 0;
    if (!grow_buckets(t)) return 0;
    uint32_t entry = entry_alloc(t);
    if (!entry) return 0;
    struct sdb_code *c = sdb_code_table_entry(t, entry);
    *c = (struct sdb_code){.iseq = iseq, .ment = ment, .id = t->next_id++};
    bucket_insert(t, entry);
    t->live_count++;

    struct sdb_young *y = &t->young[t->young_tail % SDB_YOUNG_COUNT];
    /* relaxed: ordered by the release of young_tail, read by mark */
    sdb_store_relaxed(&y->iseq, iseq);
    sdb_store_relaxed(&y->ment, ment);
    sdb_store_relaxed(&y->pc, pc);
    sdb_store_relaxed(&y->entry, entry);
    sdb_store_release(&t->young_tail, t->young_tail + 1); /* pairs with code_table.c:mark */
    return entry;
}

bool
sdb_code_table_has_added(const struct sdb_code_table *t)
{
    return t->young_tail != t->young_valid;
}

void
sdb_code_table_publish(struct sdb_code_table *t)
{
    sdb_store_release(&t->young_valid, t->young_tail); /* pairs with young_peek */
}

void
sdb_code_table_retract(struct sdb_code_table *t)
{
    while (t->young_tail != t->young_valid) {
        uint32_t entry = (uint32_t)t->young[(t->young_tail - 1) % SDB_YOUNG_COUNT].entry;
        struct sdb_code *c = sdb_code_table_entry(t, entry);
        bucket_remove(t, entry);
        *c = (struct sdb_code){.id = t->free_list}; /* its id is spent: ids are never reused */
        t->free_list = entry;
        t->live_count--;
        sdb_store_release(&t->young_tail, t->young_tail - 1);
    }
}

uint32_t
sdb_code_table_next_named(struct sdb_code_table *t)
{
    if (t->named_cursor == sdb_load_acquire(&t->young_head)) return 0; /* pairs with young_named */
    return (uint32_t)t->young[t->named_cursor++ % SDB_YOUNG_COUNT].entry;
}

struct use {
    uint64_t stamp, id;
};

static int
compare_uses(const void *a, const void *b)
{
    const struct use *x = a, *y = b;
    if (x->stamp != y->stamp) return x->stamp < y->stamp ? 1 : -1;
    return x->id < y->id ? 1 : x->id > y->id ? -1 : 0;
}

bool
sdb_code_table_drop(struct sdb_code_table *t, uint32_t entry)
{
    struct sdb_code *c = sdb_code_table_entry(t, entry);
    if (t->evicted_tail - sdb_load_acquire(&t->evicted_head) >= SDB_EVICTED_COUNT) return false;
    bucket_remove(t, entry);
    const struct sdb_named *named =
        (const struct sdb_named *)(uintptr_t)sdb_load_acquire(&c->named);
    /* release: out of the table before GC may leave it out; pairs with pin_is_idle */
    if (named->pin < SDB_PIN_MAX)
        __atomic_fetch_or(&t->idle_pins[named->pin / 64], 1ull << named->pin % 64,
                          __ATOMIC_RELEASE);
    sdb_store_relaxed(&t->evicted[t->evicted_tail % SDB_EVICTED_COUNT], (uint64_t)(uintptr_t)named);
    sdb_store_release(&t->evicted_tail, t->evicted_tail + 1); /* pairs with take_evicted */
    *c = (struct sdb_code){.id = t->free_list};
    t->free_list = entry;
    t->live_count--;
    return true;
}

/* Its young slot must have been collected, else next_named would meet a freed entry. */
static bool
is_evictable(const struct sdb_code *c)
{
    return sdb_load_relaxed(&c->named) && c->in_area != SDB_CODE_UNWRITTEN;
}

size_t
sdb_code_table_evict(struct sdb_code_table *t, uint64_t protect)
{
    struct use *uses = sdb_own_alloc((t->live_count + 1) * sizeof *uses);
    if (!uses) return 0;
    size_t n = 0, gone = 0;
    for (uint32_t i = 1; i <= t->entry_count; i++) {
        struct sdb_code *c = sdb_code_table_entry(t, i);
        if (is_evictable(c)) uses[n++] = (struct use){.stamp = c->stamp, .id = c->id};
    }
    if (n) {
        qsort(uses, n, sizeof *uses, compare_uses);
        /* many have the same stamp when many were named at once: then the older ones go */
        struct use newest_gone = uses[n / 2];
        for (uint32_t i = 1; i <= t->entry_count; i++) {
            struct sdb_code *c = sdb_code_table_entry(t, i);
            if (!is_evictable(c) || c->stamp >= protect || c->stamp > newest_gone.stamp ||
                (c->stamp == newest_gone.stamp && c->id > newest_gone.id))
                continue;
            if (!sdb_code_table_drop(t, i)) break;
            gone++;
        }
    }
    sdb_own_free(uses);
    return gone;
}

static bool
is_unused(const struct sdb_code *c, uint64_t tick, const struct sdb_code_limits *limits)
{
    uint64_t unused = tick > c->stamp ? tick - c->stamp : 0;
    uint64_t used = c->stamp > c->born ? c->stamp - c->born : 0;
    return unused > limits->least && (unused > 2 * used || unused > limits->most) &&
           is_evictable(c);
}

bool
sdb_code_table_has_unused(const struct sdb_code_table *t, uint64_t tick,
                          const struct sdb_code_limits *limits)
{
    for (uint32_t i = 1; i <= t->entry_count; i++)
        if (is_unused(sdb_code_table_entry(t, i), tick, limits)) return true;
    return false;
}

size_t
sdb_code_table_evict_unused(struct sdb_code_table *t, uint64_t tick,
                            const struct sdb_code_limits *limits)
{
    size_t gone = 0;
    for (uint32_t i = 1; i <= t->entry_count; i++) {
        if (!is_unused(sdb_code_table_entry(t, i), tick, limits)) continue;
        if (!sdb_code_table_drop(t, i)) break;
        gone++;
    }
    return gone;
}

bool
sdb_code_table_is_live(const struct sdb_code_table *t, uint32_t entry)
{
    const struct sdb_code *c = sdb_code_table_entry(t, entry);
    return c->iseq || c->ment;
}

void
sdb_code_table_each_named(struct sdb_code_table *t, void (*visit)(struct sdb_code *, void *),
                          void *data)
{
    for (uint32_t i = 1; i <= t->entry_count; i++) {
        struct sdb_code *c = sdb_code_table_entry(t, i);
        if ((c->iseq || c->ment) && sdb_load_acquire(&c->named)) visit(c, data);
    }
}

uint32_t
sdb_code_table_count(const struct sdb_code_table *t)
{
    return t->live_count;
}

uint64_t
sdb_code_table_memory_bytes(const struct sdb_code_table *t)
{
    return sizeof *t + t->segment_bytes + ((uint64_t)t->bucket_mask + 1) * sizeof *t->buckets;
}

bool
sdb_code_table_young_peek(struct sdb_code_table *t, struct sdb_young *out)
{
    uint64_t head = t->young_head;
    if (head == sdb_load_acquire(&t->young_valid)) return false; /* pairs with publish */
    const struct sdb_young *y = &t->young[head % SDB_YOUNG_COUNT];
    out->iseq = sdb_load_relaxed(&y->iseq);
    out->ment = sdb_load_relaxed(&y->ment);
    out->pc = sdb_load_relaxed(&y->pc);
    out->entry = sdb_load_relaxed(&y->entry);
    return true;
}

void
sdb_code_table_young_named(struct sdb_code_table *t, struct sdb_named *named)
{
    uint64_t head = t->young_head;
    struct sdb_code *c = sdb_code_table_entry(t, (uint32_t)t->young[head % SDB_YOUNG_COUNT].entry);
    sdb_store_release(&c->named,
                      (uint64_t)(uintptr_t)named); /* pairs with walk.c's load of named */
    sdb_store_release(&t->young_head, head + 1);   /* pairs with next_named */
}

bool
sdb_code_table_pin_is_idle(const struct sdb_code_table *t, uint32_t pin)
{
    return pin < SDB_PIN_MAX && sdb_load_acquire(&t->idle_pins[pin / 64]) >> pin % 64 & 1;
}

void
sdb_code_table_pin_freed(struct sdb_code_table *t, uint32_t pin)
{
    if (pin < SDB_PIN_MAX)
        __atomic_fetch_and(&t->idle_pins[pin / 64], ~(1ull << pin % 64), __ATOMIC_RELAXED);
}

struct sdb_named *
sdb_code_table_take_evicted(struct sdb_code_table *t)
{
    uint64_t head = t->evicted_head;
    if (head == sdb_load_acquire(&t->evicted_tail)) return NULL;
    uint64_t named = sdb_load_relaxed(&t->evicted[head % SDB_EVICTED_COUNT]);
    sdb_store_release(&t->evicted_head, head + 1);
    return (struct sdb_named *)(uintptr_t)named;
}

uint32_t
sdb_code_table_young_count(const struct sdb_code_table *t)
{
    return (uint32_t)(sdb_load_acquire(&t->young_valid) - sdb_load_acquire(&t->young_head));
}

void
sdb_code_table_mark(const struct sdb_code_table *t, void (*mark)(uint64_t))
{
    uint64_t head = sdb_load_acquire(&t->young_head), tail = sdb_load_acquire(&t->young_tail);
    for (uint64_t i = head; i < tail; i++) {
        const struct sdb_young *y = &t->young[i % SDB_YOUNG_COUNT];
        mark(sdb_load_relaxed(&y->iseq));
        mark(sdb_load_relaxed(&y->ment) & ~(uint64_t)SDB_CODE_BMETHOD);
    }
}
