/* hf_gemma: Gemma 3n and 4, whose layers are of two widths, share keys and add rows of the token's own. Owns which
 * layer is what: the config says it in words, and in numbers for single layers. Refuses to know how pieces are walked
 * (hf_make.c). */
#include "forge/hf_rows.h"

#include <math.h>

/* ---- what both have ------------------------------------------------------------------------------------------- */

#define BOTH_ROWS                                                                                    \
    WORD("hidden_activation|hidden_act", GELU), WORD("hidden_act", GELU), ONLY("attention_bias", 0), \
        U32("sliding_window", "attention.sliding_window"),                                           \
        U32_OR("num_kv_shared_layers", "attention.shared_kv_layers", 0),                             \
        MORE("intermediate_size", "feed_forward_length"), MORE("vocab_size_per_layer_input", NULL),  \
        U32_OR("max_position_embeddings", "context_length", 131072)
#define BOTH_NAMES                                                      \
    { "per_layer_token_embd", "embed_tokens_per_layer", NULL },         \
        { "per_layer_model_proj", "per_layer_model_projection", NULL }, \
        { "per_layer_proj_norm", "per_layer_projection_norm", NULL },   \
    {                                                                   \
        "token_embd", "embed_tokens", known_tokens                      \
    }

static uint64_t elements(const hn_ckpt_tensor *t)
{
    uint64_t n = 1;
    for (int k = 0; k < HN_CKPT_MAX_DIM; k++) n *= t->ne[k];
    return n;
}

/* Rows of tokens of text: behind them those of other inputs may stand. */
static hone_status known_tokens(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_ckpt_tensor *t = hn_hf_find(f, at->hf);
    hone_status st;
    if (!t || t->n_dim != 2 || t->ne[0] != at->ne[0] || t->ne[1] <= at->ne[1]) return hn_hf_plain(f, at, err);
    TRY(hn_hf_need(&t, f, at->hf, 2, t->ne, err));
    TRY(hn_hf_begin(f, at->name, 2, at->ne, err));
    hn_hf_view v = { .from = t, .n = { at->ne[0] * at->ne[1] }, .stride = { 1 } };
    TRY(hn_hf_add(f, &v, err));
    f->used[t - f->c->t] = elements(t);
    return HONE_OK;
}

/* A text's tokens are those that have rows of their own in all layers. */
static hone_status limit_tokens(hn_hf *f, int64_t n_ple, hone_error *err)
{
    int64_t n, own;
    hone_status st;
    TRY(hn_hf_whole(f, "vocab_size", 262144, &n, err));
    TRY(hn_hf_whole(f, "vocab_size_per_layer_input", n, &own, err));
    if (n_ple == 0 || own == n) return HONE_OK;
    if (own > n || own < 1)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: vocab_size_per_layer_input = %lld, expected 1 to vocab_size = %lld",
                       f->path, (long long)own, (long long)n);
    return hn_hf_set(f, "vocab_size", json_integer(own), err);
}

/* Where the config does not say what layers see, each so many of them ends with one that sees everything; Gemma 4's
 * last one always does, whatever the config says. */
static hone_status fill_layers(hn_hf *f, int64_t period, bool forced, hone_error *err)
{
    hn_hf_layers l;
    hone_status st;
    TRY(hn_hf_read_layers(f, "layer_types", &l, err));
    bool force = forced && hn_hf_layer_is(l.list, l.n - 1, "sliding_attention"), lost = false;
    if (l.list && !force) return HONE_OK;
    if (force)
        hn_convert_note(
            f->a, "%s: layer_types ends with sliding_attention, which transformers takes for full_attention", f->path);
    json_t *list = json_array();
    for (int64_t il = 0; il < l.n && list; il++) {
        bool all = (!force && (il + 1) % period == 0) || (forced && il + 1 == l.n);
        if (force && !all) lost |= json_array_append(list, json_array_get(l.list, (size_t)il)) != 0;
        else lost |= json_array_append_new(list, json_string(all ? "full_attention" : "sliding_attention")) != 0;
    }
    if (lost) json_decref(list);
    if (lost || !list) return HN_FAIL(err, HONE_E_NOMEM, "%s: layer_types", f->path);
    return hn_hf_set(f, "layer_types", list, err);
}

static hone_status put_windows(hn_hf *f, hone_error *err)
{
    hn_hf_layers l;
    uint8_t windowed[HN_MAX_LAYER];
    hone_status st;
    TRY(hn_hf_read_windows(f, &l, windowed, err));
    return hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, l.n, err);
}

/* Widths of feed-forward parts: one, or one for each layer; `twice` those of layers without keys of their own. */
static hone_status put_widths(hn_hf *f, bool twice, hone_error *err)
{
    const json_t *v = hn_hf_get(f, "intermediate_size");
    int64_t n_layer, shared;
    int32_t *ff;
    bool alike = true;
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    TRY(hn_hf_whole(f, "num_kv_shared_layers", 0, &shared, err));
    if (n_layer < 1 || n_layer > HN_MAX_LAYER || (json_is_array(v) && (int64_t)json_array_size(v) != n_layer))
        return hn_hf_refuse(f, "intermediate_size", v, "a number, or one for each of num_hidden_layers", err);
    if (!(ff = hn_arena_alloc(f->arena, (size_t)n_layer * sizeof *ff)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: layers", f->path);
    for (int64_t il = 0; il < n_layer; il++) {
        const json_t *x = json_is_array(v) ? json_array_get(v, (size_t)il) : v;
        if (!json_is_integer(x) || json_integer_value(x) < 1 || json_integer_value(x) > HN_MAX_FF / 2)
            return hn_hf_refuse(f, "intermediate_size", v, "whole numbers above 0", err);
        ff[il] = (int32_t)json_integer_value(x) * (1 + (twice && il >= n_layer - shared));
        alike &= ff[il] == ff[0];
    }
    if (alike) return hn_hf_put_u32(f, "feed_forward_length", (uint32_t)ff[0], err);
    return hn_hf_put_layers(f, "feed_forward_length", HONE_KV_I32, ff, n_layer, err);
}

/* Layers without keys of their own may have tensors of them all the same, which nobody reads. */
static hone_status leave_keys(hn_hf *f, hone_error *err)
{
    static const char *const names[] = { "k_proj", "v_proj", "k_norm" };
    char name[320];
    for (int32_t il = f->m->hp.n_own; f->m->hp.n_own && il < f->m->hp.n_layer; il++)
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            snprintf(name, sizeof name, "model.layers.%d.self_attn.%s.weight", (int)il, names[i]);
            const hn_ckpt_tensor *t = hn_hf_find(f, name);
            if (t) f->used[t - f->c->t] = elements(t);
        }
    return HONE_OK;
}

/* ---- gemma3n ---------------------------------------------------------------------------------------------------- */

/* What a share p of a normal distribution lies below. */
static double quantile(double p)
{
    double lo = -40, hi = 40;
    for (int i = 0; i < 200; i++) {
        double x = (lo + hi) / 2;
        if (0.5 * erfc(-x * sqrt(0.5)) < p) lo = x;
        else hi = x;
    }
    return (lo + hi) / 2;
}

float hn_hf_cut_of(double share) { return share > 0 ? (float)quantile((double)(float)share) : -INFINITY; }

/* Gates keep what exceeds their mean by so many deviations; −∞: all. Unsaid, the first ten of more layers keep 5 %. */
static hone_status put_sparsity(hn_hf *f, hone_error *err)
{
    const json_t *v = hn_hf_get(f, "activation_sparsity_pattern");
    int64_t n_layer;
    float *x;
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    if (!v && n_layer <= 10) return HONE_OK;
    if (n_layer < 1 || n_layer > HN_MAX_LAYER || (json_is_array(v) && (int64_t)json_array_size(v) != n_layer))
        return hn_hf_refuse(f, "activation_sparsity_pattern", v, "a number, or one for each of num_hidden_layers", err);
    if (!(x = hn_arena_alloc(f->arena, (size_t)n_layer * sizeof *x)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: layers", f->path);
    for (int64_t il = 0; il < n_layer; il++) {
        const json_t *p = json_is_array(v) ? json_array_get(v, (size_t)il) : v;
        double share = v ? json_number_value(p) : il < 10 ? 0.95 : 0;
        if ((v && !json_is_number(p)) || !(share >= 0 && share < 1))
            return hn_hf_refuse(f, "activation_sparsity_pattern", v, "numbers from 0 to below 1", err);
        x[il] = hn_hf_cut_of(share);
    }
    return hn_hf_put_layers(f, "activation_sparsity_scale", HONE_KV_F32, x, n_layer, err);
}

static const hn_hf_key gemma3n_keys[] = {
    BOTH_ROWS,
    U32_OR("head_dim", "attention.key_length|attention.value_length", 256),
    U32("hidden_size_per_layer_input", "embedding_length_per_layer_input"),
    U32_OR("altup_num_inputs", "altup.num_inputs", 4),
    U32_OR("altup_active_idx", "altup.active_idx", 0),
    ONLY("altup_correct_scale", 1),
    MORE("laurel_rank", NULL),
    MORE("final_logit_softcapping", NULL),
    MORE("activation_sparsity_pattern", NULL),
    KEYS_END,
};
static const hn_hf_name gemma3n_names[] = {
    BOTH_NAMES,
    { "altup_proj", "altup_projections.*", hn_hf_experts },
    { "altup_unembd_proj", "altup_unembed_projections.*", hn_hf_experts },
    { "altup_router_norm", "altup.router_norm", NULL },
    { "altup_correct_scale.weight", "altup.correct_output_scale", NULL },
    NAMES_END,
};
static hone_status gemma3n_more(hn_hf *f, hone_error *err)
{
    double cap;
    hone_status st;
    TRY(limit_tokens(f, 1, err));
    TRY(hn_hf_number(f, "final_logit_softcapping", json_object_get(f->config, "final_logit_softcapping") ? 0 : 30, &cap,
                     NULL, err));                               /* null: none */
    TRY(hn_hf_put_f32(f, "final_logit_softcapping", cap, err)); /* 0 too: files without it mean 30 */
    TRY(fill_layers(f, 5, false, err));
    TRY(put_windows(f, err));
    TRY(put_widths(f, false, err));
    return put_sparsity(f, err);
}
static hone_status gemma3n_tensors(hn_hf *f, hone_error *err)
{
    int64_t rank;
    hone_status st;
    TRY(hn_hf_whole(f, "laurel_rank", 64, &rank, err));
    f->m->hp.rank_laurel = (int32_t)(rank < HN_MAX_EMBD ? rank : 0); /* no key has it: the reader takes the tensors' */
    return leave_keys(f, err);
}
static const hn_hf_class gemma3n = {
    .names = "Gemma3nForCausalLM|Gemma3nForConditionalGeneration",
    .types = "gemma3n_text",
    .arch = "gemma3n",
    .keys = gemma3n_keys,
    .tensors = gemma3n_names,
    .idle = "altup_coef_clip altup_lr_multiplier query_pre_attn_scalar rope_local_base_freq",
    .tied = true,
    .base = 1e6,
    .more = gemma3n_more,
    .tensors_too = gemma3n_tensors
};

/* ---- gemma4 ----------------------------------------------------------------------------------------------------- */

/* A number of a single layer, where the config has one. */
static bool of_layer(const json_t *all, int64_t il, const char *key, int64_t *out)
{
    char name[24];
    snprintf(name, sizeof name, "%lld", (long long)il);
    const json_t *v = json_object_get(json_object_get(all, name), key);
    if (!json_is_integer(v) || json_integer_value(v) < 1 || json_integer_value(v) > HN_MAX_EMBD) return false;
    *out = json_integer_value(v);
    return true;
}

/* Nothing else may be told of single layers. */
static hone_status check_layers(const hn_hf *f, const json_t *all, hone_error *err)
{
    const char *il, *k;
    json_t *o, *v;
    json_object_foreach((json_t *)(uintptr_t)all, il, o) json_object_foreach(o, k, v)
    {
        if (!json_is_integer(v) || !hn_hf_is_word("head_dim|num_key_value_heads", k, strlen(k)))
            return hn_hf_refuse(f, "per_layer_config", all, "head_dim and num_key_value_heads of layers alone", err);
    }
    return HONE_OK;
}

/* Heads of layers that see everything: their width, and how many of keys. */
static hone_status put_wide(hn_hf *f, hone_error *err)
{
    const json_t *own = hn_hf_get(f, "per_layer_config");
    int64_t d, wide, n_kv, n_global;
    hn_hf_layers l;
    int32_t *kv;
    bool alike = true, shared;
    hone_status st;
    TRY(check_layers(f, own, err));
    TRY(hn_hf_read_layers(f, "layer_types", &l, err));
    TRY(hn_hf_whole(f, "head_dim", 256, &d, err));
    TRY(hn_hf_whole(f, "global_head_dim", own ? d : 512, &wide, err));
    TRY(hn_hf_whole(f, "num_key_value_heads", 1, &n_kv, err));
    TRY(hn_hf_whole(f, "num_global_key_value_heads", n_kv, &n_global, err));
    TRY(hn_hf_truth(f, "attention_k_eq_v", false, &shared, err));
    if (!shared) n_global = n_kv;
    if (!(kv = hn_arena_alloc(f->arena, (size_t)l.n * sizeof *kv)))
        return HN_FAIL(err, HONE_E_NOMEM, "%s: layers", f->path);
    int64_t first_wide = -1;
    for (int64_t il = 0; il < l.n; il++) {
        bool all = hn_hf_layer_is(l.list, il, "full_attention");
        int64_t width = all ? wide : d, n = all ? n_global : n_kv;
        of_layer(own, il, "head_dim", &width);
        of_layer(own, il, "num_key_value_heads", &n);
        if (all && first_wide < 0) first_wide = width;
        if (width != (all ? first_wide : d))
            return hn_hf_refuse(f, "per_layer_config", own, "one head_dim for all layers of a kind", err);
        kv[il] = (int32_t)n;
        alike &= kv[il] == kv[0];
    }
    if (first_wide < 0) first_wide = wide;
    TRY(hn_hf_put_u32(f, "attention.key_length", (uint32_t)first_wide, err));
    TRY(hn_hf_put_u32(f, "attention.value_length", (uint32_t)first_wide, err));
    TRY(hn_hf_put_u32(f, "attention.key_length_swa", (uint32_t)d, err));
    TRY(hn_hf_put_u32(f, "attention.value_length_swa", (uint32_t)d, err));
    TRY(hn_hf_put_u32(f, "rope.dimension_count", (uint32_t)first_wide, err));
    TRY(hn_hf_put_u32(f, "rope.dimension_count_swa", (uint32_t)d, err));
    f->own_width = true;
    if (alike) return hn_hf_put_u32(f, "attention.head_count_kv", (uint32_t)kv[0], err);
    return hn_hf_put_layers(f, "attention.head_count_kv", HONE_KV_I32, kv, l.n, err);
}

static hone_status put_experts(hn_hf *f, hone_error *err)
{
    int64_t n, used, width;
    bool any;
    hone_status st;
    TRY(hn_hf_whole(f, "num_experts", 0, &n, err));
    TRY(hn_hf_whole(f, "top_k_experts", 0, &used, err));
    TRY(hn_hf_whole(f, "moe_intermediate_size", 0, &width, err));
    TRY(hn_hf_truth(f, "enable_moe_block", false, &any, err));
    if (!any) return HONE_OK;
    TRY(hn_hf_put_u32(f, "expert_count", (uint32_t)n, err));
    TRY(hn_hf_put_u32(f, "expert_used_count", (uint32_t)used, err));
    return hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)width, err);
}

static const hn_hf_key gemma4_keys[] = {
    BOTH_ROWS,
    F32_MAY("final_logit_softcapping", "final_logit_softcapping"),
    MORE("head_dim", "attention.key_length|attention.value_length"),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("hidden_size_per_layer_input", NULL),
    WORD("use_bidirectional_attention", "vision"), /* between images' parts alone */
    MORE("per_layer_config", NULL),
    MORE("global_head_dim", NULL),
    MORE("num_global_key_value_heads", NULL),
    MORE("attention_k_eq_v", NULL),
    MORE("use_double_wide_mlp", NULL),
    MORE("enable_moe_block", NULL),
    KEYS_END,
};
static const hn_hf_name gemma4_names[] = {
    BOTH_NAMES,
    { "layer_output_scale.weight", "layer_scalar", NULL },
    { "ffn_gate_inp.scale", "router.scale", NULL },
    { "ffn_gate_inp", "router.proj", NULL },
    { "ffn_down_exps.scale", "router.per_expert_scale", NULL },
    { "ffn_gate_up_exps.weight", "experts.gate_up_proj", NULL },
    { "ffn_down_exps.weight", "experts.down_proj", NULL },
    { "post_ffw_norm_1", "post_feedforward_layernorm_1", NULL },
    { "pre_ffw_norm_2", "pre_feedforward_layernorm_2", NULL },
    { "post_ffw_norm_2", "post_feedforward_layernorm_2", NULL },
    NAMES_END,
};
static hone_status gemma4_more(hn_hf *f, hone_error *err)
{
    int64_t n_ple;
    bool doubled;
    hone_status st;
    TRY(hn_hf_whole(f, "hidden_size_per_layer_input", 256, &n_ple, err));
    TRY(hn_hf_put_u32(f, "embedding_length_per_layer_input", (uint32_t)n_ple, err));
    TRY(limit_tokens(f, n_ple, err));
    TRY(fill_layers(f, 6, true, err));
    TRY(put_windows(f, err));
    TRY(hn_hf_truth(f, "use_double_wide_mlp", false, &doubled, err));
    TRY(put_widths(f, doubled, err));
    TRY(put_wide(f, err));
    return put_experts(f, err);
}
static const hn_hf_class gemma4 = {
    .names = "Gemma4ForCausalLM|Gemma4ForConditionalGeneration",
    .types = "gemma4_text",
    .arch = "gemma4",
    .idle = "query_pre_attn_scalar",
    .rope = "{\"full_attention\":{\"rope_type\":\"proportional\",\"partial_rotary_factor\":0.25,\"rope_theta\":1e6},"
            "\"sliding_attention\":{\"rope_type\":\"default\",\"rope_theta\":1e4}}",
    .keys = gemma4_keys,
    .tensors = gemma4_names,
    .tied = true,
    .base = 1e6,
    .more = gemma4_more,
    .tensors_too = leave_keys
};

const hn_hf_class *const hn_hf_gemma[] = { &gemma3n, &gemma4, NULL };
