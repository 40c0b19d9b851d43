/* SPDX-License-Identifier: MIT
 *
 * kernel_types.h - the few kernel structs the probes look into, with only the fields they use. CO-RE finds
 * the real offsets in the running kernel's BTF when the program is loaded, so no vmlinux.h is kept here.
 *
 * Runs on: BPF
 */
#ifndef SDB_KERNEL_TYPES_H
#define SDB_KERNEL_TYPES_H

#include <linux/types.h>
#include <linux/bpf.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
    int counter;
} atomic_t;

struct signal_struct {
    atomic_t live; /* threads not yet in do_exit */
};

typedef struct {
    unsigned int val;
} kuid_t;

struct cred {
    kuid_t uid, suid, euid, fsuid;
};

typedef struct {
    long counter;
} atomic_long_t;

struct page_counter { /* in pages */
    atomic_long_t usage;
    unsigned long max, watermark;
};

struct cgroup_subsys_state {
    int id;
};

struct mem_cgroup {
    struct cgroup_subsys_state css;
    struct page_counter memory;
};

struct css_set {
    struct cgroup_subsys_state *subsys[8]; /* as many as the kernel has controllers */
};

enum cgroup_subsys_id {
    memory_cgrp_id = 4, /* only the name counts: CO-RE finds the number */
};

struct task_struct {
    int pid, tgid;
    struct task_struct *group_leader;
    struct signal_struct *signal;
    const struct cred *cred;
    struct css_set *cgroups;
    __u64 start_boottime; /* 5.5+ */
};

struct kernel_siginfo {
    int si_code;
};

struct trace_entry {
    int pid;
};

/* 6.8+ has the figures; before, only pid at the same offset */
struct trace_event_raw_mark_victim {
    struct trace_entry ent;
    int pid;
    unsigned long total_vm, anon_rss, file_rss, shmem_rss, pgtables;
    short oom_score_adj;
};

#pragma clang attribute pop

#endif
