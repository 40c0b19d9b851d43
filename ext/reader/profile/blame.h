/* SPDX-License-Identifier: MIT
 *
 * blame.h - who held the GVL while a thread waited for it: the threads of the same process that ran (or
 * collected garbage) meanwhile.
 *
 * Runs on: offline
 */
#ifndef SDB_BLAME_H
#define SDB_BLAME_H

#include "profile/select.h"

struct sdb_blame {
    uint32_t thread, stack;
    uint32_t span; /* it worked for, SDB_NONE */
    uint64_t ns;
};

/* For all gvl_wait segments of threads inside the intervals: the holders by (thread, stack, span), the longest
 * first. *rows is to be freed. 0 or SDB_ERR_NOMEM. */
int sdb_blame_find(const struct sdb_profile *p, const struct sdb_interval *intervals, size_t n,
                   struct sdb_blame **rows, size_t *count);

#endif
