/* SPDX-License-Identifier: MIT
 *
 * oomd_options.h - the command line of sdb-oomd.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_OPTIONS_H
#define SDB_OOMD_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include "oomd_retain.h"

enum { OOMD_RING_DIRS_MAX = 16 };

struct oomd_options {
    const char *name; /* whom processes speak to: $SDB_OOMD; "" the usual one */
    const char *dir;  /* of the dumps */
    const char *exec; /* NULL none */
    const char *ring_dirs[OOMD_RING_DIRS_MAX];
    size_t ring_dir_count;
    struct oomd_budget budget;
    uint64_t max_ring_bytes;
    int verbose;
    uint64_t dumps_a_minute; /* per user; 0 unbounded */
};

/* -1: go on; else the exit code (help was shown: 0; wrong usage, with words on stderr: 2). */
int oomd_options_parse(struct oomd_options *o, int argc, char **argv);

#endif
