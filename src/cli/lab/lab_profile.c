/* hone lab profile: where the time of answers, or of a training's steps, goes, for people, as JSON, as a trace and as
 * folded stacks. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "lab/bench/process.h"
#include "lab/bench/profile.h"
#include "lab/inside/profile_train.h"
#include "lab/machine/clock.h"

#include <math.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MAX_TOKENS = 1 << 24, MAX_TRACE = 400000, STEPS = 8 };

static const hn_opt profile_opts[] = {
    HN_OPT("n-prompt", "-p", I32, "N", "tokens of the prompt; 0: none", .def = "512", .max = MAX_TOKENS,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("n-gen", "-n", I32, "N", "tokens to generate; 0: none", .def = "64", .max = MAX_TOKENS,
           .forward = HN_FORWARD_LENGTHS),
    HN_OPT("depth", "-d", I32, "N", "tokens already in the cache when the prompt comes, not measured", .def = "0",
           .max = MAX_TOKENS, .forward = HN_FORWARD_LENGTHS),
    HN_OPT("rounds", "-r --steps", I32, "N",
           "how often, of a training how many steps (default there: 8); each is made with the profile and without, by "
           "turns",
           .def = "2", .min = 1, .max = 10000),
    HN_OPT("no-memory", NULL, FLAG, NULL,
           "leave out the memory ledger, which runs the same once more in a process of its own (hone lab memory)"),
    HN_OPT("layers", NULL, FLAG, NULL, "also the time of each layer"),
    HN_OPT("trace", NULL, FILE, "FILE", "write the first round as a trace for chrome://tracing or Perfetto",
           .use = HN_USE_WRITE),
    HN_OPT("folded", NULL, FILE, "FILE", "write folded stacks, in nanoseconds, for flame graphs", .use = HN_USE_WRITE),
    HN_OPT_END,
};
static const hn_opt_group profile_group = { "Profile", profile_opts };

static const hn_opt train_opts[] = {
    HN_OPT("train", NULL, FILE, "DATA", "profile a training on this file instead, as hone train --data takes it",
           .use = HN_USE_DATA),
    HN_OPT("targets", NULL, STR, "LIST", "matrices that get adapters: qv, attn, all, or some of q,k,v,o,gate,up,down",
           .def = "qv"),
    HN_OPT("rank", NULL, I32, "N", "rank of the adapters", .def = "8", .min = 1, .max = 4096),
    HN_OPT("full", NULL, FLAG, NULL, "train all weights"),
    HN_OPT("seq", NULL, I32, "N", "tokens of a sequence (default: 512, or the model's context where that is shorter)",
           .min = 2, .max = 1 << 20),
    HN_OPT("batch", "-b", I32, "N", "sequences of a micro-batch", .def = "4", .min = 1, .max = 65536),
    HN_OPT("accum", NULL, I32, "N", "micro-batches of a step", .def = "1", .min = 1, .max = 1 << 20),
    HN_OPT("bf16", NULL, FLAG, NULL, "products of operands rounded to bf16, activations kept as bf16"),
    HN_OPT("recompute", NULL, FLAG, NULL, "keep only each layer's input and compute the rest again"),
    HN_OPT_END,
};
static const hn_opt_group train_group = { "Training", train_opts };
static const hn_opt_group *const groups[] = { &hn_group_model, &profile_group, &train_group, &hn_group_compute, NULL };

typedef struct work {
    const hn_cli *cli;
    hone_model *m;
    hone_context *ctx;
    hone_session *s;
    hone_model_info info;
    hn_environ env;
    hn_peaks peaks;
    char no_roof[1100]; /* "": peaks is the roof */
    hn_profile p;
    hone_train_info train; /* of a training */
    json_t *memory;        /* the ledger, or NULL */
    char no_memory[700];   /* why there is none */
} work;

/* Tokens of a training's sequence, as hone train has them. */
static int32_t seq_of(const work *w)
{
    enum { SEQ = 512 };
    if (hn_opts_given(w->cli->opts, "seq")) return hn_opts_i32(w->cli->opts, "seq");
    return w->info.n_ctx_train >= 2 && w->info.n_ctx_train < SEQ ? w->info.n_ctx_train : SEQ;
}

/* ---- the memory ledger: of a process that does nothing else --------------------------------------------- */

static int ask_memory(work *w)
{
    const hn_opts *o = w->cli->opts;
    hn_argv a = { 0 };
    hn_child c = { 0 };
    hone_error err;
    int rc = 0;
    hn_argv_extend(&a, (const char *const[]){ "hone", "lab", "memory", "--json", NULL });
    hn_opts_forward(o, HN_FORWARD_MODEL | HN_FORWARD_SETTINGS | HN_FORWARD_LENGTHS, true, &a);
    hn_argv_set(&a, "threads", "%d", hone_context_threads(w->ctx)); /* what was decided here */
    hn_argv_set(&a, "threads-batch", "%d", hone_context_threads_batch(w->ctx));
    hn_argv_set(&a, "cpu", "%s", hone_context_cpu(w->ctx));
    if (!w->info.packed_path) hn_argv_set(&a, "packed", "off"); /* else as asked for: a name would mean all of it */
    if (hn_opts_i32(o, "n-prompt") == 0) hn_argv_set(&a, "n-prompt", "1");
    if (hn_argv_check(&a, "a process", &err) != HONE_OK ||
        hn_child_run(&c, hn_argv_words(&a), hn_abort_fn, &err) != HONE_OK)
        rc = hn_cli_fail(&err);
    else if (c.result && c.exit_code == 0) w->memory = json_incref(c.result);
    else hn_child_why(&c, w->no_memory, sizeof w->no_memory);
    hn_argv_free(&a);
    hn_child_free(&c);
    return rc;
}

static void print_memory(const work *w)
{
    json_t *p;
    size_t i;
    if (w->no_memory[0]) hn_out_printf("memory: unknown, %s\n", w->no_memory);
    if (!w->memory) return;
    hn_out_printf("memory: peak %.1f MB; %.2f %% of it in no part\n",
                  json_number_value(json_object_get(w->memory, "peak_mb")),
                  json_number_value(json_object_get(w->memory, "rest_pct")));
    json_array_foreach(json_object_get(w->memory, "parts"), i, p)
    {
        json_t *mb = json_object_get(p, "mb");
        if (json_is_number(mb))
            hn_out_printf("  %-16s %12.3f MB\n", json_string_value(json_object_get(p, "part")), json_number_value(mb));
        else hn_out_printf("  %-16s %12s\n", json_string_value(json_object_get(p, "part")), "unknown");
    }
}

/* ---- for people ------------------------------------------------------------------------------- */

static void print_op(const work *w, const hn_profile_phase *ph, const hn_profile_op *op, int32_t threads, bool cached)
{
    const char *bound;
    const hn_profile_sum *s = &op->all;
    double ops = s->ops_int8 + s->ops_float,
           share = hn_profile_share(s, w->no_roof[0] ? NULL : &w->peaks, threads, cached, &bound);
    char rate[2][16] = { "", "" }, roof[32] = "";
    if (s->bytes && s->ns) snprintf(rate[0], sizeof rate[0], "%.1f", (double)s->bytes / (double)s->ns);
    if (ops > 0 && s->ns) snprintf(rate[1], sizeof rate[1], "%.1f", ops / (double)s->ns);
    if (isfinite(share)) snprintf(roof, sizeof roof, "%.0f %% %s", 100 * share, bound);
    hn_out_printf("  %-12s %-12s %7" PRId64 " %11.3f %6.1f %% %8s %9s  %s\n", op->name, op->types,
                  s->calls / ph->n_call, (double)s->ns * 1e-6 / (double)ph->n_call,
                  100 * (double)s->ns / (double)ph->whole_ns, rate[0], rate[1], roof);
}

static void print_layers(const work *w, const hn_profile_phase *ph)
{
    for (int32_t il = 0; il < w->p.n_layer; il++) {
        uint64_t ns = 0;
        for (int i = 0; i < ph->n_op; i++) ns += ph->op[i].layer[il].ns;
        hn_out_printf("  layer %-6d %32.3f %6.1f %%\n", il, (double)ns * 1e-6 / (double)ph->n_call,
                      100 * (double)ns / (double)ph->whole_ns);
    }
}

static void print_cost(const hn_profile_phase *ph)
{
    double ci[2], cost = hn_profile_cost(ph, ci);
    hn_out_printf("  looking costs %.2f %%", 100 * cost);
    if (isfinite(ci[0])) hn_out_printf(" (95 %%: %.2f to %.2f %%; %zu pairs)", 100 * ci[0], 100 * ci[1], ph->cost.n);
    else hn_out_printf(" (%zu pair%s: no interval)", ph->cost.n, ph->cost.n == 1 ? "" : "s");
    if (isfinite(ci[0]) && ci[0] > HN_PROFILE_MAX_COST)
        hn_out_printf(": MORE than %.0f %%, the times below are distorted", 100 * HN_PROFILE_MAX_COST);
    hn_out_printf("\n");
}

static void print_head(const char *name, const char *unit, const hn_profile_phase *ph, int32_t threads)
{
    hn_out_printf("%s: %" PRId64 " %s%s of %" PRId64 " token%s on %d thread%s, %.3f ms each, %.2f tokens/s\n", name,
                  ph->n_call, unit, ph->n_call == 1 ? "" : "s", ph->n_tok / ph->n_call,
                  ph->n_tok == ph->n_call ? "" : "s", threads, threads == 1 ? "" : "s",
                  (double)ph->whole_ns * 1e-6 / (double)ph->n_call, (double)ph->n_tok / ((double)ph->whole_ns * 1e-9));
}

static void print_phase(const work *w, const char *name, const hn_profile_phase *ph, int32_t threads)
{
    if (!ph->n_call) return;
    double ms = (double)ph->whole_ns * 1e-6 / (double)ph->n_call, rest = hn_profile_rest(ph);
    bool cached = hn_profile_in_cache(ph, w->no_roof[0] ? NULL : &w->peaks);
    if (w->p.training) hn_out_printf("%s: %.3f ms a step\n", name, ms);
    else {
        print_head(name, "call", ph, threads);
        print_cost(ph);
    }
    for (int k = 0; k < HN_COUNTS; k++)
        if (isfinite(ph->count[k])) hn_out_printf("  %s per token %.4g\n", hn_count_names[k], ph->count[k]);
    hn_out_printf("\n  %-12s %-12s %7s %11s %8s %8s %9s  %s\n", "operation", "weights", "times", "ms a call", "of time",
                  "GB/s", "GOPS", "of roof");
    for (int i = 0; i < ph->n_op; i++) print_op(w, ph, &ph->op[i], threads, cached);
    bool much = !w->p.training && rest > HN_PROFILE_MAX_REST;
    hn_out_printf("  %-12s %32.3f %6.1f %%%s\n", "(rest)", rest * ms, 100 * rest,
                  much ? "   MORE than 5 %: much of the time is not in the operations" : "");
    if (cached) hn_out_printf("  a cache may hold what a call reads: reading is no roof here\n");
    if (hn_opts_flag(w->cli->opts, "layers")) print_layers(w, ph);
    hn_out_printf("\n");
}

static void print_training(const work *w)
{
    static const char *const names[] = { "forward", "backward", "update" };
    const hn_profile_phase *step = &w->p.phase[HN_PROFILE_STEP];
    int32_t threads = hone_context_threads_batch(w->ctx);
    print_head("training", "step", step, threads);
    print_cost(step);
    double rest = hn_profile_rest(step);
    hn_out_printf("  %.2f %% between operations%s\n", 100 * rest,
                  rest > HN_PROFILE_MAX_REST ? ": MORE than 5 %, much of the time is not in them" : "");
    for (int k = 0; k < HN_COUNTS; k++)
        if (isfinite(step->count[k])) hn_out_printf("  %s per token %.4g\n", hn_count_names[k], step->count[k]);
    hn_out_printf("\n");
    for (int k = 0; k < 3; k++) print_phase(w, names[k], &w->p.phase[HN_PROFILE_FORWARD + k], threads);
    if (hn_opts_flag(w->cli->opts, "no-memory")) return;
    hn_out_printf("memory: %.1f MB base, %.1f MB weights, gradients and moments, %.1f MB to work in\n",
                  (double)w->train.base_bytes / 1e6, (double)w->train.state_bytes / 1e6,
                  (double)w->train.work_bytes / 1e6);
}

static void print_counters(const work *w)
{
    for (int k = 0; k < HN_COUNTS; k++)
        if (w->p.counters.why[k]) hn_out_printf("counters %s: unknown, %s\n", hn_count_names[k], w->p.counters.why[k]);
}

static void print_report(const work *w)
{
    const char *path = hn_opts_str(w->cli->opts, "model");
    char when[512] = "";
    hn_out_printf("model    %s: %s %s, %.1f MB, %s weights\n", HN_ESC(path, strlen(path)), w->info.arch, w->info.type,
                  (double)w->info.n_bytes / 1e6, hn_cli_weights(&w->info));
    hn_out_printf("machine  %s, %d cores, level %s (env %s)\n", w->env.cpu_model[0] ? w->env.cpu_model : w->env.machine,
                  w->env.cores, hone_context_cpu(w->ctx), w->env.hash);
    if (!w->no_roof[0]) hn_peaks_say(&w->peaks, when, sizeof when);
    hn_out_printf("roof     %s%s\n", w->no_roof[0] ? "not known: " : "", w->no_roof[0] ? w->no_roof : when);
    print_counters(w);
    hn_out_printf("answers  %s\n\n", w->p.verdict.state == HN_INVALID ? w->p.verdict.reason
                                                                      : "the same bits with the profile and without");
    if (w->p.training) {
        print_training(w);
        return;
    }
    print_phase(w, "prefill", &w->p.phase[HN_PROFILE_PREFILL], hone_context_threads_batch(w->ctx));
    print_phase(w, "decode", &w->p.phase[HN_PROFILE_DECODE], hone_context_threads(w->ctx));
    print_memory(w);
    if (w->p.lost) hn_out_printf("note     %" PRId64 " operations were not recorded\n", w->p.lost);
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

static json_t *roof_json(const work *w)
{
    int32_t t = hone_context_threads(w->ctx), tb = hone_context_threads_batch(w->ctx);
    if (w->no_roof[0]) return json_pack("{s:o}", "missing", hn_lab_str(w->no_roof));
    return json_pack("{s:o, s:o, s:o, s:s, s:o, s:n}", "read_gb_s",
                     hn_lab_num(hn_peaks_at(&w->peaks, HN_PEAK_READ_BW, t)), "int8_gops",
                     hn_lab_num(hn_peaks_at(&w->peaks, HN_PEAK_INT8, tb)), "f32_gflops",
                     hn_lab_num(hn_peaks_at(&w->peaks, HN_PEAK_F32, tb)), "ts", w->peaks.ts, "doubts",
                     w->peaks.doubts[0] ? hn_lab_str(w->peaks.doubts) : json_null(), "missing");
}

static json_t *model_json(const work *w)
{
    const char *path = hn_opts_str(w->cli->opts, "model"), *slash = strrchr(path, '/');
    char fingerprint[17];
    snprintf(fingerprint, sizeof fingerprint, "%016" PRIx64, w->info.fingerprint);
    return json_pack("{s:o, s:s, s:o, s:o, s:I, s:I}", "path_name", hn_lab_str(slash ? slash + 1 : path), "fingerprint",
                     fingerprint, "arch", hn_lab_str(w->info.arch), "type", hn_lab_str(w->info.type), "params",
                     (json_int_t)w->info.n_params, "bytes", (json_int_t)w->info.n_bytes);
}

static json_t *config_json(const work *w)
{
    const hn_opts *o = w->cli->opts;
    if (w->p.training)
        return json_pack("{s:i, s:i, s:i, s:i, s:s, s:b, s:b, s:b, s:i, s:s}", "seq", (int)seq_of(w), "batch",
                         (int)hn_opts_i32(o, "batch"), "accum", (int)hn_opts_i32(o, "accum"), "rank",
                         (int)hn_opts_i32(o, "rank"), "targets", hn_opts_str(o, "targets"), "full",
                         (int)hn_opts_flag(o, "full"), "bf16", (int)hn_opts_flag(o, "bf16"), "recompute",
                         (int)hn_opts_flag(o, "recompute"), "threads", (int)hone_context_threads_batch(w->ctx), "cpu",
                         hone_context_cpu(w->ctx));
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:s, s:s, s:i, s:s}", "n_prompt", (int)hn_opts_i32(o, "n-prompt"),
                     "n_gen", (int)hn_opts_i32(o, "n-gen"), "depth", (int)hn_opts_i32(o, "depth"), "rounds",
                     (int)hn_opts_i32(o, "rounds"), "threads", (int)hone_context_threads(w->ctx), "threads_batch",
                     (int)hone_context_threads_batch(w->ctx), "cpu", hone_context_cpu(w->ctx), "kv",
                     hn_opts_str(o, "kv"), "chunk", (int)hn_opts_i32(o, "chunk"), "weights", hn_cli_weights(&w->info));
}

/* The ledger; of a training what its trainer says that it holds. */
static json_t *memory_json(const work *w)
{
    if (!w->p.training) return w->memory ? json_incref(w->memory) : json_null();
    if (hn_opts_flag(w->cli->opts, "no-memory")) return json_null();
    return json_pack("{s:f, s:f, s:f}", "base_mb", (double)w->train.base_bytes / 1e6, "state_mb",
                     (double)w->train.state_bytes / 1e6, "work_mb", (double)w->train.work_bytes / 1e6);
}

static json_t *report_json(const work *w)
{
    json_t *r = hn_json_new(HN_PROFILE_SCHEMA),
           *phases = hn_profile_json(&w->p, w->no_roof[0] ? NULL : &w->peaks, hone_context_threads(w->ctx),
                                     hone_context_threads_batch(w->ctx));
    char ts[40];
    hn_utc_now(ts, sizeof ts);
    json_object_set_new(r, "ts", json_string(ts));
    json_object_set_new(r, "valid",
                        w->p.verdict.state == HN_INVALID ? json_false() : json_null()); /* says nothing about quality */
    json_object_set_new(r, "invalid_reason",
                        w->p.verdict.state == HN_INVALID ? hn_lab_str(w->p.verdict.reason) : json_null());
    json_object_set_new(r, "model", model_json(w));
    json_object_set_new(r, "env", hn_environ_json(&w->env));
    json_object_set_new(r, "config", config_json(w));
    json_object_set_new(r, "roof", roof_json(w));
    json_object_update(r, phases);
    json_decref(phases);
    json_object_set_new(r, "memory", memory_json(w));
    json_object_set_new(r, "lost_events", json_integer(w->p.lost));
    return r;
}

/* ---- the command ------------------------------------------------------------------------------------ */

static void load_roof(work *w)
{
    char path[4096];
    hone_error err;
    const char *level = hone_context_cpu(w->ctx);
    if (hn_peaks_path(path, sizeof path, &w->env, level, &err) != HONE_OK ||
        hn_peaks_load(&w->peaks, path, &w->env, level, &err) != HONE_OK)
        snprintf(w->no_roof, sizeof w->no_roof, "%s", err.message);
}

typedef hone_status writer(const hn_profile *p, char **text, size_t *n, hone_error *err);
static int write_file(const work *w, const char *option, writer *fn)
{
    const char *path = hn_opts_str(w->cli->opts, option);
    char *text;
    size_t n;
    hone_error err;
    if (!path) return 0;
    hone_status st = fn(&w->p, &text, &n, &err);
    if (st == HONE_OK) st = hn_file_replace(path, text, n, &err);
    free(text);
    return st == HONE_OK ? 0 : hn_cli_fail(&err);
}

static int measure(work *w, const hn_counters *counters)
{
    const hn_opts *o = w->cli->opts;
    hone_error err;
    hn_profile_params p = { .n_prompt = hn_opts_i32(o, "n-prompt"),
                            .n_gen = hn_opts_i32(o, "n-gen"),
                            .depth = hn_opts_i32(o, "depth"),
                            .rounds = hn_opts_i32(o, "rounds"),
                            .n_chunk = hn_opts_i32(o, "chunk"),
                            .max_trace = hn_opts_str(o, "trace") ? MAX_TRACE : 0,
                            .counters = counters };
    int rc = hn_cli_open_model(w->cli, false, &w->m);
    if (rc == 0) rc = hn_cli_new_context(w->cli, &w->ctx);
    if (rc == 0)
        rc = hn_cli_new_session(w->cli, w->ctx, w->m, p.depth + (p.n_prompt > 0 ? p.n_prompt : 1) + p.n_gen, 1, &w->s);
    if (rc) return rc;
    hn_cli_session_notes(w->m, p.depth + (p.n_prompt > 0 ? p.n_prompt : 1) + p.n_gen);
    hone_model_get_info(w->m, &w->info);
    load_roof(w);
    return hn_profile_run(&w->p, w->s, w->m, &p, &err) == HONE_OK ? 0 : hn_cli_fail(&err);
}

/* Options of answers say nothing to a training, and the other way round. */
static int check_options(const hn_cli *cli)
{
    static const char *const of_answers[] = { "n-prompt", "n-gen", "depth", "chunk", "kv", "packed", NULL },
                             *const of_training[] = { "targets", "rank", "full",      "seq", "batch",
                                                      "accum",   "bf16", "recompute", NULL };
    bool training = hn_opts_given(cli->opts, "train");
    for (const char *const *o = training ? of_answers : of_training; *o; o++)
        if (hn_opts_given(cli->opts, *o))
            return hn_cli_usage(cli, training ? "--%s has no effect on a training" : "--%s belongs to --train", *o);
    for (const char *const *o = (const char *const[]){ "targets", "rank", NULL }; *o; o++)
        if (hn_opts_given(cli->opts, *o) && hn_opts_flag(cli->opts, "full"))
            return hn_cli_usage(cli, "--%s belongs to adapters; with --full all weights are trained", *o);
    if (!training && hn_opts_i32(cli->opts, "n-prompt") + hn_opts_i32(cli->opts, "n-gen") < 1)
        return hn_cli_usage(cli, "nothing to run: -p 0 and -n 0");
    return 0;
}

static int measure_training(work *w, const hn_counters *counters)
{
    const hn_opts *o = w->cli->opts;
    const char *data = hn_opts_str(o, "train");
    hone_error err;
    hone_train_params t;
    hone_train_defaults(&t);
    t.abort_fn = hn_abort_fn;
    t.data = &data;
    t.n_data = 1;
    t.targets = hn_opts_str(o, "targets");
    t.rank = hn_opts_i32(o, "rank");
    t.full = hn_opts_flag(o, "full");
    t.batch = hn_opts_i32(o, "batch");
    t.accumulate = hn_opts_i32(o, "accum");
    t.bf16 = hn_opts_flag(o, "bf16");
    t.recompute = hn_opts_flag(o, "recompute");
    const hn_profile_train_params p = { .train = &t,
                                        .steps = hn_opts_given(o, "rounds") ? hn_opts_i32(o, "rounds") : STEPS,
                                        .max_trace = hn_opts_str(o, "trace") ? MAX_TRACE : 0,
                                        .counters = counters };
    int rc = hn_cli_open_model(w->cli, false, &w->m);
    if (rc == 0) rc = hn_cli_new_context(w->cli, &w->ctx);
    if (rc) return rc;
    hone_model_get_info(w->m, &w->info);
    t.seq = seq_of(w);
    load_roof(w);
    if (t.bf16) snprintf(w->no_roof, sizeof w->no_roof, "products of bf16 operands: their peak is not measured");
    if (hn_profile_train(&w->p, &w->train, w->ctx, w->m, &p, &err) == HONE_OK) return 0;
    struct stat sb;
    return stat(data, &sb) != 0 ? hn_cli_fail_input(w->cli, "--train", data, &err) : hn_cli_fail(&err);
}

static int run(const hn_cli *cli)
{
    work *w = calloc(1, sizeof *w);
    hn_counters counters;
    if (!w) return hn_cli_error(HN_EXIT_NOMEM, "no memory for a profile");
    w->cli = cli;
    int rc = check_options(cli);
    bool training = hn_opts_given(cli->opts, "train");
    hn_environ_read(&w->env);
    hn_counters_open(&counters); /* before there are threads */
    if (rc == 0) rc = training ? measure_training(w, &counters) : measure(w, &counters);
    if (rc == 0 && !training && !hn_opts_flag(cli->opts, "no-memory")) rc = ask_memory(w);
    if (rc == 0) rc = write_file(w, "trace", hn_profile_trace);
    if (rc == 0) rc = write_file(w, "folded", hn_profile_folded);
    if (rc == 0) {
        if (cli->json) rc = hn_json_print(report_json(w));
        else print_report(w);
        if (w->p.not_traced)
            hn_cli_note("the trace lacks %" PRId64 " operations: it ends at %d", w->p.not_traced, MAX_TRACE);
        if (w->p.verdict.state == HN_INVALID && rc == 0)
            rc = hn_cli_error(HN_EXIT_FAILURE, "invalid profile: %s", w->p.verdict.reason);
    }
    json_decref(w->memory);
    hn_profile_free(&w->p);
    hn_counters_close(&counters);
    hone_session_free(w->s);
    hone_context_free(w->ctx);
    hone_model_close(w->m);
    free(w);
    return rc;
}

const hn_command hn_command_lab_profile = {
    .name = "lab profile",
    .summary = "Where the time of a prompt, a token or a training step goes, by operation",
    .groups = groups,
    .examples = "hone lab profile -m model.gguf\nhone lab profile -m model.gguf -p 0 -n 128 -d 2048 --layers\n"
                "hone lab profile -m model.gguf --trace trace.json --folded stacks.txt\n"
                "hone lab profile -m model.gguf --train stories.txt --json >profile.json\n",
    .run = run,
};
