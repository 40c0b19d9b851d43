/* SPDX-License-Identifier: MIT
 *
 * symbols.c - see symbols.h.
 *
 * Runs on: offline
 */
#include "log/symbols.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "log/template_names.h"

enum { WINDOW_BYTES = 256 << 10 }; /* holds any block */

static struct sdb_bytes
string_of(const struct sdb_symbol_place *place, uint64_t id)
{
    return id >= 1 && id <= place->string_count ? place->strings[id - 1]
                                                : (struct sdb_bytes){(const uint8_t *)"", 0};
}

static int
string_add(struct sdb_symbols *s, struct sdb_symbol_place *place, struct sdb_bytes bytes)
{
    int err = sdb_grow(&place->strings, &place->string_capacity, place->string_count + 1,
                       sizeof(*place->strings));
    if (err) return err;
    const uint8_t *copy = sdb_arena_copy(&s->arena, bytes.at, bytes.n);
    if (!copy) return SDB_ERR_NOMEM;
    place->strings[place->string_count++] = (struct sdb_bytes){copy, bytes.n};
    return SDB_OK;
}

static int
code_add(struct sdb_symbols *s, const struct sdb_reader_code *code)
{
    uint32_t at = sdb_map_get(&s->by_code, code->code, 0);
    if (at != SDB_MAP_NONE) {
        if (code->generation >= s->codes[at].generation) s->codes[at] = *code;
        return SDB_OK;
    }
    if (s->code_count >= SDB_MAP_NONE - 1) return SDB_ERR_FULL;
    int err = sdb_grow(&s->codes, &s->code_capacity, s->code_count + 1, sizeof(*s->codes));
    if (!err) err = sdb_map_set(&s->by_code, code->code, 0, (uint32_t)s->code_count);
    if (!err) s->codes[s->code_count++] = *code;
    return err;
}

static int
code_parse(struct sdb_symbols *s, struct sdb_symbol_place *place, struct sdb_cursor c)
{
    struct sdb_reader_code code = {.generation = place->generation};
    code.code = sdb_take_u32(&c);
    code.kind = sdb_take_u32(&c);
    code.base = sdb_take_varint(&c);
    code.instruction_count = sdb_take_u32(&c);
    uint64_t path = sdb_take_varint(&c), class_name = sdb_take_varint(&c);
    code.first_line = sdb_take_u32(&c);
    struct sdb_bytes name = sdb_take_string(&c);
    code.run_count = sdb_take_u32(&c);
    if (c.bad || code.code == 0 || code.run_count > sdb_cursor_left(&c) / 2) {
        s->damaged_records++;
        return SDB_OK;
    }
    struct sdb_bytes runs = {c.at, 0};
    for (uint64_t i = 0; i < (uint64_t)code.run_count * 2; i++) sdb_take_varint(&c);
    if (c.bad) {
        s->damaged_records++;
        return SDB_OK;
    }
    runs.n = (size_t)(c.at - runs.at);
    if (sdb_cursor_left(&c)) code.iseq = sdb_take_varint(&c);
    if (sdb_cursor_left(&c)) code.method_entry = sdb_take_varint(&c);
    code.path = string_of(place, path);
    code.class_name = string_of(place, class_name);
    uint8_t buffer[SDB_TEMPLATE_NAME_MAX];
    name = sdb_template_name(name, code.path, buffer);
    code.name = (struct sdb_bytes){sdb_arena_copy(&s->arena, name.at, name.n), name.n};
    code.runs = (struct sdb_bytes){sdb_arena_copy(&s->arena, runs.at, runs.n), runs.n};
    if (!code.name.at || !code.runs.at) return SDB_ERR_NOMEM;
    return code_add(s, &code);
}

static int
block_parse(struct sdb_symbols *s, struct sdb_symbol_place *place, struct sdb_bytes payload)
{
    struct sdb_cursor c = {payload.at, payload.at + payload.n, false};
    while (sdb_cursor_left(&c)) {
        uint64_t type = sdb_take_varint(&c);
        struct sdb_bytes record = sdb_take_string(&c);
        if (c.bad) {
            s->damaged_records++;
            return SDB_OK;
        }
        int err = SDB_OK;
        if (type == SDB_S_STRING) err = string_add(s, place, record);
        if (type == SDB_S_CODE)
            err = code_parse(s, place, (struct sdb_cursor){record.at, record.at + record.n, false});
        if (err) return err;
    }
    return SDB_OK;
}

static int
area_read(struct sdb_symbols *s, const struct sdb_ring_reader *r, int which, uint8_t *window)
{
    struct sdb_symbol_place *place = &s->places[which];
    uint64_t off = which == 0 ? r->identity.area_a_off : r->identity.area_b_off;
    struct sdb_area_header h;
    int64_t got = sdb_source_read(&r->source, off, &h, sizeof(h));
    if (got < 0) return SDB_ERR_IO;
    if (got != sizeof(h) || !sdb_area_header_valid(&h, SDB_AREA_MAGIC)) return SDB_OK;
    if (h.seq == 0 || (h.seq & 1) != (which == 0 ? 1u : 0u)) return SDB_OK;
    if (h.seq != place->generation) {
        place->generation = h.seq;
        place->at = SDB_AREA_HEADER_BYTES;
        place->string_count = 0;
    }
    for (;;) {
        uint64_t left = r->identity.area_bytes - place->at;
        got = sdb_source_read(&r->source, off + place->at, window,
                              left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES);
        if (got < 0) return SDB_ERR_IO;
        const uint8_t *at = window, *end = window + got;
        struct sdb_bytes payload;
        while (sdb_block_next(&at, end, place->generation, &payload)) {
            int err = block_parse(s, place, payload);
            if (err) return err;
        }
        if (at == window) return SDB_OK;
        place->at += (uint64_t)(at - window);
    }
}

int
sdb_symbols_read(struct sdb_symbols *s, const struct sdb_ring_reader *r)
{
    uint8_t *window = malloc(WINDOW_BYTES);
    if (!window) return SDB_ERR_NOMEM;
    int err = area_read(s, r, 0, window);
    if (!err) err = area_read(s, r, 1, window);
    free(window);
    return err;
}

void
sdb_symbols_free(struct sdb_symbols *s)
{
    free(s->codes);
    for (int i = 0; i < 2; i++) free(s->places[i].strings);
    sdb_map_free(&s->by_code);
    sdb_arena_free(&s->arena);
    *s = (struct sdb_symbols){0};
}

const struct sdb_reader_code *
sdb_symbols_find(const struct sdb_symbols *s, uint32_t code)
{
    uint32_t at = sdb_map_get(&s->by_code, code, 0);
    return at == SDB_MAP_NONE ? NULL : &s->codes[at];
}

uint32_t
sdb_code_line(const struct sdb_reader_code *code, uint64_t where)
{
    uint64_t index;
    if (where == 0) return 0;
    if (where & 1) {
        index = where >> 1;
    } else {
        if (where < code->base) return 0;
        index = where == code->base ? 0 : (where - code->base) / 8 - 1;
    }
    if (index >= code->instruction_count) return 0;

    struct sdb_cursor c = {code->runs.at, code->runs.at + code->runs.n, false};
    uint64_t run_index = 0, line = code->first_line, found = 0;
    for (uint32_t i = 0; i < code->run_count; i++) {
        run_index += sdb_take_varint(&c);
        line += (uint64_t)sdb_take_zigzag(&c);
        if (c.bad || run_index > index) break;
        found = line;
    }
    return found <= INT32_MAX ? (uint32_t)found : 0;
}
