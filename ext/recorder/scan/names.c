/* SPDX-License-Identifier: MIT
 *
 * names.c - see names.h.
 */
#include "scan/names.h"

#include "sdb_atomic.h"

enum {
    /* start before the table is full */
    RECYCLE_SLACK = 2048,
    AGE_EVERY_NS = 30000000,
};

/* Frames on a stack now are in use although nothing looked them up for a while. */
static void
touch_stacks(struct sdb_scanner *sc)
{
    const struct sdb_slot *slot;
    sdb_thread_each (slot, sc->threads) {
        const struct sdb_scan *scan = (const struct sdb_scan *)(uintptr_t)slot->scan;
        for (uint32_t k = 0; scan && k < scan->depth; k++) {
            if (scan->frames[k].entry) {
                sdb_code_table_entry(sc->codes, scan->frames[k].entry)->stamp = sc->tick.number;
            }
        }
    }
}

static bool
on_some_stack(const struct sdb_scanner *sc, uint32_t entry)
{
    const struct sdb_slot *slot;
    sdb_thread_each (slot, sc->threads) {
        const struct sdb_scan *scan = (const struct sdb_scan *)(uintptr_t)slot->scan;
        for (uint32_t k = 0; scan && k < scan->depth; k++) {
            if (scan->frames[k].entry == entry) return true;
        }
    }
    return false;
}

/* A code that failed its proof is not pinned, so its addresses may come to mean something real: it is kept a
 * second, so that the same mistake is not made at each tick, and then forgotten. */
void
sdb_names_drop_invalid(struct sdb_scanner *sc)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sc->names.invalid_count; i++) {
        uint32_t entry = sc->names.invalid[i];
        bool young = sdb_code_table_entry(sc->codes, entry)->in_area == SDB_CODE_UNWRITTEN;
        if (young || on_some_stack(sc, entry) || !sdb_code_table_drop(sc->codes, entry))
            sc->names.invalid[kept++] = entry;
    }
    sc->names.invalid_count = kept;
}

static void
unwrite(struct sdb_code *code, void *unused)
{
    (void)unused;
    if (code->in_area != SDB_CODE_UNWRITTEN) code->in_area = SDB_CODE_DUE;
}

static void
rewrite(struct sdb_code *code, void *data)
{
    struct sdb_scanner *sc = data;
    const struct sdb_named *named =
        (const struct sdb_named *)(uintptr_t)sdb_load_acquire(&code->named);
    if (code->in_area != SDB_CODE_DUE) return;
    /* best effort: what does not fit is named no more until the next recycling, and counted as recycled */
    if (sdb_symbol_area_append(sc->symbols, code->id, &named->symbol) == 0) {
        code->in_area = SDB_CODE_WRITTEN;
        return;
    }
    code->in_area = SDB_CODE_LEFT_OUT;
    sdb_count(sc, SDB_C_CODES_RECYCLED, 1);
}

/* False when nothing could go: all of it is on stacks. */
static bool
recycle(struct sdb_scanner *sc, bool area_full)
{
    touch_stacks(sc);
    size_t gone = sdb_code_table_evict(sc->codes, sc->tick.number);
    sdb_count(sc, SDB_C_CODES_RECYCLED, gone);
    if (!gone) return false;
    sc->names.invalid_count =
        0; /* some of them may be gone; the rest goes with a later recycling */
    if (!area_full) return true;
    sdb_symbol_area_switch(sc->symbols);
    sdb_code_table_each_named(sc->codes, unwrite, NULL);
    sdb_code_table_each_named(sc->codes, rewrite, sc);
    return true;
}

/* What no stack has shown for a while is let go: each code is pinned, and keeps its class and all its methods.
 * Named again, under another id, when it comes back. */
void
sdb_names_age(struct sdb_scanner *sc)
{
    if (sc->tick.now_ns - sc->names.aged_ns < AGE_EVERY_NS) return;
    sc->names.aged_ns = sc->tick.now_ns;
    /* in ticks: what passes while nothing runs is no age */
    const struct sdb_code_limits limits = {
        .least = sdb_code_age_limit_ns(&sc->names.age, sc->tick.now_ns) / sc->pacing.interval_ns,
        .most = SDB_CODE_AGE_MAX_MS * 1000000ull / sc->pacing.interval_ns,
    };
    if (!sdb_code_table_has_unused(sc->codes, sc->tick.number, &limits)) return;
    touch_stacks(sc);
    size_t gone = sdb_code_table_evict_unused(sc->codes, sc->tick.number, &limits);
    if (!gone) return;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sc->names.invalid_count; i++)
        if (sdb_code_table_is_live(sc->codes, sc->names.invalid[i]))
            sc->names.invalid[kept++] = sc->names.invalid[i];
    sc->names.invalid_count = kept;
    /* their addresses may come to mean another code, whose edges nobody proved */
    sdb_edge_set_clear(sc->edges);
    sc->asks.soon = true;
}

void
sdb_names_write(struct sdb_scanner *sc)
{
    uint32_t entry;
    bool in_vain = false;
    while ((entry = sdb_code_table_next_named(sc->codes))) {
        struct sdb_code *code = sdb_code_table_entry(sc->codes, entry);
        const struct sdb_named *named =
            (const struct sdb_named *)(uintptr_t)sdb_load_acquire(&code->named);
        if (named->symbol.kind == SDB_CODE_INVALID) {
            sdb_count(sc, SDB_C_LOST_UNRESOLVED, 1);
            if (sc->names.invalid_count < SDB_INVALID_MAX)
                sc->names.invalid[sc->names.invalid_count++] = entry;
        }
        sdb_count(sc, SDB_C_CODES, 1);
        code->in_area = SDB_CODE_WRITTEN;
        uint64_t used = sdb_code_age_named(&sc->names.age, &named->symbol) / sc->pacing.interval_ns;
        code->born = used < sc->tick.number ? sc->tick.number - used : 0;
        code->stamp = sc->tick.number -
                      1; /* not protected by its name: recycle() stamps what is on a stack */
        if (sdb_symbol_area_append(sc->symbols, code->id, &named->symbol) == 0) continue;
        if (in_vain || !recycle(sc, true)) {
            in_vain = true; /* to try again for each name would cost the whole area each time */
            code->in_area = SDB_CODE_LEFT_OUT;
            sdb_count(sc, SDB_C_CODES_RECYCLED, 1);
        }
    }
    if (sdb_code_table_count(sc->codes) > SDB_CODE_MAX - RECYCLE_SLACK) recycle(sc, false);
}
