/* SPDX-License-Identifier: MIT
 *
 * oomd_finder.c - the daemon's side of oomd_find.h.
 *
 * Runs on: daemon
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "oomd_find.h"
#include "oomd_keepers.h"
#include "oomd_log.h"
#include "oomd_process.h"
#include "oomd_registry.h"

static const uint64_t limit_ns = 10 * 1000000000ull;

void
oomd_find_start(struct oomd_finder *f, uint64_t now_ns)
{
    const char *argv[3 + OOMD_RING_DIRS_MAX] = {"sdb-oomd", "--look"};
    if (f->runs || f->options->ring_dir_count == 0) return;
    memcpy(argv + 2, f->options->ring_dirs, f->options->ring_dir_count * sizeof *argv);
    if (oomd_child_start(&f->child, argv) != 0) {
        oomd_log_limited("cannot look into --rings: %s", strerror(errno));
        return;
    }
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(f->epoll, EPOLL_CTL_ADD, f->child.answer, &e);
    f->runs = true;
    f->until_ns = now_ns + limit_ns;
    f->got = 0;
}

static void
take(struct oomd_finder *f)
{
    const struct oomd_find_answer *a = &f->in;
    if (oomd_registry_find(f->registry, a->tgid) != NULL) return;
    struct oomd_process *p = calloc(1, sizeof *p);
    if (p == NULL) return;
    p->tgid = a->tgid;
    p->uid = a->uid;
    p->start_ticks = a->start_ticks;
    p->table_version_known = true;
    p->path = strndup(a->path, sizeof a->path - 1);
    oomd_keepers_adopt(f->keepers, p);
    memcpy(p->service, a->service, sizeof p->service - 1);
    if (p->path == NULL) oomd_process_free(p);
    else oomd_registry_add_found(f->registry, p);
}

void
oomd_find_turn(struct oomd_finder *f, uint64_t now_ns)
{
    ssize_t n;
    if (!f->runs || f->child.answer < 0) return;
    while ((n = read(f->child.answer, (char *)&f->in + f->got, sizeof f->in - f->got)) > 0) {
        f->got += (size_t)n;
        if (f->got < sizeof f->in) continue;
        f->got = 0;
        take(f);
    }
    bool late = now_ns > f->until_ns;
    if (n < 0 && (errno == EAGAIN || errno == EINTR) && !late) return;
    oomd_child_close(&f->child); /* it may be such that it does not end: then no other is started */
    if (!late) return;
    oomd_log("looking into --rings takes too long; given up");
    kill(f->child.pid, SIGKILL);
}

bool
oomd_find_ended(struct oomd_finder *f, pid_t pid)
{
    if (!f->runs || f->child.pid != pid) return false;
    oomd_find_turn(f, 0); /* what it said last */
    f->runs = false;
    oomd_child_close(&f->child);
    return true;
}
