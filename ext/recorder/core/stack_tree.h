/* SPDX-License-Identifier: MIT
 *
 * stack_tree.h - the nodes of one chunk: (parent, code, where) -> id. Ids count 1, 2, ...; 0 is the root. A
 * reset forgets all in O(1): each entry carries the generation that wrote it.
 *
 * Runs on: scanner thread, no GVL
 */
#ifndef SDB_STACK_TREE_H
#define SDB_STACK_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sdb_tree_entry {
    uint64_t where;
    uint32_t parent, code;
    uint32_t id;
    uint32_t generation; /* empty unless the tree's */
};

struct sdb_tree_child { /* id 0: none */
    uint64_t where;
    uint32_t code, id;
};

struct sdb_stack_tree {
    /* owner: scanner */
    struct sdb_tree_entry *entries;
    struct sdb_tree_child *latest; /* by node: the child found last. mask + 1 of them */
    uint32_t mask;                 /* entries - 1 */
    uint32_t count;
    uint32_t generation;
};

/* 0 or SDB_ERR_NOMEM. */
int sdb_stack_tree_init(struct sdb_stack_tree *t);
void sdb_stack_tree_free(struct sdb_stack_tree *t);
void sdb_stack_tree_reset(struct sdb_stack_tree *t);

/* Id, or 0 when absent. parent: 0 or an id of this tree. */
uint32_t sdb_stack_tree_find(struct sdb_stack_tree *t, uint32_t parent, uint32_t code,
                             uint64_t where);
/* Id, added with the next id when absent (*is_new); 0 when the table would have to grow and cannot. */
uint32_t sdb_stack_tree_add(struct sdb_stack_tree *t, uint32_t parent, uint32_t code,
                            uint64_t where, bool *is_new);
uint64_t sdb_stack_tree_memory_bytes(const struct sdb_stack_tree *t);

#endif
