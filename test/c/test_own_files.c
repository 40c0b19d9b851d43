/* SPDX-License-Identifier: MIT
 *
 * test_own_files.c - a thread with a descriptor table of its own: nothing of the app's stays open in it, nothing it
 * opens can be reached from outside, and what the kernel keeps with a file ends with it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "core/own_files.h"
#include "t.h"

static struct {
    sem_t ready, go;
    enum sdb_files_way way;
    struct sdb_own_fd own;
    char path[300];
} holder;

static void *
hold(void *unused)
{
    holder.way = sdb_own_files_begin();
    holder.own = sdb_own_fd_take(open(holder.path, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    CHECK(holder.own.fd >= 3);
    CHECK_EQ(sdb_own_fd_use(&holder.own), holder.own.fd);
    CHECK_EQ(flock(holder.own.fd, LOCK_EX | LOCK_NB), 0);
    sem_post(&holder.ready);
    sem_wait(&holder.go);
    sdb_own_fd_close(&holder.own);
    return NULL;
}

static bool
is_held(void)
{
    int fd = open(holder.path, O_RDONLY);
    bool held = flock(fd, LOCK_SH | LOCK_NB) != 0;

    close(fd);
    return held;
}

static void
the_table_is_the_threads_own(void)
{
    pthread_t thread;
    int ends[2], number;
    char byte;

    sem_init(&holder.ready, 0, 0);
    sem_init(&holder.go, 0, 0);
    NEED(pipe(ends) == 0);
    pthread_create(&thread, NULL, hold, NULL);
    sem_wait(&holder.ready);
    CHECK_EQ(holder.way, SDB_FILES_PRIVATE);
    CHECK(holder.own.is_private);
    close(ends[1]);
    CHECK_EQ(read(ends[0], &byte, 1), 0); /* the end of the pipe: nobody else has it open */
    close(ends[0]);
    number = open("/dev/null", O_RDONLY);
    CHECK(number < 10); /* none of our numbers is taken */
    for (int fd = 3; fd < 1024; fd++) close(fd);
    CHECK(is_held());
    sem_post(&holder.go);
    pthread_join(thread, NULL);
    CHECK(!is_held());
}

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
deny(long a, long b)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)a, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)b, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

static void
without_close_range(void)
{
    deny(436, 436); /* close_range */
    the_table_is_the_threads_own();
}

static void
an_older_kernel_copies_the_table(void)
{
    int code = in_child(without_close_range);

    if (code == 77) SKIP("no seccomp here");
    CHECK_EQ(code, 0);
}

static void
without_either(void)
{
    int other;

    deny(436, SYS_unshare);
    CHECK_EQ(sdb_own_files_begin(), SDB_FILES_SHARED);
    struct sdb_own_fd own = sdb_own_fd_take(open(holder.path, O_CREAT | O_RDWR, 0600));
    CHECK(own.fd >= 512 && !own.is_private);
    CHECK_EQ(sdb_own_fd_use(&own), own.fd);
    other = dup2(open("/dev/null", O_RDONLY), own.fd);
    CHECK_EQ(sdb_own_fd_use(&own), -1);
    sdb_own_fd_close(&own);
    CHECK(fcntl(other, F_GETFD) >= 0);
    CHECK_EQ(sdb_own_fd_take(-1).fd, -1);
}

static void
where_both_are_refused_each_use_is_checked(void)
{
    int code = in_child(without_either);

    if (code == 77) SKIP("no seccomp here");
    CHECK_EQ(code, 0);
}

int
main(void)
{
    char base[256];

    t_mkdir(base);
    snprintf(holder.path, sizeof holder.path, "%s/file", base);
    RUN(the_table_is_the_threads_own);
    RUN(an_older_kernel_copies_the_table);
    RUN(where_both_are_refused_each_use_is_checked);
    unlink(holder.path);
    rmdir(base);
    return t_done();
}
