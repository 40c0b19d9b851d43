/* SPDX-License-Identifier: MIT
 *
 * ring_writer.c - the writer's life, its chunks, flush and the state pages; the records are in
 * ring_records.c.
 *
 * Runs on: scanner thread, no GVL
 */
#include "core/ring_writer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/clock.h"
#include "core/own_heap.h"
#include "core/ring_file.h"
#include "core/ring_writer_impl.h"
#include "core/testpoint.h"
#include "crc32c.h"
#include "error.h"
#include "varint.h"

enum {
    TICK_MARGIN_BYTES = 1 << 16, /* a tick begins a new chunk when less is left */
    /* kept on top of a reservation: for records that nobody reserves for */
    RESERVE_MARGIN_BYTES = 1 << 14,
    WINDOW_BYTES = 1 << 18,
    WINDOW_STEP_BYTES = 3 << 16, /* the window moves when this much of it is written */
};

struct sdb_ring_writer *
sdb_ring_writer_new(uint64_t start_ns, uint64_t interval_ns)
{
    struct sdb_ring_writer *w = sdb_own_calloc(1, sizeof *w);

    if (w == NULL) return NULL;
    w->start_ns = start_ns;
    w->interval_us = interval_ns < 1000 ? 1 : interval_ns / 1000;
    sdb_string_table_init(&w->strings);
    if (sdb_chunk_init(&w->chunk) != 0 || sdb_stack_tree_init(&w->tree) != 0) {
        sdb_ring_writer_free(w);
        return NULL;
    }
    return w;
}

void
sdb_ring_writer_free(struct sdb_ring_writer *w)
{
    if (w == NULL) return;
    sdb_chunk_free(&w->chunk);
    sdb_stack_tree_free(&w->tree);
    sdb_string_table_free(&w->strings);
    sdb_own_free(w->slots);
    sdb_own_free(w);
}

void
sdb_ring_writer_attach(struct sdb_ring_writer *w, struct sdb_ring_file *file)
{
    w->file = file;
    w->window_off = 0;
}

uint64_t
sdb_ring_writer_chunk(const struct sdb_ring_writer *w)
{
    return w->chunk.seq;
}

void
sdb_ring_writer_begin_chunk(struct sdb_ring_writer *w, uint64_t seq)
{
    uint8_t *p;

    sdb_chunk_begin(&w->chunk, seq, w->tick_us * 1000);
    sdb_stack_tree_reset(&w->tree);
    sdb_string_table_reset(&w->strings);
    w->begun = true;
    w->window_off = 0;

    p = sdb_chunk_room(&w->chunk, 1 + SDB_VARINT_MAX);
    *p++ = SDB_R_INTERVAL;
    sdb_chunk_commit(&w->chunk, sdb_varint_put(p, w->interval_us));
    sdb_ring_writer_clock(w, sdb_monotonic_ns(), sdb_clock_ns(CLOCK_REALTIME));
}

/* The one that lies behind the present one; where the disk has no room for it, that of the next lap. */
static uint64_t
next_seq(const struct sdb_ring_writer *w)
{
    uint64_t seq = w->chunk.seq + 1, count;

    if (w->file == NULL) return seq;
    count = w->file->identity.chunk_count;
    if (sdb_ring_file_room_for(w->file, seq % count)) return seq;
    return seq + count - seq % count;
}

static void
next_chunk(struct sdb_ring_writer *w)
{
    if (w->file != NULL)
        sdb_chunk_write(&w->chunk, w->file); /* its last try; begin counts what is lost */
    sdb_ring_writer_begin_chunk(w, next_seq(w));
}

uint8_t *
sdb_ring_writer_room(struct sdb_ring_writer *w, size_t bytes)
{
    uint8_t *p;

    if (!w->begun) sdb_ring_writer_begin_chunk(w, 0);
    p = sdb_chunk_room(&w->chunk, bytes);
    if (p == NULL) w->records_dropped++;
    return p;
}

void
sdb_ring_writer_tick(struct sdb_ring_writer *w, uint64_t now_ns)
{
    uint64_t us = now_ns > w->start_ns ? (now_ns - w->start_ns) / 1000 : 0;
    int64_t deviation;
    uint8_t *p;

    if (w->begun && us <= w->tick_us)
        us = w->tick_us + 1; /* two ticks in one us: keep them apart */
    deviation = (int64_t)(us - w->tick_us) - (int64_t)w->interval_us;
    w->tick_us = us;
    if (!w->begun) {
        sdb_ring_writer_begin_chunk(w, 0); /* begins with this tick */
        return;
    }
    if (sdb_chunk_left(&w->chunk) < TICK_MARGIN_BYTES) {
        next_chunk(w);
        return;
    }
    p = sdb_ring_writer_room(w, 1 + SDB_VARINT_MAX);
    if (p == NULL) return;
    if (deviation >= -SDB_TICK_BIAS && deviation < SDB_TICK_BIT - SDB_TICK_BIAS) {
        *p++ = (uint8_t)(SDB_TICK_BIT | (deviation + SDB_TICK_BIAS));
    } else {
        *p++ = SDB_R_TICK;
        p = sdb_zigzag_put(p, deviation);
    }
    sdb_chunk_commit(&w->chunk, p);
}

void
sdb_ring_writer_reserve(struct sdb_ring_writer *w, size_t bytes)
{
    if (!w->begun) sdb_ring_writer_begin_chunk(w, 0);
    if (sdb_chunk_left(&w->chunk) < bytes + RESERVE_MARGIN_BYTES) next_chunk(w);
}

/* Keeps the pages ahead of what is written in memory, in steps. */
static void
move_window(struct sdb_ring_writer *w)
{
    const struct sdb_identity *id = &w->file->identity;
    uint64_t at =
        id->chunks_off + w->chunk.seq % id->chunk_count * SDB_CHUNK_BYTES + w->chunk.written;

    if (w->window_off != 0 && at < w->window_off) return;
    sdb_ring_file_keep_resident(w->file, at, WINDOW_BYTES);
    w->window_off = at + WINDOW_STEP_BYTES;
}

int
sdb_ring_writer_flush(struct sdb_ring_writer *w)
{
    int err;

    sdb_chunk_seal(&w->chunk);
    if (w->file == NULL || !w->begun) return 0;
    err = sdb_chunk_write(&w->chunk, w->file);
    if (err == 0) move_window(w);
    return err;
}

size_t
sdb_ring_writer_pending(const struct sdb_ring_writer *w)
{
    return w->begun ? sdb_chunk_pending(&w->chunk) : 0;
}

size_t
sdb_ring_writer_pending_view(struct sdb_ring_writer *w, const uint8_t **bytes, uint64_t *file_off)
{
    struct sdb_chunk *c = &w->chunk;
    size_t n = sdb_ring_writer_pending(w);

    if (w->file == NULL || n == 0) return 0;
    if (c->used > c->block_off + SDB_BLOCK_HEADER_BYTES) {
        uint32_t open = c->used - c->block_off - SDB_BLOCK_HEADER_BYTES;

        memcpy(c->bytes + c->block_off, &open, sizeof open);
    }
    *bytes = c->bytes + c->written;
    *file_off = w->file->identity.chunks_off +
                c->seq % w->file->identity.chunk_count * SDB_CHUNK_BYTES + c->written;
    return n;
}

int
sdb_ring_writer_state(struct sdb_ring_writer *w, enum sdb_ring_state state,
                      const uint64_t *counters, const char *reason, uint64_t now_ns,
                      uint64_t realtime_ns)
{
    struct sdb_state_page *page = &w->state_page;
    uint64_t seq = w->state_seq + 1;
    int err;

    if (w->file == NULL) return 0;
    memset(page, 0, sizeof *page);
    page->magic = SDB_MAGIC;
    page->seq = seq;
    page->state = state;
    page->at_ns = now_ns > w->start_ns ? now_ns - w->start_ns : 0;
    page->realtime_ns = realtime_ns;
    page->counter_count = SDB_COUNTER_COUNT;
    memcpy(page->counters, counters, SDB_COUNTER_COUNT * sizeof *counters);
    if (reason != NULL) {
        page->reason_bytes = (uint32_t)sdb_utf8_cut(reason, strlen(reason), sizeof page->text);
        memcpy(page->text, reason, page->reason_bytes);
    }
    page->crc = sdb_crc32c(0, page, sizeof *page);
    SDB_TESTPOINT(before_state_write);
    err = sdb_ring_file_write(w->file, seq & 1 ? SDB_STATE_A_OFF : SDB_STATE_B_OFF, page,
                              sizeof *page);
    if (err == 0) w->state_seq = seq; /* else the same page again: the other one is still whole */
    return err;
}

void
sdb_ring_writer_trim(struct sdb_ring_writer *w, uint64_t used_a, uint64_t used_b)
{
    if (w->file == NULL || w->chunk.seq >= w->file->chunks_ready) return;
    sdb_ring_file_trim(
        w->file, w->file->identity.chunks_off + w->chunk.seq * SDB_CHUNK_BYTES + w->chunk.written,
        used_a, used_b);
}

uint64_t
sdb_ring_writer_bytes_written(const struct sdb_ring_writer *w)
{
    return w->chunk.bytes_written;
}

uint64_t
sdb_ring_writer_blocks_lost(const struct sdb_ring_writer *w)
{
    return w->chunk.blocks_lost;
}

uint64_t
sdb_ring_writer_records_dropped(const struct sdb_ring_writer *w)
{
    return w->records_dropped;
}

uint64_t
sdb_ring_writer_sample_records(const struct sdb_ring_writer *w)
{
    return w->sample_records;
}

uint64_t
sdb_ring_writer_memory_bytes(const struct sdb_ring_writer *w)
{
    return sizeof *w + SDB_CHUNK_BYTES + sdb_stack_tree_memory_bytes(&w->tree) +
           sdb_string_table_memory_bytes(&w->strings) + (uint64_t)w->slot_room * sizeof *w->slots;
}

uint64_t
sdb_ring_writer_oldest_chunk(const struct sdb_ring_writer *w)
{
    uint64_t count = w->file == NULL ? 0 : w->file->identity.chunk_count;

    return count == 0 || w->chunk.seq < count ? 0 : w->chunk.seq - count + 1;
}
