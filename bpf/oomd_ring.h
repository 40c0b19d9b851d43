/* SPDX-License-Identifier: MIT
 *
 * oomd_ring.h - the copy of a ring inside a dump: the bytes of the file, and on top those that the dying
 * process had collected but not written.
 *
 * Runs on: dump writer
 */
#ifndef SDB_OOMD_RING_H
#define SDB_OOMD_RING_H

#include <stdbool.h>
#include <stdint.h>
#include "oomd_capture.h"

struct oomd_ring_copy {
    uint64_t bytes; /* of the ring's section */
    uint64_t
        evicted_bytes; /* had left the page cache and were read from the disk; 0 where that is not known */
    uint64_t missing_bytes; /* at the end: the file was shorter than when its size was asked */
    uint64_t merged_bytes;  /* of `pending` */
    uint64_t written_bytes; /* that were no holes */
    bool is_ring;           /* it begins as one */
};

/* Which of the pages of a file are in the page cache: mincore's answer, NULL when there is none; to be freed. To be
 * asked before the first read: a read, RWF_NOWAIT no less, brings in what lies behind it. mincore tells the truth to
 * the file's owner only (mm/mincore.c:can_do_mincore). Nothing is read through the mapping: the file may shrink. */
uint8_t *oomd_ring_cached_pages(int fd, uint64_t bytes);

/* Copies the file `from` (size `bytes`; pages: oomd_ring_cached_pages) to `to` at `at`; runs of zero bytes become holes, the
 * rest counts against `limit`. 0, SDB_ERR_IO, SDB_ERR_NOSPC (errno), SDB_ERR_FULL (over the limit). */
int oomd_ring_copy(int from, uint64_t bytes, const uint8_t *pages, int to, uint64_t at,
                   uint64_t limit, struct oomd_ring_copy *copy);

/* Writes `pending` into the copy at ring offset off, after sealing its last block, when it lies in one chunk and
 * the file did not come further by itself. 0 (also when there was nothing to merge), SDB_ERR_IO, _NOSPC. */
int oomd_ring_merge(int to, uint64_t at, uint64_t off, struct oomd_bytes *pending,
                    struct oomd_ring_copy *copy);

/* Seals the unsealed block at the end of pending (FORMAT.md, "An unsealed block"): sets its length and crc.
 * from: where the first block begins in it. Returns the bytes that hold whole blocks. */
uint64_t oomd_pending_seal(uint8_t *bytes, uint64_t n, uint64_t from, uint64_t seq);

#endif
