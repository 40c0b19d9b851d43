/* SPDX-License-Identifier: MIT
 *
 * oomd_victim.c - see oomd_victim.h.
 *
 * Runs on: daemon
 */
#include "oomd_victim.h"

#include <stdlib.h>
#include <time.h>
#include "oomd_log.h"
#include "oomd_probe.h"
#include "oomd_registry.h"

enum { CODE_KERNEL = 128 };

/* How long to wait for what may still come. */
static const uint64_t finish_wait_ns =
    10 * 1000000000ull; /* the last thread: one may hang in a driver */
static const uint64_t mark_wait_ns = 100 * 1000000ull; /* mark_victim, after a kill by the kernel */
static const uint64_t orphan_wait_ns = 30 * 1000000000ull; /* a slot of which nothing was heard */

struct oomd_victims {
    struct oomd_registry *registry;
    size_t count;
    struct oomd_victim *victims[OOMD_VICTIMS_MAX];
};

struct oomd_victims *
oomd_victims_new(struct oomd_registry *registry)
{
    struct oomd_victims *v = calloc(1, sizeof *v);
    if (v != NULL) v->registry = registry;
    return v;
}

void
oomd_victim_free(struct oomd_victim *v)
{
    if (v == NULL) return;
    oomd_process_free(v->process);
    oomd_capture_free(&v->capture);
    free(v);
}

void
oomd_victims_free(struct oomd_victims *v)
{
    if (v == NULL) return;
    for (size_t i = 0; i < v->count; i++) oomd_victim_free(v->victims[i]);
    free(v);
}

static struct oomd_victim *
find(const struct oomd_victims *v, uint64_t id)
{
    for (size_t i = 0; i < v->count; i++)
        if (v->victims[i]->process->id == id) return v->victims[i];
    return NULL;
}

static uint64_t
clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void
refuse(const struct oomd_victims *v, struct oomd_process *p)
{
    oomd_log_limited(
        "pid %u (%s) of uid %u was killed; not recorded: %zu others wait to be written", p->tgid,
        p->service, p->uid, v->count);
}

/* Lets go of one of a user who has several. */
static bool
displace(struct oomd_victims *v)
{
    size_t most = v->count;
    for (size_t i = 0; i < v->count; i++) {
        const struct oomd_victim *one = v->victims[i];
        if (one->process->uid != 0 && one->nth > 0 &&
            (most == v->count || one->nth >= v->victims[most]->nth))
            most = i;
    }
    if (most == v->count) return false;
    refuse(v, v->victims[most]->process);
    oomd_victim_free(v->victims[most]);
    v->count--;
    for (size_t k = most; k < v->count; k++) v->victims[k] = v->victims[k + 1];
    return true;
}

/* A user whose processes die by the hundred fills his own part of what waits; root's and the first of each other user
 * find room. */
static bool
find_room(struct oomd_victims *v, uint32_t uid, uint32_t *nth)
{
    size_t of_user = 0, others = 0;
    for (size_t i = 0; i < v->count; i++) {
        of_user += v->victims[i]->process->uid == uid;
        others += v->victims[i]->process->uid != 0;
    }
    *nth = (uint32_t)of_user;
    if (uid == 0) return v->count < OOMD_VICTIMS_MAX;
    if (others < OOMD_VICTIMS_OTHERS) return of_user < OOMD_VICTIMS_A_USER || of_user == others;
    return of_user == 0 && displace(v);
}

/* The victim of that registration; made at the first word of it. */
static struct oomd_victim *
get(struct oomd_victims *v, uint64_t id)
{
    struct oomd_victim *one = find(v, id);
    if (one != NULL) return one;
    struct oomd_process *p = oomd_registry_take(v->registry, id);
    if (p == NULL) return NULL; /* written already */
    uint32_t nth = 0;
    one = find_room(v, p->uid, &nth) ? calloc(1, sizeof *one) : NULL;
    if (one == NULL) {
        refuse(v, p);
        oomd_process_free(p);
        return NULL;
    }
    one->nth = nth;
    if (p->kept == OOMD_KEPT_NOT_YET) p->kept = OOMD_KEPT_NEVER; /* too late to open it */
    one->process = p;
    one->slot = SDB_OOM_VICTIMS;
    one->due_ns = clock_ns(CLOCK_MONOTONIC) + finish_wait_ns;
    one->armed_realtime_ns = clock_ns(CLOCK_REALTIME);
    v->victims[v->count++] = one;
    return one;
}

static void
take_figures(struct sdb_oom_victim *to, const struct sdb_oom_victim *from)
{
    to->total_vm_kb = from->total_vm_kb;
    to->anon_rss_kb = from->anon_rss_kb;
    to->file_rss_kb = from->file_rss_kb;
    to->shmem_rss_kb = from->shmem_rss_kb;
    to->pgtables_kb = from->pgtables_kb;
    to->oom_score_adj = from->oom_score_adj;
    to->flags |= SDB_OOM_F_CONFIRMED;
}

static void
on_marked(struct oomd_victims *v, const struct sdb_oom_victim *mark, uint64_t now_ns)
{
    for (size_t i = 0; i < v->count; i++) {
        struct oomd_victim *one = v->victims[i];
        if (one->facts.target_tid != mark->target_tid || one->facts.si_code != CODE_KERNEL)
            continue;
        if (!(one->facts.flags & SDB_OOM_F_CONFIRMED)) take_figures(&one->facts, mark);
        if (one->finished || one->overflow) one->due_ns = now_ns;
    }
}

static void
on_finished(struct oomd_victim *one, uint64_t now_ns)
{
    bool wait = one->facts.si_code == CODE_KERNEL && !(one->facts.flags & SDB_OOM_F_CONFIRMED);
    one->due_ns = wait ? now_ns + mark_wait_ns : now_ns;
}

void
oomd_victims_control(struct oomd_victims *v, const struct sdb_oom_control *e, uint64_t now_ns)
{
    if (e->type == SDB_OOM_E_MARKED) {
        on_marked(v, &e->victim, now_ns);
        return;
    }
    struct oomd_victim *one = get(v, e->victim.id);
    if (one == NULL) return;
    /* what mark_victim said may be newer than the copy of the slot in this event */
    struct sdb_oom_victim marked = one->facts;
    one->facts = e->victim;
    if (!one->armed)
        one->armed_realtime_ns = clock_ns(CLOCK_REALTIME) - (now_ns - e->victim.armed_ns);
    if ((marked.flags & SDB_OOM_F_CONFIRMED) && !(one->facts.flags & SDB_OOM_F_CONFIRMED))
        take_figures(&one->facts, &marked);
    one->armed = true;
    one->slot = e->type == SDB_OOM_E_FINISHED ? SDB_OOM_VICTIMS : e->slot;
    if (e->type == SDB_OOM_E_CAPTURED) one->captured = true;
    if (e->type == SDB_OOM_E_FINISHED) one->finished = true;
    if (e->type == SDB_OOM_E_OVERFLOW) one->overflow = true;
    if (one->finished) one->captured |= (one->facts.flags & SDB_OOM_F_CAPTURE_DONE) != 0;
    if (one->finished || one->overflow) on_finished(one, now_ns);
}

static bool
has_bytes_left(const struct oomd_victims *v, uint32_t uid)
{
    size_t of_user = 0, others = 0;
    for (size_t i = 0; i < v->count; i++) {
        const struct oomd_victim *one = v->victims[i];
        if (one->process->uid == uid) of_user += one->capture.events.n;
        if (one->process->uid != 0) others += one->capture.events.n;
    }
    if (uid == 0) return of_user < OOMD_CAPTURES_ROOT;
    return others < OOMD_CAPTURES_OTHERS && of_user < OOMD_CAPTURES_A_USER;
}

void
oomd_victims_data(struct oomd_victims *v, const struct sdb_oom_data_header *head,
                  const uint8_t *bytes)
{
    struct oomd_victim *one = get(v, head->id);
    if (one == NULL) return;
    if (!has_bytes_left(v, one->process->uid) || !oomd_capture_add(&one->capture, head, bytes))
        one->dropped_events++;
}

void
oomd_victims_sweep(struct oomd_victims *v, struct oomd_probe *probe, uint64_t now_ns)
{
    for (uint32_t slot = 0; slot < SDB_OOM_VICTIMS; slot++) {
        struct sdb_oom_victim facts;
        if (oomd_probe_victim(probe, slot, &facts) != 0 || facts.life == SDB_OOM_FREE) continue;
        bool orphan = facts.life != SDB_OOM_DEAD && facts.armed_ns + orphan_wait_ns < now_ns &&
                      !oomd_probe_watches(probe, facts.tgid, facts.id);
        if (facts.life != SDB_OOM_DEAD && !orphan) continue;
        oomd_probe_consume_data(probe);
        struct sdb_oom_control e = {
            .type = SDB_OOM_E_FINISHED, .slot = slot, .at_ns = now_ns, .victim = facts};
        oomd_victims_control(v, &e, now_ns);
        oomd_probe_free_victim(probe, slot);
    }
}

/* A thread that hangs in the kernel must not keep the slot: who has many such would have them all. */
static void
free_slot(struct oomd_probe *probe, const struct oomd_victim *one)
{
    struct sdb_oom_victim facts;
    if (one->finished || one->overflow || one->slot >= SDB_OOM_VICTIMS) return;
    if (oomd_probe_victim(probe, one->slot, &facts) == 0 && facts.id == one->process->id &&
        facts.life != SDB_OOM_FREE)
        oomd_probe_free_victim(probe, one->slot);
}

struct oomd_victim *
oomd_victims_take(struct oomd_victims *v, struct oomd_probe *probe, oomd_victims_rank *rank,
                  void *context, uint64_t now_ns)
{
    size_t best = v->count;
    int64_t lowest = 0;
    for (size_t i = 0; i < v->count; i++) {
        struct oomd_victim *one = v->victims[i];
        if (one->due_ns > now_ns) continue;
        int64_t r = rank(context, one, now_ns);
        if (r < 0 || (best < v->count && r >= lowest)) continue;
        lowest = r;
        best = i;
    }
    if (best == v->count) return NULL;
    struct oomd_victim *one = v->victims[best];
    for (size_t k = best + 1; k < v->count; k++) v->victims[k - 1] = v->victims[k];
    v->count--;
    free_slot(probe, one);
    return one;
}

size_t
oomd_victims_count(const struct oomd_victims *v)
{
    return v->count;
}

uint64_t
oomd_victims_next_due(const struct oomd_victims *v)
{
    uint64_t due = UINT64_MAX;
    for (size_t i = 0; i < v->count; i++)
        if (v->victims[i]->due_ns < due) due = v->victims[i]->due_ns;
    return due;
}
