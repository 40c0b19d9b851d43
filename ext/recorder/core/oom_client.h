/* SPDX-License-Identifier: MIT
 *
 * oom_client.h - tells sdb-oomd, where one runs, that this process exists: one datagram now and then
 * (oom_protocol.h). Never waits, keeps no descriptor open between calls, and a daemon that is absent, full,
 * restarted or not ours changes nothing for the process.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_OOM_CLIENT_H
#define SDB_OOM_CLIENT_H

#include <stdint.h>

struct sdb_oom_client { /* zero-filled at start and in a forked child. owner: scanner */
    uint64_t next_ns;   /* monotonic: not before */
    uint64_t sent;      /* messages the kernel took */
    int last_errno; /* of the last failed attempt: ENOENT and ECONNREFUSED mean that no daemon runs */
};

/* Sends the message when it is due: at the first call, then every ten seconds, a second after one that
 * found the daemon's queue full. Cheap when not due (one comparison); about 20 us when due.
 * path: the daemon's socket, NULL for the default; $SDB_OOMD is read by the glue, under the GVL: getenv would
 * race with the app's ENV here. ring_fd: the ring, a number in the
 * calling thread's own table (own_files.h), not in that of the process; the daemon gets a read-only descriptor of it. table_address: struct sdb_live_table, 0 none. start_ticks: as in the ring's
 * identity. service: NUL-terminated, may be NULL.
 * 1 sent, 0 not due, SDB_ERR_IO (last_errno; nothing to do but go on), SDB_ERR_INVALID (path too long). */
int sdb_oom_register(struct sdb_oom_client *client, const char *path, int ring_fd,
                     uint64_t table_address, uint64_t start_ticks, const char *service,
                     uint64_t now_ns);

#endif
