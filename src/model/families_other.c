/* families_other: transformers of one maker's models each that differ from the others by more than tensors.
 *   muse-glimmer  windows, without which nothing turns; the embedding is normed without weights; norms on both sides,
 *                 those behind with an epsilon of their own; a gate of what attention gives; a factor and a cap of
 *                 logits
 *   olmo          llama; LayerNorm without weights; queries, keys and values are kept within bounds where a key says it
 *   spark2_5      qwen2; GELU; windows, whose layers turn by a base and a width of their own; a gate of each head */
#include "model/family_rows.h"

/* ---- Muse Glimmer --------------------------------------------------------------------------------------- */

static const hn_slot muse_layer[] = {
    NORM("attn_norm", attn_norm, E, "input_layernorm", .turn = HN_TURN_PLUS_ONE),
    ATTN(HN_TURN_Q, HN_TURN_K),
    QK_NORM(HN_TURN_NONE),
    LINEAR("attn_gate", attn_gate, ATTN_GATE, HEADS, E, Q, .hf = "self_attn.gate_proj"),
    NORM("ffn_norm", ffn_norm, E, "pre_feedforward_layernorm", .turn = HN_TURN_PLUS_ONE),
    GATE,
    UP,
    DOWN,
    POST_NORMS(HN_TURN_PLUS_ONE),
    { 0 },
};

/* What logits are times no reader can guess. */
static hone_status muse_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    if (hn_gguf_find(m->file, hn_arch_key(m, key, "logit_scale")) < 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key,
                       m->arch->name);
    return hn_attn_hparams(m, err);
}
const hn_family hn_family_muse_glimmer = {
    .name = "muse-glimmer",
    .bit = HN_MUSE_GLIMMER,
    .hparams = muse_hparams,
    .plan = hn_attn_plan,
    .outer = hn_plain_outer,
    .layer = muse_layer,
    .is = &(const hn_switches){ .own_gate = true,
                                .plain = HN_PLAIN_EMBD,
                                .post_eps = 1e-8f, /* not in its files */
                                .reads = HN_READS_WINDOW | HN_READS_LOGIT_SCALE | HN_READS_LOGIT_CAP,
                                .qk_norm = HN_HEAD_NORM_EACH,
                                .window_period = 4,
                                .needs_window = true,
                                .window_rope = HN_WINDOW_ROPE_ALONE },
};

/* ---- OLMo ------------------------------------------------------------------------------------------------- */

static const hn_slot olmo_outer[] = {
    EMBD,
    MATRIX("output", OUTSIDE(output), OUTPUT, ROWS, E, HN_DIM_VOCAB, .hf = "lm_head", .when = HN_TIED),
    { 0 },
};
static const hn_slot olmo_layer[] = { QKV(HN_TURN_Q, HN_TURN_K), ATTN_OUT, GATE, UP, DOWN, { 0 } };
const hn_family hn_family_olmo = TRANSFORMER("olmo", HN_OLMO, false, olmo_outer, olmo_layer, .layer_norm = true,
                                             .plain = HN_PLAIN_NORMS, .reads = HN_READS_CLIP);

/* ---- Spark X2.5 ------------------------------------------------------------------------------------------- */

static const hn_slot spark_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    LINEAR("attn_gate", attn_gate, ATTN_GATE, HEADS, E, HN_DIM_GATES, .hf = "self_attn.g_proj"),
    FFN_NORM,
    GATE,
    UP,
    DOWN,
    { 0 },
};

/* Its files list which layers have the window. */
static hone_status spark_hparams(hone_model *m, hone_error *err)
{
    char key[128];
    hone_status st = hn_attn_hparams(m, err);
    m->hp.gate_heads = true;
    if (st != HONE_OK || m->hp.windowed) return st;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is no list of layers; architecture %s needs one", m->path,
                   hn_arch_key(m, key, "attention.sliding_window_pattern"), m->arch->name);
}
const hn_family hn_family_spark2_5 = {
    .name = "spark2_5",
    .bit = HN_SPARK2_5,
    .hparams = spark_hparams,
    .plan = hn_attn_plan,
    .outer = hn_plain_outer,
    .layer = spark_layer,
    .is =
        &(const hn_switches){ .neox = true,
                              .act = HN_GLU_GELU_ERF, /* as the model's own config says; llama.cpp runs the tanh form */
                              .own_gate = true,
                              .reads = HN_READS_WINDOW,
                              .needs_window = true,
                              .window_rope = HN_WINDOW_ROPE_OWN },
};
