/* What may come next in an answer with calls of tools (text/reply.h): calls that are required, one behind the other, a
 * form beside calls, and reasoning within its budget. Scripts: each token of them may come, or may not where one says
 * so (a \1 in front of it); parts are written as {R}reasoning {T}answer {N}name{A}arguments{E}. */
#include "base/json_tree.h"
#include "byte_vocab.h"
#include "call_samples.h"
#include "text/reply.h"

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
enum { WORDS = 8, NO = 1 };

static const char *tools =
    "[{\"name\":\"f\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"}}}},"
    "{\"name\":\"g\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}]";

typedef struct site {
    hn_vocab *v;
    hn_jinja *t;
    hn_reply_format f;
    hn_call_format calls;
    hn_call_kit *kit;
    hone_grammar *form;
} site;

static site open_site(const char *source, const char *const *control, const char *const *user, bool one,
                      const char *form)
{
    static const hn_jinja_time now = { 2026, 2, 3, 4, 5, 6 };
    site s = { .v = byte_vocab(NULL, control, user) };
    hone_error e = { 0 };
    hone_str text = { source, strlen(source) };
    hn_chat c = { .bos = "<s>", .eos = "</s>", .now = &now };
    json_t *list;
    const hn_json_rules big = { .flags = HN_JSON_BIG };
    assert_int_equal(hn_json_tree(&list, tools, strlen(tools), &big, "tools", &e), HONE_OK);
    if (hn_jinja_parse(&s.t, source, text.len, "t", NULL, &e) != HONE_OK) fail_msg("%s", e.message);
    assert_int_equal(hn_reply_format_make(&s.f, s.t, text, &c, s.v, &e), HONE_OK);
    assert_int_equal(hn_call_format_make(&s.calls, s.t, text, &c, &e), HONE_OK);
    if (hn_call_kit_new(&s.kit, &s.calls, s.v, &(hn_call_ask){ .tools = list, .text = tools, .one = one }, &e) !=
        HONE_OK)
        fail_msg("%s", e.message);
    hone_grammar_params p = { .text = form, .len = form ? strlen(form) : 0 };
    if (form && hone_grammar_compile(&s.form, &p, &e) != HONE_OK) fail_msg("%s", e.message);
    json_decref(list);
    return s;
}

static void close_site(site *s)
{
    hone_grammar_free(s->form);
    hn_call_kit_drop(s->kit);
    hn_jinja_free(s->t);
    hn_vocab_free(s->v);
}

static int32_t token_at(const hn_vocab *v, const char *s, size_t *len)
{
    int32_t best = BV_BYTES + (unsigned char)*s;
    *len = 1;
    for (int32_t id = BV_PIECES; id < hn_vocab_size(v); id++) {
        size_t n;
        const char *t = hn_vocab_piece(v, id, true, &n);
        if (n > *len && strncmp(s, t, n) == 0) best = id, *len = n;
    }
    return best;
}

static bool allowed(hn_reply *r, int32_t id)
{
    uint64_t bits[WORDS];
    bool all;
    hone_error e = { 0 };
    if (hn_reply_mask(r, -1, bits, WORDS, &all, &e) != HONE_OK) fail_msg("%s", e.message);
    return all || (bits[id / 64] >> id % 64 & 1);
}

static void hear(char *out, hone_part *last, const hone_reply_part *p, size_t n)
{
    static const char *const names[] = {
        [HONE_PART_TEXT] = "{T}",    [HONE_PART_REASONING] = "{R}", [HONE_PART_COMMENTARY] = "{C}",
        [HONE_PART_CALL] = "{?}",    [HONE_PART_CALL_NAME] = "{N}", [HONE_PART_ARGUMENTS] = "{A}",
        [HONE_PART_CALL_END] = "{E}"
    };
    for (size_t i = 0; i < n; i++) {
        if (p[i].part != *last) strcat(out, names[p[i].part]);
        *last = p[i].part;
        strncat(out, p[i].text, p[i].len);
    }
}

/* Says it, token by token; what it is taken for. ends: the turn does, or it is cut off there. */
static const char *say(const site *s, hn_reply_setup x, const char *said, bool ends)
{
    static char out[8192];
    hn_reply *r;
    hone_error e = { 0 };
    const hone_reply_part *p;
    size_t n, k;
    hone_part last = (hone_part)-1;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    *out = 0;
    x.v = s->v, x.f = &s->f, x.kit = s->kit, x.form = s->form;
    if (!x.prompt) x.prompt = "";
    x.len = strlen(x.prompt);
    if (hn_reply_open(&r, &x, &e) != HONE_OK) fail_msg("%s", e.message);
    for (const char *at = said; *at && !end; at += k) {
        bool no = *at == NO;
        int32_t id = token_at(s->v, at += no, &k);
        if (allowed(r, id) == no) fail_msg("\"%s\": it %s, of %s", at, no ? "may come" : "may not come", said);
        hone_status st = hn_reply_push(r, id, &p, &n, &end, &e);
        if (st != (no ? HONE_E_ARG : HONE_OK)) fail_msg("\"%s\": %d %s, of %s", at, st, e.message, said);
        if (!no) hear(out, &last, p, n);
    }
    if (ends && !end) fail_msg("the turn goes on behind %s", said);
    assert_int_equal(hn_reply_flush(r, &p, &n, &e), HONE_OK);
    hear(out, &last, p, n);
    hn_reply_free(r);
    return out;
}

static void is_said(const site *s, hn_reply_setup x, const char *said, bool ends, const char *want)
{
    const char *got = say(s, x, said, ends);
    if (strcmp(got, want) != 0) fail_msg("%s\n is %s\n not %s", said, got, want);
}

#define CALL_F "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"
#define CALL_G "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>"
#define HEARD_F "{N}f{A}{\"a\": 1}{E}"
#define HEARD_G "{N}g{A}{}{E}"

/* Calls that are required may be several, whether their mark is a token of the vocabulary or text. */
static void test_several(void **state)
{
    (void)state;
    const char *const *const control[] = { LIST("<|user|>", "<|end|>", "<tool_call>", "</tool_call>"),
                                           LIST("<|user|>", "<|end|>"), LIST("<|user|>", "<|end|>") },
                             *const *const user[] = { NULL, NULL, LIST("<tool_call>", "</tool_call>") };
    for (int k = 0; k < 3; k++) {
        site s = open_site(samples[0].source, control[k], user[k], false, NULL);
        hn_reply_setup x = { .required = true, .reasoning_budget = -1 };
        is_said(&s, x, CALL_F "\n" CALL_G "\n" CALL_F "<|end|>", true, HEARD_F HEARD_G HEARD_F);
        is_said(&s, x, "\1x" CALL_F "\1x\n" CALL_G "<|end|>", true, HEARD_F HEARD_G);
        close_site(&s);
        s = open_site(samples[0].source, control[k], user[k], true, NULL);
        x.one_call = true;
        is_said(&s, x, CALL_F "\1x\1<<|end|>", true, HEARD_F);
        close_site(&s);
    }
    /* every call with a mark of its own, and none around them */
    site s = open_site(samples[5].source, LIST("<|user|>", "<|end|>", "[TOOL_CALLS]", "[ARGS]"), NULL, false, NULL);
    hn_reply_setup x = { .required = true, .reasoning_budget = -1 };
    is_said(&s, x, "[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}<|end|>", true, HEARD_F HEARD_G);
    close_site(&s);
}

/* Blanks between reasoning and the first call are no part of the calls; those between two calls are. */
static void test_blanks(void **state)
{
    (void)state;
    site s =
        open_site(samples[0].source, LIST("<|user|>", "<|end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"),
                  NULL, false, NULL);
    hn_reply_setup x = { .required = true, .reasoning_budget = -1 };
    is_said(&s, x, "<think>so</think>" CALL_F "\n" CALL_G "<|end|>", true, "{R}so" HEARD_F HEARD_G);
    is_said(&s, x, "<think>so</think>\n" CALL_F "\n" CALL_G "<|end|>", true, "{R}so" HEARD_F HEARD_G);
    close_site(&s);
}

/* A form beside calls that look like it: what the answer is, is said when it is known. */
static void test_form_or_call(void **state)
{
    (void)state;
    static const char form[] =
        "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"score\":{\"type\":"
        "\"integer\"}},\"required\":[\"name\",\"score\"]}",
                      any[] = "{\"type\":\"object\",\"additionalProperties\":true}";
    const char *const *control = LIST("<|user|>", "<|end|>");
    hn_reply_setup x = { .reasoning_budget = -1 };
    site s = open_site(samples[4].source, control, NULL, false, form);
    is_said(&s, x, "{\"name\": \"Alexan", false, "{T}{\"name\": \"Alexan");
    is_said(&s, x, "{\"name\": \"f\", \"sc", false, "{T}{\"name\": \"f\", \"sc");
    is_said(&s, x, "{\"name\": \"f\", \"score\": 3}<|end|>", true, "{T}{\"name\": \"f\", \"score\": 3}");
    is_said(&s, x, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|end|>", true, HEARD_F);
    is_said(&s, x, "{\"name\": \"f\", \"parameters\": {\"a\"", false, "{N}f{A}{\"a\"");
    is_said(&s, x, "{\"name\":\1x", false, "{T}{\"name\":");
    close_site(&s);
    s = open_site(samples[4].source, control, NULL, false, any); /* both to the end */
    is_said(&s, x, "{\"name\": \"f\", \"parameters\": {\"a\": 1}}<|end|>", true, HEARD_F);
    is_said(&s, x, "{\"name\": \"f\", \"parameters\": {\"b\": 1}}<|end|>", true,
            "{T}{\"name\": \"f\", \"parameters\": {\"b\": 1}}");
    close_site(&s);
    /* a tag of calls in the text of a form is text */
    s = open_site(samples[0].source, control, NULL, false, "{\"type\":\"string\"}");
    is_said(&s, x, "\"<tool_call>{\\\"name\\\": 1}\"<|end|>", true, "{T}\"<tool_call>{\\\"name\\\": 1}\"");
    is_said(&s, x, CALL_F "<|end|>", true, HEARD_F);
    close_site(&s);
    s = open_site(samples[0].source, control, LIST("<tool_call>", "</tool_call>"), false, "{\"type\":\"string\"}");
    is_said(&s, x, "\"<tool_call>{\\\"name\\\": 1}\"<|end|>", true, "{T}\"<tool_call>{\\\"name\\\": 1}\"");
    is_said(&s, x, CALL_F "<|end|>", true, HEARD_F);
    close_site(&s);
}

static const char python[] =
    BEGIN ANSWER "<|tcs|>[" EACH SEP(", ") "{{ f.name }}(" ARGS "{{ k }}={{ \"'\" ~ v ~ \"'\" if v is string else v }}"
                                           "{{ '' if loop.last else ', ' }}{% endfor %}){% endfor %}]<|tce|>" END;
static const char gemma[] =
    BEGIN ANSWER EACH "<|tool_call>call:{{ f.name }}{{ '{' }}" ARGS
                      "{{ k }}:{% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}{{ v | tojson }}{% endif %}"
                      "{{ '' if loop.last else ',' }}{% endfor %}{{ '}' }}<tool_call|>{% endfor %}" END;
static const char harmony[] =
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}<|message|>"
    "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    "{% if tools %}{% endif %}";
#define TO_F "<|channel|>commentary to=functions.f<|message|>"
#define NEXT "<|end|><|start|>assistant"

/* gpt-oss: a call is a message beside the answer, whose form is not that of its arguments. */
static void test_harmony_form(void **state)
{
    (void)state;
    site s = open_site(
        harmony, LIST("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>", "<|return|>"),
        NULL, false,
        "{\"type\":\"object\",\"properties\":{\"b\":{\"type\":\"null\"}},\"required\":"
        "[\"b\"]}");
    hn_reply_setup x = { .reasoning_budget = -1, .prompt = "<|start|>assistant" };
    is_said(&s, x, "<|channel|>final<|message|>{\"\1ab\":null}<|end|>", true, "{T}{\"b\":null}");
    is_said(&s, x, TO_F "{\"\1ba\":1}<|call|>", true, "{N}f{A}{\"a\":1}{E}");
    close_site(&s);
}

/* Reasoning that begins again has no budget of its own, and where it is spent none begins. */
static void test_budget(void **state)
{
    (void)state;
    site s = open_site(
        harmony, LIST("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>", "<|return|>"),
        NULL, false, NULL);
    hn_reply_setup x = { .reasoning_budget = 4, .prompt = "<|start|>assistant" };
    is_said(&s, x,
            "<|channel|>analysis<|message|>abcd\1e" NEXT "<|channel|>\1af\1<|message|>inal<|message|>yes"
            "<|return|>",
            true, "{R}abcd{T}yes");
    is_said(&s, x,
            "<|channel|>analysis<|message|>ab" NEXT "<|channel|>analysis<|message|>cd\1e" NEXT TO_F "{\"a\":1}<|call|>",
            true, "{R}abcd{N}f{A}{\"a\":1}{E}");
    x.required = true;
    is_said(&s, x, "<|channel|>analysis<|message|>abcd\1e" NEXT "<|channel|>\1a\1fcommentary to=functions.f<|message|>",
            false, "{R}abcd{N}f");
    close_site(&s);
    const char *const *think = LIST("<|user|>", "<|end|>", "<think>", "</think>");
    s = open_site(samples[0].source, think, NULL, false, NULL);
    x = (hn_reply_setup){ .reasoning_budget = 2 };
    is_said(&s, x, "<think>ab\1c</think>\1<think>yes\1<think><|end|>", true, "{R}ab{T}yes");
    is_said(&s, x, "<think>a</think>x<think>b\1c</think>\1<think>y<|end|>", true, "{R}a{T}x{R}b{T}y");
    x.reasoning_budget = 0; /* a model that must think may show that it does not */
    is_said(&s, x, "<think>\1a</think>\1<think>yes<|end|>", true, "{T}yes");
    close_site(&s);
    char thinks[1024];
    snprintf(thinks, sizeof thinks, "{# <|channel><channel|> #}%s", gemma);
    s = open_site(thinks, LIST("<|user|>", "<|end|>", "<|tool_call>", "<tool_call|>", "<|channel>", "<channel|>"), NULL,
                  false, NULL);
    x.reasoning_budget = 2;
    is_said(&s, x, "<|channel>thought\nab\1c<channel|>\1<|channel>yes<|end|>", true, "{R}ab{T}yes");
    close_site(&s);
    s = open_site(samples[0].source, LIST("<|user|>", "<|end|>"), NULL, false, NULL); /* tags are text */
    x.reasoning_budget = 2;
    is_said(&s, x, "<think>ab\1c</think><think>\1c</think>yes<|end|>", true, "{R}ab{T}yes");
    close_site(&s);
}

/* ---- arguments one by one --------------------------------------------------------------------------------- */

#define TOOL(name, schema) "{\"name\":\"" name "\",\"parameters\":" schema "}"
#define BEGUN(name) "<tool_call>\n<function=" name ">\n"
#define ENDED "</function>\n</tool_call>"
#define TAGS LIST("<|user|>", "<|end|>", "<tool_call>", "</tool_call>")

/* An argument comes once, and all that are required come, whatever the order. */
static void test_any_order(void **state)
{
    (void)state;
    const char *kept = tools;
    tools =
        "[" TOOL("f", "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"integer\"},"
                      "\"c\":{\"type\":\"integer\"}},\"required\":[\"a\"]}") "]";
    site s = open_site(samples[12].source, TAGS, NULL, false, NULL);
    is_said(&s, (hn_reply_setup){ .reasoning_budget = -1 },
            BEGUN("f") "<parameter=b>\n2\n</parameter>\n<\1/parameter=\1bc>\n3\n</parameter>\n<parameter=\1b\1ca>\n1\n"
                       "</parameter>\n" ENDED "<|end|>",
            true, "{N}f{A}{\"b\": 2, \"c\": 3, \"a\": 1}{E}");
    close_site(&s);
    tools = kept;
}

/* What else there may be: nothing, values of one schema, or anything. */
static void test_other_arguments(void **state)
{
    (void)state;
    const char *kept = tools;
    hn_reply_setup x = { .reasoning_budget = -1 };
    tools = "[" TOOL("none", "{\"type\":\"object\",\"additionalProperties\":false}") ","                            //
        TOOL("some", "{\"type\":\"object\",\"properties\":{},\"additionalProperties\":{\"type\":\"integer\"}}") "," //
        TOOL("text", "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}") ","                    //
        TOOL("any", "{\"type\":\"object\",\"additionalProperties\":true}") "]";
    site s = open_site(samples[12].source, TAGS, NULL, false, NULL);
    is_said(&s, x, BEGUN("none") "<\1p/function>\n</tool_call><|end|>", true, "{N}none{A}{}{E}");
    is_said(&s, x, BEGUN("some") "<parameter=n>\n\1x\1\"12\n</parameter>\n" ENDED "<|end|>", true,
            "{N}some{A}{\"n\": 12}{E}");
    is_said(&s, x, BEGUN("text") "<parameter=n>\n12\n</parameter>\n" ENDED "<|end|>", true,
            "{N}text{A}{\"n\": \"12\"}{E}");
    is_said(&s, x, BEGUN("any") "<parameter=n>\n12\n</parameter>\n" ENDED "<|end|>", true, "{N}any{A}{\"n\": 12}{E}");
    close_site(&s);
    s = open_site(python, LIST("<|user|>", "<|end|>", "<|tcs|>", "<|tce|>"), NULL, false, NULL);
    is_said(&s, x, "<|tcs|>[none(\1n), some(n=\1'\1[3), any(n=[])]<|tce|>", false,
            "{N}none{A}{}{E}{N}some{A}{\"n\": 3}{E}{N}any{A}{\"n\": []}{E}");
    close_site(&s);
    tools = kept;
}

/* What cannot be held is told, or refused where it must be. */
static void test_refused(void **state)
{
    (void)state;
    const char *kept = tools;
    hone_error e = { 0 };
    hn_call_kit *kit;
    tools =
        "[{\"name\":\"f\",\"strict\":true,\"parameters\":{\"properties\":{\"a\":{}},\"not\":{\"required\":[\"a\"]}}}]";
    json_t *strict = json_loads(tools, 0, NULL);
    tools = "[" TOOL("f", "{\"properties\":{\"a\":{}},\"not\":{\"required\":[\"a\"]}}") "]";
    site s = open_site(samples[12].source, TAGS, NULL, false, NULL);
    assert_non_null(strstr(s.kit->notes, "tools[0] f: /not is not enforced: the calls of this template"));
    assert_int_equal(hn_call_kit_new(&kit, &s.calls, s.v, &(hn_call_ask){ .tools = strict }, &e), HONE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "/not: the calls of this template"));
    json_decref(strict);
    close_site(&s);
    tools = kept;
}

/* Numbers that no double holds are asked for with all their digits. */
static void test_digits(void **state)
{
    (void)state;
    const char *kept = tools;
    static const char *const rows[] = {
        "[" TOOL("f", "{\"properties\":{\"a\":{\"const\":12345678901234567890123}},\"required\":[\"a\"]}") "]",
        "[{\"name\":\"g\"},{\"parameters\":{\"properties\":{\"a\":{\"const\":12345678901234567890123}},"
        "\"type\":\"object\",\"required\":[\"a\"]},\"name\":\"f\"}]",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tools = rows[i];
        site s = open_site(samples[0].source, LIST("<|user|>", "<|end|>"), NULL, false, NULL);
        hn_reply_setup x = { .required = true, .reasoning_budget = -1 };
        is_said(&s, x,
                "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \1"
                "212345678901234567890123\1"
                "1}}\n</tool_call><|end|>",
                true, "{N}f{A}{\"a\": 12345678901234567890123}{E}");
        close_site(&s);
    }
    /* of two members of one name the last, as the prompt has it */
    tools = "[" TOOL("f", "{\"properties\":{\"a\":{\"const\":0.5}},\"properties\":{\"b\":{\"const\":2.5}},"
                          "\"required\":[\"b\"]}") "]";
    site s = open_site(samples[0].source, LIST("<|user|>", "<|end|>"), NULL, false, NULL);
    is_said(&s, (hn_reply_setup){ .required = true, .reasoning_budget = -1 },
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"\1ab\": 2.5}}\n</tool_call><|end|>", true,
            "{N}f{A}{\"b\": 2.5}{E}");
    close_site(&s);
    tools = kept;
}

/* A word that is not enforced takes nothing from what the others say, and neither do two tools' from each other. */
static void test_lenient(void **state)
{
    (void)state;
    const char *kept = tools;
    const hn_reply_setup x = { .required = true, .reasoning_budget = -1 };
    tools = "[" TOOL(
        "f", "{\"properties\":{\"a\":{\"type\":\"array\",\"uniqueItems\":true},\"b\":{\"type\":\"string\","
             "\"pattern\":\"(?<!x)y\"},\"c\":{\"oneOf\":[{\"minimum\":1},{\"type\":\"integer\"}]}},"
             "\"required\":[\"a\"],\"if\":{},\"odd\":1}") "," TOOL("g", "{\"properties\":{\"$odd\":{\"enum\":[3]}},"
                                                                        "\"required\":[\"$odd\"],\"odd\":1}") "]";
    site s = open_site(samples[12].source, TAGS, NULL, false, NULL);
    static const char *const told[] = { "tools[0] f: ",
                                        "/properties/a/uniqueItems is not enforced",
                                        "/if is not enforced",
                                        "/properties/b/pattern is not enforced",
                                        "/properties/c/oneOf is held as anyOf: it is not sure",
                                        "/odd is not known, and ignored; ",
                                        "tools[1] g: /odd is not known" };
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (!strstr(s.kit->notes, told[i])) fail_msg("%s: not in %s", told[i], s.kit->notes);
    assert_null(strstr(s.kit->notes, "any object"));
    is_said(&s, x, BEGUN("f") "<\1/parameter=a>\n[1,1]\n</parameter>\n" ENDED "<|end|>", true,
            "{N}f{A}{\"a\": [1,1]}{E}");
    is_said(&s, x,
            BEGUN("g") "<\1/parameter=$odd>\n\1"
                       "23\n</parameter>\n" ENDED "<|end|>",
            true, "{N}g{A}{\"$odd\": 3}{E}");
    close_site(&s);
    tools = kept;
}

/* Many literals, and what stands behind them: a text of digits stays one. Which of a root's branches holds is not
 * asked, but names, types and what all of them require are held, also where a reference says them. */
static void test_roots(void **state)
{
    (void)state;
    const char *kept = tools;
    const hn_reply_setup x = { .required = true, .reasoning_budget = -1 };
    static char many[64000];
    size_t at = (size_t)sprintf(many, "[{\"name\":\"f\",\"parameters\":{\"properties\":{\"c\":{\"oneOf\":[");
    for (int i = 0; i < 1000; i++)
        at += (size_t)sprintf(many + at, "%s{\"const\":\"c%d\",\"title\":\"C\"}", i ? "," : "", i);
    sprintf(many + at, "]},\"zip\":{\"type\":\"string\"}},\"required\":[\"zip\",\"c\"]}}]");
    tools = many;
    site s = open_site(samples[12].source, TAGS, NULL, false, NULL);
    assert_string_equal(s.kit->notes, "");
    is_said(&s, x,
            BEGUN("f") "<parameter=c>\n\1xc7\n</parameter>\n<parameter=zip>\n90210\n</parameter>\n" ENDED "<|end|>",
            true, "{N}f{A}{\"c\": \"c7\", \"zip\": \"90210\"}{E}");
    close_site(&s);
    tools =
        "[" TOOL("f", "{\"$ref\":\"#/$defs/A\",\"$defs\":{\"A\":{\"properties\":{\"zip\":{\"type\":\"string\"},\"n\":{"
                      "\"type\":\"integer\"}},\"required\":[\"zip\"],\"anyOf\":[{\"required\":[\"n\"]},{\"required\":["
                      "\"b\"],\"properties\":{\"b\":{\"type\":\"boolean\"}}}]}}}") "]";
    s = open_site(samples[12].source, TAGS, NULL, false, NULL);
    assert_non_null(strstr(s.kit->notes, "/$defs/A/anyOf is not enforced: the calls of this template"));
    assert_null(strstr(s.kit->notes, "any object"));
    is_said(&s, x,
            BEGUN("f") "<\1/parameter=\1qzip>\n90210\n</parameter>\n<parameter=n>\n\1x3\n</parameter>\n"
                       "<parameter=b>\n\1x\1"
                       "3true\n</parameter>\n" ENDED "<|end|>",
            true, "{N}f{A}{\"zip\": \"90210\", \"n\": 3, \"b\": true}{E}");
    close_site(&s);
    tools = kept;
}

/* More parameters than anybody writes, all of them required: each is looked at once. */
static void test_many_required(void **state)
{
    (void)state;
    enum { N = 7000 };
    const char *kept = tools;
    static char many[N * 40 + 200];
    size_t at = (size_t)sprintf(many, "[{\"name\":\"f\",\"parameters\":{\"properties\":{");
    for (int i = 0; i < N; i++) at += (size_t)sprintf(many + at, "%s\"p%d\":{\"type\":\"integer\"}", i ? "," : "", i);
    at += (size_t)sprintf(many + at, "},\"required\":[");
    for (int i = 0; i < N; i++) at += (size_t)sprintf(many + at, "%s\"p%d\"", i ? "," : "", i);
    sprintf(many + at, "]}}]");
    tools = many;
    site s = open_site(samples[12].source, TAGS, NULL, false, NULL);
    assert_string_equal(s.kit->notes, "");
    is_said(&s, (hn_reply_setup){ .required = true, .reasoning_budget = -1 },
            BEGUN("f") "<\1/parameter=p0>\n1\n</parameter>\n<parameter=p\1"
                       "21>\n",
            false, "{N}f{A}{\"p0\": 1, \"p1\": ");
    close_site(&s);
    tools = kept;
}

/* A mark with a control token in its middle (DeepSeek V3.2): what stands in front of the token may be text. */
static void test_token_in_mark(void **state)
{
    (void)state;
    const char *kept = tools;
    static const char dsml[] = BEGIN ANSWER EACH "<call name=\"{{ f.name }}\">" ARGS "<|D|p name=\"{{ k }}\">" RAW
                                                 "</|D|p>{% endfor %}</call>{% endfor %}" END;
    tools = "[" TOOL("f", "{\"properties\":{\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}") "]";
    site s = open_site(dsml, LIST("<|user|>", "<|end|>", "|D|"), NULL, false, NULL);
    is_said(&s, (hn_reply_setup){ .required = true, .reasoning_budget = -1 },
            "<call name=\"f\"><|D|p name=\"a\"><b>x</b></ </|D|p></call><|end|>", true,
            "{N}f{A}{\"a\": \"<b>x</b></ \"}{E}");
    close_site(&s);
    tools = kept;
}

/* A parameter's name that holds what ends names stands in quotes, and comes back whole. */
static void test_names_with_signs(void **state)
{
    (void)state;
    const char *kept = tools;
    tools = "[" TOOL("f", "{\"properties\":{\"page[size]\":{\"type\":\"integer\"},\"b.c\":{\"type\":\"integer\"}},"
                          "\"required\":[\"page[size]\",\"b.c\"]}") "]";
    site s = open_site(python, LIST("<|user|>", "<|end|>", "<|tcs|>", "<|tce|>"), NULL, false, NULL);
    is_said(&s, (hn_reply_setup){ .required = true, .reasoning_budget = -1 },
            "<|tcs|>[f(\1p\"page[size]\"=7, b.c=3)]<|tce|>", false, "{N}f{A}{\"page[size]\": 7, \"b.c\": 3}{E}");
    close_site(&s);
    tools = kept;
}

/* A template that writes one call has nothing behind it, and a model that goes on would write it as text. */
static void test_one_alone(void **state)
{
    (void)state;
    site s = open_site(samples[4].source, LIST("<|user|>", "<|end|>"), NULL, false, NULL);
    is_said(&s, (hn_reply_setup){ .reasoning_budget = -1 },
            "{\"name\": \"f\", \"parameters\": {\"a\": 1}}\1x\1 \1\n\1{<|end|>", true, HEARD_F);
    close_site(&s);
}

/* ---- what reading takes ------------------------------------------------------------------------------------ */

static hone_status count_part(void *arg, hone_part part, const char *s, size_t n, int32_t call, const char *id,
                              hone_error *err)
{
    (void)s, (void)call, (void)id, (void)err;
    *(size_t *)arg += part == HONE_PART_ARGUMENTS ? n : 0;
    return HONE_OK;
}

/* Bytes that are looked at for the ends of one call, which comes byte by byte. */
static uint64_t looked_at(const site *s, const char *begin, const char *middle, const char *end, size_t n)
{
    hn_call_reader *r;
    hn_call_outcome what = HN_CALLS_MORE;
    size_t said = 0, len = strlen(begin) + n * strlen(middle) + strlen(end);
    char *text = calloc(len + 1, 1);
    strcat(text, begin);
    for (size_t i = 0; i < n; i++) memcpy(text + strlen(begin) + i * strlen(middle), middle, strlen(middle));
    memcpy(text + len - strlen(end), end, strlen(end));
    assert_int_equal(hn_call_reader_new(&r, s->kit, 0, count_part, &said, NULL), HONE_OK);
    hn_call_begin(r);
    for (size_t i = 0; i < len && what == HN_CALLS_MORE; i++)
        assert_int_equal(hn_call_feed(r, text + i, 1, i + 1 == len, &what, NULL), HONE_OK);
    if (hn_call_count(r) != 1 || !said) fail_msg("%s…%s: %zu bytes of arguments", begin, end, said);
    uint64_t looked = hn_call_looked(r);
    hn_call_reader_free(r);
    free(text);
    return looked;
}

/* Arguments that are long are gone over once, and not once more for each token of them. */
static void test_once(void **state)
{
    (void)state;
    enum { N = 2000 };
    static const struct {
        const char *source, *begin, *middle, *end;
    } all[] = {
        { python, "<|tcs|>[f(a=[", "'(x', ", "0])]<|tce|>" },
        { gemma, "<|tool_call>call:f{a:[", "<|\"|>{x<|\"|>,", "0]}<tool_call|>" },
        { NULL, "<tool_call>\n<function=f>\n<parameter=a>\n[", "\"<x\", ",
          "0]\n</parameter>\n</function>\n</tool_call>" },
        { NULL, "<tool_call>\n<function=f>\n<parameter=", "keys", ">\n0\n</parameter>\n</function>\n</tool_call>" },
        { "", "<tool_call>\n{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": \\\"", "x y", "\\\"}\"}\n</tool_call>" },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *source = !all[i].source ? samples[12].source : *all[i].source ? all[i].source : samples[0].source;
        site s = open_site(source, LIST("<|user|>", "<|end|>"), NULL, false, NULL);
        uint64_t one = looked_at(&s, all[i].begin, all[i].middle, all[i].end, N),
                 two = looked_at(&s, all[i].begin, all[i].middle, all[i].end, 2 * N);
        if (one < N || two > 2 * one + one / 4) fail_msg("%s: %d and %d", all[i].begin, (int)one, (int)two);
        close_site(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several),          cmocka_unit_test(test_blanks),    cmocka_unit_test(test_form_or_call),
        cmocka_unit_test(test_harmony_form),     cmocka_unit_test(test_budget),    cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_other_arguments),  cmocka_unit_test(test_refused),   cmocka_unit_test(test_digits),
        cmocka_unit_test(test_lenient),          cmocka_unit_test(test_roots),     cmocka_unit_test(test_token_in_mark),
        cmocka_unit_test(test_names_with_signs), cmocka_unit_test(test_one_alone), cmocka_unit_test(test_once),
        cmocka_unit_test(test_many_required),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
