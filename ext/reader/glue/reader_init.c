/* SPDX-License-Identifier: MIT
 *
 * reader_init.c - makes the module Sdb::Native, and raises the core's errors.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "glue/glue.h"

void
rb_sdb_check(int err, const char *what)
{
    if (err >= 0) return;
    if (err == SDB_ERR_IO && errno) rb_syserr_fail(errno, what);
    if (err == SDB_ERR_NOMEM) rb_raise(rb_eNoMemError, "%s: %s", what, sdb_error_text(err));
    rb_raise(rb_path2class("Sdb::FormatError"), "%s: %s", what, sdb_error_text(err));
}

struct rows {
    void *data;
    size_t bytes;
};

static VALUE
rows_copy(VALUE arg)
{
    const struct rows *rows = (const struct rows *)arg;
    return rb_str_new(rows->data, (long)rows->bytes);
}

static VALUE
rows_free(VALUE arg)
{
    free(((struct rows *)arg)->data);
    return Qnil;
}

VALUE
rb_sdb_take_rows(void *data, size_t n, size_t size)
{
    struct rows rows = {data, n * size};
    return rb_ensure(rows_copy, (VALUE)&rows, rows_free, (VALUE)&rows);
}

__attribute__((visibility("default"))) void
Init_sdb_reader(void)
{
    VALUE native = rb_define_module_under(rb_define_module("Sdb"), "Native");
    rb_sdb_init_log(native);
    rb_sdb_init_dump_frames(native);
    rb_sdb_init_profile(native);
}
