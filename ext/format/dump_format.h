/* SPDX-License-Identifier: MIT
 *
 * dump_format.h - the container that sdb-oomd writes when a process was killed: what the kernel said, what
 * each thread was executing at that instant, and a copy of the ring. DUMP.md beside it says it in words.
 * The ring inside is read with ring_format.h; nothing of that format is repeated here.
 *
 * All integers are little-endian. Instants called *_monotonic_ns are CLOCK_MONOTONIC of the machine, the
 * clock of the ring's start_monotonic_ns.
 *
 * Runs on: any
 */
#ifndef SDB_DUMP_FORMAT_H
#define SDB_DUMP_FORMAT_H

#include <stdint.h>

#define SDB_DUMP_MAGIC 0xa7c2b1504d444453ull /* "SDDMP" b1 c2 a7, little-endian */
#define SDB_DUMP_MAJOR 1
#define SDB_DUMP_MINOR 0
#define SDB_DUMP_ENDIAN_TAG 0x01020304u

enum {
    SDB_DUMP_HEADER_BYTES = 4096,
    SDB_DUMP_SECTIONS_MAX = 64,
    SDB_DUMP_FACTS_MAX_BYTES = 1 << 20,
    SDB_DUMP_THREADS_MAX_BYTES = 16 << 20,
};

/* at most one of each; unknown ones are skipped */
enum sdb_dump_section_type {
    /* NUL-terminated UTF-8 "key=value" strings: see DUMP.md */
    SDB_DUMP_FACTS = 1,
    /* struct sdb_dump_thread, then its frames; repeated */
    SDB_DUMP_THREADS = 2,
    /* uint64_t[], indexed by enum sdb_counter, as they were in memory */
    SDB_DUMP_COUNTERS = 3,
    SDB_DUMP_MAPS = 4, /* /proc/PID/maps at registration, text */
    /* the bytes merged into the ring's copy: uint64_t offset in the ring, bytes */
    SDB_DUMP_PENDING = 5,
    /* the whole ring file, page aligned; no section crc, it has its own */
    SDB_DUMP_RING = 6,
};

struct sdb_dump_section {
    uint32_t type; /* enum sdb_dump_section_type; 0 ends the table */
    uint32_t crc;  /* CRC-32C of the bytes; 0 and unchecked for SDB_DUMP_RING */
    uint64_t off, bytes;
};

struct sdb_dump_header { /* offset 0, one page */
    uint64_t magic;
    uint32_t endian_tag;
    uint16_t major, minor;
    uint32_t section_count;
    uint32_t crc; /* CRC-32C of the 4096 bytes with crc as zero */
    uint64_t file_bytes;
    uint64_t created_realtime_ns;
    uint64_t reserved[3]; /* zero */
    struct sdb_dump_section sections[SDB_DUMP_SECTIONS_MAX];
    uint8_t padding[SDB_DUMP_HEADER_BYTES - 64 - 24 * SDB_DUMP_SECTIONS_MAX];
};

enum sdb_dump_thread_flag {
    SDB_DUMP_THREAD_TRUNCATED = 1 << 0,  /* frame_total > frame_count: the oldest are missing */
    SDB_DUMP_THREAD_READ_ERROR = 1 << 1, /* some page of it was not in memory: frames of zeros */
    SDB_DUMP_THREAD_NO_STACK = 1 << 2,   /* no stack to read: starting, ending, or not read */
    /* killed in the middle of a state change: state may be old */
    SDB_DUMP_THREAD_TORN_STATE = 1 << 3,
};

struct sdb_dump_thread { /* 128 bytes, then frame_count frames, newest first */
    uint32_t bytes;      /* of this and its frames */
    uint32_t flags;      /* enum sdb_dump_thread_flag */
    uint32_t slot, frame_count;
    uint64_t frame_total; /* that the stack had */
    uint64_t serial;      /* the ring's THREAD serial */
    uint64_t tid, state;  /* state: enum sdb_thread_state */
    uint64_t since_monotonic_ns;
    uint64_t wait_ns, blocked_ns, gc_ns;
    uint64_t span_id, thread_flags;
    uint64_t birth_monotonic_ns;
    uint64_t reserved[3];
};

/* addresses of the dead process: keys for the ring's CODE symbols, never pointers */
struct sdb_dump_frame {
    uint64_t iseq, pc;
    uint64_t method; /* ep[-2]: the method entry, or what stands in for it; 0 unread */
    uint64_t env;    /* ep[0]: frame type and flags; 0 unread */
};

_Static_assert(sizeof(struct sdb_dump_header) == SDB_DUMP_HEADER_BYTES, "the header is a page");
_Static_assert(sizeof(struct sdb_dump_thread) == 128, "a thread is 128 bytes");

#endif
