/* SPDX-License-Identifier: MIT
 *
 * oom_client.c - see oom_client.h.
 *
 * Runs on: scanner thread, no GVL
 */
#include "core/oom_client.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include "error.h"
#include "live_table.h"
#include "oom_protocol.h"

static const uint64_t second_ns = 1000000000ull;

_Static_assert(SDB_OOM_WORD_MAGIC_BYTES + SDB_OOM_WORD_ADDRESS_BYTES < SDB_OOM_WORD_BYTES,
               "the word and its NUL fit in a thread's name");

/* Calls the thread by the word for an instant. */
static bool
speak(const struct sdb_oom_register *message)
{
    char own[SDB_OOM_WORD_BYTES] = "", word[SDB_OOM_WORD_BYTES] = SDB_OOM_WORD_MAGIC;
    uint64_t address = (uint64_t)(uintptr_t)message;
    for (int i = 0; i < SDB_OOM_WORD_ADDRESS_BYTES; i++)
        word[SDB_OOM_WORD_MAGIC_BYTES + i] = (char)(0x80 | (address >> 7 * i & 0x7f));
    if (prctl(PR_GET_NAME, own, 0, 0, 0) != 0) return false;
    /* the struct is on this stack: its page is there, and the probe reads it before this returns */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    bool said = prctl(PR_SET_NAME, word, 0, 0, 0) == 0;
    return prctl(PR_SET_NAME, own, 0, 0, 0) == 0 && said;
}

int
sdb_oom_register(struct sdb_oom_client *client, const struct sdb_oom_speaker *who, uint64_t now_ns)
{
    struct sdb_oom_register message = {
        .magic = SDB_OOM_MAGIC,
        .version = SDB_OOM_VERSION,
        .bytes = sizeof message,
        .table_address = who->table_address,
        .table_version = SDB_LIVE_VERSION,
        .start_ticks = who->start_ticks,
        .channel = sdb_oom_channel(who->daemon ? who->daemon : ""),
        .recording = who->recording,
        .ring_fd = (uint32_t)who->ring_fd,
    };

    if (now_ns < client->next_ns) return 0;
    client->next_ns = now_ns + SDB_OOM_REPEAT_S * second_ns;
    if (who->service != NULL) snprintf(message.service, sizeof message.service, "%s", who->service);
    if (!speak(&message)) {
        client->last_errno = errno;
        return SDB_ERR_IO;
    }
    client->last_errno = 0;
    client->sent++;
    return 1;
}
