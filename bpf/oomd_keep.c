/* SPDX-License-Identifier: MIT
 *
 * oomd_keep.c - see oomd_keep.h.
 *
 * Runs on: keeper
 */
#include "oomd_keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "oomd_child.h"
#include "oomd_describe.h"
#include "ring_format.h"

enum { RING_LEAST_BYTES = 64 << 10 };

const char *
oomd_keep_words(uint32_t reason)
{
    static const char *const words[] = {
        [OOMD_KEEP_DONE] = "it was opened",
        [OOMD_KEEP_NOT_OPENED] = "its file cannot be opened by its user",
        [OOMD_KEEP_NOT_REGULAR] = "its file is not a regular one",
        [OOMD_KEEP_NOT_LOCAL] = "its file is not on a local file system",
        [OOMD_KEEP_WRONG_SIZE] = "its file is too small or larger than --max-ring",
        [OOMD_KEEP_NO_RING] = "its file is no ring",
        [OOMD_KEEP_NOT_ITSELF] = "it is not what it says",
    };
    return reason < OOMD_KEEP_REASONS ? words[reason] : "its keeper did not say why";
}

/* On the others another machine, or a process of any user, answers for what is read. */
static bool
is_local(int fd)
{
    static const unsigned long local[] = {
        0xEF53 /* ext2-4 */,
        0x58465342 /* xfs */,
        0x9123683E /* btrfs */,
        0x01021994 /* tmpfs */,
        0x858458F6 /* ramfs */,
        0xF2F52010 /* f2fs */,
        0x2FC12FC1 /* zfs */,
        0xCA451A4E /* bcachefs */,
        0x794C7630 /* overlay: of a FUSE mount in a user namespace, too; that stops only its owner's
                      writer */
    };
    struct statfs fs;
    if (fstatfs(fd, &fs) != 0) return false;
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if ((unsigned long)fs.f_type == local[i]) return true;
    return false;
}

static enum oomd_keep_reason
open_ring(const struct oomd_keep_ask *ask, uint64_t max_bytes, int *fd, struct stat *st)
{
    const int how = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    uint64_t magic = 0;
    char path[64];
    /* of the thread: a recorder keeps its files in a table of its own */
    snprintf(path, sizeof path, "/proc/%u/task/%u/fd/%d", ask->tgid, ask->tid, ask->fd);
    *fd = ask->path[0] ? open(ask->path, how | O_NOFOLLOW) : open(path, how);
    if (*fd < 0) return OOMD_KEEP_NOT_OPENED;
    if (!is_local(*fd)) return OOMD_KEEP_NOT_LOCAL;
    if (fstat(*fd, st) != 0 || !S_ISREG(st->st_mode)) return OOMD_KEEP_NOT_REGULAR;
    if (st->st_size < RING_LEAST_BYTES || (uint64_t)st->st_size > max_bytes)
        return OOMD_KEEP_WRONG_SIZE;
    if (pread(*fd, &magic, sizeof magic, 0) != sizeof magic || magic != SDB_MAGIC)
        return OOMD_KEEP_NO_RING;
    return OOMD_KEEP_DONE;
}

static void
answer_open(const struct oomd_keep_ask *ask, uint32_t uid, uint64_t max_bytes,
            struct oomd_keep_answer *a, uint8_t *packed)
{
    static struct oomd_description d;
    struct stat st = {0};
    a->reason = open_ring(ask, max_bytes, &a->fd, &st);
    if (a->reason == OOMD_KEEP_DONE) {
        a->dev = st.st_dev;
        a->ino = st.st_ino;
        a->bytes = (uint64_t)st.st_size;
    }
    oomd_describe(ask->tgid, &d);
    /* asked last: had it become another process before, all of the above may be about that one */
    if (oomd_start_ticks(ask->tgid) != ask->start_ticks || !oomd_process_is_plainly(ask->tgid, uid))
        a->reason = OOMD_KEEP_NOT_ITSELF;
    else a->description_bytes = (uint32_t)oomd_describe_pack(&d, packed);
    if (a->reason != OOMD_KEEP_DONE && a->fd >= 0) {
        close(a->fd);
        a->fd = -1;
    }
}

static bool
read_all(int fd, void *to, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = read(fd, (char *)to + done, n - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static bool
write_all(int fd, const void *from, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t put = write(fd, (const char *)from + done, n - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += (size_t)put;
    }
    return true;
}

int
oomd_keep_main(int argc, char **argv)
{
    static uint8_t packed[OOMD_PACKED_BYTES];
    struct oomd_keep_ask ask;
    if (argc != 4) return 2;
    uint32_t uid = (uint32_t)strtoul(argv[2], NULL, 10);
    uint64_t max_bytes = strtoull(argv[3], NULL, 10);
    if (!oomd_child_confine(uid, OOMD_MAY_PTRACE | OOMD_MAY_OPEN)) return 3;
    while (read_all(OOMD_CHILD_IN, &ask, sizeof ask)) {
        struct oomd_keep_answer a = {.id = ask.id, .what = ask.what, .fd = -1};
        ask.path[sizeof ask.path - 1] = '\0';
        if (ask.what == OOMD_KEEP_OPEN) answer_open(&ask, uid, max_bytes, &a, packed);
        else if (ask.fd > 2) close(ask.fd);
        if (!write_all(OOMD_CHILD_OUT, &a, sizeof a) ||
            !write_all(OOMD_CHILD_OUT, packed, a.description_bytes))
            break;
    }
    return 0;
}
