/* SPDX-License-Identifier: MIT
 *
 * oomd_sandbox.h - which system calls a child of the daemon may make (seccomp): reading, writing, memory, and to open
 * files where that is its work. Any other ends it.
 *
 * Runs on: children of the daemon
 */
#ifndef SDB_OOMD_SANDBOX_H
#define SDB_OOMD_SANDBOX_H

#include <stdbool.h>

/* false when it could not be entered. true without any effect in a build with sanitizers, and on kernels without seccomp. */
bool oomd_sandbox_enter(bool may_open);

#endif
