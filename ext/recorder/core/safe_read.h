/* SPDX-License-Identifier: MIT
 *
 * safe_read.h - reads memory of this process that may be gone: an address that is not mapped or not readable is
 * an error code, not a SIGSEGV. A read is a system call (0.3 us, 2 us on some virtual machines), so it is for what can
 * vanish only, and several pieces are read at once.
 *
 * Runs on: any; _probe before the others, and again in a forked child
 */
#ifndef SDB_SAFE_READ_H
#define SDB_SAFE_READ_H

#include <stddef.h>
#include <stdint.h>

enum sdb_safe_read_way {
    SDB_SAFE_READ_NONE = 0, /* a sandbox forbids both: all reads fail with SDB_ERR_UNSUPPORTED */
    SDB_SAFE_READ_VM = 1,   /* process_vm_readv on ourselves: needs no privilege */
    SDB_SAFE_READ_MEM = 2,  /* pread of /proc/self/mem */
};

enum { SDB_SAFE_PIECES_MAX = 16 };

struct sdb_safe_piece {
    void *dst;
    uint64_t src;
    size_t bytes;
    int err; /* out: 0, SDB_ERR_IO (not readable), SDB_ERR_UNSUPPORTED */
};

/* Tries the ways on a word of its own and keeps the first that works. Must be called again in a forked
 * child before any other read: until then a read there fails (it would read the parent). Not while another
 * thread reads. Only the scanner keeps a descriptor (own_files.h). */
enum sdb_safe_read_way sdb_safe_read_probe(void);
enum sdb_safe_read_way sdb_safe_read_way(void);
/* Closes what the scanner keeps. Runs on: scanner thread, before it ends. */
void sdb_safe_read_scanner_ends(void);
/* Words for status: "process_vm_readv", "/proc/self/mem", "none". */
const char *sdb_safe_read_way_name(void);

/* Copies n bytes from address src: all of them or SDB_ERR_IO / _UNSUPPORTED, and then dst holds anything. */
int sdb_safe_read(void *dst, uint64_t src, size_t n);

/* Up to SDB_SAFE_PIECES_MAX pieces in one call; each succeeds or fails by itself (.err). Returns how many
 * succeeded, SDB_ERR_INVALID for too many, SDB_ERR_UNSUPPORTED. */
int sdb_safe_readv(struct sdb_safe_piece *pieces, unsigned count);

#endif
