/* SPDX-License-Identifier: MIT
 *
 * stack_copy.h - where the stack of a thread lies, and its frames: loaded, or from our copy where the stack may
 * vanish, and compared with those of the last walk. For walk.c and walk_proof.c only.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_STACK_COPY_H
#define SDB_STACK_COPY_H

#include "sdb_atomic.h"
#include "live_table.h"
#include "scan/thread_memory.h"
#include "scan/walker.h"

/* Where the stack lies now. 0 or a walk result. th is pinned through its Thread, so th->ec and the root ec
 * may be loaded; a fiber's ec may be freed meanwhile and is read safely. */
int sdb_stack_read_bounds(const struct sdb_walker *w, const struct sdb_slot *slot,
                          struct sdb_stack *s);

/* True when it still lies there and is as deep. */
bool sdb_stack_bounds_hold(const struct sdb_walker *w, const struct sdb_slot *slot,
                           const struct sdb_stack *s);

/* For a stack that may vanish: frames [from, depth) and the values [values_low, values_high) into our copies, with
 * one system call, so that the two are as little apart in time as can be. */
bool sdb_stack_copy(struct sdb_walker *w, struct sdb_stack *s, uint32_t from, uint64_t values_low,
                    uint64_t values_high);

/* Index of the first frame that differs from the last walk. */
uint32_t sdb_stack_common_prefix(const struct sdb_walker *w, const struct sdb_stack *s,
                                 const struct sdb_scan *scan);

static inline uint64_t
sdb_stack_word(uint64_t address)
{
    return sdb_load_relaxed((const uint64_t *)(uintptr_t)address);
}

static inline void
sdb_stack_read_frame(const struct sdb_walker *w, const struct sdb_stack *s, uint32_t i,
                     struct sdb_raw_frame *f)
{
    const struct sdb_layout *l = &w->config.layout;
    uint64_t cfp = s->frames_end - (uint64_t)l->cfp_bytes * (i + 1);
    f->iseq = sdb_stack_word(cfp + l->cfp_iseq);
    f->pc = sdb_stack_word(cfp + l->cfp_pc);
    f->ep = sdb_stack_word(cfp + l->cfp_ep);
    f->self = sdb_stack_word(cfp + l->cfp_self);
    f->jit = sdb_stack_word(cfp + l->cfp_jit_return);
}

static inline bool
sdb_stack_same_frame(const struct sdb_raw_frame *a, const struct sdb_raw_frame *b)
{
    return a->iseq == b->iseq && a->ep == b->ep && a->self == b->self;
}

static inline bool
sdb_stack_same_place(const struct sdb_raw_frame *f, const struct sdb_frame *old)
{
    return f->iseq == old->iseq && f->ep == old->ep && f->self == old->self;
}

/* Whether a frame is the one of the last walk. iseq, ep and pc are not enough: one call site may run a C method and
 * then another at the same place of the stack (all of them have iseq 0), or one iseq for objects of two classes. The
 * receiver tells the classes apart, the method entry tells C methods apart. with_pc: false for a top frame whose pc
 * may move on. */
static inline bool
sdb_stack_unchanged(const struct sdb_stack *s, const struct sdb_raw_frame *f,
                    const struct sdb_frame *old, bool with_pc)
{
    if (!sdb_stack_same_place(f, old) || (with_pc && f->pc != old->pc)) return false;
    return !old->me || sdb_frame_method_entry(s, f->ep) == old->me;
}

#endif
