/* The speed net. Owns the two looks and the order of processes; the measured side is inside/net.c, the statistics are
 * compare.c's. */
#include "lab/judge/net_looks.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <stdlib.h>

enum {
    PASSES = 3,  /* of each side in the first look, in turn, type by type */
    LOOKS = 2,   /* careful ones; the second only at what the first left open, with twice the rounds */
    AGAIN = 12,  /* rounds of the first of them, and as many more as the number of points asks for */
    SWEEPS = 4,  /* of a process in these over its points: the least time counts */
    BUNCH = 1024 /* points of a process: its command line has an end */
};

typedef struct point {
    hn_net_point at;
    double us[2], ratio; /* the least of the passes; speed of b over a; NaN: not on both sides */
    char hash[2][20];
    bool changed; /* a side's output is not the same from process to process */
} point;

typedef struct net {
    const hn_net_params *p;
    hn_net_report *out;
    point *pt;
    size_t n;
    uint64_t salt, done, total;
    int sweeps;
    hone_error *err;
} net;

static double margin_of(const hn_net_params *p) { return p->margin > 0 ? p->margin : HN_NET_MARGIN; }

/* Who looks slower than this at first is looked at again. One that is slower by just the margin looks faster than that
 * half of the time: the screen is wider, and the careful looks alone decide. */
double hn_net_screen(const hn_net_params *p) { return 1 - 0.6 * margin_of(p); }

/* ---- a process of one side ------------------------------------------------------------------------- */

/* us [n]: NaN where the side has no such point. */
static hone_status ask(net *x, double *us, point *const *pt, size_t n, int side)
{
    char *words = malloc((n + 1) * HN_NET_POINT), name[HN_NET_POINT];
    json_t *o;
    size_t len = 0;
    if (!words) return HN_FAIL(x->err, HONE_E_NOMEM, "%zu points", n);
    len = (size_t)snprintf(words, HN_NET_POINT, "%d", x->sweeps);
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(words + len, HN_NET_POINT + 1, ",%s", hn_net_name(name, &pt[i]->at));
    hn_side *s = side ? x->p->b : x->p->a;
    hone_status st = hn_side_ask_mode(&o, s, "_net", words, x->p->wanted.cpu, hn_rand64(x->p->seed, x->salt++), x->err);
    free(words);
    if (st != HONE_OK) return st;
    json_t *list = json_object_get(o, "points");
    snprintf(x->out->level[side], sizeof x->out->level[side], "%s", hn_record_text(o, "level"));
    if (json_array_size(list) != n)
        st = HN_FAIL(x->err, HONE_E_FORMAT, "%s: %zu points measured, expected %zu", hn_side_label(s),
                     json_array_size(list), n);
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        json_t *v = json_array_get(list, i);
        const char *hash = hn_record_text(v, "hash");
        us[i] = json_is_object(v) ? json_number_value(json_object_get(v, "us")) : NAN;
        if (json_is_object(v) && !(us[i] > 0 && strlen(hash) == 16))
            st = HN_FAIL(x->err, HONE_E_FORMAT, "%s: a point without time or output", hn_side_label(s));
        if (!(us[i] > 0) || st != HONE_OK) continue;
        pt[i]->changed = pt[i]->changed || (pt[i]->hash[side][0] && strcmp(pt[i]->hash[side], hash) != 0);
        snprintf(pt[i]->hash[side], sizeof pt[i]->hash[side], "%.16s", hash);
    }
    json_decref(o);
    return st;
}

/* One of each side, in the order that the seed draws. */
static hone_status round_of(net *x, double *us[2], point *const *pt, size_t n, uint64_t index)
{
    bool ba = hn_ab_order(x->p->seed, index);
    hone_status st = ask(x, us[ba], pt, n, ba);
    if (st == HONE_OK) st = ask(x, us[!ba], pt, n, !ba);
    x->done += n;
    if (x->p->progress) x->p->progress(x->p->progress_arg, x->done, x->total);
    return st;
}

/* ---- the first look ---------------------------------------------------------------------------------- */

static hone_status look_at_bunch(net *x, point *const *pt, size_t n)
{
    double *us[2] = { calloc(n, sizeof **us), calloc(n, sizeof **us) };
    hone_status st = us[0] && us[1] ? HONE_OK : HN_FAIL(x->err, HONE_E_NOMEM, "%zu points", n);
    for (uint64_t k = 0; k < PASSES && st == HONE_OK; k++) {
        st = round_of(x, us, pt, n, k);
        for (size_t i = 0; i < n && st == HONE_OK; i++)
            for (int s = 0; s < 2; s++) pt[i]->us[s] = k == 0 || us[s][i] < pt[i]->us[s] ? us[s][i] : pt[i]->us[s];
    }
    free(us[0]);
    free(us[1]);
    return st;
}

static int by_ratio(const void *a, const void *b)
{
    double x = (*(point *const *)a)->ratio, y = (*(point *const *)b)->ratio;
    return (x > y) - (x < y);
}

/* order [n]: by speed of b over a, the slowest first; those without at the end. */
static size_t sort_points(net *x, point **order)
{
    size_t n = 0;
    char name[HN_NET_POINT];
    for (size_t i = 0; i < x->n; i++) {
        point *p = &x->pt[i];
        p->ratio = p->us[0] / p->us[1];
        if (!isfinite(p->ratio)) {
            x->out->n_lacking += isfinite(p->us[0]) != isfinite(p->us[1]);
            if (isfinite(p->us[0]) && x->out->n_gone++ == 0)
                snprintf(x->out->gone, sizeof x->out->gone, "%s", hn_net_name(name, &p->at));
            continue;
        }
        order[n++] = p;
        if (!p->changed && strcmp(p->hash[0], p->hash[1]) == 0) continue;
        if (x->out->n_different++ == 0)
            snprintf(x->out->different, sizeof x->out->different, "%s", hn_net_name(name, &p->at));
    }
    qsort(order, n, sizeof(point *), by_ratio);
    x->out->n_points = n;
    x->out->slowest = n ? order[0]->ratio : NAN;
    x->out->median = n ? order[n / 2]->ratio : NAN;
    return n;
}

static hone_status first_look(net *x, point **order)
{
    hone_status st = HONE_OK;
    for (size_t a = 0, b; a < x->n && st == HONE_OK; a = b) {
        for (b = a; b < x->n && b - a < BUNCH && x->pt[b].at.type == x->pt[a].at.type; b++) order[b - a] = &x->pt[b];
        st = look_at_bunch(x, order, b - a);
    }
    return st;
}

/* ---- the careful looks ----------------------------------------------------------------------------------- */

bool hn_net_cleared(const hn_net_line *l)
{
    return l->r.verdict == HN_AB_SAME || l->r.verdict == HN_AB_IMPROVED || l->r.ci[0] >= 1 - l->r.margin;
}

static double median_of(const double *v, size_t n, double *scratch)
{
    hn_stats s;
    memcpy(scratch, v, n * sizeof *v);
    return hn_stats_of(&s, scratch, n, NULL) == HONE_OK ? s.median : NAN;
}

/* Holm needs intervals of high levels, and medians of few rounds have none. */
static size_t rounds_for(size_t m, int look) { return (AGAIN + (size_t)ceil(2 * log2((double)m))) << look; }

/* log [m][rounds], us [2][m][rounds] */
static hone_status add_rounds(net *x, point *const *pt, size_t m, size_t rounds, int look, double *log_of,
                              double *us_of)
{
    double *us[2] = { calloc(m, sizeof **us), calloc(m, sizeof **us) };
    hone_status st = us[0] && us[1] ? HONE_OK : HN_FAIL(x->err, HONE_E_NOMEM, "%zu points", m);
    for (size_t k = 0; k < rounds && st == HONE_OK; k++) {
        st = round_of(x, us, pt, m, ((uint64_t)look + 1) << 16 | k);
        for (size_t i = 0; i < m && st == HONE_OK; i++) {
            if (!(us[0][i] > 0 && us[1][i] > 0)) {
                st = HN_FAIL(x->err, HONE_E_FORMAT, "a point that was measured before is no longer there");
                break;
            }
            log_of[i * rounds + k] = log(us[0][i] / us[1][i]);
            for (size_t s = 0; s < 2; s++) us_of[(s * m + i) * rounds + k] = us[s][i];
        }
    }
    free(us[0]);
    free(us[1]);
    return st;
}

/* The m points of lines at[], with new rounds, judged together with a share of alpha. */
static hone_status look_again(net *x, point *const *pt, hn_net_line *const *at, size_t m, int look)
{
    size_t rounds = rounds_for(m, look);
    double *v = calloc((3 * m + 1) * rounds, sizeof *v), *logs[HN_NET_MOST];
    hn_ab_result r[HN_NET_MOST];
    if (!v) return HN_FAIL(x->err, HONE_E_NOMEM, "%zu points", m);
    x->done = 0;
    x->total = rounds * m;
    x->sweeps = SWEEPS;
    double *us = v + m * rounds, *scratch = us + 2 * m * rounds;
    hone_status st = add_rounds(x, pt, m, rounds, look, v, us);
    for (size_t i = 0; i < m; i++) {
        r[i] = (hn_ab_result){ .n = rounds, .wanted = margin_of(x->p), .margin = margin_of(x->p) };
        logs[i] = v + i * rounds;
    }
    if (st == HONE_OK) hn_ab_holm(r, logs, m, HN_AB_ALPHA / LOOKS);
    for (size_t i = 0; i < m && st == HONE_OK; i++) {
        at[i]->r = r[i];
        at[i]->us_a = median_of(us + i * rounds, rounds, scratch);
        at[i]->us_b = median_of(us + (m + i) * rounds, rounds, scratch);
    }
    x->out->rounds += rounds;
    free(v);
    return st;
}

static hone_status careful_looks(net *x, point *const *pt, size_t m)
{
    hn_net_report *o = x->out;
    hone_status st = HONE_OK;
    o->n_line = m;
    for (size_t i = 0; i < m; i++) {
        o->line[i] = (hn_net_line){ .first = pt[i]->ratio, .r = { .verdict = HN_AB_INCONCLUSIVE } };
        hn_net_name(o->line[i].name, &pt[i]->at);
    }
    for (int look = 0; look < LOOKS && st == HONE_OK; look++) {
        point *open[HN_NET_MOST];
        hn_net_line *at[HN_NET_MOST];
        size_t n = 0;
        for (size_t i = 0; i < m; i++)
            if (look == 0 || (!hn_net_cleared(&o->line[i]) && o->line[i].r.verdict == HN_AB_INCONCLUSIVE)) {
                open[n] = pt[i];
                at[n++] = &o->line[i];
            }
        if (n) st = look_again(x, open, at, n, look);
    }
    for (size_t i = 0; i < m && st == HONE_OK; i++) {
        const hn_net_line *l = &o->line[i];
        if (l->r.verdict == HN_AB_REGRESSED) o->verdict = HN_AB_REGRESSED;
        else if (!hn_net_cleared(l) && o->verdict == HN_AB_SAME) o->verdict = HN_AB_INCONCLUSIVE;
    }
    return st;
}

/* ---- both ---------------------------------------------------------------------------------------------- */

hone_status hn_net_run(hn_net_report *out, const hn_net_params *p, hone_error *err)
{
    net x = { .p = p, .out = out, .err = err, .sweeps = 1 };
    hn_net_point *list;
    *out = (hn_net_report){ .verdict = HN_AB_SAME, .slowest = NAN, .median = NAN };
    hone_status st = hn_net_list(&list, &x.n, &p->wanted, err);
    if (st != HONE_OK) return st;
    x.pt = calloc(x.n + 1, sizeof *x.pt);
    point **order = calloc(x.n + 1, sizeof *order);
    if (!x.pt || !order) st = HN_FAIL(err, HONE_E_NOMEM, "%zu points", x.n);
    for (size_t i = 0; i < x.n && st == HONE_OK; i++) x.pt[i].at = list[i];
    free(list);
    x.total = PASSES * x.n;
    if (st == HONE_OK) st = first_look(&x, order);
    size_t m = 0, n = st == HONE_OK ? sort_points(&x, order) : 0;
    while (m < n && order[m]->ratio < hn_net_screen(p)) m++;
    out->n_slower = m;
    if (m > HN_NET_MOST) m = HN_NET_MOST;
    if (st == HONE_OK && m && (p->different || !out->n_different)) st = careful_looks(&x, order, m);
    /* slower ones that nobody looked at twice, and those that b has no more */
    if ((out->n_slower > m || out->n_gone) && out->verdict == HN_AB_SAME) out->verdict = HN_AB_INCONCLUSIVE;
    if (st == HONE_OK && n == 0)
        st = HN_FAIL(err, HONE_E_FORMAT, "no point is on both sides; expected programs with common kernel types");
    free(x.pt);
    free(order);
    return st;
}

json_t *hn_net_json(const hn_net_report *r, const hn_side *a, const hn_side *b)
{
    json_t *o = json_object(), *lines = json_array();
    for (size_t i = 0; i < r->n_line; i++) {
        const hn_net_line *l = &r->line[i];
        json_t *v = hn_ab_result_json(&l->r);
        json_object_set_new(v, "point", json_string(l->name));
        json_object_set_new(v, "first_ratio", hn_lab_num(l->first));
        json_object_set_new(v, "a_us", hn_lab_num(l->us_a));
        json_object_set_new(v, "b_us", hn_lab_num(l->us_b));
        json_array_append_new(lines, v);
    }
    json_object_set_new(o, "schema", json_string(HN_NET_SCHEMA));
    json_object_set_new(o, "a", hn_side_json(a));
    json_object_set_new(o, "b", hn_side_json(b));
    json_object_set_new(o, "levels", json_pack("[s, s]", r->level[0], r->level[1]));
    json_object_set_new(o, "points", json_integer((json_int_t)r->n_points));
    json_object_set_new(o, "lacking", json_integer((json_int_t)r->n_lacking));
    json_object_set_new(o, "gone", json_integer((json_int_t)r->n_gone));
    json_object_set_new(o, "first_gone", r->n_gone ? json_string(r->gone) : json_null());
    json_object_set_new(o, "different", json_integer((json_int_t)r->n_different));
    json_object_set_new(o, "first_different", r->n_different ? json_string(r->different) : json_null());
    json_object_set_new(o, "slower_at_first", json_integer((json_int_t)r->n_slower));
    json_object_set_new(o, "slowest_ratio", hn_lab_num(r->slowest));
    json_object_set_new(o, "median_ratio", hn_lab_num(r->median));
    json_object_set_new(o, "rounds", json_integer((json_int_t)r->rounds));
    json_object_set_new(o, "again", lines);
    return o;
}
