/* SPDX-License-Identifier: MIT
 *
 * wake_pipe.h - how the scanner wakes a Ruby thread that waits for a descriptor, as IO.select does. Before Ruby 3.3 only a
 * thread that waits in such a way, or sleeps, handles signals for the others.
 *
 * One descriptor, in the table that all threads of the app share, at a high number. The app may close it and get a file of
 * its own under that number, so nothing is ever read from or written to the number: whoever wants to do so opens, by way
 * of /proc, what is there now without touching it (O_PATH), and goes on only if that is our pipe (device and inode). The
 * scanner's descriptor lies in the scanner's own table (core/own_files.h) where it has one.
 */
#ifndef SDB_WAKE_PIPE_H
#define SDB_WAKE_PIPE_H

#include <stdbool.h>
#include <stdint.h>

struct sdb_wake_pipe {
    /* written with the GVL, or in the atfork child handler; read by any: atomic */
    int64_t fd; /* -1 none */
    uint64_t dev, ino;
};
#define SDB_WAKE_PIPE_NONE                                                                         \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* An empty pipe, closed by exec; false when there can be none (no /proc, no descriptors left). Runs on: any Ruby thread,
 * GVL. */
bool sdb_wake_pipe_open(struct sdb_wake_pipe *pipe);
/* Makes it readable; false when the number is not our pipe any more. Runs on: any. */
bool sdb_wake_pipe_ring(struct sdb_wake_pipe *pipe);
/* Empties it; false likewise. Runs on: any. */
bool sdb_wake_pipe_rest(struct sdb_wake_pipe *pipe);
/* Closes it if it is ours, and forgets it. Runs on: any Ruby thread, GVL, or the atfork child handler. */
void sdb_wake_pipe_close(struct sdb_wake_pipe *pipe);
/* Forgets it: somebody else closes it. Runs on: any Ruby thread, GVL. */
void sdb_wake_pipe_forget(struct sdb_wake_pipe *pipe);

#endif
