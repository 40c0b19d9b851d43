/* SPDX-License-Identifier: MIT
 *
 * context.c - see context.h: the object, its blocks, and which fiber is on. Times: thread_times.h.
 */
#include "vm/context.h"

#include <ruby/debug.h>
#include "core/clock.h"
#include "live_table.h"
#include "sdb_atomic.h"
#include "vm/allocations.h"
#include "vm/events.h"
#include "vm/gvl.h"
#include "vm/recorder.h"
#include "vm/thread_times.h"

enum { CHAIN_MAX = 16 }; /* contexts inherited from one another that are followed */

static struct {
    /* guarded by the GVL */
    bool following; /* the FIBER_SWITCH hook is there; it is never removed */
    uint64_t generation;
    ID key;
} contexts = {.generation = 1};

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
        if (!b->is_span || b->silent || b->generation != contexts.generation) continue;
        sdb_events_abandon(b->token, sdb_monotonic_ns());
    }
    xfree(c->blocks);
    xfree(c);
}

static size_t
context_size(const void *data)
{
    const struct sdb_context *c = data;
    return sizeof *c + c->capacity * sizeof *c->blocks;
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

static struct sdb_context *
context_new(void)
{
    struct sdb_context *c;
    VALUE self = TypedData_Make_Struct(0, struct sdb_context, &context_type, c);
    c->self = self;
    c->generation = contexts.generation;
    c->tags = c->set = c->encoded = c->parent = Qnil;
    return c;
}

void
sdb_contexts_forget(void)
{
    contexts.generation++;
}

uint64_t
sdb_contexts_generation(void)
{
    return contexts.generation;
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
        c->capacity = capacity;
    }
    struct sdb_block *b = &c->blocks[c->depth];
    *b = (struct sdb_block){.token = token, .generation = contexts.generation};
    b->tags_before = c->tags;
    b->set_before = c->set;
    b->encoded_before = c->encoded;
    b->set_token_before = c->set_token;
    b->name = b->request = b->trace = b->late_trace = b->added = Qnil;
    c->depth++;
    return b;
}

void
sdb_context_remove(struct sdb_context *c, uint64_t token)
{
    struct sdb_block *b = sdb_context_block(c, token);
    if (!b) return;
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
}

/* Of this recording, and at or below `upto`. silent: also one that the log does not know. */
static uint64_t
own_span(const struct sdb_context *c, uint64_t upto, bool silent)
{
    for (uint32_t i = c->depth; i-- > 0;) {
        const struct sdb_block *b = &c->blocks[i];
        if (b->is_span && (silent || !b->silent) && b->generation == contexts.generation &&
            b->token <= upto)
            return b->token;
    }
    return 0;
}

static struct sdb_context *
parent_of(const struct sdb_context *c)
{
    return NIL_P(c->parent) ? NULL : RTYPEDDATA_DATA(c->parent);
}

uint64_t
sdb_context_span(struct sdb_context *c, VALUE *owner)
{
    bool silent = owner != NULL;
    uint64_t span = own_span(c, UINT64_MAX, silent);
    const struct sdb_context *from = c;
    for (int i = 0; !span && i < CHAIN_MAX && parent_of(from); i++) {
        span = own_span(parent_of(from), from->parent_token, silent);
        from = parent_of(from);
    }
    if (owner) *owner = from->self;
    return span;
}

/* ---- times ---- */

static void
turn_on(struct sdb_context *c, const struct sdb_times *thread, uint64_t now_ns)
{
    if (c->on) return;
    c->on = true;
    c->base = *thread;
    if (c->off_since_ns && now_ns > c->off_since_ns) c->sum.blocked_ns += now_ns - c->off_since_ns;
}

static void
turn_off(struct sdb_context *c, const struct sdb_times *thread, uint64_t now_ns)
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

/* ---- which fiber is on ---- */

void
sdb_context_tell(struct sdb_context *c, struct sdb_slot *slot, uint64_t now_ns)
{
    static const struct sdb_tags_event none = {0};
    uint64_t span = c ? sdb_context_span(c, NULL) : 0, token = c ? c->set_token : 0;
    if (span != sdb_load_relaxed(&slot->span_id)) {
        struct sdb_switch_event event = {span};
        bool told = sdb_events_push(slot, SDB_E_SPAN_SWITCH, now_ns, &event, sizeof event, 0);
        if (told) sdb_store_relaxed(&slot->span_id, span);
    }
    if (token == sdb_load_relaxed(&slot->tags_token)) return;
    bool told = token ? sdb_events_push(slot, SDB_E_TAGS, now_ns, RSTRING_PTR(c->encoded),
                                        (size_t)RSTRING_LEN(c->encoded), 0)
                      : sdb_events_push(slot, SDB_E_TAGS, now_ns, &none, sizeof none, 0);
    if (told) sdb_store_relaxed(&slot->tags_token, token);
}

/* The context and those it inherits from, as far as it still does. */
static int
chain_of(struct sdb_context *c, struct sdb_context *chain[CHAIN_MAX])
{
    int n = 0;
    while (c && n < CHAIN_MAX) {
        chain[n++] = c;
        struct sdb_context *parent = parent_of(c);
        if (parent && !own_span(parent, c->parent_token, false) && NIL_P(parent->parent)) {
            c->parent = Qnil; /* what it inherited has ended */
            parent = NULL;
        }
        c = parent;
    }
    return n;
}

static bool
holds(struct sdb_context *const *chain, int n, const struct sdb_context *c)
{
    for (int i = 0; i < n; i++) {
        if (chain[i] == c) return true;
    }
    return false;
}

static void
switch_times(struct sdb_slot *slot, struct sdb_context *from, struct sdb_context *to,
             uint64_t now_ns)
{
    struct sdb_context *off[CHAIN_MAX], *on[CHAIN_MAX];
    int off_count = chain_of(from, off), on_count = chain_of(to, on);
    struct sdb_times thread = sdb_thread_times(slot, now_ns);
    for (int i = 0; i < off_count; i++) {
        if (!holds(on, on_count, off[i])) turn_off(off[i], &thread, now_ns);
    }
    for (int i = 0; i < on_count; i++) turn_on(on[i], &thread, now_ns);
}

static struct sdb_context *
inherit(struct sdb_context *from)
{
    struct sdb_context *c = context_new();
    uint64_t span = own_span(from, UINT64_MAX, false);
    c->tags = from->tags;
    c->set = from->set;
    c->encoded = from->encoded;
    c->set_token = from->set_token;
    if (span || sdb_context_span(from, NULL)) {
        /* what it has of its own, else what it inherits itself */
        c->parent = span ? from->self : from->parent;
        c->parent_token = span ? span : from->parent_token;
    }
    return c;
}

static bool
worth_inheriting(struct sdb_context *c)
{
    return c->generation == contexts.generation && (!NIL_P(c->tags) || sdb_context_span(c, NULL));
}

static void
place(struct sdb_context *c, struct sdb_slot *slot, uint64_t ec)
{
    c->ec = ec;
    c->slot = slot;
    c->serial = sdb_load_relaxed(&slot->serial);
}

/* Nothing but the VM's own dummy frame is on its stack: the switch hook runs before a fiber's block is called
 * (cont.c:rb_fiber_start, 3.1-4.0). */
static bool
just_begins(uint64_t ec)
{
    const struct sdb_live_table *l = &sdb_recorder_threads()->live;
    uint64_t low = *(const uint64_t *)(uintptr_t)(ec + l->ec_vm_stack),
             cfp = *(const uint64_t *)(uintptr_t)(ec + l->ec_cfp);
    uint64_t words = *(const uint64_t *)(uintptr_t)(ec + l->ec_vm_stack_size);
    return low && low + 8 * words - cfp <= 2 * l->cfp_bytes;
}

/* The fiber on the thread is another than the slot says: finds its context, and tells the log what changed. fresh:
 * when it has none, it takes over what the fiber before it works for. */
static struct sdb_context *
follow(struct sdb_slot *slot, uint64_t ec, bool fresh)
{
    VALUE before = (VALUE)sdb_load_relaxed(&slot->context);
    struct sdb_context *from = before ? RTYPEDDATA_DATA(before) : NULL;
    VALUE value = rb_thread_local_aref(rb_thread_current(), contexts.key);
    struct sdb_context *to = NIL_P(value) ? NULL : sdb_context_of(value);
    if (!to && fresh && from && from->ec != ec && worth_inheriting(from)) {
        to = inherit(from);
        rb_thread_local_aset(rb_thread_current(), contexts.key, to->self);
    }
    if (to) place(to, slot, ec);
    if (from == to) return to;

    uint64_t now = sdb_monotonic_ns();
    if (from && from->generation != contexts.generation)
        from = NULL; /* of another log: nothing to tell */
    bool to_knows = to && to->generation == contexts.generation;
    if (from || to_knows) switch_times(slot, from, to_knows ? to : NULL, now);
    sdb_store_relaxed(&slot->context, (uint64_t)(to ? to->self : 0));
    sdb_context_tell(to_knows ? to : NULL, slot, now);
    return to;
}

/* Runs on: the fiber that was switched to (cont.c:fiber_switch, rb_fiber_start). Not called when an interrupt raises in
 * between: then the next span operation finds out by the ec. */
static void
on_fiber_switch(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE klass)
{
    (void)event, (void)data, (void)self, (void)id, (void)klass;
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (!slot) return;
    uint64_t ec = sdb_gvl_current_ec(slot);
    follow(slot, ec, just_begins(ec));
}

/* True the first time. */
static bool
follow_switches(void)
{
    if (contexts.following) return false;
    contexts.following = true;
    /* an event of C code only: no instruction is rewritten, no JIT code thrown away (vm_trace.c,
     * update_global_event_hook) */
    rb_add_event_hook(on_fiber_switch, RUBY_EVENT_FIBER_SWITCH, Qnil);
    return true;
}

/* The context is of an earlier recording: its spans are in that log, its tags are told again. */
static void
renew(struct sdb_context *c, struct sdb_slot *slot)
{
    uint64_t now = sdb_monotonic_ns();
    c->generation = contexts.generation;
    c->slot = slot;
    c->serial = sdb_load_relaxed(&slot->serial);
    c->parent = Qnil;
    c->sum = (struct sdb_times){0};
    c->off_since_ns = 0;
    c->base = sdb_thread_times(slot, now);
    c->on = true;
    sdb_context_tell(c, slot, now);
}

struct sdb_context *
sdb_context_current(struct sdb_slot *slot, bool create)
{
    VALUE value = (VALUE)sdb_load_relaxed(&slot->context);
    struct sdb_context *c = value ? RTYPEDDATA_DATA(value) : NULL;
    uint64_t ec = sdb_gvl_current_ec(slot);
    if (c && c->ec == ec && c->generation == contexts.generation) return c;

    if (!contexts.key) contexts.key = rb_intern("__sdb_context__");
    /* of the first fiber ever only its thread's first one is known, which most likely resumed it */
    bool fresh = ec != sdb_load_relaxed(&slot->root_ec) && follow_switches();
    if (!c || c->ec != ec) c = follow(slot, ec, fresh);
    if (!c && !create) return NULL;
    if (!c) {
        struct sdb_times thread = sdb_thread_times(slot, sdb_monotonic_ns());
        c = context_new();
        place(c, slot, ec);
        turn_on(c, &thread, 0);
        rb_thread_local_aset(rb_thread_current(), contexts.key, c->self);
        sdb_store_relaxed(&slot->context, (uint64_t)c->self);
    }
    if (c->generation != contexts.generation) renew(c, slot);
    return c;
}
