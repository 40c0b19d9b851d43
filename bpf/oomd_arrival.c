/* SPDX-License-Identifier: MIT
 *
 * oomd_arrival.c - see oomd_arrival.h.
 *
 * Runs on: daemon
 */
#include "oomd_arrival.h"

#include <stdlib.h>
#include <string.h>
#include "error.h"
#include "oomd_keepers.h"
#include "oomd_log.h"
#include "oomd_probe.h"
#include "oomd_register.h"
#include "oomd_registry.h"

static void
add(struct oomd_arrivals *in, const struct sdb_oom_arrival *a)
{
    struct oomd_register said;
    const char *why;
    struct oomd_process *p = calloc(1, sizeof *p);
    if (p == NULL || oomd_register_parse(&said, &a->said, &why) != SDB_OK) {
        free(p);
        return;
    }
    p->id = a->id;
    p->tgid = a->tgid;
    p->uid = a->uid;
    p->start_ticks = said.start_ticks;
    p->table = said.table;
    p->table_version_known = said.table_version_known;
    p->tid = a->tid;
    p->ring_fd = said.ring_fd;
    oomd_keepers_adopt(in->keepers, p);
    memcpy(p->service, said.service, sizeof p->service);
    if (oomd_registry_add(in->registry, p) != SDB_OK)
        oomd_log_limited("pid %u of uid %u is not watched: too many processes", a->tgid, a->uid);
}

static void
note_gone(struct oomd_arrivals *in, uint64_t id)
{
    if (in->gone_count == in->gone_room) {
        size_t room = in->gone_room ? 2 * in->gone_room : 64;
        uint64_t *more = realloc(in->gone, room * sizeof *more);
        if (more == NULL) return; /* the sweep will find it */
        in->gone = more;
        in->gone_room = room;
    }
    in->gone[in->gone_count++] = id;
}

void
oomd_arrivals_take(struct oomd_arrivals *in, const struct sdb_oom_arrival *a)
{
    struct oomd_register said;
    const char *why = NULL;
    switch (a->type) {
    case SDB_OOM_A_REGISTERED:
        add(in, a);
        break;
    case SDB_OOM_A_REFUSED:
        if (oomd_register_parse(&said, &a->said, &why) == SDB_OK) why = "it is not what it says";
        oomd_log_limited("pid %u of uid %u is not watched: %s", a->tgid, a->uid, why);
        break;
    default:
        note_gone(in, a->id);
    }
}

void
oomd_arrivals_settle(struct oomd_arrivals *in)
{
    for (size_t i = 0; i < in->gone_count; i++) oomd_registry_drop(in->registry, in->gone[i]);
    in->gone_count = 0;
}

static bool
tell(uint64_t *told, uint64_t now, const char *why)
{
    bool more = now != *told;
    if (more)
        oomd_log("%llu registrations were refused: %s", (unsigned long long)(now - *told), why);
    *told = now;
    return more;
}

void
oomd_arrivals_tell(struct oomd_arrivals *in, const struct oomd_probe *probe, uint64_t now_ns)
{
    static const uint64_t pause_ns = 10 * 1000000000ull;
    struct sdb_oom_refusals now;
    if (now_ns < in->next_tell_ns) return;
    oomd_probe_refusals(probe, &now);
    bool more = tell(&in->told.rate, now.rate, "too many of one user");
    more |= tell(&in->told.user_full, now.user_full, "a user has too many processes");
    more |= tell(&in->told.full, now.full, "too many processes");
    more |= tell(&in->told.lost, now.lost, "no room on their way");
    if (more) in->next_tell_ns = now_ns + pause_ns;
}
