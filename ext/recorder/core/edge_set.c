/* SPDX-License-Identifier: MIT
 *
 * edge_set.c - see edge_set.h. Open addressing, doubling up to the limit.
 */
#include "core/edge_set.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"

enum { FIRST_SLOTS = 1 << 12, KEPT_SLOTS = 1 << 15, MAX_EDGES = 1 << 18 };

struct sdb_edge_set {
    uint64_t *slots;
    uint32_t mask, count;
};

struct sdb_edge_set *
sdb_edge_set_new(void)
{
    struct sdb_edge_set *s = sdb_own_calloc(1, sizeof *s);
    if (!s) return NULL;
    s->slots = sdb_own_calloc(FIRST_SLOTS, sizeof *s->slots);
    if (!s->slots) {
        sdb_own_free(s);
        return NULL;
    }
    s->mask = FIRST_SLOTS - 1;
    return s;
}

void
sdb_edge_set_free(struct sdb_edge_set *s)
{
    if (!s) return;
    sdb_own_free(s->slots);
    sdb_own_free(s);
}

static uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ull;
    return h ^ (h >> 32);
}

uint64_t
sdb_edge(uint64_t caller, uint64_t call_site, uint64_t callee_iseq, uint64_t callee_ment)
{
    uint64_t h = mix(mix(mix(mix(0x5db, caller), call_site), callee_iseq), callee_ment);
    return h ? h : 1;
}

bool
sdb_edge_set_has(const struct sdb_edge_set *s, uint64_t edge)
{
    for (uint32_t i = (uint32_t)edge & s->mask; s->slots[i]; i = (i + 1) & s->mask) {
        if (s->slots[i] == edge) return true;
    }
    return false;
}

static void
insert(struct sdb_edge_set *s, uint64_t edge)
{
    uint32_t i = (uint32_t)edge & s->mask;
    while (s->slots[i]) i = (i + 1) & s->mask;
    s->slots[i] = edge;
    s->count++;
}

void
sdb_edge_set_clear(struct sdb_edge_set *s)
{
    if (s->mask >= KEPT_SLOTS && s->count < s->mask / 16) {
        uint64_t *smaller = sdb_own_calloc(FIRST_SLOTS, sizeof *smaller);
        if (smaller) {
            sdb_own_free(s->slots);
            s->slots = smaller;
            s->mask = FIRST_SLOTS - 1;
        }
    }
    memset(s->slots, 0, ((size_t)s->mask + 1) * sizeof *s->slots);
    s->count = 0;
}

void
sdb_edge_set_add(struct sdb_edge_set *s, uint64_t edge)
{
    if (sdb_edge_set_has(s, edge)) return;
    if (s->count * 2 > s->mask) {
        uint32_t slots = (s->mask + 1) * 2;
        uint64_t *bigger = slots <= 2 * MAX_EDGES ? sdb_own_calloc(slots, sizeof *bigger) : NULL;
        if (!bigger) {
            sdb_edge_set_clear(s);
        } else {
            struct sdb_edge_set old = *s;
            *s = (struct sdb_edge_set){.slots = bigger, .mask = slots - 1};
            for (uint32_t i = 0; i <= old.mask; i++) {
                if (old.slots[i]) insert(s, old.slots[i]);
            }
            sdb_own_free(old.slots);
        }
    }
    insert(s, edge);
}

uint64_t
sdb_edge_set_memory_bytes(const struct sdb_edge_set *s)
{
    return ((uint64_t)s->mask + 1) * sizeof *s->slots;
}
