/* SPDX-License-Identifier: MIT
 *
 * memory_log.h - the memory time line in the log, and what is written once more while the limit comes near.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_MEMORY_LOG_H
#define SDB_MEMORY_LOG_H

#include "scan/state.h"

/* Looks when it is time to. At each tick. */
void sdb_memory_log(struct sdb_scanner *sc);

#endif
