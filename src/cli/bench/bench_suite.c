/* hone bench, hone bench ID…, hone bench --suite NAME: rows of the catalogue, one after the
 * other, each record kept as soon as it is there; without ids the plain run. Owns choice, progress and output; the
 * measuring is lab's. */
#include "cli/bench/bench_command.h"
#include "lab/bench/target.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const hn_opt suite_opts[] = {
    HN_OPT("suite", NULL, CHOICE, "NAME",
           "all entries of hone lab list that belong to a suite: quick takes a minute or two, ci leaves out what is "
           "slow or noisy",
           .choices = "quick|full|ci"),
    HN_OPT("seed", NULL, U64, "N", "of everything drawn by chance", .def = "1"),
    HN_OPT_END,
};
const hn_opt_group hn_group_suite = { "Entries of the catalogue (hone bench ID…)", suite_opts };

typedef struct suite {
    const hn_cli *cli;
    hn_bench_run run;
    const hn_bench_entry **chosen;
    size_t n_chosen;
    hn_kern_choice kernels;
    json_t *failed, *absent;    /* arrays of {id, reason} */
    hn_argv args;               /* the settings, for fresh processes */
    bool plain;                 /* no ids: one run of a model, whose record is the result */
    hn_work work;               /* of its model */
    const char *file;           /* --file, or where a baseline is made from; NULL: none */
    char base[4096], row[8192]; /* of file; what was added to its history */
    bool header, in_kernels, looked;
    hn_history before; /* what the file held when the first record came */
    char said[64];     /* id of the last line */
} suite;

/* ---- choice ---------------------------------------------------------------------------------- */

static void list_add(json_t *list, const char *id, const char *reason)
{
    json_array_append_new(list, json_pack("{s:s, s:o}", "id", id, "reason", hn_lab_str(reason)));
}

static bool add_entry(suite *s, const hn_bench_entry *e)
{
    for (size_t i = 0; i < s->n_chosen; i++)
        if (s->chosen[i] == e) return true;
    const hn_bench_entry **grown = realloc(s->chosen, (s->n_chosen + 1) * sizeof *grown);
    if (!grown) return false;
    s->chosen = grown;
    s->chosen[s->n_chosen++] = e;
    return true;
}

/* What a pattern, a group or a suite means may be missing here; what was asked for by name may not. */
static int add_some(suite *s, const hn_bench_entry *e)
{
    if (e->needs) {
        char why[400];
        snprintf(why, sizeof why, "not in this build: needs %s", e->needs);
        list_add(s->absent, e->id, why);
    } else if (e->model && !hn_opts_str(s->cli->opts, "model")) list_add(s->absent, e->id, "measures a model: -m FILE");
    else if (!add_entry(s, e)) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the list of entries");
    return 0;
}

static int no_such(const suite *s, const char *arg)
{
    enum { MOST = 512 };
    const char *ids[MOST];
    const hn_bench_entry *e;
    size_t n = 0;
    for (size_t i = 0; n < MOST && (e = hn_bench_at(i)); i++)
        if (!e->needs) ids[n++] = e->id;
    const char *near = hn_nearest(arg, ids, n);
    if (near) return hn_cli_usage(s->cli, "nothing is called '%s'; did you mean %s?", HN_ESC(arg, strlen(arg)), near);
    bool list = strspn(arg, "0123456789") == strlen(arg) && hn_opts_given(s->cli->opts, "counts");
    return hn_cli_usage(s->cli, "nothing is called '%s'; bench takes options, and ids that hone lab list shows%s",
                        HN_ESC(arg, strlen(arg)), list ? "; a list has commas: --counts 100,1000" : "");
}

static int choose_one(suite *s, const char *arg)
{
    const hn_bench_entry *e = hn_bench_find(arg);
    if (e && e->needs) return hn_cli_usage(s->cli, "%s is not in this build: needs %s", e->id, e->needs);
    if (e && e->model && !hn_opts_str(s->cli->opts, "model"))
        return hn_cli_usage(s->cli, "%s measures a model: -m FILE", e->id);
    if (e) return add_some(s, e);
    size_t n = 0;
    int rc = 0;
    for (size_t i = 0; (e = hn_bench_at(i)) && rc == 0; i++)
        if (hn_bench_matches(arg, e->id)) {
            n++;
            rc = add_some(s, e);
        }
    bool pattern = strpbrk(arg, "*?[") != NULL;
    if (rc || (n && !pattern)) return rc;
    if (strncmp(arg, "kern", 4) == 0 || pattern) { /* shapes too */
        rc = hn_kern_choose(s->cli, arg, &s->kernels);
        if (rc != HN_KERN_NONE || n) return rc == HN_KERN_NONE ? 0 : rc;
    }
    if (strncmp(arg, "cmp.", 4) == 0 && (e = hn_bench_find("cmp.ENGINE")) && e->needs) /* the catalogue's placeholder */
        return hn_cli_usage(s->cli, "%s is not in this build: needs %s", HN_ESC(arg, strlen(arg)), e->needs);
    return no_such(s, arg);
}

static int choose(suite *s)
{
    const hn_opts *o = s->cli->opts;
    const char *name = hn_opts_str(o, "suite");
    const hn_bench_entry *e;
    int rc = 0;
    if (s->plain)
        rc = add_entry(s, hn_bench_plain()) ? 0 : hn_cli_error(HN_EXIT_NOMEM, "no memory for the list of entries");
    if (name && hn_opts_n_args(o) > 0) return hn_cli_usage(s->cli, "--suite %s and ids exclude each other", name);
    if (name && !hn_opts_str(o, "model")) return hn_cli_usage(s->cli, "--suite measures a model: -m FILE");
    for (size_t i = 0; name && (e = hn_bench_at(i)) && rc == 0; i++)
        if (hn_bench_in_suite(e, name)) rc = add_some(s, e);
    for (int i = 0; i < hn_opts_n_args(o) && rc == 0; i++) rc = choose_one(s, hn_opts_arg(o, i));
    if (rc == 0 && s->kernels.n) rc = hn_kern_check(s->cli, &s->run);
    if (rc == 0 && s->n_chosen == 0 && s->kernels.n == 0) {
        const char *why = json_string_value(json_object_get(json_array_get(s->absent, 0), "reason"));
        return hn_cli_usage(s->cli, "nothing to measure: %s", why ? why : "no such entry");
    }
    s->run.cost_all = 0.5 * (double)s->kernels.n;
    for (size_t i = 0; i < s->n_chosen; i++) s->run.cost_all += s->chosen[i]->cost > 0 ? (double)s->chosen[i]->cost : 1;
    return rc;
}

/* ---- options without effect ------------------------------------------------------------------------ */

/* "e2e, e2e.gen": the rows that this option changes. */
static void list_users(char *dst, size_t cap, const char *option)
{
    enum { MOST = 6 };
    const hn_bench_entry *e;
    size_t n = 0;
    dst[0] = 0;
    for (size_t i = 0; (e = hn_bench_at(i)); i++) {
        size_t len = strlen(dst);
        if (e->needs || !hn_bench_uses(e, option)) continue;
        if (n++ == MOST) snprintf(dst + len, cap - len, ", …");
        if (n <= MOST) snprintf(dst + len, cap - len, "%s%s", n > 1 ? ", " : "", e->id);
    }
    if (n == 0) snprintf(dst, cap, "single kernels (kern.…)");
}

static int check_option(const hn_cli *cli, const char *name, const char *spelled, const json_t *ids)
{
    size_t i;
    json_t *id;
    char users[300];
    const char *more = json_array_size(ids) > 1 ? " and the others" : "";
    json_array_foreach(ids, i, id) if (hn_bench_id_uses(json_string_value(id), name)) return 0;
    list_users(users, sizeof users, name);
    return hn_cli_usage(cli, "%s has no effect on %s%s; leave it out, or measure what it changes: %s", spelled,
                        json_string_value(json_array_get(ids, 0)), more, users);
}

/* A length that a row replaces by its own would be a lie. */
static int check_length(const hn_cli *cli, const char *name, const char *spelled, const json_t *ids)
{
    size_t i;
    json_t *id;
    json_array_foreach(ids, i, id)
    {
        const hn_bench_entry *e = hn_bench_find(json_string_value(id));
        int32_t n = hn_opts_i32(cli->opts, name), least = e && e->least ? e->least : 1;
        if (e && !e->plain && hn_bench_uses(e, name) && n < least)
            return hn_cli_usage(cli, "%s %d: %s needs at least %d token%s", spelled, n, e->id, least,
                                least == 1 ? "" : "s");
    }
    return 0;
}

int hn_bench_check_options(const hn_cli *cli, const json_t *ids)
{
    size_t at = 0;
    const char *name, *spelled;
    int rc = 0;
    while (rc == 0 && (name = hn_opts_next(cli->opts, &at, &spelled))) {
        if (hn_bench_is_particular(name)) rc = check_option(cli, name, spelled, ids);
        if (rc == 0 && (strcmp(name, "n-prompt") == 0 || strcmp(name, "n-gen") == 0))
            rc = check_length(cli, name, spelled, ids);
    }
    return rc;
}

static int check_options(const suite *s)
{
    json_t *ids = json_array();
    for (size_t i = 0; i < s->n_chosen; i++) json_array_append_new(ids, json_string(s->chosen[i]->id));
    for (size_t i = 0; i < s->kernels.n; i++) json_array_append_new(ids, json_string(s->kernels.k[i].id));
    int rc = hn_bench_check_options(s->cli, ids);
    if (rc == 0) rc = hn_bench_check_required(s->cli, ids);
    json_decref(ids);
    return rc;
}

enum { VARY_COLUMNS = 32 };

/* ---- output ------------------------------------------------------------------------------------ */

/* What tells this record from others of its id: the variant, else keys that not every record has. */
static void vary_text(const char *id, json_t *config, char *dst, size_t cap)
{
    static const char *const common[] = { "threads", "cpu",  "chunk",   "kv",    "weights",
                                          "sampler", "seed", "variant", "kernel" };
    const char *v = hn_record_text(config, "variant"), *weights = hn_record_text(config, "weights"), *key;
    size_t n = 0;
    json_t *j;
    dst[0] = 0;
    if (*v) n = (size_t)snprintf(dst, cap, "%s", v);
    json_object_foreach(config, key, j)
    {
        bool skip = *v || json_is_null(j);
        for (size_t i = 0; i < sizeof common / sizeof *common; i++) skip = skip || strcmp(key, common[i]) == 0;
        if (skip || n + 1 >= cap) continue;
        const char *space = n ? ", " : "";
        if (json_is_string(j)) n += (size_t)snprintf(dst + n, cap - n, "%s%s", space, json_string_value(j));
        else if (json_is_number(j) && strcmp(key, "n_prompt") == 0)
            n += (size_t)snprintf(dst + n, cap - n, "%s%.6g tokens", space, json_number_value(j));
        else if (json_is_number(j) && (strcmp(key, "batch") != 0 || json_number_value(j) != 1))
            n += (size_t)snprintf(dst + n, cap - n, "%s%s %.6g", space, key, json_number_value(j));
    }
    if (*weights && strncmp(id, "kern.", 5) == 0 && n + 1 < cap)
        snprintf(dst + n, cap - n, "%s%s", n ? ", " : "", weights);
}

static void print_notes(json_t *notes)
{
    size_t i;
    json_t *note;
    json_array_foreach(notes, i, note) hn_out_printf("%s%s", i ? "; " : "    note: ", json_string_value(note));
    if (json_array_size(notes)) hn_out_printf("\n");
}

/* Of many samples the late ones; with -v mean and standard deviation, too. */
static void print_spread(const suite *s, json_t *stats)
{
    static const char *const late[] = { "p90", "p95", "p99" };
    double mean = hn_record_number(stats, "mean"), sd = hn_record_number(stats, "sd");
    char a[40], b[40];
    bool begun = s->cli->verbose && isfinite(mean);
    if (begun) hn_out_printf("    mean %s", hn_digits(a, sizeof a, mean, sd));
    if (begun && isfinite(sd)) hn_out_printf(" ± %s", hn_digits(b, sizeof b, sd, sd));
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        double v = hn_record_number(stats, late[i]);
        if (!isfinite(v)) continue;
        hn_out_printf("%s%s %s", begun ? ", " : "    ", late[i], hn_digits(a, sizeof a, v, v * 0.01));
        begun = true;
    }
    if (begun) hn_out_printf("\n");
}

static void print_record(suite *s, json_t *r)
{
    json_t *stats = json_object_get(r, "stats"), *ci = json_object_get(stats, "ci95"),
           *roof = json_object_get(r, "roofline");
    const char *id = hn_record_text(r, "id"), *unit = hn_record_text(r, "unit"), *target = hn_record_text(r, "target"),
               *why = hn_record_text(r, "invalid_reason");
    double median = hn_record_number(stats, "median"), pct = hn_record_number(roof, "pct");
    char vary[160], ci_text[32] = "n/a", roof_text[48] = "", allocs[48], value[40] = "-", said[200];
    if (!s->header) /* ± is two bytes and one column */
        hn_out_printf("%-24s %-*s %12s %-8s %9s  %-14s %-14s %s\n", "", VARY_COLUMNS, "", "median", "", "± 95 %",
                      "of roof", "allocs (B)", "target");
    s->header = true;
    vary_text(id, json_object_get(r, "config"), vary, sizeof vary);
    bool known = json_array_size(ci) == 2 && median > 0;
    double half = 0.5 * (known ? json_number_value(json_array_get(ci, 1)) - json_number_value(json_array_get(ci, 0))
                               : hn_record_number(stats, "max") - hn_record_number(stats, "min"));
    if (isfinite(median)) hn_digits(value, sizeof value, median, half);
    double share = 100 * half / fabs(median);
    bool points = strcmp(unit, "%") == 0; /* of what is a share itself: as it is, not a share of it */
    if (known && points) snprintf(ci_text, sizeof ci_text, "%.2g", half);
    else if (known && share > 999) snprintf(ci_text, sizeof ci_text, "> 999 %%");
    else if (known) snprintf(ci_text, sizeof ci_text, share < 10 ? "%.1f %%" : "%.0f %%", share);
    else if (hn_record_number(stats, "n") > 0)
        snprintf(ci_text, sizeof ci_text, "n = %.0f", hn_record_number(stats, "n"));
    hn_wish wish = hn_target_judge(r);
    if (wish && *target) snprintf(said, sizeof said, "%s: %s", target, hn_wish_word(wish));
    else snprintf(said, sizeof said, "%s", target);
    if (isfinite(pct)) snprintf(roof_text, sizeof roof_text, "%.0f %% (%s)", pct, hn_record_text(roof, "roof"));
    hn_allocs_text(allocs, sizeof allocs, hn_record_allocs(r, ""));
    const char *shown = strcmp(id, s->said) == 0 ? "" : id, *wished = wish || *shown ? said : "";
    if (strlen(vary) > VARY_COLUMNS) { /* on a line of its own */
        hn_out_printf("%-24s %s\n", shown, vary);
        shown = "";
        vary[0] = 0;
    }
    hn_out_printf("%-24s %-*s %12s %-8s %8s  %-14s %-14s %s\n", shown, VARY_COLUMNS, vary, value, unit, ci_text,
                  roof_text, allocs, wished);
    print_spread(s, stats);
    snprintf(s->said, sizeof s->said, "%s", id);
    if (json_is_false(json_object_get(r, "valid"))) hn_out_printf("    INVALID: %s\n", why);
    print_notes(json_object_get(r, "notes"));
    hn_out_flush();
}

/* What the file held before: a result is held against the last one like it. */
static hone_status look_back(suite *s, hone_error *err)
{
    char path[4200];
    if (s->looked || !s->base[0] || s->cli->json) return HONE_OK;
    s->looked = true;
    snprintf(path, sizeof path, "%s.jsonl", s->base);
    if (access(path, F_OK) != 0 && errno == ENOENT) return HONE_OK; /* none yet: nothing to compare with */
    return hn_history_read(&s->before, path, err);
}

/* Into the file first: what is shown is kept. */
static hone_status take(void *arg, const hn_bench_entry *e, json_t *record, hone_error *err)
{
    suite *s = arg;
    hone_error unread = { 0 };
    hn_progress_end();
    hone_status back = look_back(s, &unread);
    hone_status st = s->base[0] ? hn_record_append(s->base, record, err) : HONE_OK;
    if (st == HONE_OK && s->base[0] && e->plain) st = hn_history_append(s->base, record, s->row, sizeof s->row, err);
    if (st != HONE_OK) hn_cli_error(0, "%s: the record was not kept: %s", e->id, err->message);
    if (!s->cli->json && e->plain) {
        hn_bench_report_plain(s->cli, &s->run, &s->work, record);
        if (back == HONE_OK) back = hn_bench_print_last(s->before.records, record, false, &unread);
        if (s->row[0]) hn_out_printf("\n%s.md:\n%s", s->base, s->row);
    } else if (!s->cli->json && !s->in_kernels) {
        print_record(s, record);
        if (back == HONE_OK) back = hn_bench_print_last(s->before.records, record, true, &unread);
    }
    if (back != HONE_OK) hn_cli_error(0, "%s: not held against the last result: %s", e->id, unread.message);
    if (back != HONE_OK && st == HONE_OK) {
        st = back;
        *err = unread;
    }
    if (json_is_false(json_object_get(record, "valid")))
        hn_cli_error(0, "invalid result: %s%s%s", s->plain ? "" : e->id, s->plain ? "" : ": ",
                     hn_record_text(record, "invalid_reason"));
    return st;
}

static void show_progress(void *arg, const char *id, double done, double left_s)
{
    char label[160];
    if (!hn_stderr_is_tty()) return;
    if (!(left_s >= 0)) snprintf(label, sizeof label, "%s", id);
    else if (left_s < 100) snprintf(label, sizeof label, "%s, about %.0f s left", id, left_s);
    else snprintf(label, sizeof label, "%s, about %.0f min left", id, left_s / 60);
    hn_progress_fn(label, (uint64_t)(1000 * done), 1000);
}

/* The one record of a plain run is its result. */
static int result(const suite *s)
{
    json_t *record = json_array_get(s->run.records, 0);
    return s->cli->json && record ? hn_json_print(json_incref(record)) : 0;
}

static int summary(suite *s, bool interrupted)
{
    if (hn_bench_as_table(s->cli)) return hn_bench_print_table(s->cli, s->run.records);
    if (s->plain) return result(s);
    if (!s->cli->json) {
        size_t i;
        json_t *f;
        json_array_foreach(s->absent, i, f)
            hn_out_printf("left out %s: %s\n", hn_record_text(f, "id"), hn_record_text(f, "reason"));
        if (s->run.no_roof[0]) hn_out_printf("roof     not known: %s\n", s->run.no_roof);
        else {
            char when[512];
            hn_peaks_say(&s->run.peaks, when, sizeof when);
            hn_out_printf("roof     %s\n", when);
        }
        const hn_environ *env = &s->run.env;
        if (env->load[0] > 0.5 * env->cores)
            hn_out_printf("noisy    load average %.1f on %d cores at the start\n", env->load[0], env->cores);
        if (interrupted) hn_out_printf("stopped  %zu records were there\n", json_array_size(s->run.records));
        return 0;
    }
    char ts[40];
    json_t *o = hn_json_new(HN_SUITE_SCHEMA);
    hn_utc_now(ts, sizeof ts);
    json_object_set_new(o, "ts", json_string(ts));
    json_object_set_new(o, "suite", hn_lab_str(hn_opts_str(s->cli->opts, "suite")));
    json_object_set_new(o, "complete", json_boolean(!interrupted && json_array_size(s->failed) == 0));
    json_object_set_new(o, "interrupted", json_boolean(interrupted));
    json_object_set_new(o, "invalid", json_integer(s->run.n_invalid));
    json_object_set_new(o, "not_kept", json_integer(s->run.n_lost));
    json_object_set(o, "failed", s->failed);
    json_object_set(o, "absent", s->absent);
    json_object_set(o, "records", s->run.records);
    return hn_json_print(o);
}

/* ---- the run --------------------------------------------------------------------------------------- */

static double seconds_opt(const hn_opts *o, const char *name)
{
    return hn_opts_given(o, name) ? (double)hn_opts_f32(o, name) : 0;
}

static int32_t count_opt(const hn_opts *o, const char *name)
{
    return hn_opts_given(o, name) ? hn_opts_i32(o, name) : -1;
}

static int begin(suite *s)
{
    const hn_opts *o = s->cli->opts;
    hone_error err;
    const char *env_threads = getenv("HONE_THREADS");
    int64_t threads = 0;
    s->file = hn_opts_str(o, "file");
    if (s->plain && !s->file && (hn_opts_str(o, "baseline") || hn_opts_str(o, "save-baseline"))) s->file = "local";
    if (s->file && hn_record_base(s->base, sizeof s->base, s->file, &err) != HONE_OK)
        return hn_cli_usage(s->cli, "%s", err.message);
    if (hn_opts_given(o, "threads")) threads = hn_opts_i32(o, "threads");
    else if (env_threads && env_threads[0] &&
             hn_parse_i64(&threads, env_threads, 1, 1024, "HONE_THREADS", &err) != HONE_OK)
        return hn_cli_usage(s->cli, "%s", err.message);
    hn_opts_forward(o, HN_FORWARD_MODEL | HN_FORWARD_SETTINGS | HN_FORWARD_ADAPTERS | HN_FORWARD_QUALITY, true,
                    &s->args);
    if (hn_argv_check(&s->args, "processes", &err) != HONE_OK) return hn_cli_fail(&err);
    const hn_bench_settings set = { .model = hn_opts_str(o, "model"),
                                    .packed = hn_opts_str(o, "packed"),
                                    .pre = hn_opts_str(o, "pre"),
                                    .threads = (int32_t)threads,
                                    .threads_batch =
                                        hn_opts_given(o, "threads-batch") ? hn_opts_i32(o, "threads-batch") : 0,
                                    .cpu = hn_opts_str(o, "cpu"),
                                    .kv = hn_opts_str(o, "kv"),
                                    .chunk = hn_opts_i32(o, "chunk"),
                                    .allow_paging = hn_opts_flag(o, "allow-paging"),
                                    .n_prompt = count_opt(o, "n-prompt"),
                                    .prompt_seed = hn_opts_u64(o, "prompt-seed"),
                                    .n_gen = count_opt(o, "n-gen"),
                                    .depth = count_opt(o, "depth"),
                                    .warmups = count_opt(o, "warmup"),
                                    .samples = count_opt(o, "samples"),
                                    .warm_up_s = seconds_opt(o, "warm-up-time"),
                                    .measure_s = seconds_opt(o, "measurement-time"),
                                    .quick = hn_opts_flag(o, "quick"),
                                    .no_quality = hn_opts_flag(o, "no-quality"),
                                    .seed = hn_opts_u64(o, "seed"),
                                    .counts = hn_opts_str(o, "counts"),
                                    .title = hn_opts_str(o, "title"),
                                    .change = hn_opts_str(o, "change"),
                                    .child_args = hn_argv_words(&s->args),
                                    .cautions = hn_cli_cautions,
                                    .stop = hn_abort_fn,
                                    .progress = show_progress,
                                    .sink = take,
                                    .sink_arg = s };
    if (hn_bench_begin(&s->run, &set, &err) != HONE_OK) return hn_cli_usage(s->cli, "%s", err.message);
    return 0;
}

/* The model of a plain run is opened here, where there are words for what is wrong with it, and for what is told. */
static int open_plain(suite *s)
{
    const hn_opts *o = s->cli->opts;
    hone_model *m;
    hone_model_info info;
    hone_error err;
    int rc = hn_cli_open_model(s->cli, false, &m);
    if (rc) return rc;
    hone_model_get_info(m, &info);
    hn_cli_window_note(&info, (int64_t)hn_opts_i32(o, "depth") + hn_opts_i32(o, "n-prompt") + hn_opts_i32(o, "n-gen"));
    hone_status st = hn_work_of(&s->work, hn_opts_str(o, "model"), &err);
    hn_work_add(&s->work, &info);
    hn_bench_adopt(&s->run, m);
    return st == HONE_OK ? 0 : hn_cli_fail_model(&err);
}

static int measure(suite *s, bool *interrupted)
{
    int rc = 0;
    hone_error err;
    for (size_t i = 0; i < s->n_chosen && !*interrupted; i++) {
        hone_status st = hn_bench_run_one(&s->run, s->chosen[i], &err);
        hn_progress_end();
        if (st == HONE_OK) continue;
        *interrupted = st == HONE_E_INTERRUPTED;
        if (*interrupted) break;
        if (st == HONE_E_UNSUPPORTED) {
            list_add(s->absent, s->chosen[i]->id, err.message);
            if (s->n_chosen == 1) return hn_cli_fail(&err);
            continue;
        }
        if (s->plain) return s->run.told ? hn_exit_code(st) : hn_cli_fail(&err);
        list_add(s->failed, s->chosen[i]->id, err.message);
        bool no_model = st == HONE_E_IO && s->chosen[i]->model && !s->run.model_json; /* it never could be opened */
        int code = hn_cli_error(no_model ? HN_EXIT_MODEL : hn_exit_code(st), "%s: %s", s->chosen[i]->id, err.message);
        if (rc == 0) rc = code;
        if (!s->run.model && s->chosen[i]->model && s->chosen[i]->method != 'P')
            break; /* the model cannot be opened: nothing that follows can */
    }
    if (*interrupted || rc || s->kernels.n == 0) return rc;
    s->in_kernels = true;
    hone_status st = hn_kern_run(s->cli, &s->run, &s->kernels, &err);
    hn_progress_end();
    *interrupted = st == HONE_E_INTERRUPTED;
    return st == HONE_OK || *interrupted ? 0 : hn_cli_fail(&err);
}

static int finish(suite *s, int rc, bool interrupted)
{
    size_t n = json_array_size(s->run.records);
    int said = summary(s, interrupted);
    if (rc == 0) rc = said;
    if (interrupted) {
        if (s->plain && n == 0) hn_cli_error(0, "interrupted");
        else hn_cli_error(0, "interrupted: what was measured is shown%s", s->base[0] ? " and kept" : "");
        return HN_EXIT_INTERRUPTED; /* in the laboratory every stop is 6 */
    }
    if (rc == 0 && (s->run.n_invalid || s->run.n_lost)) rc = HN_EXIT_FAILURE;
    if (rc == 0) rc = hn_bench_require(s->cli, s->run.records, s->absent);
    const char *record = json_string_value(json_object_get(json_array_get(s->run.records, 0), "record"));
    return rc ? rc : hn_bench_follow(s->cli, s->file, s->plain ? record : NULL);
}

int hn_bench_suite(const hn_cli *cli)
{
    suite s = { .cli = cli,
                .failed = json_array(),
                .absent = json_array(),
                .plain = hn_opts_n_args(cli->opts) == 0 && !hn_opts_str(cli->opts, "suite") };
    bool interrupted = false;
    int rc = begin(&s);
    if (rc == 0) rc = choose(&s);
    if (rc == 0) rc = check_options(&s);
    for (size_t i = 0; i < s.n_chosen && rc == 0; i++)
        if (s.chosen[i]->plain) rc = open_plain(&s);
    if (rc == 0) {
        rc = measure(&s, &interrupted);
        rc = finish(&s, rc, interrupted);
    }
    hn_argv_free(&s.args);
    hn_history_free(&s.before);
    free(s.chosen);
    free(s.kernels.k);
    json_decref(s.failed);
    json_decref(s.absent);
    hn_bench_end(&s.run);
    return rc;
}
