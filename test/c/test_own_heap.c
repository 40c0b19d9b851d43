/* SPDX-License-Identifier: MIT - test_own_heap.c - blocks are whole and apart, and no child has them. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/own_heap.h"
#include "t.h"

enum { BLOCKS = 300 };

struct mine {
    uint8_t *at;
    size_t bytes;
    uint8_t fill;
};

static int
wrong(const struct mine *m)
{
    if (((uintptr_t)m->at & 15) != 0) return 1;
    for (size_t i = 0; i < m->bytes; i++)
        if (m->at[i] != m->fill) return 1;
    return 0;
}

static uint64_t
next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return *seed >> 33;
}

static void
a_random_mix_of_sizes_keeps_what_was_written(void)
{
    static struct mine blocks[BLOCKS];
    uint64_t seed = 5;
    int bad = 0;

    for (int round = 0; round < 20000; round++) {
        struct mine *m = &blocks[next(&seed) % BLOCKS];
        size_t bytes = 1 + next(&seed) % (size_t[]){40, 400, 4000, 40000}[next(&seed) % 4];

        bad += wrong(m);
        switch (next(&seed) % 4) {
        case 0:
            sdb_own_free(m->at);
            m->at = sdb_own_calloc(1, bytes);
            m->fill = 0;
            m->bytes = bytes;
            bad += m->at == NULL || wrong(m);
            break;
        case 1:
            sdb_own_free(m->at);
            *m = (struct mine){0};
            continue;
        default:
            m->at = sdb_own_realloc(m->at, bytes);
            if (m->at && bytes > m->bytes) memset(m->at + m->bytes, m->fill, bytes - m->bytes);
            m->bytes = bytes;
            bad += m->at == NULL || wrong(m);
        }
        m->fill = (uint8_t)round;
        memset(m->at, m->fill, m->bytes);
    }
    for (int i = 0; i < BLOCKS; i++) {
        bad += wrong(&blocks[i]);
        sdb_own_free(blocks[i].at);
    }
    CHECK_EQ(bad, 0);
}

static void
what_is_freed_is_used_again(void)
{
    uint64_t before = sdb_own_mapped_bytes();

    for (int i = 0; i < 10000; i++) {
        void *small = sdb_own_alloc(300), *large = sdb_own_alloc(300000);

        NEED(small != NULL && large != NULL);
        large = sdb_own_realloc(large, 700000);
        NEED(large != NULL);
        sdb_own_free(small);
        sdb_own_free(large);
    }
    CHECK(sdb_own_mapped_bytes() - before <= 256 << 10);
    if (before != 0)
        CHECK(sdb_own_calloc(SIZE_MAX / 4, 8) == NULL); /* the sanitizer's own aborts */
}

static int
is_mapped(const void *p)
{
    int pipe_fds[2], mapped;

    if (pipe(pipe_fds) != 0) return -1;
    mapped = write(pipe_fds[1], p, 1) == 1; /* EFAULT when it is not */
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    return mapped;
}

static void
a_child_has_none_of_it_and_begins_its_own(void)
{
    uint8_t *small = sdb_own_calloc(1, 100), *large = sdb_own_calloc(1, 1 << 20);
    int status = 0;

    NEED(small != NULL && large != NULL);
    if (sdb_own_mapped_bytes() == 0) {
        sdb_own_free(small);
        sdb_own_free(large);
        SKIP("built with the sanitizer's heap");
    }
    pid_t pid = fork();
    if (pid == 0) {
        int there = is_mapped(small) || is_mapped(large);

        sdb_own_forget();
        uint8_t *own = sdb_own_calloc(1, 100);
        _exit(there || own == NULL || sdb_own_mapped_bytes() != 256 << 10);
    }
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    CHECK_EQ(is_mapped(large), 1);
    sdb_own_free(small);
    sdb_own_free(large);
}

int
main(void)
{
    RUN(a_random_mix_of_sizes_keeps_what_was_written);
    RUN(what_is_freed_is_used_again);
    RUN(a_child_has_none_of_it_and_begins_its_own);
    return t_done();
}
