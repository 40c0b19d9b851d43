/* SPDX-License-Identifier: MIT
 *
 * crc32c.c - slicing-by-8 (eight table look-ups for eight bytes that do not wait for each other).
 *
 * Runs on: any
 */
#include "crc32c.h"

#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 reflected */

static uint32_t table[8][256];

/* when the library is loaded, so that no thread or forked child ever waits for another */
__attribute__((constructor)) static void
make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; bit++) c = (c >> 1) ^ (c & 1 ? POLYNOMIAL : 0);
        table[0][i] = c;
    }
    for (int k = 1; k < 8; k++) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = table[k - 1][i];
            table[k][i] = (c >> 8) ^ table[0][c & 0xff];
        }
    }
}

uint32_t
sdb_crc32c(uint32_t crc, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    uint32_t c = ~crc;

    while (n >= 8) {
        uint32_t low, high;

        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        low = __builtin_bswap32(low);
        high = __builtin_bswap32(high);
#endif
        low ^= c;
        c = table[7][low & 0xff] ^ table[6][(low >> 8) & 0xff] ^ table[5][(low >> 16) & 0xff] ^
            table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][(high >> 8) & 0xff] ^
            table[1][(high >> 16) & 0xff] ^ table[0][high >> 24];
        p += 8;
        n -= 8;
    }
    while (n-- > 0) c = (c >> 8) ^ table[0][(c ^ *p++) & 0xff];
    return ~c;
}
