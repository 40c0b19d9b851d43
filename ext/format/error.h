/* SPDX-License-Identifier: MIT
 *
 * error.h - the error codes of everything below the glue, and their words.
 * Functions return 0 (or a count) or one of these, negative. Only glue raises.
 *
 * Runs on: any
 */
#ifndef SDB_ERROR_H
#define SDB_ERROR_H

enum sdb_err {
    SDB_OK = 0,
    SDB_ERR_NOMEM = -1,
    SDB_ERR_IO = -2,           /* errno tells */
    SDB_ERR_NOSPC = -3,        /* no room on the disk */
    SDB_ERR_ACCESS = -4,       /* directory or file not ours, or not writable */
    SDB_ERR_INVALID = -5,      /* an argument or option out of range */
    SDB_ERR_NOT_RING = -6,     /* no sdb magic */
    SDB_ERR_VERSION = -7,      /* a newer major format */
    SDB_ERR_CORRUPT = -8,      /* magic right, contents wrong */
    SDB_ERR_FULL = -9,         /* an area, table or block has no room left */
    SDB_ERR_AGAIN = -10,       /* moved while being read: try again */
    SDB_ERR_UNSUPPORTED = -11, /* this platform or Ruby cannot do it */
    SDB_ERR_THREAD = -12,      /* a native thread could not be started */
    SDB_ERR_STOPPED = -13,     /* whoever asked wants no answer any more */
};

/* Words for people, without a full stop: "no room on the disk". Never NULL. */
const char *sdb_error_text(int err);

#endif
