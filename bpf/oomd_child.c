/* SPDX-License-Identifier: MIT
 *
 * oomd_child.c - see oomd_child.h.
 *
 * A child keeps the daemon's own uid and takes on another's only for files (fsuid): who may send a process signals is
 * decided by its uid, so that the owner of the ring cannot stop the process that copies it. Without capabilities
 * and without system calls that would use it, that uid is worth nothing.
 *
 * Runs on: daemon, its children
 */
#include "oomd_child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "oomd_sandbox.h"

enum { NOBODY = 65534, OTHERS_NICE = -5 };

void
oomd_child_settle(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, "0", 1) < 0) errno = 0; /* it stays as unlikely to be chosen as the daemon */
    close(fd);
}

bool
oomd_child_keep_only(const int *fds, int n)
{
    int moved[8];
    if (n > 8) return false;
    for (int i = 0; i < n; i++) /* above all places that are to be filled */
        if ((moved[i] = fcntl(fds[i], F_DUPFD, n)) < 0) return false;
    for (int i = 0; i < n; i++)
        if (dup2(moved[i], i) != i) return false;
    return syscall(SYS_close_range, (unsigned)n, ~0u, 0) == 0;
}

static void
run(const char *const *argv, int in, int out)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), fds[] = {in, out, null};
    if (null < 0 || !oomd_child_keep_only(fds, 3)) _exit(126);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGTERM, SIG_IGN); /* ends when the daemon has no more to ask */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    execv("/proc/self/exe", (char *const *)argv);
    _exit(127);
}

int
oomd_child_start(struct oomd_child *c, const char *const *argv)
{
    int ask[2] = {-1, -1}, answer[2] = {-1, -1}, saved;
    *c = (struct oomd_child){.pidfd = -1, .ask = -1, .answer = -1};
    if (pipe2(ask, O_CLOEXEC) != 0 || pipe2(answer, O_CLOEXEC) != 0) goto failed;
    c->pid = fork();
    if (c->pid == 0) run(argv, ask[0], answer[1]);
    if (c->pid < 0) goto failed;
    c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
    close(ask[0]);
    close(answer[1]);
    c->ask = ask[1];
    c->answer = answer[0];
    fcntl(c->ask, F_SETFL, O_NONBLOCK);
    fcntl(c->answer, F_SETFL, O_NONBLOCK);
    return 0;

failed:
    saved = errno;
    for (int i = 0; i < 2; i++) {
        if (ask[i] >= 0) close(ask[i]);
        if (answer[i] >= 0) close(answer[i]);
    }
    c->pid = 0;
    errno = saved;
    return -1;
}

void
oomd_child_close(struct oomd_child *c)
{
    int *fds[] = {&c->pidfd, &c->ask, &c->answer};
    for (int i = 0; i < 3; i++) {
        if (*fds[i] >= 0) close(*fds[i]);
        *fds[i] = -1;
    }
}

static bool
keep_capabilities(unsigned may)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct have[2] = {{0}}, keep[2] = {{0}};
    if (syscall(SYS_capget, &head, have) != 0) return false;
    if (may & OOMD_MAY_PTRACE) keep[0].permitted |= 1u << CAP_SYS_PTRACE;
    if (may & OOMD_MAY_SETUID) keep[0].permitted |= 1u << CAP_SETUID;
    if (may & OOMD_MAY_SEARCH) keep[0].permitted |= 1u << CAP_DAC_READ_SEARCH;
    keep[0].permitted &= have[0].permitted; /* started with less: does with less */
    keep[0].effective = keep[0].permitted;
    return syscall(SYS_capset, &head, keep) == 0;
}

bool
oomd_child_confine(uint32_t uid, unsigned may)
{
    if (uid != 0) setpriority(PRIO_PROCESS, 0, OTHERS_NICE); /* the daemon's own may be better */
    setgroups(0, NULL);
    setfsgid(NOBODY);
    setfsuid(uid);
    if ((uint32_t)setfsuid((uid_t)-1) != uid) return false; /* it says nothing else */
    if (!keep_capabilities(may)) return false;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    /* forgotten with each change of fsuid */
    if (!(may & OOMD_MAY_OUTLIVE)) prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
    return oomd_sandbox_enter((may & OOMD_MAY_OPEN) != 0);
}
