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

struct oomd_probe;
struct oomd_registry;

struct oomd_registry *
oomd_registry_new(struct oomd_probe *probe); /* probe: borrowed; NULL in tests */
void oomd_registry_free(struct oomd_registry *r);

/* Borrowed; NULL when there is none. */
struct oomd_process *oomd_registry_find(const struct oomd_registry *r, uint32_t tgid);
struct oomd_process *oomd_registry_at(const struct oomd_registry *r, size_t i); /* i < count */
size_t oomd_registry_count(const struct oomd_registry *r);

/* Takes over `p`, which the probes watch; an entry of the same tgid is replaced. 0, SDB_ERR_FULL (p is freed). */
int oomd_registry_add(struct oomd_registry *r, struct oomd_process *p);

/* The same for one that did not register: gives it an id and tells the probes. SDB_ERR_IO: they did not take it. */
int oomd_registry_add_found(struct oomd_registry *r, struct oomd_process *p);

/* Takes the process out; the caller owns it. NULL when there is none of that id. */
struct oomd_process *oomd_registry_take(struct oomd_registry *r, uint64_t id);

void oomd_registry_drop(struct oomd_registry *r, uint64_t id);

/* Drops those that the probes know no more: an event about it may have been lost. */
void oomd_registry_sweep(struct oomd_registry *r);

#endif
