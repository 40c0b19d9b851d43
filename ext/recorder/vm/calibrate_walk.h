/* SPDX-License-Identifier: MIT
 *
 * calibrate_walk.h - searches a live VM stack for the offsets under which it says what the VM itself says
 * about it. Knows frames and structs by their contents only: no table, no Ruby headers. Every read of
 * an address that is not proven yet is a safe read, so a layout of any kind ends in words, not in a crash.
 *
 * Runs on: any Ruby thread, GVL (so that the searched thread stands still)
 */
#ifndef SDB_CALIBRATE_WALK_H
#define SDB_CALIBRATE_WALK_H

#include "vm/layout.h"

enum sdb_search_kind {
    SDB_SEARCH_C,       /* entry is the method entry; no iseq */
    SDB_SEARCH_METHOD,  /* entry is the method entry */
    SDB_SEARCH_BLOCK,   /* entry is the method entry of frame `home` */
    SDB_SEARCH_BMETHOD, /* entry is the iseq */
};

enum {
    SDB_SEARCH_MAX_FRAMES = 16,
    /* Instructions before each call in the frames searched, and a bound for all: small integers in
     * the structs around are less than the first, and rb_iseq_line_no reads nothing out of bounds below the second
     * (iseq.c, succ_index_lookup: 54 positions lie in the table's fixed part). */
    SDB_SEARCH_MIN_POS = 17,
    SDB_SEARCH_MAX_POS = 53,
};

struct sdb_search_frame { /* what rb_profile_frames says of one frame */
    enum sdb_search_kind kind;
    unsigned home;  /* SDB_SEARCH_BLOCK: index of the frame whose block it is; older, so higher */
    uint64_t entry; /* VALUE */
    int line;
};

/* The VM's own (iseq, position) -> line; called only with iseqs that rb_profile_frames has confirmed
 * and positions of [0, SDB_SEARCH_MAX_POS]. */
typedef unsigned sdb_search_line(uint64_t iseq, unsigned position);

/* Finds where rb_thread_t `th` keeps its execution context, where that keeps its stack, what a frame is and where its
 * iseq keeps its instructions, such that frames[0 .. count-1] are the newest frames, newest first. The thread must
 * be the caller's. 0 with *out filled, or SDB_ERR_UNSUPPORTED with words in reason when nothing fits or
 * more than one thing does. */
int sdb_search_find(uint64_t th, const struct sdb_search_frame *frames, unsigned count,
                    sdb_search_line *line_of, struct sdb_layout *out,
                    char reason[SDB_REASON_BYTES]);

/* 0 when rb_thread_t `th` has an execution context and a well-formed stack where `layout` says, else
 * SDB_ERR_AGAIN: no (also for a thread that is just being born or ending). */
int sdb_search_check(const struct sdb_layout *layout, uint64_t th);

#endif
