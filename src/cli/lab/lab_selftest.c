/* hone lab selftest: does the laboratory notice what it must, here and now? Owns options and
 * words; what is tried is lab's. */
#include "cli/cli.h"
#include "lab/judge/selftest.h"
#include "lab/machine/clock.h"

#include <stdlib.h>
#include <unistd.h>

static const hn_opt selftest_opts[] = {
    HN_OPT("model", "-m", FILE, "FILE", "a small, sound model to break (default: models/hone-tiny.gguf)",
           .use = HN_USE_MODEL),
    HN_OPT("quick", NULL, FLAG, NULL, "few tries, in seconds: shows that it works, not at which odds"),
    HN_OPT("seed", NULL, U64, "S", "seed of the comparisons (default: another each time)", .max = 9e18),
    HN_OPT_END,
};
static const hn_opt_group group = { "Selftest", selftest_opts };
static const hn_opt_group *const groups[] = { &group, NULL };

static void progress(void *unused, uint64_t done, uint64_t total) { hn_progress_fn("trying", done, total); }

static void print_report(const hn_selftest *t, const hn_environ *e)
{
    hn_out_printf("machine  %s, %d cores, load %.1f (env %s)\n", e->cpu_model[0] ? e->cpu_model : e->machine, e->cores,
                  e->load[0], e->hash);
    hn_out_printf("commands %.2f ms and %.2f ms at best: %.1f %% more\n\n", t->a_ms, t->b_ms,
                  100 * (t->b_ms / t->a_ms - 1));
    for (int k = 0; k < HN_ST_KINDS; k++) {
        const hn_selftest_check *c = &t->check[k];
        if (!c->exercised) hn_out_printf("-        %-48s %s\n", c->what, c->detail);
        else
            hn_out_printf("%-8s %-48s %zu of %zu  (95 %%: %.0f to %.0f %%)\n         %s\n", c->passed ? "ok" : "FAILED",
                          c->what, c->good, c->n, 100 * c->interval[0], 100 * c->interval[1], c->detail);
    }
    if (t->unresolved)
        hn_out_printf("\nnote     %d of %zu slowdowns ended without a verdict: too noisy here now\n", t->unresolved,
                      t->check[HN_ST_SLOW].n);
    hn_out_printf("\n%.0f seconds%s\n", t->seconds,
                  t->quick ? "; --quick: so few tries show that it works, not how well" : "");
}

/* 0; 1: something that must be noticed was not, or too many false alarms; 13: only the machine is too noisy to
 * see 5 %, or something could not be tried here. */
static int code_of(const hn_selftest *t)
{
    int rc = HN_EXIT_OK;
    for (int k = 0; k < HN_ST_KINDS; k++) {
        const hn_selftest_check *c = &t->check[k];
        if (c->passed) continue;
        bool noise = k == HN_ST_SLOW && c->exercised && c->n - c->good == (size_t)t->unresolved;
        if (c->exercised && !noise) return HN_EXIT_FAILURE;
        if (k != HN_ST_LEVEL || c->exercised)
            rc = HN_EXIT_ENVIRONMENT; /* a machine without faster levels is no fault */
    }
    return rc;
}

static int run(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    if (hn_opts_n_args(o) == 2 && strcmp(hn_opts_arg(o, 0), "_work") == 0) { /* a command of the test itself */
        int64_t n;
        if (hn_parse_i64(&n, hn_opts_arg(o, 1), 0, INT64_MAX, "steps", NULL) == HONE_OK)
            return hn_selftest_work((uint64_t)n) == 1 ? HN_EXIT_FAILURE : HN_EXIT_OK;
    }
    if (hn_opts_n_args(o) > 0)
        return hn_cli_usage(cli, "unexpected argument '%s'; selftest takes options",
                            HN_ESC(hn_opts_arg(o, 0), strlen(hn_opts_arg(o, 0))));
    const char *model = hn_opts_str(o, "model");
    if (!model) model = "models/hone-tiny.gguf";
    if (access(model, R_OK) != 0)
        return hn_cli_usage(cli, "%s cannot be read; the selftest needs a small model to break: --model",
                            HN_ESC(model, strlen(model)));
    hn_selftest t;
    hn_environ e;
    hone_error err;
    hn_environ_read(&e);
    hn_selftest_params p = { .model = model,
                             .quick = hn_opts_flag(o, "quick"),
                             .seed =
                                 hn_opts_given(o, "seed") ? hn_opts_u64(o, "seed") : hn_rand64(hn_clock_ns(), 1) >> 2,
                             .stop = hn_abort_fn,
                             .progress = progress };
    hone_status st = hn_selftest_run(&t, &p, &err);
    hn_progress_end();
    if (st == HONE_E_INTERRUPTED) return hn_cli_error(HN_EXIT_INTERRUPTED, "interrupted");
    if (st != HONE_OK) return hn_cli_fail(&err);
    int rc = code_of(&t);
    if (cli->json) {
        json_t *j = hn_json_new(HN_SELFTEST_SCHEMA), *r = hn_selftest_json(&t);
        json_object_update(j, r);
        json_decref(r);
        json_object_set_new(j, "exit", json_integer(rc));
        json_object_set_new(j, "env", hn_environ_json(&e));
        return hn_json_printed(rc, hn_json_print(j));
    }
    print_report(&t, &e);
    if (rc == HN_EXIT_FAILURE) return hn_cli_error(rc, "the laboratory did not notice everything it must");
    if (rc == HN_EXIT_ENVIRONMENT)
        return hn_cli_error(rc, "this machine is too noisy now to see 5 %%, or something could not be tried");
    return rc;
}

const hn_command hn_command_lab_selftest = {
    .name = "lab selftest",
    .summary = "Prove that the laboratory notices what it must, on this machine, now",
    .args = NULL,
    .max_args = 2,
    .groups = groups,
    .examples = "hone lab selftest\nhone lab selftest --quick\n",
    .run = run,
};
