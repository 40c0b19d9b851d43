/* SPDX-License-Identifier: MIT
 *
 * oomd_writer.c - see oomd_writer.h. What the child does is in oomd_write.c.
 *
 * Two lanes: the eight of all users but root that began last have the machine's attention; who is not done after a
 * second makes room for the next and goes on with what is left of it.
 *
 * Runs on: daemon
 */
#include "oomd_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "oomd_dump.h"
#include "oomd_exec.h"
#include "oomd_keepers.h"
#include "oomd_log.h"
#include "oomd_rate.h"
#include "oomd_write.h"

enum {
    JOBS_ROOT = 8,
    JOBS_OTHERS = 160, /* one a user */
    JOBS_QUICK = 8,    /* of those */
    JOBS_MAX = JOBS_ROOT + JOBS_OTHERS,
    SLOW_NICE = 5,
};
static const uint64_t second_ns = 1000000000ull;
static const uint64_t slow_after_ns = 1000000000ull, limit_ns = 60 * 1000000000ull;
static const uint64_t keeper_ns = 3 * 1000000000ull; /* to wait for an answer of its keeper */

struct job {
    pid_t pid; /* 0: free */
    uint32_t uid;
    int fd;
    bool again; /* the second try, after room was made */
    bool slow, killed;
    uint64_t begun_ns;
    struct oomd_victim *victim; /* NULL: given up; it only does not end */
    char unfinished[160], name[160];
};

struct oomd_writer {
    const struct oomd_options *options;
    struct oomd_keepers *keepers;
    int dir_fd;
    uint64_t sequence;
    struct job jobs[JOBS_MAX];
    size_t others, quick;  /* of the jobs */
    struct oomd_rate rate; /* of dumps, a user */
    pid_t syncer;          /* 0: none runs */
    bool unsynced;         /* names that may not be on the disk yet */
};

struct oomd_writer *
oomd_writer_open(const struct oomd_options *options, char *why, size_t why_bytes)
{
    struct oomd_writer *w = calloc(1, sizeof *w);
    struct stat st;
    char parent[512];
    if (w == NULL) return NULL;
    w->options = options;
    w->rate.burst = options->dumps_a_minute;
    w->rate.refill_ns = options->dumps_a_minute ? 60 * second_ns / options->dumps_a_minute : 0;
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
    } else if (flock(w->dir_fd, LOCK_EX | LOCK_NB) != 0) {
        snprintf(why, why_bytes, "%s: another sdb-oomd runs", options->dir);
    } else {
        oomd_retain_unfinished(w->dir_fd);
        return w;
    }
    if (w->dir_fd >= 0) close(w->dir_fd);
    free(w);
    return NULL;
}

void
oomd_writer_use(struct oomd_writer *w, struct oomd_keepers *keepers)
{
    w->keepers = keepers;
}

int64_t
oomd_writer_rank(void *writer, const struct oomd_victim *v, uint64_t now_ns)
{
    struct oomd_writer *w = writer;
    uint32_t uid = v->process->uid;
    size_t of_user = 0;
    if (uid != 0 && (w->others == JOBS_OTHERS || w->quick >= JOBS_QUICK)) return -1;
    if (v->process->kept == OOMD_KEPT_ASKED && now_ns < v->due_ns + keeper_ns) return -1;
    for (int i = 0; i < JOBS_MAX; i++) of_user += w->jobs[i].pid != 0 && w->jobs[i].uid == uid;
    if (uid == 0) return of_user < JOBS_ROOT ? 0 : -1;
    if (of_user > 0) return -1;
    return 1 + (int64_t)(w->rate.burst ? oomd_rate_used(&w->rate, uid, now_ns) : 0);
}

size_t
oomd_writer_running(const struct oomd_writer *w)
{
    size_t n = 0;
    for (int i = 0; i < JOBS_MAX; i++) n += w->jobs[i].pid != 0 && w->jobs[i].victim != NULL;
    return n;
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

/* The job has no file and no victim any more; it is free when it has no child either. */
static void
let_go(struct oomd_writer *w, struct job *j)
{
    if (j->fd >= 0) close(j->fd);
    j->fd = -1;
    unlinkat(w->dir_fd, j->unfinished, 0); /* gone already when it got its name */
    oomd_victim_free(j->victim);
    j->victim = NULL;
}

/* 0 when the child runs. */
static int
launch(struct oomd_writer *w, struct job *j)
{
    j->fd =
        openat(w->dir_fd, j->unfinished, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (j->fd < 0) return -1;
    /* its user's, so that the budget (and a quota) count it for whom it is; the directory keeps him out */
    if (fchown(j->fd, j->uid, (gid_t)-1) != 0) return -1;
    const struct oomd_process *p = j->victim->process;
    struct oomd_write_job what = {.victim = j->victim,
                                  .out = j->fd,
                                  .keeper = oomd_keepers_pidfd(w->keepers, p),
                                  .max_ring_bytes = w->options->max_ring_bytes,
                                  .limit = w->options->budget.bytes};
    j->pid = fork();
    if (j->pid == 0) oomd_write_in_child(&what);
    if (j->pid > 0) {
        w->others += j->uid != 0;
        w->quick += j->uid != 0 && !j->slow;
        return 0;
    }
    j->pid = 0;
    return -1;
}

void
oomd_writer_start(struct oomd_writer *w, struct oomd_victim *v, uint64_t now_ns)
{
    struct job *j = w->jobs;
    const struct oomd_process *p = v->process;
    while (j->pid != 0) j++; /* the rank was asked */
    *j = (struct job){.fd = -1, .victim = v, .uid = p->uid, .begun_ns = now_ns};
    make_names(w, j);
    if (p->uid != 0 && w->rate.burst && !oomd_rate_take(&w->rate, p->uid, now_ns)) {
        oomd_log_limited("pid %u (%s) was killed; no dump: more than %llu a minute of uid %u",
                         p->tgid, p->service, (unsigned long long)w->options->dumps_a_minute,
                         p->uid);
        let_go(w, j);
        return;
    }
    if (launch(w, j) != 0) {
        oomd_log("no dump of pid %u (%s): %s", p->tgid, p->service, strerror(errno));
        let_go(w, j);
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
failure_words(const struct job *j, int status)
{
    if (j->killed) return "it took too long";
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGKILL ? "its writer was killed" : "its writer crashed";
    switch (WEXITSTATUS(status)) {
    case OOMD_WRITE_FULL:
        return "no room on the disk";
    case OOMD_WRITE_NO_MEMORY:
        return "no memory";
    case OOMD_WRITE_OVER:
        return "its ring is larger than what may be kept of its user";
    default:
        return "reading the ring or writing failed";
    }
}

static void
publish(struct oomd_writer *w, struct job *j, uint64_t now_ns)
{
    const struct oomd_process *p = j->victim->process;
    struct stat st;
    uint64_t bytes = fstat(j->fd, &st) == 0 ? (uint64_t)st.st_blocks * 512 : 0;
    if (!oomd_retain(w->dir_fd, &w->options->budget, j->uid, bytes)) {
        oomd_log("no dump of pid %u (%s): no room in the budget of uid %u for its %llu bytes",
                 p->tgid, p->service, p->uid, (unsigned long long)bytes);
    } else if (renameat(w->dir_fd, j->unfinished, w->dir_fd, j->name) == 0) {
        w->unsynced = true;
        announce(w, j, now_ns);
    } else {
        oomd_log("no dump of pid %u: rename: %s", p->tgid, strerror(errno));
    }
}

/* true when it is tried again. */
static bool
make_room(struct oomd_writer *w, struct job *j)
{
    uint64_t needed = j->victim->process->ring_bytes + OOMD_WRITE_BESIDE_BYTES;
    close(j->fd);
    j->fd = -1;
    unlinkat(w->dir_fd, j->unfinished, 0);
    j->again = true;
    if (oomd_retain_free(w->dir_fd, j->uid, needed) > 0 && launch(w, j) == 0) return true;
    oomd_log("no dump of pid %u (%s): no room on the disk of %s, needs %llu bytes",
             j->victim->process->tgid, j->victim->process->service, w->options->dir,
             (unsigned long long)needed);
    return false;
}

bool
oomd_writer_ended(struct oomd_writer *w, pid_t pid, int status, uint64_t now_ns)
{
    struct job *j = w->jobs;
    if (pid == w->syncer) {
        w->syncer = 0;
        return true;
    }
    while (j < w->jobs + JOBS_MAX && (j->pid != pid || pid == 0)) j++;
    if (j == w->jobs + JOBS_MAX) return false;
    j->pid = 0;
    w->others -= j->uid != 0;
    w->quick -= j->uid != 0 && !j->slow;
    if (j->victim == NULL) return true; /* was given up long ago */
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (code == OOMD_WRITE_DONE) {
        publish(w, j, now_ns);
    } else if (code == OOMD_WRITE_FULL && !j->again) {
        if (make_room(w, j)) return true;
    } else {
        oomd_log("no dump of pid %u (%s): %s", j->victim->process->tgid,
                 j->victim->process->service, failure_words(j, status));
    }
    let_go(w, j);
    return true;
}

/* Waits for the disk, and that is as busy as those who die make it. */
static void
sync_names(struct oomd_writer *w)
{
    if (!w->unsynced || w->syncer) return;
    w->unsynced = false;
    pid_t pid = fork();
    if (pid == 0) {
        fsync(w->dir_fd);
        _exit(0);
    }
    if (pid > 0) w->syncer = pid;
}

void
oomd_writer_turn(struct oomd_writer *w, uint64_t now_ns)
{
    sync_names(w);
    for (int i = 0; i < JOBS_MAX; i++) {
        struct job *j = &w->jobs[i];
        if (j->pid == 0 || now_ns - j->begun_ns < slow_after_ns) continue;
        if (!j->slow && j->uid != 0) {
            setpriority(PRIO_PROCESS, (id_t)j->pid, SLOW_NICE);
            w->quick--;
        }
        j->slow = true;
        uint64_t age = now_ns - j->begun_ns;
        if (age > limit_ns && !j->killed) {
            j->killed = true;
            kill(j->pid, SIGKILL);
        }
        if (age < limit_ns + 2 * second_ns || j->victim == NULL) continue;
        oomd_log("no dump of pid %u (%s): its writer does not even end", j->victim->process->tgid,
                 j->victim->process->service);
        let_go(w, j);
    }
}

void
oomd_writer_close(struct oomd_writer *w)
{
    if (w == NULL) return;
    for (int i = 0; i < JOBS_MAX; i++) {
        if (w->jobs[i].pid == 0) continue;
        kill(w->jobs[i].pid, SIGKILL);
        let_go(w, &w->jobs[i]);
    }
    if (w->unsynced) fsync(w->dir_fd); /* nobody dies unnoticed for it any more */
    close(w->dir_fd);
    free(w);
}
