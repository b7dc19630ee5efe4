/* The public text functions: a model's tokenizer behind hone.h. */
#include "engine/engine.h"
#include "base/floats.h"
#include "engine/sampler.h"

#include <stdlib.h>

/* spans NULL: not asked for. */
static hone_status tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids,
                            hone_span **spans, size_t *n, hone_error *err)
{
    HN_FLOATS;
    enum { FLAGS = HONE_TOK_SPECIAL | HONE_TOK_ADD | HONE_TOK_ADD_BOS };
    const hn_vocab *v;
    hn_ids list = { 0 };
    if (flags & ~FLAGS)
        return HN_FAIL(err, HONE_E_ARG, "flags of tokenizing: %#x; expected a sum of HONE_TOK_…", (unsigned)flags);
    if (!text) text = "";
    hone_status st = hn_model_vocab(m, &v, err);
    if (st == HONE_OK)
        st = spans ? hn_vocab_locate(v, text, len, flags, &list, spans, err)
                   : hn_vocab_encode(v, text, len, flags, &list, err);
    /* an empty list is a list, too */
    if (st == HONE_OK && ((!list.data && !(list.data = malloc(sizeof *list.data))) ||
                          (spans && !*spans && !(*spans = malloc(sizeof **spans)))))
        st = HN_FAIL(err, HONE_E_NOMEM, "token ids");
    if (st != HONE_OK) {
        free(list.data);
        if (spans) free(*spans), *spans = NULL;
        return st;
    }
    *ids = list.data;
    *n = list.n;
    return HONE_OK;
}

hone_status hone_tokenize(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids, size_t *n,
                          hone_error *err)
{
    if (ids) *ids = NULL;
    if (n) *n = 0;
    HN_NEED(err, m, "an open model");
    if (len) HN_NEED(err, text, "a pointer to len bytes");
    HN_NEED(err, ids, "a place for the ids");
    HN_NEED(err, n, "a place for their number");
    return tokenize(m, text, len, flags, ids, NULL, n, err);
}

hone_status hone_tokenize_spans(const hone_model *m, const char *text, size_t len, int flags, int32_t **ids,
                                hone_span **spans, size_t *n, hone_error *err)
{
    if (ids) *ids = NULL;
    if (spans) *spans = NULL;
    if (n) *n = 0;
    HN_NEED(err, m, "an open model");
    if (len) HN_NEED(err, text, "a pointer to len bytes");
    HN_NEED(err, ids, "a place for the ids");
    HN_NEED(err, spans, "a place for the spans");
    HN_NEED(err, n, "a place for their number");
    return tokenize(m, text, len, flags, ids, spans, n, err);
}

const char *hone_token_piece(const hone_model *m, int32_t id, bool special, size_t *len)
{
    const hn_vocab *v;
    if (len) *len = 0;
    if (!m || !len || hn_model_vocab(m, &v, NULL) != HONE_OK || id < 0 || id >= hn_vocab_size(v)) return NULL;
    return hn_vocab_piece(v, id, special, len);
}

hone_status hone_detokenize(const hone_model *m, const int32_t *ids, size_t n, bool special, char **text, size_t *len,
                            hone_error *err)
{
    const hn_vocab *v;
    if (text) *text = NULL;
    if (len) *len = 0;
    HN_NEED(err, m, "an open model");
    if (n) HN_NEED(err, ids, "a pointer to n ids");
    HN_NEED(err, text, "a place for the text");
    HN_NEED(err, len, "a place for its length");
    hone_status st = hn_model_vocab(m, &v, err);
    return st == HONE_OK ? hn_vocab_decode(v, ids, n, special, text, len, err) : st;
}

bool hone_token_is_eog(const hone_model *m, int32_t id)
{
    const hn_vocab *v;
    return m && hn_model_vocab(m, &v, NULL) == HONE_OK && id >= 0 && id < hn_vocab_size(v) && hn_vocab_is_eog(v, id);
}

hone_token_class hone_token_kind(const hone_model *m, int32_t id)
{
    const hn_vocab *v;
    return m && hn_model_vocab(m, &v, NULL) == HONE_OK ? hn_vocab_class(v, id) : HONE_TOKEN_UNKNOWN;
}

int32_t hone_token_bos(const hone_model *m)
{
    const hn_vocab *v;
    return m && hn_model_vocab(m, &v, NULL) == HONE_OK ? hn_vocab_bos(v) : -1;
}

int32_t hone_token_eos(const hone_model *m)
{
    const hn_vocab *v;
    return m && hn_model_vocab(m, &v, NULL) == HONE_OK ? hn_vocab_eos(v) : -1;
}

int32_t hone_token_fim(const hone_model *m, hone_fim which)
{
    const hn_vocab *v;
    if (!m || (int)which < 0 || which >= HONE_N_FIM || hn_model_vocab(m, &v, NULL) != HONE_OK) return -1;
    return hn_vocab_fim(v, which);
}

/* hone_stream is hn_stream under its public name. */
hone_status hone_stream_new(hone_stream **out, const hone_model *m, const char *const *stops, size_t n_stops,
                            hone_error *err)
{
    const hn_vocab *v;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the stream");
    HN_NEED(err, m, "an open model");
    if (n_stops > HN_MAX_STOPS)
        return HN_FAIL(err, HONE_E_ARG, "%zu stop strings, expected at most %d", n_stops, HN_MAX_STOPS);
    if (n_stops) HN_NEED(err, stops, "a pointer to n_stops strings");
    HN_NEED_EACH(err, stops, n_stops, "a string");
    hone_status st = hn_model_vocab(m, &v, err);
    return st == HONE_OK ? hn_stream_new((hn_stream **)out, v, stops, n_stops, err) : st;
}
void hone_stream_free(hone_stream *s) { hn_stream_free((hn_stream *)s); }
hone_status hone_stream_push(hone_stream *s, int32_t id, const char **text, size_t *len, bool *stopped, hone_error *err)
{
    if (text) *text = "";
    if (len) *len = 0;
    if (stopped) *stopped = false;
    HN_NEED(err, s, "a stream");
    HN_NEED(err, text, "a place for the text");
    HN_NEED(err, len, "a place for its length");
    HN_NEED(err, stopped, "a place for the answer");
    return hn_stream_push((hn_stream *)s, id, text, len, stopped, err);
}
hone_status hone_stream_flush(hone_stream *s, const char **text, size_t *len, hone_error *err)
{
    if (text) *text = "";
    if (len) *len = 0;
    HN_NEED(err, s, "a stream");
    HN_NEED(err, text, "a place for the text");
    HN_NEED(err, len, "a place for its length");
    return hn_stream_flush((hn_stream *)s, text, len, err);
}

/* ---- what answers may not hold ------------------------------------------------------------------- */

hone_status hone_sampler_suppress(hone_sampler *s, const hone_model *model, hone_error *err)
{
    HN_NEED(err, s, "a sampler");
    HN_NEED(err, model, "a model");
    hn_gguf_array a;
    bool found = false;
    hone_status st = hn_gguf_get_array(model->file, "tokenizer.ggml.suppress_tokens", &a, &found, err);
    for (uint64_t i = 0; st == HONE_OK && found && hn_gguf_type_size(a.elem_type) == 4 && i < a.count; i++) {
        int32_t id;
        memcpy(&id, a.data + 4 * i, sizeof id);
        st = hn_sampler_forbid(s, id, err);
    }
    return st;
}
