/* SPDX-License-Identifier: MIT
 *
 * oomd_arrival.h - processes that come and go, as the probes tell it (oom_register.bpf.h): who may be watched was
 * decided there, so this only keeps the registry in step and says what was refused.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_ARRIVAL_H
#define SDB_OOMD_ARRIVAL_H

#include <stddef.h>
#include "oom_event.h"

struct oomd_keepers;
struct oomd_probe;
struct oomd_registry;

struct oomd_arrivals { /* zero-filled but for the pointers, which are borrowed */
    struct oomd_registry *registry;
    struct oomd_keepers *keepers;
    uint64_t *
        gone; /* ids that ended; to be dropped when all that was said of them before has been heard */
    size_t gone_count, gone_room;
    struct sdb_oom_refusals told;
    uint64_t next_tell_ns;
};

void oomd_arrivals_take(struct oomd_arrivals *in, const struct sdb_oom_arrival *a);

/* Drops who is gone. To be called after the control events were consumed. */
void oomd_arrivals_settle(struct oomd_arrivals *in);

/* Each second: log lines for what the probes refused meanwhile, each ten seconds at most. */
void oomd_arrivals_tell(struct oomd_arrivals *in, const struct oomd_probe *probe, uint64_t now_ns);

#endif
