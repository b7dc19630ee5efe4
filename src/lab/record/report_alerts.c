/* What needs attention in a report: invalid results, changed answers, regressions, doubts, skipped lines. Owns what is
 * called out and in which order; refuses to know how anything looks. */
#define _GNU_SOURCE
#include "lab/record/report_data.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/stats/stats.h"

#include <stdarg.h>
#include <stdlib.h>

static bool alert(hn_report *r, int kind, json_t *record, char *what, char *text)
{
    bool ok = what && text;
    if (ok && r->n_alerts == r->cap_alerts) {
        size_t cap = r->cap_alerts ? 2 * r->cap_alerts : 16;
        hn_rep_alert *more = realloc(r->alerts, cap * sizeof *more);
        if ((ok = more != NULL)) {
            r->alerts = more;
            r->cap_alerts = cap;
        }
    }
    if (!ok) {
        free(what);
        free(text);
        return false;
    }
    r->alerts[r->n_alerts++] = (hn_rep_alert){ kind, what, text, hn_record_text(record, "ts"), record };
    r->n_of[kind]++;
    return true;
}

/* By kind; of one kind in the order in which they were found. */
static bool sort_alerts(hn_report *r)
{
    hn_rep_alert *sorted = malloc((r->n_alerts + 1) * sizeof *sorted);
    size_t n = 0;
    if (!sorted) return false;
    for (int kind = 0; kind < HN_REP_ALERTS; kind++)
        for (size_t i = 0; i < r->n_alerts; i++)
            if (r->alerts[i].kind == kind) sorted[n++] = r->alerts[i];
    free(r->alerts);
    r->alerts = sorted;
    r->cap_alerts = r->n_alerts + 1;
    return true;
}

char *hn_rep_text_of(const char *fmt, ...)
{
    char *t;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&t, fmt, ap) < 0) t = NULL;
    va_end(ap);
    return t;
}

static bool alert_invalid(hn_report *r)
{
    for (size_t i = json_array_size(r->bench); i-- > 0;) {
        json_t *o = json_array_get(r->bench, i);
        if (!json_is_false(json_object_get(o, "valid"))) continue;
        char *key = hn_record_key(o, true);
        const hn_rep_row *row = key ? hn_rep_row_of(r, key) : NULL;
        bool again = row && !json_is_false(json_object_get(row->record, "valid"));
        const char *label = key ? hn_rep_label_of(r, key) : "", *why = hn_record_text(o, "invalid_reason");
        bool ok = alert(r, HN_REP_INVALID, o, hn_rep_text_of("%s%s%s", hn_record_id(o), *label ? ", " : "", label),
                        hn_rep_text_of("%s%s", *why ? why : "no reason given",
                                       again ? " (measured again since, not invalid)" : ""));
        free(key);
        if (!ok) return false;
    }
    return true;
}

/* The first half of a hash stands for the answers, the second for the bits of the numbers behind them. */
static const char *quality_change(const char *before, const char *now)
{
    const char *a = strrchr(before, '-'), *b = strrchr(now, '-');
    return a && b && a - before == b - now && strncmp(before, now, (size_t)(a - before)) == 0
               ? "the numbers moved, no answer changed"
               : "answers changed";
}

/* The answers of one model with one cache, one tokenizer and the same adapters, where they changed from one record to
 * the next. */
static bool alert_answers(hn_report *r)
{
    hn_keys keys = { 0 };
    size_t i, k;
    json_t *o;
    bool ok, fresh;
    const char **last = calloc(json_array_size(r->bench) + 1, sizeof *last);
    ok = last != NULL;
    json_array_foreach(r->bench, i, o)
    {
        const char *q = hn_record_text(o, "quality"), *kv = hn_record_text(json_object_get(o, "config"), "kv");
        json_t *m = json_object_get(o, "model");
        if (!*q || !ok) continue;
        json_t *with = json_object_get(json_object_get(o, "config"), "adapters");
        char *adapters = json_is_array(with) ? hn_json_text(with, JSON_COMPACT | JSON_SORT_KEYS) : strdup("");
        char *key = hn_rep_text_of("%s|%s|%s|%s|%s|%.*s", hn_record_text(m, "fingerprint"), hn_record_text(m, "sha256"),
                                   kv, hn_record_text(json_object_get(o, "config"), "pre"), adapters ? adapters : "",
                                   (int)strcspn(q, "-"), q); /* q2 and q2q are hashes of other things */
        free(adapters);
        ok = key && hn_keys_add(&keys, key, &k, &fresh);
        free(key);
        if (!ok) break;
        if (!fresh && strcmp(last[k], q) != 0)
            ok = alert(r, HN_REP_QUALITY, o, hn_rep_text_of("%s, KV %s", hn_rep_model_name(o), kv),
                       hn_rep_text_of("%s: %s \xE2\x86\x92 %s", quality_change(last[k], q), last[k], q));
        last[k] = q;
    }
    hn_keys_free(&keys);
    free(last);
    return ok;
}

static bool alert_quality(hn_report *r)
{
    size_t i;
    json_t *o;
    bool ok = alert_answers(r);
    json_array_foreach(r->ab, i, o)
    {
        const char *differs = hn_record_text(o, "quality_differs");
        if (*differs && ok)
            ok = alert(r, HN_REP_QUALITY, o, hn_rep_text_of("gate against %s", hn_record_text(o, "baseline")),
                       strdup(differs));
    }
    json_t *last = NULL;
    for (i = 0; i < r->n_abs && ok; i++) {
        o = r->abs[i].record;
        const char *a = hn_record_text(json_object_get(o, "a"), "quality"),
                   *b = hn_record_text(json_object_get(o, "b"), "quality");
        if (*a && *b && strcmp(a, b) != 0 && o != last)
            ok =
                alert(r, HN_REP_QUALITY, o, hn_rep_text_of("%s: %s against %s", r->abs[i].id, r->abs[i].a, r->abs[i].b),
                      hn_rep_text_of("%s: %s \xE2\x86\x92 %s", quality_change(a, b), a, b));
        last = o;
    }
    return ok;
}

static bool alert_verdicts(hn_report *r)
{
    bool ok = true;
    for (size_t i = 0; i < r->n_abs && ok; i++) {
        const hn_rep_ab *ab = &r->abs[i];
        bool unsure = ab->verdict == HN_REP_UNSURE && ab->hi < 1;
        if (ab->verdict != HN_REP_REGRESSION && !unsure) continue;
        char mid[HN_REP_NUM], lo[HN_REP_NUM], hi[HN_REP_NUM], of[HN_REP_NUM];
        const char *name = hn_rep_metric_name(ab->metric);
        ok = alert(r, unsure ? HN_REP_SLOWER : HN_REP_REGRESSED, ab->record,
                   hn_rep_text_of("%s%s%s: %s against %s", ab->id, *name ? " " : "", name, ab->a, ab->b),
                   hn_rep_text_of("%s%s, %s %s to %s, %zu %s", unsure ? "slower, size unresolved: " : "",
                                  hn_rep_pct(mid, ab->ratio), hn_rep_interval(of, ab), hn_rep_pct(lo, ab->lo),
                                  hn_rep_pct(hi, ab->hi), ab->n_counted,
                                  ab->unpaired ? "samples, against a stored baseline" : "rounds"));
    }
    for (size_t i = 0; i < r->n_series && ok; i++) {
        const hn_rep_line *l = &r->lines[i];
        if (l->steps.n == 0) continue;
        const hn_step *st = &l->steps.step[l->steps.n - 1];
        char pct[HN_REP_NUM], when[48];
        if ((st->after > st->before) == l->s->higher) continue;
        hn_rep_when(when, sizeof when, hn_record_text(l->s->points[st->at].record, "ts"), true);
        ok = alert(r, HN_REP_SLOWER, l->s->points[st->at].record, strdup(l->label),
                   hn_rep_text_of("%s since %s (a step in the history: not measured side by side)",
                                  hn_rep_pct(pct, st->after / st->before), when));
    }
    return ok;
}

static bool alert_doubts(hn_report *r)
{
    size_t i;
    json_t *o;
    bool ok = true;
    for (i = 0; i < r->n_files && ok; i++)
        if (r->files[i].why[0]) ok = alert(r, HN_REP_SKIPPED, NULL, strdup(r->files[i].name), strdup(r->files[i].why));
    json_array_foreach(r->peaks, i, o)
    {
        const char *doubts = hn_record_text(o, "doubts");
        if (json_is_true(json_object_get(o, "quick"))) doubts = "a quick trial: it says nothing about the machine";
        if (*doubts && ok)
            ok = alert(r, HN_REP_DOUBT, o,
                       hn_rep_text_of("the roof of machine %s", hn_record_text(json_object_get(o, "machine"), "hash")),
                       strdup(doubts));
    }
    return ok;
}

bool hn_rep_find_alerts(hn_report *r)
{
    return alert_invalid(r) && alert_quality(r) && alert_verdicts(r) && alert_doubts(r) && sort_alerts(r);
}
