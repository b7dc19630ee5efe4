/* hone embed: texts as vectors, or documents scored for a query. */
#include "cli/cli.h"

#include <stdlib.h>

enum { MAX_SIDE_BY_SIDE = 64, MAX_TEXTS = 1 << 20 };

static const hn_opt text_opts[] = {
    HN_OPT("prompt", "-p", STR, "TEXT", "one text, as it is", .excl = "input"),
    HN_OPT("file", "-f", FILE, "FILE", "each line of FILE is a text; - is standard input (a pipe is read without)",
           .excl = "input"),
    HN_OPT("ids", NULL, STR, "LIST", "token ids of one text, as in 1,2,3, used as given; @FILE reads them from FILE",
           .excl = "input", .use = HN_USE_AT),
    HN_OPT("no-bos", NULL, FLAG, NULL, "add no token at the beginning or end of a text"),
    HN_OPT_END,
};
static const hn_opt_group text_group = { "Input", text_opts };
static const hn_opt embed_opts[] = {
    HN_OPT(
        "pooling", NULL, CHOICE, "HOW",
        "what becomes of a text's tokens: their mean, the first (cls), the last, a classifier's scores (rank); none: "
        "a vector for each of them",
        .def = "file", .choices = "file|mean|cls|last|none|rank"),
    HN_OPT("no-normalize", NULL, FLAG, NULL, "vectors as they come; else their length is 1"),
    HN_OPT("query", NULL, STR, "TEXT", "the texts are documents: score each for this query (pooling rank)"),
    HN_OPT("instruction", NULL, STR, "TEXT", "what the query asks for, where the model's template has a place for it"),
    HN_OPT_END,
};
static const hn_opt_group embed_group = { "Embeddings", embed_opts };
static const hn_opt_group *const groups[] = { &hn_group_model, &hn_group_lora,    &text_group,
                                              &embed_group,    &hn_group_compute, NULL };

typedef struct job {
    const hn_cli *cli;
    hone_model *m;
    hone_model_info info;
    hone_context *ctx;
    hone_session *s;
    hone_text_ids *texts; /* [n] ids are malloc'ed */
    int32_t n, longest;
    int64_t n_row; /* vectors of all texts */
    hone_pooling pooling;
    int32_t width;
    float *out;
} job;

static const char *const pooling_names[] = { "file", "none", "mean", "cls", "last", "rank" };

static int find_pooling(job *j)
{
    const hn_opts *o = j->cli->opts;
    const char *name = hn_opts_str(o, "pooling"), *query = hn_opts_str(o, "query");
    bool given = hn_opts_given(o, "pooling");
    if (query && given && strcmp(name, "rank") != 0)
        return hn_cli_usage(j->cli, "--query and --pooling %s contradict each other; give one of them", name);
    if (!query && hn_opts_str(o, "instruction"))
        return hn_cli_usage(j->cli, "--instruction goes with --query; expected both");
    hone_pooling asked = query ? HONE_POOL_RANK : HONE_POOL_FILE;
    for (int i = 0; !query && i <= (int)HONE_POOL_RANK; i++)
        if (!strcmp(name, pooling_names[i])) asked = (hone_pooling)i;
    if ((j->width = hone_embed_width(j->m, asked, &j->pooling)) > 0) return 0;
    if (asked == HONE_POOL_FILE)
        return hn_cli_usage(
            j->cli,
            "%s does not say how embeddings are pooled (%s.pooling_type); expected --pooling mean, cls, "
            "last or none",
            hn_cli_model_name(j->cli), j->info.arch);
    return hn_cli_error(HN_EXIT_MODEL, "%s has nothing to rank with (tensor cls.output.weight)",
                        hn_cli_model_name(j->cli));
}

/* ---- texts --------------------------------------------------------------------------------------------- */

static int add_ids(job *j, int32_t *ids, size_t n, size_t line)
{
    const char *model = hn_cli_model_name(j->cli);
    hone_text_ids *more = n > 0 && n <= INT32_MAX ? realloc(j->texts, ((size_t)j->n + 1) * sizeof *more) : NULL;
    if (!more) {
        hone_free(ids);
        if (n == 0)
            return hn_cli_error(HN_EXIT_USAGE, "text %zu has no tokens, and %s adds none; expected a text", line,
                                model);
        return hn_cli_error(n > INT32_MAX ? HN_EXIT_FAILURE : HN_EXIT_NOMEM, "no memory for text %zu of %zu tokens",
                            line, n);
    }
    j->texts = more;
    j->texts[j->n++] = (hone_text_ids){ ids, (int32_t)n };
    if ((int32_t)n > j->longest) j->longest = (int32_t)n;
    return 0;
}

static int add_text(job *j, const char *text, size_t len)
{
    const hn_opts *o = j->cli->opts;
    const char *query = hn_opts_str(o, "query");
    hone_error err;
    int32_t *ids;
    size_t n;
    int flags = hn_opts_flag(o, "no-bos") ? 0 : HONE_TOK_ADD;
    if (j->n >= MAX_TEXTS) return hn_cli_error(HN_EXIT_FAILURE, "more than %d texts", MAX_TEXTS);
    hone_status st =
        query ? hone_rank_tokenize(j->m, hn_opts_str(o, "instruction"), query, strlen(query), text, len, &ids, &n, &err)
              : hone_tokenize(j->m, text, len, flags, &ids, &n, &err);
    return st == HONE_OK ? add_ids(j, ids, n, (size_t)j->n + 1) : hn_cli_fail(&err);
}

/* Each line; one without an end is one, too. */
static int add_lines(job *j, const char *data, size_t n)
{
    int rc = 0;
    for (size_t at = 0; rc == 0 && at < n;) {
        const char *end = memchr(data + at, '\n', n - at);
        size_t len = end ? (size_t)(end - data) - at : n - at;
        rc = add_text(j, data + at, len > 0 && data[at + len - 1] == '\r' ? len - 1 : len);
        at += len + 1;
    }
    return rc;
}

static int read_texts(job *j)
{
    const hn_opts *o = j->cli->opts;
    const char *text = hn_opts_str(o, "prompt"), *path = hn_opts_str(o, "file"), *list = hn_opts_str(o, "ids");
    hone_error err;
    hn_cli_say_unread(j->cli);
    if (list) {
        int32_t *ids;
        size_t n;
        if (hn_opts_str(o, "query"))
            return hn_cli_usage(j->cli, "--query and --ids contradict each other; expected -f");
        if (hn_read_ids(&ids, &n, list, "--ids", &err) != HONE_OK) return hn_cli_fail(&err);
        int rc = hn_cli_check_ids(j->cli, &j->info, ids, n);
        if (rc) hone_free(ids);
        if (rc) return rc;
        return add_ids(j, ids, n, 1);
    }
    if (!text && !path && !hn_cli_piped()) return hn_cli_usage(j->cli, "no text; expected -p TEXT or -f FILE");
    if (!j->info.has_tokenizer)
        return hn_cli_error(HN_EXIT_MODEL, "%s has no tokenizer, so text cannot be used; expected --ids LIST",
                            hn_cli_model_name(j->cli));
    if (text) return add_text(j, text, strlen(text));
    char *data;
    size_t n;
    if (!path) path = "-";
    if (hn_read_all(path, &data, &n, &err) != HONE_OK) return hn_cli_fail_input(j->cli, "-f", path, &err);
    int rc = add_lines(j, data, n);
    free(data);
    if (rc == 0 && j->n == 0) rc = hn_cli_error(HN_EXIT_USAGE, "%s holds no text", HN_ESC(path, strlen(path)));
    return rc;
}

/* ---- vectors ------------------------------------------------------------------------------------------- */

static int run_texts(job *j)
{
    const hn_opts *o = j->cli->opts;
    hone_error err;
    int32_t chunk = hn_opts_i32(o, "chunk");
    if (j->longest > j->info.n_ctx_train && !j->info.recurrent)
        return hn_cli_error(
            HN_EXIT_FAILURE,
            "a text has %d tokens, the context holds %d (%s was trained for so many); try: shorter texts", j->longest,
            j->info.n_ctx_train, hn_cli_model_name(j->cli));
    if (!j->info.causal && chunk < j->longest) chunk = j->longest; /* a text is one pass */
    int rc = hn_cli_new_session_of(j->cli, j->ctx, j->m, j->longest, j->n < MAX_SIDE_BY_SIDE ? j->n : MAX_SIDE_BY_SIDE,
                                   chunk, &j->s);
    if (rc) return rc;
    hn_cli_session_notes(j->m, j->longest);
    for (int32_t i = 0; i < j->n; i++) j->n_row += j->pooling == HONE_POOL_NONE ? j->texts[i].n : 1;
    j->out = malloc((size_t)j->n_row * (size_t)j->width * sizeof *j->out);
    if (!j->out) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %lld vectors", (long long)j->n_row);
    const hone_embed_params p = { .pooling = j->pooling, .plain = hn_opts_flag(o, "no-normalize") };
    return hone_embed(j->s, j->texts, j->n, &p, j->out, &err) == HONE_OK ? 0 : hn_cli_fail_numbers(j->cli, &err);
}

static json_t *vector_json(const float *x, int32_t n)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < n; i++) json_array_append_new(a, json_real((double)x[i]));
    return a;
}

static int print_json(const job *j)
{
    json_t *o = hn_json_new("hone.embed/1"), *list = json_array();
    const float *x = j->out;
    for (int32_t i = 0; i < j->n; i++) {
        json_t *rows = json_array(), *one = json_pack("{s:i}", "tokens", (int)j->texts[i].n);
        int32_t n = j->pooling == HONE_POOL_NONE ? j->texts[i].n : 1;
        for (int32_t r = 0; r < n; r++, x += j->width) json_array_append_new(rows, vector_json(x, j->width));
        if (j->pooling == HONE_POOL_NONE) json_object_set(one, "rows", rows);
        else json_object_set(one, j->pooling == HONE_POOL_RANK ? "scores" : "embedding", json_array_get(rows, 0));
        json_decref(rows);
        json_array_append_new(list, one);
    }
    json_object_set_new(o, "pooling", json_string(pooling_names[j->pooling]));
    json_object_set_new(o, "width", json_integer(j->width));
    json_object_set_new(o, "texts", list);
    return hn_json_print(o);
}

/* A vector a line. */
static int print_lines(const job *j)
{
    const float *x = j->out;
    for (int64_t r = 0; r < j->n_row && !hn_out_failed(); r++) {
        for (int32_t i = 0; i < j->width; i++, x++) hn_out_printf(i ? " %.9g" : "%.9g", (double)*x);
        hn_out_write("\n", 1);
    }
    return hn_out_failed() ? HN_EXIT_FAILURE : 0;
}

static int run_job(job *j)
{
    int rc;
    if ((rc = hn_cli_new_context(j->cli, &j->ctx)) || (rc = hn_cli_open_model(j->cli, false, &j->m))) return rc;
    hone_model_get_info(j->m, &j->info);
    if ((rc = find_pooling(j)) || (rc = read_texts(j)) || (rc = run_texts(j))) return rc;
    return j->cli->json ? print_json(j) : print_lines(j);
}

static int run(const hn_cli *cli)
{
    job j = { .cli = cli };
    int rc = run_job(&j);
    for (int32_t i = 0; i < j.n; i++) hone_free((int32_t *)(uintptr_t)j.texts[i].ids);
    free(j.texts);
    free(j.out);
    hone_session_free(j.s);
    hone_context_free(j.ctx);
    hone_model_close(j.m);
    return rc;
}

const hn_command hn_command_embed = {
    .name = "embed",
    .summary = "Write texts as vectors, or score documents for a query",
    .args = "[MODEL] [PROMPT]",
    .takes = "model prompt",
    .groups = groups,
    .examples = "hone embed -m qwen3-embedding.gguf -p \"a text\" --json\n"
                "hone embed -m bge-small.gguf -f lines.txt >vectors.txt\n"
                "hone embed -m bge-reranker.gguf --query \"what is a roof?\" -f documents.txt\n",
    .run = run,
};
