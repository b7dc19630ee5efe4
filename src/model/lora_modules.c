/* lora_modules: see lora_modules.h. Owns Hugging Face's names of matrices, family by family, and the order of their
 * rows there. A module may be several tensors of a file (one matrix of gate and up) and a tensor several modules. The
 * adapter of rows of both is split by giving each part A and its rows of B; several are stacked, A's below each other,
 * B's in columns of their own. Both are exact. Refuses to know folders and files of adapters. */
#include "model/lora_modules.h"

#include <stdlib.h>

/* ---- names ------------------------------------------------------------------------------------------------- */

typedef struct module {
    const char *name; /* after the number of the layer */
    const char
        *slots; /* the family's, without .weight: one, several below each other (+), or, of q, k and v, those of each
                 * head of keys in turn (/) */
} module;

#define SELF_ATTN                                                                                         \
    { "self_attn.q_proj", "attn_q" }, { "self_attn.k_proj", "attn_k" }, { "self_attn.v_proj", "attn_v" }, \
    {                                                                                                     \
        "self_attn.o_proj", "attn_output"                                                                 \
    }
#define GATED(under) \
    { under ".gate_proj", "ffn_gate" }, { under ".up_proj", "ffn_up" }, { under ".down_proj", "ffn_down" }
#define SHARED_IN(under)                                                            \
    { under ".gate_proj", "ffn_gate_shexp" }, { under ".up_proj", "ffn_up_shexp" }, \
    {                                                                               \
        under ".down_proj", "ffn_down_shexp"                                        \
    }
#define GATE_AND_UP \
    { "mlp.gate_up_proj", "ffn_gate+ffn_up" }, { "mlp.down_proj", "ffn_down" }

static const module usual[] = { SELF_ATTN, GATED("mlp"), { NULL, NULL } };
static const module fused_all[] = {
    { "self_attn.qkv_proj", "attn_q+attn_k+attn_v" }, { "self_attn.o_proj", "attn_output" }, GATE_AND_UP, { NULL, NULL }
};
static const module fused_gate[] = { SELF_ATTN, GATE_AND_UP, { NULL, NULL } };
static const module starcoder2[] = {
    SELF_ATTN, { "mlp.c_fc", "ffn_up" }, { "mlp.c_proj", "ffn_down" }, { NULL, NULL }
};
static const module gptneox[] = { { "attention.query_key_value", "attn_q/attn_k/attn_v" },
                                  { "attention.dense", "attn_output" },
                                  { "mlp.dense_h_to_4h", "ffn_up" },
                                  { "mlp.dense_4h_to_h", "ffn_down" },
                                  { NULL, NULL } };
static const module phi2[] = { { "self_attn.q_proj", "attn_q" },
                               { "self_attn.k_proj", "attn_k" },
                               { "self_attn.v_proj", "attn_v" },
                               { "self_attn.dense", "attn_output" },
                               { "mlp.fc1", "ffn_up" },
                               { "mlp.fc2", "ffn_down" },
                               { NULL, NULL } };
static const module exaone[] = { { "attn.attention.q_proj", "attn_q" }, { "attn.attention.k_proj", "attn_k" },
                                 { "attn.attention.v_proj", "attn_v" }, { "attn.attention.out_proj", "attn_output" },
                                 { "mlp.c_fc_0", "ffn_gate" },          { "mlp.c_fc_1", "ffn_up" },
                                 { "mlp.c_proj", "ffn_down" },          { NULL, NULL } };
static const module gpt2[] = { { "attn.c_attn", "attn_q+attn_k+attn_v" },
                               { "attn.c_proj", "attn_output" },
                               { "mlp.c_fc", "ffn_up" },
                               { "mlp.c_proj", "ffn_down" },
                               { NULL, NULL } };
static const module bloom[] = { { "self_attention.query_key_value", "attn_q/attn_k/attn_v" },
                                { "self_attention.dense", "attn_output" },
                                { "mlp.dense_h_to_4h", "ffn_up" },
                                { "mlp.dense_4h_to_h", "ffn_down" },
                                { NULL, NULL } };
static const module mpt[] = { { "attn.Wqkv", "attn_q+attn_k+attn_v" },
                              { "attn.out_proj", "attn_output" },
                              { "ffn.up_proj", "ffn_up" },
                              { "ffn.down_proj", "ffn_down" },
                              { NULL, NULL } };
static const module refact[] = { { "attn.q", "attn_q" },           { "attn.kv", "attn_k+attn_v" },
                                 { "attn.c_proj", "attn_output" }, { "mlp.gate_up_proj", "ffn_gate+ffn_up" },
                                 { "mlp.c_proj", "ffn_down" },     { NULL, NULL } };
static const module shared_expert[] = { SELF_ATTN,
                                        GATED("mlp"),
                                        SHARED_IN("mlp.shared_expert"),
                                        { "mlp.shared_expert_gate", "ffn_gate_inp_shexp" },
                                        { NULL, NULL } };
#define TILED                                                                              \
    { "linear_attn.in_proj_qkv", "attn_qkv" }, { "linear_attn.in_proj_z", "attn_gate" },   \
        { "linear_attn.in_proj_b", "ssm_beta" }, { "linear_attn.in_proj_a", "ssm_alpha" }, \
    {                                                                                      \
        "linear_attn.out_proj", "ssm_out"                                                  \
    }
static const module qwen35[] = { SELF_ATTN, GATED("mlp"), TILED, { NULL, NULL } };
static const module qwen35moe[] = {
    SELF_ATTN, GATED("mlp"),  SHARED_IN("mlp.shared_expert"), { "mlp.shared_expert_gate", "ffn_gate_inp_shexp" },
    TILED,     { NULL, NULL }
};
#define HYPER(module, to)                                                                         \
    { module ".input_mix_weight_down", to "_down" }, { module ".input_mix_weight_up", to "_up" }, \
    {                                                                                             \
        module ".block_inject_weight", to "_inject"                                               \
    }
static const module qwen4exp[] = { SELF_ATTN,
                                   GATED("mlp"),
                                   SHARED_IN("mlp.shared_expert"),
                                   { "mlp.shared_expert_gate", "ffn_gate_inp_shexp" },
                                   TILED,
                                   HYPER("attn_hyper_connection", "hc_attn"),
                                   HYPER("mlp_hyper_connection", "hc_ffn"),
                                   { "self_attn.indexer.index_qk_proj", "indexer.q_proj+indexer.k_proj" },
                                   { "ple.key_proj", "ple_key" },
                                   { "ple.value_proj", "ple_value" },
                                   { NULL, NULL } };
/* of the delta rule what comes out of it alone: the rest is in another order there */
static const module qwen3next[] = { SELF_ATTN,
                                    GATED("mlp"),
                                    SHARED_IN("mlp.shared_expert"),
                                    { "mlp.shared_expert_gate", "ffn_gate_inp_shexp" },
                                    { "linear_attn.out_proj", "ssm_out" },
                                    { NULL, NULL } };
static const module shared_experts[] = { SELF_ATTN, GATED("mlp"), SHARED_IN("mlp.shared_experts"), { NULL, NULL } };
static const module afmoe[] = {
    SELF_ATTN, { "self_attn.gate_proj", "attn_gate" }, GATED("mlp"), SHARED_IN("mlp.shared_experts"), { NULL, NULL }
};
static const module laguna[] = {
    SELF_ATTN, { "self_attn.g_proj", "attn_gate" }, GATED("mlp"), SHARED_IN("mlp.shared_experts"), { NULL, NULL }
};
static const module muse[] = { SELF_ATTN, { "self_attn.gate_proj", "attn_gate" }, GATED("mlp"), { NULL, NULL } };
static const module spark[] = { { "self_attn.q_k_v_proj", "attn_q+attn_k+attn_v" },
                                { "self_attn.g_proj", "attn_gate" },
                                { "self_attn.o_proj", "attn_output" },
                                GATED("mlp"),
                                { NULL, NULL } };
static const module openelm[] = { { "attn.qkv_proj", "attn_q+attn_k+attn_v" },
                                  { "attn.out_proj", "attn_output" },
                                  { "ffn.proj_1", "ffn_gate+ffn_up" },
                                  { "ffn.proj_2", "ffn_down" },
                                  { NULL, NULL } };
static const module dbrx[] = { { "norm_attn_norm.attn.Wqkv", "attn_q+attn_k+attn_v" },
                               { "norm_attn_norm.attn.out_proj", "attn_output" },
                               { NULL, NULL } };
static const module hunyuan_moe[] = { SELF_ATTN, SHARED_IN("mlp.shared_mlp"), { NULL, NULL } };
static const module bailingmoe2[] = { { "attention.query_key_value", "attn_q+attn_k+attn_v" },
                                      { "attention.dense", "attn_output" },
                                      GATED("mlp"),
                                      SHARED_IN("mlp.shared_experts"),
                                      { NULL, NULL } };
static const module llama4[] = {
    SELF_ATTN, GATED("feed_forward"), SHARED_IN("feed_forward.shared_expert"), { NULL, NULL }
};
#define SHARED_MLP(tail) \
    { "shared_mlp.input_linear", "ffn_gate" tail "+ffn_up" tail }, { "shared_mlp.output_linear", "ffn_down" tail }
/* of Granite 4.0, whose dense models are granite too, gate and up are one module */
static const module granite[] = { SELF_ATTN, GATED("mlp"), SHARED_MLP(""), { NULL, NULL } };
static const module granitemoe[] = { SELF_ATTN, SHARED_MLP("_shexp"), SHARED_MLP(""), { NULL, NULL } };
static const module granite_swa[] = { SELF_ATTN, GATED("mlp"), SHARED_MLP("_shexp"), { NULL, NULL } };
static const module granitehybrid[] = {
    SELF_ATTN,     SHARED_MLP("_shexp"), SHARED_MLP(""), { "mamba.in_proj", "ssm_in" }, { "mamba.out_proj", "ssm_out" },
    { NULL, NULL }
};
static const module latent[] = {
    { "self_attn.q_proj", "attn_q" },      { "self_attn.q_a_proj", "attn_q_a" },
    { "self_attn.q_b_proj", "attn_q_b" },  { "self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa" },
    { "self_attn.o_proj", "attn_output" }, GATED("mlp"),
    SHARED_IN("mlp.shared_experts"),       { NULL, NULL }
};
static const module indexed[] = {
    { "self_attn.q_a_proj", "attn_q_a" },
    { "self_attn.q_b_proj", "attn_q_b" },
    { "self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa" },
    { "self_attn.o_proj", "attn_output" },
    { "self_attn.indexer.wq_b", "indexer.attn_q_b" },
    { "self_attn.indexer.wk", "indexer.attn_k" },
    { "self_attn.indexer.weights_proj", "indexer.proj" },
    GATED("mlp"),
    SHARED_IN("mlp.shared_experts"),
    { NULL, NULL },
};
static const module lfm2[] = { { "self_attn.q_proj", "attn_q" },        { "self_attn.k_proj", "attn_k" },
                               { "self_attn.v_proj", "attn_v" },        { "self_attn.out_proj", "attn_output" },
                               { "conv.in_proj", "shortconv.in_proj" }, { "conv.out_proj", "shortconv.out_proj" },
                               { "feed_forward.w1", "ffn_gate" },       { "feed_forward.w3", "ffn_up" },
                               { "feed_forward.w2", "ffn_down" },       { NULL, NULL } };
static const module gemma4[] = { SELF_ATTN,
                                 GATED("mlp"),
                                 { "per_layer_input_gate", "inp_gate" },
                                 { "per_layer_projection", "proj" },
                                 { "laurel.linear_left", "laurel_l" },
                                 { "laurel.linear_right", "laurel_r" },
                                 { NULL, NULL } };
static const module mixers[] = { { "mixer.q_proj", "attn_q" },
                                 { "mixer.k_proj", "attn_k" },
                                 { "mixer.v_proj", "attn_v" },
                                 { "mixer.o_proj", "attn_output" },
                                 { "mixer.in_proj", "ssm_in" },
                                 { "mixer.out_proj", "ssm_out" },
                                 { "mixer.up_proj", "ffn_up" },
                                 { "mixer.down_proj", "ffn_down" },
                                 { "mixer.fc1_latent_proj", "ffn_latent_down" },
                                 { "mixer.fc2_latent_proj", "ffn_latent_up" },
                                 { "mixer.shared_experts.up_proj", "ffn_up_shexp" },
                                 { "mixer.shared_experts.down_proj", "ffn_down_shexp" },
                                 { NULL, NULL } };

#define OLD_MIXER(where)                                                                          \
    { where ".in_proj", "ssm_in" }, { where ".x_proj", "ssm_x" }, { where ".dt_proj", "ssm_dt" }, \
    {                                                                                             \
        where ".out_proj", "ssm_out"                                                              \
    }
static const module mamba[] = { OLD_MIXER("mixer"), { NULL, NULL } };
static const module jamba[] = { SELF_ATTN, GATED("feed_forward"), OLD_MIXER("mamba"), { NULL, NULL } };

/* Of models that are another family by their formula (dialect.c), as the code beside them or transformers has them. */
static const module baichuan[] = {
    { "self_attn.W_pack", "attn_q+attn_k+attn_v" }, { "self_attn.o_proj", "attn_output" }, GATED("mlp"), { NULL, NULL }
};
static const module internlm2[] = { { "attention.wqkv", "attn_q/attn_k/attn_v" },
                                    { "attention.wo", "attn_output" },
                                    { "feed_forward.w1", "ffn_gate" },
                                    { "feed_forward.w3", "ffn_up" },
                                    { "feed_forward.w2", "ffn_down" },
                                    { NULL, NULL } };
/* in memory, and as its first code and its checkpoints have it */
static const module hy_v3[] = {
    SELF_ATTN, GATED("mlp"), SHARED_IN("mlp.shared_experts"), SHARED_IN("mlp.shared_mlp"), { NULL, NULL }
};
static const module qwen[] = { { "attn.c_attn", "attn_q+attn_k+attn_v" },
                               { "attn.c_proj", "attn_output" },
                               { "mlp.w2", "ffn_gate" },
                               { "mlp.w1", "ffn_up" },
                               { "mlp.c_proj", "ffn_down" },
                               { NULL, NULL } };

static const module modern_bert[] = { { "attn.Wqkv", "attn_q+attn_k+attn_v" },
                                      { "attn.Wo", "attn_output" },
                                      { "mlp.Wi", "ffn_gate+ffn_up" },
                                      { "mlp.Wo", "ffn_down" },
                                      { NULL, NULL } };

/* Layers whose attention is one matrix call it otherwise: the slots say how. */
static const module deci[] = { SELF_ATTN, { "self_attn.linear_attn", "attn_output" }, GATED("mlp"), { NULL, NULL } };

/* Each family's; one that is not here has no PEFT folders. */
static const struct names {
    hn_family_set of;
    const module *list;
    const char *layers; /* NULL: the usual */
    const char *refused, *unwritten;
    bool transposed;
} all_names[] = {
    { .of = HN_LLAMA | HN_QWEN2 | HN_QWEN3 | HN_GEMMA | HN_GEMMA2 | HN_GEMMA3 | HN_MISTRAL3 | HN_SMOLLM3 | HN_OLMO2 |
            HN_EXAONE4 | HN_STABLELM | HN_NEMOTRON | HN_ORION | HN_SEED_OSS | HN_HUNYUAN | HN_ERNIE45 | HN_COMMAND_R |
            HN_COHERE2 | HN_ARCEE | HN_QWEN3MOE | HN_OLMOE | HN_MINIMAX_M2 | HN_GPT_OSS | HN_MELLUM | HN_APERTUS |
            HN_SMALLTHINKER | HN_PHIMOE | HN_MIMO2,
      .list = usual },
    { .of = HN_OLMO | HN_NANBEIGE | HN_BITNET | HN_BITNET158, .list = usual },
    { .of = HN_HRM_TEXT, .list = muse },
    { .of = HN_EUROBERT | HN_LLAMA_EMBED, .list = usual, .layers = "layers." },
    { .of = HN_MODERN_BERT, .list = modern_bert, .layers = "layers." },
    { .of = HN_DECI, .list = deci },
    { .of = HN_RWKV6 | HN_RWKV7, .refused = "PEFT has no names for its matrices" },
    { .of = HN_FALCON_H1,
      .refused = "its files have factors folded into their weights, which an adapter of the original would need too" },
    { .of = HN_PHI3, .list = fused_all },
    { .of = HN_GLM4 | HN_CHATGLM, .list = fused_gate },
    { .of = HN_PHI2, .list = phi2 },
    { .of = HN_EXAONE, .list = exaone, .layers = "transformer.h." },
    { .of = HN_STARCODER2, .list = starcoder2 },
    { .of = HN_GPTNEOX, .list = gptneox, .layers = "gpt_neox.layers." },
    { .of = HN_GPT2, .list = gpt2, .layers = "transformer.h.", .transposed = true },
    { .of = HN_STARCODER, .list = gpt2, .layers = "transformer.h." },
    { .of = HN_BLOOM, .list = bloom, .layers = "transformer.h." },
    { .of = HN_MPT, .list = mpt, .layers = "transformer.blocks." },
    { .of = HN_REFACT, .list = refact, .layers = "transformer.h." },
    { .of = HN_HUNYUAN_MOE, .list = hunyuan_moe },
    { .of = HN_BAILINGMOE2, .list = bailingmoe2 },
    { .of = HN_QWEN2MOE, .list = shared_expert },
    { .of = HN_QWEN35, .list = qwen35 },
    { .of = HN_QWEN35MOE, .list = qwen35moe },
    { .of = HN_QWEN3NEXT, .list = qwen3next },
    { .of = HN_QWEN4EXP, .list = qwen4exp },
    { .of = HN_DOTS1 | HN_GLM4MOE | HN_ERNIE45MOE | HN_DEEPSEEK | HN_EXAONE_MOE | HN_COHERE2MOE,
      .list = shared_experts },
    { .of = HN_AFMOE, .list = afmoe },
    { .of = HN_LAGUNA, .list = laguna },
    { .of = HN_STEP35, .list = laguna, .layers = "model.language_model.layers." },
    { .of = HN_MUSE_GLIMMER, .list = muse, .layers = "model.language_model.layers." },
    { .of = HN_SPARK2_5, .list = spark },
    { .of = HN_OPENELM, .list = openelm, .layers = "transformer.layers." },
    { .of = HN_TALKIE,
      .refused = "half of each head's rows have another sign in its file, and its gains are factors of its matrices" },
    { .of = HN_DBRX, .list = dbrx, .layers = "transformer.blocks." },
    { .of = HN_GEMMA4 | HN_GEMMA3N, .list = gemma4 },
    { .of = HN_LLAMA4, .list = llama4 },
    { .of = HN_GRANITE, .list = granite },
    { .of = HN_GRANITEMOE, .list = granitemoe },
    { .of = HN_GRANITE_SWA, .list = granite_swa },
    { .of = HN_GRANITEHYBRID, .list = granitehybrid },
    { .of = HN_DEEPSEEK2 | HN_MISTRAL4 | HN_MINICPM3, .list = latent },
    { .of = HN_DEEPSEEK32 | HN_GLM_DSA, .list = indexed },
    { .of = HN_LFM2 | HN_LFM2MOE, .list = lfm2 },
    { .of = HN_MAMBA2, .list = mixers, .layers = "backbone.layers." },
    { .of = HN_MAMBA, .list = mamba, .layers = "backbone.layers." },
    { .of = HN_JAMBA, .list = jamba },
    { .of = HN_NEMOTRON_H | HN_NEMOTRON_H_MOE, .list = mixers },
};

/* Files of another name for the same formula (dialect.c), whose makers' modules have other names, too. */
#define OTHER_MODULES .unwritten = "its modules have other names than those of the family that it is by its formula"
static const struct {
    const char *filed;
    struct names as; /* what is given here takes the place of the family's */
} other_names[] = {
    { "bailingmoe", { .list = bailingmoe2 } },
    { "qwen2vl", { .layers = "model.language_model.layers." } },
    { "qwen25vl", { .layers = "model.language_model.layers." } },
    { "qwen3vl", { .layers = "model.language_model.layers." } },
    { "qwen3vlmoe", { .layers = "model.language_model.layers." } },
    { "baichuan", { .list = baichuan, .layers = "model.layers." } },
    { "codeshell", { .list = gpt2, .layers = "transformer.h." } },
    { "falcon", { .list = bloom, .layers = "transformer.h." } },
    { "hy_v3", { .list = hy_v3 } },
    { "internlm2", { .list = internlm2 } },
    { "nemotron_h_omni", { OTHER_MODULES } },
    { "qwen", { .list = qwen, .layers = "transformer.h." } },
};

static struct names names_of(const hone_model *m)
{
    struct names n = { .refused = "hone does not know the names of its modules" };
    for (size_t i = 0; i < sizeof all_names / sizeof *all_names; i++)
        if (all_names[i].of & m->arch->bit) n = all_names[i];
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++) {
        const struct names *as = &other_names[i].as;
        if (strcmp(other_names[i].filed, m->filed_arch)) continue;
        if (as->list) n.list = as->list;
        if (as->layers) n.layers = as->layers;
        n.unwritten = as->unwritten;
    }
    if (m->arch->bit == HN_REFACT &&
        !strcmp(m->filed_arch, "baichuan")) /* pairs, as those of 7B, though nothing turns */
        n.refused = "its file has the rows of each head in another order than its modules";
    if (m->arch->bit == HN_GLM4 && m->hp.rope_neox) /* only the half that turns is in another order there */
        n.refused = "its file has the rows of each head in another order than its modules";
    if (!n.layers) n.layers = "model.layers.";
    return n;
}

const char *hn_modules_refused(const hone_model *m) { return names_of(m).refused; }
const char *hn_modules_unwritten(const hone_model *m)
{
    const struct names n = names_of(m);
    return n.refused ? n.refused : n.unwritten;
}
bool hn_modules_transposed(const hone_model *m) { return names_of(m).transposed; }

/* ---- places ------------------------------------------------------------------------------------------------ */

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && !memcmp(s.ptr, t, s.len); }

/* Rows of a slot of Qwen3.5's delta rule, or columns of what comes out of it. */
static hn_lora_tiles tiles_of(const hone_model *m, hn_role role, bool columns)
{
    const hn_hparams *hp = &m->hp;
    const int64_t d = hp->ssm_state;
    hn_lora_tiles t = { 0 };
    if (!(m->arch->bit & (HN_QWEN35 | HN_QWEN35MOE | HN_QWEN4EXP)) || columns != (role == HN_ROLE_SSM_OUT)) return t;
    if (role == HN_ROLE_GDN_QKV) t.front = 2 * d * hp->ssm_group;
    if (role == HN_ROLE_GDN_QKV || role == HN_ROLE_GDN_GATE || role == HN_ROLE_SSM_OUT) t.per = d;
    else if (role == HN_ROLE_GDN_BETA || role == HN_ROLE_GDN_ALPHA) t.per = 1;
    if (!t.per) return t;
    t.each = hp->ssm_head / hp->ssm_group;
    t.n_key = t.each > 1 ? hp->ssm_group : 0;
    return t;
}

/* Adds the matrices that a slot fills. */
static void add_slot(hn_lora_place *at, const hone_model *m, const hn_slot *s)
{
    const hn_layer_plan *p = &m->plan[at->il];
    const hn_dim *part = hn_slot_rarely(s)->part;
    for (int i = 0; (i == 0 || (i < HN_MAX_PART && part[i])) && at->n_part < HN_MAX_PART; i++) {
        size_t field = s->field + (size_t)i * hn_slot_stride(s);
        const hn_slot *own = part[0] ? hn_family_field(m->arch, field) : s;
        hn_turn turn = own && !hn_slot_rarely(own)->part[0] ? own->turn : HN_TURN_NONE;
        at->part[at->n_part].field = field;
        at->part[at->n_part].tiles = tiles_of(m, own ? own->role : s->role, false);
        at->columns = tiles_of(m, s->role, true);
        at->part[at->n_part].rows = hn_dim_value(&m->hp, p, part[0] ? part[i] : s->ne[1]);
        at->part[at->n_part++].turned = turn == HN_TURN_Q ? p->n_head : turn == HN_TURN_K ? p->n_head_kv : 0;
    }
}

/* The family's slot of that name in the layer, whose rows are one matrix if there is such a one. */
static const hn_slot *slot_named(const hone_model *m, int32_t il, const char *name, size_t n)
{
    const hn_slot *found = NULL;
    for (const hn_slot *s = m->arch->layer; s->name; s++)
        if (hn_slot_is_matrix(s) && hn_slot_in(s, &m->plan[il]) && strlen(s->name) == n + strlen(".weight") &&
            !memcmp(s->name, name, n) && (!found || !hn_slot_rarely(s)->part[0]))
            found = s;
    return found;
}

/* Does layer il call the matrix so? Of Deci's, attention and what stands in its place have the same slot. */
static bool is_called_so(const hone_model *m, int32_t il, const module *k)
{
    const hn_slot *s = m->arch->bit == HN_DECI ? slot_named(m, il, k->slots, strlen(k->slots)) : NULL;
    return !s || !s->hf || !strcmp(s->hf, k->name);
}

/* The module's place in layer il; false: the layer lacks some of it. */
static bool place_module(hn_lora_place *at, const hone_model *m, int32_t il, const module *k)
{
    *at = (hn_lora_place){ .il = il, .dealt = strchr(k->slots, '/') != NULL, .module = true };
    if (!is_called_so(m, il, k)) return false;
    for (const char *s = k->slots; *s;) {
        size_t n = strcspn(s, "+/");
        const hn_slot *slot = slot_named(m, il, s, n);
        if (!slot) return false;
        add_slot(at, m, slot);
        s += n + (s[n] != 0);
    }
    return true;
}

bool hn_module_tensor(hn_lora_place *at, const hone_model *m, const char *tensor)
{
    const char *dot = strncmp(tensor, "blk.", 4) ? NULL : strchr(tensor + 4, '.');
    long il = dot ? strtol(tensor + 4, NULL, 10) : -1;
    *at = (hn_lora_place){ .il = -1 };
    if (!dot || il < 0 || il >= m->hp.n_layer || (at->il = hn_layer_of(&m->hp, (int32_t)il)) < 0) return false;
    for (const hn_slot *s = m->arch->layer; s->name; s++) {
        int64_t row;
        if (strcmp(s->name, dot + 1) || !hn_slot_is_matrix(s) || hn_bound_slot(m, at->il, s->field, &row) != s)
            continue;
        add_slot(at, m, s);
        return true;
    }
    return false;
}

static bool same_parts(const hn_lora_place *a, const hn_lora_place *b)
{
    if (a->n_part != b->n_part) return false;
    for (int i = 0; i < a->n_part; i++)
        if (a->part[i].field != b->part[i].field) return false;
    return true;
}

/* Are a module's rows in the order of the file's? */
static bool in_order(const hn_lora_place *at)
{
    for (int i = 0; i < at->n_part; i++)
        if (at->part[i].turned || at->part[i].tiles.n_key) return false;
    return !at->dealt && !at->columns.n_key;
}

/* The second of two stacks comes behind the first in files, and has a name of its own there. */
static void module_name(char dst[HN_LORA_NAME], const hone_model *m, const char *layers, int32_t block,
                        const char *rest)
{
    const int32_t n = m->hp.n_stack;
    if (!n) snprintf(dst, HN_LORA_NAME, "%s%d.%s", layers, (int)block, rest);
    else snprintf(dst, HN_LORA_NAME, "model.%c_module.layers.%d.%s", block < n ? 'L' : 'H', (int)(block % n), rest);
}

/* The number after the layers' prefix, whatever stands around the language model, as a block of the file; -1: none.
 * *rest: what follows. */
static int32_t layer_of(const hone_model *m, hone_str s, hone_str *rest)
{
    static const char *const around[] = { "model.", "language_model.", "backbone.", "transformer.", "gpt_neox." };
    for (size_t i = 0; i < sizeof around / sizeof *around;) {
        size_t n = strlen(around[i++]);
        if (s.len <= n || memcmp(s.ptr, around[i - 1], n)) continue;
        s.ptr += n, s.len -= n;
        i = 0;
    }
    int32_t first = 0;
    if (m->hp.n_stack && s.len > sizeof "L_module." && (s.ptr[0] == 'L' || s.ptr[0] == 'H') &&
        !memcmp(s.ptr + 1, "_module.", sizeof "_module." - 1)) {
        first = s.ptr[0] == 'H' ? m->hp.n_stack : 0;
        s.ptr += sizeof "L_module." - 1, s.len -= sizeof "L_module." - 1;
    }
    static const char *const lists[] = { "layers.", "h.", "blocks." };
    size_t n = 0;
    for (size_t i = 0; !n && i < sizeof lists / sizeof *lists; i++) {
        const size_t len = strlen(lists[i]);
        if (s.len > len && !memcmp(s.ptr, lists[i], len)) n = len;
    }
    int32_t il = 0;
    size_t at = n;
    for (; n && at < s.len && at < n + 5 && s.ptr[at] >= '0' && s.ptr[at] <= '9'; at++)
        il = 10 * il + (s.ptr[at] - '0');
    if (!n || at == n || at + 1 >= s.len || s.ptr[at] != '.') return -1;
    *rest = (hone_str){ s.ptr + at + 1, s.len - at - 1 };
    return first + il;
}

const char *hn_module_outside(const char *tensor) { return strcmp(tensor, "output.weight") ? NULL : "lm_head"; }

bool hn_module_find(hn_lora_place *at, char tensor[96], bool *alone, const hone_model *m, hone_str module_name)
{
    const struct names n = names_of(m);
    hone_str rest;
    *at = (hn_lora_place){ .il = -1 };
    *alone = true;
    if (is(module_name, "lm_head") || is(module_name, "embed_out")) return snprintf(tensor, 96, "output.weight") > 0;
    const int32_t block = layer_of(m, module_name, &rest), il = block < 0 ? -1 : hn_layer_of(&m->hp, block);
    const module *first = NULL;
    for (const module *k = n.list; k && block >= 0 && k->name; k++) {
        if (!is(rest, k->name) || (il >= 0 && !is_called_so(m, il, k))) continue;
        if (!first) first = k;
        if (il < 0 || !place_module(at, m, il, k)) continue;
        int64_t row;
        const hn_slot *s = hn_bound_slot(m, il, at->part[0].field, &row);
        if (!s) continue;
        hn_lora_place there;
        snprintf(tensor, 96, "blk.%d.%.64s", (int)block, s->name);
        *alone = hn_module_tensor(&there, m, tensor) && same_parts(at, &there) && in_order(at);
        return true;
    }
    *at = (hn_lora_place){ .il = -1 };
    if (!first) return false; /* else the file lacks it: its name there tells */
    return snprintf(tensor, 96, "blk.%d.%.*s.weight", (int)block, (int)strcspn(first->slots, "+/"), first->slots) > 0;
}

/* Is at[n] another than those before it? */
static bool is_new(const hn_lora_place *at, int n)
{
    for (int i = 0; i < n; i++)
        if (same_parts(&at[i], &at[n])) return false;
    return true;
}

int hn_modules_of(char name[HN_MAX_PART][HN_LORA_NAME], hn_lora_place at[HN_MAX_PART], const hone_model *m,
                  const hn_lora_place *tensor)
{
    const struct names names = names_of(m);
    int n = 0;
    for (int i = 0; i < tensor->n_part && n < HN_MAX_PART; i++) {
        const module *k = names.list;
        bool found = false;
        for (; k && k->name && !found; k++) {
            if (!place_module(&at[n], m, tensor->il, k)) continue;
            for (int j = 0; j < at[n].n_part; j++) found = found || at[n].part[j].field == tensor->part[i].field;
            if (found) module_name(name[n], m, names.layers, hn_block_of(&m->hp, tensor->il), k->name);
        }
        if (!found) return -1;
        n += is_new(at, n);
    }
    return n;
}

int hn_modules_tensors(char name[HN_MAX_PART][HN_LORA_NAME], hn_lora_place at[HN_MAX_PART], const hone_model *m,
                       const hn_lora_place *from)
{
    int n = 0;
    for (int i = 0; i < from->n_part && n < HN_MAX_PART; i++) {
        int64_t row;
        const hn_slot *s = hn_bound_slot(m, from->il, from->part[i].field, &row);
        if (!s) return -1;
        snprintf(name[n], HN_LORA_NAME, "blk.%d.%.64s", (int)hn_block_of(&m->hp, from->il), s->name);
        if (!hn_module_tensor(&at[n], m, name[n])) return -1;
        n += is_new(at, n);
    }
    return n;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

int64_t hn_modules_rows(const hn_lora_place *at)
{
    int64_t n = 0;
    for (int i = 0; i < at->n_part; i++) n += at->part[i].rows;
    return n;
}

/* Where row (or column) r of the file is in a module. */
static int64_t by_key(const hn_lora_tiles *t, int64_t r)
{
    if (!t->n_key || r < t->front) return r;
    int64_t head = (r - t->front) / t->per;
    return t->front + (head % t->n_key * t->each + head / t->n_key) * t->per + (r - t->front) % t->per;
}

/* Where the head of queries, keys or values (i) that row r is of stands in a matrix in which the heads of queries of a
 * head of keys come first, then that, then its values. */
static int64_t dealt_head(const hn_lora_place *at, int i, int64_t head)
{
    const int64_t each = at->part[1].rows ? at->part[0].rows / at->part[1].rows : 1;
    return i ? head * (each + 2) + each + i - 1 : head / each * (each + 2) + head % each;
}

/* Where row r of part i is, of heads of d: in a module whose heads are halves, row 2k + j of a head is its row
 * j·(d/2) + k. */
static int64_t row_of(const hn_lora_place *at, int i, int64_t r, int64_t d)
{
    const bool turned = at->module && at->part[i].turned;
    int64_t before = 0;
    for (int k = 0; k < i; k++) before += at->part[k].rows;
    if (at->module && at->part[i].tiles.n_key) return before + by_key(&at->part[i].tiles, r);
    if (!at->dealt && !turned) return before + r;
    const int64_t in = r % d, first = at->dealt ? dealt_head(at, i, r / d) * d : before + r - in;
    return first + (turned ? (in & 1) * (d / 2) + in / 2 : in);
}

static int part_of(const hn_lora_place *at, int32_t il, size_t field)
{
    for (int i = 0; at->il == il && i < at->n_part; i++)
        if (at->part[i].field == field) return i;
    return -1;
}

static bool gives(const hn_lora_thing *t, const hn_lora_place *to)
{
    for (int i = 0; i < to->n_part; i++)
        if (part_of(&t->at, to->il, to->part[i].field) >= 0) return true;
    return false;
}

int64_t hn_modules_rank(const hn_lora_place *to, const hn_lora_thing *thing, int32_t n, int32_t *n_source)
{
    int64_t rank = 0;
    *n_source = 0;
    for (int32_t k = 0; k < n; k++) {
        if (!gives(&thing[k], to)) continue;
        rank += thing[k].pair.rank;
        ++*n_source;
    }
    return rank;
}

/* A's rows, whose columns are in the module's order in one of both. */
static void gather_a(float *a, const hn_lora_place *to, const hn_lora_thing *t)
{
    const hn_lora_pair *p = &t->pair;
    if (!to->columns.n_key) memcpy(a, p->a, (size_t)(p->rank * p->n_in) * sizeof *a);
    else
        for (int64_t i = 0; i < p->rank * p->n_in; i++) {
            int64_t c = i % p->n_in, in_module = i - c + by_key(&to->columns, c);
            a[to->module ? in_module : i] = p->a[t->at.module ? in_module : i];
        }
}

void hn_modules_gather(float *a, float *b, float *scale, const hn_lora_place *to, int64_t rank,
                       const hn_lora_thing *thing, int32_t n, int64_t head_dim)
{
    int32_t n_source;
    int64_t column = 0, n_out = hn_modules_rows(to);
    hn_modules_rank(to, thing, n, &n_source);
    *scale = 1;
    memset(b, 0, (size_t)(n_out * rank) * sizeof *b);
    for (int32_t k = 0; k < n; k++) {
        const hn_lora_pair *p = &thing[k].pair;
        if (!gives(&thing[k], to)) continue;
        float factor = n_source > 1 ? p->scale : 1;
        if (n_source == 1) *scale = p->scale;
        gather_a(a + column * p->n_in, to, &thing[k]);
        for (int i = 0; i < to->n_part; i++) {
            int j = part_of(&thing[k].at, to->il, to->part[i].field);
            for (int64_t r = 0; j >= 0 && r < to->part[i].rows; r++) {
                const float *from = p->b + row_of(&thing[k].at, j, r, head_dim) * p->rank;
                float *row = b + row_of(to, i, r, head_dim) * rank + column;
                for (int64_t c = 0; c < p->rank; c++) row[c] = factor * from[c];
            }
        }
        column += p->rank;
    }
}
