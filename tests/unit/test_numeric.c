/* Numbers that are none: keys and values that a cache cannot hold, weights and activations that overflow, logits that
 * are
 * not finite. The call fails and names the place, lengths stay as they were, and what comes after is what it would be.
 * */
#include "tiny_rwkv.h"

#include "base/floats.h"
#include "kernels/kernels.h"

#include <math.h>

enum { V = 16 };

static void multiply(tiny *m, const char *name, float by)
{
    tm_tensor *t = tm_find(m, name);
    assert_non_null(t);
    for (uint64_t i = 0; i < tm_elems(t); i++) t->f[i] *= by;
    tm_encode(t, HN_F32);
}

static tiny *scaled(const tm_shape *shape, const char *weight, float by)
{
    tiny *m = tm_new(*shape);
    multiply(m, weight, by);
    return m;
}

static void says(const hone_error *err, const char *words)
{
    if (!strstr(err->message, words)) fail_msg("the message lacks \"%s\": %s", words, err->message);
}

/* ---- what a cache holds ------------------------------------------------------------------------ */

/* The limit is exact: it is stored as a number, and the next float is not; on each level, in K and V, anywhere in a
 * head. */
static void limits(void **state)
{
    enum { D = 37 };
    static _Alignas(64) unsigned char cache[HN_SPLIT * D * 4 * 2];
    for (const char *const *cpu = tm_levels(); *cpu; cpu++) {
        hn_cpu_level level;
        hone_error err;
        assert_int_equal(hn_cpu_choose(&level, *cpu, &err), HONE_OK);
        const hn_kernels *k = hn_kernels_get(level);
        for (int t = 0; t < 2; t++) {
            hn_cache_type type = t ? HN_CACHE_Q8_0 : HN_CACHE_F16;
            float limit = hn_cache_limit(type);
            size_t bytes = hn_cache_block_bytes(type, D), scales = bytes - (size_t)hn_cache_d4(D) * HN_KEY_BLOCK;
            for (int i = 0; i < D; i += 3)
                for (int beyond = 0; beyond < 2; beyond++)
                    for (int v = 0; v < 2; v++) {
                        float x[D] = { 0 };
                        x[i] = (i % 2 ? -1.0f : 1.0f) * (beyond ? nextafterf(limit, INFINITY) : limit);
                        memset(cache, 0, bytes);
                        (v ? k->store_v : k->store_k)[type](cache, x, D, 5);
                        const uint16_t *h = (const uint16_t *)(t ? cache + bytes - scales : cache);
                        int infinite = 0;
                        for (size_t j = 0; j < (t ? scales : bytes) / 2; j++) infinite += (h[j] & 0x7FFF) >= 0x7C00;
                        assert_int_equal(infinite, beyond);
                        assert_int_equal(hn_all_within(x, D, limit), !beyond);
                    }
        }
    }
    assert_true(hn_cache_limit(HN_CACHE_F32) == 3.40282347e38f);
    float x[67];
    for (int i = 0; i < 67; i++) x[i] = i % 2 ? 3e38f : -3e38f;
    assert_true(hn_all_within(x, 67, 3.40282347e38f));
    static const float bad[] = { NAN, -NAN, INFINITY, -INFINITY };
    for (int i = 0; i < 67; i++)
        for (int b = 0; b < 4; b++) {
            float was = x[i];
            x[i] = bad[b];
            assert_false(hn_all_within(x, 67, 3.40282347e38f));
            assert_true(hn_all_within(x, i, 3.40282347e38f));
            x[i] = was;
        }
}

/* ---- at the store ---------------------------------------------------------------------------------- */

/* K, V, cache types, layers, levels, chunks, threads. */
static void too_large(void **state)
{
    static const struct {
        const char *weight;
        float by;
        hone_kv_cache_type cache;
        const char *what, *limit;
    } list[] = {
        { "blk.1.attn_k.weight", 3e6f, HONE_CACHE_F16, "layer 1: K of position ", "65504" },
        { "blk.1.attn_v.weight", 3e6f, HONE_CACHE_F16, "layer 1: V of position ", "65504" },
        { "blk.0.attn_v.weight", 3e6f, HONE_CACHE_F16, "layer 0: V of position ", "65504" },
        { "blk.0.attn_k.weight", 1e9f, HONE_CACHE_Q8_0, "layer 0: K of position ", "8319008" },
        { "blk.1.attn_v.weight", 1e9f, HONE_CACHE_Q8_0, "layer 1: V of position ", "8319008" },
    };
    static const tm_shape *const shapes[] = { &tm_llama, &tm_qwen2 };
    const int32_t ids[6] = { 1, 2, 3, 4, 5, 6 };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        for (int a = 0; a < 2; a++) {
            tiny *t = scaled(shapes[a], list[i].weight, list[i].by);
            hone_model *m = tm_open(t);
            char first[1024] = "";
            for (const char *const *cpu = tm_levels(); *cpu; cpu++)
                for (int chunk = 1; chunk <= 7; chunk += 3) {
                    hone_error err = { 0 };
                    hone_context *c = tm_context(*cpu, chunk > 4 ? 3 : 1);
                    hone_session *s = tm_session(c, m, 16, 1, chunk, list[i].cache);
                    const float *logits = (const float *)1;
                    assert_int_equal(hone_prefill(s, ids, 6, &logits, &err), HONE_E_NUMERIC);
                    assert_null(logits);
                    says(&err, list[i].what);
                    says(&err, list[i].limit);
                    says(&err, "--kv f32");
                    assert_int_equal(hone_seq_length(s, 0), 0);
                    if (!*first) memcpy(first, err.message, sizeof first);
                    assert_string_equal(err.message, first); /* the same place whoever looks */
                    hone_token tok = { .id = 1, .pos = 0 };  /* also where nobody wants logits */
                    assert_int_equal(hone_decode(s, &tok, 1, NULL, &err), HONE_E_NUMERIC);
                    assert_int_equal(hone_decode(s, &tok, 1, NULL, NULL), HONE_E_NUMERIC);
                    assert_int_equal(hone_seq_length(s, 0), 0);
                    hone_session_free(s);
                    float y[6 * V];
                    s = tm_session(c, m, 16, 1, chunk, HONE_CACHE_F32);
                    tm_run(s, 0, ids, 6, y);
                    for (int k = 0; k < 6 * V; k++) assert_true(isfinite(y[k]));
                    hone_session_free(s);
                    hone_context_free(c);
                }
            hone_model_close(m);
            tm_free(t);
        }
}

/* Token 9 alone has values that f16 does not hold. */
static tiny *nine_is_bad(void)
{
    tiny *t = tm_new(tm_llama);
    tm_tensor *e = tm_find(t, "token_embd.weight"), *v = tm_find(t, "blk.0.attn_v.weight");
    for (int i = 0; i < t->s.E; i++) e->f[9 * t->s.E + i] = i ? 0.0f : 1.0f; /* after its norm, one entry of √E, */
    for (int tok = 0; tok < V; tok++)
        if (tok != 9) e->f[tok * t->s.E] = 0.0f; /* which no other token has */
    for (int r = 0; r < t->s.G * t->s.d; r++) v->f[r * t->s.E] = 1e6f;
    tm_encode(e, HN_F32);
    tm_encode(v, HN_F32);
    return t;
}

/* One token of a batch is bad: position and sequence are named, no sequence moves, and each goes on with the bits it
 * would have had. */
static void among_others(void **state)
{
    tiny *t = nine_is_bad();
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 2);
    hone_session *s = tm_session(c, m, 64, 3, 4, HONE_CACHE_F16), *alone = tm_session(c, m, 64, 3, 4, HONE_CACHE_F16);
    const int32_t ids[5] = { 1, 2, 3, 4, 5 }, more[2] = { 6, 7 };
    float y[2 * V], want[2 * V];
    for (int q = 0; q < 3; q++) tm_run(s, q, ids, 3 + q % 2, NULL), tm_run(alone, q, ids, 3 + q % 2, NULL);
    hone_token tok[7];
    int32_t pos[3] = { 3, 4, 3 };
    for (int i = 0; i < 7; i++)
        tok[i] = (hone_token){ .id = i == 4 ? 9 : 1, .pos = pos[i % 3]++, .seq = i % 3, .want_logits = i == 0 };
    hone_error err = { 0 };
    assert_int_equal(hone_decode(s, tok, 7, y, &err), HONE_E_NUMERIC);
    says(&err, "layer 0: V of position 5 (sequence 1, head 0)");
    for (int q = 0; q < 3; q++) {
        assert_int_equal(hone_seq_length(s, q), 3 + q % 2);
        tm_run(s, q, more, 2, y);
        tm_run(alone, q, more, 2, want);
        assert_memory_equal(y, want, sizeof y);
    }
    hone_session_free(s);
    hone_session_free(alone);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

static bool never(void *unused) { return false; }
static int asked;
static bool second_time(void *unused) { return asked++ > 0; }

/* What an interrupted call could not store is not the next one's fault. */
static void interrupted(void **state)
{
    tiny *t = nine_is_bad();
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, m, 16, 1, 8, HONE_CACHE_F16);
    hone_error err = { 0 };
    hone_token tok = { .id = 9, .pos = 0 };
    asked = 0;
    hone_session_set_abort(s, second_time, NULL); /* layer 0 runs, layer 1 does not */
    assert_int_equal(hone_decode(s, &tok, 1, NULL, &err), HONE_E_INTERRUPTED);
    hone_session_set_abort(s, never, NULL);
    tok.id = 3;
    if (hone_decode(s, &tok, 1, NULL, &err)) fail_msg("%s", err.message);
    tok.id = 9, tok.pos = 1;
    assert_int_equal(hone_decode(s, &tok, 1, NULL, &err), HONE_E_NUMERIC);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

/* ---- before the store, and behind it ----------------------------------------------------------------- */

/* NaN and infinity in a weight of each place end every call, whatever the cache and the types. */
static void bad_weights(void **state)
{
    static const char *const names[] = { "token_embd.weight",     "blk.0.attn_norm.weight", "blk.0.attn_q.weight",
                                         "blk.0.attn_k.weight",   "blk.1.attn_v.weight",    "blk.1.attn_output.weight",
                                         "blk.0.ffn_gate.weight", "blk.1.ffn_up.weight",    "blk.1.ffn_down.weight",
                                         "blk.1.ffn_norm.weight", "output_norm.weight",     "output.weight" };
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    const int32_t ids[3] = { 0, 1, 2 };
    hone_context *c = tm_context(NULL, 1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int b = 0; b < 3; b++) {
            tiny *t = tm_new(tm_llama);
            tm_tensor *w = tm_find(t, names[i]);
            for (uint64_t k = 0; k < 32 && k < tm_elems(w); k++)
                ((float *)w->data)[k] = bad[b]; /* a row,
                or the norm */
            hone_model *m = tm_open(t);
            for (int cache = 0; cache < 3; cache++) {
                hone_error err = { 0 };
                const float *y;
                hone_session *s = tm_session(c, m, 8, 1, 8, (hone_kv_cache_type)cache);
                hone_status st = hone_prefill(s, ids, 3, &y, &err);
                if (st != HONE_E_NUMERIC)
                    fail_msg("%s with %g, cache %d: %s", names[i], (double)bad[b], cache, hone_status_name(st));
                says(&err, "--check");
                says(&err, "position ");
                assert_int_equal(hone_seq_length(s, 0), 0);
                hone_session_free(s);
            }
            hone_model_close(m);
            tm_free(t);
        }
    hone_context_free(c);
}

/* Only the logits that are wanted are looked at, and the one that is bad is named; with f16 and q8_0 the cache is
 * named too. */
static void bad_logits(void **state)
{
    tiny *t = tm_new(tm_llama);
    tm_tensor *w = tm_find(t, "output.weight");
    for (int k = 0; k < t->s.E; k++) ((float *)w->data)[11 * t->s.E + k] = 3e38f;
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 1);
    const int32_t ids[3] = { 0, 1, 2 };
    for (int cache = 0; cache < 3; cache++) {
        hone_error err = { 0 };
        hone_session *s = tm_session(c, m, 16, 1, 2, (hone_kv_cache_type)cache);
        tm_run(s, 0, ids, 3, NULL); /* none wanted */
        const float *y;
        assert_int_equal(hone_prefill(s, ids, 3, &y, &err), HONE_E_NUMERIC);
        says(&err, "the logit of token 11 after position 5 (token 2, sequence 0)");
        if (cache == HONE_CACHE_F32) assert_null(strstr(err.message, "--kv"));
        else says(&err, "--kv f32");
        assert_int_equal(hone_seq_length(s, 0), 3);
        hone_session_free(s);
    }
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

/* A recurrent state has no past: without a copy it goes back to a checkpoint, or to nothing, and the length says so. */
static void recurrent(void **state)
{
    for (int v = 6; v <= 7; v++) {
        tiny *t = rw_new(v == 6 ? &rw_vec6 : &rw_vec7);
        tm_tensor *e = tm_find(t, "token_embd.weight");
        for (int k = 0; k < 16; k++) ((float *)e->data)[9 * 16 + k] = NAN;
        hone_model *m = tm_open(t);
        hone_context *c = tm_context(NULL, 1);
        const int32_t good[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, bad[6] = { 1, 9, 2, 3, 4, 5 };
        float y[8 * V], want[8 * V];
        hone_error err;
        const float *x;
        hone_session *s = tm_session(c, m, 64, 1, 4, HONE_CACHE_F16);
        tm_run(s, 0, good, 8, want);
        assert_int_equal(hone_seq_truncate(s, 0, 0, &err), HONE_OK);
        tm_run(s, 0, good, 3, y);
        assert_int_equal(hone_seq_checkpoint(s, 0, &err), HONE_OK);
        tm_run(s, 0, good + 3, 2, y);
        assert_int_equal(hone_prefill(s, bad, 2, &x, &err), HONE_E_NUMERIC);
        says(&err, "after position 6");
        assert_int_equal(hone_seq_length(s, 0), 3); /* the checkpoint */
        tm_run(s, 0, good + 3, 5, y);
        assert_memory_equal(y, want + 3 * V, 5 * V * sizeof *y);
        hone_session_set_abort(s, never, NULL); /* long calls are copied before: nothing is lost */
        assert_int_equal(hone_seq_truncate(s, 0, 0, &err), HONE_OK);
        tm_run(s, 0, good, 3, y);
        assert_int_equal(hone_prefill(s, bad, 6, &x, &err), HONE_E_NUMERIC);
        assert_int_equal(hone_seq_length(s, 0), 3);
        tm_run(s, 0, good + 3, 5, y);
        assert_memory_equal(y, want + 3 * V, 5 * V * sizeof *y);
        hone_session_free(s);
        s = tm_session(c, m, 64, 1, 4, HONE_CACHE_F16); /* no checkpoint */
        tm_run(s, 0, good, 3, y);
        int32_t kept;
        assert_int_equal(hone_seq_sync(s, 0, (int32_t[]){ 1, 2, 3, 9 }, 4, &kept, &x, &err), HONE_E_NUMERIC);
        assert_true(kept == 0 && hone_seq_length(s, 0) == 0); /* not the 3 that it went on from */
        tm_run(s, 0, good, 3, y);
        assert_int_equal(hone_prefill(s, bad, 6, &x, &err), HONE_E_NUMERIC);
        assert_int_equal(hone_seq_length(s, 0), 0);
        tm_run(s, 0, good, 8, y);
        assert_memory_equal(y, want, sizeof y);
        hone_session_free(s);
        hone_context_free(c);
        hone_model_close(m);
        tm_free(t);
    }
}

/* ---- a caller that rounds in another way --------------------------------------------------------------- */

/* Subnormal numbers are zeros, up, towards zero, traps. */
#if defined(__x86_64__)
static const uint64_t modes[] = { 0x1F80 | 0x8040, 0x1F80 | 0x4000, 0x1F80 | 0x6000, 0x1F80 & ~0x0080 };
#elif defined(__aarch64__)
static const uint64_t modes[] = { 1 << 24, 1 << 22, 3 << 22, 1 << 25 };
#else
static const uint64_t modes[] = { 0 };
#endif

/* Bits follow from the model and the tokens, not from what the host program set for its thread before it called, or
 * before it made the context, whose threads inherit that; and it keeps what it set. */
static void another_rounding(void **state)
{
    const int32_t ids[6] = { 1, 2, 3, 4, 5, 6 };
    tiny *t = tm_new(tm_llama);
    multiply(t, "token_embd.weight", 1e-39f); /* rows of subnormal numbers, and logits that are theirs */
    multiply(t, "blk.0.attn_output.weight", 1e-34f);
    multiply(t, "blk.1.attn_output.weight", 1e-34f);
    hone_model *m = tm_open(t);
    float want[6 * V], y[6 * V], least = INFINITY;
    const uint64_t standard = hn_floats_get();
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, m, 16, 1, 8, HONE_CACHE_F32);
    tm_run(s, 0, ids, 6, want);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    for (int i = 0; i < 6 * V; i++) least = fminf(least, fabsf(want[i]));
    assert_true(least > 0 && least < 1e-34f);
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++)
        for (int threads = 1; threads <= 3; threads += 2)
            for (int early = 0; early < 2; early++) {
                hn_floats_set(early ? modes[k] : standard);
                m = tm_open(t);
                c = tm_context(NULL, threads);
                s = tm_session(c, m, 16, 1, 8, HONE_CACHE_F32);
                hn_floats_set(modes[k]);
                hone_token tok[6];
                for (int i = 0; i < 6; i++)
                    tok[i] = (hone_token){ .id = ids[i], .pos = i, .seq = 0, .want_logits = true };
                hone_status st = hone_decode(s, tok, 6, y, NULL);
                uint64_t after = hn_floats_get();
                hn_floats_set(standard);
                assert_int_equal(st, HONE_OK);
                assert_int_equal(after & HN_FLOATS_MASK, modes[k] & HN_FLOATS_MASK);
                assert_memory_equal(y, want, sizeof y);
                hone_session_free(s);
                hone_context_free(c);
                hone_model_close(m);
            }
    tm_free(t);
}

/* So do texts of templates. */
static void another_rounding_of_texts(void **state)
{
    const char *const source = "{{ 0.1 + 0.2 }} {{ x * 3 }} {{ 1 / 3 }}", *const context = "{\"x\": 0.1}";
    const uint64_t standard = hn_floats_get();
    char *want, *text;
    size_t n_want, n;
    hone_error err = { 0 };
    assert_int_equal(hone_template_render(source, strlen(source), "t", context, NULL, &want, &n_want, &err), HONE_OK);
    for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
        hn_floats_set(modes[k]);
        hone_status st = hone_template_render(source, strlen(source), "t", context, NULL, &text, &n, &err);
        uint64_t after = hn_floats_get();
        hn_floats_set(standard);
        assert_int_equal(st, HONE_OK);
        assert_int_equal(after & HN_FLOATS_MASK, modes[k] & HN_FLOATS_MASK);
        assert_string_equal(text, want);
        hone_free(text);
    }
    hone_free(want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits),      cmocka_unit_test(too_large),        cmocka_unit_test(among_others),
        cmocka_unit_test(interrupted), cmocka_unit_test(bad_weights),      cmocka_unit_test(bad_logits),
        cmocka_unit_test(recurrent),   cmocka_unit_test(another_rounding), cmocka_unit_test(another_rounding_of_texts),
    };
    return cmocka_run_group_tests_name("numeric", tests, tm_make_dir, tm_remove_dir);
}
