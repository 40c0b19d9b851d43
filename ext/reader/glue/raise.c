/* SPDX-License-Identifier: MIT
 *
 * raise.c - the only file of the reader in which the core's errors become Ruby's, and in which a long question hears
 * of Ctrl-C.
 *
 * Runs on: any Ruby thread, GVL; `ask` without
 */
#include <ruby.h>

#include <errno.h>
#include <ruby.h>
#include <ruby/thread.h>

#include "error.h"
#include "glue/glue.h"
#include "log/stop.h"

void
rb_sdb_check(int err, const char *what)
{
    if (err >= 0) return;
    if (err == SDB_ERR_IO && errno) rb_syserr_fail(errno, what);
    if (err == SDB_ERR_NOMEM) rb_raise(rb_eNoMemError, "%s: %s", what, sdb_error_text(err));
    rb_raise(rb_path2class("Sdb::FormatError"), "%s: %s", what, sdb_error_text(err));
}

struct question {
    int (*ask)(void *data);
    void *data;
    int stop; /* shared: atomic */
    int err, saved_errno;
};

static void *
question_run(void *argument)
{
    struct question *q = argument;
    sdb_stop_flag = &q->stop;
    q->err = q->ask(q->data);
    q->saved_errno = errno;
    sdb_stop_flag = NULL;
    return NULL;
}

/* Runs on: any thread */
static void
question_stop(void *argument)
{
    __atomic_store_n(&((struct question *)argument)->stop, 1, __ATOMIC_RELAXED);
}

int
rb_sdb_ask(int (*ask)(void *data), void *data)
{
    struct question q = {.ask = ask, .data = data};
    for (;;) {
        q.stop = 0;
        q.err = SDB_ERR_STOPPED; /* an interrupt that is pending already lets it not run at all */
        rb_thread_call_without_gvl(question_run, &q, question_stop, &q);
        if (q.err != SDB_ERR_STOPPED) break;
        rb_thread_check_ints();
    }
    errno = q.saved_errno;
    return q.err;
}
