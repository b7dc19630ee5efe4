/* A query and a document as the one text that a model scores: by the file's template, by Qwen3-Reranker's, or between
 * the tokens that separate two texts. Refuses to know how it is scored (embed.c). */
#include "base/floats.h"
#include "engine/engine.h"

#include <stdlib.h>

#define INSTRUCTION "Given a web search query, retrieve relevant passages that answer the query"
/* Qwen3-Reranker (Zhang et al. 2025): the model was trained to go on with "yes" or "no" here. */
static const char qwen3[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n<Instruct>: "
    "{instruction}\n<Query>: {query}\n<Document>: {document}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";

/* What takes the place of a word of the template. */
typedef struct part {
    hone_str word, text;
} part;
enum { N_PART = 4, MAX_INPUT = 64, MOST_BYTES = (1 << 30) - 1 };

typedef struct rendered {
    char *text;
    size_t len, n_input;
    hone_span input[MAX_INPUT]; /* what did not stand in the template */
} rendered;

/* The part whose word stands at p; NULL: none. */
static const part *part_at(const part *parts, const char *p, size_t left)
{
    for (int i = 0; i < N_PART; i++)
        if (parts[i].word.len <= left && !memcmp(p, parts[i].word.ptr, parts[i].word.len)) return &parts[i];
    return NULL;
}

static hone_status render(rendered *out, hone_str t, const part *parts, hone_error *err)
{
    size_t n = t.len;
    for (size_t i = 0; i < t.len; i++) {
        const part *p = part_at(parts, t.ptr + i, t.len - i);
        if (p && __builtin_add_overflow(n, p->text.len, &n)) n = SIZE_MAX;
    }
    if (n > (size_t)1 << 30 || !(out->text = malloc(n + 1)))
        return HN_FAIL(err, HONE_E_NOMEM, "a query and a document of %zu bytes", n);
    for (size_t i = 0; i < t.len;) {
        const part *p = part_at(parts, t.ptr + i, t.len - i);
        if (!p) {
            out->text[out->len++] = t.ptr[i++];
            continue;
        }
        if (out->n_input == MAX_INPUT)
            return HN_FAIL(err, HONE_E_FORMAT, "template for reranking: more than %d places for texts", MAX_INPUT);
        out->input[out->n_input++] = (hone_span){ out->len, out->len + p->text.len };
        memcpy(out->text + out->len, p->text.ptr, p->text.len);
        out->len += p->text.len;
        i += p->word.len;
    }
    return HONE_OK;
}

static hone_str str_of(const char *s) { return (hone_str){ s, strlen(s) }; }

static hone_status by_template(const hn_vocab *v, hone_str t, const char *instruction, hone_str query,
                               hone_str document, hn_ids *ids, hone_error *err)
{
    hone_str asked = str_of(instruction ? instruction : INSTRUCTION);
    const part parts[N_PART] = { { str_of("{query}"), query },
                                 { str_of("{document}"), document },
                                 { str_of("{instruction}"), asked },
                                 { str_of(INSTRUCTION), asked } };
    rendered r = { 0 };
    hone_status st = render(&r, t, parts, err);
    if (st == HONE_OK) st = hn_vocab_encode_spans(v, r.text, r.len, HONE_TOK_SPECIAL, r.input, r.n_input, ids, err);
    free(r.text);
    return st;
}

/* BERT: [CLS] query [SEP] document [SEP]; XLM-RoBERTa has two of them in the middle. */
static hone_status by_separators(const hone_model *m, const hn_vocab *v, hone_str query, hone_str document, hn_ids *ids,
                                 hone_error *err)
{
    hn_ids ends = { 0 };
    bool begins = hn_vocab_add_bos(v), finishes = hn_vocab_add_eos(v);
    bool twice = hn_vocab_parts_twice(m->file, hn_vocab_get_kind(v));
    hone_status st = hn_vocab_encode(v, "", 0, HONE_TOK_ADD, &ends, err);
    if (st == HONE_OK && (!ends.n || !finishes))
        st = HN_FAIL(err, HONE_E_UNSUPPORTED,
                     "%s: the tokenizer ends no text with a separator, and there is no template for reranking "
                     "(tokenizer.chat_template.rerank)",
                     HN_ESC(m->path, strlen(m->path)));
    int32_t separator = st == HONE_OK ? ends.data[ends.n - 1] : -1;
    if (st == HONE_OK && begins && ends.n > 1) st = hn_ids_put(ids, ends.data[0], err);
    if (st == HONE_OK) st = hn_vocab_encode(v, query.ptr, query.len, 0, ids, err);
    for (int i = 0; st == HONE_OK && i < 1 + twice; i++) st = hn_ids_put(ids, separator, err);
    if (st == HONE_OK) st = hn_vocab_encode(v, document.ptr, document.len, 0, ids, err);
    if (st == HONE_OK) st = hn_ids_put(ids, separator, err);
    free(ends.data);
    return st;
}

hone_status hone_rank_tokenize(const hone_model *m, const char *instruction, const char *query, size_t n_query,
                               const char *document, size_t n_document, int32_t **ids, size_t *n, hone_error *err)
{
    HN_FLOATS;
    const hn_vocab *v;
    hn_ids list = { 0 };
    hone_str t = { 0 }, q = { query, n_query }, d = { document, n_document };
    bool found = false;
    if (ids) *ids = NULL;
    if (n) *n = 0;
    HN_NEED(err, m, "an open model");
    if (n_query) HN_NEED(err, query, "a pointer to n_query bytes");
    if (n_document) HN_NEED(err, document, "a pointer to n_document bytes");
    HN_NEED(err, ids, "a place for the ids");
    HN_NEED(err, n, "a place for their number");
    if (n_query > MOST_BYTES || n_document > MOST_BYTES)
        return HN_FAIL(err, HONE_E_ARG, "a query and a document of %zu and %zu bytes, expected at most %d each",
                       n_query, n_document, MOST_BYTES);
    if (!q.ptr) q.ptr = "";
    if (!d.ptr) d.ptr = "";
    hone_status st = hn_model_vocab(m, &v, err);
    if (st == HONE_OK) st = hn_gguf_get_str(m->file, "tokenizer.chat_template.rerank", &t, &found, err);
    if (st == HONE_OK && !found && m->arch && !m->hp.both) t = str_of(qwen3);
    if (st == HONE_OK)
        st = t.len ? by_template(v, t, instruction, q, d, &list, err) : by_separators(m, v, q, d, &list, err);
    if (st != HONE_OK) {
        free(list.data);
        return st;
    }
    *ids = list.data;
    *n = list.n;
    return HONE_OK;
}
