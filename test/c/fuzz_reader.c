/* SPDX-License-Identifier: MIT
 *
 * fuzz_reader.c - libFuzzer target of the log reader and the profile: whatever bytes come in, an error or a
 * partial result goes out. `rake fuzz` runs it.
 *
 * Blocks have checksums that random bytes never pass. So an input is either a whole file as it stands (first
 * byte even), or payloads that are put into a well-formed ring here (first byte odd):
 *
 *   byte flags; then for the symbol area and each of up to four chunks: u16 length, bytes
 *
 * Each payload starts with a byte: chunk: first_ns in ms after the chunk before.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "log/ring_reader.h"
#include "profile/aggregate.h"
#include "profile/blame.h"
#include "profile/load.h"
#include "profile/spans.h"

enum {
    AREA_BYTES = 16384,
    CHUNK_BYTES = 32768,
    CHUNKS = 4,
    CHUNKS_OFF = SDB_HEADER_BYTES + 2 * AREA_BYTES,
    FILE_BYTES = CHUNKS_OFF + CHUNKS * CHUNK_BYTES,
};

static uint32_t
crc_of(const void *bytes, size_t n)
{
    return sdb_crc32c(0, bytes, n);
}

static void
area_put(uint8_t *at, uint64_t magic, uint64_t seq, uint64_t first_ns, const uint8_t *payload,
         size_t n)
{
    struct sdb_area_header h = {.magic = magic, .seq = seq, .first_ns = first_ns};
    h.crc = crc_of(&h, sizeof(h));
    memcpy(at, &h, sizeof(h));
    if (n == 0) return;
    uint32_t bytes = (uint32_t)n;
    uint8_t seed[12];
    memcpy(seed, &seq, 8);
    memcpy(seed + 8, &bytes, 4);
    uint32_t crc = sdb_crc32c(crc_of(seed, sizeof(seed)), payload, n);
    memcpy(at + sizeof(h), &bytes, 4);
    memcpy(at + sizeof(h) + 4, &crc, 4);
    memcpy(at + sizeof(h) + 8, payload, n);
}

static void
ring_make(uint8_t *file, const uint8_t *data, size_t n)
{
    memset(file, 0, FILE_BYTES);
    struct sdb_identity id = {.magic = SDB_MAGIC,
                              .endian_tag = SDB_ENDIAN_TAG,
                              .major = 1,
                              .word_bytes = 8,
                              .file_bytes = FILE_BYTES,
                              .area_a_off = SDB_HEADER_BYTES,
                              .area_b_off = SDB_HEADER_BYTES + AREA_BYTES,
                              .area_bytes = AREA_BYTES,
                              .chunks_off = CHUNKS_OFF,
                              .chunk_bytes = CHUNK_BYTES,
                              .chunk_count = CHUNKS,
                              .interval_ns = 1000000,
                              .start_monotonic_ns = 1000000000,
                              .start_realtime_ns = 1000000000000000000};
    id.crc = crc_of(&id, sizeof(id));
    id.state = SDB_RING_LIVE;
    memcpy(file, &id, sizeof(id));
    uint64_t first_ns = 0;
    for (uint64_t part = 0; part <= CHUNKS && n >= 3; part++) {
        size_t length = (size_t)data[0] | (size_t)data[1] << 8;
        data += 2;
        n -= 2;
        if (length > n) length = n;
        if (length > AREA_BYTES - 128) length = AREA_BYTES - 128;
        if (length == 0) continue;
        if (part == 0) {
            area_put(file + SDB_HEADER_BYTES, SDB_AREA_MAGIC, 1, 0, data + 1, length - 1);
        } else {
            first_ns += data[0] * 1000000ull;
            area_put(file + CHUNKS_OFF + (part - 1) * CHUNK_BYTES, SDB_CHUNK_MAGIC, part - 1,
                     first_ns, data + 1, length - 1);
        }
        data += length;
        n -= length;
    }
}

/* The invariants that hold for every log. */
static void
threads_check(const struct sdb_profile *p)
{
    for (size_t i = 0; i < p->threads_count; i++) {
        const struct sdb_thread *t = &p->threads[i];
        for (size_t k = 0; k < t->segment_count; k++) {
            const struct sdb_segment *segment = &t->segments[k];
            if (segment->stack >= p->stacks_count || segment->state >= SDB_STATE_COUNT) abort();
            if (sdb_segment_end(t, k) <= segment->t0) abort();
        }
    }
}

static void
questions_ask(const struct sdb_profile *p)
{
    struct sdb_selection all = {.to = SDB_NO_TIME, .states = 31};
    uint8_t *marks = calloc(p->funcs_count + 1, 1);
    if (!marks) return;
    for (size_t i = 0; i < p->funcs_count; i++)
        marks[i] = i % 3 == 0 ? SDB_MARK_HIDE : i % 3 == 1 ? SDB_MARK_FOCUS : 0;
    struct sdb_selection marked = {
        .from = 1000000, .to = 1u << 30, .states = 31, .func_marks = marks, .focus = true};
    const struct sdb_selection *selections[] = {&all, &marked};
    for (int i = 0; i < 2; i++) {
        const struct sdb_selection *s = selections[i];
        struct sdb_sums sums;
        if (sdb_sum_functions(p, s, SDB_WALL, &sums) == 0) {
            uint64_t self = 0;
            for (size_t k = 0; k < p->funcs_count; k++) self += sums.functions[k].self_ns;
            if (self != sums.total_ns) abort();
            free(sums.functions);
        }
        struct sdb_line_times *lines;
        size_t count;
        if (sdb_sum_lines(p, s, SDB_CPU, p->funcs[p->funcs_count - 1].path, &lines, &count) == 0)
            free(lines);
        struct sdb_tree_node *nodes;
        if (sdb_sum_tree(p, s, SDB_WALL, true, &nodes, &count) == 0) free(nodes);
        struct sdb_edges edges;
        if (sdb_sum_edges(p, s, SDB_WALL, marks, &edges) == 0) {
            free(edges.callers);
            free(edges.callees);
        }
        struct sdb_cell *cells;
        if (sdb_sum_cells(p, s, &cells, &count) == 0) free(cells);
    }
    struct sdb_span_query query = {.to = SDB_NO_TIME, .percentile = 50};
    uint32_t *spans;
    size_t span_count;
    if (sdb_spans_find(p, &query, &spans, &span_count) == 0) {
        struct sdb_interval *intervals;
        size_t count;
        if (sdb_spans_intervals(p, spans, span_count, &intervals, &count) == 0) {
            struct sdb_blame *rows;
            size_t rows_count;
            if (sdb_blame_find(p, intervals, count, &rows, &rows_count) == 0) free(rows);
            if (sdb_blame_each(p, intervals, count, &rows) == 0) free(rows);
            free(intervals);
        }
        free(spans);
    }
    struct sdb_interval *tagged;
    size_t tagged_count;
    struct sdb_tag tag = {p->pairs_count ? p->pairs[0].key : 0,
                          p->pairs_count ? p->pairs[0].value : 0};
    if (sdb_tag_intervals(p, tag, &tagged, &tagged_count) == 0) free(tagged);
    free(marks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static uint8_t file[FILE_BYTES];
    struct sdb_source source;
    if (n == 0) return 0;
    if (data[0] & 1) {
        ring_make(file, data + 1, n - 1);
        sdb_source_memory(&source, file, FILE_BYTES);
    } else {
        sdb_source_memory(&source, data + 1, n - 1);
    }
    struct sdb_ring_reader readers[2], *both[2] = {&readers[0], &readers[1]};
    if (sdb_ring_reader_open(&readers[0], source) != 0) return 0;
    if (sdb_ring_reader_open(&readers[1], source) != 0) {
        sdb_ring_reader_close(&readers[0]);
        return 0;
    }
    struct sdb_profile *p = sdb_profile_new();
    if (p && sdb_profile_load(p, both, data[0] & 2 ? 2 : 1, NULL, NULL) == 0) {
        threads_check(p);
        questions_ask(p);
    }
    sdb_profile_free(p);
    sdb_ring_reader_close(&readers[0]);
    sdb_ring_reader_close(&readers[1]);
    return 0;
}
