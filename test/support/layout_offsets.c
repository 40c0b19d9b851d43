/* SPDX-License-Identifier: MIT
 *
 * layout_offsets.c - prints "name table vm" for every number that the recorder believes about a CRuby version, where
 * `vm` comes from that version's own vm_core.h. argv[1] is the version, "3.3"; an unknown one has "-" as table.
 * Compiled by test/test_layout_headers.rb against the VM headers of one version and the public headers of any.
 *
 * Runs on: offline
 */
#include <ruby.h>
#include <ruby/atomic.h>
#include <ruby/debug.h>
#include <ruby/encoding.h>

/* The public headers may be of another version than the VM's: what vm_core.h expects of them and none of our
 * structs depends on. */
#undef _Static_assert
#define _Static_assert(...) struct sdb_unused
#ifndef ROBJECT_HEAP
#define ROBJECT_HEAP ROBJECT_EMBED
#endif
#ifndef RBIMPL_ATOMIC_RELAXED
#define RBIMPL_ATOMIC_RELAXED 0
#endif
#undef rbimpl_atomic_load
#define rbimpl_atomic_load(pointer, ...) (*(pointer))
#ifndef MJIT_SYMBOL_EXPORT_BEGIN
#define MJIT_SYMBOL_EXPORT_BEGIN
#define MJIT_SYMBOL_EXPORT_END
#define MJIT_FUNC_EXPORTED
#define MJIT_STATIC static
#endif
#ifndef RARRAY_CONST_PTR_TRANSIENT
#define RARRAY_CONST_PTR_TRANSIENT(array) ((const VALUE *)0)
#endif
#define rb_len_t long
#define rb_ulen_t unsigned long
#undef rb_alloc_tmp_buffer
#define rb_alloc_tmp_buffer(...) NULL

#include "vm_core.h"

#include <stddef.h>
#include <stdio.h>

#include "vm/layout.h"
#include "vm/layout_fields.h"
#include "vm/vm_heap.h"

#ifdef SDB_RENAMED_ISEQ /* 4.1: to be read through CFP_ISEQ only */
#define CFP_ISEQ_FIELD _iseq
#else
#define CFP_ISEQ_FIELD iseq
#endif

static const struct sdb_layout vm = {
    .thread_ec = offsetof(rb_thread_t, ec),
    .ec_vm_stack = offsetof(rb_execution_context_t, vm_stack),
    .ec_vm_stack_size = offsetof(rb_execution_context_t, vm_stack_size),
    .ec_cfp = offsetof(rb_execution_context_t, cfp),
    .ec_fiber = offsetof(rb_execution_context_t, fiber_ptr),
    .ec_thread = offsetof(rb_execution_context_t, thread_ptr),
    .cfp_pc = offsetof(rb_control_frame_t, pc),
    .cfp_sp = offsetof(rb_control_frame_t, sp),
    .cfp_iseq = offsetof(rb_control_frame_t, CFP_ISEQ_FIELD),
    .cfp_self = offsetof(rb_control_frame_t, self),
    .cfp_ep = offsetof(rb_control_frame_t, ep),
    .cfp_jit_return = offsetof(rb_control_frame_t, jit_return),
    .cfp_bytes = sizeof(rb_control_frame_t),
    .iseq_body = offsetof(rb_iseq_t, body),
    .body_iseq_size = offsetof(struct rb_iseq_constant_body, iseq_size),
    .body_iseq_encoded = offsetof(struct rb_iseq_constant_body, iseq_encoded),
};

static void
line(const char *name, bool known, unsigned long table, unsigned long found)
{
    if (known) {
        printf("%s|%lu|%lu\n", name, table, found);
    } else {
        printf("%s|-|%lu\n", name, found);
    }
}

int
main(int argc, char **argv)
{
    const struct sdb_layout *table = sdb_layout_for(argc > 1 ? argv[1] : "");
    struct sdb_layout none = {0};
    const struct sdb_layout *row = table ? table : &none;

#define FIELD(words, member, measured) line(words, table, row->member, vm.member);
    SDB_LAYOUT_FIELDS(FIELD)
#undef FIELD
    line("vm_stack_size bytes", true, 8, sizeof(((rb_execution_context_t *)0)->vm_stack_size));
    line("iseq_size bytes", true, 4, sizeof(((struct rb_iseq_constant_body *)0)->iseq_size));
    line("imemo svar", true, SDB_IMEMO_SVAR, imemo_svar);
    line("imemo ment", true, SDB_IMEMO_MENT, imemo_ment);
    line("imemo iseq", true, SDB_IMEMO_ISEQ, imemo_iseq);
    line("svar entry", true, SDB_SVAR_ENTRY_AT, offsetof(struct vm_svar, cref_or_me));
    /* As VM_ACCESS.md lists them. */
    line("magic method", true, 0x11110001, VM_FRAME_MAGIC_METHOD);
    line("magic block", true, 0x22220001, VM_FRAME_MAGIC_BLOCK);
    line("magic class", true, 0x33330001, VM_FRAME_MAGIC_CLASS);
    line("magic top", true, 0x44440001, VM_FRAME_MAGIC_TOP);
    line("magic cfunc", true, 0x55550001, VM_FRAME_MAGIC_CFUNC);
    line("magic ifunc", true, 0x66660001, VM_FRAME_MAGIC_IFUNC);
    line("magic eval", true, 0x77770001, VM_FRAME_MAGIC_EVAL);
    line("magic rescue", true, 0x78880001, VM_FRAME_MAGIC_RESCUE);
    line("magic dummy", true, 0x79990001, VM_FRAME_MAGIC_DUMMY);
    line("magic mask", true, 0x7fff0001, VM_FRAME_MAGIC_MASK);
    line("flag local", true, 0x2, VM_ENV_FLAG_LOCAL);
    line("flag escaped", true, 0x4, VM_ENV_FLAG_ESCAPED);
    line("flag finish", true, 0x20, VM_FRAME_FLAG_FINISH);
    line("flag bmethod", true, 0x40, VM_FRAME_FLAG_BMETHOD);
    line("flag cframe", true, 0x80, VM_FRAME_FLAG_CFRAME);
    line("flag lambda", true, 0x100, VM_FRAME_FLAG_LAMBDA);
    return 0;
}
