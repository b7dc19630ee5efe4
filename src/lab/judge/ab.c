/* Rounds of two sides until there is a verdict. Owns the plan of an experiment: how many
 * runs make a round, when a round does not count, when to look and when to stop; the
 * statistics are compare.c's, the measuring is sides.c's. */
#define _GNU_SOURCE
#include "lab/judge/ab.h"
#include "lab/bench/bench.h"
#include "lab/bench/sample.h"
#include "lab/judge/front.h"
#include "lab/judge/same.h"
#include "lab/judge/sides.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/evidence.h"
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"

#include <math.h>
#include <stdarg.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static const double first_round_s = 0.06; /* of one side: runs of a round at first */
static const double most_round_s = 0.6;   /* of both: beyond that a round gets no more runs */
static const double most_kernel_s = 0.3;  /* likewise, of kernels that stay in this process */
static const double most_trial_s = 90;    /* trying out how many runs a round needs ends then */
static const double fine = 0.5;           /* as fine as that share of the margin is fine enough */

typedef struct round_info {
    bool ba, voided, kept;
} round_info;
typedef struct series {      /* rounds of one phase of one bench */
    int k, n_metric, n_side; /* n_side 3: a copy of A with data of its own as well */
    size_t n, cap, voided, kept;
    round_info *info;
    double *v;       /* [n][n_metric][n_side][k] */
    size_t alone[2]; /* rounds in which only A's, only B's processes read pages from disk */
    double seconds;
} series;

typedef struct bench {
    const hn_target *t;
    hn_ab_line *line; /* [n_line], in the report */
    int n_line, k;
    size_t times;  /* 0; or a round is of one run, and there are so many times as many */
    double cost;   /* seconds of one run of one side */
    hn_side *copy; /* of A, where sides stay in this process: data of its own, as B has */
    series ab;
    bool resident, decided;
    char weights[2][240], ran[2][120]; /* of a and b, as they said it first */
    bool said[2], droned[2];           /* a side's timed generation: of several tokens; of one, repeated */
} bench;

typedef struct experiment {
    const hn_ab_params *p;
    hn_ab_report *out;
    bench *bench; /* [p->n_targets] */
    size_t rounds;
    uint64_t salt;
    hn_same *same; /* what the runs answered */
    hone_error *err;
} experiment;

const char *hn_ab_within_name(hn_ab_within w)
{
    static const char *const names[] = { "auto", "best", "median", "mean" };
    return names[w];
}

static void note(hn_ab_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(hn_ab_report *r, const char *fmt, ...)
{
    if (r->n_notes == HN_AB_NOTES) {
        r->n_unsaid++;
        return;
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->note[r->n_notes++], sizeof r->note[0], fmt, ap);
    va_end(ap);
}

static void new_name(char dst[16])
{
    snprintf(dst, 16, "%012" PRIx64, hn_rand64(hn_clock_ns(), (uint64_t)getpid()) >> 16);
}

static bool stopped(const experiment *x) { return x->p->stop && x->p->stop(NULL); }

/* ---- a series of rounds -------------------------------------------------------------------- */

static double *values(const series *s, size_t round, int metric, int side)
{
    return s->v + ((round * (size_t)s->n_metric + (size_t)metric) * (size_t)s->n_side + (size_t)side) * (size_t)s->k;
}

static bool series_room(series *s)
{
    if (s->n < s->cap) return true;
    size_t cap = s->cap ? 2 * s->cap : 64;
    round_info *info = realloc(s->info, cap * sizeof *info);
    if (info) s->info = info;
    double *v = info ? realloc(s->v, cap * (size_t)(s->n_metric * s->n_side * s->k) * sizeof *v) : NULL;
    if (!v) return false;
    s->v = v;
    s->cap = cap;
    return true;
}

static void series_free(series *s)
{
    free(s->info);
    free(s->v);
    *s = (series){ 0 };
}

static double summary(const double *v, int k, hn_ab_within w, bool higher)
{
    double s[HN_AB_MAX_RUNS], sum = 0;
    memcpy(s, v, (size_t)k * sizeof *s);
    qsort(s, (size_t)k, sizeof *s, hn_ascending);
    for (int i = 0; i < k; i++) sum += s[i];
    if (w == HN_AB_MEAN) return sum / k;
    if (w == HN_AB_MEDIAN) return k % 2 ? s[k / 2] : 0.5 * (s[k / 2 - 1] + s[k / 2]);
    return higher ? s[k - 1] : s[0];
}

static void rounds_of(hn_ab_round *r, const series *s, int metric, hn_ab_within w, bool higher)
{
    for (size_t i = 0; i < s->n; i++)
        r[i] = (hn_ab_round){ .a = summary(values(s, i, metric, 0), s->k, w, higher),
                              .b = summary(values(s, i, metric, 1), s->k, w, higher),
                              .a2 = s->n_side > 2 ? summary(values(s, i, metric, 2), s->k, w, higher) : 0,
                              .ba = s->info[i].ba,
                              .voided = s->info[i].voided };
}

/* Every so many rounds that count and follow each other become one, of so many times as many runs; what is left over
 * is none, and what was thrown away stays so: of many it would take most with it. */
static bool series_merge(series *out, const series *s, size_t by)
{
    series m = { .k = (int)by * s->k, .n_metric = s->n_metric, .n_side = s->n_side };
    size_t h = 0;
    for (size_t i = 0, left = s->n - s->voided; i < s->n && h + left >= by; i++) {
        if (s->info[i].voided) continue;
        left--;
        if (h == 0 && !series_room(&m)) {
            series_free(&m);
            return false;
        }
        if (h == 0) m.info[m.n] = (round_info){ .ba = s->info[i].ba };
        m.info[m.n].kept = m.info[m.n].kept || s->info[i].kept;
        for (int j = 0; j < s->n_metric; j++)
            for (int side = 0; side < s->n_side; side++)
                memcpy(values(&m, m.n, j, side) + h * (size_t)s->k, values(s, i, j, side),
                       (size_t)s->k * sizeof(double));
        if (++h < by) continue;
        h = 0;
        m.kept += m.info[m.n].kept;
        m.n++;
    }
    *out = m;
    return true;
}

/* ---- one round ------------------------------------------------------------------------------- */

static hone_status measure(hn_measured *m, experiment *x, bench *b, hn_side *side)
{
    hone_status st = hn_side_measure(m, side, b->t, hn_rand64(x->p->seed ^ 0x73616c74, x->salt++), x->err);
    if (st != HONE_OK) return st;
    /* Of a repeated token the quality run, with answers to real prompts, has the last word; not if one side has it.
     * Runs that were asked different things are compared with the other side's by their answers. */
    bool drones = strncmp(m->invalid, "degenerate output", 17) == 0;
    if (m->invalid[0] && !drones)
        return HN_FAIL(x->err, HONE_E_NUMERIC, "%s: the result is not valid: %s", hn_side_label(side), m->invalid);
    char *weights = b->weights[side == x->p->b];
    if (!weights[0]) snprintf(weights, sizeof b->weights[0], "%s", m->weights);
    char *ran = b->ran[side == x->p->b];
    if (!ran[0]) snprintf(ran, sizeof b->ran[0], "%s", m->ran);
    if (!m->question) (drones ? b->droned : b->said)[side == x->p->b] = true;
    if ((b->droned[0] || b->droned[1]) && (b->said[0] || b->said[1]))
        return HN_FAIL(x->err, HONE_E_NUMERIC,
                       "%s repeated one token through what was timed, and the other run did not",
                       b->droned[1] ? "b" : "a");
    return hn_same_check(x->same, side, b->t, m, x->err);
}

/* As a record writes it: who judges again from the record judges the same numbers. */
static double recorded(double v)
{
    char text[40];
    snprintf(text, sizeof text, "%.6g", v);
    return strtod(text, NULL);
}

static hone_status run_once(experiment *x, bench *b, series *s, hn_side *side, int which, int run, int64_t *faults)
{
    hn_measured m;
    hone_status st = measure(&m, x, b, side);
    if (st != HONE_OK) return st;
    faults[which == 1] += m.major_faults; /* a copy of A is A */
    for (int j = 0; j < b->n_line; j++) {
        const hn_measured_metric *v = hn_measured_find(&m, b->line[j].metric);
        if (!v || !(v->value > 0))
            return HN_FAIL(x->err, HONE_E_FORMAT, "%s: %s is %s; expected a number above zero, which has a ratio",
                           hn_side_label(side), b->line[j].metric, v ? "not above zero" : "missing");
        values(s, s->n, j, which)[run] = recorded(v->value);
        b->line[j].unproved = b->line[j].unproved || !v->proved;
    }
    return HONE_OK;
}

/* How many rounds may be thrown away while n are wanted: an environment that is always so is
 * no event, and what is left after throwing away most would be no sample. */
static size_t may_void(size_t n) { return n / 2 > 4 ? n / 2 : 4; }

/* Does what the machine did meanwhile void a round? */
static bool disturbed(const hn_evidence *before, const hn_evidence *after, char *why, size_t cap)
{
    json_t *o = json_object();
    if (!o) return false;
    hn_evidence_json(o, before, after);
    json_object_set_new(o, "major_faults", json_integer(0)); /* those of this process are nobody's */
    bool bad = hn_evidence_voids(o, false, before->mhz > 0 ? before->mhz : NAN, why, cap);
    json_decref(o);
    return bad;
}

/* Rounds of one side alone, more of them than chance makes: that is how this side is, or wants to be seen. */
static bool one_sided(const series *s)
{
    const double level = 0.01;
    size_t n = s->alone[0] + s->alone[1], less = s->alone[0] < s->alone[1] ? s->alone[0] : s->alone[1];
    return hn_binomial_half(n, (long)less) <= level;
}

/* Pages that the measured processes read from disk void a round, too, unless it is always the same side's. */
static bool paged(series *s, const int64_t faults[2], char *why, size_t cap)
{
    if (!faults[0] && !faults[1]) return false;
    snprintf(why, cap, "%" PRId64 " pages had to be read from disk", faults[0] + faults[1]);
    if (faults[0] && faults[1]) return true;
    s->alone[faults[1] > 0]++;
    return !one_sided(s);
}

/* side [s->n_side]: A, B and perhaps A's copy, which runs before or behind the two, by a coin of its own. */
static hone_status add_round(experiment *x, bench *b, series *s, hn_side *const *side, uint64_t index, size_t wanted)
{
    if (!series_room(s)) return HN_FAIL(x->err, HONE_E_NOMEM, "rounds of the comparison");
    hn_evidence before, after;
    int64_t faults[2] = { 0 };
    uint64_t start = hn_clock_ns();
    bool ba = hn_ab_order(x->p->seed, index), copy_first = hn_ab_order(x->p->seed ^ 0x636f7079, index);
    hn_evidence_look(&before);
    for (int run = 0; run < s->k; run++) {
        int order[3], n = 0, first = (run % 2 ? !ba : ba); /* ABBA within the round too */
        bool copy_now = s->n_side > 2 && (run % 2 ? !copy_first : copy_first);
        if (copy_now) order[n++] = 2;
        order[n++] = first;
        order[n++] = !first;
        if (s->n_side > n) order[n++] = 2;
        for (int h = 0; h < n; h++) {
            hone_status st = run_once(x, b, s, side[order[h]], order[h], run, faults);
            if (st != HONE_OK) return st;
        }
    }
    hn_evidence_look(&after);
    s->seconds += (double)(hn_clock_ns() - start) * 1e-9;
    char why[120];
    s->info[s->n] = (round_info){ .ba = ba };
    if (disturbed(&before, &after, why, sizeof why) || paged(s, faults, why, sizeof why)) {
        bool out = s->voided < may_void(wanted);
        if (!out && x->p->strict)
            return HN_FAIL(
                x->err, HONE_E_UNSUPPORTED,
                "the machine is disturbed all the time: %zu of %zu rounds thrown away, and again %s (--strict)",
                s->voided, s->n + 1, why);
        s->info[s->n].voided = out;
        s->info[s->n].kept = !out;
        s->voided += out;
        s->kept += !out;
    }
    s->n++;
    return HONE_OK;
}

/* ---- the metrics of a bench ---------------------------------------------------------------------- */

static bool of_process(const char *name)
{
    static const char *const names[] = { "wall_ms", "cpu_ms", "user_ms", "sys_ms", "rss_mb" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return false;
}

static hone_status add_line(experiment *x, bench *b, const hn_measured_metric *m, bool beside)
{
    for (int i = 0; i < b->n_line; i++)
        if (strcmp(b->line[i].metric, m->name) == 0)
            return HN_FAIL(x->err, HONE_E_ARG, "--metric %s: named twice", m->name);
    if (!(m->value > 0))
        return HN_FAIL(x->err, HONE_E_ARG, "%s is %g; expected a number above zero, which has a ratio", m->name,
                       m->value);
    hn_ab_line *l = &b->line[b->n_line++];
    *l = (hn_ab_line){ .target = b->t,
                       .higher = m->higher,
                       .beside = beside,
                       .aa_half_width = NAN,
                       .n_runs = 1,
                       .a = NAN,
                       .b = NAN,
                       .within = HN_AB_MEDIAN };
    snprintf(l->metric, sizeof l->metric, "%s", m->name);
    snprintf(l->unit, sizeof l->unit, "%s", m->unit);
    return HONE_OK;
}

static hone_status named_metrics(experiment *x, bench *b, const hn_measured *m)
{
    char names[2048], have[900] = "";
    if (strlen(x->p->metrics) >= sizeof names) return HN_FAIL(x->err, HONE_E_ARG, "--metric: too long");
    snprintf(names, sizeof names, "%s", x->p->metrics);
    for (char *w = names, *next; w; w = next) {
        next = strchr(w, ',');
        if (next) *next++ = 0;
        const hn_measured_metric *v = hn_measured_find(m, w);
        if (!v) {
            for (int i = 0; i < m->n; i++) {
                size_t n = strlen(have);
                snprintf(have + n, sizeof have - n, "%s%s", n ? ", " : "", m->m[i].name);
            } /* as many as fit; a message is no longer */
            return HN_FAIL(x->err, HONE_E_ARG, "--metric %s: this bench has %s", HN_ESC(w, strlen(w)), have);
        }
        hone_status st = add_line(x, b, v, false);
        if (st != HONE_OK) return st;
    }
    return HONE_OK;
}

static hone_status own_metrics(experiment *x, bench *b, const hn_measured *m)
{
    const hn_measured_metric *wall = hn_measured_find(m, "wall"), *cpu = hn_measured_find(m, "cpu");
    const double working = 0.1; /* a command that sleeps is not judged by what it computes */
    hone_status st = HONE_OK;
    if (b->t->number) return add_line(x, b, hn_measured_find(m, "number"), false);
    if (!b->t->id) {
        st = add_line(x, b, wall, false);
        return st == HONE_OK && cpu->value > working * wall->value ? add_line(x, b, cpu, true) : st;
    }
    const hn_bench_entry *e = hn_bench_find(b->t->id);
    if (e && e->plain) {
        const hn_measured_metric *d = hn_measured_find(m, "decode"), *p = hn_measured_find(m, "prefill");
        if (d) st = add_line(x, b, d, false);
        if (p && st == HONE_OK) st = add_line(x, b, p, false);
        return d || p ? st : HN_FAIL(x->err, HONE_E_ARG, "neither prompt nor generation to measure (-p, -n)");
    }
    for (int i = 0; i < m->n && st == HONE_OK; i++)
        if (!of_process(m->m[i].name)) st = add_line(x, b, &m->m[i], false);
    return st;
}

/* Warms both sides up, finds what is measured and what it costs. */
static hone_status first_runs(experiment *x, bench *b)
{
    hn_measured m;
    uint64_t start = hn_clock_ns();
    hone_status st = HONE_OK;
    b->cost = INFINITY;
    for (int i = 0; i < 6 && st == HONE_OK; i++) { /* b, a; what is short again, to see it warm */
        uint64_t t = hn_clock_ns();
        if (i >= 2 && (double)(t - start) * 1e-9 > 1) break;
        st = measure(&m, x, b, i % 2 ? x->p->a : x->p->b);
        b->cost = fmin(b->cost, (double)(hn_clock_ns() - t) * 1e-9);
    }
    if (st != HONE_OK) return st;
    st = x->p->metrics ? named_metrics(x, b, &m) : own_metrics(x, b, &m);
    if (st != HONE_OK) return st;
    double k = x->p->runs ? x->p->runs : ceil((b->resident ? 0.25 * most_kernel_s : first_round_s) / b->cost);
    b->k = k < 1 ? 1 : x->p->runs ? (int)k : k > 8 ? 8 : (int)k;
    for (int j = 0; j < b->n_line; j++) {
        hn_ab_line *l = &b->line[j];
        double eps = x->p->margin > 0 ? x->p->margin : b->t->id && strncmp(b->t->id, "kern.", 5) == 0 ? 0.03 : 0.02;
        l->r = (hn_ab_result){ .wanted = eps, .margin = eps, .ratio = NAN, .ci = { NAN, NAN }, .ci95 = { NAN, NAN } };
    }
    return HONE_OK;
}

/* ---- how many runs a round needs ---------------------------------------------------------------------- */

/* How fine the first look will be, from a few rounds of A against itself: half of the 95 % interval of a median of as
 * many rounds, 1.96 · 1.2533 σ / √rounds, with σ = 1.4826 · the median distance of a round from 1 (both of Gauss's
 * distribution; what has heavier tails is only tried out for longer). Of the summaries the one that promises most. */
static hone_status promise(experiment *x, bench *b, const series *s, double *worst)
{
    hn_ab_round *r = calloc(s->n + 1, sizeof *r);
    double *logs = calloc(s->n + 1, sizeof *logs);
    hone_status st = r && logs ? HONE_OK : HN_FAIL(x->err, HONE_E_NOMEM, "rounds of a trial");
    *worst = 0;
    for (int j = 0; j < b->n_line && st == HONE_OK; j++) {
        hn_ab_line *l = &b->line[j];
        double least = INFINITY;
        for (int w = HN_AB_LEAST; w <= HN_AB_MEAN && st == HONE_OK; w++) {
            if (x->p->within != HN_AB_AUTO ? w != (int)x->p->within
                                           : w == HN_AB_MEAN || (s->k == 1 && w != HN_AB_MEDIAN))
                continue;
            hn_stats of;
            rounds_of(r, s, j, (hn_ab_within)w, l->higher);
            size_t n = hn_ab_logs(logs, r, s->n, l->higher, x->err);
            for (size_t i = 0; i < n; i++) logs[i] = fabs(logs[i]);
            st = hn_stats_of(&of, logs, n, x->err);
            if (st != HONE_OK || !(of.median < least)) continue;
            least = of.median;
            l->within = (hn_ab_within)w;
        }
        double half = 1.96 * 1.2533 * 1.4826 * least / sqrt((double)x->rounds);
        if (!l->beside) *worst = fmax(*worst, half / l->r.wanted);
    }
    free(r);
    free(logs);
    return st;
}

static bool may_grow(const experiment *x, const bench *b, int k)
{
    return !x->p->runs && 2 * k <= HN_AB_MAX_RUNS && 4 * k * b->cost <= (b->resident ? most_kernel_s : most_round_s);
}

static void say_trial(const experiment *x, size_t done)
{
    hn_ab_progress at = { .look = -1, .done = done, .total = HN_AB_MIN_ROUNDS, .left_s = NAN, .most_s = NAN };
    if (x->p->progress) x->p->progress(x->p->progress_arg, &at);
}

/* How many runs a round needs, and which summary of them is the steadiest: from A alone, never from B's numbers. One
 * run that may not become more leaves nothing to find out. */
static hone_status trial(experiment *x, bench *b)
{
    if (b->k == 1 && !may_grow(x, b, 1)) return HONE_OK;
    hn_side *const sides[] = { x->p->a, b->copy ? b->copy : x->p->a };
    series s = { .k = b->k, .n_metric = b->n_line, .n_side = 2 };
    uint64_t start = hn_clock_ns(), index = 0;
    double worst = INFINITY;
    hone_status st = HONE_OK;
    while (st == HONE_OK && s.n - s.voided < HN_AB_MIN_ROUNDS) {
        say_trial(x, s.n - s.voided);
        st = add_round(x, b, &s, sides, 1000000 + index++, HN_AB_MIN_ROUNDS);
        if (st != HONE_OK || s.n - s.voided < HN_AB_MIN_ROUNDS) continue;
        st = promise(x, b, &s, &worst);
        bool late = (double)(hn_clock_ns() - start) * 1e-9 > most_trial_s;
        if (st != HONE_OK || worst <= fine || !may_grow(x, b, s.k) || late) break;
        if ((s.n - s.voided) % 2) /* whole blocks are merged */
            st = add_round(x, b, &s, sides, 1000000 + index++, HN_AB_MIN_ROUNDS);
        series more;
        if (st == HONE_OK && !series_merge(&more, &s, 2)) st = HN_FAIL(x->err, HONE_E_NOMEM, "rounds of a trial");
        if (st != HONE_OK) break;
        series_free(&s);
        s = more;
    }
    b->k = s.k;
    if (s.k > 1 && !x->p->runs && x->p->within == HN_AB_AUTO && !b->resident)
        b->times = (size_t)s.k, b->k = 1; /* whether so many make one is decided by the values of all rounds */
    series_free(&s);
    return st;
}

/* ---- looks --------------------------------------------------------------------------------------------- */

/* Logarithms of values of A a few rounds apart: how two sides differ that are the same; [*n], sorted. NULL: no
 * memory. */
static double *self_differences(size_t *n, const series *s, int metric, hn_ab_within w, bool higher)
{
    enum { NEAR = 8 };
    double *v = calloc(s->n + 1, sizeof *v), *d = calloc(2 * s->n * NEAR + 1, sizeof *d);
    size_t n_v = 0;
    *n = 0;
    for (size_t i = 0; v && d && i < s->n; i++)
        if (!s->info[i].voided) v[n_v++] = log(summary(values(s, i, metric, 0), s->k, w, higher));
    for (size_t i = 0; v && d && i < n_v; i++)
        for (size_t o = i + 1; o < n_v && o <= i + NEAR; o++) {
            d[(*n)++] = v[i] - v[o];
            d[(*n)++] = v[o] - v[i];
        }
    free(v);
    if (d) qsort(d, *n, sizeof *d, hn_ascending);
    return d;
}

/* Runs of one side that were disturbed otherwise than those of the other say nothing of either. How far apart two sides
 * are then is seen of A alone; what is looked for is a difference of two and a half margins. Data that stay have a
 * margin of their own. */
static void choose_near(hn_ab_line *l, const series *s, int j)
{
    const double shift = 1.5 * log1p(l->r.wanted);
    size_t n = 0;
    double *d = s->n_side > 2 || !(l->r.wanted > 0) ? NULL : self_differences(&n, s, j, l->within, l->higher);
    l->r.near = d ? hn_ab_near(d, n, shift) : 0;
    free(d);
}

static void refresh_from(hn_ab_line *l, const series *s, int j, const series *taken)
{
    hn_ab_round *r = malloc((s->n + 1) * sizeof *r);
    double *v = malloc((s->n + 1) * 2 * (size_t)s->k * sizeof *v), *self = calloc(s->n + 1, sizeof *self);
    if (!r || !v || !self) { /* what was there stays */
        free(r);
        free(v);
        free(self);
        return;
    }
    free(l->rounds);
    free(l->runs);
    l->rounds = r;
    l->runs = v;
    rounds_of(l->rounds, s, j, l->within, l->higher);
    choose_near(l, s, j);
    for (size_t i = 0; i < s->n; i++)
        memcpy(v + 2 * i * (size_t)s->k, values(s, i, j, 0), 2 * (size_t)s->k * sizeof *v);
    l->aa_n = hn_ab_self_logs(self, l->rounds, s->n, l->higher);
    l->aa_half_width = hn_ab_half_width(self, l->aa_n);
    /* Fresh processes of one side are alike but for chance, which the interval has. Data that stay lie where they
     * lie. */
    if (s->n_side > 2) l->r.margin = fmax(l->r.wanted, hn_ab_bias(self, l->aa_n));
    free(self);
    l->n_rounds = s->n;
    l->n_runs = s->k;
    l->taken = taken->n;
    l->voided = taken->voided;
    l->kept = taken->kept;
}

/* Half of the 95 % interval of the median of a series' rounds, by A alone: of n differences of two sides that are the
 * same a share of 1.96 / sqrt(n) lies within it, and values of A a few rounds apart differ so. NaN: no memory, no
 * rounds. */
static double width_of(const series *s, int metric, hn_ab_within w, bool higher)
{
    size_t n_d = 0, n = s->n - s->voided;
    double *d = self_differences(&n_d, s, metric, w, higher), half = NAN;
    if (n_d) { /* each is there with both signs: the share within half is in the middle */
        const double share = fmin(1.96 / sqrt((double)n), 1);
        half = d[(size_t)(0.5 * (1 + share) * (double)(n_d - 1))];
    }
    free(d);
    return half;
}

/* Where most runs are disturbed, a core being somebody else's, they fall into modes, and the best of a few is of this
 * mode now and of that one then; of single runs side by side many are of one mode, and these tell the sides apart.
 * Where few are disturbed the best of a few is steadier. What A says of itself decides, at each look. */
static void refresh_line(hn_ab_line *l, const bench *b, int j)
{
    series few;
    if (!b->times || !series_merge(&few, &b->ab, b->times)) {
        refresh_from(l, &b->ab, j, &b->ab);
        return;
    }
    double single = width_of(&b->ab, j, HN_AB_MEDIAN, l->higher), best = width_of(&few, j, HN_AB_LEAST, l->higher),
           median = width_of(&few, j, HN_AB_MEDIAN, l->higher);
    l->within = best < single && best <= median ? HN_AB_LEAST : HN_AB_MEDIAN;
    refresh_from(l, best < single || median < single ? &few : &b->ab, j, &b->ab);
    series_free(&few);
}

/* Until the end of a look. A bench that was not begun may have more. */
static size_t rounds_at(const experiment *x, const bench *b, int look)
{
    return hn_ab_rounds_at(x->rounds, look) * (b->times ? b->times : 1);
}

/* Seconds until this look is over, and until the last would be. A bench not begun is taken to cost what this one
 * does. */
static void say_look(const experiment *x, const bench *now, int look)
{
    hn_ab_progress at = { .look = look, .done = now->ab.n - now->ab.voided, .total = rounds_at(x, now, look) };
    double here = now->ab.n ? now->ab.seconds / (double)now->ab.n : 2 * now->k * now->cost;
    if (!x->p->progress) return;
    for (size_t i = 0; i < x->p->n_targets; i++) {
        const bench *b = &x->bench[i];
        size_t have = b->ab.n - b->ab.voided, wanted = rounds_at(x, b, look), last = rounds_at(x, b, HN_AB_LOOKS - 1);
        double each = b->ab.n ? b->ab.seconds / (double)b->ab.n : here;
        if (have < wanted && b >= now) at.left_s += each * (double)(wanted - have);
        at.most_s += each * (double)(last - (have < last ? have : last));
    }
    x->p->progress(x->p->progress_arg, &at);
}

static hone_status look_at(experiment *x, bench *b, int look)
{
    hn_side *const sides[] = { x->p->a, x->p->b, b->copy };
    if (b->ab.k == 0) b->ab = (series){ .k = b->k, .n_metric = b->n_line, .n_side = b->copy ? 3 : 2 };
    size_t wanted = rounds_at(x, b, look);
    hone_status st = HONE_OK;
    while (st == HONE_OK && b->ab.n - b->ab.voided < wanted) {
        say_look(x, b, look);
        st = add_round(x, b, &b->ab, sides, b->ab.n, wanted);
    }
    return st;
}

static double median_of(const hn_ab_line *l, bool second)
{
    size_t n = 0;
    double *v = calloc(l->n_rounds + 1, sizeof *v), m = NAN;
    for (size_t i = 0; v && i < l->n_rounds; i++)
        if (!l->rounds[i].voided) v[n++] = second ? l->rounds[i].b : l->rounds[i].a;
    hn_stats s;
    if (v && n && hn_stats_of(&s, v, n, NULL) == HONE_OK) m = s.median;
    free(v);
    return m;
}

/* All metrics judged together. One that had its verdict in an earlier look keeps its rounds. */
static hone_status judge(experiment *x, double alpha)
{
    hn_ab_report *out = x->out;
    hn_ab_result *r = calloc(out->n, sizeof *r);
    double **logs = calloc(out->n, sizeof *logs);
    hone_status st = r && logs ? HONE_OK : HN_FAIL(x->err, HONE_E_NOMEM, "verdicts");
    for (size_t i = 0; i < out->n && st == HONE_OK; i++) {
        hn_ab_line *l = &out->line[i];
        r[i] = l->r;
        logs[i] = calloc(l->n_rounds + 1, sizeof **logs);
        if (!logs[i]) st = HN_FAIL(x->err, HONE_E_NOMEM, "verdicts");
        else r[i].n = hn_ab_logs(logs[i], l->rounds, l->n_rounds, l->higher, x->err);
    }
    if (st == HONE_OK) hn_ab_holm(r, logs, out->n, alpha);
    for (size_t i = 0; i < out->n && st == HONE_OK; i++) {
        out->line[i].r = r[i];
        out->line[i].a = median_of(&out->line[i], false);
        out->line[i].b = median_of(&out->line[i], true);
    }
    for (size_t i = 0; logs && i < out->n; i++) free(logs[i]);
    free(logs);
    free(r);
    return st;
}

/* Sides that answer a bench differently are two programs for two purposes: neither is the better one. */
static void tell_different(const experiment *x)
{
    hn_ab_report *r = x->out;
    bool any = false;
    for (size_t i = 0; i < r->n; i++) {
        hn_ab_verdict *v = &r->line[i].r.verdict;
        const hn_target *t = r->line[i].target;
        bool seen = hn_same_differs(x->same, t);
        if (!seen && !(x->p->different && t->model)) continue;
        if (seen && (i == 0 || t != r->line[i - 1].target))
            note(r, "%s: the sides answer differently: neither is called better", t->id ? t->id : "commands");
        any = any || !r->line[i].beside;
        if (*v == HN_AB_IMPROVED || *v == HN_AB_SAME) *v = HN_AB_DIFFERENT;
    }
    if (any && (r->overall == HN_AB_IMPROVED || r->overall == HN_AB_SAME)) r->overall = HN_AB_DIFFERENT;
}

/* How often hn_same_outside may be called until the last look. */
static int asks_outside(const experiment *x)
{
    int n = 0;
    for (size_t i = 0; i < x->out->n; i++) n += hn_same_tells_time(x->out->line[i].metric);
    return n * (x->p->looks ? x->p->looks : HN_AB_LOOKS);
}

/* A number of a suite that is a time, or a rate: what takes less of it is done sooner. */
static bool is_time(const char *unit)
{
    static const char *const units[] = { "ns", "us", "ms", "s", "TOPS", "x" };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(unit, units[i]) == 0) return true;
    return strchr(unit, '/') != NULL;
}

/* Of a bench of ours, in processes of its own, better by what b says: is there more than its word? *trusted: there is
 * none to be had. Programs from before there were proofs are compared by theirs. */
static bool more_than_words(const experiment *x, const hn_ab_line *l, bool *trusted)
{
    const hn_target *t = l->target;
    const hn_bench_entry *e = t->id ? hn_bench_find(t->id) : NULL;
    bool plain = e && e->plain, memory = strcmp(l->metric, "peak_anon_mb") == 0;
    if (!t->id || hn_sides_resident(x->p->a, x->p->b, t)) return true;
    if (!hn_side_can_ask(x->p->a) && !hn_side_can_ask(x->p->b)) return true;
    *trusted = l->unproved || !hn_same_compared(x->same, t) || (!plain && !is_time(l->unit));
    if (*trusted) return false;
    if (plain && !memory) return true; /* hn_same_outside has it */
    return hn_same_seen(x->same, t, l->metric, l->r.ratio);
}

/* Before b is called faster: was it, seen from outside? What chance may have shown there is left open. */
static hone_status outside(const experiment *x)
{
    hone_status st = HONE_OK;
    int asks = asks_outside(x);
    for (size_t i = 0; i < x->out->n && st == HONE_OK; i++) {
        hn_ab_line *l = &x->out->line[i];
        bool seen = true, trusted = false, moved = false;
        if (l->r.verdict == HN_AB_IMPROVED && !of_process(l->metric))
            st = hn_same_outside(x->same, l->target, l->metric, asks, &seen, &moved, x->err);
        if (st == HONE_OK && seen && l->r.verdict == HN_AB_IMPROVED && !of_process(l->metric))
            seen = more_than_words(x, l, &trusted);
        l->unseen = !seen;
        l->moved = moved;
        l->trusted = trusted;
        if (!seen) l->r.verdict = HN_AB_INCONCLUSIVE;
    }
    return st;
}

static hn_ab_verdict overall(const hn_ab_report *r)
{
    bool regressed = false, improved = false, open = false, alarm = false;
    for (size_t i = 0; i < r->n; i++) {
        hn_ab_verdict v = r->line[i].r.verdict;
        if (r->line[i].beside) alarm = alarm || v == HN_AB_REGRESSED;
        else {
            regressed = regressed || v == HN_AB_REGRESSED;
            improved = improved || v == HN_AB_IMPROVED;
            open = open || v == HN_AB_INCONCLUSIVE;
        }
    }
    if (regressed || (alarm && !improved)) return HN_AB_REGRESSED;
    return open || r->n == 0 ? HN_AB_INCONCLUSIVE : improved ? HN_AB_IMPROVED : HN_AB_SAME;
}

/* Where sides stay in this process, A gets a copy that has data of its own, as B has. */
static hone_status settle(experiment *x, bench *b)
{
    hone_status st = HONE_OK;
    b->resident = hn_sides_resident(x->p->a, x->p->b, b->t);
    if (!b->resident) return HONE_OK;
    if (!b->copy) st = hn_side_open(&b->copy, hn_side_label(x->p->a), &(hn_side_params){ .stop = x->p->stop }, x->err);
    hn_side *const sides[] = { x->p->a, x->p->b, b->copy };
    for (int i = 0; i < 3 && st == HONE_OK; i++) st = hn_side_settle(sides[i], b->t, x->err);
    return st;
}

static hone_status bench_look(experiment *x, bench *b, int look)
{
    hone_status st = settle(x, b);
    if (look == 0) {
        if (st == HONE_OK) st = first_runs(x, b);
        if (st == HONE_OK) st = trial(x, b);
    }
    if (st == HONE_OK) st = look_at(x, b, look);
    for (int j = 0; j < b->n_line; j++) {
        if (b->line[j].r.verdict != HN_AB_INCONCLUSIVE) continue; /* it has been decided with the rounds it had */
        if (b->ab.n) refresh_line(&b->line[j], b, j);
        b->line[j].looks = look + 1;
    }
    hn_side_leave(x->p->a);
    hn_side_leave(x->p->b);
    if (b->copy) hn_side_leave(b->copy);
    return st;
}

static bool bench_open(const bench *b)
{
    for (int j = 0; j < b->n_line; j++)
        if (!b->line[j].beside && b->line[j].r.verdict == HN_AB_INCONCLUSIVE) return true;
    return false;
}

static hone_status looks(experiment *x)
{
    hone_status st = HONE_OK;
    int most = x->p->looks ? x->p->looks : HN_AB_LOOKS;
    for (int look = 0; look < most && st == HONE_OK; look++) {
        for (size_t i = 0; i < x->p->n_targets && st == HONE_OK; i++) {
            bench *b = &x->bench[i];
            if (look > 0 && !bench_open(b)) continue;
            if (look == 0) b->line = x->out->line + x->out->n;
            st = bench_look(x, b, look);
            if (look == 0) x->out->n += (size_t)b->n_line;
        }
        if (st != HONE_OK) break;
        st = judge(x, hn_ab_alpha(x->rounds, look));
        if (st == HONE_OK) st = outside(x);
        x->out->looks = look + 1;
        x->out->overall = overall(x->out);
        if (st == HONE_OK && x->out->overall != HN_AB_INCONCLUSIVE) break;
    }
    return st;
}

/* What the lists of rounds do not show: settings that nobody asked for, disturbances. */
static void tell_benches(const experiment *x)
{
    hn_ab_report *out = x->out;
    for (size_t i = 0; i < x->p->n_targets && x->bench; i++) {
        const char *a = x->bench[i].weights[0], *b = x->bench[i].weights[1];
        if (a[0] && b[0] && strcmp(a, b) != 0)
            note(out, "weights: a reads them %.56s, b %.56s; the same --packed on both sides leaves that out", a, b);
        a = x->bench[i].ran[0], b = x->bench[i].ran[1];
        if (strcmp(a, b) != 0) note(out, "a ran with %.60s; b with %.60s", a, b);
        const series *s = &x->bench[i].ab;
        if (one_sided(s))
            note(out, "only %s processes had pages read from disk in %zu rounds: such rounds count",
                 s->alone[0] > s->alone[1] ? "a's" : "b's", s->alone[s->alone[1] > s->alone[0]]);
    }
}

/* Found among the rounds that tell of the margin, and not by all of them. */
static void tell_near(hn_ab_report *out, const hn_ab_line *l)
{
    const hn_ab_result *r = &l->r;
    const bool worse = r->verdict == HN_AB_REGRESSED, better = r->verdict == HN_AB_IMPROVED;
    if (!(r->near > 0) || (!worse && !better)) return;
    if (worse ? r->ci[1] < 1 - r->margin : r->ci[0] > 1 + r->margin) return;
    note(out,
         "%s: judged by the %zu of %zu rounds whose sides are within %.0f %% of the margin: in the others something "
         "else disturbed one of the two",
         l->metric, r->n_near[better], r->n, 100 * r->near);
}

static void tell_lines(hn_ab_report *out)
{
    for (size_t i = 0; i < out->n; i++) {
        const hn_ab_line *l = &out->line[i];
        if (l->r.margin > l->r.wanted)
            note(out, "%s: a copy of A is %.1f %% off A itself in these rounds: REGRESSED and IMPROVED need more",
                 l->metric, 100 * l->r.margin);
        tell_near(out, l);
        if (l->trusted)
            note(out, "%.80s: better by what b says, and nothing else says so: %s, so it is not called better",
                 l->metric, l->unproved ? "no answer of it is proved" : "it is no time");
        else if (l->moved)
            note(out,
                 "%.60s: better by what b moved into another part of its runs, which takes as much longer: judge that "
                 "too (--metric)",
                 l->metric);
        else if (l->unseen)
            note(out,
                 "%.60s: better by b's own clock, and too little for its processes to be seen to take less time: %s "
                 "would show it",
                 l->metric, hn_same_tells_time(l->metric) ? "longer runs (-p, -n)" : "more rounds (--rounds)");
        if (l->r.verdict == HN_AB_INCONCLUSIVE && !l->unseen && l->aa_half_width > l->r.wanted)
            note(out, "%s: this machine tells it from itself only within %.2g %% now; a quieter one needs fewer rounds",
                 l->metric, 100 * l->aa_half_width);
        if (i > 0 && l->target == out->line[i - 1].target) continue;
        if (l->voided)
            note(out, "%s: %zu of %zu rounds thrown away, both sides, because something else disturbed the machine",
                 l->target->id ? l->target->id : "commands", l->voided, l->taken);
        if (l->kept)
            note(out, "%s: %zu disturbed rounds were kept: there were too many to throw away",
                 l->target->id ? l->target->id : "commands", l->kept);
    }
}

static void tell_all(const experiment *x)
{
    hn_ab_report *out = x->out;
    tell_benches(x);
    tell_lines(out);
    if (out->n_unsaid)
        snprintf(out->note[out->n_notes++], sizeof out->note[0], "and %d more such notes", out->n_unsaid);
}

/* What no bench shows: the command that people start. Asked once, of sides that are not called slower already, where
 * prompts and generations are compared. */
static hone_status front(experiment *x)
{
    char what[200] = "";
    hone_status st = HONE_OK;
    const hn_target *plain = NULL;
    for (size_t i = 0; i < x->p->n_targets && !plain; i++)
        if (hn_side_must_prove(x->p->a, &x->p->targets[i])) plain = &x->p->targets[i];
    if (!plain || x->out->overall == HN_AB_REGRESSED) return HONE_OK;
    st = hn_front_slower(what, sizeof what, (hn_side *const[]){ x->p->a, x->p->b }, plain, x->err);
    if (!what[0]) return st;
    note(x->out, "%.180s", what);
    x->out->overall = HN_AB_REGRESSED;
    return st;
}

hone_status hn_ab_run(hn_ab_report *out, const hn_ab_params *p, hone_error *err)
{
    hone_error own;
    experiment x = { .p = p, .out = out, .rounds = p->rounds ? p->rounds : HN_AB_ROUNDS, .err = err ? err : &own };
    *out = (hn_ab_report){ .seed = p->seed, .first = x.rounds };
    new_name(out->name);
    x.bench = calloc(p->n_targets, sizeof *x.bench);
    out->line = calloc(p->n_targets * HN_AB_METRICS, sizeof *out->line);
    hone_status st = x.bench && out->line ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "the comparison");
    for (size_t i = 0; i < p->n_targets && st == HONE_OK; i++) x.bench[i].t = &p->targets[i];
    if (st == HONE_OK) st = hn_same_new(&x.same, p->a, p->b, p->different, p->allowed, p->seed, err);
    if (st == HONE_OK) st = looks(&x);
    if (st == HONE_OK) st = front(&x);
    if (st == HONE_OK) tell_different(&x);
    if (st == HONE_E_INTERRUPTED || (st != HONE_OK && stopped(&x))) { /* what there is, without a verdict */
        out->interrupted = true;
        st = judge(&x, hn_ab_alpha(x.rounds, out->looks < HN_AB_LOOKS ? out->looks : HN_AB_LOOKS - 1));
        for (size_t i = 0; i < out->n; i++) out->line[i].r.verdict = HN_AB_INCONCLUSIVE; /* nobody looked at it */
        out->overall = HN_AB_INCONCLUSIVE;
        note(out, "interrupted: the rounds measured until then are kept, and decide nothing");
    }
    tell_all(&x);
    for (size_t i = 0; i < p->n_targets && x.bench; i++) {
        series_free(&x.bench[i].ab);
        hn_side_close(x.bench[i].copy);
    }
    free(x.bench);
    hn_same_free(x.same);
    if (st != HONE_OK) hn_ab_report_free(out);
    return st;
}

void hn_ab_report_free(hn_ab_report *r)
{
    for (size_t i = 0; i < r->n && r->line; i++) {
        free(r->line[i].rounds);
        free(r->line[i].runs);
    }
    free(r->line);
    r->line = NULL;
    r->n = 0;
}

/* ---- the record -------------------------------------------------------------------------------------------- */

static json_t *numbers(const double *v, int n)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(a, hn_lab_num(v[i]));
    return a;
}

static json_t *rounds_json(const hn_ab_line *l)
{
    json_t *a = json_array();
    for (size_t i = 0; i < l->n_rounds; i++) {
        const hn_ab_round *r = &l->rounds[i];
        json_t *o = json_pack("{s:s, s:o, s:o, s:b}", "order", r->ba ? "BA" : "AB", "a", hn_lab_num(r->a), "b",
                              hn_lab_num(r->b), "voided", r->voided);
        if (r->a2 > 0) json_object_set_new(o, "a2", hn_lab_num(r->a2));
        if (l->n_runs > 1) {
            json_object_set_new(o, "a_runs", numbers(l->runs + 2 * i * (size_t)l->n_runs, l->n_runs));
            json_object_set_new(o, "b_runs", numbers(l->runs + (2 * i + 1) * (size_t)l->n_runs, l->n_runs));
        }
        json_array_append_new(a, o);
    }
    return a;
}

json_t *hn_ab_record(const hn_ab_report *rep, const hn_ab_line *l, const hn_side *a, const hn_side *b,
                     const hn_environ *env)
{
    char ts[40], id[16];
    json_t *o = json_object(), *args = json_array(), *notes = json_array();
    hn_utc_now(ts, sizeof ts);
    new_name(id);
    for (int i = 0; i < HN_SIDE_ARGS && l->target->args[i]; i++)
        json_array_append_new(args, hn_lab_str(l->target->args[i]));
    for (int i = 0; i < rep->n_notes; i++) json_array_append_new(notes, hn_lab_str(rep->note[i]));
    json_object_set_new(o, "schema", json_string(HN_AB_SCHEMA));
    json_object_set_new(o, "id", hn_lab_str(l->target->id ? l->target->id : "command"));
    json_object_set_new(o, "record", json_string(id));
    json_object_set_new(o, "ts", json_string(ts));
    json_object_set_new(o, "metric", hn_lab_str(l->metric));
    json_object_set_new(o, "unit", hn_lab_str(l->unit));
    json_object_set_new(o, "better", json_string(l->higher ? "higher" : "lower"));
    json_object_set_new(o, "beside", json_boolean(l->beside));
    json_object_set_new(o, "a", hn_side_json(a));
    json_object_set_new(o, "b", hn_side_json(b));
    json_object_set_new(o, "a_median", hn_lab_num(l->a));
    json_object_set_new(o, "b_median", hn_lab_num(l->b));
    json_object_set_new(o, "args", args);
    json_object_set_new(o, "comparison", hn_lab_str(rep->name));
    json_object_set_new(o, "first_rounds", json_integer((json_int_t)rep->first));
    json_object_set_new(o, "seed", json_integer((json_int_t)rep->seed));
    json_object_set_new(o, "within", json_string(hn_ab_within_name(l->within)));
    json_object_set_new(o, "runs", json_integer(l->n_runs));
    json_object_set_new(o, "rounds", rounds_json(l));
    json_object_set_new(o, "looks", json_integer(l->looks));
    json_t *r = hn_ab_result_json(&l->r);
    json_object_update(o, r);
    json_decref(r);
    json_object_set_new(o, "aa_half_width", hn_lab_num(l->aa_half_width));
    json_object_set_new(o, "aa_rounds", json_integer((json_int_t)l->aa_n));
    json_object_set_new(o, "voided", json_integer((json_int_t)l->voided));
    json_object_set_new(o, "kept_disturbed", json_integer((json_int_t)l->kept));
    json_object_set_new(o, "overall", json_string(hn_ab_verdict_name(rep->overall)));
    json_object_set_new(o, "interrupted", json_boolean(rep->interrupted));
    json_object_set_new(o, "notes", notes);
    json_object_set_new(o, "env", hn_environ_json(env));
    return o;
}
