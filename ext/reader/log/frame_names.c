/* SPDX-License-Identifier: MIT
 *
 * frame_names.c - see frame_names.h. Code that was freed may have left its place to other code, so of all that
 * were known at an address the newest counts.
 *
 * Runs on: offline
 */
#include "log/frame_names.h"

#include <stdlib.h>

#include "error.h"
#include "ring_format.h"

/* ep[0] of a frame: vm_core.h VM_FRAME_MAGIC_*, the same from 3.1 to 4.0 */
enum {
    MAGIC_MASK = 0x7fff0001,
    MAGIC_CFUNC = 0x55550001,
    MAGIC_IFUNC = 0x66660001,
    MAGIC_DUMMY = 0x79990001,
    WORD_BYTES = 8,
};

static const struct sdb_symbols
    *sorted; /* qsort has no context; set under the GVL or in a program of one thread */

static int
by_base(const void *left, const void *right)
{
    const struct sdb_reader_code *a = &sorted->codes[*(const uint32_t *)left];
    const struct sdb_reader_code *b = &sorted->codes[*(const uint32_t *)right];
    if (a->base != b->base) return a->base < b->base ? -1 : 1;
    return a->code < b->code ? -1 : a->code > b->code;
}

/* The newer code of two that had the key. */
static int
remember(struct sdb_frame_names *names, uint64_t iseq, uint64_t method, uint32_t index)
{
    if (iseq == 0 && method == 0) return SDB_OK;
    uint32_t there = sdb_map_get(&names->by_key, iseq, method);
    if (there != SDB_MAP_NONE &&
        names->symbols->codes[there].code >= names->symbols->codes[index].code)
        return SDB_OK;
    return sdb_map_set(&names->by_key, iseq, method, index);
}

int
sdb_frame_names_init(struct sdb_frame_names *names, const struct sdb_symbols *symbols)
{
    *names = (struct sdb_frame_names){.symbols = symbols};
    if (symbols->code_count == 0) return SDB_OK;
    names->by_base = malloc(symbols->code_count * sizeof(*names->by_base));
    if (!names->by_base) return SDB_ERR_NOMEM;
    for (size_t i = 0; i < symbols->code_count; i++) {
        const struct sdb_reader_code *code = &symbols->codes[i];
        uint64_t method = code->method_entry & ~1ull; /* the low bit says "a define_method body" */
        if (code->kind == SDB_CODE_RUBY && code->base && code->instruction_count)
            names->by_base[names->by_base_count++] = (uint32_t)i;
        int err = remember(names, code->iseq, method, (uint32_t)i);
        if (!err && code->iseq && method) err = remember(names, code->iseq, 0, (uint32_t)i);
        if (err) {
            sdb_frame_names_free(names);
            return err;
        }
    }
    sorted = symbols;
    qsort(names->by_base, names->by_base_count, sizeof(*names->by_base), by_base);
    return SDB_OK;
}

void
sdb_frame_names_free(struct sdb_frame_names *names)
{
    free(names->by_base);
    sdb_map_free(&names->by_key);
    *names = (struct sdb_frame_names){0};
}

/* How many codes begin at or below pc. */
static size_t
upper_bound(const struct sdb_frame_names *names, uint64_t pc)
{
    size_t low = 0, high = names->by_base_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names->symbols->codes[names->by_base[middle]].base <= pc) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool
holds(const struct sdb_reader_code *code, uint64_t pc)
{
    return pc - code->base <= (uint64_t)code->instruction_count * WORD_BYTES &&
           (pc - code->base) % WORD_BYTES == 0;
}

/* Code that holds pc; of several at one place the one with that method, else the newest. */
static const struct sdb_reader_code *
find_by_pc(const struct sdb_frame_names *names, uint64_t pc, uint64_t method)
{
    const struct sdb_reader_code *best = NULL;
    size_t i = upper_bound(names, pc);
    /* pieces that were freed may overlap newer ones: some steps back are enough, and bound a hostile file */
    for (int steps = 0; i > 0 && steps < 64; steps++) {
        const struct sdb_reader_code *code = &names->symbols->codes[names->by_base[--i]];
        if (best && code->base != best->base && code->code < best->code) break;
        if (!holds(code, pc)) continue;
        if (method && (code->method_entry & ~1ull) == method) return code;
        if (!best || code->code > best->code) best = code;
    }
    return best;
}

static const struct sdb_reader_code *
find_by_key(const struct sdb_frame_names *names, uint64_t iseq, uint64_t method)
{
    uint32_t i = sdb_map_get(&names->by_key, iseq, method);
    if (i == SDB_MAP_NONE && iseq && method) i = sdb_map_get(&names->by_key, iseq, 0);
    return i == SDB_MAP_NONE ? NULL : &names->symbols->codes[i];
}

enum sdb_frame_kind
sdb_frame_names_find(const struct sdb_frame_names *names, const struct sdb_dump_frame *frame,
                     const struct sdb_reader_code **found, uint32_t *line)
{
    uint64_t magic = frame->env & MAGIC_MASK, method = frame->method & ~7ull;
    const struct sdb_reader_code *code = NULL;
    *line = 0;
    if (magic == MAGIC_DUMMY || magic == MAGIC_IFUNC) return SDB_FRAME_NONE;
    if (magic == MAGIC_CFUNC) {
        code = find_by_key(names, 0, method);
    } else {
        if (frame->iseq == 0) return SDB_FRAME_NONE;
        if (frame->pc) code = find_by_pc(names, frame->pc, method);
        if (code) {
            /* pc is behind the instruction that runs */
            uint64_t index = (frame->pc - code->base) / WORD_BYTES;
            *line = sdb_code_line(code, (index ? index - 1 : 0) << 1 | 1);
        } else {
            code = find_by_key(names, frame->iseq, method);
        }
    }
    if (!code || code->kind == SDB_CODE_INVALID) return SDB_FRAME_UNNAMED;
    *found = code;
    return SDB_FRAME_NAMED;
}
