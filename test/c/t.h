/* SPDX-License-Identifier: MIT
 *
 * t.h - what a C test program needs. Each program tests one unit: RUN(test) in main, `return t_done()`.
 * Exit 0 all passed, 1 something failed, 77 nothing could be tried (each skip prints its reason).
 */
#ifndef SDB_T_H
#define SDB_T_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int t_tests, t_checks, t_failures, t_skips;
static const char *t_name = "";

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        t_checks++;                                                                                \
        if (!(condition)) {                                                                        \
            t_failures++;                                                                          \
            fprintf(stderr, "%s:%d: %s: failed: %s\n", __FILE__, __LINE__, t_name, #condition);    \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(actual, expected)                                                                 \
    do {                                                                                           \
        int64_t a_ = (int64_t)(actual), e_ = (int64_t)(expected);                                  \
        t_checks++;                                                                                \
        if (a_ != e_) {                                                                            \
            t_failures++;                                                                          \
            fprintf(stderr, "%s:%d: %s: %s is %" PRId64 ", expected %" PRId64 "\n", __FILE__,      \
                    __LINE__, t_name, #actual, a_, e_);                                            \
        }                                                                                          \
    } while (0)

/* What the test cannot do without: ends the program. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        t_checks++;                                                                                \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: cannot go on: %s (%s)\n", __FILE__, __LINE__, t_name,      \
                    #condition, strerror(errno));                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        t_skips++;                                                                                 \
        printf("skip: %s: %s\n", t_name, reason);                                                  \
        return;                                                                                    \
    } while (0)

/* A test that checked nothing has failed, unless it said that it was skipped. */
#define RUN(test)                                                                                  \
    do {                                                                                           \
        int checks_ = t_checks, skips_ = t_skips;                                                  \
        t_name = #test;                                                                            \
        t_tests++;                                                                                 \
        test();                                                                                    \
        if (t_checks == checks_ && t_skips == skips_) {                                            \
            t_failures++;                                                                          \
            fprintf(stderr, "%s: checked nothing\n", t_name);                                      \
        }                                                                                          \
    } while (0)

static inline int
t_done(void)
{
    printf("%d tests, %d checks, %d failures, %d skips\n", t_tests, t_checks, t_failures, t_skips);
    if (t_failures > 0) return 1;
    return t_tests > 0 && t_skips == t_tests ? 77 : 0;
}

/* A new directory below $TMPDIR; t_rmdir removes it with its files (one level). */
static inline void
t_mkdir(char path[256])
{
    const char *base = getenv("TMPDIR");

    snprintf(path, 256, "%s/sdb-c-XXXXXX", base != NULL && strlen(base) < 200 ? base : "/tmp");
    if (mkdtemp(path) == NULL) {
        perror(path);
        exit(1);
    }
}

/* A small generator for randomized tests; the seed is printed by who uses it. */
static inline uint64_t
t_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

#endif
