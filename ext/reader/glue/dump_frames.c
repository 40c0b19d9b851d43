/* SPDX-License-Identifier: MIT
 *
 * dump_frames.c - Sdb::Native::Log#name_frames: names for the raw frames of a dump.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <stdlib.h>
#include <string.h>

#include "glue/glue.h"
#include "glue/init.h"
#include "log/frame_names.h"

struct naming { /* with rb_ensure: Ruby may raise while the Arrays grow */
    VALUE bytes;
    struct sdb_symbols symbols;
    struct sdb_frame_names names;
};

static VALUE
text_of(struct sdb_bytes text)
{
    return rb_utf8_str_new((const char *)text.at, (long)text.n);
}

static VALUE
frame_row(const struct sdb_reader_code *code, uint32_t line)
{
    VALUE row = rb_hash_new();
    rb_sdb_put(row, "name", text_of(code->name));
    rb_sdb_put(row, "path", text_of(code->path));
    rb_sdb_put(row, "line", UINT2NUM(line));
    return row;
}

static VALUE
name_all(VALUE arg)
{
    struct naming *naming = (struct naming *)arg;
    size_t n = (size_t)RSTRING_LEN(naming->bytes) / sizeof(struct sdb_dump_frame);
    VALUE rows = rb_ary_new_capa((long)n);
    for (size_t i = 0; i < n; i++) {
        struct sdb_dump_frame frame;
        const struct sdb_reader_code *code = NULL;
        uint32_t line;
        memcpy(&frame, RSTRING_PTR(naming->bytes) + i * sizeof(frame), sizeof(frame));
        switch (sdb_frame_names_find(&naming->names, &frame, &code, &line)) {
        case SDB_FRAME_NAMED:
            rb_ary_push(rows, frame_row(code, line));
            break;
        case SDB_FRAME_UNNAMED:
            rb_ary_push(rows, Qfalse);
            break;
        default:
            rb_ary_push(rows, Qnil);
        }
    }
    return rows;
}

static VALUE
free_all(VALUE arg)
{
    struct naming *naming = (struct naming *)arg;
    sdb_frame_names_free(&naming->names);
    sdb_symbols_free(&naming->symbols);
    free(naming);
    return Qnil;
}

/* log.name_frames(bytes): bytes is struct sdb_dump_frame[]. For each {name:, path:, line:}, false when it has no name
 * yet, nil when it is no frame that a backtrace shows. */
static VALUE
log_name_frames(VALUE self, VALUE bytes)
{
    struct sdb_ring_reader *reader = rb_sdb_log_reader(self);
    StringValue(bytes);
    struct naming *naming = calloc(1, sizeof(*naming));
    if (!naming) rb_memerror();
    naming->bytes = bytes;
    int err = sdb_symbols_read(&naming->symbols, reader);
    if (!err) err = sdb_frame_names_init(&naming->names, &naming->symbols);
    if (err) free_all((VALUE)naming);
    rb_sdb_check(err, "symbols");
    VALUE rows = rb_ensure(name_all, (VALUE)naming, free_all, (VALUE)naming);
    RB_GC_GUARD(bytes);
    return rows;
}

void
rb_sdb_init_dump_frames(VALUE log)
{
    rb_define_method(log, "name_frames", log_name_frames, 1);
}
