/* The questions about conversations and answers: what a template makes of turns, and what the tokens of an answer are
 * taken for. Owns them: a change of one is a change of its hash, and needs another name for its part. */
#include "lab/quality/outer_ask.h"

#include <stdlib.h>
#include <string.h>

/* ---- conversations --------------------------------------------------------------------------------------- */

/* "[…]" with turns of the two in turn; the user's words spell a control token of the model's. */
static void talk_of(char *dst, size_t cap, int n_turn, const char *token, size_t n_token)
{
    size_t n = (size_t)snprintf(dst, cap, "[");
    for (int i = 0; i < n_turn && n < cap; i++)
        n += (size_t)snprintf(dst + n, cap - n, "%s{\"role\":\"%s\",\"content\":\"turn %d %.*s\"}", i ? "," : "",
                              i % 2 ? "assistant" : "user", i, i % 2 ? 0 : (int)n_token, token);
    if (n < cap) snprintf(dst + n, cap - n, "]");
}

/* A control token whose name a JSON string may hold as it is. */
static const char *control_token(const hn_asking *a, size_t *len)
{
    for (int32_t id = 0; id < a->info.n_vocab; id++) {
        const char *piece =
            hone_token_kind(a->m, id) == HONE_TOKEN_CONTROL ? hone_token_piece(a->m, id, true, len) : NULL;
        bool plain = piece && *len > 0 && *len < 40;
        for (size_t i = 0; plain && i < *len; i++)
            plain = piece[i] >= ' ' && piece[i] < 127 && piece[i] != '"' && piece[i] != '\\';
        if (plain) return piece;
    }
    *len = 0;
    return "";
}

hone_status hn_ask_talks(hn_asking *a)
{
    static const char tools
        [] = "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"description\":\"of a town\",\"parameters\":{"
             "\"type\":\"object\",\"properties\":{\"town\":{\"type\":\"string\"}},\"required\":[\"town\"]}}}]",
   called[] =
        "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
        "[{\"id\":\"call00001\",\"type\":\"function\",\"function\":{\"name\":\"weather\",\"arguments\":"
        "\"{\\\"town\\\":\\\"Rome\\\"}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"call00001\",\"content\":\"dry\"}]",
   variables[] = "{\"enable_thinking\":false,\"reasoning_effort\":\"high\",\"own\":\"x\"}",
   own[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ own }}{% if tools %}"
           "{{ tools|tojson }}{% endif %}{% if enable_thinking is false %}off{% endif %}";
    static const int turns[] = { 1, 2, 3, 5, 6, 7, 8, 12 };
    enum { N = sizeof turns / sizeof *turns };
    char talk[1600];
    size_t n_token;
    const char *token = control_token(a, &n_token);
    hone_status st = HONE_OK;
    for (size_t i = 0; i < 2 * N + 4 && st != HONE_E_NOMEM; i++) {
        if (i < 2 * N) talk_of(talk, sizeof talk, turns[i % N], token, n_token);
        const hone_chat_params p = { .messages = i < 2 * N ? talk : called,
                                     .tools = i % 3 == 1 || i >= 2 * N ? tools : NULL,
                                     .variables = i % 2 ? variables : NULL,
                                     .chat_template = i % 4 >= 2 ? own : NULL,
                                     .now = "2026-02-03T04:05:06",
                                     .trust_input = i % 5 == 4,
                                     .add_generation_prompt = i % 3 == 0 };
        int32_t *ids = NULL;
        size_t n = 0;
        st = hone_chat_tokenize(a->m, &p, &ids, &n, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, ids, n * sizeof *ids);
        hone_free(ids);
        hone_chat_text t = { 0 };
        if (st != HONE_E_NOMEM) st = hone_chat_render(a->m, &p, &t, &a->err);
        if (hn_asking_took(a, st)) {
            hn_asking_add(a, t.text, t.len);
            for (size_t k = 0; k < t.n_input; k++)
                hn_asking_number(a, (int64_t)t.input[k].begin), hn_asking_number(a, (int64_t)t.input[k].end);
        }
        hone_chat_text_free(&t);
    }
    return st;
}

/* ---- answers --------------------------------------------------------------------------------------------- */

static const char chatml[] = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
                             "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
                  thinks[] =
                      "{% for m in messages %}{% if m.role == 'assistant' %}[A]{% if m.reasoning_content %}<think>\n"
                      "{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}{% if m.tool_calls %}"
                      "{% for c in m.tool_calls %}\n<tool_call>\n{\"name\": \"{{ c.function.name }}\", "
                      "\"arguments\": {{ c.function.arguments|tojson }}}\n</tool_call>{% endfor %}{% endif %}[E]"
                      "{% else %}[{{ m.role }}]{{ m.content }}[E]{% endif %}{% endfor %}"
                      "{% if tools %}{{ tools|tojson }}{% endif %}{% if add_generation_prompt %}[A]{% endif %}";

static void add_parts(hn_asking *a, const hone_reply_part *part, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hn_asking_number(a, part[i].part);
        hn_asking_number(a, part[i].call);
        hn_asking_add(a, part[i].text, part[i].len);
        if (part[i].id) hn_asking_add(a, part[i].id, strlen(part[i].id));
        hn_asking_add(a, part[i].tokens, part[i].n_tokens * sizeof *part[i].tokens);
    }
}

hone_status hn_asking_answer(hn_asking *a, hone_reply *r, const char *text, size_t len, uint64_t *mask, size_t n_words)
{
    enum { ASKED = 7 };
    const hone_reply_part *parts;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    int32_t *ids = NULL;
    size_t n = 0, n_part = 0;
    hone_status st = hone_tokenize(a->m, text, len, HONE_TOK_SPECIAL, &ids, &n, &a->err);
    if (!hn_asking_took(a, st)) return st;
    for (size_t i = 0; i < n && end == HONE_REPLY_GOES_ON && st == HONE_OK; i++) {
        bool all = false;
        if (i % ASKED == 0 && hn_asking_took(a, hone_reply_mask(r, mask, n_words, &all, &a->err))) {
            hn_asking_number(a, all);
            if (!all) hn_asking_add(a, mask, n_words * sizeof *mask);
        }
        st = hone_reply_push(r, ids[i], &parts, &n_part, &end, &a->err);
        if (!hn_asking_took(a, st)) break;
        add_parts(a, parts, n_part);
        hn_asking_number(a, end);
        hn_asking_number(a, hone_reply_settled(r));
    }
    if (st != HONE_E_NOMEM && hn_asking_took(a, hone_reply_flush(r, &parts, &n_part, &a->err)))
        add_parts(a, parts, n_part);
    const char *stop = hone_reply_stop(r);
    if (stop) hn_asking_add(a, stop, strlen(stop));
    hone_free(ids);
    return st;
}

/* Each text under each choice of tools, with stops and without, marks kept and taken away. */
static hone_status answers_of(hn_asking *a, const hone_chat_format *f, const char *tools, uint64_t *mask,
                              size_t n_words)
{
    static const char *const texts[] = { "<think>\nTwo and two.\n</think>\n\nFour, a stop, and more.<|im_end|>",
                                         ("Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"town\": "
                                          "\"Rome\"}}\n</tool_call>[E]"),
                                         "<think>and no end of it",
                                         "{\"name\": \"weather\", \"parameters\": {\"town\": \"Oslo\"}}" };
    static const char *const stops[] = { "a stop", "nowhere" };
    enum { N = sizeof texts / sizeof *texts, WAYS = 5 };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N * WAYS && st != HONE_E_NOMEM; i++) {
        const size_t way = i % WAYS;
        const hone_reply_params p = { .format = f,
                                      .stops = stops,
                                      .n_stops = way % 2 ? 2 : 0,
                                      .tools = way ? tools : NULL,
                                      .tool_choice = way == 3   ? HONE_TOOLS_NONE
                                                     : way == 4 ? HONE_TOOLS_REQUIRED
                                                                : HONE_TOOLS_AUTO,
                                      .marks_as_text = way == 2,
                                      .reasoning_budget = way == 1 ? 3 : -1,
                                      .id_seed = i };
        hone_reply *r = NULL;
        st = hone_reply_open(&r, &p, &a->err);
        if (!hn_asking_took(a, st)) continue;
        st = hn_asking_answer(a, r, texts[i / WAYS], strlen(texts[i / WAYS]), mask, n_words);
        hone_reply_free(r);
    }
    return st;
}

static hone_status ask_answers(hn_asking *a)
{
    static const char tools[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":"
        "\"object\",\"properties\":{\"town\":{\"type\":\"string\"}},\"required\":[\"town\"]}}}]";
    const char *const sources[] = { NULL, chatml, thinks };
    const size_t n_words = ((size_t)a->info.n_vocab + 63) / 64;
    uint64_t *mask = malloc(n_words * sizeof *mask);
    hone_status st = mask ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a mask of %zu words", n_words);
    for (size_t i = 0; i < sizeof sources / sizeof *sources && st != HONE_E_NOMEM; i++) {
        const hone_chat_params p = { .chat_template = sources[i], .tools = tools, .now = "2026-02-03T04:05:06" };
        hone_chat_format *f = NULL;
        st = hone_chat_format_new(&f, a->m, &p, &a->err);
        if (!hn_asking_took(a, st)) continue;
        const char *found = hone_chat_format_json(f);
        hn_asking_add(a, found, strlen(found));
        st = answers_of(a, f, tools, mask, n_words);
        hone_chat_format_free(f);
    }
    free(mask);
    return st;
}

/* ---- streams ----------------------------------------------------------------------------------------------- */

/* Texts of characters of one to four bytes, and of none, token by token; then one that ends within a stop, by each of
 * its lengths: what was held back is there in the end. */
static hone_status stream_of(hn_asking *a, const char *said, size_t n_said, const char *stop)
{
    hone_stream *s = NULL;
    const char *text;
    size_t len, n = 0;
    bool stopped = false;
    int32_t *ids = NULL;
    hone_status st = hone_tokenize(a->m, said, n_said, 0, &ids, &n, &a->err);
    if (hn_asking_took(a, st)) st = hone_stream_new(&s, a->m, &stop, stop != NULL, &a->err);
    for (size_t k = 0; s && k < n && st == HONE_OK; k++) {
        st = hone_stream_push(s, ids[k], &text, &len, &stopped, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, text, len);
    }
    if (s && st == HONE_OK && hn_asking_took(a, hone_stream_flush(s, &text, &len, &a->err)))
        hn_asking_add(a, text, len);
    hone_stream_free(s);
    hone_free(ids);
    return st;
}

static hone_status ask_streams(hn_asking *a)
{
    static const char *const texts[] = { "a\xF0\x9F\x98\x80\xF0\x9F\x8F\xBDz",
                                         "\xF0\xA0\x80\x80 \xE2\x82\xAC\xC3\xA9\xCC\x81 \xE0\xA4\xB9\xE0\xA4\xBF",
                                         "\xEF\xBB\xBFx\xE2\x80\x8D\r\n\t  y", "cut \xF0\x9F\x98", "\xFF\xC0 \x80" };
    static const char held[] = "So it ends here", stop[] = "ends here, or there";
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && st != HONE_E_NOMEM; i++)
        st = stream_of(a, texts[i], strlen(texts[i]), NULL);
    for (size_t n = sizeof "So it " - 1; n < sizeof held && st != HONE_E_NOMEM; n++) st = stream_of(a, held, n, stop);
    return st;
}

/* ---- pairs, templates, places ------------------------------------------------------------------------------ */

static hone_status ask_pairs(hn_asking *a)
{
    static const char *const pairs[][3] = { { NULL, "Why does a kettle sing?", "Steam leaves through a narrow gap." },
                                            { "Judge <s> it", "a</s>b", "" } };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && st != HONE_E_NOMEM; i++) {
        int32_t *ids = NULL;
        size_t n = 0;
        st = hone_rank_tokenize(a->m, pairs[i][0], pairs[i][1], strlen(pairs[i][1]), pairs[i][2], strlen(pairs[i][2]),
                                &ids, &n, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, ids, n * sizeof *ids);
        hone_free(ids);
    }
    for (int k = 0; k < HONE_N_FIM; k++) hn_asking_number(a, hone_token_fim(a->m, (hone_fim)k));
    hn_asking_number(a, hone_token_bos(a->m));
    hn_asking_number(a, hone_token_eos(a->m));
    return st;
}

static hone_status ask_sources(hn_asking *a)
{
    static const char *const sources[] = {
        "{% set n = namespace(x=0) %}{% for i in a if i > 1 %}{{ loop.index }}:{{ i }} {% set n.x = n.x + i %}{% "
        "endfor %}"
        "{{ n.x }}",
        "{% macro f(x, y='-') %}{{ x|upper }}{{ y }}{% endmacro %}{{ f(s) }}{{ f(s[1:], y=a|length) }}{{ s.split('b') "
        "}}",
        "{{ a|tojson }}{{ {'k': none, 'l': 1.5}|tojson(indent=2) }}{{ s|trim|replace('a', 'é') }}{{ -7 // 2 }}{{ -7 % "
        "3 }}",
        "{% if missing is not defined and a[-1] == 3 or s in 'xabcx' %}yes{% endif %}{{ strftime_now('%d %b %Y') }}",
        "[{{ s|trim }}][{{ s.strip() }}][{{ s.rstrip() }}][{{ s.lstrip() }}]{{ s|length }}{{ s.lower() }}{{ "
        "s|capitalize }}",
        "{% for k, v in d|dictsort %}{{ k }}={{ v }};{% endfor %}{{ raise_exception('no') }}"
    };
    static const char *const contexts[] = {
        "{\"a\":[1,2,3],\"s\":\" abc \\n\",\"d\":{\"z\":1,\"b\":\"two\"}}", "{\"a\":[3],\"s\":\"\",\"d\":{}}",
        "{\"a\":[],\"s\":\"\\t\\u00e9 b\\u00c9\\ud83d\\ude00 \",\"d\":{\"\":null}}"
    };
    enum { N = sizeof sources / sizeof *sources, CONTEXTS = sizeof contexts / sizeof *contexts };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N * CONTEXTS && st != HONE_E_NOMEM; i++) {
        const char *source = sources[i / CONTEXTS];
        char *text = NULL;
        size_t n = 0;
        st = hone_template_render(source, strlen(source), "question", contexts[i % CONTEXTS], "2026-02-03T04:05:06",
                                  &text, &n, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, text, n);
        hone_free(text);
    }
    return st;
}

hone_status hn_ask_replies(hn_asking *a)
{
    hone_status st = ask_answers(a);
    if (st != HONE_E_NOMEM) st = ask_streams(a);
    if (st != HONE_E_NOMEM) st = ask_pairs(a);
    return st == HONE_E_NOMEM ? st : ask_sources(a);
}
