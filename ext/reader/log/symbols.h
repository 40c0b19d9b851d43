/* SPDX-License-Identifier: MIT
 *
 * symbols.h - the names in the two symbol areas of a ring, by code id. Can be asked to look again at a
 * live ring: it goes on where it stopped.
 *
 * Runs on: offline
 */
#ifndef SDB_SYMBOLS_H
#define SDB_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "log/map.h"
#include "log/memory.h"
#include "log/ring_reader.h"

struct sdb_reader_code { /* borrowed pointers: until sdb_symbols_free */
    uint64_t generation;
    uint64_t base;
    uint32_t code;
    uint32_t kind; /* enum sdb_code_kind */
    uint32_t instruction_count;
    uint32_t first_line;
    struct sdb_bytes name, path, class_name;
    uint64_t iseq, method_entry; /* addresses in the process that wrote it, 0 none */
    uint32_t run_count;
    struct sdb_bytes runs; /* as in the file: (index delta, zigzag line delta) x run_count */
};

struct sdb_symbols {
    struct sdb_reader_code *codes;
    size_t code_count, code_capacity;
    struct sdb_map by_code;
    struct sdb_arena arena;
    uint64_t damaged_records;
    struct sdb_symbol_place { /* how far area A and B are read */
        uint64_t generation;  /* 0 none */
        uint64_t at;          /* offset within the area */
        struct sdb_bytes *strings;
        size_t string_count, string_capacity;
    } places[2];
};

/* Reads what is new in both areas; a zero-filled struct knows nothing. 0, SDB_ERR_IO, SDB_ERR_NOMEM. */
int sdb_symbols_read(struct sdb_symbols *s, const struct sdb_ring_reader *r);
void sdb_symbols_free(struct sdb_symbols *s);

/* The code, or NULL when it has no name (yet). Borrowed until the next read. */
const struct sdb_reader_code *sdb_symbols_find(const struct sdb_symbols *s, uint32_t code);

/* Line of a NODE's `where` in that code, 0 none. */
uint32_t sdb_code_line(const struct sdb_reader_code *code, uint64_t where);

#endif
