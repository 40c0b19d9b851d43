/* SPDX-License-Identifier: MIT
 *
 * thread_table.h - the slots of live Ruby threads (format/live_table.h has the struct): registration, the
 * state word, and the bitmap that tells the scanner which threads did something since it last looked.
 */
#ifndef SDB_THREAD_TABLE_H
#define SDB_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "live_table.h"
#include "ring_format.h"
#include "sdb_atomic.h"

enum { SDB_NAME_WORDS = 16 };

/* one buffer a slot, overwritten in place under a seqlock; owner: symbolizer */
struct sdb_slot_name {
    uint64_t seq, bytes;
    uint64_t words[SDB_NAME_WORDS]; /* text, cut at 128 bytes */
};

struct sdb_state_view { /* one consistent reading of a slot's state */
    uint64_t state, since_ns, wait_ns, blocked_ns, gc_ns, resumes, tid;
};

struct sdb_thread_table {
    struct sdb_live_table live;
    uint64_t active[SDB_SEGMENT_COUNT]; /* shared: atomic; set by hooks, cleared by the scanner */
    uint64_t next_serial;               /* shared: atomic */
    uint64_t live_count;                /* shared: atomic */
    uint64_t refused;                   /* shared: atomic; threads for which no slot was left */
    uint64_t claim_hint;                /* shared: atomic */
    uint64_t last_ended_ns;             /* shared: atomic; when a thread of the app last ended */
    uint64_t parked; /* shared: atomic; the scanner waits on it as a futex (low 32 bits) */
};

struct sdb_thread_birth { /* what a slot is told of its thread, see struct sdb_slot */
    uint64_t thread_value, th, root_ec, tid, flags, state;
    uint64_t now_ns, cpu_ns; /* its CPU clock now, 0 not known */
};

/* Takes a free slot for a thread and makes it LIVE. NULL when the table is full (counted).
 * Runs on: the thread itself or any Ruby thread, GVL. Allocates a segment now and then (malloc only). */
struct sdb_slot *sdb_thread_claim(struct sdb_thread_table *t, const struct sdb_thread_birth *birth);
/* LIVE -> DEAD. cpu_ns: the thread's CPU clock, 0 not known. Runs on: hooks, and on 3.1 the scanner. */
void sdb_thread_ended(struct sdb_thread_table *t, struct sdb_slot *slot, uint64_t now_ns,
                      uint64_t cpu_ns);
/* Enters a state, adding the time of the one before to its total. Runs on: hooks, for one thread never
 * two at once (the VM orders a thread's READY before its RESUMED). */
void sdb_thread_enter(struct sdb_slot *slot, uint64_t state, uint64_t now_ns);
/* Marks the slot for the scanner's next tick and wakes it from parking when `wake`. Runs on: hooks. */
void sdb_thread_activate(struct sdb_thread_table *t, struct sdb_slot *slot, bool wake);

/* When the last of the app's threads that are blocked now became so; 0 when one is not. Runs on: any. */
uint64_t sdb_thread_last_blocked(const struct sdb_thread_table *t);

/* Stores a thread's name and lets the scanner see a new one. Runs on: symbolizer, GVL. False when out of memory. */
bool sdb_thread_set_name(struct sdb_thread_table *t, struct sdb_slot *slot, const char *text,
                         size_t bytes);
/* Copies the name into text[128]; its length, or -1 when it has none or is being written. *version changes with
 * the name. Runs on: scanner. */
int sdb_thread_get_name(const struct sdb_slot *slot, char *text, uint64_t *version);

/* False when the hook was in the middle of an update each time: take the old view. Scanner only. */
bool sdb_thread_view(const struct sdb_slot *slot, struct sdb_state_view *out);

static inline struct sdb_slot *
sdb_thread_slot(const struct sdb_thread_table *t, uint32_t index)
{
    struct sdb_slot *segment = (struct sdb_slot *)(uintptr_t)__atomic_load_n(
        &t->live.segments[index / SDB_SEGMENT_SLOTS], __ATOMIC_ACQUIRE); /* pairs with claim */
    return segment ? &segment[index % SDB_SEGMENT_SLOTS] : 0;
}

/* The next slot at or behind *index, whatever its life is; NULL: no more. Moves *index on. */
static inline struct sdb_slot *
sdb_thread_next(const struct sdb_thread_table *t, uint32_t *index)
{
    uint64_t end = sdb_load_acquire(&t->live.segments_used) * SDB_SEGMENT_SLOTS;
    while (*index < end) {
        struct sdb_slot *slot = sdb_thread_slot(t, (*index)++);
        if (slot) return slot;
    }
    return 0;
}

/* Each slot that was ever used: sdb_thread_each (slot, table) { ... } */
#define sdb_thread_each(slot, t)                                                                   \
    for (uint32_t slot##_at = 0; ((slot) = sdb_thread_next((t), &slot##_at));)

/* Makes every slot free; for the start of a recording and for a forked child, when no other thread uses
 * the table. Segments and the scanner's buffers stay. */
void sdb_thread_table_reset(struct sdb_thread_table *t);
/* In a forked child: the scanner's buffers did not come along (core/own_heap.h). */
void sdb_thread_table_forked(struct sdb_thread_table *t);

#endif
