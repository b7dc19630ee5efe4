/* Fuzz target: conversations as callers send them, for a model with a template. The input is pieces with a byte 0
 * behind each: settings, messages, tools, variables, template, time. A conversation that is rendered has sound spans
 * and becomes tokens of the vocabulary.
 * covers: src/text/chat.c src/engine/api_chat.c src/template/jinja_json.c src/template/jinja_format.c */
#include "../unit/gguf_bytes.h"
#include "fuzz_models.h"
#include "text/chat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* NUL-terminated and malloc'ed; NULL for an empty piece. */
static char *piece(ff_in *in)
{
    ff_in p = ff_until(in, 0);
    char *s = p.n ? malloc(p.n + 1) : NULL;
    if (s) memcpy(s, p.p, p.n), s[p.n] = 0;
    return s;
}

/* The template as a file holds it: source, the name of a format, or neither. */
static void of_a_file(const char *template)
{
    for (int tools = 0; tools < 2; tools++) {
        bb b = bb_head(3, 0, 1 + (template != NULL));
        hone_error e = { 0 };
        hn_gguf *g;
        hone_str s;
        bb_kv_str(&b, "general.architecture", "llama");
        if (template) bb_kv_str(&b, tools ? "tokenizer.chat_template.tool_use" : "tokenizer.chat_template", template);
        bb_pad(&b, 32);
        FF_MUST(hn_gguf_parse(&g, b.p, b.n, "fuzz", &e) == HONE_OK);
        hone_status st = hn_chat_source(&s, g, NULL, NULL, tools, &e);
        FF_MUST(st == HONE_OK ? s.len > 0 : st == HONE_E_UNSUPPORTED && e.message[0]);
        hn_gguf_close(g);
        bb_free(&b);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = { "chatml", "llama2",   "mistral",   "gemma",   "phi3",
                                           "zephyr", "deepseek", "command-r", "gpt-oss", "rwkv-world" };
    static hone_model *m;
    static hone_model_info info;
    ff_in in = { data, size };
    if (!m) {
        ff_begin();
        m = fm_open("llama");
        hone_model_get_info(m, &info);
    }
    char *how = piece(&in), *messages = piece(&in), *tools = piece(&in), *variables = piece(&in),
         *template = piece(&in), *now = piece(&in);
    unsigned flags = how ? (unsigned char)how[0] : 0;
    hone_chat_params p = { .messages = messages ? messages : "[{\"role\": \"user\", \"content\": \"hi\"}]",
                           .tools = tools,
                           .variables = variables,
                           .now = now,
                           .chat_template = template ? template : formats[flags % 10],
                           .add_generation_prompt = flags & 16,
                           .trust_input = flags & 32 };
    hone_chat_text out;
    hone_error e = { 0 };
    int32_t *ids = NULL;
    size_t n = 0;
    hone_status st = hone_chat_render(m, &p, &out, &e);
    FF_MUST(st == HONE_OK || (e.message[0] && !out.text));
    if (st == HONE_OK) {
        FF_MUST(out.text[out.len] == 0);
        for (size_t i = 0; i < out.n_input; i++)
            FF_MUST(out.input[i].begin < out.input[i].end && out.input[i].end <= out.len &&
                    (!i || out.input[i].begin > out.input[i - 1].end));
        st = hone_chat_tokenize(m, &p, &ids, &n, &e);
        FF_MUST(st == HONE_OK || e.message[0]);
        for (size_t i = 0; i < n; i++) FF_MUST(ids[i] >= 0 && ids[i] < info.n_vocab);
        hone_free(ids);
        hone_chat_text_free(&out);
    }
    hone_str source;
    char *text = NULL;
    if (hone_chat_template(m, flags & 64, &source, &e) != HONE_OK) FF_MUST(e.message[0]);
    if (template && variables &&
        hone_template_render(template, strlen(template), "fuzz", variables, now, &text, &n, &e) == HONE_OK)
        FF_MUST(text[n] == 0);
    hone_free(text);
    of_a_file(template);
    free(how), free(messages), free(tools), free(variables), free(template), free(now);
    return 0;
}
