/* The optimizer against torch.optim.AdamW (tests/golden/adam.txt), step by step, with clipping;
 * the norm against a plain sum in double. */
#include "train_model.h"
#include "train/train.h"

#include <math.h>

enum { MAX = 16 };

static void read_row(FILE *f, const char *name, float *x, int n)
{
    char word[16];
    assert_int_equal(fscanf(f, "%15s", word), 1);
    assert_string_equal(word, name);
    for (int i = 0; i < n; i++) assert_int_equal(fscanf(f, "%f", &x[i]), 1);
}

static void vectors(void **state)
{
    FILE *f = fopen("tests/golden/adam.txt", "r");
    assert_non_null(f);
    int n, steps, n_case = 0;
    double lr, clip, norm;
    hn_adam o;
    while (fscanf(f, " case %lf %lf %lf %lf %lf %lf %d %d", &lr, &o.beta1, &o.beta2, &o.eps, &o.weight_decay, &clip, &n,
                  &steps) == 8) {
        float p[MAX], g[MAX], want[MAX], m[MAX] = { 0 }, v[MAX] = { 0 };
        assert_true(n > 0 && n <= MAX);
        read_row(f, "p", p, n);
        for (int k = 0; k < steps; k++) {
            read_row(f, "g", g, n);
            assert_int_equal(fscanf(f, " norm %lf", &norm), 1);
            float scale = clip > 0 && norm > clip ? (float)(clip / (norm + 1e-6)) : 1;
            for (int i = 0; i < n; i++) g[i] *= scale;
            read_row(f, "p", want, n);
            hn_adam_step(&o, p, g, m, v, n, k + 1, lr / (1 + k), true);
            for (int i = 0; i < n; i++)
                if (!(fabs((double)p[i] - (double)want[i]) <= 4e-7 * fabs((double)want[i]) + 1e-8))
                    fail_msg("case %d, step %d, element %d: %.9g, torch has %.9g", n_case, k + 1, i, (double)p[i],
                             (double)want[i]);
        }
        n_case++;
    }
    assert_true(feof(f));
    assert_int_equal(n_case, 3);
    fclose(f);
}

/* The closed form of the first step: p·(1 − lr·wd) − lr·g/(|g| + eps); without decay the factor is 1. */
static void first_step(void **state)
{
    hn_adam o = { 0.9, 0.999, 1e-8, 0.5 };
    for (int decay = 0; decay < 2; decay++) {
        float p[3] = { 1, -2, 0.5f }, g[3] = { 0.25f, -8, 0 }, m[3] = { 0 }, v[3] = { 0 };
        hn_adam_step(&o, p, g, m, v, 3, 1, 0.125, decay != 0);
        double keep = decay ? 1 - 0.125 * 0.5 : 1;
        const double want[3] = { keep - 0.125, -2 * keep + 0.125, 0.5 * keep };
        for (int i = 0; i < 3; i++) assert_true(fabs((double)p[i] - want[i]) < 3e-7);
    }
}

static void any_range_alone(void **state)
{
    enum { N = 1000 };
    static float p[2][N], g[N], m[2][N], v[2][N];
    hn_adam o = { 0.9, 0.999, 1e-8, 0.01 };
    for (int i = 0; i < N; i++) {
        p[0][i] = p[1][i] = hn_rand_f32(1, (uint64_t)i) - 0.5f;
        g[i] = hn_rand_f32(2, (uint64_t)i) - 0.5f;
    }
    for (int t = 1; t <= 3; t++) {
        hn_adam_step(&o, p[0], g, m[0], v[0], N, t, 1e-2, true);
        for (int b = 0, n; b < N; b += n) {
            n = 1 + (b * 7 + t) % 13 < N - b ? 1 + (b * 7 + t) % 13 : N - b;
            hn_adam_step(&o, p[1] + b, g + b, m[1] + b, v[1] + b, n, t, 1e-2, true);
        }
    }
    assert_memory_equal(p[0], p[1], sizeof p[0]);
    assert_memory_equal(v[0], v[1], sizeof v[0]);
}

static void norm(void **state)
{
    hone_context *c = tm_context(NULL, 2);
    hone_model *m = tr_model("norm.gguf", 0);
    hn_grad *g;
    hone_error e = { 0 };
    hn_grad_params p = { .pool = NULL, .targets = HN_TGT_Q | HN_TGT_DOWN, .rank = 3, .scale = 1, .max_tok = 8 };
    struct {
        hn_pool *pool;
    } *view = (void *)c; /* a context begins with its pool */
    p.pool = view->pool;
    p.kernels = hn_kernels_get(HN_CPU_SCALAR);
    if (hn_grad_new(&g, m, &p, &e)) fail_msg("%s", e.message);
    double want = 0;
    uint64_t at = 0;
    for (int32_t i = 0; i < hn_grad_n_param(g); i++) {
        hn_param *a = hn_grad_param(g, i);
        for (int64_t k = 0; k < a->rows * a->cols; k++) {
            a->g[k] = (hn_rand_f32(3, at++) - 0.5f) * (k % 5 ? 1 : 1e12f); /* squares beyond what f32 sums */
            want += (double)a->g[k] * (double)a->g[k];
        }
    }
    assert_true(at > 300);
    assert_true(fabs(hn_grad_norm(g) / sqrt(want) - 1) < 1e-14);
    hn_grad_param(g, 1)->g[2] = NAN;
    assert_true(isnan(hn_grad_norm(g)));
    hn_grad_free(g);
    hone_model_close(m);
    hone_context_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(vectors), cmocka_unit_test(first_step),
                                        cmocka_unit_test(any_range_alone), cmocka_unit_test(norm) };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
