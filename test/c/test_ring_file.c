/* SPDX-License-Identifier: MIT
 *
 * test_ring_file.c - where rings lie and what may happen to them: wrong directories, full disks, limits,
 * deletion, truncation; retention that takes the dead and only those.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include "core/ring_file.h"
#include "error.h"
#include "ring_support.h"
#include "walk.h"

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
a_ring_is_made_and_closed(void)
{
    const char *dir = below("a/b/rings");
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file f;
    struct walk_file w;
    struct stat st;
    int other;

    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    NEED(stat(f.path, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0600);
    CHECK_EQ(st.st_size, f.identity.file_bytes);
    CHECK(st.st_size <= SDB_RING_MIN_BYTES && st.st_size > SDB_RING_MIN_BYTES - SDB_CHUNK_BYTES);
    CHECK(st.st_blocks * 512 >= 2 * SDB_CHUNK_BYTES); /* allocated, and the rest is a hole */
    CHECK(st.st_blocks * 512 < 3 * SDB_CHUNK_BYTES);
    NEED(stat(dir, &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0700);
    NEED(stat(below("a"), &st) == 0);
    CHECK_EQ(st.st_mode & 07777, 0700);
    CHECK(fcntl(f.own.fd, F_GETFD) & FD_CLOEXEC);
    CHECK(f.path[0] == '/');

    NEED(walk_open(&w, f.path));
    CHECK_EQ(walk_state(&w), SDB_RING_LIVE);
    CHECK_EQ(walk_u64(&w, 80), START_NS);
    CHECK_EQ(walk_u64(&w, 24), f.identity.file_bytes);
    CHECK(memcmp(w.bytes + 256, "ruby=test\0service=shop\0argv.0=", 30) == 0);
    CHECK_EQ(*(uint32_t *)(w.bytes + 112), getpid());
    CHECK(walk_u64(&w, 96) > 0 && walk_u64(&w, 120) > 0 && walk_u64(&w, 136) != 0);
    walk_close(&w);

    other = open(f.path, O_RDONLY);
    CHECK(flock(other, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK); /* alive */
    char path[SDB_PATH_MAX];
    strcpy(path, f.path);
    sdb_ring_file_close(&f);
    CHECK(flock(other, LOCK_SH | LOCK_NB) == 0);
    close(other);
    sdb_ring_file_close(&f); /* again: nothing */
    NEED(walk_open(&w, path));
    CHECK_EQ(walk_state(&w), SDB_RING_CLOSED);
    walk_close(&w);
}

static int
create_in(const char *dir, uint64_t bytes)
{
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file f;
    int err;

    config.ring_bytes = bytes;
    err = sdb_ring_file_create(&f, &config);
    if (err == 0) {
        unlink(f.path);
        sdb_ring_file_close(&f);
    }
    return err;
}

static void
wrong_directories_and_sizes_are_refused(void)
{
    char lengthy[2000];
    int fd;

    CHECK_EQ(create_in(below("size"), SDB_RING_MIN_BYTES - 1), SDB_ERR_INVALID);
    CHECK_EQ(create_in(below("size"), UINT64_MAX), SDB_ERR_INVALID);
    CHECK_EQ(create_in("", SDB_RING_MIN_BYTES), SDB_ERR_INVALID);
    memset(lengthy, 'd', sizeof lengthy);
    lengthy[0] = '/';
    lengthy[sizeof lengthy - 1] = '\0';
    CHECK_EQ(create_in(lengthy, SDB_RING_MIN_BYTES), SDB_ERR_INVALID);

    fd = open(below("plain"), O_CREAT | O_WRONLY, 0600);
    close(fd);
    CHECK_EQ(create_in(below("plain"), SDB_RING_MIN_BYTES), SDB_ERR_ACCESS);
    CHECK_EQ(create_in(below("plain/sub"), SDB_RING_MIN_BYTES), SDB_ERR_ACCESS);
}

static void
odd_names_and_symlinked_directories_work(void)
{
    mkdir(below("real"), 0700);
    NEED(symlink("real", below("link")) == 0);
    CHECK_EQ(create_in(below("link"), SDB_RING_MIN_BYTES), 0);
    CHECK_EQ(create_in(below("with space and \xc3\xa9\xe2\x82\xac"), SDB_RING_MIN_BYTES), 0);
}

/* Creates and closes a ring; the directory it lay in. */
static const char *
lies_in(const char *dir, const char *tmp)
{
    static char in[SDB_PATH_MAX];
    struct sdb_ring_config config = config_for(dir);
    static struct sdb_ring_file f;

    config.tmp = tmp;
    in[0] = '\0';
    if (sdb_ring_file_create(&f, &config) != 0) return f.reason;
    strcpy(in, f.dir);
    unlink(f.path);
    sdb_ring_file_close(&f);
    return in;
}

static void
make_dir(const char *dir, mode_t mode, uid_t owner)
{
    NEED(mkdir(dir, 0700) == 0 || errno == EEXIST);
    NEED(chmod(dir, mode) == 0);
    NEED(owner == geteuid() || chown(dir, owner, owner) == 0);
}

static void
where_others_may_write_there_is_a_subfolder_of_our_own(void)
{
    static const mode_t modes[] = {0777, 01777, 0770, 02775};
    char sub[SDB_PATH_MAX];
    struct stat st;

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        make_dir(below("shared0"), modes[i], geteuid());
        snprintf(sub, sizeof sub, "%s/sdb-%u", below("shared0"), (unsigned)geteuid());
        CHECK(strcmp(lies_in(below("shared0"), NULL), sub) == 0);
        NEED(stat(sub, &st) == 0);
        CHECK_EQ(st.st_mode & 0777, 0700);
        NEED(chmod(sub, 0777) == 0); /* ours: what somebody opened is closed again */
        CHECK(strcmp(lies_in(below("shared0"), NULL), sub) == 0);
        NEED(stat(sub, &st) == 0);
        CHECK_EQ(st.st_mode & 0777, 0700);
        NEED(rmdir(sub) == 0);
        NEED(symlink("/tmp", sub) == 0); /* followed, it would be where others may write */
        CHECK(strstr(lies_in(below("shared0"), NULL), "is not a directory of uid") != NULL);
        NEED(unlink(sub) == 0);
    }
}

static char volume[300], private_dir[300], temporary[300];

static void
as_another_user(void)
{
    char expected[SDB_PATH_MAX];

    if (setgid(12345) != 0 || setuid(12345) != 0) _exit(77);
    snprintf(expected, sizeof expected, "%s/sdb-12345", volume);
    CHECK(strcmp(lies_in(volume, NULL), expected) == 0);
    CHECK(strstr(lies_in(private_dir, NULL), "uid 12345 may not write to ") != NULL);
    snprintf(expected, sizeof expected, "%s/sdb-12345.1", temporary);
    CHECK(strcmp(lies_in(private_dir, temporary), expected) == 0); /* the first is root's */
    CHECK(strcmp(lies_in("", temporary), expected) == 0);
}

static void
a_user_who_was_root_has_a_place_of_his_own(void)
{
    int code;

    if (geteuid() != 0) SKIP("needs root to become another user");
    chmod(base, 0755);
    snprintf(volume, sizeof volume, "%s", below("volume"));
    snprintf(private_dir, sizeof private_dir, "%s", below("roots"));
    snprintf(temporary, sizeof temporary, "%s", below("temporary"));
    make_dir(volume, 0777, 0);
    make_dir(private_dir, 0755, 0);
    make_dir(temporary, 01777, 0);
    make_dir(below("temporary/sdb-12345"), 0777, 0); /* made first by somebody else */
    code = in_child(as_another_user);
    if (code == 77) SKIP("cannot become another user");
    CHECK_EQ(code, 0);
    CHECK_EQ(count_files(below("temporary/sdb-12345")), 0);
    /* and root in a directory of a user */
    make_dir(below("theirs"), 0755, 12345);
    CHECK(strstr(lies_in(below("theirs"), NULL), "/theirs/sdb-0") != NULL);
}

/* ---- full disks and limits ---- */

static void
on_a_small_disk(void)
{
    struct sdb_ring_config config;
    struct sdb_ring_file f;
    char word[8] = {0};

    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", below("disk"), "tmpfs", 0, "size=6m,mode=700") != 0) {
        _exit(77);
    }
    config = config_for(below("disk"));
    config.ring_bytes = 64 << 20; /* larger than the disk: it gets as much as there is */
    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    CHECK(sdb_ring_file_room_for(&f, 0) && sdb_ring_file_room_for(&f, 1));
    CHECK(sdb_ring_file_room_for(&f, 2) && !f.stays_small);
    uint64_t place = 3;
    while (sdb_ring_file_room_for(&f, place)) place++;
    CHECK(place < 6 && f.stays_small);
    CHECK(!sdb_ring_file_room_for(&f, place + 1));
    CHECK_EQ(create_in(below("disk"), SDB_RING_MIN_BYTES), SDB_ERR_NOSPC);
    CHECK_EQ(count_files(below("disk")), 1); /* nothing left behind */
    CHECK_EQ(sdb_ring_file_write(&f, 100000, word, sizeof word), 0);
    /* space that a truncation gave away and others took: the write fails, nothing else happens */
    NEED(ftruncate(f.own.fd, 16384) == 0);
    int hog = open(below("disk/hog"), O_CREAT | O_WRONLY, 0600);
    char block[65536] = {0};
    while (write(hog, block, sizeof block) > 0) continue;
    CHECK_EQ(sdb_ring_file_write(&f, 2 << 20, block, sizeof block), SDB_ERR_NOSPC);
    CHECK_EQ(f.last_errno, ENOSPC);
    sdb_ring_file_close(&f);
}

static void
a_full_disk_is_an_error_code(void)
{
    int code;

    mkdir(below("disk"), 0700);
    code = in_child(on_a_small_disk);
    if (code == 77) SKIP("needs root to mount a small tmpfs");
    CHECK_EQ(code, 0);
}

static void
with_a_file_size_limit(void)
{
    struct sdb_ring_config config = config_for(below("limit"));
    struct sdb_ring_file f;
    struct rlimit limit = {1 << 20, RLIM_INFINITY};
    sigset_t xfsz, before, pending;
    char word[8] = {0};

    signal(SIGXFSZ, SIG_DFL); /* death */
    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_EQ(create_in(below("limit"), SDB_RING_MIN_BYTES), SDB_ERR_NOSPC);
    CHECK_EQ(count_files(below("limit")), 1);
    sigpending(&pending);
    CHECK(!sigismember(&pending, SIGXFSZ));
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    CHECK(!sigismember(&before, SIGXFSZ));

    sigemptyset(&xfsz); /* as the scanner thread does */
    sigaddset(&xfsz, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &xfsz, NULL);
    CHECK_EQ(sdb_ring_file_write(&f, 2 << 20, word, sizeof word), SDB_ERR_NOSPC);
    CHECK_EQ(f.last_errno, EFBIG);
    CHECK_EQ(sdb_ring_file_write(&f, 100000, word, sizeof word), 0);
    sdb_ring_file_close(&f);
}

static void
rlimit_fsize_never_kills(void)
{
    CHECK_EQ(in_child(with_a_file_size_limit), 0);
}

static void
closing_under_a_limit(void)
{
    struct sdb_ring_config config = config_for(below("limit2"));
    struct sdb_ring_file f;
    struct rlimit limit = {0, RLIM_INFINITY};

    signal(SIGXFSZ, SIG_DFL);
    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    sdb_ring_file_close(&f);
}

static void
closing_with_nothing_allowed_does_not_kill(void)
{
    CHECK_EQ(in_child(closing_under_a_limit), 0);
}

/* ---- deleted, truncated, overwritten while live ---- */

static void
whatever_happens_to_the_file_the_writer_lives(void)
{
    struct sdb_ring_config config = config_for(below("fate"));
    struct sdb_ring_file f;
    char block[4096] = {1};
    int fd;

    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    sdb_ring_file_keep_resident(&f, f.identity.chunks_off + 5, 1 << 18);
    NEED(truncate(f.path, 100) == 0);
    CHECK_EQ(sdb_ring_file_write(&f, f.identity.chunks_off, block, sizeof block),
             0); /* a hole before it */
    sdb_ring_file_keep_resident(&f, f.identity.chunks_off + (1 << 18), 1 << 18);
    sdb_ring_file_keep_resident(&f, f.identity.file_bytes - 10, 1 << 18);
    fd = open(f.path, O_WRONLY | O_TRUNC);
    NEED(write(fd, "garbage", 7) == 7);
    close(fd);
    CHECK_EQ(sdb_ring_file_write(&f, f.identity.chunks_off, block, sizeof block), 0);
    NEED(unlink(f.path) == 0);
    CHECK_EQ(sdb_ring_file_write(&f, f.identity.chunks_off, block, sizeof block), 0);
    sdb_ring_file_close(&f);
    CHECK(!f.open);
}

static void
the_window_is_locked_where_allowed(void)
{
    struct sdb_ring_config config = config_for(below("window"));
    struct sdb_ring_file f;
    struct rlimit limit = {0};

    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    sdb_ring_file_keep_resident(&f, f.identity.chunks_off + 5, 1 << 16);
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur >= 1 << 20 || geteuid() == 0) CHECK(f.resident != NULL);
    if (f.resident != NULL) {
        CHECK_EQ(f.resident_off, f.identity.chunks_off);
        CHECK_EQ(f.resident_bytes, (1 << 16) + 5);
    }
    sdb_ring_file_close(&f);
    CHECK(f.resident == NULL);
}

static struct sdb_ring_file inherited;

static void
abandon_it(void)
{
    int fd = inherited.own.fd;

    sdb_ring_file_forget(&inherited);
    CHECK(!inherited.open);
    CHECK(fcntl(fd, F_GETFD) < 0);
    sdb_ring_file_close(&inherited); /* nothing */
}

static void
a_forked_child_lets_go_without_a_trace(void)
{
    struct sdb_ring_config config = config_for(below("fork"));
    struct walk_file w;
    int other;

    CHECK_EQ(sdb_ring_file_create(&inherited, &config), 0);
    sdb_ring_file_keep_resident(&inherited, inherited.identity.chunks_off, 1 << 16);
    CHECK_EQ(in_child(abandon_it), 0);
    other = open(inherited.path, O_RDONLY);
    CHECK(flock(other, LOCK_SH | LOCK_NB) != 0);
    close(other);
    NEED(walk_open(&w, inherited.path));
    CHECK_EQ(walk_state(&w), SDB_RING_LIVE);
    walk_close(&w);
    sdb_ring_file_close(&inherited);
}

/* ---- the app's descriptors, where a table of our own is not allowed (that of this thread is the app's) ---- */

static void
the_app_takes_our_number(void)
{
    const char *dir = below("numbers");
    struct sdb_ring_config config = config_for(dir);
    struct sdb_ring_file f;
    struct stat st;
    char block[4096] = {1}, path[SDB_PATH_MAX];
    int lock, number;

    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    strcpy(path, f.path);
    number = f.own.fd;
    CHECK(number >= 512);
    close(number);
    lock = open(path, O_RDONLY);
    CHECK(flock(lock, LOCK_SH | LOCK_NB) != 0);              /* no descriptor, and still alive */
    NEED(dup2(open("/dev/null", O_RDWR), number) == number); /* another device */
    CHECK_EQ(sdb_ring_file_write(&f, f.identity.chunks_off, block, sizeof block), 0);
    CHECK(f.own.fd != number);
    number = f.own.fd;
    int theirs = open(below("numbers/theirs"), O_CREAT | O_RDWR, 0600); /* the same device */
    NEED(dup2(theirs, number) == number);
    CHECK_EQ(sdb_ring_file_write(&f, f.identity.chunks_off, block, sizeof block), 0);
    NEED(fstat(theirs, &st) == 0);
    CHECK_EQ(st.st_size, 0);
    sdb_ring_file_keep_resident(&f, f.identity.chunks_off, 1 << 16);

    NEED(dup2(theirs, f.own.fd) == f.own.fd);
    number = f.own.fd;
    NEED(rename(path, below("numbers/moved")) == 0);
    CHECK_EQ(sdb_ring_file_write(&f, 0, block, sizeof block), SDB_ERR_IO);
    CHECK_EQ(f.last_errno, ENOENT);
    NEED(link(below("numbers/theirs"), path) == 0); /* another file of that name */
    CHECK_EQ(sdb_ring_file_write(&f, 0, block, sizeof block), SDB_ERR_IO);
    CHECK_EQ(f.last_errno, ESTALE);
    CHECK(flock(lock, LOCK_SH | LOCK_NB) != 0);
    sdb_ring_file_close(&f);
    CHECK(fcntl(number, F_GETFD) >= 0); /* theirs */
    NEED(fstat(theirs, &st) == 0);
    CHECK_EQ(st.st_size, 0);
    CHECK(flock(lock, LOCK_SH | LOCK_NB) == 0);
    close(lock);
    close(theirs);
    close(number);
}

static void
header_text_is_cut_with_argv_last(void)
{
    struct sdb_ring_config config = config_for(below("text"));
    struct sdb_ring_file f;
    char *text = calloc(1, 9000);
    struct walk_file w;

    memset(text, 'a', 7000);
    memcpy(text, "service=", 8);
    memset(text + 7001, 'b', 1000); /* does not fit behind the first; argv.0 still does */
    strcpy(text + 8002, "host=h");
    config.text = text;
    config.text_bytes = 8009;
    CHECK_EQ(sdb_ring_file_create(&f, &config), 0);
    NEED(walk_open(&w, f.path));
    CHECK_EQ(walk_state(&w), SDB_RING_LIVE);
    CHECK(memcmp(w.bytes + 256 + 7001, "host=h\0argv.0=", 14) == 0);
    walk_close(&w);
    sdb_ring_file_close(&f);
    free(text);
}

int
main(void)
{
    char command[300];

    t_mkdir(base);
    RUN(a_ring_is_made_and_closed);
    RUN(wrong_directories_and_sizes_are_refused);
    RUN(odd_names_and_symlinked_directories_work);
    RUN(where_others_may_write_there_is_a_subfolder_of_our_own);
    RUN(a_user_who_was_root_has_a_place_of_his_own);
    RUN(a_full_disk_is_an_error_code);
    RUN(rlimit_fsize_never_kills);
    RUN(closing_with_nothing_allowed_does_not_kill);
    RUN(whatever_happens_to_the_file_the_writer_lives);
    RUN(the_window_is_locked_where_allowed);
    RUN(a_forked_child_lets_go_without_a_trace);
    RUN(the_app_takes_our_number);
    RUN(header_text_is_cut_with_argv_last);
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    if (system(command) != 0) return 1;
    return t_done();
}
