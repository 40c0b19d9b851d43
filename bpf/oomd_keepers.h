/* SPDX-License-Identifier: MIT
 *
 * oomd_keepers.h - the daemon's side of its keepers (oomd_keep.h): one for each user that has a process here. Each is asked
 * one thing at a time; one that does not answer in two seconds is asked nothing more, and another takes over: what it
 * holds already stays of use. A user has at most three that hang; then no ring of his is opened any more.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_KEEPERS_H
#define SDB_OOMD_KEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "oomd_process.h"

enum { OOMD_KEEPERS_MAX = 256, OOMD_KEEPERS_A_USER = 3 };

struct oomd_registry;
struct oomd_keepers;

/* epoll: answers make this descriptor readable. NULL when out of memory. */
struct oomd_keepers *oomd_keepers_new(struct oomd_registry *registry, int epoll, uint64_t max_ring);
void oomd_keepers_free(struct oomd_keepers *k); /* ends them, waits for none */

/* Takes answers, asks what is to be asked, replaces who hangs. */
void oomd_keepers_turn(struct oomd_keepers *k, uint64_t now_ns);
/* When it is to be called again without an answer; UINT64_MAX: nothing is waited for. */
uint64_t oomd_keepers_next_due(const struct oomd_keepers *k);

/* From now on the process's ring is theirs to hold, until it is freed. */
void oomd_keepers_adopt(struct oomd_keepers *k, struct oomd_process *p);

/* A descriptor (pidfd, borrowed) of the keeper that holds the ring of p, -1 when none does. */
int oomd_keepers_pidfd(const struct oomd_keepers *k, const struct oomd_process *p);

bool oomd_keepers_ended(struct oomd_keepers *k, pid_t pid); /* false: not one of these */
size_t oomd_keepers_count(const struct oomd_keepers *k);

#endif
