/* SPDX-License-Identifier: MIT
 *
 * oomd_writer.h - dumps on their way to the disk: each is written by a child that has nothing but the two open
 * files, and gets its name when it is whole. Few at a time; the others wait.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_WRITER_H
#define SDB_OOMD_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "oomd_options.h"
#include "oomd_victim.h"

struct oomd_writer;

/* Opens the directory of the dumps (made 0700; must be root's own or ours and not writable by others) and
 * removes what is unfinished there. NULL with words in `why`. options: borrowed. */
struct oomd_writer *oomd_writer_open(const struct oomd_options *options, char *why,
                                     size_t why_bytes);
void oomd_writer_close(struct oomd_writer *w); /* gives running children ten seconds */

bool oomd_writer_has_room(const struct oomd_writer *w);
/* Takes over the victim. Logs one line, now or when it is written. */
void oomd_writer_start(struct oomd_writer *w, struct oomd_victim *v, uint64_t now_ns);
/* A child of the daemon ended: false when it was none of these. */
bool oomd_writer_ended(struct oomd_writer *w, pid_t pid, int status, uint64_t now_ns);

#endif
