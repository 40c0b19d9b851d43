/* SPDX-License-Identifier: MIT
 *
 * oomd_capture.h - what the probes copied out of one victim, put together from their events. The events are the
 * kernel's, what is in them is the victim's: every number is proven before use.
 *
 * Runs on: daemon, dump writer
 */
#ifndef SDB_OOMD_CAPTURE_H
#define SDB_OOMD_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "oom_event.h"

struct oomd_bytes {
    uint8_t *at;
    size_t n, room;
};

/* Appends; false when out of memory. Frees with free(b->at). */
bool oomd_bytes_add(struct oomd_bytes *b, const void *bytes, size_t n);

/* Events one after the other as they came, each padded to 8 bytes. */
struct oomd_capture {
    struct oomd_bytes events;
};

bool oomd_capture_add(struct oomd_capture *c, const struct sdb_oom_data_header *head,
                      const uint8_t *bytes);
void oomd_capture_free(struct oomd_capture *c);

struct oomd_capture_view { /* borrowed from the capture; NULL when it has none */
    const struct sdb_live_table *table;
    const uint8_t *counters;
    size_t counters_bytes;
};

void oomd_capture_look(const struct oomd_capture *c, struct oomd_capture_view *view);

/* All threads in the form of SDB_DUMP_THREADS (dump_format.h), appended to `out`. Number of threads, or
 * -1 when out of memory. Nothing without a table. */
long oomd_capture_threads(const struct oomd_capture *c, struct oomd_bytes *out);

/* The pending bytes put together: *ring_off is where they belong in the ring. false when there are none or a
 * piece is missing. */
bool oomd_capture_pending(const struct oomd_capture *c, struct oomd_bytes *out, uint64_t *ring_off);

#endif
