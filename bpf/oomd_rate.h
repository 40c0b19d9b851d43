/* SPDX-License-Identifier: MIT
 *
 * oomd_rate.h - how often a user may do something. Nobody is forgotten while he would gain by it: a user's entry
 * makes room for another only when his allowance is full again. Where all are taken, the users without one share
 * one allowance, so that changing one's uid gains nothing.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_RATE_H
#define SDB_OOMD_RATE_H

#include <stdbool.h>
#include <stdint.h>

enum { OOMD_RATE_USERS = 1024 };

struct oomd_rate {
    uint64_t burst;     /* at once */
    uint64_t refill_ns; /* one more after each */
    struct {
        uint64_t full_ns; /* when the allowance is full again */
        uint32_t uid;
    } users[OOMD_RATE_USERS + 1]; /* the last: all others */
};

/* Takes one; false when there is none left. */
bool oomd_rate_take(struct oomd_rate *r, uint32_t uid, uint64_t now_ns);

/* How much of its allowance the user has used, 0 for who has it all. */
uint64_t oomd_rate_used(const struct oomd_rate *r, uint32_t uid, uint64_t now_ns);

#endif
