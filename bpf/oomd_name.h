/* SPDX-License-Identifier: MIT
 *
 * oomd_name.h - names that a process gave itself, made fit for a file name, an environment and a log line.
 *
 * Runs on: any
 */
#ifndef SDB_OOMD_NAME_H
#define SDB_OOMD_NAME_H

#include <stddef.h>

/* Copies at most n - 1 bytes of text, anything not in [A-Za-z0-9._-] as '_', never empty, never with a
 * leading dot or dash. Fit for a file name and as an argument. */
void oomd_clean_name(char *out, size_t n, const char *text, size_t text_bytes,
                     const char *otherwise);

#endif
