/* SPDX-License-Identifier: MIT
 *
 * vm_heap.h - what a word of a VM stack is, before anything is done with it. rb_profile_frame_* on a word that is
 * neither an iseq nor a method entry aborts the process (rb_bug in frame2iseq, vm_backtrace.c), so ask here first.
 *
 * A yes says what the slot holds at this moment. It stays true only while the object is pinned or while the caller
 * holds the GVL and allocates nothing. The address need not be an object, nor mapped.
 *
 * Runs on: any Ruby thread, GVL; safe, but momentary, elsewhere. Allocates nothing.
 */
#ifndef SDB_VM_HEAP_H
#define SDB_VM_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* enum imemo_type of internal/imemo.h, alike in 3.1 to 4.0 (test/test_layout_headers.rb) */
enum sdb_vm_imemo { SDB_IMEMO_SVAR = 2, SDB_IMEMO_MENT = 6, SDB_IMEMO_ISEQ = 7 };

/* struct vm_svar.cref_or_me, internal/imemo.h */
enum { SDB_SVAR_ENTRY_AT = 8 };

/* T_IMEMO of type imemo_iseq. False for an ifunc, a cref, a freed or moved slot. */
bool sdb_vm_is_iseq(uint64_t value);

/* T_IMEMO of type imemo_ment. */
bool sdb_vm_is_ment(uint64_t value);

#endif
