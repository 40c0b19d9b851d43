/* SPDX-License-Identifier: MIT
 *
 * recorder.c - see recorder.h: start, stop and status. Files: recorder/recording.c what a recording is made of;
 * recorder/fork.c the child of a fork.
 */
#include "recorder/recorder_impl.h"

#include <pthread.h>
#include <ruby/debug.h>
#include <ruby/thread.h>
#include <ruby/vm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/safe_read.h"
#include "error.h"
#include "sdb_atomic.h"
#include "vm/gc.h"
#include "vm/gc_events.h"
#include "vm/gvl.h"
#include "spans/allocations.h"
#include "spans/spans.h"
#include "scan/oom_beacon.h"
#include "scan/upkeep.h"
#include "vm/protect.h"
#include "vm/symbolizer.h"

enum {
    STOP_TRIES = 8
}; /* signals that raise may come while it waits; an app's Thread#alive? may always raise */

static struct sdb_recorder rec;

static bool
version_at_least(int major, int minor)
{
    int a = 0, b = 0;
    VALUE version = rb_const_get(rb_cObject, rb_intern("RUBY_VERSION"));
    if (sscanf(StringValueCStr(version), "%d.%d", &a, &b) != 2) return false;
    return a > major || (a == major && b >= minor);
}

/* The job that the scanner asks for; runs inside whatever the app does. */
static void
symbolizer_job(void *unused)
{
    (void)unused;
    if (rec.running) sdb_symbolizer_job(rec.scanner.codes, &rec.threads, &rec.layout);
}

static void
keep_options(const struct sdb_recorder_options *options)
{
    rec.options = *options;
    snprintf(rec.dir, sizeof rec.dir, "%s", options->dir);
    snprintf(rec.tmp, sizeof rec.tmp, "%s", options->tmp);
    size_t text_bytes = options->text_bytes;
    if (text_bytes > sizeof rec.text) { /* whole entries only: half a value would be another one */
        text_bytes = sizeof rec.text;
        while (text_bytes && options->text[text_bytes - 1]) text_bytes--;
    }
    rec.options.text_bytes = text_bytes;
    memcpy(rec.text, options->text, text_bytes);
    rec.own_text_bytes = rec.options.text_bytes;
    rec.parent_ring[0] = '\0';
    sdb_oom_beacon_configure(rec.text, rec.options.text_bytes);
}

void
sdb_recorder_label_children(const char *key_value)
{
    bool whole = key_value && strlen(key_value) < sizeof rec.child_label;
    snprintf(rec.child_label, sizeof rec.child_label, "%s", whole ? key_value : "");
}

/* pthread_atfork */
static void
on_fork_child(void)
{
    sdb_recorder_forked(&rec);
}

static bool stop(VALUE (*end)(VALUE), VALUE *held);
static VALUE end_threads_at_exit(VALUE unused);

static void
stop_at_exit(VALUE unused)
{
    (void)unused;
    VALUE held = Qnil;
    stop(end_threads_at_exit, &held);
    sdb_go_on(held);
}

static void
stop_at_vm_end(ruby_vm_t *unused)
{
    (void)unused;
    /* the end proc has run, unless it was skipped; no GVL work is possible here any more */
    if (!rec.running) return;
    sdb_gvl_enable(false);
    sdb_gc_events_enable(false);
    sdb_scanner_halt(&rec.scanner);
    sdb_scanner_end(&rec.scanner, false);
    rec.running = false;
}

static void
hook_process_once(void)
{
    if (rec.hooked) return;
    rec.hooked = true;
    rb_gc_register_address(&rec.main_thread);
    sdb_gc_install(&rec.threads);
    sdb_symbolizer_prepare(symbolizer_job);
    pthread_atfork(NULL, NULL, on_fork_child);
    rb_set_end_proc(stop_at_exit, Qnil);
    ruby_vm_at_exit(stop_at_vm_end);
}

/* The part of a start that calls Ruby code. */
static VALUE
meet_threads(VALUE unused)
{
    sdb_gvl_seed(&rec.threads);
    sdb_symbolizer_start(rec.scanner.codes, &rec.threads, &rec.layout);
    sdb_symbolizer_begin();
    return unused;
}

static bool
refused(void)
{
    return rec.running && sdb_load_acquire(&rec.scanner.refused);
}

int
sdb_recorder_start(const struct sdb_recorder_options *options, char reason[SDB_REASON_BYTES])
{
    VALUE held = Qnil;
    if (refused()) {
        sdb_recorder_stop(&held); /* what is left of a child that got no file */
        sdb_go_on(held);
    }
    if (rec.running) return SDB_OK;
    if (strlen(options->dir) >= sizeof rec.dir) {
        snprintf(reason, SDB_REASON_BYTES, "the name of the log directory is too long");
        return SDB_ERR_INVALID;
    }
    int err = sdb_layout_prove(&rec.layout, reason);
    if (err) return err;
    keep_options(options);
    rec.stacks_last = version_at_least(3, 3);
    rec.drop_top = options->yjit && !rec.stacks_last;
    if (sdb_safe_read_probe() == SDB_SAFE_READ_NONE && !rec.stacks_last) {
        snprintf(reason, SDB_REASON_BYTES,
                 "this sandbox forbids process_vm_readv and /proc/self/mem, which Ruby before 3.3 "
                 "needs; allow one");
        return SDB_ERR_UNSUPPORTED;
    }
    hook_process_once();
    rec.main_thread = rb_funcall(rb_cThread, rb_intern("main"), 0);
    sdb_thread_table_reset(&rec.threads);
    err = sdb_recorder_make_parts(&rec, sdb_monotonic_ns(), false);
    if (err) {
        snprintf(reason, SDB_REASON_BYTES, "%s", sdb_error_text(err));
        return err;
    }
    struct sdb_scanner *sc = &rec.scanner;
    err = sdb_scanner_launch(sc);
    if (err) {
        const char *text = sdb_error_text(err);
        int number = sc->file.last_errno;
        if (sc->file.reason[0])
            snprintf(reason, SDB_REASON_BYTES, "cannot create a ring: %s", sc->file.reason);
        else if (number)
            snprintf(reason, SDB_REASON_BYTES, "cannot create a ring in %s: %s (%s)", rec.dir, text,
                     strerror(number));
        else snprintf(reason, SDB_REASON_BYTES, "%s", text);
        sdb_recorder_free_parts(&rec);
        return err;
    }
    snprintf(rec.last_path, sizeof rec.last_path, "%s", sc->file.path);
    sdb_gc_set_codes(sc->codes);
    sdb_gvl_install(&rec.threads, &rec.layout, sdb_allocations_turn);
    if (sc->gc_events) sdb_gc_events_install(&rec.threads);
    sdb_gvl_enable(true);
    sdb_gc_events_enable(true);
    rec.running = true;
    rec.forked_silent = false;
    if (sdb_hold(meet_threads, Qnil, &held)) {
        sdb_scanner_go(sc);
        return SDB_OK;
    }
    snprintf(reason, SDB_REASON_BYTES, "%s", sdb_error_text(SDB_ERR_THREAD));
    sdb_recorder_stop(&held);
    sdb_go_on(held);
    return SDB_ERR_THREAD;
}

static void *
halt_without_gvl(void *unused)
{
    (void)unused;
    sdb_scanner_halt(&rec.scanner);
    return NULL;
}

static VALUE
end_threads(VALUE unused)
{
    rb_thread_call_without_gvl(halt_without_gvl, NULL, NULL, NULL);
    sdb_symbolizer_stop();
    return unused;
}

static VALUE
name_the_rest(VALUE unused)
{
    sdb_symbolizer_run_here_for(rec.scanner.codes, &rec.threads, &rec.layout);
    return unused;
}

/* With the GVL: the main thread has ended, and what the others do until the VM ends them is nobody's business of ours. */
static VALUE
end_threads_at_exit(VALUE unused)
{
    sdb_scanner_halt(&rec.scanner);
    if (!sdb_symbolizer_dismiss()) sdb_symbolizer_stop();
    return unused;
}

static bool
stop(VALUE (*end)(VALUE), VALUE *held)
{
    if (!rec.running) return false;
    struct sdb_scanner *sc = &rec.scanner;
    rec.running = false;
    sdb_gvl_enable(false);
    sdb_gc_events_enable(false);
    for (int tries = 0; tries < STOP_TRIES && !sdb_hold(end, Qnil, held); tries++) {}
    sdb_scanner_halt(sc); /* whatever kept coming: nothing of it runs when the tables go */
    sdb_hold(name_the_rest, Qnil, held);
    sdb_scanner_end(sc, true);
    memcpy(rec.last_counters, sc->counters, sizeof rec.last_counters);
    snprintf(rec.last_path, sizeof rec.last_path, "%s", sc->file.path);
    sdb_recorder_free_parts(&rec);
    return true;
}

bool
sdb_recorder_stop(VALUE *held)
{
    return stop(end_threads, held);
}

bool
sdb_recorder_running(void)
{
    return rec.running && !refused();
}

void
sdb_recorder_after_fork(void)
{
    if (!rec.running) return;
    sdb_spans_after_fork();
    sdb_symbolizer_start(rec.scanner.codes, &rec.threads, &rec.layout);
}

static void *
wait_flushed(void *unused)
{
    (void)unused;
    struct sdb_scanner *sc = &rec.scanner;
    uint64_t asked = sdb_add_acq_rel(&sc->dump_asked, 1) + 1, end = sdb_monotonic_ns() + 200000000;
    sdb_scanner_wake(sc);
    while (sdb_load_acquire(&sc->dump_done) < asked && sdb_monotonic_ns() < end) usleep(500);
    return NULL;
}

void
sdb_recorder_flush(void)
{
    if (!sdb_recorder_running()) return;
    rb_thread_call_without_gvl(wait_flushed, NULL, NULL, NULL);
}

void
sdb_recorder_status(struct sdb_recorder_status *out)
{
    const struct sdb_scanner *sc = &rec.scanner;
    memset(out, 0, sizeof *out);
    out->running = rec.running;
    out->exact = sdb_gvl_exact();
    out->forked_silent = rec.forked_silent;
    out->safe_read = sdb_safe_read_way_name();
    out->path = rec.last_path;
    out->log_reason = "";
    out->ring_bytes = rec.options.ring_bytes;
    out->interval_ns = rec.options.interval_ns;
    if (!rec.running) {
        memcpy(out->counters, rec.last_counters, sizeof out->counters);
        return;
    }
    if (refused()) {
        out->running = false;
        out->refused = true;
        out->log_reason = sc->file.reason[0] ? sc->file.reason : sdb_error_text(sc->life.file_err);
    } else if (__atomic_load_n(&sc->has_file, __ATOMIC_ACQUIRE)) {
        out->path = sc->file.path;
        out->log_reason = sc->file.reason;
    }
    for (int i = 0; i < SDB_COUNTER_COUNT; i++)
        out->counters[i] = sdb_load_relaxed(&sc->counters[i]);
    out->parked = out->counters[SDB_C_PARKED] != 0;
    out->effective_interval_ns = out->counters[SDB_C_EFFECTIVE_INTERVAL_NS];
}
