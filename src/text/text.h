/* text: tokenizers and streaming decode. Knows vocabularies and bytes; refuses to
 * know models. */
#ifndef HN_TEXT_H
#define HN_TEXT_H

#include "gguf/gguf.h"

#include <stdlib.h>

typedef struct hn_vocab hn_vocab; /* immutable once made; shared between threads */

typedef enum hn_vocab_kind { HN_VOCAB_SPM, HN_VOCAB_BPE, HN_VOCAB_RWKV, HN_VOCAB_WPM, HN_VOCAB_UGM } hn_vocab_kind;

/* Builds the tokenizer of g. pre: overrides tokenizer.ggml.pre (NULL: the file's).
 * HONE_E_UNSUPPORTED: unknown model or pre-tokenizer, named. HONE_E_FORMAT: broken
 * arrays. Absent tokenizer (no tokenizer.ggml.model): HONE_OK and *out NULL. */
hone_status hn_vocab_new(hn_vocab **out, const hn_gguf *g, const char *pre, hone_error *err);
void hn_vocab_free(hn_vocab *v);

hn_vocab_kind hn_vocab_get_kind(const hn_vocab *v);
int32_t hn_vocab_size(const hn_vocab *v); /* ids; those of a padded embedding table beyond the tokens have no text */
int32_t hn_vocab_bos(const hn_vocab *v);  /* -1: none */
int32_t hn_vocab_eos(const hn_vocab *v);
int32_t hn_vocab_eot(const hn_vocab *v);
int32_t hn_vocab_fim(const hn_vocab *v, hone_fim which);
bool hn_vocab_add_bos(const hn_vocab *v);
/* Do two separators part a pair of texts, as in RoBERTa, or one? The file of a tokenizer of that kind says so. */
bool hn_vocab_parts_twice(const hn_gguf *g, hn_vocab_kind kind);
bool hn_vocab_add_eos(const hn_vocab *v);
bool hn_vocab_is_eog(const hn_vocab *v, int32_t id);
bool hn_vocab_is_control(const hn_vocab *v, int32_t id);
hone_token_class hn_vocab_class(const hn_vocab *v, int32_t id);

/* Bytes of a token: see hone_token_piece. */
const char *hn_vocab_piece(const hn_vocab *v, int32_t id, bool special, size_t *len);

/* The bytes of all tokens as a tree (text/token_tree.h), made at first use; lives as long as v. Control tokens have no
 * bytes in it; those that end generation are its end_ids. */
struct hn_token_tree;
hone_status hn_vocab_tokens(const hn_vocab *v, const struct hn_token_tree **out, hone_error *err);

/* Growing list of ids; zero-initialise, free data with free(). */
typedef struct hn_ids {
    int32_t *data;
    size_t n, cap;
} hn_ids;

/* One more id; out->data may move. */
static inline hone_status hn_ids_put(hn_ids *out, int32_t id, hone_error *err)
{
    if (out->n == out->cap) {
        size_t cap = out->cap * 2 + 64;
        int32_t *p = cap > SIZE_MAX / sizeof *p ? NULL : realloc(out->data, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "tokenizer: %zu ids", cap);
        out->data = p;
        out->cap = cap;
    }
    out->data[out->n++] = id;
    return HONE_OK;
}

/* Appends the ids of text. flags: HONE_TOK_SPECIAL, HONE_TOK_ADD, HONE_TOK_ADD_BOS. */
hone_status hn_vocab_encode(const hn_vocab *v, const char *text, size_t len, int flags, hn_ids *out, hone_error *err);
/* The same for a text of which the bytes of input (ascending, disjoint) came from outside: a token that
 * structures a prompt is recognised only where none of its bytes did. Nothing else changes. */
hone_status hn_vocab_encode_spans(const hn_vocab *v, const char *text, size_t len, int flags, const hone_span *input,
                                  size_t n_input, hn_ids *out, hone_error *err);
/* The same as hn_vocab_encode; *spans: malloc'ed, for each new id the bytes of text it came from. See
 * hone_tokenize_spans. */
hone_status hn_vocab_locate(const hn_vocab *v, const char *text, size_t len, int flags, hn_ids *out, hone_span **spans,
                            hone_error *err);
/* Whole sequence: malloc'ed, NUL-terminated. Drops SPM's one leading space. */
hone_status hn_vocab_decode(const hn_vocab *v, const int32_t *ids, size_t n, bool special, char **text, size_t *len,
                            hone_error *err);

/* Gives fn the words that pre-tokenizer `pre` (a name as in tokenizer.ggml.pre) divides well-formed text into, in
 * order, until it says false. HONE_E_ARG: no such one. */
typedef bool hn_word_fn(void *arg, const char *word, size_t n);
hone_status hn_pre_words(const char *pre, const char *text, size_t len, hn_word_fn *fn, void *arg, hone_error *err);

/* Streaming decode: see hone_stream in hone.h. Ill-formed bytes become U+FFFD
 * (maximal subparts) at once; an unfinished character is held back. */
typedef struct hn_stream hn_stream;
hone_status hn_stream_new(hn_stream **out, const hn_vocab *v, const char *const *stops, size_t n_stops,
                          hone_error *err);
void hn_stream_free(hn_stream *s);
hone_status hn_stream_push(hn_stream *s, int32_t id, const char **text, size_t *len, bool *stopped, hone_error *err);
/* Tokens have numbers, where somebody asks what a text came from: that of the next one; of each byte of the text that
 * was shown last; of the first byte that is held back, -1: none is. */
void hn_stream_number(hn_stream *s, int32_t number);
const int32_t *hn_stream_sources(const hn_stream *s);
int32_t hn_stream_oldest(const hn_stream *s);
/* What is held back: complete characters, and behind them bytes of an unfinished one. */
typedef struct hn_stream_rest {
    hone_str text, raw;
} hn_stream_rest;
hn_stream_rest hn_stream_held(const hn_stream *s);
hone_status hn_stream_flush(hn_stream *s, const char **text, size_t *len, hone_error *err);

#endif
