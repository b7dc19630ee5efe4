/* token_tree: the bytes of all tokens as one tree, flat and in depth-first order, so that a walk reads forward and
 * leaves out a subtree by one jump. Immutable once made. Refuses to know tokenizers. */
#ifndef HN_TOKEN_TREE_H
#define HN_TOKEN_TREE_H

#include "base/base.h"

typedef struct hn_token_tree {
    uint64_t serial; /* of this tree, never used again */
    uint32_t n;      /* nodes; node 0 is the empty text */
    uint8_t *byte;   /* [n] */
    uint16_t *depth; /* [n] bytes from the root */
    uint32_t *end;   /* [n] the first node behind the subtree */
    uint32_t *first; /* [n + 1] tokens of node i: ids[first[i] … first[i + 1]) */
    int32_t *ids;    /* [first[n]] */
    uint32_t max_depth;
    int32_t n_vocab;
    hone_str *piece;  /* [n_vocab] bytes of each token, borrowed; none: may not be used; NULL: of part of a tree */
    int32_t *end_ids; /* tokens that end a text */
    int32_t n_end;
    struct hn_token_plain *plain; /* masks.c: what a free JSON string allows; NULL in part of a tree */
} hn_token_tree;

typedef struct hn_token_text {
    const char *text;
    uint32_t len; /* > 0 */
    int32_t id;
} hn_token_text;

/* list [n] is sorted in place. On failure *t is zeros. */
hone_status hn_token_tree_make(hn_token_tree *t, hn_token_text *list, size_t n, hone_error *err);
void hn_token_tree_free(hn_token_tree *t);

/* masks.c: makes t->plain; t->piece and t->n_vocab must be there. */
hone_status hn_token_tree_plain(hn_token_tree *t, hone_error *err);
void hn_token_plain_free(struct hn_token_plain *p); /* NULL allowed */

#endif
