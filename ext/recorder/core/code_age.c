/* SPDX-License-Identifier: MIT
 *
 * code_age.c - see code_age.h. The count of fresh codes fades by half a second, so that it is about 1.44 times
 * what comes in a second.
 */
#include "core/code_age.h"

#include <string.h>

enum {
    FADE_NS = 62500000,
    FADE_MILLI = 841,
    TIMES = 3,
    MARKED = 4,
    RETURNED_NS = 1000000000
}; /* 0.841 ^ 4 = 0.5 */

static uint64_t
mix(uint64_t h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3ull;
    return h;
}

uint64_t
sdb_code_age_named(struct sdb_code_age *a, const struct sdb_symbol *symbol)
{
    const uint64_t where[] = {symbol->iseq, symbol->method_entry, symbol->base};
    uint64_t h = mix(0xcbf29ce484222325ull, where, sizeof where);
    h = mix(h, symbol->name, symbol->name_bytes);
    h = mix(h, symbol->path, symbol->path_bytes);
    h ^= h >> 29;
    uint32_t *place = &a->met[h % SDB_CODE_AGE_MET], mark = ((uint32_t)(h >> 32) & ~TIMES) | MARKED;
    if ((*place & ~TIMES) == mark) {
        uint32_t times = *place & TIMES;
        if (times < TIMES) ++*place;
        return (uint64_t)RETURNED_NS << 2 * times; /* 1, 4, 16, 64 s */
    }
    *place = mark;
    a->fresh_milli += 1000;
    return 0;
}

uint64_t
sdb_code_age_limit_ns(struct sdb_code_age *a, uint64_t now_ns)
{
    if (now_ns - a->faded_ns > 60 * (uint64_t)FADE_NS) {
        a->fresh_milli = 0;
        a->faded_ns = now_ns;
    }
    for (; now_ns - a->faded_ns >= FADE_NS; a->faded_ns += FADE_NS)
        a->fresh_milli = a->fresh_milli * FADE_MILLI / 1000;
    uint64_t a_second_milli = a->fresh_milli * 4 * 693 / 1000;
    uint64_t ms = a_second_milli ? SDB_CODE_AGE_COUNT * 1000000ull / a_second_milli : UINT64_MAX;
    if (ms < SDB_CODE_AGE_MIN_MS) ms = SDB_CODE_AGE_MIN_MS;
    if (ms > SDB_CODE_AGE_MAX_MS) ms = SDB_CODE_AGE_MAX_MS;
    return ms * 1000000;
}
