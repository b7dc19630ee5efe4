/* hf_hybrid: classes of transformers with layers whose memory does not grow: Mamba, Mamba-2, gated convolutions, the
 * gated delta rule, alone or between layers of attention. Which layer is what, the config says in a list of words (or
 * letters), or by a period, GGUF in arrays of numbers. Refuses to know how pieces are walked (hf_make.c). */
#include "forge/hf_rows.h"

#include <stdlib.h>

/* ---- which layer is what -------------------------------------------------------------------------------------- */

#define MAMBA "mamba|linear_attention|M"

/* Heads of keys, in layers that attend. */
static hone_status put_heads(hn_hf *f, const char *names, const char *others, hone_error *err)
{
    int64_t n;
    hone_status st;
    TRY(hn_hf_whole(f, "num_key_value_heads", 8, &n, err));
    return hn_hf_put_numbers(f, "attention.head_count_kv", names, ATTENDS, others, n, err);
}

/* ---- Mamba-2 ---------------------------------------------------------------------------------------------------- */

#define SSM_NAMES(where)                                                                         \
    { "ssm_in", where ".in_proj", NULL }, { "ssm_conv1d", where ".conv1d", hn_hf_reshaped },     \
        { "ssm_dt.bias", where ".dt_bias", NULL }, { "ssm_a", where ".A_log", hn_hf_minus_exp }, \
        { "ssm_d", where ".D", hn_hf_reshaped }, { "ssm_norm", where ".norm", hn_hf_reshaped },  \
    {                                                                                            \
        "ssm_out", where ".out_proj", NULL                                                       \
    }

/* Steps that are not cut off: [0, ∞], in whatever way a program writes that. */
static hone_status check_steps(hn_hf *f, hone_error *err)
{
    const json_t *v = hn_hf_get(f, "time_step_limit"), *top = json_array_get(v, 1);
    const char *word = hn_json_text_of(top, "__float__");
    if (!v) return HONE_OK;
    bool open =
        json_is_null(top) || !strcmp(word, "Infinity") || (json_is_number(top) && json_number_value(top) > 1e30);
    bool zero = json_is_number(json_array_get(v, 0)) && json_number_value(json_array_get(v, 0)) == 0;
    return open && zero ? HONE_OK : hn_hf_refuse(f, "time_step_limit", v, "[0, Infinity]", err);
}

static hone_status put_ssm(hn_hf *f, int64_t heads, int64_t width, int64_t state, int64_t groups, int64_t taps,
                           hone_error *err)
{
    hone_status st;
    if (heads < 1 || heads > HN_MAX_HEAD || width < 1 || width > HN_MAX_EMBD)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %lld Mamba heads of %lld, expected 1 to %d of 1 to %d", f->path,
                       (long long)heads, (long long)width, HN_MAX_HEAD, HN_MAX_EMBD);
    TRY(hn_hf_put_u32(f, "ssm.conv_kernel", (uint32_t)taps, err));
    TRY(hn_hf_put_u32(f, "ssm.inner_size", (uint32_t)(heads * width), err));
    TRY(hn_hf_put_u32(f, "ssm.state_size", (uint32_t)state, err));
    TRY(hn_hf_put_u32(f, "ssm.time_step_rank", (uint32_t)heads, err));
    TRY(hn_hf_put_u32(f, "ssm.group_count", (uint32_t)groups, err));
    return check_steps(f, err);
}

/* The five numbers, each by its name or the class's own. */
static hone_status read_ssm(hn_hf *f, const char *const names[5], const int64_t absent[5], hone_error *err)
{
    int64_t v[5];
    hone_status st;
    for (int i = 0; i < 5; i++) TRY(hn_hf_whole(f, names[i], absent[i], &v[i], err));
    return put_ssm(f, v[0], v[1], v[2], v[3], v[4], err);
}

/* Of models without attention and feed-forward parts; a context has no end. */
#define MAMBA_ROWS                                                                                                   \
    U32_OR("max_position_embeddings", "context_length", 1048576), MORE("intermediate_size", "feed_forward_length"),  \
        MORE("num_attention_heads", "attention.head_count"), MORE("num_key_value_heads", "attention.head_count_kv"), \
        MORE("head_dim", "attention.key_length|attention.value_length"),                                             \
        F32_OR("layer_norm_epsilon", "attention.layer_norm_rms_epsilon", 1e-5), MORE("rms_norm_eps", NULL),          \
        TENSORS("use_conv_bias", 1, "ssm_conv1d.bias"), ONLY("use_bias", 0), WORD("hidden_act", "silu|swish")
static const hn_hf_key mamba2_keys[] = {
    MAMBA_ROWS, MORE("num_heads", NULL), MORE("state_size", NULL), MORE("n_groups", NULL), MORE("conv_kernel", NULL),
    KEYS_END,
};
static const hn_hf_name mamba2_names[] = {
    { "token_embd", "embeddings", NULL },
    { "output_norm", "norm_f", NULL },
    { "attn_norm", "norm", NULL },
    SSM_NAMES("mixer"),
    NAMES_END,
};
static hone_status mamba2_more(hn_hf *f, hone_error *err)
{
    static const char *const names[5] = { "num_heads", "head_dim", "state_size", "n_groups", "conv_kernel" };
    hone_status st;
    f->own_base = f->own_width = true; /* nothing turns */
    TRY(hn_hf_put_u32(f, "attention.head_count", 0, err));
    TRY(hn_hf_put_u32(f, "feed_forward_length", 0, err));
    return read_ssm(f, names, (const int64_t[5]){ 128, 64, 128, 8, 4 }, err);
}
static const hn_hf_class mamba2 = {
    .names = "Mamba2ForCausalLM",
    .types = "mamba2",
    .arch = "mamba2",
    .root = "backbone.",
    .keys = mamba2_keys,
    .tensors = mamba2_names,
    .idle = "chunk_size expand residual_in_fp32 rescale_prenorm_residual "
            "time_step_floor time_step_max time_step_min time_step_rank "
            "time_step_init_scheme time_step_scale use_mamba_kernels rms_norm norm_before_gate",
    .more = mamba2_more
};

/* ---- Mamba, Falcon-Mamba ----- */

#define OLD_SSM_NAMES(where)                                                                        \
    { "ssm_in", where ".in_proj", NULL }, { "ssm_conv1d", where ".conv1d", hn_hf_reshaped },        \
        { "ssm_x", where ".x_proj", NULL }, { "ssm_dt_norm", where ".dt_layernorm", NULL },         \
        { "ssm_b_norm", where ".b_layernorm", NULL }, { "ssm_c_norm", where ".c_layernorm", NULL }, \
        { "ssm_dt", where ".dt_proj", NULL }, { "ssm_a", where ".A_log", hn_hf_minus_exp },         \
        { "ssm_d", where ".D", NULL },                                                              \
    {                                                                                               \
        "ssm_out", where ".out_proj", NULL                                                          \
    }

/* Sizes of the mixer: `expand` times as many channels as the stream; the rank of steps, or a sixteenth of it. */
static hone_status put_old_ssm(hn_hf *f, const char *rank_name, const char *expand_name, int64_t inner, hone_error *err)
{
    const json_t *rank = hn_hf_get(f, rank_name);
    int64_t n_embd, expand, n;
    hone_status st;
    TRY(hn_hf_whole(f, "hidden_size", 0, &n_embd, err));
    TRY(hn_hf_whole(f, expand_name, 2, &expand, err));
    if (!inner && n_embd > 0 && n_embd <= HN_MAX_EMBD && expand > 0 && expand <= 64) inner = n_embd * expand;
    if (inner < 1 || inner > HN_MAX_EMBD)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: hidden_size = %lld, %s = %lld, expected 1 to %d channels in all",
                       f->path, (long long)n_embd, expand_name, (long long)expand, HN_MAX_EMBD);
    n = (n_embd + 15) / 16;
    if (json_is_integer(rank)) TRY(hn_hf_whole(f, rank_name, n, &n, err));
    else if (rank && (!json_is_string(rank) || strcmp(json_string_value(rank), "auto") != 0))
        return hn_hf_refuse(f, rank_name, rank, "a number, or auto", err);
    TRY(hn_hf_put_u32(f, "ssm.inner_size", (uint32_t)inner, err));
    return hn_hf_put_u32(f, "ssm.time_step_rank", (uint32_t)n, err);
}

static const hn_hf_key mamba_keys[] = {
    MAMBA_ROWS,
    U32_OR("state_size", "ssm.state_size", 16),
    U32_OR("conv_kernel", "ssm.conv_kernel", 4),
    MORE("time_step_rank", NULL),
    MORE("expand", NULL),
    KEYS_END,
};
static const hn_hf_name mamba_names[] = {
    { "token_embd", "embeddings", NULL },
    { "output_norm", "norm_f", NULL },
    { "attn_norm", "norm", NULL },
    OLD_SSM_NAMES("mixer"),
    NAMES_END,
};
static hone_status mamba_sizes(hn_hf *f, bool normed, hone_error *err)
{
    int64_t inner;
    hone_status st;
    f->own_base = f->own_width = true; /* nothing turns */
    TRY(hn_hf_put_u32(f, "attention.head_count", 0, err));
    TRY(hn_hf_put_u32(f, "feed_forward_length", 0, err));
    TRY(hn_hf_put_bool(f, "ssm.dt_b_c_rms", normed, err));
    TRY(hn_hf_whole(f, "intermediate_size", 0, &inner, err));
    return put_old_ssm(f, "time_step_rank", "expand", inner, err);
}
static hone_status mamba_more(hn_hf *f, hone_error *err) { return mamba_sizes(f, false, err); }
static hone_status falcon_mamba_more(hn_hf *f, hone_error *err) { return mamba_sizes(f, true, err); }
static bool norms_steps(const hn_gguf *g)
{
    const int64_t i = hn_gguf_find(g, "mamba.ssm.dt_b_c_rms");
    hone_kv kv = { 0 };
    if (i >= 0) hn_gguf_kv(g, (uint64_t)i, &kv);
    return kv.type == HONE_KV_BOOL && kv.v.b;
}
static bool norms_no_steps(const hn_gguf *g) { return !norms_steps(g); }
#define MAMBA_IDLE                                                                                               \
    "residual_in_fp32 rescale_prenorm_residual time_step_floor time_step_max time_step_min "                     \
    "time_step_init_scheme time_step_scale use_mambapy use_falcon_mambapy use_associative_scan d_inner d_model " \
    "n_layer ssm_cfg fused_add_norm pad_vocab_size_multiple rms_norm "
static const hn_hf_class mamba = { .names = "MambaForCausalLM",
                                   .types = "mamba",
                                   .arch = "mamba",
                                   .root = "backbone.",
                                   .keys = mamba_keys,
                                   .tensors = mamba_names,
                                   .idle = MAMBA_IDLE,
                                   .tied = true,
                                   .fits = norms_no_steps,
                                   .more = mamba_more };
/* (files have one epsilon: that of the norms, which are in nobody's way, is taken for all) */
static const hn_hf_class falcon_mamba = {
    .names = "FalconMambaForCausalLM",
    .types = "falcon_mamba",
    .arch = "mamba",
    .root = "backbone.",
    .keys = mamba_keys,
    .tensors = mamba_names,
    .idle = MAMBA_IDLE "mixer_rms_eps",
    .left = "*.dt_layernorm.weight *.b_layernorm.weight *.c_layernorm.weight", /* ones that nobody learned */
    .tied = true,
    .fits = norms_steps,
    .more = falcon_mamba_more
};

/* ---- Jamba ----- */

static const hn_hf_key jamba_keys[] = {
    MORE("num_key_value_heads", "attention.head_count_kv"),
    U32_OR("mamba_d_state", "ssm.state_size", 16),
    U32_OR("mamba_d_conv", "ssm.conv_kernel", 4),
    MORE("mamba_expand", NULL),
    MORE("mamba_dt_rank", NULL),
    TENSORS("mamba_conv_bias", 1, "ssm_conv1d.bias"),
    ONLY("mamba_proj_bias", 0),
    ONLY("mamba_inner_layernorms", 1),
    ONLY("sliding_window", 0),
    MORE("attn_layer_period", NULL),
    MORE("attn_layer_offset", NULL),
    MORE("expert_layer_period", NULL),
    MORE("expert_layer_offset", NULL),
    MORE("num_experts|num_local_experts", NULL),
    MORE("num_experts_per_tok", NULL),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-6),
    KEYS_END,
};
static const hn_hf_name jamba_names[] = {
    { "output_norm", "final_layernorm", NULL },
    { "ffn_norm", "pre_ff_layernorm", NULL },
    { "ffn_gate_inp", "feed_forward.router", NULL },
    EXPERT_NAMES("feed_forward.experts", "gate_proj", "up_proj", "down_proj"),
    { "ffn_gate", "feed_forward.gate_proj", NULL },
    { "ffn_up", "feed_forward.up_proj", NULL },
    { "ffn_down", "feed_forward.down_proj", NULL },
    OLD_SSM_NAMES("mamba"),
    NAMES_END,
};

/* Every so many-th layer, from one on. */
static hone_status read_period(hn_hf *f, const char *const names[2], const int64_t absent[2], int64_t *period,
                               int64_t *offset, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_whole(f, names[0], absent[0], period, err));
    TRY(hn_hf_whole(f, names[1], absent[1], offset, err));
    if (*period >= 1 && *offset >= 0 && *offset < *period) return HONE_OK;
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %lld, %s = %lld, expected a layer of each period", f->path, names[0],
                   (long long)*period, names[1], (long long)*offset);
}

static hone_status jamba_experts(hn_hf *f, int64_t n_expert, hone_error *err)
{
    static const char *const names[2] = { "expert_layer_period", "expert_layer_offset" };
    int64_t used, period, offset;
    hone_status st;
    if (n_expert < 2) return HONE_OK;
    TRY(hn_hf_whole(f, "num_experts_per_tok", 2, &used, err));
    TRY(read_period(f, names, (const int64_t[2]){ 2, 1 }, &period, &offset, err));
    if (offset != period - 1)
        return HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: %s = %lld, expected %lld: the last layer of each %s = %lld",
                       f->path, names[1], (long long)offset, (long long)period - 1, names[0], (long long)period);
    TRY(hn_hf_put_u32(f, "expert_count", (uint32_t)n_expert, err));
    TRY(hn_hf_put_u32(f, "expert_used_count", (uint32_t)used, err));
    return hn_hf_put_u32(f, "interleave_moe_layer_step", (uint32_t)period, err);
}

static hone_status jamba_more(hn_hf *f, hone_error *err)
{
    static const char *const names[2] = { "attn_layer_period", "attn_layer_offset" };
    int64_t n_layer, n_kv, period, offset, n_expert, n_ff;
    int32_t *kv;
    hone_status st;
    f->own_base = f->own_width = true; /* nothing turns */
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    TRY(hn_hf_whole(f, "num_key_value_heads", 8, &n_kv, err));
    TRY(hn_hf_whole(f, "num_experts|num_local_experts", 16, &n_expert, err));
    TRY(hn_hf_whole(f, "intermediate_size", 0, &n_ff, err));
    TRY(read_period(f, names, (const int64_t[2]){ 8, 4 }, &period, &offset, err));
    if (n_layer < 1 || n_layer > HN_MAX_LAYER)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: num_hidden_layers = %lld, expected 1 to %d", f->path,
                       (long long)n_layer, HN_MAX_LAYER);
    if (!(kv = hn_arena_alloc(f->arena, (size_t)n_layer * sizeof *kv)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (int64_t il = 0; il < n_layer; il++) kv[il] = il % period == offset ? (int32_t)n_kv : 0;
    TRY(hn_hf_put_layers(f, "attention.head_count_kv", HONE_KV_I32, kv, n_layer, err));
    if (n_expert > 1) TRY(hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)n_ff, err));
    TRY(jamba_experts(f, n_expert, err));
    return put_old_ssm(f, "mamba_dt_rank", "mamba_expand", 0, err);
}
static const hn_hf_class jamba = { .names = "JambaForCausalLM",
                                   .types = "jamba",
                                   .arch = "jamba",
                                   .keys = jamba_keys,
                                   .tensors = jamba_names,
                                   .idle = ROUTER_IDLE "use_mamba_kernels use_mambapy use_associative_scan "
                                                       "num_logits_to_keep calc_logits_for_entire_prompt",
                                   .fits = hn_hf_never,
                                   .more = jamba_more };

/* ---- both side by side: Falcon-H1 ----- */

static float number_at(const json_t *list, size_t i, float absent)
{
    const json_t *v = json_array_get(list, i);
    return json_is_number(v) ? (float)json_number_value(v) : absent;
}
static float multiplier(hn_hf *f, const char *name)
{
    const json_t *v = hn_hf_get(f, name);
    return json_is_number(v) ? (float)json_number_value(v) : 1;
}

static hone_status times(hn_hf *f, const hn_hf_at *at, float by, hone_error *err)
{
    hn_hf_view v = { .n = { at->ne[0] * at->ne[1] }, .stride = { 1 }, .map = HN_HF_TIMES, .by = by };
    return hn_hf_make(f, at, at->n_dim, at->ne, &v, err);
}

/* What the checkpoint multiplies goes into the matrices. */
static hone_status falcon_scaled(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const json_t *mlp = hn_hf_get(f, "mlp_multipliers");
    float in = multiplier(f, "attention_in_multiplier"), by = in;
    const char *name = at->slot->name;
    if (!strncmp(name, "token_embd.", 11)) by = multiplier(f, "embedding_multiplier");
    else if (!strncmp(name, "output.", 7)) by = multiplier(f, "lm_head_multiplier");
    else if (!strncmp(name, "attn_k.", 7)) by = multiplier(f, "key_multiplier") * in;
    else if (!strncmp(name, "attn_output.", 12)) by = multiplier(f, "attention_out_multiplier");
    else if (!strncmp(name, "ssm_out.", 8)) by = multiplier(f, "ssm_out_multiplier");
    else if (!strncmp(name, "ffn_gate.", 9)) by = number_at(mlp, 0, 1);
    else if (!strncmp(name, "ffn_down.", 9)) by = number_at(mlp, 1, 1);
    return times(f, at, by, err);
}

/* Gates, values, what goes in and out of the state, steps: each by its own. */
static hone_status falcon_in(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_hparams *hp = &f->m->hp;
    const json_t *list = hn_hf_get(f, "ssm_multipliers");
    const uint64_t inner = (uint64_t)hp->ssm_inner, bc = (uint64_t)hp->ssm_group * (uint64_t)hp->ssm_state;
    const uint64_t rows[5] = { inner, inner, bc, bc, (uint64_t)hp->ssm_head };
    const hn_ckpt_tensor *t;
    float in = multiplier(f, "ssm_in_multiplier");
    uint64_t first = 0;
    hone_status st;
    TRY(hn_hf_need(&t, f, at->hf, at->n_dim, at->ne, err));
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    for (size_t i = 0; i < 5; i++) {
        hn_hf_view v = { .from = t,
                         .first = first,
                         .n = { rows[i] * at->ne[0] },
                         .stride = { 1 },
                         .map = HN_HF_TIMES,
                         .by = in * number_at(list, i, 1) };
        TRY(hn_hf_add(f, &v, err));
        first += rows[i] * at->ne[0];
    }
    return HONE_OK;
}

static const hn_hf_key falcon_keys[] = {
    MORE("mamba_d_ssm", NULL),
    MORE("mamba_n_heads", NULL),
    MORE("mamba_d_head", NULL),
    MORE("mamba_d_state", NULL),
    MORE("mamba_n_groups", NULL),
    MORE("mamba_d_conv", NULL),
    MORE("mamba_expand", NULL),
    TENSORS("mamba_conv_bias", 1, "ssm_conv1d.bias"),
    TENSORS("mamba_rms_norm", 0, "ssm_norm.weight"),
    ONLY("mamba_norm_before_gate", 0),
    ONLY("mamba_proj_bias", 0),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    ONLY("projectors_bias", 0),
    ONLY("mamba_use_mlp", 1),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    KEYS_END,
};
static const hn_hf_name falcon_names[] = {
    { "token_embd", "embed_tokens", falcon_scaled },
    { "output_norm", "final_layernorm", NULL },
    { "output", "/lm_head", falcon_scaled },
    { "attn_q", "self_attn.q_proj", falcon_scaled },
    { "attn_k", "self_attn.k_proj", falcon_scaled },
    { "attn_v", "self_attn.v_proj", falcon_scaled },
    { "attn_output", "self_attn.o_proj", falcon_scaled },
    { "ssm_in", "mamba.in_proj", falcon_in },
    { "ssm_out", "mamba.out_proj", falcon_scaled },
    { "ffn_norm.weight", "-", NULL },
    { "ffn_norm", "pre_ff_layernorm.weight", NULL },
    { "ffn_gate", "feed_forward.gate_proj", falcon_scaled },
    { "ffn_up", "feed_forward.up_proj", NULL },
    { "ffn_down", "feed_forward.down_proj", falcon_scaled },
    SSM_NAMES("mamba"),
    NAMES_END,
};
static hone_status falcon_more(hn_hf *f, hone_error *err)
{
    int64_t inner, heads, width, n_embd, expand, state, groups, taps;
    const json_t *tied = hn_hf_get(f, "tie_word_embeddings");
    bool normed;
    hone_status st;
    TRY(hn_hf_whole(f, "hidden_size", 0, &n_embd, err));
    TRY(hn_hf_whole(f, "mamba_expand", 2, &expand, err));
    TRY(hn_hf_whole(f, "mamba_d_ssm", n_embd * (expand < 64 ? expand : 64), &inner, err));
    TRY(hn_hf_whole(f, "mamba_n_heads", 128, &heads, err));
    width = heads ? inner / heads : 0; /* mamba_d_head, which may be "auto" */
    TRY(hn_hf_whole(f, "mamba_d_state", 256, &state, err));
    TRY(hn_hf_whole(f, "mamba_n_groups", 1, &groups, err));
    TRY(hn_hf_whole(f, "mamba_d_conv", 4, &taps, err));
    TRY(hn_hf_truth(f, "mamba_rms_norm", false, &normed, err));
    if (normed && !hn_hf_get(f, "mamba_norm_before_gate"))
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: has no mamba_norm_before_gate, which would be true; expected false beside mamba_rms_norm",
                       f->path);
    if (json_is_true(tied) && multiplier(f, "lm_head_multiplier") != multiplier(f, "embedding_multiplier"))
        return hn_hf_refuse(f, "tie_word_embeddings", tied, "false, or equal multipliers of both ends", err);
    TRY(put_ssm(f, heads, width, state, groups, taps, err));
    return HONE_OK;
}
static const hn_hf_class falcon = { .names = "FalconH1ForCausalLM",
                                    .types = "falcon_h1",
                                    .arch = "falcon-h1",
                                    .keys = falcon_keys,
                                    .tensors = falcon_names,
                                    .idle = "mamba_chunk_size num_logits_to_keep ssm_multipliers mlp_multipliers "
                                            "mlp_expansion_factor",
                                    .said = "rope_theta|rope_parameters",
                                    .more = falcon_more };

/* ---- Granite 4 ----- */

#define GRANITE_LAYERS "layer_types|layers_block_type"
static const hn_hf_key granite_keys[] = {
    MORE("num_local_experts", "expert_count"),
    MORE("num_experts_per_tok", "expert_used_count"),
    MORE("intermediate_size", "feed_forward_length"),
    MORE("shared_intermediate_size", NULL),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE(GRANITE_LAYERS, NULL),
    MORE("layers_block_type", NULL),
    MORE("position_embedding_type", NULL),
    MORE("mamba_n_heads", NULL),
    MORE("mamba_d_head", NULL),
    MORE("mamba_d_state", NULL),
    MORE("mamba_n_groups", NULL),
    MORE("mamba_d_conv", NULL),
    MORE("mamba_expand", NULL),
    TENSORS("mamba_conv_bias", 1, "ssm_conv1d.bias"),
    ONLY("mamba_proj_bias", 0),
    ONLY("attention_bias", 0),
    F32_OR("attention_multiplier", "attention.scale", 1),
    F32_OR("embedding_multiplier", "embedding_scale", 1),
    F32_OR("residual_multiplier", "residual_scale", 1),
    F32_OR("logits_scaling", "logit_scale", 1),
    WORD("normalization_function", "rmsnorm"),
    KEYS_END,
};
static const hn_hf_name granite_names[] = {
    SSM_NAMES("mamba"),
    { "ffn_gate_inp", "block_sparse_moe.router.layer", NULL },
    { "ffn_gate_exps", "block_sparse_moe.input_linear", hn_hf_experts },
    { "ffn_up_exps", "block_sparse_moe.input_linear", hn_hf_experts },
    { "ffn_down_exps", "block_sparse_moe.output_linear", hn_hf_experts },
    { "ffn_gate_shexp", "shared_mlp.input_linear", hn_hf_half },
    { "ffn_up_shexp", "shared_mlp.input_linear", hn_hf_half },
    { "ffn_down_shexp", "shared_mlp.output_linear", NULL },
    { "ffn_gate", "shared_mlp.input_linear", hn_hf_half }, /* without experts it is all there is */
    { "ffn_up", "shared_mlp.input_linear", hn_hf_half },
    { "ffn_down", "shared_mlp.output_linear", NULL },
    NAMES_END,
};
static hone_status granite_more(hn_hf *f, hone_error *err)
{
    int64_t n_expert, used, n_ff, shared, n_embd, expand, heads, width, state, groups, taps;
    const json_t *where = hn_hf_get(f, "position_embedding_type"), *auto_width = hn_hf_get(f, "mamba_d_head");
    const char *turns = where ? json_string_value(where) : "";
    hone_status st;
    TRY(hn_hf_whole(f, "num_local_experts", 0, &n_expert, err));
    TRY(hn_hf_whole(f, "num_experts_per_tok", 0, &used, err));
    TRY(hn_hf_whole(f, "intermediate_size", 0, &n_ff, err));
    TRY(hn_hf_whole(f, "shared_intermediate_size", 0, &shared, err));
    if (!turns || !hn_hf_is_word("|rope|nope", turns, strlen(turns)))
        return hn_hf_refuse(f, "position_embedding_type", where, "rope or nope", err);
    TRY(hn_hf_put_u32(f, "feed_forward_length", (uint32_t)(n_expert ? n_ff : shared), err));
    if (n_expert) {
        TRY(hn_hf_put_u32(f, "expert_count", (uint32_t)n_expert, err));
        TRY(hn_hf_put_u32(f, "expert_used_count", (uint32_t)used, err));
        TRY(hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)n_ff, err));
        TRY(hn_hf_put_u32(f, "expert_shared_feed_forward_length", (uint32_t)shared, err));
    }
    TRY(hn_hf_put_bool(f, "rope.scaling.finetuned", !strcmp(turns, "rope"), err));
    TRY(put_heads(f, GRANITE_LAYERS, MAMBA, err));
    TRY(hn_hf_whole(f, "hidden_size", 0, &n_embd, err));
    TRY(hn_hf_whole(f, "mamba_expand", 2, &expand, err));
    TRY(hn_hf_whole(f, "mamba_n_heads", 128, &heads, err));
    width = heads && expand < 64 ? n_embd * expand / heads : 0;
    if (json_is_integer(auto_width)) TRY(hn_hf_whole(f, "mamba_d_head", width, &width, err));
    TRY(hn_hf_whole(f, "mamba_d_state", 256, &state, err));
    TRY(hn_hf_whole(f, "mamba_n_groups", 1, &groups, err));
    TRY(hn_hf_whole(f, "mamba_d_conv", 4, &taps, err));
    return put_ssm(f, heads, width, state, groups, taps, err);
}
static const hn_hf_class granite = { .names = "GraniteMoeHybridForCausalLM",
                                     .types = "granitemoehybrid",
                                     .arch = "granitehybrid",
                                     .keys = granite_keys,
                                     .tensors = granite_names,
                                     .idle = ROUTER_IDLE "mamba_chunk_size init_method router_jitter_noise",
                                     .more = granite_more };

/* ---- Nemotron-H: one half in a layer ----- */

#define NEMOTRON_LAYERS "hybrid_override_pattern|layers_block_type"
#define NEMOTRON_ROWS                                                                                               \
    MORE("num_hidden_layers", "block_count"), MORE("intermediate_size", "feed_forward_length"),                     \
        MORE("num_key_value_heads", "attention.head_count_kv"), MORE(NEMOTRON_LAYERS, NULL),                        \
        MORE("layers_block_type", NULL), MORE("mamba_num_heads", NULL), MORE("mamba_head_dim", NULL),               \
        MORE("ssm_state_size", NULL), MORE("n_groups", NULL), MORE("conv_kernel", NULL), ONLY("attention_bias", 0), \
        ONLY("mlp_bias", 0), ONLY("use_bias", 0), ONLY("mamba_proj_bias", 0), ONLY("sliding_window", 0),            \
        TENSORS("use_conv_bias", 1, "ssm_conv1d.bias"), WORD("mlp_hidden_act", "relu2"),                            \
        U32_MAY("head_dim|attention_head_dim", "attention.key_length|attention.value_length"),                      \
        WORD("mamba_hidden_act", "silu"), WORD("hidden_act", "silu|relu2"), MORE("rms_norm_eps", NULL),             \
        F32_OR("layer_norm_epsilon|norm_eps|rms_norm_eps",                                                          \
               "attention.layer_norm_rms_epsilon|attention.layer_norm_epsilon", 1e-5)
#define NEMOTRON_IDLE                                                                                            \
    "chunk_size expand mamba_ssm_cache_dtype num_logits_to_keep num_nextn_predict_layers mtp_layers_block_type " \
    "rescale_prenorm_residual residual_in_fp32 time_step_floor time_step_max time_step_min time_step_rank "      \
    "use_mamba_kernels mtp_hybrid_override_pattern moe_shared_expert_overlap rope_theta partial_rotary_factor "  \
    "max_window_layers num_query_groups time_step_init_scheme time_step_scale " ROUTER_IDLE

/* Rows of all experts in one, [n_expert, n_out, n_in]; or of one each. */
static hone_status nemotron_experts(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    const char *star = strchr(at->hf, '*');
    snprintf(name, sizeof name, "%.*s%s", (int)(star - at->hf), at->hf,
             at->slot->role == HN_ROLE_EXPERT_DOWN ? "down_proj" : "up_proj");
    if (!hn_hf_find(f, name)) return hn_hf_experts(f, at, err);
    as.hf = name;
    return hn_hf_reshaped(f, &as, err);
}
#define NEMOTRON_NAMES                                                                                              \
    { "token_embd", "embeddings", NULL }, { "output_norm", "norm_f", NULL }, { "attn_norm", "norm", NULL },         \
        { "attn_q", "mixer.q_proj", NULL }, { "attn_k", "mixer.k_proj", NULL }, { "attn_v", "mixer.v_proj", NULL }, \
        { "attn_output", "mixer.o_proj", NULL }, SSM_NAMES("mixer")
static const hn_hf_name nemotron_names[] = {
    NEMOTRON_NAMES,
    { "ffn_up", "mixer.up_proj", NULL },
    { "ffn_down", "mixer.down_proj", NULL },
    NAMES_END,
};
static const hn_hf_name nemotron_moe_names[] = {
    NEMOTRON_NAMES,
    { "ffn_gate_inp", "mixer.gate", NULL },
    { "exp_probs_b.bias", "mixer.gate.e_score_correction_bias", hn_hf_flat },
    { "ffn_up_exps", "mixer.experts.*.up_proj", nemotron_experts },
    { "ffn_down_exps", "mixer.experts.*.down_proj", nemotron_experts },
    { "ffn_up_shexp", "mixer.shared_experts.up_proj", NULL },
    { "ffn_down_shexp", "mixer.shared_experts.down_proj", NULL },
    NAMES_END,
};

/* Widths of layers that are one of both words. */
static hone_status nemotron_more(hn_hf *f, hone_error *err)
{
    static const char *const names[5] = { "mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups",
                                          "conv_kernel" };
    hn_hf_layers l;
    int64_t n_ff, n_exp;
    int32_t *ff;
    hone_status st;
    TRY(hn_hf_read_layers(f, NEMOTRON_LAYERS, &l, err));
    TRY(hn_hf_put_u32(f, "block_count", (uint32_t)l.n, err));
    TRY(put_heads(f, NEMOTRON_LAYERS, MAMBA "|mlp|-|moe|E", err));
    TRY(hn_hf_whole(f, "intermediate_size", 0, &n_ff, err));
    TRY(hn_hf_whole(f, "moe_intermediate_size", 0, &n_exp, err));
    if (!(ff = hn_arena_alloc(f->arena, (size_t)l.n * sizeof *ff)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (int64_t il = 0; il < l.n; il++)
        ff[il] = (int32_t)(hn_hf_layer_is(l.list, il, "mlp|-")   ? n_ff
                           : hn_hf_layer_is(l.list, il, "moe|E") ? n_exp
                                                                 : 0);
    TRY(hn_hf_put_layers(f, "feed_forward_length", HONE_KV_I32, ff, l.n, err));
    return read_ssm(f, names, (const int64_t[5]){ 128, 64, 128, 8, 4 }, err);
}

static hone_status nemotron_moe_more(hn_hf *f, hone_error *err)
{
    int64_t n, used, shared;
    hn_hf_layers l;
    hone_status st;
    TRY(nemotron_more(f, err));
    TRY(hn_hf_read_layers(f, NEMOTRON_LAYERS, &l, err));
    for (int64_t il = 0; il < l.n; il++)
        if (hn_hf_layer_is(l.list, il, "mlp|-"))
            return HN_FAIL(err, HONE_E_UNSUPPORTED,
                           "%s: layer %lld is dense and others have experts, expected one kind", f->path,
                           (long long)il);
    TRY(hn_hf_whole(f, "n_group", 1, &n, err));
    TRY(hn_hf_whole(f, "topk_group", 1, &used, err));
    TRY(hn_hf_whole(f, "n_shared_experts", 1, &shared, err));
    TRY(hn_hf_put_u32(f, "expert_shared_count", (uint32_t)shared, err));
    if (n < 2) return HONE_OK;
    TRY(hn_hf_put_u32(f, "expert_group_count", (uint32_t)n, err));
    return hn_hf_put_u32(f, "expert_group_used_count", (uint32_t)used, err);
}

static const hn_hf_key nemotron_keys[] = { NEMOTRON_ROWS, KEYS_END };
static const hn_hf_key nemotron_moe_keys[] = {
    NEMOTRON_ROWS,
    U32("n_routed_experts", "expert_count"),
    U32("num_experts_per_tok", "expert_used_count"),
    U32("moe_intermediate_size", "expert_feed_forward_length"),
    U32("moe_shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    F32_OR("routed_scaling_factor", "expert_weights_scale", 1),
    BOOL_OR("norm_topk_prob", "expert_weights_norm", 1),
    MORE("n_group", NULL),
    MORE("topk_group", NULL),
    MORE("n_shared_experts", NULL),
    ONLY("moe_latent_size", 0),
    KEYS_END,
};
static const hn_hf_class *nemotron_which(const hn_hf *f);
static const hn_hf_class nemotron = { .names = "NemotronHForCausalLM",
                                      .types = "nemotron_h",
                                      .which = nemotron_which,
                                      .arch = "nemotron_h",
                                      .root = "backbone.",
                                      .keys = nemotron_keys,
                                      .tensors = nemotron_names,
                                      .idle = NEMOTRON_IDLE
                                      "n_routed_experts num_experts_per_tok moe_intermediate_size "
                                      "moe_shared_expert_intermediate_size routed_scaling_factor norm_topk_prob "
                                      "n_group topk_group n_shared_experts moe_latent_size",
                                      .left = "mtp.*",
                                      .more = nemotron_more };
static const hn_hf_class nemotron_moe = { .names = "NemotronHForCausalLM",
                                          .types = "nemotron_h",
                                          .arch = "nemotron_h_moe",
                                          .root = "backbone.",
                                          .keys = nemotron_moe_keys,
                                          .tensors = nemotron_moe_names,
                                          .idle = NEMOTRON_IDLE,
                                          .left = "mtp.*",
                                          .more = nemotron_moe_more };
static const hn_hf_class *nemotron_which(const hn_hf *f)
{
    const json_t *list = json_object_get(f->config, "hybrid_override_pattern");
    if (!json_is_string(list)) list = json_object_get(f->config, "layers_block_type");
    for (int64_t il = 0; il < HN_MAX_LAYER; il++)
        if (hn_hf_layer_is(list, il, "moe|E")) return &nemotron_moe;
    return &nemotron;
}

/* ---- gated convolutions: LFM2 ----- */

#define LFM2_NAMES                                                                                          \
    { "token_embd_norm", "embedding_norm", NULL }, { "attn_norm", "operator_norm", NULL },                  \
        { "ffn_norm", "ffn_norm", NULL }, { "attn_output", "self_attn.out_proj", NULL },                    \
        { "attn_q_norm", "self_attn.q_layernorm", NULL }, { "attn_k_norm", "self_attn.k_layernorm", NULL }, \
        { "shortconv.in_proj", "conv.in_proj", NULL }, { "shortconv.conv", "conv.conv", hn_hf_reshaped },   \
        { "shortconv.out_proj", "conv.out_proj", NULL }, { "ffn_gate", "feed_forward.w1", NULL },           \
        { "ffn_up", "feed_forward.w3", NULL },                                                              \
    {                                                                                                       \
        "ffn_down", "feed_forward.w2", NULL                                                                 \
    }
#define LFM2_ROWS                                                                                     \
    U32_OR("conv_L_cache", "shortconv.l_cache", 3), ONLY("conv_bias", 0), MORE("rms_norm_eps", NULL), \
        F32_OR("norm_eps|block_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),                  \
        MORE("num_key_value_heads", "attention.head_count_kv"), ONLY("use_pos_enc", 1),               \
        MORE("layer_types|full_attn_idxs", NULL), MORE("full_attn_idxs", NULL), MORE("tie_embedding", NULL)

/* Which layers attend: a list of words, or of their numbers. */
static hone_status lfm2_heads(hn_hf *f, hone_error *err)
{
    const json_t *kinds = hn_hf_get(f, "layer_types"), *list = hn_hf_get(f, "full_attn_idxs");
    int64_t n_layer, n_kv;
    int32_t *of;
    hone_status st;
    if (kinds) return put_heads(f, "layer_types", "conv", err);
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    TRY(hn_hf_whole(f, "num_key_value_heads", 8, &n_kv, err));
    if (n_layer < 1 || n_layer > HN_MAX_LAYER || !json_is_array(list))
        return hn_hf_refuse(f, "full_attn_idxs", list, "a list of layers, or layer_types", err);
    if (!(of = hn_arena_alloc(f->arena, (size_t)n_layer * sizeof *of)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (!json_is_integer(v) || json_integer_value(v) < 0 || json_integer_value(v) >= n_layer)
            return hn_hf_refuse(f, "full_attn_idxs", list, "numbers of layers", err);
        of[json_integer_value(v)] = (int32_t)n_kv;
    }
    return hn_hf_put_layers(f, "attention.head_count_kv", HONE_KV_I32, of, n_layer, err);
}

/* The width that the class makes of the config's. */
static hone_status lfm2_more(hn_hf *f, hone_error *err)
{
    int64_t n_ff, multiple;
    double by;
    bool scaled, adjusted;
    hone_status st;
    /* the first files say the base of rotations twice */
    const json_t *theta = hn_hf_get(f, "theta"), *base = json_object_get(f->config, "rope_theta");
    if (theta && json_number_value(theta) != json_number_value(base))
        return hn_hf_refuse(f, "theta", theta, "that of rope_theta", err);
    TRY(hn_hf_whole(f, "block_ff_dim|intermediate_size", 0, &n_ff, err));
    TRY(hn_hf_whole(f, "block_multiple_of", 256, &multiple, err));
    TRY(hn_hf_number(f, "block_ffn_dim_multiplier", 1, &by, &scaled, err));
    TRY(hn_hf_truth(f, "block_auto_adjust_ff_dim", true, &adjusted, err));
    if (adjusted && multiple > 0) {
        n_ff = 2 * n_ff / 3;
        if (by > 0 && by < 1000) n_ff = (int64_t)(by * (double)n_ff);
        n_ff = (n_ff + multiple - 1) / multiple * multiple;
    }
    TRY(hn_hf_put_u32(f, "feed_forward_length", (uint32_t)n_ff, err));
    return lfm2_heads(f, err);
}

static const hn_hf_key lfm2_keys[] = {
    LFM2_ROWS,
    MORE("block_ff_dim|intermediate_size", "feed_forward_length"),
    MORE("intermediate_size", "feed_forward_length"),
    ONLY("block_use_swiglu", 1),
    KEYS_END,
};
static const hn_hf_name lfm2_names[] = { LFM2_NAMES, NAMES_END };
#define LFM2_IDLE                                                                                     \
    "conv_dim conv_dim_out conv_use_xavier_init block_dim block_mlp_init_scale block_out_init_scale " \
    "block_use_xavier_init num_heads "
static const hn_hf_class lfm2 = { .names = "Lfm2ForCausalLM|Lfm2VlForConditionalGeneration",
                                  .types = "lfm2",
                                  .arch = "lfm2",
                                  .keys = lfm2_keys,
                                  .tensors = lfm2_names,
                                  .idle = LFM2_IDLE,
                                  .tied = true,
                                  .base = 1e6,
                                  .more = lfm2_more };

static const hn_hf_key lfm2_moe_keys[] = {
    LFM2_ROWS,
    U32("num_experts", "expert_count"),
    U32("num_experts_per_tok", "expert_used_count"),
    U32("moe_intermediate_size", "expert_feed_forward_length"),
    U32_OR("num_dense_layers", "leading_dense_block_count", 2),
    ONLY("norm_topk_prob", 1),
    TENSORS("use_expert_bias", 1, "exp_probs_b.bias"),
    F32_OR("routed_scaling_factor", "expert_weights_scale", 1),
    KEYS_END,
};
static const hn_hf_name lfm2_moe_names[] = {
    LFM2_NAMES,
    { "ffn_gate_inp", "feed_forward.gate", NULL },
    { "exp_probs_b.bias", "feed_forward.expert_bias", NULL },
    EXPERT_NAMES("feed_forward.experts", "w1", "w3", "w2"),
    NAMES_END,
};
static hone_status lfm2_moe_more(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_put_u32(f, "expert_gating_func", 2, err));
    return lfm2_heads(f, err);
}
static const hn_hf_class lfm2_moe = { .names = "Lfm2MoeForCausalLM",
                                      .types = "lfm2_moe",
                                      .arch = "lfm2moe",
                                      .keys = lfm2_moe_keys,
                                      .tensors = lfm2_moe_names,
                                      .idle = LFM2_IDLE ROUTER_IDLE,
                                      .tied = true,
                                      .base = 1e6,
                                      .more = lfm2_moe_more };

const hn_hf_class *const hn_hf_hybrid[] = {
    &mamba, &falcon_mamba, &jamba, &mamba2, &falcon, &granite, &nemotron, &nemotron_moe, &lfm2, &lfm2_moe, NULL,
};
