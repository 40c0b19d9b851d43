/* SPDX-License-Identifier: MIT
 *
 * template_names.h - what a compiled template is called. Template engines define a method of their own making for each
 * template, as Action View's "_app_views_posts__post_html_erb___3602156047049003734_8760": it ends in numbers of that
 * process, so nobody knows it and no two processes have it. People know the file.
 *
 * Runs on: offline
 */
#ifndef SDB_TEMPLATE_NAMES_H
#define SDB_TEMPLATE_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "log/cursor.h"

enum { SDB_TEMPLATE_NAME_MAX = 1024 };

/* Name of code that lies in the file `path`: "app/views/posts/_post.html.erb" instead of
 * "#<Class>#_app_views_posts__post_html_erb___3602156047049003734_8760" (Action View: lib/action_view/template.rb,
 * method_name) or "views/index.slim" instead of "Object#__tilt_2380" (Tilt: lib/tilt/template.rb,
 * compile_template_method; Sinatra's ERB, Slim, Haml). "block in " and the like stay in front. Any other name as it is.
 * The result is `name`, a part of `path`, or written to buffer. */
struct sdb_bytes sdb_template_name(struct sdb_bytes name, struct sdb_bytes path,
                                   uint8_t buffer[SDB_TEMPLATE_NAME_MAX]);

#endif
