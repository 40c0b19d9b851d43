/* SPDX-License-Identifier: MIT
 *
 * thread_name.h - a thread's name without calling Thread#name: that method may be the app's own, an event of its
 * TracePoint, and may not be called in a postponed job at all. Where the VM keeps the name is measured in this process.
 */
#ifndef SDB_THREAD_NAME_H
#define SDB_THREAD_NAME_H

#include <ruby.h>
#include <stdbool.h>

/* Looks for the name in own, the calling thread, which is called "sdb symbolizer" from then on. Once; later calls return at
 * once. Runs on: symbolizer, GVL. May raise. */
void sdb_thread_name_measure(VALUE own);
/* Whether it was looked for. Runs on: any Ruby thread, GVL. */
bool sdb_thread_name_measured(void);
/* The name of a thread that is kept from the GC; Qnil when it has none, Qundef when the place is not known. Checks no
 * interrupts, allocates nothing. Runs on: any Ruby thread, GVL. */
VALUE sdb_thread_name(VALUE thread);

#endif
