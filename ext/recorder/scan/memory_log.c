/* SPDX-License-Identifier: MIT
 *
 * memory_log.c - the memory time line in the log, and what is written once more while the limit comes near: after an
 * OOM kill the file is all there is (design: bpf/README.md, layer 0).
 *
 * Runs on: scanner thread, no GVL
 */
#include "scan/memory_log.h"

#include <string.h>
#include "core/memory_probe.h"
#include "sdb_atomic.h"
#include "varint.h"

enum {
    EVERY_NS = 50000000,      /* between two looks */
    NEAR_EVERY_NS = 10000000, /* above the first level */
    REOPEN_NS = 2000000000,   /* limits can be changed, processes moved to another cgroup */
    CHANGE_BYTES = 65536,     /* less is no news */
    SHORT_NS = 2000000000,    /* "will reach the limit within" */
};

static const uint32_t levels[] = {80, 90, 95};

static void
write_memory(struct sdb_scanner *sc, const struct sdb_memory *m)
{
    uint8_t bytes[40], *end = bytes;
    end = sdb_varint_put(end, sc->tick.now_ns - sc->start_ns);
    end = sdb_varint_put(end, m->rss);
    end = sdb_varint_put(end, m->cgroup_usage);
    end = sdb_varint_put(end, m->cgroup_limit);
    sdb_ring_writer_sized(sc->writer, SDB_R_MEMORY, bytes, (size_t)(end - bytes));
}

static uint8_t *
put_figure(struct sdb_scanner *sc, uint8_t *end, const char *name, uint64_t value)
{
    end = sdb_varint_put(end, sdb_ring_writer_string(sc->writer, name, strlen(name)));
    return sdb_varint_put(end, value);
}

static void
write_pre_oom(struct sdb_scanner *sc, uint32_t level)
{
    struct sdb_process_memory p;
    struct sdb_gc_figures gc;
    sc->host.read_process_memory(&p);
    sdb_mailbox_gc_figures(sc->mailbox, &gc);
    const struct {
        const char *name;
        uint64_t value;
    } figures[] = {
        {"rss_anon_bytes", p.rss_anon},
        {"rss_file_bytes", p.rss_file},
        {"rss_shmem_bytes", p.rss_shmem},
        {"swap_bytes", p.swap},
        {"peak_rss_bytes", p.peak_rss},
        {"native_threads", p.threads},
        {"gc_count", gc.count},
        {"gc_heap_live_slots", gc.heap_live_slots},
        {"gc_malloc_increase_bytes", gc.malloc_increase_bytes},
        {"gc_oldmalloc_increase_bytes", gc.oldmalloc_increase_bytes},
    };
    const size_t n = sizeof figures / sizeof *figures;
    sdb_ring_writer_reserve(sc->writer, 4096);
    uint8_t bytes[512], *end = bytes;
    end = sdb_varint_put(end, sc->tick.now_ns - sc->start_ns);
    end = sdb_varint_put(end, level);
    end = sdb_varint_put(end, n);
    for (size_t i = 0; i < n; i++) end = put_figure(sc, end, figures[i].name, figures[i].value);
    sdb_ring_writer_sized(sc->writer, SDB_R_PRE_OOM, bytes, (size_t)(end - bytes));
}

/* True when usage grows so fast that the limit is less than two seconds away. */
static bool
soon_full(struct sdb_scanner *sc, const struct sdb_memory *m, uint64_t passed_ns)
{
    if (!m->cgroup_limit || !passed_ns || m->cgroup_usage <= sc->memory.last.cgroup_usage)
        return false;
    double per_ns = (double)(m->cgroup_usage - sc->memory.last.cgroup_usage) / (double)passed_ns;
    double left =
        m->cgroup_limit > m->cgroup_usage ? (double)(m->cgroup_limit - m->cgroup_usage) : 0;
    /* below half of the limit it is a process that starts, not one that dies */
    return m->cgroup_usage * 2 > m->cgroup_limit && left / per_ns < SHORT_NS;
}

void
sdb_memory_log(struct sdb_scanner *sc)
{
    uint64_t passed = sc->tick.now_ns - sc->memory.looked_ns;
    if (passed < (uint64_t)(sc->memory.short_of ? NEAR_EVERY_NS : EVERY_NS)) return;
    if (!sc->memory.probe.open || sc->tick.now_ns - sc->memory.opened_ns >= REOPEN_NS) {
        sdb_memory_probe_close(&sc->memory.probe);
        sdb_memory_probe_open(&sc->memory.probe);
        sc->memory.opened_ns = sc->tick.now_ns;
    }
    struct sdb_memory m;
    sc->host.read_memory(&sc->memory.probe, &m);
    uint64_t moved =
        (m.rss > sc->memory.last.rss ? m.rss - sc->memory.last.rss : sc->memory.last.rss - m.rss) +
        (m.cgroup_usage > sc->memory.last.cgroup_usage
             ? m.cgroup_usage - sc->memory.last.cgroup_usage
             : sc->memory.last.cgroup_usage - m.cgroup_usage);
    bool soon = soon_full(sc, &m, passed);
    if (moved >= CHANGE_BYTES || sc->memory.chunk != sdb_ring_writer_chunk(sc->writer))
        write_memory(sc, &m);
    sc->memory.chunk = sdb_ring_writer_chunk(sc->writer);
    uint32_t percent = m.cgroup_limit ? (uint32_t)(m.cgroup_usage * 100 / m.cgroup_limit) : 0,
             level = 0;
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        if (percent >= levels[i]) level = levels[i];
    }
    bool was_short = sc->memory.short_of;
    sc->memory.short_of = level > 0 || soon;
    if (level > sc->memory.level || (soon && !was_short)) {
        write_pre_oom(sc, percent);
        sdb_scanner_ask(
            sc, SDB_ASK_WORK); /* name what is pending now, and read GC.stat for the next record */
    }
    /* falling well below re-arms the level */
    sc->memory.level = level || percent + 5 >= levels[0]
                           ? (level > sc->memory.level ? level : sc->memory.level)
                           : 0;
    sc->memory.last = m;
    sc->memory.looked_ns = sc->tick.now_ns;
}
