/* SPDX-License-Identifier: MIT
 *
 * event_records.h - an event as a record of the ring: the payload that an app thread queued (event_feed.h), its strings as
 * numbers of the chunk, its time since the start. Room is made before, by open_work.c, its only user.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_EVENT_RECORDS_H
#define SDB_EVENT_RECORDS_H

#include <stdint.h>

struct sdb_scanner;

/* payload, bytes: a struct sdb_begin_event and what follows it. at_ns: monotonic. */
void sdb_event_write_begin(struct sdb_scanner *sc, uint64_t serial, uint64_t at_ns,
                           const uint8_t *payload, uint32_t bytes);
/* payload, bytes: a struct sdb_end_event and what follows it. */
void sdb_event_write_end(struct sdb_scanner *sc, uint64_t at_ns, const uint8_t *payload,
                         uint32_t bytes);
/* span: 0 none. */
void sdb_event_write_switch(struct sdb_scanner *sc, uint64_t serial, uint64_t span, uint64_t at_ns);
/* payload, bytes: a struct sdb_tags_event and what follows it. */
void sdb_event_write_tags(struct sdb_scanner *sc, uint64_t serial, uint64_t at_ns,
                          const uint8_t *payload, uint32_t bytes);
/* payload, bytes: the text. */
void sdb_event_write_mark(struct sdb_scanner *sc, uint64_t at_ns, const uint8_t *payload,
                          uint32_t bytes);

#endif
