/* SPDX-License-Identifier: MIT - test_crc32c.c - known sums, pieces, and a bit-by-bit second opinion. */
#include "crc32c.h"
#include "t.h"

static uint32_t
slow(const uint8_t *p, size_t n)
{
    uint32_t c = 0xffffffff;

    while (n-- > 0) {
        c ^= *p++;
        for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0x82f63b78 : c >> 1;
    }
    return ~c;
}

static void
sums_of_the_standard(void) /* RFC 3720, B.4 */
{
    uint8_t bytes[32];

    CHECK_EQ(sdb_crc32c(0, "123456789", 9), 0xe3069283u);
    CHECK_EQ(sdb_crc32c(0, "", 0), 0);
    memset(bytes, 0, sizeof bytes);
    CHECK_EQ(sdb_crc32c(0, bytes, 32), 0x8a9136aau);
    memset(bytes, 0xff, sizeof bytes);
    CHECK_EQ(sdb_crc32c(0, bytes, 32), 0x62a8ab43u);
    for (int i = 0; i < 32; i++) bytes[i] = (uint8_t)i;
    CHECK_EQ(sdb_crc32c(0, bytes, 32), 0x46dd794eu);
}

static void
any_length_at_any_place_in_any_pieces(void)
{
    uint8_t bytes[300];
    uint64_t seed = 2;

    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)t_random(&seed);
    for (int i = 0; i < 5000; i++) {
        size_t at = t_random(&seed) % 20, n = t_random(&seed) % 280,
               cut = n == 0 ? 0 : t_random(&seed) % n;
        uint32_t whole = slow(bytes + at, n);

        CHECK_EQ(sdb_crc32c(0, bytes + at, n), whole);
        CHECK_EQ(sdb_crc32c(sdb_crc32c(0, bytes + at, cut), bytes + at + cut, n - cut), whole);
    }
}

int
main(void)
{
    RUN(sums_of_the_standard);
    RUN(any_length_at_any_place_in_any_pieces);
    return t_done();
}
