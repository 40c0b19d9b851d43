/* SPDX-License-Identifier: MIT
 *
 * oomd_child.h - the processes that the daemon has for what it must not do itself: how they start, and how they give up
 * what they do not need. None of them has another's descriptors, and the daemon waits for none of them.
 *
 * Runs on: daemon (start), its children (the rest)
 */
#ifndef SDB_OOMD_CHILD_H
#define SDB_OOMD_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    OOMD_CHILD_IN = 0,  /* reads what the daemon asks; at its end the child ends */
    OOMD_CHILD_OUT = 1, /* answers */
};

struct oomd_child {
    pid_t pid;
    int pidfd;
    int ask, answer; /* pipes; both ends of ours do not block */
};

/* Starts this program again as argv[1] ("--keep", "--look"), with two pipes and no other descriptor, and with none of the
 * daemon's memory. argv ends with NULL. 0 or -1 (errno). */
int oomd_child_start(struct oomd_child *c, const char *const *argv);
void oomd_child_close(struct oomd_child *c); /* our ends: the child sees that it is to end */

/* In a child: gives up its place before the OOM killer and its signals. */
void oomd_child_settle(void);

/* In a child: closes every descriptor but the n given, which become 0, 1, ... */
bool oomd_child_keep_only(const int *fds, int n);

enum oomd_confine {
    OOMD_MAY_PTRACE = 1,   /* keeps CAP_SYS_PTRACE, for /proc of others */
    OOMD_MAY_SETUID = 2,   /* keeps CAP_SETUID: looks at files of many users, each as that user */
    OOMD_MAY_SEARCH = 4,   /* keeps CAP_DAC_READ_SEARCH where the daemon has it */
    OOMD_MAY_OPEN = 8,     /* may open files and read directories */
    OOMD_MAY_OUTLIVE = 16, /* does not end with the daemon */
};

/* In a child: reads and opens files as `uid`, but can be signalled by nobody below root; no other capability, no new
 * privileges, only the system calls that it needs. false: not all of it could be done, and it must end. */
bool oomd_child_confine(uint32_t uid, unsigned may);

#endif
