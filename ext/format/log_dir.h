/* SPDX-License-Identifier: MIT
 *
 * log_dir.h - which folder is ours: the one decision for those who write logs and those who read them.
 *
 * Ours is a directory that belongs to this user (the effective uid) and that nobody else may write to. In another one
 * logs lie in its subfolder `sdb-<uid>`, which is made with mode 0700: so volumes that everybody or a group may write
 * to serve several users, and nobody can put a log of his own, or a link, among ours.
 *
 * Runs on: any thread that may block
 */
#ifndef SDB_LOG_DIR_H
#define SDB_LOG_DIR_H

#include <stdbool.h>

enum { SDB_LOG_DIR_PATH_BYTES = 1024, SDB_LOG_DIR_REASON_BYTES = 400 };

struct sdb_log_dir {
    int fd;                                /* the directory, open; the caller closes it */
    char path[SDB_LOG_DIR_PATH_BYTES];     /* of what was opened, without links */
    char reason[SDB_LOG_DIR_REASON_BYTES]; /* why not: one line, with what to do */
};

/* `dir`, or its subfolder. make: what is missing is made, with mode 0700. 0, or SDB_ERR_ACCESS, _NOSPC, _IO, _INVALID
 * with a reason. */
int sdb_log_dir_open(const char *dir, bool make, struct sdb_log_dir *out);
/* The user's own below the temp dir: `<tmp>/sdb-<uid>`, and where another user made that, `sdb-<uid>.1` and so on. Links
 * are not followed, and none of these is a place for a subfolder. */
int sdb_log_dir_open_user(const char *tmp, bool make, struct sdb_log_dir *out);

#endif
