/* SPDX-License-Identifier: MIT
 *
 * oom_event.h - what the probes and the daemon say to each other: the two maps they share and the events of
 * the two ring buffers. Compiled for BPF and for the host; only <stdint.h>.
 *
 * Events of one capture go through `data` (large, may fill up: counted in events_lost); what must arrive
 * goes through `control` (small events only). Everything in `data` that belongs to a control event was put
 * there before it.
 *
 * Runs on: any
 */
#ifndef SDB_OOM_EVENT_H
#define SDB_OOM_EVENT_H

#include <stdbool.h>
#include <stdint.h>
#include "ring_format.h"
#include "live_table.h"
#include "oom_protocol.h"

enum {
    SDB_OOM_VICTIMS = 64,            /* dying at the same time ... */
    SDB_OOM_VICTIMS_ROOT = 16,       /* ... of them root's alone: the first */
    SDB_OOM_VICTIMS_A_USER = 16,     /* ... and of one other user at most */
    SDB_OOM_PROCESSES = 4096,        /* registered ... */
    SDB_OOM_PROCESSES_OTHERS = 3072, /* ... of them of all users but root ... */
    SDB_OOM_PROCESSES_A_USER = 1024, /* ... and of one */
    SDB_OOM_USERS = 4096,            /* remembered; the others share what is left of one */
    SDB_OOM_USER_BURST = 128,        /* registrations of a user at once ... */
    SDB_OOM_USER_A_SECOND = 16,      /* ... and then */
    SDB_OOM_STACK_BYTES = 16 << 10,  /* control frames a thread */
    SDB_OOM_FRAMES = 320,            /* more than fit in the above */
    SDB_OOM_CAPTURE_BYTES = 1 << 20,
    SDB_OOM_PENDING_BYTES = 256 << 10,
    SDB_OOM_COMM_BYTES = 16,
    SDB_OOM_CONTROL_RING_BYTES = 2 << 20, /* three events of each registered process fit */
    SDB_OOM_ARRIVAL_RING_BYTES = 1 << 20,
    SDB_OOM_DATA_RING_BYTES = 16 << 20,
    SDB_OOM_TICK_NS = 10000000, /* a clock tick of /proc/PID/stat: USER_HZ is 100 on every Linux */
};

/* Map `processes`: tgid -> this. Written by the probes when a process registers, by the daemon for one that was found
 * by its ring. */
struct sdb_oom_process {
    uint64_t id; /* of the registration, never reused */
    uint64_t start_ticks;
    uint64_t table;  /* 0: nothing to read in its memory */
    uint64_t victim; /* slot + 1 once it is being killed */
    uint64_t recording;
    uint32_t uid, ring_fd;
    uint32_t counted, bucket; /* counted: in the entry `bucket` of `users` */
};

/* Map `users`: uid -> this; SDB_OOM_USERS_REST stands for all who found no room in it. Nobody is forgotten while it
 * would gain by that: the daemon removes only entries with no process and a full allowance. */
struct sdb_oom_user {
    uint64_t allowance_ns; /* when its allowance is full again */
    int64_t processes;     /* registered */
};

#define SDB_OOM_USERS_REST 0xffffffffu
#define SDB_OOM_FOUND (1ull << 63) /* in the id of a process that did not register itself */

/* Counted in a map of one entry. */
struct sdb_oom_refusals {
    uint64_t rate, full, user_full, lost;
    int64_t others; /* registered processes of all users but root */
    uint64_t next_id;
};

enum sdb_oom_arrival_type {
    SDB_OOM_A_REGISTERED = 1,
    SDB_OOM_A_GONE = 2,    /* it ended without a SIGKILL, or registered anew */
    SDB_OOM_A_EXEC = 3,    /* it became another program */
    SDB_OOM_A_REFUSED = 4, /* it is not what it says, or says nonsense */
};

/* Payload of the ring buffer `arrivals`: what processes can cause as often as they like, apart from the deaths. */
struct sdb_oom_arrival {
    uint64_t id;
    uint32_t type, tgid, uid, tid; /* tid: the thread that says it */
    uint32_t plain, unused;        /* plain: all four of its uids are `uid` */
    struct sdb_oom_register said;  /* as it lay in its memory */
};

enum sdb_oom_life {
    SDB_OOM_FREE = 0,
    SDB_OOM_CLAIMED = 1,   /* P1 fills it */
    SDB_OOM_ARMED = 2,     /* SIGKILL was sent */
    SDB_OOM_CAPTURING = 3, /* one thread of the victim copies */
    SDB_OOM_CAPTURED = 4,
    SDB_OOM_DEAD =
        5, /* the last thread is gone and the control ring was full: the daemon frees it */
};

enum sdb_oom_capture_flag {
    SDB_OOM_F_CONFIRMED = 1 << 0, /* mark_victim named it */
    SDB_OOM_F_NO_TABLE = 1 << 1,  /* registered without one */
    SDB_OOM_F_TABLE_UNREADABLE = 1 << 2,
    SDB_OOM_F_LAYOUT_UNKNOWN = 1 << 3, /* the table's magic or version is not ours */
    SDB_OOM_F_HEAD_STALE = 1 << 4,   /* the pending bytes moved while being read, or could not be */
    SDB_OOM_F_AT_EXIT = 1 << 5,      /* captured by P4: P3 never came */
    SDB_OOM_F_CAPTURE_DONE = 1 << 6, /* the copy ran to its end */
};

/* Map `victims`, SDB_OOM_VICTIMS of it, and the payload of control events. */
struct sdb_oom_victim {
    uint64_t life; /* enum sdb_oom_life, atomic */
    uint64_t id;   /* of the registration */
    uint64_t table;
    uint64_t armed_ns, captured_ns, capture_cost_ns, finished_ns; /* monotonic */
    uint64_t bytes, truncated_bytes;
    uint64_t events_lost;                                                      /* atomic */
    uint64_t total_vm_kb, anon_rss_kb, file_rss_kb, shmem_rss_kb, pgtables_kb; /* of mark_victim */
    uint64_t cgroup_limit_pages, cgroup_peak_pages, cgroup_usage_pages; /* at the kill; 0 unknown */
    uint32_t tgid, target_tid; /* the thread the signal was aimed at: what mark_victim names */
    uint32_t flags;            /* enum sdb_oom_capture_flag */
    int32_t si_code;           /* 128 SI_KERNEL, 0 SI_USER, ... */
    uint32_t sender_tgid, sender_tid, sender_uid; /* who ran: the killer, or who asked for memory */
    int32_t oom_score_adj;
    uint32_t threads, truncated_threads, read_errors, deliveries;
    uint32_t uid, unused; /* of the registration */
    char sender_comm[SDB_OOM_COMM_BYTES];
};

enum sdb_oom_control_type {
    SDB_OOM_E_ARMED = 1,
    SDB_OOM_E_MARKED = 2, /* mark_victim; `victim.target_tid` is its pid, the rss figures are set */
    SDB_OOM_E_CAPTURED = 3, /* P3 is done */
    SDB_OOM_E_FINISHED = 4, /* the last thread is gone: the victim's last event */
    SDB_OOM_E_OVERFLOW = 5, /* all slots taken: nothing captured, this is its only event */
};

struct sdb_oom_control {
    uint32_t type;
    uint32_t slot;
    uint64_t at_ns;
    struct sdb_oom_victim victim;
};

enum sdb_oom_data_type {
    SDB_OOM_D_TABLE = 1,
    SDB_OOM_D_COUNTERS = 2,
    SDB_OOM_D_THREAD = 3, /* struct sdb_oom_thread */
    SDB_OOM_D_FRAMES = 4, /* raw control frames, newest first */
    SDB_OOM_D_ENVS = 5,   /* uint64_t ep[-2], ep[0] of each frame */
    SDB_OOM_D_PENDING = 6 /* offset: in the ring file */
};

struct sdb_oom_data_header {
    uint64_t id;           /* of the registration */
    uint32_t type, thread; /* slot number of the thread */
    uint64_t offset;
    uint32_t bytes, read_errors; /* of this event */
};

struct sdb_oom_thread {
    struct sdb_slot slot;
    uint64_t ec, vm_stack, vm_stack_bytes, cfp;
    uint64_t frame_bytes; /* from cfp to the end of the stack; 0: none could be read */
};

struct sdb_oom_data {
    struct sdb_oom_data_header head;
    uint8_t data[SDB_OOM_STACK_BYTES];
};

#endif
