/* hone lab report: what history files say, as a page, Markdown, CSV or JSON. Owns options and output
 * files; what a report is, is lab's. */
#include "cli/lab/gate_settings.h"
#include "lab/record/report.h"

#include <stdlib.h>

static const hn_opt report_opts[] = {
    HN_OPT("html", NULL, FILE, "OUT", "one page, nothing loaded from elsewhere; \"-\": stdout", .use = HN_USE_REPORT),
    HN_OPT("md", NULL, FILE, "OUT", "Markdown; \"-\": stdout", .use = HN_USE_REPORT),
    HN_OPT("csv", NULL, FILE, "OUT", "every statistic of every record (RFC 4180); \"-\": stdout", .use = HN_USE_REPORT),
    HN_OPT("json-out", NULL, FILE, "OUT", "JSON, schema hone.report/1, into a file (--json: to stdout)",
           .use = HN_USE_REPORT),
    HN_OPT("title", NULL, STR, "TEXT", "heading (default: what was measured)"),
    HN_OPT("date", NULL, STR, "TEXT", "date of the report (default: that of the newest record)"),
    HN_OPT_END,
};
static const hn_opt_group report_group = { "Report", report_opts };
static const hn_opt_group *const groups[] = { &report_group, NULL };

enum { MAX_TEXT = 400 };

static const struct {
    const char *option;
    hn_report_format format;
} outputs[] = {
    { "html", HN_REPORT_HTML }, { "md", HN_REPORT_MD }, { "csv", HN_REPORT_CSV }, { "json-out", HN_REPORT_JSON }
};
enum { N_OUTPUTS = sizeof outputs / sizeof *outputs };

static const char *path_of(const hn_cli *cli, size_t i) { return hn_opts_str(cli->opts, outputs[i].option); }

/* Where everything goes, before any work. */
static int check_outputs(const hn_cli *cli)
{
    int to_stdout = cli->json;
    for (size_t i = 0; i < N_OUTPUTS; i++) {
        const char *path = path_of(cli, i);
        if (!path) continue;
        if (strcmp(path, "-") == 0) {
            to_stdout++;
            continue;
        }
        if (!*path) return hn_cli_usage(cli, "--%s: expected a file name, or \"-\" for stdout", outputs[i].option);
    }
    if (to_stdout > 1) return hn_cli_usage(cli, "%d reports to stdout; expected one at most", to_stdout);
    for (const char *const *o = (const char *const[]){ "title", "date", NULL }; *o; o++) {
        const char *s = hn_opts_str(cli->opts, *o);
        if (s && strlen(s) > MAX_TEXT)
            return hn_cli_usage(cli, "--%s: %zu bytes of text; expected at most %d", *o, strlen(s), MAX_TEXT);
    }
    return 0;
}

static int write_one(const hn_report *r, hn_report_format format, const char *path)
{
    char *text;
    size_t n;
    hone_error err;
    hone_status st = hn_report_write(&text, &n, r, format, &err);
    if (st == HONE_OK && strcmp(path, "-") != 0) st = hn_file_replace(path, text, n, &err);
    else if (st == HONE_OK) {
        hn_out_is_json(format == HN_REPORT_JSON);
        hn_out_write(text, n);
    }
    free(text);
    return st == HONE_OK ? 0 : hn_cli_fail(&err);
}

static int write_all(const hn_cli *cli, const hn_report *r)
{
    bool any = cli->json;
    int rc = cli->json ? write_one(r, HN_REPORT_JSON, "-") : 0;
    for (size_t i = 0; i < N_OUTPUTS && rc == 0; i++) {
        if (!path_of(cli, i)) continue;
        if (hn_interrupted()) return hn_cli_error(HN_EXIT_INTERRUPTED, "interrupted");
        any = true;
        rc = write_one(r, outputs[i].format, path_of(cli, i));
    }
    if (!any && rc == 0) rc = write_one(r, HN_REPORT_MD, "-"); /* for people at a terminal */
    return rc;
}

static int run(const hn_cli *cli)
{
    hone_error err;
    hn_report *r;
    int rc = check_outputs(cli);
    if (rc) return rc;
    hone_status st = hn_report_new(&r, &err);
    if (st == HONE_OK) hn_report_set_stop(r, hn_abort_fn);
    for (int i = 0; i < hn_opts_n_args(cli->opts) && st == HONE_OK; i++)
        st = hn_report_add(r, hn_opts_arg(cli->opts, i), &err);
    if (st == HONE_OK) st = hn_report_finish(r, hn_opts_str(cli->opts, "title"), hn_opts_str(cli->opts, "date"), &err);
    if (st != HONE_OK) {
        rc = hn_lab_code(hn_cli_fail(&err));
    } else {
        if (hn_report_skipped(r))
            hn_cli_note("%zu line%s skipped: no records of hone's", hn_report_skipped(r),
                        hn_report_skipped(r) == 1 ? "" : "s");
        rc = hn_report_records(r) == 0
                 ? hn_cli_error(HN_EXIT_FAILURE, "no records in these files; hone bench … --file NAME writes some")
                 : write_all(cli, r);
    }
    hn_report_free(r);
    return rc;
}

const hn_command hn_command_lab_report = {
    .name = "lab report",
    .summary = "Write what history files say as a page, Markdown, CSV or JSON",
    .args = "FILE…",
    .min_args = 1,
    .max_args = -1,
    .groups = groups,
    .reads_args = true,
    .examples = "hone lab report benchmarks/local.jsonl --html report.html\n"
                "hone lab report benchmarks/*.jsonl --html report.html --csv report.csv --title \"new matmul\"\n"
                "hone lab report benchmarks/local.jsonl --md -\n",
    .run = run,
};
