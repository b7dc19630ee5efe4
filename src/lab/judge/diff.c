/* Two files of records, paired. Owns what a partner is and the words for why there is none. */
#include "base/json_tree.h"
#include "lab/judge/diff.h"

#include "lab/judge/baseline.h"
#include "lab/judge/gate.h"
#include "lab/quality/paths.h"
#include "lab/record/history.h"
#include "lab/record/record.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *model_of(json_t *r) { return hn_record_text(json_object_get(r, "model"), "fingerprint"); }

static bool partners(json_t *a, json_t *b)
{
    return strcmp(model_of(a), model_of(b)) == 0 && hn_same_measurement(a, b);
}

/* The newest of list that measured what r did; records of other kinds are none. */
static json_t *partner_of(json_t *r, json_t *list)
{
    for (size_t i = json_array_size(list); i-- > 0;) {
        json_t *x = json_array_get(list, i);
        if (strcmp(hn_record_text(x, "schema"), HN_BENCH_SCHEMA) == 0 && partners(r, x)) return x;
    }
    return NULL;
}

/* ---- why not ----------------------------------------------------------------------------------- */

static void no_partner(char *dst, size_t cap, json_t *r, json_t *list, char other)
{
    json_t *model = NULL, *config = NULL;
    size_t i;
    json_t *x;
    json_array_foreach(list, i, x)
    {
        if (strcmp(hn_record_id(x), hn_record_id(r)) != 0) continue;
        if (strcmp(model_of(x), model_of(r)) != 0) model = x;
        else config = x;
    }
    size_t n = (size_t)snprintf(dst, cap, "no partner in %c: ", other);
    if (config) hn_measurement_differs(dst + n, cap - n, r, config);
    else if (model)
        snprintf(dst + n, cap - n, "it was measured with another model there, %.80s",
                 hn_record_text(json_object_get(model, "model"), "path_name"));
    else snprintf(dst + n, cap - n, "nothing of the kind was measured there");
}

static void not_comparable(char *dst, size_t cap, json_t *a, json_t *b)
{
    const char *x = hn_record_text(a, "quality"), *y = hn_record_text(b, "quality");
    json_t *bad = json_is_false(json_object_get(a, "valid"))   ? a
                  : json_is_false(json_object_get(b, "valid")) ? b
                                                               : NULL;
    char what[200];
    hn_gate_answers_differ(what, sizeof what, a, b);
    if (bad) snprintf(dst, cap, "invalid in %c: %.250s", bad == a ? 'a' : 'b', hn_record_text(bad, "invalid_reason"));
    else if (what[0] && !strstr(what, "very times")) /* the same record in both files is no lie */
        snprintf(dst, cap, "different answers: the timed runs generated otherwise, or from other logits");
    else if (hn_q_same_kind(x, y) && strcmp(x, y) != 0)
        snprintf(dst, cap, "different answers: quality %s and %s%s", x, y,
                 hn_q_same_answers(x, y) ? " (the same ids from other logits)" : "");
}

/* ---- rows ------------------------------------------------------------------------------------------- */

static bool counts(json_t *r, const char *metric, const char *unit)
{
    if (hn_record_is_plain(r)) return strcmp(metric, "decode_tok_s") == 0 || strcmp(metric, "prefill_tok_s") == 0;
    return strchr(unit, '/') || strcmp(unit, "ms") == 0 || strcmp(unit, "us") == 0 || strcmp(unit, "ns") == 0 ||
           strcmp(unit, "s") == 0 || strcmp(unit, "TOPS") == 0;
}

static hone_status compare(hn_diff_row *row, hone_error *err)
{
    double *x = NULL, *y = NULL;
    size_t n, m;
    hn_stats sx, sy;
    hone_status st = hn_record_samples(&x, &n, row->a, row->metric, err);
    if (st == HONE_OK) st = hn_record_samples(&y, &m, row->b, row->metric, err);
    if (st == HONE_OK) st = hn_stats_of(&sx, x, n, err);
    if (st == HONE_OK) st = hn_stats_of(&sy, y, m, err);
    if (st == HONE_OK) {
        row->median_a = sx.median;
        row->median_b = sy.median;
        if (!row->why[0]) st = hn_unpaired_test(&row->test, x, n, y, m, row->higher, HN_BASELINE_MARGIN, 0.95, err);
        if (st == HONE_E_ARG) {
            snprintf(row->why, sizeof row->why, "a number that is not above zero has no ratio");
            st = HONE_OK;
        }
    }
    free(x);
    free(y);
    return st;
}

static hone_status add(hn_diff *d, json_t *a, json_t *b, const char *why, hone_error *err)
{
    json_t *r = a ? a : b;
    const char *metric, *unit;
    bool higher;
    for (void *at = NULL; hn_record_next(r, &at, &metric, &unit, &higher);) {
        double *x;
        size_t n;
        hone_status st = hn_record_samples(&x, &n, r, metric, err);
        if (st != HONE_OK) return st;
        free(x);
        if (n == 0) continue; /* was not measured */
        hn_diff_row *grown = realloc(d->row, (d->n + 1) * sizeof *grown);
        if (!grown) return HN_FAIL(err, HONE_E_NOMEM, "%zu rows", d->n + 1);
        d->row = grown;
        hn_diff_row *row = &d->row[d->n++];
        *row = (hn_diff_row){ .id = hn_record_id(r),
                              .metric = metric,
                              .unit = unit,
                              .a = a,
                              .b = b,
                              .median_a = NAN,
                              .median_b = NAN,
                              .test = { .ratio = NAN, .ci = { NAN, NAN } },
                              .higher = higher,
                              .counts = counts(r, metric, unit) };
        snprintf(row->why, sizeof row->why, "%s", why);
        if (a && b && (st = compare(row, err)) != HONE_OK) return st;
        if (!a || !b) return HONE_OK; /* one line says that it is alone */
    }
    return HONE_OK;
}

hone_status hn_diff_make(hn_diff *out, json_t *a, json_t *b, hone_error *err)
{
    size_t i;
    json_t *r;
    char why[300];
    hone_status st = HONE_OK;
    double sum = 0;
    *out = (hn_diff){ .mean = NAN };
    json_array_foreach(a, i, r)
    {
        if (st != HONE_OK || strcmp(hn_record_text(r, "schema"), HN_BENCH_SCHEMA) != 0 || partner_of(r, a) != r)
            continue;
        json_t *other = partner_of(r, b);
        why[0] = 0;
        if (!other) no_partner(why, sizeof why, r, b, 'b');
        else not_comparable(why, sizeof why, r, other);
        if (other)
            out->other_machine =
                out->other_machine || strcmp(hn_record_text(json_object_get(r, "env"), "hash"),
                                             hn_record_text(json_object_get(other, "env"), "hash")) != 0;
        st = add(out, r, other, why, err);
    }
    json_array_foreach(b, i, r)
    {
        bool bench = strcmp(hn_record_text(r, "schema"), HN_BENCH_SCHEMA) == 0;
        if (st != HONE_OK || !bench || partner_of(r, b) != r || partner_of(r, a)) continue;
        no_partner(why, sizeof why, r, a, 'a');
        st = add(out, NULL, r, why, err);
    }
    for (i = 0; i < out->n && st == HONE_OK; i++) {
        if (!isfinite(out->row[i].test.ratio)) continue;
        out->n_compared++;
        if (!out->row[i].counts) continue;
        sum += log(out->row[i].test.ratio);
        out->n_counted++;
    }
    if (out->n_counted) out->mean = exp(sum / (double)out->n_counted);
    if (st != HONE_OK) hn_diff_free(out);
    return st;
}

void hn_diff_free(hn_diff *d)
{
    free(d->row);
    *d = (hn_diff){ .mean = NAN };
}

json_t *hn_diff_json(const hn_diff *d)
{
    json_t *o = json_object(), *rows = json_array();
    for (size_t i = 0; i < d->n; i++) {
        const hn_diff_row *r = &d->row[i];
        json_t *config = json_object_get(r->a ? r->a : r->b, "config");
        json_t *row = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "id", hn_lab_str(r->id), "metric",
                                hn_lab_str(r->metric), "unit", hn_lab_str(r->unit), "a", hn_lab_num(r->median_a), "b",
                                hn_lab_num(r->median_b), "ratio", hn_lab_num(r->test.ratio), "ci95",
                                isfinite(r->test.ci[0])
                                    ? json_pack("[o, o]", hn_lab_num(r->test.ci[0]), hn_lab_num(r->test.ci[1]))
                                    : json_null(),
                                "counts", r->counts, "why_not", r->why[0] ? hn_lab_str(r->why) : json_null());
        json_object_set(row, "config", config);
        json_array_append_new(rows, row);
    }
    json_object_set_new(o, "rows", rows);
    json_object_set_new(o, "compared", json_integer((json_int_t)d->n_compared));
    json_object_set_new(o, "counted", json_integer((json_int_t)d->n_counted));
    json_object_set_new(o, "geometric_mean", hn_lab_num(d->mean));
    json_object_set_new(o, "same_machine", json_boolean(!d->other_machine));
    return o;
}
