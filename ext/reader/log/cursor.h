/* SPDX-License-Identifier: MIT
 *
 * cursor.h - takes bytes, varints and byte strings off a buffer that may lie. A read past the end, or a
 * varint that never ends, sets `bad` and yields 0 from then on: check it once, after a whole record.
 *
 * Runs on: offline
 */
#ifndef SDB_CURSOR_H
#define SDB_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "varint.h"

struct sdb_cursor {
    const uint8_t *at, *end;
    bool bad;
};

struct sdb_bytes {
    const uint8_t *at;
    size_t n;
};

static inline size_t
sdb_cursor_left(const struct sdb_cursor *c)
{
    return (size_t)(c->end - c->at);
}

static inline uint64_t
sdb_cursor_fail(struct sdb_cursor *c)
{
    c->bad = true;
    c->at = c->end;
    return 0;
}

static inline uint64_t
sdb_take_varint(struct sdb_cursor *c)
{
    const uint8_t *p = c->at;
    if (p < c->end && *p < 0x80) {
        c->at = p + 1;
        return *p;
    }
    uint64_t value;
    return sdb_varint_get(&c->at, c->end, &value) ? value : sdb_cursor_fail(c);
}

static inline int64_t
sdb_take_zigzag(struct sdb_cursor *c)
{
    return sdb_unzigzag(sdb_take_varint(c));
}

/* A varint that must fit 32 bits. */
static inline uint32_t
sdb_take_u32(struct sdb_cursor *c)
{
    uint64_t v = sdb_take_varint(c);
    return v <= UINT32_MAX ? (uint32_t)v : (uint32_t)sdb_cursor_fail(c);
}

static inline struct sdb_bytes
sdb_take_bytes(struct sdb_cursor *c, uint64_t n)
{
    if (n > sdb_cursor_left(c)) {
        sdb_cursor_fail(c);
        return (struct sdb_bytes){c->end, 0};
    }
    struct sdb_bytes bytes = {c->at, (size_t)n};
    c->at += n;
    return bytes;
}

/* A varint length and that many bytes. */
static inline struct sdb_bytes
sdb_take_string(struct sdb_cursor *c)
{
    return sdb_take_bytes(c, sdb_take_varint(c));
}

/* All that is left. */
static inline struct sdb_bytes
sdb_take_rest(struct sdb_cursor *c)
{
    return sdb_take_bytes(c, sdb_cursor_left(c));
}

#endif
