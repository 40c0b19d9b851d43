/* SPDX-License-Identifier: MIT - test_symbol_area.c - symbols read back, areas that fill up, failed writes. */
#include <fcntl.h>
#include "core/symbol_area.h"
#include "error.h"
#include "ring_support.h"
#include "walk.h"

static char dir[256];
static struct sdb_ring_file file;

static struct sdb_symbol_area *
new_area(void)
{
    struct sdb_ring_config config = config_for(dir);
    struct sdb_symbol_area *a = sdb_symbol_area_new();

    NEED(a != NULL);
    NEED(sdb_ring_file_create(&file, &config) == 0);
    sdb_symbol_area_attach(a, &file);
    return a;
}

static void
end_area(struct sdb_symbol_area *a)
{
    sdb_symbol_area_free(a);
    sdb_ring_file_close(&file);
    unlink(file.path);
}

static struct sdb_symbol
symbol(const char *name, const char *path, const char *class_name)
{
    return (struct sdb_symbol){.kind = SDB_CODE_RUBY,
                               .base = 0x7f0012345678,
                               .instruction_count = 90,
                               .first_line = 12,
                               .name = name,
                               .name_bytes = (uint32_t)strlen(name),
                               .path = path,
                               .path_bytes = (uint32_t)strlen(path),
                               .class_name = class_name,
                               .class_bytes = (uint32_t)strlen(class_name)};
}

static char strings[4096][64]; /* of the area being read */

/* What an area says, as text: one line a code. */
struct told {
    char text[1 << 16];
    unsigned n;
    unsigned codes;
    uint32_t last_code;
};

static void
tell(const struct walk_record *r, void *data)
{
    struct told *t = data;
    const uint8_t *p = r->payload, *end = p + r->bytes;
    bool ok = true;
    uint64_t f[7], name_n, runs;
    size_t used = strlen(t->text), room = sizeof t->text - used;
    int64_t line;
    uint64_t index = 0;

    if (r->type == SDB_S_STRING) {
        if (++t->n < 4096) snprintf(strings[t->n], 64, "%.*s", (int)r->bytes, (const char *)p);
        return;
    }
    for (int i = 0; i < 7; i++) f[i] = walk_varint(&p, end, &ok);
    name_n = walk_varint(&p, end, &ok);
    t->codes++;
    t->last_code = (uint32_t)f[0];
    if (room < 1000 || name_n > 64 || f[4] >= 4096 || f[5] >= 4096) return;
    used += (size_t)snprintf(t->text + used, room, "%d kind %d base %llx n %d %s [%s] line %d %.*s",
                             (int)f[0], (int)f[1], (unsigned long long)f[2], (int)f[3],
                             strings[f[4]], strings[f[5]], (int)f[6], (int)name_n, (const char *)p);
    p += name_n;
    runs = walk_varint(&p, end, &ok);
    line = (int64_t)f[6];
    for (uint64_t i = 0; i < runs; i++) {
        index += walk_varint(&p, end, &ok);
        line += walk_zigzag(&p, end, &ok);
        used += (size_t)snprintf(t->text + used, sizeof t->text - used, " %d:%d", (int)index,
                                 (int)line);
    }
    used += (size_t)snprintf(t->text + used, sizeof t->text - used, " %llx",
                             (unsigned long long)walk_varint(&p, end, &ok));
    used += (size_t)snprintf(t->text + used, sizeof t->text - used, " %llx",
                             (unsigned long long)walk_varint(&p, end, &ok));
    CHECK(ok && p == end);
    snprintf(t->text + used, sizeof t->text - used, "\n");
}

static struct told *
read_area(int area)
{
    struct told *t = calloc(1, sizeof *t);
    struct walk_file f;
    struct walk_result result;

    NEED(walk_open(&f, file.path));
    result = walk_area(&f, area, tell, t);
    CHECK_EQ(result.damaged, 0);
    walk_close(&f);
    return t;
}

static void
symbols_read_back(void)
{
    struct sdb_symbol_area *a = new_area();
    struct sdb_symbol foo = symbol("Foo#bar", "/app/foo.rb", "Foo"),
                      each = symbol("Array#each", "", "Array");
    static const struct sdb_line_run runs[] = {{0, 13}, {4, 12}, {40, 700}};
    struct told *t;

    foo.line_runs = runs;
    foo.line_run_count = 3;
    foo.iseq = 0x7f00aaaa;
    foo.method_entry = 0x7f00bbbb;
    each.kind = SDB_CODE_C;
    each.base = 0;
    each.first_line = 0;
    each.path = NULL;
    CHECK_EQ(sdb_symbol_area_append(a, 1, &foo), 0);
    CHECK_EQ(sdb_symbol_area_append(a, 2, &each), 0);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    CHECK_EQ(sdb_symbol_area_append(a, 300, &foo), 0);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    t = read_area(0);
    CHECK_EQ(t->n, 3); /* equal strings once */
    CHECK(strcmp(t->text, "1 kind 1 base 7f0012345678 n 90 /app/foo.rb [Foo] line 12 Foo#bar 0:13 "
                          "4:12 40:700 7f00aaaa 7f00bbbb\n"
                          "2 kind 2 base 0 n 90  [Array] line 0 Array#each 0 0\n"
                          "300 kind 1 base 7f0012345678 n 90 /app/foo.rb [Foo] line 12 Foo#bar "
                          "0:13 4:12 40:700 7f00aaaa 7f00bbbb\n") == 0);
    free(t);
    end_area(a);
}

static void
path_and_class_may_be_the_same_text(void)
{
    struct sdb_symbol_area *a = new_area();
    struct sdb_symbol s = symbol("x", "same", "same");
    struct told *t;

    CHECK_EQ(sdb_symbol_area_append(a, 1, &s), 0);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    t = read_area(0);
    CHECK_EQ(t->n, 1);
    CHECK(strstr(t->text, " same [same] ") != NULL);
    free(t);
    end_area(a);
}

static void
lengthy_ones_are_cut(void)
{
    struct sdb_symbol_area *a = new_area();
    char *text = malloc(20000);
    struct sdb_line_run *runs = calloc(9000, sizeof *runs);
    struct sdb_symbol s;
    struct told *t;

    memset(text, 'n', 19999);
    text[19999] = '\0';
    for (uint32_t i = 0; i < 9000; i++)
        runs[i] = (struct sdb_line_run){i * 400000, i % 2 ? UINT32_MAX : 0};
    s = symbol(text, text + 5000, text + 10000);
    s.line_runs = runs;
    s.line_run_count = 9000;
    for (uint32_t i = 1; i < 5; i++) CHECK_EQ(sdb_symbol_area_append(a, i, &s), 0);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    t = read_area(0);
    CHECK_EQ(t->codes, 4);
    CHECK_EQ(t->n, 1); /* path and class, both cut to the same 4096 bytes */
    free(t);
    free(text);
    free(runs);
    end_area(a);
}

static uint32_t
fill(struct sdb_symbol_area *a, uint32_t code, bool flushing)
{
    char name[64], path[64];

    for (;; code++) {
        snprintf(name, sizeof name, "Klass%u#method", code);
        snprintf(path, sizeof path, "/app/models/klass%u.rb", code);
        struct sdb_symbol s = symbol(name, path, "Klass");
        int err = sdb_symbol_area_append(a, code, &s);
        if (err == SDB_ERR_FULL) return code;
        NEED(err == 0);
        if (flushing && code % 100 == 0) CHECK_EQ(sdb_symbol_area_flush(a), 0);
    }
}

static void
a_full_area_hands_over_to_the_other(void)
{
    struct sdb_symbol_area *a = new_area();
    uint32_t full = fill(a, 1, true), full_b;
    struct sdb_symbol s = symbol("Kept#one", "/k.rb", "Kept");
    struct told *t;

    CHECK(full > 1000);
    CHECK(sdb_symbol_area_used_bytes(a) <= sdb_symbol_area_capacity_bytes(a));
    CHECK(sdb_symbol_area_capacity_bytes(a) - sdb_symbol_area_used_bytes(a) < 200);
    sdb_symbol_area_switch(a); /* writes what was pending */
    CHECK_EQ(sdb_symbol_area_used_bytes(a), SDB_AREA_HEADER_BYTES);
    full_b = fill(a, full, false); /* all in memory, then one flush */
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    t = read_area(0);
    CHECK_EQ(t->last_code, full - 1);
    CHECK_EQ(t->codes, full - 1);
    free(t);
    t = read_area(1);
    CHECK_EQ(t->last_code, full_b - 1);
    CHECK_EQ(t->codes, full_b - full);
    free(t);
    sdb_symbol_area_switch(a); /* back to A: its old blocks are void at once */
    CHECK_EQ(sdb_symbol_area_append(a, 99999, &s), 0);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    t = read_area(0);
    CHECK_EQ(t->codes, 1);
    CHECK_EQ(t->last_code, 99999);
    free(t);
    end_area(a);
}

static void
before_the_file_symbols_collect(void)
{
    struct sdb_symbol_area *a = sdb_symbol_area_new();
    struct sdb_ring_config config = config_for(dir);
    uint32_t full = fill(a, 1, true);
    struct told *t;

    NEED(sdb_ring_file_create(&file, &config) == 0);
    sdb_symbol_area_attach(a, &file);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    t = read_area(0);
    CHECK_EQ(t->codes, full - 1);
    free(t);
    CHECK(sdb_symbol_area_memory_bytes(a) < 2 << 20);
    end_area(a);
}

static void
failed_writes_are_tried_again(void)
{
    struct sdb_symbol_area *a = new_area();
    int good_fd = file.own.fd, bad_fd = open("/dev/full", O_RDWR);
    struct sdb_symbol s = symbol("A#b", "/a.rb", "A");
    struct told *t;

    swap_descriptor(&file, bad_fd);
    for (uint32_t i = 1; i <= 50; i++) {
        CHECK_EQ(sdb_symbol_area_append(a, i, &s), 0);
        CHECK(sdb_symbol_area_flush(a) < 0);
        if (i == 20) swap_descriptor(&file, good_fd);
        if (i == 20) CHECK_EQ(sdb_symbol_area_flush(a), 0);
        if (i == 20) swap_descriptor(&file, bad_fd);
    }
    swap_descriptor(&file, good_fd);
    CHECK_EQ(sdb_symbol_area_flush(a), 0);
    t = read_area(0);
    CHECK_EQ(t->codes, 50);
    free(t);
    close(bad_fd);
    end_area(a);
}

int
main(void)
{
    t_mkdir(dir);
    RUN(symbols_read_back);
    RUN(path_and_class_may_be_the_same_text);
    RUN(lengthy_ones_are_cut);
    RUN(a_full_area_hands_over_to_the_other);
    RUN(before_the_file_symbols_collect);
    RUN(failed_writes_are_tried_again);
    remove_dir(dir);
    return t_done();
}
