/* SPDX-License-Identifier: MIT
 *
 * oomd_log.c - see oomd_log.h.
 *
 * Runs on: daemon
 */
#include "oomd_log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "oomd_child.h"

enum { LINE_BYTES = 1024, LIMITED_A_MINUTE = 10 };

static int log_fd = STDERR_FILENO;
static pid_t logger;
static unsigned long lost; /* lines for which the pipe had no room */

/* The logger: what it writes to may be a socket, and that may be slow, or full, or worse. */
static void
pass_on(void)
{
    char bytes[4096];
    ssize_t n;
    while ((n = read(STDIN_FILENO, bytes, sizeof bytes)) != 0) {
        if (n < 0 && errno != EINTR) break;
        for (ssize_t done = 0, put; n > 0 && done < n; done += put) {
            put = write(STDERR_FILENO, bytes + done, (size_t)(n - done));
            if (put < 0 && errno == EINTR) put = 0;
            if (put < 0) break; /* nowhere to say it; the next may get through */
        }
    }
    _exit(0);
}

int
oomd_log_begin(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return -1;
    logger = fork();
    if (logger == 0) {
        int keep[] = {fds[0], STDERR_FILENO, STDERR_FILENO};
        signal(SIGTERM, SIG_IGN); /* the last lines are still to come */
        signal(SIGINT, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
        if (!oomd_child_keep_only(keep, 3) || !oomd_child_confine(geteuid(), OOMD_MAY_OUTLIVE))
            _exit(1);
        pass_on();
    }
    close(fds[0]);
    if (logger < 0) {
        close(fds[1]);
        return -1;
    }
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    log_fd = fds[1];
    return 0;
}

void
oomd_log_end(void)
{
    struct timespec step = {.tv_nsec = 2000000};
    if (log_fd == STDERR_FILENO) return;
    close(log_fd);
    log_fd = STDERR_FILENO;
    for (int i = 0; i < 500 && waitpid(logger, NULL, WNOHANG) == 0; i++) nanosleep(&step, NULL);
}

static void
write_line(const char *format, va_list args)
{
    char line[LINE_BYTES] = "sdb-oomd: ";
    size_t head = strlen(line);
    vsnprintf(line + head, sizeof line - head - 1, format, args);
    size_t n = strlen(line);
    for (size_t i = 0; i < n; i++)
        if (!isprint((unsigned char)line[i])) line[i] = '?';
    line[n++] = '\n';
    if (write(log_fd, line, n) != (ssize_t)n) lost++;
    if (lost == 0) return;
    n = (size_t)snprintf(line, sizeof line, "sdb-oomd: %lu lines of this log were lost\n", lost);
    if (write(log_fd, line, n) == (ssize_t)n) lost = 0;
}

void
oomd_log(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

void
oomd_log_limited(const char *format, ...)
{
    static time_t minute_end; /* a minute begins with the first line after the last one */
    static unsigned in_minute;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec >= minute_end) {
        if (in_minute > LIMITED_A_MINUTE)
            oomd_log("%u more such lines were left out", in_minute - LIMITED_A_MINUTE);
        minute_end = now.tv_sec + 60;
        in_minute = 0;
    }
    if (in_minute++ >= LIMITED_A_MINUTE) return;
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

static int is_verbose;

void
oomd_log_set_verbose(int verbose)
{
    is_verbose = verbose;
}

void
oomd_log_detail(const char *format, ...)
{
    va_list args;
    if (!is_verbose) return;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}
