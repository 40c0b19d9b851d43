/* SPDX-License-Identifier: MIT
 *
 * glue/folders.c - Sdb::Native::LogDir: which folder is ours (log_dir.h), for the command line.
 *
 * Runs on: any Ruby thread, GVL
 */
#include <unistd.h>

#include <ruby.h>

#include "glue/init.h"
#include "log_dir.h"

static VALUE
answer(int err, const struct sdb_log_dir *dir)
{
    if (err != 0) return rb_assoc_new(Qnil, rb_utf8_str_new_cstr(dir->reason));
    close(dir->fd);
    return rb_assoc_new(rb_utf8_str_new_cstr(dir->path), Qnil);
}

/* named(dir, make) -> [path of dir or of its subfolder, nil] or [nil, why not] */
static VALUE
log_dir_named(VALUE self, VALUE dir, VALUE make)
{
    struct sdb_log_dir out;
    (void)self;
    return answer(sdb_log_dir_open(StringValueCStr(dir), RTEST(make), &out), &out);
}

/* user(tmp, make) -> the same for the user's own below the temp dir */
static VALUE
log_dir_user(VALUE self, VALUE tmp, VALUE make)
{
    struct sdb_log_dir out;
    (void)self;
    return answer(sdb_log_dir_open_user(StringValueCStr(tmp), RTEST(make), &out), &out);
}

void
rb_sdb_init_log_dir(VALUE native)
{
    VALUE module = rb_define_module_under(native, "LogDir");
    rb_define_module_function(module, "named", log_dir_named, 2);
    rb_define_module_function(module, "user", log_dir_user, 2);
}
