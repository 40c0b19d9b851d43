/* SPDX-License-Identifier: MIT
 *
 * visit.c - see visit.h. A visit reads (state, stack, what it queued), attributes (which span the stack belongs to) and
 * writes (a sample, when anything changed).
 *
 * Runs on: scanner thread, no GVL
 */
#include "scan/visit.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"
#include "sdb_atomic.h"
#include "scan/open_work.h"
#include "scan/states.h"
#include "scan/thread_records.h"

enum {
    NAME_WAIT_NS = 200000000,
    NAME_WAITERS_MAX =
        64, /* each keeps its Thread and its stack; of more that end at once the names are as last seen */
};

static uint64_t
cpu_of(const struct sdb_scanner *sc, const struct sdb_slot *slot, const struct sdb_state_view *v,
       struct sdb_scan *scan)
{
    uint64_t clock = 0;
    if (scan->clock_tick == sc->tick.number) clock = scan->clock_ns;
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
            code->stamp = sc->tick.number;
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
retire(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan)
{
    sdb_work_drain(sc, slot);
    sdb_work_retire(sc, slot);
    if (!(sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN)) {
        if (scan->thread_chunk != sdb_ring_writer_chunk(sc->writer) ||
            scan->name != sdb_thread_name_version(slot)) {
            sdb_thread_write(sc, slot, scan);
        }
        struct sdb_sample totals;
        uint64_t end_ns = sdb_load_relaxed(&slot->death_ns);
        bool known = totals_at_end(sc, slot, scan, end_ns, &totals);
        sdb_ring_writer_thread_end(sc->writer, (uint32_t)slot->index, scan->serial, end_ns,
                                   known ? &totals : NULL);
    }
    scan->depth = 0;
    scan->serial = 0;
    if (scan->capacity > 512) { /* one deep recursion must not cost memory for ever */
        sdb_own_free(scan->frames);
        scan->frames = NULL;
        scan->capacity = 0;
    }
    sdb_store_release(&slot->life, SDB_SLOT_RETIRED); /* the symbolizer unpins and frees it */
    sc->asks.soon = true;
    sc->asks.retired++;
}

/* Many threads name themselves, and the name is the only thing a person knows them by: a thread that ended is kept
 * until the symbolizer has looked at it once more, or 200 ms. */
static bool
name_is_final(struct sdb_scanner *sc, struct sdb_scan *scan, uint64_t death_ns)
{
    if (sc->tick.last || sdb_mailbox_nobody(sc->mailbox)) return true;
    if (sc->tick.ended_waiting >= NAME_WAITERS_MAX) return true;
    if (!scan->death_pass) {
        scan->death_pass = sdb_load_acquire(&sc->mailbox->passes_begun) + 1;
        sc->asks.soon = true;
    }
    return sdb_load_acquire(&sc->mailbox->passes_ended) >= scan->death_pass ||
           sc->tick.now_ns > death_ns + NAME_WAIT_NS;
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
           const struct sdb_look *look, uint32_t *from)
{
    const struct sdb_state_view *v = &look->view;
    uint32_t changed = scan->depth;
    bool still = look->still, running = look->running;
    enum sdb_walk_result result =
        sdb_walk(sc->walker, slot, scan, still, sc->tick.number, &changed);
    if (still && (result == SDB_WALK_WHOLE || result == SDB_WALK_TORN)) {
        struct sdb_state_view after;
        if (!sdb_thread_view(slot, &after) || after.resumes != v->resumes) {
            uint32_t again = scan->depth; /* it got the GVL meanwhile: read it as one that runs */
            result = sdb_walk(sc->walker, slot, scan, false, sc->tick.number, &again);
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
            sdb_thread_ended(sc->threads, slot, sc->tick.now_ns, 0);
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
        .age_ns = sc->tick.now_ns > v->since_ns ? sc->tick.now_ns - v->since_ns : 0,
        /* also when it left the state and is back in it: what came before may be another stack's */
        .has_age = sc->exact && state != SDB_RUNNING &&
                   (state != scan->state || v->since_ns != scan->since_ns),
    };
    fill_times(sc, scan, v, sc->tick.now_ns, &sample);
    sdb_ring_writer_sample(sc->writer, &sample);
    scan->cpu_ns = sample.cpu_ns;
    scan->state = state;
    scan->node = node;
    scan->sample_chunk = sdb_ring_writer_chunk(sc->writer);
    scan->sample_tick = sc->tick.number;
    scan->since_ns = v->since_ns;
}

/* ---- a visit: read, attribute, write ---- */

struct visit {
    struct sdb_slot *slot;
    struct sdb_scan *scan;
    struct sdb_look look;
    /* what it queued of spans and tags until its state was read, and while its stack was */
    struct sdb_changes before, after;
    /* frames from here on are new */
    uint32_t from;
    /* as before this visit */
    uint32_t more;
    /* what is to be written */
    uint64_t state;
    uint32_t node;
    bool told; /* it changed, so a sample is written in any case */
};

/* The thread's state, and its stack when it may be another. False: nothing to be written of it at this tick. */
static bool
read_thread(struct sdb_scanner *sc, struct visit *v)
{
    struct sdb_scan *scan = v->scan;
    bool due = sc->tick.last || scan->sample_chunk != sdb_ring_writer_chunk(sc->writer);
    v->before = sdb_work_drain(sc, v->slot);
    if (v->before.last_ns)
        scan->span_moved = scan->stack_due = true; /* it ran, so much is certain */
    if (!sc->states->look(sc, v->slot, scan, due, &v->look)) {
        scan->span_told |= v->before.last_ns != 0;
        return false;
    }
    v->state = v->look.state;
    if (v->look.running && !sc->gc_events && sc->tick.gc) {
        v->state = SDB_GC;
        scan->gc_sampled_ns += sc->tick.now_ns - sc->tick.previous_ns;
    }
    v->from = scan->depth;
    v->more = scan->more;
    if (v->state != SDB_GC && v->look.stack_due) read_stack(sc, v->slot, scan, &v->look, &v->from);
    v->after = sdb_work_drain(sc, v->slot);
    return true;
}

/* The thread and the node of its stack, in the chunk that is active in the end. */
static void
place(struct sdb_scanner *sc, struct visit *v)
{
    struct sdb_scan *scan = v->scan;
    uint64_t chunk = sdb_ring_writer_chunk(sc->writer);
    if (scan->thread_chunk != chunk || scan->name != sdb_thread_name_version(v->slot))
        sdb_thread_write(sc, v->slot, scan);
    v->node = node_of(sc, scan, v->from);
    if (scan->thread_chunk == sdb_ring_writer_chunk(sc->writer)) return;
    sdb_thread_write(sc, v->slot, scan); /* node_of began a chunk */
    v->node = node_of(sc, scan, 0);
}

static bool
changed_by(const struct sdb_changes *changes, uint64_t ns)
{
    return changes->last_ns && changes->first_ns <= ns;
}

/* Which span the stack belongs to: none gets the time of another's stack. */
static void
attribute(struct sdb_scanner *sc, struct visit *v)
{
    struct sdb_scan *scan = v->scan;
    bool in_chunk = scan->sample_chunk == sdb_ring_writer_chunk(sc->writer);
    bool behind = v->after.last_ns || v->before.last_ns > sc->tick.now_ns;
    if (behind) {
        /* the span changed behind the tick's time, and the stack may be the new one's already: it is told with the next
         * tick, so that it does not get time of the span before; that of before not either if there was one in between */
        bool ahead = scan->span_behind || changed_by(&v->before, sc->tick.now_ns) ||
                     changed_by(&v->after, sc->tick.now_ns);
        v->node = in_chunk && !ahead ? scan->node : 0;
        scan->stack_due = true;
        sdb_thread_keep_active(sc, v->slot);
    } else if (scan->span_moved) {
        v->node = 0; /* what is known of its stack is of the span before */
    }
    /* also when the stack is the same: what lies between the ticks counted for something else */
    v->told = scan->span_told || scan->span_behind || changed_by(&v->before, sc->tick.now_ns);
    scan->span_told = false;
    scan->span_behind = behind;
}

/* Writes a sample when anything differs from the last. */
static void
write_change(struct sdb_scanner *sc, const struct visit *v)
{
    struct sdb_scan *scan = v->scan;
    bool changed = v->told || scan->sample_chunk != sdb_ring_writer_chunk(sc->writer) ||
                   v->node != scan->node || v->state != scan->state || scan->more != v->more ||
                   v->look.view.since_ns != scan->since_ns || sc->tick.last ||
                   (v->look.running && sc->tick.number - scan->sample_tick >= SDB_HEARTBEAT_TICKS);
    if (changed) write_sample(sc, v->slot, scan, &v->look.view, v->node, v->state);
}

static void
visit_ended(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan)
{
    if (name_is_final(sc, scan, sdb_load_relaxed(&slot->death_ns))) {
        retire(sc, slot, scan);
        return;
    }
    sc->tick.ended_waiting++;
    sdb_thread_keep_active(sc, slot);
}

void
sdb_visit(struct sdb_scanner *sc, struct sdb_slot *slot)
{
    uint64_t life = sdb_load_acquire(&slot->life);
    if (life == SDB_SLOT_CLAIMED) sdb_thread_keep_active(sc, slot);
    if (life != SDB_SLOT_LIVE && life != SDB_SLOT_DEAD) return;
    struct visit v = {.slot = slot, .scan = sdb_thread_memory(sc, slot)};
    if (!v.scan) return;
    if (life == SDB_SLOT_DEAD) {
        visit_ended(sc, slot, v.scan);
        return;
    }
    if (sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN) return;
    if (!read_thread(sc, &v)) return;
    place(sc, &v);
    attribute(sc, &v);
    write_change(sc, &v);
    sc->states->looked(sc, slot, v.scan, &v.look);
}
