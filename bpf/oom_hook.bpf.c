// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * oom_hook.bpf.c - the probes: notice that a registered process is sent SIGKILL, and copy its stacks out of
 * its own memory while one of its threads dies. Not here: what any of it means (the daemon), reading the
 * victim's memory (oom_capture.bpf.h).
 *
 *   P1 signal_generate     claims a slot. Runs under the victim's siglock: no thread can overtake it.
 *   P2 mark_victim         only confirms: it fires after the signal was sent, too late to arm anything.
 *   P3 signal_deliver      the first thread copies.
 *   P4 sched_process_exit  the last thread ends the capture, copied or not.
 *   P5 sched_process_exec  another program has the pid now: forget it.
 *   P6 task_rename         a process registers (oom_register.bpf.h).
 *
 * Runs on: BPF; P1 in the killer, P2 in whoever asked for memory, P3-P5 in the victim, P6 in who registers
 */
#include "kernel_types.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "oom_event.h"
#include "oom_capture.bpf.h"
#include "oom_register.bpf.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

enum {
    SIGNAL_KILL = 9,
    SIGNAL_DELIVERED = 0, /* TRACE_SIGNAL_DELIVERED: not ignored, not already pending */
    CODE_USER = 0,
    CODE_KERNEL = 128,
};

static __always_inline struct sdb_oom_victim *
victim_at(__u64 number)
{
    __u32 index = number;
    return bpf_map_lookup_elem(&victims, &index);
}

static __always_inline struct sdb_oom_control *
begin_control(__u32 type, __u32 slot)
{
    struct sdb_oom_control *e = bpf_ringbuf_reserve(&control, sizeof *e, 0);
    if (!e) return NULL;
    e->type = type;
    e->slot = slot;
    e->at_ns = bpf_ktime_get_ns();
    return e;
}

/* false when the ring is full; the slot counts it. */
static __always_inline int
send_victim(__u32 type, __u32 slot, struct sdb_oom_victim *v)
{
    struct sdb_oom_control *e = begin_control(type, slot);
    if (!e) {
        __sync_fetch_and_add(&v->events_lost, 1);
        return 0;
    }
    bpf_probe_read_kernel(&e->victim, sizeof e->victim, v);
    bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
    return 1;
}

static __always_inline struct sdb_oom_process *
registered(struct task_struct *task)
{
    __u32 tgid = BPF_CORE_READ(task, tgid);
    struct sdb_oom_process *p = bpf_map_lookup_elem(&processes, &tgid);
    if (!p) return NULL;
    __u64 ticks = BPF_CORE_READ(task, group_leader, start_boottime) / SDB_OOM_TICK_NS;
    return p->start_ticks == ticks ? p : NULL;
}

/* The slot of this process, when it is being killed. */
static __always_inline struct sdb_oom_victim *
victim_of(const struct sdb_oom_process *p)
{
    __u64 number = p->victim;
    if (number == 0) return NULL;
    struct sdb_oom_victim *v = victim_at(number - 1);
    return v && v->id == p->id ? v : NULL;
}

static __always_inline int
signal_code(struct kernel_siginfo *info)
{
    if (info == NULL) return CODE_USER;               /* SEND_SIG_NOINFO */
    if ((unsigned long)info == 1) return CODE_KERNEL; /* SEND_SIG_PRIV */
    return BPF_CORE_READ(info, si_code);
}

/* Figures of its memory cgroup. */
static __always_inline void
fill_cgroup(struct sdb_oom_victim *v, struct task_struct *task)
{
    v->cgroup_limit_pages = v->cgroup_peak_pages = v->cgroup_usage_pages = 0;
    if (!bpf_core_type_exists(struct mem_cgroup) ||
        !bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
        return;
    struct css_set *set = BPF_CORE_READ(task, cgroups);
    __u64 number = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
    __u64 at = (__u64)set + bpf_core_field_offset(struct css_set, subsys) + 8 * number, css = 0;
    if (!set || bpf_probe_read_kernel(&css, sizeof css, (const void *)at) || !css) return;
    struct mem_cgroup *group =
        (struct mem_cgroup *)(css - bpf_core_field_offset(struct mem_cgroup, css));
    v->cgroup_limit_pages = BPF_CORE_READ(group, memory.max);
    v->cgroup_peak_pages = BPF_CORE_READ(group, memory.watermark);
    v->cgroup_usage_pages = BPF_CORE_READ(group, memory.usage.counter);
}

static __always_inline void
fill_victim(struct sdb_oom_victim *v, const struct sdb_oom_process *p, struct task_struct *task,
            struct kernel_siginfo *info)
{
    __u64 sender = bpf_get_current_pid_tgid();
    v->id = p->id;
    v->uid = p->uid;
    v->unused = 0;
    v->table = p->table;
    v->armed_ns = bpf_ktime_get_ns();
    v->captured_ns = v->capture_cost_ns = v->finished_ns = 0;
    v->bytes = v->truncated_bytes = v->events_lost = 0;
    v->total_vm_kb = v->anon_rss_kb = v->file_rss_kb = v->shmem_rss_kb = v->pgtables_kb = 0;
    v->tgid = BPF_CORE_READ(task, tgid);
    v->target_tid = BPF_CORE_READ(task, pid);
    v->flags = p->table ? 0 : SDB_OOM_F_NO_TABLE;
    v->si_code = signal_code(info);
    v->sender_tgid = sender >> 32;
    v->sender_tid = (__u32)sender;
    v->sender_uid = (__u32)bpf_get_current_uid_gid();
    v->oom_score_adj = 0;
    v->threads = v->truncated_threads = v->read_errors = v->deliveries = 0;
    bpf_get_current_comm(v->sender_comm, sizeof v->sender_comm);
    fill_cgroup(v, task);
}

struct count {
    __u32 uid, slots;
};

static long
count_slot(__u32 index, void *ctx)
{
    struct count *c = ctx;
    struct sdb_oom_victim *v = victim_at(index);
    if (v && v->life != SDB_OOM_FREE && v->uid == c->uid) c->slots++;
    return 0;
}

/* Root has slots of its own, and nobody else has all of the others. */
static __always_inline bool
may_have_slot(__u32 uid)
{
    struct count c = {.uid = uid};
    if (uid == 0) return true;
    bpf_loop(SDB_OOM_VICTIMS, count_slot, &c, 0);
    return c.slots < SDB_OOM_VICTIMS_A_USER;
}

/* signal_generate(int sig, struct kernel_siginfo *, struct task_struct *, int group, int result) */
SEC("raw_tp/signal_generate")
int
sdb_p1_signal_generate(struct bpf_raw_tracepoint_args *ctx)
{
    if ((int)ctx->args[0] != SIGNAL_KILL || (int)ctx->args[4] != SIGNAL_DELIVERED) return 0;
    struct kernel_siginfo *info = (struct kernel_siginfo *)ctx->args[1];
    struct task_struct *task = (struct task_struct *)ctx->args[2];
    struct sdb_oom_process *p = registered(task);
    if (!p || p->victim) return 0;

    __u32 first = p->uid == 0 ? 0 : SDB_OOM_VICTIMS_ROOT;
    if (!may_have_slot(p->uid)) first = SDB_OOM_VICTIMS;
    for (__u32 i = first; i < SDB_OOM_VICTIMS; i++) {
        struct sdb_oom_victim *v = victim_at(i);
        if (!v) return 0;
        if (__sync_val_compare_and_swap(&v->life, SDB_OOM_FREE, SDB_OOM_CLAIMED) != SDB_OOM_FREE)
            continue;
        fill_victim(v, p, task, info);
        __sync_val_compare_and_swap(&v->life, SDB_OOM_CLAIMED, SDB_OOM_ARMED);
        p->victim = i + 1;
        send_victim(SDB_OOM_E_ARMED, i, v);
        return 0;
    }
    struct sdb_oom_control *e = begin_control(SDB_OOM_E_OVERFLOW, SDB_OOM_VICTIMS);
    if (!e) return 0;
    fill_victim(&e->victim, p, task, info);
    bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
    return 0;
}

static __always_inline void
fill_figures(struct sdb_oom_victim *v, struct trace_event_raw_mark_victim *ctx)
{
    v->total_vm_kb = v->anon_rss_kb = v->file_rss_kb = v->shmem_rss_kb = v->pgtables_kb = 0;
    v->oom_score_adj = 0;
    if (!bpf_core_field_exists(ctx->total_vm)) return;
    v->total_vm_kb = BPF_CORE_READ(ctx, total_vm);
    v->anon_rss_kb = BPF_CORE_READ(ctx, anon_rss);
    v->file_rss_kb = BPF_CORE_READ(ctx, file_rss);
    v->shmem_rss_kb = BPF_CORE_READ(ctx, shmem_rss);
    v->pgtables_kb = BPF_CORE_READ(ctx, pgtables);
    v->oom_score_adj = BPF_CORE_READ(ctx, oom_score_adj);
}

SEC("tp/oom/mark_victim")
int
sdb_p2_mark_victim(struct trace_event_raw_mark_victim *ctx)
{
    __u32 pid = BPF_CORE_READ(ctx, pid);
    for (__u32 i = 0; i < SDB_OOM_VICTIMS; i++) {
        struct sdb_oom_victim *v = victim_at(i);
        if (!v) return 0;
        /* a process that was dying anyway is marked too: only the kernel's own kill is an OOM kill */
        if (v->life < SDB_OOM_ARMED || v->target_tid != pid || v->si_code != CODE_KERNEL) continue;
        fill_figures(v, ctx);
        __sync_fetch_and_or(&v->flags, SDB_OOM_F_CONFIRMED);
    }
    /* the daemon may have been told already that this one is dead */
    struct sdb_oom_control *e = begin_control(SDB_OOM_E_MARKED, SDB_OOM_VICTIMS);
    if (!e) return 0;
    e->victim.id = 0;
    e->victim.target_tid = pid;
    fill_figures(&e->victim, ctx);
    bpf_ringbuf_submit(e, BPF_RB_FORCE_WAKEUP);
    return 0;
}

/* Copies once per victim; the thread that wins the exchange does it. */
static __always_inline void
capture_once(struct sdb_oom_victim *v, __u32 slot, __u32 flags)
{
    if (__sync_val_compare_and_swap(&v->life, SDB_OOM_ARMED, SDB_OOM_CAPTURING) != SDB_OOM_ARMED)
        return;
    v->captured_ns = bpf_ktime_get_ns();
    if (flags) __sync_fetch_and_or(&v->flags, flags);
    if (v->table) capture_victim(v, slot);
    v->capture_cost_ns = bpf_ktime_get_ns() - v->captured_ns;
    __sync_fetch_and_or(&v->flags, SDB_OOM_F_CAPTURE_DONE);
    __sync_val_compare_and_swap(&v->life, SDB_OOM_CAPTURING, SDB_OOM_CAPTURED);
    send_victim(SDB_OOM_E_CAPTURED, slot, v);
}

/* signal_deliver(int sig, struct kernel_siginfo *, struct k_sigaction *) */
SEC("raw_tp/signal_deliver")
int
sdb_p3_signal_deliver(struct bpf_raw_tracepoint_args *ctx)
{
    if ((int)ctx->args[0] != SIGNAL_KILL) return 0;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct sdb_oom_process *p = registered(task);
    if (!p) return 0;
    struct sdb_oom_victim *v = victim_of(p);
    if (!v) return 0;
    __sync_fetch_and_add(&v->deliveries, 1);
    capture_once(v, p->victim - 1, 0);
    return 0;
}

SEC("raw_tp/sched_process_exit")
int
sdb_p4_sched_process_exit(struct bpf_raw_tracepoint_args *ctx)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    struct sdb_oom_process *p = bpf_map_lookup_elem(&processes, &tgid);
    if (!p) return 0;
    struct task_struct *task = (struct task_struct *)bpf_get_current_task();
    struct sdb_oom_victim *v = victim_of(p);
    if (v && v->life == SDB_OOM_ARMED) capture_once(v, p->victim - 1, SDB_OOM_F_AT_EXIT);
    if (BPF_CORE_READ(task, signal, live.counter) != 0) return 0;

    if (v) {
        v->finished_ns = bpf_ktime_get_ns();
        /* without that event the slot keeps the facts until the daemon looks through the map */
        __u64 life =
            send_victim(SDB_OOM_E_FINISHED, p->victim - 1, v) ? SDB_OOM_FREE : SDB_OOM_DEAD;
        __sync_lock_test_and_set(&v->life, life);
    }
    forget(tgid, p, v ? 0 : SDB_OOM_A_GONE);
    return 0;
}

/* The address registered belongs to the memory of the program before; the new one may be another user's. */
SEC("raw_tp/sched_process_exec")
int
sdb_p5_sched_process_exec(struct bpf_raw_tracepoint_args *ctx)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    struct sdb_oom_process *p = bpf_map_lookup_elem(&processes, &tgid);
    if (!p) return 0;
    struct sdb_oom_victim *v = victim_of(p);
    if (v) return 0; /* killed in the middle of exec: P4 ends it; the capture compares the magic */
    forget(tgid, p, SDB_OOM_A_EXEC);
    return 0;
}

/* task_rename(struct task_struct *, const char *comm) */
SEC("raw_tp/task_rename")
int
sdb_p6_task_rename(struct bpf_raw_tracepoint_args *ctx)
{
    struct task_struct *task = (struct task_struct *)ctx->args[0];
    __u64 address = address_in_word((const char *)ctx->args[1]);
    if (address == 0 || task != (struct task_struct *)bpf_get_current_task()) return 0;
    register_task(task, address);
    return 0;
}
