/* SPDX-License-Identifier: MIT
 *
 * host.h - what a tick asks of the world around it: clocks, cpus, sleep, memory figures, and the two questions to the
 * VM. In a process these are system calls and functions of the VM; a test puts its own in their place, and then nothing
 * that the scanner sees depends on when it runs.
 */
#ifndef SDB_HOST_H
#define SDB_HOST_H

#include <stdbool.h>
#include <stdint.h>

struct sdb_memory;
struct sdb_memory_probe;
struct sdb_process_memory;

struct sdb_host {
    /* ns */
    uint64_t (*monotonic_ns)(void);
    uint64_t (*realtime_ns)(void);
    /* CPU time: of a thread of this process, 0 when there is none of this tid; of the calling thread; of the process */
    uint64_t (*thread_cpu_ns)(uint32_t tid);
    uint64_t (*own_cpu_ns)(void);
    uint64_t (*process_cpu_ns)(void);

    /* the cpu that the caller runs on; whether this process may use one cpu only */
    int (*cpu)(void);
    bool (*one_cpu)(void);

    /* Sleeps up to a moment of the monotonic clock. */
    void (*sleep_until)(uint64_t deadline_ns);
    /* Sleeps while *parked is 1, at most timeout_ns, 0: for ever; may return early. */
    void (*wait_parked)(uint64_t *parked, uint64_t timeout_ns);

    /* core/memory_probe.h */
    void (*read_memory)(const struct sdb_memory_probe *probe, struct sdb_memory *out);
    void (*read_process_memory)(struct sdb_process_memory *out);

    /* Whether a GC runs now. */
    int (*during_gc)(void);
    /* Something was asked by way of the mailbox: sees that somebody takes it. */
    void (*request_symbolizer)(void);
};

/* This machine; during_gc says no, and request_symbolizer does nothing: the VM's part is to be filled in. */
extern const struct sdb_host sdb_real_host;

#endif
