/* SPDX-License-Identifier: MIT
 *
 * oomd_descriptor.c - see oomd_descriptor.h.
 *
 * Runs on: daemon
 */
#include "oomd_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    DISCARDS_MAX = 32,
    MOUNTINFO_BYTES = 1 << 20,
    RING_LEAST_BYTES = 64 << 10,
};

static unsigned discards; /* atomic: threads that are closing something */

static void *
discard_thread(void *fd)
{
    close((int)(intptr_t)fd);
    __atomic_fetch_sub(&discards, 1, __ATOMIC_RELAXED);
    return NULL;
}

bool
oomd_descriptor_discard(int fd)
{
    pthread_t thread;
    if (__atomic_fetch_add(&discards, 1, __ATOMIC_RELAXED) < DISCARDS_MAX &&
        pthread_create(&thread, NULL, discard_thread, (void *)(intptr_t)fd) == 0) {
        pthread_detach(thread);
        return true;
    }
    __atomic_fetch_sub(&discards, 1, __ATOMIC_RELAXED);
    return false;
}

bool
oomd_mountinfo_find(const char *text, unsigned mount, char *kind, size_t n)
{
    for (const char *line = text; line != NULL && *line != '\0';) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        char *after;
        unsigned long id = strtoul(line, &after, 10);
        if (after != line && *after == ' ' && id == mount) {
            const char *dash = memmem(line, length, " - ", 3); /* spaces in paths are \040 there */
            if (dash == NULL) return false;
            size_t k = strcspn(dash + 3, " \n");
            if (k == 0 || k >= n) return false;
            memcpy(kind, dash + 3, k);
            kind[k] = '\0';
            return true;
        }
        line = end ? end + 1 : NULL;
    }
    return false;
}

static char *
read_text(const char *path, size_t limit)
{
    char *text = malloc(limit + 1);
    size_t done = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (text != NULL && fd >= 0 && done < limit) {
        ssize_t got = read(fd, text + done, limit - done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    if (fd >= 0) close(fd);
    if (text != NULL) text[done] = '\0';
    return text;
}

static bool
same_user_namespace(uint32_t pid)
{
    char path[48], theirs[64] = "", ours[64] = "";
    snprintf(path, sizeof path, "/proc/%u/ns/user", pid);
    return readlink(path, theirs, sizeof theirs - 1) > 0 &&
           readlink("/proc/self/ns/user", ours, sizeof ours - 1) > 0 && strcmp(theirs, ours) == 0;
}

static bool
mount_kind(unsigned mount, uint32_t pid, char *kind, size_t n)
{
    char path[48] = "/proc/self/mountinfo";
    if (pid != 0) snprintf(path, sizeof path, "/proc/%u/mountinfo", pid);
    char *text = read_text(path, MOUNTINFO_BYTES);
    bool found = text != NULL && oomd_mountinfo_find(text, mount, kind, n);
    free(text);
    return found;
}

static bool
is_local(const char *kind, uint32_t sender)
{
    static const char *const local[] = {"ext2",  "ext3", "ext4", "xfs",      "btrfs",  "tmpfs",
                                        "ramfs", "f2fs", "zfs",  "bcachefs", "rootfs", NULL};
    for (int i = 0; local[i] != NULL; i++)
        if (strcmp(kind, local[i]) == 0) return true;
    /* anyone may lay an overlay over a FUSE mount inside a user namespace of his own */
    return strcmp(kind, "overlay") == 0 && (sender == 0 || same_user_namespace(sender));
}

bool
oomd_descriptor_usable(int fd, uint32_t sender, uint64_t max_bytes, const char **why, bool *hostile)
{
    char path[48], kind[32];
    struct stat st;
    *hostile = true;
    *why = "its descriptor cannot be looked at";
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    char *info = read_text(path, 4096);
    const char *mount = info ? strstr(info, "mnt_id:") : NULL,
               *flags = info ? strstr(info, "flags:") : NULL;
    if (mount == NULL || flags == NULL) {
        free(info);
        return false;
    }
    unsigned number = (unsigned)strtoul(mount + 7, NULL, 10);
    unsigned long mode = strtoul(flags + 6, NULL, 8);
    free(info);

    *why = "its descriptor cannot be read from";
    if ((mode & O_PATH) || (mode & O_ACCMODE) == O_WRONLY) return false;
    *why = "its file is on no mount of the sender";
    if (!mount_kind(number, 0, kind, sizeof kind) &&
        (sender == 0 || !mount_kind(number, sender, kind, sizeof kind)))
        return false;
    *why = "its file is not on a local file system";
    if (!is_local(kind, sender)) return false;

    *why = "its file is not a regular one";
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return false;
    *hostile = false; /* only wrong in its size */
    *why = "its file is too small or larger than --max-ring";
    return st.st_size >= RING_LEAST_BYTES && (uint64_t)st.st_size <= max_bytes;
}
