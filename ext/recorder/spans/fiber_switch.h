/* SPDX-License-Identifier: MIT
 *
 * fiber_switch.h - which context is on a thread.
 *
 * Most threads have one fiber only, and then nothing here costs more than a comparison. Once a span or tag is
 * used in another fiber, a FIBER_SWITCH hook follows the switches: a fiber first seen inherits what the fiber that
 * resumed it works for, and each span gets the times of the fibers that worked for it only.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_CONTEXT_SWITCH_H
#define SDB_CONTEXT_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

struct sdb_context;
struct sdb_slot;

/* Of the fiber that runs, which is on the slot's thread. NULL when it has none (and !create). */
struct sdb_context *sdb_context_current(struct sdb_slot *slot, bool create);
/* Tells the log which span and tags the thread works with now, as far as it does not know. c: NULL none. What does
 * not fit into the queue is told with the next change. */
void sdb_context_tell(struct sdb_context *c, struct sdb_slot *slot, uint64_t now_ns);

/* The context is of an earlier recording, on this slot's thread now: its tags are told again, and its spans when they go on
 * in this one (after a fork). */
void sdb_context_renew(struct sdb_context *c, struct sdb_slot *slot);
/* Tells this log of the spans that are open in it and, outermost first, in those it inherits from. Calls nothing of the
 * VM. */
void sdb_context_retell(struct sdb_context *c, struct sdb_slot *slot, uint64_t now_ns);

#endif
