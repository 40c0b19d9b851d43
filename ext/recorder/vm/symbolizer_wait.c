/* SPDX-License-Identifier: MIT
 *
 * symbolizer_wait.c - how the symbolizer's thread waits for work.
 *
 * On 3.3+ without the GVL on a futex, for a moment only. Before, it stays, and must wait as a thread of the app would: a
 * program with one thread has a helper in each call without the GVL that has its own unblock function, to handle signals
 * (thread.c:rb_nogvl); with a second thread the VM expects that one to do it, and only a thread that sleeps or waits for a
 * descriptor does (thread_pthread.c:rb_sigwait_fd_get).
 *
 * Runs on: symbolizer, GVL, but for _ring
 */
#include "vm/symbolizer_impl.h"

#include <linux/futex.h>
#include <ruby/io.h>
#include <ruby/thread.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "sdb_atomic.h"
#include "vm/protect.h"

static bool
is_called(void)
{
    return sdb_load_seq_cst(&sdb_symbolizer.box.asked) || sdb_load_acquire(&sdb_symbolizer.stop);
}

static void *
wait_on_futex(void *argument)
{
    const uint64_t *timeout_ns = argument;
    struct timespec t = {.tv_sec = (time_t)(*timeout_ns / 1000000000ull),
                         .tv_nsec = (long)(*timeout_ns % 1000000000ull)};
    if (!is_called())
        syscall(SYS_futex, &sdb_symbolizer.box.asked, FUTEX_WAIT_PRIVATE, 0,
                *timeout_ns ? &t : NULL, NULL, 0);
    return NULL;
}

static void
interrupt_futex(void *unused)
{
    (void)unused;
    sdb_mailbox_call(&sdb_symbolizer.box, SDB_ASK_WORK);
}

static VALUE
wait_for_pipe(VALUE fd)
{
    rb_wait_for_single_fd((int)fd, RB_WAITFD_IN, NULL);
    return Qnil;
}

/* False: there is no pipe. */
static bool
wait_on_pipe(void)
{
    struct sdb_wake_pipe *pipe = &sdb_symbolizer.pipe;
    if (!sdb_wake_pipe_rest(pipe) && !sdb_wake_pipe_open(pipe)) return false;
    sdb_store_relaxed(&sdb_symbolizer.lost, 0);
    /* from here on who asks rings; who asked before finds its bits taken into account. Pairs with _ring */
    sdb_store_seq_cst(&sdb_symbolizer.waits, 1);
    VALUE error = Qnil;
    bool fine =
        is_called() || sdb_protect(wait_for_pipe, (VALUE)sdb_load_relaxed(&pipe->fd), &error);
    sdb_store_relaxed(&sdb_symbolizer.waits, 0);
    if (fine) return true;
    /* IO#close of the app tells whoever waits, and closes when we are gone: the number is the app's now */
    if (!RTEST(rb_obj_is_kind_of(error, rb_eIOError))) sdb_go_on(error);
    sdb_wake_pipe_forget(pipe);
    return true;
}

void
sdb_symbolizer_wait(uint64_t timeout_ns)
{
    if (SDB_SYMBOLIZER_STAYS && wait_on_pipe()) return;
    rb_thread_call_without_gvl(wait_on_futex, &timeout_ns, interrupt_futex, NULL);
}

void
sdb_symbolizer_ring(void)
{
    if (!sdb_load_seq_cst(&sdb_symbolizer.waits)) return;
    sdb_store_relaxed(&sdb_symbolizer.lost, !sdb_wake_pipe_ring(&sdb_symbolizer.pipe));
}
