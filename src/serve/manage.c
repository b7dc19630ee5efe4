/* What a server is told about its models: load one, unload one; and what ollama's clients ask about them. Waiting is
 * done on the loader's thread. */
#include "base/json_tree.h"
#include "serve/job.h"

#include <stdlib.h>
#include <time.h>

/* ---- loading ---------------------------------------------------------------------------------------------------- */

typedef struct order {
    hn_task task;
    hn_server *server;
    hn_exchange *x;
    hn_book *book;
    bool unload, ok, gone;
    hn_refusal why;
} order;

static void tell_order(void *arg)
{
    order *o = arg;
    const char *route = o->unload ? "/models/unload" : "/models/load";
    if (o->gone) {
        hn_exchange_end(o->x, false);
    } else if (o->ok) {
        hn_exchange_reply(o->x, 200, "application/json", "{\"success\":true}", 16);
    } else {
        hn_serve_refuse(o->server, o->x, &o->why);
    }
    if (!o->gone) hn_tally_answer(o->server->tally, route, o->ok ? 200 : o->why.status);
    free(o);
}

static void run_order(void *arg)
{
    order *o = arg;
    hn_server *s = o->server; /* o is gone as soon as the event thread has it */
    if (o->unload) {
        o->ok = hn_shelf_unload(o->book, &o->why);
    } else if ((o->ok = hn_shelf_take(o->book, NULL, &o->why))) {
        hn_shelf_give(o->book);
    }
    hn_serve_back(s, &o->task, tell_order, o);
    hn_serve_wake(s);
}

static void order_gone(void *arg)
{
    order *o = arg;
    o->gone = true;
}

static bool refuse(hn_server *s, hn_exchange *x, const char *route, int status, const char *code, const char *message)
{
    hn_refusal r;
    hn_refuse(&r, status, code, NULL, "%s", message);
    hn_serve_refuse(s, x, &r);
    hn_tally_answer(s->tally, route, status);
    return true;
}

/* The model that a body {"model": NAME} names; NULL: the answer was sent. */
static hn_book *named_book(hn_server *s, hn_exchange *x, const char *route)
{
    const hn_json_rules rules = { .max_depth = 8, .flags = HN_JSON_UNIQUE, .fault = HONE_E_ARG };
    hone_str body = hn_exchange_body(x);
    hone_error err;
    hn_refusal r;
    hn_book *b = NULL;
    json_t *o = NULL;
    int32_t adapter;
    if (hn_json_tree(&o, body.ptr ? body.ptr : "", body.len, &rules, "body", &err) != HONE_OK) {
        refuse(s, x, route, 400, "invalid_json", err.message);
        return NULL;
    }
    const char *name = hn_json_text_of(o, "model");
    if (!*name) name = hn_json_text_of(o, "name");
    if (!*name) {
        refuse(s, x, route, 400, "missing_field", "model is missing; expected the name of one");
    } else if (!hn_shelf_find(s->shelf, name, &b, &adapter, &r)) {
        hn_serve_refuse(s, x, &r);
        hn_tally_answer(s->tally, route, r.status);
        b = NULL;
    }
    json_decref(o);
    return b;
}

static bool give_order(hn_server *s, hn_exchange *x, bool unload)
{
    const char *route = unload ? "/models/unload" : "/models/load";
    hn_book *b = named_book(s, x, route);
    if (!b) return true;
    order *o = calloc(1, sizeof *o);
    if (!o) return refuse(s, x, route, 500, "out_of_memory", "no memory for this request");
    *o = (order){ .server = s, .x = x, .book = b, .unload = unload, .task = { .fn = run_order, .arg = o } };
    hn_exchange_on_gone(x, order_gone, o);
    hn_crew_do(s->loader, &o->task);
    return true;
}

/* ---- ollama's questions ----------------------------------------------------------------------------------------- */

static void text_member(hn_bytes *o, const char *name, const char *value)
{
    hn_bytes_comma(o);
    hn_bytes_json_text(o, name);
    hn_bytes_text(o, ":");
    hn_bytes_json_text(o, value);
}

static void int_member(hn_bytes *o, const char *name, int64_t value)
{
    hn_bytes_comma(o);
    hn_bytes_json_text(o, name);
    hn_bytes_text(o, ":");
    hn_bytes_int(o, value);
}

/* RFC 3339 of a time in seconds. */
static void time_member(hn_bytes *o, const char *name, int64_t seconds)
{
    time_t t = (time_t)seconds;
    struct tm tm;
    char text[40] = "";
    if (gmtime_r(&t, &tm)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    text_member(o, name, text);
}

/* b is taken, or not loaded: then what the file's name does not tell is "". */
static void details(hn_bytes *o, const hn_book *b, bool loaded)
{
    char size[32] = "";
    const char *arch = loaded ? b->info.arch : "";
    double n = loaded ? (double)b->info.n_params : 0;
    if (n >= 1e9) snprintf(size, sizeof size, "%.1fB", n / 1e9);
    else if (n > 0) snprintf(size, sizeof size, "%.1fM", n / 1e6);
    hn_bytes_comma(o);
    hn_bytes_text(o, "\"details\":{\"parent_model\":\"\",\"format\":\"gguf\"");
    text_member(o, "family", arch);
    hn_bytes_text(o, ",\"families\":[");
    if (*arch) hn_bytes_json_text(o, arch);
    hn_bytes_text(o, "]");
    text_member(o, "parameter_size", size);
    text_member(o, "quantization_level", loaded ? b->info.type : "");
    hn_bytes_text(o, "}");
}

static void describe(hn_bytes *o, hn_book *b, bool running)
{
    bool loaded = hn_shelf_try(b);
    if (loaded || !running) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "{");
        text_member(o, "name", b->name);
        text_member(o, "model", b->name);
        time_member(o, "modified_at", b->created);
        int_member(o, "size", (int64_t)b->file_size);
        if (loaded && *b->identity) text_member(o, "digest", b->identity);
        details(o, b, loaded);
        if (running) {
            time_member(o, "expires_at", 253402300799); /* never by itself */
            int_member(o, "size_vram", 0);
            int_member(o, "context_length", b->n_ctx);
        }
        hn_bytes_text(o, "}");
    }
    if (loaded) hn_shelf_give(b);
}

static bool send_json(hn_server *s, hn_exchange *x, const char *route, hn_bytes *o)
{
    int status = hn_bytes_ok(o) ? 200 : 500;
    if (status == 200) hn_exchange_reply(x, 200, "application/json", o->p, o->n);
    else hn_exchange_refuse(x, 500, "out_of_memory", "no memory for the answer");
    hn_bytes_free(o);
    hn_tally_answer(s->tally, route, status);
    return true;
}

static bool list(hn_server *s, hn_exchange *x, bool running)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{\"models\":[");
    for (size_t i = 0; i < hn_shelf_count(s->shelf); i++) describe(&o, hn_shelf_at(s->shelf, i), running);
    hn_bytes_text(&o, "]}");
    return send_json(s, x, running ? "/api/ps" : "/api/tags", &o);
}

static bool version(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{");
    text_member(&o, "version", s->p.ollama_version ? s->p.ollama_version : hone_version());
    hn_bytes_text(&o, "}");
    return send_json(s, x, "/api/version", &o);
}

static bool holds(const hone_str *text, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; text->ptr && i + n <= text->len; i++)
        if (memcmp(text->ptr + i, word, n) == 0) return true;
    return false;
}

/* What a model can do, as far as its file tells. */
static void capabilities(hn_bytes *o, const hn_book *b, const hone_str *template)
{
    hn_bytes_text(o, ",\"capabilities\":[");
    bool causal = b->info.causal, fim = hone_token_fim(b->model, HONE_FIM_MIDDLE) >= 0;
    if (causal) hn_bytes_text(o, "\"completion\"");
    if (holds(template, "tools")) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "\"tools\"");
    }
    if (holds(template, "enable_thinking")) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "\"thinking\"");
    }
    if (fim) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "\"insert\"");
    }
    if (hone_embed_width(b->model, b->shelf_pooling, NULL)) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "\"embedding\"");
    }
    hn_bytes_text(o, "]");
}

static bool show(hn_server *s, hn_exchange *x)
{
    hone_str template = { 0 };
    hn_bytes o = { 0 };
    hn_book *b = named_book(s, x, "/api/show");
    if (!b) return true;
    if (!hn_shelf_try(b))
        return refuse(s, x, "/api/show", 503, "loading", "the model is not loaded; POST /models/load");
    hone_chat_template(b->model, false, &template, NULL);
    hn_bytes_text(&o, "{\"template\":");
    hn_bytes_json(&o, template.ptr ? template.ptr : "", template.len);
    details(&o, b, true);
    hn_bytes_text(&o, ",\"model_info\":{");
    text_member(&o, "general.architecture", b->info.arch);
    int_member(&o, "general.parameter_count", (int64_t)b->info.n_params);
    hn_bytes_comma(&o);
    hn_bytes_printf(&o, "\"%s.context_length\":%d,\"%s.embedding_length\":%d,\"%s.block_count\":%d}", b->info.arch,
                    b->info.n_ctx_train, b->info.arch, b->info.n_embd, b->info.arch, b->info.n_layer);
    capabilities(&o, b, &template);
    time_member(&o, "modified_at", b->created);
    hn_bytes_text(&o, "}");
    hn_shelf_give(b);
    return send_json(s, x, "/api/show", &o);
}

bool hn_serve_manage(hn_server *s, hn_exchange *x)
{
    const char *path = hn_exchange_path(x);
    if (strcmp(path, "/models/load") == 0) return give_order(s, x, false);
    if (strcmp(path, "/models/unload") == 0) return give_order(s, x, true);
    if (!s->p.ollama || strncmp(path, "/api/", 5) != 0) return false;
    if (strcmp(path, "/api/tags") == 0) return list(s, x, false);
    if (strcmp(path, "/api/ps") == 0) return list(s, x, true);
    if (strcmp(path, "/api/version") == 0) return version(s, x);
    return strcmp(path, "/api/show") == 0 && show(s, x);
}
