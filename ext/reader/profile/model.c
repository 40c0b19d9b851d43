/* SPDX-License-Identifier: MIT
 *
 * model.c - the dictionaries of a profile: equal things get one number.
 *
 * Runs on: offline
 */
#include "profile/model.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

static const char *const fixed_names[SDB_FUNC_FIXED_COUNT] = {
    [SDB_FUNC_UNKNOWN] = "(unknown)",
    [SDB_FUNC_NO_FRAMES] = "(no Ruby frames)",
    [SDB_FUNC_UNNAMED] = "(not yet named)",
    [SDB_FUNC_UNRESOLVED] = "(unresolved)",
};

static int
fixed_add(struct sdb_profile *p)
{
    uint32_t empty, number, frame;
    int err = sdb_profile_string(p, "", 0, &empty);
    for (int i = 0; !err && i < SDB_FUNC_FIXED_COUNT; i++) {
        struct sdb_func func = {.path = empty};
        err = sdb_profile_string(p, fixed_names[i], strlen(fixed_names[i]), &func.name);
        if (!err) err = sdb_profile_func(p, func, &number);
    }
    if (!err) err = sdb_table_room(p, stacks);
    if (err) return err;
    p->stacks[p->stacks_count++] = (struct sdb_reader_stack){0};
    err = sdb_profile_frame(p, SDB_FUNC_UNKNOWN, 0, &frame);
    if (!err) err = sdb_profile_stack(p, SDB_STACK_ROOT, frame, &number);
    if (!err) err = sdb_profile_frame(p, SDB_FUNC_NO_FRAMES, 0, &frame);
    if (!err) err = sdb_profile_stack(p, SDB_STACK_ROOT, frame, &number);
    return err;
}

struct sdb_profile *
sdb_profile_new(void)
{
    struct sdb_profile *p = calloc(1, sizeof(*p));
    if (!p) return NULL;
    p->string_seed = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15ull;
    if (fixed_add(p) != SDB_OK) {
        sdb_profile_free(p);
        return NULL;
    }
    return p;
}

void
sdb_profile_free(struct sdb_profile *p)
{
    if (!p) return;
    for (size_t i = 0; i < p->rings_count; i++) free(p->rings[i].clocks);
    for (size_t i = 0; i < p->threads_count; i++) free(p->threads[i].segments);
    void *tables[] = {p->rings, p->strings, p->funcs,       p->frames, p->stacks,   p->threads,
                      p->spans, p->pieces,  p->span_events, p->pairs,  p->tag_sets, p->gaps,
                      p->gcs,   p->memory,  p->counters,    p->marks,  p->numbers};
    for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) free(tables[i]);
    struct sdb_map *maps[] = {&p->string_map, &p->func_map,   &p->frame_map,
                              &p->stack_map,  &p->thread_map, &p->span_map};
    for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++) sdb_map_free(maps[i]);
    sdb_arena_free(&p->arena);
    free(p);
}

static uint64_t
bytes_hash(uint64_t seed, const uint8_t *bytes, size_t n)
{
    uint64_t h = seed ^ (n * 0xff51afd7ed558ccdull);
    while (n >= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0x9fb21c651e98df25ull;
        h ^= h >> 29;
        bytes += 8;
        n -= 8;
    }
    for (; n; n--) h = (h ^ *bytes++) * 0x100000001b3ull;
    return h ^ (h >> 32);
}

uint32_t
sdb_string_find(const struct sdb_profile *p, const void *bytes, size_t n)
{
    for (uint64_t hash = bytes_hash(p->string_seed, bytes, n);; hash++) {
        uint32_t found = sdb_map_get(&p->string_map, hash, n);
        if (found == SDB_MAP_NONE || memcmp(p->strings[found].at, bytes, n) == 0) return found;
    }
}

int
sdb_profile_string(struct sdb_profile *p, const void *bytes, size_t n, uint32_t *string)
{
    if (n > UINT32_MAX) return SDB_ERR_FULL;
    uint64_t hash = bytes_hash(p->string_seed, bytes, n);
    uint32_t found;
    for (;; hash++) {
        found = sdb_map_get(&p->string_map, hash, n);
        if (found == SDB_MAP_NONE) break;
        if (memcmp(p->strings[found].at, bytes, n) == 0) {
            *string = found;
            return SDB_OK;
        }
    }
    if (p->strings_count >= SDB_NONE) return SDB_ERR_FULL;
    int err = sdb_table_room(p, strings);
    if (err) return err;
    const uint8_t *copy = sdb_arena_copy(&p->arena, bytes, n);
    if (!copy) return SDB_ERR_NOMEM;
    err = sdb_map_set(&p->string_map, hash, n, (uint32_t)p->strings_count);
    if (err) return err;
    p->strings[p->strings_count] = (struct sdb_reader_text){(const char *)copy, (uint32_t)n};
    *string = (uint32_t)p->strings_count++;
    return SDB_OK;
}

int
sdb_profile_func(struct sdb_profile *p, struct sdb_func func, uint32_t *number)
{
    uint64_t a = (uint64_t)func.name << 32 | func.path;
    uint32_t found = sdb_map_get(&p->func_map, a, func.line);
    if (found == SDB_MAP_NONE) {
        if (p->funcs_count >= SDB_NONE) return SDB_ERR_FULL;
        int err = sdb_table_room(p, funcs);
        if (!err) err = sdb_map_set(&p->func_map, a, func.line, (uint32_t)p->funcs_count);
        if (err) return err;
        found = (uint32_t)p->funcs_count++;
        p->funcs[found] = func;
    }
    *number = found;
    return SDB_OK;
}

int
sdb_profile_frame(struct sdb_profile *p, uint32_t func, uint32_t line, uint32_t *frame)
{
    uint32_t found = sdb_map_get(&p->frame_map, func, line);
    if (found == SDB_MAP_NONE) {
        if (p->frames_count >= SDB_NONE) return SDB_ERR_FULL;
        int err = sdb_table_room(p, frames);
        if (!err) err = sdb_map_set(&p->frame_map, func, line, (uint32_t)p->frames_count);
        if (err) return err;
        found = (uint32_t)p->frames_count++;
        p->frames[found] = (struct sdb_reader_frame){func, line};
    }
    *frame = found;
    return SDB_OK;
}

int
sdb_profile_stack(struct sdb_profile *p, uint32_t parent, uint32_t frame, uint32_t *stack)
{
    uint32_t found = sdb_map_get(&p->stack_map, parent, frame);
    if (found == SDB_MAP_NONE) {
        if (p->stacks[parent].depth >= SDB_MAX_DEPTH) {
            *stack = parent;
            return SDB_OK;
        }
        if (p->stacks_count >= SDB_NONE) return SDB_ERR_FULL;
        int err = sdb_table_room(p, stacks);
        if (!err) err = sdb_map_set(&p->stack_map, parent, frame, (uint32_t)p->stacks_count);
        if (err) return err;
        found = (uint32_t)p->stacks_count++;
        p->stacks[found] = (struct sdb_reader_stack){
            .parent = parent,
            .frame = frame,
            .depth = p->stacks[parent].depth + 1,
        };
    }
    *stack = found;
    return SDB_OK;
}

int
sdb_profile_walk(const struct sdb_profile *p, sdb_stack_step *enter, sdb_stack_step *leave,
                 void *data)
{
    size_t n = p->stacks_count;
    uint32_t *child = calloc(n, sizeof(*child)), *sibling = calloc(n, sizeof(*sibling));
    if (!child || !sibling) {
        free(child);
        free(sibling);
        return SDB_ERR_NOMEM;
    }
    for (size_t i = n - 1; i >= 1; i--) {
        sibling[i] = child[p->stacks[i].parent];
        child[p->stacks[i].parent] = (uint32_t)i;
    }
    uint32_t at = child[SDB_STACK_ROOT];
    while (at != SDB_STACK_ROOT) {
        enter(at, data);
        if (child[at]) {
            at = child[at];
            continue;
        }
        for (; at != SDB_STACK_ROOT; at = p->stacks[at].parent) {
            leave(at, data);
            if (sibling[at]) break;
        }
        if (at != SDB_STACK_ROOT) at = sibling[at];
    }
    free(child);
    free(sibling);
    return SDB_OK;
}

struct recursion {
    struct sdb_profile *profile;
    uint32_t *on_path; /* per function: how often on the way from the root */
};

static void
recursion_enter(uint32_t stack, void *data)
{
    struct recursion *r = data;
    struct sdb_reader_stack *at = &r->profile->stacks[stack];
    at->again = r->on_path[r->profile->frames[at->frame].func]++ > 0;
}

static void
recursion_leave(uint32_t stack, void *data)
{
    struct recursion *r = data;
    r->on_path[r->profile->frames[r->profile->stacks[stack].frame].func]--;
}

int
sdb_profile_mark_recursion(struct sdb_profile *p)
{
    struct recursion r = {p, calloc(p->funcs_count, sizeof(*r.on_path))};
    if (!r.on_path) return SDB_ERR_NOMEM;
    int err = sdb_profile_walk(p, recursion_enter, recursion_leave, &r);
    free(r.on_path);
    return err;
}

size_t
sdb_segment_find(const struct sdb_thread *t, uint64_t at)
{
    if (at >= t->end) return t->segment_count;
    size_t low = 0, high = t->segment_count; /* segments[low - 1].t0 <= at < segments[high].t0 */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->segments[middle].t0 <= at) low = middle + 1;
        else high = middle;
    }
    return low ? low - 1 : 0;
}
