/* SPDX-License-Identifier: MIT
 *
 * layout.h - where CRuby keeps what the scanner reads: a compiled-in table per Ruby version, and the proof
 * at run time that it is true of this process (calibration). Both must agree, else nothing scans.
 *
 * Runs on: any Ruby thread, GVL
 */
#ifndef SDB_LAYOUT_H
#define SDB_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>
#include "scan/offsets.h"

enum { SDB_REASON_BYTES = 512 };

/* The table's row for the running RUBY_VERSION, or NULL with words in reason. */
const struct sdb_layout *sdb_layout_table(char reason[SDB_REASON_BYTES]);
/* The row for a "3.3"-like version string, or NULL. For the tests and doctor. */
const struct sdb_layout *sdb_layout_for(const char *major_minor);

/* Measures this process without using the table. 0 with *out filled, or SDB_ERR_UNSUPPORTED with words.
 * Allocates Ruby objects; may run Ruby code of its own. The fields it cannot measure (sp, self,
 * jit_return, fiber) stay 0 and are not compared. */
int sdb_calibrate(struct sdb_layout *out, char reason[SDB_REASON_BYTES]);

/* Both, compared: *out is the row to use. 0, or SDB_ERR_UNSUPPORTED with the reason in words, which names
 * each field that differs ("cfp size: table 56, measured 64"). Honours sdb_layout_force (testing). */
int sdb_layout_prove(struct sdb_layout *out, char reason[SDB_REASON_BYTES]);

/* Testing: the next proves use `field` of the table (or of the calibration when measured) with `value`;
 * field NULL resets. false when there is no such field. */
bool sdb_layout_force(const char *field, bool measured, uint32_t value);

/* Visits name, table value, measured value of every field, for `sdb doctor`. */
typedef void sdb_layout_visit(const char *field, uint32_t table, uint32_t measured, bool compared,
                              void *data);
int sdb_layout_each(sdb_layout_visit *visit, void *data, char reason[SDB_REASON_BYTES]);

#endif
