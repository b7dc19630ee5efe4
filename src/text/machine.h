/* machine: the inside of a grammar at work, which matcher.c (texts) and masks.c (vocabularies) share. */
#ifndef HN_MACHINE_H
#define HN_MACHINE_H

#include "text/matcher.h"

#include <pthread.h>

enum { HN_CELLS_MAX = 1 << 21 };

typedef struct hn_item { /* a lexeme in progress, and what comes behind it */
    hn_lexeme at;
    uint32_t cell;
} hn_item;

/* Or one token of the vocabulary: at.term is its id. Its bytes, if it has any, are read as text by other items. */
enum { HN_ITEM_TOKEN = INT32_MIN }; /* at.part */
static inline bool hn_item_is_token(const hn_item *x) { return x->at.part == (uint32_t)HN_ITEM_TOKEN; }

typedef struct hn_opened { /* what a stack may go on with */
    uint32_t n;
    bool end; /* nothing more is needed */
    hn_item item[];
} hn_opened;

typedef struct hn_cell {
    hn_gnode node;     /* first this … */
    uint32_t parent;   /* … then that cell; 0: the end */
    uint32_t min, max; /* of a repetition: rounds still to come */
    hn_opened *opened; /* once it was asked for */
} hn_cell;

typedef struct hn_items {
    hn_item *item;
    uint32_t n, cap;
    bool end;
} hn_items;

typedef struct hn_numbers {
    uint32_t *data;
    size_t n, cap;
} hn_numbers;

struct hn_machine {
    hn_grammar_view g;
    pthread_mutex_t mu; /* guards all that follows, the terms of g.lang, and the items of all matchers */
    hn_matcher *first;  /* all matchers, by next */
    size_t low;         /* bytes: where g.lang has fewer left, what nobody holds goes … */
    uint32_t high;      /* … and where there are more cells */
    bool swept;         /* for the work that is going on */
    hn_cell *cell;
    uint32_t n_cell, cap_cell;
    uint32_t *slot; /* cell + 1 by hash */
    uint32_t n_slot;
    uint32_t start;
    hn_numbers todo, seen; /* of opening: work list; epoch in which each cell was on it */
    uint32_t epoch;
    uint64_t stamp, *set_stamp; /* table of the set that is being made */
    uint32_t *set_slot;
    hn_items a, b;
    hone_status failed;
    bool full; /* it has failed for lack of cells */
    const char *why;
    struct hn_token_mask **mask; /* masks.c: those kept */
    size_t n_mask, cap_mask, mask_bytes;
    struct hn_needs *needs; /* finish.c: bytes to the end; NULL: nobody has asked */
    struct hn_ways *ways;   /* … found for the text that is worked on; NULL: for none */
};

hone_status hn_machine_check(hn_machine *m, hone_error *err); /* the first failure since it was asked */
const hn_opened *hn_machine_open(hn_machine *m, uint32_t cell);

/* Sets the bits of tokens that may follow the items; failures stay in m. */
void hn_masks_of(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n, uint64_t *bits, size_t n_word);
void hn_masks_free(hn_machine *m);
void hn_masks_sweep(hn_machine *m, const uint32_t *term); /* term: as of hn_langs_sweep */

/* finish.c. Bytes that end a text of these items on a short way; 1 << 30: none was found. */
uint32_t hn_machine_need(hn_machine *m, const hn_item *item, uint32_t n);
/* Sets the bits of the longest tokens on such ways alone; none: the vocabulary lacks what must come. */
void hn_machine_finish(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n, uint64_t *bits,
                       size_t n_word);
/* What follows is of another mask: as much work may be done as for the one before. */
void hn_machine_rest(hn_machine *m);
/* One long token on such a way; -1: none. */
int32_t hn_machine_finish_by(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n);
/* Sets the bits of all tokens behind which at most `need` bytes are needed. */
void hn_machine_within(hn_machine *m, const hn_token_tree *t, const hn_item *item, uint32_t n, uint32_t need,
                       uint64_t *bits, size_t n_word);
uint32_t hn_machine_ahead(const hn_machine *m); /* bytes that a token may make necessary; after hn_machine_need */
void hn_needs_free(struct hn_needs *s);         /* NULL allowed */
struct hn_ways *hn_ways_new(void);              /* NULL: out of memory */
void hn_ways_free(struct hn_ways *w);           /* NULL allowed, and below */
/* Before and behind hn_langs_sweep: its terms are held; they have moved. */
void hn_ways_hold(const struct hn_ways *w, uint32_t *term);
void hn_ways_move(struct hn_ways *w, const uint32_t *term);

/* matcher.c, for finish.c: bytes to the end, 0 at a whole text, and what a token may add to them; bits of the tokens
 * behind which at most so many are needed; bits of those that come next on the way to the end, which are those that end
 * a text where it is whole. */
hone_status hn_matcher_need(hn_matcher *m, uint32_t *bytes, uint32_t *ahead, hone_error *err);
hone_status hn_matcher_near(hn_matcher *m, uint32_t bytes, uint64_t *bits, size_t n_word, hone_error *err);
hone_status hn_matcher_last(hn_matcher *m, uint64_t *bits, size_t n_word, hone_error *err);
hone_status hn_matcher_by(hn_matcher *m, int32_t *id, hone_error *err); /* hn_machine_finish_by */

#endif
