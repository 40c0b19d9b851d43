/* SPDX-License-Identifier: MIT
 *
 * ring_identity.c - collects the facts of the header page.
 *
 * Runs on: any thread that may block (reads /proc)
 */
#include "core/ring_identity.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "core/argv_secrets.h"
#include "core/clock.h"
#include "core/string_table.h"
#include "crc32c.h"
#include "error.h"

enum {
    AREA_MIN_BYTES = 256 << 10,
    AREA_MAX_BYTES = 8 << 20,
    AREA_SHARE = 16, /* each symbol area takes this part of the ring: 4 MiB of the default 64 */
    CHUNKS_MAX = 1 << 20,
    CMDLINE_MAX_BYTES = 4096,
};

int
sdb_identity_layout(struct sdb_identity *id, uint64_t ring_bytes)
{
    uint64_t area, chunks;

    if (ring_bytes < SDB_RING_MIN_BYTES) return SDB_ERR_INVALID;
    area = ring_bytes / AREA_SHARE & ~(uint64_t)(SDB_PAGE_BYTES - 1);
    if (area < AREA_MIN_BYTES) area = AREA_MIN_BYTES;
    if (area > AREA_MAX_BYTES) area = AREA_MAX_BYTES;
    chunks = (ring_bytes - SDB_HEADER_BYTES - 2 * area) / SDB_CHUNK_BYTES;
    if (chunks > CHUNKS_MAX) return SDB_ERR_INVALID;

    id->area_a_off = SDB_HEADER_BYTES;
    id->area_b_off = id->area_a_off + area;
    id->area_bytes = area;
    id->chunks_off = id->area_b_off + area;
    id->chunk_bytes = SDB_CHUNK_BYTES;
    id->chunk_count = chunks;
    id->file_bytes = id->chunks_off + chunks * SDB_CHUNK_BYTES;
    return 0;
}

/* Reads a small file of /proc; returns its length, 0 when it cannot. */
static size_t
slurp(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    if (fd < 0) return 0;
    while (n < size) {
        ssize_t got = read(fd, buffer + n, size - n);

        if (got <= 0) break;
        n += (size_t)got;
    }
    close(fd);
    return n;
}

static uint64_t
process_start_ticks(void)
{
    char stat[1024];
    size_t n = slurp("/proc/self/stat", stat, sizeof stat - 1);
    char *p;

    stat[n] = '\0';
    p = strrchr(stat, ')'); /* the name may hold anything, also spaces and parentheses */
    if (p == NULL) return 0;
    p++; /* field 3 follows a space; field 22 follows 20 spaces */
    for (int spaces = 0; *p != '\0'; p++) {
        if (*p == ' ' && ++spaces == 20) return strtoull(p + 1, NULL, 10);
    }
    return 0;
}

static void
boot_id(uint8_t id[16])
{
    char text[64];
    size_t n = slurp("/proc/sys/kernel/random/boot_id", text, sizeof text);
    unsigned digits = 0;

    for (size_t i = 0; i < n && digits < 32; i++) {
        char c = text[i];
        int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (value < 0) continue;
        id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | value);
        digits++;
    }
}

static uint64_t
pid_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

/* Appends "key=value\0" or, when it does not fit, nothing. */
static bool
add_text(uint8_t *text, uint32_t *bytes, const char *s, size_t n)
{
    if (n + 1 > SDB_IDENTITY_BYTES - sizeof(struct sdb_identity) - *bytes) return false;
    memcpy(text + *bytes, s, n);
    text[*bytes + n] = '\0';
    *bytes += (uint32_t)n + 1;
    return true;
}

/* The command line without its secrets. */
static void
add_argv(uint8_t *text, uint32_t *bytes)
{
    static const char hidden[] = "[FILTERED]";
    char cmdline[CMDLINE_MAX_BYTES], entry[CMDLINE_MAX_BYTES + 16 + sizeof hidden];
    size_t n = slurp("/proc/self/cmdline", cmdline, sizeof cmdline);
    size_t at = 0;
    bool value = false;

    for (unsigned i = 0; at < n; i++) {
        size_t length = strnlen(cmdline + at, n - at);
        int prefix = snprintf(entry, sizeof entry, "argv.%u=", i);

        if (at + length == sizeof cmdline) /* more than there is room for: the last one is cut */
            length = length > 8 ? sdb_text_put(cmdline + at, cmdline + at, length, length - 1) : 0;
        size_t shown = sdb_argv_shown(cmdline + at, length, &value), end = (size_t)prefix + shown;
        memcpy(entry + prefix, cmdline + at, shown);
        if (shown < length) {
            memcpy(entry + end, hidden, sizeof hidden - 1);
            end += sizeof hidden - 1;
        }
        if (!add_text(text, bytes, entry, end)) return;
        at += length + 1;
    }
}

static uint32_t
identity_crc(const uint8_t *pages, uint32_t text_bytes)
{
    struct sdb_identity id;
    uint32_t crc;

    memcpy(&id, pages, sizeof id);
    id.state = 0;
    id.crc = 0;
    crc = sdb_crc32c(0, &id, sizeof id);
    return sdb_crc32c(crc, pages + sizeof id, text_bytes);
}

void
sdb_identity_fill(struct sdb_identity *id, uint8_t *pages, const struct sdb_identity_facts *facts)
{
    static const char no_argv[] = "argv=0"; /* what SDB_ARGV=0 puts there */
    uint8_t *text = pages + sizeof *id;
    uint32_t text_bytes = 0;
    bool argv = true;

    memset(pages, 0, SDB_IDENTITY_BYTES);
    for (size_t at = 0; at < facts->text_bytes;) {
        size_t n = strnlen(facts->text + at, facts->text_bytes - at);

        if (n > 0) add_text(text, &text_bytes, facts->text + at, n);
        if (n == sizeof no_argv - 1 && !memcmp(facts->text + at, no_argv, n)) argv = false;
        at += n + 1;
    }
    if (argv) add_argv(text, &text_bytes);

    id->magic = SDB_MAGIC;
    id->endian_tag = SDB_ENDIAN_TAG;
    id->major = SDB_FORMAT_MAJOR;
    id->minor = SDB_FORMAT_MINOR;
    id->word_bytes = sizeof(void *);
    id->state = SDB_RING_CREATING;
    id->start_monotonic_ns = facts->start_monotonic_ns;
    id->start_realtime_ns = facts->start_realtime_ns;
    if (id->start_monotonic_ns == 0) {
        id->start_monotonic_ns = sdb_monotonic_ns();
        id->start_realtime_ns = sdb_clock_ns(CLOCK_REALTIME);
    }
    id->process_start_ticks = process_start_ticks();
    id->interval_ns = facts->interval_ns;
    id->pid = (uint32_t)getpid();
    id->ppid = (uint32_t)getppid();
    id->pid_namespace = pid_namespace();
    id->flags = facts->flags;
    id->clock_ticks_per_s = (uint32_t)sysconf(_SC_CLK_TCK);
    boot_id(id->boot_id);
    id->text_bytes = text_bytes;
    id->crc = 0;
    memcpy(pages, id, sizeof *id);
    id->crc = identity_crc(pages, text_bytes);
    memcpy(pages, id, sizeof *id);
}

int
sdb_identity_check(const uint8_t *pages, size_t n)
{
    struct sdb_identity id;

    if (n < sizeof id) return SDB_ERR_NOT_RING;
    memcpy(&id, pages, sizeof id);
    if (id.magic != SDB_MAGIC) return SDB_ERR_NOT_RING;
    if (id.endian_tag != SDB_ENDIAN_TAG || id.major != SDB_FORMAT_MAJOR) return SDB_ERR_VERSION;
    if (id.text_bytes > n - sizeof id || id.text_bytes > SDB_IDENTITY_BYTES - sizeof id)
        return SDB_ERR_CORRUPT;
    return identity_crc(pages, id.text_bytes) == id.crc ? 0 : SDB_ERR_CORRUPT;
}
