/* family: a model family as data. Owns the two things that tell families apart: a table of slots (which tensors there
 * are, what they are called, of which shape, for which field) and a plan per layer (what the forward pass does there).
 * Refuses to know files, backends and arithmetic: bind.c, forward.c and everybody else who needs a family's tensors
 * read these tables (families.c). */
#ifndef HN_FAMILY_H
#define HN_FAMILY_H

#include "backend/backend.h"

/* Policy limits on what a file may claim. */
enum {
    HN_MAX_LAYER = 1024,
    HN_MAX_HEAD = 4096,
    HN_MAX_EMBD = 1 << 20,
    HN_MAX_FF = 1 << 22,
    HN_MAX_VOCAB = 1 << 22,
    HN_MAX_CTX = 1 << 26,
    HN_MAX_HYPER = 64 /* parts of a wide stream */
};

/* ---- numbers of a model -------------------------------------------------------------------------- */

/* Tables of angles: of all layers, or of those that see everything; of windowed ones, where theirs are others; and what
 * takes the first one's place in sessions of more positions than the model was trained for at first. */
enum { HN_ROPE_ALL = 0, HN_ROPE_WINDOW, HN_ROPE_LONG, HN_ROPES };
typedef struct hn_rope {
    double *freq; /* [n_rot/2] angle per position, all scaling applied */
    int32_t n_rot;
    float mscale; /* cos and sin are multiplied by it (YaRN) */
} hn_rope;

/* Mixtures of experts; n_expert 0: none. */
typedef struct hn_moe_numbers {
    int32_t n_expert, n_used, n_ff, n_ff_shared; /* n_ff: of an expert */
    const int32_t *used_of, *ff_of;              /* [n_layer] or NULL: as said; n_used and n_ff are the most of them */
    int32_t n_latent;                            /* what experts take and give is so wide; 0: as the stream */
    int32_t n_group, n_group_used;
    bool best_alone;        /* what a group scores is what its best expert does */
    bool average;           /* where there is a shared expert, half of what it and the others give together */
    int32_t n_lead, period; /* layers before the first that has experts; then each last one of so many */
    const bool *routed;     /* [n_layer] or NULL: of those, the ones that have */
    hn_gating gating;
    bool norm;
    float scale; /* of weights; 0: none */
} hn_moe_numbers;

/* How the rows of a text become one vector: {arch}.pooling_type's numbers. */
typedef enum hn_pooling {
    HN_POOL_UNSAID = -1,
    HN_POOL_NONE = 0, /* they stay what they are */
    HN_POOL_MEAN,
    HN_POOL_FIRST, /* "cls" */
    HN_POOL_LAST,
    HN_POOL_RANK, /* a classifier's scores of one of them */
    HN_POOL_KINDS
} hn_pooling;

/* What chooses positions (hn_block_index); block 0: nothing does. */
typedef struct hn_index_numbers {
    int32_t n_head, d, block, n_best; /* n_best: blocks */
    bool neox;                        /* heads of it turn in halves */
    const bool *own;                  /* [n_layer] or NULL: layers that have one; others see what the last one chose */
} hn_index_numbers;

/* n-grams of ids, each with rows of a table (hn_ngram); n_gram 0: there are none. */
typedef struct hn_ngram_numbers {
    int32_t layer, n_gram, per_gram, d, taps, eos; /* d: of a row */
    int64_t n_row;                                 /* of the table */
    const uint64_t *mul, *size, *at;               /* [n_gram], [heads], [heads] */
} hn_ngram_numbers;
static inline int64_t hn_ngram_heads(const hn_ngram_numbers *n)
{
    return n->n_gram ? (int64_t)(n->n_gram - 1) * n->per_gram : 0;
}

typedef struct hn_hparams {
    int32_t n_vocab, n_embd, n_layer, n_head, n_head_kv, head_dim, n_ff, n_ctx_train, n_rot;
    int32_t n_factor;        /* of angles that files have factors of; 0: those of all layers */
    int32_t n_nextn;         /* blocks of the file behind the layers, which draft further tokens: they are not run */
    int32_t n_window;        /* the model was trained to look back so far; here it sees everything. 0: no such window */
    float rms_eps, post_eps; /* post_eps: of norms behind halves; 0: as all */
    const struct hn_switches *is; /* the family's; NULL: it is no transformer */
    bool parallel;                /* both halves begin with the same x */
    bool both;                    /* attention looks both ways: there is no next token */
    bool rope_neox, layer_norm;   /* LayerNorm instead of RMSNorm */
    hn_glu act;                   /* of gates */
    hn_rope rope[HN_ROPES];
    int32_t n_ctx_long;         /* sessions of more positions take HN_ROPE_LONG; 0: there is none */
    float emb_scale;            /* of token embeddings; 1: none */
    float res_mul;              /* of what a half gives, before it is added; 0: none */
    float logit_mul, logit_cap; /* of logits; 0: none */
    float attn_scale, attn_cap; /* of scores; 0: 1/√d, none */
    float value_mul;            /* of values; 0: none */
    float qkv_clip;             /* queries, keys and values are kept within ± it; 0: they are not */
    hn_temperature temperature; /* of queries */
    const float *fade;          /* [n_head] what scores lose with every position between query and key; NULL: nothing */
    /* latent attention: ranks (of queries 0: they are not compressed), and of each head what does not turn, what does,
     * and its value */
    int32_t rank_q, rank_kv, d_nope, d_rope, d_value;
    int32_t window;        /* windowed layers see so many positions, their own too; 0: no such layers */
    const bool *windowed;  /* [n_layer] or NULL: by */
    int32_t window_period; /* the last of so many layers sees everything */
    float window_base;     /* of the angles of windowed layers, which are scaled as all others; 0: as all others */
    hn_moe_numbers moe;
    int32_t head_dim_window; /* windowed layers: the width of their heads; 0: as all others */
    int32_t head_dim_v;      /* of values; 0: as of keys */
    int32_t n_own;           /* layers from there on have no keys of their own; 0: all do */
    int32_t n_ple;           /* a row of its own for each token and layer, so wide; 0: none */
    int32_t n_stream, active,
        rank_laurel;       /* residual streams (0: one), which of them is computed; of a pair beside it */
    const float *sparsity; /* [n_layer] or NULL: gates keep what exceeds their mean by so many deviations;
                                            * −inf: all */
    /* layers that are not all alike: [n_layer] or NULL; n_head_kv and n_ff are then the most of them */
    const int32_t *kv_of, *ff_of;
    const float *limit_of, *limit_exp_of; /* of gates, likewise, of experts: [n_layer] or NULL */
    const int32_t *heads_of;              /* of queries: [n_layer] or NULL; n_head is then the most of them */
    const bool *linear;                   /* [n_layer] or NULL: layers with heads of queries and none of keys */
    /* embeddings (hparams_pool.c): how rows become one, an hn_pooling; scores of a classifier; widths of the layers
     * behind that, one after the other, 0: there is none; kinds of text of which token_types has a row */
    int32_t pooling, n_class, n_dense[2], n_type;
    bool rank_mean; /* a classifier judges the mean of all rows, not one of them */
    const bool *recurs;
    bool nope;                   /* nothing turns, whatever the family does */
    const bool *turns;           /* [n_layer] or NULL: layers that do; all */
    bool gate_heads;             /* gates of attention are of whole heads */
    int32_t n_hyper, rank_hyper; /* parts of a wide stream, 0: it is not wide; of the pair that mixes them */
    hn_index_numbers index;
    hn_ngram_numbers ngram;
    /* Layers that run several times: which block of the file each is, [n_layer] or NULL: the same number; how many the
     * file has; behind each so many layers but the last, the stream is normed as at the end, 0: it is not. Two stacks
     * of n_stack layers that take turns, n_low passes of the first before each of the second; 0: one. */
    const int32_t *block_of;
    int32_t n_block, n_pass, n_stack, n_low;
    const hn_xielu *xielu; /* [n_layer] or NULL: the map of an MLP */
    /* recurrent layers: taps of the convolution; channels of all heads; states of a channel, or keys and values of a
     * head; heads; groups, or heads of keys */
    int32_t taps, ssm_inner, ssm_state, ssm_head, ssm_group;
    int32_t ssm_rank; /* Mamba: of steps, */
    bool ssm_normed;  /* which are normed, as is what goes in and out of the state, without weights */
    float ln_eps;     /* RWKV: n_head heads of head_dim channels, ranks of low-rank pairs */
    int32_t rank_decay, rank_iclr, rank_value, rank_gate, rank_mix, rescale_every;
} hn_hparams;

/* The block of the file that layer il is; −1, outside layers, stays. */
static inline int32_t hn_block_of(const hn_hparams *hp, int32_t il)
{
    return il >= 0 && il < hp->n_layer && hp->block_of ? hp->block_of[il] : il;
}
/* The first layer that is that block; −1: none is. */
static inline int32_t hn_layer_of(const hn_hparams *hp, int32_t block)
{
    int32_t il = 0;
    if (!hp->block_of) return block < hp->n_layer ? block : -1;
    while (il < hp->n_layer && hp->block_of[il] != block) il++;
    return il < hp->n_layer ? il : -1;
}
/* Is an earlier layer the same block? Then it has the same tensors. */
static inline bool hn_is_again(const hn_hparams *hp, int32_t il)
{
    return hp->block_of && hn_layer_of(hp, hp->block_of[il]) < il;
}

/* ---- the plan: what one layer does ------------------------------------------------------------------ */

typedef enum hn_mixer {
    HN_MIXER_ATTN = 0,
    HN_MIXER_MLA,
    HN_MIXER_RWKV6,
    HN_MIXER_RWKV7,
    HN_MIXER_NONE,
    HN_MIXER_CONV, /* LFM2's gated convolution */
    HN_MIXER_MAMBA2,
    HN_MIXER_GDN,         /* the gated delta rule */
    HN_MIXER_ATTN_MAMBA2, /* both, of the same norm */
    HN_MIXER_KDA,         /* Kimi's delta rule: a decay for each key */
    HN_MIXER_LINEAR,      /* one matrix in place of attention */
    HN_MIXER_MAMBA,
    HN_MIXER_KINDS
} hn_mixer;
typedef enum hn_ffn {
    HN_FFN_GLU = 0,
    HN_FFN_MLP,
    HN_FFN_MOE,
    HN_FFN_CHANNEL_MIX,
    HN_FFN_NONE,
    HN_FFN_GLU_MOE, /* both, each with norms of its own */
    HN_FFN_KINDS
} hn_ffn;
#define HN_WITH_EXPERTS (HN_PLAN_BIT(HN_FFN_MOE) | HN_PLAN_BIT(HN_FFN_GLU_MOE))
#define HN_PLAN_BIT(kind) ((uint32_t)1 << (kind)) /* of a mixer, or of a feed-forward part, in sets of them */
#define HN_WITH_ATTN (HN_PLAN_BIT(HN_MIXER_ATTN) | HN_PLAN_BIT(HN_MIXER_ATTN_MAMBA2))
#define HN_WITH_POSITIONS (HN_WITH_ATTN | HN_PLAN_BIT(HN_MIXER_MLA))
#define HN_WITH_MIXER (HN_PLAN_BIT(HN_MIXER_KINDS) - 1 - HN_PLAN_BIT(HN_MIXER_NONE))
#define HN_WITH_MAMBA2 (HN_PLAN_BIT(HN_MIXER_MAMBA2) | HN_PLAN_BIT(HN_MIXER_ATTN_MAMBA2))

/* Where gates of what attention gives come from. */
typedef enum HN_SMALL hn_out_gate {
    HN_OUT_GATE_NONE = 0,
    HN_OUT_GATE_OF_Q, /* attn_q has them, too */
    HN_OUT_GATE_OWN,  /* attn_gate, */
    HN_OUT_GATE_HEADS /* which has one for each head */
} hn_out_gate;

typedef struct hn_layer_plan {
    hn_mixer mixer;
    hn_ffn ffn;
    hn_glu act;            /* of the gate */
    hn_map map;            /* of an MLP, or in place of act, */
    const hn_xielu *xielu; /* or this one */
    int8_t rope;           /* which table, −1: none */
    hn_head_norm qk_norm;
    bool qk_norm_after; /* the rotation */
    bool warm;          /* queries grow with their positions */
    bool early;         /* the router sees what the layer begins with */
    bool parallel;      /* both halves begin with the same x */
    hn_out_gate out_gate;
    hn_map gate_map; /* of those; 0: σ */
    bool v_normed;   /* values are, head by head */
    bool no_keys;    /* it has none of its own: it reads those of layer kv_from */
    int32_t kv_from;
    bool index;         /* chooses what queries see */
    int32_t index_from; /* latent attention: the layer that does; its own, or an earlier one */
    bool ngram;         /* the stream takes those before the layer */
    bool sigmoid;       /* of the gated delta rule's gate; else silu */
    bool tiled; /* head j takes the keys of head j mod their number; else heads of the same keys stand together */
    int32_t n_head, n_head_kv, d_k, d_v, n_ff;
    int32_t n_used, n_ff_exp; /* of experts */
    bool both;                /* those behind it too */
    int32_t window; /* positions that a query sees, its own too, the last, or, both ways, in the middle; 0: all */
    int32_t chunk;  /* those of its own run of so many; 0: all */
    int32_t n_ple;  /* a row of the token's own is added at the end; 0: none */
    bool sparse;    /* of the gate what exceeds its mean by `cut` deviations */
    float cut;
    float scale;            /* of scores */
    float limit, limit_exp; /* of gates and what they open, of dense and shared parts, of experts; 0: none */
} hn_layer_plan;

enum { HN_LLAMA4_CHUNK = 8192 }; /* not in its files */

static inline bool hn_plan_has_positions(const hn_layer_plan *p) { return HN_PLAN_BIT(p->mixer) & HN_WITH_POSITIONS; }
static inline bool hn_plan_has_state(const hn_layer_plan *p)
{
    return HN_PLAN_BIT(p->mixer) & ~(HN_WITH_POSITIONS | HN_PLAN_BIT(HN_MIXER_NONE) | HN_PLAN_BIT(HN_MIXER_LINEAR)) ||
           p->mixer == HN_MIXER_ATTN_MAMBA2;
}

/* ---- slots: which tensors a family has --------------------------------------------------------------- */

/* A dimension: one of these, or, below the first, a number. */
typedef enum HN_SMALL hn_dim {
    HN_DIM_NONE = 0,
    HN_DIM_EMBD = 1 << 7,
    HN_DIM_VOCAB,
    HN_DIM_HEAD,  /* of a query or key */
    HN_DIM_HEADS, /* their number */
    HN_DIM_Q,     /* of all heads together */
    HN_DIM_K,
    HN_DIM_V,
    HN_DIM_QKV,
    HN_DIM_O,
    HN_DIM_FF,
    HN_DIM_RANK_Q, /* latent attention */
    HN_DIM_RANK_KV,
    HN_DIM_LATENT, /* rank_kv + d_rope */
    HN_DIM_NOPE,
    HN_DIM_VALUE_HEAD,
    HN_DIM_Q_HEADS, /* n_head·(d_nope + d_rope) */
    HN_DIM_V_HEADS, /* n_head·d_value */
    HN_DIM_FF2,     /* gate and up together */
    HN_DIM_EXPERTS,
    HN_DIM_FF_EXP, /* of one expert */
    HN_DIM_FF2_EXP,
    HN_DIM_MOE_LATENT, /* what experts take, where it is not the stream; */
    HN_DIM_MOE_IN,     /* in any case */
    HN_DIM_FF_SHARED,  /* of the expert that every token asks */
    HN_DIM_CTX,        /* positions that it was trained on */
    HN_DIM_ROT_PAIRS,
    HN_DIM_DECAY, /* ranks */
    HN_DIM_ICLR,
    HN_DIM_VALUE,
    HN_DIM_GATE,
    HN_DIM_MIX,
    HN_DIM_MIX5,
    HN_DIM_Q_GATE, /* queries and gates */
    HN_DIM_E3,     /* three times the stream */
    HN_DIM_TAPS,   /* of recurrent layers */
    HN_DIM_SSM_INNER,
    HN_DIM_SSM_CONV, /* channels that are convolved: those and what goes in and out of the state */
    HN_DIM_SSM_IN,   /* gates, these, a step for each head */
    HN_DIM_SSM_STATE,
    HN_DIM_SSM_RANK, /* Mamba: of steps, and with what goes in and out of the state */
    HN_DIM_SSM_X,
    HN_DIM_SSM_INNER2,
    HN_DIM_SSM_HEADS,
    HN_DIM_SSM_HEADS2,
    HN_DIM_SSM_GROUPS,
    HN_DIM_SSM_GROUP_WIDTH,
    HN_DIM_GDN_CONV, /* queries, keys and values */
    HN_DIM_GDN_IN,   /* and gates */
    HN_DIM_GDN_KEYS,
    HN_DIM_KV_B,      /* n_head·(d_nope + d_value) */
    HN_DIM_KV_HEADS,  /* their number */
    HN_DIM_Q_GATE_KV, /* of all heads: queries and gates, keys, values */
    HN_DIM_PLE,       /* of a layer, of all */
    HN_DIM_PLE_ALL,
    HN_DIM_STREAMS, /* their number, and its square */
    HN_DIM_STREAMS2,
    HN_DIM_LAUREL,
    HN_DIM_TYPES, /* kinds of text */
    HN_DIM_GATES, /* of what attention gives */
    HN_DIM_FF2_SHARED,
    HN_DIM_CLASSES, /* of embeddings: scores, widths behind pooling */
    HN_DIM_DENSE,
    HN_DIM_DENSE2,
    HN_DIM_HYPER, /* parts of a wide stream, all of it, the rank of what mixes them */
    HN_DIM_WIDE,
    HN_DIM_HYPER_RANK,
    HN_DIM_INDEX, /* of a head of an index, of its queries */
    HN_DIM_INDEX_Q,
    HN_DIM_INDEX_HEADS,
    HN_DIM_NGRAM_ROW, /* of n-grams: a row of their table, how many, all rows of a position, taps */
    HN_DIM_NGRAM_ROWS,
    HN_DIM_NGRAM,
    HN_DIM_NGRAM_TAPS
} hn_dim;

typedef enum HN_SMALL hn_slot_kind {
    HN_SLOT_MATRIX = 0,
    HN_SLOT_ROWS,        /* a matrix whose rows may be in any dimensions */
    HN_SLOT_VECTOR,      /* f32, as are the next four */
    HN_SLOT_VALUES,      /* rows in any dimensions */
    HN_SLOT_OVER_ROOT,   /* a vector of n, over √n */
    HN_SLOT_OVER_N,      /* over n */
    HN_SLOT_CHANNELS,    /* a value for each channel, flat or in rows of heads */
    HN_SLOT_TAPS,        /* rows {taps, channels} of a convolution, turned round: [taps][channels] */
    HN_SLOT_EXPERTS,     /* hn_experts: a matrix of each, in one tensor or in one each */
    HN_SLOT_EXPERT_BIAS, /* values of each, of hn_experts bound before */
    HN_SLOT_KV_B         /* k_b and v_b in one, from `field` on: copied (recut.c) */
} hn_slot_kind;

typedef enum HN_SMALL hn_presence {
    HN_NEEDED = 0,
    HN_OPTIONAL,
    HN_TIED,     /* absent: the token embedding serves */
    HN_GOES_WITH /* needed where `with` is there, an error where it is not */
} hn_presence;

/* What a converter does with rows of Hugging Face's tensor on the way to GGUF's. */
typedef enum HN_SMALL hn_turn {
    HN_TURN_NONE = 0,
    HN_TURN_Q, /* of each head, row j·(d/2) + i becomes row 2i + j: rotations of neighbours instead of halves */
    HN_TURN_K,
    HN_TURN_PLUS_ONE /* 1 + w */
} hn_turn;

/* Layers that have the slot. */
typedef enum HN_SMALL hn_layers {
    HN_IN_ALL = 0,
    HN_IN_DENSE,
    HN_IN_MOE,
    HN_IN_FFN, /* with a feed-forward part */
    HN_IN_OWN, /* with keys of their own: of others' tensors nothing is read */
    HN_IN_OWN_WINDOW,
    HN_IN_OWN_GLOBAL, /* that see everything */
    HN_IN_PLE,        /* with rows of the token's own; outside layers, of models that have such */
    HN_IN_NGRAM,      /* likewise of n-grams */
    HN_IN_INDEX       /* with an index */
} hn_layers;
static inline bool hn_in_layer(hn_layers in, const hn_layer_plan *p)
{
    if (!p || in == HN_IN_ALL) return true;
    switch (in) {
    case HN_IN_OWN: return !p->no_keys;
    case HN_IN_OWN_WINDOW: return !p->no_keys && p->window;
    case HN_IN_OWN_GLOBAL: return !p->no_keys && !p->window;
    case HN_IN_PLE: return p->n_ple > 0;
    case HN_IN_NGRAM: return p->ngram;
    case HN_IN_INDEX: return p->index;
    case HN_IN_FFN: return p->ffn != HN_FFN_NONE;
    default: return (in == HN_IN_MOE) == ((HN_PLAN_BIT(p->ffn) & HN_WITH_EXPERTS) != 0);
    }
}

enum { HN_TOGETHER_NOT = 0, HN_TOGETHER_SHARED, HN_TOGETHER_HEAD_NORMS, HN_TOGETHER_END };

/* What few slots have, and those mostly the same: a table of it apart. */
enum { HN_MAX_PART = 6 };
typedef struct hn_slot_rare {
    const char *with, *without; /* bound only where the file has, or has not, that tensor */
    const char *instead;        /* not missed where the file has that tensor */
    uint16_t stride;            /* of fields that parts are for; 0: as wide as what the slot fills */
    hn_dim part[HN_MAX_PART];   /* given: rows of several fields, `stride` apart, so many of each */
    hn_dim deal[HN_MAX_PART];   /* those parts, where they are not the fields' */
    hn_dim dealt; /* rows come in so many groups, with a share of each part: they are copied, each part together */
} hn_slot_rare;

/* There are some 1,500 of them, in each program and library: no member without need, no gaps. */
typedef struct hn_slot {
    const char *name; /* in GGUF; of a layer's, what follows "blk.IL."; EXPERTS without parts: NAME_exps.weight, or of
                       * expert E alone NAME.E.weight */
    const char *hf;   /* Hugging Face's module, of a layer's what follows "model.layers.IL."; NULL: it has none */
    const hn_slot_rare *rare; /* NULL: nothing of it; read by hn_slot_rarely */
    uint16_t field;           /* where in hn_layer, or, outside layers, in hone_model */
    uint16_t mixers;          /* only layers have it whose mixer is in the set; 0: all */
    hn_dim ne[4];
    int8_t from_layer; /* what layers below it have of it serves nobody; transformers' have none */
    hn_slot_kind kind;
    hn_role role;
    hn_cut cut;
    hn_presence when;
    hn_turn turn;
    int8_t together; /* slots of a layer with the same number are all there or none: HN_TOGETHER_… */
    hn_layers layers;
} hn_slot;
_Static_assert(HN_MIXER_KINDS <= 16 && HN_DIM_NGRAM_TAPS < 256,
               "hn_slot.mixers has a bit for each, a dimension is a byte");
_Static_assert(sizeof(hn_slot) <= 3 * sizeof(void *) + 16, "no gaps");

extern const hn_slot_rare hn_rare_none;
static inline const hn_slot_rare *hn_slot_rarely(const hn_slot *s) { return s->rare ? s->rare : &hn_rare_none; }
static inline bool hn_slot_is_matrix(const hn_slot *s)
{
    return s->kind == HN_SLOT_MATRIX || s->kind == HN_SLOT_ROWS || s->kind == HN_SLOT_EXPERTS;
}
/* The matrices of a layer's experts. */
typedef struct hn_experts {
    hn_weight all;       /* of all, one below the other; absent where each has a tensor of its own */
    const hn_weight *of; /* [n_expert] */
} hn_experts;
/* Has a layer of that plan (NULL: it is none) the slot? */
static inline bool hn_slot_in(const hn_slot *s, const hn_layer_plan *p)
{
    return !p || (hn_in_layer(s->layers, p) && (!s->mixers || s->mixers & HN_PLAN_BIT(p->mixer)));
}
/* What a dimension is in a model, in layers of a plan (NULL: outside layers). */
int64_t hn_dim_value(const hn_hparams *hp, const hn_layer_plan *p, hn_dim d);
static inline size_t hn_slot_stride(const hn_slot *s)
{
    const hn_slot_rare *rare = hn_slot_rarely(s);
    return rare->stride                                                   ? rare->stride
           : s->kind == HN_SLOT_EXPERTS || s->kind == HN_SLOT_EXPERT_BIAS ? sizeof(hn_experts)
           : hn_slot_is_matrix(s)                                         ? sizeof(hn_weight)
                                                                          : sizeof(float *);
}

/* ---- families ------------------------------------------------------------------------------------------ */

/* One bit each, for tables that several families share. */
__extension__ typedef unsigned __int128 hn_family_set __attribute__((aligned(8))); /* tables without gaps */
#define HN_FAMILY_BIT(i) ((hn_family_set)1 << (i))
#define HN_LLAMA HN_FAMILY_BIT(0)
#define HN_QWEN2 HN_FAMILY_BIT(1)
#define HN_QWEN3 HN_FAMILY_BIT(2)
#define HN_RWKV6 HN_FAMILY_BIT(3)
#define HN_RWKV7 HN_FAMILY_BIT(4)
#define HN_GEMMA3 HN_FAMILY_BIT(5)
#define HN_GEMMA HN_FAMILY_BIT(6)
#define HN_GEMMA2 HN_FAMILY_BIT(7)
#define HN_MISTRAL3 HN_FAMILY_BIT(8)
#define HN_PHI3 HN_FAMILY_BIT(9)
#define HN_SMOLLM3 HN_FAMILY_BIT(10)
#define HN_OLMO2 HN_FAMILY_BIT(11)
#define HN_EXAONE4 HN_FAMILY_BIT(12)
#define HN_GRANITE HN_FAMILY_BIT(13)
#define HN_GLM4 HN_FAMILY_BIT(14)
#define HN_SEED_OSS HN_FAMILY_BIT(15)
#define HN_HUNYUAN HN_FAMILY_BIT(16)
#define HN_ERNIE45 HN_FAMILY_BIT(17)
#define HN_COMMAND_R HN_FAMILY_BIT(18)
#define HN_COHERE2 HN_FAMILY_BIT(19)
#define HN_DEEPSEEK2 HN_FAMILY_BIT(30)
#define HN_MISTRAL4 HN_FAMILY_BIT(31)
#define HN_STARCODER2 HN_FAMILY_BIT(32)
#define HN_GPTNEOX HN_FAMILY_BIT(33)
#define HN_GPT2 HN_FAMILY_BIT(34)
#define HN_ARCEE HN_FAMILY_BIT(35)
#define HN_GEMMA4 HN_FAMILY_BIT(36)
#define HN_GEMMA3N HN_FAMILY_BIT(37)
#define HN_MAMBA2 HN_FAMILY_BIT(40)
#define HN_MAMBA HN_FAMILY_BIT(75)
#define HN_JAMBA HN_FAMILY_BIT(76)
#define HN_LFM2 HN_FAMILY_BIT(41)
#define HN_LFM2MOE HN_FAMILY_BIT(42)
#define HN_FALCON_H1 HN_FAMILY_BIT(43)
#define HN_NEMOTRON_H HN_FAMILY_BIT(44)
#define HN_NEMOTRON_H_MOE HN_FAMILY_BIT(45)
#define HN_GRANITEHYBRID HN_FAMILY_BIT(46)
#define HN_QWEN35 HN_FAMILY_BIT(47)
#define HN_QWEN35MOE HN_FAMILY_BIT(48)
#define HN_QWEN3NEXT HN_FAMILY_BIT(49)
#define HN_KIMI_LINEAR HN_FAMILY_BIT(50)

#define HN_EXAONE HN_FAMILY_BIT(38)
#define HN_PHI2 HN_FAMILY_BIT(39)
#define HN_STABLELM HN_FAMILY_BIT(54)
#define HN_NEMOTRON HN_FAMILY_BIT(55)
#define HN_CHATGLM HN_FAMILY_BIT(56)
#define HN_STARCODER HN_FAMILY_BIT(57)
#define HN_ORION HN_FAMILY_BIT(58)
#define HN_HUNYUAN_MOE HN_FAMILY_BIT(59)
#define HN_DEEPSEEK HN_FAMILY_BIT(60)
#define HN_BAILINGMOE2 HN_FAMILY_BIT(61)
#define HN_DECI HN_FAMILY_BIT(62)

#define HN_BERT HN_FAMILY_BIT(51)
#define HN_NOMIC_BERT HN_FAMILY_BIT(52)
#define HN_GEMMA_EMBEDDING HN_FAMILY_BIT(53)
#define HN_NOMIC_BERT_MOE HN_FAMILY_BIT(100)
#define HN_JINA_BERT_V3 HN_FAMILY_BIT(101)
#define HN_MODERN_BERT HN_FAMILY_BIT(102)
#define HN_EUROBERT HN_FAMILY_BIT(103)
#define HN_LLAMA_EMBED HN_FAMILY_BIT(104)
#define HN_JINA_BERT_V2 HN_FAMILY_BIT(105)

#define HN_QWEN3MOE HN_FAMILY_BIT(20)
#define HN_QWEN2MOE HN_FAMILY_BIT(21)
#define HN_OLMOE HN_FAMILY_BIT(22)
#define HN_GRANITEMOE HN_FAMILY_BIT(23)
#define HN_DOTS1 HN_FAMILY_BIT(24)
#define HN_ERNIE45MOE HN_FAMILY_BIT(25)
#define HN_GLM4MOE HN_FAMILY_BIT(26)
#define HN_MINIMAX_M2 HN_FAMILY_BIT(27)
#define HN_GPT_OSS HN_FAMILY_BIT(28)
#define HN_LLAMA4 HN_FAMILY_BIT(29)
#define HN_MELLUM HN_FAMILY_BIT(63)
#define HN_EXAONE_MOE HN_FAMILY_BIT(64)
#define HN_AFMOE HN_FAMILY_BIT(65)
#define HN_MAINCODER HN_FAMILY_BIT(66)
#define HN_APERTUS HN_FAMILY_BIT(67)
#define HN_SMALLTHINKER HN_FAMILY_BIT(68)
#define HN_MINICPM3 HN_FAMILY_BIT(69)
#define HN_PHIMOE HN_FAMILY_BIT(70)
#define HN_COHERE2MOE HN_FAMILY_BIT(71)
#define HN_BLOOM HN_FAMILY_BIT(72)
#define HN_MPT HN_FAMILY_BIT(73)
#define HN_REFACT HN_FAMILY_BIT(74)
#define HN_GRANITE_SWA HN_FAMILY_BIT(77)
#define HN_LAGUNA HN_FAMILY_BIT(78)
#define HN_QWEN4EXP HN_FAMILY_BIT(79)
#define HN_STEP35 HN_FAMILY_BIT(80)
#define HN_MUSE_GLIMMER HN_FAMILY_BIT(112)
#define HN_OLMO HN_FAMILY_BIT(113)
#define HN_SPARK2_5 HN_FAMILY_BIT(114)
#define HN_NANBEIGE HN_FAMILY_BIT(115)
#define HN_HRM_TEXT HN_FAMILY_BIT(116)
#define HN_OPENELM HN_FAMILY_BIT(117)
#define HN_DBRX HN_FAMILY_BIT(118)
#define HN_TALKIE HN_FAMILY_BIT(119)
#define HN_PLAMO3 HN_FAMILY_BIT(120)
#define HN_BITNET HN_FAMILY_BIT(121)
#define HN_BITNET158 HN_FAMILY_BIT(122)
#define HN_DEEPSEEK32 HN_FAMILY_BIT(123)
#define HN_GLM_DSA HN_FAMILY_BIT(124)
#define HN_MIMO2 HN_FAMILY_BIT(125)

/* How windowed layers turn. */
typedef enum hn_window_rope {
    HN_WINDOW_ROPE_SAME = 0, /* as all others */
    HN_WINDOW_ROPE_PLAIN,    /* by their own base, or the same, and nothing scaled */
    HN_WINDOW_ROPE_ALONE,    /* as all others; but layers that see everything do not turn */
    HN_WINDOW_ROPE_OWN       /* by their own base and width, or the same; scaled as all others */
} hn_window_rope;

/* Scalars that a family's files may have beyond those of llama. */
enum {
    HN_READS_LOGIT_CAP = 1,   /* final_logit_softcapping, */
    HN_READS_ATTN_CAP = 64,   /* attn_logit_softcapping */
    HN_READS_SCALES = 2,      /* granite: embedding_scale, residual_scale, attention.scale, 1/logit_scale */
    HN_READS_LOGIT_SCALE = 4, /* a factor */
    HN_READS_TEMPERATURE = 8, /* attention.temperature_scale by the context it was trained on at first */
    HN_READS_WINDOW = 16,
    HN_READS_PARALLEL = 32, /* use_parallel_residual, needed */
    HN_READS_LAYERS = 128,  /* numbers of heads and widths that differ between layers, or are 0 */
    HN_READS_GEMMA = 256,  /* gemma3n and 4: layers without keys of their own, rows of each token and layer; of windowed
                               layers the width of heads and of what turns */
    HN_READS_NEXTN = 1024, /* nextn_predict_layers: so many of the last blocks draft, and are not run */
    HN_READS_TURNS = 2048, /* rope.scaling.finetuned, a name of another time: whether anything turns, as without it */
    HN_READS_EITHER_EPS =
        4096, /* attention.layer_norm_rms_epsilon, or, where it is absent, the other's, whichever norm */
    HN_READS_ONE_EXPERT = 8192, /* expert_count = 1, as files say that there is no mixture */
    HN_READS_SECTIONS = 16384,  /* rope.dimension_sections: with them heads turn in halves, else in neighbours */
    HN_READS_HEADS = 32768,     /* a number of heads for each layer, which is 0 or the same */
    HN_READS_CAUSAL = 65536,    /* attention.causal: false: both ways */
    HN_READS_ACT = 131072,      /* hidden_activation: which function gates have, where it is not the family's */
    HN_READS_QUERIES = 262144,  /* heads of queries of each layer, any number; of windowed layers what turns */
    HN_READS_TURNING = 524288,  /* attention.rope_pattern: which layers turn */
    HN_READS_CLIP = 1048576,    /* attention.clamp_kqv */
    HN_READS_VALUES = 2097152   /* attention.value_length below key_length; attention.value_scale */
};

/* What tells mixtures of experts apart; keys that are fixed here are refused at another value. */
typedef struct hn_moe_switches {
    hn_gating gating;                                                         /* 0: expert_gating_func, */
    hn_gating gating_absent;                                                  /* or this where it is absent */
    enum { HN_MOE_NORM_KEY = 0, HN_MOE_NORM_ALWAYS, HN_MOE_NORM_NEVER } norm; /* KEY: expert_weights_norm */
    bool reads_lead, needs_period; /* leading_dense_block_count, interleave_moe_layer_step */
    bool maybe;                    /* files may have none: then all layers are dense */
    bool by_router;                /* a layer has them where it has a router; where none has one, there are none */
    bool plain_shared;             /* the width of the shared expert is in its tensors alone */
    bool average;                  /* hn_moe_numbers.average */
    bool gating_by_bias;           /* where the key is absent: sigmoid with a bias of the choice, softmax without */
    bool every_other;              /* moe_every_n_layers, which must be 2 */
} hn_moe_switches;

/* Norms that have no weights: theirs are 1. */
enum {
    HN_PLAIN_EMBD = 1, /* of the embedding, */
    HN_PLAIN_NORMS = 2 /* of the stream, before halves and at the end */
};

/* What tells transformers apart beside their tensors: 0 is what llama does. */
typedef struct hn_switches {
    bool neox, layer_norm;
    bool both;       /* attention looks both ways */
    bool part_turns; /* of heads whose pairs are neighbours; of others a part may always turn */
    bool latent;     /* keys and values are compressed: HN_MIXER_MLA */
    bool sqrt_embd;  /* embeddings times √n_embd */
    bool parallel;   /* both halves begin with the same x */
    bool qk_norm_after;
    bool own_gate; /* attention has HN_OUT_GATE_OWN, or HN_OUT_GATE_HEADS */
    hn_map gate_map;
    bool early; /* the router sees what the layer begins with, before attention and without a norm */
    hn_head_norm qk_norm;
    hn_ffn ffn;
    hn_glu act; /* of a gate */
    hn_map map; /* of an MLP; of a dense part with a gate, in place of act */
    int reads;
    int32_t window;        /* where the key is absent */
    int32_t window_period; /* likewise: the last of so many layers sees everything; 0: all do */
    bool first_sees;       /* not the last of so many, but the first */
    hn_window_rope window_rope;
    float window_base;   /* of angles where the key is absent; 0: as all others */
    float fade;          /* where attention.max_alibi_bias is absent; 0: scores do not fade, and the key is not read */
    int32_t nope_period; /* the last of so many layers does not turn; 0: all do; −1: none does */
    int32_t wide_scale_at;     /* models of so many layers scale scores by the width of the stream; 0: none */
    float attn_cap, logit_cap; /* where their keys are absent */
    float post_eps;            /* of norms behind halves; 0: as all */
    int plain;                 /* norms without weights: HN_PLAIN_… */
    bool embd_again;           /* each layer adds the embedding, times its out_scale */
    bool needs_window;         /* its key must be there */
    bool half_turns;           /* layers that see everything turn half of what windowed ones do */
    bool runs;                 /* its key says whether positions come in runs, and is the family's to read */
    int32_t window_layers;     /* models of so many layers have windows, others ignore the key; 0: all have them */
    const hn_moe_switches *moe;
} hn_switches;

/* The period of models all of whose layers have the window. */
enum { HN_ALL_WINDOWED = HN_MAX_LAYER + 1 };
/* Has layer il the window, where one of so many layers, the last or the first, sees everything? */
static inline bool hn_windowed_by_period(const hn_switches *is, int32_t period, int32_t il)
{
    if (is->first_sees && period != HN_ALL_WINDOWED) return il % period != 0;
    return il % period < period - 1;
}

typedef struct hn_family {
    const char *name; /* general.architecture */
    hn_family_set bit;
    bool trains; /* train/ has its gradients */
    hone_status (*hparams)(hone_model *m, hone_error *err);
    void (*plan)(hn_layer_plan *out, const hn_hparams *hp, int32_t il);
    const hn_slot *outer, *layer; /* in the order they are bound; the last has no name */
    const hn_switches *is;        /* of transformers */
} hn_family;

/* families.c and families_*.c: the rows. */
extern const hn_family hn_family_llama, hn_family_qwen2, hn_family_qwen3, hn_family_gemma3, hn_family_rwkv6,
    hn_family_rwkv7;
extern const hn_family hn_family_deepseek2, hn_family_mistral4, hn_family_minicpm3, hn_family_deepseek32,
    hn_family_glm_dsa;
extern const hn_family hn_family_arcee, hn_family_cohere2, hn_family_command_r, hn_family_ernie4_5, hn_family_exaone4,
    hn_family_gemma, hn_family_gemma2, hn_family_glm4, hn_family_gpt2, hn_family_gptneox, hn_family_granite,
    hn_family_hunyuan, hn_family_mistral3, hn_family_olmo2, hn_family_phi3, hn_family_seed_oss, hn_family_smollm3,
    hn_family_starcoder2, hn_family_exaone, hn_family_phi2, hn_family_stablelm, hn_family_nemotron, hn_family_chatglm,
    hn_family_starcoder, hn_family_orion, hn_family_maincoder, hn_family_apertus, hn_family_bloom, hn_family_mpt,
    hn_family_refact;
/* families_other.c */
extern const hn_family hn_family_muse_glimmer, hn_family_olmo, hn_family_spark2_5, hn_family_nanbeige,
    hn_family_hrm_text, hn_family_openelm, hn_family_dbrx, hn_family_talkie, hn_family_plamo3, hn_family_bitnet,
    hn_family_bitnet158;
/* families_hybrid.c */
extern const hn_family hn_family_falcon_h1, hn_family_lfm2, hn_family_mamba2, hn_family_nemotron_h, hn_family_qwen35,
    hn_family_lfm2moe, hn_family_nemotron_h_moe, hn_family_granitehybrid, hn_family_qwen35moe, hn_family_qwen3next,
    hn_family_kimi_linear, hn_family_deci, hn_family_mamba, hn_family_jamba, hn_family_qwen4exp;
extern const hn_family hn_family_gemma4, hn_family_gemma3n; /* families_gemma.c */
/* families_encoder.c */
extern const hn_family hn_family_bert, hn_family_nomic_bert, hn_family_gemma_embedding, hn_family_nomic_bert_moe,
    hn_family_jina_bert_v3, hn_family_modern_bert, hn_family_eurobert, hn_family_llama_embed, hn_family_jina_bert_v2;
extern const hn_family hn_family_qwen3moe, hn_family_qwen2moe, hn_family_olmoe, hn_family_granitemoe, hn_family_dots1,
    hn_family_ernie4_5_moe, hn_family_glm4moe, hn_family_minimax_m2, hn_family_gpt_oss, hn_family_llama4,
    hn_family_hunyuan_moe, hn_family_deepseek, hn_family_bailingmoe2, hn_family_mellum, hn_family_exaone_moe,
    hn_family_afmoe, hn_family_smallthinker, hn_family_phimoe, hn_family_cohere2moe, hn_family_granite_swa,
    hn_family_laguna, hn_family_step35, hn_family_mimo2;
const hn_family *hn_family_find(const char *name, size_t n); /* NULL: no such family */
/* Their number; out[i]: the name of each, as general.architecture has it. */
enum { HN_MAX_FAMILIES = 128 };
size_t hn_family_names(const char *out[HN_MAX_FAMILIES]);
/* The slot of a layer whose own tensor fills that field; where none does, the one that does with parts of its rows. */
const hn_slot *hn_family_field(const hn_family *f, size_t field);
/* The first slot of that role in a layer; NULL: none. */
const hn_slot *hn_family_slot(const hn_family *f, hn_role role);

/* ---- a layer: the fields that slots fill ------------------------------------------------------------------ */

enum { HN_RWKV_LERPS = 6, HN_RWKV_MIXES = 5 };
/* How a half reads a wide stream and writes to it. */
typedef struct hn_hyper {
    const float *norm;
    hn_weight down, up, inject;
} hn_hyper;
/* Of all families; what one of them lacks is empty there. Vectors are [n_embd] unless said. */
typedef struct hn_layer {
    const float *attn_norm, *attn_norm_b, *ffn_norm, *ffn_norm_b; /* before the mixer, before the feed-forward part */
    const float *attn_post_norm, *ffn_post_norm;                  /* of what they give, before it is added */
    const float *attn_out_norm, *attn_out_norm_b, *layer_out_norm, *layer_out_norm_b; /* of the stream, after each */
    const float *attn_q_norm, *attn_k_norm;                                           /* [d_k], of each head */
    const float *attn_sub_norm, *ffn_sub_norm; /* before the last product of each half, of what it takes */
    const float *q_a_norm, *kv_a_norm;         /* [rank_q], [rank_kv] */
    hn_weight q_a, q_b, kv_a, k_b, v_b;        /* latent attention; k_b, v_b: rows of heads */
    hn_weight attn_q, attn_k, attn_v, attn_gate, attn_output;
    hn_weight ffn_gate, ffn_up, ffn_down;
    const float *attn_sinks; /* [n_head] */
    /* experts: [n_expert] values of the choice, of what an expert gives */
    hn_weight ffn_gate_inp, ffn_gate_shexp, ffn_up_shexp, ffn_down_shexp, ffn_gate_inp_shexp;
    hn_weight ffn_latent_down, ffn_latent_up; /* to and from what experts take and give */
    hn_experts ffn_gate_exps, ffn_up_exps, ffn_down_exps;
    const float *exp_probs_b, *expert_scale;
    /* beside a dense part: before the router, before the experts; of what the dense part gives, of what they give */
    const float *router_norm, *ffn_norm_2, *ffn_post_norm_1, *ffn_post_norm_2;
    hn_weight ple_gate, ple_proj; /* what is added of the token's own row, and the norm of it */
    const float *ple_post_norm;
    /* a wide stream, before the mixer and before the feed-forward part: norms of its parts [n_hyper·n_embd], the pair
     * that mixes them, what each takes of what a half gives */
    hn_hyper hyper_attn, hyper_ffn;
    /* an index: queries and keys, how much heads count, norms of heads [d]; n-grams: keys of parts, values, norms of
     * keys, of the stream, of what is convolved [n_hyper·n_embd], taps [taps][n_hyper·n_embd] */
    hn_weight index_q, index_k, index_w, ngram_key, ngram_value;
    const float *index_q_norm, *index_k_norm, *index_k_norm_b;
    const float *ngram_key_norm, *ngram_query_norm, *ngram_conv_norm, *ngram_conv;
    const float *out_scale; /* [1] of the stream at the end of the layer, or of what is added then; or NULL */
    /* several streams: what predicts them and corrects them; a low-rank pair beside attention */
    hn_weight altup_router, altup_predict, altup_correct, laurel_l, laurel_r;
    const float *altup_router_norm, *altup_correct_scale, *laurel_post_norm;
    /* recurrent layers; conv_w [taps][channels] */
    const float *conv_w, *conv_b, *ssm_a, *ssm_d, *ssm_norm;
    hn_weight ssm_in[3], ssm_out; /* z, xBC, dt; of LFM2: b, c, x; of Mamba: x, z */
    hn_weight ssm_x[3],
        ssm_dt; /* Mamba: steps of low rank, B, C; steps; norms of those three, [ssm_rank], [ssm_state] */
    const float *ssm_dt_norm, *ssm_b_norm, *ssm_c_norm;
    hn_weight gdn_qkv, gdn_gate, gdn_beta, gdn_alpha;
    hn_weight kda_f[2], kda_g[2]; /* low-rank pairs: decays of keys, gates */
    const float *kda_conv[3];     /* of q, k, v: [taps][channels] */
    /* RWKV */
    const float *lerp[HN_RWKV_LERPS], *channel_lerp[2];
    const float *ln, *ln_b;                         /* of each head's output */
    const float *k_k, *k_a, *r_k;                   /* RWKV-7 */
    const float *lerp_x, *first;                    /* RWKV-6 */
    hn_weight receptance, key, value, gate, output; /* [n_embd, n_embd] */
    hn_weight w1, w2, a1, a2, v1, v2, g1, g2; /* low-rank pairs; w0, a0, v0, RWKV-6's decay: biases of w2, a2, v2 */
    hn_weight mix1[HN_RWKV_MIXES], mix2[HN_RWKV_MIXES]; /* RWKV-6: low-rank pairs of the lerps */
    hn_weight channel_key, channel_value, channel_receptance;
} hn_layer;

/* The matrix of that role, which the family has. */
static inline const hn_weight *hn_layer_weight(const hn_family *f, const hn_layer *l, hn_role role)
{
    return (const hn_weight *)(const void *)((const char *)l + hn_family_slot(f, role)->field);
}

#endif
