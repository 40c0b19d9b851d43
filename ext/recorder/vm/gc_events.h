/* SPDX-License-Identifier: MIT
 *
 * gc_events.h - how long each GC takes, on which thread, and what it does, from the VM's GC events (Ruby 3.3+).
 */
#ifndef SDB_GC_EVENTS_H
#define SDB_GC_EVENTS_H

#include <stdbool.h>
#include "core/gc_periods.h"
#include "scan/thread_table.h"

/* Starts timing GC by events (3.3+; on 3.1 and 3.2 such a hook makes every allocation slow and reads a NULL
 * cfp at thread end, CRuby's gc.c:gc_event_hook_body: there the scanner samples rb_during_gc). False: not done.
 * Runs on: any Ruby thread, GVL. Once per process. */
bool sdb_gc_events_install(struct sdb_thread_table *threads);
/* While off, the hook returns at once. Runs on: any. */
void sdb_gc_events_enable(bool on);
/* Finished stretches of GC of at least 50 us, for the scanner. Runs on: any. */
struct sdb_gc_periods *sdb_gc_periods(void);

#endif
