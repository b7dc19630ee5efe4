/* hf_other: classes of transformers of one maker's models each: Muse Glimmer, OLMo of 2024, Nanbeige, HRM-Text. Refuses
 * to know how pieces are walked (hf_make.c). */
#include "forge/hf_rows.h"

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
    { "rms_norm_eps", NULL, HN_HF_ONLY, HN_HF_OPTIONAL, 0 },
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

const hn_hf_class *const hn_hf_other[] = { &muse, &olmo, &nanbeige, &hrm, NULL };
