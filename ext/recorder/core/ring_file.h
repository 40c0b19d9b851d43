/* SPDX-License-Identifier: MIT
 *
 * ring_file.h - the file: where it lies, who owns it, writing at an offset. Knows nothing of records.
 *
 * Runs on: scanner thread, whose descriptors are its own (own_files.h)
 */
#ifndef SDB_RING_FILE_H
#define SDB_RING_FILE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/own_files.h"
#include "log_dir.h"
#include "ring_format.h"

enum { SDB_PATH_MAX = 1024 };

struct sdb_ring_config {
    const char *dir; /* see log_dir.h; "" for the user's own below tmp */
    /* the temp dir: the log lies below it where dir cannot be used. NULL: then there is none */
    const char *tmp;
    uint64_t ring_bytes; /* whole file; rounded down to whole chunks; >= SDB_RING_MIN_BYTES */
    uint64_t interval_ns;
    uint32_t flags; /* SDB_FLAG_* */
    /* NUL-separated "key=value" strings (ruby=, gem=, service=, tag.x=, parent_ring=) */
    const char *text;
    size_t text_bytes;
    uint64_t keep_files; /* retention: dead rings kept in dir, those of most value */
    /* zero of rel times and CLOCK_REALTIME at that moment: those the writer was made with; 0: now */
    uint64_t start_monotonic_ns, start_realtime_ns;
};

struct sdb_ring_file {
    /* immutable after create */
    bool open;
    char path[SDB_PATH_MAX];
    char dir[SDB_PATH_MAX];
    char reason
        [SDB_LOG_DIR_REASON_BYTES]; /* why dir was not used: one line, "" when it was. With a path: there it is */
    struct sdb_identity identity;
    /* owner: scanner */
    struct sdb_own_fd own; /* also the sign of life's, where the table is private */
    dev_t dev;
    ino_t ino;
    void *life; /* where it is not: a mapping that nobody reads and that keeps the lock; or NULL */
    uint64_t chunks_ready; /* from the first on: allocated. The rest of the file is a hole */
    bool stays_small;      /* there was no room for another chunk */
    int last_errno;
    void *resident; /* read-only mlocked window over the pages to be written next, or NULL */
    uint64_t resident_off, resident_bytes;
};

/* Creates `<dir>/<pid>-<start ticks>-<random>.sdb` (0600, O_EXCL|O_NOFOLLOW|O_CLOEXEC), takes the flock,
 * writes the identity in state CREATING, allocates the begin of the file, and sets LIVE: the file has its full
 * size, but takes room on the disk for two chunks first and for more as they are needed. Applies retention after.
 * Returns 0, SDB_ERR_ACCESS (no directory of ours there, and none can be made; `reason` says why), _NOSPC (also beyond RLIMIT_FSIZE), _IO, _INVALID; the errno is kept in last_errno. On failure
 * nothing is left behind but the directory, and *f needs no close. Blocks on the disk; never raises
 * SIGXFSZ. argv, boot id, pid namespace, start ticks are read from /proc. */
int sdb_ring_file_create(struct sdb_ring_file *f, const struct sdb_ring_config *config);

/* Writing beyond RLIMIT_FSIZE raises SIGXFSZ at the calling thread, whose default action is death. The scanner
 * blocks all signals for good; whoever writes on a thread of the app (the last writes of a recording) puts
 * these two around it: blocked meanwhile, and taken back if it came from us. */
struct sdb_xfsz_guard {
    sigset_t before;
    bool was_pending;
};
void sdb_xfsz_block(struct sdb_xfsz_guard *g);
void sdb_xfsz_restore(struct sdb_xfsz_guard *g);

/* pwrite of all bytes, EINTR retried. 0 or SDB_ERR_IO / _NOSPC (last_errno set). Where the app closed the descriptor
 * (own_files.h) the file is opened again by its path, if that still is this file. Never raises SIGXFSZ when the
 * calling thread blocks it. */
int sdb_ring_file_write(struct sdb_ring_file *f, uint64_t off, const void *bytes, size_t n);

/* Makes sure that the disk has room for the chunk at `place`, if it follows the last that has. False: it has none, now
 * or since it was last asked (a full disk is asked again at the next lap), and the ring goes round in what it has. */
bool sdb_ring_file_room_for(struct sdb_ring_file *f, uint64_t place);
/* Gives back what a ring that never went round has not used: from `used_off` on, in the chunks, and in the areas. Best
 * effort. used_a, used_b: bytes of the areas. */
void sdb_ring_file_trim(struct sdb_ring_file *f, uint64_t used_off, uint64_t used_a,
                        uint64_t used_b);

/* Moves the resident window to the pages of [off, off + bytes), cut to the file: best effort, silent
 * without RLIMIT_MEMLOCK (then there is none). May read the pages from the disk. */
void sdb_ring_file_keep_resident(struct sdb_ring_file *f, uint64_t off, uint64_t bytes);

/* Seals: identity.state = CLOSED, drops the window, closes the descriptor (and with it the flock). Nothing
 * when not open (or after abandon). Never raises SIGXFSZ. Runs on: the thread that created it. */
void sdb_ring_file_close(struct sdb_ring_file *f);

/* Lets go of descriptor, lock and window without sealing. Runs on: the thread that created it. */
void sdb_ring_file_abandon(struct sdb_ring_file *f);
/* The same for what a forked child has of its parent's; the lock stays the parent's. Runs on: the child. */
void sdb_ring_file_forget(struct sdb_ring_file *f);

/* Removes rings of dead processes beyond keep_files in dir, those of least value first (ring_retain.c); never a live one
 * (flock held), never a file that is not a ring of this uid. self: whose earlier programs' rings are closed (exec); may
 * be NULL. Returns the number removed. */
int sdb_ring_file_retain(const char *dir, uint64_t keep_files, const struct sdb_identity *self);

#endif
