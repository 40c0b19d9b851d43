/* SPDX-License-Identifier: MIT
 *
 * oomd_intake.h - the socket that processes register on: who may send how much, and which of it is believed.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_INTAKE_H
#define SDB_OOMD_INTAKE_H

#include <stddef.h>
#include <stdint.h>

struct oomd_intake;
struct oomd_registry;

/* Binds the socket (0666; its directory is made 0755 when absent). A second daemon on the same path is
 * refused. NULL with words in `why`. registry: borrowed. */
struct oomd_intake *oomd_intake_open(const char *path, struct oomd_registry *registry,
                                     uint64_t max_ring_bytes, char *why, size_t why_bytes);
void oomd_intake_close(struct oomd_intake *in); /* removes the socket */
int oomd_intake_fd(const struct oomd_intake *in);

/* Takes what waits, at most so many messages that the rest of the daemon gets its turn. */
void oomd_intake_read(struct oomd_intake *in, uint64_t now_ns);

#endif
