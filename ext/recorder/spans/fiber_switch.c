/* SPDX-License-Identifier: MIT
 *
 * fiber_switch.c - see fiber_switch.h: which context is on a thread, and what one fiber takes over from another.
 */
#include "spans/fiber_switch.h"

#include <ruby/debug.h>
#include "core/clock.h"
#include "live_table.h"
#include "sdb_atomic.h"
#include "spans/context.h"
#include "scan/event_feed.h"
#include "vm/gvl.h"
#include "spans/thread_times.h"

static struct {
    /* guarded by the GVL */
    bool following; /* the FIBER_SWITCH hook is there; it is never removed */
    ID key;
} switches;

void
sdb_context_tell(struct sdb_context *c, struct sdb_slot *slot, uint64_t now_ns)
{
    static const struct sdb_tags_event none = {0};
    uint64_t span = c ? sdb_context_span(c, NULL) : 0, token = c ? c->set_token : 0;
    if (span != sdb_load_relaxed(&slot->span_id)) {
        struct sdb_switch_event event = {span};
        bool told = sdb_events_push(sdb_gvl_threads(), slot, SDB_E_SPAN_SWITCH, now_ns, &event,
                                    sizeof event, 0);
        if (told) sdb_store_relaxed(&slot->span_id, span);
    }
    if (token == sdb_load_relaxed(&slot->tags_token)) return;
    bool told =
        token ? sdb_events_push(sdb_gvl_threads(), slot, SDB_E_TAGS, now_ns,
                                RSTRING_PTR(c->encoded), (size_t)RSTRING_LEN(c->encoded), 0)
              : sdb_events_push(sdb_gvl_threads(), slot, SDB_E_TAGS, now_ns, &none, sizeof none, 0);
    if (told) sdb_store_relaxed(&slot->tags_token, token);
}

/* The context and those it inherits from, as far as it still does. */
static int
chain_of(struct sdb_context *c, struct sdb_context *chain[SDB_CONTEXT_CHAIN_MAX])
{
    int n = 0;
    while (c && n < SDB_CONTEXT_CHAIN_MAX) {
        chain[n++] = c;
        struct sdb_context *parent = sdb_context_parent(c);
        if (parent && !sdb_context_own_span(parent, c->parent_token, false) &&
            NIL_P(parent->parent)) {
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
    struct sdb_context *off[SDB_CONTEXT_CHAIN_MAX], *on[SDB_CONTEXT_CHAIN_MAX];
    int off_count = chain_of(from, off), on_count = chain_of(to, on);
    struct sdb_times thread = sdb_thread_times(slot, now_ns);
    for (int i = 0; i < off_count; i++) {
        if (!holds(on, on_count, off[i])) sdb_context_turn_off(off[i], &thread, now_ns);
    }
    for (int i = 0; i < on_count; i++) sdb_context_turn_on(on[i], &thread, now_ns);
}

static struct sdb_context *
inherit(struct sdb_context *from)
{
    struct sdb_context *c = sdb_context_new();
    uint64_t span = sdb_context_own_span(from, UINT64_MAX, false);
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
    return c->generation == sdb_contexts_generation() &&
           (!NIL_P(c->tags) || sdb_context_span(c, NULL));
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
    const struct sdb_live_table *l = &sdb_gvl_threads()->live;
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
    VALUE value = rb_thread_local_aref(rb_thread_current(), switches.key);
    struct sdb_context *to = NIL_P(value) ? NULL : sdb_context_of(value);
    if (!to && fresh && from && from->ec != ec && worth_inheriting(from)) {
        to = inherit(from);
        rb_thread_local_aset(rb_thread_current(), switches.key, to->self);
    }
    if (to) place(to, slot, ec);
    if (from == to) return to;

    uint64_t now = sdb_monotonic_ns();
    if (from && from->generation != sdb_contexts_generation())
        from = NULL; /* of another log: nothing to tell */
    bool to_knows = to && to->generation == sdb_contexts_generation();
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
    if (switches.following) return false;
    switches.following = true;
    /* an event of C code only: no instruction is rewritten, no JIT code thrown away (vm_trace.c,
     * update_global_event_hook) */
    rb_add_event_hook(on_fiber_switch, RUBY_EVENT_FIBER_SWITCH, Qnil);
    return true;
}

static void
retell_blocks(struct sdb_context *c, struct sdb_slot *slot, uint64_t now_ns)
{
    for (uint32_t i = 0; i < c->depth; i++) {
        struct sdb_block *b = &c->blocks[i];
        if (!b->is_span || b->silent || b->generation == sdb_contexts_generation() ||
            !sdb_contexts_goes_on(b->generation))
            continue;
        b->generation = sdb_contexts_generation();
        b->begin_ns = now_ns;
        b->begin = (struct sdb_times){0};
        b->silent = !b->told_bytes || !sdb_events_push(sdb_gvl_threads(), slot, SDB_E_SPAN_BEGIN,
                                                       now_ns, b->told, b->told_bytes, 0);
        if (!b->silent) sdb_store_relaxed(&slot->span_id, b->token);
    }
}

void
sdb_context_retell(struct sdb_context *c, struct sdb_slot *slot, uint64_t now_ns)
{
    struct sdb_context *chain[SDB_CONTEXT_CHAIN_MAX];
    int n = 0;
    for (; c && n < SDB_CONTEXT_CHAIN_MAX; c = sdb_context_parent(c)) chain[n++] = c;
    while (n-- > 0) retell_blocks(chain[n], slot, now_ns);
}

void
sdb_context_renew(struct sdb_context *c, struct sdb_slot *slot)
{
    uint64_t now = sdb_monotonic_ns();
    struct sdb_times thread = sdb_thread_times(slot, now);
    if (sdb_contexts_goes_on(c->generation)) sdb_context_retell(c, slot, now);
    else c->parent = Qnil;
    struct sdb_context *from = c;
    for (int i = 0; from && i < SDB_CONTEXT_CHAIN_MAX; i++, from = sdb_context_parent(from)) {
        if (from->generation == sdb_contexts_generation()) break;
        from->generation = sdb_contexts_generation();
        from->slot = slot;
        from->serial = sdb_load_relaxed(&slot->serial);
        from->sum = (struct sdb_times){0};
        from->off_since_ns = 0;
        from->base = thread;
        from->on = true;
    }
    sdb_context_tell(c, slot, now);
}

struct sdb_context *
sdb_context_current(struct sdb_slot *slot, bool create)
{
    VALUE value = (VALUE)sdb_load_relaxed(&slot->context);
    struct sdb_context *c = value ? RTYPEDDATA_DATA(value) : NULL;
    uint64_t ec = sdb_gvl_current_ec(slot);
    if (c && c->ec == ec && c->generation == sdb_contexts_generation()) return c;

    if (!switches.key) switches.key = rb_intern("__sdb_context__");
    /* of the first fiber ever only its thread's first one is known, which most likely resumed it */
    bool fresh = ec != sdb_load_relaxed(&slot->root_ec) && follow_switches();
    if (!c || c->ec != ec) c = follow(slot, ec, fresh);
    if (!c && !create) return NULL;
    if (!c) {
        struct sdb_times thread = sdb_thread_times(slot, sdb_monotonic_ns());
        c = sdb_context_new();
        place(c, slot, ec);
        sdb_context_turn_on(c, &thread, 0);
        rb_thread_local_aset(rb_thread_current(), switches.key, c->self);
        sdb_store_relaxed(&slot->context, (uint64_t)c->self);
    }
    if (c->generation != sdb_contexts_generation()) sdb_context_renew(c, slot);
    return c;
}
