/* SPDX-License-Identifier: MIT
 *
 * chunk.c - blocks: opening, sealing, writing, trying again. Runs on: scanner thread, no GVL
 */
#include "core/chunk.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"
#include "core/ring_file.h"
#include "core/testpoint.h"
#include "crc32c.h"
#include "error.h"

enum { GIVE_UP_BYTES = 1 << 16 };

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the recorder stores its own integers as they are");

void
sdb_area_header_put(uint8_t *header, uint64_t magic, uint64_t seq, uint64_t first_ns,
                    uint32_t skipped)
{
    struct sdb_area_header h = {
        .magic = magic, .seq = seq, .first_ns = first_ns, .skipped = skipped};

    h.crc = sdb_crc32c(0, &h, sizeof h);
    memcpy(header, &h, sizeof h);
}

void
sdb_block_seal(uint8_t *block, uint64_t seq, uint32_t payload_bytes)
{
    uint32_t crc = sdb_crc32c(0, &seq, sizeof seq);

    crc = sdb_crc32c(crc, &payload_bytes, sizeof payload_bytes);
    crc = sdb_crc32c(crc, block + SDB_BLOCK_HEADER_BYTES, payload_bytes);
    memcpy(block, &payload_bytes, 4);
    memcpy(block + 4, &crc, 4);
}

int
sdb_chunk_init(struct sdb_chunk *c)
{
    memset(c, 0, sizeof *c);
    c->bytes = sdb_own_alloc(SDB_CHUNK_BYTES);
    return c->bytes == NULL ? SDB_ERR_NOMEM : 0;
}

void
sdb_chunk_free(struct sdb_chunk *c)
{
    sdb_own_free(c->bytes);
    c->bytes = NULL;
}

static void
open_block(struct sdb_chunk *c)
{
    c->used = c->block_off + SDB_BLOCK_HEADER_BYTES;
    if (c->used <= SDB_CHUNK_BYTES) {
        memset(c->bytes + c->block_off, 0, SDB_BLOCK_HEADER_BYTES);
    } else {
        c->used = c->block_off; /* the chunk ends here */
        c->dead = true;
    }
}

static uint32_t
payload_bytes(const struct sdb_chunk *c)
{
    uint32_t start = c->block_off + SDB_BLOCK_HEADER_BYTES;

    return c->used > start ? c->used - start : 0;
}

void
sdb_chunk_begin(struct sdb_chunk *c, uint64_t seq, uint64_t first_ns)
{
    c->blocks_lost += c->sealed_pending + (payload_bytes(c) > 0 ? 1 : 0);
    uint32_t skipped = seq > c->seq + 1 ? (uint32_t)(seq - c->seq - 1) : 0;

    c->seq = seq;
    c->written = 0;
    c->sealed_pending = 0;
    c->dead = false;
    sdb_area_header_put(c->bytes, SDB_CHUNK_MAGIC, seq, first_ns, skipped);
    c->block_off = SDB_AREA_HEADER_BYTES;
    open_block(c);
}

void
sdb_chunk_seal(struct sdb_chunk *c)
{
    uint32_t bytes = payload_bytes(c);

    if (bytes == 0) return;
    sdb_block_seal(c->bytes + c->block_off, c->seq, bytes);
    c->sealed_pending++;
    c->block_off = c->used;
    open_block(c);
}

uint8_t *
sdb_chunk_room(struct sdb_chunk *c, size_t bytes)
{
    if (c->dead) return NULL;
    if (payload_bytes(c) + bytes > SDB_BLOCK_MAX_BYTES) {
        sdb_chunk_seal(c);
        if (c->dead) return NULL;
    }
    if (bytes > SDB_CHUNK_BYTES - c->used || bytes > SDB_BLOCK_MAX_BYTES) {
        c->dead = true;
        return NULL;
    }
    return c->bytes + c->used;
}

static int
write_through(struct sdb_chunk *c, struct sdb_ring_file *file, uint64_t chunk_off)
{
    int err;

    if (c->written ==
        0) { /* the header first: then its blocks belong to it from the first one on */
        SDB_TESTPOINT(before_chunk_header);
        err = sdb_ring_file_write(file, chunk_off, c->bytes, SDB_AREA_HEADER_BYTES);
        if (err != 0) return err;
        c->written = SDB_AREA_HEADER_BYTES;
        c->bytes_written += SDB_AREA_HEADER_BYTES;
        SDB_TESTPOINT(after_chunk_header);
    }
    SDB_TESTPOINT(before_block_write);
    err = sdb_ring_file_write(file, chunk_off + c->written, c->bytes + c->written,
                              c->block_off - c->written);
    if (err != 0) return err;
    SDB_TESTPOINT(after_block_write);
    c->bytes_written += c->block_off - c->written;
    c->written = c->block_off;
    c->sealed_pending = 0;
    return 0;
}

int
sdb_chunk_write(struct sdb_chunk *c, struct sdb_ring_file *file)
{
    const struct sdb_identity *id = &file->identity;
    int err;

    sdb_chunk_seal(c);
    if (c->sealed_pending == 0) return 0;
    err = write_through(c, file, id->chunks_off + c->seq % id->chunk_count * SDB_CHUNK_BYTES);
    if (err != 0 && (c->dead || c->block_off - c->written >= GIVE_UP_BYTES)) {
        c->blocks_lost += c->sealed_pending;
        c->sealed_pending = 0;
        c->dead = true;
    }
    return err;
}

size_t
sdb_chunk_pending(const struct sdb_chunk *c)
{
    if (c->sealed_pending == 0 && payload_bytes(c) == 0) return 0;
    return (payload_bytes(c) > 0 ? c->used : c->block_off) - c->written;
}
