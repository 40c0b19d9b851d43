/* SPDX-License-Identifier: MIT
 *
 * oomd_exec.c - see oomd_exec.h.
 *
 * Runs on: daemon
 */
#include "oomd_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "oomd_child.h"
#include "oomd_log.h"

enum { RUNNING_MAX = 4 };
static const uint64_t limit_ns = 60 * 1000000000ull;

static struct {
    pid_t pid;
    uint64_t until_ns;
} running[RUNNING_MAX];

static void
run(const char *command, const struct oomd_exec_words *words)
{
    char pid[16];
    oomd_child_settle();
    signal(SIGPIPE, SIG_DFL); /* ours is ignored, and that would outlive exec */
    setpriority(PRIO_PROCESS, 0, 0);
    setsid();
    int null = open("/dev/null", O_RDWR);
    if (null >= 0) dup2(null, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    snprintf(pid, sizeof pid, "%u", words->pid);
    setenv("SDB_DUMP", words->dump, 1);
    setenv("SDB_SERVICE", words->service, 1);
    setenv("SDB_CAUSE", words->cause, 1);
    setenv("SDB_PID", pid, 1);
    execl("/bin/sh", "sh", "-c", command, "sdb-oomd", words->dump, (char *)NULL);
    _exit(127);
}

void
oomd_exec_start(const char *command, const struct oomd_exec_words *words, uint64_t now_ns)
{
    for (int i = 0; i < RUNNING_MAX; i++) {
        if (running[i].pid != 0) continue;
        pid_t pid = fork();
        if (pid == 0) run(command, words);
        if (pid < 0) break;
        running[i].pid = pid;
        running[i].until_ns = now_ns + limit_ns;
        return;
    }
    oomd_log("--exec was not run for %s: %s", words->dump,
             errno == EAGAIN ? "no process could be started" : "four are still running");
}

bool
oomd_exec_ended(pid_t pid, int status)
{
    for (int i = 0; i < RUNNING_MAX; i++) {
        if (running[i].pid != pid) continue;
        running[i].pid = 0;
        if (WIFSIGNALED(status)) oomd_log("--exec ended by signal %d", WTERMSIG(status));
        else if (WEXITSTATUS(status) != 0)
            oomd_log("--exec ended with status %d", WEXITSTATUS(status));
        return true;
    }
    return false;
}

void
oomd_exec_expire(uint64_t now_ns)
{
    for (int i = 0; i < RUNNING_MAX; i++)
        if (running[i].pid != 0 && running[i].until_ns < now_ns) kill(-running[i].pid, SIGKILL);
}
