/* SPDX-License-Identifier: MIT
 *
 * select.h - the part of a profile that a question is about: time, threads, intervals of threads, states,
 * functions. All conditions must hold.
 *
 * Runs on: offline
 */
#ifndef SDB_SELECT_H
#define SDB_SELECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/model.h"

struct sdb_interval {
    uint32_t thread;
    uint64_t t0, t1;
};

enum { SDB_MARK_FOCUS = 1, SDB_MARK_HIDE = 2 };

struct sdb_selection {                    /* all borrowed */
    uint64_t from, to;                    /* on the common line; 0 and SDB_NO_TIME: all */
    const uint8_t *threads;               /* per thread, nonzero: in; NULL all */
    const struct sdb_interval *intervals; /* sorted by thread and t0, not overlapping; NULL all */
    size_t interval_count;
    uint32_t states;           /* bits 1 << state */
    const uint8_t *func_marks; /* SDB_MARK_* per function; NULL none */
    bool focus;                /* only stacks with a function marked FOCUS */
};

enum sdb_metric {
    SDB_WALL,
    SDB_CPU,
    SDB_METRIC_GVL_WAIT,
    SDB_METRIC_BLOCKED,
    SDB_METRIC_GC,
    SDB_METRIC_COUNT
};

struct sdb_piece { /* of a segment, inside the selection */
    uint32_t thread, stack, state;
    uint32_t ticks;
    uint64_t t0, t1, cpu_ns;
};

/* Worth of a piece under a metric, in ns. */
static inline uint64_t
sdb_piece_ns(const struct sdb_piece *piece, enum sdb_metric metric)
{
    switch (metric) {
    case SDB_CPU:
        return piece->cpu_ns;
    case SDB_METRIC_GVL_WAIT:
        return piece->state == SDB_GVL_WAIT ? piece->t1 - piece->t0 : 0;
    case SDB_METRIC_BLOCKED:
        return piece->state == SDB_BLOCKED ? piece->t1 - piece->t0 : 0;
    case SDB_METRIC_GC:
        return piece->state == SDB_GC ? piece->t1 - piece->t0 : 0;
    default:
        return piece->t1 - piece->t0;
    }
}

/* Calls visit for each piece, thread by thread in order of time; stops when it returns nonzero and returns that.
 * SDB_ERR_NOMEM possible with focus. */
typedef int sdb_piece_visit(const struct sdb_piece *piece, void *data);
int sdb_select(const struct sdb_profile *p, const struct sdb_selection *s, sdb_piece_visit *visit,
               void *data);

/* Sorts, cuts to nothing what is empty, joins what overlaps. Returns how many are left. */
size_t sdb_intervals_normalize(struct sdb_interval *intervals, size_t n);
/* Whether one of them (normalized) has the thread at that instant, its end included. */
bool sdb_intervals_cover(const struct sdb_interval *intervals, size_t n, uint32_t thread,
                         uint64_t at);
/* What is in both (both normalized) into out, which has room for a_n + b_n. Returns how many. */
size_t sdb_intervals_intersect(const struct sdb_interval *a, size_t a_n,
                               const struct sdb_interval *b, size_t b_n, struct sdb_interval *out);

#endif
