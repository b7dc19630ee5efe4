/* bpe: a byte-level BPE vocabulary from text. Knows bytes and words; refuses to know files. */
#ifndef HN_BPE_H
#define HN_BPE_H

#include "gguf/gguf.h"

typedef struct hn_bpe_pair {
    int32_t left, right, id;
    int64_t count;
} hn_bpe_pair; /* count: places it was at when it was merged */

/* Tokens: the special ones, the 256 bytes in the order of the characters that stand for them, then what pairs became.
 */
typedef struct hn_bpe {
    hone_str *token;   /* [n] as GGUF stores them: in characters that stand for bytes; special ones as they are */
    hn_bpe_pair *pair; /* [n_pair] in the order of merging */
    int32_t n, n_special, n_pair;
    char *pre; /* name of the pre-tokenizer */
    hn_arena *arena;
} hn_bpe;

typedef struct hn_bpe_rules {
    int32_t n_vocab;            /* tokens wanted; there are fewer where the text has no pair twice any more */
    const char *const *special; /* borrowed until the end */
    int32_t n_special;
    const char *pre; /* NULL: "gpt-2" */
} hn_bpe_rules;

/* Text piece by piece, then the vocabulary. Each step joins the pair that is at most places within words; of several
 * such the one of the lowest left id, then right id. The same text gives the same vocabulary. Special tokens in the
 * text divide it and are left out. */
typedef struct hn_bpe_maker hn_bpe_maker;
hone_status hn_bpe_begin(hn_bpe_maker **out, const hn_bpe_rules *rules, hone_error *err);
hone_status hn_bpe_text(hn_bpe_maker *t, const char *s, size_t n, hone_error *err); /* no piece ends within a word */
size_t hn_bpe_words(const hn_bpe_maker *t);                                         /* different ones so far */
/* Needs words. *out NULL on failure; t is used up, and still the caller's to drop. */
hone_status hn_bpe_end(hn_bpe **out, hn_bpe_maker *t, hone_error *err);
void hn_bpe_drop(hn_bpe_maker *t); /* NULL is accepted */
void hn_bpe_free(hn_bpe *b);
/* tokenizer.ggml.*: tokens, types, merges; bos and eos are ids of special tokens, -1: none. */
hone_status hn_bpe_put(hn_gguf_writer *w, const hn_bpe *b, int32_t bos, int32_t eos, bool add_bos, hone_error *err);

#endif
