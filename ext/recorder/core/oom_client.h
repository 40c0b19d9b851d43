/* SPDX-License-Identifier: MIT
 *
 * oom_client.h - tells sdb-oomd, where one runs, that this process exists (oom_protocol.h). Three prctl calls
 * now and then: nothing to wait for, no descriptor, no file, and whether a daemon listens changes nothing for
 * the process.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_OOM_CLIENT_H
#define SDB_OOM_CLIENT_H

#include <stdint.h>

struct sdb_oom_client { /* zero-filled at start and in a forked child. owner: scanner */
    uint64_t next_ns;   /* monotonic: not before */
    uint64_t sent;      /* times that it was said; nobody knows who heard it */
    int last_errno;     /* of the last failed attempt: a sandbox that forbids PR_SET_NAME */
};

struct sdb_oom_speaker { /* borrowed */
    /* its name, NULL or "" the usual one; $SDB_OOMD is read under the GVL, not here */
    const char *daemon;
    const char *service;             /* NUL-terminated, may be NULL */
    uint64_t table_address;          /* struct sdb_live_table, 0 none */
    uint64_t start_ticks, recording; /* as in the ring's identity; recording: start_monotonic_ns */
    int ring_fd;                     /* in the calling thread's own table (own_files.h) */
};

/* Says it when it is due: at the first call, then every ten seconds. Cheap when not due (one comparison). The calling
 * thread has another name for about a microsecond.
 * 1 said, 0 not due, SDB_ERR_IO (last_errno; nothing to do but go on). */
int sdb_oom_register(struct sdb_oom_client *client, const struct sdb_oom_speaker *who,
                     uint64_t now_ns);

#endif
