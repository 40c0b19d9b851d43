/* SPDX-License-Identifier: MIT
 *
 * memory_probe.h - how much memory this process has, and how near its cgroup is to the limit at which the kernel
 * kills. cgroup v1 and v2; the limit that counts is the tightest of the process's own cgroup and its ancestors.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_MEMORY_PROBE_H
#define SDB_MEMORY_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/own_files.h"

struct sdb_memory { /* bytes; 0: not known, limit 0: none */
    uint64_t rss, cgroup_usage, cgroup_limit;
};

struct sdb_memory_probe {           /* zero-filled before open. owner: scanner */
    struct sdb_own_fd statm, usage; /* valid when open */
    bool open;
    uint64_t limit, page_bytes;
};

/* Finds the files. Never fails: what cannot be read stays unknown. Blocks on /proc and /sys only. */
void sdb_memory_probe_open(struct sdb_memory_probe *p);
void sdb_memory_probe_close(struct sdb_memory_probe *p);
/* In a forked child, for the probe of its parent. */
void sdb_memory_probe_forget(struct sdb_memory_probe *p);
/* Two reads, about 2 us. */
void sdb_memory_probe_read(const struct sdb_memory_probe *p, struct sdb_memory *out);

struct sdb_process_memory { /* bytes, of /proc/self/status */
    uint64_t rss_anon, rss_file, rss_shmem, swap, peak_rss, threads;
};
/* The kernel's figures for this process; one read, about 20 us. */
void sdb_memory_probe_status(struct sdb_process_memory *out);

/* For tests: parses the text of /proc/PID/cgroup. v2: the unified path is used when no memory controller line is
 * there. Returns the path within the hierarchy, or NULL. buffer is changed. */
const char *sdb_memory_probe_cgroup_path(char *buffer, bool *v2);

#endif
