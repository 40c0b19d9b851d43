/* SPDX-License-Identifier: MIT
 *
 * reader_init.c - makes the module Sdb::Native. The one file that knows all the others; none knows it.
 *
 * Runs on: any Ruby thread, GVL
 */
#include "glue/glue.h"
#include "glue/init.h"

__attribute__((visibility("default"))) void
Init_sdb_reader(void)
{
    VALUE native = rb_define_module_under(rb_define_module("Sdb"), "Native");
    VALUE log = rb_sdb_init_log(native);
    rb_sdb_init_dump_frames(log);
    rb_sdb_init_log_dir(native);
    VALUE profile = rb_sdb_init_profile(native);
    rb_sdb_init_selection(profile);
    rb_sdb_init_tables(profile);
    rb_sdb_init_sums(profile);
    rb_sdb_init_segments(profile);
    rb_sdb_init_spans(profile);
    rb_sdb_init_blame(profile);
}
