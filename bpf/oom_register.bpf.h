/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * oom_register.bpf.h - a process registers: who may, how often, how many. It speaks from its own context
 * (oom_protocol.h), so what is noted here is the kernel's own word on who it is; only `said` is its own.
 *
 * A process is watched from the instant at which it is put into `processes`: should it become another program
 * at the same time, P5 comes later and forgets it.
 *
 * Runs on: BPF, the context of the process that registers
 */
#ifndef SDB_OOM_REGISTER_BPF_H
#define SDB_OOM_REGISTER_BPF_H

enum {
    NS_A_REGISTRATION = 1000000000 / SDB_OOM_USER_A_SECOND,
};

const volatile __u64 channel = 0; /* of this daemon; set before the load */

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, SDB_OOM_ARRIVAL_RING_BYTES);
} arrivals SEC(".maps");

/* The same for root's processes: nobody else can fill it. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, SDB_OOM_ARRIVAL_RING_BYTES);
} root_arrivals SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, SDB_OOM_USERS);
    __type(key, __u32);
    __type(value, struct sdb_oom_user);
} users SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sdb_oom_refusals);
} refusals SEC(".maps");

/* The entry of that user, made when there is none; *bucket is its key. */
static __always_inline struct sdb_oom_user *
user_of(__u32 uid, __u32 *bucket)
{
    struct sdb_oom_user none = {0}, *u;
    *bucket = uid;
    bpf_map_update_elem(&users, bucket, &none, BPF_NOEXIST);
    u = bpf_map_lookup_elem(&users, bucket);
    if (u) return u;
    *bucket = SDB_OOM_USERS_REST;
    bpf_map_update_elem(&users, bucket, &none, BPF_NOEXIST);
    return bpf_map_lookup_elem(&users, bucket);
}

/* A bucket of SDB_OOM_USER_BURST that fills by SDB_OOM_USER_A_SECOND. */
static __always_inline bool
may_register(struct sdb_oom_user *u)
{
    __u64 now = bpf_ktime_get_ns(), full = u->allowance_ns > now ? u->allowance_ns : now;
    if (full - now > (__u64)(SDB_OOM_USER_BURST - 1) * NS_A_REGISTRATION) return false;
    u->allowance_ns = full + NS_A_REGISTRATION;
    return true;
}

/* Two processors may pass the check at once: then there is one more. */
static __always_inline bool
enter(struct sdb_oom_refusals *r, struct sdb_oom_user *u)
{
    if (u->processes >= SDB_OOM_PROCESSES_A_USER) {
        __sync_fetch_and_add(&r->user_full, 1);
        return false;
    }
    if (r->others >= SDB_OOM_PROCESSES_OTHERS) {
        __sync_fetch_and_add(&r->full, 1);
        return false;
    }
    __sync_fetch_and_add(&u->processes, 1);
    __sync_fetch_and_add(&r->others, 1);
    return true;
}

static __always_inline void
leave(__u32 bucket)
{
    __u32 zero = 0;
    struct sdb_oom_refusals *r = bpf_map_lookup_elem(&refusals, &zero);
    struct sdb_oom_user *u = bpf_map_lookup_elem(&users, &bucket);
    if (r) __sync_fetch_and_add(&r->others, -1);
    if (u) __sync_fetch_and_add(&u->processes, -1);
}

static __always_inline struct sdb_oom_arrival *
begin_arrival(__u32 type, __u32 tgid, __u32 uid, __u64 id)
{
    struct sdb_oom_arrival *a = uid == 0 ? bpf_ringbuf_reserve(&root_arrivals, sizeof *a, 0)
                                         : bpf_ringbuf_reserve(&arrivals, sizeof *a, 0);
    if (!a) return NULL;
    __builtin_memset(a, 0, sizeof *a);
    a->type = type;
    a->tgid = tgid;
    a->tid = (__u32)bpf_get_current_pid_tgid();
    a->uid = uid;
    a->id = id;
    return a;
}

/* Takes it out of the map; type 0: the daemon hears of it in another way. */
static __always_inline void
forget(__u32 tgid, struct sdb_oom_process *p, __u32 type)
{
    __u64 id = p->id;
    __u32 uid = p->uid, bucket = p->bucket;
    bool counted = p->counted;
    if (bpf_map_delete_elem(&processes, &tgid) != 0) return;
    if (counted) leave(bucket);
    struct sdb_oom_arrival *a = type ? begin_arrival(type, tgid, uid, id) : NULL;
    if (a) bpf_ringbuf_submit(a, BPF_RB_FORCE_WAKEUP); /* else the daemon finds out by the map */
}

/* 0 when the name is not the word. */
static __always_inline __u64
address_in_word(const char *name)
{
    static const char magic[] = SDB_OOM_WORD_MAGIC;
    unsigned char word[SDB_OOM_WORD_BYTES] = {0};
    __u64 address = 0;
    if (bpf_probe_read_kernel_str(word, sizeof word, name) < 0) return 0;
#pragma unroll
    for (int i = 0; i < SDB_OOM_WORD_MAGIC_BYTES; i++)
        if (word[i] != (unsigned char)magic[i]) return 0;
#pragma unroll
    for (int i = 0; i < SDB_OOM_WORD_ADDRESS_BYTES; i++)
        address |= (__u64)(word[SDB_OOM_WORD_MAGIC_BYTES + i] & 0x7f) << 7 * i;
    return address;
}

static __always_inline bool
is_same(const struct sdb_oom_process *p, const struct sdb_oom_register *said)
{
    return p->start_ticks == said->start_ticks && p->table == said->table_address &&
           p->recording == said->recording && p->ring_fd == said->ring_fd && p->id < SDB_OOM_FOUND;
}

/* The same as oomd_register_parse, which has the words. */
static __always_inline bool
is_valid(const struct sdb_oom_register *said)
{
    return said->version == SDB_OOM_VERSION && said->bytes == sizeof *said &&
           said->table_address % 8 == 0 && said->table_address < 1ull << 56 &&
           said->ring_fd <= 0x7fffffff && said->reserved32 == 0 && said->reserved[0] == 0 &&
           said->reserved[1] == 0;
}

static __always_inline void
register_task(struct task_struct *task, __u64 address)
{
    struct sdb_oom_register said;
    __u32 zero = 0, tgid = bpf_get_current_pid_tgid() >> 32;
    struct sdb_oom_refusals *r = bpf_map_lookup_elem(&refusals, &zero);
    if (!r || bpf_probe_read_user(&said, sizeof said, (const void *)address)) return;
    if (said.magic != SDB_OOM_MAGIC || said.channel != channel) return;

    const struct cred *cred = BPF_CORE_READ(task, cred);
    __u32 uid = BPF_CORE_READ(cred, euid.val);
    struct sdb_oom_process *old = bpf_map_lookup_elem(&processes, &tgid);
    if (old && old->uid == uid && (old->victim || is_same(old, &said))) return;

    __u32 bucket = 0;
    struct sdb_oom_user *u = uid ? user_of(uid, &bucket) : NULL;
    if (uid && (!u || !may_register(u))) {
        __sync_fetch_and_add(&r->rate, 1);
        return;
    }
    struct sdb_oom_process p = {
        .start_ticks = BPF_CORE_READ(task, group_leader, start_boottime) / SDB_OOM_TICK_NS,
        .table = said.table_address,
        .recording = said.recording,
        .uid = uid,
        .ring_fd = said.ring_fd,
        .counted = uid != 0,
        .bucket = bucket,
    };
    bool plain = BPF_CORE_READ(cred, uid.val) == uid && BPF_CORE_READ(cred, suid.val) == uid &&
                 BPF_CORE_READ(cred, fsuid.val) == uid;
    bool fine = plain && said.start_ticks == p.start_ticks && is_valid(&said);
    struct sdb_oom_arrival *a =
        begin_arrival(fine ? SDB_OOM_A_REGISTERED : SDB_OOM_A_REFUSED, tgid, uid, 0);
    if (!a) {
        __sync_fetch_and_add(&r->lost, 1);
        return;
    }
    a->plain = plain;
    __builtin_memcpy(&a->said, &said, sizeof said);
    if (!fine) {
        bpf_ringbuf_submit(a, BPF_RB_FORCE_WAKEUP);
        return;
    }
    if (old) forget(tgid, old, SDB_OOM_A_GONE);
    if (u && !enter(r, u)) {
        bpf_ringbuf_discard(a, 0);
        return;
    }
    a->id = p.id = __sync_fetch_and_add(&r->next_id, 1) + 1;
    if (bpf_map_update_elem(&processes, &tgid, &p, BPF_NOEXIST)) {
        if (u) leave(bucket);
        bpf_ringbuf_discard(a, 0);
        __sync_fetch_and_add(&r->lost, 1);
        return;
    }
    bpf_ringbuf_submit(a, BPF_RB_FORCE_WAKEUP);
}

#endif
