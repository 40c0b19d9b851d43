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
#include <sys/mman.h>
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
write_sparse(int to, const uint8_t *bytes, size_t n, uint64_t off, uint64_t *written)
{
    for (size_t i = 0, from = 0; i < n; i += HOLE_BYTES) {
        size_t step = n - i < HOLE_BYTES ? n - i : HOLE_BYTES;
        bool zero = is_zero(bytes + i, step);
        if (!zero) *written += step;
        if (zero && i > from) {
            int err = write_all(to, bytes + from, i - from, off + from);
            if (err) return err;
        }
        if (zero) from = i + step;
        else if (i + step >= n) return write_all(to, bytes + from, n - from, off + from);
    }
    return SDB_OK;
}

static uint64_t
page_bytes(void)
{
    return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint8_t *
oomd_ring_cached_pages(int fd, uint64_t bytes)
{
    uint64_t page = page_bytes();
    uint8_t *pages = calloc(bytes / page + 1, 1);
    void *map = bytes ? mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (pages == NULL || map == MAP_FAILED || mincore(map, bytes, pages) != 0) {
        free(pages);
        pages = NULL;
    }
    if (map != MAP_FAILED) munmap(map, bytes);
    return pages;
}

/* How many of the n bytes read at off were not in the cache. What was never written is in no cache either. */
static uint64_t
count_evicted(const uint8_t *pages, const uint8_t *bytes, size_t n, uint64_t off)
{
    uint64_t evicted = 0, page = page_bytes();
    for (size_t i = 0, step; i < n; i += step) {
        step = page - (off + i) % page;
        if (step > n - i) step = n - i;
        if (!(pages[(off + i) / page] & 1) && !is_zero(bytes + i, step)) evicted += step;
    }
    return evicted;
}

int
oomd_ring_copy(int from, uint64_t bytes, const uint8_t *pages, int to, uint64_t at, uint64_t limit,
               struct oomd_ring_copy *copy)
{
    uint8_t *window = malloc(WINDOW_BYTES);
    int err = window ? SDB_OK : SDB_ERR_NOMEM;
    memset(copy, 0, sizeof *copy);
    copy->bytes = bytes;
    for (uint64_t off = 0; !err && off < bytes;) {
        size_t n = bytes - off < WINDOW_BYTES ? (size_t)(bytes - off) : WINDOW_BYTES;
        ssize_t got = pread(from, window, n, (off_t)off);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) err = SDB_ERR_IO;
        if (got == 0) copy->missing_bytes = bytes - off;
        if (got <= 0) break;
        if (off == 0 && got >= 8) copy->is_ring = memcmp(window, &(uint64_t){SDB_MAGIC}, 8) == 0;
        if (pages) copy->evicted_bytes += count_evicted(pages, window, (size_t)got, off);
        err = write_sparse(to, window, (size_t)got, at + off, &copy->written_bytes);
        if (!err && copy->written_bytes > limit) err = SDB_ERR_FULL;
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
