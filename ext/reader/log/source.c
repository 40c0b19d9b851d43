/* SPDX-License-Identifier: MIT
 *
 * source.c - see source.h.
 *
 * Runs on: offline
 */
#include "log/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "error.h"

/* Takes over fd; a negative one is an error already. */
static int
take(struct sdb_source *s, int fd)
{
    if (fd < 0) return SDB_ERR_IO;
    struct stat st;
    if (fstat(fd, &st) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return SDB_ERR_IO;
    }
    if (!S_ISREG(st.st_mode)) {
        close(fd);
        return SDB_ERR_NOT_RING;
    }
    *s = (struct sdb_source){.fd = fd, .n = st.st_size > 0 ? (uint64_t)st.st_size : 0};
    return SDB_OK;
}

int
sdb_source_open(struct sdb_source *s, const char *path)
{
    /* O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever */
    return take(s, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

int
sdb_source_open_again(struct sdb_source *s, int fd)
{
    return take(s, fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

void
sdb_source_memory(struct sdb_source *s, const void *bytes, size_t n)
{
    *s = (struct sdb_source){.fd = -1, .bytes = bytes, .n = n};
}

void
sdb_source_close(struct sdb_source *s)
{
    if (s->fd >= 0) close(s->fd);
    *s = (struct sdb_source){.fd = -1};
}

int64_t
sdb_source_read(const struct sdb_source *s, uint64_t off, void *buffer, size_t n)
{
    if (off >= s->n) return 0;
    if (n > s->n - off) n = (size_t)(s->n - off);
    if (s->fd < 0) {
        if (s->bytes) memcpy(buffer, s->bytes + s->off + off, n);
        return s->bytes ? (int64_t)n : 0;
    }
    size_t done = 0;
    while (done < n) {
        ssize_t got =
            pread(s->fd, (uint8_t *)buffer + done, n - done, (off_t)(s->off + off + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return SDB_ERR_IO;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (int64_t)done;
}
