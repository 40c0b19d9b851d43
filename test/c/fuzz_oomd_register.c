/* SPDX-License-Identifier: MIT
 *
 * fuzz_oomd_register.c - libFuzzer target of everything in sdb-oomd that looks at bytes of an unprivileged
 * process: the registration, its name, what /proc says of it, and what the probes copied out of its memory. The
 * first byte chooses.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "dump_format.h"
#include "oomd_capture.h"
#include "oomd_describe.h"
#include "oomd_register.h"
#include "oomd_ring.h"
#include "ring_format.h"

static void
message(const uint8_t *data, size_t n)
{
    struct sdb_oom_register whole = {
        .magic = SDB_OOM_MAGIC, .version = SDB_OOM_VERSION, .bytes = sizeof whole};
    struct oomd_register out;
    const char *why;
    /* past the magic, which random bytes do not meet */
    memcpy((uint8_t *)&whole + 16, data, n < sizeof whole - 16 ? n : sizeof whole - 16);
    if (oomd_register_parse(&out, &whole, &why) != 0) return;
    if (memchr(out.service, '\0', sizeof out.service) == NULL || strchr(out.service, '/') != NULL ||
        out.service[0] == '\0' || out.service[0] == '.' || out.service[0] == '-')
        abort();
}

/* What a keeper packed, as if a stranger could have: random bytes, and texts that must come back. */
static void
description(const uint8_t *data, size_t n)
{
    static struct oomd_description d, again;
    static uint8_t packed[OOMD_PACKED_BYTES];
    oomd_describe_unpack(&d, data, n);
    memset(&d, 0, sizeof d);
    for (size_t i = 0; i < n && i + 1 < sizeof d.cmdline; i++)
        d.cmdline[i] = data[i] ? (char)data[i] : ' ';
    d.maps_bytes = n < sizeof d.maps ? n : sizeof d.maps;
    memcpy(d.maps, data, d.maps_bytes);
    size_t bytes = oomd_describe_pack(&d, packed);
    if (bytes == 0 || !oomd_describe_unpack(&again, packed, bytes) ||
        strcmp(d.cmdline, again.cmdline) != 0 || d.maps_bytes != again.maps_bytes ||
        memcmp(d.maps, again.maps, d.maps_bytes) != 0)
        abort();
}

/* Events: type, thread, offset, u16 length, bytes. The first becomes the table. */
static void
capture(const uint8_t *data, size_t n)
{
    struct oomd_capture c = {0};
    struct oomd_bytes threads = {0}, pending = {0};
    struct sdb_live_table table = {.magic = SDB_LIVE_MAGIC, .cfp_bytes = 56};
    uint64_t off = 0;
    size_t head = n < 128 ? n : 128;
    memcpy(&table.thread_ec, data, head < 72 ? head : 72);
    struct sdb_oom_data_header first = {.type = SDB_OOM_D_TABLE, .bytes = sizeof table};
    oomd_capture_add(&c, &first, (const uint8_t *)&table);
    for (size_t i = head; i + 5 <= n;) {
        uint16_t length;
        memcpy(&length, data + i + 3, 2);
        if (length > n - i - 5) length = (uint16_t)(n - i - 5);
        struct sdb_oom_data_header e = {.type = data[i] % 8u,
                                        .thread = data[i + 1] % 4u,
                                        .offset = data[i + 2] * 8u,
                                        .bytes = length};
        oomd_capture_add(&c, &e, data + i + 5);
        i += 5 + length;
    }
    if (oomd_capture_threads(&c, &threads) < 0) abort();
    for (size_t i = 0; i < threads.n;) {
        struct sdb_dump_thread t;
        memcpy(&t, threads.at + i, sizeof t);
        if (t.bytes != sizeof t + t.frame_count * sizeof(struct sdb_dump_frame) ||
            t.bytes > threads.n - i)
            abort();
        i += t.bytes;
    }
    if (oomd_capture_pending(&c, &pending, &off) &&
        oomd_pending_seal(pending.at, pending.n, 0, 7) > pending.n)
        abort();
    free(threads.at);
    free(pending.at);
    oomd_capture_free(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) return 0;
    switch (data[0] % 3) {
    case 0:
        message(data + 1, n - 1);
        break;
    case 1:
        description(data + 1, n - 1);
        break;
    default:
        capture(data + 1, n - 1);
    }
    return 0;
}
