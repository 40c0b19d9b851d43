/* SPDX-License-Identifier: MIT
 *
 * visit.h - one thread at one tick.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_VISIT_H
#define SDB_VISIT_H

#include "scan/state.h"

/* Writes what the slot's thread did since it was last visited, or that it ended. */
void sdb_visit(struct sdb_scanner *sc, struct sdb_slot *slot);

#endif
