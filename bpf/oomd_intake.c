/* SPDX-License-Identifier: MIT
 *
 * oomd_intake.c - see oomd_intake.h.
 *
 * A message is looked at twice: first only at who sent it, without receiving its descriptors (the kernel
 * drops those for which there is no room, and dropping them there waits for nobody); who sends too much, or was
 * caught, goes no further.
 *
 * Runs on: daemon
 */
#include "oomd_intake.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "error.h"
#include "oomd_descriptor.h"
#include "oomd_log.h"
#include "oomd_register.h"
#include "oomd_registry.h"

enum {
    MESSAGES_A_TURN = 64,
    USERS = 64,         /* remembered; the one longest unheard of makes room */
    USER_BURST = 128,   /* messages a user may send at once ... */
    USER_A_SECOND = 16, /* ... and goes on with */
    FDS_MAX = 16,
};
static const uint64_t second_ns = 1000000000ull, ban_ns = 600 * 1000000000ull;

struct user {
    uint64_t seen_ns, banned_until_ns;
    double tokens;
    uint32_t uid;
    bool used;
};

struct oomd_intake {
    int fd, lock_fd;
    char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
    uint64_t max_ring_bytes;
    struct oomd_registry *registry;
    struct user users[USERS];
};

static int
lock_path(const char *path)
{
    char lock[128];
    snprintf(lock, sizeof lock, "%s.lock", path);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        close(fd);
        errno = EADDRINUSE;
        return -1;
    }
    return fd;
}

struct oomd_intake *
oomd_intake_open(const char *path, struct oomd_registry *registry, uint64_t max_ring_bytes,
                 char *why, size_t why_bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct oomd_intake *in = calloc(1, sizeof *in);
    int one = 1;
    if (in == NULL) return NULL;
    in->fd = in->lock_fd = -1;
    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof address.sun_path - 8) goto failed;
    strcpy(address.sun_path, path);
    strcpy(in->path, path);
    mkdir(dirname(strcpy((char[sizeof address.sun_path]){0}, path)), 0755);

    in->registry = registry;
    in->max_ring_bytes = max_ring_bytes;
    in->lock_fd = lock_path(path);
    if (in->lock_fd < 0) goto failed;
    in->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (in->fd < 0) goto failed;
    if (setsockopt(in->fd, SOL_SOCKET, SO_PASSCRED, &one, sizeof one) != 0) goto failed;
    unlink(path); /* left by a daemon that was killed: we hold the lock */
    if (bind(in->fd, (struct sockaddr *)&address, sizeof address) != 0) goto failed;
    if (chmod(path, 0666) != 0) goto failed;
    return in;

failed:
    snprintf(why, why_bytes, "cannot listen on %s: %s%s", path, strerror(errno),
             errno == EADDRINUSE ? " (another sdb-oomd runs)" : "");
    if (in->fd >= 0) close(in->fd);
    if (in->lock_fd >= 0) close(in->lock_fd);
    free(in);
    return NULL;
}

void
oomd_intake_close(struct oomd_intake *in)
{
    if (in == NULL) return;
    unlink(in->path);
    close(in->fd);
    close(in->lock_fd);
    free(in);
}

int
oomd_intake_fd(const struct oomd_intake *in)
{
    return in->fd;
}

static struct user *
user_of(struct oomd_intake *in, uint32_t uid, uint64_t now_ns)
{
    struct user *oldest = &in->users[0];
    for (int i = 0; i < USERS; i++) {
        struct user *u = &in->users[i];
        if (u->used && u->uid == uid) return u;
        bool better = u->used != oldest->used ? !u->used : u->seen_ns < oldest->seen_ns;
        if (better && u->banned_until_ns <= now_ns) oldest = u;
    }
    *oldest = (struct user){.seen_ns = now_ns, .tokens = USER_BURST, .uid = uid, .used = true};
    return oldest;
}

static bool
may_send(struct user *u, uint64_t now_ns)
{
    u->tokens += (double)(now_ns - u->seen_ns) * USER_A_SECOND / (double)second_ns;
    if (u->tokens > USER_BURST) u->tokens = USER_BURST;
    u->seen_ns = now_ns;
    if (u->banned_until_ns > now_ns || u->tokens < 1) return false;
    u->tokens -= 1;
    return true;
}

/* A known process again: is there anything new? */
static bool
refresh(struct oomd_intake *in, const struct oomd_register *m, uint32_t pid,
        const struct stat *ring, uint64_t now_ns)
{
    struct oomd_process *p = oomd_registry_find(in->registry, pid);
    if (p == NULL || p->start_ticks != m->start_ticks || p->table != m->table ||
        p->ring_dev != ring->st_dev || p->ring_ino != ring->st_ino)
        return false;
    p->registered_ns = now_ns;
    return true;
}

/* Takes over fd. */
static void
add(struct oomd_intake *in, const struct oomd_register *m, uint32_t pid, uint32_t uid, int fd,
    const struct stat *ring, uint64_t now_ns)
{
    struct oomd_process *p = calloc(1, sizeof *p);
    if (p == NULL) {
        close(fd);
        return;
    }
    p->tgid = pid;
    p->uid = uid;
    p->start_ticks = m->start_ticks;
    p->table = m->table;
    p->table_version_known = m->table_version_known;
    p->ring_fd = fd;
    p->ring_dev = ring->st_dev;
    p->ring_ino = ring->st_ino;
    p->registered_ns = now_ns;
    memcpy(p->service, m->service, sizeof p->service);
    oomd_process_describe(p);
    int err = oomd_registry_add(in->registry, p);
    if (err) {
        oomd_log_limited("pid %u of uid %u is not watched: %s", pid, uid,
                         err == SDB_ERR_FULL ? "too many processes" : "the probes did not take it");
        return;
    }
    /* Asked after the probes know it: if it became another program before, this sees it; if it does so from
     * now on, the probe at exec forgets it. */
    if (oomd_start_ticks(pid) != p->start_ticks || !oomd_process_is_plainly(pid, uid)) {
        oomd_log_limited("pid %u of uid %u is not watched: it is not what it says", pid, uid);
        oomd_registry_drop(in->registry, p->id);
        return;
    }
    oomd_log_detail("watching pid %u (%s)", pid, p->service);
}

static void
handle(struct oomd_intake *in, struct msghdr *m, const void *bytes, size_t n, struct user *u,
       uint64_t now_ns)
{
    struct oomd_register message;
    int32_t pid;
    uint32_t uid;
    int fds[FDS_MAX];
    const char *why = NULL;
    bool hostile = false;
    size_t count = oomd_register_control(m, &pid, &uid, fds, FDS_MAX);

    if (pid > 0 && count == 1 && !(m->msg_flags & (MSG_CTRUNC | MSG_TRUNC)) &&
        oomd_register_parse(&message, bytes, n, &why) == SDB_OK &&
        oomd_descriptor_usable(fds[0], (uint32_t)pid, in->max_ring_bytes, &why, &hostile)) {
        struct stat ring;
        if (fstat(fds[0], &ring) != 0 || refresh(in, &message, (uint32_t)pid, &ring, now_ns)) {
            close(fds[0]);
            return;
        }
        add(in, &message, (uint32_t)pid, uid, fds[0], &ring, now_ns);
        return;
    }
    if (why == NULL) why = "not one descriptor with it";
    oomd_log_limited("a registration of pid %d, uid %u was refused: %s", pid, uid, why);
    bool stuck = false;
    for (size_t i = 0; i < count; i++) stuck |= !oomd_descriptor_discard(fds[i]);
    if ((hostile || stuck || count > 1) && uid != 0) u->banned_until_ns = now_ns + ban_ns;
}

void
oomd_intake_read(struct oomd_intake *in, uint64_t now_ns)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    char bytes[sizeof(struct sdb_oom_register) + 1];

    for (int i = 0; i < MESSAGES_A_TURN; i++) {
        struct iovec data = {.iov_base = bytes, .iov_len = sizeof bytes};
        struct msghdr m = {.msg_iov = &data,
                           .msg_iovlen = 1,
                           .msg_control = control.bytes,
                           .msg_controllen = CMSG_LEN(sizeof(struct ucred))};
        int32_t pid;
        uint32_t uid;
        int fds[1];
        if (recvmsg(in->fd, &m, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) return;
        size_t count = oomd_register_control(&m, &pid, &uid, fds, 1);
        if (count) oomd_descriptor_discard(fds[0]); /* there was no room for one: never */

        struct user *u = user_of(in, uid, now_ns);
        bool take = pid > 0 && (may_send(u, now_ns) || uid == 0); /* root needs no door */
        m = (struct msghdr){.msg_iov = &data,
                            .msg_iovlen = 1,
                            .msg_control = take ? control.bytes : NULL,
                            .msg_controllen = take ? sizeof control.bytes : 0};
        ssize_t n = recvmsg(in->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (n < 0) return;
        if (take) handle(in, &m, bytes, (size_t)n, u, now_ns);
        else
            oomd_log_limited("a registration of pid %d, uid %u was refused: too many of them", pid,
                             uid);
    }
}
