/* SPDX-License-Identifier: MIT
 *
 * vm_heap.c - see vm_heap.h. The flags word is the first of every object (RBasic, public); its type is public too,
 * the type of an imemo is not: internal/imemo.h, enum imemo_type, in the four bits from FL_USHIFT on.
 *
 * Runs on: any
 */
#include "vm/vm_heap.h"

#include "core/self_read.h"

#include <ruby.h>

enum {
    IMEMO_TYPE_MASK = 15,
    SLOT_ALIGN = 8,
};

static bool
is_imemo(uint64_t value, enum sdb_vm_imemo type)
{
    uint64_t flags;
    if (value == 0 || value % SLOT_ALIGN || !sdb_self_read(value, &flags, sizeof(flags))) {
        return false;
    }
    return (flags & RUBY_T_MASK) == RUBY_T_IMEMO &&
           ((flags >> RUBY_FL_USHIFT) & IMEMO_TYPE_MASK) == (unsigned)type;
}

bool
sdb_vm_is_iseq(uint64_t value)
{
    return is_imemo(value, SDB_IMEMO_ISEQ);
}

bool
sdb_vm_is_ment(uint64_t value)
{
    return is_imemo(value, SDB_IMEMO_MENT);
}
