/* SPDX-License-Identifier: MIT
 *
 * own_files.h - descriptors that the app cannot close, use or meet. The scanner thread has a descriptor table of its own:
 * what the app does with numbers does not touch ours, ours take none of its numbers, and a forked child inherits none.
 *
 * Where a sandbox does not allow a table of one's own, ours lie in the app's, at high numbers, and each use and each
 * close first asks whether the number still is the file it was (device and inode). PROTOCOL.md, "Descriptors", has the
 * reasons and what is left of the risk there.
 *
 * Runs on: see each
 */
#ifndef SDB_OWN_FILES_H
#define SDB_OWN_FILES_H

#include <stdbool.h>
#include <sys/types.h>

enum sdb_files_way {
    SDB_FILES_VISITOR = 0, /* this thread keeps no descriptors: it opens, uses and closes */
    SDB_FILES_PRIVATE = 1, /* a table of its own */
    SDB_FILES_SHARED = 2,  /* the app's table, with the checks */
};

/* Gives the calling thread a table of its own, without any descriptor of the app's in it. What was opened before is
 * not there. Runs on: scanner thread, first of all. */
enum sdb_files_way sdb_own_files_begin(void);
/* Of the calling thread. Runs on: any. */
enum sdb_files_way sdb_own_files_way(void);

struct sdb_own_fd { /* owner: the thread that took it */
    int fd;         /* -1 none */
    bool is_private;
    dev_t dev;
    ino_t ino;
};
#define SDB_OWN_FD_NONE                                                                            \
    (struct sdb_own_fd)                                                                            \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* Takes over fd, which the caller has just opened; it may get another number. -1 gives none. */
struct sdb_own_fd sdb_own_fd_take(int fd);
/* The number, -1 when there is none or it is no longer ours. Runs on: the thread that took it. */
int sdb_own_fd_use(const struct sdb_own_fd *own);
/* Closes it if it is ours. Runs on: the thread that took it; where it was not private, also its forked child and
 * any thread after its end. */
void sdb_own_fd_close(struct sdb_own_fd *own);

#endif
