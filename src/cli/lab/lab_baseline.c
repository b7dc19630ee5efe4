/* hone lab baseline: measurements kept under a name. Owns options and words; what a
 * baseline is and how it compares is lab's. */
#define _GNU_SOURCE
#include "cli/bench/bench_command.h"
#include "cli/lab/gate_settings.h"
#include "lab/record/history.h"
#include "lab/record/record_read.h"
#include "lab/machine/environ.h"
#include "lab/record/record.h"
#include "lab/stats/compare.h"
#include "lab/stats/stats.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/stat.h>

static const hn_opt opts[] = {
    HN_OPT("dir", NULL, FILE, "DIR", "where baselines are kept", .def = HN_BASELINE_DIR, .use = HN_USE_NONE),
    HN_OPT("samples", "-r --repetitions", I32, "N", "save, compare: samples to measure", .def = "10", .min = 3,
           .max = 10000),
    HN_OPT("from", NULL, STR, "NAME",
           "save, compare: measure nothing; take the newest record of each measurement from benchmarks/NAME.jsonl",
           .use = HN_USE_HISTORY),
    HN_OPT("record", NULL, STR, "ID", "with --from: this record alone", .repeat = true),
    HN_OPT("force", NULL, FLAG, NULL, "save: replace a baseline of that name"),
    HN_OPT("metrics", NULL, STR, "LIST", "compare: metrics that count, with commas, or all"),
    HN_OPT("margin", NULL, F32, "E", "compare: differences up to E do not matter", .def = "0.1", .min = 0.001,
           .max = 0.9),
    HN_OPT_END,
};
static const hn_opt_group group = { "Baselines", opts };

/* ---- records that are there already ----------------------------------------------------------- */

static bool wanted(const hn_cli *cli, json_t *r)
{
    size_t n = hn_opts_count(cli->opts, "record");
    const char *own = hn_record_text(r, "record")[0] ? hn_record_text(r, "record") : hn_record_text(r, "id");
    for (size_t i = 0; i < n; i++)
        if (strcmp(hn_opts_nth(cli->opts, "record", i), own) == 0) return true;
    return n == 0;
}

/* The newest record of each measurement on this machine. */
static int from_history(const hn_cli *cli, json_t *records)
{
    char base[4096], path[4200], say[400];
    hone_error err;
    hn_history h;
    hn_environ e;
    const char *from = hn_opts_str(cli->opts, "from");
    struct stat sb;
    if (hn_record_base(base, sizeof base, from, &err) != HONE_OK) return hn_cli_usage(cli, "%s", err.message);
    snprintf(path, sizeof path, "%s.jsonl", base);
    if (stat(path, &sb) != 0 && stat(from, &sb) == 0 && S_ISREG(sb.st_mode)) /* as lab diff and lab report take it */
        snprintf(path, sizeof path, "%s", from);
    if (hn_history_read_until(&h, path, hn_abort_fn, &err) != HONE_OK) return hn_lab_code(hn_cli_fail(&err));
    hn_history_say(&h, say, sizeof say);
    if (say[0]) hn_cli_note("%s: %s", HN_ESC(path, strlen(path)), say);
    hn_environ_read(&e);
    hn_keys seen = { 0 };
    json_t *newest_first = json_array();
    bool ok = newest_first != NULL;
    for (size_t i = json_array_size(h.records); i-- > 0 && ok;) {
        json_t *r = json_array_get(h.records, i);
        bool here = strcmp(hn_record_text(json_object_get(r, "env"), "hash"), e.hash) == 0;
        if (strcmp(hn_record_text(r, "schema"), HN_BENCH_SCHEMA) != 0 || !wanted(cli, r) || !here ||
            json_is_false(json_object_get(r, "valid")))
            continue;
        size_t unused;
        bool fresh = false;
        char *key = hn_record_key(r, true);
        ok = key && hn_keys_add(&seen, key, &unused, &fresh) && (!fresh || json_array_append(newest_first, r) == 0);
        free(key);
    }
    for (size_t i = json_array_size(newest_first); i-- > 0 && ok;)
        ok = json_array_append(records, json_array_get(newest_first, i)) == 0;
    hn_keys_free(&seen);
    json_decref(newest_first);
    hn_history_free(&h);
    if (!ok) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for the records of %s", HN_ESC(path, strlen(path)));
    if (json_array_size(records)) return 0;
    return hn_cli_error(HN_EXIT_FAILURE, "%s: no valid record of this machine (env %s)%s", HN_ESC(path, strlen(path)),
                        e.hash, hn_opts_count(cli->opts, "record") ? " with such an id" : "");
}

/* The options that repeat a recorded plain run. */
static json_t *args_of(json_t *records)
{
    static const struct {
        const char *key, *option;
    } known[] = { { "n_prompt", "n-prompt" },
                  { "n_gen", "n-gen" },
                  { "depth", "depth" },
                  { "threads", "threads" },
                  { "chunk", "chunk" } };
    json_t *a = json_array(), *r = json_array_get(records, 0), *c = json_object_get(r, "config");
    char s[160];
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        json_t *v = json_object_get(c, known[i].key);
        if (!json_is_integer(v)) continue;
        snprintf(s, sizeof s, "--%s=%lld", known[i].option, (long long)json_integer_value(v));
        json_array_append_new(a, json_string(s));
    }
    snprintf(s, sizeof s, "--kv=%.40s", hn_record_text(c, "kv"));
    if (hn_record_text(c, "kv")[0]) json_array_append_new(a, json_string(s));
    return a;
}

/* ---- save ------------------------------------------------------------------------------------------ */

typedef struct saving {
    const hn_cli *cli;
    const char *name, *model;
    json_t *records, *bytes, *quality, *args, *kept, *made; /* kept: args as the file has them */
} saving;

static bool about_a_model(json_t *records)
{
    size_t i;
    json_t *r;
    json_array_foreach(records, i, r) if (json_is_object(json_object_get(r, "model"))) return true;
    return false;
}

static json_t *quality_in(json_t *records)
{
    size_t i;
    json_t *r;
    json_array_foreach(records, i, r) if (json_is_true(json_object_get(
                                              json_object_get(r, "quality_detail"),
                                              "valid"))) return json_incref(json_object_get(r, "quality_detail"));
    return NULL;
}

/* The file at -m is the one that the records are of. */
static int same_model(const saving *s)
{
    size_t i;
    json_t *r;
    json_array_foreach(s->records, i, r)
    {
        const char *sha = hn_record_text(json_object_get(r, "model"), "sha256");
        if (sha[0] && strcmp(sha, hn_record_text(s->bytes, "sha256")) != 0)
            return hn_cli_error(HN_EXIT_QUALITY, "record %s is of another model file: SHA-256 %.16s…, %s has %.16s…",
                                hn_record_text(r, "record")[0] ? hn_record_text(r, "record") : hn_record_text(r, "id"),
                                sha, HN_ESC(s->model, strlen(s->model)), hn_record_text(s->bytes, "sha256"));
    }
    return 0;
}

/* As many threads next time, whatever the default is then. */
static void pin_threads(saving *s, json_t *ids)
{
    char arg[40];
    json_t *n = json_object_get(json_object_get(json_array_get(s->records, 0), "config"), "threads");
    bool one = json_array_size(ids) == 1 && hn_record_is_plain(json_array_get(s->records, 0));
    if (!one || hn_opts_given(s->cli->opts, "threads") || !json_is_integer(n)) return;
    snprintf(arg, sizeof arg, "--threads=%d", (int)json_integer_value(n));
    json_array_append_new(s->args, json_string(arg));
    json_array_append_new(s->kept, json_string(arg));
}

/* What the file will hold of the options: before anything is measured, as not all may be in it. */
static int keep_args(saving *s)
{
    hone_error err;
    json_t *again;
    s->kept = hn_gate_args_kept(s->args);
    if (!s->kept) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for options");
    if (hn_settings_read(&again, s->kept, "given", &err) != HONE_OK)
        return hn_cli_usage(s->cli, "a baseline cannot keep this: %s", err.message);
    json_decref(again);
    return 0;
}

static int measure(saving *s)
{
    char why[1024];
    int code = 0;
    hone_error err;
    json_t *ids = hn_gate_ids(s->cli, 2);
    hn_gate_run g = {
        .model = s->model, .ids = ids, .args = s->args = hn_gate_args(s->cli, false), .stop = hn_abort_fn
    };
    int rc = hn_bench_check_options(s->cli, ids);
    if (rc == 0) rc = keep_args(s);
    if (rc) {
        json_decref(ids);
        return rc;
    }
    hone_status st =
        hn_gate_measure(s->records, &g, hn_opts_i32(s->cli->opts, "samples"), true, why, sizeof why, &code, &err);
    pin_threads(s, ids);
    json_decref(ids);
    if (st != HONE_OK) return hn_lab_code(hn_cli_fail(&err));
    if (why[0]) return hn_cli_error(hn_lab_code(code ? code : HN_EXIT_FAILURE), "no baseline from this: %s", why);
    return 0;
}

static int prove_quality(saving *s)
{
    char why[1024];
    hone_error err;
    if (!(s->quality = quality_in(s->records))) {
        hn_gate_run g = { .model = s->model, .args = s->args, .stop = hn_abort_fn };
        if (hn_gate_quality(&s->quality, &g, why, sizeof why, &err) != HONE_OK) return hn_lab_code(hn_cli_fail(&err));
        if (!s->quality) return hn_cli_error(HN_EXIT_FAILURE, "no quality hash: %s", why);
    }
    return 0;
}

static int finish_saving(saving *s, const char *path)
{
    hone_error err;
    char note[700];
    int rc = 0;
    if (s->model && (rc = hn_gate_bytes(s->model, &s->bytes)) == 0) rc = same_model(s);
    if (rc == 0 && s->model) rc = prove_quality(s);
    if (rc) return rc;
    if (hn_baseline_make(&s->made, s->name, s->records, s->bytes, s->quality, s->kept, &err) != HONE_OK)
        return hn_cli_error(HN_EXIT_FAILURE, "no baseline from this: %s", err.message);
    if (hn_baseline_store(s->made, path, &err) != HONE_OK) return hn_cli_fail(&err);
    size_t i;
    json_t *r;
    json_array_foreach(s->records, i, r) if (json_array_size(json_object_get(r, "samples")) < 6)
        hn_cli_note("%s has %zu samples; with fewer than 6 no interval and no verdict can come of it", hn_record_id(r),
                    json_array_size(json_object_get(r, "samples")));
    if (s->cli->json) {
        json_t *o = hn_json_new("hone.baseline.save/1");
        json_object_set_new(o, "file", hn_lab_str(path));
        json_object_set(o, "baseline", s->made);
        return hn_json_print(o);
    }
    hn_gate_when(note, sizeof note, s->made);
    hn_out_printf("saved    %s: %zu record%s (%s)\n", HN_ESC(path, strlen(path)), json_array_size(s->records),
                  json_array_size(s->records) == 1 ? "" : "s", note);
    if (s->bytes)
        hn_out_printf("model    %s, SHA-256 %s\nquality  %s\n", hn_record_text(s->bytes, "path"),
                      hn_record_text(s->bytes, "sha256"), hn_record_text(s->quality, "hash"));
    return 0;
}

static int save(const hn_cli *cli, const char *name)
{
    char path[4200];
    hone_error err;
    const char *from = hn_opts_str(cli->opts, "from"), *model = hn_opts_str(cli->opts, "model");
    if (hn_baseline_path(path, sizeof path, hn_opts_str(cli->opts, "dir"), name, &err) != HONE_OK)
        return hn_cli_usage(cli, "%s", err.message);
    if (access(path, F_OK) == 0 && !hn_opts_flag(cli->opts, "force"))
        return hn_cli_error(HN_EXIT_FAILURE, "%s is there already; --force replaces it, rm %s removes it",
                            HN_ESC(path, strlen(path)), name);
    const hn_file_use file = { path, "the baseline", "another NAME, or --dir", HN_FILE_WRITTEN };
    int rc = hn_cli_files_apart(cli, &file, 1, HN_ALL_FOLDERS);
    if (rc) return rc;
    if (from && hn_opts_n_args(cli->opts) > 2)
        return hn_cli_usage(cli, "--from takes what was measured; ids belong to a new measurement");
    saving s = { .cli = cli, .name = name, .model = model, .records = json_array() };
    if (from) {
        rc = from_history(cli, s.records);
        s.args = args_of(s.records);
        if (rc == 0) rc = keep_args(&s);
        if (rc == 0 && about_a_model(s.records) && !model)
            rc = hn_cli_usage(
                cli,
                "the records are of a model: expected -m FILE.gguf, whose every byte becomes part of the baseline");
        if (rc == 0 && !about_a_model(s.records)) s.model = NULL;
    } else {
        if (!model && hn_opts_n_args(cli->opts) == 2)
            rc = hn_cli_usage(cli, "no model; expected -m FILE.gguf, ids, or --from");
        if (rc == 0) rc = measure(&s);
    }
    if (rc == 0) rc = finish_saving(&s, path);
    json_decref(s.records);
    json_decref(s.bytes);
    json_decref(s.quality);
    json_decref(s.args);
    json_decref(s.kept);
    json_decref(s.made);
    return rc;
}

/* ---- list, rm ------------------------------------------------------------------------------------------- */

static void print_row(const char *name, json_t *b, const hn_environ *e)
{
    json_t *records = json_object_get(b, "records"), *ids = json_object_get(b, "ids");
    const char *path = hn_record_text(json_object_get(b, "model"), "path"), *slash = strrchr(path, '/'),
               *hash = hn_record_text(json_object_get(b, "env"), "hash");
    hn_out_printf("%-20s %-17.16s %-8s%-6s %-24s %-21s %3zu sample%s  %s%s\n", name, hn_record_text(b, "ts"), hash,
                  strcmp(hash, e->hash) == 0 ? " here" : "", path[0] ? slash ? slash + 1 : path : "(no model)",
                  hn_record_text(b, "quality")[0] ? hn_record_text(b, "quality") : "-",
                  json_array_size(json_object_get(json_array_get(records, 0), "samples")),
                  json_array_size(json_object_get(json_array_get(records, 0), "samples")) == 1 ? "" : "s",
                  json_string_value(json_array_get(ids, 0)), json_array_size(ids) > 1 ? ", …" : "");
}

static int list(const hn_cli *cli)
{
    const char *dir = hn_opts_str(cli->opts, "dir");
    char **names, path[4200];
    size_t n;
    hone_error err;
    hn_environ e;
    if (hn_baseline_list(&names, &n, dir, &err) != HONE_OK) return hn_cli_fail(&err);
    hn_environ_read(&e);
    json_t *all = json_array();
    int rc = 0;
    if (!cli->json && n)
        hn_out_printf("%-20s %-17s %-14s %-24s %-21s %11s  %s\n", "name", "saved (UTC)", "machine", "model", "quality",
                      "", "benches");
    for (size_t i = 0; i < n; i++) {
        json_t *b;
        if (hn_baseline_path(path, sizeof path, dir, names[i], &err) == HONE_OK &&
            hn_baseline_load(&b, path, &err) == HONE_OK) {
            if (!cli->json) print_row(names[i], b, &e);
            json_t *o = json_copy(b);
            json_object_del(o, "records");
            json_object_del(o, "quality_detail");
            json_object_set_new(o, "here",
                                json_boolean(strcmp(hn_record_text(json_object_get(b, "env"), "hash"), e.hash) == 0));
            json_array_append_new(all, o);
            json_decref(b);
        } else {
            rc = hn_cli_error(HN_EXIT_FAILURE, "%s", err.message);
        }
    }
    hn_baseline_list_free(names, n);
    if (cli->json) {
        json_t *o = hn_json_new("hone.baseline.list/1");
        json_object_set(o, "baselines", all);
        rc = hn_json_printed(rc, hn_json_print(o));
    } else if (n == 0) {
        hn_out_printf("no baselines in %s; hone lab baseline save NAME -m MODEL makes one\n", HN_ESC(dir, strlen(dir)));
    }
    json_decref(all);
    return rc;
}

static int rm(const hn_cli *cli)
{
    int rc = 0;
    char path[4200];
    hone_error err;
    json_t *gone = json_array();
    for (int i = 1; i < hn_opts_n_args(cli->opts) && rc == 0; i++) {
        const char *name = hn_opts_arg(cli->opts, i);
        if (hn_baseline_path(path, sizeof path, hn_opts_str(cli->opts, "dir"), name, &err) != HONE_OK)
            rc = hn_cli_usage(cli, "%s", err.message);
        else if (unlink(path) != 0)
            rc = hn_cli_error(HN_EXIT_FAILURE, "baseline '%s': %s: %s", name, HN_ESC(path, strlen(path)),
                              strerror(errno));
        else {
            if (!cli->json) hn_out_printf("removed  %s\n", HN_ESC(path, strlen(path)));
            json_array_append_new(gone, hn_lab_str(path));
        }
    }
    if (cli->json) {
        json_t *o = hn_json_new("hone.baseline.rm/1");
        json_object_set(o, "removed", gone);
        rc = hn_json_printed(rc, hn_json_print(o));
    }
    json_decref(gone);
    return rc;
}

/* ---- compare --------------------------------------------------------------------------------------------------- */

static int records_now(const hn_cli *cli, json_t *b, json_t *records)
{
    char why[1024];
    int code = 0;
    hone_error err;
    if (hn_opts_str(cli->opts, "from")) return from_history(cli, records);
    json_t *args;
    int rc = hn_gate_settings(cli, b, &args);
    if (rc) return rc;
    hn_gate_run g = {
        .model = hn_gate_model(cli, b), .ids = json_object_get(b, "ids"), .args = args, .stop = hn_abort_fn
    };
    hone_status st =
        hn_gate_measure(records, &g, hn_opts_i32(cli->opts, "samples"), true, why, sizeof why, &code, &err);
    json_decref(args);
    if (st != HONE_OK) return hn_lab_code(hn_cli_fail(&err));
    if (why[0]) return hn_cli_error(hn_lab_code(code ? code : HN_EXIT_FAILURE), "nothing to compare: %s", why);
    return 0;
}

/* less: the same answers are proved on fewer ways, as `quality` says. */
static void print_comparison(json_t *b, bool checked, bool less, const hn_baseline_row *rows, size_t n,
                             const char *machine, const char *quality)
{
    char when[400];
    hn_gate_when(when, sizeof when, b);
    hn_out_printf("baseline %s: %s\n", hn_record_text(b, "name"), when);
    if (!machine[0]) hn_out_printf("machine  the same (env %s)\n", hn_record_text(json_object_get(b, "env"), "hash"));
    for (const char *p = machine; *p; p += strcspn(p, "\n") + 1)
        hn_out_printf("machine  ANOTHER: %.*s\n", (int)strcspn(p, "\n"), p);
    if (quality[0]) hn_out_printf("quality  %s: %s\n", less ? "OPEN" : "CHANGED", quality);
    else if (checked) hn_out_printf("quality  %s, as in the baseline\n", hn_record_text(b, "quality"));
    else if (hn_record_text(b, "quality")[0]) hn_out_printf("quality  not known of these records\n");
    hn_out_printf("\n");
    hn_gate_print_rows(rows, n);
    hn_out_printf("\nnote     %s\n", hn_gate_stored);
}

static int compare(const hn_cli *cli, const char *name)
{
    json_t *b, *now = json_array();
    hone_error err;
    hn_baseline_row *rows = NULL;
    size_t n = 0;
    char machine[1200] = "", quality[600] = "";
    int rc = hn_gate_load(cli, name, &b);
    if (rc) {
        json_decref(now);
        return rc;
    }
    rc = records_now(cli, b, now);
    hn_baseline_rule rule = { .metrics = hn_opts_str(cli->opts, "metrics"),
                              .margin = (double)hn_opts_f32(cli->opts, "margin"),
                              .alpha = HN_AB_ALPHA };
    if (rc == 0 && hn_baseline_compare(&rows, &n, b, now, &rule, &err) != HONE_OK)
        rc = err.code == HONE_E_ARG ? hn_cli_usage(cli, "%s", err.message) : hn_cli_fail(&err);
    if (rc == 0) {
        json_t *q = quality_in(now);
        bool checked = q && json_is_object(json_object_get(b, "quality_detail"));
        hn_environ_differ(machine, sizeof machine, json_object_get(b, "env"),
                          json_object_get(json_array_get(now, 0), "env"));
        if (checked) hn_quality_differ(quality, sizeof quality, json_object_get(b, "quality_detail"), q);
        hn_proved proved;
        hn_quality_proved(&proved, checked ? json_object_get(b, "quality_detail") : NULL, q);
        if (proved.untold[0]) hn_cli_note("quality: %s", proved.untold);
        const bool open = proved.less[0] && !quality[0];
        if (open) snprintf(quality, sizeof quality, "the same quality hash, proved on fewer ways: %s", proved.less);
        json_decref(q);
        if (!cli->json) print_comparison(b, checked, open, rows, n, machine, quality);
        else {
            json_t *o = hn_json_new("hone.baseline.compare/1");
            json_object_set(o, "baseline", json_object_get(b, "name"));
            json_object_set_new(o, "machine", machine[0] ? hn_lab_str(machine) : json_null());
            json_object_set_new(o, "quality",
                                !checked     ? json_null()
                                : quality[0] ? hn_lab_str(quality)
                                             : json_string("same"));
            json_object_set_new(o, "rows", hn_gate_rows_json(rows, n));
            json_object_set_new(o, "warning", json_string(hn_gate_stored));
            rc = hn_json_print(o);
        }
    }
    free(rows);
    json_decref(now);
    json_decref(b);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

/* What each verb reads. */
static int check_options(const hn_cli *cli, const char *verb)
{
    static const char *const of_names[] = { "dir", NULL }, *const of_compare[] = { "dir",    "samples", "metrics",
                                                                                   "margin", "model",   "packed",
                                                                                   NULL },
                             *const of_records[] = { "dir", "from", "record", "metrics", "margin", NULL },
                             *const of_save_records[] = { "dir", "from", "record", "force", "model", NULL },
                             *const not_of_save[] = { "record", "metrics", "margin", NULL };
    bool from = hn_opts_str(cli->opts, "from") != NULL;
    if (strcmp(verb, "save") == 0)
        return from ? hn_cli_without_effect(cli, true, of_save_records, "--from takes what was measured, as it was")
                    : hn_cli_without_effect(cli, false, not_of_save,
                                            "expected it with compare, or --record with --from");
    if (strcmp(verb, "compare") == 0)
        return from ? hn_cli_without_effect(cli, true, of_records, "--from takes what was measured, as it was")
                    : hn_cli_without_effect(cli, true, of_compare,
                                            "a baseline is measured as it was saved; expected it with hone lab "
                                            "baseline save");
    return hn_cli_without_effect(cli, true, of_names, "list and rm measure nothing");
}

static int run(const hn_cli *cli)
{
    const char *verb = hn_opts_arg(cli->opts, 0), *name = hn_opts_arg(cli->opts, 1);
    int n = hn_opts_n_args(cli->opts);
    static const char *const verbs[] = { "save", "list", "rm", "compare" };
    if (strcmp(verb, "list") == 0) {
        int rc = n > 1 ? hn_cli_usage(cli, "list takes no names") : check_options(cli, verb);
        return rc ? rc : list(cli);
    }
    const char *near = hn_nearest(verb, verbs, sizeof verbs / sizeof *verbs);
    bool known = strcmp(verb, "save") == 0 || strcmp(verb, "rm") == 0 || strcmp(verb, "compare") == 0;
    if (!known)
        return hn_cli_usage(cli, "unknown baseline command '%s'; expected save, list, rm or compare%s%s%s",
                            HN_ESC(verb, strlen(verb)), near ? "; did you mean " : "", near ? near : "",
                            near ? "?" : "");
    if (!name) return hn_cli_usage(cli, "%s needs the name of a baseline", verb);
    int rc = check_options(cli, verb);
    if (rc) return rc;
    if (strcmp(verb, "rm") == 0) return rm(cli);
    if (strcmp(verb, "save") == 0) return save(cli, name);
    if (n > 2)
        return hn_cli_usage(cli, "unexpected argument '%s'; compare takes one name",
                            HN_ESC(hn_opts_arg(cli->opts, 2), strlen(hn_opts_arg(cli->opts, 2))));
    return compare(cli, name);
}

static const hn_opt_group *const groups[] = { &group, &hn_group_model, &hn_group_measured, &hn_group_compute, NULL };
const hn_command hn_command_lab_baseline = {
    .name = "lab baseline",
    .summary = "Keep measurements under a name, and compare with them",
    .args = "save|list|rm|compare [NAME] [ID…]",
    .min_args = 1,
    .max_args = -1,
    .groups = groups,
    .examples = "hone lab baseline save before -m model.gguf -r 20\n"
                "hone lab baseline compare before\n"
                "hone lab baseline save release -m model.gguf --from local\n"
                "hone lab baseline list\n"
                "hone lab baseline rm before\n",
    .run = run,
};
