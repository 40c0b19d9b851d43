/* SPDX-License-Identifier: MIT
 *
 * oomd_retain.h - keeps the dumps within their budgets. Removes only files named like dumps that the daemon
 * made, in its own directory, and says which.
 *
 * Each user has a budget, and a new dump takes the place of his own oldest ones. All users but root have one together as
 * well: when that is full, who has no dump takes the place of an oldest one of the user who has most, but never of
 * the last that a user has. Root's dumps make room for root's alone.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_RETAIN_H
#define SDB_OOMD_RETAIN_H

#include <stdbool.h>
#include <stdint.h>

enum { OOMD_OTHERS_FILES = 4 }; /* times the files of one user: of all but root */

struct oomd_budget {
    uint64_t bytes, files; /* of one user */
    uint64_t others_bytes; /* of all but root */
};

/* Makes room for one dump of that user, of so many bytes on the disk, which is written but has no name yet. false: there
 * is no room for it. */
bool oomd_retain(int dir_fd, const struct oomd_budget *budget, uint32_t uid, uint64_t bytes);

/* For a full disk: removes dumps, that user's own first, until `bytes` are freed or none may go. Returns the bytes freed. */
uint64_t oomd_retain_free(int dir_fd, uint32_t uid, uint64_t bytes);

/* Removes what a daemon that was killed left half written. */
void oomd_retain_unfinished(int dir_fd);

#define OOMD_DUMP_SUFFIX ".sdbdump"
#define OOMD_UNFINISHED_PREFIX ".unfinished-"

#endif
