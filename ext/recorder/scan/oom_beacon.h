/* SPDX-License-Identifier: MIT
 *
 * oom_beacon.h - keeps this process known to sdb-oomd, where one runs: the recording's own message, sent again each
 * ten seconds by the scanner (core/oom_client.h).
 */
#ifndef SDB_OOM_BEACON_H
#define SDB_OOM_BEACON_H

#include <stddef.h>

/* Which daemon ($SDB_OOMD, its --name; "" or "0": none) and the service's name out of the ring's text.
 * Runs on: any Ruby thread, GVL: reads the environment. */
void sdb_oom_beacon_configure(const char *text, size_t text_bytes);

/* The next call sends at once. Runs on: GVL, or a forked child before any Ruby code. */
void sdb_oom_beacon_reset(void);

/* Sends when due. scanner: struct sdb_scanner *. Runs on: scanner thread, no GVL. */
void sdb_oom_beacon_second(void *scanner);

#endif
