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
        hn_serve_tell(s, x, route, 400, "invalid_json", err.message);
        return NULL;
    }
    const char *name = hn_json_text_of(o, "model");
    if (!*name) name = hn_json_text_of(o, "name");
    if (!*name) {
        hn_serve_tell(s, x, route, 400, "missing_field", "model is missing; expected the name of one");
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
    if (!o) {
        hn_serve_tell(s, x, route, 500, "out_of_memory", "no memory for this request");
        return true;
    }
    *o = (order){ .server = s, .x = x, .book = b, .unload = unload, .task = { .fn = run_order, .arg = o } };
    hn_exchange_on_gone(x, order_gone, o);
    hn_crew_do(s->loader, &o->task);
    return true;
}

/* ---- ollama's questions ----------------------------------------------------------------------------------------- */

/* RFC 3339 of a time in seconds. */
static void time_member(hn_bytes *o, const char *name, int64_t seconds)
{
    time_t t = (time_t)seconds;
    struct tm tm;
    char text[40] = "";
    if (gmtime_r(&t, &tm)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
    hn_bytes_text_member(o, name, text);
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
    hn_bytes_text_member(o, "family", arch);
    hn_bytes_text(o, ",\"families\":[");
    if (*arch) hn_bytes_json_text(o, arch);
    hn_bytes_text(o, "]");
    hn_bytes_text_member(o, "parameter_size", size);
    hn_bytes_text_member(o, "quantization_level", loaded ? b->info.type : "");
    hn_bytes_text(o, "}");
}

static void describe(hn_bytes *o, hn_book *b, bool running)
{
    bool loaded = hn_shelf_try(b);
    if (loaded || !running) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "{");
        hn_bytes_text_member(o, "name", b->name);
        hn_bytes_text_member(o, "model", b->name);
        time_member(o, "modified_at", b->created);
        hn_bytes_int_member(o, "size", (int64_t)b->file_size);
        if (loaded && *b->identity) hn_bytes_text_member(o, "digest", b->identity);
        details(o, b, loaded);
        if (running) {
            time_member(o, "expires_at", 253402300799); /* never by itself */
            hn_bytes_int_member(o, "size_vram", 0);
            hn_bytes_int_member(o, "context_length", b->n_ctx);
        }
        hn_bytes_text(o, "}");
    }
    if (loaded) hn_shelf_give(b);
}

static bool list(hn_server *s, hn_exchange *x, bool running)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{\"models\":[");
    for (size_t i = 0; i < hn_shelf_count(s->shelf); i++) describe(&o, hn_shelf_at(s->shelf, i), running);
    hn_bytes_text(&o, "]}");
    hn_serve_json(s, x, running ? "/api/ps" : "/api/tags", &o);
    return true;
}

static bool version(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{");
    hn_bytes_text_member(&o, "version", s->p.ollama_version ? s->p.ollama_version : hone_version());
    hn_bytes_text(&o, "}");
    hn_serve_json(s, x, "/api/version", &o);
    return true;
}

/* What a model can do, as far as its file tells. */
static void capabilities(hn_bytes *o, const hn_book *b)
{
    hn_bytes_text(o, ",\"capabilities\":[");
    bool causal = b->info.causal, fim = hone_token_fim(b->model, HONE_FIM_MIDDLE) >= 0;
    if (causal) hn_bytes_text(o, "\"completion\"");
    if (hn_book_template_names(b, "tools")) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "\"tools\"");
    }
    if (hn_book_template_names(b, "enable_thinking")) {
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
    if (!hn_shelf_try(b)) {
        hn_serve_tell(s, x, "/api/show", 503, "loading", "the model is not loaded; POST /models/load");
        return true;
    }
    hone_chat_template(b->model, false, &template, NULL);
    hn_bytes_text(&o, "{\"template\":");
    hn_bytes_json(&o, template.ptr ? template.ptr : "", template.len);
    details(&o, b, true);
    hn_bytes_text(&o, ",\"model_info\":{");
    hn_bytes_text_member(&o, "general.architecture", b->info.arch);
    hn_bytes_int_member(&o, "general.parameter_count", (int64_t)b->info.n_params);
    hn_bytes_comma(&o);
    hn_bytes_printf(&o, "\"%s.context_length\":%d,\"%s.embedding_length\":%d,\"%s.block_count\":%d}", b->info.arch,
                    b->info.n_ctx_train, b->info.arch, b->info.n_embd, b->info.arch, b->info.n_layer);
    capabilities(&o, b);
    time_member(&o, "modified_at", b->created);
    hn_bytes_text(&o, "}");
    hn_shelf_give(b);
    hn_serve_json(s, x, "/api/show", &o);
    return true;
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
