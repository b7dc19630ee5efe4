/* What a sequence is said to take before there is a session, against what sessions then hold. */
#include "base/base.h"
#include "hone.h"

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { N_POS = 300, N_VOCAB = 300 };
static char dir[64];

static int make_dir(void **state)
{
    snprintf(dir, sizeof dir, "/tmp/hone-cost-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) { return rmdir(dir); }

static hone_model *model_of(const char *shape)
{
    char config[96], path[96];
    hone_error err;
    hone_model *m = NULL;
    snprintf(config, sizeof config, "%s/shape.json", dir);
    snprintf(path, sizeof path, "%s/m.gguf", dir);
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fputs(shape, f);
    assert_int_equal(fclose(f), 0);
    const hone_synth_params how = { .config_path = config, .type = "F32", .n_threads = 1 };
    if (hone_synth(&how, path, NULL, &err) || hone_model_open(&m, path, NULL, &err)) fail_msg("%s", err.message);
    unlink(config);
    unlink(path);
    return m;
}

/* Bytes that a sequence of N_POS positions holds in a session that knows no more of them. */
static uint64_t held(const hone_model *m, hone_kv_cache_type cache)
{
    hone_error err;
    hone_context *ctx = NULL;
    hone_session *s = NULL;
    hone_session_memory mem;
    int32_t ids[N_POS];
    const float *logits;
    const hone_context_params cp = { .n_threads = 1 };
    const hone_session_params sp = { .n_ctx = N_POS, .n_seq = 1, .n_chunk = 32, .cache = cache };
    for (int32_t i = 0; i < N_POS; i++) ids[i] = i % N_VOCAB;
    if (hone_context_new(&ctx, &cp, &err) || hone_session_new(&s, ctx, m, &sp, &err)) fail_msg("%s", err.message);
    if (hone_append(s, 0, ids, N_POS, &logits, &err)) fail_msg("%s", err.message);
    hone_session_get_memory(s, &mem);
    hone_session_free(s);
    hone_context_free(ctx);
    return mem.cache_used_bytes;
}

#define KEYS(arch, more)                                                                                   \
    "{\"arch\":\"" arch "\",\"n_layer\":4,\"n_vocab\":300,\"tied\":true,\"keys\":{\"context_length\":512," \
    "\"embedding_length\":64,\"feed_forward_length\":64,\"attention.head_count\":4,"                       \
    "\"attention.layer_norm_rms_epsilon\":1e-5," more "}}"

static void test_costs(void **state)
{
    static const struct {
        const char *shape;
        int32_t n_full, n_latent, n_window, n_state;
        uint64_t position_bytes; /* f16 */
    } is[] = {
        { KEYS("seed_oss", "\"attention.head_count_kv\":2"), 4, 0, 0, 0, 4 * 2 * 2 * 16 * 2 },
        { KEYS("lfm2", "\"attention.head_count_kv\":[0,2],\"shortconv.l_cache\":3"), 2, 0, 0, 2, 2 * 2 * 2 * 16 * 2 },
        { KEYS("deepseek2",
               "\"attention.head_count_kv\":1,\"attention.kv_lora_rank\":32,\"attention.key_length_mla\":48,"
               "\"attention.value_length_mla\":32,\"rope.dimension_count\":16,\"expert_count\":2,"
               "\"expert_used_count\":1,\"expert_feed_forward_length\":32,\"expert_gating_func\":1"),
          4, 4, 0, 0, 4 * 48 * 2 },
        { KEYS("cohere2", "\"attention.sliding_window\":64,\"attention.layer_norm_epsilon\":1e-5"), 1, 0, 3, 0,
          4 * 2 * 16 * 2 },
    };
    for (size_t i = 0; i < sizeof is / sizeof *is; i++) {
        hone_model *m = model_of(is[i].shape);
        for (hone_kv_cache_type t = HONE_CACHE_F16; t <= HONE_CACHE_Q8_0; t++) {
            hone_sequence_cost c;
            hone_error err;
            if (hone_model_sequence_cost(m, N_POS, t, &c, &err)) fail_msg("%s", err.message);
            assert_int_equal(c.n_full, is[i].n_full);
            assert_int_equal(c.n_latent, is[i].n_latent);
            assert_int_equal(c.n_window, is[i].n_window);
            assert_int_equal(c.n_state, is[i].n_state);
            if (t == HONE_CACHE_F16) assert_int_equal(c.position_bytes, is[i].position_bytes);
            uint64_t used = held(m, t);
            if (!is[i].n_window) assert_int_equal(used, c.bytes);
            else assert_in_range(used, c.bytes - c.window_bytes / 2, c.bytes); /* windows: two pages at most to spare */
        }
        hone_model_close(m);
    }
}

static void test_refused(void **state)
{
    hone_sequence_cost c;
    hone_error err;
    assert_int_equal(hone_model_sequence_cost(NULL, 1, HONE_CACHE_F16, &c, &err), HONE_E_ARG);
    hone_model *m = model_of(KEYS("seed_oss", "\"attention.head_count_kv\":2"));
    assert_int_equal(hone_model_sequence_cost(m, 0, HONE_CACHE_F16, &c, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "0 positions, expected 1 to"));
    assert_int_equal(hone_model_sequence_cost(m, 1, (hone_kv_cache_type)3, &c, &err), HONE_E_ARG);
    assert_int_equal(hone_model_sequence_cost(m, 1, HONE_CACHE_F16, NULL, &err), HONE_E_ARG);
    hone_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_costs), cmocka_unit_test(test_refused) };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
