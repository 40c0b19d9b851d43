/* SPDX-License-Identifier: MIT
 *
 * own_files.c - see own_files.h.
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include "core/own_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* the same on all architectures */
#endif

enum {
    RANGE_UNSHARE = 2, /* CLOSE_RANGE_UNSHARE */
    STANDARD = 3,      /* stdin, stdout, stderr */
};

/* Where ours begin in a shared table, if the limit allows: daemons close 3..255, or all. */
static const int high[] = {512, 128, STANDARD};

static __thread enum sdb_files_way way;

/* A sanitizer's report goes to stderr, and must not be lost. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KEPT STDERR_FILENO
#else
#define KEPT (-1)
#endif

/* Linux 5.9: the new table never holds what is in the range. */
static bool
begin_with_empty_table(void)
{
    if (KEPT < 0) return syscall(SYS_close_range, 0, ~0u, RANGE_UNSHARE) == 0;
    if (syscall(SYS_close_range, KEPT + 1, ~0u, RANGE_UNSHARE) != 0) return false;
    for (int fd = 0; fd < KEPT; fd++) close(fd);
    return true;
}

/* Before 5.9: a copy, emptied at once. For these microseconds the app's files have one more descriptor. */
static bool
begin_with_copy(void)
{
    struct dirent *entry;
    DIR *dir;

    if (unshare(CLONE_FILES) != 0) return false;
    dir = opendir("/proc/thread-self/fd");
    if (dir == NULL) {
        struct rlimit limit = {.rlim_cur = 1 << 16};

        getrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur > 1 << 20) limit.rlim_cur = 1 << 20;
        for (int fd = 0; fd < (int)limit.rlim_cur; fd++)
            if (fd != KEPT) close(fd);
        return true;
    }
    while ((entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name);

        if (entry->d_name[0] != '.' && fd != dirfd(dir) && fd != KEPT) close(fd);
    }
    closedir(dir);
    return true;
}

enum sdb_files_way
sdb_own_files_begin(void)
{
    way = SDB_FILES_SHARED;
    if (!begin_with_empty_table() && !begin_with_copy()) return way;
    way = SDB_FILES_PRIVATE;
    /* whatever the C library or the VM may print on this thread must not find a ring at number 2 */
    while (true) {
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (fd < 0) break;
        if (fd < STANDARD) continue;
        close(fd);
        break;
    }
    return way;
}

enum sdb_files_way
sdb_own_files_way(void)
{
    return way;
}

/* The same file at `from` or above, or where it was when there is no room. */
static int
move_up(int fd, int from)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, from);

    if (moved < 0) return fd;
    close(fd); /* opened and not yet told to anybody: ours for these two system calls */
    return moved;
}

struct sdb_own_fd
sdb_own_fd_take(int fd)
{
    struct sdb_own_fd own = {.fd = fd, .is_private = way == SDB_FILES_PRIVATE};
    struct stat st;

    if (fd < 0) return SDB_OWN_FD_NONE;
    if (own.is_private) {
        if (fd < STANDARD) own.fd = move_up(fd, STANDARD);
        return own;
    }
    if (fstat(fd, &st) != 0) return SDB_OWN_FD_NONE;
    own.dev = st.st_dev;
    own.ino = st.st_ino;
    for (size_t i = 0; own.fd == fd && i < sizeof high / sizeof *high; i++)
        own.fd = move_up(fd, high[i]);
    return own;
}

int
sdb_own_fd_use(const struct sdb_own_fd *own)
{
    struct stat st;

    if (own->fd < 0 || own->is_private) return own->fd;
    if (fstat(own->fd, &st) != 0 || st.st_dev != own->dev || st.st_ino != own->ino) return -1;
    return own->fd;
}

void
sdb_own_fd_close(struct sdb_own_fd *own)
{
    int fd = sdb_own_fd_use(own);

    if (fd >= 0) close(fd);
    *own = SDB_OWN_FD_NONE;
}
