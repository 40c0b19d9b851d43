/* SPDX-License-Identifier: MIT
 *
 * memory.h - growing arrays and an arena of bytes, with overflow checks; both fail by returning NULL.
 *
 * Runs on: offline
 */
#ifndef SDB_MEMORY_H
#define SDB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes room for `need` elements of `size` bytes in *array, whose capacity is *capacity: at least doubling.
 * 0 or SDB_ERR_NOMEM with all as it was. New room is not cleared. */
int sdb_grow(void *array, size_t *capacity, size_t need, size_t size)
    __attribute__((warn_unused_result));

struct sdb_arena_piece;
struct sdb_arena {
    struct sdb_arena_piece *newest;
    size_t used;
    size_t total_bytes;
};

/* A zero-filled struct is an empty arena. The copy lives until sdb_arena_free, NUL-terminated. */
const uint8_t *sdb_arena_copy(struct sdb_arena *arena, const void *bytes, size_t n);
void sdb_arena_free(struct sdb_arena *arena);

#endif
