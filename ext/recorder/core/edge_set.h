/* SPDX-License-Identifier: MIT
 *
 * edge_set.h - which caller -> callee edges were ever proven on a stack that stood still or was read equal
 * three times. A set of 64-bit fingerprints; forgetting an edge only costs another proof.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_EDGE_SET_H
#define SDB_EDGE_SET_H

#include <stdbool.h>
#include <stdint.h>

struct sdb_edge_set;

struct sdb_edge_set *sdb_edge_set_new(void);
void sdb_edge_set_free(struct sdb_edge_set *s);
/* Fingerprint of "caller (its code and call site) -> callee". Never 0. */
uint64_t sdb_edge(uint64_t caller, uint64_t call_site, uint64_t callee_iseq, uint64_t callee_ment);
bool sdb_edge_set_has(const struct sdb_edge_set *s, uint64_t edge);
/* Adds; when the set holds 2^18 edges it starts over empty. */
void sdb_edge_set_add(struct sdb_edge_set *s, uint64_t edge);
void sdb_edge_set_clear(struct sdb_edge_set *s);
uint64_t sdb_edge_set_memory_bytes(const struct sdb_edge_set *s);

#endif
