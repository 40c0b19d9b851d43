/* SPDX-License-Identifier: MIT
 *
 * upkeep.c - see upkeep.h.
 */
#include "scan/upkeep.h"

#include "sdb_atomic.h"
#include "varint.h"
#include "scan/flush.h"
#include "scan/memory_log.h"
#include "scan/names.h"
#include "scan/open_work.h"
#include "scan/states.h"
#include "scan/walk.h"

enum {
    ASK_EVERY_NS = 20000000, /* the symbolizer is woken at most so often, unless much is waiting */
    ASK_AT_YOUNG = 512,
    ASK_AT_RETIRED = 32,
};

static void
ask_symbolizer(struct sdb_scanner *sc)
{
    uint32_t young = sdb_code_table_young_count(sc->codes);
    if (!young && !sc->asks.soon) return;
    bool much = young >= ASK_AT_YOUNG || sc->asks.retired >= ASK_AT_RETIRED;
    if (!much && sc->tick.now_ns - sc->asks.asked_ns < ASK_EVERY_NS) return;
    sc->asks.asked_ns = sc->tick.now_ns;
    sc->asks.retired = 0;
    sc->asks.soon = false;
    sdb_scanner_ask(sc, SDB_ASK_WORK);
}

static void
write_gc_periods(struct sdb_scanner *sc)
{
    struct sdb_gc_period p;
    struct sdb_gc_figures heap;
    sdb_mailbox_gc_figures(sc->mailbox, &heap);
    while (sdb_gc_periods_take(sc->periods, &p)) {
        uint64_t begin = p.begin_ns > sc->start_ns ? p.begin_ns - sc->start_ns : 0;
        const uint64_t fields[] = {p.serial,
                                   p.flags,
                                   begin,
                                   p.ns,
                                   p.count,
                                   heap.heap_live_slots,
                                   heap.malloc_increase_bytes};
        uint8_t bytes[10 * sizeof fields / sizeof *fields], *end = bytes;
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            end = sdb_varint_put(end, fields[i]);
        sdb_ring_writer_sized(sc->writer, SDB_R_GC, bytes, (size_t)(end - bytes));
    }
}

/* Of a forked child: nobody waits for the result, so somebody has to be told. */
static void
open_due_file(struct sdb_scanner *sc)
{
    sc->file_due_ns = 0;
    int err = sdb_flush_open_file(sc);
    if (err != 0) {
        sc->life.file_err = err;
        sdb_store_release(&sc->refused, 1);
        sdb_store_release(&sc->stop, 1); /* what cannot be kept need not be looked at */
    }
    if (err != 0 || sc->file.reason[0]) sdb_scanner_ask(sc, SDB_ASK_TELL);
    if (err == 0) sdb_upkeep_second(sc);
}

void
sdb_upkeep_second(struct sdb_scanner *sc)
{
    sc->second_ns = sc->tick.now_ns;
    sdb_flush_state(sc);
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
    sdb_flush(sc);
    if (sc->has_file) {
        sdb_ring_writer_state(sc->writer, SDB_RING_CLOSED, sc->counters, reason, sc->tick.now_ns,
                              sc->host.realtime_ns());
        uint64_t used_a, used_b;
        sdb_symbol_area_on_file(sc->symbols, &used_a, &used_b);
        sdb_ring_writer_trim(sc->writer, used_a, used_b);
        sdb_ring_file_close(&sc->file);
    }
    sdb_upkeep_abandon(sc);
}

void
sdb_upkeep_parked(struct sdb_scanner *sc)
{
    if (sc->file_due_ns && sc->tick.now_ns >= sc->file_due_ns) open_due_file(sc);
    sdb_names_write(sc);
    sdb_flush(sc);
    sdb_flush_state(sc);
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
        sdb_flush(sc);
        sdb_store_release(&sc->dump_done, asked);
    }
    sdb_flush_publish(sc);
}
