/* SPDX-License-Identifier: MIT - test_memory_probe.c - the right line of /proc/PID/cgroup, and figures that are true. */
#include "core/memory_probe.h"
#include <sys/mman.h>
#include <sys/stat.h>
#include "t.h"

static const char *
path_in(const char *text, bool *v2)
{
    static char buffer[8192];

    snprintf(buffer, sizeof buffer, "%s", text);
    return sdb_memory_probe_cgroup_path(buffer, v2);
}

static bool
is(const char *text, const char *wanted, bool wanted_v2)
{
    bool v2 = !wanted_v2;
    const char *path = path_in(text, &v2);

    return path != NULL && strcmp(path, wanted) == 0 && v2 == wanted_v2;
}

static void
the_unified_hierarchy_is_used_where_it_is_the_only_one(void)
{
    CHECK(is("0::/system.slice/app.service\n", "/system.slice/app.service", true));
    CHECK(is("0::/\n", "/", true));
    CHECK(is("0::/no newline", "/no newline", true));
    CHECK(is("0::/a:b:c\n", "/a:b:c", true)); /* colons belong to the name */
}

static void
the_memory_controller_of_v1_goes_before_it(void)
{
    CHECK(is("12:cpu,cpuacct:/x\n4:memory:/docker/abc\n0::/unified\n", "/docker/abc", false));
    CHECK(is("0::/unified\n4:memory:/late\n", "/late", false));
    CHECK(is("9:blkio,memory:/with/another\n", "/with/another", false));
}

static void
hybrid_without_memory_in_v1_is_v2(void)
{
    CHECK(is("3:cpu:/x\n1:name=systemd:/y\n0::/unified\n", "/unified", true));
}

static void
what_is_no_cgroup_file_gives_no_path(void)
{
    static const char *const texts[] = {"", "\n\n", "nonsense", "1:memory", ":::", "5:cpu:/x\n"};
    bool v2;

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *path = path_in(texts[i], &v2);
        CHECK(path == NULL || path[0] != '/');
    }
}

static void
memory_taken_is_seen(void)
{
    enum { TAKEN = 32 << 20 };
    struct sdb_memory_probe probe = {0};
    struct sdb_memory before, after;
    char *memory;

    sdb_memory_probe_open(&probe);
    sdb_memory_probe_read(&probe, &before);
    memory = mmap(NULL, TAKEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(memory != MAP_FAILED);
    memset(memory, 1, TAKEN);
    sdb_memory_probe_read(&probe, &after);
    CHECK(before.rss > 0);
    /* the kernel keeps the last pages of each thread's count to itself for a while */
    CHECK(after.rss >= before.rss + TAKEN - (1 << 20));
    CHECK(after.rss < before.rss + TAKEN + (64 << 20));
    munmap(memory, TAKEN);
    sdb_memory_probe_close(&probe);
    sdb_memory_probe_read(&probe, &after); /* closed: nothing is known */
    CHECK_EQ(after.rss, 0);
    CHECK_EQ(after.cgroup_usage, 0);
    sdb_memory_probe_close(&probe);
}

static void
the_status_of_the_process_agrees_with_it(void)
{
    struct sdb_memory_probe probe = {0};
    struct sdb_process_memory status;
    struct sdb_memory memory;
    uint64_t sum;

    sdb_memory_probe_open(&probe);
    sdb_memory_probe_read(&probe, &memory);
    sdb_memory_probe_status(&status);
    sum = status.rss_anon + status.rss_file + status.rss_shmem;
    CHECK_EQ(status.threads, 1);
    CHECK(status.rss_anon > 0);
    CHECK(status.peak_rss + (1 << 20) >= sum);
    CHECK(sum + (4 << 20) > memory.rss && memory.rss + (4 << 20) > sum);
    sdb_memory_probe_close(&probe);
}

/* The tightest limit is the one of a cgroup made here: needs root and a memory hierarchy. */
static void
the_limit_of_the_own_cgroup_is_found(void)
{
    static const struct {
        const char *root, *limit;
    } kinds[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                 {"/sys/fs/cgroup", "memory.max"}};
    enum { LIMIT = 256 << 20 };
    struct sdb_memory_probe probe = {0};
    struct sdb_memory memory;
    char dir[128], file[256], home[4096] = "";
    const char *path;
    FILE *f;
    bool v2 = false;

    f = fopen("/proc/self/cgroup", "r");
    if (f == NULL) SKIP("no /proc/self/cgroup");
    home[fread(home, 1, sizeof home - 1, f)] = 0;
    fclose(f);
    path = path_in(home, &v2);
    snprintf(dir, sizeof dir, "%s/sdb-probe-%d", kinds[v2].root, (int)getpid());
    if (path == NULL || mkdir(dir, 0700) != 0) SKIP("no memory cgroup can be made");
    snprintf(file, sizeof file, "%s/%s", dir, kinds[v2].limit);
    f = fopen(file, "w");
    if (f == NULL) {
        rmdir(dir);
        SKIP("the cgroup has no memory controller");
    }
    fprintf(f, "%d", LIMIT);
    fclose(f);
    snprintf(file, sizeof file, "%s/cgroup.procs", dir);
    f = fopen(file, "w");
    NEED(f != NULL);
    fprintf(f, "%d", (int)getpid());
    fclose(f);
    sdb_memory_probe_open(&probe);
    sdb_memory_probe_read(&probe, &memory);
    sdb_memory_probe_close(&probe);
    /* back, so that the directory can go */
    snprintf(file, sizeof file, "%s%s/cgroup.procs", kinds[v2].root, strcmp(path, "/") ? path : "");
    f = fopen(file, "w");
    if (f != NULL) {
        fprintf(f, "%d", (int)getpid());
        fclose(f);
    }
    CHECK(memory.cgroup_limit > 0 && memory.cgroup_limit <= LIMIT);
    CHECK(memory.cgroup_usage < LIMIT);
    CHECK_EQ(rmdir(dir), 0);
}

int
main(void)
{
    RUN(the_unified_hierarchy_is_used_where_it_is_the_only_one);
    RUN(the_memory_controller_of_v1_goes_before_it);
    RUN(hybrid_without_memory_in_v1_is_v2);
    RUN(what_is_no_cgroup_file_gives_no_path);
    RUN(memory_taken_is_seen);
    RUN(the_status_of_the_process_agrees_with_it);
    RUN(the_limit_of_the_own_cgroup_is_found);
    return t_done();
}
