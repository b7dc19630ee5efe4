/* hone serve as a whole, in this process: what clients get is what the library gives alone, whoever asks beside them;
 * what is wrong is refused in words; what stops leaves nothing behind. */
#define _GNU_SOURCE
#include "serve_site.h"
#include "slowed.h"

#include <math.h>

enum { N_CTX = SITE_CTX, N_CLIENT = 16, N_TOKEN = 24 };

/* ---- the library alone ------------------------------------------------------------------------------------------ */

typedef struct alone {
    hone_context *ctx;
    hone_model *m;
    hone_model_info info;
    hone_chat_format *format;
} alone;

static void open_alone(alone *a)
{
    hone_error e;
    must(hone_context_new(&a->ctx, &(hone_context_params){ .n_threads = 1 }, &e), &e);
    must(hone_model_open(&a->m, site_model, &(hone_model_params){ .packed = "off" }, &e), &e);
    hone_model_get_info(a->m, &a->info);
    must(hone_chat_format_new(&a->format, a->m, &(hone_chat_params){ 0 }, &e), &e);
}

static void close_alone(alone *a)
{
    hone_chat_format_free(a->format);
    hone_model_close(a->m);
    hone_context_free(a->ctx);
}

typedef struct question {
    char text[160];
    uint64_t seed;
    float temp;
    bool stream;
} question;

static void ask_about(question *q, int i)
{
    static const char *const about[] = { "the dog", "a red ball", "Tom's boat", "the rain" };
    snprintf(q->text, sizeof q->text, "%sWhat can you tell me about %s, number %d?",
             i % 3 ? "" : "Read this first: the cat sat on the mat, and the mat was blue. ", about[i % 4], i);
    q->seed = (uint64_t)(1000 + 7 * i);
    q->temp = i % 2 ? 0.9f : 0;
    q->stream = i % 4 < 2;
}

static void add_parts(char **out, size_t *n_out, const hone_reply_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *out = realloc(*out, *n_out + parts[i].len + 1);
        memcpy(*out + *n_out, parts[i].text, parts[i].len);
        (*out)[ *n_out += parts[i].len] = 0;
    }
}

/* What the model says to a question in a session of its own; malloc'ed. */
static char *say_alone(alone *a, const question *q)
{
    hone_error e;
    hone_session *s;
    hone_sampler *sampler;
    hone_reply *reply;
    char messages[400], *out = calloc(1, 1);
    size_t n_ids, n_out = 0, n_parts;
    int32_t *ids, id;
    const float *logits;
    const hone_reply_part *parts;
    hone_reply_end end = HONE_REPLY_GOES_ON;
    hone_chat_text rendered;
    hone_sampler_params sp;
    hone_sampler_defaults(&sp);
    sp.temp = q->temp;
    sp.seed = q->seed;
    snprintf(messages, sizeof messages, "[{\"role\":\"user\",\"content\":\"%s\"}]", q->text);
    hone_chat_params p = { .messages = messages, .add_generation_prompt = true };
    must(hone_chat_tokenize(a->m, &p, &ids, &n_ids, &e), &e);
    must(hone_chat_render(a->m, &p, &rendered, &e), &e);
    must(hone_session_new(&s, a->ctx, a->m, &(hone_session_params){ .n_ctx = N_CTX }, &e), &e);
    must(hone_sampler_new(&sampler, a->info.n_vocab, &sp, &e), &e);
    must(hone_reply_new(&reply, a->format, &rendered, NULL, 0, &e), &e);
    for (size_t i = 0; i < n_ids; i++) hone_sampler_accept(sampler, ids[i]);
    must(hone_append(s, 0, ids, (int32_t)n_ids, &logits, &e), &e);

    for (int n = 0; n < N_TOKEN && !end; n++) {
        must(hone_sampler_pick(sampler, logits, 0, hone_seq_length(s, 0), &id, &e), &e);
        must(hone_reply_push(reply, id, &parts, &n_parts, &end, &e), &e);
        add_parts(&out, &n_out, parts, n_parts);
        if (end) break;
        hone_sampler_accept(sampler, id);
        must(hone_append(s, 0, &id, 1, &logits, &e), &e);
    }
    if (!end) {
        must(hone_reply_flush(reply, &parts, &n_parts, &e), &e);
        add_parts(&out, &n_out, parts, n_parts);
    }
    hone_reply_free(reply);
    hone_sampler_free(sampler);
    hone_session_free(s);
    hone_chat_text_free(&rendered);
    hone_free(ids);
    return out;
}

/* ---- clients ---------------------------------------------------------------------------------------------------- */

static void body_of(const question *q, const char *more, char *dst, size_t cap)
{
    snprintf(
        dst, cap,
        "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":%d,\"temperature\":%g,\"seed\":%llu,"
        "\"stream\":%s%s}",
        q->text, (int)N_TOKEN, (double)q->temp, (unsigned long long)q->seed, q->stream ? "true" : "false", more);
}

/* The text of choice 0 of an answer, streamed or not; malloc'ed. */
static char *content_of(const client_answer *a, bool stream)
{
    char *out = calloc(1, 1);
    size_t n = 0;
    if (!stream) {
        json_t *j = json_loadb(a->body, a->n_body, 0, NULL);
        const json_t *choice = json_array_get(json_object_get(j, "choices"), 0);
        const char *text = json_string_value(json_object_get(json_object_get(choice, "message"), "content"));
        free(out);
        out = strdup(text ? text : "(none)");
        json_decref(j);
        return out;
    }
    const char *at = a->body;
    bool done = false;
    for (json_t *e; (e = client_event(&at, &done)); json_decref(e)) {
        const json_t *choice = json_array_get(json_object_get(e, "choices"), 0);
        const char *text = json_string_value(json_object_get(json_object_get(choice, "delta"), "content"));
        if (!text) continue;
        out = realloc(out, n + strlen(text) + 1);
        strcpy(out + n, text);
        n += strlen(text);
    }
    if (!done) fail_msg("a stream without [DONE]: %s", a->body);
    return out;
}

typedef struct visitor {
    pthread_t thread;
    int port;
    question q;
    client_answer answer;
} visitor;

static void *visit(void *arg)
{
    visitor *v = arg;
    char body[900];
    body_of(&v->q, "", body, sizeof body);
    v->answer = client_ask(v->port, "POST", "/v1/chat/completions", NULL, body);
    return NULL;
}

/* Asks, and goes away before the answer is there. */
static void leave_early(int port, int i)
{
    question q;
    char body[900];
    ask_about(&q, 100 + i);
    q.stream = i % 2;
    body_of(&q, "", body, sizeof body);
    int fd = client_connect(port);
    if (fd < 0) return;
    client_request(fd, "POST", "/v1/chat/completions", NULL, body);
    close(fd);
}

/* Clients that leave while their prompt is read: of every API's stream, at every moment. */
static void who_leaves_is_forgotten(void **state)
{
    static const struct {
        const char *path, *body;
    } rows[] = {
        { "/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"stream\":true}" },
        { "/v1/completions", "{\"prompt\":\"%s\",\"stream\":true,\"n\":2}" },
        { "/completion", "{\"prompt\":\"%s\",\"stream\":true}" },
        { "/v1/messages", "{\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"stream\":true,\"max_tokens\":99}" },
        { "/v1/responses", "{\"input\":\"%s\",\"stream\":true}" },
        { "/api/generate", "{\"prompt\":\"%s\",\"model\":\"chat\"}" },
    };
    enum { ROWS = sizeof rows / sizeof *rows, EACH = 40, LATER_NS = 40000 };
    running r = { 0 };
    char body[1000];
    r.p.ollama = true;
    start(&r, 3);
    for (int i = 0; i < ROWS * EACH; i++) { /* each a little later than the one before */
        if (snprintf(body, sizeof body, rows[i % ROWS].body, "Hello") < 0) fail();
        int fd = client_connect(r.port);
        assert_true(fd >= 0 && client_request(fd, "POST", rows[i % ROWS].path, NULL, body));
        for (uint64_t until = hn_serve_ns() + (uint64_t)(i / ROWS) * LATER_NS; hn_serve_ns() < until;) sched_yield();
        close(fd);
    }
    await_rest(r.port, ROWS * EACH);
    assert_true(metric(r.port, "hone_cancelled_total") > 0);
    stop(&r);
}

/* Sixteen at once, some sampled, some streamed, with others that come and go: each gets what it would get alone. */
static void everyone_gets_their_own(void **state)
{
    running r = { 0 };
    alone a;
    visitor v[N_CLIENT] = { 0 };
    open_alone(&a);
    start(&r, 5);
    for (int round = 0; round < 2; round++) { /* the second finds what the first left */
        for (int i = 0; i < N_CLIENT; i++) {
            v[i].port = r.port;
            ask_about(&v[i].q, i);
            assert_int_equal(pthread_create(&v[i].thread, NULL, visit, &v[i]), 0);
            if (i % 3 == 0) leave_early(r.port, i);
        }
        for (int i = 0; i < N_CLIENT; i++) {
            pthread_join(v[i].thread, NULL);
            if (v[i].answer.status != 200) fail_msg("status %d: %s", v[i].answer.status, v[i].answer.body);
            char *is = content_of(&v[i].answer, v[i].q.stream), *want = say_alone(&a, &v[i].q);
            if (strcmp(is, want) != 0) fail_msg("round %d, client %d: \"%s\", alone \"%s\"", round, i, is, want);
            assert_true(v[i].answer.whole);
            free(is);
            free(want);
            client_free(&v[i].answer);
        }
    }
    stop(&r);
    close_alone(&a);
}

/* ---- single answers --------------------------------------------------------------------------------------------- */

#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"Hello\"}]"

/* Tokens that are counted are named, those without text at the end, too: behind a turn the model goes on with its
 * mark. */
static void every_token_is_named(void **state)
{
    enum { MOST = 12 };
    running r = { 0 };
    start(&r, 4);
    int without = 0; /* text, at the end */
    for (int n = 1; n <= MOST; n++) {
        char body[200];
        snprintf(body, sizeof body,
                 "{\"prompt\":\"The cat\",\"max_tokens\":%d,\"temperature\":0,\"ignore_eos\":true,\"logprobs\":1}", n);
        json_t *j = ask_json(r.port, "POST", "/v1/completions", body, 200);
        const json_t *log = json_object_get(json_array_get(json_object_get(j, "choices"), 0), "logprobs"),
                     *list = json_object_get(log, "tokens");
        assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "usage"), "completion_tokens")), n);
        assert_int_equal(json_array_size(list), n);
        assert_int_equal(json_array_size(json_object_get(log, "token_logprobs")), n);
        const char *last = json_string_value(json_array_get(list, (size_t)n - 1));
        without += strcmp(last, "<|endoftext|>") == 0;
        json_decref(j);
        snprintf(body, sizeof body,
                 "{\"prompt\":\"The cat\",\"n_predict\":%d,\"temperature\":0,\"ignore_eos\":true,\"n_probs\":1}", n);
        j = ask_json(r.port, "POST", "/completion", body, 200);
        assert_int_equal(json_array_size(json_object_get(j, "completion_probabilities")), n);
        json_decref(j);
    }
    assert_true(without > 0 && without < MOST);
    stop(&r);
}

/* Shapes that need a model: what is counted, chosen, constrained. */
static void answers_have_what_was_asked(void **state)
{
    running r = { 0 };
    start(&r, 4);

    json_t *j = ask_json(r.port, "POST", "/v1/chat/completions",
                         "{" HI ",\"n\":3,\"seed\":5,\"max_tokens\":9,\"logprobs\":true,\"top_logprobs\":2}", 200);
    json_t *choices = json_object_get(j, "choices"), *usage = json_object_get(j, "usage");
    assert_int_equal(json_array_size(choices), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *c = json_array_get(choices, i),
                     *list = json_object_get(json_object_get(c, "logprobs"), "content");
        assert_int_equal(json_integer_value(json_object_get(c, "index")), (json_int_t)i);
        assert_true(json_array_size(list) >= 1);
        const json_t *top = json_object_get(json_array_get(list, 0), "top_logprobs");
        assert_int_equal(json_array_size(top), 2);
        assert_true(json_real_value(json_object_get(json_array_get(top, 0), "logprob")) <= 0);
    }
    assert_true(json_integer_value(json_object_get(usage, "prompt_tokens")) > 1);
    assert_true(json_integer_value(json_object_get(usage, "completion_tokens")) <= 27);
    double gaps = metric(r.port, "hone_inter_token_seconds_count"); /* of each choice its own */
    assert_true(gaps == (double)(json_integer_value(json_object_get(usage, "completion_tokens")) - 3));
    json_t *to_the_end = ask_json(r.port, "POST", "/v1/chat/completions", /* the turn ends before; who asks measures */
                                  "{" HI ",\"temperature\":0,\"max_tokens\":120,\"ignore_eos\":true}", 200);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(to_the_end, "usage"), "completion_tokens")),
                     120);
    json_decref(to_the_end);
    json_decref(j);

    j = ask_json(
        r.port, "POST", "/v1/chat/completions",
        "{" HI ",\"temperature\":1.5,\"seed\":3,\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
        "{\"name\":\"x\",\"schema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":3,"
        "\"maximum\":7},\"s\":{\"enum\":[\"up\",\"down\"]}},\"required\":[\"n\",\"s\"],"
        "\"additionalProperties\":false}}}}",
        200);
    const char *text = json_string_value(
        json_object_get(json_object_get(json_array_get(json_object_get(j, "choices"), 0), "message"), "content"));
    json_t *value = json_loads(text ? text : "", 0, NULL);
    if (!value) fail_msg("no JSON under a schema: %s", text);
    json_int_t n = json_integer_value(json_object_get(value, "n"));
    assert_true(n >= 3 && n <= 7);
    assert_true(json_is_string(json_object_get(value, "s")));
    json_decref(value);
    json_decref(j);

    /* a form without an end of its own is whole within its tokens, in a conversation and behind a text */
    static const char *const shortened[][2] = {
        { "/v1/chat/completions", "{" HI ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{" },
        { "/v1/completions",
          "{\"prompt\":\"The cat\",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{" },
    };
    for (int k = 0; k < 2; k++) {
        char ask[600];
        snprintf(ask, sizeof ask,
                 "%s\"name\":\"x\",\"schema\":{\"type\":\"array\",\"minItems\":2,\"items\":{\"type\":\"string\","
                 "\"minLength\":9}}}},\"temperature\":1.5,\"seed\":4,\"max_tokens\":40,\"finish_json\":true}",
                 shortened[k][1]);
        j = ask_json(r.port, "POST", shortened[k][0], ask, 200);
        const json_t *first = json_array_get(json_object_get(j, "choices"), 0);
        const json_t *said =
            k ? json_object_get(first, "text") : json_object_get(json_object_get(first, "message"), "content");
        value = json_loads(json_is_string(said) ? json_string_value(said) : "", JSON_DECODE_ANY, NULL);
        if (!json_is_array(value) || json_array_size(value) < 2)
            fail_msg("%s: not whole within its tokens: %s", shortened[k][0], json_string_value(said));
        assert_string_equal(json_string_value(json_object_get(first, "finish_reason")), "stop");
        json_decref(value);
        json_decref(j);
    }
    json_decref(
        ask_json(r.port, "POST", "/v1/chat/completions", "{" HI ",\"finish_json\":true,\"max_tokens\":9}", 400));

    j = ask_json(r.port, "POST", "/v1/completions",
                 "{\"prompt\":\"The cat\",\"max_tokens\":0,\"echo\":true,\"logprobs\":1}", 200);
    const json_t *c = json_array_get(json_object_get(j, "choices"), 0);
    assert_string_equal(json_string_value(json_object_get(c, "text")), "The cat");
    const json_t *each = json_object_get(json_object_get(c, "logprobs"), "token_logprobs");
    assert_true(json_array_size(each) >= 2);
    assert_true(json_is_null(json_array_get(each, 0)));
    assert_true(json_is_real(json_array_get(each, 1)) && json_real_value(json_array_get(each, 1)) < 0);
    json_decref(j);

    /* behind the chain: of two that top_k leaves both are told, and make 1; greedily one does */
    j = ask_json(r.port, "POST", "/completion",
                 "{\"prompt\":\"The cat\",\"n_predict\":4,\"n_probs\":3,\"post_sampling_probs\":true,\"top_k\":2,"
                 "\"top_p\":1,\"min_p\":0,\"seed\":1,\"ignore_eos\":true}",
                 200);
    const json_t *told = json_object_get(j, "completion_probabilities");
    assert_true(json_array_size(told) >= 1);
    for (size_t i = 0; i < json_array_size(told); i++) {
        const json_t *top = json_object_get(json_array_get(told, i), "top_probs");
        assert_int_equal(json_array_size(top), 2);
        double sum = 0;
        for (size_t k = 0; k < 2; k++) sum += json_number_value(json_object_get(json_array_get(top, k), "prob"));
        assert_true(fabs(sum - 1) < 1e-6);
    }
    json_decref(j);

    j = ask_json(r.port, "POST", "/tokenize", "{\"content\":\"The cat\"}", 200);
    assert_true(json_array_size(json_object_get(j, "tokens")) >= 1);
    json_decref(j);
    j = ask_json(r.port, "POST", "/v1/messages", "{\"max_tokens\":5," HI "}", 200);
    assert_string_equal(json_string_value(json_object_get(j, "type")), "message");
    json_decref(j);
    j = ask_json(r.port, "POST", "/v1/responses", "{\"input\":\"Hello\",\"max_output_tokens\":5}", 200);
    assert_string_equal(json_string_value(json_object_get(j, "object")), "response");
    json_decref(j);
    stop(&r);
}

/* ---- two models, room for one ----------------------------------------------------------------------------------- */

enum { CROWD = 6 };
typedef struct crowd {
    int port;
    _Atomic bool goes_on;
    _Atomic int n_asked;
} crowd;

static void *keep_asking(void *arg)
{
    crowd *c = arg;
    while (c->goes_on) {
        client_answer a =
            client_ask(c->port, "POST", "/v1/completions", NULL,
                       "{\"model\":\"chat\",\"prompt\":\"The cat\",\"max_tokens\":120,\"ignore_eos\":true}");
        if (a.status != 200) fail_msg("status %d: %s", a.status, a.body);
        client_free(&a);
        c->n_asked++;
    }
    return NULL;
}

/* A model that is never idle gives room to another in its turn; who waits for that has a deadline, and may leave. */
static void models_take_turns(void **state)
{
    static const char other[] = "{\"model\":\"other\",\"prompt\":\"The cat\",\"max_tokens\":3}";
    running r = { 0 };
    crowd c = { .goes_on = true };
    pthread_t t[CROWD];
    client_answer a;
    int n_other = 3; /* asked of it in the end */
    r.p.shelf.n_models = 2;
    r.p.shelf.max_loaded = 1;
    start(&r, 4);
    c.port = r.port;
    for (int i = 0; i < CROWD; i++) assert_int_equal(pthread_create(&t[i], NULL, keep_asking, &c), 0);
    while (c.n_asked < 3) sched_yield();

    a = client_ask(r.port, "POST", "/v1/completions", NULL, other);
    if (a.status != 200) fail_msg("status %d: %s", a.status, a.body);
    assert_non_null(strstr(a.body, "\"model\":\"other\""));
    client_free(&a);
    /* it may still be there, and answer at once: then the crowd has its turn first */
    for (int i = 0; i < 500; i++) {
        a = client_ask(r.port, "POST", "/v1/completions", "X-Hone-Timeout-Ms: 1\r\n", other);
        if (a.status != 200) break;
        client_free(&a);
        for (int seen = c.n_asked; c.n_asked < seen + CROWD;) sched_yield();
        n_other++;
    }
    if (a.status != 504) fail_msg("status %d: %s", a.status, a.body);
    client_free(&a);
    int fd = client_connect(r.port);
    assert_true(fd >= 0 && client_request(fd, "POST", "/v1/completions", NULL, other));
    close(fd);

    int before = c.n_asked;
    while (c.n_asked < before + 1) sched_yield();
    c.goes_on = false;
    for (int i = 0; i < CROWD; i++) pthread_join(t[i], NULL);
    await_rest(r.port, c.n_asked + n_other);
    stop(&r);
}

/* More prompts than slots and queue hold, each with several answers: all are answered, each as alone. */
static void many_prompts_fit_a_short_queue(void **state)
{
    enum { N = 9, EACH = 2 };
    running r = { 0 };
    char body[600] = "", one[200];
    r.p.shelf.scheduler.max_queue = 2;
    start(&r, 2);
    for (int stream = 0; stream < 2; stream++) {
        size_t n = (size_t)snprintf(body, sizeof body,
                                    "{\"max_tokens\":5,\"seed\":7,\"echo\":true,\"n\":%d,\"stream\":%s,\"prompt\":[",
                                    (int)EACH, stream ? "true" : "false");
        for (int i = 0; i < N; i++)
            n += (size_t)snprintf(body + n, sizeof body - n, "%s\"The cat %d\"", i ? "," : "", i);
        snprintf(body + n, sizeof body - n, "]}");
        client_answer a = client_ask(r.port, "POST", "/v1/completions", NULL, body);
        if (a.status != 200 || !a.whole) fail_msg("status %d: %s", a.status, a.body);
        json_t *all = stream ? NULL : json_loadb(a.body, a.n_body, 0, NULL);
        if (stream) assert_non_null(strstr(a.body, "\"index\":17"));
        for (int i = 0; !stream && i < N; i++) {
            snprintf(one, sizeof one, "{\"max_tokens\":5,\"seed\":7,\"echo\":true,\"n\":%d,\"prompt\":\"The cat %d\"}",
                     (int)EACH, i);
            json_t *j = ask_json(r.port, "POST", "/v1/completions", one, 200);
            for (size_t k = 0; k < EACH; k++) {
                const json_t *is = json_array_get(json_object_get(all, "choices"), (size_t)i * EACH + k),
                             *want = json_array_get(json_object_get(j, "choices"), k);
                const char *text = json_string_value(json_object_get(is, "text"));
                assert_non_null(text);
                assert_string_equal(text, json_string_value(json_object_get(want, "text")));
            }
            json_decref(j);
        }
        json_decref(all);
        client_free(&a);
    }
    await_rest(r.port, 2 + N);
    stop(&r);
}

static void what_is_wrong_is_told(void **state)
{
    static const struct {
        const char *method, *path, *body;
        int status;
    } rows[] = {
        { "GET", "/health", NULL, 200 },
        { "GET", "/v1/models", NULL, 200 },
        { "GET", "/v1/models/chat", NULL, 200 },
        { "GET", "/v1/models/other", NULL, 404 },
        { "GET", "/props", NULL, 200 },
        { "GET", "/slots", NULL, 200 },
        { "GET", "/lora-adapters", NULL, 200 },
        { "GET", "/nowhere", NULL, 404 },
        { "GET", "/v1/chat/completions", NULL, 405 },
        { "POST", "/api/chat", "{}", 404 },
        { "POST", "/v1/chat/completions", "{", 400 },
        { "POST", "/v1/chat/completions", "{}", 400 },
        { "POST", "/v1/chat/completions", "{" HI ",\"n\":99}", 400 },
        { "POST", "/v1/chat/completions", "{" HI ",\"logit_bias\":{\"999999\":1}}", 400 },
        { "POST", "/v1/chat/completions",
          "{" HI ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"x\",\"schema\":{"
          "\"contains\":{}}}}}",
          400 },
        { "POST", "/v1/embeddings", "{\"input\":\"x\"}", 400 },
    };
    running r = { 0 };
    start(&r, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        json_decref(ask_json(r.port, rows[i].method, rows[i].path, rows[i].body, rows[i].status));

    char *body = malloc(16000), *at = body + sprintf(body, "{\"messages\":[{\"role\":\"user\",\"content\":\"");
    for (int i = 0; i < 3000; i++) at += sprintf(at, "a b ");
    strcpy(at, "\"}]}");
    json_t *j = ask_json(r.port, "POST", "/v1/chat/completions", body, 400), *e = json_object_get(j, "error");
    assert_string_equal(json_string_value(json_object_get(e, "code")), "context_length_exceeded");
    assert_non_null(strstr(json_string_value(json_object_get(e, "message")), "exceeds the available context size"));
    assert_int_equal(json_integer_value(json_object_get(e, "n_ctx")), N_CTX);
    json_decref(j);
    free(body);

    static const char hi[] = "{\"prompt\":\"Hello\",\"max_tokens\":1,\"id_slot\":1,\"other\":2}";
    client_answer a = client_ask(r.port, "POST", "/v1/completions", "X-Hone-Timeout-Ms: soon\r\n", hi);
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(a.body, "'soon'; expected"));
    client_free(&a);
    a = client_ask(r.port, "POST", "/v1/completions", NULL, hi);
    assert_int_equal(a.status, 200);
    assert_string_equal(client_header(&a, "x-hone-ignored"), "other");
    client_free(&a);

    /* what is answered before any handler is counted, too */
    double before = metric(r.port, "hone_requests_total");
    static const char *const early[] = { "GET", "PUT", "POST" };
    for (int i = 0; i < 3; i++) {
        a = client_ask(r.port, early[i], i ? "/v1/completions" : "/nowhere", i == 2 ? "Host: elsewhere\r\n" : NULL,
                       NULL);
        assert_int_equal(a.status, i == 0 ? 404 : i == 1 ? 405 : 400);
        client_free(&a);
    }
    assert_true(metric(r.port, "hone_requests_total") == before + 4); /* and the first look at the counters */

    /* what pickers among servers look at: nothing runs, nothing waits, some of the cache is held */
    a = client_ask(r.port, "GET", "/health", NULL, NULL);
    assert_non_null(client_header(&a, "x-hone-load"));
    assert_true(strncmp(client_header(&a, "x-hone-load"), "0;0;0.", 6) == 0);
    client_free(&a);

    /* what of a schema is not enforced is told where its fields are */
    a = client_ask(r.port, "POST", "/v1/chat/completions", NULL,
                   "{" HI ",\"max_tokens\":1,\"json_schema\":{\"type\":\"string\",\"format\":\"of a kind\"}}");
    assert_int_equal(a.status, 200);
    assert_non_null(client_header(&a, "x-hone-ignored"));
    assert_non_null(strstr(client_header(&a, "x-hone-ignored"), "json_schema (/format"));
    client_free(&a);

    client_answer page = client_ask(r.port, "GET", "/", NULL, NULL);
    assert_int_equal(page.status, 200);
    assert_non_null(strstr(page.body, "<html"));
    assert_non_null(client_header(&page, "content-security-policy"));
    /* compressed for those who take it; 304 for those who have it, behind a proxy too */
    static const struct {
        const char *header;
        int status;
        bool gzip;
    } heads[] = {
        { "Accept-Encoding: gzip, deflate, br\r\n", 200, true },
        { "Accept-Encoding: br;q=1.0, GZIP ; q=0.5\r\n", 200, true },
        { "Accept-Encoding: deflate, *;q=0.001\r\n", 200, true },
        { "Accept-Encoding: identity\r\n", 200, false },
        { "Accept-Encoding: *, gzip;q=0\r\n", 200, false },
        { "Accept-Encoding: *;q=0, gzip\r\n", 200, true },
        { "Accept-Encoding: gzip;q=0.000, deflate\r\n", 200, false },
        { "Accept-Encoding: gzipped, mygzip,\r\n", 200, false },
        { "Accept-Encoding:\r\n", 200, false },
        { "If-None-Match: %s\r\nAccept-Encoding: gzip\r\n", 304, false },
        { "If-None-Match: \"a\", W/%s\r\n", 304, false },
        { "If-None-Match: \"a\"\r\n", 200, false },
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char header[200];
        snprintf(header, sizeof header, heads[i].header, client_header(&page, "etag"));
        client_answer p = client_ask(r.port, "GET", "/", header, NULL);
        assert_int_equal(p.status, heads[i].status);
        assert_string_equal(client_header(&p, "vary"), "accept-encoding");
        assert_int_equal(client_header(&p, "content-encoding") != NULL, heads[i].gzip);
        if (heads[i].gzip) assert_memory_equal(p.body, "\x1f\x8b", 2);
        else if (p.status == 200) assert_string_equal(p.body, page.body);
        client_free(&p);
    }
    client_free(&page);
    client_answer metrics = client_ask(r.port, "GET", "/metrics", NULL, NULL);
    assert_int_equal(metrics.status, 200);
    assert_non_null(strstr(metrics.body, "hone_requests_running 0"));
    double pages = metric(r.port, "hone_kv_pages_total"), bytes = metric(r.port, "hone_kv_bytes_total");
    assert_true(pages >= 2 * SITE_CTX / 64 && pages < bytes / 1024); /* of both slots; a page is no byte */
    client_free(&metrics);
    stop(&r);
}

/* A stream that fails in its middle says so, and ends like any other. */
static void a_failed_stream_ends_whole(void **state)
{
    running r = { 0 };
    bool seen = false;
    char header[60];
    start(&r, 2);
    for (int ms = 4; !seen && ms < 2000; ms += ms / 2) {
        snprintf(header, sizeof header, "X-Hone-Timeout-Ms: %d\r\n", ms);
        client_answer a = client_ask(r.port, "POST", "/v1/completions", header,
                                     "{\"prompt\":\"The cat\",\"ignore_eos\":true,\"stream\":true}");
        if (a.status == 200 && strstr(a.body, "\"error\"")) {
            seen = true;
            assert_true(a.whole);
            assert_null(strstr(a.body, "[DONE]"));
        } else if (a.status == 200) {
            fail_msg("the answer was whole within %d ms", ms);
        }
        client_free(&a);
    }
    assert_true(seen);
    stop(&r);
}

/* Tokens of the prompt that were not computed again, of a question from this address. */
static int64_t cached(int port, const char *from, const char *more)
{
    char body[600];
    struct sockaddr_in a = { .sin_family = AF_INET };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    inet_pton(AF_INET, from, &a.sin_addr);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    a.sin_port = htons((uint16_t)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    int n = snprintf(body, sizeof body, "{\"max_tokens\":1%s,\"prompt\":\"", more);
    for (int i = 0; i < 80; i++) n += snprintf(body + n, sizeof body - (size_t)n, "a b ");
    snprintf(body + n, sizeof body - (size_t)n, "\"}");
    assert_true(client_request(fd, "POST", "/v1/completions", NULL, body));
    client_answer answer = client_receive(fd);
    assert_int_equal(answer.status, 200);
    json_t *o = json_loads(answer.body, 0, NULL);
    const json_t *details = json_object_get(json_object_get(o, "usage"), "prompt_tokens_details");
    int64_t k = json_integer_value(json_object_get(details, "cached_tokens"));
    json_decref(o);
    client_free(&answer);
    return k;
}

/* What one client sent is not found by another where they are kept apart; on this machine alone it is. */
static void clients_are_kept_apart(void **state)
{
    for (int apart = 0; apart < 2; apart++) {
        running r = { .p.cache_scope = apart ? HN_CACHE_BY_CLIENT : HN_CACHE_BY_ADDRESS };
        start(&r, 2);
        assert_int_equal(cached(r.port, "127.0.0.1", ""), 0);
        assert_true(cached(r.port, "127.0.0.1", "") >= 64);
        assert_int_equal(cached(r.port, "127.0.0.2", "") >= 64, !apart);
        assert_true(cached(r.port, "127.0.0.2", "") >= 64);
        assert_int_equal(cached(r.port, "127.0.0.2", ",\"cache_salt\":\"x\""), 0);
        stop(&r);
    }
}

/* Whatever lay in memory behind it: a name is that of a tool. */
static void calls_have_the_names_of_tools(void **state)
{
    static const char *const names[] = { "w", "a.b-c", "the_weather_of_a_town_tomorrow" };
    running r = { 0 };
    char body[700];
    start(&r, 2);
    for (int i = 0; i < 9; i++) {
        const char *name = names[i % 3];
        snprintf(
            body, sizeof body,
            "{" HI
            ",\"seed\":%d,\"temperature\":%d,\"max_tokens\":80,\"tool_choice\":\"required\",\"tools\":[{\"type\":"
            "\"function\",\"function\":{\"name\":\"%s\",\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{"
            "\"type\":\"string\",\"maxLength\":5}},\"required\":[\"a\"],\"additionalProperties\":false}}}]}",
            i, i % 2, name);
        json_t *o = ask_json(r.port, "POST", "/v1/chat/completions", body, 200),
               *m = json_object_get(json_array_get(json_object_get(o, "choices"), 0), "message"), *call;
        size_t k;
        json_array_foreach(json_object_get(m, "tool_calls"), k, call)
            assert_string_equal(json_string_value(json_object_get(json_object_get(call, "function"), "name")), name);
        assert_true(json_array_size(json_object_get(m, "tool_calls")) > 0);
        json_decref(o);
    }
    stop(&r);
}

/* Positions of what runs, -1: nothing does. */
static int64_t running_at(int port)
{
    int64_t n = -1;
    json_t *slots = ask_json(port, "GET", "/slots", NULL, 200), *slot;
    size_t i;
    json_array_foreach(slots, i, slot)
    {
        if (json_is_true(json_object_get(slot, "is_processing")))
            n += 1 + json_integer_value(json_object_get(slot, "n_past"));
    }
    json_decref(slots);
    return n;
}

/* Whoever does not take its answer makes it pause, and gets the same when it does; others go on meanwhile. */
static void a_slow_reader_pauses(void **state)
{
    static const char q[] =
        "{\"prompt\":\"The cat\",\"n_probs\":%d,\"n\":4,\"ignore_eos\":true,\"n_predict\":%d,\"seed\":3,\"stream\":%s}";
    const int most = SLOWED ? 400 : -1; /* twice what the buffers between them hold */
    running r = { 0 };
    char body[200];
    int small = 4096, large = 1 << 20, fd = socket(AF_INET, SOCK_STREAM, 0);
    start(&r, 6);
    snprintf(body, sizeof body, q, 0, most, "false"); /* the same text in little */
    json_t *want = ask_json(r.port, "POST", "/completion", body, 200);

    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)r.port) };
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    snprintf(body, sizeof body, q, 64, most, "true");
    assert_true(client_request(fd, "POST", "/completion", NULL, body));
    int64_t at = 0, before = -1;
    for (int same = 0, looks = 0; same < 20; before = at) { /* it stands still before its end */
        if (++looks == 3000) fail_msg("the answer neither stands still nor ends");
        usleep(20000);
        at = running_at(r.port);
        same = at == before && at > 0 ? same + 1 : 0;
        if (at < 0 && before > 0) fail_msg("the answer came to its end, although nobody took it");
    }
    json_decref(ask_json(r.port, "POST", "/v1/completions", "{\"prompt\":\"A\",\"max_tokens\":5}", 200));
    assert_int_equal(running_at(r.port), at);

    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &large, sizeof large); /* now it takes all */
    client_answer got = client_receive(fd);
    assert_true(got.status == 200 && got.whole);
    char text[4][8192] = { "" };
    bool done = false;
    json_t *e;
    for (const char *p = got.body; (e = client_event(&p, &done)); json_decref(e))
        strcat(text[json_integer_value(json_object_get(e, "index"))], json_string_value(json_object_get(e, "content")));
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(text[i], json_string_value(json_object_get(json_array_get(want, i), "content")));
    client_free(&got);
    json_decref(want);
    stop(&r);
}

/* A response that is being written ends when somebody asks for it, with words that say so; another is not there. */
static void a_response_is_cancelled(void **state)
{
    running r = { 0 };
    char path[120], part[4096] = "";
    size_t n = 0;
    start(&r, 2);
    int fd = client_connect(r.port);
    assert_true(
        client_request(fd, "POST", "/v1/responses", NULL, "{\"input\":\"Hi\",\"ignore_eos\":true,\"stream\":true}"));
    while (!strstr(part, "\"resp_") ||
           !strstr(strstr(part, "\"resp_"), "\",")) { /* its id comes with its first event */
        ssize_t k = recv(fd, part + n, sizeof part - 1 - n, 0);
        assert_true(k > 0);
        part[n += (size_t)k] = 0;
    }
    const char *id = strstr(part, "\"resp_") + 1;
    snprintf(path, sizeof path, "/v1/responses/%.*s/cancel", (int)strcspn(id, "\""), id);
    json_t *j = ask_json(r.port, "POST", path, "{}", 200);
    assert_string_equal(json_string_value(json_object_get(j, "status")), "cancelled");
    json_decref(j);
    char *rest = client_read_all(fd, &n);
    close(fd);
    assert_non_null(strstr(rest, "response.failed"));
    assert_non_null(strstr(rest, "was cancelled"));
    free(rest);
    json_decref(ask_json(r.port, "POST", path, "{}", 404));
    json_decref(ask_json(r.port, "POST", "/v1/responses/resp_1/cancel", NULL, 404));
    json_decref(ask_json(r.port, "GET", "/v1/responses/resp_1", NULL, 404));
    stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(everyone_gets_their_own),
                                        cmocka_unit_test(who_leaves_is_forgotten),
                                        cmocka_unit_test(answers_have_what_was_asked),
                                        cmocka_unit_test(every_token_is_named),
                                        cmocka_unit_test(models_take_turns),
                                        cmocka_unit_test(many_prompts_fit_a_short_queue),
                                        cmocka_unit_test(what_is_wrong_is_told),
                                        cmocka_unit_test(a_failed_stream_ends_whole),
                                        cmocka_unit_test(a_response_is_cancelled),
                                        cmocka_unit_test(clients_are_kept_apart),
                                        cmocka_unit_test(calls_have_the_names_of_tools),
                                        cmocka_unit_test(a_slow_reader_pauses) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
