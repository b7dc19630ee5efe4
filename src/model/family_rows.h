/* family_rows: the words that rows of families are written in. Included by the files of families alone. */
#ifndef HN_FAMILY_ROWS_H
#define HN_FAMILY_ROWS_H

#include "model/hparams.h"

#include <math.h>
#include <stddef.h>

/* Short names for the rows below. */
#define E HN_DIM_EMBD
#define FF HN_DIM_FF
#define Q HN_DIM_Q
#define K HN_DIM_K
#define V HN_DIM_V
#define OF(f) offsetof(hn_layer, f)
#define OUTSIDE(f) offsetof(hone_model, f)

/* Of a row, what few rows have. */
#define RARE(...) \
    .rare = &(const hn_slot_rare) { __VA_ARGS__ }
/* families.c: that of many: without FUSED; its parts; those of its bias; of FUSED_EXPERTS the parts, or without it */
extern const hn_slot_rare hn_rare_apart, hn_rare_qkv, hn_rare_qkv_bias, hn_rare_gate_up, hn_rare_no_gate_up;
#define APART .rare = &hn_rare_apart

#define MATRIX(gguf, to, as, how, in, out, ...)                                                                        \
    {                                                                                                                  \
        .name = gguf ".weight", .field = to, .role = HN_ROLE_##as, .cut = HN_CUT_##how, .ne = { in, out }, __VA_ARGS__ \
    }
#define VECTOR(gguf, to, n, ...)                                                    \
    {                                                                               \
        .name = gguf, .field = to, .kind = HN_SLOT_VECTOR, .ne = { n }, __VA_ARGS__ \
    }
#define CHANNELS(gguf, to, ...)                                                                 \
    {                                                                                           \
        .name = gguf ".weight", .field = to, .kind = HN_SLOT_CHANNELS, .ne = { E }, __VA_ARGS__ \
    }

/* ---- transformers ------------------------------------------------------------------------------------ */

#define MAY .when = HN_OPTIONAL
#define FUSED "attn_qkv.weight"

#define EMBD MATRIX("token_embd", OUTSIDE(token_embd), EMBD, ROWS, E, HN_DIM_VOCAB, .hf = "model.embed_tokens")
#define ENDS(norm_turn)                                                                                     \
    EMBD, VECTOR("output_norm.weight", OUTSIDE(output_norm), E, .hf = "model.norm", .turn = norm_turn),     \
        MATRIX("output", OUTSIDE(output), OUTPUT, ROWS, E, HN_DIM_VOCAB, .hf = "lm_head", .when = HN_TIED), \
        VECTOR("output.bias", OUTSIDE(output.bias), HN_DIM_VOCAB, MAY)

/* of angles in short sessions and in long ones */
#define TWO_FACTORS                                                                      \
    VECTOR("rope_factors_short.weight", OUTSIDE(rope_factors), HN_DIM_ROT_PAIRS, MAY),   \
        VECTOR("rope_factors_long.weight", OUTSIDE(rope_factors_long), HN_DIM_ROT_PAIRS, \
               RARE(.with = "rope_factors_short.weight"), .when = HN_GOES_WITH)

/* what judges a pooled row */
#define CLASSIFIER                                                                   \
    MATRIX("cls", OUTSIDE(cls), NONE, WHOLE, E, E, MAY),                             \
        VECTOR("cls.bias", OUTSIDE(cls.bias), E, RARE(.with = "cls.weight"), MAY),   \
        MATRIX("cls.output", OUTSIDE(cls_out), NONE, WHOLE, E, HN_DIM_CLASSES, MAY), \
        VECTOR("cls.output.bias", OUTSIDE(cls_out.bias), HN_DIM_CLASSES, RARE(.with = "cls.output.weight"), MAY)

#define NORM(gguf, to, n, module, ...) VECTOR(gguf ".weight", OF(to), n, .hf = module, __VA_ARGS__)
#define LINEAR(gguf, to, as, how, in, out, ...) MATRIX(gguf, OF(to), as, how, in, out, __VA_ARGS__)
#define BIAS(gguf, to, n, ...) VECTOR(gguf ".bias", OF(to.bias), n, __VA_ARGS__)
/* q, k and v, or one matrix of their rows */
#define QKV(q_turn, k_turn)                                                                                \
    LINEAR("attn_qkv", attn_q, ATTN_Q, HEADS, E, HN_DIM_QKV, MAY, .rare = &hn_rare_qkv),                   \
        LINEAR("attn_q", attn_q, ATTN_Q, HEADS, E, Q, APART, .hf = "self_attn.q_proj", .turn = q_turn),    \
        LINEAR("attn_k", attn_k, ATTN_K, KV_HEADS, E, K, APART, .hf = "self_attn.k_proj", .turn = k_turn), \
        LINEAR("attn_v", attn_v, ATTN_V, KV_HEADS, E, V, APART, .hf = "self_attn.v_proj")
#define QKV_BIAS(presence)                                                                                      \
    BIAS("attn_qkv", attn_q, HN_DIM_QKV, .rare = &hn_rare_qkv_bias, .when = presence),                          \
        BIAS("attn_q", attn_q, Q, APART, .when = presence), BIAS("attn_k", attn_k, K, APART, .when = presence), \
        BIAS("attn_v", attn_v, V, APART, .when = presence)
#define QK_NORM(t)                                                                \
    NORM("attn_q_norm", attn_q_norm, HN_DIM_HEAD, "self_attn.q_norm", .turn = t), \
        NORM("attn_k_norm", attn_k_norm, HN_DIM_HEAD, "self_attn.k_norm", .turn = t)
#define ATTN_OUT LINEAR("attn_output", attn_output, ATTN_OUTPUT, ROWS, HN_DIM_O, E, .hf = "self_attn.o_proj")
#define GATE LINEAR("ffn_gate", ffn_gate, FFN_GATE, KEEP, E, FF, .hf = "mlp.gate_proj")
#define UP LINEAR("ffn_up", ffn_up, FFN_UP, KEEP, E, FF, .hf = "mlp.up_proj")
#define DOWN LINEAR("ffn_down", ffn_down, FFN_DOWN, ROWS, FF, E, .hf = "mlp.down_proj")
/* latent attention; queries are compressed too, or not; what keys and values come from in one matrix, as the first
 * converters wrote it, or in two; ...: of every slot */
#define MLA(...)                                                                                                   \
    LINEAR("attn_q", attn_q, ATTN_Q, HEADS, E, HN_DIM_Q_HEADS, RARE(.without = "attn_q_a.weight"), __VA_ARGS__),   \
        LINEAR("attn_q_a", q_a, ATTN_Q_A, WHOLE, E, HN_DIM_RANK_Q, RARE(.with = "attn_q_a.weight"), __VA_ARGS__),  \
        VECTOR("attn_q_a_norm.weight", OF(q_a_norm), HN_DIM_RANK_Q, RARE(.with = "attn_q_a.weight"), __VA_ARGS__), \
        LINEAR("attn_q_b", q_b, ATTN_Q_B, HEADS, HN_DIM_RANK_Q, HN_DIM_Q_HEADS, RARE(.with = "attn_q_a.weight"),   \
               __VA_ARGS__),                                                                                       \
        LINEAR("attn_kv_a_mqa", kv_a, ATTN_KV_A, WHOLE, E, HN_DIM_LATENT, __VA_ARGS__),                            \
        VECTOR("attn_kv_a_norm.weight", OF(kv_a_norm), HN_DIM_RANK_KV, __VA_ARGS__),                               \
        { .name = "attn_k_b.weight",                                                                               \
          .field = OF(k_b),                                                                                        \
          .kind = HN_SLOT_ROWS,                                                                                    \
          .role = HN_ROLE_ATTN_K_B,                                                                                \
          .cut = HN_CUT_HEADS,                                                                                     \
          .ne = { HN_DIM_NOPE, HN_DIM_RANK_KV, HN_DIM_HEADS },                                                     \
          RARE(.instead = "attn_kv_b.weight"),                                                                     \
          __VA_ARGS__ },                                                                                           \
        { .name = "attn_v_b.weight",                                                                               \
          .field = OF(v_b),                                                                                        \
          .kind = HN_SLOT_ROWS,                                                                                    \
          .role = HN_ROLE_ATTN_V_B,                                                                                \
          .cut = HN_CUT_HEADS,                                                                                     \
          .ne = { HN_DIM_RANK_KV, HN_DIM_VALUE_HEAD, HN_DIM_HEADS },                                               \
          RARE(.instead = "attn_kv_b.weight"),                                                                     \
          __VA_ARGS__ },                                                                                           \
        { .name = "attn_kv_b.weight",                                                                              \
          .field = OF(k_b),                                                                                        \
          .kind = HN_SLOT_KV_B,                                                                                    \
          .ne = { HN_DIM_RANK_KV, HN_DIM_KV_B },                                                                   \
          RARE(.with = "attn_kv_b.weight", .without = "attn_k_b.weight"),                                          \
          __VA_ARGS__ },                                                                                           \
        LINEAR("attn_output", attn_output, ATTN_OUTPUT, ROWS, HN_DIM_V_HEADS, E, .hf = "self_attn.o_proj",         \
               __VA_ARGS__)
#define ATTN_NORM NORM("attn_norm", attn_norm, E, "input_layernorm")
#define FFN_NORM NORM("ffn_norm", ffn_norm, E, "post_attention_layernorm")

/* With biases where the file has them. */
#define ATTN(q_turn, k_turn) \
    QKV(q_turn, k_turn), QKV_BIAS(HN_OPTIONAL), ATTN_OUT, BIAS("attn_output", attn_output, E, MAY)
#define GLU                                                                               \
    GATE, BIAS("ffn_gate", ffn_gate, FF, MAY), UP, BIAS("ffn_up", ffn_up, FF, MAY), DOWN, \
        BIAS("ffn_down", ffn_down, E, MAY)
#define MLP UP, BIAS("ffn_up", ffn_up, FF, MAY), DOWN, BIAS("ffn_down", ffn_down, E, MAY)
/* gate and up, or one matrix of their rows */
#define SPLIT "ffn_gate.weight"
#define FUSED_GLU                                                                                         \
    LINEAR("ffn_up", ffn_gate, FFN_GATE, KEEP, E, HN_DIM_FF2, RARE(.without = SPLIT, .part = { FF, FF }), \
           .hf = "mlp.gate_up_proj"),                                                                     \
        LINEAR("ffn_gate", ffn_gate, FFN_GATE, KEEP, E, FF, RARE(.with = SPLIT)),                         \
        LINEAR("ffn_up", ffn_up, FFN_UP, KEEP, E, FF, RARE(.with = SPLIT)), DOWN
#define LAYER_NORM(gguf, to, module, ...) NORM(gguf, to, E, module), VECTOR(gguf ".bias", OF(to##_b), E, __VA_ARGS__)
#define POST_NORMS(t)                                                                      \
    NORM("post_attention_norm", attn_post_norm, E, "post_attention_layernorm", .turn = t), \
        NORM("post_ffw_norm", ffn_post_norm, E, "post_feedforward_layernorm", .turn = t)

/* Experts: the router, maybe with a bias; what is added to scores for the choice alone; gate, up and down of each, gate
 * and up maybe in one tensor; the expert of all. */
#define IN_MOE .layers = HN_IN_MOE
#define ROUTER                                                                      \
    LINEAR("ffn_gate_inp", ffn_gate_inp, ROUTER, WHOLE, E, HN_DIM_EXPERTS, IN_MOE), \
        BIAS("ffn_gate_inp", ffn_gate_inp, HN_DIM_EXPERTS, MAY, IN_MOE)
#define CHOICE_BIAS VECTOR("exp_probs_b.bias", OF(exp_probs_b), HN_DIM_EXPERTS, MAY, IN_MOE)
#define EXPERT(gguf, to, as, how, in, out, ...)                                                      \
    {                                                                                                \
        .name = gguf "_exps.weight", .field = OF(to), .kind = HN_SLOT_EXPERTS, .role = HN_ROLE_##as, \
        .cut = HN_CUT_##how, .ne = { in, out, HN_DIM_EXPERTS }, IN_MOE, __VA_ARGS__                  \
    }
#define FUSED_EXPERTS "ffn_gate_up_exps.weight"
#define EXPERTS                                                                                              \
    { .name = FUSED_EXPERTS,                                                                                 \
      .field = OF(ffn_gate_exps),                                                                            \
      .kind = HN_SLOT_EXPERTS,                                                                               \
      .role = HN_ROLE_EXPERT_GATE,                                                                           \
      .cut = HN_CUT_KEEP,                                                                                    \
      .ne = { E, HN_DIM_FF2_EXP, HN_DIM_EXPERTS },                                                           \
      .rare = &hn_rare_gate_up,                                                                              \
      .when = HN_OPTIONAL,                                                                                   \
      IN_MOE },                                                                                              \
        EXPERT("ffn_gate", ffn_gate_exps, EXPERT_GATE, KEEP, E, HN_DIM_FF_EXP, .rare = &hn_rare_no_gate_up), \
        EXPERT("ffn_up", ffn_up_exps, EXPERT_UP, KEEP, E, HN_DIM_FF_EXP, .rare = &hn_rare_no_gate_up),       \
        EXPERT("ffn_down", ffn_down_exps, EXPERT_DOWN, ROWS, HN_DIM_FF_EXP, E, .when = HN_NEEDED)
#define EXPERT_BIAS(gguf, to, n, ...)                                                                    \
    {                                                                                                    \
        .name = gguf ".bias", .field = OF(to), .kind = HN_SLOT_EXPERT_BIAS, .ne = { n, HN_DIM_EXPERTS }, \
        .when = HN_OPTIONAL, IN_MOE, __VA_ARGS__                                                         \
    }
#define EXPERT_BIASES                                                                         \
    EXPERT_BIAS("ffn_gate_up_exps", ffn_gate_exps, HN_DIM_FF2_EXP, .rare = &hn_rare_gate_up), \
        EXPERT_BIAS("ffn_gate_exps", ffn_gate_exps, HN_DIM_FF_EXP),                           \
        EXPERT_BIAS("ffn_up_exps", ffn_up_exps, HN_DIM_FF_EXP), EXPERT_BIAS("ffn_down_exps", ffn_down_exps, E)
#define SHARED_EXPERT IN_MOE, .together = HN_TOGETHER_SHARED
#define SHARED(presence)                                                                                               \
    LINEAR("ffn_gate_shexp", ffn_gate_shexp, SHARED_GATE, KEEP, E, HN_DIM_FF_SHARED, .when = presence, SHARED_EXPERT), \
        LINEAR("ffn_up_shexp", ffn_up_shexp, SHARED_UP, KEEP, E, HN_DIM_FF_SHARED, .when = presence, SHARED_EXPERT),   \
        LINEAR("ffn_down_shexp", ffn_down_shexp, SHARED_DOWN, ROWS, HN_DIM_FF_SHARED, E, .when = presence,             \
               SHARED_EXPERT)
/* of layers without experts, in a family that has them */
#define DENSE .layers = HN_IN_DENSE
#define DENSE_GLU                                                                      \
    LINEAR("ffn_gate", ffn_gate, FFN_GATE, KEEP, E, FF, .hf = "mlp.gate_proj", DENSE), \
        LINEAR("ffn_up", ffn_up, FFN_UP, KEEP, E, FF, .hf = "mlp.up_proj", DENSE),     \
        LINEAR("ffn_down", ffn_down, FFN_DOWN, ROWS, FF, E, .hf = "mlp.down_proj", DENSE)
#define DENSE_BIASES                                                                    \
    BIAS("ffn_gate", ffn_gate, FF, MAY, DENSE), BIAS("ffn_up", ffn_up, FF, MAY, DENSE), \
        BIAS("ffn_down", ffn_down, E, MAY, DENSE)
#define MOE(...) \
    .moe = &(const hn_moe_switches) { __VA_ARGS__ }

/* Outside layers: what transformers have; and where a converter may have written factors of angles, of one kind or of
 * two. */
extern const hn_slot hn_plain_outer[], hn_factors_outer[], hn_granite_outer[];
/* hn_attn_hparams of families whose files list which layers have the window. */
hone_status hn_window_list(hone_model *m, hone_error *err);
/* Has the layer the window? */
bool hn_is_windowed(const hn_hparams *hp, int32_t il);
/* Plans that families share or begin with. */
void hn_attn_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il);
/* The same, of heads of keys and a width of the network that each layer has its own of. */
void hn_by_layer_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il);

/* A row: its switches at last. */
#define TRANSFORMER(arch, bit, trains, outer, layer, ...)                                                    \
    {                                                                                                        \
        arch, bit, trains, hn_attn_hparams, hn_attn_plan, outer, layer, &(const hn_switches) { __VA_ARGS__ } \
    }

#endif
