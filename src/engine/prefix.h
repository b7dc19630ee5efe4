/* What is kept when the sequences that computed it are gone: a tree whose edges are whole pages of HN_PAGE positions,
 * found by their ids. Owns which prefix has which pages and the order in which they are forgotten; refuses to know what
 * is in a page. Pages and blocks are counted where those of sequences are (seq_memory.h): the tree is one more holder.
 *
 * A node stands for the positions of one page after those of its parent. It holds that page of every group, as far as
 * it was there: windowed groups of long sequences have their last ones only. Where layers recur a node may also hold
 * the state after its last position; where they recur or have windows, a node that ends within a page stands for the
 * place at which a sequence was kept, and nothing follows it. A place can be had where the window of each group is
 * there, and the state where there are any. */
#ifndef HN_PREFIX_H
#define HN_PREFIX_H

#include "engine/seq_memory.h"

typedef struct hn_prefix {
    struct hn_prefix *parent, *next; /* next: of its bucket */
    struct hn_prefix *older, *newer; /* by their last use: a parent is newer than all its children */
    hn_seq_key key;
    uint64_t hash;            /* chained: of the key and all ids up to end */
    int32_t end, n;           /* positions up to its last; of them its own: HN_PAGE, or fewer and nothing follows */
    int32_t n_child, n_short; /* nodes after it; of them those with fewer than HN_PAGE */
    uint32_t state;           /* HN_NO_BLOCK: none */
    int32_t ids[HN_PAGE];
    uint32_t page[]; /* [n_group] HN_NO_BLOCK: none */
} hn_prefix;

struct hn_prefix_tree {
    hn_prefix **bucket; /* [n_bucket] */
    size_t n_bucket;    /* a power of two */
    hn_prefix *oldest, *newest;
    int32_t n_short; /* without a parent */
    int32_t most_states;
    uint64_t n_node, n_page, n_state;           /* now */
    uint64_t n_hit, n_hit_positions, n_evicted; /* so far: matches that it served; nodes that gave way */
};

hn_prefix_tree *hn_prefix_tree_new(int32_t most_states); /* NULL: no memory */
void hn_prefix_tree_free(hn_prefix_tree *t);             /* the pages are the pools' */

/* What a sequence holds now, as far as its ids are known, stays. HONE_E_NOMEM: some of it does not. */
hone_status hn_prefix_keep(hn_seq_memory *m, int32_t seq, hone_error *err);
/* The furthest place that the tree has of ids [n], n ≥ 1, at most n − 1, and the node that has its last page; 0: none.
 */
int32_t hn_prefix_find(const hn_seq_memory *m, hn_seq_key key, const int32_t *ids, int32_t n, hn_prefix **node);
/* The sequence then holds that place and nothing else; its checkpoints stay. */
void hn_prefix_attach(hn_seq_memory *m, int32_t seq, hn_prefix *node, const int32_t *ids, int32_t n_pos);
/* Forgets what was not used for longest, among what holds a page that the tree alone does if there is such: it is free
 * when the last of its nodes goes. False: nothing would be free then. */
bool hn_prefix_evict(hn_seq_memory *m);
/* Is a page of a group (−1: a block of states) in the tree as places which nothing follows, alone? Then these are
 * forgotten. */
bool hn_prefix_can_let_go(const hn_seq_memory *m, int32_t group, uint32_t number);
void hn_prefix_let_go(hn_seq_memory *m, int32_t group, uint32_t number);
void hn_prefix_drop_all(hn_seq_memory *m);
/* What was computed with these adapters, of whatever scope. */
bool hn_prefix_has_adapters(const hn_seq_memory *m, uint64_t adapters);
void hn_prefix_drop_adapters(hn_seq_memory *m, uint64_t adapters);
/* Bytes that it holds, and those of them that nobody else does. */
void hn_prefix_bytes(const hn_seq_memory *m, uint64_t *held, uint64_t *alone);
/* Are those so many? Looks, from what was not used for longest, at as much as it takes to say yes. */
bool hn_prefix_can_free(const hn_seq_memory *m, uint64_t bytes);

#endif
