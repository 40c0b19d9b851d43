/* SPDX-License-Identifier: MIT
 *
 * oomd_victim.h - the processes that are being killed: collects what the probes say of each until the last
 * thread is gone, then hands it on to be written. Every kill that was noticed leaves this with a dump or a
 * log line that says why not.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_VICTIM_H
#define SDB_OOMD_VICTIM_H

#include <stdbool.h>
#include "oomd_capture.h"
#include "oomd_process.h"

enum {
    OOMD_VICTIMS_MAX = 1024,       /* that wait to be written ... */
    OOMD_VICTIMS_OTHERS = 896,     /* ... of them of all users but root ... */
    OOMD_VICTIMS_A_USER = 8,       /* ... and of one, when others wait, too */
    OOMD_CAPTURES_ROOT = 32 << 20, /* bytes of what the probes copied */
    OOMD_CAPTURES_OTHERS = 64 << 20,
    OOMD_CAPTURES_A_USER = 8 << 20,
};

struct oomd_victim {
    struct oomd_process *process; /* owned */
    struct sdb_oom_victim facts;  /* the newest word of the probes */
    struct oomd_capture capture;
    bool armed, captured, finished, overflow;
    uint64_t dropped_events; /* no memory left here */
    uint64_t due_ns;         /* monotonic: to be written then at the latest */
    uint64_t armed_realtime_ns;
    uint32_t nth;  /* of its user's, when it came */
    uint32_t slot; /* of the probes; SDB_OOM_VICTIMS none */
};

struct oomd_registry;
struct oomd_probe;
struct oomd_victims;

struct oomd_victims *oomd_victims_new(struct oomd_registry *registry); /* borrowed */
void oomd_victims_free(struct oomd_victims *v);
void oomd_victims_control(struct oomd_victims *v, const struct sdb_oom_control *e, uint64_t now_ns);
void oomd_victims_data(struct oomd_victims *v, const struct sdb_oom_data_header *head,
                       const uint8_t *bytes);

/* Slots that the probes could not free, or whose process is gone without a word. */
void oomd_victims_sweep(struct oomd_victims *v, struct oomd_probe *probe, uint64_t now_ns);

/* What to write first: the rank of one that is due, lower is sooner; negative: not now. */
typedef int64_t oomd_victims_rank(void *context, const struct oomd_victim *v, uint64_t now_ns);

/* The next one to be written, now the caller's; NULL when none may be. The probes' slot is free then, even if a thread of
 * the victim still hangs. */
struct oomd_victim *oomd_victims_take(struct oomd_victims *v, struct oomd_probe *probe,
                                      oomd_victims_rank *rank, void *context, uint64_t now_ns);
size_t oomd_victims_count(const struct oomd_victims *v);
uint64_t oomd_victims_next_due(const struct oomd_victims *v); /* UINT64_MAX none */
void oomd_victim_free(struct oomd_victim *v);

#endif
