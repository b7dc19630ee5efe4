/* The sampler against a slow, plain reference (sort everything, double, libm), against
 * the probabilities it promises, and on its edges. */
#include "base/base.h"
#include "growth.h"

#include "engine/sampler.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static hone_sampler *make(int32_t n_vocab, hone_sampler_params p)
{
    hone_sampler *s;
    hone_error err;
    if (hone_sampler_new(&s, n_vocab, &p, &err) != HONE_OK) fail_msg("%s", err.message);
    return s;
}

static int32_t pick(hone_sampler *s, const float *logits, int32_t seq, int32_t pos)
{
    int32_t id = -1;
    hone_error err;
    if (hone_sampler_pick(s, logits, seq, pos, &id, &err) != HONE_OK) fail_msg("%s", err.message);
    return id;
}

static hone_sampler_params plain(float temp) /* nothing but temperature */
{
    return (hone_sampler_params){ .temp = temp, .top_p = 1, .repeat_penalty = 1, .seed = 7 };
}

/* Random logits of roughly normal shape; many ties when step > 0. */
static void fill(float *x, int32_t n, uint64_t key, float scale, float step)
{
    for (int32_t i = 0; i < n; i++) {
        float g = 0;
        for (int k = 0; k < 6; k++) g += hn_rand_f32(key, (uint64_t)i * 6 + (uint64_t)k) - 0.5f;
        x[i] = g * scale;
        if (step > 0) x[i] = roundf(x[i] / step) * step;
    }
}

/* ---- the reference --------------------------------------------------------------------------- */

typedef struct cand {
    double logit, w;
    int32_t id;
} cand;

static int by_logit(const void *a, const void *b)
{
    const cand *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->id < y->id ? -1 : 1;
}

/* Survivors with their final probabilities, best first. Returns how many. */
static int32_t survivors(cand *c, const float *logits, int32_t n, const hone_sampler_params *p)
{
    for (int32_t i = 0; i < n; i++) c[i] = (cand){ logits[i], 0, i };
    qsort(c, (size_t)n, sizeof *c, by_logit);
    if (p->top_k > 0 && p->top_k < n) n = p->top_k;
    double sum = 0, cum = 0, max = c[0].logit;
    for (int32_t i = 0; i < n; i++) sum += exp(c[i].logit - max);
    if (p->top_p < 1)
        for (int32_t i = 0; i < n; i++) {
            cum += exp(c[i].logit - max) / sum;
            if (cum < (double)p->top_p) continue;
            n = i + 1;
            break;
        }
    while (n > 1 && exp(c[n - 1].logit - max) < (double)p->min_p) n--;
    sum = 0;
    for (int32_t i = 0; i < n; i++) sum += c[i].w = exp((c[i].logit - max) / (double)p->temp);
    for (int32_t i = 0; i < n; i++) c[i].w /= sum;
    return n;
}

/* The draw with the sampler's own random number. *margin: how close u was to an edge. */
static int32_t reference_pick(cand *c, int32_t n, const hone_sampler_params *p, int32_t seq, int32_t pos,
                              double *margin)
{
    double u = (double)hn_rand_f32(hn_rand64(p->seed, (uint64_t)seq), (uint64_t)pos), cum = 0;
    *margin = 1;
    int32_t at = n - 1;
    for (int32_t i = 0; i < n; i++) {
        cum += c[i].w;
        if (fabs(cum - u) < *margin) *margin = fabs(cum - u);
        if (u < cum) {
            at = i;
            break;
        }
    }
    return c[at].id;
}

/* What the chain leaves, as it is told: the reference's survivors and their probabilities. */
static void probabilities(hone_sampler *s, const float *x, const cand *c, int32_t m)
{
    enum { MOST = 64 };
    hone_logprob top[MOST];
    hone_error e;
    int32_t n = -1;
    float prob;
    for (int32_t i = 0; i < m; i += 1 + m / 5) {
        if (hn_sampler_probs(s, x, &(hone_pick){ 0 }, c[i].id, &prob, top, MOST, &n, &e)) fail_msg("%s", e.message);
        if (!(fabs((double)prob - c[i].w) < 2e-6))
            fail_msg("token %d: %g, reference %g", c[i].id, (double)prob, c[i].w);
    }
    int32_t want = m < MOST ? m : MOST;
    while (want > n && c[want - 1].w < 1e-44) want--; /* what weighs nothing is not told */
    assert_int_equal(n, want);
    for (int32_t i = 0; i < n; i++) {
        assert_int_equal(top[i].id, c[i].id);
        assert_true(fabs((double)top[i].logprob - c[i].w) < 2e-6);
    }
}

static void against_reference(void **state)
{
    enum { N = 3001 };
    static float x[N];
    static cand c[N];
    static const struct {
        float temp;
        int32_t k;
        float top_p, min_p;
    } cases[] = {
        { 0.8f, 40, 0.95f, 0.05f },
        { 1, 0, 1, 0 },
        { 1, 0, 0.9f, 0 },
        { 1.7f, 0, 1, 0.02f },
        { 0.3f, 5, 1, 0 },
        { 5, 1000, 0.99f, 0.001f },
        { 1, 1, 1, 0 },
        { 0.7f, 3000, 0.5f, 0 },
        { 100, 0, 1, 0 },
        { 1, 3001, 1, 0 },
        { 2, 100000, 0.999f, 0.0001f },
        { 0.01f, 0, 1, 0 },
    };
    int compared = 0, close = 0;
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++)
        for (int round = 0; round < 12; round++) {
            hone_sampler_params p = { .temp = cases[t].temp,
                                      .top_k = cases[t].k,
                                      .top_p = cases[t].top_p,
                                      .min_p = cases[t].min_p,
                                      .repeat_penalty = 1,
                                      .seed = (uint64_t)(t * 100) + (uint64_t)round };
            /* odd sizes, smooth and heavily tied logits, flat and peaked */
            int32_t n = round % 4 == 3 ? 1 + round : N - round * 17;
            fill(x, n, p.seed, round % 3 == 0 ? 2 : 12, round % 2 ? 0.25f : 0);
            hone_sampler *s = make(n, p);
            int32_t m = survivors(c, x, n, &p);
            probabilities(s, x, c, m);
            for (int32_t pos = 0; pos < 40; pos++) {
                double margin;
                int32_t want = reference_pick(c, m, &p, pos % 3, pos, &margin), got = pick(s, x, pos % 3, pos);
                compared++;
                if (got == want) continue;
                if (margin < 2e-6) close++; /* u on the very edge of two tokens */
                else
                    fail_msg("case %zu round %d pos %d: %d, reference %d (margin %g)", t, round, pos, got, want,
                             margin);
            }
            hone_sampler_free(s);
        }
    if (close * 100 > compared) fail_msg("%d of %d draws on an edge", close, compared);
}

static void distribution(void **state)
{
    enum { N = 50, DRAWS = 200000 };
    float x[N];
    cand c[N];
    hone_sampler_params p = {
        .temp = 1.3f, .top_k = 20, .top_p = 0.97f, .min_p = 0.01f, .repeat_penalty = 1, .seed = 99
    };
    fill(x, N, 5, 4, 0);
    int32_t m = survivors(c, x, N, &p), hits[N] = { 0 };
    assert_true(m > 5);
    hone_sampler *s = make(N, p);
    for (int32_t i = 0; i < DRAWS; i++) hits[pick(s, x, i % 4, i / 4)]++;
    double chi2 = 0;
    int32_t total = 0;
    for (int32_t i = 0; i < m; i++) {
        double e = c[i].w * DRAWS, d = hits[c[i].id] - e;
        chi2 += d * d / e;
        total += hits[c[i].id];
    }
    assert_int_equal(total, DRAWS); /* nothing but survivors */
    /* mean m-1, deviation sqrt(2(m-1)); five deviations */
    if (chi2 > m - 1 + 5 * sqrt(2.0 * (m - 1))) fail_msg("chi2 %g for %d survivors", chi2, m);
    hone_sampler_free(s);
}

static void greedy_and_ties(void **state)
{
    float x[300];
    for (int i = 0; i < 300; i++) x[i] = -5;
    x[77] = x[141] = x[299] = 3;
    hone_sampler *s = make(300, plain(0));
    assert_int_equal(pick(s, x, 0, 0), 77);
    x[3] = nextafterf(3, 4);
    assert_int_equal(pick(s, x, 0, 0), 3);
    for (int i = 0; i < 300; i++) x[i] = -INFINITY;
    x[200] = -1e30f;
    assert_int_equal(pick(s, x, 0, 0), 200);
    hone_sampler_free(s);
    /* the k-th place tied: the lower id survives; -0 and +0 are equal */
    float z[4] = { -1, 0.0f, -0.0f, 0.0f };
    hone_sampler_params p = plain(1);
    p.top_k = 2;
    s = make(4, p);
    z[1] = -0.0f;
    z[2] = 0.0f;
    bool seen[4] = { false };
    for (int i = 0; i < 500; i++) seen[pick(s, z, 0, i)] = true;
    assert_true(seen[1] && seen[2] && !seen[0] && !seen[3]);
    hone_sampler_free(s);
}

static bool drawn[64];
static void draw_many(hone_sampler_params p, const float *x, int32_t n)
{
    memset(drawn, 0, sizeof drawn);
    hone_sampler *s = make(n, p);
    for (int i = 0; i < 4000; i++) drawn[pick(s, x, 0, i)] = true;
    hone_sampler_free(s);
}

static void cuts(void **state)
{
    /* probabilities 0.4 0.3 0.2 0.1 */
    float x[4] = { logf(0.4f), logf(0.3f), logf(0.2f), logf(0.1f) };
    hone_sampler_params p = plain(1);
    p.top_p = 0.69f;
    draw_many(p, x, 4);
    assert_true(drawn[0] && drawn[1] && !drawn[2]);
    p.top_p = 0.71f; /* the token that crosses the limit stays */
    draw_many(p, x, 4);
    assert_true(drawn[2] && !drawn[3]);
    p.top_p = 0;
    draw_many(p, x, 4);
    assert_true(drawn[0] && !drawn[1]);
    p.top_p = 1;
    p.min_p = 0.49f;
    draw_many(p, x, 4);
    assert_true(drawn[2] && !drawn[3]);
    p.min_p = 0.51f;
    draw_many(p, x, 4);
    assert_true(drawn[1] && !drawn[2]);
    p.min_p = 1;
    draw_many(p, x, 4);
    assert_true(drawn[0] && !drawn[1]);
    /* top-p sees the probabilities among the top k: 0.4/0.7 and 0.3/0.7 */
    p.min_p = 0;
    p.top_k = 2;
    p.top_p = 0.56f;
    draw_many(p, x, 4);
    assert_true(drawn[0] && !drawn[1]);
    p.top_p = 0.58f;
    draw_many(p, x, 4);
    assert_true(drawn[1]);
    /* and comes before temperature: a hot temperature does not widen it */
    p.top_k = 0;
    p.top_p = 0.69f;
    p.temp = 1000;
    draw_many(p, x, 4);
    assert_true(drawn[0] && drawn[1] && !drawn[2]);
    p.temp = 1e-30f;
    p.top_p = 1;
    draw_many(p, x, 4);
    assert_true(drawn[0] && !drawn[1]);
    float one[1] = { -3 };
    draw_many(p, one, 1);
    assert_true(drawn[0]);
}

static void penalties(void **state)
{
    float x[4] = { 2, 1.5f, -1, -1.2f };
    hone_sampler_params p = plain(0);
    p.repeat_penalty = 2;
    p.penalty_last_n = 3;
    hone_sampler *s = make(4, p);
    assert_int_equal(pick(s, x, 0, 0), 0);
    hone_sampler_accept(s, 0); /* 2 → 1 < 1.5 */
    assert_int_equal(pick(s, x, 0, 0), 1);
    hone_sampler_accept(s, 1); /* 1.5 → 0.75 < 1 */
    assert_int_equal(pick(s, x, 0, 0), 0);
    hone_sampler_accept(s, 2);
    hone_sampler_accept(s, 2); /* 0 leaves the window of three: 2 again, 1 stays penalized */
    assert_int_equal(pick(s, x, 0, 0), 0);
    hone_sampler_reset(s);
    float neg[2] = { -1, -1.5f };
    hone_sampler_free(s);
    s = make(2, p);
    hone_sampler_accept(s, 0); /* -1 → -2 < -1.5: negative logits are multiplied */
    assert_int_equal(pick(s, neg, 0, 0), 1);
    hone_sampler_reset(s);
    assert_int_equal(pick(s, neg, 0, 0), 0);
    assert_float_equal(neg[0], -1, 0); /* logits are not touched */
    hone_sampler_free(s);

    /* presence once, frequency for each occurrence */
    float y[2] = { 2, 1.25f };
    p = plain(0);
    p.penalty_last_n = -1;
    p.presence_penalty = 0.5f;
    p.frequency_penalty = 0.1f;
    s = make(2, p);
    hone_sampler_accept(s, 0);
    hone_sampler_accept(s, 0); /* 2 - 0.5 - 0.2 = 1.3 */
    assert_int_equal(pick(s, y, 0, 0), 0);
    hone_sampler_accept(s, 0); /* 1.2 */
    assert_int_equal(pick(s, y, 0, 0), 1);
    hone_sampler_accept(s, -1); /* ignored */
    hone_sampler_accept(s, 2);
    hone_sampler_free(s);

    /* everything accepted counts with -1, nothing with 0 */
    p.penalty_last_n = 0;
    s = make(2, p);
    for (int i = 0; i < 100; i++) hone_sampler_accept(s, 0);
    assert_int_equal(pick(s, y, 0, 0), 0);
    hone_sampler_free(s);
}

/* The window against a plain recount, over a long random history. */
static void penalty_window(void **state)
{
    enum { N = 20, LAST = 13, STEPS = 2000 };
    float x[N], want[N];
    int32_t history[STEPS];
    fill(x, N, 1, 3, 0);
    hone_sampler_params p = plain(0);
    p.penalty_last_n = LAST;
    p.repeat_penalty = 1.1f;
    p.presence_penalty = 0.2f;
    p.frequency_penalty = 0.3f;
    hone_sampler *s = make(N, p);
    for (int t = 0; t < STEPS; t++) {
        int32_t count[N] = { 0 }, best = 0;
        for (int i = t > LAST ? t - LAST : 0; i < t; i++) count[history[i]]++;
        for (int i = 0; i < N; i++) {
            want[i] = x[i];
            if (count[i]) want[i] = (x[i] <= 0 ? x[i] * 1.1f : x[i] / 1.1f) - ((float)count[i] * 0.3f + 0.2f);
            if (want[i] > want[best]) best = i;
        }
        assert_int_equal(pick(s, x, 0, t), best);
        history[t] = t % 3 ? best : (int32_t)(hn_rand64(3, (uint64_t)t) % N);
        hone_sampler_accept(s, history[t]);
    }
    hone_sampler_free(s);
}

static void seeds(void **state)
{
    enum { N = 1000, M = 64 };
    static float x[N];
    int32_t a[M];
    for (int i = 0; i < N; i++) x[i] = 0; /* uniform: draws show the random numbers */
    hone_sampler *s = make(N, plain(1));
    for (int i = 0; i < M; i++) a[i] = pick(s, x, 0, i);
    /* any order, again, in another sampler: only (seed, seq, pos) counts */
    hone_sampler *t = make(N, plain(1));
    for (int i = M - 1; i >= 0; i--) assert_int_equal(pick(t, x, 0, i), a[i]);
    int same_seq = 0, same_seed = 0, same_next = 0;
    hone_sampler_params p = plain(1);
    p.seed = 8;
    hone_sampler *u = make(N, p);
    for (int i = 0; i < M; i++) {
        same_seq += pick(s, x, 1, i) == a[i];
        same_seed += pick(u, x, 0, i) == a[i];
        same_next += pick(s, x, 0, i + 1) == a[i];
    }
    assert_true(same_seq < 5 && same_seed < 5 && same_next < 5);
    hone_sampler_free(s);
    hone_sampler_free(t);
    hone_sampler_free(u);
}

static void broken_numbers(void **state)
{
    enum { N = 515 };
    float x[N];
    hone_error err;
    int32_t id;
    hone_sampler_params ps[3] = { plain(0), plain(1), plain(1) };
    ps[2].top_k = 5;
    for (int k = 0; k < 3; k++) {
        hone_sampler *s = make(N, ps[k]);
        for (int at = 0; at < N; at += 257) {
            for (int i = 0; i < N; i++) x[i] = (float)-i;
            x[at] = NAN;
            assert_int_equal(hone_sampler_pick(s, x, 0, 0, &id, &err), HONE_E_NUMERIC);
            assert_non_null(strstr(err.message, "NaN"));
            x[at] = INFINITY;
            assert_int_equal(hone_sampler_pick(s, x, 0, 0, &id, &err), HONE_E_NUMERIC);
            x[at] = -INFINITY;
            assert_int_equal(hone_sampler_pick(s, x, 0, 0, &id, &err), HONE_OK);
            assert_int_not_equal(id, at);
        }
        for (int i = 0; i < N; i++) x[i] = -INFINITY;
        assert_int_equal(hone_sampler_pick(s, x, 0, 0, &id, NULL), HONE_E_NUMERIC);
        x[512] = NAN;
        assert_int_equal(hone_sampler_pick(s, x, 0, 0, &id, NULL), HONE_E_NUMERIC);
        hone_sampler_free(s);
    }
}

/* 1/T is no number below 2.9e-39: the best is picked, ties to the lower id, and it is certain. */
static void cold(void **state)
{
    float x[300];
    for (int i = 0; i < 300; i++) x[i] = -5;
    x[77] = x[141] = x[299] = 3;
    for (int k = 0; k < 3; k++) {
        hone_sampler_params p = plain(1e-40f);
        p.top_k = k == 1 ? 40 : 0;
        p.min_p = k == 2 ? 0.05f : 0;
        hone_sampler *s = make(300, p);
        for (int i = 0; i < 20; i++) assert_int_equal(pick(s, x, 0, i), 77);
        hone_logprob top[3];
        float prob;
        int32_t n;
        assert_int_equal(hn_sampler_probs(s, x, &(hone_pick){ 0 }, 77, &prob, top, 3, &n, NULL), HONE_OK);
        assert_true(prob == 1 && n == 1 && top[0].id == 77);
        hone_sampler_free(s);
    }
}

/* What a caller adds makes no infinity of a logit: that would be called the model's fault. */
static void far_penalties(void **state)
{
    static const float least = 1e-38f, most = FLT_MAX;
    const hone_sampler_params p[] = {
        { .repeat_penalty = least }, /* 20 to more than any number */
        { .repeat_penalty = most },  /* -20 likewise */
        { .repeat_penalty = least, .presence_penalty = most, .frequency_penalty = most },
        { .repeat_penalty = 1, .presence_penalty = -most, .frequency_penalty = -most },
    };
    static const int32_t want[] = { 0, 0, 0, 2 };
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        for (int temp = 0; temp < 2; temp++) {
            hone_sampler_params q = p[i];
            q.temp = (float)temp;
            q.top_p = 1;
            q.penalty_last_n = -1;
            hone_sampler *s = make(4, q);
            float x[4] = { 20, 19, -20, -INFINITY };
            for (int k = 0; k < 2; k++)
                for (int32_t id = i == 3 ? 2 : 0; id < 4; id++) hone_sampler_accept(s, id);
            if (i == 1) hone_sampler_reset(s), hone_sampler_accept(s, 2);
            int32_t id = pick(s, x, 0, 0); /* some number is there to draw, whichever of those that are equal */
            assert_true(temp ? id <= 2 : id == want[i]);
            hone_sampler_free(s);
        }

    hone_sampler *s = make(2, plain(0));
    const hone_bias twice[] = { { 1, 3e38f }, { 1, 3e38f } }, never[] = { { 1, 3e38f }, { 1, -INFINITY } };
    float x[2] = { 1, 0 };
    int32_t id;
    hone_error err;
    assert_int_equal(hone_sampler_pick_from(s, x, &(hone_pick){ .bias = twice, .n_bias = 2 }, &id, &err), HONE_OK);
    assert_int_equal(id, 1);
    assert_int_equal(hone_sampler_pick_from(s, x, &(hone_pick){ .bias = never, .n_bias = 2 }, &id, &err), HONE_OK);
    assert_int_equal(id, 0);
    x[1] = INFINITY; /* of the model's own */
    assert_int_equal(hone_sampler_pick_from(s, x, &(hone_pick){ .bias = twice, .n_bias = 2 }, &id, &err),
                     HONE_E_NUMERIC);
    hone_sampler_free(s);
}

static void bad_params(void **state)
{
    hone_sampler_params good;
    hone_sampler_defaults(&good);
    assert_float_equal(good.temp, 0.8f, 0);
    assert_int_equal(good.top_k, 40);
    assert_int_equal(good.penalty_last_n, 64);
    hone_sampler_params bad[12];
    for (int i = 0; i < 12; i++) bad[i] = good;
    bad[0].temp = NAN;
    bad[1].temp = INFINITY;
    bad[2].top_k = -1;
    bad[3].top_p = 1.5f;
    bad[4].top_p = NAN;
    bad[5].min_p = -0.1f;
    bad[6].min_p = NAN;
    bad[7].repeat_penalty = 0;
    bad[8].repeat_penalty = NAN;
    bad[9].presence_penalty = INFINITY;
    bad[10].frequency_penalty = NAN;
    bad[11].penalty_last_n = -2;
    hone_sampler *s;
    for (int i = 0; i < 12; i++) {
        s = (hone_sampler *)1;
        assert_int_equal(hone_sampler_new(&s, 10, &bad[i], NULL), HONE_E_ARG);
        assert_null(s);
    }
    assert_int_equal(hone_sampler_new(&s, 0, &good, NULL), HONE_E_ARG);
    assert_int_equal(hone_sampler_new(&s, 5, NULL, NULL), HONE_OK);
    hone_sampler_free(s);
    hone_sampler_free(NULL);
}

/* Choosing from a large vocabulary costs as much more as it is larger, whatever the shape of the logits:
 * none may make the selection quadratic. */
enum { SHAPES = 4, SETTINGS = 3, SMALL_VOCABULARY = 151936 / 64, LARGE_VOCABULARY = 151936 };

typedef struct choice {
    float *x;
    int setting;
    bool failed;
} choice;

static void fill_shape(float *x, int n, int shape)
{
    fill(x, n, 3, 20, 0);
    for (int i = 0; shape && i < n; i++) x[i] = shape == 1 ? (float)i * 1e-4f : shape == 2 ? (float)i * -1e-4f : 1.0f;
}

static void choose_some(void *arg, size_t n)
{
    choice *c = arg;
    hone_sampler_params p;
    hone_sampler_defaults(&p);
    if (c->setting == 0) p.temp = 0;
    if (c->setting == 2) p.top_k = 0;
    hone_sampler *s = NULL;
    c->failed = hone_sampler_new(&s, (int32_t)n, &p, NULL) != HONE_OK;
    if (c->failed) return;
    for (int32_t pos = 0; pos < 5; pos++) {
        int32_t token;
        c->failed = c->failed || hone_sampler_pick(s, c->x, 0, pos, &token, NULL) != HONE_OK;
    }
    hone_sampler_free(s);
}

static void large_vocabulary(void **state)
{
    static const char *const shape[SHAPES] = { "random", "ascending", "descending", "all equal" };
    static const char *const setting[SETTINGS] = { "greedy", "top-k 40", "top-k off" };
    choice c = { .x = malloc(LARGE_VOCABULARY * sizeof *c.x) };
    bool good = c.x != NULL;
    for (int sh = 0; good && sh < SHAPES; sh++) {
        fill_shape(c.x, LARGE_VOCABULARY, sh);
        for (c.setting = 0; good && c.setting < SETTINGS; c.setting++) {
            char what[64];
            snprintf(what, sizeof what, "%s, %s", shape[sh], setting[c.setting]);
            good = grows_as_input(what, choose_some, &c, SMALL_VOCABULARY, LARGE_VOCABULARY) && !c.failed;
        }
    }
    free(c.x); /* before the assertion: a failure is no leak */
    assert_true(good);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(against_reference),
        cmocka_unit_test(distribution),
        cmocka_unit_test(greedy_and_ties),
        cmocka_unit_test(cuts),
        cmocka_unit_test(penalties),
        cmocka_unit_test(penalty_window),
        cmocka_unit_test(seeds),
        cmocka_unit_test(broken_numbers),
        cmocka_unit_test(cold),
        cmocka_unit_test(far_penalties),
        cmocka_unit_test(bad_params),
        cmocka_unit_test(large_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
