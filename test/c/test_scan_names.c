/* SPDX-License-Identifier: MIT - test_scan_names.c - names from the symbolizer into the symbol areas: new, wrong, too many,
 * not used any more. The test is the symbolizer. */
#define _GNU_SOURCE 1 /* memmem */
#include "scan_log.h"

#include "scan/event_feed.h"
#include "scan/upkeep.h"
#include "scan/walk.h"

static struct fake_ment ment_a, ment_b;
static uint64_t iseqs[4096][2];
static struct fake_thread t;
static struct sdb_line_run lines[] = {{0, 10}, {2, 11}, {5, 0}};

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

/* Names the oldest code that waits. name: NULL when its proof failed. */
static bool
name_one(const char *name)
{
    struct sdb_young young;
    if (!sdb_code_table_young_peek(fake.scanner.codes, &young)) return false;
    struct sdb_named *named = calloc(1, sizeof *named);
    NEED(named != NULL);
    named->symbol = (struct sdb_symbol){
        .kind = name ? SDB_CODE_RUBY : SDB_CODE_INVALID,
        .base = 1000,
        .instruction_count = 10,
        .first_line = 10,
        .name = name,
        .name_bytes = name ? (uint32_t)strlen(name) : 0,
        .path = "/app/a.rb",
        .path_bytes = 9,
        .line_runs = lines,
        .line_run_count = sizeof lines / sizeof *lines,
        .iseq = young.iseq,
    };
    sdb_code_table_young_named(fake.scanner.codes, named);
    return true;
}

static unsigned
free_evicted(void)
{
    unsigned n = 0;
    struct sdb_named *named;
    while ((named = sdb_code_table_take_evicted(fake.scanner.codes))) {
        free(named);
        n++;
    }
    return n;
}

/* The symbols that are left: what a stop hands to the symbolizer. */
static void
free_named(struct sdb_code *code, void *unused)
{
    (void)unused;
    free((void *)(uintptr_t)code->named);
    code->named = 0;
}

static void
end(void)
{
    free_evicted();
    sdb_flush(&fake.scanner);
    while (name_one(NULL)) {}
    sdb_code_table_each_named(fake.scanner.codes, free_named, NULL);
}

static unsigned symbols;
static bool found;
static const char *wanted;

static void
note_symbol(const struct walk_record *r, void *data)
{
    (void)data;
    if (r->type != SDB_S_CODE) return;
    symbols++;
    if (memmem(r->payload, r->bytes, wanted, strlen(wanted))) found = true;
}

/* Whether a code of that name stands in the newest symbol area; before the recording ends. */
static bool
area_has(const char *name)
{
    struct walk_file file;
    sdb_flush(&fake.scanner);
    NEED(walk_open(&file, fake.scanner.file.path));
    symbols = 0;
    found = false;
    wanted = name;
    for (int area = 0; area < 2; area++)
        CHECK_EQ(walk_area(&file, area, note_symbol, NULL).damaged, 0);
    walk_close(&file);
    return found;
}

static void
a_name_goes_from_the_symbolizer_to_the_file(void)
{
    begin();
    fake_call(&t, at(iseqs[0]), fake_ment(&ment_a), 1000 + 8 * 3);
    fake_tick();
    sdb_store_release(&fake.mailbox.asked, 0); /* it looked, and saw nothing */
    for (int i = 0; i < 20; i++) fake_tick();
    CHECK_EQ(fake.mailbox.asked & SDB_ASK_WORK, SDB_ASK_WORK);
    CHECK(name_one("Foo#bar"));
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_CODES], 1);
    CHECK(area_has("Foo#bar"));
    end();
    log_read();
}

/* All instructions of a line are one call site, so that a thread that works through a line writes nothing. */
static void
a_named_codes_call_sites_are_lines(void)
{
    begin();
    fake_call(&t, at(iseqs[0]), fake_ment(&ment_a), 1000 + 8 * 3);
    fake_tick();
    CHECK(name_one("Foo#bar"));
    fake_tick();
    const struct sdb_scan *scan = (const struct sdb_scan *)(uintptr_t)t.slot->scan;
    struct sdb_frame frame = scan->frames[0];
    const struct {
        uint64_t pc, where;
    } expected[] = {{1000, 0 << 1 | 1},
                    {1000 + 8, 0 << 1 | 1},
                    {1000 + 8 * 3, 2 << 1 | 1},
                    {1000 + 8 * 5, 2 << 1 | 1},
                    {1000 + 8 * 10, 5 << 1 | 1},
                    {1000 + 8 * 11, 0},
                    {900, 0},
                    {0, 0}};
    for (unsigned i = 0; i < sizeof expected / sizeof *expected; i++) {
        frame.pc = expected[i].pc;
        CHECK_EQ(sdb_walk_where(fake.scanner.walker, &frame), expected[i].where);
    }
    end();
    log_read();
}

static void
a_code_that_failed_its_proof_is_counted_and_after_a_second_forgotten(void)
{
    begin();
    fake_call(&t, at(iseqs[0]), fake_ment(&ment_a), 1008);
    fake_call(&t, at(iseqs[1]), fake_ment(&ment_b), 1008);
    fake_tick();
    CHECK(name_one("Foo#bar"));
    CHECK(name_one(NULL));
    fake_tick();
    CHECK_EQ(fake.scanner.counters[SDB_C_LOST_UNRESOLVED], 1);
    /* it is left out from now on, also by a walk that meets it again */
    fake_return(&t);
    fake_tick();
    fake_call(&t, at(iseqs[1]), fake_ment(&ment_b), 1008);
    fake_tick();
    const struct sdb_scan *scan = (const struct sdb_scan *)(uintptr_t)t.slot->scan;
    CHECK_EQ(scan->depth, 1);
    CHECK_EQ(scan->more & SDB_MORE_TORN_TOP, SDB_MORE_TORN_TOP);
    CHECK(sdb_code_table_find(fake.scanner.codes, at(iseqs[1]), at(ment_b.words)) != 0);
    sdb_upkeep_second(&fake.scanner);
    CHECK_EQ(sdb_code_table_find(fake.scanner.codes, at(iseqs[1]), at(ment_b.words)), 0);
    CHECK_EQ(free_evicted(), 1);
    end();
    log_read();
}

static void
what_no_stack_shows_any_more_is_let_go_and_named_anew_when_it_comes_back(void)
{
    begin();
    fake_call(&t, at(iseqs[0]), fake_ment(&ment_a), 1008);
    fake_tick();
    CHECK(name_one("Stays#here"));
    unsigned gone = 0;
    for (unsigned i = 1; i < 600; i++) { /* each shown for a moment, as reloaded code is */
        fake_call(&t, at(iseqs[i]), fake_ment(&ment_b), 1008);
        fake_tick();
        CHECK(name_one("Reloaded#method"));
        fake_tick();
        fake_return(&t);
        for (int k = 0; k < 10; k++) fake_tick();
        gone += free_evicted();
    }
    CHECK(gone > 400);
    CHECK(sdb_code_table_count(fake.scanner.codes) < 200);
    CHECK(sdb_code_table_find(fake.scanner.codes, at(iseqs[0]), at(ment_a.words)) != 0);
    CHECK_EQ(sdb_code_table_find(fake.scanner.codes, at(iseqs[1]), at(ment_b.words)), 0);
    fake_call(&t, at(iseqs[1]), fake_ment(&ment_b), 1008);
    fake_tick();
    CHECK(name_one("Back#again"));
    fake_tick();
    CHECK(area_has("Back#again"));
    end();
    log_read();
}

static void
a_full_symbol_area_gives_way_to_the_other_and_loses_nothing_in_use(void)
{
    static char name[3900];
    begin();
    fake_call(&t, at(iseqs[0]), fake_ment(&ment_a), 1008);
    fake_tick();
    CHECK(name_one("Root#main"));
    uint64_t room = sdb_symbol_area_capacity_bytes(fake.scanner.symbols);
    unsigned made = 0;
    while ((uint64_t)made * sizeof name < room * 2 && made < 4000) {
        made++;
        snprintf(name, sizeof name, "Long%05u#%03700d", made, 0);
        fake_call(&t, at(iseqs[made]), fake_ment(&ment_b), 1008);
        fake_tick();
        CHECK(name_one(name));
        fake_return(&t);
        fake_tick();
        free_evicted();
    }
    CHECK(fake.scanner.counters[SDB_C_CODES_RECYCLED] > 0);
    CHECK(area_has("Root#main")); /* on a stack all the time */
    CHECK(area_has("Long00001#") == false || made < 10);
    end();
    log_read();
}

static void
when_everything_is_in_use_what_does_not_fit_stays_without_a_name_and_is_counted(void)
{
    enum { FRAMES = 80, THREADS = 8 };
    static char name[3900];
    static struct fake_thread deep[THREADS];
    begin();
    unsigned most = (unsigned)(sdb_symbol_area_capacity_bytes(fake.scanner.symbols) / 3700) + 4;
    NEED(most <= FRAMES * THREADS);
    for (unsigned i = 0; i < most; i++) {
        struct fake_thread *thread = &deep[i / FRAMES];
        if (i % FRAMES == 0) fake_thread_begin(thread, 2 + i / FRAMES, SDB_RUNNING);
        snprintf(name, sizeof name, "Used%05u#%03700d", i, 0);
        fake_call(thread, at(iseqs[i]), fake_ment(&ment_b), 1008);
        fake_tick();
        CHECK(name_one(name));
        fake_tick();
    }
    CHECK_EQ(fake.scanner.counters[SDB_C_CODES], most);
    CHECK(fake.scanner.counters[SDB_C_CODES_RECYCLED] > 0);
    CHECK_EQ(sdb_code_table_count(fake.scanner.codes), most); /* not one of them was taken away */
    CHECK(area_has("Used00000#"));
    end();
    log_read();
}

static void
what_is_asked_in_the_mailbox_is_told_to_the_vm_and_not_at_each_tick(void)
{
    begin();
    sdb_mailbox_take(&fake.mailbox);
    fake.scanner.asks.soon = true;
    fake.scanner.asks.asked_ns = 0;
    unsigned before = world.symbolizers_requested;
    fake_tick();
    CHECK_EQ(world.symbolizers_requested, before + 1);
    CHECK_EQ(fake.mailbox.asked & SDB_ASK_WORK, SDB_ASK_WORK);
    fake.scanner.asks.soon = true;
    fake_tick();
    CHECK_EQ(world.symbolizers_requested, before + 1);
    log_read();
}

int
main(void)
{
    RUN(a_name_goes_from_the_symbolizer_to_the_file);
    RUN(a_named_codes_call_sites_are_lines);
    RUN(a_code_that_failed_its_proof_is_counted_and_after_a_second_forgotten);
    RUN(what_no_stack_shows_any_more_is_let_go_and_named_anew_when_it_comes_back);
    RUN(a_full_symbol_area_gives_way_to_the_other_and_loses_nothing_in_use);
    RUN(when_everything_is_in_use_what_does_not_fit_stays_without_a_name_and_is_counted);
    RUN(what_is_asked_in_the_mailbox_is_told_to_the_vm_and_not_at_each_tick);
    return t_done();
}
