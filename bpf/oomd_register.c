/* SPDX-License-Identifier: MIT
 *
 * oomd_register.c - see oomd_register.h.
 *
 * Runs on: any
 */
#include "oomd_register.h"

#include <string.h>
#include <sys/socket.h>
#include "error.h"
#include "live_table.h"
#include "oomd_log.h"

int
oomd_register_parse(struct oomd_register *out, const void *bytes, size_t n, const char **why)
{
    static const uint64_t zero[4];
    struct sdb_oom_register m;

    *why = "too short";
    if (n < 16) return SDB_ERR_INVALID;
    memset(&m, 0, sizeof m);
    memcpy(&m, bytes, n < sizeof m ? n : sizeof m);
    *why = "not a registration";
    if (m.magic != SDB_OOM_MAGIC) return SDB_ERR_INVALID;
    *why = "a version that this daemon does not know";
    if (m.version != SDB_OOM_VERSION) return SDB_ERR_INVALID;
    *why = "wrong length";
    if (n != sizeof m || m.bytes != sizeof m) return SDB_ERR_INVALID;
    *why = "reserved fields are set";
    if (memcmp(m.reserved, zero, sizeof zero) != 0) return SDB_ERR_INVALID;
    *why = "a table address that cannot be one";
    if (m.table_address % 8 != 0 || m.table_address >= 1ull << 56) return SDB_ERR_INVALID;

    out->table = m.table_address;
    out->start_ticks = m.start_ticks;
    out->table_version_known = m.table_version == SDB_LIVE_VERSION;
    oomd_clean_name(out->service, sizeof out->service, m.service, sizeof m.service, "ruby");
    *why = NULL;
    return SDB_OK;
}

size_t
oomd_register_control(struct msghdr *m, int32_t *pid, uint32_t *uid, int *fds, size_t fds_max)
{
    size_t count = 0;
    *pid = 0;
    *uid = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_len < CMSG_LEN(0) ||
            c->cmsg_len > (size_t)((char *)m->msg_control + m->msg_controllen - (char *)c))
            break;
        size_t bytes = c->cmsg_len - CMSG_LEN(0);
        if (c->cmsg_level != SOL_SOCKET) continue;
        if (c->cmsg_type == SCM_CREDENTIALS && bytes == sizeof(struct ucred)) {
            struct ucred who;
            memcpy(&who, CMSG_DATA(c), sizeof who);
            *pid = who.pid;
            *uid = who.uid;
        } else if (c->cmsg_type == SCM_RIGHTS) {
            size_t n = bytes / sizeof(int);
            for (size_t i = 0; i < n && count < fds_max; i++)
                memcpy(&fds[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        }
    }
    return count;
}
