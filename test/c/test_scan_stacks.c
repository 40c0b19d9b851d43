/* SPDX-License-Identifier: MIT - test_scan_stacks.c - stacks of each kind of frame, and stacks that move, vanish or lie while
 * they are read. */
#include "scan_log.h"

#include "scan/event_feed.h"
#include "scan/upkeep.h"
#include "scan/walk.h"

#include "core/testpoint.h"

static struct fake_ment ment_a, ment_b, ment_c;
static const uint64_t iseq_a[4], iseq_b[4], iseq_c[4], iseq_d[4];
static struct fake_thread t;

/* frame kinds of vm_core.h that scan_support.h does not have */
enum {
    CLASS = 0x33330001 | 0x2,
    TOP = 0x44440001 | 0x2,
    IFUNC = 0x66660001,
    EVAL = 0x77770001,
    RESCUE = 0x78880001,
    DUMMY = 0x79990001 | 0x2,
    BMETHOD = 0x40,
    IMEMO_ENV = 0x1a,
    IMEMO_SVAR = 0x1a | 2 << 12,
};

static uint64_t
at(const void *object)
{
    return (uint64_t)(uintptr_t)object;
}

static void
begin(void)
{
    fake_begin(true);
    fake_tick();
    fake_thread_begin(&t, 1, SDB_RUNNING);
}

/* A frame of that kind, with what its ep[-2] and ep[-1] hold. Returns its ep. */
static uint64_t
push(uint64_t iseq, uint64_t me, uint64_t spec, uint64_t flags)
{
    fake_call(&t, iseq ? iseq : 8, NULL, 8);
    uint64_t *ep = t.stack + t.sp - 1, *frame = fake_frame(&t, t.depth - 1);
    ep[-2] = me;
    ep[-1] = spec;
    ep[0] = flags;
    frame[fake_layout.cfp_iseq / 8] = iseq;
    return at(ep);
}

static uint64_t
code_ment(unsigned n)
{
    return sdb_code_table_entry(fake.scanner.codes, n)->ment;
}

static void
each_kind_of_frame_is_shown_as_backtraces_show_it(void)
{
    begin();
    push(at(iseq_a), 0, 0, TOP);
    push(at(iseq_b), 0, 0, CLASS);
    uint64_t method = push(at(iseq_b), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    uint64_t block = push(at(iseq_c), 0, method | 1, FAKE_BLOCK);
    push(at(iseq_a), 0, block | 1, EVAL);
    push(at(iseq_d), 0, block | 1, RESCUE);
    push(at(iseq_c), at(fake_ment(&ment_b)), 0, FAKE_BLOCK | BMETHOD);
    push(8, 0, method | 1, IFUNC); /* a C block: shown as the method it stands in */
    push(8, at(fake_ment(&ment_c)), 0, IFUNC | BMETHOD);
    push(0, at(fake_ment(&ment_c)), 0, FAKE_CFUNC);
    push(0, 0, 0, DUMMY);
    fake_tick();
    unsigned n = 1;
    CHECK_EQ(code_ment(n++), 0);
    CHECK_EQ(code_ment(n++), 0);
    CHECK_EQ(code_ment(n++), at(ment_a.words));
    CHECK_EQ(code_ment(n++), at(ment_a.words));
    CHECK_EQ(code_ment(n++), at(ment_a.words));
    CHECK_EQ(code_ment(n++), at(ment_a.words));
    CHECK_EQ(code_ment(n++), at(ment_b.words) | SDB_CODE_BMETHOD);
    CHECK_EQ(code_ment(n), at(ment_a.words));
    CHECK_EQ(sdb_code_table_entry(fake.scanner.codes, n++)->iseq, 0);
    CHECK_EQ(code_ment(n), at(ment_c.words));
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 10); /* all but the dummy */
}

static void
a_method_whose_entry_lies_behind_an_svar_is_known(void)
{
    static uint64_t svar[4] = {IMEMO_SVAR};
    begin();
    svar[1] = at(fake_ment(&ment_a));
    push(at(iseq_a), at(svar), 0, FAKE_METHOD);
    fake_tick();
    CHECK_EQ(code_ment(1), at(ment_a.words));
    /* found again by the svar's own word */
    push(at(iseq_b), at(fake_ment(&ment_b)), 0, FAKE_METHOD);
    fake_tick();
    log_read();
    CHECK_EQ(log_depth(log_sample(-1)), 2);
}

static void
a_method_entry_that_is_none_ends_what_is_kept_and_a_cref_is_no_entry(void)
{
    static uint64_t cref[4] = {0x1a | 1 << 12}, string[4] = {5};
    begin();
    push(at(iseq_a), at(cref), 0, FAKE_METHOD); /* as that of <main> in some versions: no entry */
    push(at(iseq_b), at(string), 0,
         FAKE_METHOD); /* no imemo at all: seen in the midst of a change */
    fake_tick();
    CHECK_EQ(code_ment(1), 0);
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_TORN_TOP], 1);
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 1);
}

static void
a_blocks_environment_on_the_heap_is_followed(void)
{
    static uint64_t heap[4], env[4] = {IMEMO_ENV}, frameless[4];
    begin();
    /* the method's frame is gone; its environment moved to the heap: { me, spec, flags } */
    heap[0] = at(fake_ment(&ment_a));
    heap[2] = FAKE_METHOD;
    push(at(iseq_b), 0, at(heap + 2) | 1, FAKE_BLOCK);
    fake_tick();
    CHECK_EQ(code_ment(1), at(ment_a.words));
    /* and one that is just moving: its place has the env object instead of flags */
    frameless[2] = at(env);
    env[2] = at(heap + 2);
    push(at(iseq_c), 0, at(frameless + 2) | 1, FAKE_BLOCK);
    fake_tick();
    CHECK_EQ(code_ment(2), at(ment_a.words));
    env[2] = at(frameless + 2); /* an env that says it is itself: never ends, is not believed */
    push(at(iseq_a), 0, at(frameless + 2) | 1, FAKE_BLOCK);
    fake_tick();
    CHECK(fake.scanner.counters[SDB_C_LOST_TORN_TOP] > 0);
    log_read();
    CHECK_EQ(log_depth(log_sample(-1)), 2);
}

static void
blocks_nested_without_end_do_not_hang_the_scanner(void)
{
    static uint64_t loop[4];
    begin();
    loop[1] = at(loop + 2) | 1;
    loop[2] = FAKE_BLOCK;
    push(at(iseq_a), 0, at(loop + 2) | 1, FAKE_BLOCK);
    fake_tick();
    CHECK_EQ(code_ment(1), 0);
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 1);
}

static void
an_environment_of_a_c_function_or_define_method_gives_its_entry(void)
{
    static uint64_t c_env[4], b_env[4];
    begin();
    c_env[0] = at(fake_ment(&ment_a));
    c_env[2] = FAKE_CFUNC;
    b_env[0] = at(fake_ment(&ment_b));
    b_env[2] = FAKE_BLOCK | BMETHOD;
    push(at(iseq_a), 0, at(c_env + 2) | 1, FAKE_BLOCK);
    push(at(iseq_b), 0, at(b_env + 2) | 1, FAKE_BLOCK);
    fake_tick();
    CHECK_EQ(code_ment(1), at(ment_a.words));
    CHECK_EQ(code_ment(2), at(ment_b.words));
    log_read();
}

static void
frames_that_make_no_sense_end_what_is_kept(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    push(at(iseq_b), at(fake_ment(&ment_b)), 0, 0x12340001 | 0x2); /* no kind of frame */
    push(at(iseq_c), at(fake_ment(&ment_c)), 0, FAKE_METHOD);
    fake_tick();
    t.stack[4 + 1] = 0; /* flags of the second that are no Fixnum */
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_TORN_TOP], 2);
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 1);
}

static void
bounds_that_cannot_be_a_stack_are_torn_and_counted(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    fake_tick();
    const uint64_t good[3] = {t.ec[0], t.ec[1], t.ec[2]};
    const uint64_t bad[][3] = {
        {good[0] + 4, good[1], good[2]},        /* not aligned */
        {good[0], 100, good[2]},                /* smaller than any stack */
        {good[0], 1 << 25, good[2]},            /* larger */
        {good[0], good[1], good[0] - 8},        /* cfp below */
        {good[0], good[1], fake_high(&t) + 56}, /* above */
        {good[0], good[1], good[2] + 8},        /* in the middle of a frame */
    };
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++) {
        memcpy(t.ec, bad[i], sizeof bad[i]);
        fake_tick();
        CHECK_EQ(fake.scanner.counters[SDB_C_LOST_TORN], i + 1);
    }
    memcpy(t.ec, good, sizeof good);
    fake_tick();
    log_read();
    CHECK_EQ(log_sample(1)->more & SDB_MORE_NO_STACK, SDB_MORE_NO_STACK);
    CHECK_EQ(log_depth(log_sample(1)), 1); /* the last known one */
    CHECK_EQ(log_sample(-1)->more & SDB_MORE_NO_STACK, 0);
}

static void
a_stack_deeper_than_the_limit_is_cut_and_said_to_be(void)
{
    static uint64_t deep[(SDB_MAX_DEPTH + 200) * 8];
    begin();
    uint64_t words = sizeof deep / sizeof *deep, ep = at(t.stack + 2);
    t.stack[0] = at(fake_ment(&ment_a));
    t.stack[2] = FAKE_METHOD;
    uint64_t cfp = at(deep + words);
    for (unsigned i = 0; i < SDB_MAX_DEPTH + 10; i++) {
        uint64_t *frame = (uint64_t *)(uintptr_t)(cfp -= FAKE_CFP_BYTES);
        frame[fake_layout.cfp_pc / 8] = 8;
        frame[fake_layout.cfp_iseq / 8] = at(iseq_a);
        frame[fake_layout.cfp_ep / 8] = ep;
    }
    t.ec[0] = at(deep);
    t.ec[1] = words;
    t.ec[2] = cfp;
    fake_tick();
    fake_tick();
    uint64_t truncated = fake.scanner.counters[SDB_C_LOST_TRUNCATED];
    sdb_upkeep_second(&fake.scanner);
    CHECK(fake.scanner.counters[SDB_C_LOST_TRUNCATED] > truncated);
    log_read();
    CHECK_EQ(log_sample(0)->more & SDB_MORE_TRUNCATED, SDB_MORE_TRUNCATED);
}

/* ---- stacks that move while they are read: the hook acts at each pass through a point ---- */

static const char *when;
static int times;
static void (*act)(void);

static void
on_point(const char *point)
{
    if (strcmp(point, when) != 0 || times == 0) return;
    times--;
    act();
}

static void
tick_while(const char *point, int how_often, void (*action)(void))
{
    when = point;
    times = how_often;
    act = action;
    sdb_testpoint_hook = on_point;
    fake_tick();
    sdb_testpoint_hook = NULL;
    CHECK_EQ(times, 0);
}

static void
return_and_call_another(void)
{
    fake_return(&t);
    fake_call(&t, at(iseq_c), fake_ment(&ment_c), 8);
}

static void
the_same_depth_with_another_frame_is_read_again(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    push(at(iseq_b), at(fake_ment(&ment_b)), 0, FAKE_METHOD);
    tick_while("walk_collected", 1, return_and_call_another); /* once: the next try sees c whole */
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_TORN_TOP], 0);
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 2);
    CHECK_EQ(log_count(SDB_R_NODE), 2); /* b, which was never proven, is in no log */
}

static void
fall_to_the_root(void)
{
    fake_return(&t);
    fake_return(&t);
}

static void
what_was_below_the_lowest_point_of_a_fall_stays(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    push(at(iseq_b), at(fake_ment(&ment_b)), 0, FAKE_METHOD);
    push(at(iseq_c), at(fake_ment(&ment_c)), 0, FAKE_METHOD);
    tick_while("walk_collected", 1, fall_to_the_root);
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 1);
}

static void
vanish(void)
{
    t.ec[0] = 0;
}

static void
a_thread_that_ends_while_it_is_read_has_no_stack(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    tick_while("walk_collected", 1, vanish);
    log_read();
    CHECK_EQ(log_sample(0)->node, 0);
}

static void
a_gc_comes(void)
{
    fake.gc_epoch += 2; /* it marked between our reading and our publication */
}

static void
codes_are_taken_back_when_a_gc_came_between_reading_and_publishing(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    tick_while("walk_publish", 1, a_gc_comes);
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_GC], 1);
    CHECK_EQ(sdb_code_table_young_count(fake.scanner.codes), 0);
    fake_tick();
    CHECK_EQ(sdb_code_table_young_count(fake.scanner.codes), 1);
    log_read();
    CHECK_EQ(log_depth(log_sample(-1)), 1);
}

static void
get_the_gvl_and_call_another(void)
{
    fake_enter(&t, SDB_RUNNING);
    return_and_call_another();
}

/* Who waits for the GVL stands still, so one reading is enough; unless it got the GVL just then. */
static void
a_waiting_thread_that_gets_the_gvl_meanwhile_is_read_as_one_that_runs(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    fake_tick();
    push(at(iseq_b), at(fake_ment(&ment_b)), 0, FAKE_METHOD);
    fake_enter(&t, SDB_GVL_WAIT);
    tick_while("walk_collected", 1, get_the_gvl_and_call_another);
    uint32_t c = sdb_code_table_find(fake.scanner.codes, at(iseq_c), at(ment_c.words));
    CHECK(c != 0);
    uint32_t id = sdb_code_table_entry(fake.scanner.codes, c)->id;
    log_read();
    CHECK_EQ(log_nth(SDB_R_NODE, (int)log_sample(-1)->node - 1)->code, id);
}

static void
a_frame_of_a_jit_has_no_line(void)
{
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    push(at(iseq_b), at(fake_ment(&ment_b)), 0, FAKE_METHOD);
    fake_frame(&t, 1)[fake_layout.cfp_jit_return / 8] = 0x1000;
    fake_tick();
    log_read();
    CHECK_EQ(log_nth(SDB_R_NODE, 0)->where, 8);
    CHECK_EQ(log_nth(SDB_R_NODE, 1)->where, 0);
}

/* A fiber's ec may be freed, and its stack unmapped: it is read by system calls, and an address that is none is none. */
static void
a_fibers_stack_is_read_safely(void)
{
    static struct fake_thread fiber;
    begin();
    push(at(iseq_a), at(fake_ment(&ment_a)), 0, FAKE_METHOD);
    fake_tick();
    fiber.ec[0] = at(fiber.stack);
    fiber.ec[1] = FAKE_STACK_WORDS;
    fiber.ec[2] = fake_high(&fiber);
    fake_call(&fiber, at(iseq_b), fake_ment(&ment_b), 8);
    fake_call(&fiber, at(iseq_c), fake_ment(&ment_c), 8);
    t.thread[48 / 8] = at(fiber.ec);
    fake_tick();
    t.thread[48 / 8] = 4096; /* freed */
    fake_tick();
    t.thread[48 / 8] = at(fiber.ec);
    fiber.ec[0] = 4096 * 8; /* its stack is no memory of ours */
    fiber.ec[2] = 4096 * 8 + FAKE_STACK_WORDS * 8 - FAKE_CFP_BYTES;
    fake_tick();
    log_read();
    CHECK_EQ(log_depth(log_sample(0)), 1);
    CHECK_EQ(log_depth(log_sample(1)), 2);
    CHECK_EQ(log_sample(2)->node, 0);
}

int
main(void)
{
    RUN(each_kind_of_frame_is_shown_as_backtraces_show_it);
    RUN(a_method_whose_entry_lies_behind_an_svar_is_known);
    RUN(a_method_entry_that_is_none_ends_what_is_kept_and_a_cref_is_no_entry);
    RUN(a_blocks_environment_on_the_heap_is_followed);
    RUN(blocks_nested_without_end_do_not_hang_the_scanner);
    RUN(an_environment_of_a_c_function_or_define_method_gives_its_entry);
    RUN(frames_that_make_no_sense_end_what_is_kept);
    RUN(bounds_that_cannot_be_a_stack_are_torn_and_counted);
    RUN(a_stack_deeper_than_the_limit_is_cut_and_said_to_be);
    RUN(the_same_depth_with_another_frame_is_read_again);
    RUN(what_was_below_the_lowest_point_of_a_fall_stays);
    RUN(a_thread_that_ends_while_it_is_read_has_no_stack);
    RUN(codes_are_taken_back_when_a_gc_came_between_reading_and_publishing);
    RUN(a_waiting_thread_that_gets_the_gvl_meanwhile_is_read_as_one_that_runs);
    RUN(a_frame_of_a_jit_has_no_line);
    RUN(a_fibers_stack_is_read_safely);
    return t_done();
}
