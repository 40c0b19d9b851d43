/* SPDX-License-Identifier: MIT
 *
 * ring_identity.h - the first two pages of a ring: who this process is and how the file is laid out.
 *
 * Runs on: any thread that may block (reads /proc)
 */
#ifndef SDB_RING_IDENTITY_H
#define SDB_RING_IDENTITY_H

#include <stddef.h>
#include <stdint.h>
#include "ring_format.h"

/* Sizes and offsets for a file of at most ring_bytes. 0 or SDB_ERR_INVALID. */
int sdb_identity_layout(struct sdb_identity *id, uint64_t ring_bytes);

struct sdb_identity_facts { /* what the process cannot be asked for; as in struct sdb_ring_config */
    uint64_t interval_ns;
    uint32_t flags;
    const char *text;
    size_t text_bytes;
    uint64_t start_monotonic_ns, start_realtime_ns;
};

/* Everything else of the identity (state CREATING) and the text into `pages`, SDB_IDENTITY_BYTES long;
 * *id becomes the copy of its fixed part. The layout in *id must be there already. What /proc does not
 * give stays 0. */
void sdb_identity_fill(struct sdb_identity *id, uint8_t *pages,
                       const struct sdb_identity_facts *facts);

/* 0 when `pages` (n bytes from the start of a file) begin with an intact identity of this major version, else
 * SDB_ERR_NOT_RING, _VERSION, _CORRUPT. */
int sdb_identity_check(const uint8_t *pages, size_t n);

#endif
