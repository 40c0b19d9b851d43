/* SPDX-License-Identifier: MIT
 *
 * crc32c.h - CRC-32C (Castagnoli), the checksum of every structure of the ring file. Portable tables, eight
 * bytes a step; no CPU instruction, because the reader runs anywhere and the recorder sums some KiB a second.
 *
 * Runs on: any
 */
#ifndef SDB_CRC32C_H
#define SDB_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC of `n` bytes appended to those already summed in `crc` (0 at first). crc("123456789") = 0xe3069283. */
uint32_t sdb_crc32c(uint32_t crc, const void *bytes, size_t n);

#endif
