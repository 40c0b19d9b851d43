/* SPDX-License-Identifier: MIT
 *
 * ring_file.c - creation, writing, the resident window, closing. Retention is in ring_retain.c, the
 * contents of the header page in ring_identity.c.
 *
 * Runs on: see ring_file.h
 */
#define _GNU_SOURCE 1 /* as ruby.h has it */
#include "core/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/ring_identity.h"
#include "core/testpoint.h"
#include "error.h"

enum {
    NAME_BYTES = 96,
    LOCK_TRIES = 100,
    LOCK_PAUSE_NS = 1000000,
    CHUNKS_FIRST = 2, /* a ring has at least two */
    AREA_FIRST_BYTES = 256 << 10,
};

static int
error_of(int number)
{
    switch (number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return SDB_ERR_NOSPC;
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTDIR:
    case ELOOP:
    case ENOENT:
        return SDB_ERR_ACCESS;
    case ENAMETOOLONG:
        return SDB_ERR_INVALID;
    case ENOMEM:
        return SDB_ERR_NOMEM;
    default:
        return SDB_ERR_IO;
    }
}

void
sdb_xfsz_block(struct sdb_xfsz_guard *g)
{
    sigset_t xfsz, pending;

    sigpending(&pending);
    g->was_pending = sigismember(&pending, SIGXFSZ) == 1;
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &xfsz, &g->before);
}

void
sdb_xfsz_restore(struct sdb_xfsz_guard *g)
{
    sigset_t xfsz;
    struct timespec now = {0, 0};

    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    if (!g->was_pending) {
        while (sigtimedwait(&xfsz, NULL, &now) < 0 && errno == EINTR) continue;
    }
    pthread_sigmask(SIG_SETMASK, &g->before, NULL);
}

/* The directory's descriptor; where dir is of no use, that of the user's own. */
static int
open_dir(struct sdb_ring_file *f, const struct sdb_ring_config *config)
{
    struct sdb_log_dir there;
    int err = SDB_ERR_INVALID;

    if (config->dir[0] != '\0') {
        err = sdb_log_dir_open(config->dir, true, &there);
        if (err != 0) strcpy(f->reason, there.reason);
    }
    if (err != 0 && config->tmp != NULL) {
        int number = sdb_log_dir_open_user(config->tmp, true, &there);

        if (number == 0 || f->reason[0] == '\0') err = number;
        if (number != 0 && f->reason[0] == '\0') strcpy(f->reason, there.reason);
    }
    if (err != 0) return err;
    strcpy(f->dir, there.path);
    return there.fd;
}

static uint64_t
random_word(void)
{
    uint64_t word;

    if (getrandom(&word, sizeof word, GRND_NONBLOCK) == (ssize_t)sizeof word) return word;
    return sdb_monotonic_ns() * 0x9e3779b97f4a7c15ull ^
           (uint64_t)getpid(); /* O_EXCL finds clashes */
}

/* A reader that asks whether we live holds a shared lock for a moment: hence some tries. */
static int
take_lock(int fd)
{
    for (int i = 0; i < LOCK_TRIES; i++) {
        struct timespec pause = {0, LOCK_PAUSE_NS};

        if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 0;
        if (errno != EWOULDBLOCK && errno != EINTR) return -1;
        nanosleep(&pause, NULL);
    }
    return -1;
}

static int
allocate(int fd, uint64_t off, uint64_t bytes)
{
    int number;

    do {
        number = posix_fallocate(fd, (off_t)off, (off_t)bytes);
    } while (number == EINTR);
    return number;
}

/* The whole size, and room for what a process needs that lives for a moment. 0 or an errno. */
static int
allocate_begin(struct sdb_ring_file *f)
{
    const struct sdb_identity *id = &f->identity;
    uint64_t area = id->area_bytes < AREA_FIRST_BYTES ? id->area_bytes : AREA_FIRST_BYTES;
    int number = 0;

    if (ftruncate(f->own.fd, (off_t)id->file_bytes) != 0) return errno;
    if (number == 0) number = allocate(f->own.fd, 0, id->area_a_off + area);
    if (number == 0) number = allocate(f->own.fd, id->area_b_off, area);
    if (number == 0)
        number = allocate(f->own.fd, id->chunks_off, CHUNKS_FIRST * (uint64_t)SDB_CHUNK_BYTES);
    f->chunks_ready = CHUNKS_FIRST;
    return number;
}

/* The descriptor, after a check that it is ours; opened again when the app has closed it. -1 with last_errno. */
static int
descriptor(struct sdb_ring_file *f)
{
    struct stat st;
    int fd = sdb_own_fd_use(&f->own);

    if (fd >= 0) return fd;
    fd = open(f->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_dev != f->dev || st.st_ino != f->ino)) {
        close(fd);
        fd = -1;
        errno = ESTALE;
    }
    if (fd < 0) f->last_errno = errno;
    f->own = sdb_own_fd_take(fd);
    return f->own.fd;
}

/* A lock lives as long as the open file description, and a mapping keeps that alive: the app can close every
 * descriptor. Gone with the process, at exec, and not in a child. */
static void
keep_lock(struct sdb_ring_file *f)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *life;

    if (f->own.is_private) return; /* nobody can close it */
    life = mmap(NULL, page, PROT_NONE, MAP_SHARED, f->own.fd, 0);
    if (life == MAP_FAILED) return;
    madvise(life, page, MADV_DONTFORK);
    f->life = life;
}

static int
write_state(struct sdb_ring_file *f, enum sdb_ring_state state)
{
    uint32_t word = state;
    int err = sdb_ring_file_write(f, offsetof(struct sdb_identity, state), &word, sizeof word);

    if (err == 0) f->identity.state = state;
    return err;
}

bool
sdb_ring_file_room_for(struct sdb_ring_file *f, uint64_t place)
{
    int fd;

    if (place < f->chunks_ready) return true;
    fd = descriptor(f);
    if (fd < 0 || place > f->chunks_ready) return false;
    if (allocate(fd, f->identity.chunks_off + place * SDB_CHUNK_BYTES, SDB_CHUNK_BYTES) != 0) {
        f->stays_small = true;
        return false;
    }
    f->stays_small = false;
    f->chunks_ready++;
    return true;
}

static void
punch(int fd, uint64_t from, uint64_t to)
{
    from = (from + SDB_PAGE_BYTES - 1) & ~(uint64_t)(SDB_PAGE_BYTES - 1);
    if (from < to)
        (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                        (off_t)(to - from));
}

void
sdb_ring_file_trim(struct sdb_ring_file *f, uint64_t used_off, uint64_t used_a, uint64_t used_b)
{
    const struct sdb_identity *id = &f->identity;
    int fd = f->open ? descriptor(f) : -1;

    if (fd < 0) return;
    punch(fd, used_off, id->file_bytes);
    punch(fd, id->area_a_off + used_a, id->area_b_off);
    punch(fd, id->area_b_off + used_b, id->chunks_off);
}

static void
drop_window(struct sdb_ring_file *f)
{
    if (f->resident != NULL) munmap(f->resident, f->resident_bytes); /* unlocks too */
    f->resident = NULL;
    f->resident_off = f->resident_bytes = 0;
}

static void
let_go(struct sdb_ring_file *f)
{
    drop_window(f);
    if (f->life != NULL) munmap(f->life, (size_t)sysconf(_SC_PAGESIZE));
    f->life = NULL;
    sdb_own_fd_close(&f->own);
    f->open = false;
}

/* Everything between the open descriptor and LIVE. */
static int
fill_file(struct sdb_ring_file *f, const uint8_t *pages)
{
    int err;

    /* lock before the magic: who sees a ring without a lock sees a dead one */
    if (take_lock(f->own.fd) != 0) {
        f->last_errno = errno;
        return SDB_ERR_IO;
    }
    keep_lock(f);
    SDB_TESTPOINT(before_header);
    err = sdb_ring_file_write(f, 0, pages, SDB_IDENTITY_BYTES);
    if (err != 0) return err;
    SDB_TESTPOINT(after_header_creating);
    f->last_errno = allocate_begin(f);
    if (f->last_errno != 0) return error_of(f->last_errno);
    SDB_TESTPOINT(before_live);
    return write_state(f, SDB_RING_LIVE);
}

static int
create_locked_down(struct sdb_ring_file *f, const struct sdb_ring_config *config)
{
    uint8_t *pages;
    char name[NAME_BYTES];
    struct stat st;
    int err, dir_fd, fd;

    err = sdb_identity_layout(&f->identity, config->ring_bytes);
    if (err != 0) return err;
    dir_fd = open_dir(f, config);
    if (dir_fd < 0) return dir_fd;
    pages = malloc(SDB_IDENTITY_BYTES);
    if (pages == NULL) {
        close(dir_fd);
        return SDB_ERR_NOMEM;
    }
    struct sdb_identity_facts facts = {
        .interval_ns = config->interval_ns,
        .flags = config->flags,
        .text = config->text,
        .text_bytes = config->text_bytes,
        .start_monotonic_ns = config->start_monotonic_ns,
        .start_realtime_ns = config->start_realtime_ns,
    };
    sdb_identity_fill(&f->identity, pages, &facts);
    do {
        snprintf(name, sizeof name, "%u-%llu-%016llx.sdb", f->identity.pid,
                 (unsigned long long)f->identity.process_start_ticks,
                 (unsigned long long)random_word());
        fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    } while (fd < 0 && (errno == EEXIST || errno == EINTR));
    if (fd < 0 || fstat(fd, &st) != 0) {
        f->last_errno = errno;
        err = error_of(errno);
    } else {
        snprintf(f->path, sizeof f->path, "%.*s/%s", SDB_PATH_MAX - NAME_BYTES - 2, f->dir, name);
        f->own = sdb_own_fd_take(fd);
        f->dev = st.st_dev;
        f->ino = st.st_ino;
        f->open = true;
        err = fill_file(f, pages);
        if (err != 0) {
            unlinkat(dir_fd, name, 0);
            let_go(f);
        }
    }
    free(pages);
    close(dir_fd);
    return err;
}

int
sdb_ring_file_create(struct sdb_ring_file *f, const struct sdb_ring_config *config)
{
    struct sdb_xfsz_guard guard;
    int err;

    memset(f, 0, sizeof *f);
    f->own = SDB_OWN_FD_NONE;
    if (config->dir == NULL) return SDB_ERR_INVALID;
    sdb_xfsz_block(&guard);
    err = create_locked_down(f, config);
    sdb_xfsz_restore(&guard);
    if (err == 0) sdb_ring_file_retain(f->dir, config->keep_files, &f->identity);
    return err;
}

int
sdb_ring_file_write(struct sdb_ring_file *f, uint64_t off, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    int fd = descriptor(f);

    if (fd < 0) return SDB_ERR_IO;
    while (n > 0) {
        ssize_t done = pwrite(fd, p, n, (off_t)off);

        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            f->last_errno = done < 0 ? errno : EIO;
            return error_of(f->last_errno) == SDB_ERR_NOSPC ? SDB_ERR_NOSPC : SDB_ERR_IO;
        }
        p += done;
        off += (uint64_t)done;
        n -= (size_t)done;
    }
    return 0;
}

void
sdb_ring_file_keep_resident(struct sdb_ring_file *f, uint64_t off, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t end = off + bytes;
    void *window;

    if (end > f->identity.file_bytes) end = f->identity.file_bytes;
    off -= off % page;
    drop_window(f);
    if (!f->open || end <= off || descriptor(f) < 0) return;
    /* Nobody dereferences this mapping, so no truncation of the file can turn it into a SIGBUS; it is
     * there for mlock, which keeps its pages in memory. A child has no use for it. */
    window = mmap(NULL, end - off, PROT_READ, MAP_SHARED, f->own.fd, (off_t)off);
    if (window == MAP_FAILED) return;
    madvise(window, end - off, MADV_DONTFORK);
    if (mlock(window, end - off) != 0) {
        munmap(window, end - off);
        return;
    }
    f->resident = window;
    f->resident_off = off;
    f->resident_bytes = end - off;
}

void
sdb_ring_file_close(struct sdb_ring_file *f)
{
    struct sdb_xfsz_guard guard;

    if (!f->open) return;
    SDB_TESTPOINT(before_close);
    sdb_xfsz_block(&guard);
    write_state(f, SDB_RING_CLOSED);
    sdb_xfsz_restore(&guard);
    let_go(f);
}

void
sdb_ring_file_abandon(struct sdb_ring_file *f)
{
    let_go(f);
}

void
sdb_ring_file_forget(struct sdb_ring_file *f)
{
    /* neither was inherited (MADV_DONTFORK): their addresses may be something else by now */
    f->resident = f->life = NULL;
    f->resident_off = f->resident_bytes = 0;
    /* nor was a private table: that number is the app's here, or nobody's */
    if (f->own.is_private) f->own = SDB_OWN_FD_NONE;
    let_go(f);
}
