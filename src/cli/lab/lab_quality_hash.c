/* hone lab quality hash and similar: the eight fixed prompts, answered, kept and compared. */
#include "cli/lab/quality_input.h"
#include "cli/lab/quality_paths.h"
#include "lab/judge/baseline.h"
#include "lab/quality/quality.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <math.h>
#include <stdlib.h>

static const hn_opt hash_opts[] = {
    HN_OPT("save", NULL, FILE, "FILE", "keep the answers, with a sketch of their logits, for --against",
           .use = HN_USE_WRITE),
    HN_OPT("against", NULL, FILE, "FILE", "compare with saved answers; exit with 12 if it is not the same"),
    HN_OPT("tolerance", NULL, F32, "X",
           "with --against, the same answers are good enough if no log-probability in the sketch moved by more than X",
           .def = "0", .min = 0, .max = 1e6),
    HN_OPT("draw", NULL, U64, "N", "draw what an earlier run drew, which says the number"),
    HN_OPT_END,
};
static const hn_opt_group hash_group = { "Comparison", hash_opts };
static const hn_opt pre_opts[] = {
    HN_OPT("pre", NULL, STR, "KIND", "pre-tokenizer to use instead of the one the file names"),
    HN_OPT_END,
};
static const hn_opt_group pre_group = { "Model", pre_opts };
static const hn_opt_group *const hash_groups[] = { &hn_group_model,  &hn_group_lora,    &hash_group,
                                                   &hn_group_record, &hn_group_compute, NULL };
static const hn_opt_group *const similar_groups[] = { &hn_group_record, &pre_group, &hn_group_compute, NULL };

static void forget(hn_answers *a)
{
    if (a) hn_answers_free(a);
    free(a);
}

/* What the answers prove less than older ones. */
static void prove(hn_proved *out, const hn_answers *old, const hn_answers *now)
{
    json_t *a = old->covers ? json_copy(old->covers) : json_object(),
           *b = now->covers ? json_copy(now->covers) : json_object();
    json_object_set_new(a, "outer", hn_outer_json(&old->outer));
    json_object_set_new(b, "outer", hn_outer_json(&now->outer));
    hn_quality_proved(out, a, b);
    json_decref(a);
    json_decref(b);
}

/* Runs the prompts, and with paths the long one on all ways; the model is closed again. */
static int ask(const hn_cli *cli, const char *path, hn_answers *out, hn_paths *paths)
{
    static hn_q_prompts prompts;
    const hn_subject_choice choice = { .path = path };
    hn_subject s = { 0 };
    hone_error err;
    int32_t longest = 0;
    int rc = hn_subject_open_model(cli, &s, &choice);
    if (rc == 0 && hn_q_prompts_make(&prompts, s.m, &err) != HONE_OK) rc = hn_cli_fail(&err);
    for (int p = 0; p < HN_Q_PROMPTS; p++)
        if (prompts.n[p] > longest) longest = prompts.n[p];
    if (rc == 0) rc = hn_subject_start(cli, &s, &choice, longest + HN_Q_STEPS, HN_Q_PROMPTS);
    if (rc == 0) {
        hn_logits_source src = { .n_vocab = s.info.n_vocab, .run = hn_subject_decode, .arg = s.s };
        if (hn_answers_run(out, &src, &prompts, &err) != HONE_OK) rc = hn_cli_fail(&err);
    }
    if (rc == 0 && paths) {
        hone_session_free(s.s); /* its memory is wanted */
        s.s = NULL;
        rc = hn_cli_paths(cli, s.m, &prompts, &out->q, false, paths);
        if (rc == 0) snprintf(out->full, sizeof out->full, "%s", paths->hash);
        if (rc == 0) out->outer = paths->outer;
        if (rc == 0) out->covers = hn_cli_covers_json(paths);
        if (rc == 0 && paths->verdict.state == HN_INVALID) out->q.verdict = paths->verdict;
        if (rc == 0 && !paths->hash[0]) out->q.hash[0] = 0; /* answers that contradict each other have none */
    }
    if (rc == 0) {
        const char *slash = strrchr(s.path, '/');
        hn_vocab_hash(out->vocab, s.m);
        snprintf(out->label, sizeof out->label, "%.80s, %s", slash ? slash + 1 : s.path, hone_context_cpu(s.ctx));
        out->model = hn_bench_model_json(s.path, &s.info);
        out->config = hn_subject_config(cli, &s, &choice);
        json_object_set_new(out->config, "sampler", json_string("greedy"));
    }
    hn_subject_close(&s);
    return rc;
}

/* A model, or answers that were saved. */
static int answers_of(const hn_cli *cli, const char *path, hn_answers **out, hn_paths *paths)
{
    hone_error err;
    *out = calloc(1, sizeof **out);
    if (!*out) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the answers");
    if (!path || !hn_answers_is_file(path)) return ask(cli, path, *out, paths);
    return hn_answers_load(*out, path, &err) == HONE_OK ? 0 : hn_cli_fail(&err);
}

/* What both may be known by: the hash of all ways, or of the eight prompts alone. */
static const char *shown_hash(const hn_answers *a) { return a->full[0] ? a->full : a->q.hash; }

/* ---- hash ----------------------------------------------------------------------------------- */

static void print_difference(const hn_answers_diff *d, const char *less)
{
    static const char *const words[] = { "same: every answer and every logit that is hashed",
                                         "numerics moved: the same answers from other logits", "different answers" };
    if (d->what == HN_SAME && less[0]) {
        hn_out_printf("verdict  open: the same answers, proved on fewer ways\n");
        return;
    }
    hn_out_printf("verdict  %s\n", words[d->what]);
    if (d->outer) {
        hn_out_printf("         the model answers the same, and around it something does not: %s\n", d->outer);
        return;
    }
    if (d->beyond) {
        hn_out_printf("         the eight prompts do not show it: the long one does, of which there is no sketch\n");
        return;
    }
    if (d->what == HN_DIFFERENT)
        hn_out_printf("         %d of %d prompts; first in prompt %d at step %d: token %d became %d\n", d->n_diverged,
                      HN_Q_PROMPTS, d->prompt, d->step, d->id_a, d->id_b);
    if (d->what != HN_SAME)
        hn_out_printf(
            "sketch   %d steps of equal context: logits moved by up to %.3g, log-probabilities by %.3g (prompt %d, "
            "step %d), probabilities by %.3g;\n"
            "         divergence at least %.3g on average, %.3g at most; hone lab quality kl says it exactly\n",
            d->n_steps, d->max_dlogit, d->max_dlogp, d->at_prompt, d->at_step, d->max_dp, d->kl_mean, d->kl_max);
}

static int judge(const hn_cli *cli, const hn_answers *now, const hn_answers_diff *d)
{
    double tolerance = (double)hn_opts_f32(cli->opts, "tolerance");
    if (now->q.verdict.state == HN_INVALID)
        return hn_cli_error(d ? HN_EXIT_QUALITY : HN_EXIT_FAILURE, "invalid: %s", now->q.verdict.reason);
    bool small = d && d->what == HN_NUMERICS && !d->beyond && d->max_dlogp <= tolerance && tolerance > 0;
    if (!d || d->what == HN_SAME || small) return 0;
    return hn_cli_error(HN_EXIT_QUALITY, "quality changed: %s",
                        d->what == HN_DIFFERENT ? "different answers" : "the same answers from other logits");
}

static int finish_hash(const hn_cli *cli, const hn_answers *now, const hn_answers *old)
{
    hone_error err;
    hn_answers_diff d;
    const hn_opts *o = cli->opts;
    hn_proved proved = { .less = "" };
    const char *save = hn_opts_str(o, "save");
    bool broken = !now->q.hash[0];
    if (old && !broken && hn_answers_compare(&d, old, now, &err) != HONE_OK) return hn_cli_fail(&err);
    if (broken) d = (hn_answers_diff){ .what = HN_DIFFERENT };
    if (old) prove(&proved, old, now);
    if (!broken && proved.untold[0]) hn_cli_note("%s", proved.untold);
    const char *less = proved.less;
    if (save && !broken && hn_answers_save(now, save, &err) != HONE_OK) return hn_cli_fail(&err);
    json_t *extra = hn_answers_json(now, false); /* a sketch is too long for a history */
    json_object_del(extra, "schema");
    if (old) {
        json_object_set_new(extra, "against", hn_lab_str(shown_hash(old)));
        json_object_set_new(extra, "difference", broken ? json_null() : hn_answers_diff_json(&d));
        json_object_set_new(extra, "less", less[0] ? hn_lab_str(less) : json_null());
    }
    hn_q_result q = { .id = "quality.hash",
                      .unit = "count",
                      .value = now->q.n_distinct,
                      .error = NAN,
                      .higher = true,
                      .title = hn_opts_str(o, "title"),
                      .change = hn_opts_str(o, "change"),
                      .quality = broken ? NULL : shown_hash(now),
                      .model = now->model,
                      .config = now->config,
                      .extra = extra,
                      .verdict = &now->q.verdict };
    int rc = hn_cli_records(cli, json_pack("[o]", hn_q_record(&q)));
    json_decref(extra);
    if (!cli->json) {
        hn_out_printf("hash     %s  (%s)\n", broken ? "none" : shown_hash(now), HN_ESC(now->label, strlen(now->label)));
        if (old) hn_out_printf("against  %s  (%s)\n", shown_hash(old), HN_ESC(old->label, strlen(old->label)));
        if (old && !broken) print_difference(&d, less);
    }
    int judged = judge(cli, now, old ? &d : NULL);
    if (judged || broken || rc || !less[0]) return judged ? judged : rc;
    return hn_cli_error(HN_EXIT_INCONCLUSIVE, "the same answers, proved on fewer ways: %s", less);
}

static int run_hash(const hn_cli *cli)
{
    hn_answers *now = NULL, *old = NULL;
    hn_paths paths;
    const char *against = hn_opts_str(cli->opts, "against"), *file = hn_opts_arg(cli->opts, 0);
    if (file && hn_opts_given(cli->opts, "model"))
        return hn_cli_usage(cli, "-m and a file of answers contradict each other; give one of them");
    if (file && !hn_answers_is_file(file))
        return hn_cli_usage(cli, "%s holds no answers; expected a file of --save, or -m MODEL",
                            HN_ESC(file, strlen(file)));
    if (file && hn_opts_count(cli->opts, "lora") > 0)
        return hn_cli_usage(cli,
                            "--lora has no effect on a file of answers, which were given before; expected -m MODEL");
    if (file && hn_opts_given(cli->opts, "draw"))
        return hn_cli_usage(cli,
                            "--draw has no effect on a file of answers, which were given before; expected -m MODEL");
    int rc = 0;
    if (against && !hn_answers_is_file(against))
        rc = hn_cli_usage(cli, "--against %s: no answers of --save there", HN_ESC(against, strlen(against)));
    if (rc == 0 && against) rc = answers_of(cli, against, &old, NULL); /* first: a broken file costs no run */
    if (rc == 0) rc = answers_of(cli, file, &now, &paths);
    if (rc == 0) rc = finish_hash(cli, now, old);
    forget(now);
    forget(old);
    return rc;
}

/* ---- similar -------------------------------------------------------------------------------------- */

static int finish_similar(const hn_cli *cli, hn_answers *const *x)
{
    const hn_opts *o = cli->opts;
    const hn_answers *a = x[0], *b = x[1];
    hn_answers_diff d;
    hone_error err;
    double each[HN_Q_PROMPTS], least = 1;
    if (hn_answers_compare(&d, a, b, &err) != HONE_OK) return hn_cli_fail(&err);
    json_t *list = json_array();
    for (int p = 0; p < HN_Q_PROMPTS; p++) {
        each[p] = hn_id_similarity(a->q.ids[p], HN_Q_STEPS, b->q.ids[p], HN_Q_STEPS);
        least = fmin(least, each[p]);
        json_array_append_new(list, hn_lab_num(each[p]));
    }
    double mean = hn_mean_of(each, HN_Q_PROMPTS).mean;
    const hn_verdict *bad = b->q.verdict.state == HN_INVALID ? &b->q.verdict : &a->q.verdict;
    json_t *extra = json_pack("{s:o, s:o, s:o, s:o, s:s}", "prompts", list, "least", hn_lab_num(least), "reference",
                              hn_lab_str(a->label), "first_divergence", hn_answers_diff_json(&d), "stop_gap",
                              "counts equal ids; says nothing about how likely the others were");
    hn_q_result q = { .id = "quality.similar",
                      .unit = "1",
                      .value = mean,
                      .error = NAN,
                      .title = hn_opts_str(o, "title"),
                      .change = hn_opts_str(o, "change"),
                      .quality = b->q.hash,
                      .model = b->model,
                      .config = b->config,
                      .extra = extra,
                      .verdict = bad,
                      .higher = true };
    int rc = hn_cli_records(cli, json_pack("[o]", hn_q_record(&q)));
    json_decref(extra);
    if (!cli->json) {
        hn_out_printf("A        %s  (%s)\nB        %s  (%s)\n", a->q.hash, HN_ESC(a->label, strlen(a->label)),
                      b->q.hash, HN_ESC(b->label, strlen(b->label)));
        hn_out_printf("similar  %.4f on average, %.4f at least; by prompt", mean, least);
        for (int p = 0; p < HN_Q_PROMPTS; p++) hn_out_printf(" %.2f", each[p]);
        hn_out_printf("\nnote     a stop-gap: equal ids of greedy answers. Where both models are at hand, hone lab "
                      "quality kl is the measure.\n");
    }
    if (bad->state == HN_INVALID) return hn_cli_error(HN_EXIT_FAILURE, "invalid: %s", bad->reason);
    return rc;
}

static int run_similar(const hn_cli *cli)
{
    hn_answers *x[2] = { NULL, NULL };
    int rc = 0;
    for (int i = 0; i < 2 && rc == 0; i++) rc = answers_of(cli, hn_opts_arg(cli->opts, i), &x[i], NULL);
    if (rc == 0) rc = finish_similar(cli, x);
    forget(x[0]);
    forget(x[1]);
    return rc;
}

const hn_command hn_command_lab_quality_hash = {
    .name = "lab quality hash",
    .summary = "The quality hash; with --against, what changed",
    .args = "[ANSWERS]",
    .max_args = 1,
    .groups = hash_groups,
    .reads_args = true,
    .examples = "hone lab quality hash -m model.gguf --save before.json\n"
                "hone lab quality hash -m model.gguf --against before.json\n"
                "hone lab quality hash after.json --against before.json\n",
    .run = run_hash,
};
const hn_command hn_command_lab_quality_similar = {
    .name = "lab quality similar",
    .summary = "How many ids of two models' greedy answers are equal (a stop-gap)",
    .args = "A B",
    .min_args = 2,
    .max_args = 2,
    .groups = similar_groups,
    .examples = "hone lab quality similar model-f16.gguf model-q4_k_m.gguf\n",
    .run = run_similar,
};
