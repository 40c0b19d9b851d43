/* SPDX-License-Identifier: MIT
 *
 * wake_pipe.c - see wake_pipe.h.
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include "vm/wake_pipe.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "sdb_atomic.h"

enum { WAY_BYTES = 64 };

/* Where a number begins that daemons leave alone, if the limit allows. */
static const int high[] = {512, 128, 3};

static bool
is_ours(const struct sdb_wake_pipe *pipe, int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_dev == sdb_load_relaxed(&pipe->dev) &&
           (uint64_t)st.st_ino == sdb_load_relaxed(&pipe->ino);
}

/* The pipe once more, for the calling thread; -1 when the number is something else. */
static int
reopen(const struct sdb_wake_pipe *pipe, int flags)
{
    char way[WAY_BYTES];
    int64_t number = sdb_load_acquire(&pipe->fd);
    int fd = -1;
    if (number < 0) return -1;
    /* "self" is the table of the first thread, which is the app's */
    snprintf(way, sizeof way, "/proc/self/fd/%d", (int)number);
    int there = open(way, O_PATH | O_CLOEXEC);
    if (is_ours(pipe, there)) {
        snprintf(way, sizeof way, "/proc/thread-self/fd/%d", there);
        fd = open(way, flags | O_NONBLOCK | O_CLOEXEC);
    }
    if (there >= 0) close(there);
    return fd;
}

bool
sdb_wake_pipe_open(struct sdb_wake_pipe *pipe)
{
    char way[WAY_BYTES];
    int ends[2], fd = -1;
    struct stat st;
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    /* one descriptor for both ends: without a writer it would be readable at once */
    snprintf(way, sizeof way, "/proc/self/fd/%d", ends[0]);
    int both = open(way, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    close(ends[0]);
    close(ends[1]);
    if (both < 0) return false;
    for (size_t i = 0; fd < 0 && i < sizeof high / sizeof *high; i++)
        fd = fcntl(both, F_DUPFD_CLOEXEC, high[i]);
    close(both);
    if (fd < 0 || fstat(fd, &st) != 0) return false;
    sdb_store_relaxed(&pipe->dev, (uint64_t)st.st_dev);
    sdb_store_relaxed(&pipe->ino, (uint64_t)st.st_ino);
    sdb_store_release(&pipe->fd, fd);
    return true;
}

bool
sdb_wake_pipe_ring(struct sdb_wake_pipe *pipe)
{
    int fd = reopen(pipe, O_WRONLY), number = (int)sdb_load_acquire(&pipe->fd);
    /* no descriptor is left: a stop must get through all the same */
    if (fd < 0 && !is_ours(pipe, number)) return false;
    ssize_t written = write(fd < 0 ? number : fd, "", 1); /* a full pipe is readable, too */
    if (fd >= 0) close(fd);
    (void)written;
    return true;
}

bool
sdb_wake_pipe_rest(struct sdb_wake_pipe *pipe)
{
    char bytes[256];
    int fd = reopen(pipe, O_RDONLY);
    if (fd < 0) return false;
    while (read(fd, bytes, sizeof bytes) == sizeof bytes) {}
    close(fd);
    return true;
}

void
sdb_wake_pipe_close(struct sdb_wake_pipe *pipe)
{
    int fd = (int)sdb_load_relaxed(&pipe->fd);
    if (is_ours(pipe, fd)) close(fd);
    sdb_wake_pipe_forget(pipe);
}

void
sdb_wake_pipe_forget(struct sdb_wake_pipe *pipe)
{
    sdb_store_release(&pipe->fd, -1);
}
