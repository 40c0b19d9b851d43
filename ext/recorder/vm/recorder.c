/* SPDX-License-Identifier: MIT
 *
 * recorder.c - see recorder.h.
 */
#include "vm/recorder.h"

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
#include "vm/gvl.h"
#include "vm/spans.h"
#include "vm/oom_upkeep.h"
#include "vm/symbolizer.h"

enum { TEXT_BYTES = 8192 };

static struct sdb_recorder {
    /* immutable while running */
    struct sdb_layout layout;
    struct sdb_recorder_options options;
    char dir[SDB_PATH_MAX];
    char text[TEXT_BYTES];
    size_t own_text_bytes; /* of text: without what compose_child_text appends */
    char parent_ring[SDB_PATH_MAX];
    char child_label[256]; /* guarded by the GVL; "key=value" */
    bool drop_top, stacks_last;
    VALUE main_thread;
    /* guarded by the GVL */
    bool running, hooked, forked_silent;
    char last_path[SDB_PATH_MAX];
    uint64_t last_counters[SDB_COUNTER_COUNT];
    /* shared */
    struct sdb_thread_table threads;
    struct sdb_scanner scanner;
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    rb_postponed_job_handle_t symbolizer_job;
#endif
} rec;

static bool
version_at_least(int major, int minor)
{
    int a = 0, b = 0;
    VALUE version = rb_const_get(rb_cObject, rb_intern("RUBY_VERSION"));
    if (sscanf(StringValueCStr(version), "%d.%d", &a, &b) != 2) return false;
    return a > major || (a == major && b >= minor);
}

static void
free_parts(struct sdb_scanner *sc)
{
    /* who reads this process's memory when it is killed must find nothing that is gone */
    rec.threads.live.magic = 0;
    rec.threads.live.pending_bytes = 0;
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

static void
start_symbolizer(void *unused)
{
    (void)unused;
    if (!rec.running) return;
    sdb_symbolizer_start(rec.scanner.codes, &rec.threads, &rec.layout);
    sdb_store_release(&rec.scanner.needs_symbolizer, 0);
}

/* Runs on: scanner of a forked child. Only asks: the job runs on a Ruby thread. Before 3.3 a job queued from here
 * can meet a half-written slot (ruby bug 19991), so Process._fork does it there (lib/sdb/fork.rb). */
static void
request_symbolizer(void)
{
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    rb_postponed_job_trigger(rec.symbolizer_job);
#endif
}

/* All parts anew, in rec.scanner. 0 or SDB_ERR_NOMEM. Also used in a forked child: calls nothing of the VM but the
 * marking hooks of gc.c. */
static int
make_parts(uint64_t now_ns)
{
    struct sdb_scanner *sc = &rec.scanner;
    memset(sc, 0, sizeof *sc);
    pthread_mutex_init(&sc->tick_lock, NULL);
    sc->threads = &rec.threads;
    sc->codes = sdb_code_table_new();
    sc->edges = sdb_edge_set_new();
    sc->writer = sdb_ring_writer_new(now_ns, rec.options.interval_ns);
    sc->symbols = sdb_symbol_area_new();
    sc->events = sdb_events_new();
    struct sdb_walker_config config = {
        .layout = rec.layout,
        .stacks_last = rec.stacks_last,
        .drop_top = rec.drop_top,
        .main_thread = (uint64_t)rec.main_thread,
        .codes = sc->codes,
        .edges = sc->edges,
        .gc_epoch = sdb_gc_epoch(),
        .during_gc = rb_during_gc,
    };
    sc->walker = sc->codes && sc->edges ? sdb_walker_new(&config) : NULL;
    if (!sc->walker || !sc->writer || !sc->symbols || !sc->events) {
        free_parts(sc);
        return SDB_ERR_NOMEM;
    }
    sdb_spans_recording_begins();
    sc->exact = sdb_gvl_exact();
    sc->gc_events = rec.stacks_last; /* 3.3+, see gc.h */
    sc->during_gc = rb_during_gc;
    sc->start_symbolizer = request_symbolizer;
    sc->every_second = sdb_oom_upkeep_second;
    sc->every_second_data = sc;
    sdb_oom_upkeep_reset();
    sc->start_ns = now_ns;
    sc->chunk = UINT64_MAX;
    sc->file_config = (struct sdb_ring_config){
        .dir = rec.dir,
        .ring_bytes = rec.options.ring_bytes,
        .interval_ns = rec.options.interval_ns,
        .flags = (sc->exact ? SDB_FLAG_STATES_EXACT : 0) | (rec.options.yjit ? SDB_FLAG_YJIT : 0),
        .text = rec.text,
        .text_bytes = rec.options.text_bytes,
        .keep_files = rec.options.keep_files,
        .start_monotonic_ns = now_ns,
        .start_realtime_ns = sdb_clock_ns(CLOCK_REALTIME),
    };
    sdb_pacing_init(&sc->pacing, rec.options.interval_ns, rec.options.max_cpu_ppm, now_ns);
    sdb_set_counter(sc, SDB_C_EFFECTIVE_INTERVAL_NS, rec.options.interval_ns);
    sdb_set_counter(sc, SDB_C_MAX_CPU_PPM, rec.options.max_cpu_ppm);

    struct sdb_live_table *live = &rec.threads.live;
    live->magic = SDB_LIVE_MAGIC;
    live->version = SDB_LIVE_VERSION;
    live->slot_bytes = sizeof(struct sdb_slot);
    live->segment_slots = SDB_SEGMENT_SLOTS;
    live->thread_ec = rec.layout.thread_ec;
    live->ec_vm_stack = rec.layout.ec_vm_stack;
    live->ec_vm_stack_size = rec.layout.ec_vm_stack_size;
    live->ec_cfp = rec.layout.ec_cfp;
    live->cfp_bytes = rec.layout.cfp_bytes;
    live->cfp_pc = rec.layout.cfp_pc;
    live->cfp_iseq = rec.layout.cfp_iseq;
    live->cfp_ep = rec.layout.cfp_ep;
    live->counters = (uint64_t)(uintptr_t)sc->counters;
    return 0;
}

static void
keep_options(const struct sdb_recorder_options *options)
{
    rec.options = *options;
    snprintf(rec.dir, sizeof rec.dir, "%s", options->dir);
    rec.options.text_bytes =
        options->text_bytes < sizeof rec.text ? options->text_bytes : sizeof rec.text;
    memcpy(rec.text, options->text, rec.options.text_bytes);
    rec.own_text_bytes = rec.options.text_bytes;
    rec.parent_ring[0] = '\0';
    sdb_oom_upkeep_configure(rec.text, rec.options.text_bytes);
}

static void
append_text(const char *key, const char *value)
{
    if (!value[0]) return;
    size_t room = sizeof rec.text - rec.options.text_bytes;
    int n = snprintf(rec.text + rec.options.text_bytes, room, "%s%s", key, value);
    if (n > 0 && (size_t)n + 1 <= room) rec.options.text_bytes += (size_t)n + 1;
}

/* In the child a new ring begins: with the words of the parent's, but its own label and parent. */
static void
compose_child_text(const char *parent_ring)
{
    if (parent_ring) snprintf(rec.parent_ring, sizeof rec.parent_ring, "%s", parent_ring);
    rec.options.text_bytes = rec.own_text_bytes;
    append_text("", rec.child_label);
    append_text("parent_ring=", rec.parent_ring);
}

void
sdb_recorder_label_children(const char *key_value)
{
    snprintf(rec.child_label, sizeof rec.child_label, "%s", key_value ? key_value : "");
}

/* Runs on: the forking thread, in the child, before any Ruby code. What the parent's scanner was doing at that
 * moment is unknown, so nothing of it is used: all parts are made anew, the old ones stay where they are as pages
 * shared with the parent. */
static void
on_fork_child(void)
{
    if (!rec.running) return;
    sdb_gvl_forked();
    sdb_gvl_enable(false);
    sdb_gc_enable_events(false);
    sdb_symbolizer_forked();
    sdb_gc_set_codes(NULL);
    sdb_gc_unpin_all();
    bool had_file = __atomic_load_n(&rec.scanner.has_file, __ATOMIC_ACQUIRE);
    if (had_file) {
        compose_child_text(rec.scanner.file.path);
        sdb_ring_file_abandon(&rec.scanner.file);
    } else {
        compose_child_text(
            NULL); /* forked before its own ring began: the one before is the nearest */
    }
    sdb_memory_probe_close(&rec.scanner.memory_probe);
    rec.running = false;
    if (!ruby_native_thread_p()) { /* a C library's own thread forked: no Ruby will run here */
        rec.forked_silent = true;
        return;
    }
    struct sdb_slot *slot = sdb_gvl_current_slot_unchecked();
    struct sdb_slot self = slot ? *slot : (struct sdb_slot){0};
    sdb_safe_read_probe();
    sdb_thread_table_reset(&rec.threads);
    uint64_t now = sdb_monotonic_ns();
    if (!slot || make_parts(now) != 0) {
        rec.forked_silent = true;
        return;
    }
    sdb_gc_set_codes(rec.scanner.codes);
    rec.scanner.file_due_ns = now + SDB_CHILD_FILE_NS;
    sdb_store_relaxed(&rec.scanner.needs_symbolizer, 1);
    sdb_gvl_seed_forked(&rec.threads, (VALUE)self.thread_value, self.th, self.root_ec,
                        self.flags | SDB_THREAD_MAIN);
    rec.main_thread = (VALUE)self.thread_value;
    sdb_gvl_enable(true);
    sdb_gc_enable_events(true);
    rec.running = true;
    if (sdb_scanner_launch(&rec.scanner) != 0) rec.running = false;
}

static void
stop_at_exit(VALUE unused)
{
    (void)unused;
    sdb_recorder_stop();
}

static void
stop_at_vm_end(ruby_vm_t *unused)
{
    (void)unused;
    /* the end proc has run, unless it was skipped; no GVL work is possible here any more */
    if (!rec.running) return;
    sdb_gvl_enable(false);
    sdb_gc_enable_events(false);
    sdb_scanner_join(&rec.scanner);
    rec.running = false;
}

static void
hook_process_once(void)
{
    if (rec.hooked) return;
    rec.hooked = true;
    rb_gc_register_address(&rec.main_thread);
    sdb_gc_install(&rec.threads);
#ifdef HAVE_RB_POSTPONED_JOB_PREREGISTER
    rec.symbolizer_job = rb_postponed_job_preregister(0, start_symbolizer, NULL);
#endif
    pthread_atfork(NULL, NULL, on_fork_child);
    rb_set_end_proc(stop_at_exit, Qnil);
    ruby_vm_at_exit(stop_at_vm_end);
}

int
sdb_recorder_start(const struct sdb_recorder_options *options, char reason[SDB_REASON_BYTES])
{
    if (rec.running) return SDB_OK;
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
    err = make_parts(sdb_monotonic_ns());
    if (err) {
        snprintf(reason, SDB_REASON_BYTES, "%s", sdb_error_text(err));
        return err;
    }
    struct sdb_scanner *sc = &rec.scanner;
    err = sdb_ring_file_create(&sc->file, &sc->file_config);
    if (err) {
        snprintf(reason, SDB_REASON_BYTES, "cannot create a ring in %s: %s (%s)", rec.dir,
                 sdb_error_text(err), strerror(sc->file.last_errno));
        free_parts(sc);
        return err;
    }
    sc->has_file = true;
    sdb_ring_writer_attach(sc->writer, &sc->file);
    sdb_symbol_area_attach(sc->symbols, &sc->file);
    snprintf(rec.last_path, sizeof rec.last_path, "%s", sc->file.path);
    sdb_gc_set_codes(sc->codes);
    sdb_gvl_install(&rec.threads, &rec.layout);
    if (sc->gc_events) sdb_gc_time_events();
    sdb_gvl_enable(true);
    sdb_gvl_seed(&rec.threads);
    sdb_gc_enable_events(true);
    rec.running = true;
    rec.forked_silent = false;
    start_symbolizer(NULL);
    err = sdb_scanner_launch(sc);
    if (err) {
        snprintf(reason, SDB_REASON_BYTES, "%s", sdb_error_text(err));
        sdb_recorder_stop();
        return err;
    }
    return SDB_OK;
}

static void *
join_without_gvl(void *unused)
{
    (void)unused;
    sdb_scanner_join(&rec.scanner);
    return NULL;
}

bool
sdb_recorder_stop(void)
{
    if (!rec.running) return false;
    struct sdb_scanner *sc = &rec.scanner;
    rec.running = false;
    sdb_gvl_enable(false);
    sdb_gc_enable_events(false);
    rb_thread_call_without_gvl(join_without_gvl, NULL, NULL, NULL);
    sdb_symbolizer_stop();
    sdb_symbolizer_run_here_for(sc->codes, &rec.threads, &rec.layout);
    sdb_upkeep_close(sc, NULL);
    memcpy(rec.last_counters, sc->counters, sizeof rec.last_counters);
    snprintf(rec.last_path, sizeof rec.last_path, "%s", sc->file.path);
    free_parts(sc);
    return true;
}

bool
sdb_recorder_running(void)
{
    return rec.running;
}

void
sdb_recorder_after_fork(void)
{
    if (rec.running && sdb_load_acquire(&rec.scanner.needs_symbolizer)) start_symbolizer(NULL);
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
    if (!rec.running) return;
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
    out->ring_bytes = rec.options.ring_bytes;
    out->interval_ns = rec.options.interval_ns;
    if (!rec.running) {
        memcpy(out->counters, rec.last_counters, sizeof out->counters);
        return;
    }
    if (__atomic_load_n(&sc->has_file, __ATOMIC_ACQUIRE)) out->path = sc->file.path;
    for (int i = 0; i < SDB_COUNTER_COUNT; i++)
        out->counters[i] = sdb_load_relaxed(&sc->counters[i]);
    out->parked = out->counters[SDB_C_PARKED] != 0;
    out->effective_interval_ns = out->counters[SDB_C_EFFECTIVE_INTERVAL_NS];
}

struct sdb_scanner *
sdb_recorder_scanner(void)
{
    return rec.running ? &rec.scanner : NULL;
}

struct sdb_thread_table *
sdb_recorder_threads(void)
{
    return &rec.threads;
}
