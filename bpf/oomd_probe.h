/* SPDX-License-Identifier: MIT
 *
 * oomd_probe.h - the probes in the kernel: loading them, telling them whom to watch, hearing from them. The only
 * file of the daemon that knows libbpf.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_PROBE_H
#define SDB_OOMD_PROBE_H

#include <stddef.h>
#include <stdint.h>
#include "oom_event.h"

struct oomd_probe;

struct oomd_probe_calls {
    void (*control)(void *context, const struct sdb_oom_control *e);
    void (*data)(void *context, const struct sdb_oom_data_header *head, const uint8_t *bytes);
    void *context;
};

/* Loads and attaches. NULL with words in `why` (what is missing, and what to do about it). */
struct oomd_probe *oomd_probe_open(const struct oomd_probe_calls *calls, char *why,
                                   size_t why_bytes);
void oomd_probe_close(struct oomd_probe *p);

int oomd_probe_fd(const struct oomd_probe *p); /* for epoll: readable when control events wait */
/* Calls `control` for what waits, and `data` for all that was sent before each. */
void oomd_probe_consume(struct oomd_probe *p);
/* `data` alone, up to now. To be called by `control` before it looks at a capture. */
void oomd_probe_consume_data(struct oomd_probe *p);

int oomd_probe_watch(struct oomd_probe *p, uint32_t tgid, const struct sdb_oom_process *process);
void oomd_probe_unwatch(struct oomd_probe *p, uint32_t tgid, uint64_t id);
/* 0 with *v, or negative. Slots are 0 .. SDB_OOM_VICTIMS - 1. */
int oomd_probe_victim(const struct oomd_probe *p, uint32_t slot, struct sdb_oom_victim *v);
void oomd_probe_free_victim(struct oomd_probe *p, uint32_t slot);

#endif
