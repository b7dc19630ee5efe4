/* model: weights bound to fields, every shape checked once. One arch_*.c per family;
 * its forward pass reads like the paper and calls only backend operations. Knows
 * tensors and graphs; refuses to know sessions and sampling. */
#ifndef HN_MODEL_H
#define HN_MODEL_H

#include "backend/backend.h"
#include "gguf/pack_file.h"
#include "text/text.h"

#include <pthread.h>

/* Policy limits on what a file may claim. */
enum { HN_MAX_LAYER = 1024, HN_MAX_HEAD = 4096, HN_MAX_EMBD = 1 << 20, HN_MAX_FF = 1 << 22,
       HN_MAX_VOCAB = 1 << 22, HN_MAX_CTX = 1 << 26 };

typedef struct hn_hparams {
    int32_t n_vocab, n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff, n_ctx_train, n_rot;
    float rms_eps;
    bool rope_neox;
    float rope_mscale;      /* cos and sin are multiplied by it (YaRN) */
    double *rope_freq;      /* [n_rot/2] angle per position, all scaling applied */
} hn_hparams;

typedef struct hn_layer {
    const float *attn_norm, *ffn_norm;     /* [n_embd] */
    const float *attn_q_norm, *attn_k_norm; /* [head_dim] or NULL */
    hn_weight attn_q, attn_k, attn_v, attn_output;
    hn_weight ffn_gate, ffn_up, ffn_down;
} hn_layer;

/* What a forward pass works on; sized for n_tok rows when the session is made. */
typedef struct hn_scratch {
    hn_act act, ff;  /* what attention's and the block's products take; what ffn_down takes */
    float *x, *h, *q, *k, *v, *up, *rope;
} hn_scratch;

typedef struct hn_forward {
    hn_backend *be;
    hn_scratch *s;
    const hn_kv *kv;         /* [n_layer] */
    const hn_row *rows;      /* [n_tok] */
    int32_t n_tok;
    const int32_t *want;     /* [n_want] rows whose logits are wanted */
    int32_t n_want;
    float *logits;           /* host, [n_want, n_vocab] */
    bool (*abort_fn)(void *); /* asked before each layer; NULL: never */
    void *abort_arg;
} hn_forward;

typedef struct hn_arch {
    const char *name;
    hone_status (*bind)(hone_model *m, hone_error *err);
    bool (*forward)(const hone_model *m, const hn_forward *f); /* false: aborted */
} hn_arch;

enum { HN_BOUND_NOT = 0, HN_BOUND_VECTOR, HN_BOUND_MATRIX };

extern const hn_arch hn_arch_llama, hn_arch_qwen2, hn_arch_qwen3;

struct hone_model {
    hn_gguf *file;
    hn_arena *arena;
    const hn_arch *arch;
    hn_hparams hp;
    hn_layer *layers;                /* [n_layer] */
    hn_weight token_embd, output;    /* output is token_embd when tied */
    const float *output_norm;
    uint8_t *bound;                  /* [tensors] the kind of field that took it */
    hn_packed *packed;               /* the side file in use, or NULL */
    const hn_packed_entry **packed_of; /* [tensors] what it has of each, NULL: nothing; or NULL */
    char *packed_note;               /* why there is one, or none */
    bool packed_compared;            /* with all data of the model, as their stamps differ */
    bool packed_ignored;             /* there is one, but it is not used */
    char *path, *name, *pre;
    const char *type_name;
    bool has_tokenizer;
    uint64_t n_params, n_bytes, bytes_per_token; /* n_bytes: of packed tensors, what they take there */
    uint64_t packed_bytes;           /* of n_bytes, those in the side file */
    /* the tokenizer is built at first use: opening a model needs no vocabulary */
    pthread_mutex_t vocab_mu;
    hn_vocab *vocab;                 /* guarded by vocab_mu until set, then immutable */
    hone_error vocab_err;            /* guarded by vocab_mu */
    uint64_t fingerprint;            /* of the directory, 0 until asked for; guarded by vocab_mu */
    bool vocab_tried;                /* guarded by vocab_mu */
};

/* hone_model_open on an open file, which it takes, also on failure. */
hone_status hn_model_from_gguf(hone_model **out, hn_gguf *file, const hone_model_params *params, hone_error *err);

/* The tokenizer, built at the first call. HONE_E_UNSUPPORTED: the file has none. */
hone_status hn_model_vocab(const hone_model *m, const hn_vocab **out, hone_error *err);

/* Before binding: finds the side file that p asks for and, if it belongs to the model, sets packed and
 * packed_of; says what happened in packed_note. Fails for want of memory, when interrupted, or
 * when a file asked for by name cannot be used. */
hone_status hn_model_find_packed(hone_model *m, const hone_model_params *p, hone_error *err);

/* ---- binding, for arch_*.c -------------------------------------------------------------------- */

/* "{arch}.{suffix}" into key[128]. */
const char *hn_arch_key(const hone_model *m, char key[128], const char *suffix);
/* W [n_out, n_in]: found, of a type that can be a weight, exactly of that shape. optional: absent is fine. */
hone_status hn_bind_matrix(hone_model *m, hn_weight *out, const char *name, int64_t n_in, int64_t n_out, bool optional, hone_error *err);
/* f32 vector [n]; F16 and BF16 are widened into the arena. */
hone_status hn_bind_vector(hone_model *m, const float **out, const char *name, int64_t n, bool optional, hone_error *err);

#endif
