/* SPDX-License-Identifier: MIT
 *
 * victim.c - a process to be killed: has what the recorder has (a ring, a live table, control frames), so that
 * the black box can be tested without a Ruby. What it puts into its frames is known, so that a test can
 * tell whether the right ones were captured.
 *
 *     victim MODE THREADS FRAMES DAEMON RING_DIR [HOLD_MIB]
 *
 * MODE spin | sleep: its threads do that for ever. hog: as sleep, and the main thread takes memory as soon as a
 * line is read from stdin. exec: becomes `sleep 60` when told. liar: a table full of lies. trigger: no ring, no table, only takes memory then. Prints "ready" when registered.
 *
 * Frame i of thread t (newest is 0): iseq 0x10000 * (t + 1) + 16 * i, pc iseq + 8, method iseq + 1,
 * env 0x11110001.
 *
 * Runs on: the test's own process
 */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "core/clock.h"
#include "core/oom_client.h"
#include "core/ring_file.h"
#include "core/ring_writer.h"
#include "live_table.h"

enum { CFP_WORDS = 7, CFP_PC = 0, CFP_ISEQ = 2, CFP_EP = 4, STACK_WORDS = 131072, CHUNK = 1 << 20 };

static struct sdb_live_table table;
static struct sdb_slot *segments;
static uint64_t counters[SDB_COUNTER_COUNT];
static int spin;

struct fake { /* rb_thread_t and rb_execution_context_t in one */
    uint64_t th[8], ec[8];
};

static void
fake_thread(int t, int frames)
{
    struct sdb_slot *slot = &segments[t];
    struct fake *f = calloc(1, sizeof *f);
    uint64_t *stack =
        mmap(NULL, STACK_WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *cfp = stack + STACK_WORDS - (size_t)frames * CFP_WORDS;
    for (int i = 0; i < frames; i++) {
        uint64_t iseq = 0x10000ull * (unsigned)(t + 1) + 16u * (unsigned)i;
        uint64_t *frame = cfp + i * CFP_WORDS, *env = stack + 3 * i + 2;
        env[-2] = iseq + 1;
        env[-1] = 0;
        env[0] = 0x11110001;
        frame[CFP_ISEQ] = iseq;
        frame[CFP_PC] = iseq + 8;
        frame[CFP_EP] = (uint64_t)(uintptr_t)env;
    }
    f->th[6] = (uint64_t)(uintptr_t)f->ec;
    f->ec[0] = (uint64_t)(uintptr_t)stack;
    f->ec[1] = STACK_WORDS;
    f->ec[2] = (uint64_t)(uintptr_t)cfp;
    slot->th = (uint64_t)(uintptr_t)f->th;
    slot->tid = (uint64_t)getpid() + (uint64_t)t;
    slot->serial = (uint64_t)t + 1;
    slot->state = t % 2 ? SDB_BLOCKED : SDB_RUNNING;
    slot->since_ns = sdb_monotonic_ns();
    slot->span_id = (uint64_t)t + 1000;
    slot->life = SDB_SLOT_LIVE;
}

static void
fake_table(int threads, int frames)
{
    table = (struct sdb_live_table){
        .magic = SDB_LIVE_MAGIC,
        .version = SDB_LIVE_VERSION,
        .slot_bytes = sizeof(struct sdb_slot),
        .segment_slots = SDB_SEGMENT_SLOTS,
        .thread_ec = 48,
        .ec_vm_stack = 0,
        .ec_vm_stack_size = 8,
        .ec_cfp = 16,
        .cfp_bytes = CFP_WORDS * 8,
        .cfp_pc = CFP_PC * 8,
        .cfp_iseq = CFP_ISEQ * 8,
        .cfp_ep = CFP_EP * 8,
        .counters = (uint64_t)(uintptr_t)counters,
    };
    int used = (threads + SDB_SEGMENT_SLOTS - 1) / SDB_SEGMENT_SLOTS;
    segments = calloc((size_t)used * SDB_SEGMENT_SLOTS, sizeof *segments);
    for (int i = 0; i < used; i++)
        table.segments[i] = (uint64_t)(uintptr_t)&segments[i * SDB_SEGMENT_SLOTS];
    table.segments_used = (uint64_t)used;
    for (int t = 0; t < threads; t++) fake_thread(t, frames);
    for (int i = 0; i < SDB_COUNTER_COUNT; i++) counters[i] = 7000 + (uint64_t)i;
}

/* One flushed mark and one that is still pending, as between two flushes of the scanner. */
static void
fake_log(struct sdb_ring_writer *w)
{
    static const char flushed[] = "\x05"
                                  "flushed",
                      pending[] = "\x05"
                                  "pending";
    const uint8_t *bytes;
    uint64_t off;
    sdb_ring_writer_tick(w, sdb_monotonic_ns());
    sdb_ring_writer_sized(w, SDB_R_MARK, flushed, sizeof flushed - 1);
    if (sdb_ring_writer_flush(w) != 0) exit(3);
    sdb_ring_writer_tick(w, sdb_monotonic_ns());
    sdb_ring_writer_sized(w, SDB_R_MARK, pending, sizeof pending - 1);
    table.pending_bytes = sdb_ring_writer_pending_view(w, &bytes, &off);
    table.pending = (uint64_t)(uintptr_t)bytes;
    table.pending_off = off;
}

/* Whatever a process might put there to confuse who reads it. */
static void
lie(void)
{
    struct fake *f = (struct fake *)(segments[0].th);
    table.segments_used = UINT64_MAX;
    for (int i = 1; i < SDB_SEGMENT_COUNT; i++) table.segments[i] = 0xdead0000u * (uint64_t)i + 1;
    f->ec[1] = UINT64_MAX / 2; /* a stack without end */
    segments[1].th = UINT64_MAX - 8;
    segments[2].th = (uint64_t)(uintptr_t)&segments[2].th - 48; /* its own ec */
    table.pending = 1;
    table.pending_bytes = UINT64_MAX - 4096;
    table.pending_off = UINT64_MAX - 100;
    table.counters = 8;
    table.cfp_pc = table.cfp_iseq = UINT64_MAX;
}

static void
hog(void)
{
    for (;;) {
        char *p = malloc(CHUNK);
        if (p) memset(p, 1, CHUNK);
    }
}

static void *
idle(void *unused)
{
    (void)unused;
    for (volatile uint64_t n = 0;; n++)
        if (!spin) pause();
    return NULL;
}

int
main(int argc, char **argv)
{
    char line[16];
    if (argc < 6) return 2;
    const char *mode = argv[1];
    int threads = atoi(argv[2]), frames = atoi(argv[3]);
    size_t hold = argc > 6 ? (size_t)atoi(argv[6]) << 20 : 0;
    if (strcmp(mode, "trigger") == 0) {
        puts("ready");
        fflush(stdout);
        if (fgets(line, sizeof line, stdin)) hog();
        return 0;
    }
    static struct sdb_ring_file file;
    struct sdb_ring_config config = {.dir = argv[5],
                                     .ring_bytes = SDB_RING_MIN_BYTES,
                                     .interval_ns = 1000000,
                                     .text = "service=victim",
                                     .text_bytes = 15,
                                     .keep_files = 4};
    if (sdb_ring_file_create(&file, &config) != 0) return 3;
    struct sdb_ring_writer *w = sdb_ring_writer_new(file.identity.start_monotonic_ns, 1000000);
    sdb_ring_writer_attach(w, &file);
    fake_table(threads, frames);
    fake_log(w);
    if (strcmp(mode, "liar") == 0) lie();

    struct sdb_oom_client client = {0};
    struct sdb_oom_speaker who = {.daemon = argv[4],
                                  .service = "victim",
                                  .table_address = (uint64_t)(uintptr_t)&table,
                                  .start_ticks = file.identity.process_start_ticks,
                                  .recording = file.identity.start_monotonic_ns,
                                  .ring_fd = sdb_own_fd_use(&file.own)};
    if (strcmp(argv[4], "-") != 0 && /* "-": does not register */
        sdb_oom_register(&client, &who, sdb_monotonic_ns()) != 1)
        return 4;

    char *held = hold ? malloc(hold) : NULL;
    if (held) memset(held, 1, hold);
    spin = strcmp(mode, "spin") == 0;
    for (int t = 1; t < threads && t < 8; t++) {
        pthread_t thread;
        pthread_create(&thread, NULL, idle, NULL);
    }
    puts("ready");
    fflush(stdout);
    if (strcmp(mode, "hog") == 0) {
        if (fgets(line, sizeof line, stdin)) hog();
        return 0;
    }
    if (strcmp(mode, "exec") == 0) {
        if (fgets(line, sizeof line, stdin)) execlp("sleep", "sleep", "60", (char *)NULL);
        return 5;
    }
    if (strcmp(mode, "repeat") == 0) { /* as the scanner does: until it is killed */
        for (;; usleep(50000)) {
            client.next_ns = 0;
            sdb_oom_register(&client, &who, sdb_monotonic_ns());
        }
    }
    idle(NULL);
    return 0;
}
