/* SPDX-License-Identifier: MIT
 *
 * error.c - the words of enum sdb_err. Runs on: any
 */
#include "error.h"

const char *
sdb_error_text(int err)
{
    switch ((enum sdb_err)err) {
    case SDB_OK:
        return "no error";
    case SDB_ERR_NOMEM:
        return "out of memory";
    case SDB_ERR_IO:
        return "reading or writing a file failed";
    case SDB_ERR_NOSPC:
        return "no room on the disk";
    case SDB_ERR_ACCESS:
        return "the directory or file is not ours or not writable";
    case SDB_ERR_INVALID:
        return "a value is out of range";
    case SDB_ERR_NOT_RING:
        return "not a ring file of sdb";
    case SDB_ERR_VERSION:
        return "written by a newer sdb";
    case SDB_ERR_CORRUPT:
        return "the ring file is damaged";
    case SDB_ERR_FULL:
        return "no room left in a table";
    case SDB_ERR_AGAIN:
        return "it moved while being read";
    case SDB_ERR_UNSUPPORTED:
        return "not supported by this platform or Ruby";
    case SDB_ERR_THREAD:
        return "a native thread could not be started";
    case SDB_ERR_STOPPED:
        return "stopped";
    }
    return "unknown error";
}
