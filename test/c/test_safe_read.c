/* SPDX-License-Identifier: MIT
 *
 * test_safe_read.c - memory that is not there is an error; and what happens where a sandbox forbids the
 * system call (a seccomp filter in a forked child).
 */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "core/safe_read.h"
#include "error.h"
#include "t.h"

static size_t page;
static uint8_t *good, *hole, *secret; /* three pages: readable, unmapped, PROT_NONE */

static void
map_pages(void)
{
    page = (size_t)sysconf(_SC_PAGESIZE);
    good = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    NEED(good != MAP_FAILED);
    memset(good, 0x5a, page);
    hole = good + page;
    secret = good + 2 * page;
    NEED(munmap(hole, page) == 0);
    NEED(mprotect(secret, page, PROT_NONE) == 0);
}

static void
read_all_kinds(void)
{
    uint8_t *out = malloc(2 * page);
    struct sdb_safe_piece pieces[SDB_SAFE_PIECES_MAX + 1] = {{0}};
    int wrong = 0;

    CHECK_EQ(sdb_safe_read(out, (uintptr_t)good, page), 0);
    CHECK(out[0] == 0x5a && out[page - 1] == 0x5a);
    CHECK_EQ(sdb_safe_read(out, (uintptr_t)good + 3, 17), 0);
    CHECK_EQ(sdb_safe_read(out, (uintptr_t)hole, 0), 0);
    CHECK(sdb_safe_read(out, (uintptr_t)hole, 8) < 0);
    CHECK(sdb_safe_read(out, (uintptr_t)hole - 4, 8) < 0); /* half of it is there */
    CHECK(sdb_safe_read(out, 0, 8) < 0);
    CHECK(sdb_safe_read(out, 0xdead000000000000ull, 8) < 0);
    CHECK(sdb_safe_read(out, UINT64_MAX - 3, 8) < 0);
    for (unsigned i = 0; i < SDB_SAFE_PIECES_MAX; i++) {
        uint8_t *src = i % 3 == 1 ? hole : i % 5 == 4 ? hole - 2 : good;

        pieces[i] = (struct sdb_safe_piece){
            .dst = out + 64 * i, .src = (uintptr_t)src, .bytes = 8 + i, .err = 99};
    }
    memset(out, 0, 2 * page);
    CHECK_EQ(sdb_safe_readv(pieces, SDB_SAFE_PIECES_MAX), 9);
    for (unsigned i = 0; i < SDB_SAFE_PIECES_MAX; i++) {
        bool fails = i % 3 == 1 || i % 5 == 4;

        wrong += (pieces[i].err != 0) != fails;
        if (!fails)
            wrong += out[64 * i] != 0x5a || out[64 * i + 7 + i] != 0x5a || out[64 * i + 8 + i] != 0;
    }
    CHECK_EQ(wrong, 0);
    CHECK_EQ(sdb_safe_readv(pieces, SDB_SAFE_PIECES_MAX + 1), SDB_ERR_INVALID);
    CHECK_EQ(sdb_safe_readv(pieces, 0), 0);
    free(out);
}

/* process_vm_readv honours page protection; /proc/self/mem reads like a debugger and does not. Either way
 * nothing crashes. */
static void
protected_pages_do_not_crash(void)
{
    uint64_t word;

    if (sdb_safe_read_way() == SDB_SAFE_READ_VM)
        CHECK(sdb_safe_read(&word, (uintptr_t)secret, 8) < 0);
    else CHECK(sdb_safe_read(&word, (uintptr_t)secret, 8) <= 0);
}

static void
this_process_can_read_itself(void)
{
    if (sdb_safe_read_probe() != SDB_SAFE_READ_VM) SKIP("process_vm_readv is forbidden here");
    CHECK(strcmp(sdb_safe_read_way_name(), "process_vm_readv") == 0);
    read_all_kinds();
    protected_pages_do_not_crash();
}

static bool
deny_vm_readv_and(long second_call)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)second_call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Runs `body` in a forked child; its checks count there, its exit code is the result. 77: no seccomp. */
static int
in_child(void (*body)(void), long denied)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        t_failures = 0;
        if (denied != 0 && !deny_vm_readv_and(denied)) _exit(77);
        body();
        _exit(t_failures > 0);
    }
    NEED(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void
uses_mem(void)
{
    CHECK_EQ(sdb_safe_read_probe(), SDB_SAFE_READ_MEM);
    CHECK(strcmp(sdb_safe_read_way_name(), "/proc/self/mem") == 0);
    read_all_kinds();
    protected_pages_do_not_crash();
}

static void
uses_nothing(void)
{
    struct sdb_safe_piece piece = {.bytes = 8};
    uint64_t word;

    CHECK_EQ(sdb_safe_read_probe(), SDB_SAFE_READ_NONE);
    CHECK(strcmp(sdb_safe_read_way_name(), "none") == 0);
    CHECK_EQ(sdb_safe_read(&word, (uintptr_t)good, 8), SDB_ERR_UNSUPPORTED);
    CHECK_EQ(sdb_safe_readv(&piece, 1), SDB_ERR_UNSUPPORTED);
    CHECK_EQ(piece.err, SDB_ERR_UNSUPPORTED);
}

static void
a_sandbox_without_process_vm_readv_falls_back(void)
{
    int code = in_child(uses_mem, SYS_process_vm_readv);

    if (code == 77) SKIP("no seccomp filters here");
    CHECK_EQ(code, 0);
}

static void
a_sandbox_without_both_says_so(void)
{
    int code = in_child(uses_nothing, SYS_openat);

    if (code == 77) SKIP("no seccomp filters here");
    CHECK_EQ(code, 0);
}

static uint64_t ours = 1;

static void
reads_its_own(void)
{
    uint64_t word = 0;

    CHECK_EQ(sdb_safe_read(&word, (uintptr_t)&ours, 8), SDB_ERR_UNSUPPORTED); /* not the parent's */
    ours = 2;
    CHECK(sdb_safe_read_probe() != SDB_SAFE_READ_NONE);
    CHECK_EQ(sdb_safe_read(&word, (uintptr_t)&ours, 8), 0);
    CHECK_EQ(word, 2);
}

static void
a_forked_child_never_reads_its_parent(void)
{
    sdb_safe_read_probe();
    CHECK_EQ(in_child(reads_its_own, 0), 0);
}

int
main(void)
{
    map_pages();
    RUN(this_process_can_read_itself);
    RUN(a_sandbox_without_process_vm_readv_falls_back);
    RUN(a_sandbox_without_both_says_so);
    RUN(a_forked_child_never_reads_its_parent);
    return t_done();
}
