/* SPDX-License-Identifier: MIT
 *
 * dump.c - finds the ring inside a dump, and when its process was killed: how long the log's last states went on.
 * What else a dump holds is read by those who ask for it.
 *
 * Runs on: offline
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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

/* The number of "key=number" among NUL-terminated facts, 0 when there is none or it makes no sense. */
static uint64_t
fact_number(const char *facts, size_t n, const char *key)
{
    size_t length = strlen(key);
    for (size_t at = 0; at < n;) {
        const char *entry = facts + at, *end = memchr(entry, 0, n - at);
        if (!end) break;
        if (strncmp(entry, key, length) == 0 && entry[length] == '=') {
            const char *digit = entry + length + 1;
            uint64_t number = 0;
            for (; *digit >= '0' && *digit <= '9' && number < UINT64_MAX / 10 - 9; digit++)
                number = number * 10 + (uint64_t)(*digit - '0');
            return *digit ? 0 : number;
        }
        at = (size_t)(end - facts) + 1;
    }
    return 0;
}

/* A dump without readable facts is read all the same: 0. SDB_ERR_NOMEM. */
static int
killed_read(const struct sdb_source *s, const struct sdb_dump_section *facts, uint64_t *killed_ns)
{
    if (facts->bytes == 0 || facts->bytes > SDB_DUMP_FACTS_MAX_BYTES) return SDB_OK;
    size_t n = (size_t)facts->bytes;
    char *bytes = malloc(n);
    if (!bytes) return SDB_ERR_NOMEM;
    if (sdb_source_read(s, facts->off, bytes, n) == (int64_t)n &&
        sdb_crc32c(0, bytes, n) == facts->crc)
        *killed_ns = fact_number(bytes, n, "killed_monotonic_ns");
    free(bytes);
    return SDB_OK;
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
    uint64_t killed_ns = 0;
    for (uint32_t i = 0; i < h.section_count; i++) {
        if (h.sections[i].type != SDB_DUMP_FACTS) continue;
        int err = killed_read(s, &h.sections[i], &killed_ns);
        if (err) return err;
        break;
    }
    for (uint32_t i = 0; i < h.section_count; i++) {
        const struct sdb_dump_section *section = &h.sections[i];
        if (section->type != SDB_DUMP_RING) continue;
        if (section->off > s->n) return SDB_ERR_CORRUPT;
        uint64_t left = s->n - section->off;
        s->off += section->off;
        s->n = section->bytes < left ? section->bytes : left;
        s->killed_monotonic_ns = killed_ns;
        return SDB_OK;
    }
    return SDB_ERR_NOT_RING;
}
