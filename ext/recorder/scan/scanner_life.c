/* SPDX-License-Identifier: MIT
 *
 * scanner_life.c - the scanner's thread: a descriptor table of its own, the file, the ticks, the seal. Who starts and
 * who stops it leads it through these by `life.may`; it says in `life.at` how far it is.
 *
 *     launch            at OPEN: the file is there, or file_err
 *     go                may RUN: ticks until `stop`
 *     halt              at HALT: the last tick is on the file; nothing of the recording moves any more
 *     end               may SEAL or GO: the thread seals the ring or leaves it, and ends
 */
#include "scan/scanner.h"

#include <signal.h>
#include <sys/prctl.h>
#include "core/own_files.h"
#include "core/safe_read.h"
#include "error.h"
#include "sdb_atomic.h"
#include "scan/flush.h"
#include "scan/upkeep.h"

enum { STACK_BYTES = 256 * 1024 };

static void
arrive(struct sdb_scanner *sc, int at)
{
    pthread_mutex_lock(&sc->life.lock);
    sc->life.at = at;
    pthread_cond_broadcast(&sc->life.changed);
    pthread_mutex_unlock(&sc->life.lock);
}

static void
await_arrival(struct sdb_scanner *sc, int at)
{
    pthread_mutex_lock(&sc->life.lock);
    while ((int)sc->life.at < at) pthread_cond_wait(&sc->life.changed, &sc->life.lock);
    pthread_mutex_unlock(&sc->life.lock);
}

static void
allow(struct sdb_scanner *sc, int may)
{
    pthread_mutex_lock(&sc->life.lock);
    sc->life.may = may;
    pthread_cond_broadcast(&sc->life.changed);
    pthread_mutex_unlock(&sc->life.lock);
}

static int
await_leave(struct sdb_scanner *sc, int may)
{
    pthread_mutex_lock(&sc->life.lock);
    while ((int)sc->life.may < may) pthread_cond_wait(&sc->life.changed, &sc->life.lock);
    may = sc->life.may;
    pthread_mutex_unlock(&sc->life.lock);
    return may;
}

static void *
scanner_main(void *argument)
{
    struct sdb_scanner *sc = argument;
    prctl(PR_SET_NAME, "sdb scanner", 0, 0, 0);
    prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
    sdb_own_files_begin();
    if (!sc->file_due_ns) sc->life.file_err = sdb_flush_open_file(sc);
    arrive(sc, SDB_AT_OPEN);
    if (sc->life.file_err) return NULL;
    await_leave(sc, SDB_MAY_RUN);
    sdb_scanner_run(sc);
    arrive(sc, SDB_AT_HALT);
    if (await_leave(sc, SDB_MAY_SEAL) == SDB_MAY_SEAL) sdb_upkeep_close(sc, NULL);
    else sdb_upkeep_abandon(sc);
    sdb_safe_read_scanner_ends();
    return NULL;
}

int
sdb_scanner_launch(struct sdb_scanner *sc)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    bool waits = !sc->file_due_ns;
    pthread_mutex_init(&sc->life.lock, NULL);
    pthread_cond_init(&sc->life.changed, NULL);
    sc->life.at = SDB_AT_BEGIN;
    sc->life.may = waits ? SDB_MAY_OPEN : SDB_MAY_RUN;
    sc->life.file_err = 0;
    if (pthread_attr_init(&attributes) != 0) return SDB_ERR_THREAD;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* the app's signals are the app's: the scanner inherits a mask that blocks them all */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sdb_store_release(&sc->stop, 0);
    int failed = pthread_create(&sc->thread, &attributes, scanner_main, sc);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (failed) return SDB_ERR_THREAD;
    sc->started = true;
    if (!waits) return 0;
    await_arrival(sc, SDB_AT_OPEN);
    if (!sc->life.file_err) return 0;
    pthread_join(sc->thread, NULL);
    sc->started = false;
    return sc->life.file_err;
}

void
sdb_scanner_go(struct sdb_scanner *sc)
{
    allow(sc, SDB_MAY_RUN);
}

void
sdb_scanner_halt(struct sdb_scanner *sc)
{
    if (!sc->started) return;
    sdb_store_release(&sc->stop, 1);
    if (sc->life.may < SDB_MAY_RUN)
        allow(sc, SDB_MAY_RUN); /* to its last tick, the only one then */
    sdb_scanner_wake(sc);
    await_arrival(sc, SDB_AT_HALT);
}

void
sdb_scanner_end(struct sdb_scanner *sc, bool seal)
{
    if (!sc->started) return;
    allow(sc, seal ? SDB_MAY_SEAL : SDB_MAY_GO);
    pthread_join(sc->thread, NULL);
    sc->started = false;
}
