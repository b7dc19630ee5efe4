/* What hone train shows: the plan, a moving line (or plain lines where stderr is no terminal), the
 * summary. Reads, never trains. */
#include "cli/train/train_command.h"
#include "lab/machine/memory.h"

#include <math.h>

enum { PLAIN_EVERY = 10 };

/* The files of folders, or many: their names, as many as the line is meant for. */
static void say_files(const hone_train_data *d, const char *const *paths, int32_t n)
{
    enum { ROOM = 160 };
    char line[ROOM + 1] = "";
    size_t at = 0, len;
    int64_t said = 0;
    bool named = n == 1 && strncmp(d->files, paths[0], strlen(paths[0])) == 0 && d->files[strlen(paths[0])] == '\n';
    for (const char *s = d->files; *s; s += len + 1, said++) {
        len = strcspn(s, "\n");
        if (said && at + len + 2 > ROOM) break;
        at += (size_t)snprintf(line + at, sizeof line - at, "%s%.*s", said ? ", " : "", (int)(len < ROOM ? len : ROOM),
                               s);
    }
    if (d->n_file && !(named && d->n_file == 1)) {
        hn_err_printf("%-10s %lld file%s: %s", "", (long long)d->n_file, d->n_file == 1 ? "" : "s",
                      hn_escape((char[4 *ROOM + 8]){ 0 }, 4 * ROOM + 8, line, strlen(line)));
        if (said < d->n_file) hn_err_printf("%s%lld more", said ? ", and " : "", (long long)(d->n_file - said));
        hn_err_printf("\n");
    }
    if (d->n_passed)
        hn_err_printf("%-10s %lld file%s passed over, in forms that are not read: %s%s\n", "", (long long)d->n_passed,
                      d->n_passed == 1 ? "" : "s", HN_ESC(d->first_passed, strlen(d->first_passed)),
                      d->n_passed == 1 ? "" : ", …");
}

static void say_data(const char *what, const hone_train_data *d, const char *const *paths, int32_t n)
{
    char of[64] = ""; /* samples set apart for validation have no records of their own */
    if (d->n_line) snprintf(of, sizeof of, " of %lld record%s", (long long)d->n_line, d->n_line == 1 ? "" : "s");
    hn_err_printf(
        "%-10s %lld sample%s%s: %lld tokens, %.1f %% of them learnt; length %d to %d, median %d, 95 %% within %d\n",
        what, (long long)d->n_sample, d->n_sample == 1 ? "" : "s", of, (long long)d->n_tok,
        d->n_tok ? 100.0 * (double)d->n_target / (double)d->n_tok : 0.0, d->min_len, d->max_len, d->median_len,
        d->p95_len);
    say_files(d, paths, n);
    if (d->n_cut)
        hn_err_printf("%-10s %lld record%s cut to the sequence\n", "", (long long)d->n_cut, d->n_cut == 1 ? "" : "s");
    if (d->n_empty)
        hn_err_printf("%-10s %lld record%s left out: nothing in them counts\n", "", (long long)d->n_empty,
                      d->n_empty == 1 ? "" : "s");
    if (d->n_rejected)
        hn_err_printf("%-10s %lld record%s left out: labelled false\n", "", (long long)d->n_rejected,
                      d->n_rejected == 1 ? "" : "s");
    if (d->n_bad)
        hn_err_printf("%-10s %lld bad line%s left out; the first: %s\n", "", (long long)d->n_bad,
                      d->n_bad == 1 ? "" : "s", HN_ESC(d->first_bad, strlen(d->first_bad)));
}

static void duration(char *dst, size_t cap, double s)
{
    if (!(s >= 0 && s < 1e7)) snprintf(dst, cap, "?");
    else if (s < 100) snprintf(dst, cap, "%.0f s", s);
    else if (s < 6000) snprintf(dst, cap, "%.0f min", s / 60);
    else snprintf(dst, cap, "%.1f h", s / 3600);
}

/* Of the whole run, from the tokens that a plan tried. */
static double planned_seconds(const hn_train_job *j)
{
    const hone_train_info *i = &j->info;
    double per_step = (double)i->train.n_tok / (double)i->n_sequence * j->p.batch * j->p.accumulate;
    if (per_step > (double)i->train.n_tok) per_step = (double)i->train.n_tok;
    return 1e-3 * i->try_ms / i->try_tok * per_step * (double)i->steps;
}

void hn_train_show_plan(const hn_train_job *j)
{
    const hone_train_info *i = &j->info;
    const hone_train_params *p = &j->p;
    hone_model_info model;
    hone_model_get_info(j->m, &model);
    say_data("data", &i->train, p->data, p->n_data);
    if (i->val.n_sample) say_data("validation", &i->val, p->val_data, p->n_val_data);
    if (p->full) hn_err_printf("%-10s all %lld weights\n", "trained", (long long)i->n_trainable);
    else
        hn_err_printf("%-10s %lld weights: rank %d, alpha %g%s, %s%s\n", "trained", (long long)i->n_trainable, p->rank,
                      p->alpha, p->rslora ? " (rank-stabilised)" : "", p->targets,
                      p->n_layers && p->n_layers < model.n_layer ? ", last layers only" : "");
    hn_err_printf("%-10s %lld of %d x %d sequence%s of up to %d tokens, %lld in the first epoch\n", "steps",
                  (long long)i->steps, p->accumulate, p->batch, (int64_t)p->accumulate * p->batch == 1 ? "" : "s",
                  p->seq, (long long)i->n_sequence);
    hn_err_printf("%-10s %.1f MB base, %.1f MB weights, gradients and moments, %s%.1f MB to work in\n", "memory",
                  (double)i->base_bytes / 1e6, (double)i->state_bytes / 1e6, p->plan_only ? "about " : "",
                  (double)i->work_bytes / 1e6);
    if (i->try_tok) {
        char about[32];
        duration(about, sizeof about, planned_seconds(j));
        hn_err_printf("%-10s about %s here: %d tokens took %.0f ms\n", "time", about, i->try_tok, i->try_ms);
    } else if (p->plan_only) {
        hn_err_printf("%-10s not tried: a copy of all weights would be needed for that\n", "time");
    }
}

/* Sum of the learning rates of all steps: how far AdamW, whose steps are about that long, can move a weight. */
static double way(const hn_train_job *j)
{
    static const double share[] = { 1, 0.5, 0.5, 0.9 }; /* of the highest rate, on the average */
    return (double)j->info.steps * (j->info.min_lr + share[j->p.schedule] * (j->info.lr - j->info.min_lr));
}

/* How far steps must go in all (`way`) to be seen, found by greedy answers to ten prompts: below it few of them change,
 * and none in the way of the data. hone-tiny (300 little stories) and hone-chat (200 conversations), of ten:
 *   queries and values 4e-3: 1 and 0, 8e-3: 5 and 0; all targets 4e-3: 4 and 0, 8e-3: 7 and 4, 2e-3: 2 and 0;
 *   all weights 2e-4: 5 and 0, 5e-4: 8 and 3, 1e-3: 8 and 4.
 * So of adapters it is shorter the more matrices have one, about as the root of their number (attention's four: 3 at
 * 4e-3, 7 at 8e-3; queries alone: 1 at 8e-3). */
static double way_to_be_seen(const hn_train_job *j)
{
    static const double ADAPTER = 8e-3, WHOLE = 3e-4; /* of two matrices a layer */
    const hone_train_params *p = &j->p;
    hone_model_info m;
    hone_model_get_info(j->m, &m);
    double n = 1, layers = p->n_layers && p->n_layers < m.n_layer ? (double)p->n_layers / m.n_layer : 1;
    for (const char *s = p->targets; (s = strchr(s, ',')); s++) n++;
    if (strcmp(p->targets, "qv") == 0) n = 2;
    if (strcmp(p->targets, "attn") == 0) n = 4;
    if (strcmp(p->targets, "all") == 0) n = 7;
    return p->full ? WHOLE : ADAPTER / sqrt(n * layers / 2);
}

static void warn_of_few_steps(const hn_train_job *j)
{
    enum { ENOUGH = 48, FROM_NOTHING = 500 };
    const hone_train_params *p = &j->p;
    const hn_opts *o = j->cli->opts;
    bool begun = hn_opts_given(o, "from-config");
    double lr = p->full ? 3e-4 : 1e-3, reach = p->full ? way(j) : way(j) * j->info.scale / 2;
    char more[64] = "", all[24] = "";
    long long steps = j->info.steps, per_epoch = (j->info.n_sequence + p->batch - 1) / p->batch;
    per_epoch = (per_epoch + p->accumulate - 1) / p->accumulate;
    if (begun ? steps >= FROM_NOTHING : reach >= way_to_be_seen(j)) return;
    if (begun) {
        hn_cli_note("%lld step%s: a model that begins from nothing needs thousands; try: --steps 5000", steps,
                    steps == 1 ? "" : "s");
        return;
    }
    if (p->steps && steps < ENOUGH) snprintf(more, sizeof more, " --steps %d", ENOUGH);
    else if (steps < ENOUGH) snprintf(more, sizeof more, " --epochs %lld", (ENOUGH + per_epoch - 1) / per_epoch);
    if (!p->full && !hn_opts_given(o, "targets")) snprintf(all, sizeof all, " --targets all");
    if (p->lr < lr) snprintf(more + strlen(more), sizeof more - strlen(more), " --lr %g", lr);
    hn_cli_note("%lld step%s with a learning rate of %g will hardly move the model; try:%s%s", steps,
                steps == 1 ? "" : "s", p->lr, more, all);
}

void hn_train_warn(const hn_train_job *j)
{
    const hone_train_data *d = &j->info.train;
    warn_of_few_steps(j);
    if (d->n_spelt)
        hn_cli_note(
            "texts that begin with %s: %lld; it is learnt as these letters; try: --special, which makes it that "
            "token",
            HN_ESC(d->first_spelt, strlen(d->first_spelt)), (long long)d->n_spelt);
    if (d->n_marked)
        hn_cli_note("%lld file%s <|endoftext|>, but not in the first 16 MiB, and %s not divided there; try: --split "
                    "mark",
                    (long long)d->n_marked, d->n_marked == 1 ? " has" : "s have", d->n_marked == 1 ? "is" : "are");
    if (d->n_mid * 2 > d->n_sample)
        hn_cli_note(
            "%lld of %lld samples begin in the middle of a text, and hone run begins with a beginning: little of "
            "this will show there; try: blank lines between texts, --split line, or a longer --seq",
            (long long)d->n_mid, (long long)d->n_sample);
}

/* What stands in the line, in this order; where it is narrow, the higher ranks are left out. */
enum { N_PART = 7 };
typedef struct part {
    char text[48];
    int rank;
} part;

static size_t join(char *dst, size_t cap, const part *p, int rank)
{
    size_t n = 0;
    dst[0] = 0;
    for (int i = 0; i < N_PART; i++)
        if (p[i].rank <= rank && p[i].text[0] && n < cap)
            n += (size_t)snprintf(dst + n, cap - n, "%s%s", n == 0 ? "" : i == 1 ? ": " : ", ", p[i].text);
    return n;
}

/* The line that is written over: as much of it as fits, and a bar where there is room. */
static void show_moving(const part *p, int64_t done, int64_t total)
{
    char line[N_PART * 52 + 32];
    int room = hn_columns() - HN_PROGRESS_ROOM, rank = N_PART;
    size_t n;
    while ((n = join(line, sizeof line, p, rank)) > (size_t)(room > 0 ? room : 0) && rank > 1) rank--;
    int bar = room - (int)n - 3;
    if (bar > 24) bar = 24;
    if (bar >= 8) {
        int full = (int)((double)bar * (double)done / (double)total);
        snprintf(line + n, sizeof line - n, " [%.*s%*s]", full, "########################", bar - full, "");
    }
    hn_progress_fn(line, (uint64_t)done, (uint64_t)total);
}

void hn_train_show_step(hn_train_job *j, const hone_train_step *s)
{
    hone_train_status st;
    char left[32], line[N_PART * 52];
    if (j->cli->json && !j->cli->verbose && !hn_stderr_is_tty()) return;
    bool plain = !hn_stderr_is_tty();
    double loss = isnan(s->loss) ? NAN : s->loss,
           norm = isnan(s->grad_norm) ? NAN : s->grad_norm; /* -nan says no more */
    if (s->skipped)
        hn_cli_note("step %lld: loss %g, norm of the gradient %g: left out", (long long)s->step, loss, norm);
    if (plain && !s->eval && !s->skipped && !s->done && s->step != j->resumed + 1 && s->step % PLAIN_EVERY &&
        !j->cli->verbose)
        return;
    hone_trainer_get_status(j->t, &st);
    int64_t here = s->step - j->resumed;
    double passed = hn_now_ms() - j->started_ms;
    duration(left, sizeof left, passed * 1e-3 / (double)here * (double)(j->info.steps - s->step));
    part p[N_PART] = { { .rank = 1 }, { .rank = 2 }, { .rank = 5 }, { .rank = 6 },
                       { .rank = 7 }, { .rank = 4 }, { .rank = 3 } };
    snprintf(p[0].text, sizeof p[0].text, "step %lld/%lld", (long long)s->step, (long long)j->info.steps);
    snprintf(p[1].text, sizeof p[1].text, "loss %.4f", st.smooth_loss);
    if (isfinite(st.val_loss))
        snprintf(p[2].text, sizeof p[2].text, "validation %.4f%s", st.val_loss, s->eval && s->best ? " (best)" : "");
    snprintf(p[3].text, sizeof p[3].text, "lr %.3g", s->lr);
    if (s->n_tok) { /* none: a validation that was interrupted, and now is made up for */
        snprintf(p[4].text, sizeof p[4].text, "gradient %.3g", norm);
        snprintf(p[5].text, sizeof p[5].text, "%.0f tok/s",
                 j->trained_ms > 0 ? 1e3 * (double)j->n_tok / j->trained_ms : 0.0);
        snprintf(p[6].text, sizeof p[6].text, "%s left", left);
    }
    if (!plain) {
        show_moving(p, s->step, j->info.steps);
        return;
    }
    join(line, sizeof line, p, N_PART);
    hn_err_printf("%s\n", line);
}

/* ---- the summary ------------------------------------------------------------------------------------- */

static json_t *counts_json(const hone_train_data *d)
{
    if (!d->n_sample) return json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:i, s:i, s:i, s:i}", "samples",
                     (json_int_t)d->n_sample, "files", (json_int_t)d->n_file, "passed", (json_int_t)d->n_passed,
                     "rejected", (json_int_t)d->n_rejected, "records", (json_int_t)d->n_line, "bad",
                     (json_int_t)d->n_bad, "cut", (json_int_t)d->n_cut, "empty", (json_int_t)d->n_empty, "tokens",
                     (json_int_t)d->n_tok, "targets", (json_int_t)d->n_target, "masked_share",
                     hn_train_real(d->n_tok ? 1 - (double)d->n_target / (double)d->n_tok : NAN), "min", (int)d->min_len,
                     "median", (int)d->median_len, "p95", (int)d->p95_len, "max", (int)d->max_len);
}

static int summary_json(hn_train_job *j, const char *why, const hone_train_status *s)
{
    const hone_train_info *i = &j->info;
    bool plan = j->p.plan_only;
    hn_memory mem;
    json_t *o = hn_json_new(HN_TRAIN_SCHEMA);
    json_object_set_new(o, "kind", json_string("summary"));
    json_object_set_new(o, "why", json_string(why));
    json_object_set_new(o, "settings", hn_train_settings_json(j));
    json_object_set_new(o, "trainable", json_integer((json_int_t)i->n_trainable));
    json_object_set_new(o, "data", counts_json(&i->train));
    json_object_set_new(o, "validation", counts_json(&i->val));
    json_object_set_new(o, "sequences", json_integer((json_int_t)i->n_sequence));
    json_object_set_new(o, "memory",
                        json_pack("{s:I, s:I, s:I}", "base", (json_int_t)i->base_bytes, "state",
                                  (json_int_t)i->state_bytes, "work", (json_int_t)i->work_bytes));
    if (plan) json_object_set_new(o, "about_s", i->try_tok ? hn_json_num(planned_seconds(j)) : json_null());
    if (!plan) {
        json_object_set_new(o, "output", !s->step ? json_null() : hn_json_str(j->out, strlen(j->out)));
        json_object_set_new(o, "log", hn_json_str(j->log, strlen(j->log)));
        json_object_set_new(o, "checkpoints", hn_json_str(j->folder, strlen(j->folder)));
        json_object_set_new(o, "resumed", json_integer((json_int_t)j->resumed));
        json_object_set_new(o, "step", json_integer((json_int_t)s->step));
        json_object_set_new(o, "skipped", json_integer((json_int_t)s->n_skipped));
        json_object_set_new(o, "loss",
                            json_pack("{s:o, s:o, s:o}", "first", hn_train_real(s->first_loss), "last",
                                      hn_train_real(s->last_loss), "smooth", hn_train_real(s->smooth_loss)));
        json_object_set_new(o, "val_loss", hn_train_real(s->val_loss));
        json_object_set_new(o, "best_val", hn_train_real(s->best_val));
        json_object_set_new(o, "best_step", json_integer((json_int_t)s->best_step));
        json_object_set_new(o, "tok_s", hn_json_num(j->trained_ms > 0 ? 1e3 * (double)j->n_tok / j->trained_ms : NAN));
        json_object_set_new(o, "peak_rss_mb",
                            hn_memory_read(&mem, 0) ? hn_json_num((double)mem.hwm / 1e6) : json_null());
    }
    return hn_json_print(o);
}

/* What to do with it. */
static void show_next(const hn_train_job *j)
{
    const char *model = j->p.full ? j->out : hn_opts_str(j->cli->opts, "model"), *with = j->p.full ? "" : " --lora ",
               *adapter = j->p.full ? "" : j->out;
    bool chat = j->info.train.n_chat > 0;
    if (!hn_stderr_is_tty() || !model) return;
    hn_err_printf("try: hone %s -m %s%s%s%s\n", chat ? "chat" : "run", HN_ESC(model, strlen(model)), with,
                  HN_ESC(adapter, strlen(adapter)), chat ? "" : " -p \"how your texts begin\"");
}

int hn_train_summary(hn_train_job *j, const char *why)
{
    hone_train_status s;
    hone_trainer_get_status(j->t, &s);
    if (j->cli->json) return summary_json(j, why, &s);
    if (j->p.plan_only || !s.done) return HN_EXIT_OK;
    hn_out_printf("%s: %lld step%s%s, loss %.4f to %.4f", HN_ESC(j->out, strlen(j->out)), (long long)s.step,
                  s.step == 1 ? "" : "s", s.stopped_early ? " (stopped early)" : "", s.first_loss, s.last_loss);
    if (isfinite(s.best_val))
        hn_out_printf(", validation %.4f at the end, best %.4f after step %lld", s.val_loss, s.best_val,
                      (long long)s.best_step);
    if (s.n_skipped) hn_out_printf(", %lld steps left out", (long long)s.n_skipped);
    if (j->trained_ms > 0) hn_out_printf("; %.0f tok/s", 1e3 * (double)j->n_tok / j->trained_ms);
    hn_out_printf("\n");
    show_next(j);
    return hn_out_flush() ? HN_EXIT_OK : HN_EXIT_FAILURE;
}
