/* hone lab ab: two sides, interleaved, until there is a verdict. Owns options and words;
 * the measuring and judging is lab's. */
#include "cli/bench/bench_command.h"
#include "cli/lab/gate_settings.h"
#include "lab/judge/ab.h"
#include "lab/inside/kern.h"
#include "lab/machine/clock.h"
#include "lab/quality/paths.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_IDS = 16, MAX_RUNS = HN_AB_MAX_RUNS };

static const hn_opt ab_opts[] = {
    HN_OPT("cmd", NULL, FLAG, NULL, "A and B are shell commands"),
    HN_OPT("rounds", NULL, I32, "N", "rounds of the first look; up to three more looks double them if they must",
           .def = "20", .min = HN_AB_MIN_ROUNDS, .max = HN_AB_MAX_ROUNDS),
    HN_OPT("margin", NULL, F32, "E", "differences up to E do not matter (default: 0.02, single kernels 0.03)",
           .min = 0.0001, .max = 0.5),
    HN_OPT("metric", NULL, STR, "NAMES",
           "what to judge: wall, cpu, user, sys, rss of any process; decode, prefill, load, ttft, anon of a model; "
           "number:REGEX, a number that a command prints (default: what the bench is about; of commands wall time, "
           "with CPU time beside it)"),
    HN_OPT("higher", NULL, FLAG, NULL, "with number:REGEX: more is better"),
    HN_OPT("runs", NULL, I32, "N", "runs of each side in a round (default: as many as this machine needs now)",
           .min = 1, .max = MAX_RUNS),
    HN_OPT("within", NULL, CHOICE, "HOW",
           "what a round makes of its runs (default: best or median, or each run a round: what A says is steadiest)",
           .def = "auto", .choices = "auto|best|median|mean"),
    HN_OPT("seed", NULL, U64, "S", "seed of the order of the sides (default: another each time)", .max = 9e18),
    HN_OPT("allow-different", "--accept-quality", FLAG, NULL,
           "measure even if the sides answer differently, as kv=q8_0 and kv=f16 do; then neither is called better"),
    HN_OPT("strict", NULL, FLAG, NULL, "end with exit code 13 on a machine that is disturbed all the time"),
    HN_OPT("file", NULL, STR, "NAME", "append the records to benchmarks/NAME.jsonl; a NAME with a slash is a path",
           .def = "ab", .use = HN_USE_RECORDS),
    HN_OPT("no-store", NULL, FLAG, NULL, "keep no record"),
    HN_OPT_END,
};
static const hn_opt bench_opts[] = {
    HN_OPT("n-prompt", "-p", I32, "N", "e2e: tokens of the prompt; 0: none", .def = "128", .max = 1 << 24,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("n-gen", "-n", I32, "N", "e2e: tokens to generate; 0: none", .def = "64", .max = 1 << 24,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("depth", "-d", I32, "N", "e2e: tokens already in the cache", .def = "0", .max = 1 << 24,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("quality", NULL, CHOICE, "HOW", "the quality hash: full, or quick, which leaves out the long prompt",
           .def = "full", .choices = "full|quick", .forward = HN_FORWARD_QUALITY),
    HN_OPT("columns", NULL, I32, "N", "kern: columns of a product (default: 1 for gemv, 512 for gemm)", .min = 1,
           .max = 4096),
    HN_OPT("layout", NULL, CHOICE, "WHICH", "kern: layout of both sides where they name none",
           .choices = "plain|packed"),
    HN_OPT_END,
};
static const hn_opt_group ab_group = { "Comparison", ab_opts }, bench_group = { "What is measured", bench_opts };

typedef struct compare {
    const hn_cli *cli;
    hn_side *a, *b;
    hn_target target[MAX_IDS];
    size_t n_targets;
    hn_argv args[MAX_IDS]; /* options passed on */
    char regex[1024];
    hn_environ env;
    char base[4096]; /* "": no record */
    char quality[2][24], why[2][512];
    bool asked;     /* quality was */
    bool different; /* they answer differently */
} compare;

/* ---- what is asked for ----------------------------------------------------------------------- */

/* Options for `hone bench` on both sides, to each bench those that it takes; what a side says itself replaces them. The
 * plain run gets its lengths always, as other programs may have other defaults. */
static int pass_on(compare *c)
{
    const hn_opts *o = c->cli->opts;
    hone_error err;
    for (size_t i = 0; i < c->n_targets; i++) {
        hn_target *t = &c->target[i];
        hn_argv *a = &c->args[i];
        const hn_bench_entry *e = t->id ? hn_bench_find(t->id) : NULL;
        if (!t->id) break;
        if (!hn_bench_takes(t->id, "--model")) t->model = NULL;
        hn_opts_forward(o, HN_FORWARD_SETTINGS | HN_FORWARD_ADAPTERS | HN_FORWARD_QUALITY, false, a);
        hn_opts_forward(o, HN_FORWARD_LENGTHS, e && e->plain, a);
        if (t->columns) hn_argv_add(a, "--columns=%d", t->columns);
        if (t->layout) hn_argv_add(a, "--layout=%s", t->layout);
        if (hn_argv_check(a, "both sides", &err) != HONE_OK) return hn_cli_fail(&err);
        int n = 0;
        for (size_t k = 0; k < a->n && n + 1 < HN_SIDE_ARGS; k++)
            if (hn_bench_takes(t->id, a->word[k])) t->args[n++] = a->word[k];
    }
    return 0;
}

static int targets(compare *c)
{
    const hn_opts *o = c->cli->opts;
    bool cmd = hn_opts_flag(o, "cmd");
    const char *model = hn_opts_str(o, "model"), *metric = hn_opts_str(o, "metric");
    int ids = hn_opts_n_args(o) - 2;
    if (ids > MAX_IDS) return hn_cli_usage(c->cli, "%d benches at once; expected at most %d", ids, MAX_IDS);
    if (cmd && (ids > 0 || model))
        return hn_cli_usage(c->cli, "--cmd compares two shell commands; %s belongs to benches",
                            model ? "--model" : "an id");
    bool number = metric && strncmp(metric, "number:", 7) == 0;
    if (number && !cmd)
        return hn_cli_usage(c->cli, "--metric number:REGEX reads what a command prints; it needs --cmd");
    if (!cmd && ids == 0 && !model)
        return hn_cli_usage(c->cli, "nothing to measure: expected --model, ids of benches (hone lab list), or --cmd");
    c->n_targets = ids > 0 ? (size_t)ids : 1;
    for (size_t i = 0; i < c->n_targets; i++) {
        hn_target *t = &c->target[i];
        t->id = cmd ? NULL : ids > 0 ? hn_opts_arg(o, (int)i + 2) : hn_bench_plain()->id;
        const hn_bench_entry *e = t->id ? hn_bench_find(t->id) : NULL;
        if (e && e->model && !model) return hn_cli_usage(c->cli, "%s measures a model; --model is missing", e->id);
        t->model = model;
        t->threads = hn_opts_given(o, "threads") ? hn_opts_i32(o, "threads") : 0;
        t->columns = hn_opts_given(o, "columns") ? hn_opts_i32(o, "columns") : 0;
        t->layout = hn_opts_str(o, "layout");
        t->number = number ? metric + 7 : NULL;
        t->number_higher = hn_opts_flag(o, "higher");
        t->stop = hn_abort_fn;
        hn_kern k;
        hone_error err;
        if (t->id && strncmp(t->id, "kern.", 5) == 0 && hn_kern_parse(&k, t->id, &err) != HONE_OK)
            return hn_cli_usage(c->cli, "%s", err.message);
    }
    json_t *all = json_array();
    for (size_t i = 0; i < c->n_targets; i++)
        if (c->target[i].id) json_array_append_new(all, hn_lab_str(c->target[i].id));
    int rc = cmd ? 0 : hn_bench_check_options(c->cli, all);
    json_decref(all);
    return rc ? rc : pass_on(c);
}

/* A side that fails is a failure, whatever its own exit code meant. */
static int failed(const hone_error *err)
{
    int rc = hn_cli_fail(err);
    return rc == HN_EXIT_SIGINT ? HN_EXIT_INTERRUPTED : rc == HN_EXIT_MODEL ? HN_EXIT_FAILURE : rc;
}

/* ---- quality comes first ------------------------------------------------------------------------- */

/* The same hash of b proves as much as that of a: it went all of a's ways. */
static int all_ways(const compare *c)
{
    hn_proved proved;
    hn_sides_proved(&proved, (hn_side *const[]){ c->a, c->b });
    if (proved.untold[0]) hn_cli_note("quality: %s", proved.untold);
    if (!proved.less[0] || hn_opts_flag(c->cli->opts, "allow-different")) return 0;
    return hn_cli_error(HN_EXIT_INCONCLUSIVE,
                        "side b's answers were proved on fewer ways than side a's, so nothing was timed: %s; where "
                        "memory is short now, try again; --allow-different measures them all the same",
                        proved.less);
}

static int quality_of(compare *c, const hn_target *t)
{
    hone_error err;
    if (hn_sides_quality((hn_side *const[]){ c->a, c->b }, t, c->quality, c->why, &err) != HONE_OK) return failed(&err);
    c->asked = true;
    bool same = strcmp(c->quality[0], c->quality[1]) == 0, bad = c->why[0][0] || c->why[1][0];
    if (same && !bad) return all_ways(c);
    for (int i = 0; i < 2; i++)
        hn_cli_error(0, "quality of %c (%s): %s%s%s", "ab"[i], hn_side_label(i ? c->b : c->a),
                     c -> quality[i][0] ? c -> quality[i] : "no hash", c->why[i][0] ? ", INVALID: " : "", c->why[i]);
    if (c->why[0][0] && c->why[1][0])
        return hn_cli_error(HN_EXIT_FAILURE, "both sides give broken output; their speed means nothing");
    if (bad)
        return hn_cli_error(HN_EXIT_QUALITY, "side %c gives broken output; its speed means nothing",
                            c->why[0][0] ? 'a' : 'b');
    if (hn_q_same_answers(c->quality[0], c->quality[1]))
        hn_cli_error(0, "the same words were chosen in the samples, by other numbers");
    c->different = true;
    if (hn_opts_flag(c->cli->opts, "allow-different")) return 0;
    return hn_cli_error(HN_EXIT_QUALITY, "the sides do not compute the same numbers, so nothing was timed; "
                                         "--allow-different measures them all the same");
}

/* Once for each set of benches whose model is asked the same; what is shown is the first that differs, or the last. */
static int quality(compare *c)
{
    const hn_target *of[MAX_IDS];
    char shown[2][24] = { "" };
    size_t n = hn_targets_answering(of, c->target, c->n_targets);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        rc = quality_of(c, of[i]);
        if (strcmp(shown[0], shown[1]) == 0) memcpy(shown, c->quality, sizeof shown);
    }
    memcpy(c->quality, shown, sizeof shown);
    return rc;
}

/* ---- what a person sees ------------------------------------------------------------------------------ */

static void print_side(const compare *c, int i)
{
    json_t *o = hn_side_json(i ? c->b : c->a);
    const char *label = hn_side_label(i ? c->b : c->a), *version = json_string_value(json_object_get(o, "version")),
               *commit = json_string_value(json_object_get(o, "commit"));
    hn_out_printf("%c        %s", "ab"[i], HN_ESC(label, strlen(label)));
    if (version)
        hn_out_printf("  (%s %s%s%s)", json_string_value(json_object_get(o, "what")), version,
                      commit ? ", commit " : "", commit ? commit : "");
    if (json_is_true(json_object_get(o, "dirty"))) hn_out_printf(" with uncommitted changes");
    hn_out_printf("\n");
    json_decref(o);
}

static void print_line(const hn_ab_line *l)
{
    char noise[24] = "n/a", words[200];
    const hn_ab_result *r = &l->r;
    hn_ab_digits t = hn_ab_digits_of(l);
    if (isfinite(l->aa_half_width)) snprintf(noise, sizeof noise, "%.2g %%", 100 * l->aa_half_width);
    const hn_bench_entry *e = l->target->id ? hn_bench_find(l->target->id) : NULL;
    const char *id = l->target->id && !(e && e->plain) && strncmp(l->metric, l->target->id, strlen(l->target->id)) != 0
                         ? l->target->id
                         : "";
    const char *name = strlen(l->metric) > 16 ? "" : l->metric;
    if (id[0]) hn_out_printf("%s\n", id);
    if (!name[0]) hn_out_printf("%s\n", l->metric); /* on a line of its own */
    hn_out_printf("%-16s %12s %12s %-6s %8s  %-17s %5.2g %% %8s %7zu %6zu   %s%s%s%s\n", name, t.a, t.b, l->unit,
                  t.ratio, t.ci, 100 * r->margin, noise, r->n, l->voided, hn_ab_verdict_name(r->verdict),
                  hn_ab_note(r)[0] ? " (" : "", hn_ab_note(r), hn_ab_note(r)[0] ? ")" : "");
    if (hn_ab_say(words, sizeof words, l)[0]) hn_out_printf("%-16s %s\n", "", words);
}

/* Of what one run of a bench measures one line may need the best of a few, and another every run. */
static void print_rounds(const hn_ab_report *r)
{
    const hn_ab_line *l = &r->line[0];
    hn_out_printf("rounds   %d run%s of each side, order from seed %llu%s%s%s; look%s %d of %d\n", l->n_runs,
                  l->n_runs == 1 ? "" : "s", (unsigned long long)r->seed, l->n_runs > 1 ? ", the " : "",
                  l->n_runs > 1 ? hn_ab_within_name(l->within) : "", l->n_runs > 1 ? " counts" : "",
                  r->looks > 1 ? "s" : "", r->looks, HN_AB_LOOKS);
    for (size_t i = 1; i < r->n && r->line[i].target == l->target; i++) {
        const hn_ab_line *o = &r->line[i];
        if (o->n_runs == l->n_runs) continue;
        hn_out_printf("         %s: %d run%s%s%s%s\n", o->metric, o->n_runs, o->n_runs == 1 ? "" : "s",
                      o->n_runs > 1 ? ", the " : "", o->n_runs > 1 ? hn_ab_within_name(o->within) : "",
                      o->n_runs > 1 ? " counts" : "");
    }
    hn_out_printf("\n");
}

static void print_report(const compare *c, const hn_ab_report *r)
{
    print_side(c, 0);
    print_side(c, 1);
    if (c->asked && strcmp(c->quality[0], c->quality[1]) == 0)
        hn_out_printf("quality  %s, the same on both sides\n", c->quality[0]);
    else if (c->asked)
        hn_out_printf("quality  %s and %s: %s (accepted)\n", c->quality[0], c->quality[1],
                      hn_q_same_answers(c->quality[0], c->quality[1]) ? "THE SAME WORDS, BY OTHER NUMBERS"
                                                                      : "THE SIDES ANSWER DIFFERENTLY");
    if (r->n) print_rounds(r);
    hn_out_printf("%-16s %12s %12s %-6s %8s  %-17s %7s %8s %7s %6s   %s\n", "", "a", "b", "", "b/a", "interval",
                  "margin", "a/a", "rounds", "voided", "verdict");
    for (size_t i = 0; i < r->n; i++) print_line(&r->line[i]);
    hn_out_printf("\n");
    for (int i = 0; i < r->n_notes; i++) hn_out_printf("note     %s\n", r->note[i]);
    char doubt[HN_DOUBTS][400];
    for (int i = 0, n = hn_around_doubts(doubt, &c->env.around, c->env.cores); i < n; i++)
        hn_out_printf("note     %s\n", doubt[i]);
    hn_out_printf("verdict  %s\n", hn_ab_verdict_name(r->overall));
}

static int code_of(const hn_ab_report *r)
{
    if (r->interrupted) return HN_EXIT_INTERRUPTED;
    return r->overall == HN_AB_REGRESSED      ? HN_EXIT_REGRESSION
           : r->overall == HN_AB_INCONCLUSIVE ? HN_EXIT_INCONCLUSIVE
                                              : HN_EXIT_OK;
}

static int report(compare *c, const hn_ab_report *r)
{
    hone_error err;
    int rc = code_of(r);
    json_t *records = json_array();
    for (size_t i = 0; i < r->n; i++) json_array_append_new(records, hn_ab_record(r, &r->line[i], c->a, c->b, &c->env));
    size_t i;
    json_t *one;
    json_array_foreach(records, i, one) if (c->base[0] && hn_record_append(c->base, one, &err) != HONE_OK)
    {
        rc = hn_cli_fail(&err);
        break;
    }
    if (!c->cli->json) print_report(c, r);
    else {
        json_t *o = hn_json_new("hone.ab.report/1"), *notes = json_array();
        for (int k = 0; k < r->n_notes; k++) json_array_append_new(notes, hn_lab_str(r->note[k]));
        json_object_set_new(o, "verdict", json_string(hn_ab_verdict_name(r->overall)));
        json_object_set_new(o, "exit", json_integer(rc));
        json_object_set_new(o, "looks", json_integer(r->looks));
        json_object_set_new(o, "interrupted", json_boolean(r->interrupted));
        json_object_set_new(o, "quality", c->asked ? json_pack("[s,s]", c->quality[0], c->quality[1]) : json_null());
        json_object_set_new(o, "notes", notes);
        json_object_set(o, "records", records);
        rc = hn_json_printed(rc, hn_json_print(o));
    }
    json_decref(records);
    return rc;
}

/* ---- the command ----------------------------------------------------------------------------------------- */

void hn_ab_show_progress(void *unused, const hn_ab_progress *at)
{
    char label[160];
    if (hn_stderr_is_tty())
        hn_progress_fn((void *)(uintptr_t)hn_ab_say_progress(label, sizeof label, at), at->done, at->total);
}

static int measure(compare *c)
{
    const hn_opts *o = c->cli->opts;
    const char *within = hn_opts_str(o, "within"), *metric = hn_opts_str(o, "metric");
    hone_error err;
    hn_ab_params p = { .targets = c->target,
                       .n_targets = c->n_targets,
                       .a = c->a,
                       .b = c->b,
                       .rounds = (size_t)hn_opts_i32(o, "rounds"),
                       .margin = hn_opts_given(o, "margin") ? (double)hn_opts_f32(o, "margin") : 0,
                       .metrics = metric && strncmp(metric, "number:", 7) != 0 ? metric : NULL,
                       .seed = hn_opts_given(o, "seed") ? hn_opts_u64(o, "seed") : hn_rand64(hn_clock_ns(), 0) >> 1,
                       .runs = hn_opts_given(o, "runs") ? hn_opts_i32(o, "runs") : 0,
                       .strict = hn_opts_flag(o, "strict"),
                       .different = c->different,
                       .allowed = hn_opts_flag(o, "allow-different"),
                       .stop = hn_abort_fn,
                       .progress = hn_ab_show_progress };
    for (int w = HN_AB_AUTO; w <= HN_AB_MEAN; w++)
        if (strcmp(within, hn_ab_within_name((hn_ab_within)w)) == 0) p.within = (hn_ab_within)w;
    hn_ab_report r;
    hone_status st = hn_ab_run(&r, &p, &err);
    hn_progress_end();
    if (st == HONE_E_UNSUPPORTED && p.strict) return hn_cli_error(HN_EXIT_ENVIRONMENT, "%s", err.message);
    if (st == HONE_E_NUMERIC) return hn_cli_error(HN_EXIT_QUALITY, "%s", err.message);
    if (st != HONE_OK) return failed(&err);
    int rc = report(c, &r);
    hn_ab_report_free(&r);
    return rc;
}

static int run(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    hone_error err;
    compare c = { .cli = cli };
    if (hn_opts_flag(o, "no-store") && hn_opts_given(o, "file"))
        return hn_cli_usage(cli, "--no-store and --file contradict each other; give one of them");
    if (!hn_opts_flag(o, "no-store") && hn_record_base(c.base, sizeof c.base, hn_opts_str(o, "file"), &err) != HONE_OK)
        return hn_cli_usage(cli, "%s", err.message);
    int rc = targets(&c);
    hn_environ_read(&c.env);
    char doubt[HN_DOUBTS][400];
    if (rc == 0 && hn_opts_flag(o, "strict") && hn_around_doubts(doubt, &c.env.around, c.env.cores))
        rc = hn_cli_error(HN_EXIT_ENVIRONMENT, "%s (--strict)", doubt[0]);
    hn_side_params sp = { .command = hn_opts_flag(o, "cmd"), .stop = hn_abort_fn, .tell = hn_lab_tell };
    for (int i = 0; i < 2 && rc == 0; i++)
        if (hn_side_open(i ? &c.b : &c.a, hn_opts_arg(o, i), &sp, &err) != HONE_OK) rc = failed(&err);
    if (rc == 0) rc = quality(&c);
    if (rc == 0) rc = measure(&c);
    hn_side_close(c.a);
    hn_side_close(c.b);
    for (size_t i = 0; i < MAX_IDS; i++) hn_argv_free(&c.args[i]);
    return rc;
}

static const hn_opt_group *const groups[] = { &ab_group,    &hn_group_model,   &hn_group_lora,
                                              &bench_group, &hn_group_compute, NULL };
const hn_command hn_command_lab_ab = {
    .name = "lab ab",
    .summary = "Compare two configurations, programs, commits or commands, interleaved, until there is a verdict",
    .args = "A B [ID…]",
    .min_args = 2,
    .max_args = -1,
    .groups = groups,
    .examples = "hone lab ab threads=1 threads=2 -m model.gguf\n"
                "hone lab ab HEAD~1 this -m model.gguf -p 512 -n 32\n"
                "hone lab ab layout=plain layout=packed kern.gemv.Q4_K.8192x2048\n"
                "hone lab ab --cmd 'gzip -9 <f' 'zstd -19 <f' --metric user\n",
    .run = run,
};
