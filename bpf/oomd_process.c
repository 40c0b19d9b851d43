/* SPDX-License-Identifier: MIT
 *
 * oomd_process.c - see oomd_process.h.
 *
 * Runs on: daemon
 */
#include "oomd_process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
find_cgroup(struct oomd_process *p)
{
    static const char *const v1[] = {"/sys/fs/cgroup/memory", NULL};
    static const char *const v2[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified", NULL};
    char text[8192], *rest = text;
    p->cgroup[0] = '\0';
    if (read_proc(p->tgid, "cgroup", text, sizeof text) <= 0) return;
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
oomd_process_describe(struct oomd_process *p)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/exe", p->tgid);
    ssize_t n = readlink(path, p->exe, sizeof p->exe - 1);
    p->exe[n > 0 ? n : 0] = '\0';

    n = read_proc(p->tgid, "cmdline", p->cmdline, sizeof p->cmdline);
    for (ssize_t i = 0; i < n - 1; i++)
        if (p->cmdline[i] == '\0') p->cmdline[i] = ' ';
    find_cgroup(p);

    free(p->maps);
    p->maps_bytes = 0;
    p->maps = malloc(OOMD_MAPS_BYTES);
    if (p->maps == NULL) return;
    n = read_proc(p->tgid, "maps", p->maps, OOMD_MAPS_BYTES);
    p->maps_bytes = n > 0 ? (size_t)n : 0;
    char *smaller = realloc(p->maps, p->maps_bytes + 1);
    if (smaller != NULL) p->maps = smaller;
}

void
oomd_process_free(struct oomd_process *p)
{
    if (p == NULL) return;
    if (p->ring_fd >= 0) close(p->ring_fd);
    free(p->maps);
    free(p);
}

uint64_t
oomd_cgroup_number(const char *dir, const char *v2_name, const char *v1_name)
{
    const char *names[] = {v2_name, v1_name};
    if (dir[0] == '\0') return 0;
    for (int i = 0; i < 2; i++) {
        char path[OOMD_CGROUP_BYTES + 64], text[64] = "";
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) continue;
        ssize_t n = read(fd, text, sizeof text - 1);
        close(fd);
        if (n <= 0) return 0;
        uint64_t number = strtoull(text, NULL, 10);
        return number >= 1ull << 60 ? 0 : number; /* v1 says "no limit" by a number near 2^63 */
    }
    return 0;
}
