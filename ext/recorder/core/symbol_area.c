/* SPDX-License-Identifier: MIT
 *
 * symbol_area.c - one generation of symbols at a time: strings once, codes, blocks, and the same bytes again
 * after a failed write.
 *
 *     pending: | block | block | 8 | payload so far |      written at area_off + file_used
 *                              ^ open_off           ^ used
 *
 * Runs on: scanner thread, no GVL
 */
#include "core/symbol_area.h"

#include <stdlib.h>
#include <string.h>
#include "core/chunk.h"
#include "core/own_heap.h"
#include "core/ring_file.h"
#include "core/string_table.h"
#include "core/testpoint.h"
#include "error.h"
#include "varint.h"

enum {
    UNATTACHED_CAPACITY_BYTES = 256 << 10, /* the smallest area a file has (ring_identity.c) */
    FIRST_ROOM_BYTES = 4096,
    TEXT_MAX_BYTES = 4096,
    LINE_RUNS_MAX_BYTES = 40 << 10, /* most take two bytes each */
    /* of one CODE with its strings: texts, runs, and the numbers between them */
    SYMBOL_MAX_BYTES = 3 * TEXT_MAX_BYTES + LINE_RUNS_MAX_BYTES + 256,
};

_Static_assert(SYMBOL_MAX_BYTES < (int)SDB_BLOCK_MAX_BYTES, "a symbol fits in one block");

struct sdb_symbol_area {
    /* owner: scanner */
    struct sdb_ring_file *file;
    uint64_t generation;
    uint64_t file_used; /* bytes of this generation on the file; 0: not even the header */
    uint8_t *pending;
    size_t room;
    size_t open_off; /* the open block's header in pending */
    size_t used;     /* end of its payload */
    struct sdb_string_table strings;
    uint8_t scratch[SYMBOL_MAX_BYTES]; /* the CODE being encoded: its length comes before it */
};

static void
next_generation(struct sdb_symbol_area *a)
{
    a->generation++;
    a->file_used = 0;
    a->open_off = 0;
    a->used = SDB_BLOCK_HEADER_BYTES;
    memset(a->pending, 0, SDB_BLOCK_HEADER_BYTES);
    sdb_string_table_reset(&a->strings);
}

struct sdb_symbol_area *
sdb_symbol_area_new(void)
{
    struct sdb_symbol_area *a = sdb_own_calloc(1, sizeof *a);

    if (a == NULL) return NULL;
    a->pending = sdb_own_alloc(FIRST_ROOM_BYTES);
    if (a->pending == NULL) {
        sdb_own_free(a);
        return NULL;
    }
    a->room = FIRST_ROOM_BYTES;
    next_generation(a);
    return a;
}

void
sdb_symbol_area_free(struct sdb_symbol_area *a)
{
    if (a == NULL) return;
    sdb_string_table_free(&a->strings);
    sdb_own_free(a->pending);
    sdb_own_free(a);
}

void
sdb_symbol_area_attach(struct sdb_symbol_area *a, struct sdb_ring_file *file)
{
    a->file = file;
}

static size_t
open_payload(const struct sdb_symbol_area *a)
{
    return a->used - a->open_off - SDB_BLOCK_HEADER_BYTES;
}

void
sdb_symbol_area_on_file(const struct sdb_symbol_area *a, uint64_t *used_a, uint64_t *used_b)
{
    /* the other one is full of the generation before, if there was one */
    uint64_t other = a->generation > 1 ? sdb_symbol_area_capacity_bytes(a) : 0;

    *used_a = a->generation & 1 ? a->file_used : other;
    *used_b = a->generation & 1 ? other : a->file_used;
}

uint64_t
sdb_symbol_area_used_bytes(const struct sdb_symbol_area *a)
{
    uint64_t on_file = a->file_used == 0 ? SDB_AREA_HEADER_BYTES : a->file_used;

    return on_file + (open_payload(a) > 0 ? a->used : a->open_off);
}

uint64_t
sdb_symbol_area_capacity_bytes(const struct sdb_symbol_area *a)
{
    return a->file == NULL ? UNATTACHED_CAPACITY_BYTES : a->file->identity.area_bytes;
}

uint64_t
sdb_symbol_area_memory_bytes(const struct sdb_symbol_area *a)
{
    return sizeof *a + a->room + sdb_string_table_memory_bytes(&a->strings);
}

static void
seal(struct sdb_symbol_area *a)
{
    if (open_payload(a) == 0) return;
    sdb_block_seal(a->pending + a->open_off, a->generation, (uint32_t)open_payload(a));
    a->open_off = a->used; /* room for its header is always kept, see make_room */
    memset(a->pending + a->open_off, 0, SDB_BLOCK_HEADER_BYTES);
    a->used += SDB_BLOCK_HEADER_BYTES;
}

/* Makes room for `bytes` in the open block, and for the header of a next one behind it. */
static int
make_room(struct sdb_symbol_area *a, size_t bytes)
{
    size_t need, room = a->room;
    uint64_t base = a->file_used == 0 ? SDB_AREA_HEADER_BYTES : a->file_used;
    bool new_block = open_payload(a) + bytes > SDB_BLOCK_MAX_BYTES;

    need = a->used + bytes + SDB_BLOCK_HEADER_BYTES;
    if (new_block) need += SDB_BLOCK_HEADER_BYTES;
    if (base + need > sdb_symbol_area_capacity_bytes(a)) return SDB_ERR_FULL;
    while (room < need) room *= 2;
    if (room != a->room) {
        uint8_t *more = sdb_own_realloc(a->pending, room);

        if (more == NULL) return SDB_ERR_NOMEM;
        a->pending = more;
        a->room = room;
    }
    if (new_block) seal(a);
    return 0;
}

static uint8_t *
put_bytes(uint8_t *p, const char *s, size_t n)
{
    if (n > 0) memcpy(p, s, n);
    return p + n;
}

/* So many can be written, the last of them as line 0. All: none has to be. */
static uint32_t
fitting_runs(const struct sdb_symbol *symbol)
{
    uint8_t bytes[2 * SDB_VARINT_MAX];
    struct sdb_line_run last = {0, symbol->first_line};
    size_t used = 0;
    uint32_t n = 0;

    for (; n < symbol->line_run_count; n++) {
        const struct sdb_line_run *run = &symbol->line_runs[n];
        uint8_t *p = sdb_varint_put(bytes, run->index - last.index);

        used += (size_t)(sdb_zigzag_put(p, (int64_t)run->line - (int64_t)last.line) - bytes);
        if (used + sizeof bytes > LINE_RUNS_MAX_BYTES) return n;
        last = *run;
    }
    return n;
}

static uint8_t *
put_line_runs(uint8_t *p, const struct sdb_symbol *symbol)
{
    uint32_t n = fitting_runs(symbol);
    struct sdb_line_run last = {0, symbol->first_line};

    p = sdb_varint_put(p, n);
    for (uint32_t i = 0; i < n; i++) {
        struct sdb_line_run run = symbol->line_runs[i];

        if (i + 1 == n && n < symbol->line_run_count) run.line = 0;
        p = sdb_varint_put(p, run.index - last.index);
        p = sdb_zigzag_put(p, (int64_t)run.line - (int64_t)last.line);
        last = run;
    }
    return p;
}

/* The payload of a CODE record at p. */
static uint8_t *
put_code(uint8_t *p, uint32_t code, const struct sdb_symbol *symbol, uint32_t path,
         uint32_t class_id, size_t name_bytes)
{
    p = sdb_varint_put(p, code);
    p = sdb_varint_put(p, symbol->kind);
    p = sdb_varint_put(p, symbol->base);
    p = sdb_varint_put(p, symbol->instruction_count);
    p = sdb_varint_put(p, path);
    p = sdb_varint_put(p, class_id);
    p = sdb_varint_put(p, symbol->first_line);
    p = sdb_varint_put(p, name_bytes);
    p = put_bytes(p, symbol->name, name_bytes);
    p = put_line_runs(p, symbol);
    p = sdb_varint_put(p, symbol->iseq);
    return sdb_varint_put(p, symbol->method_entry);
}

/* Id the string will have: its own when it is there, else *next_id, which moves on. 0 for none. */
static uint32_t
coming_id(const struct sdb_symbol_area *a, const char *s, size_t n, uint32_t *next_id, bool *is_new)
{
    uint32_t id;

    *is_new = false;
    if (n == 0) return 0;
    id = sdb_string_table_find(&a->strings, s, n);
    if (id != 0) return id;
    *is_new = true;
    return (*next_id)++;
}

/* Appends type, length, payload; make_room came before. */
static void
put_record(struct sdb_symbol_area *a, uint8_t type, const void *payload, size_t n)
{
    uint8_t *p = a->pending + a->used;

    *p++ = type;
    p = sdb_varint_put(p, n);
    p = put_bytes(p, payload, n);
    a->used = (size_t)(p - a->pending);
}

int
sdb_symbol_area_append(struct sdb_symbol_area *a, uint32_t code, const struct sdb_symbol *symbol)
{
    size_t name_n = sdb_utf8_cut(symbol->name, symbol->name_bytes, TEXT_MAX_BYTES);
    size_t path_n = sdb_utf8_cut(symbol->path, symbol->path_bytes, TEXT_MAX_BYTES);
    size_t class_n = sdb_utf8_cut(symbol->class_name, symbol->class_bytes, TEXT_MAX_BYTES);
    uint32_t next_id = a->strings.count + 1, path, class_id;
    bool new_path, new_class;
    size_t payload, need;
    int err;

    path = coming_id(a, symbol->path, path_n, &next_id, &new_path);
    class_id = coming_id(a, symbol->class_name, class_n, &next_id, &new_class);
    if (new_path && new_class && path_n == class_n &&
        memcmp(symbol->path, symbol->class_name, path_n) == 0) {
        class_id = path;
        new_class = false;
    }
    payload = (size_t)(put_code(a->scratch, code, symbol, path, class_id, name_n) - a->scratch);
    need = 1 + sdb_varint_size(payload) + payload;
    if (new_path) need += 1 + sdb_varint_size(path_n) + path_n;
    if (new_class) need += 1 + sdb_varint_size(class_n) + class_n;
    err = make_room(a, need);
    if (err != 0) return err;
    if (new_path) {
        if (sdb_string_table_add(&a->strings, symbol->path, path_n) == 0) return SDB_ERR_NOMEM;
        put_record(a, SDB_S_STRING, symbol->path, path_n);
    }
    if (new_class) {
        if (sdb_string_table_add(&a->strings, symbol->class_name, class_n) == 0)
            return SDB_ERR_NOMEM;
        put_record(a, SDB_S_STRING, symbol->class_name, class_n);
    }
    put_record(a, SDB_S_CODE, a->scratch, payload);
    return 0;
}

static int
write_header(struct sdb_symbol_area *a, uint64_t area_off)
{
    uint8_t header[SDB_AREA_HEADER_BYTES];
    int err;

    sdb_area_header_put(header, SDB_AREA_MAGIC, a->generation, 0, 0);
    err = sdb_ring_file_write(a->file, area_off, header, sizeof header);
    if (err == 0) a->file_used = sizeof header;
    return err;
}

int
sdb_symbol_area_flush(struct sdb_symbol_area *a)
{
    uint64_t area_off;
    int err;

    seal(a);
    if (a->file == NULL || a->open_off == 0) return 0;
    area_off = a->generation & 1 ? a->file->identity.area_a_off : a->file->identity.area_b_off;
    SDB_TESTPOINT(before_symbol_write);
    if (a->file_used == 0) {
        err = write_header(a, area_off);
        if (err != 0) return err;
    }
    err = sdb_ring_file_write(a->file, area_off + a->file_used, a->pending, a->open_off);
    if (err != 0) return err; /* kept for the next flush */
    SDB_TESTPOINT(after_symbol_write);
    a->file_used += a->open_off;
    a->open_off = 0;
    a->used = SDB_BLOCK_HEADER_BYTES;
    memset(a->pending, 0, SDB_BLOCK_HEADER_BYTES);
    return 0;
}

void
sdb_symbol_area_switch(struct sdb_symbol_area *a)
{
    (void)sdb_symbol_area_flush(a); /* its last chance; next_generation drops what is left */
    next_generation(a);
}
