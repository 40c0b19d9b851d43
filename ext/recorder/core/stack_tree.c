/* SPDX-License-Identifier: MIT
 *
 * stack_tree.c - open addressing, linear probing, at most 5/8 full; grows by doubling and keeps its size
 * for the chunks that follow, so that it is at rest after the first one. Most nodes have one child, and those of a stack
 * that was added at once have ids in a row: each node's latest child is looked at first, which lies beside its parent's
 * in memory, where the table would be a cache miss for each frame.
 *
 * Runs on: scanner thread, no GVL
 */
#include "core/stack_tree.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"
#include "error.h"

enum { FIRST_ENTRIES = 4096 };

static uint32_t
hash_of(uint32_t parent, uint32_t code, uint64_t where)
{
    uint64_t h = ((uint64_t)parent << 32 | code) * 0x9e3779b97f4a7c15ull;

    h ^= h >> 32;
    h = (h + where) * 0xc2b2ae3d27d4eb4full;
    return (uint32_t)(h >> 32) ^ (uint32_t)(h >> 17);
}

/* The entry that holds the key, or the empty one where it belongs. */
static struct sdb_tree_entry *
slot_of(const struct sdb_stack_tree *t, uint32_t parent, uint32_t code, uint64_t where)
{
    uint32_t i = hash_of(parent, code, where) & t->mask;

    for (;; i = (i + 1) & t->mask) {
        struct sdb_tree_entry *e = &t->entries[i];

        if (e->generation != t->generation) return e;
        if (e->parent == parent && e->code == code && e->where == where) return e;
    }
}

int
sdb_stack_tree_init(struct sdb_stack_tree *t)
{
    t->entries = sdb_own_calloc(FIRST_ENTRIES, sizeof *t->entries);
    t->latest = sdb_own_calloc(FIRST_ENTRIES, sizeof *t->latest);
    if (t->entries == NULL || t->latest == NULL) {
        sdb_stack_tree_free(t);
        return SDB_ERR_NOMEM;
    }
    t->mask = FIRST_ENTRIES - 1;
    t->count = 0;
    t->generation = 1;
    return 0;
}

void
sdb_stack_tree_free(struct sdb_stack_tree *t)
{
    sdb_own_free(t->entries);
    sdb_own_free(t->latest);
    t->entries = NULL;
    t->latest = NULL;
}

void
sdb_stack_tree_reset(struct sdb_stack_tree *t)
{
    t->count = 0;
    t->latest[0] = (struct sdb_tree_child){0};
    t->generation++;
    if (t->generation == 0) { /* wrapped: old marks would look new */
        memset(t->entries, 0, ((size_t)t->mask + 1) * sizeof *t->entries);
        t->generation = 1;
    }
}

static bool
grow(struct sdb_stack_tree *t)
{
    struct sdb_stack_tree wider = *t;
    size_t entries = 2 * ((size_t)t->mask + 1);

    wider.latest = sdb_own_realloc(t->latest, entries * sizeof *wider.latest);
    if (wider.latest == NULL) return false;
    t->latest = wider.latest;
    wider.entries = sdb_own_calloc(entries, sizeof *wider.entries);
    if (wider.entries == NULL) return false;
    wider.mask = (uint32_t)entries - 1;
    for (size_t i = 0; i <= t->mask; i++) {
        const struct sdb_tree_entry *e = &t->entries[i];

        if (e->generation == t->generation) *slot_of(&wider, e->parent, e->code, e->where) = *e;
    }
    sdb_own_free(t->entries);
    *t = wider;
    return true;
}

uint32_t
sdb_stack_tree_find(struct sdb_stack_tree *t, uint32_t parent, uint32_t code, uint64_t where)
{
    struct sdb_tree_child *latest = &t->latest[parent];
    if (latest->id && latest->code == code && latest->where == where) return latest->id;
    const struct sdb_tree_entry *e = slot_of(t, parent, code, where);

    if (e->generation != t->generation) return 0;
    *latest = (struct sdb_tree_child){.where = where, .code = code, .id = e->id};
    return e->id;
}

uint64_t
sdb_stack_tree_memory_bytes(const struct sdb_stack_tree *t)
{
    return ((uint64_t)t->mask + 1) * (sizeof *t->entries + sizeof *t->latest);
}

uint32_t
sdb_stack_tree_add(struct sdb_stack_tree *t, uint32_t parent, uint32_t code, uint64_t where,
                   bool *is_new)
{
    struct sdb_tree_entry *e = slot_of(t, parent, code, where);

    *is_new = false;
    if (e->generation == t->generation) return e->id;
    if (t->count >= (t->mask + 1) / 8 * 5) {
        if (!grow(t)) return 0;
        e = slot_of(t, parent, code, where);
    }
    *e = (struct sdb_tree_entry){.where = where,
                                 .parent = parent,
                                 .code = code,
                                 .id = ++t->count,
                                 .generation = t->generation};
    t->latest[parent] = (struct sdb_tree_child){.where = where, .code = code, .id = e->id};
    t->latest[e->id] = (struct sdb_tree_child){0};
    *is_new = true;
    return e->id;
}
