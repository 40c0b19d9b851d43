/* SPDX-License-Identifier: MIT
 *
 * oomd_registry.h - the processes that are watched. Owns them until one is taken out to become a victim.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_REGISTRY_H
#define SDB_OOMD_REGISTRY_H

#include <stdbool.h>
#include "oomd_process.h"

enum { OOMD_PROCESSES_A_USER = 1024 }; /* of SDB_OOM_PROCESSES; root is not bounded */

struct oomd_probe;
struct oomd_registry;

struct oomd_registry *
oomd_registry_new(struct oomd_probe *probe); /* probe: borrowed; NULL in tests */
void oomd_registry_free(struct oomd_registry *r);

struct oomd_process *oomd_registry_find(const struct oomd_registry *r,
                                        uint32_t tgid); /* borrowed */
bool oomd_registry_has_ring(const struct oomd_registry *r, uint64_t dev, uint64_t ino);
size_t oomd_registry_count(const struct oomd_registry *r);

/* Takes over `p`, gives it an id and tells the probes; an entry of the same tgid is replaced. 0,
 * SDB_ERR_FULL (p is freed), SDB_ERR_IO (the probes did not take it; p is freed). */
int oomd_registry_add(struct oomd_registry *r, struct oomd_process *p);

/* Takes the process out; the caller owns it. NULL when there is none of that id. */
struct oomd_process *oomd_registry_take(struct oomd_registry *r, uint64_t id);

void oomd_registry_drop(struct oomd_registry *r, uint64_t id);

/* Drops those whose process is gone: an event about it may have been lost. */
void oomd_registry_sweep(struct oomd_registry *r);

#endif
