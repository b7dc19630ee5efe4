/* families_moe: transformers with mixtures of experts in some or all layers. A row is its tensors, its switches and how
 * it chooses.
 *   qwen3moe      qwen3; softmax, weights that add up to 1
 *   mellum        qwen3moe; windows
 *   qwen2moe      qwen2; softmax, weights as they are; a shared expert with a gate
 *   hunyuan-moe   hunyuan-dense; softmax, weights that add up to 1; a shared expert
 *   deepseek      llama; the first layers dense; softmax, weights as they are, or, as Ling's say, adding up to 1; a
 *                 shared expert
 *   bailingmoe2   part of each head turns; as dots1
 *   olmoe         q and k normed over all heads together; softmax, weights as they are
 *   granitemoe    granite; softmax, weights that add up to 1; maybe a shared expert, or no experts at all
 *   granite_swa   granitemoe; windows, sinks, a table of layers that turn
 *   dots1         qwen3; the first layers dense; sigmoid, a bias of the choice alone; shared expert
 *   ernie4_5-moe  ernie4_5; softmax, a bias of the choice; shared expert
 *   exaone-moe    windows, without which nothing turns; as dots1
 *   afmoe         windows, without which nothing turns; norms on both sides, a gate of what attention gives; as dots1
 *   laguna        windows, whose layers turn by a base of their own; heads of queries differ from layer to layer;
 *                 a gate of what attention gives, by softplus, of each head or each number; as dots1
 *   step35        as laguna, whose gate is σ; layers without the window turn half as much; gates have limits
 *   mimo2         windows, of whose layers heads of keys are others; values narrower than keys, and scaled; sinks; as
 *                 dots1, which layers have experts their routers say
 *   smallthinker  windows, without which nothing turns; relu; the router sees what the layer begins with
 *   cohere2moe    cohere2; the first layers dense, and turning; sigmoid; half of what all experts give
 *   phimoe        LayerNorm, biases; the two best, each weighed among those near it
 *   glm4moe       half of each head turns; as dots1
 *   minimax-m2    half of each head turns, norms over all heads together; sigmoid with a bias
 *   gpt-oss       windows on every other layer, sinks, biases everywhere, a clamped gate; softmax of the chosen
 *   llama4        neighbours turn, but on every fourth layer; one expert, weighed at its input, and a shared one */
#include "model/family_rows.h"

#define HEADS_NORMED(n_q, n_k)                                                                          \
    NORM("attn_q_norm", attn_q_norm, n_q, "self_attn.q_norm", MAY, .together = HN_TOGETHER_HEAD_NORMS), \
        NORM("attn_k_norm", attn_k_norm, n_k, "self_attn.k_norm", MAY, .together = HN_TOGETHER_HEAD_NORMS)

/* ---- softmax over all ---------------------------------------------------------------------------------- */

static const hn_slot qwen3moe_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), QK_NORM(HN_TURN_NONE), FFN_NORM, ROUTER, EXPERTS, { 0 },
};
const hn_family hn_family_qwen3moe =
    TRANSFORMER("qwen3moe", HN_QWEN3MOE, false, hn_plain_outer, qwen3moe_layer, .neox = true, .ffn = HN_FFN_MOE,
                .qk_norm = HN_HEAD_NORM_EACH, MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS));

/* Mellum 2: windows, whose layers turn by a base of their own and are not scaled */
const hn_family hn_family_mellum =
    TRANSFORMER("mellum", HN_MELLUM, false, hn_plain_outer, qwen3moe_layer, .neox = true, .ffn = HN_FFN_MOE,
                .qk_norm = HN_HEAD_NORM_EACH, .reads = HN_READS_WINDOW, .window_period = 4,
                .window_rope = HN_WINDOW_ROPE_PLAIN, MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS));

static const hn_slot qwen2moe_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    FFN_NORM,
    ROUTER,
    EXPERTS,
    SHARED(HN_NEEDED),
    LINEAR("ffn_gate_inp_shexp", ffn_gate_inp_shexp, SHARED_ROUTER, WHOLE, E, 1, IN_MOE),
    { 0 },
};
const hn_family hn_family_qwen2moe =
    TRANSFORMER("qwen2moe", HN_QWEN2MOE, false, hn_plain_outer, qwen2moe_layer, .neox = true, .ffn = HN_FFN_MOE,
                MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_NEVER));

static const hn_slot hunyuan_moe_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("attn_q_norm", attn_q_norm, HN_DIM_HEAD, "self_attn.query_layernorm"),
    NORM("attn_k_norm", attn_k_norm, HN_DIM_HEAD, "self_attn.key_layernorm"),
    FFN_NORM,
    ROUTER,
    EXPERTS,
    SHARED(HN_NEEDED),
    { 0 },
};
const hn_family hn_family_hunyuan_moe = TRANSFORMER(
    "hunyuan-moe", HN_HUNYUAN_MOE, false, hn_factors_outer, hunyuan_moe_layer, .neox = true, .ffn = HN_FFN_MOE,
    .qk_norm = HN_HEAD_NORM_EACH, .qk_norm_after = true, MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS));

static const hn_slot deepseek_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_Q, HN_TURN_K), FFN_NORM, DENSE_GLU, ROUTER, EXPERTS, SHARED(HN_NEEDED), { 0 },
};
const hn_family hn_family_deepseek =
    TRANSFORMER("deepseek", HN_DEEPSEEK, false, hn_factors_outer, deepseek_layer, .ffn = HN_FFN_MOE,
                MOE(.gating = HN_GATING_SOFTMAX, .reads_lead = true));

static const hn_slot olmoe_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("attn_q_norm", attn_q_norm, Q, "self_attn.q_norm"),
    NORM("attn_k_norm", attn_k_norm, K, "self_attn.k_norm"),
    FFN_NORM,
    ROUTER,
    EXPERTS,
    { 0 },
};
const hn_family hn_family_olmoe =
    TRANSFORMER("olmoe", HN_OLMOE, false, hn_plain_outer, olmoe_layer, .neox = true, .ffn = HN_FFN_MOE,
                .qk_norm = HN_HEAD_NORM_FULL, MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_NEVER));

static const hn_slot granitemoe_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_Q, HN_TURN_K), FFN_NORM, DENSE_GLU, ROUTER, EXPERTS, SHARED(HN_OPTIONAL), { 0 },
};
const hn_family hn_family_granitemoe =
    TRANSFORMER("granitemoe", HN_GRANITEMOE, false, hn_factors_outer, granitemoe_layer, .reads = HN_READS_SCALES,
                .ffn = HN_FFN_MOE, MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS, .maybe = true));

/* Its converter leaves the shared expert's first two matrices in one. */
#define SHARED_APART "ffn_gate_shexp.weight"
static const hn_slot granite_swa_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_Q, HN_TURN_K),
    VECTOR("attn_sinks.weight", OF(attn_sinks), HN_DIM_HEADS),
    FFN_NORM,
    DENSE_GLU,
    DENSE_BIASES,
    ROUTER,
    EXPERTS,
    LINEAR("ffn_up_shexp", ffn_gate_shexp, SHARED_GATE, KEEP, E, HN_DIM_FF2_SHARED,
           RARE(.without = SHARED_APART, .part = { HN_DIM_FF_SHARED, HN_DIM_FF_SHARED }), MAY, SHARED_EXPERT),
    LINEAR("ffn_gate_shexp", ffn_gate_shexp, SHARED_GATE, KEEP, E, HN_DIM_FF_SHARED, RARE(.with = SHARED_APART), MAY,
           IN_MOE),
    LINEAR("ffn_up_shexp", ffn_up_shexp, SHARED_UP, KEEP, E, HN_DIM_FF_SHARED, RARE(.with = SHARED_APART), MAY, IN_MOE),
    LINEAR("ffn_down_shexp", ffn_down_shexp, SHARED_DOWN, ROWS, HN_DIM_FF_SHARED, E, MAY, SHARED_EXPERT),
    { 0 },
};
const hn_family hn_family_granite_swa =
    TRANSFORMER("granite_swa", HN_GRANITE_SWA, false, hn_granite_outer, granite_swa_layer,
                .reads = HN_READS_SCALES | HN_READS_WINDOW | HN_READS_TURNING, .ffn = HN_FFN_MOE, .window_period = 4,
                .first_sees = true, .needs_window = true,
                MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS, .maybe = true));

static const hn_slot ernie_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), FFN_NORM, DENSE_GLU, ROUTER, CHOICE_BIAS, EXPERTS, SHARED(HN_OPTIONAL),
    { 0 },
};
const hn_family hn_family_ernie4_5_moe =
    TRANSFORMER("ernie4_5-moe", HN_ERNIE45MOE, false, hn_plain_outer, ernie_layer, .ffn = HN_FFN_MOE,
                MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS, .reads_lead = true));

/* ---- sigmoid, and a bias of the choice ------------------------------------------------------------------ */

static const hn_slot dots1_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    QK_NORM(HN_TURN_NONE),
    FFN_NORM,
    DENSE_GLU,
    ROUTER,
    CHOICE_BIAS,
    EXPERTS,
    SHARED(HN_OPTIONAL),
    { 0 },
};
const hn_family hn_family_dots1 =
    TRANSFORMER("dots1", HN_DOTS1, false, hn_plain_outer, dots1_layer, .neox = true, .ffn = HN_FFN_MOE,
                .qk_norm = HN_HEAD_NORM_EACH, MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true));

const hn_family hn_family_bailingmoe2 = TRANSFORMER(
    "bailingmoe2", HN_BAILINGMOE2, false, hn_plain_outer, dots1_layer, .neox = true, .reads = HN_READS_NEXTN,
    .ffn = HN_FFN_MOE, .qk_norm = HN_HEAD_NORM_EACH, MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true));

const hn_family hn_family_exaone_moe =
    TRANSFORMER("exaone-moe", HN_EXAONE_MOE, false, hn_factors_outer, dots1_layer, .neox = true,
                .reads = HN_READS_WINDOW | HN_READS_NEXTN, .ffn = HN_FFN_MOE, .qk_norm = HN_HEAD_NORM_EACH,
                .window_period = 4, .needs_window = true, .window_rope = HN_WINDOW_ROPE_ALONE,
                MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true));

static const hn_slot afmoe_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    QK_NORM(HN_TURN_NONE),
    LINEAR("attn_gate", attn_gate, ATTN_GATE, HEADS, E, Q, .hf = "self_attn.gate_proj"),
    NORM("post_attention_norm", attn_post_norm, E, "post_attention_layernorm"),
    NORM("ffn_norm", ffn_norm, E, "pre_mlp_layernorm"),
    DENSE_GLU,
    ROUTER,
    CHOICE_BIAS,
    EXPERTS,
    SHARED(HN_OPTIONAL),
    NORM("post_ffw_norm", ffn_post_norm, E, "post_mlp_layernorm"),
    { 0 },
};
const hn_family hn_family_afmoe = TRANSFORMER(
    "afmoe", HN_AFMOE, false, hn_plain_outer, afmoe_layer, .neox = true, .sqrt_embd = true, .own_gate = true,
    .reads = HN_READS_WINDOW, .ffn = HN_FFN_MOE, .qk_norm = HN_HEAD_NORM_EACH, .window_period = 4, .needs_window = true,
    .window_rope = HN_WINDOW_ROPE_ALONE, MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true));

static const hn_slot laguna_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    QK_NORM(HN_TURN_NONE),
    LINEAR("attn_gate", attn_gate, ATTN_GATE, HEADS, E, HN_DIM_GATES, .hf = "self_attn.g_proj"),
    FFN_NORM,
    DENSE_GLU,
    ROUTER,
    CHOICE_BIAS,
    EXPERTS,
    SHARED(HN_NEEDED),
    { 0 },
};

/* The first layer's gate tells which kind all of them are. */
static hone_status laguna_hparams(hone_model *m, hone_error *err)
{
    hone_status st = hn_attn_hparams(m, err);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(m->file, "blk.0.attn_gate.weight");
    m->hp.gate_heads = st == HONE_OK && (!t || t->ne[1] == (uint64_t)m->hp.heads_of[0]);
    return st;
}
const hn_family hn_family_laguna = {
    .name = "laguna",
    .bit = HN_LAGUNA,
    .hparams = laguna_hparams,
    .plan = hn_attn_plan,
    .outer = hn_plain_outer,
    .layer = laguna_layer,
    .is = &(const hn_switches){ .neox = true,
                                .own_gate = true,
                                .gate_map = HN_MAP_SOFTPLUS,
                                .reads = HN_READS_WINDOW | HN_READS_QUERIES,
                                .ffn = HN_FFN_MOE,
                                .qk_norm = HN_HEAD_NORM_EACH,
                                .window_period = 4,
                                .first_sees = true,
                                .window_rope = HN_WINDOW_ROPE_PLAIN,
                                MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true) },
};

hone_status hn_window_list(hone_model *m, hone_error *err)
{
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK || m->hp.windowed) return st;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing or no list of layers; architecture %s needs one",
                   m->path, hn_arch_key(m, key, "attention.sliding_window_pattern"), m->arch->name);
}

/* A number above 0 for each layer, or 0: no limit. */
static hone_status limits_of(hone_model *m, const char *suffix, const float **out, hone_error *err)
{
    char key[128];
    hn_gguf_array a = { .count = 0 };
    const int64_t at = hn_gguf_find(m->file, hn_arch_key(m, key, suffix));
    const int32_t n = m->hp.n_layer;
    if (at < 0) return HONE_OK;
    float *v = hn_arena_alloc(m->arena, (size_t)n * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", m->path);
    const bool list = hn_gguf_kv_array(m->file, (uint64_t)at, &a);
    if (!list) {
        hone_status st = hn_get_real(m, suffix, -1e-30, 1e9, 0, &v[0], err);
        if (st != HONE_OK) return st;
    }
    for (int32_t il = 0; il < n; il++) {
        double x = (double)v[0];
        if (list && ((uint64_t)il >= a.count || !hn_array_number(&a, (uint64_t)il, &x) || !(x >= 0 && x <= 1e9)))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%d], expected a number of at least 0 for each of %d layers",
                           m->path, key, (int)il, n);
        v[il] = x > 1e-6 ? (float)x : 0;
    }
    *out = v;
    return HONE_OK;
}

/* Gates have limits in some layers; of heads alone. Which layers have the window, the file must say. */
static hone_status step_hparams(hone_model *m, hone_error *err)
{
    hone_status st = hn_window_list(m, err);
    if (st != HONE_OK) return st;
    m->hp.gate_heads = true;
    if ((st = limits_of(m, "swiglu_clamp_exp", &m->hp.limit_exp_of, err)) != HONE_OK) return st;
    return limits_of(m, "swiglu_clamp_shexp", &m->hp.limit_of, err);
}
const hn_family hn_family_step35 = {
    .name = "step35",
    .bit = HN_STEP35,
    .hparams = step_hparams,
    .plan = hn_attn_plan,
    .outer = hn_factors_outer,
    .layer = laguna_layer,
    .is = &(const hn_switches){ .neox = true,
                                .own_gate = true,
                                .reads = HN_READS_WINDOW | HN_READS_QUERIES | HN_READS_NEXTN,
                                .ffn = HN_FFN_MOE,
                                .qk_norm = HN_HEAD_NORM_EACH,
                                .needs_window = true,
                                .half_turns = true,
                                .window_rope = HN_WINDOW_ROPE_PLAIN,
                                .window_base = 10000,
                                MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true) },
};

static const hn_slot mimo2_layer[] = {
    ATTN_NORM,
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    QKV_BIAS(HN_OPTIONAL),
    VECTOR("attn_sinks.weight", OF(attn_sinks), HN_DIM_HEADS, MAY),
    ATTN_OUT,
    FFN_NORM,
    DENSE_GLU,
    ROUTER,
    CHOICE_BIAS,
    EXPERTS,
    { 0 },
};
static hone_status mimo2_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    hone_status st = hn_window_list(m, err);
    for (int32_t il = 0; st == HONE_OK && il < m->hp.n_layer; il++)
        if (!m->hp.kv_of[il])
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%d] = 0, expected at least 1", m->path,
                           hn_arch_key(m, key, "attention.head_count_kv"), (int)il);
    return st;
}
const hn_family hn_family_mimo2 = {
    .name = "mimo2",
    .bit = HN_MIMO2,
    .hparams = mimo2_hparams,
    .plan = hn_by_layer_plan,
    .outer = hn_plain_outer,
    .layer = mimo2_layer,
    .is = &(const hn_switches){ .neox = true,
                                .reads = HN_READS_WINDOW | HN_READS_LAYERS | HN_READS_NEXTN | HN_READS_VALUES,
                                .ffn = HN_FFN_MOE,
                                .needs_window = true,
                                .window_rope = HN_WINDOW_ROPE_PLAIN,
                                .window_base = 10000,
                                MOE(.gating = HN_GATING_SIGMOID, .norm = HN_MOE_NORM_ALWAYS, .by_router = true,
                                    .reads_lead = true) },
};

static const hn_slot smallthinker_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), FFN_NORM, ROUTER, EXPERTS, { 0 },
};
const hn_family hn_family_smallthinker = TRANSFORMER(
    "smallthinker", HN_SMALLTHINKER, false, hn_plain_outer, smallthinker_layer, .neox = true, .act = HN_GLU_RELU,
    .early = true, .reads = HN_READS_WINDOW, .ffn = HN_FFN_MOE, .window_period = 4, .first_sees = true,
    .window_rope = HN_WINDOW_ROPE_ALONE, MOE(.gating_absent = HN_GATING_SIGMOID, .norm = HN_MOE_NORM_ALWAYS));

static const hn_slot cohere2moe_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), DENSE_GLU, ROUTER, EXPERTS, SHARED(HN_OPTIONAL), { 0 },
};

/* LayerNorm, or, where its epsilon is there, RMSNorm. */
static hone_status cohere2moe_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    m->hp.layer_norm = hn_gguf_find(m->file, hn_arch_key(m, key, "attention.layer_norm_rms_epsilon")) < 0;
    return st;
}

/* The first layers, which are dense, see everything and turn all the same. */
static void cohere2moe_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hn_attn_plan(out, hp, il);
    if (il < hp->moe.n_lead && out->rope < 0) out->rope = HN_ROPE_ALL;
}

const hn_family hn_family_cohere2moe = {
    .name = "cohere2moe",
    .bit = HN_COHERE2MOE,
    .hparams = cohere2moe_hparams,
    .plan = cohere2moe_plan,
    .outer = hn_plain_outer,
    .layer = cohere2moe_layer,
    .is = &(const hn_switches){ .parallel = true,
                                .ffn = HN_FFN_MOE,
                                .reads = HN_READS_LOGIT_SCALE | HN_READS_WINDOW | HN_READS_NEXTN | HN_READS_EITHER_EPS,
                                .window_period = 4,
                                .first_sees = true,
                                .needs_window = true,
                                .window_rope = HN_WINDOW_ROPE_ALONE,
                                MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true, .average = true) },
};

static const hn_slot glm4moe_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    HEADS_NORMED(HN_DIM_HEAD, HN_DIM_HEAD),
    NORM("post_attention_norm", ffn_norm, E, "post_attention_layernorm"),
    DENSE_GLU,
    ROUTER,
    CHOICE_BIAS,
    EXPERTS,
    SHARED(HN_OPTIONAL),
    { 0 },
};
const hn_family hn_family_glm4moe = TRANSFORMER(
    "glm4moe", HN_GLM4MOE, false, hn_plain_outer, glm4moe_layer, .neox = true, .reads = HN_READS_NEXTN,
    .ffn = HN_FFN_MOE, .qk_norm = HN_HEAD_NORM_EACH, MOE(.gating_absent = HN_GATING_SIGMOID, .reads_lead = true));

static const hn_slot minimax_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("attn_q_norm", attn_q_norm, Q, "self_attn.q_norm"),
    NORM("attn_k_norm", attn_k_norm, K, "self_attn.k_norm"),
    FFN_NORM,
    ROUTER,
    CHOICE_BIAS,
    EXPERTS,
    { 0 },
};
const hn_family hn_family_minimax_m2 =
    TRANSFORMER("minimax-m2", HN_MINIMAX_M2, false, hn_plain_outer, minimax_layer, .neox = true, .ffn = HN_FFN_MOE,
                .qk_norm = HN_HEAD_NORM_FULL, MOE(.gating_absent = HN_GATING_SIGMOID, .norm = HN_MOE_NORM_ALWAYS));

/* ---- one after the other ---------------------------------------------------------------------------------- */

static const hn_slot phimoe_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("output_norm.bias", OUTSIDE(output_norm_b), E, .when = HN_NEEDED),
    TWO_FACTORS,
    { 0 },
};
static const hn_slot phimoe_layer[] = {
    LAYER_NORM("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    LAYER_NORM("ffn_norm", ffn_norm, "post_attention_layernorm"),
    ROUTER,
    EXPERTS,
    { 0 },
};

/* Its converter calls the epsilon RMSNorm's. */
const hn_family hn_family_phimoe = TRANSFORMER("phimoe", HN_PHIMOE, false, phimoe_outer, phimoe_layer, .neox = true,
                                               .layer_norm = true, .reads = HN_READS_EITHER_EPS, .ffn = HN_FFN_MOE,
                                               MOE(.gating = HN_GATING_SPARSE, .norm = HN_MOE_NORM_NEVER));

/* ---- of the chosen alone ---------------------------------------------------------------------------------- */

static const hn_slot gpt_oss_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    VECTOR("attn_sinks.weight", OF(attn_sinks), HN_DIM_HEADS),
    NORM("post_attention_norm", ffn_norm, E, "post_attention_layernorm"),
    ROUTER,
    EXPERTS,
    EXPERT_BIASES,
    { 0 },
};
const hn_family hn_family_gpt_oss =
    TRANSFORMER("gpt-oss", HN_GPT_OSS, false, hn_plain_outer, gpt_oss_layer, .neox = true, .ffn = HN_FFN_MOE,
                .act = HN_GLU_OAI, .reads = HN_READS_WINDOW, .window_period = 2, .needs_window = true,
                MOE(.gating = HN_GATING_CHOSEN, .norm = HN_MOE_NORM_NEVER));

static const hn_slot llama4_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), FFN_NORM, DENSE_GLU, ROUTER, EXPERTS, SHARED(HN_NEEDED), { 0 },
};
enum { LLAMA4_MAVERICK = 128 }; /* experts of the one whose heads are not normed */

/* Layers that do not turn see everything and grow with their positions, the others are normed after they turned and see
 * their own run of positions. Without runs all layers turn. */
static void llama4_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hn_attn_plan(out, hp, il);
    if (hp->temperature.scale == 0) out->rope = HN_ROPE_ALL;
    bool turns = out->rope >= 0;
    out->warm = !turns;
    out->qk_norm = turns && hp->moe.n_expert != LLAMA4_MAVERICK ? HN_HEAD_NORM_PLAIN : HN_HEAD_NORM_NONE;
    out->chunk = turns && hp->temperature.scale != 0 ? HN_LLAMA4_CHUNK : 0;
}

/* The key of windows says whether there are runs; how long they are is not in files. */
static hone_status llama4_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    int32_t window;
    hone_status st = hn_get_int(m, "attention.sliding_window", 0, INT32_MAX, HN_LLAMA4_CHUNK, &window, err);
    if (st != HONE_OK) return st;
    if (window != 0 && window != HN_LLAMA4_CHUNK)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s = %d, expected %d, or 0 for none: runs of %d positions are all "
                       "that hone has",
                       m->path, hn_arch_key(m, key, "attention.sliding_window"), window, HN_LLAMA4_CHUNK,
                       HN_LLAMA4_CHUNK);
    if (window) m->hp.temperature = (hn_temperature){ 0.1, HN_LLAMA4_CHUNK, 1 };
    return hn_attn_hparams(m, err);
}

const hn_family hn_family_llama4 = {
    .name = "llama4",
    .bit = HN_LLAMA4,
    .hparams = llama4_hparams,
    .plan = llama4_plan,
    .outer = hn_factors_outer,
    .layer = llama4_layer,
    .is = &(const hn_switches){ .ffn = HN_FFN_MOE,
                                .qk_norm_after = true,
                                .nope_period = 4,
                                .runs = true,
                                MOE(.gating = HN_GATING_INPUT, .norm = HN_MOE_NORM_NEVER, .needs_period = true) },
};
