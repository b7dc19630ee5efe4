/* hone tokenize, hone detokenize: text to token ids and back, byte for byte. Neither
 * needs weights: a file that holds only a vocabulary will do. */
#include "cli/cli.h"

#include <stdlib.h>

static const hn_opt text_opts[] = {
    HN_OPT("prompt", "-p", STR, "TEXT", "the text, as it is", .excl = "input"),
    HN_OPT("file", "-f", FILE, "FILE", "read the text from FILE, all of it; - is standard input (default)",
           .excl = "input"),
    HN_OPT("no-bos", NULL, FLAG, NULL, "add no token at the beginning or end of the text"),
    HN_OPT("no-special", NULL, FLAG, NULL, "treat names of special tokens in the text as plain text"),
    HN_OPT_END,
};
static const hn_opt_group text_group = { "Input", text_opts };
static const hn_opt_group *const text_groups[] = { &hn_group_model, &text_group, NULL };

static const hn_opt ids_opts[] = {
    HN_OPT("ids", "-p", STR, "LIST",
           "token ids, as in 1,2,3; @FILE reads them from FILE (default: from standard input)", .use = HN_USE_AT),
    HN_OPT("no-special", NULL, FLAG, NULL, "leave special tokens out of the text"),
    HN_OPT_END,
};
static const hn_opt_group ids_group = { "Input", ids_opts };
static const hn_opt_group *const ids_groups[] = { &hn_group_model, &ids_group, NULL };

/* A model that is sure to have a tokenizer. */
static int open_vocab(const hn_cli *cli, hone_model **m, hone_model_info *info)
{
    int rc = hn_cli_open_model(cli, true, m);
    if (rc) return rc;
    hone_model_get_info(*m, info);
    if (info->has_tokenizer) return 0;
    hone_model_close(*m);
    *m = NULL;
    return hn_cli_error(HN_EXIT_MODEL,
                        "%s has no tokenizer; expected metadata tokenizer.ggml.model and what belongs to it",
                        hn_cli_model_name(cli));
}

/* "text", and "bytes_hex" when the bytes are not UTF-8, which JSON cannot hold. */
static bool set_text(json_t *o, const char *s, size_t len)
{
    if (json_object_set_new(o, "text", hn_json_str(s, len)) != 0) return false;
    json_t *exact = json_stringn(s, len); /* NULL: not UTF-8 */
    if (exact) {
        json_decref(exact);
        return true;
    }
    char *hex = malloc(2 * len + 1);
    if (!hex) return false;
    hn_hex(hex, s, len);
    int bad = json_object_set_new(o, "bytes_hex", json_stringn(hex, 2 * len));
    free(hex);
    return bad == 0;
}

/* Pieces, each with the bytes of the text it came from. */
static json_t *pieces_json(const hone_model *m, const int32_t *ids, const hone_span *spans, size_t n)
{
    json_t *all = json_array();
    size_t len;
    for (size_t i = 0; all && i < n; i++) {
        const char *s = hone_token_piece(m, ids[i], true, &len);
        json_t *o = json_pack("{s:i, s:I, s:I}", "id", (int)ids[i], "offset", (json_int_t)spans[i].begin, "end",
                              (json_int_t)spans[i].end);
        if (!o || !set_text(o, s, len)) {
            json_decref(o);
            json_decref(all);
            return NULL;
        }
        json_array_append_new(all, o);
    }
    return all;
}

static int print_json(const hone_model *m, const int32_t *ids, const hone_span *spans, size_t n)
{
    json_t *o = hn_json_new("hone.tokenize/1");
    if (o && (json_object_set_new(o, "ids", hn_json_ids(ids, n)) != 0 ||
              json_object_set_new(o, "pieces", pieces_json(m, ids, spans, n)) != 0)) {
        json_decref(o);
        o = NULL;
    }
    return hn_json_print(o);
}

static int print_ids(const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!hn_out_printf(i ? " %d" : "%d", ids[i])) break;
    hn_out_write("\n", 1);
    return hn_out_failed() ? HN_EXIT_FAILURE : HN_EXIT_OK;
}

static int run_tokenize(const hn_cli *cli)
{
    hone_model *m = NULL;
    hone_model_info info;
    hone_error err;
    int rc = open_vocab(cli, &m, &info);
    if (rc) return rc;
    const char *given = hn_opts_str(cli->opts, "prompt"), *path = hn_opts_str(cli->opts, "file"), *text = given;
    char *data = NULL;
    int32_t *ids = NULL;
    hone_span *spans = NULL;
    size_t len = given ? strlen(given) : 0, n = 0;
    int flags = (hn_opts_flag(cli->opts, "no-special") ? 0 : HONE_TOK_SPECIAL) |
                (hn_opts_flag(cli->opts, "no-bos") ? 0 : HONE_TOK_ADD);
    if (!given) {
        if (hn_read_all(path ? path : "-", &data, &len, &err) != HONE_OK)
            rc = hn_cli_fail_input(cli, "-f", path ? path : "-", &err);
        text = data;
    }
    if (!rc && (cli->json ? hone_tokenize_spans(m, text, len, flags, &ids, &spans, &n, &err)
                          : hone_tokenize(m, text, len, flags, &ids, &n, &err)) != HONE_OK)
        rc = hn_cli_fail(&err);
    if (!rc) rc = cli->json ? print_json(m, ids, spans, n) : print_ids(ids, n);
    hone_free(ids);
    hone_free(spans);
    free(data);
    hone_model_close(m);
    return rc;
}

/* The arguments with spaces between them; NULL: no memory. */
static char *join_args(const hn_opts *o)
{
    size_t n = 1, at = 0;
    for (int i = 0; i < hn_opts_n_args(o); i++) n += strlen(hn_opts_arg(o, i)) + 1;
    char *s = malloc(n);
    for (int i = 0; s && i < hn_opts_n_args(o); i++)
        at += (size_t)snprintf(s + at, n - at, "%s%s", i ? " " : "", hn_opts_arg(o, i));
    return s;
}

/* Ids from --ids or arguments, else from standard input, which may hold none. */
static int get_ids(const hn_cli *cli, const hone_model_info *info, int32_t **ids, size_t *n)
{
    hone_error err;
    const char *list = hn_opts_str(cli->opts, "ids"), *what = list ? "--ids" : "standard input";
    int n_arg = hn_opts_n_args(cli->opts);
    if (list && n_arg) return hn_cli_usage(cli, "--ids and '%s': expected one list of ids", hn_opts_arg(cli->opts, 0));
    if (n_arg) { /* each may be one id or a list */
        char *all = join_args(cli->opts);
        if (!all) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %d arguments", n_arg);
        hone_status st = hn_parse_ids(ids, n, all, strlen(all), what = "the arguments", &err);
        free(all);
        if (st != HONE_OK) return hn_cli_fail(&err);
    } else if (list) {
        if (hn_read_ids(ids, n, list, what, &err) != HONE_OK) return hn_cli_fail(&err);
    } else {
        char *data;
        size_t len;
        if (hn_read_all("-", &data, &len, &err) != HONE_OK) return hn_cli_fail(&err);
        int rc = strspn(data, " \t\r\n") < len && hn_parse_ids(ids, n, data, len, what, &err) != HONE_OK
                     ? hn_cli_fail(&err)
                     : 0;
        free(data);
        if (rc) return rc;
    }
    for (size_t i = 0; i < *n; i++)
        if ((*ids)[i] >= info->n_vocab)
            return hn_cli_error(HN_EXIT_USAGE,
                                "%s: token id %d (item %zu) is not in the vocabulary of %s; expected 0 to %d", what,
                                (*ids)[i], i + 1, hn_cli_model_name(cli), info->n_vocab - 1);
    return 0;
}

/* Skips what tokenize adds around every text: the ids of the empty text. */
static void skip_added(const hone_model *m, const int32_t **ids, size_t *n)
{
    int32_t *added, bos = hone_token_bos(m);
    size_t n_added;
    if (hone_tokenize(m, "", 0, HONE_TOK_ADD, &added, &n_added, NULL) != HONE_OK) return;
    size_t front = n_added && added[0] == bos, back = n_added - front;
    if (front && *n && **ids == bos) ++*ids, --*n;
    if (back && *n && (*ids)[*n - 1] == added[n_added - 1]) --*n;
    hone_free(added);
}

static int run_detokenize(const hn_cli *cli)
{
    hone_model *m = NULL;
    hone_model_info info;
    hone_error err;
    int32_t *ids = NULL;
    size_t n = 0, len = 0;
    char *text = NULL;
    int rc = open_vocab(cli, &m, &info);
    if (rc) return rc;
    rc = get_ids(cli, &info, &ids, &n);
    if (!rc) {
        const int32_t *first = ids;
        size_t n_text = n;
        skip_added(m, &first, &n_text);
        if (hone_detokenize(m, first, n_text, !hn_opts_flag(cli->opts, "no-special"), &text, &len, &err) != HONE_OK)
            rc = hn_cli_fail(&err);
    }
    if (!rc && cli->json) {
        json_t *o = hn_json_new("hone.detokenize/1");
        if (o && (json_object_set_new(o, "ids", hn_json_ids(ids, n)) != 0 || !set_text(o, text, len))) {
            json_decref(o);
            o = NULL;
        }
        rc = hn_json_print(o);
    } else if (!rc) {
        hn_out_write(text, len);
        if (hn_out_failed()) rc = HN_EXIT_FAILURE;
    }
    hone_free(text);
    free(ids);
    hone_model_close(m);
    return rc;
}

const hn_command hn_command_tokenize = {
    .name = "tokenize",
    .summary = "Turn text into token ids",
    .args = "[MODEL] [TEXT]",
    .takes = "model prompt",
    .groups = text_groups,
    .examples = "hone tokenize -m model.gguf -p \"Hello, world\"\n"
                "hone tokenize -m model.gguf -f book.txt --no-bos --json\n",
    .run = run_tokenize,
};

const hn_command hn_command_detokenize = {
    .name = "detokenize",
    .summary = "Turn token ids into text",
    .args = "[MODEL] [ID]…",
    .max_args = -1,
    .takes = "model",
    .groups = ids_groups,
    .examples = "hone detokenize -m model.gguf --ids 1,15043,2787\n"
                "hone tokenize -m model.gguf -f a.txt | hone detokenize -m model.gguf | cmp - a.txt\n",
    .run = run_detokenize,
};
