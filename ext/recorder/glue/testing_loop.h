/* SPDX-License-Identifier: MIT
 *
 * testing_loop.h - see testing_loop.c. Only in builds with SDB_TESTING.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_TESTING_LOOP_H
#define SDB_TESTING_LOOP_H

#include <ruby.h>

/* Defines empty_loop_start, empty_loop_ticks and empty_loop_stop on `module`. */
void Init_sdb_testing_loop(VALUE module);

#endif
