/* Merging: the new file is the base with W + s·BA, as a plain computation in double gives
 * it; what no adapter touches is the same byte for byte; what is said of each matrix is so. */
#include "model/lora.h"
#include "tiny_model.h"

#include <math.h>
#include <sys/stat.h>

enum { LEN = 30, RANK = 4 };

typedef struct adapter {
    hn_lora_pair pair[2];
    char path[160];
} adapter;

/* Of two matrices [64, 64] and [64, 128] (ne0 last). */
static void make_adapter(adapter *a, const char *first, const char *second, int64_t second_in, float scale,
                         const char *file)
{
    hone_error err = { 0 };
    const char *const names[2] = { first, second };
    for (int i = 0; i < 2; i++) {
        hn_lora_pair *p = &a->pair[i];
        *p = (hn_lora_pair){
            .name = strdup(names[i]), .n_in = i ? second_in : 64, .n_out = 64, .rank = RANK, .scale = scale
        };
        p->a = malloc((size_t)(p->n_in * RANK) * sizeof(float));
        p->b = malloc((size_t)(p->n_out * RANK) * sizeof(float));
        assert_true(p->name && p->a && p->b);
        for (int64_t k = 0; k < p->n_in * RANK; k++)
            p->a[k] = (float)(0.2 * tm_u(file, (uint64_t)k + 1000 * (uint64_t)i));
        for (int64_t k = 0; k < p->n_out * RANK; k++) p->b[k] = (float)(0.2 * tm_u(p->name, (uint64_t)k));
    }
    snprintf(a->path, sizeof a->path, "%s", tm_path(file));
    const hn_lora_about about = { .arch = "llama", .alpha = scale * RANK, .type = HN_F32 };
    if (hn_lora_write_gguf(a->path, a->pair, 2, &about, &err)) fail_msg("%s", err.message);
}

static tiny *base;
static adapter one, two;
static char base_path[160];

/* W of a matrix with the adapters in it, times scales. */
static double wanted(const tm_tensor *t, const adapter *const *a, const double *scale, int n, int64_t r, int64_t c)
{
    double w = (double)t->f[r * (int64_t)t->ne[0] + c];
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            const hn_lora_pair *p = &a[i]->pair[k];
            if (strcmp(p->name, t->name)) continue;
            for (int64_t j = 0; j < RANK; j++)
                w += scale[i] * (double)p->scale * (double)p->b[r * RANK + j] * (double)p->a[j * p->n_in + c];
        }
    return w;
}

typedef struct seen {
    int n;
    hone_merge_tensor t[8];
    char name[8][64];
} seen;
static void remember(void *arg, const hone_merge_tensor *t)
{
    seen *s = arg;
    assert_true(s->n < 8);
    snprintf(s->name[s->n], sizeof s->name[0], "%s", t->name);
    s->t[s->n++] = *t;
}

static void merge_to(const char *path, const char *type, int n, const float *scales, seen *s)
{
    const char *const paths[2] = { one.path, two.path };
    hone_error err = { 0 };
    *s = (seen){ 0 };
    const hone_merge_params p = { .base = base_path,
                                  .adapters = paths,
                                  .scales = scales,
                                  .n_adapters = n,
                                  .type = type,
                                  .report = remember,
                                  .report_arg = s };
    if (hone_merge(&p, path, NULL, &err)) fail_msg("%s", err.message);
}

static void numbers(void **state)
{
    static const struct {
        const char *type;
        double tol;
    } kinds[] = {
        { "F32", 2e-7 }, { "F16", 6e-4 }, { "BF16", 5e-3 }, { "keep", 0.2 }, { "Q8_0", 9e-3 }, { NULL, 0.2 }
    };
    const adapter *const both[2] = { &one, &two };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int n = 1; n <= 2; n++) {
            seen s;
            hone_error err = { 0 };
            hn_gguf *g;
            const char *path = tm_path("merged.gguf");
            merge_to(path, kinds[k].type, n, (float[]){ 1, -0.5f }, &s);
            assert_int_equal(s.n, n == 1 ? 2 : 3);
            if (hn_gguf_open(&g, path, &err)) fail_msg("%s", err.message);
            assert_int_equal(hn_gguf_n_tensors(g), base->n_t);
            for (int i = 0; i < base->n_t; i++) {
                tm_tensor *t = &base->t[i];
                const hn_gguf_tensor *got = hn_gguf_tensor_at(g, (uint64_t)i);
                const hone_merge_tensor *said = NULL;
                assert_true(got->name.len == strlen(t->name) && !memcmp(got->name.ptr, t->name, got->name.len));
                for (int q = 0; q < s.n; q++)
                    if (!strcmp(s.name[q], t->name)) said = &s.t[q];
                if (!said) { /* byte for byte */
                    assert_true(got->type == t->type && got->n_bytes == t->n_bytes);
                    assert_memory_equal(got->data, t->data, t->n_bytes);
                    continue;
                }
                const hn_type_info *ti = hn_type_get(got->type);
                const char *type =
                    kinds[k].type && strcmp(kinds[k].type, "keep") ? kinds[k].type : hn_type_get(t->type)->name;
                assert_string_equal(ti->name, type);
                assert_string_equal(said->to, type);
                assert_string_equal(said->from, hn_type_get(t->type)->name);
                int64_t n_in = (int64_t)t->ne[0], n_out = (int64_t)t->ne[1];
                float *w = malloc((size_t)(n_in * n_out) * sizeof *w);
                assert_non_null(w);
                ti->dequantize(w, got->data, n_in * n_out);
                double e2 = 0, d2 = 0, w2 = 0, worst = 0, range = 0;
                for (int64_t r = 0; r < n_out; r++)
                    for (int64_t c = 0; c < n_in; c++) {
                        double want = wanted(t, both, (double[]){ 1, -0.5 }, n, r, c), was = (double)t->f[r * n_in + c],
                               e = (double)w[r * n_in + c] - want;
                        e2 += e * e, d2 += (want - was) * (want - was), w2 += was * was;
                        worst = fmax(worst, fabs(e)), range = fmax(range, fabs(want));
                    }
                double m = (double)(n_in * n_out);
                if (worst > kinds[k].tol * range) fail_msg("%s as %s: %g of %g", t->name, type, worst, range);
                assert_true(fabs(said->delta_rms - sqrt(d2 / m)) <= 1e-6 * sqrt(d2 / m) &&
                            fabs(said->weight_rms - sqrt(w2 / m)) <= 1e-6 * sqrt(w2 / m));
                assert_true(fabs(said->error_rms - sqrt(e2 / m)) <= 1e-3 * sqrt(e2 / m) + 1e-8 &&
                            said->n == (uint64_t)m);
                free(w);
            }
            hn_gguf_close(g);
        }
}

/* A merged F32 model answers as the base with the adapters does. */
static void answers(void **state)
{
    static float want[LEN * 16], got[LEN * 16];
    static int32_t ids[LEN];
    hone_error err = { 0 };
    seen s;
    hone_model *m, *merged;
    hone_adapter *a[2];
    for (int i = 0; i < LEN; i++) ids[i] = (5 * i + i * i) % 16;
    hone_context *c = tm_context(NULL, 2);
    tiny *f = tm_new(base->s);
    char f32_path[160];
    snprintf(f32_path, sizeof f32_path, "%s", tm_path("f32.gguf"));
    tm_save(f, f32_path);
    char keep[160];
    memcpy(keep, base_path, sizeof keep);
    memcpy(base_path, f32_path, sizeof base_path);
    merge_to(tm_path("merged.gguf"), "keep", 2, (float[]){ 0.8f, 1.5f }, &s);
    memcpy(base_path, keep, sizeof keep);
    assert_int_equal(hone_model_open(&m, f32_path, NULL, &err), HONE_OK);
    assert_int_equal(hone_model_open(&merged, tm_path("merged.gguf"), NULL, &err), HONE_OK);
    assert_int_equal(hone_adapter_open(&a[0], m, one.path, &err), HONE_OK);
    assert_int_equal(hone_adapter_open(&a[1], m, two.path, &err), HONE_OK);
    hone_session *x = tm_session(c, m, 64, 1, 0, HONE_CACHE_F32), *y = tm_session(c, merged, 64, 1, 0, HONE_CACHE_F32);
    assert_int_equal(hone_session_set_adapters(x, a, (float[]){ 0.8f, 1.5f }, 2, &err), HONE_OK);
    tm_run(x, 0, ids, LEN, want);
    tm_run(y, 0, ids, LEN, got);
    double lo = 1e30, hi = -1e30, d = 0;
    for (int i = 0; i < LEN * 16; i++)
        lo = fmin(lo, (double)want[i]), hi = fmax(hi, (double)want[i]),
        d = fmax(d, fabs((double)want[i] - (double)got[i]));
    if (d > 1e-5 * (hi - lo)) fail_msg("%g of %g", d, hi - lo);
    hone_session_free(x), hone_session_free(y);
    hone_adapter_close(a[0]), hone_adapter_close(a[1]);
    hone_model_close(m), hone_model_close(merged);
    hone_context_free(c);
    tm_free(f);
}

/* What an adapter does not change keeps its bytes: a scale of 0, a row of zeros in B. */
static void unchanged(void **state)
{
    static const char name[] = "blk.0.ffn_down.weight";
    const char *const paths[2] = { one.path, two.path };
    const char *dst = tm_path("same.gguf");
    const tm_tensor *t = tm_find(base, name);
    hone_error err = { 0 };
    seen s = { 0 };
    hn_gguf *g;
    size_t row = (size_t)(t->n_bytes / t->ne[1]), n_same = 0;
    hone_merge_params p = { .base = base_path,
                            .adapters = paths,
                            .scales = (float[]){ 0, -0.0f },
                            .n_adapters = 2,
                            .report = remember,
                            .report_arg = &s };
    if (hone_merge(&p, dst, NULL, &err)) fail_msg("%s", err.message);
    assert_int_equal(s.n, 0);
    if (hn_gguf_open(&g, dst, &err)) fail_msg("%s", err.message);
    assert_memory_equal(hn_gguf_find_tensor(g, name)->data, t->data, t->n_bytes);
    hn_gguf_close(g);

    adapter rows;
    make_adapter(&rows, "blk.0.attn_q.weight", name, 256, 1.0f, "rows.gguf");
    const char *file = rows.path;
    for (int64_t r = 0; r < 64; r += 2)
        memset(rows.pair[1].b + r * rows.pair[1].rank, 0, (size_t)rows.pair[1].rank * sizeof(float));
    const hn_lora_about about = { .arch = "llama",
                                  .alpha = rows.pair[0].scale * (float)rows.pair[0].rank,
                                  .type = HN_F32 };
    if (hn_lora_write_gguf(file, rows.pair, 2, &about, &err)) fail_msg("%s", err.message);
    p = (hone_merge_params){ .base = base_path, .adapters = &file, .n_adapters = 1 };
    if (hone_merge(&p, dst, NULL, &err)) fail_msg("%s", err.message);
    if (hn_gguf_open(&g, dst, &err)) fail_msg("%s", err.message);
    const char *now = hn_gguf_find_tensor(g, name)->data;
    for (size_t r = 0; r < 64; r++) {
        bool same = !memcmp(now + r * row, (const char *)t->data + r * row, row);
        n_same += same;
        if (r % 2 == 0 && !same) fail_msg("row %zu was encoded again", r);
    }
    assert_true(n_same < 40);
    hn_gguf_close(g);
    for (int k = 0; k < 2; k++) free(rows.pair[k].name), free(rows.pair[k].a), free(rows.pair[k].b);
}

static bool stop(void *arg) { return true; }
static void refused(void **state)
{
    const char *const paths[1] = { one.path }, *const none[1] = { tm_path("none.gguf") };
    const char *dst = tm_path("not.gguf");
    hone_error err = { 0 };
    hone_merge_params p = { .base = base_path, .adapters = paths, .n_adapters = 1 };
    p.type = "Q9_9";
    assert_int_equal(hone_merge(&p, dst, NULL, &err), HONE_E_ARG);
    p.type = "IQ1_S";
    assert_int_equal(hone_merge(&p, dst, NULL, &err), HONE_E_UNSUPPORTED);
    p.type = NULL;
    assert_int_equal(hone_merge(&p, base_path, NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "base itself"));
    assert_int_equal(hone_merge(&p, one.path, NULL, &err), HONE_E_ARG);
    assert_non_null(strstr(err.message, "is an adapter to merge"));
    p.scales = (float[]){ INFINITY };
    assert_int_equal(hone_merge(&p, dst, NULL, &err), HONE_E_ARG);
    p.scales = (float[]){ 1e30f };
    p.type = "F16";
    assert_int_equal(hone_merge(&p, dst, NULL, &err), HONE_E_NUMERIC);
    p.scales = NULL;
    p.adapters = none;
    assert_int_equal(hone_merge(&p, dst, NULL, &err), HONE_E_IO);
    p.adapters = paths;
    const hone_progress pr = { .abort_fn = stop };
    assert_int_equal(hone_merge(&p, dst, &pr, &err), HONE_E_INTERRUPTED);
    p.n_adapters = 0;
    assert_int_equal(hone_merge(&p, dst, NULL, &err), HONE_E_ARG);
    assert_int_equal(access(dst, F_OK), -1);
}

static int setup(void **state)
{
    if (tm_make_dir(state)) return -1;
    base = tm_new((tm_shape)TM("llama", 64, 4, 4, 16, 256, 16, 2, 1e4, 1e-5, .n_rot = 16));
    tm_retype(base, "blk.0.attn_q.weight", HN_Q8_0);
    tm_retype(base, "blk.1.attn_output.weight", HN_F16);
    tm_retype(base, "blk.0.ffn_down.weight", HN_Q4_K);
    tm_retype(base, "blk.1.ffn_down.weight", HN_Q6_K);
    snprintf(base_path, sizeof base_path, "%s", tm_path("base.gguf"));
    tm_save(base, base_path);
    make_adapter(&one, "blk.0.attn_q.weight", "blk.0.ffn_down.weight", 256, 1.5f, "one.gguf");
    make_adapter(&two, "blk.1.attn_output.weight", "blk.0.ffn_down.weight", 256, 0.7f, "two.gguf");
    return 0;
}
static int teardown(void **state)
{
    adapter *const a[] = { &one, &two };
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) free(a[i]->pair[k].name), free(a[i]->pair[k].a), free(a[i]->pair[k].b);
    tm_free(base);
    return tm_remove_dir(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers), cmocka_unit_test(answers),
                                        cmocka_unit_test(unchanged), cmocka_unit_test(refused) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
