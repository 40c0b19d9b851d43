/* SPDX-License-Identifier: MIT
 *
 * dump.c - finds the ring inside a dump. What else a dump holds is read by those who ask for it.
 *
 * Runs on: offline
 */
#include <stdbool.h>

#include "crc32c.h"
#include "dump_format.h"
#include "error.h"
#include "log/source.h"

static bool
header_proven(const struct sdb_dump_header *h)
{
    struct sdb_dump_header copy = *h;
    copy.crc = 0;
    return sdb_crc32c(0, &copy, sizeof(copy)) == h->crc;
}

int
sdb_source_enter_dump(struct sdb_source *s)
{
    struct sdb_dump_header h;
    int64_t got = sdb_source_read(s, 0, &h, sizeof(h));
    if (got < 0) return SDB_ERR_IO;
    if (got < 8 || h.magic != SDB_DUMP_MAGIC) return SDB_OK;
    if (got != sizeof(h)) return SDB_ERR_CORRUPT;
    if (h.endian_tag != SDB_DUMP_ENDIAN_TAG || h.major != SDB_DUMP_MAJOR) return SDB_ERR_VERSION;
    if (!header_proven(&h) || h.section_count > SDB_DUMP_SECTIONS_MAX) return SDB_ERR_CORRUPT;
    for (uint32_t i = 0; i < h.section_count; i++) {
        const struct sdb_dump_section *section = &h.sections[i];
        if (section->type != SDB_DUMP_RING) continue;
        if (section->off > s->n) return SDB_ERR_CORRUPT;
        uint64_t left = s->n - section->off;
        s->off += section->off;
        s->n = section->bytes < left ? section->bytes : left;
        return SDB_OK;
    }
    return SDB_ERR_NOT_RING;
}
