/* SPDX-License-Identifier: MIT
 *
 * vm_read.h - a read of our own memory at an address that may be anything.
 *
 * Runs on: any
 */
#ifndef SDB_VM_READ_H
#define SDB_VM_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies [address, address + bytes) to `to`. false when a byte of it cannot be read (contents of `to` undefined),
 * or when this process may not read itself safely. Allocates nothing. */
bool sdb_vm_read(uint64_t address, void *to, size_t bytes);

#endif
