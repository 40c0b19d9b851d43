/* SPDX-License-Identifier: MIT
 *
 * walk.c - see walk.h. Numbers are written out as FORMAT.md gives them, on purpose.
 */
#include "walk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1048576, SLOTS = 16384 };

static uint32_t
crc(uint32_t c, const uint8_t *p, size_t n)
{
    static uint32_t half[16];

    if (half[1] == 0) {
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t v = i;
            for (int k = 0; k < 4; k++) v = v & 1 ? v >> 1 ^ 0x82f63b78 : v >> 1;
            half[i] = v;
        }
    }
    c = ~c;
    while (n-- > 0) {
        c ^= *p++;
        c = c >> 4 ^ half[c & 15];
        c = c >> 4 ^ half[c & 15];
    }
    return ~c;
}

static uint64_t
le(const uint8_t *p, int n)
{
    uint64_t v = 0;

    while (n-- > 0) v = v << 8 | p[n];
    return v;
}

uint64_t
walk_u64(const struct walk_file *f, size_t off)
{
    return off + 8 <= f->size ? le(f->bytes + off, 8) : 0;
}

uint64_t
walk_varint(const uint8_t **p, const uint8_t *end, bool *ok)
{
    uint64_t v = 0;

    for (int i = 0; i < 10; i++) {
        if (*p >= end) break;
        uint8_t b = *(*p)++;
        v |= (uint64_t)(b & 0x7f) << (7 * i);
        if (!(b & 0x80)) return v;
    }
    *ok = false;
    return 0;
}

int64_t
walk_zigzag(const uint8_t **p, const uint8_t *end, bool *ok)
{
    uint64_t v = walk_varint(p, end, ok);

    return v & 1 ? -(int64_t)(v >> 1) - 1 : (int64_t)(v >> 1);
}

bool
walk_open(struct walk_file *f, const char *path)
{
    int fd = open(path, O_RDONLY);
    struct stat st;
    size_t n = 0;

    if (fd < 0 || fstat(fd, &st) != 0) return false;
    f->bytes = malloc((size_t)st.st_size + 1);
    f->size = (size_t)st.st_size;
    while (n < f->size) {
        ssize_t got = read(fd, f->bytes + n, f->size - n);
        if (got <= 0) break;
        n += (size_t)got;
    }
    close(fd);
    f->size = n;
    return true;
}

void
walk_close(struct walk_file *f)
{
    free(f->bytes);
}

/* crc of [p, p + n) with four bytes at `hole` as zero */
static uint32_t
crc_with_hole(const uint8_t *p, size_t n, size_t hole)
{
    static const uint8_t zero[4];

    return crc(crc(crc(0, p, hole), zero, 4), p + hole + 4, n - hole - 4);
}

uint32_t
walk_state(const struct walk_file *f)
{
    uint8_t id[8192];
    uint32_t text;

    if (f->size < 8192 || memcmp(f->bytes, "SDB\n\x62\xb1\xc2\xa7", 8) != 0) return 0;
    memcpy(id, f->bytes, sizeof id);
    memset(id + 20, 0, 4);
    text = (uint32_t)le(id + 248, 4);
    if (text > 7936) return 0;
    if (crc_with_hole(id, 256 + text, 252) != (uint32_t)le(id + 252, 4)) return 0;
    return (uint32_t)le(f->bytes + 20, 4);
}

const uint8_t *
walk_state_page(const struct walk_file *f)
{
    const uint8_t *best = NULL;

    for (int i = 0; i < 2; i++) {
        const uint8_t *p = f->bytes + 8192 + 4096 * i;

        if (f->size < 16384 || memcmp(p, f->bytes, 8) != 0) continue;
        if (crc_with_hole(p, 4096, 16) != (uint32_t)le(p + 16, 4)) continue;
        if (best == NULL || le(p + 8, 8) > le(best + 8, 8)) best = p;
    }
    return best;
}

static bool
good_header(const uint8_t *p, uint64_t magic)
{
    return le(p, 8) == magic && crc_with_hole(p, 64, 24) == (uint32_t)le(p + 24, 4);
}

struct decoder {
    walk_visit *visit;
    void *data;
    struct walk_result *result;
    struct walk_record r;
    uint64_t interval_us;
    uint32_t nodes;
    uint32_t slot_node[SLOTS];
    uint64_t slot_us[SLOTS];
    uint64_t slot_serial[SLOTS];
    bool slot_seen[SLOTS];
};

static bool
sample(struct decoder *d, uint8_t first, const uint8_t **p, const uint8_t *end)
{
    struct walk_record *r = &d->r;
    bool ok = true;
    int64_t delta;

    r->type = WALK_SAMPLE;
    r->state = first >> 5 & 3;
    r->slot = (uint32_t)walk_varint(p, end, &ok);
    if (!ok || r->slot >= SLOTS || d->slot_serial[r->slot] == 0) return false;
    r->more = first & 1 ? (uint32_t)walk_varint(p, end, &ok) : 0;
    if ((first & 1) && r->more == 0) return false;
    if (first & 0x10) d->slot_node[r->slot] += (uint32_t)walk_zigzag(p, end, &ok);
    r->node = d->slot_node[r->slot];
    delta = first & 8 ? walk_zigzag(p, end, &ok) : 0;
    r->wait_us = first & 4 ? walk_varint(p, end, &ok) : 0;
    r->blocked_us = first & 2 ? walk_varint(p, end, &ok) : 0;
    r->gc_us = r->more & 1 ? walk_varint(p, end, &ok) : 0;
    r->age_us = r->more & 2 ? walk_varint(p, end, &ok) : 0;
    r->elapsed_us = r->more & 0x20 ? walk_varint(p, end, &ok) : r->tick_us - d->slot_us[r->slot];
    if (((r->more & 0x20) != 0) == d->slot_seen[r->slot]) return false;
    if (r->more & ~0x3fu || r->node > d->nodes) return false;
    r->busy_us = (int64_t)(r->elapsed_us - r->wait_us - r->blocked_us);
    r->cpu_us = r->busy_us + delta;
    d->slot_us[r->slot] = r->tick_us;
    d->slot_seen[r->slot] = true;
    return ok;
}

static bool
sized(struct decoder *d, const uint8_t **p, const uint8_t *end)
{
    struct walk_record *r = &d->r;
    bool ok = true;
    uint64_t n = walk_varint(p, end, &ok);

    if (!ok || n > (uint64_t)(end - *p)) return false;
    r->payload = *p;
    r->bytes = (size_t)n;
    *p += n;
    if (r->type == 16) {
        const uint8_t *q = r->payload;
        uint64_t slot = walk_varint(&q, *p, &ok), serial = walk_varint(&q, *p, &ok);

        if (!ok || slot >= SLOTS || serial == 0) return false;
        if (d->slot_serial[slot] != serial) {
            d->slot_serial[slot] = serial;
            d->slot_node[slot] = 0;
            d->slot_seen[slot] = false;
        }
    }
    return true;
}

static bool
tick(struct decoder *d, int64_t deviation)
{
    int64_t dt = (int64_t)d->interval_us + deviation;

    d->r.type = WALK_TICK;
    if (d->interval_us == 0 || dt <= 0) return false;
    d->r.tick_us += (uint64_t)dt;
    return true;
}

static bool
record(struct decoder *d, const uint8_t **p, const uint8_t *end)
{
    struct walk_record *r = &d->r;
    uint8_t first = *(*p)++;
    bool ok = true;
    uint64_t back;

    if (first & 0x80) return sample(d, first, p, end);
    if (first & 0x40) return tick(d, (int64_t)(first & 0x3f) - 32);
    r->type = first;
    switch (first) {
    case 1: {
        int64_t deviation = walk_zigzag(p, end, &ok);
        return ok && !(deviation >= -32 && deviation <= 31) && tick(d, deviation);
    }
    case 2:
        r->id = ++d->nodes;
        back = walk_varint(p, end, &ok);
        r->code = (uint32_t)walk_varint(p, end, &ok);
        r->where = walk_varint(p, end, &ok);
        if (back == 0 || back > r->id) return false;
        r->parent = r->id - (uint32_t)back;
        return ok;
    case 3:
        d->interval_us = r->numbers[0] = walk_varint(p, end, &ok);
        return ok && d->interval_us > 0;
    case 4:
        return true;
    case 5:
        r->numbers[0] = walk_varint(p, end, &ok);
        r->numbers[1] = walk_varint(p, end, &ok);
        return ok;
    default:
        return first >= 16 && sized(d, p, end);
    }
}

/* The blocks of one region; `symbols`: its records are those of an area. */
static void
blocks(struct decoder *d, const uint8_t *region, size_t size, bool symbols)
{
    size_t at = 64;

    while (at + 8 <= size) {
        uint64_t n = le(region + at, 4);
        const uint8_t *p = region + at + 8, *end;

        if (n == 0 || n > 65536 || n > size - at - 8) return;
        uint32_t sum = crc(crc(crc(0, region + 8, 8), region + at, 4), p, (size_t)n);
        if (sum != (uint32_t)le(region + at + 4, 4)) return;
        d->result->blocks++;
        for (end = p + n; p < end;) {
            bool good;

            if (symbols) {
                d->r.type = *p++;
                good = sized(d, &p, end);
            } else {
                good = record(d, &p, end);
            }
            if (!good) {
                d->result->damaged++;
                return;
            }
            d->result->records++;
            if (d->visit != NULL) d->visit(&d->r, d->data);
        }
        at += 8 + (size_t)n;
    }
}

static void
one_chunk(const struct walk_file *f, struct walk_result *result, size_t off, walk_visit *visit,
          void *data)
{
    struct decoder *d = calloc(1, sizeof *d);
    const uint8_t *region = f->bytes + off;

    d->visit = visit;
    d->data = data;
    d->result = result;
    d->r.seq = le(region + 8, 8);
    d->r.tick_us = le(region + 16, 8) / 1000;
    d->r.type = WALK_CHUNK;
    if (visit != NULL) visit(&d->r, data);
    result->chunks++;
    blocks(d, region, CHUNK, false);
    free(d);
}

struct walk_result
walk_chunks(const struct walk_file *f, walk_visit *visit, void *data)
{
    struct walk_result result = {.oldest_seq = UINT64_MAX};
    uint64_t off = walk_u64(f, 56), count = walk_u64(f, 72), newest = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t k = 0; k < count; k++) {
            /* the first pass finds the newest, the second goes in the order of seq */
            uint64_t i = pass == 0 ? k : (newest + 1 + k) % count;
            size_t at = (size_t)(off + i * CHUNK);

            if (at + CHUNK > f->size || !good_header(f->bytes + at, 0x6b6e75686383f09full))
                continue;
            uint64_t seq = le(f->bytes + at + 8, 8);
            if (seq % count != i) continue;
            if (pass == 0) {
                if (seq > newest) newest = seq;
                continue;
            }
            if (seq + count <= newest) continue;
            if (seq < result.oldest_seq) result.oldest_seq = seq;
            result.newest_seq = seq;
            one_chunk(f, &result, at, visit, data);
        }
    }
    return result;
}

struct walk_result
walk_area(const struct walk_file *f, int area, walk_visit *visit, void *data)
{
    struct walk_result result = {0};
    size_t off = (size_t)walk_u64(f, area == 0 ? 32 : 40), size = (size_t)walk_u64(f, 48);
    struct decoder *d;

    if (off + size > f->size || !good_header(f->bytes + off, 0x6165726183f09f53ull)) return result;
    d = calloc(1, sizeof *d);
    d->visit = visit;
    d->data = data;
    d->result = &result;
    d->r.seq = result.oldest_seq = result.newest_seq = le(f->bytes + off + 8, 8);
    result.chunks = 1;
    blocks(d, f->bytes + off, size, true);
    free(d);
    return result;
}
