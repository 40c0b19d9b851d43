/* SPDX-License-Identifier: MIT
 *
 * oom_protocol.h - the one message a profiled process sends to sdb-oomd: "I am here; when I am killed, read
 * this table in my memory and keep this file". It is not the ring format and never lies on a disk.
 *
 * Transport: one datagram on a unix socket. The kernel adds the sender's pid and uid (SO_PASSCRED); one
 * descriptor of the ring, open for reading, travels with it (SCM_RIGHTS). There is no answer: the sender
 * repeats the message every ten seconds, so a daemon that was restarted knows it again.
 *
 * The receiver believes nothing but the kernel's pid and uid: see "Threat model" in bpf/README.md.
 *
 * Runs on: any
 */
#ifndef SDB_OOM_PROTOCOL_H
#define SDB_OOM_PROTOCOL_H

#include <stdint.h>

#define SDB_OOM_MAGIC 0x6d6f6f6264732f01ull
#define SDB_OOM_VERSION 1
#define SDB_OOM_SOCKET "/run/sdb/oomd.sock"
#define SDB_OOM_SOCKET_ENV "SDB_OOMD"

enum {
    SDB_OOM_SERVICE_BYTES = 64,
    SDB_OOM_REPEAT_S = 10, /* a process registers again after this */
};

struct sdb_oom_register {
    uint64_t magic;   /* SDB_OOM_MAGIC */
    uint32_t version; /* SDB_OOM_VERSION; a receiver refuses one it does not know */
    uint32_t bytes;   /* sizeof(struct sdb_oom_register) of the sender: the datagram's length */
    uint64_t table_address; /* struct sdb_live_table in the sender's memory, 8-aligned; 0 none */
    uint64_t table_version; /* SDB_LIVE_VERSION the sender was built with */
    uint64_t start_ticks;   /* /proc/self/stat field 22: must be what the receiver reads itself */
    char service[SDB_OOM_SERVICE_BYTES]; /* NUL-terminated; only [A-Za-z0-9._-] is kept */
    uint64_t reserved[4];                /* zero */
};

_Static_assert(sizeof(struct sdb_oom_register) == 136, "the message has no padding");

#endif
