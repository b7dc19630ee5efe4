/* Calls of tools in answers (text/calls.h): the format of each shape of template is derived, what a template writes for
 * calls is read back as these calls however it is cut into tokens, and what only looks like a call is text. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "byte_vocab.h"
#include "text/reply.h"

#include <dirent.h>

static uint32_t seed;
static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
static const char *const pieces[] = { "<t",  "ool",    "_call",  "\n{", "{\"",  "name", "\": ", "\"arg", "uments", "\"}",
                                      "}}",  "</",     "tool_",  ">\n", "meter", "par",  "=<",   "func",  "a\xC3",  "\xA9x",
                                      "x y", "\", \"", "\xF0\x9F", "\x98\x80 ", "[TOOL", "_CALLS]", "[{", "]<", ">>>", "to=", NULL };

/* ---- templates of each shape ------------------------------------------------------------------------------------- */

#define BEGIN "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% elif m.role == 'tool' %}"
#define ANSWER "<|tool|>{{ m.content }}{% else %}<|assistant|>{{ m.content or '' }}{% if m.tool_calls %}"
#define EACH "{% for c in m.tool_calls %}{% set f = c.function %}"
#define END "{% endif %}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}{% if tools %}{% endif %}"
#define SEP(s) "{{ '' if loop.first else '" s "' }}"
#define ARGS "{% for k, v in f.arguments.items() %}"
#define RAW "{{ v if v is string else v | tojson }}"

typedef struct sample {
    const char *name, *source;
    hn_call_shape shape;
    bool one, ids; /* one call at most; the template writes ids */
    const char *marks[10]; /* that are tokens of some vocabularies */
} sample;

static const sample samples[] = {
    { "json in tags",
      BEGIN ANSWER EACH SEP("\\n") "<tool_call>\n{\"name\": {{ f.name | tojson }}, \"arguments\": {{ f.arguments | tojson }}}"
                                   "\n</tool_call>{% endfor %}" END,
      HN_CALLS_JSON, false, false, { "<tool_call>", "</tool_call>" } },
    { "json array with ids",
      BEGIN ANSWER "[TOOL_CALLS][" EACH SEP(", ") "{\"name\": {{ f.name | tojson }}, \"arguments\": {{ f.arguments | tojson "
                                                  "}}, \"id\": {{ c.id | tojson }}}{% endfor %}]" END,
      HN_CALLS_JSON, false, true, { "[TOOL_CALLS]" } },
    { "id first",
      BEGIN ANSWER "<|START_ACTION|>[\n" EACH SEP(",\\n")
          "    {\"tool_call_id\": {{ c.id | tojson }}, \"tool_name\": {{ f.name | tojson }}, \"parameters\": {{ "
          "f.arguments | tojson }}}{% endfor %}\n]<|END_ACTION|>" END,
      HN_CALLS_JSON, false, true, { "<|START_ACTION|>", "<|END_ACTION|>" } },
    { "name as key",
      BEGIN ANSWER "<|tools_prefix|>[" EACH SEP(", ") "{{ '{' }}{{ f.name | tojson }}: {{ f.arguments | tojson }}{{ '}' }}"
                                                      "{% endfor %}]<|tools_suffix|>" END,
      HN_CALLS_JSON, false, false, { "<|tools_prefix|>", "<|tools_suffix|>" } },
    { "bare json",
      BEGIN ANSWER "{% if m.tool_calls | length > 1 %}{{ raise_exception('one') }}{% endif %}" EACH
                   "{\"name\": {{ f.name | tojson }}, \"parameters\": {{ f.arguments | tojson }}}{% endfor %}" END,
      HN_CALLS_JSON, true, false, { NULL } },
    { "name, mark, json",
      BEGIN ANSWER EACH "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}{% endfor %}" END, HN_CALLS_NAMED, false,
      false, { "[TOOL_CALLS]", "[ARGS]" } },
    { "name, id, json",
      BEGIN ANSWER EACH "[TOOL_CALLS]{{ f.name }}[CALL_ID]{{ c.id }}[ARGS]{{ f.arguments | tojson }}{% endfor %}" END,
      HN_CALLS_NAMED, false, true, { "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]" } },
    { "id, name, json",
      BEGIN ANSWER EACH "<|tc:begin|>{{ c.id }}<|tc:name|>{{ f.name }}<|tc:args|>{{ f.arguments | tojson }}<|tc:end|>"
                        "{% endfor %}" END,
      HN_CALLS_NAMED, false, true, { "<|tc:begin|>", "<|tc:name|>", "<|tc:args|>", "<|tc:end|>" } },
    { "sections",
      BEGIN ANSWER "<|calls|>" EACH "<|one call|>{{ f.name }}<|sep|>{{ f.arguments | tojson }}<|call end|>{% endfor %}"
                   "<|calls end|>" END,
      HN_CALLS_NAMED, false, false, { "<|calls|>", "<|one call|>", "<|sep|>", "<|call end|>", "<|calls end|>" } },
    { "fenced json",
      BEGIN ANSWER "<|calls|>" EACH SEP("\\n") "<|one call|>function<|sep|>{{ f.name }}\n```json\n{{ f.arguments | tojson }}\n```"
                                               "<|call end|>{% endfor %}<|calls end|>" END,
      HN_CALLS_NAMED, false, false, { "<|calls|>", "<|one call|>", "<|sep|>", "<|call end|>", "<|calls end|>" } },
    { "function=name", BEGIN ANSWER EACH "<function={{ f.name }}>{{ f.arguments | tojson }}</function>{% endfor %}" END,
      HN_CALLS_NAMED, false, false, { NULL } },
    { "ids that hold the name",
      BEGIN ANSWER "<|section|>" EACH "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>{{ f.arguments | tojson }}"
                                      "<|tool_call_end|>{% endfor %}<|section_end|>" END,
      HN_CALLS_NAMED, false, false, { "<|section|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>" } },
    { "tagged, lines",
      BEGIN ANSWER EACH SEP("\\n") "<tool_call>\n<function={{ f.name }}>\n" ARGS "<parameter={{ k }}>\n" RAW
                                   "\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}" END,
      HN_CALLS_TAGGED, false, false, { "<tool_call>", "</tool_call>" } },
    { "tagged, keys and values",
      BEGIN ANSWER EACH "<tool_call>{{ f.name }}" ARGS "<arg_key>{{ k }}</arg_key><arg_value>" RAW
                        "</arg_value>{% endfor %}</tool_call>{% endfor %}" END,
      HN_CALLS_TAGGED, false, false, { "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>" } },
    { "tagged, attributes",
      BEGIN ANSWER EACH "<function name=\"{{ f.name }}\">" ARGS "<param name=\"{{ k }}\">" RAW
                        "</param>{% endfor %}</function>{% endfor %}" END,
      HN_CALLS_TAGGED, false, false, { NULL } },
    { "tagged, in a section",
      BEGIN ANSWER "<x:tool_call>\n" EACH "<invoke name=\"{{ f.name }}\">\n" ARGS "<parameter name=\"{{ k }}\">" RAW
                   "</parameter>\n{% endfor %}</invoke>\n{% endfor %}</x:tool_call>" END,
      HN_CALLS_TAGGED, false, false, { "<x:tool_call>", "</x:tool_call>" } },
    { "tagged, strings are marked",
      BEGIN ANSWER "<|DSML|calls>\n" EACH "<|DSML|invoke name=\"{{ f.name }}\">\n" ARGS
                   "<|DSML|parameter name=\"{{ k }}\" string=\"{{ 'true' if v is string else 'false' }}\">" RAW
                   "</|DSML|parameter>\n{% endfor %}</|DSML|invoke>\n{% endfor %}</|DSML|calls>" END,
      HN_CALLS_TAGGED, false, false, { NULL } },
    { "every prompt begins a call",
      "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% else %}<|assistant|>{% if m.content %}>>>all\n{{ "
      "m.content }}{% endif %}" EACH ">>>{{ f.name }}\n{{ f.arguments | tojson }}{% endfor %}<|end|>{% endif %}"
      "{% endfor %}{% if add_generation_prompt %}<|assistant|>>>>{% endif %}{% if tools %}{% endif %}",
      HN_CALLS_NAMED, false, false, { NULL } },
};
enum { N_SAMPLES = sizeof samples / sizeof *samples };

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},\"units\":{\"enum\":[\"c\",\"f\"]},\"where\":{\"type\":"
    "\"object\"},\"list\":{\"type\":\"array\"},\"wind\":{\"type\":\"boolean\"}}}}},{\"type\":\"function\",\"function\":{"
    "\"name\":\"weather_2\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}},{\"type\":\"function\",\"function\":"
    "{\"name\":\"get.time-now\"}}]";

typedef struct format {
    hn_reply_format f;
    hn_call_format calls;
    hn_jinja *t;
    hn_chat c;
    json_t *tools;
} format;

static const hn_jinja_time now = { 2026, 2, 3, 4, 5, 6 };

static format make_format(const char *source, const hn_vocab *v)
{
    format m = { 0 };
    hone_error e = { 0 };
    hone_str s = { source, strlen(source) };
    if (hn_jinja_parse(&m.t, source, s.len, "t", NULL, &e) != HONE_OK) fail_msg("%s", e.message);
    m.c = (hn_chat){ .bos = "<s>", .eos = "</s>", .now = &now };
    assert_int_equal(hn_reply_format_make(&m.f, m.t, s, &m.c, v, &e), HONE_OK);
    assert_int_equal(hn_call_format_make(&m.calls, m.t, s, &m.c, &e), HONE_OK);
    m.tools = json_loads(tools, 0, NULL);
    return m;
}

static void free_format(format *m)
{
    hn_jinja_free(m->t);
    json_decref(m->tools);
}

/* ---- random calls ------------------------------------------------------------------------------------------------------ */

static json_t *random_text(void)
{
    static const char *const words[] = { "x", " ", "\n", "\"", "\\", "é", "\U0001F600", "{", "}", "[1]", "<", "</p", ">",
                                         "tool_call", "12", "'", ",", "true", ":", "\t", "]", "=" };
    char s[256] = "";
    for (uint32_t n = pick(9); n > 0; n--) strcat(s, words[pick(sizeof words / sizeof *words)]);
    return json_string(s);
}

static json_t *random_value(int depth)
{
    json_t *o;
    switch (pick(depth > 2 ? 4 : 6)) {
    case 0: return json_integer((json_int_t)pick(2000) - 1000);
    case 1: return json_boolean(pick(2));
    case 2: return random_text();
    case 3: return json_null();
    case 4:
        o = json_object();
        for (uint32_t n = pick(3); n > 0; n--) {
            char key[16];
            snprintf(key, sizeof key, "k%u", n);
            json_object_set_new(o, key, random_value(depth + 1));
        }
        return o;
    default:
        o = json_array();
        for (uint32_t n = pick(3); n > 0; n--) json_array_append_new(o, random_value(depth + 1));
        return o;
    }
}

static json_t *random_call(int index)
{
    json_t *args = json_object();
    uint32_t which = pick(4);
    char id[40];
    const char *name = which == 0 ? "weather_2" : which == 1 ? "get.time-now" : "weather";
    snprintf(id, sizeof id, "abc%06d", index);
    if (which > 1) {
        if (pick(2)) json_object_set_new(args, "city", random_text());
        if (pick(2)) json_object_set_new(args, "days", json_integer(pick(100)));
        if (pick(2)) json_object_set_new(args, "units", json_string(pick(2) ? "c" : "f"));
        json_t *o = random_value(0);
        if (pick(2) && json_is_object(o)) json_object_set(args, "where", o);
        if (pick(2) && json_is_array(o)) json_object_set(args, "list", o);
        json_decref(o);
        if (pick(2)) json_object_set_new(args, "wind", json_boolean(pick(2)));
    }
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name", name, "arguments", args);
}

/* ---- reading ------------------------------------------------------------------------------------------------------------- */

typedef struct heard {
    json_t *calls; /* [{name, id, args: text, done}] */
    char text[8192];
    hone_reply_end end;
} heard;

static void hear(heard *h, const hone_reply_part *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_t *last = json_array_get(h->calls, json_array_size(h->calls) - 1);
        switch (p[i].part) {
        case HONE_PART_CALL_NAME:
            assert_int_equal(p[i].call, json_array_size(h->calls));
            assert_non_null(p[i].id);
            json_array_append_new(h->calls, json_pack("{s:o, s:s, s:s, s:b}", "name", json_stringn(p[i].text, p[i].len),
                                                      "id", p[i].id, "args", "", "done", 0));
            break;
        case HONE_PART_ARGUMENTS: {
            assert_int_equal(p[i].call, json_array_size(h->calls) - 1);
            json_t *all = json_sprintf("%s%.*s", json_string_value(json_object_get(last, "args")), (int)p[i].len, p[i].text);
            json_object_set_new(last, "args", all);
            break;
        }
        case HONE_PART_CALL_END: json_object_set_new(last, "done", json_true()); break;
        default:
            strncat(h->text, p[i].part == HONE_PART_TEXT ? "" : p[i].part == HONE_PART_REASONING ? "{R}" : "{?}", 4);
            strncat(h->text, p[i].text, p[i].len);
        }
    }
}

static int32_t special_at(const hn_vocab *v, const char *s, size_t *len)
{
    int32_t best = -1;
    *len = 0;
    for (int32_t id = BV_PIECES + (int32_t)(sizeof pieces / sizeof *pieces) - 1; id < hn_vocab_size(v); id++) {
        size_t n;
        const char *t = hn_vocab_piece(v, id, true, &n);
        if (n > *len && strncmp(s, t, n) == 0) best = id, *len = n;
    }
    return best;
}

/* Reads an answer; cut: 0 byte by byte, else pieces by chance. spelt: special tokens are spelt in bytes. */
static heard read_answer(const format *m, const hn_vocab *v, const hn_reply_setup *more, const char *prompt, const char *s,
                         bool cut, bool spelt)
{
    heard h = { .calls = json_array() };
    hone_error e = { 0 };
    hn_reply *r;
    const hone_reply_part *p;
    size_t n, k;
    hn_reply_setup x = *more;
    x.v = v;
    x.f = &m->f;
    x.prompt = prompt;
    x.len = strlen(prompt);
    if (hn_reply_open(&r, &x, &e) != HONE_OK) fail_msg("%s", e.message);
    while (*s && !h.end) {
        int32_t id = spelt ? -1 : special_at(v, s, &k);
        if (id < 0) {
            id = BV_BYTES + (unsigned char)*s;
            k = 1;
            for (int i = 0; cut && pieces[i]; i++) {
                size_t len = strlen(pieces[i]), other;
                bool into = strncmp(s, pieces[i], len) != 0;
                for (size_t j = 1; j < len && !into && !spelt; j++) into = special_at(v, s + j, &other) >= 0;
                if (!into && pick(2)) id = BV_PIECES + i, k = len;
            }
        }
        if (hn_reply_push(r, id, &p, &n, &h.end, &e) != HONE_OK) fail_msg("%s", e.message);
        hear(&h, p, n);
        s += k;
    }
    assert_int_equal(hn_reply_flush(r, &p, &n, &e), HONE_OK);
    hear(&h, p, n);
    hn_reply_free(r);
    return h;
}

static hn_call_kit *make_kit(const format *m, const hn_vocab *v, const char *const *names, size_t n)
{
    hn_call_kit *k;
    hone_error e = { 0 };
    hn_call_ask ask = { .tools = m->tools, .names = names, .n_names = n };
    if (hn_call_kit_new(&k, &m->calls, v, &ask, &e) != HONE_OK) fail_msg("%s", e.message);
    return k;
}

/* What the template writes for an answer behind its prompt; malloc'ed. */
static char *answer_of(const format *m, json_t *calls, const char *text, char **prompt)
{
    json_t *asked = json_pack("[{s:s, s:s}]", "role", "user", "content", "x"),
           *all = json_pack("[{s:s, s:s}, {s:s, s:s, s:O}]", "role", "user", "content", "x", "role", "assistant", "content",
                            text, "tool_calls", calls);
    hn_jinja_text a = { 0 }, b = { 0 };
    hn_chat c = m->c;
    hone_error e = { 0 };
    c.tools = m->tools;
    c.add_generation_prompt = true;
    c.messages = asked;
    if (hn_chat_render(m->t, &c, &a, &e) != HONE_OK) fail_msg("%s", e.message);
    c.add_generation_prompt = false;
    c.messages = all;
    if (hn_chat_render(m->t, &c, &b, &e) != HONE_OK) fail_msg("%s", e.message);
    assert_true(strncmp(a.text, b.text, a.len) == 0);
    *prompt = a.text;
    a.text = NULL;
    char *out = strdup(b.text + a.len);
    hn_jinja_text_free(&a), hn_jinja_text_free(&b);
    json_decref(asked), json_decref(all);
    return out;
}

static void check_calls(const sample *s, const json_t *want, const heard *h, const char *answer)
{
    size_t i, n = json_array_size(want);
    if (json_array_size(h->calls) != n) fail_msg("%s: %zu calls of %zu in %s", s->name, json_array_size(h->calls), n, answer);
    for (i = 0; i < n; i++) {
        json_t *got = json_array_get(h->calls, i), *call = json_array_get(want, i), *f = json_object_get(call, "function");
        const char *text = json_string_value(json_object_get(got, "args"));
        json_t *args = json_loads(text, 0, NULL);
        if (!json_equal(json_object_get(got, "name"), json_object_get(f, "name")) ||
            !json_equal(args, json_object_get(f, "arguments")) || !json_is_true(json_object_get(got, "done")))
            fail_msg("%s: %s\nis read as %s(%s)", s->name, answer, json_string_value(json_object_get(got, "name")), text);
        if (s->ids) assert_true(json_equal(json_object_get(got, "id"), json_object_get(call, "id")));
        json_decref(args);
    }
}

static hn_vocab *vocab_of(const sample *s, int kind) /* marks are text, control tokens, tokens of users */
{
    static const char *const base[] = { "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>" };
    const char *control[20] = { NULL }, *user[20] = { NULL };
    int n = 0, k = 0;
    for (size_t i = 0; i < sizeof base / sizeof *base; i++) control[n++] = base[i];
    for (int i = 0; i < 10 && s->marks[i]; i++) {
        if (kind == 1) control[n++] = s->marks[i];
        if (kind == 2) user[k++] = s->marks[i];
    }
    return byte_vocab(pieces, control, user);
}

/* Random calls through each shape of template, vocabulary and cutting. */
static void test_read_back(void **state)
{
    for (size_t i = 0; i < N_SAMPLES; i++)
        for (int kind = 0; kind < (samples[i].marks[0] ? 3 : 1); kind++) {
            const sample *s = &samples[i];
            hn_vocab *v = vocab_of(s, kind);
            format m = make_format(s->source, v);
            if (m.calls.shape != s->shape) fail_msg("%s: shape %d, %s", s->name, m.calls.shape, m.calls.warning);
            assert_int_equal(m.calls.single, s->one);
            hn_call_kit *kit = make_kit(&m, v, NULL, 0);
            hn_reply_setup x = { .kit = kit, .reasoning_budget = -1 };
            for (seed = 1; seed < 30;) {
                uint32_t from = seed;
                json_t *calls = json_array();
                for (int c = 0, n = s->one ? 1 : 1 + (int)pick(3); c < n; c++)
                    json_array_append_new(calls, random_call(c));
                json_t *f = json_object_get(json_array_get(calls, 0), "function");
                if (m.calls.id == HN_CALL_ID_NAME) { /* the template takes it from there */
                    size_t c;
                    json_t *call;
                    json_array_foreach(calls, c, call)
                        json_object_set_new(call, "id", json_sprintf("functions.%s:%zu",
                                                                     json_string_value(json_object_get(json_object_get(call, "function"), "name")), c));
                }
                (void)f;
                char *prompt, *answer = answer_of(&m, calls, "", &prompt);
                for (int cut = 0; cut < 3; cut++) {
                    heard h = read_answer(&m, v, &x, prompt, answer, cut > 0, false);
                    check_calls(s, calls, &h, answer);
                    assert_string_equal(h.text, "");
                    assert_int_equal(h.end, HONE_REPLY_TURN);
                    json_decref(h.calls);
                }
                free(prompt), free(answer);
                json_decref(calls);
                seed = from + 1;
            }
            hn_call_kit_drop(kit);
            free_format(&m);
            hn_vocab_free(v);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_read_back) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
