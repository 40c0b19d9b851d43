/* SPDX-License-Identifier: MIT
 *
 * oomd_writer.h - dumps on their way to the disk: each is written by a child that has nothing but the two open
 * files (the ring, which it takes from its keeper, and the dump), and gets its name when it is whole. One at a time for
 * each user but root, so that nobody waits for another's; a child that takes too long is killed, and where not
 * even that ends it, left alone: it takes its own user's place, and no other.
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

struct oomd_keepers;
struct oomd_writer;

/* Opens the directory of the dumps (made 0700; must be root's own or ours and not writable by others), locks it against a
 * second daemon, and removes what is unfinished there. NULL with words in `why`. options: borrowed. */
struct oomd_writer *oomd_writer_open(const struct oomd_options *options, char *why,
                                     size_t why_bytes);
void oomd_writer_close(struct oomd_writer *w);
/* Where the rings are; borrowed. Before the first start. */
void oomd_writer_use(struct oomd_writer *w, struct oomd_keepers *keepers);

/* oomd_victims_rank of a writer. */
int64_t oomd_writer_rank(void *writer, const struct oomd_victim *v, uint64_t now_ns);
/* Takes over the victim, for which the rank was not negative. Logs one line, now or when it is written. */
void oomd_writer_start(struct oomd_writer *w, struct oomd_victim *v, uint64_t now_ns);
/* A child of the daemon ended: false when it was none of these. */
bool oomd_writer_ended(struct oomd_writer *w, pid_t pid, int status, uint64_t now_ns);
/* Ends who takes too long. Often. */
void oomd_writer_turn(struct oomd_writer *w, uint64_t now_ns);
size_t oomd_writer_running(const struct oomd_writer *w); /* that may still become a dump */

#endif
