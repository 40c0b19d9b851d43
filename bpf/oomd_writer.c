/* SPDX-License-Identifier: MIT
 *
 * oomd_writer.c - see oomd_writer.h.
 *
 * Runs on: daemon; write_in_child in its children
 */
#include "oomd_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "error.h"
#include "oomd_dump.h"
#include "oomd_exec.h"
#include "oomd_log.h"
#include "oomd_ring.h"

enum { JOBS_MAX = 4, NOBODY = 65534, CHILD_SECONDS = 120, USERS = 32, BESIDE_RING_BYTES = 2 << 20 };
static const uint64_t minute_ns = 60000000000ull;
enum child_exit { WROTE = 0, FULL = 10, FAILED = 11, NO_MEMORY = 12 };

struct job {
    pid_t pid; /* 0: free */
    int fd;
    bool again; /* the second try, after room was made */
    uint64_t begun_ns, ring_bytes;
    uint64_t disk_bytes; /* that it will take, about */
    struct oomd_victim *victim;
    char unfinished[160], name[160];
};

struct oomd_writer {
    const struct oomd_options *options;
    int dir_fd;
    uint64_t sequence;
    struct job jobs[JOBS_MAX];
    struct {
        uint32_t uid;
        uint64_t minute_end_ns, dumps; /* a minute begins with the first dump after the last one */
    } users[USERS];
};

struct oomd_writer *
oomd_writer_open(const struct oomd_options *options, char *why, size_t why_bytes)
{
    struct oomd_writer *w = calloc(1, sizeof *w);
    struct stat st;
    char parent[512];
    if (w == NULL) return NULL;
    w->options = options;
    snprintf(parent, sizeof parent, "%s", options->dir);
    for (char *p = strchr(parent + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        mkdir(parent, 0755);
        *p = '/';
    }
    mkdir(options->dir, 0700);
    w->dir_fd = open(options->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->dir_fd < 0 || fstat(w->dir_fd, &st) != 0) {
        snprintf(why, why_bytes, "%s: %s", options->dir, strerror(errno));
    } else if (st.st_uid != geteuid() || (st.st_mode & 022)) {
        snprintf(why, why_bytes, "%s belongs to another user or others may write to it",
                 options->dir);
    } else {
        oomd_retain_unfinished(w->dir_fd);
        return w;
    }
    if (w->dir_fd >= 0) close(w->dir_fd);
    free(w);
    return NULL;
}

bool
oomd_writer_has_room(const struct oomd_writer *w)
{
    for (int i = 0; i < JOBS_MAX; i++)
        if (w->jobs[i].pid == 0) return true;
    return false;
}

/* A user whose processes die all the time must not keep the disk busy for everyone. */
static bool
within_rate(struct oomd_writer *w, uint32_t uid, uint64_t now_ns)
{
    size_t oldest = 0;
    if (uid == 0 || w->options->dumps_a_minute == 0) return true;
    for (size_t i = 0; i < USERS; i++) {
        if (w->users[i].minute_end_ns < w->users[oldest].minute_end_ns) oldest = i;
        if (w->users[i].uid != uid || w->users[i].minute_end_ns <= now_ns) continue;
        return w->users[i].dumps++ < w->options->dumps_a_minute;
    }
    w->users[oldest].uid = uid;
    w->users[oldest].minute_end_ns = now_ns + minute_ns;
    w->users[oldest].dumps = 1;
    return true;
}

static void
make_names(struct oomd_writer *w, struct job *j)
{
    const struct oomd_victim *v = j->victim;
    time_t second = (time_t)(v->armed_realtime_ns / 1000000000ull);
    struct tm t;
    char when[32];
    gmtime_r(&second, &t);
    strftime(when, sizeof when, "%Y%m%dT%H%M%S", &t);
    snprintf(j->name, sizeof j->name, "%s-%u-%s.%03uZ" OOMD_DUMP_SUFFIX, v->process->service,
             v->process->tgid, when, (unsigned)(v->armed_realtime_ns / 1000000 % 1000));
    snprintf(j->unfinished, sizeof j->unfinished, OOMD_UNFINISHED_PREFIX "%llu",
             (unsigned long long)++w->sequence);
}

/* As the ring's owner, who alone may know. */
static uint8_t *
look_at_cache(const struct job *j)
{
    struct stat st;
    int fd = j->victim->process->ring_fd;
    bool root = geteuid() == 0;
    if (fstat(fd, &st) != 0 || (root && seteuid(st.st_uid) != 0)) return NULL;
    uint8_t *pages = oomd_ring_cached_pages(fd, j->ring_bytes);
    if (root && seteuid(0) != 0) _exit(FAILED);
    return pages;
}

/* Bytes of a hostile process are handled here: without root, without the directory. */
static void
write_in_child(const struct job *j)
{
    oomd_child_settle();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(CHILD_SECONDS);
    uint8_t *pages = look_at_cache(j);
    if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
                           setresuid(NOBODY, NOBODY, NOBODY) != 0))
        _exit(FAILED);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    switch (oomd_dump_write(j->fd, j->victim, j->ring_bytes, pages)) {
    case SDB_OK:
        _exit(WROTE);
    case SDB_ERR_NOSPC:
        _exit(FULL);
    case SDB_ERR_NOMEM:
        _exit(NO_MEMORY);
    default:
        _exit(FAILED);
    }
}

static void
forget(struct oomd_writer *w, struct job *j)
{
    if (j->fd >= 0) close(j->fd);
    unlinkat(w->dir_fd, j->unfinished, 0); /* gone already when it got its name */
    oomd_victim_free(j->victim);
    memset(j, 0, sizeof *j);
}

/* 0 when the child runs. */
static int
launch(struct oomd_writer *w, struct job *j)
{
    j->fd =
        openat(w->dir_fd, j->unfinished, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (j->fd < 0) return -1;
    /* its user's, so that the budget (and a quota) count it for whom it is; the directory keeps him out */
    if (fchown(j->fd, j->victim->process->uid, (gid_t)-1) != 0) return -1;
    j->pid = fork();
    if (j->pid == 0) write_in_child(j);
    return j->pid > 0 ? 0 : -1;
}

static void
keep_budget(struct oomd_writer *w, const struct job *with)
{
    uint64_t files = 1, bytes = with->disk_bytes;
    for (int i = 0; i < JOBS_MAX; i++) {
        if (w->jobs[i].pid == 0) continue;
        files++;
        bytes += w->jobs[i].disk_bytes;
    }
    oomd_retain(w->dir_fd, &w->options->budget, files, bytes);
}

void
oomd_writer_start(struct oomd_writer *w, struct oomd_victim *v, uint64_t now_ns)
{
    struct job *j = w->jobs;
    struct stat ring;
    const struct oomd_process *p = v->process;
    while (j->pid != 0) j++; /* has_room was asked */
    *j = (struct job){.fd = -1, .victim = v, .begun_ns = now_ns};
    make_names(w, j);
    if (!within_rate(w, p->uid, now_ns)) {
        oomd_log_limited("pid %u (%s) was killed; no dump: more than %llu a minute of uid %u",
                         p->tgid, p->service, (unsigned long long)w->options->dumps_a_minute,
                         p->uid);
        forget(w, j);
        return;
    }
    if (fstat(p->ring_fd, &ring) == 0 && ring.st_size > 0) j->ring_bytes = (uint64_t)ring.st_size;
    if (j->ring_bytes > w->options->max_ring_bytes) j->ring_bytes = w->options->max_ring_bytes;
    j->disk_bytes = (uint64_t)ring.st_blocks * 512 + BESIDE_RING_BYTES;
    keep_budget(w, j);
    if (launch(w, j) != 0) {
        oomd_log("no dump of pid %u (%s): %s", p->tgid, p->service, strerror(errno));
        forget(w, j);
    }
}

static void
announce(const struct oomd_writer *w, const struct job *j, uint64_t now_ns)
{
    const struct oomd_victim *v = j->victim;
    const char *cause = oomd_cause(v);
    char path[1024];
    const char *words = strcmp(cause, "oom") == 0 ? "killed by the OOM killer"
                        : v->facts.si_code == 128 ? "killed by the kernel"
                                                  : "killed by SIGKILL";
    snprintf(path, sizeof path, "%s/%s", w->options->dir, j->name);
    oomd_log("%s: %s, pid %u, %s (running: %.*s, pid %u), %u threads, %s, %llu ms", path,
             v->process->service, v->process->tgid, words, SDB_OOM_COMM_BYTES, v->facts.sender_comm,
             v->facts.sender_tgid, v->facts.threads, oomd_complete(v) ? "complete" : "not complete",
             (unsigned long long)((now_ns - j->begun_ns) / 1000000));
    if (w->options->exec == NULL) return;
    struct oomd_exec_words e = {
        .dump = path, .service = v->process->service, .cause = cause, .pid = v->process->tgid};
    oomd_exec_start(w->options->exec, &e, now_ns);
}

static const char *
failure_words(int status)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "it took too long" : "its writer crashed";
    if (WEXITSTATUS(status) == FULL) return "no room on the disk";
    return WEXITSTATUS(status) == NO_MEMORY ? "no memory" : "reading the ring or writing failed";
}

bool
oomd_writer_ended(struct oomd_writer *w, pid_t pid, int status, uint64_t now_ns)
{
    struct job *j = w->jobs;
    while (j < w->jobs + JOBS_MAX && j->pid != pid) j++;
    if (j == w->jobs + JOBS_MAX) return false;
    uint64_t needed = j->ring_bytes + BESIDE_RING_BYTES;
    if (WIFEXITED(status) && WEXITSTATUS(status) == WROTE) {
        if (renameat(w->dir_fd, j->unfinished, w->dir_fd, j->name) == 0) {
            fsync(w->dir_fd);
            announce(w, j, now_ns);
        } else {
            oomd_log("no dump of pid %u: rename: %s", j->victim->process->tgid, strerror(errno));
        }
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == FULL && !j->again) {
        close(j->fd);
        j->fd = -1;
        unlinkat(w->dir_fd, j->unfinished, 0);
        j->again = true;
        if (oomd_retain_free(w->dir_fd, needed) > 0 && launch(w, j) == 0) return true;
        oomd_log("no dump of pid %u (%s): no room on the disk of %s, needs %llu bytes",
                 j->victim->process->tgid, j->victim->process->service, w->options->dir,
                 (unsigned long long)needed);
    } else {
        oomd_log("no dump of pid %u (%s): %s", j->victim->process->tgid,
                 j->victim->process->service, failure_words(status));
    }
    forget(w, j);
    return true;
}

void
oomd_writer_close(struct oomd_writer *w)
{
    if (w == NULL) return;
    for (int i = 0; i < JOBS_MAX; i++) {
        struct job *j = &w->jobs[i];
        struct timespec step = {.tv_nsec = 10000000};
        int status = 0;
        pid_t got = 0;
        for (int k = 0; j->pid != 0 && k < 1000 && (got = waitpid(j->pid, &status, WNOHANG)) == 0;
             k++)
            nanosleep(&step, NULL);
        if (j->pid == 0) continue;
        if (got == 0) kill(j->pid, SIGKILL);
        oomd_writer_ended(w, j->pid, got > 0 ? status : 9, j->begun_ns);
    }
    close(w->dir_fd);
    free(w);
}
