/* hf_window: classes of transformers whose layers differ in what they see, how they turn and how many heads they have:
 * Granite Swash, Laguna, Spark X2.5. Refuses to know how pieces are walked (hf_make.c). No folder is made of their
 * files. */
#include "forge/hf_rows.h"

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

const hn_hf_class *const hn_hf_window[] = { &swash, &swash_moe, &laguna, &spark, NULL };
