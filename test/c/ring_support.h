/* SPDX-License-Identifier: MIT - ring_support.h - rings in a directory of their own, for the tests. */
#ifndef SDB_RING_SUPPORT_H
#define SDB_RING_SUPPORT_H

#include <dirent.h>
#include "core/ring_file.h"
#include "core/ring_writer.h"
#include "t.h"

enum { MS = 1000000 };
#define START_NS 5000000000ull

static inline struct sdb_ring_config
config_for(const char *dir)
{
    static const char text[] = "ruby=test\0service=shop\0";

    return (struct sdb_ring_config){.dir = dir,
                                    .ring_bytes = SDB_RING_MIN_BYTES,
                                    .interval_ns = MS,
                                    .text = text,
                                    .text_bytes = sizeof text - 1,
                                    .keep_files = 100,
                                    .start_monotonic_ns = START_NS,
                                    .start_realtime_ns = 1700000000000000000ull};
}

/* Lets a writer write to another descriptor, unasked whether that is the file. Returns the one it had. */
static inline int
swap_descriptor(struct sdb_ring_file *f, int fd)
{
    int had = f->own.fd;

    f->own.fd = fd;
    f->own.is_private = true;
    return had;
}

static inline int
count_files(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;
    int n = 0;

    while (d != NULL && (e = readdir(d)) != NULL) n += e->d_name[0] != '.';
    if (d != NULL) closedir(d);
    return n;
}

static inline void
remove_dir(const char *dir)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) unlinkat(dirfd(d), e->d_name, 0);
    if (d != NULL) closedir(d);
    rmdir(dir);
}

static inline void
write_thread(struct sdb_ring_writer *w, uint32_t slot, uint64_t serial, uint64_t birth_ns)
{
    struct sdb_thread_record t = {.slot = slot,
                                  .tid = 100 + slot,
                                  .serial = serial,
                                  .birth_ns = birth_ns,
                                  .name = "worker",
                                  .name_bytes = 6};

    sdb_ring_writer_thread(w, &t);
}

#endif
