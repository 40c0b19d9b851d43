/* SPDX-License-Identifier: MIT
 *
 * oomd_dump.c - see oomd_dump.h.
 *
 * Runs on: dump writer
 */
#include "oomd_dump.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "crc32c.h"
#include "dump_format.h"
#include "error.h"
#include "oomd_describe.h"
#include "oomd_ring.h"

enum { CODE_USER = 0, CODE_KERNEL = 128 };

struct writer {
    int fd, err;
    uint64_t end; /* where the next section goes */
    struct sdb_dump_header header;
};

const char *
oomd_cause(const struct oomd_victim *v)
{
    if (!v->armed) return "unknown";
    return v->facts.flags & SDB_OOM_F_CONFIRMED ? "oom" : "sigkill";
}

bool
oomd_complete(const struct oomd_victim *v)
{
    uint32_t bad = SDB_OOM_F_NO_TABLE | SDB_OOM_F_TABLE_UNREADABLE | SDB_OOM_F_LAYOUT_UNKNOWN;
    return v->finished && v->captured && !(v->facts.flags & bad) && v->facts.read_errors == 0 &&
           v->facts.truncated_threads == 0 && v->facts.events_lost == 0 && v->dropped_events == 0;
}

static const char *
kill_source(const struct sdb_oom_victim *f)
{
    if (f->flags & SDB_OOM_F_CONFIRMED) return "kernel_oom";
    if (f->si_code == CODE_KERNEL) return "kernel";
    return f->si_code == CODE_USER || f->si_code < 0 ? "user" : "other";
}

static void
fact(struct oomd_bytes *out, const char *key, const char *format, ...)
{
    char line[OOMD_CMDLINE_BYTES + 256];
    int head = snprintf(line, sizeof line, "%s=", key);
    va_list args;
    va_start(args, format);
    vsnprintf(line + head, sizeof line - (size_t)head, format, args);
    va_end(args);
    oomd_bytes_add(out, line, strlen(line) + 1);
}

static void
number(struct oomd_bytes *out, const char *key, uint64_t n)
{
    fact(out, key, "%llu", (unsigned long long)n);
}

static void
flag(struct oomd_bytes *out, const char *key, uint64_t n)
{
    char name[64];
    snprintf(name, sizeof name, "flag.%s", key);
    number(out, name, n);
}

static void
process_facts(struct oomd_bytes *out, const struct oomd_victim *v, const struct oomd_description *d)
{
    const struct oomd_process *p = v->process;
    const struct sdb_oom_victim *f = &v->facts;
    fact(out, "cause", "%s", oomd_cause(v));
    fact(out, "kill_source", "%s", kill_source(f));
    fact(out, "service", "%s", p->service);
    number(out, "pid", p->tgid);
    number(out, "uid", p->uid);
    number(out, "process_start_ticks", p->start_ticks);
    fact(out, "exe", "%s", d->exe);
    fact(out, "cmdline", "%s", d->cmdline);
    fact(out, "cgroup", "%s", d->cgroup);
    number(out, "killed_realtime_ns", v->armed_realtime_ns);
    number(out, "killed_monotonic_ns", f->armed_ns);
    number(out, "captured_monotonic_ns", f->captured_ns);
    number(out, "ended_monotonic_ns", f->finished_ns);
    number(out, "target_tid", f->target_tid);
    fact(out, "si_code", "%d", f->si_code);
    number(out, "sender_pid", f->sender_tgid);
    number(out, "sender_tid", f->sender_tid);
    number(out, "sender_uid", f->sender_uid);
    fact(out, "sender_comm", "%.*s", SDB_OOM_COMM_BYTES, f->sender_comm);
}

/* The kernel says "no limit" by the largest number of pages that there can be. */
static uint64_t
page_bytes(uint64_t pages)
{
    return pages >= 1ull << 48 ? 0 : pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void
memory_facts(struct oomd_bytes *out, const struct oomd_victim *v)
{
    const struct sdb_oom_victim *f = &v->facts;
    number(out, "total_vm_bytes", f->total_vm_kb << 10);
    number(out, "anon_rss_bytes", f->anon_rss_kb << 10);
    number(out, "file_rss_bytes", f->file_rss_kb << 10);
    number(out, "shmem_rss_bytes", f->shmem_rss_kb << 10);
    number(out, "pgtables_bytes", f->pgtables_kb << 10);
    fact(out, "oom_score_adj", "%d", f->oom_score_adj);
    number(out, "cgroup_limit_bytes", page_bytes(f->cgroup_limit_pages));
    number(out, "cgroup_peak_bytes", page_bytes(f->cgroup_peak_pages));
    number(out, "cgroup_usage_bytes", page_bytes(f->cgroup_usage_pages));
    number(out, "capture_ns", f->capture_cost_ns);
    number(out, "capture_bytes", f->bytes);
    number(out, "capture_threads", f->threads);
}

static void
flag_facts(struct oomd_bytes *out, const struct oomd_victim *v, const struct oomd_ring_copy *ring)
{
    const struct sdb_oom_victim *f = &v->facts;
    flag(out, "complete", oomd_complete(v) && ring->is_ring && ring->missing_bytes == 0);
    flag(out, "oom_confirmed", (f->flags & SDB_OOM_F_CONFIRMED) != 0);
    flag(out, "truncated_bytes", f->truncated_bytes);
    flag(out, "truncated_threads", f->truncated_threads);
    flag(out, "read_errors", f->read_errors);
    flag(out, "unarmed", (f->flags & SDB_OOM_F_NO_TABLE) != 0 || !v->armed);
    flag(out, "captured_at_exit", (f->flags & SDB_OOM_F_AT_EXIT) != 0);
    flag(out, "not_ended", !v->finished && !v->overflow);
    flag(out, "slot_overflow", v->overflow);
    flag(out, "events_lost", f->events_lost + v->dropped_events);
    flag(out, "head_stale", (f->flags & SDB_OOM_F_HEAD_STALE) != 0);
    flag(out, "table_unreadable", (f->flags & SDB_OOM_F_TABLE_UNREADABLE) != 0);
    flag(out, "layout_unknown",
         (f->flags & SDB_OOM_F_LAYOUT_UNKNOWN) != 0 || !v->process->table_version_known);
    flag(out, "ring_evicted", ring->evicted_bytes);
    flag(out, "ring_missing", ring->missing_bytes);
    flag(out, "not_a_ring", !ring->is_ring);
    flag(out, "merged_bytes", ring->merged_bytes);
}

static struct sdb_dump_section *
add_section(struct writer *w, uint32_t type, uint64_t bytes)
{
    struct sdb_dump_section *s = &w->header.sections[w->header.section_count++];
    s->type = type;
    s->off = w->end;
    s->bytes = bytes;
    w->end = (w->end + bytes + 7) / 8 * 8;
    return s;
}

static void
write_section(struct writer *w, uint32_t type, const void *bytes, size_t n)
{
    if (w->err || n == 0) return;
    struct sdb_dump_section *s = add_section(w, type, n);
    s->crc = sdb_crc32c(0, bytes, n);
    for (size_t done = 0; done < n;) {
        ssize_t got =
            pwrite(w->fd, (const uint8_t *)bytes + done, n - done, (off_t)(s->off + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            w->err =
                errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? SDB_ERR_NOSPC : SDB_ERR_IO;
            return;
        }
        done += (size_t)got;
    }
}

static void
write_ring(struct writer *w, const struct oomd_victim *v, const struct oomd_dump_ring *from,
           struct oomd_ring_copy *copy)
{
    struct oomd_bytes pending = {0};
    uint64_t off = 0;
    if (w->err || from->fd < 0) return;
    w->end = (w->end + SDB_PAGE_BYTES - 1) / SDB_PAGE_BYTES * SDB_PAGE_BYTES;
    struct sdb_dump_section *ring = add_section(w, SDB_DUMP_RING, from->bytes);
    uint64_t at = ring->off;
    w->err = oomd_ring_copy(from->fd, from->bytes, from->pages, w->fd, at, from->limit, copy);
    if (!w->err && !(v->facts.flags & SDB_OOM_F_HEAD_STALE) &&
        oomd_capture_pending(&v->capture, &pending, &off)) {
        w->err = oomd_ring_merge(w->fd, at, off, &pending, copy);
        struct oomd_bytes section = {0};
        if (oomd_bytes_add(&section, &off, sizeof off) &&
            oomd_bytes_add(&section, pending.at, pending.n))
            write_section(w, SDB_DUMP_PENDING, section.at, section.n);
        free(section.at);
    }
    free(pending.at);
}

int
oomd_dump_write(int fd, const struct oomd_victim *v, const struct oomd_dump_ring *from)
{
    static struct oomd_description d;
    struct writer w = {.fd = fd, .end = SDB_DUMP_HEADER_BYTES};
    struct oomd_bytes threads = {0}, facts = {0};
    struct oomd_ring_copy ring = {0};
    struct oomd_capture_view view;
    struct timespec now;

    oomd_describe_unpack(&d, v->process->description, v->process->description_bytes);
    if (oomd_capture_threads(&v->capture, &threads) < 0) w.err = SDB_ERR_NOMEM;
    oomd_capture_look(&v->capture, &view);
    write_section(&w, SDB_DUMP_THREADS, threads.at, threads.n);
    write_section(&w, SDB_DUMP_COUNTERS, view.counters, view.counters_bytes);
    write_section(&w, SDB_DUMP_MAPS, d.maps, d.maps_bytes);
    write_ring(&w, v, from, &ring);
    process_facts(&facts, v, &d);
    memory_facts(&facts, v);
    flag_facts(&facts, v, &ring);
    write_section(&w, SDB_DUMP_FACTS, facts.at, facts.n);
    free(threads.at);
    free(facts.at);
    if (w.err) return w.err;

    clock_gettime(CLOCK_REALTIME, &now);
    w.header.magic = SDB_DUMP_MAGIC;
    w.header.endian_tag = SDB_DUMP_ENDIAN_TAG;
    w.header.major = SDB_DUMP_MAJOR;
    w.header.minor = SDB_DUMP_MINOR;
    w.header.file_bytes = w.end;
    w.header.created_realtime_ns = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
    w.header.crc = sdb_crc32c(0, &w.header, sizeof w.header);
    errno = ENOSPC;
    if (pwrite(fd, &w.header, sizeof w.header, 0) != sizeof w.header) return SDB_ERR_NOSPC;
    if (ftruncate(fd, (off_t)w.end) != 0 || fsync(fd) != 0)
        return errno == ENOSPC || errno == EDQUOT ? SDB_ERR_NOSPC : SDB_ERR_IO;
    return SDB_OK;
}
