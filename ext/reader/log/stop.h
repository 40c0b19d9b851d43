/* SPDX-License-Identifier: MIT
 *
 * stop.h - how long work hears that nobody wants its answer any more: whoever asks sets a flag for the thread that
 * works, loops look at it now and then and give up with SDB_ERR_STOPPED.
 *
 * Runs on: offline
 */
#ifndef SDB_STOP_H
#define SDB_STOP_H

#include <stdbool.h>
#include <stddef.h>

/* Of the present thread; NULL: nobody asks. */
extern _Thread_local const int *sdb_stop_flag;

static inline bool
sdb_stop_asked(void)
{
    return sdb_stop_flag && __atomic_load_n(sdb_stop_flag, __ATOMIC_RELAXED);
}

#endif
