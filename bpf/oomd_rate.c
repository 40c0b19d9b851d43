/* SPDX-License-Identifier: MIT
 *
 * oomd_rate.c - see oomd_rate.h.
 *
 * Runs on: daemon
 */
#include "oomd_rate.h"

/* Of that user: his own, else a free one, else the one that is shared. */
static unsigned
place(const struct oomd_rate *r, uint32_t uid, uint64_t now_ns)
{
    unsigned free_one = OOMD_RATE_USERS;
    for (unsigned i = 0; i < OOMD_RATE_USERS; i++) {
        bool full = r->users[i].full_ns <= now_ns;
        if (!full && r->users[i].uid == uid) return i;
        if (full && free_one == OOMD_RATE_USERS) free_one = i;
    }
    return free_one;
}

uint64_t
oomd_rate_used(const struct oomd_rate *r, uint32_t uid, uint64_t now_ns)
{
    uint64_t full = r->users[place(r, uid, now_ns)].full_ns;
    return full > now_ns ? (full - now_ns + r->refill_ns - 1) / r->refill_ns : 0;
}

bool
oomd_rate_take(struct oomd_rate *r, uint32_t uid, uint64_t now_ns)
{
    unsigned i = place(r, uid, now_ns);
    uint64_t full = r->users[i].full_ns > now_ns ? r->users[i].full_ns : now_ns;
    if (full - now_ns > (r->burst - 1) * r->refill_ns) return false;
    r->users[i].full_ns = full + r->refill_ns;
    r->users[i].uid = uid;
    return true;
}
