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
    int32_t n_window;       /* the model was trained to look back so far; here it sees everything. 0: no window */
    float rms_eps;
    bool rope_neox;
    float rope_mscale;      /* cos and sin are multiplied by it (YaRN) */
    double *rope_freq;      /* [n_rot/2] angle per position, all scaling applied */
    /* recurrent models: a state instead of positions; n_head heads of head_dim channels */
    bool recurrent;
    float ln_eps;
    int32_t rank_decay, rank_iclr, rank_value, rank_gate; /* RWKV-7 */
    int32_t n_extra, n_decay, rescale_every;              /* RWKV-6: time_mix_extra_dim, time_decay_extra_dim; 0: never */
} hn_hparams;

typedef struct hn_layer {
    const float *attn_norm, *ffn_norm;     /* [n_embd] */
    const float *attn_q_norm, *attn_k_norm; /* [head_dim] or NULL */
    hn_weight attn_q, attn_k, attn_v, attn_output;
    hn_weight ffn_gate, ffn_up, ffn_down;
} hn_layer;

enum { HN_RWKV_LERPS = 6 };
/* RWKV-6 and RWKV-7; what one of them lacks is empty there. */
typedef struct hn_rwkv_layer {
    const float *attn_norm, *attn_norm_b, *attn_norm_2, *attn_norm_2_b; /* [n_embd], like all vectors here */
    const float *lerp[HN_RWKV_LERPS], *channel_lerp[2];
    const float *ln, *ln_b;                            /* of each head's output */
    const float *k_k, *k_a, *r_k;                      /* RWKV-7 */
    const float *lerp_x, *first;                       /* RWKV-6 */
    hn_weight receptance, key, value, gate, output;    /* [n_embd, n_embd] */
    hn_weight w1, w2, a1, a2, v1, v2, g1, g2;          /* low-rank pairs; w0, a0, v0 and RWKV-6's decay are biases of w2, a2, v2 */
    hn_weight mix1[5], mix2[5];                        /* RWKV-6: low-rank pairs of the five lerps */
    hn_weight channel_key, channel_value, channel_receptance;
} hn_rwkv_layer;

/* What a forward pass works on; sized for n_tok rows when the session is made. */
typedef struct hn_scratch {
    hn_act act, ff;  /* what attention's and the block's products take; what ffn_down takes */
    float *x, *h, *q, *k, *v, *up, *rope;
    /* RWKV */
    hn_act shift[HN_MAX_SHIFT], low[5]; /* token-shifted inputs; activations of low rank */
    float *r, *w, *a, *v_mix, *g, *v_first;
} hn_scratch;

typedef struct hn_forward {
    hn_backend *be;
    hn_scratch *s;
    const hn_kv *kv;         /* [n_layer] or NULL */
    const hn_state *state;   /* [n_layer] or NULL */
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
    hone_status (*hparams)(hone_model *m, hone_error *err);
    hone_status (*bind)(hone_model *m, hone_error *err);
    bool (*forward)(const hone_model *m, const hn_forward *f); /* false: aborted */
    /* recurrent models: the two halves of a layer over a whole batch, for who measures them alone */
    void (*time_mix)(const hone_model *m, const hn_forward *f, int32_t il);
    void (*channel_mix)(const hone_model *m, const hn_forward *f, int32_t il);
} hn_arch;

enum { HN_BOUND_NOT = 0, HN_BOUND_VECTOR, HN_BOUND_MATRIX, HN_BOUND_UNUSED };

extern const hn_arch hn_arch_llama, hn_arch_qwen2, hn_arch_qwen3, hn_arch_rwkv6, hn_arch_rwkv7;

struct hone_model {
    hn_gguf *file;
    hn_arena *arena;
    const hn_arch *arch;
    hn_hparams hp;
    hn_layer *layers;                /* [n_layer]; NULL: */
    hn_rwkv_layer *rwkv;             /* [n_layer] */
    hn_weight token_embd, output;    /* output is token_embd when tied */
    const float *output_norm, *output_norm_b, *token_embd_norm, *token_embd_norm_b; /* the last three: RWKV */
    uint8_t *bound;                  /* [tensors] the kind of field that took it */
    hn_packed *packed;               /* the side file in use, or NULL */
    const hn_packed_entry **packed_of; /* [tensors] what it has of each, NULL: nothing; or NULL */
    char *packed_note;               /* why there is one, or none */
    bool packed_compared;            /* with all data of the model, as their stamps differ */
    bool packed_ignored;             /* there is one, but it is not used */
    char *path, *name, *pre;
    const char *ignored_keys;        /* "key = value, …" of those left out by request, or "" */
    const char *formula_note;        /* what of the metadata is not done as a reader of it may expect, or "" */
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
    pthread_mutex_t identity_mu;     /* held while all is read: */
    hn_identity identity;            /* guarded by identity_mu */
    bool has_identity;               /* guarded by identity_mu */
};

/* hone_model_open on an open file, which it takes, also on failure. */
hone_status hn_model_from_gguf(hone_model **out, hn_gguf *file, const hone_model_params *params, hone_error *err);

/* The tokenizer, built at the first call. HONE_E_UNSUPPORTED: the file has none. */
hone_status hn_model_vocab(const hone_model *m, const hn_vocab **out, hone_error *err);

/* The hashes that name the model: what is kept of its file, else computed at the first call, by reading all of it. */
hone_status hn_model_identity(const hone_model *m, hn_identity *out, const hone_progress *pr, hone_error *err);

/* Before binding: finds the side file that p asks for and, if it belongs to the model and its numbers are proven
 * (packed_find.c), sets packed and packed_of; says what happened in packed_note. Fails for want of memory, when
 * interrupted, or when a file asked for by name cannot be used. */
hone_status hn_model_find_packed(hone_model *m, const hone_model_params *p, hone_error *err);

/* ---- binding, for arch_*.c -------------------------------------------------------------------- */

/* "{arch}.{suffix}" into key[128]. */
const char *hn_arch_key(const hone_model *m, char key[128], const char *suffix);
/* W [n_out, n_in]: found, of a type that can be a weight, exactly of that shape. optional: absent is fine. */
hone_status hn_bind_matrix(hone_model *m, hn_weight *out, const char *name, int64_t n_in, int64_t n_out, bool optional, hone_error *err);
/* f32 vector [n]; F16 and BF16 are widened into the arena. */
hone_status hn_bind_vector(hone_model *m, const float **out, const char *name, int64_t n, bool optional, hone_error *err);
/* n values in rows of ne0, whatever dimensions the rows are in. */
hone_status hn_bind_values(hone_model *m, const float **out, const char *name, int64_t ne0, int64_t n, bool optional, hone_error *err);
/* The same for a matrix [n_out, n_in]. */
hone_status hn_bind_rows(hone_model *m, hn_weight *out, const char *name, int64_t n_in, int64_t n_out, hone_error *err);
/* A tensor that is there for no use. */
void hn_bind_unused(hone_model *m, const char *name);
/* Rows [first, first + n_out) of a matrix. */
hn_weight hn_rows_of(const hn_weight *w, int64_t first, int64_t n_out);

/* ---- metadata, for arch_*.c --------------------------------------------------------------------- */

/* An integer key in [lo, hi]; absent: def, or an error if def < 0. */
hone_status hn_get_int(const hone_model *m, const char *suffix, int64_t lo, int64_t hi, int64_t def, int32_t *out, hone_error *err);
/* A real key in (lo, hi]; absent: def, or an error if def is NaN. */
hone_status hn_get_real(const hone_model *m, const char *suffix, double lo, double hi, double def, float *out, hone_error *err);
/* keys.c: refuses metadata below the family's name that would ask for another formula, or may, but for the keys in
 * `ignore` ("a,b"; NULL: HONE_IGNORE_KEYS), which it notes. Call it when hparams are known. HONE_E_UNSUPPORTED. */
hone_status hn_check_keys(hone_model *m, const char *ignore, hone_error *err);
/* The same for keys of the tokenizer that change what text becomes, where hone's of this kind does not. */
hone_status hn_check_tokenizer_keys(hone_model *m, const char *ignore, hone_error *err);
/* hparams of models with attention; and their angles, which may be a tensor. */
hone_status hn_attention_hparams(hone_model *m, hone_error *err);
hone_status hn_bind_rope(hone_model *m, hone_error *err);

/* ---- RWKV: what its versions share --------------------------------------------------------------- */

hone_status hn_rwkv_hparams(hone_model *m, hone_error *err);
/* Embedding, head and their norms. */
hone_status hn_rwkv_bind_ends(hone_model *m, hone_error *err);
/* blk.IL.WHAT and .WHAT.bias */
hone_status hn_rwkv_norm(hone_model *m, const float **w, const float **b, int32_t il, const char *what, hone_error *err);
hone_status hn_rwkv_vector(hone_model *m, const float **v, int32_t il, const char *what, bool optional, hone_error *err);
hone_status hn_rwkv_matrix(hone_model *m, hn_weight *w, int32_t il, const char *what, int64_t n_in, int64_t n_out, hone_error *err);
/* time_mix_lerp_fused, its n slices in the order of `letters`, or a tensor for each. */
hone_status hn_rwkv_lerps(hone_model *m, const float **lerp, int32_t il, const char *letters, hone_error *err);
/* What a layer has in both: norms, receptance, key, value, output; channel mix's key and value. */
hone_status hn_rwkv_bind_layer(hone_model *m, int32_t il, hone_error *err);
/* embed and its norm; the last norm and the head. */
void hn_rwkv_begin(const hone_model *m, const hn_forward *f);
void hn_rwkv_end(const hone_model *m, const hn_forward *f);
enum { HN_RWKV_STATE_VECTORS = 2 };
#define HN_RWKV_GROUP_EPS 64e-5f /* of the norm of each head's output; not in the files */
static inline int64_t hn_state_floats(const hn_hparams *hp) { return (int64_t)hp->n_embd * (HN_RWKV_STATE_VECTORS + hp->head_dim); }

#endif
