/* SPDX-License-Identifier: MIT
 *
 * states_exact.c - Ruby 3.2+: GVL events keep the state of each thread in its slot (vm/gvl.c), and tell which threads did
 * something.
 *
 * Runs on: scanner thread, no GVL
 */
#include "sdb_atomic.h"
#include "scan/states.h"
#include "scan/thread_records.h"

enum { PROBATION_TICKS = 8 };

static bool
began(struct sdb_scanner *sc)
{
    (void)sc;
    return false;
}

/* A slot that says blocked while its thread runs on (PROTOCOL.md, "Who stands still"). Adjusts the view; true while it runs. */
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
        scan->phantom_since_ns =
            sc->tick.previous_ns > v->since_ns ? sc->tick.previous_ns : v->since_ns;
    }
    return scan->phantom_since_ns != 0;
}

static bool
look(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan, bool due,
     struct sdb_look *out)
{
    (void)due;
    if (!sdb_thread_view(slot, &out->view)) {
        sdb_thread_keep_active(sc, slot); /* its hook is in the middle of an update: next tick */
        return false;
    }
    bool phantom = phantom_run(sc, slot, scan, &out->view);
    const struct sdb_state_view *v = &out->view;
    out->state = phantom ? SDB_RUNNING : v->state;
    out->running = v->state == SDB_RUNNING || v->state == SDB_GC || phantom;
    /* only a thread that waits for the GVL stands still for certain: SUSPENDED may be followed by running on
     * (thread_pthread.c:thread_sched_to_waiting_until_wakeup, 3.3+) */
    out->still = v->state == SDB_GVL_WAIT;
    out->stack_due = out->running || v->resumes != scan->resumes;
    if (v->since_ns != scan->since_ns)
        scan->probation = PROBATION_TICKS; /* blocked anew, perhaps never seen running */
    return true;
}

static void
looked(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
       const struct sdb_look *look)
{
    if (look->running) {
        scan->probation = PROBATION_TICKS;
    } else if (look->view.resumes != scan->resumes) {
        /* its stack could not be read yet */
    } else if (look->view.state == SDB_BLOCKED && scan->probation) {
        scan->probation--;
    } else {
        return;
    }
    sdb_thread_keep_active(sc, slot);
}

static bool
ended(struct sdb_scanner *sc, bool any)
{
    (void)sc;
    return any;
}

static void
second(struct sdb_scanner *sc)
{
    (void)sc;
}

const struct sdb_states sdb_states_exact = {
    .began = began, .look = look, .looked = looked, .ended = ended, .second = second};
