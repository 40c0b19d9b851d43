/* SPDX-License-Identifier: MIT
 *
 * visit.c - one thread at one tick: its state and times, its stack when it may have changed, and a record
 * when anything did.
 *
 * Runs on: scanner thread, no GVL
 */
#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"
#include "sdb_atomic.h"
#include "scan/scanner.h"

enum { PROBATION_TICKS = 8, NAME_WAIT_NS = 200000000 };

static struct sdb_scan *
scan_of(struct sdb_scanner *sc, struct sdb_slot *slot)
{
    struct sdb_scan *scan = (struct sdb_scan *)(uintptr_t)slot->scan;
    if (!scan) {
        scan = sdb_own_calloc(1, sizeof *scan);
        if (!scan) return NULL;
        slot->scan = (uint64_t)(uintptr_t)scan;
    }
    uint64_t serial = sdb_load_relaxed(&slot->serial);
    if (scan->serial == serial) return scan;
    /* a new thread in an old slot: only the buffer stays */
    struct sdb_frame *frames = scan->frames;
    uint32_t capacity = scan->capacity;
    *scan = (struct sdb_scan){.frames = frames, .capacity = capacity, .serial = serial};
    scan->node_chunk = scan->thread_chunk = scan->sample_chunk = UINT64_MAX;
    scan->checked_ns = sdb_load_relaxed(&slot->birth_ns);
    if (!(sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN)) sdb_count(sc, SDB_C_THREADS_SEEN, 1);
    sc->ask_soon = true;
    return scan;
}

static uint64_t
cpu_of(const struct sdb_scanner *sc, const struct sdb_slot *slot, const struct sdb_state_view *v,
       struct sdb_scan *scan)
{
    uint64_t clock = 0;
    if (scan->clock_tick == sc->tick) clock = scan->clock_ns;
    else if (v->tid) clock = sc->host.thread_cpu_ns((uint32_t)v->tid);
    if (!clock) return scan->cpu_ns;
    if (scan->tid !=
        v->tid) { /* first look, or moved to another native thread: go on from what we had */
        uint64_t begin = scan->tid ? 0 : sdb_load_relaxed(&slot->begin_cpu_ns);
        scan->tid = (uint32_t)v->tid;
        scan->cpu_base_ns = begin && begin <= clock ? begin : clock - scan->cpu_ns;
    }
    return clock - scan->cpu_base_ns;
}

static void
write_thread(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan, uint32_t index)
{
    char text[8 * SDB_NAME_WORDS];
    uint64_t version;
    int bytes = sdb_thread_get_name(slot, text, &version);
    uint64_t flags = sdb_load_relaxed(&slot->flags);
    if (bytes < 0 && (flags & SDB_THREAD_MAIN)) {
        memcpy(text, "main", 4);
        bytes = 4;
    }
    struct sdb_thread_record record = {
        .slot = index,
        .tid = (uint32_t)sdb_load_relaxed(&slot->tid),
        .flags = (uint32_t)flags,
        .serial = scan->serial,
        .birth_ns = sdb_load_relaxed(&slot->birth_ns),
        .name = bytes >= 0 ? text : NULL,
        .name_bytes = bytes >= 0 ? (size_t)bytes : 0,
    };
    sdb_ring_writer_reserve(sc->writer, 512);
    sdb_ring_writer_thread(sc->writer, &record);
    scan->thread_chunk = sdb_ring_writer_chunk(sc->writer);
    scan->name = version;
}

void
sdb_visit_thread(struct sdb_scanner *sc, struct sdb_slot *slot, uint64_t serial)
{
    uint64_t life = slot ? sdb_load_acquire(&slot->life) : SDB_SLOT_FREE;
    if (life != SDB_SLOT_LIVE && life != SDB_SLOT_DEAD) return;
    struct sdb_scan *scan = scan_of(sc, slot);
    if (!scan || scan->serial != serial || sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN) return;
    if (scan->thread_chunk != sdb_ring_writer_chunk(sc->writer))
        write_thread(sc, slot, scan, (uint32_t)slot->index);
}

static uint64_t
name_version(const struct sdb_slot *slot)
{
    const struct sdb_slot_name *name =
        (const struct sdb_slot_name *)(uintptr_t)sdb_load_acquire(&slot->name);
    return name ? sdb_load_acquire(&name->seq) : 0;
}

/* The node of the slot's stack in the active chunk; frames below `from` keep theirs when they have any. */
static uint32_t
node_of(struct sdb_scanner *sc, struct sdb_scan *scan, uint32_t from)
{
    for (;;) {
        if (scan->node_chunk != sdb_ring_writer_chunk(sc->writer)) from = 0;
        uint64_t before = sdb_ring_writer_chunk(sc->writer);
        sdb_ring_writer_reserve(sc->writer, 16ull * (scan->depth - from) + 64);
        if (before == sdb_ring_writer_chunk(sc->writer) || from == 0) break;
    }
    uint32_t node = from ? scan->frames[from - 1].node : 0;
    for (uint32_t i = from; i < scan->depth; i++) {
        struct sdb_frame *f = &scan->frames[i];
        if (f->entry) {
            struct sdb_code *code = sdb_code_table_entry(sc->codes, f->entry);
            code->stamp = sc->tick;
            node = sdb_ring_writer_node(sc->writer, node, code->id, sdb_walk_where(sc->walker, f),
                                        NULL);
        }
        f->node = node;
    }
    scan->node_chunk = sdb_ring_writer_chunk(sc->writer);
    return node;
}

/* Time so far, at `at_ns`, in the state that is still going on. */
static uint64_t
open_ns(const struct sdb_scanner *sc, const struct sdb_state_view *v, uint64_t state,
        uint64_t at_ns)
{
    return sc->exact && v->state == state && at_ns > v->since_ns ? at_ns - v->since_ns : 0;
}

/* A thread's times without the GVL and in GC up to `at_ns`. */
static void
fill_times(const struct sdb_scanner *sc, const struct sdb_scan *scan,
           const struct sdb_state_view *v, uint64_t at_ns, struct sdb_sample *out)
{
    uint64_t phantom = scan->phantom_blocked_ns;
    if (scan->phantom_since_ns && at_ns > scan->phantom_since_ns)
        phantom += at_ns - scan->phantom_since_ns;
    uint64_t blocked = v->blocked_ns + open_ns(sc, v, SDB_BLOCKED, at_ns);
    out->wait_ns = v->wait_ns + open_ns(sc, v, SDB_GVL_WAIT, at_ns);
    out->blocked_ns = blocked > phantom ? blocked - phantom : 0;
    out->gc_ns = sc->gc_events ? v->gc_ns + open_ns(sc, v, SDB_GC, at_ns) : scan->gc_sampled_ns;
}

/* What a thread that ended used since it was last written. False when nobody asked it in time. */
static bool
totals_at_end(const struct sdb_scanner *sc, const struct sdb_slot *slot,
              const struct sdb_scan *scan, uint64_t end_ns, struct sdb_sample *out)
{
    struct sdb_state_view v = {.blocked_ns = scan->inferred_blocked_ns, .tid = scan->tid};
    uint64_t clock = sdb_load_relaxed(&slot->end_cpu_ns);
    if (!clock || (sc->exact && !sdb_thread_view(slot, &v))) return false;
    if (scan->tid && scan->tid != (uint32_t)v.tid) return false; /* another native thread's clock */
    if (!sc->exact && scan->seen_cpu_ns &&
        end_ns > scan->checked_ns) { /* since the last look, as states_inferred.c has it */
        uint64_t used = clock > scan->seen_cpu_ns ? clock - scan->seen_cpu_ns : 0,
                 elapsed = end_ns - scan->checked_ns;
        if (elapsed > 2 * used) v.blocked_ns += elapsed - used;
    }
    memset(out, 0, sizeof *out);
    out->cpu_ns = clock - (scan->tid ? scan->cpu_base_ns : sdb_load_relaxed(&slot->begin_cpu_ns));
    fill_times(sc, scan, &v, end_ns, out);
    return true;
}

static void
retire(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan, uint32_t index)
{
    sdb_events_drain(sc, slot);
    sdb_events_retire(sc, slot);
    if (!(sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN)) {
        if (scan->thread_chunk != sdb_ring_writer_chunk(sc->writer) ||
            scan->name != name_version(slot)) {
            write_thread(sc, slot, scan, index);
        }
        struct sdb_sample totals;
        uint64_t end_ns = sdb_load_relaxed(&slot->death_ns);
        bool known = totals_at_end(sc, slot, scan, end_ns, &totals);
        sdb_ring_writer_thread_end(sc->writer, index, scan->serial, end_ns, known ? &totals : NULL);
    }
    scan->depth = 0;
    scan->serial = 0;
    if (scan->capacity > 512) { /* one deep recursion must not cost memory for ever */
        sdb_own_free(scan->frames);
        scan->frames = NULL;
        scan->capacity = 0;
    }
    sdb_store_release(&slot->life, SDB_SLOT_RETIRED); /* the symbolizer unpins and frees it */
    sc->ask_soon = true;
}

static void
keep_active(struct sdb_scanner *sc, uint32_t index)
{
    sdb_or_seq_cst(&sc->threads->active[index / SDB_SEGMENT_SLOTS],
                   1ull << (index % SDB_SEGMENT_SLOTS));
}

/* Many threads name themselves, and the name is the only thing a person knows them by: a thread that ended is kept
 * until the symbolizer has looked at it once more, or 200 ms. */
static bool
name_is_final(struct sdb_scanner *sc, struct sdb_scan *scan, uint64_t death_ns)
{
    if (sc->last_tick || sdb_mailbox_nobody(sc->mailbox)) return true;
    if (!scan->death_pass) {
        scan->death_pass = sdb_load_acquire(&sc->mailbox->passes_begun) + 1;
        sc->ask_soon = true;
    }
    return sdb_load_acquire(&sc->mailbox->passes_ended) >= scan->death_pass ||
           sc->now_ns > death_ns + NAME_WAIT_NS;
}

/* Not that of a fiber: one that just ended is still the thread's present one for a moment. */
static bool
first_stack_gone(const struct sdb_scanner *sc, const struct sdb_slot *slot)
{
    const struct sdb_live_table *l = &sc->threads->live;
    uint64_t ec = sdb_load_relaxed((const uint64_t *)(uintptr_t)(slot->th + l->thread_ec));
    if (!ec) return true;
    return ec == slot->root_ec &&
           !sdb_load_relaxed((const uint64_t *)(uintptr_t)(ec + l->ec_vm_stack));
}

/* Reads the stack if it may have changed. *from: where nodes must be looked up again. */
static void
read_stack(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
           const struct sdb_state_view *v, bool running, uint32_t *from)
{
    uint32_t changed = scan->depth;
    /* only a thread that waits for the GVL stands still for certain: SUSPENDED may be followed by running on
     * (thread_pthread.c:thread_sched_to_waiting_until_wakeup, 3.3+) */
    bool still = sc->exact && v->state == SDB_GVL_WAIT;
    enum sdb_walk_result result = sdb_walk(sc->walker, slot, scan, still, sc->tick, &changed);
    if (still && (result == SDB_WALK_WHOLE || result == SDB_WALK_TORN)) {
        struct sdb_state_view after;
        if (!sdb_thread_view(slot, &after) || after.resumes != v->resumes) {
            uint32_t again = scan->depth; /* it got the GVL meanwhile: read it as one that runs */
            result = sdb_walk(sc->walker, slot, scan, false, sc->tick, &again);
            if (again < changed) changed = again;
        }
    }
    sdb_count(sc, SDB_C_SCANS, 1);
    switch (result) {
    case SDB_WALK_TORN_TOP:
        sdb_count(sc, SDB_C_LOST_TORN_TOP, 1);
        /* fall through */
    case SDB_WALK_WHOLE:
        if (changed < *from) *from = changed;
        scan->stack_due = false;
        scan->span_moved = false;
        if (!running) scan->resumes = v->resumes;
        break;
    case SDB_WALK_NO_STACK:
        if (!sc->exact && scan->sample_tick && first_stack_gone(sc, slot)) {
            /* 3.1 tells nothing of kill, raise and Thread.exit: the cleared stack does */
            sdb_thread_ended(sc->threads, slot, sc->now_ns, 0);
        }
        scan->depth = 0;
        scan->stack_due = false;
        scan->span_moved = false;
        *from = 0;
        scan->more = 0;
        if (!running) scan->resumes = v->resumes;
        break;
    case SDB_WALK_TORN:
        sdb_count(sc, SDB_C_LOST_TORN, 1);
        scan->more = SDB_MORE_NO_STACK;
        break;
    case SDB_WALK_GC:
        sdb_count(sc, SDB_C_LOST_GC, 1);
        break;
    case SDB_WALK_UNREADABLE:
    case SDB_WALK_BUSY:
        scan->more = SDB_MORE_NO_STACK;
        break;
    }
}

/* A slot that says blocked while its thread runs on (see read_stack). Adjusts the view; true while it runs. */
static bool
phantom_run(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
            struct sdb_state_view *v)
{
    if (scan->phantom_since_ns &&
        (v->state != SDB_BLOCKED || v->since_ns > scan->phantom_since_ns)) {
        scan->phantom_blocked_ns += v->since_ns - scan->phantom_since_ns;
        scan->phantom_since_ns = 0;
    }
    if (!scan->phantom_since_ns && v->state == SDB_BLOCKED && scan->resumes == v->resumes &&
        scan->probation && sdb_walk_moved(sc->walker, slot, scan)) {
        scan->phantom_since_ns = sc->previous_ns > v->since_ns ? sc->previous_ns : v->since_ns;
    }
    return scan->phantom_since_ns != 0;
}

static void
write_sample(struct sdb_scanner *sc, const struct sdb_slot *slot, struct sdb_scan *scan,
             const struct sdb_state_view *v, uint32_t node, uint64_t state)
{
    struct sdb_sample sample = {
        .slot = (uint32_t)slot->index,
        .node = node,
        .state = (uint32_t)state,
        .more = scan->more,
        .cpu_ns = cpu_of(sc, slot, v, scan),
        .age_ns = sc->now_ns > v->since_ns ? sc->now_ns - v->since_ns : 0,
        /* also when it left the state and is back in it: what came before may be another stack's */
        .has_age = sc->exact && state != SDB_RUNNING &&
                   (state != scan->state || v->since_ns != scan->since_ns),
    };
    fill_times(sc, scan, v, sc->now_ns, &sample);
    sdb_ring_writer_sample(sc->writer, &sample);
    scan->cpu_ns = sample.cpu_ns;
    scan->state = state;
    scan->node = node;
    scan->sample_chunk = sdb_ring_writer_chunk(sc->writer);
    scan->sample_tick = sc->tick;
    scan->since_ns = v->since_ns;
}

static bool
changed_by(const struct sdb_changes *changes, uint64_t ns)
{
    return changes->last_ns && changes->first_ns <= ns;
}

void
sdb_visit(struct sdb_scanner *sc, struct sdb_slot *slot, uint32_t index)
{
    uint64_t life = sdb_load_acquire(&slot->life);
    if (life == SDB_SLOT_CLAIMED) keep_active(sc, index);
    if (life != SDB_SLOT_LIVE && life != SDB_SLOT_DEAD) return;
    struct sdb_scan *scan = scan_of(sc, slot);
    if (!scan) return;
    if (life == SDB_SLOT_DEAD) {
        if (!name_is_final(sc, scan, sdb_load_relaxed(&slot->death_ns))) {
            keep_active(sc, index);
            return;
        }
        retire(sc, slot, scan, index);
        return;
    }
    if (sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN) return;

    struct sdb_state_view v;
    bool ran = false,
         due = sc->last_tick || scan->sample_chunk != sdb_ring_writer_chunk(sc->writer);
    if (sc->exact) {
        if (!sdb_thread_view(slot, &v)) {
            keep_active(sc, index); /* its hook is in the middle of an update: next tick */
            return;
        }
    }
    struct sdb_changes before = sdb_events_drain(sc, slot);
    if (before.last_ns)
        scan->span_moved = scan->stack_due = true; /* 3.1: it ran, so much is certain */
    if (!sc->exact && !sdb_infer_state(sc, slot, scan, &v, &ran) && !due) return;
    bool phantom = sc->exact && phantom_run(sc, slot, scan, &v);
    bool running = v.state == SDB_RUNNING || v.state == SDB_GC || phantom;
    uint64_t state = phantom ? SDB_RUNNING : v.state;
    if (running && !sc->gc_events && sc->gc_now) {
        state = SDB_GC;
        scan->gc_sampled_ns += sc->now_ns - sc->previous_ns;
    }
    bool switched = v.resumes != scan->resumes;
    if (v.since_ns != scan->since_ns)
        scan->probation = PROBATION_TICKS; /* blocked anew, perhaps never seen running */
    uint32_t from = scan->depth, more_before = scan->more;
    if (state != SDB_GC && (sc->exact ? running || switched : scan->stack_due)) {
        read_stack(sc, slot, scan, &v, running, &from);
    }
    struct sdb_changes after = sdb_events_drain(sc, slot);
    uint64_t chunk = sdb_ring_writer_chunk(sc->writer);
    if (scan->thread_chunk != chunk || scan->name != name_version(slot))
        write_thread(sc, slot, scan, index);
    uint32_t node = node_of(sc, scan, from);
    if (scan->thread_chunk != sdb_ring_writer_chunk(sc->writer)) { /* node_of began a chunk */
        write_thread(sc, slot, scan, index);
        node = node_of(sc, scan, 0);
    }
    bool in_chunk = scan->sample_chunk == sdb_ring_writer_chunk(sc->writer);
    bool behind = after.last_ns || before.last_ns > sc->now_ns;
    if (behind) {
        /* the span changed behind the tick's time, and the stack may be the new one's already: it is told with the next
         * tick, so that it does not get time of the span before; that of before not either if there was one in between */
        bool ahead =
            scan->span_behind || changed_by(&before, sc->now_ns) || changed_by(&after, sc->now_ns);
        node = in_chunk && !ahead ? scan->node : 0;
        scan->stack_due = true;
        keep_active(sc, index);
    } else if (scan->span_moved) {
        node = 0; /* what is known of its stack is of the span before */
    }
    scan->span_behind = behind;
    bool changed =
        scan->sample_chunk != sdb_ring_writer_chunk(sc->writer) || node != scan->node ||
        state != scan->state || scan->more != more_before || v.since_ns != scan->since_ns ||
        (running && sc->tick - scan->sample_tick >= SDB_HEARTBEAT_TICKS) || sc->last_tick;
    if (changed) write_sample(sc, slot, scan, &v, node, state);

    if (!sc->exact) return;
    if (running) {
        scan->probation = PROBATION_TICKS;
        keep_active(sc, index);
    } else if (v.resumes != scan->resumes) {
        keep_active(sc, index); /* its stack could not be read yet */
    } else if (v.state == SDB_BLOCKED && scan->probation) {
        scan->probation--;
        keep_active(sc, index);
    }
}
