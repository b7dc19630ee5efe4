/* Embeddings against what transformers makes of small models in float64 (tests/golden/embeddings), and the same bits
 * on every level, with any threads and chunks, alone and in company. Files are written byte by byte, by nothing of
 * hone. */
#include "engine/engine.h"
#include "family_vectors.h"

#include <math.h>

enum { N_CTX = 192, N_TEXT = 2 };
static const char *const files[] = { "bert", "bert_mean", "xlmr_rank", "nomic", "gemma", "qwen3", "qwen3_rank", NULL };

typedef struct texts {
    vector v;
    hone_model *m;
    int32_t ids[N_TEXT][N_CTX];
    hone_text_ids of[N_TEXT];
} texts;

static texts open_file(const char *name)
{
    char path[160];
    json_error_t e;
    hone_error err = { 0 };
    texts t = { 0 };
    snprintf(path, sizeof path, "tests/golden/embeddings/%s.json", name);
    t.v.j = json_load_file(path, 0, &e);
    if (!t.v.j) fail_msg("%s: %s", path, e.text);
    t.v.name = name;
    save_without(&t.v, tm_path("embed.gguf"), NULL);
    if (hone_model_open(&t.m, tm_path("embed.gguf"), NULL, &err)) fail_msg("%s: %s", name, err.message);
    return t;
}

/* One of its texts. */
static const json_t *text_of(const texts *t, int i)
{
    return json_array_get(json_object_get(t->v.j, "texts"), (size_t)i);
}

static void load_ids(texts *t)
{
    for (int i = 0; i < N_TEXT; i++) {
        const json_t *ids = json_object_get(text_of(t, i), "ids");
        for (size_t k = 0; k < json_array_size(ids); k++)
            t->ids[i][k] = (int32_t)json_integer_value(json_array_get(ids, k));
        t->of[i] = (hone_text_ids){ t->ids[i], (int32_t)json_array_size(ids) };
    }
}

static void close_file(texts *t)
{
    hone_model_close(t->m);
    json_decref(t->v.j);
}

/* The farthest number, over the range of what is expected. */
static double farthest(const json_t *want, const float *y)
{
    double most = 0, lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < json_array_size(want); i++) {
        double w = json_number_value(json_array_get(want, i));
        most = fmax(most, fabs((double)y[i] - w));
        lo = fmin(lo, w);
        hi = fmax(hi, w);
    }
    return most / (json_array_size(want) > 2 ? hi - lo : fmax(1, fabs(hi)));
}

static void near(const texts *t, const char *what, const json_t *want, const float *y, double *worst)
{
    double far = farthest(want, y);
    *worst = fmax(*worst, far);
    if (!(far <= 1e-5)) fail_msg("%s: %s: %.2g of the range away", t->v.name, what, far);
}

static void embed(hone_session *s, const hone_text_ids *of, int32_t n, hone_pooling pooling, bool plain, float *y)
{
    hone_error err = { 0 };
    const hone_embed_params p = { .pooling = pooling, .plain = plain };
    if (hone_embed(s, of, n, &p, y, &err)) fail_msg("%s", err.message);
}

static void check_values(const texts *t)
{
    static const struct {
        const char *name;
        hone_pooling pooling;
    } kinds[] = { { "mean", HONE_POOL_MEAN }, { "cls", HONE_POOL_CLS }, { "last", HONE_POOL_LAST } };
    float y[N_CTX * 32];
    double worst = 0;
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, t->m, N_CTX, 2, N_CTX, HONE_CACHE_F32);
    int32_t width = hone_embed_width(t->m, HONE_POOL_FILE, NULL);
    embed(s, t->of, N_TEXT, HONE_POOL_FILE, false, y);
    for (int i = 0; i < N_TEXT; i++) {
        const json_t *want = json_object_get(text_of(t, i), "embedding");
        assert_int_equal(json_array_size(want), width);
        near(t, "embedding", want, y + i * width, &worst);
    }
    for (size_t k = 0; k < 3; k++)
        for (int i = 0; i < N_TEXT; i++) {
            const json_t *want = json_object_get(json_object_get(text_of(t, i), "pooled"), kinds[k].name);
            if (!want) continue;
            embed(s, &t->of[i], 1, kinds[k].pooling, true, y);
            near(t, kinds[k].name, want, y, &worst);
        }
    const char *pos;
    json_t *row;
    embed(s, t->of, 1, HONE_POOL_NONE, false, y);
    json_object_foreach(json_object_get(text_of(t, 0), "rows"), pos, row)
        near(t, "a row", row, y + 32 * atoi(pos), &worst);
    printf("#  %-10s farthest %.1e of the range\n", t->v.name, worst);
    hone_session_free(s);
    hone_context_free(c);
}

static void check_bits(const texts *t, hone_kv_cache_type cache)
{
    float want[N_TEXT * 32 + 64], y[3 * 32 + 64];
    int32_t width = hone_embed_width(t->m, HONE_POOL_FILE, NULL);
    size_t bytes = (size_t)width * sizeof *y;
    hone_context *c = tm_context("scalar", 1);
    hone_session *s = tm_session(c, t->m, N_CTX, 1, N_CTX, cache);
    for (int i = 0; i < N_TEXT; i++) embed(s, &t->of[i], 1, HONE_POOL_FILE, false, want + i * width);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_info info;
    hone_model_get_info(t->m, &info);
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int32_t threads = 1; threads <= 3; threads += 2)
            for (int32_t chunk = info.causal ? 7 : 150; chunk <= N_CTX; chunk += 41) {
                c = tm_context(*cpu, threads);
                s = tm_session(c, t->m, N_CTX, 1 + threads, chunk, cache);
                const hone_text_ids three[] = { t->of[0], t->of[1], t->of[0] };
                embed(s, three, 3, HONE_POOL_FILE, false, y);
                for (int i = 0; i < 3; i++)
                    if (memcmp(y + i * width, want + i % 2 * width, bytes))
                        fail_msg("%s: %s, %d threads, chunks of %d: other bits of text %d", t->v.name, *cpu, threads,
                                 chunk, i);
                for (int32_t q = 0; q <= threads; q++) assert_int_equal(hone_seq_length(s, q), 0);
                hone_session_free(s);
                hone_context_free(c);
            }
}

static void vectors_are_transformers(void **state)
{
    for (const char *const *name = files; *name; name++) {
        texts t = open_file(*name);
        load_ids(&t);
        check_values(&t);
        for (int cache = HONE_CACHE_F16; cache <= HONE_CACHE_Q8_0; cache++) check_bits(&t, (hone_kv_cache_type)cache);
        close_file(&t);
    }
}

static void fails(hone_status st, const hone_error *err, hone_status want, const char *word)
{
    assert_int_equal(st, want);
    if (!strstr(err->message, word)) fail_msg("\"%s\" says nothing of \"%s\"", err->message, word);
}

/* What cannot be done is told, and leaves the session as it was. */
static void refusals_are_told(void **state)
{
    texts t = open_file("bert");
    load_ids(&t);
    hone_error err = { 0 };
    const float *logits;
    float y[64];
    hone_embed_params p = { 0 };
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, t.m, N_CTX, 1, 20, HONE_CACHE_F16);
    fails(hone_append(s, 0, t.ids[0], 3, &logits, &err), &err, HONE_E_UNSUPPORTED, "hone_embed");
    fails(hone_run_batch(s, &(hone_token){ 1, 0, 0, false }, 1, NULL, &err), &err, HONE_E_UNSUPPORTED, "next token");
    fails(hone_embed(s, t.of, 2, &p, y, &err), &err, HONE_E_CTX, "--chunk");
    fails(hone_embed(s, &(hone_text_ids){ t.ids[0], 0 }, 1, &p, y, &err), &err, HONE_E_ARG, "at least 1");
    fails(hone_embed(s, &(hone_text_ids){ (int32_t[]){ 16 }, 1 }, 1, &p, y, &err), &err, HONE_E_ARG, "0 to 15");
    p.pooling = HONE_POOL_RANK;
    fails(hone_embed(s, t.of, 1, &p, y, &err), &err, HONE_E_UNSUPPORTED, "cls.output.weight");
    p.pooling = (hone_pooling)99;
    fails(hone_embed(s, t.of, 1, &p, y, &err), &err, HONE_E_ARG, "pooling 99");
    assert_int_equal(hone_embed_width(t.m, HONE_POOL_RANK, NULL), 0);
    assert_int_equal(hone_embed(s, t.of, 0, &(hone_embed_params){ 0 }, NULL, &err), HONE_OK);
    assert_int_equal(hone_embed(s, t.of, 1, &(hone_embed_params){ 0 }, y, &err), HONE_OK);
    hone_session_free(s);
    close_file(&t);
    /* a causal one whose only sequence is taken; beyond the context */
    t = open_file("qwen3");
    load_ids(&t);
    s = tm_session(c, t.m, 40, 1, 7, HONE_CACHE_F16);
    fails(hone_embed(s, t.of, 2, &(hone_embed_params){ 0 }, y, &err), &err, HONE_E_CTX, "context of 40");
    assert_int_equal(hone_append(s, 0, t.ids[0], 3, &logits, &err), HONE_OK);
    fails(hone_embed(s, t.of, 1, &(hone_embed_params){ 0 }, y, &err), &err, HONE_E_ARG, "empty");
    assert_int_equal(hone_seq_length(s, 0), 3);
    hone_session_free(s);
    hone_context_free(c);
    close_file(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_are_transformers),
        cmocka_unit_test(refusals_are_told),
    };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
