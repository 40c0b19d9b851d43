/* SPDX-License-Identifier: MIT
 *
 * protect.h - calling what may raise, without swallowing what is not ours. Where we run, the app may be told to end:
 * Thread#kill, Timeout, exit, a signal's exception arrive inside our call as well, and a plain rb_protect loses them
 * (a killed thread then runs on with status "aborting", and no second kill ends it).
 * Thread#kill and Thread#raise wait outside where the caller has masked them (Sdb::Recorder.undisturbed); what a trap
 * raises cannot be masked.
 */
#ifndef SDB_PROTECT_H
#define SDB_PROTECT_H

#include <ruby.h>
#include <stdbool.h>

/* Calls f(argument). True: it returned. False: it raised an exception, which is forgotten (*error is it, unless error
 * is NULL). Signals, exit, Thread#kill and throw go on from here as if this call were not there. Runs on: any Ruby
 * thread, GVL. */
bool sdb_protect(VALUE (*f)(VALUE), VALUE argument, VALUE *error);
/* For steps that must come to their end: calls f(argument). False: an exception left it, now *held (which is nil at
 * first; the first one stays), for sdb_go_on when the steps are done. Thread#kill and throw go on from here. Runs on:
 * any Ruby thread, GVL. */
bool sdb_hold(VALUE (*f)(VALUE), VALUE argument, VALUE *held);
/* Raises what was held, or returns when that is nil. Runs on: any Ruby thread, GVL. */
void sdb_go_on(VALUE held);

#endif
