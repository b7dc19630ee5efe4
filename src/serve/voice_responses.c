/* The voice of /v1/responses and its input_tokens. One machine makes items of what is said; a stream shows its events,
 * a whole answer only what it comes to. Owns the shapes of this API; refuses to know its bodies (ask_responses.c). */
#include "serve/voice_responses.h"
#include "serve/voice_parts.h"

#include <stdlib.h>

/* ---- the machine ------------------------------------------------------------------------- */

typedef struct response_state {
    int64_t sequence;       /* of the next event */
    int32_t index;          /* of the item that is open, or comes next */
    hn_say_kind open;       /* TEXT, REASONING or CALL; END: none */
    hn_bytes text;          /* of the open item, escaped */
    hn_bytes logs;          /* entries of its log-probabilities */
    hn_bytes items;         /* those that are done, parted by commas */
    hn_bytes call_id, name; /* of the open call, escaped */
    bool silent;            /* no events */
    hn_why why;
} response_state;

static const char *const prefixes[] = { [HN_SAY_TEXT] = "msg_", [HN_SAY_REASONING] = "rs_", [HN_SAY_CALL] = "fc_" };

static void drop(void *state)
{
    response_state *st = state;
    if (!st) return;
    hn_bytes_free(&st->text);
    hn_bytes_free(&st->logs);
    hn_bytes_free(&st->items);
    hn_bytes_free(&st->call_id);
    hn_bytes_free(&st->name);
    free(st);
}

static bool all_ok(const response_state *st, const hn_bytes *o)
{
    return !(st->text.lost | st->logs.lost | st->items.lost | st->call_id.lost | st->name.lost | o->lost);
}

/* "msg_ID_INDEX" of the open item. */
static void item_id(hn_bytes *o, const response_state *st, const hn_head *h)
{
    hn_bytes_printf(o, "\"%s", prefixes[st->open]);
    hn_bytes_escaped(o, h->id, strlen(h->id));
    hn_bytes_printf(o, "_%d\"", st->index);
}

static void quoted(hn_bytes *o, const hn_bytes *escaped)
{
    hn_bytes_text(o, "\"");
    hn_bytes_add(o, escaped->p, escaped->n);
    hn_bytes_text(o, "\"");
}

/* The content part of the open item. done: with its text. */
static void part(hn_bytes *o, const response_state *st, bool done)
{
    bool message = st->open == HN_SAY_TEXT;
    hn_bytes_printf(o, "{\"type\":\"%s\",\"text\":", message ? "output_text" : "reasoning_text");
    quoted(o, done ? &st->text : &(hn_bytes){ 0 });
    if (message) {
        hn_bytes_text(o, ",\"annotations\":[],\"logprobs\":[");
        if (done) hn_bytes_add(o, st->logs.p, st->logs.n);
        hn_bytes_text(o, "]");
    }
    hn_bytes_text(o, "}");
}

/* The open item. status: "in_progress" is empty, others are as they came to be. */
static void item(hn_bytes *o, const response_state *st, const hn_head *h, const char *status)
{
    static const char *const types[] = {
        [HN_SAY_TEXT] = "message", [HN_SAY_REASONING] = "reasoning", [HN_SAY_CALL] = "function_call"
    };
    bool done = strcmp(status, "in_progress") != 0;
    hn_bytes_text(o, "{\"id\":");
    item_id(o, st, h);
    hn_bytes_printf(o, ",\"type\":\"%s\",\"status\":\"%s\"", types[st->open], status);
    if (st->open == HN_SAY_CALL) {
        hn_bytes_text(o, ",\"call_id\":");
        quoted(o, &st->call_id);
        hn_bytes_text(o, ",\"name\":");
        quoted(o, &st->name);
        hn_bytes_text(o, ",\"arguments\":");
        quoted(o, done ? &st->text : &(hn_bytes){ 0 });
    } else {
        hn_bytes_text(o, st->open == HN_SAY_TEXT ? ",\"role\":\"assistant\",\"content\":["
                                                 : ",\"summary\":[],\"content\":[");
        if (done) part(o, st, true);
        hn_bytes_text(o, "]");
    }
    hn_bytes_text(o, "}");
}

/* ---- events ------------------------------------------------------------------------------ */

/* Begins one; false: none is shown. */
static bool event(hn_bytes *o, response_state *st, const char *type)
{
    if (st->silent) return false;
    hn_bytes_printf(o, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%lld", type, type,
                    (long long)st->sequence++);
    return true;
}

static void event_end(hn_bytes *o) { hn_bytes_text(o, "}\n\n"); }

/* One of the open item; content: with the place of its part. */
static bool item_event(hn_bytes *o, response_state *st, const hn_head *h, const char *type, bool content)
{
    if (!event(o, st, type)) return false;
    hn_bytes_text(o, ",\"item_id\":");
    item_id(o, st, h);
    hn_bytes_printf(o, ",\"output_index\":%d", st->index);
    if (content) hn_bytes_text(o, ",\"content_index\":0");
    return true;
}

static void open_item(response_state *st, const hn_head *h, const hn_say *s, hn_bytes *o)
{
    st->open = s->kind;
    st->text.n = st->logs.n = st->call_id.n = st->name.n = 0;
    if (s->kind == HN_SAY_CALL) {
        hn_bytes_escaped(&st->call_id, s->call_id ? s->call_id : "", s->call_id ? strlen(s->call_id) : 0);
        hn_bytes_escaped(&st->name, s->name ? s->name : "", s->name ? strlen(s->name) : 0);
    }
    if (event(o, st, "response.output_item.added")) {
        hn_bytes_printf(o, ",\"output_index\":%d,\"item\":", st->index);
        item(o, st, h, "in_progress");
        event_end(o);
    }
    if (s->kind != HN_SAY_CALL && item_event(o, st, h, "response.content_part.added", true)) {
        hn_bytes_text(o, ",\"part\":");
        part(o, st, false);
        event_end(o);
    }
}

static void close_item(response_state *st, const hn_head *h, const char *status, hn_bytes *o)
{
    static const char *const done[] = { [HN_SAY_TEXT] = "response.output_text.done",
                                        [HN_SAY_REASONING] = "response.reasoning_text.done",
                                        [HN_SAY_CALL] = "response.function_call_arguments.done" };
    if (st->open == HN_SAY_END) return;
    bool call = st->open == HN_SAY_CALL;
    if (item_event(o, st, h, done[st->open], !call)) {
        hn_bytes_text(o, call ? ",\"arguments\":" : ",\"text\":");
        quoted(o, &st->text);
        if (call) {
            hn_bytes_text(o, ",\"name\":");
            quoted(o, &st->name);
        }
        if (st->open == HN_SAY_TEXT) {
            hn_bytes_text(o, ",\"logprobs\":[");
            hn_bytes_add(o, st->logs.p, st->logs.n);
            hn_bytes_text(o, "]");
        }
        event_end(o);
    }
    if (!call && item_event(o, st, h, "response.content_part.done", true)) {
        hn_bytes_text(o, ",\"part\":");
        part(o, st, true);
        event_end(o);
    }
    if (event(o, st, "response.output_item.done")) {
        hn_bytes_printf(o, ",\"output_index\":%d,\"item\":", st->index);
        item(o, st, h, status);
        event_end(o);
    }
    if (st->items.n) hn_bytes_text(&st->items, ",");
    item(&st->items, st, h, status);
    st->open = HN_SAY_END;
    st->index++;
}

/* s [n], which belong together: a fragment of the open item. */
static void fragment(const hn_ask *a, response_state *st, const hn_head *h, const hn_say *s, size_t n, hn_bytes *o)
{
    static const char *const deltas[] = { [HN_SAY_TEXT] = "response.output_text.delta",
                                          [HN_SAY_REASONING] = "response.reasoning_text.delta",
                                          [HN_SAY_ARGUMENTS] = "response.function_call_arguments.delta" };
    size_t text = st->text.n, logs = st->logs.n;
    for (size_t i = 0; i < n; i++) {
        hn_bytes_escaped(&st->text, s[i].text, s[i].len);
        if (s->kind != HN_SAY_TEXT || a->top_logprobs < 0 || !s[i].n_token) continue;
        if (st->logs.n) hn_bytes_text(&st->logs, ",");
        hn_bytes entries = { 0 };
        hn_part_tokens(&entries, s[i].token, s[i].n_token, false, false);
        hn_bytes_add(&st->logs, entries.p, entries.n);
        st->logs.lost |= entries.lost;
        hn_bytes_free(&entries);
    }
    if (st->text.lost || st->logs.lost) return;
    if (!item_event(o, st, h, deltas[s->kind], s->kind != HN_SAY_ARGUMENTS)) return;
    hn_bytes_text(o, ",\"delta\":\"");
    if (st->text.n > text) hn_bytes_add(o, st->text.p + text, st->text.n - text);
    hn_bytes_text(o, "\"");
    if (s->kind == HN_SAY_TEXT) {
        if (logs && st->logs.n > logs) logs++; /* the comma */
        hn_bytes_text(o, ",\"logprobs\":[");
        if (st->logs.n > logs) hn_bytes_add(o, st->logs.p + logs, st->logs.n - logs);
        hn_bytes_text(o, "]");
    }
    if (a->timings_per_token && s[n - 1].usage) {
        hn_bytes_text(o, ",");
        hn_part_timings(o, s[n - 1].usage);
    }
    event_end(o);
}

/* ---- the answer -------------------------------------------------------------------------- */

/* The object; u NULL: it has only begun; r: it failed. */
static void response(hn_bytes *o, const hn_ask *a, const hn_head *h, const response_state *st, const hn_usage *u,
                     const hn_refusal *r)
{
    const hn_response_own *own = a->own;
    bool cut = u && (st->why == HN_WHY_LENGTH || st->why == HN_WHY_CONTEXT);
    hn_bytes_text(o, "{\"id\":\"resp_");
    hn_bytes_escaped(o, h->id, strlen(h->id));
    hn_bytes_printf(o, "\",\"object\":\"response\",\"created_at\":%lld,\"completed_at\":", (long long)h->created);
    if (u && !cut && !r) hn_bytes_printf(o, "%lld", (long long)(h->created + (int64_t)(u->total_ms / 1000)));
    else hn_bytes_text(o, "null");
    hn_part_text(o, "status", r ? "failed" : !u ? "in_progress" : cut ? "incomplete" : "completed");
    hn_bytes_text(o, ",\"error\":");
    if (r) {
        hn_bytes_text(o, "{\"code\":\"server_error\"");
        hn_part_text(o, "message", r->message);
        hn_bytes_text(o, "}");
    } else {
        hn_bytes_text(o, "null");
    }
    hn_bytes_text(o, ",\"incomplete_details\":");
    hn_bytes_text(o, cut && !r ? "{\"reason\":\"max_output_tokens\"}" : "null");
    hn_part_text(o, "model", h->model);
    hn_bytes_text(o, ",\"output\":[");
    hn_bytes_add(o, st->items.p, st->items.n);
    hn_bytes_text(o, "],");
    hn_bytes_text(o, own->repeated);
    hn_bytes_text(o, ",\"usage\":");
    if (u) {
        hn_bytes_printf(
            o,
            "{\"input_tokens\":%d,\"input_tokens_details\":{\"cached_tokens\":%d,\"cache_write_tokens\":0},"
            "\"output_tokens\":%d,\"output_tokens_details\":{\"reasoning_tokens\":%d},\"total_tokens\":%lld}",
            u->prompt, u->cached, u->completion, u->reasoning, (long long)u->prompt + u->completion);
        hn_bytes_text(o, ",");
        hn_part_timings(o, u);
        hn_bytes_text(o, ",");
        hn_part_hone(o, u);
    } else {
        hn_bytes_text(o, "null");
    }
    hn_bytes_text(o, "}");
}

static void response_event(hn_bytes *o, const hn_ask *a, const hn_head *h, response_state *st, const char *type,
                           const hn_usage *u, const hn_refusal *r)
{
    if (!event(o, st, type)) return;
    hn_bytes_text(o, ",\"response\":");
    response(o, a, h, st, u, r);
    if (u) { /* beside the response, too: as llama-server has it */
        hn_bytes_text(o, ",");
        hn_part_timings(o, u);
    }
    event_end(o);
}

/* How far the prompt has come, beside the response as llama-server has it. */
static void progress_event(hn_bytes *o, const hn_ask *a, const hn_head *h, response_state *st, const hn_say *s)
{
    if (!event(o, st, "response.in_progress")) return;
    hn_bytes_text(o, ",\"response\":");
    response(o, a, h, st, NULL, NULL);
    hn_bytes_text(o, ",");
    hn_part_progress(o, s);
    if (a->timings_per_token && s->usage) {
        hn_bytes_text(o, ",");
        hn_part_timings(o, s->usage);
    }
    event_end(o);
}

static response_state *state_new(bool silent)
{
    response_state *st = calloc(1, sizeof *st);
    if (!st) return NULL;
    st->open = HN_SAY_END;
    st->why = HN_WHY_LENGTH;
    st->silent = silent;
    return st;
}

static bool begin(const hn_ask *a, const hn_head *h, hn_bytes *o, void **state)
{
    response_state *st = state_new(false);
    *state = st;
    if (!st) return false;
    response_event(o, a, h, st, "response.created", NULL, NULL);
    response_event(o, a, h, st, "response.in_progress", NULL, NULL);
    return hn_bytes_ok(o);
}

static bool say(const hn_ask *a, const hn_head *h, void *state, const hn_say *s, size_t n, hn_bytes *o)
{
    response_state *st = state;
    for (size_t i = 0, k; i < n; i += k) {
        k = hn_say_run(s + i, n - i);
        switch (s[i].kind) {
        case HN_SAY_TEXT:
        case HN_SAY_REASONING:
            if (st->open != s[i].kind) {
                close_item(st, h, "completed", o);
                open_item(st, h, s + i, o);
            }
            fragment(a, st, h, s + i, k, o);
            break;
        case HN_SAY_CALL:
            close_item(st, h, "completed", o);
            open_item(st, h, s + i, o);
            break;
        case HN_SAY_ARGUMENTS:
            if (st->open == HN_SAY_CALL) fragment(a, st, h, s + i, k, o);
            break;
        case HN_SAY_CALL_END: close_item(st, h, "completed", o); break;
        case HN_SAY_END:
            st->why = s[i].why;
            close_item(st, h, st->why == HN_WHY_LENGTH || st->why == HN_WHY_CONTEXT ? "incomplete" : "completed", o);
            break;
        case HN_SAY_ALIVE:
            if (!st->silent) hn_part_alive(o);
            break;
        case HN_SAY_PROGRESS: progress_event(o, a, h, st, s + i); break;
        case HN_SAY_ECHO: break;
        }
    }
    return all_ok(st, o);
}

static bool end(const hn_ask *a, const hn_head *h, void *state, const hn_usage *u, hn_bytes *o)
{
    response_state *st = state;
    bool cut = st->why == HN_WHY_LENGTH || st->why == HN_WHY_CONTEXT;
    close_item(st, h, "incomplete", o);
    response_event(o, a, h, st, cut ? "response.incomplete" : "response.completed", u, NULL);
    return all_ok(st, o);
}

static bool fail(const hn_ask *a, const hn_head *h, void *state, const hn_refusal *r, hn_bytes *o)
{
    response_state *st = state;
    close_item(st, h, "incomplete", o);
    response_event(o, a, h, st, "response.failed", NULL, r);
    return all_ok(st, o);
}

static bool whole(const hn_ask *a, const hn_head *h, const hn_say *s, size_t n, const hn_usage *u, hn_bytes *o)
{
    response_state *st = state_new(true);
    bool ok = st && say(a, h, st, s, n, o);
    if (ok) {
        close_item(st, h, "incomplete", o);
        response(o, a, h, st, u, NULL);
        ok = all_ok(st, o);
    }
    drop(st);
    return ok;
}

static bool found(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_printf(o, "{\"object\":\"response.input_tokens\",\"input_tokens\":%d}", f->n_tokens);
    return hn_bytes_ok(o);
}

static bool parse(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return hn_response_parse(a, HN_ASK_CHAT, body, len, l, r);
}

static bool parse_count(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return hn_response_parse(a, HN_ASK_COUNT, body, len, l, r);
}

const hn_voice hn_voice_responses = {
    .name = "openai.responses",
    .stream_type = hn_sse,
    .parse = parse,
    .begin = begin,
    .say = say,
    .end = end,
    .fail = fail,
    .drop = drop,
    .whole = whole,
};

const hn_voice hn_voice_responses_count = { .name = "openai.responses.count", .parse = parse_count, .found = found };
