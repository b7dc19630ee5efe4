/* hone doctor: is this machine fit for measuring, and what to do about it. */
#include "cli/cli.h"
#include "lab/machine/doctor.h"
#include "lab/machine/clock.h"

enum { WATCH_MS = 500 };

static const hn_opt doctor_opts[] = {
    HN_OPT("model", "-m", FILE, "FILE", "also the model: its SHA-256, and whether it fits the memory",
           .use = HN_USE_MODEL),
    HN_OPT("strict", NULL, FLAG, NULL, "exit with 13 when there is a warning"),
    HN_OPT("cpu", NULL, STR, "LEVEL",
           "kernel level whose peaks to show (default: HONE_CPU, else the best of this machine)"),
    HN_OPT_END,
};
static const hn_opt_group doctor_group = { "Doctor", doctor_opts };
static const hn_opt_group *const groups[] = { &doctor_group, NULL };

static const char *string_of(json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "?";
}

/* What the kernel says of each weakness, as far as it says more than "Not affected". */
static void print_table(json_t *v)
{
    const char *key;
    json_t *one;
    int n = 0;
    json_object_foreach(v, key, one)
    {
        const char *s = json_is_string(one) ? json_string_value(one) : "unknown";
        if (strcmp(s, "Not affected") == 0) continue;
        hn_out_printf("%s%s: %s", n++ ? "\n                                " : "", key, s);
    }
    if (!n) hn_out_printf("not affected");
}

static void print_list(json_t *v)
{
    size_t i;
    json_t *one;
    json_array_foreach(v, i, one)
    {
        if (json_is_string(one)) hn_out_printf("%s%s", i ? " " : "", json_string_value(one));
        else if (json_is_number(one)) hn_out_printf("%s%.2f", i ? " " : "", json_number_value(one));
        else if (json_is_object(one))
            hn_out_printf("%sL%s %s %s (CPUs %s)", i ? ", " : "", string_of(one, "level"), string_of(one, "type"),
                          string_of(one, "size"), string_of(one, "cpus"));
        else hn_out_printf("%sunknown", i ? " " : "");
    }
}

static void print_value(json_t *v)
{
    if (json_is_object(v)) print_table(v);
    else if (json_is_array(v)) print_list(v);
    else if (json_is_integer(v)) hn_out_printf("%lld", (long long)json_integer_value(v));
    else if (json_is_real(v)) hn_out_printf("%.6g", json_real_value(v));
    else
        hn_out_printf("%s", json_is_null(v)     ? "unknown"
                            : json_is_string(v) ? json_string_value(v)
                            : json_is_true(v)   ? "yes"
                                                : "no");
}

static void print_group(const char *name, json_t *group)
{
    const char *key;
    json_t *v;
    json_object_foreach(group, key, v)
    {
        hn_out_printf("%-10s %-20s ", name, key);
        print_value(v);
        hn_out_printf("\n");
        name = "";
    }
}

static void print_record(json_t *record)
{
    static const char *const names[] = { "cpu",     "clock",  "power", "memory", "load",  "container",
                                         "process", "kernel", "build", "model",  "peaks", NULL };
    json_t *w, *list = json_object_get(record, "warnings");
    size_t i;
    for (const char *const *n = names; *n; n++)
        if (json_is_object(json_object_get(record, *n))) print_group(*n, json_object_get(record, *n));
    hn_out_printf("%-10s %-20s ", "machine", "virtual");
    print_value(json_object_get(record, "virtual"));
    hn_out_printf("\n%-10s %-20s %s\n\n", "", "env hash", json_string_value(json_object_get(record, "env_hash")));
    json_array_foreach(list, i, w)
        hn_out_printf("warning  %s\n         do: %s\n", json_string_value(json_object_get(w, "text")),
                      json_string_value(json_object_get(w, "do")));
    if (json_array_size(list) == 0) hn_out_printf("no warnings\n");
}

static int run(const hn_cli *cli)
{
    static hn_peaks peaks;
    hn_environ e;
    hone_error err, why;
    hn_cpu_level level;
    char path[4096];
    json_t *look;
    if (hn_cpu_choose(&level, hn_opts_str(cli->opts, "cpu"), &err) != HONE_OK) return hn_cli_fail(&err);
    hn_environ_read(&e);
    hn_doctor_params p = {
        .root = "", .watch_ms = WATCH_MS, .model = hn_opts_str(cli->opts, "model"), .level = hn_cpu_level_name(level)
    };
    if (hn_peaks_path(path, sizeof path, &e, p.level, &why) == HONE_OK &&
        hn_peaks_load(&peaks, path, &e, p.level, &why) == HONE_OK)
        p.peaks = &peaks;
    else p.no_peaks = why.message;
    if (hn_doctor_look(&look, &e, &p, &err) != HONE_OK) return p.model ? hn_cli_fail_model(&err) : hn_cli_fail(&err);
    size_t n = json_array_size(json_object_get(look, "warnings"));
    int rc = HN_EXIT_OK;
    if (cli->json) {
        char ts[40];
        hn_utc_now(ts, sizeof ts);
        json_t *o = hn_json_new(HN_DOCTOR_SCHEMA);
        json_object_set_new(o, "ts", json_string(ts));
        json_object_update(o, look);
        rc = hn_json_print(o);
    } else {
        print_record(look);
    }
    json_decref(look);
    if (rc == HN_EXIT_OK && n && hn_opts_flag(cli->opts, "strict"))
        return hn_cli_error(HN_EXIT_ENVIRONMENT, "%zu warning%s: this machine is not fit for measuring now", n,
                            n == 1 ? "" : "s");
    return rc;
}

const hn_command hn_command_doctor = {
    .name = "doctor",
    .summary = "Is this machine fit for measuring, and what to do about it",
    .groups = groups,
    .examples = "hone doctor\nhone doctor --strict -m model.gguf --json\n",
    .run = run,
};
const hn_command hn_command_lab_doctor = {
    .name = "lab doctor",
    .summary = "The same as hone doctor",
    .groups = groups,
    .examples = "hone lab doctor --strict\n",
    .run = run,
};
