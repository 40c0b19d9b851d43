/* SPDX-License-Identifier: MIT
 *
 * fuzz_dump.c - libFuzzer target of the dump's header, the ring inside, and the naming of raw frames.
 *
 * An input is a whole file as it stands (first byte even), or (odd) a header without magic and checksum, which
 * are put right here, then the rest of the file; the last 32 bytes are a frame to be named by symbols made
 * of the bytes before.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "dump_format.h"
#include "log/frame_names.h"
#include "log/ring_reader.h"

static void
read_file(const uint8_t *bytes, size_t n)
{
    struct sdb_source source;
    struct sdb_ring_reader reader;
    sdb_source_memory(&source, bytes, n);
    if (sdb_source_enter_dump(&source) != 0) return;
    if (source.off > n || source.n > n - source.off) abort();
    if (sdb_ring_reader_open(&reader, source) == 0) sdb_ring_reader_close(&reader);
}

static void
name_frames(const uint8_t *data, size_t n)
{
    struct sdb_reader_code codes[64];
    struct sdb_frame_names names;
    struct sdb_symbols symbols = {.codes = codes};
    const struct sdb_reader_code *code;
    struct sdb_dump_frame frame;
    uint32_t line;
    if (n < sizeof frame) return;
    for (size_t i = 0; symbols.code_count < 64 && i + 8 <= n - sizeof frame; i += 8) {
        codes[symbols.code_count++] = (struct sdb_reader_code){.code = data[i] + 1u,
                                                               .kind = data[i + 1] % 5u,
                                                               .base = data[i + 2] * 64u,
                                                               .instruction_count = data[i + 3],
                                                               .iseq = data[i + 4] * 8u,
                                                               .method_entry = data[i + 5],
                                                               .run_count = data[i + 6] % 4u,
                                                               .runs = {data, n < 8 ? n : 8},
                                                               .first_line = data[i + 7]};
    }
    if (sdb_frame_names_init(&names, &symbols) != 0) return;
    memcpy(&frame, data + n - sizeof frame, sizeof frame);
    frame.pc &= 0x7fff;
    frame.method &= 0xff;
    if (sdb_frame_names_find(&names, &frame, &code, &line) == SDB_FRAME_NAMED &&
        (code < codes || code >= codes + symbols.code_count))
        abort();
    sdb_frame_names_free(&names);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct sdb_dump_header h;
    if (n < 2) return 0;
    if (data[0] % 2 == 0) {
        read_file(data + 1, n - 1);
        return 0;
    }
    name_frames(data + 1, n - 1);
    size_t room = n - 1 > sizeof h ? n - 1 : sizeof h;
    uint8_t *file = calloc(1, room);
    if (file == NULL) return 0;
    memcpy(file, data + 1, n - 1);
    memcpy(&h, file, sizeof h);
    h.magic = SDB_DUMP_MAGIC;
    h.endian_tag = SDB_DUMP_ENDIAN_TAG;
    h.major = SDB_DUMP_MAJOR;
    h.section_count %= SDB_DUMP_SECTIONS_MAX + 2;
    h.crc = 0;
    h.crc = sdb_crc32c(0, &h, sizeof h);
    memcpy(file, &h, sizeof h);
    read_file(file, room);
    free(file);
    return 0;
}
