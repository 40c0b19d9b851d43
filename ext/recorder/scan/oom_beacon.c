/* SPDX-License-Identifier: MIT
 *
 * oom_beacon.c - see oom_beacon.h.
 */
#include "scan/oom_beacon.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/oom_client.h"
#include "oom_protocol.h"
#include "scan/state.h"

static struct {
    /* immutable while running */
    bool off;
    char daemon[108];
    char service[SDB_OOM_SERVICE_BYTES];
    /* owner: scanner */
    struct sdb_oom_client client;
} upkeep;

void
sdb_oom_beacon_configure(const char *text, size_t text_bytes)
{
    static const char key[] = "service=";
    const char *name = getenv(SDB_OOM_NAME_ENV);
    upkeep.off = name && (strcmp(name, "") == 0 || strcmp(name, "0") == 0);
    snprintf(upkeep.daemon, sizeof upkeep.daemon, "%s", name ? name : "");
    upkeep.service[0] = '\0';
    for (size_t i = 0; i < text_bytes;) {
        size_t n = strnlen(text + i, text_bytes - i);
        if (n > sizeof key - 1 && memcmp(text + i, key, sizeof key - 1) == 0) {
            snprintf(upkeep.service, sizeof upkeep.service, "%.*s", (int)(n - (sizeof key - 1)),
                     text + i + sizeof key - 1);
            break;
        }
        i += n + 1;
    }
    sdb_oom_beacon_reset();
}

void
sdb_oom_beacon_reset(void)
{
    memset(&upkeep.client, 0, sizeof upkeep.client);
}

void
sdb_oom_beacon_second(void *data)
{
    struct sdb_scanner *sc = data;
    if (upkeep.off || !sc->has_file) return;
    int fd = sdb_own_fd_use(&sc->file.own);
    if (fd < 0) return;
    const struct sdb_identity *id = &sc->file.identity;
    struct sdb_oom_speaker who = {.daemon = upkeep.daemon,
                                  .service = upkeep.service,
                                  .table_address = (uint64_t)(uintptr_t)&sc->threads->live,
                                  .start_ticks = id->process_start_ticks,
                                  .recording = id->start_monotonic_ns,
                                  .ring_fd = fd};
    /* without a daemon this costs a microsecond in ten seconds, and changes nothing */
    (void)sdb_oom_register(&upkeep.client, &who, sc->host.monotonic_ns());
}
