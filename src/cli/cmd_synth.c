/* hone synth: a GGUF of a real model's exact shape with random weights. */
#include "cli/written.h"

static const hn_opt opts[] = {
    HN_OPT("output", "-o", FILE, "FILE", "the GGUF file to write", .use = HN_USE_WRITE, .what = "the output"),
    HN_OPT("type", NULL, STR, "TYPE", "storage of the weights: F32, F16, BF16, Q8_0, Q6_K, Q5_K_M, Q4_K_M, Q4_0, …",
           .def = "Q4_K_M"),
    HN_OPT("seed", "-s", U64, "N", "seed of the weights; the same seed gives the same file", .def = "0"),
    HN_OPT("config", NULL, FILE, "FILE",
           "take the shape from a JSON file instead of a preset: arch, n_layer, n_embd, n_head, n_head_kv, head_dim, "
           "n_ff, n_vocab, n_ctx_train, rope_base, rms_eps, tied, rope_factor; of gemma3 also window; of RWKV "
           "norm_eps, rank_decay, "
           "rank_iclr, rank_value, rank_gate, rank_mix, rescale_every",
           .what = "the shape"),
    HN_OPT("layers", NULL, I32, "N", "so many of the layers alone: a slice, to measure what does not fit here",
           .min = 1, .max = 1024),
    HN_OPT("list", NULL, FLAG, NULL, "show the presets"),
    HN_OPT("threads", "-t", I32, "N", "threads (default: one per usable core)", .min = 1, .max = 1024),
    HN_OPT_END,
};
static const hn_opt_group group = { "Synthesis", opts };
static const hn_opt_group *const groups[] = { &group, NULL };

static int list(const hn_cli *cli)
{
    const hone_synth_preset *p;
    size_t n = hone_synth_presets(&p);
    if (!cli->json) {
        for (size_t i = 0; i < n; i++)
            hn_out_printf("%-20s %-6s %9.1f M parameters  %s\n", p[i].name, p[i].arch, (double)p[i].n_params / 1e6,
                          p[i].description);
        return HN_EXIT_OK;
    }
    json_t *o = hn_json_new("hone.synth.list/1"), *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_pack("{s:s,s:s,s:s,s:I}", "name", p[i].name, "arch", p[i].arch, "description",
                                           p[i].description, "parameters", (json_int_t)p[i].n_params));
    json_object_set_new(o, "presets", a);
    return hn_json_print(o);
}

static int run(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    const char *preset = hn_opts_arg(o, 0), *config = hn_opts_str(o, "config"), *dst = hn_opts_str(o, "output");
    hone_error err;
    if (hn_opts_flag(o, "list")) {
        if (preset || config || dst) return hn_cli_usage(cli, "--list goes with no preset, configuration or output");
        return list(cli);
    }
    if (!preset == !config)
        return hn_cli_usage(cli, preset ? "a preset and --config: expected one of them"
                                        : "no preset (hone synth --list shows them) and no --config FILE");
    if (!dst) return hn_cli_usage(cli, "no output file: -o FILE");
    hone_synth_params p = { .preset = preset,
                            .config_path = config,
                            .type = hn_opts_str(o, "type"),
                            .seed = hn_opts_u64(o, "seed"),
                            .n_threads = hn_opts_given(o, "threads") ? hn_opts_i32(o, "threads") : 0,
                            .n_layer = hn_opts_given(o, "layers") ? hn_opts_i32(o, "layers") : 0 };
    hone_progress pr = { hn_progress_fn, (void *)"writing", hn_abort_fn };
    double t0 = hn_now_ms();
    hone_status st = hone_synth(&p, dst, &pr, &err);
    hn_progress_end();
    if (st != HONE_OK) return hn_cli_fail(&err);
    json_t *extra = json_pack("{s:s?,s:s,s:I}", "preset", preset, "type", p.type, "seed", (json_int_t)p.seed);
    return hn_cli_written(cli, "hone.synth/1", dst, (hn_now_ms() - t0) / 1e3, extra);
}

const hn_command hn_command_synth = {
    .name = "synth",
    .summary = "Write a model of a real shape with random weights, to measure before downloading",
    .args = "[PRESET]",
    .min_args = 0,
    .max_args = 1,
    .groups = groups,
    .examples = "hone synth llama-3.2-1b -o llama-1b.gguf\n"
                "hone synth qwen2.5-coder-7b --type Q8_0 --seed 1 -o qwen-7b.gguf\n"
                "hone synth --config shape.json --type F16 -o mine.gguf\n"
                "hone synth qwen3-30b-a3b --layers 4 -o slice.gguf\n"
                "hone synth --list\n",
    .run = run,
};
