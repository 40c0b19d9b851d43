/* SPDX-License-Identifier: MIT
 *
 * recorder.h - the life of a recording in this process: start, stop, fork, and what status tells. Holds the one
 * static runtime struct.
 */
#ifndef SDB_RECORDER_H
#define SDB_RECORDER_H

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>
#include "vm/layout.h"
#include "scan/scanner.h"

struct sdb_recorder_options {
    const char *dir; /* "" for the user's own below tmp */
    const char *tmp; /* the temp dir */
    bool dir_named;  /* by the user, who wants the log there or nowhere */
    uint64_t ring_bytes, interval_ns, keep_files;
    uint64_t max_cpu_ppm; /* 0: no governor */
    const char *text;     /* NUL-separated "key=value" for the ring's identity */
    size_t text_bytes;
    bool yjit;
};

/* Starts recording. 0, or a negative error with words in reason; then nothing runs and the app goes on.
 * SDB_OK when it already runs. Runs on: any Ruby thread, GVL. */
int sdb_recorder_start(const struct sdb_recorder_options *options, char reason[SDB_REASON_BYTES]);
/* Stops and seals the ring; false when nothing ran. What a trap raised meanwhile is *held for sdb_go_on. Runs on: any
 * Ruby thread, GVL. */
bool sdb_recorder_stop(VALUE *held);
bool sdb_recorder_running(void);
/* Everything recorded so far is on the file when this returns (or 200 ms passed). Runs on: GVL. */
void sdb_recorder_flush(void);
/* Text of the identity of the rings of children forked from now on, as "tag.worker=2"; NULL none. A child keeps it for
 * its own. Runs on: GVL. */
void sdb_recorder_label_children(const char *key_value);
/* Gives the recorder of a forked child its symbolizer. Runs on: the forking thread, in the child, GVL. */
void sdb_recorder_after_fork(void);

struct sdb_recorder_status {
    bool running, parked, exact, forked_silent;
    const char *path; /* of the present or last ring, "" none */
    const char *safe_read;
    /* why there is no log, or why it does not lie in dir; "" when it does */
    const char *log_reason;
    bool refused; /* there is no log */
    uint64_t ring_bytes, interval_ns, effective_interval_ns;
    uint64_t counters[SDB_COUNTER_COUNT];
};
void sdb_recorder_status(struct sdb_recorder_status *out);

#endif
