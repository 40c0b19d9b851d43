/* SPDX-License-Identifier: MIT
 *
 * offsets.h - where CRuby keeps what the scanner reads, as byte offsets. Which offsets are true of the running Ruby:
 * vm/layout.h, which fills the struct. A test of the scanner fills it as it likes.
 */
#ifndef SDB_OFFSETS_H
#define SDB_OFFSETS_H

#include <stdint.h>

/* Re-checked against vm_core.h of each version: test/test_layout_headers.rb. */
struct sdb_layout {
    /* rb_thread_t */
    uint32_t thread_ec;
    /* rb_execution_context_t; the size is in VALUEs */
    uint32_t ec_vm_stack, ec_vm_stack_size, ec_cfp;
    uint32_t ec_fiber, ec_thread;
    /* rb_control_frame_t, and its size */
    uint32_t cfp_pc, cfp_sp, cfp_iseq, cfp_self, cfp_ep, cfp_jit_return;
    uint32_t cfp_bytes;
    /* rb_iseq_t and its body */
    uint32_t iseq_body, body_iseq_size, body_iseq_encoded;
};

#endif
