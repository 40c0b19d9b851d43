/* SPDX-License-Identifier: MIT
 *
 * oomd_register.h - the registration as bytes: is it one? Pure, so that it can be fuzzed. Whether the process may
 * say it is another question (oom_register.bpf.h, oomd_arrival.c).
 *
 * Runs on: any
 */
#ifndef SDB_OOMD_REGISTER_H
#define SDB_OOMD_REGISTER_H

#include <stdint.h>
#include "oom_protocol.h"

struct oomd_register {
    uint64_t table; /* 0 none */
    uint64_t start_ticks;
    uint32_t ring_fd;
    int table_version_known;
    char service[SDB_OOM_SERVICE_BYTES]; /* cleaned, never empty */
};

/* Any bytes. 0, or SDB_ERR_INVALID with words in *why. */
int oomd_register_parse(struct oomd_register *out, const struct sdb_oom_register *said,
                        const char **why);

#endif
