/* Metadata of the families: what real converters write opens without a word; what would be another formula, or may be,
 * is
 * refused by name and value, and runs only for those who ask for it; magnitudes of YaRN; windows. */
#include "tiny_rwkv.h"

#include "model/model.h"

#include <math.h>

enum { N_FAMILY = 5 };

static tiny *of_family(int f)
{
    static const tm_shape *const shapes[] = { &tm_llama, &tm_qwen2, &tm_qwen3 };
    return f < 3 ? tm_new(*shapes[f]) : rw_new(f == 3 ? &rw_vec6 : &rw_vec7);
}

/* Opens m with a list of keys to ignore. */
static hone_status open_with(const tiny *m, const char *ignore, hone_model_info *info, hone_error *err)
{
    hone_model *model;
    tm_save_raw(m, tm_path("keys.gguf"));
    hone_status st = hone_model_open(&model, tm_path("keys.gguf"), &(hone_model_params){ .ignore_keys = ignore }, err);
    static char ignored[256], note[600];
    if (st == HONE_OK) {
        hone_model_get_info(model, info);
        snprintf(ignored, sizeof ignored, "%s", info->ignored_keys);
        snprintf(note, sizeof note, "%s", info->formula_note);
        info->ignored_keys = ignored;
        info->formula_note = note;
    } else {
        assert_null(model);
    }
    hone_model_close(model);
    return st;
}

static void accepted(const tiny *m)
{
    hone_error err = { 0 };
    hone_model_info info;
    if (open_with(m, NULL, &info, &err)) fail_msg("%s", err.message);
    assert_string_equal(info.ignored_keys, "");
    assert_string_equal(info.formula_note, "");
}

/* Refused by key and value; goes on when the key is listed, and then says so. */
static void refused(const tiny *m, const char *key, const char *value)
{
    hone_error err = { 0 };
    hone_model_info info;
    char list[256], note[256];
    hone_status st = open_with(m, NULL, &info, &err);
    if (st != HONE_E_UNSUPPORTED) fail_msg("%s = %s: %s, %s", key, value, hone_status_name(st), err.message);
    snprintf(note, sizeof note, "%s = %s", key, value);
    if (!strstr(err.message, note) || !strstr(err.message, "expected") || !strstr(err.message, "HONE_IGNORE_KEYS"))
        fail_msg("not \"%s\": %s", note, err.message);
    snprintf(list, sizeof list, "not.this, %s ,nor.that", key);
    if (open_with(m, list, &info, &err)) fail_msg("%s", err.message);
    assert_string_equal(info.ignored_keys, note);
    snprintf(list, sizeof list, "%sx,x%s,%.*s", key, key, (int)strlen(key) - 1, key); /* names are whole */
    assert_int_equal(open_with(m, list, &info, &err), HONE_E_UNSUPPORTED);
    assert_int_equal(setenv("HONE_IGNORE_KEYS", key, 1), 0);
    assert_int_equal(open_with(m, NULL, &info, &err), HONE_OK);
    assert_string_equal(info.ignored_keys, note);
    assert_int_equal(open_with(m, "", &info, &err), HONE_E_UNSUPPORTED); /* as given, not the environment */
    assert_int_equal(unsetenv("HONE_IGNORE_KEYS"), 0);
}

/* ---- lists ------------------------------------------------------------------------------------- */

/* Keys that ggml-org/llama.cpp's converter writes for these families (conversion/base.py, llama.py, qwen.py, rwkv.py),
 * besides those a tiny model has. */
static void of_converters(void **state)
{
    for (int f = 0; f < N_FAMILY; f++) {
        tiny *m = of_family(f);
        tm_put_u32(m, tm_key(m, "vocab_size"), 16);
        tm_put_u32(m, tm_key(m, "pooling_type"), 0);
        tm_put_u32(m, "general.quantization_version", 2);
        tm_put_str(m, "general.base_model.0.name", "x");
        tm_put_u32(m, "split.count", 0);
        tm_put_f32(m, "general.sampling.temp", 0.6f);
        tm_put_u32(m, "other.attention.clamp_kqv", 8); /* of no family here */
        tm_put_u32(m, "hone.own", 1);
        if (f < 3) {
            tm_put_f32(m, tm_key(m, "attention.layer_norm_epsilon"), 1e-5f);
            tm_put_u32(m, tm_key(m, "rope.dimension_count"), (uint32_t)m->s.d);
            tm_put_str(m, tm_key(m, "rope.scaling.type"), "yarn");
            tm_put_f32(m, tm_key(m, "rope.scaling.factor"), 4);
            tm_put_u32(m, tm_key(m, "rope.scaling.original_context_length"), 512);
            tm_put_f32(m, tm_key(m, "rope.scaling.attn_factor"), 1);
            tm_put_f32(m, tm_key(m, "rope.scaling.yarn_beta_fast"), 32);
            tm_put_f32(m, tm_key(m, "rope.scaling.yarn_beta_slow"), 1);
            tm_put_f32(m, tm_key(m, "rope.scaling.yarn_ext_factor"), 1);
            bb_u8(tm_put(m, tm_key(m, "rope.scaling.finetuned"), HONE_KV_BOOL), 1);
            tm_put_u32(m, tm_key(m, "attention.sliding_window"), 0);
            bb_u8(tm_put(m, tm_key(m, "attention.causal"), HONE_KV_BOOL), 1);
            bb_u8(tm_put(m, tm_key(m, "use_parallel_residual"), HONE_KV_BOOL), 0);
            tm_put_str(m, tm_key(m, "tensor_data_layout"), f ? "reference" : "Meta AI original pth");
            tm_put_u32(m, tm_key(m, "expert_count"), 0);
            tm_put_u32(m, tm_key(m, "expert_used_count"), 0);
            if (f) tm_put_u32s(m, tm_key(m, "rope.dimension_sections"), 3, 2);
            /* ollama's converter, and files that have images and sound beside the text */
            if (f) tm_put_u32s(m, tm_key(m, "rope.mrope_section"), 3, 2);
            tm_put_u32(m, tm_key(m, "attention.head_dim"), (uint32_t)m->s.d);
            tm_put_u32(m, tm_key(m, "vision.block_count"), 27);
            tm_put_u32(m, tm_key(m, "audio.block_count"), 12);
            tm_put_u32(m, tm_key(m, "mm.tokens_per_image"), 256);
            tm_put_u32(m, tm_key(m, "image_token_id"), 5);
        } else {
            tm_put_u32(m, tm_key(m, "token_shift_count"), 2);
            tm_put_u32(m, tm_key(m, "attention.head_count_kv"), 0);
            tm_put_u32(m, tm_key(m, "rescale_every_n_layers"), 0);
        }
        accepted(m);
        tm_free(m);
    }
}

/* What nobody knows, in all types of a value, in all families. */
static void unknown(void **state)
{
    static const struct {
        const char *suffix;
        uint32_t type;
        double v;
        const char *words;
    } list[] = {
        { "new_formula", HONE_KV_U32, 3, "3" },
        { "attention.mystery", HONE_KV_F32, 0.5, "0.5" },
        { "zero", HONE_KV_U32, 0, "0" },
        { "flag", HONE_KV_BOOL, 1, "true" },
        { "no_flag", HONE_KV_BOOL, 0, "false" },
        { "name", HONE_KV_STRING, 0, "\"gelu\"" },
        { "list", HONE_KV_ARRAY, 7, "an array of 3 u32" },
        { "attention.scaled", HONE_KV_I8, -1, "-1" },
        { "contextlength", HONE_KV_U32, 1, "1" },
        { "attention.head_count.extra", HONE_KV_U32, 4, "4" },
        { "rope", HONE_KV_U32, 4, "4" },
        { "x", HONE_KV_U32, 1, "1" },
    };
    for (int f = 0; f < N_FAMILY; f++)
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            tiny *m = of_family(f);
            char key[96];
            snprintf(key, sizeof key, "%s", tm_key(m, list[i].suffix));
            if (list[i].type == HONE_KV_U32) tm_put_u32(m, key, (uint32_t)list[i].v);
            else if (list[i].type == HONE_KV_F32) tm_put_f32(m, key, (float)list[i].v);
            else if (list[i].type == HONE_KV_STRING) tm_put_str(m, key, "gelu");
            else if (list[i].type == HONE_KV_ARRAY) tm_put_u32s(m, key, 3, 7);
            else bb_u8(tm_put(m, key, list[i].type), (uint8_t)(int)list[i].v);
            refused(m, key, list[i].words);
            tm_free(m);
        }
}

/* Keys of a formula hone has not: harmless at one value. */
static void neutral(void **state)
{
    enum { ATTN = 7, RWKV = 24, ALL = 31 };
    static const struct {
        const char *suffix;
        int families;
        float bad, good;
        const char *words;
    } list[] = {
        { "attention.clamp_kqv", ALL, 8, 0, "8" },
        { "attention.max_alibi_bias", ALL, 8, 0, "8" },
        { "attention.temperature_scale", ALL, 0.1f, 0, "0.100000001" },
        { "attention.temperature_length", ALL, 4096, 0, "4096" },
        { "attention.output_scale", ALL, 0.5f, 1, "0.5" },
        { "attention.value_scale", ALL, 2, 1, "2" },
        { "rope.scaling.alpha", ALL, 1000, 1, "1000" },
        { "rope.scaling.yarn_log_multiplier", ALL & ~1, 0.125f, 0, "0.125" },
        { "logit_scale", ALL, 0.0625f, 1, "0.0625" },
        { "residual_scale", ALL, 0.25f, 1, "0.25" },
        { "embedding_scale", ALL, 12, 1, "12" },
        { "attn_logit_softcapping", ALL, 50, 0, "50" },
        { "final_logit_softcapping", ALL, 30, 0, "30" },
        { "activation_sparsity_scale", ALL, 1, 0, "1" },
        { "attention.scale", 1, 0.5f, 0.35355339f, "0.5" },
        { "rope.freq_base_swa", 1, 5000, 10000, "5000" },
        { "embedding_length_out", 1, 8, 32, "8" },
        { "attention.key_length_swa", 1, 16, 8, "16" },
        { "rope.dimension_count_swa", 1, 4, 8, "4" },
        { "attention.rope_pattern", ALL, 0, 1, "0" },
        { "attention.causal", ALL, 0, 1, "0" },
        { "nextn_predict_layers", ALL, 1, 0, "1" },
        { "attention.shared_kv_layers", ALL, 2, 0, "2" },
        { "swiglu_clamp_exp", ALL, 7, 0, "7" },
        { "attention.group_norm_epsilon", RWKV, 0.001953125f, 64e-5f, "0.001953125" },
        { "expert_count", RWKV, 8, 0, "8" },
        { "attention.sliding_window", RWKV, 128, 0, "128" },
        { "rescale_every_n_layers", ATTN | 16, 6, 0, "6" },
        { "ssm.state_size", ALL, 16, 0, "16" },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int f = 0; f < N_FAMILY; f++) {
            if (!(list[i].families >> f & 1)) continue;
            tiny *m = of_family(f);
            char key[96];
            snprintf(key, sizeof key, "%s", tm_key(m, list[i].suffix));
            tm_put_f32(m, key, list[i].bad);
            refused(m, key, list[i].words);
            tm_put_f32(m, key, list[i].good);
            accepted(m);
            if (list[i].bad != 0) tm_put_u32(m, key, 0), accepted(m); /* none */
            hone_error err = { 0 };
            hone_model_info info;
            tm_put_str(m, key, "1");
            assert_int_equal(open_with(m, NULL, &info, &err), HONE_E_FORMAT);
            tm_put_f32(m, key, NAN);
            assert_int_not_equal(open_with(m, NULL, &info, &err), HONE_OK);
            tm_free(m);
        }
    tiny *m = of_family(0); /* one value per layer */
    tm_put_u32s(m, "llama.attention.clamp_kqv", 2, 0);
    accepted(m);
    tm_put_u32s(m, "llama.attention.clamp_kqv", 2, 3);
    refused(m, "llama.attention.clamp_kqv", "an array of 2 u32");
    tm_put_str(m, "llama.attention.clamp_kqv", "0");
    tm_drop_kv(m, "llama.attention.clamp_kqv");
    tm_put_str(m, "llama.tensor_data_layout", "jploski");
    refused(m, "llama.tensor_data_layout", "\"jploski\"");
    tm_put_str(m, "llama.tensor_data_layout", "reference");
    tm_put_str(m, "llama.hidden_activation", "gelu");
    refused(m, "llama.hidden_activation", "\"gelu\"");
    tm_free(m);
}

/* ---- YaRN ---------------------------------------------------------------------------------------- */

/* Magnitudes as ggml-org/llama.cpp computes them (src/llama-context.cpp of llama-cpp-python 0.3.36, f32), and where
 * attn_factor is 1 as transformers 5.23 does (modeling_rope_utils.py, without attention_factor): both by Python from
 * their formulas. noted: yarn_attn_factor, the whole magnitude in files made from Hugging Face's, is another number. */
static void yarn(void **state)
{
    static const struct {
        float factor, attn, yarn_attn;
        double want;
        bool noted;
    } list[] = {
        { 4, 1, 0, 1.138629436, false },
        { 4, 1, 1, 1.138629436, false },
        { 4, 1, 1.1386294f, 1.138629436, false },
        { 4, 1, 2, 1.138629436, true },
        { 8, 0.75f, 1, 0.905958116, false },
        { 8, 0.75f, 3, 0.905958116, true },
        { 40, 1, 0.5f, 1.368887945, true },
        { 0.5f, 1, 0, 1.0, false },
        { 0.5f, 1.25f, 0, 1.25, false },
        { 32, 1.3465736f, 1, 1.813260436, false },
        { 1, 1, 0, 1, false },
    };
    for (int f = 0; f < 3; f++)
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            tiny *m = of_family(f);
            tm_put_str(m, tm_key(m, "rope.scaling.type"), "yarn");
            tm_put_f32(m, tm_key(m, "rope.scaling.factor"), list[i].factor);
            tm_put_u32(m, tm_key(m, "rope.scaling.original_context_length"), 256);
            if (list[i].attn != 1) tm_put_f32(m, tm_key(m, "rope.scaling.attn_factor"), list[i].attn);
            if (list[i].yarn_attn != 0) tm_put_f32(m, tm_key(m, "rope.scaling.yarn_attn_factor"), list[i].yarn_attn);
            hone_model *model = tm_open(m);
            hone_model_info info;
            hone_model_get_info(model, &info);
            if (fabs((double)model->hp.rope[0].mscale - list[i].want) > 3e-7)
                fail_msg("case %zu: %.9g, expected %.9g", i, (double)model->hp.rope[0].mscale, list[i].want);
            assert_int_equal(strstr(info.formula_note, "rope.scaling.yarn_attn_factor = ") != NULL, list[i].noted);
            if (!list[i].noted) assert_string_equal(info.formula_note, "");
            hone_model_close(model);
            tm_free(m);
        }
}

/* ---- windows --------------------------------------------------------------------------------------- */

static void windows(void **state)
{
    for (int f = 0; f < 3; f++) {
        tiny *m = of_family(f); /* context_length 2048 */
        hone_model_info info;
        hone_error err = { 0 };
        static const uint32_t list[][3] = {
            { 0, 0, 2048 }, { 2048, 0, 2048 }, { 4096, 0, 2048 }, { 512, 512, 512 }, { 1, 1, 1 }
        };
        for (size_t i = 0; i < 5; i++) {
            tm_put_u32(m, tm_key(m, "attention.sliding_window"), list[i][0]);
            tm_put_u32s(m, tm_key(m, "attention.sliding_window_pattern"), 2, 1);
            if (open_with(m, NULL, &info, &err)) fail_msg("%s", err.message);
            assert_int_equal(info.n_window, list[i][1]);
            assert_int_equal(info.n_ctx_train, list[i][2]);
        }
        tm_free(m);
    }
}

/* Token 5 is never picked from then on, whatever is asked for it. */
static void suppressed(tiny *m)
{
    float logits[16];
    hone_model *model;
    hone_sampler *s;
    hone_error err = { 0 };
    int32_t id;
    for (int i = 0; i < 16; i++) logits[i] = i == 5 ? 9 : i == 6 ? 8 : (float)-i;
    tm_save_raw(m, tm_path("suppress.gguf"));
    assert_int_equal(hone_model_open(&model, tm_path("suppress.gguf"), NULL, &err), HONE_OK);
    assert_int_equal(hone_sampler_new(&s, 16, &(hone_sampler_params){ .repeat_penalty = 1 }, &err), HONE_OK);
    assert_int_equal(hone_sampler_pick(s, logits, 0, 0, &id, &err), HONE_OK);
    assert_int_equal(id, 5);
    assert_int_equal(hone_sampler_suppress(s, model, &err), HONE_OK);
    assert_int_equal(hone_sampler_pick(s, logits, 0, 0, &id, &err), HONE_OK);
    assert_int_equal(id, 6);
    hone_pick p = { .bias = &(hone_bias){ 5, 1000 }, .n_bias = 1 };
    assert_int_equal(hone_sampler_pick_from(s, logits, &p, &id, &err), HONE_OK);
    assert_int_equal(id, 6);
    hone_sampler_free(s);
    hone_model_close(model);
}

/* ---- tokenizers -------------------------------------------------------------------------------------- */

static void of_tokenizers(void **state)
{
    tiny *m = of_family(0);
    bb *b = tm_put(m, "tokenizer.ggml.tokens", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_STRING), bb_u64(b, 16);
    for (int i = 0; i < 16; i++) bb_str(b, (char[]){ (char)('a' + i), 0 });
    tm_put_str(m, "tokenizer.ggml.model", "llama");
    bb_u8(tm_put(m, "tokenizer.ggml.remove_extra_whitespaces", HONE_KV_BOOL), 0);
    bb_u8(tm_put(m, "tokenizer.ggml.add_sep_token", HONE_KV_BOOL), 1);
    tm_put_u32s(m, "tokenizer.ggml.suppress_tokens", 0, 0);
    tm_put_u32s(m, "tokenizer.ggml.precompiled_charsmap", 0, 0);
    accepted(m);
    bb_u8(tm_put(m, "tokenizer.ggml.remove_extra_whitespaces", HONE_KV_BOOL), 1);
    refused(m, "tokenizer.ggml.remove_extra_whitespaces", "true");
    tm_drop_kv(m, "tokenizer.ggml.remove_extra_whitespaces");
    tm_put_u32s(m, "tokenizer.ggml.suppress_tokens", 2, 5);
    accepted(m);
    suppressed(m);
    tm_put_u32s(m, "tokenizer.ggml.suppress_tokens", 0, 0);
    bb_u8(tm_put(m, "tokenizer.ggml.normalizer.lowercase", HONE_KV_BOOL), 1);
    refused(m, "tokenizer.ggml.normalizer.lowercase", "true");
    tm_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_converters), cmocka_unit_test(unknown), cmocka_unit_test(neutral),
        cmocka_unit_test(yarn),          cmocka_unit_test(windows), cmocka_unit_test(of_tokenizers),
    };
    unsetenv("HONE_IGNORE_KEYS");
    return cmocka_run_group_tests_name("keys", tests, tm_make_dir, tm_remove_dir);
}
