/* SPDX-License-Identifier: MIT
 *
 * map.h - hash map from a pair of 64-bit words to a 32-bit number. Only grows.
 *
 * Runs on: offline
 */
#ifndef SDB_MAP_H
#define SDB_MAP_H

#include <stddef.h>
#include <stdint.h>

struct sdb_map_entry {
    uint64_t a, b;
    uint32_t value; /* SDB_MAP_NONE: empty place */
};

/* A zero-filled struct is an empty map. */
struct sdb_map {
    struct sdb_map_entry *entries;
    size_t mask;
    size_t count;
    uint64_t seed; /* so that no file can know which keys collide */
};

#define SDB_MAP_NONE UINT32_MAX

static inline size_t
sdb_map_hash(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t h = ((a ^ seed) + (b ^ (seed >> 7)) * 0x9e3779b97f4a7c15ull) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
    h *= 0xc4ceb9fe1a85ec53ull;
    return (size_t)(h ^ (h >> 29));
}

/* Value of (a, b), or SDB_MAP_NONE. */
static inline uint32_t
sdb_map_get(const struct sdb_map *map, uint64_t a, uint64_t b)
{
    if (!map->entries) return SDB_MAP_NONE;
    for (size_t i = sdb_map_hash(map->seed, a, b) & map->mask;; i = (i + 1) & map->mask) {
        const struct sdb_map_entry *e = &map->entries[i];
        if (e->value == SDB_MAP_NONE || (e->a == a && e->b == b)) return e->value;
    }
}

/* Sets (a, b) to value (not SDB_MAP_NONE). 0 or SDB_ERR_NOMEM. */
int sdb_map_set(struct sdb_map *map, uint64_t a, uint64_t b, uint32_t value)
    __attribute__((warn_unused_result));

void sdb_map_free(struct sdb_map *map);

#endif
