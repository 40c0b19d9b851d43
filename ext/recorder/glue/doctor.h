/* SPDX-License-Identifier: MIT
 *
 * doctor.h - what Sdb.doctor cannot see from Ruby.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_DOCTOR_H
#define SDB_DOCTOR_H

#include <ruby.h>

/* Defines doctor_layout, doctor_facts and doctor_tick_cost on `module`. */
void Init_sdb_doctor(VALUE module);

#endif
