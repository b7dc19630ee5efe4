/* The voice of /v1/chat/completions and its input_tokens. Owns the shapes of OpenAI's chat; refuses to know models. */
#include "serve/ask_fields.h"
#include "serve/voice_parts.h"

#include <stdlib.h>

/* ---- body to ask ------------------------------------------------------------------------- */

static bool read_body(hn_fields *f)
{
    static const hn_field *const tables[] = { hn_fields_chat,  hn_fields_usual, hn_fields_sampling,
                                              hn_fields_forms, hn_fields_own,   NULL };
    return hn_fields_read(f, f->root, "", tables) && hn_chat_read(f) && hn_fields_agree(f);
}

static bool parse_chat(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = HN_ASK_CHAT;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_body(&f));
}

static bool parse_count(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    if (!parse_chat(a, body, len, l, r)) return false;
    a->kind = HN_ASK_COUNT;
    a->stream = false;
    return true;
}

/* ---- pieces ------------------------------------------------------------------------------ */

/* What every answer and chunk begins with. */
static void head(hn_bytes *o, const hn_head *h, const char *object)
{
    hn_bytes_text(o, "{\"id\":\"chatcmpl-");
    hn_bytes_escaped(o, h->id, strlen(h->id));
    hn_bytes_text(o, "\"");
    hn_part_text(o, "object", object);
    hn_part_int(o, "created", h->created);
    hn_part_text(o, "model", h->model);
    hn_part_text(o, "system_fingerprint", h->fingerprint);
    hn_bytes_text(o, ",\"choices\":[");
}

/* "logprobs":… of what choice c says in s [n]. */
static void logprobs(hn_bytes *o, const hn_ask *a, const hn_say *s, size_t n, int32_t c)
{
    hn_bytes_text(o, ",\"logprobs\":");
    if (a->top_logprobs < 0) {
        hn_bytes_text(o, "null");
        return;
    }
    hn_bytes_text(o, "{\"content\":");
    hn_part_all_tokens(o, s, n, 0, c, true, false); /* ids as llama-server has them */
    hn_bytes_text(o, ",\"refusal\":null}");
}

/* ---- a stream ---------------------------------------------------------------------------- */

/* Complete calls of each choice. */
typedef struct chat_state {
    int32_t n;
    int32_t calls[];
} chat_state;

static void open_chunk(hn_bytes *o, const hn_head *h, int32_t choice)
{
    hn_bytes_text(o, "data: ");
    head(o, h, "chat.completion.chunk");
    hn_bytes_printf(o, "{\"index\":%d,\"delta\":{", choice);
}

/* From behind the delta's last member on. logged: its says [n], whose tokens are told; finish NULL: it goes on. */
static void close_chunk(hn_bytes *o, const hn_ask *a, const hn_say *logged, size_t n, const char *finish)
{
    const hn_say *last = n ? logged + n - 1 : NULL;
    hn_bytes_text(o, "}");
    if (last && last->kind == HN_SAY_TEXT) logprobs(o, a, logged, n, last->choice);
    else hn_bytes_text(o, ",\"logprobs\":null");
    hn_part_text(o, "finish_reason", finish);
    hn_bytes_text(o, "}]");
    if (a->include_usage) hn_bytes_text(o, ",\"usage\":null");
    if (last && last->kind == HN_SAY_PROGRESS) {
        hn_bytes_text(o, ",");
        hn_part_progress(o, last);
    }
    if (last) hn_part_chunk_timings(o, a, last);
    hn_bytes_text(o, "}\n\n");
}

static bool begin(const hn_ask *a, const hn_head *h, hn_bytes *o, void **state)
{
    chat_state *st = calloc(1, sizeof *st + (size_t)a->n * sizeof *st->calls);
    *state = st;
    if (!st) return false;
    st->n = a->n;
    for (int32_t c = 0; c < a->n; c++) {
        open_chunk(o, h, c);
        hn_bytes_text(o, "\"role\":\"assistant\",\"content\":null");
        close_chunk(o, a, NULL, 0, NULL);
    }
    return hn_bytes_ok(o);
}

/* One frame of s [n], which belong together. */
static void frame(const hn_ask *a, const hn_head *h, chat_state *st, const hn_say *s, size_t n, hn_bytes *o)
{
    const char *finish = NULL;
    if (s->choice < 0 || s->choice >= st->n || s->kind == HN_SAY_ECHO) return;
    if (s->kind == HN_SAY_CALL_END) {
        st->calls[s->choice]++;
        return;
    }
    open_chunk(o, h, s->choice);
    switch (s->kind) {
    case HN_SAY_TEXT:
    case HN_SAY_REASONING:
        hn_bytes_text(o, s->kind == HN_SAY_TEXT ? "\"content\":" : "\"reasoning_content\":");
        hn_say_joined(o, s, n, s->prompt, s->choice, s->kind, -1);
        break;
    case HN_SAY_CALL:
        hn_bytes_printf(o, "\"tool_calls\":[{\"index\":%d", s->call);
        hn_part_text(o, "id", s->call_id);
        hn_bytes_text(o, ",\"type\":\"function\",\"function\":{\"name\":");
        hn_bytes_json_text(o, s->name);
        hn_bytes_text(o, ",\"arguments\":\"\"}}]");
        break;
    case HN_SAY_ARGUMENTS:
        hn_bytes_printf(o, "\"tool_calls\":[{\"index\":%d,\"function\":{\"arguments\":", s->call);
        hn_say_joined(o, s, n, s->prompt, s->choice, s->kind, s->call);
        hn_bytes_text(o, "}}]");
        break;
    case HN_SAY_END: finish = hn_finish_reason(s, st->calls[s->choice]); break;
    case HN_SAY_PROGRESS:
    case HN_SAY_ECHO:
    case HN_SAY_CALL_END:
    case HN_SAY_ALIVE: break;
    }
    close_chunk(o, a, s, n, finish);
}

static bool say(const hn_ask *a, const hn_head *h, void *state, const hn_say *s, size_t n, hn_bytes *o)
{
    for (size_t i = 0, k; i < n; i += k) {
        k = hn_say_run(s + i, n - i);
        if (s[i].kind == HN_SAY_ALIVE) hn_part_alive(o);
        else frame(a, h, state, s + i, k, o);
    }
    return hn_bytes_ok(o);
}

static bool end(const hn_ask *a, const hn_head *h, void *state, const hn_usage *u, hn_bytes *o)
{
    if (a->include_usage) {
        hn_bytes_text(o, "data: ");
        head(o, h, "chat.completion.chunk");
        hn_bytes_text(o, "],");
        hn_part_usage(o, u);
        hn_bytes_text(o, ",");
        hn_part_timings(o, u);
        hn_bytes_text(o, ",");
        hn_part_hone(o, u);
        hn_bytes_text(o, "}\n\n");
    }
    hn_bytes_text(o, "data: [DONE]\n\n");
    return hn_bytes_ok(o);
}

/* ---- no stream --------------------------------------------------------------------------- */

static void choice(const hn_ask *a, int32_t c, const hn_say *s, size_t n, hn_bytes *o)
{
    int32_t calls = hn_say_calls(s, n, 0, c, false), k = 0;
    hn_bytes_printf(o, "{\"index\":%d,\"message\":{\"role\":\"assistant\",\"content\":", c);
    if (calls && !hn_say_length(s, n, 0, c, HN_SAY_TEXT)) hn_bytes_text(o, "null");
    else hn_say_joined(o, s, n, 0, c, HN_SAY_TEXT, -1);
    if (hn_say_length(s, n, 0, c, HN_SAY_REASONING)) {
        hn_bytes_text(o, ",\"reasoning_content\":");
        hn_say_joined(o, s, n, 0, c, HN_SAY_REASONING, -1);
    }
    hn_bytes_text(o, ",\"refusal\":null");
    if (calls) hn_bytes_text(o, ",\"tool_calls\":[");
    for (size_t i = 0; i < n; i++) {
        if (s[i].kind != HN_SAY_CALL || !hn_say_of(s + i, 0, c)) continue;
        hn_bytes_text(o, k++ ? ",{\"id\":" : "{\"id\":");
        hn_bytes_json_text(o, s[i].call_id);
        hn_bytes_text(o, ",\"type\":\"function\",\"function\":{\"name\":");
        hn_bytes_json_text(o, s[i].name);
        hn_bytes_text(o, ",\"arguments\":");
        hn_say_joined(o, s, n, 0, c, HN_SAY_ARGUMENTS, s[i].call);
        hn_bytes_text(o, "}}");
    }
    hn_bytes_text(o, calls ? "]}" : "}");

    logprobs(o, a, s, n, c);
    hn_part_text(o, "finish_reason", hn_finish_reason(hn_say_last(s, n, 0, c), hn_say_calls(s, n, 0, c, true)));
    hn_bytes_text(o, "}");
}

static bool whole(const hn_ask *a, const hn_head *h, const hn_say *s, size_t n, const hn_usage *u, hn_bytes *o)
{
    head(o, h, "chat.completion");
    for (int32_t c = 0; c < a->n; c++) {
        if (c) hn_bytes_text(o, ",");
        choice(a, c, s, n, o);
    }
    hn_bytes_text(o, "],");
    hn_part_usage(o, u);
    hn_bytes_text(o, ",");
    hn_part_timings(o, u);
    hn_bytes_text(o, ",");
    hn_part_hone(o, u);
    hn_bytes_text(o, "}");
    return hn_bytes_ok(o);
}

static bool found(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_printf(o, "{\"object\":\"response.input_tokens\",\"input_tokens\":%d}", f->n_tokens);
    return hn_bytes_ok(o);
}

const hn_voice hn_voice_chat = {
    .name = "openai.chat",
    .stream_type = hn_sse,
    .parse = parse_chat,
    .begin = begin,
    .say = say,
    .end = end,
    .fail = hn_part_fail,
    .drop = free,
    .whole = whole,
};

const hn_voice hn_voice_chat_count = { .name = "openai.chat.count", .parse = parse_count, .found = found };
