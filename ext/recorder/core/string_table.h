/* SPDX-License-Identifier: MIT
 *
 * string_table.h - bytes -> id, for the strings of one chunk or of one generation of a symbol area. Keeps
 * copies of the bytes, so equal ids mean equal strings.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_STRING_TABLE_H
#define SDB_STRING_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sdb_string_entry {
    uint32_t hash, id; /* id 0: empty */
    uint32_t off, bytes;
};

struct sdb_string_table {
    /* owner: scanner */
    struct sdb_string_entry *entries; /* NULL until the first string */
    uint32_t mask, count;
    uint8_t *bytes;
    uint32_t bytes_used, bytes_room;
};

void sdb_string_table_init(struct sdb_string_table *t); /* all zero */
void sdb_string_table_free(struct sdb_string_table *t);
void sdb_string_table_reset(struct sdb_string_table *t); /* forgets all, keeps the memory */

/* Id of the string, or 0 when absent. */
uint32_t sdb_string_table_find(const struct sdb_string_table *t, const void *s, size_t bytes);
/* Adds a string that is absent: its id (the next), or 0 when out of memory. */
uint32_t sdb_string_table_add(struct sdb_string_table *t, const void *s, size_t bytes);
size_t sdb_string_table_memory_bytes(const struct sdb_string_table *t);

/* The longest beginning of s of at most `limit` bytes that does not cut a UTF-8 character. */
size_t sdb_utf8_cut(const char *s, size_t bytes, size_t limit);

/* So many bytes of s come into `limit` (>= 8): all, or what sdb_text_put ends with "…", so that nobody takes it for the whole. */
size_t sdb_text_bytes(const char *s, size_t bytes, size_t limit);
/* Writes them to `to`, which may be s; returns that number. */
size_t sdb_text_put(char *to, const char *s, size_t bytes, size_t limit);

#endif
