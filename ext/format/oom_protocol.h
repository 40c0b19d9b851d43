/* SPDX-License-Identifier: MIT
 *
 * oom_protocol.h - what a profiled process says to sdb-oomd: "I am here; when I am killed, read this table in
 * my memory and keep this file". It is not the ring format and never lies on a disk.
 *
 * Transport: none that could carry anything but bytes. A thread renames itself for an instant (PR_SET_NAME) to
 * a word that no thread is called, with an address in it, and takes its old name back. The daemon's probe at
 * the kernel's tracepoint task_rename sees the word and copies the struct at that address out of the memory
 * of the caller. So the kernel knows who speaks, nobody can pass the daemon a descriptor, and there is no
 * queue that another user could fill. Without a daemon the call does nothing; there is no answer either way. The
 * sender repeats it every ten seconds, so a daemon that was restarted knows it again.
 *
 * The receiver believes nothing but the kernel: see "Threat model" in bpf/README.md.
 *
 * Runs on: any
 */
#ifndef SDB_OOM_PROTOCOL_H
#define SDB_OOM_PROTOCOL_H

#include <stdint.h>

#define SDB_OOM_MAGIC 0x6d6f6f6264732f01ull
#define SDB_OOM_VERSION 2
#define SDB_OOM_NAME_ENV "SDB_OOMD"

enum {
    SDB_OOM_SERVICE_BYTES = 64,
    SDB_OOM_REPEAT_S = 10, /* a process registers again after this */
    /* the word: four bytes of magic, then the address, seven bits a byte from the lowest on, each with its
     * highest bit set so that none is zero */
    SDB_OOM_WORD_MAGIC_BYTES = 4,
    SDB_OOM_WORD_ADDRESS_BYTES = 8,
    SDB_OOM_WORD_BYTES = 16, /* TASK_COMM_LEN; NUL-terminated */
};
#define SDB_OOM_WORD_MAGIC "\x01sdb"

struct sdb_oom_register {
    uint64_t magic;         /* SDB_OOM_MAGIC */
    uint32_t version;       /* SDB_OOM_VERSION; a receiver refuses one it does not know */
    uint32_t bytes;         /* sizeof(struct sdb_oom_register) of the sender */
    uint64_t table_address; /* struct sdb_live_table in the sender's memory, 8-aligned; 0 none */
    uint64_t table_version; /* SDB_LIVE_VERSION the sender was built with */
    uint64_t start_ticks;   /* /proc/self/stat field 22: must be what the kernel says */
    uint64_t channel;       /* sdb_oom_channel of the daemon's name that it speaks to */
    uint64_t recording;  /* changes when the process begins another ring: its start_monotonic_ns */
    uint32_t ring_fd;    /* the ring's descriptor, of the thread that speaks */
    uint32_t reserved32; /* zero */
    char service[SDB_OOM_SERVICE_BYTES]; /* NUL-terminated; only [A-Za-z0-9._-] is kept */
    uint64_t reserved[2];                /* zero */
};

_Static_assert(sizeof(struct sdb_oom_register) == 144, "the struct has no padding");

/* FNV-1a of the name, so that a daemon under another name (of a test, say) hears only those who mean it. */
static inline uint64_t
sdb_oom_channel(const char *name)
{
    uint64_t h = 0xcbf29ce484222325ull;
    for (; *name; name++) h = (h ^ (uint8_t)*name) * 0x100000001b3ull;
    return h;
}

#endif
