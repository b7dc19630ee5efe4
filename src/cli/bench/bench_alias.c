/* Options that other harnesses and older guides have for hone bench. Those whose subject
 * is here do what they say; the others are errors that name what is missing. */
#include "cli/cli.h"

enum { MAX_WARMUPS = 100000 };
static const double max_seconds = 86400;

static const hn_opt alias_opts[] = {
    HN_OPT("warmup", NULL, I32, "N",
           "warm-ups that are not measured: processes (default: none; of entries 1, in-process 5)", .max = MAX_WARMUPS),
    HN_OPT("warm-up-time", NULL, F32, "S", "warm up for at least S seconds", .max = max_seconds),
    HN_OPT("measurement-time", NULL, F32, "S", "measure for at least S seconds, more samples than -r if need be",
           .max = max_seconds),
    HN_OPT("timing", NULL, FLAG, NULL, "show where the time of each process went, and the gaps between tokens"),
    HN_OPT("profile", NULL, FLAG, NULL, "show afterwards what each operation took (hone lab profile)"),
    HN_OPT("save-baseline", NULL, STR, "NAME",
           "keep the result as baseline NAME, in place of an older one (hone lab baseline save)"),
    HN_OPT("baseline", NULL, STR, "NAME", "compare the result with baseline NAME (hone lab baseline compare)"),
    HN_OPT("counts", NULL, STR, "LIST", "of entries that have such, disp.call: how many calls, as in 100,1000"),
    HN_OPT("framework", NULL, CHOICE, "NAME", "hone; other engines need adapters to them",
           .choices = "hone|llama.cpp|pytorch|tinygrad|mlx"),
    HN_OPT("strategies", NULL, STR, "LIST", "strategies for experts of mixed precision: not in this build"),
    HN_OPT("shard", NULL, I32, "N", "processes that share one model: 1, more need hone to run on several", .min = 1,
           .max = 4096),
    HN_OPT("fair-comparison", NULL, FLAG, NULL, "strict rules for comparing engines: needs adapters to them"),
    HN_OPT_END,
};
const hn_opt_group hn_group_alias = { "As other harnesses have it", alias_opts };

extern const hn_command hn_command_lab;

/* `hone lab NAME`, or NULL: not in this build. */
static const hn_command *lab_command(const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "lab %s", name);
    for (const hn_command *const *c = hn_command_lab.subs; *c; c++)
        if (strcmp((*c)->name, full) == 0) return *c;
    return NULL;
}

static int absent(const hn_cli *cli, const char *option, const char *needs)
{
    return hn_cli_usage(cli, "%s: not in this build: needs %s", option, needs);
}

int hn_bench_aliases(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    const char *framework = hn_opts_str(o, "framework");
    bool ids = hn_opts_n_args(o) > 0 || hn_opts_str(o, "suite"),
         baseline = hn_opts_str(o, "baseline") || hn_opts_str(o, "save-baseline");
    if (framework && strcmp(framework, "hone") != 0) {
        char what[64];
        snprintf(what, sizeof what, "--framework %s", framework);
        return absent(cli, what,
                      "adapters to other engines; hone alone can be measured, other programs by hone lab ab --cmd");
    }
    if (hn_opts_flag(o, "fair-comparison"))
        return absent(cli, "--fair-comparison",
                      "adapters to other engines; hone alone can be measured, other programs by hone lab ab --cmd");
    if (hn_opts_str(o, "strategies"))
        return absent(cli, "--strategies", "experts of several precisions in one model, and a choice how to run them");
    if (hn_opts_given(o, "shard") && hn_opts_i32(o, "shard") > 1)
        return absent(cli, "--shard", "running one model on several processes");
    if (hn_opts_flag(o, "profile") && !lab_command("profile")) return absent(cli, "--profile", "hone lab profile");
    if (hn_opts_flag(o, "profile") && cli->json)
        return hn_cli_usage(cli, "--profile with --json would print two objects; see hone lab profile --json");
    if (hn_opts_flag(o, "profile") && !hn_opts_str(o, "model"))
        return hn_cli_usage(cli, "--profile looks into a model: -m FILE");
    for (int i = 0; hn_opts_flag(o, "profile") && i < hn_opts_n_args(o); i++) {
        const char *id = hn_opts_arg(o, i);
        if (strncmp(id, "train", 5) == 0)
            return hn_cli_usage(cli, "--profile looks at a prompt and its answer; at a training: hone lab profile -m "
                                     "FILE --train DATA");
        if (strncmp(id, "e2e", 3) != 0)
            return hn_cli_usage(cli, "--profile looks at a prompt and its answer, not into %s; leave out one of them",
                                HN_ESC(id, strlen(id)));
    }
    if (baseline && !lab_command("baseline"))
        return absent(cli, hn_opts_str(o, "baseline") ? "--baseline" : "--save-baseline", "hone lab baseline");
    if (baseline && cli->json && hn_opts_str(o, "baseline"))
        return hn_cli_usage(cli,
                            "--baseline with --json would print two objects; see hone lab baseline compare --json");
    if (baseline && ids && !hn_opts_str(o, "file"))
        return hn_cli_usage(cli, "a baseline of entries is made of the records in a file: --file NAME");
    return 0;
}

/* ---- commands that follow a measurement -------------------------------------------------------- */

static int run_lab(const char *name, hn_argv *a)
{
    hn_cli cli = { .cmd = lab_command(name) };
    hn_opts *opts = NULL;
    hone_error err;
    int rc;
    if (hn_argv_check(a, cli.cmd->name, &err) != HONE_OK) rc = hn_cli_fail(&err);
    else if (hn_opts_parse(&opts, cli.cmd, hn_common_groups, (int)a->n, a->word, &err) != HONE_OK ||
             hn_opts_check_args(opts, cli.cmd, &err) != HONE_OK)
        rc = hn_cli_usage(&cli, "%s", err.message);
    else {
        cli.opts = opts;
        rc = cli.cmd->run(&cli);
    }
    hn_opts_free(opts);
    hn_argv_free(a);
    return rc;
}

int hn_bench_follow(const hn_cli *cli, const char *base, const char *record)
{
    const hn_opts *o = cli->opts;
    int rc = 0;
    if (hn_opts_flag(o, "profile")) {
        hn_argv a = { 0 };
        hn_opts_forward(o, HN_FORWARD_MODEL | HN_FORWARD_SETTINGS | HN_FORWARD_LENGTHS, false, &a);
        hn_out_printf("\n");
        rc = run_lab("profile", &a);
    }
    const char *const verbs[] = { "compare", "save" }, *const names[] = { hn_opts_str(o, "baseline"),
                                                                          hn_opts_str(o, "save-baseline") };
    for (int i = 0; i < 2 && rc == 0; i++) { /* compared with the old one before it is replaced */
        if (!names[i]) continue;
        hn_argv a = { 0 };
        hn_argv_add(&a, "%s", verbs[i]);
        hn_argv_add(&a, "%s", names[i]);
        if (i == 1 && hn_opts_str(o, "model"))
            hn_argv_add(&a, "--model=%s", hn_opts_str(o, "model")); /* all of its bytes belong to a baseline */
        hn_argv_add(&a, "--from=%s", base);
        if (record) hn_argv_add(&a, "--record=%s", record);
        if (i == 1) hn_argv_add(&a, "--force");
        if (!cli->json) hn_out_printf("\n");
        rc = run_lab("baseline", &a);
    }
    return rc;
}
