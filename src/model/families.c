/* families: the rows. Slots stand in the order in which they are bound; a dense family costs its numbers (hparams.c),
 * its plan and its rows here.
 *   llama   pairs (2i, 2i+1); optional biases; rope_freqs factors (Touvron et al. 2023); maybe experts (Mixtral)
 *   qwen2   pairs (i, i + n/2); biases on q, k, v, if any
 *   qwen3   pairs (i, i + n/2); RMSNorm of each q and k head before the rotation
 *   gemma3  as qwen3; norms on both sides of each half, scaled embeddings, GELU, windows on most layers
 *   rwkv6, rwkv7  a state instead of positions (block_rwkv.c) */
#include "model/family_rows.h"

const hn_slot_rare hn_rare_none = { 0 };
const hn_slot_rare hn_rare_apart = { .without = FUSED };
const hn_slot_rare hn_rare_qkv = { .part = { Q, K, V } };
const hn_slot_rare hn_rare_qkv_bias = { .with = FUSED, .part = { Q, K, V }, .stride = sizeof(hn_weight) };
const hn_slot_rare hn_rare_gate_up = { .part = { HN_DIM_FF_EXP, HN_DIM_FF_EXP } };
const hn_slot_rare hn_rare_no_gate_up = { .without = FUSED_EXPERTS };

const hn_slot hn_factors_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("rope_freqs.weight", OUTSIDE(rope_factors), HN_DIM_ROT_PAIRS, MAY),
    { 0 },
};
static const hn_slot llama_layer[] = {
    ATTN_NORM,
    QKV(HN_TURN_Q, HN_TURN_K),
    QKV_BIAS(HN_OPTIONAL),
    ATTN_OUT,
    BIAS("attn_output", attn_output, E, MAY),
    FFN_NORM,
    DENSE_GLU,
    DENSE_BIASES,
    ROUTER,
    EXPERTS,
    { 0 },
};

const hn_slot hn_plain_outer[] = { ENDS(HN_TURN_NONE), { 0 } };
/* models of other makers that go by its name have no biases */
static const hn_slot qwen2_layer[] = {
    ATTN_NORM, QKV(HN_TURN_NONE, HN_TURN_NONE), QKV_BIAS(HN_OPTIONAL), ATTN_OUT, FFN_NORM, GATE, UP, DOWN, { 0 }
};
static const hn_slot ranked_outer[] = { ENDS(HN_TURN_NONE), CLASSIFIER, { 0 } };
static const hn_slot qwen3_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), QK_NORM(HN_TURN_NONE), FFN_NORM, GATE, UP, DOWN, { 0 }
};

bool hn_is_windowed(const hn_hparams *hp, int32_t il)
{
    if (!hp->window) return false;
    if (hp->windowed) return hp->windowed[il];
    return hn_windowed_by_period(hp->is, hp->window_period, il);
}

/* Which table of angles; −1: nothing turns. */
static int8_t rope_of(const hn_hparams *hp, bool windowed, int32_t il)
{
    const hn_switches *is = hp->is;
    if (hp->turns && !hp->turns[il]) return -1;
    if (hp->nope || is->nope_period < 0 || (is->nope_period > 0 && (il + 1) % is->nope_period == 0)) return -1;
    if (is->window_rope == HN_WINDOW_ROPE_ALONE && hp->window && !windowed) return -1;
    bool own = is->window_rope == HN_WINDOW_ROPE_PLAIN || is->window_rope == HN_WINDOW_ROPE_OWN || hp->window_base != 0;
    return windowed && own ? HN_ROPE_WINDOW : HN_ROPE_ALL;
}

/* Dense layers come first where there are any; then the last of each so many has experts, or those of a table. */
static bool has_experts(const hn_hparams *hp, int32_t il)
{
    const hn_moe_numbers *n = &hp->moe;
    if (n->routed && !n->routed[il]) return false;
    return n->n_expert > 0 && il >= n->n_lead && (n->period < 2 || (il + 1) % n->period == 0);
}

void hn_attn_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    const hn_switches *is = hp->is;
    bool windowed = hn_is_windowed(hp, il);
    *out = (hn_layer_plan){ .mixer = is->latent ? HN_MIXER_MLA : HN_MIXER_ATTN,
                            .ffn = has_experts(hp, il)     ? HN_FFN_MOE
                                   : is->ffn == HN_FFN_MOE ? HN_FFN_GLU
                                                           : is->ffn,
                            .act = hp->act,
                            .map = is->map,
                            .xielu = hp->xielu ? &hp->xielu[il] : NULL,
                            .rope = rope_of(hp, windowed, il),
                            .qk_norm = is->qk_norm,
                            .qk_norm_after = is->qk_norm_after,
                            .warm = hp->temperature.scale != 0,
                            .early = is->early && has_experts(hp, il),
                            .parallel = hp->parallel,
                            .out_gate = !is->own_gate    ? HN_OUT_GATE_NONE
                                        : hp->gate_heads ? HN_OUT_GATE_HEADS
                                                         : HN_OUT_GATE_OWN,
                            .gate_map = is->gate_map,
                            .n_head = hp->heads_of ? hp->heads_of[il] : hp->n_head,
                            .n_head_kv = hp->n_head_kv,
                            .d_k = hp->head_dim,
                            .d_v = hp->head_dim_v ? hp->head_dim_v : hp->head_dim,
                            .n_ff = hp->n_ff,
                            .n_used = hp->moe.used_of ? hp->moe.used_of[il] : hp->moe.n_used,
                            .n_ff_exp = hp->moe.ff_of ? hp->moe.ff_of[il] : hp->moe.n_ff,
                            .limit = hp->limit_of ? hp->limit_of[il] : 0,
                            .limit_exp = hp->limit_exp_of ? hp->limit_exp_of[il] : 0,
                            .both = hp->both,
                            .window = windowed ? hp->both ? hp->window / 2 * 2 + 1 : hp->window : 0,
                            .scale = hp->attn_scale != 0 ? hp->attn_scale : 1.0f / sqrtf((float)hp->head_dim) };
}

/* ---- gemma3 --------------------------------------------------------------------------------------------- */

static const hn_slot gemma3_outer[] = { ENDS(HN_TURN_PLUS_ONE), { 0 } };
static const hn_slot gemma3_layer[] = {
    NORM("attn_norm", attn_norm, E, "input_layernorm", .turn = HN_TURN_PLUS_ONE),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    QK_NORM(HN_TURN_PLUS_ONE),
    NORM("post_attention_norm", attn_post_norm, E, "post_attention_layernorm", .turn = HN_TURN_PLUS_ONE),
    NORM("ffn_norm", ffn_norm, E, "pre_feedforward_layernorm", .turn = HN_TURN_PLUS_ONE),
    GATE,
    UP,
    DOWN,
    NORM("post_ffw_norm", ffn_post_norm, E, "post_feedforward_layernorm", .turn = HN_TURN_PLUS_ONE),
    { 0 },
};

/* ---- RWKV ------------------------------------------------------------------------------------------------- */

#define RWKV_NORM(gguf, to) VECTOR(gguf ".weight", OF(to), E), VECTOR(gguf ".bias", OF(to##_b), E)
#define SQUARE(what, to, as, how) MATRIX("time_mix_" what, OF(to), as, how, E, E)
/* In both: norms, receptance, key, value, output; channel mix's key and value. */
#define RWKV_BOTH                                                                           \
    RWKV_NORM("attn_norm", attn_norm), RWKV_NORM("attn_norm_2", ffn_norm),                  \
        SQUARE("receptance", receptance, TIME_R, HEADS), SQUARE("key", key, TIME_K, HEADS), \
        SQUARE("value", value, TIME_V, HEADS), SQUARE("output", output, TIME_OUTPUT, ROWS), \
        RWKV_NORM("time_mix_ln", ln), CHANNELS("channel_mix_lerp_k", OF(channel_lerp[0])),  \
        MATRIX("channel_mix_key", OF(channel_key), CHANNEL_K, KEEP, E, FF),                 \
        MATRIX("channel_mix_value", OF(channel_value), CHANNEL_V, ROWS, FF, E)
/* All lerps in one tensor, or one each */
#define LERPS "time_mix_lerp_fused.weight"
#define LERP(letter, i, first) \
    CHANNELS("time_mix_lerp_" letter, OF(lerp[i]), RARE(.with = "time_mix_lerp_" first ".weight", .without = LERPS))
#define LERPS_OF(n, first, ...)                                                         \
    {                                                                                   \
        .name = LERPS, .field = OF(lerp), .kind = HN_SLOT_VALUES, .ne = { E, 1, 1, n }, \
        RARE(.part = { __VA_ARGS__ }, .instead = "time_mix_lerp_" first ".weight")      \
    }
#define LOW_RANK(letter, rank, ...)                                                               \
    MATRIX("time_mix_" #letter "1", OF(letter##1), LOW_IN, WHOLE, E, HN_DIM_##rank, __VA_ARGS__), \
        MATRIX("time_mix_" #letter "2", OF(letter##2), LOW_OUT, HEADS, HN_DIM_##rank, E, __VA_ARGS__)
#define LOW_RANK_BIAS(letter, pair, ...) CHANNELS("time_mix_" letter "0", OF(pair.bias), __VA_ARGS__)

static const hn_slot rwkv_outer[] = {
    EMBD,
    MATRIX("output", OUTSIDE(output), OUTPUT, ROWS, E, HN_DIM_VOCAB),   /* never tied */
    VECTOR("token_embd_norm.weight", OUTSIDE(token_embd_norm), E, MAY), /* absent: folded into the table */
    VECTOR("token_embd_norm.bias", OUTSIDE(token_embd_norm_b), E, RARE(.with = "token_embd_norm.weight"),
           .when = HN_GOES_WITH),
    VECTOR("output_norm.weight", OUTSIDE(output_norm), E),
    VECTOR("output_norm.bias", OUTSIDE(output_norm_b), E),
    { 0 },
};
static const hn_slot rwkv6_layer[] = {
    RWKV_BOTH,
    MATRIX("time_mix_w1", OF(mix1), MIX_IN, WHOLE, E, HN_DIM_MIX5,
           RARE(.part = { HN_DIM_MIX, HN_DIM_MIX, HN_DIM_MIX, HN_DIM_MIX, HN_DIM_MIX })),
    { .name = "time_mix_w2.weight",
      .field = OF(mix2),
      .kind = HN_SLOT_ROWS,
      .role = HN_ROLE_MIX_OUT,
      .cut = HN_CUT_HEADS,
      .ne = { HN_DIM_MIX, E, 5 },
      RARE(.part = { E, E, E, E, E }) },
    CHANNELS("time_mix_lerp_x", OF(lerp_x)),
    LERPS_OF(5, "w", E, E, E, E, E),
    LERP("w", 0, "w"),
    LERP("k", 1, "w"),
    LERP("v", 2, "w"),
    LERP("r", 3, "w"),
    LERP("g", 4, "w"),
    { .name = "time_mix_first.weight",
      .field = OF(first),
      .kind = HN_SLOT_CHANNELS,
      .ne = { HN_DIM_HEAD, HN_DIM_HEADS } },
    MATRIX("time_mix_decay_w1", OF(w1), LOW_IN, WHOLE, E, HN_DIM_DECAY),
    MATRIX("time_mix_decay_w2", OF(w2), DECAY_OUT, HEADS, HN_DIM_DECAY, E),
    CHANNELS("time_mix_decay", OF(w2.bias)),
    SQUARE("gate", gate, TIME_G, HEADS),
    CHANNELS("channel_mix_lerp_r", OF(channel_lerp[1])),
    MATRIX("channel_mix_receptance", OF(channel_receptance), CHANNEL_R, ROWS, E, E),
    { 0 },
};
static const hn_slot rwkv7_layer[] = {
    RWKV_BOTH,
    LERPS_OF(6, "r", E, E, E, E, E, E),
    LERP("r", 0, "r"),
    LERP("w", 1, "r"),
    LERP("k", 2, "r"),
    LERP("v", 3, "r"),
    LERP("a", 4, "r"),
    LERP("g", 5, "r"),
    LOW_RANK(w, DECAY),
    LOW_RANK_BIAS("w", w2),
    LOW_RANK(a, ICLR),
    LOW_RANK_BIAS("a", a2),
    LOW_RANK(v, VALUE, .from_layer = 1), /* in the first layer converters write copies of a's */
    LOW_RANK_BIAS("v", v2, .from_layer = 1),
    LOW_RANK(g, GATE),
    CHANNELS("time_mix_k_k", OF(k_k)),
    CHANNELS("time_mix_k_a", OF(k_a)),
    CHANNELS("time_mix_r_k", OF(r_k)),
    { 0 },
};

static void rwkv_plan(hn_layer_plan *out, const hn_hparams *hp, hn_mixer mixer)
{
    *out = (hn_layer_plan){ .mixer = mixer,
                            .ffn = HN_FFN_CHANNEL_MIX,
                            .rope = -1,
                            .n_head = hp->n_head,
                            .n_head_kv = hp->n_head_kv,
                            .d_k = hp->head_dim,
                            .d_v = hp->head_dim,
                            .n_ff = hp->n_ff };
}
static void rwkv6_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il) { rwkv_plan(out, hp, HN_MIXER_RWKV6); }
static void rwkv7_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il) { rwkv_plan(out, hp, HN_MIXER_RWKV7); }

/* ---- the list ------------------------------------------------------------------------------------------------ */

/* Mixtral is a llama with experts */
const hn_family hn_family_llama =
    TRANSFORMER("llama", HN_LLAMA, true, hn_factors_outer, llama_layer, .ffn = HN_FFN_MOE,
                MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS, .maybe = true));
const hn_family hn_family_qwen2 = TRANSFORMER("qwen2", HN_QWEN2, true, hn_plain_outer, qwen2_layer, .neox = true);
const hn_family hn_family_qwen3 =
    TRANSFORMER("qwen3", HN_QWEN3, true, ranked_outer, qwen3_layer, .neox = true, .qk_norm = HN_HEAD_NORM_EACH);
const hn_family hn_family_gemma3 =
    TRANSFORMER("gemma3", HN_GEMMA3, true, gemma3_outer, gemma3_layer, .neox = true, .qk_norm = HN_HEAD_NORM_EACH,
                .act = HN_GLU_GELU, .sqrt_embd = true, .reads = HN_READS_WINDOW | HN_READS_LOGIT_CAP,
                .window_period = 6, .window_rope = HN_WINDOW_ROPE_PLAIN, .window_base = 10000, .wide_scale_at = 62);
const hn_family hn_family_rwkv6 = { "rwkv6",    HN_RWKV6,   false,       hn_rwkv6_hparams,
                                    rwkv6_plan, rwkv_outer, rwkv6_layer, NULL };
const hn_family hn_family_rwkv7 = { "rwkv7",    HN_RWKV7,   false,       hn_rwkv7_hparams,
                                    rwkv7_plan, rwkv_outer, rwkv7_layer, NULL };

static const hn_family *const families[] = {
    &hn_family_llama,
    &hn_family_qwen2,
    &hn_family_qwen3,
    &hn_family_gemma3,
    &hn_family_rwkv6,
    &hn_family_rwkv7,
    &hn_family_deepseek2,
    &hn_family_mistral4,
    &hn_family_minicpm3,
    &hn_family_deepseek32,
    &hn_family_glm_dsa,
    &hn_family_arcee,
    &hn_family_cohere2,
    &hn_family_command_r,
    &hn_family_ernie4_5,
    &hn_family_exaone4,
    &hn_family_gemma,
    &hn_family_gemma2,
    &hn_family_glm4,
    &hn_family_gpt2,
    &hn_family_gptneox,
    &hn_family_granite,
    &hn_family_hunyuan,
    &hn_family_mistral3,
    &hn_family_olmo2,
    &hn_family_phi3,
    &hn_family_seed_oss,
    &hn_family_smollm3,
    &hn_family_starcoder2,
    &hn_family_exaone,
    &hn_family_phi2,
    &hn_family_stablelm,
    &hn_family_nemotron,
    &hn_family_chatglm,
    &hn_family_starcoder,
    &hn_family_orion,
    &hn_family_maincoder,
    &hn_family_apertus,
    &hn_family_bloom,
    &hn_family_mpt,
    &hn_family_refact,
    &hn_family_qwen3moe,
    &hn_family_qwen2moe,
    &hn_family_olmoe,
    &hn_family_granitemoe,
    &hn_family_dots1,
    &hn_family_ernie4_5_moe,
    &hn_family_glm4moe,
    &hn_family_minimax_m2,
    &hn_family_gpt_oss,
    &hn_family_llama4,
    &hn_family_hunyuan_moe,
    &hn_family_deepseek,
    &hn_family_bailingmoe2,
    &hn_family_mellum,
    &hn_family_exaone_moe,
    &hn_family_afmoe,
    &hn_family_smallthinker,
    &hn_family_phimoe,
    &hn_family_cohere2moe,
    &hn_family_granite_swa,
    &hn_family_laguna,
    &hn_family_step35,
    &hn_family_mimo2,
    /* families_other.c */
    &hn_family_muse_glimmer,
    &hn_family_olmo,
    &hn_family_spark2_5,
    &hn_family_nanbeige,
    &hn_family_hrm_text,
    &hn_family_openelm,
    &hn_family_dbrx,
    &hn_family_talkie,
    &hn_family_plamo3,
    &hn_family_bitnet,
    &hn_family_bitnet158,
    /* families_hybrid.c */
    &hn_family_falcon_h1,
    &hn_family_lfm2,
    &hn_family_mamba2,
    &hn_family_mamba,
    &hn_family_jamba,
    &hn_family_nemotron_h,
    &hn_family_qwen35,
    &hn_family_lfm2moe,
    &hn_family_nemotron_h_moe,
    &hn_family_granitehybrid,
    &hn_family_qwen35moe,
    &hn_family_qwen3next,
    &hn_family_kimi_linear,
    &hn_family_qwen4exp,
    &hn_family_deci,
    /* families_gemma.c */
    &hn_family_gemma4,
    &hn_family_gemma3n,
    /* families_encoder.c */
    &hn_family_bert,
    &hn_family_nomic_bert,
    &hn_family_gemma_embedding,
    &hn_family_nomic_bert_moe,
    &hn_family_jina_bert_v3,
    &hn_family_modern_bert,
    &hn_family_eurobert,
    &hn_family_llama_embed,
    &hn_family_jina_bert_v2,
};

const hn_family *hn_family_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strlen(families[i]->name) == n && !memcmp(families[i]->name, name, n)) return families[i];
    return NULL;
}

size_t hn_family_names(const char *out[HN_MAX_FAMILIES])
{
    const size_t n = sizeof families / sizeof *families;
    _Static_assert(sizeof families / sizeof *families <= HN_MAX_FAMILIES, "a bit for each");
    for (size_t i = 0; i < n; i++) out[i] = families[i]->name;
    return n;
}

const hn_slot *hn_family_field(const hn_family *f, size_t field)
{
    const hn_slot *whole = NULL;
    for (const hn_slot *s = f->layer; s->name; s++) {
        const hn_dim *part = hn_slot_rarely(s)->part;
        if (s->field == field && !part[0]) return s;
        for (int i = 0; i < HN_MAX_PART && part[i]; i++)
            if (s->field + (size_t)i * hn_slot_stride(s) == field) whole = s;
    }
    return whole;
}

const hn_slot *hn_family_slot(const hn_family *f, hn_role role)
{
    for (const hn_slot *s = f->layer; s->name; s++)
        if (s->role == role && hn_slot_is_matrix(s) && !hn_slot_rarely(s)->part[0]) return s;
    return NULL;
}

int64_t hn_dim_value(const hn_hparams *hp, const hn_layer_plan *p, hn_dim d)
{
    switch (d) {
    case HN_DIM_EMBD: return hp->n_embd;
    case HN_DIM_VOCAB: return hp->n_vocab;
    case HN_DIM_HEAD: return p->d_k;
    case HN_DIM_HEADS: return p->n_head;
    case HN_DIM_Q: return (int64_t)p->n_head * p->d_k;
    case HN_DIM_K: return (int64_t)p->n_head_kv * p->d_k;
    case HN_DIM_V: return (int64_t)p->n_head_kv * p->d_v;
    case HN_DIM_QKV: return (int64_t)p->n_head * p->d_k + (int64_t)p->n_head_kv * (p->d_k + p->d_v);
    case HN_DIM_O: return (int64_t)p->n_head * p->d_v;
    case HN_DIM_RANK_Q: return hp->rank_q;
    case HN_DIM_RANK_KV: return hp->rank_kv;
    case HN_DIM_LATENT: return (int64_t)hp->rank_kv + hp->d_rope;
    case HN_DIM_NOPE: return hp->d_nope;
    case HN_DIM_VALUE_HEAD: return hp->d_value;
    case HN_DIM_Q_HEADS: return (int64_t)p->n_head * (hp->d_nope + hp->d_rope);
    case HN_DIM_V_HEADS: return (int64_t)p->n_head * hp->d_value;
    case HN_DIM_EXPERTS: return hp->moe.n_expert;
    case HN_DIM_FF_EXP: return p->n_ff_exp;
    case HN_DIM_FF2_EXP: return 2 * (int64_t)p->n_ff_exp;
    case HN_DIM_MOE_LATENT: return hp->moe.n_latent;
    case HN_DIM_MOE_IN: return hp->moe.n_latent ? hp->moe.n_latent : hp->n_embd;
    case HN_DIM_FF_SHARED: return hp->moe.n_ff_shared;
    case HN_DIM_FF2_SHARED: return 2 * (int64_t)hp->moe.n_ff_shared;
    case HN_DIM_GATES: return p->out_gate == HN_OUT_GATE_HEADS ? p->n_head : (int64_t)p->n_head * p->d_k;
    case HN_DIM_FF: return p->n_ff;
    case HN_DIM_FF2: return 2 * (int64_t)p->n_ff;
    case HN_DIM_CTX: return hp->n_ctx_train;
    case HN_DIM_ROT_PAIRS: return hp->n_factor ? hp->n_factor : hp->n_rot / 2;
    case HN_DIM_Q_GATE: return 2 * (int64_t)p->n_head * p->d_k;
    case HN_DIM_E3: return 3 * (int64_t)hp->n_embd;
    case HN_DIM_TAPS: return hp->taps;
    case HN_DIM_SSM_INNER: return hp->ssm_inner;
    case HN_DIM_SSM_CONV: return hp->ssm_inner + 2 * (int64_t)hp->ssm_group * hp->ssm_state;
    case HN_DIM_SSM_IN: return 2 * ((int64_t)hp->ssm_inner + (int64_t)hp->ssm_group * hp->ssm_state) + hp->ssm_head;
    case HN_DIM_SSM_STATE: return hp->ssm_state;
    case HN_DIM_SSM_RANK: return hp->ssm_rank;
    case HN_DIM_SSM_X: return hp->ssm_rank + 2 * (int64_t)hp->ssm_state;
    case HN_DIM_SSM_INNER2: return 2 * (int64_t)hp->ssm_inner;
    case HN_DIM_SSM_HEADS: return hp->ssm_head;
    case HN_DIM_SSM_HEADS2: return 2 * (int64_t)hp->ssm_head;
    case HN_DIM_SSM_GROUPS: return hp->ssm_group;
    case HN_DIM_SSM_GROUP_WIDTH: return hp->ssm_inner / hp->ssm_group;
    case HN_DIM_GDN_CONV: return hp->ssm_inner + 2 * (int64_t)hp->ssm_group * hp->ssm_state;
    case HN_DIM_STREAMS: return hp->n_stream;
    case HN_DIM_STREAMS2: return (int64_t)hp->n_stream * hp->n_stream;
    case HN_DIM_LAUREL: return hp->rank_laurel;
    case HN_DIM_TYPES: return hp->n_type;
    case HN_DIM_CLASSES: return hp->n_class;
    case HN_DIM_DENSE: return hp->n_dense[0];
    case HN_DIM_DENSE2: return hp->n_dense[1];
    case HN_DIM_PLE: return hp->n_ple;
    case HN_DIM_PLE_ALL: return (int64_t)hp->n_layer * hp->n_ple;
    case HN_DIM_GDN_KEYS: return (int64_t)hp->ssm_group * hp->ssm_state;
    case HN_DIM_GDN_IN: return 2 * ((int64_t)hp->ssm_inner + (int64_t)hp->ssm_group * hp->ssm_state);
    case HN_DIM_KV_HEADS: return p->n_head_kv;
    case HN_DIM_KV_B: return (int64_t)p->n_head * (hp->d_nope + hp->d_value);
    case HN_DIM_Q_GATE_KV: return 2 * (int64_t)p->n_head * p->d_k + (int64_t)p->n_head_kv * (p->d_k + p->d_v);
    case HN_DIM_HYPER: return hp->n_hyper;
    case HN_DIM_WIDE: return (int64_t)hp->n_hyper * hp->n_embd;
    case HN_DIM_HYPER_RANK: return hp->rank_hyper;
    case HN_DIM_INDEX: return hp->index.d;
    case HN_DIM_INDEX_Q: return (int64_t)hp->index.n_head * hp->index.d;
    case HN_DIM_INDEX_HEADS: return hp->index.n_head;
    case HN_DIM_NGRAM_ROW: return hp->ngram.d;
    case HN_DIM_NGRAM_ROWS: return hp->ngram.n_row;
    case HN_DIM_NGRAM: return hn_ngram_heads(&hp->ngram) * hp->ngram.d;
    case HN_DIM_NGRAM_TAPS: return hp->ngram.taps;
    case HN_DIM_DECAY: return hp->rank_decay;
    case HN_DIM_ICLR: return hp->rank_iclr;
    case HN_DIM_VALUE: return hp->rank_value;
    case HN_DIM_GATE: return hp->rank_gate;
    case HN_DIM_MIX: return hp->rank_mix;
    case HN_DIM_MIX5: return 5 * (int64_t)hp->rank_mix;
    default: return (int64_t)d;
    }
}
