/* hf_tokenizer: the vocabulary of a folder of transformers becomes the tokenizer.* entries of GGUF, and back. Knows the
 * files that tokenizers are published in (tokenizer.json, SentencePiece's tokenizer.model, vocab.json with merges.txt,
 * ranks of tiktoken, tekken.json) and those about them (tokenizer_config.json, added_tokens.json,
 * special_tokens_map.json, generation_config.json, chat templates). Refuses to know tensors and how text is divided. */
#ifndef HN_HF_TOKENIZER_H
#define HN_HF_TOKENIZER_H

#include "base/json_tree.h"
#include "gguf/gguf.h"

typedef struct hn_hf_tokenizer {
    const char *folder;   /* with the tokenizer's files */
    const json_t *config; /* config.json, whole; may be NULL */
    const char *arch;     /* general.architecture; may be NULL */
    const char *pre;      /* chosen by the user, whatever the folder says; NULL: by the folder's structure */
    uint64_t n_vocab;     /* rows of the embedding; 0: as many as there are tokens */
    void (*note)(void *arg, const char *text); /* what a user should know, in a sentence; may be NULL */
    void *note_arg;
} hn_hf_tokenizer;

/* Has the folder any file that hn_hf_tokenizer_put reads a vocabulary from? */
hone_status hn_hf_tokenizer_there(bool *there, const char *folder, hone_error *err);
/* Puts tokenizer.* and the chat templates. HONE_E_IO: a file cannot be read, or the folder has no vocabulary.
 * HONE_E_FORMAT: a file contradicts itself or another one. HONE_E_UNSUPPORTED: hone's tokenizers have no such form;
 * the message has the structure found. HONE_E_ARG: pre is not known. */
hone_status hn_hf_tokenizer_put(hn_gguf_writer *w, const hn_hf_tokenizer *t, hone_error *err);
/* How many kinds of text there are, of which a model has a row each: of any tokenizer, and of none. */
hone_status hn_hf_tokenizer_types(hn_gguf_writer *w, const json_t *config, hone_error *err);

/* Writes what transformers reads of the model's tokenizer into the folder, which is there: tokenizer.json,
 * tokenizer_config.json, special_tokens_map.json, tokenizer.model (of SentencePiece's BPE: its scores), chat templates,
 * generation_config.json (token ids; further members are the caller's: *generation, may be NULL). A file without
 * vocabulary: none of these but the last. HONE_E_UNSUPPORTED: a kind that transformers has no form for (RWKV World). */
hone_status hn_hf_tokenizer_write(const char *folder, const hn_gguf *g, const json_t *generation, json_t *written,
                                  hone_error *err);

#endif
