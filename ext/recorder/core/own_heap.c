/* SPDX-License-Identifier: MIT
 *
 * own_heap.c - see own_heap.h. Blocks of up to 16 KiB have sizes of powers of two, are cut from slabs, and wait in a list
 * when freed; slabs are never given back. Larger ones have a mapping each.
 */
#define _GNU_SOURCE 1 /* mremap, as ruby.h has it */
#include "core/own_heap.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "sdb_atomic.h"

#ifdef __SANITIZE_ADDRESS__ /* it finds more in its own heap */

void *
sdb_own_alloc(size_t bytes)
{
    return malloc(bytes);
}

void *
sdb_own_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

void *
sdb_own_realloc(void *p, size_t bytes)
{
    return realloc(p, bytes);
}

void
sdb_own_free(void *p)
{
    free(p);
}

void
sdb_own_forget(void)
{
}

uint64_t
sdb_own_mapped_bytes(void)
{
    return 0;
}

#else

enum {
    FIRST_SHIFT = 6, /* 64 bytes */
    CLASSES = 9,     /* to 16 KiB */
    SLAB_BYTES = 256 << 10,
    PAGE_BYTES = 4096,
};

struct block {    /* before what the caller gets */
    size_t bytes; /* with this header: of a class, or of a mapping */
    struct block *next;
};

_Static_assert(sizeof(struct block) == 16, "keeps the alignment");

static struct {
    pthread_mutex_t mutex;
    /* guarded by it */
    struct block *idle[CLASSES];
    uint8_t *slab, *slab_end; /* what is left of the newest */
    uint64_t mapped_bytes;    /* shared: atomic */
} heap = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Zeroed. NULL when out of memory. */
static void *
map_pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
    (void)madvise(p, bytes, MADV_DONTFORK); /* where that is not possible a child keeps it */
    sdb_add_relaxed(&heap.mapped_bytes, bytes);
    return p;
}

static size_t
block_bytes(size_t bytes)
{
    size_t need = bytes + sizeof(struct block);
    for (int i = 0; i < CLASSES; i++) {
        if (need <= (size_t)1 << (FIRST_SHIFT + i)) return (size_t)1 << (FIRST_SHIFT + i);
    }
    return (need + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

static int
class_of(size_t bytes)
{
    return __builtin_ctzll(bytes) - FIRST_SHIFT;
}

static bool
is_small(size_t bytes)
{
    return bytes <= (size_t)1 << (FIRST_SHIFT + CLASSES - 1);
}

/* What is left of the old slab, at least the smallest class of it, goes to the lists. */
static bool
new_slab(void)
{
    uint8_t *slab = map_pages(SLAB_BYTES);
    if (!slab) return false;
    for (int i = CLASSES; i-- > 0;) {
        size_t bytes = (size_t)1 << (FIRST_SHIFT + i);
        while ((size_t)(heap.slab_end - heap.slab) >= bytes) {
            struct block *b = (struct block *)heap.slab;
            *b = (struct block){.bytes = bytes, .next = heap.idle[i]};
            heap.idle[i] = b;
            heap.slab += bytes;
        }
    }
    heap.slab = slab;
    heap.slab_end = slab + SLAB_BYTES;
    return true;
}

/* *zeroed: it was never used. */
static struct block *
take_small(size_t bytes, bool *zeroed)
{
    int class = class_of(bytes);
    struct block *b = heap.idle[class];
    *zeroed = false;
    if (b) {
        heap.idle[class] = b->next;
        return b;
    }
    if ((size_t)(heap.slab_end - heap.slab) < bytes && !new_slab()) return NULL;
    b = (struct block *)heap.slab;
    heap.slab += bytes;
    b->bytes = bytes;
    *zeroed = true;
    return b;
}

static struct block *
take(size_t bytes, bool *zeroed)
{
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = block_bytes(bytes);
    *zeroed = true;
    struct block *b;
    if (is_small(bytes)) {
        pthread_mutex_lock(&heap.mutex);
        b = take_small(bytes, zeroed);
        pthread_mutex_unlock(&heap.mutex);
    } else {
        b = map_pages(bytes);
        if (b) b->bytes = bytes;
    }
    return b;
}

void *
sdb_own_alloc(size_t bytes)
{
    bool zeroed;
    struct block *b = take(bytes, &zeroed);
    return b ? b + 1 : NULL;
}

void *
sdb_own_calloc(size_t count, size_t size)
{
    bool zeroed;
    if (size && count > SIZE_MAX / 2 / size) return NULL;
    struct block *b = take(count * size, &zeroed);
    if (!b) return NULL;
    if (!zeroed) memset(b + 1, 0, count * size);
    return b + 1;
}

void
sdb_own_free(void *p)
{
    if (!p) return;
    struct block *b = (struct block *)p - 1;
    if (!is_small(b->bytes)) {
        sdb_add_relaxed(&heap.mapped_bytes, -(uint64_t)b->bytes);
        munmap(b, b->bytes);
        return;
    }
    int class = class_of(b->bytes);
    pthread_mutex_lock(&heap.mutex);
    b->next = heap.idle[class];
    heap.idle[class] = b;
    pthread_mutex_unlock(&heap.mutex);
}

void *
sdb_own_realloc(void *p, size_t bytes)
{
    if (!p) return sdb_own_alloc(bytes);
    if (bytes > SIZE_MAX / 2) return NULL;
    struct block *b = (struct block *)p - 1;
    size_t had = b->bytes, want = block_bytes(bytes);
    if (want == had) return p;
    if (!is_small(had) && !is_small(want)) {
        b = mremap(b, had, want, MREMAP_MAYMOVE); /* it stays what madvise made it */
        if (b == MAP_FAILED) return NULL;
        sdb_add_relaxed(&heap.mapped_bytes, want - had);
        b->bytes = want;
        return b + 1;
    }
    void *other = sdb_own_alloc(bytes);
    if (!other) return NULL;
    size_t kept = (had < want ? had : want) - sizeof *b;
    memcpy(other, p, kept < bytes ? kept : bytes);
    sdb_own_free(p);
    return other;
}

void
sdb_own_forget(void)
{
    memset(&heap, 0, sizeof heap);
    pthread_mutex_init(&heap.mutex, NULL);
}

uint64_t
sdb_own_mapped_bytes(void)
{
    return sdb_load_relaxed(&heap.mapped_bytes);
}

#endif
