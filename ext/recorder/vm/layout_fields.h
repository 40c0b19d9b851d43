/* SPDX-License-Identifier: MIT
 *
 * layout_fields.h - the fields of struct sdb_layout once more, as a list: name for people, member, and whether
 * calibration measures it. Included by layout.c and by the tests of the table.
 *
 * Runs on: any
 */
#ifndef SDB_LAYOUT_FIELDS_H
#define SDB_LAYOUT_FIELDS_H

/* The versions in layout_table.c, for people. */
#define SDB_LAYOUT_VERSIONS "3.1 to 4.0"

/* X(words, member, measured) */
#define SDB_LAYOUT_FIELDS(X)                                                                       \
    X("thread ec", thread_ec, true)                                                                \
    X("ec vm_stack", ec_vm_stack, true)                                                            \
    X("ec vm_stack_size", ec_vm_stack_size, true)                                                  \
    X("ec cfp", ec_cfp, true)                                                                      \
    X("ec fiber", ec_fiber, false)                                                                 \
    X("ec thread", ec_thread, true)                                                                \
    X("cfp pc", cfp_pc, true)                                                                      \
    X("cfp sp", cfp_sp, false)                                                                     \
    X("cfp iseq", cfp_iseq, true)                                                                  \
    X("cfp self", cfp_self, false)                                                                 \
    X("cfp ep", cfp_ep, true)                                                                      \
    X("cfp jit_return", cfp_jit_return, false)                                                     \
    X("cfp size", cfp_bytes, true)                                                                 \
    X("iseq body", iseq_body, true)                                                                \
    X("iseq body size", body_iseq_size, true)                                                      \
    X("iseq body encoded", body_iseq_encoded, true)

#endif
