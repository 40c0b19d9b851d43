/* SPDX-License-Identifier: MIT
 *
 * test_ring_retain.c - retention takes dead rings and only those, and those of least value first.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include "core/ring_file.h"
#include "crc32c.h"
#include "ring_support.h"

static char base[256];

static const char *
below(const char *name)
{
    static char path[4][512];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", base, name);
    return path[turn];
}

/* Runs `body` in a forked child; its checks count there. Exit code, or 1000 + signal. */
static int
in_child(void (*body)(void))
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        t_failures = 0;
        body();
        fflush(NULL);
        _exit(t_failures > 0);
    }
    NEED(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void
make_dead_ring(const char *dir, uint64_t realtime_ns, char path[SDB_PATH_MAX])
{
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file f;

    config.start_realtime_ns = realtime_ns;
    NEED(sdb_ring_file_create(&f, &config) == 0);
    strcpy(path, f.path);
    sdb_ring_file_close(&f);
}

static void
make_file(const char *dir, const char *name, const char *text)
{
    char path[700];
    int fd;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    fd = open(path, O_CREAT | O_WRONLY, 0600);
    NEED(fd >= 0 && write(fd, text, strlen(text)) >= 0);
    close(fd);
}

static void
retention_takes_the_oldest_dead_rings_only(void)
{
    const char *dir = below("retain");
    char path[4][SDB_PATH_MAX], foreign[SDB_PATH_MAX], link_path[700], renamed[700];
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file live;

    config.start_realtime_ns = 1; /* the oldest of all, but alive */
    CHECK_EQ(sdb_ring_file_create(&live, &config), 0);
    for (int i = 0; i < 4; i++) make_dead_ring(dir, 1000 + (uint64_t)i, path[i]);
    make_file(dir, "12-34-0123456789abcdef.sdb", "not a ring"); /* our name, not our contents */
    make_file(dir, "notes.txt", "hello");
    snprintf(renamed, sizeof renamed, "%s/keep-me.sdb", dir); /* our contents, not our name */
    make_dead_ring(dir, 1, foreign);
    NEED(rename(foreign, renamed) == 0);
    snprintf(link_path, sizeof link_path, "%s/77-34-0123456789abcdef.sdb", dir);
    NEED(symlink(path[3], link_path) == 0);
    snprintf(foreign, sizeof foreign, "%s/78-34-0123456789abcdef.sdb", dir);
    NEED(mkfifo(foreign, 0600) == 0);

    CHECK_EQ(sdb_ring_file_retain(dir, 100, NULL), 0);
    CHECK_EQ(count_files(dir), 10);
    CHECK_EQ(sdb_ring_file_retain(dir, 2, NULL), 2);
    CHECK(access(path[0], F_OK) != 0 && access(path[1], F_OK) != 0);
    CHECK(access(path[2], F_OK) == 0 && access(path[3], F_OK) == 0);
    CHECK_EQ(sdb_ring_file_retain(dir, 0, NULL), 2);
    CHECK_EQ(count_files(dir), 6);
    CHECK(access(live.path, F_OK) == 0 && access(renamed, F_OK) == 0);
    sdb_ring_file_close(&live);
    CHECK_EQ(sdb_ring_file_retain(dir, 0, NULL), 1);
    CHECK_EQ(sdb_ring_file_retain(below("nowhere"), 0, NULL), 0);
}

/* A ring whose process ended so long ago and lived so long before. */
static void
make_history(const char *dir, uint64_t age_s, uint64_t lived_s, char path[SDB_PATH_MAX])
{
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file f;
    struct sdb_state_page page = {.magic = SDB_MAGIC, .seq = 1, .state = SDB_RING_LIVE};
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    page.at_ns = lived_s * 1000000000ull;
    page.realtime_ns = ((uint64_t)now.tv_sec - age_s) * 1000000000ull;
    page.crc = sdb_crc32c(0, &page, sizeof page);
    config.start_realtime_ns = page.realtime_ns - page.at_ns;
    NEED(sdb_ring_file_create(&f, &config) == 0);
    NEED(sdb_ring_file_write(&f, SDB_STATE_A_OFF, &page, sizeof page) == 0);
    strcpy(path, f.path);
    sdb_ring_file_close(&f);
}

static void
set_state(const char *path, uint32_t state)
{
    int fd = open(path, O_WRONLY);

    NEED(pwrite(fd, &state, sizeof state, offsetof(struct sdb_identity, state)) == sizeof state);
    close(fd);
}

static uint32_t
state_of(const char *path)
{
    uint32_t state = 0;
    int fd = open(path, O_RDONLY);

    NEED(pread(fd, &state, sizeof state, offsetof(struct sdb_identity, state)) == sizeof state);
    close(fd);
    return state;
}

static void
what_is_worth_most_stays(void)
{
    enum { HOUR = 3600, DAY = 24 * HOUR };
    const char *dir = below("worth");
    /* from the one that goes first to the one that goes last */
    static const struct {
        uint64_t age_s, lived_s;
        bool killed;
    } of[] = {
        {60, 2, false},        {1, 2, false}, /* tools, and this one ended a second ago */
        {9 * DAY, HOUR, true}, /* killed long ago: a worker like those who ended in order */
        {DAY, HOUR, false},    {HOUR, 3, true},
        {6 * DAY, HOUR, true}, {5, 20 * DAY, true}, /* old, but it was killed just now */
    };
    enum { N = sizeof of / sizeof *of };
    char path[N][SDB_PATH_MAX];

    for (int i = 0; i < N; i++) make_history(dir, of[i].age_s, of[i].lived_s, path[i]);
    for (int i = 0; i < N; i++)
        if (of[i].killed) set_state(path[i], SDB_RING_LIVE);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(sdb_ring_file_retain(dir, (uint64_t)(N - 1 - i), NULL), 1);
        CHECK(access(path[i], F_OK) != 0);
    }
}

static void
the_ring_of_an_earlier_program_is_closed(void)
{
    const char *dir = below("exec");
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file earlier, other, now;

    CHECK_EQ(sdb_ring_file_create(&earlier, &config), 0);
    CHECK_EQ(sdb_ring_file_create(&other, &config), 0);
    uint32_t pid =
        other.identity.pid + 1; /* of another process: its crc fails, so it is left alone */
    CHECK_EQ(sdb_ring_file_write(&other, offsetof(struct sdb_identity, pid), &pid, sizeof pid), 0);
    sdb_ring_file_abandon(&earlier); /* as exec does */
    sdb_ring_file_abandon(&other);
    CHECK_EQ(sdb_ring_file_create(&now, &config), 0);
    CHECK_EQ(state_of(earlier.path), SDB_RING_CLOSED);
    CHECK_EQ(state_of(other.path), SDB_RING_LIVE);
    sdb_ring_file_close(&now);
}

static void
creating_a_ring_applies_retention(void)
{
    const char *dir = below("keep");
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file f;
    char path[SDB_PATH_MAX];

    for (int i = 0; i < 3; i++) make_dead_ring(dir, 10 + (uint64_t)i, path);
    config.keep_files = 1;
    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    CHECK_EQ(count_files(dir), 2);
    CHECK(access(path, F_OK) == 0);
    sdb_ring_file_close(&f);
}

static void
retain_as_nobody(void)
{
    if (setuid(12345) != 0) _exit(77);
    CHECK_EQ(sdb_ring_file_retain(below("shared"), 0, NULL), 0);
}

static void
rings_of_other_users_are_left_alone(void)
{
    char path[SDB_PATH_MAX];
    int code;

    if (geteuid() != 0) SKIP("needs root to become another user");
    make_dead_ring(below("shared"), 1, path);
    chmod(base, 0755);
    chmod(below("shared"), 01777);
    chmod(path, 0644);
    code = in_child(retain_as_nobody);
    if (code == 77) SKIP("cannot become another user");
    CHECK_EQ(code, 0);
    NEED(chown(path, 12345, 12345) == 0); /* root could remove it, but it is not root's */
    CHECK_EQ(sdb_ring_file_retain(below("shared"), 0, NULL), 0);
    CHECK(access(path, F_OK) == 0);
}

int
main(void)
{
    char command[300];

    t_mkdir(base);
    RUN(retention_takes_the_oldest_dead_rings_only);
    RUN(what_is_worth_most_stays);
    RUN(the_ring_of_an_earlier_program_is_closed);
    RUN(creating_a_ring_applies_retention);
    RUN(rings_of_other_users_are_left_alone);
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    if (system(command) != 0) return 1;
    return t_done();
}
