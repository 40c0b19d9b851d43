/* SPDX-License-Identifier: MIT
 *
 * oomd_exec.h - the operator's command after each dump (--exec). Four at a time, a minute each; what it
 * does is never waited for.
 *
 * Runs on: daemon
 */
#ifndef SDB_OOMD_EXEC_H
#define SDB_OOMD_EXEC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct oomd_exec_words {
    const char *dump, *service, *cause;
    uint32_t pid;
};

void oomd_exec_start(const char *command, const struct oomd_exec_words *words, uint64_t now_ns);
bool oomd_exec_ended(pid_t pid, int status); /* false: not one of these */
void oomd_exec_expire(uint64_t now_ns);      /* kills those that run too long */

#endif
