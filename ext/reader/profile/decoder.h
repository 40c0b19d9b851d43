/* SPDX-License-Identifier: MIT
 *
 * decoder.h - turns the records of one ring's chunks, in order of seq, into rows of a profile. decoder.c has
 * ticks and nodes, samples.c the samples, events.c the records with a length.
 *
 * Runs on: offline
 */
#ifndef SDB_DECODER_H
#define SDB_DECODER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log/cursor.h"
#include "log/map.h"
#include "log/ring_reader.h"
#include "log/symbols.h"
#include "profile/labels.h"
#include "profile/model.h"

enum { SDB_SLOT_MAX = 16384 };
#define SDB_REL_MAX (1ull << 62)
/* Less than a second's work: no recorder's log comes near, a hostile one is answered with less. */
enum { SDB_WALK_MAX = 1 << 26 };

struct sdb_track {   /* a slot: its thread and that one's last sample */
    uint32_t thread; /* SDB_NONE: free */
    uint32_t node;   /* of this chunk */
    uint32_t state, stack;
    uint64_t serial;
    uint64_t at;        /* tick of the last sample; with seen */
    uint64_t unseen_ns; /* the decoder's then */
    uint64_t ticks;     /* the decoder's then */
    uint64_t chunk;     /* the decoder's when THREAD was last read */
    struct sdb_labels labels;
    bool seen;
    bool fresh; /* no sample in this chunk yet: the next brings ELAPSED */
};

struct sdb_last_times { /* of a thread, from its last sample to its end */
    uint64_t cpu_us, wait_us, blocked_us, gc_us;
};

struct sdb_decoder {
    /* immutable while decoding */
    struct sdb_profile *profile;
    const struct sdb_ring_reader *reader;
    uint32_t ring;
    uint64_t base; /* of the ring on the common line */

    /* of the ring so far */
    struct sdb_symbols symbols;
    struct sdb_map where_frames; /* (where, code) -> frame */
    struct sdb_track *tracks;
    size_t track_count, track_capacity;
    uint64_t now, before; /* this tick and the one before, on the common line */
    uint64_t ticks;
    uint64_t unseen_ns, pending_unseen_ns; /* in gaps; of the gap that the next tick ends */
    uint64_t unseen_walk,
        line_walk;  /* work done so far: frames compared for gaps, line runs read */
    uint64_t chunk; /* ordinal of the chunk being decoded, from 1 */
    uint64_t last_clock, last_counters;
    uint64_t chunk_first;
    bool chunk_whole; /* the chunk before was decoded without damage */
    bool parked;

    /* of the chunk */
    uint64_t interval_us;
    uint32_t *nodes; /* node -> stack */
    size_t node_count, node_capacity;
    uint32_t *strings; /* chunk's string -> profile's */
    size_t string_count, string_capacity;
    bool symbols_tried; /* read again for a code of this chunk */
};

int sdb_decoder_open(struct sdb_decoder *d, struct sdb_profile *profile,
                     const struct sdb_ring_reader *reader, uint32_t ring, uint64_t base);
/* Holds all threads up to the end of the log (`until`, when later), which it notes in the ring's row. */
int sdb_decoder_finish(struct sdb_decoder *d, uint64_t until);
void sdb_decoder_close(struct sdb_decoder *d);

/* Decodes one chunk read into bytes[0, n). 0, SDB_ERR_CORRUPT when it ended by damage (what came before counts),
 * SDB_ERR_NOMEM, SDB_ERR_IO. */
int sdb_decoder_chunk(struct sdb_decoder *d, const uint8_t *bytes, size_t n);

/* For decoder.c: a SAMPLE, of which the first byte was taken. 0, SDB_ERR_CORRUPT, SDB_ERR_NOMEM. */
int sdb_decoder_sample(struct sdb_decoder *d, struct sdb_cursor *c, uint8_t head);
/* The thread's changes of span and tags, brought up to this tick. */
void sdb_decoder_changes(const struct sdb_decoder *d, struct sdb_thread *t);
/* For decoder.c: the record's payload; a record that makes no sense is counted and left. 0 or SDB_ERR_NOMEM. */
int sdb_decoder_event(struct sdb_decoder *d, uint8_t type, struct sdb_cursor c);
/* The thread of the slot goes on with its last sample until `until` (when it has one). */
int sdb_decoder_hold(struct sdb_decoder *d, struct sdb_track *track, uint64_t until);
/* As hold, for a thread that ended then; times: NULL when not known. */
int sdb_decoder_end(struct sdb_decoder *d, struct sdb_track *track, uint64_t until,
                    const struct sdb_last_times *times);

#endif
