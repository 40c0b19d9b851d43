/* SPDX-License-Identifier: MIT
 *
 * oomd_keepers.c - see oomd_keepers.h.
 *
 * Runs on: daemon
 */
#include "oomd_keepers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include "oomd_child.h"
#include "oomd_describe.h"
#include "oomd_keep.h"
#include "oomd_log.h"
#include "oomd_rate.h"
#include "oomd_registry.h"

static const uint64_t second_ns = 1000000000ull;
static const uint64_t answer_ns = 2 * 1000000000ull, idle_ns = 30 * 1000000000ull;

enum { STARTS_AT_ONCE = 8, LOOK_NS = 1000000 };

enum life {
    WORKS,
    HANGS, /* did not answer; holds what it held */
    ENDS,  /* is to end; its place is taken until it has */
};

struct keeper {
    uint64_t serial;
    uint32_t uid;
    enum life life;
    struct oomd_child child;
    bool busy;                  /* something is asked ... */
    struct oomd_process *asked; /* ... for this one; NULL: for none, or it is gone */
    uint64_t asked_ns, used_ns;
    size_t holds; /* rings */
    int32_t *drops;
    size_t drop_count, drop_room;
    size_t got; /* of the answer that is coming in */
    struct {
        struct oomd_keep_answer head;
        uint8_t packed[OOMD_PACKED_BYTES];
    } in;
};

struct oomd_keepers {
    struct oomd_registry *registry;
    int epoll;
    uint64_t max_ring, next_serial;
    uint64_t next_look_ns; /* for processes whose ring is not held yet */
    bool look_is_due;
    struct oomd_rate starts;
    size_t count;
    struct keeper *all[OOMD_KEEPERS_MAX];
};

struct oomd_keepers *
oomd_keepers_new(struct oomd_registry *registry, int epoll, uint64_t max_ring)
{
    struct oomd_keepers *k = calloc(1, sizeof *k);
    if (k == NULL) return NULL;
    *k = (struct oomd_keepers){.registry = registry,
                               .epoll = epoll,
                               .max_ring = max_ring,
                               .next_serial = 1,
                               .starts = {.burst = STARTS_AT_ONCE, .refill_ns = second_ns}};
    return k;
}

size_t
oomd_keepers_count(const struct oomd_keepers *k)
{
    return k->count;
}

static void
end(struct keeper *one)
{
    if (one->life == ENDS) return;
    one->life = ENDS;
    oomd_child_close(&one->child);
    kill(one->child.pid, SIGKILL); /* not reaped yet: the number is still its own */
}

void
oomd_keepers_free(struct oomd_keepers *k)
{
    if (k == NULL) return;
    for (size_t i = 0; i < k->count; i++) {
        end(k->all[i]);
        free(k->all[i]->drops);
        free(k->all[i]);
    }
    free(k);
}

static struct keeper *
with_serial(const struct oomd_keepers *k, uint64_t serial)
{
    for (size_t i = 0; i < k->count && serial; i++)
        if (k->all[i]->serial == serial) return k->all[i];
    return NULL;
}

int
oomd_keepers_pidfd(const struct oomd_keepers *k, const struct oomd_process *p)
{
    struct keeper *one = p->kept == OOMD_KEPT ? with_serial(k, p->keeper) : NULL;
    return one && one->life != ENDS ? one->child.pidfd : -1;
}

static bool
start(struct oomd_keepers *k, uint32_t uid, uint64_t now_ns)
{
    char uid_text[16], max_text[24];
    const char *argv[] = {"sdb-oomd", "--keep", uid_text, max_text, NULL};
    size_t of_user = 0, others = 0;
    for (size_t i = 0; i < k->count; i++) {
        of_user += k->all[i]->uid == uid;
        others += k->all[i]->uid != 0;
    }
    if (of_user >= OOMD_KEEPERS_A_USER || k->count == OOMD_KEEPERS_MAX ||
        (uid && others >= OOMD_KEEPERS_MAX - OOMD_KEEPERS_A_USER) ||
        !oomd_rate_take(&k->starts, uid, now_ns))
        return false;
    struct keeper *one = calloc(1, sizeof *one);
    if (one == NULL) return false;
    snprintf(uid_text, sizeof uid_text, "%u", uid);
    snprintf(max_text, sizeof max_text, "%llu", (unsigned long long)k->max_ring);
    struct epoll_event e = {.events = EPOLLIN};
    if (oomd_child_start(&one->child, argv) != 0) {
        oomd_log_limited("no keeper for uid %u: %s", uid, strerror(errno));
        free(one);
        return false;
    }
    epoll_ctl(k->epoll, EPOLL_CTL_ADD, one->child.answer, &e);
    one->serial = k->next_serial++;
    one->uid = uid;
    one->used_ns = now_ns;
    k->all[k->count++] = one;
    return true;
}

static void
drop(struct keeper *one, int32_t fd)
{
    if (one->life != WORKS) return; /* ends with all it holds, when that is nothing of use */
    if (one->drop_count == one->drop_room) {
        size_t room = one->drop_room ? 2 * one->drop_room : 16;
        int32_t *more = realloc(one->drops, room * sizeof *more);
        if (more == NULL) return; /* it stays open until the keeper ends */
        one->drops = more;
        one->drop_room = room;
    }
    one->drops[one->drop_count++] = fd;
}

static void
release(void *keepers, const struct oomd_process *p)
{
    struct oomd_keepers *k = keepers;
    struct keeper *one = with_serial(k, p->keeper);
    if (one == NULL) return;
    if (one->asked == p) one->asked = NULL;
    if (p->kept != OOMD_KEPT) return;
    one->holds--;
    drop(one, p->kept_fd);
}

void
oomd_keepers_adopt(struct oomd_keepers *k, struct oomd_process *p)
{
    p->release = release;
    p->keepers = k;
}

/* Hands what a keeper held, and whoever it was to be asked for, to the next one. */
static void
lost(struct oomd_keepers *k, struct keeper *one)
{
    for (size_t i = 0; i < oomd_registry_count(k->registry); i++) {
        struct oomd_process *p = oomd_registry_at(k->registry, i);
        if (p->keeper != one->serial) continue;
        if (p->kept != OOMD_KEPT_NEVER) p->kept = OOMD_KEPT_NOT_YET;
        p->keeper = 0;
    }
    if (one->asked && one->asked->keeper == one->serial) { /* a victim: it is written without */
        one->asked->kept = OOMD_KEPT_NEVER;
        one->asked->keeper = 0;
    }
}

bool
oomd_keepers_ended(struct oomd_keepers *k, pid_t pid)
{
    for (size_t i = 0; i < k->count; i++) {
        struct keeper *one = k->all[i];
        if (one->child.pid != pid) continue;
        one->life = ENDS;
        oomd_child_close(&one->child);
        lost(k, one);
        free(one->drops);
        free(one);
        k->all[i] = k->all[--k->count];
        return true;
    }
    return false;
}

static void
take_answer(struct oomd_keepers *k, struct keeper *one)
{
    const struct oomd_keep_answer *a = &one->in.head;
    struct oomd_process *p = one->asked;
    one->asked = NULL;
    one->busy = false;
    if (a->what != OOMD_KEEP_OPEN) return;
    if (p == NULL || p->id != a->id || p->kept != OOMD_KEPT_ASKED) { /* gone, or given up */
        if (a->fd >= 0) drop(one, a->fd);
        return;
    }
    free(p->description);
    p->description_bytes = 0;
    p->description = a->description_bytes ? malloc(a->description_bytes) : NULL;
    if (p->description != NULL) {
        memcpy(p->description, one->in.packed, a->description_bytes);
        p->description_bytes = a->description_bytes;
    }
    p->kept = a->fd >= 0 ? OOMD_KEPT : OOMD_KEPT_NEVER;
    if (a->fd >= 0) {
        p->kept_fd = a->fd;
        p->ring_dev = a->dev;
        p->ring_ino = a->ino;
        p->ring_bytes = a->bytes;
        one->holds++;
        oomd_log_detail("watching pid %u (%s)%s", p->tgid, p->service,
                        p->path ? ", by its ring" : "");
        return;
    }
    oomd_log_limited("the ring of pid %u, uid %u is not kept: %s", p->tgid, p->uid,
                     oomd_keep_words(a->reason));
    if (a->reason == OOMD_KEEP_NOT_ITSELF) oomd_registry_drop(k->registry, p->id);
}

/* false: it said what no keeper says, or is gone. */
static bool
read_answers(struct oomd_keepers *k, struct keeper *one)
{
    for (;;) {
        size_t head = sizeof one->in.head, whole = head;
        if (one->got >= head) {
            if (one->in.head.description_bytes > OOMD_PACKED_BYTES) return false;
            whole += one->in.head.description_bytes;
            if (one->got == whole) {
                one->got = 0;
                take_answer(k, one);
                continue;
            }
        }
        ssize_t n = read(one->child.answer, (uint8_t *)&one->in + one->got, whole - one->got);
        if (n < 0) return errno == EAGAIN || errno == EINTR;
        if (n == 0) return false;
        one->got += (size_t)n;
    }
}

static bool
ask(struct keeper *one, const struct oomd_keep_ask *what, uint64_t now_ns)
{
    _Static_assert(sizeof *what <= 4096, "a pipe takes it whole or not at all");
    if (write(one->child.ask, what, sizeof *what) != sizeof *what) return false;
    one->busy = true;
    one->asked_ns = one->used_ns = now_ns;
    return true;
}

static void
ask_for(struct keeper *one, struct oomd_process *p, uint64_t now_ns)
{
    struct oomd_keep_ask what = {.id = p->id,
                                 .what = OOMD_KEEP_OPEN,
                                 .tgid = p->tgid,
                                 .tid = p->tid,
                                 .start_ticks = p->start_ticks,
                                 .fd = (int32_t)p->ring_fd};
    if (p->path != NULL) snprintf(what.path, sizeof what.path, "%s", p->path);
    if (!ask(one, &what, now_ns)) return;
    p->kept = OOMD_KEPT_ASKED;
    p->keeper = one->serial;
    one->asked = p;
}

/* The one of that user that works and has nothing to do, else NULL; *any: it has one that works. */
static struct keeper *
idle_one(struct oomd_keepers *k, uint32_t uid, bool *any)
{
    *any = false;
    for (size_t i = 0; i < k->count; i++) {
        struct keeper *one = k->all[i];
        if (one->uid != uid || one->life != WORKS) continue;
        *any = true;
        if (!one->busy) return one;
    }
    return NULL;
}

static void
hang(struct keeper *one)
{
    struct oomd_process *p = one->asked;
    one->life = HANGS;
    one->asked = NULL;
    oomd_log_limited("the keeper of uid %u does not answer, another takes over", one->uid);
    if (p == NULL) return;
    p->kept = OOMD_KEPT_NEVER;
    p->keeper = 0;
    oomd_log_limited("the ring of pid %u, uid %u is not kept: opening it takes for ever", p->tgid,
                     p->uid);
}

static void
look_after(struct oomd_keepers *k, struct keeper *one, uint64_t now_ns)
{
    static const struct oomd_keep_ask none;
    if (one->life == ENDS) return;
    if (!read_answers(k, one)) {
        end(one);
        lost(k, one);
        return;
    }
    if (one->life == HANGS) {
        if (one->holds == 0)
            end(one); /* what it is in may be such that it does not end: it counts on */
        return;
    }
    if (one->busy && now_ns - one->asked_ns > answer_ns) {
        hang(one);
    } else if (!one->busy && one->drop_count) {
        struct oomd_keep_ask what = none;
        what.what = OOMD_KEEP_DROP;
        what.fd = one->drops[one->drop_count - 1];
        if (ask(one, &what, now_ns)) one->drop_count--;
    } else if (!one->busy && one->holds == 0 && now_ns - one->used_ns > idle_ns) {
        end(one);
    }
}

void
oomd_keepers_turn(struct oomd_keepers *k, uint64_t now_ns)
{
    for (size_t i = 0; i < k->count; i++) look_after(k, k->all[i], now_ns);
    k->look_is_due = now_ns < k->next_look_ns;
    if (k->look_is_due) return;
    k->next_look_ns = now_ns + LOOK_NS;
    for (size_t i = 0; i < oomd_registry_count(k->registry); i++) {
        struct oomd_process *p = oomd_registry_at(k->registry, i);
        bool any;
        if (p->kept != OOMD_KEPT_NOT_YET) continue;
        struct keeper *one = idle_one(k, p->uid, &any);
        if (one == NULL && !any && start(k, p->uid, now_ns)) one = k->all[k->count - 1];
        if (one != NULL) ask_for(one, p, now_ns);
    }
}

uint64_t
oomd_keepers_next_due(const struct oomd_keepers *k)
{
    uint64_t due = k->look_is_due ? k->next_look_ns : UINT64_MAX;
    for (size_t i = 0; i < k->count; i++) {
        const struct keeper *one = k->all[i];
        if (one->life == WORKS && one->busy && one->asked_ns + answer_ns < due)
            due = one->asked_ns + answer_ns + LOOK_NS;
    }
    return due;
}
