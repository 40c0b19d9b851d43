/* SPDX-License-Identifier: MIT
 *
 * blame.h - who held the GVL while a thread waited for it.
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
 * first; *rows is to be freed. Time in which several waited counts for each of them. 0, SDB_ERR_NOMEM, _STOPPED. */
int sdb_blame_find(const struct sdb_profile *p, const struct sdb_interval *intervals, size_t n,
                   struct sdb_blame **rows, size_t *count);

/* For each interval, a wait of its thread, the one holder of the same ring that held it longest; ns 0: nobody known. n
 * rows, to be freed. */
int sdb_blame_each(const struct sdb_profile *p, const struct sdb_interval *intervals, size_t n,
                   struct sdb_blame **rows);

#endif
