/* SPDX-License-Identifier: MIT
 *
 * oomd.c - sdb-oomd: one loop over the socket, the probes, its children and a clock. Everything else is in
 * the files beside it; start with README.md.
 *
 * Runs on: daemon
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "oomd_exec.h"
#include "oomd_find.h"
#include "oomd_intake.h"
#include "oomd_log.h"
#include "oomd_options.h"
#include "oomd_probe.h"
#include "oomd_registry.h"
#include "oomd_victim.h"
#include "oomd_writer.h"

static const uint64_t second_ns = 1000000000ull;

struct daemon {
    struct oomd_options options;
    struct oomd_probe *probe;
    struct oomd_registry *registry;
    struct oomd_victims *victims;
    struct oomd_writer *writer;
    struct oomd_intake *intake;
    int signals, epoll;
    uint64_t next_sweep_ns, next_look_ns;
    bool stop;
};

static uint64_t
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * second_ns + (uint64_t)t.tv_nsec;
}

static void
on_control(void *context, const struct sdb_oom_control *e)
{
    struct daemon *d = context;
    oomd_probe_consume_data(d->probe); /* what belongs to it came before it */
    oomd_victims_control(d->victims, e, now());
}

static void
on_data(void *context, const struct sdb_oom_data_header *head, const uint8_t *bytes)
{
    struct daemon *d = context;
    oomd_victims_data(d->victims, head, bytes);
}

/* The daemon must outlive what it watches. */
static void
settle(void)
{
    struct rlimit files = {.rlim_cur = 16384, .rlim_max = 16384}, old;
    if (getrlimit(RLIMIT_NOFILE, &old) == 0 && old.rlim_cur < files.rlim_cur &&
        setrlimit(RLIMIT_NOFILE, &files) != 0) {
        files.rlim_cur = files.rlim_max = old.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "-999", 4) != 4)
        oomd_log("cannot set oom_score_adj to -999 (%s): the OOM killer may choose this daemon",
                 strerror(errno));
    if (fd >= 0) close(fd);
    umask(022);
}

static bool
in_first_pid_namespace(void)
{
    struct stat st;
    return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino == 0xEFFFFFFCu; /* PROC_PID_INIT_INO */
}

static int
watch_fd(struct daemon *d, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int
open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
open_all(struct daemon *d)
{
    char why[1024] = "out of memory";
    struct oomd_probe_calls calls = {.control = on_control, .data = on_data, .context = d};
    if (!in_first_pid_namespace()) {
        oomd_log(
            "runs in a pid namespace of its own: the kernel's process numbers mean nothing here "
            "(Kubernetes: hostPID: true, docker: --pid=host)");
        return -1;
    }
    settle();
    d->signals = open_signals();
    d->epoll = epoll_create1(EPOLL_CLOEXEC);
    d->writer = oomd_writer_open(&d->options, why, sizeof why);
    if (d->writer != NULL) d->probe = oomd_probe_open(&calls, why, sizeof why);
    if (d->probe != NULL) d->registry = oomd_registry_new(d->probe);
    if (d->registry != NULL) d->victims = oomd_victims_new(d->registry);
    if (d->victims != NULL)
        d->intake = oomd_intake_open(d->options.socket, d->registry, d->options.max_ring_bytes, why,
                                     sizeof why);
    if (d->intake == NULL) {
        oomd_log("%s", why);
        return -1;
    }
    if (watch_fd(d, d->signals) != 0 || watch_fd(d, oomd_probe_fd(d->probe)) != 0 ||
        watch_fd(d, oomd_intake_fd(d->intake)) != 0) {
        oomd_log("epoll: %s", strerror(errno));
        return -1;
    }
    oomd_log("listening on %s, dumps go to %s", d->options.socket, d->options.dir);
    return 0;
}

static void
close_all(struct daemon *d)
{
    oomd_intake_close(d->intake); /* first: what is sent from now on is the next daemon's */
    if (d->victims != NULL && d->writer != NULL) {
        for (struct oomd_victim *v; (v = oomd_victims_take(d->victims, UINT64_MAX)) != NULL;) {
            if (oomd_writer_has_room(d->writer)) {
                oomd_writer_start(d->writer, v, now());
                continue;
            }
            oomd_log("pid %u (%s) was killed; not recorded: the daemon ends", v->process->tgid,
                     v->process->service);
            oomd_victim_free(v);
        }
    }
    oomd_writer_close(d->writer);
    oomd_victims_free(d->victims);
    oomd_registry_free(d->registry);
    oomd_probe_close(d->probe);
}

static void
on_signals(struct daemon *d)
{
    struct signalfd_siginfo s;
    int status;
    pid_t pid;
    while (read(d->signals, &s, sizeof s) == sizeof s)
        if (s.ssi_signo == SIGTERM || s.ssi_signo == SIGINT) d->stop = true;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        if (!oomd_writer_ended(d->writer, pid, status, now())) oomd_exec_ended(pid, status);
}

static void
on_clock(struct daemon *d, uint64_t t)
{
    if (t >= d->next_sweep_ns) {
        d->next_sweep_ns = t + second_ns;
        oomd_victims_sweep(d->victims, d->probe, t);
        oomd_exec_expire(t);
    }
    if (t >= d->next_look_ns) {
        d->next_look_ns = t + 10 * second_ns;
        oomd_registry_sweep(d->registry);
        for (size_t i = 0; i < d->options.ring_dir_count; i++)
            oomd_find_rings(d->registry, d->options.ring_dirs[i], d->options.max_ring_bytes, t);
    }
    while (oomd_writer_has_room(d->writer)) {
        struct oomd_victim *v = oomd_victims_take(d->victims, t);
        if (v == NULL) break;
        oomd_writer_start(d->writer, v, t);
    }
}

static int
wait_ms(const struct daemon *d, uint64_t t)
{
    uint64_t due = d->next_sweep_ns;
    if (oomd_writer_has_room(d->writer) && oomd_victims_next_due(d->victims) < due)
        due = oomd_victims_next_due(d->victims);
    return due <= t ? 0 : (int)((due - t) / 1000000 + 1);
}

int
main(int argc, char **argv)
{
    struct daemon d = {.signals = -1, .epoll = -1};
    int code = oomd_options_parse(&d.options, argc, argv);
    if (code >= 0) return code;
    oomd_log_set_verbose(d.options.verbose);
    if (open_all(&d) != 0) {
        close_all(&d);
        return 1;
    }
    while (!d.stop) {
        struct epoll_event events[4];
        on_clock(&d, now());
        if (epoll_wait(d.epoll, events, 4, wait_ms(&d, now())) < 0 && errno != EINTR) break;
        oomd_probe_consume(d.probe);
        oomd_intake_read(d.intake, now());
        on_signals(&d);
    }
    close_all(&d);
    oomd_log("ended");
    return 0;
}
