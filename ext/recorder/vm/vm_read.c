/* SPDX-License-Identifier: MIT
 *
 * vm_read.c - see vm_read.h.
 *
 * Runs on: any
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* process_vm_readv */
#endif
#include "vm/vm_read.h"

#include <sys/uio.h>
#include <unistd.h>

bool
sdb_vm_read(uint64_t address, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)bytes;
}
