/* SPDX-License-Identifier: MIT
 *
 * testing_layout.h - see testing_layout.c. Only in builds with SDB_TESTING.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_TESTING_LAYOUT_H
#define SDB_TESTING_LAYOUT_H

#include <ruby.h>

/* Defines layout_table, calibrate, prove_layout, force_layout, layout_each, heap_kind and frame_addresses on `module`. */
void Init_sdb_testing_layout(VALUE module);

#endif
