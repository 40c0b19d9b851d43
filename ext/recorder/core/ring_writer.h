/* SPDX-License-Identifier: MIT
 *
 * ring_writer.h - turns ticks, samples and events into blocks of the active chunk (symbols: symbol_area.h). Single
 * writer: everything here runs on the scanner thread. Knows neither Ruby nor threads.
 *
 * A writer may exist before its file does (file == NULL): records collect in the private chunk memory
 * and go out at the first flush after sdb_ring_writer_attach; only when the first chunk is full before
 * that, they are dropped. So a forked child that execs at once never makes a file.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_RING_WRITER_H
#define SDB_RING_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ring_format.h"

struct sdb_ring_file;
struct sdb_ring_writer;

struct sdb_sample {
    uint32_t slot;
    uint32_t node;  /* of this chunk; 0 is the empty stack */
    uint32_t state; /* enum sdb_thread_state */
    /* SDB_MORE_TORN_TOP | _TRUNCATED | _NO_STACK; GC and AGE are set by the writer */
    uint32_t more;
    /* totals since birth_ns of the slot's THREAD record (its serial's first one); the writer keeps the last and rounds
     * so that no error adds up */
    uint64_t cpu_ns;
    uint64_t wait_ns;
    uint64_t blocked_ns;
    uint64_t gc_ns;
    uint64_t age_ns; /* of the present state; written when has_age */
    bool has_age;
};

struct sdb_thread_record {
    uint32_t slot;
    uint32_t tid;
    uint32_t flags; /* SDB_THREAD_* */
    uint64_t serial;
    uint64_t birth_ns; /* monotonic */
    const char *name;  /* NULL none */
    size_t name_bytes;
};

/* start_ns: CLOCK_MONOTONIC, zero of rel times. interval_ns: nominal. NULL when out of memory. */
struct sdb_ring_writer *sdb_ring_writer_new(uint64_t start_ns, uint64_t interval_ns);
void sdb_ring_writer_free(struct sdb_ring_writer *w); /* accepts NULL; does not close the file */
void sdb_ring_writer_attach(struct sdb_ring_writer *w,
                            struct sdb_ring_file *file); /* borrowed until free */

/* Seq of the active chunk. It changes only inside _tick and _reserve; then all node ids and per-slot state
 * of the old chunk are void and the caller repeats THREAD, open SPAN_BEGIN and one SAMPLE per live thread
 * (the writer itself writes INTERVAL and CLOCK). */
uint64_t sdb_ring_writer_chunk(const struct sdb_ring_writer *w);

/* Starts a tick at now_ns (monotonic, > the one before). Begins a new chunk first when the old has less
 * than 64 KiB left. */
void sdb_ring_writer_tick(struct sdb_ring_writer *w, uint64_t now_ns);

/* Makes sure `bytes` (< 512 KiB) more fit in the active chunk, else begins a new one at the same tick. Call before writing one thread's
 * nodes and sample; 16 bytes a node and 64 a sample are enough. */
void sdb_ring_writer_reserve(struct sdb_ring_writer *w, size_t bytes);

/* Node of (parent, code, where) in this chunk; written when new. *is_new (may be NULL) tells. */
uint32_t sdb_ring_writer_node(struct sdb_ring_writer *w, uint32_t parent, uint32_t code,
                              uint64_t where, bool *is_new);
/* As above but only looks: 0 when absent (and parent/code/where is not the root). */
uint32_t sdb_ring_writer_find_node(struct sdb_ring_writer *w, uint32_t parent, uint32_t code,
                                   uint64_t where);

void sdb_ring_writer_sample(struct sdb_ring_writer *w, const struct sdb_sample *s);
void sdb_ring_writer_thread(struct sdb_ring_writer *w, const struct sdb_thread_record *t);
/* totals: as in a sample, up to end_ns; only its times count. NULL: not known. */
void sdb_ring_writer_thread_end(struct sdb_ring_writer *w, uint32_t slot, uint64_t serial,
                                uint64_t end_ns, const struct sdb_sample *totals);
/* _park: when going to park. _gap: before the tick that ends it. */
void sdb_ring_writer_park(struct sdb_ring_writer *w);
void sdb_ring_writer_gap(struct sdb_ring_writer *w, uint64_t gap_ns, enum sdb_gap reason);
void sdb_ring_writer_interval(struct sdb_ring_writer *w, uint64_t interval_ns);
void sdb_ring_writer_clock(struct sdb_ring_writer *w, uint64_t monotonic_ns, uint64_t realtime_ns);

/* Any sized record whose payload the caller encoded (GC, MEMORY, COUNTERS, spans, tags, marks ...).
 * bytes < SDB_BLOCK_MAX_BYTES - 16; a longer one is dropped and counted as lost. */
void sdb_ring_writer_sized(struct sdb_ring_writer *w, enum sdb_record type, const void *payload,
                           size_t bytes);
/* Chunk-local id of a string, written when new. Strings over 1024 bytes are cut at a UTF-8 boundary. */
uint32_t sdb_ring_writer_string(struct sdb_ring_writer *w, const char *s, size_t bytes);

/* Seals the pending block and writes what is not on the file yet. Returns 0 or a negative error. The bytes of
 * a failed write stay and go out with a later flush; when 64 KiB have come together, or the chunk
 * ends, they are given up and counted (_blocks_lost), records are dropped (_records_dropped) and the next
 * tick begins a new chunk. Without a file: 0, nothing is written. */
int sdb_ring_writer_flush(struct sdb_ring_writer *w);
/* Bytes collected and not yet on the file. */
size_t sdb_ring_writer_pending(const struct sdb_ring_writer *w);
/* Where those bytes lie, as they would lie in the file: *bytes (borrowed; valid until the next call that
 * writes a record, ticks or flushes) belong at *file_off. Returns their number, 0 without a file or
 * without pending bytes. They begin with the chunk's header when that is not on the file yet (file_off is
 * then the chunk's start), else with a block. The last block is open: its header holds the length so far and
 * crc 0, and a copier computes the crc (FORMAT.md, blocks) to make it a whole block. For the OOM hook: the
 * scanner publishes the three at the end of each tick and after each flush (live_table.h). */
size_t sdb_ring_writer_pending_view(struct sdb_ring_writer *w, const uint8_t **bytes,
                                    uint64_t *file_off);
/* Writes a state page (alternating A/B). counters: SDB_COUNTER_COUNT values; reason may be NULL. */
int sdb_ring_writer_state(struct sdb_ring_writer *w, enum sdb_ring_state state,
                          const uint64_t *counters, const char *reason, uint64_t now_ns,
                          uint64_t realtime_ns);

/* Before the file is closed: gives back the room behind the last chunk, when the ring never went round. used_a, used_b:
 * bytes of the symbol areas. */
void sdb_ring_writer_trim(struct sdb_ring_writer *w, uint64_t used_a, uint64_t used_b);

uint64_t sdb_ring_writer_bytes_written(const struct sdb_ring_writer *w);
uint64_t sdb_ring_writer_blocks_lost(const struct sdb_ring_writer *w);
uint64_t
sdb_ring_writer_records_dropped(const struct sdb_ring_writer *w); /* no room, no memory, too long */
uint64_t sdb_ring_writer_sample_records(const struct sdb_ring_writer *w);
uint64_t sdb_ring_writer_memory_bytes(const struct sdb_ring_writer *w);
/* Oldest chunk seq that is still whole on the file, 0 when none was overwritten. */
uint64_t sdb_ring_writer_oldest_chunk(const struct sdb_ring_writer *w);

#endif
