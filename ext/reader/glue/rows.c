/* SPDX-License-Identifier: MIT
 *
 * rows.c - Hashes and columns for Ruby.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <stdlib.h>
#include <string.h>

#include "glue/glue.h"

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

void
rb_sdb_put(VALUE hash, const char *key, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern2(key, (long)strlen(key))), value);
}

void *
rb_sdb_put_column(VALUE hash, const char *key, size_t n, size_t width)
{
    VALUE column = rb_str_new(NULL, (long)(n * width));
    rb_sdb_put(hash, key, column);
    return RSTRING_PTR(column);
}

VALUE
rb_sdb_get(VALUE hash, const char *key)
{
    return rb_hash_lookup2(hash, ID2SYM(rb_intern2(key, (long)strlen(key))), Qnil);
}
