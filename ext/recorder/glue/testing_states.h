/* SPDX-License-Identifier: MIT
 *
 * testing_states.h - see testing_states.c. Only in builds with SDB_TESTING.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_TESTING_STATES_H
#define SDB_TESTING_STATES_H

#include <ruby.h>

/* Defines state_clock_start and state_clock on `module`. */
void Init_sdb_testing_states(VALUE module);

#endif
