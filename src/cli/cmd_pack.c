/* hone pack: the weights of a model in the order that is read fastest, in a file beside it. */
#include "cli/cli.h"

#include <inttypes.h>
#include <unistd.h>

static const hn_opt opts[] = {
    HN_OPT("model", "-m", FILE, "FILE", "GGUF model to pack; any member of a split set", .use = HN_USE_MODEL,
           .what = "the model"),
    HN_OPT("output", "-o", FILE, "FILE", "the packed file (default: MODEL.hpack, where every command looks for it)",
           .use = HN_USE_WRITE, .what = "the packed file"),
    HN_OPT("verify", NULL, FLAG, NULL, "write nothing: compare every byte of the packed file with the model"),
    HN_OPT("force", NULL, FLAG, NULL, "write it again even if a good one is there"),
    HN_OPT("threads", "-t", I32, "N", "threads (default: one per usable core)", .min = 1, .max = 1024),
    HN_OPT_END,
};
static const hn_opt_group group = { "Packing", opts };
static const hn_opt_group *const groups[] = { &group, NULL };

static int print_json(const hone_packed_info *p, const char *model, const char *state, double seconds)
{
    json_t *o = hn_json_new("hone.pack/1");
    json_object_set_new(o, "state", json_string(state));
    json_object_set_new(o, "model", hn_json_str(model, strlen(model)));
    json_object_set_new(o, "file", hn_json_str(p->path, strlen(p->path)));
    json_object_set_new(o, "bytes", json_integer((json_int_t)p->size));
    json_object_set_new(o, "matrices", json_integer(p->n_matrices));
    json_object_set_new(o, "vectors", json_integer(p->n_vectors));
    json_object_set_new(o, "data_sha256", json_string(p->data_sha256));
    json_object_set_new(o, "left_plain",
                        p->written
                            ? json_pack("{s:i, s:I}", "tensors", (int)p->n_plain, "bytes", (json_int_t)p->plain_bytes)
                            : json_null());
    json_object_set_new(o, "seconds", hn_json_num(seconds));
    return hn_json_print(o);
}

static int run(const hn_cli *cli)
{
    const hn_opts *o = cli->opts;
    const char *model = hn_opts_str(o, "model");
    hone_pack_params p = { .file = hn_opts_str(o, "output"),
                           .force = hn_opts_flag(o, "force"),
                           .verify = hn_opts_flag(o, "verify"),
                           .n_threads = hn_opts_given(o, "threads") ? hn_opts_i32(o, "threads") : 0 };
    hone_packed_info info;
    hone_error err;
    if (!model) return hn_cli_usage(cli, "no model; expected -m FILE.gguf");
    if (p.verify && p.force) return hn_cli_usage(cli, "--verify and --force contradict each other; give one of them");
    hone_progress pr = { hn_progress_fn, (void *)(p.verify ? "comparing" : "packing"), hn_abort_fn };
    double t0 = hn_now_ms();
    hone_status st = hone_pack(model, &p, &info, &pr, &err);
    hn_progress_end();
    if (st != HONE_OK) {
        bool no_model = err.code == HONE_E_IO && access(model, F_OK) != 0;
        int code = no_model ? hn_cli_fail_model(&err) : hn_cli_fail(&err);
        if (no_model) hn_cli_advise_model(model);
        if (p.verify && st == HONE_E_FORMAT && info.state == HONE_PACKED_UNUSABLE)
            hn_err_printf("hone: try: hone pack -m %s%s%s\n", HN_ESC(model, strlen(model)), p.file ? " -o " : "",
                          p.file ? HN_ESC(p.file, strlen(p.file)) : "");
        return code;
    }
    double s = (hn_now_ms() - t0) / 1e3;
    if (cli->json) return print_json(&info, model, p.verify ? "verified" : info.written ? "written" : "ready", s);
    const char *name = HN_ESC(info.path, strlen(info.path));
    if (p.verify) {
        hn_out_printf("%s: every byte agrees with %s: %" PRIu32 " matrices, %" PRIu32 " vectors; %.1f s\n", name,
                      HN_ESC(model, strlen(model)), info.n_matrices, info.n_vectors, s);
        return HN_EXIT_OK;
    }
    if (!info.written) {
        hn_out_printf("%s: belongs to the model already; nothing to do (--force writes it again)\n", name);
        return HN_EXIT_OK;
    }
    hn_out_printf("%s: %.1f MB, %" PRIu32 " matrices packed, %" PRIu32 " vectors; %.1f s, %.0f MB/s\n", name,
                  (double)info.size / 1e6, info.n_matrices, info.n_vectors, s, s > 0 ? (double)info.size / 1e6 / s : 0);
    if (info.n_plain)
        hn_out_printf("%" PRIu32 " weights (%.1f MB) gain nothing or have no packed form: read from the model\n",
                      info.n_plain, (double)info.plain_bytes / 1e6);
    return HN_EXIT_OK;
}

const hn_command hn_command_pack = {
    .name = "pack",
    .summary = "Write a packed copy of a model's weights, which is read faster and gives the same answers",
    .args = "[MODEL]",
    .takes = "model",
    .groups = groups,
    .examples = "hone pack -m model.gguf\n"
                "hone pack -m model.gguf --verify\n"
                "hone pack -m model.gguf -o /fast-disk/model.hpack && hone run -m model.gguf --packed "
                "/fast-disk/model.hpack -p Hello\n",
    .run = run,
};
