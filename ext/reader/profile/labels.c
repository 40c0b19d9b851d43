/* SPDX-License-Identifier: MIT
 *
 * labels.c - see labels.h.
 *
 * Runs on: offline
 */
#include "profile/labels.h"

#include <string.h>

#include "profile/model.h"

#define NOBODYS (SDB_NONE - 1) /* a root that is no span: of changes that are not told apart */

void
sdb_labels_reset(struct sdb_labels *l)
{
    l->label = (struct sdb_label){.root = SDB_NONE};
    l->count = 0;
}

struct sdb_label
sdb_labels_newest(const struct sdb_labels *l)
{
    return l->count ? l->changes[l->count - 1].label : l->label;
}

void
sdb_labels_change(struct sdb_labels *l, uint64_t at, struct sdb_label label)
{
    if (l->count && at < l->changes[l->count - 1].at) at = l->changes[l->count - 1].at;
    if (l->count == SDB_LABEL_CHANGES_MAX) {
        l->count--;
        l->changes[l->count - 1].label = (struct sdb_label){.root = NOBODYS};
    }
    l->changes[l->count++] = (struct sdb_label_change){at, label};
}

static bool
has_pair(const struct sdb_profile *p, const struct sdb_label *label, struct sdb_pair pair)
{
    for (uint32_t i = 0; i < label->tags_n; i++) {
        struct sdb_pair own = p->pairs[label->tags_off + i];
        if (own.key == pair.key && own.value == pair.value) return true;
    }
    return false;
}

/* Time of `inner` may be taken for time of `outer`: it counts for nothing that `outer` does not count for. */
static bool
counts_for_no_more(const struct sdb_profile *p, const struct sdb_label *inner,
                   const struct sdb_label *outer)
{
    if (inner->root != SDB_NONE && inner->root != outer->root) return false;
    for (uint32_t i = 0; i < inner->tags_n; i++)
        if (!has_pair(p, outer, p->pairs[inner->tags_off + i])) return false;
    return true;
}

static void
forget(struct sdb_labels *l, uint64_t before)
{
    uint32_t gone = 0;
    while (gone < l->count && l->changes[gone].at <= before) gone++;
    if (!gone) return;
    l->label = l->changes[gone - 1].label;
    l->count -= gone;
    memmove(l->changes, l->changes + gone, l->count * sizeof *l->changes);
}

bool
sdb_labels_divide(const struct sdb_profile *p, struct sdb_labels *l, uint64_t before, uint64_t now,
                  struct sdb_division *out)
{
    forget(l, before);
    uint32_t n = 0;
    while (n < l->count && l->changes[n].at <= now) n++;
    if (!n) return false;

    const struct sdb_label *final = &l->changes[n - 1].label;
    uint64_t earlier_to = now, later_from = before;
    for (uint32_t i = 0; i < n && earlier_to == now; i++)
        if (!counts_for_no_more(p, &l->changes[i].label, &l->label)) earlier_to = l->changes[i].at;
    for (uint32_t i = n; i > 0 && later_from == before; i--) {
        const struct sdb_label *earlier = i > 1 ? &l->changes[i - 2].label : &l->label;
        if (!counts_for_no_more(p, earlier, final)) later_from = l->changes[i - 1].at;
    }
    if (earlier_to == now && later_from == before) return false; /* it came back to what it was */
    out->first = earlier_to;
    out->last = later_from;
    if (earlier_to < later_from) return true;
    /* either may have the time between: the middle of the changes, as far as it lies there */
    uint64_t middle = l->changes[0].at + (l->changes[n - 1].at - l->changes[0].at) / 2;
    if (middle < later_from) middle = later_from;
    if (middle > earlier_to) middle = earlier_to;
    out->first = out->last = middle;
    return true;
}
