/* SPDX-License-Identifier: MIT
 *
 * testpoint.h - named places where a test lets the process die, or steps in. Without SDB_TESTING they are nothing.
 * A test sets sdb_testpoint (or a process SDB_TESTPOINT=name[:n] in its environment, read by
 * sdb_testpoint_from_env) and the n-th pass through that point is a SIGKILL on itself.
 *
 * A test may set sdb_testpoint_hook instead: it is called at each pass through any point, and may change what the code
 * at that point is about to read.
 *
 * Names: before_header after_header_creating before_live before_block_write after_block_write
 * before_chunk_header after_chunk_header before_state_write before_symbol_write after_symbol_write
 * before_close walk_bounds walk_collected walk_publish
 *
 * Runs on: any
 */
#ifndef SDB_TESTPOINT_H
#define SDB_TESTPOINT_H

#ifdef SDB_TESTING

extern const char *sdb_testpoint;                    /* the name that kills, NULL none; borrowed */
extern unsigned sdb_testpoint_passes;                /* let so many pass first */
extern void (*sdb_testpoint_hook)(const char *name); /* NULL none */

void sdb_testpoint_from_env(void);
void sdb_testpoint_pass(const char *name);

#define SDB_TESTPOINT(name) sdb_testpoint_pass(#name)

#else

#define SDB_TESTPOINT(name) ((void)0)

#endif

#endif
