/* hone lab: the laboratory. `peaks` finds the roof of this machine and keeps it for every
 * report, `list` says what can be measured; the other commands have files of their own. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "cli/cli.h"
#include "lab/inside/layouts.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"
#include "lab/stats/stats.h"

#include <stdlib.h>

extern const hn_command hn_command_lab_peaks, hn_command_lab_list, hn_command_lab_ab, hn_command_lab_gate,
    hn_command_lab_baseline, hn_command_lab_history, hn_command_lab_diff, hn_command_lab_quality,
    hn_command_lab_profile, hn_command_lab_memory, hn_command_lab_doctor, hn_command_lab_report,
    hn_command_lab_selftest;

/* `hone lab NAME`: each in a file of its own, lab_NAME.c, but for the first two. */
static const hn_command *const subs[] = { &hn_command_lab_peaks,    &hn_command_lab_list,
                                          &hn_command_lab_ab,       &hn_command_lab_gate,
                                          &hn_command_lab_baseline, &hn_command_lab_history,
                                          &hn_command_lab_diff,     &hn_command_lab_quality,
                                          &hn_command_lab_profile,  &hn_command_lab_memory,
                                          &hn_command_lab_doctor,   &hn_command_lab_report,
                                          &hn_command_lab_selftest, NULL };

static const hn_opt peaks_opts[] = {
    HN_OPT("threads", "-t", I32, "N",
           "measure 1 to N threads; fewer than all cores are not stored (default: all cores)", .min = 1, .max = 1024),
    HN_OPT("cpu", NULL, STR, "LEVEL",
           "kernel level: scalar, avx2, avx_vnni, avx512; default: the best here, or HONE_CPU"),
    HN_OPT("force", NULL, FLAG, NULL, "measure again, even if there is a stored measurement"),
    HN_OPT("quick", NULL, FLAG, NULL, "tiny sizes, to see that it works; never stored, never a roof"),
    HN_OPT("no-store", NULL, FLAG, NULL, "do not keep the result"),
    HN_OPT_END,
};
static const hn_opt list_opts[] = {
    HN_OPT("preset", NULL, STR, "NAME", "the model whose shapes to name (hone synth --list)", .def = "llama-3.2-1b"),
    HN_OPT_END,
};
static const hn_opt_group peaks_group = { "Measurement", peaks_opts };
static const hn_opt_group list_group = { "List", list_opts };
static const hn_opt_group *const peaks_groups[] = { &peaks_group, NULL };
static const hn_opt_group *const list_groups[] = { &list_group, NULL };

/* ---- peaks ------------------------------------------------------------------------------ */

static void print_row(const hn_peaks *p, hn_peak_kind k, int32_t i, const char *label, double scale, const char *unit)
{
    const hn_peak_point *at = &p->at[k][i];
    hn_out_printf("%-10s %3d thread%s %9.4g %9.4g %9.4g  %-8s %4.0f %%   ", label, at->threads,
                  at->threads == 1 ? " " : "s", at->best * scale, at->median * scale, at->most * scale, unit,
                  100 * at->spread);
    if (k == HN_PEAK_READ_BW)
        hn_out_printf("%s, %d stream%s%s\n", p->how[k], at->streams, at->streams == 1 ? "" : "s",
                      at->ahead ? ", prefetching" : "");
    else hn_out_printf("%s\n", p->how[k]);
}

static void print_peaks(const hn_peaks *p)
{
    static const struct {
        const char *label, *unit;
        double scale;
    } shown[HN_PEAK_KINDS] = { { "read", "GB/s", 1 },    { "int8", "TOPS", 1e-3 },   { "f32", "GFLOP/s", 1 },
                               { "bf16", "GFLOP/s", 1 }, { "dispatch", "us", 1e-3 }, { "barrier", "us", 1e-3 } };
    hn_out_printf("machine  %s, %d cores, %s, level %s (env %s)\n", p->cpu_model, p->cores, p->kernel, p->level,
                  p->hash);
    hn_out_printf("measured %s%s; clock %.2f to %.2f GHz; CPUs %s; load %.1f; steal %.1f %%\n", p->ts,
                  p->quick ? " (quick: says nothing)" : "", p->clock_ghz[0], p->clock_ghz[1],
                  p->cpus[0] ? p->cpus : "not pinned", p->load, p->steal_pct);
    hn_out_printf("buffer   %.0f MB, %.0f %% in huge pages; last-level cache %.0f MB\n\n",
                  (double)p->buffer_bytes / 1e6, 100 * p->huge_pages, (double)p->cache_bytes / 1e6);
    hn_out_printf("%-10s %10s %9s %9s %9s  %-8s %6s\n", "", "", "roof", "median", "most", "", "spread");
    for (int k = 0; k < HN_PEAK_KINDS; k++) {
        for (int32_t i = 0; i < p->n[k]; i++)
            print_row(p, (hn_peak_kind)k, i, shown[k].label, shown[k].scale, shown[k].unit);
        if (p->n[k] == 0) hn_out_printf("%-10s not on this level\n", shown[k].label);
    }
    if (!p->bound) hn_out_printf("\nnote     plain C: what these loops reach, not what the machine could\n");
    if (p->doubts[0])
        hn_out_printf("\nnoisy    %s\n         a quiet machine gives a better roof: hone lab peaks --force\n",
                      p->doubts);
}

static void print_layouts(json_t *layouts)
{
    size_t i;
    json_t *l;
    if (!layouts) return;
    hn_out_printf(
        "\nspeed of packed over plain weights, by a row's elements: 1 column and 4 on one thread, then on all\n");
    json_array_foreach(layouts, i, l)
    {
        json_t *v = json_object_get(l, "speed");
        hn_out_printf("%-8s %5.0f", hn_json_text_of(l, "type"), hn_json_number_of(l, "n_in"));
        for (size_t k = 0; k < json_array_size(v); k++)
            hn_out_printf(" %5.2f", json_number_value(json_array_get(v, k)));
        hn_out_printf("   %s\n", hn_json_text_of(l, "read"));
    }
}

/* layouts: or NULL, where they were not measured now. */
static int report_peaks(const hn_cli *cli, const hn_peaks *p, json_t *layouts, const char *path, bool stored)
{
    if (!cli->json) {
        print_peaks(p);
        print_layouts(layouts);
        if (stored) hn_out_printf("\nstored   %s\n", path);
        return HN_EXIT_OK;
    }
    json_t *o = hn_peaks_json(p);
    json_object_set_new(o, "file", path ? hn_lab_str(path) : json_null());
    json_object_set_new(o, "stored", json_boolean(stored));
    if (layouts) json_object_set(o, "layouts", layouts);
    return hn_json_print(o);
}

static int peaks(const hn_cli *cli)
{
    hn_peaks p;
    hone_error err, lost;
    hn_environ e;
    hn_cpu_level level;
    char path[4096];
    if (hn_cpu_choose(&level, hn_opts_str(cli->opts, "cpu"), &err) != HONE_OK) return hn_cli_fail(&err);
    hn_environ_read(&e);
    bool quick = hn_opts_flag(cli->opts, "quick"), given = hn_opts_given(cli->opts, "threads");
    bool place = hn_peaks_path(path, sizeof path, &e, hn_cpu_level_name(level), &lost) == HONE_OK;
    if (place && !quick && !given && !hn_opts_flag(cli->opts, "force")) {
        hone_status st = hn_peaks_load(&p, path, &e, hn_cpu_level_name(level), &err);
        if (st == HONE_OK) return report_peaks(cli, &p, NULL, path, true);
        if (st == HONE_E_FORMAT) hn_cli_note("%s", err.message);
    }
    hn_peaks_params params = { .n_threads = given ? hn_opts_i32(cli->opts, "threads") : 0,
                               .cpu = hn_cpu_level_name(level),
                               .quick = quick,
                               .stop = hn_abort_fn,
                               .progress = hn_progress_fn,
                               .progress_arg = "measuring peaks" };
    hone_status st = hn_peaks_measure(&p, &params, &err);
    hn_progress_end();
    if (st != HONE_OK) return hn_cli_fail(&err);
    bool part = given && params.n_threads < p.cores; /* would pass for the roof of all cores */
    bool keep = !quick && !part && !hn_opts_flag(cli->opts, "no-store");
    if (part) hn_cli_note("not stored: %d of %d threads say nothing about the others", params.n_threads, p.cores);
    bool stored = keep && place && hn_peaks_store(&p, path, &lost) == HONE_OK;
    json_t *layouts = NULL;
    bool kept = true;
    if (!quick && !part && hn_layouts_measure(&layouts, hn_cpu_level_name(level), keep, &kept, &err) != HONE_OK)
        hn_cli_note("packed and plain weights were not compared: %s", err.message);
    int rc = report_peaks(cli, &p, layouts, place ? path : NULL, stored);
    json_decref(layouts);
    if (keep && !stored)
        return hn_cli_error(HN_EXIT_FAILURE, "the peaks were measured but not stored: %s", lost.message);
    return rc;
}

const hn_command hn_command_lab_peaks = {
    .name = "lab peaks",
    .summary = "Measure the roof of this machine and keep it for every report",
    .groups = peaks_groups,
    .examples = "hone lab peaks\nhone lab peaks --force --json\n",
    .run = peaks,
};
const hn_command hn_command_lab_list = {
    .name = "lab list",
    .summary = "Say what can be measured",
    .groups = list_groups,
    .examples = "hone lab list\n",
    .run = hn_lab_list,
};

/* ---- the command -------------------------------------------------------------------------- */

static int run(const hn_cli *cli) { return hn_cli_usage(cli, "a laboratory command is missing"); }

const hn_command hn_command_lab = {
    .name = "lab",
    .summary = "The laboratory: what this machine can do, and whether a change is one",
    .args = "COMMAND",
    .subs = subs,
    .examples = "hone lab peaks\nhone lab list\n",
    .run = run,
};
