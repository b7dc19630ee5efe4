/* hone lab memory: what the memory of a process that runs a model is for. */
#include "cli/cli.h"
#include "lab/machine/ledger.h"
#include "lab/bench/sample.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TOKENS = 1 << 24 };

static const hn_opt memory_opts[] = {
    HN_OPT("n-prompt", "-p", I32, "N", "tokens of the prompt", .def = "512", .min = 1, .max = MAX_TOKENS),
    HN_OPT("n-gen", "-n", I32, "N", "tokens to generate", .def = "16", .max = MAX_TOKENS),
    HN_OPT("depth", "-d", I32, "N", "tokens already in the cache or state when the prompt comes", .def = "0",
           .max = MAX_TOKENS),
    HN_OPT_END,
};
static const hn_opt_group memory_group = { "Memory", memory_opts };
static const hn_opt_group *const groups[] = { &hn_group_model, &memory_group, &hn_group_compute, NULL };

static void print_ledger(const hn_ledger *l)
{
    hn_out_printf("%-16s %12s %12s\n", "", "MB in memory", "MB reserved");
    for (int i = 0; i < l->n; i++) {
        char mb[32] = "unknown", reserved[32] = "";
        if (isfinite(l->part[i].resident)) snprintf(mb, sizeof mb, "%.3f", l->part[i].resident / 1e6);
        if (l->part[i].reserved) snprintf(reserved, sizeof reserved, "%.3f", (double)l->part[i].reserved / 1e6);
        hn_out_printf("%-16s %12s %12s   %s\n", l->part[i].name, mb, reserved, l->part[i].how);
    }
    double rest = hn_ledger_rest(l);
    hn_out_printf("%-16s %12.3f\n", "sum", l->sum / 1e6);
    hn_out_printf("%-16s %12.3f                the most that was ever in memory (VmHWM)\n", "peak",
                  (double)l->seen.hwm / 1e6);
    hn_out_printf("%-16s %12.3f %10.2f %%%s\n", "difference", ((double)l->seen.hwm - l->sum) / 1e6, 100 * rest,
                  l->n_unknown ? "   some parts are unknown"
                  : fabs(rest) > HN_LEDGER_MAX_REST
                      ? "   MORE than 3 %: memory that is in no part, or was given back before the end"
                      : "");
}

/* Opens, runs and looks. What was opened is the caller's to free. */
static int measure(const hn_cli *cli, hn_ledger *l, hone_model **m, hone_context **ctx, hone_session **s)
{
    int32_t n_prompt = hn_opts_i32(cli->opts, "n-prompt"), n_gen = hn_opts_i32(cli->opts, "n-gen"),
            depth = hn_opts_i32(cli->opts, "depth");
    hone_model_info info;
    hone_error err;
    hn_sample sample;
    hn_ledger_start(l);
    int rc = hn_cli_open_model(cli, false, m);
    if (rc) return rc;
    hn_ledger_model(l);
    hone_token_bos(*m); /* builds the tokenizer */
    hn_ledger_vocabulary(l);
    hone_model_get_info(*m, &info);
    rc = hn_cli_new_context(cli, ctx);
    if (rc == 0) rc = hn_cli_new_session(cli, *ctx, *m, depth + n_prompt + n_gen, 1, s);
    if (rc == 0) hn_cli_session_notes(*m, depth + n_prompt + n_gen);
    if (rc) return rc;
    const hn_bench_config c = { .n_prompt = n_prompt, .n_gen = n_gen, .depth = depth };
    if (hn_bench_measure(&sample, *s, *m, &c, &err) != HONE_OK) return hn_cli_fail(&err);
    hn_sample_free(&sample);
    return hn_ledger_end(l, *s, &info, hn_opts_str(cli->opts, "model"), &err) == HONE_OK ? 0 : hn_cli_fail(&err);
}

static int run(const hn_cli *cli)
{
    hn_ledger l;
    hone_model *m = NULL;
    hone_context *ctx = NULL;
    hone_session *s = NULL;
    int rc = measure(cli, &l, &m, &ctx, &s);
    if (rc == 0 && !cli->json) print_ledger(&l);
    if (rc == 0 && cli->json) {
        json_t *o = hn_json_new(HN_MEMORY_SCHEMA), *parts = hn_ledger_json(&l);
        json_object_update(o, parts);
        json_decref(parts);
        rc = hn_json_print(o);
    }
    const double rest_mb = hn_ledger_rest(&l) * (double)l.seen.hwm / 1e6;
    if (rc == 0 && !l.n_unknown && fabs(hn_ledger_rest(&l)) > HN_LEDGER_MAX_REST &&
        fabs(rest_mb) > HN_LEDGER_LEAST_REST)
        rc = hn_cli_error(HN_EXIT_FAILURE,
                          "invalid result: the parts are %.3f MB, and %.3f MB were in memory: more than 3 %% is "
                          "in no part, or was given back before the end",
                          l.sum / 1e6, (double)l.seen.hwm / 1e6);
    hone_session_free(s);
    hone_context_free(ctx);
    hone_model_close(m);
    return rc;
}

const hn_command hn_command_lab_memory = {
    .name = "lab memory",
    .summary = "What the memory of a process that runs a model is for",
    .groups = groups,
    .examples = "hone lab memory -m model.gguf\nhone lab memory -m model.gguf -d 4096 --kv q8_0 --json\n",
    .run = run,
};
