/* Calls whose id holds the name, functions.NAME:0, with names of any length that a tool may have: id, name and
 * arguments come whole, and what no tool can be called is text. */
#include "byte_vocab.h"
#include "call_samples.h"
#include "text/reply.h"

enum { MOST = 1024, WORDS = 8 };

static const sample *kimi(void)
{
    size_t i = 0;
    while (strcmp(samples[i].name, "ids that hold the name") != 0) i++;
    return &samples[i];
}

typedef struct site {
    hn_vocab *v;
    hn_jinja *t;
    hn_reply_format f;
    hn_call_format calls;
} site;

static void open_site(site *s, bool tokens)
{
    static const char *const base[] = { "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", NULL };
    static const hn_jinja_time now = { 2026, 2, 3, 4, 5, 6 };
    const char *control[20] = { NULL };
    const sample *k = kimi();
    size_t n = 0;
    for (; base[n]; n++) control[n] = base[n];
    for (size_t i = 0; tokens && i < 10 && k->marks[i]; i++) control[n++] = k->marks[i];
    s->v = byte_vocab(NULL, control, NULL);
    hone_error e = { 0 };
    hone_str source = { k->source, strlen(k->source) };
    hn_chat c = { .bos = "<s>", .eos = "</s>", .now = &now };
    if (hn_jinja_parse(&s->t, source.ptr, source.len, "t", NULL, &e) != HONE_OK) fail_msg("%s", e.message);
    assert_int_equal(hn_reply_format_make(&s->f, s->t, source, &c, s->v, &e), HONE_OK);
    assert_int_equal(hn_call_format_make(&s->calls, s->t, source, &c, &e), HONE_OK);
    assert_int_equal(s->calls.id, HN_CALL_ID_NAME);
}

static void close_site(site *s)
{
    hn_jinja_free(s->t);
    hn_vocab_free(s->v);
}

/* The next token of a script: a special one, or a byte. */
static int32_t next_token(const hn_vocab *v, const char **s)
{
    int32_t best = BV_BYTES + (unsigned char)**s;
    size_t n, len = 1;
    for (int32_t id = BV_PIECES; id < hn_vocab_size(v); id++) {
        const char *t = hn_vocab_piece(v, id, true, &n);
        if (n > len && strncmp(*s, t, n) == 0) best = id, len = n;
    }
    *s += len;
    return best;
}

static void add(char *out, const char *s, size_t n)
{
    assert_true(strlen(out) + n + 2 < MOST);
    strncat(out, s, n);
}

/* What is read: text, and calls as [id|name|arguments]. held: every token must be one that may come. */
static void read_calls(const site *s, hn_call_kit *kit, const char *script, bool held, char *out)
{
    hn_reply *r;
    hone_error e = { 0 };
    const hone_reply_part *p;
    size_t n;
    uint64_t bits[WORDS];
    hone_reply_end end = HONE_REPLY_GOES_ON;
    hn_reply_setup x = {
        .v = s->v, .f = &s->f, .kit = kit, .prompt = "<|assistant|>", .len = 13, .reasoning_budget = -1
    };
    *out = 0;
    if (hn_reply_open(&r, &x, &e) != HONE_OK) fail_msg("%s", e.message);
    for (bool more = true; more;) {
        more = *script && !end;
        if (more) {
            const char *at = script;
            int32_t id = next_token(s->v, &script);
            bool all;
            assert_int_equal(hn_reply_mask(r, -1, bits, WORDS, &all, &e), HONE_OK);
            if (held && !all && !(bits[id / 64] >> id % 64 & 1)) fail_msg("token %d may not come, of %s", id, at);
            assert_int_equal(hn_reply_push(r, id, &p, &n, &end, &e), HONE_OK);
        } else {
            assert_int_equal(hn_reply_flush(r, &p, &n, &e), HONE_OK);
        }
        for (size_t i = 0; i < n; i++) {
            if (p[i].part == HONE_PART_CALL_NAME) {
                add(out, "[", 1);
                add(out, p[i].id, strlen(p[i].id));
                add(out, "|", 1);
            }
            add(out, p[i].text, p[i].len);
            if (p[i].part == HONE_PART_CALL_NAME) add(out, "|", 1);
            if (p[i].part == HONE_PART_CALL_END) add(out, "]", 1);
        }
    }
    hn_reply_free(r);
}

/* A name of n letters, with a dot where it is long. */
static const char *name_of(size_t n)
{
    static char name[200];
    for (size_t i = 0; i < n; i++) name[i] = i == 70 ? '.' : (char)('a' + i % 26);
    name[n] = 0;
    return name;
}

/* loose: nothing holds a model to what is offered. */
static hone_status offer(hn_call_kit **kit, const site *s, const char *name, bool loose, hone_error *e)
{
    json_t *tools = json_pack("[{s:s, s:{s:s}}, {s:s}]", "name", name, "parameters", "type", "object", "name", "b");
    hone_status st = hn_call_kit_new(kit, &s->calls, s->v, &(hn_call_ask){ .tools = tools, .bare = loose }, e);
    json_decref(tools);
    return st;
}

#define CALL "<|tool_call_begin|>functions.%s:%d<|tool_call_argument_begin|>{\"k\": %d}<|tool_call_end|>"

static void names_of_any_length(void **state)
{
    static const size_t lengths[] = { 1, 60, 61, 62, 72, 73, 116, 117, 127, 128 };
    for (int tokens = 0; tokens < 2; tokens++) {
        site s;
        open_site(&s, tokens);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            hn_call_kit *kit, *loose = NULL;
            hone_error e = { 0 };
            char script[MOST], want[MOST], got[MOST];
            const char *name = name_of(lengths[i]);
            if (offer(&kit, &s, name, false, &e) || offer(&loose, &s, name, true, &e)) fail_msg("%s", e.message);
            snprintf(script, sizeof script, "<|section|>" CALL CALL CALL "<|section_end|>", name, 0, 1, "b", 1, 2, name,
                     102, 3);
            snprintf(want, sizeof want,
                     "[functions.%s:0|%s|{\"k\": 1}][functions.b:1|b|{\"k\": 2}][functions.%s:102|%s|{\"k\": 3}]", name,
                     name, name, name);
            read_calls(&s, kit, script, true, got);
            assert_string_equal(got, want);
            read_calls(&s, loose, script, false, got);
            assert_string_equal(got, want);

            /* a letter more is no tool's name */
            snprintf(script, sizeof script, "<|section|>" CALL "<|section_end|>", name_of(lengths[i] + 1), 0, 1);
            read_calls(&s, loose, script, false, got);
            assert_string_equal(got, script);
            hn_call_kit_drop(kit), hn_call_kit_drop(loose);
        }
        hn_call_kit *kit;
        hone_error e = { 0 };
        assert_int_equal(offer(&kit, &s, name_of(HN_CALL_NAME_MAX + 1), false, &e), HONE_E_ARG);
        close_site(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(names_of_any_length) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
