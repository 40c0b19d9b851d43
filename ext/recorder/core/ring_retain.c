/* SPDX-License-Identifier: MIT
 *
 * ring_retain.c - removes the oldest rings of dead processes. A file is removed only when its name, owner,
 * identity and free lock all say that it is a dead ring of this user.
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
#include <unistd.h>
#include "core/ring_file.h"
#include "core/ring_identity.h"

enum { NAME_MAX_BYTES = 128, RINGS_MAX = 65536 };

struct dead_ring {
    uint64_t born_ns; /* start_realtime_ns */
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

/* Opens `name` when it is a dead ring of ours and holds its lock; -1 otherwise. */
static int
open_dead(int dir_fd, const char *name, uint64_t *born_ns)
{
    static const int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    uint8_t pages[SDB_IDENTITY_BYTES];
    struct sdb_identity id;
    struct stat st, named;
    ssize_t n;
    int fd = openat(dir_fd, name, flags);

    if (fd < 0) return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) goto no;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) goto no;
    n = pread(fd, pages, sizeof pages, 0);
    if (n < 0 || sdb_identity_check(pages, (size_t)n) != 0) goto no;
    /* the name may have been given to another file meanwhile */
    if (fstatat(dir_fd, name, &named, AT_SYMLINK_NOFOLLOW) != 0) goto no;
    if (named.st_ino != st.st_ino || named.st_dev != st.st_dev) goto no;
    memcpy(&id, pages, sizeof id);
    *born_ns = id.start_realtime_ns;
    return fd;

no:
    close(fd);
    return -1;
}

static int
newest_first(const void *a, const void *b)
{
    const struct dead_ring *x = a, *y = b;

    if (x->born_ns != y->born_ns) return x->born_ns < y->born_ns ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* All dead rings of the directory, newest first, in *list (malloc'ed); returns their number. */
static size_t
collect(DIR *dir, struct dead_ring **list)
{
    size_t n = 0, room = 0;
    struct dirent *entry;

    *list = NULL;
    while (n < RINGS_MAX && (entry = readdir(dir)) != NULL) {
        uint64_t born_ns;
        int fd;

        if (!is_ring_name(entry->d_name)) continue;
        fd = open_dead(dirfd(dir), entry->d_name, &born_ns);
        if (fd < 0) continue;
        close(fd);
        if (n == room) {
            struct dead_ring *more;

            room = room == 0 ? 64 : 2 * room;
            more = realloc(*list, room * sizeof **list);
            if (more == NULL) break;
            *list = more;
        }
        (*list)[n].born_ns = born_ns;
        strcpy((*list)[n].name, entry->d_name);
        n++;
    }
    if (n > 0) qsort(*list, n, sizeof **list, newest_first);
    return n;
}

int
sdb_ring_file_retain(const char *path, uint64_t keep_files)
{
    struct dead_ring *list;
    DIR *dir = opendir(path);
    size_t n;
    int removed = 0;

    if (dir == NULL) return 0;
    n = collect(dir, &list);
    for (size_t i = keep_files < n ? (size_t)keep_files : n; i < n; i++) {
        uint64_t born_ns;
        int fd =
            open_dead(dirfd(dir), list[i].name, &born_ns); /* asked again, and locked this time */

        if (fd < 0) continue;
        if (unlinkat(dirfd(dir), list[i].name, 0) == 0) removed++;
        close(fd);
    }
    free(list);
    closedir(dir);
    return removed;
}
