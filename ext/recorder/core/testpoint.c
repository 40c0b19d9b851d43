/* SPDX-License-Identifier: MIT
 *
 * testpoint.c - dies, or calls a test, where the test wants it to; empty without SDB_TESTING. Runs on: any
 */
#include "core/testpoint.h"

#ifdef SDB_TESTING

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *sdb_testpoint;
unsigned sdb_testpoint_passes;
void (*sdb_testpoint_hook)(const char *name);

void
sdb_testpoint_from_env(void)
{
    static char name[64];
    const char *value = getenv("SDB_TESTPOINT");
    char *colon;

    if (value == NULL || strlen(value) >= sizeof name) return;
    strcpy(name, value);
    colon = strchr(name, ':');
    sdb_testpoint_passes = 0;
    if (colon != NULL) {
        *colon = '\0';
        sdb_testpoint_passes = (unsigned)strtoul(colon + 1, NULL, 10);
    }
    sdb_testpoint = name;
}

void
sdb_testpoint_pass(const char *name)
{
    if (sdb_testpoint_hook) sdb_testpoint_hook(name);
    if (sdb_testpoint == NULL || strcmp(sdb_testpoint, name) != 0) return;
    if (sdb_testpoint_passes > 0) {
        sdb_testpoint_passes--;
        return;
    }
    kill(getpid(), SIGKILL);
    for (;;) pause(); /* the signal is on its way */
}

#else
typedef int sdb_testpoint_is_off; /* ISO C wants a declaration in every file */
#endif
