/* SPDX-License-Identifier: MIT
 *
 * init.h - what each glue file defines for Ruby; for reader_init.c.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_GLUE_INIT_H
#define SDB_GLUE_INIT_H

#include <ruby.h>

VALUE rb_sdb_init_log(VALUE native); /* the class */
void rb_sdb_init_log_dir(VALUE native);
VALUE rb_sdb_init_profile(VALUE native); /* the class */
void rb_sdb_init_dump_frames(VALUE log);
void rb_sdb_init_tables(VALUE profile);
void rb_sdb_init_sums(VALUE profile);
void rb_sdb_init_segments(VALUE profile);
void rb_sdb_init_spans(VALUE profile);
void rb_sdb_init_blame(VALUE profile);

#endif
