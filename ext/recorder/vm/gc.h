/* SPDX-License-Identifier: MIT
 *
 * gc.h - keeps what the scanner recorded alive and in place, and tells it when a GC moved on (epoch). How long a GC
 * takes: gc_events.h.
 *
 * Two marked objects: `young` (write-barrier unprotected, so marked in every GC) holds threads and codes that
 * have no name yet; `pins` (write-barrier protected, so free in minor GCs) holds the codes that have one.
 */
#ifndef SDB_GC_H
#define SDB_GC_H

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/code_table.h"
#include "scan/thread_table.h"

/* Makes the two objects. Runs on: any Ruby thread, GVL. Once per process. */
void sdb_gc_install(struct sdb_thread_table *threads);
/* What `young` marks from now on; NULL nothing. Runs on: any Ruby thread, GVL. */
void sdb_gc_set_codes(struct sdb_code_table *codes);
/* Marks one more Thread for ever: the symbolizer. Qnil none. Runs on: GVL. */
void sdb_gc_set_symbolizer(VALUE thread);
/* f runs in every GC: no alloc, no raise. Runs on: any Ruby thread, GVL. */
void sdb_gc_on_mark(void (*f)(void));

/* Pins (iseq, ment), whose name is `named`. Returns the pin, UINT32_MAX when out of memory. Runs on: symbolizer, GVL; no GC can run
 * between this and young_named. */
uint32_t sdb_gc_pin(VALUE iseq, VALUE ment, struct sdb_named *named);
void sdb_gc_unpin(uint32_t pin);
void sdb_gc_unpin_all(void);
/* The same, and frees their names: in a forked child, where the code table that has them is gone. Runs on: atfork child
 * handler. */
void sdb_gc_free_pinned(void);

/* Odd while our objects are being marked. Read by the scanner before and after a walk. */
const uint64_t *sdb_gc_epoch(void);

/* Symbols of VM functions that no public header declares; both exported from 3.1 to 4.0. */
int rb_during_gc(void);

#endif
