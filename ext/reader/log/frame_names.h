/* SPDX-License-Identifier: MIT
 *
 * frame_names.h - names for frames that were read as addresses out of a dying process (struct sdb_dump_frame):
 * the ring's symbols, looked up by where code lay in that process instead of by code id.
 *
 * Runs on: offline
 */
#ifndef SDB_FRAME_NAMES_H
#define SDB_FRAME_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "dump_format.h"
#include "log/map.h"
#include "log/symbols.h"

struct sdb_frame_names {
    const struct sdb_symbols *symbols; /* borrowed */
    uint32_t *by_base;                 /* indexes of Ruby codes, by base, then by code id */
    size_t by_base_count;
    struct sdb_map by_key; /* (iseq, method entry), and each of them with 0: the newest code */
};

enum sdb_frame_kind {
    SDB_FRAME_NAMED = 1,
    SDB_FRAME_UNNAMED = 2, /* ran for the first time too short before the kill */
    SDB_FRAME_NONE =
        3, /* the bottom of a stack, or C's part of a block: nothing that a backtrace shows */
};

/* 0 or SDB_ERR_NOMEM. symbols must not be read further until _free. */
int sdb_frame_names_init(struct sdb_frame_names *names, const struct sdb_symbols *symbols);
void sdb_frame_names_free(struct sdb_frame_names *names);

/* *code: when NAMED. *line: 0 none. */
enum sdb_frame_kind sdb_frame_names_find(const struct sdb_frame_names *names,
                                         const struct sdb_dump_frame *frame,
                                         const struct sdb_reader_code **code, uint32_t *line);

#endif
