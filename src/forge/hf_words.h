/* hf_words: a vocabulary on its way into GGUF: what hf_tokenizer's readers of files fill, each from its format, and
 * hf_tokenizer.c puts. Owns tokens by id, their texts and merges, and says where two files contradict each other. */
#ifndef HN_HF_WORDS_H
#define HN_HF_WORDS_H

#include "forge/hf_tokenizer.h"

enum { HN_HF_NORMAL = 1, HN_HF_UNKNOWN, HN_HF_CONTROL, HN_HF_USER, HN_HF_UNUSED, HN_HF_BYTE };
enum { HN_HF_FILE = 256 << 20 }; /* bytes of a file of vocabularies */

typedef enum hn_hf_form {
    HN_HF_BPE,     /* byte-level */
    HN_HF_RAW,     /* BPE of characters: its merges are kept */
    HN_HF_SPM,     /* BPE of characters: its merges become scores */
    HN_HF_UNIGRAM, /* T5's */
    HN_HF_PIECES   /* BERT's */
} hn_hf_form;

typedef struct hn_hf_words {
    const hn_hf_tokenizer *t;
    const char *path; /* the file that is read, for messages */
    hn_hf_form form;
    hn_arena *arena;
    uint64_t most; /* ids are below: rows of the embedding, or what the file's size allows */
    hone_str *tok; /* [cap], ptr NULL: a gap */
    float *score;
    int32_t *type;
    uint64_t n, cap; /* 1 + the highest id */
    hone_str beyond; /* the first added token without a row of the embedding, which is left out; and its id */
    uint64_t beyond_id;
    hn_index ix;
    hone_str *merge;
    uint64_t n_merge, cap_merge;
    char *scratch;
    size_t n_scratch;
    /* what the formats say besides */
    const char *pre; /* BPE */
    bool whole;      /* ignore_merges */
    bool scored;     /* SentencePiece itself gave the scores */
    bool space_prefix, merge_spaces;
    int lowercase, strip_accents; /* −1: nothing is said */
    int add_bos, add_eos;         /* likewise */
    int add_sep;                  /* likewise: is the separator between two texts there twice? */
    int32_t bos, eos, unk, pad;   /* likewise; by id */
    int32_t first, last;          /* what a template puts around a text; −1: nothing, or there is none */
    const char *charsmap;         /* base64 or bytes */
    size_t n_charsmap;
} hn_hf_words;

hone_status hn_hf_words_begin(hn_hf_words *w, const hn_hf_tokenizer *t, hone_error *err);
void hn_hf_words_free(hn_hf_words *w);
void hn_hf_words_note(const hn_hf_words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Does a space go before the text? Are spaces merged? */
void hn_hf_words_spaces(hn_hf_words *w, bool prefix, bool merges);

/* The file FOLDER/name, whole, in the arena; *text NULL: there is none. Its name becomes w->path. */
hone_status hn_hf_words_file(char **text, size_t *n, hn_hf_words *w, const char *name, hone_error *err);
/* The same of a file of JSON, as a tree that the caller gives back; *out NULL: there is none. */
hone_status hn_hf_words_tree(json_t **out, hn_hf_words *w, const char *name, hone_error *err);

/* Ids of a file of n bytes are below the embedding's rows, or n. */
void hn_hf_words_room(hn_hf_words *w, size_t n_bytes);
/* A token of the vocabulary: text borrowed. HONE_E_FORMAT: an id beyond, of another text, or a text that has an id. */
hone_status hn_hf_words_set(hn_hf_words *w, uint64_t id, hone_str text, int32_t type, float score, hone_error *err);
/* A token that was added to a vocabulary: its text may be there already, under this id. One without a row of the
 * embedding (Gemma 3's <image_soft_token> in models that see nothing) is left out, and noted as w->beyond. */
hone_status hn_hf_words_add(hn_hf_words *w, uint64_t id, hone_str text, bool special, hone_error *err);
int32_t hn_hf_words_find(const hn_hf_words *w, const char *s, size_t n); /* −1: none */
/* "left right" with n_left bytes before the space. */
hone_status hn_hf_words_merge(hn_hf_words *w, hone_str pair, hone_error *err);
/* Each merge's parts and result are tokens. With scores: −(1 + first merge that makes the token). */
hone_status hn_hf_words_merged(hn_hf_words *w, bool scores, hone_error *err);

/* U+2581 of added tokens becomes a space; after that, texts are not found any more. */
hone_status hn_hf_words_unmark(hn_hf_words *w, hone_error *err);

/* Base64 to bytes, which may lie where the text did; −1: it is none. */
int64_t hn_hf_base64(char *dst, const char *s, size_t n);
/* Bytes in GPT-2's alphabet; dst has 2 n. Returns its bytes. */
size_t hn_hf_byte_text(char *dst, const char *s, size_t n);

/* {text: id} of byte-level BPE, read in place. */
hone_status hn_hf_read_vocab(hn_hf_words *w, char *text, size_t n, hone_error *err);

/* ---- readers ----------------------------------------------------------------------------------------------- */

/* *found false: there is no such file. */
hone_status hn_hf_read_json(hn_hf_words *w, bool *found, hone_error *err); /* tokenizer.json */
hone_status hn_hf_read_sentencepiece(hn_hf_words *w, bool *found,
                                     hone_error *err);                       /* or its scores, where w has words */
hone_status hn_hf_read_merges(hn_hf_words *w, bool *found, hone_error *err); /* vocab.json and merges.txt */
hone_status hn_hf_read_ranks(hn_hf_words *w, bool *found, hone_error *err);  /* tiktoken */
hone_status hn_hf_read_tekken(hn_hf_words *w, bool *found, hone_error *err);

/* ---- splits --------------------------------------------------------------------------------------------------- */

/* The pre that divides text as the structure says, one rule a line: "regex …", "digits", "digit-runs", "punctuation",
 * "gpt2". whole: a word that is a token is that token. NULL: none that hone knows. */
const char *hn_hf_pre_of(const char *rules, bool whole, const hn_hf_words *w);
/* The other way; NULL: not known. *whole: as above. */
const char *hn_hf_rules_of(const char *pre, bool *whole);

#endif
