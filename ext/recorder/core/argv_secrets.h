/* SPDX-License-Identifier: MIT
 *
 * argv_secrets.h - what of a command line is nobody's business: "--api-key=x", "--password x", "TOKEN=x",
 * "postgres://user:x@host". A guess by names, so SDB_ARGV=0 leaves the whole command line out.
 *
 * Runs on: any
 */
#ifndef SDB_ARGV_SECRETS_H
#define SDB_ARGV_SECRETS_H

#include <stdbool.h>
#include <stddef.h>

/* How many of the n bytes of an argument may be shown; what follows them is secret. *value: before, whether the argument
 * before this one was a flag whose value this is; after, whether the next one is this one's value. */
size_t sdb_argv_shown(const char *arg, size_t n, bool *value);

#endif
