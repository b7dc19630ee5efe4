/* Paths of the server: which methods they have, which need no key, who answers. */
#include "serve/job.h"

#include <stdlib.h>

/* Paths that no voice speaks for. */
static const struct {
    const char *path, *methods;
    bool public; /* needs no key */
} own[] = {
    { "/", "GET", true },
    { "/health", "GET", true },
    { "/v1/health", "GET", true },
    { "/readyz", "GET", true },
    { "/livez", "GET", true },
    { "/v1/models", "GET", false },
    { "/models", "GET", false },
    { "/props", "GET", false },
    { "/slots", "GET", false },
    { "/metrics", "GET", false },
    { "/lora-adapters", "GET, POST", false },
    { "/v1/load_lora_adapter", "POST", false },
    { "/v1/unload_lora_adapter", "POST", false },
    { "/models/load", "POST", false },
    { "/models/unload", "POST", false },
    { "/api/tags", "GET", false },
    { "/api/ps", "GET", false },
    { "/api/version", "GET", false },
    { "/api/show", "POST", false },
};

static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static const char *methods_of(void *arg, const char *path)
{
    const hn_server *s = arg;
    const char *spoken;
    bool ollama;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i].path, path) == 0 && (s->p.ollama || !begins(path, "/api/"))) return own[i].methods;
    for (size_t i = 0; hn_voice_route(i, &spoken, &ollama); i++)
        if (strcmp(spoken, path) == 0 && (s->p.ollama || !ollama)) return "POST";
    if (begins(path, "/slots/")) return "POST";
    if ((begins(path, "/v1/responses/") || begins(path, "/responses/")) && strstr(path, "/cancel")) return "POST";
    return begins(path, "/v1/models/") || begins(path, "/models/") ? "GET" : NULL;
}

static bool is_public(const char *method, const char *path)
{
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i].path, path) == 0) return own[i].public && strcmp(method, "POST") != 0;
    return false;
}

const char *hn_serve_route_name(const char *path)
{
    const char *spoken;
    bool ollama;
    for (size_t i = 0; hn_voice_route(i, &spoken, &ollama); i++)
        if (strcmp(spoken, path) == 0) return spoken;
    return "other";
}

void hn_serve_refuse(hn_server *s, hn_exchange *x, const hn_refusal *r)
{
    char seconds[24];
    hn_bytes o = { 0 };
    if (r->status == 429) hn_serve_load(s, x);
    if (r->retry_after) {
        snprintf(seconds, sizeof seconds, "%d", r->retry_after);
        hn_exchange_set_header(x, "retry-after", seconds);
    }
    /* what would only cost the same again is not to be tried again */
    if (r->status == 500 || r->status == 501 || r->status == 504) hn_exchange_set_header(x, "x-should-retry", "false");
    if (hn_refusal_body(hn_exchange_path(x), r, hn_exchange_id(x), &o) && hn_bytes_ok(&o))
        hn_exchange_reply(x, r->status, "application/json", o.p, o.n);
    else hn_exchange_refuse(x, r->status, r->code, r->message);
    hn_bytes_free(&o);
}

void hn_serve_tell(hn_server *s, hn_exchange *x, const char *route, int status, const char *code, const char *message)
{
    hn_refusal r;
    hn_refuse(&r, status, code, NULL, "%s", message);
    hn_serve_refuse(s, x, &r);
    hn_tally_answer(s->tally, route, status);
}

void hn_serve_json(hn_server *s, hn_exchange *x, const char *route, hn_bytes *o)
{
    int status = hn_bytes_ok(o) ? 200 : 500;
    if (status == 200) hn_exchange_reply(x, 200, "application/json", o->p, o->n);
    else hn_exchange_refuse(x, 500, "out_of_memory", "no memory for the answer");
    hn_bytes_free(o);
    hn_tally_answer(s->tally, route, status);
}

static char *word_error(const char *path, const char *request_id, int status, const char *type, const char *code,
                        const char *message)
{
    hn_refusal r;
    hn_bytes o = { 0 };
    char *text = NULL;
    hn_refuse(&r, status, code, NULL, "%s", message);
    if (hn_refusal_body(path, &r, request_id, &o) && hn_bytes_ok(&o) && (text = malloc(o.n + 1))) {
        memcpy(text, o.p, o.n);
        text[o.n] = 0;
    }
    hn_bytes_free(&o);
    return text;
}

bool hn_refuse_draining(hn_refusal *r)
{
    hn_refuse(r, 503, "draining", NULL, "the server is shutting down; ask another, or this one later");
    r->retry_after = 5;
    return false;
}

bool hn_refuse_withdrawn(hn_refusal *r)
{
    return hn_refuse(r, 409, "model_unloaded", "model", "the model was told to be unloaded while this waited for it");
}

static void route(void *arg, hn_exchange *x)
{
    hn_server *s = arg;
    hn_refusal r;
    if (hn_serve_manage(s, x) || hn_serve_slots(s, x) || hn_serve_status(s, x)) return;

    const hn_voice *voice = hn_voice_find(hn_exchange_method(x), hn_exchange_path(x), s->p.ollama);
    if (!voice) {
        hn_refuse(&r, 404, NULL, NULL, "there is no %s here", hn_exchange_path(x));
        hn_serve_refuse(s, x, &r);
        hn_tally_answer(s->tally, "other", 404);
    } else if (atomic_load(&s->state) != HN_SERVER_READY) {
        if (atomic_load(&s->state) == HN_SERVER_DRAINING) {
            hn_refuse_draining(&r);
        } else {
            hn_refuse(&r, 503, "loading", NULL, "the model is being loaded; try again");
            r.retry_after = 1;
        }
        hn_tally_add(s->tally, HN_COUNT_REJECTED_DRAIN, 1);
        hn_serve_refuse(s, x, &r);
        hn_tally_answer(s->tally, hn_serve_route_name(hn_exchange_path(x)), 503);
    } else {
        hn_job_begin(s, x, voice);
    }
}

static void answered(void *arg, const char *path, int status)
{
    hn_server *s = arg;
    hn_tally_answer(s->tally, hn_serve_route_name(path), status);
}

void hn_serve_routes(hn_server *s, hn_http_params *p)
{
    p->answered = answered;
    p->handler = route;
    p->arg = s;
    p->is_public = is_public;
    p->methods = methods_of;
}

void hn_serve_word_errors(hn_server *s) { hn_http_set_error_fn(s->http, word_error); }
