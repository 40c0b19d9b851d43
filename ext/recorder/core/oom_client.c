/* SPDX-License-Identifier: MIT
 *
 * oom_client.c - see oom_client.h.
 *
 * A socket a message: an app that closes all descriptors it does not know (daemons do) could otherwise
 * give our number to a file of its own, and the next message would go there.
 *
 * Runs on: scanner thread, no GVL
 */
#include "core/oom_client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "error.h"
#include "live_table.h"
#include "oom_protocol.h"

static const uint64_t second_ns = 1000000000ull;

/* The daemon only reads: it gets a descriptor that cannot write, where /proc allows. */
static int
open_read_only(int ring_fd)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/thread-self/fd/%d", ring_fd);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int
send_message(const struct sockaddr_un *address, int ring_fd, struct sdb_oom_register *message)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {.iov_base = message, .iov_len = sizeof *message};
    struct msghdr m = {.msg_name = (void *)address,
                       .msg_namelen = sizeof *address,
                       .msg_iov = &data,
                       .msg_iovlen = 1,
                       .msg_control = control.bytes,
                       .msg_controllen = sizeof control.bytes};
    int saved, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;

    int read_only = open_read_only(ring_fd);
    int given = read_only >= 0 ? read_only : ring_fd;
    memset(&control, 0, sizeof control);
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof given);
    memcpy(CMSG_DATA(c), &given, sizeof given);

    ssize_t n = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    saved = errno;
    if (read_only >= 0) close(read_only);
    close(fd);
    errno = saved;
    return n == (ssize_t)sizeof *message ? 0 : -1;
}

int
sdb_oom_register(struct sdb_oom_client *client, const char *path, int ring_fd,
                 uint64_t table_address, uint64_t start_ticks, const char *service, uint64_t now_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct sdb_oom_register message = {
        .magic = SDB_OOM_MAGIC,
        .version = SDB_OOM_VERSION,
        .bytes = sizeof message,
        .table_address = table_address,
        .table_version = SDB_LIVE_VERSION,
        .start_ticks = start_ticks,
    };

    if (now_ns < client->next_ns) return 0;
    client->next_ns = now_ns + SDB_OOM_REPEAT_S * second_ns;
    if (path == NULL || path[0] == '\0') path = SDB_OOM_SOCKET;
    if (strlen(path) >= sizeof address.sun_path) return SDB_ERR_INVALID;
    strcpy(address.sun_path, path);
    if (service != NULL) snprintf(message.service, sizeof message.service, "%s", service);

    if (send_message(&address, ring_fd, &message) != 0) {
        client->last_errno = errno;
        if (errno == EAGAIN || errno == ENOBUFS) client->next_ns = now_ns + second_ns;
        return SDB_ERR_IO;
    }
    client->last_errno = 0;
    client->sent++;
    return 1;
}
