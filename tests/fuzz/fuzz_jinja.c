/* Fuzzes the template interpreter: the input is a template, and behind a NUL the JSON of
 * its variables. Whatever they are, it ends within its limits, the same way each time,
 * with an error that names a place or with text whose spans are sound.
 * covers: src/template/jinja_lex.c src/template/jinja_parse.c src/template/jinja_eval.c
 * covers: src/template/jinja_ops.c src/template/jinja_value.c src/template/jinja_strings.c
 * covers: src/template/jinja_filters.c src/template/jinja_tests.c src/template/jinja_methods.c
 * covers: src/template/jinja_format.c src/template/jinja_json.c */
#include "text/chat.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char fixed[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"be\"}, {\"role\": \"user\", \"content\": \"hi <|im_end|>\"},"
    " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": "
    "{\"a\": 1}}}]}],"
    " \"tools\": [{\"type\": \"function\"}], \"add_generation_prompt\": true, \"bos_token\": \"<s>\", \"a\": 1, \"b\": "
    "2.5, \"s\": \"Hello World\","
    " \"l\": [3, 1, 2], \"ls\": [\"x\", \"y\"], \"d\": {\"k\": \"v\", \"n\": 1}, \"o\": [{\"r\": \"u\", \"c\": "
    "\"one\"}, {\"r\": \"a\", \"c\": \"two\"}],"
    " \"u8\": \"\xC3\x89t\xC3\xA9 \xE4\xBD\xA0 \xF0\x9F\x98\x80\", \"n\": null, \"t\": true, \"f\": false, \"e\": "
    "\"\", \"ml\": \"l1\\nl2\"}";

static void must(bool ok)
{
    if (!ok) abort();
}

static void check_text(const hn_jinja_text *t)
{
    must(t->text && t->text[t->len] == 0);
    for (size_t i = 0; i < t->n_input; i++) {
        must(t->input[i].begin < t->input[i].end && t->input[i].end <= t->len);
        must(!i || t->input[i].begin > t->input[i - 1].end);
    }
}

static void render(const hn_jinja *t, const json_t *context, const hn_jinja_limits *lim)
{
    static const hn_jinja_time times[] = {
        { 2026, 2, 3, 4, 5, 6 }, { 2024, 12, 30, 23, 0, 0 }, { 2023, 1, 1, 0, 0, 59 }, { 2020, 2, 29, 12, 30, 0 }
    };
    hn_jinja_time now = times[json_object_size(context) % 4];
    hn_jinja_vars vars = { .context = context, .trust_roles = true, .now = &now, .limits = *lim };
    hn_jinja_text a, b;
    hone_error ea = { 0 }, eb = { 0 };
    hone_status sa = hn_jinja_render(t, &vars, &a, &ea), sb = hn_jinja_render(t, &vars, &b, &eb);
    must(sa == sb);
    if (sa == HONE_OK) {
        check_text(&a);
        must(a.len <= lim->output_bytes && a.len == b.len && memcmp(a.text, b.text, a.len) == 0 &&
             a.n_input == b.n_input);
    } else {
        must(strncmp(ea.message, "fuzz:", 5) == 0 && strcmp(ea.message, eb.message) == 0);
        must(!a.text && !a.input && a.raised == (sa == HONE_E_ARG));
    }
    hn_jinja_text_free(&a);
    hn_jinja_text_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const hn_jinja_limits lim = {
        .steps = 50000, .depth = 150, .output_bytes = 1 << 18, .memory_bytes = 4 << 20
    };
    static json_t *usual;
    if (!usual) usual = json_loads(fixed, 0, NULL);
    must(usual != NULL);
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t n = nul ? (size_t)(nul - data) : size;
    hone_error e = { 0 };
    hn_jinja *t;
    hone_status st = hn_jinja_parse(&t, (const char *)data, n, "fuzz", &lim, &e);
    if (st != HONE_OK) {
        must(!t && strncmp(e.message, "fuzz:", 5) == 0);
        return 0;
    }
    json_t *context = nul ? json_loadb((const char *)nul + 1, size - n - 1, JSON_ALLOW_NUL, NULL) : NULL;
    render(t, json_is_object(context) ? context : usual, &lim);
    hn_chat chat = { .messages = json_object_get(usual, "messages"),
                     .tools = n % 2 ? json_object_get(usual, "tools") : NULL,
                     .bos = "<s>",
                     .eos = "",
                     .now = &(hn_jinja_time){ 2026, 2, 3, 4, 5, 6 },
                     .add_generation_prompt = true,
                     .limits = lim };
    hn_jinja_text out;
    if (hn_chat_render(t, &chat, &out, &e) == HONE_OK) check_text(&out);
    hn_jinja_text_free(&out);
    json_decref(context);
    hn_jinja_free(t);
    return 0;
}
