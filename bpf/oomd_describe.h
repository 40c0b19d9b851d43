/* SPDX-License-Identifier: MIT
 *
 * oomd_describe.h - what /proc says of a process, read once while it lives (/proc/PID is empty by the time that the
 * daemon hears of the kill) and packed, so that the daemon can keep it for thousands of them.
 *
 * Reading another process's /proc can wait for that process: its command line and its maps are behind its memory's
 * lock and may have to be paged in from a file system that it answers for, and who drops the last reference
 * to its memory ends its I/O for it. So only keepers do it.
 *
 * Runs on: keeper (reading), dump writer (unpacking), finder (start times)
 */
#ifndef SDB_OOMD_DESCRIBE_H
#define SDB_OOMD_DESCRIBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OOMD_CGROUP_BYTES = 1024,
    OOMD_CMDLINE_BYTES = 4096,
    OOMD_EXE_BYTES = 1024,
    OOMD_MAPS_BYTES = 128 << 10,
    OOMD_PACKED_BYTES = 32 << 10, /* the most that one may take; maps are cut to fit */
};

struct oomd_description {
    char exe[OOMD_EXE_BYTES];
    char cgroup[OOMD_CGROUP_BYTES];   /* directory of its memory cgroup, "" unknown */
    char cmdline[OOMD_CMDLINE_BYTES]; /* arguments joined by spaces */
    size_t maps_bytes;
    char maps[OOMD_MAPS_BYTES];
};

/* Field 22 of /proc/PID/stat; 0 when there is no such process. */
uint64_t oomd_start_ticks(uint32_t pid);

/* true when all its uids are `uid` and its /proc entry belongs to it: not setuid, not set apart from its
 * user (prctl PR_SET_DUMPABLE, file capabilities). */
bool oomd_process_is_plainly(uint32_t pid, uint32_t uid);

/* What cannot be read stays empty. */
void oomd_describe(uint32_t pid, struct oomd_description *d);

/* Bytes written to out (at most OOMD_PACKED_BYTES), 0 on failure. */
size_t oomd_describe_pack(struct oomd_description *d, uint8_t *out);
/* Any bytes: false when they are no description; then *d is empty. */
bool oomd_describe_unpack(struct oomd_description *d, const uint8_t *packed, size_t n);

#endif
