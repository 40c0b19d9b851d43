/* SPDX-License-Identifier: MIT OR GPL-2.0-only
 *
 * oom_capture.bpf.h - copying a dying process's thread table, stacks and pending bytes, from the context of
 * one of its own threads. Everything read is a hostile process's: addresses are only ever handed to
 * bpf_probe_read_user, sizes are bounded, nothing is followed more than once.
 *
 * The first read that is not in memory fails as a whole, so reads go page by page. Interrupts are off:
 * SDB_OOM_CAPTURE_BYTES bounds the time (1 MiB is 0.1 ms of copying; measured in README.md).
 *
 * Runs on: BPF, the victim's context
 */
#ifndef SDB_OOM_CAPTURE_BPF_H
#define SDB_OOM_CAPTURE_BPF_H

enum {
    PAGE = 4096,
    SLOT_BYTES = sizeof(struct sdb_slot),
    SLOTS_A_PAGE = PAGE / SLOT_BYTES,
    PAGES_A_SEGMENT = SDB_SEGMENT_SLOTS / SLOTS_A_PAGE,
};

struct env_event {
    struct sdb_oom_data_header head;
    __u64 words[2 * SDB_OOM_FRAMES];
};

struct thread_event {
    struct sdb_oom_data_header head;
    struct sdb_oom_thread thread;
};

/* Working memory of one victim's capture: only the thread that won CAPTURING touches it. */
struct scratch {
    struct sdb_oom_data_header table_head;
    struct sdb_live_table table; /* follows its head: they are one event */
    struct sdb_slot slots[SLOTS_A_PAGE];
    struct thread_event thread;
    struct env_event envs;
    struct sdb_oom_data data;
    __u8 slack[PAGE]; /* a piece may begin anywhere below data's end: its bound is a page beyond */
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, SDB_OOM_PROCESSES);
    __type(key, __u32);
    __type(value, struct sdb_oom_process);
} processes SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, SDB_OOM_VICTIMS);
    __type(key, __u32);
    __type(value, struct sdb_oom_victim);
} victims SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, SDB_OOM_VICTIMS);
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, SDB_OOM_CONTROL_RING_BYTES);
} control SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, SDB_OOM_DATA_RING_BYTES);
} data SEC(".maps");

/* The same for root's processes: nobody else can fill it. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, SDB_OOM_DATA_RING_BYTES);
} root_data SEC(".maps");

/* What the callbacks of bpf_loop know; they look the maps up again, so only numbers travel. */
struct walk {
    __u32 slot;                 /* of the victim */
    __u32 page;                 /* of the thread table */
    __u64 address, bytes, done; /* copying a range: see copy_piece */
};

static __always_inline struct scratch *
scratch_at(__u32 slot)
{
    return bpf_map_lookup_elem(&scratches, &slot);
}

static __always_inline struct sdb_oom_victim *
capture_victim_at(__u32 slot)
{
    return bpf_map_lookup_elem(&victims, &slot);
}

static __always_inline void
begin_event(struct sdb_oom_data_header *head, const struct sdb_oom_victim *v, __u32 type,
            __u32 thread, __u64 offset)
{
    head->id = v->id;
    head->type = type;
    head->thread = thread;
    head->offset = offset;
    head->bytes = head->read_errors = 0;
}

/* `bytes` must be bounded by the caller where the verifier sees it. */
static __always_inline void
send_event(struct sdb_oom_victim *v, struct sdb_oom_data_header *head, __u32 bytes)
{
    head->bytes = bytes;
    v->bytes += bytes;
    long failed = v->uid == 0
                      ? bpf_ringbuf_output(&root_data, head, sizeof *head + bytes, BPF_RB_NO_WAKEUP)
                      : bpf_ringbuf_output(&data, head, sizeof *head + bytes, BPF_RB_NO_WAKEUP);
    if (failed) __sync_fetch_and_add(&v->events_lost, 1);
}

/* Two numbers that add up to a known size are more than the verifier follows: it is shown a bound for each,
 * and both together lie inside the scratch value. */
static __always_inline long
read_user(void *base, __u64 to, __u64 bytes, __u64 from)
{
    asm volatile("" : "+r"(to), "+r"(bytes));
    if (to > SDB_OOM_STACK_BYTES || bytes > PAGE) return -1;
    return bpf_probe_read_user((__u8 *)base + to, bytes, (const void *)from);
}

static __always_inline int
read_word(struct sdb_oom_victim *v, uint64_t *out, uint64_t address)
{
    if (bpf_probe_read_user(out, sizeof *out, (const void *)address) == 0) return 0;
    v->read_errors++;
    *out = 0;
    return -1;
}

/* One piece of [address, address + bytes) up to the next page boundary, into scratch.data. */
static long
copy_piece(__u32 index, void *ctx)
{
    struct walk *w = ctx;
    struct scratch *s = scratch_at(w->slot);
    if (!s || w->done >= w->bytes) return 1;
    __u64 from = w->address + w->done;
    __u64 room = PAGE - (from & (PAGE - 1)), left = w->bytes - w->done;
    __u64 n = left < room ? left : room;
    __u64 to = w->done;
    if (read_user(s->data.data, to, n, from)) s->data.head.read_errors++;
    w->done += n;
    return 0;
}

static __always_inline void
copy_range(struct sdb_oom_victim *v, struct scratch *s, __u32 slot, __u64 address, __u64 bytes)
{
    struct walk w = {.slot = slot, .address = address, .bytes = bytes};
    bpf_loop(SDB_OOM_STACK_BYTES / PAGE + 1, copy_piece, &w, 0);
    v->read_errors += s->data.head.read_errors;
    if (bytes > SDB_OOM_STACK_BYTES) return; /* for the verifier: callers bound it */
    send_event(v, &s->data.head, bytes);
}

/* ep[-2] and ep[0] of one frame that is in scratch.data already. */
static long
read_env(__u32 index, void *ctx)
{
    struct walk *w = ctx;
    struct scratch *s = scratch_at(w->slot);
    if (!s || index >= SDB_OOM_FRAMES) return 1;
    __u64 at = index * s->table.cfp_bytes;
    if (at + s->table.cfp_bytes > w->bytes) return 1;
    at += s->table.cfp_ep;
    if (at > SDB_OOM_STACK_BYTES - sizeof(__u64)) return 1;
    __u64 ep = 0, words[3] = {0, 0, 0};
    bpf_probe_read_kernel(&ep, sizeof ep, s->data.data + at);
    if (ep < 16 || (ep & 7) || bpf_probe_read_user(words, sizeof words, (const void *)(ep - 16)))
        words[0] = words[2] = 0;
    s->envs.words[2 * index] = words[0];
    s->envs.words[2 * index + 1] = words[2];
    w->done = index + 1;
    return 0;
}

static __always_inline void
capture_frames(struct sdb_oom_victim *v, struct scratch *s, __u32 slot, __u32 number)
{
    struct sdb_oom_thread *t = &s->thread.thread;
    __u64 bytes = t->frame_bytes;
    if (bytes > SDB_OOM_STACK_BYTES) {
        v->truncated_bytes += bytes - SDB_OOM_STACK_BYTES;
        bytes = SDB_OOM_STACK_BYTES;
    }
    if (v->bytes + 2 * bytes > SDB_OOM_CAPTURE_BYTES) {
        v->truncated_bytes += bytes;
        v->truncated_threads++;
        return;
    }
    begin_event(&s->data.head, v, SDB_OOM_D_FRAMES, number, 0);
    copy_range(v, s, slot, t->cfp, bytes);

    begin_event(&s->envs.head, v, SDB_OOM_D_ENVS, number, 0);
    struct walk w = {.slot = slot, .bytes = bytes};
    bpf_loop(SDB_OOM_FRAMES, read_env, &w, 0);
    __u64 env_bytes = w.done * 16;
    if (env_bytes > sizeof s->envs.words) return;
    send_event(v, &s->envs.head, env_bytes);
}

/* One of the 16 slots of the table's page that is in scratch.slots. */
static long
capture_slot(__u32 index, void *ctx)
{
    struct walk *w = ctx;
    struct scratch *s = scratch_at(w->slot);
    struct sdb_oom_victim *v = capture_victim_at(w->slot);
    if (!s || !v || index >= SLOTS_A_PAGE) return 1;
    if (s->slots[index].life != SDB_SLOT_LIVE) return 0;
    v->threads++;
    if (v->bytes > SDB_OOM_CAPTURE_BYTES) {
        v->truncated_threads++;
        return 0;
    }
    struct sdb_oom_thread *t = &s->thread.thread;
    __u32 number = w->page * SLOTS_A_PAGE + index;
    __builtin_memcpy(&t->slot, &s->slots[index], sizeof t->slot);
    t->ec = t->vm_stack = t->vm_stack_bytes = t->cfp = t->frame_bytes = 0;
    begin_event(&s->thread.head, v, SDB_OOM_D_THREAD, number, 0);

    uint64_t words = 0;
    if (read_word(v, &t->ec, t->slot.th + s->table.thread_ec) == 0 && t->ec != 0 &&
        read_word(v, &t->vm_stack, t->ec + s->table.ec_vm_stack) == 0 &&
        read_word(v, &words, t->ec + s->table.ec_vm_stack_size) == 0 &&
        read_word(v, &t->cfp, t->ec + s->table.ec_cfp) == 0) {
        t->vm_stack_bytes = words * 8;
        __u64 end = t->vm_stack + t->vm_stack_bytes;
        if (t->vm_stack && t->cfp >= t->vm_stack && t->cfp < end) t->frame_bytes = end - t->cfp;
    }
    send_event(v, &s->thread.head, sizeof *t);
    if (t->frame_bytes) capture_frames(v, s, w->slot, number);
    return 0;
}

static long
capture_page(__u32 index, void *ctx)
{
    struct walk *w = ctx;
    struct scratch *s = scratch_at(w->slot);
    struct sdb_oom_victim *v = capture_victim_at(w->slot);
    __u32 segment = index / PAGES_A_SEGMENT;
    if (!s || !v || segment >= SDB_SEGMENT_COUNT) return 1;
    __u64 at = s->table.segments[segment] + (index % PAGES_A_SEGMENT) * PAGE;
    /* segments need not begin on a page: two pieces */
    __u64 first = PAGE - (at & (PAGE - 1));
    if (read_user(s->slots, 0, first, at)) v->read_errors++;
    if (first < PAGE && read_user(s->slots, first, PAGE - first, at + first)) v->read_errors++;
    w->page = index;
    bpf_loop(SLOTS_A_PAGE, capture_slot, w, 0);
    return 0;
}

/* The bytes that the scanner had collected and not yet written. Its seqlock is odd while it moves them. */
static long
copy_pending(__u32 index, void *ctx)
{
    struct walk *w = ctx;
    struct scratch *s = scratch_at(w->slot);
    struct sdb_oom_victim *v = capture_victim_at(w->slot);
    if (!s || !v || w->done >= w->bytes) return 1;
    __u64 n = w->bytes - w->done;
    if (n > SDB_OOM_STACK_BYTES) n = SDB_OOM_STACK_BYTES;
    begin_event(&s->data.head, v, SDB_OOM_D_PENDING, 0, s->table.pending_off + w->done);
    copy_range(v, s, w->slot, w->address + w->done, n);
    w->done += n;
    return 0;
}

static __always_inline void
capture_pending(struct sdb_oom_victim *v, struct scratch *s, __u32 slot)
{
    uint64_t guard[4] = {0, 0, 0, 0}; /* pending_seq, pending, pending_bytes, pending_off */
    uint64_t address = v->table + __builtin_offsetof(struct sdb_live_table, pending_seq), after = 0;
    if (bpf_probe_read_user(guard, sizeof guard, (const void *)address) || (guard[0] & 1)) {
        __sync_fetch_and_or(&v->flags, SDB_OOM_F_HEAD_STALE);
        return;
    }
    if (guard[2] == 0) return;
    if (guard[2] > SDB_OOM_PENDING_BYTES) {
        v->truncated_bytes += guard[2] - SDB_OOM_PENDING_BYTES;
        guard[2] = SDB_OOM_PENDING_BYTES;
    }
    s->table.pending_off = guard[3];
    struct walk w = {.slot = slot, .address = guard[1], .bytes = guard[2]};
    __u32 errors = v->read_errors;
    bpf_loop(SDB_OOM_PENDING_BYTES / SDB_OOM_STACK_BYTES, copy_pending, &w, 0);
    if (read_word(v, &after, address) || after != guard[0] || v->read_errors != errors)
        __sync_fetch_and_or(&v->flags, SDB_OOM_F_HEAD_STALE);
}

static __always_inline void
capture_victim(struct sdb_oom_victim *v, __u32 slot)
{
    struct scratch *s = scratch_at(slot);
    if (!s) return;
    /* the table may straddle a page; its head and its tail are read apart */
    __u64 at = v->table, first = PAGE - (at & (PAGE - 1));
    if (first > sizeof s->table) first = sizeof s->table;
    long failed = read_user(&s->table, 0, first, at);
    if (first < sizeof s->table)
        failed |= read_user(&s->table, first, sizeof s->table - first, at + first);
    if (failed) {
        v->read_errors++;
        __sync_fetch_and_or(&v->flags, SDB_OOM_F_TABLE_UNREADABLE);
        return;
    }
    if (s->table.magic != SDB_LIVE_MAGIC || s->table.version != SDB_LIVE_VERSION ||
        s->table.slot_bytes != SLOT_BYTES || s->table.segment_slots != SDB_SEGMENT_SLOTS ||
        s->table.cfp_bytes < 32 || s->table.cfp_bytes > 256 || s->table.cfp_ep > 248) {
        __sync_fetch_and_or(&v->flags, SDB_OOM_F_LAYOUT_UNKNOWN);
        return;
    }
    begin_event(&s->table_head, v, SDB_OOM_D_TABLE, 0, 0);
    send_event(v, &s->table_head, sizeof s->table);

    /* what will be gone first, first: the head of the log moves as long as the scanner lives */
    capture_pending(v, s, slot);
    begin_event(&s->data.head, v, SDB_OOM_D_COUNTERS, 0, 0);
    copy_range(v, s, slot, s->table.counters, SDB_COUNTER_COUNT * sizeof(__u64));

    __u64 segments = s->table.segments_used;
    if (segments > SDB_SEGMENT_COUNT) segments = SDB_SEGMENT_COUNT;
    struct walk w = {.slot = slot};
    bpf_loop(segments * PAGES_A_SEGMENT, capture_page, &w, 0);
}

#endif
