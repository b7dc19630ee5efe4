/* Routes, asks and refusals. Owns which voice a path has, and how each API words an error; refuses to know fields. */
#include "serve/ask.h"
#include "serve/voice_parts.h"

#include <stdarg.h>

/* ---- refusals ---------------------------------------------------------------------------- */

typedef struct hn_error_type {
    int status;
    const char *type, *anthropic;
} hn_error_type;

static const hn_error_type error_types[] = {
    { 400, "invalid_request_error", "invalid_request_error" },
    { 401, "authentication_error", "authentication_error" },
    { 403, "permission_error", "permission_error" },
    { 404, "not_found_error", "not_found_error" },
    { 405, "not_found_error", "not_found_error" },
    { 408, "timeout_error", "timeout_error" },
    { 409, "invalid_request_error", "invalid_request_error" },
    { 413, "invalid_request_error", "request_too_large" },
    { 415, "not_found_error", "not_found_error" },
    { 429, "rate_limit_error", "rate_limit_error" },
    { 431, "invalid_request_error", "invalid_request_error" },
    { 501, "not_supported_error", "api_error" },
    { 503, "unavailable_error", "overloaded_error" },
    { 504, "timeout_error", "timeout_error" },
};

static const hn_error_type *type_of(int status)
{
    static const hn_error_type other = { 500, "server_error", "api_error" },
                               client = { 400, "invalid_request_error", "invalid_request_error" };
    for (size_t i = 0; i < sizeof error_types / sizeof *error_types; i++)
        if (error_types[i].status == status) return error_types + i;
    return status >= 400 && status < 500 ? &client : &other;
}

bool hn_refuse(hn_refusal *r, int status, const char *code, const char *param, const char *fmt, ...)
{
    char message[sizeof r->message];
    va_list ap;
    *r = (hn_refusal){ .status = status, .type = type_of(status)->type, .code = code };
    va_start(ap, fmt);
    if (vsnprintf(message, sizeof message, fmt, ap) < 0) *message = 0;
    va_end(ap);
    for (char *p = message; *p; p++) /* values were escaped where they were shown: what is left are lines */
        if ((unsigned char)*p < 0x20 || *p == 0x7F) *p = ' ';
    snprintf(r->message, sizeof r->message, "%s", message);
    if (param) snprintf(r->param, sizeof r->param, "%s", param);
    return false;
}

static bool is_edge(char c) { return !c || strchr(" '\"(=[{<`,", c); }

void hn_hide_folders(char *text)
{
    char *to = text;
    for (char *from = text; *from;) {
        if (*from != '/' || !is_edge(from == text ? ' ' : from[-1])) {
            *to++ = *from++;
            continue;
        }
        char *last = from; /* the last slash of this path */
        for (char *p = from; *p && !strchr("'\")", *p) && strncmp(p, ": ", 2) && strncmp(p, ", ", 2); p++) {
            if (*p == '/' && p > from && is_edge(p[-1])) break; /* another */
            if (*p == '/') last = p;
        }
        from = last + 1;
    }
    *to = 0;
}

void hn_hide_folder_of(char *text, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + 1 : 0;
    if (n < 2) return;
    for (char *at = text; *at;) {
        if (strncmp(at, path, n) == 0 && is_edge(at == text ? ' ' : at[-1])) memmove(at, at + n, strlen(at + n) + 1);
        else at++;
    }
}

bool hn_refuse_context(hn_refusal *r, int32_t n_prompt, int32_t n_ctx)
{
    hn_refuse(r, 400, "context_length_exceeded", NULL,
              "the request has %d tokens and exceeds the available context size of %d tokens "
              "(context_length_exceeded); expected a shorter one, or hone serve -c N",
              n_prompt, n_ctx);
    r->n_prompt_tokens = n_prompt;
    r->n_ctx = n_ctx;
    return false;
}

/* A route of llama-server's, whose clients look for its own type where a prompt does not fit. */
static bool is_native(const char *path)
{
    const hn_voice *v = hn_voice_find("POST", path, false);
    return v && strncmp(v->name, "llama.", 6) == 0;
}

bool hn_refusal_body(const char *path, const hn_refusal *r, const char *request_id, hn_bytes *o)
{
    if (strncmp(path, "/v1/messages", 12) == 0) {
        char words[sizeof r->message + 80];
        snprintf(words, sizeof words, "%s", r->message);
        if (r->n_ctx > 0) /* by these words clients of that API know that they have to shorten a conversation */
            snprintf(words, sizeof words, "prompt is too long: %d tokens > %d maximum; %s", r->n_prompt_tokens,
                     r->n_ctx, r->message);
        hn_bytes_text(o, "{\"type\":\"error\",\"error\":{");
        hn_part_text(o, "type", type_of(r->status)->anthropic);
        hn_part_text(o, "message", words);
        hn_bytes_text(o, "}");
        hn_part_text(o, "request_id", request_id);
        hn_bytes_text(o, "}");
    } else if (strncmp(path, "/api/", 5) == 0) {
        hn_bytes_text(o, "{");
        hn_part_text(o, "error", r->message);
        hn_bytes_text(o, "}");
    } else {
        hn_refusal own = *r;
        if (r->n_ctx > 0 && is_native(path)) own.type = "exceed_context_size_error";
        hn_bytes_text(o, "{");
        hn_part_error(o, &own);
        hn_bytes_text(o, "}");
    }
    return hn_bytes_ok(o);
}

/* ---- routes ------------------------------------------------------------------------------ */

static const struct {
    const char *path;
    const hn_voice *voice;
    bool ollama; /* where that API is spoken alone */
} routes[] = {
    { "/v1/chat/completions", &hn_voice_chat, false },
    { "/chat/completions", &hn_voice_chat, false },
    { "/v1/chat/completions/input_tokens", &hn_voice_chat_count, false },
    { "/chat/completions/input_tokens", &hn_voice_chat_count, false },
    { "/v1/completions", &hn_voice_text, false },
    { "/completion", &hn_voice_native, false },
    { "/completions", &hn_voice_native, false },
    { "/infill", &hn_voice_infill, false },
    { "/tokenize", &hn_voice_tokenize, false },
    { "/detokenize", &hn_voice_detokenize, false },
    { "/apply-template", &hn_voice_template, false },
    { "/v1/messages", &hn_voice_messages, false },
    { "/v1/messages/count_tokens", &hn_voice_messages_count, false },
    { "/v1/responses", &hn_voice_responses, false },
    { "/responses", &hn_voice_responses, false },
    { "/v1/responses/input_tokens", &hn_voice_responses_count, false },
    { "/responses/input_tokens", &hn_voice_responses_count, false },
    { "/v1/embeddings", &hn_voice_embed, false },
    { "/embeddings", &hn_voice_native_embed, false },
    { "/embedding", &hn_voice_native_embed, false },
    { "/v1/rerank", &hn_voice_rerank, false },
    { "/rerank", &hn_voice_rerank, false },
    { "/v1/reranking", &hn_voice_rerank, false },
    { "/reranking", &hn_voice_rerank, false },
    { "/api/chat", &hn_voice_ollama_chat, true },
    { "/api/generate", &hn_voice_ollama_generate, true },
    { "/api/embed", &hn_voice_ollama_embed, true },
    { "/api/embeddings", &hn_voice_ollama_embedding, true },
};
enum { N_ROUTES = sizeof routes / sizeof *routes };

bool hn_voice_route(size_t i, const char **path, bool *ollama)
{
    *path = i < N_ROUTES ? routes[i].path : NULL;
    *ollama = i < N_ROUTES && routes[i].ollama;
    return i < N_ROUTES;
}

const hn_voice *hn_voice_find(const char *method, const char *path, bool ollama)
{
    if (strcmp(method, "POST") != 0) return NULL;
    for (size_t i = 0; i < N_ROUTES; i++)
        if (strcmp(routes[i].path, path) == 0 && (ollama || !routes[i].ollama)) return routes[i].voice;
    return NULL;
}

/* ---- asks -------------------------------------------------------------------------------- */

bool hn_ask_read(hn_ask *a, const hn_voice *v, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    *a = (hn_ask){ .arena = hn_arena_new(), .voice = v };
    if (!a->arena) return hn_refuse(r, 500, NULL, NULL, "out of memory");
    if (v->parse(a, body, len, l, r)) return true;
    hn_ask_free(a);
    return false;
}

void hn_ask_free(hn_ask *a)
{
    hn_arena_free(a->arena);
    *a = (hn_ask){ 0 };
}
