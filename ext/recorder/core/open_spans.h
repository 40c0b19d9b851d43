/* SPDX-License-Identifier: MIT
 *
 * open_spans.h - the spans that have begun and not ended, as the scanner knows them: each with the event that began
 * it, so that a new chunk can repeat them all. Memory follows the number open at once, never the number seen.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_OPEN_SPANS_H
#define SDB_OPEN_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SDB_OPEN_SPANS_MAX = 1 << 16 };

struct sdb_open_span {
    uint64_t id;     /* not 0, never reused */
    uint64_t serial; /* of the thread it began on */
    uint64_t at_ns;  /* monotonic, its begin */
    uint32_t slot;   /* of that thread */
    uint32_t bytes, room;
    uint8_t *payload; /* of its begin event; aligned to 8 */
};

struct sdb_open_spans;

struct sdb_open_spans *sdb_open_spans_new(void);    /* NULL when out of memory */
void sdb_open_spans_free(struct sdb_open_spans *t); /* accepts NULL */

/* Adds a copy (`room` is ignored). False when it is there already, the table is full, or memory is out. */
bool sdb_open_spans_add(struct sdb_open_spans *t, const struct sdb_open_span *span);
/* False when it is not there. */
bool sdb_open_spans_remove(struct sdb_open_spans *t, uint64_t id);
/* Borrowed until the next call that changes the table; NULL when it is not there. */
const struct sdb_open_span *sdb_open_spans_find(const struct sdb_open_spans *t, uint64_t id);

size_t sdb_open_spans_count(const struct sdb_open_spans *t);
/* In no special order: i from 0 to count - 1. */
const struct sdb_open_span *sdb_open_spans_at(const struct sdb_open_spans *t, size_t i);
size_t sdb_open_spans_memory_bytes(const struct sdb_open_spans *t);

#endif
