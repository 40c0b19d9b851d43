/* SPDX-License-Identifier: MIT
 *
 * glue.h - what the glue files of the reader share. Rows go to Ruby as Hashes with names, many of them as columns:
 * Hashes of binary Strings of native-endian numbers. So the order of fields is nobody's business but its own file's.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_GLUE_H
#define SDB_GLUE_H

#include <ruby.h>

#include "log/ring_reader.h"
#include "profile/model.h"
#include "profile/select.h"

/* raise.c */

/* Raises Sdb::FormatError, Errno::* or NoMemoryError for a negative enum sdb_err; returns on 0. */
void rb_sdb_check(int err, const char *what);
/* Runs ask(data), which knows nothing of Ruby, without the GVL; again when it was stopped by a signal whose handler came
 * back. What the handler raises (Interrupt) gets out of here: `ask` must leave nothing behind when it fails. Returns what
 * ask returned. */
int rb_sdb_ask(int (*ask)(void *data), void *data);

/* rows.c */

/* A binary String of `n` elements, and `data` freed (also when it raises). */
VALUE rb_sdb_take_rows(void *data, size_t n, size_t size);
void rb_sdb_put(VALUE hash, const char *key, VALUE value);
/* hash[key] = a binary String of n x width bytes, whose bytes are returned. */
void *rb_sdb_put_column(VALUE hash, const char *key, size_t n, size_t width);
/* hash[key], nil when there is none. */
VALUE rb_sdb_get(VALUE hash, const char *key);

/* log.c, profile.c */

struct sdb_ring_reader *rb_sdb_log_reader(VALUE log);
struct sdb_profile *rb_sdb_profile_get(VALUE self);

/* selection.c */

struct rb_sdb_selection { /* lies on the stack, which pins the Strings that `native` borrows from */
    struct sdb_selection native;
    VALUE threads, intervals, marks;
};

/* Of a Hash {from:, to:, threads:, intervals:, states:, marks:, focus:}; RB_GC_GUARD the three afterwards. Raises
 * ArgumentError when sizes do not fit. */
void rb_sdb_selection(VALUE hash, const struct sdb_profile *p, struct rb_sdb_selection *s);
#define RB_SDB_GUARD(s)                                                                            \
    (RB_GC_GUARD((s).threads), RB_GC_GUARD((s).intervals), RB_GC_GUARD((s).marks))
/* Of a name, as Sdb::Profile::METRICS has it. */
enum sdb_metric rb_sdb_metric(VALUE name);
const char *rb_sdb_metric_name(unsigned metric);
/* Sdb::Native::Profile::STATES and METRICS, the names by number. */
void rb_sdb_init_selection(VALUE profile);

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

#endif
