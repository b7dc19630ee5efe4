/* Out of memory in templates and chats: the k-th allocation fails, for k = 1, 2, … until
 * the call succeeds. Each failure must be HONE_E_NOMEM with a message, give nothing, and
 * leak nothing (AddressSanitizer's leak check sees that in the asan flavour). */
#include "text/chat.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "fail_each.h"

/* ---- what is tried ----------------------------------------------------------------------- */

static json_t *context, *messages, *tools;
static char *expected; /* what fn wrote when nothing failed */
static size_t n_expected;

/* A text that lacks something must not pass for one: all that are written are the same. */
static void same(const hn_jinja_text *out)
{
    if (!expected) {
        expected = __real_malloc(out->len + 1);
        memcpy(expected, out->text, out->len + 1);
        n_expected = out->len;
    }
    if (out->len != n_expected || memcmp(out->text, expected, n_expected) != 0)
        fail_msg("wrote %s\ninstead of %s", out->text, expected);
}
static hn_jinja *chat_template;

/* Every file of the interpreter: text, lists, dicts, JSON both ways, macros, formats. */
static const char source[] =
    "{% macro m(a, b=2) %}{{ a }}{{ caller() if caller }}{{ varargs }}{{ kwargs }}{% endmacro %}{% set ns = "
    "namespace(s='') %}"
    "{% for k, v in d|dictsort %}{% set ns.s = ns.s ~ k ~ v %}{{ loop.index }}{{ loop.previtem }}{% else %}none{% "
    "endfor %}"
    "{% call(x) m(1, 2, 3, z=4) %}body{% endcall %}{% set t %}{{ s|upper|replace('L', 'xx')|indent(2) }}{% endset %}{{ "
    "t|safe + '<' }}"
    "{{ d|tojson(indent=2, sort_keys=true) }}{{ '{\"a\": [1, 2.5, null, \"x\"]}'|from_json }}{{ "
    "s.split('l')|map('upper')|join(',') }}"
    "{{ '%5d %s' % (1, s) }}{{ '{:>8} {x}'.format(s, x=2) }}{{ strftime_now('%d %b %Y') }}{{ s[::-1] }}{{ "
    "l|sort|unique|list }}{{ o|groupby('r') }}"
    "{{ [s, s] * 20 }}{{ {'a': 1, 'b': 2}|length }}{{ s.partition('l') }}{{ o|selectattr('r', 'eq', 'u')|list }}";

static hone_status parse_template(hone_error *err)
{
    hn_jinja *t = (hn_jinja *)1;
    hone_status st = hn_jinja_parse(&t, source, sizeof source - 1, "t", NULL, err);
    if (st) assert_null(t);
    else hn_jinja_free(t);
    return st;
}

static hone_status render_template(hone_error *err)
{
    static const hn_jinja_time now = { 2026, 2, 3, 4, 5, 6 };
    hn_jinja *t;
    hn_jinja_text out = { 0 };
    hn_jinja_vars vars = { .context = context, .now = &now };
    hone_status st = hn_jinja_parse(&t, source, sizeof source - 1, "t", NULL, err);
    if (st) return st;
    st = hn_jinja_render(t, &vars, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    hn_jinja_text_free(&out);
    hn_jinja_free(t);
    return st;
}

/* Content parts, calls with arguments as text and a system message: everything is adapted. */
static hone_status render_chat(hone_error *err)
{
    hn_jinja_text out = { 0 };
    hn_chat c = { .messages = messages, .tools = tools, .bos = "<s>", .eos = "</s>", .add_generation_prompt = true };
    hone_status st = hn_chat_render(chat_template, &c, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    hn_jinja_text_free(&out);
    return st;
}

/* What is written without a failure becomes known anew. */
static void fail_anew(hone_status (*fn)(hone_error *))
{
    free(expected);
    expected = NULL;
    fail_each(fn);
}

static void parsing(void **state) { fail_anew(parse_template); }
static void rendering(void **state) { fail_anew(render_template); }
static void chatting(void **state) { fail_anew(render_chat); }

static int setup(void **state)
{
    hone_error err;
    static const char form[] = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% "
                               "endif %}<{{ m.role }}>{{ m.content + '' }}"
                               "{% for t in m.tool_calls or [] %}{% for k, v in t.function.arguments.items() %}{{ k "
                               "}}={{ v }}{% endfor %}{% endfor %}{% endfor %}"
                               "{{ (tools or [])|tojson }}{% if functions %}{{ functions }}{% endif %}";
    json_set_alloc_funcs(malloc, free); /* the allocator that fails, here too */
    context = json_loads("{\"s\": \"hello\", \"l\": [3, 1, 2, 3], \"d\": {\"k\": \"v\", \"a\": 1, \"b\": 2.5}, \"o\": "
                         "[{\"r\": \"u\"}, {\"r\": \"a\"}]}",
                         0, NULL);
    messages = json_loads("[{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"user\", \"content\": [{\"type\": "
                          "\"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}]},"
                          " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"call00001\", "
                          "\"type\": \"function\", \"function\": {\"name\": \"f\","
                          " \"arguments\": \"{\\\"x\\\": 1}\"}}]}]",
                          0, NULL);
    tools = json_loads("[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]", 0, NULL);
    return !context || !messages || !tools ||
           hn_jinja_parse(&chat_template, form, sizeof form - 1, "t", NULL, &err) != HONE_OK;
}

static int teardown(void **state)
{
    json_decref(context);
    json_decref(messages);
    json_decref(tools);
    hn_jinja_free(chat_template);
    free(expected);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(parsing), cmocka_unit_test(rendering),
                                        cmocka_unit_test(chatting) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
