/* SPDX-License-Identifier: MIT
 *
 * test_format_example.c - the annotated example in FORMAT.md says what its words say.
 */
#include "t.h"
#include "walk.h"

enum { CHUNK_OFF = 65536, CHUNK = 1 << 20, AREA_BYTES = 4096, AREA_OFF = 16384 };

/* Copies the bytes of the block ```name of FORMAT.md to `to`: lines "offset  xx xx xx  words". */
static size_t
example(const char *name, uint8_t *to)
{
    FILE *f = fopen("../../ext/format/FORMAT.md", "r");
    char line[1000], fence[32];
    bool inside = false;
    size_t n = 0;

    NEED(f != NULL);
    snprintf(fence, sizeof fence, "```%s\n", name);
    while (fgets(line, sizeof line, f) != NULL) {
        if (strcmp(line, fence) == 0) {
            inside = true;
            continue;
        }
        if (!inside) continue;
        if (line[0] == '`') break;
        CHECK_EQ(strtoul(line, NULL, 16), n);
        line[6 + 48] = '\0';
        for (char *p = line + 6, *end;; p = end) {
            unsigned long byte = strtoul(p, &end, 16);
            if (end == p) break;
            to[n++] = (uint8_t)byte;
        }
    }
    fclose(f);
    return n;
}

static void
put_u64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static struct walk_record seen[32];
static int count;

static void
keep(const struct walk_record *r, void *data)
{
    if (count < 32) seen[count++] = *r;
}

static void
the_example_decodes_to_what_it_says(void)
{
    struct walk_file f = {.bytes = calloc(1, CHUNK_OFF + CHUNK), .size = CHUNK_OFF + CHUNK};
    struct walk_result result;

    NEED(f.bytes != NULL);
    put_u64(f.bytes + 32, AREA_OFF);
    put_u64(f.bytes + 40, AREA_OFF + AREA_BYTES);
    put_u64(f.bytes + 48, AREA_BYTES);
    put_u64(f.bytes + 56, CHUNK_OFF);
    put_u64(f.bytes + 72, 1);
    CHECK(example("chunk", f.bytes + CHUNK_OFF) > 100);
    CHECK(example("area", f.bytes + AREA_OFF) > 100);

    result = walk_chunks(&f, keep, NULL);
    CHECK(result.chunks == 1 && result.blocks == 1 && result.damaged == 0);
    NEED(count == 10);
    CHECK_EQ(seen[0].tick_us, 10000);
    CHECK_EQ(seen[1].numbers[0], 1000);
    CHECK(seen[4].id == 1 && seen[4].parent == 0 && seen[4].code == 1 && seen[4].where == 7);
    CHECK(seen[5].id == 2 && seen[5].parent == 1 && seen[5].code == 2 && seen[5].where == 0);
    CHECK(seen[6].node == 2 && seen[6].state == 0 && seen[6].cpu_us == 1900 &&
          seen[6].elapsed_us == 2000);
    CHECK_EQ(seen[7].tick_us, 11005);
    CHECK_EQ(seen[8].tick_us, 12000);
    CHECK(seen[9].node == 1 && seen[9].state == 2 && seen[9].cpu_us == 1200 &&
          seen[9].busy_us == 1300 && seen[9].blocked_us == 700 && seen[9].age_us == 700);

    count = 0;
    result = walk_area(&f, 0, keep, NULL);
    CHECK(result.blocks == 1 && result.damaged == 0 && result.newest_seq == 1);
    CHECK(count == 3 && seen[0].type == 1 && seen[2].type == 2);
    free(f.bytes);
}

int
main(void)
{
    RUN(the_example_decodes_to_what_it_says);
    return t_done();
}
