/* SPDX-License-Identifier: MIT
 *
 * oomd_write.h - the child that writes one dump. Bytes of a hostile process are handled here: without root, without
 * the directory, and with two descriptors.
 *
 * Runs on: dump writer
 */
#ifndef SDB_OOMD_WRITE_H
#define SDB_OOMD_WRITE_H

#include <stdint.h>
#include "oomd_victim.h"

enum oomd_write_exit { /* of the child */
                       OOMD_WRITE_DONE = 0,
                       OOMD_WRITE_FULL = 10,
                       OOMD_WRITE_FAILED = 11,
                       OOMD_WRITE_NO_MEMORY = 12,
                       OOMD_WRITE_OVER = 13, /* its user's budget */
};

enum { OOMD_WRITE_BESIDE_BYTES = 2 << 20 }; /* of a dump beside its ring, at most, about */

struct oomd_write_job { /* all borrowed */
    const struct oomd_victim *victim;
    int out, keeper; /* keeper: pidfd of who holds the ring, -1 none */
    uint64_t max_ring_bytes, limit;
};

/* To be called in a forked child. */
_Noreturn void oomd_write_in_child(const struct oomd_write_job *job);

#endif
