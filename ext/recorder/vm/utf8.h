/* SPDX-License-Identifier: MIT
 *
 * utf8.h - names as the log has them. A program's names are in the encodings of its source files and of whoever made
 * them; the log's are UTF-8, so every name is converted where it comes in, and nobody behind needs to know.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_UTF8_H
#define SDB_UTF8_H

#include <ruby.h>
#include <stdbool.h>

/* `string` in valid UTF-8: itself where it is that already, else a new String. What its encoding does not define or UTF-8
 * does not have is U+FFFD. Bytes without an encoding (binary, or more than ASCII in US-ASCII, which is what a C locale
 * makes of everything) count as UTF-8: in practice they are. Anything but a String is returned as it is.
 *
 * Runs no method of the app's and raises nothing but NoMemoryError. May load one of Ruby's transcoders, once an encoding. */
VALUE sdb_utf8(VALUE string);

/* While on, a string that needs a converter is left as it is, for the VM may have to load the converter, which runs Ruby
 * code. Runs on: any Ruby thread, GVL. */
void sdb_utf8_defer(bool on);
/* Whether there was one since the last question. Runs on: any Ruby thread, GVL. */
bool sdb_utf8_deferred(void);

#endif
