/* hf_rows: the words that rows of classes are written in, and the makers of tensors that several classes share
 * (hf_make.c). Included by the files of classes, and by that of what all of them share (hf_keys.c). */
#ifndef HN_HF_ROWS_H
#define HN_HF_ROWS_H

#include "forge/hf.h"

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

/* ---- keys: members of the config --------------------------------------------------------------------------- */

#define U32(member, to)                        \
    {                                          \
        member, to, HN_HF_U32, HN_HF_NEEDED, 0 \
    }
#define U32_OR(member, to, n)                   \
    {                                           \
        member, to, HN_HF_U32, HN_HF_USUALLY, n \
    }
#define U32_MAY(member, to)                      \
    {                                            \
        member, to, HN_HF_U32, HN_HF_OPTIONAL, 0 \
    }
#define F32_OR(member, to, x)                   \
    {                                           \
        member, to, HN_HF_F32, HN_HF_USUALLY, x \
    }
#define F32_MAY(member, to)                      \
    {                                            \
        member, to, HN_HF_F32, HN_HF_OPTIONAL, 0 \
    }
#define BOOL_OR(member, to, x)                   \
    {                                            \
        member, to, HN_HF_BOOL, HN_HF_USUALLY, x \
    }
#define ONLY(member, x)                             \
    {                                               \
        member, NULL, HN_HF_ONLY, HN_HF_OPTIONAL, x \
    }
#define WORD(member, list)                          \
    {                                               \
        member, list, HN_HF_WORD, HN_HF_OPTIONAL, 0 \
    }
#define MORE(member, to)                          \
    {                                             \
        member, to, HN_HF_MORE, HN_HF_OPTIONAL, 0 \
    }
#define TENSORS(member, absent, list)                       \
    {                                                       \
        member, list, HN_HF_TENSORS, HN_HF_OPTIONAL, absent \
    }
#define KEYS_END                               \
    {                                          \
        NULL, NULL, HN_HF_U32, HN_HF_NEEDED, 0 \
    }

#define QKV_BIASES "attn_q.bias|attn_k.bias|attn_v.bias"
#define ATTN_BIASES QKV_BIASES "|attn_output.bias"
#define GLU_BIASES "ffn_gate.bias|ffn_up.bias|ffn_down.bias"
#define GELU "gelu_pytorch_tanh|gelu_new|gelu_fast|gelu"

/* Of mixtures of experts: members of training, which change no answer; numbers; all of DeepSeek's (hn_hf_put_routed
 * reads what is MORE). */
#define ROUTER_IDLE \
    "output_router_logits router_aux_loss_coef aux_loss_alpha seq_aux router_jitter_noise router_z_loss_coef "

/* Of Hunyuan's configs: images, classifiers, layers that share keys where none do. */
#define HUNYUAN_IDLE                                                                         \
    "attention_head_dim cla_share_factor eod_token_id im_end_id im_newline_id im_start_id "  \
    "image_token_id mask_init_id org_vocab_size text_end_id text_start_id pad_id class_num " \
    "dense_list pool_type enable_lm_head_fp32 add_classification_head anyres_pooling_size "  \
    "anyres_vit_two_views num_media_embeds skip_cls_token video_start_id video_end_id "      \
    "vit_add_patchemb_bias vit_patch"

#define USED U32("num_experts_per_tok", "expert_used_count")
#define WIDTH U32("moe_intermediate_size", "expert_feed_forward_length")
/* Every layer has experts. */
#define ALL_SPARSE ONLY("decoder_sparse_step", 1), MORE("mlp_only_layers", NULL)
/* scale, norm: of a config that does not say them, as the class in transformers has it. */
#define ROUTED(scale, norm)                                                                                         \
    U32("n_routed_experts", "expert_count"), USED, WIDTH,                                                           \
        F32_OR("routed_scaling_factor", "expert_weights_scale", scale),                                             \
        BOOL_OR("norm_topk_prob", "expert_weights_norm", norm), ONLY("moe_layer_freq", 1),                          \
        MORE("n_shared_experts", NULL), MORE("first_k_dense_replace|mlp_layer_types", NULL), MORE("n_group", NULL), \
        MORE("topk_group", NULL), MORE("scoring_func|topk_method", NULL), MORE("topk_method", NULL),                \
        MORE("num_nextn_predict_layers", NULL)

/* ---- names of tensors ---------------------------------------------------------------------------------------- */

#define NAMES_END        \
    {                    \
        NULL, NULL, NULL \
    }
/* One tensor for each expert, * their number; or, as transformers 5 keeps them, all in one. */
#define EXPERT_NAMES(where, gate, up, down)                                                                 \
    { "ffn_gate_exps", where ".*." gate, hn_hf_experts }, { "ffn_up_exps", where ".*." up, hn_hf_experts }, \
    {                                                                                                       \
        "ffn_down_exps", where ".*." down, hn_hf_experts                                                    \
    }
#define MLP_EXPERTS EXPERT_NAMES("mlp.experts", "gate_proj", "up_proj", "down_proj")
#define SHARED_NAMES(where)                                                                     \
    { "ffn_gate_shexp", where ".gate_proj", NULL }, { "ffn_up_shexp", where ".up_proj", NULL }, \
    {                                                                                           \
        "ffn_down_shexp", where ".down_proj", NULL                                              \
    }

/* Latent attention: hn_hf_put_latent reads what is MORE. */
#define LATENT_ROWS                                                                                 \
    MORE("num_key_value_heads", "attention.head_count_kv"),                                         \
        MORE("head_dim", "attention.key_length|attention.value_length"), MORE("q_lora_rank", NULL), \
        U32("kv_lora_rank", "attention.kv_lora_rank|attention.value_length"),                       \
        U32("v_head_dim", "attention.value_length_mla"), MORE("qk_nope_head_dim", NULL),            \
        MORE("qk_rope_head_dim", NULL), MORE("qk_head_dim", NULL), ONLY("attention_bias", 0), ONLY("mlp_bias", 0)
#define LATENT_NAMES                                                                                              \
    { "attn_q_a", "self_attn.q_a_proj", NULL }, { "attn_q_a_norm", "self_attn.q_a_layernorm", NULL },             \
        { "attn_q_b", "self_attn.q_b_proj", NULL }, { "attn_q", "self_attn.q_proj", hn_hf_q_alone },              \
        { "attn_kv_a_mqa", "self_attn.kv_a_proj_with_mqa", NULL },                                                \
        { "attn_kv_a_norm", "self_attn.kv_a_layernorm", NULL }, { "attn_k_b", "self_attn.kv_b_proj", hn_hf_k_b }, \
        { "attn_v_b", "self_attn.kv_b_proj", hn_hf_v_b },                                                         \
    {                                                                                                             \
        "attn_kv_b", "-", NULL                                                                                    \
    }
hone_status hn_hf_put_latent(hn_hf *f, hone_error *err);
/* Groups, the choice, dense layers, shared experts; layers that draft are left out. gating: where it is not said. */
hone_status hn_hf_put_routed(hn_hf *f, const char *gating, hone_error *err);
hone_status hn_hf_put_shared(hn_hf *f, const char *number, const char *width, hone_error *err);
hone_status hn_hf_put_lead(hn_hf *f, int64_t absent, hone_error *err);

/* ---- makers ---------------------------------------------------------------------------------------------------- */

/* Matrices of experts: of one tensor each, or of rows of one, gates first. */
hone_status hn_hf_experts(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* The slot's elements in however many dimensions the folder has them; a list in the file. */
hone_status hn_hf_flat(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* The same, as the slot's shape, of the shape that the folder has. */
hone_status hn_hf_reshaped(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* −exp of a list, in the slot's shape. */
hone_status hn_hf_minus_exp(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* Gate or up: one half of the rows of a matrix that has both. */
hone_status hn_hf_half(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* Keys' and values' parts of kv_b, head by head; the keys' matrix turned. */
hone_status hn_hf_k_b(hn_hf *f, const hn_hf_at *at, hone_error *err);
hone_status hn_hf_v_b(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* 1 + w, where the family's slot has no turn for it. */
hone_status hn_hf_plus_one(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* Queries, where they are not compressed: there are none else. */
hone_status hn_hf_q_alone(hn_hf *f, const hn_hf_at *at, hone_error *err);
/* A tensor of the slot's shape of one view of the source, whose shape is `from` [n]. */
hone_status hn_hf_make(hn_hf *f, const hn_hf_at *at, int32_t n, const uint64_t *from, const hn_hf_view *v,
                       hone_error *err);
/* Further layers than those, and than blocks that draft and are kept (hf_draft.c): they are left out. */
void hn_hf_leave_drafts(hn_hf *f, int64_t n_layer);

/* Whether layer il of a list of words has one of "a|b"; the list may be a string of letters (nemotron_h's pattern). */
bool hn_hf_layer_is(const json_t *list, int64_t il, const char *words);
/* A list of the config with an entry for each layer; not said: list NULL. */
typedef struct hn_hf_layers {
    const json_t *list;
    int64_t n; /* layers */
} hn_hf_layers;
hone_status hn_hf_read_layers(hn_hf *f, const char *names, hn_hf_layers *l, hone_error *err);
/* layer_types as truth values: which layers have the window. Not said: l->list NULL, and none has. */
hone_status hn_hf_read_windows(hn_hf *f, hn_hf_layers *l, uint8_t windowed[HN_MAX_LAYER], hone_error *err);
/* An array of `value` for each layer that is one of `words`, 0 for others, which must be of `others`. */
hone_status hn_hf_put_numbers(hn_hf *f, const char *key, const char *names, const char *words, const char *others,
                              int64_t value, hone_error *err);
#define ATTENDS "attention|full_attention|*"

#endif
