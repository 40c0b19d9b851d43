/* SPDX-License-Identifier: MIT
 *
 * aggregate.h - sums over a selection: per function, line, thread, stack.
 *
 * A hidden frame (SDB_MARK_HIDE) does not exist for the sums: its time goes to the nearest frame below it
 * (its caller). Time whose frames are all hidden is the function SDB_FUNC_NO_FRAMES'.
 *
 * Runs on: offline
 */
#ifndef SDB_AGGREGATE_H
#define SDB_AGGREGATE_H

#include "profile/select.h"

struct sdb_reader_times {
    uint64_t self_ns, total_ns;
};

struct sdb_sums {
    uint64_t total_ns;                  /* equals the sum of all self times */
    uint64_t samples;                   /* ticks at which a selected thread was seen */
    uint64_t unnamed_ns;                /* self time of code without a name */
    size_t threads;                     /* with time in the selection */
    struct sdb_reader_times *functions; /* per function; free() it */
};

/* 0 or SDB_ERR_NOMEM. */
int sdb_sum_functions(const struct sdb_profile *p, const struct sdb_selection *s,
                      enum sdb_metric metric, struct sdb_sums *sums);

struct sdb_line_times {
    uint32_t line;
    struct sdb_reader_times times;
};

/* Lines with time of the functions in the file with path (string number) `path`, by line; free() *lines.
 * A line counts once per stack. */
int sdb_sum_lines(const struct sdb_profile *p, const struct sdb_selection *s,
                  enum sdb_metric metric, uint32_t path, struct sdb_line_times **lines,
                  size_t *count);

struct sdb_edges {
    uint64_t total_ns;           /* of the selection */
    struct sdb_reader_times own; /* of the targets together */
    struct sdb_reader_times *callers,
        *callees; /* per function; free() both. NO_FRAMES among callers: nobody calls it */
};

/* What calls the functions in targets (nonzero per function) and what they call. Where a stack has several
 * targets the outermost counts. A caller's self_ns is the target's own time when called so. */
int sdb_sum_edges(const struct sdb_profile *p, const struct sdb_selection *s,
                  enum sdb_metric metric, const uint8_t *targets, struct sdb_edges *edges);

struct sdb_thread_times {
    uint64_t state_ns[SDB_STATE_COUNT];
    uint64_t cpu_ns, first, last; /* first > last: nothing selected */
};

/* times: one per thread, by the caller. */
int sdb_sum_threads(const struct sdb_profile *p, const struct sdb_selection *s,
                    struct sdb_thread_times *times);

/* What a thread spent on a stack itself, under every metric. Hidden frames are not considered. */
struct sdb_cell {
    uint32_t thread, stack;
    uint64_t ns[SDB_METRIC_COUNT];
};

/* One cell per (thread, stack) with time, thread by thread: *cells is to be freed. 0 or SDB_ERR_NOMEM. */
int sdb_sum_cells(const struct sdb_profile *p, const struct sdb_selection *s,
                  struct sdb_cell **cells, size_t *count);

/* Tree of what is shown: nodes in an order in which parents come first; node 0 is the root. */
struct sdb_tree_node {
    uint32_t parent;
    uint32_t func, line; /* line: only with by_line */
    uint64_t self_ns, total_ns;
};

/* *nodes: free() it. */
int sdb_sum_tree(const struct sdb_profile *p, const struct sdb_selection *s, enum sdb_metric metric,
                 bool by_line, struct sdb_tree_node **nodes, size_t *count);

#endif
