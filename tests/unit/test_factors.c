/* Factors of matrices: NAME.scale beside NAME.weight, as files of NVFP4 have it. Vectors whose matrices are divided by
 * powers of two, with those as factors, must give the bits of the vectors as they are: products of both are exact. */
#include "engine/engine.h"
#include "family_vectors.h"
#include "model/lora.h"
#include "train/train.h"

#include <math.h>

enum { PAGE = 64, ROWS = MAX_TOK * MAX_VOCAB };

static bool has_factor(const char *name, size_t n_dim)
{
    static const char *const not [] = { "norm", "conv", "_embd", "ffn_gate_inp.", "per_layer_model" };
    if (n_dim < 2 || !ends(name, ".weight")) return false;
    for (size_t i = 0; i < sizeof not / sizeof *not ; i++)
        if (strstr(name, not [i])) return false;
    return true;
}

/* Matrix m of a tensor is divided by 2^(1 + m % 3), which its factor is. How many tensors have one. */
static int divide(vector *v)
{
    json_t *ts = json_object_get(v->j, "tensors");
    const bool gemma4 = !strcmp(json_string_value(json_object_get(v->j, "arch")), "gemma4");
    int n_divided = 0;
    for (size_t i = 0, end = json_array_size(ts); i < end; i++) {
        json_t *t = json_array_get(ts, i);
        const char *name = json_string_value(json_array_get(t, 0));
        char own[96];
        uint64_t ne[4];
        uint32_t n_dim;
        if (!has_factor(name, json_array_size(json_array_get(t, 1))) || (gemma4 && strstr(name, "ffn_down_exps")))
            continue; /* whose factors are the file's own */
        float *f = values_of(v, t, ne, &n_dim);
        const bool experts = strstr(name, "_exps") != NULL;
        const uint64_t n = ne[0] * ne[1] * ne[2] * ne[3], n_matrix = experts ? ne[2] : 1;
        json_t *values = json_array(), *factors = json_array();
        for (uint64_t m = 0; m < n_matrix; m++) {
            const double factor = (double)(2 << (m % 3));
            for (uint64_t k = 0; k < n / n_matrix; k++)
                json_array_append_new(values, json_real((double)f[m * (n / n_matrix) + k] / factor));
            json_array_append_new(factors, json_real(factor));
        }
        free(f);
        snprintf(own, sizeof own, "%.*s.scale", (int)(strlen(name) - strlen(".weight")), name);
        json_array_append_new(ts, json_pack("[s,[I],o]", own, (json_int_t)n_matrix, factors));
        snprintf(own, sizeof own, "%.*s.input_scale", (int)(strlen(name) - strlen(".weight")), name);
        json_array_append_new(ts, json_pack("[s,[i],[f]]", own, 1, 3.0));
        json_array_set_new(t, 2, values);
        n_divided++;
    }
    return n_divided;
}

/* adapter: NULL: none. */
static void answer_with(const vector *v, const char *path, const char *adapter, const char *cpu, int32_t threads,
                        int32_t chunk, float y[ROWS])
{
    hone_error err = { 0 };
    hone_model *m;
    hone_adapter *a = NULL;
    if (hone_model_open(&m, path, &(hone_model_params){ .packed = "auto" }, &err)) fail_msg("%s", err.message);
    hone_context *c = tm_context(cpu, threads);
    hone_session *s = tm_session(c, m, PAGE, 1, chunk, HONE_CACHE_F32);
    if (adapter && hone_adapter_open(&a, m, adapter, &err)) fail_msg("%s", err.message);
    if (a && hone_session_set_adapters(s, &a, NULL, 1, &err)) fail_msg("%s", err.message);
    memset(y, 0, ROWS * sizeof *y);
    tm_run(s, 0, v->tok, v->n, y);
    hone_session_free(s);
    hone_adapter_close(a);
    hone_context_free(c);
    hone_model_close(m);
}

static void answer(const vector *v, const char *path, const char *cpu, int32_t threads, int32_t chunk, float y[ROWS])
{
    answer_with(v, path, NULL, cpu, threads, chunk, y);
}

static void factors_are_of_the_product(void **state)
{
    static const char *const files[] = { "mistral",       "gpt2",       "mixtral",    "gptoss",
                                         "gemma4moe",     "glm47flash", "kimilinear", "qwen3next",
                                         "nemotronsuper", "falconh1",   "lfm2moe",    "qwen2moe" };
    (void)state;
    float y[2][ROWS];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (uint64_t types = 0; types < 2; types++) {
            char file[64];
            snprintf(file, sizeof file, "%s.json", files[i]);
            vector v = load(file);
            v.types = types;
            save_without(&v, tm_path("plain.gguf"), NULL);
            answer(&v, tm_path("plain.gguf"), NULL, 1, v.n, y[0]);
            assert_in_range(divide(&v), 4, 1000);
            save_without(&v, tm_path("divided.gguf"), NULL);
            answer(&v, tm_path("divided.gguf"), NULL, 1, v.n, y[1]);
            if (memcmp(y[0], y[1], sizeof *y)) fail_msg("%s: other bits with factors", v.name);
            answer(&v, tm_path("divided.gguf"), "scalar", 3, 3, y[1]);
            if (memcmp(y[0], y[1], sizeof *y)) fail_msg("%s: other bits with factors, scalar", v.name);
            json_decref(v.j);
        }
}

/* A packed file has them as vectors. */
static void packed_too(void **state)
{
    (void)state;
    hone_error err = { 0 };
    float y[2][ROWS];
    vector v = load("qwen2moe.json");
    v.types = 1;
    save_without(&v, tm_path("plain.gguf"), NULL);
    answer(&v, tm_path("plain.gguf"), NULL, 1, v.n, y[0]);
    divide(&v);
    save_without(&v, tm_path("divided.gguf"), NULL);
    const hone_pack_params force = { .force = true };
    if (hone_pack(tm_path("divided.gguf"), &force, NULL, NULL, &err)) fail_msg("%s", err.message);
    answer(&v, tm_path("divided.gguf"), NULL, 1, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    assert_int_equal(remove(tm_path("divided.gguf.hpack")), 0);
    json_decref(v.j);
}

/* Keys and values in one matrix: both halves have its factor. */
static void halves_have_the_whole_ones(void **state)
{
    (void)state;
    float y[2][ROWS];
    vector v = load("glm47flash.json");
    save_as(&v, tm_path("plain.gguf"), NULL, KV_B);
    answer(&v, tm_path("plain.gguf"), NULL, 1, v.n, y[0]);
    json_t *ts = json_object_get(v.j, "tensors");
    for (size_t i = 0, end = json_array_size(ts); i < end; i++) {
        json_t *t = json_array_get(ts, i);
        const char *name = json_string_value(json_array_get(t, 0));
        char own[96];
        if (!ends(name, "attn_k_b.weight") && !ends(name, "attn_v_b.weight")) continue;
        json_array_set_new(t, 2, json_real(json_number_value(json_array_get(t, 2)) / 4));
        if (ends(name, "attn_v_b.weight")) continue;
        snprintf(own, sizeof own, "%.*skv_b.scale", (int)(strlen(name) - strlen("k_b.weight")), name);
        json_array_append_new(ts, json_pack("[s,[i],[f]]", own, 1, 4.0));
    }
    save_as(&v, tm_path("divided.gguf"), NULL, KV_B);
    answer(&v, tm_path("divided.gguf"), NULL, 1, v.n, y[1]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    json_decref(v.j);
}

/* An adapter is added behind the factor; merged, it is in the units of the matrix. */
static void adapters_are_not_multiplied(void **state)
{
    (void)state;
    hone_error err = { 0 };
    float y[3][ROWS], a[32], b[32];
    double far = 0;
    vector v = load("mistral.json");
    const char *adapter = tm_path("a.gguf");
    for (int i = 0; i < 32; i++) a[i] = b[i] = (float)(i % 5 - 2) / 4;
    hn_lora_pair pair = {
        .name = "blk.0.attn_output.weight", .n_in = 32, .n_out = 32, .rank = 1, .scale = 1, .a = a, .b = b
    };
    const hn_lora_about about = { .name = "a", .arch = "llama", .alpha = 1, .type = HN_F32 };
    if (hn_lora_write_gguf(adapter, &pair, 1, &about, &err)) fail_msg("%s", err.message);
    save_without(&v, tm_path("plain.gguf"), NULL);
    answer(&v, tm_path("plain.gguf"), NULL, 1, v.n, y[0]);
    answer_with(&v, tm_path("plain.gguf"), adapter, NULL, 1, v.n, y[1]);
    assert_memory_not_equal(y[0], y[1], sizeof *y);
    divide(&v);
    save_without(&v, tm_path("divided.gguf"), NULL);
    answer_with(&v, tm_path("divided.gguf"), adapter, NULL, 1, v.n, y[0]);
    assert_memory_equal(y[0], y[1], sizeof *y);
    const hone_merge_params p = { .base = tm_path("divided.gguf"), .adapters = &adapter, .n_adapters = 1 };
    if (hone_merge(&p, tm_path("merged.gguf"), NULL, &err)) fail_msg("%s", err.message);
    answer(&v, tm_path("merged.gguf"), NULL, 1, v.n, y[2]);
    for (int i = 0; i < v.n * v.n_vocab; i++) far = fmax(far, fabs((double)y[2][i] - (double)y[1][i]));
    if (!(far <= 1e-4)) fail_msg("merged: %g apart", far);
    json_decref(v.j);
}

/* Who takes the numbers for the model's says so; so does a file whose factors are not those of the matrix. */
static void refused_by_name(void **state)
{
    (void)state;
    hone_error err = { 0 };
    hone_model *m;
    const hone_convert_params p = { 0 };
    vector v = load("mistral.json");
    divide(&v);
    save_without(&v, tm_path("divided.gguf"), NULL);
    if (hone_model_open(&m, tm_path("divided.gguf"), NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(hn_grad_check(m, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, ".scale"));
    hone_model_close(m);
    assert_int_not_equal(hone_convert_with(tm_path("divided.gguf"), tm_path("folder/"), &p, NULL, &err), HONE_OK);
    if (!strstr(err.message, ".scale")) fail_msg("%s", err.message);
    json_t *ts = json_object_get(v.j, "tensors");
    json_array_append_new(ts, json_pack("[s,[i],[f,f]]", "token_embd.scale", 2, 1.0, 2.0));
    save_without(&v, tm_path("divided.gguf"), NULL);
    assert_int_equal(hone_model_open(&m, tm_path("divided.gguf"), NULL, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "token_embd.scale"));
    json_array_remove(ts, json_array_size(ts) - 1);
    for (size_t i = 0; i < json_array_size(ts); i++)
        if (!strcmp(json_string_value(json_array_get(json_array_get(ts, i), 0)), "blk.0.attn_q.scale"))
            json_array_set_new(ts, i, json_pack("[s,[i],[f,f]]", "blk.0.attn_q.scale", 2, 1.0, 2.0));
    save_without(&v, tm_path("divided.gguf"), NULL);
    assert_int_equal(hone_model_open(&m, tm_path("divided.gguf"), NULL, &err), HONE_E_FORMAT);
    assert_non_null(strstr(err.message, "blk.0.attn_q.scale"));
    json_decref(v.j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_are_of_the_product),
        cmocka_unit_test(packed_too),
        cmocka_unit_test(halves_have_the_whole_ones),
        cmocka_unit_test(adapters_are_not_multiplied),
        cmocka_unit_test(refused_by_name),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
