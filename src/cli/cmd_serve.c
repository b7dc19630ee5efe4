/* hone serve: answers programs over HTTP. Reads its options; what serves is src/serve. */
#include "cli/cli.h"
#include "cli/serve_models.h"
#include "serve/server.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST_MODELS = 256 };

static const hn_opt model_opts[] = {
    HN_OPT("model", "-m", FILE, "[NAME=]FILE",
           "a model: a GGUF file, or a name that hone list shows; NAME= is what requests call it (default: the file's "
           "name); given several times, all are served, and the first where a request names none",
           .repeat = true, .use = HN_USE_SERVED, .what = "the model"),
    HN_OPT("models-dir", NULL, FILE, "DIR", "serve all *.gguf files of a folder, by their names", .use = HN_USE_SHELF),
    HN_OPT("models-file", NULL, FILE, "FILE",
           "serve the models that a JSON file lists, with names and settings (docs/SERVE.md)"),
    HN_OPT("models-ttl", NULL, I32, "S", "unload a model that no request used for so many seconds (default: it stays)",
           .min = 1, .max = 365 * 24 * 3600),
    HN_OPT("models-max", NULL, I32, "N", "so many models in memory at once, the others are loaded when asked for",
           .def = "4", .min = 1, .max = MOST_MODELS),
    HN_OPT("no-autoload", NULL, FLAG, NULL,
           "load but the first model only when POST /models/load says so; requests for one that is not there are 404"),
    HN_OPT("lora-dir", NULL, FILE, "DIR",
           "let clients load adapters of the first model that lie below DIR, and unload them", .use = HN_USE_NONE),
    HN_OPT("pre", NULL, STR, "KIND", "pre-tokenizer to use instead of the one that the files name"),
    HN_OPT("pooling", NULL, CHOICE, "HOW",
           "how rows become a vector at /v1/embeddings (default: as each model says); none: /embeddings gives them all",
           .choices = "none|mean|cls|last"),
    HN_OPT("chat-template", NULL, STR, "NAME",
           "a format by name (chatml, llama3, …), or @FILE with a Jinja template (default: each model's own)",
           .use = HN_USE_AT),
    HN_OPT_END,
};
static const hn_opt_group model_group = { "Models", model_opts };

static const hn_opt address_opts[] = {
    HN_OPT("host", NULL, STR, "ADDRESS", "address to listen on", .def = "127.0.0.1", .excl = "address"),
    HN_OPT("port", NULL, I32, "N", "port; 0: any free one", .def = "8080", .min = 0, .max = 65535),
    HN_OPT("uds", NULL, FILE, "PATH", "listen on a UNIX socket of this name instead, for this user alone",
           .excl = "address", .use = HN_USE_NONE),
    HN_OPT("api-key", NULL, STR, "KEY",
           "ask for this key (default: the environment's HONE_API_KEY, which ps does not show)"),
    HN_OPT("api-key-file", NULL, FILE, "FILE", "ask for one of the keys in FILE, one a line; SIGHUP reads it again"),
    HN_OPT("insecure-no-key", NULL, FLAG, NULL, "listen beyond this machine without a key"),
    HN_OPT("allow-host", NULL, STR, "NAME", "answer to this name, too, as a Host; may be given many times",
           .repeat = true),
    HN_OPT("cors-origin", NULL, STR, "ORIGIN", "let pages of this origin ask, as https://example.org; many times",
           .repeat = true),
    HN_OPT("max-body", NULL, I32, "MIB", "largest request", .def = "16", .min = 1, .max = 1024),
    HN_OPT_END,
};
static const hn_opt_group address_group = { "Address", address_opts };

static const hn_opt work_opts[] = {
    HN_OPT("ctx-size", "-c", I32, "N",
           "positions of each conversation (default: as many as the model was trained for, less where memory lacks)",
           .min = 0, .max = INT32_MAX),
    HN_OPT("parallel", "-np", I32, "N", "answers that are computed at once", .def = "8", .min = 1, .max = 1024),
    HN_OPT("max-queue", NULL, I32, "N", "requests that wait; more are sent away", .def = "64", .min = 1, .max = 65536),
    HN_OPT("kv-memory", NULL, I32, "MIB",
           "memory for what conversations remember, of all models together (default: half of what "
           "is available beside the weights)",
           .min = 1, .max = INT32_MAX),
    HN_OPT(
        "cache-scope", NULL, CHOICE, "WHOSE",
        "what was computed is found again by all clients, or by the one that sent it, so that none learns by its speed "
        "what others ask (default: all on this machine alone, else client)",
        .choices = "all|client"),
    HN_OPT("request-timeout", NULL, I32, "S", "longest time for a request", .def = "600", .min = 1, .max = 86400),
    HN_OPT("drain", NULL, I32, "S", "time that answers have to end after SIGTERM", .def = "30", .min = 0, .max = 86400),
    HN_OPT_END,
};
static const hn_opt_group work_group = { "Work", work_opts };

static const hn_opt api_opts[] = {
    HN_OPT("ollama", NULL, FLAG, NULL, "speak ollama's API below /api, too (by itself on port 11434)"),
    HN_OPT("ollama-version", NULL, STR, "V", "what /api/version says (default: whose API is spoken)"),
    HN_OPT("strict-model", NULL, FLAG, NULL, "refuse requests for other names than the model's"),
    HN_OPT("strict-fields", NULL, FLAG, NULL, "refuse requests with fields that hone does not know"),
    HN_OPT("lenient-tools", NULL, FLAG, NULL, "pass over tools that are no functions, instead of refusing them"),
    HN_OPT("openai-defaults", NULL, FLAG, NULL, "temperature 1 and all tokens where a request says nothing"),
    HN_OPT("metrics", NULL, FLAG, NULL, "show counters at /metrics"),
    HN_OPT("metrics-compat", NULL, CHOICE, "NAMES", "and the same under another server's names",
           .choices = "vllm|llama"),
    HN_OPT("slots", NULL, FLAG, NULL, "show at /slots what is computed"),
    HN_OPT("slot-dir", NULL, FILE, "DIR", "let clients keep in DIR what slots hold, and bring it back (/slots/{id})",
           .use = HN_USE_NONE),
    HN_OPT("no-ui", NULL, FLAG, NULL, "no page at /"),
    HN_OPT_END,
};
static const hn_opt_group api_group = { "What is spoken", api_opts };
static const hn_opt_group *const groups[] = { &model_group, &hn_group_lora, &address_group,
                                              &work_group,  &api_group,     &hn_group_compute,
                                              NULL };

/* What the parameters point to. */
typedef struct serving {
    const hn_cli *cli;
    hone_context *ctx;
    struct hn_shelf_model model[MOST_MODELS];
    char *name[MOST_MODELS];
    hn_arena *arena; /* of --models-file */
    hn_adapter_file lora[HN_ADAPTERS_MOST];
    char *adapter[HN_ADAPTERS_MOST];
    const char **allow_host, **cors_origin;
    char *chat_template;
    hn_serve_params p;
} serving;

/* ---- models ----------------------------------------------------------------------------------------------------- */

/* A model's name where none is given: that of its file, without the ending. */
static char *stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash && slash[1] ? slash + 1 : path;
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".gguf") == 0) n -= 5;
    return strndup(name, n);
}

static int read_models(serving *s)
{
    const hn_opts *o = s->cli->opts;
    size_t n = hn_opts_count(o, "model");
    if (n > MOST_MODELS) return hn_cli_usage(s->cli, "%zu models, expected at most %d", n, (int)MOST_MODELS);
    s->p.shelf.folder = hn_opts_str(o, "models-dir");
    const char *folder = s->p.shelf.folder, *file = hn_opts_str(o, "models-file");
    struct stat sb;
    if (folder && stat(folder, &sb) != 0) /* it stands for models, as they for themselves */
        return hn_cli_error(HN_EXIT_MODEL, "%s: %s; expected a folder of GGUF files", HN_ESC(folder, strlen(folder)),
                            strerror(errno));
    if (!n && !folder && !file)
        return hn_cli_usage(s->cli, "no model; expected -m FILE.gguf, --models-dir DIR or --models-file FILE");

    for (size_t i = 0; i < n; i++) {
        const char *arg = hn_opts_nth(o, "model", i), *eq = hn_cli_served_name(arg);
        s->model[i].path = eq ? eq + 1 : arg;
        s->name[i] = eq ? strndup(arg, (size_t)(eq - arg)) : stem(arg);
        s->model[i].name = s->name[i];
        if (!s->name[i]) return hn_cli_error(HN_EXIT_NOMEM, "no memory for a model's name");
        if (!*s->name[i] || !*s->model[i].path)
            return hn_cli_usage(s->cli, "-m %s: expected FILE or NAME=FILE", HN_ESC(arg, strlen(arg)));
    }
    if (file) {
        hone_error err;
        if (!(s->arena = hn_arena_new())) return hn_cli_error(HN_EXIT_NOMEM, "no memory for names of models");
        if (hn_serve_models_read(s->model, MOST_MODELS, &n, file, s->arena, &err) != HONE_OK) {
            int code = hn_cli_fail_input(s->cli, "--models-file", file, &err);
            return err.code == HONE_E_IO ? HN_EXIT_MODEL : code; /* it stands for models */
        }
    }
    s->p.shelf.ttl_s = hn_opts_given(o, "models-ttl") ? hn_opts_i32(o, "models-ttl") : 0;
    s->p.shelf.models = s->model;
    s->p.shelf.n_models = n;
    s->p.shelf.max_loaded = hn_opts_i32(o, "models-max");
    s->p.shelf.no_autoload = hn_opts_flag(o, "no-autoload");
    s->p.shelf.strict = hn_opts_flag(o, "strict-model");
    return 0;
}

static int read_adapters(serving *s)
{
    size_t n = hn_opts_count(s->cli->opts, "lora");
    if (n > HN_ADAPTERS_MOST)
        return hn_cli_usage(s->cli, "%zu adapters, expected at most %d", n, (int)HN_ADAPTERS_MOST);
    for (size_t i = 0; i < n; i++) {
        int rc = hn_cli_adapter_arg(hn_opts_nth(s->cli->opts, "lora", i), &s->adapter[i], &s->lora[i].scale);
        if (rc) return rc;
        s->lora[i].path = s->adapter[i];
    }
    s->p.shelf.loras = s->lora;
    s->p.shelf.n_loras = n;
    s->p.shelf.lora_folder = hn_opts_str(s->cli->opts, "lora-dir");
    return 0;
}

static int read_template(serving *s)
{
    const char *t = hn_opts_str(s->cli->opts, "chat-template");
    size_t n;
    hone_error err;
    hone_chat_format *f;
    s->p.shelf.chat_template = t;
    if (!t) return 0;
    if (*t == '@') {
        if (hn_read_all(t + 1, &s->chat_template, &n, &err) != HONE_OK) return hn_cli_fail(&err);
        s->p.shelf.chat_template = s->chat_template;
    }
    /* one that is none is told here, and not to whoever asks first */
    if (hone_chat_format_new(&f, NULL, &(hone_chat_params){ .chat_template = s->p.shelf.chat_template }, &err) !=
        HONE_OK)
        return hn_cli_fail(&err);
    hone_chat_format_free(f);
    return 0;
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

static int read_list(serving *s, const char *name, const char ***out, size_t *n)
{
    *n = hn_opts_count(s->cli->opts, name);
    if (*n && !(*out = calloc(*n, sizeof **out))) return hn_cli_error(HN_EXIT_NOMEM, "no memory for --%s", name);
    for (size_t i = 0; i < *n; i++) (*out)[i] = hn_opts_nth(s->cli->opts, name, i);
    return 0;
}

static int read_address(serving *s)
{
    const hn_opts *o = s->cli->opts;
    hn_http_params *h = &s->p.http;
    int rc;
    h->host = hn_opts_str(o, "host");
    h->port = hn_opts_i32(o, "port");
    h->unix_path = hn_opts_str(o, "uds");
    if (h->unix_path && hn_opts_given(o, "port"))
        return hn_cli_usage(s->cli, "--port with --uds; expected one of them");
    h->api_key = hn_opts_given(o, "api-key") ? hn_opts_str(o, "api-key") : getenv("HONE_API_KEY");
    if (h->api_key && !*h->api_key)
        return hn_cli_usage(s->cli, "%s is empty; expected a key, or none of it",
                            hn_opts_given(o, "api-key") ? "--api-key" : "HONE_API_KEY");
    h->api_key_file = hn_opts_str(o, "api-key-file");
    if (h->api_key_file && h->api_key && !hn_opts_given(o, "api-key"))
        return hn_cli_usage(s->cli,
                            "HONE_API_KEY is set beside --api-key-file, whose keys would not be all; expected one "
                            "of them (unset HONE_API_KEY), or --api-key KEY for one key more");
    h->insecure_no_key = hn_opts_flag(o, "insecure-no-key");
    h->max_body = (uint64_t)hn_opts_i32(o, "max-body") << 20;
    if ((rc = read_list(s, "allow-host", &s->allow_host, &h->n_allow_host)) ||
        (rc = read_list(s, "cors-origin", &s->cors_origin, &h->n_cors_origin)))
        return rc;
    h->allow_host = s->allow_host;
    h->cors_origin = s->cors_origin;
    return 0;
}

static int read_settings(serving *s)
{
    const hn_opts *o = s->cli->opts;
    hn_serve_params *p = &s->p;
    p->limits = (hn_limits){ .n_slots = hn_opts_i32(o, "parallel"),
                             .strict_fields = hn_opts_flag(o, "strict-fields"),
                             .lenient_tools = hn_opts_flag(o, "lenient-tools"),
                             .openai_defaults = hn_opts_flag(o, "openai-defaults") };
    hone_sampler_defaults(&p->limits.defaults);
    p->shelf.scheduler = (hone_scheduler_params){
        .session = { .n_ctx = hn_opts_given(o, "ctx-size") ? hn_opts_i32(o, "ctx-size") : 0,
                     .n_seq = hn_opts_i32(o, "parallel"),
                     .n_chunk = hn_opts_i32(o, "chunk"),
                     .cache = hn_cache_of(hn_opts_str(o, "kv")),
                     .allow_paging = hn_opts_flag(o, "allow-paging"),
                     .cache_budget = hn_opts_given(o, "kv-memory") ? (uint64_t)hn_opts_i32(o, "kv-memory") << 20 : 0 },
        .max_queue = hn_opts_i32(o, "max-queue")
    };
    p->shelf.model = (hone_model_params){ .tokenizer_pre = hn_opts_str(o, "pre"),
                                          .packed = hn_opts_str(o, "packed"),
                                          .n_answers = hn_opts_i32(o, "parallel") };
    const char *pooling = hn_opts_str(o, "pooling"), *scope = hn_opts_str(o, "cache-scope");
    p->cache_scope = !scope ? HN_CACHE_BY_ADDRESS : strcmp(scope, "all") == 0 ? HN_CACHE_OF_ALL : HN_CACHE_BY_CLIENT;
    p->shelf.pooling = !pooling                       ? HONE_POOL_FILE
                       : strcmp(pooling, "none") == 0 ? HONE_POOL_NONE
                       : strcmp(pooling, "mean") == 0 ? HONE_POOL_MEAN
                       : strcmp(pooling, "cls") == 0  ? HONE_POOL_CLS
                                                      : HONE_POOL_LAST;
    const char *names = hn_opts_str(o, "metrics-compat");
    if (names) p->metrics_compat = strcmp(names, "llama") == 0 ? HN_NAMES_LLAMA : HN_NAMES_VLLM;
    p->metrics = hn_opts_flag(o, "metrics") || names;
    p->slots = hn_opts_flag(o, "slots");
    p->slot_dir = hn_opts_str(o, "slot-dir");
    p->ui = !hn_opts_flag(o, "no-ui");
    p->ollama = hn_opts_flag(o, "ollama") || (!p->http.unix_path && p->http.port == 11434);
    p->ollama_version = hn_opts_str(o, "ollama-version");
    if (p->ollama_version && !p->ollama)
        return hn_cli_usage(s->cli, "--ollama-version without --ollama, whose version it would be");
    p->drain_s = hn_opts_i32(o, "drain");
    p->timeout_s = hn_opts_i32(o, "request-timeout");
    return 0;
}

static void ready(void *arg, const char *address)
{
    const serving *s = arg;
    hn_err_printf("hone: listening on %s\n", address);
    if (!s->cli->json) return;
    json_t *o = hn_json_new("hone.serve/1");
    json_object_set_new(o, "address", hn_json_str(address, strlen(address)));
    hn_json_print(o);
    hn_out_flush();
}

static int serve(serving *s)
{
    int rc, code = 0;
    hone_error err;
    if ((rc = read_models(s)) || (rc = read_adapters(s)) || (rc = read_template(s)) || (rc = read_address(s)) ||
        (rc = read_settings(s)) || (rc = hn_cli_new_context(s->cli, &s->ctx)))
        return rc;
    s->p.shelf.ctx = s->ctx;
    s->p.roof_gb_s = hn_cli_read_roof(s->ctx);
    s->p.ready = ready;
    s->p.arg = s;
    hone_status st = hn_serve(&s->p, &code, &err);
    if (st != HONE_OK) return code == HN_SERVE_MODEL ? hn_cli_fail_model(&err) : hn_cli_fail(&err);
    return code;
}

static int run(const hn_cli *cli)
{
    serving *s = calloc(1, sizeof *s);
    if (!s) return hn_cli_error(HN_EXIT_NOMEM, "no memory for a server");
    s->cli = cli;
    int rc = serve(s);
    hone_context_free(s->ctx);
    for (size_t i = 0; i < MOST_MODELS; i++) free(s->name[i]);
    for (size_t i = 0; i < HN_ADAPTERS_MOST; i++) free(s->adapter[i]);
    hn_arena_free(s->arena);
    free(s->allow_host);
    free(s->cors_origin);
    free(s->chat_template);
    free(s);
    return rc;
}

const hn_command hn_command_serve = {
    .name = "serve",
    .summary = "Answer programs over HTTP: OpenAI's, Anthropic's, llama-server's and ollama's APIs, and a page",
    .groups = groups,
    .bundled = true,
    .examples = "hone serve -m model.gguf\n"
                "hone serve -m small=a.gguf -m large=b.gguf --port 8000\n"
                "hone serve --models-dir models --api-key-file keys --host 0.0.0.0\n"
                "hone serve -m model.gguf --ollama --metrics\n",
    .run = run,
};
