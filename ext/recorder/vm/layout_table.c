/* SPDX-License-Identifier: MIT
 *
 * layout_table.c - CRuby's offsets per minor version, from vm_core.h of each; the same on x86-64 and arm64.
 * No ruby.h: test/test_layout_headers.rb compiles this file beside the VM's own headers and compares.
 *
 * Runs on: any
 */
#include "vm/layout.h"
#include "vm/layout_fields.h"

#include <stddef.h>
#include <string.h>

#if !defined(__LP64__) || (!defined(__x86_64__) && !defined(__aarch64__))
#error "the layout table is for 64-bit x86 and arm"
#endif

struct row {
    const char *version;
    struct sdb_layout layout;
};

/* rb_execution_context_t begins alike in every version: vm_core.h, struct rb_execution_context_struct */
#define EC .ec_vm_stack = 0, .ec_vm_stack_size = 8, .ec_cfp = 16, .ec_fiber = 40, .ec_thread = 48
/* vm_core.h, struct rb_control_frame_struct; 3.1 and 3.2 have __bp__ before jit_return */
#define CFP .cfp_pc = 0, .cfp_sp = 8, .cfp_iseq = 16, .cfp_self = 24, .cfp_ep = 32
#define CFP_WITH_BP CFP, .cfp_jit_return = 56, .cfp_bytes = 64
#define CFP_WITHOUT_BP CFP, .cfp_jit_return = 48, .cfp_bytes = 56
/* vm_core.h, struct rb_iseq_struct and rb_iseq_constant_body */
#define ISEQ .iseq_body = 16, .body_iseq_size = 4, .body_iseq_encoded = 8

static const struct row rows[] = {
    {"3.1", {.thread_ec = 40, EC, CFP_WITH_BP, ISEQ}},
    {"3.2", {.thread_ec = 48, EC, CFP_WITH_BP, ISEQ}},
    {"3.3", {.thread_ec = 48, EC, CFP_WITHOUT_BP, ISEQ}},
    {"3.4", {.thread_ec = 48, EC, CFP_WITHOUT_BP, ISEQ}},
    {"4.0", {.thread_ec = 48, EC, CFP_WITHOUT_BP, ISEQ}},
};

const struct sdb_layout *
sdb_layout_for(const char *major_minor)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].version, major_minor) == 0) {
            return &rows[i].layout;
        }
    }
    return NULL;
}
