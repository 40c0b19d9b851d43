/* SPDX-License-Identifier: MIT
 *
 * recorder/fork.c - the recording of a forked child: everything anew, with a ring that names its parent's.
 */
#include <ruby.h>
#include <ruby/thread.h>
#include <stdio.h>
#include "core/clock.h"
#include "core/own_heap.h"
#include "core/safe_read.h"
#include "sdb_atomic.h"
#include "vm/gc.h"
#include "vm/gc_events.h"
#include "vm/gvl.h"
#include "recorder/recorder_impl.h"
#include "spans/spans.h"
#include "vm/symbolizer.h"

static void
append_text(struct sdb_recorder *rec, const char *key, const char *value)
{
    if (!value[0]) return;
    size_t room = sizeof rec->text - rec->options.text_bytes;
    int n = snprintf(rec->text + rec->options.text_bytes, room, "%s%s", key, value);
    if (n > 0 && (size_t)n + 1 <= room) rec->options.text_bytes += (size_t)n + 1;
}

/* In the child a new ring begins: with the words of the parent's, but its own label and parent. */
static void
compose_child_text(struct sdb_recorder *rec, const char *parent_ring)
{
    if (parent_ring) snprintf(rec->parent_ring, sizeof rec->parent_ring, "%s", parent_ring);
    rec->options.text_bytes = rec->own_text_bytes;
    append_text(rec, "", rec->child_label);
    append_text(rec, "parent_ring=", rec->parent_ring);
}

/* What the parent's scanner was doing at that moment is unknown, so nothing of it is used: all parts are made anew. The old
 * ones are not there: own_heap.h. What others made, under the GVL, is whole, and freed. */
void
sdb_recorder_forked(struct sdb_recorder *rec)
{
    sdb_own_forget();
    sdb_thread_table_forked(&rec->threads);
    if (!rec->running) return;
    sdb_gvl_forked();
    sdb_gvl_enable(false);
    sdb_gc_events_enable(false);
    sdb_symbolizer_forked();
    sdb_gc_set_codes(NULL);
    sdb_gc_free_pinned();
    bool had_file = __atomic_load_n(&rec->scanner.has_file, __ATOMIC_ACQUIRE);
    if (had_file) {
        compose_child_text(rec, rec->scanner.file.path);
        sdb_ring_file_forget(&rec->scanner.file);
    } else {
        /* forked before its own ring began: the one before is the nearest */
        compose_child_text(rec, NULL);
    }
    rec->last_path[0] = '\0'; /* the parent's */
    sdb_memory_probe_forget(&rec->scanner.memory.probe);
    rec->running = false;
    if (!ruby_native_thread_p()) { /* a C library's own thread forked: no Ruby will run here */
        rec->forked_silent = true;
        return;
    }
    struct sdb_slot *slot = sdb_gvl_current_slot_unchecked();
    struct sdb_slot self = slot ? *slot : (struct sdb_slot){0};
    sdb_safe_read_probe();
    sdb_thread_table_reset(&rec->threads);
    uint64_t now = sdb_monotonic_ns();
    if (!slot || sdb_recorder_make_parts(rec, now, true) != 0) {
        rec->forked_silent = true;
        return;
    }
    sdb_gc_set_codes(rec->scanner.codes);
    rec->scanner.file_due_ns = now + SDB_CHILD_FILE_NS;
    sdb_gvl_seed_forked(&rec->threads, (VALUE)self.thread_value, self.th, self.root_ec,
                        self.flags | SDB_THREAD_MAIN);
    rec->main_thread = (VALUE)self.thread_value;
    sdb_gvl_enable(true);
    sdb_gc_events_enable(true);
    slot = sdb_gvl_current_slot_unchecked();
    if (slot) sdb_spans_forked(slot, (VALUE)self.context);
    rec->running = true;
    if (sdb_scanner_launch(&rec->scanner) != 0) rec->running = false;
}
