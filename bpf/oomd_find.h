/* SPDX-License-Identifier: MIT
 *
 * oomd_find.h - rings in the directories of --rings whose process did not register: it is watched all the
 * same, without what only its memory knows (flag unarmed).
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_FIND_H
#define SDB_OOMD_FIND_H

#include <stdint.h>

struct oomd_registry;

/* Looks through one directory (not below it). Symbolic links are not followed. */
void oomd_find_rings(struct oomd_registry *registry, const char *dir, uint64_t max_bytes,
                     uint64_t now_ns);

#endif
