/* Calls of tools in answers (text/calls.h): the format of each shape of template is derived, what a template writes for
 * calls is read back as these calls however it is cut into tokens, and what only looks like a call is text. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "byte_vocab.h"
#include "call_samples.h"
#include "text/reply.h"
#include "slowed.h"

#include <dirent.h>

static uint32_t seed;
static uint32_t pick(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })
static const char *const pieces[] = { "<t",     "ool",     "_call", "\n{",   "{\"",   "name",   "\": ",     "\"arg",
                                      "uments", "\"}",     "}}",    "</",    "tool_", ">\n",    "meter",    "par",
                                      "=<",     "func",    "a\xC3", "\xA9x", "x y",   "\", \"", "\xF0\x9F", "\x98\x80 ",
                                      "[TOOL",  "_CALLS]", "[{",    "]<",    ">>>",   "to=",    NULL };

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"weather\",\"parameters\":{\"type\":\"object\",\"properties\":{"
    "\"city\":{\"type\":\"string\"},\"days\":{\"type\":\"integer\"},\"units\":{\"enum\":[\"c\",\"f\"]},\"where\":{"
    "\"type\":"
    "\"object\"},\"list\":{\"type\":\"array\"},\"wind\":{\"type\":\"boolean\"}}}}},{\"type\":\"function\",\"function\":"
    "{"
    "\"name\":\"weather_2\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}},{\"type\":\"function\","
    "\"function\":"
    "{\"name\":\"get.time-now\"}},{\"type\":\"function\",\"function\":{\"name\":\"maybe\",\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"topic\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},\"count\":{\"type\":["
    "\"string\",\"integer\"]},\"other\":{},\"name\":{\"$ref\":\"#/$defs/"
    "Name\"},\"some\":{\"anyOf\":[{\"enum\":[\"all\","
    "\"12\",null]},{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}]},\"mode\":{\"type\":\"string\",\"nullable\":"
    "true,\"enum\":[\"x\",\"y z\",null]},\"note\":{\"type\":\"string\",\"nullable\":true},\"code\":{\"pattern\":"
    "\"^\\\\d{5}$\"},\"at\":{\"$ref\":\"#/$defs/N%61me\"}},\"$defs\":{\"Name\":{\"allOf\":[{\"type\":"
    "\"string\"},{\"maxLength\":40}]}}}}}]";

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

/* ---- random calls ------------------------------------------------------------------------------------- */

static json_t *random_text(void)
{
    static const char *const words[] = {
        "x",   " ", "\n",        "\"", "\\", "é", "\U0001F600", "{", "}",  "[1]", "<",
        "</p", ">", "tool_call", "12", "'",  ",", "true",       ":", "\t", "]",   "="
    };
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
    uint32_t which = pick(6);
    char id[40];
    const char *name = which == 0 ? "weather_2" : which == 1 ? "get.time-now" : which > 3 ? "maybe" : "weather";
    snprintf(id, sizeof id, "abc%06d", index);
    if (which > 3) { /* words that read as nothing else */
        if (pick(2)) json_object_set_new(args, "topic", pick(3) ? json_string("some news") : json_null());
        if (pick(2)) json_object_set_new(args, "count", pick(2) ? json_string("3 apples") : json_integer(pick(100)));
        if (pick(2)) json_object_set_new(args, "other", pick(2) ? json_string("trueish") : json_boolean(pick(2)));
        if (pick(2)) json_object_set_new(args, "name", json_string("12"));
        if (pick(2))
            json_object_set_new(args, "some",
                                pick(3)   ? json_string("all")
                                : pick(2) ? json_null()
                                          : json_pack("[i,i]", 1, 2));
        if (pick(2)) json_object_set_new(args, "mode", pick(2) ? json_string("y z") : json_null());
        if (pick(2)) json_object_set_new(args, "note", pick(2) ? json_string("a null") : json_null());
        if (pick(2)) json_object_set_new(args, "code", json_string("01234"));
        if (pick(2)) json_object_set_new(args, "at", json_string("7"));
    } else if (which > 1) {
        if (pick(2)) json_object_set_new(args, "city", random_text());
        if (pick(2)) json_object_set_new(args, "days", json_integer(pick(100)));
        if (pick(2)) json_object_set_new(args, "units", json_string(pick(2) ? "c" : "f"));
        json_t *o = random_value(0);
        if (pick(2) && json_is_object(o)) json_object_set(args, "where", o);
        if (pick(2) && json_is_array(o)) json_object_set(args, "list", o);
        json_decref(o);
        if (pick(2)) json_object_set_new(args, "wind", json_boolean(pick(2)));
    }
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name", name, "arguments",
                     args);
}

/* ---- reading ------------------------------------------------------------------------------------------ */

typedef struct heard {
    json_t *calls; /* [{name, id, args: text, done}] */
    char text[8192];
    hone_reply_end end;
    hone_part last;
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
            json_t *all =
                json_sprintf("%s%.*s", json_string_value(json_object_get(last, "args")), (int)p[i].len, p[i].text);
            json_object_set_new(last, "args", all);
            break;
        }
        case HONE_PART_CALL_END: json_object_set_new(last, "done", json_true()); break;
        default:
            if (p[i].part == HONE_PART_REASONING && h->last != p[i].part) strcat(h->text, "{R}");
            if (p[i].part == HONE_PART_CALL || p[i].part == HONE_PART_COMMENTARY) strcat(h->text, "{?}");
            strncat(h->text, p[i].text, p[i].len);
        }
        h->last = p[i].part;
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

enum { N_PIECES = sizeof pieces / sizeof *pieces - 1, WORDS = 8 };
static bool masked;

static bool allowed(hn_reply *r, int32_t id)
{
    uint64_t bits[WORDS];
    bool all;
    hone_error e = { 0 };
    if (hn_reply_mask(r, -1, bits, WORDS, &all, &e) != HONE_OK) fail_msg("%s", e.message);
    return all || (bits[id / 64] >> id % 64 & 1);
}

/* Reads an answer; where it is masked, all its bytes must be allowed. cut: 0 byte by byte, else pieces by chance.
 * spelt: special tokens are spelt in bytes. */
static heard read_answer(const format *m, const hn_vocab *v, const hn_reply_setup *more, const char *prompt,
                         const char *s, bool cut, bool spelt)
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
        if (masked && !allowed(r, id) && k > 1 && id < BV_PIECES + N_PIECES) id = BV_BYTES + (unsigned char)*s, k = 1;
        if (masked && !allowed(r, id)) fail_msg("token %d may not come, of %s", id, s);
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
           *all = json_pack("[{s:s, s:s}, {s:s, s:s, s:O}]", "role", "user", "content", "x", "role", "assistant",
                            "content", text, "tool_calls", calls);
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
    if (json_array_size(h->calls) != n)
        fail_msg("%s: %zu calls of %zu in %s", s->name, json_array_size(h->calls), n, answer);
    for (i = 0; i < n; i++) {
        json_t *got = json_array_get(h->calls, i), *call = json_array_get(want, i),
               *f = json_object_get(call, "function");
        const char *text = json_string_value(json_object_get(got, "args"));
        json_t *args = json_loads(text, 0, NULL);
        if (!json_equal(json_object_get(got, "name"), json_object_get(f, "name")) ||
            !json_equal(args, json_object_get(f, "arguments")) || !json_is_true(json_object_get(got, "done")))
            fail_msg("%s: %s\nis read as %s(%s)", s->name, answer, json_string_value(json_object_get(got, "name")),
                     text);
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
            masked = true;
            for (seed = 1; seed < (SLOWED ? 4 : 9);) {
                uint32_t from = seed;
                json_t *calls = json_array();
                for (int c = 0, n = s->one ? 1 : 1 + (int)pick(3); c < n; c++)
                    json_array_append_new(calls, random_call(c));
                json_t *f = json_object_get(json_array_get(calls, 0), "function");
                if (m.calls.id == HN_CALL_ID_NAME) { /* the template takes it from there */
                    size_t c;
                    json_t *call;
                    json_array_foreach(calls, c, call) json_object_set_new(
                        call, "id",
                        json_sprintf("functions.%s:%zu",
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

/* ---- what a model may say --------------------------------------------------------------------------------- */

/* A token that may come: half of the time one that leads to an end, if there is one. -1: none may. */
static int32_t random_token(hn_reply *r, const hn_vocab *v, bool end)
{
    static const char closing[] = "\"}]><)/";
    uint64_t bits[WORDS] = { 0 };
    bool all;
    int32_t list[64 * WORDS], n = 0;
    hone_error e = { 0 };
    if (hn_reply_mask(r, -1, bits, WORDS, &all, &e) != HONE_OK) fail_msg("%s", e.message);
    for (int32_t id = 0; id < hn_vocab_size(v); id++) {
        bool eog = hn_vocab_is_eog(v, id);
        if (!all && !(bits[id / 64] >> id % 64 & 1)) continue;
        if (all && eog && !end) continue;
        list[n++] = id;
    }
    if (!n) return -1;
    if (pick(2))
        for (size_t i = 0, from = pick(7); i < 7; i++)
            for (int32_t k = 0; k < n; k++)
                if (list[k] == BV_BYTES + closing[(from + i) % 7] || (list[k] >= BV_PIECES + N_PIECES && pick(2)))
                    return list[k];
    return list[pick((uint32_t)n)];
}

static bool only(const json_t *o, const char *const *keys)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)o, key, value)
    {
        bool known = false;
        for (size_t i = 0; keys[i]; i++) known |= strcmp(keys[i], key) == 0;
        if (!known) return false;
    }
    return json_is_object(o);
}

/* Do the arguments keep to the schema of the tool? Written apart from hone's own reader of schemas. */
static bool valid(const char *name, const json_t *o)
{
    json_t *x;
    if (strcmp(name, "weather_2") == 0) return only(o, LIST(NULL));
    if (strcmp(name, "get.time-now") == 0) return json_is_object(o);
    if (strcmp(name, "maybe") == 0)
        return only(o, LIST("topic", "count", "other", "name", "some", "mode", "note", "code", "at")) &&
               (!(x = json_object_get(o, "mode")) || json_is_null(x) || strcmp(json_string_value(x), "x") == 0 ||
                strcmp(json_string_value(x), "y z") == 0) &&
               (!(x = json_object_get(o, "note")) || json_is_string(x) || json_is_null(x)) &&
               (!(x = json_object_get(o, "code")) ||
                (json_string_length(x) == 5 && strspn(json_string_value(x), "0123456789") == 5)) &&
               (!(x = json_object_get(o, "at")) || json_is_string(x)) &&
               (!(x = json_object_get(o, "topic")) || json_is_string(x) || json_is_null(x)) &&
               (!(x = json_object_get(o, "count")) || json_is_string(x) || json_is_integer(x)) &&
               (!(x = json_object_get(o, "name")) || json_is_string(x)) &&
               (!(x = json_object_get(o, "some")) || json_is_null(x) || json_is_array(x) ||
                strcmp(json_string_value(x), "all") == 0 || strcmp(json_string_value(x), "12") == 0);
    return strcmp(name, "weather") == 0 && only(o, LIST("city", "days", "units", "where", "list", "wind")) &&
           (!(x = json_object_get(o, "city")) || json_is_string(x)) &&
           (!(x = json_object_get(o, "days")) || json_is_integer(x)) &&
           (!(x = json_object_get(o, "units")) || strcmp(json_string_value(x), "c") == 0 ||
            strcmp(json_string_value(x), "f") == 0) &&
           (!(x = json_object_get(o, "where")) || json_is_object(x)) &&
           (!(x = json_object_get(o, "list")) || json_is_array(x)) &&
           (!(x = json_object_get(o, "wind")) || json_is_boolean(x));
}

/* Says whatever may be said, at most so many tokens; what may not is refused. The calls that ended keep to their
 * schemas. */
static heard walk(const format *m, const hn_vocab *v, hn_reply_setup x, const char *prompt, int most)
{
    heard h = { .calls = json_array() };
    hone_error e = { 0 };
    hn_reply *r;
    const hone_reply_part *p;
    size_t n, i;
    x.v = v;
    x.f = &m->f;
    x.prompt = prompt;
    x.len = strlen(prompt);
    if (hn_reply_open(&r, &x, &e) != HONE_OK) fail_msg("%s", e.message);
    char said[4096] = "";
    for (int t = 0; t < most && !h.end; t++) {
        int32_t id = random_token(r, v, t > 20);
        if (id < 0) fail_msg("shape %d, %s: nothing may follow \"%s\"", m->calls.shape, m->calls.begin, said);
        const char *piece = hn_vocab_piece(v, id, true, &n);
        if (strlen(said) + n < sizeof said - 1) strncat(said, piece, n);
        int32_t other =
            t % 2 ? (int32_t)pick((uint32_t)hn_vocab_size(v)) : hn_vocab_size(v) - 1 - t / 2 % 12; /* marks */
        if (!allowed(r, other)) {
            size_t none;
            hone_reply_end end;
            assert_int_equal(hn_reply_push(r, other, &p, &none, &end, &e), HONE_E_ARG);
        }
        if (hn_reply_push(r, id, &p, &n, &h.end, &e) != HONE_OK) fail_msg("%s behind %s", e.message, said);
        if (strlen(h.text) > sizeof h.text / 2) h.text[0] = 0;
        hear(&h, p, n);
    }
    assert_int_equal(hn_reply_flush(r, &p, &n, &e), HONE_OK);
    hear(&h, p, n);
    json_t *call;
    json_array_foreach(h.calls, i, call)
    {
        const char *args = json_string_value(json_object_get(call, "args"));
        json_t *o = json_loads(args, JSON_ALLOW_NUL, NULL);
        if (json_is_true(json_object_get(call, "done")) &&
            (!o || !valid(json_string_value(json_object_get(call, "name")), o)))
            fail_msg("said %s: arguments %s", said, args);
        if (!json_is_true(json_object_get(call, "done")) && h.end) fail_msg("the turn ended inside a call: %s", said);
        json_decref(o);
    }
    hn_reply_free(r);
    return h;
}

/* Random walks: what is required comes, and nothing else; what comes keeps to the schemas. How many were whole. */
static int walk_all(const char *source, hn_vocab *v, uint32_t first)
{
    int ended = 0;
    format m = make_format(source, v);
    for (int one = 0; one < 2; one++) {
        hn_call_kit *k;
        hone_error e = { 0 };
        hn_call_ask ask = { .tools = m.tools, .one = one };
        if (hn_call_kit_new(&k, &m.calls, v, &ask, &e) != HONE_OK) fail_msg("%s", e.message);
        hn_reply_setup x = { .kit = k, .required = true, .one_call = one, .reasoning_budget = -1 };
        for (uint32_t s = 1; s < 4; s++) {
            seed = s * 77 + first;
            heard h = walk(&m, v, x, m.calls.bare ? "<|assistant|>>>>" : "<|assistant|>", 600);
            ended += h.end != HONE_REPLY_GOES_ON;
            if (h.end) assert_true(json_array_size(h.calls) >= 1);
            if (one) assert_true(json_array_size(h.calls) <= 1);
            assert_string_equal(h.text, "");
            json_decref(h.calls);
        }
        hn_call_kit_drop(k);
    }
    free_format(&m);
    hn_vocab_free(v);
    return ended;
}

static void test_walks(void **state)
{
    int ended = 0;
    for (size_t i = 0; i < N_SAMPLES; i++)
        for (int kind = 0; kind < (samples[i].marks[0] ? 3 : 1); kind++)
            ended += walk_all(samples[i].source, vocab_of(&samples[i], kind), (uint32_t)i);
    assert_true(ended > 100); /* so many were whole */
}

/* ---- by hand ----------------------------------------------------------------------------------------------- */

static const char harmony[] =
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final{% endif %}<|message|>"
    "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
    "{% if tools %}{% endif %}";
#define GEMMA_VALUE "{{ k }}:{% if v is string %}<|\"|>{{ v }}<|\"|>{% else %}{{ v | tojson }}{% endif %}"
static const char gemma[] =
    BEGIN ANSWER EACH "<|tool_call>call:{{ f.name }}{{ '{' }}" ARGS GEMMA_VALUE
                      "{{ '' if loop.last else ',' }}{% endfor %}{{ '}' }}<tool_call|>{% endfor %}" END;
static const char python[] =
    BEGIN ANSWER "<|tcs|>[" EACH SEP(", ") "{{ f.name }}(" ARGS "{{ k }}={{ \"'\" ~ v ~ \"'\" if v is string else v }}"
                                           "{{ '' if loop.last else ', ' }}{% endfor %}){% endfor %}]<|tce|>" END;

typedef struct script {
    const char *prompt, *said, *text, *calls; /* calls: NAME(ARGUMENTS) in a row, a ! behind one that did not end */
} script;

static const char thinking[] =
    "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% elif m.role == 'tool' %}<|tool|>{{ "
    "m.content }}"
    "{% else %}<|assistant|>{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}"
    "{{ m.content or '' }}{% if m.tool_calls %}" EACH SEP(
        "\\n") "<tool_call>\n<function={{ f.name }}>\n" ARGS "<parameter={{ k }}>\n" RAW
               "\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}{% endif %}<|end|>{% endif %}"
               "{% endfor %}{% if add_generation_prompt %}<|assistant|><think>\n{% endif %}{% if tools %}{% endif %}";

/* Ids are what the model said, whole, or ours: no beginning of one that was cut, nothing left of the call before. */
static void check_ids(const json_t *calls, const char *said)
{
    size_t k;
    json_t *call;
    const char *before = "";
    json_array_foreach(calls, k, call)
    {
        const char *id = json_string_value(json_object_get(call, "id")), *at = strstr(said, id);
        size_t n = strlen(id), m = strlen(before), most = n < m ? n : m, same = 0;
        if (at && !at[n]) fail_msg("\"%s\": id \"%s\" is a part", said, id);
        while (same < most && id[n - 1 - same] == before[m - 1 - same]) same++;
        if (!at && same > 4) fail_msg("\"%s\": id \"%s\" behind \"%s\"", said, id, before);
        before = id;
    }
}

static void check_scripts(const char *source, const char *const *control, const script *list, size_t n,
                          hn_call_shape shape)
{
    hn_vocab *v = byte_vocab(pieces, control, NULL);
    format m = make_format(source, v);
    if (m.calls.shape != shape) fail_msg("shape %d, not %d: %s", m.calls.shape, shape, m.calls.warning);
    hn_call_kit *kit;
    hn_call_ask ask = { .tools = m.tools, .bare = true }; /* whatever is said is read */
    assert_int_equal(hn_call_kit_new(&kit, &m.calls, v, &ask, NULL), HONE_OK);
    hn_reply_setup x = { .kit = kit, .reasoning_budget = -1, .id_seed = 5 };
    masked = false;
    for (size_t i = 0; i < n; i++)
        for (seed = 0; seed < 12;) {
            uint32_t from = seed;
            char got[4096] = "";
            size_t k;
            json_t *call;
            heard h = read_answer(&m, v, &x, list[i].prompt, list[i].said, from > 0, false);
            json_array_foreach(h.calls, k, call)
            {
                strcat(strcat(got, json_string_value(json_object_get(call, "name"))), "(");
                strcat(strcat(got, json_string_value(json_object_get(call, "args"))), ")");
                if (!json_is_true(json_object_get(call, "done"))) strcat(got, "!");
            }
            if (strcmp(got, list[i].calls) != 0 || strcmp(h.text, list[i].text) != 0)
                fail_msg("\"%s\" cut %u:\n got \"%s\", %s\nwant \"%s\", %s", list[i].said, from, h.text, got,
                         list[i].text, list[i].calls);
            check_ids(h.calls, list[i].said);
            json_decref(h.calls);
            seed = from + 1;
        }
    hn_call_kit_drop(kit);
    free_format(&m);
    hn_vocab_free(v);
}
#define CHECK(source, control, shape, ...)                          \
    check_scripts(source, control, (const script[]){ __VA_ARGS__ }, \
                  sizeof((const script[]){ __VA_ARGS__ }) / sizeof(script), shape)

static void test_scripts(void **state)
{
    static const char *const h[] = { "<|start|>", "<|channel|>",   "<|message|>", "<|end|>",
                                     "<|call|>",  "<|constrain|>", "<|return|>",  NULL };
    const char *p = "<|start|>assistant";
    CHECK(harmony, h, HN_CALLS_HARMONY,
          { p,
            "<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>commentary to=functions.weather "
            "<|constrain|>json<|message|>{\"city\":\"x\"}<|call|>",
            "{R}so", "weather({\"city\":\"x\"})" },
          { p, " to=functions.get.time-now<|channel|>commentary json<|message|>{}<|call|>", "", "get.time-now({})" },
          { p, "<|channel|>commentary to=functions.other<|message|>{}<|call|>", "{}", "" },
          { p, "<|channel|>commentary to=functions.weather<|message|>{\"ci", "", "weather({\"ci)!" });
    static const char *const g[] = { "<|user|>",     "<|assistant|>", "<|end|>", "<|tool|>",
                                     "<|tool_call>", "<tool_call|>",  "<|\"|>",  NULL };
    CHECK(
        gemma, g, HN_CALLS_GEMMA,
        { "",
          "<|tool_call>call:weather{city:<|\"|>a \"b\", {c}<|\"|>,days:7,list:[1,<|\"|>x<|\"|>,{k:true}]}<tool_call|>",
          "", "weather({\"city\": \"a \\\"b\\\", {c}\", \"days\": 7, \"list\": [1, \"x\", {\"k\": true}]})" },
        { "", "<|tool_call>call:weather_2{}<tool_call|><|tool_call>call:weather_2{}<tool_call|><|end|>", "",
          "weather_2({})weather_2({})" },
        { "", "<|tool_call>call:other{}<tool_call|>", "<|tool_call>call:other{}", "" },
        { "", "<|tool_call>call:weather{days:7,city:<|\"|>a \"b", "", "weather({\"days\": 7, \"city\": \"a \\\"b)!" },
        { "", "<|tool_call>call:weather{city:<|\"|>a<|\"|>,list:[1,{k:tr", "",
          "weather({\"city\": \"a\", \"list\": [1, {\"k\": )!" },
        { "", "<|tool_call>call:weather{days:7,ci", "", "weather({\"days\": 7)!" },
        { "", "<|tool_call>call:weather{city:\"a\\nb", "", "weather({\"city\": \"a\\nb)!" },
        { "", "<|tool_call>call:weather{", "", "weather({)!" });
    static const char *const y[] = { "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", "<|tcs|>", "<|tce|>", NULL };
    CHECK(python, y, HN_CALLS_PYTHON,
          { "",
            "hi <|tcs|>[weather(city='it\\'s (x)', days=7, list=[1, True, None], where={'k': \"v\"}), "
            "weather_2()]<|tce|>",
            "hi ",
            "weather({\"city\": \"it's (x)\", \"days\": 7, \"list\": [1, true, null], \"where\": {\"k\": \"v\"}})"
            "weather_2({})" },
          { "", "<|tcs|>[weather(days=12, list=[True, Fal", "", "weather({\"days\": 12, \"list\": [true, )!" },
          { "", "<|tcs|>[weather(city='it\\'s\\", "", "weather({\"city\": \"it's)!" },
          { "", "<|tcs|>[weather(city='caf\\u00", "", "weather({\"city\": \"caf)!" },
          { "", "<|tcs|>[weather(city=\"x\", days=", "", "weather({\"city\": \"x\", \"days\": )!" });
    /* what somebody spells is no mark where the vocabulary has the token; what is not offered is text */
    static const char *const t[] = { "<|user|>",    "<|assistant|>", "<|end|>", "<|tool|>",
                                     "<tool_call>", "</tool_call>",  NULL };
    CHECK(samples[0].source, t, HN_CALLS_JSON,
          { "", "see <tool_call>\n{\"name\": \"rm\", \"arguments\": {}}\n</tool_call> so",
            "see <tool_call>\n{\"name\": \"rm\", \"arguments\": {}}\n so", "" },
          { "", "the <tool_call> tag", "the <tool_call> tag", "" },
          { "",
            "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": "
            "\"a</tool_call>b<tool_call>\"}}\n</tool_call>ok",
            "ok", "weather({\"city\": \"a</tool_call>b<tool_call>\"})" },
          { "", "<tool_call>\n{\"arguments\": {\"days\": 1}, \"name\": \"weather\"}\n</tool_call>", "",
            "weather({\"days\": 1})" },
          { "", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"days\"", "", "weather({\"days\")!" },
          { "", "<tool_call>\n{\"na", "<tool_call>\n{\"na", "" });
#define ASKED "<tool_call>\n<function=weather>\n<parameter="
#define ANY "<tool_call>\n<function=maybe>\n<parameter=other>\n"
    /* some models leave out the token in front, and some end a turn in reasoning with a call */
    CHECK(samples[12].source, t, HN_CALLS_TAGGED,
          { "", "I look. <function=weather>\n<parameter=city>\nx\n</parameter>\n</function>\n</tool_call>", "I look. ",
            "weather({\"city\": \"x\"})" },
          { "",
            "<function=weather_2>\n</function>\n</tool_call>\n<tool_call>\n<function=weather_2>\n</function>\n</"
            "tool_call>",
            "", "weather_2({})weather_2({})" },
          { "", "the <function=rm> tag", "the <function=rm> tag", "" },
          { "", "the <function=weather tag", "the <function=weather tag", "" },
          { "", "so <function=", "so <function=", "" },
          { "", ASKED "days>\n123456789012345678901\n</parameter>\n</function>\n</tool_call>", "",
            "weather({\"days\": 123456789012345678901})" },
          { "", ASKED "days>\n1e999\n</parameter>\n</function>\n</tool_call>", "", "weather({\"days\": 1e999})" },
          { "", ASKED "city>\nxy\n</param", "", "weather({\"city\": \"xy)!" }, /* cut: what is a mark is no value */
          { "", ASKED "city>\nx\ny", "", "weather({\"city\": \"x\\ny)!" },
          { "", ASKED "days>\n12\n<", "", "weather({\"days\": 12)!" },
          { "", ASKED "where>\n{\"a\": [1, 'x", "", "weather({\"where\": {\"a\": [1, \"x)!" },
          { "", ASKED "days>\n{\"a\"", "", "weather({\"days\": )!" }, /* no integer */
          { "", ASKED "days>\n12\n</parameter>\n<par", "", "weather({\"days\": 12)!" },
          /* text that only begins as a value does is text; escapes are whole, and as they are in JSON */
          { "", ANY "[draft] Meeting at", "", "maybe({\"other\": \"[draft] Meeting at)!" },
          { "", ANY "[dra", "", "maybe({\"other\": \"[dra)!" }, { "", ANY "[1 2", "", "maybe({\"other\": \"[1 2)!" },
          { "", ANY "{ color: red } body", "", "maybe({\"other\": \"{ color: red } body)!" },
          { "", ANY "\"Hello\" he said", "", "maybe({\"other\": \"\\\"Hello\\\" he said)!" },
          { "", ANY "\"Hello\nhe", "", "maybe({\"other\": \"\\\"Hello\\nhe)!" },
          { "", ANY "\"Hello", "", "maybe({\"other\": \"Hello)!" },
          { "", ANY " {\"a\": 1, \"b", "", "maybe({\"other\": {\"a\": 1)!" },
          { "", ANY "[-1.5, Tr", "", "maybe({\"other\": [-1.5, )!" },
          { "", ANY "[\"hi \\ud83d\\ude00 a\\/b", "", "maybe({\"other\": [\"hi \\ud83d\\ude00 a\\/b)!" },
          { "", ANY "[\"hi \\ud83d\\ude", "", "maybe({\"other\": [\"hi )!" },
          { "", ANY "['caf\\u00", "", "maybe({\"other\": [\"caf)!" });
#define CALL "<tool_call>\n<function=weather>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    static const char *const th[] = { "<|user|>",     "<|assistant|>", "<|end|>",  "<|tool|>", "<tool_call>",
                                      "</tool_call>", "<think>",       "</think>", NULL };
    const char *thinks = "<|assistant|><think>\n";
#define CALLED "<function=weather>\n<parameter=days>\n3\n</parameter>\n</function>" /* control tokens are not shown */
#define SEEN "\n" CALLED
#define FIRST "{R}" CALLED
    CHECK(thinking, th, HN_CALLS_TAGGED, { thinks, "so\n" CALL, "{R}so\n" SEEN, "weather({\"days\": 3})" },
          { thinks, "so " CALL "\n" CALL "<|end|>", "{R}so " SEEN "\n\n" SEEN,
            "weather({\"days\": 3})weather({\"days\": 3})" },
          { thinks, CALL " perhaps</think>\n\nno", FIRST "\n perhapsno", "" },
          { thinks, CALL " or not", FIRST "\n or not", "" },
          { thinks, "<tool_call>\n<function=rm>\n</function>\n</tool_call>", "{R}<function=rm>\n</function>", "" },
          { thinks, "so</think>\n\n" CALL, "{R}so", "weather({\"days\": 3})" });
    /* cut before its id, behind the arguments: a call as it stands; before its name: none */
    static const char *const i[] = { "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", "[TOOL_CALLS]", NULL };
    CHECK(
        samples[1].source, i, HN_CALLS_JSON,
        { "", "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"city\": \"ab", "", "weather({\"city\": \"ab)!" },
        { "", "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"days\": 1}, \"id\": \"12", "",
          "weather({\"days\": 1})!" },
        { "",
          "[TOOL_CALLS][{\"name\": \"weather_2\", \"arguments\": {}, \"id\": \"123456789\"}, {\"name\": \"weather\", "
          "\"arguments\": {",
          "", "weather_2({})weather({)!" },
        { "",
          "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {}, \"id\": \"123456789\"}, {\"name\": \"weather\", "
          "\"arguments\": {}, \"id\": \"ab",
          "", "weather({})weather({})!" },
        { "", "[TOOL_CALLS][{\"name\": \"rm\", \"arguments\": {", "[TOOL_CALLS][{\"name\": \"rm\", \"arguments\": {",
          "" },
        { "", "[TOOL_CALLS][{\"name\": \"wea", "[TOOL_CALLS][{\"name\": \"wea", "" });
    /* an answer in JSON is no call */
    static const char *const none[] = { "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", NULL };
    CHECK(
        samples[4].source, none, HN_CALLS_JSON,
        { "", "{\"result\": {\"name\": \"weather\"}}", "{\"result\": {\"name\": \"weather\"}}", "" },
        { "", "so {\"name\": \"weather\", \"parameters\": {}}", "so {\"name\": \"weather\", \"parameters\": {}}", "" },
        { "", "{\"name\": \"weather\", \"parameters\": {}}", "", "weather({})" },
        { "", "{\"type\": \"function\", \"name\": \"weather\", \"parameters\": {}}", "", "weather({})" },
        { "", "{\"type\": \"object\", \"properties\": {}}", "{\"type\": \"object\", \"properties\": {}}", "" });
    /* blanks before arguments are no part of them */
    static const char *const fenced[] = { "<|open calls|>", "<|one call|>",  "<|sep|>",
                                          "<|call end|>",   "<|calls end|>", NULL };
    CHECK(samples[9].source, fenced, HN_CALLS_NAMED,
          { "",
            "<|open calls|><|one call|>function<|sep|>weather\n```json\n\n {\"days\": 1}\n```<|call end|><|calls end|>",
            "", "weather({\"days\": 1})" },
          { "", "hi <|one call|>function<|sep|>weather\n```json\n{}\n```<|call end|>", "hi ", "weather({})" },
          { "", "<|one call|>function<|sep|>rm\n```json\n", "<|one call|>function<|sep|>rm\n```json\n", "" });
    /* hone's own form, where the template has none */
    CHECK(samples[N_SAMPLES - 1].source, none, HN_CALLS_JSON,
          { "",
            "so {\"tool_calls\": [{\"name\": \"weather\", \"arguments\": {\"city\": \"]}\"}}, {\"name\": \"weather_2\","
            " \"arguments\": {}}]} then",
            "so then", "weather({\"city\": \"]}\"})weather_2({})" },
          { "", "{\"tool_calls\":[{\"arguments\":{\"days\":1},\"name\":\"weather\"}]}<|end|>", "",
            "weather({\"days\":1})" },
          { "", "{\"tool_calls\": [{\"name\": \"rm\", \"arguments\": {}}]}",
            "{\"tool_calls\": [{\"name\": \"rm\", \"arguments\": {}}]}", "" },
          { "", "{\"tool_calls\": 7}", "{\"tool_calls\": 7}", "" }, { "", "{\"tool\": []}", "{\"tool\": []}", "" });
}

/* What models write may be said where calls are held to their schemas, too, and is read as what it means. */
static void check_held(const char *source, hn_vocab *v, bool required, const char *said, const char *want)
{
    format m = make_format(source, v);
    hn_call_kit *kit = make_kit(&m, v, NULL, 0);
    hn_reply_setup x = { .kit = kit, .required = required, .reasoning_budget = -1 };
    masked = true;
    heard h = read_answer(&m, v, &x, "", said, false, false);
    json_t *call = json_array_get(h.calls, 0), *wanted = json_loads(want, 0, NULL),
           *got = json_loads(json_string_value(json_object_get(call, "args")), 0, NULL);
    if (!got || !json_equal(got, wanted))
        fail_msg("%s\nis read as %s", said, json_string_value(json_object_get(call, "args")));
    json_decref(got), json_decref(wanted), json_decref(h.calls);
    hn_call_kit_drop(kit);
    free_format(&m);
    hn_vocab_free(v);
}

/* LFM2's templates list the tools, and take calls that were made as the text that they were. */
static void test_listed(void **state)
{
    hn_vocab *v = byte_vocab(pieces, NULL, NULL);
    format m = make_format(samples[N_SAMPLES - 2].source, v);
    json_t *args = json_pack("{s:s, s:b, s:[i, n]}", "city", "a \"b\"", "wind", 1, "list", 1);
    char *text = json_dumps(args, 0);
    m.c.messages =
        json_pack("[{s:s,s:s},{s:s,s:s,s:[{s:{s:s,s:s}},{s:{s:s,s:{}}}]},{s:s,s:s}]", "role", "user", "content", "hi",
                  "role", "assistant", "content", "I look.", "tool_calls", "function", "name", "weather", "arguments",
                  text, "function", "name", "weather_2", "arguments", "role", "tool", "content", "sun");
    m.c.tools = m.tools, m.c.add_generation_prompt = true;
    hn_jinja_text out = { 0 };
    assert_int_equal(hn_chat_render(m.t, &m.c, &out, NULL), HONE_OK);
    assert_non_null(strstr(out.text, "List of tools: [{\"type\": \"function\""));
    assert_null(strstr(out.text, "You can call functions"));
    assert_non_null(strstr(out.text, "<|assistant|>I look.<|tool_call_start|>[weather(city=\"a \\\"b\\\"\", wind=True, "
                                     "list=[1,null]), weather_2()]<|tool_call_end|><|end|><|tool|>sun<|assistant|>"));
    hn_jinja_text_free(&out);
    json_t *answer = json_array_get(m.c.messages, 1), *calls = json_object_get(answer, "tool_calls"),
           *f = json_object_get(json_array_get(calls, 0), "function");
    json_object_set_new(f, "arguments", json_string("{\"i\\u0064\": [123456789012345678901], \"wind\": false}"));
    assert_int_equal(hn_chat_render(m.t, &m.c, &out, NULL), HONE_OK);
    assert_non_null(strstr(out.text, "[weather(id=[123456789012345678901], wind=False), weather_2()]"));
    hn_jinja_text_free(&out);
    json_decref((json_t *)m.c.messages), json_decref(args), free(text);
    free_format(&m);
    hn_vocab_free(v);
}

static void test_held(void **state)
{
    static const char *const g[] = { "<|user|>",     "<|assistant|>", "<|end|>", "<|tool|>",
                                     "<|tool_call>", "<tool_call|>",  "<|\"|>",  NULL };
    static const char *const p[] = { "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", "<|tcs|>", "<|tce|>", NULL };
    static const char *const t[] = { "<|user|>",    "<|assistant|>", "<|end|>", "<|tool|>",
                                     "<tool_call>", "</tool_call>",  NULL };
    check_held(gemma, byte_vocab(pieces, g, NULL), false,
               "<|tool_call>call:weather{list:[<|\"|>a \"b\"<|\"|>,1,[]],city:<|\"|>x<|\"|>,where:{on:true,"
               "at:{name:<|\"|>{y}<|\"|>}},units:<|\"|>f<|\"|>}<tool_call|>",
               "{\"list\":[\"a \\\"b\\\"\",1,[]],\"city\":\"x\",\"where\":{\"on\":true,\"at\":{\"name\":"
               "\"{y}\"}},\"units\":\"f\"}");
    check_held(python, byte_vocab(pieces, p, NULL), false,
               "<|tcs|>[weather(wind=True, city='it\\'s \"x\"', list=[None, False, 'a', \"b\"], units='c', "
               "where={'k': 1})]<|tce|>",
               "{\"wind\":true,\"city\":\"it's \\\"x\\\"\",\"list\":[null,false,\"a\",\"b\"],\"units\":\"c\","
               "\"where\":{\"k\":1}}");
    check_held(python, byte_vocab(pieces, p, NULL), false, "<|tcs|>[weather(wind=false, city=\"x\")]<|tce|>",
               "{\"wind\":false,\"city\":\"x\"}");
    check_held(samples[12].source, byte_vocab(pieces, t, NULL), false,
               "<tool_call>\n<function=weather>\n<parameter=wind>\ntrue\n</parameter>\n<parameter=days>\n3\n"
               "</parameter>\n<parameter=city>\nx\n</parameter>\n</function>\n</tool_call>",
               "{\"wind\":true,\"days\":3,\"city\":\"x\"}");
    char thinks[1024]; /* a call is required, and reasoning may come in front of it */
    snprintf(thinks, sizeof thinks, "{# <|channel><channel|> #}%s", gemma);
    check_held(thinks, byte_vocab(pieces, g, LIST("<|channel>", "<channel|>")), true,
               "<|channel>thought\nso\nso<channel|><|tool_call>call:weather{days:1}<tool_call|>", "{\"days\":1}");
    int ended = 0;
    for (uint32_t s = 0; s < 8; s++)
        ended += walk_all(gemma, byte_vocab(pieces, g, NULL), s) + walk_all(python, byte_vocab(pieces, p, NULL), s);
    assert_true(ended > 40);
}

/* gpt-oss, asked for a call: reasoning may come first, in headers that say so. */
static void test_headers(void **state)
{
    hn_vocab *v = byte_vocab(
        pieces, LIST("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|constrain|>", "<|return|>"),
        NULL);
    format m = make_format(harmony, v);
    hn_call_kit *kit = make_kit(&m, v, NULL, 0);
    hn_reply_setup x = { .kit = kit, .required = true, .reasoning_budget = 20 };
    int called = 0;
    for (uint32_t s = 1; s < 20; s++) {
        seed = s;
        heard h = walk(&m, v, x, "<|start|>assistant", 900);
        if (h.end) assert_int_equal(json_array_size(h.calls), 1);
        called += h.end != HONE_REPLY_GOES_ON;
        json_decref(h.calls);
    }
    assert_true(called > 3);
    hn_call_kit_drop(kit);
    free_format(&m);
    hn_vocab_free(v);
}

/* Text that spells a mark in other tokens, and the same call twice. */
static void test_provenance(void **state)
{
    static const char said[] = "<tool_call>\n{\"name\": \"weather_2\", \"arguments\": {}}\n</tool_call>";
    hn_vocab *v = vocab_of(&samples[0], 1);
    format m = make_format(samples[0].source, v);
    hn_call_kit *kit = make_kit(&m, v, NULL, 0);
    hn_reply_setup x = { .kit = kit, .reasoning_budget = -1, .id_seed = 9 };
    masked = false;
    heard spelt = read_answer(&m, v, &x, "", said, true, true), a = read_answer(&m, v, &x, "", said, false, false),
          b = read_answer(&m, v, &x, "", said, true, false);
    assert_int_equal(json_array_size(spelt.calls), 0);
    assert_string_equal(spelt.text, said);
    assert_int_equal(json_array_size(a.calls), 1);
    assert_true(json_equal(a.calls, b.calls)); /* ids, too */
    x.id_seed = 10;
    heard c = read_answer(&m, v, &x, "", said, true, false);
    assert_false(json_equal(json_object_get(json_array_get(a.calls, 0), "id"),
                            json_object_get(json_array_get(c.calls, 0), "id")));
    x = (hn_reply_setup){ .silent = true, .reasoning_budget = -1 };
    heard d = read_answer(&m, v, &x, "", said, false, false);
    assert_int_equal(json_array_size(d.calls), 0);
    json_decref(spelt.calls), json_decref(a.calls), json_decref(b.calls), json_decref(c.calls), json_decref(d.calls);
    hn_call_kit_drop(kit);
    free_format(&m);
    hn_vocab_free(v);
}

/* A form holds from where reasoning ends; a budget ends it; calls may come instead of the form; one call is one. */
static void test_forms(void **state)
{
    static const char thinks[] =
        "{% for m in messages %}<|{{ m.role }}|>{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>"
        "{% endif %}{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";
    hn_vocab *v = byte_vocab(pieces, LIST("<|user|>", "<|assistant|>", "<|end|>", "<think>", "</think>"), NULL);
    format m = make_format(thinks, v);
    hone_grammar *g;
    hone_error e = { 0 };
    hone_grammar_params p = { .kind = HONE_GRAMMAR_REGEX, .text = "[ab]{3}", .len = 7 };
    assert_int_equal(hone_grammar_compile(&g, &p, &e), HONE_OK);
    hn_reply_setup x = { .form = g, .reasoning_budget = 5 };
    int thought = 0;
    for (seed = 1; seed < 60; seed++) {
        uint32_t s = seed;
        heard h = walk(&m, v, x, s % 2 ? "<|assistant|><think>" : "<|assistant|>", 60);
        const char *text = strstr(h.text, "</think>") ? NULL : h.text, *last = h.text + strlen(h.text) - 3;
        assert_non_null(text);
        assert_int_equal(h.end, HONE_REPLY_TURN);
        assert_true(strlen(h.text) >= 3 && strspn(last, "ab") == 3);
        thought += strncmp(h.text, "{R}", 3) == 0;
        if (strncmp(h.text, "{R}", 3) != 0) assert_true(strlen(h.text) == 3);
        json_decref(h.calls);
        seed = s;
    }
    assert_true(thought > 15);
    free_format(&m);
    hn_vocab_free(v);
    v = vocab_of(&samples[0], 1);
    m = make_format(samples[0].source, v);
    hn_call_kit *kit = make_kit(&m, v, NULL, 0);
    x = (hn_reply_setup){ .form = g, .kit = kit, .reasoning_budget = -1 };
    int called = 0, formed = 0;
    for (seed = 1; seed < 30; seed++) {
        uint32_t s = seed;
        heard h = walk(&m, v, x, "<|assistant|>", 800);
        bool call = json_array_size(h.calls) > 0;
        called += call;
        formed += !call && h.end;
        if (h.end) assert_true(call ? !*h.text : strlen(h.text) == 3 && strspn(h.text, "ab") == 3);
        json_decref(h.calls);
        seed = s;
    }
    assert_true(called > 3 && formed > 3);
    static const char twice[] = "<tool_call>\n{\"name\": \"weather_2\", \"arguments\": {}}\n</tool_call>x";
    hn_reply *r;
    x = (hn_reply_setup){ .v = v, .f = &m.f, .kit = kit, .one_call = true, .reasoning_budget = -1 };
    assert_int_equal(hn_reply_open(&r, &x, &e), HONE_OK);
    hone_status st = HONE_OK;
    for (const char *s = twice; *s;) {
        size_t k, n;
        const hone_reply_part *parts;
        hone_reply_end end;
        int32_t id = special_at(v, s, &k);
        if (id < 0) id = BV_BYTES + (unsigned char)*s, k = 1;
        st = hn_reply_push(r, id, &parts, &n, &end, &e);
        assert_int_equal(st, s[k] ? HONE_OK : HONE_E_ARG);
        s += k;
    }
    assert_non_null(strstr(e.message, "one call"));
    hn_reply_free(r);
    hn_call_kit_drop(kit);
    free_format(&m);
    hn_vocab_free(v);
    hone_grammar_free(g);
}

/* The templates of published models: those that write calls are derived. */
static void test_shipped(void **state)
{
    static const char *const without[] = { "SmolLM3", "gemma-2", "granite-3.3", "rwkv-world", "Phi-3.5" };
    DIR *d = opendir("../shared/data/templates");
    struct dirent *f;
    int n = 0;
    if (!d) skip();
    while ((f = readdir(d))) {
        static char source[1 << 18];
        char path[600];
        bool writes = true;
        if (!strstr(f->d_name, ".jinja")) continue;
        snprintf(path, sizeof path, "../shared/data/templates/%s", f->d_name);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        source[fread(source, 1, sizeof source - 1, in)] = 0;
        fclose(in);
        for (size_t i = 0; i < sizeof without / sizeof *without; i++) writes &= !strstr(f->d_name, without[i]);
        format m = make_format(source, NULL);
        if (m.calls.shape == HN_CALLS_NONE || m.calls.own == writes) fail_msg("%s: %s", f->d_name, m.calls.warning);
        assert_true(!writes || !m.calls.warning[0]);
        json_t *o = hn_call_format_json(&m.calls);
        assert_non_null(o);
        json_decref(o);
        free_format(&m);
        n++;
    }
    closedir(d);
    assert_true(n >= 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_read_back), cmocka_unit_test(test_walks),
                                        cmocka_unit_test(test_scripts),   cmocka_unit_test(test_provenance),
                                        cmocka_unit_test(test_forms),     cmocka_unit_test(test_shipped),
                                        cmocka_unit_test(test_headers),   cmocka_unit_test(test_held),
                                        cmocka_unit_test(test_listed) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
