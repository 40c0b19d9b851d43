/* SPDX-License-Identifier: MIT
 *
 * flush.h - from memory to the file: what was collected, and the state page with its figures; and what a reader of this
 * process's memory finds, if it dies before.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_FLUSH_H
#define SDB_FLUSH_H

#include "scan/state.h"

/* Creates the ring and attaches it. 0 or a negative error, and the errno is in sc->file.last_errno. */
int sdb_flush_open_file(struct sdb_scanner *sc);
/* Writes all that is collected to the file. */
void sdb_flush(struct sdb_scanner *sc);
/* Writes the state page: figures, and whether it is parked. */
void sdb_flush_state(struct sdb_scanner *sc);
/* Says where that lies which is not on the file yet (live_table.h). */
void sdb_flush_publish(struct sdb_scanner *sc);

#endif
