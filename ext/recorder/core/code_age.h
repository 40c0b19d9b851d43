/* SPDX-License-Identifier: MIT
 *
 * code_age.h - how long a code that no stack shows is kept. A kept code is pinned, and with it its class and all its
 * methods, which the app may have let go: long where the app only runs, so that a method of each minute is named once;
 * short where code comes and goes, so that what it let go goes.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_CODE_AGE_H
#define SDB_CODE_AGE_H

#include <stdint.h>
#include "core/symbol_area.h"

enum {
    SDB_CODE_AGE_COUNT = 16, /* so many codes that never come back may be kept on the average */
    SDB_CODE_AGE_MIN_MS = 60,
    SDB_CODE_AGE_MAX_MS = 120000,
    SDB_CODE_AGE_MET = 1 << 14,
};

struct sdb_code_age {
    uint32_t met
        [SDB_CODE_AGE_MET]; /* fingerprints of codes that had a name, and in the low bits how often they came back; 0 none */
    uint64_t fresh_milli; /* codes never met before, fading by half each second; 1/1000 */
    uint64_t faded_ns;    /* up to when */
};

/* A code got its name. 0: for the first time; else for how long it shall count as having been in use, ns: it was let go and
 * came back, and each time it does it is kept longer. */
uint64_t sdb_code_age_named(struct sdb_code_age *a, const struct sdb_symbol *symbol);
/* How long a code is kept now that no stack shows. now_ns: monotonic. */
uint64_t sdb_code_age_limit_ns(struct sdb_code_age *a, uint64_t now_ns);

#endif
