/* SPDX-License-Identifier: MIT
 *
 * walk.h - a second decoder of ring files, written from FORMAT.md alone, for the tests: shares no code with
 * the recorder (own crc, own varints) and refuses whatever is not exactly right.
 */
#ifndef SDB_TEST_WALK_H
#define SDB_TEST_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct walk_record {
    uint64_t seq;     /* of the chunk; generation for symbols */
    uint64_t tick_us; /* time of the tick it stands behind */
    uint32_t type;    /* WALK_SAMPLE, WALK_TICK, or the type number */
    /* NODE */
    uint32_t id, parent, code;
    uint64_t where;
    /* SAMPLE: absolute where the file has deltas */
    uint32_t slot, state, more, node;
    int64_t cpu_us, busy_us;
    uint64_t wait_us, blocked_us, gc_us, age_us, elapsed_us;
    /* sized, symbols, GAP and INTERVAL: payload, or the plain numbers */
    const uint8_t *payload;
    size_t bytes;
    uint64_t numbers[2];
};

enum { WALK_SAMPLE = 1000, WALK_TICK = 1001, WALK_CHUNK = 1002 /* the chunk's start, a tick */ };

typedef void walk_visit(const struct walk_record *record, void *data);

struct walk_file {
    uint8_t *bytes;
    size_t size;
};

struct walk_result {
    unsigned chunks, blocks, records, damaged; /* damaged: a record not right within a good block */
    uint64_t oldest_seq, newest_seq;
};

bool walk_open(struct walk_file *f, const char *path);
void walk_close(struct walk_file *f);
uint32_t walk_state(const struct walk_file *f); /* of a good identity, else 0 */
/* The state page a reader takes, or NULL. */
const uint8_t *walk_state_page(const struct walk_file *f);
struct walk_result walk_chunks(const struct walk_file *f, walk_visit *visit, void *data);
/* area: 0 or 1. */
struct walk_result walk_area(const struct walk_file *f, int area, walk_visit *visit, void *data);
uint64_t walk_u64(const struct walk_file *f, size_t off);
/* Reads a varint off a payload; sets *ok to false when there is none. */
uint64_t walk_varint(const uint8_t **p, const uint8_t *end, bool *ok);
int64_t walk_zigzag(const uint8_t **p, const uint8_t *end, bool *ok);

#endif
