/* SPDX-License-Identifier: MIT
 *
 * recorder_impl.h - the runtime struct of the recorder, for the files of recorder.c only.
 */
#ifndef SDB_RECORDER_IMPL_H
#define SDB_RECORDER_IMPL_H

#include <ruby.h>
#include "recorder/recorder.h"

enum { SDB_RECORDER_TEXT_BYTES = 8192 };

struct sdb_recorder {
    /* immutable while running */
    struct sdb_layout layout;
    struct sdb_recorder_options options;
    char dir[SDB_PATH_MAX], tmp[SDB_PATH_MAX];
    char text[SDB_RECORDER_TEXT_BYTES];
    size_t own_text_bytes; /* of text: without what compose_child_text appends */
    char parent_ring[SDB_PATH_MAX];
    char child_label[256]; /* guarded by the GVL; "key=value" */
    bool drop_top, stacks_last;
    VALUE main_thread;
    /* guarded by the GVL */
    bool running, hooked, forked_silent;
    char last_path[SDB_PATH_MAX];
    uint64_t last_counters[SDB_COUNTER_COUNT];
    /* shared */
    struct sdb_thread_table threads;
    struct sdb_scanner scanner;
};

/* All parts anew, in rec->scanner. 0 or SDB_ERR_NOMEM. Calls nothing of the VM but the marking hooks of gc.c. Runs on:
 * any Ruby thread, GVL, or the atfork child handler. */
int sdb_recorder_make_parts(struct sdb_recorder *rec, uint64_t now_ns, bool forked);
/* Runs on: any Ruby thread, GVL, with the scanner ended. */
void sdb_recorder_free_parts(struct sdb_recorder *rec);
/* A recording of its own for the child, or silence. Runs on: the forking thread, in the child, before any Ruby code. */
void sdb_recorder_forked(struct sdb_recorder *rec);

#endif
