/* SPDX-License-Identifier: MIT
 *
 * decode.c - how fast a log becomes a profile. Writes a ring with the recorder's own writer, of THREADS
 * threads on Rails-like stacks (depth 150), then loads it and sums it up. Prints thread-samples (threads seen
 * at ticks, changed or not) and SAMPLE records a second of CPU, on one core.
 *
 * decode [busy percent of threads whose stack changes at a tick] [ring MiB]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/ring_file.h"
#include "core/ring_writer.h"
#include "core/symbol_area.h"
#include "log/ring_reader.h"
#include "profile/aggregate.h"
#include "profile/load.h"

enum { THREADS = 5, DEPTH = 150, TOP = 12, SHAPES = 4000 };

static double
cpu_s(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static uint32_t seed = 12345;
static uint32_t
random_below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 4) * n >> 28);
}

/* The stack of one of SHAPES places in the app: a common base, then TOP frames of its own. */
static uint32_t
stack_of(struct sdb_ring_writer *w, uint32_t shape)
{
    uint32_t node = 0;
    for (uint32_t i = 0; i < DEPTH - TOP; i++)
        node = sdb_ring_writer_node(w, node, i + 1, 21, NULL);
    uint32_t word = shape;
    for (uint32_t i = 0; i < TOP; i++, word = word * 7 / 8)
        node =
            sdb_ring_writer_node(w, node, 1000 + word % 977 * 16 + i, (word % 31) << 1 | 1, NULL);
    return node;
}

struct totals {
    uint64_t wait, blocked, cpu;
    uint32_t shape;
};

static void
sample_write(struct sdb_ring_writer *w, uint32_t slot, const struct totals *t, uint32_t state)
{
    sdb_ring_writer_reserve(w, DEPTH * 16 + 64);
    struct sdb_sample s = {.slot = slot,
                           .node = stack_of(w, t->shape),
                           .state = state,
                           .cpu_ns = t->cpu,
                           .wait_ns = t->wait,
                           .blocked_ns = t->blocked};
    sdb_ring_writer_sample(w, &s);
}

static void
codes_name(struct sdb_ring_file *file)
{
    struct sdb_symbol_area *area = sdb_symbol_area_new();
    sdb_symbol_area_attach(area, file);
    struct sdb_line_run runs[31];
    for (uint32_t i = 0; i < 31; i++) runs[i] = (struct sdb_line_run){i, 10 + i};
    for (uint32_t code = 1; code < 1000 + 977 * 16 + TOP; code++) {
        char name[64], path[64];
        int name_n = snprintf(name, sizeof(name), "SomeController%u#action_%u", code % 97, code);
        int path_n = snprintf(path, sizeof(path), "/app/controllers/some_%u.rb", code % 97);
        struct sdb_symbol symbol = {.kind = SDB_CODE_RUBY,
                                    .instruction_count = 31,
                                    .first_line = 10,
                                    .name = name,
                                    .name_bytes = (uint32_t)name_n,
                                    .path = path,
                                    .path_bytes = (uint32_t)path_n,
                                    .class_name = "",
                                    .line_runs = runs,
                                    .line_run_count = 31};
        if (sdb_symbol_area_append(area, code, &symbol) != 0) break;
    }
    (void)sdb_symbol_area_flush(area);
    sdb_symbol_area_free(area);
}

static void
ring_fill(struct sdb_ring_file *file, uint32_t busy_percent, uint64_t mib)
{
    struct sdb_ring_writer *w = sdb_ring_writer_new(file->identity.start_monotonic_ns, 1000000);
    sdb_ring_writer_attach(w, file);
    struct totals totals[THREADS] = {{0}};
    uint64_t now = file->identity.start_monotonic_ns, chunk = UINT64_MAX;
    for (uint64_t tick = 0; sdb_ring_writer_bytes_written(w) < mib << 20; tick++) {
        now += 1000000 + random_below(20000) - 10000;
        sdb_ring_writer_tick(w, now);
        bool fresh = sdb_ring_writer_chunk(w) != chunk;
        for (uint32_t i = 0; i < THREADS; i++) {
            if (fresh) {
                struct sdb_thread_record t = {.slot = i,
                                              .tid = 100 + i,
                                              .serial = i + 1,
                                              .birth_ns = file->identity.start_monotonic_ns};
                sdb_ring_writer_thread(w, &t);
            }
            bool changed = random_below(100) < busy_percent;
            if (changed) totals[i].shape = random_below(SHAPES);
            totals[i].cpu += 999000;
            if (changed || fresh) sample_write(w, i, &totals[i], SDB_RUNNING);
        }
        chunk = sdb_ring_writer_chunk(w);
        if (tick % 5 == 4) (void)sdb_ring_writer_flush(w);
    }
    (void)sdb_ring_writer_flush(w);
    sdb_ring_writer_free(w);
}

int
main(int argc, char **argv)
{
    uint32_t busy = argc > 1 ? (uint32_t)atoi(argv[1]) : 40;
    uint64_t mib = argc > 2 ? (uint64_t)atoi(argv[2]) : 60;
    char dir[] = "/tmp/sdb-decode-XXXXXX";
    if (!mkdtemp(dir)) return 1;
    struct sdb_ring_config config = {.dir = dir,
                                     .ring_bytes = (mib + 4) << 20,
                                     .interval_ns = 1000000,
                                     .text = "",
                                     .keep_files = 100,
                                     .start_monotonic_ns = 1000000000,
                                     .start_realtime_ns = 1700000000000000000ull};
    struct sdb_ring_file file;
    if (sdb_ring_file_create(&file, &config) != 0) return 1;
    codes_name(&file);
    ring_fill(&file, busy, mib);

    struct sdb_source source;
    struct sdb_ring_reader reader, *readers[1] = {&reader};
    if (sdb_source_open(&source, file.path) != 0 || sdb_ring_reader_open(&reader, source) != 0)
        return 1;
    struct sdb_profile *p = sdb_profile_new();
    double begin = cpu_s();
    if (!p || sdb_profile_load(p, readers, 1, NULL, NULL) != 0) return 1;
    double loaded = cpu_s();
    struct sdb_selection all = {.to = SDB_NO_TIME, .states = 31};
    struct sdb_sums sums;
    if (sdb_sum_functions(p, &all, SDB_WALL, &sums) != 0) return 1;
    double summed = cpu_s();

    size_t segments = 0;
    for (size_t i = 0; i < p->threads_count; i++) segments += p->threads[i].segment_count;
    double load_s = loaded - begin;
    printf("%u%% changing: %.0f thread-samples, %zu segments, %zu stacks, %.1f MiB (%.2f bytes a "
           "thread-sample)\n",
           busy, (double)sums.samples, segments, p->stacks_count, (double)mib,
           (double)(mib << 20) / (double)sums.samples);
    printf("decode %.3f s: %.1f million thread-samples/s, %.0f MiB/s; functions %.3f s\n", load_s,
           (double)sums.samples / load_s / 1e6, (double)mib / load_s, summed - loaded);
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("peak memory %ld MiB; lost: %llu records, %llu chunks damaged\n", u.ru_maxrss >> 10,
           (unsigned long long)p->rings[0].loss.records_ignored,
           (unsigned long long)p->rings[0].loss.chunks_damaged);
    free(sums.functions);
    sdb_profile_free(p);
    sdb_ring_reader_close(&reader);
    sdb_ring_file_close(&file);
    unlink(file.path);
    rmdir(dir);
    return 0;
}
