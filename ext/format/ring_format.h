/* SPDX-License-Identifier: MIT
 *
 * ring_format.h - THE on-disk format of a ring file: every magic, size, offset and record type.
 * FORMAT.md beside it explains each in words; recorder, reader and the OOM daemon include this file
 * and define nothing of the format themselves. Only <stdint.h>, so a BPF program can include it.
 *
 * All integers are little-endian. "varint" is unsigned LEB128 of at most 10 bytes; "zigzag" is a
 * varint of (n << 1) ^ (n >> 63). "us" fields count microseconds, "rel" times count nanoseconds from
 * header.start_monotonic_ns.
 *
 * Runs on: any
 */
#ifndef SDB_RING_FORMAT_H
#define SDB_RING_FORMAT_H

#include <stdint.h>

#define SDB_MAGIC                                                                                  \
    0xa7c2b1620a424453ull /* bytes 53 44 42 0a 62 b1 c2 a7: "SDB\n" "b", then non-ASCII */
#define SDB_FORMAT_MAJOR 1
#define SDB_FORMAT_MINOR 0
#define SDB_ENDIAN_TAG 0x01020304u

enum {
    SDB_PAGE_BYTES = 4096,
    /* identity page(s) 0..1, state page A (2), state page B (3) */
    SDB_HEADER_BYTES = 4 * SDB_PAGE_BYTES,
    SDB_IDENTITY_BYTES = 2 * SDB_PAGE_BYTES,
    SDB_STATE_A_OFF = 2 * SDB_PAGE_BYTES,
    SDB_STATE_B_OFF = 3 * SDB_PAGE_BYTES,
    SDB_CHUNK_BYTES = 1 << 20,
    SDB_AREA_HEADER_BYTES = 64, /* of a chunk and of a symbol area */
    SDB_BLOCK_HEADER_BYTES = 8, /* uint32_t length of the payload, uint32_t crc */
    SDB_MAX_DEPTH = 1 << 14,    /* frames of a stack; CRuby's default VM stack holds some 12000 */
    SDB_BLOCK_MAX_BYTES = 1 << 16, /* payload; a writer seals a block before it grows over this */
    SDB_RING_MIN_BYTES = 4 << 20,
};

/* ---- header, page 0: written once before LIVE; only `state` is written again (last: LIVE) ---- */

enum sdb_ring_state { SDB_RING_CREATING = 1, SDB_RING_LIVE = 2, SDB_RING_CLOSED = 3 };

enum {                                 /* identity flags */
       SDB_FLAG_STATES_EXACT = 1 << 0, /* thread states come from GVL events (Ruby 3.2+) */
       SDB_FLAG_YJIT = 1 << 1,
};

struct sdb_identity { /* offset 0 of the file, 256 bytes of fixed fields, then text */
    uint64_t magic;
    uint32_t endian_tag;
    uint16_t major, minor;
    uint32_t word_bytes; /* sizeof(void *) of the recorder: 8 */
    uint32_t state;      /* enum sdb_ring_state; the state pages carry it too */
    uint64_t file_bytes;
    uint64_t area_a_off, area_b_off; /* symbol areas */
    uint64_t area_bytes;             /* of each */
    uint64_t chunks_off;
    uint64_t chunk_bytes; /* SDB_CHUNK_BYTES */
    uint64_t chunk_count;
    uint64_t start_monotonic_ns; /* zero of all rel times */
    uint64_t start_realtime_ns;
    uint64_t process_start_ticks; /* /proc/self/stat field 22, clock ticks since boot */
    uint64_t interval_ns;         /* nominal */
    uint32_t pid, ppid;
    uint64_t pid_namespace; /* inode of /proc/self/ns/pid */
    uint32_t flags;
    uint32_t clock_ticks_per_s;
    uint8_t boot_id[16];
    uint8_t reserved[96]; /* zero */
    uint32_t text_bytes;  /* of the text that follows */
    uint32_t crc; /* CRC-32C of the page(s) [0, 256 + text_bytes) with `state` and `crc` as zero */
    /* text: NUL-terminated UTF-8 "key=value" strings: ruby, gem, service, parent_ring, host, app_root,
     * tag.<name>, argv.0, argv.1, ... ; truncated to fit SDB_IDENTITY_BYTES - 256 (argv last) */
};

/* ---- state pages A and B: written alternately; a reader takes the one with a good crc and the
 * highest seq ---- */

/* The counters, by number: X(NAME, name). All cumulative from the start of the ring unless said. Append only. */
#define SDB_COUNTERS(X)                                                                            \
    X(TICKS, ticks)                                                                                \
    X(LATE_TICKS, late_ticks)           /* began more than half an interval late */                \
    X(DISPLACED_TICKS, displaced_ticks) /* ran on the cpu of a running Ruby thread */              \
    X(PARKS, parks)                                                                                \
    X(THREAD_SAMPLES, thread_samples) /* threads seen per tick, changed or not */                  \
    X(SCANS, scans)                   /* stacks read */                                            \
    X(FRAMES_READ, frames_read)                                                                    \
    X(SAMPLE_RECORDS, sample_records)                                                              \
    X(LOST_TORN, lost_torn)                                                                        \
    X(LOST_TORN_TOP, lost_torn_top)     /* samples whose top was dropped */                        \
    X(LOST_GC, lost_gc)                 /* scans given up because a GC ran */                      \
    X(LOST_UNRESOLVED, lost_unresolved) /* codes that could not be named (invalid) */              \
    X(LOST_QUEUE_FULL, lost_queue_full) /* span, tag and mark events dropped */                    \
    X(LOST_RING, lost_ring)             /* blocks not written because of an I/O error */           \
    X(LOST_GAP_NS, lost_gap_ns)         /* time in gaps */                                         \
    X(LOST_TRUNCATED, lost_truncated)   /* stacks deeper than the limit */                         \
    X(LOST_THREADS, lost_threads)       /* threads not scanned: table full or no safe read */      \
    X(CPU_NS, cpu_ns)                   /* own CPU of the scanner */                               \
    X(GVL_NS, gvl_ns)                   /* GVL held by the symbolizer */                           \
    X(SCAN_NS, scan_ns)                 /* wall time inside ticks */                               \
    X(RSS_BYTES, rss_bytes)             /* now: memory the recorder holds */                       \
    X(CODES, codes)                     /* named so far */                                         \
    X(CODES_RECYCLED, codes_recycled)                                                              \
    X(THREADS_LIVE, threads_live) /* now */                                                        \
    X(THREADS_SEEN, threads_seen)                                                                  \
    X(EFFECTIVE_INTERVAL_NS, effective_interval_ns) /* now */                                      \
    X(BYTES_WRITTEN, bytes_written)                                                                \
    X(CHUNKS, chunks)             /* chunks begun: seq of the newest + 1 */                        \
    X(LAST_TICK_NS, last_tick_ns) /* rel, now */                                                   \
    X(SYMBOL_BYTES, symbol_bytes)                                                                  \
    X(EVENTS, events)           /* span, tag and mark events taken */                              \
    X(MAX_CPU_PPM, max_cpu_ppm) /* governor's budget, parts per million of one core; 0 off */      \
    X(PARKED, parked)           /* now: 1 while no thread can run */                               \
    X(WRITE_ERRNO, write_errno) /* last errno of a failed write, 0 none */                         \
    X(ROOM_BYTES, room_bytes)   /* now: of the chunks for which the disk has room so far */        \
    X(RING_SMALL, ring_small)   /* now: 1 while the disk has no room for another chunk */

/* clang-format off */
enum sdb_counter {
#define SDB_COUNTER_NUMBER(NAME, name) SDB_C_##NAME,
    SDB_COUNTERS(SDB_COUNTER_NUMBER)
#undef SDB_COUNTER_NUMBER
    SDB_COUNTER_COUNT
};
/* clang-format on */

struct sdb_state_page {
    uint64_t magic; /* SDB_MAGIC */
    uint64_t seq;
    uint32_t crc;   /* CRC-32C of the 4096 bytes with crc as zero */
    uint32_t state; /* enum sdb_ring_state */
    uint64_t at_ns; /* rel */
    uint64_t realtime_ns;
    uint32_t counter_count;
    uint32_t reason_bytes;       /* of `text` */
    uint64_t counters[128];      /* indexed by enum sdb_counter */
    char text[4096 - 48 - 1024]; /* why recording stopped or is disabled, UTF-8, not terminated */
};

/* ---- symbol areas and chunks: a 64-byte header, then blocks ---- */

#define SDB_CHUNK_MAGIC 0x6b6e75686383f09full
#define SDB_AREA_MAGIC 0x6165726183f09f53ull

struct sdb_area_header { /* of a chunk and of a symbol area alike */
    uint64_t magic;
    uint64_t seq;      /* chunk: 0, 1, 2 ... lies at chunk_off + (seq % chunk_count) * chunk_bytes;
                  symbol area: generation 1, 2, ...: odd in A, even in B */
    uint64_t first_ns; /* rel time of the first tick; 0 in a symbol area */
    uint32_t crc;      /* CRC-32C of these 64 bytes with crc as zero */
    uint32_t skipped;  /* chunk: seqs between the chunk before and this one that were never used */
    uint64_t reserved[4];
};

/* A block is { uint32_t bytes; uint32_t crc; payload }. crc = CRC-32C over the 8 bytes of `seq`, the 4 bytes
 * of `bytes`, and the payload. The first block whose bytes are 0 or > SDB_BLOCK_MAX_BYTES, that does
 * not fit, or whose crc fails, ends the chunk or area. Records never straddle blocks. */

/* ---- records of a chunk ----
 *
 *   1ssncwbm  (b & 0x80)          SAMPLE
 *   01dddddd  (b & 0xc0) == 0x40  TICK, deviation d - 32 us from the effective interval
 *   00tttttt  other               type t; those >= SDB_R_FIRST_SIZED carry a varint length after the type
 */
#define SDB_SAMPLE_BIT 0x80
#define SDB_SAMPLE_STATE_SHIFT 5 /* 2 bits: enum sdb_thread_state */
#define SDB_SAMPLE_HAS_NODE 0x10
#define SDB_SAMPLE_HAS_CPU 0x08
#define SDB_SAMPLE_HAS_WAIT 0x04
#define SDB_SAMPLE_HAS_BLOCKED 0x02
#define SDB_SAMPLE_HAS_MORE 0x01
/* SAMPLE: byte, varint slot, [varint more if HAS_MORE], [zigzag node - previous node of the slot in
 * this chunk if HAS_NODE], [zigzag cpu_us - busy_us if HAS_CPU], [varint wait_us], [varint blocked_us],
 * [varint gc_us if more & GC], [varint age_us if more & AGE], [varint elapsed_us if more & ELAPSED]
 * where all times cover the elapsed_us before this tick: given by ELAPSED in the first SAMPLE of a slot
 * in a chunk and after a THREAD with another serial, else the time since the slot's previous SAMPLE.
 *   busy_us = elapsed_us - wait_us - blocked_us      (running and gc)                                */
#define SDB_MORE_GC 0x01        /* gc_us: part of busy_us spent in GC by this thread */
#define SDB_MORE_AGE 0x02       /* age_us: how long before this tick the thread entered its state */
#define SDB_MORE_TORN_TOP 0x04  /* the newest frames were dropped: they moved while being read */
#define SDB_MORE_TRUNCATED 0x08 /* deeper than the limit: the newest frames are missing */
#define SDB_MORE_NO_STACK                                                                          \
    0x10 /* state only: the stack could not be read, the node is the last known */
#define SDB_MORE_ELAPSED                                                                           \
    0x20 /* elapsed_us is given: the times reach back across the chunk's start */

enum sdb_thread_state { SDB_RUNNING = 0, SDB_GVL_WAIT = 1, SDB_BLOCKED = 2, SDB_GC = 3 };

#define SDB_TICK_BIT 0x40
#define SDB_TICK_BIAS 32

enum sdb_record {
    /* zigzag dt_us - effective interval in us: when it does not fit the short form */
    SDB_R_TICK = 1,
    SDB_R_NODE = 2, /* varint id - parent, varint code, varint where: 0 no line, odd: instruction
                           index = where >> 1 (of the word to look up: the VM's next-pc index less 1),
                           else the VM's raw pc address (index = (where - code.base) / 8 - 1, 0 at base).
                           Ids count 1, 2, ... in each chunk; 0 is the root (empty stack) */
    SDB_R_INTERVAL = 3, /* varint us: effective interval from here on; first record of each chunk */
    SDB_R_PARK = 4,     /* from the previous tick to the next no thread could run */
    SDB_R_GAP = 5, /* varint us, varint enum sdb_gap: before the tick that ends it: for this long
                           the scanner saw nothing */

    SDB_R_FIRST_SIZED = 16, /* from here: type, varint length, payload; unknown ones are skipped */
    SDB_R_THREAD = 16, /* slot, serial, tid, birth rel, thread flags, name bytes: serial is never
                               reused. Repeated at each chunk's start and when a field changes */
    /* slot, serial, end rel; then, when known, cpu_us, wait_us, blocked_us and gc_us
     * since the slot's last SAMPLE */
    SDB_R_THREAD_END = 17,
    SDB_R_CLOCK = 18,  /* monotonic rel, realtime ns: each second and at each chunk's start */
    SDB_R_GC = 19,     /* slot serial (0 unknown), SDB_GC_* flags, begin rel, duration ns, gc count,
                               heap live slots, malloc increase bytes */
    SDB_R_MEMORY = 20, /* rel, rss bytes, cgroup usage bytes, cgroup limit bytes (0 none) */
    SDB_R_COUNTERS = 21, /* n, then n values in the order of enum sdb_counter */
    SDB_R_STRING = 22,   /* string id, bytes: chunk-local; ids count 1, 2, ... */
    /* slot serial, span id, parent span id, begin rel, kind string, name string,
     * request id bytes len + bytes, trace id len + bytes, n tags, (key string,
     * value string)*; repeated for open spans at each chunk's start. Strings are
     * ids of R_STRING, 0 none */
    SDB_R_SPAN_BEGIN = 23,
    SDB_R_SPAN_END = 24, /* span id, end rel, name string, status, cpu ns, gvl_wait ns, blocked ns,
                               gc ns, allocations, n tags, (key string, value string)*, [trace id len +
                               bytes: when it was learned after the begin] */
    SDB_R_SPAN_SWITCH =
        25,             /* slot serial, span id (0 none), rel: which span the thread works for from
                               here on (fibers move spans between threads) */
    SDB_R_TAGS = 26,    /* slot serial, rel, n, (key string, value string)*: the whole set */
    SDB_R_MARK = 27,    /* rel, bytes */
    SDB_R_PRE_OOM = 28, /* rel, level percent, n, (key string, varint value)* */
    SDB_R_TYPE_COUNT
};

#define SDB_THREAD_OWN 0x1 /* sdb's symbolizer */
#define SDB_THREAD_MAIN 0x2
#define SDB_THREAD_INFERRED 0x4 /* states of this thread are inferred from its CPU clock */
#define SDB_THREAD_HAS_NAME 0x8

#define SDB_GC_MAJOR                                                                               \
    0x1 /* flags of a GC record; 0: a period inside the collector, kind not known */
#define SDB_GC_MARK 0x2
#define SDB_GC_SWEEP 0x4
#define SDB_GC_COMPACT 0x8

enum sdb_gap { SDB_GAP_LATE = 1, SDB_GAP_FORK = 2, SDB_GAP_WRITE = 3, SDB_GAP_PAUSED = 4 };

/* ---- records of a symbol area: type, varint length, payload ---- */

enum sdb_symbol_record {
    SDB_S_STRING = 1, /* bytes: string id = 1, 2, ... in the order of the area */
    SDB_S_CODE = 2, /* varint code, kind, base address, instruction count, path string, class string
                         (0 none), first line, name length + bytes, n line runs, (varint index delta,
                         zigzag line delta from the run before; the first from first line)*, iseq
                         address, method entry address: the keys the process knew it by when it was
                         named (0 none), for stacks that were read as addresses (dump_format.h) */
};

enum sdb_code_kind {
    SDB_CODE_RUBY = 1,
    SDB_CODE_C = 2,
    SDB_CODE_INVALID = 3, /* failed its proof: shown as unresolved, never named */
};

/* Code ids: 0 is never used; ids are never reused within a ring. */

_Static_assert(sizeof(struct sdb_identity) == 256, "identity is 256 bytes");
_Static_assert(sizeof(struct sdb_state_page) == SDB_PAGE_BYTES, "a state page is a page");
_Static_assert(sizeof(struct sdb_area_header) == SDB_AREA_HEADER_BYTES, "area header");

#endif
