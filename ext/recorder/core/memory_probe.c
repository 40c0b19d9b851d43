/* SPDX-License-Identifier: MIT
 *
 * memory_probe.c - see memory_probe.h.
 */
#include "core/memory_probe.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 8192 };

static ssize_t
read_text(const char *path, char *to, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    ssize_t n = read(fd, to, bytes - 1);
    close(fd);
    if (n >= 0) to[n] = 0;
    return n;
}

const char *
sdb_memory_probe_cgroup_path(char *buffer, bool *v2)
{
    const char *unified = NULL;
    char *rest = buffer, *line;
    while ((line = strsep(&rest, "\n"))) { /* "4:memory:/path", "0::/path" */
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        if (strstr(controllers + 1, "memory")) {
            *v2 = false;
            return path;
        }
        if (controllers[1] == 0) unified = path;
    }
    *v2 = true;
    return unified;
}

static uint64_t
limit_at(const char *file)
{
    char text[64];
    if (read_text(file, text, sizeof text) <= 0 || !strncmp(text, "max", 3)) return 0;
    uint64_t limit = strtoull(text, NULL, 10);
    return limit >= 1ull << 60 ? 0 : limit; /* v1 says "no limit" as the largest page count */
}

static void
open_cgroup(struct sdb_memory_probe *p)
{
    char text[TEXT_BYTES], path[PATH_MAX], file[PATH_MAX + 64];
    bool v2 = false;
    if (read_text("/proc/self/cgroup", text, sizeof text) <= 0) return;
    const char *found = sdb_memory_probe_cgroup_path(text, &v2);
    if (!found) return;
    const char *root = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char *usage_name = v2 ? "memory.current" : "memory.usage_in_bytes";
    const char *limit_name = v2 ? "memory.max" : "memory.limit_in_bytes";
    snprintf(path, sizeof path, "%s", strcmp(found, "/") ? found : "");
    /* up to the root; in a container the path may name a directory of the host: then the root is ours */
    for (;;) {
        snprintf(file, sizeof file, "%s%s/%s", root, path, limit_name);
        uint64_t limit = limit_at(file);
        snprintf(file, sizeof file, "%s%s/%s", root, path, usage_name);
        if (p->usage.fd < 0 || (limit && (!p->limit || limit < p->limit))) {
            int fd = open(file, O_RDONLY | O_CLOEXEC);
            if (fd >= 0) {
                sdb_own_fd_close(&p->usage);
                p->usage = sdb_own_fd_take(fd);
                p->limit = limit;
            }
        }
        char *slash = strrchr(path, '/');
        if (!slash) break;
        *slash = 0;
    }
}

void
sdb_memory_probe_open(struct sdb_memory_probe *p)
{
    p->statm = sdb_own_fd_take(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
    p->usage = SDB_OWN_FD_NONE;
    p->limit = 0;
    p->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    open_cgroup(p);
    p->open = true;
}

void
sdb_memory_probe_close(struct sdb_memory_probe *p)
{
    if (!p->open) return;
    sdb_own_fd_close(&p->statm);
    sdb_own_fd_close(&p->usage);
    p->open = false;
}

void
sdb_memory_probe_forget(struct sdb_memory_probe *p)
{
    if (p->open && !p->statm.is_private) sdb_own_fd_close(&p->statm);
    if (p->open && !p->usage.is_private) sdb_own_fd_close(&p->usage);
    p->open = false;
}

static uint64_t
number_at(const struct sdb_own_fd *own, int field)
{
    char text[128];
    int fd = sdb_own_fd_use(own);
    ssize_t n = fd >= 0 ? pread(fd, text, sizeof text - 1, 0) : -1;
    if (n <= 0) return 0;
    text[n] = 0;
    char *p = text;
    for (int i = 0; i < field; i++) strtoull(p, &p, 10);
    return strtoull(p, NULL, 10);
}

void
sdb_memory_probe_read(const struct sdb_memory_probe *p, struct sdb_memory *out)
{
    *out = (struct sdb_memory){0};
    if (!p->open) return;
    out->rss = number_at(&p->statm, 1) * p->page_bytes;
    out->cgroup_usage = number_at(&p->usage, 0);
    out->cgroup_limit = p->limit;
}

static uint64_t
status_field(const char *text, const char *name, uint64_t unit)
{
    const char *line = strstr(text, name);
    return line ? strtoull(line + strlen(name), NULL, 10) * unit : 0;
}

void
sdb_memory_probe_status(struct sdb_process_memory *out)
{
    char text[TEXT_BYTES];
    *out = (struct sdb_process_memory){0};
    if (read_text("/proc/self/status", text, sizeof text) <= 0) return;
    out->rss_anon = status_field(text, "\nRssAnon:", 1024);
    out->rss_file = status_field(text, "\nRssFile:", 1024);
    out->rss_shmem = status_field(text, "\nRssShmem:", 1024);
    out->swap = status_field(text, "\nVmSwap:", 1024);
    out->peak_rss = status_field(text, "\nVmHWM:", 1024);
    out->threads = status_field(text, "\nThreads:", 1);
}
