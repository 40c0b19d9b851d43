/* SPDX-License-Identifier: MIT
 *
 * memory.c - see memory.h.
 *
 * Runs on: offline
 */
#include "log/memory.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

enum { PIECE_BYTES = 64 << 10 };

struct sdb_arena_piece {
    struct sdb_arena_piece *older;
    size_t capacity;
    uint8_t bytes[];
};

int
sdb_grow(void *array, size_t *capacity, size_t need, size_t size)
{
    void **slot = array;
    if (need <= *capacity) return SDB_OK;
    size_t count = *capacity ? *capacity : 16;
    while (count < need) {
        if (count > SIZE_MAX / 2) return SDB_ERR_NOMEM;
        count *= 2;
    }
    if (count > SIZE_MAX / size) return SDB_ERR_NOMEM;
    void *bigger = realloc(*slot, count * size);
    if (!bigger) return SDB_ERR_NOMEM;
    *slot = bigger;
    *capacity = count;
    return SDB_OK;
}

const uint8_t *
sdb_arena_copy(struct sdb_arena *arena, const void *bytes, size_t n)
{
    if (n == SIZE_MAX) return NULL;
    size_t need = n + 1;
    if (!arena->newest || arena->newest->capacity - arena->used < need) {
        size_t capacity = need > PIECE_BYTES ? need : PIECE_BYTES;
        struct sdb_arena_piece *piece = malloc(sizeof(*piece) + capacity);
        if (!piece) return NULL;
        piece->older = arena->newest;
        piece->capacity = capacity;
        arena->newest = piece;
        arena->used = 0;
        arena->total_bytes += capacity;
    }
    uint8_t *copy = arena->newest->bytes + arena->used;
    if (n) memcpy(copy, bytes, n);
    copy[n] = 0;
    arena->used += need;
    return copy;
}

void
sdb_arena_free(struct sdb_arena *arena)
{
    struct sdb_arena_piece *piece = arena->newest;
    while (piece) {
        struct sdb_arena_piece *older = piece->older;
        free(piece);
        piece = older;
    }
    *arena = (struct sdb_arena){0};
}
