/* SPDX-License-Identifier: MIT
 *
 * symbol_area.h - appends CODE and STRING records to the active symbol area of a ring and moves to the
 * other area when it is full. Like the ring writer it collects privately and writes on flush, and it may
 * exist before its file.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_SYMBOL_AREA_H
#define SDB_SYMBOL_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ring_format.h"

struct sdb_ring_file;
struct sdb_symbol_area;

struct sdb_line_run { /* instructions [index, next run's index) are on `line`, 0 not known */
    uint32_t index;
    uint32_t line;
};

enum { SDB_LINE_RUNS_MAX = 1 << 14 }; /* that a symbol has; of more, the last says not known */

/* What a code is called. Made by the symbolizer in one malloc'ed piece, immutable from then on. */
struct sdb_symbol {
    enum sdb_code_kind kind;
    uint64_t base;              /* address of instruction 0; 0 for C */
    uint32_t instruction_count; /* in words */
    uint32_t first_line;        /* 0 none */
    uint32_t name_bytes, path_bytes, class_bytes;
    uint32_t line_run_count;
    const char *name;       /* UTF-8, qualified: "block in Foo#bar" */
    const char *path;       /* "" for C */
    const char *class_name; /* "" none */
    const struct sdb_line_run *line_runs;
    /* addresses it was named from, 0 none: keys for stacks that a dump holds as addresses */
    uint64_t iseq, method_entry;
};

struct sdb_symbol_area *sdb_symbol_area_new(void);
void sdb_symbol_area_free(struct sdb_symbol_area *a);
void sdb_symbol_area_attach(struct sdb_symbol_area *a, struct sdb_ring_file *file);

/* 0, SDB_ERR_NOMEM, or SDB_ERR_FULL when the active area cannot take it: then the caller drops what no live
 * chunk uses, calls _switch and appends the rest again (what is still FULL then stays unnamed). Names,
 * paths and classes over 4096 bytes are cut at a UTF-8 boundary; line runs that do not fit into 40 KiB are cut, and what
 * they were about is on line 0, not known; runs are in order of index. NULL is allowed for a text of 0 bytes. */
int sdb_symbol_area_append(struct sdb_symbol_area *a, uint32_t code,
                           const struct sdb_symbol *symbol);
/* Next generation, in the other area. Flushes first; what cannot be written is dropped. */
void sdb_symbol_area_switch(struct sdb_symbol_area *a);
/* Writes what is pending. 0 or a negative error; then the bytes stay for the next flush. */
int sdb_symbol_area_flush(struct sdb_symbol_area *a);
/* Of area A and B, on the file. */
void sdb_symbol_area_on_file(const struct sdb_symbol_area *a, uint64_t *used_a, uint64_t *used_b);
uint64_t sdb_symbol_area_used_bytes(const struct sdb_symbol_area *a); /* of the active area */
uint64_t sdb_symbol_area_capacity_bytes(const struct sdb_symbol_area *a);
uint64_t sdb_symbol_area_memory_bytes(const struct sdb_symbol_area *a);

#endif
