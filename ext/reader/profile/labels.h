/* SPDX-License-Identifier: MIT
 *
 * labels.h - what a thread's time counts for, its outermost span and its set of tags, and at which moments that changed
 * since the tick before: so that no value gets time of a stack that was seen for another (FORMAT.md, section 8).
 *
 * Runs on: offline
 */
#ifndef SDB_LABELS_H
#define SDB_LABELS_H

#include <stdbool.h>
#include <stdint.h>

struct sdb_profile;

enum { SDB_LABEL_CHANGES_MAX = 16 }; /* more in one interval are not told apart */

struct sdb_label {
    uint32_t root; /* span, SDB_NONE none */
    uint32_t tags_off, tags_n;
};

struct sdb_label_change {
    uint64_t at;
    struct sdb_label label; /* from then on */
};

struct sdb_labels {         /* of one thread */
    struct sdb_label label; /* before the first change */
    struct sdb_label_change changes[SDB_LABEL_CHANGES_MAX];
    uint32_t count;
};

struct sdb_division { /* of (before, now] between what was seen at either end */
    uint64_t first,
        last; /* up to `first` the earlier sight holds, from `last` on the later; between them neither */
};

void sdb_labels_reset(struct sdb_labels *l);
/* As it is after all changes told. */
struct sdb_label sdb_labels_newest(const struct sdb_labels *l);
void sdb_labels_change(struct sdb_labels *l, uint64_t at, struct sdb_label label);
/* False when nothing changed in (before, now]. Forgets what lies before. */
bool sdb_labels_divide(const struct sdb_profile *p, struct sdb_labels *l, uint64_t before,
                       uint64_t now, struct sdb_division *out);

#endif
