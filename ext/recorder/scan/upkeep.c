/* SPDX-License-Identifier: MIT
 *
 * upkeep.c - see upkeep.h.
 */
#include "scan/upkeep.h"

#include "sdb_atomic.h"
#include "varint.h"
#include "scan/memory_log.h"
#include "scan/names.h"
#include "scan/open_work.h"
#include "scan/states.h"
#include "scan/walk.h"

enum {
    ASK_EVERY_NS = 20000000, /* the symbolizer is woken at most so often, unless much is waiting */
    ASK_AT_YOUNG = 512,
};

static void
ask_symbolizer(struct sdb_scanner *sc)
{
    uint32_t young = sdb_code_table_young_count(sc->codes);
    if (!young && !sc->asks.soon) return;
    if (young < ASK_AT_YOUNG && sc->tick.now_ns - sc->asks.asked_ns < ASK_EVERY_NS) return;
    sc->asks.asked_ns = sc->tick.now_ns;
    sc->asks.soon = false;
    sdb_scanner_ask(sc, SDB_ASK_WORK);
}

static void
write_gc_periods(struct sdb_scanner *sc)
{
    struct sdb_gc_period p;
    while (sdb_gc_periods_take(sc->periods, &p)) {
        uint64_t begin = p.begin_ns > sc->start_ns ? p.begin_ns - sc->start_ns : 0;
        /* serial, phase (not told apart), begin, duration, and no heap figures: nothing here may ask the VM */
        const uint64_t fields[] = {p.serial, 0, begin, p.ns, 0, 0, 0};
        uint8_t bytes[10 * sizeof fields / sizeof *fields], *end = bytes;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            end = sdb_varint_put(end, fields[i]);
        sdb_ring_writer_sized(sc->writer, SDB_R_GC, bytes, (size_t)(end - bytes));
    }
}

int
sdb_upkeep_open_file(struct sdb_scanner *sc)
{
    int err = sdb_ring_file_create(&sc->file, &sc->file_config);
    if (err) return err;
    sdb_ring_writer_attach(sc->writer, &sc->file);
    sdb_symbol_area_attach(sc->symbols, &sc->file);
    __atomic_store_n(&sc->has_file, true, __ATOMIC_RELEASE);
    return 0;
}

static void
open_due_file(struct sdb_scanner *sc)
{
    sc->file_due_ns = 0;
    if (sdb_upkeep_open_file(sc) == 0) sdb_upkeep_second(sc);
}

void
sdb_upkeep_flush(struct sdb_scanner *sc)
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

static void
publish_pending(struct sdb_scanner *sc)
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
sdb_upkeep_state(struct sdb_scanner *sc)
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

void
sdb_upkeep_second(struct sdb_scanner *sc)
{
    sc->second_ns = sc->tick.now_ns;
    sdb_upkeep_state(sc);
    sdb_names_drop_invalid(sc);
    sc->states->second(sc);
    struct sdb_pacing_use use = {.cpu_ns = sc->cpu_ns,
                                 .displaced = sc->counters[SDB_C_DISPLACED_TICKS],
                                 .worked_ns = sc->worked_ns};
    if (sdb_pacing_govern(&sc->pacing, &use, sc->tick.now_ns)) {
        sdb_ring_writer_interval(sc->writer, sc->pacing.interval_ns);
    }
    sdb_set_counter(sc, SDB_C_EFFECTIVE_INTERVAL_NS, sc->pacing.interval_ns);

    uint8_t bytes[10 * (SDB_COUNTER_COUNT + 1)], *end = sdb_varint_put(bytes, SDB_COUNTER_COUNT);
    for (int i = 0; i < SDB_COUNTER_COUNT; i++) end = sdb_varint_put(end, sc->counters[i]);
    sdb_ring_writer_sized(sc->writer, SDB_R_COUNTERS, bytes, (size_t)(end - bytes));
    sdb_ring_writer_clock(sc->writer, sc->host.monotonic_ns(), sc->host.realtime_ns());
    /* threads get names after they began, and GC.stat's figures grow old; nobody pays for it when nothing runs */
    if (sc->tick.idle == 0) sc->asks.soon = true;
    if (sc->every_second) sc->every_second(sc->every_second_data);
}

void
sdb_upkeep_abandon(struct sdb_scanner *sc)
{
    if (sc->has_file) sdb_ring_file_abandon(&sc->file);
    __atomic_store_n(&sc->has_file, false, __ATOMIC_RELEASE);
    sdb_memory_probe_close(&sc->memory.probe);
}

void
sdb_upkeep_close(struct sdb_scanner *sc, const char *reason)
{
    sc->tick.now_ns = sc->host.monotonic_ns();
    sdb_work_drain_all(sc);
    sdb_names_write(sc);
    if (!sc->has_file && sc->file_due_ns) open_due_file(sc);
    sdb_upkeep_second(sc);
    sdb_upkeep_flush(sc);
    if (sc->has_file) {
        sdb_ring_writer_state(sc->writer, SDB_RING_CLOSED, sc->counters, reason, sc->tick.now_ns,
                              sc->host.realtime_ns());
        sdb_ring_file_close(&sc->file);
    }
    sdb_upkeep_abandon(sc);
}

void
sdb_upkeep_parked(struct sdb_scanner *sc)
{
    if (sc->file_due_ns && sc->tick.now_ns >= sc->file_due_ns) open_due_file(sc);
    sdb_names_write(sc);
    sdb_upkeep_flush(sc);
    sdb_upkeep_state(sc);
}

void
sdb_upkeep_tick(struct sdb_scanner *sc)
{
    write_gc_periods(sc);
    sdb_work_tick(sc);
    sdb_names_write(sc);
    sdb_names_age(sc);
    sdb_memory_log(sc);
    ask_symbolizer(sc);
    if (sc->file_due_ns && sc->tick.now_ns >= sc->file_due_ns) open_due_file(sc);
    if (sc->tick.now_ns - sc->second_ns >= 1000000000ull) sdb_upkeep_second(sc);
    uint64_t asked = sdb_load_acquire(&sc->dump_asked);
    if (sc->memory.short_of || asked != sc->dump_done ||
        sc->tick.now_ns + sc->pacing.interval_ns > sc->flushed_ns + SDB_FLUSH_NS) {
        sdb_upkeep_flush(sc);
        sdb_store_release(&sc->dump_done, asked);
    }
    publish_pending(sc);
}
