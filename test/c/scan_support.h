/* SPDX-License-Identifier: MIT
 *
 * scan_support.h - a scanner in a world of a test's making: Ruby threads that are structs of ours, laid out as those of
 * Ruby 3.3, clocks that stand until the test moves them, and a ring in a directory of its own.
 */
#ifndef SDB_SCAN_SUPPORT_H
#define SDB_SCAN_SUPPORT_H

#include "core/safe_read.h"
#include "ring_support.h"
#include "scan/scanner.h"
#include "scan/flush.h"
#include "scan/upkeep.h"
#include "walk.h"

enum {
    FAKE_STACK_WORDS = 1024,
    FAKE_CFP_BYTES = 56,
    FAKE_TIDS = 64,
    /* frame kinds and flags of vm_core.h */
    FAKE_METHOD = 0x11110001 | 0x2,
    FAKE_BLOCK = 0x22220001,
    FAKE_CFUNC = 0x55550001 | 0x2 | 0x80,
    FAKE_IMEMO_MENT = 0x1a | 6 << 12,
};

static const struct sdb_layout fake_layout = {
    .thread_ec = 48,
    .ec_vm_stack = 0,
    .ec_vm_stack_size = 8,
    .ec_cfp = 16,
    .ec_fiber = 40,
    .ec_thread = 48,
    .cfp_pc = 0,
    .cfp_sp = 8,
    .cfp_iseq = 16,
    .cfp_self = 24,
    .cfp_ep = 32,
    .cfp_jit_return = 48,
    .cfp_bytes = FAKE_CFP_BYTES,
    .iseq_body = 16,
    .body_iseq_size = 4,
    .body_iseq_encoded = 8,
};

/* ---- the world: what struct sdb_host asks ---- */

static struct {
    uint64_t now_ns, realtime_ns;
    uint64_t thread_cpu_ns[FAKE_TIDS], own_cpu_ns, process_cpu_ns;
    int cpu, gc;
    bool one_cpu;
    unsigned symbolizers_requested;
    struct sdb_memory memory;
    /* called when the scanner sleeps, after the clock was moved to its deadline */
    void (*slept)(void);
} world;

static uint64_t
world_monotonic(void)
{
    return world.now_ns += 10; /* so that whoever waits for it to pass a moment comes to an end */
}

static uint64_t
world_realtime(void)
{
    return world.realtime_ns;
}

static uint64_t
world_thread_cpu(uint32_t tid)
{
    return tid < FAKE_TIDS ? world.thread_cpu_ns[tid] : 0;
}

static uint64_t
world_own_cpu(void)
{
    return world.own_cpu_ns;
}

static uint64_t
world_process_cpu(void)
{
    return world.process_cpu_ns;
}

static int
world_cpu(void)
{
    return world.cpu;
}

static bool
world_one_cpu(void)
{
    return world.one_cpu;
}

static void
world_sleep_until(uint64_t deadline_ns)
{
    if (deadline_ns > world.now_ns) world.now_ns = deadline_ns;
    if (world.slept) world.slept();
}

static void
world_wait_parked(uint64_t *parked, uint64_t timeout_ns)
{
    (void)parked;
    world.now_ns += timeout_ns;
    if (world.slept) world.slept();
}

static void
world_memory(const struct sdb_memory_probe *probe, struct sdb_memory *out)
{
    (void)probe;
    *out = world.memory;
}

static void
world_process_memory(struct sdb_process_memory *out)
{
    *out = (struct sdb_process_memory){0};
}

static int
world_during_gc(void)
{
    return world.gc;
}

static void
world_request_symbolizer(void)
{
    world.symbolizers_requested++;
}

/* ---- the scanner under test ---- */

static struct {
    struct sdb_thread_table threads;
    struct sdb_mailbox mailbox;
    struct sdb_gc_periods periods;
    uint64_t gc_epoch;
    struct sdb_scanner scanner;
    char dir[256];
} fake;

/* As on Ruby 3.3, or with exact = false as on 3.1; without a file, as in a forked child. */
static inline struct sdb_scanner *
fake_init(bool exact)
{
    memset(&world, 0, sizeof world);
    world.now_ns = START_NS;
    world.realtime_ns = 1700000000000000000ull;
    sdb_thread_table_reset(&fake.threads);
    fake.mailbox = (struct sdb_mailbox){.alive = 1};
    fake.periods.head = fake.periods.tail = 0;
    fake.gc_epoch = 0;
    t_mkdir(fake.dir);
    NEED(sdb_safe_read_probe() != SDB_SAFE_READ_NONE);
    struct sdb_scanner_config config = {
        .threads = &fake.threads,
        .mailbox = &fake.mailbox,
        .periods = &fake.periods,
        .gc_epoch = &fake.gc_epoch,
        .host =
            {
                .monotonic_ns = world_monotonic,
                .realtime_ns = world_realtime,
                .thread_cpu_ns = world_thread_cpu,
                .own_cpu_ns = world_own_cpu,
                .process_cpu_ns = world_process_cpu,
                .cpu = world_cpu,
                .one_cpu = world_one_cpu,
                .sleep_until = world_sleep_until,
                .wait_parked = world_wait_parked,
                .read_memory = world_memory,
                .read_process_memory = world_process_memory,
                .during_gc = world_during_gc,
                .request_symbolizer = world_request_symbolizer,
            },
        .layout = fake_layout,
        .file = config_for(fake.dir),
        .exact = exact,
        .gc_events = exact,
        .stacks_last = exact,
    };
    NEED(sdb_scanner_init(&fake.scanner, &config) == 0);
    return &fake.scanner;
}

/* The same with an open file. */
static inline struct sdb_scanner *
fake_begin(bool exact)
{
    fake_init(exact);
    NEED(sdb_flush_open_file(&fake.scanner) == 0);
    return &fake.scanner;
}

/* Ends the recording and opens its file for reading. */
static inline void
fake_end(struct walk_file *file)
{
    char path[SDB_PATH_MAX];
    snprintf(path, sizeof path, "%s", fake.scanner.file.path);
    sdb_upkeep_close(&fake.scanner, NULL);
    sdb_scanner_free(&fake.scanner);
    NEED(walk_open(file, path));
    remove_dir(fake.dir);
}

/* One tick, one interval after the last. */
static inline void
fake_tick(void)
{
    world.now_ns = (world.now_ns / MS + 1) * MS;
    sdb_scanner_tick(&fake.scanner, world.now_ns);
}

/* ---- a Ruby thread ---- */

struct fake_thread {
    uint64_t thread[8], ec[8];
    uint64_t stack[FAKE_STACK_WORDS];
    uint32_t depth, sp; /* sp: words of `stack` in use */
    struct sdb_slot *slot;
};

static inline uint64_t
fake_high(const struct fake_thread *t)
{
    return (uint64_t)(uintptr_t)(t->stack + FAKE_STACK_WORDS);
}

/* What GVL events do: claims a slot for the thread, in the state. */
static inline void
fake_thread_begin(struct fake_thread *t, uint32_t tid, uint64_t state)
{
    memset(t, 0, sizeof *t);
    t->thread[48 / 8] = (uint64_t)(uintptr_t)t->ec;
    t->ec[0] = (uint64_t)(uintptr_t)t->stack;
    t->ec[1] = FAKE_STACK_WORDS;
    t->ec[2] = fake_high(t);
    struct sdb_thread_birth birth = {
        .thread_value = (uint64_t)(uintptr_t)t->thread,
        .th = (uint64_t)(uintptr_t)t->thread,
        .root_ec = (uint64_t)(uintptr_t)t->ec,
        .tid = tid,
        .flags = fake.scanner.exact ? 0 : SDB_THREAD_INFERRED,
        .state = state,
        .now_ns = world.now_ns,
        .cpu_ns = world.thread_cpu_ns[tid],
    };
    t->slot = sdb_thread_claim(&fake.threads, &birth);
    NEED(t->slot != NULL);
}

static inline void
fake_enter(struct fake_thread *t, uint64_t state)
{
    sdb_thread_enter(t->slot, state, world.now_ns);
    sdb_thread_activate(&fake.threads, t->slot, state != SDB_BLOCKED);
}

static inline uint64_t *
fake_frame(struct fake_thread *t, uint32_t i)
{
    return (uint64_t *)(uintptr_t)(fake_high(t) - (uint64_t)FAKE_CFP_BYTES * (i + 1));
}

/* One call deeper. iseq: any aligned address, 0 of a C function; ment: a fake_ment. */
static inline void
fake_call(struct fake_thread *t, uint64_t iseq, const uint64_t *ment, uint64_t pc)
{
    uint64_t *ep = t->stack + t->sp + 2, *frame = fake_frame(t, t->depth);
    t->sp += 3;
    ep[-2] = (uint64_t)(uintptr_t)ment;
    ep[-1] = 0;
    ep[0] = iseq ? FAKE_METHOD : FAKE_CFUNC;
    memset(frame, 0, FAKE_CFP_BYTES);
    frame[fake_layout.cfp_pc / 8] = pc;
    frame[fake_layout.cfp_iseq / 8] = iseq;
    frame[fake_layout.cfp_ep / 8] = (uint64_t)(uintptr_t)ep;
    t->depth++;
    t->ec[2] = (uint64_t)(uintptr_t)frame;
}

static inline void
fake_return(struct fake_thread *t)
{
    t->depth--;
    t->sp -= 3;
    t->ec[2] = fake_high(t) - (uint64_t)FAKE_CFP_BYTES * t->depth;
}

/* A method entry as the scanner tells one from other objects. */
struct fake_ment {
    uint64_t words[4];
};

static inline const uint64_t *
fake_ment(struct fake_ment *m)
{
    m->words[0] = FAKE_IMEMO_MENT;
    return m->words;
}

#endif
