/* hf_window: classes of transformers whose layers differ in what they see, how they turn and how many heads they have:
 * Granite Swash, Laguna, Step 3.5, Spark X2.5, MiMo V2. Refuses to know how pieces are walked (hf_make.c). No folder
 * is made of their files. */
#define _GNU_SOURCE
#include "forge/hf_rows.h"

#include <stdlib.h>

/* Which layers have the window, as llama.cpp's reader needs it of all of them; where the config does not say, all but
 * the first of so many. */
static hone_status put_windows(hn_hf *f, int64_t period, hone_error *err)
{
    uint8_t windowed[HN_MAX_LAYER];
    hn_hf_layers l;
    hone_status st;
    TRY(hn_hf_read_windows(f, &l, windowed, err));
    for (int64_t il = 0; il < l.n && !l.list; il++) windowed[il] = period && il % period != 0;
    return hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, l.n, err);
}

/* ---- Granite Swash ------------------------------------------------------------------------------------------ */

/* The base of angles of each layer, 0 where nothing turns; files have one base of all that turn. */
static hone_status put_turning(hn_hf *f, hone_error *err)
{
    uint8_t turns[HN_MAX_LAYER];
    double base = 0, root = 10000;
    bool all = true;
    hn_hf_layers l;
    hone_status st;
    const json_t *angles = hn_hf_get(f, "rope_parameters");
    TRY(hn_hf_read_layers(f, "layer_rope_theta", &l, err));
    if (!l.list) return HONE_OK;
    TRY(hn_hf_number(f, "rope_theta", root, &root, NULL, err));
    if (json_is_number(json_object_get(angles, "rope_theta")))
        root = json_number_value(json_object_get(angles, "rope_theta"));
    for (int64_t il = 0; il < l.n; il++) {
        const json_t *v = json_array_get(l.list, (size_t)il);
        const double x = json_number_value(v);
        turns[il] = x != 0;
        all = all && turns[il];
        if (!json_is_number(v) || x < 0 || (base != 0 && x != 0 && x != base))
            return hn_hf_refuse(f, "layer_rope_theta", l.list, "numbers, each 0 or the same", err);
        base = x != 0 ? x : base;
    }
    const char *type = json_string_value(json_object_get(angles, "rope_type"));
    if (base != 0 && base != root && type && strcmp(type, "default"))
        return hn_hf_refuse(f, "layer_rope_theta", l.list, "rope_theta where the rotations are scaled", err);
    if (base != 0 && base != root) {
        f->own_base = true;
        TRY(hn_hf_put_f32(f, "rope.freq_base", base, err));
    }
    return all ? HONE_OK : hn_hf_put_layers(f, "attention.rope_pattern", HONE_KV_BOOL, turns, l.n, err);
}

static hone_status swash_more(hn_hf *f, hone_error *err)
{
    enum { PERIOD = 4 };
    hone_status st;
    TRY(put_windows(f, PERIOD, err));
    return put_turning(f, err);
}

#define SWASH_KEYS                                                                                                \
    TENSORS("attention_bias", 0, ATTN_BIASES), F32_OR("attention_multiplier", "attention.scale", 1),              \
        F32_OR("embedding_multiplier", "embedding_scale", 1), F32_OR("residual_multiplier", "residual_scale", 1), \
        F32_OR("logits_scaling", "logit_scale", 1), U32_OR("sliding_window", "attention.sliding_window", 128),    \
        MORE("layer_rope_theta", NULL)
static const hn_hf_key swash_keys[] = { SWASH_KEYS, TENSORS("mlp_bias", 0, GLU_BIASES), KEYS_END };
static const hn_hf_name swash_names[] = { { "attn_sinks.weight", "self_attn.sinks", NULL }, NAMES_END };
static const hn_hf_class swash = { .names = "GraniteSWAForCausalLM",
                                   .types = "granite_swa",
                                   .arch = "granite_swa",
                                   .keys = swash_keys,
                                   .tensors = swash_names,
                                   .tied = true,
                                   .eps = 1e-5,
                                   .fits = hn_hf_never,
                                   .more = swash_more };

static hone_status swash_moe_more(hn_hf *f, hone_error *err)
{
    int64_t n;
    hone_status st;
    TRY(hn_hf_whole(f, "intermediate_size", 0, &n, err));
    TRY(hn_hf_put_u32(f, "feed_forward_length", (uint32_t)n, err));
    TRY(hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)n, err));
    return swash_more(f, err);
}
static const hn_hf_key swash_moe_keys[] = {
    SWASH_KEYS,
    U32("num_local_experts", "expert_count"),
    USED,
    MORE("intermediate_size", "feed_forward_length"),
    U32_MAY("shared_intermediate_size", "expert_shared_feed_forward_length"),
    KEYS_END,
};
static const hn_hf_name swash_moe_names[] = {
    { "attn_sinks.weight", "self_attn.sinks", NULL },
    { "ffn_gate_inp", "block_sparse_moe.router", NULL },
    { "ffn_gate_up_exps.weight", "block_sparse_moe.experts.gate_up_proj", NULL },
    { "ffn_gate_exps", "-", NULL },
    { "ffn_up_exps", "-", NULL },
    { "ffn_down_exps.weight", "block_sparse_moe.experts.down_proj", NULL },
    { "ffn_gate_shexp", "-", NULL },
    { "ffn_up_shexp", "shared_mlp.input_linear", NULL },
    { "ffn_down_shexp", "shared_mlp.output_linear", NULL },
    NAMES_END,
};
static const hn_hf_class swash_moe = { .names = "GraniteMoeSWAForCausalLM",
                                       .types = "granitemoe_swa",
                                       .arch = "granite_swa",
                                       .keys = swash_moe_keys,
                                       .tensors = swash_moe_names,
                                       .idle = ROUTER_IDLE,
                                       .fits = hn_hf_never,
                                       .more = swash_moe_more };

/* ---- Laguna ------------------------------------------------------------------------------------------------- */

/* Heads of queries of each layer. */
static hone_status put_heads(hn_hf *f, hone_error *err)
{
    int64_t all;
    hn_hf_layers l;
    hone_status st;
    TRY(hn_hf_whole(f, "num_attention_heads", 0, &all, err));
    TRY(hn_hf_read_layers(f, "num_attention_heads_per_layer", &l, err));
    int32_t *n = hn_arena_alloc(f->arena, (size_t)l.n * sizeof *n);
    if (!n) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (int64_t il = 0; il < l.n; il++) {
        const json_t *v = json_array_get(l.list, (size_t)il);
        const int64_t x = l.list ? json_integer_value(v) : all;
        if ((l.list && !json_is_integer(v)) || x < 1 || x > HN_MAX_HEAD)
            return hn_hf_refuse(f, l.list ? "num_attention_heads_per_layer" : "num_attention_heads", l.list,
                                "a number of heads for each layer", err);
        n[il] = (int32_t)x;
    }
    return hn_hf_put_layers(f, "attention.head_count", HONE_KV_I32, n, l.n, err);
}

/* What turns of a head, in layers that see everything and in windowed ones. */
static hone_status put_widths(hn_hf *f, bool windows, hone_error *err)
{
    const json_t *of = hn_hf_get(f, "rope_parameters");
    int64_t d;
    hone_status st;
    TRY(hn_hf_whole(f, "head_dim", 128, &d, err));
    for (int swa = 0; swa < (windows ? 2 : 1); swa++) {
        const json_t *v =
            json_object_get(json_object_get(of, swa ? "sliding_attention" : "full_attention"), "partial_rotary_factor");
        const double part = json_is_number(v) ? json_number_value(v) : 1;
        if (!(part > 0 && part <= 1)) return hn_hf_refuse(f, "partial_rotary_factor", v, "more than 0, at most 1", err);
        TRY(hn_hf_put_u32(f, swa ? "rope.dimension_count_swa" : "rope.dimension_count", (uint32_t)((double)d * part),
                          err));
    }
    f->own_width = true;
    return HONE_OK;
}

static bool by_element(const hn_hf *f)
{
    const char *w = json_string_value(json_object_get(f->config, "gating"));
    return w && (!strcmp(w, "per-element") || !strcmp(w, "per_element"));
}

/* How wide gates are no key of a file says: its tensor does. */
static void tune_gates(hn_hf *f)
{
    if (!by_element(f)) return;
    f->m->hp.gate_heads = false;
    for (int32_t il = 0; il < f->m->hp.n_layer; il++) f->m->plan[il].out_gate = HN_OUT_GATE_OWN;
}

static hone_status laguna_more(hn_hf *f, hone_error *err)
{
    const json_t *gating = hn_hf_get(f, "gating");
    const char *word = json_string_value(gating);
    int64_t window;
    hone_status st;
    if (gating && !json_is_true(gating) &&
        !(word && hn_hf_is_word("per-head|per_head|per-element|per_element", word, strlen(word))))
        return hn_hf_refuse(f, "gating", gating, "true, per-head or per-element", err);
    TRY(put_heads(f, err));
    TRY(hn_hf_put_lead(f, 1, err));
    TRY(hn_hf_put_u32(f, "expert_gating_func", 2, err));
    TRY(hn_hf_put_bool(f, "expert_weights_norm", true, err));
    TRY(hn_hf_whole(f, "sliding_window", 0, &window, err));
    TRY(put_widths(f, window > 0, err));
    if (window < 1) return HONE_OK;
    TRY(hn_hf_put_u32(f, "attention.sliding_window", (uint32_t)window, err));
    return put_windows(f, 0, err);
}
static const hn_hf_key laguna_keys[] = {
    U32("num_experts", "expert_count"),
    USED,
    WIDTH,
    U32("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    F32_OR("moe_routed_scaling_factor", "expert_weights_scale", 1),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 128),
    MORE("num_attention_heads", "attention.head_count"),
    MORE("num_attention_heads_per_layer", NULL),
    MORE("mlp_layer_types", NULL),
    MORE("sliding_window", NULL),
    MORE("gating", NULL),
    ONLY("moe_apply_router_weight_on_input", 0),
    ONLY("moe_router_logit_softcapping", 0),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    KEYS_END,
};
static const hn_hf_name laguna_names[] = {
    { "ffn_gate_inp", "mlp.gate", NULL },
    { "exp_probs_b.bias", "mlp.experts.e_score_correction_bias", hn_hf_flat },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_expert"),
    NAMES_END,
};
static const hn_hf_class laguna = { .names = "LagunaForCausalLM",
                                    .types = "laguna",
                                    .arch = "laguna",
                                    .keys = laguna_keys,
                                    .tensors = laguna_names,
                                    .idle = ROUTER_IDLE "gating_types",
                                    .base = 5e5,
                                    .fits = hn_hf_never,
                                    .tune = tune_gates,
                                    .more = laguna_more };

/* ---- Step 3.5, 3.7 ------------------------------------------------------------------------------------------ */

/* Lists of layers may go on with blocks that draft: entry il, or NULL. */
static const json_t *step_list(hn_hf *f, const char *name, int64_t il)
{
    const json_t *list = hn_hf_get(f, name);
    return json_is_array(list) ? json_array_get(list, (size_t)il) : NULL;
}

/* Of a layer a number of a list, or what all have. */
static double step_angle(hn_hf *f, const char *name, int64_t il, double absent)
{
    const json_t *all = json_object_get(f->config, name), *one = json_array_get(all, (size_t)il);
    return json_is_number(one) ? json_number_value(one) : json_is_number(all) ? json_number_value(all) : absent;
}

/* Published configs have a base and a share of what turns for each layer; transformers' a pair of each kind. */
static hone_status step_angles(hn_hf *f, int64_t n_layer, const uint8_t *windowed, hone_error *err)
{
    static const char *const kinds[] = { "full_attention", "sliding_attention" };
    const json_t *said = hn_hf_get(f, "rope_parameters"), *scaling = hn_hf_get(f, "rope_scaling");
    hone_status st;
    if (json_is_object(json_object_get(said, kinds[0]))) return HONE_OK;
    json_t *both = json_object();
    bool ok = both != NULL;
    for (int swa = 0; swa < 2 && ok; swa++) {
        int64_t il = 0;
        while (il < n_layer && windowed[il] != swa) il++;
        json_t *o = swa || !json_is_object(scaling) ? json_pack("{s:s}", "rope_type", "default")
                                                    : json_copy((json_t *)(uintptr_t)scaling);
        ok = o && !json_object_set_new(o, "rope_theta", json_real(step_angle(f, "rope_theta", il, 10000))) &&
             !json_object_set_new(o, "partial_rotary_factor",
                                  json_real(step_angle(f, "partial_rotary_factors", il, swa ? 1 : 0.5))) &&
             !json_object_set_new(both, kinds[swa], o);
    }
    if (!ok) {
        json_decref(both);
        return HN_FAIL(err, HONE_E_NOMEM, "%s: angles", f->path);
    }
    hn_hf_get(f, "partial_rotary_factors");
    TRY(hn_hf_set(f, "rope_theta", json_null(), err));
    TRY(hn_hf_set(f, "rope_scaling", json_null(), err));
    return hn_hf_set(f, "rope_parameters", both, err);
}

/* As files have it: what turns in windowed layers, and twice what turns in others. */
static hone_status step_widths(hn_hf *f, hone_error *err)
{
    const json_t *of = hn_hf_get(f, "rope_parameters");
    int64_t d;
    hone_status st;
    TRY(hn_hf_whole(f, "head_dim", 128, &d, err));
    for (int swa = 0; swa < 2; swa++) {
        const json_t *v =
            json_object_get(json_object_get(of, swa ? "sliding_attention" : "full_attention"), "partial_rotary_factor");
        const double part = json_is_number(v) ? json_number_value(v) : 1;
        if (!(part > 0 && part <= (swa ? 1 : 0.5)))
            return hn_hf_refuse(f, "partial_rotary_factor", v,
                                swa ? "more than 0, at most 1" : "more than 0, at most a half", err);
        TRY(hn_hf_put_u32(f, swa ? "rope.dimension_count_swa" : "rope.dimension_count",
                          (uint32_t)((double)d * (swa ? part : 2 * part)), err));
    }
    f->own_width = true;
    return HONE_OK;
}

/* Limits of gates, of null and 0 none. */
static hone_status step_limits(hn_hf *f, const char *name, const char *key, int64_t n_layer, hone_error *err)
{
    const json_t *list = hn_hf_get(f, name);
    float v[HN_MAX_LAYER];
    if (!list) return HONE_OK;
    for (int64_t il = 0; il < n_layer; il++) {
        const json_t *x = json_array_get(list, (size_t)il);
        if (!x || (!json_is_null(x) && !(json_number_value(x) >= 0)))
            return hn_hf_refuse(f, name, list, "a number of at least 0, or null, for each layer", err);
        v[il] = (float)json_number_value(x);
    }
    return hn_hf_put_layers(f, key, HONE_KV_F32, v, n_layer, err);
}

/* The first layer with experts, from which on all must have them: a list of kinds, or of numbers. */
static hone_status step_lead(hn_hf *f, int64_t n_layer, hone_error *err)
{
    const json_t *kinds = hn_hf_get(f, "mlp_layer_types"), *numbers = hn_hf_get(f, "moe_layers_enum");
    int64_t lead = n_layer;
    bool sparse[HN_MAX_LAYER];
    for (int64_t il = 0; il < n_layer; il++) sparse[il] = !kinds && !numbers && il >= 3;
    for (int64_t il = 0; il < n_layer && kinds; il++) sparse[il] = hn_hf_layer_is(kinds, il, "sparse");
    for (size_t k = 0; !kinds && k < json_array_size(numbers); k++) {
        const int64_t il = json_integer_value(json_array_get(numbers, k));
        if (il >= 0 && il < n_layer) sparse[il] = true;
    }
    for (const char *p = !kinds && json_is_string(numbers) ? json_string_value(numbers) : ""; *p; p += *p == ',') {
        char *end;
        const long il = strtol(p, &end, 10);
        if (end == p) return hn_hf_refuse(f, "moe_layers_enum", numbers, "numbers of layers", err);
        if (il >= 0 && il < n_layer) sparse[il] = true;
        p = end;
    }
    for (int64_t il = n_layer - 1; il >= 0 && sparse[il]; il--) lead = il;
    for (int64_t il = 0; il < lead; il++)
        if (sparse[il])
            return hn_hf_refuse(f, kinds ? "mlp_layer_types" : "moe_layers_enum", kinds ? kinds : numbers,
                                "experts in all layers from one on", err);
    return hn_hf_put_u32(f, "leading_dense_block_count", (uint32_t)lead, err);
}

static hone_status step_more(hn_hf *f, hone_error *err)
{
    uint8_t windowed[HN_MAX_LAYER];
    int32_t heads[HN_MAX_LAYER];
    int64_t n_layer, n_head, n_swa, n_kv, d, scalar;
    const json_t *other = hn_hf_get(f, "attention_other_setting");
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    TRY(hn_hf_whole(f, "num_attention_heads", 64, &n_head, err));
    TRY(hn_hf_whole(f, "num_key_value_heads|num_attention_groups", 8, &n_kv, err));
    TRY(hn_hf_whole(f, "head_dim", 128, &d, err));
    TRY(hn_hf_whole(f, "query_pre_attn_scalar", d, &scalar, err));
    if (n_layer < 1 || n_layer > HN_MAX_LAYER || scalar != d)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: num_hidden_layers = %lld, query_pre_attn_scalar = %lld, expected 1 to %d, and head_dim",
                       f->path, (long long)n_layer, (long long)scalar, HN_MAX_LAYER);
    const json_t *more = json_object_get(other, "num_attention_heads"),
                 *groups = json_object_get(other, "num_attention_groups"), *width = json_object_get(other, "head_dim");
    TRY(hn_hf_whole(f, "num_sliding_attention_heads", json_is_integer(more) ? json_integer_value(more) : n_head, &n_swa,
                    err));
    if ((groups && json_integer_value(groups) != n_kv) || (width && json_integer_value(width) != d))
        return hn_hf_refuse(f, "attention_other_setting", other, "keys as in all other layers", err);
    for (int64_t il = 0; il < n_layer; il++) {
        const char *kind = json_string_value(step_list(f, "layer_types", il));
        windowed[il] = kind && !strcmp(kind, "sliding_attention");
        heads[il] = (int32_t)(windowed[il] ? n_swa : n_head);
    }
    TRY(hn_hf_put_layers(f, "attention.head_count", HONE_KV_I32, heads, n_layer, err));
    TRY(hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, n_layer, err));
    TRY(step_angles(f, n_layer, windowed, err));
    TRY(step_widths(f, err));
    TRY(step_lead(f, n_layer, err));
    TRY(step_limits(f, "swiglu_limits", "swiglu_clamp_exp", n_layer, err));
    TRY(step_limits(f, "swiglu_limits_shared", "swiglu_clamp_shexp", n_layer, err));
    TRY(hn_hf_put_u32(f, "expert_gating_func", 2, err));
    TRY(hn_hf_put_bool(f, "expert_weights_norm", true, err));
    hn_hf_leave_drafts(f, n_layer);
    return HONE_OK;
}

/* Experts of a layer in one tensor, as published (moe.…), or gates and others in one, as transformers has them. */
static hone_status step_experts(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    const char *p = strstr(at->hf, "moe.");
    if (p && !hn_hf_find(f, at->hf)) {
        const bool down = strstr(at->name, "_down") != NULL;
        snprintf(name, sizeof name, "%.*smlp.experts.%s", (int)(p - at->hf), at->hf,
                 down ? "down_proj" : "gate_up_proj");
        as.hf = name;
        return hn_hf_experts(f, &as, err);
    }
    return hn_hf_plain(f, at, err);
}

/* The same of what has two names. */
static hone_status step_either(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    static const char *const names[][2] = { { "moe.gate.weight", "mlp.gate.weight" },
                                            { "moe.router_bias", "mlp.gate.e_score_correction_bias" },
                                            { "share_expert.", "mlp.shared_experts." } };
    hn_hf_at as = *at;
    char name[320];
    for (size_t i = 0; i < sizeof names / sizeof *names && !hn_hf_find(f, as.hf); i++) {
        const char *p = strstr(at->hf, names[i][0]);
        if (!p) continue;
        snprintf(name, sizeof name, "%.*s%s%s", (int)(p - at->hf), at->hf, names[i][1], p + strlen(names[i][0]));
        as.hf = name;
    }
    return hn_hf_flat(f, &as, err);
}
static hone_status step_matrix(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    const char *p = strstr(at->hf, "moe.gate.weight"), *q = strstr(at->hf, "share_expert.");
    if (hn_hf_find(f, at->hf)) return hn_hf_plain(f, at, err);
    if (p) snprintf(name, sizeof name, "%.*smlp.gate.weight", (int)(p - at->hf), at->hf);
    else
        snprintf(name, sizeof name, "%.*smlp.shared_experts.%s", (int)(q - at->hf), at->hf,
                 q + strlen("share_expert."));
    as.hf = name;
    return hn_hf_plain(f, &as, err);
}

static const hn_hf_key step_keys[] = {
    U32("n_routed_experts|moe_num_experts", "expert_count"),
    U32("num_experts_per_tok|moe_top_k", "expert_used_count"),
    WIDTH,
    U32("share_expert_dim|share_expert_dims", "expert_shared_feed_forward_length"),
    F32_OR("moe_router_scaling_factor", "expert_weights_scale", 1),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 128),
    U32("num_key_value_heads|num_attention_groups", "attention.head_count_kv"),
    U32("sliding_window", "attention.sliding_window"),
    MORE("num_attention_heads", "attention.head_count"),
    MORE("num_sliding_attention_heads", NULL),
    MORE("attention_other_setting", NULL),
    MORE("mlp_layer_types", NULL),
    MORE("moe_layers_enum", NULL),
    MORE("swiglu_limits", NULL),
    MORE("swiglu_limits_shared", NULL),
    MORE("partial_rotary_factors", NULL),
    MORE("query_pre_attn_scalar", NULL),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    ONLY("norm_expert_weight", 1),
    ONLY("use_head_wise_attn_gate", 1),
    ONLY("use_qk_norm", 1),
    ONLY("zero_centered", 1),
    ONLY("sink", 0),
    ONLY("moe_every_n_layer", 1),
    WORD("moe_router_activation", "sigmoid"),
    KEYS_END,
};
static const hn_hf_name step_names[] = {
    { "output_norm", "norm", hn_hf_plus_one },
    { "attn_norm", "input_layernorm", hn_hf_plus_one },
    { "ffn_norm", "post_attention_layernorm", hn_hf_plus_one },
    { "attn_q_norm", "self_attn.q_norm", hn_hf_plus_one },
    { "attn_k_norm", "self_attn.k_norm", hn_hf_plus_one },
    { "ffn_gate_inp", "moe.gate", step_matrix },
    { "exp_probs_b.bias", "moe.router_bias", step_either },
    { "ffn_gate_exps", "moe.gate_proj", step_experts },
    { "ffn_up_exps", "moe.up_proj", step_experts },
    { "ffn_down_exps", "moe.down_proj", step_experts },
    { "ffn_gate_shexp", "share_expert.gate_proj", step_matrix },
    { "ffn_up_shexp", "share_expert.up_proj", step_matrix },
    { "ffn_down_shexp", "share_expert.down_proj", step_matrix },
    NAMES_END,
};
static const hn_hf_class step = {
    .names = "Step3p5ForCausalLM|Step3p7ForConditionalGeneration",
    .types = "step3p5",
    .arch = "step35",
    .keys = step_keys,
    .tensors = step_names,
    .idle =
        ROUTER_IDLE "per_layer_config mtp_layer_types mtp_mlp_layer_types num_local_experts num_nextn_predict_layers "
                    "need_fp32_gate att_impl_type max_seq_len use_moe use_moe_router_bias yarn_only_types gating",
    .left = "vit_large_projector.*",
    .eps = 1e-5,
    .fits = hn_hf_never,
    .more = step_more
};

/* ---- Spark X2.5 --------------------------------------------------------------------------------------------- */

static hone_status spark_more(hn_hf *f, hone_error *err)
{
    const json_t *all = json_object_get(hn_hf_get(f, "rope_parameters"), "full_attention");
    const char *type = json_string_value(json_object_get(all, "rope_type"));
    hone_status st;
    if (type && strcmp(type, "default"))
        return hn_hf_refuse(f, "rope_type", json_object_get(all, "rope_type"), "default", err);
    TRY(put_widths(f, true, err));
    return put_windows(f, 0, err);
}
static const hn_hf_key spark_keys[] = {
    U32("sliding_window", "attention.sliding_window"),
    WORD("hidden_act", "gelu"),
    WORD("gate_attn_act_mode", "sigmoid"),
    ONLY("headwise_attn_output_gate", 1),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    KEYS_END,
};
static const hn_hf_name spark_names[] = {
    { "attn_qkv", "self_attn.q_k_v_proj", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    NAMES_END,
};
static const hn_hf_class spark = { .names = "Spark2_5ForCausalLM",
                                   .types = "spark2_5",
                                   .arch = "spark2_5",
                                   .keys = spark_keys,
                                   .tensors = spark_names,
                                   .said = "layer_types",
                                   .fits = hn_hf_never,
                                   .more = spark_more };

/* ---- MiMo V2 ------------------------------------------------------------------------------------------------ */

/* Published configs say layers by numbers, and angles beside each other; transformers, when it reads them, by words. */
static hone_status mimo_words(hn_hf *f, const char *to, const char *from, const char *none, const char *one,
                              hone_error *err)
{
    int64_t n_layer;
    const json_t *list = hn_hf_get(f, from);
    hone_status st;
    if (hn_hf_get(f, to)) return HONE_OK;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    json_t *words = json_array();
    bool ok = words && n_layer <= HN_MAX_LAYER;
    for (int64_t il = 0; ok && il < n_layer; il++) {
        const json_t *v = json_array_get(list, (size_t)il);
        const bool usual = strcmp(one, "sparse") ? il != 0 && (il + 1) % 6 != 0 : il > 0;
        if (list && !json_is_integer(v)) {
            json_decref(words);
            return hn_hf_refuse(f, from, list, "0 or 1 for each layer", err);
        }
        ok = !json_array_append_new(words, json_string((list ? json_integer_value(v) != 0 : usual) ? one : none));
    }
    if (ok) return hn_hf_set(f, to, words, err);
    json_decref(words);
    return HN_FAIL(err, HONE_E_NOMEM, "%s: %s", f->path, to);
}

static hone_status mimo_angles(hn_hf *f, hone_error *err)
{
    double part, base, window;
    hone_status st;
    if (json_is_object(json_object_get(hn_hf_get(f, "rope_parameters"), "full_attention"))) return HONE_OK;
    TRY(hn_hf_number(f, "partial_rotary_factor", 0.334, &part, NULL, err));
    TRY(hn_hf_number(f, "rope_theta", 5e6, &base, NULL, err));
    TRY(hn_hf_number(f, "swa_rope_theta", 1e4, &window, NULL, err));
    json_t *both = json_pack("{s:{s:s,s:f,s:f},s:{s:s,s:f,s:f}}", "full_attention", "rope_type", "default",
                             "rope_theta", base, "partial_rotary_factor", part, "sliding_attention", "rope_type",
                             "default", "rope_theta", window, "partial_rotary_factor", part);
    if (!both) return HN_FAIL(err, HONE_E_NOMEM, "%s: angles", f->path);
    return hn_hf_set(f, "rope_parameters", both, err);
}

/* What windowed layers are said to have apart must be as in all others. */
static hone_status mimo_same(hn_hf *f, const char *swa, const char *all, hone_error *err)
{
    int64_t a, b;
    hone_status st;
    TRY(hn_hf_whole(f, all, 0, &a, err));
    TRY(hn_hf_whole(f, swa, a, &b, err));
    return a == b ? HONE_OK : hn_hf_refuse(f, swa, hn_hf_get(f, swa), all, err);
}

static hone_status mimo_more(hn_hf *f, hone_error *err)
{
    uint8_t windowed[HN_MAX_LAYER];
    int32_t kv[HN_MAX_LAYER];
    int64_t n_kv, n_swa, window;
    double scale;
    hn_hf_layers l;
    hone_status st;
    TRY(mimo_same(f, "swa_head_dim", "head_dim", err));
    TRY(mimo_same(f, "swa_v_head_dim", "v_head_dim", err));
    TRY(mimo_same(f, "swa_num_attention_heads", "num_attention_heads", err));
    TRY(mimo_words(f, "layer_types", "hybrid_layer_pattern", "full_attention", "sliding_attention", err));
    TRY(mimo_words(f, "mlp_layer_types", "moe_layer_freq", "dense", "sparse", err));
    TRY(mimo_angles(f, err));
    TRY(hn_hf_whole(f, "num_key_value_heads", 4, &n_kv, err));
    TRY(hn_hf_whole(f, "swa_num_key_value_heads", 2 * n_kv, &n_swa, err));
    TRY(hn_hf_read_windows(f, &l, windowed, err));
    for (int64_t il = 0; il < l.n; il++) {
        const int64_t n = windowed[il] ? n_swa : n_kv;
        if (n < 1 || n > HN_MAX_HEAD) return hn_hf_refuse(f, "num_key_value_heads", NULL, "a number of heads", err);
        kv[il] = (int32_t)n;
    }
    TRY(hn_hf_put_layers(f, "attention.head_count_kv", HONE_KV_I32, kv, l.n, err));
    TRY(hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, l.n, err));
    TRY(put_widths(f, true, err));
    /* so many before a position, and its own, as transformers reads it; llama.cpp's converter writes one less */
    TRY(hn_hf_whole(f, "sliding_window_size", -1, &window, err));
    if (window >= 0) window++;
    else TRY(hn_hf_whole(f, "sliding_window", 129, &window, err));
    TRY(hn_hf_put_u32(f, "attention.sliding_window", (uint32_t)window, err));
    const bool none = json_is_null(json_object_get(f->config, "attention_value_scale"));
    TRY(hn_hf_number(f, "attention_value_scale", none ? 1 : 0.707, &scale, NULL, err));
    TRY(hn_hf_put_f32(f, "attention.value_scale", scale, err));
    return hn_hf_put_routed(f, "sigmoid", err);
}

static const hn_hf_key mimo_keys[] = {
    U32("n_routed_experts", "expert_count"),
    USED,
    WIDTH,
    F32_OR("routed_scaling_factor", "expert_weights_scale", 1),
    BOOL_OR("norm_topk_prob", "expert_weights_norm", 1),
    U32_OR("head_dim", "attention.key_length", 192),
    U32_OR("v_head_dim", "attention.value_length", 128),
    F32_OR("rms_norm_eps|layernorm_epsilon", "attention.layer_norm_rms_epsilon", 1e-5),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("sliding_window", "attention.sliding_window"),
    MORE("sliding_window_size", NULL),
    MORE("attention_value_scale", NULL),
    MORE("n_shared_experts", NULL),
    ONLY("add_full_attention_sink_bias", 0),
    ONLY("add_swa_attention_sink_bias", 1),
    TENSORS("attention_bias", 0, QKV_BIASES),
    KEYS_END,
};
#define MIMO_NAMES(sinks)                                                       \
    { "attn_sinks.weight", sinks, NULL }, { "ffn_gate_inp", "mlp.gate", NULL }, \
        { "exp_probs_b.bias", "mlp.gate.e_score_correction_bias", hn_hf_flat }, MLP_EXPERTS, NAMES_END
static const hn_hf_name mimo_names[] = { MIMO_NAMES("self_attn.sinks") };
static const hn_hf_name mimo_hub_names[] = { MIMO_NAMES("self_attn.attention_sink_bias") };
static const hn_hf_class *mimo_which(const hn_hf *f);
#define MIMO(...)                                                                                                 \
    {                                                                                                             \
        .names = "MiMoV2FlashForCausalLM", .types = "mimo_v2_flash", .arch = "mimo2", .keys = mimo_keys,          \
        .idle = ROUTER_IDLE "hybrid_block_size attention_chunk_size", .left = "model.mtp.*", .fits = hn_hf_never, \
        .more = mimo_more, __VA_ARGS__                                                                            \
    }
static const hn_hf_class mimo = MIMO(.tensors = mimo_names, .which = mimo_which);
static const hn_hf_class mimo_hub = MIMO(.tensors = mimo_hub_names);
static const hn_hf_class *mimo_which(const hn_hf *f)
{
    for (size_t i = 0; i < f->c->n; i++)
        if (memmem(f->c->t[i].name.ptr, f->c->t[i].name.len, ".attention_sink_bias", 20)) return &mimo_hub;
    return &mimo;
}

const hn_hf_class *const hn_hf_window[] = { &swash, &swash_moe, &laguna, &step, &spark, &mimo, NULL };
