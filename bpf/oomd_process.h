/* SPDX-License-Identifier: MIT
 *
 * oomd_process.h - what /proc says of a process, read once, while it lives: /proc/PID is empty by the time
 * that the daemon hears of the kill.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_PROCESS_H
#define SDB_OOMD_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "oom_protocol.h"

enum {
    OOMD_CGROUP_BYTES = 1024,
    OOMD_CMDLINE_BYTES = 4096,
    OOMD_EXE_BYTES = 1024,
    OOMD_MAPS_BYTES = 128 << 10,
};

struct oomd_process { /* immutable once in the registry, but for registered_ns */
    uint64_t id;      /* never reused */
    uint32_t tgid, uid;
    uint64_t start_ticks;
    uint64_t table; /* 0: found by its file, nothing known of its memory */
    bool table_version_known;
    int ring_fd;
    uint64_t ring_dev, ring_ino;
    uint64_t registered_ns; /* monotonic, of the last message */
    char service[SDB_OOM_SERVICE_BYTES];
    char exe[OOMD_EXE_BYTES];
    char cgroup[OOMD_CGROUP_BYTES];   /* directory of its memory cgroup, "" unknown */
    char cmdline[OOMD_CMDLINE_BYTES]; /* arguments joined by spaces */
    char *maps;
    size_t maps_bytes;
};

/* Field 22 of /proc/PID/stat; 0 when there is no such process. */
uint64_t oomd_start_ticks(uint32_t pid);

/* true when all its uids are `uid` and its /proc entry belongs to it: not setuid, not set apart from its
 * user (prctl PR_SET_DUMPABLE, file capabilities). */
bool oomd_process_is_plainly(uint32_t pid, uint32_t uid);

/* Fills exe, cgroup, cmdline, maps; what cannot be read stays empty. Keeps the rest. */
void oomd_process_describe(struct oomd_process *p);

void oomd_process_free(struct oomd_process *p); /* closes ring_fd; accepts NULL */

/* A number in a file of the cgroup's directory; 0 when absent, unreadable or "max". */
uint64_t oomd_cgroup_number(const char *dir, const char *v2_name, const char *v1_name);

#endif
