/* SPDX-License-Identifier: MIT
 *
 * vm_heap.c - see vm_heap.h. The flags word is the first of every object (RBasic, public); its type is public too,
 * the type of an imemo is not: internal/imemo.h, enum imemo_type, in the four bits from FL_USHIFT on.
 *
 * Runs on: any
 */
#include "vm/vm_heap.h"

#include "sdb_atomic.h"
#include "core/self_read.h"

#include <ruby.h>

enum {
    IMEMO_TYPE_MASK = 15,
    SLOT_ALIGN = 8,
};

static uint64_t refused; /* shared: atomic */

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

static bool
counted(bool is)
{
    if (!is) {
        sdb_add_relaxed(&refused, 1);
    }
    return is;
}

bool
sdb_vm_is_iseq(uint64_t value)
{
    return counted(is_imemo(value, SDB_IMEMO_ISEQ));
}

bool
sdb_vm_is_ment(uint64_t value)
{
    return counted(is_imemo(value, SDB_IMEMO_MENT));
}

uint64_t
sdb_vm_ment_of(uint64_t me_or_cref)
{
    uint64_t held;
    if (is_imemo(me_or_cref, SDB_IMEMO_MENT)) {
        return me_or_cref;
    }
    if (is_imemo(me_or_cref, SDB_IMEMO_SVAR) &&
        sdb_self_read(me_or_cref + SDB_SVAR_ENTRY_AT, &held, sizeof(held)) &&
        is_imemo(held, SDB_IMEMO_MENT)) {
        return held;
    }
    return 0;
}

uint64_t
sdb_vm_heap_refused(void)
{
    return sdb_load_relaxed(&refused);
}
