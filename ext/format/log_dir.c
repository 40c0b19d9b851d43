/* SPDX-License-Identifier: MIT
 *
 * log_dir.c - see log_dir.h. What is asked is asked of the directory that is open, never of its name.
 */
#include "log_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "error.h"

enum {
    NAME_BYTES = 96, /* of what will lie in it */
    REAL_BYTES = 4096,
    OPEN = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
    OTHERS_WRITE = S_IWGRP | S_IWOTH,
    USER_NAMES = 10, /* sdb-1000, sdb-1000.1 ... */
};

static int
error_of(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return SDB_ERR_NOSPC;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case ELOOP:
    case ENOENT:
    case EEXIST:
        return SDB_ERR_ACCESS;
    case ENAMETOOLONG:
        return SDB_ERR_INVALID;
    default:
        return SDB_ERR_IO;
    }
}

static unsigned
me(void)
{
    return (unsigned)geteuid();
}

/* mkdir -p with 0700 for what is missing. 0 or an errno. */
static int
make_dirs(const char *dir)
{
    char path[SDB_LOG_DIR_PATH_BYTES];
    size_t n = strlen(dir);

    if (n == 0 || n >= sizeof path) return ENAMETOOLONG;
    memcpy(path, dir, n + 1);
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != '\0') continue;
        path[i] = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            int number = errno;
            struct stat st;

            /* a parent we may not write to, or on a read-only mount, may be there all the same */
            if (stat(path, &st) != 0) return number;
        }
        path[i] = dir[i];
    }
    return 0;
}

static bool
is_ours(const struct stat *st)
{
    return st->st_uid == geteuid() && !(st->st_mode & OTHERS_WRITE);
}

/* Takes over fd. 0 with the real path in *out. */
static int
give(struct sdb_log_dir *out, int fd, const char *path)
{
    char real[REAL_BYTES];

    if (realpath(path, real) == NULL || strlen(real) + NAME_BYTES >= sizeof out->path) {
        int err = error_of(strlen(path) + NAME_BYTES >= sizeof out->path ? ENAMETOOLONG : errno);

        snprintf(out->reason, sizeof out->reason, "%.200s: %s", path,
                 err == SDB_ERR_INVALID ? "the name is too long" : strerror(errno));
        close(fd);
        return err;
    }
    strcpy(out->path, real);
    out->fd = fd;
    return SDB_OK;
}

/* `name` in the directory parent, which must be ours alone. fd or a negative errno; *st is what is there, if any. */
static int
open_own(int parent, const char *name, bool make, struct stat *st)
{
    int fd, number;

    memset(st, 0, sizeof *st);
    if (make && mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return -errno;
    if (fstatat(parent, name, st, AT_SYMLINK_NOFOLLOW) != 0) return -errno;
    fd = openat(parent, name, OPEN | O_NOFOLLOW);
    if (fd < 0) return -errno;
    number = fstat(fd, st) != 0 ? errno : 0;
    if (number == 0 && st->st_uid == geteuid() && !is_ours(st) && make) {
        /* ours, but a default ACL or somebody's chmod lets others in */
        if (fchmod(fd, 0700) != 0 || fstat(fd, st) != 0) number = errno;
    }
    if (number == 0 && !is_ours(st)) number = EPERM;
    if (number == 0) return fd;
    close(fd);
    return -number;
}

static int
open_subfolder(const char *dir, int parent, const struct stat *where, bool make,
               struct sdb_log_dir *out)
{
    char name[32], path[SDB_LOG_DIR_PATH_BYTES + 32];
    struct stat st;
    int fd;

    snprintf(name, sizeof name, "sdb-%u", me());
    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open_own(parent, name, make, &st);
    if (fd >= 0) return give(out, fd, path);
    if (st.st_mode != 0)
        snprintf(
            out->reason, sizeof out->reason,
            "%.200s is not a directory of uid %u alone (it belongs to uid %u, mode %o); remove "
            "it or set SDB_DIR to another directory",
            path, me(), (unsigned)st.st_uid, (unsigned)st.st_mode & 07777);
    else if (fd == -EACCES || fd == -EPERM)
        snprintf(out->reason, sizeof out->reason,
                 "uid %u may not write to %.200s (it belongs to uid %u, mode %o); set SDB_DIR to a "
                 "directory that it may write to (in Kubernetes by fsGroup)",
                 me(), dir, (unsigned)where->st_uid, (unsigned)where->st_mode & 07777);
    else
        snprintf(out->reason, sizeof out->reason, "%.200s cannot be made: %s", path, strerror(-fd));
    return error_of(-fd);
}

int
sdb_log_dir_open(const char *dir, bool make, struct sdb_log_dir *out)
{
    struct stat st;
    int number, fd = -1, err;

    memset(out, 0, sizeof *out);
    out->fd = -1;
    number = make ? make_dirs(dir) : strlen(dir) >= SDB_LOG_DIR_PATH_BYTES ? ENAMETOOLONG : 0;
    if (number == 0) {
        fd = open(dir, OPEN);
        if (fd < 0 || fstat(fd, &st) != 0) number = errno;
    }
    if (number != 0) {
        snprintf(out->reason, sizeof out->reason, "%.200s: %s%s", dir, strerror(number),
                 number == EACCES || number == EPERM || number == EROFS
                     ? "; set SDB_DIR to a directory that this user may write to"
                     : "");
        if (fd >= 0) close(fd);
        return error_of(number);
    }
    if (is_ours(&st)) return give(out, fd, dir);
    err = open_subfolder(dir, fd, &st, make, out);
    close(fd);
    return err;
}

int
sdb_log_dir_open_user(const char *tmp, bool make, struct sdb_log_dir *out)
{
    char name[32], path[SDB_LOG_DIR_PATH_BYTES + 32];
    struct stat st;
    int parent, fd = -ENOENT;

    memset(out, 0, sizeof *out);
    out->fd = -1;
    if (strlen(tmp) >= SDB_LOG_DIR_PATH_BYTES) return SDB_ERR_INVALID;
    parent = open(tmp, OPEN);
    if (parent < 0) {
        snprintf(out->reason, sizeof out->reason, "%.200s: %s", tmp, strerror(errno));
        return error_of(errno);
    }
    for (int i = 0; i < USER_NAMES; i++) {
        snprintf(name, sizeof name, i == 0 ? "sdb-%u" : "sdb-%u.%d", me(), i);
        snprintf(path, sizeof path, "%s/%s", tmp, name);
        fd = open_own(parent, name, make, &st);
        if (fd >= 0) {
            close(parent);
            return give(out, fd, path);
        }
        if (make && st.st_mode == 0) break; /* not because somebody else's is there */
        snprintf(out->reason, sizeof out->reason,
                 "%.200s is not a directory of uid %u alone (it belongs to uid %u); remove it",
                 path, me(), (unsigned)st.st_uid);
    }
    if (out->reason[0] == '\0')
        snprintf(out->reason, sizeof out->reason, "%.200s cannot be made: %s", path, strerror(-fd));
    close(parent);
    return error_of(-fd);
}
