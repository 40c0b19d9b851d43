/* SPDX-License-Identifier: MIT
 *
 * flush.c - see flush.h.
 */
#include "scan/flush.h"

#include "sdb_atomic.h"
#include "scan/open_work.h"
#include "scan/walk.h"

int
sdb_flush_open_file(struct sdb_scanner *sc)
{
    int err = sdb_ring_file_create(&sc->file, &sc->file_config);
    if (err) return err;
    sdb_ring_writer_attach(sc->writer, &sc->file);
    sdb_symbol_area_attach(sc->symbols, &sc->file);
    __atomic_store_n(&sc->has_file, true, __ATOMIC_RELEASE);
    return 0;
}

void
sdb_flush(struct sdb_scanner *sc)
{
    sc->flushed_ns = sc->tick.now_ns;
    /* names first: a stack on the file may then be without a name only when it never had one */
    int names = sdb_symbol_area_flush(sc->symbols), records = sdb_ring_writer_flush(sc->writer);
    if (names != 0 || records != 0) {
        sdb_set_counter(sc, SDB_C_WRITE_ERRNO, (uint64_t)sc->file.last_errno);
    }
    sdb_set_counter(sc, SDB_C_LOST_RING,
                    sdb_ring_writer_blocks_lost(sc->writer) +
                        sdb_ring_writer_records_dropped(sc->writer));
}

void
sdb_flush_publish(struct sdb_scanner *sc)
{
    struct sdb_live_table *live = &sc->threads->live;
    const uint8_t *bytes = NULL;
    uint64_t off = 0;
    size_t n = sdb_ring_writer_pending_view(sc->writer, &bytes, &off);
    uint64_t seq = sdb_load_relaxed(&live->pending_seq);
    sdb_store_relaxed(&live->pending_seq, seq + 1);
    sdb_fence_release();
    sdb_store_relaxed(&live->pending, (uint64_t)(uintptr_t)bytes);
    sdb_store_relaxed(&live->pending_bytes, (uint64_t)n);
    sdb_store_relaxed(&live->pending_off, off);
    sdb_store_release(&live->pending_seq, seq + 2);
}

/* What the file tells about this process: figures and whether it is parked. */
void
sdb_flush_state(struct sdb_scanner *sc)
{
    if (pthread_equal(pthread_self(), sc->thread)) sc->cpu_ns = sc->host.own_cpu_ns();
    uint64_t cpu = sc->cpu_ns, realtime = sc->host.realtime_ns();
    sdb_set_counter(sc, SDB_C_CPU_NS, cpu);
    sdb_set_counter(sc, SDB_C_GVL_NS, sdb_load_relaxed(&sc->mailbox->gvl_ns));
    sdb_set_counter(sc, SDB_C_FRAMES_READ, sdb_walker_counters(sc->walker)->frames_read);
    sdb_set_counter(sc, SDB_C_LOST_TRUNCATED, sdb_walker_counters(sc->walker)->truncated);
    sdb_set_counter(sc, SDB_C_LOST_THREADS, sdb_load_relaxed(&sc->threads->refused));
    sdb_set_counter(sc, SDB_C_THREADS_LIVE, sdb_load_relaxed(&sc->threads->live_count));
    sdb_set_counter(sc, SDB_C_SAMPLE_RECORDS, sdb_ring_writer_sample_records(sc->writer));
    sdb_set_counter(sc, SDB_C_BYTES_WRITTEN, sdb_ring_writer_bytes_written(sc->writer));
    sdb_set_counter(sc, SDB_C_CHUNKS, sdb_ring_writer_chunk(sc->writer) + 1);
    sdb_set_counter(sc, SDB_C_ROOM_BYTES, sc->file.chunks_ready * SDB_CHUNK_BYTES);
    sdb_set_counter(sc, SDB_C_RING_SMALL, sc->file.stays_small);
    sdb_set_counter(sc, SDB_C_SYMBOL_BYTES, sdb_symbol_area_used_bytes(sc->symbols));
    sdb_set_counter(sc, SDB_C_LAST_TICK_NS, sc->tick.now_ns - sc->start_ns);
    sdb_set_counter(
        sc, SDB_C_RSS_BYTES,
        sdb_ring_writer_memory_bytes(sc->writer) + sdb_symbol_area_memory_bytes(sc->symbols) +
            sdb_code_table_memory_bytes(sc->codes) + sdb_edge_set_memory_bytes(sc->edges) +
            sdb_walker_memory_bytes(sc->walker) + sdb_load_relaxed(&sc->mailbox->memory_bytes) +
            sdb_open_work_memory_bytes(sc->work));
    if (sc->has_file) {
        sdb_ring_writer_state(sc->writer, SDB_RING_LIVE, sc->counters, NULL, sc->tick.now_ns,
                              realtime);
    }
}
