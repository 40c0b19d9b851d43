/* SPDX-License-Identifier: MIT
 *
 * attacker.c - what a process of an unprivileged user may try against sdb-oomd. Started by root, it becomes that user before
 * it does anything but mount what a user could have mounted.
 *
 *     attacker MODE UID DAEMON DIR [NUMBER]
 *
 * fuse-open    its ring lies on a FUSE mount (allow_other, as by fusermount) that answers one open only: its own
 * overlay      the same by an overlay over a FUSE mount, both of its own user namespace: needs no privilege at all
 * linger       its ring is a TCP socket whose close waits for an hour
 * epoll        its ring is an epoll descriptor whose lock another of its threads holds for ever (in a FUSE poll)
 * stop PID     tries to stop every child of PID again and again; says whom it could
 * shared N     N processes of it have one ring together: a file of NUMBER MiB that is allocated and empty
 * fat N        a ring of N MiB that holds that much
 * flood N      registers anew 100 times a second, and N processes of it die five times a second
 *
 * Prints "ready". DIR/fuse is a node of /dev/fuse that anyone may open, as on most machines.
 *
 * Runs on: the test's own process
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/oom_client.h"
#include "ring_format.h"

static const char *daemon_name, *dir;
static uid_t uid;

static void
die(const char *what)
{
    perror(what);
    exit(1);
}

static void
ready(void)
{
    puts("ready");
    fflush(stdout);
}

static void
become(void)
{
    if (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0)
        die("setuid");
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* as after exec: root stands in for a login here */
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static uint64_t
start_ticks(void)
{
    char text[1024];
    int fd = open("/proc/self/stat", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *p = strrchr(text, ')');
    for (int field = 2; p != NULL && field < 22; field++) p = strchr(p + 1, ' ');
    return p ? strtoull(p + 1, NULL, 10) : 0;
}

static void
say(int ring_fd)
{
    struct sdb_oom_client client = {0};
    struct sdb_oom_speaker who = {.daemon = daemon_name,
                                  .service = "evil",
                                  .start_ticks = start_ticks(),
                                  .recording = sdb_monotonic_ns(),
                                  .ring_fd = ring_fd};
    sdb_oom_register(&client, &who, sdb_monotonic_ns());
}

/* --- FUSE, as much as is needed to keep somebody waiting --- */

static int fuse_fd;
static unsigned opens_answered;

static void
reply(uint64_t unique, int err, const void *bytes, size_t n)
{
    struct fuse_out_header head = {
        .len = (uint32_t)(sizeof head + n), .error = err, .unique = unique};
    struct iovec v[2] = {{&head, sizeof head}, {(void *)bytes, n}};
    if (writev(fuse_fd, v, n ? 2 : 1) < 0 && errno != ENOENT) die("fuse reply");
}

static struct fuse_attr
attributes(uint64_t node)
{
    return (struct fuse_attr){.ino = node,
                              .mode = node == 1 ? S_IFDIR | 0755 : S_IFREG | 0666,
                              .nlink = 1,
                              .size = node == 1 ? 0 : 1 << 20,
                              .uid = uid,
                              .gid = uid};
}

static void
serve(void)
{
    static char bytes[1 << 20];
    for (ssize_t n; (n = read(fuse_fd, bytes, sizeof bytes)) > 0 || errno == EINTR;) {
        const struct fuse_in_header *in = (const void *)bytes;
        struct fuse_init_out init = {.major = 7, .minor = 31, .max_write = 65536};
        struct fuse_entry_out entry = {
            .nodeid = 2, .entry_valid = 1000, .attr_valid = 1000, .attr = attributes(2)};
        struct fuse_attr_out attr = {.attr_valid = 1000, .attr = attributes(in->nodeid)};
        struct fuse_open_out opened = {0};
        struct fuse_statfs_out fs = {.st = {.bsize = 4096, .namelen = 255}};
        if (in->opcode == FUSE_INIT) reply(in->unique, 0, &init, sizeof init);
        else if (in->opcode == FUSE_LOOKUP) reply(in->unique, 0, &entry, sizeof entry);
        else if (in->opcode == FUSE_GETATTR) reply(in->unique, 0, &attr, sizeof attr);
        else if (in->opcode == FUSE_OPEN && opens_answered++ == 0)
            reply(in->unique, 0, &opened, sizeof opened);
        else if (in->opcode == FUSE_STATFS) reply(in->unique, 0, &fs, sizeof fs);
        else if (in->opcode == FUSE_OPENDIR) reply(in->unique, 0, &opened, sizeof opened);
        else if (in->opcode == FUSE_OPEN || in->opcode == FUSE_POLL) continue; /* for ever */
        else if (in->opcode != FUSE_FORGET && in->opcode != FUSE_BATCH_FORGET &&
                 in->opcode != FUSE_INTERRUPT)
            reply(in->unique, -ENOSYS, NULL, 0);
    }
}

static void
write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) die(path);
    close(fd);
}

/* Mounts and serves; a descriptor of a file there. */
static int
mount_fuse(bool own_namespace, bool overlay)
{
    char node[512], options[2048], map[64], file[512];
    if (own_namespace) {
        become();
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) die("unshare");
        snprintf(map, sizeof map, "%u %u 1", uid, uid);
        write_file("/proc/self/setgroups", "deny");
        write_file("/proc/self/uid_map", map);
        write_file("/proc/self/gid_map", map);
    } else if (unshare(CLONE_NEWNS) != 0 ||
               mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        die("unshare");
    }
    snprintf(node, sizeof node, "%s/fuse", dir);
    snprintf(file, sizeof file, "%s/mount-%u", dir, uid);
    fuse_fd = open(node, O_RDWR | O_CLOEXEC);
    if (fuse_fd < 0) die(node);
    snprintf(options, sizeof options, "fd=%d,rootmode=40755,user_id=%u,group_id=%u%s", fuse_fd, uid,
             uid, own_namespace ? "" : ",allow_other");
    if (mount("attack", file, "fuse", 0, options) != 0) die("mount");
    if (!own_namespace) become();
    if (fork() == 0) { /* apart, so that whoever waits is free when it ends, and it ends with us */
        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        serve();
        _exit(0);
    }
    close(fuse_fd);
    if (overlay) {
        snprintf(options, sizeof options, "lowerdir=%s:%s/empty", file, dir);
        if (mount("attack", file, "overlay", 0, options) != 0) die("mount overlay");
    }
    strcat(file, "/f");
    int fd = open(file, O_RDONLY);
    if (fd < 0) die(file);
    return fd;
}

/* --- rings --- */

static int
make_ring(const char *name, size_t bytes, bool fill)
{
    char path[512];
    uint64_t magic = SDB_MAGIC;
    snprintf(path, sizeof path, "%s/%s-%u-%d", dir, name, uid, (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || posix_fallocate(fd, 0, (off_t)bytes) != 0) die(path);
    static char junk[1 << 20];
    memset(junk, 'j', sizeof junk);
    for (size_t i = 0; fill && i < bytes; i += sizeof junk)
        if (pwrite(fd, junk, sizeof junk, (off_t)i) < 0) die(path);
    if (pwrite(fd, &magic, sizeof magic, 0) != sizeof magic) die(path);
    unlink(path);
    return fd;
}

static int
lingering_socket(void)
{
    static char bytes[65536];
    int listener = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    struct linger hour = {.l_onoff = 1, .l_linger = 3600};
    setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    if (bind(listener, (struct sockaddr *)&a, n) != 0 || listen(listener, 1) != 0) die("listen");
    getsockname(listener, (struct sockaddr *)&a, &n);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&a, n) != 0) die("connect");
    fcntl(fd, F_SETFL, O_NONBLOCK);
    while (write(fd, bytes, sizeof bytes) > 0) continue;
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &hour, sizeof hour);
    fcntl(fd, F_SETFL, 0);
    return fd;
}

static int epoll, polled;

static void *
hold_epoll(void *unused)
{
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, polled, &e); /* asks the file, which never answers */
    return unused;
}

/* --- processes that die --- */

static pid_t
doomed(int ring_fd)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) _exit(0); /* it ended before that */
    say(ring_fd);
    pause();
    _exit(0);
}

static void
die_together(int ring_fd, int count, useconds_t after)
{
    pid_t pids[64];
    for (int i = 0; i < count; i++) pids[i] = doomed(ring_fd);
    usleep(after);
    for (int i = 0; i < count; i++) kill(pids[i], SIGKILL);
    for (int i = 0; i < count; i++) waitpid(pids[i], NULL, 0);
}

static void
stop_children_of(pid_t parent)
{
    for (int i = 0; i < 500; i++, usleep(1000)) {
        DIR *proc = opendir("/proc");
        struct dirent *entry;
        while ((entry = readdir(proc)) != NULL) {
            char path[300], text[256] = "";
            int ppid = 0, pid = atoi(entry->d_name);
            if (pid <= 0) continue;
            snprintf(path, sizeof path, "/proc/%d/stat", pid);
            int fd = open(path, O_RDONLY);
            if (fd < 0) continue;
            if (read(fd, text, sizeof text - 1) < 0) text[0] = '\0';
            close(fd);
            char *end = strrchr(text, ')');
            if (end == NULL || sscanf(end, ") %*c %d", &ppid) != 1 || ppid != parent) continue;
            if (kill(pid, SIGSTOP) == 0) printf("stopped %d\n", pid), fflush(stdout);
        }
        closedir(proc);
    }
}

int
main(int argc, char **argv)
{
    if (argc < 5) return 2;
    const char *mode = argv[1];
    int number = argc > 5 ? atoi(argv[5]) : 0;
    uid = (uid_t)atoi(argv[2]);
    daemon_name = argv[3];
    dir = argv[4];
    signal(SIGPIPE, SIG_IGN);
    if (strcmp(mode, "fuse-open") == 0) {
        say(mount_fuse(false, false));
    } else if (strcmp(mode, "overlay") == 0) {
        say(mount_fuse(true, true));
    } else if (strcmp(mode, "epoll") == 0) {
        pthread_t thread;
        polled = mount_fuse(true, false);
        epoll = epoll_create1(0);
        pthread_create(&thread, NULL, hold_epoll, NULL);
        usleep(200000);
        say(epoll);
    } else {
        become();
    }
    if (strcmp(mode, "linger") == 0) say(lingering_socket());
    if (strcmp(mode, "stop") == 0) {
        ready();
        stop_children_of(number);
        return 0;
    } else if (strcmp(mode, "shared") == 0) {
        die_together(make_ring("shared", (size_t)number << 20, false), 3, 500000);
    } else if (strcmp(mode, "fat") == 0) {
        die_together(make_ring("fat", (size_t)number << 20, true), 1, 500000);
    } else if (strcmp(mode, "flood") == 0) {
        int ring = make_ring("flood", 4 << 20, false);
        ready();
        for (unsigned i = 0;; i++, usleep(10000)) {
            if (i % 20 == 0) die_together(ring, number, 20000);
            say(ring);
        }
    }
    ready();
    pause();
    return 0;
}
