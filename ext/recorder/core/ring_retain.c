/* SPDX-License-Identifier: MIT
 *
 * ring_retain.c - removes rings of dead processes, those of least value first. A file is removed only when its name,
 * owner, identity and free lock all say that it is a dead ring of this user.
 *
 * What a ring is worth: one point when the process was killed or crashed, in the last week, for then its log is what
 * somebody will ask for; one when it lived for ten seconds, for a tool that ran for a moment says little, and there are
 * many. Of equal ones the older go first. So fifty runs of short tools push out each other, and no worker.
 *
 * Runs on: any thread that may block
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/ring_file.h"
#include "core/ring_identity.h"
#include "crc32c.h"

enum { NAME_MAX_BYTES = 128, RINGS_MAX = 65536 };
static const uint64_t long_life_ns = 10 * 1000000000ull, week_ns = 7 * 24 * 3600 * 1000000000ull;

struct dead_ring {
    uint64_t ended_ns; /* realtime, within a second */
    int points;
    char name[NAME_MAX_BYTES];
};

/* <pid>-<start ticks>-<hex>.sdb */
static bool
is_ring_name(const char *name)
{
    const char *p = name;
    size_t n;

    if (strlen(name) >= NAME_MAX_BYTES) return false;
    for (int part = 0; part < 2; part++) {
        n = strspn(p, "0123456789");
        if (n == 0 || p[n] != '-') return false;
        p += n + 1;
    }
    n = strspn(p, "0123456789abcdef");
    return n > 0 && strcmp(p + n, ".sdb") == 0;
}

static bool
state_page(const uint8_t *pages, size_t n, size_t off, struct sdb_state_page *page)
{
    uint32_t crc;

    if (n < off + sizeof *page) return false;
    memcpy(page, pages + off, sizeof *page);
    crc = page->crc;
    page->crc = 0;
    return page->magic == SDB_MAGIC && sdb_crc32c(0, page, sizeof *page) == crc;
}

static void
judge(struct dead_ring *ring, const uint8_t *pages, size_t n)
{
    static const size_t offs[] = {SDB_STATE_A_OFF, SDB_STATE_B_OFF};
    struct sdb_identity id;
    struct sdb_state_page page;
    uint64_t lived_ns = 0, now_ns = sdb_clock_ns(CLOCK_REALTIME);
    bool closed;

    memcpy(&id, pages, sizeof id);
    closed = id.state == SDB_RING_CLOSED;
    ring->ended_ns = id.start_realtime_ns;
    for (int i = 0; i < 2; i++) {
        if (!state_page(pages, n, offs[i], &page)) continue;
        closed |= page.state == SDB_RING_CLOSED;
        if (page.at_ns < lived_ns) continue;
        lived_ns = page.at_ns;
        ring->ended_ns = page.realtime_ns;
    }
    ring->points = lived_ns >= long_life_ns;
    /* a clock that was set back must not make a log worthless */
    if (!closed && (ring->ended_ns > now_ns || now_ns - ring->ended_ns < week_ns)) ring->points++;
}

/* Opens `name` when it is a dead ring of ours and holds its lock; -1 otherwise. `pages`: SDB_HEADER_BYTES, what of
 * it is there in *got. */
static int
open_dead(int dir_fd, const char *name, uint8_t *pages, size_t *got)
{
    static const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    struct stat st, named;
    ssize_t n;
    int fd = openat(dir_fd, name, flags);

    if (fd < 0) return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) goto no;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) goto no;
    n = pread(fd, pages, SDB_HEADER_BYTES, 0);
    if (n < 0 || sdb_identity_check(pages, (size_t)n) != 0) goto no;
    /* the name may have been given to another file meanwhile */
    if (fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) != 0) goto no;
    if (named.st_ino != st.st_ino || named.st_dev != st.st_dev) goto no;
    *got = (size_t)n;
    return fd;

no:
    close(fd);
    return -1;
}

/* A dead ring of this very process: it became another program, this one (exec). It was not killed. */
static void
close_of_earlier_program(int dir_fd, const char *name, int fd, uint8_t *pages,
                         const struct sdb_identity *self)
{
    struct sdb_identity id;
    struct stat st, again;
    uint32_t state = SDB_RING_CLOSED;
    int to;

    memcpy(&id, pages, sizeof id);
    if (id.state != SDB_RING_LIVE || id.pid != self->pid ||
        id.process_start_ticks != self->process_start_ticks ||
        id.pid_namespace != self->pid_namespace ||
        memcmp(id.boot_id, self->boot_id, sizeof id.boot_id) != 0)
        return;
    to = openat(dir_fd, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (to < 0) return;
    if (fstat(fd, &st) == 0 && fstat(to, &again) == 0 && st.st_ino == again.st_ino &&
        st.st_dev == again.st_dev &&
        pwrite(to, &state, sizeof state, offsetof(struct sdb_identity, state)) == sizeof state)
        memcpy(pages + offsetof(struct sdb_identity, state), &state, sizeof state);
    close(to);
}

static int
most_worth_first(const void *a, const void *b)
{
    const struct dead_ring *x = a, *y = b;

    if (x->points != y->points) return y->points - x->points;
    if (x->ended_ns != y->ended_ns) return x->ended_ns < y->ended_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* All dead rings of the directory, those worth most first, in *list (malloc'ed); returns their number. */
static size_t
collect(DIR *dir, uint8_t *pages, const struct sdb_identity *self, struct dead_ring **list)
{
    size_t n = 0, room = 0, got;
    struct dirent *entry;

    *list = NULL;
    while (n < RINGS_MAX && (entry = readdir(dir)) != NULL) {
        int fd;

        if (!is_ring_name(entry->d_name)) continue;
        fd = open_dead(dirfd(dir), entry->d_name, pages, &got);
        if (fd < 0) continue;
        if (self != NULL) close_of_earlier_program(dirfd(dir), entry->d_name, fd, pages, self);
        close(fd);
        if (n == room) {
            struct dead_ring *more;

            room = room == 0 ? 64 : 2 * room;
            more = realloc(*list, room * sizeof **list);
            if (more == NULL) break;
            *list = more;
        }
        judge(&(*list)[n], pages, got);
        strcpy((*list)[n].name, entry->d_name);
        n++;
    }
    if (n > 0) qsort(*list, n, sizeof **list, most_worth_first);
    return n;
}

int
sdb_ring_file_retain(const char *path, uint64_t keep_files, const struct sdb_identity *self)
{
    struct dead_ring *list = NULL;
    DIR *dir = opendir(path);
    uint8_t *pages = malloc(SDB_HEADER_BYTES);
    size_t n = 0, got;
    int removed = 0;

    if (dir != NULL && pages != NULL) n = collect(dir, pages, self, &list);
    for (size_t i = keep_files < n ? (size_t)keep_files : n; i < n; i++) {
        /* asked again, and locked this time */
        int fd = open_dead(dirfd(dir), list[i].name, pages, &got);

        if (fd < 0) continue;
        if (unlinkat(dirfd(dir), list[i].name, 0) == 0) removed++;
        close(fd);
    }
    free(list);
    free(pages);
    if (dir != NULL) closedir(dir);
    return removed;
}
