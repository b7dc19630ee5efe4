/* What turns and answers are made of, in a whole hone serve: earlier turns as ids, roles that a template does not have,
 * the tokens that a text came from, the stop string that cut it. */
#define _GNU_SOURCE
#include "serve_site.h"

/* ---- numbers and texts of answers ------------------------------------------------------------------------------- */

/* Asks, with a body of a format. */
__attribute__((format(printf, 4, 5))) static json_t *ask(int port, const char *path, int status, const char *body, ...)
{
    va_list ap;
    char *text;
    va_start(ap, body);
    if (vasprintf(&text, body, ap) < 0) fail();
    va_end(ap);
    json_t *j = ask_json(port, "POST", path, text, status);
    free(text);
    return j;
}

static const char *text_of(const json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));
    if (!s) fail_msg("%s is no text", name);
    return s;
}

static char *json_text(const json_t *j) { return json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY); }

/* Do n ids of a, from `from` on, stand in b from `at` on? */
static bool same_ids(const json_t *a, size_t from, const json_t *b, size_t at, size_t n)
{
    if (json_array_size(a) < from + n || json_array_size(b) < at + n) return false;
    for (size_t i = 0; i < n; i++)
        if (!json_equal(json_array_get(a, from + i), json_array_get(b, at + i))) return false;
    return true;
}

/* ---- earlier turns as ids --------------------------------------------------------------------------------------- */

#define GENERATE \
    "{\"model\":\"chat\",\"prompt\":\"%s\",\"stream\":false,\"options\":{\"num_predict\":8,\"temperature\":0}"

/* A turn behind the ids of those before: they stand in front of its prompt, which begins no text, and in its own. */
static json_t *goes_on(int port, const json_t *before, const char *prompt)
{
    json_t *alone = ask(port, "/api/generate", 200, GENERATE "}", prompt);
    char *ids = json_text(before);
    json_t *j = ask(port, "/api/generate", 200, GENERATE ",\"context\":%s}", prompt, ids);
    const json_t *all = json_object_get(j, "context"), *own = json_object_get(alone, "context");
    size_t n = json_array_size(before), n_own = (size_t)json_integer_value(json_object_get(alone, "prompt_eval_count")),
           n_all = (size_t)json_integer_value(json_object_get(j, "prompt_eval_count"));
    size_t begun = n + n_own - n_all; /* the token that begins a text, once */
    assert_true(n && n_own && begun <= 1);
    assert_true(same_ids(before, 0, all, 0, n));
    assert_true(same_ids(own, begun, all, n, n_own - begun));
    if (begun) assert_true(same_ids(own, 0, all, 0, 1));

    /* the answer is that to these ids */
    json_t *prompt_ids = json_array();
    for (size_t i = 0; i < n_all; i++) json_array_append(prompt_ids, json_array_get(all, i));
    free(ids);
    ids = json_text(prompt_ids);
    json_t *raw =
        ask(port, "/completion", 200, "{\"prompt\":%s,\"n_predict\":8,\"temperature\":0,\"return_tokens\":true}", ids);
    const json_t *tokens = json_object_get(raw, "tokens");
    assert_true(json_array_size(tokens) > 0 && same_ids(tokens, 0, all, n_all, json_array_size(tokens)));
    free(ids);
    json_decref(raw);
    json_decref(prompt_ids);
    json_decref(alone);
    return j;
}

static void generate_goes_on(void **state)
{
    running r = { 0 };
    r.p.ollama = true;
    start(&r, 2);
    json_t *one = ask(r.port, "/api/generate", 200, GENERATE "}", "The dog sat.");
    json_t *two = goes_on(r.port, json_object_get(one, "context"), "And the cat?");
    json_t *three = goes_on(r.port, json_object_get(two, "context"), "Why?");

    /* also where little is said: the ids are those of the prompt, and then those */
    char *ids = json_text(json_object_get(two, "context"));
    json_t *j = ask(r.port, "/api/generate", 200,
                    "{\"model\":\"chat\",\"prompt\":\"Why?\",\"stream\":false,\"context\":%s,"
                    "\"options\":{\"num_predict\":1}}",
                    ids);
    const json_t *said = json_object_get(j, "context");
    assert_int_equal(json_array_size(said), json_integer_value(json_object_get(j, "prompt_eval_count")) + 1);
    assert_true(same_ids(said, 0, json_object_get(three, "context"), 0, json_array_size(said)));
    json_decref(j);

    /* as they come */
    char *body;
    if (asprintf(&body,
                 "{\"model\":\"chat\",\"prompt\":\"Why?\",\"context\":%s,\"options\":{\"num_predict\":8,"
                 "\"temperature\":0}}",
                 ids) < 0)
        fail();
    client_answer a = client_ask(r.port, "POST", "/api/generate", NULL, body);
    assert_int_equal(a.status, 200);
    char *last = a.body, *want = json_text(json_object_get(three, "context"));
    for (char *p = a.body; (p = strchr(p, '\n')) && p[1]; p++) last = p + 1;
    j = json_loads(last, JSON_DISABLE_EOF_CHECK, NULL);
    char *is = json_text(json_object_get(j, "context"));
    assert_string_equal(is, want);
    json_decref(j);
    client_free(&a);
    free(body), free(is), free(want), free(ids);

    /* what the model does not know is refused */
    j = ask(r.port, "/api/generate", 400, GENERATE ",\"context\":[999999999]}", "Why?");
    json_decref(j);
    json_decref(one), json_decref(two), json_decref(three);
    stop(&r);
}

/* ---- roles ------------------------------------------------------------------------------------------------------ */

#define TURNS "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"

static void sees(int port, const char *model, const char *want)
{
    json_t *j = ask(port, "/apply-template", 200,
                    "{\"model\":\"%s\",\"messages\":[{\"role\":\"developer\",\"content\":\"a\"},{\"role\":\"user\","
                    "\"content\":\"b\"}]}",
                    model);
    assert_string_equal(text_of(j, "prompt"), want);
    json_decref(j);
}

/* The prompt depends on the model that is asked for: not on how many there are, nor on which is loaded. */
static void developers_are_the_models(void **state)
{
    for (int n = 1; n <= 2; n++)
        for (int knows = 0; knows < 2; knows++) {
            running r = { 0 };
            r.p.shelf.n_models = (size_t)n;
            r.p.shelf.chat_template = knows ? TURNS "{# developer #}{{ 'developer' if false }}" : TURNS;
            start(&r, 2);
            const char *want = knows ? "[developer]a[user]b" : "[system]a[user]b";
            sees(r.port, "chat", want);
            sees(r.port, "chat", want);
            if (n == 2) sees(r.port, "other", want);
            stop(&r);
        }
}

/* ---- ids of calls ----------------------------------------------------------------------------------------------- */

static const char nine[] =
    "{% for m in messages %}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('9!') }}"
    "{% endif %}[TOOL_CALLS]{{ c.function.name }}{{ c.function.arguments }}{{ c.id }}{% endfor %}{% if m.role == "
    "'tool' "
    "%}{% if m.tool_call_id | length != 9 %}{{ raise_exception('9!') }}{% endif %}{{ m.tool_call_id }}{% endif %}"
    "{{ m.content }}{% endfor %}";

#define ASKED "{\"role\":\"user\",\"content\":\"q\"}"
#define CALLED(id)                                 \
    "{\"role\":\"assistant\",\"tool_calls\":[{" id \
    "\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":%s}}]}"

/* Mistral's templates refuse ids of other lengths: one conversation is one prompt by each route, whatever its ids. */
static void ids_fit_the_template(void **state)
{
    running r = { 0 };
    r.p.ollama = true;
    r.p.shelf.chat_template = nine;
    start(&r, 2);
    json_t *chat =
        ask(r.port, "/v1/chat/completions", 200,
            "{\"max_tokens\":1,\"messages\":[" ASKED
            "," CALLED("\"id\":\"call_ABCDEFGHIJKLMNOPQRSTUVWX\",") ",{\"role\":\"tool\",\"tool_call_id\":\"call_"
                                                                    "ABCDEFGHIJKLMNOPQRSTUVWX\",\"content\":\"r\"}]}",
            "\"{}\"");
    json_t *ollama = ask(r.port, "/api/chat", 200,
                         "{\"model\":\"chat\",\"stream\":false,\"options\":{\"num_predict\":1},\"messages\":[" ASKED
                         "," CALLED("") ",{\"role\":\"tool\",\"content\":\"r\"}]}",
                         "{}");
    static const char *const ids[] = { "toolu_ABCDEFGHIJKLMNOPQRSTUVWX", "toolu_aB3dE6gH9" };
    json_int_t want = json_integer_value(json_object_get(json_object_get(chat, "usage"), "prompt_tokens"));
    assert_true(want > 0 && json_integer_value(json_object_get(ollama, "prompt_eval_count")) == want);
    for (size_t i = 0; i < 2; i++) {
        json_t *j = ask(r.port, "/v1/messages", 200,
                        "{\"max_tokens\":1,\"messages\":[" ASKED ",{\"role\":\"assistant\",\"content\":[{\"type\":"
                        "\"tool_use\",\"id\":\"%s\",\"name\":\"f\",\"input\":{}}]},{\"role\":\"user\",\"content\":[{"
                        "\"type\":\"tool_result\",\"tool_use_id\":\"%s\",\"content\":\"r\"}]}]}",
                        ids[i], ids[i]);
        const json_t *u = json_object_get(j, "usage");
        json_int_t n = json_integer_value(json_object_get(u, "input_tokens")) +
                       json_integer_value(json_object_get(u, "cache_read_input_tokens"));
        if (i == 0) assert_int_equal(n, want);
        json_decref(j);
    }
    json_decref(chat), json_decref(ollama);
    stop(&r);
}

/* ---- the tokens of a text --------------------------------------------------------------------------------------- */

static const char thinks[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n"
    "</think>\n\n{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt "
    "%}<|im_start|>assistant\n"
    "<think>\n{% endif %}";

/* … and as gpt-oss has it, whose answer is a message of its own. */
static const char channels[] =
    "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}{% if m.thinking %}<|channel|>analysis"
    "<|message|>{{ m.thinking }}<|end|><|start|>assistant{% endif %}<|channel|>final{% endif %}<|message|>"
    "{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant<|channel|>analysis<|message|>"
    "{% endif %}";

/* The bytes of a list of tokens, one behind the other. */
static void add_bytes(char *out, size_t cap, const json_t *list)
{
    size_t i, k, n = strlen(out);
    json_t *t, *b;
    json_array_foreach(list, i, t) json_array_foreach(json_object_get(t, "bytes"), k, b)
    {
        assert_true(n + 1 < cap);
        out[n++] = (char)json_integer_value(b);
        out[n] = 0;
    }
}

/* Tokens spell the text; of the first one blanks in front of an answer may have been left out. */
static void spells(const char *tokens, const char *text)
{
    const char *at = tokens;
    while (strlen(at) > strlen(text) && strchr(" \n", *at)) at++;
    if (strcmp(at, text) != 0) fail_msg("the text is \"%s\", its tokens spell \"%s\"", text, tokens);
}

static void add(char *out, size_t cap, const json_t *text)
{
    const char *s = json_string_value(text);
    if (!s) return;
    assert_true(strlen(out) + strlen(s) < cap);
    strcat(out, s);
}

#define THINK                                                                        \
    "{\"messages\":[{\"role\":\"user\",\"content\":\"Tell me about the dog, number " \
    "%d.\"}],\"logprobs\":true,\"seed\":%d,"                                         \
    "\"temperature\":%d,\"max_tokens\":40,\"reasoning_budget_tokens\":%d"

static void have_their_tokens(const char *template)
{
    enum { CAP = 4096 };
    running r = { 0 };
    int thought = 0, told = 0; /* reasoned, and said something behind it */
    r.p.shelf.chat_template = template;
    start(&r, 2);
    for (int i = 0; i < 12; i++) {
        char tokens[CAP] = "", text[CAP] = "", reasoning[CAP] = "", body[600];
        json_t *j = ask(r.port, "/v1/chat/completions", 200, THINK "}", i, i, 1, 1 + i % 3);
        const json_t *choice = json_array_get(json_object_get(j, "choices"), 0),
                     *message = json_object_get(choice, "message");
        add(text, CAP, json_object_get(message, "content"));
        add(reasoning, CAP, json_object_get(message, "reasoning_content"));
        add_bytes(tokens, CAP, json_object_get(json_object_get(choice, "logprobs"), "content"));
        spells(tokens, text);
        thought += *reasoning && *text;
        told += *tokens != 0;
        json_decref(j);

        char streamed[CAP] = "", tokens_streamed[CAP] = "";
        bool done = false;
        snprintf(body, sizeof body, THINK ",\"stream\":true}", i, i, 1, 1 + i % 3);
        client_answer a = client_ask(r.port, "POST", "/v1/chat/completions", NULL, body);
        assert_int_equal(a.status, 200);
        const char *at = a.body;
        for (json_t *e; (e = client_event(&at, &done)); json_decref(e)) {
            choice = json_array_get(json_object_get(e, "choices"), 0);
            const json_t *list = json_object_get(json_object_get(choice, "logprobs"), "content"),
                         *content = json_object_get(json_object_get(choice, "delta"), "content");
            if (json_array_size(list)) assert_true(json_string_length(content) > 0);
            add(streamed, CAP, content);
            add_bytes(tokens_streamed, CAP, list);
        }
        assert_true(done);
        assert_string_equal(streamed, text);
        assert_string_equal(tokens_streamed, tokens);
        client_free(&a);
    }
    if (!thought || told < thought) fail_msg("%d of 12 reasoned and answered, %d had tokens", thought, told);
    stop(&r);
}

static void texts_have_their_tokens(void **state)
{
    have_their_tokens(thinks);
    have_their_tokens(channels);
}

/* ---- stop strings ----------------------------------------------------------------------------------------------- */

/* Of stop strings that end at one place the longest is the one that cut the text. */
static void the_longest_stops(void **state)
{
    static const char ask_more[] = "{\"prompt\":\"The dog\",\"n_predict\":30,\"temperature\":0";
    running r = { 0 };
    start(&r, 2);
    json_t *j = ask(r.port, "/completion", 200, "%s}", ask_more);
    char *all = strdup(text_of(j, "content")), one[2] = "", two[3] = "";
    size_t at = 2;
    while (all[at] && memchr(all, all[at], at)) at++; /* a character that was not there before */
    assert_true(all[at] && !((all[at] | all[at - 1]) & 0x80));
    one[0] = two[1] = all[at];
    two[0] = all[at - 1];
    json_decref(j);
    for (int turn = 0; turn < 2; turn++) {
        json_t *stops = json_pack("[s,s]", turn ? one : two, turn ? two : one);
        char *list = json_text(stops);
        j = ask(r.port, "/completion", 200, "%s,\"stop\":%s}", ask_more, list);
        assert_string_equal(text_of(j, "stop_type"), "word");
        assert_string_equal(text_of(j, "stopping_word"), two);
        assert_int_equal(strlen(text_of(j, "content")), at - 1);
        assert_memory_equal(text_of(j, "content"), all, at - 1);
        json_decref(j);
        json_decref(stops);
        free(list);
    }
    free(all);
    stop(&r);
}

/* ---- what was asked for and is not so --------------------------------------------------------------------------- */

/* thinks has thoughts always, and no switch. */
static void efforts_are_named(void **state)
{
    static const struct {
        bool thinks;
        const char *path, *more, *ignored; /* NULL: nothing is */
    } rows[] = {
        { true, "/v1/messages", "\"thinking\":{\"type\":\"enabled\"}", "thinking" },
        { true, "/v1/messages", "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":3}", NULL },
        { true, "/v1/messages", "\"output_config\":{\"effort\":\"low\"}", "output_config.effort" },
        { true, "/v1/messages", "\"thinking\":{\"type\":\"disabled\"}", "thinking" },
        { true, "/api/chat", "\"think\":\"low\"", "max_tokens, think" },
        { true, "/v1/chat/completions", "\"reasoning_effort\":\"low\"", "reasoning_effort" },
        { false, "/v1/messages", "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":3}", "thinking" },
    };
    for (int kind = 0; kind < 2; kind++) {
        running r = { 0 };
        char body[300], header[80];
        if (kind) r.p.shelf.chat_template = thinks;
        r.p.ollama = true;
        start(&r, 2);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            if (rows[i].thinks != kind) continue;
            snprintf(body, sizeof body,
                     "{\"max_tokens\":4,\"stream\":false,\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}],%s}",
                     rows[i].more);
            client_answer a = client_ask(r.port, "POST", rows[i].path, NULL, body);
            assert_int_equal(a.status, 200);
            snprintf(header, sizeof header, "x-hone-ignored: %s\r\n", rows[i].ignored ? rows[i].ignored : "");
            if (rows[i].ignored ? !strstr(a.head, header) : strstr(a.head, "x-hone-ignored:") != NULL)
                fail_msg("%s %s: %s expected %s", rows[i].path, body, a.head, header);
            client_free(&a);
        }

        /* ollama's clients see the template that is served */
        json_t *j = ask(r.port, "/api/show", 200, "{\"model\":\"chat\"}");
        assert_int_equal(strcmp(text_of(j, "template"), thinks) == 0, kind);
        json_decref(j);
        stop(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generate_goes_on),     cmocka_unit_test(developers_are_the_models),
        cmocka_unit_test(ids_fit_the_template), cmocka_unit_test(texts_have_their_tokens),
        cmocka_unit_test(the_longest_stops),    cmocka_unit_test(efforts_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
