/* Training: forward and backward pass and the whole step of LoRA (rank 8, alpha 16, on Q and V; AdamW 1e-4, decay 0.01)
 * on one sequence of 512 random tokens, and the memory it takes. A time counts only when the pass was proved: the loss
 * is that of the engine's logits, and the gradient says how the loss moves. */
#include "lab/quality/proof.h"
#include "lab/bench/bench.h"

#include "engine/engine.h"
#include "train/train.h"
#include "lab/inside/bench_rooms.h"
#include "lab/inside/bench_stages.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum { SEQ = 512, QUICK_SEQ = 64, RANK = 8, ALPHA = 16, PROOF_STEPS = 3, LISTED_STEPS = 16 };
static const hn_adam adam = { 0.9, 0.999, 1e-8, 0.01 };
static const double rate = 1e-4;

typedef struct train_job {
    hn_bench_run *r;
    hone_model *m;
    hone_context *ctx;
    hn_grad *g;
    int32_t *ids, *target, *pos, doc[2];
    hn_train_batch b;
    float **mom;                /* [arrays] first moments, then second ones */
    float **kept;               /* [arrays] the weights before any step */
    double loss, first;         /* per token; first: when it was proved */
    uint64_t gradient, weights; /* hashes: of the fresh job's gradient, and of its weights behind PROOF_STEPS steps */
    const float *probe;         /* the greatest element of that gradient: each timed pass must leave it as it was */
    float probed;
    int64_t step, n_other; /* steps done; timed passes whose probe was another, or, where weights change, 0 */
    bool backward, update, bf16, failed;
    /* other ids before each stretch of passes, or weights and moments before each of steps, to do it again from */
    hn_bench_turned turned;
    uint64_t seed;               /* of the ids at first */
    float **before;              /* [arrays] */
    int64_t step_before, calls;  /* calls: of the last stretch */
    bool other;                  /* what the last stretch of passes gave is not what it gives elsewhere */
    uint64_t list[LISTED_STEPS]; /* of the weights behind each of the first steps */
    hone_error err;
} train_job;

static void close_job(train_job *j)
{
    for (int32_t i = 0; j->mom && i < hn_grad_n_param(j->g); i++) free(j->mom[i]);
    for (int32_t i = 0; j->kept && i < hn_grad_n_param(j->g); i++) free(j->kept[i]);
    for (int32_t i = 0; j->before && i < hn_grad_n_param(j->g); i++) free(j->before[i]);
    free(j->before);
    free(j->mom);
    free(j->kept);
    hn_grad_free(j->g);
    free(j->ids);
    free(j->target);
    free(j->pos);
}

static void set_id(train_job *j, int32_t i, int32_t id)
{
    j->ids[i] = id;
    if (i) j->target[i - 1] = id;
}

static void first_ids(train_job *j, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        set_id(j, i, (int32_t)(hn_rand64(j->seed, (uint64_t)i) % (uint64_t)j->m->hp.n_vocab));
}

/* j has model and context. */
static hone_status make_job(train_job *j, int32_t n, uint64_t seed, hone_error *err)
{
    if (n > j->m->hp.n_ctx_train) n = j->m->hp.n_ctx_train;
    j->ids = malloc((size_t)n * sizeof *j->ids);
    j->target = malloc((size_t)n * sizeof *j->target);
    j->pos = malloc((size_t)n * sizeof *j->pos);
    if (!j->ids || !j->target || !j->pos) return HN_FAIL(err, HONE_E_NOMEM, "a batch of %d tokens", n);
    for (int32_t i = 0; i < n; i++) j->pos[i] = i;
    j->target[n - 1] = -1;
    j->seed = seed;
    first_ids(j, n);
    j->doc[1] = n;
    j->b = (hn_train_batch){
        .n_tok = n, .n_doc = 1, .n_target = n - 1, .ids = j->ids, .target = j->target, .pos = j->pos, .doc = j->doc
    };
    hn_grad_params p = { .pool = j->ctx->pool,
                         .kernels = j->ctx->kernels,
                         .targets = HN_TGT_Q | HN_TGT_V,
                         .rank = RANK,
                         .scale = (float)ALPHA / RANK,
                         .seed = seed,
                         .max_tok = n,
                         .n_ctx = n,
                         .bf16 = j->bf16 };
    hn_pool_limit(j->ctx->pool, j->ctx->n_threads_batch);
    hone_status st = hn_grad_new(&j->g, j->m, &p, err);
    if (st != HONE_OK) return st;
    j->mom = calloc((size_t)hn_grad_n_param(j->g), sizeof *j->mom);
    for (int32_t i = 0; j->mom && i < hn_grad_n_param(j->g); i++) {
        const hn_param *a = hn_grad_param(j->g, i);
        j->mom[i] = calloc((size_t)(a->rows * a->cols), 2 * sizeof(float));
        if (!j->mom[i]) return HN_FAIL(err, HONE_E_NOMEM, "moments of %s", a->name);
    }
    return j->mom ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "moments");
}

/* The weights of a job that was made, for fresh(). */
static hone_status keep_weights(train_job *j, hone_error *err)
{
    j->kept = calloc((size_t)hn_grad_n_param(j->g), sizeof *j->kept);
    j->before = calloc((size_t)hn_grad_n_param(j->g), sizeof *j->before);
    if (!j->kept || !j->before) return HN_FAIL(err, HONE_E_NOMEM, "weights");
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        const hn_param *a = hn_grad_param(j->g, i);
        size_t bytes = (size_t)(a->rows * a->cols) * sizeof(float);
        if (!(j->kept[i] = malloc(bytes)) || !(j->before[i] = malloc(3 * bytes)))
            return HN_FAIL(err, HONE_E_NOMEM, "weights of %s", a->name);
        memcpy(j->kept[i], a->p, bytes);
    }
    return HONE_OK;
}

static hone_status open_job(train_job *j, hn_bench_run *r, hone_error *err)
{
    j->r = r;
    hone_status st = hn_bench_model(r, &j->m, err);
    if (st == HONE_OK) st = hn_bench_context(r, &j->ctx, err);
    if (st == HONE_OK) st = make_job(j, r->set.quick ? QUICK_SEQ : SEQ, r->set.seed, err);
    return st == HONE_OK ? keep_weights(j, err) : st;
}

static void do_pass(train_job *j, bool backward)
{
    double sum;
    if (backward) hn_grad_zero(j->g);
    j->failed = j->failed || hn_grad_run(j->g, &j->b, backward ? 1.0 / j->b.n_target : 0, 0, &sum, &j->err) != HONE_OK;
    if (!j->failed) j->loss = sum / j->b.n_target;
}

static void do_update(train_job *j)
{
    double norm = hn_grad_norm(j->g);
    float scale = norm > 1 ? (float)(1 / (norm + 1e-6)) : 1;
    j->step++;
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        hn_param *a = hn_grad_param(j->g, i);
        int64_t n = a->rows * a->cols;
        for (int64_t k = 0; k < n && scale != 1; k++) a->g[k] *= scale;
        hn_adam_step(&adam, a->p, a->g, j->mom[i], j->mom[i] + n, n, j->step, rate, a->decay);
    }
}

/* As it was made. */
static void fresh(train_job *j)
{
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        hn_param *a = hn_grad_param(j->g, i);
        size_t n = (size_t)(a->rows * a->cols);
        memcpy(a->p, j->kept[i], n * sizeof(float));
        memset(j->mom[i], 0, 2 * n * sizeof(float));
    }
    j->step = 0;
}

static uint64_t hash_of(const train_job *j, bool gradient)
{
    uint64_t h = HN_FNV_INIT;
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        const hn_param *a = hn_grad_param(j->g, i);
        uint64_t one = hn_bits_hash(gradient ? a->g : a->p, a->rows * a->cols);
        h = hn_fnv1a(h, &one, sizeof one);
    }
    return h;
}

static void step_on(train_job *j)
{
    do_update(j);
    if (j->step <= LISTED_STEPS) j->list[j->step - 1] = hash_of(j, false);
}

/* Weights and moments; keep: to j->before, else back from there. */
static void keep_state(train_job *j, bool keep)
{
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        hn_param *a = hn_grad_param(j->g, i);
        const size_t n = (size_t)(a->rows * a->cols);
        float *p = j->before[i];
        memcpy(keep ? p : a->p, keep ? a->p : p, n * sizeof *p);
        memcpy(keep ? p + n : j->mom[i], keep ? j->mom[i] : p + n, 2 * n * sizeof *p);
    }
    if (keep) j->step_before = j->step;
    else j->step = j->step_before;
}

static void call_train(void *arg, int64_t calls)
{
    train_job *j = arg;
    hn_pool_limit(j->ctx->pool, j->ctx->n_threads_batch);
    for (int64_t i = 0; i < calls && !j->failed; i++) {
        do_pass(j, j->backward);
        if (j->backward && j->probe) {
            if (!j->update && i == 0) j->probed = *j->probe; /* of these ids */
            j->n_other += *j->probe == 0 || (!j->update && *j->probe != j->probed);
        }
        if (j->update) step_on(j);
    }
}

/* ---- proof ----------------------------------------------------------------------------------------- */

/* The same loss from the logits of a session, in double. */
static hone_status loss_of_engine(train_job *j, hn_bench_run *r, double *loss, hone_error *err)
{
    int32_t n = j->b.n_tok, v = j->m->hp.n_vocab;
    hone_session *s;
    hone_token *t = calloc((size_t)n, sizeof *t);
    float *logits = malloc((size_t)v * sizeof *logits);
    hone_status st = hn_bench_session(r, &s, n, 1, err);
    if (st == HONE_OK && (!t || !logits)) st = HN_FAIL(err, HONE_E_NOMEM, "logits");
    *loss = 0;
    for (int32_t i = 0; i + 1 < n && st == HONE_OK; i++) {
        t[0] = (hone_token){ j->ids[i], i, 0, true };
        if ((st = hone_run_batch(s, t, 1, logits, err)) != HONE_OK) break;
        double max = -INFINITY, sum = 0;
        for (int32_t k = 0; k < v; k++) max = fmax(max, (double)logits[k]);
        for (int32_t k = 0; k < v; k++) sum += exp((double)logits[k] - max);
        *loss += max + log(sum) - (double)logits[j->target[i]];
    }
    *loss /= n - 1;
    hone_session_free(s);
    free(t);
    free(logits);
    return st;
}

static void shift(train_job *j, double by)
{
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        hn_param *a = hn_grad_param(j->g, i);
        for (int64_t k = 0; k < a->rows * a->cols; k++) a->p[k] = (float)((double)a->p[k] + by * (double)a->g[k]);
    }
}

/* Along the gradient g the loss moves by |g|² for each unit. */
static void check_slope(train_job *j, hn_verdict *v)
{
    do_pass(j, true);
    double norm = hn_grad_norm(j->g), by = 5e-4 * j->loss / (norm * norm), up, down;
    if (!isfinite(by)) {
        hn_invalid(v, "loss %g, gradient %g", j->loss, norm);
        return;
    }
    shift(j, by);
    do_pass(j, false);
    up = j->loss;
    shift(j, -2 * by);
    do_pass(j, false);
    down = j->loss;
    double slope = (up - down) / (2 * by * norm * norm);
    if (!(fabs(slope - 1) < 0.02)) hn_invalid(v, "the loss moves %.4f times as the gradient says", slope);
}

/* What a fresh job's gradient is, and its weights behind some steps; then it is fresh again. */
static void keep_proof(train_job *j)
{
    fresh(j);
    do_pass(j, true);
    j->gradient = hash_of(j, true);
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        const hn_param *a = hn_grad_param(j->g, i);
        for (int64_t k = 0; k < a->rows * a->cols; k++)
            if (!j->probe || fabsf(a->g[k]) > fabsf(*j->probe)) j->probe = &a->g[k];
    }
    j->probed = j->probe ? *j->probe : 0;
    for (int i = 0; i < PROOF_STEPS; i++) {
        do_pass(j, true);
        do_update(j);
    }
    j->weights = hash_of(j, false);
    fresh(j);
}

static hone_status prove(train_job *j, hn_bench_run *r, hn_verdict *v, hone_error *err)
{
    double want;
    hone_status st = loss_of_engine(j, r, &want, err);
    if (st != HONE_OK) return st;
    do_pass(j, false);
    j->first = j->loss;
    if (!(fabs(j->loss - want) < 0.02 * want)) hn_invalid(v, "loss %.5f, by the engine's logits %.5f", j->loss, want);
    check_slope(j, v);
    keep_proof(j);
    if (j->failed) {
        *err = j->err;
        return j->err.code;
    }
    if (v->state == HN_UNCHECKED) v->state = HN_VALID;
    return HONE_OK;
}

/* The step function that rounding makes of a loss in bf16 has no slope to compare with: its gradient must be the one in
 * f32, which the slope has proved, but for what operands of 8 bits lose. j is made. */
static hone_status prove_bf16(train_job *j, hn_bench_run *r, hn_bench_result *res, hone_error *err)
{
    train_job f = { 0 };
    hone_status st = open_job(&f, r, err);
    if (st == HONE_OK) st = prove(&f, r, &res->verdict, err);
    if (st == HONE_OK) {
        double off = 0, all = 0;
        do_pass(&f, true);
        do_pass(j, true);
        j->first = j->loss;
        for (int32_t i = 0; i < hn_grad_n_param(f.g); i++) {
            const hn_param *a = hn_grad_param(f.g, i), *b = hn_grad_param(j->g, i);
            for (int64_t k = 0; k < a->rows * a->cols; k++) {
                double d = (double)b->g[k] - (double)a->g[k];
                off += d * d;
                all += (double)a->g[k] * (double)a->g[k];
            }
        }
        off = sqrt(off / all);
        res->extra = json_pack("{s:o, s:o}", "gradient_off_f32", hn_lab_num(off), "loss_f32", hn_lab_num(f.loss));
        if (!(fabs(j->loss - f.loss) < 0.005 * f.loss))
            hn_invalid(&res->verdict, "loss %.5f, in f32 %.5f", j->loss, f.loss);
        if (!(off < 0.1)) hn_invalid(&res->verdict, "the gradient is %.3f of its length from the one in f32", off);
        keep_proof(j);
    }
    if (st == HONE_OK && (f.failed || j->failed)) {
        *err = f.failed ? f.err : j->err;
        st = err->code;
    }
    close_job(&f);
    return st;
}

/* ---- entries ------------------------------------------------------------------------------------------- */

/* Adapters at work: forward reads each weight once, backward once more; attention is left out. */
static double products(const train_job *j, bool backward)
{
    double w = 0;
    for (int32_t il = 0; il < j->m->hp.n_layer; il++) {
        const hn_layer *l = &j->m->layers[il];
        const hn_weight *list[] = { &l->attn_q,   &l->attn_k, &l->attn_v,  &l->attn_output,
                                    &l->ffn_gate, &l->ffn_up, &l->ffn_down };
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) w += (double)list[i]->n_in * (double)list[i]->n_out;
    }
    w = w * j->b.n_tok + (double)j->m->output.n_in * (double)j->m->output.n_out * j->b.n_target;
    return 2 * w * (backward ? 2 : 1);
}

static json_t *config_of(const train_job *j)
{
    return json_pack("{s:i, s:i, s:i, s:s, s:i}", "seq", (int)j->b.n_tok, "rank", (int)RANK, "alpha", (int)ALPHA,
                     "targets", "qv", "batch", 1);
}

/* What a record proves: the bits of the loss before any step, the gradient there, and the weights behind some steps. */
static void add_proof(hn_bench_result *res, const train_job *j)
{
    float bits[2];
    memcpy(bits, &j->first, sizeof bits);
    if (!res->extra) res->extra = json_object();
    json_t *proof = hn_proof_of("loss", hn_bits_hash(bits, 2)), *gradient = hn_proof_of("gradient", j->gradient),
           *weights = hn_proof_of("weights", j->weights);
    json_object_update(proof, gradient);
    json_object_update(proof, weights);
    json_object_set_new(res->extra, "proof", proof);
    json_decref(gradient);
    json_decref(weights);
}

/* The last stretch's ids once more, with weights, gradients and room of their own. */
static void pass_elsewhere(train_job *j)
{
    train_job t = { .bf16 = j->bf16 };
    const double loss = j->loss;
    j->failed |= open_job(&t, j->r, &j->err) != HONE_OK;
    if (!j->failed) {
        for (int32_t i = 0; i < j->b.n_tok; i++) set_id(&t, i, j->ids[i]);
        do_pass(&t, j->backward);
        j->other |= memcmp(&t.loss, &loss, sizeof loss) != 0 || (j->backward && hash_of(&t, true) != hash_of(j, true));
        j->failed |= t.failed;
        if (t.failed) j->err = t.err;
    }
    close_job(&t);
}

/* Before each stretch: what it is to begin with, which is other ids where weights stay as they are. Behind the last one
 * of passes: was that right? Then the first ids again. */
static void turn_train(void *arg, int64_t calls)
{
    train_job *j = arg;
    if (j->failed) return;
    if (j->update) {
        if (calls) keep_state(j, true);
        j->calls = calls ? calls : j->calls;
        return;
    }
    if (calls) {
        for (int i = 0; i < HN_TURNED; i++)
            set_id(j, (int32_t)hn_bench_draw(&j->turned, j->b.n_tok),
                   (int32_t)hn_bench_draw(&j->turned, j->m->hp.n_vocab));
        return;
    }
    pass_elsewhere(j);
    first_ids(j, j->b.n_tok);
    do_pass(j, j->backward);
}
static const hn_bench_left left_train = { .turn = turn_train };

/* Passes that change nothing: the last stretch was right, and of the first ids the loss and the gradient are still
 * those that were proved; a number of it was looked at in every pass. */
static void after_passes(void *arg, hn_bench_result *res, const hn_bench_timing *t)
{
    train_job *j = arg;
    if (j->other) hn_invalid(&res->verdict, "the last timed pass gave another loss or gradient than one elsewhere");
    if (memcmp(&j->loss, &j->first, sizeof j->loss) != 0)
        hn_invalid(&res->verdict, "the timed pass gave the loss %.9g, the one before the clock %.9g", j->loss,
                   j->first);
    if (j->backward && hash_of(j, true) != j->gradient)
        hn_invalid(&res->verdict, "the timed pass gave another gradient than the one before the clock");
    else if (j->n_other)
        hn_invalid(&res->verdict, "%lld timed passes gave another gradient than the one before the clock",
                   (long long)j->n_other);
}

/* A step from j->before, of the gradient that j has, by the formula in double: are the weights within a hundredth of
 * the learning rate of it? */
static bool by_formula(const train_job *j)
{
    const double t = (double)j->step, c1 = 1 - pow(adam.beta1, t), c2 = 1 - pow(adam.beta2, t);
    for (int32_t i = 0; i < hn_grad_n_param(j->g); i++) {
        const hn_param *a = hn_grad_param(j->g, i);
        const int64_t n = a->rows * a->cols;
        const float *p = j->before[i], *m = p + n, *v = m + n;
        for (int64_t k = 0; k < n; k++) {
            double g = (double)a->g[k], m1 = adam.beta1 * (double)m[k] + (1 - adam.beta1) * g,
                   v1 = adam.beta2 * (double)v[k] + (1 - adam.beta2) * g * g,
                   want = (double)p[k] * (a->decay ? 1 - rate * adam.weight_decay : 1);
            want -= rate * (m1 / c1) / (sqrt(v1 / c2) + adam.eps);
            if (!(fabs((double)a->p[k] - want) <= 0.01 * rate + 1e-6 * fabs(want))) return false;
        }
    }
    return true;
}

/* The last timed stretch again, from the weights that it began with: its last step has the loss that a pass forward
 * has, moves the weights as the formula does, and leaves them as it left them. Then the first steps. */
static void steps_again(train_job *j, hn_bench_result *res, double loss, uint64_t weights)
{
    keep_state(j, false);
    for (int64_t i = 1; i < j->calls && !j->failed; i++) {
        do_pass(j, true);
        do_update(j);
    }
    keep_state(j, true);
    do_pass(j, false);
    if (memcmp(&j->loss, &loss, sizeof loss) != 0)
        hn_invalid(&res->verdict, "the last timed step gave the loss %.9g, its pass forward %.9g", loss, j->loss);
    do_pass(j, true);
    do_update(j);
    if (!by_formula(j))
        hn_invalid(&res->verdict, "the last timed step, done again, does not move the weights as AdamW does");
    if (hash_of(j, false) != weights)
        hn_invalid(&res->verdict, "the last timed steps left other weights than the same steps behind the clock");
    const uint64_t was = j->weights;
    keep_proof(j);
    if (j->weights != was)
        hn_invalid(&res->verdict, "the first steps, done again behind the clock, leave other weights than before it");
}

/* The loss after as many steps as were timed, and whether they were right. */
static void after_steps(void *arg, hn_bench_result *res, const hn_bench_timing *t)
{
    train_job *j = arg;
    const double loss = j->loss;
    const uint64_t weights = hash_of(j, false);
    do_pass(j, false);
    json_t *extra = json_pack("{s:o, s:o, s:I}", "loss_before", hn_lab_num(j->first), "loss_after", hn_lab_num(j->loss),
                              "steps", (json_int_t)j->step);
    if (res->extra) json_object_update_missing(extra, res->extra);
    json_decref(res->extra);
    res->extra = extra;
    if (!(j->loss < j->first))
        hn_invalid(&res->verdict, "loss %.6f after %lld steps, %.6f before", j->loss, (long long)j->step, j->first);
    if (j->n_other) hn_invalid(&res->verdict, "%lld timed steps had no gradient", (long long)j->n_other);
    while (j->step < LISTED_STEPS && !j->failed) { /* a list is as long whoever took how many steps */
        do_pass(j, true);
        step_on(j);
    }
    json_t *list = json_array();
    for (int i = 0; i < LISTED_STEPS; i++) {
        json_t *one = hn_proof_of("trained", j->list[i]);
        json_array_append(list, json_object_get(one, "trained"));
        json_decref(one);
    }
    json_object_set_new(json_object_get(res->extra, "proof"), "trained", list);
    if (j->calls) steps_again(j, res, loss, weights);
}

/* Backward alone: passes with it, less the median of those without. */
static hone_status measure_backward(hn_bench_run *r, const hn_bench_entry *e, train_job *j, hn_bench_result *res,
                                    hone_error *err)
{
    hn_bench_timing forward, both = { 0 };
    hone_status st = hn_bench_time(r, &forward, call_train, j, j->ctx->n_threads_batch, &left_train, err);
    if (st != HONE_OK) {
        hn_bench_result_free(res);
        return st;
    }
    double less = hn_bench_median(forward.s, forward.n);
    j->backward = true;
    st = hn_bench_time(r, &both, call_train, j, j->ctx->n_threads_batch, &left_train, err);
    if (st == HONE_OK) {
        for (size_t i = 0; i < both.n; i++) both.s[i] -= less;
        hn_bench_use(res, &both, 1e3, false);
        if (forward.lie[0]) hn_invalid(&res->verdict, "%s", forward.lie);
        hn_bench_note(res, "passes of both kinds, less the median of those forward");
        after_passes(j, res, &both);
        st = hn_bench_add(r, e, res, err);
    } else hn_bench_result_free(res);
    hn_bench_timing_free(&forward);
    hn_bench_timing_free(&both);
    return st;
}

static hone_status not_these(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hone_model *m;
    hone_status st = hn_bench_model(r, &m, err);
    if (st == HONE_OK && !m->arch->is) return hn_bench_not_recurrent(e, "hone does not train recurrent models", err);
    return st == HONE_OK ? hn_grad_check(m, err) : st;
}

static hone_status run(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    train_job j = { 0 };
    hn_bench_result res = { 0 };
    const char *what = strrchr(e->id, '.') + 1;
    bool bwd = strcmp(what, "bwd") == 0, fwd = strcmp(what, "fwd") == 0;
    j.bf16 = strcmp(what, "bf16") == 0;
    bool tokens = j.bf16 || strcmp(what, "lora") == 0;
    hone_status st = not_these(r, e, err);
    if (st == HONE_OK) st = open_job(&j, r, err);
    if (st == HONE_OK) st = j.bf16 ? prove_bf16(&j, r, &res, err) : prove(&j, r, &res.verdict, err);
    if (st == HONE_OK) {
        res.config = config_of(&j);
        res.left = &left_train;
        add_proof(&res, &j);
        if (!tokens) res.ops = bwd ? products(&j, false) : products(&j, !fwd);
        if (bwd) st = measure_backward(r, e, &j, &res, err);
        else {
            j.backward = j.update = !fwd;
            st = hn_bench_loop(r, e, &res, call_train, &j, tokens ? j.b.n_tok : 1e3, tokens,
                               fwd ? after_passes : after_steps, err);
        }
    } else hn_bench_result_free(&res);
    if (j.failed && st == HONE_OK) {
        *err = j.err;
        st = j.err.code;
    }
    close_job(&j);
    return st;
}

hone_status hn_bench_train_once(hone_context *ctx, hone_model *m, int32_t n_tok,
                                void (*look)(void *arg, const char *stage), void *arg, hone_error *err)
{
    train_job j = { .m = m, .ctx = ctx, .backward = true, .update = true };
    hone_status st = hn_grad_check(m, err);
    if (st != HONE_OK) return st;
    st = make_job(&j, n_tok, 1, err);
    if (st == HONE_OK) {
        call_train(&j, 1);
        look(arg, "step");
        if (j.failed) {
            *err = j.err;
            st = j.err.code;
        } else if (!isfinite(j.loss)) st = HN_FAIL(err, HONE_E_NUMERIC, "the loss is %g", j.loss);
    }
    close_job(&j);
    return st;
}

#define TRAIN(id_, what_, unit_, higher_, suites_, cost_, method_, run_)                              \
    {                                                                                                 \
        .id = id_, .what = what_, .unit = unit_, .method = method_, .higher = higher_, .model = true, \
        .suites = suites_, .cost = cost_, .uses = HN_BENCH_SESSION, .run = run_                       \
    }
const hn_bench_entry hn_bench_training[] = {
    TRAIN("train.lora", "LoRA r8 a16 on Q and V, AdamW 1e-4, wd 0.01, seq 512 (quick: 64)", "tok/s", true, "quick full",
          30, 'T', run),
    TRAIN("train.lora.bf16", "the same with products of bf16 operands: hone train --bf16", "tok/s", true, "full", 30,
          'T', run),
    TRAIN("train.grad.fwd", "forward pass of a training step", "ms", false, "full", 20, 'T', run),
    TRAIN("train.grad.bwd", "backward pass of a training step", "ms", false, "full", 30, 'T', run),
    TRAIN("train.grad.total", "a training step: forward, backward, clipping, AdamW", "ms", false, "full", 30, 'T', run),
    { 0 },
};
