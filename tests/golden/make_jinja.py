#!/usr/bin/env python3
"""Writes jinja.json: constructs of chat templates and what Jinja2 makes of them.

    python3 tests/golden/make_jinja.py > tests/golden/jinja.json

Needs jinja2 (3.1). The environment is the one chat templates expect: trim_blocks, lstrip_blocks,
loop controls, no autoescape, tojson without HTML escaping, a sandbox that allows list.append."""
import datetime
import json
import sys

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import SandboxedEnvironment

NOW = datetime.datetime(2026, 2, 3, 4, 5, 6)


class Raised(Exception):
    pass


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_run")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


env = SandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do", Generation])
env.filters["tojson"] = tojson
env.filters["from_json"] = json.loads
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = NOW.strftime

CONTEXT = {
    "a": 1, "b": 2.5, "neg": -7, "big": 9007199254740993, "s": "Hello World", "e": "", "n": None, "t": True, "f": False,
    "l": [3, 1, 2], "ls": ["x", "y", "z"], "mixed": [1, 1.0, True, "1", None], "d": {"k": "v", "n": 1, "items": "shadow"},
    "o": [{"r": "u", "c": "one", "w": {"x": 2}}, {"r": "a", "c": "two", "w": {"x": 1}}, {"r": "u", "c": "Three", "w": {"x": 3}}],
    "u8": "Été ÇA va 你好 😀 ß", "ml": "l1\nl2\n\nl4\n", "sp": "\u00a0 \tpad\u2003\n", "h": "<a href=\"x\">&'</a>",
    "deep": {"x": {"y": [10, {"z": "deep"}]}}, "el": [], "ed": {}, "ctl": "a\u0000b\u001f\u007f\u0085\u2028\"\\/'",
    "many": {"k%d" % i: i for i in range(20)}, "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}],
}

T = []
add = T.append
for e in [
    # numbers
    "1_000 + 1", "0x1f", "0b101", "0o17", "1e3", "1.5e-7", "1e16", "1e15", "123456789012345680.0", "0.1 + 0.2", "1/3", "-7 // 2", "7 // -2", "-7 % 3",
    "7 % -3", "-7.5 // 2", "-7.5 % 2", "7.5 % -2", "5.0 // 0.1", "2 ** 10", "2 ** -1", "-2 ** 2", "2 ** 3 ** 2", "2.0 ** 0.5", "10 / 5", "true + true",
    "1 - -1", "+a", "-b", "- - a", "big + 1", "big == 9007199254740992.0", "big > 9007199254740992.0", "1 == 1.0", "1.0 == true", "0 == false",
    "none == none", "none == false", "'1' == 1", "[1, 2] == [1.0, 2]", "(1, 2) == [1, 2]", "{'a': 1} == {'a': 1.0}", "1 < 2.5", "'a' < 'B'", "[1, 2] < [1, 3]",
    "[1] < [1, 0]", "1 < 2 <= 2 < 3 != 4", "3 > 2 > 1", "1 in [true]", "1/0", "1 % 0", "1 < 'a'", "none < 1", "9223372036854775807", "1e400", "-1e400",
    "3.0 * 2", "'ab' * 3", "3 * 'ab'", "[1] * 2", "'a' * -1", "'a' + 1", "1 + 'a'", "[1] + (2,)", "'a' - 'b'", "none + 1", "l + 1", "-'a'",
    # strings
    "'a' 'b' \"c\"", "'\\x41\\u00e9\\U0001F600\\101\\q\\n\\t\\\\'|tojson", "'a\\\nb'", "s[0]", "s[-1]", "s[99]", "s['x']", "u8[0:3]", "u8[-4:]", "u8[::-1]", "u8[::2]",
    "s[8:2:-2]", "s[-100:3]", "s[3:-100]", "s[::-3]", "l[::-1]", "l[1:]", "l[-2:]", "l[:1]", "(1,2,3)[1:]", "l[5]", "l[-4]", "l['a']", "l[true]", "n[0]",
    "n.x", "s.upper()", "u8.upper()", "u8.lower()", "u8|capitalize", "u8.title()", "u8|title", "\"they're bill's (friends) [a]-{b}\"|title",
    "\"they're bill's friends\".title()", "'ΑΣ ΣΑΣ'.lower()", "'ǆ'.title()", "'ﬁn'.upper()", "u8.swapcase()", "sp|trim|tojson", "sp.strip()|tojson", "sp.lstrip()|tojson",
    "'xxaxx'.strip('x')", "'abcba'.strip('ab')", "'  a b '.split()", "'a  b c'.split(' ')", "'a b  c d'.split(None, 2)", "'a,b,c'.split(',', 1)", "''.split()", "''.split(',')",
    "'  a b  c '.rsplit(None, 1)", "' a b c '.split(None, 1)", "' a b c '.split(None, 0)", "'a b '.split(None, 5)", "'a,b,c'.rsplit(',', 1)", "'aXXbXXc'.split('XX')", "'aaa'.split('aa')", "'aaaa'.rsplit('aa', 1)", "'a'.split('')", "ml.splitlines()",
    "'a\\r\\nb\\rc\\n'.splitlines(true)", "'a\\u2028b'.splitlines()", "s.startswith('Hell')", "s.startswith(('x', 'He'))", "s.endswith('d', 0, 5)", "s.startswith('W', 6)",
    "s.find('o')", "s.find('o', 5)", "s.rfind('o')", "s.find('zz')", "u8.find('😀')", "s.index('W')", "s.index('q')", "s.count('l')", "'aaa'.count('aa')", "'abc'.count('')",
    "s.replace('l', 'L', 2)", "'abc'.replace('', '-')", "'abc'.replace('', '-', 2)", "''.replace('', 'x')", "s|replace('o', '0')", "s|replace('o', '0', 1)", "12|replace(1, 'x')",
    "'-'.join(ls)", "'-'.join([1])", "','.join('abc')", "'a-b-c'.partition('-')", "'a-b-c'.rpartition('-')", "'abc'.partition('x')", "'abc'.rpartition('x')",
    "'prefix-x'.removeprefix('prefix-')", "'x.txt'.removesuffix('.txt')", "'7'.zfill(3)", "'-7'.zfill(4)", "'ab'.center(5, '*')", "'abc'.center(6, '*')", "'ab'.ljust(4) ~ '|'",
    "'ab'.rjust(4, '0')", "'ab'|center(6) ~ '|'", "'abc'.isalpha()", "'12'.isdigit()", "'²'.isdigit()", "'½'.isnumeric()", "''.isalpha()", "'aB1'.isalnum()", "' \\t'.isspace()",
    "'ABC'.isupper()", "'abC'.islower()", "'你'.isalpha()", "'é'.isascii()", "s is lower", "'abc' is lower", "'ABC' is upper", "'1' is upper", "'ell' in s", "'' in s", "1 in s", "s in [s]",
    "'%s and %d and %05.2f|%-5s|%5s|%x|%%|%r|%c' % ('a', 3, 3.14159, 'l', 'r', 255, 'q', 'c')", "'%(x)s-%(y)03d' % {'x': 1, 'y': 7}", "'%s' % 1", "'%s' % [1, 2]", "'%d' % 'a'",
    "'%s %s' % (1,)", "'%s' % (1, 2)", "'%.2s|%+d|%e|%g' % ('abc', 5, 12345.678, 0.0001)", "'%s is %d'|format('x', 3)", "'%(a)s'|format(a=1)", "'{} {}'.format('a', 1)",
    "'{1}{0}{1}'.format('a', 'b')", "'{x} {y[0]} {z.k}'.format(x=1, y=l, z=d)", "'{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd')", "'{:.2f} {:05d} {:,} {:x} {:+d} {:%}'.format(3.14159, 42, 1234567, 255, 5, 0.5)",
    "'{{}} {!r}'.format('a')", "'{'.format(1)", "'{}'.format()", "'{:5}|'.format(3)", "'{}'.format(none)", "'{:.3}'.format('abcdef')",
    # lists, dicts
    "l.index(1)", "l.count(3)", "l.index(9)", "l.nope", "d.items()|list", "d['items']", "d.k", "d.get('k')", "d.get('q')", "d.get('q', 5)", "d.keys()|list", "d.values()|list", "d.keys()", "d.items()",
    "d.q", "l[]", "d[] is undefined", "[[1, [2]]].0.1.0", "[[3]].0.0 + 1.5", "d.q", "d['q']", "d.q.r", "d['q']['r']", "'k' in d", "[1] in d", "d[[1]]", "{1: 'a', 1.0: 'b', true: 'c'}", "{'a': 1, 'b': {'c': (1,)}}", "(1,)", "()", "(1, 2)", "[[], {}, '']", "['it\\'s', '\"', '\\'\"', '\\n\\x00é\\u200b😀']",
    "[1.0, 1e100, 1e-5, 0.0001, -0.0, none, true]", "dict(a=1, b=2)", "dict([('x', 1)])", "dict(d, z=1)|length", "{'a': 1}.update({'b': 2})", "deep.x.y[1].z", "deep['x']['y'][0]", "many.k7", "many|length",
    "namespace(x=1).x", "namespace(x=1).y", "range(3)|list", "range(5, 0, -2)|list", "range(0)|list", "range(1, 10, 4)|list", "l.0", "o.1.c",
    # logic
    "a and b", "e or 'x'", "f or n or e", "not e", "not not a", "'x' if f", "('x' if f) is defined", "'x' if t else 'y' if f else 'z'", "undefd", "undefd or 1", "undefd is defined", "undefd.x", "undefd[0]", "undefd()", "undefd + 1",
    "undefd ~ 'x'", "undefd == undefd2", "undefd == none", "undefd|length", "undefd|list", "undefd|upper", "undefd|join(',')", "undefd|int", "undefd|tojson", "undefd < 1", "undefd in [1]", "1 in undefd", "-undefd", "undefd is iterable",
    "undefd is sequence", "undefd is callable", "undefd is none", "a is divisibleby 2", "4 is divisibleby(2)", "a is odd", "2 is even", "1.0 is integer", "1 is integer", "true is integer", "true is number", "1.5 is float", "1 is float",
    "n is none", "n is not none", "s is string", "d is mapping", "l is sequence", "d is sequence", "s is sequence", "1 is iterable", "d is iterable", "range is callable", "s.upper is callable", "s is callable", "a is eq 1", "a is ne 2", "a is gt 0", "a is lt 0", "a is ge 1", "a is le 1",
    "a is equalto 1", "a is sameas 1", "1 is true", "true is true", "f is false", "a is in l", "a is not in [1]", "'upper' is filter", "'nope' is filter", "'odd' is test", "a is nope", "s|nope", "a is odd and b is float", "(a is odd) ~ ''",
    "a + 1 is odd", "'x' ~ 2 + 3", "1 ~ 2 ~ none", "-3|abs", "1 - 1|abs", "2 * 3 + 4 ** 2 // 3 % 5", "not a == 2", "not a in [2]", "a not in [2]", "1 if a else 2 + 3", "[1, 2, 3,]", "{'a': 1,}", "(a)", "((a))", "s|length is gt 3", "a, b", "[a, [b, (s, )]]",
    # filters
    "mixed|unique|list", "['b', 'A', 'a']|unique|list", "['b', 'A', 'a']|sort", "['b', 'A', 'a']|sort(case_sensitive=true)", "[3, 1, 2]|sort(reverse=true)", "o|sort(attribute='c')|map(attribute='c')|list", "o|sort(attribute='w.x')|map(attribute='w.x')|list",
    "o|sort(attribute='r,c')|map(attribute='c')|list", "[1, 'a']|sort", "o|map(attribute='c')|join(', ')", "o|map(attribute='q', default='-')|list", "ls|map('upper')|list", "[' a ', 'b ']|map('trim')|list", "['a-b']|map('replace', '-', '+')|list", "l|select('odd')|list",
    "l|select|list", "[0, 1, '', 'a']|select|list", "[0, 1, '', 'a']|reject|list", "l|reject('gt', 1)|list", "o|selectattr('r', 'equalto', 'u')|map(attribute='c')|list", "o|selectattr('q')|list", "o|selectattr('q', 'undefined')|list|length", "o|rejectattr('r', 'in', ['u'])|map(attribute='c')|list",
    "o|selectattr('w.x', '>', 1)|list|length", "o|groupby('r')|length", "d|dictsort", "{'b': 1, 'A': 2, 'a': 3}|dictsort", "{'b': 1, 'A': 2}|dictsort(true)", "{'a': 2, 'b': 1}|dictsort(by='value')", "{'a': 2, 'b': 1}|dictsort(reverse=true)", "many|dictsort|first", "d|items|list",
    "l|first", "l|last", "el|first", "s|first", "s|last", "s|reverse", "l|reverse|list", "l|sum", "o|sum(attribute='w.x')", "[[1], [2]]|sum(start=[])", "el|sum", "l|min", "l|max", "['b', 'A']|min", "el|max", "o|max(attribute='c')", "ls|join", "ls|join('-')", "[1, none, 'a']|join(',')", "o|join(',', attribute='c')", "s|join('-')",
    "l|batch(2)|list", "l|batch(2, 'x')|list", "range(7)|slice(3)|list", "range(7)|slice(3, 'x')|list", "s|list", "d|list", "5|list", "s|length", "5|length", "n|length", "s|wordcount", "'a-b c_d é'|wordcount", "'3'|int", "' 42 '|int", "'3.7'|int", "'x'|int", "'x'|int(5)", "'ff'|int(0, 16)", "'0x1f'|int(0, 16)", "'0b11'|int(0, 2)",
    "'1_000'|int", "3.9|int", "-3.9|int", "true|int", "n|int", "l|int(2)", "'2.5'|float", "'x'|float", "'x'|float(1.5)", "'1e3'|float", "3|float", "'inf'|float", "2.5|round", "3.5|round", "2.567|round(2)", "2.567|round(1, 'floor')", "2.521|round(2, 'ceil')", "42|round", "1234|round(-2)", "1250|round(-2)", "2.675|round(2)", "-3|abs", "-3.5|abs", "'a'|abs",
    "ml|indent", "ml|indent(2, true)", "ml|indent(2, blank=true)", "ml|indent('> ', first=true)", "''|indent(2, true)", "'a long text here'|truncate(9)", "'a long text here'|truncate(9, true)", "'a long text here'|truncate(12, false, '…', 0)", "'short'|truncate(3)", "'a b'|truncate(2)", "h|escape", "h|e", "{'a': 1, 'b': none, 'c': '<'}|xmlattr",
    "n|default('x')", "undefd|default('x')", "undefd|d", "e|default('x', true)", "f|default('x', boolean=true)", "d.q|default('x')", "s|string", "5|string ~ 'x'", "l|string", "h|safe", "s|upper|lower|capitalize", "5|upper", "n|trim", "'xxaxx'|trim('x')", "u8|upper",
    # json
    "o|tojson", "o|tojson(indent=2)", "o[0]|tojson(indent=4)", "[[], {}, [[]], {'a': []}]|tojson(indent=1)", "u8|tojson", "u8|tojson(ensure_ascii=true)", "ctl|tojson", "ctl|tojson(ensure_ascii=true)", "[1.0, 1e100, 1e-7, -0.0, 123456789.125]|tojson", "{'b': 1, 'a': {'d': 1, 'c': 2}}|tojson(sort_keys=true)",
    "{'b': [1, 2]}|tojson(separators=(',', ':'))", "{'b': [1, 2]}|tojson(indent=2, separators=(',', ':'))", "{1: 'a', none: 'b', true: 'c', 1.5: 'd'}|tojson", "(1, 2)|tojson", "{'a': [1]}|tojson(indent='--')", "{'a': [1]}|tojson(indent=0)", "range|tojson", "d|tojson|length",
    "'{\"a\": [1, 2.0, null, true, \"x\"]}'|from_json", "'[1'|from_json", "'5'|from_json + 1",
    # time
    "strftime_now('%d %b %Y')", "strftime_now('%Y-%m-%d')", "strftime_now('%B %d, %Y')", "strftime_now('%A %a %j %U %W %w %u %V %G %y %I:%M:%S %p %% %H %-d %-m %e %F %T %D %R %h %C')",
    # errors of calls
    "s.upper(1)", "s.split(foo=1)", "s|trim(1, 2, 3)", "s|indent(width='ab', width=2)", "range()", "range('a')", "5()", "s()", "s.strip(5)", "l.pop(9)", "el.pop()",
]:
    add("{{ %s }}" % e)

T += [
    # statements
    "{% for x in l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }}/{{ loop.depth }}/{{ loop.cycle('o', 'e') }} {% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.index }}:{{ x }}{{ ',' if not loop.last }}{% else %}none{% endfor %}",
    "{% for x in l if x > 5 %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in many|dictsort %}{{ k }}{{ v }} {% endfor %}",
    "{% for (k, v), w in [((1, 2), 3)] %}{{ k }}{{ v }}{{ w }}{% endfor %}", "{% for x in 'abc' %}{{ x }}.{% endfor %}", "{% for x in n %}{% endfor %}", "{% for x in 5 %}{% endfor %}",
    "{% for x in undefd %}x{% else %}empty{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}",
    "{% for x in [1, 2] %}{% for y in [3, 4] %}{{ loop.index }}{{ x }}{{ y }}{% if y == 3 %}{% break %}{% endif %}{% endfor %}{{ loop.index }}|{% endfor %}",
    "{% for x in ls %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}", "{% for x in [1, 1, 2] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for n in tree recursive %}{{ n.v }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}", "{% for x in l %}{{ loop(x) }}{% endfor %}", "{{ loop }}",
    "{% set x = 1 %}{% for i in l %}{{ x }}{% set x = i %}{{ x }} {% endfor %}{{ x }}", "{% set x = 1 %}{% for i in l %}{% if true %}{% set x = x + 1 %}{% endif %}{{ x }}{% endfor %}{{ x }}",
    "{% if t %}{% set q = 1 %}{% endif %}{{ q }}", "{% for i in l %}{% set q = i %}{% endfor %}{{ q }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1] %}", "{% set x = 1, 2 %}{{ x }}",
    "{% set ns = namespace(c=0) %}{% for i in l %}{% set ns.c = ns.c + i %}{% endfor %}{{ ns.c }}", "{% set d.x = 1 %}", "{% set ns = namespace() %}{% set ns.a = [1] %}{% do ns.a.append(2) %}{{ ns.a }}",
    "{% for i in l %}{% set z %}x{% break %}{% endset %}{{ i }}{% endfor %}{{ z is defined }}", "{% for i in l %}[{% filter upper %}a{% if i == 2 %}{% continue %}{% endif %}b{% endfilter %}]{% endfor %}",
    "{% for i in l %}{% set z | upper %}{{ i }}{% for j in l %}{% if j == 2 %}{% break %}{% endif %}j{% endfor %}{% endset %}{{ z }}{% endfor %}",
    "{% set x %}a{{ a }}b{% endset %}{{ x|length }}", "{% set x | upper | trim %} abc {% endset %}[{{ x }}]", "{% set x = l %}{% set _ = x.append(9) %}{{ x }}{{ l }}{{ x.pop() }}{{ x.pop(0) }}{{ x }}",
    "{% macro m(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }}|{{ m(1, c=3) }}|{{ m() }}|{{ m(b=1, a=5) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}", "{% macro m(a) %}{{ a }}{% endmacro %}{{ m(z=2) }}",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}", "{% macro m(a, b=a) %}{{ b }}{% endmacro %}{{ m(7) }}", "{% macro m() %}{{ q }}{% endmacro %}{% set q = 5 %}{{ m() }}", "{% for i in l %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro f(n) %}{{ n if n < 2 else f(n - 1)|int + f(n - 2)|int }}{% endmacro %}{{ f(10) }}", "{% macro m(caller=none) %}<{{ caller() if caller else '-' }}>{% endmacro %}{{ m() }}{% call m() %}b{% endcall %}", "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}body{{ a }}{% endcall %}", "{% macro m() %}{% for i in [1, 2] %}{{ caller(i) }}{% endfor %}{% endmacro %}{% call(x) m() %}[{{ x }}]{% endcall %}",
    "{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}", "{% macro m(a) %}{{ m.name }}{% endmacro %}{{ m(1) }}", "{% macro m(x) %}{% set y = x %}{{ y }}{% endmacro %}{{ m(1) }}{{ y is defined }}", "{% macro m(args) %}{{ args }}{% endmacro %}{{ m(*[1]) }}{{ m(**{'args': 2}) }}",
    "{% with x = 1, y = 2 %}{{ x }}{{ y }}{% endwith %}{{ x is defined }}", "{% with %}{% set z = 1 %}{{ z }}{% endwith %}{{ z is defined }}", "{% filter upper %}a{{ s }}{% endfilter %}", "{% filter replace('a', 'b')|upper %}aXa{% endfilter %}", "{% generation %}x{{ a }}{% endgeneration %}",
    "{% generation %}{% set gg = 1 %}{% endgeneration %}{{ gg is defined }}", "{% if a == 1 %}1{% elif a == 2 %}2{% else %}3{% endif %}", "{% if el %}1{% elif e %}2{% elif s %}3{% endif %}", "{% raw %}{{ a }}{% if %}{% endraw %}", "a {% raw -%}  {{ x }}  {%- endraw %} b", "  {% raw %}\n x{% endraw %}\ny",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}{% do c.reset() %}{{ c.next() }}", "{% set j = joiner('-') %}{% for x in ls %}{{ j() }}{{ x }}{% endfor %}", "{% print a %}",
    # white space
    "a\n  {% if t %}\n  b\n  {% endif %}\nc", "a\n  {%- if t %}\n  b\n  {%- endif %}\nc", "a\n  {%- if t -%}\n  b\n  {%- endif -%}\nc", "a  {% if t %}  b  {% endif %}  c", "a\n  {{ a }}  \n  b", "a\n  {{- a -}}  \n  b", "  {# c #}  x", "  {# c #}\n  x", "x {#- c -#} y", "{# a #}{# b #}\n\n{# c #}\nz",
    "  {%+ if t %}x{% endif %}", "{% if t +%}\nx{% endif %}", "{% if t %}\n\nx{% endif %}\n\n", "x\n", "x\n\n", "\n\nx", "a\r\nb\rc\n", "\t\v\f {% set x = 1 %}x", "a\u00a0\n\u2003{%- set x = 1 -%}\u2003\nb", "x{{ a }}\n   {% set x = 1 %}\n   y", "{{ a }}   {% set x = 1 %}y", "{% set x = 1 %}   {% set y = 2 %}  z",
    "{% for x in l %}\n  {{ x }}\n{% endfor %}\n", "{%- for x in l -%}\n  {{ x }}\n{%- endfor -%}\n", "{{ '{%' }}{{ '}}' }}{{ {'a': {'b': 1}}.a.b }}{{ {'a': {}} }}", "{{\n  a\n}}", "{% set x = {\n 'a': 1,\n} %}{{ x.a }}", "a { b } c {{ '#}' }} {x}", "{{ a }}}", "{", "{{ '\\n' }}\n",
    # refused
    "{{ a", "{% if a", "{# a", "{% if a %}", "{% endif %}", "{% for x in l %}{% endif %}", "{{ a b }}", "{{ }}", "{{ a. }}", "{{ (a }}", "{{ a) }}", "{{ [1, 2 }}", "{{ 'abc }}", "{% set %}", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% foo %}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ a is b is c }}", "{{ ! }}", "{{ a ? b }}",
    "{% break %}", "{{ 1 if }}", "{% for x l %}{% endfor %}", "{% raw %}x", "{{ a | }}", "{{ a is }}", "{{ {1 2} }}", "{{ f(a=1, 2) }}", "{{ raise_exception('stop ' ~ a) }}", "x{% if a %}\n{{ raise_exception('é\\n<b>') }}{% endif %}", "{% call 5 %}{% endcall %}", "{{ 01 }}", "{{ $ }}", "{{ a == }}", "{{ not }}",
    # found by comparing generated templates
    "{{ n|selectattr('a')|list }}{{ n|map('upper')|list }}{{ 0|select|list }}{{ f|rejectattr('x')|list|length }}", "{{ h|safe + h }}|{{ h + h|safe }}|{{ '<' ~ h|safe }}|{{ h|e|e }}|{{ (h|safe).upper() + '<' }}", "{{ [h|safe] }}{{ h|safe is escaped }}",
    "{{ (h|safe)[:2] + '<' }}|{{ (h|safe).split('=')[0] + '<' }}|{{ (h|safe|trim) + '&' }}|{{ (h|safe|title) + '&' }}|{{ (h|safe).replace('a', '<') }}|{{ h|safe|replace('a', '<') }}|{{ (','|safe).join(['<', '>']) }}|{{ ('<'|safe) * 2 + '<' }}",
    "{% set x %}<{{ h|safe }}{% endset %}{{ x + '<' }}", "{% if el|select %}yes{% else %}no{% endif %}", "{{ l|select|length }}", "{% set g = l|select %}{% for x in g %}{{ x }}{% endfor %}|{% for x in g %}{{ x }}{% endfor %}", "{{ (l|select)[0] is defined }}", "{{ l|reverse|last }}",
    "{{ l|select == l }}{{ l|select is sequence }}{{ l|select is iterable }}{{ 3 in l|select }}", "{{ (l|map('string')) + ['x'] }}", "{{ d|items|first }}{{ d|dictsort|first }}",
    "{% for x in l %}{% continue %}{% else %}else{% endfor %}", "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}else{% endfor %}", "{% for x in l %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% else %}else{% endfor %}", "{% for x in l %}{% for y in l %}{{ y }}{% else %}{% break %}{% endfor %}{% endfor %}",
    "{{ ml|indent }}", "{{ 'a\r\nb\u2028c\x85\n'|indent(2, true) }}", "{{ ''|indent(2, true) }}|{{ 'a\n\nb'|indent(blank=true) }}", "{{ l|indent }}", "{{ nope|indent }}", "{{ [1, 2]|truncate(9) }}", "{{ many|truncate(9) }}", "{{ n|truncate }}", "{{ 5|truncate }}",
    "{{ nope in d }}{{ nope in l }}{{ d.get(nope) }}{{ d[nope] is defined }}", "{{ s|groupby('w.x', default=0)|length }}{{ o|map(attribute='w.q.z', default='-')|list }}{{ o|map(attribute='q', default=none)|map('default', 'D')|list }}",
    "{{ o|groupby('r')|map(attribute='grouper')|list }}{% for g in o|groupby('r') %}{{ g.grouper }}{{ g.list|length }}{{ g[0] }}{% endfor %}", "{% if a if t else n %}{% endif %}", "{{ a is number if t else 1 }}", "{% filter length %}abc{% endfilter %}",
    "{% macro m(p, q=1) %}{{ varargs }}{% endmacro %}{{ m.arguments }}{{ m.catch_kwargs }}{{ m.catch_varargs }}{{ m.caller }}", "{{ s|attr('upper') is callable }}{{ d|attr('k') is defined }}{{ (s|attr('lower'))() }}",
    "a {#-#} b", "a {#+#} b", "a {#- -#} b", "a\n  {#+#}\n b", "{{ '{} {0}'.format(1) }}", "{{ '{0} {}'.format(1) }}", "{{ 'ab' % l }}{{ 'ab' % d }}", "{{ 'ab' % 5 }}", "{{ o|sort(attribute='zz')|length }}", "{{ [nope, nope]|sort|length }}", "{{ [nope, 1]|sort|length }}",
    "{% macro p() %}{% macro q() %}{{ caller() }}{% endmacro %}x{% endmacro %}{% call p() %}y{% endcall %}", "{% macro p() %}{% macro q() %}{{ varargs }}{{ kwargs }}{% endmacro %}x{% endmacro %}{{ p(1, z=2) }}",
    "{% macro p() %}<{{ caller() }}>{% endmacro %}{% macro q() %}{% call p() %}{{ caller() }}{% endcall %}{% endmacro %}{% call q() %}y{% endcall %}",
    # what random templates found: rounding, formats, loops with conditions, defaults that ask for themselves
    "{{ big / 7 }}|{{ -big / 7 }}|{{ 1 / big }}|{{ big / -9007199254740995 }}|{{ 9223372036854775807 / 9223372036854775806 }}|{{ 0 / big }}", "{{ 1e16 // -3 }}|{{ -1e16 // 3 }}|{{ -7.5 // 2 }}|{{ 5e-324 // -3 }}",
    "{{ 3.0 ** 1000 }}", "{{ -0.4|round(0, 'ceil') }}|{{ -0.0|round(1, 'floor') }}|{{ 2.25|round(1, 'ceil') }}", "{{ ('inf'|float)|int }}", "{{ {1: 'x'}|xmlattr }}",
    "{{ '{:+}|{: }|{:+}|{:+}'.format(b, b, neg, t) }}", "{{ '{:^7}|{:*^8}|{:^6}|{:^1}'.format('ab', 'abc', 3, s) }}", "{{ '{:<08}|{:08}|{:>06}|{:*<08}'.format('a', 'b', 4, 5) }}", "{{ '{:=+8}|{:*=+8}|{:*=8}|{:x=+9.2f}'.format(b, neg, 5, 1.5) }}",
    "{{ '{:^7}|{:5}|{:+}|{}'.format(t, f, t, f) }}", "{{ '{:+}'.format('a') }}", "{{ '{: }'.format('a') }}", "{{ '{:,}'.format('a') }}", "{{ '{:=8}'.format('a') }}", "{{ '{:.3}'.format(5) }}", "{{ '{:-}|{:-5d}'.format(neg, 3) }}",
    "{{ '%#o|%#x|%#X|%#x|%+x|% o|%#08x|%#o|%.4x' % (8, 255, 255, 0, 255, 8, 255, neg, 10) }}", "{{ '%5%' % () }}", "{{ '%-%' % () }}",
    "{% for x, y in [[1, [2]], 'ab'] if x %}{{ loop.nextitem }}{{ loop.previtem }}{% endfor %}", "{% for x, (y, z) in [[1, [2, 3]]] * 2 if x %}{{ loop.nextitem }}{{ y }}{% endfor %}", "{% for x, y in [[1, [2]], 'ab'] %}{{ loop.nextitem }}{% endfor %}",
    "{% macro m(s=s) %}{{ s }}{% endmacro %}{{ m() }}|{{ m(1) }}", "{% macro m(x=s, s=1) %}{{ x }}{{ s }}{% endmacro %}{{ m() }}|{{ m(s=2) }}|{{ m(3) }}", "{% macro m(s=s|default('D'), x=s) %}{{ s }}{{ x }}{% endmacro %}{{ m() }}", "{% macro m(range=range) %}{{ range is defined }}{% endmacro %}{{ m() }}",
    "{{ range(3)|tojson }}", "{{ range(3) + [1] }}", "{{ [1] + range(3) }}", "{{ range(2) * 2 }}", "{{ range(3) == [0, 1, 2] }}{{ range(3) == range(3) }}{{ range(3)|list == [0, 1, 2] }}{{ range(9)[2:5]|list }}{{ range(3)|sort }}{{ 2 in range(3) }}{{ range(3)|sum }}{{ range(3)[1] }}",
    "{{ nope is sameas(nope) }}{% set x = nope %}{{ x is sameas(x) }}{{ d.q is sameas(d.q) }}",
]

cases = []
for source in T:
    case = {"template": source}
    try:
        case["expected"] = env.from_string(source).render(**json.loads(json.dumps(CONTEXT)))
    except Raised as e:
        case["error"] = {"kind": "raise_exception", "message": str(e)}
    except Exception as e:  # whatever Python calls it
        case["error"] = {"kind": type(e).__name__, "message": str(e)}
    cases.append(case)

head = {"origin": "make_jinja.py, Jinja2 " + jinja2.__version__, "now": NOW.isoformat(), "context": CONTEXT}
out = json.dumps(head, ensure_ascii=False)[:-1] + ', "cases": [\n' + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]}\n"
sys.stdout.write(out)
