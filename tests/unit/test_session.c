/* Sessions: whatever the company, the chunks, the threads and the level, a sequence gets
 * the logits it would get alone; what fails changes nothing; what was saved continues
 * bit by bit. The reference is always one token a time, one thread, scalar kernels. */
#include "engine/engine.h"
#include "tiny_model.h"
#include "slowed.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { THOROUGH = !SLOWED };

enum { LEN = 90 };

/* A model, its file open, and the logits of some texts. */
typedef struct subject {
    const char *name;
    tiny *t;
    hone_model *m;
    int V, len;
    float *want[3][2]; /* [text][cache] [len][V] */
} subject;

static subject subjects[5];
enum { N_SUBJECTS = 5, N_TEXT = 3 };

/* Token i of text k. Texts 0 and 1 begin alike. */
static int32_t text(const subject *s, int k, int i)
{
    return (int32_t)(hn_rand64((uint64_t)(k == 1 && i < 20 ? 0 : k), (uint64_t)i) % (uint64_t)s->V);
}
static const int32_t *texts(const subject *s, int k)
{
    static int32_t ids[3][LEN];
    for (int i = 0; i < LEN; i++) ids[k][i] = text(s, k, i);
    return ids[k];
}

static hone_context *plain; /* scalar, one thread */

static void add(subject *s, const char *name, tiny *t, int len)
{
    *s = (subject){ .name = name, .t = t, .m = tm_open(t), .V = t->s.V, .len = len };
    for (int k = 0; k < N_TEXT; k++)
        for (int c = 0; c < 2; c++) {
            hone_session *one = tm_session(plain, s->m, LEN, 1, 1, (hone_kv_cache_type)c);
            s->want[k][c] = malloc((size_t)(len * s->V) * sizeof(float));
            assert_non_null(s->want[k][c]);
            for (int i = 0; i < len; i++) tm_run(one, 0, texts(s, k) + i, 1, s->want[k][c] + i * s->V);
            hone_session_free(one);
        }
}

/* Every kernel family at once: K-quants, 32-blocks, halves, floats, and decoded panels. */
static tiny *mixed_types(void)
{
    tiny *t = tm_new((tm_shape)TM("qwen2", 256, 4, 2, 64, 256, 24, 2, 1e6, 1e-6, .qkv_bias = true));
    static const struct {
        const char *name;
        hn_type type;
    } list[] = {
        { "token_embd.weight", HN_Q4_K },     { "output.weight", HN_Q6_K },
        { "blk.0.attn_q.weight", HN_Q4_K },   { "blk.0.attn_k.weight", HN_Q5_0 },
        { "blk.0.attn_v.weight", HN_Q6_K },   { "blk.0.attn_output.weight", HN_Q8_0 },
        { "blk.0.ffn_gate.weight", HN_Q4_0 }, { "blk.0.ffn_up.weight", HN_F16 },
        { "blk.0.ffn_down.weight", HN_BF16 }, { "blk.1.attn_q.weight", HN_Q5_K },
        { "blk.1.attn_k.weight", HN_IQ4_NL }, { "blk.1.attn_v.weight", HN_Q3_K },
        { "blk.1.ffn_gate.weight", HN_Q5_1 }, { "blk.1.ffn_up.weight", HN_Q4_K },
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) tm_retype(t, list[i].name, list[i].type);
    return t;
}

static int set_up(void **state)
{
    if (tm_make_dir(state)) return -1;
    plain = tm_context("scalar", 1);
    add(&subjects[0], "llama", tm_new(tm_llama), LEN);
    add(&subjects[1], "qwen3", tm_new(tm_qwen3), LEN);
    add(&subjects[2], "odd sizes",
        tm_new((tm_shape)TM("llama", 30, 3, 1, 10, 17, 11, 3, 1e4, 1e-5, .tied = true, .all_bias = true)), LEN);
    add(&subjects[4], "gemma3", tm_new(tm_gemma3), LEN);
    add(&subjects[3], "mixed types", mixed_types(), THOROUGH ? 50 : 30);
    return 0;
}
static int tear_down(void **state)
{
    for (int i = 0; i < N_SUBJECTS; i++) {
        for (int k = 0; k < N_TEXT; k++) free(subjects[i].want[k][0]), free(subjects[i].want[k][1]);
        hone_model_close(subjects[i].m);
        tm_free(subjects[i].t);
    }
    hone_context_free(plain);
    return tm_remove_dir(state);
}

/* Rows [from, from + n) of a text's reference. */
static void same(const subject *s, int k, int cache, int from, int n, const float *y, const char *what)
{
    for (int i = 0; i < n; i++)
        if (memcmp(y + i * s->V, s->want[k][cache] + (from + i) * s->V, (size_t)s->V * sizeof *y))
            fail_msg("%s, %s cache, %s: text %d differs at position %d", s->name, cache ? "f32" : "f16", what, k,
                     from + i);
}
/* Appends positions [from, from + n) of text k to seq; they must be what the reference says. */
static void goes_on(const subject *s, hone_session *h, int32_t seq, int k, int cache, int n, const char *what)
{
    int from = hone_seq_length(h, seq);
    float *y = malloc((size_t)((n + 1) * s->V) * sizeof *y);
    assert_true(y && from >= 0 && from + n <= s->len);
    tm_run(h, seq, texts(s, k) + from, n, y);
    same(s, k, cache, from, n, y, what);
    assert_int_equal(hone_seq_length(h, seq), from + n);
    free(y);
}

/* ---- independence ------------------------------------------------------------------------------ */

static void chunks_threads_levels(void **state)
{
    static const int32_t threads[] = { 1, 2, 3, 8 }, chunks[] = { 1, 2, 3, 7, 16, 61, 512 };
    for (const char *const *cpu = tm_levels(); *cpu; cpu++)
        for (int a = 0; a < 4; a++) {
            hone_context *c = tm_context(*cpu, threads[a]);
            assert_string_equal(hone_context_cpu(c), *cpu);
            assert_int_equal(hone_context_threads(c), threads[a]);
            for (int i = 0; i < N_SUBJECTS; i++)
                for (int b = 0; b < 7; b++) {
                    if (!THOROUGH && (a + b + i) % 3) continue;
                    if (chunks[b] == 1 && threads[a] == 8 && i) continue;
                    char what[64];
                    snprintf(what, sizeof what, "%s, %d threads, chunks of %d", *cpu, threads[a], chunks[b]);
                    int cache = (a + b) % 2;
                    hone_session *h = tm_session(c, subjects[i].m, LEN, 1, chunks[b], (hone_kv_cache_type)cache);
                    goes_on(&subjects[i], h, 0, 0, cache, subjects[i].len, what);
                    hone_session_free(h);
                }
            hone_context_free(c);
        }
}

/* Three sequences, dealt into batches at random. */
static void company(void **state)
{
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int round = 0; round < (THOROUGH ? 12 : 4); round++) {
            const subject *s = &subjects[i];
            const char *const *levels = tm_levels();
            int n_level = 0, cache = round % 2, seq_of[3] = { 4, 0, 2 }, at[3] = { 0 };
            uint64_t key = (uint64_t)(100 * i + round), r = 0;
            while (levels[n_level]) n_level++;
            hone_context *c = tm_context(levels[round % n_level], 1 + round % 3);
            hone_session *h =
                tm_session(c, s->m, LEN, 5, (int32_t[]){ 1, 4, 32, 512 }[round % 4], (hone_kv_cache_type)cache);
            hone_error err = { 0 };
            while (at[0] < s->len || at[1] < s->len || at[2] < s->len) {
                hone_token t[40];
                int from[40], who[40], n = 0, wanted = 0, size = 1 + (int)(hn_rand64(key, r++) % 40);
                float *y = malloc(sizeof(float) * 40 * (size_t)s->V);
                assert_non_null(y);
                while (n < size && (at[0] < s->len || at[1] < s->len || at[2] < s->len)) {
                    int k = (int)(hn_rand64(key, r++) % 3);
                    if (at[k] == s->len) continue;
                    bool want = hn_rand64(key, r++) % 3 > 0;
                    if (want) from[wanted] = at[k], who[wanted++] = k;
                    t[n++] = (hone_token){ text(s, k, at[k]), at[k], seq_of[k], want };
                    at[k]++;
                }
                if (hone_decode(h, t, n, wanted ? y : NULL, &err)) fail_msg("%s", err.message);
                for (int j = 0; j < wanted; j++) same(s, who[j], cache, from[j], 1, y + j * s->V, "in company");
                free(y);
            }
            for (int k = 0; k < 3; k++) assert_int_equal(hone_seq_length(h, seq_of[k]), s->len);
            assert_int_equal(hone_seq_length(h, 1), 0);
            hone_session_free(h);
            hone_context_free(c);
        }
}

/* Beyond 512 keys attention merges partial results; chunks end anywhere around that. */
static void long_text(void **state)
{
    const subject *s = &subjects[0];
    enum { N = 1100 };
    int32_t *ids = malloc(N * sizeof *ids);
    float *want = malloc(sizeof(float) * N * 16), *y = malloc(sizeof(float) * N * 16);
    assert_true(ids && want && y);
    for (int i = 0; i < N; i++) ids[i] = text(s, 2, i);
    for (int cache = 0; cache < 2; cache++) {
        hone_session *one = tm_session(plain, s->m, N, 1, 1, (hone_kv_cache_type)cache);
        tm_run(one, 0, ids, N, want);
        hone_session_free(one);
        for (const char *const *cpu = tm_levels(); *cpu; cpu++) {
            hone_context *c = tm_context(*cpu, 2);
            hone_session *h = tm_session(c, s->m, N, 1, 500, (hone_kv_cache_type)cache);
            static const int ends[] = { 1, 15, 64, 65, 500, 511, 512, 513, 1023, 1024, 1025, N };
            int at = 0;
            for (size_t i = 0; i < sizeof ends / sizeof *ends; at = ends[i++]) {
                tm_run(h, 0, ids + at, ends[i] - at, y + at * 16);
            }
            assert_memory_equal(y, want, sizeof(float) * N * 16);
            hone_session_free(h);
            hone_context_free(c);
        }
    }
    free(ids);
    free(want);
    free(y);
}

static void only_where_wanted(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int mask = 0; mask < 64; mask++) {
            const subject *s = &subjects[i];
            hone_session *h = tm_session(c, s->m, LEN, 1, mask % 7 + 1, HONE_CACHE_F16);
            float y[7 * 24];
            hone_token t[6];
            int n = 0;
            hone_error err = { 0 };
            for (int j = 0; j < 6; j++) t[j] = (hone_token){ text(s, 0, j), j, 0, mask >> j & 1 };
            for (int j = 0; j < 7 * 24; j++) y[j] = -77.0f;
            if (hone_decode(h, t, 6, mask ? y : NULL, &err)) fail_msg("%s", err.message);
            for (int j = 0; j < 6; j++)
                if (mask >> j & 1) same(s, 0, 0, j, 1, y + s->V * n++, "where wanted");
            for (int j = n * s->V; j < 7 * 24; j++) assert_true(y[j] == -77.0f); /* not a row more */
            goes_on(s, h, 0, 0, 0, 5, "after a mask");
            hone_session_free(h);
        }
    hone_context_free(c);
}

static void prefill(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int chunk = 1; chunk < 40; chunk += 6) {
            const subject *s = &subjects[i];
            hone_error err = { 0 };
            const float *y = NULL, *first;
            hone_session *h = tm_session(c, s->m, LEN, 2, chunk, HONE_CACHE_F32);
            if (hone_prefill(h, texts(s, 0), 17, &first, &err)) fail_msg("%s", err.message);
            same(s, 0, 1, 16, 1, first, "prefill");
            if (hone_prefill(h, texts(s, 0) + 17, 5, &y, &err)) fail_msg("%s", err.message);
            same(s, 0, 1, 21, 1, y, "prefill again");
            goes_on(s, h, 0, 0, 1, 2, "decode after prefill");
            goes_on(s, h, 1, 1, 1, 20, "the other sequence");
            assert_int_equal(hone_prefill(h, texts(s, 0), 0, &y, &err), HONE_E_ARG);
            assert_null(y);
            assert_int_equal(hone_prefill(h, texts(s, 0), -5, &y, &err), HONE_E_ARG);
            assert_int_equal(hone_prefill(h, (int32_t[]){ 1, s->V, 1 }, 3, &y, &err), HONE_E_ARG);
            assert_null(y);
            assert_int_equal(hone_prefill(h, (int32_t[]){ 1, 2, -1 }, 3, &y, &err), HONE_E_ARG);
            assert_int_equal(hone_prefill(h, texts(s, 1), LEN - 23, &y, &err), HONE_E_CTX);
            assert_null(y);
            assert_int_equal(hone_prefill(h, texts(s, 1), INT32_MAX, &y, &err), HONE_E_CTX);
            assert_non_null(strstr(err.message, "2147483671")); /* 24 more than INT32_MAX */
            goes_on(s, h, 0, 0, 1, s->len - 24, "after refusals");
            hone_session_free(h);
        }
    hone_context_free(c);
}

/* ---- sequences ------------------------------------------------------------------------------------ */

/* Sequence 0 at n_pos positions, or, where a window dropped what that needs, at fewer: how many. */
static int32_t cut(const subject *s, hone_session *h, int32_t n_pos)
{
    hone_error err = { 0 };
    int32_t kept;
    hone_status st = hone_seq_truncate(h, 0, n_pos, &err);
    if (st == HONE_OK) return n_pos;
    assert_string_equal(s->name, "gemma3");
    assert_int_equal(st, HONE_E_UNSUPPORTED);
    assert_int_equal(hone_seq_rewind(h, 0, n_pos, &kept, &err), HONE_OK);
    assert_in_range(kept, 0, n_pos - 1);
    return kept;
}

static void truncate_seq(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int cache = 0; cache < 2; cache++) {
            const subject *s = &subjects[i];
            hone_error err = { 0 };
            hone_session *h = tm_session(c, s->m, LEN, 2, 10, (hone_kv_cache_type)cache);
            goes_on(s, h, 1, 1, cache, 9, "neighbour");
            goes_on(s, h, 0, 2, cache, s->len, "to be cut"); /* another text leaves its keys behind */
            static const int keep[] = { 20, 17, 16, 15, 1, 0 };
            for (int k = 0; k < 6; k++) {
                int32_t kept = cut(s, h, keep[k]);
                assert_int_equal(hone_seq_length(h, 0), kept);
                goes_on(s, h, 0, 2, cache, s->len - kept, "after a cut");
            }
            assert_int_equal(hone_seq_truncate(h, 0, 0, &err), HONE_OK);
            goes_on(s, h, 0, 0, cache, s->len, "another text after a cut");
            int32_t kept = cut(s, h, 20); /* texts 0 and 1 begin alike */
            goes_on(s, h, 0, 1, cache, s->len - kept, "a branch");
            goes_on(s, h, 1, 1, cache, 9, "neighbour goes on");
            assert_int_equal(hone_seq_truncate(h, 0, s->len + 1, &err), HONE_E_ARG);
            assert_int_equal(hone_seq_truncate(h, 0, -1, &err), HONE_E_ARG);
            assert_int_equal(hone_seq_truncate(h, 2, 0, &err), HONE_E_ARG);
            assert_int_equal(hone_seq_truncate(h, -1, 0, &err), HONE_E_ARG);
            assert_int_equal(hone_seq_length(h, 0), s->len);
            assert_int_equal(hone_seq_length(h, 2), -1);
            assert_int_equal(hone_seq_length(h, -1), -1);
            hone_session_free(h);
        }
    hone_context_free(c);
}

static void copy_seq(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int cache = 0; cache < 2; cache++) {
            const subject *s = &subjects[i];
            hone_error err = { 0 };
            hone_session *h = tm_session(c, s->m, LEN, 4, 10, (hone_kv_cache_type)cache);
            goes_on(s, h, 3, 2, cache, s->len, "longer, to be overwritten");
            goes_on(s, h, 0, 0, cache, 19, "source");
            assert_int_equal(hone_seq_copy(h, 3, 0, &err), HONE_OK);
            assert_int_equal(hone_seq_copy(h, 1, 0, &err), HONE_OK);
            assert_int_equal(hone_seq_copy(h, 0, 0, &err), HONE_OK);
            assert_int_equal(hone_seq_length(h, 3), 19);
            assert_int_equal(hone_seq_length(h, 0), 19);
            goes_on(s, h, 3, 1, cache, 4, "a fork");
            goes_on(s, h, 0, 0, cache, 3, "the source goes on");
            goes_on(s, h, 1, 0, cache, 5, "a second fork");
            goes_on(s, h, 3, 1, cache, s->len - 23, "the fork to its end");
            goes_on(s, h, 0, 0, cache, s->len - 22, "the source to its end");
            assert_int_equal(hone_seq_copy(h, 0, 2, &err), HONE_OK); /* an empty one */
            assert_int_equal(hone_seq_length(h, 0), 0);
            goes_on(s, h, 0, 2, cache, 6, "from empty");
            goes_on(s, h, 1, 0, cache, 2, "the second fork goes on");
            assert_int_equal(hone_seq_copy(h, 4, 0, &err), HONE_E_ARG);
            assert_int_equal(hone_seq_copy(h, 0, 4, &err), HONE_E_ARG);
            assert_int_equal(hone_seq_copy(h, -1, 0, &err), HONE_E_ARG);
            assert_int_equal(hone_seq_copy(h, 0, -1, &err), HONE_E_ARG);
            hone_session_free(h);
        }
    hone_context_free(c);
}

/* ---- refusals leave the state alone ------------------------------------------------------------------ */

static void bad_batches(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++) {
        const subject *s = &subjects[i];
        hone_session *h = tm_session(c, s->m, 30, 2, 3, HONE_CACHE_F16);
        float *y = malloc(sizeof(float) * 64 * (size_t)s->V);
        assert_non_null(y);
        goes_on(s, h, 0, 0, 0, 7, "before");
        goes_on(s, h, 1, 2, 0, 3, "before");
        const struct {
            hone_token t[6];
            int n;
            hone_status st;
            const char *say;
        } list[] = {
            { { { 1, 7, 0, 1 }, { s->V, 8, 0, 1 } }, 2, HONE_E_ARG, "token 1 " },
            { { { 1, 7, 0, 1 }, { 1, 8, 0, 1 }, { 1, 9, 0, 1 }, { 1, 10, 0, 1 }, { -1, 11, 0, 1 } },
              5,
              HONE_E_ARG,
              "-1" }, /* in the second chunk */
            { { { INT32_MAX, 7, 0, 1 } }, 1, HONE_E_ARG, "2147483647" },
            { { { INT32_MIN, 7, 0, 1 } }, 1, HONE_E_ARG, "-2147483648" },
            { { { 1, 8, 0, 1 } }, 1, HONE_E_ARG, "expected 7" },
            { { { 1, 6, 0, 1 } }, 1, HONE_E_ARG, "expected 7" },
            { { { 1, -1, 0, 1 } }, 1, HONE_E_ARG, "-1" },
            { { { 1, INT32_MAX, 0, 1 } }, 1, HONE_E_ARG, "expected 7" },
            { { { 1, 7, 0, 1 }, { 1, 9, 0, 1 } }, 2, HONE_E_ARG, "expected 8" },
            { { { 1, 7, 0, 1 }, { 1, 7, 0, 1 } }, 2, HONE_E_ARG, "expected 8" },
            { { { 1, 7, 0, 1 }, { 1, 4, 1, 1 } }, 2, HONE_E_ARG, "sequence 1" },
            { { { 1, 7, 2, 1 } }, 1, HONE_E_ARG, "sequence 2" },
            { { { 1, 7, -1, 1 } }, 1, HONE_E_ARG, "sequence -1" },
        };
        hone_error err;
        for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
            memset(&err, 0, sizeof err);
            assert_int_equal(hone_decode(h, list[k].t, list[k].n, y, &err), list[k].st);
            if (!strstr(err.message, list[k].say)) fail_msg("case %zu: %s", k, err.message);
            assert_int_equal(hone_decode(h, list[k].t, list[k].n, y, NULL), list[k].st);
            assert_int_equal(hone_seq_length(h, 0), 7);
            assert_int_equal(hone_seq_length(h, 1), 3);
        }
        assert_int_equal(hone_decode(h, &(hone_token){ 1, 7, 0, true }, 1, NULL, &err),
                         HONE_E_ARG); /* nowhere to put them */
        assert_int_equal(hone_decode(h, NULL, 1, y, &err), HONE_E_ARG);
        assert_int_equal(hone_decode(h, list[0].t, -1, y, &err), HONE_E_ARG);
        assert_int_equal(hone_decode(h, NULL, 0, NULL, &err), HONE_OK);
        assert_int_equal(hone_decode(h, list[0].t, 0, y, &err), HONE_OK);
        goes_on(s, h, 0, 0, 0, 2, "after bad batches");

        /* one token too many for sequence 0, after good ones of both */
        hone_token t[40];
        int n = 0;
        for (int k = 3; k < 9; k++) t[n++] = (hone_token){ text(s, 0, k), k, 1, true };
        for (int k = 9; k < 31; k++) t[n++] = (hone_token){ text(s, 1, k % 20), k, 0, true };
        assert_int_equal(hone_decode(h, t, n, y, &err), HONE_E_CTX);
        assert_non_null(strstr(err.message, "30"));
        assert_int_equal(hone_seq_length(h, 0), 9);
        assert_int_equal(hone_seq_length(h, 1), 3);
        goes_on(s, h, 0, 0, 0, (s->len < 30 ? s->len : 30) - 9, "to the last position");
        goes_on(s, h, 1, 2, 0, 9, "after HONE_E_CTX");
        if (s->len >= 30) assert_int_equal(hone_decode(h, &(hone_token){ 1, 30, 0, false }, 1, NULL, &err), HONE_E_CTX);
        hone_session_free(h);
        free(y);
    }
    hone_context_free(c);
}

static bool stop_at(void *arg)
{
    int *left = arg;
    return (*left)-- == 0;
}

static void interrupted(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int after = 0; after < 5; after++) {
            const subject *s = &subjects[i];
            hone_session *h = tm_session(c, s->m, LEN, 2, 4, HONE_CACHE_F32);
            hone_error err = { 0 };
            const float *p;
            hone_token t[20];
            float *y = malloc(sizeof(float) * 20 * (size_t)s->V);
            assert_non_null(y);
            goes_on(s, h, 0, 0, 1, 3, "before");
            goes_on(s, h, 1, 1, 1, 2, "before");
            for (int k = 0; k < 20; k++)
                t[k] = k % 2 ? (hone_token){ text(s, 2, k), 3 + k / 2, 0, true }
                             : (hone_token){ text(s, 2, k), 2 + k / 2, 1, true };
            int left = after;
            hone_session_set_abort(h, stop_at, &left);
            assert_int_equal(hone_decode(h, t, 20, y, &err), HONE_E_INTERRUPTED);
            assert_int_equal(err.code, HONE_E_INTERRUPTED);
            assert_int_equal(hone_seq_length(h, 0), 3);
            assert_int_equal(hone_seq_length(h, 1), 2);
            left = after;
            assert_int_equal(hone_prefill(h, texts(s, 2), 20, &p, &err), HONE_E_INTERRUPTED);
            assert_null(p);
            assert_int_equal(hone_seq_length(h, 0), 3);
            left = 1000;
            goes_on(s, h, 0, 0, 1, 15, "after an interruption");
            hone_session_set_abort(h, NULL, NULL);
            goes_on(s, h, 1, 1, 1, 15, "after an interruption");
            hone_session_free(h);
            free(y);
        }
    hone_context_free(c);
}

/* ---- files ------------------------------------------------------------------------------------------- */

static unsigned char *read_all(const char *path, size_t *n)
{
    struct stat sb;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fstat(fileno(f), &sb), 0);
    unsigned char *p = malloc((size_t)sb.st_size + 1);
    assert_non_null(p);
    *n = fread(p, 1, (size_t)sb.st_size, f);
    assert_int_equal(*n, sb.st_size);
    fclose(f);
    return p;
}
static void write_all(const char *path, const unsigned char *p, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}
static void save_to(const hone_session *h, const char *name)
{
    hone_error err = { 0 };
    if (hone_session_save(h, tm_path(name), &err)) fail_msg("%s", err.message);
}
static void load_from(hone_session *h, const char *name)
{
    hone_error err = { 0 };
    if (hone_session_load(h, tm_path(name), &err)) fail_msg("%s", err.message);
}
static void same_files(const char *a, const char *b)
{
    size_t n, m;
    unsigned char *p = read_all(tm_path(a), &n), *q = read_all(tm_path(b), &m);
    assert_int_equal(n, m);
    assert_memory_equal(p, q, n);
    free(p);
    free(q);
}

/* Files have every byte of every length looked at in all other builds; ThreadSanitizer, twenty times slower, looks for
 * races, which are in each case or in none. */
#ifdef __SANITIZE_THREAD__
enum { EACH = 4 };
#else
enum { EACH = 1 };
#endif

static void save_and_load(void **state)
{
    static const int lengths[][3] = { { 0, 0, 0 },  { 1, 0, 0 },   { 15, 16, 17 }, { 0, 21, 1 },
                                      { 23, 0, 2 }, { 16, 0, 20 }, { 64, 65, 63 }, { 80, 33, 48 } };
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int cache = 0; cache < 2; cache++)
            for (size_t l = EACH - 1; l < sizeof lengths / sizeof *lengths; l += EACH) {
                const subject *s = &subjects[i];
                const int *len = lengths[l];
                if (len[0] >= s->len || len[1] >= s->len || len[2] >= s->len) continue;
                hone_session *a = tm_session(c, s->m, LEN, 3, 13, (hone_kv_cache_type)cache);
                for (int k = 0; k < 3; k++) goes_on(s, a, k, k, cache, len[k], "before saving");
                save_to(a, "a.session");
                for (int k = 0; k < 3; k++) goes_on(s, a, k, k, cache, s->len - len[k], "the original goes on");

                /* another session, used before, of another size, chunk and level */
                hone_session *b =
                    tm_session(plain, s->m, l % 2 ? LEN : 2048, l % 3 ? 3 : 5, 4, (hone_kv_cache_type)cache);
                goes_on(s, b, 0, 2, cache, s->len, "to be replaced");
                if (l % 3 == 0) goes_on(s, b, 4, 1, cache, 9, "to be emptied");
                load_from(b, "a.session");
                for (int k = 0; k < 3; k++) assert_int_equal(hone_seq_length(b, k), len[k]);
                if (l % 3 == 0) assert_int_equal(hone_seq_length(b, 4), 0);
                if (l % 3) {
                    save_to(b, "b.session"); /* what was loaded is saved the same */
                    same_files("a.session", "b.session");
                }
                for (int k = 0; k < 3; k++) goes_on(s, b, k, k, cache, s->len - len[k], "after loading");
                load_from(a, "a.session"); /* back in time */
                for (int k = 0; k < 3; k++) goes_on(s, a, k, k, cache, s->len - len[k], "after going back");
                hone_session_free(a);
                hone_session_free(b);
            }
    hone_context_free(c);
}

/* The same state, however it was reached, is the same file; and has no byte of what was cut off. */
static void one_state_one_file(void **state)
{
    for (int i = 0; i < N_SUBJECTS; i++)
        for (int cache = 0; cache < 2; cache++)
            for (int l = EACH - 1; l < 8; l += EACH) {
                static const int lengths[] = { 0, 1, 2, 7, 15, 16, 17, 23 };
                const subject *s = &subjects[i];
                int n = lengths[l];
                hone_error err;
                hone_session *a = tm_session(plain, s->m, LEN, 2, 1, (hone_kv_cache_type)cache);
                goes_on(s, a, 0, 0, cache, n, "one by one");
                save_to(a, "one.session");
                hone_session_free(a);
                for (const char *const *cpu = tm_levels(); *cpu; cpu++) {
                    hone_context *c = tm_context(*cpu, 1 + n % 3);
                    hone_session *b = tm_session(c, s->m, LEN + 64, 2, 1 + n * 7 % 11, (hone_kv_cache_type)cache);
                    goes_on(s, b, 0, 2, cache, s->len, "junk");
                    goes_on(s, b, 1, 2, cache, 11, "junk");
                    assert_int_equal(hone_seq_truncate(b, 0, 0, &err), HONE_OK);
                    assert_int_equal(hone_seq_truncate(b, 1, 0, &err), HONE_OK);
                    goes_on(s, b, 0, 0, cache, n, "in chunks");
                    save_to(b, "two.session");
                    same_files("one.session", "two.session");
                    hone_session_free(b);
                    hone_context_free(c);
                }
            }
}

/* Refuses a file; the session goes on as if nothing had been. */
static void refuse_load(const subject *s, hone_session *h, const char *path, int want, const char *say)
{
    hone_error err = { 0 };
    hone_status st = hone_session_load(h, path, &err);
    if (st == HONE_OK) fail_msg("%s: loaded, expected %s", path, say);
    assert_int_equal(st, err.code);
    if (want >= 0 && st != (hone_status)want) fail_msg("%s: %s", hone_status_name(st), err.message);
    if (!strstr(err.message, path) || !strstr(err.message, say))
        fail_msg("message lacks file or \"%s\": %s", say, err.message);
    assert_int_equal(hone_seq_length(h, 0), 6);
    assert_int_equal(hone_seq_length(h, 1), 0);
    goes_on(s, h, 0, 0, 0, 3, "after a refused file");
    assert_int_equal(hone_seq_truncate(h, 0, 6, &err), HONE_OK);
}

/* What is there and no session stays: somebody's text, a model, nothing yet; sessions of any version go. */
static void only_sessions_are_replaced(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        hone_status want;
    } there[] = { { "my notes\n", 9, HONE_E_ARG },     { "", 0, HONE_E_ARG },
                  { "HONESE", 6, HONE_E_ARG },         { "HONESNP1 a snapshot", 19, HONE_E_ARG },
                  { "GGUF\3\0\0", 7, HONE_E_ARG },     { "HONESES1", 8, HONE_OK },
                  { "HONESES9 of later", 17, HONE_OK } };
    hone_error err = { 0 };
    tiny *t = tm_new(tm_llama);
    hone_model *m = tm_open(t);
    hone_context *c = tm_context(NULL, 1);
    hone_session *s = tm_session(c, m, 32, 1, 0, HONE_CACHE_F16);
    const char *path = tm_path("theirs");
    for (size_t i = 0; i < sizeof there / sizeof *there; i++) {
        unsigned char now[64] = { 0 };
        write_all(path, (const unsigned char *)there[i].bytes, there[i].n);
        hone_status st = hone_session_save(s, path, &err);
        if (st != there[i].want) fail_msg("over %s: %s (%s)", there[i].bytes, hone_status_name(st), err.message);
        if (st == HONE_OK) continue;
        assert_non_null(strstr(err.message, "theirs is there, and no session file"));
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        assert_int_equal(fread(now, 1, sizeof now, f), there[i].n);
        assert_memory_equal(now, there[i].bytes, there[i].n);
        fclose(f);
    }
    if (hone_session_save(s, path, &err)) fail_msg("over itself: %s", err.message);
    hone_session_free(s);
    hone_context_free(c);
    hone_model_close(m);
    tm_free(t);
}

static void load_refuses(void **state)
{
    const subject *s = &subjects[0];
    hone_error err = { 0 };
    hone_context *c = tm_context(NULL, 1);
    hone_session *h = tm_session(c, s->m, 40, 2, 8, HONE_CACHE_F16);
    goes_on(s, h, 0, 0, 0, 6, "before");

    /* files of others */
    tiny *other = tm_new(tm_llama);
    tm_tensor *down = tm_find(other, "blk.1.ffn_down.weight");
    down->f[down->ne[0] * down->ne[1] / 2 + 3] += 0.5f; /* the same shapes, one weight in the middle differs */
    tm_encode(tm_find(other, "blk.1.ffn_down.weight"), HN_F32);
    hone_model *om = tm_open(other);
    hone_session *o = tm_session(c, om, 40, 2, 8, HONE_CACHE_F16);
    tm_run(o, 0, texts(s, 0), 5, NULL);
    save_to(o, "other.session");
    refuse_load(s, h, tm_path("other.session"), HONE_E_ARG, "another model");
    hone_session_free(o);
    hone_model_close(om);
    tm_free(other);

    o = tm_session(c, subjects[1].m, 40, 2, 8, HONE_CACHE_F16);
    save_to(o, "qwen3.session");
    refuse_load(s, h, tm_path("qwen3.session"), HONE_E_ARG, "another model");
    hone_session_free(o);
    o = tm_session(c, s->m, 40, 2, 8, HONE_CACHE_F32);
    tm_run(o, 0, texts(s, 0), 5, NULL);
    save_to(o, "f32.session");
    refuse_load(s, h, tm_path("f32.session"), HONE_E_ARG, "f32");
    hone_session_free(o);
    o = tm_session(c, s->m, 41, 2, 8, HONE_CACHE_F16);
    tm_run(o, 1, texts(s, 0), 41, NULL);
    save_to(o, "long.session");
    refuse_load(s, h, tm_path("long.session"), HONE_E_CTX, "41");
    hone_session_free(o);
    o = tm_session(c, s->m, 40, 3, 8, HONE_CACHE_F16);
    save_to(o, "three.session");
    refuse_load(s, h, tm_path("three.session"), HONE_E_CTX, "3");
    hone_session_free(o);

    /* no session files */
    refuse_load(s, h, tm_path("absent.session"), HONE_E_IO, "open");
    refuse_load(s, h, tm_dir, HONE_E_FORMAT, "session");
    write_all(tm_path("empty.session"), (const unsigned char *)"", 0);
    refuse_load(s, h, tm_path("empty.session"), HONE_E_FORMAT, "session");
    assert_int_equal(mkfifo(tm_path("fifo.session"), 0600), 0);
    refuse_load(s, h, tm_path("fifo.session"), HONE_E_FORMAT, "session");
    size_t n;
    unsigned char *p;
    refuse_load(s, h, tm_path("m0.gguf"), HONE_E_FORMAT, "session");

    /* a good one, cut at every length, longer, and with every byte changed in turn */
    o = tm_session(c, s->m, 40, 2, 8, HONE_CACHE_F16);
    tm_run(o, 0, texts(s, 1), 3, NULL);
    tm_run(o, 1, texts(s, 2), 1, NULL);
    save_to(o, "good.session");
    hone_session_free(o);
    p = read_all(tm_path("good.session"), &n);
    p = realloc(p, n + 64);
    assert_non_null(p);
    memset(p + n, 0, 64);
    char bad[160];
    snprintf(bad, sizeof bad, "%s", tm_path("bad.session"));
    for (size_t k = 0; k < n; k += THOROUGH || k < 100 ? 1 : 13) {
        write_all(bad, p, k);
        refuse_load(s, h, bad, HONE_E_FORMAT, "");
    }
    for (size_t k = 1; k <= 64; k++) {
        write_all(bad, p, n + k);
        refuse_load(s, h, bad, HONE_E_FORMAT, "expected");
    }
    for (size_t k = 0; k < n; k += THOROUGH || k < 100 ? 1 : 13) {
        for (int bit = (int)(k % 8); bit < 8; bit += 5) {
            p[k] ^= (unsigned char)(1u << bit);
            write_all(bad, p, n);
            refuse_load(s, h, bad, -1, "");
            p[k] ^= (unsigned char)(1u << bit);
        }
    }
    /* absurd numbers with a right checksum */
    static const uint32_t absurd[] = { 0, 3, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x40000000 };
    for (size_t field = 40; field < 72; field += 4)
        for (int k = 0; k < 6; k++) {
            unsigned char keep[4];
            memcpy(keep, p + field, 4);
            memcpy(p + field, &absurd[k], 4);
            if (!memcmp(keep, p + field, 4)) continue;
            uint64_t sum = 0xcbf29ce484222325u, was;
            for (size_t j = 0; j < n - 8; j++) sum = (sum ^ p[j]) * 0x100000001b3u;
            memcpy(&was, p + n - 8, 8);
            memcpy(p + n - 8, &sum, 8);
            write_all(bad, p, n);
            refuse_load(s, h, bad, -1, "");
            memcpy(p + n - 8, &was, 8);
            memcpy(p + field, keep, 4);
        }
    write_all(bad, p, n);
    assert_int_equal(hone_session_load(h, bad, &err), HONE_OK);
    goes_on(s, h, 0, 1, 0, 3, "the whole file");
    goes_on(s, h, 1, 2, 0, 3, "the whole file");
    free(p);

    /* saving where it cannot be */
    assert_int_equal(hone_session_save(h, tm_path("no/such/dir.session"), &err), HONE_E_IO);
    assert_non_null(strstr(err.message, "no/such"));
    assert_int_equal(mkdir(tm_path("folder"), 0700), 0);
    assert_int_equal(hone_session_save(h, tm_path("folder"), &err), HONE_E_IO);
    assert_int_equal(rmdir(tm_path("folder")), 0);
    int left = 0;
    DIR *d = opendir(tm_dir);
    for (struct dirent *e; (e = readdir(d));) left += strstr(e->d_name, "tmp") != NULL;
    closedir(d);
    assert_int_equal(left, 0);
    goes_on(s, h, 0, 1, 0, 3, "after failed saving");
    hone_session_free(h);
    hone_context_free(c);
}

/* ---- several sessions ---------------------------------------------------------------------------------- */

static void two_on_one_model(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    for (int i = 0; i < N_SUBJECTS; i++) {
        const subject *s = &subjects[i];
        hone_session *a = tm_session(c, s->m, LEN, 1, 5, HONE_CACHE_F16),
                     *b = tm_session(c, s->m, LEN, 1, 9, HONE_CACHE_F32);
        for (int k = 0; k + 6 <= s->len; k += 6) {
            goes_on(s, a, 0, 0, 0, 6, "first of two");
            goes_on(s, b, 0, 1, 1, 6, "second of two");
        }
        hone_session_free(a);
        goes_on(s, b, 0, 1, 1, s->len % 6, "after the other's end");
        hone_session_free(b);
    }
    hone_context_free(c);
}

typedef struct caller {
    const subject *s;
    int k;
    bool right;
} caller;

static void *call(void *arg)
{
    caller *a = arg;
    hone_error err;
    hone_context *c;
    hone_session *h;
    int32_t ids[LEN];
    float *y = malloc(sizeof(float) * LEN * (size_t)a->s->V);
    for (int i = 0; i < a->s->len; i++) ids[i] = text(a->s, a->k, i);
    a->right = y && hone_context_new(&c, &(hone_context_params){ .n_threads = 2 }, &err) == HONE_OK;
    if (!a->right) {
        free(y);
        return NULL;
    }
    for (int round = 0; a->right && round < 3; round++) {
        if (hone_session_new(
                &h, c, a->s->m,
                &(hone_session_params){ .n_ctx = LEN, .n_seq = 1, .n_chunk = 1 + round * 11, .cache = HONE_CACHE_F16 },
                &err)) {
            a->right = false;
            break;
        }
        hone_token t[LEN];
        for (int i = 0; i < a->s->len; i++) t[i] = (hone_token){ ids[i], i, 0, true };
        a->right = hone_decode(h, t, a->s->len, y, &err) == HONE_OK &&
                   !memcmp(y, a->s->want[a->k][0], sizeof(float) * (size_t)(a->s->len * a->s->V));
        hone_session_free(h);
    }
    hone_context_free(c);
    free(y);
    return NULL;
}

/* Callers with a context each share a model. */
static void callers(void **state)
{
    for (int i = 0; i < N_SUBJECTS; i++) {
        caller a[3];
        pthread_t id[3];
        for (int k = 0; k < 3; k++) {
            a[k] = (caller){ &subjects[i], k, false };
            assert_int_equal(pthread_create(&id[k], NULL, call, &a[k]), 0);
        }
        for (int k = 0; k < 3; k++) {
            pthread_join(id[k], NULL);
            assert_true(a[k].right);
        }
    }
}

/* Positions are reserved in steps of 64; a cache holds 2·layers·heads·d values a position. */
static void memory(void **state)
{
    const subject *s = &subjects[0];
    for (int cache = 0; cache < 2; cache++)
        for (int n_ctx = 1; n_ctx < 300; n_ctx += 63) {
            hone_session_memory mem;
            hone_session *h = tm_session(plain, s->m, n_ctx, 3, 8, (hone_kv_cache_type)cache);
            hone_session_get_memory(h, &mem);
            uint64_t least = 2u * 2 * 2 * 8 * 3 * (uint64_t)n_ctx * (cache ? 4 : 2);
            assert_true(mem.cache_bytes >= least && mem.cache_bytes < least / (unsigned)n_ctx * (unsigned)(n_ctx + 64));
            assert_int_equal(mem.logits_bytes, 16 * sizeof(float));
            assert_true(mem.scratch_bytes >= 8 * (32 + 48 + 48) * sizeof(float) && mem.scratch_bytes < 1 << 20);
            assert_int_equal(hone_session_n_ctx(h), n_ctx);
            hone_session_free(h);
        }
}

/* Weights are to stay in memory beside the cache, whatever is available now; who allows paging has it so. */
static void weights_stay(void **state)
{
    hone_model *m = subjects[0].m;
    const uint64_t was = m->bytes_per_token, total = hn_memory_total();
    if (!total) skip();
    for (int k = 0; k < 4; k++) {
        bool paging = k & 1, all = k & 2;
        m->bytes_per_token = all ? total + 1 : total - 4096;
        hone_error err = { 0 };
        hone_session *h;
        const hone_session_params p = { .n_ctx = 100, .n_chunk = 8, .allow_paging = paging };
        assert_int_equal(hone_session_new(&h, plain, m, &p, &err), paging ? HONE_OK : HONE_E_NOMEM);
        if (!paging) assert_non_null(strstr(err.message, all ? "from disk" : "beside the weights"));
        if (!paging) assert_non_null(strstr(err.message, "--allow-paging"));
        hone_session_free(h);
    }
    hone_error err = { 0 };
    hone_session *h;
    const hone_session_params endless = { .n_ctx = 1 << 26, .n_seq = 1, .cache = HONE_CACHE_F32, .n_chunk = 65536 };
    const hn_memory_layer *had = m->memory;
    hn_memory_layer wide[64];
    assert_in_range(m->hp.n_layer, 1, 64);
    memcpy(wide, had, (size_t)m->hp.n_layer * sizeof *wide);
    wide[0].d_k = 1 << 13; /* more than any machine has */
    m->memory = wide;
    m->bytes_per_token = total - 4096;
    assert_int_equal(hone_session_new(&h, plain, m, &endless, &err), HONE_E_NOMEM);
    m->memory = had;
    m->bytes_per_token = was;
    if (strstr(err.message, "--allow-paging")) fail_msg("it would not help: %s", err.message);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_threads_levels),
        cmocka_unit_test(company),
        cmocka_unit_test(long_text),
        cmocka_unit_test(only_where_wanted),
        cmocka_unit_test(prefill),
        cmocka_unit_test(truncate_seq),
        cmocka_unit_test(copy_seq),
        cmocka_unit_test(bad_batches),
        cmocka_unit_test(weights_stay),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(save_and_load),
        cmocka_unit_test(one_state_one_file),
        cmocka_unit_test(load_refuses),
        cmocka_unit_test(only_sessions_are_replaced),
        cmocka_unit_test(two_on_one_model),
        cmocka_unit_test(callers),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
