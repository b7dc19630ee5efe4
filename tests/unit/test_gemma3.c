/* gemma3: the published check vector of a whole model (logits that transformers computed in double precision), on every
 * level, in any chunks, by any threads and beside any neighbours with the same bits; windows as files write them; and
 * what must be refused. */
#include "tiny_model.h"

#include <math.h>

enum { N = 12, VOCAB = 16 };
#define TOLERANCE 2e-5 /* the vector's, of an engine in f32 */
static const int32_t prompt[N] = { 3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8 };

static const struct {
    int pos;
    double logits[VOCAB];
} wanted[] = {
    { 0,
      { -1.344053, 2.247614, -2.419831, 13.747832, 2.636902, -4.941029, -2.582223, -4.075797, -1.007568, 3.165202,
        2.764922, -2.229366, 2.276701, 0.226216, 3.800657, -1.375673 } },
    { 5,
      { 3.276593, -3.815372, -3.217466, 2.192012, -1.309298, -2.162129, 3.878648, -4.411624, 2.083729, 12.753261,
        0.567953, 0.886568, -0.192845, -1.185323, -2.332523, 0.809802 } },
    { 11,
      { 2.563134, -3.224254, 4.549644, 1.496053, -4.308824, 1.898337, -3.752686, -5.393372, 15.569091, 2.240714,
        -0.004456, 2.147709, -1.627693, -1.776108, -0.55456, 6.84887 } },
};
/* of the logits of each position */
static const double sums[N] = { 10.89051, 3.17183,  -3.39233, 4.1338,   2.33234, 7.82199,
                                7.96282,  -3.23454, 4.86828,  16.07028, 2.39707, 16.6716 };

/* The vector's file: a window of 4 on two layers of three, the third's positions slowed eight times. */
static tiny *vector_model(void) { return tm_new(tm_gemma3); }

static void run_model(const hone_model *model, const char *cpu, int32_t threads, int32_t chunk,
                      hone_kv_cache_type cache, float *y)
{
    hone_context *c = tm_context(cpu, threads);
    hone_session *s = tm_session(c, model, 64, 1, chunk, cache);
    tm_run(s, 0, prompt, N, y);
    hone_session_free(s);
    hone_context_free(c);
}

static double farthest(const float *y)
{
    double most = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        for (int k = 0; k < VOCAB; k++)
            most = fmax(most, fabs((double)y[wanted[i].pos * VOCAB + k] - wanted[i].logits[k]));
    for (int t = 0; t < N; t++) {
        double sum = 0;
        for (int k = 0; k < VOCAB; k++) sum += (double)y[t * VOCAB + k];
        most = fmax(most, fabs(sum - sums[t]) / VOCAB);
    }
    return most;
}

static void logits_are_the_vectors(void **state)
{
    tiny *m = vector_model();
    hone_model *model = tm_open(m);
    float first[N * VOCAB], y[N * VOCAB];
    run_model(model, "scalar", 1, N, HONE_CACHE_F32, first);
    print_message("farthest logit: %.2e\n", farthest(first));
    assert_true(farthest(first) <= TOLERANCE);
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int32_t threads = 1; threads <= 3; threads++)
            for (int32_t chunk = 1; chunk <= N; chunk += chunk == 3 ? 4 : 1) {
                run_model(model, *cpu, threads, chunk, HONE_CACHE_F32, y);
                assert_memory_equal(y, first, sizeof y);
            }
    hone_model_info info;
    hone_model_get_info(model, &info);
    assert_string_equal(info.arch, "gemma3");
    assert_int_equal(info.n_window, 0); /* it has its window: nothing to warn of */
    assert_int_equal(info.n_ctx_train, 2048);
    hone_model_close(model);
    tm_free(m);
}

/* Neighbours in the batch, forks and cuts: the bits of the sequence alone. */
static void neighbours_change_nothing(void **state)
{
    enum { LONG = 150 };
    tiny *m = vector_model();
    hone_model *model = tm_open(m);
    int32_t ids[LONG];
    static float alone[LONG * VOCAB], y[2 * LONG * VOCAB], again[LONG * VOCAB];
    for (int i = 0; i < LONG; i++) ids[i] = (i * 7 + i / 5) % VOCAB;
    for (int type = 0; type < 3; type++) {
        hone_error err = { 0 };
        hone_context *c = tm_context(NULL, 2);
        hone_session *s = tm_session(c, model, 256, 3, 64, (hone_kv_cache_type)type);
        tm_run(s, 0, ids, LONG, alone);
        hone_seq_truncate(s, 0, 0, &err);
        hone_token t[2 * LONG];
        for (int i = 0; i < LONG; i++) {
            t[2 * i] = (hone_token){ ids[i], i, 0, true };
            t[2 * i + 1] = (hone_token){ ids[LONG - 1 - i], i, 2, true };
        }
        assert_int_equal(hone_decode(s, t, 2 * LONG, y, &err), HONE_OK);
        for (int i = 0; i < LONG; i++) assert_memory_equal(y + 2 * i * VOCAB, alone + i * VOCAB, VOCAB * sizeof(float));
        assert_int_equal(hone_seq_copy(s, 1, 0, &err), HONE_OK);
        /* near the last position its window is there; what lies far behind was dropped, and is computed again */
        assert_int_equal(hone_seq_truncate(s, 1, 140, &err), HONE_OK);
        tm_run(s, 1, ids + 140, LONG - 140, again);
        assert_memory_equal(again, alone + 140 * VOCAB, (LONG - 140) * VOCAB * sizeof(float));
        assert_int_equal(hone_seq_truncate(s, 1, 70, &err), HONE_E_UNSUPPORTED);
        assert_non_null(strstr(err.message, "a window has dropped the first"));
        int32_t kept;
        assert_int_equal(hone_seq_rewind(s, 1, 70, &kept, &err), HONE_OK);
        assert_in_range(kept, 0, 70);
        tm_run(s, 1, ids + kept, LONG - kept, again);
        assert_memory_equal(again, alone + kept * VOCAB, (size_t)((LONG - kept) * VOCAB) * sizeof(float));
        hone_session_free(s);
        hone_context_free(c);
    }
    hone_model_close(model);
    tm_free(m);
}

static void logits_of(const tiny *m, float *y)
{
    hone_error err = { 0 };
    hone_model *model;
    tm_save_raw(m, tm_path("said.gguf"));
    if (hone_model_open(&model, tm_path("said.gguf"), NULL, &err)) fail_msg("%s", err.message);
    run_model(model, NULL, 2, 5, HONE_CACHE_F32, y);
    hone_model_close(model);
}

static void put_bools(tiny *m, int n, const uint8_t *v)
{
    bb *b = tm_put(m, "gemma3.attention.sliding_window_pattern", HONE_KV_ARRAY);
    bb_u32(b, HONE_KV_BOOL), bb_u64(b, (uint64_t)n);
    bb_raw(b, v, (size_t)n);
}

/* The same windows said in other ways give the same bits, other windows other logits. */
static void windows_as_files_say(void **state)
{
    float y[N * VOCAB], z[N * VOCAB];
    tiny *m = vector_model();
    logits_of(m, y);
    put_bools(m, 3, (const uint8_t[]){ 1, 1, 0 });
    logits_of(m, z);
    assert_memory_equal(y, z, sizeof y);
    put_bools(m, 3, (const uint8_t[]){ 1, 0, 1 });
    logits_of(m, z);
    assert_true(farthest(z) > 0.1);
    tm_put_u32(m, "gemma3.attention.sliding_window_pattern", 0); /* all of them */
    logits_of(m, z);
    put_bools(m, 3, (const uint8_t[]){ 1, 1, 1 });
    logits_of(m, y);
    assert_memory_equal(y, z, sizeof y);
    tm_put_u32(m, "gemma3.attention.sliding_window_pattern", 1); /* none */
    logits_of(m, z);
    tm_put_u32(m, "gemma3.attention.sliding_window", 0);
    logits_of(m, y);
    assert_memory_equal(y, z, sizeof y);
    tm_drop_kv(m, "gemma3.attention.sliding_window_pattern"); /* absent: five of six */
    tm_put_u32(m, "gemma3.attention.sliding_window", 4);
    logits_of(m, y);
    put_bools(m, 3, (const uint8_t[]){ 1, 1, 1 });
    logits_of(m, z);
    assert_memory_equal(y, z, sizeof y);
    tm_put_u32(m, "gemma3.attention.sliding_window", 5); /* one key more */
    logits_of(m, z);
    assert_memory_not_equal(y, z, sizeof y);
    tm_free(m);
}

static void refuse(tiny *m, const char *what)
{
    hone_error err = { 0 };
    hone_model *model = NULL;
    const char *path = tm_path("refused.gguf");
    tm_save_raw(m, path);
    assert_int_not_equal(hone_model_open(&model, path, NULL, &err), HONE_OK);
    assert_null(model);
    if (!strstr(err.message, what)) fail_msg("message lacks \"%s\": %s", what, err.message);
    tm_free(m);
}

static void what_is_refused(void **state)
{
    static const char *const needed[] = { "post_attention_norm", "post_ffw_norm", "ffn_norm", "attn_q_norm" };
    char name[64];
    tiny *m;
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        m = vector_model();
        snprintf(name, sizeof name, "blk.1.%s.weight", needed[i]);
        tm_drop(m, name);
        refuse(m, name);
    }
    m = vector_model();
    tm_put_f32(m, "gemma3.attn_logit_softcapping", 50.0f);
    refuse(m, "attn_logit_softcapping");
    m = vector_model();
    put_bools(m, 2, (const uint8_t[]){ 1, 0 });
    refuse(m, "a bool for each of 3 layers");
    m = vector_model();
    tm_put_u32s(m, "gemma3.attention.sliding_window_pattern", 3, 2);
    refuse(m, "a bool for each of 3 layers");
    m = vector_model();
    tm_put_f32(m, "gemma3.rope.freq_base_swa", 0.5f);
    refuse(m, "rope.freq_base_swa");
}

/* A random file of a configuration: its text comes back, its packed file gives the same bits, training refuses it. */
static void random_files_run(void **state)
{
    static const char json[] = "{\"arch\":\"gemma3\",\"n_layer\":7,\"n_embd\":64,\"n_head\":4,\"n_head_kv\":2,"
                               "\"head_dim\":32,\"n_ff\":256,\"n_vocab\":700,\"window\":20,\"rope_factor\":8}";
    static const char text[] = "bababe koro, \xC3\xA9 7!";
    enum { LONG = 90, WORDS = 700 };
    hone_error err = { 0 };
    const char *path = tm_path("synth.gguf"), *config = tm_path("shape.json");
    bb b = { 0 };
    bb_raw(&b, json, strlen(json));
    bb_save(&b, config);
    bb_free(&b);
    const hone_synth_params how = { .config_path = config, .type = "Q4_0", .seed = 7 };
    if (hone_synth(&how, path, NULL, &err)) fail_msg("%s", err.message);
    if (hone_pack(path, NULL, NULL, NULL, &err)) fail_msg("%s", err.message);
    float *y[2];
    for (int packed = 0; packed < 2; packed++) {
        hone_model *model;
        const hone_model_params p = { .packed = packed ? "auto" : "off" };
        if (hone_model_open(&model, path, &p, &err)) fail_msg("%s", err.message);
        hone_model_info info;
        hone_model_get_info(model, &info);
        assert_true(packed ? info.packed_bytes > 0 : info.packed_bytes == 0);
        int32_t *ids, many[LONG];
        size_t n, len;
        char *back;
        assert_int_equal(hone_tokenize(model, text, strlen(text), HONE_TOK_ADD, &ids, &n, &err), HONE_OK);
        assert_int_equal(ids[0], 2); /* <bos> */
        assert_true(n > 2 && n < strlen(text));
        assert_int_equal(hone_detokenize(model, ids + 1, n - 1, false, &back, &len, &err), HONE_OK);
        assert_string_equal(back, text);
        hone_free(back), hone_free(ids);
        for (int i = 0; i < LONG; i++) many[i] = i * 13 % WORDS;
        hone_context *c = tm_context(NULL, 2);
        hone_session *s = tm_session(c, model, 128, 1, 32, HONE_CACHE_F16);
        y[packed] = calloc(LONG * WORDS, sizeof(float));
        tm_run(s, 0, many, LONG, y[packed]);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(model);
    }
    assert_memory_equal(y[0], y[1], LONG * WORDS * sizeof(float));
    free(y[0]), free(y[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_are_the_vectors), cmocka_unit_test(neighbours_change_nothing),
        cmocka_unit_test(windows_as_files_say),   cmocka_unit_test(what_is_refused),
        cmocka_unit_test(random_files_run),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
