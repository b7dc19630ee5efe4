/* Voices: what was said as each API says it. The fragments of every stream, put together as that API's clients do, must
 * be the answer that is not streamed, whatever the steps were; frames of small answers are compared byte by byte with
 * what the descriptions of the APIs show. With HONE_VOICES=FOLDER all of them are written there, for tests/dev. */
#define _GNU_SOURCE
#include "base/json_tree.h"
#include "serve/ask.h"

#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ask_cases.h"
#include "voice_says.h"

/* ---- asks -------------------------------------------------------------------------------- */

#define USER "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define TOOLS_CHAT                                                                                                     \
    ",\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\"}},{\"type\":\"function\",\"function\":" \
    "{"                                                                                                                \
    "\"name\":\"now\"}}]"

typedef struct route {
    const char *path, *body; /* %s: what streaming and log-probabilities add */
    const char *logprobs;
    bool chat, choices;
} route;
static const route routes[] = {
    { "/v1/chat/completions", "{" USER TOOLS_CHAT "%s}", ",\"logprobs\":true,\"top_logprobs\":2", true, true },
    { "/v1/completions", "{\"prompt\":\"hi\"%s}", ",\"logprobs\":2", false, true },
    { "/completion", "{\"prompt\":\"hi\",\"return_tokens\":true%s}", ",\"n_probs\":2", false, true },
    { "/v1/messages", "{\"max_tokens\":100," USER "%s}", "", true, false },
    { "/v1/responses",
      "{\"input\":\"hi\",\"tools\":[{\"type\":\"function\",\"name\":\"now\",\"parameters\":{},\"strict\":false}]%s}",
      ",\"top_logprobs\":2", true, false },
    { "/api/chat", "{" USER "%s}", ",\"logprobs\":true,\"top_logprobs\":2", true, false },
    { "/api/generate", "{\"prompt\":\"hi\"%s}", "", false, false },
};
enum { N_ROUTES = sizeof routes / sizeof *routes };

/* Can this API say it? */
static bool can(const route *r, const said *s) { return (r->chat || !s->calls) && (r->choices || s->n_choices == 1); }

static void ask(hn_ask *a, const route *r, const said *s, bool stream)
{
    char body[1024], more[256];
    hn_refusal why;
    bool usage =
        stream && !strstr(r->path, "api") && !strstr(r->path, "messages") && strcmp(r->path, "/completion") != 0;
    int n = snprintf(more, sizeof more, ",\"stream\":%s%s%s", stream ? "true" : "false",
                     strcmp(s->name, "logprobs") == 0 ? r->logprobs : "",
                     usage ? ",\"stream_options\":{\"include_usage\":true}" : "");
    if (s->n_choices > 1) snprintf(more + n, sizeof more - (size_t)n, ",\"n\":%d", s->n_choices);
    snprintf(body, sizeof body, r->body, more);
    if (!ask_of(a, r->path, body, NULL, &why)) fail_msg("%s %s: %s", r->path, body, why.message);
}

/* ---- reading back ------------------------------------------------------------------------ */

static json_t *json_of(const char *s, size_t n, const char *what)
{
    json_t *v;
    hone_error err;
    const hn_json_rules rules = { .flags = HN_JSON_UNIQUE | HN_JSON_BIG };
    if (hn_json_tree(&v, s, n, &rules, what, &err) != HONE_OK) fail_msg("%s\n%.*s", err.message, (int)n, s);
    return v;
}

/* The objects of a stream: of "data:" lines, or of lines. *done: [DONE] was the last. An event's name is its type. */
static json_t *frames_of(const hn_bytes *o, const char *stream_type, bool *done)
{
    bool sse = strcmp(stream_type, "text/event-stream") == 0;
    const char *p = o->p, *end = o->p + o->n, *event = NULL;
    json_t *list = json_array();
    size_t n_event = 0;
    *done = false;
    while (p < end) {
        const char *line_end = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(line_end);
        size_t n = (size_t)(line_end - p);
        assert_null(memchr(p, '\r', n));
        if (!sse) {
            json_array_append_new(list, json_of(p, n, "line"));
        } else if (n > 7 && memcmp(p, "event: ", 7) == 0) {
            event = p + 7;
            n_event = n - 7;
        } else if (n > 6 && memcmp(p, "data: ", 6) == 0) {
            assert_false(*done);
            assert_true(line_end + 1 < end && line_end[1] == '\n'); /* an empty line behind each */
            if (n == 12 && memcmp(p, "data: [DONE]", 12) == 0) {
                *done = true;
            } else {
                json_t *v = json_of(p + 6, n - 6, "frame");
                if (event) {
                    assert_int_equal(strlen(hn_json_text_of(v, "type")), n_event);
                    assert_memory_equal(hn_json_text_of(v, "type"), event, n_event);
                }
                json_array_append_new(list, v);
            }
            event = NULL;
        } else {
            assert_true(n == 0 || *p == ':');
        }
        p = line_end + 1;
    }
    return list;
}

/* ---- clients: a stream put together ------------------------------------------------------- */

static json_t *at(const json_t *v, const char *key) { return json_object_get(v, key); }

/* o.key grows by the string v. */
static void join(json_t *o, const char *key, const json_t *v)
{
    const json_t *old = at(o, key);
    if (!v || json_is_null(v)) return;
    size_t n = json_string_length(old), m = json_string_length(v);
    char *s = malloc(n + m + 1);
    assert_non_null(s);
    if (n) memcpy(s, json_string_value(old), n);
    memcpy(s + n, json_string_value(v), m);
    json_object_set_new(o, key, json_stringn(s, n + m));
    free(s);
}

static json_t *slot(json_t *list, size_t i)
{
    while (json_array_size(list) <= i) json_array_append_new(list, json_object());
    return json_array_get(list, i);
}

static void extend(json_t *o, const char *key, const json_t *list)
{
    if (!list || json_is_null(list)) return;
    if (!at(o, key)) json_object_set_new(o, key, json_array());
    json_array_extend(at(o, key), (json_t *)list);
}

static json_t *chat_client(const json_t *frames, bool done)
{
    json_t *out = json_object(), *choices = json_array(), *f, *c;
    size_t i, k;
    assert_true(done);
    json_array_foreach(frames, i, f)
    {
        assert_string_equal(hn_json_text_of(f, "object"), "chat.completion.chunk");
        if (json_array_size(at(f, "choices")) == 0) {
            assert_int_equal(i + 1, json_array_size(frames));
            json_object_set(out, "usage", at(f, "usage"));
            json_object_set(out, "timings", at(f, "timings"));
            continue;
        }
        assert_true(json_is_null(at(f, "usage")));
        c = json_array_get(at(f, "choices"), 0);
        json_t *to = slot(choices, (size_t)json_integer_value(at(c, "index"))), *d = at(c, "delta"), *call;
        assert_null(at(to, "finish_reason")); /* nothing after the end */
        join(to, "content", at(d, "content"));
        join(to, "reasoning_content", at(d, "reasoning_content"));
        extend(to, "logprobs", at(at(c, "logprobs"), "content"));
        json_array_foreach(at(d, "tool_calls"), k, call)
        {
            if (!at(to, "tool_calls")) json_object_set_new(to, "tool_calls", json_array());
            json_t *t = slot(at(to, "tool_calls"), (size_t)json_integer_value(at(call, "index")));
            if (at(call, "id")) json_object_set(t, "id", at(call, "id"));
            join(t, "name", at(at(call, "function"), "name"));
            join(t, "arguments", at(at(call, "function"), "arguments"));
        }
        if (!json_is_null(at(c, "finish_reason"))) json_object_set(to, "finish_reason", at(c, "finish_reason"));
    }
    json_object_set_new(out, "choices", choices);
    return out;
}

/* The same of an answer that is not streamed. */
static json_t *chat_answer(const json_t *v)
{
    json_t *out = json_object(), *choices = json_array(), *c;
    size_t i, k;
    json_array_foreach(at(v, "choices"), i, c)
    {
        json_t *to = slot(choices, (size_t)json_integer_value(at(c, "index"))), *m = at(c, "message"), *call;
        join(to, "content", json_string_length(at(m, "content")) ? at(m, "content") : NULL);
        join(to, "reasoning_content", at(m, "reasoning_content"));
        extend(to, "logprobs", at(at(c, "logprobs"), "content"));
        json_array_foreach(at(m, "tool_calls"), k, call)
        {
            if (!at(to, "tool_calls")) json_object_set_new(to, "tool_calls", json_array());
            json_t *t = slot(at(to, "tool_calls"), k);
            json_object_set(t, "id", at(call, "id"));
            json_object_set(t, "name", at(at(call, "function"), "name"));
            json_object_set(t, "arguments", at(at(call, "function"), "arguments"));
        }
        json_object_set(to, "finish_reason", at(c, "finish_reason"));
    }
    json_object_set_new(out, "choices", choices);
    json_object_set(out, "usage", at(v, "usage"));
    json_object_set(out, "timings", at(v, "timings"));
    return out;
}

static void text_lists(json_t *to, const json_t *l)
{
    static const char *const names[] = { "tokens", "token_logprobs", "top_logprobs", "text_offset" };
    for (size_t i = 0; i < 4; i++) extend(to, names[i], at(l, names[i]));
}

static json_t *text_client(const json_t *frames, bool done)
{
    json_t *out = json_object(), *choices = json_array(), *f;
    size_t i;
    assert_true(done);
    json_array_foreach(frames, i, f)
    {
        json_t *c = json_array_get(at(f, "choices"), 0);
        if (!c) {
            json_object_set(out, "usage", at(f, "usage"));
            continue;
        }
        json_t *to = slot(choices, (size_t)json_integer_value(at(c, "index")));
        join(to, "text", at(c, "text"));
        text_lists(to, at(c, "logprobs"));
        if (!json_is_null(at(c, "finish_reason"))) json_object_set(to, "finish_reason", at(c, "finish_reason"));
    }
    json_object_set_new(out, "choices", choices);
    return out;
}

static json_t *text_answer(const json_t *v)
{
    json_t *out = json_object(), *choices = json_array(), *c;
    size_t i;
    json_array_foreach(at(v, "choices"), i, c)
    {
        json_t *to = slot(choices, (size_t)json_integer_value(at(c, "index")));
        join(to, "text", at(c, "text"));
        text_lists(to, at(c, "logprobs"));
        json_object_set(to, "finish_reason", at(c, "finish_reason"));
    }
    json_object_set_new(out, "choices", choices);
    json_object_set(out, "usage", at(v, "usage"));
    return out;
}

static json_t *native_client(const json_t *frames, bool done)
{
    json_t *choices = json_array(), *f, *v;
    const char *key;
    size_t i;
    assert_false(done);
    json_array_foreach(frames, i, f)
    {
        json_t *to = slot(choices, (size_t)json_integer_value(at(f, "index")));
        assert_false(json_is_true(at(to, "stop")));
        join(to, "content", at(f, "content"));
        extend(to, "tokens", at(f, "tokens"));
        extend(to, "completion_probabilities", at(f, "completion_probabilities"));
        if (json_is_true(at(f, "stop"))) json_object_foreach(f, key, v) if (!at(to, key)) json_object_set(to, key, v);
        if (json_is_true(at(f, "stop"))) json_object_set(to, "has_new_line", at(f, "has_new_line"));
    }
    return choices;
}

static json_t *native_answer(const json_t *v)
{
    json_t *out = json_is_array(v) ? json_deep_copy(v) : json_pack("[O]", v), *c;
    size_t i;
    json_array_foreach(out, i, c)
    {
        if (json_array_size(at(c, "completion_probabilities")) == 0) json_object_del(c, "completion_probabilities");
        json_object_set_new(at(c, "generation_settings"), "stream", json_true());
    }
    return out;
}

static json_t *messages_client(const json_t *frames, bool done)
{
    json_t *out = NULL, *f, *block = NULL;
    bool open = false, stopped = false;
    size_t i;
    assert_false(done);
    json_array_foreach(frames, i, f)
    {
        const char *type = hn_json_text_of(f, "type");
        json_t *d = at(f, "delta");
        assert_false(stopped);
        if (!strcmp(type, "message_start")) {
            assert_int_equal(i, 0);
            out = json_deep_copy(at(f, "message"));
        } else if (!strcmp(type, "content_block_start")) {
            assert_false(open);
            open = true;
            assert_int_equal(json_integer_value(at(f, "index")), json_array_size(at(out, "content")));
            json_array_append_new(at(out, "content"), block = json_deep_copy(at(f, "content_block")));
        } else if (!strcmp(type, "content_block_delta")) {
            assert_true(open);
            assert_int_equal(json_integer_value(at(f, "index")) + 1, json_array_size(at(out, "content")));
            join(block, "text", at(d, "text"));
            join(block, "thinking", at(d, "thinking"));
            join(block, "signature", at(d, "signature"));
            join(block, "json", at(d, "partial_json"));
        } else if (!strcmp(type, "content_block_stop")) {
            assert_true(open);
            open = false;
            const json_t *text = at(block, "json");
            json_t *v;
            if (text &&
                hn_json_tree(&v, json_string_value(text), json_string_length(text), NULL, "input", NULL) == HONE_OK)
                json_object_set_new(block, "input", v);
            json_object_del(block, "json");
        } else if (!strcmp(type, "message_delta")) {
            assert_false(open);
            json_object_update(out, d);
            json_object_set(out, "usage", at(f, "usage"));
        } else {
            assert_string_equal(type, "message_stop");
            stopped = true;
        }
    }
    assert_true(stopped);
    return out;
}

static json_t *responses_client(const json_t *frames, bool done)
{
    json_t *out = NULL, *f, *texts = json_array();
    size_t i;
    assert_false(done);
    json_array_foreach(frames, i, f)
    {
        const char *type = hn_json_text_of(f, "type"), *dot = strrchr(type, '.');
        size_t k = (size_t)json_integer_value(at(f, "output_index"));
        assert_int_equal(json_integer_value(at(f, "sequence_number")), i);
        if (!strcmp(type, "response.output_item.added")) assert_int_equal(json_array_size(texts), k);
        if (!strcmp(type, "response.output_item.added")) slot(texts, k);
        if (!strcmp(dot, ".delta")) {
            join(slot(texts, k), "text", at(f, "delta"));
            extend(slot(texts, k), "logprobs", at(f, "logprobs"));
        }
        if (!strcmp(type, "response.output_item.done")) {
            const json_t *item = at(f, "item"), *part = json_array_get(at(item, "content"), 0),
                         *t = json_array_get(texts, k);
            const json_t *whole = at(item, "arguments") ? at(item, "arguments") : at(part, "text");
            assert_string_equal(json_string_value(whole), hn_json_text_of(t, "text"));
            if (at(part, "logprobs"))
                assert_int_equal(json_array_size(at(part, "logprobs")), json_array_size(at(t, "logprobs")));
        }
        bool last = !strcmp(type, "response.completed") || !strcmp(type, "response.incomplete");
        assert_int_equal(last, i + 1 == json_array_size(frames));
        if (last) out = json_deep_copy(at(f, "response"));
        if (last) assert_true(at(f, "timings") && json_equal(at(f, "timings"), at(out, "timings")));
    }
    json_decref(texts);
    return out;
}

static json_t *ollama_client(const json_t *frames, bool done)
{
    json_t *out = json_object(), *m = json_object(), *f;
    size_t i;
    json_array_foreach(frames, i, f)
    {
        const json_t *d = at(f, "message") ? at(f, "message") : f;
        assert_int_equal(json_is_true(at(f, "done")), i + 1 == json_array_size(frames));
        join(m, "content", at(f, "message") ? at(d, "content") : at(d, "response"));
        join(m, "thinking", at(d, "thinking"));
        extend(m, "tool_calls", at(d, "tool_calls"));
        extend(m, "logprobs", at(f, "logprobs"));
        if (json_is_true(at(f, "done"))) json_object_update(out, f);
    }
    json_object_set_new(out, "message", m);
    json_object_del(out, "response");
    json_object_del(out, "thinking");
    return out;
}

static json_t *ollama_answer(const json_t *v)
{
    json_t *one = json_pack("[O]", v), *out = ollama_client(one, false);
    json_object_del(out, "logprobs");
    json_decref(one);
    return out;
}

static json_t *itself(const json_t *v) { return json_deep_copy(v); }

static const struct {
    const char *path;
    json_t *(*client)(const json_t *frames, bool done);
    json_t *(*answer)(const json_t *v);
} clients[] = {
    { "/v1/chat/completions", chat_client, chat_answer }, { "/v1/completions", text_client, text_answer },
    { "/completion", native_client, native_answer },      { "/v1/messages", messages_client, itself },
    { "/v1/responses", responses_client, itself },        { "/api/chat", ollama_client, ollama_answer },
    { "/api/generate", ollama_client, ollama_answer },
};

/* ---- streams are their answers ------------------------------------------------------------ */

static void keep(const char *of, const char *answer, const char *kind, const hn_bytes *o)
{
    char path[512], name[64];
    const char *folder = getenv("HONE_VOICES");
    if (!folder) return;
    snprintf(name, sizeof name, "%s", of + 1);
    for (char *p = name; *p; p++)
        if (*p == '/') *p = '_';
    snprintf(path, sizeof path, "%s/%s.%s.%s", folder, name, answer, kind);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(o->p, 1, o->n, f), o->n);
    assert_int_equal(fclose(f), 0);
}

static void one_answer(const route *r, size_t client, const said *s)
{
    hn_ask a;
    hn_bytes whole = { 0 };
    ask(&a, r, s, false);
    assert_true(voice_whole(&a, s, &whole));
    hn_ask_free(&a);
    json_t *body = json_of(whole.p, whole.n, "body"), *want = clients[client].answer(body);
    keep(r->path, s->name, "whole", &whole);
    assert_null(memchr(whole.p, '\n', whole.n));

    for (int steps = 0; steps < 2; steps++) {
        hn_bytes o = { 0 };
        void *state;
        bool done;
        ask(&a, r, s, true);
        assert_true(voice_stream(&a, s, steps, &o, &state));
        a.voice->drop(state);
        json_t *frames = frames_of(&o, a.voice->stream_type, &done), *got = clients[client].client(frames, done);
        if (!json_equal(got, want)) {
            char *g = json_dumps(got, JSON_INDENT(1)), *w = json_dumps(want, JSON_INDENT(1));
            fail_msg("%s %s: %.*s\ngives %s\nexpected %s", r->path, s->name, (int)o.n, o.p, g, w);
        }
        if (steps) keep(r->path, s->name, "stream", &o);
        json_decref(frames);
        json_decref(got);
        hn_bytes_free(&o);
        hn_ask_free(&a);
    }
    json_decref(body);
    json_decref(want);
    hn_bytes_free(&whole);
}

static void test_streams(void **state)
{
    size_t n = 0;
    for (size_t i = 0; i < N_ROUTES; i++) {
        assert_string_equal(routes[i].path, clients[i].path);
        for (size_t k = 0; k < N_ANSWERS; k++) {
            if (!can(routes + i, answers + k)) continue;
            one_answer(routes + i, i, answers + k);
            n++;
        }
    }
    assert_true(n > 50);
}

/* ---- frames, byte by byte ----------------------------------------------------------------- */

static const said *answer_of(const char *name)
{
    for (size_t i = 0; i < N_ANSWERS; i++)
        if (strcmp(answers[i].name, name) == 0) return answers + i;
    fail_msg("no answer %s", name);
    return NULL;
}

static void frames_are(const char *path, const char *body, const char *name, const char *want)
{
    hn_ask a;
    hn_refusal why;
    hn_bytes o = { 0 };
    void *state;
    if (!ask_of(&a, path, body, NULL, &why)) fail_msg("%s: %s", body, why.message);
    assert_true(voice_stream(&a, answer_of(name), true, &o, &state));
    a.voice->drop(state);
    hn_bytes_add(&o, "", 1);
    assert_string_equal(o.p, want);
    hn_bytes_free(&o);
    hn_ask_free(&a);
}

static void whole_is(const char *path, const char *body, const char *name, const char *want)
{
    hn_ask a;
    hn_refusal why;
    hn_bytes o = { 0 };
    if (!ask_of(&a, path, body, NULL, &why)) fail_msg("%s: %s", body, why.message);
    assert_true(voice_whole(&a, answer_of(name), &o));
    hn_bytes_add(&o, "", 1);
    assert_string_equal(o.p, want);
    hn_bytes_free(&o);
    hn_ask_free(&a);
}

#define CHUNK                                                                                                          \
    "data: {\"id\":\"chatcmpl-0123456789abcdefABCDEFGH\",\"object\":\"chat.completion.chunk\",\"created\":1794000000," \
    "\"model\":\"tiny \\\"q\\\"\",\"system_fingerprint\":\"b1-scalar-0a0b\",\"choices\":["
#define GOES_ON ",\"logprobs\":null,\"finish_reason\":null}]}\n\n"
#define TIMINGS                                                                                        \
    "\"timings\":{\"cache_n\":4,\"prompt_n\":8,\"prompt_ms\":16.0,"                                    \
    "\"prompt_per_token_ms\":2.0,\"prompt_per_second\":500.0,\"predicted_n\":7,\"predicted_ms\":70.0," \
    "\"predicted_per_token_ms\":14.0,\"predicted_per_second\":71.429}"
#define HONE "\"hone\":{\"seed\":18446744073709551615,\"queue_ms\":1.5,\"ttft_ms\":20.25}"
#define USAGE                                                                                                 \
    "\"usage\":{\"prompt_tokens\":12,\"completion_tokens\":7,\"total_tokens\":19,\"prompt_tokens_details\":{" \
    "\"cached_tokens\":4},\"completion_tokens_details\":{\"reasoning_tokens\":2}}"

static void test_chat_frames(void **state)
{
    frames_are(
        "/v1/chat/completions", "{" USER ",\"stream\":true}", "calls",
        CHUNK
        "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null}" GOES_ON    /* */
            CHUNK "{\"index\":0,\"delta\":{\"reasoning_content\":\"Which?\"}" GOES_ON /* */
                CHUNK "{\"index\":0,\"delta\":{\"content\":\"I'll look.\"}" GOES_ON   /* */
                    CHUNK
        "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_0123456789abcdefghijklmn\","
        "\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"\"}}]}" GOES_ON CHUNK
        "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{\\\"city\\\":"
        "\\\"K\xC3\xB6ln\\\"\"}}]}" GOES_ON /* */
            CHUNK "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\",\\\"days\\\": "
        "3}\"}}]}" GOES_ON /* */
            CHUNK "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"call_zyxwvutsrqponmlkjihgfedc\","
        "\"type\":\"function\",\"function\":{\"name\":\"now\",\"arguments\":\"\"}}]}" GOES_ON /* */
            CHUNK
        "{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":1,\"function\":{\"arguments\":\"{}\"}}]}" GOES_ON CHUNK
        "{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"tool_calls\"}]," TIMINGS "," HONE "}\n\n"
        "data: [DONE]\n\n");
    frames_are(
        "/v1/chat/completions", "{" USER ",\"stream\":true,\"stream_options\":{\"include_usage\":true}}", "nothing",
        CHUNK "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":null},\"logprobs\":null,\"finish_reason\":"
              "null}],\"usage\":null}\n\n"                                                                   /* */
        CHUNK "{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":null}\n\n" /* */
        CHUNK "]," USAGE "," TIMINGS "," HONE "}\n\ndata: [DONE]\n\n");
    whole_is(
        "/v1/chat/completions", "{" USER "}", "only_calls",
        "{\"id\":\"chatcmpl-0123456789abcdefABCDEFGH\",\"object\":\"chat.completion\",\"created\":1794000000,"
        "\"model\":\"tiny \\\"q\\\"\",\"system_fingerprint\":\"b1-scalar-0a0b\",\"choices\":[{\"index\":0,\"message\":{"
        "\"role\":\"assistant\",\"content\":null,\"refusal\":null,\"tool_calls\":[{\"id\":\"AbCdEf123\",\"type\":"
        "\"function\",\"function\":{\"name\":\"now\",\"arguments\":\"\"}}]},\"logprobs\":null,\"finish_reason\":"
        "\"tool_calls\"}]," USAGE "," TIMINGS "," HONE "}");
}

#define TEXT_CHUNK                                                                                                     \
    "data: {\"id\":\"cmpl-0123456789abcdefABCDEFGH\",\"object\":\"text_completion\",\"created\":1794000000,\"model\":" \
    "\"tiny \\\"q\\\"\",\"system_fingerprint\":\"b1-scalar-0a0b\",\"choices\":["

static void test_text_frames(void **state)
{
    frames_are(
        "/v1/completions", "{\"prompt\":\"hi\",\"stream\":true,\"logprobs\":2}", "logprobs",
        TEXT_CHUNK "{\"text\":\"He\",\"index\":0,\"logprobs\":{\"tokens\":[\"He\"],\"token_logprobs\":[-0.25],"
                   "\"top_logprobs\":[{\"He\":-0.25,\"bytes:\\\\xc3\":-2.5}],\"text_offset\":[0]},\"finish_reason\":"
                   "null}]}\n\n" /* */
        TEXT_CHUNK "{\"text\":\"\xC3\xB6\",\"index\":0,\"logprobs\":{\"tokens\":[\"bytes:\\\\xc3\",\"bytes:\\\\xb6\"],"
                   "\"token_logprobs\":[-0.1,-9999.0],\"top_logprobs\":[{\"bytes:\\\\xc3\":-0.1},{\"z\":-1e-07,"
                   "\"bytes:\\\\xb6\":-9999.0}],\"text_offset\":[2,3]},\"finish_reason\":null}]}\n\n" /* */
        TEXT_CHUNK "{\"text\":\"\\\"\",\"index\":0,\"logprobs\":{\"tokens\":[\"\\\"\"],\"token_logprobs\":[-3.0],"
                   "\"top_logprobs\":[{\"\\\"\":-0.5}],\"text_offset\":[3]},\"finish_reason\":null}]}\n\n" /* */
        TEXT_CHUNK "{\"text\":\"\",\"index\":0,\"logprobs\":null,\"finish_reason\":\"stop\"}]," TIMINGS "," HONE
                   "}\n\ndata: [DONE]\n\n");
}

/* The prompt said again, with its log-probabilities: the first has none. */
static void test_echo(void **state)
{
    hn_ask a;
    hn_refusal why;
    hn_bytes o = { 0 };
    if (!ask_of(&a, "/v1/completions", "{\"prompt\":\"a b\",\"echo\":true,\"logprobs\":1,\"max_tokens\":1}", NULL,
                &why))
        fail_msg("%s", why.message);
    assert_true(voice_whole(&a, answer_of("echo"), &o));
    hn_bytes_add(&o, "", 1);
    assert_non_null(strstr(
        o.p, "\"choices\":[{\"text\":\"a b!\",\"index\":0,\"logprobs\":{\"tokens\":[\"<s>\",\" a\",\" b\",\"!\"],"
             "\"token_logprobs\":[null,-1.5,-2.0,-0.5],\"top_logprobs\":[null,{\" a\":-1.5},{\" c\":-1.0,"
             "\" b\":-2.0},{\"!\":-0.5}],\"text_offset\":[0,0,1,3]},\"finish_reason\":\"length\"}]"));
    hn_ask_free(&a);
    o.n = 0;
    if (!ask_of(&a, "/v1/completions", "{\"prompt\":\"a b\",\"prompt_logprobs\":1,\"max_tokens\":1}", NULL, &why))
        fail_msg("%s", why.message);
    assert_true(voice_whole(&a, answer_of("echo"), &o));
    hn_bytes_add(&o, "", 1);
    assert_non_null(strstr(o.p, "\"choices\":[{\"text\":\"!\",\"index\":0,"));
    assert_non_null(strstr(
        o.p, "\"prompt_logprobs\":[null,{\"2\":{\"logprob\":-1.5,\"decoded_token\":\" a\"}},{\"4\":{\"logprob\":-1.0,"
             "\"decoded_token\":\" c\"},\"3\":{\"logprob\":-2.0,\"decoded_token\":\" b\"}}]"));
    hn_ask_free(&a);
    hn_bytes_free(&o);
}

#define BLOCK(n) "event: content_block_" n "\ndata: {\"type\":\"content_block_" n "\",\"index\":"

static void test_messages_frames(void **state)
{
    frames_are(
        "/v1/messages", "{\"max_tokens\":9," USER ",\"stream\":true}", "calls",
        "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_0123456789abcdefABCDEFGH\","
        "\"type\":\"message\",\"role\":\"assistant\",\"model\":\"tiny \\\"q\\\"\",\"content\":[],\"stop_reason\":null,"
        "\"stop_sequence\":null,\"usage\":{\"input_tokens\":0,\"cache_creation_input_tokens\":0,"
        "\"cache_read_input_tokens\":0,\"output_tokens\":0,\"output_tokens_details\":{\"thinking_tokens\":"
        "0}}}}\n\n"                                                                                            /* */
        BLOCK("start") "0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n" /* */
        BLOCK("delta") "0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Which?\"}}\n\n"                /* */
        BLOCK("delta") "0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"\"}}\n\n"                    /* */
        BLOCK("stop") "0}\n\n"                                                                                 /* */
        BLOCK("start") "1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"                            /* */
        BLOCK("delta") "1,\"delta\":{\"type\":\"text_delta\",\"text\":\"I'll look.\"}}\n\n"                    /* */
        BLOCK("stop") "1}\n\n"                                                                                 /* */
        BLOCK("start") "2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_0123456789abcdefghijklmn\",\"name\":"
                       "\"get_weather\",\"input\":{}}}\n\n" /* */
        BLOCK("delta") "2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"city\\\":\\\"K\xC3\xB6ln\\\""
                       "\"}}\n\n"                                                                                /* */
        BLOCK("delta") "2,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\",\\\"days\\\": 3}\"}}\n\n" /* */
        BLOCK("stop") "2}\n\n"                                                                                   /* */
        BLOCK("start") "3,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_zyxwvutsrqponmlkjihgfedc\",\"name\":"
                       "\"now\",\"input\":{}}}\n\n"                                               /* */
        BLOCK("delta") "3,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n" /* */
        BLOCK("stop") "3}\n\n"                                                                    /* */
                      "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\","
                      "\"stop_sequence\":null},\"usage\":{\"input_tokens\":8,\"cache_creation_input_tokens\":0,"
                      "\"cache_read_input_tokens\":4,\"output_tokens\":7,\"output_tokens_details\":{\"thinking_"
                      "tokens\":2}}}\n\n"
                      "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    whole_is(
        "/v1/messages", "{\"max_tokens\":9," USER "}", "word",
        "{\"id\":\"msg_0123456789abcdefABCDEFGH\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"tiny "
        "\\\"q\\\"\","
        "\"content\":[{\"type\":\"text\",\"text\":\"one \"}],\"stop_reason\":\"stop_sequence\",\"stop_sequence\":"
        "\"STOP\\n\",\"usage\":{\"input_tokens\":8,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":4,"
        "\"output_tokens\":7,\"output_tokens_details\":{\"thinking_tokens\":2}}}");
}

static void test_ollama_lines(void **state)
{
#define LINE "{\"model\":\"tiny \\\"q\\\"\",\"created_at\":\"2026-11-06T21:20:00.000000005Z\","
    frames_are(
        "/api/chat", "{" USER "}", "calls",
        LINE
        "\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"Which?\"},\"done\":false}\n" /* */
        LINE "\"message\":{\"role\":\"assistant\",\"content\":\"I'll look.\"},\"done\":false}\n"          /* */
        LINE "\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":"
        "\"call_0123456789abcdefghijklmn\",\"function\":{\"index\":0,\"name\":\"get_weather\",\"arguments\":{"
        "\"city\":\"K\xC3\xB6ln\",\"days\": 3}}}]},\"done\":false}\n" /* */
        LINE "\"message\":{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":"
        "\"call_zyxwvutsrqponmlkjihgfedc\",\"function\":{\"index\":1,\"name\":\"now\",\"arguments\":{}}}]},\"done\":"
        "false}\n" /* */
        LINE "\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\","
        "\"total_duration\":2100000000,\"load_duration\":0,\"prompt_eval_count\":12,\"prompt_eval_duration\":"
        "16000000,\"eval_count\":7,\"eval_duration\":70000000," HONE "}\n");
}

/* ---- failures, keep-alives, what generates nothing ------------------------------------------ */

static void test_failures(void **state)
{
    static const struct {
        const char *path, *alive, *end;
    } cases[] = {
        { "/v1/chat/completions", ": keepalive\n\n",
          "data: {\"error\":{\"message\":\"too late\",\"type\":\"timeout_error\",\"param\":null,\"code\":null}}\n\n" },
        { "/v1/completions", ": keepalive\n\n", "\"code\":null}}\n\n" },
        { "/completion", ": keepalive\n\n", "\"code\":null}}\n\n" },
        { "/v1/messages", "event: ping\ndata: {\"type\":\"ping\"}\n\n",
          "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"timeout_error\",\"message\":\"too late\"},"
          "\"request_id\":\"req-1\"}\n\n" },
        { "/v1/responses", ": keepalive\n\n", "\"usage\":null}}\n\n" },
        { "/api/chat", "\"content\":\"\"},\"done\":false}\n", "{\"error\":\"too late\"}\n" },
        { "/api/generate", "\"response\":\"\",\"done\":false}\n", "{\"error\":\"too late\"}\n" },
    };
    for (size_t i = 0; i < N_ROUTES; i++) {
        hn_ask a;
        hn_refusal r;
        hn_bytes o = { 0 };
        void *st;
        const hn_say says[] = { S(TEXT, "a"), STEP };
        assert_string_equal(cases[i].path, routes[i].path);
        ask(&a, routes + i, answer_of("plain"), true);
        assert_true(a.voice->begin(&a, &voice_head, &o, &st));
        assert_true(a.voice->say(&a, &voice_head, st, says, 2, &o));
        size_t n = strlen(cases[i].alive);
        assert_true(o.n > n);
        assert_memory_equal(o.p + o.n - n, cases[i].alive, n);
        hn_refuse(&r, 504, NULL, NULL, "too late");
        assert_true((a.voice->fail)(&a, &voice_head, st, &r, &o));
        n = strlen(cases[i].end);
        assert_memory_equal(o.p + o.n - n, cases[i].end, n);
        assert_null(memmem(o.p, o.n, "[DONE]", 6));
        if (!strcmp(routes[i].path, "/v1/responses"))
            assert_non_null(memmem(o.p, o.n,
                                   "\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":"
                                   "\"too late\"}",
                                   66));
        a.voice->drop(st);
        a.voice->drop(NULL);
        hn_bytes_free(&o);
        hn_ask_free(&a);
    }
}

static void found_is(const char *path, const char *body, const hn_found *f, const char *want)
{
    hn_ask a;
    hn_refusal why;
    hn_bytes o = { 0 };
    if (!ask_of(&a, path, body, NULL, &why)) fail_msg("%s: %s", body, why.message);
    assert_true(a.voice->found(&a, &voice_head, f, &o));
    keep(path, a.base64 ? "base64" : a.kind == HN_ASK_LOAD ? "load" : "found", "whole", &o);
    hn_bytes_add(&o, "", 1);
    assert_string_equal(o.p, want);
    hn_bytes_free(&o);
    hn_ask_free(&a);
}

static void test_found(void **state)
{
    const int32_t ids[] = { 5, 0, 999 };
    const hone_str pieces[] = { { "a\"", 2 }, { "\xC3", 1 }, { "", 0 } };
    const hone_span spans[] = { { 2, 5 }, { 9, 9 } };
    const float v[] = { 1, -0.5f, 0.1f, 0 }, scores[] = { 0.5f, 0.75f, 0.5f };
    hn_found f = { .n_tokens = 12,
                   .ids = ids,
                   .n_ids = 3,
                   .pieces = pieces,
                   .text = "x\ny",
                   .len = 3,
                   .input = spans,
                   .n_input = 2,
                   .vectors = v,
                   .n_dim = 2,
                   .scores = scores,
                   .total_ms = 1.5 };
    found_is("/tokenize", "{\"content\":\"x\"}", &f, "{\"tokens\":[5,0,999]}");
    found_is("/tokenize", "{\"content\":\"x\",\"with_pieces\":true}", &f,
             "{\"tokens\":[{\"id\":5,\"piece\":\"a\\\"\"},{\"id\":0,\"piece\":[195]},{\"id\":999,\"piece\":\"\"}]}");
    found_is("/detokenize", "{\"tokens\":[1]}", &f, "{\"content\":\"x\\ny\"}");
    found_is("/apply-template", "{" USER "}", &f, "{\"prompt\":\"x\\ny\",\"input_spans\":[[2,5],[9,9]]}");
    found_is("/v1/chat/completions/input_tokens", "{" USER "}", &f,
             "{\"object\":\"response.input_tokens\",\"input_tokens\":12}");
    found_is("/v1/responses/input_tokens", "{\"input\":\"hi\"}", &f,
             "{\"object\":\"response.input_tokens\",\"input_tokens\":12}");
    found_is("/v1/messages/count_tokens", "{" USER "}", &f, "{\"input_tokens\":12}");
    found_is(
        "/v1/embeddings", "{\"input\":[\"a\",\"b\"]}", &f,
        "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":[1.0,-0.5]},{\"object\":"
        "\"embedding\",\"index\":1,\"embedding\":[0.1,0.0]}],\"model\":\"tiny "
        "\\\"q\\\"\",\"usage\":{\"prompt_tokens\":12,"
        "\"total_tokens\":12}}");
    found_is("/v1/embeddings", "{\"input\":\"a\",\"encoding_format\":\"base64\"}", &f,
             "{\"object\":\"list\",\"data\":[{\"object\":\"embedding\",\"index\":0,\"embedding\":\"AACAPwAAAL8=\"}],"
             "\"model\":"
             "\"tiny \\\"q\\\"\",\"usage\":{\"prompt_tokens\":12,\"total_tokens\":12}}");
    found_is("/embedding", "{\"content\":\"a\"}", &f, "[{\"index\":0,\"embedding\":[[1.0,-0.5]]}]");
    found_is(
        "/v1/rerank", "{\"query\":\"q\",\"documents\":[\"x\",{\"text\":\"y\"},\"z\"],\"return_documents\":true}", &f,
        "{\"model\":\"tiny "
        "\\\"q\\\"\",\"object\":\"list\",\"usage\":{\"prompt_tokens\":12,\"total_tokens\":12},\"results\":["
        "{\"index\":1,\"relevance_score\":0.75,\"document\":{\"text\":\"y\"}},{\"index\":0,\"relevance_score\":0.5,"
        "\"document\":{\"text\":\"x\"}},{\"index\":2,\"relevance_score\":0.5,\"document\":{\"text\":\"z\"}}]}");
    found_is("/rerank", "{\"query\":\"q\",\"documents\":[\"x\",\"y\",\"z\"],\"top_n\":1}", &f,
             "{\"model\":\"tiny "
             "\\\"q\\\"\",\"object\":\"list\",\"usage\":{\"prompt_tokens\":12,\"total_tokens\":12},\"results\":["
             "{\"index\":1,\"relevance_score\":0.75}]}");
    found_is("/rerank", "{\"query\":\"q\",\"texts\":[\"x\",\"y\",\"z\"],\"top_n\":2,\"return_text\":true}", &f,
             "[{\"index\":1,\"score\":0.75,\"text\":\"y\"},{\"index\":0,\"score\":0.5,\"text\":\"x\"}]");
    found_is("/api/embeddings", "{\"prompt\":\"a\"}", &f, "{\"embedding\":[1.0,-0.5]}");
    found_is("/api/embeddings", "{\"prompt\":\"\"}", &f, "{\"embedding\":[]}");
    found_is("/api/embed", "{\"input\":[\"a\",\"b\"]}", &f,
             "{\"model\":\"tiny "
             "\\\"q\\\"\",\"embeddings\":[[1.0,-0.5],[0.1,0.0]],\"total_duration\":1500000,\"load_duration\":0,"
             "\"prompt_eval_count\":12}");
    found_is("/api/chat", "{\"keep_alive\":0}", &f,
             "{\"model\":\"tiny "
             "\\\"q\\\"\",\"created_at\":\"2026-11-06T21:20:00.000000005Z\",\"message\":{\"role\":\"assistant\","
             "\"content\":\"\"},\"done\":true,\"done_reason\":\"unload\"}\n");
}

/* What llama-server's clients pick of an answer. */
static void test_response_fields(void **state)
{
    whole_is("/completion",
             "{\"prompt\":\"hi\",\"response_fields\":[\"content\",\"generation_settings/"
             "n_predict\",\"missing\",\"stop_type\"]}",
             "length", "{\"content\":\"A long story\",\"generation_settings/n_predict\":-1,\"stop_type\":\"limit\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_streams),  cmocka_unit_test(test_chat_frames),     cmocka_unit_test(test_text_frames),
        cmocka_unit_test(test_echo),     cmocka_unit_test(test_messages_frames), cmocka_unit_test(test_ollama_lines),
        cmocka_unit_test(test_failures), cmocka_unit_test(test_found),           cmocka_unit_test(test_response_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
