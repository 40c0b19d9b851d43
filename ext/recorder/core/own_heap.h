/* SPDX-License-Identifier: MIT
 *
 * own_heap.h - memory for what only the scanner uses: its tables, the active chunk, what it remembers of stacks. It lies
 * in mappings that a forked child does not get (MADV_DONTFORK). The child makes everything anew, and could not free the
 * parent's: the scanner may have been in the middle of any change. So nothing piles up in forks of forks, and a
 * fork copies no page tables for it.
 *
 * A child that was forked without the atfork handlers (_Fork, a system call) must not run Ruby: its GC would look for the
 * codes in memory that is not there.
 *
 * Runs on: any thread; behind a mutex, since who starts and stops a recording uses it, too. Never in a signal handler.
 */
#ifndef SDB_OWN_HEAP_H
#define SDB_OWN_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* As malloc, calloc, realloc and free; aligned to 16. */
void *sdb_own_alloc(size_t bytes);
void *sdb_own_calloc(size_t count, size_t size);
void *sdb_own_realloc(void *p, size_t bytes);
void sdb_own_free(void *p);
/* Nothing of it is there any more. Runs on: the atfork child handler. */
void sdb_own_forget(void);
/* Bytes mapped, for tests. */
uint64_t sdb_own_mapped_bytes(void);

#endif
