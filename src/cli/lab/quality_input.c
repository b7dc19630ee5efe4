/* What hone perplexity and hone lab quality share: the text, windows, one model that is
 * ready to run, records. */
#include "cli/lab/quality_input.h"
#include "lab/quality/quality.h"
#include "lab/record/record.h"
#include "lab/stats/stats.h"

#include <stdlib.h>

static const hn_opt record_opts[] = {
    HN_OPT("file", NULL, STR, "NAME",
           "append the record to benchmarks/NAME.jsonl; a NAME with a slash is a path of its own",
           .use = HN_USE_RECORDS),
    HN_OPT("title", NULL, STR, "TEXT", "what is measured, for the record", .def = "untitled"),
    HN_OPT("change", NULL, STR, "TEXT", "what changed since the last record"),
    HN_OPT_END,
};
const hn_opt_group hn_group_record = { "Record", record_opts };

static const hn_opt windows_opts[] = {
    HN_OPT("text", "-f", FILE, "FILE", "the text, all of FILE, less one newline at its end; - is standard input",
           .excl = "text"),
    HN_OPT("ids", NULL, STR, "LIST", "token ids instead of text, as in 1,2,3; @FILE reads them from FILE",
           .excl = "text", .use = HN_USE_AT),
    HN_OPT("ctx-size", "-c", I32, "N", "tokens of one window; the second half is scored", .def = "512", .min = 4,
           .max = 1 << 24),
    HN_OPT("chunks", NULL, I32, "N", "windows at most (default: all the text has)", .min = 1),
    HN_OPT("stride", NULL, I32, "N",
           "a window every N tokens, of which the last N are scored (default: windows side by side)", .min = 1),
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
    hn_hex(t->sha256, d, sizeof d);
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
    if (file && !info.has_tokenizer)
        return hn_cli_error(HN_EXIT_MODEL, "%s has no tokenizer, so text cannot be used; expected --ids LIST",
                            model_name);
    if (!file && !info.has_tokenizer) {
        out->n = RANDOM_IDS;
        out->ids = malloc(RANDOM_IDS * sizeof *out->ids);
        if (!out->ids) return hn_cli_error(HN_EXIT_NOMEM, "no memory for %d ids", RANDOM_IDS);
        hn_q_corpus_random(out->ids, out->n, info.n_vocab);
        snprintf(out->name, sizeof out->name, "pseudo-random ids (no tokenizer)");
        return 0;
    }
    if (file && hn_read_all(file, &data, &len, &err) != HONE_OK) return hn_cli_fail_input(cli, "-f", file, &err);
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
    if (hn_windows_make(out, t->ids, t->n, hn_opts_i32(cli->opts, "ctx-size"), hn_opts_i32(cli->opts, "stride"), t->bos,
                        most, &err) == HONE_OK)
        return 0;
    if (err.code != HONE_E_ARG) return hn_cli_fail(&err);
    return hn_cli_error(HN_EXIT_USAGE, "%s: %s", t->name, err.message);
}

json_t *hn_windows_json(const hn_windows *w, const hn_text *t)
{
    return json_pack("{s:o, s:o, s:i, s:i, s:I, s:I, s:o}", "text", hn_lab_str(t->name), "text_sha256",
                     t->sha256[0] ? json_string(t->sha256) : json_null(), "n_ctx", (int)w->n_ctx, "stride",
                     (int)w->stride, "windows", (json_int_t)w->n_window, "text_tokens", (json_int_t)w->n_ids, "bos",
                     w->bos >= 0 ? json_integer(w->bos) : json_null());
}

/* ---- a model ----------------------------------------------------------------------------------- */

static const char *chosen(const hn_cli *cli, const char *mine, const char *option)
{
    return mine ? mine : hn_opts_has(cli->opts, option) ? hn_opts_str(cli->opts, option) : NULL;
}

int hn_subject_open_model(const hn_cli *cli, hn_subject *out, const hn_subject_choice *c)
{
    hone_error err;
    hone_progress pr = { hn_progress_fn, (void *)"comparing the packed file with the model", hn_abort_fn };
    *out = (hn_subject){ .path = chosen(cli, c->path, "model") };
    if (!out->path) return hn_cli_usage(cli, "no model; expected -m FILE.gguf");
    hone_model_params p = { .tokenizer_pre = hn_opts_str(cli->opts, "pre"),
                            .packed = chosen(cli, c->packed, "packed"),
                            .progress = &pr };
    hone_status st = hone_model_open(&out->m, out->path, &p, &err);
    hn_progress_end();
    if (st != HONE_OK) {
        int code = hn_cli_fail_model(&err);
        if (err.code == HONE_E_UNSUPPORTED || err.code == HONE_E_FORMAT)
            hn_err_printf("hone: try: hone inspect %s\n", HN_ESC(out->path, strlen(out->path)));
        return code;
    }
    hone_model_get_info(out->m, &out->info);
    hn_cli_model_notes(&out->info);
    return 0;
}

int32_t hn_subject_sequences(const hn_cli *cli, const hn_windows *w)
{
    int64_t n = hn_opts_i32(cli->opts, "chunk") / w->n_ctx;
    if (n > w->n_window) n = w->n_window;
    return n < 1 ? 1 : (int32_t)n;
}

int hn_subject_start(const hn_cli *cli, hn_subject *s, const hn_subject_choice *c, int32_t n_ctx, int32_t n_seq)
{
    hone_error err;
    int rc = 0;
    const char *kv = chosen(cli, c->kv, "kv");
    if (!c->cpu) {
        rc = hn_cli_new_context(cli, &s->ctx);
    } else {
        hone_context_params p = { .n_threads = hn_opts_i32(cli->opts, "threads"), .cpu = c->cpu };
        if (hone_context_new(&s->ctx, &p, &err) != HONE_OK) {
            hn_cli_fail(&err);
            rc = HN_EXIT_USAGE; /* a level this machine lacks is no fault of the model */
        }
    }
    if (rc) return rc;
    hone_session_params p = { .n_ctx = n_ctx,
                              .n_seq = n_seq,
                              .n_chunk = hn_opts_i32(cli->opts, "chunk"),
                              .cache = strcmp(kv, "f32") == 0    ? HONE_CACHE_F32
                                       : strcmp(kv, "q8_0") == 0 ? HONE_CACHE_Q8_0
                                                                 : HONE_CACHE_F16,
                              .allow_paging = hn_opts_flag(cli->opts, "allow-paging") };
    if (hone_session_new(&s->s, s->ctx, s->m, &p, &err) != HONE_OK) return hn_cli_fail(&err);
    hn_cli_window_note(&s->info, n_ctx);
    hone_session_set_abort(s->s, hn_abort_fn, NULL);
    if ((rc = hn_cli_set_adapters(cli, s->m, s->s))) return rc;
    s->src = (hn_logits_source){ .n_vocab = s->info.n_vocab, .run = hn_forced_run, .arg = s->s };
    return 0;
}

void hn_subject_close(hn_subject *s)
{
    hone_session_free(s->s);
    hone_context_free(s->ctx);
    hone_model_close(s->m);
    *s = (hn_subject){ 0 };
}

hone_status hn_subject_decode(void *session, const hone_token *tokens, int32_t n_tok, float *logits, hone_error *err)
{
    return hone_run_batch(session, tokens, n_tok, logits, err);
}

json_t *hn_subject_config(const hn_cli *cli, const hn_subject *s, const hn_subject_choice *c)
{
    json_t *adapters = hn_cli_adapters_json();
    json_t *o = json_pack("{s:i, s:s, s:s, s:i, s:s}", "threads", (int)hone_context_threads_batch(s->ctx), "cpu",
                          hone_context_cpu(s->ctx), "kv", chosen(cli, c->kv, "kv"), "chunk",
                          (int)hn_opts_i32(cli->opts, "chunk"), "weights", hn_cli_weights(&s->info));
    if (adapters) json_object_set_new(o, "adapters", adapters);
    return o;
}

/* ---- records --------------------------------------------------------------------------------------- */

int hn_cli_records(const hn_cli *cli, json_t *records)
{
    hone_error err;
    char base[4096];
    const char *file = hn_opts_str(cli->opts, "file");
    int rc = 0;
    size_t i;
    json_t *one;
    if (!records) return hn_cli_error(HN_EXIT_NOMEM, "no memory for the records");
    if (file && hn_record_base(base, sizeof base, file, &err) != HONE_OK) rc = hn_cli_fail(&err);
    json_array_foreach(records, i, one)
    {
        json_t *cautions = json_object_get(one, "notes") ? NULL : hn_cli_cautions();
        if (cautions) json_object_set_new(one, "notes", cautions);
        if (file && !rc && hn_record_append(base, one, &err) != HONE_OK) rc = hn_cli_fail(&err);
    }
    if (!cli->json) {
        json_decref(records);
        return rc;
    }
    json_t *o = hn_json_new("hone.quality/1");
    json_object_set_new(o, "records", records);
    return hn_json_printed(rc, hn_json_print(o));
}
