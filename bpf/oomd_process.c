/* SPDX-License-Identifier: MIT
 *
 * oomd_process.c - see oomd_process.h.
 *
 * Runs on: daemon
 */
#include "oomd_process.h"

#include <stdlib.h>

void
oomd_process_free(struct oomd_process *p)
{
    if (p == NULL) return;
    if (p->release) p->release(p->keepers, p);
    free(p->path);
    free(p->description);
    free(p);
}
