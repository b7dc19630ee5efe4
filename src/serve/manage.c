/* What a server is told about its models: load one, unload one; and what ollama's clients ask about them. Waiting for
 * room is done on the loader's thread, all else on the clerk's. */
#include "serve/job.h"
#include "serve/orders.h"

#include <stdlib.h>
#include <time.h>

/* True: the answer was sent. */
static bool refuse(hn_server *s, hn_exchange *x, const char *route, const hn_refusal *r)
{
    hn_serve_refuse(s, x, r);
    hn_tally_answer(s->tally, route, r->status);
    return true;
}

static bool no_memory(hn_refusal *r) { return hn_refuse(r, 500, "out_of_memory", NULL, "no memory for this request"); }

/* ---- loading ---------------------------------------------------------------------------------------------------- */

typedef struct load_order {
    hn_order order;
    hn_book *book;
    bool unload;
} load_order;

static void write_success(hn_order *o, hn_bytes *b) { hn_bytes_text(b, "{\"success\":true}"); }
static void drop_load(hn_order *o) { free(o); }

/* On the loader. */
static void wait_for_load(void *arg)
{
    load_order *o = arg;
    if (o->unload) o->order.ok = hn_shelf_unload(o->book, NULL, &o->order.why);
    else if (!atomic_load(&o->order.wanted)) hn_refuse_draining(&o->order.why); /* orders.c has the words */
    else if ((o->order.ok = hn_shelf_take(o->book, &o->order.wanted, true, &o->order.why))) hn_shelf_give(o->book);
    hn_order_back(&o->order);
}

static void run_load(void *arg)
{
    load_order *o = arg;
    bool loading = false;
    if (o->unload) {
        o->order.ok = hn_shelf_unload(o->book, &loading, &o->order.why);
    } else if ((o->order.ok = hn_shelf_try(o->book))) { /* it is there */
        hn_shelf_touch(o->book);
        hn_shelf_looked(o->book);
    } else {
        loading = true;
    }
    if (loading) hn_order_on_crew(&o->order, o->order.server->loader, wait_for_load);
    else hn_order_back(&o->order);
}

/* Those whose load is under way are told when it is there. */
void hn_serve_withdraw(hn_server *s, hn_book *b)
{
    bool now = hn_book_look(b, NULL) != HN_BOOK_LOADING;
    for (hn_order *o = s->orders; o; o = o->next)
        if (o->drop == drop_load && !((load_order *)o)->unload && ((load_order *)o)->book == b)
            hn_order_withdraw(o, now);
    if (now) hn_job_withdraw(s, b);
    hn_shelf_stir(s->shelf);
}

/* The model that a body {"model": NAME} names; NULL: *r. */
static hn_book *named_book(hn_server *s, hn_exchange *x, const hn_field *known, hn_refusal *r)
{
    hn_book *b = NULL;
    const char *adapter, *name;
    json_t *o;
    bool ok = hn_order_body(x, false, &o, r) && hn_order_members(s, x, o, known, "", r) &&
              hn_order_text(o,
                            hn_field_get(o, "model")  ? "model"
                            : hn_field_get(o, "name") ? "name"
                                                      : "model",
                            "the name of one", &name, r) &&
              hn_shelf_find(s->shelf, name, &b, &adapter, r);
    json_decref(o);
    return ok ? b : NULL;
}

static bool give_load(hn_server *s, hn_exchange *x, bool unload)
{
    static const hn_field known[] = { { .name = "model", .kind = HN_FIELD_LATER },
                                      { .name = "name", .kind = HN_FIELD_LATER },
                                      { .name = NULL } };
    const char *route = unload ? "/models/unload" : "/models/load";
    hn_refusal r;
    if (atomic_load(&s->state) == HN_SERVER_DRAINING) {
        hn_refuse_draining(&r);
        return refuse(s, x, route, &r);
    }
    hn_book *b = named_book(s, x, known, &r);
    if (!b) return refuse(s, x, route, &r);
    load_order *o = calloc(1, sizeof *o);
    if (!o) {
        no_memory(&r);
        return refuse(s, x, route, &r);
    }
    o->order = (hn_order){ .route = route, .write = write_success, .drop = drop_load };
    o->book = b;
    o->unload = unload;
    if (unload) hn_serve_withdraw(s, b);
    hn_order_begin(&o->order, s, x);
    hn_order_on_crew(&o->order, s->clerk, run_load);
    return true;
}

/* ---- adapters --------------------------------------------------------------------------------------------------- */

typedef struct lora_order {
    hn_order order;
    char *name, *path; /* path NULL: it is to be unloaded */
    bool force;        /* false: not while it is used */
    bool taken;        /* its model, which was loaded for it */
    int32_t id;
} lora_order;

static void drop_lora(hn_order *order)
{
    lora_order *o = (lora_order *)order;
    free(o->name);
    free(o->path);
    free(o);
}

static void write_lora(hn_order *order, hn_bytes *b)
{
    const lora_order *o = (const lora_order *)order;
    hn_bytes_text(b, "{\"success\":true");
    if (o->path) hn_bytes_int_member(b, "id", o->id);
    hn_bytes_text_member(b, "name", o->name);
    hn_bytes_text(b, "}");
}

/* On the desk, whose next step lets go of what slots hold of closed adapters, also where nothing else is to be done. */
static void lora_dropped(void *arg)
{
    lora_order *o = arg;
    hn_order_back(&o->order);
}

/* Nobody uses the adapter any more. */
static void lora_unloaded(void *arg)
{
    lora_order *o = arg;
    o->order.ok = true;
    hn_order_on_desk(&o->order, lora_dropped);
}

static void wait_for_lora(void *arg);

/* On the clerk's thread. The list is changed only while its model is there and held, or else on the loader's thread:
 * whoever loads the model goes through the list. */
static void run_lora(void *arg)
{
    lora_order *o = arg;
    hn_shelf *shelf = o->order.server->shelf;
    hn_adapter_list *list = hn_shelf_adapters(shelf);
    hn_book *first = hn_shelf_at(shelf, 0);
    if (!o->path && hn_shelf_try(first)) {
        bool given = hn_adapter_list_unload(list, o->name, o->force, lora_unloaded, o, &o->order.why);
        hn_shelf_looked(first);
        if (given) return;
    } else if (o->path && (o->taken || hn_shelf_try(first))) {
        o->order.ok = hn_adapter_list_load(list, first->model, o->name, o->path, &o->id, &o->order.why);
        if (o->taken) hn_shelf_give(first);
        else hn_shelf_looked(first);
    } else {
        hn_order_on_crew(&o->order, o->order.server->loader, wait_for_lora);
        return;
    }
    hn_order_back(&o->order);
}

/* On the loader: the model comes before its adapter; one that goes needs no model. */
static void wait_for_lora(void *arg)
{
    lora_order *o = arg;
    hn_server *s = o->order.server;
    if (!o->path) {
        if (!hn_adapter_list_unload(hn_shelf_adapters(s->shelf), o->name, o->force, lora_unloaded, o, &o->order.why))
            hn_order_back(&o->order);
        return;
    }
    o->taken = hn_shelf_take(hn_shelf_at(s->shelf, 0), &o->order.wanted, true, &o->order.why);
    if (o->taken) hn_order_on_crew(&o->order, s->clerk, run_lora);
    else hn_order_back(&o->order);
}

/* {"lora_name", "lora_path", "force"} to an order; false: *r. */
static bool read_lora(lora_order *o, const hn_shelf *shelf, const json_t *body, bool load, hn_refusal *r)
{
    const char *name, *path = NULL;
    const json_t *force = hn_field_get(body, "force");
    if (!hn_order_text(body, "lora_name", "an adapter's name", &name, r) ||
        (load && !hn_order_text(body, "lora_path", "a file or folder below that of --lora-dir", &path, r)))
        return false;
    if (force && (load || !json_is_boolean(force)))
        return hn_refuse(r, 400, load ? "unsupported_parameter" : "invalid_type", "force",
                         load ? "force is for /v1/unload_lora_adapter" : "force is no boolean; expected true or false");
    const hn_book *same = load ? hn_shelf_named(shelf, name) : NULL;
    if (same)
        return hn_refuse(r, 409, "name_taken", "lora_name",
                         "adapter '%s' would be named as model '%s', or an alias of it, which requests would get; "
                         "expected another name",
                         HN_ESC(name, strlen(name)), same->name);
    o->force = !json_is_false(force);
    o->name = strdup(name);
    o->path = load ? strdup(path) : NULL;
    return (o->name && (o->path || !load)) || no_memory(r);
}

static bool read_lora_order(lora_order *o, hn_server *s, hn_exchange *x, bool load, hn_refusal *r)
{
    static const hn_field known[] = { { .name = "lora_name", .kind = HN_FIELD_LATER },
                                      { .name = "lora_path", .kind = HN_FIELD_LATER },
                                      { .name = "force", .kind = HN_FIELD_LATER },
                                      { .name = NULL } };
    json_t *body;
    bool ok = hn_order_body(x, false, &body, r) && hn_order_members(s, x, body, known, "", r) &&
              read_lora(o, s->shelf, body, load, r);
    json_decref(body);
    return ok;
}

static bool give_lora(hn_server *s, hn_exchange *x, bool load)
{
    const char *route = load ? "/v1/load_lora_adapter" : "/v1/unload_lora_adapter";
    hn_refusal r;
    if (!hn_adapter_list_folder(hn_shelf_adapters(s->shelf))) {
        hn_serve_tell(s, x, route, 501, "not_supported_error",
                      "this server loads no adapters while it runs; start it with --lora-dir");
        return true;
    }
    if (atomic_load(&s->state) == HN_SERVER_DRAINING) {
        hn_refuse_draining(&r);
        return refuse(s, x, route, &r);
    }
    lora_order *o = calloc(1, sizeof *o);
    if (!o) no_memory(&r);
    if (!o || !read_lora_order(o, s, x, load, &r)) {
        if (o) drop_lora(&o->order);
        return refuse(s, x, route, &r);
    }
    o->order = (hn_order){ .route = route, .write = write_lora, .drop = drop_lora };
    hn_order_begin(&o->order, s, x);
    hn_order_on_crew(&o->order, s->clerk, run_lora);
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

/* ollama's programs cut 12 digits from it without looking. Of the file's name, size and time: a model need not be read
 * for it, and it is the same whether the model is loaded or not. */
static void digest(hn_bytes *o, const hn_book *b)
{
    char of[64], text[65];
    unsigned char sum[32];
    hn_sha256 h;
    int n = snprintf(of, sizeof of, "%llu %lld", (unsigned long long)b->file_size, (long long)b->created);
    hn_sha256_init(&h);
    hn_sha256_add(&h, b->path, strlen(b->path) + 1);
    hn_sha256_add(&h, of, (size_t)n);
    hn_sha256_end(&h, sum);
    hn_bytes_text_member(o, "digest", hn_hex(text, sum, sizeof sum));
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
        digest(o, b);
        details(o, b, loaded);
        if (running) {
            int64_t left = hn_book_idle_left(b, hn_serve_ns());
            time_member(o, "expires_at", left < 0 ? 253402300799 : (int64_t)time(NULL) + left); /* never by itself */
            hn_bytes_int_member(o, "size_vram", 0);
            hn_bytes_int_member(o, "context_length", b->n_ctx);
        }
        hn_bytes_text(o, "}");
    }
    if (loaded) hn_shelf_looked(b);
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

/* Programs ask for it to know what they may send, and mean the API: VS Code goes away below 0.6.4, Codex below
 * 0.13.4. */
#define HN_OLLAMA_API "0.14.0"

static bool version(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{");
    hn_bytes_text_member(&o, "version", s->p.ollama_version ? s->p.ollama_version : HN_OLLAMA_API);
    hn_bytes_text_member(&o, "hone", hone_version());
    hn_bytes_text(&o, "}");
    hn_serve_json(s, x, "/api/version", &o);
    return true;
}

/* What a model can do, as far as its file tells. */
static void capabilities(hn_bytes *o, const hn_book *b)
{
    static const char *const thoughts[] = { "enable_thinking", "reasoning_effort", "<think>" };
    hn_bytes_text(o, ",\"capabilities\":[");
    bool causal = b->info.causal, fim = hone_token_fim(b->model, HONE_FIM_MIDDLE) >= 0;
    if (causal) hn_bytes_text(o, "\"completion\"");
    if (hn_book_template_names(b, "tools")) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "\"tools\"");
    }
    size_t i = 0, n = sizeof thoughts / sizeof *thoughts;
    while (i < n && !hn_book_template_names(b, thoughts[i])) i++;
    if (i < n) {
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

/* b is taken, or read for this alone. Programs cut what they send to the length that is told: it is the one that is
 * served, where that is known and the less. */
static void write_shown(hn_bytes *o, const hn_book *b)
{
    hone_str template = { 0 };
    int32_t n_ctx = b->n_ctx && b->n_ctx < b->info.n_ctx_train ? b->n_ctx : b->info.n_ctx_train;
    if (b->chat_template) template = (hone_str){ b->chat_template, strlen(b->chat_template) };
    else hone_chat_template(b->model, false, &template, NULL);
    hn_bytes_text(o, "{\"template\":");
    hn_bytes_json(o, template.ptr ? template.ptr : "", template.len);
    details(o, b, true);
    hn_bytes_text(o, ",\"model_info\":{");
    hn_bytes_text_member(o, "general.architecture", b->info.arch);
    hn_bytes_int_member(o, "general.parameter_count", (int64_t)b->info.n_params);
    hn_bytes_comma(o);
    hn_bytes_printf(o, "\"%s.context_length\":%d,\"%s.embedding_length\":%d,\"%s.block_count\":%d}", b->info.arch,
                    n_ctx, b->info.arch, b->info.n_embd, b->info.arch, b->info.n_layer);
    capabilities(o, b);
    time_member(o, "modified_at", b->created);
    hn_bytes_text(o, "}");
}

typedef struct show_order {
    hn_order order;
    hn_book *book;
    hn_bytes said;
} show_order;

static void write_show(hn_order *order, hn_bytes *b)
{
    const show_order *o = (const show_order *)order;
    hn_bytes_add(b, o->said.p, o->said.n);
}

static void drop_show(hn_order *order)
{
    show_order *o = (show_order *)order;
    hn_bytes_free(&o->said);
    free(o);
}

/* A model that is not loaded is looked at in its file, and stays where it is. */
static void run_show(void *arg)
{
    show_order *o = arg;
    const hn_shelf_params *all = &o->order.server->p.shelf;
    hone_model_params p = all->model;
    hone_error err;
    hn_book seen = { .created = o->book->created, .of = o->book->of };
    seen.n_ctx = seen.of && seen.of->n_ctx ? seen.of->n_ctx : all->scheduler.session.n_ctx;
    hn_book_settings(&seen, all);
    p.packed = "off";
    p.progress = NULL;
    if (hone_model_open(&seen.model, o->book->path, &p, &err) == HONE_OK) {
        hone_model_get_info(seen.model, &seen.info);
        hn_book_assume(&seen);
        write_shown(&o->said, &seen);
        hone_model_close(seen.model);
        o->order.ok = hn_bytes_ok(&o->said) || no_memory(&o->order.why);
    } else {
        hn_book_hide_folders(o->book, err.message);
        hn_refuse(&o->order.why, 500, NULL, NULL, "%s", err.message);
    }
    hn_order_back(&o->order);
}

static bool show(hn_server *s, hn_exchange *x)
{
    static const hn_field known[] = { { .name = "model", .kind = HN_FIELD_LATER },
                                      { .name = "name", .kind = HN_FIELD_LATER },
                                      { .name = "verbose", .kind = HN_FIELD_PASSED },
                                      { .name = NULL } };
    static const char route[] = "/api/show";
    hn_bytes o = { 0 };
    hn_refusal r;
    hn_book *b = named_book(s, x, known, &r);
    if (!b) return refuse(s, x, route, &r);
    if (!hn_shelf_try(b)) {
        show_order *later = calloc(1, sizeof *later);
        if (!later) {
            no_memory(&r);
            return refuse(s, x, route, &r);
        }
        later->order = (hn_order){ .route = route, .write = write_show, .drop = drop_show };
        later->book = b;
        hn_order_begin(&later->order, s, x);
        hn_order_on_crew(&later->order, s->crew, run_show);
        return true;
    }
    write_shown(&o, b);
    hn_shelf_looked(b);
    hn_serve_json(s, x, route, &o);
    return true;
}

/* ---- a response is to end --------------------------------------------------------------------------------------- */

/* /v1/responses/resp_ID/cancel, or without /v1; *id: what stands there. */
static bool is_cancel(const char *path, char id[40])
{
    const char *from = strncmp(path, "/v1/", 4) == 0 ? path + 3 : path, *end = strrchr(path, '/');
    if (strncmp(from, "/responses/resp_", 16) != 0 || strcmp(end, "/cancel") != 0 || end < from + 16) return false;
    snprintf(id, 40, "%.*s", (int)(end - from - 16 < 39 ? end - from - 16 : 39), from + 16);
    return true;
}

static bool cancel(hn_server *s, hn_exchange *x, const char *id)
{
    static const char route[] = "/v1/responses/{id}/cancel";
    hn_bytes o = { 0 };
    const hn_job *j = hn_job_end_response(s, id);
    if (!j) {
        hn_serve_tell(s, x, route, 404, NULL,
                      "no response of this id is being answered; those that ended are not kept");
        return true;
    }
    hn_bytes_text(&o, "{\"id\":\"resp_");
    hn_bytes_escaped(&o, id, strlen(id));
    hn_bytes_text(&o, "\"");
    hn_bytes_text_member(&o, "object", "response");
    hn_bytes_int_member(&o, "created_at", j->head.created);
    hn_bytes_text_member(&o, "status", "cancelled");
    hn_bytes_text_member(&o, "model", j->begun ? j->head.model : ""); /* else it may be being found */
    hn_bytes_text(&o, ",\"output\":[],\"error\":null,\"incomplete_details\":null,\"instructions\":null,\"metadata\":{},"
                      "\"parallel_tool_calls\":true,\"tool_choice\":\"auto\",\"tools\":[]}");
    hn_serve_json(s, x, route, &o);
    return true;
}

bool hn_serve_manage(hn_server *s, hn_exchange *x)
{
    char id[40];
    const char *path = hn_exchange_path(x);
    if (is_cancel(path, id)) return cancel(s, x, id);
    if (strcmp(path, "/models/load") == 0) return give_load(s, x, false);
    if (strcmp(path, "/models/unload") == 0) return give_load(s, x, true);
    if (strcmp(path, "/v1/load_lora_adapter") == 0) return give_lora(s, x, true);
    if (strcmp(path, "/v1/unload_lora_adapter") == 0) return give_lora(s, x, false);
    if (!s->p.ollama || strncmp(path, "/api/", 5) != 0) return false;
    if (strcmp(path, "/api/tags") == 0) return list(s, x, false);
    if (strcmp(path, "/api/ps") == 0) return list(s, x, true);
    if (strcmp(path, "/api/version") == 0) return version(s, x);
    return strcmp(path, "/api/show") == 0 && show(s, x);
}
