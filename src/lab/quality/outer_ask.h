/* What the files of outer share: a hash as it goes on. outer.c has tokenizer, texts, samplers and grammars,
 * outer_talks.c conversations and answers, outer_far.c what is beyond the bounds of both, outer_notations.c how
 * grammars and templates may be written, outer_calls.c how templates mark what they write, outer_corners.c what
 * these left out, outer_drawn.c what a number draws. */
#ifndef HN_OUTER_ASK_H
#define HN_OUTER_ASK_H

#include "lab/quality/outer.h"

typedef struct hn_asking {
    const hone_model *m;
    hone_model_info info;
    uint64_t h;
    hone_error err;
} hn_asking;

static inline void hn_asking_add(hn_asking *a, const void *p, size_t n) { a->h = hn_fnv1a(a->h, p, n); }
static inline void hn_asking_number(hn_asking *a, int64_t v) { hn_asking_add(a, &v, sizeof v); }
/* What is refused is an answer. */
static inline bool hn_asking_took(hn_asking *a, hone_status st)
{
    if (st != HONE_OK) hn_asking_number(a, -(int64_t)st);
    return st == HONE_OK;
}

/* Of outer.c: a text's ids; so many picks of one sampler from the same logits, each of which it is told. */
hone_status hn_asking_tokens(hn_asking *a, const char *text, size_t len, int flags);
/* Of outer_talks.c: one answer, the tokens of a text, to its end; now and then it is asked what may come. */
hone_status hn_asking_answer(hn_asking *a, hone_reply *r, const char *text, size_t len, uint64_t *mask, size_t n_words);
hone_status hn_asking_picks(hn_asking *a, hone_sampler *s, const float *x, int32_t times);

hone_status hn_ask_talks(hn_asking *a);
/* What an answer's tokens are taken for: reasoning, calls, text, its end; pairs of texts; places in a file. */
hone_status hn_ask_replies(hn_asking *a);

/* Windows, words, formats and conversations beyond where the others end. */
hone_status hn_ask_far(hn_asking *a);
/* Notations, by the words of each. */
hone_status hn_ask_notations(hn_asking *a);
hone_status hn_ask_calls(hn_asking *a); /* its second half: how templates mark what they write */
/* Stops that begin anew within themselves, texts that a format just lets in. */
hone_status hn_ask_corners(hn_asking *a);
/* Of all kinds, as the number draws them. */
hone_status hn_ask_drawn(hn_asking *a, uint64_t by);

#endif
