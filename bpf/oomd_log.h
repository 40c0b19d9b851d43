/* SPDX-License-Identifier: MIT
 *
 * oomd_log.h - lines on stderr, where systemd and Kubernetes look for them.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_LOG_H
#define SDB_OOMD_LOG_H

/* From now on lines go through a process of their own, for which nothing waits: a line for which there is no room is lost, and
 * that is said. 0 or -1 (errno). */
int oomd_log_begin(void);
void oomd_log_end(void); /* waits a second at most for the last lines */

/* One line; bytes that are not printable ASCII are shown as '?', so no name can forge a line. */
void oomd_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for what a client can cause as often as it likes: at most ten lines a minute, then a count. */
void oomd_log_limited(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* With --verbose only: who is watched, who no longer. */
void oomd_log_detail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void oomd_log_set_verbose(int verbose);

#endif
