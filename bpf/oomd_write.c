/* SPDX-License-Identifier: MIT
 *
 * oomd_write.c - see oomd_write.h.
 *
 * Runs on: dump writer
 */
#include "oomd_write.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "error.h"
#include "oomd_child.h"
#include "oomd_dump.h"
#include "oomd_ring.h"

/* Takes the ring's descriptor from its keeper, which may hang or be stopped: nothing is asked of it. */
static int
take_ring(const struct oomd_write_job *job)
{
    if (job->keeper < 0) return -1;
    return (int)syscall(SYS_pidfd_getfd, job->keeper, job->victim->process->kept_fd, 0);
}

/* As the file's owner, who alone may know. */
static uint8_t *
look_at_cache(int fd, const struct stat *st, uint64_t bytes)
{
    setfsuid(st->st_uid);
    return oomd_ring_cached_pages(fd, bytes);
}

_Noreturn void
oomd_write_in_child(const struct oomd_write_job *job)
{
    signal(SIGTERM, SIG_IGN); /* the daemon decides when it is to end */
    signal(SIGINT, SIG_IGN);
    oomd_child_settle();
    int keep[] = {job->out, take_ring(job)}, count = keep[1] < 0 ? 1 : 2;
    struct oomd_dump_ring ring = {.fd = count == 2 ? 1 : -1, .limit = job->limit};
    struct stat st;
    uint8_t *pages = NULL;
    if (!oomd_child_keep_only(keep, count)) _exit(OOMD_WRITE_FAILED);
    if (count == 2 && fstat(1, &st) == 0 && st.st_size > 0) {
        ring.bytes = (uint64_t)st.st_size;
        if (ring.bytes > job->max_ring_bytes) ring.bytes = job->max_ring_bytes;
        pages = look_at_cache(1, &st, ring.bytes);
    }
    ring.pages = pages;
    if (!oomd_child_confine(job->victim->process->uid, 0)) _exit(OOMD_WRITE_FAILED);
    switch (oomd_dump_write(0, job->victim, &ring)) {
    case SDB_OK:
        _exit(OOMD_WRITE_DONE);
    case SDB_ERR_NOSPC:
        _exit(OOMD_WRITE_FULL);
    case SDB_ERR_NOMEM:
        _exit(OOMD_WRITE_NO_MEMORY);
    case SDB_ERR_FULL:
        _exit(OOMD_WRITE_OVER);
    default:
        _exit(OOMD_WRITE_FAILED);
    }
}
