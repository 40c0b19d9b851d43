/* SPDX-License-Identifier: MIT
 *
 * source.h - bytes that a log is read from: a file, a part of one (the ring inside a dump), or memory.
 * Files are read with pread into the caller's buffer and never mapped: others may change or truncate them
 * at any time, and a short read is all that comes of it.
 *
 * Runs on: offline
 */
#ifndef SDB_SOURCE_H
#define SDB_SOURCE_H

#include <stddef.h>
#include <stdint.h>

struct sdb_source {
    int fd;                       /* -1: memory */
    const uint8_t *bytes;         /* borrowed; with fd == -1 */
    uint64_t off;                 /* where it begins in the file or in bytes */
    uint64_t n;                   /* bytes it has, as of the opening */
    uint64_t killed_monotonic_ns; /* of a dump, when its process was killed; 0 not known */
};

/* A regular file, opened O_RDONLY without ever blocking (a FIFO or device is SDB_ERR_NOT_RING).
 * 0, SDB_ERR_IO (errno), SDB_ERR_NOT_RING. */
int sdb_source_open(struct sdb_source *s, const char *path);
/* The same of a file that is open already; fd stays the caller's, and where it stands does not matter. */
int sdb_source_open_again(struct sdb_source *s, int fd);
/* `bytes` must outlive it. */
void sdb_source_memory(struct sdb_source *s, const void *bytes, size_t n);
void sdb_source_close(struct sdb_source *s);

/* Reads up to n bytes at off. The number read: less than n at the end or after a truncation, 0 too when
 * off lies behind it. SDB_ERR_IO on an I/O error (errno). */
int64_t sdb_source_read(const struct sdb_source *s, uint64_t off, void *buffer, size_t n);

/* When the source is a dump (dump_format.h), narrows it to the ring inside and takes from its FACTS when the process
 * was killed; anything else is left as it is.
 * 0, SDB_ERR_IO, or what is wrong with the dump: SDB_ERR_VERSION, _CORRUPT, _NOT_RING (a dump without ring). */
int sdb_source_enter_dump(struct sdb_source *s);

#endif
