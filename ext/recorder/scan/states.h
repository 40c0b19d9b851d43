/* SPDX-License-Identifier: MIT
 *
 * states.h - where the states of threads come from. Two sources fill one view: GVL events (states_exact.c, Ruby 3.2+),
 * and the threads' CPU clocks (states_inferred.c, Ruby 3.1).
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_STATES_H
#define SDB_STATES_H

#include <stdbool.h>
#include <stdint.h>
#include "scan/state.h"

struct sdb_look { /* what a thread does at a tick */
    struct sdb_state_view view;
    uint64_t state; /* to be written; the slot's, unless that is known to be wrong */
    bool running;   /* it runs, or collects garbage */
    bool still;     /* it cannot run while its stack is read: one reading is enough */
    bool stack_due; /* its stack may be another than when it was last read */
};

struct sdb_states {
    /* A tick begins; called before anything else takes time. True: visit every thread, not only the active ones. */
    bool (*began)(struct sdb_scanner *sc);
    /* Fills *out. False: nothing to be written of this thread at this tick. due: it is written all the same. */
    bool (*look)(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan, bool due,
                 struct sdb_look *out);
    /* The thread has been written as far as it had to be: whether to look again at the next tick. */
    void (*looked)(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan,
                   const struct sdb_look *look);
    /* All have been visited; any: some were active. True when a thread of the app ran. */
    bool (*ended)(struct sdb_scanner *sc, bool any);
    /* Once a second. */
    void (*second)(struct sdb_scanner *sc);
};

extern const struct sdb_states sdb_states_exact, sdb_states_inferred;

#endif
