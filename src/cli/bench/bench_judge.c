/* What a result means beside others: the last comparable run in the same file, and what was required of it. Owns the
 * words; the tests are lab's. */
#include "cli/bench/bench_command.h"
#include "lab/bench/target.h"
#include "lab/judge/baseline.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <stdlib.h>

/* ---- the last comparable run -------------------------------------------------------------------------- */

/* *last: the newest record of the same measurement on the same machine that is not invalid; NULL: none. Borrowed.
 * False: no memory. */
static bool last_of(json_t **last, json_t *records, json_t *record)
{
    char *key = hn_record_key(record, true);
    bool read = key != NULL;
    json_t *r;
    size_t i;
    *last = NULL;
    json_array_foreach(records, i, r)
    {
        if (!read || json_is_false(json_object_get(r, "valid"))) continue;
        char *k = hn_record_key(r, true);
        read = k != NULL;
        if (k && strcmp(k, key) == 0) *last = r;
        free(k);
    }
    free(key);
    return read;
}

/* "decode 44.1 -> 41.2 tok/s, 7 % slower: REGRESSED". */
static void print_row(const hn_baseline_row *r)
{
    char a[32], b[32], change[64] = "";
    const char *metric = *r->metric ? r->metric : r->id;
    double off = 100 * (1 / r->test.ratio - 1);
    hn_digits(a, sizeof a, r->median_before, r->half_before);
    hn_digits(b, sizeof b, r->median_after, r->half_after);
    if (isfinite(r->test.ci[0]))
        snprintf(change, sizeof change, "  %.2g to %.2g times as %s", r->test.ci[0], r->test.ci[1],
                 strstr(metric, "_mb") || strcmp(r->unit, "MB") == 0 ? "small" : "fast");
    hn_out_printf("         %-18s %10s -> %10s %-6s%s  %s%s\n", metric, a, b, r->unit, change,
                  hn_ab_verdict_name(r->verdict),
                  r->verdict == HN_AB_INCONCLUSIVE && fabs(off) > 10 ? ": look again" : "");
}

static void print_rows(const hn_baseline_row *rows, size_t n)
{
    enum { ENOUGH = 6 };
    bool few = false, open = false;
    for (size_t i = 0; i < n; i++) {
        const hn_baseline_row *r = &rows[i];
        if (!r->gated || !r->after) continue;
        bool too_few = r->test.n_old < ENOUGH || r->test.n_new < ENOUGH;
        few = few || too_few;
        if (too_few) continue;
        open = open || r->verdict == HN_AB_INCONCLUSIVE;
        print_row(r);
    }
    if (few)
        hn_out_printf("         too few samples to say (6 on both sides: -r 6); hone lab ab COMMIT this tells it for "
                      "sure\n");
    else if (open) hn_out_printf("         what is open: more samples (-r), or hone lab ab COMMIT this\n");
}

/* Of an entry, behind its row: one line, the first metric's. */
static void print_brief(const hn_baseline_row *r, const char *ts)
{
    if (!isfinite(r->test.ci[0])) hn_out_printf("    last %s: too few samples to say\n", ts);
    else
        hn_out_printf("    last %s: %.2g to %.2g times as fast, %s\n", ts, r->test.ci[0], r->test.ci[1],
                      hn_ab_verdict_name(r->verdict));
}

static void print_last(json_t *last, json_t *record, const hn_baseline_row *rows, size_t n)
{
    const char *title = hn_record_text(last, "title"), *change = hn_record_text(last, "change"),
               *was = hn_record_text(last, "quality"), *is = hn_record_text(record, "quality");
    hn_out_printf("last     %s%s%s%s%s: another time, so 10 %% do not count\n", hn_record_text(last, "ts"),
                  *title ? ", " : "", HN_ESC(title, strlen(title)), *change ? ", " : "",
                  HN_ESC(change, strlen(change)));
    if (*was && *is && strcmp(was, is) != 0)
        hn_out_printf("         ANOTHER QUALITY HASH: it was %s\n", HN_ESC(was, strlen(was)));
    print_rows(rows, n);
}

hone_status hn_bench_print_last(json_t *records, json_t *record, bool brief, hone_error *err)
{
    const hn_baseline_rule rule = { .alpha = HN_AB_ALPHA };
    json_t *last;
    hn_baseline_row *rows = NULL;
    size_t n = 0;
    if (!json_array_size(records) || json_is_false(json_object_get(record, "valid"))) return HONE_OK;
    if (!last_of(&last, records, record)) return HN_FAIL(err, HONE_E_NOMEM, "keys of records");
    if (!last) return HONE_OK;

    json_t *before = json_pack("{s:[O]}", "records", last), *now = json_pack("[O]", record);
    hone_status st = before && now ? hn_baseline_compare(&rows, &n, before, now, &rule, err)
                                   : HN_FAIL(err, HONE_E_NOMEM, "two results");
    if (st == HONE_OK && !brief) print_last(last, record, rows, n);
    else if (st == HONE_OK && n && rows[0].after) print_brief(&rows[0], hn_record_text(last, "ts"));
    free(rows);
    json_decref(before);
    json_decref(now);
    return st;
}

/* ---- what was required ------------------------------------------------------------------------------------ */

static bool is_listed(const char *name, const json_t *ids)
{
    size_t i;
    json_t *id;
    bool plain = false;
    json_array_foreach(ids, i, id)
    {
        if (strcmp(json_string_value(id), name) == 0) return true;
        plain = plain || strcmp(json_string_value(id), hn_bench_plain()->id) == 0;
    }
    for (const hn_plain_metric *m = hn_plain_metrics; m->key && plain; m++)
        if (strcmp(m->key, name) == 0) return true;
    return false;
}

static int unknown(const hn_cli *cli, const char *name, const json_t *ids)
{
    char list[900] = "";
    size_t i, n = 0;
    json_t *id;
    json_array_foreach(ids, i, id)
    {
        const char *word = json_string_value(id);
        bool plain = strcmp(word, hn_bench_plain()->id) == 0;
        if (!plain && n + 80 < sizeof list)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", word);
        for (const hn_plain_metric *m = hn_plain_metrics; plain && m->key && n + 80 < sizeof list; m++)
            n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", m->key);
    }
    return hn_cli_usage(cli, "--require %s: nothing measured here is called so; there are %s",
                        HN_ESC(name, strlen(name)), list);
}

int hn_bench_check_required(const hn_cli *cli, const json_t *ids)
{
    for (size_t i = 0; i < hn_opts_count(cli->opts, "require"); i++) {
        hn_requirement r;
        hone_error err;
        if (hn_requirement_parse(&r, hn_opts_nth(cli->opts, "require", i), &err) != HONE_OK)
            return hn_cli_usage(cli, "%s", err.message);
        if (!is_listed(hn_metric_full_name(r.name), ids)) return unknown(cli, r.name, ids);
    }
    return 0;
}

/* One requirement against one record; *n counts those that it speaks of. */
static int hold(const hn_requirement *r, json_t *record, size_t *n)
{
    const char *name = hn_metric_full_name(r->name), *id = hn_record_id(record);
    bool own = strcmp(id, name) == 0;
    json_t *stats = hn_record_stats(record, own ? "" : name);
    char value[32], low[32], high[32];
    if (!stats) return 0;
    ++*n;
    double median = hn_record_number(stats, "median");
    json_t *ci = json_object_get(stats, "ci95");
    bool known = json_array_size(ci) == 2;
    double lo = known ? json_number_value(json_array_get(ci, 0)) : hn_record_number(stats, "min"),
           hi = known ? json_number_value(json_array_get(ci, 1)) : hn_record_number(stats, "max");
    hn_digits(value, sizeof value, median, 0.5 * (hi - lo));
    hn_digits(low, sizeof low, lo, 0.5 * (hi - lo));
    hn_digits(high, sizeof high, hi, 0.5 * (hi - lo));
    if (!hn_requirement_met(r, median))
        return hn_cli_error(HN_EXIT_REGRESSION, "required %s %s %g, measured %s (%s to %s)", r->name, r->op, r->limit,
                            value, low, high);
    if (!hn_requirement_met(r, lo) || !hn_requirement_met(r, hi))
        hn_cli_error(0, "required %s %s %g: met by the median, %s, but not by all of %s to %s", r->name, r->op,
                     r->limit, value, low, high);
    return 0;
}

/* Nothing was measured that it speaks of: nobody knows whether it holds. */
static int not_measured(const hn_requirement *r, const json_t *absent)
{
    const char *name = hn_metric_full_name(r->name), *why = "no record has it";
    size_t i;
    json_t *one;
    json_array_foreach(absent, i, one) if (strcmp(hn_record_text(one, "id"), name) == 0) why =
        hn_record_text(one, "reason");
    return hn_cli_error(HN_EXIT_FAILURE, "required %s %s %g, but it was not measured: %s", r->name, r->op, r->limit,
                        HN_ESC(why, strlen(why)));
}

int hn_bench_require(const hn_cli *cli, json_t *records, const json_t *absent)
{
    int rc = 0, missing = 0;
    for (size_t i = 0; i < hn_opts_count(cli->opts, "require"); i++) {
        hn_requirement r;
        hone_error err;
        size_t k, n = 0;
        json_t *record;
        if (hn_requirement_parse(&r, hn_opts_nth(cli->opts, "require", i), &err) != HONE_OK)
            continue; /* it was checked */
        json_array_foreach(records, k, record)
        {
            int code = hold(&r, record, &n);
            if (code) rc = code;
        }
        if (!n) missing = not_measured(&r, absent);
    }
    return rc ? rc : missing;
}
