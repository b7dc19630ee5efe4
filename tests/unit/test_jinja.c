/* The template interpreter: golden cases made by Jinja2, places of errors, limits, and
 * which bytes count as input. */
#include "growth.h"
#include "template/jinja.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

typedef struct result {
    hone_status st;
    hn_jinja_text out;
    hone_error err;
} result;

static result render_with(const char *source, size_t len, const json_t *context, const hn_jinja_limits *limits)
{
    static const char *const trusted[] = { "bos_token", NULL };
    static const hn_jinja_time now = { 2026, 2, 3, 4, 5, 6 };
    result r = { 0 };
    hn_jinja *t;
    hn_jinja_vars vars = { .context = context, .trusted = trusted, .trust_roles = true, .now = &now };
    if (limits) vars.limits = *limits;
    r.st = hn_jinja_parse(&t, source, len, "t", limits, &r.err);
    if (r.st == HONE_OK) {
        r.st = hn_jinja_render(t, &vars, &r.out, &r.err);
        hn_jinja_free(t);
    }
    return r;
}

static result render(const char *source, const char *context, const hn_jinja_limits *limits)
{
    json_error_t je;
    json_t *c = json_loads(context, JSON_ALLOW_NUL, &je);
    if (!c) fail_msg("%s", je.text);
    result r = render_with(source, strlen(source), c, limits);
    json_decref(c);
    return r;
}

/* ---- golden --------------------------------------------------------------------------------------- */

static void golden(void **state)
{
    json_error_t je;
    json_t *all = json_load_file("tests/golden/jinja.json", JSON_ALLOW_NUL, &je), *c;
    if (!all) fail_msg("%s", je.text);
    size_t i, bad = 0, errors = 0;
    json_array_foreach(json_object_get(all, "cases"), i, c)
    {
        const json_t *t = json_object_get(c, "template"), *want = json_object_get(c, "expected"),
                     *error = json_object_get(c, "error");
        result r = render_with(json_string_value(t), json_string_length(t), json_object_get(all, "context"), NULL);
        bool ok;
        if (error) {
            const char *kind = json_string_value(json_object_get(error, "kind"));
            bool raise = strcmp(kind, "raise_exception") == 0;
            ok = r.st != HONE_OK && r.out.raised == raise && strncmp(r.err.message, "t:", 2) == 0;
            errors++;
        } else {
            ok = r.st == HONE_OK && r.out.len == json_string_length(want) &&
                 memcmp(r.out.text, json_string_value(want), r.out.len) == 0;
        }
        if (!ok) {
            print_message("case %zu: %s\n  want %s\n  got  %s\n", i, json_string_value(t),
                          error ? json_string_value(json_object_get(error, "message")) : json_string_value(want),
                          r.st == HONE_OK ? r.out.text : r.err.message);
            bad++;
        }
        hn_jinja_text_free(&r.out);
    }
    print_message("%zu cases, %zu of them errors\n", i, errors);
    json_decref(all);
    assert_int_equal(bad, 0);
    assert_true(i > 500);
}

/* ---- errors ----------------------------------------------------------------------------------------- */

static void places(void **state)
{
    static const struct {
        const char *source;
        hone_status st;
        const char *message;
    } c[] = {
        { "{{ x.y }}", HONE_E_FORMAT, "t:1:5: 'x' is undefined" },
        { "a\n  {{ 1 +\n  'b' }}", HONE_E_FORMAT, "t:2:8: unsupported operand type(s) for +: 'int' and 'str'" },
        { "é{{ 5 | nope }}", HONE_E_FORMAT, "t:1:9: No filter named 'nope'." },
        { "{% include 'x' %}", HONE_E_UNSUPPORTED,
          "t:1:4: the statement 'include' is not supported in chat templates" },
        { "\n{% if x %}\n", HONE_E_FORMAT, "t:2:11: Unexpected end of template; expected '{% elif %} or {% else %}'" },
        { "{{ 'a'.encode() }}", HONE_E_UNSUPPORTED,
          "t:1:7: the method 'encode' of str is not supported in chat templates" },
        { "{{ 1|pprint }}", HONE_E_UNSUPPORTED, "t:1:6: the filter 'pprint' is not supported in chat templates" },
        { "{{ 99999999999999999999 }}", HONE_E_UNSUPPORTED,
          "t:1:4: the integer 99999999999999999999 is beyond 64 bits" },
        { "{{ 9223372036854775807 + 1 }}", HONE_E_FORMAT, "t:1:24: integer beyond 64 bits" },
        { "{{ raise_exception('no\nway') }}", HONE_E_ARG, "t:1:4: no way" },
        { "{% macro m() %}\n{{ none + 1 }}{% endmacro %}\n{{ m() }}", HONE_E_FORMAT,
          "t:2:9: unsupported operand type(s) for +: 'NoneType' and 'int'" },
        { "a\xFFz", HONE_E_FORMAT, "t:1:2: not UTF-8: byte 0xff" },
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        result r = render(c[i].source, "{}", NULL);
        if (r.st != c[i].st || strcmp(r.err.message, c[i].message) != 0)
            print_message("%s: %s\n", c[i].source, r.err.message);
        assert_int_equal(r.st, c[i].st);
        assert_string_equal(r.err.message, c[i].message);
    }
}

/* ---- limits ------------------------------------------------------------------------------------------ */

static const char all_steps[] = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";

/* Seconds of this processor for a template that spends every step it may on nothing else: the measure for all others.
 */
static double step_seconds(void)
{
    static double least;
    double t = thread_seconds();
    if (least > 0) return least;
    result r = render(all_steps, "{}", NULL);
    hn_jinja_text_free(&r.out);
    return least = thread_seconds() - t;
}

/* It ends with an error that says so; and before it would have cost much more than its steps may: cheap steps must not
 * be long ones. What is meant to hang takes two times as long as plain steps, and took hours where a step was not
 * counted. */
static void refused(const char *source, const char *context, const hn_jinja_limits *limits, const char *says)
{
    enum { MOST = 20, TRIES = 3 };
    double least = 1e30;
    for (int i = 0; i < TRIES && least > MOST * step_seconds(); i++) {
        double t = thread_seconds();
        result r = render(source, context, limits);
        t = thread_seconds() - t;
        least = t < least ? t : least;
        hn_jinja_text_free(&r.out);
        if (r.st == HONE_OK || !strstr(r.err.message, says))
            fail_msg("%s: %s", source, r.st == HONE_OK ? "no error" : r.err.message);
    }
    if (least > MOST * step_seconds())
        fail_msg("%.80s: %.0f times as long as all steps", source, least / step_seconds());
}

static char *repeated(const char *before, const char *s, size_t n, const char *after);

/* ---- strings are bytes with a length: no NUL ends them, and they may hold one ---------------------------- */

static void shows(const char *source, const char *context, const char *want, size_t n)
{
    result r = render(source, context, NULL);
    if (r.st != HONE_OK) fail_msg("%s: %s", source, r.err.message);
    if (r.out.len != n || memcmp(r.out.text, want, n) != 0) fail_msg("%s: %s", source, r.out.text);
    hn_jinja_text_free(&r.out);
}

static void byte_strings(void **state)
{
    /* a key that fills its block to the last byte: whoever looks for a NUL reads on (ASan sees it) */
    for (size_t n = 1; n <= 130; n++) {
        char *source = repeated("{{ {'", "k", n, "': 1}|xmlattr }}"), *want = repeated(" ", "k", n, "=\"1\"");
        shows(source, "{}", want, strlen(want));
        free(source);
        free(want);
        char made[160], text[200];
        snprintf(made, sizeof made,
                 "{{ {'k' * %zu: 1}|xmlattr|length }}{{ {('k' * %zu)|upper: none}|xmlattr }}"
                 "{{ ('7' * %zu)|float > 0 }}",
                 n, n, n);
        snprintf(text, sizeof text, "%zuTrue", n + 5);
        shows(made, "{}", text, strlen(text));
    }
    /* NUL is a character like any other, and no member of a set */
    shows("{{ {'a\\x00b': 1}|xmlattr }}", "{}", " a\0b=\"1\"", 8);
    shows("{{ {k: 1}|xmlattr }}", "{\"k\": \"a\\u0000b\"}", " a\0b=\"1\"", 8);
    refused("{{ {'a\\x00 b': 1}|xmlattr }}", "{}", NULL, "Invalid character in attribute name: 'a\\x00 b'");
    refused("{{ '%\\x00' % 1 }}", "{}", NULL, "unsupported format character '\\x00'");
    refused("{{ '%5.3\\x00' % 1.5 }}", "{}", NULL, "unsupported format character '\\x00'");
    refused("{{ '%-\\x00d' % 1 }}", "{}", NULL, "unsupported format character '\\x00'");
    refused("{{ '%l\\x00' % 'x' }}", "{}", NULL, "unsupported format character '\\x00'");
    refused("{{ '{:\\x00}'.format(1) }}", "{}", NULL, "Invalid format specifier '\\x00'");
    refused("{{ '{:5\\x00}'.format('x') }}", "{}", NULL, "Invalid format specifier '5\\x00'");
    shows("{{ '1\\x002'|float }}{{ '1\\x002'|int }}{{ '1,5'|float }}", "{}", "0.000.0", 7);
}

static void limits(void **state)
{
    const hn_jinja_limits few = { .steps = 1000 }, flat = { .depth = 40 }, brief = { .output_bytes = 100 },
                          small = { .memory_bytes = 200000 };
    refused("{% for a in range(5000) %}{% endfor %}", "{}", &few, "more than the 1000 steps");
    refused("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "{}", &flat, "nested deeper than 40 levels");
    refused("{% for a in range(60) %}{{ 'xx' }}{% endfor %}", "{}", &brief, "more than the 100 bytes it may write");
    refused("{{ 'x' * 1000000 }}", "{}", &small, "more than the 200000 bytes of memory");
    refused("{% set ns = namespace(l=[]) %}{% for i in range(10) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
            "{}", &few, "steps");
    /* the defaults hold against what is meant to hang or to eat memory */
    refused(all_steps, "{}", NULL, "it may");
    refused("{% set ns = namespace(s='x') %}{% for a in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}", "{}",
            NULL, "memory");
    refused("{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "{}", NULL, "nested deeper");
    refused("{% set l = [] %}{% do l.append(l) %}{{ l }}", "{}", NULL, "nested deeper");
    refused("{% set l = [] %}{% do l.append(l) %}{{ l|tojson }}", "{}", NULL, "nested deeper");
    refused("{% set l = [] %}{% set m = [] %}{% do l.append(m) %}{% do m.append(l) %}{{ l == m }}", "{}", NULL,
            "nested deeper");
    refused("{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ "
            "ns.l|tojson }}",
            "{}", NULL, "");
    refused("{{ 'a' * 2000000000 }}", "{}", NULL, "");
    refused("{{ [1] * 2000000000 }}", "{}", NULL, "");
    refused("{{ 'a'.center(2000000000) }}", "{}", NULL, "");
    refused("{{ '%2000000000d' % 1 }}", "{}", NULL, "width");
    refused("{{ '{:2000000000}'.format(1) }}", "{}", NULL, "width");
    refused("{{ range(2000000000) }}", "{}", NULL, "Range too big");
    refused("{{ ml|indent(2000000000) }}", "{\"ml\": \"a\\nb\"}", NULL, "");
    refused("{% set a = 'a' * 4000000 %}{% set b = 'a' * 2000000 ~ 'b' %}{% for i in range(1000) %}{{ a.rfind(b) }}{% "
            "endfor %}",
            "{}", NULL, "steps");
    refused("{% set a = 'ab' * 10000 %}{% for i in range(100000) %}{{ a.count('b') }}{% endfor %}", "{}", NULL,
            "steps");
    refused("{% set d = namespace(x={}) %}{% for i in range(100000) %}{% do d.x.update({i: d.x|length}) %}{{ "
            "d.x|tojson }}{% endfor %}",
            "{}", NULL, "");
}

/* Cheap steps must not be long ones. */
static void slow_steps(void **state)
{
    static const char *const c[] = {
        "{% set s = '\u00e9' * 3000000 %}{% for i in range(100000) %}{% set x = s[-1:] %}{% endfor %}",
        "{% set s = '\u00e9' * 3000000 %}{% for i in range(100000) %}{% set x = s[2999999] %}{% endfor %}",
        "{% set s = ' ' * 3000000 %}{% for i in range(100000) %}{% set x = s|trim %}{% endfor %}",
        "{% set s = 'a' * 5000000 %}{% for i in range(100000) %}{% set x = s in s %}{% endfor %}",
        "{% set s = 'a' * 5000000 %}{% for i in range(100000) %}{% set x = s.find(s) + s.count(s) %}{% endfor %}",
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) refused(c[i], "{}", NULL, "steps");
    char *sets = malloc(3000 * 32), *t = NULL;
    assert_non_null(sets);
    size_t n = 0;
    for (int i = 0; i < 3000; i++) n += (size_t)sprintf(sets + n, "{%% set x%d = 1 %%}", i);
    t = repeated("{% macro m() %}", sets, 1, "{% endmacro %}{% for i in range(99999) %}{{ m() }}{% endfor %}");
    refused(t, "{}", NULL, "");
    free(t);
    free(sets);
}

static char *repeated(const char *before, const char *s, size_t n, const char *after)
{
    size_t k = strlen(s), b = strlen(before);
    char *t = malloc(b + k * n + strlen(after) + 1);
    assert_non_null(t);
    memcpy(t, before, b);
    for (size_t i = 0; i < n; i++) memcpy(t + b + i * k, s, k);
    strcpy(t + b + n * k, after);
    return t;
}

static void deep_source(void **state)
{
    static const struct {
        const char *before, *s, *after;
    } c[] = {
        { "{{ ", "(", "" },          { "{{ ", "[", "" },
        { "{{ ", "{1:", "" },        { "{{ ", "-", "1 }}" },
        { "{{ ", "not ", "1 }}" },   { "", "{% if 1 %}", "" },
        { "{{ 1", "|abs", " }}" },   { "{{ d", ".a", " }}" },
        { "{{ 1", "+1", " }}" },     { "{{ x", "[0]", " }}" },
        { "{{ x", "()", " }}" },     { "{{ 1", " if 1 else 1", " }}" },
        { "{{ 1", " and 1", " }}" }, { "", "{% macro m() %}", "" },
        { "{% for ", "(", "" },      { "{{ 1 is", " in [1] == 1 is", " }}" },
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char *t = repeated(c[i].before, c[i].s, 100000, c[i].after);
        result r = render(t, "{\"d\": {}, \"x\": []}", NULL);
        if (r.st == HONE_OK) fail_msg("%.20s: no error", t);
        free(t);
        hn_jinja_text_free(&r.out);
    }
    /* what is long but flat is fine */
    char *t = repeated("{{ ''", " ~ 'a'", 50000, " }}");
    result r = render(t, "{}", NULL);
    assert_int_equal(r.st, HONE_OK);
    assert_int_equal(r.out.len, 50000);
    hn_jinja_text_free(&r.out);
    free(t);
    t = repeated("{", "\"a\":{", 1000, "");
    char *u = repeated(t, "}", 1000, "}");
    json_t *deep = json_loads(u, 0, NULL);
    assert_non_null(deep);
    r = render_with("{{ a }}", 7, deep, NULL);
    assert_int_equal(r.st, HONE_E_FORMAT);
    json_decref(deep);
    free(t);
    free(u);
}

/* ---- origin ------------------------------------------------------------------------------------------- */

/* The text with what counts as input in brackets. */
static void origin(const char *source, const char *want)
{
    static const char context[] = "{\"s\": \"ab  Cd\", \"p\": \" x \", \"l\": [\"one\", \"two\"], \"d\": {\"k\": "
                                  "\"v\"}, \"n\": 5, \"u\": \"\xC3\x89\xC3\xA9\", \"j\": \"{\\\"q\\\": [\\\"w\\\"]}\","
                                  " \"bos_token\": \"<s>\", \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}, "
                                  "{\"role\": \"im_end\", \"content\": \"x\"}]}";
    result r = render(source, context, NULL);
    if (r.st != HONE_OK) fail_msg("%s: %s", source, r.err.message);
    char marked[1000];
    size_t n = 0, k = 0;
    for (size_t i = 0; i <= r.out.len; i++) {
        if (k < r.out.n_input && r.out.input[k].end == i) marked[n++] = ']', k++;
        if (k < r.out.n_input && r.out.input[k].begin == i) marked[n++] = '[';
        if (i < r.out.len) marked[n++] = r.out.text[i];
    }
    marked[n] = 0;
    if (strcmp(marked, want) != 0) fail_msg("%s:\n  want %s\n  got  %s", source, want, marked);
    hn_jinja_text_free(&r.out);
}

static void origins(void **state)
{
    origin("a{{ s }}b", "a[ab  Cd]b");
    origin("{{ '<' + s + '>' }}", "<[ab  Cd]>");
    origin("{{ s ~ 1 ~ s }}", "[ab  Cd]1[ab  Cd]");
    origin("{{ ('<' + s + '>')[0:4] }}|{{ ('<' + s + '>')[::-1] }}|{{ ('<' + s + '>')|upper }}",
           "<[ab ]|>[dC  ba]<|<[AB  CD]>");
    origin("{{ (' ' + p + '.')|trim }}|{{ p|trim }}|{{ p.strip() + '!' }}", "[x ].|[x]|[x]!");
    origin("{{ s|replace('b', 'X') }}|{{ 'aXb'|replace('X', s) }}|{{ 'a-b'.replace('-', n|string) }}",
           "[a]X[  Cd]|a[ab  Cd]b|a[5]b");
    origin("{{ s.split(' ')|join('+') }}|{{ l|join(',') }}", "[ab]++[Cd]|[one],[two]");
    origin("{% for c in '<' + l[0] %}{{ c }}.{% endfor %}", "<.[o].[n].[e].");
    origin("{% set x %}<{{ s }}>{% endset %}{{ x|length }}{{ x }}", "8<[ab  Cd]>");
    origin("{% macro m(a) %}({{ a }}){% endmacro %}{{ m(s)|upper }}", "([AB  CD])");
    origin("{{ d|tojson }}|{{ {'a': 1}|tojson }}|{{ ['x', s]|tojson }}",
           "[{\"k\": \"v\"}]|{\"a\": 1}|[[\"x\", \"ab  Cd\"]]");
    origin("{{ d }}|{{ l }}", "{'[k]': '[v]'}|['[one]', '[two]']");
    /* numbers that came from input: their digits could complete <|12|> */
    origin("{{ n }}|{{ n + 1 }}|{{ s|length }}|{{ -n }}|{{ n|abs }}|{{ n / 2 }}|{{ [n, 1] }}",
           "[5]|[6]|6|[-5]|[5]|[2.5]|[[5], 1]");
    origin("{{ '<|%d|>' % n }}{{ '%5.1f' % n }}{{ '{:,}'.format(n * 1000) }}{{ '%c' % (n + 60) }}{{ '5'|int }}{{ "
           "j[0:0]|int }}{{ (n|string)|float }}",
           "<|[5]|>  [5.05],[000A]50[5.0]");
    origin("{{ [1, n]|tojson }}{{ [1]|tojson(separators=(s, ':')) }}{{ [1, 2]|tojson(indent=p) }}",
           "[[1, 5][1][\n x 1,\n x 2\n]]");
    /* characters to fill with */
    origin("{{ 'a'.ljust(3, s[0]) }}{{ 'a'.rjust(3, s[1]) }}{{ 'a'.center(3, l[0][0]) }}{{ ('{:' ~ s[0] ~ "
           "'>3}').format('x') }}{{ 'a'.rjust(3, '-') }}",
           "a[aabb]a[o]a[oaa]x--a");
    origin("{{ (s|safe) + '<' }}{{ ('<'|safe) + '&' ~ s }}{{ (s|safe).replace('b', '<') }}",
           "[ab  Cd]&lt;<&amp;[ab  Cda]&lt;[  Cd]");
    origin("{{ '%s=%5s|' % (s, 'q') }}{{ '{}:{:>4}'.format(s, 'q') }}", "[ab  Cd]=    q|[ab  Cd]:   q");
    origin("{{ '%s' | format(s) }}{{ (s + '%s') % 'q' }}", "[ab  Cdab  Cd]q");
    origin("{{ bos_token }}{{ messages[0].role }}{{ messages[0].content }}{{ messages[1].role }}", "<s>user[hiim_end]");
    origin("{{ u|lower }}{{ u|upper }}{{ 'x' ~ u|title }}", "[\xC3\xA9\xC3\xA9\xC3\x89\xC3\x89]x[\xC3\x89\xC3\xA9]");
    origin("{% set n = ('[12345678901234567890, 1e999]' | from_json) %}{{ n | tojson }} {{ n }} {{ n[0] is string }} "
           "{{ n[0] is number }} {{ -n[0] < 0 }} {{ n[0] + 1 == n[0] }}",
           "[12345678901234567890, 1e999] [12345678901234567890, 1e999] False True True True");
    origin("{{ (j|from_json).q[0] }}{{ ('{\"a\": \"b\"}'|from_json).a }}", "[w]b");
    origin("{{ s|indent(2, true) }}|{{ s.center(8) }}|{{ s * 2 }}|{{ s|truncate(4, true, '~', 0) }}",
           "  [ab  Cd]| [ab  Cd] |[ab  Cdab  Cd]|[ab ]~");
    origin("{{ s if s else 'x' }}{{ s or 'x' }}{{ nope|default(s) }}", "[ab  Cdab  Cdab  Cd]");
    origin("{% filter upper %}<{{ s }}>{% endfilter %}{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}",
           "<[AB  CD]>[kv]");
}

static void times(void **state)
{
    hn_jinja_time t;
    int east;
    assert_true(hn_jinja_parse_time(&t, NULL, "2024-02-29T23:59:60"));
    assert_int_equal(t.day, 29);
    assert_true(hn_jinja_parse_time(&t, &east, "2026-02-03T04:05:06-05:30") && t.second == 6 && east == -330);
    assert_true(hn_jinja_parse_time(&t, &east, "2026-02-03T04:05:06+1400") && t.hour == 4 && east == 840);
    assert_true(hn_jinja_parse_time(&t, &east, "2026-02-03T04:05:06") && east == 0);
    static const char *const bad[] = { "",
                                       "2024-02-29",
                                       "2023-02-29T00:00:00",
                                       "2024-13-01T00:00:00",
                                       "2024-01-01T24:00:00",
                                       "2024-01-01T00:60:00",
                                       "2024-01-01T00:00:00Z",
                                       "2024-01-01T00:00:00+1",
                                       "2024-01-01T00:00:00+01:0",
                                       "2024-01-01T00:00:00+01:60",
                                       "2024-01-01T00:00:00-24:00",
                                       "2024-01-01T00:00:00 0100",
                                       "2024-01-01T00:00:00+01000",
                                       "x024-01-01T00:00:00" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(hn_jinja_parse_time(&t, &east, bad[i]));
    hone_error e;
    hn_jinja *j;
    hn_jinja_text out;
    json_t *list = json_array();
    assert_int_equal(hn_jinja_parse(&j, "", 0, "t", NULL, &e), HONE_OK);
    hn_jinja_vars vars = { .context = list };
    assert_int_equal(hn_jinja_render(j, &vars, &out, &e), HONE_E_ARG);
    vars.context = NULL;
    assert_int_equal(hn_jinja_render(j, &vars, &out, &e), HONE_E_ARG);
    json_decref(list);
    hn_jinja_free(j);
}

/* Arguments of calls alone have numbers that neither 64 bits nor a double hold as they came; variables, as doubles. */
static void long_numbers(void **state)
{
#define ASKED(more) "[{\"role\":\"user\",\"content\":" more "}]"
#define CALLED(arguments) ASKED("\"q\",\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":" arguments "}}]")
    static const char source[] = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
                                 "{% set a = c.function.arguments %}{{ c.function.name }}{{ a if a is string else a | "
                                 "tojson }}{% endfor %}{% endfor %}";
    static const struct {
        const char *messages, *variables, *want;
    } rows[] = {
        { CALLED("{\"id\": [123456789012345678901, 1e999]}"), NULL, "qf{\"id\": [123456789012345678901, 1e999]}" },
        { CALLED("\"{\\\"id\\\": 123456789012345678901}\""), NULL, "qf{\"id\": 123456789012345678901}" },
        { ASKED("123456789012345678901"), NULL, NULL },
        { ASKED("\"q\",\"arguments\":123456789012345678901"), NULL, NULL },
        { CALLED("{\"id\": 123456789012345678901, \"x\": }"), NULL, NULL },
        { ASKED("\"q\""), "{\"x\":18446744073709551615}", "q" }, /* as a double */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hone_chat_text t;
        hone_chat_params p = { .messages = rows[i].messages, .variables = rows[i].variables, .chat_template = source };
        hone_status st = hone_chat_render(NULL, &p, &t, NULL);
        if (st != (rows[i].want ? HONE_OK : HONE_E_ARG)) fail_msg("%zu: %s", i, hone_status_name(st));
        if (rows[i].want) assert_string_equal(t.text, rows[i].want);
        hone_chat_text_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden),       cmocka_unit_test(places),
                                        cmocka_unit_test(byte_strings), cmocka_unit_test(limits),
                                        cmocka_unit_test(slow_steps),   cmocka_unit_test(deep_source),
                                        cmocka_unit_test(origins),      cmocka_unit_test(times),
                                        cmocka_unit_test(long_numbers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
