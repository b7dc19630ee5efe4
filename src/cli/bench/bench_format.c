/* hone bench --format: results as CSV or Markdown on stdout, as hone lab report writes them. Owns what goes to stdout;
 * columns and digits are the report's. */
#include "cli/bench/bench_command.h"
#include "lab/record/report.h"

#include <stdlib.h>

static const struct {
    const char *name;
    hn_report_format format;
    int head; /* lines at the beginning that a grid needs once */
} formats[] = { { "csv", HN_REPORT_CSV, 1 }, { "md", HN_REPORT_MD_TABLE, 2 } };

int hn_bench_format(const hn_cli *cli, hn_cli *mine)
{
    const char *format = hn_opts_str(cli->opts, "format");
    *mine = *cli;
    if (cli->json && strcmp(format, "json") != 0 && hn_opts_given(cli->opts, "format"))
        return hn_cli_usage(cli, "--json and --format %s contradict each other; give one of them", format);
    if (strcmp(format, "json") == 0) hn_out_is_json(true);
    if (strcmp(format, "text") != 0) mine->json = true; /* nothing else goes to stdout */
    if (hn_bench_as_table(cli) && hn_opts_flag(cli->opts, "profile"))
        return hn_cli_usage(cli, "--profile with --format %s would print two results; see hone lab profile", format);
    if (hn_bench_as_table(cli) && hn_opts_str(cli->opts, "baseline"))
        return hn_cli_usage(cli, "--baseline with --format %s would print two results; see hone lab baseline compare",
                            format);
    return 0;
}

bool hn_bench_as_table(const hn_cli *cli)
{
    const char *format = hn_opts_str(cli->opts, "format");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(format, formats[i].name) == 0) return true;
    return false;
}

int hn_bench_print_table(const hn_cli *cli, json_t *records)
{
    static bool headed; /* by the cell of a grid before this one */
    const char *name = hn_opts_str(cli->opts, "format");
    size_t i = 0, n = 0;
    char *text = NULL;
    hone_error err;
    hn_report *r;
    while (strcmp(formats[i].name, name) != 0) i++;
    if (json_array_size(records) == 0) return 0;
    hone_status st = hn_report_new(&r, &err);
    if (st == HONE_OK) st = hn_report_add_records(r, records, &err);
    if (st == HONE_OK) st = hn_report_finish(r, NULL, NULL, &err);
    if (st == HONE_OK) st = hn_report_write(&text, &n, r, formats[i].format, &err);
    if (st == HONE_OK) {
        const char *from = text;
        for (int line = 0; headed && line < formats[i].head; line++) from = strchr(from, '\n') + 1;
        hn_out_write(from, n - (size_t)(from - text));
        headed = true;
    }
    free(text);
    hn_report_free(r);
    return st == HONE_OK ? 0 : hn_cli_fail(&err);
}
