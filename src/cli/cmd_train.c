/* hone train: adapts a model to data. Owns options, files and the order of things; the
 * training is the library's. Interrupted, it ends with the step and saves. */
#include "cli/train/train_command.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

static const hn_opt data_opts[] = {
    HN_OPT("data", "-d", FILE, "FILE",
           "what to learn: texts (.txt, .md), records (.jsonl, .json, .csv, .tsv) of texts, of prompts with "
           "completions, or of chats; or a folder of such files",
           .repeat = true, .use = HN_USE_DATA, .what = "the data"),
    HN_OPT("val-data", NULL, FILE, "FILE", "what to validate with", .repeat = true, .excl = "validation",
           .use = HN_USE_DATA, .what = "the data to validate with"),
    HN_OPT("val-share", NULL, F32, "X", "keep a share of the samples for validation", .min = 0, .max = 0.99,
           .excl = "validation"),
    HN_OPT("mask", NULL, CHOICE, "WHAT",
           "tokens that are not learnt: none; prompt: all but completions and answers; last: all but the last answer",
           .def = "prompt", .choices = "none|prompt|last"),
    HN_OPT("split", NULL, CHOICE, "WHERE",
           "what divides a file of text into texts that are learnt from their beginning: blank lines, the mark "
           "<|endoftext|>, headings, line ends, or none; auto: the mark where there is one, else headings in .md and "
           "blank lines in .txt",
           .def = "auto", .choices = "auto|blank|mark|heading|line|none"),
    HN_OPT("chat-template", NULL, STR, "NAME",
           "conversations in a format by name (chatml, llama3, …), or in that of @FILE with a Jinja template (default: "
           "the model's own); the output keeps it, for hone chat",
           .use = HN_USE_AT),
    HN_OPT("seq", NULL, I32, "N",
           "tokens of a sequence; longer records are cut, longer texts go on in the next one (default: 512, or the "
           "model's context where that is shorter)",
           .min = 2, .max = 1 << 20),
    HN_OPT("pack", NULL, CHOICE, "X", "put several short samples in one sequence, each for itself", .def = "on",
           .choices = "on|off"),
    HN_OPT("special", NULL, FLAG, NULL, "what looks like a special token in a text is one"),
    HN_OPT("max-bad-lines", NULL, U64, "N", "leave out up to N lines that are no records, and count them", .def = "0"),
    HN_OPT_END,
};
static const hn_opt_group data_group = { "Data", data_opts };

static const hn_opt adapter_opts[] = {
    HN_OPT("targets", NULL, STR, "LIST", "matrices that get adapters: qv, attn, all, or some of q,k,v,o,gate,up,down",
           .def = "qv"),
    HN_OPT("rank", "-r", I32, "N", "rank of the adapters", .def = "8", .min = 1, .max = 4096),
    HN_OPT("alpha", NULL, F32, "X", "scale of the adapters: alpha/rank", .def = "16", .min = 1e-6, .max = 1e6),
    HN_OPT("rslora", NULL, FLAG, NULL, "scale alpha/sqrt(rank) instead"),
    HN_OPT("dropout", NULL, F32, "X", "share of the adapters' inputs that is left out at random", .def = "0", .min = 0,
           .max = 0.99),
    HN_OPT("layers", NULL, I32, "N", "adapters in the last N layers only; 0: in all", .def = "0", .min = 0,
           .max = 1024),
    HN_OPT_END,
};
static const hn_opt_group adapter_group = { "Adapters", adapter_opts };

static const hn_opt whole_opts[] = {
    HN_OPT("full", NULL, FLAG, NULL, "train all weights; the output is a whole model"),
    HN_OPT("from-config", NULL, FILE, "FILE",
           "begin with random weights of the shape in this JSON file (see hone synth --config) in place of -m; means "
           "--full",
           .what = "the shape"),
    HN_OPT(
        "vocab", NULL, I32, "N",
        "with --from-config: make a byte-level BPE tokenizer of N tokens from the data (default: n_vocab of the shape)",
        .min = 258, .max = 1 << 20, .excl = "tokenizer"),
    HN_OPT(
        "special-tokens", NULL, STR, "LIST",
        "with --from-config: special tokens of that tokenizer beside <|bos|> and <|endoftext|>, divided by commas, as "
        "<|im_start|>,<|im_end|>, which ChatML needs"),
    HN_OPT("tokenizer", NULL, FILE, "MODEL", "with --from-config: take the tokenizer of this GGUF model",
           .excl = "tokenizer", .use = HN_USE_MODEL, .what = "the model of the tokenizer"),
    HN_OPT("type", NULL, STR, "TYPE",
           "with --full: storage of the matrices in the output: F32, F16, BF16, Q8_0, Q4_K_M, … (default: as in the "
           "base, F32 where that is quantized)"),
    HN_OPT("name", NULL, STR, "NAME",
           "with --full: the model's name (default: as in the base; with --from-config that of the output file)"),
    HN_OPT_END,
};
static const hn_opt_group whole_group = { "Whole models", whole_opts };

static const hn_opt run_opts[] = {
    HN_OPT("steps", NULL, U64, "N", "optimizer steps", .max = 1e12, .excl = "length"),
    HN_OPT("stop-after", NULL, U64, "N",
           "end after N of these steps, with the learning rate as it is there; --resume goes on", .max = 1e12),
    HN_OPT("epochs", NULL, F32, "X", "passes over the data (default: 1)", .min = 1e-6, .max = 1e6, .excl = "length"),
    HN_OPT("batch", "-b", I32, "N", "sequences of a micro-batch", .def = "4", .min = 1, .max = 65536),
    HN_OPT("accum", NULL, I32, "N", "micro-batches of a step", .def = "1", .min = 1, .max = 1 << 20),
    HN_OPT("lr", NULL, F32, "X", "learning rate", .def = "1e-4", .min = 0, .max = 1000),
    HN_OPT("min-lr", NULL, F32, "X", "learning rate at the end (default: a tenth with cosine and wsd, else 0)",
           .min = 0, .max = 1000),
    HN_OPT("schedule", NULL, CHOICE, "NAME", "how the learning rate falls", .def = "cosine",
           .choices = "constant|linear|cosine|wsd"),
    HN_OPT("warmup", NULL, STR, "N", "steps in which it rises; below 1: a share of all", .def = "0.03"),
    HN_OPT("weight-decay", NULL, F32, "X", "weight decay", .def = "0.01", .min = 0, .max = 1000),
    HN_OPT("beta1", NULL, F32, "X", "AdamW: memory of the gradient", .def = "0.9", .min = 0, .max = 0.999999),
    HN_OPT("beta2", NULL, F32, "X", "AdamW: memory of its square", .def = "0.999", .min = 0, .max = 0.9999999),
    HN_OPT("eps", NULL, F32, "X", "AdamW: added to the root", .def = "1e-8", .min = 1e-30, .max = 1),
    HN_OPT("clip", NULL, F32, "X", "longest gradient; 0: any", .def = "1", .min = 0, .max = 1e12),
    HN_OPT("seed", "-s", U64, "N", "seed of first values, order and dropout", .def = "0"),
    HN_OPT("bf16", NULL, FLAG, NULL,
           "products of operands rounded to bf16, activations kept as bf16: faster, less memory, less exact"),
    HN_OPT("recompute", "--grad-checkpoint", FLAG, NULL,
           "keep only each layer's input and compute the rest again: less memory, a third more work, the same numbers"),
    HN_OPT_END,
};
static const hn_opt_group run_group = { "Training", run_opts };

static const hn_opt files_opts[] = {
    HN_OPT("output", "-o", FILE, "FILE", "the adapter (with --full: the model) as GGUF", .use = HN_USE_WRITE,
           .what = "the output"),
    HN_OPT("peft", NULL, FILE, "FOLDER", "the adapter as a PEFT folder, too", .use = HN_USE_PEFT,
           .what = "the PEFT folder"),
    HN_OPT("eval-every", NULL, U64, "N", "validate every N steps; 0: only at the end", .def = "0", .max = 1e12),
    HN_OPT("early-stop", NULL, STR, "N[,X]",
           "end after N validations in a row that gain no more than X, and write the best weights"),
    HN_OPT("save-every", NULL, U64, "N", "a checkpoint every N steps, and one at the end; 0: only when interrupted",
           .def = "100", .max = 1e12),
    HN_OPT("keep", NULL, I32, "N", "checkpoints to keep", .def = "2", .min = 1, .max = 1000000),
    HN_OPT("checkpoints", NULL, FILE, "FOLDER", "where they are (default: OUTPUT.ckpt)", .use = HN_USE_FOLDER,
           .what = "the folder of checkpoints"),
    HN_OPT("resume", NULL, FLAG, NULL, "go on from the newest checkpoint that is whole, if there is one",
           .excl = "again"),
    HN_OPT("fresh", NULL, FLAG, NULL, "remove the checkpoints of an earlier run and begin anew", .excl = "again"),
    HN_OPT("log", NULL, FILE, "FILE", "a record of every step, JSON lines (default: OUTPUT.jsonl)", .use = HN_USE_WRITE,
           .what = "the log"),
    HN_OPT("dry-run", NULL, FLAG, NULL, "read the data, say what would be trained and what it takes, and stop"),
    HN_OPT_END,
};
static const hn_opt_group files_group = { "Files", files_opts };

static const hn_opt compute_opts[] = {
    HN_OPT("threads", "-t", I32, "N",
           "threads (default: HONE_THREADS, else one per usable core); the results are the same", .min = 1,
           .max = 1024),
    HN_OPT("cpu", NULL, STR, "LEVEL",
           "kernel level (default: HONE_CPU, else the best of this machine); the results are the same"),
    HN_OPT_END,
};
static const hn_opt_group compute_group = { "Computation", compute_opts };
static const hn_opt_group *const groups[] = { &hn_group_model, &data_group,  &adapter_group, &whole_group,
                                              &run_group,      &files_group, &compute_group, NULL };

/* As it was written: 0.999 as a float is another number. */
static double number(const hn_cli *cli, const char *name, double otherwise)
{
    size_t n = hn_opts_count(cli->opts, name);
    return n ? strtod(hn_opts_nth(cli->opts, name, n - 1), NULL) : otherwise;
}

static int index_of(const char *word, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0) return i;
    return 0;
}

/* "3" or "3,0.01" */
static int read_early_stop(hn_train_job *j)
{
    const char *s = hn_opts_str(j->cli->opts, "early-stop");
    if (!s) return 0;
    char *end;
    double n = strtod(s, &end), delta = 0;
    bool ok = end != s && n >= 1 && n <= INT32_MAX && n == (double)(int32_t)n;
    if (ok && *end == ',') {
        char *from = end + 1;
        delta = strtod(from, &end);
        ok = end != from;
    }
    if (!ok || *end || !(delta >= 0 && delta <= 1e6))
        return hn_cli_usage(j->cli, "--early-stop %s: expected N or N,X, as in 3,0.01", HN_ESC(s, strlen(s)));
    j->p.patience = (int32_t)n;
    j->p.min_delta = delta;
    return 0;
}

static int read_warmup(hn_train_job *j)
{
    const char *s = hn_opts_str(j->cli->opts, "warmup");
    char *end;
    double x = strtod(s, &end);
    if (end == s || *end || !(x >= 0 && x <= 1e12) || (x >= 1 && x != (double)(int64_t)x))
        return hn_cli_usage(j->cli, "--warmup %s: expected a number of steps, or a share below 1",
                            HN_ESC(s, strlen(s)));
    j->p.warmup = x >= 1 || x == 0 ? (int64_t)x : -1;
    j->p.warmup_ratio = x < 1 ? x : 0;
    return 0;
}

/* What belongs to whole models, and to those begun here. */
static int read_whole(hn_train_job *j)
{
    static const char *const of_new[] = { "vocab", "special-tokens", "tokenizer", NULL }, *const of_adapters[] = {
        "targets", "rank", "alpha", "rslora", "dropout", "layers", "peft", NULL
    };
    const hn_opts *o = j->cli->opts;
    bool begun = hn_opts_given(o, "from-config");
    if (begun && hn_opts_given(o, "model"))
        return hn_cli_usage(j->cli,
                            "--from-config and -m contradict each other: one of them is the model to begin from");
    for (int i = 0; !begun && of_new[i]; i++)
        if (hn_opts_given(o, of_new[i])) return hn_cli_usage(j->cli, "--%s belongs to --from-config", of_new[i]);
    for (int i = 0; j->p.full && of_adapters[i]; i++)
        if (hn_opts_given(o, of_adapters[i]))
            return hn_cli_usage(j->cli, "--%s belongs to adapters; here all weights are trained", of_adapters[i]);
    if (hn_opts_given(o, "special-tokens") && hn_opts_given(o, "tokenizer"))
        return hn_cli_usage(j->cli, "--special-tokens and --tokenizer contradict each other: that model's tokenizer is "
                                    "taken as it is");
    if (begun && hn_opts_given(o, "pre"))
        return hn_cli_usage(j->cli,
                            "--pre belongs to -m; the tokenizer of a model that is begun is made, or --tokenizer's");
    if (!j->p.full && j->p.name) return hn_cli_usage(j->cli, "--name belongs to --full; it is a whole model's");
    if (!j->p.full && j->p.output_type)
        return hn_cli_usage(j->cli,
                            "--type belongs to --full; adapters are F32 (hone merge writes merged models of any type)");
    return 0;
}

/* As hone chat takes it. */
static int read_template(hn_train_job *j)
{
    const char *choice = hn_opts_str(j->cli->opts, "chat-template");
    size_t n;
    hone_error err;
    if (choice && choice[0] == '@') {
        if (hn_read_all(choice + 1, &j->chat_template, &n, &err) != HONE_OK)
            return hn_cli_fail_input(j->cli, "--chat-template @", choice + 1, &err);
        choice = j->chat_template;
    }
    j->p.chat_template = choice;
    return 0;
}

static const char **list_of(const hn_cli *cli, const char *name, int32_t *n)
{
    *n = (int32_t)hn_opts_count(cli->opts, name);
    const char **list = calloc((size_t)*n + 1, sizeof *list);
    for (int32_t i = 0; list && i < *n; i++) list[i] = hn_opts_nth(cli->opts, name, (size_t)i);
    return list;
}

static int read_params(hn_train_job *j)
{
    const hn_cli *cli = j->cli;
    const hn_opts *o = cli->opts;
    hone_train_params *p = &j->p;
    hone_train_defaults(p);
    p->abort_fn = hn_abort_fn;
    static const char *const splits[] = { "auto", "blank", "mark", "heading", "line", "none", NULL };
    p->split = (hone_train_split)index_of(hn_opts_str(o, "split"), splits);
    static const char *const masks[] = { "none", "prompt", "last", NULL }, *const schedules[] = { "constant", "linear",
                                                                                                  "cosine", "wsd",
                                                                                                  NULL };
    p->val_share = number(cli, "val-share", 0);
    p->mask = (hone_train_mask)index_of(hn_opts_str(o, "mask"), masks);
    if (hn_opts_given(o, "seq")) p->seq = hn_opts_i32(o, "seq");
    p->pack = strcmp(hn_opts_str(o, "pack"), "on") == 0;
    p->special = hn_opts_flag(o, "special");
    p->max_bad_lines = (int64_t)hn_opts_u64(o, "max-bad-lines");
    p->targets = hn_opts_str(o, "targets");
    p->rank = hn_opts_i32(o, "rank");
    p->alpha = number(cli, "alpha", p->alpha);
    p->rslora = hn_opts_flag(o, "rslora");
    p->dropout = number(cli, "dropout", 0);
    p->n_layers = hn_opts_i32(o, "layers");
    p->full = hn_opts_flag(o, "full") || hn_opts_given(o, "from-config");
    p->output_type = hn_opts_str(o, "type");
    p->name = hn_opts_str(o, "name");
    p->steps = (int64_t)(hn_opts_given(o, "steps") ? hn_opts_u64(o, "steps") : 0);
    p->epochs = number(cli, "epochs", 1);
    p->batch = hn_opts_i32(o, "batch");
    p->accumulate = hn_opts_i32(o, "accum");
    p->lr = number(cli, "lr", p->lr);
    p->min_lr = number(cli, "min-lr", -1);
    p->schedule = (hone_train_schedule)index_of(hn_opts_str(o, "schedule"), schedules);
    p->weight_decay = number(cli, "weight-decay", p->weight_decay);
    p->beta1 = number(cli, "beta1", p->beta1);
    p->beta2 = number(cli, "beta2", p->beta2);
    p->eps = number(cli, "eps", p->eps);
    p->clip = number(cli, "clip", p->clip);
    p->seed = hn_opts_u64(o, "seed");
    p->bf16 = hn_opts_flag(o, "bf16");
    p->recompute = hn_opts_flag(o, "recompute");
    p->eval_every = (int64_t)hn_opts_u64(o, "eval-every");
    p->plan_only = hn_opts_flag(o, "dry-run");
    j->save_every = (int64_t)hn_opts_u64(o, "save-every");
    j->keep = hn_opts_i32(o, "keep");
    int rc = read_whole(j);
    if (!rc) rc = read_warmup(j);
    if (rc || (rc = read_early_stop(j))) return rc;
    if (hn_opts_given(o, "stop-after") && !hn_opts_u64(o, "stop-after"))
        return hn_cli_usage(cli, "--stop-after 0: expected at least 1");
    if (hn_opts_given(o, "min-lr") && p->schedule == HONE_TRAIN_CONSTANT)
        return hn_cli_usage(cli,
                            "--min-lr changes nothing with --schedule constant; expected another schedule, or none "
                            "of it");
    if (p->min_lr > p->lr)
        return hn_cli_usage(cli, "--min-lr %g is above --lr %g: the rate would rise; expected at most that", p->min_lr,
                            p->lr);
    if (hn_opts_given(o, "steps") && !p->steps) return hn_cli_usage(cli, "--steps 0: expected at least 1");
    if (!hn_opts_count(o, "data")) return hn_cli_usage(cli, "no data; expected --data FILE");
    bool validated = p->val_share > 0 || hn_opts_count(o, "val-data");
    if ((p->patience || p->eval_every) && !validated)
        return hn_cli_usage(cli, "--%s needs --val-data or --val-share", p->patience ? "early-stop" : "eval-every");
    if (p->patience && !p->eval_every)
        return hn_cli_usage(cli, "--early-stop needs --eval-every: else the only validation is that at the end");
    if ((rc = read_template(j))) return rc;
    p->data = list_of(cli, "data", &p->n_data);
    p->val_data = list_of(cli, "val-data", &p->n_val_data);
    return p->data && p->val_data ? 0 : hn_cli_error(HN_EXIT_NOMEM, "out of memory for the list of files");
}

/* A file that is damaged or wrong and no model: that code would blame the model. */
static int fail_file(const hone_error *err) { return hn_cli_error(HN_EXIT_FAILURE, "%s", err->message); }

static bool names_one(const hone_error *err, const char *const *paths, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        size_t k = strlen(paths[i]);
        if (k && strncmp(err->message, paths[i], k) == 0 && (paths[i][k - 1] == '/' || strchr(":/ ", err->message[k])))
            return true;
    }
    return false;
}

/* Of files that are not there the next step is told, too. */
static int fail_data(const hn_train_job *j, const hone_error *err)
{
    struct stat sb;
    for (int32_t i = 0; i < j->p.n_data; i++)
        if (stat(j->p.data[i], &sb) != 0) return hn_cli_fail_input(j->cli, "--data", j->p.data[i], err);
    for (int32_t i = 0; i < j->p.n_val_data; i++)
        if (stat(j->p.val_data[i], &sb) != 0) return hn_cli_fail_input(j->cli, "--val-data", j->p.val_data[i], err);
    bool data = names_one(err, j->p.data, j->p.n_data) || names_one(err, j->p.val_data, j->p.n_val_data);
    return data && err->code == HONE_E_FORMAT ? fail_file(err) : hn_cli_fail(err);
}

/* The texts of --special-tokens, divided by commas: views into *copy, both the caller's to free. */
static int read_special(const hn_cli *cli, hone_init_params *p, char **copy, const char ***list)
{
    const char *s = hn_opts_str(cli->opts, "special-tokens");
    *copy = NULL;
    *list = NULL;
    if (!s) return 0;
    *copy = strdup(s);
    *list = calloc(strlen(s) + 1, sizeof **list);
    if (!*copy || !*list) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for the special tokens");
    for (char *at = *copy, *next; at; at = next) {
        if ((next = strchr(at, ','))) *next++ = 0;
        if (!*at)
            return hn_cli_usage(cli, "--special-tokens %s: token %d is empty; expected texts with commas between them",
                                HN_ESC(s, strlen(s)), p->n_special + 1);
        (*list)[p->n_special++] = at;
    }
    p->special = *list;
    return 0;
}

/* The model to begin from: a file beside the output, which the checkpoints go with. */
static int begin_model(hn_train_job *j)
{
    const hn_opts *o = j->cli->opts;
    const char *tokenizer = hn_opts_str(o, "tokenizer");
    hone_error err;
    hone_init_params p = { .config = hn_opts_str(o, "from-config"),
                           .tokenizer = tokenizer,
                           .data = tokenizer ? NULL : j->p.data,
                           .n_data = tokenizer ? 0 : j->p.n_data,
                           .n_vocab = hn_opts_given(o, "vocab") ? hn_opts_i32(o, "vocab") : 0,
                           .name = hn_opts_str(o, "name"),
                           .seed = j->p.seed,
                           .abort_fn = hn_abort_fn,
                           .max_bad_lines = j->p.max_bad_lines };
    char name[256]; /* of the file, without its folder and ending */
    const char *file = strrchr(j->out, '/') ? strrchr(j->out, '/') + 1 : j->out, *dot = strrchr(file, '.');
    snprintf(name, sizeof name, "%.*s", (int)(dot && dot != file && dot - file < 255 ? dot - file : 255), file);
    if (!p.name) p.name = name;
    char *copy;
    const char **special;
    int rc = read_special(j->cli, &p, &copy, &special);
    if (!rc && hone_init_model(j->base, &p, &err) != HONE_OK) rc = fail_data(j, &err);
    free(copy);
    free((void *)special);
    if (rc) return rc;
    hone_model_info info;
    j->base_made = true;
    if (hone_model_open(&j->m, j->base, NULL, &err) != HONE_OK) return hn_cli_fail(&err);
    hone_model_get_info(j->m, &info);
    if (info.n_vocab < p.n_vocab)
        hn_cli_note("the tokenizer has %d tokens in place of %d: no further pair is in the data twice", info.n_vocab,
                    p.n_vocab);
    return 0;
}

/* Nothing of an earlier run is lost or mixed up without a word. */
static int look_at_checkpoints(hn_train_job *j)
{
    int64_t step;
    hone_error err;
    const char *name = HN_ESC(j->folder, strlen(j->folder));
    if (hn_opts_flag(j->cli->opts, "resume")) return 0;
    if (hone_train_checkpoints(j->folder, false, &step, &err) != HONE_OK) return hn_cli_fail(&err);
    if (!step || hn_opts_flag(j->cli->opts, "fresh")) return 0;
    return hn_cli_error(
        HN_EXIT_USAGE,
        "%s holds checkpoints of an earlier run, the last of step %lld; --resume goes on, --fresh removes them", name,
        (long long)step);
}

static int resume(hn_train_job *j)
{
    char note[600];
    int64_t step;
    hone_error err;
    bool fresh = hn_opts_flag(j->cli->opts,
                              "fresh"); /* only now: had a name been misspelt, the old run would be lost for nothing */
    if (fresh && hone_train_checkpoints(j->folder, true, &step, &err) != HONE_OK) return hn_cli_fail(&err);
    if (!hn_opts_flag(j->cli->opts, "resume")) return 0;
    if (hone_trainer_resume(j->t, j->folder, &j->resumed, note, sizeof note, &err) != HONE_OK)
        return err.code == HONE_E_FORMAT ? fail_file(&err) : hn_cli_fail(&err);
    if (*note) hn_cli_note("%s; going on from step %lld", note, (long long)j->resumed);
    else if (!j->cli->json && j->resumed) hn_cli_note("going on from step %lld", (long long)j->resumed);
    return 0;
}

static int save(hn_train_job *j)
{
    hone_error err;
    return hone_trainer_save(j->t, j->folder, j->keep, &err) == HONE_OK ? 0 : hn_cli_fail(&err);
}

/* --stop-after: an end before that of the schedule. */
static bool stopped(const hn_train_job *j, int64_t step)
{
    const hn_opts *o = j->cli->opts;
    return hn_opts_given(o, "stop-after") && (uint64_t)step >= hn_opts_u64(o, "stop-after");
}

static int train(hn_train_job *j)
{
    hone_train_status s;
    hone_train_step step;
    hone_error err;
    int rc = 0;
    hone_trainer_get_status(j->t, &s);
    bool done = s.done, saved = true;
    j->started_ms = hn_now_ms();
    while (!done && !rc && !hn_interrupted() && (s.eval_due || !stopped(j, s.step))) {
        double t0 = hn_now_ms();
        hone_status st = hone_trainer_step(j->t, &step, &err);
        if (st == HONE_E_INTERRUPTED) { /* the step is made; --resume makes up for its validation */
            saved = false;
            break;
        }
        if (st != HONE_OK) {
            hn_progress_end();
            return hn_cli_fail(&err);
        }
        j->trained_ms += hn_now_ms() - t0 - step.eval_ms;
        j->n_tok += step.n_tok;
        done = step.done;
        s.step = step.step;
        s.eval_due = false;
        hn_train_show_step(j, &step);
        rc = hn_train_log_step(j, &step);
        saved = false;
        if (!rc && j->save_every && (done || step.step % j->save_every == 0)) {
            rc = save(j);
            saved = true;
        }
    }
    hn_progress_end();
    if (!saved && (!done || rc)) { /* interrupted, or the log could not be written: nothing is lost */
        int code = save(j);
        rc = rc ? rc : code;
    }
    return rc;
}

static int write_results(hn_train_job *j)
{
    hone_error err;
    if (hone_trainer_write(j->t, j->out, &err) != HONE_OK) return hn_cli_fail(&err);
    if (j->peft && hone_trainer_write_peft(j->t, j->peft, &err) != HONE_OK) return hn_cli_fail(&err);
    return 0;
}

static int go(hn_train_job *j)
{
    hone_train_status s;
    int rc = hn_train_log_lock(j);
    if (!rc) rc = resume(j);
    if (!rc) rc = hn_train_log_open(j);
    if (!rc) rc = train(j);
    if (rc) return rc;
    hone_trainer_get_status(j->t, &s);
    bool cut = !s.done && !hn_interrupted() && stopped(j, s.step);
    const char *why = cut ? "stopped" : !s.done ? "interrupted" : s.stopped_early ? "early" : "done";
    if (s.step && (rc = write_results(j))) {
        if (j->save_every || !save(j))
            hn_cli_note("what was learnt is in %s; --resume writes it again", HN_ESC(j->folder, strlen(j->folder)));
        return rc;
    }
    rc = hn_train_log_end(j, why);
    if (!rc) rc = hn_train_summary(j, why);
    if (rc || s.done || cut) return rc;
    int code = hn_exit_code(HONE_E_INTERRUPTED);
    if (!s.step) return hn_cli_error(code, "interrupted before the first step; nothing was trained");
    return hn_cli_error(code,
                        "interrupted after step %lld of %lld, which is saved in %s; --resume goes on, and %s has what "
                        "was learnt so far",
                        (long long)s.step, (long long)j->info.steps, HN_ESC(j->folder, strlen(j->folder)),
                        HN_ESC(j->out, strlen(j->out)));
}

static void shorten(hn_train_job *j)
{
    hone_model_info info;
    hone_model_get_info(j->m, &info);
    if (info.n_ctx_train >= 2 && info.n_ctx_train < j->p.seq) j->p.seq = info.n_ctx_train;
}

/* An option that nothing in the data heeds was meant for other data. */
static int check_data_options(const hn_train_job *j)
{
    const hone_train_data *a = &j->info.train, *b = &j->info.val;
    const hn_opts *o = j->cli->opts;
    int64_t chat = a->n_chat + b->n_chat, pair = a->n_pair + b->n_pair;
    const struct {
        const char *option;
        bool given;
        int64_t n;
        const char *why;
    } of[] = { { "chat-template", j->p.chat_template != NULL, chat, "no record of %s%s is a conversation" },
               { "split", hn_opts_given(o, "split"), a->n_part + b->n_part, "%s%s is no file of text" },
               { "mask last", j->p.mask == HONE_TRAIN_LAST, chat + pair, "of texts, as in %s%s, all counts" },
               { "special", j->p.special, a->n_text + b->n_text + pair,
                 "%s%s is of conversations, whose messages remain text" } };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        char why[400];
        if (!of[i].given || of[i].n) continue;
        snprintf(why, sizeof why, of[i].why, HN_ESC(j->p.data[0], strlen(j->p.data[0])),
                 j->p.n_data > 1 ? " and others" : "");
        return hn_cli_usage(j->cli, "--%s changes nothing: %s", of[i].option, why);
    }
    return 0;
}

/* Numbers that ask for less than all, and leave all. */
static void note_all(const hn_train_job *j)
{
    hone_model_info m;
    hone_model_get_info(j->m, &m);
    uint64_t stop = hn_opts_u64(j->cli->opts, "stop-after");
    if (j->p.n_layers > m.n_layer)
        hn_cli_note("--layers %d: the model has %d; all get adapters", j->p.n_layers, m.n_layer);
    if (stop >= (uint64_t)j->info.steps && stop)
        hn_cli_note("--stop-after %llu: the run has %lld step%s and ends with its last one", (unsigned long long)stop,
                    (long long)j->info.steps, j->info.steps == 1 ? "" : "s");
}

static int run(const hn_cli *cli)
{
    hn_train_job j = { .cli = cli };
    hone_error err;
    hn_cli_catch_hangup();
    int rc = read_params(&j);
    if (!rc) rc = hn_train_files(&j);
    if (!rc && !j.p.plan_only) rc = look_at_checkpoints(&j);
    if (!rc) rc = hn_opts_given(cli->opts, "from-config") ? begin_model(&j) : hn_cli_open_model(cli, false, &j.m);
    if (!rc) rc = hn_cli_new_context(cli, &j.ctx);
    if (!rc && !hn_opts_given(cli->opts, "seq")) shorten(&j);
    if (!rc && hone_trainer_new(&j.t, j.ctx, j.m, &j.p, &err) != HONE_OK) rc = fail_data(&j, &err);
    if (!rc) {
        hone_trainer_get_info(j.t, &j.info);
        rc = check_data_options(&j);
    }
    if (!rc) {
        if (!cli->json) hn_train_show_plan(&j);
        note_all(&j);
        hn_train_warn(&j);
        rc = j.p.plan_only ? hn_train_summary(&j, "plan") : go(&j);
    }
    hn_train_log_close(&j);
    hone_trainer_free(j.t);
    hone_context_free(j.ctx);
    hone_model_close(j.m);
    if (j.base_made && remove(j.base) != 0) /* --resume makes the same again */
        hn_cli_note("%s: what the training began from, no longer needed, cannot be removed: %s",
                    HN_ESC(j.base, strlen(j.base)), strerror(errno));
    free(j.base);
    free((void *)j.p.data);
    free((void *)j.p.val_data);
    free(j.chat_template);
    free(j.log);
    free(j.folder);
    return rc;
}

const hn_command hn_command_train = {
    .name = "train",
    .summary = "Adapt a model to data: LoRA, or all weights",
    .args = "[MODEL]",
    .takes = "model",
    .groups = groups,
    .examples = "hone train -m model.gguf --data stories.txt -o style.gguf --steps 200\n"
                "hone train -m model.gguf --data chats.jsonl --mask last --val-share 0.05 --eval-every 50 --early-stop "
                "3 -o chat.gguf\n"
                "hone train -m model.gguf --data chats.jsonl -o chat.gguf --dry-run\n"
                "hone train -m model.gguf --data chats.jsonl -o chat.gguf --resume\n"
                "hone train --from-config small.json --vocab 1536 --data stories.txt -o small.gguf --type F16 --epochs "
                "2 --lr 1e-3\n",
    .run = run,
};
