/* Adapters at run time: the session answers as a model with W + s·BA in its file would
 * (made here, in double), the same bits whatever the level, threads, chunks and company,
 * and nothing of one set of adapters is taken for another's. */
#include "engine/scheduler.h"
#include "tiny_lora.h"
#include "tiny_rwkv.h"
#include "slowed.h"

#include <math.h>

enum { THOROUGH = !SLOWED };

enum { LEN = 40 };

static const int32_t *text(int V)
{
    static int32_t ids[LEN];
    for (int i = 0; i < LEN; i++) ids[i] = (int32_t)(hn_rand64(7, (uint64_t)i) % (uint64_t)V);
    return ids;
}

/* W += factor·s·BA, in double. */
static void merge(tiny *m, const lora *l, double factor)
{
    for (int i = 0; i < l->n; i++) {
        const hn_lora_pair *p = &l->pair[i];
        tm_tensor *t = tm_find(m, p->name);
        assert_non_null(t);
        hn_type_get(t->type)->dequantize(t->f, t->data, p->n_in * p->n_out);
        for (int64_t r = 0; r < p->n_out; r++)
            for (int64_t c = 0; c < p->n_in; c++) {
                double d = 0;
                for (int64_t j = 0; j < p->rank; j++)
                    d += (double)p->b[r * p->rank + j] * (double)p->a[j * p->n_in + c];
                t->f[r * p->n_in + c] = (float)((double)t->f[r * p->n_in + c] + factor * (double)p->scale * d);
            }
        tm_encode(t, HN_F32);
    }
}

static void set(hone_session *s, hone_adapter *const *a, const float *scales, int n)
{
    hone_error err = { 0 };
    if (hone_session_set_adapters(s, a, scales, n, &err)) fail_msg("%s", err.message);
}
static void empty(hone_session *s) { assert_int_equal(hone_seq_truncate(s, 0, 0, NULL), HONE_OK); }

static double worst(const float *x, const float *y, int64_t n)
{
    double range = 0, d = 0;
    for (int64_t i = 0; i < n; i++)
        range = fmax(range, fabs((double)y[i])), d = fmax(d, fabs((double)x[i] - (double)y[i]));
    return d / range;
}

static hone_context *plain;

/* ---- tests ----------------------------------------------------------------------------------- */

/* The adapters' answers, and those of the model with them in its weights. */
static void check_merged(tiny *t, int V, const char *what, const char *second)
{
    lora l[2];
    lora_make(&l[0], t, what, "one", 3, 2.0f, 0.3f);
    lora_make(&l[1], t, second, "two", 17, 0.5f, 0.2f);
    assert_true(l[0].n && l[1].n);
    hone_model *m = tm_open(t);
    float *got = malloc(sizeof(float) * LEN * (size_t)V), *want = malloc(sizeof(float) * LEN * (size_t)V),
          *before = malloc(sizeof(float) * LEN * (size_t)V);
    assert_true(got && want && before);
    hone_session *s = tm_session(plain, m, 64, 1, 0, HONE_CACHE_F32);
    tm_run(s, 0, text(V), LEN, before);
    empty(s);
    hone_adapter *a[2] = { open_adapter(m, l[0].path), open_adapter(m, l[1].path) };
    set(s, a, (float[]){ 1.0f, -1.5f }, 2);
    hone_adapter_close(a[0]), hone_adapter_close(a[1]); /* the session keeps them */
    tm_run(s, 0, text(V), LEN, got);
    hone_session_free(s);
    merge(t, &l[0], 1), merge(t, &l[1], -1.5);
    hone_model *merged = tm_open(t);
    s = tm_session(plain, merged, 64, 1, 0, HONE_CACHE_F32);
    tm_run(s, 0, text(V), LEN, want);
    double d = worst(got, want, LEN * V), moved = worst(before, want, LEN * V);
    if (d > 1e-5 || moved < 1e-2)
        fail_msg("%s, %s: %g from the merged model, which is %g from the base", t->s.arch, what, d, moved);
    hone_session_free(s);
    hone_model_close(merged), hone_model_close(m);
    lora_free(&l[0]), lora_free(&l[1]), tm_free(t);
    free(got), free(want), free(before);
}

static void equals_merged(void **state)
{
    static const char *const kinds[] = { "attn_q", "attn_k",   "attn_v",        "attn_output", "ffn_gate",
                                         "ffn_up", "ffn_down", "output.weight", "weight" };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) check_merged(tm_new(tm_llama), 16, kinds[i], "attn");
    check_merged(tm_new(tm_qwen2), 16, "weight", "attn");
    check_merged(tm_new(tm_qwen3), 16, "weight", "attn");
    check_merged(tm_new(tm_gemma3), 16, "weight", "attn");
    tiny *fused = tm_new((tm_shape)TM("llama", 32, 4, 2, 8, 48, 16, 2, 1e4, 1e-5, .n_rot = 8, .qkv_bias = true));
    tm_fuse_qkv(fused);
    check_merged(fused, 16, "weight", "attn");
}

/* Every matrix that RWKV multiplies with, alone and all of them. */
static void equals_merged_rwkv(void **state)
{
    static const rw_shape list[] = { R7(32, 8, 48, 16, 3, 4, 8, 4, 12), R6(32, 8, 48, 16, 3, 4, 8, .rescale = 2),
                                     R6(32, 8, 48, 16, 2, 4, 8, .separate = true) };
    static const char *const kinds[] = {
        "time_mix_receptance", "time_mix_key",      "time_mix_value",    "time_mix_output",
        "channel_mix_key",     "channel_mix_value", "output.weight",     "weight",
        "time_mix_w1",         "time_mix_w2",       "time_mix_a1",       "time_mix_a2",
        "time_mix_v1",         "time_mix_v2",       "time_mix_g1",       "time_mix_g2",
        "time_mix_gate",       "time_mix_decay_w1", "time_mix_decay_w2", "channel_mix_receptance"
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            tiny *t = rw_new(&list[i]);
            bool some = false;
            for (int q = 0; q < t->n_t; q++) some = some || (is_matrix(&t->t[q]) && strstr(t->t[q].name, kinds[k]));
            if (some) check_merged(t, 16, kinds[k], "mix_key");
            else tm_free(t);
        }
}

/* Logits of the text by a session of its own. */
static void answers(float *out, hone_context *c, const hone_model *m, hone_adapter *const *a, const float *scales,
                    int n, int V, int chunk, int neighbours)
{
    hone_session *s = tm_session(c, m, 64, 1 + neighbours, chunk ? chunk : 1, HONE_CACHE_F16);
    hone_token *b = malloc(sizeof *b * LEN * (size_t)(1 + neighbours));
    hone_error err = { 0 };
    int k = 0;
    assert_non_null(b);
    set(s, a, scales, n);
    for (int i = 0; i < LEN; i++) {
        for (int q = 1; q <= neighbours; q++) b[k++] = (hone_token){ (text(V)[i] + q) % V, i, q, false };
        b[k++] = (hone_token){ text(V)[i], i, 0, true };
        if (!chunk) { /* one call each */
            if (hone_decode(s, b, k, out + i * V, &err)) fail_msg("%s", err.message);
            k = 0;
        }
    }
    if (chunk && hone_decode(s, b, k, out, &err)) fail_msg("%s", err.message);
    free(b);
    hone_session_free(s);
}

/* Every kind of weight kernel, ranks that fill registers and that do not. */
static void one_answer(void **state)
{
    static const hn_type types[] = { HN_F32, HN_F16, HN_Q8_0, HN_Q4_K, HN_Q3_K };
    tiny *t = tm_new((tm_shape)TM("qwen2", 256, 4, 2, 64, 512, 24, 2, 1e6, 1e-6, .qkv_bias = true));
    lora l[2];
    lora_make(&l[0], t, "weight", "one", 8, 2.0f, 0.1f);
    lora_make(&l[1], t, "attn_v", "two", 21, 0.5f, 0.1f);
    for (int i = 0, k = 0; i < t->n_t; i++)
        if (is_matrix(&t->t[i])) tm_encode(&t->t[i], types[k++ % 5]);
    hone_model *m = tm_open(t);
    hone_adapter *a[2] = { open_adapter(m, l[0].path), open_adapter(m, l[1].path) };
    const float scales[2] = { 1, 0.7f };
    static float want[LEN * 24], got[LEN * 24], base[LEN * 24];
    answers(want, plain, m, a, scales, 2, 24, 0, 0);
    answers(base, plain, m, a, scales, 0, 24, 0, 0);
    assert_true(worst(want, base, LEN * 24) > 1e-3);
    int turn = 0;
    for (const char *const *level = tm_levels(); *level; level++, turn++)
        for (int threads = 1; threads <= 3; threads++) {
            hone_context *c = tm_context(*level, threads);
            int k = turn;
            for (int chunk = 0; chunk <= 64; chunk = chunk ? chunk * 4 : 1)
                for (int neighbours = 0; neighbours <= 2; neighbours += 2) {
                    /* under sanitizers each chunk and company on each level, with one number of threads in turn */
                    if (k++ % 3 != threads - 1 && !THOROUGH) continue;
                    memset(got, 0, sizeof got);
                    answers(got, c, m, a, scales, 2, 24, chunk, neighbours);
                    if (memcmp(got, want, sizeof want))
                        fail_msg("%s, %d threads, chunk %d, %d neighbours", *level, threads, chunk, neighbours);
                }
            hone_context_free(c);
        }
    hone_adapter_close(a[0]), hone_adapter_close(a[1]);
    hone_model_close(m);
    lora_free(&l[0]), lora_free(&l[1]), tm_free(t);
}

/* Rows of three sets and of none in one batch, in any order and chunks, with logits of all or of some. */
enum { MIXED = 5 }; /* sequences */
static void side_by_side(const hone_model *m, hone_adapter *const *a, int V)
{
    static const struct {
        float scale[2];
        int first, n;
    } sets[MIXED] = { { { 1, 0.7f }, 0, 2 }, { { 0 }, 0, 0 }, { { 0.4f }, 1, 1 }, { { 2 }, 0, 1 }, { { 0 }, 0, 0 } };
    float *want = malloc(sizeof *want * MIXED * LEN * (size_t)V), *got = malloc(sizeof *got * MIXED * LEN * (size_t)V);
    hone_token *b = malloc(sizeof *b * MIXED * LEN);
    assert_true(want && got && b);
    for (int q = 0; q < MIXED; q++)
        answers(want + q * LEN * V, plain, m, a + sets[q].first, sets[q].scale, sets[q].n, V, 0, 0);
    for (int q = 0; q < 4; q++)
        for (int k = 0; k < q; k++)
            assert_memory_not_equal(want + q * LEN * V, want + k * LEN * V, sizeof *want * (size_t)V);
    assert_memory_equal(want + V * LEN, want + 4 * V * LEN, sizeof *want * LEN * (size_t)V);
    int turn = 0;
    for (const char *const *level = tm_levels(); *level; level++)
        for (int order = 0; order < 4; order++, turn++) {
            static const int chunks[] = { 200, 1, 7, 64 };
            hone_context *c = tm_context(*level, 1 + turn % 3);
            hone_session *s = tm_session(c, m, 64, MIXED, chunks[turn * (THOROUGH ? 1 : 3) % 4], HONE_CACHE_F16);
            hone_error err = { 0 };
            int pos[MIXED] = { 0 }, n = 0, n_want = 0, len = THOROUGH ? LEN : 10;
            for (int q = 0; q < MIXED; q++)
                if (hone_seq_set_adapters(s, q, a + sets[q].first, sets[q].scale, sets[q].n, &err))
                    fail_msg("%s", err.message);
            assert_true(hone_seq_adapters_hash(s, 1) == 0 && hone_seq_adapters_hash(s, 4) == 0);
            for (uint64_t k = 0; n < MIXED * len; k++) { /* in turn; one after the other; some in a row, at random */
                int q = order == 0   ? n % MIXED
                        : order == 1 ? n / len
                                     : (int)(hn_rand64(9, k / (order == 2 ? 1 : 6)) % MIXED);
                if (pos[q] == len) continue;
                b[n] = (hone_token){ text(V)[pos[q]], pos[q], q, order < 2 || n % 3 == 0 };
                pos[q]++;
                n_want += b[n++].want_logits;
            }
            if (hone_decode(s, b, n, got, &err)) fail_msg("%s", err.message);
            const float *row = got;
            for (int i = 0; i < n; i++) {
                if (!b[i].want_logits) continue;
                if (memcmp(row, want + (b[i].seq * LEN + b[i].pos) * V, sizeof *row * (size_t)V))
                    fail_msg("%s, order %d: set %d, position %d", *level, order, b[i].seq, b[i].pos);
                row += V;
            }
            assert_int_equal(row - got, n_want * V);
            hone_session_free(s);
            hone_context_free(c);
        }
    free(want), free(got), free(b);
}

static void sets_in_one_batch(void **state)
{
    static const hn_type types[] = { HN_F32, HN_F16, HN_Q8_0, HN_Q4_K, HN_Q3_K };
    static const rw_shape seven = R7(32, 8, 48, 16, 3, 4, 8, 4, 12);
    for (int rwkv = 0; rwkv < 2; rwkv++) {
        tiny *t = rwkv ? rw_new(&seven)
                       : tm_new((tm_shape)TM("qwen2", 256, 4, 2, 64, 512, 24, 2, 1e6, 1e-6, .qkv_bias = true));
        lora l[2];
        lora_make(&l[0], t, "weight", "one", 8, 2.0f, 0.1f);
        lora_make(&l[1], t, rwkv ? "time_mix" : "attn", "two", 21, 0.5f, 0.2f);
        for (int i = 0, k = 0; !rwkv && i < t->n_t; i++)
            if (is_matrix(&t->t[i])) tm_encode(&t->t[i], types[k++ % 5]);
        hone_model *m = tm_open(t);
        hone_adapter *a[2] = { open_adapter(m, l[0].path), open_adapter(m, l[1].path) };
        side_by_side(m, a, rwkv ? 16 : 24);
        hone_adapter_close(a[0]), hone_adapter_close(a[1]);
        hone_model_close(m);
        lora_free(&l[0]), lora_free(&l[1]), tm_free(t);
    }
}

/* One session through several sets, small and large: what a new one answers. */
static void switched(void **state)
{
    static const rw_shape seven = R7(32, 8, 48, 16, 3, 4, 8, 4, 12);
    static const int order[] = { 0, 1, 2, 1, 3, 0, 2, 3, 0, 1 };
    for (int rwkv = 0; rwkv < 2; rwkv++) {
        tiny *t = rwkv ? rw_new(&seven) : tm_new(tm_qwen3);
        lora l[2];
        lora_make(&l[0], t, "key", "one", 3, 2.0f, 0.3f);
        if (!l[0].n) lora_make(&l[0], t, "attn_k", "one", 3, 2.0f, 0.3f);
        lora_make(&l[1], t, "weight", "two", 70, 0.5f, 0.2f);
        hone_model *m = tm_open(t);
        hone_adapter *a[2] = { open_adapter(m, l[0].path), open_adapter(m, l[1].path) };
        static float want[4][LEN * 16], got[LEN * 16];
        hone_session *s = tm_session(plain, m, 64, 1, 16, HONE_CACHE_F16);
        for (int k = 0; k < 4; k++) { /* bit i: adapter i */
            hone_session *fresh = tm_session(plain, m, 64, 1, 16, HONE_CACHE_F16);
            set(fresh, a, (float[]){ (float)(k & 1), (float)(k >> 1) }, 2);
            tm_run(fresh, 0, text(16), LEN, want[k]);
            hone_session_free(fresh);
            for (int i = 0; i < k; i++) assert_memory_not_equal(want[k], want[i], sizeof *want);
        }
        for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
            empty(s);
            set(s, &a[order[i] == 2], NULL, order[i] == 3 ? 2 : order[i] != 0);
            tm_run(s, 0, text(16), LEN, got);
            if (memcmp(got, want[order[i]], sizeof got)) fail_msg("%s: set %d, the %zuth", t->s.arch, order[i], i);
        }
        hone_session_free(s);
        hone_adapter_close(a[0]), hone_adapter_close(a[1]);
        hone_model_close(m);
        lora_free(&l[0]), lora_free(&l[1]), tm_free(t);
    }
}

/* The same bits with packed weights, fused q, k and v among them. */
static void packed(void **state)
{
    static const hn_type types[] = { HN_Q4_K, HN_Q8_0, HN_Q6_K, HN_F16 };
    static const rw_shape seven = R7(256, 64, 512, 24, 2, 32, 32, 32, 64);
    for (int kind = 0; kind < 3; kind++) {
        tiny *t =
            kind == 2
                ? rw_new(&seven)
                : tm_new((tm_shape)TM("llama", 256, 4, 2, 64, 512, 24, 2, 1e4, 1e-5, .n_rot = 64, .qkv_bias = true));
        if (kind == 1) tm_fuse_qkv(t);
        lora l;
        lora_make(&l, t, "weight", "one", 5, 2.0f, 0.1f);
        for (int i = 0, k = 0; i < t->n_t; i++)
            if (is_matrix(&t->t[i]) && t->t[i].ne[0] % 256 == 0) tm_encode(&t->t[i], types[k++ % 4]);
        const char *path = tm_path("packed.gguf");
        tm_save(t, path);
        hone_model *m[2];
        hone_model_info info;
        hone_error err = { 0 };
        hone_packed_info pi;
        if (hone_pack(path, &(hone_pack_params){ .force = true }, &pi, NULL, &err)) fail_msg("%s", err.message);
        static float want[LEN * 24], got[LEN * 24];
        for (int p = 0; p < 2; p++) {
            if (hone_model_open(&m[p], path, &(hone_model_params){ .packed = p ? "auto" : "off" }, &err))
                fail_msg("%s", err.message);
            hone_model_get_info(m[p], &info);
            assert_int_equal(info.packed_path != NULL, p);
        }
        for (const char *const *level = tm_levels(); *level; level++)
            for (int p = 0; p < 2; p++) {
                hone_context *c = tm_context(*level, 2);
                hone_adapter *a = open_adapter(m[p], l.path);
                answers(level == tm_levels() && !p ? want : got, c, m[p], &a, NULL, 1, 24, 16, 0);
                if ((level != tm_levels() || p) && memcmp(got, want, sizeof want))
                    fail_msg("%s, packed %d: model %d", *level, p, kind);
                hone_adapter_close(a);
                hone_context_free(c);
            }
        answers(got, plain, m[1], NULL, NULL, 0, 24, 16, 0);
        assert_true(worst(got, want, LEN * 24) > 1e-3);
        hone_model_close(m[0]), hone_model_close(m[1]);
        remove(pi.path), remove(path);
        lora_free(&l), tm_free(t);
    }
}

/* No adapter, one times 0, one whose B is 0: the base's bytes. */
static void nothing_added(void **state)
{
    tiny *t = tm_new(tm_llama);
    lora some, none;
    lora_make(&some, t, "weight", "one", 3, 2.0f, 0.3f);
    lora_make(&none, t, "weight", "one", 3, 2.0f, 0.0f);
    hone_model *m = tm_open(t);
    hone_adapter *a[2] = { open_adapter(m, some.path), open_adapter(m, none.path) };
    static float want[LEN * 16], got[LEN * 16];
    hone_session *s = tm_session(plain, m, 64, 1, 0, HONE_CACHE_F16);
    tm_run(s, 0, text(16), LEN, want);
    for (int i = 0; i < 4; i++) {
        empty(s);
        if (i == 0) set(s, a, (float[]){ 0 }, 1);
        if (i == 1) set(s, &a[1], NULL, 1);
        if (i == 2) set(s, a, NULL, 1);
        if (i == 3) set(s, NULL, NULL, 0);
        assert_int_equal(hone_session_adapters_hash(s) == 0, i == 0 || i == 3);
        tm_run(s, 0, text(16), LEN, got);
        assert_int_equal(memcmp(got, want, sizeof want) == 0, i != 2);
    }
    hone_session_free(s);
    hone_adapter_close(a[0]), hone_adapter_close(a[1]);
    hone_model_close(m);
    lora_free(&some), lora_free(&none), tm_free(t);
}

/* Texts that become vectors are in sequences of one set of adapters, the first empty one's: where one lands says
 * nothing of it. */
static void vectors_of_one_set(void **state)
{
    enum { WIDTH = 64, TEXTS = 3 };
    tiny *t = tm_new(tm_llama);
    lora l;
    lora_make(&l, t, "weight", "one", 3, 2.0f, 0.3f);
    hone_model *m = tm_open(t);
    hone_adapter *a = open_adapter(m, l.path);
    hone_error err = { 0 };
    const hone_embed_params p = { .pooling = HONE_POOL_MEAN };
    const hone_text_ids one = { text(16), 9 }, all[TEXTS] = { one, one, one };
    static float y[2][TEXTS * WIDTH];
    hone_session *s = tm_session(plain, m, 64, 3, 0, HONE_CACHE_F16);
    const int32_t n = hone_embed_width(m, p.pooling, NULL);
    assert_in_range(n, 1, WIDTH);
    for (int first = 0; first < 2; first++) { /* the sequence that has the adapter, between others or before them */
        set(s, NULL, NULL, 0);
        assert_int_equal(hone_seq_set_adapters(s, 1 - first, &a, NULL, 1, &err), HONE_OK);
        if (hone_embed(s, all, TEXTS, &p, y[first], &err)) fail_msg("%s", err.message);
        for (int i = 1; i < TEXTS; i++) assert_memory_equal(y[first] + i * n, y[first], (size_t)n * sizeof(float));
    }
    assert_memory_not_equal(y[0], y[1], (size_t)n * sizeof(float));
    hone_session_free(s);
    hone_adapter_close(a);
    hone_model_close(m);
    lora_free(&l), tm_free(t);
}

/* The same of two sequences of one session, s; with: a snapshot of adapter a, bare: of none. */
static void kept_apart_each(hone_session *s, hone_adapter *a, const hone_snapshot *with, const hone_snapshot *bare)
{
    hone_error err = { 0 };
    int32_t kept;
    float row[16];
    const char *both = tm_path("both.state");
    for (int q = 0; q < 2; q++) assert_int_equal(hone_seq_truncate(s, q, 0, NULL), HONE_OK);
    set(s, NULL, NULL, 0);
    assert_int_equal(hone_seq_set_adapters(s, 1, &a, NULL, 1, &err), HONE_OK);
    assert_true(hone_seq_adapters_hash(s, 0) == 0 && hone_seq_adapters_hash(s, 1) && hone_session_adapters_hash(s));
    assert_int_equal(hone_seq_restore(s, 0, with, &err), HONE_E_ARG);
    assert_int_equal(hone_seq_restore(s, 1, bare, &err), HONE_E_ARG);
    assert_int_equal(hone_seq_restore(s, 1, with, &err), HONE_OK);
    tm_run(s, 0, text(16), 9, NULL);
    assert_int_equal(hone_seq_match(s, 1, text(16), 9, &kept, &err), HONE_OK);
    assert_int_equal(kept, 7); /* its own, not the 8 of the other */
    assert_int_equal(hone_seq_set_adapters(s, 1, NULL, NULL, 0, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "when it is empty"));
    if (hone_session_save(s, both, &err)) fail_msg("%s", err.message);
    if (hone_session_load(s, both, &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_seq_copy(s, 0, 1, &err), HONE_OK); /* with its adapters */
    assert_int_equal(hone_session_load(s, both, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "sequence 0"));
    assert_true(hone_seq_adapters_hash(s, 0) == hone_seq_adapters_hash(s, 1));
    tm_run(s, 0, text(16) + 7, 1, row);
    set(s, &a, NULL, 1);
}

static void kept_apart(void **state)
{
    tiny *t = tm_new(tm_llama);
    lora l;
    lora_make(&l, t, "attn", "one", 3, 2.0f, 0.3f);
    hone_model *m = tm_open(t), *m2 = tm_open(t);
    hone_adapter *a = open_adapter(m, l.path), *again = open_adapter(m, l.path), *other = open_adapter(m2, l.path);
    hone_error err = { 0 };
    hone_snapshot *snap, *bare;
    static float want[16], got[16];
    hone_session *s = tm_session(plain, m, 64, 2, 0, HONE_CACHE_F16),
                 *s2 = tm_session(plain, m, 64, 2, 0, HONE_CACHE_F16);
    assert_int_equal(hone_session_set_adapters(s, &other, NULL, 1, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "another model"));
    assert_int_equal(hone_session_set_adapters(s, &a, (float[]){ NAN }, 1, &err), HONE_E_ARG);
    assert_int_equal(hone_session_set_adapters(s, NULL, NULL, -1, &err), HONE_E_ARG);
    tm_run(s, 1, text(16), 5, NULL);
    assert_int_equal(hone_seq_snapshot(s, 1, &bare, &err), HONE_OK);
    assert_int_equal(hone_session_set_adapters(s, &a, NULL, 1, &err), HONE_E_ARG); /* sequence 1 is not empty */
    assert_non_null(strstr(err.message, "sequence 1"));
    assert_true(hone_session_adapters_hash(s) == 0);
    assert_int_equal(hone_seq_truncate(s, 1, 0, NULL), HONE_OK);
    set(s, &a, NULL, 1);
    tm_run(s, 0, text(16), 7, NULL);
    set(s, &again, NULL, 1); /* the same adapter */
    assert_int_equal(hone_session_set_adapters(s, &a, (float[]){ 2 }, 1, &err), HONE_E_ARG);
    assert_int_equal(hone_seq_snapshot(s, 0, &snap, &err), HONE_OK);
    const char *with = tm_path("with.state"), *without = tm_path("without.state");
    if (hone_session_save(s, with, &err)) fail_msg("%s", err.message);
    tm_run(s, 0, text(16) + 7, 1, want);

    assert_int_equal(hone_seq_restore(s2, 0, snap, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "other adapters"));
    assert_int_equal(hone_session_load(s2, with, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "saved with adapters, this session has none"));
    tm_run(s2, 0, text(16), 7, NULL);
    if (hone_session_save(s2, without, &err)) fail_msg("%s", err.message);
    assert_int_equal(hone_seq_truncate(s2, 0, 0, NULL), HONE_OK);
    set(s2, &a, (float[]){ 2 }, 1);
    assert_int_equal(hone_session_load(s2, with, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "other scales"));
    assert_int_equal(hone_session_load(s2, without, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "without adapters"));
    assert_int_equal(hone_seq_restore(s2, 0, bare, &err), HONE_E_ARG);
    set(s2, &again, NULL, 1);
    if (hone_seq_restore(s2, 0, snap, &err)) fail_msg("%s", err.message);
    tm_run(s2, 0, text(16) + 7, 1, got);
    assert_memory_equal(got, want, sizeof want);
    if (hone_session_load(s2, with, &err)) fail_msg("%s", err.message);
    tm_run(s2, 0, text(16) + 7, 1, got);
    assert_memory_equal(got, want, sizeof want);
    kept_apart_each(s2, a, snap, bare);
    hone_snapshot_free(snap), hone_snapshot_free(bare);
    hone_session_free(s), hone_session_free(s2);
    hone_adapter_close(a), hone_adapter_close(again), hone_adapter_close(other);
    hone_model_close(m), hone_model_close(m2);
    lora_free(&l), tm_free(t);
}

static void tells(void **state)
{
    tiny *t = tm_new(tm_llama);
    lora l;
    lora_make(&l, t, "attn_q", "one", 3, 2.0f, 0.3f);
    hone_model *m = tm_open(t);
    hone_adapter *a = open_adapter(m, l.path);
    hone_adapter_info info;
    hone_adapter_get_info(a, &info);
    assert_string_equal(info.path, l.path);
    assert_string_equal(info.name, "");
    assert_true(info.n_pairs == 2 && info.rank == 3 && info.n_params == 2 * 3 * (32 + 32) && info.hash != 0);
    hone_adapter_close(a);
    hone_adapter_close(NULL);
    hone_model_close(m);
    lora_free(&l), tm_free(t);
}

static void count_event(void *arg, const hone_profile_event *e)
{
    uint64_t *bytes = arg;
    if (!strcmp(e->op, "attn_qkv")) bytes[0] += e->bytes, bytes[1]++;
}
static void profiled(void **state)
{
    tiny *t = tm_new(tm_llama);
    lora l;
    lora_make(&l, t, "attn_q", "one", 3, 2.0f, 0.3f);
    hone_model *m = tm_open(t);
    hone_adapter *a = open_adapter(m, l.path);
    uint64_t seen[2][2] = { { 0 } };
    static float want[LEN * 16], got[LEN * 16];
    hone_session *s = tm_session(plain, m, 64, 1, 0, HONE_CACHE_F16);
    hone_session_set_profile(s, count_event, seen[0]);
    tm_run(s, 0, text(16), LEN, got);
    empty(s);
    set(s, &a, NULL, 1);
    hone_session_set_profile(s, count_event, seen[1]);
    tm_run(s, 0, text(16), LEN, got);
    hone_session_set_profile(s, NULL, NULL);
    empty(s);
    tm_run(s, 0, text(16), LEN, want);
    assert_memory_equal(got, want, sizeof want);
    assert_int_equal(seen[0][1], 2);
    assert_int_equal(seen[1][1], 2); /* named and placed as ever */
    assert_int_equal(seen[1][0] - seen[0][0], 2 * 3 * (32 + 32) * sizeof(float));
    hone_session_free(s);
    hone_adapter_close(a);
    hone_model_close(m);
    lora_free(&l), tm_free(t);
}

static bool hear(void *arg, const hone_event *e)
{
    if (e->kind == HONE_EVENT_END) *(hone_end *)arg = e->end;
    return true;
}

/* ---- what is wrong with them --------------------------------------------------------------------------- */

/* Adapters that can never run are refused where a request is handed in, not after it waited. */
static void refused_at_submit(void **state)
{
    hone_error err = { 0 };
    tiny *t = tm_new(tm_llama);
    lora l;
    lora_make(&l, t, "attn_q", "one", 3, 2.0f, 0.3f);
    hone_model *m = tm_open(t), *other = tm_open(t);
    hone_adapter *a = open_adapter(m, l.path), *foreign = open_adapter(other, l.path);
    hone_scheduler *s;
    uint64_t id;
    const float nan = NAN, huge = 3e38f, one = 1;
    const struct {
        hone_adapter *of;
        const float *scale;
        hone_status want;
        const char *says;
    } ask[] = { { a, &nan, HONE_E_ARG, "expected a finite number" },
                { a, &huge, HONE_E_ARG, "scale 3e+38, times the 2 that the file has for blk.0.attn_q.weight" },
                { foreign, &one, HONE_E_ARG, "opened for another model" },
                { foreign, NULL, HONE_E_ARG, "opened for another model" },
                { a, &one, HONE_OK, "" },
                { a, NULL, HONE_OK, "" } };
    const hone_scheduler_params p = { .session = { .n_ctx = 80, .n_seq = 1 } };
    assert_int_equal(hone_scheduler_new(&s, plain, m, &p, NULL), HONE_OK);
    for (size_t i = 0; i < sizeof ask / sizeof *ask; i++) {
        hone_request r = { .prompt = text(16), .n_prompt = 9, .max_tokens = 1, .n_logprobs = -1 };
        r.adapters = &ask[i].of, r.scales = ask[i].scale, r.n_adapters = 1;
        hone_sampler_defaults(&r.sampling);
        hone_status st = hone_scheduler_submit(s, &r, &id, &err);
        if (st != ask[i].want || (st && !strstr(err.message, ask[i].says)))
            fail_msg("%zu: %s (%s)", i, hone_status_name(st), err.message);
        assert_true(st == HONE_OK ? id > 0 : id == 0);
    }
    hone_scheduler_free(s);
    hone_adapter_close(a);
    hone_adapter_close(foreign);
    hone_model_close(m);
    hone_model_close(other);
    lora_free(&l);
    tm_free(t);
}

static void blamed(hone_session *s, hone_adapter *const *a, const float *scales, int n, const char *says)
{
    hone_error err = { 0 };
    const float *y;
    empty(s);
    set(s, a, scales, n);
    hone_status st = hone_append(s, 0, text(16), 9, &y, &err);
    if (st != HONE_E_NUMERIC || !strstr(err.message, says))
        fail_msg("%s: %s (%s)", says, hone_status_name(st), err.message);
}

/* What an adapter makes no number of is told with its name and scale, the weights behind it. */
static void blamed_by_name(void **state)
{
    hone_error err = { 0 };
    tiny *t = tm_new(tm_llama);
    lora l[2];
    const float *y;
    float row[32];
    lora_make(&l[0], t, "attn_k", "one", 3, 2.0f, 0.3f);
    lora_make(&l[1], t, "output.weight", "two", 2, 1.0f, 90);
    hone_model *m = tm_open(t);
    hone_adapter *a[2] = { open_adapter(m, l[0].path), open_adapter(m, l[1].path) };
    hone_session *s = tm_session(plain, m, 64, 1, 0, HONE_CACHE_F16),
                 *wide = tm_session(plain, m, 64, 1, 0, HONE_CACHE_F32);
    char says[300];
    snprintf(says, sizeof says, "or a smaller scale of the adapter %s at scale 1e+07", l[0].path);
    blamed(s, a, (float[]){ 1e7f, 1 }, 1, says);
    snprintf(says, sizeof says, "the adapter %s at scale 1.5e+38, or the weights", l[0].path);
    blamed(wide, a, (float[]){ 1.5e38f, 1 }, 1, says);
    snprintf(says, sizeof says, "the adapter %s at scale 3e+38, or the weights", l[1].path);
    blamed(wide, a + 1, (float[]){ 3e38f }, 1, says);
    snprintf(says, sizeof says, "the adapter %s at scale 0.5 (the first of 2), or the weights", l[0].path);
    blamed(wide, a, (float[]){ 0.5f, 3e38f }, 2, says);

    /* of embeddings, too */
    lora back;
    lora_make(&back, t, "ffn_down", "three", 2, 1.0f, 90);
    hone_adapter *b = open_adapter(m, back.path);
    const hone_text_ids one = { text(16), 5 };
    const hone_embed_params p = { .pooling = HONE_POOL_LAST };
    empty(wide);
    set(wide, &b, (float[]){ 3e38f }, 1);
    hone_status st = hone_embed(wide, &one, 1, &p, row, &err);
    snprintf(says, sizeof says, "the adapter %s at scale 3e+38, or the weights", back.path);
    if (st != HONE_E_NUMERIC || !strstr(err.message, says)) fail_msg("%s (%s)", hone_status_name(st), err.message);

    /* a scale whose product is none is no scale */
    assert_int_equal(hone_session_set_adapters(wide, a, (float[]){ 3e38f }, 1, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "is no finite number; expected a smaller scale"));
    set(wide, NULL, NULL, 0);
    assert_int_equal(hone_append(wide, 0, text(16), 9, &y, &err), HONE_OK);
    hone_session_free(s);
    hone_session_free(wide);
    for (int i = 0; i < 2; i++) hone_adapter_close(a[i]), lora_free(&l[i]);
    hone_adapter_close(b);
    lora_free(&back);
    hone_model_close(m);
    tm_free(t);
}

/* A prompt of a page and a bit with these adapters is run in the one slot. */
static void run_in_slot(hone_scheduler *s, hone_adapter *const *a, const float *scales, int32_t n)
{
    int32_t ids[70];
    bool worked = true;
    uint64_t id;
    hone_end end = HONE_END_ERROR;
    for (int i = 0; i < 70; i++) ids[i] = text(16)[i % LEN];
    hone_request r = { .prompt = ids, .n_prompt = 70, .max_tokens = 0, .n_logprobs = -1, .event = hear, .arg = &end };
    r.adapters = a;
    r.scales = scales;
    r.n_adapters = n;
    hone_sampler_defaults(&r.sampling);
    assert_int_equal(hone_scheduler_submit(s, &r, &id, NULL), HONE_OK);
    while (worked) assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
    assert_int_equal(end, HONE_END_LENGTH);
}

static uint64_t n_kept(const hone_scheduler *s)
{
    hone_prefix_info info;
    hone_session_prefix_info(s->ses, &info);
    return info.n_nodes;
}

/* What was computed with an adapter goes when it is closed, also where no slot has it any more; and the notes of what
 * was computed with which scales do not outlive it. */
static void closed_goes_whole(void **state)
{
    enum { MANY = 100 };
    tiny *t = tm_new(tm_llama);
    lora l[2];
    lora_make(&l[0], t, "attn_q", "one", 3, 2.0f, 0.3f);
    lora_make(&l[1], t, "attn_v", "two", 2, 1.0f, 0.3f);
    hone_model *m = tm_open(t);
    hone_adapter *a[2] = { open_adapter(m, l[0].path), open_adapter(m, l[1].path) };
    hone_scheduler *s;
    bool worked;
    const hone_scheduler_params p = { .session = { .n_ctx = 80, .n_seq = 1, .cache_budget = 1 << 20 } };
    assert_int_equal(hone_scheduler_new(&s, plain, m, &p, NULL), HONE_OK);
    run_in_slot(s, a, NULL, 1);
    run_in_slot(s, a, NULL, 2);
    run_in_slot(s, a + 1, NULL, 1);
    run_in_slot(s, NULL, NULL, 0);
    assert_int_equal(n_kept(s), 4);
    hone_adapter_close(a[0]);
    assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
    assert_int_equal(n_kept(s), 2);
    for (int i = 1; i <= MANY; i++) {
        const float scale = 0.01f * (float)i;
        hone_session_drop_prefixes(s->ses);
        run_in_slot(s, a + 1, &scale, 1);
    }
    assert_true(s->ses->cap_kept < MANY / 2);
    hone_adapter_close(a[1]);
    assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
    assert_int_equal(n_kept(s), 0);
    hone_scheduler_free(s);
    hone_model_close(m);
    lora_free(&l[0]), lora_free(&l[1]), tm_free(t);
}

static uint64_t n_found(const hone_scheduler *s)
{
    hone_prefix_info info;
    hone_session_prefix_info(s->ses, &info);
    return info.n_hit_positions;
}

/* Of three handles of one adapter whichever is open keeps what was computed with another, also one that nothing was
 * computed with; the last one takes it along. The same file for another model is another adapter. */
static void stays_while_one_is_open(void **state)
{
    tiny *t = tm_new(tm_llama);
    lora l;
    lora_make(&l, t, "attn_q", "one", 3, 2.0f, 0.3f);
    hone_model *m = tm_open(t), *other = tm_open(t);
    hone_adapter *a = open_adapter(m, l.path), *b = open_adapter(m, l.path), *idle = open_adapter(m, l.path);
    hone_adapter *apart = open_adapter(other, l.path);
    hone_scheduler *s;
    bool worked;
    const hone_scheduler_params p = { .session = { .n_ctx = 80, .n_seq = 1, .cache_budget = 1 << 20 } };
    assert_int_equal(hone_scheduler_new(&s, plain, m, &p, NULL), HONE_OK);
    run_in_slot(s, &a, NULL, 1);
    run_in_slot(s, &b, NULL, 1);
    assert_int_equal(n_kept(s), 1);
    hone_adapter_close(b);
    assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
    assert_int_equal(n_kept(s), 1);
    const uint64_t before = n_found(s);
    run_in_slot(s, &a, NULL, 1);
    assert_int_equal(n_found(s) - before, 64);
    hone_adapter_close(a);
    assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
    assert_int_equal(n_kept(s), 1);
    hone_adapter_close(idle);
    assert_int_equal(hone_scheduler_step(s, &worked, NULL), HONE_OK);
    assert_int_equal(n_kept(s), 0);
    hone_scheduler_free(s);
    hone_adapter_close(apart);
    hone_model_close(m), hone_model_close(other);
    lora_free(&l), tm_free(t);
}

static int setup(void **state)
{
    if (tm_make_dir(state)) return -1;
    plain = tm_context("scalar", 1);
    return 0;
}
static int teardown(void **state)
{
    hone_context_free(plain);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_merged),
        cmocka_unit_test(equals_merged_rwkv),
        cmocka_unit_test(one_answer),
        cmocka_unit_test(sets_in_one_batch),
        cmocka_unit_test(switched),
        cmocka_unit_test(packed),
        cmocka_unit_test(nothing_added),
        cmocka_unit_test(vectors_of_one_set),
        cmocka_unit_test(kept_apart),
        cmocka_unit_test(tells),
        cmocka_unit_test(profiled),
        cmocka_unit_test(closed_goes_whole),
        cmocka_unit_test(refused_at_submit),
        cmocka_unit_test(blamed_by_name),
        cmocka_unit_test(stays_while_one_is_open),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
