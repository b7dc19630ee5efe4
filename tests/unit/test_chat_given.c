/* Conversations and tools as programs send them, which published templates refuse as they are: a word of the user's
 * behind a tool's result, answers that say nothing, tools that leave their description or parameters out. */
#include "gguf_bytes.h"
#include "text/chat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

static hone_status render(const char *source, const char *messages, const char *tools, hn_jinja_text *out,
                          hone_error *err)
{
    hn_jinja *t;
    hn_chat c = { .messages = json_loads(messages, 0, NULL),
                  .tools = tools ? json_loads(tools, 0, NULL) : NULL,
                  .bos = "<s>",
                  .eos = "</s>" };
    assert_non_null(c.messages);
    assert_true(!tools || c.tools);
    assert_int_equal(hn_jinja_parse(&t, source, strlen(source), "t", NULL, err), HONE_OK);
    hone_status st = hn_chat_render(t, &c, out, err);
    hn_jinja_free(t);
    json_decref((json_t *)c.messages);
    json_decref((json_t *)c.tools);
    return st;
}

static void renders(const char *what, const char *source, const char *messages, const char *tools, const char *want)
{
    hn_jinja_text out;
    hone_error e = { 0 };
    if (render(source, messages, tools, &out, &e) != HONE_OK) fail_msg("%s: %s", what, e.message);
    if (strcmp(out.text, want) != 0) fail_msg("%s:\n  want %s\n  got  %s", what, want, out.text);
    hn_jinja_text_free(&out);
}

static void refuses(const char *what, const char *source, const char *messages, const char *tools, const char *says)
{
    hn_jinja_text out;
    hone_error e = { 0 };
    hone_status st = render(source, messages, tools, &out, &e);
    if (st != HONE_E_ARG || !strstr(e.message, says)) fail_msg("%s: %s %s", what, hone_status_name(st), e.message);
    assert_null(out.text);
}

#define SAYS(role, content) "{\"role\":\"" role "\",\"content\":\"" content "\"}"
#define CALLS                                                                                               \
    "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"abcdefghi\",\"type\":\"function\"," \
    "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"
#define RESULT "{\"role\":\"tool\",\"tool_call_id\":\"abcdefghi\",\"content\":\"R\"}"
#define SHOW                                                                               \
    "<{{ m.role }}>{% if m.tool_calls %}{% for c in m.tool_calls %}[{{ c.function.name }}" \
    "{{ c.function.arguments|tojson }}]{% endfor %}{% else %}{{ m.content }}{% endif %}"

/* Mistral's: users and answers take turns, calls and results apart; an answer has words */
static const char turns[] =
    "{% set ns = namespace(n=0) %}{% for m in messages %}{% if m.role == 'system' and not loop.first %}"
    "{{ raise_exception('system first') }}{% endif %}{% if m.role != 'system' and m.role != 'tool' and "
    "not m.tool_calls %}{% if (m.role == 'user') != (ns.n % 2 == 0) %}"
    "{{ raise_exception('conversation roles must alternate') }}{% endif %}{% set ns.n = ns.n + 1 %}"
    "{% if m.role == 'assistant' and not m.content %}{{ raise_exception('an answer must have words') }}{% endif %}"
    "{% endif %}" SHOW "{% endfor %}";

static void behind_results(void **state)
{
    renders("as it is", turns, "[" SAYS("user", "U") "," CALLS "," RESULT "," SAYS("assistant", "A") "]", NULL,
            "<user>U<assistant>[f{}]<tool>R<assistant>A");
    renders("the user interrupts", turns, "[" SAYS("user", "U") "," CALLS "," RESULT "," SAYS("user", "V") "]", NULL,
            "<user>U<assistant>[f{}]<tool>R\n\nV");
    renders("and says more, and is answered", turns,
            "[" SAYS("system", "S") "," SAYS("user", "U") "," CALLS "," RESULT "," SAYS("user", "V") "," SAYS(
                "user", "W") "," SAYS("assistant", "A") "," SAYS("user", "X") "]",
            NULL, "<system>S<user>U<assistant>[f{}]<tool>R\n\nV\n\nW<assistant>A<user>X");
    renders("rules come behind it", turns, "[" SAYS("user", "U") "," CALLS "," RESULT "," SAYS("system", "T") "]", NULL,
            "<user>U<assistant>[f{}]<tool>R\n\nT");
    renders("in parts", turns,
            "[" SAYS("user", "U") "," CALLS "," RESULT
                                  ",{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"V\"}]}]",
            NULL, "<user>U<assistant>[f{}]<tool>R\n\nV");
}

static void without_words(void **state)
{
    renders("an answer that was stopped", turns,
            "[" SAYS("user", "U") "," SAYS("assistant", "") "," SAYS("user", "V") "]", NULL, "<user>U\n\nV");
    renders("behind a result", turns,
            "[" SAYS("user", "U") "," CALLS "," RESULT "," SAYS("assistant", "") "," SAYS("user", "V") "]", NULL,
            "<user>U<assistant>[f{}]<tool>R\n\nV");
    refuses("the last one", turns, "[" SAYS("user", "U") "," SAYS("assistant", "") "]", NULL,
            "an answer must have words");
    static const char any[] = "{% for m in messages %}" SHOW "{% endfor %}";
    renders("where it may stand", any, "[" SAYS("user", "U") "," SAYS("assistant", "") "," SAYS("user", "V") "]", NULL,
            "<user>U<assistant><user>V");
}

/* As gpt-oss' and Seed-OSS' do, which go wrong of what is undefined. */
static void tools_that_say_little(void **state)
{
    static const char reads[] =
        "{% for t in tools %}{{ '// ' + t.function.description + '|' }}"
        "{% for k, p in t.function.parameters.properties.items() %}{{ k }}{% endfor %}{% endfor %}"
        "{% for m in messages %}" SHOW "{% endfor %}",
                      writes[] =
                          "{% for t in tools %}{{ t|tojson }}{% endfor %}{% for m in messages %}" SHOW "{% endfor %}";
    const char user[] = "[" SAYS("user", "U") "]";
    renders("all there", reads, user,
            "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\",\"parameters\":"
            "{\"type\":\"object\",\"properties\":{\"a\":{}}}}}]",
            "// d|a<user>U");
    renders("no description", reads, user,
            "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":"
            "{\"type\":\"object\",\"properties\":{\"a\":{}}}}}]",
            "// |a<user>U");
    renders("null", reads, user,
            "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":null,\"parameters\":null}}]",
            "// |<user>U");
    renders("no parameters, and some without members", reads, user,
            "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"description\":\"d\"}},"
            "{\"type\":\"function\",\"function\":{\"name\":\"g\",\"description\":\"e\",\"parameters\":{}}}]",
            "// d|// e|<user>U");
    static const char members[] = "{% for t in tools %}{% for k, p in t.function.parameters.properties.items() %}"
                                  "{{ k + ':' + p.description + '|' }}{% endfor %}{% endfor %}"
                                  "{% for m in messages %}" SHOW "{% endfor %}";
    renders("parameters without descriptions", members, user,
            "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"type\":\"object\","
            "\"properties\":{\"a\":{\"type\":\"string\"},\"b\":{\"description\":\"d\"}}}}}]",
            "a:|b:d|<user>U");
    renders("as it came where that will do", writes, user, "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]",
            "{\"type\": \"function\", \"function\": {\"name\": \"f\"}}<user>U");
    refuses("another fault is told as it was", "{{ raise_exception('no tools here') }}{% for t in tools %}{% endfor %}",
            user, "[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}]", "no tools here");
}

/* Command R7B's template speaks of a developer's preamble, and drops messages of that role. */
static void developers(void **state)
{
    static const char prose[] = "The developer preamble:{% for m in messages %}{% if m.role == 'system' %}"
                                "{{ m.content }}{% endif %}{% endfor %}{% for m in messages %}{% if m.role == 'user' %}"
                                "<user>{{ m.content }}{% endif %}{% endfor %}",
                      role[] = "{% for m in messages %}{% if m.role == 'developer' or m.role == 'user' %}" SHOW
                               "{% endif %}{% endfor %}",
                      parts[] = "{% for m in messages %}{% if m.role in ['developer', 'user'] %}<{{ m.role }}>"
                                "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}{% endfor %}";
    const char said[] = "[" SAYS("developer", "D") "," SAYS("user", "U") "]";
    renders("a word that is no role", prose, said, NULL, "The developer preamble:D<user>U");
    renders("a role", role, said, NULL, "<developer>D<user>U");
    renders("a role with parts", parts, said, NULL, "<developer>D<user>U");
}

/* The format of a name writes calls as the model itself does; they were left out, and an empty answer stood there. */
static void calls_of_harmony(void **state)
{
    const char *source = hn_chat_format("gpt-oss");
    assert_non_null(source);
    renders("a call and its result", source, "[" SAYS("user", "U") "," CALLS "," RESULT "," SAYS("assistant", "A") "]",
            NULL,
            "<|start|>user<|message|>U<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>{}"
            "<|call|><|start|>functions.f to=assistant<|channel|>commentary<|message|>\"R\"<|end|>"
            "<|start|>assistant<|channel|>final<|message|>A<|end|>");
    renders("words beside it", source,
            "[" SAYS("user", "U") ",{\"role\":\"assistant\",\"content\":\"W\",\"tool_calls\":[{\"id\":\"1\",\"type\":"
                                  "\"function\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1]}}}]}]",
            NULL,
            "<|start|>user<|message|>U<|end|><|start|>assistant<|channel|>commentary<|message|>W<|end|>"
            "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>{\"a\": [1]}<|call|>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(behind_results), cmocka_unit_test(without_words),    cmocka_unit_test(tools_that_say_little),
        cmocka_unit_test(developers),     cmocka_unit_test(calls_of_harmony),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
