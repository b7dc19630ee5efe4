/* `hone serve` of both sides, asked the same by this program. Owns the requests, and which words of an answer count. */
#define _GNU_SOURCE
#include "lab/judge/front.h"

#include "base/json_text.h"
#include "base/json_tree.h"
#include "lab/bench/load.h"
#include "lab/judge/side_priv.h"
#include "lab/machine/clock.h"
#include "lab/stats/stats.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

/* The first answer may take TIMEOUT_S; the others SHORT_S and a hundred times what the first took, at most as long. */
enum { WAIT_S = 300, TIMEOUT_S = 600, SHORT_S = 30 };
enum { CTX = 1024, LEFT_IN_FULL = 15 }; /* --ctx-size, and what FULL leaves of it */

#define TALK                                                                                                    \
    "\"messages\":[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\"Name a "    \
    "color.\"},{\"role\":\"assistant\",\"content\":\"Green.\"},{\"role\":\"user\",\"content\":\"Tell me about " \
    "it.\"}]"

/* Questions, in this order. SEED stands for a number that is drawn, FULL for nearly as many ids as the context has, CUT
 * for a piece of what was answered to "whole", where the same answer ends, and STOP for such a piece and a letter that
 * does not follow it: a stream holds so much back, and then gives it at once. */
static const struct {
    const char *name, *path, *json;
} asks[] = {
    { "text", "/v1/completions",
      "{\"prompt\":\"Once upon a time there was a\",\"max_tokens\":12,\"temperature\":1.3,\"seed\":SEED,\"n\":3,"
      "\"logprobs\":2,\"ignore_eos\":true}" },
    { "echo", "/v1/completions",
      "{\"prompt\":\"A list of things\",\"max_tokens\":4,\"temperature\":0,\"echo\":true,\"logprobs\":3}" },
    { "chat", "/v1/chat/completions",
      "{" TALK ",\"max_tokens\":12,\"temperature\":0.8,\"seed\":SEED,\"logprobs\":true,\"top_logprobs\":3,"
      "\"logit_bias\":{\"I\":-100,\"O\":-100,\"T\":-100,\" the\":9}}" },
    { "biased", "/v1/completions",
      "{\"prompt\":\"Once upon a time\",\"max_tokens\":12,\"temperature\":0,\"ignore_eos\":true,\"logprobs\":5,"
      "\"logit_bias\":{\" Mississippi, 42 quizzes\":7,\"xylophone\":-3}}" },
    { "full", "/v1/completions", "{\"prompt\":FULL,\"max_tokens\":64,\"temperature\":0,\"ignore_eos\":true}" },
    { "stream", "/v1/chat/completions",
      "{" TALK ",\"max_tokens\":48,\"temperature\":0.8,\"seed\":SEED,\"ignore_eos\":true,\"stream\":true}" },
    { "whole", "/v1/chat/completions", "{" TALK ",\"max_tokens\":48,\"temperature\":0,\"ignore_eos\":true}" },
    { "held", "/v1/chat/completions",
      "{" TALK ",\"max_tokens\":48,\"temperature\":0,\"ignore_eos\":true,\"stream\":true,\"stop\":[STOP]}" },
    { "cut", "/v1/chat/completions",
      "{" TALK ",\"max_tokens\":48,\"temperature\":0,\"ignore_eos\":true,\"stop\":[CUT]}" },
    { "form", "/v1/chat/completions",
      "{" TALK ",\"max_tokens\":24,\"temperature\":0.8,\"seed\":SEED,\"response_format\":{\"type\":\"json_schema\","
      "\"json_schema\":{\"name\":\"a\",\"schema\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},"
      "\"s\":{\"enum\":[\"one\",\"two\"]}},\"required\":[\"n\",\"s\"],\"additionalProperties\":false}}}}" },
    { "tool", "/v1/chat/completions",
      "{" TALK ",\"max_tokens\":32,\"temperature\":0.8,\"seed\":SEED,\"tool_choice\":\"required\",\"tools\":[{\"type\":"
      "\"function\",\"function\":{\"name\":\"look\",\"parameters\":{\"type\":\"object\",\"properties\":{\"at\":{"
      "\"type\":"
      "\"integer\"}},\"required\":[\"at\"]}}}]}" },
    { "message", "/v1/messages",
      "{\"model\":\"m\",\"system\":\"Be brief.\",\"messages\":[{\"role\":\"user\",\"content\":\"Name a color.\"}],"
      "\"max_tokens\":12,\"temperature\":0}" },
    { "reply", "/v1/responses",
      "{\"model\":\"m\",\"input\":\"Name a color.\",\"max_output_tokens\":12,\"temperature\":0}" },
    { "native", "/completion",
      "{\"prompt\":\"A list of things: \",\"n_predict\":12,\"temperature\":0.9,\"top_k\":20,\"min_p\":0.05,"
      "\"repeat_penalty\":1.2,\"repeat_last_n\":100,\"seed\":SEED,\"n_probs\":3,\"stop\":[\"e\",\"a\",\".\"],\"cache_"
      "prompt\":"
      "true}" },
    { "ends", "/completion",
      "{\"prompt\":\"A list of things: \",\"n_predict\":24,\"temperature\":0.9,\"seed\":SEED,\"stop\":[\" "
      "\",\"e\",\"t\",\"a\","
      "\"o\",\"i\",\"n\",\"s\"]}" },
    { "vector", "/v1/embeddings", "{\"input\":[\"A green leaf.\",\"Two\",\"Things to check before a measurement\"]}" },
    { "shorter", "/v1/embeddings", "{\"input\":[\"A green leaf.\",\"Two\"],\"dimensions\":8}" },
    { "rank", "/rerank",
      "{\"query\":\"What is green?\",\"documents\":[\"A leaf.\",\"The sea\",\"Things to check before a "
      "measurement\",\"Grass, trees\",\"42\"]}" },
    { "tokens", "/tokenize", "{\"content\":\"Der Zug f\\u00e4hrt um acht, 123456 x 1.5!\"}" },
};
enum { N_ASKS = sizeof asks / sizeof *asks, LEFT = N_ASKS, TOGETHER, N_ALL };

/* ---- what of an answer counts ---------------------------------------------------------------------- */

static bool counts(const char *key)
{
    static const char *const keys[] = { "text",
                                        "content",
                                        "reasoning_content",
                                        "thinking",
                                        "arguments",
                                        "token",
                                        "tokens",
                                        "logprob",
                                        "embedding",
                                        "finish_reason",
                                        "name",
                                        "prompt_tokens",
                                        "completion_tokens",
                                        "stop_reason",
                                        "partial_json",
                                        "token_logprobs",
                                        "relevance_score",
                                        "index" };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

static uint64_t add(uint64_t h, json_t *v, bool counted);
/* Of each token a list of objects, or one of numbers by texts. */
static uint64_t add_alternatives(uint64_t h, json_t *v)
{
    const char *key;
    json_t *o;
    size_t i;
    if (json_is_array(v)) json_array_foreach(v, i, o) h = add_alternatives(h, o);
    if (json_is_object(v)) json_object_foreach(v, key, o) h = add(hn_fnv1a(h, key, strlen(key) + 1), o, true);
    return h;
}

/* Texts as they follow each other, in however many pieces they come; numbers as they stand. What is new to an answer,
 * or is another each time, is passed over, but that names of alternatives are their texts in one kind of answer. */
static uint64_t add(uint64_t h, json_t *v, bool counted)
{
    const char *key;
    json_t *o;
    size_t i;
    char number[HN_JSON_REAL_TEXT];
    if (json_is_object(v)) json_object_foreach(v, key, o)
        {
            if (strcmp(key, "top_logprobs") == 0) h = add_alternatives(h, o);
            else h = add(h, o, counts(key));
        }
    if (json_is_array(v)) json_array_foreach(v, i, o) h = add(h, o, counted);
    if (!counted) return h;
    if (json_is_string(v)) h = hn_fnv1a(h, json_string_value(v), json_string_length(v));
    if (!json_is_number(v)) return h;
    hn_json_real(number, json_number_value(v));
    return hn_fnv1a(h, number, strlen(number) + 1);
}

/* Of one object, or of the lines of a stream. */
static uint64_t hash_of(char *body)
{
    uint64_t h = HN_FNV_INIT;
    for (char *line = body, *next; line && *line; line = next) {
        json_t *o = NULL;
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        if (strncmp(line, "data: ", 6) == 0) line += 6;
        if (*line == '{' && hn_json_tree(&o, line, strlen(line), NULL, "an answer", NULL) == HONE_OK)
            h = add(h, o, false);
        json_decref(o);
    }
    return h;
}

/* ---- a server ------------------------------------------------------------------------------------------ */

typedef struct answers {
    bool began, has[N_ALL]; /* an answer that is one */
    uint64_t hash[N_ALL];
    char why[400]; /* why it did not begin, or how it ended before its time; "" */
} answers;

static hone_status await(char url[96], hn_beside *b, bool (*stop)(void *), hone_error *err)
{
    const struct timespec pause = { .tv_nsec = 10000000 };
    url[0] = 0;
    for (uint64_t from = hn_clock_ns(); hn_clock_ns() - from < (uint64_t)WAIT_S * 1000000000;) {
        if (hn_beside_gone(b) || hn_load_address(url, 96, b)) return HONE_OK;
        if (stop && stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        nanosleep(&pause, NULL);
    }
    return HONE_OK;
}

/* The request, with what stands for something in it; malloc'ed. NULL: no memory. */
static char *request(const char *json, uint64_t seed, const char *held, const char *cut)
{
    char number[24], full[2 * (CTX - LEFT_IN_FULL) + 2] = "[7", *s = NULL;
    for (char *p = full + 2; p < full + sizeof full - 3; p += 2) memcpy(p, ",7", 2);
    memcpy(full + sizeof full - 2, "]", 2);
    snprintf(number, sizeof number, "%" PRIu64, seed >> 1);
    const struct {
        const char *word, *is;
    } words[] = { { "SEED", number }, { "STOP", held }, { "CUT", cut }, { "FULL", full } };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(json, words[i].word);
        if (!at || !words[i].is) continue;
        int n = asprintf(&s, "%.*s%s%s", (int)(at - json), json, words[i].is, at + strlen(words[i].word));
        return n < 0 ? NULL : s;
    }
    return strdup(json);
}

/* A piece of the text of a chat's answer, from near its beginning, and, if so, with a letter behind it that is none; as
 * JSON, malloc'ed. NULL: there is no text of so many bytes. */
static char *piece_within(const char *body, uint64_t draw, bool and_letter)
{
    enum { NEAR = 8, LEAST = 10, MORE = 16 };
    json_t *o = NULL, *choice = NULL, *text = NULL, *stop = NULL;
    if (hn_json_tree(&o, body, strlen(body), NULL, "an answer", NULL) != HONE_OK) return NULL;
    choice = json_array_get(json_object_get(o, "choices"), 0);
    text = json_object_get(json_object_get(choice, "message"), "content");
    const char *s = json_string_value(text);
    const size_t n = json_string_length(text);
    size_t from = draw % NEAR, to = from + LEAST + draw / NEAR % MORE;
    char piece[NEAR + LEAST + MORE + 8] = "";
    if (s && to + 4 < n) {
        while (((unsigned char)s[from] & 0xC0) == 0x80) from++; /* whole characters */
        while (((unsigned char)s[to] & 0xC0) == 0x80) to++;
        memcpy(piece, s + from, to - from);
        piece[to - from] = '\x7f';
        stop = json_stringn(piece, to - from + and_letter);
    }
    char *r = stop ? json_dumps(stop, JSON_ENCODE_ANY) : NULL;
    json_decref(stop);
    json_decref(o);
    return r;
}

static int32_t patience(double took_s) { return (int32_t)fmin(SHORT_S + 100 * took_s, TIMEOUT_S); }

/* More clients than the server has slots ask for much, and go away while it answers: then the first request, which took
 * took_s before, is answered as it was. */
static hone_status ask_behind_others(answers *out, const char *url, uint64_t draw, double took_s, bool (*stop)(void *),
                                     hone_error *err)
{
    enum { CLIENTS = 12 };
    static const char much[] = "{\"prompt\":\"Once upon a time\",\"max_tokens\":900,\"temperature\":0.8,\"seed\":1,"
                               "\"ignore_eos\":true,\"stream\":true}";
    hn_load_answer a = { 0 };
    if (stop && stop(NULL)) return HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
    hone_status st = hn_load_leave(url, asks[0].path, much, CLIENTS, fmin(0.05 + took_s, 2), err);
    if (st != HONE_OK) return st;
    char *json = request(asks[0].json, hn_rand64(draw, 0), NULL, NULL);
    if (!json) return HN_FAIL(err, HONE_E_NOMEM, "a request");
    st = hn_load_post(&a, url, asks[0].path, json, patience(took_s), err);
    out->has[LEFT] = a.status == 200 && a.body;
    if (out->has[LEFT]) out->hash[LEFT] = hash_of(a.body);
    free(a.body);
    free(json);
    return st;
}

/* Each question in turn, until one is not answered that `other` has answered (NULL: nobody has): a server that hangs is
 * not waited for again and again. */
static hone_status ask_all(answers *out, const answers *other, const char *url, uint64_t draw, bool (*stop)(void *),
                           hone_error *err)
{
    hone_status st = HONE_OK;
    char *held = NULL, *cut = NULL;
    const double quick_s = 0.3; /* a model that answers the first so soon reads a whole context soon */
    double took_s = 0;
    for (int i = 0; i < N_ASKS && st == HONE_OK; i++) {
        const uint64_t drawn = hn_rand64(draw, (uint64_t)i);
        /* (of both sides, whose answers before are the same) */
        if ((strstr(asks[i].json, "STOP") && !held) || (strstr(asks[i].json, "CUT") && !cut)) continue;
        if (strstr(asks[i].json, "FULL") && (other ? !other->has[i] : took_s > quick_s)) continue;
        char *json = request(asks[i].json, drawn, held, cut);
        hn_load_answer a = { 0 };
        const uint64_t from = hn_clock_ns();
        if (stop && stop(NULL)) st = HN_FAIL(err, HONE_E_INTERRUPTED, "interrupted");
        else if (!json) st = HN_FAIL(err, HONE_E_NOMEM, "a request");
        else st = hn_load_post(&a, url, asks[i].path, json, i == 0 ? TIMEOUT_S : patience(took_s), err);
        out->has[i] = a.status == 200 && a.body;
        if (i == 0) took_s = (double)(hn_clock_ns() - from) * 1e-9;
        if (out->has[i] && strcmp(asks[i].name, "whole") == 0) {
            held = piece_within(a.body, drawn, true);
            cut = piece_within(a.body, drawn, false);
        }
        if (out->has[i]) out->hash[i] = hash_of(a.body);
        free(a.body);
        free(json);
        if (st == HONE_OK && !out->has[i] && other && other->has[i]) goto out;
    }
    if (st == HONE_OK && out->has[0]) st = ask_behind_others(out, url, draw, took_s, stop, err);
    if (st != HONE_OK || !out->has[LEFT]) goto out;
    const hn_load_params together = { .url = url,
                                      .n_clients = 4,
                                      .n_requests = 8,
                                      .n_words = 12,
                                      .n_gen = 8,
                                      .temp = 0.8f,
                                      .seed = draw,
                                      .whole = true,
                                      .timeout_s = patience(took_s),
                                      .stop = stop };
    hn_load_run run;
    hone_status loaded = hn_load(&run, &together, NULL);
    if (loaded == HONE_OK) {
        out->has[TOGETHER] = run.n_failed == 0;
        out->hash[TOGETHER] = hn_load_hash(&run);
        hn_load_free(&run);
    }
    if (loaded == HONE_E_INTERRUPTED) st = HN_FAIL(err, loaded, "interrupted");
out:
    free(held);
    free(cut);
    return st;
}

static hone_status serve(answers *out, const answers *other, hn_side *s, const hn_target *t, uint64_t draw,
                         hone_error *err)
{
    hn_side_command c = { .argv = { 0 } };
    hn_beside b;
    char url[96] = "";
    *out = (answers){ .began = false };
    hn_argv_extend(&c.argv, (const char *const[]){ s->program, "serve", "--port=0", "--no-ui", "--ctx-size=1024",
                                                   "--pooling=mean", "--parallel=8", NULL });
    hn_argv_add(&c.argv, "--model=%s", t->model);
    hn_front_settings(&c.argv, s, t);
    hn_side_own_env(&c, s);
    hone_status st = hn_argv_check(&c.argv, s->program, err);
    if (st == HONE_OK) st = hn_beside_start(&b, hn_argv_words(&c.argv), c.env, err);
    hn_argv_free(&c.argv);
    if (st != HONE_OK) return st;
    st = await(url, &b, t->stop, err);
    out->began = url[0] != 0;
    if (st == HONE_OK && out->began) st = ask_all(out, other, url, draw, t->stop, err);
    bool early = hn_beside_gone(&b);
    char how[300];
    hn_beside_stop(&b, how, sizeof how);
    if (early || !out->began) snprintf(out->why, sizeof out->why, "hone serve %s", how[0] ? how : "ended by itself");
    return st;
}

hone_status hn_front_served(hn_front *out, hn_side *const side[2], const hn_target *t, uint64_t draw, hone_error *err)
{
    answers of[2];
    for (int k = 0; k < 2; k++) {
        hone_status st = serve(&of[k], k ? &of[0] : NULL, side[k], t, draw, err);
        if (st != HONE_OK) return st;
        if (k == 0 && (!of[0].began || of[0].why[0])) return HONE_OK; /* nothing to hold b's against */
    }
    const char *name = NULL;
    int i = 0;
    if (of[1].why[0]) {
        name = "server";
        snprintf(out->why, sizeof out->why, "%s, and side a's does not", of[1].why);
    }
    for (; i < N_ALL && !name; i++) {
        if (!of[0].has[i] || (of[1].has[i] && of[0].hash[i] == of[1].hash[i])) continue;
        name = i == TOGETHER ? "several" : i == LEFT ? "left" : asks[i].name;
        if (!of[1].has[i])
            snprintf(out->why, sizeof out->why, "hone serve does not answer (%s), and side a's does", name);
        for (int k = 0; k < 2; k++) snprintf(out->hash[k], sizeof out->hash[k], "%08" PRIx32, (uint32_t)of[k].hash[i]);
    }
    if (name) snprintf(out->name, sizeof out->name, "serve:%s", name);
    return HONE_OK;
}
