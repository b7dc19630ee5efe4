/* Fuzz target: histories, the .jsonl files that every measurement is appended to: what reads them line by line, sorts
 * them into series, and makes reports of them. The input is the file. Whatever it is, every line is a record, broken
 * or foreign; numbers that are handed out are finite; the same file gives the same report.
 * covers: src/lab/record/history.c src/lab/record/report.c src/lab/record/report_num.c
 * covers: src/lab/record/report_text.c src/lab/record/report_html.c src/lab/record/report_train.c */
#include "fuzz_file.h"
#include "lab/record/history.h"
#include "lab/record/report.h"
#include "lab/record/record.h"

#include <math.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(json_t *record)
{
    const char *metric, *unit;
    bool higher;
    double *x;
    size_t n;
    hone_error e = { 0 };
    char row[2000];
    FF_MUST(hn_record_id(record) != NULL);
    for (int env = 0; env < 2; env++) {
        char *key = hn_record_key(record, env);
        FF_MUST(key && !strchr(key, '\n'));
        free(key);
    }
    void *at = NULL;
    while (hn_record_next(record, &at, &metric, &unit, &higher)) {
        FF_MUST(metric && unit);
        hn_record_stats(record, metric);
        FF_MUST(hn_record_samples(&x, &n, record, metric, &e) == HONE_OK);
        for (size_t k = 0; k < n; k++) FF_MUST(isfinite(x[k]));
        free(x);
    }
    hn_history_row(row, sizeof row, record);
    FF_MUST(strlen(row) < sizeof row);
}

static void check_series(json_t *records)
{
    hn_series *s;
    size_t n;
    hone_error e = { 0 };
    FF_MUST(hn_series_of(&s, &n, records, &e) == HONE_OK);
    for (size_t i = 0; i < n; i++) {
        FF_MUST(s[i].id && s[i].metric && s[i].unit && s[i].key);
        for (size_t k = 0; k < s[i].n; k++) FF_MUST(s[i].points[k].record && isfinite(s[i].points[k].median));
    }
    hn_series_free(s, n);
}

enum { FORMATS = HN_REPORT_JSON + 1 };

/* Its forms, one after the other, or only one of them; malloc'ed. NULL: there is nothing to report. */
static char *report_of(const char *path, size_t n[FORMATS], int only)
{
    hn_report *r;
    hone_error e = { 0 };
    char *all = NULL;
    size_t len = 0;
    FF_MUST(hn_report_new(&r, &e) == HONE_OK);
    FF_MUST(hn_report_add(r, path, &e) == HONE_OK);
    FF_MUST(hn_report_add(r, path, &e) == HONE_OK); /* again: what is there already is left out */
    hone_status st = hn_report_finish(r, NULL, NULL, &e);
    FF_MUST(st == HONE_OK || e.message[0]);
    hn_report_skipped(r);
    for (int f = HN_REPORT_HTML; st == HONE_OK && hn_report_records(r) && f <= HN_REPORT_JSON; f++) {
        char *text;
        if (only >= 0 && f != only) continue;
        FF_MUST(hn_report_write(&text, &n[f], r, (hn_report_format)f, &e) == HONE_OK && strlen(text) == n[f]);
        FF_MUST((all = realloc(all, len + n[f] + 1)) != NULL);
        memcpy(all + len, text, n[f] + 1);
        len += n[f];
        free(text);
    }
    hn_report_free(r);
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hn_history h;
    hone_error e = { 0 };
    char said[400];
    size_t i, n[FORMATS] = { 0 }, again[FORMATS] = { 0 };
    json_t *record;
    if (!*ff_dir) ff_begin();
    const char *path = ff_put("h.jsonl", data, size);
    FF_MUST(hn_history_read(&h, path, &e) == HONE_OK);
    FF_MUST(json_array_size(h.records) + h.n_broken + h.n_foreign == h.n_lines &&
            !h.first_broken == !(h.n_broken + h.n_foreign));
    hn_history_say(&h, said, sizeof said);
    FF_MUST(!said[0] == !(h.n_broken + h.n_foreign));
    json_array_foreach(h.records, i, record) check_record(record);
    check_series(h.records);
    hn_history_free(&h);
    int one = HN_REPORT_HTML + (int)(size % (FORMATS - HN_REPORT_HTML)); /* the same again: each form has its turn */
    char *a = report_of(path, n, -1), *b = report_of(path, again, one);
    size_t at = 0;
    for (int f = HN_REPORT_HTML; f < one; f++) at += n[f];
    FF_MUST(!a == !b && (!a || (n[one] == again[one] && memcmp(a + at, b, again[one] + (one == FORMATS - 1)) == 0)));
    free(a);
    free(b);
    return 0;
}
