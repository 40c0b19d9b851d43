/* SPDX-License-Identifier: MIT
 *
 * ring_reader.h - one ring file as seen from outside: its identity, its newest state page, which chunks
 * it holds. Proves every number before use; knows blocks but no records.
 *
 * The file may be live (its writer goes on meanwhile), closed, left by a dead process, truncated,
 * or hostile. What is read is a copy that is proven by its CRC, so a change under way is never mistaken
 * for data. Memory taken is bounded by one chunk plus 24 bytes per chunk of the file.
 *
 * Runs on: offline
 */
#ifndef SDB_RING_READER_H
#define SDB_RING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/cursor.h"
#include "log/source.h"
#include "ring_format.h"

struct sdb_chunk_ref {
    uint64_t seq;
    uint64_t first_ns; /* rel */
    uint64_t off;
    uint32_t skipped; /* seqs before it that were never used */
};

struct sdb_ring_reader {
    /* immutable after open */
    struct sdb_source source;
    struct sdb_identity identity; /* `state` as of the last refresh */
    char text[SDB_IDENTITY_BYTES - sizeof(struct sdb_identity) + 1]; /* NUL-terminated strings */
    size_t text_bytes;
    bool truncated; /* the file is shorter than its identity says */

    /* as of the last refresh */
    bool has_state_page;
    struct sdb_state_page state_page;
    struct sdb_chunk_ref *chunks; /* by seq */
    size_t chunk_count, chunk_capacity;
};

/* Takes over `source` (closed on failure too), a ring or a dump with one inside, and refreshes. 0, SDB_ERR_NOT_RING, _VERSION, _CORRUPT, _IO, _NOMEM. */
int sdb_ring_reader_open(struct sdb_ring_reader *r, struct sdb_source source);
void sdb_ring_reader_close(struct sdb_ring_reader *r);

/* Reads the state pages and the chunk headers again. 0, SDB_ERR_IO, _NOMEM. */
int sdb_ring_reader_refresh(struct sdb_ring_reader *r);

/* 1: a process holds the ring's lock, 0: none does, SDB_ERR_UNSUPPORTED: cannot be told (memory, no locks). */
int sdb_ring_reader_alive(const struct sdb_ring_reader *r);

/* Reads chunk `i` of the index, as far as its blocks go, into `buffer` of identity.chunk_bytes. *n: bytes read.
 * 0, SDB_ERR_AGAIN when the writer took the place since the refresh, SDB_ERR_IO. */
int sdb_ring_reader_chunk(const struct sdb_ring_reader *r, size_t i, uint8_t *buffer, size_t *n);

/* Is this a header of the wanted kind with a good crc? */
bool sdb_area_header_valid(const struct sdb_area_header *h, uint64_t magic);

/* Next block at *at inside [*at, end): true with its payload, and *at moved behind it. false: the end, or
 * torn; *at stays. */
bool sdb_block_next(const uint8_t **at, const uint8_t *end, uint64_t seq,
                    struct sdb_bytes *payload);

#endif
