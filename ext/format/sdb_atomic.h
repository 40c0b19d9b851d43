/* SPDX-License-Identifier: MIT
 *
 * sdb_atomic.h - the only way shared fields are read and written: plain uint64_t / uint32_t with the order
 * named at the access. `_relaxed` is for values that order nothing. Runs on: any.
 */
#ifndef SDB_ATOMIC_H
#define SDB_ATOMIC_H

#include <stdint.h>

#define sdb_load_relaxed(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define sdb_load_acquire(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define sdb_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define sdb_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define sdb_load_seq_cst(p) __atomic_load_n((p), __ATOMIC_SEQ_CST)
#define sdb_store_seq_cst(p, v) __atomic_store_n((p), (v), __ATOMIC_SEQ_CST)
#define sdb_add_relaxed(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define sdb_add_acq_rel(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define sdb_or_seq_cst(p, v) __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define sdb_and_acq_rel(p, v) __atomic_fetch_and((p), (v), __ATOMIC_ACQ_REL)
#define sdb_exchange_acq_rel(p, v) __atomic_exchange_n((p), (v), __ATOMIC_ACQ_REL)
#define sdb_cas_acq_rel(p, expected, v)                                                            \
    __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define sdb_fence_acquire() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define sdb_fence_release() __atomic_thread_fence(__ATOMIC_RELEASE)
#define sdb_fence_seq_cst() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif
