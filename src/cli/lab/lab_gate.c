/* hone lab gate: may this change pass? The machine first, then the model's bytes, then its
 * answers, and only then the clock. Against a stored baseline, or against another commit
 * or program measured interleaved. Owns order and exit codes; the judging is lab's. */
#define _GNU_SOURCE
#include "cli/bench/bench_command.h"
#include "cli/lab/gate_settings.h"
#include "lab/judge/ab.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/machine/clock.h"
#include "lab/quality/paths.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_IDS = 16 };

static const hn_opt opts[] = {
    HN_OPT("baseline", NULL, STR, "NAME", "compare with this stored baseline"),
    HN_OPT("ab", NULL, STR, "REF",
           "measure against REF, interleaved: a commit, a hone program, or settings, as in hone lab ab"),
    HN_OPT("head", NULL, STR, "SPEC", "with --ab: the other side", .def = "this"),
    HN_OPT("dir", NULL, FILE, "DIR", "where baselines are kept", .def = HN_BASELINE_DIR, .use = HN_USE_NONE),
    HN_OPT("metrics", NULL, STR, "LIST",
           "metrics that decide, with commas, or all (default: prefill_tok_s,decode_tok_s,peak_anon_mb; with --ab as "
           "in hone lab ab)"),
    HN_OPT("margin", NULL, F32, "E",
           "differences up to E do not matter (default: 0.1 against stored samples, 0.02 with --ab, 0.03 for single "
           "kernels, 0.23 with kern)",
           .min = 0.001, .max = 0.9),
    HN_OPT("samples", "-r --repetitions", I32, "N",
           "samples of the first look; two more looks double them if they must", .def = "10", .min = 6, .max = 10000),
    HN_OPT("rounds", NULL, I32, "N", "with --ab: rounds of the first look", .def = "20", .min = HN_AB_MIN_ROUNDS,
           .max = HN_AB_MAX_ROUNDS),
    HN_OPT("runs", NULL, I32, "N", "with --ab: runs of each side in a round (default: as many as the A/A rounds need)",
           .min = 1, .max = HN_AB_MAX_RUNS),
    HN_OPT("seed", NULL, U64, "S", "with --ab: seed of the order of the sides (default: another each time)",
           .max = 9e18),
    HN_OPT("preset", NULL, STR, "NAME",
           "with kern: the shapes of this model alone (hone synth --list; default: of all of them)"),
    HN_OPT("accept-environment", NULL, FLAG, NULL, "go on on another machine: its speed is compared all the same"),
    HN_OPT("allow-different", "--accept-quality", FLAG, NULL,
           "go on with another quality hash, and call nothing better then; never with broken output or another model "
           "file"),
    HN_OPT("strict", NULL, FLAG, NULL, "a disturbed machine is exit code 13, not a note"),
    HN_OPT("file", NULL, STR, "NAME",
           "append what was measured to benchmarks/NAME.jsonl; a NAME with a slash is a path", .use = HN_USE_RECORDS),
    HN_OPT_END,
};
static const hn_opt_group group = { "Gate", opts };

typedef struct gate {
    const hn_cli *cli;
    json_t *baseline; /* or NULL */
    const char *model, *name;
    char base[4096]; /* of --file; "" */
    hn_environ env;
    json_t *env_json, *bytes, *quality, *records, *args;
    char env_differs[1400], bytes_differ[600], quality_differs[700];
    hn_baseline_row *rows;
    size_t n_rows;
    hn_side *side[2];
    hn_ab_report ab;
    char hash[2][24], why[2][512];
    bool timed, sides_asked;
    bool different; /* other answers, and that is allowed */
    int looks;
    json_t *notes;
    const char *verdict, *reason; /* reason: of a failure, in words */
    char reason_text[1600];
} gate;

/* Ends the gate: the word of the report, the reason for people, the exit code. */
static int fail(gate *g, int code, const char *verdict, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static int fail(gate *g, int code, const char *verdict, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(g->reason_text, sizeof g->reason_text, fmt, ap);
    va_end(ap);
    g->verdict = verdict;
    g->reason = g->reason_text;
    return code;
}

static int failed(gate *g, const hone_error *err)
{
    if (err->code == HONE_E_INTERRUPTED) return fail(g, HN_EXIT_INTERRUPTED, "interrupted", "interrupted");
    return fail(g, err->code == HONE_E_NOMEM ? HN_EXIT_NOMEM : HN_EXIT_FAILURE, "error", "%s", err->message);
}

/* ---- 1. the machine ------------------------------------------------------------------------------ */

static void note_machine(gate *g)
{
    if (g->env.load[0] > 0.5 * g->env.cores)
        hn_notes_add(g->notes, "load average %.1f on %d cores at the start: expect noise", g->env.load[0],
                     g->env.cores);
    json_t *was = json_object_get(g->baseline, "build");
    for (const char *const *k = (const char *const[]){ "cc", "flags", NULL }; *k && g->baseline; k++) {
        const char *now = strcmp(*k, "cc") == 0 ? g->env.compiler : g->env.flags;
        if (hn_record_text(was, *k)[0] && strcmp(hn_record_text(was, *k), now) != 0)
            hn_notes_add(g->notes, "built otherwise: %s was '%s', is '%s'", *k, hn_record_text(was, *k), now);
    }
}

static int machine(gate *g)
{
    note_machine(g);
    if (hn_opts_flag(g->cli->opts, "strict") && g->env.load[0] > 0.5 * g->env.cores)
        return fail(g, HN_EXIT_ENVIRONMENT, "environment",
                    "the machine is busy: load average %.1f on %d cores, and --strict was asked for", g->env.load[0],
                    g->env.cores);
    char doubt[HN_DOUBTS][400];
    int doubts = hn_around_doubts(doubt, &g->env.around, g->env.cores);
    if (doubts && hn_opts_flag(g->cli->opts, "strict"))
        return fail(g, HN_EXIT_ENVIRONMENT, "environment", "%s, and --strict was asked for", doubt[0]);
    for (int i = 0; i < doubts; i++) hn_notes_add(g->notes, "%s", doubt[i]);
    if (!g->baseline) return 0;
    hn_environ_differ(g->env_differs, sizeof g->env_differs, json_object_get(g->baseline, "env"), g->env_json);
    if (!g->env_differs[0] || g->side[0]) return 0; /* interleaved: both sides run here */
    if (hn_opts_flag(g->cli->opts, "accept-environment")) {
        hn_notes_add(
            g->notes,
            "measured on another machine than the baseline (accepted): its speed, not this change's, may be what "
            "differs");
        return 0;
    }
    return fail(g, HN_EXIT_ENVIRONMENT, "environment",
                "another machine than the baseline's; --accept-environment compares all the same:\n%s", g->env_differs);
}

/* ---- 2. the model's bytes ------------------------------------------------------------------------- */

/* Weights that come from a packed file are other bytes; these must be the model's. */
static int packed_bytes(gate *g)
{
    hone_error err;
    hone_model *m;
    hone_model_info info;
    char file[4096];
    const char *packed = NULL;
    size_t i;
    json_t *a;
    json_array_foreach(g->args, i, a) if (strncmp(json_string_value(a), "--packed=", 9) == 0) packed =
        json_string_value(a) + 9;
    const hone_model_params p = { .packed = packed };
    if (hone_model_open(&m, g->model, &p, &err) != HONE_OK)
        return fail(g, HN_EXIT_QUALITY, "model", "the model cannot be opened: %s", err.message);
    hone_model_get_info(m, &info);
    snprintf(file, sizeof file, "%s", info.packed_path ? info.packed_path : "");
    hone_model_close(m);
    if (!file[0]) return 0;
    hone_progress pr = { hn_progress_fn, (void *)(uintptr_t) "comparing the packed file", hn_abort_fn };
    const hone_pack_params pp = { .file = file, .verify = true };
    hone_packed_info pi;
    hone_status st = hone_pack(g->model, &pp, &pi, &pr, &err);
    hn_progress_end();
    if (st == HONE_OK) return 0;
    if (st == HONE_E_INTERRUPTED) return failed(g, &err);
    return fail(g, HN_EXIT_QUALITY, "model", "the packed weights are not the model's: %s", err.message);
}

static int model_bytes(gate *g)
{
    json_t *was = json_object_get(g->baseline, "model");
    if (!g->model) return 0;
    hone_error err;
    hn_watch w = { hn_progress_fn, (void *)(uintptr_t) "hashing the model", hn_abort_fn };
    hone_status st = hn_model_bytes(&g->bytes, g->model, &w, &err);
    hn_progress_end();
    if (st == HONE_E_IO) return fail(g, HN_EXIT_MODEL, "error", "%s", err.message);
    if (st != HONE_OK) return failed(g, &err);
    if (json_is_object(was)) hn_model_bytes_differ(g->bytes_differ, sizeof g->bytes_differ, was, g->bytes);
    if (g->bytes_differ[0])
        return fail(g, HN_EXIT_QUALITY, "model", "not the model of the baseline: %s. Nothing was timed",
                    g->bytes_differ);
    return packed_bytes(g);
}

/* ---- 3. its answers --------------------------------------------------------------------------------- */

/* The same hash proves as much only where it went all ways that the one before did. */
static int less_proved(gate *g, const hn_proved *proved)
{
    if (!proved->less[0] || hn_opts_flag(g->cli->opts, "allow-different")) return 0;
    return fail(g, HN_EXIT_INCONCLUSIVE, "inconclusive",
                "the same answers, proved on fewer ways: %s. Nothing was timed; where memory is short now, try again; "
                "--allow-different measures all the same",
                proved->less);
}

static int quality(gate *g)
{
    char why[1024];
    hn_proved proved;
    hone_error err;
    json_t *was = json_object_get(g->baseline, "quality_detail");
    if (!g->model || !json_is_object(was)) return 0;
    hn_gate_run run = { .model = g->model, .args = g->args, .stop = hn_abort_fn };
    if (hn_gate_quality(&g->quality, &run, why, sizeof why, &err) != HONE_OK) return failed(g, &err);
    if (!g->quality)
        return fail(g, HN_EXIT_QUALITY, "quality", "the quality run gave no answer: %s. Nothing was timed", why);
    if (!json_is_true(json_object_get(g->quality, "valid")))
        return fail(g, HN_EXIT_QUALITY, "quality", "broken output: %s. Nothing was timed",
                    hn_record_text(g->quality, "reason"));
    hn_quality_differ(g->quality_differs, sizeof g->quality_differs, was, g->quality);
    if (!g->quality_differs[0] && !hn_q_same_kind(hn_record_text(was, "hash"), hn_record_text(g->quality, "hash")))
        hn_notes_add(
            g->notes,
            "the baseline's quality hash, %s, is of an older kind: the eight prompts alone were compared; save it "
            "again",
            hn_record_text(was, "hash"));
    hn_quality_proved(&proved, was, g->quality);
    if (proved.untold[0]) hn_notes_add(g->notes, "quality: %s", proved.untold);
    if (!g->quality_differs[0]) return less_proved(g, &proved);
    if (!hn_opts_flag(g->cli->opts, "allow-different"))
        return fail(g, HN_EXIT_QUALITY, "quality", "%s. Nothing was timed; --allow-different measures all the same",
                    g->quality_differs);
    hn_notes_add(g->notes, "accepted: %s", g->quality_differs);
    g->different = true;
    return 0;
}

static int quality_of(gate *g, const hn_target *t)
{
    hn_proved proved;
    hone_error err;
    if (hn_sides_quality(g->side, t, g->hash, g->why, &err) != HONE_OK) return failed(g, &err);
    g->sides_asked = true;
    for (int i = 1; i >= 0; i--)
        if (g->why[i][0])
            return fail(g, HN_EXIT_QUALITY, "quality", "%s gives broken output: %s. Nothing was timed",
                        hn_side_label(g->side[i]), g->why[i]);
    hn_sides_proved(&proved, g->side);
    if (proved.untold[0]) hn_notes_add(g->notes, "quality: %s", proved.untold);
    if (strcmp(g->hash[0], g->hash[1]) == 0) return less_proved(g, &proved);
    bool answers = hn_q_same_answers(g->hash[0], g->hash[1]);
    if (!hn_opts_flag(g->cli->opts, "allow-different"))
        return fail(g, HN_EXIT_QUALITY, "quality",
                    "quality hash %s, of %s it is %s: %s. Nothing was timed; --allow-different measures all the same",
                    g->hash[1], hn_side_label(g->side[0]), g->hash[0],
                    answers ? "the same answers from other logits" : "other answers");
    hn_notes_add(g->notes, "accepted: quality hash %s, was %s", g->hash[1], g->hash[0]);
    g->different = true;
    return 0;
}

/* Once for each set of benches whose model is asked the same. */
static int quality_of_sides(gate *g, const hn_target *t, size_t n_targets)
{
    const hn_target *of[MAX_IDS];
    size_t n = hn_targets_answering(of, t, n_targets);
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) rc = quality_of(g, of[i]);
    return rc;
}

/* ---- 4. the clock: stored samples ---------------------------------------------------------------------- */

static int keep(gate *g, size_t from)
{
    hone_error err;
    for (size_t i = from; g->base[0] && i < json_array_size(g->records); i++)
        if (hn_record_append(g->base, json_array_get(g->records, i), &err) != HONE_OK) return failed(g, &err);
    return 0;
}

/* Other kernels or another form of the weights than then: legitimate, and worth knowing. */
static void note_config(gate *g)
{
    for (size_t i = 0; i < g->n_rows; i++) {
        if (i && g->rows[i].before == g->rows[i - 1].before) continue;
        json_t *was = json_object_get(g->rows[i].before, "config"), *is = json_object_get(g->rows[i].after, "config");
        for (const char *const *k = (const char *const[]){ "cpu", "weights", NULL }; *k && is; k++)
            if (strcmp(hn_record_text(was, *k), hn_record_text(is, *k)) != 0)
                hn_notes_add(g->notes, "%s: %s was %s, is %s", g->rows[i].id, *k, hn_record_text(was, *k),
                             hn_record_text(is, *k));
    }
}

static int batch(gate *g, int32_t samples)
{
    char why[1024], differ[300];
    int code = 0;
    hone_error err;
    size_t from = json_array_size(g->records);
    hn_gate_run run = {
        .model = g->model, .ids = json_object_get(g->baseline, "ids"), .args = g->args, .stop = hn_abort_fn
    };
    g->timed = true;
    hone_status st = hn_gate_measure(g->records, &run, samples, false, why, sizeof why, &code, &err);
    int rc = keep(g, from);
    if (st != HONE_OK) return failed(g, &err);
    if (rc) return rc;
    if (code > HN_EXIT_FAILURE) return fail(g, hn_lab_code(code), "error", "the measurement failed: %s", why);
    if (why[0]) return fail(g, HN_EXIT_QUALITY, "quality", "an invalid result: %s", why);
    for (size_t i = from; i < json_array_size(g->records) && !g->different; i++)
        for (size_t k = 0; k < json_array_size(json_object_get(g->baseline, "records")); k++) {
            json_t *was = json_array_get(json_object_get(g->baseline, "records"), k),
                   *is = json_array_get(g->records, i);
            if (!hn_same_measurement(was, is)) continue;
            if (hn_gate_unproved(was, is))
                return fail(g, HN_EXIT_QUALITY, "quality",
                            "%s proves nothing of its answer, or less than the baseline's does", hn_record_id(is));
            hn_gate_answers_differ(differ, sizeof differ, was, is);
            if (differ[0])
                return fail(g, HN_EXIT_QUALITY, "quality", "%s: %s, though the quality hash is the same",
                            hn_record_id(is), differ);
        }
    return 0;
}

/* In batches, so that an interruption loses no more than one. */
static int look(gate *g, int32_t samples)
{
    enum { BATCH = 10 };
    int rc = 0;
    for (int32_t left = samples; left > 0 && rc == 0; left -= BATCH) rc = batch(g, left < BATCH ? left : BATCH);
    return rc;
}

static int against_baseline(gate *g)
{
    const hn_opts *o = g->cli->opts;
    hone_error err;
    hn_ab_verdict v = HN_AB_INCONCLUSIVE;
    int32_t first = hn_opts_i32(o, "samples"), have = 0;
    hn_baseline_rule rule = { .metrics = hn_opts_str(o, "metrics"),
                              .margin = hn_opts_given(o, "margin") ? (double)hn_opts_f32(o, "margin") : 0,
                              .alpha = HN_AB_ALPHA / HN_STORED_LOOKS };
    for (int i = 0; i < HN_STORED_LOOKS && v == HN_AB_INCONCLUSIVE; i++) {
        int32_t total = (int32_t)hn_ab_rounds_at((size_t)first, i);
        hn_progress_fn((void *)(uintptr_t) "measuring", (uint64_t)i, HN_STORED_LOOKS);
        int rc = look(g, total - have);
        hn_progress_end();
        if (rc) return rc;
        have = total;
        g->looks = i + 1;
        free(g->rows);
        g->rows = NULL;
        if (hn_baseline_compare(&g->rows, &g->n_rows, g->baseline, g->records, &rule, &err) != HONE_OK)
            return err.code == HONE_E_ARG ? hn_cli_usage(g->cli, "%s", err.message) : failed(g, &err);
        v = hn_baseline_verdict(g->rows, g->n_rows);
    }
    note_config(g);
    hn_notes_add(g->notes, "%s", hn_gate_stored);
    if (v == HN_AB_REGRESSED)
        return fail(g, HN_EXIT_REGRESSION, "regressed", "slower, or larger, than the baseline %s", g->name);
    if (v == HN_AB_INCONCLUSIVE)
        return fail(
            g, HN_EXIT_INCONCLUSIVE, "inconclusive",
            "%d looks with up to %d samples leave it open; more of them (-r), a quieter machine or --ab may tell",
            g->looks, have);
    /* what nobody has seen from outside is not called better: side by side it is */
    if (v == HN_AB_IMPROVED && !g->different)
        hn_notes_add(g->notes, "faster, or smaller, by its own numbers alone: --ab REF shows whether it is better");
    g->verdict = g->different ? "different" : v == HN_AB_IMPROVED ? "not worse" : "same";
    return 0;
}

/* ---- 4. the clock: interleaved --------------------------------------------------------------------------- */

static int open_sides(gate *g)
{
    const hn_opts *o = g->cli->opts;
    const char *spec[2] = { hn_opts_str(o, "ab"), hn_opts_str(o, "head") };
    const hn_side_params sp = { .stop = hn_abort_fn, .tell = hn_lab_tell };
    hone_error err;
    for (int i = 0; i < 2; i++)
        if (hn_side_open(&g->side[i], spec[i], &sp, &err) != HONE_OK) {
            if (err.code == HONE_E_ARG) return hn_cli_usage(g->cli, "%s", err.message);
            return failed(g, &err);
        }
    return 0;
}

/* What both sides are asked to measure; what a side says itself wins. */
static int targets(gate *g, hn_target *t, size_t *n, json_t *ids)
{
    *n = json_array_size(ids);
    if (*n > MAX_IDS) return hn_cli_usage(g->cli, "%zu benches at once; expected at most %d", *n, MAX_IDS);
    for (size_t i = 0; i < *n; i++) {
        t[i] =
            (hn_target){ .id = json_string_value(json_array_get(ids, i)),
                         .model = g->model,
                         .stop = hn_abort_fn,
                         .threads = hn_opts_given(g->cli->opts, "threads") ? hn_opts_i32(g->cli->opts, "threads") : 0 };
        const hn_bench_entry *e = hn_bench_find(t[i].id);
        if (e && e->model && !g->model)
            return hn_cli_usage(g->cli, "%s measures a model; expected -m FILE.gguf", e->id);
        if (!hn_bench_takes(t[i].id, "--model")) t[i].model = NULL;
        size_t k = 0;
        for (size_t a = 0; a < json_array_size(g->args); a++) {
            const char *s = json_string_value(json_array_get(g->args, a));
            if (!hn_bench_takes(t[i].id, s)) continue;
            if (k + 1 == HN_SIDE_ARGS)
                return hn_cli_usage(g->cli, "more than %d options for both sides", HN_SIDE_ARGS - 1);
            t[i].args[k++] = s;
        }
        t[i].args[k] = NULL;
    }
    return 0;
}

static int keep_ab(gate *g)
{
    for (size_t i = 0; i < g->ab.n; i++) {
        json_t *r = hn_ab_record(&g->ab, &g->ab.line[i], g->side[0], g->side[1], &g->env);
        json_array_append_new(g->records, r);
    }
    return keep(g, 0);
}

static int interleaved(gate *g, const hn_target *t, size_t n)
{
    const hn_opts *o = g->cli->opts;
    hone_error err;
    hn_ab_params p = { .targets = t,
                       .n_targets = n,
                       .a = g->side[0],
                       .b = g->side[1],
                       .rounds = (size_t)hn_opts_i32(o, "rounds"),
                       .margin = hn_opts_given(o, "margin") ? (double)hn_opts_f32(o, "margin") : 0,
                       .metrics = hn_opts_str(o, "metrics"),
                       .seed = hn_opts_given(o, "seed") ? hn_opts_u64(o, "seed") : hn_rand64(hn_clock_ns(), 0) >> 1,
                       .runs = hn_opts_given(o, "runs") ? hn_opts_i32(o, "runs") : 0,
                       .strict = hn_opts_flag(o, "strict"),
                       .different = g->different,
                       .allowed = hn_opts_flag(o, "allow-different"),
                       .stop = hn_abort_fn,
                       .progress = hn_ab_show_progress };
    g->timed = true;
    hone_status st = hn_ab_run(&g->ab, &p, &err);
    hn_progress_end();
    if (st == HONE_E_UNSUPPORTED && p.strict) return fail(g, HN_EXIT_ENVIRONMENT, "environment", "%s", err.message);
    if (st == HONE_E_NUMERIC) return fail(g, HN_EXIT_QUALITY, "quality", "an invalid result: %s", err.message);
    if (st == HONE_E_ARG) return hn_cli_usage(g->cli, "%s", err.message);
    if (st != HONE_OK) return failed(g, &err);
    g->looks = g->ab.looks;
    int rc = keep_ab(g);
    if (rc) return rc;
    for (int i = 0; i < g->ab.n_notes; i++) hn_notes_add(g->notes, "%s", g->ab.note[i]);
    if (g->ab.interrupted) return fail(g, HN_EXIT_INTERRUPTED, "interrupted", "interrupted");
    if (g->ab.overall == HN_AB_REGRESSED)
        return fail(g, HN_EXIT_REGRESSION, "regressed", "slower than %s", hn_side_label(g->side[0]));
    if (g->ab.overall == HN_AB_INCONCLUSIVE)
        return fail(g, HN_EXIT_INCONCLUSIVE, "inconclusive", "%d look%s leave it open", g->looks,
                    g->looks == 1 ? "" : "s");
    g->different = g->different || g->ab.overall == HN_AB_DIFFERENT;
    g->verdict = g->different ? "different" : g->ab.overall == HN_AB_IMPROVED ? "improved" : "same";
    return 0;
}

/* ---- what a person and a program see ------------------------------------------------------------------------ */

static void print_lines(const gate *g)
{
    hn_out_printf("%-20s %12s %12s %-7s %7s  %-16s %7s %7s   %s\n", "", "a", "b", "", "b/a", "interval", "margin",
                  "rounds", "verdict");
    for (size_t i = 0; i < g->ab.n; i++) {
        const hn_ab_line *l = &g->ab.line[i];
        char words[200];
        hn_ab_digits t = hn_ab_digits_of(l);
        const hn_bench_entry *e = hn_bench_find(l->target->id);
        const char *name = strlen(l->metric) > 20 ? "" : l->metric;
        if (!(e && e->plain) && strncmp(l->metric, l->target->id, strlen(l->target->id)) != 0)
            hn_out_printf("%s\n", l->target->id);
        if (!name[0]) hn_out_printf("%s\n", l->metric); /* on a line of its own */
        hn_out_printf("%-20s %12s %12s %-7s %7s  %-16s %5.1f %% %7zu   %s %s\n", name, t.a, t.b, l->unit, t.ratio, t.ci,
                      100 * l->r.margin, l->r.n, hn_ab_verdict_name(l->r.verdict), hn_ab_note(&l->r));
        if (hn_ab_say(words, sizeof words, l)[0]) hn_out_printf("%-20s %s\n", "", words);
    }
}

static void print_report(const gate *g)
{
    char when[400];
    if (g->baseline) {
        hn_gate_when(when, sizeof when, g->baseline);
        hn_out_printf("baseline %s: %s\n", g->name, when);
        if (g->env_differs[0])
            hn_out_printf("machine  ANOTHER (env %s, the baseline's %s)\n", g->env.hash,
                          hn_record_text(json_object_get(g->baseline, "env"), "hash"));
        else hn_out_printf("machine  the same (env %s)\n", g->env.hash);
    }
    for (int i = 0; i < 2 && g->side[i]; i++)
        hn_out_printf("%c        %s\n", "ab"[i], HN_ESC(hn_side_label(g->side[i]), strlen(hn_side_label(g->side[i]))));
    if (g->bytes)
        hn_out_printf("model    %s, SHA-256 %s%s\n", hn_record_text(g->bytes, "path"),
                      hn_record_text(g->bytes, "sha256"),
                      g->bytes_differ[0] ? ": NOT THE BASELINE'S"
                      : g->baseline      ? ", as in the baseline"
                                         : "");
    if (g->quality) {
        const char *hash = hn_record_text(g->quality, "hash");
        bool bad = !json_is_true(json_object_get(g->quality, "valid"));
        hn_out_printf("quality  %s%s\n", hash[0] ? hash : "no hash",
                      bad                     ? ": BROKEN"
                      : g->quality_differs[0] ? ": CHANGED"
                                              : ", as in the baseline");
    }
    if (g->sides_asked)
        hn_out_printf("quality  %s%s%s\n", g->hash[1][0] ? g->hash[1] : "no hash",
                      strcmp(g->hash[0], g->hash[1]) == 0 ? ", the same on both sides" : ", a's is ",
                      strcmp(g->hash[0], g->hash[1]) == 0 ? "" : g->hash[0]);
    if (g->n_rows) {
        hn_out_printf("\n");
        hn_gate_print_rows(g->rows, g->n_rows);
    }
    if (g->ab.n) {
        hn_out_printf("\n");
        print_lines(g);
    }
    hn_out_printf("\n");
    size_t i;
    json_t *n;
    json_array_foreach(g->notes, i, n) hn_out_printf("note     %s\n", json_string_value(n));
    hn_out_printf("timed    %s\n", !g->timed ? "nothing" : g->looks > 1 ? "several looks" : "one look");
    hn_out_printf("verdict  %s\n", g->verdict);
}

static int print_json(const gate *g, int rc)
{
    json_t *o = hn_json_new("hone.gate/1");
    json_object_set_new(o, "kind", json_string(g->side[0] ? "ab" : "baseline"));
    json_object_set_new(o, "baseline", hn_lab_str(g->name));
    json_object_set_new(o, "verdict", json_string(g->verdict));
    json_object_set_new(o, "exit", json_integer(rc));
    json_object_set_new(o, "reason", hn_lab_str(g->reason));
    json_object_set_new(o, "timed", json_boolean(g->timed));
    json_object_set_new(o, "looks", json_integer(g->looks));
    json_object_set_new(o, "environment",
                        json_pack("{s:b, s:o, s:O}", "same", !g->env_differs[0], "differs",
                                  g->env_differs[0] ? hn_lab_str(g->env_differs) : json_null(), "now", g->env_json));
    json_object_set_new(o, "model", g->bytes ? json_incref(g->bytes) : json_null());
    json_object_set_new(o, "quality",
                        g->quality       ? json_incref(json_object_get(g->quality, "hash"))
                        : g->sides_asked ? json_pack("[s,s]", g->hash[0], g->hash[1])
                                         : json_null());
    json_object_set_new(o, "quality_differs", g->quality_differs[0] ? hn_lab_str(g->quality_differs) : json_null());
    json_object_set_new(o, "rows", hn_gate_rows_json(g->rows, g->n_rows));
    json_object_set(o, "records", g->records);
    json_object_set(o, "notes", g->notes);
    return hn_json_print(o);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int judge(gate *g)
{
    const hn_opts *o = g->cli->opts;
    bool ab = hn_opts_str(o, "ab") != NULL;
    hn_target t[MAX_IDS];
    size_t n = 0;
    json_t *ids = ab ? hn_gate_ids(g->cli, 0) : NULL;
    int rc = 0;
    if (ab) g->model = hn_opts_str(o, "model") ? hn_opts_str(o, "model") : hn_gate_model(g->cli, g->baseline);
    else g->model = hn_gate_model(g->cli, g->baseline);
    if (ab) g->args = hn_gate_args(g->cli, true);
    else rc = hn_gate_settings(g->cli, g->baseline, &g->args);
    if (ab) rc = hn_bench_check_options(g->cli, ids);
    if (ab && rc == 0) rc = targets(g, t, &n, ids);
    if (ab && rc == 0) rc = open_sides(g);
    if (rc == 0) rc = machine(g);
    if (rc == 0) rc = model_bytes(g);
    if (rc == 0) rc = quality(g);
    if (rc == 0 && ab) rc = quality_of_sides(g, t, n);
    if (rc == 0) rc = ab ? interleaved(g, t, n) : against_baseline(g);
    if (g->verdict && g->cli->json) rc = hn_json_printed(rc, print_json(g, rc)); /* while the ids that it names live */
    if (g->verdict && !g->cli->json) print_report(g);
    json_decref(ids);
    return rc;
}

/* Each way of judging reads options of its own. */
static int check_options(const hn_cli *cli)
{
    static const char *const stored[] = { "baseline",           "dir",    "metrics", "margin", "samples",
                                          "accept-environment", "strict", "file",    "model",  "packed",
                                          "allow-different",    NULL },
                             *const of_samples[] = { "samples", NULL }, *const of_net[] = { "preset", NULL },
                             *const of_baseline[] = { "dir", "accept-environment", NULL };
    if (!hn_opts_str(cli->opts, "ab"))
        return hn_cli_without_effect(cli, true, stored,
                                     "a baseline is measured as it was saved; expected it with --ab, or with hone lab "
                                     "baseline save");
    int rc = hn_cli_without_effect(cli, false, of_samples, "with --ab the looks are --rounds of --runs");
    if (rc == 0) rc = hn_cli_without_effect(cli, false, of_net, "expected it with kern, the net of all shapes");
    if (rc == 0 && !hn_opts_str(cli->opts, "baseline"))
        rc = hn_cli_without_effect(cli, false, of_baseline, "expected it with --baseline");
    return rc;
}

static int run(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    hone_error err;
    if (hn_gate_is_net(cli)) return hn_gate_net(cli, hn_opts_str(o, "preset"));
    gate g = { .cli = cli, .name = hn_opts_str(o, "baseline"), .records = json_array(), .notes = json_array() };
    const char *file = hn_opts_str(o, "file");
    int rc = 0;
    if (!g.name && !hn_opts_str(o, "ab"))
        rc = hn_cli_usage(cli, "nothing to compare with; expected --baseline NAME or --ab REF");
    if (!rc && !hn_opts_str(o, "ab") && hn_opts_n_args(o))
        rc = hn_cli_usage(cli, "ids belong to --ab; a baseline knows what to measure");
    if (!rc) rc = check_options(cli);
    if (!rc && file && hn_record_base(g.base, sizeof g.base, file, &err) != HONE_OK)
        rc = hn_cli_usage(cli, "%s", err.message);
    if (!rc && g.name) rc = hn_gate_load(cli, g.name, &g.baseline);
    if (!rc) {
        hn_environ_read(&g.env);
        g.env_json = hn_environ_json(&g.env);
        rc = judge(&g);
    }
    if (g.reason) hn_cli_error(0, "gate: %s", g.reason);
    hn_side_close(g.side[0]);
    hn_side_close(g.side[1]);
    hn_ab_report_free(&g.ab);
    free(g.rows);
    json_t *all[] = { g.baseline, g.env_json, g.bytes, g.quality, g.records, g.args, g.notes };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) json_decref(all[i]);
    return rc;
}

static const hn_opt_group *const groups[] = { &group, &hn_group_model, &hn_group_measured, &hn_group_compute, NULL };
const hn_command hn_command_lab_gate = {
    .name = "lab gate",
    .summary = "May this change pass? Machine, model, answers, then speed; exit 0, 10, 11, 12 or 13",
    .args = "[ID…]",
    .max_args = -1,
    .groups = groups,
    .examples =
        "hone lab gate --baseline before\n"
        "hone lab gate --ab main -m model.gguf -p 128 -n 32\n"
        "hone lab gate --ab HEAD~1 kern             # every product at the shapes of every model: none several times "
        "slower?\n"
        "hone lab gate --ab ./hone-old --baseline release -m model.gguf   # answers as stored, speed side by side\n",
    .run = run,
};
