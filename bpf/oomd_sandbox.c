/* SPDX-License-Identifier: MIT
 *
 * oomd_sandbox.c - see oomd_sandbox.h.
 *
 * Runs on: children of the daemon
 */
#include "oomd_sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

static const unsigned calls[] = {
    SYS_read,         SYS_write,          SYS_pread64,         SYS_pwrite64,
    SYS_close,        SYS_lseek,          SYS_fstat,           SYS_ftruncate,
    SYS_fsync,        SYS_fcntl,          SYS_mincore,         SYS_mmap,
    SYS_munmap,       SYS_mremap,         SYS_madvise,         SYS_mprotect,
    SYS_brk,          SYS_getrandom,      SYS_clock_gettime,   SYS_futex,
    SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_restart_syscall, SYS_exit,
    SYS_exit_group,   SYS_getpid,
};

static const unsigned opening_calls[] = {
    SYS_openat,     SYS_newfstatat, SYS_statx,    SYS_fstatfs,
    SYS_readlinkat, SYS_getdents64, SYS_setfsuid,
#ifdef SYS_open /* older architectures have both */
    SYS_open,       SYS_stat,       SYS_readlink,
#endif
};

enum {
    COUNT = sizeof calls / sizeof *calls,
    OPENING = sizeof opening_calls / sizeof *opening_calls
};

bool
oomd_sandbox_enter(bool may_open)
{
#if defined(ARCHITECTURE) && !defined(__SANITIZE_ADDRESS__)
    struct sock_filter f[8 + 2 * (COUNT + OPENING)];
    unsigned short n = 0;
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < COUNT + (may_open ? (unsigned)OPENING : 0); i++) {
        unsigned call = i < COUNT ? calls[i] : opening_calls[i - COUNT];
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = n, .filter = f};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0 || errno == EINVAL;
#else
    (void)may_open;
    (void)calls;
    (void)opening_calls;
    return true;
#endif
}
