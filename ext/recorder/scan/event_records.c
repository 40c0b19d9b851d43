/* SPDX-License-Identifier: MIT
 *
 * event_records.c - see event_records.h.
 */
#include "scan/event_records.h"

#include <string.h>
#include "varint.h"
#include "scan/event_feed.h"
#include "scan/state.h"

enum { RECORD_MAX_BYTES = 12 * 1024 };

/* ---- a payload's parts, taken in order and never beyond its end ---- */

struct parts {
    const uint8_t *at, *end;
};

static const char *
take(struct parts *p, size_t bytes)
{
    if (bytes > (size_t)(p->end - p->at)) {
        p->at = p->end;
        return NULL;
    }
    const char *text = (const char *)p->at;
    p->at += bytes;
    return text;
}

static uint8_t *
put_string(struct sdb_scanner *sc, uint8_t *to, struct parts *p, size_t bytes)
{
    const char *text = take(p, bytes);
    return sdb_varint_put(to, text && bytes ? sdb_ring_writer_string(sc->writer, text, bytes) : 0);
}

static uint8_t *
put_bytes(uint8_t *to, struct parts *p, size_t bytes)
{
    const char *text = take(p, bytes);
    if (!text) bytes = 0;
    to = sdb_varint_put(to, bytes);
    if (bytes) memcpy(to, text, bytes);
    return to + bytes;
}

static uint8_t *
put_tags(struct sdb_scanner *sc, uint8_t *to, struct parts *p, uint32_t count)
{
    uint64_t ids[2 * SDB_EVENT_TAGS_MAX];
    uint32_t n = 0;
    while (n < count && n < SDB_EVENT_TAGS_MAX) {
        uint16_t lengths[2];
        const char *head = take(p, sizeof lengths);
        if (!head) break;
        memcpy(lengths, head, sizeof lengths);
        const char *key = take(p, lengths[0]), *value = take(p, lengths[1]);
        if (!key || !value) break;
        ids[2 * n] = sdb_ring_writer_string(sc->writer, key, lengths[0]);
        ids[2 * n + 1] = sdb_ring_writer_string(sc->writer, value, lengths[1]);
        n++;
    }
    to = sdb_varint_put(to, n);
    for (uint32_t i = 0; i < 2 * n; i++) to = sdb_varint_put(to, ids[i]);
    return to;
}

/* ---- one record each ---- */

static uint64_t
rel_ns(const struct sdb_scanner *sc, uint64_t at_ns)
{
    return at_ns > sc->start_ns ? at_ns - sc->start_ns : 0;
}

void
sdb_event_write_begin(struct sdb_scanner *sc, uint64_t serial, uint64_t at_ns,
                      const uint8_t *payload, uint32_t bytes)
{
    struct sdb_begin_event b;
    uint8_t record[RECORD_MAX_BYTES], *to = record;
    struct parts p = {payload + sizeof b, payload + bytes};
    memcpy(&b, payload, sizeof b);
    to = sdb_varint_put(to, serial);
    to = sdb_varint_put(to, b.id);
    to = sdb_varint_put(to, b.parent);
    to = sdb_varint_put(to, rel_ns(sc, at_ns));
    to = put_string(sc, to, &p, b.kind_bytes);
    to = put_string(sc, to, &p, b.name_bytes);
    to = put_bytes(to, &p, b.request_bytes);
    to = put_bytes(to, &p, b.trace_bytes);
    to = put_tags(sc, to, &p, b.tag_count);
    sdb_ring_writer_sized(sc->writer, SDB_R_SPAN_BEGIN, record, (size_t)(to - record));
}

void
sdb_event_write_end(struct sdb_scanner *sc, uint64_t at_ns, const uint8_t *payload, uint32_t bytes)
{
    struct sdb_end_event end;
    uint8_t record[RECORD_MAX_BYTES], *to = record;
    struct parts p = {payload + sizeof end, payload + bytes};
    memcpy(&end, payload, sizeof end);
    to = sdb_varint_put(to, end.id);
    to = sdb_varint_put(to, rel_ns(sc, at_ns));
    to = put_string(sc, to, &p, end.name_bytes);
    to = sdb_varint_put(to, end.status);
    to = sdb_varint_put(to, end.cpu_ns);
    to = sdb_varint_put(to, end.wait_ns);
    to = sdb_varint_put(to, end.blocked_ns);
    to = sdb_varint_put(to, end.gc_ns);
    to = sdb_varint_put(to, end.allocations);
    struct parts trace = p; /* lies before the tags, and is written behind them */
    take(&p, end.trace_bytes);
    to = put_tags(sc, to, &p, end.tag_count);
    if (end.trace_bytes) to = put_bytes(to, &trace, end.trace_bytes);
    sdb_ring_writer_sized(sc->writer, SDB_R_SPAN_END, record, (size_t)(to - record));
}

void
sdb_event_write_switch(struct sdb_scanner *sc, uint64_t serial, uint64_t span, uint64_t at_ns)
{
    uint8_t record[3 * SDB_VARINT_MAX], *to = record;
    to = sdb_varint_put(to, serial);
    to = sdb_varint_put(to, span);
    to = sdb_varint_put(to, rel_ns(sc, at_ns));
    sdb_ring_writer_sized(sc->writer, SDB_R_SPAN_SWITCH, record, (size_t)(to - record));
}

void
sdb_event_write_tags(struct sdb_scanner *sc, uint64_t serial, uint64_t at_ns,
                     const uint8_t *payload, uint32_t bytes)
{
    struct sdb_tags_event tags;
    uint8_t record[RECORD_MAX_BYTES], *to = record;
    struct parts p = {payload + sizeof tags, payload + bytes};
    memcpy(&tags, payload, sizeof tags);
    to = sdb_varint_put(to, serial);
    to = sdb_varint_put(to, rel_ns(sc, at_ns));
    to = put_tags(sc, to, &p, tags.tag_count);
    sdb_ring_writer_sized(sc->writer, SDB_R_TAGS, record, (size_t)(to - record));
}

void
sdb_event_write_mark(struct sdb_scanner *sc, uint64_t at_ns, const uint8_t *payload, uint32_t bytes)
{
    uint8_t record[SDB_VARINT_MAX + SDB_EVENT_TEXT_MAX],
        *to = sdb_varint_put(record, rel_ns(sc, at_ns));
    if (bytes > SDB_EVENT_TEXT_MAX) bytes = SDB_EVENT_TEXT_MAX;
    memcpy(to, payload, bytes);
    sdb_ring_writer_sized(sc->writer, SDB_R_MARK, record, (size_t)(to - record) + bytes);
}
