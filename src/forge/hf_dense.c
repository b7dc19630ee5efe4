/* hf_dense: classes of transformers whose layers all do the same. A row says what differs from the rows of all
 * (hf_keys.c) and from the family's slots (model/families*.c). */
#include "forge/hf_rows.h"

#include <math.h>

/* ---- rows ----------------------------------------------------------------------------------------------- */

#define MLP_BIASES "ffn_up.bias|ffn_down.bias"
#define LAYER_NORM_EPS(member) F32_OR(member, "attention.layer_norm_epsilon", 1e-5), NO_RMS
#define NO_RMS                                              \
    {                                                       \
        "rms_norm_eps", NULL, HN_HF_ONLY, HN_HF_OPTIONAL, 0 \
    }

/* ---- windows ----------------------------------------------------------------------------------------------- */

/* A window of all layers: hone runs such a model up to it. */
static hone_status put_limit(hn_hf *f, int64_t absent, hone_error *err)
{
    int64_t w;
    const json_t *said = json_object_get(f->config, "sliding_window");
    hone_status st;
    TRY(hn_hf_whole(f, "sliding_window", said ? 0 : absent, &w, err));
    return w ? hn_hf_put_u32(f, "attention.sliding_window", (uint32_t)w, err) : HONE_OK;
}

static hone_status mistral_more(hn_hf *f, hone_error *err) { return put_limit(f, 4096, err); }
static hone_status phi3_more(hn_hf *f, hone_error *err)
{
    if (!hn_hf_get(f, "sliding_window")) return hn_hf_put_u32(f, "attention.sliding_window", 0, err);
    return put_limit(f, 0, err);
}
static hone_status window_more(hn_hf *f, hone_error *err) { return put_limit(f, 0, err); }

/* Its window is of the layers from max_window_layers on, where it is used at all. */
static hone_status qwen2_more(hn_hf *f, hone_error *err)
{
    int64_t first, n_layer;
    const json_t *used = hn_hf_get(f, "use_sliding_window");
    bool windowed;
    hone_status st;
    TRY(hn_hf_truth(f, "use_sliding_window", false, &windowed, err));
    hn_hf_get(f, "sliding_window");
    TRY(hn_hf_whole(f, "max_window_layers", 0, &first, err));
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    if (!windowed || first >= n_layer) return HONE_OK;
    if (first > 0) return hn_hf_refuse(f, "use_sliding_window", used, "false, or max_window_layers 0", err);
    hn_hf_get(f, "layer_types"); /* all are windowed: hone sees that as a limit */
    return put_limit(f, 0, err);
}

/* ---- as llama --------------------------------------------------------------------------------------------- */

static const hn_hf_key llama_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    TENSORS("mlp_bias", 0, GLU_BIASES),
    ONLY("rope_interleaved", 0),
    ONLY("is_llama_config", 1),              /* SmolLM */
    WORD("activation", "swiglu|silu|swish"), /* Falcon 3, beside hidden_act */
    KEYS_END,
};
static const hn_hf_class llama = { .names = "LlamaForCausalLM|LLaMAForCausalLM",
                                   .types = "llama",
                                   .arch = "llama",
                                   .keys = llama_keys,
                                   .idle = "max_sequence_length seq_length",
                                   .usual = "max_position_embeddings 2048" };
static const hn_hf_class mistral = { .names = "MistralForCausalLM",
                                     .types = "mistral",
                                     .arch = "llama",
                                     .keys = llama_keys,
                                     .usual = "max_position_embeddings 131072|num_key_value_heads 8",
                                     .more = mistral_more };

/* Queries grow with their positions. */
static hone_status ministral3_more(hn_hf *f, hone_error *err)
{
    const json_t *rope = hn_hf_get(f, "rope_parameters|rope_scaling");
    const json_t *beta = json_object_get(rope, "llama_4_scaling_beta");
    hone_status st;
    TRY(put_limit(f, 0, err));
    return json_is_number(beta) ? hn_hf_put_f32(f, "attention.temperature_scale", json_number_value(beta), err)
                                : HONE_OK;
}
static const hn_hf_class ministral3 = { .names = "Ministral3ForCausalLM",
                                        .types = "ministral3",
                                        .arch = "mistral3",
                                        .keys = llama_keys,
                                        .rope = "{\"rope_type\":\"yarn\",\"beta_fast\":32,\"beta_slow\":1,\"factor\":"
                                                "16,\"mscale\":1,\"mscale_all_dim\":1,\"llama_4_scaling_beta\":0.1,"
                                                "\"original_max_position_embeddings\":16384,\"rope_theta\":1e6}",
                                        .eps = 1e-5,
                                        .more = ministral3_more };

static const hn_hf_key arcee_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    TENSORS("mlp_bias", 0, MLP_BIASES),
    WORD("hidden_act", "relu2"),
    KEYS_END,
};
static const hn_hf_class arcee = {
    .names = "ArceeForCausalLM", .types = "arcee", .arch = "arcee", .keys = arcee_keys, .eps = 1e-5
};

static const hn_hf_key smollm3_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    TENSORS("mlp_bias", 0, GLU_BIASES),
    ONLY("use_sliding_window", 0),
    ONLY("no_rope_layer_interval", 4),
    KEYS_END,
};
static const hn_hf_class smollm3 = { .names = "SmolLM3ForCausalLM",
                                     .types = "smollm3",
                                     .arch = "smollm3",
                                     .keys = smollm3_keys,
                                     .idle = "max_window_layers sliding_window",
                                     .tied = true,
                                     .base = 2e6 };

static const hn_hf_key granite_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    TENSORS("mlp_bias", 0, GLU_BIASES),
    F32_OR("attention_multiplier", "attention.scale", 1),
    F32_OR("embedding_multiplier", "embedding_scale", 1),
    F32_OR("residual_multiplier", "residual_scale", 1),
    F32_OR("logits_scaling", "logit_scale", 1),
    KEYS_END,
};
static const hn_hf_class granite = {
    .names = "GraniteForCausalLM", .types = "granite", .arch = "granite", .keys = granite_keys
};

static const hn_hf_key ernie_keys[] = {
    TENSORS("use_bias", 0, ATTN_BIASES "|" GLU_BIASES),
    ONLY("compression_ratio", 1),
    KEYS_END,
};
static const hn_hf_class ernie = { .names = "Ernie4_5ForCausalLM|Ernie4_5_ForCausalLM",
                                   .types = "ernie4_5",
                                   .arch = "ernie4_5",
                                   .keys = ernie_keys,
                                   .idle = "ignored_index use_flash_attention",
                                   .tied = true,
                                   .base = 5e5,
                                   .eps = 1e-5 };

/* MiniCPM: granite by other members; scores are divided by the root of a head's width. */
static const hn_hf_key minicpm_keys[] = {
    F32_OR("scale_emb", "embedding_scale", 1),
    MORE("scale_depth", "residual_scale"),
    MORE("dim_model_base", "logit_scale"),
    ONLY("attention_bias", 0),
    ONLY("num_experts", 0),
    KEYS_END,
};
static hone_status minicpm_more(hn_hf *f, hone_error *err)
{
    double depth, base;
    int64_t n_layer, n_embd;
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    TRY(hn_hf_whole(f, "hidden_size", 0, &n_embd, err));
    TRY(hn_hf_number(f, "scale_depth", 1, &depth, NULL, err));
    TRY(hn_hf_number(f, "dim_model_base", 1, &base, NULL, err));
    if (n_layer < 1 || !(base > 0))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: dim_model_base = %g, expected more than 0", f->path, base);
    TRY(hn_hf_put_f32(f, "residual_scale", depth / sqrt((double)n_layer), err));
    return hn_hf_put_f32(f, "logit_scale", (double)n_embd / base, err);
}
static const hn_hf_class minicpm = { .names = "MiniCPMForCausalLM",
                                     .types = "minicpm",
                                     .arch = "granite",
                                     .keys = minicpm_keys,
                                     .said = "dim_model_base",
                                     .idle = "mup_denominator",
                                     .tied = true,
                                     .fits = hn_hf_never,
                                     .more = minicpm_more };

/* InternLM2: q, k and v of each head of keys behind one another. */
static hone_status internlm2_qkv(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const uint64_t d = (uint64_t)at->plan->d_k, n_kv = (uint64_t)at->plan->n_head_kv, w = at->ne[0],
                   group = (uint64_t)at->plan->n_head / n_kv, block = (group + 2) * d * w;
    const bool k = strstr(at->name, "attn_k."), v = strstr(at->name, "attn_v.");
    hn_hf_view view = { .first = v   ? (group + 1) * d * w
                                 : k ? group * d * w
                                     : 0,
                        .n = { w, 2, d / 2, k || v ? 1 : group, n_kv },
                        .stride = { 1, d / 2 * w, w, d * w, block } };
    if (v) view.n[1] = d, view.stride[1] = w, view.n[2] = 1, view.stride[2] = 0; /* nothing of it turns */
    return hn_hf_make(f, at, 2, (uint64_t[]){ w, n_kv * (group + 2) * d }, &view, err);
}
static const hn_hf_name internlm2_names[] = {
    { "token_embd", "tok_embeddings", NULL },
    { "output", "/output", NULL },
    { "attn_norm", "attention_norm", NULL },
    { "ffn_norm", "ffn_norm", NULL },
    { "attn_qkv", "-", NULL },
    { "attn_q", "attention.wqkv", internlm2_qkv },
    { "attn_k", "attention.wqkv", internlm2_qkv },
    { "attn_v", "attention.wqkv", internlm2_qkv },
    { "attn_output", "attention.wo", NULL },
    { "ffn_gate", "feed_forward.w1", NULL },
    { "ffn_up", "feed_forward.w3", NULL },
    { "ffn_down", "feed_forward.w2", NULL },
    { NULL, NULL, NULL },
};
static const hn_hf_key internlm2_keys[] = { ONLY("bias", 0), KEYS_END };
static const hn_hf_class internlm2 = { .names = "InternLM2ForCausalLM",
                                       .types = "internlm2",
                                       .arch = "llama",
                                       .keys = internlm2_keys,
                                       .tensors = internlm2_names,
                                       .fits = hn_hf_never };

/* EXAONE 3 as it is published; transformers' own class is Llama's. */
static const hn_hf_key exaone_keys[] = {
    U32("num_layers|num_hidden_layers", "block_count"),
    F32_OR("layer_norm_epsilon|rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    WORD("activation_function|hidden_act", "silu|swish"),
    KEYS_END,
};
static const hn_hf_name exaone_names[] = {
    { "token_embd", "wte", NULL },
    { "output_norm", "ln_f", NULL },
    { "attn_norm", "ln_1", NULL },
    { "attn_q", "attn.attention.q_proj", NULL },
    { "attn_k", "attn.attention.k_proj", NULL },
    { "attn_v", "attn.attention.v_proj", NULL },
    { "attn_output", "attn.attention.out_proj", NULL },
    { "ffn_norm", "ln_2", NULL },
    { "ffn_gate", "mlp.c_fc_0", NULL },
    { "ffn_up", "mlp.c_fc_1", NULL },
    { "ffn_down", "mlp.c_proj", NULL },
    { NULL, NULL, NULL },
};
static const hn_hf_class exaone = { .names = "ExaoneForCausalLM",
                                    .types = "exaone",
                                    .arch = "exaone",
                                    .root = "transformer.",
                                    .layers = "h",
                                    .keys = exaone_keys,
                                    .tensors = exaone_names,
                                    .idle = "embed_dropout" };

/* ---- layers that lack a half ----------------------------------------------------------------------------------- */

/* DeciLM's configs say of each layer how many heads share keys, and by how much its feed-forward part is wider. */
static hone_status read_block(hn_hf *f, const json_t *block, int64_t n_head, int64_t n_embd, int32_t out[3],
                              hone_error *err)
{
    static const char *const attention_none[] = { "window_length", "sparsify", "num_sink_tokens" },
                             *const ffn_none[] = { "sparsify", "replace_with_linear" };
    const json_t *attention = json_object_get(block, "attention"), *ffn = json_object_get(block, "ffn"),
                 *group = json_object_get(attention, "n_heads_in_group"), *mult = json_object_get(ffn, "ffn_mult");
    for (size_t i = 0; i < 5; i++) {
        const char *name = i < 3 ? attention_none[i] : ffn_none[i - 3];
        const json_t *v = json_object_get(i < 3 ? attention : ffn, name);
        if (v && !json_is_null(v) && !json_is_false(v) && !(json_is_integer(v) && !json_integer_value(v)))
            return hn_hf_refuse(f, name, v, "none", err);
    }
    const int64_t n = json_is_null(group) || !group ? 0 : json_is_integer(group) ? json_integer_value(group) : -1;
    if (n < 0 || n > n_head || (n && n_head % n))
        return hn_hf_refuse(f, "n_heads_in_group", group, "a part of num_attention_heads, or null", err);
    const double wide = json_number_value(mult);
    if ((mult && !json_is_null(mult) && !json_is_number(mult)) || !(wide >= 0 && wide < 1024))
        return hn_hf_refuse(f, "ffn_mult", mult, "a number, or null", err);
    const int64_t width = (int64_t)(2 * wide * (double)n_embd / 3);
    out[0] = n || json_is_true(json_object_get(attention, "replace_with_linear")) ? (int32_t)n_head : 0;
    out[1] = n ? (int32_t)(n_head / n) : 0;
    out[2] = (int32_t)((width + 255) / 256 * 256);
    return HONE_OK;
}

static hone_status deci_more(hn_hf *f, hone_error *err)
{
    static const char *const keys[] = { "attention.head_count", "attention.head_count_kv", "feed_forward_length" };
    const json_t *blocks = hn_hf_get(f, "block_configs");
    int64_t n_layer, n_head, n_embd;
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    TRY(hn_hf_whole(f, "num_attention_heads", 0, &n_head, err));
    TRY(hn_hf_whole(f, "hidden_size", 0, &n_embd, err));
    if (n_layer < 1 || n_layer > HN_MAX_LAYER || n_head < 1 || n_head > HN_MAX_HEAD || n_embd > HN_MAX_EMBD ||
        json_array_size(blocks) != (size_t)n_layer)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: block_configs has %zu layers, expected num_hidden_layers = %lld",
                       f->path, json_array_size(blocks), (long long)n_layer);
    int32_t *list = hn_arena_alloc(f->arena, (size_t)n_layer * 3 * sizeof *list);
    if (!list) return HN_FAIL(err, HONE_E_NOMEM, "%s: tables of layers", f->path);
    for (int64_t il = 0; il < n_layer; il++) {
        int32_t of[3];
        TRY(read_block(f, json_array_get(blocks, (size_t)il), n_head, n_embd, of, err));
        for (int i = 0; i < 3; i++) list[i * n_layer + il] = of[i];
    }
    for (int i = 0; i < 3; i++) TRY(hn_hf_put_layers(f, keys[i], HONE_KV_I32, list + i * n_layer, n_layer, err));
    TRY(hn_hf_put_u32(f, "attention.key_length", (uint32_t)(n_embd / n_head), err));
    return hn_hf_put_u32(f, "attention.value_length", (uint32_t)(n_embd / n_head), err);
}
static const hn_hf_key deci_keys[] = {
    MORE("num_attention_heads", "attention.head_count"),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    MORE("intermediate_size", "feed_forward_length"),
    MORE("head_dim", "attention.key_length|attention.value_length"),
    ONLY("attention_bias", 0),
    ONLY("mlp_bias", 0),
    KEYS_END,
};
/* In place of attention, a matrix of another name. */
static hone_status deci_output(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    hn_hf_at as = *at;
    char name[320];
    const char *p = strstr(at->hf, "o_proj");
    if (p && at->plan && at->plan->mixer == HN_MIXER_LINEAR) {
        snprintf(name, sizeof name, "%.*slinear_attn%s", (int)(p - at->hf), at->hf, p + strlen("o_proj"));
        as.hf = name;
    }
    return hn_hf_plain(f, &as, err);
}
static const hn_hf_name deci_names[] = { { "attn_output", "self_attn.o_proj", deci_output }, { NULL, NULL, NULL } };
static const hn_hf_class deci = { .names = "DeciLMForCausalLM",
                                  .types = "nemotron-nas|deci",
                                  .arch = "deci",
                                  .keys = deci_keys,
                                  .tensors = deci_names,
                                  .said = "block_configs",
                                  .eps = 1e-5,
                                  .fits = hn_hf_never,
                                  .more = deci_more };

/* ---- as qwen ------------------------------------------------------------------------------------------------- */

/* where models that see have no text_config */
#define VISION_IDLE \
    "vision_config vision_start_token_id vision_end_token_id vision_token_id image_token_id video_token_id"
static const hn_hf_key qwen2_keys[] = { ONLY("use_mrope", 0), ONLY("attention_bias", 1), KEYS_END };
static const hn_hf_class qwen2 = { .names = "Qwen2ForCausalLM|Qwen2VLForConditionalGeneration|"
                                            "Qwen2_5_VLForConditionalGeneration",
                                   .types = "qwen2|qwen2_vl|qwen2_vl_text|qwen2_5_vl|qwen2_5_vl_text",
                                   .arch = "qwen2",
                                   .keys = qwen2_keys,
                                   .idle = "dual_chunk_attention_config seq_length " VISION_IDLE,
                                   .usual = "max_position_embeddings 32768",
                                   .more = qwen2_more };
static const hn_hf_key qwen3_keys[] = { ONLY("attention_bias", 0), KEYS_END };
static const hn_hf_class qwen3 = { .names = "Qwen3ForCausalLM|Qwen3VLForConditionalGeneration",
                                   .types = "qwen3|qwen3_vl|qwen3_vl_text",
                                   .arch = "qwen3",
                                   .keys = qwen3_keys,
                                   .idle = VISION_IDLE,
                                   .usual = "max_position_embeddings 32768|head_dim 128",
                                   .more = qwen2_more };

static const hn_hf_key seed_keys[] = {
    TENSORS("attention_bias", 1, QKV_BIASES),
    TENSORS("attention_out_bias", 0, "attn_output.bias"),
    TENSORS("mlp_bias", 0, GLU_BIASES),
    KEYS_END,
};
static const hn_hf_class seed = {
    .names = "SeedOssForCausalLM", .types = "seed_oss", .arch = "seed_oss", .keys = seed_keys
};

static const hn_hf_key hunyuan_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    ONLY("use_qk_norm", 1),
    ONLY("use_cla", 0),
    ONLY("use_rotary_pos_emb", 1),
    ONLY("mlp_bias", 0),
    WORD("norm_type", "rms"),
    KEYS_END,
};
static const hn_hf_class hunyuan = { .names = "HunYuanDenseV1ForCausalLM",
                                     .types = "hunyuan_v1_dense",
                                     .arch = "hunyuan-dense",
                                     .keys = hunyuan_keys,
                                     .eps = 1e-5,
                                     .idle = HUNYUAN_IDLE };

static const hn_hf_name phi3_names[] = {
    { "attn_qkv", "self_attn.qkv_proj", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { NULL, NULL, NULL },
};
static const hn_hf_key phi3_keys[] = {
    ONLY("attention_bias", 0), ONLY("mlp_bias", 0),           ONLY("lm_head_bias", 0),
    ONLY("full_attn_mod", 1),  ONLY("interpolate_factor", 1), KEYS_END,
};
static const hn_hf_class phi3 = { .names = "Phi3ForCausalLM",
                                  .types = "phi3",
                                  .arch = "phi3",
                                  .keys = phi3_keys,
                                  .tensors = phi3_names,
                                  .eps = 1e-5,
                                  .more = phi3_more };

static const hn_hf_key glm4_keys[] = { TENSORS("attention_bias", 0, QKV_BIASES), KEYS_END };
static const hn_hf_class glm4 = {
    .names = "Glm4ForCausalLM", .types = "glm4", .arch = "glm4", .keys = glm4_keys, .part = 0.5, .eps = 1.5625e-7
};

/* GLM-4.1V and 4.6V-Flash: in text all parts of a position are equal. */
static const hn_hf_key glm4v_keys[] = {
    ONLY("attention_bias", 1),
    F32_OR("rms_norm_eps", "attention.layer_norm_rms_epsilon", 1e-5),
    KEYS_END,
};
static const hn_hf_class glm4v = { .names = "Glm4vForConditionalGeneration",
                                   .types = "glm4v_text|glm4v",
                                   .arch = "glm4",
                                   .keys = glm4v_keys,
                                   .idle = VISION_IDLE,
                                   .part = 0.5 };

static const hn_hf_class glm = {
    .names = "GlmForCausalLM", .types = "glm", .arch = "chatglm", .keys = glm4_keys, .part = 0.5, .eps = 1.5625e-7
};

/* ---- gemma --------------------------------------------------------------------------------------------------- */

#define GEMMA_ACT WORD("hidden_activation|hidden_act", GELU)
static const hn_hf_key gemma_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    GEMMA_ACT,
    { "hidden_act", GELU, HN_HF_WORD, HN_HF_OPTIONAL, 0 },
    ONLY("use_bidirectional_attention", 0),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 256),
    KEYS_END,
};
static const hn_hf_class gemma = {
    .names = "GemmaForCausalLM", .types = "gemma", .arch = "gemma", .keys = gemma_keys, .tied = true
};

static const hn_hf_key gemma2_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    GEMMA_ACT,
    { "hidden_act", GELU, HN_HF_WORD, HN_HF_OPTIONAL, 0 },
    ONLY("use_bidirectional_attention", 0),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 256),
    U32_OR("sliding_window", "attention.sliding_window", 4096),
    KEYS_END,
};
/* null: none, and the key must say so. */
static hone_status put_cap(hn_hf *f, const char *name, double absent, hone_error *err)
{
    double x;
    hone_status st;
    TRY(hn_hf_number(f, name, json_object_get(f->config, name) ? 0 : absent, &x, NULL, err));
    return hn_hf_put_f32(f, name, x, err);
}
static hone_status gemma2_more(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(put_cap(f, "attn_logit_softcapping", 50, err));
    return put_cap(f, "final_logit_softcapping", 30, err);
}
static const hn_hf_class gemma2 = { .names = "Gemma2ForCausalLM",
                                    .windows = true,
                                    .types = "gemma2",
                                    .arch = "gemma2",
                                    .keys = gemma2_keys,
                                    .idle = "sliding_window_size",
                                    .tied = true,
                                    .more = gemma2_more };

/* Configs of several inputs leave out of the text's what the class has. */
static const hn_hf_key gemma3_keys[] = {
    ONLY("attention_bias", 0),
    GEMMA_ACT,
    { "hidden_act", GELU, HN_HF_WORD, HN_HF_OPTIONAL, 0 },
    ONLY("use_bidirectional_attention", 0),
    ONLY("sliding_window_pattern|_sliding_window_pattern", 6),
    U32_OR("max_position_embeddings", "context_length", 131072),
    U32_OR("num_attention_heads", "attention.head_count", 8),
    U32_OR("num_key_value_heads", "attention.head_count_kv", 4),
    U32_OR("head_dim", "attention.key_length|attention.value_length", 256),
    U32_OR("vocab_size", "vocab_size", 262208),
    U32_OR("sliding_window", "attention.sliding_window", 4096),
    F32_MAY("final_logit_softcapping", "final_logit_softcapping"),
    KEYS_END,
};
static const hn_hf_class gemma3 = { .names = "Gemma3ForCausalLM",
                                    .windows = true,
                                    .types = "gemma3_text",
                                    .arch = "gemma3",
                                    .keys = gemma3_keys,
                                    .tied = true,
                                    .base = 1e6 };

/* ---- norms after the halves ------------------------------------------------------------------------------------ */

static const hn_hf_key olmo2_keys[] = { TENSORS("attention_bias", 0, ATTN_BIASES), KEYS_END };
static const hn_hf_class olmo2 = {
    .names = "Olmo2ForCausalLM", .types = "olmo2", .arch = "olmo2", .keys = olmo2_keys, .eps = 1e-5
};
static const hn_hf_key olmo3_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    U32_OR("sliding_window", "attention.sliding_window", 4096),
    KEYS_END,
};
static const hn_hf_class olmo3 = { .names = "Olmo3ForCausalLM",
                                   .windows = true,
                                   .types = "olmo3",
                                   .arch = "olmo2",
                                   .keys = olmo3_keys,
                                   .base = 5e5,
                                   .eps = 1e-5 };

static const hn_hf_key exaone4_keys[] = { U32_MAY("sliding_window", "attention.sliding_window"), KEYS_END };
/* Older configs have a period or letters (LLLG) for it: transformers makes a list of them, hone asks for the list. */
static hone_status exaone4_more(hn_hf *f, hone_error *err)
{
    const hn_switches *is = hn_family_find(f->of->arch, strlen(f->of->arch))->is;
    const json_t *pattern = hn_hf_get(f, "sliding_window_pattern"), *kinds = hn_hf_get(f, "layer_types");
    const json_t *window = json_object_get(f->config, "sliding_window");
    int64_t n_layer;
    hone_status st;
    bool none = !pattern || (json_is_integer(pattern) && json_integer_value(pattern) == 0);
    if (!none && !kinds && hn_hf_get(f, "sliding_window"))
        return hn_hf_refuse(f, "sliding_window_pattern", pattern, "layer_types beside it, with a word for each layer",
                            err);
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n_layer, err));
    /* where there is a window, layers that see everything do not turn; not said it is 4096 */
    if (n_layer == is->window_layers || (window && json_is_null(window))) return HONE_OK;
    return hn_hf_refuse(f, "sliding_window", window, "null: only models of 64 layers have windows here", err);
}
static const hn_hf_class exaone4 = { .names = "Exaone4ForCausalLM",
                                     .windows = true,
                                     .types = "exaone4",
                                     .arch = "exaone4",
                                     .keys = exaone4_keys,
                                     .eps = 1e-5,
                                     .more = exaone4_more };

/* ---- LayerNorm --------------------------------------------------------------------------------------------------- */

static const hn_hf_key cohere_keys[] = {
    U32("model_max_length|max_position_embeddings", "context_length"), /* the larger, of those that have both */
    LAYER_NORM_EPS("layer_norm_eps"),
    F32_OR("logit_scale", "logit_scale", 0.0625),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    TENSORS("use_qk_norm", 0, "attn_q_norm.weight|attn_k_norm.weight"),
    KEYS_END,
};
static const hn_hf_class cohere = {
    .names = "CohereForCausalLM", .types = "cohere", .arch = "command-r", .keys = cohere_keys, .tied = true, .base = 5e5
};

static const hn_hf_key cohere2_keys[] = {
    LAYER_NORM_EPS("layer_norm_eps"),
    F32_OR("logit_scale", "logit_scale", 0.0625),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    U32_OR("sliding_window", "attention.sliding_window", 4096),
    ONLY("sliding_window_pattern|_sliding_window_pattern", 4),
    ONLY("rotary_pct", 1),
    ONLY("use_gated_activation", 1),
    ONLY("use_parallel_block", 1),
    ONLY("use_qk_norm", 0),
    WORD("position_embedding_type", "rope_gptj"),
    WORD("order_of_interleaved_layers", "local_attn_first"),
    KEYS_END,
};
static const hn_hf_class cohere2 = { .names = "Cohere2ForCausalLM",
                                     .windows = true,
                                     .types = "cohere2",
                                     .arch = "cohere2",
                                     .keys = cohere2_keys,
                                     .idle = "use_embedding_sharing use_parallel_embedding layer_switch",
                                     .tied = true };

static const hn_hf_key starcoder2_keys[] = {
    LAYER_NORM_EPS("norm_epsilon"),  WORD("hidden_act", GELU),    TENSORS("use_bias", 1, ATTN_BIASES "|" MLP_BIASES),
    WORD("norm_type", "layer_norm"), WORD("mlp_type", "default"), KEYS_END,
};
static const hn_hf_name starcoder2_names[] = { { "ffn_up", "mlp.c_fc", NULL },
                                               { "ffn_down", "mlp.c_proj", NULL },
                                               { NULL, NULL, NULL } };
static const hn_hf_class starcoder2 = { .names = "Starcoder2ForCausalLM",
                                        .types = "starcoder2",
                                        .arch = "starcoder2",
                                        .keys = starcoder2_keys,
                                        .tensors = starcoder2_names,
                                        .idle = "attention_softmax_in_fp32 scale_attention_softmax_in_fp32 "
                                                "scale_attn_weights layer_norm_epsilon activation_function",
                                        .tied = true,
                                        .more = window_more };

static const hn_hf_key nemotron_keys[] = {
    LAYER_NORM_EPS("norm_eps"),
    WORD("hidden_act", "relu2"),
    TENSORS("attention_bias", 0, ATTN_BIASES),
    TENSORS("mlp_bias", 0, MLP_BIASES),
    KEYS_END,
};
static const hn_hf_class nemotron = {
    .names = "NemotronForCausalLM", .types = "nemotron", .arch = "nemotron", .keys = nemotron_keys, .part = 0.5
};

/* Norms of heads: one of each. */
static hone_status head_norms(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const char *star = strchr(at->hf, '*');
    hone_status st;
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    for (uint64_t k = 0; star && k < at->ne[1]; k++) {
        char name[320];
        const hn_ckpt_tensor *t;
        snprintf(name, sizeof name, "%.*s%llu%s", (int)(star - at->hf), at->hf, (unsigned long long)k, star + 1);
        TRY(hn_hf_need(&t, f, name, 1, at->ne, err));
        hn_hf_view v = hn_hf_all(t);
        TRY(hn_hf_add(f, &v, err));
    }
    return HONE_OK;
}

static const hn_hf_key stablelm_keys[] = {
    LAYER_NORM_EPS("layer_norm_eps|norm_eps"), BOOL_OR("use_parallel_residual", "use_parallel_residual", 0),
    TENSORS("use_qkv_bias", 0, QKV_BIASES),    TENSORS("qk_layernorm", 0, "attn_q_norm.weight|attn_k_norm.weight"),
    ONLY("rotary_scaling_factor", 1),          KEYS_END,
};
static const hn_hf_name stablelm_names[] = {
    { "attn_q_norm", "self_attn.q_layernorm.norms.*", head_norms },
    { "attn_k_norm", "self_attn.k_layernorm.norms.*", head_norms },
    { NULL, NULL, NULL },
};
/* Halves stand side by side where the second has no norm: the family goes by that. */
static hone_status stablelm_more(hn_hf *f, hone_error *err)
{
    bool said;
    hone_status st;
    TRY(hn_hf_truth(f, "use_parallel_residual", false, &said, err));
    bool normed = f->back ? hn_gguf_find_tensor(f->back, "blk.0.ffn_norm.weight") != NULL
                          : hn_hf_find(f, "model.layers.0.post_attention_layernorm.weight") != NULL;
    if (said != normed) return HONE_OK;
    return hn_hf_refuse(f, "use_parallel_residual", hn_hf_get(f, "use_parallel_residual"),
                        normed ? "false, as layers have a second norm" : "true, as layers have one norm", err);
}
static const hn_hf_class stablelm = { .names = "StableLmForCausalLM|StableLMEpochForCausalLM",
                                      .types = "stablelm|stablelm_epoch",
                                      .arch = "stablelm",
                                      .keys = stablelm_keys,
                                      .tensors = stablelm_names,
                                      .part = 0.25,
                                      .more = stablelm_more };

static const hn_hf_key phi_keys[] = {
    LAYER_NORM_EPS("layer_norm_eps"),
    WORD("hidden_act", "gelu_new|" GELU),
    ONLY("qk_layernorm", 0),
    KEYS_END,
};
static const hn_hf_name phi_names[] = { { "output_norm", "final_layernorm", NULL },
                                        { "attn_output", "self_attn.dense", NULL },
                                        { "ffn_up", "mlp.fc1", NULL },
                                        { "ffn_down", "mlp.fc2", NULL },
                                        { NULL, NULL, NULL } };
/* Matrices of these classes have biases, whatever a config says; Falcon's, of the same families, have none. */
static bool has_biases(const hn_gguf *g) { return hn_gguf_find_tensor(g, "blk.0.ffn_up.bias"); }
static const hn_hf_class phi = { .names = "PhiForCausalLM",
                                 .types = "phi",
                                 .arch = "phi2",
                                 .keys = phi_keys,
                                 .tensors = phi_names,
                                 .part = 0.5,
                                 .fits = has_biases };

/* Head by head q, k, v become all of q, of k, of v. */
static hone_status by_heads(hn_hf *f, const hn_hf_at *at, hone_error *err)
{
    const hn_ckpt_tensor *t;
    uint64_t w = at->n_dim > 1 ? at->ne[0] : 1, d = (uint64_t)at->plan->d_k, n_head = at->ne[at->n_dim - 1] / (3 * d);
    hone_status st;
    TRY(hn_hf_need(&t, f, at->hf, at->n_dim, at->ne, err));
    TRY(hn_hf_begin(f, at->name, at->n_dim, at->ne, err));
    return hn_hf_add(f, &(hn_hf_view){ .from = t, .n = { d * w, n_head, 3 }, .stride = { 1, 3 * d * w, d * w } }, err);
}

static const hn_hf_key gptneox_keys[] = {
    LAYER_NORM_EPS("layer_norm_eps"),
    BOOL_OR("use_parallel_residual", "use_parallel_residual", 1),
    TENSORS("attention_bias", 1, "attn_qkv.bias|attn_output.bias"),
    { "hidden_act", GELU, HN_HF_WORD, HN_HF_USUALLY, 0 }, /* not said it is gelu */
    KEYS_END,
};
static const hn_hf_name gptneox_names[] = {
    { "token_embd", "embed_in", NULL },
    { "output_norm", "final_layer_norm", NULL },
    { "output", "/embed_out", NULL },
    { "attn_qkv", "attention.query_key_value", by_heads },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output", "attention.dense", NULL },
    { "ffn_up", "mlp.dense_h_to_4h", NULL },
    { "ffn_down", "mlp.dense_4h_to_h", NULL },
    { NULL, NULL, NULL },
};
static const hn_hf_class gptneox = { .names = "GPTNeoXForCausalLM",
                                     .types = "gpt_neox",
                                     .arch = "gptneox",
                                     .root = "gpt_neox.",
                                     .keys = gptneox_keys,
                                     .tensors = gptneox_names,
                                     .part = 0.25,
                                     .fits = has_biases,
                                     .idle = "is_staged num_key_value_heads" };

static const hn_hf_key gpt2_keys[] = {
    LAYER_NORM_EPS("layer_norm_epsilon"),
    U32("n_positions|max_position_embeddings", "context_length"),
    U32("n_embd|hidden_size", "embedding_length"),
    U32("n_layer|num_hidden_layers", "block_count"),
    U32("n_head|num_attention_heads", "attention.head_count"),
    MORE("n_inner", "feed_forward_length"),
    WORD("activation_function", GELU),
    ONLY("scale_attn_weights", 1),
    ONLY("scale_attn_by_inverse_layer_idx", 0),
    KEYS_END,
};
/* Without a width of its own the MLP has four times the stream's. */
static hone_status gpt2_more(hn_hf *f, hone_error *err)
{
    int64_t n_ff, n_embd;
    hone_status st;
    TRY(hn_hf_whole(f, "n_embd|hidden_size", 0, &n_embd, err));
    TRY(hn_hf_whole(f, "n_inner", 4 * n_embd, &n_ff, err));
    return hn_hf_put_u32(f, "feed_forward_length", (uint32_t)n_ff, err);
}
static const hn_hf_name gpt2_names[] = {
    { "token_embd", "wte", NULL },
    { "position_embd", "wpe", NULL },
    { "output_norm", "ln_f", NULL },
    { "attn_norm", "ln_1", NULL },
    { "ffn_norm", "ln_2", NULL },
    { "attn_qkv", "attn.c_attn", hn_hf_transposed },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output", "attn.c_proj", hn_hf_transposed },
    { "ffn_up", "mlp.c_fc", hn_hf_transposed },
    { "ffn_down", "mlp.c_proj", hn_hf_transposed },
    { NULL, NULL, NULL },
};
static const hn_hf_class gpt2 = { .names = "GPT2LMHeadModel",
                                  .types = "gpt2",
                                  .arch = "gpt2",
                                  .root = "transformer.",
                                  .layers = "h",
                                  .keys = gpt2_keys,
                                  .tensors = gpt2_names,
                                  .idle = "n_ctx reorder_and_upcast_attn summary_activation summary_first_dropout "
                                          "summary_proj_to_labels summary_type summary_use_proj",
                                  .tied = true,
                                  .more = gpt2_more };

/* StarCoder: one head of keys for all. */
static const hn_hf_key bigcode_keys[] = {
    LAYER_NORM_EPS("layer_norm_epsilon"),
    U32("n_positions|max_position_embeddings", "context_length"),
    U32("n_embd|hidden_size", "embedding_length"),
    U32("n_layer|num_hidden_layers", "block_count"),
    U32("n_head|num_attention_heads", "attention.head_count"),
    MORE("n_inner", "feed_forward_length"),
    WORD("activation_function", GELU),
    MORE("num_key_value_heads", "attention.head_count_kv"),
    ONLY("multi_query", 1),
    ONLY("scale_attn_weights", 1),
    KEYS_END,
};
static hone_status bigcode_more(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_put_u32(f, "attention.head_count_kv", 1, err));
    return gpt2_more(f, err);
}
static const hn_hf_name bigcode_names[] = {
    { "token_embd", "wte", NULL },
    { "position_embd", "wpe", NULL },
    { "output_norm", "ln_f", NULL },
    { "attn_norm", "ln_1", NULL },
    { "ffn_norm", "ln_2", NULL },
    { "attn_qkv", "attn.c_attn", NULL },
    { "attn_q", "-", NULL },
    { "attn_k", "-", NULL },
    { "attn_v", "-", NULL },
    { "attn_output", "attn.c_proj", NULL },
    { "ffn_up", "mlp.c_fc", NULL },
    { "ffn_down", "mlp.c_proj", NULL },
    { NULL, NULL, NULL },
};
static const hn_hf_class bigcode = { .names = "GPTBigCodeForCausalLM",
                                     .types = "gpt_bigcode",
                                     .arch = "starcoder",
                                     .root = "transformer.",
                                     .layers = "h",
                                     .keys = bigcode_keys,
                                     .tensors = bigcode_names,
                                     .idle =
                                         "attention_softmax_in_fp32 scale_attention_softmax_in_fp32 inference_runner "
                                         "max_batch_size max_sequence_length pad_key_length pre_allocate_kv_cache "
                                         "validate_runner_input summary_activation summary_first_dropout "
                                         "summary_proj_to_labels summary_type summary_use_proj",
                                     .tied = true,
                                     .more = bigcode_more };

/* ---- apertus ----------------------------------------------------------------------------------------------- */

/* The one value of a tensor. */
static hone_status one_value(const hn_hf *f, const char *name, float *v, hone_error *err)
{
    uint8_t bytes[8];
    const hn_ckpt_tensor *t = hn_ckpt_find(f->c, name, strlen(name));
    const hn_type_info *type = t && t->raw == HN_RAW_NOT ? hn_type_get((uint32_t)t->type) : NULL;
    if (!t)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: has no tensor %s, which a model of class %s needs", f->c->path, name,
                       f->of->names);
    if (!type || type->block_elems != 1 || t->n_bytes != type->block_bytes || t->n_bytes > sizeof bytes)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s is of shape %s, expected one number", f->c->path, name, HN_SHAPE(t));
    hone_status st = hn_source_read(&f->c->part[t->part], t->off, bytes, t->n_bytes, err);
    if (st == HONE_OK) type->dequantize(v, bytes, 1);
    return st;
}

/* What layers have learnt of their map: tensors there, keys below no family's name here. */
static hone_status apertus_more(hn_hf *f, hone_error *err)
{
    static const char *const names[] = { "alpha_p", "alpha_n", "beta", "eps" };
    char name[96];
    float v[HN_MAX_LAYER];
    int64_t n;
    hone_status st;
    TRY(hn_hf_whole(f, "num_hidden_layers", 0, &n, err));
    for (size_t i = 0; n <= HN_MAX_LAYER && i < sizeof names / sizeof *names; i++) {
        for (int64_t il = 0; il < n; il++) {
            snprintf(name, sizeof name, "model.layers.%lld.mlp.act_fn.%s", (long long)il, names[i]);
            TRY(one_value(f, name, &v[il], err));
        }
        snprintf(name, sizeof name, "xielu.%s", names[i]);
        TRY(hn_gguf_put_array(f->w, name, HONE_KV_F32, v, (uint64_t)n, err));
    }
    return HONE_OK;
}
static const hn_hf_key apertus_keys[] = {
    TENSORS("attention_bias", 0, ATTN_BIASES),
    ONLY("mlp_bias", 0),
    ONLY("qk_norm", 1),
    ONLY("post_norm", 0),
    WORD("hidden_act", "xielu"),
    KEYS_END,
};
static const hn_hf_class apertus = {
    .names = "ApertusForCausalLM",
    .types = "apertus",
    .arch = "apertus",
    .keys = apertus_keys,
    .left = "*.act_fn.alpha_p *.act_fn.alpha_n *.act_fn.beta *.act_fn.eps",
    .rope = "{\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
            "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}",
    .usual = "max_position_embeddings 65536",
    .base = 12e6,
    .eps = 1e-5,
    .fits = hn_hf_never, /* those tensors are not made again */
    .more = apertus_more,
};

const hn_hf_class *const hn_hf_dense[] = {
    &llama,    &mistral, &ministral3, &arcee,      &smollm3, &granite, &ernie,  &qwen2,   &qwen3,
    &seed,     &hunyuan, &phi3,       &glm4,       &gemma,   &gemma2,  &gemma3, &olmo2,   &olmo3,
    &exaone4,  &cohere,  &cohere2,    &starcoder2, &gptneox, &gpt2,    &glm,    &phi,     &nemotron,
    &stablelm, &glm4v,   &minicpm,    &internlm2,  &exaone,  &bigcode, &deci,   &apertus, NULL,
};
