/* SPDX-License-Identifier: MIT
 *
 * thread_records.c - see thread_records.h.
 */
#include "scan/thread_records.h"

#include <stdlib.h>
#include <string.h>
#include "core/own_heap.h"
#include "sdb_atomic.h"

struct sdb_scan *
sdb_thread_memory(struct sdb_scanner *sc, struct sdb_slot *slot)
{
    struct sdb_scan *scan = (struct sdb_scan *)(uintptr_t)slot->scan;
    if (!scan) {
        scan = sdb_own_calloc(1, sizeof *scan);
        if (!scan) return NULL;
        slot->scan = (uint64_t)(uintptr_t)scan;
    }
    uint64_t serial = sdb_load_relaxed(&slot->serial);
    if (scan->serial == serial) return scan;
    /* a new thread in an old slot: only the buffer stays */
    struct sdb_frame *frames = scan->frames;
    uint32_t capacity = scan->capacity;
    *scan = (struct sdb_scan){.frames = frames, .capacity = capacity, .serial = serial};
    scan->node_chunk = scan->thread_chunk = scan->sample_chunk = UINT64_MAX;
    scan->checked_ns = sdb_load_relaxed(&slot->birth_ns);
    if (!(sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN)) sdb_count(sc, SDB_C_THREADS_SEEN, 1);
    sc->asks.soon = true;
    return scan;
}

void
sdb_thread_write(struct sdb_scanner *sc, struct sdb_slot *slot, struct sdb_scan *scan)
{
    char text[8 * SDB_NAME_WORDS];
    uint64_t version;
    int bytes = sdb_thread_get_name(slot, text, &version);
    uint64_t flags = sdb_load_relaxed(&slot->flags);
    if (bytes < 0 && (flags & SDB_THREAD_MAIN)) {
        memcpy(text, "main", 4);
        bytes = 4;
    }
    struct sdb_thread_record record = {
        .slot = (uint32_t)slot->index,
        .tid = (uint32_t)sdb_load_relaxed(&slot->tid),
        .flags = (uint32_t)flags,
        .serial = scan->serial,
        .birth_ns = sdb_load_relaxed(&slot->birth_ns),
        .name = bytes >= 0 ? text : NULL,
        .name_bytes = bytes >= 0 ? (size_t)bytes : 0,
    };
    sdb_ring_writer_reserve(sc->writer, 512);
    sdb_ring_writer_thread(sc->writer, &record);
    scan->thread_chunk = sdb_ring_writer_chunk(sc->writer);
    scan->name = version;
}

void
sdb_thread_written(struct sdb_scanner *sc, struct sdb_slot *slot, uint64_t serial)
{
    uint64_t life = slot ? sdb_load_acquire(&slot->life) : SDB_SLOT_FREE;
    if (life != SDB_SLOT_LIVE && life != SDB_SLOT_DEAD) return;
    struct sdb_scan *scan = sdb_thread_memory(sc, slot);
    if (!scan || scan->serial != serial || sdb_load_relaxed(&slot->flags) & SDB_THREAD_OWN) return;
    if (scan->thread_chunk != sdb_ring_writer_chunk(sc->writer)) sdb_thread_write(sc, slot, scan);
}

uint64_t
sdb_thread_name_version(const struct sdb_slot *slot)
{
    const struct sdb_slot_name *name =
        (const struct sdb_slot_name *)(uintptr_t)sdb_load_acquire(&slot->name);
    return name ? sdb_load_acquire(&name->seq) : 0;
}
