/* SPDX-License-Identifier: MIT
 *
 * oomd_dump.h - writes one victim as a dump (dump_format.h). Knows neither names of files nor processes to
 * write in.
 *
 * Runs on: dump writer (a child of the daemon without privileges)
 */
#ifndef SDB_OOMD_DUMP_H
#define SDB_OOMD_DUMP_H

#include <stdint.h>
#include "oomd_victim.h"

struct oomd_dump_ring {
    int fd; /* -1: none was kept */
    uint64_t bytes;
    const uint8_t *pages; /* oomd_ring_cached_pages */
    uint64_t limit;       /* so much of it may be data, not holes */
};

/* Writes to the empty file fd and fsyncs it. 0, SDB_ERR_IO, _NOSPC (errno), _NOMEM, _FULL (over the limit). */
int oomd_dump_write(int fd, const struct oomd_victim *v, const struct oomd_dump_ring *ring);

/* "oom", "sigkill" or "unknown". */
const char *oomd_cause(const struct oomd_victim *v);

/* Everything that the probes were to copy is there. */
bool oomd_complete(const struct oomd_victim *v);

#endif
