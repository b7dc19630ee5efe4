/* hf_moe: classes of transformers with mixtures of experts: which member of the config is which number, where the
 * router, the experts and what is added to scores stand. Both layouts of experts are read, one tensor each and all in
 * one. Refuses to know how pieces are walked (hf_make.c). */
#include "forge/hf_rows.h"

/* ---- numbers that many have ---------------------------------------------------------------------------------- */

static hone_status refuse_dense_layers(hn_hf *f, hone_error *err)
{
    const json_t *v = hn_hf_get(f, "mlp_only_layers");
    return json_array_size(v) ? hn_hf_refuse(f, "mlp_only_layers", v, "[]", err) : HONE_OK;
}

/* Experts that every token asks: one matrix of them all. */
hone_status hn_hf_put_shared(hn_hf *f, const char *number, const char *width, hone_error *err)
{
    int64_t n, w;
    hone_status st;
    TRY(hn_hf_whole(f, number, 0, &n, err));
    TRY(hn_hf_whole(f, width, 0, &w, err));
    if (n > 1024 || w > HN_MAX_FF)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s = %lld, expected at most 1024 experts", f->path, number,
                       (long long)n);
    TRY(hn_hf_put_u32(f, "expert_shared_count", (uint32_t)n, err));
    return hn_hf_put_u32(f, "expert_shared_feed_forward_length", (uint32_t)(n * w), err);
}

/* Dense layers at the beginning: their number, or what each layer is. */
hone_status hn_hf_put_lead(hn_hf *f, int64_t absent, hone_error *err)
{
    const json_t *kinds = hn_hf_get(f, "mlp_layer_types");
    int64_t n = 0, n_layer;
    hone_status st;
    TRY(hn_hf_whole(f, "first_k_dense_replace", json_is_array(kinds) ? -1 : absent, &n, err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    if (json_is_array(kinds)) {
        int64_t lead = 0;
        while (hn_hf_layer_is(kinds, lead, "dense")) lead++;
        for (int64_t il = lead; il < n_layer; il++)
            if (!hn_hf_layer_is(kinds, il, "sparse"))
                return hn_hf_refuse(f, "mlp_layer_types", kinds, "\"dense\" layers first, then \"sparse\" ones", err);
        if (n >= 0 && n != lead)
            return hn_hf_refuse(f, "mlp_layer_types", kinds, "as many \"dense\" ones as first_k_dense_replace", err);
        n = lead;
    }
    return hn_hf_put_u32(f, "leading_dense_block_count", (uint32_t)n, err);
}

/* DeepSeek V2's plain method knows no groups, whatever their number is said to be. */
static hone_status put_groups(hn_hf *f, hone_error *err)
{
    int64_t n, used;
    hone_status st;
    const char *how = json_string_value(hn_hf_get(f, "topk_method"));
    if (how && !strcmp(how, "greedy")) return HONE_OK;
    TRY(hn_hf_whole(f, "n_group", 1, &n, err));
    TRY(hn_hf_whole(f, "topk_group", 1, &used, err));
    if (n < 2) return HONE_OK;
    TRY(hn_hf_put_u32(f, "expert_group_count", (uint32_t)n, err));
    return hn_hf_put_u32(f, "expert_group_used_count", (uint32_t)used, err);
}

/* How experts are chosen, where DeepSeek's configs say it. */
static hone_status put_gating(hn_hf *f, const char *absent, hone_error *err)
{
    const json_t *v = hn_hf_get(f, "scoring_func"), *top = hn_hf_get(f, "topk_method");
    const char *func = v ? json_string_value(v) : absent, *how = json_string_value(top);
    if (func && !strcmp(func, "noaux_tc")) func = "sigmoid"; /* dots1 has the method's name there */
    if (!func || !hn_hf_is_word("softmax|sigmoid", func, strlen(func)))
        return hn_hf_refuse(f, "scoring_func", v, "softmax or sigmoid", err);
    bool sigmoid = !strcmp(func, "sigmoid");
    /* group_limited_greedy takes the best of a group for its score; of one group all methods are the same */
    if (how && strcmp(how, sigmoid ? "noaux_tc" : "greedy")) {
        int64_t n;
        hone_status st;
        TRY(hn_hf_whole(f, "n_group", 1, &n, err));
        if (strcmp(how, "group_limited_greedy") || sigmoid || (n > 1 && strcmp(f->of->arch, "deepseek2")))
            return hn_hf_refuse(f, "topk_method", top, sigmoid ? "noaux_tc" : "greedy", err);
    }
    return hn_hf_put_u32(f, "expert_gating_func", sigmoid ? 2 : 1, err);
}

hone_status hn_hf_put_routed(hn_hf *f, const char *gating, hone_error *err)
{
    int64_t n_layer;
    hone_status st;
    TRY(hn_hf_put_lead(f, 0, err));
    TRY(put_groups(f, err));
    TRY(put_gating(f, gating, err));
    TRY(hn_hf_put_shared(f, "n_shared_experts", "moe_intermediate_size", err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    hn_hf_leave_drafts(f, n_layer);
    return HONE_OK;
}

/* ---- softmax over all -------------------------------------------------------------------------------------------- */

static hone_status width_as_ff(hn_hf *f, hone_error *err)
{
    int64_t n;
    hone_status st;
    TRY(hn_hf_whole(f, "intermediate_size", 0, &n, err));
    TRY(hn_hf_put_u32(f, "feed_forward_length", (uint32_t)n, err));
    return hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)n, err);
}

static hone_status mixtral_more(hn_hf *f, hone_error *err)
{
    int64_t w;
    hone_status st;
    TRY(hn_hf_whole(f, "sliding_window", 0, &w, err));
    if (w) TRY(hn_hf_put_u32(f, "attention.sliding_window", (uint32_t)w, err));
    return width_as_ff(f, err);
}
static const hn_hf_key mixtral_keys[] = {
    U32("num_local_experts", "expert_count"),
    USED,
    MORE("intermediate_size", "feed_forward_length"),
    KEYS_END,
};
static const hn_hf_name mixtral_names[] = {
    { "ffn_gate_inp", "block_sparse_moe.gate", NULL },
    EXPERT_NAMES("block_sparse_moe.experts", "w1", "w3", "w2"),
    NAMES_END,
};
static const hn_hf_class mixtral = { .names = "MixtralForCausalLM",
                                     .types = "mixtral",
                                     .usual = "max_position_embeddings 131072|num_key_value_heads 8",
                                     .arch = "llama",
                                     .keys = mixtral_keys,
                                     .tensors = mixtral_names,
                                     .idle = ROUTER_IDLE,
                                     .base = 1e6,
                                     .eps = 1e-5,
                                     .more = mixtral_more };

static const hn_hf_key qwen3moe_keys[] = {
    U32("num_experts|num_local_experts", "expert_count"),
    USED,
    WIDTH,
    ALL_SPARSE,
    ONLY("norm_topk_prob", 1),
    ONLY("use_sliding_window", 0),
    /* Qwen3-Coder says so what all of the class have */
    ONLY("qkv_bias", 0),
    ONLY("use_qk_norm", 1),
    ONLY("shared_expert_intermediate_size", 0),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    KEYS_END,
};
static const hn_hf_name qwen3moe_names[] = { { "ffn_gate_inp", "mlp.gate", NULL }, MLP_EXPERTS, NAMES_END };
/* What is absent is false, and would be another formula. */
static hone_status qwen3moe_more(hn_hf *f, hone_error *err)
{
    const json_t *norm = hn_hf_get(f, "norm_topk_prob");
    if (!json_is_true(norm)) return hn_hf_refuse(f, "norm_topk_prob", norm, "true", err);
    return refuse_dense_layers(f, err);
}
static const hn_hf_class qwen3moe = { .names = "Qwen3MoeForCausalLM",
                                      .types = "qwen3_moe",
                                      .usual = "max_position_embeddings 32768",
                                      .arch = "qwen3moe",
                                      .keys = qwen3moe_keys,
                                      .tensors = qwen3moe_names,
                                      .idle = ROUTER_IDLE "sliding_window max_window_layers",
                                      .more = qwen3moe_more };

/* Hunyuan's mixture says numbers of layers in lists, of which all must be one. */
static hone_status one_for_all(hn_hf *f, const char *name, int64_t absent, int64_t *out, hone_error *err)
{
    const json_t *v = hn_hf_get(f, name);
    if (!json_is_array(v)) return hn_hf_whole(f, name, absent, out, err);
    *out = json_integer_value(json_array_get(v, 0));
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *x = json_array_get(v, i);
        if (!json_is_integer(x) || json_integer_value(x) != *out || *out < 1 || *out > HN_MAX_FF)
            return hn_hf_refuse(f, name, v, "one number for all layers", err);
    }
    return HONE_OK;
}
static const hn_hf_key hunyuan_keys[] = {
    U32("num_experts", "expert_count"),
    MORE("moe_topk", "expert_used_count"),
    MORE("moe_intermediate_size", "expert_feed_forward_length"),
    MORE("num_shared_expert", "expert_shared_count"),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    ONLY("use_qk_norm", 1),
    ONLY("use_cla", 0),
    ONLY("use_rotary_pos_emb", 1),
    ONLY("use_mixed_mlp_moe", 1),
    ONLY("moe_layer_num_skipped", 0),
    ONLY("moe_drop_tokens", 0),
    ONLY("moe_random_routing_dropped_token", 0),
    ONLY("norm_topk_prob", 1),
    ONLY("routed_scaling_factor", 1),
    ONLY("group_limited_greedy", 0),
    ONLY("position_embedding_xdrope", 0),
    WORD("norm_type", "rms"),
    KEYS_END,
};
static const hn_hf_name hunyuan_names[] = {
    { "ffn_gate_inp", "mlp.gate.wg", NULL },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_mlp"),
    NAMES_END,
};
static hone_status hunyuan_more(hn_hf *f, hone_error *err)
{
    int64_t n_used, width, n_shared, n_ff;
    hone_status st;
    TRY(hn_hf_whole(f, "intermediate_size", 0, &n_ff, err));
    TRY(one_for_all(f, "moe_topk", 1, &n_used, err));
    TRY(one_for_all(f, "moe_intermediate_size", n_ff, &width, err));
    TRY(one_for_all(f, "num_shared_expert", 1, &n_shared, err));
    if (n_shared > 1024 || n_ff > HN_MAX_FF)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: num_shared_expert = %lld, expected at most 1024 experts", f->path,
                       (long long)n_shared);
    TRY(hn_hf_put_u32(f, "expert_used_count", (uint32_t)n_used, err));
    TRY(hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)width, err));
    TRY(hn_hf_put_u32(f, "expert_shared_count", (uint32_t)n_shared, err));
    return hn_hf_put_u32(f, "expert_shared_feed_forward_length", (uint32_t)(n_shared * n_ff), err);
}
static const hn_hf_class hunyuan = { .names = "HunYuanMoEV1ForCausalLM",
                                     .types = "hunyuan_v1_moe",
                                     .arch = "hunyuan-moe",
                                     .keys = hunyuan_keys,
                                     .tensors = hunyuan_names,
                                     .idle = ROUTER_IDLE HUNYUAN_IDLE,
                                     .eps = 1e-5,
                                     .more = hunyuan_more };

static const hn_hf_key qwen2moe_keys[] = {
    U32("num_experts", "expert_count"),
    USED,
    WIDTH,
    U32("shared_expert_intermediate_size", "expert_shared_feed_forward_length"),
    ALL_SPARSE,
    ONLY("norm_topk_prob", 0),
    ONLY("use_sliding_window", 0),
    TENSORS("qkv_bias", 1, QKV_BIASES),
    KEYS_END,
};
static const hn_hf_name qwen2moe_names[] = {
    { "ffn_gate_inp", "mlp.gate", NULL },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_expert"),
    { "ffn_gate_inp_shexp", "mlp.shared_expert_gate", hn_hf_flat },
    NAMES_END,
};
static const hn_hf_class qwen2moe = { .names = "Qwen2MoeForCausalLM",
                                      .types = "qwen2_moe",
                                      .arch = "qwen2moe",
                                      .keys = qwen2moe_keys,
                                      .tensors = qwen2moe_names,
                                      .idle = ROUTER_IDLE "sliding_window max_window_layers",
                                      .more = refuse_dense_layers };

static const hn_hf_key olmoe_keys[] = {
    U32("num_experts", "expert_count"),
    USED,
    ONLY("norm_topk_prob", 0),
    ONLY("clip_qkv", 0),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    MORE("intermediate_size", "feed_forward_length"),
    KEYS_END,
};
static const hn_hf_class olmoe = { .names = "OlmoeForCausalLM",
                                   .types = "olmoe",
                                   .arch = "olmoe",
                                   .keys = olmoe_keys,
                                   .tensors = qwen3moe_names,
                                   .idle = ROUTER_IDLE,
                                   .more = width_as_ff };

static const hn_hf_key granitemoe_keys[] = {
    U32("num_local_experts", "expert_count"),
    USED,
    MORE("intermediate_size", "feed_forward_length"),
    F32_OR("attention_multiplier", "attention.scale", 1),
    F32_OR("embedding_multiplier", "embedding_scale", 1),
    F32_OR("residual_multiplier", "residual_scale", 1),
    F32_OR("logits_scaling", "logit_scale", 1),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    U32_MAY("shared_intermediate_size", "expert_shared_feed_forward_length"),
    KEYS_END,
};
static const hn_hf_name granitemoe_names[] = {
    { "ffn_gate_inp", "block_sparse_moe.router.layer", NULL },
    { "ffn_gate_exps", "block_sparse_moe.input_linear", hn_hf_experts },
    { "ffn_up_exps", "block_sparse_moe.input_linear", hn_hf_experts },
    { "ffn_down_exps", "block_sparse_moe.output_linear", hn_hf_experts },
    { "ffn_gate_shexp", "shared_mlp.input_linear", hn_hf_half },
    { "ffn_up_shexp", "shared_mlp.input_linear", hn_hf_half },
    { "ffn_down_shexp", "shared_mlp.output_linear", NULL },
    NAMES_END,
};
static const hn_hf_class granitemoe = { .names = "GraniteMoeForCausalLM|GraniteMoeSharedForCausalLM",
                                        .types = "granitemoe|granitemoeshared",
                                        .arch = "granitemoe",
                                        .keys = granitemoe_keys,
                                        .tensors = granitemoe_names,
                                        .idle = ROUTER_IDLE,
                                        .more = width_as_ff };

/* A bias of the choice, that stands where older programs had it, or in the router. */
static hone_status ernie_bias(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    const char *p = strstr(at->hf, "mlp.moe_statics.");
    if (p && !f->back && !hn_hf_find(f, at->hf)) {
        snprintf(name, sizeof name, "%.*smlp.gate.%s", (int)(p - at->hf), at->hf, p + 4);
        as.hf = name;
    }
    return hn_hf_flat(f, &as, err);
}
static const hn_hf_name ernie_names[] = {
    { "ffn_gate_inp", "mlp.gate", NULL },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_experts"),
    { "exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias", ernie_bias },
    NAMES_END,
};
static const hn_hf_key ernie_keys[] = {
    U32("moe_num_experts", "expert_count"),
    U32("moe_k", "expert_used_count"),
    WIDTH,
    U32_OR("moe_layer_interval", "interleave_moe_layer_step", 1),
    U32_OR("moe_layer_start_index", "leading_dense_block_count", 1),
    MORE("moe_layer_end_index", NULL),
    MORE("moe_num_shared_experts", NULL),
    ONLY("moe_use_aux_free", 1),
    ONLY("use_rmsnorm", 1),
    ONLY("compression_ratio", 1),
    TENSORS("use_bias", 0, ATTN_BIASES "|" GLU_BIASES),
    KEYS_END,
};
static hone_status ernie_more(hn_hf *f, hone_error *err)
{
    int64_t last, n_layer;
    hone_status st;
    TRY(hn_hf_put_shared(f, "moe_num_shared_experts", "moe_intermediate_size", err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    /* what a sum of weights is raised to before they are divided by it: 1e-12, and no sum is so small */
    const json_t *least = hn_hf_get(f, "moe_norm_min");
    if (least && !(json_number_value(least) <= 1e-6)) return hn_hf_refuse(f, "moe_norm_min", least, "1e-12", err);
    const json_t *end = json_object_get(f->config, "moe_layer_end_index");
    if (json_is_integer(end) && json_integer_value(end) == -1) return HONE_OK;
    TRY(hn_hf_whole(f, "moe_layer_end_index", n_layer - 1, &last, err));
    return last < n_layer - 1 ? hn_hf_refuse(f, "moe_layer_end_index", end, "the last layer", err) : HONE_OK;
}
static const hn_hf_class ernie_moe = { .names = "Ernie4_5_MoeForCausalLM",
                                       .types = "ernie4_5_moe",
                                       .arch = "ernie4_5-moe",
                                       .keys = ernie_keys,
                                       .tensors = ernie_names,
                                       .idle = ROUTER_IDLE "moe_capacity num_nextn_predict_layers moe_gate",
                                       .left = "model.mtp_*",
                                       .tied = true,
                                       .base = 5e5,
                                       .eps = 1e-5,
                                       .more = ernie_more };

/* ---- sigmoid, and a bias of the choice --------------------------------------------------------------------------- */

static const hn_hf_name routed_names[] = {
    { "ffn_gate_inp", "mlp.gate", NULL },
    { "exp_probs_b.bias", "mlp.gate.e_score_correction_bias", hn_hf_flat },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_experts"),
    NAMES_END,
};
static hone_status sigmoid_more(hn_hf *f, hone_error *err) { return hn_hf_put_routed(f, "sigmoid", err); }

static const hn_hf_key glm4moe_keys[] = {
    ROUTED(1, 1),
    TENSORS("attention_bias", 0, QKV_BIASES),
    TENSORS("use_qk_norm", 0, "attn_q_norm.weight|attn_k_norm.weight"),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    KEYS_END,
};
static const hn_hf_class glm4moe = { .names = "Glm4MoeForCausalLM|Glm4vMoeForConditionalGeneration",
                                     .types = "glm4_moe|glm4v_moe_text|glm4v_moe",
                                     .arch = "glm4moe",
                                     .keys = glm4moe_keys,
                                     .tensors = routed_names,
                                     .idle = ROUTER_IDLE,
                                     .drafts = HN_HF_BEHIND,
                                     .part = 0.5,
                                     .more = sigmoid_more };

/* Solar Open: without dense layers, norms of heads or a part that does not turn. */
static const hn_hf_key solar_keys[] = {
    ROUTED(1, 1),
    TENSORS("attention_bias", 0, QKV_BIASES),
    ONLY("use_qk_norm", 0),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    KEYS_END,
};
static const hn_hf_class solar = {
    .names = "SolarOpenForCausalLM",
    .types = "solar_open",
    .arch = "glm4moe",
    .keys = solar_keys,
    .tensors = routed_names,
    .idle = ROUTER_IDLE,
    .usual = "max_position_embeddings 131072|head_dim 128|intermediate_size 10240", /* of dense layers */
    .base = 1e6,
    .more = sigmoid_more
};

/* Ling 2.0, Ring 2.0 */
static const hn_hf_key bailing_keys[] = {
    U32("num_experts", "expert_count"),
    USED,
    WIDTH,
    F32_OR("routed_scaling_factor", "expert_weights_scale", 1),
    BOOL_OR("norm_topk_prob", "expert_weights_norm", 1),
    MORE("num_shared_experts", NULL),
    MORE("first_k_dense_replace", NULL),
    MORE("n_group", NULL),
    MORE("topk_group", NULL),
    MORE("num_nextn_predict_layers", NULL),
    WORD("score_function", "sigmoid"),
    ONLY("moe_router_enable_expert_bias", 1),
    ONLY("use_qkv_bias", 0),
    ONLY("use_bias", 0),
    ONLY("use_qk_norm", 1),
    ONLY("use_rmsnorm", 1),
    ONLY("use_sliding_window", 0),
    KEYS_END,
};
static const hn_hf_name bailing_names[] = {
    { "token_embd", "word_embeddings", NULL },
    { "attn_qkv", "attention.query_key_value", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_q_norm", "attention.query_layernorm", NULL },
    { "attn_k_norm", "attention.key_layernorm", NULL },
    { "attn_output", "attention.dense", NULL },
    { "ffn_gate_inp", "mlp.gate", NULL },
    { "exp_probs_b.bias", "mlp.gate.expert_bias", hn_hf_flat },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_experts"),
    NAMES_END,
};
static hone_status bailing_more(hn_hf *f, hone_error *err)
{
    int64_t n_layer;
    hone_status st;
    TRY(hn_hf_put_lead(f, 0, err));
    TRY(put_groups(f, err));
    TRY(hn_hf_put_u32(f, "expert_gating_func", 2, err));
    TRY(hn_hf_put_shared(f, "num_shared_experts", "moe_intermediate_size", err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    hn_hf_leave_drafts(f, n_layer);
    return HONE_OK;
}
static const hn_hf_class bailing = {
    .names = "BailingMoeV2ForCausalLM",
    .types = "bailing_moe_v2",
    .arch = "bailingmoe2",
    .keys = bailing_keys,
    .tensors = bailing_names,
    .said = "partial_rotary_factor|rope_parameters",
    .idle = ROUTER_IDLE "embedding_dropout output_dropout mtp_loss_scaling_factor "
                        "router_dtype max_window_layers sliding_window moe_shared_expert_intermediate_size",
    .base = 6e5,
    .more = bailing_more
};

static const hn_hf_key dots1_keys[] = {
    ROUTED(1, 0),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    ONLY("sliding_window", 0),
    KEYS_END,
};
static const hn_hf_class dots1 = { .names = "Dots1ForCausalLM",
                                   .types = "dots1",
                                   .arch = "dots1",
                                   .keys = dots1_keys,
                                   .tensors = routed_names,
                                   .idle = ROUTER_IDLE "max_window_layers use_sliding_window",
                                   .more = sigmoid_more };

static const hn_hf_key minimax_keys[] = {
    U32("num_local_experts", "expert_count"),
    USED,
    MORE("intermediate_size", "feed_forward_length"),
    U32("rotary_dim", "rope.dimension_count"),
    WORD("scoring_func", "sigmoid"),
    ONLY("use_qk_norm", 1),
    WORD("qk_norm_type", "per_layer"),
    ONLY("use_routing_bias", 1),
    ONLY("shared_intermediate_size", 0),
    KEYS_END,
};
static const hn_hf_name minimax_names[] = {
    { "ffn_gate_inp", "block_sparse_moe.gate", NULL },
    { "exp_probs_b.bias", "block_sparse_moe.e_score_correction_bias", hn_hf_flat },
    EXPERT_NAMES("block_sparse_moe.experts", "w1", "w3", "w2"),
    NAMES_END,
};
/* What turns is said twice: in positions of a head, and, by transformers, as their share. */
static hone_status check_turning(hn_hf *f, hone_error *err)
{
    int64_t n, d;
    hone_status st;
    const json_t *share = json_object_get(hn_hf_get(f, "rope_parameters"), "partial_rotary_factor");
    TRY(hn_hf_whole(f, "rotary_dim", 0, &n, err));
    TRY(hn_hf_whole(f, "head_dim", 0, &d, err));
    if (!json_is_number(share) || !d || (int64_t)((double)d * json_number_value(share)) == n) return HONE_OK;
    return hn_hf_refuse(f, "partial_rotary_factor", share, "rotary_dim over head_dim", err);
}

static hone_status minimax_more(hn_hf *f, hone_error *err)
{
    int64_t n_layer;
    hone_status st;
    TRY(check_turning(f, err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    hn_hf_leave_drafts(f, n_layer);
    f->own_width = true;
    TRY(hn_hf_put_u32(f, "expert_gating_func", 2, err));
    return width_as_ff(f, err);
}
static const hn_hf_class minimax = { .names = "MiniMaxM2ForCausalLM",
                                     .types = "minimax_m2",
                                     .arch = "minimax-m2",
                                     .keys = minimax_keys,
                                     .tensors = minimax_names,
                                     .idle =
                                         ROUTER_IDLE "mtp_transformer_layers num_mtp_modules use_mtp shared_moe_mode "
                                                     "attn_type_list layernorm_full_attention_beta "
                                                     "layernorm_linear_attention_beta layernorm_mlp_beta",
                                     .base = 5e6,
                                     .more = minimax_more };

/* ---- of the chosen alone: gpt-oss ----- */

/* Gate and up in turns. Not in blocks, inputs come first: [n_expert, n_in, 2·n_out]. */
static hone_status gpt_oss_experts(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    uint64_t in = at->ne[0], out = at->ne[1], n = at->ne[2], up = strstr(at->name, "_up_exps") ? 1 : 0;
    bool down = at->slot->role == HN_ROLE_EXPERT_DOWN;
    snprintf(name, sizeof name, "%.*s", (int)(strlen(at->hf) - strlen(".weight")), at->hf); /* no suffix there */
    as.hf = name;
    const hn_ckpt_tensor *t = hn_hf_find(f, name);
    bool rows = t && f->stored[t - f->c->t]; /* blocks lie along inputs */
    uint64_t each = down ? 1 : 2;
    if (rows)
        return hn_hf_make(
            f, &as, 3, (uint64_t[]){ in, each * out, n },
            &(hn_hf_view){ .first = up * in, .n = { in, out, n }, .stride = { 1, each * in, each * in * out } }, err);
    return hn_hf_make(
        f, &as, 3, (uint64_t[]){ each * out, in, n },
        &(hn_hf_view){ .first = up, .n = { in, out, n }, .stride = { each * out, each, each * in * out } }, err);
}

static hone_status gpt_oss_bias(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    uint64_t out = at->ne[0], n = at->ne[1], up = strstr(at->name, "_up_exps") ? 1 : 0;
    uint64_t each = strstr(at->name, "_down_exps") ? 1 : 2;
    return hn_hf_make(f, at, 2, (uint64_t[]){ each * out, n },
                      &(hn_hf_view){ .first = up, .n = { out, n }, .stride = { each, each * out } }, err);
}

static const hn_hf_key gpt_oss_keys[] = {
    U32("num_local_experts", "expert_count"),
    U32("num_experts_per_tok|experts_per_token", "expert_used_count"),
    MORE("intermediate_size", "feed_forward_length"),
    U32("sliding_window", "attention.sliding_window"),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    ONLY("attention_bias", 1),
    ONLY("swiglu_limit", 7),
    ONLY("swiglu_alpha", 1.702),
    KEYS_END,
};
/* whole-name rows of the biases come first: the rows of the matrices fit them too */
static const hn_hf_name gpt_oss_names[] = {
    { "attn_sinks.weight", "self_attn.sinks", NULL },
    { "ffn_gate_inp", "mlp.router", NULL },
    { "ffn_gate_exps.bias", "mlp.experts.gate_up_proj_bias", gpt_oss_bias },
    { "ffn_up_exps.bias", "mlp.experts.gate_up_proj_bias", gpt_oss_bias },
    { "ffn_down_exps.bias", "mlp.experts.down_proj_bias", gpt_oss_bias },
    { "ffn_gate_exps", "mlp.experts.gate_up_proj", gpt_oss_experts },
    { "ffn_up_exps", "mlp.experts.gate_up_proj", gpt_oss_experts },
    { "ffn_down_exps", "mlp.experts.down_proj", gpt_oss_experts },
    NAMES_END,
};
static const hn_hf_class gpt_oss = {
    .names = "GptOssForCausalLM",
    .types = "gpt_oss",
    .arch = "gpt-oss",
    .rope = "{\"rope_type\":\"yarn\",\"beta_fast\":32,\"beta_slow\":1,\"factor\":32,\"truncate\":false,\"original_max_"
            "position_embeddings\":4096,\"rope_theta\":150000}",
    .keys = gpt_oss_keys,
    .tensors = gpt_oss_names,
    .idle = ROUTER_IDLE "initial_context_length",
    .base = 150000,
    .more = width_as_ff
};

/* ---- llama 4 ----------------------------------------------------------------------------------------------------- */

/* Inputs come first, gate and up side by side: [n_expert, n_in, 2·n_out]. */
static hone_status llama4_experts(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    uint64_t in = at->ne[0], out = at->ne[1], n = at->ne[2], up = strstr(at->name, "_up_exps") ? out : 0;
    uint64_t each = at->slot->role == HN_ROLE_EXPERT_DOWN ? 1 : 2;
    if (strchr(at->hf, '*')) {
        const char *star = strchr(at->hf, '*');
        snprintf(name, sizeof name, "%.*s%s", (int)(star - at->hf), at->hf, each == 1 ? "down_proj" : "gate_up_proj");
        if (!f->back && !hn_hf_find(f, name)) return hn_hf_experts(f, at, err); /* quantizers take them apart */
        as.hf = name;
    }
    return hn_hf_make(f, &as, 3, (uint64_t[]){ each * out, in, n },
                      &(hn_hf_view){ .first = up, .n = { in, out, n }, .stride = { each * out, 1, each * in * out } },
                      err);
}

static const hn_hf_name llama4_names[] = {
    { "attn_q", "self_attn.q_proj", hn_hf_reshaped }, /* pairs are neighbours there, too */
    { "attn_k", "self_attn.k_proj", hn_hf_reshaped },
    { "ffn_gate_inp", "feed_forward.router", NULL },
    { "ffn_gate", "feed_forward.gate_proj", NULL },
    { "ffn_up", "feed_forward.up_proj", NULL },
    { "ffn_down", "feed_forward.down_proj", NULL },
    { "ffn_gate_exps", "feed_forward.experts.*.gate_proj", llama4_experts },
    { "ffn_up_exps", "feed_forward.experts.*.up_proj", llama4_experts },
    { "ffn_down_exps", "feed_forward.experts.*.down_proj", llama4_experts },
    SHARED_NAMES("feed_forward.shared_expert"),
    NAMES_END,
};
static const hn_hf_key llama4_keys[] = {
    U32("num_local_experts", "expert_count"),
    U32_OR("num_experts_per_tok", "expert_used_count", 1),
    U32("intermediate_size_mlp", "feed_forward_length"),
    U32("intermediate_size", "expert_feed_forward_length|expert_shared_feed_forward_length"),
    U32_OR("interleave_moe_layer_step", "interleave_moe_layer_step", 1),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    ONLY("no_rope_layer_interval", 4),
    ONLY("attention_chunk_size", HN_LLAMA4_CHUNK),
    ONLY("floor_scale", 8192),
    ONLY("attn_scale", 0.1),
    MORE("attn_temperature_tuning", NULL),
    ONLY("for_llm_compressor", 0),
    MORE("moe_layers", NULL),
    MORE("use_qk_norm", NULL),
    KEYS_END,
};
/* Norms of queries and keys are of all but Maverick's 128 experts; layers of experts are each last of so many. */
static hone_status llama4_more(hn_hf *f, hone_error *err)
{
    int64_t n, period, n_layer;
    const json_t *norm = hn_hf_get(f, "use_qk_norm"), *moe = hn_hf_get(f, "moe_layers");
    hone_status st;
    TRY(hn_hf_whole(f, "num_local_experts", 16, &n, err));
    TRY(hn_hf_whole(f, "interleave_moe_layer_step", 1, &period, err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    const json_t *tuned = hn_hf_get(f, "attn_temperature_tuning"); /* true, or a number */
    if (tuned && !json_is_true(tuned) && !(json_is_integer(tuned) && json_integer_value(tuned)))
        return hn_hf_refuse(f, "attn_temperature_tuning", tuned, "true", err);
    if (norm && json_is_true(norm) != (n != 128))
        return hn_hf_refuse(f, "use_qk_norm", norm, n != 128 ? "true" : "false, as 128 experts have it", err);
    for (size_t i = 0; period > 0 && i < json_array_size(moe); i++)
        if (json_integer_value(json_array_get(moe, i)) != (int64_t)(i + 1) * period - 1 ||
            json_array_size(moe) != (size_t)(n_layer / period))
            return hn_hf_refuse(f, "moe_layers", moe, "each last of interleave_moe_layer_step layers", err);
    return hn_hf_put_u32(f, "expert_shared_count", 1, err);
}
static const hn_hf_class llama4 = { .names = "Llama4ForCausalLM|Llama4ForConditionalGeneration",
                                    .types = "llama4_text",
                                    .arch = "llama4",
                                    .keys = llama4_keys,
                                    .tensors = llama4_names,
                                    .idle = ROUTER_IDLE,
                                    .base = 5e5,
                                    .more = llama4_more };

/* Qwen3-VL's mixtures: published ones lie as llama 4's do, those that transformers 5 saves as all other experts.
 * Weights always add up to 1. */
static hone_status qwen3vl_experts(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    char name[320];
    const char *star = strchr(at->hf, '*');
    const uint64_t n_embd = (uint64_t)f->m->hp.n_embd, n_ff = (uint64_t)f->m->hp.moe.n_ff;
    snprintf(name, sizeof name, "%.*s%s", (int)(star - at->hf), at->hf, n_embd != n_ff ? "down_proj" : "gate_up_proj");
    const hn_ckpt_tensor *t = f->back ? NULL : hn_hf_find(f, name); /* the one whose sides differ */
    bool usual = t && t->ne[0] == n_ff && n_embd != n_ff;
    if (t && n_embd == n_ff) usual = t->ne[0] == n_embd;
    return usual ? hn_hf_experts(f, at, err) : llama4_experts(f, at, err);
}

static const hn_hf_name qwen3vl_names[] = {
    { "ffn_gate_inp", "mlp.gate", NULL },
    { "ffn_gate_exps", "mlp.experts.*.gate_proj", qwen3vl_experts },
    { "ffn_up_exps", "mlp.experts.*.up_proj", qwen3vl_experts },
    { "ffn_down_exps", "mlp.experts.*.down_proj", qwen3vl_experts },
    NAMES_END,
};
static const hn_hf_class qwen3vlmoe = { .names = "Qwen3VLMoeForConditionalGeneration",
                                        .types = "qwen3_vl_moe_text|qwen3_vl_moe",
                                        .usual = "max_position_embeddings 128000",
                                        .arch = "qwen3moe",
                                        .keys = qwen3moe_keys,
                                        .tensors = qwen3vl_names,
                                        .idle = ROUTER_IDLE "sliding_window max_window_layers",
                                        .base = 5e5,
                                        .more = refuse_dense_layers };

/* Mellum: every layer has experts. */
static const hn_hf_key mellum_keys[] = {
    U32("num_experts|num_local_experts", "expert_count"),
    USED,
    WIDTH,
    U32_OR("sliding_window", "attention.sliding_window", 1024),
    ONLY("attention_bias", 0),
    ONLY("norm_topk_prob", 1),
    MORE("mlp_layer_types", NULL),
    KEYS_END,
};
static hone_status mellum_more(hn_hf *f, hone_error *err)
{
    const json_t *kinds = hn_hf_get(f, "mlp_layer_types");
    int64_t n_layer;
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    for (int64_t il = 0; kinds && il < n_layer; il++)
        if (!hn_hf_layer_is(kinds, il, "sparse"))
            return hn_hf_refuse(f, "mlp_layer_types", kinds, "all \"sparse\"", err);
    hn_hf_leave_drafts(f, n_layer);
    return HONE_OK;
}
static const hn_hf_class mellum = { .names = "MellumForCausalLM",
                                    .windows = true,
                                    .types = "mellum",
                                    .arch = "mellum",
                                    .keys = mellum_keys,
                                    .tensors = qwen3moe_names,
                                    .usual = "head_dim 128",
                                    .idle = ROUTER_IDLE "num_mtp_layers mtp_layer_types mtp_mlp_layer_types "
                                                        "num_nextn_predict_layers",
                                    .base = 5e5,
                                    .more = mellum_more };

/* ---- Cohere's mixtures ------------------------------------------------------------------------------------------- */

/* Which layers have the window: as the config says, or all but each fourth behind the dense ones, which have none. */
static hone_status put_cohere_windows(hn_hf *f, hone_error *err)
{
    enum { PERIOD = 4 };
    uint8_t windowed[HN_MAX_LAYER];
    int64_t lead = 0;
    hn_hf_layers l;
    hone_status st;
    TRY(hn_hf_read_windows(f, &l, windowed, err));
    const json_t *kinds = hn_hf_get(f, "mlp_layer_types");
    TRY(hn_hf_whole(f, "first_k_dense_replace", 0, &lead, err));
    for (lead = kinds ? 0 : lead; hn_hf_layer_is(kinds, lead, "dense");) lead++;
    for (int64_t il = 0; il < l.n && !l.list; il++) windowed[il] = il >= lead && (il - lead + 1) % PERIOD != 0;
    return hn_hf_put_layers(f, "attention.sliding_window_pattern", HONE_KV_BOOL, windowed, l.n, err);
}

/* A softmax of the chosen is one over all whose weights add up to 1. */
static hone_status cohere2moe_more(hn_hf *f, hone_error *err)
{
    const json_t *how = hn_hf_get(f, "expert_selection_fn");
    const char *func = how ? json_string_value(how) : "softmax";
    int64_t width, dense;
    double eps = 1e-5;
    bool rms = false, norm;
    hone_status st;
    if (!func || !hn_hf_is_word("softmax|sigmoid", func, strlen(func)))
        return hn_hf_refuse(f, "expert_selection_fn", how, "softmax or sigmoid", err);
    TRY(hn_hf_truth(f, "norm_topk_prob", true, &norm, err));
    TRY(hn_hf_put_u32(f, "expert_gating_func", !strcmp(func, "sigmoid") ? 2 : 1, err));
    TRY(hn_hf_put_bool(f, "expert_weights_norm", norm || strcmp(func, "sigmoid") != 0, err));
    TRY(hn_hf_whole(f, "intermediate_size", 22528, &width, err));
    TRY(hn_hf_whole(f, "prefix_dense_intermediate_size", width, &dense, err));
    TRY(hn_hf_put_u32(f, "feed_forward_length", (uint32_t)dense, err));
    TRY(hn_hf_put_u32(f, "expert_feed_forward_length", (uint32_t)width, err));
    TRY(hn_hf_put_shared(f, "num_shared_experts", "intermediate_size", err));
    TRY(hn_hf_put_lead(f, 0, err));
    TRY(hn_hf_number(f, "rms_norm_eps", 0, &eps, &rms, err));
    if (!rms) TRY(hn_hf_number(f, "layer_norm_eps", 1e-5, &eps, NULL, err));
    else hn_hf_get(f, "layer_norm_eps");
    TRY(hn_hf_put_f32(f, rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", eps, err));
    return put_cohere_windows(f, err);
}
static const hn_hf_key cohere2moe_keys[] = {
    U32_OR("num_experts", "expert_count", 8),
    U32_OR("num_experts_per_tok", "expert_used_count", 2),
    U32_OR("sliding_window", "attention.sliding_window", 4096),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 128),
    F32_OR("logit_scale", "logit_scale", 0.0625),
    MORE("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    MORE("intermediate_size", "feed_forward_length"),
    MORE("first_k_dense_replace|mlp_layer_types", NULL),
    ONLY("attention_bias", 0),
    ONLY("sliding_window_pattern", 4),
    ONLY("prefix_dense_sliding_window_pattern", 1),
    ONLY("num_nextn_predict_layers", 0),
    WORD("shared_expert_combination_strategy", "average"),
    KEYS_END,
};
static const hn_hf_name cohere2moe_names[] = {
    { "ffn_gate_inp", "mlp.gate", NULL }, MLP_EXPERTS, SHARED_NAMES("mlp.shared_experts"), NAMES_END
};
static const hn_hf_class cohere2moe = { .names = "Cohere2MoeForCausalLM",
                                        .types = "cohere2_moe",
                                        .arch = "cohere2moe",
                                        .keys = cohere2moe_keys,
                                        .tensors = cohere2moe_names,
                                        .idle = ROUTER_IDLE,
                                        .usual = "max_position_embeddings 8192",
                                        .tied = true,
                                        .fits = hn_hf_never,
                                        .more = cohere2moe_more };

/* K-EXAONE, Hy3: as dots1; of the former windowed layers alone turn. */
#define SHARED_SIGMOID(factor, scale)                                                                                 \
    U32("num_experts|num_local_experts", "expert_count"), USED, WIDTH, F32_OR(factor, "expert_weights_scale", scale), \
        MORE("num_shared_experts", NULL), MORE("first_k_dense_replace", NULL), MORE("n_group", NULL),                 \
        MORE("topk_group", NULL), MORE("mlp_layer_types", NULL), MORE("num_nextn_predict_layers", NULL)
static hone_status shared_sigmoid(hn_hf *f, hone_error *err)
{
    int64_t n_layer;
    hone_status st;
    TRY(hn_hf_put_lead(f, 1, err));
    TRY(put_groups(f, err));
    TRY(hn_hf_put_u32(f, "expert_gating_func", 2, err));
    TRY(hn_hf_put_shared(f, "num_shared_experts", "moe_intermediate_size", err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    hn_hf_leave_drafts(f, n_layer);
    return HONE_OK;
}
static const hn_hf_key exaone_moe_keys[] = {
    SHARED_SIGMOID("routed_scaling_factor", 2.5),
    BOOL_OR("norm_topk_prob", "expert_weights_norm", 1),
    U32("sliding_window", "attention.sliding_window"), /* null: all layers turn */
    MORE("sliding_window_pattern", NULL),
    WORD("scoring_func", "sigmoid"),
    WORD("topk_method", "noaux_tc"),
    KEYS_END,
};
static hone_status exaone_moe_more(hn_hf *f, hone_error *err)
{
    if (!hn_hf_get(f, "layer_types")) return hn_hf_refuse(f, "layer_types", NULL, "a word for each layer", err);
    return shared_sigmoid(f, err);
}
static const hn_hf_name exaone_moe_names[] = {
    { "ffn_gate_inp", "mlp.gate", NULL },
    { "exp_probs_b.bias", "mlp.e_score_correction_bias", hn_hf_flat },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_experts"),
    NAMES_END,
};
static const hn_hf_class exaone_moe = { .names = "ExaoneMoeForCausalLM|ExaoneMoEForCausalLM",
                                        .windows = true,
                                        .types = "exaone_moe",
                                        .arch = "exaone-moe",
                                        .keys = exaone_moe_keys,
                                        .tensors = exaone_moe_names,
                                        .idle = ROUTER_IDLE,
                                        .left = "mtp.*",
                                        .eps = 1e-5,
                                        .more = exaone_moe_more };
static const hn_hf_key hy_keys[] = {
    SHARED_SIGMOID("router_scaling_factor", 2.826),
    ONLY("route_norm", 1),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    KEYS_END,
};
static hone_status hy_more(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_put_bool(f, "expert_weights_norm", true, err));
    return shared_sigmoid(f, err);
}
static const hn_hf_name hy_names[] = {
    { "ffn_gate_inp", "mlp.router.gate", NULL },
    { "exp_probs_b.bias", "mlp.expert_bias", hn_hf_flat },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_mlp"),
    NAMES_END,
};
static const hn_hf_class hy = { .names = "HYV3ForCausalLM",
                                .types = "hy_v3",
                                .arch = "bailingmoe2",
                                .keys = hy_keys,
                                .tensors = hy_names,
                                .idle = ROUTER_IDLE "enable_moe_fp32_combine",
                                .usual = "head_dim 128",
                                .base = 11158840,
                                .eps = 1e-5,
                                .more = hy_more };

const hn_hf_class *const hn_hf_moe[] = {
    &mixtral, &qwen3moe, &qwen2moe,   &olmoe,   &granitemoe, &ernie_moe, &glm4moe,    &dots1, &minimax,    &gpt_oss,
    &llama4,  &solar,    &qwen3vlmoe, &hunyuan, &bailing,    &mellum,    &exaone_moe, &hy,    &cohere2moe, NULL,
};
