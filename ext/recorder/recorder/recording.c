/* SPDX-License-Identifier: MIT
 *
 * recorder/recording.c - what a recording is made of: the scanner with its parts, given what it may ask of the VM.
 */
#include "core/clock.h"
#include "recorder/recorder_impl.h"
#include "scan/oom_beacon.h"
#include "spans/spans.h"
#include "vm/gc.h"
#include "vm/gc_events.h"
#include "vm/gvl.h"
#include "vm/symbolizer.h"

void
sdb_recorder_free_parts(struct sdb_recorder *rec)
{
    sdb_gc_set_codes(NULL);
    sdb_gc_unpin_all();
    sdb_scanner_free(&rec->scanner);
}

int
sdb_recorder_make_parts(struct sdb_recorder *rec, uint64_t now_ns, bool forked)
{
    struct sdb_scanner *sc = &rec->scanner;
    bool exact = sdb_gvl_exact();
    struct sdb_scanner_config config = {
        .threads = &rec->threads,
        .mailbox = sdb_symbolizer_mailbox(),
        .periods = sdb_gc_periods(),
        .gc_epoch = sdb_gc_epoch(),
        .host = sdb_real_host,
        .layout = rec->layout,
        .file =
            {
                .dir = rec->dir,
                /* a child may have become another user, for whom nobody named a directory */
                .tmp = forked || !rec->options.dir_named ? rec->tmp : NULL,
                .ring_bytes = rec->options.ring_bytes,
                .interval_ns = rec->options.interval_ns,
                .flags =
                    (exact ? SDB_FLAG_STATES_EXACT : 0) | (rec->options.yjit ? SDB_FLAG_YJIT : 0),
                .text = rec->text,
                .text_bytes = rec->options.text_bytes,
                .keep_files = rec->options.keep_files,
                .start_monotonic_ns = now_ns,
                .start_realtime_ns = sdb_clock_ns(CLOCK_REALTIME),
            },
        .max_cpu_ppm = rec->options.max_cpu_ppm,
        .main_thread = (uint64_t)rec->main_thread,
        .exact = exact,
        .gc_events = rec->stacks_last, /* 3.3+, see gc.h */
        .stacks_last = rec->stacks_last,
        .drop_top = rec->drop_top,
    };
    config.host.during_gc = rb_during_gc;
    config.host.request_symbolizer = sdb_symbolizer_come;
    int err = sdb_scanner_init(sc, &config);
    if (err) {
        sdb_recorder_free_parts(rec);
        return err;
    }
    sdb_spans_recording_begins(forked);
    sdb_mailbox_figures_begin(config.mailbox);
    sc->every_second = sdb_oom_beacon_second;
    sc->every_second_data = sc;
    sdb_oom_beacon_reset();
    return 0;
}
