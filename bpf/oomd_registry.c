/* SPDX-License-Identifier: MIT
 *
 * oomd_registry.c - see oomd_registry.h. A list: it is looked through some times a second at most.
 *
 * Runs on: daemon
 */
#include "oomd_registry.h"

#include <stdlib.h>
#include "error.h"
#include "oomd_log.h"
#include "oomd_probe.h"

struct oomd_registry {
    struct oomd_probe *probe;
    uint64_t next_id;
    size_t count;
    struct oomd_process *processes[SDB_OOM_PROCESSES];
};

struct oomd_registry *
oomd_registry_new(struct oomd_probe *probe)
{
    struct oomd_registry *r = calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    r->probe = probe;
    r->next_id = 1;
    return r;
}

static struct oomd_process *
take_at(struct oomd_registry *r, size_t i)
{
    struct oomd_process *p = r->processes[i];
    r->processes[i] = r->processes[--r->count];
    return p;
}

static void
drop_at(struct oomd_registry *r, size_t i)
{
    struct oomd_process *p = take_at(r, i);
    if (r->probe) oomd_probe_unwatch(r->probe, p->tgid, p->id);
    oomd_process_free(p);
}

void
oomd_registry_free(struct oomd_registry *r)
{
    if (r == NULL) return;
    while (r->count) drop_at(r, 0);
    free(r);
}

struct oomd_process *
oomd_registry_find(const struct oomd_registry *r, uint32_t tgid)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->processes[i]->tgid == tgid) return r->processes[i];
    return NULL;
}

bool
oomd_registry_has_ring(const struct oomd_registry *r, uint64_t dev, uint64_t ino)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->processes[i]->ring_dev == dev && r->processes[i]->ring_ino == ino) return true;
    return false;
}

size_t
oomd_registry_count(const struct oomd_registry *r)
{
    return r->count;
}

int
oomd_registry_add(struct oomd_registry *r, struct oomd_process *p)
{
    size_t of_user = 0;
    for (size_t i = 0; i < r->count; i++) {
        if (r->processes[i]->tgid == p->tgid) {
            drop_at(r, i--);
            continue;
        }
        of_user += r->processes[i]->uid == p->uid;
    }
    if (r->count == SDB_OOM_PROCESSES || (p->uid != 0 && of_user >= OOMD_PROCESSES_A_USER)) {
        oomd_process_free(p);
        return SDB_ERR_FULL;
    }
    p->id = r->next_id++;
    r->processes[r->count++] = p;
    struct sdb_oom_process watched = {
        .id = p->id, .start_ticks = p->start_ticks, .table = p->table};
    if (r->probe && oomd_probe_watch(r->probe, p->tgid, &watched) != 0) {
        drop_at(r, r->count - 1);
        return SDB_ERR_IO;
    }
    return SDB_OK;
}

struct oomd_process *
oomd_registry_take(struct oomd_registry *r, uint64_t id)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->processes[i]->id == id) return take_at(r, i);
    return NULL;
}

void
oomd_registry_drop(struct oomd_registry *r, uint64_t id)
{
    for (size_t i = 0; i < r->count; i++) {
        if (r->processes[i]->id != id) continue;
        drop_at(r, i);
        return;
    }
}

void
oomd_registry_sweep(struct oomd_registry *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (oomd_start_ticks(r->processes[i]->tgid) != r->processes[i]->start_ticks)
            drop_at(r, i--);
}
