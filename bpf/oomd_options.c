/* SPDX-License-Identifier: MIT
 *
 * oomd_options.c - see oomd_options.h.
 *
 * Runs on: daemon
 */
#include "oomd_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "oom_protocol.h"

static const char usage[] =
    "sdb-oomd - keeps what a process was doing when it was killed\n"
    "\n"
    "  sdb-oomd                              listen, write dumps to /var/lib/sdb/dumps\n"
    "  sdb-oomd --rings /srv/app/tmp/sdb     watch the processes of these rings too\n"
    "  sdb-oomd --exec '/usr/local/bin/notify \"$1\"'\n"
    "\n"
    "      --dir DIR            where dumps go [/var/lib/sdb/dumps]; made 0700\n"
    "      --name NAME          hear processes with SDB_OOMD=NAME, and no others\n"
    "      --rings DIR          look for rings there every 10 s; may be given 16 times\n"
    "      --keep-bytes SIZE    dumps kept of one user, in bytes on the disk [1G]\n"
    "      --keep-files N       dumps kept of one user [100]\n"
    "      --keep-others SIZE   dumps kept of all users but root together [2G]\n"
    "      --max-ring SIZE      a larger ring is not copied [1G]\n"
    "      --dumps-a-minute N   of one user but root; 0 unbounded [60]\n"
    "      --exec CMD           run by sh after each dump: $1 is the dump, SDB_SERVICE, SDB_PID, "
    "SDB_CAUSE set\n"
    "      --verbose            a line for each process that is watched\n"
    "      --help\n"
    "\n"
    "Needs root, or CAP_BPF and CAP_PERFMON and what bpf/README.md lists beside them. Then: sdb "
    "oom list, "
    "sdb oom show.\n";

enum {
    O_DIR = 1,
    O_NAME,
    O_RINGS,
    O_BYTES,
    O_FILES,
    O_OTHERS,
    O_MAX_RING,
    O_MINUTE,
    O_EXEC,
    O_VERBOSE,
    O_HELP
};

static const struct option options[] = {
    {"dir", required_argument, NULL, O_DIR},
    {"name", required_argument, NULL, O_NAME},
    {"rings", required_argument, NULL, O_RINGS},
    {"keep-bytes", required_argument, NULL, O_BYTES},
    {"keep-files", required_argument, NULL, O_FILES},
    {"keep-others", required_argument, NULL, O_OTHERS},
    {"max-ring", required_argument, NULL, O_MAX_RING},
    {"dumps-a-minute", required_argument, NULL, O_MINUTE},
    {"exec", required_argument, NULL, O_EXEC},
    {"verbose", no_argument, NULL, O_VERBOSE},
    {"help", no_argument, NULL, O_HELP},
    {0},
};

static int
parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMGT";
    char *end;
    uint64_t n = strtoull(text, &end, 10);
    if (end == text || text[0] == '-') return -1;
    if (*end != '\0') {
        const char *unit = strchr(units, *end & ~0x20);
        if (unit == NULL || end[1] != '\0' || n > UINT64_MAX >> 41) return -1;
        n <<= 10 * (unit - units + 1);
    }
    *out = n;
    return 0;
}

int
oomd_options_parse(struct oomd_options *o, int argc, char **argv)
{
    int c, index = 0;
    *o = (struct oomd_options){
        .name = "",
        .dir = "/var/lib/sdb/dumps",
        .budget = {.bytes = 1ull << 30, .files = 100, .others_bytes = 2ull << 30},
        .max_ring_bytes = 1 << 30,
        .dumps_a_minute = 60,
    };
    while ((c = getopt_long(argc, argv, "", options, &index)) != -1) {
        uint64_t *number = NULL;
        switch (c) {
        case O_DIR:
            o->dir = optarg;
            break;
        case O_NAME:
            o->name = optarg;
            break;
        case O_EXEC:
            o->exec = optarg;
            break;
        case O_VERBOSE:
            o->verbose = 1;
            break;
        case O_RINGS:
            if (o->ring_dir_count == OOMD_RING_DIRS_MAX) {
                fprintf(stderr, "sdb-oomd: --rings may be given %d times\n", OOMD_RING_DIRS_MAX);
                return 2;
            }
            o->ring_dirs[o->ring_dir_count++] = optarg;
            break;
        case O_BYTES:
            number = &o->budget.bytes;
            break;
        case O_FILES:
            number = &o->budget.files;
            break;
        case O_OTHERS:
            number = &o->budget.others_bytes;
            break;
        case O_MAX_RING:
            number = &o->max_ring_bytes;
            break;
        case O_MINUTE:
            number = &o->dumps_a_minute;
            break;
        case O_HELP:
            fputs(usage, stdout);
            return 0;
        default:
            fputs("sdb-oomd: see sdb-oomd --help\n", stderr);
            return 2;
        }
        if (number != NULL && parse_size(optarg, number) != 0) {
            fprintf(stderr, "sdb-oomd: --%s %s: not a number (K, M and G may follow it)\n",
                    options[index].name, optarg);
            return 2;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "sdb-oomd: %s: unexpected; see sdb-oomd --help\n", argv[optind]);
        return 2;
    }
    return -1;
}
