/* What the commands share: errors and exit codes, JSON, interruption,
 * reading input, opening what the options name. */
#include "base/os.h"
#include "base/shown.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "lab/machine/environ.h"
#include "lab/machine/roof.h"

#include <stdarg.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX_INPUT = 1 << 30 }; /* a prompt larger than that is a mistake */

/* ---- option groups --------------------------------------------------------------------- */

static const hn_opt model_opts[] = {
    HN_OPT("model", "-m", FILE, "FILE",
           "model to use: a GGUF file (any member of a split set), or a name that hone list shows", .use = HN_USE_MODEL,
           .what = "the model", .forward = HN_FORWARD_MODEL),
    HN_OPT("pre", NULL, STR, "KIND",
           "pre-tokenizer to use instead of the one the file names; an unknown KIND lists all",
           .forward = HN_FORWARD_SETTINGS),
    HN_OPT_END,
};
const hn_opt_group hn_group_model = { "Model", model_opts };

static const hn_opt prompt_opts[] = {
    HN_OPT("prompt", "-p", STR, "TEXT", "the text, as it is", .excl = "input"),
    HN_OPT("file", "-f", FILE, "FILE",
           "read the text from FILE, all of it; - is standard input (a pipe is read without)", .excl = "input"),
    HN_OPT("ids", NULL, STR, "LIST",
           "token ids instead of text, as in 1,2,3, used as given; @FILE reads them from FILE", .excl = "input",
           .use = HN_USE_AT),
    HN_OPT("no-bos", NULL, FLAG, NULL, "add no token at the beginning of the text"),
    HN_OPT("no-special", NULL, FLAG, NULL, "treat names of special tokens in the text as plain text"),
    HN_OPT_END,
};
const hn_opt_group hn_group_prompt = { "Input", prompt_opts };

static const hn_opt compute_opts[] = {
    HN_OPT("threads", "-t", I32, "N",
           "threads (default: HONE_THREADS, else what hone lab peaks found, else one per usable core)", .min = 1,
           .max = 1024, .forward = HN_FORWARD_SETTINGS),
    HN_OPT("threads-batch", "-tb", I32, "N",
           "threads for prompts and large batches (default: as --threads; every core where hone lab peaks chose those)",
           .min = 1, .max = 1024, .forward = HN_FORWARD_SETTINGS),
    HN_OPT("cpu", NULL, STR, "LEVEL",
           "kernel level: scalar, avx2, avx_vnni or avx512 (default: HONE_CPU, else the best of this machine)",
           .forward = HN_FORWARD_SETTINGS),
    HN_OPT("chunk", "-ub --ubatch-size", I32, "N", "tokens per forward pass of the prompt", .def = "512", .min = 1,
           .max = 65536, .forward = HN_FORWARD_SETTINGS),
    HN_OPT("kv", NULL, CHOICE, "TYPE", "numbers in the KV cache", .def = "f16", .choices = "f16|f32|q8_0",
           .forward = HN_FORWARD_SETTINGS),
    HN_OPT("packed", NULL, FILE, "WHICH",
           "weights packed by hone pack: auto uses MODEL.hpack if it belongs to the model, off the model itself; "
           "or a file (default: HONE_PACKED, else auto)",
           .use = HN_USE_PACKED, .forward = HN_FORWARD_SETTINGS),
    HN_OPT("allow-paging", NULL, FLAG, NULL, "weights that do not fit in memory may come from disk",
           .forward = HN_FORWARD_SETTINGS),
    HN_OPT_END,
};
const hn_opt_group hn_group_compute = { "Computation", compute_opts };

static const hn_opt context_opts[] = {
    HN_OPT("ctx-size", "-c", I32, "N",
           "positions of the context; 0: as many as the model was trained for "
           "(default: what prompt and output need, 4096 for the output with -n -1)",
           .min = 0, .max = INT32_MAX),
    HN_OPT("state-in", NULL, FILE, "FILE",
           "continue from a session saved with --state-out (the text then gets no BOS)"),
    HN_OPT("state-out", NULL, FILE, "FILE", "save the session at the end", .use = HN_USE_WRITE),
    HN_OPT_END,
};
const hn_opt_group hn_group_context = { "Context", context_opts };

static const hn_opt sampling_opts[] = {
    HN_OPT("temp", "--temperature", F32, "X", "temperature; 0: always the most probable token", .def = "0.8", .min = 0,
           .max = 1e6),
    HN_OPT("top-k", NULL, I32, "N", "keep the N most probable tokens; 0: all", .def = "40", .min = 0, .max = INT32_MAX),
    HN_OPT("top-p", NULL, F32, "X", "keep the fewest tokens whose probabilities reach X; 1: all", .def = "0.95",
           .min = 0, .max = 1),
    HN_OPT("min-p", NULL, F32, "X", "keep tokens at least X times as probable as the best; 0: all", .def = "0.05",
           .min = 0, .max = 1),
    HN_OPT("repeat-penalty", NULL, F32, "X",
           "divide positive logits of recent tokens by X, multiply negative ones; 1: off", .def = "1", .min = 1e-6,
           .max = 1e6),
    HN_OPT("presence-penalty", NULL, F32, "X", "lower logits of recent tokens by X; 0: off", .def = "0", .min = -1e6,
           .max = 1e6),
    HN_OPT("frequency-penalty", NULL, F32, "X", "lower logits of recent tokens by X for each occurrence; 0: off",
           .def = "0", .min = -1e6, .max = 1e6),
    HN_OPT("repeat-last-n", NULL, I32, "N", "tokens that count as recent, prompt included; 0: none, -1: all",
           .def = "64", .min = -1, .max = 1 << 20),
    HN_OPT("seed", "-s", U64, "N", "seed of the random numbers; -1: a new one each time (the default)", .min = -1),
    HN_OPT_END,
};
const hn_opt_group hn_group_sampling = { "Sampling", sampling_opts };

bool hn_cli_new_seed(uint64_t *seed)
{
    uint32_t r;
    if (*seed != UINT64_MAX) return true;
    if (!hn_os_random(&r, sizeof r)) return false;
    *seed = r;
    return true;
}

int hn_cli_sampling(const hn_cli *cli, hone_sampler_params *p)
{
    const hn_opts *o = cli->opts;
    uint64_t seed = hn_opts_given(o, "seed") ? hn_opts_u64(o, "seed") : UINT64_MAX;
    if (!hn_cli_new_seed(&seed)) return hn_cli_error(HN_EXIT_FAILURE, "no random seed from the system; try: -s 1");
    *p = (hone_sampler_params){ .temp = hn_opts_f32(o, "temp"),
                                .top_k = hn_opts_i32(o, "top-k"),
                                .top_p = hn_opts_f32(o, "top-p"),
                                .min_p = hn_opts_f32(o, "min-p"),
                                .repeat_penalty = hn_opts_f32(o, "repeat-penalty"),
                                .presence_penalty = hn_opts_f32(o, "presence-penalty"),
                                .frequency_penalty = hn_opts_f32(o, "frequency-penalty"),
                                .penalty_last_n = hn_opts_i32(o, "repeat-last-n"),
                                .seed = seed };
    return 0;
}

/* ---- errors ------------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

int hn_exit_code(hone_status st)
{
    switch (st) {
    case HONE_OK: return HN_EXIT_OK;
    case HONE_E_ARG: return HN_EXIT_USAGE;
    case HONE_E_FORMAT:
    case HONE_E_UNSUPPORTED: return HN_EXIT_MODEL;
    case HONE_E_NOMEM: return HN_EXIT_NOMEM;
    case HONE_E_NETWORK: return HN_EXIT_NETWORK;
    case HONE_E_INTERRUPTED: return interrupted == SIGINT ? HN_EXIT_SIGINT : HN_EXIT_INTERRUPTED;
    default: return HN_EXIT_FAILURE;
    }
}

/* One line. Names from outside are escaped where they enter a message; what slipped
 * through must not steer the terminal. */
static void say(const char *before, const char *fmt, va_list ap)
{
    char line[2048];
    vsnprintf(line, sizeof line, fmt, ap);
    for (unsigned char *p = (unsigned char *)line; *p; p++) {
        if (*p < 0x20 || *p == 0x7F) *p = '?';
        if (*p == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0) *p = p[1] = '?'; /* C1 in UTF-8 */
    }
    hn_progress_end();
    hn_err_printf("%s%s\n", before, line);
    if (strcmp(before, "hone: ") == 0) hn_out_remember(line);
}

int hn_cli_error(int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("hone: ", fmt, ap);
    va_end(ap);
    return code;
}

int hn_cli_without_effect(const hn_cli *cli, bool only, const char *const *names, const char *why)
{
    for (const hn_opt_group *const *g = cli->cmd->groups; *g; g++)
        for (const hn_opt *o = (*g)->opts; o->name; o++) {
            bool named = false;
            for (const char *const *n = names; *n && !named; n++) named = strcmp(*n, o->name) == 0;
            if (named != only && hn_opts_given(cli->opts, o->name))
                return hn_cli_usage(cli, "--%s changes nothing here: %s", o->name, why);
        }
    return 0;
}

void hn_cli_note(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("hone: note: ", fmt, ap);
    va_end(ap);
}

enum { CAUTION_BYTES = 1024, MAX_CAUTIONS = 8 };
static char cautions[MAX_CAUTIONS][CAUTION_BYTES];
static int n_cautions;

void hn_cli_caution(const char *fmt, ...)
{
    char text[CAUTION_BYTES];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (int i = 0; i < n_cautions; i++)
        if (strcmp(cautions[i], text) == 0) return;
    if (n_cautions < MAX_CAUTIONS) memcpy(cautions[n_cautions++], text, sizeof text);
    hn_cli_note("%s", text);
}

json_t *hn_cli_cautions(void)
{
    json_t *a = n_cautions ? json_array() : NULL;
    for (int i = 0; a && i < n_cautions; i++) json_array_append_new(a, hn_json_str(cautions[i], strlen(cautions[i])));
    return a;
}

void hn_cli_model_notes(const hone_model_info *info)
{
    if (info->packed_ignored || info->packed_compared) hn_cli_note("%s", info->packed_note);
    if (*info->ignored_keys)
        hn_cli_caution("left out by request (HONE_IGNORE_KEYS): %s; answers may differ from what the model was "
                       "made to give",
                       info->ignored_keys);
    if (*info->formula_note) hn_cli_caution("%s", info->formula_note);
}

void hn_cli_window_note(const hone_model_info *info, int64_t n_ctx)
{
    if (!info->n_window || n_ctx <= info->n_window) return;
    hn_cli_caution("%lld positions go beyond the window of %d that the model has (%s.attention.sliding_window): "
                   "hone attends to all of them, the model was trained to see the last %d, so beyond position %d "
                   "answers differ from its own",
                   (long long)n_ctx, info->n_window, info->arch, info->n_window, info->n_window);
}

int hn_cli_usage(const hn_cli *cli, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say("hone: ", fmt, ap);
    va_end(ap);
    if (cli && cli->cmd) hn_err_printf("hone: try: hone %s --help\n", cli->cmd->name);
    else hn_err_printf("hone: try: hone --help\n");
    return HN_EXIT_USAGE;
}

int hn_cli_fail(const hone_error *err) { return hn_cli_error(hn_exit_code(err->code), "%s", err->message); }

int hn_cli_fail_model(const hone_error *err)
{
    int code = hn_cli_fail(err);
    return err->code == HONE_E_IO ? HN_EXIT_MODEL : code;
}

int hn_cli_fail_numbers(const hn_cli *cli, const hone_error *err)
{
    const char *model = hn_opts_str(cli->opts, "model"), *what = err->message;
    hone_file *f = NULL;
    hone_error why;
    if (err->code != HONE_E_NUMERIC || !model || hone_file_open(&f, model, NULL) != HONE_OK) return hn_cli_fail(err);
    if (hn_stderr_is_tty()) hn_err_printf("hone: a number that is none; looking through the weights …\n");
    hone_status st = hone_file_check(f, &why);
    hone_file_close(f);
    if (st != HONE_E_NUMERIC) return hn_cli_fail(err);
    size_t n = strlen(model);
    if (strncmp(what, model, n) == 0 && what[n] == ':') what += n + 1; /* named by the other half */
    const char *guess = strstr(what, ": the weights, or activations");
    return hn_cli_error(hn_exit_code(err->code), "%s; so%.*s", why.message,
                        guess ? (int)(guess - what) : (int)strlen(what), what);
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

json_t *hn_json_new(const char *schema) { return json_pack("{s:s}", "schema", schema); }

json_t *hn_json_ids(const int32_t *ids, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(a, json_integer(ids[i]));
    return a;
}

json_t *hn_json_str(const char *s, size_t len)
{
    if (len > (SIZE_MAX - 1) / 3) return NULL;
    char *t = malloc(len * 3 + 1);
    if (!t) {
        hn_json_lose();
        return NULL;
    }
    size_t o = 0, k;
    for (size_t i = 0; i < len; i += k) {
        bool good = hn_utf8_next((const unsigned char *)s + i, len - i, &k) >= 0;
        memcpy(t + o, good ? s + i : "\xEF\xBF\xBD", good ? k : 3);
        o += good ? k : 3;
    }
    json_t *j = json_stringn(t, o);
    free(t);
    return j;
}

json_t *hn_json_num(double x)
{
    if (!isfinite(x)) return json_null();
    return json_real(round(x * 1000) / 1000);
}

int hn_json_print(json_t *obj)
{
    if (obj && n_cautions && !json_object_get(obj, "notes")) json_object_set_new(obj, "notes", hn_cli_cautions());
    char *text = hn_json_text(obj, JSON_COMPACT | JSON_REAL_PRECISION(12)); /* whole, before a byte of it is printed */
    json_decref(obj);
    if (!text) return hn_cli_error(HN_EXIT_NOMEM, "out of memory for the JSON output: nothing of it was printed");
    hn_out_write(text, strlen(text));
    hn_out_write("\n", 1);
    free(text);
    return hn_out_flush() ? HN_EXIT_OK : HN_EXIT_FAILURE;
}

int hn_json_printed(int rc, int printed)
{
    if (!rc) return printed;
    return printed == HN_EXIT_NOMEM && hn_is_verdict(rc) ? printed : rc;
}

/* ---- interruption ---------------------------------------------------------------------------------- */

/* One orderly stop; a second Ctrl-C kills. Not one within a quarter of a second: timeout(1) and some shells send the
 * same one to the process and to its group. */
static void on_signal(int sig)
{
    static struct timespec first;
    struct timespec now;
    int saved = errno;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!interrupted) {
        first = now;
        interrupted = sig;
    } else if ((now.tv_sec - first.tv_sec) * 1000 + (now.tv_nsec - first.tv_nsec) / 1000000 > 250) {
        hn_file_unlink_live();
        signal(sig, SIG_DFL);
        raise(sig); /* comes when this handler returns */
    }
    errno = saved;
}

/* Signals that end the program at once, but not with half-written files left. */
static void on_end(int sig)
{
    hn_file_unlink_live();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void end_tidily(int sig)
{
    struct sigaction end = { .sa_handler = on_end }, old;
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(sig, &end, NULL); /* ignored: nohup */
}

void hn_cli_signals(void)
{
    struct sigaction stop = { .sa_handler = on_signal };
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    struct sigaction ignore = { .sa_handler = SIG_IGN };
    sigaction(SIGPIPE, &ignore, NULL); /* a write that fails says more than a dead process */
    sigaction(SIGXFSZ, &ignore, NULL);
    end_tidily(SIGHUP);
    end_tidily(SIGQUIT);
    end_tidily(SIGXCPU);
}

void hn_cli_catch_hangup(void)
{
    struct sigaction stop = { .sa_handler = on_signal }, old;
    if (sigaction(SIGHUP, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &stop, NULL); /* ignored: nohup */
}

int hn_interrupted(void) { return interrupted; }
bool hn_abort_fn(void *unused) { return interrupted != 0; }

/* ---- input -------------------------------------------------------------------------------------------- */

hone_status hn_read_all(const char *path, char **data, size_t *n, hone_error *err)
{
    *data = NULL;
    *n = 0;
    bool is_stdin = strcmp(path, "-") == 0;
    const char *name = is_stdin ? "standard input" : path;
    int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return HN_FAIL(err, HONE_E_IO, "%s: cannot open: %s", HN_ESC(name, strlen(name)), strerror(errno));
    hone_status st = HONE_OK;
    size_t len = 0, cap = 4096;
    char *buf = malloc(cap);
    for (;;) {
        if (buf && len + 1 == cap) { /* room for the NUL stays */
            char *b = cap <= MAX_INPUT ? realloc(buf, cap * 2) : NULL;
            if (!b) free(buf);
            buf = b;
            cap *= 2;
        }
        if (!buf) {
            st = HN_FAIL(err, HONE_E_NOMEM, "%s: more than %zu bytes of input; expected at most %d",
                         HN_ESC(name, strlen(name)), len, MAX_INPUT);
            break;
        }
        ssize_t k = read(fd, buf + len, cap - 1 - len);
        if (k > 0) {
            len += (size_t)k;
        } else if (k == 0) {
            break;
        } else if (errno != EINTR) {
            st = HN_FAIL(err, HONE_E_IO, "%s: %s", HN_ESC(name, strlen(name)), strerror(errno));
            break;
        } else if (interrupted) {
            st = HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted while reading %s", HN_ESC(name, strlen(name)));
            break;
        }
    }
    if (!is_stdin) close(fd);
    if (st != HONE_OK) {
        free(buf);
        return st;
    }
    buf[len] = 0;
    *data = buf;
    *n = len;
    return HONE_OK;
}

int hn_cli_fail_input(const hn_cli *cli, const char *option, const char *path, const hone_error *err)
{
    int code = hn_cli_fail(err);
    struct stat sb;
    bool text = strcmp(option, "-f") == 0 && hn_opts_has(cli->opts, "prompt");
    if (err->code == HONE_E_IO && strcmp(path, "-") != 0 && stat(path, &sb) != 0)
        hn_err_printf("hone: try: %s with the name of a file that is there%s\n", option,
                      text ? ", or -p with the text itself" : "");
    return code;
}

bool hn_cli_piped(void)
{
    struct stat sb;
    return fstat(STDIN_FILENO, &sb) == 0 && (S_ISFIFO(sb.st_mode) || S_ISREG(sb.st_mode) || S_ISSOCK(sb.st_mode));
}

void hn_cli_say_unread(const hn_cli *cli)
{
    struct stat sb;
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    const char *file = hn_opts_str(cli->opts, "file"), *given = hn_opts_str(cli->opts, "prompt") ? "-p" : NULL;
    if (hn_opts_str(cli->opts, "ids")) given = "--ids";
    if (file && strcmp(file, "-") != 0) given = "-f";
    if (!given || fstat(STDIN_FILENO, &sb) != 0 || !S_ISFIFO(sb.st_mode)) return;
    if (poll(&in, 1, 0) == 1 && in.revents & POLLIN)
        hn_cli_note("what is piped in is not read: %s is the prompt; expected one of them (the pipe alone, or -f -)",
                    given);
}

hone_status hn_read_ids(int32_t **ids, size_t *n, const char *value, const char *what, hone_error *err)
{
    if (value[0] != '@') return hn_parse_ids(ids, n, value, strlen(value), what, err);
    char *data;
    size_t len;
    *ids = NULL;
    *n = 0;
    hone_status st = hn_read_all(value + 1, &data, &len, err);
    if (st != HONE_OK) return st;
    st = hn_parse_ids(ids, n, data, len, what, err);
    free(data);
    return st;
}

const char *hn_cli_model_name(const hn_cli *cli)
{
    static char name[300];
    const char *path = hn_opts_str(cli->opts, "model");
    return path ? hn_escape(name, sizeof name, path, strlen(path)) : "the model";
}

int hn_cli_check_ids(const hn_cli *cli, const hone_model_info *info, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= info->n_vocab)
            return hn_cli_error(HN_EXIT_USAGE,
                                "--ids: token id %d (item %zu) is not in the vocabulary of %s; expected 0 to %d",
                                ids[i], i + 1, hn_cli_model_name(cli), info->n_vocab - 1);
    return 0;
}

static int prompt_from_ids(const hn_cli *cli, const hone_model_info *info, hn_prompt *out)
{
    hone_error err;
    if (hn_read_ids(&out->ids, &out->n, hn_opts_str(cli->opts, "ids"), "--ids", &err) != HONE_OK)
        return hn_cli_fail(&err);
    return hn_cli_check_ids(cli, info, out->ids, out->n);
}

int hn_cli_prompt_text(const hn_cli *cli, hn_prompt *out)
{
    hone_error err;
    const char *text = hn_opts_str(cli->opts, "prompt"), *file = hn_opts_str(cli->opts, "file");
    if (text) {
        out->text = strdup(text);
        if (!out->text) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the prompt");
        out->len = strlen(text);
    } else if (hn_read_all(file ? file : "-", &out->text, &out->len, &err) != HONE_OK) {
        return hn_cli_fail_input(cli, "-f", file ? file : "-", &err);
    }
    /* echo's own line end; -f - takes everything */
    bool piped = !text && !file;
    if (piped && out->len && out->text[out->len - 1] == '\n') out->text[--out->len] = 0;
    return 0;
}

static int prompt_from_text(const hn_cli *cli, const hone_model *m, const hone_model_info *info, hn_prompt *out)
{
    hone_error err;
    const char *text = hn_opts_str(cli->opts, "prompt"), *file = hn_opts_str(cli->opts, "file");
    if (!file) file = "-";
    int rc = hn_cli_prompt_text(cli, out);
    if (rc) return rc;
    /* a text that continues a session is not a beginning */
    bool begins = !hn_opts_flag(cli->opts, "no-bos") &&
                  !(hn_opts_has(cli->opts, "state-in") && hn_opts_str(cli->opts, "state-in"));
    int flags = (hn_opts_flag(cli->opts, "no-special") ? 0 : HONE_TOK_SPECIAL) | (begins ? HONE_TOK_ADD_BOS : 0);
    if (hone_tokenize(m, out->text, out->len, flags, &out->ids, &out->n, &err) != HONE_OK) {
        int code = hn_cli_fail(&err);
        const char *model = hn_opts_str(cli->opts, "model");
        if (code == HN_EXIT_MODEL && model) hn_err_printf("hone: try: hone inspect %s\n", HN_ESC(model, strlen(model)));
        return code;
    }
    for (size_t i = 0; i < out->n; i++)
        if (out->ids[i] >= info->n_vocab)
            return hn_cli_error(HN_EXIT_MODEL,
                                "%s: its tokenizer gives token id %d, but tensor token_embd.weight has %d rows",
                                hn_cli_model_name(cli), out->ids[i], info->n_vocab);
    if (out->n == 0)
        return hn_cli_error(HN_EXIT_USAGE,
                            "the prompt is empty: %s gives no token and the model adds none; expected some text",
                            text ? "-p" : HN_ESC(file, strlen(file)));
    return 0;
}

int hn_cli_prompt(const hn_cli *cli, const hone_model *m, hn_prompt *out)
{
    *out = (hn_prompt){ 0 };
    hone_model_info info;
    hone_model_get_info(m, &info);
    hn_cli_say_unread(cli);
    int rc;
    if (hn_opts_str(cli->opts, "ids")) rc = prompt_from_ids(cli, &info, out);
    else if (!hn_opts_str(cli->opts, "prompt") && !hn_opts_str(cli->opts, "file") && !hn_cli_piped())
        rc = hn_cli_usage(cli, "no prompt; expected -p TEXT, -f FILE or --ids LIST");
    else if (!info.has_tokenizer)
        rc = hn_cli_error(HN_EXIT_MODEL, "%s has no tokenizer, so text cannot be used; expected --ids LIST",
                          hn_cli_model_name(cli));
    else rc = prompt_from_text(cli, m, &info, out);
    if (rc == 0 && out->n > INT32_MAX)
        rc = hn_cli_error(HN_EXIT_FAILURE, "the prompt has %zu tokens; expected at most %d", out->n, INT32_MAX);
    if (rc) hn_prompt_free(out);
    return rc;
}

void hn_prompt_free(hn_prompt *p)
{
    free(p->text);
    hone_free(p->ids);
    *p = (hn_prompt){ 0 };
}

/* ---- models, contexts, sessions ----------------------------------------------------------------- */

int hn_cli_open_model(const hn_cli *cli, bool vocab_only, hone_model **out)
{
    *out = NULL;
    const char *path = hn_opts_str(cli->opts, "model");
    if (!path) return hn_cli_usage(cli, "no model; expected -m FILE.gguf");
    hone_progress pr = { hn_progress_fn, (void *)"comparing the packed file with the model", hn_abort_fn };
    hone_model_params p = { .tokenizer_pre = hn_opts_str(cli->opts, "pre"),
                            .vocab_only = vocab_only,
                            .progress = &pr,
                            .packed = hn_opts_has(cli->opts, "packed") ? hn_opts_str(cli->opts, "packed") : NULL };
    hone_error err;
    hone_status st = hone_model_open(out, path, &p, &err);
    hn_progress_end();
    if (st == HONE_OK) {
        hone_model_info info;
        if (!vocab_only) hone_model_get_info(*out, &info);
        if (!vocab_only) hn_cli_model_notes(&info);
        return 0;
    }
    int code = hn_cli_fail_model(&err);
    if (err.code == HONE_E_UNSUPPORTED || err.code == HONE_E_FORMAT)
        hn_err_printf("hone: try: hone inspect %s\n", HN_ESC(path, strlen(path)));
    else if (err.code == HONE_E_IO) hn_cli_advise_model(path);
    return code;
}

hone_status hn_cli_know(const hone_model *m, hone_error *err)
{
    char hex[65];
    const hone_progress pr = { hn_progress_fn, (void *)"hashing the content", hn_abort_fn };
    hone_status st = hone_model_identity(m, hex, &pr, err);
    hn_progress_end();
    return st;
}

const char *hn_cli_weights(const hone_model_info *info)
{
    static char words[HN_WEIGHTS_WORDS];
    return hn_weights_words(words, info);
}

/* The peaks of this machine at a level (NULL: as without an option), as `hone lab peaks` left them; NULL: it was not
 * asked. Valid until the next call. */
static const hn_peaks *known_peaks(const char *cpu)
{
    static hn_peaks peaks; /* too large for the stack */
    hn_environ env;
    hn_cpu_level level;
    char path[4096];
    hone_error err;
    hn_environ_read(&env);
    if (hn_cpu_choose(&level, cpu, &err) != HONE_OK ||
        hn_peaks_path(path, sizeof path, &env, hn_cpu_level_name(level), &err) != HONE_OK ||
        hn_peaks_load(&peaks, path, &env, hn_cpu_level_name(level), &err) != HONE_OK)
        return NULL;
    return &peaks;
}

/* Threads for single tokens as measured on this machine; 0: they were not. */
static int32_t measured_threads(const char *cpu)
{
    const hn_peaks *peaks = known_peaks(cpu);
    int32_t n = peaks ? hn_peaks_decode_threads(peaks) : 0;
    return n <= hn_cpu_count() ? n : 0;
}

double hn_cli_read_roof(const hone_context *ctx)
{
    const hn_peaks *peaks = known_peaks(hone_context_cpu(ctx));
    return peaks ? hn_peaks_at(peaks, HN_PEAK_READ_BW, hone_context_threads(ctx)) : 0;
}

int hn_cli_new_context(const hn_cli *cli, hone_context **out)
{
    *out = NULL;
    hone_error err;
    hone_context_params p = { .n_threads = hn_opts_i32(cli->opts, "threads"),
                              .cpu = hn_opts_str(cli->opts, "cpu"),
                              .n_threads_batch =
                                  hn_opts_has(cli->opts, "threads-batch") && hn_opts_given(cli->opts, "threads-batch")
                                      ? hn_opts_i32(cli->opts, "threads-batch")
                                      : 0 };
    const char *env = getenv("HONE_THREADS");
    if (p.n_threads == 0 && env && *env) {
        int64_t n;
        if (hn_parse_i64(&n, env, 1, 1024, "HONE_THREADS", &err) != HONE_OK) return hn_cli_fail(&err);
        p.n_threads = (int32_t)n;
    }
    if (p.n_threads == 0 && (p.n_threads = measured_threads(p.cpu)) != 0 && p.n_threads_batch == 0)
        p.n_threads_batch = hn_cpu_count();
    if (hone_context_new(out, &p, &err) == HONE_OK) return 0;
    int code = hn_cli_fail(&err);
    if (err.code != HONE_E_UNSUPPORTED && err.code != HONE_E_ARG) return code;
    hn_err_printf("hone: try: hone env\n");
    return HN_EXIT_USAGE; /* a level this machine lacks is no fault of the model */
}

void hn_cli_session_notes(const hone_model *m, int32_t n_ctx)
{
    hone_model_info info;
    hone_model_get_info(m, &info);
    hn_cli_window_note(&info, n_ctx);
}

hone_kv_cache_type hn_cache_of(const char *name)
{
    return !strcmp(name, "f32") ? HONE_CACHE_F32 : !strcmp(name, "q8_0") ? HONE_CACHE_Q8_0 : HONE_CACHE_F16;
}

int hn_cli_new_session(const hn_cli *cli, hone_context *ctx, const hone_model *m, int32_t n_ctx, int32_t n_seq,
                       hone_session **out)
{
    return hn_cli_new_session_of(cli, ctx, m, n_ctx, n_seq, hn_opts_i32(cli->opts, "chunk"), out);
}

int hn_cli_new_session_of(const hn_cli *cli, hone_context *ctx, const hone_model *m, int32_t n_ctx, int32_t n_seq,
                          int32_t n_chunk, hone_session **out)
{
    *out = NULL;
    hone_error err;
    const char *kv = hn_opts_str(cli->opts, "kv");
    hone_session_params p = { .n_ctx = n_ctx,
                              .n_seq = n_seq,
                              .n_chunk = n_chunk,
                              .cache = hn_cache_of(kv),
                              .allow_paging = hn_opts_flag(cli->opts, "allow-paging") };
    if (hone_session_new(out, ctx, m, &p, &err) == HONE_OK) {
        hone_session_set_abort(*out, hn_abort_fn, NULL);
        return hn_cli_set_adapters(cli, m, *out);
    }
    int code = hn_cli_fail(&err);
    if (err.code == HONE_E_NOMEM) {
        hone_model_info info;
        hone_model_get_info(m, &info);
        bool of_weights = !p.allow_paging && info.bytes_per_token > hn_memory_total(); /* that says what to do */
        if (!of_weights && !info.recurrent)
            hn_err_printf("hone: try: a smaller context, as in -c %d\n", n_ctx > 1024 ? n_ctx / 4 : 256);
    }
    return code;
}

/* The session, and in it what --state-in names. */
static hone_status new_filled(const hn_cli *cli, hone_context *ctx, const hone_model *m, int32_t n_ctx, int32_t n_seq,
                              hone_session **out, int *rc, hone_error *err)
{
    const char *state = hn_opts_str(cli->opts, "state-in");
    hone_session_free(*out);
    *rc = hn_cli_new_session(cli, ctx, m, n_ctx, n_seq, out);
    if (*rc == 0) hn_cli_session_notes(m, n_ctx);
    if (*rc || !state) return HONE_OK;
    hone_status st = hn_cli_know(m, err);
    return st == HONE_OK ? hone_session_load(*out, state, err) : st;
}

enum { RECURRENT_CTX = 1 << 26 }; /* positions cost nothing where a state does not grow with them */

int hn_cli_open_session(const hn_cli *cli, hone_context *ctx, const hone_model *m, size_t n_prompt, int64_t n_more,
                        int32_t n_seq, hone_session **out)
{
    const char *state = hn_opts_str(cli->opts, "state-in");
    bool given = hn_opts_given(cli->opts, "ctx-size");
    hone_model_info info;
    hone_model_get_info(m, &info);
    int64_t train = info.recurrent ? RECURRENT_CTX : info.n_ctx_train, need = (int64_t)n_prompt + n_more,
            n_ctx = need < train ? need : train;
    if (given) {
        int32_t c = hn_opts_i32(cli->opts, "ctx-size");
        if (c > train && !info.recurrent && !info.n_window)
            hn_cli_note("-c %d is more than the %d positions the model was trained for", c, info.n_ctx_train);
        n_ctx = c ? c : train;
    }
    *out = NULL;
    if (n_prompt > (size_t)n_ctx)
        return hn_cli_error(HN_EXIT_FAILURE,
                            "the prompt has %zu tokens, the context holds %d (%s was trained for %d); try: a shorter "
                            "prompt, or a larger -c",
                            n_prompt, (int)n_ctx, hn_cli_model_name(cli), info.n_ctx_train);
    int rc;
    hone_error err;
    hone_status st = new_filled(cli, ctx, m, (int32_t)n_ctx, n_seq, out, &rc, &err);
    while (!rc && st == HONE_E_CTX && !given && n_ctx < train) { /* the saved session is longer */
        n_ctx = 2 * n_ctx < train ? 2 * n_ctx : train;
        st = new_filled(cli, ctx, m, (int32_t)n_ctx, n_seq, out, &rc, &err);
    }
    if (!rc && st == HONE_OK && !given && n_ctx < train &&
        hone_seq_length(*out, 0) + need > n_ctx) { /* no room behind it */
        n_ctx = hone_seq_length(*out, 0) + need;
        if (n_ctx > train) n_ctx = train;
        st = new_filled(cli, ctx, m, (int32_t)n_ctx, n_seq, out, &rc, &err);
    }
    if (rc || st != HONE_OK) return rc ? rc : hn_cli_fail(&err);
    int32_t past = hone_seq_length(*out, 0);
    if (n_prompt > (size_t)(n_ctx - past))
        return hn_cli_error(HN_EXIT_FAILURE,
                            "the prompt has %zu tokens after the %d of %s, the context holds %d; try: a larger -c",
                            n_prompt, past, HN_ESC(state, strlen(state)), (int)n_ctx);
    return 0;
}

/* ---- long prompts ------------------------------------------------------------------------------------ */

bool hn_cli_append_shows(const hn_cli *cli, int32_t n)
{
    return hn_stderr_is_tty() && n > hn_opts_i32(cli->opts, "chunk");
}

hone_status hn_cli_append(const hn_cli *cli, hone_session *s, const int32_t *ids, int32_t n, const float **logits,
                          hone_error *err)
{
    if (!hn_cli_append_shows(cli, n)) return hone_append(s, 0, ids, n, logits, err);
    int32_t chunk = hn_opts_i32(cli->opts, "chunk");
    double t0 = hn_now_ms();
    hone_status st = HONE_OK;
    for (int32_t at = 0, k; at < n && st == HONE_OK; at += k) {
        char label[120];
        int len = snprintf(label, sizeof label, "prompt: %d of %d tokens", at, n);
        double rate = at / (hn_now_ms() - t0 + 1e-9) * 1e3;
        if (at) snprintf(label + len, sizeof label - (size_t)len, ", %.0f tok/s, %.0f s left", rate, (n - at) / rate);
        hn_progress_fn(label, (uint64_t)at, (uint64_t)n);
        k = n - at < chunk ? n - at : chunk;
        st = hone_append(s, 0, ids + at, k, logits, err);
    }
    hn_progress_end();
    return st;
}

/* ---- time ------------------------------------------------------------------------------------------ */

double hn_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
