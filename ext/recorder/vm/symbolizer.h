/* SPDX-License-Identifier: MIT
 *
 * symbolizer.h - names what the scanner met, with the GVL, in small turns, only codes and threads never seen before: in a
 * postponed job or, where there is more to do, on a Ruby thread that soon leaves; before Ruby 3.3 on one that stays.
 *
 * Files: symbolizer.c when the thread comes and goes; symbolizer_wait.c how it waits; symbolizer_idle.c when the program
 * stands still; symbolizer_work.c what it does in a turn.
 */
#ifndef SDB_SYMBOLIZER_H
#define SDB_SYMBOLIZER_H

#include <ruby.h>
#include <stdbool.h>
#include "core/code_table.h"
#include "core/mailbox.h"
#include "vm/layout.h"
#include "scan/thread_table.h"

/* From now on what is asked is done; before 3.3 starts the thread when there is none. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_start(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                          const struct sdb_layout *layout);
/* The thread, for as long as there is new code: a recording begins, mostly with a program that begins, and one that then
 * comes to stand still at once runs no job. After _start. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_begin(void);
/* What a postponed job does, which swallows what is raised in it: gives the VM no occasion to. Runs on: any Ruby thread,
 * GVL. */
void sdb_symbolizer_job(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                        const struct sdb_layout *layout);
/* run(NULL) shall be that job, from 3.3 on. Once. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_prepare(void (*run)(void *));
/* Something was asked by way of the mailbox: sees that somebody takes it. Runs on: any. */
void sdb_symbolizer_come(void);
/* Asks it to end and waits until it did. Runs on: any Ruby thread, GVL (given up meanwhile). */
void sdb_symbolizer_stop(void);
/* Asks it to end and does not wait, so that no other thread runs because of us. False where one must wait after all: it is
 * naming something. Runs on: any Ruby thread, GVL. */
bool sdb_symbolizer_dismiss(void);
/* Names everything pending, on the calling thread, after the symbolizer ended. Runs on: any Ruby thread, GVL. */
void sdb_symbolizer_run_here_for(struct sdb_code_table *codes, struct sdb_thread_table *threads,
                                 const struct sdb_layout *layout);

/* Where the scanner asks for it, and finds what it did. Runs on: any. */
struct sdb_mailbox *sdb_symbolizer_mailbox(void);

/* In a forked child: forgets the thread, which did not come along. Runs on: atfork child handler. */
void sdb_symbolizer_forked(void);

#endif
