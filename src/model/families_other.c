/* families_other: transformers of one maker's models each that differ from the others by more than tensors.
 *   muse-glimmer  windows, without which nothing turns; the embedding is normed without weights; norms on both sides,
 *                 those behind with an epsilon of their own; a gate of what attention gives; a factor and a cap of
 *                 logits
 *   olmo          llama; LayerNorm without weights; queries, keys and values are kept within bounds where a key says it
 *   spark2_5      qwen2; GELU; windows, whose layers turn by a base and a width of their own; a gate of each head
 *   nanbeige      llama, whose layers run several times
 *   hrm_text      norms without weights, a gate of what attention gives; two stacks of layers that take turns
 *   openelm       qwen3; heads of queries and keys and widths differ between layers
 *   dbrx          LayerNorm; queries, keys and values are kept within bounds; experts: softmax, weights add up to 1
 *   talkie        norms without weights, of heads behind the rotation; each layer adds the embedding again
 *   plamo3        norms on both sides and of heads; windows, whose layers turn by a base of their own, unscaled
 *   bitnet        llama; norms of what the last product of each half takes; bitnet-b1.58: gates are squared ReLU */
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

/* hn_attn_hparams, of files that must have the key: what it says no reader can guess. */
static hone_status with_key(hone_model *m, const char *suffix, hone_error *err)
{
    char key[128];
    if (hn_gguf_find(m->file, hn_arch_key(m, key, suffix)) < 0)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: metadata key %s is missing; architecture %s needs it", m->path, key,
                       m->arch->name);
    return hn_attn_hparams(m, err);
}
static hone_status muse_hparams(hone_model *m, hone_error *err) { return with_key(m, "logit_scale", err); }
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

static hone_status spark_hparams(hone_model *m, hone_error *err)
{
    m->hp.gate_heads = true;
    return hn_window_list(m, err);
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

/* ---- layers that run several times ------------------------------------------------------------------------ */

enum { MOST_PASSES = 64 };

/* hp->n_layer layers, of n_block blocks; block_of is to be filled. */
static hone_status run_again(hone_model *m, int64_t n_layer, int32_t n_block, int32_t **block_of, hone_error *err)
{
    hn_hparams *hp = &m->hp;
    if (n_layer > HN_MAX_LAYER)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %d blocks would run as %lld layers, expected at most %d", m->path,
                       (int)n_block, (long long)n_layer, HN_MAX_LAYER);
    hp->n_layer = (int32_t)n_layer;
    hp->n_block = n_block;
    hp->block_of = *block_of = hn_arena_alloc(m->arena, (size_t)n_layer * sizeof **block_of);
    return *block_of ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "%s: table of layers", m->path);
}

static const hn_slot nanbeige_layer[] = { ATTN_NORM, ATTN(HN_TURN_Q, HN_TURN_K), FFN_NORM, GLU, { 0 } };

static hone_status nanbeige_hparams(hone_model *m, hone_error *err)
{
    static const char skip[] = "skip_loop_final_norm";
    hn_hparams *hp = &m->hp;
    char key[128];
    int32_t n, *block_of;
    bool skips = false;
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK || (st = hn_get_int(m, "num_loops", 1, MOST_PASSES, 1, &n, err)) != HONE_OK) return st;
    if (hn_gguf_find(m->file, hn_arch_key(m, key, skip)) >= 0 && (st = hn_get_bool(m, skip, &skips, err)) != HONE_OK)
        return st;
    if (n == 1) return HONE_OK;
    const int32_t n_block = hp->n_layer;
    if ((st = run_again(m, (int64_t)n * n_block, n_block, &block_of, err)) != HONE_OK) return st;
    for (int32_t il = 0; il < hp->n_layer; il++) block_of[il] = il % n_block;
    hp->n_pass = skips ? 0 : n_block;
    return HONE_OK;
}
const hn_family hn_family_nanbeige = {
    .name = "nanbeige",
    .bit = HN_NANBEIGE,
    .hparams = nanbeige_hparams,
    .plan = hn_attn_plan,
    .outer = hn_factors_outer,
    .layer = nanbeige_layer,
    .is = &(const hn_switches){ 0 },
};

/* ---- two stacks --------------------------------------------------------------------------------------------- */

static const hn_slot hrm_outer[] = {
    EMBD,
    MATRIX("output", OUTSIDE(output), OUTPUT, ROWS, E, HN_DIM_VOCAB, .hf = "lm_head", .when = HN_TIED),
    { .name = "hrm.z_l_init", .field = OUTSIDE(type_embd), .role = HN_ROLE_NONE, .cut = HN_CUT_WHOLE, .ne = { E } },
    { 0 },
};
static const hn_slot hrm_layer[] = {
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    LINEAR("attn_gate", attn_gate, ATTN_GATE, HEADS, E, Q, .hf = "self_attn.gate_proj"),
    ATTN_OUT,
    GATE,
    UP,
    DOWN,
    { 0 },
};

/* block_count is how many layers run; files have those of the low stack, then those of the high one. */
static hone_status hrm_hparams(hone_model *m, hone_error *err)
{
    static const char note[] =
        "hrm.prefix_lm is true: a model that was trained so saw its instruction both ways; here, as "
        "in llama.cpp, it sees what comes before alone",
                      prefix[] = "hrm.prefix_lm";
    hn_hparams *hp = &m->hp;
    char key[128];
    int32_t n_high, *block_of;
    bool both = false;
    hone_status st = hn_attn_hparams(m, err);
    if (st != HONE_OK || (st = hn_get_real(m, "embedding_scale", 0, 1e6, 1, &hp->emb_scale, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "hrm.layers_per_stack", 1, HN_MAX_LAYER, -1, &hp->n_stack, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "hrm.h_cycles", 1, MOST_PASSES, -1, &n_high, err)) != HONE_OK) return st;
    if ((st = hn_get_int(m, "hrm.l_cycles", 1, MOST_PASSES, -1, &hp->n_low, err)) != HONE_OK) return st;
    if (hn_gguf_find(m->file, hn_arch_key(m, key, prefix)) >= 0 && (st = hn_get_bool(m, prefix, &both, err)) != HONE_OK)
        return st;
    if (both) m->formula_note = note;
    const int64_t n = (int64_t)hp->n_stack * n_high * (hp->n_low + 1);
    if (hp->n_layer != n)
        return HN_FAIL(
            err, HONE_E_FORMAT,
            "%s: %s = %d, expected %lld: hrm.layers_per_stack = %d, hrm.h_cycles = %d times, each hrm.l_cycles "
            "= %d times and once more",
            m->path, hn_arch_key(m, key, "block_count"), (int)hp->n_layer, (long long)n, (int)hp->n_stack, (int)n_high,
            (int)hp->n_low);
    if ((st = run_again(m, n, 2 * hp->n_stack, &block_of, err)) != HONE_OK) return st;
    for (int32_t il = 0; il < hp->n_layer; il++) {
        const bool high = il / hp->n_stack % (hp->n_low + 1) == hp->n_low;
        block_of[il] = (high ? hp->n_stack : 0) + il % hp->n_stack;
    }
    hp->n_pass = hp->n_stack;
    return HONE_OK;
}
const hn_family hn_family_hrm_text = {
    .name = "hrm_text",
    .bit = HN_HRM_TEXT,
    .hparams = hrm_hparams,
    .plan = hn_attn_plan,
    .outer = hrm_outer,
    .layer = hrm_layer,
    .is = &(const hn_switches){ .neox = true, .own_gate = true, .plain = HN_PLAIN_NORMS },
};

/* ---- OpenELM --------------------------------------------------------------------------------------------- */

static const hn_slot openelm_layer[] = {
    NORM("attn_norm", attn_norm, E, "attn_norm"),
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    ATTN_OUT,
    NORM("attn_q_norm", attn_q_norm, HN_DIM_HEAD, "attn.q_norm"),
    NORM("attn_k_norm", attn_k_norm, HN_DIM_HEAD, "attn.k_norm"),
    NORM("ffn_norm", ffn_norm, E, "ffn_norm"),
    GATE,
    UP,
    DOWN,
    { 0 },
};

static hone_status openelm_hparams(hone_model *m, hone_error *err)
{
    const hn_hparams *hp = &m->hp;
    char key[128];
    hone_status st = with_key(m, "attention.key_length", err);
    for (int32_t il = 0; st == HONE_OK && il < hp->n_layer; il++)
        if (!hp->kv_of[il] || !hp->ff_of[il])
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s[%d] = 0, expected at least 1", m->path,
                           hn_arch_key(m, key, hp->kv_of[il] ? "feed_forward_length" : "attention.head_count_kv"),
                           (int)il);
    return st;
}
void hn_by_layer_plan(hn_layer_plan *out, const hn_hparams *hp, int32_t il)
{
    hn_attn_plan(out, hp, il);
    out->n_head_kv = hp->kv_of[il];
    out->n_ff = hp->ff_of[il];
}
const hn_family hn_family_openelm = {
    .name = "openelm",
    .bit = HN_OPENELM,
    .hparams = openelm_hparams,
    .plan = hn_by_layer_plan,
    .outer = hn_plain_outer,
    .layer = openelm_layer,
    .is =
        &(const hn_switches){ .neox = true, .qk_norm = HN_HEAD_NORM_EACH, .reads = HN_READS_LAYERS | HN_READS_QUERIES },
};

/* ---- DBRX ------------------------------------------------------------------------------------------------- */

static const hn_slot dbrx_layer[] = {
    NORM("attn_norm", attn_norm, E, "norm_attn_norm.norm_1"),
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    ATTN_OUT,
    NORM("attn_output_norm", ffn_norm, E, "norm_attn_norm.norm_2"),
    ROUTER,
    EXPERTS,
    { 0 },
};
static hone_status dbrx_hparams(hone_model *m, hone_error *err) { return with_key(m, "attention.clamp_kqv", err); }
const hn_family hn_family_dbrx = {
    .name = "dbrx",
    .bit = HN_DBRX,
    .hparams = dbrx_hparams,
    .plan = hn_attn_plan,
    .outer = hn_plain_outer,
    .layer = dbrx_layer,
    .is = &(const hn_switches){ .neox = true,
                                .layer_norm = true,
                                .reads = HN_READS_CLIP,
                                .ffn = HN_FFN_MOE,
                                MOE(.gating = HN_GATING_SOFTMAX, .norm = HN_MOE_NORM_ALWAYS) },
};

/* ---- Talkie ------------------------------------------------------------------------------------------------ */

static const hn_slot talkie_outer[] = { EMBD, MATRIX("output", OUTSIDE(output), OUTPUT, ROWS, E, HN_DIM_VOCAB), { 0 } };
static const hn_slot talkie_layer[] = {
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    { .name = "attn_q_norm.weight",
      .field = OF(attn_q_norm),
      .kind = HN_SLOT_VALUES,
      .ne = { 1, HN_DIM_HEADS } }, /* of keys there is none */
    ATTN_OUT,
    GATE,
    UP,
    DOWN,
    VECTOR("layer_output_scale.weight", OF(out_scale), 1),
    { 0 },
};
static hone_status talkie_hparams(hone_model *m, hone_error *err) { return with_key(m, "logit_scale", err); }
const hn_family hn_family_talkie = {
    .name = "talkie",
    .bit = HN_TALKIE,
    .hparams = talkie_hparams,
    .plan = hn_attn_plan,
    .outer = talkie_outer,
    .layer = talkie_layer,
    .is = &(const hn_switches){ .neox = true,
                                .plain = HN_PLAIN_EMBD | HN_PLAIN_NORMS,
                                .embd_again = true,
                                .qk_norm = HN_HEAD_NORM_GAIN,
                                .qk_norm_after = true,
                                .reads = HN_READS_LOGIT_SCALE },
};

/* ---- PLaMo 3 ----------------------------------------------------------------------------------------------- */

/* Norms behind halves have no ".weight" in its files. */
static const hn_slot plamo3_layer[] = {
    ATTN_NORM,
    QKV(HN_TURN_NONE, HN_TURN_NONE),
    QK_NORM(HN_TURN_NONE),
    ATTN_OUT,
    VECTOR("post_attention_norm", OF(attn_post_norm), E),
    FFN_NORM,
    FUSED_GLU,
    VECTOR("post_ffw_norm", OF(ffn_post_norm), E),
    { 0 },
};
const hn_family hn_family_plamo3 = TRANSFORMER(
    "plamo3", HN_PLAMO3, false, hn_plain_outer, plamo3_layer, .neox = true, .qk_norm = HN_HEAD_NORM_EACH,
    .reads = HN_READS_WINDOW, .window_period = 8, .window_rope = HN_WINDOW_ROPE_PLAIN, .window_base = 10000);

/* ---- BitNet ------------------------------------------------------------------------------------------------ */

static const hn_slot bitnet_layer[] = {
    ATTN_NORM,
    ATTN(HN_TURN_NONE, HN_TURN_NONE),
    NORM("attn_sub_norm", attn_sub_norm, HN_DIM_O, "self_attn.attn_sub_norm"),
    FFN_NORM,
    GATE,
    UP,
    NORM("ffn_sub_norm", ffn_sub_norm, FF, "mlp.ffn_sub_norm"),
    DOWN,
    { 0 },
};
const hn_family hn_family_bitnet = TRANSFORMER("bitnet", HN_BITNET, false, hn_plain_outer, bitnet_layer, .neox = true);
const hn_family hn_family_bitnet158 =
    TRANSFORMER("bitnet-b1.58", HN_BITNET158, false, hn_plain_outer, bitnet_layer, .neox = true, .map = HN_MAP_SQRELU);
