/* Gradients of every dense family, on the published vectors' models (tests/golden/families): training's logits are
 * theirs; each tensor's gradient, whole and by adapter, is what the loss says when parts of the tensor move along it;
 * the same bits with any threads, level, and with only inputs kept. Families without gradients are refused by name.
 * tests/dev/check_grad_families.py holds every element against PyTorch. */
#include "family_vectors.h"
#include "train/train.h"
#include "slowed.h"

#include <dirent.h>
#include <math.h>

/* each gradient is made under a sanitizer's eyes; the differences are arithmetic */
enum { STRIDE = SLOWED ? 4 : 1, TIMES = SLOWED ? 1 : 2 };
enum { CTX = 64, SECOND = 5, MAX_ROWS = MAX_TOK + SECOND }; /* the vectors' sessions; a second document of so many */

typedef struct documents {
    hn_train_batch b;
    int32_t ids[MAX_ROWS], target[MAX_ROWS], pos[MAX_ROWS], doc[3];
} documents;

/* The vector's tokens, and some of them again. */
static void make_documents(documents *d, const vector *v)
{
    *d = (documents){ .doc = { 0, v->n, v->n + SECOND } };
    for (int t = 0; t < v->n + SECOND; t++) {
        int at = t < v->n ? t : t - v->n, len = t < v->n ? v->n : SECOND;
        d->ids[t] = v->tok[at];
        d->pos[t] = at;
        d->target[t] = at + 1 < len ? v->tok[at + 1] : -1;
    }
    d->b = (hn_train_batch){ v->n + SECOND, 2, v->n + SECOND - 2, d->ids, d->target, d->pos, d->doc };
}

static hn_grad *make(const hone_model *m, hn_pool *pool, hn_cpu_level level, bool full, bool checkpoint)
{
    hone_error err = { 0 };
    hn_grad *g;
    const hn_grad_params p = { .pool = pool,
                               .kernels = hn_kernels_get(level),
                               .full = full,
                               .targets = (1u << HN_TGT_KINDS) - 1,
                               .rank = 2,
                               .scale = 1.5f,
                               .max_tok = MAX_ROWS,
                               .n_ctx = CTX,
                               .seed = 3,
                               .checkpoint = checkpoint };
    if (hn_grad_new(&g, m, &p, &err)) fail_msg("%s", err.message);
    for (int i = 0; i < hn_grad_n_param(g); i++) { /* B's too, or A would have no gradient */
        hn_param *q = hn_grad_param(g, i);
        for (int64_t k = 0; strstr(q->name, ".lora_b") && k < q->rows * q->cols; k++)
            q->p[k] = (float)((double)(hn_rand64((uint64_t)i, (uint64_t)k) >> 11) * 0x1p-53 - 0.5) * 0.3f;
    }
    return g;
}

static double loss_of(hn_grad *g, const documents *d, double weight)
{
    double loss;
    hone_error err = { 0 };
    if (hn_grad_run(g, &d->b, weight, 0, &loss, &err)) fail_msg("%s", err.message);
    assert_true(isfinite(loss));
    return loss;
}

/* ---- what is compared ---------------------------------------------------------------------------------- */

static void check_logits(const vector *v, hn_grad *g)
{
    float y[MAX_TOK * MAX_VOCAB];
    int32_t row[MAX_TOK];
    const char *pos;
    json_t *want;
    for (int t = 0; t < v->n; t++) row[t] = t;
    hn_grad_logits(g, row, v->n, y);
    json_object_foreach(json_object_get(v->j, "logits"), pos, want) for (int k = 0; k < v->n_vocab; k++)
    {
        double off = fabs((double)y[atoi(pos) * v->n_vocab + k] - json_number_value(json_array_get(want, (size_t)k)));
        if (!(off <= 1e-5)) fail_msg("%s: logit %d at %s is %.3g off", v->name, k, pos, off);
    }
}

/* Half of p's elements, drawn, move along their gradient: the loss changes by the sum of its squares. */
static void check_param(const vector *v, hn_grad *g, const documents *d, hn_param *p, uint64_t key)
{
    enum { MOST = 1 << 14 };
    static float keep[MOST];
    int64_t n = p->rows * p->cols;
    double said = 0, loss[2], most = 0;
    assert_in_range(n, 1, MOST);
    memcpy(keep, p->p, (size_t)n * sizeof *keep);
    for (int64_t i = 0; i < n; i++) {
        if (!(hn_rand64(key, (uint64_t)i) & 1)) continue;
        said += (double)p->g[i] * (double)p->g[i];
        most = fmax(most, fabs((double)p->g[i]));
    }
    if (said < 1e-10) return; /* as of k's bias */
    double step = fmin(0.02 / said, 0.01 / most);
    for (int s = 0; s < 2; s++) {
        for (int64_t i = 0; i < n; i++)
            if (hn_rand64(key, (uint64_t)i) & 1) p->p[i] = keep[i] + (float)((s ? -step : step) * (double)p->g[i]);
        loss[s] = loss_of(g, d, 0);
    }
    memcpy(p->p, keep, (size_t)n * sizeof *keep);
    double found = (loss[0] - loss[1]) / (2 * step);
    if (!(fabs(found - said) <= 0.02 * said + 2e-5 / step))
        fail_msg("%s: %s: along its gradient the loss changes by %.5g, it says %.5g", v->name, p->name, found, said);
}

static void check_gradients(const vector *v, const hone_model *m, hn_pool *pool, const documents *d, bool full)
{
    hn_grad *g = make(m, pool, hn_cpu_best(), full, false);
    hn_grad_zero(g);
    loss_of(g, d, 1);
    if (full) check_logits(v, g);
    for (int i = 0; i < hn_grad_n_param(g); i += STRIDE)
        for (uint64_t k = 0; k < TIMES; k++) check_param(v, g, d, hn_grad_param(g, i), (uint64_t)i * 2 + k);
    hn_grad_free(g);
}

/* The same bits by another level, with other threads, and when only each layer's input is kept. */
static void check_bits(const vector *v, const hone_model *m, hn_pool *pools[2], const documents *d)
{
    hn_grad *g[2] = { make(m, pools[0], hn_cpu_best(), true, false), make(m, pools[1], HN_CPU_SCALAR, true, true) };
    double loss[2];
    for (int i = 0; i < 2; i++) {
        hn_grad_zero(g[i]);
        loss[i] = loss_of(g[i], d, 0.25);
    }
    assert_true(loss[0] == loss[1]);
    for (int i = 0; i < hn_grad_n_param(g[0]); i++) {
        const hn_param *a = hn_grad_param(g[0], i), *b = hn_grad_param(g[1], i);
        if (memcmp(a->g, b->g, (size_t)(a->rows * a->cols) * sizeof(float)))
            fail_msg("%s: %s: other bits", v->name, a->name);
    }
    for (int i = 0; i < 2; i++) hn_grad_free(g[i]);
}

/* ---- all families -------------------------------------------------------------------------------------------- */

static hn_pool *pools[2];

static void check_refused(const vector *v, const hone_model *m)
{
    hone_error err = { 0 };
    hn_grad *g;
    const hn_grad_params p = { .pool = pools[0], .kernels = hn_kernels_get(HN_CPU_SCALAR), .full = true, .max_tok = 1 };
    assert_int_equal(hn_grad_new(&g, m, &p, &err), HONE_E_UNSUPPORTED);
    if (!strstr(err.message, m->arch->name) || !strstr(err.message, "has no gradient here"))
        fail_msg("%s: refused with \"%s\"", v->name, err.message);
}

/* Rows promise gradients of their dense models, without norms of each head. */
static bool has_gradients(const hone_model *m)
{
    bool normed = m->plan->qk_norm == HN_HEAD_NORM_LAYER && m->layers->attn_q_norm;
    return m->arch->trains && !m->hp.moe.n_expert && !normed;
}

static void families(void **state)
{
    DIR *folder = opendir(FOLDER);
    int n_trained = 0, n_refused = 0;
    assert_non_null(folder);
    for (struct dirent *e; (e = readdir(folder));) {
        if (!strstr(e->d_name, ".json")) continue;
        vector v = load(e->d_name);
        hone_model *m = NULL;
        hone_error err = { 0 };
        save_as(&v, tm_path("grad.gguf"), NULL, AS_IS);
        if (hone_model_open(&m, tm_path("grad.gguf"), NULL, &err)) fail_msg("%s: %s", v.name, err.message);
        if (has_gradients(m)) { /* else it must be refused, whatever the row says */
            documents d;
            make_documents(&d, &v);
            check_gradients(&v, m, pools[0], &d, true);
            check_gradients(&v, m, pools[1], &d, false);
            check_bits(&v, m, pools, &d);
            n_trained++;
        } else {
            check_refused(&v, m);
            n_refused++;
        }
        hone_model_close(m);
        json_decref(v.j);
    }
    closedir(folder);
    assert_true(n_trained >= 20 && n_refused >= 20);
}

static int start(void **state)
{
    if (tm_make_dir(state)) return -1;
    return hn_pool_new(&pools[0], 1, NULL) || hn_pool_new(&pools[1], 3, NULL);
}
static int stop(void **state)
{
    char cmd[100];
    for (int i = 0; i < 2; i++) hn_pool_free(pools[i]);
    snprintf(cmd, sizeof cmd, "rm -r %s", tm_dir);
    return system(cmd);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(families) };
    return cmocka_run_group_tests(tests, start, stop);
}
