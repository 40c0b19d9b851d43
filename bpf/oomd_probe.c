/* SPDX-License-Identifier: MIT
 *
 * oomd_probe.c - see oomd_probe.h.
 *
 * Runs on: daemon
 */
#include "oomd_probe.h"

#include <errno.h>
#include <malloc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "oom_hook.skel.h"

struct oomd_probe {
    struct oom_hook *hook;
    struct ring_buffer *control, *arrivals, *data;
    struct oomd_probe_calls calls;
};

static char last_words[512]; /* of libbpf: its return values alone say little */

static int
keep_words(enum libbpf_print_level level, const char *format, va_list args)
{
    if (level == LIBBPF_WARN) vsnprintf(last_words, sizeof last_words, format, args);
    return 0;
}

/* mark_victim is found by its number in tracefs. Where nobody mounted that, we do, for ourselves alone. */
static void
need_tracefs(void)
{
    if (access("/sys/kernel/tracing/events", F_OK) == 0 ||
        access("/sys/kernel/debug/tracing/events", F_OK) == 0)
        return;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return;
    if (mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL) != 0)
        return; /* the load will say so */
}

/* Not for children: they have no business with it, and copying the tables of 70 MB takes a fork 10 ms. */
static void
keep_buffers_from_children(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long from, to;
        if (strstr(line, "bpf-map") != NULL && sscanf(line, "%lx-%lx", &from, &to) == 2)
            madvise((void *)from, to - from, MADV_DONTFORK);
    }
    if (maps != NULL) fclose(maps);
}

static int
on_control(void *context, void *bytes, size_t n)
{
    struct oomd_probe *p = context;
    if (n >= sizeof(struct sdb_oom_control)) p->calls.control(p->calls.context, bytes);
    return 0;
}

static int
on_data(void *context, void *bytes, size_t n)
{
    struct oomd_probe *p = context;
    struct sdb_oom_data_header *head = bytes;
    if (n >= sizeof *head && head->bytes <= n - sizeof *head)
        p->calls.data(p->calls.context, head, (const uint8_t *)(head + 1));
    return 0;
}

static int
on_arrival(void *context, void *bytes, size_t n)
{
    struct oomd_probe *p = context;
    if (n >= sizeof(struct sdb_oom_arrival)) p->calls.arrival(p->calls.context, bytes);
    return 0;
}

struct oomd_probe *
oomd_probe_open(const struct oomd_probe_calls *calls, uint64_t channel, char *why, size_t why_bytes)
{
    struct oomd_probe *p = calloc(1, sizeof *p);
    const char *step = "allocate";
    const typeof(((struct oom_hook *)0)->maps) *maps;
    if (p == NULL) return NULL;
    p->calls = *calls;
    libbpf_set_print(keep_words);
    libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
        snprintf(why, why_bytes,
                 "this kernel has no BTF (/sys/kernel/btf/vmlinux): needs CONFIG_DEBUG_INFO_BTF");
        free(p);
        return NULL;
    }
    need_tracefs();

    step = "open the probes";
    p->hook = oom_hook__open();
    if (p->hook == NULL) goto failed;
    p->hook->rodata->channel = channel;
    step = "load the probes (needs root or CAP_BPF and CAP_PERFMON, and Linux 5.17)";
    if (oom_hook__load(p->hook) != 0) goto failed;
    step = "attach the probes (needs tracefs at /sys/kernel/tracing)";
    if (oom_hook__attach(p->hook) != 0) goto failed;
    step = "map the ring buffers";
    maps = &p->hook->maps;
    p->control = ring_buffer__new(bpf_map__fd(maps->control), on_control, p, NULL);
    p->data = ring_buffer__new(bpf_map__fd(maps->data), on_data, p, NULL);
    p->arrivals = ring_buffer__new(bpf_map__fd(maps->arrivals), on_arrival, p, NULL);
    if (p->control != NULL && p->data != NULL && p->arrivals != NULL &&
        ring_buffer__add(p->data, bpf_map__fd(maps->root_data), on_data, p) == 0 &&
        ring_buffer__add(p->arrivals, bpf_map__fd(maps->root_arrivals), on_arrival, p) == 0) {
        keep_buffers_from_children();
        malloc_trim(0); /* the kernel's type information was needed for the load alone */
        return p;
    }

failed:
    last_words[strcspn(last_words, "\n")] = '\0';
    snprintf(why, why_bytes, "cannot %s: %s; %s", step, strerror(errno), last_words);
    oomd_probe_close(p);
    return NULL;
}

void
oomd_probe_close(struct oomd_probe *p)
{
    if (p == NULL) return;
    ring_buffer__free(p->control);
    ring_buffer__free(p->data);
    ring_buffer__free(p->arrivals);
    oom_hook__destroy(p->hook);
    free(p);
}

int
oomd_probe_fd(const struct oomd_probe *p)
{
    return ring_buffer__epoll_fd(p->control);
}

int
oomd_probe_arrivals_fd(const struct oomd_probe *p)
{
    return ring_buffer__epoll_fd(p->arrivals);
}

void
oomd_probe_consume_arrivals(struct oomd_probe *p)
{
    ring_buffer__consume(p->arrivals);
}

void
oomd_probe_consume(struct oomd_probe *p)
{
    ring_buffer__consume(p->control);
}

void
oomd_probe_consume_data(struct oomd_probe *p)
{
    ring_buffer__consume(p->data);
}

int
oomd_probe_watch(struct oomd_probe *p, uint32_t tgid, const struct sdb_oom_process *process)
{
    int fd = bpf_map__fd(p->hook->maps.processes);
    return bpf_map_update_elem(fd, &tgid, process, BPF_NOEXIST);
}

bool
oomd_probe_watches(const struct oomd_probe *p, uint32_t tgid, uint64_t id)
{
    struct sdb_oom_process now;
    int fd = bpf_map__fd(p->hook->maps.processes);
    return bpf_map_lookup_elem(fd, &tgid, &now) == 0 && now.id == id;
}

void
oomd_probe_refusals(const struct oomd_probe *p, struct sdb_oom_refusals *r)
{
    uint32_t zero = 0;
    if (bpf_map_lookup_elem(bpf_map__fd(p->hook->maps.refusals), &zero, r) != 0)
        *r = (struct sdb_oom_refusals){0};
}

void
oomd_probe_forget_users(struct oomd_probe *p, uint64_t now_ns)
{
    int fd = bpf_map__fd(p->hook->maps.users);
    uint32_t at, next, *from = NULL;
    for (int i = 0; i < SDB_OOM_USERS && bpf_map_get_next_key(fd, from, &next) == 0; i++) {
        struct sdb_oom_user u;
        at = next;
        from = &at;
        if (bpf_map_lookup_elem(fd, &at, &u) != 0 || u.processes > 0 || u.allowance_ns > now_ns)
            continue;
        bpf_map_delete_elem(fd, &at);
        from = NULL; /* from the start: the next key of one that is gone is the first anyway */
    }
}

int
oomd_probe_victim(const struct oomd_probe *p, uint32_t slot, struct sdb_oom_victim *v)
{
    return bpf_map_lookup_elem(bpf_map__fd(p->hook->maps.victims), &slot, v);
}

void
oomd_probe_free_victim(struct oomd_probe *p, uint32_t slot)
{
    static const struct sdb_oom_victim none;
    bpf_map_update_elem(bpf_map__fd(p->hook->maps.victims), &slot, &none, BPF_ANY);
}
