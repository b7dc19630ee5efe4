/* What clients of llama-server rely on beside the answer's text: prompts in all their shapes, tokens and counts of a
 * stream, how far a prompt has come, what a template made, settings of a model that sleeps, rows of tokens, and scores
 * in the shape of text-embeddings-inference. */
#define _GNU_SOURCE
#include "serve_site.h"

#include "tiny_model.h"

#include <math.h>

static const char *text_of(const json_t *o, const char *name) { return json_string_value(json_object_get(o, name)); }
static json_int_t int_of(const json_t *o, const char *name) { return json_integer_value(json_object_get(o, name)); }

/* ---- conversations and prompts ---------------------------------------------------------------------------------- */

/* What a template made gives the same tokens at /completion: what begins every text stands there once. */
static void a_template_goes_to_completion(void **state)
{
    static const char *const talk[] = {
        "\"messages\":[{\"role\":\"user\",\"content\":\"Hi there\"}]",
        "\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"Hi\"}]",
    };
    running r = { 0 };
    char body[2000];
    start(&r, 2);
    for (size_t i = 0; i < sizeof talk / sizeof *talk; i++) {
        snprintf(body, sizeof body, "{%s}", talk[i]);
        json_t *made = ask_json(r.port, "POST", "/apply-template", body, 200);
        const char *prompt = text_of(made, "prompt");
        json_t *span = json_array_get(json_object_get(made, "input_spans"), 0);
        size_t begin = (size_t)json_integer_value(json_array_get(span, 0));
        assert_memory_equal(prompt + begin, i ? "Be brief." : "Hi there", 8);

        json_t *q =
            json_pack("{s:s,s:i,s:i,s:b}", "prompt", prompt, "n_predict", 12, "temperature", 0, "ignore_eos", 1);
        char *asked = json_dumps(q, 0);
        json_t *text = ask_json(r.port, "POST", "/completion", asked, 200);
        snprintf(body, sizeof body, "{%s,\"max_tokens\":12,\"temperature\":0,\"ignore_eos\":true}", talk[i]);
        json_t *chat = ask_json(r.port, "POST", "/v1/chat/completions", body, 200),
               *message = json_object_get(json_array_get(json_object_get(chat, "choices"), 0), "message");
        assert_int_equal(int_of(text, "tokens_evaluated"), int_of(json_object_get(chat, "usage"), "prompt_tokens"));
        assert_string_equal(text_of(text, "content"), text_of(message, "content"));
        json_decref(chat);
        json_decref(text);
        json_decref(q);
        json_decref(made);
        free(asked);
    }
    stop(&r);
}

/* A text, {"prompt_string"} and {"content"} of parts are the same prompt, alone and among others. */
static void prompts_have_many_shapes(void **state)
{
    static const char rest[] = ",\"n_predict\":8,\"temperature\":0,\"return_tokens\":true}";
    running r = { 0 };
    char body[500];
    start(&r, 2);
    snprintf(body, sizeof body, "{\"prompt\":\"The cat sat\"%s", rest);
    json_t *want = ask_json(r.port, "POST", "/completion", body, 200);
    assert_true(json_array_size(json_object_get(want, "tokens")) > 0);

    snprintf(body, sizeof body,
             "{\"prompt\":[{\"prompt_string\":\"The cat sat\",\"multimodal_data\":[]},\"The cat sat\","
             "{\"content\":[{\"type\":\"text\",\"text\":\"The cat\"},{\"type\":\"text\",\"text\":\" sat\"}]}]%s",
             rest);
    json_t *all = ask_json(r.port, "POST", "/completion", body, 200), *one;
    size_t i;
    assert_int_equal(json_array_size(all), 3);
    json_array_foreach(all, i, one)
    {
        assert_string_equal(text_of(one, "content"), text_of(want, "content"));
        assert_true(json_equal(json_object_get(one, "tokens"), json_object_get(want, "tokens")));
        assert_int_equal(int_of(one, "tokens_evaluated"), int_of(want, "tokens_evaluated"));
    }
    snprintf(body, sizeof body, "{\"prompt\":{\"prompt_string\":\"a <__media__>\",\"multimodal_data\":[\"AAAA\"]}%s",
             rest);
    json_decref(ask_json(r.port, "POST", "/completion", body, 400));
    json_decref(all);
    json_decref(want);
    stop(&r);
}

/* "prompt" of an answer is the text of its own tokens, with what was added, whatever its shape was. */
static void answers_tell_their_prompt(void **state)
{
    running r = { 0 };
    char body[300], detok[300];
    start(&r, 2);
    json_t *t = ask_json(r.port, "POST", "/tokenize", "{\"content\":\"The cat\",\"add_special\":true}", 200);
    char *ids = json_dumps(json_object_get(t, "tokens"), JSON_COMPACT);
    snprintf(detok, sizeof detok, "{\"tokens\":%s}", ids);
    json_t *back = ask_json(r.port, "POST", "/detokenize", detok, 200);
    const char *want = text_of(back, "content");
    assert_true(strlen(want) > strlen("The cat")); /* with the token that begins every text */

    snprintf(body, sizeof body, "{\"prompt\":[\"The cat\",%s,{\"prompt_string\":\"The cat\"},\"A\"],\"n_predict\":1}",
             ids);
    json_t *all = ask_json(r.port, "POST", "/completion", body, 200);
    assert_int_equal(json_array_size(all), 4);
    for (size_t i = 0; i < 3; i++) assert_string_equal(text_of(json_array_get(all, i), "prompt"), want);
    assert_string_not_equal(text_of(json_array_get(all, 3), "prompt"), want);

    snprintf(body, sizeof body, "{\"prompt\":%s,\"n_predict\":1,\"stream\":true}", ids);
    client_answer got = client_ask(r.port, "POST", "/completion", NULL, body);
    json_t *e, *end = NULL;
    bool done = false;
    for (const char *p = got.body; (e = client_event(&p, &done)); end = e) json_decref(end);
    assert_string_equal(text_of(end, "prompt"), want);
    json_decref(end);
    json_decref(all);
    json_decref(back);
    json_decref(t);
    free(ids);
    client_free(&got);
    stop(&r);
}

/* A prompt that does not fit: by llama-server's own type on its routes, by OpenAI's on theirs. */
static void too_long_prompts_have_a_type(void **state)
{
    static const struct {
        const char *path, *field, *type;
    } routes[] = { { "/completion", "prompt", "exceed_context_size_error" },
                   { "/v1/completions", "prompt", "invalid_request_error" } };
    enum { MANY = 2 * SITE_CTX };
    running r = { 0 };
    start(&r, 1);
    for (size_t i = 0; i < 2; i++) {
        json_t *ids = json_array();
        for (int k = 0; k < MANY; k++) json_array_append_new(ids, json_integer(1));
        json_t *q = json_pack("{s:o}", routes[i].field, ids);
        char *body = json_dumps(q, JSON_COMPACT);
        json_t *all = ask_json(r.port, "POST", routes[i].path, body, 400), *e = json_object_get(all, "error");
        assert_string_equal(text_of(e, "type"), routes[i].type);
        assert_string_equal(text_of(e, "code"), "context_length_exceeded");
        assert_true(int_of(e, "n_prompt_tokens") == MANY && int_of(e, "n_ctx") == SITE_CTX);
        json_decref(all);
        json_decref(q);
        free(body);
    }
    stop(&r);
}

/* ---- answers ---------------------------------------------------------------------------------------------------- */

/* A stream tells its tokens and how many there are by now, asked or not; they are those of the whole answer. */
static void a_stream_tells_its_tokens(void **state)
{
    static const char q[] = "{\"prompt\":\"The cat\",\"n_predict\":20,\"ignore_eos\":true,\"seed\":3%s}";
    running r = { 0 };
    char body[200];
    start(&r, 2);
    snprintf(body, sizeof body, q, ",\"return_tokens\":true");
    json_t *want = ask_json(r.port, "POST", "/completion", body, 200);
    snprintf(body, sizeof body, q, "");
    json_t *plain = ask_json(r.port, "POST", "/completion", body, 200);
    assert_int_equal(json_array_size(json_object_get(want, "tokens")), 20);
    assert_int_equal(json_array_size(json_object_get(plain, "tokens")), 0);

    snprintf(body, sizeof body, q, ",\"stream\":true");
    client_answer got = client_ask(r.port, "POST", "/completion", NULL, body);
    json_t *tokens = json_array(), *e;
    json_int_t before = 0;
    bool done = false;
    for (const char *p = got.body; (e = client_event(&p, &done)); json_decref(e)) {
        if (json_is_true(json_object_get(e, "stop"))) continue;
        assert_true(int_of(e, "tokens_predicted") > before);
        before = int_of(e, "tokens_predicted");
        assert_int_equal(int_of(e, "tokens_evaluated"), int_of(want, "tokens_evaluated"));
        assert_true(json_array_size(json_object_get(e, "tokens")) > 0);
        assert_null(json_object_get(e, "timings"));
        json_array_extend(tokens, json_object_get(e, "tokens"));
    }
    assert_true(json_equal(tokens, json_object_get(want, "tokens")));
    json_decref(tokens);
    json_decref(plain);
    json_decref(want);
    client_free(&got);
    stop(&r);
}

/* An answer that fills the context is truncated; one that has all its tokens is not. Biases are told as they hold. */
static void the_end_says_why(void **state)
{
    running r = { 0 };
    start(&r, 2);
    json_t *o =
        ask_json(r.port, "POST", "/completion",
                 "{\"prompt\":\"The cat\",\"ignore_eos\":true,\"logit_bias\":[[5,-1.5],[\" dog\",false]]}", 200);
    assert_true(json_is_true(json_object_get(o, "truncated")));
    assert_string_equal(text_of(o, "stop_type"), "limit");
    assert_int_equal(int_of(o, "tokens_evaluated") + int_of(o, "tokens_predicted"),
                     SITE_CTX + 1); /* the last is not read */
    const json_t *bias = json_object_get(json_object_get(o, "generation_settings"), "logit_bias");
    json_t *told = json_pack("[{s:f,s:i},{s:n,s:s}]", "bias", -1.5, "token", 5, "bias", "token", " dog");
    assert_true(json_equal(bias, told));
    json_decref(told);
    json_decref(o);

    o = ask_json(r.port, "POST", "/completion", "{\"prompt\":\"The cat\",\"ignore_eos\":true,\"n_predict\":9}", 200);
    assert_true(json_is_false(json_object_get(o, "truncated")));
    assert_int_equal(int_of(o, "tokens_predicted"), 9);
    assert_int_equal(json_array_size(json_object_get(json_object_get(o, "generation_settings"), "logit_bias")), 0);
    json_decref(o);
    stop(&r);
}

/* Lines in front of an answer are held back, as a call may follow; a stop string among them ends it all the same. */
static void a_stop_string_held_back(void **state)
{
    running r = { 0 };
    start(&r, 2);
    json_t *o = ask_json(r.port, "POST", "/v1/chat/completions",
                         "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"max_tokens\":6,\"stop\":\"\\n\\n\","
                         "\"structured_outputs\":{\"regex\":\"\\\\n{40}\"}}",
                         200);
    const json_t *choice = json_array_get(json_object_get(o, "choices"), 0);
    assert_string_equal(text_of(choice, "finish_reason"), "stop");
    assert_string_equal(text_of(json_object_get(choice, "message"), "content"), "");
    json_decref(o);
    stop(&r);
}

/* Rates are of the tokens that the time went by for: the first of each choice came with the prompt. */
static void rates_are_of_their_time(void **state)
{
    static const struct {
        const char *more;
        int n, timed;
    } rows[] = { { "\"n_predict\":1", 1, 0 },
                 { "\"n_predict\":2", 2, 1 },
                 { "\"n_predict\":16", 16, 15 },
                 { "\"n_predict\":4,\"n\":2", 4, 3 } };
    running r = { 0 };
    char body[200];
    start(&r, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(body, sizeof body, "{\"prompt\":\"The cat\",\"ignore_eos\":true,\"cache_prompt\":false,%s}",
                 rows[i].more);
        json_t *o = ask_json(r.port, "POST", "/completion", body, 200),
               *t = json_object_get(json_is_array(o) ? json_array_get(o, 1) : o, "timings");
        double ms = json_number_value(json_object_get(t, "predicted_ms")),
               each = json_number_value(json_object_get(t, "predicted_per_token_ms")),
               rate = json_number_value(json_object_get(t, "predicted_per_second"));
        assert_int_equal(int_of(t, "predicted_n"), rows[i].n);
        assert_true(fabs(each * rows[i].timed - (rows[i].timed ? ms : 0)) < 0.001 * (rows[i].timed + 1));
        assert_true(fabs(rate * ms / 1000 - rows[i].timed) < 0.01 * (rows[i].timed + 1) &&
                    (rows[i].timed || rate == 0));
        assert_true(json_number_value(json_object_get(t, "prompt_per_token_ms")) > 0);
        json_decref(o);
    }
    stop(&r);
}

/* The steps of a prompt's reading in a stream of this body; *cached: where it began. */
static int progress_of(int port, const char *path, const char *body, json_int_t *cached)
{
    client_answer got = client_ask(port, "POST", path, NULL, body);
    json_int_t total = 0, before = 0;
    bool done = false;
    int n = 0;
    json_t *e;
    assert_int_equal(got.status, 200);
    for (const char *p = got.body; (e = client_event(&p, &done)); json_decref(e)) {
        const json_t *at = json_object_get(e, "prompt_progress");
        if (!at) continue;
        const json_t *t = json_object_get(e, "timings"); /* of what is done: nothing yet at the beginning */
        assert_int_equal(int_of(t, "prompt_n"), int_of(at, "processed") - int_of(at, "cache"));
        assert_true(int_of(t, "predicted_n") == 0 && (n || json_number_value(json_object_get(t, "prompt_ms")) == 0));
        if (!n) total = int_of(at, "total"), *cached = int_of(at, "cache");
        assert_true(int_of(at, "total") == total && int_of(at, "cache") == *cached);
        if (n) assert_true(int_of(at, "processed") > before);
        else assert_int_equal(int_of(at, "processed"), *cached);
        before = int_of(at, "processed");
        n++;
    }
    assert_true(total > 0 && before == total);
    client_free(&got);
    return n;
}

/* It begins where nothing but the cache is done, grows, and ends where all is; each API that streams tells it. */
static void progress_begins_and_ends(void **state)
{
    static const struct {
        const char *path, *body;
    } rows[] = {
        { "/completion", "\"prompt\":\"%s\",\"n_predict\":2,\"return_progress\":true" },
        { "/v1/completions", "\"prompt\":\"%s\",\"max_tokens\":2,\"stream_options\":{\"include_progress\":true}" },
        { "/v1/chat/completions",
          "\"messages\":[{\"role\":\"user\",\"content\":\"%s\"}],\"max_tokens\":2,\"return_progress\":true" },
        { "/v1/responses", "\"input\":\"%s\",\"max_output_tokens\":2,\"return_progress\":true" },
    };
    running r = { 0 };
    char words[900] = "", asked[1200], body[1300];
    for (int i = 0; i < 40; i++) strcat(words, "the cat and the dog ");
    start(&r, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_int_t cached;
        words[0] = (char)('A' + i);
        snprintf(asked, sizeof asked, rows[i].body, words);
        snprintf(body, sizeof body, "{%s,\"stream\":true,\"timings_per_token\":true}", asked);
        int first = progress_of(r.port, rows[i].path, body, &cached);
        assert_true(first > 2 && cached < 64); /* of chunks of 64 */
        assert_true(progress_of(r.port, rows[i].path, body, &cached) < first && cached >= 128);
    }
    stop(&r);
}

/* ---- counters --------------------------------------------------------------------------------------------------- */

typedef struct counters {
    double answers, prompt, cached, generated, running, waiting, ended, up_to_inf, cancelled;
} counters;

/* Of one look, which is itself an answer, counted behind it. */
static counters look(int port)
{
    counters c = { 0 };
    client_answer a = client_ask(port, "GET", "/metrics", NULL, NULL);
    assert_int_equal(a.status, 200);
    const struct {
        const char *name;
        double *to;
    } rows[] = { { "hone_requests_total{", &c.answers },
                 { "hone_prompt_tokens_total ", &c.prompt },
                 { "hone_cached_prompt_tokens_total ", &c.cached },
                 { "hone_generated_tokens_total ", &c.generated },
                 { "hone_requests_running ", &c.running },
                 { "hone_requests_waiting ", &c.waiting },
                 { "hone_request_seconds_count ", &c.ended },
                 { "hone_request_seconds_bucket{le=\"+Inf\"} ", &c.up_to_inf },
                 { "hone_cancelled_total ", &c.cancelled } };
    for (const char *p = a.body; p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL)
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            if (strncmp(p, rows[i].name, strlen(rows[i].name)) == 0)
                *rows[i].to += atof(strrchr(strndupa(p, strcspn(p, "\n")), ' '));
    client_free(&a);
    return c;
}

/* Sums over requests of all kinds are what the counters say: answers, tokens read, found and written, also of who left
 * in the middle; nothing runs or waits behind them. */
static void counters_add_up(void **state)
{
    static const struct {
        const char *path, *body;
        int status;
    } rows[] = {
        { "/v1/chat/completions", "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":7}", 200 },
        { "/v1/completions", "{\"prompt\":[\"A\",\"The dog\"],\"n\":2,\"max_tokens\":5,\"ignore_eos\":true}", 200 },
        { "/v1/completions", "{\"prompt\":[\"A\",\"The dog\"],\"n\":2,\"max_tokens\":5,\"ignore_eos\":true}", 200 },
        { "/v1/completions", "{\"prompt\":5}", 400 },
        { "/v1/completions", "{", 400 },
        { "/nowhere", "{}", 404 },
    };
    running r = { 0 };
    counters was, is;
    double answers = 1 /* the first look */, prompt = 0, cached = 0, written = 0;
    start(&r, 4);
    was = look(r.port);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++, answers++) {
        json_t *o = ask_json(r.port, "POST", rows[i].path, rows[i].body, rows[i].status),
               *u = json_object_get(o, "usage");
        prompt += (double)int_of(u, "prompt_tokens");
        cached += (double)int_of(json_object_get(u, "prompt_tokens_details"), "cached_tokens");
        written += (double)int_of(u, "completion_tokens");
        json_decref(o);
    }
    is = look(r.port);
    answers++;
    assert_true(is.answers - was.answers == answers - 1);
    assert_true(is.prompt - was.prompt == prompt && is.cached - was.cached == cached && prompt > 0 && cached > 0);
    assert_true(is.generated - was.generated == written && written > 20);
    assert_true(is.running == 0 && is.waiting == 0 && is.ended == is.up_to_inf);

    char part[16384] = "";
    size_t n = 0, seen = 0;
    int small = 4096, fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)r.port) };
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small); /* what nobody takes makes it pause: it does not end */
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_true(client_request(fd, "POST", "/completion", NULL,
                               "{\"prompt\":\"The\",\"ignore_eos\":true,\"n_probs\":64,\"n\":4,\"stream\":true}"));
    while (n < 15000) { /* some tokens, then it goes */
        ssize_t k = recv(fd, part + n, sizeof part - 1 - n, 0);
        assert_true(k > 0);
        part[n += (size_t)k] = 0;
    }
    close(fd);
    for (const char *p = part; (p = strstr(p, "\"tokens\":[")); p++) seen++;
    was = is;
    do is = look(r.port);
    while (is.ended == was.ended || is.running > 0);
    assert_true(is.cancelled == was.cancelled + 1 && is.ended == is.up_to_inf);
    assert_true(is.generated - was.generated >= (double)seen && seen > 1 &&
                is.generated - was.generated < 4 * SITE_CTX);
    stop(&r);
}

/* ---- a model that sleeps ---------------------------------------------------------------------------------------- */

/* Its settings are told without waking it; what it alone knows is null. */
static void settings_of_a_sleeping_model(void **state)
{
    running r = { 0 };
    start(&r, 2);
    json_t *o = ask_json(r.port, "GET", "/props", NULL, 200), *awake = o;
    assert_true(json_is_false(json_object_get(o, "is_sleeping")));
    const json_t *params = json_object_get(json_object_get(o, "default_generation_settings"), "params");
    assert_int_equal(int_of(params, "seed"), -1);
    /* what llama-server's clients read without asking whether it is there */
    assert_true(json_is_false(json_object_get(json_object_get(o, "modalities"), "vision")));
    assert_true(json_is_boolean(json_object_get(o, "endpoint_slots")) && int_of(params, "n_predict") == -1);
    assert_true(json_is_integer(json_object_get(params, "mirostat")) && int_of(params, "mirostat") == 0);
    assert_true(json_real_value(json_object_get(params, "typical_p")) == 1.0);

    json_decref(ask_json(r.port, "POST", "/models/unload", "{\"model\":\"chat\"}", 200));
    for (int i = 0; i < 2; i++) {
        o = ask_json(r.port, "GET", "/props", NULL, 200);
        assert_true(json_is_true(json_object_get(o, "is_sleeping")));
        assert_string_equal(text_of(o, "model_path"), text_of(awake, "model_path"));
        assert_true(json_is_null(json_object_get(o, "chat_template")) && json_is_null(json_object_get(o, "roof")));
        const json_t *d = json_object_get(o, "default_generation_settings");
        assert_true(json_is_null(json_object_get(d, "n_ctx")));
        assert_true(json_equal(json_object_get(d, "params"),
                               json_object_get(json_object_get(awake, "default_generation_settings"), "params")));
        json_decref(o);
    }
    json_decref(ask_json(r.port, "GET", "/health", NULL, 200));
    json_decref(ask_json(r.port, "POST", "/v1/chat/completions/input_tokens",
                         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}", 200));
    o = ask_json(r.port, "GET", "/props", NULL, 200);
    assert_true(json_equal(o, awake)); /* counting tokens woke it */
    json_decref(o);
    json_decref(awake);
    stop(&r);
}

/* Where requests load nothing, POST /models/load does, and nothing else. */
static void nothing_loads_by_itself(void **state)
{
    static const char other[] = "{\"model\":\"other\",\"prompt\":\"The cat\",\"max_tokens\":1}";
    running r = { .p.shelf.n_models = 2, .p.shelf.no_autoload = true };
    start(&r, 2);
    for (int i = 0; i < 2; i++) {
        json_t *o = ask_json(r.port, "POST", "/v1/completions", other, 404);
        assert_string_equal(text_of(json_object_get(o, "error"), "code"), "model_not_loaded");
        json_decref(o);
        json_decref(ask_json(r.port, "POST", "/v1/completions", "{\"prompt\":\"The cat\",\"max_tokens\":1}", 200));
        json_decref(ask_json(r.port, "POST", "/models/load", "{\"model\":\"other\"}", 200));
        json_decref(ask_json(r.port, "POST", "/v1/completions", other, 200));
        json_decref(ask_json(r.port, "POST", "/models/unload", "{\"model\":\"other\"}", 200));
    }
    stop(&r);
}

/* ---- vectors and scores ----------------------------------------------------------------------------------------- */

static const char bert[] = "{\"arch\":\"bert\",\"n_layer\":2,\"n_vocab\":700,\"tensors\":[\"token_types.weight\"%s],"
                           "\"keys\":{\"context_length\":512,\"embedding_length\":32,\"feed_forward_length\":48,"
                           "\"attention.head_count\":4,\"attention.layer_norm_epsilon\":1e-12,"
                           "\"attention.causal\":false,\"pooling_type\":%d}}";

static const char *make_bert(const char *name, const char *tensors, int pooling)
{
    hone_error e;
    char config[300];
    snprintf(config, sizeof config, "%s", tm_path("bert.json"));
    FILE *f = fopen(config, "w");
    assert_non_null(f);
    fprintf(f, bert, tensors, pooling);
    assert_int_equal(fclose(f), 0);
    const char *path = tm_path(name);
    must(hone_synth(&(hone_synth_params){ .config_path = config, .type = "F32" }, path, NULL, &e), &e);
    return path;
}

static double squares(const json_t *v)
{
    double sum = 0;
    size_t i;
    json_t *x;
    json_array_foreach(v, i, x) sum += json_number_value(x) * json_number_value(x);
    return sum;
}

/* /embeddings gives a row of each token where rows are not pooled, of texts in a batch as of each alone. */
static void rows_of_tokens(void **state)
{
    running r = { .path = make_bert("rows.gguf", "", 2), .p.shelf.pooling = HONE_POOL_NONE };
    start(&r, 2);
    json_t *all =
        ask_json(r.port, "POST", "/embeddings", "{\"input\":[\"bafo gene\",[7,8,9],{\"content\":[]},\"fa\"]}", 200);
    static const char *const each[] = { "\"bafo gene\"", "[7,8,9]", "\"\"", "\"fa\"" };
    for (size_t i = 0; i < 4; i++) {
        char body[100];
        snprintf(body, sizeof body, "{\"input\":%s}", each[i]);
        json_t *one = ask_json(r.port, "POST", "/embedding", body, 200),
               *rows = json_object_get(json_array_get(one, 0), "embedding"), *row;
        snprintf(body, sizeof body, "{\"content\":%s,\"add_special\":true}", each[i]);
        size_t k, n = 3;
        if (each[i][0] == '"') {
            json_t *tokens = ask_json(r.port, "POST", "/tokenize", body, 200);
            n = json_array_size(json_object_get(tokens, "tokens"));
            json_decref(tokens);
        }
        assert_int_equal(json_array_size(rows), n);
        json_array_foreach(rows, k, row) assert_true(json_array_size(row) == 32 && fabs(squares(row) - 1) > 1e-3);
        assert_true(json_equal(rows, json_object_get(json_array_get(all, i), "embedding")));
        json_decref(one);
    }
    json_decref(all);
    /* ids and texts in turns: all of them, as a prompt has them */
    json_t *mixed = ask_json(r.port, "POST", "/embedding", "{\"input\":[[7,\"fa\",8,9]]}", 200),
           *tokens = ask_json(r.port, "POST", "/tokenize", "{\"content\":\"fa\"}", 200),
           *alone = ask_json(r.port, "POST", "/embedding", "{\"input\":[[7]]}", 200);
    const json_t *rows = json_object_get(json_array_get(mixed, 0), "embedding");
    assert_int_equal(json_array_size(rows), 3 + json_array_size(json_object_get(tokens, "tokens")));
    assert_int_equal(json_array_size(json_object_get(json_array_get(alone, 0), "embedding")), 1);
    json_decref(mixed);
    json_decref(tokens);
    json_decref(alone);
    json_decref(ask_json(r.port, "POST", "/v1/embeddings", "{\"input\":\"fa\"}", 400));
    json_decref(ask_json(r.port, "POST", "/embeddings", "{\"input\":\"fa\",\"dimensions\":4}", 400));
    stop(&r);
}

/* Parts of a text are the text. */
/* llama-server's embd_normalize: which norm is 1. */
static void norms_of_vectors(void **state)
{
    static const struct {
        const char *path, *more;
        int norm;
        size_t n;
    } rows[] = { { "/embedding", ",\"embd_normalize\":0", 0, 32 },
                 { "/embedding", ",\"embd_normalize\":1", 1, 32 },
                 { "/embeddings", ",\"embd_normalize\":3", 3, 32 },
                 { "/embeddings", ",\"embd_normalize\":1024", 1024, 32 },
                 { "/v1/embeddings", ",\"embd_normalize\":1,\"dimensions\":8", 1, 8 } };
    running r = { .path = make_bert("norms.gguf", "", 2) };
    char body[200];
    start(&r, 2);
    json_t *raw = ask_json(r.port, "POST", "/v1/embeddings", "{\"input\":\"bafo\",\"embd_normalize\":-1}", 200),
           *usual = ask_json(r.port, "POST", "/v1/embeddings", "{\"input\":\"bafo\"}", 200),
           *two = ask_json(r.port, "POST", "/v1/embeddings", "{\"input\":\"bafo\",\"embd_normalize\":2}", 200);
    const json_t *v = json_object_get(json_array_get(json_object_get(raw, "data"), 0), "embedding");
    assert_true(json_array_size(v) == 32 && fabs(squares(v) - 1) > 1e-3);
    assert_true(json_equal(json_object_get(usual, "data"), json_object_get(two, "data")));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(body, sizeof body, "{\"input\":\"bafo\"%s}", rows[i].more);
        json_t *o = ask_json(r.port, "POST", rows[i].path, body, 200);
        bool own = rows[i].path[1] == 'e';
        const json_t *e = json_object_get(json_array_get(own ? o : json_object_get(o, "data"), 0), "embedding");
        if (own) e = json_array_get(e, 0);
        double sum = 0, most = 0;
        assert_int_equal(json_array_size(e), rows[i].n);
        double scale = json_number_value(json_array_get(e, 0)) / json_number_value(json_array_get(v, 0));
        for (size_t k = 0; k < rows[i].n; k++) {
            double x = json_number_value(json_array_get(e, k));
            assert_true(fabs(x - scale * json_number_value(json_array_get(v, k))) <= 1e-5 * fabs(x));
            sum += pow(fabs(x), rows[i].norm ? rows[i].norm : 1);
            most = fabs(x) > most ? fabs(x) : most;
        }
        assert_true(fabs((rows[i].norm ? sum : most / 32760) - 1) < 1e-5 + 2e-7 * rows[i].norm);
        json_decref(o);
    }
    json_decref(ask_json(r.port, "POST", "/embedding", "{\"input\":\"fa\",\"embd_normalize\":-2}", 400));
    json_decref(raw);
    json_decref(usual);
    json_decref(two);
    stop(&r);
}

static void vectors_of_parts(void **state)
{
    running r = { .path = make_bert("cls.gguf", "", 2) };
    start(&r, 2);
    json_t *o = ask_json(r.port, "POST", "/v1/embeddings",
                         "{\"input\":[\"bafo gene\",{\"content\":[{\"type\":\"text\",\"text\":\"bafo \"},{\"type\":"
                         "\"text\",\"text\":\"gene\"}]},{\"prompt_string\":\"bafo gene\"},\"fa\"]}",
                         200),
           *data = json_object_get(o, "data"), *first = json_object_get(json_array_get(data, 0), "embedding");
    assert_true(fabs(squares(first) - 1) < 1e-5);
    for (size_t i = 1; i < 4; i++)
        assert_int_equal(json_equal(first, json_object_get(json_array_get(data, i), "embedding")), i < 3);
    json_decref(o);
    stop(&r);
}

/* The same scores in either shape. */
static void scores_in_two_shapes(void **state)
{
    running r = { .path = make_bert("rank.gguf", ",\"cls.weight\",\"cls.output.weight\"", 4) };
    start(&r, 2);
    json_t *o = ask_json(r.port, "POST", "/rerank",
                         "{\"query\":\"bafo\",\"documents\":[\"fa\",\"gene gene\",\"to\"],\"return_documents\":true}",
                         200),
           *flat = ask_json(r.port, "POST", "/rerank",
                            "{\"query\":\"bafo\",\"texts\":[\"fa\",\"gene gene\",\"to\"],\"return_text\":true}", 200),
           *top = ask_json(r.port, "POST", "/rerank",
                           "{\"query\":\"bafo\",\"texts\":[\"fa\",\"gene gene\",\"to\"],\"top_n\":1}", 200);
    assert_true(json_is_array(flat) && json_array_size(flat) == 3 && json_array_size(top) == 1);
    for (size_t i = 0; i < 3; i++) {
        const json_t *a = json_array_get(json_object_get(o, "results"), i), *b = json_array_get(flat, i);
        assert_int_equal(int_of(a, "index"), int_of(b, "index"));
        assert_true(json_equal(json_object_get(a, "relevance_score"), json_object_get(b, "score")));
        assert_string_equal(text_of(json_object_get(a, "document"), "text"), text_of(b, "text"));
    }
    assert_true(json_equal(json_object_get(json_array_get(top, 0), "score"),
                           json_object_get(json_array_get(flat, 0), "score")));
    assert_null(json_object_get(json_array_get(top, 0), "text"));
    json_decref(top);
    json_decref(flat);
    json_decref(o);
    json_decref(ask_json(r.port, "POST", "/rerank", "{\"query\":\"bafo\",\"texts\":[1]}", 400));
    stop(&r);
}

/* What a template takes: one that writes calls, one without a place for them or the system (where hone finds one), one
 * that calls once a turn, one that takes no conversation. */
static void what_a_template_takes(void **state)
{
    static const struct {
        const char *source;
        bool tools, parallel, system, thinks;
    } rows[] = {
        { NULL, true, true, true, false },
        { "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}[{{ m.role }}]"
          "{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}[assistant]<think>{% endif %}",
          true, true, true, true }, /* the words of the system go to the user */
        { "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.tool_calls %}{% set c = m.tool_calls[0] %}<call>"
          "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}</call>{% endif "
          "%}</m>"
          "{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}<assistant>{% endif "
          "%}",
          true, false, true, false },
        { "{{ raise_exception('never') }}", true, true, false, false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        running r = { .p = { .shelf.chat_template = rows[i].source, .ollama = true } };
        start(&r, 2);
        json_t *o = ask_json(r.port, "GET", "/props", NULL, 200), *caps = json_object_get(o, "chat_template_caps");
        assert_int_equal(json_is_true(json_object_get(caps, "supports_tools")), rows[i].tools);
        assert_int_equal(json_is_true(json_object_get(caps, "supports_tool_calls")), rows[i].tools);
        assert_int_equal(json_is_true(json_object_get(caps, "supports_parallel_tool_calls")), rows[i].parallel);
        assert_int_equal(json_is_true(json_object_get(caps, "supports_system_role")), rows[i].system);
        json_decref(o);
        o = ask_json(r.port, "POST", "/api/show", "{\"model\":\"chat\"}", 200);
        char *can = json_dumps(json_object_get(o, "capabilities"), 0);
        assert_int_equal(strstr(can, "thinking") != NULL, rows[i].thinks);
        free(can);
        json_decref(o);
        stop(&r);
    }
}

/* Log-probabilities of a conversation have the ids of their tokens; the list of models says how long it may be. */
static void tokens_of_a_conversation(void **state)
{
    running r = { 0 };
    start(&r, 2);
    json_t *o = ask_json(r.port, "POST", "/v1/chat/completions",
                         "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":6,\"temperature\":0,"
                         "\"logprobs\":true,\"top_logprobs\":2}",
                         200),
           *list = json_object_get(json_object_get(json_array_get(json_object_get(o, "choices"), 0), "logprobs"),
                                   "content");
    assert_true(json_array_size(list) >= 2);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *t = json_array_get(list, i), *top = json_object_get(t, "top_logprobs");
        json_t *asked = json_pack("{s:[O]}", "tokens", json_object_get(t, "id"));
        char *body = json_dumps(asked, 0);
        json_t *text = ask_json(r.port, "POST", "/detokenize", body, 200);
        assert_string_equal(json_string_value(json_object_get(text, "content")),
                            json_string_value(json_object_get(t, "token")));
        assert_true(json_array_size(top) == 2);
        assert_true(json_equal(json_object_get(json_array_get(top, 0), "id"), json_object_get(t, "id")));
        json_decref(text);
        json_decref(asked);
        free(body);
    }
    json_decref(o);
    o = ask_json(r.port, "GET", "/v1/models", NULL, 200);
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(json_object_get(o, "data"), 0), "max_model_len")), SITE_CTX);
    json_decref(o);
    stop(&r);
}

/* A model whose file has no template talks ChatML, and each answer says so; the same bytes as where it was told to. */
static void a_base_model_talks_chatml(void **state)
{
    static const char body[] =
        "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}],\"max_tokens\":8,\"temperature\":0}";
    char *said[2] = { 0 };
    for (int told = 0; told < 2; told++) {
        running r = { .path = "models/hone-tiny.gguf", .p = { .ollama = true } };
        if (told) r.p.shelf.chat_template = "chatml";
        start(&r, 2);
        client_answer a = client_ask(r.port, "POST", "/v1/chat/completions", "", body);
        const char *header = client_header(&a, "x-hone-chat-template");
        assert_int_equal(a.status, 200);
        if (told) assert_null(header);
        else assert_string_equal(header, "chatml");
        const char *from = strstr(a.body, "\"content\":\"");
        assert_non_null(from);
        said[told] = strndup(from, (size_t)(strstr(from, "\"refusal\"") - from));
        client_free(&a);
        a = client_ask(r.port, "POST", "/apply-template", "", body);
        assert_non_null(strstr(a.body, "<|im_start|>user\\nHi<|im_end|>"));
        client_free(&a);
        a = client_ask(r.port, "POST", "/completion", "", "{\"prompt\":\"Hi\",\"n_predict\":2}");
        assert_null(client_header(&a, "x-hone-chat-template"));
        client_free(&a);
        a = client_ask(r.port, "GET", "/props", "", NULL);
        assert_non_null(strstr(a.body, "\"chat_template\":\"chatml\""));
        client_free(&a);
        stop(&r);
    }
    assert_string_equal(said[0], said[1]);
    free(said[0]);
    free(said[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_template_goes_to_completion),
                                        cmocka_unit_test(prompts_have_many_shapes),
                                        cmocka_unit_test(answers_tell_their_prompt),
                                        cmocka_unit_test(too_long_prompts_have_a_type),
                                        cmocka_unit_test(a_stream_tells_its_tokens),
                                        cmocka_unit_test(the_end_says_why),
                                        cmocka_unit_test(a_stop_string_held_back),
                                        cmocka_unit_test(rates_are_of_their_time),
                                        cmocka_unit_test(progress_begins_and_ends),
                                        cmocka_unit_test(counters_add_up),
                                        cmocka_unit_test(settings_of_a_sleeping_model),
                                        cmocka_unit_test(nothing_loads_by_itself),
                                        cmocka_unit_test(rows_of_tokens),
                                        cmocka_unit_test(norms_of_vectors),
                                        cmocka_unit_test(vectors_of_parts),
                                        cmocka_unit_test(scores_in_two_shapes),
                                        cmocka_unit_test(what_a_template_takes),
                                        cmocka_unit_test(tokens_of_a_conversation),
                                        cmocka_unit_test(a_base_model_talks_chatml) };
    return cmocka_run_group_tests(tests, tm_make_dir, tm_remove_dir);
}
