/* SPDX-License-Identifier: MIT
 *
 * oomd_describe.c - see oomd_describe.h.
 *
 * Runs on: keeper, finder, dump writer
 */
#include "oomd_describe.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Reads at most n - 1 bytes of /proc/PID/name and ends them with NUL. Bytes read, or -1. */
static ssize_t
read_proc(uint32_t pid, const char *name, char *out, size_t n)
{
    char path[64];
    size_t done = 0;
    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    out[0] = '\0';
    if (fd < 0) return -1;
    while (done < n - 1) {
        ssize_t got = read(fd, out + done, n - 1 - done);
        if (got <= 0) break;
        done += (size_t)got;
    }
    close(fd);
    out[done] = '\0';
    return (ssize_t)done;
}

uint64_t
oomd_start_ticks(uint32_t pid)
{
    char stat[1024];
    if (read_proc(pid, "stat", stat, sizeof stat) <= 0) return 0;
    char *p = strrchr(stat, ')'); /* the name may hold anything */
    if (p == NULL) return 0;
    for (int field = 2; field < 22; field++) {
        p = strchr(p + 1, ' ');
        if (p == NULL) return 0;
    }
    return strtoull(p + 1, NULL, 10);
}

bool
oomd_process_is_plainly(uint32_t pid, uint32_t uid)
{
    char path[32], status[4096];
    struct stat st;
    unsigned u[4];
    snprintf(path, sizeof path, "/proc/%u", pid);
    if (stat(path, &st) != 0 || st.st_uid != uid) return false;
    if (read_proc(pid, "status", status, sizeof status) <= 0) return false;
    const char *line = strstr(status, "\nUid:");
    if (line == NULL || sscanf(line, "\nUid: %u %u %u %u", &u[0], &u[1], &u[2], &u[3]) != 4)
        return false;
    return u[0] == uid && u[1] == uid && u[2] == uid && u[3] == uid;
}

/* Directory of a mounted controller; the first of the usual places that exists. */
static bool
under_mount(char *out, const char *const *mounts, const char *path)
{
    for (; *mounts != NULL; mounts++) {
        struct stat st;
        int n = snprintf(out, OOMD_CGROUP_BYTES, "%s%s", *mounts, path);
        if (n < OOMD_CGROUP_BYTES && stat(out, &st) == 0 && S_ISDIR(st.st_mode)) return true;
    }
    out[0] = '\0';
    return false;
}

static void
find_cgroup(uint32_t pid, struct oomd_description *p)
{
    static const char *const v1[] = {"/sys/fs/cgroup/memory", NULL};
    static const char *const v2[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};
    char text[8192], *rest = text;
    p->cgroup[0] = '\0';
    if (read_proc(pid, "cgroup", text, sizeof text) <= 0) return;
    const char *unified = NULL;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        char *controllers = strchr(line, ':'),
             *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (path == NULL) continue;
        *path++ = '\0';
        if (strstr(path, "/..") != NULL) continue; /* outside of what is mounted here */
        if (strcmp(controllers + 1, "memory") == 0 && under_mount(p->cgroup, v1, path)) return;
        if (controllers[1] == '\0') unified = path;
    }
    if (unified != NULL) under_mount(p->cgroup, v2, unified);
}

void
oomd_describe(uint32_t pid, struct oomd_description *d)
{
    char path[32];
    memset(d, 0, sizeof *d);
    snprintf(path, sizeof path, "/proc/%u/exe", pid);
    ssize_t n = readlink(path, d->exe, sizeof d->exe - 1);
    d->exe[n > 0 ? n : 0] = '\0';

    n = read_proc(pid, "cmdline", d->cmdline, sizeof d->cmdline);
    for (ssize_t i = 0; i < n - 1; i++)
        if (d->cmdline[i] == '\0') d->cmdline[i] = ' ';
    find_cgroup(pid, d);
    n = read_proc(pid, "maps", d->maps, sizeof d->maps);
    d->maps_bytes = n > 0 ? (size_t)n : 0;
}

enum { RAW_BYTES = OOMD_EXE_BYTES + OOMD_CGROUP_BYTES + OOMD_CMDLINE_BYTES + OOMD_MAPS_BYTES };

size_t
oomd_describe_pack(struct oomd_description *d, uint8_t *out)
{
    const char *const texts[] = {d->exe, d->cgroup, d->cmdline};
    char *raw = malloc(RAW_BYTES);
    size_t head = 0;
    if (raw == NULL) return 0;
    for (int i = 0; i < 3; i++) {
        size_t n = strlen(texts[i]) + 1;
        memcpy(raw + head, texts[i], n);
        head += n;
    }
    for (;; d->maps_bytes /= 2) { /* names of files may be such that they do not shrink */
        uLongf n = OOMD_PACKED_BYTES;
        memcpy(raw + head, d->maps, d->maps_bytes);
        int err = compress2(out, &n, (const Bytef *)raw, head + d->maps_bytes, 1);
        if (err == Z_OK || d->maps_bytes == 0) {
            free(raw);
            return err == Z_OK ? n : 0;
        }
    }
}

static bool
take_text(char *to, size_t room, const char **from, const char *end)
{
    const char *nul = memchr(*from, '\0', (size_t)(end - *from));
    if (nul == NULL || (size_t)(nul - *from) >= room) return false;
    memcpy(to, *from, (size_t)(nul - *from) + 1);
    *from = nul + 1;
    return true;
}

bool
oomd_describe_unpack(struct oomd_description *d, const uint8_t *packed, size_t n)
{
    uLongf bytes = RAW_BYTES;
    char *raw = malloc(RAW_BYTES);
    memset(d, 0, sizeof *d);
    if (raw == NULL || packed == NULL || n == 0 ||
        uncompress((Bytef *)raw, &bytes, packed, n) != Z_OK)
        goto no;
    const char *at = raw, *end = raw + bytes;
    if (!take_text(d->exe, sizeof d->exe, &at, end) ||
        !take_text(d->cgroup, sizeof d->cgroup, &at, end) ||
        !take_text(d->cmdline, sizeof d->cmdline, &at, end) || (size_t)(end - at) > sizeof d->maps)
        goto no;
    d->maps_bytes = (size_t)(end - at);
    memcpy(d->maps, at, d->maps_bytes);
    free(raw);
    return true;
no:
    free(raw);
    memset(d, 0, sizeof *d);
    return false;
}
