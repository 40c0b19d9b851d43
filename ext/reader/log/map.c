/* SPDX-License-Identifier: MIT
 *
 * map.c - see map.h. Open addressing, linear probing, at most half full.
 *
 * Runs on: offline
 */
#include "log/map.h"

#include <stdlib.h>

#include "error.h"

static struct sdb_map_entry *
place(struct sdb_map_entry *entries, size_t mask, uint64_t seed, uint64_t a, uint64_t b)
{
    size_t i = sdb_map_hash(seed, a, b) & mask;
    while (entries[i].value != SDB_MAP_NONE && !(entries[i].a == a && entries[i].b == b))
        i = (i + 1) & mask;
    return &entries[i];
}

static int
enlarge(struct sdb_map *map)
{
    size_t size = map->entries ? (map->mask + 1) * 2 : 64;
    if (size > SIZE_MAX / sizeof(struct sdb_map_entry)) return SDB_ERR_NOMEM;
    struct sdb_map_entry *entries = malloc(size * sizeof(*entries));
    if (!entries) return SDB_ERR_NOMEM;
    uint64_t seed = (uint64_t)(uintptr_t)entries * 0xd6e8feb86659fd93ull;
    for (size_t i = 0; i < size; i++) entries[i].value = SDB_MAP_NONE;
    for (size_t i = 0; map->entries && i <= map->mask; i++) {
        const struct sdb_map_entry *e = &map->entries[i];
        if (e->value != SDB_MAP_NONE) *place(entries, size - 1, seed, e->a, e->b) = *e;
    }
    free(map->entries);
    map->entries = entries;
    map->mask = size - 1;
    map->seed = seed;
    return SDB_OK;
}

int
sdb_map_set(struct sdb_map *map, uint64_t a, uint64_t b, uint32_t value)
{
    if (!map->entries || (map->count + 1) * 2 > map->mask + 1) {
        int err = enlarge(map);
        if (err) return err;
    }
    struct sdb_map_entry *e = place(map->entries, map->mask, map->seed, a, b);
    if (e->value == SDB_MAP_NONE) map->count++;
    *e = (struct sdb_map_entry){a, b, value};
    return SDB_OK;
}

void
sdb_map_free(struct sdb_map *map)
{
    free(map->entries);
    *map = (struct sdb_map){0};
}
