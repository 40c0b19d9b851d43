/* SPDX-License-Identifier: MIT
 *
 * spans.h - spans, tags and marks as app threads make them: the context of the fiber changes, and an event goes to
 * the scanner. Nothing of a finished span is kept.
 *
 * Runs on: any Ruby thread, GVL, unless said
 */
#ifndef SDB_SPANS_H
#define SDB_SPANS_H

#include <ruby.h>
#include <stdbool.h>
#include <stdint.h>
#include "scan/event_feed.h"

struct sdb_text { /* borrowed; cut at SDB_EVENT_TEXT_MAX */
    const char *at;
    size_t bytes;
};

enum { SDB_TAG_TEXT_BYTES = 3072 };

struct sdb_tag_text { /* tags as a payload has them */
    uint32_t count, bytes;
    bool full; /* one was left out */
    uint8_t at[SDB_TAG_TEXT_BYTES];
};

static inline void
sdb_tag_text_clear(struct sdb_tag_text *text)
{
    text->count = text->bytes = 0;
    text->full = false;
}

struct sdb_span_start {
    struct sdb_text kind, name;
    /* String: what `sdb request` finds; nil: made up when it has no parent or asks for one */
    VALUE request;
    bool wants_request;
    VALUE trace;                     /* String or nil */
    VALUE tags;                      /* fresh Hash as given, or nil */
    const struct sdb_tag_text *text; /* the same for the log */
    bool outermost;                  /* never inside a span that has returned: those end */
};

enum { SDB_STATUS_UNKNOWN = 0, SDB_STATUS_ENDED = 1, SDB_STATUS_RAISED = 2 };

/* A recording begins, or a child was forked: what is open is of another log. Runs on: GVL, or the atfork child
 * handler. */
void sdb_spans_recording_begins(bool forked);
/* The only thread of a forked child: its log is told of the tags and open spans of its context (0 none). Calls nothing of
 * the VM. Runs on: the atfork child handler. */
void sdb_spans_forked(struct sdb_slot *slot, VALUE context);
/* The same, for what could not be told there, and the times begin. Runs on: the forking thread, in the child, GVL. */
void sdb_spans_after_fork(void);

/* Appends a tag; where one does not fit, the tag "…" says so. */
void sdb_tag_text_add(struct sdb_tag_text *text, struct sdb_text key, struct sdb_text value);

/* Whether the calling thread is recorded now. */
bool sdb_spans_on(void);

/* Begins a span on this fiber. Its id, and its context in *context (to be kept visible to the GC); 0: not
 * recorded. */
uint64_t sdb_span_begin(const struct sdb_span_start *start, VALUE *context);
/* Ends it, once; from any thread. status: used when none was set. */
void sdb_span_end(VALUE context, uint64_t id, uint32_t status);

/* Of an open span; without effect on one that has ended. */
void sdb_span_set_name(VALUE context, uint64_t id, VALUE name);
void sdb_span_set_status(VALUE context, uint64_t id, uint32_t status);
void sdb_span_set_trace(VALUE context, uint64_t id, VALUE trace);
void sdb_span_add_tags(VALUE context, uint64_t id, VALUE tags, VALUE texts);
/* The code of the span is through, but something it gave away (the body of a response) will end it. An `outermost` span
 * that begins on its fiber meanwhile shows that this never happened, and ends it. */
void sdb_span_returned(VALUE context, uint64_t id);
/* nil when ended. */
VALUE sdb_span_request_id(VALUE context, uint64_t id);
VALUE sdb_span_trace_id(VALUE context, uint64_t id);

/* Innermost open span of this fiber, own or not; 0 none. */
uint64_t sdb_span_current(VALUE *context);

/* Puts tags into effect; the token to give back, 0: not recorded. */
uint64_t sdb_tags_begin(VALUE tags, VALUE texts, VALUE *context);
void sdb_tags_end(VALUE context, uint64_t token);
/* All in effect on this fiber: frozen Hash, or nil. */
VALUE sdb_tags_current(void);

void sdb_mark_now(struct sdb_text text);

#endif
