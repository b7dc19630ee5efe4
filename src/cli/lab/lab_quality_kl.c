/* hone lab quality kl: how far models are from a reference, over a text. The reference is a
 * model in this process, or a file of its logits. */
#include "cli/lab/quality_input.h"
#include "lab/machine/roof.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <math.h>
#include <stdlib.h>

static const hn_opt kl_opts[] = {
    HN_OPT("positions", NULL, I32, "N", "positions to compare at least; 0: all the text has", .def = "4096", .min = 0,
           .max = INT32_MAX),
    HN_OPT("ref-kv", NULL, CHOICE, "TYPE", "numbers in the reference's KV cache (default: as --kv)",
           .choices = "f16|f32|q8_0"),
    HN_OPT("ref-cpu", NULL, STR, "LEVEL", "kernel level of the reference (default: as --cpu)"),
    HN_OPT("ref-packed", NULL, FILE, "WHICH",
           "packed weights of the reference: auto, off or a file (default: as --packed)", .use = HN_USE_PACKED),
    HN_OPT("save", NULL, FILE, "FILE", "keep the reference's logits, for a REF without the model", .use = HN_USE_WRITE),
    HN_OPT("bits", NULL, CHOICE, "N", "of each logit that is saved; 16 is half the size and not exact", .def = "32",
           .choices = "32|16"),
    HN_OPT("gate", NULL, CHOICE, "WHICH",
           "exit with 12 unless this one passes: kernel, engine, or type with its budget",
           .choices = "kernel|engine|type"),
    HN_OPT("budget", NULL, F32, "X",
           "mean divergence that --gate type allows (default: twice what is usual for the type)", .min = 0, .max = 1e6),
    HN_OPT_END,
};
static const hn_opt_group kl_group = { "Comparison", kl_opts };
static const hn_opt model_opts[] = {
    HN_OPT("pre", NULL, STR, "KIND", "pre-tokenizer to use instead of the one the file names"),
    HN_OPT_END,
};
static const hn_opt_group model_group = { "Model", model_opts };
static const hn_opt_group *const groups[] = { &kl_group,    &hn_group_windows, &hn_group_record,
                                              &model_group, &hn_group_compute, NULL };

typedef struct job {
    const hn_cli *cli;
    const char *ref_path;
    hn_subject ref, *side;
    hn_kl *kl;
    int32_t n_side, n_vocab;
    hn_logits_file *in, *save;
    hn_logits_head head;
    hn_text text;
    hn_windows w;
    double started_ms, seconds;
    bool interrupted;
} job;

static const hn_subject_choice as_options;
static hn_subject_choice ref_choice(const job *j)
{
    const hn_opts *o = j->cli->opts;
    return (hn_subject_choice){ .path = j->ref_path,
                                .kv = hn_opts_str(o, "ref-kv"),
                                .cpu = hn_opts_str(o, "ref-cpu"),
                                .packed = hn_opts_str(o, "ref-packed") };
}

/* ---- gates ---------------------------------------------------------------------------------------- */

/* Mean divergence from F16 that Llama-3-8B has in these types (llama.cpp, tools/perplexity/README.md). */
static const struct {
    const char *type;
    double usual;
} types[] = {
    { "Q8_0", 0.0014 },   { "Q6_K", 0.0055 },   { "Q5_K_M", 0.0108 }, { "Q5_K_S", 0.0166 }, { "Q5_1", 0.0180 },
    { "Q5_0", 0.0222 },   { "Q4_K_M", 0.0313 }, { "Q4_K_S", 0.0431 }, { "Q4_1", 0.0717 },   { "Q4_0", 0.0719 },
    { "Q3_K_L", 0.0872 }, { "Q3_K_M", 0.102 },  { "Q3_K_S", 0.228 },
};

/* A kernel that is wrong at a few positions only moves the mean little, and those positions much: f32 keys and values
 * instead of f16 ones, as great a change of rounding as there is, move none by more than 3e-5. */
static const double kernel_limit = 1e-5, kernel_most = 1e-3, kernel_top = 0.999;
static const double engine_limit = 2e-3, engine_top = 0.98;

static double budget_of(const job *j, const char *type)
{
    if (hn_opts_given(j->cli->opts, "budget")) return (double)hn_opts_f32(j->cli->opts, "budget");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].type, type) == 0) return 2 * types[i].usual;
    return NAN;
}

enum { PASS, FAIL, UNKNOWN };
static const char *const verdicts[] = { "pass", "FAIL", "no budget" };

static int gate(const job *j, int32_t i, const char *which)
{
    const hn_kl *k = &j->kl[i];
    if (k->verdict.state == HN_INVALID || k->n == 0) return FAIL;
    bool alike = k->kl.mean <= kernel_limit && k->kl_max <= kernel_most && k->same_top >= kernel_top;
    if (strcmp(which, "kernel") == 0) return k->identical || alike ? PASS : FAIL;
    if (strcmp(which, "engine") == 0) return k->kl.mean <= engine_limit && k->same_top >= engine_top ? PASS : FAIL;
    double b = budget_of(j, j->side[i].info.type);
    return isnan(b) ? UNKNOWN : k->kl.mean <= b ? PASS : FAIL;
}

/* ---- results ------------------------------------------------------------------------------------------ */

static json_t *mean_json(const hn_mean *m)
{
    return json_pack("{s:o, s:o}", "mean", hn_lab_num(m->mean), "error", hn_lab_num(m->error));
}

static json_t *extra_json(const job *j, int32_t i)
{
    static const char *const names[HN_KL_QUANTILES] = { "p50", "p90", "p95", "p99", "p999" };
    const hn_kl *k = &j->kl[i];
    json_t *o = json_object(), *kl = mean_json(&k->kl), *gates = json_object();
    for (int q = 0; q < HN_KL_QUANTILES; q++) json_object_set_new(kl, names[q], hn_lab_num(k->kl_q[q]));
    json_object_set_new(kl, "max", hn_lab_num(k->kl_max));
    json_object_set_new(o, "reference",
                        j->in ? json_pack("{s:o, s:i}", "logits", hn_lab_str(j->head.label), "bits", (int)j->head.bits)
                              : hn_bench_model_json(j->ref.path, &j->ref.info));
    json_object_set_new(o, "positions", json_integer((json_int_t)k->n));
    json_object_set_new(o, "kl", kl);
    json_object_set_new(o, "max_window", json_integer((json_int_t)(k->max_row / hn_windows_scored(&j->w))));
    json_object_set_new(o, "max_token", json_integer((json_int_t)(j->w.first + k->max_row % hn_windows_scored(&j->w))));
    json_object_set_new(o, "identical", json_boolean(k->identical && k->n));
    json_object_set_new(
        o, "same_top1",
        json_pack("{s:o, s:o}", "share", hn_lab_num(k->same_top), "error", hn_lab_num(k->same_top_error)));
    json_object_set_new(o, "rms_dp",
                        json_pack("{s:o, s:o}", "value", hn_lab_num(k->rms_dp), "error", hn_lab_num(k->rms_dp_error)));
    json_object_set_new(o, "ln_ppl_ratio", mean_json(&k->ln_ratio));
    json_object_set_new(o, "ppl_ref", hn_lab_num(exp(k->nll_ref.mean)));
    json_object_set_new(o, "ppl_new", hn_lab_num(exp(k->nll_new.mean)));
    for (const char *const *g = (const char *const[]){ "kernel", "engine", "type", NULL }; *g; g++) {
        int v = gate(j, i, *g);
        json_object_set_new(gates, *g, v == UNKNOWN ? json_null() : json_boolean(v == PASS));
    }
    json_object_set_new(o, "gates", gates);
    json_object_set_new(o, "seconds", hn_lab_num(j->seconds));
    return o;
}

static json_t *record(const job *j, int32_t i)
{
    const hn_opts *o = j->cli->opts;
    const hn_kl *k = &j->kl[i];
    json_t *config = hn_subject_config(j->cli, &j->side[i], &as_options), *where = hn_windows_json(&j->w, &j->text);
    json_t *extra = extra_json(j, i), *model = hn_bench_model_json(j->side[i].path, &j->side[i].info);
    if (!j->in) {
        hn_subject_choice c = ref_choice(j);
        json_object_set_new(config, "reference", hn_subject_config(j->cli, &j->ref, &c));
    }
    json_object_update(config, where);
    json_decref(where);
    bool sound = k->n && k->verdict.state != HN_INVALID;
    hn_q_result q = { .id = "quality.kl",
                      .unit = "nats",
                      .value = sound ? k->kl.mean : NAN,
                      .error = sound ? k->kl.error : NAN,
                      .title = hn_opts_str(o, "title"),
                      .change = hn_opts_str(o, "change"),
                      .model = model,
                      .config = config,
                      .extra = extra,
                      .verdict = &k->verdict,
                      .partial = j->interrupted };
    json_t *r = hn_q_record(&q);
    json_decref(config);
    json_decref(extra);
    json_decref(model);
    return r;
}

static void print_gates(const job *j, int32_t i)
{
    const hn_kl *k = &j->kl[i];
    double b = budget_of(j, j->side[i].info.type);
    hn_out_printf("gates      own kernels changed: %s (mean <= %g, max <= %g, top-1 >= %g %%%s)\n",
                  verdicts[gate(j, i, "kernel")], kernel_limit, kernel_most, 100 * kernel_top,
                  k->identical ? "; every logit has the same bits" : "");
    hn_out_printf("           same weights, other engine: %s (mean <= %g, top-1 >= %g %%)\n",
                  verdicts[gate(j, i, "engine")], engine_limit, 100 * engine_top);
    if (isnan(b)) hn_out_printf("           weights as %s: no budget known; give --budget\n", j->side[i].info.type);
    else
        hn_out_printf("           weights as %s: %s (mean <= %g)\n", j->side[i].info.type, verdicts[gate(j, i, "type")],
                      b);
}

static void print_side(const job *j, int32_t i)
{
    const hn_kl *k = &j->kl[i];
    const char *path = j->side[i].path;
    char kv[24], a[80], b[80], c[80];
    hn_out_printf("\nmodel      %s: %s %s, %s, %s, %s weights\n", HN_ESC(path, strlen(path)), j->side[i].info.arch,
                  j->side[i].info.type, hn_kv_words(kv, &j->side[i].info, hn_opts_str(j->cli->opts, "kv")),
                  hone_context_cpu(j->side[i].ctx), hn_cli_weights(&j->side[i].info));
    if (k->verdict.state == HN_INVALID) hn_out_printf("INVALID    %s\n", k->verdict.reason);
    if (k->n == 0) return;
    hn_out_printf("KL         mean %s, median %.3g, p99 %.3g, p99.9 %.3g, max %.3g (window %lld, token %lld)\n",
                  hn_digits_error(a, sizeof a, k->kl.mean, k->kl.error), k->kl_q[0], k->kl_q[3], k->kl_q[4], k->kl_max,
                  (long long)(k->max_row / hn_windows_scored(&j->w)),
                  (long long)(j->w.first + k->max_row % hn_windows_scored(&j->w)));
    hn_out_printf("same top-1 %s %%\n", hn_digits_error(a, sizeof a, 100 * k->same_top, 100 * k->same_top_error));
    hn_out_printf("RMS dp     %s %%\n", hn_digits_error(a, sizeof a, 100 * k->rms_dp, 100 * k->rms_dp_error));
    double ppl = exp(k->nll_new.mean), ref = exp(k->nll_ref.mean); /* error of exp(x): exp(x) times that of x */
    hn_out_printf("perplexity %s, reference %s; ln of the ratio %s\n",
                  hn_digits_error(a, sizeof a, ppl, ppl * k->nll_new.error),
                  hn_digits_error(b, sizeof b, ref, ref * k->nll_ref.error),
                  hn_digits_error(c, sizeof c, k->ln_ratio.mean, k->ln_ratio.error));
    print_gates(j, i);
}

static void print_report(const job *j)
{
    int64_t n = j->n_side ? j->kl[0].n : hn_windows_rows(&j->w);
    hn_subject_choice c = ref_choice(j);
    const char *path = j->ref_path;
    char kv[24];
    if (j->in)
        hn_out_printf("reference  %s: logits of %s, %d bits\n", HN_ESC(path, strlen(path)),
                      HN_ESC(j->head.label, strlen(j->head.label)), j->head.bits);
    else
        hn_out_printf("reference  %s: %s %s, %s, %s, %s weights\n", HN_ESC(path, strlen(path)), j->ref.info.arch,
                      j->ref.info.type, hn_kv_words(kv, &j->ref.info, c.kv ? c.kv : hn_opts_str(j->cli->opts, "kv")),
                      hone_context_cpu(j->ref.ctx), hn_cli_weights(&j->ref.info));
    hn_out_printf("text       %s: %lld tokens; %lld windows of %d, %d scored in each: %lld positions in %.1f s\n",
                  j->text.name, (long long)j->w.n_ids, (long long)j->w.n_window, j->w.n_ctx, hn_windows_scored(&j->w),
                  (long long)n, j->seconds);
    for (int32_t i = 0; i < j->n_side; i++) print_side(j, i);
}

/* ---- running ---------------------------------------------------------------------------------------------- */

static void show_progress(void *arg, int64_t done, int64_t of, double mean)
{
    char label[160];
    const job *j = arg;
    double s = (hn_now_ms() - j->started_ms) * 1e-3;
    snprintf(label, sizeof label, "window %lld of %lld, mean divergence so far %.4g, %.0f s left;", (long long)done,
             (long long)of, mean, done ? s / (double)done * (double)(of - done) : 0.0);
    hn_progress_fn(label, (uint64_t)done, (uint64_t)of);
}

static int open_reference(job *j)
{
    const hn_cli *cli = j->cli;
    hone_error err;
    int rc;
    if (hn_logits_is_file(j->ref_path)) {
        for (const char *const *o = (const char *const[]){ "text", "ids", "ctx-size", "chunks", "stride", "positions",
                                                           "ref-kv", "ref-cpu", "ref-packed", "save", NULL };
             *o; o++)
            if (hn_opts_given(cli->opts, *o))
                return hn_cli_usage(cli,
                                    "--%s: %s already says which text; expected no such option with a file of logits",
                                    *o, HN_ESC(j->ref_path, strlen(j->ref_path)));
        if (hn_logits_open(&j->in, j->ref_path, &j->head, &j->w, &err) != HONE_OK) return hn_cli_fail_model(&err);
        j->n_vocab = j->head.n_vocab;
        snprintf(j->text.name, sizeof j->text.name, "as saved");
        return 0;
    }
    hn_subject_choice c = ref_choice(j);
    if ((rc = hn_subject_open_model(cli, &j->ref, &c)) ||
        (rc = hn_cli_text(cli, j->ref.m, HN_ESC(j->ref_path, strlen(j->ref_path)), &j->text)))
        return rc;
    j->n_vocab = j->ref.info.n_vocab;
    int64_t most = hn_opts_i32(cli->opts, "chunks"), want = hn_opts_i32(cli->opts, "positions");
    if ((rc = hn_cli_windows(cli, &j->text, most, &j->w))) return rc;
    int64_t enough = (want + hn_windows_scored(&j->w) - 1) / hn_windows_scored(&j->w);
    if (!most && want && enough < j->w.n_window) j->w.n_window = enough;
    if (!most && want && hn_windows_rows(&j->w) < want)
        hn_cli_note("%lld positions instead of %lld: that is all there is", (long long)hn_windows_rows(&j->w),
                    (long long)want);
    return 0;
}

static int check_vocabulary(const job *j, const hn_subject *s)
{
    hone_error err;
    unsigned char mine[32], none[32] = { 0 };
    if (!j->in)
        return hn_vocab_compare(j->ref.m, HN_ESC(j->ref_path, strlen(j->ref_path)), s->m,
                                HN_ESC(s->path, strlen(s->path)), &err) == HONE_OK
                   ? 0
                   : hn_cli_fail(&err);
    if (s->info.n_vocab != j->n_vocab)
        return hn_cli_error(HN_EXIT_USAGE, "different vocabularies: the logits are of %d tokens, %s has %d", j->n_vocab,
                            HN_ESC(s->path, strlen(s->path)), s->info.n_vocab);
    if (hn_vocab_hash(mine, s->m) && memcmp(j->head.vocab, none, 32) != 0 && memcmp(j->head.vocab, mine, 32) != 0)
        return hn_cli_error(HN_EXIT_USAGE, "different vocabularies: the ids of the logits do not mean the same in %s",
                            HN_ESC(s->path, strlen(s->path)));
    return 0;
}

static int open_all(job *j)
{
    const hn_cli *cli = j->cli;
    const char *save = hn_opts_str(cli->opts, "save");
    int n = hn_opts_n_args(cli->opts) - 1, rc;
    bool self = hn_opts_given(cli->opts, "ref-kv") || hn_opts_given(cli->opts, "ref-cpu") ||
                hn_opts_given(cli->opts, "ref-packed");
    hone_error err;
    j->ref_path = hn_opts_arg(cli->opts, 0);
    if (n == 0 && !self && !save)
        return hn_cli_usage(
            cli, "nothing to compare with; expected REF and MODEL, or --ref-kv, --ref-cpu, --ref-packed or --save");
    j->n_side = n ? n : self;
    if ((rc = open_reference(j))) return rc;
    j->side = calloc((size_t)j->n_side + 1, sizeof *j->side);
    j->kl = calloc((size_t)j->n_side + 1, sizeof *j->kl);
    if (!j->side || !j->kl) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %d models", j->n_side);
    int32_t n_seq = hn_subject_sequences(cli, &j->w);
    hn_subject_choice c = ref_choice(j);
    if (!j->in && (rc = hn_subject_start(cli, &j->ref, &c, j->w.n_ctx, n_seq))) return rc;
    for (int32_t i = 0; i < j->n_side; i++) {
        hn_subject_choice model = { .path = n ? hn_opts_arg(cli->opts, i + 1) : j->ref_path };
        if ((rc = hn_subject_open_model(cli, &j->side[i], &model)) || (rc = check_vocabulary(j, &j->side[i])) ||
            (rc = hn_subject_start(cli, &j->side[i], &model, j->w.n_ctx, n_seq)))
            return rc;
    }
    if (!save) return 0;
    j->head = (hn_logits_head){ .bits = strcmp(hn_opts_str(cli->opts, "bits"), "16") == 0 ? 16 : 32,
                                .n_vocab = j->n_vocab,
                                .fingerprint = j->ref.info.fingerprint };
    hn_vocab_hash(j->head.vocab, j->ref.m);
    snprintf(j->head.label, sizeof j->head.label, "%.80s, kv %s, %s",
             strrchr(j->ref_path, '/') ? strrchr(j->ref_path, '/') + 1 : j->ref_path,
             c.kv ? c.kv : hn_opts_str(cli->opts, "kv"), hone_context_cpu(j->ref.ctx));
    return hn_logits_create(&j->save, save, &j->head, &j->w, &err) == HONE_OK ? 0 : hn_cli_fail(&err);
}

static int judge(job *j)
{
    const char *which = hn_opts_str(j->cli->opts, "gate");
    int rc = 0;
    for (int32_t i = 0; i < j->n_side; i++) {
        hn_kl *k = &j->kl[i];
        const char *path = j->side[i].path;
        if (k->verdict.state == HN_INVALID)
            rc = hn_cli_error(which ? HN_EXIT_QUALITY : HN_EXIT_FAILURE, "%s: invalid: %s", HN_ESC(path, strlen(path)),
                              k->verdict.reason);
        else if (which && gate(j, i, which) == UNKNOWN)
            rc = hn_cli_usage(j->cli, "--gate type: no budget is known for %s; give --budget", j->side[i].info.type);
        else if (which && gate(j, i, which) == FAIL)
            rc = hn_cli_error(HN_EXIT_QUALITY, "%s: gate %s failed: mean divergence %.3g, greatest %.3g, top-1 %.2f %%",
                              HN_ESC(path, strlen(path)), which, k->kl.mean, k->kl_max, 100 * k->same_top);
    }
    return rc;
}

static int compare(job *j)
{
    hone_error err;
    hn_kl_side ref = { .src = j->in ? NULL : &j->ref.src, .file = j->in, .save = j->save },
               *side = calloc((size_t)j->n_side + 1, sizeof *side);
    const hone_context *ctx = j->in ? j->side[0].ctx : j->ref.ctx;
    hn_force_params p = { .n_batch = hn_opts_i32(j->cli->opts, "chunk"),
                          .n_threads = hone_context_threads_batch(ctx),
                          .progress = show_progress,
                          .progress_arg = j };
    if (!side) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %d models", j->n_side);
    for (int32_t i = 0; i < j->n_side; i++) side[i].src = &j->side[i].src;
    j->started_ms = hn_now_ms();
    hone_status st = hn_kl_run(j->kl, &j->w, &ref, side, j->n_side, j->n_vocab, &p, &err);
    j->seconds = (hn_now_ms() - j->started_ms) * 1e-3;
    free(side);
    hn_progress_end();
    j->interrupted = st == HONE_E_INTERRUPTED;
    if (st == HONE_E_FORMAT) return hn_cli_fail_model(&err);
    if (st != HONE_OK && !j->interrupted) return hn_cli_fail(&err);
    if (st == HONE_OK && j->save && hn_logits_finish(j->save, &err) != HONE_OK) {
        bool complete = true;
        for (int32_t i = 0; i < j->n_side; i++) complete = complete && j->kl[i].verdict.state != HN_INVALID;
        if (complete) return hn_cli_fail(&err);
    }
    json_t *records = json_array();
    for (int32_t i = 0; i < j->n_side; i++) {
        hn_verdict *v = &j->kl[i].verdict;
        if (v->state == HN_UNCHECKED && !j->interrupted) v->state = HN_VALID;
        if (v->state == HN_UNCHECKED) snprintf(v->reason, sizeof v->reason, "interrupted");
        json_array_append_new(records, record(j, i));
    }
    if (!j->cli->json) print_report(j);
    int rc = hn_cli_records(j->cli, records);
    if (j->interrupted)
        return hn_cli_error(HN_EXIT_INTERRUPTED, "interrupted%s", j->save ? "; no logits were saved" : "");
    int judged = judge(j);
    return judged ? judged : rc;
}

static int run(const hn_cli *cli)
{
    job j = { .cli = cli };
    int rc = open_all(&j);
    if (rc == 0) rc = compare(&j);
    hn_logits_close(j.in);
    hn_logits_close(j.save);
    for (int32_t i = 0; i < j.n_side && j.side; i++) hn_subject_close(&j.side[i]);
    free(j.side);
    free(j.kl);
    hn_windows_free(&j.w);
    hn_text_free(&j.text);
    hn_subject_close(&j.ref);
    return rc;
}

const hn_command hn_command_lab_quality_kl = {
    .name = "lab quality kl",
    .summary = "Divergence of models from a reference, over a text",
    .args = "REF [MODEL…]",
    .min_args = 1,
    .max_args = 64,
    .groups = groups,
    .reads_args = true,
    .names_args = true,
    .examples = "hone lab quality kl model-f16.gguf model-q8_0.gguf model-q4_k_m.gguf\n"
                "hone lab quality kl model.gguf --ref-kv f16 --kv q8_0\n"
                "hone lab quality kl model-f16.gguf --save f16.logits\n"
                "hone lab quality kl f16.logits model-q8_0.gguf --gate type\n",
    .run = run,
};
