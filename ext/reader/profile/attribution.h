/* SPDX-License-Identifier: MIT
 *
 * attribution.h - whose the time between two samples of a thread is (FORMAT.md, section 8), and a thread's
 * row of segments. Knows no records.
 *
 * Runs on: offline
 */
#ifndef SDB_ATTRIBUTION_H
#define SDB_ATTRIBUTION_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/model.h"

struct sdb_step { /* from sample P to sample S of one thread */
    uint64_t elapsed_us;
    uint64_t uncertain_us; /* since the tick before S: P held up to there */
    uint64_t wait_us, blocked_us, gc_us, cpu_us;
    uint64_t age_us;    /* how long S's state lasts at S; with has_age */
    uint64_t unseen_us; /* of gaps in it */
    uint64_t
        after_change_us; /* of uncertain_us, since the thread's span or tags changed; with has_change */
    uint64_t hidden_us; /* before that: neither P's nor S's, it counted for something else */
    uint32_t unseen_stack, unseen_state; /* what time on a CPU in gaps is; with unseen_us */
    uint32_t ticks;                      /* in it, S's own included */
    uint32_t p_state, p_stack, s_state, s_stack;
    bool has_age, has_change;
    bool blocked_is_guess; /* states inferred: blocked is what had no CPU, so nothing in a gap */
};

/* Appends the segments of a step: exactly elapsed_us long together. Numbers that contradict each other are
 * cut to fit. 0 or SDB_ERR_NOMEM. */
int sdb_attribute(struct sdb_thread *t, const struct sdb_step *step)
    __attribute__((warn_unused_result));

/* What ran between two sightings that nobody saw: the stack itself when both are it, else the part that both
 * agree on with "(unknown)" on top. 0, SDB_ERR_NOMEM, SDB_ERR_FULL. */
int sdb_unseen_stack(struct sdb_profile *p, uint32_t before, uint32_t after, uint32_t *stack)
    __attribute__((warn_unused_result));

/* Appends `ns` of one stack and state behind what the thread has; joined when both are as before. A length of
 * 0 keeps cpu and ticks for the next. 0 or SDB_ERR_NOMEM. */
int sdb_thread_push(struct sdb_thread *t, uint64_t ns, uint32_t stack, uint32_t state,
                    uint64_t cpu_ns, uint32_t ticks) __attribute__((warn_unused_result));

#endif
