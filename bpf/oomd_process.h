/* SPDX-License-Identifier: MIT
 *
 * oomd_process.h - a process that is watched, as the daemon knows it: what the kernel said of it, and which keeper
 * (oomd_keepers.h) holds its ring. Nothing of it was asked of the process's own files by the daemon itself.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_PROCESS_H
#define SDB_OOMD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "oom_protocol.h"

struct oomd_process;
/* Its ring need not be held any more. */
typedef void oomd_process_release(void *keepers, const struct oomd_process *p);

enum oomd_kept {
    OOMD_KEPT_NOT_YET = 0, /* its keeper is to be asked */
    OOMD_KEPT_ASKED = 1,
    OOMD_KEPT = 2,
    OOMD_KEPT_NEVER = 3, /* refused, or its keeper never came back from it */
};

struct oomd_process {
    /* immutable once in the registry */
    uint64_t id; /* never reused */
    uint32_t tgid, uid;
    uint64_t start_ticks;
    uint64_t table; /* 0: found by its file, nothing known of its memory */
    bool table_version_known;
    uint32_t tid, ring_fd; /* the ring's descriptor, and the thread that has it */
    char *path;            /* of the ring, when it was found by it; else NULL */
    char service[SDB_OOM_SERVICE_BYTES];

    /* owner: oomd_keepers.c */
    oomd_process_release *release; /* to be called with `keepers` when it is freed; NULL in tests */
    void *keepers;
    enum oomd_kept kept;
    uint64_t keeper; /* serial number of the keeper; 0 none */
    int32_t kept_fd; /* the ring's descriptor in the keeper */
    uint64_t ring_dev, ring_ino, ring_bytes;
    uint8_t *description; /* packed (oomd_describe.h) */
    size_t description_bytes;
};

void oomd_process_free(struct oomd_process *p); /* and tells its keeper; accepts NULL */

#endif
