/* Folders of Apertus, where what layers have learnt of their map stands in tensors of one value, of Cohere's mixtures,
 * whose config says what a layer is in two lists, and of ModernBERT, whose list of layers may be wrong. */
#include "hf_files.h"

#include "gguf/gguf.h"

#define L "model.layers.#."
#define LAYER                                                                                                  \
    L "self_attn.q_proj.weight 32,16;" L "self_attn.k_proj.weight 16,16;" L "self_attn.v_proj.weight 16,16;" L \
      "self_attn.o_proj.weight 16,32;" L "self_attn.q_norm.weight 8;" L "self_attn.k_norm.weight 8;" L         \
      "attention_layernorm.weight 16;" L "feedforward_layernorm.weight 16;" L "mlp.up_proj.weight 24,16;" L    \
      "mlp.down_proj.weight 16,24;" L "mlp.act_fn.alpha_n 1;" L "mlp.act_fn.beta 1;" L "mlp.act_fn.eps 1;"
#define CONFIG                                                                                                         \
    "{\"architectures\":[\"ApertusForCausalLM\"],\"model_type\":\"apertus\",\"hidden_size\":16,\"intermediate_size\":" \
    "24,\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"vocab_size\":32,\"head_dim\":8," \
    "\"max_position_embeddings\":64,\"rms_norm_eps\":1e-5,\"tie_word_embeddings\":false,\"hidden_act\":\"xielu\"}"

static char folder[] = "/tmp/hone-learnt-XXXXXX";

static void apertus_folder(hf_folder *f, const char *alpha)
{
    *f = (hf_folder){ .config = CONFIG, .bf16 = true };
    hf_add_all(f, "lm_head.weight 32,16;model.embed_tokens.weight 32,16;model.norm.weight 16;", LAYER, 2);
    if (alpha) hf_add_all(f, NULL, alpha, 2);
}

static hone_status converted(const char *alpha, char *file, size_t cap, hone_error *err)
{
    hf_folder f;
    apertus_folder(&f, alpha);
    hf_write(&f, folder);
    snprintf(file, cap, "%s/a.gguf", folder);
    unlink(file);
    return hone_convert(folder, NULL, NULL, file, NULL, err);
}

static void numbers_of_layers_become_keys(void **state)
{
    static const char *const names[] = { "alpha_p", "alpha_n", "beta", "eps" };
    char file[160], key[64], tensor[96];
    hone_error err = { 0 };
    hn_gguf *g;
    hn_gguf_array a;
    float v[2];
    if (converted(L "mlp.act_fn.alpha_p 1;", file, sizeof file, &err)) fail_msg("%s", err.message);
    assert_int_equal(hn_gguf_open(&g, file, &err), HONE_OK);
    for (int i = 0; i < 4; i++) {
        snprintf(key, sizeof key, "xielu.%s", names[i]);
        const int64_t at = hn_gguf_find(g, key);
        assert_true(at >= 0 && hn_gguf_kv_array(g, (uint64_t)at, &a) && a.count == 2 && a.elem_type == HONE_KV_F32);
        memcpy(v, a.data, sizeof v);
        for (int il = 0; il < 2; il++) {
            snprintf(tensor, sizeof tensor, "model.layers.%d.mlp.act_fn.%s", il, names[i]);
            assert_true(v[il] == hf_value(tensor, 0));
        }
    }
    assert_int_equal(hn_gguf_n_tensors(g), 3 + 2 * 10 + 1); /* and factors of angles, which such a config means */
    assert_non_null(hn_gguf_find_tensor(g, "blk.1.ffn_norm.weight"));
    assert_non_null(hn_gguf_find_tensor(g, "rope_freqs.weight"));
    hn_gguf_close(g);
    unlink(file);
}

static void numbers_that_are_none(void **state)
{
    char file[160];
    hone_error err = { 0 };
    assert_int_equal(converted(NULL, file, sizeof file, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "has no tensor model.layers.0.mlp.act_fn.alpha_p"));
    assert_int_equal(converted(L "mlp.act_fn.alpha_p 2;", file, sizeof file, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "alpha_p is of shape"));
    assert_int_not_equal(access(file, F_OK), 0);
}

#define COHERE(more)                                                                                                   \
    "{\"architectures\":[\"Cohere2MoeForCausalLM\"],\"model_type\":\"cohere2_moe\",\"hidden_size\":16,"                \
    "\"intermediate_size\":8,\"prefix_dense_intermediate_size\":24,\"num_hidden_layers\":2,\"num_attention_heads\":4," \
    "\"num_key_value_heads\":2,\"vocab_size\":32,\"head_dim\":8,\"max_position_embeddings\":64,\"num_experts\":2,"     \
    "\"num_experts_per_tok\":1,\"num_shared_experts\":2,\"first_k_dense_replace\":1" more "}"

static hone_status cohere(const char *config, char *file, size_t cap, hone_error *err)
{
    static const char *const mlp[] = { "0.mlp", "1.mlp.experts.0", "1.mlp.experts.1", "1.mlp.shared_experts" };
    static const char *const rows[] = { "24,16", "8,16", "8,16", "16,16" }, *const down[] = { "16,24", "16,8", "16,8",
                                                                                              "16,16" };
    hf_folder f = { .config = config };
    char name[96];
    hf_add_all(&f, "model.embed_tokens.weight 32,16;model.norm.weight 16;model.layers.1.mlp.gate.weight 2,16;",
               L "self_attn.q_proj.weight 32,16;" L "self_attn.k_proj.weight 16,16;" L
                 "self_attn.v_proj.weight 16,16;" L "self_attn.o_proj.weight 16,32;" L "input_layernorm.weight 16;",
               2);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            static const char *const parts[] = { "gate_proj", "up_proj", "down_proj" };
            snprintf(name, sizeof name, "model.layers.%s.%s.weight", mlp[i], parts[k]);
            hf_add(&f, name, k < 2 ? rows[i] : down[i]);
        }
    hf_write(&f, folder);
    snprintf(file, cap, "%s/a.gguf", folder);
    unlink(file);
    return hone_convert(folder, NULL, NULL, file, NULL, err);
}

static uint32_t u32(const hn_gguf *g, const char *key)
{
    uint32_t v = 0;
    bool found = false;
    assert_true(hn_gguf_get_u32(g, key, &v, &found, NULL) == HONE_OK && found);
    return v;
}

static void coheres_layers(void **state)
{
    char file[160];
    hone_error err = { 0 };
    hn_gguf *g;
    hn_gguf_array a;
    float eps = 0;
    if (cohere(COHERE(""), file, sizeof file, &err)) fail_msg("%s", err.message);
    assert_int_equal(hn_gguf_open(&g, file, &err), HONE_OK);
    const int64_t at = hn_gguf_find(g, "cohere2moe.attention.sliding_window_pattern");
    assert_true(at >= 0 && hn_gguf_kv_array(g, (uint64_t)at, &a) && a.count == 2 && !a.data[0] && a.data[1] == 1);
    assert_int_equal(u32(g, "cohere2moe.leading_dense_block_count"), 1);
    assert_int_equal(u32(g, "cohere2moe.feed_forward_length"), 24);
    assert_int_equal(u32(g, "cohere2moe.expert_feed_forward_length"), 8);
    assert_int_equal(u32(g, "cohere2moe.expert_shared_feed_forward_length"), 16);
    assert_int_equal(u32(g, "cohere2moe.expert_gating_func"), 1); /* a softmax, where the config does not say */
    assert_true(hn_gguf_get_f32(g, "cohere2moe.attention.layer_norm_epsilon", &eps, NULL, NULL) == HONE_OK);
    assert_true(eps == 1e-5F && hn_gguf_find(g, "cohere2moe.attention.layer_norm_rms_epsilon") < 0);
    hn_gguf_close(g);
    unlink(file);
    assert_int_equal(cohere(COHERE(",\"shared_expert_combination_strategy\":\"sum\""), file, sizeof file, &err),
                     HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "shared_expert_combination_strategy"));
    assert_int_equal(cohere(COHERE(",\"prefix_dense_sliding_window_pattern\":2"), file, sizeof file, &err),
                     HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "prefix_dense_sliding_window_pattern = 2, expected 1"));
}

/* What becomes of ModernBERT's config with `text` in place of `old`. */
static hone_status modern(const char *old, const char *text, char *file, size_t cap, hone_error *err)
{
    hf_folder f;
    char config[1024];
    hf_modern(&f, false);
    const char *at = strstr(f.config, old);
    assert_non_null(at);
    snprintf(config, sizeof config, "%.*s%s%s", (int)(at - f.config), f.config, text, at + strlen(old));
    f.config = config;
    hf_write(&f, folder);
    snprintf(file, cap, "%s/a.gguf", folder);
    unlink(file);
    return hone_convert(folder, NULL, NULL, file, NULL, err);
}

#define FULL "\"full_attention\""
#define LOCAL "\"sliding_attention\""
static void moderns_layers(void **state)
{
    static const char pooling[] = "\"classifier_pooling\":\"mean\"";
    static const struct {
        const char *list, *words;
    } wrong[] = {
        { "[" FULL "," LOCAL "]", "layer_types has 2 entries, expected one for each of 4 layers" },
        { "[" FULL "," LOCAL "," LOCAL "," FULL "," LOCAL "]", "layer_types has 5 entries" },
        { "[]", "layer_types has 0 entries" },
        { "[" FULL "," LOCAL "," LOCAL ",\"chunked_attention\"]", "layer_types[3] = \"chunked_attention\", expected" },
        { "[" FULL "," LOCAL "," LOCAL ",4]", "layer_types[3] = 4, expected sliding_attention or full_attention" },
    };
    char file[160], text[256];
    hone_error err = { 0 };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(text, sizeof text, "%s,\"layer_types\":%s", pooling, wrong[i].list);
        assert_int_not_equal(modern(pooling, text, file, sizeof file, &err), HONE_OK);
        if (!strstr(err.message, wrong[i].words)) fail_msg("not \"%s\": %s", wrong[i].words, err.message);
    }
    snprintf(text, sizeof text, "%s,\"layer_types\":[" FULL "," LOCAL "," LOCAL "," FULL "]", pooling);
    if (modern(pooling, text, file, sizeof file, &err)) fail_msg("%s", err.message);
}

/* A local base that is said to be none is that of layers that see everything; not said it is 10000. */
static void moderns_bases(void **state)
{
    static const char theta[] = "\"local_rope_theta\":10000.0,";
    static const struct {
        const char *text;
        float base;
    } of[] = { { "\"local_rope_theta\":null,", 160000 }, { "", 10000 }, { "\"local_rope_theta\":500,", 500 } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char file[160];
        hone_error err = { 0 };
        hn_gguf *g;
        float base = 0;
        if (modern(theta, of[i].text, file, sizeof file, &err)) fail_msg("%s", err.message);
        assert_int_equal(hn_gguf_open(&g, file, &err), HONE_OK);
        assert_int_equal(hn_gguf_get_f32(g, "modern-bert.rope.freq_base_swa", &base, NULL, &err), HONE_OK);
        assert_true(base == of[i].base);
        hn_gguf_close(g);
    }
}

static int make(void **state) { return mkdtemp(folder) ? 0 : -1; }
static int gone(void **state) { return hf_remove(folder); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_layers_become_keys),
        cmocka_unit_test(numbers_that_are_none),
        cmocka_unit_test(coheres_layers),
        cmocka_unit_test(moderns_layers),
        cmocka_unit_test(moderns_bases),
    };
    return cmocka_run_group_tests(tests, make, gone);
}
