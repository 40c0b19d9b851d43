/* SPDX-License-Identifier: MIT
 *
 * symbols.h - what a code is called: (iseq, ment) -> name, path, class, lines, by the public
 * rb_profile_frame_* API, as backtraces of Ruby 3.4 name it on every version.
 *
 * Runs on: symbolizer, GVL. Allocates Ruby strings.
 */
#ifndef SDB_SYMBOLS_H
#define SDB_SYMBOLS_H

#include <ruby.h>
#include "core/code_table.h"
#include "vm/layout.h"

/* The symbol of a young code, malloc'ed, pin not set. Never NULL but when out of memory; a code that fails
 * its proof (not an iseq, pc outside of it, method entry of another method) gets kind SDB_CODE_INVALID.
 * Raises nothing of its own; call it under rb_protect all the same, the API runs Ruby code for names. */
struct sdb_named *sdb_symbol_make(const struct sdb_layout *layout, const struct sdb_young *young);

#endif
