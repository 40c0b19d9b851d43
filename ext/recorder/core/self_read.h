/* SPDX-License-Identifier: MIT
 *
 * self_read.h - a read of our own memory at an address that may be anything, as a yes or no.
 *
 * Runs on: any, after sdb_safe_read_probe (calibration sees to it)
 */
#ifndef SDB_SELF_READ_H
#define SDB_SELF_READ_H

#include "core/safe_read.h"

#include <stdbool.h>

/* Copies [address, address + bytes) to `to`. false when a byte of it cannot be read (contents of `to` undefined),
 * or when this process may not read itself safely. Allocates nothing. */
static inline bool
sdb_self_read(uint64_t address, void *to, size_t bytes)
{
    return sdb_safe_read(to, address, bytes) == 0;
}

#endif
