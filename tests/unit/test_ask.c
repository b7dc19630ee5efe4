/* Bodies of requests: what becomes of good ones, and how bad ones are refused: each with its status, code and field,
 * as the descriptions of the APIs say. The cases stand in the order of the fields. */
#include "serve/ask.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ask_cases.h"

/* ---- what is refused --------------------------------------------------------------------- */

static void test_refused(void **state)
{
    for (size_t i = 0; i < sizeof refused_cases / sizeof *refused_cases; i++) {
        const refused_case *c = refused_cases + i;
        hn_ask a;
        hn_refusal r;
        char want[128] = "";
        const char *code = strcmp(c->code, "-") == 0 ? NULL : c->code;
        snprintf(want, sizeof want, "%s", c->param);
        if (ask_of(&a, c->path, c->body, NULL, &r)) fail_msg("%s %s: taken; expected %s", c->path, c->body, c->code);
        if (r.status != c->status || strcmp(r.param, want) != 0 || (!code) != (!r.code) ||
            (code && strcmp(r.code, code)))
            fail_msg("%s %s:\n status %d code %s param '%s': %s\n expected %d %s '%s'", c->path, c->body, r.status,
                     r.code, r.param, r.message, c->status, c->code, c->param);
        assert_true(strlen(r.message) > 10);
        if (c->says && !strstr(r.message, c->says)) fail_msg("%s: %s; expected '%s'", c->body, r.message, c->says);
        assert_null(a.arena);
    }
}

/* ---- bodies that are no JSON ------------------------------------------------------------- */

static void test_no_json(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "{\"prompt\":\"a\"",
        "{\"prompt\":\"a\"} x",
        "{\"prompt\":\"a\",}",
        "{'prompt':1}",
        "\xEF\xBB\xBF{\"prompt\":\"a\"}",
        "{\"prompt\":\"\xFF\"}",
        "{\"prompt\":\"\\ud800\"}",
        "{\"prompt\":\"\\udc00x\"}",
        "{\"prompt\":\"a\nb\"}",
        "{\"prompt\":\"a\tb\"}",
        "{\"prompt\":\"a\",\"prompt\":\"b\"}",
        "{\"prompt\":\"\\x\"}",
        "{\"prompt\":01}",
        "{\"prompt\":NaN}",
        "{\"prompt\":+1}",
        "{\"prompt\":\"a\",\"n\":1e999}",
        "{\"prompt\":\"a\",\"x\":{\"y\":1,\"y\":2}}",
    };
    hn_ask a;
    hn_refusal r;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (ask_of(&a, "/v1/completions", bad[i], NULL, &r)) fail_msg("%s: taken", bad[i]);
        if (r.status != 400 || !r.code || strcmp(r.code, "invalid_json")) fail_msg("%s: %s", bad[i], r.message);
    }
    static const char *const others[] = { "[]", "\"x\"", "1", "null", "true", "[{\"prompt\":\"a\"}]" };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(ask_of(&a, "/v1/completions", others[i], NULL, &r));
        assert_int_equal(r.status, 400);
        assert_string_equal(r.code, "invalid_type");
    }
}

/* 64 arrays and objects within each other are the limit. */
static void test_depth(void **state)
{
    for (int depth = 60; depth <= 70; depth++) {
        char body[512];
        size_t n = (size_t)snprintf(body, sizeof body, "{\"prompt\":\"a\",\"metadata\":");
        for (int i = 1; i < depth; i++) body[n++] = '[';
        for (int i = 1; i < depth; i++) body[n++] = ']';
        snprintf(body + n, sizeof body - n, "}");
        hn_ask a;
        hn_refusal r;
        bool taken = ask_of(&a, "/v1/completions", body, NULL, &r);
        /* the innermost array is empty: it counts */
        assert_int_equal(taken, depth <= 64);
        if (taken) hn_ask_free(&a);
    }
}

/* ---- what is taken ----------------------------------------------------------------------- */

static void test_messages(void **state)
{
    for (size_t i = 0; i < sizeof chat_cases / sizeof *chat_cases; i++) {
        const chat_case *c = chat_cases + i;
        hn_ask a;
        hn_refusal r;
        if (!ask_of(&a, c->path, c->body, NULL, &r)) fail_msg("%s: %s (%s)", c->body, r.message, r.param);
        if (strcmp(a.messages, c->messages) != 0) fail_msg("%s:\n%s\nexpected\n%s", c->body, a.messages, c->messages);
        if ((!c->tools) != (!a.tools) || (c->tools && strcmp(a.tools, c->tools) != 0))
            fail_msg("%s:\n%s\nexpected\n%s", c->body, a.tools ? a.tools : "no tools", c->tools ? c->tools : "none");
        assert_int_equal(a.continue_final, c->continued);
        hn_ask_free(&a);
    }
}

static void get(hn_ask *a, const char *path, const char *body)
{
    hn_refusal r;
    if (!ask_of(a, path, body, NULL, &r)) fail_msg("%s: %s (%s)", body, r.message, r.param);
}

#define CHAT(more) "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]" more "}"
#define TEXT(more) "{\"prompt\":\"hi\"" more "}"

static void test_sampling(void **state)
{
    hn_ask a;
    get(&a, "/v1/chat/completions", CHAT(""));
    assert_true(a.sampling.temp == 0.8f && a.sampling.top_p == 0.95f && a.sampling.min_p == 0.05f);
    assert_int_equal(a.sampling.top_k, 40);
    assert_true(a.max_tokens == -1 && a.n == 1 && !a.has_seed && a.cache && a.generation_prompt && !a.stream);
    assert_true(a.top_logprobs == -1 && a.slot == -1 && a.reasoning_budget == -1 && !a.effort && !a.has_form);
    assert_string_equal(a.ignored, "");
    assert_null(a.model);
    hn_ask_free(&a);

    get(&a, "/v1/chat/completions",
        CHAT(",\"temperature\":0,\"top_p\":0.5,\"top_k\":7,\"min_p\":0.25,\"repeat_penalty\":1.5,\"repeat_last_n\":-1,"
             "\"presence_penalty\":-2,\"frequency_penalty\":2,\"seed\":18446744073709551615,\"stop\":[\"a\",\"\","
             "\"bc\"],"
             "\"n\":4,\"max_tokens\":3.0,\"max_completion_tokens\":3,\"logprobs\":true,\"top_logprobs\":5,"
             "\"logit_bias\":{\"3\":-100,\"0\":1.5},\"model\":\"m/x\",\"stream\":true,"
             "\"stream_options\":{\"include_usage\":true,\"include_obfuscation\":false},\"user\":\"u\",\"foo\":1,"
             "\"bar\":{}"));
    assert_true(a.sampling.temp == 0 && a.sampling.top_p == 0.5f && a.sampling.min_p == 0.25f);
    assert_true(a.sampling.top_k == 7 && a.sampling.repeat_penalty == 1.5f && a.sampling.penalty_last_n == -1);
    assert_true(a.sampling.presence_penalty == -2 && a.sampling.frequency_penalty == 2);
    assert_true(a.has_seed && a.sampling.seed == UINT64_MAX);
    assert_true(a.n_stops == 2 && a.longest_stop == 2); /* an empty one stops nothing */
    assert_string_equal(a.stops[1], "bc");
    assert_true(a.n == 4 && a.max_tokens == 3 && a.top_logprobs == 5 && a.stream && a.include_usage);
    assert_true(a.n_bias == 2 && a.bias[0].id == 3 && a.bias[0].bias == -100 && a.bias[1].bias == 1.5f);
    assert_string_equal(a.model, "m/x");
    assert_string_equal(a.ignored, "foo, bar");
    hn_ask_free(&a);

    /* seeds: any 64 bits, also beyond what doubles hold; -1 is any */
    static const struct {
        const char *text;
        bool has;
        uint64_t seed;
    } seeds[] = { { "9223372036854775809", true, 9223372036854775809u },
                  { "18446744073709551614", true, 18446744073709551614u },
                  { "-9223372036854775808", true, 9223372036854775808u },
                  { "-2", true, UINT64_MAX - 1 },
                  { "-1", false, 0 },
                  { "null", false, 0 },
                  { "42.0", true, 42 },
                  { "0", true, 0 } };
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"x\":{\"seed\":5,\"n\":18446744073709551616},\"prompt\":\"a\",\"seed\":%s}",
                 seeds[i].text);
        get(&a, "/v1/completions", body);
        assert_int_equal(a.has_seed, seeds[i].has);
        if (seeds[i].has) assert_true(a.sampling.seed == seeds[i].seed);
        hn_ask_free(&a);
    }

    get(&a, "/v1/completions", TEXT(",\"logit_bias\":[[5,false],[\" word\",-3],[7,2]],\"top_k\":-1,\"stop\":\"x\""));
    assert_true(a.n_bias == 3 && isinf(a.bias[0].bias) && a.bias[0].bias < 0 && !a.bias[0].text);
    assert_string_equal(a.bias[1].text, " word");
    assert_true(a.bias[2].id == 7 && a.sampling.top_k == 0 && a.n_stops == 1);
    hn_ask_free(&a);

    /* keys that are no numbers are texts, as llama-server has it */
    get(&a, "/completion", TEXT(",\"logit_bias\":{\" word\":-3,\"7\":2,\"2x\":false}"));
    assert_true(a.n_bias == 3 && a.bias[0].bias == -3 && a.bias[1].id == 7 && !a.bias[1].text);
    assert_string_equal(a.bias[0].text, " word");
    assert_string_equal(a.bias[2].text, "2x");
    hn_ask_free(&a);

    /* samplers that hone lacks, asking for nothing */
    get(&a, "/completion",
        TEXT(",\"mirostat\":0,\"xtc_probability\":0.0,\"dry_multiplier\":0,\"typical_p\":1.0,\"dynatemp_range\":0,"
             "\"top_n_sigma\":-1,\"mirostat_tau\":5,\"dry_base\":1.75,\"n_predict\":-1"));
    assert_string_equal(a.ignored, "");
    assert_int_equal(a.max_tokens, -1);
    hn_ask_free(&a);
}

/* llama-server's `samplers`: these alone, and in an order that is hone's where it matters. */
static void test_samplers(void **state)
{
#define SAMPLING                                                                           \
    "\"temperature\":0.5,\"top_k\":7,\"top_p\":0.5,\"min_p\":0.25,\"repeat_penalty\":1.5," \
    "\"presence_penalty\":1,\"frequency_penalty\":2"
    static const struct {
        const char *fields;
        float temp, top_p, min_p, repeat, presence, frequency;
        int32_t top_k;
    } chains[] = {
        /* the default of llama-server, as its clients send it back */
        { "\"samplers\":[\"penalties\",\"dry\",\"top_n_sigma\",\"top_k\",\"typ_p\",\"top_p\",\"min_p\",\"xtc\","
          "\"temperature\"]," SAMPLING,
          0.5f, 0.5f, 0.25f, 1.5f, 1, 2, 7 },
        { SAMPLING ",\"samplers\":\"edskypmxt\"", 0.5f, 0.5f, 0.25f, 1.5f, 1, 2, 7 },
        { "\"samplers\":[\"top_k\",\"temperature\"]," SAMPLING, 0.5f, 1, 0, 1, 0, 0, 7 },
        { SAMPLING ",\"samplers\":[\"nucleus\"]", 1, 0.5f, 0, 1, 0, 0, 0 },
        { SAMPLING ",\"samplers\":\"em\"", 1, 1, 0.25f, 1.5f, 1, 2, 0 },
        { SAMPLING ",\"samplers\":[]", 1, 1, 0, 1, 0, 0, 0 },
        /* another order, of such as change nothing there */
        { "\"samplers\":[\"temp\",\"min-p\",\"penalties\"],\"temperature\":1,\"min_p\":0.25", 1, 1, 0.25f, 1, 0, 0, 0 },
        { "\"samplers\":[\"temperature\",\"top_p\",\"top_k\"],\"temperature\":0", 0, 0.95f, 0, 1, 0, 0, 40 },
    };
    static const char *const routes[] = { "/completion", "/v1/chat/completions", "/v1/messages" };
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        for (size_t r = 0; r < 3; r++) {
            hn_ask a;
            char body[512];
            snprintf(body, sizeof body,
                     "{\"prompt\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":4,%s}",
                     chains[i].fields);
            get(&a, routes[r], body);
            assert_true(a.sampling.temp == chains[i].temp && a.sampling.top_p == chains[i].top_p);
            assert_true(a.sampling.min_p == chains[i].min_p && a.sampling.top_k == chains[i].top_k);
            assert_true(a.sampling.repeat_penalty == chains[i].repeat);
            assert_true(a.sampling.presence_penalty == chains[i].presence);
            assert_true(a.sampling.frequency_penalty == chains[i].frequency);
            hn_ask_free(&a);
        }
    }
}

/* What llama.vim sends with each infill, and to have its files read ahead. */
static void test_editors(void **state)
{
#define GAP "{\"input_prefix\":\"a\",\"input_suffix\":\"b\",\"prompt\":\"c\",\"stream\":false,\"cache_prompt\":true,"
    hn_ask a;
    get(&a, "/infill",
        GAP "\"input_extra\":[{\"text\":\"x\",\"time\":[1,2],\"filename\":\"f.c\"}],\"n_predict\":128,\"n_indent\":4,"
            "\"top_k\":40,\"top_p\":0.99,\"samplers\":[\"top_k\",\"top_p\",\"infill\"],\"t_max_prompt_ms\":500,"
            "\"t_max_predict_ms\":500,\"response_fields\":[\"content\",\"timings/prompt_n\",\"truncated\"]}");
    assert_true(a.kind == HN_ASK_INFILL && a.sampling.temp == 0 && a.n_files == 1 && a.max_tokens == 128);
    assert_string_equal(a.ignored, "n_indent, t_max_predict_ms, samplers[infill]");
    hn_ask_free(&a);
    get(&a, "/infill",
        GAP "\"n_predict\":0,\"temperature\":0.0,\"samplers\":[],\"t_max_prompt_ms\":1,\"t_max_predict_ms\":1,"
            "\"n_indent\":0,\"response_fields\":[\"\"]}");
    assert_true(a.max_tokens == 0 && a.sampling.temp == 1);
    assert_string_equal(a.ignored, "t_max_predict_ms");
    hn_ask_free(&a);
    /* a sampler of before, as SillyTavern sends it */
    get(&a, "/completion", TEXT(",\"samplers\":[\"top_k\",\"tfs_z\",\"temperature\"],\"tfs_z\":1"));
    assert_true(a.sampling.top_k == 40 && a.sampling.top_p == 1);
    assert_string_equal(a.ignored, "samplers[1]");
    hn_ask_free(&a);
    get(&a, "/infill", GAP "\"samplers\":\"kit\",\"temperature\":0.5}");
    assert_true(a.sampling.temp == 0.5f && a.sampling.top_k == 40 && a.sampling.top_p == 1);
    hn_ask_free(&a);
}

/* llama-server's names of what others call otherwise, and its fields that ask for nothing. */
static void test_native_names(void **state)
{
    hn_ask a;
    get(&a, "/v1/chat/completions",
        CHAT(",\"n_probs\":3,\"n_cmpl\":2,\"reasoning_budget_tokens\":7,\"parse_tool_calls\":true,\"echo\":false,"
             "\"generation_prompt\":\"\",\"reasoning_budget_message\":\"\",\"post_sampling_probs\":false"));
    assert_true(a.top_logprobs == 3 && a.n == 2 && a.reasoning_budget == 7);
    assert_string_equal(a.ignored, "");
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(",\"logprobs\":true,\"top_logprobs\":2,\"n_probs\":3"));
    assert_int_equal(a.top_logprobs, 2);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(",\"logprobs\":false,\"top_logprobs\":0"));
    assert_int_equal(a.top_logprobs, -1);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(",\"logprobs\":true,\"top_logprobs\":0"));
    assert_int_equal(a.top_logprobs, 0);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(",\"n_probs\":0"));
    assert_int_equal(a.top_logprobs, -1);
    hn_ask_free(&a);
}

/* -1 is what the context holds, and no second opinion beside another field. */
static void test_limits_of_tokens(void **state)
{
    hn_ask a;
    get(&a, "/v1/chat/completions", CHAT(",\"max_tokens\":-1"));
    assert_int_equal(a.max_tokens, -1);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(",\"n_predict\":-1,\"max_tokens\":4"));
    assert_int_equal(a.max_tokens, 4);
    hn_ask_free(&a);
    get(&a, "/v1/completions", TEXT(",\"max_tokens\":4,\"n_predict\":-1"));
    assert_int_equal(a.max_tokens, 4);
    hn_ask_free(&a);
    get(&a, "/completion", TEXT(",\"max_tokens\":4,\"n_predict\":-2,\"n_cmpl\":3"));
    assert_true(a.max_tokens == 4 && a.n == 3);
    hn_ask_free(&a);
}

static void test_prompts(void **state)
{
    hn_ask a;
    get(&a, "/v1/completions", "{\"prompt\":\"a\\u0000b\"}");
    assert_true(a.n_prompt == 1 && a.prompt->len == 3 && memcmp(a.prompt->text, "a\0b", 4) == 0 && !a.prompt->more);
    assert_true(a.add_special && a.parse_special);
    hn_ask_free(&a);
    get(&a, "/v1/completions", "{\"prompt\":[\"a\",[1,2],\"c\"],\"n\":2}");
    assert_int_equal(a.n_prompt, 3);
    assert_true(!a.prompt[1].text && a.prompt[1].n == 2 && a.prompt[1].ids[1] == 2);
    assert_string_equal(a.prompt[2].text, "c");
    hn_ask_free(&a);
    get(&a, "/completion", "{\"prompt\":[1,2,\"mid\",3]}");
    assert_int_equal(a.n_prompt, 1);
    assert_true(a.prompt->n == 2 && a.prompt->ids[0] == 1);
    assert_string_equal(a.prompt->more->text, "mid");
    assert_true(a.prompt->more->more->n == 1 && a.prompt->more->more->ids[0] == 3 && !a.prompt->more->more->more);
    hn_ask_free(&a);
    get(&a, "/completion", "{\"prompt\":[[1,\"x\"],[2]]}");
    assert_true(a.n_prompt == 2 && a.prompt[0].n == 1 && a.prompt[1].ids[0] == 2);
    assert_string_equal(a.prompt[0].more->text, "x");
    hn_ask_free(&a);

    get(&a, "/v1/completions", TEXT(",\"suffix\":\"end\""));
    assert_int_equal(a.kind, HN_ASK_INFILL);
    assert_string_equal(a.prefix, "hi");
    assert_string_equal(a.suffix, "end");
    assert_int_equal(a.n_prompt, 0);
    hn_ask_free(&a);
    get(&a, "/v1/completions", TEXT(",\"echo\":true,\"logprobs\":3,\"max_tokens\":0"));
    assert_true(a.echo && a.prompt_logprobs && a.top_logprobs == 3 && a.max_tokens == 0);
    hn_ask_free(&a);
    get(&a, "/v1/completions", TEXT(",\"prompt_logprobs\":2"));
    assert_true(!a.echo && a.prompt_logprobs && a.top_logprobs == 2);
    hn_ask_free(&a);

    get(&a, "/infill",
        "{\"input_prefix\":\"p\",\"input_suffix\":\"\",\"input_extra\":[{\"filename\":\"f.c\",\"text\":\"t\"},"
        "{\"text\":\"u\"}],\"prompt\":\"x\"}");
    assert_int_equal(a.kind, HN_ASK_INFILL);
    assert_true(a.n_files == 2 && a.n_prompt == 1);
    assert_string_equal(a.files[0].name, "f.c");
    assert_string_equal(a.files[1].text, "u");
    assert_string_equal(a.suffix, "");
    hn_ask_free(&a);

    get(&a, "/tokenize", "{\"content\":\"a\",\"add_special\":true,\"with_pieces\":true,\"parse_special\":false}");
    assert_true(a.kind == HN_ASK_TOKENIZE && a.add_special && a.with_pieces && !a.parse_special);
    hn_ask_free(&a);
    get(&a, "/tokenize", "{\"content\":\"a\"}");
    assert_true(!a.add_special && a.parse_special);
    hn_ask_free(&a);
    get(&a, "/detokenize", "{\"tokens\":[]}");
    assert_true(a.kind == HN_ASK_DETOKENIZE && a.prompt->n == 0);
    hn_ask_free(&a);
}

static void test_forms(void **state)
{
    static const struct {
        const char *more;
        hone_grammar_kind kind;
        const char *text, *param;
        bool strict;
    } forms[] = {
        { ",\"response_format\":{\"type\":\"json_object\"}", HONE_GRAMMAR_JSON_OBJECT, NULL, "response_format", false },
        { ",\"response_format\":{\"type\":\"json_object\",\"schema\":{\"b\":1,\"a\":[1.5,null]}}",
          HONE_GRAMMAR_JSON_SCHEMA, "{\"b\":1,\"a\":[1.5,null]}", "response_format.schema", false },
        { ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\",\"strict\":true,\"schema\":{"
          "\"type\":\"object\"}}}",
          HONE_GRAMMAR_JSON_SCHEMA, "{\"type\":\"object\"}", "response_format.json_schema.schema", true },
        { ",\"response_format\":{\"type\":\"json_schema\",\"schema\":{\"const\":1}}", HONE_GRAMMAR_JSON_SCHEMA,
          "{\"const\":1}", "response_format.schema", false },
        { ",\"json_schema\":{\"const\":18446744073709551615}", HONE_GRAMMAR_JSON_SCHEMA, /* digits of no double */
          "{\"const\":18446744073709551615}", "json_schema", false },
        { ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"enum\":[0."
          "12345678901234567890]}}}",
          HONE_GRAMMAR_JSON_SCHEMA, "{\"enum\":[0.12345678901234567890]}", "response_format.json_schema.schema",
          false },
        { ",\"json_schema\":{\"const\":\"\\u00e4\"}", HONE_GRAMMAR_JSON_SCHEMA, "{\"const\":\"\xC3\xA4\"}",
          "json_schema", false },
        { ",\"grammar\":\"root ::= x\"", HONE_GRAMMAR_GBNF, "root ::= x", "grammar", false },
        { ",\"structured_outputs\":{\"regex\":\"a+\"}", HONE_GRAMMAR_REGEX, "a+", "structured_outputs.regex", false },
        { ",\"structured_outputs\":{\"json\":{\"x\":1}}", HONE_GRAMMAR_JSON_SCHEMA, "{\"x\":1}",
          "structured_outputs.json", false },
    };
    hn_ask a;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char body[512];
        snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]%s}", forms[i].more);
        get(&a, "/v1/chat/completions", body);
        assert_true(a.has_form && a.form.kind == forms[i].kind && a.form.strict == forms[i].strict);
        assert_true((a.form.text == NULL) == (forms[i].text == NULL));
        if (a.form.text) assert_string_equal(a.form.text, forms[i].text);
        if (a.form.text) assert_int_equal(a.form.len, strlen(a.form.text));
        assert_string_equal(a.form_param, forms[i].param);
        hn_ask_free(&a);
    }
    get(&a, "/completion", TEXT(",\"structured_outputs\":{\"choice\":[\"yes\",\"no\"]},\"finish_json\":true"));
    assert_true(a.form.kind == HONE_GRAMMAR_CHOICE && a.form.n_choices == 2 && a.finish_json);
    assert_memory_equal(a.form.choices[1].ptr, "no", 2);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(",\"response_format\":{\"type\":\"text\"},\"grammar\":\"\""));
    assert_false(a.has_form);
    hn_ask_free(&a);
}

static void test_tools(void **state)
{
#define TWO                                                                                                            \
    ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}},{\"type\":\"function\",\"function\":{\"name\":" \
    "\"g.h-1\",\"strict\":true}}]"
    hn_ask a;
    get(&a, "/v1/chat/completions", CHAT(TWO));
    assert_true(a.tool_choice == HN_TOOLS_AUTO && a.parallel_calls && a.n_tool_names == 0);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(TWO ",\"tool_choice\":\"required\",\"parallel_tool_calls\":false"));
    assert_true(a.tool_choice == HN_TOOLS_REQUIRED && !a.parallel_calls);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions", CHAT(TWO ",\"tool_choice\":\"none\""));
    assert_int_equal(a.tool_choice, HN_TOOLS_NONE);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions",
        CHAT(TWO ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"g.h-1\"}}"));
    assert_true(a.tool_choice == HN_TOOLS_NAMED && a.n_tool_names == 1);
    assert_string_equal(a.tool_names[0], "g.h-1");
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions",
        CHAT(TWO ",\"tool_choice\":{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\",\"tools\":[{"
                 "\"type\":"
                 "\"function\",\"function\":{\"name\":\"f\"}}]}}"));
    assert_true(a.tool_choice == HN_TOOLS_REQUIRED && a.n_tool_names == 1);
    assert_string_equal(a.tool_names[0], "f");
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions",
        CHAT(",\"reasoning_effort\":\"none\",\"reasoning_format\":\"none\",\"reasoning_budget\":7,"
             "\"chat_template_kwargs\":{\"a\":true}"));
    assert_string_equal(a.effort, "off");
    assert_true(a.reasoning_in_text && a.reasoning_budget == 7);
    assert_string_equal(a.variables, "{\"a\":true}");
    hn_ask_free(&a);
}

/* Numbers that no double holds, in tools and in arguments that are objects. */
static void whole_digits(void)
{
#define OF "{\"n\":[12345678901234567890123,0.10000000000000000001,7]}"
#define NO_STRING "{\\\"n\\\":[12345678901234567890123,0.10000000000000000001,7]}"
#define OLLAMA "\"tool_calls\":[{\"function\":{\"name\":\"f\",\"arguments\":" OF "}}]"
#define ITS_TOOL "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":" OF "}}]"
    static const char *const rows[][2] = {
        { "/v1/messages", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\",\"content\":["
                          "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":" OF "}]},{\"role\":\"user\","
                          "\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"y\"}]}],"
                          "\"tools\":[{\"name\":\"f\",\"input_schema\":" OF "}],\"max_tokens\":5,\"top_p\":0.5}" },
        { "/api/chat", "{\"messages\":[{\"role\":\"user\",\"content\":\"x\"},{\"role\":\"assistant\"," OLLAMA "},"
                       "{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\"y\"}]," ITS_TOOL "}" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_ask a;
        get(&a, rows[i][0], rows[i][1]);
        if (!strstr(a.messages, NO_STRING) || !a.tools || !strstr(a.tools, OF)) fail_msg("%s %s", a.messages, a.tools);
        hn_ask_free(&a);
    }
}

/* Fields of Anthropic's, OpenAI's newer and ollama's APIs. */
static void test_other_apis(void **state)
{
    hn_ask a;
    hn_refusal r;
    whole_digits();
    get(&a, "/v1/messages",
        "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"thinking\":{\"type\":\"enabled\","
        "\"budget_tokens\":50},\"stop_sequences\":[\"x\"],\"tools\":[{\"name\":\"f\"}],\"tool_choice\":{\"type\":"
        "\"any\","
        "\"disable_parallel_tool_use\":true},\"metadata\":{\"user_id\":\"u\"},\"cache_control\":{},\"container\":null,"
        "\"top_k\":3,\"stream\":true}");
    assert_true(a.kind == HN_ASK_CHAT && a.max_tokens == 9 && a.reasoning_budget == 50 && a.n_stops == 1 && a.stream);
    assert_string_equal(a.effort, "on");
    assert_true(a.tool_choice == HN_TOOLS_REQUIRED && !a.parallel_calls);
    assert_true(a.sampling.temp == 1 && a.sampling.top_k == 3 && a.sampling.top_p == 0.95f);
    assert_string_equal(a.ignored, "");
    hn_ask_free(&a);
    get(&a, "/v1/messages",
        "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"thinking\":{\"type\":\"disabled\"},"
        "\"output_config\":{\"effort\":\"max\",\"format\":{\"type\":\"json_schema\",\"schema\":{\"type\":\"object\"}}},"
        "\"tools\":[{\"name\":\"f\"},{\"name\":\"g\"}],\"tool_choice\":{\"type\":\"tool\",\"name\":\"g\"}}");
    assert_string_equal(a.effort, "off");
    assert_true(a.tool_choice == HN_TOOLS_NAMED && a.n_tool_names == 1 && a.has_form);
    assert_string_equal(a.tool_names[0], "g");
    assert_string_equal(a.form_param, "output_config.format.schema");
    hn_ask_free(&a);
    get(&a, "/v1/messages",
        "{\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"output_config\":{\"effort\":\"low\"}"
        ","
        "\"thinking\":{\"type\":\"adaptive\"}}");
    assert_string_equal(a.effort, "low");
    assert_false(a.effort_unsaid);
    hn_ask_free(&a);

    get(&a, "/v1/responses",
        "{\"input\":\"hi\",\"max_output_tokens\":5,\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"n\","
        "\"schema\":"
        "{\"a\":1},\"strict\":true},\"verbosity\":\"low\"},\"reasoning\":{\"effort\":\"high\",\"summary\":\"auto\"},"
        "\"include\":[\"reasoning.encrypted_content\",\"message.output_text.logprobs\"],\"store\":false,\"stream\":"
        "true,"
        "\"parallel_tool_calls\":false,\"truncation\":\"disabled\",\"prompt_cache_key\":\"k\"}");
    assert_true(a.max_tokens == 5 && a.has_form && a.form.strict && a.top_logprobs == 0 && a.stream &&
                !a.parallel_calls);
    assert_string_equal(a.form.text, "{\"a\":1}");
    assert_string_equal(a.effort, "high");
    assert_string_equal(a.ignored, "");
    hn_ask_free(&a);
    hn_limits l = ask_limits();
    l.lenient_tools = true;
    assert_true(ask_of(&a, "/v1/responses", "{\"input\":\"hi\",\"tools\":[{\"type\":\"web_search\"}]}", &l, &r));
    assert_string_equal(a.ignored, "tools[0]");
    assert_null(a.tools);
    hn_ask_free(&a);

    get(&a, "/api/chat",
        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"format\":\"json\",\"think\":true,"
        "\"keep_alive\":\"1h2m3.5s\",\"options\":{\"temperature\":0.5,\"seed\":18446744073709551615,\"num_predict\":0,"
        "\"num_ctx\":4096,\"stop\":[\"a\",\"\"],\"num_thread\":4}}");
    assert_true(a.stream && a.has_form && a.form.kind == HONE_GRAMMAR_JSON_OBJECT && a.max_tokens == -1);
    assert_true(a.sampling.temp == 0.5f && a.has_seed && a.sampling.seed == UINT64_MAX && a.n_stops == 1);
    assert_true(a.keep_alive_ms == 3723500);
    assert_string_equal(a.effort, "on");
    hn_ask_free(&a);

    static const struct {
        const char *text;
        int64_t ms;
    } times[] = { { "5", 5000 },           { "0", 0 },
                  { "\"0\"", 0 },          { "\"300ms\"", 300 },
                  { "\"5m\"", 300000 },    { "-1", INT64_MAX },
                  { "0.5", 500 },          { "\"-1m\"", INT64_MAX },
                  { "\"24h\"", 86400000 }, { "1e300", INT64_MAX },
                  { "null", -1 },          { "\"30\"", 30000 } };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char body[128];
        snprintf(body, sizeof body, "{\"keep_alive\":%s}", times[i].text);
        get(&a, "/api/generate", body);
        assert_true(a.kind == HN_ASK_LOAD && a.keep_alive_ms == times[i].ms);
        hn_ask_free(&a);
    }
    get(&a, "/api/generate", "{\"prompt\":\"hi\",\"raw\":true,\"context\":[1,2],\"stream\":false}");
    assert_true(a.kind == HN_ASK_TEXT && a.n_context == 2 && a.context[1] == 2 && !a.stream && a.return_context);
    hn_ask_free(&a);
    get(&a, "/api/generate", "{\"prompt\":\"a\",\"suffix\":\"b\"}");
    assert_int_equal(a.kind, HN_ASK_INFILL);
    hn_ask_free(&a);
    get(&a, "/api/embeddings", "{\"prompt\":\"a\",\"options\":{\"num_ctx\":4}}");
    assert_true(a.kind == HN_ASK_EMBED && a.n_prompt == 1 && a.truncate && a.add_special);
    assert_string_equal(a.prompt->text, "a");
    hn_ask_free(&a);
    get(&a, "/api/embeddings", "{\"model\":\"m\"}");
    assert_int_equal(a.kind, HN_ASK_LOAD);
    hn_ask_free(&a);
    get(&a, "/api/embed", "{\"input\":[\"a\",\"b\"],\"dimensions\":5}");
    assert_true(a.kind == HN_ASK_EMBED && a.n_prompt == 2 && a.truncate && a.dimensions == 5);
    hn_ask_free(&a);
    get(&a, "/v1/embeddings", "{\"input\":[[1,2],[3]],\"encoding_format\":\"base64\",\"dimensions\":8}");
    assert_true(a.n_prompt == 2 && a.base64 && a.dimensions == 8 && !a.truncate && a.add_special);
    hn_ask_free(&a);
    get(&a, "/rerank", "{\"query\":\"q\",\"documents\":[\"x\",{\"text\":\"y\"}],\"top_n\":1}");
    assert_true(a.kind == HN_ASK_RERANK && a.n_prompt == 3 && a.top_n == 1);
    assert_string_equal(a.prompt[2].text, "y");
    hn_ask_free(&a);
}

/* Bodies as large as they may be: lists that have a limit, and calls that have none, answered from the last on. */
static void test_many(void **state)
{
    static const struct {
        const char *path, *begin, *entry, *end, *param;
        size_t most;
    } lists[] = {
        { "/v1/completions", "{\"prompt\":[", "\"a\"", "]}", "prompt", 64 },
        { "/v1/embeddings", "{\"input\":[", "[1]", "]}", "input", 2048 },
        { "/rerank", "{\"query\":\"q\",\"documents\":[", "\"a\"", "]}", "documents", 1024 },
        { "/v1/completions", "{\"prompt\":\"a\",\"stop\":[", "\"x\"", "]}", "stop", 256 },
        { "/v1/completions", "{\"prompt\":\"a\",\"lora\":[", "{\"id\":0}", "]}", "lora", 64 },
        { "/v1/completions", "{\"prompt\":\"a\",\"logit_bias\":[", "[1,1]", "]}", "logit_bias", 1024 },
        { "/completion", "{\"prompt\":\"a\",\"response_fields\":[", "\"x\"", "]}", "response_fields", 64 },
        { "/completion", "{\"prompt\":[1,", "\"a\"", "]}", "prompt", 4095 },
        { "/v1/responses",
          "{\"input\":\"x\",\"tools\":[{\"type\":\"function\",\"name\":\"f\"}],\"tool_choice\":{\"type\":\"allowed_"
          "tools\",\"mode\":"
          "\"auto\",\"tools\":[",
          "{\"name\":\"f\"}", "]}}", "tool_choice.tools[1024].name", 1024 },
    };
    hn_ask a;
    hn_refusal r;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (size_t extra = 0; extra < 2; extra++) {
            hn_bytes b = { 0 };
            hn_bytes_text(&b, lists[i].begin);
            for (size_t k = 0; k < lists[i].most + extra; k++) {
                hn_bytes_comma(&b);
                hn_bytes_text(&b, lists[i].entry);
            }
            hn_bytes_text(&b, lists[i].end);
            hn_bytes_add(&b, "", 1);
            bool taken = ask_of(&a, lists[i].path, b.p, NULL, &r);
            if (taken == (extra == 1)) fail_msg("%s: %zu more: %s", lists[i].param, extra, r.message);
            if (taken) hn_ask_free(&a);
            else assert_string_equal(r.param, lists[i].param);
            if (!taken) assert_string_equal(r.code, "out_of_range");
            hn_bytes_free(&b);
        }
    }

    enum { CALLS = 3000 };
    hn_bytes b = { 0 };
    hn_bytes_text(&b, "{\"input\":[");
    for (int k = 0; k < CALLS; k++)
        hn_bytes_printf(&b, "{\"type\":\"function_call\",\"call_id\":\"c%d\",\"name\":\"f\",\"arguments\":\"{}\"},", k);
    for (int k = CALLS - 1; k >= 0; k--)
        hn_bytes_printf(&b, "{\"type\":\"function_call_output\",\"call_id\":\"c%d\",\"output\":\"%d\"}%s", k, k,
                        k ? "," : "");
    hn_bytes_text(&b, "]}");
    hn_bytes_add(&b, "", 1);
    get(&a, "/v1/responses", b.p);
    assert_non_null(strstr(a.messages, "{\"role\":\"tool\",\"tool_call_id\":\"c1234\",\"content\":\"1234\"}"));
    hn_ask_free(&a);
    hn_bytes_free(&b);

    /* values without end are refused before a tree is made of them; commas in a string are none */
    for (size_t k = 0; k < 2; k++) {
        enum { MANY = 1 << 20 };
        hn_bytes_text(&b, k ? "{\"prompt\":[" : "{\"prompt\":\"\\\"");
        for (size_t i = 0; i < MANY; i++) hn_bytes_text(&b, ",");
        hn_bytes_text(&b, k ? "]}" : "\"}");
        hn_bytes_add(&b, "", 1);
        assert_int_equal(ask_of(&a, "/v1/completions", b.p, NULL, &r), k == 0);
        if (k == 0) assert_int_equal(a.prompt->len, MANY + 1);
        if (k == 0) hn_ask_free(&a);
        else assert_non_null(strstr(r.message, "more than 1048576 values"));
        hn_bytes_free(&b);
    }

    /* names that were passed over become a header */
    get(&a, "/v1/completions", "{\"prompt\":\"a\",\"a\\r\\nb\":1,\"\xC3\xA4,\":1}");
    assert_string_equal(a.ignored, "a\\x0d\\x0ab, ???");
    hn_ask_free(&a);
}

/* Anthropic's thoughts come to who asks for them: without a word they are off, and adaptive is the template's own. */
static void test_thinking(void **state)
{
    static const struct {
        const char *more, *effort;
        bool unsaid;
    } rows[] = { { "", "off", true },
                 { ",\"thinking\":null", "off", true },
                 { ",\"thinking\":{\"type\":\"disabled\"}", "off", false },
                 { ",\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024}", "on", false },
                 { ",\"thinking\":{\"type\":\"adaptive\"}", NULL, false },
                 { ",\"output_config\":{\"effort\":\"high\"}", "high", false } };
    static const char *const paths[] = { "/v1/messages", "/v1/messages/count_tokens" };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        char body[300];
        hn_ask a;
        const char *want = rows[i / 2].effort;
        snprintf(body, sizeof body, CHAT(",\"max_tokens\":9%s"), rows[i / 2].more);
        get(&a, paths[i % 2], body);
        if (!want != !a.effort || (want && strcmp(want, a.effort) != 0) || a.effort_unsaid != rows[i / 2].unsaid)
            fail_msg("%s: effort %s", body, a.effort ? a.effort : "none");
        hn_ask_free(&a);
    }
}

/* What a beta's message of the system has beside its text is named where it asks for something. */
static void test_system_between(void **state)
{
    static const struct {
        const char *system, *ignored;
        bool turn;
    } rows[] = {
        { "\"content\":\"s\",\"clear_at\":\"never\",\"output_config\":{}", "", true },
        { "\"content\":\"s\",\"clear_at\":null,\"output_config\":null", "", true },
        { "\"content\":\"s\",\"clear_at\":\"next_user_message\"", "messages[1].clear_at", true },
        { "\"output_config\":{\"effort\":\"low\"}", "messages[1].output_config", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[300];
        hn_ask a;
        snprintf(body, sizeof body, "{\"max_tokens\":9,\"messages\":[" U ",{\"role\":\"system\",%s}]}", rows[i].system);
        get(&a, "/v1/messages", body);
        assert_string_equal(a.ignored, rows[i].ignored);
        assert_string_equal(a.messages, rows[i].turn ? "[" U ",{\"role\":\"system\",\"content\":\"s\"}]" : "[" U "]");
        hn_ask_free(&a);
    }
}

/* As many tools as agents bring, each found by its name, and none twice. */
static void test_many_tools(void **state)
{
    enum { MOST = 1024 };
    static const struct {
        const char *last, *code, *param;
    } rows[] = { { "", NULL, "" },
                 { ",{\"name\":\"tool_700\"}", "out_of_range", "tools[1024].name" },
                 { ",{\"name\":\"other\"}", "out_of_range", "tools" } };
    hn_refusal r;
    hn_ask a;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_bytes b = { 0 };
        hn_bytes_text(&b, "{\"max_tokens\":9,\"messages\":[" U "],\"tools\":[");
        for (int k = 0; k < MOST; k++) hn_bytes_printf(&b, "%s{\"name\":\"tool_%d\"}", k ? "," : "", k);
        hn_bytes_printf(&b, "%s],\"tool_choice\":{\"type\":\"tool\",\"name\":\"tool_1023\"}}", rows[i].last);
        hn_bytes_add(&b, "", 1);
        bool ok = ask_of(&a, "/v1/messages", b.p, NULL, &r);
        hn_bytes_free(&b);
        if (ok != !rows[i].code) fail_msg("%s: %s (%s)", rows[i].last, r.message, r.param);
        if (ok) {
            assert_true(a.n_tool_names == 1 && strcmp(a.tool_names[0], "tool_1023") == 0);
            hn_ask_free(&a);
        } else {
            assert_string_equal(r.code, rows[i].code);
            assert_string_equal(r.param, rows[i].param);
        }
    }
}

/* Bodies as programs send them, whole: what asks for nothing is taken, and only what nobody knows is named. */
static void test_programs(void **state)
{
#define NULLS                                                                                                      \
    ",\"stop\":null,\"seed\":null,\"logit_bias\":{},\"tools\":null,\"tool_choice\":null,\"response_format\":null," \
    "\"parallel_tool_calls\":null,\"logprobs\":null,\"top_logprobs\":null,\"max_tokens\":null,\"user\":\"u\","     \
    "\"metadata\":{\"a\":1},\"n\":1,\"presence_penalty\":0,\"frequency_penalty\":0.0,\"top_p\":1"
    static const struct {
        const char *more, *ignored, *effort;
    } rows[] = {
        { ",\"stream\":true,\"stream_options\":{\"include_usage\":true}" NULLS, "", NULL },
        { ",\"chat_id\":\"x\",\"files\":[]", "chat_id, files", NULL },
        { ",\"max_completion_tokens\":9,\"max_tokens\":9,\"reasoning_effort\":\"medium\"", "", "medium" },
        { ",\"enable_thinking\":false", "", "off" },
        { ",\"enable_thinking\":true,\"reasoning_effort\":\"low\"", "", "low" },
        { ",\"reasoning\":{\"effort\":\"high\",\"exclude\":false}", "reasoning.exclude", "high" },
        { ",\"reasoning\":{\"enabled\":true,\"max_tokens\":40}", "", "on" },
        { ",\"min_tokens\":0,\"stop_token_ids\":[],\"length_penalty\":1.0,\"best_of\":1,\"use_beam_search\":false,"
          "\"include_stop_str_in_output\":false,\"skip_special_tokens\":true",
          "skip_special_tokens", NULL },
    };
    hn_ask a;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[1024];
        snprintf(body, sizeof body, "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]%s}", rows[i].more);
        get(&a, "/v1/chat/completions", body);
        assert_string_equal(a.ignored, rows[i].ignored);
        if ((rows[i].effort == NULL) != (a.effort == NULL) || (a.effort && strcmp(a.effort, rows[i].effort) != 0))
            fail_msg("%s: effort %s", body, a.effort ? a.effort : "none");
        hn_ask_free(&a);
    }
    get(&a, "/v1/chat/completions", CHAT(",\"reasoning\":{\"max_tokens\":40}"));
    assert_int_equal(a.reasoning_budget, 40);
    hn_ask_free(&a);
    get(&a, "/v1/chat/completions",
        "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":null,"
        "\"reasoning_content\":\"so\"},{\"role\":\"user\",\"content\":\"go on\"}]}");
    assert_non_null(strstr(a.messages, "{\"role\":\"assistant\",\"content\":\"\",\"reasoning_content\":\"so\"}"));
    hn_ask_free(&a);
}

/* What programs send whatever is wanted (SillyTavern's and LangChain's best_of, the num_ctx of Continue, Zed and
 * Home Assistant, VS Code's store …): taken, and named where it has no effect.
 * A server of --strict-fields refuses what would be named. */
static void test_always_sent(void **state)
{
    static const struct {
        const char *path, *body, *ignored;
    } rows[] = {
        { "/v1/completions", TEXT(",\"best_of\":2,\"n\":2"), "" },
        { "/completion", TEXT(",\"adaptive_target\":-0.01,\"top_n_sigma\":0"), "" },
        { "/v1/completions", TEXT(",\"guided_grammar\":\"\",\"guided_regex\":\"\""), "" },
        { "/v1/responses", "{\"input\":\"hi\",\"store\":true}", "store" },
        { "/api/chat", CHAT(",\"options\":{\"num_ctx\":32768}"), "options.num_ctx" },
        { "/api/embed", "{\"input\":\"hi\",\"options\":{\"num_ctx\":8192}}", "options.num_ctx" },
    };
    hn_limits strict = ask_limits();
    hn_ask a;
    hn_refusal r;
    strict.strict_fields = true;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        get(&a, rows[i].path, rows[i].body);
        assert_string_equal(a.ignored, rows[i].ignored);
        assert_false(a.has_form);
        hn_ask_free(&a);
        assert_int_equal(ask_of(&a, rows[i].path, rows[i].body, &strict, &r), !*rows[i].ignored);
        if (!*rows[i].ignored) hn_ask_free(&a);
    }
    get(&a, "/tokenize", "{\"model\":\"m\",\"prompt\":\"hi\"}"); /* as vLLM has it */
    assert_true(a.add_special && a.n_prompt == 1 && a.prompt->len == 2);
    hn_ask_free(&a);
    get(&a, "/tokenize", "{\"prompt\":\"hi\",\"add_special_tokens\":false}");
    assert_true(!a.add_special && a.prompt->len == 2);
    hn_ask_free(&a);
    get(&a, "/tokenize", "{\"content\":\"hello\",\"prompt\":\"hi\"}");
    assert_true(!a.add_special && a.prompt->len == 5);
    hn_ask_free(&a);
    get(&a, C_PATH, CHAT(",\"guided_choice\":[\"yes\",\"no\"]"));
    assert_true(a.form.kind == HONE_GRAMMAR_CHOICE && a.form.n_choices == 2);
    hn_ask_free(&a);
    get(&a, C_PATH, CHAT(",\"guided_json\":{\"type\":\"object\"}"));
    assert_true(a.form.kind == HONE_GRAMMAR_JSON_SCHEMA);
    hn_ask_free(&a);
}

/* --lenient-tools, whatever the API; names of tools as long as MCP has them. */
static void test_tools_of_others(void **state)
{
    static const struct {
        const char *path, *body;
    } rows[] = { { C_PATH, CHAT(",\"tools\":[{\"type\":\"web_search\"}]") },
                 { "/v1/responses", "{\"input\":\"hi\",\"tools\":[{\"type\":\"custom\",\"name\":\"x\"}]}" },
                 { "/v1/messages",
                   CHAT(",\"max_tokens\":5,\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"w\"}]") },
                 { "/api/chat", CHAT(",\"tools\":[{\"type\":\"web_search\"}]") } };
    hn_limits l = ask_limits();
    char name[130], body[400];
    hn_ask a;
    hn_refusal r;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        l.lenient_tools = false;
        assert_false(ask_of(&a, rows[i].path, rows[i].body, &l, &r));
        assert_non_null(strstr(r.message, "--lenient-tools"));
        assert_string_equal(r.param, "tools[0].type");
        l.lenient_tools = true;
        if (!ask_of(&a, rows[i].path, rows[i].body, &l, &r)) fail_msg("%s: %s", rows[i].body, r.message);
        assert_string_equal(a.ignored, "tools[0]");
        assert_null(a.tools);
        hn_ask_free(&a);
    }
    for (int n = 128; n <= 129; n++) {
        memset(name, 'n', sizeof name);
        name[n] = 0;
        snprintf(body, sizeof body, CHAT(",\"max_tokens\":5,\"tools\":[{\"name\":\"%s\",\"input_schema\":{}}]"), name);
        assert_int_equal(ask_of(&a, "/v1/messages", body, NULL, &r), n == 128);
        if (n == 128) hn_ask_free(&a);
    }
}

/* A server that takes nothing it does not know. */
static void test_strict(void **state)
{
    hn_limits l = ask_limits();
    hn_ask a;
    hn_refusal r;
    l.strict_fields = true;
    assert_false(ask_of(&a, "/v1/completions", TEXT(",\"foo\":1"), &l, &r));
    assert_string_equal(r.code, "unsupported_parameter");
    assert_string_equal(r.param, "foo");
    assert_true(ask_of(&a, "/v1/completions", TEXT(",\"foo\":null,\"user\":\"x\""), &l, &r));
    hn_ask_free(&a);
    l = ask_limits();
    l.openai_defaults = true;
    assert_true(ask_of(&a, "/v1/completions", TEXT(""), &l, &r));
    assert_true(a.sampling.temp == 1 && a.sampling.top_p == 1 && a.sampling.top_k == 0 && a.sampling.min_p == 0);
    hn_ask_free(&a);
}

/* A developer is one: what becomes of it where a template has none the library knows (test_chat, orders). */
static void test_developer(void **state)
{
#define D(role) "{\"role\":\"" role "\",\"content\":\"x\"}"
    static const char *const rows[] = { "[" D("developer") "]", "[" U "," D("developer") "," U "," D("developer") "]",
                                        "[" D("system") "," U "]" };
    hn_ask a;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[600];
        snprintf(body, sizeof body, "{\"messages\":%s}", rows[i]);
        get(&a, "/v1/chat/completions", body);
        assert_string_equal(a.messages, rows[i]);
        hn_ask_free(&a);
    }
    get(&a, "/v1/responses", "{\"input\":[" D("developer") "]}");
    assert_string_equal(a.messages, "[" D("developer") "]");
    hn_ask_free(&a);
#undef D
}

/* llama-server's name of n is as good as n where there is one answer. */
static void test_one_answer(void **state)
{
    static const char *const rows[][2] = {
        { "/v1/messages", "{\"max_tokens\":9,\"messages\":[" U "],\"n_cmpl\":1}" },
        { "/v1/responses", "{\"input\":\"hi\",\"n_cmpl\":1}" },
        { "/api/chat", "{\"messages\":[" U "],\"options\":{\"n_cmpl\":1}}" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        hn_ask a;
        get(&a, rows[i][0], rows[i][1]);
        assert_int_equal(a.n, 1);
        hn_ask_free(&a);
    }
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void test_words(void **state)
{
    hn_refusal r;
    hn_bytes o = { 0 };
    assert_false(hn_refuse(&r, 429, "queue_full", NULL, "busy \"%s\"\n", "x"));
    assert_true(hn_refusal_body("/v1/chat/completions", &r, "id1", &o));
    hn_bytes_add(&o, "", 1);
    assert_string_equal(o.p, "{\"error\":{\"message\":\"busy \\\"x\\\" \",\"type\":\"rate_limit_error\",\"param\":null,"
                             "\"code\":\"queue_full\"}}");
    o.n = 0;
    hn_refuse(&r, 503, "loading", NULL, "wait a little");
    assert_true(hn_refusal_body("/v1/messages/count_tokens", &r, "id1", &o));
    hn_bytes_add(&o, "", 1);
    assert_string_equal(o.p,
                        "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"wait a little\"},"
                        "\"request_id\":\"id1\"}");
    o.n = 0;
    assert_true(hn_refusal_body("/api/chat", &r, "id1", &o));
    hn_bytes_add(&o, "", 1);
    assert_string_equal(o.p, "{\"error\":\"wait a little\"}");
    o.n = 0;
    hn_refuse_context(&r, 5000, 4096);
    assert_true(hn_refusal_body("/completion", &r, "id1", &o));
    hn_bytes_add(&o, "", 1);
    assert_non_null(strstr(o.p, "exceeds the available context size"));
    assert_non_null(strstr(o.p,
                           "\"type\":\"exceed_context_size_error\",\"param\":null,\"code\":\"context_length_exceeded\","
                           "\"n_prompt_tokens\":5000,\"n_ctx\":4096}}"));
    hn_bytes_free(&o);

    static const struct {
        int status;
        const char *type;
    } types[] = { { 400, "invalid_request_error" }, { 401, "authentication_error" }, { 403, "permission_error" },
                  { 404, "not_found_error" },       { 405, "not_found_error" },      { 415, "not_found_error" },
                  { 429, "rate_limit_error" },      { 500, "server_error" },         { 501, "not_supported_error" },
                  { 503, "unavailable_error" },     { 504, "timeout_error" } };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        hn_refuse(&r, types[i].status, NULL, NULL, "some words");
        assert_string_equal(r.type, types[i].type);
    }
}

/* Routes: each has its own, and no other method or name. */
static void test_routes(void **state)
{
    const char *path;
    bool ollama;
    size_t i = 0;
    for (; hn_voice_route(i, &path, &ollama); i++) {
        const hn_voice *v = hn_voice_find("POST", path, true);
        assert_non_null(v);
        assert_non_null(v->parse);
        assert_true((v->found == NULL) == (v->whole != NULL) || v->found);
        assert_true((v->stream_type == NULL) == (v->begin == NULL));
        assert_true((hn_voice_find("POST", path, false) == NULL) == ollama);
        assert_null(hn_voice_find("GET", path, true));
    }
    assert_true(i > 10);
    assert_null(path);
    assert_null(hn_voice_find("POST", "/v1/chat/completions/", true));
    assert_null(hn_voice_find("POST", "/v1/files", true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_no_json),
        cmocka_unit_test(test_depth),          cmocka_unit_test(test_messages),
        cmocka_unit_test(test_sampling),       cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_samplers),       cmocka_unit_test(test_native_names),
        cmocka_unit_test(test_editors),        cmocka_unit_test(test_limits_of_tokens),
        cmocka_unit_test(test_forms),          cmocka_unit_test(test_tools),
        cmocka_unit_test(test_strict),         cmocka_unit_test(test_programs),
        cmocka_unit_test(test_always_sent),    cmocka_unit_test(test_tools_of_others),
        cmocka_unit_test(test_other_apis),     cmocka_unit_test(test_many),
        cmocka_unit_test(test_words),          cmocka_unit_test(test_routes),
        cmocka_unit_test(test_developer),      cmocka_unit_test(test_one_answer),
        cmocka_unit_test(test_thinking),       cmocka_unit_test(test_many_tools),
        cmocka_unit_test(test_system_between),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
