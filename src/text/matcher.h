/* matcher: how far a text has come through a grammar, and what may follow. A state is a set of lexemes in progress,
 * each with the stack of what comes after it; stacks are cells that know their parent, no two of them equal, and
 * counters of repetitions are part of a cell. Owns states, their history and masks over a vocabulary; refuses to know
 * models. */
#ifndef HN_MATCHER_H
#define HN_MATCHER_H

#include "text/grammar.h"
#include "text/token_tree.h"

typedef struct hn_machine hn_machine; /* of one grammar: stacks, and masks that were computed; all matchers share it */
hone_status hn_machine_new(hn_machine **out, const hn_grammar *g, hone_error *err);
void hn_machine_free(hn_machine *m);
hn_machine *hn_grammar_machine(const hn_grammar *g);

typedef struct hone_matcher hn_matcher;

/* tree: of the vocabulary, must outlive the matcher; NULL: for bytes alone. g is held. */
hone_status hn_matcher_new(hn_matcher **out, hn_grammar *g, const hn_token_tree *tree, hone_error *err);
hone_status hn_matcher_copy(hn_matcher **out, hn_matcher *from, hone_error *err);
void hn_matcher_free(hn_matcher *m);

/* One step of the history. *ok false: it does not match here, and nothing has changed. */
hone_status hn_matcher_bytes(hn_matcher *m, const char *text, size_t len, bool *ok, hone_error *err);
hone_status hn_matcher_token(hn_matcher *m, int32_t id, bool *ok, hone_error *err);
bool hn_matcher_ends(const hn_matcher *m); /* is what was read a whole text? */
size_t hn_matcher_steps(const hn_matcher *m);
hone_status hn_matcher_back(hn_matcher *m, size_t n, hone_error *err); /* n steps */
/* Bits of ids that may come next, [n_word] words of 64. *n: how many. */
hone_status hn_matcher_mask(hn_matcher *m, uint64_t *bits, size_t n_word, int64_t *n, hone_error *err);
/* The same where at most `left` tokens may come (below 0: any number): tokens that begin more than there is room for
 * are left out, and as soon as a short way to the end takes all but eight, there are only the longest tokens of such
 * ways, and at the end those that end the text. */
hone_status hn_matcher_mask_within(hn_matcher *m, int64_t left, uint64_t *bits, size_t n_word, int64_t *n,
                                   hone_error *err);

#endif
