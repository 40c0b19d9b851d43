/* SPDX-License-Identifier: MIT
 *
 * safe_read.c - process_vm_readv or /proc/self/mem. Runs on: any
 */
#define _GNU_SOURCE
#include "core/safe_read.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <unistd.h>
#include "core/own_files.h"
#include "error.h"
#include "sdb_atomic.h"

static struct {
    /* shared: atomic (the fork handler clears it) */
    uint32_t way;
    /* immutable after probe */
    pid_t pid;
    /* owner: scanner */
    struct sdb_own_fd mem;
} reader = {.mem = {.fd = -1}};

/* The pid and the descriptor of a child are its parent's: nothing may be read with them. */
static void
forget_in_child(void)
{
    sdb_store_relaxed(&reader.way, SDB_SAFE_READ_NONE);
    if (!reader.mem.is_private) sdb_own_fd_close(&reader.mem);
    reader.mem = SDB_OWN_FD_NONE;
}

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void
watch_fork(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

static bool
vm_read(void *dst, uint64_t src, size_t n)
{
    struct iovec local = {dst, n}, remote = {(void *)(uintptr_t)src, n};
    ssize_t got;

    do {
        got = process_vm_readv(reader.pid, &local, 1, &remote, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)n;
}

static bool
pread_all(int fd, void *dst, uint64_t src, size_t n)
{
    ssize_t got;

    do {
        got = pread(fd, dst, n, (off_t)src);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)n; /* a short read ends at the first page that is not there */
}

static int
open_mem(void)
{
    return open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
}

/* The scanner keeps a descriptor; others read seldom and keep none. */
static bool
mem_read(void *dst, uint64_t src, size_t n)
{
    bool whole;
    int fd;

    if (sdb_own_files_way() != SDB_FILES_VISITOR) {
        fd = sdb_own_fd_use(&reader.mem);
        if (fd < 0) {
            reader.mem = sdb_own_fd_take(open_mem());
            fd = reader.mem.fd;
        }
        return fd >= 0 && pread_all(fd, dst, src, n);
    }
    fd = open_mem();
    if (fd < 0) return false;
    whole = pread_all(fd, dst, src, n);
    close(fd);
    return whole;
}

void
sdb_safe_read_scanner_ends(void)
{
    sdb_own_fd_close(&reader.mem);
}

enum sdb_safe_read_way
sdb_safe_read_probe(void)
{
    const uint64_t known = 0x5db5db5db5db5db5ull;
    uint64_t word = 0;
    uint32_t way = SDB_SAFE_READ_NONE;

    pthread_once(&fork_once, watch_fork);
    reader.pid = getpid();
    if (vm_read(&word, (uintptr_t)&known, sizeof word) && word == known) {
        way = SDB_SAFE_READ_VM;
    } else {
        word = 0;
        if (mem_read(&word, (uintptr_t)&known, sizeof word) && word == known)
            way = SDB_SAFE_READ_MEM;
    }
    sdb_store_relaxed(&reader.way, way); /* threads that read are started after this */
    return (enum sdb_safe_read_way)way;
}

enum sdb_safe_read_way
sdb_safe_read_way(void)
{
    return (enum sdb_safe_read_way)sdb_load_relaxed(&reader.way);
}

const char *
sdb_safe_read_way_name(void)
{
    switch (sdb_safe_read_way()) {
    case SDB_SAFE_READ_VM:
        return "process_vm_readv";
    case SDB_SAFE_READ_MEM:
        return "/proc/self/mem";
    case SDB_SAFE_READ_NONE:
        break;
    }
    return "none";
}

int
sdb_safe_read(void *dst, uint64_t src, size_t n)
{
    if (n == 0) return 0;
    switch (sdb_safe_read_way()) {
    case SDB_SAFE_READ_VM:
        return vm_read(dst, src, n) ? 0 : SDB_ERR_IO;
    case SDB_SAFE_READ_MEM:
        return mem_read(dst, src, n) ? 0 : SDB_ERR_IO;
    case SDB_SAFE_READ_NONE:
        break;
    }
    return SDB_ERR_UNSUPPORTED;
}

/* One call for all pieces from `at` on; marks those it read whole, and the first it did not as failed.
 * Returns the index behind that one. */
static unsigned
vm_read_from(struct sdb_safe_piece *pieces, unsigned at, unsigned count)
{
    struct iovec local[SDB_SAFE_PIECES_MAX], remote[SDB_SAFE_PIECES_MAX];
    unsigned n = 0;
    ssize_t got;

    for (unsigned i = at; i < count; i++, n++) {
        local[n] = (struct iovec){pieces[i].dst, pieces[i].bytes};
        remote[n] = (struct iovec){(void *)(uintptr_t)pieces[i].src, pieces[i].bytes};
    }
    do {
        got = process_vm_readv(reader.pid, local, n, remote, n, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) got = 0;
    for (; at < count; at++) {
        if ((size_t)got < pieces[at].bytes) {
            pieces[at].err = SDB_ERR_IO;
            return at + 1;
        }
        got -= (ssize_t)pieces[at].bytes;
        pieces[at].err = 0;
    }
    return at;
}

int
sdb_safe_readv(struct sdb_safe_piece *pieces, unsigned count)
{
    enum sdb_safe_read_way way = sdb_safe_read_way();
    int good = 0;

    if (count > SDB_SAFE_PIECES_MAX) return SDB_ERR_INVALID;
    if (way == SDB_SAFE_READ_NONE) {
        for (unsigned i = 0; i < count; i++) pieces[i].err = SDB_ERR_UNSUPPORTED;
        return SDB_ERR_UNSUPPORTED;
    }
    if (way == SDB_SAFE_READ_VM) {
        for (unsigned at = 0; at < count;) at = vm_read_from(pieces, at, count);
    } else {
        for (unsigned i = 0; i < count; i++)
            pieces[i].err = sdb_safe_read(pieces[i].dst, pieces[i].src, pieces[i].bytes);
    }
    for (unsigned i = 0; i < count; i++) good += pieces[i].err == 0;
    return good;
}
