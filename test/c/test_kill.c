/* SPDX-License-Identifier: MIT
 *
 * test_kill.c - a process that dies by SIGKILL at each test point, early and late: what it had flushed before
 * reads back, whole and in order, and the file is never mistaken for something else.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "core/symbol_area.h"
#include "core/testpoint.h"
#include "ring_support.h"
#include "walk.h"

static char dir[256];

struct progress { /* shared with the child: what it knows to be on the file */
    uint64_t ticks_flushed, codes_flushed, states_written;
    uint64_t created;
};

static struct progress *progress;

static void
story(void)
{
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file file;
    struct sdb_ring_writer *w = sdb_ring_writer_new(START_NS, MS);
    struct sdb_symbol_area *a = sdb_symbol_area_new();
    uint64_t counters[SDB_COUNTER_COUNT] = {0}, chunk = UINT64_MAX;
    struct sdb_symbol s = {.kind = SDB_CODE_C, .name = "A#b", .name_bytes = 3};
    uint8_t payload[3000] = {0};
    int tick;

    if (sdb_ring_file_create(&file, &config) != 0) _exit(2);
    progress->created = 1;
    sdb_ring_writer_attach(w, &file);
    sdb_symbol_area_attach(a, &file);
    for (tick = 1; tick <= 2000; tick++) { /* 6 MB: two laps of the three chunks */
        sdb_ring_writer_tick(w, START_NS + (uint64_t)tick * MS);
        if (chunk != sdb_ring_writer_chunk(w)) write_thread(w, 0, 1, START_NS);
        chunk = sdb_ring_writer_chunk(w);
        sdb_ring_writer_sample(w, &(struct sdb_sample){.slot = 0, .cpu_ns = (uint64_t)tick * MS});
        sdb_ring_writer_sized(w, SDB_R_MARK, payload, sizeof payload);
        if (tick % 5 != 0) continue;
        if (sdb_ring_writer_flush(w) != 0) _exit(3);
        progress->ticks_flushed = (uint64_t)tick;
        sdb_symbol_area_append(a, (uint32_t)tick / 5, &s);
        if (sdb_symbol_area_flush(a) != 0) _exit(4);
        progress->codes_flushed = (uint64_t)tick / 5;
        counters[SDB_C_TICKS] = (uint64_t)tick;
        if (sdb_ring_writer_state(w, SDB_RING_LIVE, counters, NULL, 0, 0) != 0) _exit(5);
        progress->states_written++;
    }
    sdb_ring_writer_free(w);
    sdb_symbol_area_free(a);
    sdb_ring_file_close(&file);
    _exit(0);
}

struct seen {
    uint64_t last_us, ticks, codes, jumps;
};

static void
see(const struct walk_record *r, void *data)
{
    struct seen *s = data;

    if (r->type != WALK_TICK && r->type != WALK_CHUNK) return;
    if (s->ticks > 0 && r->tick_us != s->last_us + 1000) s->jumps++;
    s->last_us = r->tick_us;
    s->ticks++;
}

static void
see_code(const struct walk_record *r, void *data)
{
    struct seen *s = data;

    if (r->type == SDB_S_CODE) s->codes++;
}

static void
find_ring(char path[600])
{
    DIR *d = opendir(dir);
    struct dirent *e;

    path[0] = '\0';
    while ((e = readdir(d)) != NULL) {
        if (e->d_name[0] != '.') snprintf(path, 600, "%s/%s", dir, e->d_name);
    }
    closedir(d);
}

static void
check_file(const char *point, unsigned passes)
{
    struct walk_file f;
    struct walk_result result;
    struct seen seen = {0};
    const uint8_t *page;
    char path[600];
    uint32_t state;

    find_ring(path);
    NEED(path[0] != '\0' && walk_open(&f, path));
    state = walk_state(&f);
    if (progress->created == 0) {
        CHECK_EQ(state, strcmp(point, "before_header") == 0 ? 0 : SDB_RING_CREATING);
        walk_close(&f);
        return;
    }
    CHECK_EQ(state, SDB_RING_LIVE);
    result = walk_chunks(&f, see, &seen);
    CHECK_EQ(result.damaged, 0);
    CHECK_EQ(seen.jumps, 0);
    if (progress->ticks_flushed > 0 && (seen.last_us < progress->ticks_flushed * 1000 ||
                                        seen.last_us > progress->ticks_flushed * 1000 + 5000)) {
        fprintf(stderr, "%s:%u: ", point, passes);
        CHECK_EQ(seen.last_us, progress->ticks_flushed * 1000);
    }
    walk_area(&f, 0, see_code, &seen);
    CHECK(seen.codes == progress->codes_flushed || seen.codes == progress->codes_flushed + 1);
    page = walk_state_page(&f);
    CHECK((page != NULL) == (progress->states_written > 0));
    if (page != NULL) CHECK_EQ(page[8] | page[9] << 8, progress->states_written);
    walk_close(&f);
}

static void
die_at(const char *point, unsigned passes)
{
    int status;
    pid_t pid;

    memset(progress, 0, sizeof *progress);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        sdb_testpoint = point;
        sdb_testpoint_passes = passes;
        story();
    }
    NEED(waitpid(pid, &status, 0) == pid);
    if (!WIFSIGNALED(status)) fprintf(stderr, "%s:%u was not reached\n", point, passes);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    check_file(point, passes);
    remove_dir(dir);
}

static void
flushed_blocks_survive_sigkill_at_every_point(void)
{
    static const char *const once[] = {"before_header", "after_header_creating", "before_live",
                                       "before_close"};
    static const char *const often[] = {"before_block_write", "after_block_write",
                                        "before_state_write", "before_symbol_write",
                                        "after_symbol_write"};
    static const unsigned passes[] = {0, 1, 7, 150, 398};

    for (int i = 0; i < 4; i++) die_at(once[i], 0);
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) die_at(often[i], passes[k]);
    }
    for (unsigned k = 0; k < 6;
         k++) { /* a chunk's header: also those that end an old chunk's life */
        die_at("before_chunk_header", k);
        die_at("after_chunk_header", k);
    }
}

int
main(void)
{
    t_mkdir(dir);
    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    NEED(progress != MAP_FAILED);
    RUN(flushed_blocks_survive_sigkill_at_every_point);
    remove_dir(dir);
    return t_done();
}
