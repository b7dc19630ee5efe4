/* model: weights bound to fields, every shape checked once, and a plan of what each layer does with them. Families are
 * tables (family.h), the forward pass is blocks (forward.h). Knows tensors; refuses to know sessions and sampling. */
#ifndef HN_MODEL_H
#define HN_MODEL_H

#include "gguf/pack_file.h"
#include "model/family.h"
#include "text/text.h"

#include <pthread.h>

enum { HN_BOUND_NOT = 0, HN_BOUND_VECTOR, HN_BOUND_MATRIX, HN_BOUND_EXPERTS, HN_BOUND_UNUSED, HN_BOUND_COPIED };

struct hone_model {
    hn_gguf *file;
    hn_arena *arena;
    const hn_family *arch; /* NULL: opened for its vocabulary only */
    hn_hparams hp;
    hn_layer_plan *plan;                           /* [n_layer] */
    hn_layer *layers;                              /* [n_layer] */
    const float *rope_factors, *rope_factors_long; /* [n_rot/2] or NULL */
    const hn_memory_layer *memory;                 /* [n_layer] */
    hn_weight token_embd, output;                  /* output is token_embd when tied; absent where hp.both */
    hn_weight pos_embd;                            /* [n_ctx_train, n_embd], added to the former, or absent */
    hn_weight type_embd;              /* likewise, the same row for every position: texts are of the first kind; or
                                       * what the low one of two stacks begins with */
    hn_weight cls, cls_out, dense[2]; /* of pooled rows: tanh(cls·x), then scores; layers one after the other */
    const float *cls_norm;            /* between both of them, GELU for tanh (ModernBERT); NULL: there is none */
    const float *output_norm, *output_norm_b, *token_embd_norm, *token_embd_norm_b; /* the last two: RWKV, encoders */
    /* rows of each token and layer: what the file has of them, [n_vocab, n_layer·n_ple]; what is made of the stream at
     * the beginning, [n_layer·n_ple, n_embd], and its norm, [n_ple]; or absent */
    hn_weight ple_embd, ple_model_proj;
    const float *ple_norm;
    hn_weight altup_proj[HN_MAX_STREAM - 1], altup_unembd[HN_MAX_STREAM - 1]; /* [n_embd, n_embd] each, or absent */
    hn_hyper hyper;           /* of a wide stream at its end, without inject; */
    hn_weight ngrams;         /* the table of n-grams; or absent */
    int32_t n_filling;        /* the layers after so many look at no other row, and keep nothing of a sequence */
    const hn_weight **weight; /* [n_weight] by id */
    int32_t n_weight;
    uint8_t *bound;                    /* [tensors] the kind of field that took it */
    hn_packed *packed;                 /* the side file in use, or NULL */
    const hn_packed_entry **packed_of; /* [tensors] what it has of each, NULL: nothing; or NULL */
    char *packed_note;                 /* why there is one, or none */
    bool packed_compared;              /* with all data of the model, as their stamps differ */
    bool packed_ignored;               /* there is one, but it is not used */
    char *path, *name, *pre;
    char *filed_arch; /* what the file calls the family, or ""; arch may be another's that it is by its formula */
    const char *ignored_keys; /* "key = value, …" of those left out by request, or "" */
    const char *formula_note; /* what of the metadata is not done as a reader of it may expect, or "" */
    const char *type_name;
    bool has_tokenizer;
    uint64_t n_params, n_bytes, bytes_per_token; /* n_bytes: of packed tensors, what they take there */
    uint64_t again_bytes;  /* of bytes_per_token, those of layers that run again: they are in memory once */
    uint64_t packed_bytes; /* of n_bytes, those in the side file */
    /* the tokenizer is built at first use: opening a model needs no vocabulary */
    pthread_mutex_t vocab_mu;
    hn_vocab *vocab;             /* guarded by vocab_mu until set, then immutable */
    hone_error vocab_err;        /* guarded by vocab_mu */
    uint64_t fingerprint;        /* of the directory, 0 until asked for; guarded by vocab_mu */
    bool vocab_tried;            /* guarded by vocab_mu */
    pthread_mutex_t identity_mu; /* held while all is read: */
    hn_identity identity;        /* guarded by identity_mu */
    bool has_identity;           /* guarded by identity_mu */
};

/* dialect.c: opens a file and says it in the words this room reads, whoever wrote it. Errors of hn_gguf_open. */
hone_status hn_model_file_open(hn_gguf **out, const char *path, hone_error *err);
/* The second half of it, of a file just opened. */
hone_status hn_dialect(hn_gguf *g, hone_error *err);
/* An adapter's file names its base as the base's own file does, whoever wrote that: is arch a name of that family, and
 * what is a tensor of arch called here? */
enum { HN_DIALECT_NAME = 128 };
bool hn_dialect_same_arch(hone_str arch, const char *family);
hone_str hn_dialect_tensor(char buf[HN_DIALECT_NAME], hone_str arch, hone_str tensor);
/* Is a tensor of this name for images or sound, or of a draft that stands apart? Text does without. */
bool hn_tensor_of_other_senses(hone_str name);

/* hone_model_open on a file of hn_model_file_open, which it takes, also on failure. */
hone_status hn_model_from_gguf(hone_model **out, hn_gguf *file, const hone_model_params *params, hone_error *err);

/* A model of keys alone, without tensors: its numbers, its layers' plans and what they keep of a sequence, for what is
 * planned before it is there. Takes keys, also on failure. n_vocab: what the embedding's rows would say. Errors as of a
 * file with these keys. */
hone_status hn_model_from_keys(hone_model **out, hn_gguf *keys, int32_t n_vocab, hone_error *err);

/* The tokenizer, built at the first call. HONE_E_UNSUPPORTED: the file has none. */
hone_status hn_model_vocab(const hone_model *m, const hn_vocab **out, hone_error *err);

/* weights.c: numbers the matrices, token embedding first, then layer by layer, and lists them; when all are bound. */
hone_status hn_number_weights(hone_model *m, hone_error *err);
/* Calls fn for every matrix of m's layers and head that an adapter can change, in ascending ids; il −1: the head. */
typedef void hn_weight_fn(void *arg, const hn_weight *w, int32_t il);
void hn_each_weight(const hone_model *m, hn_weight_fn *fn, void *arg);
/* Whether w is tensor t or rows of it; *first: which. */
bool hn_weight_is_of(const hn_weight *w, const hn_gguf_tensor *t, int64_t *first);
/* The slot whose tensor fills that field of layer il in this file; *row: where it begins among its rows, or values, as
 * one tensor may fill several. NULL: none does. bind.c */
const hn_slot *hn_bound_slot(const hone_model *m, int32_t il, size_t field, int64_t *row);
/* What a backend is given of the model for sessions of n_ctx positions; borrowed from it. */
hn_upload hn_model_upload(const hone_model *m, int32_t n_ctx);

/* memory_plan.c: what each layer keeps of a sequence, into m->memory; when hparams are known. */
hone_status hn_model_plan_memory(hone_model *m, hone_error *err);

/* The hashes that name the model: what is kept of its file, else computed at the first call, by reading all of it. */
hone_status hn_model_identity(const hone_model *m, hn_identity *out, const hone_progress *pr, hone_error *err);

/* Before binding: finds the side file that p asks for and, if it belongs to the model and its numbers are proven
 * (packed_find.c), sets packed and packed_of; says what happened in packed_note. Fails for want of memory, when
 * interrupted, or when a file asked for by name cannot be used. */
hone_status hn_model_find_packed(hone_model *m, const hone_model_params *p, hone_error *err);

/* Has any layer a state? */
static inline bool hn_has_state(const hone_model *m)
{
    for (int32_t il = 0; il < m->hp.n_layer; il++)
        if (hn_plan_has_state(&m->plan[il])) return true;
    return false;
}

/* Does any layer turn its queries? */
static inline bool hn_turns(const hone_model *m)
{
    for (int32_t il = 0; il < m->hp.n_layer; il++)
        if (m->plan[il].rope >= 0) return true;
    return false;
}

/* Does any layer keep positions? Else what a sequence is does not grow with it. */
static inline bool hn_has_positions(const hone_model *m)
{
    for (int32_t il = 0; il < m->hp.n_layer; il++)
        if (hn_plan_has_positions(&m->plan[il])) return true;
    return false;
}
/* Floats of the states of a sequence. */
static inline int64_t hn_all_state_floats(const hone_model *m)
{
    int64_t n = 0;
    for (int32_t il = 0; il < m->hp.n_layer; il++) n += m->memory[il].state_floats + m->memory[il].conv_floats;
    return n;
}

/* Floats that a layer with n-grams keeps for them: the rows between the first tap and the last, and ids. */
static inline int64_t hn_ngram_floats(const hn_hparams *hp)
{
    const hn_ngram_numbers *n = &hp->ngram;
    return (int64_t)(n->taps - 1) * n->n_gram * hp->n_hyper * hp->n_embd + n->n_gram - 1;
}

enum { HN_RWKV_STATE_VECTORS = 2 };
#define HN_RWKV_GROUP_EPS 64e-5f /* of the norm of each head's output; not in the files */
static inline int64_t hn_state_floats(const hn_hparams *hp)
{
    return (int64_t)hp->n_embd * (HN_RWKV_STATE_VECTORS + hp->head_dim);
}

#endif
