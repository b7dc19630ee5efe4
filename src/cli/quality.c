/* What hone perplexity and hone lab quality share: the text, windows, one model that is
 * ready to run, records. */
#include "cli/quality.h"

#include <stdlib.h>

static const hn_opt record_opts[] = {
    HN_OPT("file", NULL, STR, "NAME", "append the record to benchmarks/NAME.jsonl; a NAME with a slash is a path of its own"),
    HN_OPT("title", NULL, STR, "TEXT", "what is measured, for the record", .def = "untitled"),
    HN_OPT("change", NULL, STR, "TEXT", "what changed since the last record"),
    HN_OPT_END,
};
const hn_opt_group hn_group_record = { "Record", record_opts };

static const hn_opt windows_opts[] = {
    HN_OPT("text", "-f", FILE, "FILE", "the text, all of FILE, less one newline at its end; - is standard input", .excl = "text"),
    HN_OPT("ids", NULL, STR, "LIST", "token ids instead of text, as in 1,2,3; @FILE reads them from FILE", .excl = "text"),
    HN_OPT("ctx-size", "-c", I32, "N", "tokens of one window; the second half is scored", .def = "512", .min = 4, .max = 1 << 24),
    HN_OPT("chunks", NULL, I32, "N", "windows at most (default: all the text has)", .min = 1),
    HN_OPT("stride", NULL, I32, "N", "a window every N tokens, of which the last N are scored (default: windows side by side)", .min = 1),
    HN_OPT_END,
};
const hn_opt_group hn_group_windows = { "Text", windows_opts };

/* ---- text ---------------------------------------------------------------------------------- */

static void hash_text(hn_text *t, const char *text, size_t n)
{
    unsigned char d[32];
    hn_sha256 s;
    hn_sha256_init(&s);
    hn_sha256_add(&s, text, n);
    hn_sha256_end(&s, d);
    for (int i = 0; i < 32; i++) snprintf(t->sha256 + 2 * i, 3, "%02x", d[i]);
}

static int text_from_ids(const hn_cli *cli, const char *list, hn_text *out)
{
    hone_error err;
    size_t n;
    if (hn_read_ids(&out->ids, &n, list, "--ids", &err) != HONE_OK) return hn_cli_fail(&err);
    out->n = (int64_t)n;
    snprintf(out->name, sizeof out->name, "--ids");
    return 0;
}

int hn_cli_text(const hn_cli *cli, const hone_model *m, const char *model_name, hn_text *out)
{
    enum { RANDOM_IDS = 1 << 15 };
    const char *file = hn_opts_str(cli->opts, "text"), *list = hn_opts_str(cli->opts, "ids");
    hone_model_info info;
    hone_error err;
    char *data = NULL;
    size_t len = strlen(hn_q_corpus);
    hone_model_get_info(m, &info);
    *out = (hn_text){ .bos = -1 };
    if (list) return text_from_ids(cli, list, out);
    if (file && !info.has_tokenizer) return hn_cli_error(HN_EXIT_MODEL, "%s has no tokenizer, so text cannot be used; expected --ids LIST", model_name);
    if (!file && !info.has_tokenizer) {
        out->n = RANDOM_IDS;
        out->ids = malloc(RANDOM_IDS * sizeof *out->ids);
        if (!out->ids) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %d ids", RANDOM_IDS);
        hn_q_corpus_random(out->ids, out->n, info.n_vocab);
        snprintf(out->name, sizeof out->name, "pseudo-random ids (no tokenizer)");
        return 0;
    }
    if (file && hn_read_all(file, &data, &len, &err) != HONE_OK) return hn_cli_fail(&err);
    if (file && len && data[len - 1] == '\n') len--; /* as llama.cpp reads files */
    hash_text(out, file ? data : hn_q_corpus, len);
    if (file) snprintf(out->name, sizeof out->name, "%s", HN_ESC(file, strlen(file)));
    else snprintf(out->name, sizeof out->name, "fixed text %s", hn_q_corpus_name);
    hone_status st = hn_ppl_tokenize(m, file ? data : hn_q_corpus, len, &out->ids, &out->n, &out->bos, &err);
    free(data);
    return st == HONE_OK ? 0 : hn_cli_fail(&err);
}

void hn_text_free(hn_text *t)
{
    free(t->ids);
    *t = (hn_text){ 0 };
}

int hn_cli_windows(const hn_cli *cli, const hn_text *t, int64_t most, hn_windows *out)
{
    hone_error err;
    if (hn_windows_make(out, t->ids, t->n, hn_opts_i32(cli->opts, "ctx-size"), hn_opts_i32(cli->opts, "stride"), t->bos, most, &err) == HONE_OK) return 0;
    if (err.code != HONE_E_ARG) return hn_cli_fail(&err);
    return hn_cli_error(HN_EXIT_USAGE, "%s: %s", t->name, err.message);
}

json_t *hn_windows_json(const hn_windows *w, const hn_text *t)
{
    return json_pack("{s:o, s:o, s:i, s:i, s:I, s:I, s:o}", "text", hn_lab_str(t->name), "text_sha256", t->sha256[0] ? json_string(t->sha256) : json_null(),
                     "n_ctx", (int)w->n_ctx, "stride", (int)w->stride, "windows", (json_int_t)w->n_window, "text_tokens", (json_int_t)w->n_ids, "bos",
                     w->bos >= 0 ? json_integer(w->bos) : json_null());
}

/* ---- a model ----------------------------------------------------------------------------------- */

void hn_side_close(hn_side *s)
{
    hone_session_free(s->s);
    hone_context_free(s->ctx);
    hone_model_close(s->m);
    *s = (hn_side){ 0 };
}

/* ---- records --------------------------------------------------------------------------------------- */

int hn_cli_record(const hn_cli *cli, json_t *record)
{
    hone_error err;
    char base[4096];
    const char *file = hn_opts_str(cli->opts, "file");
    int rc = 0;
    if (!record) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the record");
    if (file && (hn_record_base(base, sizeof base, file, &err) != HONE_OK || hn_record_append(base, record, &err) != HONE_OK)) rc = hn_cli_fail(&err);
    if (!cli->json) json_decref(record);
    else if (hn_json_print(record) && !rc) rc = HN_EXIT_FAILURE;
    return rc;
}
