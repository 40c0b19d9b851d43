/* SPDX-License-Identifier: MIT
 *
 * oomd_capture.c - see oomd_capture.h.
 *
 * Runs on: daemon, dump writer
 */
#include "oomd_capture.h"

#include <stdlib.h>
#include <string.h>
#include "dump_format.h"

bool
oomd_bytes_add(struct oomd_bytes *b, const void *bytes, size_t n)
{
    if (n > b->room - b->n) {
        size_t room = b->room ? b->room : 4096;
        while (room - b->n < n) room *= 2;
        uint8_t *more = realloc(b->at, room);
        if (more == NULL) return false;
        b->at = more;
        b->room = room;
    }
    if (n) memcpy(b->at + b->n, bytes, n);
    b->n += n;
    return true;
}

bool
oomd_capture_add(struct oomd_capture *c, const struct sdb_oom_data_header *head,
                 const uint8_t *bytes)
{
    static const uint8_t zero[8];
    size_t before = c->events.n;
    if (oomd_bytes_add(&c->events, head, sizeof *head) &&
        oomd_bytes_add(&c->events, bytes, head->bytes) &&
        oomd_bytes_add(&c->events, zero, (8 - head->bytes % 8) % 8))
        return true;
    c->events.n = before;
    return false;
}

void
oomd_capture_free(struct oomd_capture *c)
{
    free(c->events.at);
    memset(c, 0, sizeof *c);
}

/* The event at *at, which then moves on; NULL at the end. */
static const struct sdb_oom_data_header *
next_event(const struct oomd_capture *c, size_t *at)
{
    if (*at + sizeof(struct sdb_oom_data_header) > c->events.n) return NULL;
    const struct sdb_oom_data_header *head = (const void *)(c->events.at + *at);
    *at += sizeof *head + (head->bytes + 7u) / 8 * 8;
    return *at <= c->events.n ? head : NULL;
}

static const uint8_t *
payload(const struct sdb_oom_data_header *head)
{
    return (const uint8_t *)(head + 1);
}

void
oomd_capture_look(const struct oomd_capture *c, struct oomd_capture_view *view)
{
    const struct sdb_oom_data_header *head;
    memset(view, 0, sizeof *view);
    for (size_t at = 0; (head = next_event(c, &at)) != NULL;) {
        if (head->type == SDB_OOM_D_TABLE && head->bytes >= sizeof *view->table)
            view->table = (const void *)payload(head);
        if (head->type == SDB_OOM_D_COUNTERS && head->read_errors == 0) {
            view->counters = payload(head);
            view->counters_bytes = head->bytes;
        }
    }
}

static uint64_t
word_at(const uint8_t *bytes, size_t n, uint64_t off)
{
    uint64_t word = 0;
    if (n >= sizeof word && off <= n - sizeof word) memcpy(&word, bytes + off, sizeof word);
    return word;
}

static bool
add_thread(struct oomd_bytes *out, const struct sdb_live_table *table,
           const struct sdb_oom_data_header *thread, const struct sdb_oom_data_header *frames,
           const struct sdb_oom_data_header *envs)
{
    const struct sdb_oom_thread *t = (const void *)payload(thread);
    uint64_t cfp_bytes = table->cfp_bytes;
    size_t n = frames ? frames->bytes / cfp_bytes : 0;
    struct sdb_dump_thread d = {
        .bytes = (uint32_t)(sizeof d + n * sizeof(struct sdb_dump_frame)),
        .slot = thread->thread,
        .frame_count = (uint32_t)n,
        .frame_total = t->frame_bytes / cfp_bytes,
        .serial = t->slot.serial,
        .tid = t->slot.tid,
        .state = t->slot.state,
        .since_monotonic_ns = t->slot.since_ns,
        .wait_ns = t->slot.wait_ns,
        .blocked_ns = t->slot.blocked_ns,
        .gc_ns = t->slot.gc_ns,
        .span_id = t->slot.span_id,
        .thread_flags = t->slot.flags,
        .birth_monotonic_ns = t->slot.birth_ns,
    };
    if (d.frame_total > n) d.flags |= SDB_DUMP_THREAD_TRUNCATED;
    if (t->frame_bytes == 0) d.flags |= SDB_DUMP_THREAD_NO_STACK;
    if (frames && frames->read_errors) d.flags |= SDB_DUMP_THREAD_READ_ERROR;
    if (t->slot.seq & 1) d.flags |= SDB_DUMP_THREAD_TORN_STATE;
    if (!oomd_bytes_add(out, &d, sizeof d)) return false;

    for (size_t i = 0; i < n; i++) {
        const uint8_t *cfp = payload(frames) + i * cfp_bytes;
        struct sdb_dump_frame f = {
            .iseq = word_at(cfp, cfp_bytes, table->cfp_iseq),
            .pc = word_at(cfp, cfp_bytes, table->cfp_pc),
        };
        if (envs) {
            f.method = word_at(payload(envs), envs->bytes, 16 * i);
            f.env = word_at(payload(envs), envs->bytes, 16 * i + 8);
        }
        if (!oomd_bytes_add(out, &f, sizeof f)) return false;
    }
    return true;
}

long
oomd_capture_threads(const struct oomd_capture *c, struct oomd_bytes *out)
{
    struct oomd_capture_view view;
    const struct sdb_oom_data_header *head;
    long count = 0;
    oomd_capture_look(c, &view);
    if (view.table == NULL || view.table->cfp_bytes < 32 || view.table->cfp_bytes > 256) return 0;

    for (size_t at = 0; (head = next_event(c, &at)) != NULL;) {
        if (head->type != SDB_OOM_D_THREAD || head->bytes < sizeof(struct sdb_oom_thread)) continue;
        /* its frames and envs come right behind, unless they were lost */
        const struct sdb_oom_data_header *frames = NULL, *envs = NULL, *next;
        for (size_t ahead = at;
             (next = next_event(c, &ahead)) != NULL && next->thread == head->thread;) {
            if (next->type == SDB_OOM_D_FRAMES) frames = next;
            else if (next->type == SDB_OOM_D_ENVS) envs = next;
            else break;
        }
        if (!add_thread(out, view.table, head, frames, envs)) return -1;
        count++;
    }
    return count;
}

bool
oomd_capture_pending(const struct oomd_capture *c, struct oomd_bytes *out, uint64_t *ring_off)
{
    const struct sdb_oom_data_header *head;
    for (size_t at = 0; (head = next_event(c, &at)) != NULL;) {
        if (head->type != SDB_OOM_D_PENDING) continue;
        if (out->n == 0) *ring_off = head->offset;
        if (head->read_errors || head->offset != *ring_off + out->n) return false;
        if (!oomd_bytes_add(out, payload(head), head->bytes)) return false;
    }
    return out->n > 0;
}
