/* SPDX-License-Identifier: MIT
 *
 * oomd_ring.c - see oomd_ring.h.
 *
 * Runs on: dump writer
 */
#include "oomd_ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "crc32c.h"
#include "error.h"
#include "ring_format.h"

enum { WINDOW_BYTES = 256 << 10, HOLE_BYTES = 4096 };

static int
write_all(int to, const uint8_t *bytes, size_t n, uint64_t off)
{
    while (n) {
        ssize_t done = pwrite(to, bytes, n, (off_t)off);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0)
            return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SDB_ERR_NOSPC
                                                                        : SDB_ERR_IO;
        bytes += done;
        off += (uint64_t)done;
        n -= (size_t)done;
    }
    return SDB_OK;
}

static bool
is_zero(const uint8_t *bytes, size_t n)
{
    return n == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, n - 1) == 0);
}

/* Leaves out what is zero anyway: a file that was never written there reads as zero. */
static int
write_sparse(int to, const uint8_t *bytes, size_t n, uint64_t off)
{
    for (size_t i = 0, from = 0; i < n; i += HOLE_BYTES) {
        size_t step = n - i < HOLE_BYTES ? n - i : HOLE_BYTES;
        bool zero = is_zero(bytes + i, step);
        if (zero && i > from) {
            int err = write_all(to, bytes + from, i - from, off + from);
            if (err) return err;
        }
        if (zero) from = i + step;
        else if (i + step >= n) return write_all(to, bytes + from, n - from, off + from);
    }
    return SDB_OK;
}

/* Reads once; counts what was not in memory. */
static ssize_t
read_window(int from, uint8_t *window, size_t n, uint64_t off, struct oomd_ring_copy *copy)
{
    struct iovec v = {.iov_base = window, .iov_len = n};
    ssize_t got = preadv2(from, &v, 1, (off_t)off, RWF_NOWAIT);
    if (got > 0) return got;
    if (got < 0 && errno != EAGAIN && errno != EOPNOTSUPP && errno != EINVAL) return got;
    bool absent = got < 0 && errno == EAGAIN;
    if (n > HOLE_BYTES) n = HOLE_BYTES;
    do got = pread(from, window, n, (off_t)off);
    while (got < 0 && errno == EINTR);
    /* what was never written is in no cache either */
    if (absent && got > 0 && !is_zero(window, (size_t)got)) copy->evicted_bytes += (uint64_t)got;
    return got;
}

int
oomd_ring_copy(int from, uint64_t bytes, int to, uint64_t at, struct oomd_ring_copy *copy)
{
    uint8_t *window = malloc(WINDOW_BYTES);
    int err = window ? SDB_OK : SDB_ERR_NOMEM;
    memset(copy, 0, sizeof *copy);
    copy->bytes = bytes;
    for (uint64_t off = 0; !err && off < bytes;) {
        size_t n = bytes - off < WINDOW_BYTES ? (size_t)(bytes - off) : WINDOW_BYTES;
        ssize_t got = read_window(from, window, n, off, copy);
        if (got < 0) err = SDB_ERR_IO;
        if (got == 0) copy->missing_bytes = bytes - off;
        if (got <= 0) break;
        if (off == 0 && got >= 8) copy->is_ring = memcmp(window, &(uint64_t){SDB_MAGIC}, 8) == 0;
        err = write_sparse(to, window, (size_t)got, at + off);
        off += (uint64_t)got;
    }
    if (!err && ftruncate(to, (off_t)(at + bytes)) != 0) err = SDB_ERR_IO;
    free(window);
    return err;
}

static uint32_t
block_crc(uint64_t seq, uint32_t bytes, const uint8_t *payload)
{
    uint32_t crc = sdb_crc32c(0, &seq, sizeof seq);
    crc = sdb_crc32c(crc, &bytes, sizeof bytes);
    return sdb_crc32c(crc, payload, bytes);
}

uint64_t
oomd_pending_seal(uint8_t *bytes, uint64_t n, uint64_t from, uint64_t seq)
{
    while (from + SDB_BLOCK_HEADER_BYTES < n) {
        uint64_t room = n - from - SDB_BLOCK_HEADER_BYTES;
        uint32_t length, crc;
        memcpy(&length, bytes + from, sizeof length);
        memcpy(&crc, bytes + from + 4, sizeof crc);
        bool open = crc == 0;
        if (open && length == 0)
            length = room > SDB_BLOCK_MAX_BYTES ? SDB_BLOCK_MAX_BYTES : (uint32_t)room;
        if (length == 0 || length > room || length > SDB_BLOCK_MAX_BYTES) break;
        if (open) {
            crc = block_crc(seq, length, bytes + from + SDB_BLOCK_HEADER_BYTES);
            memcpy(bytes + from, &length, sizeof length);
            memcpy(bytes + from + 4, &crc, sizeof crc);
        }
        from += SDB_BLOCK_HEADER_BYTES + length;
        if (open) break;
    }
    return from;
}

/* Bytes of whole blocks that the file has from `off` on. */
static uint64_t
chain_bytes(int fd, uint64_t off, uint64_t end, uint64_t seq)
{
    uint8_t *block = malloc(SDB_BLOCK_HEADER_BYTES + SDB_BLOCK_MAX_BYTES);
    uint64_t from = off;
    while (block != NULL && off + SDB_BLOCK_HEADER_BYTES < end) {
        uint32_t length, crc;
        if (pread(fd, block, SDB_BLOCK_HEADER_BYTES, (off_t)off) != SDB_BLOCK_HEADER_BYTES) break;
        memcpy(&length, block, 4);
        memcpy(&crc, block + 4, 4);
        if (length == 0 || length > SDB_BLOCK_MAX_BYTES ||
            length > end - off - SDB_BLOCK_HEADER_BYTES)
            break;
        if (pread(fd, block, length, (off_t)(off + SDB_BLOCK_HEADER_BYTES)) != (ssize_t)length)
            break;
        if (block_crc(seq, length, block) != crc) break;
        off += SDB_BLOCK_HEADER_BYTES + length;
    }
    free(block);
    return off - from;
}

int
oomd_ring_merge(int to, uint64_t at, uint64_t off, struct oomd_bytes *pending,
                struct oomd_ring_copy *copy)
{
    struct sdb_identity id;
    struct sdb_area_header chunk;
    if (pending->n == 0 || pread(to, &id, sizeof id, (off_t)at) != sizeof id ||
        id.magic != SDB_MAGIC)
        return SDB_OK;
    if (id.chunk_bytes < SDB_PAGE_BYTES || id.chunk_bytes > copy->bytes ||
        id.chunks_off > copy->bytes || off < id.chunks_off || off >= copy->bytes ||
        pending->n > copy->bytes - off)
        return SDB_OK;
    uint64_t begin = off - (off - id.chunks_off) % id.chunk_bytes, end = begin + id.chunk_bytes;
    if (off + pending->n > end) return SDB_OK;

    uint64_t first = 0; /* of the blocks in pending */
    if (off == begin) { /* a chunk that was just begun: its header is pending too */
        if (pending->n < sizeof chunk) return SDB_OK;
        memcpy(&chunk, pending->at, sizeof chunk);
        first = sizeof chunk;
    } else if (pread(to, &chunk, sizeof chunk, (off_t)(at + begin)) != sizeof chunk) {
        return SDB_OK;
    }
    if (chunk.magic != SDB_CHUNK_MAGIC) return SDB_OK;
    uint64_t n = oomd_pending_seal(pending->at, pending->n, first, chunk.seq);
    /* the scanner may have lived long enough to write it, and more */
    uint64_t there = chain_bytes(to, at + off + first, at + end, chunk.seq);
    if (n <= first || there + first >= n) return SDB_OK;
    copy->merged_bytes = n;
    return write_all(to, pending->at, n, at + off);
}
