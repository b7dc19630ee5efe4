/* Fuzzes bodies of requests and the answers to them: any bytes as a body of any route. What is refused says why, in
 * JSON; what is taken keeps within its limits, what it hands on is JSON that hone reads, and every answer of its voice
 * is whole JSON without a line end, streamed or not. Input: route, kind, then the body; or, for odd kinds, bytes that
 * choose among names and values of the fields, so that the body is JSON of known names.
 * covers: src/serve/ask_fields.c src/serve/ask_groups.c src/serve/ask_chat.c src/serve/ask_turns.c src/serve/bytes.c
 * covers: src/serve/ask_responses.c src/serve/ask_ollama.c src/serve/voice_anthropic.c src/serve/voice_embed.c
 * covers: src/serve/voice_native.c src/serve/voice_openai_text.c src/serve/voice_tokens.c
 * covers: src/serve/voice_responses.c src/serve/voice_openai_chat.c src/base/json_tree.c */
#include "../unit/ask_cases.h"
#include "../unit/voice_says.h"
#include "base/json_tree.h"
#include "serve/ask_fields.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- bodies of known names ---------------------------------------------------------------- */

static const char *const names[] = {
    "messages",
    "role",
    "content",
    "type",
    "text",
    "tool_calls",
    "id",
    "function",
    "name",
    "arguments",
    "tool_call_id",
    "reasoning_content",
    "tools",
    "tool_choice",
    "parameters",
    "strict",
    "input",
    "instructions",
    "max_tokens",
    "max_output_tokens",
    "prompt",
    "suffix",
    "stop",
    "n",
    "seed",
    "temperature",
    "top_p",
    "top_k",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "stream",
    "stream_options",
    "include_usage",
    "response_format",
    "json_schema",
    "schema",
    "grammar",
    "structured_outputs",
    "choice",
    "regex",
    "lora",
    "scale",
    "cache_salt",
    "system",
    "thinking",
    "budget_tokens",
    "output_config",
    "effort",
    "format",
    "stop_sequences",
    "tool_use_id",
    "input_schema",
    "call_id",
    "output",
    "summary",
    "reasoning",
    "include",
    "options",
    "num_predict",
    "num_ctx",
    "keep_alive",
    "think",
    "context",
    "raw",
    "tool_name",
    "documents",
    "query",
    "top_n",
    "dimensions",
    "encoding_format",
    "tokens",
    "input_prefix",
    "input_suffix",
    "input_extra",
    "filename",
    "response_fields",
    "n_probs",
    "allowed_tools",
    "mode",
    "echo",
    "prompt_logprobs",
    "continue_final_message",
    "add_generation_prompt",
    "chat_template_kwargs",
    "metadata",
    "model",
    "modalities",
    "parallel_tool_calls",
    "reasoning_effort",
    "reasoning_format",
    "reasoning_budget",
    "function_call",
    "audio",
    "refusal",
    "with_pieces",
    "add_special",
    "filename",
    "bias",
    "cache_prompt",
    "id_slot",
    "timings_per_token",
    "return_tokens",
    "disable_parallel_tool_use",
    "max_completion_tokens",
};
static const char *const values[] = {
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "3.0",
    "2.5",
    "18446744073709551615",
    "1e300",
    "999",
    "1000",
    "64",
    "\"user\"",
    "\"assistant\"",
    "\"system\"",
    "\"tool\"",
    "\"developer\"",
    "\"text\"",
    "\"function\"",
    "\"json_schema\"",
    "\"json_object\"",
    "\"input_text\"",
    "\"output_text\"",
    "\"message\"",
    "\"reasoning\"",
    "\"function_call\"",
    "\"function_call_output\"",
    "\"tool_use\"",
    "\"tool_result\"",
    "\"thinking\"",
    "\"enabled\"",
    "\"auto\"",
    "\"required\"",
    "\"none\"",
    "\"any\"",
    "\"low\"",
    "\"c1\"",
    "\"f\"",
    "\"hi\"",
    "\"\"",
    "\"a\\u0000b\"",
    "\"\\ud83d\\ude00\"",
    "\"5m\"",
    "\"base64\"",
    "\"{\\\"a\\\":1}\"",
    "\"x-anthropic-billing-header: cch=abcde;\"",
    "\"allowed_tools\"",
    "\"json\"",
    "\"disabled\"",
    "\"refusal\"",
    "[{\"role\":\"user\",\"content\":\"hi\"}]",
    "[{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c1\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]},{"
    "\"role\":"
    "\"tool\",\"tool_call_id\":\"c1\",\"content\":[{\"type\":\"text\",\"text\":\"r\"}]}]",
    "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
    "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}",
    "[{\"type\":\"function\",\"name\":\"f\"}]",
    "[1,2,\"x\"]",
    "[\"a\",\"b\"]",
    "{\"type\":\"json_object\"}",
    "{\"type\":\"allowed_tools\",\"mode\":\"auto\",\"tools\":[{\"name\":\"f\"}]}",
    "{\"5\":1}",
    "[[5,false],[\"x\",1]]",
};
enum { N_NAMES = sizeof names / sizeof *names, N_VALUES = sizeof values / sizeof *values, MAX_BODY = 1 << 14 };

typedef struct maker {
    const uint8_t *p, *end;
    hn_bytes o;
} maker;

static unsigned next(maker *m) { return m->p < m->end ? *m->p++ : 0; }

static void make_value(maker *m, int depth)
{
    unsigned c = next(m);
    if (m->o.n > MAX_BODY || depth == 0 || c < 0x80) {
        hn_bytes_text(&m->o, values[next(m) % N_VALUES]);
        return;
    }
    bool object = c < 0xE0;
    hn_bytes_text(&m->o, object ? "{" : "[");
    for (unsigned i = 0; i < c % 8 && m->p < m->end; i++) {
        if (i) hn_bytes_text(&m->o, ",");
        if (object) hn_bytes_printf(&m->o, "\"%s\":", names[next(m) % N_NAMES]);
        make_value(m, depth - 1);
    }
    hn_bytes_text(&m->o, object ? "}" : "]");
}

/* The route's main field and others, each once: a name that comes twice would end it. */
static void make_body(maker *m)
{
    bool used[N_NAMES] = { false };
    hn_bytes_text(&m->o, "{");
    while (m->p < m->end && m->o.n < MAX_BODY) {
        unsigned c = next(m) % N_NAMES;
        if (used[c]) continue;
        used[c] = true;
        hn_bytes_comma(&m->o);
        hn_bytes_printf(&m->o, "\"%s\":", names[c]);
        make_value(m, 6);
    }
    hn_bytes_text(&m->o, "}");
}

/* ---- promises ---------------------------------------------------------------------------- */

static void must_be_json(const char *s, size_t n, bool line)
{
    json_t *v;
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_BIG | HN_JSON_UNIQUE };
    if (line) FF_MUST(!memchr(s, '\n', n));
    hone_error err;
    if (hn_json_tree(&v, s, n, &rules, "answer", &err) != HONE_OK)
        fprintf(stderr, "%s\n%.*s\n", err.message, (int)n, s);
    FF_MUST(v);
    json_decref(v);
}

static void refused(const char *path, const hn_refusal *r)
{
    hn_bytes o = { 0 };
    FF_MUST(r->status == 400 && strlen(r->message) > 5 && r->type && r->code);
    FF_MUST(hn_refusal_body(path, r, "id", &o));
    must_be_json(o.p, o.n, true);
    hn_bytes_free(&o);
}

static void within_limits(const hn_ask *a, const hn_limits *l)
{
    FF_MUST(a->n >= 1 && a->n <= l->n_slots && a->max_tokens >= -1 && a->top_logprobs >= -1 && a->top_logprobs <= 64);
    FF_MUST(a->sampling.temp >= 0 && a->sampling.temp <= 5 && a->sampling.top_p >= 0 && a->sampling.top_p <= 1);
    FF_MUST(a->sampling.top_k >= 0 && a->sampling.repeat_penalty > 0 && a->reasoning_budget >= -1);
    FF_MUST(a->n_stops <= HN_ASK_STOPS && a->ignored && a->n_prompt <= 2048);
    for (size_t i = 0; i < a->n_stops; i++) FF_MUST(*a->stops[i] && strlen(a->stops[i]) <= 256);
    for (size_t i = 0; i < a->n_bias; i++)
        FF_MUST(a->bias[i].text || (a->bias[i].id >= 0 && a->bias[i].id < l->n_vocab));
    for (size_t i = 0; i < a->n_tool_names; i++) FF_MUST(a->tools && strstr(a->tools, a->tool_names[i]));
    for (size_t i = 0; i < a->n_prompt; i++)
        for (const hn_ask_prompt *p = a->prompt + i; p; p = p->more)
            for (size_t k = 0; !p->text && k < p->n; k++) FF_MUST(p->ids[k] >= 0 && p->ids[k] < l->n_vocab);
    bool chat = a->kind == HN_ASK_CHAT || a->kind == HN_ASK_COUNT || a->kind == HN_ASK_RENDER;
    FF_MUST(chat == (a->messages != NULL));
    FF_MUST(a->kind != HN_ASK_INFILL || (a->prefix && a->suffix));
    FF_MUST(!a->continue_final || !a->generation_prompt);
    const char *texts[] = { a->messages, a->tools, a->variables };
    for (size_t i = 0; i < 3; i++)
        if (texts[i]) must_be_json(texts[i], strlen(texts[i]), true);
    if (a->has_form && a->form.kind == HONE_GRAMMAR_JSON_SCHEMA && a->form.text[0] == '{')
        FF_MUST(a->form.len == strlen(a->form.text));
}

/* An answer of the route's voice, both ways. */
static void answered(const hn_ask *a, const said *s)
{
    hn_bytes o = { 0 };
    void *state;
    const hn_voice *v = a->voice;
    if (v->whole && a->kind != HN_ASK_LOAD) {
        FF_MUST(voice_whole(a, s, &o));
        must_be_json(o.p, o.n, true);
        o.n = 0;
        FF_MUST(voice_stream(a, s, true, &o, &state));
        v->drop(state);
        FF_MUST(o.n == 0 || o.p[o.n - 1] == '\n');
        for (char *p = o.p, *end = o.p + o.n, *eol; p < end; p = eol + 1) {
            eol = memchr(p, '\n', (size_t)(end - p));
            FF_MUST(eol);
            size_t n = (size_t)(eol - p);
            if (*p == '{') must_be_json(p, n, true);
            if (n > 6 && !memcmp(p, "data: {", 7)) must_be_json(p + 6, n - 6, true);
        }
    }
    if (v->found) {
        enum { INPUTS = 2048, DIM = 2 };
        static float numbers[INPUTS * DIM];
        const hn_found f = { .n_tokens = 3,
                             .ids = (int32_t[]){ 1, 2 },
                             .n_ids = 2,
                             .text = "x\xFF",
                             .len = 2,
                             .pieces = (hone_str[]){ { "a", 1 }, { "\xC3", 1 } },
                             .input = (hone_span[]){ { 0, 1 } },
                             .n_input = 1,
                             .vectors = numbers,
                             .n_dim = DIM,
                             .scores = numbers,
                             .total_ms = 1 };
        o.n = 0;
        FF_MUST(v->found(a, &voice_head, &f, &o));
        size_t n = o.n && o.p[o.n - 1] == '\n' ? o.n - 1 : o.n;
        must_be_json(o.p, n, true);
    }
    hn_bytes_free(&o);
}

/* Any bytes as names, texts and numbers of an object: it is JSON, and numbers come back as they were. */
static void written(const uint8_t *p, size_t n)
{
    char name[20] = "";
    uint64_t bits = 0;
    double d;
    float f;
    memcpy(name, p, n < sizeof name - 1 ? n : sizeof name - 1);
    memcpy(&bits, p, n < 8 ? n : 8);
    memcpy(&d, &bits, 8);
    memcpy(&f, &bits, 4);
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{");
    hn_bytes_text_member(&o, "text", name);
    hn_bytes_int_member(&o, "int", (int64_t)bits);
    hn_bytes_name(&o, "f64"), hn_bytes_f64(&o, d);
    hn_bytes_name(&o, "f32"), hn_bytes_f32(&o, f);
    hn_bytes_name(&o, "bytes"), hn_bytes_json(&o, (const char *)p, n);
    hn_bytes_name(&o, "none"), hn_bytes_json(&o, NULL, 0);
    hn_bytes_name(&o, "base64"), hn_bytes_text(&o, "\""), hn_bytes_base64(&o, p, n), hn_bytes_text(&o, "\"");
    hn_bytes_text(&o, "}");
    FF_MUST(hn_bytes_ok(&o));
    json_t *v;
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL };
    FF_MUST(hn_json_tree(&v, o.p, o.n, &rules, "written", NULL) == HONE_OK);
    FF_MUST(json_integer_value(json_object_get(v, "int")) == (json_int_t)bits);
    FF_MUST(!isfinite(d) || json_real_value(json_object_get(v, "f64")) == d);
    FF_MUST(!isfinite(f) || (float)json_real_value(json_object_get(v, "f32")) == f);
    FF_MUST(json_string_length(json_object_get(v, "base64")) == (n + 2) / 3 * 4);
    json_decref(v);
    hn_bytes_free(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hn_limits l = ask_limits();
    hn_ask a;
    hn_refusal r = { 0 };
    const char *path;
    bool ollama;
    size_t n_routes = 0;
    while (hn_voice_route(n_routes, &path, &ollama)) n_routes++;
    if (size < 2) return 0;
    written(data, size);
    hn_voice_route(data[0] % n_routes, &path, &ollama);
    l.strict_fields = data[1] & 2;
    l.lenient_tools = data[1] & 4;
    l.openai_defaults = data[1] & 8;

    maker m = { .p = data + 2, .end = data + size };
    if (data[1] & 1) make_body(&m);
    else hn_bytes_add(&m.o, data + 2, size - 2);
    char *own = malloc(m.o.n ? m.o.n : 1); /* of exactly its size */
    FF_MUST(own);
    if (m.o.n) memcpy(own, m.o.p, m.o.n);
    bool ok = hn_ask_read(&a, hn_voice_find("POST", path, true), own, m.o.n, &l, &r);
    free(own);
    if (ok) {
        within_limits(&a, &l);
        answered(&a, answers + data[1] / 16 % N_ANSWERS);
        hn_ask_free(&a);
    } else {
        FF_MUST(!a.arena);
        refused(path, &r);
    }
    hn_bytes_free(&m.o);
    return 0;
}
