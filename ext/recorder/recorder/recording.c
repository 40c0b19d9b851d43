/* SPDX-License-Identifier: MIT
 *
 * recorder/recording.c - what a recording is made of: tables, walker, writer, the scanner's settings, and the table that
 * others read.
 */
#include <pthread.h>
#include <string.h>
#include "core/clock.h"
#include "error.h"
#include "vm/gc.h"
#include "vm/gvl.h"
#include "scan/oom_beacon.h"
#include "recorder/recorder_impl.h"
#include "spans/spans.h"

void
sdb_recorder_free_parts(struct sdb_recorder *rec)
{
    struct sdb_scanner *sc = &rec->scanner;
    /* who reads this process's memory when it is killed must find nothing that is gone */
    rec->threads.live.magic = 0;
    rec->threads.live.pending_bytes = 0;
    sdb_gc_set_codes(NULL);
    sdb_gc_unpin_all();
    sdb_walker_free(sc->walker);
    sdb_code_table_free(sc->codes);
    sdb_edge_set_free(sc->edges);
    sdb_ring_writer_free(sc->writer);
    sdb_symbol_area_free(sc->symbols);
    sdb_events_free(sc->events);
    sc->walker = NULL;
    sc->codes = NULL;
    sc->edges = NULL;
    sc->writer = NULL;
    sc->symbols = NULL;
    sc->events = NULL;
}

int
sdb_recorder_make_parts(struct sdb_recorder *rec, uint64_t now_ns, bool forked)
{
    struct sdb_scanner *sc = &rec->scanner;
    memset(sc, 0, sizeof *sc);
    pthread_mutex_init(&sc->tick_lock, NULL);
    sc->threads = &rec->threads;
    sc->codes = sdb_code_table_new();
    sc->edges = sdb_edge_set_new();
    sc->writer = sdb_ring_writer_new(now_ns, rec->options.interval_ns);
    sc->symbols = sdb_symbol_area_new();
    sc->events = sdb_events_new();
    struct sdb_walker_config config = {
        .layout = rec->layout,
        .stacks_last = rec->stacks_last,
        .drop_top = rec->drop_top,
        .main_thread = (uint64_t)rec->main_thread,
        .codes = sc->codes,
        .edges = sc->edges,
        .gc_epoch = sdb_gc_epoch(),
        .during_gc = rb_during_gc,
    };
    sc->walker = sc->codes && sc->edges ? sdb_walker_new(&config) : NULL;
    if (!sc->walker || !sc->writer || !sc->symbols || !sc->events) {
        sdb_recorder_free_parts(rec);
        return SDB_ERR_NOMEM;
    }
    sdb_spans_recording_begins(forked);
    sc->exact = sdb_gvl_exact();
    sc->gc_events = rec->stacks_last; /* 3.3+, see gc.h */
    sc->during_gc = rb_during_gc;
    sc->request_symbolizer = sdb_recorder_request_symbolizer;
    sc->every_second = sdb_oom_beacon_second;
    sc->every_second_data = sc;
    sdb_oom_beacon_reset();
    sc->start_ns = now_ns;
    sc->chunk = UINT64_MAX;
    sc->file_config = (struct sdb_ring_config){
        .dir = rec->dir,
        .ring_bytes = rec->options.ring_bytes,
        .interval_ns = rec->options.interval_ns,
        .flags = (sc->exact ? SDB_FLAG_STATES_EXACT : 0) | (rec->options.yjit ? SDB_FLAG_YJIT : 0),
        .text = rec->text,
        .text_bytes = rec->options.text_bytes,
        .keep_files = rec->options.keep_files,
        .start_monotonic_ns = now_ns,
        .start_realtime_ns = sdb_clock_ns(CLOCK_REALTIME),
    };
    sdb_pacing_init(&sc->pacing, rec->options.interval_ns, rec->options.max_cpu_ppm, now_ns);
    sdb_set_counter(sc, SDB_C_EFFECTIVE_INTERVAL_NS, rec->options.interval_ns);
    sdb_set_counter(sc, SDB_C_MAX_CPU_PPM, rec->options.max_cpu_ppm);

    struct sdb_live_table *live = &rec->threads.live;
    live->magic = SDB_LIVE_MAGIC;
    live->version = SDB_LIVE_VERSION;
    live->slot_bytes = sizeof(struct sdb_slot);
    live->segment_slots = SDB_SEGMENT_SLOTS;
    live->thread_ec = rec->layout.thread_ec;
    live->ec_vm_stack = rec->layout.ec_vm_stack;
    live->ec_vm_stack_size = rec->layout.ec_vm_stack_size;
    live->ec_cfp = rec->layout.ec_cfp;
    live->cfp_bytes = rec->layout.cfp_bytes;
    live->cfp_pc = rec->layout.cfp_pc;
    live->cfp_iseq = rec->layout.cfp_iseq;
    live->cfp_ep = rec->layout.cfp_ep;
    live->counters = (uint64_t)(uintptr_t)sc->counters;
    return 0;
}
