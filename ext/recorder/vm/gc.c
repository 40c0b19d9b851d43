/* SPDX-License-Identifier: MIT
 *
 * gc.c - see gc.h; why marking is enough: PROTOCOL.md, "GC". How long a GC takes: gc_events.c.
 */
#include "vm/gc.h"

#include <stdlib.h>
#include "sdb_atomic.h"

struct pin {
    VALUE iseq, ment;        /* 0, 0: free, or a code that failed its proof */
    struct sdb_named *named; /* borrowed from the code table; NULL: free */
    uint32_t next_free;
};

static struct {
    /* immutable after install */
    struct sdb_thread_table *threads;
    VALUE young_object, pins_object;
    /* guarded by the GVL */
    struct sdb_code_table *codes;
    VALUE symbolizer;
    void (*on_mark)(void);
    struct pin *pins;
    uint32_t pin_count, pin_capacity, free_pin;
    /* shared: atomic */
    uint64_t epoch;
} gc = {.free_pin = UINT32_MAX};

static void
mark_maybe(uint64_t value)
{
    if (value) rb_gc_mark_maybe((VALUE)value); /* pins, and tolerates what is no object (gc.c) */
}

/* Runs on: GC. Called in every minor GC and again at the end of incremental marking, because the object is
 * not write-barrier protected and its data pointer is not NULL. */
static void
mark_young(void *unused)
{
    (void)unused;
    /* seq_cst: pairs with walk.c:publish. Either we see its young_tail, or it sees our epoch. */
    __atomic_fetch_add(&gc.epoch, 1, __ATOMIC_SEQ_CST);
    if (gc.codes) sdb_code_table_mark(gc.codes, mark_maybe);
    struct sdb_slot *slot;
    sdb_thread_each (slot, gc.threads) {
        if (sdb_load_acquire(&slot->life) != SDB_SLOT_FREE) {
            mark_maybe(sdb_load_relaxed(&slot->thread_value));
            mark_maybe(sdb_load_relaxed(&slot->context));
        }
    }
    if (!NIL_P(gc.symbolizer)) mark_maybe((uint64_t)gc.symbolizer);
    if (gc.on_mark) gc.on_mark();
    __atomic_fetch_add(&gc.epoch, 1, __ATOMIC_SEQ_CST);
}

static void
mark_pins(void *unused)
{
    (void)unused;
    for (uint32_t i = 0; i < gc.pin_count; i++) {
        /* the symbolizer may be long in coming, and this GC shall free what the app let go */
        if (gc.codes && sdb_code_table_pin_is_idle(gc.codes, i)) continue;
        if (gc.pins[i].iseq)
            rb_gc_mark(gc.pins[i].iseq); /* rb_gc_mark pins: compaction leaves it */
        if (gc.pins[i].ment) rb_gc_mark(gc.pins[i].ment);
    }
}

static size_t
pins_size(const void *unused)
{
    (void)unused;
    return gc.pin_capacity * sizeof *gc.pins;
}

static const rb_data_type_t young_type = {
    .wrap_struct_name = "sdb young codes",
    .function = {.dmark = mark_young},
};

static const rb_data_type_t pins_type = {
    .wrap_struct_name = "sdb pinned codes",
    .function = {.dmark = mark_pins, .dsize = pins_size},
    .flags = RUBY_TYPED_WB_PROTECTED,
};

void
sdb_gc_install(struct sdb_thread_table *threads)
{
    if (gc.young_object) return;
    gc.threads = threads;
    gc.symbolizer = Qnil;
    rb_gc_register_address(&gc.young_object);
    rb_gc_register_address(&gc.pins_object);
    /* the data pointer must not be NULL, else dmark is never called */
    gc.pins_object = TypedData_Wrap_Struct(0, &pins_type, &gc);
    gc.young_object = TypedData_Wrap_Struct(0, &young_type, &gc);
}

void
sdb_gc_set_codes(struct sdb_code_table *codes)
{
    gc.codes = codes;
}

void
sdb_gc_set_symbolizer(VALUE thread)
{
    gc.symbolizer = thread;
}

void
sdb_gc_on_mark(void (*f)(void))
{
    gc.on_mark = f;
}

const uint64_t *
sdb_gc_epoch(void)
{
    return &gc.epoch;
}

uint32_t
sdb_gc_pin(VALUE iseq, VALUE ment, struct sdb_named *named)
{
    uint32_t i = gc.free_pin;
    if (i != UINT32_MAX) {
        gc.free_pin = gc.pins[i].next_free;
    } else {
        if (gc.pin_count == gc.pin_capacity) {
            uint32_t capacity = gc.pin_capacity ? gc.pin_capacity * 2 : 1024;
            /* plain realloc: xrealloc may run a GC, and mark_pins must not meet a half-grown array */
            struct pin *bigger = realloc(gc.pins, capacity * sizeof *bigger);
            if (!bigger) return UINT32_MAX;
            gc.pins = bigger;
            gc.pin_capacity = capacity;
        }
        i = gc.pin_count++;
    }
    gc.pins[i] = (struct pin){iseq, ment, named, UINT32_MAX};
    if (iseq) RB_OBJ_WRITTEN(gc.pins_object, Qundef, iseq);
    if (ment) RB_OBJ_WRITTEN(gc.pins_object, Qundef, ment);
    return i;
}

void
sdb_gc_unpin(uint32_t pin)
{
    if (pin >= gc.pin_count) return;
    gc.pins[pin] = (struct pin){.next_free = gc.free_pin};
    gc.free_pin = pin;
}

void
sdb_gc_unpin_all(void)
{
    gc.pin_count = 0;
    gc.free_pin = UINT32_MAX;
}

void
sdb_gc_free_pinned(void)
{
    for (uint32_t i = 0; i < gc.pin_count; i++) free(gc.pins[i].named);
    sdb_gc_unpin_all();
}
