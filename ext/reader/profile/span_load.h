/* SPDX-License-Identifier: MIT
 *
 * span_load.h - collects spans while rings are decoded, then works out which thread worked for which span
 * when.
 *
 * Runs on: offline
 */
#ifndef SDB_SPAN_LOAD_H
#define SDB_SPAN_LOAD_H

#include "profile/model.h"

/* Number of span `id` of a ring, SDB_NONE. */
uint32_t sdb_span_find(const struct sdb_profile *p, uint32_t ring, uint64_t id);

/* From begin on its thread works for it. 0 or SDB_ERR_NOMEM, _FULL; so the next two. */
int sdb_profile_span_begin(struct sdb_profile *p, const struct sdb_span *span);
/* Takes end, name and trace id (unless ""), status, times and tags from `end`. A thread that works for the span then works
 * for its parent. */
int sdb_profile_span_end(struct sdb_profile *p, uint32_t span, const struct sdb_span *end);
/* From `at` on the thread works for `span` (SDB_NONE none). */
int sdb_span_switch(struct sdb_profile *p, uint32_t thread, uint32_t span, uint64_t at);

/* After the last ring: parents, ends of open spans, pieces (sorted by thread, then time). */
int sdb_spans_settle(struct sdb_profile *p);

#endif
