/* hone perplexity: how well a model foresees a text, in llama.cpp's convention, so that
 * figures compare. */
#include "cli/lab/quality_input.h"
#include "lab/machine/roof.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"
#include "lab/stats/verdict.h"

#include <math.h>
#include <stdlib.h>

static const hn_opt_group *const groups[] = { &hn_group_model,  &hn_group_lora,    &hn_group_windows,
                                              &hn_group_record, &hn_group_compute, NULL };

static const hn_subject_choice as_options;

typedef struct job {
    const hn_cli *cli;
    hn_subject side;
    hn_text text;
    hn_windows w;
    hn_ppl ppl;
    double started_ms, seconds;
    bool interrupted;
} job;

static void show_progress(void *arg, int64_t done, int64_t of, double ppl)
{
    char label[160];
    job *j = arg;
    double s = (hn_now_ms() - j->started_ms) * 1e-3;
    snprintf(label, sizeof label, "window %lld of %lld, perplexity so far %.4f, %.0f s left;", (long long)done,
             (long long)of, ppl, done ? s / (double)done * (double)(of - done) : 0.0);
    hn_progress_fn(label, (uint64_t)done, (uint64_t)of);
}

static json_t *extra_json(const job *j)
{
    json_t *running = json_array(), *each = json_array();
    int32_t n = hn_windows_scored(&j->w);
    for (int64_t i = 0; i < j->ppl.n_window; i++) {
        json_array_append_new(running, json_real(hn_ppl_after(&j->ppl, &j->w, i + 1)));
        json_array_append_new(each, json_real(hn_mean_of(j->ppl.nll + i * n, n).mean));
    }
    return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "scored", (json_int_t)j->ppl.n, "windows_done",
                     (json_int_t)j->ppl.n_window, "nll", hn_lab_num(j->ppl.mean.mean), "nll_error",
                     hn_lab_num(j->ppl.mean.error), "ppl_running", running, "nll_windows", each, "seconds",
                     hn_lab_num(j->seconds));
}

static json_t *record(const job *j)
{
    const hn_opts *o = j->cli->opts;
    json_t *config = hn_subject_config(j->cli, &j->side, &as_options), *where = hn_windows_json(&j->w, &j->text);
    json_t *extra = extra_json(j), *model = hn_bench_model_json(j->side.path, &j->side.info);
    json_object_update(config, where);
    json_decref(where);
    hn_q_result q = { .id = "quality.ppl",
                      .unit = "1",
                      .value = j->ppl.n ? j->ppl.ppl : NAN,
                      .error = j->ppl.error,
                      .title = hn_opts_str(o, "title"),
                      .change = hn_opts_str(o, "change"),
                      .model = model,
                      .config = config,
                      .extra = extra,
                      .verdict = &j->ppl.verdict,
                      .partial = j->interrupted };
    json_t *r = hn_q_record(&q);
    json_decref(config);
    json_decref(extra);
    json_decref(model);
    return r;
}

static void print_report(const job *j)
{
    const hn_ppl *p = &j->ppl;
    const char *path = j->side.path;
    char kv[24], ppl[80];
    hn_out_printf("model      %s: %s %s, %s, %s\n", HN_ESC(path, strlen(path)), j->side.info.arch, j->side.info.type,
                  hn_kv_words(kv, &j->side.info, hn_opts_str(j->cli->opts, "kv")), hone_context_cpu(j->side.ctx));
    char adapters[512];
    if (*hn_cli_adapters_words(adapters, sizeof adapters)) hn_out_printf("adapters   %s\n", adapters + 2);
    hn_out_printf("text       %s: %lld tokens, %s\n", j->text.name, (long long)j->w.n_ids,
                  j->w.bos >= 0 ? "each window begins with BOS" : "no BOS");
    hn_out_printf("windows    %lld of %lld, %d tokens each, %d scored: %lld in %.1f s\n", (long long)p->n_window,
                  (long long)j->w.n_possible, j->w.n_ctx, hn_windows_scored(&j->w), (long long)p->n, j->seconds);
    if (j->cli->verbose)
        for (int64_t i = 0; i < p->n_window; i++)
            hn_out_printf("[%lld] %s\n", (long long)(i + 1),
                          hn_digits(ppl, sizeof ppl, hn_ppl_after(p, &j->w, i + 1), p->error));
    if (p->n) hn_out_printf("perplexity %s\n", hn_digits_error(ppl, sizeof ppl, p->ppl, p->error));
}

static int score(job *j)
{
    hone_error err;
    hn_force_params params = { .n_batch = hn_opts_i32(j->cli->opts, "chunk"),
                               .n_threads = hone_context_threads_batch(j->side.ctx),
                               .progress = show_progress,
                               .progress_arg = j };
    j->started_ms = hn_now_ms();
    hone_status st = hn_ppl_run(&j->ppl, &j->w, &j->side.src, &params, &err);
    j->seconds = (hn_now_ms() - j->started_ms) * 1e-3;
    hn_progress_end();
    j->interrupted = st == HONE_E_INTERRUPTED;
    if (st != HONE_OK && !j->interrupted) return hn_cli_fail_numbers(j->cli, &err);
    if (!j->cli->json) print_report(j);
    if (j->ppl.verdict.state == HN_UNCHECKED && !j->interrupted) j->ppl.verdict.state = HN_VALID;
    if (j->interrupted && j->ppl.verdict.state == HN_UNCHECKED)
        snprintf(j->ppl.verdict.reason, sizeof j->ppl.verdict.reason, "interrupted");
    int rc = hn_cli_records(j->cli, json_pack("[o]", record(j)));
    if (j->ppl.verdict.state == HN_INVALID)
        return hn_cli_error(HN_EXIT_FAILURE, "invalid result: %s", j->ppl.verdict.reason);
    if (j->interrupted)
        return hn_cli_error(HN_EXIT_INTERRUPTED, "interrupted after %lld of %lld windows", (long long)j->ppl.n_window,
                            (long long)j->w.n_window);
    return rc;
}

static int open_all(job *j)
{
    const hn_cli *cli = j->cli;
    if (!hn_opts_str(cli->opts, "text") && !hn_opts_str(cli->opts, "ids") && strcmp(cli->cmd->name, "perplexity") == 0)
        return hn_cli_usage(cli, "no text; expected -f FILE");
    int rc = hn_subject_open_model(cli, &j->side, &as_options);
    if (rc || (rc = hn_cli_text(cli, j->side.m, hn_cli_model_name(cli), &j->text)) ||
        (rc = hn_cli_windows(cli, &j->text, hn_opts_i32(cli->opts, "chunks"), &j->w)))
        return rc;
    if (j->w.n_ctx > j->side.info.n_ctx_train && !j->side.info.n_window)
        hn_cli_note("windows of %d tokens, but the model was trained for %d", j->w.n_ctx, j->side.info.n_ctx_train);
    return hn_subject_start(cli, &j->side, &as_options, j->w.n_ctx, hn_subject_sequences(cli, &j->w));
}

static int run(const hn_cli *cli)
{
    job j = { .cli = cli };
    int rc = open_all(&j);
    if (rc == 0) rc = score(&j);
    hn_ppl_free(&j.ppl);
    hn_windows_free(&j.w);
    hn_text_free(&j.text);
    hn_subject_close(&j.side);
    return rc;
}

const hn_command hn_command_perplexity = {
    .name = "perplexity",
    .summary = "Say how well a model foresees a text",
    .args = "[MODEL]",
    .takes = "model",
    .groups = groups,
    .examples = "hone perplexity -m model.gguf -f text.txt\n"
                "hone perplexity -m model.gguf -f text.txt -c 2048 --chunks 20 --json\n",
    .run = run,
};
const hn_command hn_command_lab_quality_ppl = {
    .name = "lab quality ppl",
    .summary = "Perplexity on the fixed text, or on one of your own",
    .groups = groups,
    .examples = "hone lab quality ppl -m model.gguf\n",
    .run = run,
};
