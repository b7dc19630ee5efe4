/* Fuzz target: conversations as callers send them, for a model with a template. The input is pieces with a byte 0
 * behind each: settings, messages, tools, variables, template, time, what a model answers. A conversation that is
 * rendered has sound spans and becomes tokens of the vocabulary. With more than one byte of settings an answer is read
 * as well, in the template's format, with the tools: what a mask allows is taken, parts are what they may be.
 * covers: src/text/chat.c src/text/chat_turns.c src/engine/api_chat.c
 * covers: src/template/jinja_json.c src/template/jinja_format.c src/text/reply_format.c
 * covers: src/text/call_format.c src/text/call_grammar.c src/text/call_kit.c
 * covers: src/text/reply.c src/text/reply_mask.c src/text/call_reader.c src/text/call_values.c src/text/chat_calls.c */
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
        hone_status none = template && *template ? HONE_E_FORMAT : HONE_E_UNSUPPORTED;
        FF_MUST(st == HONE_OK ? s.len > 0 : st == none && e.message[0]);
        hn_gguf_close(g);
        bb_free(&b);
    }
}

/* ---- answers ---------------------------------------------------------------------------------------------- */

static const hone_model *model;
static int32_t n_vocab;

static void think(const hone_chat_params *p, unsigned how)
{
    static const char *const words[] = { "on", "off", "low", "high", "max", "much" };
    hone_error e = { 0 };
    char *variables;
    hone_status st = hone_chat_think(model, p, words[how % 6], &variables, &e);
    FF_MUST((st == HONE_OK) == (variables != NULL) && (variables || e.message[0]));
    hone_free(variables);
}

static hone_grammar *form_of(unsigned how)
{
    static const char schema[] = "{\"type\":\"object\",\"properties\":{\"k\":{\"type\":\"integer\"}}}";
    hone_grammar *g = NULL;
    hone_grammar_params p = { .kind = HONE_GRAMMAR_JSON_SCHEMA, .text = schema, .len = sizeof schema - 1 };
    if (how & 64) FF_MUST(hone_grammar_compile(&g, &p, NULL) == HONE_OK);
    return g;
}

/* The token that a byte of the input chooses among those that may come; -1: none may. */
static int32_t choose(hone_reply *r, unsigned byte)
{
    uint64_t mask[64];
    bool all;
    size_t words = ((size_t)n_vocab + 63) / 64;
    int32_t n = 0, id = (int32_t)(byte % (unsigned)n_vocab);
    FF_MUST(words <= 64 && hone_reply_mask(r, mask, words, &all, NULL) == HONE_OK);
    if (all || mask[id / 64] >> id % 64 & 1) return id;
    for (size_t i = 0; i < words; i++) n += __builtin_popcountll(mask[i]);
    if (!n) return -1;
    n = (int32_t)(byte % (unsigned)n);
    for (id = 0; !(mask[id / 64] >> id % 64 & 1) || n--; id++) continue;
    return id;
}

static void take(const hone_reply_part *p, size_t n, int *open)
{
    for (size_t i = 0; i < n; i++) {
        FF_MUST(p[i].part <= HONE_PART_CALL_END && (p[i].len > 0 || p[i].part == HONE_PART_CALL_END));
        FF_MUST((p[i].part == HONE_PART_CALL_NAME) == (p[i].id != NULL));
        if (p[i].part >= HONE_PART_CALL_NAME) FF_MUST(p[i].call >= 0);
        if (p[i].part == HONE_PART_ARGUMENTS || p[i].part == HONE_PART_CALL_END) FF_MUST(*open == p[i].call);
        if (p[i].part >= HONE_PART_CALL_NAME) *open = p[i].part == HONE_PART_CALL_END ? -1 : p[i].call;
    }
}

static void answer(hone_chat_format *f, const hone_chat_params *p, const hone_chat_text *prompt, unsigned how,
                   const char *said)
{
    static const char *const stops[] = { "STOP", "\n\n" }, *const names[] = { "f", "g" };
    hone_error e = { 0 };
    hone_reply *r = NULL;
    const hone_reply_part *parts;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    size_t n;
    int open = -1;
    hone_grammar *form = form_of(how);
    hone_reply_params q = { .format = f,
                            .prompt = prompt->text ? prompt : NULL,
                            .stops = stops,
                            .n_stops = how & 1 ? 2 : 0,
                            .tools = p->tools,
                            .tool_choice = (hone_tool_choice)(how >> 1 & 3),
                            .names = names,
                            .n_names = how & 8 ? 1 + (how >> 7 & 1) : 0,
                            .one_call = how & 16,
                            .marks_as_text = how & 32,
                            .form = form,
                            .reasoning_budget = how & 128 ? 3 : -1 };
    hone_status st = how ? hone_reply_open(&r, &q, &e) : hone_reply_new(&r, f, q.prompt, stops, 2, &e);
    FF_MUST((st == HONE_OK) == (r != NULL) && (r || e.message[0]));
    for (; r && said && *said && !end; said++) {
        int32_t id = choose(r, (unsigned char)*said);
        if (id < 0) break;
        st = hone_reply_push(r, id, &parts, &n, &end, &e);
        FF_MUST(st == HONE_OK);
        take(parts, n, &open);
    }
    if (r) {
        const char *stop = hone_reply_stop(r);
        FF_MUST(hone_reply_notes(r) && (end == HONE_REPLY_STOP) == (stop != NULL));
        FF_MUST(hone_reply_flush(r, &parts, &n, &e) == HONE_OK);
        take(parts, n, &open);
        /* one may be in what was held back; of an answer that had ended nothing changes */
        FF_MUST(!end || (n == 0 && hone_reply_stop(r) == stop));
    }
    hone_reply_free(r);
    hone_grammar_free(form);
}

/* The template's format: of the model, and of the template alone. */
static void answers(const hone_chat_params *p, const hone_chat_text *prompt, const char *how, const char *said)
{
    hone_error e = { 0 };
    hone_chat_format *f, *bare;
    unsigned first = (unsigned char)how[0], second = first ? (unsigned char)how[1] : 0;
    think(p, second);
    hone_status st = hone_chat_format_new(&f, model, p, &e);
    FF_MUST((st == HONE_OK) == (f != NULL) && (f || e.message[0]));
    if (!f) return;
    json_t *o = json_loads(hone_chat_format_json(f), 0, NULL);
    FF_MUST(json_is_object(o));
    json_decref(o);
    answer(f, p, prompt, first - 1, said);
    if (second & 64) answer(f, p, prompt, first - 1, said); /* with tools that are kept */
    if (second & 128) {
        hone_reply *none;
        FF_MUST(hone_chat_format_new(&bare, NULL, p, &e) == HONE_OK && hone_chat_format_json(bare));
        FF_MUST(hone_reply_new(&none, bare, NULL, NULL, 0, &e) == HONE_E_ARG);
        hone_chat_format_free(bare);
    }
    hone_chat_format_free(f);
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
        model = m;
        n_vocab = info.n_vocab;
    }
    char *how = piece(&in), *messages = piece(&in), *tools = piece(&in), *variables = piece(&in),
         *template = piece(&in), *now = piece(&in), *said = piece(&in);
    unsigned flags = how ? (unsigned char)how[0] : 0;
    hone_chat_params p = { .messages = messages ? messages : "[{\"role\": \"user\", \"content\": \"hi\"}]",
                           .tools = tools,
                           .variables = variables,
                           .now = now,
                           .chat_template = template ? template : formats[flags % 10],
                           .add_generation_prompt = flags & 16,
                           .trust_input = flags & 32,
                           .continue_final = flags & 128 };
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
    }
    if (how && how[1]) answers(&p, &out, how + 1, said);
    hone_chat_text_free(&out);
    hone_str source;
    char *text = NULL;
    if (hone_chat_template(m, flags & 64, &source, &e) != HONE_OK) FF_MUST(e.message[0]);
    if (template && variables &&
        hone_template_render(template, strlen(template), "fuzz", variables, now, &text, &n, &e) == HONE_OK)
        FF_MUST(text[n] == 0);
    hone_free(text);
    of_a_file(template);
    free(how), free(messages), free(tools), free(variables), free(template), free(now), free(said);
    return 0;
}
