/* SPDX-License-Identifier: MIT
 *
 * frame_code.h - which code a control frame runs: its iseq, and the method entry found through its ep. The
 * table of frame kinds is in VM_ACCESS.md.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_FRAME_CODE_H
#define SDB_FRAME_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/code_table.h"

struct sdb_scan;

struct sdb_stack { /* where a stack lies, as read at one moment */
    uint64_t ec, low, high, cfp;
    /* as `high`, but of the memory the frames are read from (a copy, perhaps) */
    uint64_t frames_end;
    uint32_t depth;
    bool root, direct; /* direct: may be loaded; else only read safely */
    bool truncated;
    const uint8_t *values; /* copy of the value stack [values_low, values_high), NULL none */
    uint64_t values_low, values_high;
};

struct sdb_raw_frame {
    uint64_t iseq, pc, ep, self, jit; /* of the control frame */
    uint64_t me, spec, flags;         /* ep[-2], ep[-1], ep[0], as they lie */
    bool on_stack; /* ep lies in this VM stack, so its words are read again as a proof */
    bool c_frame;  /* CFUNC or IFUNC */
    bool shown;    /* a frame a person wants to see */
    uint64_t shown_iseq, ment; /* code table key */
    uint32_t entry;            /* of the code table; 0: not looked up, or not met */
};

/* Fills me .. ment of raw[0..n), which are frames [from, from + n) of the stack; older ones are in scan.
 * Returns how many could be told; the next one was seen in the middle of a change. */
uint32_t sdb_frame_codes(const struct sdb_code_table *codes, const struct sdb_stack *s,
                         const struct sdb_scan *scan, uint32_t from, struct sdb_raw_frame *raw,
                         uint32_t n);

/* True when ep lies in this VM stack, not in an env on the heap. */
bool sdb_frame_is_on_stack(const struct sdb_stack *s, uint64_t ep);

/* ep[-2] as it is now; 0 when it cannot be read. */
uint64_t sdb_frame_method_entry(const struct sdb_stack *s, uint64_t ep);

/* True when the frame's ep still shows the same three words. */
bool sdb_frame_words_hold(const struct sdb_stack *s, const struct sdb_raw_frame *f);

/* Shows it one (iseq, method entry) that belong together. After some, sdb_frame_codes
 * asks a method entry for its own iseq before it believes a pair it never saw, so that a frame read from two calls
 * in turn is recognised at once. Runs on: symbolizer, GVL. */
void sdb_frame_learn_pair(uint64_t iseq, uint64_t method_entry);

#endif
