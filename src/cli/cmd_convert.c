/* hone convert: a checkpoint of another program becomes a GGUF file. */
#include "cli/written.h"

#include <errno.h>
#include <strings.h>
#include <sys/stat.h>

static const hn_opt opts[] = {
    HN_OPT("output", "-o", FILE, "FILE", "the GGUF file to write; where SRC is one, the folder", .use = HN_USE_NONE),
    HN_OPT("tokenizer", NULL, FILE, "FILE",
           "the vocabulary: a llama2.c tokenizer.bin, RWKV's rwkv_vocab_v20230424.txt, or another folder with those of "
           "transformers (default: in SRC, if it is a folder)"),
    HN_OPT("base", NULL, FILE, "FILE",
           "SRC is an adapter of this model: -o NAME.gguf makes a GGUF adapter, any other name a PEFT folder; --type "
           "F32 (default) or F16",
           .use = HN_USE_MODEL),
    HN_OPT("pre", NULL, STR, "NAME",
           "how the tokenizer splits text before it merges: tokenizer.ggml.pre (default: told from its files)"),
    HN_OPT("type", NULL, STR, "TYPE",
           "storage of the weights: F32, F16, BF16, Q8_0, Q4_K_M, … (default: as in SRC, nothing is rounded)"),
    HN_OPT_END,
};
static const hn_opt_group group = { "Conversion", opts };
static const hn_opt_group *const groups[] = { &group, NULL };

static bool has_tokenizer(const char *path)
{
    hone_file *f;
    bool found = false;
    if (hone_file_open(&f, path, NULL) != HONE_OK) return true; /* said where it is described */
    for (uint64_t i = 0; i < hone_file_n_kv(f) && !found; i++) {
        static const char key[] = "tokenizer.ggml.model";
        hone_kv kv;
        hone_file_kv(f, i, &kv);
        found = kv.key.len == sizeof key - 1 && memcmp(kv.key.ptr, key, kv.key.len) == 0;
    }
    hone_file_close(f);
    return found;
}

static int told_folder(const hn_cli *cli, const char *dst)
{
    if (!cli->json) return 0;
    json_t *o = hn_json_new("hone.convert/1");
    json_object_set_new(o, "file", hn_json_str(dst, strlen(dst)));
    return hn_json_print(o);
}

static int convert_adapter(const hn_cli *cli, const char *src, const char *dst)
{
    const char *type = hn_opts_str(cli->opts, "type"), *base = hn_opts_str(cli->opts, "base");
    hone_model *m;
    hone_error err;
    double t0 = hn_now_ms();
    bool f16 = type && !strcasecmp(type, "F16");
    if (type && !f16 && strcasecmp(type, "F32"))
        return hn_cli_usage(cli, "--type %s: adapters are F32 or F16", HN_ESC(type, strlen(type)));
    if (hone_model_open(&m, base, NULL, &err) != HONE_OK) return hn_cli_fail_model(&err);
    hone_status st = hone_adapter_convert(m, src, dst, f16, &err);
    hone_model_close(m);
    if (st != HONE_OK) return hn_cli_fail_made(&err, dst);
    size_t n = strlen(dst);
    if (n > 5 && !strcmp(dst + n - 5, ".gguf"))
        return hn_cli_written(cli, "hone.convert/1", dst, (hn_now_ms() - t0) / 1e3, NULL);
    return told_folder(cli, dst);
}

/* What -o means depends on --base, so no table says it. */
static int check_files(const hn_cli *cli, const char *dst, bool back)
{
    char tensors[4200], config[4200], template[4200];
    size_t n = strlen(dst);
    bool folder = hn_opts_str(cli->opts, "base") && (n <= 5 || strcmp(dst + n - 5, ".gguf") != 0);
    if (strcmp(dst, "-") == 0)
        return hn_cli_usage(cli, "-o -: this cannot go to standard output; expected the name of a file (or ./-)");
    if (!folder) {
        const hn_file_use file = { dst, "the output", "-o", back ? HN_FILE_FOLDER : HN_FILE_WRITTEN };
        return hn_cli_files_apart(cli, &file, 1, back ? HN_ALL_FOLDERS : 0);
    }
    snprintf(tensors, sizeof tensors, "%s/adapter_model.safetensors", dst);
    snprintf(config, sizeof config, "%s/adapter_config.json", dst);
    snprintf(template, sizeof template, "%s/chat_template.jinja", dst);
    const hn_file_use made[] = { { dst, "the PEFT folder", "-o", HN_FILE_FOLDER },
                                 { tensors, "the adapter in the PEFT folder", "-o", HN_FILE_WRITTEN },
                                 { config, "the configuration in the PEFT folder", "-o", HN_FILE_WRITTEN },
                                 { template, "the template in the PEFT folder", "-o", HN_FILE_WRITTEN } };
    return hn_cli_files_apart(cli, made, sizeof made / sizeof *made, 1);
}

/* A GGUF file becomes a folder. */
static bool is_gguf(const char *path)
{
    char head[4] = { 0 };
    FILE *f = fopen(path, "rb");
    bool is = f && fread(head, 1, 4, f) == 4 && !memcmp(head, "GGUF", 4);
    if (f) fclose(f);
    return is;
}

static void note(void *arg, const char *text)
{
    (void)arg;
    hn_progress_end();
    hn_cli_note("%s", text);
}

/* As of any model that is not there. */
static int no_source(const char *src, int why)
{
    int code = hn_cli_error(HN_EXIT_MODEL, "%s: cannot open: %s", HN_ESC(src, strlen(src)), strerror(why));
    hn_err_printf("hone: try: hone pull owner/repo, which gets a folder of transformers from the hub and says where it "
                  "is\n");
    return code;
}

static int run(const hn_cli *cli)
{
    const char *src = hn_opts_arg(cli->opts, 0), *dst = hn_opts_str(cli->opts, "output");
    hone_error err;
    if (!dst) return hn_cli_usage(cli, "no output; expected -o FILE.gguf, or -o FOLDER where SRC is a GGUF file");
    struct stat sb;
    if (stat(src, &sb) != 0) return no_source(src, errno);
    bool back = !hn_opts_str(cli->opts, "base") && S_ISREG(sb.st_mode) && is_gguf(src);
    int rc = check_files(cli, dst, back);
    if (rc) return rc;
    if (hn_opts_str(cli->opts, "base")) return convert_adapter(cli, src, dst);
    hone_progress pr = { hn_progress_fn, (void *)"converting", hn_abort_fn };
    double t0 = hn_now_ms();
    const hone_convert_params params = { .tokenizer = hn_opts_str(cli->opts, "tokenizer"),
                                         .type = hn_opts_str(cli->opts, "type"),
                                         .pre = hn_opts_str(cli->opts, "pre"),
                                         .note = note };
    hone_status st = hone_convert_with(src, dst, &params, &pr, &err);
    hn_progress_end();
    if (st != HONE_OK) return hn_cli_fail(&err);
    if (back) return told_folder(cli, dst);
    if (!has_tokenizer(dst))
        hn_cli_note("%s has no tokenizer and runs on token ids alone (--ids); --tokenizer adds one", dst);
    return hn_cli_written(cli, "hone.convert/1", dst, (hn_now_ms() - t0) / 1e3, NULL);
}

const hn_command hn_command_convert = {
    .name = "convert",
    .summary = "Convert a folder of transformers, an RWKV or llama2.c checkpoint to GGUF",
    .args = "SRC",
    .reads_args = true,
    .names_args = true,
    .checkpoint_args = true,
    .min_args = 1,
    .max_args = 1,
    .groups = groups,
    .examples = "hone convert Qwen3-4B/ -o qwen3-4b.gguf\n"
                "hone convert Llama-3.2-3B-Instruct/ --type Q4_K_M -o llama-3.2-3b.gguf\n"
                "hone convert RWKV7-Goose-World3-2.9B-HF/ --type Q4_K_M -o rwkv7-2.9b.gguf\n"
                "hone convert rwkv.safetensors --tokenizer rwkv_vocab_v20230424.txt -o rwkv.gguf\n"
                "hone convert rwkv-7-fp16.bin --tokenizer rwkv_vocab_v20230424.txt -o rwkv.gguf\n"
                "hone convert stories260K.bin --tokenizer tok512.bin -o stories260K.gguf\n"
                "hone convert stories15M.bin --tokenizer tokenizer.bin --type Q8_0 -o stories15M.gguf\n"
                "hone convert rwkv7-2.9b.pth --tokenizer rwkv_vocab_v20230424.txt -o rwkv.gguf\n"
                "hone convert llama-3.2-1b.gguf -o Llama-3.2-1B/\n"
                "hone convert peft-adapter/ --base llama-3.2-1b.gguf -o adapter.gguf\n",
    .run = run,
};
