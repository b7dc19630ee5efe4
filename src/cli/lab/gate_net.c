/* hone lab gate kern: the speed net over products. Owns options, words and exit codes; looking and judging is lab's. */
#define _GNU_SOURCE
#include "cli/lab/gate_settings.h"
#include "lab/judge/net_looks.h"
#include "lab/machine/clock.h"
#include "lab/machine/environ.h"
#include "lab/stats/stats.h"

#include <math.h>

static const char *const words[] = { "kern", "kern.gemv", "kern.gemm" };

static bool is_word(const char *s)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(s, words[i]) == 0) return true;
    return false;
}

bool hn_gate_is_net(const hn_cli *cli)
{
    for (int i = 0; i < hn_opts_n_args(cli->opts); i++)
        if (is_word(hn_opts_arg(cli->opts, i))) return true;
    return false;
}

static int settings(const hn_cli *cli, const char *preset, hn_net_params *p)
{
    static const char *const used[] = { "ab",     "head", "margin",  "seed",   "allow-different",
                                        "strict", "cpu",  "threads", "preset", NULL };
    const hn_opts *o = cli->opts;
    for (int i = 0; i < hn_opts_n_args(o); i++) {
        const char *id = hn_opts_arg(o, i);
        if (!is_word(id))
            return hn_cli_usage(cli,
                                "%s beside the net of all shapes; expected kern, kern.gemv or kern.gemm alone, or "
                                "ids without them",
                                HN_ESC(id, strlen(id)));
        p->wanted.gemv = p->wanted.gemv || strcmp(id, "kern.gemm") != 0;
        p->wanted.gemm = p->wanted.gemm || strcmp(id, "kern.gemv") != 0;
    }
    if (!hn_opts_str(o, "ab"))
        return hn_cli_usage(cli, "the net of all shapes compares two programs; expected --ab REF, as --ab HEAD~1");
    int rc = hn_cli_without_effect(cli, true, used, "the net of all shapes is of products alone, in two looks");
    if (rc) return rc;
    p->wanted.preset = preset;
    p->wanted.cpu = hn_opts_str(o, "cpu");
    p->wanted.n_threads = hn_opts_given(o, "threads") ? hn_opts_i32(o, "threads") : hn_cpu_count();
    p->margin = hn_opts_given(o, "margin") ? (double)hn_opts_f32(o, "margin") : HN_NET_MARGIN;
    p->different = hn_opts_flag(o, "allow-different");
    p->seed = hn_opts_given(o, "seed") ? hn_opts_u64(o, "seed") : hn_rand64(hn_clock_ns(), 0) >> 1;
    return 0;
}

static int exit_code(const hn_net_report *r, const hn_net_params *p, char *why, size_t cap, const char **verdict)
{
    why[0] = 0;
    *verdict = r->n_different ? "different" : "same";
    if (r->n_different && !p->different) {
        snprintf(why, cap,
                 "%zu of %zu products give other bits, the slowest of them %s. Speeds do not count then; "
                 "--allow-different goes on",
                 r->n_different, r->n_points, r->different);
        *verdict = "quality";
        return HN_EXIT_QUALITY;
    }
    if (r->verdict == HN_AB_REGRESSED) {
        size_t n = 0;
        for (size_t i = 0; i < r->n_line; i++) n += r->line[i].r.verdict == HN_AB_REGRESSED;
        snprintf(why, cap, "%zu product%s slower than %s", n, n == 1 ? " is" : "s are", hn_side_label(p->a));
        *verdict = "regressed";
        return HN_EXIT_REGRESSION;
    }
    if (r->verdict == HN_AB_SAME) return HN_EXIT_OK;
    if (r->n_gone) {
        snprintf(why, cap, "%zu product%s on side a only, the first of them %s: how fast b is there is not known",
                 r->n_gone, r->n_gone == 1 ? " is" : "s are", r->gone);
        *verdict = "inconclusive";
        return HN_EXIT_INCONCLUSIVE;
    }
    snprintf(why, cap, "two looks leave it open; a quieter machine may tell, or --ab %s kern.gemv.TYPE.ROWSxLENGTH",
             hn_side_label(p->a));
    *verdict = "inconclusive";
    return HN_EXIT_INCONCLUSIVE;
}

static void print_report(const hn_net_report *r, const hn_net_params *p, const char *verdict)
{
    for (int i = 0; i < 2; i++) {
        const char *label = hn_side_label(i ? p->b : p->a);
        hn_out_printf("%c        %s, level %s\n", "ab"[i], HN_ESC(label, strlen(label)), r -> level[i]);
    }
    hn_out_printf("points   %zu products%s, the same bits: ", r->n_points, r->n_lacking ? "" : " on both sides");
    if (r->n_different) hn_out_printf("NO, %zu differ\n", r->n_different);
    else hn_out_printf("yes\n");
    if (r->n_lacking) hn_out_printf("note     %zu more are on one side only\n", r->n_lacking);
    hn_out_printf("first    speed b/a: median %.3f, least %.3f; %zu below %.2f\n", r->median, r->slowest, r->n_slower,
                  hn_net_screen(p));
    if (r->n_slower > r->n_line && r->n_line)
        hn_out_printf("note     the slowest %zu of them were looked at again\n", r->n_line);
    if (r->n_line)
        hn_out_printf("\n%-36s %10s %10s %7s %7s  %-16s %s\n", "again", "a us", "b us", "first", "b/a", "interval",
                      "verdict");
    for (size_t i = 0; i < r->n_line; i++) {
        const hn_net_line *l = &r->line[i];
        char ci[40] = "n/a";
        if (isfinite(l->r.ci[0])) snprintf(ci, sizeof ci, "[%.3f, %.3f]", l->r.ci[0], l->r.ci[1]);
        hn_out_printf("%-36s %10.1f %10.1f %7.3f %7.3f  %-16s %s\n", l->name, l->us_a, l->us_b, l->first, l->r.ratio,
                      ci,
                      hn_net_cleared(l)                 ? "passes"
                      : l->r.verdict == HN_AB_REGRESSED ? "REGRESSED"
                                                        : "open");
    }
    if (r->n_line)
        hn_out_printf(
            "%zu rounds, judged together (Holm); what is not proven slower than %.2f, nor proven not to be, is open\n",
            r->rounds, 1 - p->margin);
    hn_out_printf("\nverdict  %s\n", verdict);
}

static int report(const hn_cli *cli, const hn_net_report *r, const hn_net_params *p, const hn_environ *env)
{
    char why[700];
    const char *verdict;
    int rc = exit_code(r, p, why, sizeof why, &verdict);
    if (cli->json) {
        json_t *o = hn_json_new("hone.gate/1");
        json_object_set_new(o, "kind", json_string("net"));
        json_object_set_new(o, "verdict", json_string(verdict));
        json_object_set_new(o, "exit", json_integer(rc));
        json_object_set_new(o, "reason", why[0] ? hn_lab_str(why) : json_null());
        json_object_set_new(o, "timed", json_true());
        json_object_set_new(o, "env", hn_environ_json(env));
        json_object_set_new(o, "seed", json_integer((json_int_t)p->seed));
        json_object_set_new(o, "margin", hn_lab_num(p->margin));
        json_object_set_new(o, "net", hn_net_json(r, p->a, p->b));
        rc = hn_json_printed(rc, hn_json_print(o));
    } else print_report(r, p, verdict);
    if (why[0]) hn_cli_error(0, "gate: %s", why);
    return rc;
}

/* The machine, as of every gate: a busy one is said, and refused by --strict. */
static int machine(const hn_cli *cli, hn_environ *env)
{
    hn_environ_read(env);
    if (!(env->load[0] > 0.5 * env->cores)) return 0;
    if (hn_opts_flag(cli->opts, "strict"))
        return hn_cli_error(HN_EXIT_ENVIRONMENT,
                            "gate: the machine is busy: load average %.1f on %d cores, and "
                            "--strict was asked for",
                            env->load[0], env->cores);
    hn_cli_note("load average %.1f on %d cores at the start: expect noise", env->load[0], env->cores);
    return 0;
}

int hn_gate_net(const hn_cli *cli, const char *preset)
{
    static hn_net_report r;
    hn_net_params p = { .progress = hn_progress_fn, .progress_arg = "all shapes" };
    const hn_side_params sp = { .stop = hn_abort_fn, .tell = hn_lab_tell };
    hone_error err;
    hn_environ env;
    int rc = settings(cli, preset, &p);
    if (rc == 0) rc = machine(cli, &env);
    if (rc) return rc;
    hone_status st = hn_side_open(&p.a, hn_opts_str(cli->opts, "ab"), &sp, &err);
    if (st == HONE_OK) st = hn_side_open(&p.b, hn_opts_str(cli->opts, "head"), &sp, &err);
    if (st == HONE_OK) st = hn_net_run(&r, &p, &err);
    hn_progress_end();
    if (st == HONE_OK) rc = report(cli, &r, &p, &env);
    else if (st == HONE_E_INTERRUPTED) rc = hn_cli_error(HN_EXIT_INTERRUPTED, "gate: interrupted");
    else if (st == HONE_E_ARG) rc = hn_cli_usage(cli, "%s", err.message);
    else rc = hn_cli_fail(&err);
    hn_side_close(p.a);
    hn_side_close(p.b);
    return rc;
}
