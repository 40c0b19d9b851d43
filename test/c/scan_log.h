/* SPDX-License-Identifier: MIT
 *
 * scan_log.h - what a fake recording (scan_support.h) wrote, in order, for the tests that say exactly what must be there.
 */
#ifndef SDB_SCAN_LOG_H
#define SDB_SCAN_LOG_H

#include "scan_support.h"

enum { LOG_RECORDS = 1 << 15, LOG_PAYLOAD = 256 };

struct log_record {
    struct walk_record r;
    uint8_t payload[LOG_PAYLOAD];
};

static struct {
    struct log_record records[LOG_RECORDS];
    unsigned count;
} fake_log;

static void
log_note(const struct walk_record *r, void *data)
{
    (void)data;
    if (r->type == WALK_TICK || fake_log.count == LOG_RECORDS) return;
    struct log_record *to = &fake_log.records[fake_log.count++];
    to->r = *r;
    to->r.bytes = r->bytes < LOG_PAYLOAD ? r->bytes : LOG_PAYLOAD;
    if (r->payload) memcpy(to->payload, r->payload, to->r.bytes);
    to->r.payload = to->payload;
}

/* Ends the recording and reads all of it. */
static inline void
log_read(void)
{
    struct walk_file file;
    fake_log.count = 0;
    fake_end(&file);
    struct walk_result result = walk_chunks(&file, log_note, NULL);
    CHECK_EQ(result.damaged, 0);
    walk_close(&file);
}

static inline unsigned
log_count(uint32_t type)
{
    unsigned n = 0;
    for (unsigned i = 0; i < fake_log.count; i++) n += fake_log.records[i].r.type == type;
    return n;
}

/* The n-th record of a type, from 0; from the end when negative. Ends the program when there are not so many. */
static inline const struct walk_record *
log_nth(uint32_t type, int n)
{
    int left = n < 0 ? (int)log_count(type) + n : n;
    for (unsigned i = 0; i < fake_log.count; i++)
        if (fake_log.records[i].r.type == type && left-- == 0) return &fake_log.records[i].r;
    NEED(!"there is such a record");
    return NULL;
}

static inline const struct walk_record *
log_sample(int n)
{
    return log_nth(WALK_SAMPLE, n);
}

/* The n-th number of a sized record. */
static inline uint64_t
log_number(const struct walk_record *r, unsigned n)
{
    const uint8_t *p = r->payload;
    bool ok = true;
    uint64_t value = 0;
    for (unsigned i = 0; i <= n; i++) value = walk_varint(&p, r->payload + r->bytes, &ok);
    CHECK(ok);
    return value;
}

/* Frames from a sample's node to the root. */
static inline unsigned
log_depth(const struct walk_record *sample)
{
    unsigned depth = 0;
    for (uint32_t node = sample->node; node; depth++) {
        const struct walk_record *found = NULL;
        for (unsigned i = 0; i < fake_log.count && !found; i++) {
            const struct walk_record *r = &fake_log.records[i].r;
            if (r->type == SDB_R_NODE && r->id == node && r->seq == sample->seq) found = r;
        }
        NEED(found != NULL);
        node = found->parent;
    }
    return depth;
}

#endif
