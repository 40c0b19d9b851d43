/* SPDX-License-Identifier: MIT
 *
 * string_table.c - open addressing over one block of bytes. Runs on: scanner thread, no GVL
 */
#include "core/string_table.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"

enum { FIRST_ENTRIES = 64, FIRST_BYTES = 1024 };

static uint32_t
hash_of(const uint8_t *s, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325ull ^ bytes;

    for (size_t i = 0; i < bytes; i++) h = (h ^ s[i]) * 0x100000001b3ull;
    return (uint32_t)(h ^ h >> 32);
}

void
sdb_string_table_init(struct sdb_string_table *t)
{
    memset(t, 0, sizeof *t);
}

void
sdb_string_table_free(struct sdb_string_table *t)
{
    sdb_own_free(t->entries);
    sdb_own_free(t->bytes);
    memset(t, 0, sizeof *t);
}

void
sdb_string_table_reset(struct sdb_string_table *t)
{
    if (t->count > 0) memset(t->entries, 0, ((size_t)t->mask + 1) * sizeof *t->entries);
    t->count = 0;
    t->bytes_used = 0;
}

static struct sdb_string_entry *
slot_of(const struct sdb_string_table *t, uint32_t hash, const void *s, size_t bytes)
{
    for (uint32_t i = hash & t->mask;; i = (i + 1) & t->mask) {
        struct sdb_string_entry *e = &t->entries[i];

        if (e->id == 0) return e;
        if (e->hash == hash && e->bytes == bytes && memcmp(t->bytes + e->off, s, bytes) == 0)
            return e;
    }
}

uint32_t
sdb_string_table_find(const struct sdb_string_table *t, const void *s, size_t bytes)
{
    if (t->count == 0) return 0;
    return slot_of(t, hash_of(s, bytes), s, bytes)->id;
}

static bool
grow_entries(struct sdb_string_table *t)
{
    struct sdb_string_table wider = *t;
    size_t old = t->entries == NULL ? 0 : (size_t)t->mask + 1;
    size_t entries = old == 0 ? FIRST_ENTRIES : 2 * old;

    wider.entries = sdb_own_calloc(entries, sizeof *wider.entries);
    if (wider.entries == NULL) return false;
    wider.mask = (uint32_t)entries - 1;
    for (size_t i = 0; i < old; i++) {
        const struct sdb_string_entry *e = &t->entries[i];

        if (e->id != 0) *slot_of(&wider, e->hash, t->bytes + e->off, e->bytes) = *e;
    }
    sdb_own_free(t->entries);
    *t = wider;
    return true;
}

static bool
grow_bytes(struct sdb_string_table *t, size_t need)
{
    size_t room = t->bytes_room == 0 ? FIRST_BYTES : t->bytes_room;
    uint8_t *more;

    while (room < need) room *= 2;
    if (room > UINT32_MAX / 2) return false;
    more = sdb_own_realloc(t->bytes, room);
    if (more == NULL) return false;
    t->bytes = more;
    t->bytes_room = (uint32_t)room;
    return true;
}

uint32_t
sdb_string_table_add(struct sdb_string_table *t, const void *s, size_t bytes)
{
    uint32_t hash = hash_of(s, bytes);
    struct sdb_string_entry *e;

    if (t->entries == NULL || t->count >= (t->mask + 1) / 8 * 5) {
        if (!grow_entries(t)) return 0;
    }
    if (t->bytes_used + bytes > t->bytes_room || t->bytes == NULL) {
        if (!grow_bytes(t, t->bytes_used + bytes)) return 0;
    }
    e = slot_of(t, hash, s, bytes);
    *e = (struct sdb_string_entry){
        .hash = hash, .id = ++t->count, .off = t->bytes_used, .bytes = (uint32_t)bytes};
    if (bytes > 0) memcpy(t->bytes + t->bytes_used, s, bytes);
    t->bytes_used += (uint32_t)bytes;
    return e->id;
}

size_t
sdb_string_table_memory_bytes(const struct sdb_string_table *t)
{
    return (t->entries == NULL ? 0 : ((size_t)t->mask + 1) * sizeof *t->entries) + t->bytes_room;
}

size_t
sdb_utf8_cut(const char *s, size_t bytes, size_t limit)
{
    size_t n = limit;

    if (bytes <= limit) return bytes;
    while (n > 0 && limit - n < 3 && ((uint8_t)s[n] & 0xc0) == 0x80)
        n--;                                           /* s[n] would be cut off */
    return ((uint8_t)s[n] & 0xc0) == 0x80 ? limit : n; /* not UTF-8 at all: cut where we are */
}

static const char ellipsis[3] = "\xe2\x80\xa6";

size_t
sdb_text_bytes(const char *s, size_t bytes, size_t limit)
{
    if (bytes <= limit) return bytes;
    return sdb_utf8_cut(s, bytes, limit - sizeof ellipsis) + sizeof ellipsis;
}

size_t
sdb_text_put(char *to, const char *s, size_t bytes, size_t limit)
{
    size_t n = sdb_text_bytes(s, bytes, limit);

    if (bytes > limit) {
        memmove(to, s, n - sizeof ellipsis);
        memcpy(to + n - sizeof ellipsis, ellipsis, sizeof ellipsis);
    } else if (n > 0) {
        memmove(to, s, n);
    }
    return n;
}
