/* Out of memory in templates and chats: the k-th allocation fails, for k = 1, 2, … until
 * the call succeeds. Each failure must be HONE_E_NOMEM with a message, give nothing, and
 * leak nothing (AddressSanitizer's leak check sees that in the asan flavour). */
#include "../unit/gguf_bytes.h"
#include "text/reply.h"

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

/* Content parts, a call whose id does not fit and whose arguments are cut, a system message: all is adapted. */
static hone_status render_chat(hone_error *err)
{
    hn_jinja_text out = { 0 };
    hn_chat c = { .messages = messages, .tools = tools, .bos = "<s>", .eos = "</s>", .add_generation_prompt = true };
    hone_status st = hn_chat_render(chat_template, &c, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    if (!st) assert_non_null(strstr(out.text, "x=12345678901234567890"));
    hn_jinja_text_free(&out);
    return st;
}

/* A template that walks tools without a look, wants a system message in parts and shows the first alone. */
static const char losing[] =
    "{% for t in tools %}x{% endfor %}{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>"
    "{{ m.content if m.content is string else m.content[0].text }}{% elif loop.first %}({{ m.content[0].text + '' }})"
    "{% endif %}{% endfor %}";
static hn_jinja *losing_template;

static hone_status render_lost(hone_error *err)
{
    hn_jinja_text out = { 0 };
    hn_chat c = { .messages = messages, .bos = "<s>", .eos = "</s>", .add_generation_prompt = true };
    hone_status st = hn_chat_render(losing_template, &c, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    if (!st) assert_non_null(strstr(out.text, "(S\n\nT)<user>u"));
    hn_jinja_text_free(&out);
    return st;
}

/* A template that writes calls beside null alone. */
static const char alone[] = "{% for m in messages %}<{{ m.role }}>{% if m.content is none %}{% for c in m.tool_calls %}"
                            "[{{ c.function.name }}{{ c.function.arguments }}]{% endfor %}{% else %}{{ m.content }}"
                            "{% endif %}{% endfor %}";
static hn_jinja *alone_template;
static json_t *talk;

static hone_status render_alone(hone_error *err)
{
    hn_jinja_text out = { 0 };
    hn_chat c = { .messages = talk, .bos = "<s>", .eos = "</s>" };
    hone_status st = hn_chat_render(alone_template, &c, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    if (!st) assert_non_null(strstr(out.text, "<assistant>so<assistant>[f{\"x\": 1}]"));
    hn_jinja_text_free(&out);
    return st;
}

/* A template with reasoning in its own shape, and a vocabulary that spells everything in bytes. */
static const char thinking[] =
    "{% for m in messages %}<|{{ m.role }}|>{% if m.thinking %}<muse>{{ m.thinking }}</muse>{% endif %}{{ m.content }}"
    "<end>{% endfor %}{% if add_generation_prompt and enable_thinking %}<muse>{% endif %}";
static json_t *earlier;
static hn_jinja *thinks;
static hn_vocab *vocab;

static hn_vocab *make_vocab(void)
{
    hn_gguf *g;
    hn_vocab *v = NULL;
    bb f = bb_head(3, 0, 2);
    char esc[8];
    bb_kv_str(&f, "tokenizer.ggml.model", "rwkv");
    bb_kv_array(&f, "tokenizer.ggml.tokens", 8, 256);
    for (int i = 0; i < 256; i++) bb_strn(&f, esc, (size_t)sprintf(esc, "\\x%02x", i));
    if (hn_gguf_parse(&g, f.p, f.n, "t", NULL) != HONE_OK) return NULL;
    hn_vocab_new(&v, g, NULL, NULL);
    hn_gguf_close(g);
    bb_free(&f);
    return v;
}

static hone_status find_format(hone_error *err)
{
    hn_reply_format f;
    hn_chat c = { .bos = "<s>", .eos = "</s>" };
    hone_status st = hn_reply_format_make(&f, thinks, (hone_str){ thinking, sizeof thinking - 1 }, &c, vocab, err);
    json_t *o = NULL;
    if (st == HONE_OK) assert_true(f.derived && strcmp(f.end, "<end>") == 0);
    if (st == HONE_OK && (st = hn_reply_think(&o, thinks, &c, "on", err)) != HONE_OK) assert_null(o);
    json_decref(o);
    return st;
}

/* Earlier reasoning, brought into the template's shape. */
static hone_status render_thought(hone_error *err)
{
    hn_jinja_text out = { 0 };
    hn_chat c = { .messages = earlier };
    hone_status st = hn_chat_render(thinks, &c, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    hn_jinja_text_free(&out);
    return st;
}

static hone_status read_reply(hone_error *err)
{
    static const char answer[] = "<muse>so \n\n</muse>\xC3\xA9 yes STOP and more";
    static hn_reply_format f;
    const char *stops[] = { "STOP" };
    hn_reply *r;
    const hone_reply_part *p;
    size_t n;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    hn_chat c = { .bos = "", .eos = "" };
    hone_status st =
        f.kind ? HONE_OK
               : hn_reply_format_make(&f, thinks, (hone_str){ thinking, sizeof thinking - 1 }, &c, vocab, err);
    if (st) return f.kind = NULL, st;
    st = hn_reply_new(&r, vocab, &f, "x", 1, NULL, 0, stops, 1, err);
    for (const char *s = answer; !st && *s; s++) st = hn_reply_push(r, (unsigned char)*s, &p, &n, &end, err);
    if (!st) st = hn_reply_flush(r, &p, &n, err);
    if (!st) assert_int_equal(end, HONE_REPLY_STOP);
    hn_reply_free(r);
    return st;
}

static const char calling[] = "{% for m in messages %}<{{ m.content or '' }}{% for c in m.tool_calls %}<call>"
                              "{{ c.function.name }}({{ c.function.arguments | tojson }})</call>{% endfor %}"
                              "{% if tools %}{% endif %}>{% endfor %}";
static hn_jinja *calls_template;

static hone_status find_calls(hone_error *err)
{
    hn_call_format f;
    hn_chat c = { .bos = "<s>", .eos = "</s>" };
    hone_status st = hn_call_format_make(&f, calls_template, (hone_str){ calling, sizeof calling - 1 }, &c, err);
    if (st == HONE_OK) assert_int_equal(f.shape, HN_CALLS_NAMED);
    return st;
}

/* A template that writes no calls: tools, calls and results in words, whose form is found, too. */
static const char wordless[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
static hn_jinja *wordless_template;

static hone_status render_in_words(hone_error *err)
{
    hn_jinja_text out = { 0 };
    hn_call_format f;
    hn_chat c = { .messages = talk, .tools = tools, .bos = "<s>", .eos = "</s>" };
    hone_status st = hn_chat_render(wordless_template, &c, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    hn_jinja_text_free(&out);
    if (!st) st = hn_call_format_make(&f, wordless_template, (hone_str){ wordless, sizeof wordless - 1 }, &c, err);
    if (!st) assert_true(f.own);
    return st;
}

/* LFM2's: tools are listed, calls that were made are text in brackets. */
static const char listing[] = "{% if tools %}<system>\nList of tools: {{ tools | tojson }}{% endif %}"
                              "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";
static hn_jinja *listing_template;

static hone_status render_bracketed(hone_error *err)
{
    hn_jinja_text out = { 0 };
    hn_chat c = { .messages = talk, .tools = tools, .bos = "<s>", .eos = "</s>" };
    hone_status st = hn_chat_render(listing_template, &c, &out, err);
    if (st) assert_null(out.text);
    else same(&out);
    if (!st) assert_non_null(strstr(out.text, "<assistant>so<|tool_call_start|>[f(x=1), ()]<|tool_call_end|><tool>r"));
    hn_jinja_text_free(&out);
    return st;
}

/* A call that is held to its tool, byte by byte, with masks. */
static hone_status read_call(hone_error *err)
{
    static const char answer[] = "so <call>f({\"x\": \"y\"})</call> yes";
    static const hn_reply_format f = { .kind = "tags", .end_id = -1 };
    static const hn_call_format format = {
        .shape = HN_CALLS_NAMED, .begin = "<call>", .name_end = "(", .end = ")</call>"
    };
    hn_call_ask ask = { .tools = tools };
    hn_call_kit *kit = NULL;
    hn_reply *r = NULL;
    const hone_reply_part *p;
    size_t n, called = 0;
    hone_reply_end end;
    hone_status st = hn_call_kit_new(&kit, &format, vocab, &ask, err);
    hn_reply_setup x = { .v = vocab, .f = &f, .kit = kit, .reasoning_budget = -1, .one_call = true };
    if (!st) st = hn_reply_open(&r, &x, err);
    for (const char *s = answer; !st && s < answer + sizeof answer - 5; s++) {
        uint64_t bits[4];
        bool all;
        st = hn_reply_mask(r, -1, bits, 4, &all, err);
        if (!st) assert_true(all || (bits[*s / 64] >> *s % 64 & 1));
        if (!st) st = hn_reply_push(r, (unsigned char)*s, &p, &n, &end, err);
        for (size_t i = 0; !st && i < n; i++) called += p[i].part == HONE_PART_CALL_END;
    }
    if (!st) st = hn_reply_flush(r, &p, &n, err);
    if (!st) assert_int_equal(called, 1);
    hn_reply_free(r);
    hn_call_kit_drop(kit);
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
static void chatting(void **state)
{
    fail_anew(render_chat);
    fail_anew(render_lost);
    fail_anew(render_alone);
}

static void answering(void **state)
{
    fail_anew(find_format);
    fail_anew(render_thought);
    fail_anew(read_reply);
}

static void calls_of_tools(void **state)
{
    fail_anew(find_calls);
    fail_anew(render_in_words);
    fail_anew(render_bracketed);
    fail_anew(read_call);
}

static int setup(void **state)
{
    hone_error err;
    static const char form[] =
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% "
        "endif %}<{{ m.role }}>{{ m.content + '' }}"
        "{% for t in m.tool_calls or [] %}{% for k, v in t.function.arguments.items() %}{{ k "
        "}}={{ v }}{% endfor %}{% endfor %}{% endfor %}"
        "{{ (tools or [])|tojson }}{% if functions %}{{ functions }}{% endif %}{# [TOOL_CALLS] #}";
    json_set_alloc_funcs(malloc, free); /* the allocator that fails, here too */
    context = json_loads("{\"s\": \"hello\", \"l\": [3, 1, 2, 3], \"d\": {\"k\": \"v\", \"a\": 1, \"b\": 2.5}, \"o\": "
                         "[{\"r\": \"u\"}, {\"r\": \"a\"}]}",
                         0, NULL);
    messages = json_loads("[{\"role\": \"system\", \"content\": \"S\"}, {\"role\": \"developer\", \"content\": \"T\"}, "
                          "{\"role\": \"user\", \"content\": \"u\"}, {\"role\": \"user\", \"content\": [{\"type\": "
                          "\"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": \"b\"}]},"
                          " {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"call1\", "
                          "\"type\": \"function\", \"function\": {\"name\": \"f\","
                          " \"arguments\": \"{\\\"x\\\": 12345678901234567890, \\\"y\"}}]},"
                          " {\"role\": \"tool\", \"tool_call_id\": \"call1\", \"content\": \"r\"}]",
                          0, NULL);
    tools = json_loads("[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]", 0, NULL);
    earlier =
        json_loads("[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"b\"},{\"role\":\"assistant\","
                   "\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"c\"}]},"
                   "{\"type\":\"text\",\"text\":\"d\"}]}]",
                   0, NULL);
    talk = json_loads(
        "[{\"role\":\"user\",\"content\":\"q\"},{\"role\":\"assistant\",\"content\":\"so\",\"tool_calls\":[{"
        "\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": 1}\"}},{\"function\":{}}]},{"
        "\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"r\"},{\"role\":\"user\",\"content\":\"go\"}]",
        0, NULL);
    vocab = make_vocab();
    return !talk || hn_jinja_parse(&alone_template, alone, sizeof alone - 1, "t", NULL, &err) != HONE_OK ||
           hn_jinja_parse(&losing_template, losing, sizeof losing - 1, "t", NULL, &err) != HONE_OK ||
           hn_jinja_parse(&listing_template, listing, sizeof listing - 1, "t", NULL, &err) != HONE_OK ||
           hn_jinja_parse(&wordless_template, wordless, sizeof wordless - 1, "t", NULL, &err) != HONE_OK || !context ||
           !messages || !tools || !vocab || !earlier ||
           hn_jinja_parse(&calls_template, calling, sizeof calling - 1, "t", NULL, &err) != HONE_OK ||
           hn_jinja_parse(&thinks, thinking, sizeof thinking - 1, "t", NULL, &err) != HONE_OK ||
           hn_jinja_parse(&chat_template, form, sizeof form - 1, "t", NULL, &err) != HONE_OK;
}

static int teardown(void **state)
{
    json_decref(context);
    json_decref(messages);
    json_decref(tools);
    json_decref(earlier);
    json_decref(talk);
    hn_jinja_free(wordless_template);
    hn_jinja_free(listing_template);
    hn_jinja_free(chat_template);
    hn_jinja_free(losing_template);
    hn_jinja_free(alone_template);
    hn_jinja_free(thinks);
    hn_jinja_free(calls_template);
    hn_vocab_free(vocab);
    free(expected);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(parsing), cmocka_unit_test(rendering),
                                        cmocka_unit_test(chatting), cmocka_unit_test(answering),
                                        cmocka_unit_test(calls_of_tools) };
    return cmocka_run_group_tests(tests, setup, teardown);
}
