/* SPDX-License-Identifier: MIT
 *
 * oomd_retain.c - see oomd_retain.h.
 *
 * Runs on: daemon
 */
#include "oomd_retain.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "oomd_log.h"

enum { DUMPS_MAX = 65536 };

struct dump {
    char name[256];
    uint64_t bytes; /* on the disk: dumps have holes */
    int64_t made_s;
    uint32_t uid;
};

struct dumps {
    struct dump *at;
    size_t n, room;
};

static DIR *
open_again(int dir_fd)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0) close(fd);
    return dir;
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), k = strlen(end);
    return n > k && strcmp(text + n - k, end) == 0;
}

static void
collect(int dir_fd, struct dumps *all)
{
    DIR *dir = open_again(dir_fd);
    struct dirent *entry;
    struct stat st;
    while (dir != NULL && all->n < DUMPS_MAX && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || !ends_with(entry->d_name, OOMD_DUMP_SUFFIX)) continue;
        if (fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
            continue;
        if (all->n == all->room) {
            size_t room = all->room ? 2 * all->room : 64;
            struct dump *more = realloc(all->at, room * sizeof *more);
            if (more == NULL) break;
            all->at = more;
            all->room = room;
        }
        struct dump *d = &all->at[all->n++];
        strncpy(d->name, entry->d_name, sizeof d->name - 1);
        d->name[sizeof d->name - 1] = '\0';
        d->bytes = (uint64_t)st.st_blocks * 512;
        d->made_s = st.st_mtime;
        d->uid = st.st_uid;
    }
    if (dir != NULL) closedir(dir);
}

/* By user, then oldest first; times are whole seconds, names of one process end with the time. */
static int
by_user_and_age(const void *a, const void *b)
{
    const struct dump *x = a, *y = b;
    if (x->uid != y->uid) return x->uid < y->uid ? -1 : 1;
    if (x->made_s != y->made_s) return x->made_s < y->made_s ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Index of the oldest dump of the user who has most of what is short; all->n when none is left. */
static size_t
next_to_go(const struct dumps *all, bool bytes_are_short)
{
    size_t best = all->n;
    uint64_t most = 0;
    for (size_t i = 0; i < all->n;) {
        uint64_t has = 0;
        size_t oldest = all->n, k = i;
        for (; k < all->n && all->at[k].uid == all->at[i].uid; k++) {
            if (all->at[k].name[0] == '\0') continue;
            if (oldest == all->n) oldest = k;
            has += bytes_are_short ? all->at[k].bytes + 1 : 1;
        }
        if (oldest != all->n && has >= most) { /* root, the lowest uid, last */
            most = has;
            best = oldest;
        }
        i = k;
    }
    return best;
}

/* Removes dumps down to `keep`, and more until `free_bytes` are free. */
static int
prune(int dir_fd, const struct oomd_budget *keep, uint64_t free_bytes, uint64_t *freed)
{
    struct dumps all = {0};
    uint64_t bytes = 0, files;
    int removed = 0;
    collect(dir_fd, &all);
    if (all.n) qsort(all.at, all.n, sizeof *all.at, by_user_and_age);
    files = all.n;
    for (size_t i = 0; i < all.n; i++) bytes += all.at[i].bytes;
    *freed = 0;
    while (bytes > keep->bytes || files > keep->files || *freed < free_bytes) {
        size_t i = next_to_go(&all, bytes > keep->bytes || *freed < free_bytes);
        if (i == all.n) break;
        struct dump *d = &all.at[i];
        bytes -= d->bytes;
        files--;
        if (unlinkat(dir_fd, d->name, 0) == 0) {
            *freed += d->bytes;
            removed++;
        }
        d->name[0] = '\0';
        d->bytes = 0;
    }
    free(all.at);
    return removed;
}

int
oomd_retain(int dir_fd, const struct oomd_budget *budget, uint64_t coming_files,
            uint64_t coming_bytes)
{
    struct oomd_budget keep = {
        .bytes = budget->bytes > coming_bytes ? budget->bytes - coming_bytes : 0,
        .files = budget->files > coming_files ? budget->files - coming_files : 0,
    };
    uint64_t freed;
    return prune(dir_fd, &keep, 0, &freed);
}

uint64_t
oomd_retain_free(int dir_fd, uint64_t bytes)
{
    struct oomd_budget all = {.bytes = UINT64_MAX, .files = UINT64_MAX};
    uint64_t freed;
    int removed = prune(dir_fd, &all, bytes, &freed);
    if (removed) oomd_log("the disk is full: removed %d older dumps", removed);
    return freed;
}

void
oomd_retain_unfinished(int dir_fd)
{
    DIR *dir = open_again(dir_fd);
    struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name, OOMD_UNFINISHED_PREFIX, strlen(OOMD_UNFINISHED_PREFIX)) == 0)
            unlinkat(dir_fd, entry->d_name, 0);
    if (dir != NULL) closedir(dir);
}
