/* SPDX-License-Identifier: MIT
 *
 * oomd_find.c - see oomd_find.h.
 *
 * Runs on: daemon
 */
#include "oomd_find.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "oomd_descriptor.h"
#include "oomd_log.h"
#include "oomd_registry.h"
#include "ring_format.h"

enum { FILES_A_LOOK = 4096, PROCESSES_A_LOOK = 65536 };

struct head { /* what of the identity is needed */
    struct sdb_identity id;
    char text[SDB_IDENTITY_BYTES - sizeof(struct sdb_identity)];
};

static bool
is_ring_name(const char *name)
{
    size_t n = strlen(name);
    return name[0] != '.' && n > 4 && strcmp(name + n - 4, ".sdb") == 0;
}

static uint64_t
namespace_of(uint32_t pid)
{
    char path[48];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%u/ns/pid", pid);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Our number for the process that calls itself id->pid in its namespace; 0 when there is none. */
static uint32_t
process_of(const struct sdb_identity *id)
{
    if (namespace_of((uint32_t)getpid()) == id->pid_namespace)
        return oomd_start_ticks(id->pid) == id->process_start_ticks ? id->pid : 0;
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    uint32_t found = 0;
    for (int i = 0;
         proc != NULL && found == 0 && i < PROCESSES_A_LOOK && (entry = readdir(proc)) != NULL;
         i++) {
        uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        /* start times of two processes with one number in one namespace differ */
        if (pid == 0 || oomd_start_ticks(pid) != id->process_start_ticks) continue;
        if (namespace_of(pid) == id->pid_namespace) found = pid;
    }
    if (proc != NULL) closedir(proc);
    return found;
}

static void
name_service(struct oomd_process *p, const struct head *h)
{
    size_t n = h->id.text_bytes < sizeof h->text ? h->id.text_bytes : sizeof h->text;
    const char *name = "ruby";
    size_t name_bytes = 4;
    for (size_t i = 0; i < n;) {
        size_t length = strnlen(h->text + i, n - i);
        if (length > 8 && memcmp(h->text + i, "service=", 8) == 0) {
            name = h->text + i + 8;
            name_bytes = length - 8;
        }
        i += length + 1;
    }
    oomd_clean_name(p->service, sizeof p->service, name, name_bytes, "ruby");
}

static void
look_at(struct oomd_registry *registry, int fd, uint64_t max_bytes, uint64_t now_ns)
{
    struct head h;
    struct stat st;
    const char *why;
    bool hostile;
    if (!oomd_descriptor_usable(fd, 0, max_bytes, &why, &hostile) || fstat(fd, &st) != 0) goto no;
    if (oomd_registry_has_ring(registry, st.st_dev, st.st_ino)) goto no;
    if (pread(fd, &h, sizeof h, 0) != sizeof h || h.id.magic != SDB_MAGIC ||
        h.id.state != SDB_RING_LIVE)
        goto no;
    uint32_t pid = process_of(&h.id);
    /* the file's owner could name any process in it: it must be his own */
    if (pid == 0 || oomd_registry_find(registry, pid) != NULL ||
        !oomd_process_is_plainly(pid, st.st_uid))
        goto no;

    struct oomd_process *p = calloc(1, sizeof *p);
    if (p == NULL) goto no;
    p->tgid = pid;
    p->uid = st.st_uid;
    p->start_ticks = h.id.process_start_ticks;
    p->table_version_known = true;
    p->ring_fd = fd;
    p->ring_dev = st.st_dev;
    p->ring_ino = st.st_ino;
    p->registered_ns = now_ns;
    name_service(p, &h);
    oomd_process_describe(p);
    if (oomd_registry_add(registry, p) == 0)
        oomd_log_detail("watching pid %u (%s), by its ring", pid, p->service);
    return;
no:
    close(fd);
}

void
oomd_find_rings(struct oomd_registry *registry, const char *path, uint64_t max_bytes,
                uint64_t now_ns)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    if (dir == NULL) return; /* comes and goes with the app */
    for (int i = 0; i < FILES_A_LOOK && (entry = readdir(dir)) != NULL; i++) {
        if (!is_ring_name(entry->d_name)) continue;
        int fd = openat(dirfd(dir), entry->d_name,
                        O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0) look_at(registry, fd, max_bytes, now_ns);
    }
    closedir(dir);
}
