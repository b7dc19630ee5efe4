/* The voices of ollama's /api/chat, /api/generate and /api/embed: one object of JSON a line. One machine writes lines;
 * a whole answer is a line of all. Owns the shapes of this API; refuses to know its bodies (ask_ollama.c). */
#include "serve/voice_ollama.h"
#include "serve/voice_parts.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static const char ndjson[] = "application/x-ndjson";

/* ---- pieces ------------------------------------------------------------------------------ */

static bool is_chat(const hn_ask *a) { return a->voice == &hn_voice_ollama_chat; }

/* "model" and "created_at", the latter in RFC 3339. */
static void head(hn_bytes *o, const hn_head *h)
{
    time_t at = (time_t)h->created;
    struct tm tm;
    hn_bytes_text(o, "{");
    hn_part_text(o, "model", h->model);
    if (!gmtime_r(&at, &tm)) tm = (struct tm){ .tm_mday = 1, .tm_year = 70 };
    hn_bytes_printf(o, ",\"created_at\":\"%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ\"", tm.tm_year + 1900, tm.tm_mon + 1,
                    tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (long long)h->created_ns);
}

static void nanoseconds(hn_bytes *o, const char *name, double ms)
{
    hn_part_int(o, name, ms > 0 && ms < 9e12 ? (int64_t)llround(ms * 1e6) : 0);
}

static void usage(hn_bytes *o, const hn_usage *u)
{
    nanoseconds(o, "total_duration", u->total_ms);
    nanoseconds(o, "load_duration", u->load_ms);
    hn_part_int(o, "prompt_eval_count", u->prompt);
    nanoseconds(o, "prompt_eval_duration", u->prompt_ms);
    hn_part_int(o, "eval_count", u->completion);
    nanoseconds(o, "eval_duration", u->predicted_ms);
}

/* A call that is whole. */
static void call(hn_bytes *o, const char *id, const char *name, int32_t index, const char *arguments, size_t n)
{
    hn_bytes_text(o, "{");
    hn_part_text(o, "id", id);
    hn_bytes_printf(o, ",\"function\":{\"index\":%d", index);
    hn_part_text(o, "name", name);
    hn_bytes_text(o, ",\"arguments\":");
    hn_arguments_object(o, arguments, n);
    hn_bytes_text(o, "}}");
}

/* ---- a stream ---------------------------------------------------------------------------- */

typedef struct ollama_state {
    hn_bytes arguments; /* of the open call */
    char *id, *name;
    int32_t call;
    hn_why why;
    int32_t *ids; /* [n_ids] the context */
    size_t n_ids;
} ollama_state;

static void drop(void *state)
{
    ollama_state *st = state;
    if (!st) return;
    hn_bytes_free(&st->arguments);
    free(st->id);
    free(st->name);
    free(st->ids);
    free(st);
}

static bool begin(const hn_ask *a, const hn_head *h, hn_bytes *o, void **state)
{
    ollama_state *st = calloc(1, sizeof *st);
    *state = st;
    if (!st) return false;
    st->why = HN_WHY_LENGTH;
    return true;
}

/* A line of s [n], which belong together; NULL: of nothing. */
static void line(const hn_ask *a, const hn_head *h, const ollama_state *st, const hn_say *s, size_t n, hn_bytes *o)
{
    bool thinks = s && s->kind == HN_SAY_REASONING, text = s && s->kind == HN_SAY_TEXT;
    head(o, h);
    hn_bytes_text(o, is_chat(a) ? ",\"message\":{\"role\":\"assistant\",\"content\":" : ",\"response\":");
    if (text) hn_say_joined(o, s, n, s->prompt, s->choice, s->kind, -1);
    else hn_bytes_text(o, "\"\"");
    if (thinks) {
        hn_bytes_text(o, ",\"thinking\":");
        hn_say_joined(o, s, n, s->prompt, s->choice, s->kind, -1);
    }
    if (is_chat(a) && s && s->kind == HN_SAY_CALL_END) {
        hn_bytes_text(o, ",\"tool_calls\":[");
        call(o, st->id, st->name, st->call, st->arguments.p, st->arguments.n);
        hn_bytes_text(o, "]");
    }
    if (is_chat(a)) hn_bytes_text(o, "}");
    if (text && a->top_logprobs >= 0) {
        hn_bytes_text(o, ",\"logprobs\":");
        hn_part_all_tokens(o, s, n, s->prompt, s->choice, false, false);
    }
    hn_bytes_text(o, ",\"done\":false}\n");
}

static bool take_call(ollama_state *st, const hn_say *s)
{
    free(st->id);
    free(st->name);
    st->name = NULL;
    st->id = strdup(s->call_id ? s->call_id : "");
    if (st->id) st->name = strdup(s->name ? s->name : "");
    st->call = s->call;
    st->arguments.n = 0;
    return st->name != NULL;
}

static bool take_end(ollama_state *st, const hn_say *s)
{
    st->why = s->why;
    if (!s->n_ids) return true;
    free(st->ids);
    st->n_ids = 0;
    if (!(st->ids = malloc(s->n_ids * sizeof *st->ids))) return false;
    memcpy(st->ids, s->ids, s->n_ids * sizeof *st->ids);
    st->n_ids = s->n_ids;
    return true;
}

static bool say(const hn_ask *a, const hn_head *h, void *state, const hn_say *s, size_t n, hn_bytes *o)
{
    ollama_state *st = state;
    for (size_t i = 0, k; i < n; i += k) {
        k = hn_say_run(s + i, n - i);
        switch (s[i].kind) {
        case HN_SAY_TEXT:
        case HN_SAY_REASONING: line(a, h, st, s + i, k, o); break;
        case HN_SAY_CALL:
            if (!take_call(st, s + i)) return false;
            break;
        case HN_SAY_ARGUMENTS: hn_say_raw(&st->arguments, s + i, k, s[i].prompt, s[i].choice, s[i].kind, -1); break;
        case HN_SAY_CALL_END: line(a, h, st, s + i, 1, o); break;
        case HN_SAY_END:
            if (!take_end(st, s + i)) return false;
            break;
        case HN_SAY_ALIVE: line(a, h, st, NULL, 0, o); break; /* this form has no comments: a line of nothing */
        case HN_SAY_ECHO:
        case HN_SAY_PROGRESS: break;
        }
    }
    return hn_bytes_ok(o) && !st->arguments.lost;
}

/* From "done" on to the object's end. */
static void done(hn_bytes *o, const hn_ask *a, hn_why why, const int32_t *ids, size_t n_ids, const hn_usage *u)
{
    bool cut = why == HN_WHY_LENGTH || why == HN_WHY_CONTEXT;
    hn_bytes_printf(o, ",\"done\":true,\"done_reason\":\"%s\"", cut ? "length" : "stop");
    if (a->return_context && n_ids) {
        hn_bytes_text(o, ",\"context\":");
        hn_part_ids(o, ids, n_ids);
    }
    usage(o, u);
    hn_bytes_text(o, ",");
    hn_part_hone(o, u);
    hn_bytes_text(o, "}");
}

static bool end(const hn_ask *a, const hn_head *h, void *state, const hn_usage *u, hn_bytes *o)
{
    const ollama_state *st = state;
    head(o, h);
    hn_bytes_text(o, is_chat(a) ? ",\"message\":{\"role\":\"assistant\",\"content\":\"\"}" : ",\"response\":\"\"");
    done(o, a, st->why, st->ids, st->n_ids, u);
    hn_bytes_text(o, "\n");
    return hn_bytes_ok(o);
}

static bool fail(const hn_ask *a, const hn_head *h, void *state, const hn_refusal *r, hn_bytes *o)
{
    hn_refusal_body("/api/chat", r, h->request_id, o);
    hn_bytes_text(o, "\n");
    return hn_bytes_ok(o);
}

/* ---- no stream --------------------------------------------------------------------------- */

static void whole_calls(hn_bytes *o, const hn_say *s, size_t n)
{
    const hn_say *open = NULL;
    int32_t calls = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i].kind == HN_SAY_CALL) open = s + i;
        if (s[i].kind != HN_SAY_CALL_END || !open) continue;
        hn_bytes arguments = { 0 };
        hn_say_raw(&arguments, s, n, 0, 0, HN_SAY_ARGUMENTS, s[i].call);
        hn_bytes_text(o, calls++ ? "," : ",\"tool_calls\":[");
        call(o, open->call_id, open->name, open->call, arguments.p, arguments.n);
        o->lost |= arguments.lost;
        hn_bytes_free(&arguments);
    }
    if (calls) hn_bytes_text(o, "]");
}

static bool whole(const hn_ask *a, const hn_head *h, const hn_say *s, size_t n, const hn_usage *u, hn_bytes *o)
{
    const hn_say *last = hn_say_last(s, n, 0, 0);
    head(o, h);
    hn_bytes_text(o, is_chat(a) ? ",\"message\":{\"role\":\"assistant\",\"content\":" : ",\"response\":");
    hn_say_joined(o, s, n, 0, 0, HN_SAY_TEXT, -1);
    if (hn_say_length(s, n, 0, 0, HN_SAY_REASONING)) {
        hn_bytes_text(o, ",\"thinking\":");
        hn_say_joined(o, s, n, 0, 0, HN_SAY_REASONING, -1);
    }
    if (is_chat(a)) {
        whole_calls(o, s, n);
        hn_bytes_text(o, "}");
    }
    if (a->top_logprobs >= 0) {
        hn_bytes_text(o, ",\"logprobs\":");
        hn_part_all_tokens(o, s, n, 0, 0, false, false);
    }
    done(o, a, last->why, last->ids, last->n_ids, u);
    return hn_bytes_ok(o);
}

/* The model was loaded, or let go; or texts became vectors. */
static bool found(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    if (a->kind == HN_ASK_LOAD && a->voice != &hn_voice_ollama_embed) {
        head(o, h);
        hn_bytes_text(o, is_chat(a) ? ",\"message\":{\"role\":\"assistant\",\"content\":\"\"}" : ",\"response\":\"\"");
        hn_bytes_printf(o, ",\"done\":true,\"done_reason\":\"%s\"}", a->keep_alive_ms == 0 ? "unload" : "load");
        if (a->stream) hn_bytes_text(o, "\n");
        return hn_bytes_ok(o);
    }
    hn_bytes_text(o, "{");
    hn_part_text(o, "model", h->model);
    hn_bytes_text(o, ",\"embeddings\":[");
    for (size_t i = 0; i < a->n_prompt; i++) {
        if (i) hn_bytes_text(o, ",");
        hn_part_vector(o, f->vectors + i * (size_t)f->n_dim, f->n_dim);
    }
    hn_bytes_text(o, "]");
    nanoseconds(o, "total_duration", f->total_ms);
    nanoseconds(o, "load_duration", f->load_ms);
    hn_part_int(o, "prompt_eval_count", f->n_tokens);
    hn_bytes_text(o, "}");
    return hn_bytes_ok(o);
}

/* /api/embeddings, of before /api/embed. */
static bool found_embedding(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_text(o, "{\"embedding\":");
    if (a->kind == HN_ASK_LOAD) hn_bytes_text(o, "[]");
    else hn_part_vector(o, f->vectors, f->n_dim);
    hn_bytes_text(o, "}");
    return hn_bytes_ok(o);
}

/* ---- voices ------------------------------------------------------------------------------ */

static bool parse_chat(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return hn_ollama_parse(a, HN_ASK_CHAT, body, len, l, r);
}

static bool parse_generate(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return hn_ollama_parse(a, HN_ASK_TEXT, body, len, l, r);
}

static bool parse_embed(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return hn_ollama_parse(a, HN_ASK_EMBED, body, len, l, r);
}

#define GENERATES                                                                                              \
    .stream_type = ndjson, .begin = begin, .say = say, .end = end, .fail = fail, .drop = drop, .whole = whole, \
    .found = found

const hn_voice hn_voice_ollama_chat = { .name = "ollama.chat", .parse = parse_chat, GENERATES };
const hn_voice hn_voice_ollama_generate = { .name = "ollama.generate", .parse = parse_generate, GENERATES };
const hn_voice hn_voice_ollama_embed = { .name = "ollama.embed", .parse = parse_embed, .found = found };
const hn_voice hn_voice_ollama_embedding = { .name = "ollama.embeddings",
                                             .parse = parse_embed,
                                             .found = found_embedding };
