/* SPDX-License-Identifier: MIT - test_oomd_rate.c - what a user of the black box may do how often: changing one's uid gains nothing. */
#include "../../bpf/oomd_rate.c"
#include "t.h"

static const uint64_t SECOND = 1000000000ull;

static struct oomd_rate rate;

static unsigned
taken(uint32_t uid, unsigned tries, uint64_t now_ns)
{
    unsigned n = 0;
    for (unsigned i = 0; i < tries; i++) n += oomd_rate_take(&rate, uid, now_ns);
    return n;
}

static void
start(void)
{
    rate = (struct oomd_rate){.burst = 3, .refill_ns = SECOND};
}

static void
a_burst_and_then_one_each_second(void)
{
    start();
    CHECK_EQ(taken(7, 10, 100 * SECOND), 3);
    CHECK_EQ(taken(7, 10, 101 * SECOND), 1);
    CHECK_EQ(taken(8, 10, 101 * SECOND), 3); /* another user's own */
    CHECK_EQ(oomd_rate_used(&rate, 7, 101 * SECOND), 3);
    CHECK_EQ(oomd_rate_used(&rate, 7, 110 * SECOND), 0);
    CHECK_EQ(taken(7, 10, 110 * SECOND), 3);
}

static void
who_comes_back_after_many_others_is_not_forgotten(void)
{
    start();
    CHECK_EQ(taken(1, 10, 100 * SECOND), 3);
    for (uint32_t uid = 1000; uid < 1000 + 5 * OOMD_RATE_USERS; uid++) taken(uid, 10, 100 * SECOND);
    CHECK_EQ(taken(1, 10, 100 * SECOND), 0);
}

static void
users_for_whom_there_is_no_room_share_one_allowance(void)
{
    unsigned more = 0;
    start();
    for (uint32_t uid = 1000; uid < 1000 + OOMD_RATE_USERS; uid++)
        CHECK_EQ(taken(uid, 10, 100 * SECOND), 3);
    for (uint32_t uid = 90000; uid < 90000 + 5000; uid++) more += taken(uid, 10, 100 * SECOND);
    CHECK_EQ(more, 3);
    CHECK_EQ(taken(90000, 10, 110 * SECOND), 3); /* there is room again */
}

int
main(void)
{
    RUN(a_burst_and_then_one_each_second);
    RUN(who_comes_back_after_many_others_is_not_forgotten);
    RUN(users_for_whom_there_is_no_room_share_one_allowance);
    return t_done();
}
