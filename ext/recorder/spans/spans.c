/* SPDX-License-Identifier: MIT
 *
 * spans.c - see spans.h. Nothing here runs Ruby code between reading a context and telling the queue, so no other
 * thread can come in between.
 */
#include "spans/spans.h"

#include <string.h>
#include <sys/random.h>
#include "core/clock.h"
#include "core/string_table.h"
#include "sdb_atomic.h"
#include "spans/allocations.h"
#include "spans/context.h"
#include "spans/fiber_switch.h"
#include "vm/gvl.h"
#include "spans/thread_times.h"

enum {
    END_ROOM_BYTES = 256, /* kept in the queue for the end of each open block */
    KEEP_MAX_BYTES = SDB_SPAN_QUEUE_BYTES / 4,
    ID_BYTES = 16,
};

static struct {
    /* guarded by the GVL */
    uint64_t last_token;
    uint64_t nonce; /* made-up ids of two processes differ */
} spans;

void
sdb_spans_recording_begins(bool forked)
{
    uint64_t nonce = 0;
    if (getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) != sizeof nonce)
        nonce ^= sdb_clock_ns(CLOCK_REALTIME);
    spans.nonce ^= nonce;
    sdb_contexts_forget(forked);
    sdb_events_forget_abandoned();
    sdb_allocations_start();
}

bool
sdb_spans_on(void)
{
    return sdb_gvl_current_slot() != NULL;
}

void
sdb_spans_forked(struct sdb_slot *slot, VALUE context)
{
    if (!context) return;
    struct sdb_context *c = RTYPEDDATA_DATA(context);
    sdb_store_relaxed(&slot->context, (uint64_t)context);
    if (!sdb_contexts_goes_on(c->generation) || c->ec != sdb_gvl_current_ec(slot)) return;
    uint64_t now = sdb_monotonic_ns();
    sdb_context_retell(c, slot, now);
    sdb_context_tell(c, slot, now);
}

void
sdb_spans_after_fork(void)
{
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (slot) sdb_context_current(slot, false);
}

/* ---- payloads ---- */

static uint16_t
cut(struct sdb_text text)
{
    return (uint16_t)sdb_text_bytes(text.at, text.bytes, SDB_EVENT_TEXT_MAX);
}

static struct sdb_text
text_of(VALUE string)
{
    if (NIL_P(string)) return (struct sdb_text){"", 0};
    return (struct sdb_text){RSTRING_PTR(string), (size_t)RSTRING_LEN(string)};
}

static uint8_t *
append(uint8_t *to, struct sdb_text text, uint16_t bytes)
{
    if (!bytes) return to; /* also what was left out in the end */
    return to + sdb_text_put((char *)to, text.at, text.bytes, SDB_EVENT_TEXT_MAX);
}

static void
put_tag(struct sdb_tag_text *text, struct sdb_text key, struct sdb_text value)
{
    const uint16_t lengths[2] = {cut(key), cut(value)};
    uint8_t *to = text->at + text->bytes;
    memcpy(to, lengths, sizeof lengths);
    to = append(to + sizeof lengths, key, lengths[0]);
    to = append(to, value, lengths[1]);
    text->bytes = (uint32_t)(to - text->at);
    text->count++;
}

/* The last place is kept for the word that there were more. */
void
sdb_tag_text_add(struct sdb_tag_text *text, struct sdb_text key, struct sdb_text value)
{
    static const struct sdb_text more = {"\xe2\x80\xa6", 3}, left_out = {"more were left out", 18};
    const size_t head = 2 * sizeof(uint16_t), kept = head + more.bytes + left_out.bytes;
    if (text->count == SDB_EVENT_TAGS_MAX || text->full) return;
    text->full = text->count == SDB_EVENT_TAGS_MAX - 1 ||
                 text->bytes + head + cut(key) + cut(value) + kept > sizeof text->at;
    put_tag(text, text->full ? more : key, text->full ? left_out : value);
}

static int
add_tag_i(VALUE key, VALUE value, VALUE data)
{
    sdb_tag_text_add((struct sdb_tag_text *)data, text_of(key), text_of(value));
    return ST_CONTINUE;
}

static void
made_up_id(uint64_t token, char id[ID_BYTES + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t x = spans.nonce + token * 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    for (int i = ID_BYTES; i-- > 0; x >>= 4) id[i] = digits[x & 15];
    id[ID_BYTES] = '\0';
}

/* ---- spans ---- */

/* Ends what only waits to be ended, with all that is inside it. */
static void
end_returned(struct sdb_context *c)
{
    uint32_t first = 0;
    while (first < c->depth && !c->blocks[first].returned) first++;
    while (c->depth > first) {
        const struct sdb_block *b = &c->blocks[c->depth - 1];
        if (b->is_span) sdb_span_end(c->self, b->token, SDB_STATUS_UNKNOWN);
        else sdb_context_remove(c, b->token);
    }
}

/* tags: a Hash that nobody else has, or nil. */
static VALUE
merged(VALUE before, VALUE tags)
{
    if (NIL_P(tags)) return before;
    if (NIL_P(before)) return rb_obj_freeze(tags);
    VALUE all = rb_hash_dup(before);
    rb_funcall(all, rb_intern("update"), 1, tags);
    return rb_obj_freeze(all);
}

static size_t
begin_payload(uint8_t *payload, uint64_t token, uint64_t parent, const struct sdb_span_start *start,
              struct sdb_text request)
{
    const struct sdb_tag_text *tags = start->text;
    struct sdb_text trace = text_of(start->trace);
    struct sdb_begin_event b = {
        .id = token,
        .parent = parent,
        .kind_bytes = cut(start->kind),
        .name_bytes = cut(start->name),
        .request_bytes = cut(request),
        .trace_bytes = cut(trace),
        .tag_count = tags->count,
    };
    uint8_t *to = payload + sizeof b;
    memcpy(payload, &b, sizeof b);
    to = append(to, start->kind, b.kind_bytes);
    to = append(to, start->name, b.name_bytes);
    to = append(to, request, b.request_bytes);
    to = append(to, trace, b.trace_bytes);
    memcpy(to, tags->at, tags->bytes);
    return (size_t)(to + tags->bytes - payload);
}

_Static_assert(sizeof(struct sdb_begin_event) + 4 * SDB_EVENT_TEXT_MAX + SDB_TAG_TEXT_BYTES <=
                   SDB_EVENT_BYTES_MAX,
               "a payload fits");

uint64_t
sdb_span_begin(const struct sdb_span_start *start, VALUE *context)
{
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (!slot) return 0;
    struct sdb_context *c = sdb_context_current(slot, true);
    if (start->outermost) end_returned(c);
    VALUE tags = merged(c->tags, start->tags);
    uint64_t parent = sdb_context_span(c, NULL), token = ++spans.last_token;
    struct sdb_block *b = sdb_context_push(c, token);
    b->is_span = true;
    b->request = start->request;
    b->trace = start->trace;
    b->made_up = NIL_P(start->request) && (!parent || start->wants_request);
    c->tags = tags;

    char id[ID_BYTES + 1];
    struct sdb_text request = text_of(start->request);
    if (b->made_up) {
        made_up_id(token, id);
        request = (struct sdb_text){id, ID_BYTES};
    }
    uint8_t payload[SDB_EVENT_BYTES_MAX];
    size_t bytes = begin_payload(payload, token, parent, start, request);
    size_t keep = (size_t)END_ROOM_BYTES * c->depth;
    if (keep > KEEP_MAX_BYTES) keep = KEEP_MAX_BYTES;
    b->begin_ns = sdb_monotonic_ns();
    b->begin = sdb_context_times(c, slot, b->begin_ns);
    b->silent = !sdb_events_push(sdb_gvl_threads(), slot, SDB_E_SPAN_BEGIN, b->begin_ns, payload,
                                 bytes, keep);
    if (!b->silent) {
        sdb_store_relaxed(&slot->span_id, token);
        sdb_context_keep_told(b, payload, bytes);
    }
    *context = c->self;
    return token;
}

static bool
tell_end(struct sdb_context *c, const struct sdb_block *b, struct sdb_slot *slot, uint32_t status,
         uint64_t next, const struct sdb_tag_text *tags, uint64_t now)
{
    struct sdb_times t = sdb_context_times(c, slot, now), used = {0};
    sdb_times_add_since(&used, &t, &b->begin);
    struct sdb_text name = text_of(b->name), trace = text_of(b->late_trace);
    uint8_t payload[SDB_EVENT_BYTES_MAX];
    struct sdb_end_event end = {
        .id = b->token,
        .next = next,
        .cpu_ns = used.cpu_ns,
        .wait_ns = used.wait_ns,
        .blocked_ns = used.blocked_ns,
        .gc_ns = used.gc_ns,
        .allocations = used.allocations,
        .status = b->status ? b->status : status,
        .name_bytes = cut(name),
        .trace_bytes = cut(trace),
        .tag_count = tags->count,
    };
    uint8_t *to = payload + sizeof end;
    to = append(to, name, end.name_bytes);
    to = append(to, trace, end.trace_bytes);
    memcpy(to, tags->at, tags->bytes);
    to += tags->bytes;
    memcpy(payload, &end, sizeof end);
    if (sdb_events_push(sdb_gvl_threads(), slot, SDB_E_SPAN_END, now, payload,
                        (size_t)(to - payload), 0))
        return true;
    end.name_bytes = end.trace_bytes = 0;
    end.tag_count = 0;
    return sdb_events_push(sdb_gvl_threads(), slot, SDB_E_SPAN_END, now, &end, sizeof end,
                           0); /* what was kept free for it */
}

void
sdb_span_end(VALUE context, uint64_t id, uint32_t status)
{
    struct sdb_context *c = sdb_context_of(context);
    struct sdb_block *found = sdb_context_block(c, id);
    if (!found) return;
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (slot && c->generation != sdb_contexts_generation()) sdb_context_renew(c, slot);
    uint64_t now = sdb_monotonic_ns();
    struct sdb_block b = *found;
    if (!slot || b.silent || b.generation != sdb_contexts_generation()) {
        sdb_context_remove(c, id);
        return;
    }
    struct sdb_tag_text tags;
    sdb_tag_text_clear(&tags);
    if (!NIL_P(b.added)) rb_hash_foreach(b.added, add_tag_i, (VALUE)&tags);
    sdb_context_remove(c, id);
    bool here = (VALUE)sdb_load_relaxed(&slot->context) == context;
    uint64_t next = here ? sdb_context_span(c, NULL) : sdb_load_relaxed(&slot->span_id);
    if (tell_end(c, &b, slot, status, next, &tags, now) && sdb_load_relaxed(&slot->span_id) == id) {
        sdb_store_relaxed(&slot->span_id, next); /* as who reads the end understands it */
    }
    if (here) sdb_context_tell(c, slot, now);
    RB_GC_GUARD(context);
}

static struct sdb_block *
open_block(VALUE context, uint64_t id)
{
    return sdb_context_block(sdb_context_of(context), id);
}

void
sdb_span_set_name(VALUE context, uint64_t id, VALUE name)
{
    struct sdb_block *b = open_block(context, id);
    if (b) b->name = name;
}

void
sdb_span_set_status(VALUE context, uint64_t id, uint32_t status)
{
    struct sdb_block *b = open_block(context, id);
    if (b) b->status = status;
}

void
sdb_span_set_trace(VALUE context, uint64_t id, VALUE trace)
{
    struct sdb_block *b = open_block(context, id);
    if (b) b->trace = b->late_trace = trace;
}

void
sdb_span_add_tags(VALUE context, uint64_t id, VALUE tags, VALUE texts)
{
    struct sdb_context *c = sdb_context_of(context);
    struct sdb_block *b = sdb_context_block(c, id);
    if (!b) return;
    VALUE all = merged(c->tags, tags), added = merged(b->added, texts);
    b = sdb_context_block(c, id); /* merging allocates, and may have run a finalizer */
    if (!b) return;
    if (b == &c->blocks[c->depth - 1]) c->tags = all;
    b->added = added;
}

void
sdb_span_returned(VALUE context, uint64_t id)
{
    struct sdb_block *b = open_block(context, id);
    if (b) b->returned = true;
}

VALUE
sdb_span_request_id(VALUE context, uint64_t id)
{
    struct sdb_block *b = open_block(context, id);
    if (!b) return Qnil;
    if (!b->made_up) return b->request;
    char text[ID_BYTES + 1];
    made_up_id(id, text);
    return rb_utf8_str_new(text, ID_BYTES);
}

VALUE
sdb_span_trace_id(VALUE context, uint64_t id)
{
    struct sdb_context *c = sdb_context_of(context);
    const struct sdb_block *b = sdb_context_block(c, id);
    for (; b && b >= c->blocks; b--) {
        if (b->is_span && !NIL_P(b->trace)) return b->trace;
    }
    return Qnil;
}

uint64_t
sdb_span_current(VALUE *context)
{
    struct sdb_slot *slot = sdb_gvl_current_slot();
    struct sdb_context *c = slot ? sdb_context_current(slot, false) : NULL;
    return c ? sdb_context_span(c, context) : 0;
}

/* ---- tags and marks ---- */

static VALUE
encoded_set(VALUE set)
{
    struct sdb_tag_text text;
    struct sdb_tags_event event;
    sdb_tag_text_clear(&text);
    rb_hash_foreach(set, add_tag_i, (VALUE)&text);
    event.tag_count = text.count;
    VALUE encoded = rb_str_buf_new((long)(sizeof event + text.bytes));
    rb_str_cat(encoded, (const char *)&event, sizeof event);
    return rb_obj_freeze(rb_str_cat(encoded, (const char *)text.at, (long)text.bytes));
}

uint64_t
sdb_tags_begin(VALUE tags, VALUE texts, VALUE *context)
{
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (!slot) return 0;
    struct sdb_context *c = sdb_context_current(slot, true);
    VALUE all = merged(c->tags, tags), set = merged(c->set, texts),
          encoded = NIL_P(set) ? Qnil : encoded_set(set);
    uint64_t token = ++spans.last_token;
    sdb_context_push(c, token);
    c->tags = all;
    c->set = set;
    c->encoded = encoded;
    c->set_token = token;
    *context = c->self;
    sdb_context_tell(c, slot, sdb_monotonic_ns());
    return token;
}

void
sdb_tags_end(VALUE context, uint64_t token)
{
    struct sdb_context *c = sdb_context_of(context);
    struct sdb_slot *slot = sdb_gvl_current_slot();
    sdb_context_remove(c, token);
    if (slot && (VALUE)sdb_load_relaxed(&slot->context) == context)
        sdb_context_tell(c, slot, sdb_monotonic_ns());
}

VALUE
sdb_tags_current(void)
{
    struct sdb_slot *slot = sdb_gvl_current_slot();
    struct sdb_context *c = slot ? sdb_context_current(slot, false) : NULL;
    return c ? c->tags : Qnil;
}

void
sdb_mark_now(struct sdb_text text)
{
    struct sdb_slot *slot = sdb_gvl_current_slot();
    if (slot)
        sdb_events_push(sdb_gvl_threads(), slot, SDB_E_MARK, sdb_monotonic_ns(), text.at, cut(text),
                        0);
}
