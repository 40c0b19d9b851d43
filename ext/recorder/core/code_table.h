/* SPDX-License-Identifier: MIT
 *
 * code_table.h - every code the scanner has met: (iseq, ment) -> entry, its id and its symbol, and the two
 * queues between scanner and symbolizer: `young` (met, not yet named; GC marks what lies in it) and
 * `evicted` (dropped, to be unpinned and freed). Holds addresses as numbers and never follows them.
 *
 * Actors: scanner (finds, adds, publishes, evicts), symbolizer (takes from young, names; takes evicted),
 * GC (reads [young_head, young_tail) for marking). One writer per index; see scan/PROTOCOL.md.
 */
#ifndef SDB_CODE_TABLE_H
#define SDB_CODE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/symbol_area.h"

enum {
    SDB_CODE_BMETHOD = 1,   /* low bit of a ment key: the frame is the define_method body itself */
    SDB_CODE_MAX = 1 << 16, /* live entries; beyond, the least recently used half is evicted */
    SDB_YOUNG_COUNT = 1 << 14,
    SDB_EVICTED_COUNT = 1 << 13,
    /* so many codes can have a pin at once: those in the table and those evicted */
    SDB_PIN_MAX = 1 << 17,
};

/* A symbol with where its pins are, so that dropping it unpins. Owned by the symbolizer once evicted. */
struct sdb_named {
    struct sdb_symbol symbol;
    uint32_t pin; /* index in the pin holder of vm/gc.c */
    uint32_t memory_bytes;
};

/* where its name is in the ring */
enum sdb_code_in_area {
    SDB_CODE_UNWRITTEN = 0,
    SDB_CODE_WRITTEN,  /* in the active symbol area */
    SDB_CODE_DUE,      /* in the area that was active before: to be written again */
    SDB_CODE_LEFT_OUT, /* nowhere: it did not fit */
};

struct sdb_code {
    uint64_t iseq, ment; /* key; 0 none. ment carries SDB_CODE_BMETHOD */
    uint64_t stamp;      /* tick of the last use. owner: scanner */
    uint64_t born;       /* tick at which it got its name. owner: scanner */
    uint64_t named; /* shared: struct sdb_named *, stored by the symbolizer (release), 0 before */
    uint32_t id;    /* code id in the ring; never reused. owner: scanner */
    enum sdb_code_in_area in_area; /* owner: scanner */
};

/* what the symbolizer needs of one code, copied so that it reads no entry field */
struct sdb_young {
    uint64_t iseq, ment;
    uint64_t pc; /* one that was seen: proves that the address is still this iseq */
    uint64_t entry;
};

struct sdb_code_table;

struct sdb_code_table *sdb_code_table_new(void); /* NULL when out of memory */
void sdb_code_table_free(struct sdb_code_table *t);

/* ---- scanner ---- */

/* Entry index (> 0) of a code, 0 when not met. */
uint32_t sdb_code_table_find(const struct sdb_code_table *t, uint64_t iseq, uint64_t ment);
/* Adds a code whose key is not in the table, not yet visible to the symbolizer but already to GC.
 * Returns the entry, or 0 when there is no room now (young full or out of memory). */
uint32_t sdb_code_table_add(struct sdb_code_table *t, uint64_t iseq, uint64_t ment, uint64_t pc);
/* Makes all added codes visible to the symbolizer. Pairs with _young_peek. */
void sdb_code_table_publish(struct sdb_code_table *t);
/* Forgets all codes added since the last publish. */
void sdb_code_table_retract(struct sdb_code_table *t);
bool sdb_code_table_has_added(const struct sdb_code_table *t);
/* Borrowed until the entry is evicted. */
struct sdb_code *sdb_code_table_entry(const struct sdb_code_table *t, uint32_t entry);
/* Next entry that the symbolizer has named since the last call, 0 none. */
uint32_t sdb_code_table_next_named(struct sdb_code_table *t);
/* Evicts the less recently used half of the written entries, but none whose stamp is >= protect (those on a
 * stack now). Returns how many went. O(entries log entries). */
size_t sdb_code_table_evict(struct sdb_code_table *t, uint64_t protect);
struct sdb_code_limits { /* ticks */
    uint64_t least, most;
};
/* Evicts the written entries that were not used for twice as long as they were in use before, but for `least` ticks at
 * least, and those not used for `most`. Returns how many went. O(entries). */
size_t sdb_code_table_evict_unused(struct sdb_code_table *t, uint64_t tick,
                                   const struct sdb_code_limits *limits);
/* True when there is one. */
bool sdb_code_table_has_unused(const struct sdb_code_table *t, uint64_t tick,
                               const struct sdb_code_limits *limits);
/* False when nothing lies there any more: it was evicted. */
bool sdb_code_table_is_live(const struct sdb_code_table *t, uint32_t entry);
/* Evicts one named entry that no stack refers to. False when the queue is full: try again later. */
bool sdb_code_table_drop(struct sdb_code_table *t, uint32_t entry);
/* Visits all live named entries. */
void sdb_code_table_each_named(struct sdb_code_table *t, void (*visit)(struct sdb_code *, void *),
                               void *data);
uint32_t sdb_code_table_count(const struct sdb_code_table *t);
uint64_t sdb_code_table_memory_bytes(const struct sdb_code_table *t);

/* ---- symbolizer (GVL) ---- */

/* Looks at the oldest unnamed code; false when there is none. Stays marked until _young_named. */
bool sdb_code_table_young_peek(struct sdb_code_table *t, struct sdb_young *out);
/* Stores the name of the code last peeked and takes it out of young. named must already be pinned. */
void sdb_code_table_young_named(struct sdb_code_table *t, struct sdb_named *named);
/* Next evicted symbol, NULL none: unpin and free it. */
struct sdb_named *sdb_code_table_take_evicted(struct sdb_code_table *t);
/* Its pin is about to be used for another code. */
void sdb_code_table_pin_freed(struct sdb_code_table *t, uint32_t pin);

/* ---- any thread ---- */

uint32_t sdb_code_table_young_count(const struct sdb_code_table *t);

/* ---- GC: no alloc, no raise ---- */

/* True when the code of the pin was evicted: nobody needs it any more, although the symbolizer did not come to it yet. */
bool sdb_code_table_pin_is_idle(const struct sdb_code_table *t, uint32_t pin);
/* Calls mark(address) for every address in young, published or not. */
void sdb_code_table_mark(const struct sdb_code_table *t, void (*mark)(uint64_t));

#endif
