/* SPDX-License-Identifier: MIT
 *
 * oomd_retain.h - keeps the dumps within their budget. Removes only files named like dumps that the daemon
 * made, in its own directory, and of them first the oldest of that user who has most of them (or whose take most
 * room, when room is short): who dies often on purpose loses his own.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_RETAIN_H
#define SDB_OOMD_RETAIN_H

#include <stdint.h>

struct oomd_budget {
    uint64_t bytes, files;
};

/* Makes room for what is on its way: so many files, so many bytes together. Returns how many were removed. */
int oomd_retain(int dir_fd, const struct oomd_budget *budget, uint64_t coming_files,
                uint64_t coming_bytes);

/* For a full disk: removes dumps until `bytes` are freed or none is left. Returns the bytes freed. */
uint64_t oomd_retain_free(int dir_fd, uint64_t bytes);

/* Removes what a daemon that was killed left half written. */
void oomd_retain_unfinished(int dir_fd);

#define OOMD_DUMP_SUFFIX ".sdbdump"
#define OOMD_UNFINISHED_PREFIX ".unfinished-"

#endif
