/* hf: folders of transformers become files: every tensor by its own index arithmetic, logits of transformers, keys;
 * what is wrong with a folder or not run is refused by name, and nothing is left behind. */
#define _GNU_SOURCE
#include "gguf/gguf.h"
#include "hf_files.h"
#include "model/hparams.h"

#include <math.h>

static char dir[64];

static const char *at(const char *name)
{
    static char path[8][192];
    static int k;
    k = (k + 1) % 8;
    snprintf(path[k], sizeof path[k], "%s/%s", dir, name);
    return path[k];
}

static int make_dir(void **state)
{
    const char *kept = getenv("HF_FOLDERS");
    snprintf(dir, sizeof dir, "%s", kept ? kept : "/tmp/hone-hf-XXXXXX");
    return kept || mkdtemp(dir) ? 0 : -1;
}
static int remove_dir(void **state) { return getenv("HF_FOLDERS") ? 0 : hf_remove(dir); }

static hn_gguf *converted(const hf_folder *f, const char *name, const char *type)
{
    hone_error err;
    hn_gguf *g;
    char folder[192], file[200];
    snprintf(folder, sizeof folder, "%s", at(name));
    snprintf(file, sizeof file, "%s.gguf", folder);
    hf_write(f, folder);
    if (hone_convert(folder, NULL, type, file, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    if (hn_gguf_open(&g, file, &err) != HONE_OK) fail_msg("%s", err.message);
    return g;
}

/* ---- tensors ------------------------------------------------------------------------------------------------ */

static float element(const hn_gguf_tensor *t, uint64_t i)
{
    float x;
    if (t->type == HN_F32) memcpy(&x, (const char *)t->data + 4 * i, 4);
    else {
        uint16_t h;
        assert_int_equal(t->type, HN_BF16);
        memcpy(&h, (const char *)t->data + 2 * i, 2);
        uint32_t u = (uint32_t)h << 16;
        memcpy(&x, &u, 4);
    }
    return x;
}

/* Where element i of an output comes from in its source. */
typedef size_t place(size_t i, const uint64_t *ne);
static size_t same(size_t i, const uint64_t *ne) { return i; }
/* rows of heads of 8: 2j + s comes from s·4 + j */
static size_t pairs(size_t i, const uint64_t *ne)
{
    size_t w = ne[1] > 1 ? ne[0] : 1, row = i / w, in_head = row % 8;
    return (row / 8 * 8 + in_head % 2 * 4 + in_head / 2) * w + i % w;
}
static size_t turned(size_t i, const uint64_t *ne) { return i % ne[0] * ne[1] + i / ne[0]; }

static void check(const hn_gguf *g, const char *name, const char *source, place *from, float plus)
{
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, name);
    if (!t) fail_msg("%s is missing", name);
    for (uint64_t i = 0; i < t->ne[0] * t->ne[1]; i++) {
        float want = hf_value(source, from(i, t->ne)) + plus;
        if (element(t, i) != want)
            fail_msg("%s: element %llu is %g, expected %g of %s", name, (unsigned long long)i, (double)element(t, i),
                     (double)want, source);
    }
}

static uint32_t u32(const hn_gguf *g, const char *key)
{
    uint32_t v = 0;
    bool found = false;
    assert_int_equal(hn_gguf_get_u32(g, key, &v, &found, NULL), HONE_OK);
    if (!found) fail_msg("%s is missing", key);
    return v;
}
static float f32(const hn_gguf *g, const char *key)
{
    float v = 0;
    bool found = false;
    assert_int_equal(hn_gguf_get_f32(g, key, &v, &found, NULL), HONE_OK);
    if (!found) fail_msg("%s is missing", key);
    return v;
}

/* ---- logits ------------------------------------------------------------------------------------------------- */

enum { N_IDS = 12, N_VOCAB = 32 };
typedef struct golden {
    float at5[4], last[4];
    int32_t top[N_IDS];
} golden;

/* Of transformers in float64: tests/dev/make_hf_golden.py. */
static void compare(const char *name, const golden *want)
{
    static const int32_t ids[N_IDS] = { 1, 5, 9, 2, 30, 17, 3, 3, 8, 21, 11, 0 };
    char file[200];
    hone_error err;
    hone_model *m;
    hone_context *ctx;
    hone_session *s;
    const hone_context_params cp = { .n_threads = 1 };
    const hone_session_params sp = { .n_ctx = N_IDS + 1, .cache = HONE_CACHE_F32 };
    snprintf(file, sizeof file, "%s.gguf", at(name));
    if (hone_model_open(&m, file, NULL, &err) != HONE_OK || hone_context_new(&ctx, &cp, &err) != HONE_OK ||
        hone_session_new(&s, ctx, m, &sp, &err) != HONE_OK)
        fail_msg("%s", err.message);
    for (int i = 0; i < N_IDS; i++) {
        const float *y;
        int best = 0;
        if (hone_append(s, 0, &ids[i], 1, &y, &err) != HONE_OK) fail_msg("%s", err.message);
        for (int k = 1; k < N_VOCAB; k++) best = y[k] > y[best] ? k : best;
        assert_int_equal(best, want->top[i]);
        const float *known = i == 5 ? want->at5 : i == N_IDS - 1 ? want->last : NULL;
        for (int k = 0; known && k < 4; k++)
            if (fabsf(y[k] - known[k]) > 1e-4f)
                fail_msg("%s: logit %d at %d is %.7f, expected %.7f", name, k, i, (double)y[k], (double)known[k]);
    }
    hone_session_free(s);
    hone_context_free(ctx);
    hone_model_close(m);
}

#include "hf_golden.h"

/* ---- classes ------------------------------------------------------------------------------------------------ */

static void refused(const hf_folder *f, hone_status code, const char *says);
static char *edited(char *dst, size_t cap, const char *text, const char *old, const char *new);

static void llama(void **state)
{
    hf_folder f;
    hf_llama(&f);
    hn_gguf *g = converted(&f, "llama", NULL);
    assert_int_equal(hn_gguf_n_tensors(g), 2 * 13 + 4);
    check(g, "token_embd.weight", "model.embed_tokens.weight", same, 0);
    check(g, "output.weight", "lm_head.weight", same, 0);
    check(g, "output_norm.weight", "model.norm.weight", same, 0);
    check(g, "blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight", pairs, 0);
    check(g, "blk.1.attn_k.weight", "model.layers.1.self_attn.k_proj.weight", pairs, 0);
    check(g, "blk.0.attn_q.bias", "model.layers.0.self_attn.q_proj.bias", pairs, 0);
    check(g, "blk.0.attn_k.bias", "model.layers.0.self_attn.k_proj.bias", pairs, 0);
    check(g, "blk.1.attn_v.weight", "model.layers.1.self_attn.v_proj.weight", same, 0);
    check(g, "blk.1.attn_output.bias", "model.layers.1.self_attn.o_proj.bias", same, 0);
    check(g, "blk.1.ffn_down.weight", "model.layers.1.mlp.down_proj.weight", same, 0);
    check(g, "blk.0.ffn_norm.weight", "model.layers.0.post_attention_layernorm.weight", same, 0);
    assert_int_equal(hn_gguf_find_tensor(g, "blk.0.attn_v.weight")->type, HN_BF16); /* nothing is lost */
    assert_int_equal(hn_gguf_find_tensor(g, "blk.0.attn_v.bias")->type, HN_F32);
    /* wave lengths of 6.3, 167, … positions against 16: the second pair and what follows are stretched */
    const hn_gguf_tensor *r = hn_gguf_find_tensor(g, "rope_freqs.weight");
    assert_non_null(r);
    const float first[4] = { element(r, 0), element(r, 1), element(r, 2), element(r, 3) };
    const double turns = 16 / 6.283185307179586, smooth = (turns - 1) / 3;
    assert_true(fabs((double)first[0] - 1 / ((1 - smooth) / 8 + smooth)) < 1e-6);
    for (int i = 1; i < 4; i++) assert_true(first[i] == 8);
    assert_int_equal(u32(g, "llama.context_length"), 64);
    assert_int_equal(u32(g, "llama.attention.key_length"), 8);
    assert_int_equal(u32(g, "llama.rope.dimension_count"), 8);
    assert_true(f32(g, "llama.rope.freq_base") == 5e5f);
    assert_int_equal(hn_gguf_find(g, "llama.rope.scaling.type"), -1);
    hn_gguf_close(g);
    compare("llama", &llama_golden);
}

/* InternLM2: two heads of queries, then the keys' and the values', for each head of keys; heads of 8. */
static size_t in_wqkv(size_t i, size_t w, size_t n_head, size_t first, bool turns)
{
    size_t row = i / w, head = row / 8, r = row % 8;
    if (turns) r = r % 2 * 4 + r / 2;
    return (head / n_head * 32 + first + head % n_head * 8 + r) * w + i % w;
}
static size_t wqkv_q(size_t i, const uint64_t *ne) { return in_wqkv(i, ne[0], 2, 0, true); }
static size_t wqkv_k(size_t i, const uint64_t *ne) { return in_wqkv(i, ne[0], 1, 16, true); }
static size_t wqkv_v(size_t i, const uint64_t *ne) { return in_wqkv(i, ne[0], 1, 24, false); }

#define SMALL(class, type, more)                                                                                  \
    "{\"architectures\":[\"" class "\"],\"model_type\":\"" type "\",\"hidden_size\":16,\"intermediate_size\":24," \
                                   "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"vocab_size\":32,\"max_"   \
                                   "position_embeddings\":64,\"head_dim\":8,"                                     \
                                   "\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":false" more "}"
static void internlm2(void **state)
{
#define L "model.layers.#."
    hf_folder f = { .config = SMALL("InternLM2ForCausalLM", "internlm2", ",\"num_key_value_heads\":2,\"bias\":false") };
    hf_add_all(&f, "model.tok_embeddings.weight 32,16;output.weight 32,16;model.norm.weight 16;",
               L "attention.wqkv.weight 64,16;" L "attention.wo.weight 16,32;" L "attention_norm.weight 16;" L
                 "ffn_norm.weight 16;" L "feed_forward.w1.weight 24,16;" L "feed_forward.w2.weight 16,24;" L
                 "feed_forward.w3.weight 24,16;",
               2);
    hn_gguf *g = converted(&f, "internlm2", NULL);
    assert_int_equal(hn_gguf_n_tensors(g), 2 * 9 + 3);
    check(g, "token_embd.weight", "model.tok_embeddings.weight", same, 0);
    check(g, "output.weight", "output.weight", same, 0);
    check(g, "blk.1.attn_q.weight", "model.layers.1.attention.wqkv.weight", wqkv_q, 0);
    check(g, "blk.1.attn_k.weight", "model.layers.1.attention.wqkv.weight", wqkv_k, 0);
    check(g, "blk.1.attn_v.weight", "model.layers.1.attention.wqkv.weight", wqkv_v, 0);
    check(g, "blk.1.attn_output.weight", "model.layers.1.attention.wo.weight", same, 0);
    check(g, "blk.1.ffn_gate.weight", "model.layers.1.feed_forward.w1.weight", same, 0);
    check(g, "blk.1.ffn_up.weight", "model.layers.1.feed_forward.w3.weight", same, 0);
    check(g, "blk.1.ffn_down.weight", "model.layers.1.feed_forward.w2.weight", same, 0);
    hn_gguf_close(g);
    f.config = SMALL("InternLM2ForCausalLM", "internlm2", ",\"num_key_value_heads\":0");
    refused(&f, HONE_E_FORMAT, "head_count_kv");
    f.config = SMALL("InternLM2ForCausalLM", "internlm2", ",\"num_key_value_heads\":2,\"bias\":true");
    refused(&f, HONE_E_UNSUPPORTED, "bias = true, expected false");
#undef L
}

/* DeciLM: a layer of all, one with a matrix in place of attention, one without any, and one that does nothing. */
static void deci(void **state)
{
#define DECI(first)                                                                                               \
    SMALL("DeciLMForCausalLM", "nemotron-nas",                                                                    \
          ",\"block_configs\":[{\"attention\":{\"n_heads_in_group\":" first                                       \
          ",\"no_op\":false,\"window_length\":null},"                                                             \
          "\"ffn\":{\"ffn_mult\":24.0,\"no_op\":false}},"                                                         \
          "{\"attention\":{\"n_heads_in_group\":null,\"replace_with_linear\":true},\"ffn\":{\"ffn_mult\":48.0}}," \
          "{\"attention\":{\"n_heads_in_group\":null,\"no_op\":true},\"ffn\":{\"ffn_mult\":24.1}},"               \
          "{\"attention\":{\"n_heads_in_group\":null,\"no_op\":true},\"ffn\":{\"ffn_mult\":null}}]")
    static const char *const keys[] = { "deci.attention.head_count", "deci.attention.head_count_kv",
                                        "deci.feed_forward_length" };
    static const int32_t want[3][4] = { { 4, 4, 0, 0 }, { 2, 0, 0, 0 }, { 256, 512, 512, 0 } };
    char config[2048], other[2048];
    hf_folder f = { .config = edited(config, sizeof config, DECI("2"), "\"num_hidden_layers\":2",
                                     "\"num_hidden_layers\":4") };
    f.config = edited(other, sizeof other, f.config, ",\"head_dim\":8", "");
    hf_add_all(&f,
               "lm_head.weight 32,16;" HF_EMBD
               "model.layers.0.self_attn.q_proj.weight 16,16;model.layers.0.self_attn.k_proj.weight 8,16;"
               "model.layers.0.self_attn.v_proj.weight 8,16;model.layers.0.self_attn.o_proj.weight 16,16;"
               "model.layers.0.input_layernorm.weight 16;model.layers.1.input_layernorm.weight 16;"
               "model.layers.1.self_attn.linear_attn.weight 16,16;",
               NULL, 0);
    for (int il = 0; il < 3; il++)
        for (int i = 0; i < 4; i++) {
            static const char *const parts[] = { "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
                                                 "post_attention_layernorm" };
            char name[96];
            snprintf(name, sizeof name, "model.layers.%d.%s.weight", il, parts[i]);
            hf_add(&f, name, i == 3 ? "16" : i < 2 ? (il ? "512,16" : "256,16") : il ? "16,512" : "16,256");
        }
    hn_gguf *g = converted(&f, "deci", "F32");
    for (int i = 0; i < 3; i++) {
        hn_gguf_array a = { 0 };
        double x;
        assert_int_equal(hn_gguf_get_array(g, keys[i], &a, NULL, NULL), HONE_OK);
        assert_int_equal(a.count, 4);
        for (uint64_t il = 0; il < 4; il++) assert_true(hn_array_number(&a, il, &x) && x == want[i][il]);
    }
    assert_int_equal(hn_gguf_n_tensors(g), 3 + 5 + 2 + 3 * 4);
    check(g, "blk.1.attn_output.weight", "model.layers.1.self_attn.linear_attn.weight", same, 0);
    check(g, "blk.2.ffn_down.weight", "model.layers.2.mlp.down_proj.weight", same, 0);
    assert_int_equal(u32(g, "deci.attention.key_length"), 4);
    hn_gguf_close(g);
    hone_model *m;
    hone_error err;
    if (hone_model_open(&m, at("deci.gguf"), NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    hone_model_close(m);
    char bad[2048];
    f.config = edited(bad, sizeof bad, other, "\"n_heads_in_group\":2", "\"n_heads_in_group\":3");
    refused(&f, HONE_E_UNSUPPORTED, "n_heads_in_group = 3, expected a part of");
    f.config = edited(bad, sizeof bad, other, "\"window_length\":null", "\"window_length\":64");
    refused(&f, HONE_E_UNSUPPORTED, "window_length = 64, expected none");
    f.config = edited(bad, sizeof bad, other, "\"num_hidden_layers\":4", "\"num_hidden_layers\":3");
    refused(&f, HONE_E_FORMAT, "block_configs has 4 layers");
#undef DECI
}

/* Ling 2.0: one matrix for q, k and v, which stays one; a dense layer, then experts. */
static void ling(void **state)
{
#define LING(more)                                                                                              \
    SMALL("BailingMoeV2ForCausalLM", "bailing_moe",                                                             \
          ",\"num_key_value_heads\":2,\"num_experts\":2,\"num_experts_per_tok\":1,\"moe_intermediate_size\":8," \
          "\"num_shared_experts\":1,\"first_k_dense_replace\":1,\"partial_rotary_factor\":0.5,\"use_qk_norm\":" \
          "true" more)
    static const char *const mlp[] = { "0.mlp", "1.mlp.experts.0", "1.mlp.experts.1", "1.mlp.shared_experts" };
    hf_folder f = { .config = LING(",\"routed_scaling_factor\":2.5,\"score_function\":\"sigmoid\"") };
    hf_add_all(&f, "lm_head.weight 32,16;model.word_embeddings.weight 32,16;model.norm.weight 16;",
               "model.layers.#.attention.query_key_value.weight 64,16;model.layers.#.attention.dense.weight 16,32;"
               "model.layers.#.attention.query_layernorm.weight 8;model.layers.#.attention.key_layernorm.weight 8;"
               "model.layers.#.input_layernorm.weight 16;model.layers.#.post_attention_layernorm.weight 16;",
               2);
    hf_add_all(&f, "model.layers.1.mlp.gate.weight 2,16;model.layers.1.mlp.gate.expert_bias 2;", NULL, 0);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            static const char *const parts[] = { "gate_proj", "up_proj", "down_proj" };
            char name[96];
            snprintf(name, sizeof name, "model.layers.%s.%s.weight", mlp[i], parts[k]);
            hf_add(&f, name, k < 2 ? (i ? "8,16" : "24,16") : i ? "16,8" : "16,24");
        }
    hn_gguf *g = converted(&f, "ling", NULL);
    assert_int_equal(hn_gguf_n_tensors(g), 3 + 2 * 6 + 3 + 2 + 6);
    check(g, "blk.1.attn_qkv.weight", "model.layers.1.attention.query_key_value.weight", same, 0);
    check(g, "blk.1.attn_q_norm.weight", "model.layers.1.attention.query_layernorm.weight", same, 0);
    check(g, "blk.0.ffn_up.weight", "model.layers.0.mlp.up_proj.weight", same, 0);
    check(g, "blk.1.ffn_down_shexp.weight", "model.layers.1.mlp.shared_experts.down_proj.weight", same, 0);
    check(g, "blk.1.exp_probs_b.bias", "model.layers.1.mlp.gate.expert_bias", same, 0);
    assert_int_equal(u32(g, "bailingmoe2.rope.dimension_count"), 4);
    assert_int_equal(u32(g, "bailingmoe2.leading_dense_block_count"), 1);
    assert_int_equal(u32(g, "bailingmoe2.expert_gating_func"), 2);
    assert_true(f32(g, "bailingmoe2.expert_weights_scale") == 2.5F);
    hn_gguf_close(g);
    f.config = LING(",\"score_function\":\"softmax\"");
    refused(&f, HONE_E_UNSUPPORTED, "score_function = \"softmax\", expected sigmoid");
    f.config = LING(",\"use_qkv_bias\":true");
    refused(&f, HONE_E_UNSUPPORTED, "use_qkv_bias = true, expected false");
#undef LING
}

/* MiniCPM's scalars are Granite's by other members; StableLM's second norm and its config say the same. */
static void other_members(void **state)
{
#define KV ",\"num_key_value_heads\":2"
    hf_folder f = { .config = SMALL("MiniCPMForCausalLM", "minicpm",
                                    KV ",\"scale_emb\":12,\"scale_depth\":1.4,\"dim_model_base\":4") };
    hf_add_all(&f, "lm_head.weight 32,16;" HF_EMBD, HF_GLU HF_QKVO, 2);
    hn_gguf *g = converted(&f, "minicpm", NULL);
    assert_true(f32(g, "granite.embedding_scale") == 12 && f32(g, "granite.logit_scale") == 4);
    assert_true(f32(g, "granite.residual_scale") == (float)(1.4 / sqrt(2)));
    assert_int_equal(hn_gguf_find(g, "granite.attention.scale"), -1); /* 1/√d */
    check(g, "blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight", pairs, 0);
    hn_gguf_close(g);
    f.config = SMALL("MiniCPMForCausalLM", "minicpm", KV ",\"scale_emb\":12,\"scale_depth\":1.4");
    refused(&f, HONE_E_FORMAT, "has no dim_model_base");
    f.config = SMALL("MiniCPMForCausalLM", "minicpm", KV ",\"dim_model_base\":4,\"num_experts\":8");
    refused(&f, HONE_E_UNSUPPORTED, "num_experts = 8");
    char config[1024];
    f.config =
        edited(config, sizeof config, SMALL("StableLmForCausalLM", "stablelm", KV ",\"use_parallel_residual\":true"),
               "rms_norm_eps", "layer_norm_eps");
    refused(&f, HONE_E_UNSUPPORTED, "use_parallel_residual = true, expected false, as layers have a second norm");
#undef KV
}

static void gemma2(void **state)
{
    hf_folder f;
    hf_gemma2(&f);
    hn_gguf *g = converted(&f, "gemma2", NULL);
    assert_int_equal(hn_gguf_n_tensors(g), 2 * 11 + 2);
    check(g, "blk.1.post_ffw_norm.weight", "model.layers.1.post_feedforward_layernorm.weight", same, 1);
    check(g, "blk.1.ffn_norm.weight", "model.layers.1.pre_feedforward_layernorm.weight", same, 1);
    check(g, "output_norm.weight", "model.norm.weight", same, 1);
    check(g, "blk.1.attn_q.weight", "model.layers.1.self_attn.q_proj.weight", same, 0);
    assert_int_equal(u32(g, "general.file_type"), 32);
    assert_true(f32(g, "gemma2.attn_logit_softcapping") == 5 && f32(g, "gemma2.final_logit_softcapping") == 0);
    hn_gguf_close(g);
    compare("gemma2", &gemma2_golden);
}

static void gpt2(void **state)
{
    hf_folder f;
    hf_gpt2(&f);
    hn_gguf *g = converted(&f, "gpt2", "F32");
    assert_int_equal(hn_gguf_n_tensors(g), 2 * 12 + 4);
    check(g, "blk.1.attn_qkv.weight", "h.1.attn.c_attn.weight", turned, 0);
    check(g, "blk.1.attn_qkv.bias", "h.1.attn.c_attn.bias", same, 0);
    check(g, "blk.0.ffn_up.weight", "h.0.mlp.c_fc.weight", turned, 0);
    check(g, "blk.0.ffn_down.weight", "h.0.mlp.c_proj.weight", turned, 0);
    check(g, "position_embd.weight", "wpe.weight", same, 0);
    assert_int_equal(u32(g, "gpt2.feed_forward_length"), 64);
    hn_gguf_close(g);
    compare("gpt2", &gpt2_golden);
}

static void nemotron(void **state)
{
    hf_folder f;
    hf_nemotron(&f);
    hn_gguf *g = converted(&f, "nemotron", NULL);
    check(g, "blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight", same, 1);
    check(g, "blk.0.attn_norm.bias", "model.layers.0.input_layernorm.bias", same, 0);
    check(g, "output_norm.weight", "model.norm.weight", same, 1);
    check(g, "output_norm.bias", "model.norm.bias", same, 0);
    assert_int_equal(u32(g, "nemotron.rope.dimension_count"), 4);
    hn_gguf_close(g);
}

/* two heads of 8: rows q0 k0 v0 q1 k1 v1, each of 8, become q0 q1 k0 k1 v0 v1 */
static size_t by_heads(size_t i, const uint64_t *ne)
{
    size_t w = ne[1] > 1 ? ne[0] : 1, row = i / w, part = row / 16, head = row / 8 % 2;
    return ((head * 3 + part) * 8 + row % 8) * w + i % w;
}

static void gptneox(void **state)
{
    hf_folder f;
    hf_gptneox(&f);
    hn_gguf *g = converted(&f, "gptneox", NULL);
    check(g, "blk.0.attn_qkv.weight", "gpt_neox.layers.0.attention.query_key_value.weight", by_heads, 0);
    check(g, "blk.0.attn_qkv.bias", "gpt_neox.layers.0.attention.query_key_value.bias", by_heads, 0);
    check(g, "output.weight", "embed_out.weight", same, 0);
    assert_int_equal(u32(g, "gptneox.rope.dimension_count"), 4);
    hn_gguf_close(g);
}

/* The same numbers whatever the container: shards, order, another root; a large config with a large number. */
static void containers(void **state)
{
    hf_folder f, s;
    hf_llama(&f);
    s = f;
    static const char number[] = "{\"task_specific_params\": {\"x\": 1000000000000000019884624838656},";
    const size_t blank = 5 << 20;
    char *config = malloc(blank + sizeof number + strlen(f.config));
    memset(config, ' ', blank);
    strcpy(config + blank, number);
    strcat(config + blank, f.config + 1);
    s.config = config;
    s.shards = true;
    for (int i = 0; i < s.n / 2; i++) { /* from the end */
        hf_tensor t = s.t[i];
        s.t[i] = s.t[s.n - 1 - i];
        s.t[s.n - 1 - i] = t;
    }
    hn_gguf *a = converted(&f, "one", "Q8_0"), *b = converted(&s, "two", "Q8_0");
    assert_int_equal(hn_gguf_n_tensors(a), hn_gguf_n_tensors(b));
    for (uint64_t i = 0; i < hn_gguf_n_tensors(a); i++) {
        const hn_gguf_tensor *x = hn_gguf_tensor_at(a, i), *y = hn_gguf_tensor_at(b, i);
        assert_int_equal(x->type, y->type);
        assert_int_equal(x->n_bytes, y->n_bytes);
        assert_memory_equal(x->name.ptr, y->name.ptr, x->name.len);
        assert_memory_equal(x->data, y->data, x->n_bytes);
    }
    hn_gguf_close(a);
    hn_gguf_close(b);
    free(config);
}

/* ---- refused ------------------------------------------------------------------------------------------------- */

/* Replaces the first `old` of a text. */
static char *edited(char *dst, size_t cap, const char *text, const char *old, const char *new)
{
    const char *p = strstr(text, old);
    if (!p) fail_msg("\"%s\" is not in the config", old);
    snprintf(dst, cap, "%.*s%s%s", (int)(p - text), text, new, p + strlen(old));
    return dst;
}

static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) n++;
    closedir(d);
    return n;
}

static void refused(const hf_folder *f, hone_status code, const char *says)
{
    hone_error err;
    char folder[192];
    snprintf(folder, sizeof folder, "%s", at("bad"));
    hf_write(f, folder);
    int before = n_files();
    hone_status st = hone_convert(folder, NULL, NULL, at("never.gguf"), NULL, &err);
    if (st != code || !strstr(err.message, says))
        fail_msg("status %d, message: %s; expected %d and: %s", st, st ? err.message : "none", code, says);
    assert_int_equal(n_files(), before);
    assert_int_equal(hf_remove(folder), 0);
}

static void configs_refused(void **state)
{
    static const struct {
        const char *old, *new;
        hone_status code;
        const char *says;
    } cases[] = {
        { "LlamaForCausalLM\"],\"model_type\":\"llama", "XForCausalLM\"],\"model_type\":\"x", HONE_E_UNSUPPORTED,
          "architecture \"XForCausalLM\" (model_type \"x\"), which hone does not convert" },
        { "\"some_null\":null", "\"clip_qkv\":8", HONE_E_UNSUPPORTED,
          "\"clip_qkv\": 8 is unknown for a model of class Llama" },
        { "\"silu\"", "\"gelu\"", HONE_E_UNSUPPORTED, "hidden_act = \"gelu\", expected silu" },
        { "\"hidden_size\":16", "\"hidden_size\":\"16\"", HONE_E_FORMAT, "hidden_size = \"16\", expected a number" },
        { "\"hidden_size\":16", "\"hidden_size\":16.5", HONE_E_FORMAT, "hidden_size = 16.5, expected a whole number" },
        { "\"hidden_size\":16,", "", HONE_E_FORMAT,
          "has no hidden_size, which a model of class LlamaForCausalLM needs" },
        { "\"intermediate_size\":24", "\"intermediate_size\":25", HONE_E_FORMAT,
          "has shape [24, 16], expected [25, 16]" },
        { "\"num_hidden_layers\":2", "\"num_hidden_layers\":3", HONE_E_FORMAT,
          "model.layers.2.input_layernorm.weight is missing; expected one of shape [16]" },
        { "\"num_hidden_layers\":2", "\"num_hidden_layers\":1", HONE_E_FORMAT,
          "is no tensor of a model of class Llama" },
        { "\"num_key_value_heads\":2", "\"num_key_value_heads\":3", HONE_E_FORMAT, "not a multiple of head_count_kv" },
        { "\"attention_bias\":true", "\"attention_bias\":false", HONE_E_FORMAT, "_proj.bias, of shape" },
        { "\"vocab_size\":32", "\"vocab_size\":33", HONE_E_FORMAT, "has shape [32, 16], expected [33, 16]" },
        { "\"llama3\"", "\"llama9\"", HONE_E_UNSUPPORTED, "rope_type \"llama9\"" },
        { "\"factor\":8.0,", "", HONE_E_FORMAT, "factor of the rotations is missing" },
        { "\"factor\":8.0", "\"factor\":0.0", HONE_E_FORMAT, "factor of the rotations is missing or not above 0" },
        { "\"factor\":8.0", "\"factor\":-8.0", HONE_E_FORMAT, "factor of the rotations is missing or not above 0" },
        { "\"low_freq_factor\":1.0", "\"low_freq_factor\":1.0,\"mystery\":3", HONE_E_UNSUPPORTED, "mystery = 3" },
        { "\"low_freq_factor\":1.0", "\"low_freq_factor\":\"a\"", HONE_E_FORMAT,
          "low_freq_factor of the rotations is no number" },
        { "\"tie_word_embeddings\":false", "\"tie_word_embeddings\":\"yes\"", HONE_E_FORMAT,
          "tie_word_embeddings = \"yes\", expected true or false" },
        { "\"tie_word_embeddings\":false", "\"tie_word_embeddings\":1", HONE_E_FORMAT,
          "tie_word_embeddings is true, but lm_head.weight differs" },
        { "\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true", HONE_E_FORMAT,
          "tie_word_embeddings is true, but lm_head.weight differs from model.embed_tokens.weight" },
        { "\"head_dim\":8", "\"head_dim\":7", HONE_E_FORMAT, "is odd" },
        { "\"some_null\":null", "\"vocab_size\":32", HONE_E_FORMAT, "vocab_size" },
        { "\"model_type\":\"llama\"", "\"model_type\":\"llama\"}", HONE_E_FORMAT, "not JSON" },
        { "\"max_position_embeddings\":64", "\"max_position_embeddings\":0", HONE_E_FORMAT, "context_length = 0" },
    };
    char config[2048];
    hf_folder f;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_llama(&f);
        f.config = edited(config, sizeof config, f.config, cases[i].old, cases[i].new);
        refused(&f, cases[i].code, cases[i].says);
    }
    hf_gemma2(&f);
    f.config = edited(config, sizeof config, f.config, "\"query_pre_attn_scalar\":8", "\"query_pre_attn_scalar\":9");
    refused(&f, HONE_E_UNSUPPORTED, "query_pre_attn_scalar = 9, expected 8");
    f.config = edited(config, sizeof config, HF_GEMMA2_CONFIG, "\"query_pre_attn_scalar\":8,", "");
    refused(&f, HONE_E_UNSUPPORTED, "query_pre_attn_scalar = 256, as it is not said, expected 8");
    f.config = edited(config, sizeof config, HF_GPT2_CONFIG, "\"n_ctx\"",
                      "\"scale_attn_by_inverse_layer_idx\":true,\"n_ctx\"");
    hf_gpt2(&f);
    f.config = config;
    refused(&f, HONE_E_UNSUPPORTED, "scale_attn_by_inverse_layer_idx = true, expected false");
}

/* Formulas that hone has at one value alone; members that must be said. */
static void formulas_refused(void **state)
{
    static const struct {
        const char *name, *type, *more, *says;
    } cases[] = {
        { "Exaone4ForCausalLM", "exaone4", "\"sliding_window\":4,\"sliding_window_pattern\":\"LLLG\"",
          "sliding_window_pattern = \"LLLG\", expected layer_types" },
        { "Exaone4ForCausalLM", "exaone4",
          "\"sliding_window\":4,\"layer_types\":[\"full_attention\",\"full_attention\"]",
          "sliding_window = 4, expected null" },
        { "Exaone4ForCausalLM", "exaone4", "\"rope_theta\":1e6", "sliding_window = nothing, expected null" },
        { "GptOssForCausalLM", "gpt_oss",
          "\"sliding_window\":4,\"num_local_experts\":4,\"num_experts_per_tok\":2,"
          "\"rope_parameters\":{\"rope_type\":\"default\"},\"swiglu_alpha\":1.5",
          "swiglu_alpha = 1.5, expected 1.702" },
        { "Gemma3ForCausalLM", "gemma3_text", "\"sliding_window\":4,\"num_key_value_heads\":2,\"head_dim\":8",
          "query_pre_attn_scalar = 256, as it is not said, expected 8" },
        { "Phi3ForCausalLM", "phi3",
          "\"rope_scaling\":{\"rope_type\":\"longrope\",\"original_max_position_embeddings\":32,\"short_factor\":[1,1,"
          "1,1],"
          "\"long_factor\":[1,1,1,1]}",
          "has no original_max_position_embeddings" },
        { "MiniMaxM2ForCausalLM", "minimax_m2",
          "\"num_local_experts\":4,\"num_experts_per_tok\":2,\"head_dim\":8,\"rotary_dim\":4,\"rope_parameters\":"
          "{\"rope_type\":\"default\",\"partial_rotary_factor\":0.25}",
          "partial_rotary_factor = 0.25, expected rotary_dim over head_dim" },
        { "FalconH1ForCausalLM", "falcon_h1", "\"rope_scaling\":null", "has no rope_theta" },
        { "BertModel", "bert", "\"is_decoder\":true", "is_decoder = true, expected false" },
        { "BertModel", "bert", "\"add_cross_attention\":true", "add_cross_attention = true, expected false" },
        { "BertModel", "bert", "\"pruned_heads\":{\"0\":[1]}", "pruned_heads = {\"0\":[1]}, expected {}" },
        { "NomicBertModel", "nomic_bert", "\"scale_attn_by_inverse_layer_idx\":true",
          "scale_attn_by_inverse_layer_idx = true, expected false" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[2048];
        bool needed = strstr(cases[i].says, "has no ") != NULL, encodes = strstr(cases[i].type, "bert") != NULL;
        hf_folder f = { .config = config };
        hf_add(&f, encodes ? "embeddings.word_embeddings.weight" : "model.embed_tokens.weight", "32,16");
        snprintf(config, sizeof config,
                 "{\"architectures\":[\"%s\"],\"model_type\":\"%s\",\"hidden_size\":16,\"num_hidden_layers\":2,"
                 "\"num_attention_heads\":2,\"intermediate_size\":24,\"vocab_size\":32,"
                 "\"max_position_embeddings\":64,%s}",
                 cases[i].name, cases[i].type, cases[i].more);
        refused(&f, needed ? HONE_E_FORMAT : HONE_E_UNSUPPORTED, cases[i].says);
    }
}

/* A link that leads nowhere is no absent file. */
static void links_refused(void **state)
{
    static const char *const names[] = { "generation_config.json", "tokenizer.json", "model.safetensors" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hone_error err;
        hf_folder f;
        char folder[192], path[256];
        hf_llama(&f);
        snprintf(folder, sizeof folder, "%s", at("linked"));
        hf_write(&f, folder);
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)unlink(path);
        assert_int_equal(symlink("nowhere", path), 0);
        int before = n_files();
        hone_status st = hone_convert(folder, NULL, NULL, at("never.gguf"), NULL, &err);
        if (st != HONE_E_IO || !strstr(err.message, names[i]) || !strstr(err.message, "a link to a file"))
            fail_msg("%s: status %d, message: %s", names[i], st, st ? err.message : "none");
        assert_int_equal(n_files(), before);
        assert_int_equal(hf_remove(folder), 0);
    }
}

/* Sizes for which no rule of views was made: nothing is read past an end. */
static void odd_sizes(void **state)
{
    char config[2048];
    hf_folder f;
    hf_gptneox(&f);
    f.config = edited(config, sizeof config, f.config, "\"vocab_size\"", "\"num_key_value_heads\":1,\"vocab_size\"");
    for (int i = 0; i < f.n; i++)
        if (strstr(f.t[i].name, "query_key_value")) f.t[i].shape[0] = 32;
    refused(&f, HONE_E_UNSUPPORTED, "blk.0.attn_qkv.weight would have");
    hf_gptneox(&f);
    f.config = edited(config, sizeof config, f.config, "\"rotary_pct\":0.5", "\"rotary_pct\":-2");
    refused(&f, HONE_E_FORMAT, "partial_rotary_factor = -2");
}

static hf_tensor *named(hf_folder *f, const char *name)
{
    for (int i = 0; i < f->n; i++)
        if (!strcmp(f->t[i].name, name)) return &f->t[i];
    fail_msg("%s is not in the folder", name);
    return NULL;
}

static void tensors_refused(void **state)
{
    hf_folder f;
    hf_llama(&f);
    snprintf(named(&f, "model.layers.0.mlp.up_proj.weight")->name, 96, "model.layers.0.mlp.other.weight");
    refused(&f, HONE_E_FORMAT, "tensor model.layers.0.mlp.up_proj.weight is missing");
    hf_llama(&f);
    hf_add(&f, "model.layers.0.extra", "3");
    refused(&f, HONE_E_FORMAT, "model.layers.0.extra, of shape [3], is no tensor of a model of class LlamaForCausalLM");
    hf_llama(&f);
    hf_add(&f, "model.vision_tower.patch.weight", "3");
    refused(&f, HONE_E_FORMAT, "model.vision_tower.patch.weight"); /* of a folder of text alone */
    hf_llama(&f);
    snprintf(named(&f, "model.embed_tokens.weight")->name, 96, "embed.weight");
    refused(&f, HONE_E_FORMAT, "has no tensor model.embed_tokens.weight");
    hf_llama(&f);
    f.n -= 3;
    refused(&f, HONE_E_FORMAT, "k_proj.bias is missing");
    hf_llama(&f);
    hf_add(&f, "model.layers.0.self_attn.rotary_emb.inv_freq", "4"); /* a buffer that old folders have */
    hn_gguf_close(converted(&f, "buffer", NULL));
}

/* A number that no file may hold is named by its place in the folder, wherever it would have gone. */
static void numbers_refused(void **state)
{
    static const struct {
        const char *tensor, *type, *says;
        size_t at;
        float value;
    } cases[] = {
        { "model.layers.1.self_attn.q_proj.weight", NULL, "q_proj.weight: element 37 is NaN", 37, NAN },
        { "model.layers.1.self_attn.q_proj.weight", "F16", "q_proj.weight: element 100 is infinite", 100, INFINITY },
        { "model.layers.0.self_attn.k_proj.weight", "F16", "k_proj.weight: element 255 is beyond F16", 255, 1e6f },
        { "model.layers.0.mlp.down_proj.weight", NULL, "down_proj.weight: element 0 is NaN", 0, NAN },
        { "model.norm.weight", "F32", "model.norm.weight: element 15 is NaN", 15, NAN },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hf_folder f;
        hone_error err;
        hf_llama(&f);
        f.bad = named(&f, cases[i].tensor);
        f.bad_at = cases[i].at;
        f.bad_value = cases[i].value;
        hf_write(&f, at("bad"));
        int before = n_files();
        hone_status st = hone_convert(at("bad"), NULL, cases[i].type, at("never.gguf"), NULL, &err);
        if (st != HONE_E_NUMERIC || !strstr(err.message, cases[i].says))
            fail_msg("status %d, message: %s; expected: %s", st, st ? err.message : "none", cases[i].says);
        assert_int_equal(n_files(), before);
        assert_int_equal(hf_remove(at("bad")), 0);
    }
}

/* An output that is the embedding again is dropped. */
static void tied(void **state)
{
    char config[2048];
    hf_folder f;
    hf_llama(&f);
    f.config = edited(config, sizeof config, f.config, "\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true");
    named(&f, "lm_head.weight")->as = "model.embed_tokens.weight";
    hn_gguf *g = converted(&f, "tied", NULL);
    assert_null(hn_gguf_find_tensor(g, "output.weight"));
    assert_non_null(hn_gguf_find_tensor(g, "token_embd.weight"));
    hn_gguf_close(g);
}

/* What the config says of single layers is what the file does, or is refused. */
static void layers(void **state)
{
    char config[2048];
    hf_folder f;
    hn_gguf_array a;
    bool found = false;
    hf_gemma2(&f);
    f.config = edited(config, sizeof config, f.config, "[\"sliding_attention\",\"full_attention\"]",
                      "[\"full_attention\",\"sliding_attention\"]");
    hn_gguf *g = converted(&f, "layers", NULL);
    assert_int_equal(hn_gguf_get_array(g, "gemma2.attention.sliding_window_pattern", &a, &found, NULL), HONE_OK);
    assert_true(found && a.count == 2 && a.data[0] == 0 && a.data[1] == 1);
    hn_gguf_close(g);
    hf_llama(&f);
    f.config = edited(config, sizeof config, f.config, "\"some_null\":null",
                      "\"layer_types\":[\"full_attention\",\"sliding_attention\"]");
    refused(&f, HONE_E_UNSUPPORTED,
            "layer_types[1] = \"sliding_attention\", expected \"full_attention\" as llama has it");
    hf_llama(&f);
    f.config = edited(config, sizeof config, f.config, "\"some_null\":null", "\"no_rope_layers\":[1,0]");
    refused(&f, HONE_E_UNSUPPORTED, "no_rope_layers[1] = 0, expected 1");
    hf_llama(&f);
    f.config = edited(config, sizeof config, f.config, "LlamaForCausalLM", "Qwen2ForCausalLM");
    f.config = edited(config, sizeof config, strdupa(config), "\"some_null\":null",
                      "\"use_sliding_window\":true,\"max_window_layers\":1,\"sliding_window\":8");
    refused(&f, HONE_E_UNSUPPORTED, "use_sliding_window = true, expected false, or max_window_layers 0");
}

/* What lies beside the text is left out, and said. */
static void hear(void *arg, const char *text) { snprintf(arg, 512, "%s", text); }
static void nested(void **state)
{
    hf_folder f;
    hone_error err;
    char config[2048], note[512] = "";
    hf_llama(&f);
    snprintf(config, sizeof config,
             "{\"architectures\":[\"XForConditionalGeneration\"],\"model_type\":\"x\",\"vision_config\":{},"
             "\"text_config\":%s}",
             HF_LLAMA_CONFIG);
    f.config = config;
    for (int i = 0; i < f.n; i++) {
        char name[96];
        const char *old = f.t[i].name;
        if (!strncmp(old, "model.", 6)) snprintf(name, sizeof name, "model.language_model.%.60s", old + 6);
        else snprintf(name, sizeof name, "%.80s", old);
        memcpy(f.t[i].name, name, sizeof name);
    }
    hf_add(&f, "model.vision_tower.patch.weight", "3,2");
    hf_write(&f, at("nested"));
    const hone_convert_params p = { .note = hear, .note_arg = note };
    if (hone_convert_with(at("nested"), at("nested.gguf"), &p, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_non_null(strstr(note, "1 tensors of other inputs than text (model.vision_tower.patch.weight"));
    hn_gguf *g;
    assert_int_equal(hn_gguf_open(&g, at("nested.gguf"), &err), HONE_OK);
    check(g, "blk.1.attn_v.weight", "model.language_model.layers.1.self_attn.v_proj.weight", same, 0);
    hn_gguf_close(g);
}

/* DeepSeek-R1-0528-Qwen3-8B has a member of yarn that transformers does not know; others can be ignored. */
static void members_of_rope(void **state)
{
    hf_folder f;
    hone_error err;
    hn_gguf *g;
    float x = 0;
    char config[2048], note[512] = "";
    static const char llama3[] = "\"rope_type\":\"llama3\",\"factor\":8.0,\"low_freq_factor\":1.0,"
                                 "\"high_freq_factor\":4.0,",
                      yarn[] = "\"rope_type\":\"yarn\",\"factor\":4.0,\"attn_factor\":0.8782488562869419,",
                      odd[] = "\"rope_type\":\"yarn\",\"factor\":4.0,\"oddness\":2,";
    const hone_convert_params p = { .note = hear, .note_arg = note };
    hf_llama(&f);
    f.config = edited(config, sizeof config, HF_LLAMA_CONFIG, llama3, yarn);
    hf_write(&f, at("yarn"));
    if (hone_convert_with(at("yarn"), at("yarn.gguf"), &p, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_non_null(strstr(note, "attn_factor = 0.878249 is not used"));
    assert_int_equal(hn_gguf_open(&g, at("yarn.gguf"), &err), HONE_OK);
    assert_int_equal(hn_gguf_get_f32(g, "llama.rope.scaling.factor", &x, NULL, &err), HONE_OK);
    assert_float_equal(x, 4, 0);
    assert_int_equal(hn_gguf_find(g, "llama.rope.scaling.attn_factor"), -1); /* the usual one */
    hn_gguf_close(g);
    f.config = edited(config, sizeof config, HF_LLAMA_CONFIG, llama3, odd);
    refused(&f, HONE_E_UNSUPPORTED, "HONE_IGNORE_KEYS=oddness");
    assert_int_equal(setenv("HONE_IGNORE_KEYS", "oddness", 1), 0);
    hf_write(&f, at("odd"));
    if (hone_convert_with(at("odd"), at("odd.gguf"), &p, NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    unsetenv("HONE_IGNORE_KEYS");
}

/* The first models that see say everything in one object, and their positions have parts. */
static void sees(void **state)
{
    (void)state;
    static const char vision[] = "\"vision_config\":{\"depth\":2},\"image_token_id\":7,\"vision_token_id\":8,";
    hf_folder f;
    hone_error err;
    char config[2048];
    for (int with = 0; with < 2; with++) {
        snprintf(config, sizeof config,
                 "{\"architectures\":[\"Qwen2_5_VLForConditionalGeneration\"],\"model_type\":\"qwen2_5_vl\",%s"
                 "\"hidden_size\":16,\"intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":4,"
                 "\"num_key_value_heads\":2,\"vocab_size\":32,\"max_position_embeddings\":64,\"rms_norm_eps\":1e-6,"
                 "\"rope_theta\":1e6,\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[1,2,1]}}",
                 with ? vision : "");
        f = (hf_folder){ .config = config };
        hf_add_all(&f, "lm_head.weight 32,16;" HF_EMBD "visual.patch_embed.proj.weight 3,2;",
                   HF_GLU "model.layers.#.self_attn.q_proj.weight 16,16;model.layers.#.self_attn.q_proj.bias 16;"
                          "model.layers.#.self_attn.k_proj.weight 8,16;model.layers.#.self_attn.k_proj.bias 8;"
                          "model.layers.#.self_attn.v_proj.weight 8,16;model.layers.#.self_attn.v_proj.bias 8;"
                          "model.layers.#.self_attn.o_proj.weight 16,16;",
                   2);
        if (!with) {
            refused(&f, HONE_E_FORMAT, "visual.patch_embed.proj.weight, of shape [3, 2], is no tensor");
            continue;
        }
        hf_write(&f, at("sees"));
        hn_gguf *g;
        if (hone_convert(at("sees"), NULL, NULL, at("sees.gguf"), NULL, &err) != HONE_OK) fail_msg("%s", err.message);
        assert_int_equal(hn_gguf_open(&g, at("sees.gguf"), &err), HONE_OK);
        hone_str arch = { "", 0 };
        assert_int_equal(hn_gguf_get_str(g, "general.architecture", &arch, NULL, &err), HONE_OK);
        assert_int_equal(arch.len, 5);
        assert_memory_equal(arch.ptr, "qwen2", 5);
        assert_non_null(hn_gguf_find_tensor(g, "blk.1.attn_k.bias"));
        assert_int_equal(hn_gguf_find(g, "qwen2.rope.scaling.type"), -1);
        hn_gguf_close(g);
    }
}

/* Numbers that a config may leave out. */
static void unsaid(void **state)
{
    hf_folder f;
    hone_error err;
    hn_gguf *g;
    uint32_t x = 0;
    char config[2048];
    hf_llama(&f);
    f.config =
        edited(config, sizeof config, f.config, "\"max_position_embeddings\":64", "\"max_position_embeddings\":null");
    hf_write(&f, at("unsaid"));
    if (hone_convert(at("unsaid"), NULL, NULL, at("unsaid.gguf"), NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hn_gguf_open(&g, at("unsaid.gguf"), &err), HONE_OK);
    assert_int_equal(hn_gguf_get_u32(g, "llama.context_length", &x, NULL, &err), HONE_OK);
    assert_int_equal(x, 2048);
    hn_gguf_close(g);
    hf_gemma4(&f); /* rotations of the class: a quarter of the pairs turns, windowed layers by another base */
    snprintf(config, sizeof config, "%.*s}", (int)(strstr(f.config, ",\"rope_parameters\"") - f.config), f.config);
    f.config = config;
    hf_write(&f, at("turns"));
    if (hone_convert(at("turns"), NULL, NULL, at("turns.gguf"), NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hn_gguf_open(&g, at("turns.gguf"), &err), HONE_OK);
    const hn_gguf_tensor *t = hn_gguf_find_tensor(g, "rope_freqs.weight");
    float base = 0, factor[8];
    assert_true(t && t->ne[0] == 8);
    memcpy(factor, t->data, sizeof factor);
    for (int i = 0; i < 8; i++) assert_true(i < 2 ? factor[i] == 1 : factor[i] == 1e30f);
    assert_int_equal(hn_gguf_get_f32(g, "gemma4.rope.freq_base_swa", &base, NULL, &err), HONE_OK);
    assert_true(base == 10000);
    hn_gguf_close(g);
    const struct {
        const char *name, *type, *says;
    } all[] = {
        { "MistralForCausalLM", "mistral", "k_proj.weight has shape [16, 16], expected [64, 16]" },
        { "Qwen3ForCausalLM", "qwen3", "q_proj.weight has shape [32, 16], expected [512, 16]" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        snprintf(config, sizeof config,
                 "{\"architectures\":[\"%s\"],\"model_type\":\"%s\",\"hidden_size\":16,\"intermediate_size\":24,%s%s"
                 "\"num_hidden_layers\":2,\"num_attention_heads\":%d,\"vocab_size\":32,\"rms_norm_eps\":1e-5}",
                 all[i].name, all[i].type, i ? "" : "\"head_dim\":8,", i ? "\"num_key_value_heads\":2," : "",
                 i ? 4 : 8);
        hf_llama(&f);
        f.config = config;
        if (!i)
            for (int k = 0; k < f.n; k++)
                if (strstr(f.t[k].name, "q_proj.weight")) f.t[k].shape[0] = 64;
        refused(&f, HONE_E_FORMAT, all[i].says);
    }
}

/* Whether both ends are one, a model of several inputs may say outside its text's config. */
static void nested_ends(void **state)
{
    hf_folder f;
    hone_error err;
    hn_gguf *g;
    char config[2048];
    hf_gemma2(&f);
    hf_add(&f, "lm_head.weight", "32,16");
    snprintf(config, sizeof config, "{\"model_type\":\"x\",\"tie_word_embeddings\":false,\"text_config\":%s}",
             HF_GEMMA2_CONFIG);
    f.config = config;
    hf_write(&f, at("ends"));
    if (hone_convert(at("ends"), NULL, NULL, at("ends.gguf"), NULL, &err) != HONE_OK) fail_msg("%s", err.message);
    assert_int_equal(hn_gguf_open(&g, at("ends.gguf"), &err), HONE_OK);
    assert_non_null(hn_gguf_find_tensor(g, "output.weight"));
    hn_gguf_close(g);
    snprintf(config, sizeof config, "{\"model_type\":\"x\",\"tie_word_embeddings\":true,\"text_config\":%s}",
             HF_GEMMA2_CONFIG);
    refused(&f, HONE_E_FORMAT, "tie_word_embeddings is true, but lm_head.weight differs");
}

/* Members of published configs that change nothing at these values; at others some are refused. */
static void as_published(void **state)
{
    static const struct {
        void (*folder)(hf_folder *);
        const char *members, *refused, *says; /* refused: in their place */
    } cases[] = {
        { hf_llama, /* SmolLM2, Falcon 3, ALLaM, copies by unsloth, the first LLaMA */
          "\"is_llama_config\":true,\"rope_interleaved\":false,\"activation\":\"swiglu\",\"internal_version\":\"7b\","
          "\"model_name\":\"x/y\",\"max_sequence_length\":64,\"output_past\":true",
          "\"is_llama_config\":false", "is_llama_config = false, expected true" },
        { hf_bert, /* bge-large-zh, bge-m3 */
          "\"output_past\":true,\"directionality\":\"bidi\",\"pooler_fc_size\":768,\"pooler_num_attention_heads\":12,"
          "\"pooler_num_fc_layers\":3,\"pooler_size_per_head\":128,\"pooler_type\":\"first_token_transform\","
          "\"sentence_transformers\":{\"version\":\"5\"},\"sbert_ce_default_activation_function\":\"Identity\"",
          "\"pooler_odd\":1", "\"pooler_odd\": 1 is unknown" },
        { hf_nomic, "\"parallel_block_tied_norm\":false", "\"parallel_block_tied_norm\":true",
          "parallel_block_tied_norm = true, expected false" },
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        char config[2048];
        hf_folder f;
        cases[i / 2].folder(&f);
        snprintf(config, sizeof config, "%.*s,%s}", (int)strlen(f.config) - 1, f.config,
                 i % 2 ? cases[i / 2].refused : cases[i / 2].members);
        f.config = config;
        if (i % 2) refused(&f, HONE_E_UNSUPPORTED, cases[i / 2].says);
        else hn_gguf_close(converted(&f, "published", NULL));
    }
}

/* Asked to stop at the k-th question, for each k: nothing is there afterwards. */
static int questions;
static bool stop(void *arg) { return questions-- == 0; }
static void stopped(void **state)
{
    const hone_progress pr = { NULL, NULL, stop };
    hone_error err;
    hf_folder f;
    hone_status st = HONE_E_INTERRUPTED;
    hf_gpt2(&f);
    hf_write(&f, at("stopped"));
    int k = 0, before = n_files();
    for (; st != HONE_OK; k++) {
        questions = k;
        st = hone_convert(at("stopped"), NULL, "Q8_0", at("stopped.gguf"), &pr, &err);
        assert_int_equal(st, questions < 0 ? HONE_E_INTERRUPTED : HONE_OK);
        assert_int_equal(n_files(), before + (st == HONE_OK));
    }
    assert_true(k > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama),
        cmocka_unit_test(internlm2),
        cmocka_unit_test(other_members),
        cmocka_unit_test(deci),
        cmocka_unit_test(ling),
        cmocka_unit_test(gemma2),
        cmocka_unit_test(gpt2),
        cmocka_unit_test(gptneox),
        cmocka_unit_test(nemotron),
        cmocka_unit_test(odd_sizes),
        cmocka_unit_test(containers),
        cmocka_unit_test(nested),
        cmocka_unit_test(sees),
        cmocka_unit_test(members_of_rope),
        cmocka_unit_test(configs_refused),
        cmocka_unit_test(formulas_refused),
        cmocka_unit_test(links_refused),
        cmocka_unit_test(tensors_refused),
        cmocka_unit_test(nested_ends),
        cmocka_unit_test(unsaid),
        cmocka_unit_test(as_published),
        cmocka_unit_test(stopped),
        cmocka_unit_test(numbers_refused),
        cmocka_unit_test(tied),
        cmocka_unit_test(layers),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
