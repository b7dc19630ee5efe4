/* The calls of tokenizers, streams of text and chat templates: a part of api_calls.h, which has what they work on. */
#ifndef HN_API_CALLS_TEXT_H
#define HN_API_CALLS_TEXT_H

static void c_tokenize(void)
{
    int32_t *ids = (int32_t *)1;
    size_t n = 77;
    STATUS(hone_tokenize(NEED("m", model), NEED("text", "abc"), RANGE("len", (size_t)3), RANGE("flags", 0),
                         NEED("ids", &ids), NEED("n", &n), aw->err));
    EMPTY("ids", !ids);
    EMPTY("n", n == 0);
    if (!aw->failed) hone_free(ids);
}
static void c_tokenize_spans(void)
{
    int32_t *ids = (int32_t *)1;
    hone_span *spans = (hone_span *)1;
    size_t n = 77;
    STATUS(hone_tokenize_spans(NEED("m", model), NEED("text", "abc"), RANGE("len", (size_t)3),
                               RANGE("flags", HONE_TOK_ADD + 0), NEED("ids", &ids), NEED("spans", &spans),
                               NEED("n", &n), aw->err));
    EMPTY("ids", !ids);
    EMPTY("spans", !spans);
    EMPTY("n", n == 0);
    if (aw->failed) return;
    hone_free(ids);
    hone_free(spans);
}
static void c_token_piece(void)
{
    size_t len = 77;
    NEUTRAL(!hone_token_piece(NEED("m", model), RANGE("id", 9), false, NEED("len", &len)));
    EMPTY("len", len == 0);
}
static void c_detokenize(void)
{
    const int32_t ids[] = { 70, 71 };
    char *text = (char *)1;
    size_t len = 77;
    STATUS(hone_detokenize(NEED("m", model), NEED("ids", ids), TRUST("n", 2), false, NEED("text", &text),
                           NEED("len", &len), aw->err));
    EMPTY("text", !text);
    EMPTY("len", len == 0);
    if (!aw->failed) hone_free(text);
}
static void c_token_is_eog(void) { NEUTRAL(!hone_token_is_eog(NEED("m", model), RANGE("id", (int32_t)DF_EOS))); }
static void c_token_kind(void) { NEUTRAL(hone_token_kind(NEED("m", model), RANGE("id", 70)) == HONE_TOKEN_UNKNOWN); }
static void c_token_bos(void) { NEUTRAL(hone_token_bos(NEED("m", model)) == -1); }
static void c_token_fim(void)
{
    assert_int_equal(hone_token_fim(NEED("m", model), (hone_fim)ANY("which", 0)), -1); /* this model has none */
    NEUTRAL(aw_is("m"));
}
static void c_token_eos(void) { NEUTRAL(hone_token_eos(NEED("m", model)) == -1); }
static void c_free(void)
{
    void *p = malloc(1);
    hone_free(MAY("p", p));
    NEUTRAL(false);
    if (aw_is("p")) free(p);
}
static void c_stream_new(void)
{
    hone_stream *out = (hone_stream *)1;
    const char *stops[] = { "ab", NEED("stops[1]", "cd") };
    STATUS(hone_stream_new(NEED("out", &out), NEED("m", model), NEED("stops", stops), RANGE("n_stops", (size_t)2),
                           aw->err));
    EMPTY("out", !out);
    if (!aw->failed) hone_stream_free(out);
}
static void c_stream_free(void)
{
    hone_stream *s;
    assert_int_equal(hone_stream_new(&s, model, NULL, 0, NULL), HONE_OK);
    hone_stream_free(MAY("s", s));
    NEUTRAL(false);
    if (aw_is("s")) hone_stream_free(s);
}
static void c_stream_push(void)
{
    const char *text = "x";
    size_t len = 77;
    bool stopped = true;
    STATUS(hone_stream_push(NEED("s", stream), RANGE("id", 70), NEED("text", &text), NEED("len", &len),
                            NEED("stopped", &stopped), aw->err));
    EMPTY("text", !*text);
    EMPTY("len", len == 0);
    EMPTY("stopped", !stopped);
}
static void c_stream_flush(void)
{
    const char *text = "x";
    size_t len = 77;
    STATUS(hone_stream_flush(NEED("s", stream), NEED("text", &text), NEED("len", &len), aw->err));
    EMPTY("text", !*text);
    EMPTY("len", len == 0);
}

static hone_chat_params chat_params(void)
{
    return (hone_chat_params){ .messages = NEED("p->messages", messages),
                               .tools = MAY("p->tools", "[]"),
                               .variables = MAY("p->variables", "{}"),
                               .chat_template = MAY("p->chat_template", "chatml"),
                               .now = MAY("p->now", "2026-02-03T04:05:06") };
}
static void c_chat_render(void)
{
    hone_chat_text out;
    hone_chat_params p = chat_params();
    memset(&out, 1, sizeof out);
    STATUS(hone_chat_render(MAY("m", model), NEED("p", &p), NEED("out", &out), aw->err));
    EMPTY("out", ZERO(out));
    if (!aw->failed) hone_chat_text_free(&out);
}
static void c_chat_text_free(void)
{
    hone_chat_text t = { .text = malloc(1), .len = 1 };
    hone_chat_text_free(MAY("t", &t));
    NEUTRAL(false);
    if (aw_is("t")) hone_chat_text_free(&t);
}
static void c_chat_tokenize(void)
{
    int32_t *ids = (int32_t *)1;
    size_t n = 77;
    hone_chat_params p = chat_params();
    STATUS(hone_chat_tokenize(NEED("m", model), NEED("p", &p), NEED("ids", &ids), NEED("n", &n), aw->err));
    EMPTY("ids", !ids);
    EMPTY("n", n == 0);
    if (!aw->failed) hone_free(ids);
}
static void c_chat_mark(void)
{
    const int32_t ids[] = { 5, 6 };
    size_t mark = 77;
    hone_chat_params p = chat_params();
    STATUS(
        hone_chat_mark(NEED("m", model), NEED("p", &p), NEED("ids", ids), TRUST("n", 2), NEED("mark", &mark), aw->err));
    EMPTY("mark", mark == 0);
}
static void c_chat_template(void)
{
    hone_str s = { "x", 1 };
    STATUS(hone_chat_template(NEED("m", model), false, NEED("source", &s), aw->err));
    EMPTY("source", !s.ptr && !s.len);
}
static void c_template_render(void)
{
    char *text = (char *)1;
    size_t n = 77;
    STATUS(hone_template_render(NEED("source", "a{{ x }}"), RANGE("len", (size_t)8), NEED("name", "t"),
                                NEED("context", "{\"x\": 1}"), MAY("now", "2026-02-03T04:05:06"), NEED("text", &text),
                                NEED("n", &n), aw->err));
    EMPTY("text", !text);
    EMPTY("n", n == 0);
    if (!aw->failed) hone_free(text);
}

#endif
