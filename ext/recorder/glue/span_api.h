/* SPDX-License-Identifier: MIT
 *
 * span_api.h - spans, tags and marks for Ruby: what lib/sdb/span.rb describes.
 */
#ifndef SDB_SPAN_API_H
#define SDB_SPAN_API_H

#include <ruby.h>

void Init_sdb_span_api(VALUE native);

#endif
