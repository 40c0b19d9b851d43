/* SPDX-License-Identifier: MIT
 *
 * chunk.h - the private copy of the active chunk: collects records in blocks and brings the blocks to the
 * file. Knows blocks and the header, no record. The offset in the copy is the offset in the file's
 * chunk, so a failed write is simply tried again with the same bytes.
 *
 *     | header 64 | block | block | block   | 8 | payload so far |
 *                 ^ written (on file)        ^ block_off (open)   ^ used
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_CHUNK_H
#define SDB_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ring_format.h"

struct sdb_ring_file;

struct sdb_chunk {
    /* owner: scanner */
    uint8_t *bytes; /* SDB_CHUNK_BYTES */
    uint64_t seq;
    uint32_t written;   /* [0, written) is on the file: 0, the header, or up to a block's start */
    uint32_t block_off; /* header of the open block */
    uint32_t used;      /* end of the open block's payload */
    uint32_t sealed_pending; /* blocks in [written, block_off) */
    bool dead;               /* takes no more records: a block had to be given up, or no room */
    uint64_t blocks_lost;
    uint64_t bytes_written;
};

/* The two structures that chunks and symbol areas share. `block` is the 8 header bytes with the payload
 * behind them. */
void sdb_area_header_put(uint8_t *header, uint64_t magic, uint64_t seq, uint64_t first_ns,
                         uint32_t skipped);
void sdb_block_seal(uint8_t *block, uint64_t seq, uint32_t payload_bytes);

int sdb_chunk_init(struct sdb_chunk *c); /* 0 or SDB_ERR_NOMEM */
void sdb_chunk_free(struct sdb_chunk *c);
/* Starts over. What was not written is counted as lost. */
void sdb_chunk_begin(struct sdb_chunk *c, uint64_t seq, uint64_t first_ns);

/* Room for one record of `bytes`, sealing the open block first when it would grow too large. NULL when the
 * chunk is dead; a record that does not fit makes it dead, so that no later record builds on a missing
 * one. */
uint8_t *sdb_chunk_room(struct sdb_chunk *c, size_t bytes);
static inline void
sdb_chunk_commit(struct sdb_chunk *c, const uint8_t *end)
{
    c->used = (uint32_t)(end - c->bytes);
}
static inline size_t
sdb_chunk_left(const struct sdb_chunk *c)
{
    return c->dead ? 0 : SDB_CHUNK_BYTES - c->used;
}
void sdb_chunk_seal(struct sdb_chunk *c);
/* Seals and writes [written, block_off). 0 or a negative error; then the bytes stay for the next try, or,
 * when 64 KiB have come together, are given up and the chunk is dead. */
int sdb_chunk_write(struct sdb_chunk *c, struct sdb_ring_file *file);
/* Bytes not on the file, without the open block's header when that is empty. */
size_t sdb_chunk_pending(const struct sdb_chunk *c);

#endif
