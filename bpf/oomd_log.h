/* SPDX-License-Identifier: MIT
 *
 * oomd_log.h - lines on stderr, where systemd and Kubernetes look for them.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_LOG_H
#define SDB_OOMD_LOG_H

#include <stddef.h>

/* One line; bytes that are not printable ASCII are shown as '?', so no name can forge a line. */
void oomd_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for what a client can cause as often as it likes: at most ten lines a minute, then a count. */
void oomd_log_limited(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* With --verbose only: who is watched, who no longer. */
void oomd_log_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void oomd_log_set_verbose(int verbose);

/* Copies at most n - 1 bytes of text, anything not in [A-Za-z0-9._-] as '_', never empty, never with a
 * leading dot. Fit for a file name. */
void oomd_clean_name(char *out, size_t n, const char *text, size_t text_bytes,
                     const char *otherwise);

#endif
