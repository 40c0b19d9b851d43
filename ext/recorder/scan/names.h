/* SPDX-License-Identifier: MIT
 *
 * names.h - names that the symbolizer found go into the ring's symbol area, and codes are let go: when a table or the area
 * is full, when no stack has shown them for a while, when their proof failed.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_NAMES_H
#define SDB_NAMES_H

#include "scan/state.h"

/* Writes what has been named since the last call. At each tick. */
void sdb_names_write(struct sdb_scanner *sc);
/* Lets go of what no stack has shown for a while. At each tick. */
void sdb_names_age(struct sdb_scanner *sc);
/* Forgets the codes that failed their proof. Once a second. */
void sdb_names_drop_invalid(struct sdb_scanner *sc);

#endif
