/* SPDX-License-Identifier: MIT
 *
 * oomd_register.c - see oomd_register.h.
 *
 * Runs on: any
 */
#include "oomd_register.h"

#include <string.h>
#include "error.h"
#include "live_table.h"
#include "oomd_name.h"

int
oomd_register_parse(struct oomd_register *out, const struct sdb_oom_register *said,
                    const char **why)
{
    static const uint64_t zero[2];
    struct sdb_oom_register m = *said;

    *why = "not a registration";
    if (m.magic != SDB_OOM_MAGIC) return SDB_ERR_INVALID;
    *why = "a version that this daemon does not know";
    if (m.version != SDB_OOM_VERSION) return SDB_ERR_INVALID;
    *why = "wrong length";
    if (m.bytes != sizeof m) return SDB_ERR_INVALID;
    *why = "reserved fields are set";
    if (m.reserved32 != 0 || memcmp(m.reserved, zero, sizeof zero) != 0) return SDB_ERR_INVALID;
    *why = "a table address that cannot be one";
    if (m.table_address % 8 != 0 || m.table_address >= 1ull << 56) return SDB_ERR_INVALID;
    *why = "a descriptor that cannot be one";
    if (m.ring_fd > INT32_MAX) return SDB_ERR_INVALID;

    out->table = m.table_address;
    out->start_ticks = m.start_ticks;
    out->table_version_known = m.table_version == SDB_LIVE_VERSION;
    out->ring_fd = m.ring_fd;
    oomd_clean_name(out->service, sizeof out->service, m.service, sizeof m.service, "ruby");
    *why = NULL;
    return SDB_OK;
}
