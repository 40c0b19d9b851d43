/* SPDX-License-Identifier: MIT
 *
 * oomd_register.h - the registration message as bytes: is it one? Pure, so that it can be fuzzed. Whether the
 * sender may say it is another question (oomd_intake.c).
 *
 * Runs on: any
 */
#ifndef SDB_OOMD_REGISTER_H
#define SDB_OOMD_REGISTER_H

#include <stddef.h>
#include <stdint.h>
#include "oom_protocol.h"

struct oomd_register {
    uint64_t table; /* 0 none */
    uint64_t start_ticks;
    int table_version_known;
    char service[SDB_OOM_SERVICE_BYTES]; /* cleaned, never empty */
};

/* Parses a datagram of n bytes. 0, or SDB_ERR_INVALID with words in *why. */
int oomd_register_parse(struct oomd_register *out, const void *bytes, size_t n, const char **why);

/* What came with it: the kernel's word for the sender, and one descriptor. `control` is what recvmsg left;
 * controllen may be anything. All descriptors found are put into fds[0 .. returned), at most fds_max;
 * *pid is 0 when there were no credentials. */
struct msghdr;
size_t oomd_register_control(struct msghdr *m, int32_t *pid, uint32_t *uid, int *fds,
                             size_t fds_max);

#endif
