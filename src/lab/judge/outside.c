/* The rest of processes, then and now. Owns how much of it may be new. */
#include "lab/judge/outside.h"

#include "lab/bench/claims.h"
#include "lab/record/history.h"
#include "lab/stats/stats.h"
#include "base/json_tree.h"

#include <math.h>
#include <stdlib.h>

/* Processes of a record: those of many metrics are its samples, others keep them apart. */
static json_t *processes_of(json_t *record)
{
    return hn_record_is_plain(record) ? json_object_get(record, "samples")
                                      : json_object_get(json_object_get(record, "extra"), "samples");
}

/* Seconds that a process says this metric took; NaN: it is no time. */
static double part_of(json_t *process, const hn_baseline_row *row)
{
    static const char *const gaps[] = { "decode_tok_s", "itl_ms", "steady_tok_s", "sustained_tok_s" };
    double sum = 0;
    size_t i;
    json_t *v;
    if (strcmp(row->metric, "load_ms") == 0) return 1e-3 * hn_json_number_of(process, "load_ms");
    if (strcmp(row->metric, "ttft_ms") == 0 || strcmp(row->metric, "prefill_tok_s") == 0)
        return 1e-3 * hn_json_number_of(process, "ttft_ms");
    json_array_foreach(json_object_get(process, "gaps_ms"), i, v) sum += 1e-3 * json_number_value(v);
    for (i = 0; i < sizeof gaps / sizeof *gaps; i++)
        if (strcmp(row->metric, gaps[i]) == 0) return sum > 0 ? sum : NAN;
    bool time = strcmp(row->unit, "s") == 0 || strcmp(row->unit, "ms") == 0 || strstr(row->unit, "tok/s");
    double all = hn_claims_told_s(process);
    return !*row->metric && time && all > 0 ? all : NAN;
}

typedef struct times {
    double *rest, *part, *others; /* [n]; others: what it tells of other parts */
    size_t n, cap;
} times;

static hone_status take(times *t, json_t *record, const hn_baseline_row *row, hone_error *err)
{
    const double least = 1e-6; /* ratios are of what is above zero */
    json_t *all = processes_of(record), *p;
    size_t i, cap = t->n + json_array_size(all) + 1;
    double *rest = realloc(t->rest, cap * sizeof *rest), *part = rest ? realloc(t->part, cap * sizeof *part) : NULL,
           *others = part ? realloc(t->others, cap * sizeof *others) : NULL;
    if (rest) t->rest = rest;
    if (part) t->part = part;
    if (others) t->others = others;
    if (!others) return HN_FAIL(err, HONE_E_NOMEM, "times of %zu processes", cap);
    json_array_foreach(all, i, p)
    {
        double seen = hn_json_number_of(p, "seen_s"), of = part_of(p, row);
        if (!isfinite(seen) || !isfinite(of)) continue;
        t->rest[t->n] = fmax(seen - hn_claims_told_s(p), least);
        t->others[t->n] = fmax(hn_claims_told_s(p) - of, least);
        t->part[t->n++] = of;
    }
    return HONE_OK;
}

/* Of a gain of a part other parts lost most again; that they take longer at all is beyond doubt: it was moved. */
static hone_status moved(hn_baseline_row *row, const times *was, const times *is, double gain_s, hone_error *err)
{
    const double level = 0.99, most = 0.5;
    hn_unpaired t;
    hn_stats others;
    hone_status st = hn_stats_of(&others, was->others, was->n, err);
    if (st == HONE_OK)
        st = hn_unpaired_test(&t, was->others, was->n, is->others, is->n, false, row->margin, level, err);
    if (st != HONE_OK || !isfinite(t.ci[1])) return st == HONE_E_ARG ? HONE_OK : st;
    const double grown_s = (1 / t.ratio - 1) * others.median;
    if (!(t.ci[1] < 1 && grown_s > most * gain_s)) return HONE_OK;
    row->moved_ms = 1e3 * grown_s;
    row->verdict = HN_AB_INCONCLUSIVE;
    return HONE_OK;
}

/* Of a row that is better: the rest may not have grown by most of the gain, as far as anybody can tell. Of one that is
 * the same: it has not grown by more than what would be called a change, and some for what nobody times. */
static hone_status judge(hn_baseline_row *row, const times *was, const times *is, hone_error *err)
{
    const double level = 0.99, most = 0.6, slack_s = 0.001, slack_share = 0.1;
    hn_unpaired t;
    hn_stats rest, before, after;
    hone_status st = hn_stats_of(&rest, was->rest, was->n, err);
    if (st == HONE_OK) st = hn_stats_of(&before, was->part, was->n, err);
    if (st == HONE_OK) st = hn_stats_of(&after, is->part, is->n, err);
    if (st == HONE_OK) st = hn_unpaired_test(&t, was->rest, was->n, is->rest, is->n, false, row->margin, level, err);
    if (st != HONE_OK || !isfinite(t.ci[0])) return st == HONE_E_ARG ? HONE_OK : st;
    double least_s = (1 / t.ci[1] - 1) * rest.median, most_s = (1 / t.ci[0] - 1) * rest.median;
    bool hidden = row->verdict == HN_AB_IMPROVED
                      ? most_s > most * (before.median - after.median)
                      : least_s > row->margin * before.median + slack_s + slack_share * rest.median;
    if (!hidden && row->verdict == HN_AB_IMPROVED) return moved(row, was, is, before.median - after.median, err);
    if (!hidden) return HONE_OK;
    row->hidden_ms = 1e3 * (1 / t.ratio - 1) * rest.median;
    row->verdict = HN_AB_INCONCLUSIVE;
    return HONE_OK;
}

hone_status hn_outside_look(hn_baseline_row *rows, size_t n, json_t *now, hone_error *err)
{
    hone_status st = HONE_OK;
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        hn_baseline_row *row = &rows[i];
        times was = { 0 }, is = { 0 };
        size_t k;
        json_t *r;
        if (row->verdict != HN_AB_IMPROVED && row->verdict != HN_AB_SAME) continue;
        st = take(&was, row->before, row, err);
        json_array_foreach(now, k, r) if (st == HONE_OK && hn_same_measurement(row->before, r)) st =
            take(&is, r, row, err);
        if (st == HONE_OK && was.n && is.n) st = judge(row, &was, &is, err);
        free(was.rest), free(was.part), free(was.others);
        free(is.rest), free(is.part), free(is.others);
    }
    return st;
}
