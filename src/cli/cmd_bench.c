/* hone bench: measures a model on this machine, or the rows of the catalogue that ids name.
 * Owns the options; bench_suite.c runs, bench_child.c is the measured process. */
#include "cli/bench/bench_command.h"

enum { MAX_TOKENS = 1 << 24, MAX_TITLE = 1000 };

static const hn_opt bench_opts[] = {
    HN_OPT("n-prompt", "-p", I32, "N",
           "tokens of the prompt; 0: none; of -p, -n, -d and -t every combination of 128,512 or 1-8*2", .def = "512",
           .max = MAX_TOKENS, .forward = HN_FORWARD_LENGTHS),
    HN_OPT("n-gen", "-n", I32, "N", "tokens to generate; 0: none", .def = "64", .max = MAX_TOKENS,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("depth", "-d", I32, "N", "tokens already in the cache or state when the prompt comes, not measured",
           .def = "0", .max = MAX_TOKENS, .forward = HN_FORWARD_LENGTHS),
    HN_OPT("samples", "-r --repetitions --iterations", I32, "N", "fresh processes to measure; an interval needs 6",
           .def = "3", .min = 1, .max = 100000),
    HN_OPT("prompt-seed", NULL, U64, "S",
           "another prompt than everyone's: number S of a series, so that an answer cannot be known before", .def = "0",
           .max = 9e18),
    HN_OPT("quality", NULL, CHOICE, "HOW",
           "the quality hash: full, or quick for large models: fewer ways of computing and no long prompt",
           .def = "full", .choices = "full|quick", .forward = HN_FORWARD_QUALITY),
    HN_OPT("draw", NULL, U64, "N", "draw for the hash what an earlier run drew, which says the number",
           .forward = HN_FORWARD_QUALITY),
    HN_OPT("no-quality", NULL, FLAG, NULL, "leave out the quality hash: the result is not checked"),
    HN_OPT_END,
};
static const hn_opt_group bench_group = { "Measurement", bench_opts };

static const hn_opt record_opts[] = {
    HN_OPT("format", NULL, CHOICE, "HOW",
           "what is printed: text, json (as --json), csv or md, with the columns of hone lab report", .def = "text",
           .choices = "text|json|csv|md"),
    HN_OPT("file", NULL, STR, "NAME",
           "append the record to benchmarks/NAME.jsonl and a row to benchmarks/NAME.md; "
           "a NAME with a slash is a path of its own",
           .use = HN_USE_RECORDS),
    HN_OPT("require", NULL, STR, "TEST",
           "a metric or id, one of >= <= > <, and a number, as 'decode_tok_s>=44'; several: each of them must hold, or "
           "the exit code is 10",
           .repeat = true),
    HN_OPT("title", NULL, STR, "TEXT", "what is measured, for the record", .def = "untitled"),
    HN_OPT("change", NULL, STR, "TEXT", "what changed since the last row, for the record"),
    HN_OPT_END,
};
static const hn_opt_group record_group = { "Record", record_opts };

static int check_texts(const hn_cli *cli)
{
    for (const char *const *name = (const char *const[]){ "title", "change", NULL }; *name; name++) {
        const char *s = hn_opts_str(cli->opts, *name);
        if (s && strlen(s) > MAX_TITLE)
            return hn_cli_usage(cli, "--%s: %zu bytes of text; expected at most %d", *name, strlen(s), MAX_TITLE);
    }
    return 0;
}

static int run(const hn_cli *cli)
{
    if (hn_is_bench_child(cli)) return hn_bench_child(cli);
    int rc = hn_bench_aliases(cli);
    for (const char *const *name = (const char *const[]){ "quality", "draw", NULL }; *name && rc == 0; name++)
        if (hn_opts_flag(cli->opts, "no-quality") && hn_opts_given(cli->opts, *name))
            rc = hn_cli_usage(cli, "--no-quality and --%s contradict each other; give one of them", *name);
    hn_cli mine;
    if (rc == 0) rc = check_texts(cli);
    if (rc == 0) rc = hn_bench_format(cli, &mine);
    return rc ? rc : hn_bench_suite(&mine);
}

static const hn_opt_group *const groups[] = { &hn_group_model,   &hn_group_lora, &bench_group,
                                              &hn_group_compute, &record_group,  &hn_group_alias,
                                              &hn_group_suite,   &hn_group_kern, NULL };
extern const hn_command hn_command_bench_serve;
static const hn_command *const subs[] = { &hn_command_bench_serve, NULL };
const hn_command hn_command_bench = {
    .name = "bench",
    .subs = subs,
    .subs_or_args = true,
    .summary = "Measure a model on this machine, and whether it still answers the same",
    .args = "[ID…]",
    .max_args = -1,
    .groups = groups,
    .examples = "hone bench -m model.gguf\n"
                "hone bench -m model.gguf -p 1024 -n 128 -r 10 --json\n"
                "hone bench -m model.gguf -r 6 --file local --title \"tiny, 2 threads\" --change \"new matmul\"\n"
                "hone bench 'tok.*' -m model.gguf --format md\n"
                "hone bench 'kern.gemv.Q4_K.*' --preset llama-3.2-1b -t 2\n",
    .run = run,
};
