/* SPDX-License-Identifier: MIT
 *
 * oomd_probe.h - the probes in the kernel: loading them, telling them whom to watch, hearing from them. The only
 * file of the daemon that knows libbpf.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_PROBE_H
#define SDB_OOMD_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "oom_event.h"

struct oomd_probe;

struct oomd_probe_calls {
    void (*control)(void *context, const struct sdb_oom_control *e);
    void (*arrival)(void *context, const struct sdb_oom_arrival *a);
    void (*data)(void *context, const struct sdb_oom_data_header *head, const uint8_t *bytes);
    void *context;
};

/* Loads and attaches. NULL with words in `why` (what is missing, and what to do about it). */
struct oomd_probe *oomd_probe_open(const struct oomd_probe_calls *calls, uint64_t channel,
                                   char *why, size_t why_bytes);
void oomd_probe_close(struct oomd_probe *p);

/* For epoll: readable when control events, or arrivals, wait. */
int oomd_probe_fd(const struct oomd_probe *p);
int oomd_probe_arrivals_fd(const struct oomd_probe *p);
/* Calls `control` for what waits, and `data` for all that was sent before each. */
void oomd_probe_consume(struct oomd_probe *p);
/* `data` alone, up to now. To be called by `control` before it looks at a capture. */
void oomd_probe_consume_data(struct oomd_probe *p);
/* Calls `arrival` for what waits, at most so much that the rest of the daemon gets its turn. May be called by `control`, not
 * by `arrival`. */
void oomd_probe_consume_arrivals(struct oomd_probe *p);

/* For one that did not register; refused when the probes know its tgid already. */
int oomd_probe_watch(struct oomd_probe *p, uint32_t tgid, const struct sdb_oom_process *process);
/* true as long as that registration is known to the probes. */
bool oomd_probe_watches(const struct oomd_probe *p, uint32_t tgid, uint64_t id);
/* What was refused so far, and by how many. */
void oomd_probe_refusals(const struct oomd_probe *p, struct sdb_oom_refusals *r);
/* Forgets users who have no process and their whole allowance. */
void oomd_probe_forget_users(struct oomd_probe *p, uint64_t now_ns);
/* 0 with *v, or negative. Slots are 0 .. SDB_OOM_VICTIMS - 1. */
int oomd_probe_victim(const struct oomd_probe *p, uint32_t slot, struct sdb_oom_victim *v);
void oomd_probe_free_victim(struct oomd_probe *p, uint32_t slot);

#endif
