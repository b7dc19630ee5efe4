/* What is asked about the server itself: whether it lives, its models, settings, counters, the page. */
#include "serve/job.h"

#include "base/json_tree.h"
#include "serve/page.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { PAGE_POSITIONS = 64 };

/* ---- members of JSON --------------------------------------------------------------------------------------------- */

static void num_field(hn_bytes *o, const char *name, double value)
{
    hn_bytes_name(o, name);
    hn_bytes_f64(o, value);
}
static void f32_field(hn_bytes *o, const char *name, float value)
{
    hn_bytes_name(o, name);
    hn_bytes_f32(o, value);
}
static void bool_field(hn_bytes *o, const char *name, bool value)
{
    hn_bytes_name(o, name);
    hn_bytes_text(o, value ? "true" : "false");
}

/* ---- health ----------------------------------------------------------------------------------------------------- */

static void health(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    int state = atomic_load(&s->state);
    if (state == HN_SERVER_DRAINING) {
        hn_serve_tell(s, x, "/health", 503, "draining", "the server is shutting down");
    } else if (state == HN_SERVER_LOADING) {
        hn_serve_tell(s, x, "/health", 503, "loading", "the model is being loaded");
    } else {
        hn_bytes_text(&o, "{\"status\":\"ok\"}");
        hn_serve_json(s, x, "/health", &o);
    }
}

static void livez(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{\"status\":\"ok\"}");
    hn_serve_json(s, x, "/livez", &o);
}

/* ---- models ----------------------------------------------------------------------------------------------------- */

static const char *const state_names[] = { [HN_BOOK_UNLOADED] = "unloaded",
                                           [HN_BOOK_LOADING] = "loading",
                                           [HN_BOOK_LOADED] = "loaded",
                                           [HN_BOOK_FAILED] = "failed" };

static void write_meta(hn_bytes *o, const hn_book *b)
{
    char fingerprint[24];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)b->info.fingerprint);
    hn_bytes_name(o, "meta");
    hn_bytes_text(o, "{");
    hn_bytes_int_member(o, "n_vocab", b->info.n_vocab);
    hn_bytes_int_member(o, "n_ctx", b->n_ctx);
    hn_bytes_int_member(o, "n_ctx_train", b->info.n_ctx_train);
    hn_bytes_int_member(o, "n_embd", b->info.n_embd);
    hn_bytes_int_member(o, "n_params", (int64_t)b->info.n_params);
    hn_bytes_int_member(o, "size", (int64_t)b->info.n_bytes);
    hn_bytes_text_member(o, "architecture", b->info.arch);
    hn_bytes_text_member(o, "quantization", b->info.type);
    hn_bytes_text_member(o, "fingerprint", fingerprint);
    hn_bytes_text(o, "}");
}

static void write_model(hn_bytes *o, hn_book *b, const char *id, const char *parent)
{
    char why[sizeof b->why];
    hn_book_state state = hn_book_look(b, why);
    hn_bytes_comma(o);
    hn_bytes_text(o, "{");
    hn_bytes_text_member(o, "id", id);
    hn_bytes_text_member(o, "object", "model");
    hn_bytes_int_member(o, "created", b->created);
    hn_bytes_text_member(o, "owned_by", "hone");
    if (parent) hn_bytes_text_member(o, "parent", parent);
    if (hn_shelf_try(b)) { /* it stays while it is described */
        write_meta(o, b);
        hn_shelf_give(b);
    }
    hn_bytes_name(o, "status");
    hn_bytes_text(o, "{");
    hn_bytes_text_member(o, "value", state_names[state]);
    if (state == HN_BOOK_FAILED) hn_bytes_text_member(o, "error", why);
    hn_bytes_text(o, "}}");
}

static void models(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < hn_shelf_count(s->shelf); i++) {
        hn_book *b = hn_shelf_at(s->shelf, i);
        write_model(&o, b, b->name, NULL);
        if (!hn_shelf_try(b)) continue;
        for (size_t k = 0; k < b->n_adapter; k++) write_model(&o, b, b->adapter[k].name, b->name);
        hn_shelf_give(b);
    }
    hn_bytes_text(&o, "]}");
    hn_serve_json(s, x, "/v1/models", &o);
}

static void one_model(hn_server *s, hn_exchange *x, const char *id)
{
    hn_bytes o = { 0 };
    for (size_t i = 0; i < hn_shelf_count(s->shelf); i++) {
        hn_book *b = hn_shelf_at(s->shelf, i);
        if (strcmp(b->name, id) != 0) continue;
        write_model(&o, b, b->name, NULL);
        hn_serve_json(s, x, "/v1/models/{id}", &o);
        return;
    }
    char message[300];
    snprintf(message, sizeof message, "model '%s' is not here; GET /v1/models lists those that are",
             HN_ESC(id, strlen(id)));
    hn_serve_tell(s, x, "/v1/models/{id}", 404, "model_not_found", message);
}

/* ---- settings --------------------------------------------------------------------------------------------------- */

/* The loaded model that ?model= names, or the first; taken. NULL: none is loaded, the answer was sent. */
static hn_book *asked_book(hn_server *s, hn_exchange *x, const char *route)
{
    const char *name = NULL;
    hn_book *b;
    int32_t adapter;
    hn_refusal r;
    if (!hn_exchange_query(x, "model", &name)) name = NULL;
    if (!hn_shelf_find(s->shelf, name, &b, &adapter, &r)) {
        hn_serve_refuse(s, x, &r);
        hn_tally_answer(s->tally, route, r.status);
        return NULL;
    }
    if (hn_shelf_try(b)) return b;
    hn_serve_tell(s, x, route, 503, "loading", "the model is not loaded");
    return NULL;
}

static void write_defaults(hn_bytes *o, const hn_server *s, const hn_book *b)
{
    const hone_sampler_params *d = &s->p.limits.defaults;
    hn_bytes_name(o, "default_generation_settings");
    hn_bytes_text(o, "{");
    hn_bytes_int_member(o, "n_ctx", b->n_ctx);
    hn_bytes_name(o, "params");
    hn_bytes_text(o, "{");
    f32_field(o, "temperature", d->temp);
    hn_bytes_int_member(o, "top_k", d->top_k);
    f32_field(o, "top_p", d->top_p);
    f32_field(o, "min_p", d->min_p);
    f32_field(o, "repeat_penalty", d->repeat_penalty);
    hn_bytes_int_member(o, "repeat_last_n", d->penalty_last_n);
    f32_field(o, "presence_penalty", d->presence_penalty);
    f32_field(o, "frequency_penalty", d->frequency_penalty);
    hn_bytes_int_member(o, "max_tokens", -1);
    hn_bytes_text(o, "}}");
}

static void write_roof(hn_bytes *o, const hn_server *s, const hn_book *b)
{
    double gb = s->p.roof_gb_s;
    double bytes = (double)b->info.bytes_per_token + 2.0 * (double)b->info.state_bytes;
    hn_bytes_name(o, "roof");
    hn_bytes_text(o, "{");
    num_field(o, "read_gb_s", gb > 0 ? gb : NAN); /* not finite: null */
    num_field(o, "decode_tok_s", gb > 0 && bytes > 0 ? gb * 1e9 / bytes : NAN);
    hn_bytes_text(o, "}");
}

static void props(hn_server *s, hn_exchange *x)
{
    hone_str source = { 0 };
    hn_book_format *format = NULL;
    hn_bytes o = { 0 };
    hn_book *b = asked_book(s, x, "/props");
    if (!b) return;

    hn_bytes_text(&o, "{");
    write_defaults(&o, s, b);
    hn_bytes_int_member(&o, "total_slots", s->p.limits.n_slots);
    hn_bytes_text_member(&o, "model_alias", b->name);
    hn_bytes_text_member(&o, "model_path", hn_shelf_file_name(b->path));
    hn_bytes_text_member(&o, "fingerprint", b->fingerprint);
    hn_bytes_name(&o, "chat_template");
    if (b->chat_template) hn_bytes_json_text(&o, b->chat_template);
    else if (hone_chat_template(b->model, false, &source, NULL) == HONE_OK) hn_bytes_json(&o, source.ptr, source.len);
    else hn_bytes_text(&o, "null");
    hn_bytes_name(&o, "chat_format");
    if (hn_book_format_take(b, NULL, NULL, &format, NULL) == HONE_OK)
        hn_bytes_text(&o, hone_chat_format_json(format->format));
    else hn_bytes_text(&o, "null");
    hn_book_format_give(format);
    int32_t bos = hone_token_bos(b->model), eos = hone_token_eos(b->model);
    size_t n;
    const char *piece = bos < 0 ? NULL : hone_token_piece(b->model, bos, true, &n);
    hn_bytes_name(&o, "bos_token");
    hn_bytes_json(&o, piece ? piece : "", piece ? n : 0);
    piece = eos < 0 ? NULL : hone_token_piece(b->model, eos, true, &n);
    hn_bytes_name(&o, "eos_token");
    hn_bytes_json(&o, piece ? piece : "", piece ? n : 0);
    write_roof(&o, s, b);
    hn_bytes_text_member(&o, "build_info", hone_build_info());
    hn_bytes_text_member(&o, "version", hone_version());
    hn_bytes_text(&o, "}");
    hn_shelf_give(b);
    hn_serve_json(s, x, "/props", &o);
}

/* ---- what the desk knows: asked there, answered when it comes back ---------------------------------------------- */

typedef struct question {
    hn_task task;
    hn_server *server;
    hn_exchange *x;
    hn_book *book; /* of slots: taken */
    bool slots;    /* else metrics */
    bool gone;
    hone_scheduler_stats stats;
    hone_slot_info *slot; /* [n_slot] */
    int32_t n_slot;
} question;

static void write_slots(const question *q, hn_bytes *o)
{
    hn_bytes_text(o, "[");
    for (int32_t i = 0; i < q->n_slot; i++) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "{");
        hn_bytes_int_member(o, "id", i);
        hn_bytes_int_member(o, "n_ctx", q->book->n_ctx);
        bool_field(o, "is_processing", q->slot[i].running);
        hn_bytes_int_member(o, "n_past", q->slot[i].n_past);
        hn_bytes_int_member(o, "request", (int64_t)q->slot[i].request);
        hn_bytes_text(o, "}");
    }
    hn_bytes_text(o, "]");
}

static void write_metrics(const question *q, hn_bytes *o)
{
    const hn_server *s = q->server;
    const hone_scheduler_stats *st = &q->stats;
    hn_tally_now now = { .running = (uint64_t)st->n_running,
                         .waiting = (uint64_t)st->n_waiting + (uint64_t)atomic_load(&s->n_waiting),
                         .kv_used = st->cache_used,
                         .kv_total = st->cache_total,
                         .page_tokens = PAGE_POSITIONS,
                         .preempted = st->n_preempted,
                         .model = hn_shelf_at(s->shelf, 0)->name,
                         .cpu = hone_context_cpu(s->p.shelf.ctx),
                         .roof_ratio = NAN };
    hn_tally_write(s->tally, &now, s->p.metrics_compat, o);
}

static void answer_question(void *arg)
{
    question *q = arg;
    hn_server *s = q->server;
    hn_bytes o = { 0 };
    if (q->slots) write_slots(q, &o);
    else write_metrics(q, &o);
    int status = q->gone ? 0 : hn_bytes_ok(&o) ? 200 : 500;
    if (status == 0) {
        hn_exchange_end(q->x, false);
    } else if (status == 500) {
        hn_exchange_refuse(q->x, 500, "out_of_memory", "no memory for the answer");
    } else {
        hn_exchange_reply(q->x, 200, q->slots ? "application/json" : "text/plain; version=0.0.4; charset=utf-8", o.p,
                          o.n);
    }
    if (status) hn_tally_answer(s->tally, q->slots ? "/slots" : "/metrics", status);
    hn_bytes_free(&o);
    if (q->book) hn_shelf_give(q->book);
    free(q->slot);
    free(q);
}

/* Of all models that are loaded, together. */
static void add_stats(hone_scheduler_stats *sum, const hone_scheduler *s)
{
    hone_scheduler_stats st;
    hone_scheduler_get_stats(s, &st);
    sum->n_running += st.n_running;
    sum->n_waiting += st.n_waiting;
    sum->cache_used += st.cache_used;
    sum->cache_total += st.cache_total;
    sum->n_preempted += st.n_preempted;
}

static void look(void *arg)
{
    question *q = arg;
    hn_server *s = q->server; /* q is gone as soon as the event thread has it */
    for (const hn_desk_model *m = hn_desk_first(s->desk); m; m = m->next) add_stats(&q->stats, m->scheduler);
    for (int32_t i = 0; i < q->n_slot; i++)
        if (!hone_scheduler_slot(q->book->desk.scheduler, i, &q->slot[i])) q->slot[i] = (hone_slot_info){ 0 };
    hn_serve_back(s, &q->task, answer_question, q);
    hn_serve_wake(s);
}

static void question_gone(void *arg)
{
    question *q = arg;
    q->gone = true;
}

static void ask_desk(hn_server *s, hn_exchange *x, bool slots)
{
    const char *route = slots ? "/slots" : "/metrics";
    hn_book *b = slots ? asked_book(s, x, route) : NULL;
    if (slots && !b) return;
    question *q = calloc(1, sizeof *q);
    int32_t n = slots ? s->p.limits.n_slots : 0;
    if (!q || (n && !(q->slot = calloc((size_t)n, sizeof *q->slot)))) {
        free(q);
        if (b) hn_shelf_give(b);
        hn_serve_tell(s, x, route, 500, "out_of_memory", "no memory for the answer");
        return;
    }
    q->server = s;
    q->x = x;
    q->book = b;
    q->slots = slots;
    q->n_slot = n;
    q->task = (hn_task){ .fn = look, .arg = q };
    hn_exchange_on_gone(x, question_gone, q);
    hn_desk_do(s->desk, &q->task);
}

static void metrics(hn_server *s, hn_exchange *x)
{
    if (s->p.metrics) ask_desk(s, x, false);
    else
        hn_serve_tell(s, x, "/metrics", 501, "not_supported_error",
                      "this server counts in silence; start it with --metrics");
}

static void slots(hn_server *s, hn_exchange *x)
{
    if (s->p.slots) ask_desk(s, x, true);
    else
        hn_serve_tell(s, x, "/slots", 501, "not_supported_error",
                      "this server does not show its slots; start it with --slots");
}

/* ---- adapters --------------------------------------------------------------------------------------------------- */

static void write_adapters(hn_bytes *o, const hn_book *b)
{
    hn_bytes_text(o, "[");
    for (size_t i = 0; i < b->n_adapter; i++) {
        hn_bytes_comma(o);
        hn_bytes_text(o, "{");
        hn_bytes_int_member(o, "id", (int64_t)i);
        hn_bytes_text_member(o, "name", b->adapter[i].name);
        hn_bytes_text_member(o, "path", hn_shelf_file_name(b->adapter[i].path));
        f32_field(o, "scale", b->adapter[i].scale);
        hn_bytes_text(o, "}");
    }
    hn_bytes_text(o, "]");
}

/* [{"id", "scale"} …]: those that are not named are off. False: *why. */
static bool set_scales(hn_book *b, const json_t *list, const char **why)
{
    float scale[64] = { 0 };
    size_t i;
    json_t *v;
    *why = "expected an array of objects with id and scale";
    if (!json_is_array(list) || b->n_adapter > 64) return false;
    json_array_foreach(list, i, v)
    {
        const json_t *id = json_object_get(v, "id"), *s = json_object_get(v, "scale");
        if (!json_is_integer(id) || !json_is_number(s)) return false;
        *why = "there is no adapter of this id; GET /lora-adapters lists them";
        if (json_integer_value(id) < 0 || (size_t)json_integer_value(id) >= b->n_adapter) return false;
        *why = "a scale is not within -1e6 to 1e6";
        if (!(fabs(json_number_value(s)) <= 1e6)) return false;
        scale[json_integer_value(id)] = (float)json_number_value(s);
    }
    for (size_t k = 0; k < b->n_adapter; k++) b->adapter[k].scale = scale[k];
    return true;
}

static void adapters(hn_server *s, hn_exchange *x)
{
    const char *why = "expected JSON";
    hn_bytes o = { 0 };
    hn_book *b = asked_book(s, x, "/lora-adapters");
    if (!b) return;
    if (strcmp(hn_exchange_method(x), "POST") == 0) {
        hone_str body = hn_exchange_body(x);
        const hn_json_rules rules = { .max_depth = 8, .flags = HN_JSON_UNIQUE, .fault = HONE_E_ARG };
        json_t *list = NULL;
        bool ok = hn_json_tree(&list, body.ptr ? body.ptr : "", body.len, &rules, "body", NULL) == HONE_OK &&
                  set_scales(b, list, &why);
        json_decref(list);
        if (!ok) {
            hn_shelf_give(b);
            hn_serve_tell(s, x, "/lora-adapters", 400, "invalid_type", why);
            return;
        }
    }
    write_adapters(&o, b);
    hn_shelf_give(b);
    hn_serve_json(s, x, "/lora-adapters", &o);
}

/* ---- the page --------------------------------------------------------------------------------------------------- */

static void page(hn_server *s, hn_exchange *x)
{
    const hn_page *p = hn_page_get();
    const char *seen = hn_exchange_header(x, "if-none-match"), *accept = hn_exchange_header(x, "accept");
    if (s->p.ollama && accept && !strstr(accept, "text/html")) {
        hn_exchange_reply(x, 200, "text/plain; charset=utf-8", "Ollama is running", 17);
        hn_tally_answer(s->tally, "/", 200);
        return;
    }
    if (!s->p.ui) {
        hn_serve_tell(s, x, "/", 404, NULL, "this server has no page: it was started with --no-ui");
        return;
    }
    hn_exchange_set_header(x, "etag", p->etag);
    hn_exchange_set_header(x, "cache-control", "no-cache");
    hn_exchange_set_header(x, "content-security-policy", p->csp);
    hn_exchange_set_header(x, "referrer-policy", "no-referrer");
    hn_exchange_set_header(x, "x-content-type-options", "nosniff");
    bool same = seen && strcmp(seen, p->etag) == 0;
    hn_exchange_reply(x, same ? 304 : 200, "text/html; charset=utf-8", same ? "" : (const char *)p->bytes,
                      same ? 0 : p->len);
    hn_tally_answer(s->tally, "/", same ? 304 : 200);
}

/* ---- which is which --------------------------------------------------------------------------------------------- */

static const struct {
    const char *path;
    void (*answer)(hn_server *s, hn_exchange *x);
} table[] = {
    { "/", page },           { "/health", health }, { "/v1/health", health },       { "/readyz", health },
    { "/livez", livez },     { "/props", props },   { "/v1/models", models },       { "/models", models },
    { "/metrics", metrics }, { "/slots", slots },   { "/lora-adapters", adapters },
};

bool hn_serve_status(hn_server *s, hn_exchange *x)
{
    const char *path = hn_exchange_path(x);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].path, path) == 0) {
            table[i].answer(s, x);
            return true;
        }
    const char *id = strncmp(path, "/v1/models/", 11) == 0 ? path + 11
                     : strncmp(path, "/models/", 8) == 0   ? path + 8
                                                           : NULL;
    if (!id || strcmp(hn_exchange_method(x), "GET") != 0) return false;
    one_model(s, x, id);
    return true;
}
