/* SPDX-License-Identifier: MIT
 *
 * test_calibrate_walk.c - calibration against worlds of our own making: VMs whose structs are laid out by chance, full of
 * junk that looks like pointers. It must find the layout of each, and end in words, not in a fault, when there is none.
 */
#include "t.h"

#include <sys/mman.h>

#include "vm/calibrate_walk.c" /* its only user here, and not part of the core that the Makefile lists */

enum { WORLDS = 400, CODES = 6, OLDER = 4, STACK_WORDS = 2048, LEAVE = 0x1ea7e };

enum code { X, A, Y, B, C, BLOCK }; /* as in calibrate.c's script */

struct world {
    struct sdb_layout layout;
    unsigned sp_at; /* in a frame */
    uint64_t seed;
    uint64_t thread[64], context[64];
    uint64_t *stack;
    struct fake_code {
        uint64_t iseq[16], body[32];
        uint64_t *encoded;
        unsigned size, position;
        uint64_t ment;
    } codes[CODES];
    uint64_t measure_ment;
    struct sdb_search_frame frames[SDB_SEARCH_MAX_FRAMES];
    unsigned count;
    unsigned depth; /* frames in all */
};

static struct world *current; /* line_of has no argument for it */

static unsigned
below(struct world *w, unsigned n)
{
    return (unsigned)(t_random(&w->seed) % n);
}

static uint64_t
address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* Words as they lie around in a VM. */
static uint64_t
junk(struct world *w)
{
    switch (below(w, 8)) {
    case 0:
        return 0;
    case 1:
        return below(w, 16);
    case 2:
        return t_random(&w->seed); /* anything */
    case 3:
        return address(&w->stack[below(w, STACK_WORDS)]); /* in the stack */
    case 4:
        return address(w->codes[below(w, CODES)].iseq); /* another object */
    case 5:
        return address(&w->thread[below(w, 8) + 1]); /* near the thread */
    case 6:
        return 8ull * (0x1000 + below(w, 1 << 20)); /* not mapped */
    default:
        return address(w->codes[below(w, CODES)].encoded) +
               8 * (60 + below(w, 100)); /* near instructions */
    }
}

/* A word offset in [0, limit) bytes that is not among the taken ones. */
static unsigned
place(struct world *w, unsigned limit, const unsigned *taken, unsigned count)
{
    for (;;) {
        unsigned at = 8 * below(w, limit / 8);
        bool free = true;
        for (unsigned i = 0; i < count; i++) {
            free &= taken[i] != at;
        }
        if (free) {
            return at;
        }
    }
}

static void
choose_layout(struct world *w)
{
    struct sdb_layout *l = &w->layout;
    unsigned taken[8];
    *l = (struct sdb_layout){.thread_ec = 8 * below(w, 24), .cfp_bytes = 40 + 8 * below(w, 8)};
    l->ec_vm_stack = taken[0] = place(w, 40, taken, 0);
    l->ec_vm_stack_size = taken[1] = place(w, 40, taken, 1);
    l->ec_cfp = taken[2] = place(w, 40, taken, 2);
    l->ec_thread = place(w, 96, taken, 3);
    l->cfp_pc = taken[0] = place(w, l->cfp_bytes, taken, 0);
    l->cfp_iseq = taken[1] = place(w, l->cfp_bytes, taken, 1);
    l->cfp_ep = taken[2] = place(w, l->cfp_bytes, taken, 2);
    w->sp_at = place(w, l->cfp_bytes, taken, 3);
    l->iseq_body = 8 + 8 * below(w, 7);
    l->body_iseq_encoded = taken[0] = place(w, 64, taken, 0);
    l->body_iseq_size = place(w, 64, taken, 1) + 4 * below(w, 2);
}

static void
make_code(struct world *w, unsigned i)
{
    struct fake_code *code = &w->codes[i];
    code->size = 30 + below(w, 100);
    code->position = SDB_SEARCH_MIN_POS + below(w, 10);
    code->encoded = calloc(code->size, 8);
    code->ment = address(code) + 0x100000; /* never read */
}

static void
fill_code(struct world *w, unsigned i)
{
    struct fake_code *code = &w->codes[i];
    for (unsigned j = 0; j < 16; j++) code->iseq[j] = junk(w);
    for (unsigned j = 0; j < 32; j++) code->body[j] = junk(w);
    for (unsigned j = 0; j < code->size; j++) code->encoded[j] = t_random(&w->seed);
    code->encoded[code->size - 1] = LEAVE;
    code->iseq[w->layout.iseq_body / 8] = address(code->body);
    code->body[w->layout.body_iseq_encoded / 8] = address(code->encoded);
    memcpy((char *)code->body + w->layout.body_iseq_size, &code->size, sizeof(code->size));
}

/* The line of a position, as a VM has it: a few instructions a line. */
static unsigned
fake_line(uint64_t iseq, unsigned position)
{
    for (unsigned i = 0; i < CODES; i++) {
        if (address(current->codes[i].iseq) == iseq) {
            return 10 * i + position / 8;
        }
    }
    CHECK(!"the line of something that is no iseq was asked for");
    return 0;
}

static void
add_frame(struct world *w, enum sdb_search_kind kind, unsigned code)
{
    struct sdb_search_frame *f = &w->frames[w->count++];
    f->kind = kind;
    f->home = 3;
    f->line = kind == SDB_SEARCH_C
                  ? 0
                  : (int)fake_line(address(w->codes[code].iseq), w->codes[code].position);
    f->entry = kind == SDB_SEARCH_C         ? w->measure_ment
               : kind == SDB_SEARCH_BMETHOD ? address(w->codes[code].iseq)
                                            : w->codes[kind == SDB_SEARCH_BLOCK ? B : code].ment;
}

static void
write_frames(struct world *w, const unsigned *codes)
{
    uint64_t env[SDB_SEARCH_MAX_FRAMES], top = 3 + 3 * OLDER;
    w->depth = w->count + OLDER;
    char *end = (char *)(w->stack + STACK_WORDS),
         *cfp = end - (size_t)w->depth * w->layout.cfp_bytes;
    for (unsigned i = w->count; i-- > 0;) { /* oldest first, as environments lie */
        top += 3 + below(w, 6);
        env[i] = address(&w->stack[top]);
        w->stack[top - 2] =
            w->frames[i].kind == SDB_SEARCH_C || w->frames[i].kind == SDB_SEARCH_METHOD
                ? w->frames[i].entry
            : w->frames[i].kind == SDB_SEARCH_BMETHOD ? 0x7654320
                                                      : 0;
        w->stack[top - 1] = w->frames[i].kind == SDB_SEARCH_BLOCK ? env[w->frames[i].home] | 1 : 0;
        w->stack[top] = 0x11110003;
    }
    for (unsigned i = 0; i < w->depth; i++) {
        uint64_t *frame = (uint64_t *)(void *)(cfp + (size_t)i * w->layout.cfp_bytes);
        for (unsigned j = 0; j < w->layout.cfp_bytes / 8; j++) frame[j] = junk(w);
        if (i + 1 == w->depth) frame[w->sp_at / 8] = address(&w->stack[3 + below(w, 3)]);
        if (i >= w->count) continue;
        bool c = w->frames[i].kind == SDB_SEARCH_C;
        frame[w->layout.cfp_ep / 8] = env[i];
        frame[w->layout.cfp_iseq / 8] = c ? 0 : address(w->codes[codes[i]].iseq);
        frame[w->layout.cfp_pc / 8] =
            c ? 0 : address(w->codes[codes[i]].encoded + w->codes[codes[i]].position + 1);
    }
    w->context[w->layout.ec_cfp / 8] = address(cfp);
}

static struct world *
world_new(uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));
    static const unsigned codes[] = {0, BLOCK, C, B, Y, A, A, X};
    NEED(w);
    w->seed = seed;
    w->stack = calloc(STACK_WORDS, 8);
    w->measure_ment = 0x12345678;
    current = w;
    choose_layout(w);
    for (unsigned i = 0; i < CODES; i++) make_code(w, i);
    for (unsigned i = 0; i < CODES; i++) fill_code(w, i);
    for (unsigned i = 0; i < 64; i++) w->thread[i] = junk(w);
    for (unsigned i = 0; i < 64; i++) w->context[i] = junk(w);
    w->thread[w->layout.thread_ec / 8] = address(w->context);
    w->context[w->layout.ec_thread / 8] = address(w->thread);
    w->context[w->layout.ec_vm_stack / 8] = address(w->stack);
    w->context[w->layout.ec_vm_stack_size / 8] = STACK_WORDS;
    add_frame(w, SDB_SEARCH_C, 0);
    add_frame(w, SDB_SEARCH_BLOCK, BLOCK);
    add_frame(w, SDB_SEARCH_METHOD, C);
    add_frame(w, SDB_SEARCH_METHOD, B);
    add_frame(w, SDB_SEARCH_BMETHOD, Y);
    add_frame(w, SDB_SEARCH_METHOD, A);
    add_frame(w, SDB_SEARCH_METHOD, A);
    add_frame(w, SDB_SEARCH_BMETHOD, X);
    write_frames(w, codes);
    return w;
}

static void
world_free(struct world *w)
{
    for (unsigned i = 0; i < CODES; i++) free(w->codes[i].encoded);
    free(w->stack);
    free(w);
}

static int
find(struct world *w, struct sdb_layout *found, char reason[SDB_REASON_BYTES])
{
    current = w;
    return sdb_search_find(address(w->thread), w->frames, w->count, fake_line, found, reason);
}

static void
every_layout_is_found(void)
{
    unsigned found_count = 0, wrong = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world *w = world_new(seed * 7919);
        struct sdb_layout found;
        char reason[SDB_REASON_BYTES] = "";
        if (find(w, &found, reason) == 0) {
            found_count++;
            wrong += memcmp(&found, &w->layout, sizeof(found)) != 0;
            CHECK_EQ(sdb_search_check(&found, address(w->thread)), 0);
        } else {
            printf("world %" PRIu64 ": %s\n", seed, reason);
        }
        world_free(w);
    }
    CHECK_EQ(wrong, 0);
    /* Junk may by chance look like a second layout; then it is refused. */
    CHECK(found_count >= WORLDS * 97 / 100);
    printf("%u of %d layouts found, the others refused\n", found_count, WORLDS);
}

static void
a_world_with_a_changed_word_is_never_read_wrongly(void)
{
    unsigned refused = 0, wrong = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world *w = world_new(seed * 104729);
        struct sdb_layout found, *l = &w->layout;
        char reason[SDB_REASON_BYTES] = "";
        uint64_t *frame = (uint64_t *)(uintptr_t)w->context[l->ec_cfp / 8] +
                          (l->cfp_bytes / 8) * (1 + below(w, w->count - 1));
        struct fake_code *code = &w->codes[below(w, CODES)];
        uint64_t *vital[] = {
            &w->thread[l->thread_ec / 8],    &w->context[l->ec_thread / 8],
            &w->context[l->ec_vm_stack / 8], &w->context[l->ec_vm_stack_size / 8],
            &w->context[l->ec_cfp / 8],      &frame[l->cfp_pc / 8],
            &frame[l->cfp_iseq / 8],         &frame[l->cfp_ep / 8],
            &code->iseq[l->iseq_body / 8],   &code->body[l->body_iseq_encoded / 8],
        };
        uint64_t *victim = vital[below(w, sizeof(vital) / sizeof(vital[0]))], before = *victim;
        do {
            *victim = junk(w);
        } while (*victim == before);
        if (find(w, &found, reason) != 0) {
            refused++;
            CHECK(reason[0] != '\0');
        } else {
            wrong += memcmp(&found, l, sizeof(found)) != 0;
        }
        world_free(w);
    }
    CHECK_EQ(wrong, 0);
    CHECK(refused > WORLDS * 9 / 10);
}

static void
a_thread_that_is_not_there_is_words(void)
{
    struct world *w = world_new(1);
    struct sdb_layout found;
    char reason[SDB_REASON_BYTES] = "";
    void *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(hole != MAP_FAILED);
    uint64_t places[] = {0, 8, 0x7fffffffffff0000ull, ~7ull, address(hole)};
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        reason[0] = '\0';
        CHECK(sdb_search_find(places[i], w->frames, w->count, fake_line, &found, reason) < 0);
        CHECK(reason[0] != '\0');
        CHECK_EQ(sdb_search_check(&w->layout, places[i]), SDB_ERR_AGAIN);
    }
    munmap(hole, 8192);
    world_free(w);
}

static void
a_thread_without_a_stack_is_not_checked_as_one(void)
{
    struct world *w = world_new(2);
    w->context[w->layout.ec_vm_stack / 8] = 0;
    CHECK_EQ(sdb_search_check(&w->layout, address(w->thread)), SDB_ERR_AGAIN);
    w->context[w->layout.ec_cfp / 8] = 0;
    CHECK_EQ(sdb_search_check(&w->layout, address(w->thread)), SDB_ERR_AGAIN);
    world_free(w);
}

static void
too_many_frames_are_refused(void)
{
    struct world *w = world_new(3);
    struct sdb_layout found;
    char reason[SDB_REASON_BYTES] = "";
    CHECK(sdb_search_find(address(w->thread), w->frames, SDB_SEARCH_MAX_FRAMES + 1, fake_line,
                          &found, reason) < 0);
    world_free(w);
}

int
main(void)
{
    if (sdb_safe_read_probe() == SDB_SAFE_READ_NONE) {
        printf("skip: this sandbox lets no process read its own memory\n");
        return 77;
    }
    RUN(every_layout_is_found);
    RUN(a_world_with_a_changed_word_is_never_read_wrongly);
    RUN(a_thread_that_is_not_there_is_words);
    RUN(a_thread_without_a_stack_is_not_checked_as_one);
    RUN(too_many_frames_are_refused);
    return t_done();
}
