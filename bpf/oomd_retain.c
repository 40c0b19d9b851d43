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
    int64_t made_ns;
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
        d->made_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        d->uid = st.st_uid;
    }
    if (dir != NULL) closedir(dir);
}

/* By user, then oldest first. */
static int
by_user_and_age(const void *a, const void *b)
{
    const struct dump *x = a, *y = b;
    if (x->uid != y->uid) return x->uid < y->uid ? -1 : 1;
    if (x->made_ns != y->made_ns) return x->made_ns < y->made_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

struct share { /* of one user: at[from .. to), oldest first */
    size_t from, to;
    uint64_t bytes, files;
};

/* The share that begins at i. */
static struct share
share_at(const struct dumps *all, size_t i)
{
    struct share s = {.from = i, .to = i};
    for (; s.to < all->n && all->at[s.to].uid == all->at[i].uid; s.to++) {
        if (all->at[s.to].name[0] == '\0') continue;
        s.bytes += all->at[s.to].bytes;
        s.files++;
    }
    return s;
}

static struct share
share_of(const struct dumps *all, uint32_t uid)
{
    size_t i = 0;
    while (i < all->n && all->at[i].uid != uid) i++;
    return share_at(all, i);
}

/* Of all users but root, who has most, and more than one dump. files 0: nobody. */
static struct share
richest(const struct dumps *all)
{
    struct share most = {0};
    for (size_t i = 0; i < all->n;) {
        struct share s = share_at(all, i);
        if (all->at[i].uid != 0 && s.files > 1 && (most.files == 0 || s.bytes > most.bytes))
            most = s;
        i = s.to;
    }
    return most;
}

/* Of all users but root: would one more be too much? */
static bool
others_are_full(const struct dumps *all, const struct oomd_budget *budget, uint64_t bytes)
{
    uint64_t files = 0;
    for (size_t i = 0; i < all->n; i++) {
        if (all->at[i].uid == 0 || all->at[i].name[0] == '\0') continue;
        bytes += all->at[i].bytes;
        files++;
    }
    return bytes > budget->others_bytes || files >= OOMD_OTHERS_FILES * budget->files;
}

/* The oldest of the share. Bytes freed. */
static uint64_t
remove_oldest(int dir_fd, struct dumps *all, const struct share *s, const char *why)
{
    size_t i = s->from;
    while (i < s->to && all->at[i].name[0] == '\0') i++;
    if (i == s->to) return 0;
    struct dump *d = &all->at[i];
    uint64_t freed = unlinkat(dir_fd, d->name, 0) == 0 ? d->bytes : 0;
    oomd_log("removed %s of uid %u, %llu bytes: %s", d->name, d->uid, (unsigned long long)d->bytes,
             why);
    d->name[0] = '\0';
    d->bytes = 0;
    return freed;
}

static void
open_all(int dir_fd, struct dumps *all)
{
    collect(dir_fd, all);
    if (all->n) qsort(all->at, all->n, sizeof *all->at, by_user_and_age);
}

bool
oomd_retain(int dir_fd, const struct oomd_budget *budget, uint32_t uid, uint64_t bytes)
{
    struct dumps all = {0};
    bool room = bytes <= budget->bytes && budget->files > 0;
    open_all(dir_fd, &all);
    while (room) {
        struct share own = share_of(&all, uid);
        if (own.bytes + bytes <= budget->bytes && own.files < budget->files) break;
        if (own.files == 0) room = false;
        else remove_oldest(dir_fd, &all, &own, "its user has newer ones");
    }
    while (room && uid != 0 && others_are_full(&all, budget, bytes)) {
        struct share own = share_of(&all, uid), most = richest(&all);
        if (own.files) remove_oldest(dir_fd, &all, &own, "its user has newer ones");
        else if (most.files) remove_oldest(dir_fd, &all, &most, "its user has most of all");
        else room = false;
    }
    free(all.at);
    return room;
}

uint64_t
oomd_retain_free(int dir_fd, uint32_t uid, uint64_t bytes)
{
    static const char why[] = "the disk is full";
    struct dumps all = {0};
    uint64_t freed = 0;
    open_all(dir_fd, &all);
    while (freed < bytes) {
        struct share own = share_of(&all, uid), most = richest(&all);
        if (own.files) freed += remove_oldest(dir_fd, &all, &own, why);
        else if (most.files) freed += remove_oldest(dir_fd, &all, &most, why);
        else break;
    }
    free(all.at);
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
