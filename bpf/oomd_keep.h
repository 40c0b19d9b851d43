/* SPDX-License-Identifier: MIT
 *
 * oomd_keep.h - a keeper: the process that opens the rings of one user's processes, as that user, and holds them until
 * they are needed. Opening a stranger's file, and looking at what it is, may wait for ever (FUSE, a lease, a
 * descriptor of anything at all), so it happens here: a keeper that does not come back costs its user's next
 * rings, and nobody else anything.
 *
 * Spoken over two pipes: one struct asked, one answered, in turn; with an answer come its packed bytes.
 *
 * Runs on: keeper
 */
#ifndef SDB_OOMD_KEEP_H
#define SDB_OOMD_KEEP_H

#include <stdint.h>

enum { OOMD_KEEP_PATH_BYTES = 1024 };

enum oomd_keep_what {
    OOMD_KEEP_OPEN = 1,
    OOMD_KEEP_DROP = 2, /* `fd` is no longer needed */
};

struct oomd_keep_ask {
    uint64_t id;
    uint32_t what, tgid, tid;
    int32_t fd; /* OPEN: of that thread; DROP: of the keeper */
    uint64_t start_ticks;
    char path[OOMD_KEEP_PATH_BYTES]; /* OPEN: instead of fd; "" none */
};

enum oomd_keep_reason {
    OOMD_KEEP_DONE = 0,
    OOMD_KEEP_NOT_OPENED,
    OOMD_KEEP_NOT_REGULAR,
    OOMD_KEEP_NOT_LOCAL,
    OOMD_KEEP_WRONG_SIZE,
    OOMD_KEEP_NO_RING,
    OOMD_KEEP_NOT_ITSELF, /* another process by now, or one set apart from its user */
    OOMD_KEEP_REASONS,
};

struct oomd_keep_answer {
    uint64_t id;
    uint32_t what, reason;      /* enum oomd_keep_reason */
    int32_t fd;                 /* the ring's in the keeper, -1 none */
    uint32_t description_bytes; /* that follow, at most OOMD_PACKED_BYTES */
    uint64_t dev, ino, bytes;   /* of the ring */
};

const char *oomd_keep_words(uint32_t reason);

/* The keeper itself: `sdb-oomd --keep UID MAX_RING_BYTES`. Its exit code. */
int oomd_keep_main(int argc, char **argv);

#endif
