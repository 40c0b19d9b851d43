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
    uint64_t next_found;
    size_t count;
    struct oomd_process *processes[SDB_OOM_PROCESSES];
};

struct oomd_registry *
oomd_registry_new(struct oomd_probe *probe)
{
    struct oomd_registry *r = calloc(1, sizeof *r);
    if (r == NULL) return NULL;
    r->probe = probe;
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
    oomd_process_free(take_at(r, i));
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

struct oomd_process *
oomd_registry_at(const struct oomd_registry *r, size_t i)
{
    return r->processes[i];
}

size_t
oomd_registry_count(const struct oomd_registry *r)
{
    return r->count;
}

int
oomd_registry_add(struct oomd_registry *r, struct oomd_process *p)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->processes[i]->tgid == p->tgid) drop_at(r, i--);
    if (r->count == SDB_OOM_PROCESSES) { /* more of them ended, unheard, than the sweep has seen */
        oomd_process_free(p);
        return SDB_ERR_FULL;
    }
    r->processes[r->count++] = p;
    return SDB_OK;
}

int
oomd_registry_add_found(struct oomd_registry *r, struct oomd_process *p)
{
    p->id = SDB_OOM_FOUND | r->next_found++;
    struct sdb_oom_process watched = {.id = p->id, .start_ticks = p->start_ticks, .uid = p->uid};
    if (r->probe && oomd_probe_watch(r->probe, p->tgid, &watched) != 0) {
        oomd_process_free(p);
        return SDB_ERR_IO;
    }
    return oomd_registry_add(r, p);
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
        if (!oomd_probe_watches(r->probe, r->processes[i]->tgid, r->processes[i]->id))
            drop_at(r, i--);
}
