/* hf_latent: classes of transformers whose keys and values are compressed: DeepSeek V2 and V3, GLM-4.7-Flash, Kimi K2,
 * Mistral 4, DeepSeek V3.2, GLM 5. Refuses to know how pieces are walked (hf_make.c). */
#include "forge/hf_rows.h"

static const hn_hf_name deepseek_names[] = {
    LATENT_NAMES,
    { "ffn_gate_inp", "mlp.gate", NULL },
    { "exp_probs_b.bias", "mlp.gate.e_score_correction_bias", hn_hf_flat },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_experts"),
    NAMES_END,
};
/* By class: what a config that does not say it means. */
static const hn_hf_key deepseek2_keys[] = { LATENT_ROWS, ROUTED(1, 0), ONLY("ep_size", 1), KEYS_END };
static const hn_hf_key deepseek3_keys[] = { LATENT_ROWS, ROUTED(2.5, 1), ONLY("ep_size", 1), KEYS_END };
static const hn_hf_key glm4lite_keys[] = { LATENT_ROWS, ROUTED(1.8, 1), ONLY("ep_size", 1), KEYS_END };

hone_status hn_hf_put_latent(hn_hf *f, hone_error *err)
{
    int64_t rank_q, rank_kv, nope, rope;
    hone_status st;
    TRY(hn_hf_whole(f, "q_lora_rank", 0, &rank_q, err));
    TRY(hn_hf_whole(f, "kv_lora_rank", 0, &rank_kv, err));
    TRY(hn_hf_whole(f, "qk_nope_head_dim", 0, &nope, err));
    TRY(hn_hf_whole(f, "qk_rope_head_dim", 0, &rope, err));
    if (rank_q) TRY(hn_hf_put_u32(f, "attention.q_lora_rank", (uint32_t)rank_q, err));
    TRY(hn_hf_put_u32(f, "attention.head_count_kv", 1, err));
    TRY(hn_hf_put_u32(f, "attention.key_length", (uint32_t)(rank_kv + rope), err));
    TRY(hn_hf_put_u32(f, "attention.key_length_mla", (uint32_t)(nope + rope), err));
    TRY(hn_hf_put_u32(f, "rope.dimension_count", (uint32_t)rope, err));
    f->own_width = true;
    return HONE_OK;
}

static hone_status deepseek2_more(hn_hf *f, hone_error *err)
{
    hone_status st;
    TRY(hn_hf_put_latent(f, err));
    return hn_hf_put_routed(f, "softmax", err);
}
static hone_status glm4lite_more(hn_hf *f, hone_error *err)
{
    const json_t *pairs = hn_hf_get(f, "rope_interleave");
    hone_status st;
    if (pairs && !json_is_true(pairs)) return hn_hf_refuse(f, "rope_interleave", pairs, "true", err);
    TRY(hn_hf_put_latent(f, err));
    return hn_hf_put_routed(f, "sigmoid", err);
}
/* Here transformers takes 8 groups and 4 of them where nothing is said, other programs one: it must be said. */
static hone_status deepseek3_more(hn_hf *f, hone_error *err)
{
    static const char *const needed[] = { "n_group", "topk_group" };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!json_object_get(f->config, needed[i]))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: has no %s, which a model of class DeepseekV3ForCausalLM needs",
                           f->path, needed[i]);
    return glm4lite_more(f, err);
}

/* Without experts. */
static const hn_hf_key youtu_keys[] = { LATENT_ROWS, MORE("rope_interleave", NULL), KEYS_END };
static hone_status youtu_more(hn_hf *f, hone_error *err)
{
    const json_t *pairs = hn_hf_get(f, "rope_interleave");
    if (pairs && !json_is_true(pairs)) return hn_hf_refuse(f, "rope_interleave", pairs, "true", err);
    return hn_hf_put_latent(f, err);
}

#define DEEPSEEK(class_names, class_types, rows, numbers, ...)                                                    \
    {                                                                                                             \
        .names = class_names, .types = class_types, .arch = "deepseek2", .keys = rows, .tensors = deepseek_names, \
        .idle = ROUTER_IDLE "embedding_initializer_range", .drafts = HN_HF_BEHIND, .more = numbers, __VA_ARGS__   \
    }
static const hn_hf_class deepseek2 =
    DEEPSEEK("DeepseekV2ForCausalLM", "deepseek_v2", deepseek2_keys, deepseek2_more, .left = NULL);
static const hn_hf_class deepseek3 = DEEPSEEK("DeepseekV3ForCausalLM|KimiK2ForCausalLM", "deepseek_v3|kimi_k2",
                                              deepseek3_keys, deepseek3_more, .left = NULL);
static const hn_hf_class glm4lite = DEEPSEEK("Glm4MoeLiteForCausalLM", "glm4_moe_lite", glm4lite_keys, glm4lite_more,
                                             .eps = 1e-5, .usual = "max_position_embeddings 202752");

static const hn_hf_class youtu = DEEPSEEK("YoutuForCausalLM", "youtu", youtu_keys, youtu_more, .tied = true);

/* ---- Mistral 4 ------------------------------------------------------------------------------------------------- */

/* Queries grow with their positions from the first context on. */
static hone_status mistral4_more(hn_hf *f, hone_error *err)
{
    const json_t *rope = hn_hf_get(f, "rope_parameters|rope_scaling");
    const json_t *beta = json_object_get(rope, "llama_4_scaling_beta");
    const json_t *first = json_object_get(rope, "original_max_position_embeddings");
    int64_t n_ctx;
    hone_status st;
    TRY(hn_hf_whole(f, "max_position_embeddings", 1048576, &n_ctx, err));
    TRY(hn_hf_put_u32(f, "context_length", (uint32_t)n_ctx, err));
    if (json_is_number(beta) && json_number_value(beta) != 0) {
        if (!json_is_integer(first) || json_integer_value(first) < 1 || json_integer_value(first) > INT32_MAX)
            return hn_hf_refuse(f, "llama_4_scaling_beta", beta, "original_max_position_embeddings beside it", err);
        TRY(hn_hf_put_f32(f, "attention.temperature_scale", json_number_value(beta), err));
        TRY(hn_hf_put_u32(f, "attention.temperature_length", (uint32_t)json_integer_value(first), err));
    }
    const json_t *pairs = hn_hf_get(f, "rope_interleave");
    if (pairs && !json_is_true(pairs)) return hn_hf_refuse(f, "rope_interleave", pairs, "true", err);
    TRY(hn_hf_put_latent(f, err));
    return hn_hf_put_routed(f, "softmax", err);
}
static const hn_hf_key mistral4_keys[] = {
    LATENT_ROWS, ROUTED(1, 1), MORE("max_position_embeddings", "context_length"), ONLY("norm_topk_prob", 1), KEYS_END,
};
static const hn_hf_class mistral4 = {
    .names = "Mistral4ForCausalLM",
    .types = "mistral4",
    .arch = "mistral4",
    .rope = "{\"rope_type\":\"yarn\",\"beta_fast\":32,\"beta_slow\":1,\"factor\":128,\"mscale\":1,\"mscale_all_dim\":1,"
            "\"llama_4_scaling_beta\":0.1,"
            "\"original_max_position_embeddings\":8192,\"rope_theta\":1e4,\"partial_rotary_factor\":0.5}",
    .keys = mistral4_keys,
    .tensors = deepseek_names,
    .idle = ROUTER_IDLE,
    .drafts = HN_HF_BEHIND,
    .more = mistral4_more
};

/* ---- DeepSeek V3.2, GLM 5 --------------------------------------------------------------------------------------- */

static const hn_hf_name indexed_names[] = {
    LATENT_NAMES,
    { "ffn_gate_inp", "mlp.gate", NULL },
    { "exp_probs_b.bias", "mlp.gate.e_score_correction_bias", hn_hf_flat },
    MLP_EXPERTS,
    SHARED_NAMES("mlp.shared_experts"),
    { "indexer.attn_q_b", "self_attn.indexer.wq_b", NULL },
    { "indexer.attn_k", "self_attn.indexer.wk", NULL },
    { "indexer.proj", "self_attn.indexer.weights_proj", NULL },
    { "indexer.k_norm", "self_attn.indexer.k_norm", NULL },
    NAMES_END,
};
#define INDEX_ROWS(n_head)                                             \
    U32_OR("index_topk", "attention.indexer.top_k", 2048),             \
        U32_OR("index_head_dim", "attention.indexer.key_length", 128), \
        U32_OR("index_n_heads", "attention.indexer.head_count", n_head)
static const hn_hf_key deepseek32_keys[] = { LATENT_ROWS, ROUTED(2.5, 1), INDEX_ROWS(64), ONLY("ep_size", 1),
                                             KEYS_END };
static const hn_hf_key glm5_keys[] = {
    LATENT_ROWS, ROUTED(2.5, 1), INDEX_ROWS(32), ONLY("ep_size", 1), MORE("indexer_types", "attention.indexer.types"),
    KEYS_END,
};

/* Which layers have an index: words, letters, or each so many-th from a layer on. */
static hone_status glm5_more(hn_hf *f, hone_error *err)
{
    int64_t every, from;
    hn_hf_layers l;
    uint8_t own[HN_MAX_LAYER];
    hone_status st;
    TRY(glm4lite_more(f, err));
    TRY(hn_hf_read_layers(f, "indexer_types|index_topk_pattern", &l, err));
    TRY(hn_hf_whole(f, "index_topk_freq", 1, &every, err));
    TRY(hn_hf_whole(f, "index_skip_topk_offset", 2, &from, err));
    for (int64_t il = 0; il < l.n; il++) {
        own[il] =
            l.list ? hn_hf_layer_is(l.list, il, "full|F") : il < from || every < 2 || (il - from + 1) % every == 0;
        if (l.list && !own[il] && !hn_hf_layer_is(l.list, il, "shared|S"))
            return hn_hf_refuse(f, "indexer_types", l.list, "\"full\" or \"shared\" for each layer", err);
    }
    return hn_hf_put_layers(f, "attention.indexer.types", HONE_KV_BOOL, own, l.n, err);
}
static const hn_hf_class deepseek32 = { .names = "DeepseekV32ForCausalLM",
                                        .types = "deepseek_v32",
                                        .arch = "deepseek32",
                                        .keys = deepseek32_keys,
                                        .tensors = indexed_names,
                                        .idle = ROUTER_IDLE "embedding_initializer_range",
                                        .drafts = HN_HF_BEHIND,
                                        .fits = hn_hf_never,
                                        .more = deepseek3_more };
static const hn_hf_class glm5 = { .names = "GlmMoeDsaForCausalLM",
                                  .types = "glm_moe_dsa",
                                  .arch = "glm-dsa",
                                  .keys = glm5_keys,
                                  .tensors = indexed_names,
                                  .idle = ROUTER_IDLE "embedding_initializer_range",
                                  .usual = "max_position_embeddings 202752",
                                  .eps = 1e-5,
                                  .drafts = HN_HF_BEHIND,
                                  .fits = hn_hf_never,
                                  .more = glm5_more };

const hn_hf_class *const hn_hf_latent[] = { &deepseek2, &deepseek3,  &glm4lite, &youtu,
                                            &mistral4,  &deepseek32, &glm5,     NULL };
