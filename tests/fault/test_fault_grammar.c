/* Out of memory in grammars: the k-th allocation fails, for k = 1, 2, … until the call succeeds. Each failure must be
 * HONE_E_NOMEM with a message, and leak nothing; what succeeds must be the same grammar. */
#include "text/matcher.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "fail_each.h"

static hone_status compile(hone_grammar_kind kind, const char *text, hone_grammar **g, hone_error *err)
{
    hone_str words[] = { { "yes", 3 }, { "yesterday", 9 } };
    hone_grammar_params p = { .kind = kind, .text = text, .len = strlen(text), .choices = words, .n_choices = 2 };
    hone_status st = hone_grammar_compile(g, &p, err);
    if (st != HONE_OK) assert_null(*g);
    return st;
}

/* The text goes through, and with one byte more it does not. */
static hone_status match(hone_grammar *g, const char *text, hone_error *err)
{
    hn_matcher *m;
    bool ok;
    hone_status st = hn_matcher_new(&m, g, NULL, err);
    if (st != HONE_OK) return st;
    st = hn_matcher_bytes(m, text, strlen(text), &ok, err);
    if (st == HONE_OK) assert_true(ok && hn_matcher_ends(m));
    if (st == HONE_OK) st = hn_matcher_bytes(m, "!", 1, &ok, err);
    if (st == HONE_OK) assert_false(ok);
    hn_matcher_free(m);
    return st;
}

static hone_status both(hone_grammar_kind kind, const char *rules, const char *text, hone_error *err)
{
    hone_grammar *g;
    hone_status st = compile(kind, rules, &g, err);
    if (st == HONE_OK) st = match(g, text, err);
    hone_grammar_free(g);
    return st;
}

static hone_status schema(hone_error *err)
{
    return both(
        HONE_GRAMMAR_JSON_SCHEMA,
        "{\"$defs\":{\"n\":{\"type\":\"number\",\"minimum\":-1.5,\"not\":{\"const\":0}}},\"unknown\":1,"
        "\"properties\":{\"a\":{\"$ref\":\"#/$defs/"
        "n\"},\"b\":{\"enum\":[1,\"x\",{\"k\":[]}]}},\"required\":[\"a\",\"c\"],"
        "\"patternProperties\":{\"^[^p]\\\\d\":{\"oneOf\":[{\"const\":7},{\"enum\":[\"z\",8]},{\"type\":\"null\"},{"
        "\"type\":\"array\",\"prefixItems\":[{}]"
        ","
        "\"maxItems\":2}]}},\"additionalProperties\":{\"type\":\"string\",\"format\":\"date\",\"minLength\":3}}",
        "{\"a\":-1.25,\"b\":{\"k\":[]},\"c\":\"2024-02-29\",\"q7\":[1,{\"x\":\"\\u00e9\"}]}", err);
}
static hone_status gbnf(hone_error *err)
{
    return both(
        HONE_GRAMMAR_GBNF,
        "root ::= \"[\" (item (\",\" item){0,5})? \"]\" # x\nitem ::= root | [^a-f\\]]+ | \"\\x41\"\nlost ::= \"b\"",
        "[1,[A],[[]]]", err);
}
static hone_status regex(hone_error *err)
{
    return both(HONE_GRAMMAR_REGEX, "^(?:[^\\d]{2,3}|[x-z]+(a|b)*?)\\.$", "xyab.", err);
}
static hone_status choice(hone_error *err) { return both(HONE_GRAMMAR_CHOICE, "", "yesterday", err); }

/* A vocabulary, and masks of it. */
static hone_status masks(hone_error *err)
{
    static const char *const texts[] = {
        "\"", "a", "\":", "{\"", "\"}", "b\",", "1", ",", "}", ":", "abcabcabcabcabcabcabc"
    };
    enum { N = sizeof texts / sizeof *texts };
    hn_token_text list[N];
    hn_token_tree t;
    hn_matcher *m = NULL;
    hone_grammar *g = NULL;
    uint64_t mask = 0;
    int64_t n;
    bool ok;
    for (int i = 0; i < N; i++) list[i] = (hn_token_text){ texts[i], (uint32_t)strlen(texts[i]), i };
    hone_status st = hn_token_tree_make(&t, list, N, err);
    if (st == HONE_OK) {
        t.n_vocab = N;
        t.piece = calloc(N, sizeof *t.piece);
        if (!t.piece) st = HN_FAIL(err, HONE_E_NOMEM, "pieces");
    }
    for (int i = 0; i < N && st == HONE_OK; i++) t.piece[i] = (hone_str){ texts[i], strlen(texts[i]) };
    if (st == HONE_OK) st = hn_token_tree_plain(&t, err);
    if (st == HONE_OK)
        st = compile(HONE_GRAMMAR_JSON_SCHEMA,
                     "{\"type\":\"object\",\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"integer\"}}",
                     &g, err);
    if (st == HONE_OK) st = hn_matcher_new(&m, g, &t, err);
    if (st == HONE_OK) st = hn_matcher_token(m, 3, &ok, err); /* {" */
    if (st == HONE_OK) st = hn_matcher_mask(m, &mask, 1, &n, err);
    if (st == HONE_OK)
        assert_int_equal(mask, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10);
    hn_matcher_free(m);
    hone_grammar_free(g);
    hn_token_tree_free(&t);
    return st;
}

static void a_schema(void **state) { fail_each(schema); }
static void rules(void **state) { fail_each(gbnf); }
static void an_expression(void **state) { fail_each(regex); }
static void a_choice(void **state) { fail_each(choice); }
static void a_mask(void **state) { fail_each(masks); }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_schema), cmocka_unit_test(rules),  cmocka_unit_test(an_expression),
        cmocka_unit_test(a_choice), cmocka_unit_test(a_mask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
