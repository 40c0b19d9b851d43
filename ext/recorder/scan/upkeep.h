/* SPDX-License-Identifier: MIT
 *
 * upkeep.h - what the scanner does besides visiting threads: the once-a-second figures, waking the symbolizer,
 * when to flush, and the end of the file. Names: names.h; memory: memory_log.h; the file: flush.h.
 *
 * Runs on: scanner thread, no GVL, unless said
 */
#ifndef SDB_UPKEEP_H
#define SDB_UPKEEP_H

#include "scan/state.h"

/* End of each tick. */
void sdb_upkeep_tick(struct sdb_scanner *sc);
/* Figures, counters and clocks into the log, the governor. */
void sdb_upkeep_second(struct sdb_scanner *sc);
/* Names that came since it parked, and that it is parked. */
void sdb_upkeep_parked(struct sdb_scanner *sc);
/* After the last tick: last names, figures, state CLOSED, closes the file. reason: why it stopped, NULL when asked
 * to. */
void sdb_upkeep_close(struct sdb_scanner *sc, const char *reason);
/* Closes what is open, without sealing. */
void sdb_upkeep_abandon(struct sdb_scanner *sc);

#endif
