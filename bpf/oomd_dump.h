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

/* Writes to the empty file fd and fsyncs it. ring_bytes: as fstat said; pages: oomd_ring_cached_pages of the ring. 0, SDB_ERR_IO, _NOSPC (errno),
 * _NOMEM. */
int oomd_dump_write(int fd, const struct oomd_victim *v, uint64_t ring_bytes, const uint8_t *pages);

/* "oom", "sigkill" or "unknown". */
const char *oomd_cause(const struct oomd_victim *v);

/* Everything that the probes were to copy is there. */
bool oomd_complete(const struct oomd_victim *v);

#endif
