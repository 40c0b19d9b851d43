/* SPDX-License-Identifier: MIT
 *
 * context.c - see context.h: the object, its blocks and its times. Which fiber is on: fiber_switch.c.
 */
#include "spans/context.h"

#include <stdlib.h>
#include <string.h>
#include "core/clock.h"
#include "live_table.h"
#include "sdb_atomic.h"
#include "scan/event_feed.h"
#include "spans/thread_times.h"

static uint64_t generation = 1, started = 1; /* guarded by the GVL; `started`: not by a fork */

enum { TOLD_KEPT_BYTES = 512 };

/* ---- the object ---- */

static void
context_mark(void *data)
{
    const struct sdb_context *c = data;
    rb_gc_mark(c->self); /* it stays where it is: slots hold the address */
    rb_gc_mark(c->tags);
    rb_gc_mark(c->set);
    rb_gc_mark(c->encoded);
    rb_gc_mark(c->parent);
    for (uint32_t i = 0; i < c->depth; i++) {
        const struct sdb_block *b = &c->blocks[i];
        const VALUE values[] = {b->tags_before, b->set_before, b->encoded_before, b->name,
                                b->request,     b->trace,      b->late_trace,     b->added};
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) rb_gc_mark(values[k]);
    }
}

/* Its fiber was collected: what is open there never ends. */
static void
context_free(void *data)
{
    struct sdb_context *c = data;
    for (uint32_t i = 0; i < c->depth; i++) {
        const struct sdb_block *b = &c->blocks[i];
        if (!b->is_span || b->silent || b->generation != generation) continue;
        sdb_events_abandon(b->token, sdb_monotonic_ns());
    }
    for (uint32_t i = 0; i < c->capacity; i++) free(c->blocks[i].told);
    xfree(c->blocks);
    xfree(c);
}

static size_t
context_size(const void *data)
{
    const struct sdb_context *c = data;
    size_t bytes = sizeof *c + c->capacity * sizeof *c->blocks;
    for (uint32_t i = 0; i < c->capacity; i++) bytes += c->blocks[i].told_room;
    return bytes;
}

static const rb_data_type_t context_type = {
    .wrap_struct_name = "sdb context",
    .function = {.dmark = context_mark, .dfree = context_free, .dsize = context_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

struct sdb_context *
sdb_context_of(VALUE value)
{
    return rb_check_typeddata(value, &context_type);
}

struct sdb_context *
sdb_context_new(void)
{
    struct sdb_context *c;
    VALUE self = TypedData_Make_Struct(0, struct sdb_context, &context_type, c);
    c->self = self;
    c->generation = generation;
    c->tags = c->set = c->encoded = c->parent = Qnil;
    return c;
}

void
sdb_contexts_forget(bool forked)
{
    generation++;
    if (!forked) started = generation;
}

bool
sdb_contexts_goes_on(uint64_t of)
{
    return of >= started && of <= generation;
}

uint64_t
sdb_contexts_generation(void)
{
    return generation;
}

/* ---- blocks ---- */

struct sdb_block *
sdb_context_block(struct sdb_context *c, uint64_t token)
{
    for (uint32_t i = c->depth; i-- > 0;) {
        if (c->blocks[i].token == token) return &c->blocks[i];
    }
    return NULL;
}

struct sdb_block *
sdb_context_push(struct sdb_context *c, uint64_t token)
{
    if (c->depth == c->capacity) {
        uint32_t capacity = c->capacity ? 2 * c->capacity : 8;
        REALLOC_N(c->blocks, struct sdb_block, capacity);
        MEMZERO(c->blocks + c->capacity, struct sdb_block, capacity - c->capacity);
        c->capacity = capacity;
    }
    struct sdb_block *b = &c->blocks[c->depth];
    *b = (struct sdb_block){
        .token = token, .generation = generation, .told = b->told, .told_room = b->told_room};
    b->tags_before = c->tags;
    b->set_before = c->set;
    b->encoded_before = c->encoded;
    b->set_token_before = c->set_token;
    b->name = b->request = b->trace = b->late_trace = b->added = Qnil;
    c->depth++;
    return b;
}

void
sdb_context_keep_told(struct sdb_block *b, const uint8_t *payload, size_t bytes)
{
    b->told_bytes = 0;
    if (b->told_room < bytes) {
        size_t room = (bytes + 127) & ~(size_t)127;
        uint8_t *bigger = realloc(b->told, room);
        if (!bigger) return;
        b->told = bigger;
        b->told_room = (uint32_t)room;
    }
    memcpy(b->told, payload, bytes);
    b->told_bytes = (uint32_t)bytes;
}

void
sdb_context_remove(struct sdb_context *c, uint64_t token)
{
    struct sdb_block *b = sdb_context_block(c, token);
    if (!b) return;
    if (b->told_room > TOLD_KEPT_BYTES) {
        free(b->told);
        b->told = NULL;
        b->told_room = 0;
    }
    struct sdb_block gone = *b;
    uint32_t i = (uint32_t)(b - c->blocks);
    if (i + 1 == c->depth) {
        c->tags = b->tags_before;
        c->set = b->set_before;
        c->encoded = b->encoded_before;
        c->set_token = b->set_token_before;
    } else { /* ended out of order: those behind it restore what it would have */
        struct sdb_block *next = b + 1;
        next->tags_before = b->tags_before;
        next->set_before = b->set_before;
        next->encoded_before = b->encoded_before;
        next->set_token_before = b->set_token_before;
        MEMMOVE(b, next, struct sdb_block, c->depth - i - 1);
    }
    c->depth--;
    c->blocks[c->depth] =
        (struct sdb_block){.told = gone.told, .told_room = gone.told_room}; /* the buffer, again */
}

uint64_t
sdb_context_own_span(const struct sdb_context *c, uint64_t upto, bool silent)
{
    for (uint32_t i = c->depth; i-- > 0;) {
        const struct sdb_block *b = &c->blocks[i];
        if (b->is_span && (silent || !b->silent) && b->generation == generation && b->token <= upto)
            return b->token;
    }
    return 0;
}

struct sdb_context *
sdb_context_parent(const struct sdb_context *c)
{
    return NIL_P(c->parent) ? NULL : RTYPEDDATA_DATA(c->parent);
}

uint64_t
sdb_context_span(struct sdb_context *c, VALUE *owner)
{
    bool silent = owner != NULL;
    uint64_t span = sdb_context_own_span(c, UINT64_MAX, silent);
    const struct sdb_context *from = c;
    for (int i = 0; !span && i < SDB_CONTEXT_CHAIN_MAX && sdb_context_parent(from); i++) {
        span = sdb_context_own_span(sdb_context_parent(from), from->parent_token, silent);
        from = sdb_context_parent(from);
    }
    if (owner) *owner = from->self;
    return span;
}

/* ---- times ---- */

void
sdb_context_turn_on(struct sdb_context *c, const struct sdb_times *thread, uint64_t now_ns)
{
    if (c->on) return;
    c->on = true;
    c->base = *thread;
    if (c->off_since_ns && now_ns > c->off_since_ns) c->sum.blocked_ns += now_ns - c->off_since_ns;
}

void
sdb_context_turn_off(struct sdb_context *c, const struct sdb_times *thread, uint64_t now_ns)
{
    if (!c->on) return;
    c->on = false;
    sdb_times_add_since(&c->sum, thread, &c->base);
    c->off_since_ns = now_ns;
}

struct sdb_times
sdb_context_times(const struct sdb_context *c, struct sdb_slot *slot, uint64_t now_ns)
{
    struct sdb_times sum = c->sum;
    if (c->on) {
        bool same = c->slot == slot && c->serial == sdb_load_relaxed(&slot->serial);
        struct sdb_times thread =
            same ? sdb_thread_times(slot, now_ns) : sdb_thread_times_of(c->slot, c->serial);
        sdb_times_add_since(&sum, &thread, &c->base);
    } else if (c->off_since_ns && now_ns > c->off_since_ns) {
        sum.blocked_ns += now_ns - c->off_since_ns;
    }
    return sum;
}
