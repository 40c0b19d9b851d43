/* SPDX-License-Identifier: MIT
 *
 * oomd_find.h - rings in the directories of --rings whose process did not register: it is watched all the
 * same, without what only its memory knows (flag unarmed). A directory may be anybody's, and looking into one may
 * wait for whom it belongs to, so a child does it (`--look`), as the owner of what it looks at; while one
 * does not come back, no other is started.
 *
 * Runs on: daemon; oomd_find_main in the finder
 */
#ifndef SDB_OOMD_FIND_H
#define SDB_OOMD_FIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "oomd_child.h"
#include "oomd_options.h"

struct oomd_keepers;
struct oomd_registry;

struct oomd_find_answer {
    uint64_t start_ticks;
    uint32_t tgid, uid;
    char service[64];
    char path[1024];
};

struct oomd_finder { /* zero-filled but for the pointers, which are borrowed */
    struct oomd_registry *registry;
    struct oomd_keepers *keepers;
    const struct oomd_options *options;
    int epoll;
    bool runs;
    struct oomd_child child;
    uint64_t until_ns;
    size_t got;
    struct oomd_find_answer in;
};

/* Starts a look, when none runs. */
void oomd_find_start(struct oomd_finder *f, uint64_t now_ns);
/* Takes what was found; ends one that takes too long. */
void oomd_find_turn(struct oomd_finder *f, uint64_t now_ns);
bool oomd_find_ended(struct oomd_finder *f, pid_t pid); /* false: not this one */

/* The finder itself: `sdb-oomd --look DIR...`. Its exit code. */
int oomd_find_main(int argc, char **argv);

#endif
