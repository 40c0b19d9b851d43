/* SPDX-License-Identifier: MIT
 *
 * testing.h - deterministic handles for tests. Only in builds with SDB_TESTING.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_TESTING_H
#define SDB_TESTING_H

#include <ruby.h>

/* Defines sleep_holding_gvl, spin_holding_gvl, spin_without_gvl and poll_once on `module`. */
void Init_sdb_testing(VALUE module);

#endif
