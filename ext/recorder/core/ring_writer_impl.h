/* SPDX-License-Identifier: MIT
 *
 * ring_writer_impl.h - the writer's own fields, for ring_writer.c (chunks, flush, state pages) and
 * ring_records.c (records). Nobody else includes it.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_RING_WRITER_IMPL_H
#define SDB_RING_WRITER_IMPL_H

#include "core/chunk.h"
#include "core/ring_writer.h"
#include "core/stack_tree.h"
#include "core/string_table.h"

/* What the last SAMPLE of a slot said, in the whole us that the file counts in: differences of these
 * add up to the totals, whatever is lost by rounding in each. */
struct sdb_slot_last {
    uint64_t serial; /* 0: no THREAD yet */
    uint64_t at_us;  /* tick of the last SAMPLE, before the first: the birth */
    uint64_t cpu_us, wait_us, blocked_us, gc_us;
    uint64_t chunk_mark; /* chunk seq + 1 of the last SAMPLE; another: node is 0, ELAPSED is due */
    uint32_t node;
};

struct sdb_ring_writer {
    /* immutable after new */
    uint64_t start_ns;

    /* owner: scanner */
    struct sdb_ring_file *file; /* NULL until attach */
    struct sdb_chunk chunk;
    struct sdb_stack_tree tree;
    struct sdb_string_table strings;
    struct sdb_slot_last *slots;
    uint32_t slot_room;
    bool begun; /* chunk 0 begins at the first tick or record */
    uint64_t tick_us;
    uint64_t interval_us;
    uint64_t window_off; /* in the file: from here on the resident window has to move */
    uint64_t state_seq;
    uint64_t sample_records;
    uint64_t records_dropped;
    struct sdb_state_page state_page; /* built here: 4 KiB are much for a thread's stack */
};

/* ring_writer.c: begins the chunk `seq` at the present tick. */
void sdb_ring_writer_begin_chunk(struct sdb_ring_writer *w, uint64_t seq);
/* ring_writer.c: room for one record, NULL when it has to be dropped (counted). */
uint8_t *sdb_ring_writer_room(struct sdb_ring_writer *w, size_t bytes);

#endif
