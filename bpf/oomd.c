/* SPDX-License-Identifier: MIT
 *
 * oomd.c - sdb-oomd: one loop over the probes, its children and a clock. Everything else is in the files beside
 * it; start with README.md.
 *
 * The rule for whatever is called from here: no system call that can wait on an object which another user controls.
 * So there is no socket, and no file or /proc entry of a watched process is touched but by a child that the
 * loop can do without.
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
#include "oomd_arrival.h"
#include "oomd_child.h"
#include "oomd_exec.h"
#include "oomd_find.h"
#include "oomd_keep.h"
#include "oomd_keepers.h"
#include "oomd_log.h"
#include "oomd_options.h"
#include "oomd_probe.h"
#include "oomd_registry.h"
#include "oomd_victim.h"
#include "oomd_writer.h"

enum { OWN_NICE = -10 };
static const uint64_t second_ns = 1000000000ull;

struct daemon {
    struct oomd_options options;
    struct oomd_probe *probe;
    struct oomd_registry *registry;
    struct oomd_victims *victims;
    struct oomd_writer *writer;
    struct oomd_keepers *keepers;
    struct oomd_arrivals arrivals;
    struct oomd_finder finder;
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
    oomd_probe_consume_arrivals(d->probe); /* what belongs to it came before it */
    oomd_probe_consume_data(d->probe);
    oomd_victims_control(d->victims, e, now());
}

static void
on_arrival(void *context, const struct sdb_oom_arrival *a)
{
    struct daemon *d = context;
    oomd_arrivals_take(&d->arrivals, a);
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
    /* when a hundred users' processes want the processors, deaths are still noticed; a unit may set it instead */
    if (getpriority(PRIO_PROCESS, 0) > OWN_NICE) setpriority(PRIO_PROCESS, 0, OWN_NICE);
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
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int
open_all(struct daemon *d)
{
    char why[1024] = "out of memory";
    struct oomd_probe_calls calls = {
        .control = on_control, .arrival = on_arrival, .data = on_data, .context = d};
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
    if (d->writer != NULL)
        d->probe = oomd_probe_open(&calls, sdb_oom_channel(d->options.name), why, sizeof why);
    if (d->probe != NULL) d->registry = oomd_registry_new(d->probe);
    if (d->registry != NULL) d->victims = oomd_victims_new(d->registry);
    if (d->victims != NULL)
        d->keepers = oomd_keepers_new(d->registry, d->epoll, d->options.max_ring_bytes);
    if (d->keepers == NULL) {
        oomd_log("%s", why);
        return -1;
    }
    oomd_writer_use(d->writer, d->keepers);
    d->arrivals.registry = d->finder.registry = d->registry;
    d->arrivals.keepers = d->finder.keepers = d->keepers;
    d->finder.options = &d->options;
    d->finder.epoll = d->epoll;
    if (watch_fd(d, d->signals) != 0 || watch_fd(d, oomd_probe_fd(d->probe)) != 0 ||
        watch_fd(d, oomd_probe_arrivals_fd(d->probe)) != 0) {
        oomd_log("epoll: %s", strerror(errno));
        return -1;
    }
    oomd_log("listening, dumps go to %s", d->options.dir);
    return 0;
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
        if (!oomd_writer_ended(d->writer, pid, status, now()) &&
            !oomd_keepers_ended(d->keepers, pid) && !oomd_find_ended(&d->finder, pid))
            oomd_exec_ended(pid, status);
}

static void
write_victims(struct daemon *d, uint64_t t)
{
    struct oomd_victim *v;
    while ((v = oomd_victims_take(d->victims, d->probe, oomd_writer_rank, d->writer, t)) != NULL)
        oomd_writer_start(d->writer, v, now());
}

static void
on_clock(struct daemon *d, uint64_t t)
{
    if (t >= d->next_sweep_ns) {
        d->next_sweep_ns = t + second_ns;
        oomd_victims_sweep(d->victims, d->probe, t);
        oomd_exec_expire(t);
        oomd_arrivals_tell(&d->arrivals, d->probe, t);
    }
    if (t >= d->next_look_ns) {
        d->next_look_ns = t + 10 * second_ns;
        oomd_registry_sweep(d->registry);
        oomd_probe_forget_users(d->probe, t);
        oomd_find_start(&d->finder, t);
    }
    oomd_find_turn(&d->finder, t);
    oomd_keepers_turn(d->keepers, t);
    oomd_writer_turn(d->writer, t);
    write_victims(d, t);
}

/* While something is on its way the clock is looked at often: lanes change, answers are late. */
static int
wait_ms(const struct daemon *d, uint64_t t)
{
    uint64_t due = d->next_sweep_ns;
    if (oomd_victims_next_due(d->victims) < due) due = oomd_victims_next_due(d->victims);
    if (oomd_keepers_next_due(d->keepers) < due) due = oomd_keepers_next_due(d->keepers);
    if (due <= t) return oomd_writer_running(d->writer) || due < d->next_sweep_ns ? 10 : 0;
    return (int)((due - t) / 1000000 + 1);
}

static void
turn(struct daemon *d, int ms)
{
    struct epoll_event events[16];
    int err = epoll_wait(d->epoll, events, 16, ms);
    if (err < 0 && errno != EINTR) d->stop = true;
    oomd_probe_consume_arrivals(d->probe);
    oomd_probe_consume(d->probe);
    oomd_arrivals_settle(&d->arrivals);
    on_signals(d);
}

/* Writes what it can in ten seconds. */
static void
finish(struct daemon *d)
{
    for (uint64_t end = now() + 10 * second_ns; now() < end;) {
        uint64_t t = now();
        struct oomd_victim *v;
        oomd_keepers_turn(d->keepers, t);
        while ((v = oomd_victims_take(d->victims, d->probe, oomd_writer_rank, d->writer,
                                      UINT64_MAX)) != NULL)
            oomd_writer_start(d->writer, v, t);
        if (oomd_victims_count(d->victims) == 0 && oomd_writer_running(d->writer) == 0) return;
        turn(d, 10);
    }
    oomd_log("ends with %zu dumps not written",
             oomd_victims_count(d->victims) + oomd_writer_running(d->writer));
}

static void
close_all(struct daemon *d)
{
    oomd_writer_close(d->writer);
    oomd_victims_free(d->victims);
    oomd_registry_free(d->registry);
    oomd_keepers_free(d->keepers);
    oomd_probe_close(d->probe);
    free(d->arrivals.gone);
}

int
main(int argc, char **argv)
{
    struct daemon d = {.signals = -1, .epoll = -1};
    if (argc > 1 && strcmp(argv[1], "--keep") == 0) return oomd_keep_main(argc, argv);
    if (argc > 1 && strcmp(argv[1], "--look") == 0) return oomd_find_main(argc, argv);
    int code = oomd_options_parse(&d.options, argc, argv);
    if (code >= 0) return code;
    oomd_log_set_verbose(d.options.verbose);
    signal(SIGPIPE, SIG_IGN);
    if (oomd_log_begin() != 0) {
        perror("sdb-oomd");
        return 1;
    }
    code = open_all(&d) != 0;
    while (code == 0 && !d.stop) {
        on_clock(&d, now());
        turn(&d, wait_ms(&d, now()));
    }
    if (code == 0) {
        finish(&d);
        oomd_log("ended");
    }
    close_all(&d);
    oomd_log_end();
    return code;
}
