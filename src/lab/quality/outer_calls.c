/* The questions about how templates mark what they write: calls of tools, reasoning, channels, the end of a turn, found
 * out from templates of every kind and read back from what they write; and what messages may be made of. Owns them: a
 * change of one is a change of its hash, and needs another name for its part (notations). */
#include "lab/quality/outer_ask.h"

#include <stdlib.h>
#include <string.h>

#define N_OF(x) (sizeof(x) / sizeof *(x))

/* ---- calls of tools -------------------------------------------------------------------------------------- */

#define TURNS(of_call, around_open, around_close)                                                                      \
    "{% if tools %}<tools>{{ tools|tojson }}</tools>{% endif %}{% for m in messages %}{% if m.role == 'assistant' "    \
    "%}<A>"                                                                                                            \
    "{% if m.content %}{{ m.content }}{% endif %}{% if m.tool_calls %}" around_open                                    \
    "{% for c in m.tool_calls %}{% set f = c.function %}" of_call "{% endfor %}" around_close                          \
    "{% endif %}<E>{% else %}<{{ m.role }}>{{ m.content }}<E>{% endif %}{% endfor %}{% if add_generation_prompt %}<A>" \
    "{% endif %}"

static const char *const calling[] = {
    TURNS("<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments|tojson }}}\n</tool_call>\n", "", ""),
    TURNS("<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments|items %}<parameter={{ k }}>\n{{ v if v is "
          "string else v|tojson }}\n</parameter>\n{% endfor %}</function>\n</tool_call>\n",
          "", ""),
    TURNS("<tool_call>{{ f.name }}\n{% for k, v in f.arguments|items %}<arg_key>{{ k }}</arg_key>\n<arg_value>{{ v if "
          "v is "
          "string else v|tojson }}</arg_value>\n{% endfor %}</tool_call>",
          "", ""),
    TURNS("{{ ', ' if not loop.first }}{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments|tojson }}, \"id\": "
          "\"{{ "
          "c.id }}\"}",
          "[TOOL_CALLS][", "]"),
    TURNS("[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments|tojson }}", "", ""),
    TURNS("{\"name\": \"{{ f.name }}\", \"parameters\": {{ f.arguments|tojson }}}", "", ""),
    TURNS("<|call|>{{ f.name }}<|sep|>{{ f.arguments|tojson }}<|end|>", "<|calls|>", "<|done|>"),
    TURNS("{{ ', ' if not loop.first }}{{ f.name }}({% for k, v in f.arguments|items %}{{ ', ' if not loop.first }}{{ "
          "k }}="
          "{{ v|tojson }}{% endfor %})",
          "<|calls|>[", "]<|done|>"),
    TURNS("<invoke name=\"{{ f.name }}\">\n{% for k, v in f.arguments|items %}<parameter name=\"{{ k }}\">{{ v if v is "
          "string else v|tojson }}</parameter>\n{% endfor %}</invoke>\n",
          "<calls>\n", "</calls>"),
    TURNS("{{ f.name }}\n```json\n{{ f.arguments|tojson }}\n```", "", ""),
};

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"town\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},\"exact\":{\"type\":\"boolean\"},\"units\":{"
    "\"enum\":"
    "[\"C\",\"F\"]},\"at\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}},\"of\":{\"type\":\"object\","
    "\"properties\":"
    "{\"x\":{\"type\":[\"string\",\"null\"]}}}},\"required\":[\"town\"]}}},{\"type\":\"function\",\"function\":{"
    "\"name\":"
    "\"now\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]";

#define CALLS(...)                                                                                                     \
    "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[" __VA_ARGS__ "]" \
    "}"                                                                                                                \
    "]"
#define CALL(id, name, args) \
    "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"" args "\"}}"

/* What a template writes for calls is read as an answer: whole, and cut. */
static hone_status read_calls(hn_asking *a, const char *source, const hone_chat_format *f, const char *talk,
                              uint64_t *mask, size_t n_words)
{
    static const char begun[] = "[{\"role\":\"user\",\"content\":\"q\"}]";
    const hone_chat_params whole = { .messages = talk, .tools = tools, .chat_template = source }, until = {
        .messages = begun, .tools = tools, .chat_template = source, .add_generation_prompt = true
    };
    hone_chat_text all = { 0 }, start = { 0 };
    hone_status st = hone_chat_render(a->m, &whole, &all, &a->err);
    if (hn_asking_took(a, st)) st = hone_chat_render(a->m, &until, &start, &a->err);
    if (hn_asking_took(a, st) && start.len <= all.len) {
        hn_asking_add(a, all.text, all.len);
        for (int way = 0; way < 3 && st != HONE_E_NOMEM; way++) {
            const size_t n = all.len - start.len;
            const hone_reply_params p = { .format = f,
                                          .tools = tools,
                                          .tool_choice = way == 1 ? HONE_TOOLS_REQUIRED : HONE_TOOLS_AUTO,
                                          .reasoning_budget = -1,
                                          .id_seed = (uint64_t)way };
            hone_reply *r = NULL;
            st = hone_reply_open(&r, &p, &a->err);
            if (!hn_asking_took(a, st)) break;
            const char *notes = hone_reply_notes(r);
            hn_asking_add(a, notes, strlen(notes));
            st = hn_asking_answer(a, r, all.text + start.len, way == 2 ? n * 2 / 3 : n, mask, n_words);
            hone_reply_free(r);
        }
    }
    hone_chat_text_free(&all);
    hone_chat_text_free(&start);
    return st;
}

static hone_status ask_calls(hn_asking *a)
{
    static const char *const talks[] = {
        CALLS(CALL("call00001", "weather", "{\\\"town\\\":\\\"Rome\\\",\\\"days\\\":3,\\\"exact\\\":true}")),
        CALLS(CALL("call00001", "weather",
                   "{\\\"town\\\":\\\"a \\\\\\\"b\\\\\\\" <c>\\\\n'd'\\\",\\\"units\\\":\\\"C\\\",\\\"at\\\":[1.5,-2],"
                   "\\\"of\\\":{\\\"x\\\":null}}") "," CALL("call00002", "now", "{}")),
        CALLS(CALL("call00003", "now", "{}")),
    };
    const size_t n_words = ((size_t)a->info.n_vocab + 63) / 64;
    uint64_t *mask = malloc(n_words * sizeof *mask);
    hone_status st = mask ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a mask of %zu words", n_words);
    for (size_t i = 0; i < N_OF(calling) && st != HONE_E_NOMEM; i++) {
        const hone_chat_params p = { .chat_template = calling[i], .tools = tools, .now = "2026-02-03T04:05:06" };
        hone_chat_format *f = NULL;
        st = hone_chat_format_new(&f, a->m, &p, &a->err);
        if (!hn_asking_took(a, st)) continue;
        const char *found = hone_chat_format_json(f);
        hn_asking_add(a, found, strlen(found));
        for (size_t k = 0; k < N_OF(talks) && st != HONE_E_NOMEM; k++)
            st = read_calls(a, calling[i], f, talks[k], mask, n_words);
        hone_chat_format_free(f);
    }
    free(mask);
    return st;
}

/* Answers that have begun, where other turns may leave a prompt, and the template's own source. */
static hone_status ask_places(hn_asking *a)
{
    static const char *const talks[] = {
        "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"So it beg\"}]",
        "[{\"role\":\"user\",\"content\":\"q \"},{\"role\":\"assistant\",\"content\":\"One.\\n \"}]",
        "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
        "\"content\":"
        "\"a\"},{\"role\":\"user\",\"content\":\"r\"}]",
    };
    hone_str own;
    hone_status st = HONE_OK;
    for (int with_tools = 0; with_tools < 2; with_tools++) {
        st = hone_chat_template(a->m, with_tools, &own, &a->err);
        if (hn_asking_took(a, st)) hn_asking_add(a, own.ptr, own.len);
    }
    for (size_t i = 0; i < 4 * N_OF(talks) && st != HONE_E_NOMEM; i++) {
        const hone_chat_params p = { .messages = talks[i / 4],
                                     .chat_template = i % 2 ? calling[0] : NULL,
                                     .now = "2026-02-03T04:05:06",
                                     .add_generation_prompt = i % 4 >= 2,
                                     .continue_final = i % 4 < 2 };
        int32_t *ids = NULL;
        size_t n = 0, mark = 0;
        st = hone_chat_tokenize(a->m, &p, &ids, &n, &a->err);
        if (hn_asking_took(a, st)) {
            hn_asking_add(a, ids, n * sizeof *ids);
            if (!p.continue_final) st = hone_chat_mark(a->m, &p, ids, n, &mark, &a->err);
            if (hn_asking_took(a, st)) hn_asking_number(a, (int64_t)mark);
        }
        hone_free(ids);
    }
    return st;
}

/* ---- reasoning and channels ------------------------------------------------------------------------------ */

#define THINKS(open, close, more)                                                               \
    "{% for m in messages %}{% if m.role == 'assistant' %}<A>{% if m.reasoning_content %}" open \
    "{{ m.reasoning_content }}" close                                                           \
    "{% endif %}{{ m.content }}<E>{% else %}<{{ m.role }}>{{ m.content }}<E>{% endif %}"        \
    "{% endfor %}" more "{% if add_generation_prompt %}<A>{% endif %}"

static const char *const marking[] = {
    THINKS("<think>\n", "\n</think>\n\n", "{% if enable_thinking is false %}<think></think>{% endif %}"),
    THINKS("[THINK]", "[/THINK]",
           "{% if reasoning_effort == 'high' %}deep{% elif reasoning_effort == 'none' %}not{% endif %}"),
    THINKS("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>",
           "{% if thinking_budget is defined %}{{ thinking_budget "
           "}}{% endif %}"),
    THINKS("Here is my thought process: ", " Here is my response: ", "{% if thinking %}think{% endif %}"),
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}{% if m.thinking "
    "%}<|channel|>analysis<|message|>"
    "{{ m.thinking }}<|end|><|start|>assistant{% endif %}<|channel|>final<|message|>{{ m.content }}<|return|>{% else "
    "%}<|message|>"
    "{{ m.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}",
    "{% for m in messages %}<|turn>{{ m.role }}\n{% if m.thinking %}<|channel>thought\n{{ m.thinking }}<channel|>{% "
    "endif %}"
    "{{ m.content }}<turn|>\n{% endfor %}{% if add_generation_prompt %}<|turn>model\n{% endif %}",
    "{% for m in messages %}<|begin|>{{ m.role }}{% if m.reasoning_content %}<|think|>{{ m.reasoning_content "
    "}}<|end|><|begin|>"
    "assistant{% endif %}<|content|>{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt "
    "%}<|begin|>assistant{% endif %}",
    "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n>>>all\n{{ m.content }}<|eot_id|>{% "
    "endfor %}"
    "{{ functions }}{{ datetime }}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n>>>{% "
    "endif %}",
    "{% for m in messages %}{% for c in m.content %}{% if c.type == 'text' %}[{{ m.role }}]{{ c.text }}{% else "
    "%}<img>{% endif %}"
    "{% endfor %}[E]{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
    "{% for m in messages %}[{{ m.role }}]{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content "
    "%}{% if "
    "c.type == 'thinking' %}[THINK]{{ c.thinking }}[/THINK]{% else %}{{ c.text }}{% endif %}{% endfor %}{% endif %}[E]"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
    "{% for m in messages %}{% if m.role == 'assistant' %}<think>\n{{ m.reasoning_content }}\n</think>\n<answer>\n{{ "
    "m.content }}"
    "\n</answer><|extra_4|>{% else %}{{ m.content }}<|extra_0|>{% endif %}{% endfor %}",
};

/* As one answer each, in one of four ways: as it is, behind a limit of reasoning, marks kept, with a form. Other
 * templates read a text in other ways. */
static hone_status read_marked(hn_asking *a, const hone_chat_format *f, size_t nth, hone_grammar *form, uint64_t *mask,
                               size_t n_words)
{
    static const char *const texts[] = {
        "<think>\nso\n</think>\n\n{\"a\": 1}<E>",
        "[THINK]so[/THINK]{\"a\":2}",
        "<|START_THINKING|>so<|END_THINKING|><|START_RESPONSE|>{}<|END_RESPONSE|>",
        "Here is my thought process: so Here is my response: {\"a\":3}",
        "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
        "<|constrain|>json"
        "<|message|>{\"town\":\"Rome\"}<|call|>",
        "<|channel|>commentary<|message|>on<|end|><|start|>assistant<|channel|>final<|message|>{\"a\":4}<|return|>",
        "<|channel>thought\nso<channel|>{\"a\":5}<turn|>",
        "<|think|>so<|end|><|begin|>assistant<|content|>{\"a\":6}<|end|>",
        ">>>all\n{\"a\":7}",
        "<answer>\n{}\n</answer> and more",
    };
    enum { WAYS = 4 };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N_OF(texts) && st != HONE_E_NOMEM; i++) {
        const size_t way = (i + nth) % WAYS;
        const hone_reply_params p = { .format = f,
                                      .tools = way == 1 ? tools : NULL,
                                      .marks_as_text = way == 2,
                                      .form = way == 3 ? form : NULL,
                                      .reasoning_budget = way == 1 ? 2 : -1,
                                      .id_seed = i };
        const char *text = texts[i];
        hone_reply *r = NULL;
        st = hone_reply_open(&r, &p, &a->err);
        if (!hn_asking_took(a, st)) continue;
        st = hn_asking_answer(a, r, text, strlen(text), mask, n_words);
        hone_reply_free(r);
    }
    return st;
}

static hone_status ask_marks(hn_asking *a)
{
    const hone_grammar_params object = { .kind = HONE_GRAMMAR_JSON_OBJECT };
    const size_t n_words = ((size_t)a->info.n_vocab + 63) / 64;
    uint64_t *mask = malloc(n_words * sizeof *mask);
    hone_grammar *form = NULL;
    hone_status st = mask ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a mask of %zu words", n_words);
    if (st == HONE_OK) st = hone_grammar_compile(&form, &object, &a->err);
    for (size_t i = 0; i < 2 * N_OF(marking) && st != HONE_E_NOMEM; i++) {
        const hone_chat_params p = { .chat_template = marking[i / 2],
                                     .variables =
                                         i % 2 ? "{\"enable_thinking\":false,\"reasoning_effort\":\"none\"}" : NULL,
                                     .now = "2026-02-03T04:05:06" };
        hone_chat_format *f = NULL;
        st = hone_chat_format_new(&f, a->m, &p, &a->err);
        if (!hn_asking_took(a, st)) continue;
        const char *found = hone_chat_format_json(f);
        hn_asking_add(a, found, strlen(found));
        if (i % 2 == 0) st = read_marked(a, f, i / 2, form, mask, n_words);
        hone_chat_format_free(f);
    }
    hone_grammar_free(form);
    free(mask);
    return st;
}

/* ---- messages -------------------------------------------------------------------------------------------- */

/* Of every shape, as every template with a name, and those above, write them. */
static hone_status ask_shapes(hn_asking *a)
{
    static const char *const named[] = { "chatml",     "llama2",   "llama3",     "mistral",
                                         "mistral-v1", "gemma",    "mistral-v3", "mistral-v3-tekken",
                                         "mistral-v7", "phi3",     "phi4",       "zephyr",
                                         "vicuna",     "deepseek", "deepseek2",  "glm4",
                                         "command-r",  "gpt-oss",  "none-such" };
    static const char *const talks[] = {
        "[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\","
        "\"content\":\"a\",\"reasoning_content\":\"r\"},{\"role\":\"user\",\"content\":\"t\"}]",
        "[{\"role\":\"developer\",\"content\":\"d\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
        "\"q\"},{\"type\":\"text\",\"text\":\"w\"}]},{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\","
        "\"thinking\":\"h\"},{\"type\":\"text\",\"text\":\"a\"}]},{\"role\":\"user\",\"content\":\"t\"}]",
        CALLS(CALL("c1", "weather", "{\\\"town\\\":\\\"Rome\\\",\\\"exact\\\":null,\\\"days\\\":true}")),
        "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" CALL(
            "c1", "now",
            "not json") "]},{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"name\":\"now\",\"content\":[{\"type"
                        "\":\"text\",\"text\":\"noon\"}]}]",
        "[{\"role\":\"user\",\"content\":\"\"}]",
        "[{\"role\":\"assistant\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]",
        "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\"image_url\":{\"url\":\"x\"}}]}]",
        "[]",
    };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N_OF(named) + N_OF(marking) + N_OF(calling); i++)
        for (size_t k = 0; k < N_OF(talks) && st != HONE_E_NOMEM; k++) {
            const size_t at = i < N_OF(named) ? 0 : i - N_OF(named);
            const hone_chat_params p = { .messages = talks[k],
                                         .tools = k % 2 ? tools : NULL,
                                         .chat_template = i < N_OF(named)      ? named[i]
                                                          : at < N_OF(marking) ? marking[at]
                                                                               : calling[at - N_OF(marking)],
                                         .now = k % 3 ? "2026-02-03T04:05:06" : "2026-12-31T23:05:06-02:30",
                                         .add_generation_prompt = k % 2 == 0 };
            hone_chat_text t = { 0 };
            st = hone_chat_render(a->m, &p, &t, &a->err);
            if (hn_asking_took(a, st)) hn_asking_add(a, t.text, t.len);
            hone_chat_text_free(&t);
        }
    return st;
}

hone_status hn_ask_calls(hn_asking *a)
{
    hone_status (*const all[])(hn_asking *) = { ask_calls, ask_places, ask_marks, ask_shapes };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N_OF(all) && st != HONE_E_NOMEM; i++) st = all[i](a);
    return st;
}
