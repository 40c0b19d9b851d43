/* SPDX-License-Identifier: MIT
 *
 * load.h - builds a profile from opened rings.
 *
 * Runs on: offline
 */
#ifndef SDB_LOAD_H
#define SDB_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "log/ring_reader.h"
#include "profile/model.h"

struct sdb_load_window { /* only chunks that overlap are read; may be more than asked */
    int64_t from_ns;     /* of the common line; negative: before the end */
    uint64_t to_ns;      /* SDB_NO_TIME: to the end */
};

/* Where the rings' zeros lie on one line that starts with the earliest. Rings of one boot are aligned by
 * their monotonic clocks, others by what the real time was when they began. bases: n numbers. */
void sdb_align_rings(struct sdb_ring_reader *const *readers, size_t n, uint64_t *bases);

/* Reads all rings into an empty profile; ring i of the profile is readers[i]. now_rel: n rel times up to which
 * threads of a log that ends parked are known to have gone on: now, or the process' end (0 not known). window: NULL all.
 * 0, SDB_ERR_NOMEM, SDB_ERR_IO; damage is counted in the rings' loss and is no error. */
int sdb_profile_load(struct sdb_profile *p, struct sdb_ring_reader *const *readers, size_t n,
                     const uint64_t *now_rel, const struct sdb_load_window *window);

#endif
