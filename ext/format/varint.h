/* SPDX-License-Identifier: MIT
 *
 * varint.h - unsigned LEB128 and zigzag. Encoders write without a check: the caller has room for
 * SDB_VARINT_MAX bytes. Decoders trust nothing and never read at or behind `end`.
 *
 * Runs on: any
 */
#ifndef SDB_VARINT_H
#define SDB_VARINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SDB_VARINT_MAX = 10 };

/* Writes v at p; returns the byte behind it. */
static inline uint8_t *
sdb_varint_put(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

static inline size_t
sdb_varint_size(uint64_t v)
{
    size_t n = 1;
    while (v >= 0x80) {
        v >>= 7;
        n++;
    }
    return n;
}

static inline uint64_t
sdb_zigzag(int64_t n)
{
    return ((uint64_t)n << 1) ^ (n < 0 ? UINT64_MAX : 0);
}

static inline int64_t
sdb_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline uint8_t *
sdb_zigzag_put(uint8_t *p, int64_t n)
{
    return sdb_varint_put(p, sdb_zigzag(n));
}

/* Reads a varint at *p and moves *p behind it. false, with *p and *v untouched, when it does not end before
 * `end`, is longer than 10 bytes or does not fit 64 bits. */
static inline bool
sdb_varint_get(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
    const uint8_t *q = *p;
    uint64_t value = 0;

    for (unsigned shift = 0; q < end && shift < 70; shift += 7) {
        uint8_t byte = *q++;

        if (shift == 63 && byte > 1) return false;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *p = q;
            *v = value;
            return true;
        }
    }
    return false;
}

static inline bool
sdb_zigzag_get(const uint8_t **p, const uint8_t *end, int64_t *n)
{
    uint64_t v;

    if (!sdb_varint_get(p, end, &v)) return false;
    *n = sdb_unzigzag(v);
    return true;
}

#endif
