/* hf_other: classes of transformers of one maker's models each: Muse Glimmer, OLMo of 2024, Nanbeige, HRM-Text,
 * OpenELM, DBRX, BitNet. Refuses to know how pieces are walked (hf_make.c). */
#include "forge/hf_rows.h"

#define NO_RMS                                              \
    {                                                       \
        "rms_norm_eps", NULL, HN_HF_ONLY, HN_HF_OPTIONAL, 0 \
    }

/* ---- Muse Glimmer ------------------------------------------------------------------------------------------- */

/* Files say which layers have the window: these turn, by one base, and no others. Where the config does not say it, the
 * last layer sees everything, and each fourth before it. */
static hone_status muse_more(hn_hf *f, hone_error *err)
{
    enum { PERIOD = 4 };
    const json_t *angles = hn_hf_get(f, "rope_parameters");
    uint8_t windowed[HN_MAX_LAYER];
    hn_hf_layers l, base;
    double root = 10000;
    hone_status st;
    TRY(hn_hf_read_windows(f, &l, windowed, err));
    TRY(hn_hf_read_layers(f, "layer_rope_theta", &base, err));
    TRY(hn_hf_number(f, "rope_theta", root, &root, NULL, err));
    if (json_is_number(json_object_get(angles, "rope_theta")))
        root = json_number_value(json_object_get(angles, "rope_theta"));
    for (int64_t il = 0; il < l.n; il++) {
        const json_t *v = json_array_get(base.list, (size_t)il);
        if (!l.list) windowed[il] = (l.n - 1 - il) % PERIOD != 0;
        if (base.list && (!json_is_number(v) || json_number_value(v) != (windowed[il] ? root : 0)))
            return hn_hf_refuse(f, "layer_rope_theta", base.list,
                                "rope_theta of windowed layers, 0 of those that see everything", err);
    }
    return hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, l.n, err);
}

static hone_status muse_given(hn_hf *f, const hn_hf_at *at, double x, hone_error *err)
{
    hone_status st;
    float *v = hn_arena_alloc(f->arena, (size_t)at->ne[0] * sizeof *v);
    if (!v) return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", f->path, at->name);
    for (uint64_t i = 0; i < at->ne[0]; i++) v[i] = (float)x;
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    f->t[f->n - 1].always_f32 = true;
    return hn_hf_add(f, &(hn_hf_view){ .given = v, .n = { at->ne[0] }, .stride = { 1 } }, err);
}

/* Heads are normed without weights; what queries are times behind that is their norm's weight in files. */
static hone_status muse_q_norm(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    double x;
    hone_status st;
    TRY(hn_hf_number(f, "qk_scale_factor", 3.87, &x, NULL, err));
    return muse_given(f, at, x, err);
}
static hone_status muse_k_norm(hn_hf *f, const hn_hf_at *at, hone_error *err) { return muse_given(f, at, 1, err); }

static const hn_hf_key muse_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 128),
    U32_OR("sliding_window", "attention.sliding_window", 2048),
    F32_OR("final_logit_softcapping", "final_logit_softcapping", 20),
    F32_OR("output_multiplier", "logit_scale", 0.19611613513818404),
    WORD("hidden_activation|hidden_act", "silu|swish"),
    ONLY("post_norm_eps", 1e-8),
    MORE("layer_rope_theta", NULL),
    MORE("qk_scale_factor", NULL),
    KEYS_END,
};
static const hn_hf_name muse_names[] = {
    { "attn_q_norm", "self_attn.q_norm", muse_q_norm },
    { "attn_k_norm", "self_attn.k_norm", muse_k_norm },
    NAMES_END,
};
static const hn_hf_class muse = { .names = "MuseGlimmerForConditionalGeneration|MuseGlimmerForCausalLM",
                                  .types = "muse_glimmer|muse_glimmer_text",
                                  .arch = "muse-glimmer",
                                  .keys = muse_keys,
                                  .tensors = muse_names,
                                  .eps = 1e-5,
                                  .fits = hn_hf_never,
                                  .more = muse_more };

/* ---- OLMo ------------------------------------------------------------------------------------------------------- */

/* Its epsilon is no member. */
static hone_status olmo_more(hn_hf *f, hone_error *err)
{
    return hn_hf_put_f32(f, "attention.layer_norm_epsilon", 1e-5, err);
}
static const hn_hf_key olmo_keys[] = {
    F32_MAY("clip_qkv", "attention.clamp_kqv"),
    ONLY("attention_bias", 0),
    NO_RMS,
    KEYS_END,
};
static const hn_hf_class olmo = { .names = "OlmoForCausalLM",
                                  .types = "olmo",
                                  .arch = "olmo",
                                  .keys = olmo_keys,
                                  .usual = "max_position_embeddings 2048",
                                  .more = olmo_more };

/* ---- Nanbeige ------------------------------------------------------------------------------------------------ */

static const hn_hf_key nanbeige_keys[] = {
    U32_OR("num_loops", "num_loops", 1),
    BOOL_OR("skip_loop_final_norm", "skip_loop_final_norm", 0),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    TENSORS("mlp_bias", 0, GLU_BIASES),
    KEYS_END,
};
static const hn_hf_class nanbeige = {
    .names = "NanbeigeForCausalLM", .types = "nanbeige", .arch = "nanbeige", .keys = nanbeige_keys
};

/* ---- HRM-Text ------------------------------------------------------------------------------------------------ */

/* How many layers run; configs have that number, and that of a stack beside it, or, first ones, the latter alone. */
static hone_status hrm_more(hn_hf *f, hone_error *err)
{
    int64_t n, all, high, low;
    double scale, spread;
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 16, &all, err));
    TRY(hn_hf_whole(f, "num_layers_per_stack", 0, &n, err));
    TRY(hn_hf_whole(f, "H_cycles", 2, &high, err));
    TRY(hn_hf_whole(f, "L_cycles", 3, &low, err));
    TRY(hn_hf_number(f, "initializer_range", 0.02, &spread, NULL, err));
    TRY(hn_hf_number(f, "embedding_scale", spread > 0 ? 1 / spread : 1, &scale, NULL, err));
    n = n ? n : all;
    if (n > HN_MAX_LAYER || high > HN_MAX_LAYER || low > HN_MAX_LAYER)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: stacks of %lld layers, %lld and %lld times, expected at most %d",
                       f->path, (long long)n, (long long)high, (long long)low, HN_MAX_LAYER);
    TRY(hn_hf_put_u32(f, "block_count", (uint32_t)(n * high * (low + 1)), err));
    TRY(hn_hf_put_u32(f, "hrm.layers_per_stack", (uint32_t)n, err));
    TRY(hn_hf_put_u32(f, "hrm.h_cycles", (uint32_t)high, err));
    TRY(hn_hf_put_u32(f, "hrm.l_cycles", (uint32_t)low, err));
    return hn_hf_put_f32(f, "embedding_scale", scale, err);
}

/* Rows of one of several matrices below each other, or a matrix of its own. k: which; of n; their module. */
static hone_status hrm_rows(hn_hf *f, const hn_hf_at *at, uint64_t k, uint64_t n, const char *all, hone_error *err)
{
    char name[320];
    const char *self = strstr(at->hf, "self_attn."), *module = self ? self : strstr(at->hf, "mlp.");
    snprintf(name, sizeof name, "%.*s%s.weight", module ? (int)(module - at->hf) : 0, at->hf, all);
    if (f->back || !hn_hf_find(f, name)) return hn_hf_plain(f, at, err);
    const uint64_t each = at->ne[0] * at->ne[1];
    hn_hf_at whole = *at;
    whole.hf = name;
    return hn_hf_make(f, &whole, 2, (uint64_t[]){ at->ne[0], n * at->ne[1] },
                      &(hn_hf_view){ .first = k * each, .n = { each }, .stride = { 1 } }, err);
}
#define HRM_ROWS(which, k, n, all)                                                \
    static hone_status hrm_##which(hn_hf *f, const hn_hf_at *at, hone_error *err) \
    {                                                                             \
        return hrm_rows(f, at, k, n, all, err);                                   \
    }
HRM_ROWS(gate, 0, 4, "attn.gqkv_proj")
HRM_ROWS(q, 1, 4, "attn.gqkv_proj")
HRM_ROWS(k, 2, 4, "attn.gqkv_proj")
HRM_ROWS(v, 3, 4, "attn.gqkv_proj")
HRM_ROWS(o, 0, 1, "attn.o_proj")
HRM_ROWS(ffn_gate, 0, 2, "mlp.gate_up_proj")
HRM_ROWS(ffn_up, 1, 2, "mlp.gate_up_proj")

static const hn_hf_key hrm_keys[] = {
    MORE("num_hidden_layers", "block_count"),
    MORE("num_layers_per_stack", "hrm.layers_per_stack"),
    MORE("H_cycles", "hrm.h_cycles"),
    MORE("L_cycles", "hrm.l_cycles"),
    MORE("embedding_scale", "embedding_scale"),
    MORE("num_key_value_heads", "attention.head_count_kv"), /* heads have keys of their own, whatever it says */
    U32_OR("head_dim", "attention.key_length|attention.value_length", 128),
    BOOL_OR("prefix_lm", "hrm.prefix_lm", 1),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    KEYS_END,
};
static const hn_hf_name hrm_names[] = {
    { "hrm.z_l_init", "z_L_init", NULL },
    { "attn_qkv", "-", NULL },
    { "attn_gate", "self_attn.gate_proj", hrm_gate },
    { "attn_q", "self_attn.q_proj", hrm_q },
    { "attn_k", "self_attn.k_proj", hrm_k },
    { "attn_v", "self_attn.v_proj", hrm_v },
    { "attn_output", "self_attn.o_proj", hrm_o },
    { "ffn_gate", "mlp.gate_proj", hrm_ffn_gate },
    { "ffn_up", "mlp.up_proj", hrm_ffn_up },
    NAMES_END,
};
static const hn_hf_class hrm = { .names = "HrmTextForCausalLM",
                                 .types = "hrm_text",
                                 .arch = "hrm_text",
                                 .keys = hrm_keys,
                                 .tensors = hrm_names,
                                 .idle = "L_bp_cycles",
                                 .fits = hn_hf_never,
                                 .more = hrm_more };

/* ---- OpenELM -------------------------------------------------------------------------------------------------- */

/* A list of the config as numbers of layers, each times `by` and rounded to whole `to` (0: as they are). */
static hone_status elm_layers(hn_hf *f, const char *member, const char *key, double by, int64_t to, hone_error *err)
{
    int64_t n;
    hone_status st;
    const json_t *list = hn_hf_get(f, member);
    TRY(hn_hf_whole(f, "num_transformer_layers", 0, &n, err));
    if (n < 1 || n > HN_MAX_LAYER || json_array_size(list) != (size_t)n)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: %s has %zu entries, expected num_transformer_layers = %lld of at most %d", f->path, member,
                       json_array_size(list), (long long)n, HN_MAX_LAYER);
    int32_t *of = hn_arena_alloc(f->arena, (size_t)n * sizeof *of);
    if (!of) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (int64_t il = 0; il < n; il++) {
        const double x = json_number_value(json_array_get(list, (size_t)il)) * by;
        if (!(x > 0 && x < HN_MAX_FF)) return hn_hf_refuse(f, member, list, "numbers above 0", err);
        int64_t v = (int64_t)(to ? x + (double)to / 2 : x);
        if (to) { /* down by no more than a tenth */
            v = v / to * to > to ? v / to * to : to;
            if ((double)v < 0.9 * x) v += to;
        }
        of[il] = (int32_t)v;
    }
    return hn_hf_put_layers(f, key, HONE_KV_I32, of, n, err);
}

static hone_status elm_more(hn_hf *f, hone_error *err)
{
    int64_t n_embd, divisor;
    double base;
    hone_status st;
    TRY(hn_hf_whole(f, "model_dim", 0, &n_embd, err));
    TRY(hn_hf_whole(f, "ffn_dim_divisor", 256, &divisor, err));
    TRY(hn_hf_number(f, "rope_freq_constant", 10000, &base, NULL, err));
    if (divisor < 1) return hn_hf_refuse(f, "ffn_dim_divisor", hn_hf_get(f, "ffn_dim_divisor"), "at least 1", err);
    TRY(elm_layers(f, "num_query_heads", "attention.head_count", 1, 0, err));
    TRY(elm_layers(f, "num_kv_heads", "attention.head_count_kv", 1, 0, err));
    TRY(elm_layers(f, "ffn_multipliers", "feed_forward_length", (double)n_embd, divisor, err));
    TRY(hn_hf_put_f32(f, "attention.layer_norm_rms_epsilon", 1e-6, err));
    f->own_base = true;
    return hn_hf_put_f32(f, "rope.freq_base", base, err);
}
static const hn_hf_key elm_keys[] = {
    U32("max_context_length", "context_length"),
    U32("model_dim", "embedding_length"),
    U32("num_transformer_layers", "block_count"),
    MORE("ffn_multipliers", "feed_forward_length"),
    MORE("num_query_heads", "attention.head_count"),
    MORE("num_kv_heads", "attention.head_count_kv"),
    MORE("rope_freq_constant", "attention.layer_norm_rms_epsilon"),
    U32("head_dim", "attention.key_length|attention.value_length"),
    WORD("activation_fn_name", "swish|silu"),
    WORD("normalization_layer_name", "rms_norm"),
    ONLY("ffn_with_glu", 1),
    ONLY("normalize_qk_projections", 1),
    ONLY("share_input_output_layers", 1),
    KEYS_END,
};
static const hn_hf_name elm_names[] = {
    { "token_embd", "token_embeddings", NULL },
    { "attn_qkv", "attn.qkv_proj", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output", "attn.out_proj", NULL },
    { "output_norm", "norm", NULL },
    { "ffn_gate", "ffn.proj_1", hn_hf_half },
    { "ffn_up", "ffn.proj_1", hn_hf_half },
    { "ffn_down", "ffn.proj_2", NULL },
    NAMES_END,
};
static const hn_hf_class elm = { .names = "OpenELMForCausalLM",
                                 .types = "openelm",
                                 .arch = "openelm",
                                 .root = "transformer.",
                                 .keys = elm_keys,
                                 .tensors = elm_names,
                                 .idle =
                                     "ffn_dim_divisor num_gqa_groups qk_multipliers qkv_multipliers rope_max_length",
                                 .tied = true,
                                 .fits = hn_hf_never,
                                 .more = elm_more };

/* ---- DBRX ------------------------------------------------------------------------------------------------------- */

/* A number of an object of the config; absent: `absent`. */
static hone_status number_in(const hn_hf *f, const char *in, const char *name, double absent, double *x,
                             hone_error *err)
{
    const json_t *v = json_object_get(json_object_get(f->config, in), name);
    *x = v && !json_is_null(v) ? json_number_value(v) : absent;
    if (!v || json_is_null(v) || json_is_number(v)) return HONE_OK;
    return hn_hf_refuse(f, name, v, "a number", err);
}

/* Members that an object of the config may have. */
static hone_status check_in(const hn_hf *f, const char *in, const char *known, hone_error *err)
{
    const char *k;
    json_t *v;
    json_object_foreach(json_object_get(f->config, in), k, v)
    {
        if (json_is_null(v) || hn_hf_is_word(known, k, strlen(k)) || hn_hf_idle(k) || hn_hf_ignored(k)) continue;
        return hn_hf_refuse(f, k, v, "only members that hone knows", err);
    }
    return HONE_OK;
}

static hone_status dbrx_more(hn_hf *f, hone_error *err)
{
    static const char attn[] = "attn_config", ffn[] = "ffn_config";
    static const struct {
        const char *in, *name, *key;
        double absent;
    } numbers[] = { { attn, "kv_n_heads", "attention.head_count_kv", 1 },
                    { ffn, "ffn_hidden_size", "feed_forward_length", 3584 },
                    { ffn, "ffn_hidden_size", "expert_feed_forward_length", 3584 },
                    { ffn, "moe_num_experts", "expert_count", 4 },
                    { ffn, "moe_top_k", "expert_used_count", 1 } };
    const json_t *act = json_object_get(json_object_get(f->config, ffn), "ffn_act_fn"),
                 *norm = json_object_get(json_object_get(f->config, ffn), "moe_normalize_expert_weights");
    const char *word = json_string_value(json_object_get(act, "name"));
    double x;
    hone_status st;
    TRY(check_in(f, attn, "attn_pdrop clip_qkv kv_n_heads rope_theta", err));
    TRY(check_in(f, ffn,
                 "hidden_size ffn_act_fn ffn_hidden_size moe_num_experts moe_top_k moe_jitter_eps moe_loss_weight "
                 "moe_normalize_expert_weights uniform_expert_assignment",
                 err));
    if (word && strcmp(word, "silu")) return hn_hf_refuse(f, "ffn_act_fn", act, "silu", err);
    if (norm && json_number_value(norm) != 1) return hn_hf_refuse(f, "moe_normalize_expert_weights", norm, "1", err);
    if (json_is_true(json_object_get(json_object_get(f->config, ffn), "uniform_expert_assignment")))
        return hn_hf_refuse(f, "uniform_expert_assignment", json_true(), "false", err);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        TRY(number_in(f, numbers[i].in, numbers[i].name, numbers[i].absent, &x, err));
        if (!(x >= 1 && x <= HN_MAX_FF)) return hn_hf_refuse(f, numbers[i].name, NULL, "a number above 0", err);
        TRY(hn_hf_put_u32(f, numbers[i].key, (uint32_t)x, err));
    }
    TRY(number_in(f, attn, "clip_qkv", 0, &x, err));
    TRY(hn_hf_put_f32(f, "attention.clamp_kqv", x, err));
    TRY(hn_hf_put_f32(f, "attention.layer_norm_epsilon", 1e-5, err));
    TRY(number_in(f, attn, "rope_theta", 0, &x, err));
    const json_t *now = json_object_get(json_object_get(f->config, "rope_parameters"), "rope_theta");
    if (x == 0) return HONE_OK;
    if (now && json_number_value(now) != x) /* transformers 5 looks at one alone, the model's own code at the other */
        return hn_hf_refuse(f, "rope_theta", now, "attn_config's", err);
    f->own_base = true;
    return hn_hf_put_f32(f, "rope.freq_base", x, err);
}

/* Experts below each other; those that give, turned. */
static hone_status dbrx_rows(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    return hn_hf_make(f, at, 2, (uint64_t[]){ at->ne[0], at->ne[1] * at->ne[2] },
                      &(hn_hf_view){ .n = { at->ne[0] * at->ne[1] * at->ne[2] }, .stride = { 1 } }, err);
}
static hone_status dbrx_turned(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const uint64_t n_ff = at->ne[0], n_embd = at->ne[1], n = at->ne[2];
    return hn_hf_make(f, at, 2, (uint64_t[]){ n_embd, n_ff * n },
                      &(hn_hf_view){ .n = { n_ff, n_embd, n }, .stride = { n_embd, 1, n_ff * n_embd } }, err);
}
static const hn_hf_key dbrx_keys[] = {
    U32("max_seq_len|max_position_embeddings", "context_length"),
    U32("d_model|hidden_size", "embedding_length"),
    U32("n_layers|num_hidden_layers", "block_count"),
    U32("n_heads|num_attention_heads", "attention.head_count"),
    MORE("attn_config", "attention.head_count_kv"),
    MORE("ffn_config", "feed_forward_length"),
    MORE("num_key_value_heads", NULL), /* attn_config says it */
    NO_RMS,
    KEYS_END,
};
static const hn_hf_name dbrx_names[] = {
    { "token_embd", "wte", NULL },
    { "output_norm", "norm_f", NULL },
    { "attn_qkv", "norm_attn_norm.attn.Wqkv", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output", "norm_attn_norm.attn.out_proj", NULL },
    { "ffn_gate_inp", "ffn.router.layer", NULL },
    { "ffn_gate_up_exps", "-", NULL },
    { "ffn_gate_exps.weight", "ffn.experts.mlp.w1", dbrx_rows },
    { "ffn_up_exps.weight", "ffn.experts.mlp.v1", dbrx_rows },
    { "ffn_down_exps.weight", "ffn.experts.mlp.w2", dbrx_turned },
    NAMES_END,
};
static const hn_hf_class dbrx = { .names = "DbrxForCausalLM",
                                  .types = "dbrx",
                                  .arch = "dbrx",
                                  .root = "transformer.",
                                  .layers = "blocks",
                                  .keys = dbrx_keys,
                                  .tensors = dbrx_names,
                                  .idle = ROUTER_IDLE "emb_pdrop",
                                  .fits = hn_hf_never,
                                  .more = dbrx_more };

/* ---- BitNet ---------------------------------------------------------------------------------------------------- */

static const hn_hf_key bitnet_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    ONLY("weight_bits", 1),
    ONLY("input_bits", 8),
    KEYS_END,
};
static const hn_hf_key bitnet158_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    WORD("hidden_act", "relu2"),
    KEYS_END,
};
static const hn_hf_name old_bitnet_names[] = {
    { "attn_sub_norm", "self_attn.inner_attn_ln", NULL },
    { "ffn_sub_norm", "mlp.ffn_layernorm", NULL },
    NAMES_END,
};
static const hn_hf_class *bitnet_which(const hn_hf *f);
static const hn_hf_class bitnet158 = { .names = "BitNetForCausalLM",
                                       .types = "bitnet",
                                       .which = bitnet_which,
                                       .arch = "bitnet-b1.58",
                                       .keys = bitnet158_keys,
                                       .usual = "max_position_embeddings 2048|num_key_value_heads 5",
                                       .base = 500000,
                                       .eps = 1e-5 };
static const hn_hf_class bitnet = { .names = "BitNetForCausalLM",
                                    .types = "bitnet",
                                    .arch = "bitnet",
                                    .keys = bitnet_keys,
                                    .usual = "max_position_embeddings 2048|num_key_value_heads 5",
                                    .base = 500000,
                                    .eps = 1e-5 };
static const hn_hf_class *bitnet_which(const hn_hf *f)
{
    const char *act = json_string_value(json_object_get(f->config, "hidden_act"));
    return act && hn_hf_is_word("silu|swish", act, strlen(act)) ? &bitnet : &bitnet158;
}
/* 1bitLLM's */
static const hn_hf_class old_bitnet = { .names = "BitnetForCausalLM",
                                        .arch = "bitnet",
                                        .keys = bitnet_keys,
                                        .tensors = old_bitnet_names,
                                        .ternary = true,
                                        .fits = hn_hf_never };

const hn_hf_class *const hn_hf_other[] = { &muse, &olmo,      &nanbeige, &hrm,        &elm,
                                           &dbrx, &bitnet158, &bitnet,   &old_bitnet, NULL };
