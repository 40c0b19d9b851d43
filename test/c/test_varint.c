/* SPDX-License-Identifier: MIT - test_varint.c - varints and zigzag, at their edges. */
#include "t.h"
#include "varint.h"

static const uint64_t edges[] = {
    0,        1,          0x7f,       0x80,      0x3fff,     0x4000,     0x1fffff,
    0x200000, UINT32_MAX, 1ull << 32, INT64_MAX, 1ull << 63, UINT64_MAX,
};

static void
round_trip(uint64_t v)
{
    uint8_t bytes[SDB_VARINT_MAX + 1] = {0};
    const uint8_t *p = bytes;
    uint8_t *end = sdb_varint_put(bytes, v);
    uint64_t back = ~v;

    CHECK_EQ((size_t)(end - bytes), sdb_varint_size(v));
    CHECK(sdb_varint_get(&p, end, &back));
    CHECK(back == v && p == end);
    for (const uint8_t *early = bytes; early < end; early++) {
        p = bytes;
        CHECK(!sdb_varint_get(&p, early, &back));
        CHECK(p == bytes);
    }
}

static void
values_come_back_and_cut_ones_do_not(void)
{
    uint64_t seed = 1;

    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) round_trip(edges[i]);
    for (int i = 0; i < 20000; i++) round_trip(t_random(&seed) >> (t_random(&seed) & 63));
}

static void
zigzag_keeps_small_numbers_small(void)
{
    static const int64_t n[] = {0, -1, 1, -2, 2, INT64_MIN, INT64_MAX};
    static const uint64_t z[] = {0, 1, 2, 3, 4, UINT64_MAX, UINT64_MAX - 1};

    for (int i = 0; i < 7; i++) {
        CHECK(sdb_zigzag(n[i]) == z[i]);
        CHECK(sdb_unzigzag(z[i]) == n[i]);
    }
}

static void
longer_forms_are_read_and_too_long_ones_refused(void)
{
    uint8_t padded[] = {0x81, 0x80, 0x80, 0x00}, eleven[12],
            over[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
    const uint8_t *p = padded;
    uint64_t v = 0;
    int64_t n;

    CHECK(sdb_varint_get(&p, padded + 4, &v) && v == 1);
    memset(eleven, 0x80, sizeof eleven);
    eleven[11] = 0;
    p = eleven;
    CHECK(!sdb_varint_get(&p, eleven + 12, &v));
    p = over;
    CHECK(!sdb_varint_get(&p, over + 10, &v));
    CHECK(!sdb_zigzag_get(&p, over + 10, &n));
    over[9] = 1;
    CHECK(sdb_varint_get(&p, over + 10, &v) && v == UINT64_MAX);
}

int
main(void)
{
    RUN(values_come_back_and_cut_ones_do_not);
    RUN(zigzag_keeps_small_numbers_small);
    RUN(longer_forms_are_read_and_too_long_ones_refused);
    return t_done();
}
