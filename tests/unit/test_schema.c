/* JSON Schema against vectors with a verdict on each text: tests/golden/json_schema.jsonl, and where it is there
 * ../shared/data/json-schema (the official suite too) over bytes and over a vocabulary. Lines: {id, want: support |
 * refuse | either, refuse: pointer, schema, tests: [[text, accept | reject | may], …]}. Then what vectors do not say:
 * limits, numbers to the last digit, white space, notes. */
#include "growth.h"
#include "text/matcher.h"
#include "text/schema_tree.h"

#include <setjmp.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static hone_status compile(hone_grammar **g, const char *schema, size_t len, bool strict, hone_error *err)
{
    hone_grammar_params p = { .text = schema, .len = len, .strict = strict };
    return hone_grammar_compile(g, &p, err);
}

static bool matches(hone_grammar *g, hone_str text)
{
    hn_matcher *m;
    bool ok = true;
    assert_int_equal(hn_matcher_new(&m, g, NULL, NULL), HONE_OK);
    for (size_t i = 0; i < text.len && ok; i++)
        assert_int_equal(hn_matcher_bytes(m, text.ptr + i, 1, &ok, NULL), HONE_OK);
    ok = ok && hn_matcher_ends(m);
    hn_matcher_free(m);
    return ok;
}

/* Each prefix's mask holds the next token, and after the last one those that end. */
static void tokens_of(hone_grammar *g, const hone_model *v, hone_str text)
{
    static uint64_t mask[4096];
    hone_matcher *m;
    int32_t *ids;
    size_t n, len;
    int64_t k;
    if (text.len > 300) return;
    assert_int_equal(hone_tokenize(v, text.ptr, text.len, 0, &ids, &n, NULL), HONE_OK);
    assert_int_equal(hone_matcher_new(&m, g, v, NULL), HONE_OK);
    for (size_t i = 0; i < n; i++) {
        const char *piece = hone_token_piece(v, ids[i], false, &len);
        if (!piece || !len) break; /* a name of a control token in the text */
        assert_int_equal(hone_matcher_mask(m, mask, 4096, &k, NULL), HONE_OK);
        if (!(mask[ids[i] / 64] >> ids[i] % 64 & 1)) fail_msg("%.*s: token %zu", (int)text.len, text.ptr, i);
        assert_int_equal(hone_matcher_accept(m, ids + i, 1, NULL), HONE_OK);
        if (i + 1 == n) assert_true(hone_matcher_can_end(m));
    }
    hone_matcher_free(m);
    hone_free(ids);
}

static int n_groups, n_texts, n_refused;

static void check_group(const hn_jnode *o, const char *schema, size_t len, const hone_model *v)
{
    hone_str id = hn_jget(o, "id")->str, want = hn_jget(o, "want")->str;
    const hn_jnode *tests = hn_jget(o, "tests"), *place = hn_jget(o, "refuse");
    hone_grammar *g;
    hone_error err;
    hone_status st = compile(&g, schema, len, true, &err);
    bool any = false; /* some text is to be generated */
    n_groups++;
    for (const hn_jnode *t = tests ? tests->first : NULL; t; t = t->next)
        any = any || !hn_str_is(t->first->next->str, "reject");
    if (st != HONE_OK) {
        n_refused++;
        /* schemas that allow nothing are refused, whatever the vector says of the word */
        bool unsatisfiable = strstr(err.message, "unsatisfiable") != NULL;
        if (hn_str_is(want, "support") && (any || !unsatisfiable))
            fail_msg("%.*s: %s", (int)id.len, id.ptr, err.message);
        if (hn_str_is(want, "refuse") && place && !unsatisfiable && !strstr(err.message, "/"))
            fail_msg("%.*s: no place in %s", (int)id.len, id.ptr, err.message);
        return;
    }
    /* "not" of types and finite sets is done, though the vectors were made before that was decided */
    if (hn_str_is(want, "refuse") && !(place && strstr(HN_ESC(place->str.ptr, place->str.len), "/not")))
        fail_msg("%.*s: compiled", (int)id.len, id.ptr);
    for (const hn_jnode *t = tests ? tests->first : NULL; t; t = t->next) {
        hone_str text = t->first->str, verdict = t->first->next->str;
        bool ok = matches(g, text);
        n_texts++;
        if (hn_str_is(verdict, ok ? "reject" : "accept"))
            fail_msg("%.*s: %.*s: %s", (int)id.len, id.ptr, (int)text.len, text.ptr, ok ? "matches" : "does not match");
        if (v && hn_str_is(verdict, "accept")) tokens_of(g, v, text);
    }
    hone_grammar_free(g);
}

static bool check_file(const char *path, const hone_model *v)
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    hone_error err;
    if (!f) return false;
    for (ssize_t n; (n = getline(&line, &cap, f)) > 0;) {
        hn_arena *a = hn_arena_new();
        hn_jnode *o;
        if (hn_jtree(&o, a, line, (size_t)n, 250, "vectors", &err) != HONE_OK) fail_msg("%s", err.message);
        const char *p = strstr(line, "\"schema\":") + 9, *end = strstr(p, ",\"tests\":["), *next;
        while (end && (next = strstr(end + 1, ",\"tests\":[["))) end = next;
        check_group(o, p, end ? (size_t)(end - p) : strlen(p) - 2, v);
        hn_arena_free(a);
    }
    free(line);
    fclose(f);
    return true;
}

static void golden(void **state)
{
    assert_true(check_file("tests/golden/json_schema.jsonl", NULL));
    assert_true(n_groups >= 50 && n_texts >= 150 && n_refused >= 8);
}

static void shared_vectors(void **state)
{
    static const char vocabulary[] = "../shared/data/tokenizers/ggml-vocab-gpt-2.gguf";
    hone_model *v = NULL;
    hone_error err;
    if (access("../shared/data/json-schema/suite.jsonl", R_OK) != 0) {
        print_message("SKIP: no ../shared/data/json-schema\n");
        skip();
    }
    if (hone_model_open(&v, vocabulary, &(hone_model_params){ .vocab_only = true }, &err) != HONE_OK) v = NULL;
    n_groups = n_texts = 0;
    assert_true(check_file("../shared/data/json-schema/own.jsonl", v));
    assert_true(check_file("../shared/data/json-schema/suite.jsonl", NULL));
    assert_int_equal(n_groups, 423);
    assert_true(n_texts > 1300);
    hone_model_close(v);
}

/* ---- what the vectors do not say ---------------------------------------------------------------------- */

static void says(const char *schema, const char *const *yes, const char *const *no)
{
    hone_grammar *g;
    hone_error err;
    if (compile(&g, schema, strlen(schema), true, &err) != HONE_OK) fail_msg("%s: %s", schema, err.message);
    for (; *yes; yes++)
        if (!matches(g, (hone_str){ *yes, strlen(*yes) })) fail_msg("%s: no %s", schema, *yes);
    for (; *no; no++)
        if (matches(g, (hone_str){ *no, strlen(*no) })) fail_msg("%s: %s", schema, *no);
    hone_grammar_free(g);
}
#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void numbers_to_the_last_digit(void **state)
{
    says("{\"type\":\"number\",\"minimum\":-0.0104,\"exclusiveMaximum\":10.05}",
         LIST("-0.0104", "-0.01", "0", "10.0499999999999999999", "9.99", "10"),
         LIST("-0.01041", "10.05", "10.051", "-0", "1e1"));
    says("{\"type\":\"integer\",\"minimum\":123456789012345678901234567890,\"maximum\":123456789012345678901234567899}",
         LIST("123456789012345678901234567890", "123456789012345678901234567899"),
         LIST("123456789012345678901234567889", "123456789012345678901234567900", "12345678901234567890123456789"));
    says("{\"type\":\"number\",\"exclusiveMinimum\":1e2,\"maximum\":1.5e2}", LIST("100.0001", "150.0", "101"),
         LIST("100", "150.1"));
    says("{\"type\":\"number\",\"multipleOf\":0.001}", LIST("1.001", "-3"), LIST("1.0001"));
    says("{\"type\":\"integer\",\"multipleOf\":1.5}", LIST("3", "-6", "0"), LIST("1", "2", "4"));
    says("{\"type\":\"number\",\"multipleOf\":0.5}", LIST("0", "-2.5", "3", "7.0"), LIST("0.25", "1.1", "-0", "2.50"));
    says("{\"type\":\"number\",\"multipleOf\":0.05,\"minimum\":0}", LIST("0.05", "1.1", "19.95", "2"),
         LIST("0.04", "-1"));
    says("{\"type\":\"number\",\"multipleOf\":1.25}", LIST("2.5", "-3.75", "10", "12.50"),
         LIST("2", "1.5", "1.2", "2.75"));
    says("{\"type\":\"integer\",\"not\":{\"enum\":[1,10,-3.0]}}", LIST("0", "2", "100", "-1"), LIST("1", "10", "-3"));
    says("{\"type\":\"number\",\"not\":{\"const\":0.5}}", LIST("0.51", "0", "-0.5"), LIST("0.5", "0.50", "5e-1"));
    says("{\"type\":\"number\",\"not\":{\"type\":\"integer\"}}", LIST("0.5", "-1.25"), LIST("1", "1.0", "0.0"));
}

static void structure(void **state)
{
    says("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}},\"not\":{\"required\":[\"b\"]},"
         "\"additionalProperties\":true}",
         LIST("{\"a\":1}", "{\"c\":2}"), LIST("{\"a\":1,\"b\":2}", "{\"b\":1}", "{\"\\u0062\":1}"));
    says("{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"minProperties\":2,\"maxProperties\":2}",
         LIST("{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", "{\"b\":1,\"c\":2}"),
         LIST("{\"a\":1}", "{\"a\":1,\"b\":2,\"c\":3}", "{}"));
    says("{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"string\"}],\"nullable\":true,\"enum\":[1,\"x\",null,true]}",
         LIST("1", "\"x\""), LIST("true", "2"));
    says("{\"type\":\"string\",\"nullable\":true}", LIST("null", "\"\""), LIST("1"));
    says("{\"items\":[{\"type\":\"integer\"}],\"additionalItems\":{\"type\":\"null\"}}", LIST("[1,null]", "[]"),
         LIST("[null]", "[1,1]"));
    says("{\"type\":\"number\",\"minimum\":1,\"exclusiveMinimum\":true}", LIST("1.1"), LIST("1"));
    says("{\"type\":\"array\",\"items\":{\"type\":\"null\"},\"minItems\":2,\"maxItems\":100000}",
         LIST("[null,\n null]"), LIST("[null]"));
    /* branches that are references, reached through one: no loop */
    says("{\"properties\":{\"to\":{\"$ref\":\"#/$defs/some\"}},\"$defs\":{\"one\":{\"type\":\"string\"},"
         "\"some\":{\"oneOf\":[{\"$ref\":\"#/$defs/one\"},"
         "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/one\"}}]}}}",
         LIST("{\"to\":\"a\"}", "{\"to\":[\"a\"]}"), LIST("{\"to\":1}", "{\"to\":[[]]}"));
}

/* Names and addresses as people have them; nothing longer than the standards let them be. */
static void names_of_the_internet(void **state)
{
    (void)state;
#define R8(x) x x x x x x x x
#define A63 R8("a") R8("b") R8("c") R8("d") R8("e") R8("f") R8("g") "1234567"
#define A31 R8("x") R8("y") R8("z") "1234567"
    says("{\"type\":\"string\",\"format\":\"hostname\"}",
         LIST("\"www.bbc.co.uk\"", "\"a\"", "\"international.example.com\"",
              "\"my-very-long-host-name.s3-website.eu-west-1.amazonaws.com\"", "\"" A63 "." A63 "." A63 "\"",
              "\"" A31 "." A31 "." A31 "." A31 "." A31 "." A31 "." A31 "\"", "\"a.b.c.d.e.f.g\""),
         LIST("\"\"", "\".com\"", "\"a.\"", "\"a..b\"", "\"-a.com\"", "\"a-.com\"", "\"a_b.com\"", "\"" A63 "8.com\"",
              "\"" A63 "." A63 "." A63 "." A63 "." A63 "\""));
    says("{\"type\":\"string\",\"format\":\"email\"}",
         LIST("\"user.name+tag+sorting@example.com\"", "\"a@b.c\"",
              "\"first.second.third.fourth.fifth@mail.example.co.uk\"", "\"" A63 "8@example.com\"",
              "\"o'brien!#$%&*/=?^_`{|}~-@x.org\""),
         LIST("\"@example.com\"", "\"a@\"", "\"a.@b.c\"", "\".a@b.c\"", "\"a..b@c.d\"", "\"a b@c.d\"", "\"a@b@c\"",
              "\"" A63 "89@example.com\""));
}

static void refused(const char *schema, hone_status want, const char *words)
{
    hone_grammar *g = (hone_grammar *)1;
    hone_error err;
    hone_status st = compile(&g, schema, strlen(schema), false, &err);
    assert_null(g);
    if (st != want || !strstr(err.message, words)) fail_msg("%s: %d %s", schema, st, st ? err.message : "compiled");
}

/* Zod's times have no zone, which the format wants: the pattern was meant. */
static void formats_beside_patterns(void **state)
{
    static const char zod[] = "{\"type\":\"string\",\"format\":\"time\",\"pattern\":\"^[0-2]\\\\d:[0-5]\\\\d$\"}",
                      fits[] = "{\"type\":\"string\",\"format\":\"date\",\"pattern\":\"^2026-\"}",
                      none[] = "{\"type\":\"string\",\"format\":\"date\",\"pattern\":\"^a$\",\"minLength\":2}";
    hone_grammar *g;
    hone_error err;
    assert_int_equal(compile(&g, zod, sizeof zod - 1, false, &err), HONE_OK);
    assert_string_equal(hone_grammar_notes(g), "/format has no text that fits the pattern beside it, and is ignored");
    assert_true(matches(g, (hone_str){ "\"10:30\"", 7 }) && !matches(g, (hone_str){ "\"1030\"", 6 }));
    hone_grammar_free(g);
    assert_int_equal(compile(&g, zod, sizeof zod - 1, true, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "/format: no text of this format fits the pattern beside it"));
    says(fits, (const char *[]){ "\"2026-02-28\"", NULL },
         (const char *[]){ "\"2026-02-30\"", "\"2025-02-28\"", NULL });
    refused(none, HONE_E_ARG, "unsatisfiable"); /* the pattern alone has none of two characters */
}

static void limits_and_faults(void **state)
{
    refused("{\"a\":1,\"a\":2}", HONE_E_ARG, "the key is there twice");
    refused("{\"type\":\"intger\"}", HONE_E_ARG, "/type: expected the name of a type");
    refused("{\"properties\":{\"a/b\":{\"minimum\":\"1\"}}}", HONE_E_ARG,
            "/properties/a~1b/minimum: expected a number");
    refused("{\"type\":", HONE_E_ARG, "not JSON");
    refused("{\"allOf\":[{\"$ref\":\"#/$defs/a\"}],\"$defs\":{\"a\":{\"anyOf\":[{\"$ref\":\"#\"},true]}}}",
            HONE_E_UNSUPPORTED, "leads back to itself");
    refused("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":"
            "{\"anyOf\":[true,{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/a\"}]}]}}}",
            HONE_E_UNSUPPORTED, "leads back to itself");
    refused("{\"required\":[\"a\"],\"properties\":{\"a\":{\"$ref\":\"#\"}}}", HONE_E_ARG, "unsatisfiable");
    refused("{\"type\":\"string\",\"pattern\":\"^a$\",\"minLength\":2}", HONE_E_ARG, "unsatisfiable");
    refused("{\"type\":\"object\",\"minProperties\":3}", HONE_E_UNSUPPORTED, "/minProperties");
    refused("{\"type\":\"string\",\"pattern\":\"(a\"}", HONE_E_ARG, "/pattern");
    refused("{\"propertyNames\":{\"type\":\"string\",\"maxLength\":3}}", HONE_E_UNSUPPORTED, "/propertyNames");
    hone_grammar *g;
    hone_error err;
    static const char loose[] = "{\"type\":\"integer\",\"minimun\":3,\"x-a\":1}";
    assert_int_equal(compile(&g, loose, sizeof loose - 1, false, &err), HONE_OK);
    assert_string_equal(hone_grammar_notes(g), "/minimun is not known, and ignored");
    hone_grammar_free(g);
    static const char format[] = "{\"properties\":{\"a\":{\"type\":\"string\",\"format\":\"path\"}}}"; /* told once */
    assert_int_equal(compile(&g, format, sizeof format - 1, false, &err), HONE_OK);
    assert_string_equal(hone_grammar_notes(g), "/properties/a/format is not known, and ignored");
    hone_grammar_free(g);
    static const char draft3[] = "{\"properties\":{\"a\":{\"type\":\"null\",\"required\":true}}}";
    assert_int_equal(compile(&g, draft3, sizeof draft3 - 1, false, &err), HONE_OK);
    assert_non_null(strstr(hone_grammar_notes(g), "/properties/a/required is of draft 3, and ignored"));
    hone_grammar_free(g);
    assert_int_equal(compile(&g, draft3, sizeof draft3 - 1, true, &err), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, "/properties/a/required: of draft 3"));
}

/* As programs write them: Zod's records, and an $id at each property that is none (jsonschema.net). */
static void written_by_programs(void **state)
{
    says("{\"type\":\"object\",\"propertyNames\":{\"type\":\"string\",\"description\":\"d\"},\"additionalProperties\":"
         "{\"type\":\"null\"}}",
         LIST("{\"a\":null}", "{}"), LIST("{\"a\":1}"));
    says("{\"definitions\":{\"B\":{\"type\":\"null\"}},\"type\":\"object\",\"properties\":{\"a\":{\"$id\":"
         "\"#/properties/a\",\"type\":\"object\",\"properties\":{\"b\":{\"$ref\":\"#/definitions/B\"},\"c\":{\"$ref\":"
         "\"#\"}}}}}",
         LIST("{\"a\":{\"b\":null}}", "{\"a\":{\"c\":{\"a\":{}}}}"), LIST("{\"a\":{\"c\":{\"b\":null}}}"));
    says("{\"properties\":{\"a\":{\"$id\":\"#foo\",\"type\":\"null\"},\"b\":{\"$ref\":\"#foo\"}}}",
         LIST("{\"b\":null}"), LIST("{\"b\":1}"));
    says("{\"$id\":\"http://x/y#\",\"definitions\":{\"B\":{\"type\":\"null\"}},\"$ref\":\"http://x/y#/definitions/B\"}",
         LIST("null"), LIST("1"));
}

/* Names of a record out of a list (Zod's z.record(z.enum)): each once, as properties. */
static void names_listed(void **state)
{
#define NAMES(...) "\"propertyNames\":{\"type\":\"string\",\"enum\":[" __VA_ARGS__ "]}"
#define NULLS "\"type\":\"object\",\"additionalProperties\":{\"type\":\"null\"}"
    says("{" NULLS "," NAMES("\"a\",\"b\",3") ",\"required\":[\"b\"]}", LIST("{\"b\":null}", "{\"b\":null,\"a\":null}"),
         LIST("{}", "{\"a\":null}", "{\"b\":1}", "{\"b\":null,\"c\":null}", "{\"b\":null,\"b\":null}"));
    says("{" NULLS "," NAMES("\"a\",\"b\"") ",\"minProperties\":2,\"allOf\":[{" NAMES("\"b\",\"c\",\"a\"") "}]}",
         LIST("{\"a\":null,\"b\":null}"), LIST("{\"a\":null}", "{\"c\":null,\"a\":null}"));
    says("{\"type\":\"object\",\"properties\":{\"a\":{},\"c\":{}}," NAMES("\"a\",\"b\"") "}", LIST("{\"a\":1}", "{}"),
         LIST("{\"b\":1}", "{\"c\":1}"));
    says("{\"enum\":[{\"a\":1},{\"z\":1}],\"type\":\"object\"," NAMES("\"a\"") "}", LIST("{\"a\":1}"),
         LIST("{\"z\":1}"));
    refused("{" NULLS ",\"propertyNames\":{\"enum\":[\"a\"]}}", HONE_E_UNSUPPORTED, "/propertyNames"); /* a vector */
}

/* Unions whose members a tag tells from each other that has a default, as pydantic writes them: who reads them asks for
 * the tag, so it is always there. */
static void tagged_unions(void **state)
{
#define KIND(kind) "\"kind\":{\"const\":\"" kind "\",\"default\":\"" kind "\",\"type\":\"string\"}"
#define NUMBER "\"n\":{\"type\":\"integer\",\"default\":0}"
#define OBJECT(name, members) "\"" name "\":{\"type\":\"object\",\"properties\":{" members "}}"
#define BY(tag) "\"discriminator\":{\"mapping\":{\"cat\":\"#/$defs/Cat\"},\"propertyName\":\"" tag "\"},"
#define REF(name) "{\"$ref\":\"#/$defs/" name "\"}"
#define HUED(name, hue) OBJECT(name, KIND("cat") ",\"hue\":{\"enum\":[\"" hue "\"]}")
#define ANIMALS OBJECT("Cat", NUMBER "," KIND("cat")) "," OBJECT("Dog", KIND("dog") "," NUMBER)
#define DEFS "\"$defs\":{" ANIMALS "," HUED("Black", "black") "," HUED("White", "white") "}"
    static const char *const words[] = { "oneOf", "anyOf" };
    char schema[1500];
    for (int i = 0; i < 2; i++) {
        snprintf(schema, sizeof schema,
                 "{" DEFS ",\"properties\":{\"pet\":{" BY("kind") "\"%s\":[" REF("Cat") "," REF("Dog") "]}}}",
                 words[i]);
        says(schema,
             LIST("{\"pet\":{\"kind\":\"dog\"}}", "{\"pet\":{\"n\":1,\"kind\":\"cat\"}}",
                  "{\"pet\":{\"kind\":\"dog\",\"n\":-1}}", "{}"),
             LIST("{\"pet\":{\"n\":1}}", "{\"pet\":{}}", "{\"pet\":{\"kind\":\"fish\"}}",
                  "{\"pet\":{\"kind\":\"dog\",\"n\":\"\"}}"));
    }
    says("{" DEFS
         "," BY("kind") "\"oneOf\":[" REF("Dog") ",{" BY("hue") "\"oneOf\":[" REF("Black") "," REF("White") "]}]}",
         LIST("{\"kind\":\"dog\"}", "{\"kind\":\"cat\",\"hue\":\"white\"}"),
         LIST("{\"kind\":\"cat\"}", "{\"hue\":\"black\"}", "{\"kind\":\"dog\",\"hue\":\"black\"}"));
    /* a tag that does not tell them from each other is no proof; nor is one of another schema */
    refused("{" DEFS "," BY("n") "\"oneOf\":[" REF("Cat") "," REF("Dog") "]}", HONE_E_UNSUPPORTED, "/oneOf");
    refused("{" DEFS ",\"oneOf\":[" REF("Cat") "," REF("Dog") "]}", HONE_E_UNSUPPORTED, "/oneOf");
}

/* What is no schema has no anchors; draft 4 calls them id. */
static void anchors(void **state)
{
    says("{\"default\":{\"$anchor\":\"a\"},\"examples\":[{\"$id\":\"#a\"}],"
         "\"properties\":{\"default\":{\"$anchor\":\"b\",\"type\":\"null\"},"
         "\"const\":{\"default\":{\"$anchor\":\"b\"},\"$ref\":\"#b\"},\"x\":{\"$ref\":\"#a\"}},"
         "\"$defs\":{\"q\":{\"$anchor\":\"a\",\"type\":\"integer\"}}}",
         LIST("{\"const\":null,\"x\":1}", "{\"default\":null}"), LIST("{\"const\":1}", "{\"x\":null}"));
    says("{\"id\":\"http://x/y#\",\"definitions\":{\"A\":{\"id\":\"#a\",\"type\":\"null\"}},"
         "\"properties\":{\"x\":{\"$ref\":\"#a\"},\"id\":{\"$ref\":\"http://x/y#/definitions/A\"}}}",
         LIST("{\"x\":null,\"id\":null}"), LIST("{\"x\":1}", "{\"id\":1}"));
    says("{\"const\":{\"b\":1,\"a\":[{\"z\":null,\"y\":12345678901234567890123}]}}",
         LIST("{\"b\":1,\"a\":[{\"z\":null,\"y\":12345678901234567890123}]}"),
         LIST("{\"a\":[{\"z\":null,\"y\":12345678901234567890123}],\"b\":1}",
              "{\"b\":1,\"a\":[{\"z\":null,\"y\":12345678901234567890124}]}"));
}

/* Many names that may all be left out: the set of what may come is large, but no more than it must be. */
static void many_properties(void **state)
{
    enum { N = 500 };
    static char schema[N * 40];
    size_t at = (size_t)sprintf(schema, "{\"properties\":{");
    for (int i = 0; i < N; i++)
        at += (size_t)sprintf(schema + at, "%s\"property%d\":{\"type\":\"null\"}", i ? "," : "", i);
    sprintf(schema + at, "}}");
    says(schema, LIST("{}", "{\"property0\":null,\"property499\":null}"),
         LIST("{\"property499\":null,\"property0\":null}"));
}

/* What another choice says of texts lets in texts, which both branches of the first allow. */
static void beside_other_choices(void **state)
{
#define BY_K(k) "{\"properties\":{\"k\":{\"const\":\"" k "\"}},\"required\":[\"k\"]}"
#define ONE_OF "\"oneOf\":[" BY_K("a") "," BY_K("b") "]"
    refused("{" ONE_OF ",\"anyOf\":[{\"minLength\":3}]}", HONE_E_UNSUPPORTED, "/oneOf");
    refused("{" ONE_OF ",\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\"}]}", HONE_E_UNSUPPORTED, "/oneOf");
    says("{" ONE_OF ",\"anyOf\":[{\"required\":[\"x\"]},{\"required\":[\"y\"]}]}", LIST("{\"k\":\"a\",\"y\":1}"),
         LIST("{\"k\":\"a\"}", "\"abc\""));
}

/* Many members that a required property tells from each other, as of a client's 300 kinds of event: each is looked at
 * once, not beside every other. */
static void many_members(void **state)
{
    enum { N = 300 };
    static char schema[N * 120];
    for (int twice = 0; twice < 2; twice++) {
        size_t at = (size_t)sprintf(schema, "{\"oneOf\":[");
        for (int i = 0; i < (twice ? 5 : N); i++)
            at += (size_t)sprintf(
                schema + at,
                "%s{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"k%d\",\"m%d\"]}},\"required\":[\"k\"]}",
                i ? "," : "", i, twice && i == 4 ? 2 : i);
        sprintf(schema + at, "]}");
        if (twice) refused(schema, HONE_E_UNSUPPORTED, "/oneOf");
        else says(schema, LIST("{\"k\":\"k0\"}", "{\"k\":\"m299\"}"), LIST("{\"k\":\"k300\"}", "{}", "1"));
    }
}

/* Unions of literals, as TypeBox, schemars and lists of countries write them: each value is looked at once. */
static void many_literals(void **state)
{
    static const int some[] = { 126, 250, 1000 };
    static char schema[100000];
    for (int k = 0; k < 6; k++) {
        bool one = k & 1;
        size_t at = (size_t)sprintf(schema, "{\"%s\":[", one ? "oneOf" : "anyOf");
        for (int i = 0; i < some[k / 2]; i++)
            at += (size_t)sprintf(schema + at, "%s{\"const\":\"c%d\",\"title\":\"Country %d\"}", i ? "," : "", i, i);
        sprintf(schema + at, ",{\"const\":1},{\"const\":-7.5e1},{\"type\":\"string\",\"pattern\":\"^x\"}]}");
        says(schema, LIST("\"c0\"", "\"c125\"", "1", "-7.5e1", "\"x\""), LIST("\"c1000\"", "\"c\"", "2", "null"));
    }
    /* a listed value that two branches let in is none of the choice's */
    says("{\"oneOf\":[{\"const\":1},{\"const\":2},{\"enum\":[3,1.0]}]}", LIST("2", "3"), LIST("1", "1.0"));
    says("{\"oneOf\":[{\"const\":\"a\"},{\"enum\":[\"b\",\"a\"]},{\"const\":[]}]}", LIST("\"b\"", "[]"), LIST("\"a\""));
    says("{\"oneOf\":[{\"const\":\"a\"},{\"const\":\"b\"},{\"type\":\"string\"}]}", LIST("\"c\"", "\"ab\""),
         LIST("\"a\"", "\"b\""));
    says("{\"oneOf\":[{\"enum\":[1,2.50,null,true]},{\"type\":[\"number\",\"null\"],\"minimum\":2}]}",
         LIST("1", "2.4", "true", "3"), LIST("2.5", "2.500", "null", "false"));
    says("{\"enum\":[\"a\",\"b\",\"c\"],\"oneOf\":[{\"enum\":[\"a\",\"b\"]},{\"enum\":[\"b\",\"c\",\"d\"]}]}",
         LIST("\"a\"", "\"c\""), LIST("\"b\"", "\"d\""));
    refused("{\"oneOf\":[{\"const\":\"a\"},{\"const\":\"a\"}]}", HONE_E_UNSUPPORTED,
            "/oneOf"); /* nothing would be left */
    refused("{\"oneOf\":[{\"const\":1},{\"type\":\"number\"},{\"minimum\":1}]}", HONE_E_UNSUPPORTED, "/oneOf");
    refused("{\"oneOf\":[{\"const\":[]},{\"const\":[]}]}", HONE_E_UNSUPPORTED, "/oneOf");
    /* a value that another branch lets in alone is not one of this */
    says("{\"allOf\":[{\"anyOf\":[{\"enum\":[1,\"a\"]},{\"enum\":[2,\"b\"]}]},{\"anyOf\":[{\"type\":\"integer\"},{"
         "\"const\":"
         "\"b\"}]}],\"not\":{\"const\":2}}",
         LIST("1", "\"b\""), LIST("2", "\"a\""));
#define KS(k) "{\"type\":\"object\",\"properties\":{\"k\":{\"const\":" k "}},\"required\":[\"k\"]}"
    refused("{\"oneOf\":[" KS("[]") "," KS("[]") "," KS("\"a\"") "]}", HONE_E_UNSUPPORTED, "/oneOf");
}

/* What is forbidden is what it is forbidden in: no answer, and no end of asking. */
static void forbids_itself(void **state)
{
    refused("{\"not\":{\"$ref\":\"#\",\"const\":1}}", HONE_E_UNSUPPORTED, "leads back to itself");
    refused("{\"properties\":{\"a\":{\"not\":{\"$ref\":\"#/properties/a\",\"enum\":[1,2]}}}}", HONE_E_UNSUPPORTED,
            "leads back to itself");
    says("{\"$defs\":{\"n\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/n\"},\"not\":{\"const\":[[]]}}},"
         "\"allOf\":[{\"$ref\":\"#/$defs/n\"}],\"enum\":[[[[]]],[],[[]]]}",
         LIST("[]"), LIST("[[]]", "[[[]]]"));
}

/* Branches that hold the choice itself, and no text that tells them apart: they are, by what comes behind. */
static void holds_itself(void **state)
{
#define NODE(k) \
    "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"},\"k\":{\"const\":" k "}},\"required\":[\"a\",\"k\"]}"
    says("{\"oneOf\":[" NODE("1") "," NODE("2") ",{\"type\":\"null\"}]}",
         LIST("null", "{\"a\":null,\"k\":1}", "{\"a\":{\"a\":null,\"k\":2},\"k\":1}"),
         LIST("{\"a\":null,\"k\":3}", "{\"a\":1,\"k\":1}"));
    refused("{\"oneOf\":[" NODE("1") "," NODE("1") ",{\"type\":\"null\"}]}", HONE_E_UNSUPPORTED, "/oneOf");
}

/* Look-aheads as clients write them always: pydantic's decimals, Zod's addresses, rules of passwords. */
static void look_aheads(void **state)
{
#define PATTERN(p) "{\"type\":\"string\",\"pattern\":\"" p "\"}"
    says(PATTERN("^(?!^[-+.]*$)[+-]?0*\\\\d*\\\\.?\\\\d*$"), LIST("\"1.5\"", "\"-.5\"", "\"+00\""),
         LIST("\"\"", "\"-\"", "\".\"", "\"1.5.\""));
    says(PATTERN(
             "^(?!\\\\.)(?!.*\\\\.\\\\.)([A-Za-z0-9_'+\\\\-\\\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\\\-]*\\\\.)+"
             "[A-Za-z]{2,}$"),
         LIST("\"a.b@c.de\""), LIST("\".a@c.de\"", "\"a..b@c.de\"", "\"a.b@c..de\"", "\"a.@c.de\""));
    says(PATTERN("^(?=.*[A-Z])(?=.*\\\\d).{4,}$"), LIST("\"abC1\""), LIST("\"abc1\"", "\"A1b\""));
    says(PATTERN("a(?!b|$)|^(?=x)"), LIST("\"abac\"", "\"x\""), LIST("\"ab\"", "\"a\"", "\"bx\""));
    says(PATTERN("x?(?!^)y"), LIST("\"xy\"", "\"zy\""), LIST("\"y\""));
    says(PATTERN("\\\\Aa+\\\\Z"), LIST("\"a\""), LIST("\"ab\"", "\"ba\""));
    refused(PATTERN("(a|(?=b))c"), HONE_E_UNSUPPORTED, "a look-around inside a group");
    refused(PATTERN("(?<=a)c"), HONE_E_UNSUPPORTED, "a look-around");
    refused(PATTERN("(?=a)*c"), HONE_E_ARG, "a look-ahead that is repeated");
}

/* What cannot be enforced of a tool's schema, or not be read, is told; all else holds. */
typedef struct lenient {
    const char *schema, *note, *yes, *no;
} lenient;

static void all_else_holds(const lenient *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hone_grammar *g;
        hone_error err;
        hn_gnode root;
        const char *t = rows[i].schema;
        assert_int_equal(hn_grammar_new(&g, &err), HONE_OK);
        if (hn_schema_compile(g, t, strlen(t), &(hn_schema_rules){ .lenient = true }, &root, &err) != HONE_OK ||
            hn_grammar_finish(g, root, &err) != HONE_OK)
            fail_msg("%s: %s", t, err.message);
        if (!strstr(hone_grammar_notes(g), rows[i].note)) fail_msg("%s: %s", t, hone_grammar_notes(g));
        if (!matches(g, (hone_str){ rows[i].yes, strlen(rows[i].yes) })) fail_msg("%s: no %s", t, rows[i].yes);
        if (matches(g, (hone_str){ rows[i].no, strlen(rows[i].no) })) fail_msg("%s: %s", t, rows[i].no);
        hone_grammar_free(g);
    }
}

static void left_out(void **state)
{
    static const lenient rows[] = {
        { "{\"type\":\"number\",\"multipleOf\":0.123456789,\"minimum\":1}", "/multipleOf is not enforced", "1.5",
          "0.5" },
        { "{\"type\":\"string\",\"maxLength\":2,\"not\":{\"pattern\":\"a\"}}", "/not is not enforced", "\"ab\"",
          "\"abc\"" },
        { "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"http://json-schema.org/draft-07/schema#\"},"
          "\"b\":{\"type\":\"null\"}}}",
          "/properties/a/$ref is not enforced", "{\"a\":1,\"b\":null}", "{\"a\":1,\"b\":1}" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/definitions/A\",\"type\":\"null\"}}}", "/properties/a/$ref is not",
          "{\"a\":null}", "{\"a\":1}" },
        { "{\"type\":\"string\",\"$ref\":\"#\"}", "/$ref is not enforced", "\"a\"", "1" },
        { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},\"patternProperties\":{\"(?<=x)y\":"
          "{\"type\":\"null\"},\"^b\":{\"type\":\"null\"}},\"additionalProperties\":false}",
          "/patternProperties/(?<=x)y is not enforced", "{\"a\":null,\"c\":1,\"bc\":null}", "{\"bc\":1}" },
        { "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},\"patternProperties\":{\"1\":{},\"2\":{},"
          "\"3\":{},"
          "\"4\":{},\"5\":{},\"6\":{},\"7\":{}},\"additionalProperties\":false}",
          "/patternProperties is not enforced", "{\"a\":null,\"c\":1}", "{\"a\":1}" },
        { "{\"type\":\"object\",\"minProperties\":3,\"additionalProperties\":{\"type\":\"null\"}}",
          "/minProperties is not", "{\"c\":null}", "{\"c\":1}" },
        { "{\"type\":\"string\",\"pattern\":\"\\\\d++\",\"maxLength\":2}", "/pattern is not enforced", "\"ab\"",
          "\"abc\"" },
        { "{\"properties\":{\"a\":{\"type\":\"any\"},\"b\":{\"type\":\"STRING\"},\"c\":{\"type\":[\"float\",\"null\"]}}"
          "}",
          "/properties/c/type is not enforced", "{\"a\":1,\"b\":\"x\",\"c\":1.5}", "{\"b\":1}" },
        { "{\"properties\":{\"a\":{\"type\":\"null\",\"enum\":null,\"items\":null},\"b\":null},\"required\":[\"a\","
          "null]}",
          "/required/1 is not enforced", "{\"a\":null,\"b\":1}", "{\"b\":1}" },
        { "{\"type\":\"object\",\"properties\":{\"a\":{\"not\":null,\"anyOf\":null,\"minimum\":\"1\"}},"
          "\"additionalProperties\":null}",
          "/properties/a/minimum is not enforced", "{\"a\":0}", "{\"b\":0}" },
        { "{\"type\":\"array\",\"required\":null,\"maxItems\":-1,\"items\":{\"type\":\"null\"},\"minItems\":1}",
          "/maxItems is not enforced", "[null]", "[]" },
        { "{\"type\":\"integer\",\"not\":{\"type\":\"float\"},\"allOf\":[{\"not\":{\"pattern\":1.5}}]}",
          "/not/type is not enforced", "1", "\"a\"" },
        { "{\"not\":{\"enum\":null},\"maxLength\":2,\"minimum\":\"1\"}", "/minimum is not enforced", "\"ab\"",
          "\"abc\"" },
        { "{\"type\":\"integer\",\"not\":{\"$ref\":\"#/$defs/f\"},\"$defs\":{\"f\":{\"type\":\"float\"}}}", "/not", "1",
          "\"a\"" },
        { "{\"type\":[],\"maxLength\":2}", "/type is not enforced", "\"ab\"", "\"abc\"" },
        { "{\"not\":{\"const\":[1]},\"type\":[\"array\",\"null\"]}", "is not enforced", "[1]", "1" },
    };
    all_else_holds(rows, sizeof rows / sizeof *rows);
}

static void left_out_of_choices(void **state)
{
    static const lenient rows[] = {
        { "{\"oneOf\":[{\"enum\":[\"a\",\"b\"]},{\"enum\":[\"b\",\"c\"]}]}", "/oneOf leaves out values", "\"c\"",
          "\"b\"" },
        { "{\"oneOf\":[{\"const\":\"a\"},{\"type\":\"string\"},{\"type\":[\"string\",\"null\"]}]}",
          "/oneOf is held as anyOf", "\"b\"", "\"a\"" },
        { "{\"oneOf\":[{\"const\":\"a\"},{\"const\":\"a\"}]}", "/oneOf is held as anyOf", "\"a\"", "\"b\"" },
        /* a branch that lost a word allows more than it says: what another lists is not left out for that */
        { "{\"type\":\"string\",\"oneOf\":[{\"enum\":[\"auto\",\"none\"]},{\"$ref\":\"https://x/y.json\"}]}",
          "/oneOf is held as anyOf", "\"auto\"", "1" },
        { "{\"oneOf\":[{\"const\":\"auto\"},{\"type\":\"string\",\"not\":{\"pattern\":\"^auto$\"}}]}",
          "/oneOf is held as anyOf", "\"auto\"", "1" },
        { "{\"type\":\"integer\",\"oneOf\":[{\"const\":1},{\"$ref\":\"#\"}]}", "", "1", "\"a\"" },
        /* with less said it would forbid more */
        { "{\"properties\":{\"a\":{\"not\":{\"enum\":[\"x\",\"yy\"],\"pattern\":\"(?<=q)z\"}},\"b\":{\"type\":\"null\"}"
          "}}",
          "/properties/a/not is not enforced", "{\"a\":\"x\",\"b\":null}", "{\"b\":1}" },
        { "{\"properties\":{\"a\":{\"not\":{\"enum\":[\"x\",\"yy\"],\"pattern\":\"(?<=q)z\"}},\"b\":{\"type\":\"null\"}"
          "}}",
          "/properties/a/not is not enforced", "{\"a\":\"yy\",\"b\":null}", "{\"b\":1}" },
        /* what is lost elsewhere is nothing to a choice, nor is a word that is null */
        { "{\"properties\":{\"a\":{\"pattern\":\"(?<=x)y\"},"
          "\"b\":{\"oneOf\":[{\"enum\":[\"a\",\"b\"]},{\"enum\":[\"b\",\"c\"]},{\"type\":\"null\",\"contains\":{}}]}}}",
          "/properties/b/oneOf leaves out values", "{\"a\":\"x\",\"b\":\"c\"}", "{\"b\":\"b\"}" },
        { "{\"oneOf\":[{\"enum\":[\"a\",\"b\"],\"items\":null},{\"enum\":[\"b\",\"c\"]}]}", "/oneOf leaves out values",
          "\"c\"", "\"b\"" },
        { "{\"oneOf\":[{\"enum\":[\"a\",\"b\"],\"minLength\":\"x\"},{\"enum\":[\"b\",\"c\"]}]}",
          "/oneOf is held as anyOf", "\"b\"", "1" },
    };
    all_else_holds(rows, sizeof rows / sizeof *rows);
}

/* Schemas that are kept elsewhere than others, as OpenAPI does, and what these refer to. */
static void left_out_behind_references(void **state)
{
    static const lenient rows[] = {
        { "{\"properties\":{\"a\":{\"$ref\":\"#/components/schemas/"
          "A\"}},\"components\":{\"schemas\":{\"A\":{\"properties\":{"
          "\"b\":{\"type\":\"any\"},\"c\":{\"$ref\":\"#/components/schemas/"
          "C\"}}},\"C\":{\"type\":\"null\",\"enum\":null}}}}",
          "/components/schemas/A/properties/b/type is not enforced", "{\"a\":{\"b\":1,\"c\":null}}",
          "{\"a\":{\"c\":1}}" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/x-kept/0\"},\"b\":{\"type\":\"null\"}},\"x-kept\":[3]}",
          "/properties/a/$ref is not enforced", "{\"a\":1,\"b\":null}", "{\"b\":1}" },
        { "{\"oneOf\":[{\"type\":\"null\"},{\"type\":\"string\"}],\"$ref\":\"#/oneOf\"}", "/$ref is not enforced",
          "null", "1" },
        { "{\"enum\":[\"a\",3],\"$ref\":\"#/enum/0\"}", "", "3", "1" },
        { "{\"properties\":{\"a\":{\"enum\":[{\"type\":\"odd\"}]},\"b\":{\"not\":{\"$ref\":\"#/"
          "kept\"},\"type\":\"null\"}},"
          "\"kept\":{\"type\":\"odd\"}}",
          "/properties/b/not is not enforced", "{\"a\":{\"type\":\"odd\"},\"b\":null}", "{\"b\":1}" },
        { "{\"type\":\"null\",\"not\":{\"$ref\":\"#/$defs/"
          "f\"},\"$defs\":{\"f\":{\"anyOf\":[3,{\"type\":\"string\"}]}}}",
          "/not is not enforced", "null", "1" },
    };
    all_else_holds(rows, sizeof rows / sizeof *rows);
}

/* A schema is told from a value, and from schemas by names, by where it stands. */
static void left_out_by_place(void **state)
{
    static const lenient rows[] = {
        { "{\"properties\":{\"a\":{\"$ref\":\"#/components/schemas/const\"}},"
          "\"components\":{\"schemas\":{\"const\":{\"type\":\"odd\"}}}}",
          "/components/schemas/const/type is not enforced", "{\"a\":1}", "1" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/const/x-parts/enum\"}},"
          "\"$defs\":{\"const\":{\"x-parts\":{\"enum\":{\"type\":\"odd\"},\"b\":true}}}}",
          "/$defs/const/x-parts/enum/type is not enforced", "{\"a\":1}", "1" },
        { "{\"properties\":{\"type\":{\"type\":\"null\"},\"b\":{\"$ref\":\"#/properties\"}},\"required\":[\"type\"]}",
          "/properties/b/$ref is not enforced: what it refers to is no schema", "{\"type\":null,\"b\":1}",
          "{\"type\":1}" },
        { "{\"properties\":{\"a\":{\"const\":{\"type\":\"odd\"}},\"b\":{\"$ref\":\"#/properties/a/const\"}}}",
          "/properties/b/$ref is not enforced", "{\"a\":{\"type\":\"odd\"},\"b\":1}", "{\"a\":{}}" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/x-s/const\"},\"b\":{\"$ref\":\"#/x-s\"}},"
          "\"x-s\":{\"const\":{\"type\":\"odd\"}}}",
          "/x-s/const is not enforced", "{\"a\":1,\"b\":2}", "1" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/x-s/properties\"},\"b\":{\"$ref\":\"#/x-s\"}},"
          "\"x-s\":{\"properties\":{\"type\":{\"type\":\"null\"},\"b\":null}}}",
          "/x-s/properties is not enforced", "{\"a\":1,\"b\":2}", "1" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/components/schemas\"},\"b\":{\"$ref\":\"#/components/schemas/type\"}},"
          "\"components\":{\"schemas\":{\"type\":{\"type\":\"null\"}}}}",
          "/properties/a/$ref is not enforced", "{\"a\":1,\"b\":null}", "{\"b\":1}" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/components/schemas\"},\"b\":{\"type\":\"null\"}},"
          "\"components\":{\"schemas\":{\"type\":{\"type\":\"null\"},\"x-note\":\"n\"}}}",
          "/properties/a/$ref is not enforced", "{\"a\":1,\"b\":null}", "{\"b\":1}" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#/components/schemas/A\"}},\"components\":{\"schemas\":{\"A\":"
          "{\"properties\":{\"k\":{\"type\":\"null\"}},\"minProperties\":true}}}}",
          "/components/schemas/A/minProperties is not enforced", "{\"a\":{\"k\":null}}", "{\"a\":{\"k\":1}}" },
    };
    all_else_holds(rows, sizeof rows / sizeof *rows);
}

/* Finds each member of an object that has lost one: by their keys, as before. */
static void find_members(void *arg, size_t n)
{
    static char text[400000];
    const char **keys = arg;
    size_t at = (size_t)sprintf(text, "{\"type\":null");
    for (size_t i = 0; i < n; i++) at += (size_t)sprintf(text + at, ",\"%s\":%zu", keys[i], i);
    at += (size_t)sprintf(text + at, "}");
    hn_arena *arena = hn_arena_new();
    hn_jnode *o;
    assert_int_equal(hn_jtree(&o, arena, text, at, 8, "members", NULL), HONE_OK);
    hn_jdrop(o, &o->first);
    assert_int_equal(o->n, n);
    assert_null(hn_jget(o, "type"));
    for (size_t i = 0; i < n; i++)
        if (hn_jget(o, keys[i])->index != i + 1) fail_msg("%s", keys[i]);
    hn_arena_free(arena);
}

static void members_found(void **state)
{
    enum { N = 20000 };
    static char names[N][8];
    static const char *keys[N];
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "p%d", i);
        keys[i] = names[i];
    }
    assert_true(grows_as_input("members of an object", find_members, keys, 200, N));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden),
        cmocka_unit_test(shared_vectors),
        cmocka_unit_test(numbers_to_the_last_digit),
        cmocka_unit_test(structure),
        cmocka_unit_test(formats_beside_patterns),
        cmocka_unit_test(limits_and_faults),
        cmocka_unit_test(written_by_programs),
        cmocka_unit_test(names_listed),
        cmocka_unit_test(tagged_unions),
        cmocka_unit_test(beside_other_choices),
        cmocka_unit_test(many_members),
        cmocka_unit_test(many_literals),
        cmocka_unit_test(left_out),
        cmocka_unit_test(left_out_of_choices),
        cmocka_unit_test(left_out_behind_references),
        cmocka_unit_test(left_out_by_place),
        cmocka_unit_test(members_found),
        cmocka_unit_test(look_aheads),
        cmocka_unit_test(holds_itself),
        cmocka_unit_test(forbids_itself),
        cmocka_unit_test(anchors),
        cmocka_unit_test(many_properties),
        cmocka_unit_test(names_of_the_internet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
