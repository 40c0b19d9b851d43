/* SPDX-License-Identifier: MIT
 *
 * context.h - what a fiber works for: its open spans and tags, and the times that pass while it runs. One object a
 * fiber that used spans, kept in a fiber-local variable; the slot points to the one of the fiber that runs.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_CONTEXT_H
#define SDB_CONTEXT_H

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>
#include "spans/thread_times.h"

struct sdb_slot;

struct sdb_block {  /* of Ruby code: a span or a tag block that has not ended */
    uint64_t token; /* never reused; a span's id */
    uint64_t generation;
    uint64_t begin_ns;
    struct sdb_times begin;
    VALUE tags_before, set_before, encoded_before; /* what its end restores */
    uint64_t set_token_before;
    VALUE name; /* for its end; nil: as it began */
    VALUE request, trace;
    VALUE late_trace; /* learned after its begin, else nil */
    VALUE added;      /* Hash of tags for its end, nil */
    /* of a span: its begin as an event, for a forked child's log; stays with the place */
    uint8_t *told;
    uint32_t told_bytes, told_room;
    uint32_t status;
    bool is_span;
    bool made_up;  /* its request id is of our making */
    bool silent;   /* not in the log: the queue was full when it began */
    bool returned; /* ends soon, maybe never: see sdb_span_returned */
};

struct sdb_context {
    VALUE self;
    uint64_t ec;           /* of its fiber, as last seen */
    struct sdb_slot *slot; /* of its thread */
    uint64_t serial;       /* of that thread */
    uint64_t generation;   /* recording that it knows of */
    VALUE tags;            /* frozen Hash: all tags in effect; nil none */
    VALUE set;          /* those of tag blocks, which go to the log as the thread's set; nil none */
    VALUE encoded;      /* `set` as a TAGS event; nil none */
    uint64_t set_token; /* of the tag block that made `set`; 0 none */
    VALUE parent;       /* context inherited from, nil */
    uint64_t parent_token; /* inherited are its spans up to this one */
    struct sdb_block *blocks;
    uint32_t depth, capacity;
    /* times: while `on`, those of the thread since `base`, added to `sum` */
    bool on;
    uint64_t off_since_ns;
    struct sdb_times sum, base;
};

/* A recording began (or a child was forked): what is open belongs to another log. forked: it goes on in this one. Runs on:
 * GVL, or the atfork child handler. */
void sdb_contexts_forget(bool forked);
/* True when what was open in that recording goes on in the present one. */
bool sdb_contexts_goes_on(uint64_t generation);
/* Number of the recording; spans of another are not in this log. */
uint64_t sdb_contexts_generation(void);

/* Times of what the context worked for until now_ns. */
struct sdb_times sdb_context_times(const struct sdb_context *c, struct sdb_slot *slot,
                                   uint64_t now_ns);
/* The innermost span that the log knows, own or inherited, 0 none. With owner: the innermost of all, and the context it
 * was begun in. */
uint64_t sdb_context_span(struct sdb_context *c, VALUE *owner);
/* NULL when no open block has it. */
struct sdb_block *sdb_context_block(struct sdb_context *c, uint64_t token);
/* A new innermost block; its tags_before etc. filled, the rest 0 and nil. Raises NoMemoryError. */
struct sdb_block *sdb_context_push(struct sdb_context *c, uint64_t token);
/* Keeps what the log was told of its begin. */
void sdb_context_keep_told(struct sdb_block *b, const uint8_t *payload, size_t bytes);
/* Takes a block away, wherever it stands; restores the tags when it was the innermost. */
void sdb_context_remove(struct sdb_context *c, uint64_t token);
struct sdb_context *sdb_context_of(VALUE value); /* of a context's VALUE */

/* ---- for fiber_switch.c ---- */

enum { SDB_CONTEXT_CHAIN_MAX = 16 }; /* contexts inherited from one another that are followed */

/* Off, with nothing in it. Raises NoMemoryError. */
struct sdb_context *sdb_context_new(void);
/* The innermost of its own spans of this recording that is at or below `upto`, 0 none. silent: also one that the log
 * does not know. */
uint64_t sdb_context_own_span(const struct sdb_context *c, uint64_t upto, bool silent);
/* The one it inherited from, NULL none. */
struct sdb_context *sdb_context_parent(const struct sdb_context *c);
/* From now_ns on the thread, whose times are given, works for it, or no longer. */
void sdb_context_turn_on(struct sdb_context *c, const struct sdb_times *thread, uint64_t now_ns);
void sdb_context_turn_off(struct sdb_context *c, const struct sdb_times *thread, uint64_t now_ns);

#endif
