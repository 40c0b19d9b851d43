/* SPDX-License-Identifier: MIT
 *
 * oomd_find.c - see oomd_find.h. Here is what the finder does; the daemon's side is oomd_finder.c.
 *
 * Runs on: finder
 */
#include "oomd_find.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>
#include "oomd_describe.h"
#include "oomd_name.h"
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
name_service(char *service, size_t room, const struct head *h)
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
    oomd_clean_name(service, room, name, name_bytes, "ruby");
}

static void
look_at(int dir, const char *path, const char *name)
{
    static struct head h;
    struct oomd_find_answer a = {0};
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) return;
    setfsuid(st.st_uid);
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) return;
    if (fstat(fd, &st) == 0 && pread(fd, &h, sizeof h, 0) == sizeof h && h.id.magic == SDB_MAGIC &&
        h.id.state == SDB_RING_LIVE) {
        a.tgid = process_of(&h.id);
        a.uid = st.st_uid;
        a.start_ticks = h.id.process_start_ticks;
        name_service(a.service, sizeof a.service, &h);
        int n = snprintf(a.path, sizeof a.path, "%s/%s", path, name);
        /* the file's owner could name any process in it: it must be his own */
        if (a.tgid != 0 && n < (int)sizeof a.path && oomd_process_is_plainly(a.tgid, a.uid) &&
            write(OOMD_CHILD_OUT, &a, sizeof a) != sizeof a)
            exit(1);
    }
    close(fd);
}

static void
look_into(const char *path)
{
    struct stat st;
    setfsuid(0);
    if (stat(path, &st) != 0) return; /* comes and goes with the app */
    setfsuid(st.st_uid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    if (dir == NULL) return;
    for (int i = 0; i < FILES_A_LOOK && (entry = readdir(dir)) != NULL; i++)
        if (is_ring_name(entry->d_name)) {
            setfsuid(st.st_uid);
            look_at(dirfd(dir), path, entry->d_name);
        }
    closedir(dir);
}

int
oomd_find_main(int argc, char **argv)
{
    if (!oomd_child_confine(0, OOMD_MAY_SETUID | OOMD_MAY_PTRACE | OOMD_MAY_SEARCH | OOMD_MAY_OPEN))
        return 3;
    for (int i = 2; i < argc; i++) look_into(argv[i]);
    return 0;
}
