/* The questions about notations: what a grammar, an expression, a JSON text or a template may be written with, by the
 * words of each; and about samplers where their numbers meet. Owns them: a change of one is a change of its hash, and
 * needs another name for its part. */
#include "lab/quality/outer_ask.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N_OF(x) (sizeof(x) / sizeof *(x))

/* ---- grammars and expressions ---------------------------------------------------------------------------- */

/* How far each text goes, character by character, and where it may end. */
static hone_status follow(hn_asking *a, const hone_grammar_params *p, const hone_str *texts, size_t n_text)
{
    hone_grammar *g = NULL;
    hone_status st = hone_grammar_compile(&g, p, &a->err);
    hn_asking_took(a, st);
    for (size_t i = 0; g && i < n_text && st != HONE_E_NOMEM; i++) {
        hone_matcher *m = NULL;
        size_t k = 0;
        st = hone_matcher_new(&m, g, a->m, &a->err);
        for (; m && k < texts[i].len; k++) {
            st = hone_matcher_accept_text(m, texts[i].ptr + k, 1, &a->err);
            if (st != HONE_OK) break;
            hn_asking_number(a, hone_matcher_can_end(m));
        }
        hn_asking_number(a, (int64_t)k);
        hone_matcher_free(m);
    }
    hone_grammar_free(g);
    return st;
}

#define TEXT(s)         \
    {                   \
        s, sizeof s - 1 \
    }

static hone_status ask_grammars(hn_asking *a)
{
    static const hone_str texts[] = {
        TEXT("a1\tb"),      TEXT("AZ-09"),  TEXT("\xC3\xA9\xE2\x82\xAC"), TEXT("\xF0\x9F\x98\x80z"),
        TEXT("x\"\\]\n"),   TEXT("((()))"), TEXT("oneone two"),           TEXT("'/^-"),
        TEXT("r41 r42 r7"), TEXT("")
    };
    static const char *const sources[] = {
        "# what it is\nroot ::= [a-z] \"1\" \"\\t\" . # a comment\n",
        "root ::= ([A-Z]{2} \"\\x2D\" [0-9]+ |\n  [^a-z\\n]*)",
        "root ::= \"\\u00e9\" \"\\u20AC\" | \"\\U0001F600\" [x-z]?",
        "root ::= \"x\\\"\" \"\\\\\" [\\]\\[] \"\\n\"\n",
        "root ::= pair*\npair ::= \"(\" pair? \")\" |\n \"()\" ",
        "root ::= (one{2,} \" \" two{1} | one){1,2}\none ::= \"one\"\ntwo ::= \"two\" | \"too\"\n",
        "root ::= [\\x27-\\x2F^_-]* \"\"",
        "root ::= <[7]> | <[12]> \"b\" | \".\"",
        "root ::= missing",
        "root ::= \"open",
    };
    enum { RULES = 300, CAP = RULES * 24 + 64 };
    char *many = malloc(CAP);
    hone_status st = many ? HONE_OK : HN_FAIL(&a->err, HONE_E_NOMEM, "a grammar of %d rules", RULES);
    for (size_t i = 0; i < N_OF(sources) && st != HONE_E_NOMEM; i++) {
        const hone_grammar_params p = { .kind = HONE_GRAMMAR_GBNF, .text = sources[i], .len = strlen(sources[i]) };
        st = follow(a, &p, texts, N_OF(texts));
    }
    if (st == HONE_E_NOMEM) return free(many), st;
    int n = snprintf(many, CAP, "root ::= (r7 | r41 | r42 | r299) (\" \" root)?\n");
    for (int i = 0; i < RULES; i++) n += snprintf(many + n, (size_t)(CAP - n), "r%d ::= \"r%d\"\n", i, i);
    const hone_grammar_params p = { .kind = HONE_GRAMMAR_GBNF, .text = many, .len = (size_t)n };
    st = follow(a, &p, texts, N_OF(texts));
    free(many);
    return st;
}

static hone_status ask_expressions(hn_asking *a)
{
    static const hone_str texts[] = { TEXT("abcABC_09"),
                                      TEXT("\xC3\xA9\xC3\x89\xCE\xB1\xE7\x81\xAB"),
                                      TEXT("\xCC\x81\xD9\xA3\xE2\x82\xAC!"),
                                      TEXT("\xF0\x9F\x98\x80\xF0\x9F\x8F\xBD"),
                                      TEXT(" \t\n\xC2\xA0\xE2\x80\xA8"),
                                      TEXT("foobar baz"),
                                      TEXT("aXb.c*d"),
                                      TEXT("aaaaaa"),
                                      TEXT("x-]^y"),
                                      TEXT("\x01\x08\x0B\x0C\r"),
                                      TEXT("12:34:56"),
                                      TEXT("") };
    static const char *const sources[] = { "\\p{L}+",
                                           "\\p{Letter}*\\d?",
                                           "\\p{Ll}{1,9}",
                                           "\\p{Lowercase_Letter}*",
                                           "[\\p{M}\\p{N}\\p{S}\\p{P}]*",
                                           "(\\p{Mark}|\\p{Number}|\\p{Symbol}|\\p{Punctuation})+",
                                           "\\P{L}*",
                                           "\\D+",
                                           "\\w+",
                                           "\\W*",
                                           "\\s*",
                                           "\\S+",
                                           "[\\d\\s_a-f]+",
                                           "[^\\w]+",
                                           "\\u00e9\\u{C9}\\u{3b1}.",
                                           "\\uD83D\\uDE00.*",
                                           "[\\u{1F600}-\\u{1F64F}].?",
                                           "\\x61\\x62c[A-Z]+_\\d\\d",
                                           "\\x01[\\b]\\v\\f\\r",
                                           "\\cA[\\s\\S]*",
                                           "foo(?:bar)+ (?<name>baz|qux)",
                                           "^foo.*z$",
                                           "(?=foo)[a-z ]+",
                                           "(?!foo)[a-z ]+",
                                           "(?!.*z$)[a-z ]+",
                                           "a+?",
                                           "a*?a{2}",
                                           "a{3}",
                                           "a{2,}",
                                           "a{0,4}",
                                           "a{1,}?a",
                                           "a\\Xb",
                                           "aXb\\.c\\*d",
                                           "[x\\-\\]^y]+",
                                           "[^]",
                                           "(a|b|)c?",
                                           "((a))*",
                                           "\\d{2}(:\\d{2}){2}",
                                           "\\0?",
                                           ".",
                                           "a{2",
                                           "(a",
                                           "[a",
                                           "\\p{Zs}",
                                           "(?<=a)b",
                                           "\\1",
                                           "*",
                                           "a\\b" };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N_OF(sources) && st != HONE_E_NOMEM; i++) {
        const hone_grammar_params p = { .kind = HONE_GRAMMAR_REGEX, .text = sources[i], .len = strlen(sources[i]) };
        st = follow(a, &p, texts, N_OF(texts));
    }
    return st;
}

/* How a value may be written: escapes and pairs of them, blanks, signs and exponents of numbers, order of members. */
static hone_status ask_values(hn_asking *a)
{
    static const hone_str texts[] = { TEXT("\"a\\u0062\\n\""),
                                      TEXT("\"\\ud83d\\ude00x\""),
                                      TEXT("\"\\uD83D\\uDE01\""),
                                      TEXT("\"\\u00e9\xC3\xA9\\/\\\\\\\"\""),
                                      TEXT("\"\\ud83d\""),
                                      TEXT("\"tab\t\""),
                                      TEXT("-0.5e+10"),
                                      TEXT("017"),
                                      TEXT("12.50"),
                                      TEXT("{\"b\":1,\"a\":\"x\"}"),
                                      TEXT("{ \"a\" : \"x\" ,\n\t\"b\" : 1 }"),
                                      TEXT("{\"a\":\"x\",\"c1\":[null,true],\"zz\":{}}"),
                                      TEXT("[1, 2,2]"),
                                      TEXT("[ ]"),
                                      TEXT("{\"kind\":\"p\",\"p\":1}"),
                                      TEXT("{\"kind\":\"q\",\"q\":\"1\"}"),
                                      TEXT("null"),
                                      TEXT("105.2"),
                                      TEXT("105.250"),
                                      TEXT("2310.6"),
                                      TEXT("99"),
                                      TEXT("1000.0e0"),
                                      TEXT("-2310.49"),
                                      TEXT("-7"),
                                      TEXT("0.0012") };
    static const char *const sources[] = {
        "{\"type\":\"string\",\"maxLength\":3}",
        "{\"type\":\"string\",\"pattern\":\"^[\\ud83d\\ude00-\\ud83d\\ude4f]x?$\"}",
        "{\"enum\":[\"ab\\n\",\"\\u00e9\\u00e9/\\\\\\\"\",\"\\ud83d\\ude00x\",-0.5e10,[1,2,2],null,12.5]}",
        "{\"type\":\"number\"}",
        "{\"type\":\"number\",\"exclusiveMinimum\":-1,\"maximum\":12.5}",
        "{\"type\":\"number\",\"minimum\":105.25,\"exclusiveMaximum\":2310.5}",
        "{\"type\":\"number\",\"exclusiveMinimum\":-2310.5,\"maximum\":-10.05}",
        "{\"type\":\"number\",\"minimum\":-7,\"maximum\":0.00125}",
        "{\"type\":\"integer\",\"exclusiveMinimum\":98,\"exclusiveMaximum\":1001}",
        "{\"anyOf\":[{\"type\":\"object\",\"properties\":{\"kind\":{\"enum\":[\"p\"]}}},{\"type\":\"object\","
        "\"properties\":"
        "{\"kind\":{\"enum\":[\"q\"]}}}],\"discriminator\":{\"propertyName\":\"kind\"}}",
        "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"p\"}},\"required\":[\"kind\"]},{"
        "\"type\":"
        "\"object\",\"properties\":{\"kind\":{\"const\":\"q\"}},\"required\":[\"kind\"]}],\"discriminator\":{"
        "\"propertyName\":\"kind\"}}",
        "{\"type\":\"integer\",\"multipleOf\":1,\"minimum\":0}",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"const\":\"x\"},\"b\":{\"type\":\"integer\"}},\"required\":["
        "\"a\"],"
        "\"patternProperties\":{\"^c\\\\d$\":{\"type\":\"array\"}}}",
        "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{\"minimum\":0}},\"additionalProperties\":{\"type\":"
        "\"object\"},\"minProperties\":2}",
        "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"}],\"items\":{\"enum\":[2]},\"maxItems\":3}",
        "{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"uniqueItems\":false,\"maxItems\":0}",
        "{\"oneOf\":[{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"p\"},\"p\":{\"type\":\"integer\"}},"
        "\"required\":[\"kind\",\"p\"]},{\"type\":\"object\",\"properties\":{\"kind\":{\"const\":\"q\"},\"q\":{"
        "\"type\":"
        "\"string\"}},\"required\":[\"kind\",\"q\"]}]}",
        "{\"allOf\":[{\"type\":[\"object\",\"null\"]},{\"required\":[\"a\"]}],\"properties\":{\"a\":{\"type\":"
        "\"string\"}}}",
        "{\"$ref\":\"#/$defs/t\",\"$defs\":{\"t\":{\"type\":[\"object\",\"null\",\"array\"],\"additionalProperties\":"
        "{\"$ref\":\"#/$defs/u\"}},\"u\":{\"type\":[\"integer\",\"string\"]}}}",
        "{\"not\":{\"type\":[\"string\",\"number\"]}}",
        "{\"if\":{\"required\":[\"b\"]},\"then\":{}}",
        "true",
        "false",
        "{\"type\":\"strin\"}",
    };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N_OF(sources) && st != HONE_E_NOMEM; i++) {
        const hone_grammar_params p = { .kind = HONE_GRAMMAR_JSON_SCHEMA,
                                        .text = sources[i],
                                        .len = strlen(sources[i]) };
        st = follow(a, &p, texts, N_OF(texts));
    }
    return st;
}

/* ---- templates ------------------------------------------------------------------------------------------- */

static hone_status ask_template_words(hn_asking *a)
{
    /* each a filter, a method, a test or a function, of what its values are; '|' goes between what each writes */
    static const char *const words[] = {
        "n|abs,f|abs,(-n)|abs",
        "d|attr('k'),d.k",
        "l|batch(2)|list,l|batch(2,'-')|list",
        "s|capitalize,t|capitalize",
        "t|center(21),s|center(2)",
        "l|count,s|length,d|count",
        "none|default('x'),u|d('y'),''|default('z',true)",
        "d|dictsort,d|dictsort(reverse=true),d|dictsort(by='value')",
        "t|e,t|escape,'<&>\"'|e",
        "l|first,s|first,l|last",
        "'2.5'|float,'x'|float(1.5),n|float",
        "'%s-%05d-%.2f'|format('a',n,f)",
        "j|from_json,(j|from_json).k",
        "o|groupby('g'),o|groupby('g')|length",
        "t|indent,t|indent(2,true),t|indent(2,blank=true)",
        "'12'|int,'0x1f'|int(base=16),'x'|int(7),f|int",
        "d|items|list,l|join,l|join('+'),o|join(',',attribute='g')",
        "s|list,d|list,l|list",
        "s|lower,t|upper,s|title,t|title",
        "l|map('string')|join,o|map(attribute='g')|list",
        "o|map(attribute='z',default='?')|list,s|map('upper')|join",
        "l|max,l|min,s|max,o|max(attribute='h')",
        "l|reject('odd')|list,l|select('gt',1)|list,o|rejectattr('g')|list,o|selectattr('h','equalto',2)|list",
        "t|replace('e','E'),t|replace('e','E',1),l|reverse|list,s|reverse",
        "f|round,f|round(1),f|round(1,'floor'),"
        "f|round(0,'ceil'),-f|round",
        "s|safe,l|slice(2)|list,l|slice(2,'x')|list",
        "l|sort,l|sort(reverse=true),"
        "o|sort(attribute='h')|map(attribute='h')|list,['b','A']|sort,['b','A']|sort(case_sensitive=true)",
        "n|string,l|sum,l|sum(start=10),o|sum(attribute='h')",
        "d|tojson,l|tojson(indent=1),t|tojson,none|tojson,f|tojson",
        "t|trim,'xxaxx'|trim('x'),t|truncate(9),t|truncate(9,true),t|truncate(9,true,'>'),t|truncate(9,leeway=0)",
        "[1,1,2]|unique|list,['a','A']|unique|list,t|wordcount,{'a':1,'b':none}|xmlattr",
        "s.capitalize(),t.center(30,'*'),t.count('e'),s.endswith('c'),s.endswith(('x','c'))",
        "t.find('e'),t.find('e',4),t.find('q'),t.rfind('e'),t.index('e'),t.rindex('e')",
        "'{}-{1}'.format(1),'{}{}'.format(n,s)",
        "s.isalnum(),s.isalpha(),s.isascii(),'1'.isdecimal(),'1'.isdigit(),s.islower(),'1'.isnumeric(),' '.isspace(),"
        "s.isupper()",
        "'-'.join(['a','b']),s.ljust(5,'.'),s.rjust(5),s.lower(),t.lstrip(),t.rstrip(),t.strip(' T')",
        "t.partition('e'),t.rpartition('e'),s.removeprefix('a'),s.removesuffix('c'),t.replace('e','',1)",
        "t.split(),t.split('e'),t.split('e',1),t.rsplit('e',1),t.rsplit(),'a\\nb\\r\\nc'.splitlines(),'a\\nb'."
        "splitlines(true)",
        "s.startswith('a'),s.startswith(('b','a')),s.swapcase(),t.title(),s.upper(),'7'.zfill(3),'-7'.zfill(4)",
        "x.append(4),x,x.extend([5,4]),x.insert(0,9),x.count(4),x.index(4),x.pop(),x.pop(0),x.remove(4),x.reverse(),"
        "x.copy(),x.clear(),x",
        "y.get('k'),y.get('q','w'),y.keys()|list,y.values()|list,y.items()|list,y.pop('k'),"
        "y.setdefault('v',3),y.update({'w':4}),y.copy(),y.clear(),y",
        "dict(a=1,b=s),range(3)|list,range(7,1,-2)|list,"
        "namespace(a=1).a,lipsum is defined",
        "true is boolean,range is callable,u is defined,9 is divisibleby 3,"
        "1 is eq 1,1 is equalto 2,s is escaped,n is even,n is odd,false is false,true is true",
        "'upper' is filter,'upperx' is filter,f is float,3 is ge 3,3 is greaterthan 3,4 is gt 3,1 is in [1,2],n is "
        "integer",
        "l is iterable,2 is le 1,2 is lessthan 3,1 is lt 1,s is lower,d is mapping,1 is ne 1,none is none,f is number",
        "none is sameas none,l is sequence,s is string,'odd' is test,u is undefined,'AB' is upper,s is not string",
        "1 if n > 3 else 2,n if false,not n,n and s,0 or s,s in t,s not in t,s ~ n ~ f,2 ** 10,7 // 2,-7 % 3,7 / 2,n * "
        "s",
        "l[0],l[-1],l[1:],l[:-1],l[::2],l[::-1],s[1:2],t[3:],d['k'],d.k,(1,2)[1],[[1,2],[3]][0][1],l + [1],(1,) + (2,)",
        "1 < 2 < 3,1 == 1.0,'a' < 'b',[1,2] == [1,2],{'a':1} == {'a':1},none == false,'1' == 1,1 != 2,2 >= 2",
        "1_000,0x1F,0b11,0o17,1e3,1.5e-3,.5 is defined,'\\u00e9\\x41\\t\\'',\"q\\\"\",'a' 'b',1 is number is true",
    };
    static const char context[] = "{\"n\":-3,\"f\":2.675,\"s\":\"abc\",\"t\":\" The <seven> green trees "
                                  "\\n\\u00e9t\\u00e9 \",\"l\":[3,1,2],\"x\":[1,4],"
                                  "\"d\":{\"z\":1,\"k\":\"v\",\"B\":[2]},\"y\":{\"k\":1},\"j\":\"{\\\"k\\\": [1, "
                                  "2.0]}\",\"o\":[{\"g\":\"a\",\"h\":2},"
                                  "{\"g\":\"b\",\"h\":1},{\"g\":\"a\",\"h\":3}]}";
    static const char *const whole[] = {
        "{%- macro m(a, b=2) -%}[{{ a }}/{{ b }}/{{ varargs }}/{{ kwargs }}/{{ caller is defined }}]{%- endmacro -%}"
        "{{ m(1) }}{{ m(1, b=3) }}{{ m(b=4, a=0) }}",
        "{% call(v) w(3) %}<{{ v }}>{% endcall %}{% macro w(k) %}{{ caller(k) }}{% endmacro %}",
        "{% macro w(k) %}{{ caller(k) }}{{ caller(k + 1) }}{% endmacro %}{% call(v) w(3) %}<{{ v }}>{% endcall %}",
        "{% filter upper %}a{{ s }}{% endfilter %}{% set b %}x{{ n }}{% endset %}{{ b }}{% set c, e = 1, 2 %}{{ c + e "
        "}}",
        "{% for a, b in d|items recursive %}{{ loop.index }}{{ a }}{{ loop.depth }}{{ loop.changed(b) }}{% else %}no{% "
        "endfor %}{% for q in [] %}{{ q }}{% else %}none{% endfor %}",
        "{% for k in l %}{% if k == 1 %}{% continue %}{% endif %}{% if k == 2 %}{% break %}{% endif %}{{ k }}"
        "{{ loop.previtem }}{{ loop.nextitem }}{% endfor %}",
        "{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}{# no #}{% raw %}{{ x }}{% endraw %}",
        "  {%- if n -%}  a  {%- elif s -%} b {%- else %} c {% endif -%}  \n  {{- s -}}  \n  z\n{% if true %}\n y\n{% "
        "endif %}\n",
        "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set j = joiner(', ') %}{{ j() "
        "}}{{ j() }}",
        "{% generation %}{{ s }}{% endgeneration %}{{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %a %b %y %I %p %%') }}",
        "{% set ns = namespace(a=[], b=0) %}{% for k in l %}{% set ns.b = ns.b + k %}{% set ns.a = ns.a + [k] %}{% "
        "endfor %}"
        "{{ ns.a }}{{ ns.b }}",
        "{{ '%x %X %o %+d|% d|%#x|%-5d|%c%c|%r|%.2s|%%|%e|%G|%*d' % (255, -255, 8, 5, 6, 77, 7, 65, 'z', s, s, f, "
        "0.001, 6, 42) }}",
        "{{ '%(n)s/%(s)5s' % {'n': n, 's': s} }}{{ '%s' % l }}{{ '%d%d' % (1, 2, 3) }}",
        "{{ '{:>6}|{:^7}|{:*<5}|{:,}|{:x}|{:08.3f}|{:+}|{!r}|{{}}'.format(s, s, s, 1234567, 255, f, 3, s) }}",
        "{{ '{0.k}{1[1]}{q}{d[k]}{2:.2}'.format(d, l, t, q=n, d=d) }}{{ '{:_}{:e}{:%}{:b}{:c}'.format(1234567, f, f, "
        "5, 65) }}",
        "{{ missing.deep }}",
        "{{ missing }}|{{ d.none_of }}",
        "{% if %}",
        "{{ 1 + }}",
        "{{ l.none() }}",
        "{{ s | nofilter }}",
    };
    char source[160];
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N_OF(words) + N_OF(whole) && st != HONE_E_NOMEM; i++) {
        const char *at = i < N_OF(words) ? words[i] : whole[i - N_OF(words)];
        while (*at && st != HONE_E_NOMEM) { /* one expression, to a comma in no bracket and no quotes */
            size_t n = strlen(at);
            if (i < N_OF(words)) {
                int depth = 0;
                char quote = 0;
                for (n = 0; at[n] && (depth || quote || at[n] != ','); n++) {
                    if (quote) {
                        if (at[n] == '\\') n++;
                        else if (at[n] == quote) quote = 0;
                    } else if (at[n] == '\'' || at[n] == '"') quote = at[n];
                    else if (strchr("([{", at[n])) depth++;
                    else if (strchr(")]}", at[n])) depth--;
                }
                snprintf(source, sizeof source, "{{ %.*s }}", (int)n, at);
            }
            const char *asked = i < N_OF(words) ? source : at;
            char *text = NULL;
            size_t len = 0;
            st = hone_template_render(asked, strlen(asked), "question", context, "2026-02-03T04:05:06", &text, &len,
                                      &a->err);
            if (hn_asking_took(a, st)) hn_asking_add(a, text, len);
            hone_free(text);
            at += n + (at[n] == ',');
        }
    }
    return st;
}

/* ---- samplers where numbers meet ------------------------------------------------------------------------- */

/* Of many equal logits: weights that are just as much as min_p or top_p ask for, one penalty alone whose number is
 * another one's rest, biases of the first id and the last. */
static hone_status ask_meetings(hn_asking *a)
{
    enum { IDS = 24, TIMES = 40, EQUAL = 4 };
    static const hone_sampler_params asked[] = {
        { .temp = 1, .top_p = 1, .min_p = 1, .repeat_penalty = 1 },
        { .temp = 1, .top_p = 1, .min_p = 0.5f, .repeat_penalty = 1 },
        { .temp = 1, .top_k = EQUAL + 2, .top_p = 1, .min_p = 1, .repeat_penalty = 1 },
        { .temp = 0.9f, .top_k = EQUAL - 1, .top_p = 1, .repeat_penalty = 1 },
        { .temp = 1, .top_p = 0.5f, .repeat_penalty = 1 },
        { .temp = 1, .top_k = EQUAL, .top_p = 0.5f, .repeat_penalty = 1 },
        { .temp = 1, .top_k = IDS, .top_p = 1, .repeat_penalty = 1 },
        { .temp = 1, .top_k = IDS - 1, .top_p = 1, .repeat_penalty = 1 },
        { .top_p = 1, .repeat_penalty = 1, .frequency_penalty = 1, .penalty_last_n = 6 },
        { .top_p = 1, .repeat_penalty = 1, .presence_penalty = 1, .penalty_last_n = 6 },
        { .top_p = 1, .repeat_penalty = 1, .frequency_penalty = 0.01f, .penalty_last_n = 1 },
        { .top_p = 1, .repeat_penalty = 2, .penalty_last_n = EQUAL },
    };
    static const hone_bias ends[][2] = { { { 0, 9 }, { 1, -9 } },
                                         { { IDS - 1, 9 }, { 0, -INFINITY } },
                                         { { IDS - 1, -INFINITY }, { IDS - 1, 5 } } };
    float x[IDS];
    hone_status st = HONE_OK;
    if (a->info.n_vocab < IDS) return HONE_OK;
    for (int k = 0; k < IDS; k++) x[k] = k % 6 == 0 ? 2 : k % 3 == 0 ? 2 - 0.6931472f : k % 2 ? -1 : -8;
    for (size_t i = 0; i < N_OF(asked) && st != HONE_E_NOMEM; i++) {
        hone_sampler *s = NULL;
        st = hone_sampler_new(&s, IDS, &asked[i], &a->err);
        if (!hn_asking_took(a, st)) continue;
        st = hn_asking_picks(a, s, x, TIMES);
        for (int k = 0; k < TIMES && st == HONE_OK; k++) {
            const hone_pick p = { .bias = ends[k % 3], .n_bias = 2, .choice = k % 4, .pos = k };
            int32_t id = -1;
            st = hone_sampler_pick_from(s, x, &p, &id, &a->err);
            hn_asking_number(a, id);
        }
        hn_asking_took(a, st);
        hone_sampler_free(s);
    }
    return st;
}

hone_status hn_ask_notations(hn_asking *a)
{
    hone_status (*const all[])(hn_asking *) = { ask_meetings, ask_grammars,       ask_expressions,
                                                ask_values,   ask_template_words, hn_ask_calls };
    hone_status st = HONE_OK;
    for (size_t i = 0; i < N_OF(all) && st != HONE_E_NOMEM; i++)
        if (i == 0 || a->info.has_tokenizer) st = all[i](a);
    return st;
}
