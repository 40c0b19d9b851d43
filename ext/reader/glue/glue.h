/* SPDX-License-Identifier: MIT
 *
 * glue.h - what the glue files of the reader share. Binary Strings carry rows between Ruby and C: their
 * layouts are private to lib/sdb/profile/.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_GLUE_H
#define SDB_GLUE_H

#include <ruby.h>

#include "log/ring_reader.h"
#include "profile/model.h"
#include "profile/select.h"

/* Raises Sdb::FormatError, Errno::* or NoMemoryError for a negative enum sdb_err; returns on 0. */
void rb_sdb_check(int err, const char *what);

struct sdb_ring_reader *rb_sdb_log_reader(VALUE log);
struct sdb_profile *rb_sdb_profile_get(VALUE self);

/* Fills *s from [from, to, threads, intervals, states, marks, focus]; the Strings in it must stay alive and
 * unchanged while *s is used (RB_GC_GUARD the Array). Raises ArgumentError when sizes do not fit. */
void rb_sdb_selection(VALUE array, const struct sdb_profile *p, struct sdb_selection *s);

static inline VALUE
rb_sdb_text(const struct sdb_profile *p, uint32_t string)
{
    if (string >= p->strings_count) return Qnil;
    return rb_utf8_str_new(p->strings[string].at, p->strings[string].n);
}

static inline VALUE
rb_sdb_time(uint64_t ns)
{
    return ns == SDB_NO_TIME ? Qnil : ULL2NUM(ns);
}

static inline VALUE
rb_sdb_number(uint32_t number)
{
    return number == SDB_NONE ? Qnil : UINT2NUM(number);
}

/* A binary String of `n` elements, and `data` freed (also when it raises). */
VALUE rb_sdb_take_rows(void *data, size_t n, size_t size);

void rb_sdb_init_log(VALUE native);
void rb_sdb_init_profile(VALUE native);
void rb_sdb_init_dump_frames(VALUE native); /* after log */
void rb_sdb_init_tables(VALUE profile);
void rb_sdb_init_sums(VALUE profile);
void rb_sdb_init_spans(VALUE profile);

#endif
