/* SPDX-License-Identifier: MIT
 *
 * spans.h - which spans a question is about, and the time of which threads is theirs.
 *
 * Runs on: offline
 */
#ifndef SDB_SPANS_H
#define SDB_SPANS_H

#include "profile/select.h"

struct sdb_tag { /* string numbers; SDB_NONE: a string that is nowhere, nothing has the tag */
    uint32_t key, value;
};

struct sdb_span_query {   /* borrowed; all must hold */
    const uint8_t *names; /* per string, nonzero: wanted name; NULL any */
    bool by_request, by_trace;
    uint32_t request, trace;    /* string numbers, SDB_NONE: none has it */
    const struct sdb_tag *tags; /* of the span, a span around it, or its thread when it began */
    size_t tag_count;
    bool roots; /* only spans without parent */
    uint64_t min_ns;
    double
        percentile; /* only those at or above it among the spans that pass the rest and have the same name; < 0 all */
    uint64_t from, to;      /* must overlap */
    const uint8_t *threads; /* per thread, on which it began; NULL all */
};

/* Numbers of the spans that match, by begin: *found is to be freed. 0 or SDB_ERR_NOMEM. */
int sdb_spans_find(const struct sdb_profile *p, const struct sdb_span_query *q, uint32_t **found,
                   size_t *count);

/* Intervals in which threads worked for one of the spans or for spans inside them, normalized; *out is to be
 * freed. 0 or SDB_ERR_NOMEM. */
int sdb_spans_intervals(const struct sdb_profile *p, const uint32_t *spans, size_t n,
                        struct sdb_interval **out, size_t *count);

/* Intervals of threads (or spans) with that tag, likewise. */
int sdb_tag_intervals(const struct sdb_profile *p, struct sdb_tag tag, struct sdb_interval **out,
                      size_t *count);

/* The outermost span that a span is in; itself when it is in none. */
uint32_t sdb_span_root(const struct sdb_profile *p, uint32_t span);

/* When, after `at`, the thread goes on to another span, or none; SDB_NO_TIME never. */
uint64_t sdb_span_change(const struct sdb_profile *p, uint32_t thread, uint64_t at);

/* The innermost span the thread works for at an instant, SDB_NONE. */
uint32_t sdb_span_at(const struct sdb_profile *p, uint32_t thread, uint64_t at);

#endif
