/* Records and history: what outlives the run. Appends whole lines, locked and synced;
 * nothing here rewrites what is there. Refuses to know how numbers came about. */
#define _GNU_SOURCE
#include "lab/record/record_read.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include "base/json_text.h"
#include "base/file.h"

#include <math.h>
#include <errno.h>
#include <stdlib.h>

hone_status hn_record_base(char *dst, size_t cap, const char *name, hone_error *err)
{
    size_t n = strlen(name);
    if (n > 3 && strcmp(name + n - 3, ".md") == 0) n -= 3;
    else if (n > 6 && strcmp(name + n - 6, ".jsonl") == 0) n -= 6;
    if (n == 0 || name[n - 1] == '/' || (n == 1 && name[0] == '.') || (n == 2 && memcmp(name, "..", 2) == 0))
        return HN_FAIL(err, HONE_E_ARG, "--file '%s': expected a name, as in --file local", HN_ESC(name, strlen(name)));
    const char *folder = memchr(name, '/', n) ? "" : "benchmarks/";
    if (strlen(folder) + n + sizeof ".jsonl" > cap)
        return HN_FAIL(err, HONE_E_ARG, "--file: the name has %zu bytes, expected at most %zu", n, cap - 20);
    snprintf(dst, cap, "%s%.*s", folder, (int)n, name);
    return HONE_OK;
}

hone_status hn_record_append(const char *base, json_t *record, hone_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s.jsonl", base);
    char *text = hn_json_text(record, JSON_COMPACT | JSON_REAL_PRECISION(12));
    char *line = NULL;
    int n = text ? asprintf(&line, "%s\n", text) : -1;
    free(text);
    if (n < 0) return HN_FAIL(err, HONE_E_NOMEM, "record for %s", HN_ESC(path, strlen(path)));
    hone_status st = hn_file_append_line(path, NULL, line, (size_t)n, err);
    free(line);
    return st;
}

/* ---- the history a person reads ------------------------------------------------------------ */

const char hn_history_header[] =
    "# Benchmark history\n"
    "\n"
    "One row per run of `hone bench`; the samples are in the .jsonl file beside this one. Medians; ± is half of the 95 "
    "%\n"
    "confidence interval of the median, which needs six samples: with fewer it is n/a and the range stands in "
    "brackets.\n"
    "Struck-through rows are invalid. Equal quality hashes: equal output. Env: rows with another hash are another "
    "machine.\n"
    "\n"
    "| Date | Title | Change | Load ms | Prefill tok/s | Gen tok/s | Quality hash | Env | Notes |\n"
    "|---|---|---|---|---|---|---|---|---|\n";

typedef struct cells {
    char *p;
    size_t n, cap;
} cells;

static void put(cells *c, const char *s, size_t len)
{
    if (c->n + len + 1 > c->cap) return;
    memcpy(c->p + c->n, s, len);
    c->n += len;
    c->p[c->n] = 0;
}
static void puts_cell(cells *c, const char *s) { put(c, s, strlen(s)); }

/* Text into a table cell: no bar, no line end, no markup, nothing that a terminal obeys. */
static void put_text(cells *c, const char *s)
{
    for (; s && *s; s++) {
        if (*s == '|') put(c, "\\|", 2);
        else if (*s == '<') put(c, "&lt;", 4);
        else put(c, (unsigned char)*s < 0x20 || *s == 0x7F ? " " : s, 1);
    }
}

static void put_number(cells *c, json_t *record, const char *key, bool invalid)
{
    json_t *s = json_object_get(json_object_get(record, "stats"), key), *ci = json_object_get(s, "ci95");
    double m = hn_record_number(s, "median"), lo = hn_record_number(s, "min"), hi = hn_record_number(s, "max");
    char t[128], value[32], half_text[32], low[32], high[32];
    if (!isfinite(m)) {
        puts_cell(c, "– | ");
        return;
    }
    bool known = json_array_size(ci) == 2;
    double half = known ? 0.5 * (json_number_value(json_array_get(ci, 1)) - json_number_value(json_array_get(ci, 0)))
                        : 0.5 * (hi - lo);
    hn_digits(value, sizeof value, m, half);
    if (known) snprintf(t, sizeof t, "%s ± %s", value, hn_digits(half_text, sizeof half_text, half, half));
    else
        snprintf(t, sizeof t, "%s ± n/a [%s, %s]", value, hn_digits(low, sizeof low, lo, half),
                 hn_digits(high, sizeof high, hi, half));
    if (invalid) puts_cell(c, "~~");
    puts_cell(c, t);
    puts_cell(c, invalid ? "~~ | " : " | ");
}

void hn_history_row(char *dst, size_t cap, json_t *record)
{
    enum { END = 4 }; /* kept free for " |\n" */
    cells c = { .p = dst, .cap = cap - END };
    dst[0] = 0;
    const char *ts = json_string_value(json_object_get(record, "ts")),
               *q = json_string_value(json_object_get(record, "quality"));
    json_t *valid = json_object_get(record, "valid"), *model = json_object_get(record, "model"),
           *config = json_object_get(record, "config");
    bool invalid = json_is_false(valid);
    char t[256];
    puts_cell(&c, "| ");
    snprintf(t, sizeof t, "%.10s %.5s | ", ts ? ts : "", ts && strlen(ts) > 16 ? ts + 11 : "");
    puts_cell(&c, t);
    put_text(&c, json_string_value(json_object_get(record, "title")));
    puts_cell(&c, " | ");
    put_text(&c, json_string_value(json_object_get(record, "change")));
    puts_cell(&c, " | ");
    put_number(&c, record, "load_ms", invalid);
    put_number(&c, record, "prefill_tok_s", invalid);
    put_number(&c, record, "decode_tok_s", invalid);
    put_text(&c, q ? q : json_is_null(valid) ? "not checked" : "none");
    puts_cell(&c, " | ");
    put_text(&c, json_string_value(json_object_get(json_object_get(record, "env"), "hash")));
    puts_cell(&c, " | ");
    if (invalid) {
        puts_cell(&c, "INVALID: ");
        put_text(&c, json_string_value(json_object_get(record, "invalid_reason")));
        puts_cell(&c, "; ");
    }
    put_text(&c, json_string_value(json_object_get(model, "path_name")));
    snprintf(t, sizeof t, ", p%lld n%lld d%lld t%lld ",
             (long long)json_integer_value(json_object_get(config, "n_prompt")),
             (long long)json_integer_value(json_object_get(config, "n_gen")),
             (long long)json_integer_value(json_object_get(config, "depth")),
             (long long)json_integer_value(json_object_get(config, "threads")));
    puts_cell(&c, t);
    double state = hn_record_number(model, "state_mb");
    if (isfinite(state)) snprintf(t, sizeof t, "state %.4g MB, ", state);
    else
        snprintf(t, sizeof t, "kv %s, ",
                 json_string_value(json_object_get(config, "kv")) ? json_string_value(json_object_get(config, "kv"))
                                                                  : "?");
    puts_cell(&c, t);
    put_text(&c, json_string_value(json_object_get(config, "cpu")));
    snprintf(t, sizeof t, ", %zu samples", json_array_size(json_object_get(record, "samples")));
    puts_cell(&c, t);
    json_t *roof = json_object_get(record, "roofline");
    double decode = hn_record_number(roof, "pct"), prefill = hn_record_number(roof, "prefill_pct");
    if (isfinite(prefill)) {
        snprintf(t, sizeof t, ", prefill %.0f %% of roof", prefill);
        puts_cell(&c, t);
    }
    if (isfinite(decode)) {
        snprintf(t, sizeof t, ", gen %.0f %% of roof", decode);
        puts_cell(&c, t);
    }
    size_t i;
    json_t *note;
    json_array_foreach(json_object_get(record, "notes"), i, note)
    {
        const char *text = json_string_value(note); /* what it says; the details behind ':' are in the .jsonl */
        snprintf(t, sizeof t, "%.*s", text ? (int)strcspn(text, ":") : 0, text ? text : "");
        puts_cell(&c, "; ");
        put_text(&c, t);
    }
    c.cap = cap;
    puts_cell(&c, " |\n");
}

hone_status hn_history_append(const char *base, json_t *record, char *row, size_t cap, hone_error *err)
{
    char path[4200], line[8192];
    snprintf(path, sizeof path, "%s.md", base);
    hn_history_row(line, sizeof line, record);
    if (row) snprintf(row, cap, "%s", line);
    return hn_file_append_line(path, hn_history_header, line, strlen(line), err);
}
