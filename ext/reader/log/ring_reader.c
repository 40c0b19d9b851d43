/* SPDX-License-Identifier: MIT
 *
 * ring_reader.c - see ring_reader.h.
 *
 * Runs on: offline
 */
#include "log/ring_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "crc32c.h"
#include "error.h"
#include "log/memory.h"

/* What a sane ring may have; more is a lie that would cost time or memory. */
enum {
    CHUNK_MIN_BYTES = 4096,
    CHUNK_MAX_BYTES = 64 << 20,
    CHUNK_MAX_COUNT = 1 << 20,
    AREA_MIN_BYTES = 4096,
    AREA_MAX_BYTES = 1 << 30,
    READ_STEP_BYTES = 256 << 10,
};

static uint32_t
crc_without(const uint8_t *bytes, size_t n, size_t hole1, size_t hole2)
{
    static const uint8_t zero[4];
    size_t first = hole1 < hole2 ? hole1 : hole2, second = hole1 < hole2 ? hole2 : hole1;
    uint32_t crc = sdb_crc32c(0, bytes, first);
    crc = sdb_crc32c(crc, zero, 4);
    if (second != first) {
        crc = sdb_crc32c(crc, bytes + first + 4, second - first - 4);
        crc = sdb_crc32c(crc, zero, 4);
    }
    return sdb_crc32c(crc, bytes + second + 4, n - second - 4);
}

static bool
range_inside(uint64_t off, uint64_t bytes, uint64_t whole)
{
    return off <= whole && bytes <= whole - off;
}

static int
identity_check(const struct sdb_identity *id, uint64_t source_bytes)
{
    if (id->chunk_bytes < CHUNK_MIN_BYTES || id->chunk_bytes > CHUNK_MAX_BYTES)
        return SDB_ERR_CORRUPT;
    if (id->chunk_count == 0 || id->chunk_count > CHUNK_MAX_COUNT) return SDB_ERR_CORRUPT;
    if (id->chunks_off < SDB_HEADER_BYTES || id->area_a_off < SDB_HEADER_BYTES ||
        id->area_b_off < SDB_HEADER_BYTES)
        return SDB_ERR_CORRUPT;
    if (id->area_bytes < AREA_MIN_BYTES || id->area_bytes > AREA_MAX_BYTES) return SDB_ERR_CORRUPT;
    if (!range_inside(id->area_a_off, id->area_bytes, id->file_bytes) ||
        !range_inside(id->area_b_off, id->area_bytes, id->file_bytes) ||
        !range_inside(id->chunks_off, id->chunk_count * id->chunk_bytes, id->file_bytes))
        return SDB_ERR_CORRUPT;
    if (id->interval_ns == 0 || source_bytes < SDB_IDENTITY_BYTES) return SDB_ERR_CORRUPT;
    return SDB_OK;
}

static int
identity_read(struct sdb_ring_reader *r)
{
    uint8_t pages[SDB_IDENTITY_BYTES];
    int64_t got = sdb_source_read(&r->source, 0, pages, sizeof(pages));
    if (got < 0) return SDB_ERR_IO;
    uint64_t magic = 0;
    if (got >= 8) memcpy(&magic, pages, 8);
    if (magic != SDB_MAGIC) return SDB_ERR_NOT_RING;
    if ((size_t)got < sizeof(struct sdb_identity)) return SDB_ERR_CORRUPT;

    struct sdb_identity *id = &r->identity;
    memcpy(id, pages, sizeof(*id));
    if (id->endian_tag != SDB_ENDIAN_TAG || id->major != SDB_FORMAT_MAJOR || id->word_bytes != 8)
        return SDB_ERR_VERSION;
    if (id->text_bytes > SDB_IDENTITY_BYTES - sizeof(*id) ||
        (size_t)got < sizeof(*id) + id->text_bytes)
        return SDB_ERR_CORRUPT;
    size_t proven = sizeof(*id) + id->text_bytes;
    if (crc_without(pages, proven, offsetof(struct sdb_identity, state),
                    offsetof(struct sdb_identity, crc)) != id->crc)
        return SDB_ERR_CORRUPT;
    r->text_bytes = id->text_bytes;
    memcpy(r->text, pages + sizeof(*id), r->text_bytes);
    r->text[r->text_bytes] = 0;
    r->truncated = r->source.n < id->file_bytes;
    return identity_check(id, r->source.n);
}

int
sdb_ring_reader_open(struct sdb_ring_reader *r, struct sdb_source source)
{
    *r = (struct sdb_ring_reader){.source = source};
    int err = sdb_source_enter_dump(&r->source);
    if (!err) err = identity_read(r);
    if (!err) err = sdb_ring_reader_refresh(r);
    if (err) {
        int saved = errno;
        sdb_ring_reader_close(r);
        errno = saved;
    }
    return err;
}

void
sdb_ring_reader_close(struct sdb_ring_reader *r)
{
    sdb_source_close(&r->source);
    free(r->chunks);
    r->chunks = NULL;
    r->chunk_count = r->chunk_capacity = 0;
}

static int
state_page_read(struct sdb_ring_reader *r)
{
    static const uint64_t offs[2] = {SDB_STATE_A_OFF, SDB_STATE_B_OFF};
    for (int i = 0; i < 2; i++) {
        struct sdb_state_page page;
        int64_t got = sdb_source_read(&r->source, offs[i], &page, sizeof(page));
        if (got < 0) return SDB_ERR_IO;
        size_t hole = offsetof(struct sdb_state_page, crc);
        if (got != sizeof(page) || page.magic != SDB_MAGIC) continue;
        if (crc_without((const uint8_t *)&page, sizeof(page), hole, hole) != page.crc) continue;
        if (r->has_state_page && page.seq < r->state_page.seq) continue;
        if (page.reason_bytes > sizeof(page.text)) page.reason_bytes = 0;
        if (page.counter_count > SDB_COUNTER_COUNT) page.counter_count = SDB_COUNTER_COUNT;
        for (size_t k = page.counter_count; k < SDB_COUNTER_COUNT; k++) page.counters[k] = 0;
        r->state_page = page;
        r->has_state_page = true;
    }
    return SDB_OK;
}

static int
by_seq(const void *left, const void *right)
{
    const struct sdb_chunk_ref *a = left, *b = right;
    return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* A whole lap behind the newest: the symbols it needs may be gone. */
static void
drop_old_laps(struct sdb_ring_reader *r)
{
    size_t old = 0;
    if (!r->chunk_count) return;
    uint64_t newest = r->chunks[r->chunk_count - 1].seq;
    while (newest - r->chunks[old].seq >= r->identity.chunk_count) old++;
    if (old) memmove(r->chunks, r->chunks + old, (r->chunk_count - old) * sizeof(*r->chunks));
    r->chunk_count -= old;
}

static int
chunk_index_read(struct sdb_ring_reader *r)
{
    const struct sdb_identity *id = &r->identity;
    r->chunk_count = 0;
    for (uint64_t place = 0; place < id->chunk_count; place++) {
        struct sdb_area_header h;
        uint64_t off = id->chunks_off + place * id->chunk_bytes;
        int64_t got = sdb_source_read(&r->source, off, &h, sizeof(h));
        if (got < 0) return SDB_ERR_IO;
        if (got == 0) break; /* truncated: nothing behind here either */
        if (got != sizeof(h) || !sdb_area_header_valid(&h, SDB_CHUNK_MAGIC)) continue;
        if (h.seq % id->chunk_count != place) continue;
        int err = sdb_grow(&r->chunks, &r->chunk_capacity, r->chunk_count + 1, sizeof(*r->chunks));
        if (err) return err;
        r->chunks[r->chunk_count++] = (struct sdb_chunk_ref){h.seq, h.first_ns, off, h.skipped};
    }
    if (r->chunk_count) qsort(r->chunks, r->chunk_count, sizeof(*r->chunks), by_seq);
    drop_old_laps(r);
    return SDB_OK;
}

int
sdb_ring_reader_refresh(struct sdb_ring_reader *r)
{
    uint32_t state;
    int64_t got =
        sdb_source_read(&r->source, offsetof(struct sdb_identity, state), &state, sizeof(state));
    if (got < 0) return SDB_ERR_IO;
    if (got == sizeof(state)) r->identity.state = state;
    int err = state_page_read(r);
    return err ? err : chunk_index_read(r);
}

int
sdb_ring_reader_alive(const struct sdb_ring_reader *r)
{
    if (r->source.fd < 0 || r->source.off != 0) return SDB_ERR_UNSUPPORTED;
    if (r->identity.state == SDB_RING_CLOSED) return 0;
    if (flock(r->source.fd, LOCK_SH | LOCK_NB) == 0) {
        flock(r->source.fd, LOCK_UN);
        return 0;
    }
    return errno == EWOULDBLOCK ? 1 : SDB_ERR_UNSUPPORTED;
}

/* How many bytes the blocks from *at on need that lie before `have`, with the next one's; moves *at behind those that lie
 * before it. 0: no more. */
static size_t
chain_needs(const uint8_t *buffer, size_t have, size_t *at)
{
    while (*at + SDB_BLOCK_HEADER_BYTES <= have) {
        uint32_t bytes;
        memcpy(&bytes, buffer + *at, sizeof(bytes));
        if (bytes == 0 || bytes > SDB_BLOCK_MAX_BYTES) return 0;
        size_t next = *at + SDB_BLOCK_HEADER_BYTES + bytes;
        if (next > have) return next;
        *at = next;
    }
    return *at + SDB_BLOCK_HEADER_BYTES;
}

int
sdb_ring_reader_chunk(const struct sdb_ring_reader *r, size_t i, uint8_t *buffer, size_t *n)
{
    size_t whole = (size_t)r->identity.chunk_bytes, have = 0, at = SDB_AREA_HEADER_BYTES;
    /* no further than its blocks go: the rest may be a hole of gigabytes */
    for (size_t need = at; need && need <= whole; need = chain_needs(buffer, have, &at)) {
        size_t want = need > have + READ_STEP_BYTES ? need : have + READ_STEP_BYTES;
        if (want > whole) want = whole;
        int64_t got =
            sdb_source_read(&r->source, r->chunks[i].off + have, buffer + have, want - have);
        if (got < 0) return SDB_ERR_IO;
        have += (size_t)got;
        if (have < want) break;
        if (have == whole) break;
    }
    struct sdb_area_header h;
    if (have < sizeof(h)) return SDB_ERR_AGAIN;
    memcpy(&h, buffer, sizeof(h));
    if (!sdb_area_header_valid(&h, SDB_CHUNK_MAGIC) || h.seq != r->chunks[i].seq)
        return SDB_ERR_AGAIN;
    *n = have;
    return SDB_OK;
}

bool
sdb_area_header_valid(const struct sdb_area_header *h, uint64_t magic)
{
    if (h->magic != magic) return false;
    size_t hole = offsetof(struct sdb_area_header, crc);
    return crc_without((const uint8_t *)h, sizeof(*h), hole, hole) == h->crc;
}

bool
sdb_block_next(const uint8_t **at, const uint8_t *end, uint64_t seq, struct sdb_bytes *payload)
{
    uint32_t bytes, crc;
    if (end - *at < SDB_BLOCK_HEADER_BYTES) return false;
    memcpy(&bytes, *at, 4);
    memcpy(&crc, *at + 4, 4);
    if (bytes == 0 || bytes > SDB_BLOCK_MAX_BYTES ||
        bytes > (size_t)(end - *at) - SDB_BLOCK_HEADER_BYTES)
        return false;
    uint8_t seed[12];
    memcpy(seed, &seq, 8);
    memcpy(seed + 8, &bytes, 4);
    const uint8_t *body = *at + SDB_BLOCK_HEADER_BYTES;
    if (sdb_crc32c(sdb_crc32c(0, seed, sizeof(seed)), body, bytes) != crc) return false;
    *payload = (struct sdb_bytes){body, bytes};
    *at = body + bytes;
    return true;
}
