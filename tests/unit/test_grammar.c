/* Grammars over bytes and tokens: GBNF, regular expressions and choices, what is refused and how it is named, masks
 * over small vocabularies against trying every token, rollback and clones, and picks with masks and bias. */
#include "base/base.h"
#include "text/machine.h"
#include "slowed.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static hone_grammar *compile(hone_grammar_kind kind, const char *text)
{
    hone_grammar *g;
    hone_error err;
    if (hone_grammar_compile(&g, &(hone_grammar_params){ .kind = kind, .text = text, .len = strlen(text) }, &err))
        fail_msg("%s: %s", text, err.message);
    return g;
}

static bool matches_bytes(hone_grammar *g, const char *text, size_t len)
{
    hn_matcher *m;
    bool ok = true;
    assert_int_equal(hn_matcher_new(&m, g, NULL, NULL), HONE_OK);
    for (size_t i = 0; i < len && ok; i++) assert_int_equal(hn_matcher_bytes(m, text + i, 1, &ok, NULL), HONE_OK);
    ok = ok && hn_matcher_ends(m);
    hn_matcher_free(m);
    return ok;
}

static void matches(hone_grammar_kind kind, const char *rules, const char *const *yes, const char *const *no)
{
    hone_grammar *g = compile(kind, rules);
    for (; *yes; yes++)
        if (!matches_bytes(g, *yes, strlen(*yes))) fail_msg("%s does not match %s", rules, *yes);
    for (; *no; no++)
        if (matches_bytes(g, *no, strlen(*no))) fail_msg("%s matches %s", rules, *no);
    hone_grammar_free(g);
}
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define GBNF(rules, yes, no) matches(HONE_GRAMMAR_GBNF, rules, yes, no)
#define REGEX(re, yes, no) matches(HONE_GRAMMAR_REGEX, re, yes, no)

static void refused(hone_grammar_kind kind, const char *text, const char *word)
{
    hone_grammar *g = (hone_grammar *)1;
    hone_error err;
    hone_status st =
        hone_grammar_compile(&g, &(hone_grammar_params){ .kind = kind, .text = text, .len = strlen(text) }, &err);
    assert_null(g);
    if (st == HONE_OK || !strstr(err.message, word)) fail_msg("%s: %s", text, st ? err.message : "compiled");
}

static void gbnf_forms(void **state)
{
    GBNF("root ::= \"a\" b+ | [x-z]? \"!\" # end\nb ::= \"b\" | \"\\x63\" | \"\\u00e9\"\n",
         LIST("ab", "abcb", "a\xC3\xA9", "!", "y!"), LIST("a", "w!", "", "xy!", "a\xC3"));
    GBNF("root ::= .{2,3}",
         LIST("ab",
              "\xF0\x9F\x98\x80"
              "b",
              "a\n\xE4\xB8\xAD"),
         LIST("a", "abcd", "\xF0\x9F\x98\x80"));
    GBNF("root ::= [^a\\]]*", LIST("", "b\xC3\xA9[", "\xE4\xB8\xAD"), LIST("ba", "]", "\xC3"));
    GBNF("root ::= (\"a\" |\n  \"b\")\n  ", LIST("a", "b"), LIST("ab", ""));
    GBNF("root ::= \"x\"{3} \"y\"{2,} \"z\"{,1}", LIST("xxxyy", "xxxyyyyz"), LIST("xxyy", "xxxy", "xxxyyzz"));
    GBNF("root ::= list\nlist ::= \"[\" (item (\",\" item)*)? \"]\"\nitem ::= list | [0-9]+",
         LIST("[]", "[1,[2,[]],3]"), LIST("[", "[1,]", "[1]]", "[[]"));
    GBNF("root ::= a\na ::= \"(\" a \")\" | \"\"\n", LIST("", "((()))"), LIST("(()", "())"));
    GBNF("root ::=\n \"a\"\n | \"b\"\n\nother ::= \"c\"", LIST("a", "b"), LIST("c"));
    GBNF("root ::= \"a\nb\" [\n]", LIST("a\nb\n"), LIST("a\nb", "ab\n")); /* lines end in texts, too */
}

/* Counters are not copies: more of them than a grammar may have symbols. */
static void counters(void **state)
{
    hone_grammar *g = compile(HONE_GRAMMAR_GBNF, "root ::= (\"[\" b \"]\"){20000,200000}\nb ::= \"\" | \"(\" b \")\"");
    enum { N = 20000 };
    char *text = malloc(2 * N);
    for (int i = 0; i < N; i++) memcpy(text + 2 * i, "[]", 2);
    assert_true(matches_bytes(g, text, 2 * N));
    assert_false(matches_bytes(g, text, 2 * N - 2));
    free(text);
    hone_grammar_free(g);
}

static void gbnf_refused(void **state)
{
    refused(HONE_GRAMMAR_GBNF, "root ::= root \"a\" | \"b\"", "rule root begins with itself");
    refused(HONE_GRAMMAR_GBNF, "root ::= x\nx ::= \"\" y\ny ::= [a]? x \"b\" | \"c\"", "begins with itself");
    refused(HONE_GRAMMAR_GBNF, "root ::= \"a\" what", "rule what is used but not defined");
    refused(HONE_GRAMMAR_GBNF, "start ::= \"a\"", "no rule root");
    refused(HONE_GRAMMAR_GBNF, "root ::= \"a\" root", "no text matches");
    refused(HONE_GRAMMAR_GBNF, "root ::= \"a", "line 1 column 10");
    refused(HONE_GRAMMAR_GBNF, "root ::= [z-a]", "line 1");
    refused(HONE_GRAMMAR_GBNF, "root ::= \"a\"\nroot ::= \"b\"", "defined twice");
    refused(HONE_GRAMMAR_GBNF, "root ::= \"a\"{3,2}", "m,n");
    refused(HONE_GRAMMAR_GBNF, "root ::= a\na ::= \"b\n\nc", "line 2 column 7: expected a \" that closes");
    refused(HONE_GRAMMAR_GBNF, "root ::= <think>", "names a token");
    refused(HONE_GRAMMAR_GBNF, "root ::= <[x]>", "column 12: expected the number of a token");
    refused(HONE_GRAMMAR_GBNF, "root ::= <[7>", "column 13: expected ]>");
    static const char with_nul[] = "root ::= \"a\" \0";
    hone_error e;
    hone_grammar *g;
    hone_grammar_params p = { .kind = HONE_GRAMMAR_GBNF, .text = with_nul, .len = sizeof with_nul - 1 };
    assert_int_equal(hone_grammar_compile(&g, &p, &e), HONE_E_ARG);
    assert_non_null(strstr(e.message, "line 1 column 14"));
    g = compile(HONE_GRAMMAR_GBNF, "root ::= \"a\"\nlost ::= \"b\"");
    assert_string_equal(hone_grammar_notes(g), "rule lost is not used");
    hone_grammar_free(g);
}

static void expressions(void **state)
{
    REGEX("a|b+c?", LIST("a", "b", "bbc"), LIST("", "ab", "bcc"));
    REGEX("^(?:ab){2,3}$", LIST("abab", "ababab"), LIST("ab", "abababab"));
    REGEX("[^\\d\\s]\\w\\W", LIST("aa!", "\xC3\xA9_ "), LIST("1a!", "aa_"));
    REGEX("\\u{1F600}|\\uD83D\\uDE01|\\x41|\\cA", LIST("\xF0\x9F\x98\x80", "\xF0\x9F\x98\x81", "A", "\x01"),
          LIST("\xF0\x9F\x98\x82"));
    REGEX("\\p{L}+\\P{L}",
          LIST("a\xCF\x80"
               "1"),
          LIST("1", "aa"));
    REGEX(".", LIST("a", "\xE4\xB8\xAD"), LIST("\n", "", "ab"));
    REGEX("(a|^b)c$", LIST("ac", "bc"), LIST("abc", "c"));
    REGEX("a{2}{", LIST("aa{"), LIST("aa"));
    REGEX("^(.{0,100}){0,100}$", LIST("", "aaaa"), LIST("a\nb"));
    REGEX("(a{2,3}){0,2}", LIST("", "aa", "aaa", "aaaa", "aaaaa", "aaaaaa"), LIST("a", "aaaaaaa"));
    REGEX("(a{3,4}){1,2}", LIST("aaa", "aaaa", "aaaaaa", "aaaaaaaa"), LIST("", "aa", "aaaaa", "aaaaaaaaa"));
    REGEX("(a{2,}){0,3}", LIST("", "aa", "aaaaaaaaa"), LIST("a"));
    REGEX("(?:(a{2}){2,3}){2}", LIST("aaaaaaaa", "aaaaaaaaaa", "aaaaaaaaaaaa"), LIST("aaaa", "aaaaaa", "aaaaaaaaa"));
    refused(HONE_GRAMMAR_REGEX, "(a(?=b))b", "look-around");
    refused(HONE_GRAMMAR_REGEX, "a(?<=b)", "look-around");
    refused(HONE_GRAMMAR_REGEX, "(a)\\1", "back-reference");
    refused(HONE_GRAMMAR_REGEX, "\\bword", "edge of a word");
    refused(HONE_GRAMMAR_REGEX, "a**", "nothing that could be repeated");
    refused(HONE_GRAMMAR_REGEX, "[ab]{2}{3}", "character 8: a count behind a count");
    refused(HONE_GRAMMAR_REGEX, "x|{2,}", "or behind nothing");
    refused(HONE_GRAMMAR_REGEX, "x{,4}", "without its least number");
    refused(HONE_GRAMMAR_REGEX, "(a", "character 3");
    refused(HONE_GRAMMAR_REGEX, "[a", "class");
    refused(HONE_GRAMMAR_REGEX, "a^b", "no text matches");
}

/* What is written with many alternatives, or with counts of counts, takes no more than its text does. */
static void large_expressions(void **state)
{
    static char many[80000], text[4001];
    size_t n = 0;
    for (int i = 0; i < 8000; i++) n += (size_t)snprintf(many + n, sizeof many - n, "%sw%d", i ? "|" : "", i);
    assert_true(n < sizeof many - 1);
    REGEX(many, LIST("w0", "w17", "w7999"), LIST("w", "w8000", "w017"));
    memset(text, 'a', sizeof text - 1);
    REGEX("(?:a{1,1000}){1,1000}", LIST(text, "a"), LIST("", "ab"));
}

static void choices(void **state)
{
    hone_str list[] = { { "yes", 3 }, { "yesterday", 9 }, { "n\xC3\xB6", 3 } }, empty = { "", 0 };
    hone_grammar *g;
    hone_error err;
    hone_grammar_params p = { .kind = HONE_GRAMMAR_CHOICE, .choices = list, .n_choices = 3 };
    assert_int_equal(hone_grammar_compile(&g, &p, &err), HONE_OK);
    for (int i = 0; i < 3; i++) assert_true(matches_bytes(g, list[i].ptr, list[i].len));
    assert_false(matches_bytes(g, "yester", 6));
    assert_false(matches_bytes(g, "", 0));
    hone_grammar_free(g);
    p.choices = &empty;
    p.n_choices = 1;
    assert_int_equal(hone_grammar_compile(&g, &p, &err), HONE_E_ARG);
    p.n_choices = 0;
    assert_int_equal(hone_grammar_compile(&g, &p, &err), HONE_E_ARG);
}

/* ---- tokens ------------------------------------------------------------------------------------- */

enum { N_ENDS = 1 };

/* All bytes, all pairs of a few, and longer ones at random; the last ends a text. */
static void vocabulary(hn_token_tree *t, uint64_t seed, int32_t n, char (*text)[24])
{
    static const char *const parts[] = { "\"",  "a",   "{",   "}",  "[",    "]",       ",",        ":",        "\\u00",
                                         "e9",  "1",   " ",   "\n", "\xC3", "\xA9",    "\xF0\x9F", "\x98\x80", "true",
                                         "key", "\\n", "0.5", "-",  "abc",  "\\ud83d", "\\ude00" };
    enum { N_PARTS = sizeof parts / sizeof *parts };
    hn_token_text *list = malloc((size_t)n * sizeof *list);
    hone_str *piece = calloc((size_t)n, sizeof *piece);
    int32_t used = 0;
    for (int32_t id = 0; id < n - N_ENDS; id++) {
        text[id][0] = (char)id;
        size_t len = 1;
        if (id >= 256) {
            len = 0;
            for (uint64_t k = 0, m = 1 + hn_rand64(seed, (uint64_t)id) % 4; k < m; k++) {
                const char *p = parts[hn_rand64(seed + 1, (uint64_t)id * 4 + k) % N_PARTS];
                if (len + strlen(p) > 23) break;
                memcpy(text[id] + len, p, strlen(p));
                len += strlen(p);
            }
        }
        piece[id] = (hone_str){ text[id], len };
        list[used++] = (hn_token_text){ text[id], (uint32_t)len, id };
    }
    assert_int_equal(hn_token_tree_make(t, list, (size_t)used, NULL), HONE_OK);
    free(list);
    t->n_vocab = n;
    t->piece = piece;
    t->end_ids = malloc(sizeof *t->end_ids);
    t->end_ids[0] = n - 1;
    t->n_end = 1;
    assert_int_equal(hn_token_tree_plain(t, NULL), HONE_OK);
}

/* A walk: at each step the mask is what trying every token says; back and forth gives the same mask, and so it is where
 * what nobody holds goes at each step. */
static void walk(hone_grammar *g, const hn_token_tree *t, uint64_t seed, bool sweeps)
{
    enum { STEPS = 14, WORDS = 20 };
    hn_matcher *m, *twin;
    uint64_t mask[WORDS], again[WORDS];
    int64_t n;
    assert_int_equal(hn_matcher_new(&m, g, t, NULL), HONE_OK);
    for (uint64_t i = 0; i < STEPS; i++) {
        int32_t allowed[64 * WORDS], n_allowed = 0;
        if (sweeps) hn_grammar_machine(g)->high = 0;
        assert_int_equal(hn_matcher_mask(m, mask, WORDS, &n, NULL), HONE_OK);
        for (int32_t id = 0; id < t->n_vocab; id++) {
            bool ok;
            assert_int_equal(hn_matcher_token(m, id, &ok, NULL), HONE_OK);
            if (ok) assert_int_equal(hn_matcher_back(m, 1, NULL), HONE_OK);
            if (ok != (mask[id / 64] >> id % 64 & 1))
                fail_msg("step %d: token %d is %s", (int)i, id, ok ? "missing" : "wrong");
            if (ok) allowed[n_allowed++] = id;
        }
        assert_int_equal(n, n_allowed);
        assert_true(n > 0); /* all bytes are there: no dead end */
        int32_t id = allowed[hn_rand64(seed, i) % (uint64_t)n_allowed];
        bool ok;
        assert_int_equal(hn_matcher_copy(&twin, m, NULL), HONE_OK);
        if (sweeps) hn_grammar_machine(g)->high = 0;
        assert_int_equal(hn_matcher_token(m, id, &ok, NULL), HONE_OK);
        assert_int_equal(hn_matcher_mask(twin, again, WORDS, &n, NULL), HONE_OK);
        assert_memory_equal(mask, again, sizeof mask);
        hn_matcher_free(twin);
        if (id == t->n_vocab - 1) break;
    }
    hn_matcher_free(m);
}

static const struct {
    hone_grammar_kind kind;
    const char *text;
} forms[] = {
    { HONE_GRAMMAR_JSON_SCHEMA, "{}" },
    { HONE_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"minLength\":2,\"maxLength\":5}" },
    { HONE_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"a.?1\"}" },
    { HONE_GRAMMAR_JSON_SCHEMA,
      "{\"type\":\"string\",\"pattern\":\"^[a-c\\u00e9\\ud83d\\ude00]*$\",\"maxLength\":30}" },
    { HONE_GRAMMAR_JSON_SCHEMA,
      "{\"properties\":{\"a\":{},\"key\":{\"type\":\"number\",\"minimum\":-1.5}},\"required\":[\"a\"],"
      "\"additionalProperties\":{\"enum\":[1,\"abc\",null]}}" },
    { HONE_GRAMMAR_JSON_SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"minItems\":1,\"maxItems\":3}" },
    { HONE_GRAMMAR_JSON_OBJECT, "" },
    { HONE_GRAMMAR_JSON_SCHEMA,
      "{\"type\":\"array\",\"minItems\":1,\"items\":{\"properties\":{\"key\":{}},\"minProperties\":1,"
      "\"additionalProperties\":{\"maxLength\":3}}}" },
    { HONE_GRAMMAR_GBNF, "root ::= [^\"]* \"\\\"\" [0-9a-f]{3} (root | \".\")" },
    { HONE_GRAMMAR_REGEX, "(abc|a\\{|\\[1,?\\]|.{3})*" },
};
enum { N_FORMS = sizeof forms / sizeof *forms };

static void masks_are_what_tokens_do(void **state)
{
    static char text[1000][24];
    hn_token_tree t;
    vocabulary(&t, 3, 1000, text);
    for (size_t i = 0; i < N_FORMS; i++) {
        hone_grammar *g = compile(forms[i].kind, forms[i].text);
        for (uint64_t seed = 0; seed < 4; seed++) walk(g, &t, i + 100 * seed, seed % 2);
        hone_grammar_free(g);
    }
    hn_token_tree_free(&t);
}

static bool reads(hn_matcher *m, const char *text, size_t each, hone_status *st)
{
    bool ok = true;
    hone_error err;
    *st = HONE_OK;
    for (size_t n = strlen(text), at = 0; at < n && ok && *st == HONE_OK; at += each)
        *st = hn_matcher_bytes(m, text + at, each < n - at ? each : n - at, &ok, &err);
    return *st == HONE_OK && ok;
}

/* A token by its number is that token alone, whatever it spells; one that the vocabulary has not never comes. */
static void tokens_by_number(void **state)
{
    enum { N = 300, WORDS = N / 64 + 1, TOKEN = 298 };
    static char text[N][24];
    hn_token_tree t;
    vocabulary(&t, 7, N, text);
    hone_grammar *g = compile(HONE_GRAMMAR_GBNF, "root ::= \"<\" <[298]>{2} (\">\" | <[301]>)");
    hn_matcher *m;
    uint64_t mask[WORDS];
    int64_t n;
    bool ok;
    assert_int_equal(hn_matcher_new(&m, g, &t, NULL), HONE_OK);
    assert_int_equal(hn_matcher_token(m, '<', &ok, NULL), HONE_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hn_matcher_mask(m, mask, WORDS, &n, NULL), HONE_OK);
        assert_true(ok && n == 1 && mask[TOKEN / 64] >> TOKEN % 64 & 1);
        hn_matcher_bytes(m, t.piece[TOKEN].ptr, t.piece[TOKEN].len, &ok, NULL);
        assert_false(ok);
        assert_int_equal(hn_matcher_token(m, TOKEN, &ok, NULL), HONE_OK);
    }
    for (int64_t left = -1; left < 3; left++) {
        assert_int_equal(hn_matcher_mask_within(m, left, mask, WORDS, &n, NULL), HONE_OK);
        assert_true(n == 1 && mask[0] >> '>' & 1);
    }
    hn_matcher_free(m);
    hone_grammar_free(g);
    hn_token_tree_free(&t);
}

/* A text within a budget, tokens at random among those that may come: it is whole in the end. sweeps: where what nobody
 * holds goes at each step, or NULL. Its tokens. */
static int64_t text_within(hn_matcher *m, const hn_token_tree *t, int64_t budget, uint64_t seed, hone_grammar *sweeps)
{
    enum { WORDS = 20 };
    uint64_t mask[WORDS], all[WORDS];
    int64_t n, n_all, used = 0;
    for (; used < budget; used++) {
        bool ok;
        if (sweeps) hn_grammar_machine(sweeps)->high = 0;
        assert_int_equal(hn_matcher_mask_within(m, budget - used, mask, WORDS, &n, NULL), HONE_OK);
        assert_int_equal(hn_matcher_mask(m, all, WORDS, &n_all, NULL), HONE_OK);
        int64_t count = 0, skip = n ? (int64_t)(hn_rand64(seed, (uint64_t)used) % (uint64_t)n) : 0;
        int32_t id = -1;
        for (int32_t k = 0; k < t->n_vocab; k++) {
            if (!(mask[k / 64] >> k % 64 & 1)) continue;
            assert_true(all[k / 64] >> k % 64 & 1); /* what may come within it may come */
            if (count++ == skip) id = k;
        }
        assert_int_equal(count, n);
        assert_true(id >= 0);
        assert_int_equal(hn_matcher_token(m, id, &ok, NULL), HONE_OK);
        assert_true(ok);
        if (id == t->n_vocab - 1) break;
    }
    return used;
}

/* Every form ends within its tokens, wherever the end begins to be near; where there are many nothing is forced. */
static void texts_end_within_their_tokens(void **state)
{
    static const char *const more[] = {
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":20},\"of\":{\"enum\":"
        "[\"\\u00e9\\u00e9\\u00e9\",\"\\u4e2d\\u6587\"]},\"n\":{\"type\":\"array\",\"items\":{\"type\":\"number\"},"
        "\"minItems\":7}},\"required\":[\"name\",\"of\",\"n\"]}",
        "{\"$defs\":{\"t\":{\"type\":\"object\",\"properties\":{\"key\":{\"type\":\"boolean\"},\"down\":{\"type\":"
        "\"array\","
        "\"items\":{\"$ref\":\"#/$defs/t\"}}},\"required\":[\"key\",\"down\"]}},\"$ref\":\"#/$defs/t\"}",
        "{\"type\":\"string\",\"pattern\":\"^[a-z]*\\u00e9{3}$\"}",
    };
    enum { N_MORE = sizeof more / sizeof *more };
    static char text[1000][24];
    hn_token_tree t;
    vocabulary(&t, 3, 1000, text);
    for (size_t i = 0; i < N_FORMS + N_MORE; i++) {
        hone_grammar *g =
            i < N_FORMS ? compile(forms[i].kind, forms[i].text) : compile(HONE_GRAMMAR_JSON_SCHEMA, more[i - N_FORMS]);
        for (uint64_t seed = 0; seed < (SLOWED ? 2 : 5); seed++) {
            hn_matcher *m;
            uint32_t need, ahead;
            assert_int_equal(hn_matcher_new(&m, g, &t, NULL), HONE_OK);
            assert_int_equal(hn_matcher_need(m, &need, &ahead, NULL), HONE_OK);
            assert_true(need < 200);
            /* a token for each byte is enough, and eight for what was begun before */
            int64_t budget = (int64_t)need + 9 + (int64_t)(hn_rand64(seed, i) % 30);
            text_within(m, &t, budget, 7 * i + seed, seed % 2 ? g : NULL);
            if (!hn_matcher_ends(m)) fail_msg("form %d, seed %d: no end within %d", (int)i, (int)seed, (int)budget);
            hn_matcher_free(m);
        }
        hone_grammar_free(g);
    }
    hn_token_tree_free(&t);
}

/* How a text is ended is a matter of that text, whatever others have asked of its grammar before. */
static void ends_are_its_own(void **state)
{
    enum { N = 1000, WORDS = N / 64 + 1, LEFT = 75 };
    static char text[N][24];
    hn_token_tree t;
    uint64_t mask[2][WORDS];
    vocabulary(&t, 3, N, text);
    for (int used = 0; used < 2; used++) {
        hone_grammar *g = compile(HONE_GRAMMAR_REGEX, "by{40}|[z1](?:ax{100}|cy{60})");
        hn_matcher *m, *other;
        int64_t n;
        uint32_t need, ahead;
        hone_status st;
        assert_int_equal(hn_matcher_new(&other, g, &t, NULL), HONE_OK);
        if (used) { /* somebody goes the long way */
            assert_true(reads(other, "1a", 1, &st));
            assert_int_equal(hn_matcher_need(other, &need, &ahead, NULL), HONE_OK);
            assert_int_equal(need, 100);
        }
        assert_int_equal(hn_matcher_new(&m, g, &t, NULL), HONE_OK);
        assert_true(reads(m, "z", 1, &st));
        assert_int_equal(hn_matcher_need(m, &need, &ahead, NULL), HONE_OK);
        assert_int_equal(need, 61);
        if (used) hn_grammar_machine(g)->high = 0; /* what nobody holds goes, and it knows what it knew */
        assert_int_equal(hn_matcher_mask_within(m, LEFT, mask[used], WORDS, &n, NULL), HONE_OK);
        hn_matcher_free(m);
        hn_matcher_free(other);
        hone_grammar_free(g);
    }
    assert_memory_equal(mask[0], mask[1], sizeof mask[0]);
    hn_token_tree_free(&t);
}

/* ---- room ------------------------------------------------------------------------------------------ */

/* Many texts through one grammar with room for a few: each is read, whoever read before and whoever reads beside. One
 * that needs too much at once fails alone. */
static void room_for_all(void **state)
{
    enum { TEXTS = SLOWED ? 24 : 60, LONG = 600, ROOM = 256 << 10 };
    static const char schema[] =
        "{\"type\":\"string\",\"maxLength\":4000,\"pattern\":\"^(?:\\\\S+\\\\s+){0,500}\\\\S+$\"}";
    hone_grammar *g = compile(HONE_GRAMMAR_JSON_SCHEMA, schema);
    hn_langs *l = hn_grammar_lang(g);
    hn_matcher *first, *m;
    hone_status st;
    size_t settled = HN_GRAMMAR_BYTES - hn_langs_left(l);
    char text[LONG + 1];
    hn_langs_limit(l, settled + ROOM);
    assert_int_equal(hn_matcher_new(&first, g, NULL, NULL), HONE_OK);
    assert_true(reads(first, "\"a b", 1, &st));
    for (uint64_t i = 0; i < TEXTS; i++) {
        for (size_t k = 0; k < LONG; k++) text[k] = hn_rand64(i, k) % 5 || !k || text[k - 1] == ' ' ? 'x' : ' ';
        text[0] = '"', text[1] = 'x', text[LONG] = 0;
        assert_int_equal(hn_matcher_new(&m, g, NULL, NULL), HONE_OK);
        if (!reads(m, text, 1, &st)) fail_msg("text %d: status %d", (int)i, st);
        assert_false(hn_matcher_ends(m));
        assert_true(reads(m, "x\"", 1, &st) && hn_matcher_ends(m));
        hn_matcher_free(m);
    }
    assert_true(reads(first, "c\"", 1, &st) && hn_matcher_ends(first));
    hn_langs_limit(l, settled + ROOM / 8);
    assert_int_equal(hn_matcher_new(&m, g, NULL, NULL), HONE_OK);
    assert_false(reads(m, text, LONG, &st));
    assert_int_equal(st, HONE_E_UNSUPPORTED);
    assert_int_equal(hn_matcher_steps(m), 0);
    assert_true(reads(m, "\"a b\"", 1, &st) && hn_matcher_ends(m)); /* nothing has changed */
    hn_matcher_free(m);
    hn_matcher_free(first);
    hone_grammar_free(g);
}

/* ---- counters that masks need not tell apart ------------------------------------------------------------ */

static hn_lang expression(hn_langs *l, const char *text)
{
    hn_lang t;
    hone_error err;
    if (hn_pattern_compile(l, text, strlen(text), true, "it", &t, &err) != HONE_OK) fail_msg("%s", err.message);
    return t;
}

/* Texts of at most k characters of a, b and c lead on from both alike. */
static void same_near(hn_langs *l, hn_lang x, hn_lang y, uint32_t k)
{
    if (x == y) return;
    if (hn_lang_accepts(l, x) != hn_lang_accepts(l, y)) fail_msg("%u more characters: one ends here", k);
    if (hn_lang_live(l, x) != hn_lang_live(l, y)) fail_msg("%u more characters: one is dead", k);
    const hn_lang_state *s = hn_lang_open(l, x), *t = hn_lang_open(l, y);
    for (uint32_t c = 'a'; c <= 'c' && k && s && t; c++) same_near(l, hn_lang_step(s, c), hn_lang_step(t, c), k - 1);
}

static hn_lang without(hn_langs *l, const char *text)
{
    hn_lang t = hn_lang_text(l, text, strlen(text));
    return hn_lang_not(l, hn_lang_cat(l, HN_LANG_ALL, hn_lang_cat(l, t, HN_LANG_ALL)));
}

static void near_terms(void **state)
{
    enum { PARTS = 9, MOST = 9 };
    hn_langs *l = hn_langs_new(64 << 20);
    hn_lang part[PARTS] = { expression(l, "[ab]*"),
                            expression(l, "a{0,7}b"),
                            expression(l, "(?:a{1,3}b){2}"),
                            expression(l, "a*(?:bcb)?"),
                            expression(l, "(?:ab|c){3,}"),
                            without(l, "ab"),
                            without(l, "c"),
                            hn_lang_not(l, expression(l, "a*")),
                            hn_lang_multiple(l, 7) };
    int cut = 0;
    for (uint32_t most = 1; most <= MOST; most++)
        for (int i = 0; i < PARTS; i++)
            for (int j = i; j < PARTS; j++)
                for (uint32_t k = 0; k < 5; k++) {
                    hn_lang length = hn_lang_repeat(l, HN_LANG_ANY, k == 4 && most > 2 ? 2 : 0, most),
                            both = hn_lang_and(l, length, hn_lang_and(l, part[i], part[j])),
                            tail = hn_lang_cat(l, both, hn_lang_text(l, "cc", 2)),
                            all[] = { both, tail, hn_lang_or(l, tail, part[j]) };
                    for (int n = 0; n < 3; n++) {
                        hn_lang near = hn_lang_near(l, all[n], k);
                        cut += near != all[n];
                        same_near(l, all[n], near, k);
                    }
                }
    assert_int_equal(hn_langs_check(l, NULL), HONE_OK);
    assert_true(cut > 500);
    hn_langs_free(l);
}

/* Where a text may go on for long, masks of its first hundred characters are few, whatever the notation. */
static void few_masks(void **state)
{
    enum { N = 6000, FEW = 4, CHARACTERS = 100 };
    static const struct {
        hone_grammar_kind kind;
        const char *text, *begin;
    } all[] = { { HONE_GRAMMAR_GBNF, "root ::= [\x01-wyz\x7f-\U0010ffff]{1,1000}", "" },
                { HONE_GRAMMAR_GBNF, "root ::= [^x]{1,1000}", "" },
                { HONE_GRAMMAR_GBNF, "root ::= [^x]{1,1000} \"x\"", "" },
                { HONE_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^[^x]*$\",\"maxLength\":1000}", "\"" },
                { HONE_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"x\",\"maxLength\":1000}", "\"" } };
    static char text[N][24];
    static uint64_t mask[N / 64 + 1], again[N / 64 + 1];
    hn_token_tree t;
    vocabulary(&t, 5, N, text);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        hone_grammar *g = compile(all[i].kind, all[i].text);
        hn_matcher *m;
        int64_t n;
        hone_status st;
        assert_int_equal(hn_matcher_new(&m, g, &t, NULL), HONE_OK);
        assert_true(reads(m, all[i].begin, 1, &st));
        for (int k = 0; k < CHARACTERS; k++) {
            assert_int_equal(hn_matcher_mask(m, mask, N / 64 + 1, &n, NULL), HONE_OK);
            if (k % 10 == 5) hn_grammar_machine(g)->high = 0; /* what nobody holds goes, masks too */
            assert_int_equal(hn_matcher_mask(m, again, N / 64 + 1, &n, NULL), HONE_OK);
            assert_memory_equal(mask, again, sizeof mask);
            assert_true(n > 0 && reads(m, "a", 1, &st));
        }
        if (hn_grammar_machine(g)->n_mask > FEW) fail_msg("%s: %zu masks", all[i].text, hn_grammar_machine(g)->n_mask);
        if (i < 4) assert_true(hn_grammar_machine(g)->n_mask > 0); /* the last is known of the vocabulary */
        hn_matcher_free(m);
        hone_grammar_free(g);
    }
    hn_token_tree_free(&t);
}

static void history(void **state)
{
    hone_grammar *g = compile(HONE_GRAMMAR_REGEX, "ab*c");
    hn_matcher *m;
    bool ok;
    assert_int_equal(hn_matcher_new(&m, g, NULL, NULL), HONE_OK);
    hone_grammar_free(g); /* the matcher holds it */
    hn_matcher_bytes(m, "ab", 2, &ok, NULL);
    assert_true(ok && !hn_matcher_ends(m));
    hn_matcher_bytes(m, "bx", 2, &ok, NULL);
    assert_false(ok);
    hn_matcher_bytes(m, "bc", 2, &ok, NULL);
    assert_true(ok && hn_matcher_ends(m) && hn_matcher_steps(m) == 2);
    assert_int_equal(hn_matcher_back(m, 1, NULL), HONE_OK);
    hn_matcher_bytes(m, "c", 1, &ok, NULL);
    assert_true(ok && hn_matcher_ends(m));
    hn_matcher_bytes(m, "c", 1, &ok, NULL);
    assert_false(ok);
    assert_int_equal(hn_matcher_back(m, 3, NULL), HONE_E_ARG);
    assert_int_equal(hn_matcher_back(m, 2, NULL), HONE_OK);
    assert_int_equal(hn_matcher_steps(m), 0);
    hn_matcher_free(m);
}

/* ---- picks ----------------------------------------------------------------------------------------- */

static int32_t pick(hone_sampler *s, const float *x, const hone_pick *p)
{
    int32_t id;
    hone_error err;
    if (hone_sampler_pick_from(s, x, p, &id, &err) != HONE_OK) fail_msg("%s", err.message);
    return id;
}

static void picks(void **state)
{
    enum { N = 100 };
    float x[N];
    uint64_t mask[2] = { 0, 0 };
    hone_sampler *s;
    int32_t id;
    for (int i = 0; i < N; i++) x[i] = (float)i / 10;
    hone_sampler_params p = { .temp = 0, .top_p = 1, .repeat_penalty = 4, .penalty_last_n = -1, .seed = 3 };
    assert_int_equal(hone_sampler_new(&s, N, &p, NULL), HONE_OK);
    assert_int_equal(pick(s, x, &(hone_pick){ 0 }), 99);
    mask[0] = 1ull << 7 | 1ull << 63;
    mask[1] = 1ull << 1; /* 65 */
    assert_int_equal(pick(s, x, &(hone_pick){ .allowed = mask }), 65);
    hone_bias bias[] = { { 7, 5.7f }, { 65, -INFINITY }, { 99, 100 } };
    assert_int_equal(pick(s, x, &(hone_pick){ .allowed = mask, .bias = bias, .n_bias = 3 }), 7); /* 0.7 + 5.7 > 6.3 */
    hone_sampler_accept(s, 7); /* penalties come behind both: 6.4 / 4 */
    assert_int_equal(pick(s, x, &(hone_pick){ .allowed = mask, .bias = bias, .n_bias = 3 }), 63);
    assert_int_equal(pick(s, x, &(hone_pick){ .bias = bias, .n_bias = 1 }), 99);
    mask[0] = mask[1] = 0;
    assert_int_equal(hone_sampler_pick_from(s, x, &(hone_pick){ .allowed = mask }, &id, NULL), HONE_E_NUMERIC);
    bias[0].id = N;
    assert_int_equal(hone_sampler_pick_from(s, x, &(hone_pick){ .bias = bias, .n_bias = 1 }, &id, NULL), HONE_E_ARG);
    hone_sampler_free(s);
    /* one allowed token is drawn whatever its probability; choices draw apart, choice 0 as ever */
    p = (hone_sampler_params){ .temp = 1, .top_p = 1, .top_k = 5, .repeat_penalty = 1, .seed = 3 };
    assert_int_equal(hone_sampler_new(&s, N, &p, NULL), HONE_OK);
    mask[0] = 1;
    int differ = 0;
    for (int pos = 0; pos < 20; pos++) {
        assert_int_equal(pick(s, x, &(hone_pick){ .allowed = mask, .pos = pos }), 0);
        assert_int_equal(hone_sampler_pick(s, x, 0, pos, &id, NULL), HONE_OK);
        assert_int_equal(pick(s, x, &(hone_pick){ .pos = pos }), id);
        differ += pick(s, x, &(hone_pick){ .choice = 1, .pos = pos }) != id;
    }
    assert_true(differ > 0);
    hone_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gbnf_forms),
        cmocka_unit_test(counters),
        cmocka_unit_test(gbnf_refused),
        cmocka_unit_test(expressions),
        cmocka_unit_test(large_expressions),
        cmocka_unit_test(choices),
        cmocka_unit_test(masks_are_what_tokens_do),
        cmocka_unit_test(tokens_by_number),
        cmocka_unit_test(texts_end_within_their_tokens),
        cmocka_unit_test(ends_are_its_own),
        cmocka_unit_test(room_for_all),
        cmocka_unit_test(near_terms),
        cmocka_unit_test(few_masks),
        cmocka_unit_test(history),
        cmocka_unit_test(picks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
