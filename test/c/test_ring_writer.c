/* SPDX-License-Identifier: MIT
 *
 * test_ring_writer.c - what the writer writes is what the second decoder reads: single records first, then a
 * long random story over several laps.
 */
#include <fcntl.h>
#include <time.h>
#include "core/ring_writer.h"
#include "crc32c.h"
#include "ring_support.h"
#include "varint.h"
#include "walk.h"

static char dir[256];
static struct sdb_ring_file file;

static struct sdb_ring_writer *
new_ring(void)
{
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_writer *w = sdb_ring_writer_new(START_NS, MS);

    NEED(w != NULL);
    NEED(sdb_ring_file_create(&file, &config) == 0);
    sdb_ring_writer_attach(w, &file);
    return w;
}

static void
end_ring(struct sdb_ring_writer *w)
{
    sdb_ring_writer_free(w);
    sdb_ring_file_close(&file);
    unlink(file.path);
}

enum { LIST = 64 };

struct list {
    struct walk_record r[LIST];
    int n;
};

static void
keep(const struct walk_record *r, void *data)
{
    struct list *list = data;

    if (list->n < LIST) list->r[list->n++] = *r;
}

static struct walk_result
read_back(struct list *list)
{
    struct walk_file f;
    struct walk_result result;

    list->n = 0;
    NEED(walk_open(&f, file.path));
    result = walk_chunks(&f, keep, list);
    walk_close(&f); /* payload pointers are void now */
    CHECK_EQ(result.damaged, 0);
    return result;
}

static void
a_tick_with_one_thread(void)
{
    struct sdb_ring_writer *w = new_ring();
    struct list l;
    uint32_t a, b;
    bool is_new;

    sdb_ring_writer_tick(w, START_NS + 10 * MS);
    write_thread(w, 3, 9, START_NS + 8 * MS);
    a = sdb_ring_writer_node(w, 0, 11, 2 * 40 + 1, &is_new);
    CHECK(is_new);
    b = sdb_ring_writer_node(w, a, 12, 0, NULL);
    CHECK_EQ(sdb_ring_writer_node(w, 0, 11, 2 * 40 + 1, &is_new), a);
    CHECK(!is_new);
    CHECK_EQ(sdb_ring_writer_find_node(w, a, 12, 0), b);
    CHECK_EQ(sdb_ring_writer_find_node(w, b, 12, 0), 0);
    sdb_ring_writer_sample(w, &(struct sdb_sample){.slot = 3, .node = b, .cpu_ns = 1900999});
    sdb_ring_writer_tick(w, START_NS + 11 * MS + 5000);
    sdb_ring_writer_sample(w, &(struct sdb_sample){.slot = 3,
                                                   .node = a,
                                                   .state = SDB_GVL_WAIT,
                                                   .cpu_ns = 2000000,
                                                   .wait_ns = 800000,
                                                   .gc_ns = 50000,
                                                   .has_age = true,
                                                   .age_ns = 700000,
                                                   .more = SDB_MORE_TORN_TOP});
    sdb_ring_writer_tick(w, START_NS + 30 * MS);
    CHECK(sdb_ring_writer_pending(w) > 0);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    CHECK_EQ(sdb_ring_writer_pending(w), 0);

    CHECK_EQ(read_back(&l).blocks, 1);
    CHECK_EQ(l.n, 10);
    CHECK_EQ(l.r[0].type, WALK_CHUNK);
    CHECK_EQ(l.r[0].tick_us, 10000);
    CHECK_EQ(l.r[1].type, SDB_R_INTERVAL);
    CHECK_EQ(l.r[1].numbers[0], 1000);
    CHECK_EQ(l.r[2].type, SDB_R_CLOCK);
    CHECK_EQ(l.r[3].type, SDB_R_THREAD);
    CHECK(l.r[4].type == SDB_R_NODE && l.r[4].id == a && l.r[4].parent == 0 && l.r[4].code == 11 &&
          l.r[4].where == 81);
    CHECK(l.r[5].type == SDB_R_NODE && l.r[5].id == b && l.r[5].parent == a && l.r[5].where == 0);
    CHECK(l.r[6].type == WALK_SAMPLE && l.r[6].node == b && l.r[6].slot == 3 &&
          l.r[6].state == SDB_RUNNING);
    CHECK_EQ(l.r[6].more, SDB_MORE_ELAPSED);
    CHECK_EQ(l.r[6].elapsed_us, 2000); /* since its birth */
    CHECK_EQ(l.r[6].cpu_us, 1900);
    CHECK(l.r[7].type == WALK_TICK && l.r[7].tick_us == 11005);
    CHECK(l.r[8].state == SDB_GVL_WAIT && l.r[8].node == a);
    CHECK_EQ(l.r[8].more, SDB_MORE_GC | SDB_MORE_AGE | SDB_MORE_TORN_TOP);
    CHECK_EQ(l.r[8].elapsed_us, 1005);
    CHECK_EQ(l.r[8].cpu_us, 100);
    CHECK(l.r[8].wait_us == 800 && l.r[8].gc_us == 50 && l.r[8].age_us == 700);
    CHECK(l.r[9].type == WALK_TICK && l.r[9].tick_us == 30000); /* the long form */
    end_ring(w);
}

static void
an_unchanged_running_sample_takes_three_bytes_or_less(void)
{
    struct sdb_ring_writer *w = new_ring();
    size_t before;

    sdb_ring_writer_tick(w, START_NS + MS);
    write_thread(w, 0, 1, START_NS);
    for (int i = 0; i < 2; i++) {
        sdb_ring_writer_sample(
            w, &(struct sdb_sample){.slot = 0, .node = 0, .cpu_ns = (uint64_t)(i + 1) * MS});
        before = sdb_ring_writer_pending(w);
        if (i == 0) sdb_ring_writer_tick(w, START_NS + 2 * MS + 9000);
    }
    CHECK_EQ(before > 0, 1);
    sdb_ring_writer_tick(w, START_NS + 3 * MS);
    before = sdb_ring_writer_pending(w);
    sdb_ring_writer_sample(w, &(struct sdb_sample){.slot = 0, .cpu_ns = 3 * MS});
    CHECK(sdb_ring_writer_pending(w) - before <= 3);
    end_ring(w);
}

struct sums {
    int64_t cpu, wait, elapsed;
};

static void
sum(const struct walk_record *r, void *data)
{
    struct sums *sums = data;

    if (r->type != WALK_SAMPLE) return;
    sums->cpu += r->cpu_us;
    sums->wait += (int64_t)r->wait_us;
    sums->elapsed += (int64_t)r->elapsed_us;
}

static void
rounding_never_adds_up(void)
{
    struct sdb_ring_writer *w = new_ring();
    uint64_t cpu_ns = 0, wait_ns = 0, now = START_NS;
    struct sums sums = {0};
    struct walk_file f;

    sdb_ring_writer_tick(w, now);
    write_thread(w, 0, 1, now);
    for (int i = 0; i < 1000; i++) {
        now += 1000999;
        cpu_ns += 600999;
        wait_ns += 399999;
        sdb_ring_writer_tick(w, now);
        sdb_ring_writer_sample(
            w, &(struct sdb_sample){.slot = 0, .cpu_ns = cpu_ns, .wait_ns = wait_ns});
        if (i % 20 == 0) sdb_ring_writer_flush(w);
    }
    sdb_ring_writer_flush(w);
    NEED(walk_open(&f, file.path));
    walk_chunks(&f, sum, &sums);
    walk_close(&f);
    CHECK_EQ(sums.cpu, cpu_ns / 1000);
    CHECK_EQ(sums.wait, wait_ns / 1000);
    CHECK_EQ(sums.elapsed, (now - START_NS) / 1000);
    end_ring(w);
}

/* ---- a long random story ---- */

enum { STORY_SLOTS = 6, STORY_NODES = 400 };

struct story {
    struct walk_record *expected;
    size_t n, at, wrong;
};

static void
expect(struct story *s, struct walk_record r)
{
    s->expected[s->n++] = r;
}

static void
compare(const struct walk_record *r, void *data)
{
    struct story *s = data;
    const struct walk_record *e;

    if (r->type == WALK_CHUNK || r->type == WALK_TICK || r->type == SDB_R_INTERVAL ||
        r->type == SDB_R_CLOCK || r->type == SDB_R_THREAD) {
        return;
    }
    while (s->at < s->n && s->expected[s->at].seq < r->seq) s->at++;
    if (s->at >= s->n) {
        s->wrong++;
        return;
    }
    e = &s->expected[s->at++];
    if (e->type != r->type || e->seq != r->seq || e->tick_us != r->tick_us) s->wrong++;
    else if (r->type == SDB_R_NODE) {
        if (e->id != r->id || e->parent != r->parent || e->code != r->code || e->where != r->where)
            s->wrong++;
    } else if (r->type == WALK_SAMPLE) {
        if (e->slot != r->slot || e->node != r->node || e->state != r->state ||
            e->cpu_us != r->cpu_us || e->wait_us != r->wait_us || e->blocked_us != r->blocked_us ||
            e->gc_us != r->gc_us || e->elapsed_us != r->elapsed_us || e->age_us != r->age_us)
            s->wrong++;
    } else if (e->bytes != r->bytes || e->numbers[0] != sdb_crc32c(0, r->payload, r->bytes)) {
        s->wrong++;
    }
}

struct thread_model {
    uint64_t serial, at_us;
    uint64_t cpu, wait, blocked, gc; /* ns */
    uint64_t last[4];                /* us */
};

static uint64_t
step(uint64_t *last, uint64_t ns)
{
    uint64_t us = ns / 1000, d = us - *last;

    *last = us;
    return d;
}

static void
story_sample(struct sdb_ring_writer *w, struct story *s, struct thread_model *m, uint32_t slot,
             uint64_t now_us, uint64_t *seed)
{
    uint32_t node = 0;
    uint64_t elapsed = (now_us - m->at_us) * 1000;
    struct sdb_sample sample = {.slot = slot};
    struct walk_record r;

    for (uint64_t depth = t_random(seed) % 12; depth > 0; depth--) {
        uint32_t code = (uint32_t)(t_random(seed) % STORY_NODES + 1), parent = node;
        uint64_t where = t_random(seed) % 4 == 0 ? 0 : t_random(seed) % 64 * 2 + 1;
        bool is_new;

        node = sdb_ring_writer_node(w, parent, code, where, &is_new);
        if (is_new) {
            expect(s, (struct walk_record){.seq = sdb_ring_writer_chunk(w),
                                           .tick_us = now_us,
                                           .type = SDB_R_NODE,
                                           .id = node,
                                           .parent = parent,
                                           .code = code,
                                           .where = where});
        }
    }
    m->cpu += elapsed / (1 + t_random(seed) % 3);
    m->wait += t_random(seed) % 3 == 0 ? elapsed / 4 : 0;
    m->blocked += t_random(seed) % 3 == 0 ? elapsed / 5 + 7 : 0;
    m->gc += t_random(seed) % 9 == 0 ? elapsed / 7 : 0;
    sample.node = node;
    sample.state = (uint32_t)(t_random(seed) % 4);
    sample.cpu_ns = m->cpu;
    sample.wait_ns = m->wait;
    sample.blocked_ns = m->blocked;
    sample.gc_ns = m->gc;
    sample.has_age = t_random(seed) % 2;
    sample.age_ns = t_random(seed) % 90000000;
    sdb_ring_writer_sample(w, &sample);
    r = (struct walk_record){.seq = sdb_ring_writer_chunk(w),
                             .tick_us = now_us,
                             .type = WALK_SAMPLE,
                             .slot = slot,
                             .node = node,
                             .state = sample.state,
                             .elapsed_us = now_us - m->at_us};
    r.cpu_us = (int64_t)step(&m->last[0], m->cpu);
    r.wait_us = step(&m->last[1], m->wait);
    r.blocked_us = step(&m->last[2], m->blocked);
    r.gc_us = step(&m->last[3], m->gc);
    r.age_us = sample.has_age ? sample.age_ns / 1000 : 0;
    m->at_us = now_us;
    expect(s, r);
}

static void
run_story(uint64_t seed, int ticks)
{
    struct sdb_ring_writer *w = new_ring();
    struct story s = {.expected = malloc(sizeof *s.expected * (size_t)ticks * 70)};
    struct thread_model threads[STORY_SLOTS] = {0};
    uint64_t now = START_NS, serial = 1, chunk = UINT64_MAX;
    struct walk_result result;
    struct walk_file f;

    for (int tick = 0; tick < ticks; tick++) {
        now += t_random(&seed) % 50 == 0 ? t_random(&seed) % 900000000
                                         : 1000000 + t_random(&seed) % 60000 - 30000;
        sdb_ring_writer_tick(w, now);
        uint64_t now_us = (now - START_NS) / 1000;
        for (uint32_t slot = 0; slot < STORY_SLOTS; slot++) {
            struct thread_model *m = &threads[slot];

            sdb_ring_writer_reserve(w, 12 * 16 + 64 + 2100);
            if (chunk != sdb_ring_writer_chunk(w)) { /* a new chunk: all threads again */
                chunk = sdb_ring_writer_chunk(w);
                for (uint32_t k = 0; k < STORY_SLOTS; k++) {
                    if (threads[k].serial != 0) write_thread(w, k, threads[k].serial, START_NS);
                }
            }
            if (m->serial == 0 || t_random(&seed) % 200 == 0) {
                *m = (struct thread_model){.serial = serial++,
                                           .at_us = now_us - t_random(&seed) % 900};
                if (now_us < 900) m->at_us = now_us;
                write_thread(w, slot, m->serial, START_NS + m->at_us * 1000);
            }
            if (t_random(&seed) % 2) story_sample(w, &s, m, slot, now_us, &seed);
            if (t_random(&seed) % 8 == 0) {
                uint8_t payload[2000];
                size_t n = t_random(&seed) % sizeof payload;

                for (size_t i = 0; i < n; i++) payload[i] = (uint8_t)t_random(&seed);
                sdb_ring_writer_sized(w, SDB_R_MARK, payload, n);
                expect(&s, (struct walk_record){.seq = sdb_ring_writer_chunk(w),
                                                .tick_us = now_us,
                                                .type = SDB_R_MARK,
                                                .bytes = n,
                                                .numbers = {sdb_crc32c(0, payload, n)}});
            }
        }
        if (t_random(&seed) % 5 == 0) CHECK_EQ(sdb_ring_writer_flush(w), 0);
    }
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    NEED(walk_open(&f, file.path));
    result = walk_chunks(&f, compare, &s);
    walk_close(&f);
    CHECK_EQ(result.damaged, 0);
    CHECK_EQ(s.wrong, 0);
    CHECK_EQ(s.at, s.n); /* to the last record */
    CHECK_EQ(result.newest_seq, sdb_ring_writer_chunk(w));
    CHECK_EQ(result.oldest_seq, sdb_ring_writer_oldest_chunk(w));
    CHECK_EQ(sdb_ring_writer_records_dropped(w), 0);
    CHECK_EQ(sdb_ring_writer_blocks_lost(w), 0);
    if (ticks > 10000) CHECK(result.oldest_seq > 3); /* a lap and more */
    free(s.expected);
    end_ring(w);
}

static void
random_stories_read_back_over_several_laps(void)
{
    uint64_t seed =
        getenv("SDB_SEED") ? strtoull(getenv("SDB_SEED"), NULL, 0) : (uint64_t)time(NULL);

    printf("SDB_SEED=%" PRIu64 "\n", seed);
    run_story(seed, 12000);
    for (uint64_t i = 1; i <= 10; i++) run_story(seed + i, 300);
}

/* ---- without a file, and errors ---- */

static void
what_came_before_the_file_goes_out_with_the_first_flush(void)
{
    struct sdb_ring_writer *w = sdb_ring_writer_new(START_NS, MS);
    struct sdb_ring_config config = config_for(dir);
    struct list l;

    sdb_ring_writer_tick(w, START_NS + 7 * MS);
    write_thread(w, 0, 1, START_NS);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    sdb_ring_writer_tick(w, START_NS + 8 * MS);
    CHECK(sdb_ring_writer_pending(w) > 0);
    NEED(sdb_ring_file_create(&file, &config) == 0);
    sdb_ring_writer_attach(w, &file);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    CHECK_EQ(read_back(&l).chunks, 1);
    CHECK_EQ(l.r[l.n - 1].tick_us, 8000);
    end_ring(w);
}

static void
without_a_file_a_full_chunk_is_dropped_and_counted(void)
{
    struct sdb_ring_writer *w = sdb_ring_writer_new(START_NS, MS);
    struct sdb_ring_config config = config_for(dir);
    struct list l;
    char payload[1000] = {0};
    uint64_t now = START_NS;

    while (sdb_ring_writer_chunk(w) == 0) {
        sdb_ring_writer_tick(w, now += MS);
        sdb_ring_writer_sized(w, SDB_R_MARK, payload, sizeof payload);
    }
    CHECK(sdb_ring_writer_blocks_lost(w) >= 14);
    NEED(sdb_ring_file_create(&file, &config) == 0);
    sdb_ring_writer_attach(w, &file);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    CHECK_EQ(read_back(&l).newest_seq, 1);
    end_ring(w);
}

static void
failed_writes_go_out_later_at_the_right_place(void)
{
    struct sdb_ring_writer *w = new_ring();
    int good_fd = file.own.fd, bad_fd = open("/dev/full", O_RDWR);
    char payload[500] = {0};
    struct list l;

    NEED(bad_fd >= 0);
    sdb_ring_writer_tick(w, START_NS + MS);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    swap_descriptor(&file, bad_fd);
    for (int i = 0; i < 10; i++) {
        sdb_ring_writer_tick(w, START_NS + (uint64_t)(2 + i) * MS);
        sdb_ring_writer_sized(w, SDB_R_MARK, payload, sizeof payload);
        CHECK(sdb_ring_writer_flush(w) < 0);
    }
    CHECK_EQ(file.last_errno, ENOSPC);
    CHECK_EQ(sdb_ring_writer_blocks_lost(w), 0);
    swap_descriptor(&file, good_fd);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    CHECK_EQ(read_back(&l).blocks, 11);
    CHECK_EQ(sdb_ring_writer_chunk(w), 0);
    CHECK_EQ(l.r[l.n - 1].tick_us, 11000);
    close(bad_fd);
    end_ring(w);
}

static void
a_disk_that_stays_bad_costs_the_rest_of_the_chunk_only(void)
{
    struct sdb_ring_writer *w = new_ring();
    int good_fd = file.own.fd, bad_fd = open("/dev/full", O_RDWR);
    char payload[5000] = {0};
    struct walk_result result;
    struct list l;

    NEED(bad_fd >= 0);
    sdb_ring_writer_tick(w, START_NS + MS);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    swap_descriptor(&file, bad_fd);
    for (int i = 0; i < 20; i++) {
        sdb_ring_writer_tick(w, START_NS + (uint64_t)(2 + i) * MS);
        sdb_ring_writer_sized(w, SDB_R_MARK, payload, sizeof payload);
        sdb_ring_writer_flush(w);
    }
    CHECK_EQ(sdb_ring_writer_blocks_lost(w), 14); /* 14 of 5 KB pass 64 KiB */
    CHECK_EQ(sdb_ring_writer_chunk(w), 1);
    swap_descriptor(&file, good_fd);
    sdb_ring_writer_tick(w, START_NS + 100 * MS);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    result = read_back(&l);
    CHECK_EQ(result.chunks, 2);
    CHECK_EQ(l.r[l.n - 1].tick_us, 100000);
    CHECK_EQ(l.r[l.n - 1].seq, 1);
    close(bad_fd);
    end_ring(w);
}

static void
a_record_without_room_ends_the_chunk_and_is_counted(void)
{
    struct sdb_ring_writer *w = new_ring();
    char *payload = calloc(1, SDB_BLOCK_MAX_BYTES);
    struct list l;

    sdb_ring_writer_tick(w, START_NS + MS);
    sdb_ring_writer_sized(w, SDB_R_MARK, payload, SDB_BLOCK_MAX_BYTES - 16);
    CHECK_EQ(sdb_ring_writer_records_dropped(w), 1); /* too long: only itself */
    for (int i = 0; i < 20; i++)
        sdb_ring_writer_sized(w, SDB_R_MARK, payload, SDB_BLOCK_MAX_BYTES - 17);
    CHECK(sdb_ring_writer_records_dropped(w) > 1);
    CHECK_EQ(sdb_ring_writer_node(w, 0, 1, 1, NULL), 0);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    sdb_ring_writer_tick(w, START_NS + 2 * MS);
    CHECK_EQ(sdb_ring_writer_chunk(w), 1);
    CHECK_EQ(sdb_ring_writer_node(w, 0, 1, 1, NULL), 1);
    CHECK_EQ(sdb_ring_writer_flush(w), 0);
    CHECK_EQ(read_back(&l).chunks, 2);
    free(payload);
    end_ring(w);
}

static void
pending_bytes_can_be_copied_as_they_lie(void)
{
    struct sdb_ring_writer *w = new_ring();
    const uint8_t *bytes;
    uint64_t off, at;
    size_t n;
    struct list l;

    CHECK_EQ(sdb_ring_writer_pending_view(w, &bytes, &off), 0);
    sdb_ring_writer_tick(w, START_NS + MS);
    for (int round = 0; round < 2;
         round++) { /* first with the chunk's header, then a block alone */
        sdb_ring_writer_tick(w, START_NS + (uint64_t)(5 + round) * MS);
        n = sdb_ring_writer_pending_view(w, &bytes, &off);
        CHECK_EQ(n, sdb_ring_writer_pending(w));
        uint8_t *copy = malloc(n);
        memcpy(copy, bytes, n);
        at = round == 0 ? SDB_AREA_HEADER_BYTES : 0;
        uint32_t payload, crc, zero;
        memcpy(&payload, copy + at, 4);
        memcpy(&zero, copy + at + 4, 4);
        CHECK_EQ(zero, 0);
        CHECK_EQ(payload, n - at - SDB_BLOCK_HEADER_BYTES);
        uint64_t seq = 0;
        crc = sdb_crc32c(sdb_crc32c(sdb_crc32c(0, &seq, 8), &payload, 4), copy + at + 8, payload);
        memcpy(copy + at + 4, &crc, 4);
        NEED(pwrite(file.own.fd, copy, n, (off_t)off) ==
             (ssize_t)n); /* what a copier does, to a copy */
        CHECK_EQ(read_back(&l).blocks, round + 1);
        CHECK_EQ(l.r[l.n - 1].tick_us, 5000 + 1000 * round);
        free(copy);
        CHECK_EQ(sdb_ring_writer_flush(w), 0);
    }
    end_ring(w);
}

static void
state_pages_alternate(void)
{
    struct sdb_ring_writer *w = new_ring();
    uint64_t counters[SDB_COUNTER_COUNT] = {0};
    struct walk_file f;
    const uint8_t *page;

    for (int i = 1; i <= 3; i++) {
        counters[SDB_C_TICKS] = (uint64_t)i;
        CHECK_EQ(sdb_ring_writer_state(w, SDB_RING_LIVE, counters, i == 3 ? "why" : NULL,
                                       START_NS + 9, 77),
                 0);
    }
    NEED(walk_open(&f, file.path));
    page = walk_state_page(&f);
    NEED(page != NULL);
    CHECK_EQ(page - f.bytes, SDB_STATE_A_OFF);
    CHECK_EQ(page[48], 3);
    CHECK(memcmp(page + 1072, "why", 3) == 0 && page[44] == 3);
    f.bytes[SDB_STATE_A_OFF + 500] ^= 1; /* torn: the other one still tells */
    page = walk_state_page(&f);
    NEED(page != NULL);
    CHECK_EQ(page[48], 2);
    walk_close(&f);
    end_ring(w);
}

static void
strings_are_written_once_a_chunk(void)
{
    struct sdb_ring_writer *w = new_ring();
    char *lengthy = malloc(3000);
    struct list l;

    memset(lengthy, 'x', 3000);
    sdb_ring_writer_tick(w, START_NS + MS);
    CHECK_EQ(sdb_ring_writer_string(w, "GET", 3), 1);
    CHECK_EQ(sdb_ring_writer_string(w, "POST", 4), 2);
    CHECK_EQ(sdb_ring_writer_string(w, "GET", 3), 1);
    CHECK_EQ(sdb_ring_writer_string(w, NULL, 0), 0);
    CHECK_EQ(sdb_ring_writer_string(w, lengthy, 3000), 3);
    CHECK_EQ(sdb_ring_writer_string(w, lengthy, 2000), 3); /* cut to the same 1024 bytes */
    sdb_ring_writer_flush(w);
    read_back(&l);
    CHECK_EQ(l.n, 6);
    CHECK(l.r[5].type == SDB_R_STRING && l.r[5].bytes == 1025);
    sdb_ring_writer_reserve(w, SDB_CHUNK_BYTES - 1024);
    CHECK_EQ(sdb_ring_writer_chunk(w), 1);
    CHECK_EQ(sdb_ring_writer_string(w, "POST", 4), 1); /* a new chunk knows none */
    free(lengthy);
    end_ring(w);
}

int
main(void)
{
    t_mkdir(dir);
    RUN(a_tick_with_one_thread);
    RUN(an_unchanged_running_sample_takes_three_bytes_or_less);
    RUN(rounding_never_adds_up);
    RUN(random_stories_read_back_over_several_laps);
    RUN(what_came_before_the_file_goes_out_with_the_first_flush);
    RUN(without_a_file_a_full_chunk_is_dropped_and_counted);
    RUN(failed_writes_go_out_later_at_the_right_place);
    RUN(a_disk_that_stays_bad_costs_the_rest_of_the_chunk_only);
    RUN(a_record_without_room_ends_the_chunk_and_is_counted);
    RUN(pending_bytes_can_be_copied_as_they_lie);
    RUN(state_pages_alternate);
    RUN(strings_are_written_once_a_chunk);
    remove_dir(dir);
    return t_done();
}
