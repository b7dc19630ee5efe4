/* families_dense: transformers whose layers all do the same, by switches over the shared blocks. A row is its tensors
 * and its switches; what the switches mean is in family.h.
 *   gemma, gemma2        norms that were 1 + w, embeddings times √n, GELU; gemma2: caps, windows, norms on both sides
 *   mistral3             llama, experts or none; YaRN with a multiplier, queries that grow with their positions
 *   phi3                 q, k, v in one matrix, gate and up in another; factors of angles for long sessions
 *   smollm3              llama; every fourth layer does not turn
 *   olmo2                norms after the halves alone, of all query heads together; olmo 3 has windows
 *   exaone4              as olmo2, of each head; where it has windows, only windowed layers turn
 *   granite              llama; four scalars
 *   glm4                 norms on both sides, half of each head turns, gate and up in one matrix; in models that see
 *                        (GLM-4.1V, 4.6V-Flash) in halves
 *   seed_oss             qwen2; the second norm bears another name
 *   hunyuan-dense        queries and keys are normed after they turned
 *   maincoder            as hunyuan-dense, pairs of neighbours
 *   ernie4_5, arcee      llama; arcee: no gate, relu²
 *   command-r, cohere2   LayerNorm without bias, halves side by side, large ones of heads too; cohere2: windows,
 *                        without which nothing turns
 *   starcoder2, gptneox, gpt2  LayerNorm, no gate, GELU; gptneox side by side; gpt2: positions are learnt
 *   starcoder, phi2      gpt2 with one head of keys; gptneox with one norm for both halves
 *   nemotron             LayerNorm that was 1 + w, relu², no gate
 *   orion, stablelm      LayerNorm before gates; stablelm: large ones side by side, of heads too
 *   exaone               qwen2 without biases; factors of angles
 *   apertus              qwen3; no gate, a map whose numbers each layer learns
 *   chatglm              glm4 (of 2024) without norms behind the halves
 *   bloom, mpt, refact   nothing turns: scores fade with the distance (Press et al. 2022); bloom: starcoder2, a norm
 *                        of the embedding; mpt: without biases, GELU itself; refact: llama, as is Baichuan of 13B */
#include "kernels/kernels.h"
#include "model/family_rows.h"

static const hn_slot plus_one_outer[] = { ENDS(HN_TURN_PLUS_ONE), { 0 } };
static const hn_slot biased_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("output_norm.bias", OUTSIDE(output_norm_b), E, .when = HN_NEEDED),
    { 0 },
};

/* ---- as llama and qwen, or nearly ------------------------------------------------------------------------ */

static const hn_slot pairs_layer[] = { ATTN_NORM, ATTN(HN_TURN_Q, HN_TURN_K), FFN_NORM, GLU, { 0 } };
static const hn_slot halves_layer[] = { ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), FFN_NORM, GLU, { 0 } };

static const hn_slot mistral_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_Q, HN_TURN_K), FFN_NORM, DENSE_GLU, DENSE_BIASES, ROUTER, EXPERTS, { 0 },
};
const hn_family hn_family_mistral3 =
    TRANSFORMER("mistral3", HN_MISTRAL3, true, hn_factors_outer, mistral_layer, .reads = HN_READS_TEMPERATURE,
                .ffn = HN_FFN_MOE, MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS, .maybe = true));
const hn_family hn_family_smollm3 =
    TRANSFORMER("smollm3", HN_SMOLLM3, true, hn_plain_outer, pairs_layer, .nope_period = 4);
/* MiniCPM 4 has two kinds of factors, under this family's name (dialect.c) */
const hn_slot hn_granite_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("rope_freqs.weight", OUTSIDE(rope_factors), HN_DIM_ROT_PAIRS, MAY),
    TWO_FACTORS,
    { 0 },
};
const hn_family hn_family_granite =
    TRANSFORMER("granite", HN_GRANITE, true, hn_granite_outer, pairs_layer, .reads = HN_READS_SCALES | HN_READS_TURNS);
const hn_family hn_family_ernie4_5 =
    TRANSFORMER("ernie4_5", HN_ERNIE45, true, hn_plain_outer, halves_layer, .neox = false);

const hn_family hn_family_exaone = TRANSFORMER("exaone", HN_EXAONE, true, hn_factors_outer, halves_layer, .neox = true);

static const hn_slot seed_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("post_attention_norm", ffn_norm, E, "post_attention_layernorm"),
    GLU,
    { 0 },
};
const hn_family hn_family_seed_oss =
    TRANSFORMER("seed_oss", HN_SEED_OSS, true, hn_plain_outer, seed_layer, .neox = true);

static const hn_slot hunyuan_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("attn_q_norm", attn_q_norm, HN_DIM_HEAD, "self_attn.query_layernorm"),
    NORM("attn_k_norm", attn_k_norm, HN_DIM_HEAD, "self_attn.key_layernorm"),
    FFN_NORM,
    GLU,
    { 0 },
};
const hn_family hn_family_hunyuan =
    TRANSFORMER("hunyuan-dense", HN_HUNYUAN, true, hn_plain_outer, hunyuan_layer, .neox = true,
                .qk_norm = HN_HEAD_NORM_EACH, .qk_norm_after = true, .reads = HN_READS_ONE_EXPERT);

const hn_family hn_family_maincoder = TRANSFORMER("maincoder", HN_MAINCODER, true, hn_plain_outer, hunyuan_layer,
                                                  .qk_norm = HN_HEAD_NORM_EACH, .qk_norm_after = true);

static const hn_slot arcee_layer[] = { ATTN_NORM, ATTN(HN_TURN_Q, HN_TURN_K), FFN_NORM, MLP, { 0 } };
const hn_family hn_family_arcee =
    TRANSFORMER("arcee", HN_ARCEE, true, hn_factors_outer, arcee_layer, .ffn = HN_FFN_MLP, .map = HN_MAP_SQRELU);

static const hn_slot apertus_layer[] = {
    NORM("attn_norm", attn_norm, E, "attention_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    QK_NORM(HN_TURN_NONE),
    NORM("ffn_norm", ffn_norm, E, "feedforward_layernorm"),
    UP,
    DOWN,
    { 0 },
};

/* A number of each layer, or one of all, from a key without the family's name; into at, `stride` floats apart. */
static hone_status xielu_key(const hone_model *m, const char *key, float *at, size_t stride, hone_error *err)
{
    const double most = 1e6;
    hn_gguf_array a;
    float one = 0;
    bool found = false;
    const int64_t i = hn_gguf_find(m->file, key);
    const bool list = i >= 0 && hn_gguf_kv_array(m->file, (uint64_t)i, &a);
    hone_status st = list ? HONE_OK : hn_gguf_get_f32(m->file, key, &one, &found, err);
    if (st != HONE_OK) return st;
    if (!list && !found)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key,
                       m->arch->name);
    if (list && a.count != (uint64_t)m->hp.n_layer)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu values, expected one for each of %d layers", m->path, key,
                       (unsigned long long)a.count, m->hp.n_layer);
    for (int32_t il = 0; il < m->hp.n_layer; il++) {
        double x = (double)one;
        if ((list && !hn_array_number(&a, (uint64_t)il, &x)) || !(fabs(x) <= most))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%d] = %g, expected a number between -%g and %g", m->path, key,
                           (int)il, x, most, most);
        at[(size_t)il * stride] = (float)x;
    }
    return HONE_OK;
}

/* Files have what the checkpoint has: what becomes positive by softplus. */
static hone_status apertus_hparams(hone_model *m, hone_error *err)
{
    static const struct {
        const char *key;
        size_t at;
    } keys[] = { { "xielu.alpha_p", offsetof(hn_xielu, alpha_p) / sizeof(float) },
                 { "xielu.alpha_n", offsetof(hn_xielu, alpha_n) / sizeof(float) },
                 { "xielu.beta", offsetof(hn_xielu, beta) / sizeof(float) },
                 { "xielu.eps", offsetof(hn_xielu, eps) / sizeof(float) } };
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK) return st;
    const size_t n = (size_t)m->hp.n_layer;
    hn_xielu *x = hn_arena_alloc(m->arena, n * sizeof *x);
    if (!x) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
    for (size_t i = 0; st == HONE_OK && i < sizeof keys / sizeof *keys; i++)
        st = xielu_key(m, keys[i].key, (float *)x + keys[i].at, sizeof *x / sizeof(float), err);
    for (size_t il = 0; st == HONE_OK && il < n; il++) {
        x[il].alpha_p = hn_softplus_inline(x[il].alpha_p);
        x[il].alpha_n = x[il].beta + hn_softplus_inline(x[il].alpha_n);
    }
    m->hp.xielu = x;
    return st;
}
const hn_family hn_family_apertus = {
    .name = "apertus",
    .bit = HN_APERTUS,
    .hparams = apertus_hparams,
    .plan = hn_attn_plan,
    .outer = hn_factors_outer,
    .layer = apertus_layer,
    .is = &(const hn_switches){ .neox = true, .qk_norm = HN_HEAD_NORM_EACH, .ffn = HN_FFN_MLP },
};

static const hn_slot phi3_outer[] = { ENDS(HN_TURN_NONE), TWO_FACTORS, { 0 } };
static const hn_slot phi3_layer[] = {
    ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), FFN_NORM, FUSED_GLU, { 0 },
};
const hn_family hn_family_chatglm =
    TRANSFORMER("chatglm", HN_CHATGLM, true, hn_plain_outer, phi3_layer, .part_turns = true);
const hn_family hn_family_phi3 = TRANSFORMER("phi3", HN_PHI3, true, phi3_outer, phi3_layer, .neox = true);

/* ---- norms after the halves --------------------------------------------------------------------------------- */

#define NORM_ONE(gguf, to, module) NORM(gguf, to, E, module, .turn = HN_TURN_PLUS_ONE)
static const hn_slot gemma_layer[] = {
    NORM_ONE("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM_ONE("ffn_norm", ffn_norm, "post_attention_layernorm"),
    GLU,
    { 0 },
};
static const hn_slot gemma2_layer[] = {
    NORM_ONE("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM_ONE("ffn_norm", ffn_norm, "pre_feedforward_layernorm"),
    GLU,
    POST_NORMS(HN_TURN_PLUS_ONE),
    { 0 },
};
const hn_family hn_family_gemma = TRANSFORMER("gemma", HN_GEMMA, true, plus_one_outer, gemma_layer, .neox = true,
                                              .act = HN_GLU_GELU, .sqrt_embd = true);
const hn_family hn_family_gemma2 =
    TRANSFORMER("gemma2", HN_GEMMA2, true, plus_one_outer, gemma2_layer, .neox = true, .act = HN_GLU_GELU,
                .sqrt_embd = true, .reads = HN_READS_WINDOW | HN_READS_LOGIT_CAP | HN_READS_ATTN_CAP, .window = 4096,
                .window_period = 2, .attn_cap = 50, .logit_cap = 30, .wide_scale_at = 46);

static const hn_slot glm4_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("post_attention_norm", attn_post_norm, E, "post_self_attn_layernorm"),
    FFN_NORM,
    FUSED_GLU,
    NORM("post_ffw_norm", ffn_post_norm, E, "post_mlp_layernorm"),
    { 0 },
};
const hn_family hn_family_glm4 = TRANSFORMER("glm4", HN_GLM4, true, hn_plain_outer, glm4_layer, .part_turns = true,
                                             .reads = HN_READS_SECTIONS | HN_READS_NEXTN);

static const hn_slot olmo2_layer[] = {
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("attn_q_norm", attn_q_norm, Q, "self_attn.q_norm"),
    NORM("attn_k_norm", attn_k_norm, K, "self_attn.k_norm"),
    GLU,
    POST_NORMS(HN_TURN_NONE),
    { 0 },
};
const hn_family hn_family_olmo2 =
    TRANSFORMER("olmo2", HN_OLMO2, true, hn_plain_outer, olmo2_layer, .neox = true, .qk_norm = HN_HEAD_NORM_FULL,
                .reads = HN_READS_WINDOW, .window_period = 4, .window_rope = HN_WINDOW_ROPE_PLAIN);

static const hn_slot exaone4_layer[] = {
    ATTN(HN_TURN_NONE, HN_TURN_NONE), QK_NORM(HN_TURN_NONE), GLU, POST_NORMS(HN_TURN_NONE), { 0 },
};
const hn_family hn_family_exaone4 =
    TRANSFORMER("exaone4", HN_EXAONE4, true, hn_factors_outer, exaone4_layer, .neox = true,
                .qk_norm = HN_HEAD_NORM_EACH, .reads = HN_READS_WINDOW | HN_READS_NEXTN, .window = 4096,
                .window_period = 4, .window_layers = 64, .window_rope = HN_WINDOW_ROPE_ALONE);

/* ---- LayerNorm ------------------------------------------------------------------------------------------------ */

#define HEADS_OWN_NORM(gguf, to, n, module)                                                                      \
    {                                                                                                            \
        .name = gguf ".weight", .hf = module, .field = OF(to), .kind = HN_SLOT_VALUES, .ne = { HN_DIM_HEAD, n }, \
        .when = HN_OPTIONAL, .together = HN_TOGETHER_HEAD_NORMS                                                  \
    }
/* heads are normed in models of 64 layers and more: their tensors say so */
static const hn_slot command_r_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    HEADS_OWN_NORM("attn_q_norm", attn_q_norm, HN_DIM_HEADS, "self_attn.q_norm"),
    HEADS_OWN_NORM("attn_k_norm", attn_k_norm, HN_DIM_KV_HEADS, "self_attn.k_norm"),
    GLU,
    { 0 },
};
static const hn_slot cohere2_layer[] = { ATTN_NORM, ATTN(HN_TURN_NONE, HN_TURN_NONE), GLU, { 0 } };
const hn_family hn_family_command_r =
    TRANSFORMER("command-r", HN_COMMAND_R, true, hn_plain_outer, command_r_layer, .layer_norm = true, .parallel = true,
                .qk_norm = HN_HEAD_NORM_LAYER, .reads = HN_READS_LOGIT_SCALE);
const hn_family hn_family_cohere2 =
    TRANSFORMER("cohere2", HN_COHERE2, true, hn_plain_outer, cohere2_layer, .layer_norm = true, .parallel = true,
                .reads = HN_READS_LOGIT_SCALE | HN_READS_WINDOW, .window_period = 4, .needs_window = true,
                .window_rope = HN_WINDOW_ROPE_ALONE);

static const hn_slot biased_layer[] = {
    LAYER_NORM("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    LAYER_NORM("ffn_norm", ffn_norm, "post_attention_layernorm"),
    MLP,
    { 0 },
};
static const hn_slot gpt2_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("output_norm.bias", OUTSIDE(output_norm_b), E, .when = HN_NEEDED),
    MATRIX("position_embd", OUTSIDE(pos_embd), EMBD, WHOLE, E, HN_DIM_CTX),
    { 0 },
};
const hn_family hn_family_starcoder2 =
    TRANSFORMER("starcoder2", HN_STARCODER2, true, biased_outer, biased_layer, .neox = true, .layer_norm = true,
                .ffn = HN_FFN_MLP, .map = HN_MAP_GELU);
const hn_family hn_family_gptneox =
    TRANSFORMER("gptneox", HN_GPTNEOX, true, biased_outer, biased_layer, .neox = true, .layer_norm = true,
                .ffn = HN_FFN_MLP, .map = HN_MAP_GELU, .reads = HN_READS_PARALLEL);
const hn_family hn_family_gpt2 = TRANSFORMER("gpt2", HN_GPT2, true, gpt2_outer, biased_layer, .layer_norm = true,
                                             .ffn = HN_FFN_MLP, .map = HN_MAP_GELU, .nope_period = -1);
const hn_family hn_family_starcoder =
    TRANSFORMER("starcoder", HN_STARCODER, true, gpt2_outer, biased_layer, .layer_norm = true, .ffn = HN_FFN_MLP,
                .map = HN_MAP_GELU, .nope_period = -1);

static const hn_slot phi2_layer[] = {
    LAYER_NORM("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    MLP,
    { 0 },
};
const hn_family hn_family_phi2 =
    TRANSFORMER("phi2", HN_PHI2, true, biased_outer, phi2_layer, .neox = true, .layer_norm = true, .parallel = true,
                .ffn = HN_FFN_MLP, .map = HN_MAP_GELU);

#define LAYER_NORM_ONE(gguf, to, module) NORM_ONE(gguf, to, module), VECTOR(gguf ".bias", OF(to##_b), E)
static const hn_slot nemotron_outer[] = {
    ENDS(HN_TURN_PLUS_ONE),
    VECTOR("output_norm.bias", OUTSIDE(output_norm_b), E, .when = HN_NEEDED),
    { 0 },
};
static const hn_slot nemotron_layer[] = {
    LAYER_NORM_ONE("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    LAYER_NORM_ONE("ffn_norm", ffn_norm, "post_attention_layernorm"),
    MLP,
    { 0 },
};
const hn_family hn_family_nemotron =
    TRANSFORMER("nemotron", HN_NEMOTRON, true, nemotron_outer, nemotron_layer, .neox = true, .layer_norm = true,
                .ffn = HN_FFN_MLP, .map = HN_MAP_SQRELU);

static const hn_slot orion_layer[] = {
    LAYER_NORM("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    LAYER_NORM("ffn_norm", ffn_norm, "post_attention_layernorm"),
    GLU,
    { 0 },
};
const hn_family hn_family_orion =
    TRANSFORMER("orion", HN_ORION, true, biased_outer, orion_layer, .neox = true, .layer_norm = true);

/* heads are normed, and halves stand side by side without a norm of the second, in the model of 12B */
static const hn_slot stablelm_layer[] = {
    LAYER_NORM("attn_norm", attn_norm, "input_layernorm"),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    HEADS_OWN_NORM("attn_q_norm", attn_q_norm, HN_DIM_HEADS, "self_attn.q_layernorm"),
    HEADS_OWN_NORM("attn_k_norm", attn_k_norm, HN_DIM_KV_HEADS, "self_attn.k_layernorm"),
    NORM("ffn_norm", ffn_norm, E, "post_attention_layernorm", MAY),
    VECTOR("ffn_norm.bias", OF(ffn_norm_b), E, RARE(.with = "ffn_norm.weight"), .when = HN_GOES_WITH),
    GLU,
    { 0 },
};

/* Files say that halves stand side by side also where the second has a norm, and follows the first: all of the layers
 * have one, or none. */
static hone_status stablelm_hparams(hone_model *m, hone_error *err)
{
    hone_status st = hn_attn_hparams(m, err);
    int32_t n = 0, without = -1;
    for (int32_t il = 0; st == HONE_OK && il < m->hp.n_layer; il++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_norm.weight", (int)il);
        if (hn_gguf_find_tensor(m->file, name)) n++;
        else without = il;
    }
    if (n && without >= 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor blk.%d.ffn_norm.weight is missing, though another layer has one",
                       m->path, (int)without);
    m->hp.parallel = !n;
    return st;
}
const hn_family hn_family_stablelm = {
    .name = "stablelm",
    .bit = HN_STABLELM,
    .trains = true,
    .hparams = stablelm_hparams,
    .plan = hn_attn_plan,
    .outer = biased_outer,
    .layer = stablelm_layer,
    .is = &(const hn_switches){ .neox = true, .layer_norm = true, .qk_norm = HN_HEAD_NORM_LAYER },
};

/* ---- scores that fade --------------------------------------------------------------------------------------- */

static const hn_slot bloom_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("output_norm.bias", OUTSIDE(output_norm_b), E, .when = HN_NEEDED),
    VECTOR("token_embd_norm.weight", OUTSIDE(token_embd_norm), E),
    VECTOR("token_embd_norm.bias", OUTSIDE(token_embd_norm_b), E),
    { 0 },
};
const hn_family hn_family_bloom = TRANSFORMER("bloom", HN_BLOOM, false, bloom_outer, biased_layer, .layer_norm = true,
                                              .ffn = HN_FFN_MLP, .map = HN_MAP_GELU, .nope_period = -1, .fade = 8);

static const hn_slot mpt_outer[] = {
    ENDS(HN_TURN_NONE),
    VECTOR("output_norm.bias", OUTSIDE(output_norm_b), E, MAY),
    { 0 },
};
static const hn_slot mpt_layer[] = {
    LAYER_NORM("attn_norm", attn_norm, "norm_1", MAY),
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    LAYER_NORM("ffn_norm", ffn_norm, "norm_2", MAY),
    MLP,
    { 0 },
};
const hn_family hn_family_mpt =
    TRANSFORMER("mpt", HN_MPT, false, mpt_outer, mpt_layer, .layer_norm = true, .ffn = HN_FFN_MLP,
                .map = HN_MAP_GELU_ERF, .nope_period = -1, .fade = 8, .reads = HN_READS_CLIP);

const hn_family hn_family_refact =
    TRANSFORMER("refact", HN_REFACT, false, hn_plain_outer, halves_layer, .nope_period = -1, .fade = 8);
