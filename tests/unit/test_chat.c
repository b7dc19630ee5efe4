/* Chat templates on top of the interpreter: formats by name, what callers may send, one
 * BOS, and that no input becomes structure. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "gguf_bytes.h"
#include "growth.h"
#include "text/chat.h"
#include "slowed.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static const hn_jinja_time now = { 2026, 2, 3, 4, 5, 6 };

static hn_jinja *parse(const char *source, size_t len)
{
    hn_jinja *t;
    hone_error e = { 0 };
    if (hn_jinja_parse(&t, source, len, "t", NULL, &e) != HONE_OK) fail_msg("%s", e.message);
    return t;
}

static json_t *json(const char *s)
{
    json_error_t e;
    json_t *j = json_loads(s, JSON_ALLOW_NUL, &e);
    if (!j) fail_msg("%s: %s", s, e.text);
    return j;
}

static hone_status render(const char *source, const char *messages, const char *tools, bool gen, hn_jinja_text *out,
                          hone_error *e)
{
    hn_jinja *t = parse(source, strlen(source));
    json_t *m = json(messages), *tl = tools ? json(tools) : NULL;
    hn_chat c = { .messages = m, .tools = tl, .bos = "<s>", .eos = "</s>", .now = &now, .add_generation_prompt = gen };
    hone_status st = hn_chat_render(t, &c, out, e);
    json_decref(m);
    json_decref(tl);
    hn_jinja_free(t);
    return st;
}

static void renders(const char *what, const char *source, const char *messages, const char *tools, bool gen,
                    const char *want)
{
    hn_jinja_text out;
    hone_error e = { 0 };
    if (render(source, messages, tools, gen, &out, &e) != HONE_OK) fail_msg("%s: %s", what, e.message);
    if (strcmp(out.text, want) != 0) fail_msg("%s:\n  want %s\n  got  %s", what, want, out.text);
    hn_jinja_text_free(&out);
}

static void refuses(const char *source, const char *messages, const char *tools, hone_status want, const char *says)
{
    hn_jinja_text out;
    hone_error e = { 0 };
    hone_status st = render(source, messages, tools, true, &out, &e);
    if (st != want || !strstr(e.message, says)) fail_msg("%s: %s %s", messages, hone_status_name(st), e.message);
    assert_null(out.text);
}

/* ---- formats ------------------------------------------------------------------------------------- */

#define SUAU                                                                                                  \
    "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"U\"},{\"role\":\"assistant\"," \
    "\"content\":\"A\"},{\"role\":\"user\",\"content\":\"V\"}]"

static void formats(void **state)
{
    static const struct {
        const char *name, *want;
    } f[] = {
        { "chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU<|im_end|>\n<|im_start|>assistant\nA<|im_end|>"
                    "\n<|im_start|>user\nV<|im_end|>\n<|im_start|>assistant\n" },
        { "llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU [/INST] A </s><s>[INST] V [/INST]" },
        { "llama3", "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_"
                    "id|>\n\nU<|eot_id|>"
                    "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|><|start_header_id|>user<|end_header_"
                    "id|>\n\nV<|eot_id|>"
                    "<|start_header_id|>assistant<|end_header_id|>\n\n" },
        { "mistral", "<s>[INST] S\n\nU[/INST] A</s>[INST] V[/INST]" },
        { "mistral-v1", "<s> [INST] S\n\nU [/INST] A</s> [INST] V [/INST]" },
        { "mistral-v3", "<s>[INST] S\n\nU[/INST] A</s>[INST] V[/INST]" },
        { "mistral-v3-tekken", "<s>[INST]S\n\nU[/INST]A</s>[INST]V[/INST]" },
        { "mistral-v7", "<s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] U[/INST] A</s>[INST] V[/INST]" },
        { "gemma", "<s><start_of_turn>user\nS\n\nU<end_of_turn>\n<start_of_turn>model\nA<end_of_turn>\n<start_of_turn>"
                   "user\nV<end_of_turn>\n<start_of_turn>model\n" },
        { "phi3",
          "<|system|>\nS<|end|>\n<|user|>\nU<|end|>\n<|assistant|>\nA<|end|>\n<|user|>\nV<|end|>\n<|assistant|>\n" },
        { "phi4", "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>U<|im_end|><|im_start|>assistant<|"
                  "im_sep|>A<|im_end|>"
                  "<|im_start|>user<|im_sep|>V<|im_end|><|im_start|>assistant<|im_sep|>" },
        { "zephyr", "<|system|>\nS<|endoftext|>\n<|user|>\nU<|endoftext|>\n<|assistant|>\nA<|endoftext|>\n<|user|>\nV<|"
                    "endoftext|>\n<|assistant|>\n" },
        { "vicuna", "S\n\nUSER: U\nASSISTANT: A</s>\nUSER: V\nASSISTANT:" },
        { "deepseek", "<s>S<｜User｜>U<｜Assistant｜>A<｜end▁of▁sentence｜><｜User｜>V<｜Assistant｜>" },
        { "deepseek2", "<s>S\n\nUser: U\n\nAssistant: A<｜end▁of▁sentence｜>User: V\n\nAssistant:" },
        { "glm4", "[gMASK]<sop><|system|>\nS<|user|>\nU<|assistant|>\nA<|user|>\nV<|assistant|>" },
        { "command-r", "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_"
                       "TOKEN|>U<|END_OF_TURN_TOKEN|>"
                       "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_"
                       "TOKEN|>V<|END_OF_TURN_TOKEN|>"
                       "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>" },
        { "gpt-oss", "<|start|>system<|message|>S<|end|><|start|>user<|message|>U<|end|><|start|>assistant<|channel|>"
                     "final<|message|>A<|end|>"
                     "<|start|>user<|message|>V<|end|><|start|>assistant" },
        { "rwkv-world", "<s>System: S\n\nUser: U\n\nAssistant: A\n\nUser: V\n\nAssistant:" },
    };
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        const char *source = hn_chat_format(f[i].name);
        assert_non_null(source);
        renders(f[i].name, source, SUAU, NULL, true, f[i].want);
        char name[20];
        snprintf(name, sizeof name, "%.7s", f[i].name);
        if (!strstr(hn_chat_format_list(), name)) fail_msg("%s is not listed", f[i].name);
    }
    assert_null(hn_chat_format("nope"));
    renders("no generation", hn_chat_format("phi3"), "[{\"role\":\"user\",\"content\":\"U\"}]", NULL, false,
            "<|user|>\nU<|end|>\n");
    hone_str s;
    hone_error e;
    assert_int_equal(hn_chat_source(&s, NULL, NULL, "nope", false, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "chatml"));
    assert_int_equal(hn_chat_source(&s, NULL, NULL, "{{ x }}", false, &e), HONE_OK);
    assert_int_equal(s.len, 7);
    assert_int_equal(hn_chat_source(&s, NULL, NULL, NULL, false, &e), HONE_E_UNSUPPORTED);
}

/* ---- what callers send ------------------------------------------------------------------------------ */

#define CALL(args)                                                                                               \
    "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"type\":" \
    "\"function\","                                                                                              \
    "\"function\":{\"name\":\"f\",\"arguments\":" args "}}]}]"
#define EACH_CALL "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"

#define SAYS(role, text) "{\"role\":\"" role "\",\"content\":\"" text "\"}"
#define WRITES "{% for m in messages %}{{ m.tool_calls | tojson if m.tool_calls }}{% endfor %}"

static const char thinks[] = "{% for m in messages %}{{ m.reasoning_content }}|{{ m.content }};{% endfor %}",
                  gpt[] = "{% for m in messages %}{{ m.thinking }}|{{ m.content }};{% endfor %}";

static void preparation(void **state)
{
    static const char parts[] =
        "[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}]";
    renders("flattened", "{{ 'x' + messages[0].content }}", parts, NULL, false, "xa\nb");
    renders("flattened where it would print a list", "{{ messages[0].content }}", parts, NULL, false, "a\nb");
    static const char lists[] = "{% for p in messages[0].content %}[{{ p.text }}]{% endfor %}";
    renders("taken as parts", lists, parts, NULL, false, "[a][b]");
    renders("made into parts", lists, "[{\"role\":\"user\",\"content\":\"ab\"}]", NULL, false, "[ab]");
    static const char object[] =
        EACH_CALL "{% for k, v in c.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}{% endfor %}{% endfor %}";
    renders("object as object", object, CALL("{\"x\":1}"), NULL, false, "qx=1");
    renders("text to object", object, CALL("\"{\\\"x\\\": 1}\""), NULL, false, "qx=1");
    renders("numbers of any size", object, CALL("\"{\\\"x\\\": 123456789012345678901, \\\"y\\\": 1e999}\""), NULL,
            false, "qx=123456789012345678901y=1e999");
    static const char either[] = EACH_CALL "{% set a = c.function.arguments %}{% if a is string %}{{ a }}{% else %}"
                                           "{{ a | tojson }}{% endif %}{% endfor %}{% endfor %}",
                      tojson[] = EACH_CALL "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}",
                      long_id[] = CALL("\"{\\\"id\\\": 123456789012345678901}\"");
    renders("a long number as it came", either, long_id, NULL, false, "q{\"id\": 123456789012345678901}");
    static const char *const cut[][2] = {
        { "{'x': 'a\\\\n\\\\u00", "qx=a\n" },
        { "{'x': 'a\\\\", "qx=a" },
        { "{'x': 'a \\\\ud83d", "qx=a " },
        { "{'x': 'a \\\\ud83d\\\\ude0", "qx=a " },
        { "{'x': 'a \\\\\\\\ud83d", "qx=a \\ud83d" },
        { "{'x': 1} trailing", "qx=1" },
        { "{'x': 1}, {'x': 2, 'y", "qx=1" },
        { "{'x': 1, 'y': [2, {'z': '}", "qx=1y=[2, {'z': '}'}]" },
        { "{'x': 1, 'y': [2, 3, fal", "qx=1y=[2, 3]" },
        { "{'x': 1, 'y'", "qx=1" },
        { "{'x': tr", "q" },
        { "[1]", "q" },
        { "{'x': 1]", "q" },
        { "so", "q" },
    };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) { /* an answer ended within its arguments */
        char said[200];
        size_t n = 0;
        for (const char *c = cut[i][0]; *c; c++) n += (size_t)sprintf(said + n, *c == '\'' ? "\\\"" : "%c", *c);
        char messages[600];
        snprintf(messages, sizeof messages, CALL("\"%s\""), said);
        renders("arguments that are cut", object, messages, NULL, false, cut[i][1]);
    }
    static const char text[] = EACH_CALL "{{ '<' + c.function.arguments + '>' }}{% endfor %}{% endfor %}";
    renders("text as text", text, CALL("\"{\\\"x\\\": 1}\""), NULL, false, "q<{\"x\": 1}>");
    renders("object to text", text, CALL("{\"x\":1}"), NULL, false, "q<{\"x\": 1}>");
    renders("none as object", object, CALL("\"\""), NULL, false, "q");
    renders("null as object", object, CALL("null"), NULL, false, "q");
    renders("none as text", text, CALL("\"\""), NULL, false, "q<{}>");
    renders("null as text", text, CALL("null"), NULL, false, "q<{}>");
    renders("no JSON within JSON", tojson, CALL("\"{\\\"x\\\": 1}\""), NULL, false, "q{\"x\": 1}");
    renders("nor around a long number", tojson, long_id, NULL, false, "q{\"id\": 123456789012345678901}");
    renders("null content kept",
            "{% for m in messages %}{{ 'none' if m.content is none else m.content }}{{ "
            "m.tool_calls[0].function.arguments | tojson if m.tool_calls }}{% endfor %}",
            CALL("{}"), NULL, false, "qnone{}");
    renders("no content", "{% for m in messages %}[{{ m.content }}]{% endfor %}", "[{\"role\":\"user\"}]", NULL, false,
            "[]");
    static const char lists_and_calls[] =
        "{% for m in messages %}{% if m.content is string %}[{{ m.content }}]{% else %}{% for p in m.content or [] %}"
        "[{{ p.text }}]{% endfor %}{% endif %}{{ m.tool_calls[0].function.name if m.tool_calls }}"
        "{% if m.tool_calls and not m.tool_calls[0].function.arguments is mapping %}{{ "
        "m.tool_calls[0].function.arguments }}"
        "{% elif m.tool_calls %}{% for k, v in m.tool_calls[0].function.arguments.items() %}{{ k }}{{ v }}{% endfor %}"
        "{% endif %}{% endfor %}";
    /* QwQ: a null content is a fault in all answers but the last, and only there */
    static const char qwq[] =
        "{% for m in messages %}{% if m.tool_calls and not loop.last %}{% set c = m.content.split('x') %}{% endif %}"
        "[{{ m.content }}]{{ m.tool_calls[0].function.arguments | tojson if m.tool_calls }}{% endfor %}";
    renders(
        "null content before the end", qwq,
        "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"function\":"
        "{\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"content\":\"r\"}]",
        NULL, false, "[q][]{}[r]");
    /* the first templates of Gemma 3 */
    static const char parted[] =
        "{% if messages[0].role == 'system' %}{{ messages[0].content[0].text + '|' }}{% endif %}"
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
        "{{ raise_exception('late') }}{% endif %}{% if m.role != 'system' %}"
        "{{ m.content if m.content is string else m.content[0].text }};{% endif %}{% endfor %}";
    renders("a system message in parts", parted, SUAU, NULL, false, "S|U;A;V;");
    static const char whole[] =
        "{{ messages[0].content + '|' }}{% for m in messages[1:] %}{{ m.content if m.content is "
        "string else m.content[0].text }};{% endfor %}"; /* Cogito */
    renders("a system message in one", whole,
            "[{\"role\":\"system\",\"content\":[{\"type\":\"text\",\"text\":\"S\"},{\"type\":\"text\",\"text\":\"T\"}]}"
            "," SAYS("user", "U") "]",
            NULL, false, "S\nT|U;");
    /* DeepSeek R1 writes calls beside null alone */
    static const char alone[] =
        "{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}"
        "[{{ c.function.name + c.function.arguments }}]{% endfor %}{% else %}{{ m.content }};{% endif %}{% endfor %}";
    renders("calls beside null", alone, CALL("{\"x\":1}"), NULL, false, "q;[f{\"x\": 1}]");
#define BESIDE(text)                                                                                            \
    "[" SAYS("user",                                                                                            \
             "q") ",{\"role\":\"assistant\",\"content\":" text ",\"reasoning_content\":\"r\",\"tool_calls\":[{" \
                  "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}," SAYS("tool", "t") "]"
    renders("calls beside an empty text", alone, BESIDE("\"\""), NULL, false, "q;[f{}]t;");
    renders("calls beside a text", alone, BESIDE("\"so\""), NULL, false, "q;so;[f{}]t;");
    renders("calls beside parts", alone, BESIDE("[{\"type\":\"text\",\"text\":\"so\"}]"), NULL, false, "q;so;[f{}]t;");
    renders("calls beside parts that stay", lists_and_calls, BESIDE("[{\"type\":\"text\",\"text\":\"so\"}]"), NULL,
            false, "[q][so]f[t]");
    renders("two of them", parted, "[" SAYS("system", "S") "," SAYS("system", "T") "," SAYS("user", "U") "]", NULL,
            false, "S\n\nT|U;");
    static const char names[] = "{% for m in messages %}{{ m | list | join(',') }};{% endfor %}";
    renders("null is not there", names,
            "[{\"role\":\"user\",\"content\":\"q\",\"tool_calls\":null,\"name\":null},{\"role\":\"assistant\","
            "\"content\":null,"
            "\"reasoning_content\":null,\"x\":1}]",
            NULL, false, "role,content;role,content,x;");
    static const char *const reasoning[] = { "reasoning_content", "thinking", "reasoning" };
    for (int i = 0; i < 3; i++) {
        char said[200];
        snprintf(said, sizeof said, "[%s,{\"role\":\"assistant\",\"content\":\"A\",\"%s\":\"r\"}]", SAYS("user", "q"),
                 reasoning[i]);
        renders(reasoning[i], thinks, said, NULL, false, "|q;r|A;");
        renders(reasoning[i], gpt, said, NULL, false, "|q;r|A;");
    }
    static const char gemma[] = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') "
                                "}}{% endif %}{% for m in messages %}{{ m.role + ':' + m.content }};{% endfor %}";
    renders("system merged", gemma, SUAU, NULL, false, "user:S\n\nU;assistant:A;user:V;");
    refuses(gemma, "[{\"role\":\"system\",\"content\":\"S\"}]", NULL, HONE_E_ARG, "System role not supported");
    renders("tools", "{{ tools[0].x }}" WRITES, "[{\"role\":\"user\",\"content\":\"U\"}]", "[{\"x\":1}]", false, "1");
    /* firefunction's clock is GMT, wherever the time that strftime_now tells is of */
    static const char clocks[] = "{{ strftime_now('%H:%M') }} {{ datetime }}";
    static const struct {
        const char *now, *want;
    } times[] = { { "2026-02-03T04:05:06", "04:05 Feb 03 2026 04:05:06 GMT" },
                  { "2026-02-03T04:05:06+0530", "04:05 Feb 02 2026 22:35:06 GMT" },
                  { "2025-12-31T23:05:06-01:00", "23:05 Jan 01 2026 00:05:06 GMT" } };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        const hone_chat_params p = { .messages = "[]", .chat_template = clocks, .now = times[i].now };
        hone_chat_text out;
        assert_int_equal(hone_chat_render(NULL, &p, &out, NULL), HONE_OK);
        assert_string_equal(out.text, times[i].want);
        hone_chat_text_free(&out);
    }
    renders("functions", "{{ functions }}|{{ datetime }}" WRITES, "[]", "[1]", false,
            "[\n  1\n]|Feb 03 2026 04:05:06 GMT");
    static const char user[] = "{{ messages }}";
    refuses(user, "{}", NULL, HONE_E_ARG, "messages: expected a JSON array");
    refuses(user, "[1]", NULL, HONE_E_ARG, "messages[0]: expected an object");
    refuses(user, "[{\"content\":\"x\"}]", NULL, HONE_E_ARG, "messages[0].role: expected a string");
    refuses(user, "[{\"role\":\"user\",\"content\":5}]", NULL, HONE_E_ARG, "messages[0].content: expected a string");
    refuses(user, "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]", NULL, HONE_E_UNSUPPORTED,
            "messages[0].content[0]: a part of type 'image_url'");
    refuses(user, "[{\"role\":\"user\",\"content\":[{\"type\":\"text\\u0000\"}]}]", NULL, HONE_E_UNSUPPORTED,
            "a part of type 'text\\x00'");
    refuses(user, "[{\"role\":\"user\",\"content\":\"\",\"tool_calls\":5}]", NULL, HONE_E_ARG,
            "tool_calls: expected an array");
    refuses(user, "[]", "{}", HONE_E_ARG, "tools: expected a JSON array");
}

/* The reasoning of an answer, under each of its names and as parts of the content, as Ministral 3 takes it. */
static void thoughts_in_parts(void **state)
{
    static const char in_parts[] =
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content or [] %}"
        "{% if p.type == 'thinking' %}[T]{{ p.thinking }}[/T]{% elif p.type == 'text' %}<{{ p.text }}>{% endif %}"
        "{% endfor %}{% endif %}{% for c in m.tool_calls %}{{ c.function.name + c.function.arguments }}{% endfor %};"
        "{% endfor %}";
#define ANSWERS(said) "[" SAYS("user", "q") ",{\"role\":\"assistant\"," said "}]"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define THOUGHT(text) "{\"type\":\"thinking\",\"thinking\":" text "}"
    static const char *const thoughts[][3] = {
        { "\"content\":\"A\",\"reasoning_content\":\"r\"", "q;[T]r[/T]<A>;", "|q;r|A;" },
        { "\"content\":[" TEXT("A") "," TEXT("B") "],\"reasoning_content\":\"r\"", "q;[T]r[/T]<A><B>;", "|q;r|AB;" },
        { "\"content\":[" THOUGHT("\"r\"") "," TEXT("A") "]", "q;[T]r[/T]<A>;", "|q;r|A;" },
        { "\"content\":[" THOUGHT("[" TEXT("r") "," TEXT("s") "]") "," TEXT("A") "]", "q;[T]rs[/T]<A>;", "|q;rs|A;" },
        { "\"content\":[" THOUGHT("\"r\"") "," THOUGHT("\"\"") "," TEXT("A") "," THOUGHT(
              "[" TEXT("s") "," TEXT("t") "]") "]",
          "q;[T]r\n\nst[/T]<A>;", "|q;r\n\nst|A;" },
        { "\"content\":[" THOUGHT("\"r\"") "]", "q;[T]r[/T];", "|q;r|;" },
        { "\"content\":[" THOUGHT("\"\"") "," TEXT("A") "]", "q;<A>;", "|q;|A;" },
        { "\"content\":\"A\",\"thinking\":\"\",\"reasoning\":\"r\"", "q;[T]r[/T]<A>;", "|q;r|A;" },
        { "\"content\":null,\"reasoning_content\":\"r\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":\"{"
          "}\"}}]",
          "q;[T]r[/T]f{};", NULL },
    };
    for (size_t i = 0; i < sizeof thoughts / sizeof *thoughts; i++) {
        char said[400];
        snprintf(said, sizeof said, ANSWERS("%s"), thoughts[i][0]);
        renders("thoughts in parts", in_parts, said, NULL, false, thoughts[i][1]);
        if (thoughts[i][2]) renders("thoughts apart", thinks, said, NULL, false, thoughts[i][2]);
        if (thoughts[i][2]) renders("thoughts of another name", gpt, said, NULL, false, thoughts[i][2]);
    }
    refuses(thinks, ANSWERS("\"content\":[" THOUGHT("[1]") "]"), NULL, HONE_E_UNSUPPORTED, "a part of type 'thinking'");
    refuses(thinks, "[{\"role\":\"user\",\"content\":[" THOUGHT("\"r\"") "]}]", NULL, HONE_E_UNSUPPORTED,
            "a part of type 'thinking'");
}

/* What nobody gave is none, as in transformers; undefined for templates that cannot do with none. */
static void nothing_given(void **state)
{
    static const char u[] = "[{\"role\":\"user\",\"content\":\"U\"}]",
                      su[] = "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"U\"}]",
                      tool[] = "[{\"function\":{\"name\":\"f\"}}]",
                      say[] = "{% for m in messages %}{{ m.role + ':' + m.content }};{% endfor %}";
    char s[600];
    renders("none", "{{ tools is none }}{{ documents is none }}", "[]", "[]", false, "TrueTrue");
    renders("a test for none alone", "{% if tools is not none %}X{% endif %}", u, NULL, false, "");
    /* OLMo 3: tools are listed behind the system text unless they are none */
    static const char olmo[] =
        "{% for m in messages %}{% if m.role == 'system' %}{{ m.content }}"
        "{%- if tools is not none -%}<functions>{{ tools | tojson }}</functions>{%- endif -%};"
        "{% else %}{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls }};{% endif %}{% endfor %}";
    renders("beside a system message", olmo, su, NULL, false, "S;U;");
    renders("given", olmo, su, tool, false, "S<functions>[{\"function\": {\"name\": \"f\"}}]</functions>;U;");
    /* Hermes 2 Pro, Command R+: they walk what is none */
    snprintf(s, sizeof s, "{%% for t in tools %%}{{ t.function.name }}{%% endfor %%}%s", say);
    renders("walked without a look", s, su, NULL, false, "system:S;user:U;");
    snprintf(s, sizeof s,
             "{%% if messages[0].role == 'system' %%}{%% for t in tools %%}x{%% endfor %%}"
             "{{ raise_exception('no system') }}{%% endif %%}%s",
             say);
    renders("walked and refused", s, su, NULL, false, "user:S\n\nU;");
    snprintf(s, sizeof s, "{%% for t in tools %%}x{%% endfor %%}{{ raise_exception('never') }}");
    refuses(s, u, NULL, HONE_E_ARG, "never");
    refuses("{{ (tools or []) | tojson }}{{ 1 + 'a' }}", u, NULL, HONE_E_FORMAT, "t:1:34: ");
    /* nor are they touched where the caller gives them as variables */
    hn_jinja *t = parse("{{ documents[0] }}{{ tools is none }}", 37);
    json_t *m = json("[]"), *v = json("{\"documents\": [\"d\"]}");
    hn_chat c = { .messages = m, .variables = v, .bos = "", .eos = "" };
    hn_jinja_text out;
    assert_int_equal(hn_chat_render(t, &c, &out, NULL), HONE_OK);
    assert_string_equal(out.text, "dTrue");
    hn_jinja_text_free(&out);
    json_decref(m);
    json_decref(v);
    hn_jinja_free(t);
}

#define CALLS \
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":{}}}]}"

/* Templates that refuse an order of messages get them in one that they take, and no more changed than that needs. */
static void orders(void **state)
{
#define SHOW                                                                                                           \
    "{{ '<' + m.role + '>' }}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}({{ p.text " \
    "}}){% endfor %}{% endif %}{% if m.tool_calls %}[{{ m.tool_calls[0].function.name }}"                              \
    "{{ m.tool_calls[0].function.arguments | tojson }}]{% endif %}"
    static const char
        /* Qwen 3.5 */
        first[] = "{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
                  "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
                  "{% if m.role == 'developer' %}{{ raise_exception('Unexpected message role.') }}{% endif %}" SHOW
                  "{% endfor %}",
        /* Mistral v0.1, Llama 2: one system message, then turns, those of tools apart */
        turns[] = "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'system' and loop.first %}"
                  "{% elif m.role == 'tool' or m.tool_calls %}{% else %}{% if (m.role == 'user') != (ns.n % 2 == 0) %}"
                  "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}"
                  "{% endif %}{% set ns.n = ns.n + 1 %}{% endif %}" SHOW "{% endfor %}",
        /* Gemma 2: no system message either */
        gemma[] = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
                  "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
                  "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}"
                  "{% endif %}" SHOW "{% endfor %}";
    static const struct {
        const char *what, *messages, *first, *turns, *gemma; /* NULL: refused */
    } rows[] = {
        { "as it is", SAYS("user", "U") "," SAYS("assistant", "A"), "<user>U<assistant>A", "<user>U<assistant>A",
          "<user>U<assistant>A" },
        { "Codex", SAYS("system", "S") "," SAYS("system", "T") "," SAYS("user", "U") "," SAYS("user", "V"),
          "<system>S\n\nT<user>U<user>V", "<system>S\n\nT<user>U\n\nV", "<user>S\n\nT\n\nU\n\nV" },
        { "a developer", SAYS("developer", "S") "," SAYS("user", "U"), "<system>S<user>U", "<system>S<user>U",
          "<user>S\n\nU" },
        { "late",
          SAYS("system", "S") "," SAYS("user", "U") "," SAYS("assistant", "A") "," SAYS("system", "T") "," SAYS("user",
                                                                                                                "V"),
          "<system>S<user>U<assistant>A<user>T<user>V", "<system>S<user>U<assistant>A<user>T\n\nV",
          "<user>S\n\nU<assistant>A<user>T\n\nV" },
        { "tools between",
          SAYS("system", "S") "," SAYS("user", "U") "," CALLS "," SAYS("tool", "R") "," SAYS("assistant", "A") "," SAYS(
              "system", "T"),
          "<system>S<user>U<assistant>[f{}]<tool>R<assistant>A<user>T",
          "<system>S<user>U<assistant>[f{}]<tool>R<assistant>A<user>T", NULL },
        { "calls stay apart",
          SAYS("user", "U") "," SAYS("user", "V") "," CALLS "," SAYS("tool", "R") "," SAYS("assistant", "A") "," SAYS(
              "assistant", "B"),
          "<user>U<user>V<assistant>[f{}]<tool>R<assistant>A<assistant>B",
          "<user>U\n\nV<assistant>[f{}]<tool>R<assistant>A\n\nB", NULL },
        { "empty ones", SAYS("system", "") "," SAYS("system", "T") "," SAYS("user", "U") "," SAYS("user", ""),
          "<system>T<user>U<user>", "<system>T<user>U", "<user>T\n\nU" },
        { "parts",
          SAYS("user", "U") ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"V\"},"
                            "{\"type\":\"text\",\"text\":\"W\"}]}",
          "<user>U<user>(V)(W)", "<user>(U)(V)(W)", "<user>(U)(V)(W)" },
        { "an answer first", SAYS("system", "S") "," SAYS("assistant", "A") "," SAYS("user", "U"),
          "<system>S<assistant>A<user>U", "<user>S<assistant>A<user>U", "<user>S<assistant>A<user>U" },
        { "out of turn", SAYS("assistant", "A") "," SAYS("user", "U"), "<assistant>A<user>U", NULL, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const source[] = { first, turns, gemma }, *const want[] = { rows[i].first, rows[i].turns,
                                                                                rows[i].gemma };
        char messages[800];
        snprintf(messages, sizeof messages, "[%s]", rows[i].messages);
        for (int k = 0; k < 3; k++) {
            if (want[k]) renders(rows[i].what, source[k], messages, NULL, false, want[k]);
            else refuses(source[k], messages, NULL, HONE_E_ARG, k < 2 ? "must alternate" : "role");
        }
    }
    /* nor is a system message lost where a template leaves some out without a word */
    static const char none[] = "{% for m in messages %}{% if m.role != 'system' %}" SHOW "{% endif %}{% endfor %}",
                      one[] = "{% for m in messages %}{% if m.role != 'system' or loop.first %}" SHOW
                              "{% endif %}{% endfor %}",
                      last[] = "{% set ns = namespace(s='') %}{% for m in messages %}{% if m.role == 'system' %}"
                               "{% set ns.s = m.content %}{% endif %}{% endfor %}({{ ns.s }}){% for m in messages %}"
                               "{% if m.role != 'system' %}" SHOW "{% endif %}{% endfor %}",
                      flag[] = "{% for m in messages %}{% if m.role == 'system' %}"
                               "{{ m.content.replace('/no_think', '')|trim }}{% else %}" SHOW "{% endif %}{% endfor %}";
#define S_U SAYS("system", " S ") "," SAYS("user", "U")
    renders("none written", none, "[" S_U "]", NULL, false, "<user> S \n\nU");
    renders("none written, tools in words", none, "[" SAYS("user", "U") "," SAYS("assistant", "A") "]",
            "[{\"name\":\"f\"}]", false,
            "<user>You can call functions. These are there, each with a JSON schema of its arguments:\n\n"
            "{\"name\":\"f\"}\n\nCall them in the form that you know.\n\nU<assistant>A");
    static const char strict[] = "{% set ns = namespace(n=0) %}{% for m in messages if m.role != 'system' %}"
                                 "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('turns') }}"
                                 "{% endif %}" SHOW "{% endfor %}";
    renders("none written, and in turn", strict,
            "[" S_U "," SAYS("assistant", "A") "," SAYS("system", "T") "," SAYS("user", "V") "]", NULL, false,
            "<user> S \n\nU<assistant>A<user>T\n\nV");
    renders("the first written", one, "[" S_U "," SAYS("assistant", "A") "," SAYS("system", "T") "]", NULL, false,
            "<system> S <user>U<assistant>A<user>T");
    renders("all but one are there", one, "[" S_U "," SAYS("assistant", "A") "]", NULL, false,
            "<system> S <user>U<assistant>A");
    renders("the last written", last, "[" S_U "," SAYS("system", "T") "," SAYS("assistant", "A") "]", NULL, false,
            "( S )<user>U<user>T<assistant>A");
    renders("two at the beginning", last, "[" SAYS("system", "R") "," S_U "]", NULL, false, "(R\n\n S )<user>U");
    renders("changed, and not left out", flag, "[" SAYS("system", "S /no_think T") "," SAYS("user", "U") "]", NULL,
            false, "S  T<user>U");
    renders("nowhere", "{{ messages[1].content }}", "[" S_U "," SAYS("user", "V") "]", NULL, false, "U");
    renders("a developer where there is none", none, "[" SAYS("developer", "D") "," SAYS("user", "U") "]", NULL, false,
            "<user>D\n\nU");
    renders("a developer where there is one", "{{ 'developer' }}{% for m in messages %}" SHOW "{% endfor %}",
            "[" SAYS("developer", "D") "," SAYS("user", "U") "]", NULL, false, "developer<developer>D<user>U");
    static const char nemo[] = "{% for m in messages if m.role != 'system' %}{% if loop.last and m.role == 'user' %}"
                               "({{ messages[0].content }}){% endif %}" SHOW "{% endfor %}";
    renders("written where its authors want it", nemo, "[" S_U "]", NULL, false, "( S )<user>U");
    renders("and left out elsewhere", nemo, "[" S_U "," SAYS("assistant", "A") "]", NULL, false, "<user>U<assistant>A");
    renders("but for what is said in words", nemo, "[" S_U "," SAYS("assistant", "A") "]", "[{\"name\":\"f\"}]", false,
            "<user> S \n\nYou can call functions. These are there, each with a JSON schema of its arguments:\n\n"
            "{\"name\":\"f\"}\n\nCall them in the form that you know.\n\nU<assistant>A");
    /* the first words stand, and reasoning is put together as contents are */
    refuses("{{ raise_exception('one' if messages|length > 1 else 'other') }}",
            "[" SAYS("user", "U") "," SAYS("user", "V") "]", NULL, HONE_E_ARG, "one");
    renders(
        "reasoning",
        "{% if messages|length > 2 %}{{ raise_exception('no') }}{% endif %}{% for m in messages %}"
        "{{ m.role }}[{{ m.reasoning_content }}]{{ m.content }}{{ m.name }};{% endfor %}",
        "[{\"role\":\"user\",\"content\":\"U\",\"name\":\"n\"},{\"role\":\"user\",\"content\":\"V\",\"name\":\"o\"},"
        "{\"role\":\"assistant\",\"content\":\"A\",\"reasoning_content\":\"r\"},"
        "{\"role\":\"assistant\",\"content\":\"B\",\"reasoning_content\":\"s\"},"
        "{\"role\":\"assistant\",\"content\":\"C\"}]",
        NULL, false, "user[]U\n\nVn;assistant[r\n\ns]A\n\nB\n\nC;");
}

/* Bodies are not friends: any number of turns in a row become one in one pass. */
static void arrange_many(void *arg, size_t n)
{
    const hn_chat_order *order = arg;
    bool changed;
    json_t *m = json_array();
    for (size_t i = 0; m && i < n; i++)
        json_array_append_new(m, json_pack("{s:s, s:s}", "role", *order == HN_CHAT_IN_TURN ? "user" : "system",
                                           "content", "something that is said"));
    assert_true(m && json_array_size(m) == n && hn_chat_arrange(m, *order, &changed) && changed);
    assert_int_equal(json_array_size(m), 1);
    json_decref(m);
}

static void many_turns(void **state)
{
    hn_chat_order orders[] = { HN_CHAT_SYSTEM_FIRST, HN_CHAT_IN_TURN };
    for (int i = 0; i < 2; i++)
        assert_true(grows_as_input("turns that become one", arrange_many, &orders[i], 500, 40000));
}

#define OFFER                                                                                                          \
    "You can call functions. These are there, each with a JSON schema of its arguments:\n\n"                           \
    "{\"name\":\"f\",\"description\":\"d\"}\n\nTo call one or more of them, answer with nothing but a JSON object of " \
    "this form:\n{\"tool_calls\": [{\"name\": \"NAME\", \"arguments\": {}}]}\nWhat they return comes in the next "     \
    "message. Where no function helps, answer in words."

/* A template that has no place for tools: what may be called, what was and what came of it are said in words. */
static void tools_in_words(void **state)
{
    static const char
        plain[] = "{% for m in messages %}{{ m.role + ':' + m.content }};{% endfor %}",
        strict[] = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
                   "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
                   "{{ raise_exception('in turn') }}{% endif %}{{ m.role + ':' + m.content }};"
                   "{% endfor %}",
        tool[] = "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\"}}]",
        u[] = "[{\"role\":\"user\",\"content\":\"U\"}]",
        su[] = "[{\"role\":\"system\",\"content\":\"S\"},{\"role\":\"user\",\"content\":\"U\"}]",
        talk[] = "[{\"role\":\"user\",\"content\":\"U\"},{\"role\":\"assistant\",\"content\":null,"
                 "\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": 1}\"}},"
                 "{\"id\":\"2\",\"function\":{\"name\":\"g\",\"arguments\":{}}}]},"
                 "{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":\"two\"},"
                 "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":[{\"type\":\"text\",\"text\":\"one\"},{"
                 "\"type\":\"text\","
                 "\"text\":\"more\"}]},"
                 "{\"role\":\"user\",\"content\":\"V\"},{\"role\":\"assistant\",\"content\":\"A\"}]";
    static const char said[] =
        "user:U;assistant:{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"x\": 1}}, "
        "{\"name\": \"g\", \"arguments\": {}}]};user:Result of g:\ntwo\n\nResult of f:\none\nmore"
        "\n\nV;assistant:A;";
    renders("offered", plain, u, tool, false, "system:" OFFER ";user:U;");
    renders("offered behind the system text", plain, su, tool, false, "system:S\n\n" OFFER ";user:U;");
    renders("offered without a system", strict, su, tool, false, "user:S\n\n" OFFER "\n\nU;");
    renders("what was called", plain, talk, NULL, false, said);
    renders("in turn", strict, talk, NULL, false, said);
    renders("written by the template, and not offered",
            "{% for m in messages %}{{ m.role + ':' + m.content }}{% for c in m.tool_calls or [] %}"
            "<c>{{ c.function.name }}{{ c.function.arguments | tojson }}</c>{% endfor %};{% endfor %}",
            u, tool, false,
            "system:You can call functions. These are there, each with a JSON schema of its arguments:\n\n"
            "{\"name\":\"f\",\"description\":\"d\"}\n\nCall them in the form that you know.;user:U;");
}

/* A file's template may be the name of a format: all of it, also what follows a NUL. */
static void named_formats(void **state)
{
    static const struct {
        const char *name;
        size_t len;
        bool known;
    } c[] = {
        { "chatml", 6, true },
        { "chatml\0", 7, false },
        { "chatml\0x", 8, false },
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        bb b = bb_head(3, 0, 2);
        bb_kv_str(&b, "general.architecture", "llama");
        bb_str(&b, "tokenizer.chat_template");
        bb_u32(&b, 8);
        bb_strn(&b, c[i].name, c[i].len);
        bb_pad(&b, 32);
        hn_gguf *g;
        hone_error e = { 0 };
        hone_str s;
        if (hn_gguf_parse(&g, b.p, b.n, "named.gguf", &e) != HONE_OK) fail_msg("%s", e.message);
        hone_status st = hn_chat_source(&s, g, NULL, NULL, false, &e);
        assert_int_equal(st, c[i].known ? HONE_OK : HONE_E_FORMAT);
        if (st != HONE_OK) assert_non_null(strstr(e.message, "'chatml\\x00"));
        hn_gguf_close(g);
        bb_free(&b);
    }
}

static void variables(void **state)
{
    hn_jinja *t = parse("{{ x }}|{{ bos_token }}|{{ messages|length }}", 45);
    json_t *m = json("[]"), *v = json("{\"x\": \"<y>\", \"bos_token\": \"<evil>\", \"messages\": 5}");
    hn_chat c = { .messages = m, .variables = v, .bos = "<s>", .eos = "" };
    hn_jinja_text out;
    hone_error e;
    assert_int_equal(hn_chat_render(t, &c, &out, &e), HONE_OK);
    assert_string_equal(out.text, "<y>|<s>|0");
    assert_int_equal(out.n_input, 1);
    assert_int_equal(out.input[0].end, 3);
    hn_jinja_text_free(&out);
    c.variables = m;
    assert_int_equal(hn_chat_render(t, &c, &out, &e), HONE_E_ARG);
    json_decref(m);
    json_decref(v);
    hn_jinja_free(t);
}

/* ---- ids ---------------------------------------------------------------------------------------------- */

static hn_vocab *vocab(const char *path)
{
    hn_gguf *g;
    hn_vocab *v = NULL;
    hone_error e = { 0 };
    if (hn_gguf_open(&g, path, &e) != HONE_OK || hn_vocab_new(&v, g, NULL, &e) != HONE_OK || !v)
        fail_msg("%s: %s", path, e.message);
    hn_gguf_close(g);
    return v;
}

static void ids_are(const hn_vocab *v, const char *text, const hone_span *input, size_t n_input, bool trust,
                    const int32_t *want, size_t n)
{
    hn_ids got = { 0 };
    hone_error e;
    assert_int_equal(hn_chat_encode(v, text, strlen(text), input, n_input, trust, &got, &e), HONE_OK);
    bool same = got.n == n && memcmp(got.data, want, n * sizeof *want) == 0;
    if (!same)
        for (size_t i = 0; i < got.n; i++) print_message("%d ", got.data[i]);
    if (!same) fail_msg("%s", text);
    free(got.data);
}
#define IDS(...) (const int32_t[]){ __VA_ARGS__ }, sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t)

static void protected_ids(void **state)
{
    hn_vocab *v =
        vocab("tests/fuzz/corpus/vocab/bpe_gpt-2.gguf"); /* bytes, <|end|> 102 CONTROL, <t> 103 USER_DEFINED */
    const hone_span none[1] = { { 0, 0 } }, all[1] = { { 0, 12 } }, middle[1] = { { 3, 4 } }, behind[1] = { { 7, 8 } },
                    before[1] = { { 0, 1 } }, two[2] = { { 0, 1 }, { 8, 9 } };
    int32_t b[8];
    const char *marker = "<|end|>";
    hn_ids plain = { 0 };
    assert_int_equal(hn_vocab_encode(v, marker, 7, 0, &plain, NULL), HONE_OK);
    assert_true(plain.n > 1 && plain.n <= 8);
    memcpy(b, plain.data, plain.n * sizeof *b);
    ids_are(v, marker, none, 0, false, IDS(102));
    ids_are(v, marker, all, 1, false, b, plain.n);
    ids_are(v, marker, middle, 1, false, b, plain.n);
    ids_are(v, marker, before, 1, false, b, plain.n);
    ids_are(v, marker, all, 1, true, IDS(102));
    ids_are(v, "<|end|>a", behind, 1, false, IDS(102, 64));
    ids_are(v, "a<|end|>a", two, 2, false, IDS(64, 102, 64));
    ids_are(v, "<t>", all, 1, false, IDS(103)); /* an added token of plain text stays one */
    free(plain.data);
    hn_vocab_free(v);

    v = vocab("tests/fuzz/corpus/vocab/spm.gguf"); /* <s> 1, a 16; adds BOS */
    assert_true(hn_vocab_add_bos(v));
    ids_are(v, "a", none, 0, false, IDS(1, 16));
    ids_are(v, "<s>a", none, 0, false, IDS(1, 16));
    hn_ids twice = { 0 };
    const hone_span typed[1] = { { 0, 4 } };
    assert_int_equal(hn_chat_encode(v, "<s>a", 4, typed, 1, false, &twice, NULL), HONE_OK);
    assert_true(twice.n > 3 && twice.data[0] == 1 && twice.data[1] != 1); /* typed by a user: text */
    free(twice.data);
    hn_vocab_free(v);
}

/* A conversation goes on: the end that the file adds to whole texts is no part of it, but the template's own is. */
static void no_end(void **state)
{
    hn_gguf *g;
    hn_vocab *v = NULL;
    bb old = { 0 }, b = { 0 };
    FILE *in = fopen("tests/fuzz/corpus/vocab/spm.gguf", "rb");
    unsigned char buf[4096];
    assert_non_null(in);
    for (size_t k; (k = fread(buf, 1, sizeof buf, in));) bb_raw(&old, buf, k);
    fclose(in);
    uint64_t n_kv;
    memcpy(&n_kv, old.p + 16, 8);
    b = bb_head(3, 0, n_kv + 1);
    bb_kv(&b, "tokenizer.ggml.add_eos_token", 7, 1, 1);
    bb_raw(&b, old.p + 24, old.n - 24);
    bb_pad(&b, 32);
    hone_error e = { 0 };
    if (hn_gguf_parse(&g, b.p, b.n, "t", &e) != HONE_OK || hn_vocab_new(&v, g, NULL, &e) != HONE_OK)
        fail_msg("%s", e.message);
    hn_gguf_close(g);
    bb_free(&old);
    bb_free(&b);
    assert_true(hn_vocab_add_bos(v) && hn_vocab_add_eos(v));
    const hone_span none[1] = { { 0, 0 } };
    ids_are(v, "a", none, 0, false, IDS(1, 16));
    ids_are(v, "<s>a", none, 0, false, IDS(1, 16));
    ids_are(v, "<s>a</s>", none, 0, false, IDS(1, 16, 2));
    hn_ids whole = { 0 };
    assert_int_equal(hn_vocab_encode(v, "a", 1, HONE_TOK_ADD, &whole, &e), HONE_OK);
    assert_true(whole.n == 3 && whole.data[0] == 1 && whole.data[2] == 2);
    whole.n = 0;
    assert_int_equal(hn_vocab_encode(v, "a", 1, HONE_TOK_ADD_BOS, &whole, &e), HONE_OK);
    assert_true(whole.n == 2 && whole.data[0] == 1 && whole.data[1] == 16);
    free(whole.data);
    hn_vocab_free(v);
}

/* ---- every special token of every vocabulary, in every template ------------------------------------------ */

#define TEMPLATES "../shared/data/templates"
#define VOCABS "../shared/data/tokenizers"

enum { MAX_TEMPLATES = 80 };
typedef struct named {
    char name[100];
    hn_jinja *t;
} named;

static size_t load_templates(named *list)
{
    size_t n = 0;
    static const char *const names[] = {
        "chatml", "llama2", "llama3",   "mistral", "gemma",     "phi3",    "phi4",
        "zephyr", "vicuna", "deepseek", "glm4",    "command-r", "gpt-oss", "rwkv-world"
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(list[n].name, sizeof list[n].name, "%s", names[i]);
        list[n++].t = parse(hn_chat_format(names[i]), strlen(hn_chat_format(names[i])));
    }
    DIR *d = opendir(TEMPLATES);
    if (!d) print_message("SKIP: no %s\n", TEMPLATES);
    for (struct dirent *f; d && (f = readdir(d));) {
        size_t k = strlen(f->d_name);
        if (k < 7 || strcmp(f->d_name + k - 6, ".jinja") != 0 || n == MAX_TEMPLATES) continue;
        char path[600], *s = malloc(1 << 17);
        snprintf(path, sizeof path, TEMPLATES "/%s", f->d_name);
        FILE *in = fopen(path, "rb");
        assert_true(in && s);
        size_t len = fread(s, 1, 1 << 17, in);
        fclose(in);
        snprintf(list[n].name, sizeof list[n].name, "%.90s", f->d_name);
        list[n++].t = parse(s, len);
        free(s);
    }
    if (d) closedir(d);
    return n;
}

/* Structure of the prompt whose messages and tools hold `text`: control ids, in order. */
static bool structure(const hn_jinja *t, const hn_vocab *v, const char *text, size_t len, bool trust, hn_ids *out,
                      const char *what)
{
    char said[400];
    snprintf(said, sizeof said, "Say %.*s now", (int)len, text);
    json_t *m = json_pack("[{s:s,s:s},{s:s,s:s},{s:s,s:s}]", "role", "user", "content", said, "role", "assistant",
                          "content", said, "role", "user", "content", said);
    json_t *tools = json_pack("[{s:s,s:{s:s,s:s,s:{s:s,s:{s:{s:s,s:s}},s:[s]}}}]", "type", "function", "function",
                              "name", "fn", "description", said, "parameters", "type", "object", "properties", "p",
                              "type", "string", "description", said, "required", "p");
    bool shown = hn_jinja_mentions(t, "tools") || hn_jinja_mentions(t, "functions"); /* else they stand in words */
    size_t n_bos = 0, n_eos = 0;
    const char *bos = hn_vocab_bos(v) >= 0 ? hn_vocab_piece(v, hn_vocab_bos(v), true, &n_bos) : "",
               *eos = hn_vocab_eos(v) >= 0 ? hn_vocab_piece(v, hn_vocab_eos(v), true, &n_eos) : "";
    char b[64], e[64];
    snprintf(b, sizeof b, "%.*s", (int)n_bos, bos);
    snprintf(e, sizeof e, "%.*s", (int)n_eos, eos);
    assert_true(m && tools);
    if (!shown) { /* so do calls and results */
        json_t *call = json_pack("{s:s,s:s,s:[{s:s,s:s,s:{s:s,s:{s:s}}}]}", "role", "assistant", "content", said,
                                 "tool_calls", "id", "call00001", "type", "function", "function", "name", "fn",
                                 "arguments", "p", said),
               *result = json_pack("{s:s,s:s,s:s}", "role", "tool", "tool_call_id", "call00001", "content", said);
        assert_true(json_array_insert_new(m, 1, call) == 0 && json_array_insert_new(m, 2, result) == 0);
    }
    hn_chat c = { .messages = m, .tools = tools, .bos = b, .eos = e, .now = &now, .add_generation_prompt = true };
    hn_jinja_text r;
    hone_error err = { 0 };
    hn_ids ids = { 0 };
    hone_status st = hn_chat_render(t, &c, &r, &err);
    json_decref(m);
    json_decref(tools);
    out->n = 0;
    if (st != HONE_OK) fail_msg("%s: %s", what, err.message);
    bool present = memmem(r.text, r.len, text, len) != NULL;
    assert_int_equal(hn_chat_encode(v, r.text, r.len, r.input, r.n_input, trust, &ids, &err), HONE_OK);
    hn_jinja_text_free(&r);
    out->data = realloc(out->data, (ids.n + 1) * sizeof *out->data);
    for (size_t i = 0; i < ids.n; i++)
        if (hn_vocab_is_control(v, ids.data[i]) || hn_vocab_is_eog(v, ids.data[i])) out->data[out->n++] = ids.data[i];
    free(ids.data);
    return present;
}

static void injection(void **state)
{
    static const char *const builtin[] = { "tests/fuzz/corpus/vocab/bpe_gpt-2.gguf", "tests/fuzz/corpus/vocab/spm.gguf",
                                           "tests/fuzz/corpus/vocab/phi3.gguf", "tests/fuzz/corpus/vocab/rwkv.gguf" };
    named list[MAX_TEMPLATES];
    size_t n = load_templates(list), pairs = 0, present = 0, special = 0, n_path = 0, trusted_more = 0;
    char path[40][400];
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++)
        snprintf(path[n_path++], sizeof *path, "%s", builtin[i]);
    DIR *d = opendir(VOCABS);
    if (!d) print_message("SKIP: no %s\n", VOCABS);
    for (struct dirent *f; d && (f = readdir(d));) {
        size_t k = strlen(f->d_name);
        if (k > 5 && strcmp(f->d_name + k - 5, ".gguf") == 0 && n_path < 40)
            snprintf(path[n_path++], sizeof *path, VOCABS "/%.300s", f->d_name);
    }
    if (d) closedir(d);
    hn_ids clean = { 0 }, dirty = { 0 }, open = { 0 };
    for (size_t p = 0; p < n_path; p++) {
        hn_vocab *v = vocab(path[p]);
        for (size_t i = 0; i < n; i++) {
            structure(list[i].t, v, "", 0, false, &clean, list[i].name);
            for (int32_t id = 0; id < hn_vocab_size(v); id++) {
                size_t len;
                const char *s = hn_vocab_piece(v, id, true, &len);
                if (!(hn_vocab_is_control(v, id) || hn_vocab_is_eog(v, id)) || !len || len > 100 || memchr(s, 0, len))
                    continue;
                /* RWKV's end of a turn is two newlines: text like any other */
                if (!hn_vocab_is_control(v, id) && hn_vocab_get_kind(v) == HN_VOCAB_RWKV) continue;
                special += i == 0;
                if (SLOWED && (i + (size_t)id) % 4) continue;
                pairs++;
                present += structure(list[i].t, v, s, len, false, &dirty, list[i].name);
                if (clean.n != dirty.n || memcmp(clean.data, dirty.data, clean.n * sizeof *clean.data) != 0)
                    fail_msg("%s, %s: token %d '%.*s' in a message gives %zu control ids, without it %zu", path[p],
                             list[i].name, id, (int)len, s, dirty.n, clean.n);
                structure(list[i].t, v, s, len, true, &open, list[i].name);
                trusted_more += open.n > clean.n;
            }
        }
        hn_vocab_free(v);
    }
    for (size_t i = 0; i < n; i++) hn_jinja_free(list[i].t);
    free(clean.data);
    free(dirty.data);
    free(open.data);
    print_message("%zu vocabularies, %zu special tokens, %zu templates: %zu prompts, token printed in %zu, structure "
                  "with trust_input in %zu\n",
                  n_path, special, n, pairs, present, trusted_more);
    assert_true(present > pairs / 2 && trusted_more > pairs / 2); /* so the check can fail */
}

/* An answer that has begun goes on: nothing of the turn's end stands behind it. */
static void continued(void **state)
{
    static const char question[] = "{\"role\":\"user\",\"content\":\"Say it\"}";
    static const struct {
        const char *format, *answer, *end; /* answer: JSON; end NULL: refused */
        hone_status st;
    } rows[] = {
        { "chatml", "{\"role\":\"assistant\",\"content\":\"It is\"}", "<|im_start|>assistant\nIt is", HONE_OK },
        { "llama3", "{\"role\":\"assistant\",\"content\":\" It is \"}", "\n\nIt is", HONE_OK },
        { "chatml", "{\"role\":\"assistant\",\"content\":\"\"}", NULL, HONE_E_ARG },
        { "chatml",
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"It\"},"
          "{\"type\":\"text\",\"text\":\" is\\n\"}]}",
          "<|im_start|>assistant\nIt is\n", HONE_OK },
        { "llama3",
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"It\"},"
          "{\"type\":\"text\",\"text\":\" is\\n\"}]}",
          "\n\nIt is", HONE_OK },
        { "{% for m in messages %}{% for p in m.content %}({{ p.text }}){% endfor %}{% endfor %}",
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"It\"},"
          "{\"type\":\"text\",\"text\":\"is\"}]}",
          "(It)(is", HONE_OK },
        { "chatml", "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", NULL, HONE_E_ARG },
        { "chatml", "{\"role\":\"user\",\"content\":\"It is\"}", NULL, HONE_E_ARG },
        { "{% for m in messages %}{{ m.role }}{% endfor %}", "{\"role\":\"assistant\",\"content\":\"It is\"}", NULL,
          HONE_E_UNSUPPORTED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char messages[256];
        hone_chat_text t;
        snprintf(messages, sizeof messages, "[%s,%s]", question, rows[i].answer);
        hone_chat_params p = { .messages = messages, .chat_template = rows[i].format, .continue_final = true };
        assert_int_equal(hone_chat_render(NULL, &p, &t, NULL), rows[i].st);
        if (!rows[i].end) {
            assert_null(t.text);
            continue;
        }
        size_t n = strlen(rows[i].end);
        assert_true(t.len > n && strlen(t.text) == t.len);
        assert_string_equal(t.text + t.len - n, rows[i].end);
        hone_chat_text_free(&t);
    }
    hone_chat_text t;
    hone_chat_params dated = { .messages = "[{\"role\":\"user\",\"content\":\"Hi\"}]",
                               .chat_template = "{{ messages[0].content + datetime + functions }}" };
    assert_int_equal(hone_chat_render(NULL, &dated, &t, NULL), HONE_OK); /* nobody says what time it is */
    assert_true(t.len == strlen("HiNov 27 2026 00:00:00 GMT") && strcmp(t.text + t.len - 4, " GMT") == 0);
    hone_chat_text_free(&t);
    dated.variables = "{\"datetime\":\"now\"}";
    assert_int_equal(hone_chat_render(NULL, &dated, &t, NULL), HONE_OK);
    assert_string_equal(t.text, "Hinow");
    hone_chat_text_free(&t);
    hone_chat_params both = { .messages = "[{\"role\":\"assistant\",\"content\":\"It is\"}]",
                              .chat_template = "chatml",
                              .continue_final = true,
                              .add_generation_prompt = true };
    assert_int_equal(hone_chat_render(NULL, &both, &t, NULL), HONE_E_ARG);
}

#define NINE_IDS                                                                                      \
    "{% for m in messages %}{% for c in m.tool_calls or [] %}"                                        \
    "{% if c.id is not defined or c.id | length != 9 %}{{ raise_exception('9!') }}{% endif %}"        \
    "[TOOL_CALLS]{{ c.function.name }}{{ c.function.arguments }}={{ c.id }};{% endfor %}"             \
    "{% if m.role == 'tool' %}{% if m.tool_call_id is not defined or m.tool_call_id | length != 9 %}" \
    "{{ raise_exception('9!') }}{% endif %}R={{ m.tool_call_id }};{% else %}{{ m.content }}{% endif %}{% endfor %}"
#define KIMI_IDS                                                                                                       \
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.id }}<|tool_call_argument_begin|>"                   \
    "{{ c.function.arguments }};{% endfor %}{% if m.role == 'tool' %}R={{ m.tool_call_id }};{% else %}{{ m.content }}" \
    "{% endif %}{% endfor %}"
#define CALLED(id) \
    "{\"role\":\"assistant\",\"tool_calls\":[{" id "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define RESULT(id) "{\"role\":\"tool\"," id "\"content\":\"r\"}"
#define ID(text) "\"id\":\"" text "\","
#define OF(text) "\"tool_call_id\":\"" text "\","

/* Calls whose ids a template does not take have such as it takes, by their place alone, and so have their results. */
static void ids_of_calls(void **state)
{
    static const char *const same[] = {
        "[" CALLED(ID("toolu_12345678901234567890abcd")) "," RESULT(OF("toolu_12345678901234567890abcd")) "," CALLED(
            ID("x")) "," RESULT(OF("x")) "]",
        "[" CALLED(ID("call_0")) "," RESULT(OF("call_0")) "," CALLED(ID("call_1")) "," RESULT(OF("call_1")) "]",
        "[" CALLED(ID("call_0")) "," RESULT(OF("call_0")) "," CALLED(ID("call_0")) "," RESULT(OF("call_0")) "]",
        "[" CALLED("") "," RESULT("") "," CALLED("") "," RESULT("") "]",
    };
    char first[256] = "";
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        hn_jinja_text out;
        hone_error e = { 0 };
        if (render(NINE_IDS, same[i], NULL, false, &out, &e) != HONE_OK) fail_msg("%zu: %s", i, e.message);
        if (!i) snprintf(first, sizeof first, "%s", out.text);
        assert_string_equal(out.text, first);
        hn_jinja_text_free(&out);
    }
    char one[10], two[10], r1[10], r2[10];
    assert_int_equal(
        sscanf(first, "[TOOL_CALLS]f{}=%9[^;];R=%9[^;];[TOOL_CALLS]f{}=%9[^;];R=%9[^;];", one, r1, two, r2), 4);
    assert_true(strlen(one) == 9 && !strcmp(one, r1) && !strcmp(two, r2) && strcmp(one, two));

    renders("an id that fits", NINE_IDS, "[" CALLED(ID("aB3dE6gH9")) "," RESULT(OF("aB3dE6gH9")) "]", NULL, false,
            "[TOOL_CALLS]f{}=aB3dE6gH9;R=aB3dE6gH9;");
    renders("Kimi K2's", KIMI_IDS,
            "[" CALLED(ID("functions.f:0")) "," RESULT(OF("functions.f:0")) "," CALLED(ID("call_x")) "," RESULT(
                OF("call_x")) "]",
            NULL, false,
            "functions.f:0<|tool_call_argument_begin|>{};R=functions.f:0;functions.f:1<|tool_call_argument_begin|>{};"
            "R=functions.f:1;");

#define F(id) "{" id "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}"
#define TURN(calls) "{\"role\":\"assistant\",\"tool_calls\":[" calls "]},"
#define SAME OF("call_0")
    renders("one id of several calls, which earlier ones had too", KIMI_IDS,
            "[" TURN(F(ID("call_0"))) RESULT(SAME) "," TURN(F(ID("call_0")) "," F(ID("z")) "," F(ID("call_0")))
                RESULT(SAME) "," RESULT(OF("z")) "," RESULT(SAME) "," RESULT(SAME) "]",
            NULL, false,
            "functions.f:0<|tool_call_argument_begin|>{};R=functions.f:0;functions.f:1<|tool_call_argument_begin|>{};"
            "functions.f:2<|tool_call_argument_begin|>{};functions.f:3<|tool_call_argument_begin|>{};"
            "R=functions.f:1;R=functions.f:2;R=functions.f:3;R=functions.f:3;");
    renders("an id that no call has; calls whose results come late", KIMI_IDS,
            "[" TURN(F(ID("a")) "," F(ID("b"))) RESULT(OF("b")) "," RESULT(OF("?")) "," TURN(F(ID("c")))
                RESULT(OF("a")) "," RESULT(OF("c")) "]",
            NULL, false,
            "functions.f:0<|tool_call_argument_begin|>{};functions.f:1<|tool_call_argument_begin|>{};R=functions.f:1;"
            "R=functions.f:0;functions.f:2<|tool_call_argument_begin|>{};R=functions.f:0;R=functions.f:2;");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(continued),      cmocka_unit_test(formats),
                                        cmocka_unit_test(preparation),    cmocka_unit_test(thoughts_in_parts),
                                        cmocka_unit_test(tools_in_words), cmocka_unit_test(named_formats),
                                        cmocka_unit_test(variables),      cmocka_unit_test(protected_ids),
                                        cmocka_unit_test(injection),      cmocka_unit_test(nothing_given),
                                        cmocka_unit_test(orders),         cmocka_unit_test(no_end),
                                        cmocka_unit_test(many_turns),     cmocka_unit_test(ids_of_calls) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
