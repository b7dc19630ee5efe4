/* hone lab diff: two files of records beside each other. Owns words; pairing and numbers are
 * lab's. */
#include "cli/cli.h"
#include "lab/judge/diff.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"

#include <math.h>

static const hn_opt opts[] = {
    HN_OPT("all", NULL, FLAG, NULL, "every metric, not only speeds and times"),
    HN_OPT_END,
};
static const hn_opt_group group = { "Rows", opts };
static const hn_opt_group *const groups[] = { &group, NULL };

static int read_file(const char *path, hn_history *h)
{
    hone_error err;
    char say[400];
    if (hn_history_read_until(h, path, hn_abort_fn, &err) != HONE_OK) return hn_cli_fail(&err);
    hn_history_say(h, say, sizeof say);
    if (say[0]) hn_cli_note("%s: %s", HN_ESC(path, strlen(path)), say);
    return 0;
}

static void print_row(const hn_diff_row *r)
{
    const char *variant = hn_record_text(json_object_get(r->a ? r->a : r->b, "config"), "variant");
    char name[100], ci[40] = "";
    const char *metric = r->a && r->b ? r->metric : ""; /* what is alone is so with all its metrics */
    snprintf(name, sizeof name, "%s%s%s%s%s", r->id, metric[0] ? " " : "", metric, variant[0] ? ", " : "", variant);
    if (r->why[0]) {
        hn_out_printf("%-40s %s\n", name, HN_ESC(r->why, strlen(r->why)));
        return;
    }
    if (isfinite(r->test.ci[0])) snprintf(ci, sizeof ci, "[%.3f, %.3f]", r->test.ci[0], r->test.ci[1]);
    hn_out_printf("%-40s %11.5g %11.5g %-6s %7.3f  %-16s %zu, %zu\n", name, r->median_a, r->median_b, r->unit,
                  r->test.ratio, ci[0] ? ci : "too few samples", r->test.n_old, r->test.n_new);
}

static void print_report(const hn_cli *cli, const hn_diff *d)
{
    hn_out_printf("%-40s %11s %11s %-6s %7s  %-16s %s\n", "", "a", "b", "", "b/a", "interval", "samples");
    for (size_t i = 0; i < d->n; i++)
        if (hn_opts_flag(cli->opts, "all") || d->row[i].counts || !d->row[i].a || !d->row[i].b) print_row(&d->row[i]);
    if (d->n_counted)
        hn_out_printf("\nmean     %.3f: geometric, of the speeds of %zu row%s, b / a\n", d->mean, d->n_counted,
                      d->n_counted == 1 ? "" : "s");
    if (d->other_machine) hn_out_printf("note     measured on two machines: they, not a change, may be what differs\n");
    hn_out_printf("note     measured at two times, whose drift no interval knows; hone lab ab measures side by side\n");
}

static int run(const hn_cli *cli)
{
    hn_history h[2] = { { .records = NULL } };
    hn_diff d = { .n = 0 };
    hone_error err;
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++) rc = read_file(hn_opts_arg(cli->opts, i), &h[i]);
    if (rc == 0 && hn_diff_make(&d, h[0].records, h[1].records, &err) != HONE_OK) rc = hn_cli_fail(&err);
    if (rc == 0 && cli->json) {
        json_t *o = hn_json_new("hone.diff/1"), *body = hn_diff_json(&d);
        json_object_update(o, body);
        json_decref(body);
        rc = hn_json_print(o);
    } else if (rc == 0) {
        print_report(cli, &d);
    }
    if (rc == 0 && d.n_compared == 0)
        rc = hn_cli_error(HN_EXIT_FAILURE, "no row could be compared; each line says why");
    hn_diff_free(&d);
    for (int i = 0; i < 2; i++) hn_history_free(&h[i]);
    return rc;
}

const hn_command hn_command_lab_diff = {
    .name = "lab diff",
    .summary = "Two files of records beside each other: rows paired by what was asked, ratios, their geometric mean",
    .args = "A.jsonl B.jsonl",
    .min_args = 2,
    .max_args = 2,
    .groups = groups,
    .examples = "hone lab diff benchmarks/before.jsonl benchmarks/after.jsonl\n",
    .run = run,
};
