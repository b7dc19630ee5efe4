/* Mann-Whitney tests and steps in histories. Owns the formulas; refuses to know what the
 * numbers are. */
#include "lab/stats/changes.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdlib.h>

/* ---- Mann-Whitney --------------------------------------------------------------------------- */

/* How 2U is distributed when nx of the values, in groups of equal ones, are dealt to x. Groups are
 * taken in ascending order: j of a group of g dealt to x, after k before it, add 2j pairs with each of
 * the y below and j(g − j) with those beside them. f [k][2U] counts the ways. */
typedef struct dealing {
    double *f;
    size_t nx, width;
} dealing;

static hone_status deal(dealing *d, const size_t *group, size_t n_group, size_t nx, size_t ny, hone_error *err)
{
    size_t width = 2 * nx * ny + 1, below = 0;
    *d = (dealing){ .f = calloc((nx + 1) * width, sizeof *d->f), .nx = nx, .width = width };
    if (!d->f) return HN_FAIL(err, HONE_E_NOMEM, "distribution of %zu and %zu samples", nx, ny);
    d->f[0] = 1;
    for (size_t i = 0; i < n_group; i++) {
        size_t g = group[i];
        for (size_t to = nx; to > 0; to--) { /* downwards: what is read is still of the groups before */
            double ways = 1;
            for (size_t j = 1; j <= g && j <= to; j++) {
                size_t k = to - j;
                ways *= (double)(g - j + 1) / (double)j;
                if (k > below || below - k > ny) continue; /* no such dealing */
                size_t add = 2 * j * (below - k) + j * (g - j);
                const double *from = d->f + k * width;
                double *into = d->f + to * width;
                for (size_t s = add; s < width; s++) into[s] += ways * from[s - add];
            }
        }
        below += g;
    }
    return HONE_OK;
}

/* P(2U ≤ twice) */
static double at_most(const dealing *d, double twice)
{
    const double *f = d->f + d->nx * d->width;
    double all = 0, part = 0;
    for (size_t s = 0; s < d->width; s++) {
        all += f[s];
        if ((double)s <= twice) part += f[s];
    }
    return part / all;
}

static double normal_below(double z) { return 0.5 * erfc(-z * 0.70710678118654752); }

static hone_status probabilities(hn_mwu *out, const size_t *group, size_t n_group, size_t nx, size_t ny,
                                 hone_error *err)
{
    size_t n = nx + ny;
    out->exact = n <= HN_MWU_EXACT;
    if (out->exact) {
        dealing d;
        hone_status st = deal(&d, group, n_group, nx, ny, err);
        if (st != HONE_OK) return st;
        out->less = at_most(&d, 2 * out->u);
        out->greater = 1 - at_most(&d, 2 * out->u - 1);
        free(d.f);
        if (out->greater < 0) out->greater = 0;
    } else {
        double ties = 0, m = (double)nx * (double)ny;
        for (size_t i = 0; i < n_group; i++) ties += (double)group[i] * ((double)group[i] * (double)group[i] - 1);
        double sd = sqrt(m / 12 * ((double)n + 1 - ties / ((double)n * (double)(n - 1))));
        out->less = sd > 0 ? normal_below((out->u - m / 2 + 0.5) / sd) : 1;
        out->greater = sd > 0 ? normal_below(-(out->u - m / 2 - 0.5) / sd) : 1;
    }
    double p = 2 * fmin(out->less, out->greater);
    out->p = p < 1 ? p : 1;
    return HONE_OK;
}

typedef struct labelled {
    double v;
    bool x;
} labelled;
static int by_value(const void *a, const void *b)
{
    return hn_ascending(&((const labelled *)a)->v, &((const labelled *)b)->v);
}

hone_status hn_mann_whitney(hn_mwu *out, const double *x, size_t nx, const double *y, size_t ny, hone_error *err)
{
    *out = (hn_mwu){ .less = 1, .greater = 1, .p = 1, .exact = true };
    if (nx == 0 || ny == 0) return HONE_OK;
    size_t n = nx + ny, n_group = 0;
    for (size_t i = 0; i < n; i++)
        if (isnan(i < nx ? x[i] : y[i - nx]))
            return HN_FAIL(err, HONE_E_ARG, "sample %zu is no number", (i < nx ? i : i - nx) + 1);
    labelled *all = malloc(n * sizeof *all);
    size_t *group = calloc(n, sizeof *group);
    hone_status st = HONE_OK;
    if (!all || !group) st = HN_FAIL(err, HONE_E_NOMEM, "comparing %zu and %zu samples", nx, ny);
    if (st == HONE_OK) {
        for (size_t i = 0; i < n; i++) all[i] = i < nx ? (labelled){ x[i], true } : (labelled){ y[i - nx], false };
        qsort(all, n, sizeof *all, by_value);
        double y_below = 0;
        for (size_t i = 0; i < n; n_group++) {
            size_t end = i, of_x = 0;
            for (; end < n && all[end].v == all[i].v; end++) of_x += all[end].x;
            size_t of_y = end - i - of_x;
            out->u += (double)of_x * (y_below + 0.5 * (double)of_y);
            y_below += (double)of_y;
            group[n_group] = end - i;
            i = end;
        }
        st = probabilities(out, group, n_group, nx, ny, err);
    }
    free(all);
    free(group);
    return st;
}

/* ---- unpaired samples ------------------------------------------------------------------------- */

/* The rank k whose interval (d_k, d_{nm+1−k}) of sorted differences covers the shift with at least
 * `level` (Moses: the shifts that a test would not reject). 0: too few samples. */
static hone_status shift_rank(size_t *rank, double *coverage, size_t nx, size_t ny, double level, hone_error *err)
{
    size_t n = nx + ny;
    *rank = 0;
    *coverage = NAN;
    if (n <= HN_MWU_EXACT) {
        size_t group[HN_MWU_EXACT];
        dealing d;
        for (size_t i = 0; i < n; i++) group[i] = 1;
        hone_status st = deal(&d, group, n, nx, ny, err);
        if (st != HONE_OK) return st;
        const double *f = d.f + d.nx * d.width;
        double all = 0, below = 0;
        for (size_t s = 0; s < d.width; s++) all += f[s];
        for (size_t u = 0; 2 * (u + 1) <= nx * ny; u++) {
            below += f[2 * u] / all;
            if (1 - 2 * below < level) break;
            *rank = u + 1;
            *coverage = 1 - 2 * below;
        }
        free(d.f);
        return HONE_OK;
    }
    double m = (double)nx * (double)ny, sd = sqrt(m * (double)(n + 1) / 12);
    size_t lo = 0, hi = nx * ny / 2;
    while (lo < hi) { /* greatest rank that still covers */
        size_t k = lo + (hi - lo + 1) / 2;
        if (1 - 2 * normal_below(((double)k - 0.5 - m / 2) / sd) >= level) lo = k;
        else hi = k - 1;
    }
    *rank = lo;
    if (lo) *coverage = 1 - 2 * normal_below(((double)lo - 0.5 - m / 2) / sd);
    return HONE_OK;
}

static hone_status ratio_interval(hn_unpaired *out, const double *a, size_t na, const double *b, size_t nb,
                                  double level, hone_error *err)
{
    size_t n = na * nb, rank;
    hone_status st = shift_rank(&rank, &out->coverage, nb, na, level, err);
    if (st != HONE_OK) return st;
    double *d = malloc(n * sizeof *d);
    if (!d) return HN_FAIL(err, HONE_E_NOMEM, "%zu differences", n);
    for (size_t i = 0; i < na; i++)
        for (size_t k = 0; k < nb; k++) d[i * nb + k] = b[k] - a[i];
    qsort(d, n, sizeof *d, hn_ascending);
    out->ratio = exp(hn_middle(d, n));
    if (rank) {
        out->ci[0] = exp(d[rank - 1]);
        out->ci[1] = exp(d[n - rank]);
    }
    free(d);
    return HONE_OK;
}

/* Mann-Whitney of b, moved by -shift, against a. */
static hone_status shifted(hn_mwu *out, const double *a, size_t na, const double *b, size_t nb, double shift,
                           double *room, hone_error *err)
{
    for (size_t i = 0; i < nb; i++) room[i] = b[i] - shift;
    return hn_mann_whitney(out, room, nb, a, na, err);
}

hone_status hn_unpaired_test(hn_unpaired *out, const double *before, size_t n_before, const double *after,
                             size_t n_after, bool higher, double margin, double level, hone_error *err)
{
    *out = (hn_unpaired){ .n_old = n_before,
                          .n_new = n_after,
                          .ratio = NAN,
                          .ci = { NAN, NAN },
                          .coverage = NAN,
                          .p_same = 1,
                          .p_regressed = 1,
                          .p_improved = 1,
                          .p_within = 1 };
    if (n_before == 0 || n_after == 0) return HONE_OK;
    double *a = malloc((n_before + 2 * n_after) * sizeof *a), *b = a ? a + n_before : NULL,
           *room = b ? b + n_after : NULL;
    if (!a) return HN_FAIL(err, HONE_E_NOMEM, "comparing %zu and %zu samples", n_before, n_after);
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n_before + n_after && st == HONE_OK; i++) {
        double v = i < n_before ? before[i] : after[i - n_before];
        if (!(v > 0) || !isfinite(v))
            st = HN_FAIL(err, HONE_E_ARG, "a sample is %g; a ratio needs numbers above zero", v);
        else a[i] = higher ? log(v) : -log(v); /* of speeds */
    }
    hn_mwu same = { 0 }, low = { 0 }, high = { 0 };
    if (st == HONE_OK) st = shifted(&same, a, n_before, b, n_after, 0, room, err);
    if (st == HONE_OK) st = shifted(&low, a, n_before, b, n_after, -log1p(margin), room, err);
    if (st == HONE_OK) st = shifted(&high, a, n_before, b, n_after, log1p(margin), room, err);
    if (st == HONE_OK) st = ratio_interval(out, a, n_before, b, n_after, level, err);
    if (st == HONE_OK) {
        out->p_same = same.p;
        out->p_regressed = low.less;
        out->p_improved = high.greater;
        out->p_within = fmax(low.greater, high.less);
    }
    free(a);
    return st;
}

/* ---- what levels cost --------------------------------------------------------------------------- */

/* Σ|v − median| of values that are taken away one by one, in constant time each: their ranks as a chain
 * in ascending order, and a pointer that stays at the lower median. */
typedef struct chain {
    const double *v;      /* [m] ascending, by rank */
    int32_t *next, *prev; /* [m + 1]; place m is the end on both sides */
    int32_t mid, m;
    int32_t n, below; /* left; of them before mid */
    double sum, sum_below;
} chain;

static void to_median(chain *c)
{
    int32_t want = (c->n - 1) / 2;
    for (; c->below < want; c->below++) {
        c->sum_below += c->v[c->mid];
        c->mid = c->next[c->mid];
    }
    for (; c->below > want; c->below--) {
        c->mid = c->prev[c->mid];
        c->sum_below -= c->v[c->mid];
    }
}

/* All m values, or those at the first `limit` places; place [m]: of each rank. */
static void chain_make(chain *c, const int32_t *place, int32_t limit)
{
    int32_t at = c->m;
    c->n = c->below = 0;
    c->sum = c->sum_below = 0;
    for (int32_t r = 0; r < c->m; r++) {
        if (place && place[r] >= limit) continue;
        c->next[at] = r;
        c->prev[r] = at;
        at = r;
        c->sum += c->v[r];
        c->n++;
    }
    c->next[at] = c->m;
    c->prev[c->m] = at;
    c->mid = c->next[c->m];
    to_median(c);
}

static double chain_cost(const chain *c)
{
    if (c->n < 2) return 0;
    double m = c->v[c->mid], above = c->sum - c->sum_below - m;
    double d = m * c->below - c->sum_below + above - m * (c->n - c->below - 1);
    return d > 0 ? d : 0;
}

static void chain_take(chain *c, int32_t r)
{
    int32_t p = c->prev[r], q = c->next[r];
    c->sum -= c->v[r];
    c->n--;
    if (r < c->mid) {
        c->below--;
        c->sum_below -= c->v[r];
    } else if (r == c->mid) {
        c->mid = q;
        if (q == c->m && c->n > 0) { /* it was the last: back to the one before */
            c->mid = p;
            c->below--;
            c->sum_below -= c->v[p];
        }
    }
    c->next[p] = q;
    c->prev[q] = p;
    if (c->n > 0) to_median(c);
}

/* ---- finding levels ------------------------------------------------------------------------------- */

typedef struct search {
    const double *x;       /* [n] in time order */
    double *v, *cost;      /* by rank; cost [n + 1]: of both sides of a split */
    int32_t *rank, *place; /* of each place; of each rank */
    chain c;
    double noise;
    uint64_t key; /* of the shuffles */
} search;

typedef struct ranked {
    double v;
    int32_t i;
} ranked;
static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    return x->v != y->v ? (x->v > y->v) - (x->v < y->v) : (x->i > y->i) - (x->i < y->i);
}

/* Ranks of x[from … from + m). */
static bool rank_part(search *s, size_t from, size_t m)
{
    ranked *r = malloc(m * sizeof *r);
    if (!r) return false;
    for (size_t i = 0; i < m; i++) r[i] = (ranked){ s->x[from + i], (int32_t)i };
    qsort(r, m, sizeof *r, by_rank);
    for (size_t k = 0; k < m; k++) {
        s->v[k] = r[k].v;
        s->place[k] = r[k].i;
        s->rank[r[k].i] = (int32_t)k;
    }
    free(r);
    s->c.v = s->v;
    s->c.m = (int32_t)m;
    return true;
}

/* How long a level that ends before `to` must be, of n points in all: the newest may be news. */
static size_t least_length(size_t to, size_t n) { return to == n ? HN_STEP_MIN : HN_LEVEL_MIN; }

/* cost[t] = left of t + right of t, for every split of m values in the order of `rank`. Returns the best
 * split that leaves HN_LEVEL_MIN values before it and `least` behind. */
static size_t split_costs(search *s, const int32_t *rank, size_t m, size_t least)
{
    chain_make(&s->c, NULL, 0);
    for (size_t t = 0; t <= m; t++) {
        s->cost[t] = chain_cost(&s->c);
        if (t < m) chain_take(&s->c, rank[t]);
    }
    chain_make(&s->c, NULL, 0);
    for (size_t t = m + 1; t-- > 0;) {
        s->cost[t] += chain_cost(&s->c);
        if (t > 0) chain_take(&s->c, rank[t - 1]);
    }
    size_t best = HN_LEVEL_MIN;
    for (size_t t = HN_LEVEL_MIN; t + least <= m; t++)
        if (s->cost[t] < s->cost[best]) best = t;
    return best;
}

/* The best place of a step within [from, to), and how probable one so large is where there is none: the
 * values of both sides are shuffled, and the best split of each shuffle is looked for in the same way. */
static bool weigh(search *s, hn_step *st, size_t from, size_t to, size_t n)
{
    enum { SHUFFLES = 999, ENOUGH = 60 };
    size_t m = to - from, least = least_length(to, n);
    if (!rank_part(s, from, m)) return false;
    size_t t = split_costs(s, s->rank, m, least);
    double got = s->cost[t], slack = 2 * s->noise;
    st->at = from + t;
    st->first = st->last = st->at;
    while (st->first > from + 1 && s->cost[st->first - 1 - from] <= got + slack) st->first--;
    while (st->last + 1 < to && s->cost[st->last + 1 - from] <= got + slack) st->last++;
    st->n_before = t;
    st->n_after = m - t;
    int done = 0, as_large = 0;
    double eps = 1e-9 * (fabs(got) + s->noise); /* equal sums in another order */
    for (uint64_t k = 0; done < SHUFFLES && as_large < ENOUGH; done++) {
        for (size_t i = m - 1; i > 0; i--) {
            size_t j = (size_t)(hn_rand64(s->key + (uint64_t)done, k++) % (i + 1));
            int32_t r = s->rank[i];
            s->rank[i] = s->rank[j];
            s->rank[j] = r;
        }
        size_t b = split_costs(s, s->rank, m, least);
        as_large += s->cost[b] <= got + eps;
    }
    st->p = (double)(as_large + 1) / (double)(done + 1);
    return true;
}

/* Levels of least total cost: Σ|x − level| plus `penalty` for each step (the Potts functional, L1), exactly:
 * best[r] = min over l of best[l] + penalty + cost of l … r. cut [n]: where the last level before begins. */
static bool potts(search *s, size_t n, double penalty, int32_t *cut)
{
    double *best = malloc((n + 1) * sizeof *best);
    if (!best || !rank_part(s, 0, n)) {
        free(best);
        return false;
    }
    best[0] = 0;
    for (size_t r = 0; r < n; r++) {
        best[r + 1] = INFINITY;
        cut[r + 1] = 0;
        chain_make(&s->c, s->place, (int32_t)r + 1);
        for (size_t l = 0; l + least_length(r + 1, n) <= r + 1; l++) {
            double b = best[l] + (l ? penalty : 0) + chain_cost(&s->c);
            if (b < best[r + 1]) {
                best[r + 1] = b;
                cut[r + 1] = (int32_t)l;
            }
            chain_take(&s->c, s->rank[l]);
        }
    }
    free(best);
    return true;
}

/* The typical deviation from a level that is not known yet: from differences of neighbours, of which steps
 * spoil only a few. Median |difference| / 1.15 is the mean deviation of Laplace noise, / 1.2 that of normal
 * noise. Numbers that mostly repeat exactly have none; then a ten-thousandth. */
static double noise_of(const double *x, size_t n, bool logs, double *room)
{
    double most = 0;
    for (size_t i = 0; i + 1 < n; i++) room[i] = fabs(x[i + 1] - x[i]);
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    qsort(room, n - 1, sizeof *room, hn_ascending);
    return fmax(hn_middle(room, n - 1) / 1.17, logs ? 1e-4 : 1e-4 * most);
}

static double median_of(const double *x, size_t n, double *room)
{
    memcpy(room, x, n * sizeof *room);
    qsort(room, n, sizeof *room, hn_ascending);
    return hn_middle(room, n);
}

/* Takes back, one at a time and the weakest first, every step that chance explains. */
static bool weed(search *s, size_t n, hn_step *st, size_t *n_step)
{
    for (size_t i = 0; i < *n_step; i++)
        if (!weigh(s, &st[i], i ? st[i - 1].at : 0, i + 1 < *n_step ? st[i + 1].at : n, n)) return false;
    for (;;) {
        size_t worst = 0;
        for (size_t i = 1; i < *n_step; i++)
            if (st[i].p > st[worst].p) worst = i;
        if (*n_step == 0 || st[worst].p <= HN_STEP_ALPHA) return true;
        memmove(st + worst, st + worst + 1, (*n_step - worst - 1) * sizeof *st);
        (*n_step)--;
        for (size_t k = 0; k < 2; k++) { /* its neighbours have longer levels now */
            size_t i = worst - k;
            if (i >= *n_step) continue;
            if (!weigh(s, &st[i], i ? st[i - 1].at : 0, i + 1 < *n_step ? st[i + 1].at : n, n)) return false;
        }
    }
}

static bool search_open(search *s, const double *x, size_t n)
{
    *s = (search){ .x = x,
                   .v = malloc(n * sizeof(double)),
                   .cost = malloc((n + 1) * sizeof(double)),
                   .rank = malloc(n * sizeof(int32_t)),
                   .place = malloc(n * sizeof(int32_t)),
                   .key = 0x73746570 };
    s->c.next = malloc((n + 1) * sizeof(int32_t));
    s->c.prev = malloc((n + 1) * sizeof(int32_t));
    return s->v && s->cost && s->rank && s->place && s->c.next && s->c.prev;
}

static void search_close(search *s)
{
    free(s->v);
    free(s->cost);
    free(s->rank);
    free(s->place);
    free(s->c.next);
    free(s->c.prev);
}

/* Position and level of each step cost two numbers: by the Bayesian criterion a step is worth it when it
 * lowers the log-likelihood by ln n; for Laplace noise that is Σ|deviation| / noise. The positions were
 * chosen out of many, so twice that is asked for. */
static double penalty_of(double noise, size_t n) { return 2 * noise * log((double)n); }

static bool find(search *s, hn_steps *out, size_t n)
{
    int32_t *cut = malloc((n + 1) * sizeof *cut);
    bool ok = cut && potts(s, n, penalty_of(s->noise, n), cut);
    size_t k = 0;
    for (int32_t r = ok ? cut[n] : 0; r > 0; r = cut[r]) k++;
    out->step = ok ? calloc(k + 1, sizeof *out->step) : NULL;
    ok = ok && out->step;
    out->n = ok ? k : 0;
    for (int32_t r = ok ? cut[n] : 0; r > 0; r = cut[r]) out->step[--k].at = (size_t)r;
    free(cut);
    return ok && weed(s, n, out->step, &out->n);
}

/* Levels as they are, and how far from them points lie. */
static void describe(hn_steps *out, const double *x, const double *y, size_t n, double *room)
{
    double sum = 0;
    for (size_t i = 0; i <= out->n; i++) {
        size_t from = i ? out->step[i - 1].at : 0, to = i < out->n ? out->step[i].at : n;
        double level = median_of(x + from, to - from, room), m = median_of(y + from, to - from, room);
        for (size_t k = from; k < to; k++) sum += fabs(y[k] - m);
        if (i > 0) {
            out->step[i - 1].after = level;
            out->step[i - 1].n_after = to - from;
        }
        if (i < out->n) {
            out->step[i].before = level;
            out->step[i].n_before = to - from;
        }
    }
    out->noise = n ? sum / (double)n : 0;
    for (size_t i = 0; i < out->n; i++) out->step[i].ratio = out->logs ? out->step[i].after / out->step[i].before : NAN;
}

hone_status hn_steps_find(hn_steps *out, const double *x, size_t n, hone_error *err)
{
    *out = (hn_steps){ .logs = true };
    for (size_t i = 0; i < n; i++)
        if (!(x[i] > 0)) out->logs = false;
    if (n > HN_STEP_POINTS)
        return HN_FAIL(err, HONE_E_ARG, "a history of %zu points; expected at most %d", n, HN_STEP_POINTS);
    if (n == 0) return HONE_OK;
    double *y = malloc(2 * n * sizeof *y), *room = y ? y + n : NULL;
    search s = { 0 };
    for (size_t i = 0; y && i < n; i++) y[i] = out->logs ? log(x[i]) : x[i];
    bool ok = y && search_open(&s, y, n);
    if (ok) {
        double centre = median_of(y, n, room); /* sums of small numbers lose less */
        for (size_t i = 0; i < n; i++) y[i] -= centre;
        if (n >= HN_LEVEL_MIN + HN_STEP_MIN) {
            s.noise = noise_of(y, n, out->logs, room);
            ok = find(&s, out, n);
        }
        if (ok) describe(out, x, y, n, room);
    }
    search_close(&s);
    free(y);
    if (ok) return HONE_OK;
    hn_steps_free(out);
    return HN_FAIL(err, HONE_E_NOMEM, "steps of %zu points", n);
}

void hn_steps_free(hn_steps *s)
{
    free(s->step);
    s->step = NULL;
    s->n = 0;
}

json_t *hn_steps_json(const hn_steps *s)
{
    json_t *o = json_object(), *all = json_array();
    for (size_t i = 0; i < s->n; i++) {
        const hn_step *t = &s->step[i];
        json_t *j = json_object();
        json_object_set_new(j, "at", json_integer((json_int_t)t->at));
        json_object_set_new(j, "first", json_integer((json_int_t)t->first));
        json_object_set_new(j, "last", json_integer((json_int_t)t->last));
        json_object_set_new(j, "before", hn_lab_num(t->before));
        json_object_set_new(j, "after", hn_lab_num(t->after));
        json_object_set_new(j, "ratio", hn_lab_num(t->ratio));
        json_object_set_new(j, "p", hn_lab_num(t->p));
        json_object_set_new(j, "n_before", json_integer((json_int_t)t->n_before));
        json_object_set_new(j, "n_after", json_integer((json_int_t)t->n_after));
        json_array_append_new(all, j);
    }
    json_object_set_new(o, "noise", hn_lab_num(s->noise));
    json_object_set_new(o, "logs", json_boolean(s->logs));
    json_object_set_new(o, "steps", all);
    return o;
}
