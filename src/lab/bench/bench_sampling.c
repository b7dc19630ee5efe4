/* sample.*: what picking a token costs, for a vocabulary of 32,000 and the model's own, and
 * how much of a forward pass that is. Draws are checked against probabilities computed
 * here in double precision. Knows the public API alone. */
#include "lab/bench/bench.h"
#include "lab/bench/sample.h"
#include "lab/machine/clock.h"
#include "lab/quality/proof.h"
#include "lab/quality/quality.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

enum {
    DRAWS = 1000,
    FEW_DRAWS = 100,
    N_LOGITS = 8,
    CHECK_US = 200000,
    MIN_CHECKED = 64,
    MAX_CHECKED = 2000,
    VOCAB = 32000,
    PROMPT = 16,
    PEAK = 64,
    PROVED = 64, /* draws of each set that a record proves */
    LIKELIEST = 10,
    LATE = 4096, /* positions that are proved besides, so many from here and from there */
    LATER = 1 << 20,
    LAST = 4096 /* draws that are kept; N_LOGITS sets in turn */
};

typedef enum method { GREEDY = 0, TEMP, TOP_K, TOP_P } method;
static const struct {
    const char *id;
    hone_sampler_params p;
} methods[] = {
    { "sample.greedy", { .temp = 0, .top_p = 1, .repeat_penalty = 1 } },
    { "sample.temp", { .temp = 0.8f, .top_p = 1, .repeat_penalty = 1 } },
    { "sample.topk", { .temp = 0.8f, .top_k = 40, .top_p = 1, .repeat_penalty = 1 } },
    { "sample.topp", { .temp = 0.7f, .top_p = 0.9f, .repeat_penalty = 1 } },
};

typedef struct draw_job {
    hone_sampler *s;
    float *logits; /* [N_LOGITS][n_vocab] */
    int32_t n_vocab, draws;
    uint32_t pos;
    uint64_t proof, late; /* of the first draws of each set; at late positions */
    int32_t *last;        /* [LAST] the last that were timed, of set i % N_LOGITS; -1: none yet */
    int64_t n_last;
    int32_t top[N_LOGITS], with[N_LOGITS]; /* places of a set that have changed: of the greatest logit, with another */
    uint64_t n_moved;
    bool failed;
} draw_job;

static void exchange(float *x, int32_t a, int32_t b)
{
    float was = x[a];
    x[a] = x[b];
    x[b] = was;
}

/* No two draws are of the same logits, so that who remembers what he found in them does not find it there: the greatest
 * one is at another place each time. What was drawn is told as if it had stayed. */
static void move_top(draw_job *j, int64_t set)
{
    float *x = j->logits + (size_t)set * (size_t)j->n_vocab;
    exchange(x, j->top[set], j->with[set]);
    j->with[set] = (int32_t)(hn_mix64(j->n_moved++) % (uint64_t)j->n_vocab);
    exchange(x, j->top[set], j->with[set]);
}

static int32_t as_at_first(const draw_job *j, int64_t set, int32_t id)
{
    return id == j->with[set] ? j->top[set] : id == j->top[set] ? j->with[set] : id;
}

static void call_draws(void *arg, int64_t calls)
{
    draw_job *j = arg;
    for (int64_t i = 0; i < calls * j->draws; i++) {
        int64_t at = j->n_last++ % LAST, set = at % N_LOGITS;
        int32_t id = -1;
        move_top(j, set);
        j->failed |= hone_sampler_pick(j->s, j->logits + (size_t)set * (size_t)j->n_vocab, 0,
                                       (int32_t)(j->pos++ & INT32_MAX), &id, NULL) != HONE_OK;
        j->last[at] = as_at_first(j, set, id);
    }
    hn_bench_sink(j->last);
}

/* ---- logits --------------------------------------------------------------------------------------- */

/* Sums of twelve uniform numbers: nearly normal. Above them, unless flat, some tokens of which ten or so
 * have nine tenths of the probability, as in a model's. */
static void synthetic(draw_job *j, bool flat)
{
    for (int32_t k = 0; k < N_LOGITS; k++) {
        float *x = j->logits + (size_t)k * (size_t)j->n_vocab;
        for (int32_t i = 0; i < j->n_vocab; i++) {
            float s = -6;
            for (uint64_t u = 0; u < 12; u++) s += hn_rand_f32(41 + (uint64_t)k, (uint64_t)i * 12 + u);
            x[i] = 2.5f * s;
        }
        for (uint64_t c = 0; c < PEAK && !flat; c++)
            x[hn_rand64(61 + (uint64_t)k, c) % (uint64_t)j->n_vocab] = 16 - 0.25f * (float)c;
    }
}

/* Logits of the model after 16 to 24 tokens; *pass_s: what one token takes. */
static hone_status own_logits(draw_job *j, hn_bench_run *r, double *pass_s, hone_error *err)
{
    hone_session *s;
    int32_t ids[PROMPT + N_LOGITS];
    double took[N_LOGITS];
    hone_status st = hn_bench_session(r, &s, PROMPT + N_LOGITS, 1, err);
    if (st != HONE_OK) return st;
    hn_bench_ids(ids, PROMPT + N_LOGITS, 0, 0, r->model);
    const float *logits;
    st = hone_append(s, 0, ids, PROMPT, &logits, err);
    for (int32_t k = 0; k < N_LOGITS && st == HONE_OK; k++) {
        uint64_t t = hn_clock_ns();
        st = hone_append(s, 0, &ids[PROMPT + k], 1, &logits, err);
        took[k] = (double)(hn_clock_ns() - t) * 1e-9;
        if (st == HONE_OK)
            memcpy(j->logits + (size_t)k * (size_t)j->n_vocab, logits, (size_t)j->n_vocab * sizeof *logits);
    }
    *pass_s = st == HONE_OK ? hn_bench_median(took, N_LOGITS) : NAN;
    hone_session_free(s);
    return st;
}

/* ---- are these the right draws? -------------------------------------------------------------------------- */

/* May `id` be drawn at all? */
static bool allowed(const float *x, int32_t n, method m, int32_t id, double total, double max)
{
    double above = 0;
    int32_t greater = 0;
    for (int32_t i = 0; i < n; i++)
        if (x[i] > x[id]) {
            greater++;
            above += exp((double)x[i] - max);
        }
    switch (m) {
    case GREEDY: return greater == 0;
    case TOP_K: return greater < 40;
    case TOP_P: return above / total < 0.9 + 1e-6;
    default: return true;
    }
}

/* The likeliest tokens of one set of logits that a method leaves, in descending order, and their probabilities. */
typedef struct likely {
    int32_t n, id[LIKELIEST];
    double p[LIKELIEST];
} likely;

/* False: too flat a distribution to be sorted this way, or no memory. */
static bool find_likely(likely *l, const float *x, int32_t n_vocab, method m)
{
    enum { MOST = 400 };
    double max = -INFINITY, total = 0, kept = 0, mass = 0, temp = (double)methods[m].p.temp;
    char *gone = calloc((size_t)n_vocab, 1);
    l->n = 0;
    if (!gone) return false;
    for (int32_t i = 0; i < n_vocab; i++) max = fmax(max, (double)x[i]);
    for (int32_t i = 0; i < n_vocab; i++) total += exp((double)x[i] - max);
    int32_t most = m == TOP_K ? 40 : m == TEMP ? LIKELIEST : MOST, c = 0;
    for (; c < most && c < n_vocab && (m != TOP_P || mass / total < 0.9); c++) { /* selected one after the other */
        int32_t best = -1;
        for (int32_t i = 0; i < n_vocab; i++)
            if (!gone[i] && (best < 0 || x[i] > x[best])) best = i;
        gone[best] = 1;
        mass += exp((double)x[best] - max);
        kept += exp(((double)x[best] - max) / temp);
        if (l->n == LIKELIEST) continue;
        l->id[l->n] = best;
        l->p[l->n++] = exp(((double)x[best] - max) / temp);
    }
    free(gone);
    if (m == TEMP) {
        kept = 0;
        for (int32_t i = 0; i < n_vocab; i++) kept += exp(((double)x[i] - max) / temp);
    }
    for (int32_t i = 0; i < l->n; i++) l->p[i] /= kept;
    return m != TOP_P || c < MOST;
}

/* χ² of so many cells; of one set of logits, or of all. */
typedef struct shares {
    double chi;
    int32_t cells;
} shares;

/* At most what five standard deviations are for a normal variable (Wilson and Hilferty). */
static double most_of(const shares *s)
{
    double d = 2.0 / (9.0 * s->cells);
    return s->cells * pow(1 - d + 5 * sqrt(d), 3);
}

/* Of n draws, hits of each of the likeliest tokens, and all others together, as often as their probabilities say. Cells
 * with few expected hits join the others. */
static void check_share(const likely *l, const int64_t *hits, int32_t n, shares *sum, hn_verdict *v)
{
    const double few = 5;
    shares s = { 0 };
    double left = n, worst = 0;
    int64_t rest = n;
    int32_t at = 0;
    for (int32_t i = 0; i < l->n && l->p[i] * n >= few; i++) {
        double expected = l->p[i] * n, off = (double)hits[i] - expected, part = off * off / expected;
        if (part > worst) worst = part, at = i;
        s.chi += part;
        s.cells++;
        left -= expected;
        rest -= hits[i];
    }
    if (left >= few) s.chi += ((double)rest - left) * ((double)rest - left) / left;
    else s.cells--;
    if (s.cells < 1) return;
    sum->chi += s.chi;
    sum->cells += s.cells;
    if (s.chi > most_of(&s))
        hn_invalid(v,
                   "likely tokens are not drawn as often as they should be (chi-square %.0f, at most %.0f): number %d "
                   "has probability %.4f and was drawn in %.4f of %d draws",
                   s.chi, most_of(&s), (int)at + 1, l->p[at], (double)hits[at] / n, (int)n);
}

/* One set of logits, and what may be drawn from it. */
typedef struct drawn_set {
    const float *x;
    likely l;
    double max, total;
    int32_t best;
    bool sorted;
} drawn_set;

/* False: a logit is not a number. */
static bool know_set(drawn_set *d, const draw_job *j, method m, int32_t k)
{
    *d = (drawn_set){ .x = j->logits + (size_t)k * (size_t)j->n_vocab };
    hn_logit_scan scan = hn_scan_logits(d->x, j->n_vocab);
    if (!scan.finite) return false;
    d->best = scan.best;
    d->max = (double)d->x[scan.best];
    for (int32_t i = 0; i < j->n_vocab; i++) d->total += exp((double)d->x[i] - d->max);
    d->sorted = m != GREEDY && find_likely(&d->l, d->x, j->n_vocab, m);
    return true;
}

/* Half of the positions from 0 on, a quarter from LATE and from LATER. */
static int32_t position_of(int32_t i, int32_t n) { return i < n / 2 ? i : i < n / 4 * 3 ? LATE + i : LATER + i; }

static void check_one(const draw_job *j, const drawn_set *d, method m, int32_t id, bool may_it, hn_verdict *v)
{
    if (id < 0 || id >= j->n_vocab) hn_invalid(v, "token %d was drawn, of %d", id, j->n_vocab);
    else if (m == GREEDY && id != d->best)
        hn_invalid(v, "greedy picks token %d, the greatest logit is that of %d", id, d->best);
    else if (may_it && !allowed(d->x, j->n_vocab, m, id, d->total, d->max))
        hn_invalid(v, "token %d was drawn, which this method leaves out", id);
}

static void know_tops(draw_job *j)
{
    for (int32_t k = 0; k < N_LOGITS; k++) {
        int32_t best = hn_scan_logits(j->logits + (size_t)k * (size_t)j->n_vocab, j->n_vocab).best;
        j->top[k] = j->with[k] = best < 0 ? 0 : best;
    }
}

/* The last draws that were timed are as likely as any. */
static void check_last(draw_job *j, method m, hn_verdict *v)
{
    shares all = { 0 };
    int64_t n = j->n_last < LAST ? j->n_last : LAST;
    for (int32_t k = 0; k < N_LOGITS; k++) {
        int64_t hits[LIKELIEST] = { 0 };
        int32_t of_set = 0;
        drawn_set d;
        if (!know_set(&d, j, m, k)) return;
        for (int64_t i = k; i < n; i += N_LOGITS, of_set++) {
            int32_t id = j->last[i];
            check_one(j, &d, m, id, of_set < PROVED, v);
            for (int32_t c = 0; c < d.l.n; c++) hits[c] += id == d.l.id[c];
        }
        if (d.sorted && of_set) check_share(&d.l, hits, of_set, &all, v);
    }
    if (all.cells && all.chi > most_of(&all))
        hn_invalid(v, "likely tokens were not drawn as often as they should be while the clock ran");
}

/* What a record proves of one set: the same positions in each build, however many are checked. */
static hone_status prove_draws(draw_job *j, const float *x, hone_error *err)
{
    enum { EACH = 16 };
    hone_status st = HONE_OK;
    for (int32_t i = 0; i < PROVED + 2 * EACH && st == HONE_OK; i++) {
        int32_t id, pos = i < PROVED ? i : i < PROVED + EACH ? LATE + i : LATER + i;
        st = hone_sampler_pick(j->s, x, 0, pos, &id, err);
        uint64_t *h = i < PROVED ? &j->proof : &j->late;
        if (st == HONE_OK) *h = hn_fnv1a(*h, &id, sizeof id);
    }
    return st;
}

static hone_status check_draws(draw_job *j, method m, hn_verdict *v, hone_error *err)
{
    uint64_t t = hn_clock_ns();
    int32_t each = MIN_CHECKED, unused; /* as many as a moment allows */
    for (int32_t pos = 0; pos < MIN_CHECKED; pos++) hone_sampler_pick(j->s, j->logits, 0, pos, &unused, NULL);
    double draw_us = (double)(hn_clock_ns() - t) * 1e-3 / MIN_CHECKED;
    if (draw_us * N_LOGITS * MIN_CHECKED < CHECK_US) each = (int32_t)fmin(MAX_CHECKED, CHECK_US / (draw_us * N_LOGITS));
    shares all = { 0 }; /* of sets with positions of their own: at the same ones they would be drawn by one number */
    j->proof = j->late = HN_FNV_INIT;
    for (int32_t k = 0; k < N_LOGITS; k++) {
        int64_t hits[LIKELIEST] = { 0 };
        drawn_set d;
        if (!know_set(&d, j, m, k)) {
            hn_invalid(v, "a logit is not a number");
            return HONE_OK;
        }
        for (int32_t i = 0; i < each; i++) {
            int32_t id, again, pos = position_of(i, each) + k * MAX_CHECKED;
            hone_status st = hone_sampler_pick(j->s, d.x, 0, pos, &id, err);
            if (st == HONE_OK && i < 16) st = hone_sampler_pick(j->s, d.x, 0, pos, &again, err);
            if (st != HONE_OK) return st;
            if (i < 16 && again != id) hn_invalid(v, "the same position drew token %d, then %d", id, again);
            check_one(j, &d, m, id, i < MIN_CHECKED || i >= each - MIN_CHECKED / 4, v);
            for (int32_t c = 0; c < d.l.n; c++) hits[c] += id == d.l.id[c];
        }
        if (d.sorted) check_share(&d.l, hits, each, &all, v);
        hone_status st = prove_draws(j, d.x, err);
        if (st != HONE_OK) return st;
    }
    if (all.cells && all.chi > most_of(&all))
        hn_invalid(v, "likely tokens are not drawn as often as they should be (chi-square %.0f of all, at most %.0f)",
                   all.chi, most_of(&all));
    if (v->state == HN_UNCHECKED) v->state = HN_VALID;
    return HONE_OK;
}

/* ---- the entries --------------------------------------------------------------------------------------------- */

typedef struct timed {
    draw_job *j;
    double pass_s;
    method m;
} timed;
static void call_timed(void *arg, int64_t calls) { call_draws(((timed *)arg)->j, calls); }
static void after_timed(void *arg, hn_bench_result *res, const hn_bench_timing *t)
{
    timed *k = arg;
    double draw_s = hn_bench_median(t->s, t->n) / k->j->draws;
    if (k->j->failed) hn_invalid(&res->verdict, "a draw failed");
    for (int32_t i = 0; i < N_LOGITS; i++) { /* as they were */
        exchange(k->j->logits + (size_t)i * (size_t)k->j->n_vocab, k->j->top[i], k->j->with[i]);
        k->j->with[i] = k->j->top[i];
    }
    check_last(k->j, k->m, &res->verdict);
    json_t *proof = hn_proof_of("ids", k->j->proof), *late = hn_proof_of("late", k->j->late);
    json_object_update(proof, late);
    json_decref(late);
    res->extra = json_pack("{s:o}", "proof", proof);
    if (isfinite(k->pass_s)) {
        json_object_set_new(res->extra, "pass_us", hn_lab_num(1e6 * k->pass_s));
        json_object_set_new(res->extra, "pct_of_pass", hn_lab_num(100 * draw_s / k->pass_s));
    }
    if (isfinite(k->pass_s) && draw_s > 0.01 * k->pass_s)
        hn_bench_note(res, "%.2g %% of a forward pass of one token (wanted: below 1 %%)", 100 * draw_s / k->pass_s);
}

typedef enum source { PEAKED = 0, FLAT, OWN, N_SOURCES } source;

static hone_status measure(hn_bench_run *r, const hn_bench_entry *e, method m, source from, hone_error *err)
{
    bool own = from == OWN;
    draw_job j = { .n_vocab = own ? r->info.n_vocab : VOCAB,
                   .draws = r->set.quick || from == FLAT ? FEW_DRAWS : DRAWS };
    timed t = { &j, NAN, m };
    char variant[48];
    snprintf(variant, sizeof variant, own ? "the model's %d" : from == FLAT ? "%d, flat" : "%d", j.n_vocab);
    hn_bench_result res = { .variant = variant,
                            .threads = 1,
                            .parts = j.draws,
                            .config = json_pack("{s:i, s:i}", "n_vocab", (int)j.n_vocab, "draws", (int)j.draws) };
    hone_sampler_params p = methods[m].p;
    p.seed = r->set.seed;
    j.logits = malloc((size_t)j.n_vocab * N_LOGITS * sizeof *j.logits);
    j.last = malloc(LAST * sizeof *j.last);
    for (int32_t i = 0; i < LAST && j.last; i++) j.last[i] = -1;
    hone_status st =
        j.logits && j.last ? hone_sampler_new(&j.s, j.n_vocab, &p, err) : HN_FAIL(err, HONE_E_NOMEM, "logits");
    if (st == HONE_OK && own) st = own_logits(&j, r, &t.pass_s, err);
    if (st == HONE_OK && !own) synthetic(&j, from == FLAT);
    if (st == HONE_OK) st = check_draws(&j, m, &res.verdict, err);
    if (st == HONE_OK) know_tops(&j);
    if (st == HONE_OK) st = hn_bench_loop(r, e, &res, call_timed, &t, 1e6 / j.draws, false, after_timed, err);
    else hn_bench_result_free(&res);
    hone_sampler_free(j.s);
    free(j.logits);
    free(j.last);
    return st;
}

static hone_status run(hn_bench_run *r, const hn_bench_entry *e, hone_error *err)
{
    hone_model *model;
    method m = GREEDY;
    while (strcmp(methods[m].id, e->id) != 0) m++;
    hone_status st = hn_bench_model(r, &model, err);
    for (int from = 0; from < N_SOURCES && st == HONE_OK; from++) {
        if (from == FLAT && r->set.quick) continue;
        st = measure(r, e, m, (source)from, err);
        if (hn_bench_step(r, (from + 1.0) / N_SOURCES) && st == HONE_OK)
            st = HN_FAIL(err, HONE_E_INTERRUPTED, "%s: stopped", e->id);
    }
    return st;
}

#define SAMPLE(id_, what_, target_, suites_)                                                                        \
    {                                                                                                               \
        .id = id_, .what = what_, .unit = "us", .target = target_, .method = 'K', .model = true, .suites = suites_, \
        .cost = 3, .uses = HN_BENCH_SESSION, .run = run                                                             \
    }
const hn_bench_entry hn_bench_sampling[] = {
    SAMPLE("sample.greedy",
           "one draw of 1000, vocabulary 32,000 and the model's own: the greatest logit; share of a pass", "< 1 ms",
           "quick full ci"),
    SAMPLE("sample.temp", "the same at temperature 0.8", "< 5 ms", "full"),
    SAMPLE("sample.topk", "the same, top-k 40", "< 10 ms", "quick full ci"),
    SAMPLE("sample.topp", "the same, temperature 0.7, top-p 0.9", "< 10 ms", "quick full ci"),
    { 0 },
};
