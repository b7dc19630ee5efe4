/* What is asked about the server itself: whether it lives, its models, settings, counters, the page. */
#include "serve/job.h"

#include "serve/orders.h"
#include "serve/page.h"
#include "serve/voice_parts.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>
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
        hn_serve_load(s, x);
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
    if (!parent && b->of && b->of->n_aliases) {
        hn_bytes_name(o, "aliases");
        hn_bytes_text(o, "[");
        for (size_t i = 0; i < b->of->n_aliases; i++) {
            hn_bytes_comma(o);
            hn_bytes_json_text(o, b->of->aliases[i]);
        }
        hn_bytes_text(o, "]");
    }
    if (hn_shelf_try(b)) {                                 /* it stays while it is described */
        hn_bytes_int_member(o, "max_model_len", b->n_ctx); /* where vLLM's clients look for it */
        write_meta(o, b);
        hn_shelf_looked(b);
    }
    hn_bytes_name(o, "status");
    hn_bytes_text(o, "{");
    hn_bytes_text_member(o, "value", state_names[state]);
    hn_book_hide_folders(b, why);
    hn_hide_folders(why);
    if (state == HN_BOOK_FAILED) hn_bytes_text_member(o, "error", why);
    hn_bytes_text(o, "}}");
}

typedef struct listing {
    hn_bytes *o;
    hn_book *book;
} listing;

static void write_adapter_model(void *arg, const hn_adapter_view *v)
{
    const listing *l = arg;
    write_model(l->o, l->book, v->name, l->book->name);
}

static void models(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    hn_bytes_text(&o, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < hn_shelf_count(s->shelf); i++) {
        hn_book *b = hn_shelf_at(s->shelf, i);
        write_model(&o, b, b->name, NULL);
        if (hn_book_adapters(b)) hn_adapter_list_each(hn_book_adapters(b), write_adapter_model, &(listing){ &o, b });
    }
    hn_bytes_text(&o, "]}");
    hn_serve_json(s, x, "/v1/models", &o);
}

static void one_model(hn_server *s, hn_exchange *x, const char *id)
{
    hn_bytes o = { 0 };
    const hn_book *named = hn_shelf_named(s->shelf, id);
    for (size_t i = 0; named && i < hn_shelf_count(s->shelf); i++) {
        hn_book *b = hn_shelf_at(s->shelf, i);
        if (b != named) continue;
        write_model(&o, b, b->name, NULL);
        hn_serve_json(s, x, "/v1/models/{id}", &o);
        return;
    }
    if (hn_adapter_list_has(hn_shelf_adapters(s->shelf), id)) {
        hn_book *first = hn_shelf_at(s->shelf, 0);
        write_model(&o, first, id, first->name);
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
    const char *adapter;
    hn_refusal r;
    if (!hn_exchange_query(x, "model", &name)) name = NULL;
    if (hn_shelf_find(s->shelf, name, &b, &adapter, &r) && (hn_shelf_try(b) || hn_shelf_refuse(b, &r))) return b;
    hn_serve_refuse(s, x, &r);
    hn_tally_answer(s->tally, route, r.status);
    return NULL;
}

/* n_ctx 0: not known, the model is not loaded. */
static void write_defaults(hn_bytes *o, const hn_server *s, int32_t n_ctx)
{
    const hone_sampler_params *d = &s->p.limits.defaults;
    hn_bytes_name(o, "default_generation_settings");
    hn_bytes_text(o, "{");
    hn_bytes_name(o, "n_ctx");
    if (n_ctx) hn_bytes_int(o, n_ctx);
    else hn_bytes_text(o, "null");
    hn_bytes_name(o, "params");
    hn_bytes_text(o, "{");
    hn_bytes_int_member(o, "seed", -1); /* any */
    f32_field(o, "temperature", d->temp);
    hn_bytes_int_member(o, "top_k", d->top_k);
    f32_field(o, "top_p", d->top_p);
    f32_field(o, "min_p", d->min_p);
    f32_field(o, "repeat_penalty", d->repeat_penalty);
    hn_bytes_int_member(o, "repeat_last_n", d->penalty_last_n);
    f32_field(o, "presence_penalty", d->presence_penalty);
    f32_field(o, "frequency_penalty", d->frequency_penalty);
    hn_bytes_int_member(o, "max_tokens", -1);
    hn_bytes_int_member(o, "n_predict", -1);
    hn_bytes_text(o, ",");
    hn_part_absent(o);
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

/* What is known of a model whether it is loaded or not. The object stays open. */
static void open_props(hn_bytes *o, const hn_server *s, const hn_book *b, int32_t n_ctx)
{
    hn_bytes_text(o, "{");
    write_defaults(o, s, n_ctx);
    hn_bytes_int_member(o, "total_slots", s->p.limits.n_slots);
    hn_bytes_text_member(o, "model_alias", b->name);
    hn_bytes_text_member(o, "model_path", hn_shelf_file_name(b->path));
    bool_field(o, "is_sleeping", !n_ctx);
    hn_bytes_name(o, "modalities");
    hn_bytes_text(o, "{\"vision\":false,\"audio\":false,\"video\":false}");
    bool_field(o, "endpoint_slots", s->p.slots);
    bool_field(o, "endpoint_metrics", s->p.metrics);
    bool_field(o, "endpoint_props", false); /* POST /props */
    hn_bytes_text_member(o, "build_info", hone_build_info());
    hn_bytes_text_member(o, "version", hone_version());
}

/* Of a model that is not loaded and is when somebody asks it: to look does not wake it. False: it is in another state.
 */
static bool props_of_sleeping(hn_server *s, hn_exchange *x)
{
    static const char *const unknown[] = { "chat_template", "chat_format", "chat_template_caps", "roof" };
    const char *name = NULL, *adapter;
    hn_bytes o = { 0 };
    hn_book *b;
    hn_refusal r;
    if (!hn_exchange_query(x, "model", &name)) name = NULL;
    if (!hn_shelf_find(s->shelf, name, &b, &adapter, &r) || hn_book_look(b, NULL) != HN_BOOK_UNLOADED) return false;
    open_props(&o, s, b, 0);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        hn_bytes_name(&o, unknown[i]);
        hn_bytes_text(&o, "null");
    }
    hn_bytes_text(&o, "}");
    hn_serve_json(s, x, "/props", &o);
    return true;
}

/* What its template takes, by llama-server's names: programs look there before they offer tools. */
static void write_caps(hn_bytes *o, const hn_book *b, const char *format)
{
    json_t *found = NULL;
    if (format && hn_json_tree(&found, format, strlen(format), NULL, "format", NULL) != HONE_OK) found = NULL;
    const json_t *calls = json_object_get(found, "calls");
    const char *shape = json_string_value(json_object_get(calls, "shape"));
    bool tools = shape && strcmp(shape, "none") != 0;
    bool_field(o, "supports_tools", tools);
    bool_field(o, "supports_tool_calls", tools);
    bool_field(o, "supports_parallel_tool_calls", tools && !json_is_true(json_object_get(calls, "single")));
    bool_field(o, "supports_system_role", b->system);
    json_decref(found);
}

static void props(hn_server *s, hn_exchange *x)
{
    hone_str source = { 0 };
    hn_book_format *format = NULL;
    hn_bytes o = { 0 };
    if (props_of_sleeping(s, x)) return;
    hn_book *b = asked_book(s, x, "/props");
    if (!b) return;

    open_props(&o, s, b, b->n_ctx);
    hn_bytes_text_member(&o, "fingerprint", b->fingerprint);
    hn_bytes_name(&o, "chat_template");
    if (b->chat_template) hn_bytes_json_text(&o, b->chat_template);
    else if (hone_chat_template(b->model, false, &source, NULL) == HONE_OK) hn_bytes_json(&o, source.ptr, source.len);
    else hn_bytes_text(&o, "null");
    hn_bytes_name(&o, "chat_format");
    const char *found =
        hn_book_format_take(b, NULL, NULL, &format, NULL) == HONE_OK ? hone_chat_format_json(format->format) : NULL;
    hn_bytes_text(&o, found ? found : "null");
    hn_bytes_name(&o, "chat_template_caps");
    hn_bytes_text(&o, "{");
    write_caps(&o, b, found);
    hn_bytes_text(&o, "}");
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
    hn_bytes_text(&o, "}");
    hn_shelf_looked(b);
    hn_serve_json(s, x, "/props", &o);
}

/* ---- what the desk knows: asked there, answered when it comes back ---------------------------------------------- */

typedef struct question {
    hn_order order;
    hn_book *book; /* of slots: taken; NULL: of metrics */
    hone_scheduler_stats stats;
    uint64_t pages, pages_total;
    hone_slot_info *slot; /* [n_slot] */
    int32_t n_slot;
    bool needs_idle; /* 503 where none is */
} question;

static void write_slots(hn_order *order, hn_bytes *o)
{
    const question *q = (const question *)order;
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

static void write_metrics(hn_order *order, hn_bytes *o)
{
    const hn_server *s = order->server;
    const question *q = (const question *)order;
    const hone_scheduler_stats *st = &q->stats;
    hn_tally_now now = { .running = (uint64_t)st->n_running,
                         .waiting = (uint64_t)st->n_waiting + (uint64_t)atomic_load(&s->n_waiting),
                         .kv_used = st->cache_used,
                         .kv_total = st->cache_total,
                         .pages = q->pages,
                         .pages_total = q->pages_total,
                         .page_tokens = PAGE_POSITIONS,
                         .preempted = st->n_preempted,
                         .model = hn_shelf_at(s->shelf, 0)->name,
                         .cpu = hone_context_cpu(s->p.shelf.ctx),
                         .roof_ratio = NAN };
    hn_job_count_embeds(s, &now.running, &now.waiting);
    hn_tally_write(s->tally, &now, s->p.metrics_compat, o);
}

static void drop_question(hn_order *order)
{
    question *q = (question *)order;
    if (q->book) hn_shelf_looked(q->book);
    free(q->slot);
    free(q);
}

/* What a page of the model's cache takes: windows and states count with their share of the longest sequence. */
static uint64_t page_bytes(const hn_book *b)
{
    hone_sequence_cost cost;
    uint64_t n = ((uint64_t)b->n_ctx + PAGE_POSITIONS - 1) / PAGE_POSITIONS;
    if (hone_model_sequence_cost(b->model, b->n_ctx, b->shelf_cache, &cost, NULL) != HONE_OK) return 0;
    return n ? cost.bytes / n : 0;
}

/* Of all models that are loaded, together. */
static void add_stats(question *q, const hn_desk_model *m)
{
    hone_scheduler_stats st, *sum = &q->stats;
    uint64_t page = page_bytes((const hn_book *)((const char *)m - offsetof(hn_book, desk)));
    hone_scheduler_get_stats(m->scheduler, &st);
    q->pages += page ? st.cache_used / page : 0;
    q->pages_total += page ? st.cache_total / page : 0;
    sum->n_running += st.n_running;
    sum->n_waiting += st.n_waiting;
    sum->cache_used += st.cache_used;
    sum->cache_total += st.cache_total;
    sum->n_preempted += st.n_preempted;
}

static void look(void *arg)
{
    question *q = arg;
    hn_server *s = q->order.server;
    q->stats.n_preempted = hn_shelf_preempted(s->shelf);
    for (const hn_desk_model *m = hn_desk_first(s->desk); m; m = m->next) add_stats(q, m);
    bool idle = !q->needs_idle;
    for (int32_t i = 0; i < q->n_slot; i++) {
        if (!hone_scheduler_slot(q->book->desk.scheduler, i, &q->slot[i])) q->slot[i] = (hone_slot_info){ 0 };
        idle |= !q->slot[i].running;
    }
    q->order.ok =
        idle || hn_refuse(&q->order.why, 503, "no_slot", NULL, "no slot available: all of them (%d) answer", q->n_slot);
    hn_order_back(&q->order);
}

static void ask_desk(hn_server *s, hn_exchange *x, bool slots)
{
    const char *route = slots ? "/slots" : "/metrics", *idle;
    hn_book *b = slots ? asked_book(s, x, route) : NULL;
    if (slots && !b) return;
    question *q = calloc(1, sizeof *q);
    int32_t n = slots ? s->p.limits.n_slots : 0;
    if (!q || (n && !(q->slot = calloc((size_t)n, sizeof *q->slot)))) {
        free(q);
        if (b) hn_shelf_looked(b);
        hn_serve_tell(s, x, route, 500, "out_of_memory", "no memory for the answer");
        return;
    }
    q->order = (hn_order){ .route = route,
                           .type = slots ? NULL : "text/plain; version=0.0.4; charset=utf-8",
                           .write = slots ? write_slots : write_metrics,
                           .drop = drop_question };
    q->book = b;
    q->n_slot = n;
    q->needs_idle = slots && hn_exchange_query(x, "fail_on_no_slot", &idle) && *idle; /* as llama-server has it */
    hn_order_begin(&q->order, s, x);
    hn_order_on_desk(&q->order, look);
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

static void write_adapter(void *arg, const hn_adapter_view *v)
{
    hn_bytes *o = arg;
    hn_bytes_comma(o);
    hn_bytes_text(o, "{");
    hn_bytes_int_member(o, "id", v->id);
    hn_bytes_text_member(o, "name", v->name);
    hn_bytes_text_member(o, "path", hn_shelf_file_name(v->path));
    f32_field(o, "scale", v->scale);
    hn_bytes_text(o, "}");
}

static bool read_scale(const json_t *v, hn_adapter_scale *out, hn_refusal *r)
{
    const json_t *id = json_object_get(v, "id"), *scale = json_object_get(v, "scale");
    double at = json_number_value(id); /* 0.0 is an id, as some clients write it */
    if (!json_is_number(id) || !(fabs(at) < 1e15) || at != floor(at) || !json_is_number(scale))
        return hn_refuse(r, 400, "invalid_type", NULL, "expected an array of objects with id and scale");
    if (!(fabs(json_number_value(scale)) <= 1e6))
        return hn_refuse(r, 400, "out_of_range", "scale", "scale is %g; expected -1e6 to 1e6",
                         json_number_value(scale));
    *out = (hn_adapter_scale){ .id = (int64_t)at, .scale = (float)json_number_value(scale) };
    return true;
}

/* [{"id", "scale"} …]: those that are not named are off. False: *r. */
static bool set_scales(hn_server *s, hn_exchange *x, hn_adapter_list *a, hn_refusal *r)
{
    static const hn_field known[] = { { .name = "id", .kind = HN_FIELD_LATER },
                                      { .name = "scale", .kind = HN_FIELD_LATER },
                                      { .name = NULL } };
    hn_adapter_scale list[HN_ADAPTERS_MOST];
    json_t *body, *all = json_object(); /* all: the members of each */
    size_t n = 0, unknown = 0;
    bool ok = hn_order_body(x, false, &body, r);
    if (ok && (!json_is_array(body) || json_array_size(body) > HN_ADAPTERS_MOST))
        ok = hn_refuse(r, 400, "invalid_type", NULL, "expected an array of at most %d objects with id and scale",
                       (int)HN_ADAPTERS_MOST);
    for (; ok && n < json_array_size(body); n++) {
        ok = read_scale(json_array_get(body, n), &list[n], r);
        if (ok && (!all || json_object_update(all, json_array_get(body, n)) != 0))
            ok = hn_refuse(r, 500, "out_of_memory", NULL, "no memory for this request");
    }
    ok = ok && hn_order_members(s, x, all, known, "", r);
    json_decref(all);
    json_decref(body);
    if (!ok || (a ? hn_adapter_list_set_scales(a, list, n, &unknown) : !n)) return ok;
    return hn_refuse(r, 400, "out_of_range", "id", "there is no adapter of id %lld; GET /lora-adapters lists them",
                     (long long)list[unknown].id);
}

/* The list is there whether the model is loaded or not. */
static void adapters(hn_server *s, hn_exchange *x)
{
    hn_bytes o = { 0 };
    hn_refusal r;
    hn_book *b;
    const char *adapter, *name = NULL;
    if (!hn_exchange_query(x, "model", &name)) name = NULL;
    bool ok = hn_shelf_find(s->shelf, name, &b, &adapter, &r), sets = strcmp(hn_exchange_method(x), "POST") == 0;
    hn_adapter_list *list = ok ? hn_book_adapters(b) : NULL;
    if (ok && sets) ok = set_scales(s, x, list, &r);
    if (!ok) {
        hn_serve_refuse(s, x, &r);
        hn_tally_answer(s->tally, "/lora-adapters", r.status);
        return;
    }
    hn_bytes_text(&o, sets ? "{\"success\":true}" : "[");
    if (list && !sets) hn_adapter_list_each(list, write_adapter, &o);
    hn_bytes_text(&o, sets ? "" : "]");
    hn_serve_json(s, x, "/lora-adapters", &o);
}

/* ---- the page --------------------------------------------------------------------------------------------------- */

/* Does an accept-encoding take gzip? By its name, else by *; q=0 is a no. */
static bool takes_gzip(const char *list)
{
    bool any = false;
    while (list && *list) {
        list += strspn(list, ", \t");
        size_t n = strcspn(list, ",; \t"), all = strcspn(list, ",");
        bool named = (n == 4 && strncasecmp(list, "gzip", 4) == 0) || (n == 6 && strncasecmp(list, "x-gzip", 6) == 0);
        bool yes = true;
        const char *q = memchr(list, ';', all);
        if (q) q += 1 + strspn(q + 1, " \t");
        if (q && strncasecmp(q, "q=", 2) == 0) {
            q += 2 + strspn(q + 2, "0.");
            yes = *q >= '1' && *q <= '9';
        }
        if (named) return yes;
        if (n == 1 && *list == '*') any = yes;
        list += all;
    }
    return any;
}

static void page(hn_server *s, hn_exchange *x)
{
    const hn_page *p = hn_page_get();
    const char *seen = hn_exchange_header(x, "if-none-match"), *accept = hn_exchange_header(x, "accept");
    if (s->p.ollama && (!accept || !strstr(accept, "text/html"))) { /* those who do not say want no page */
        hn_exchange_reply(x, 200, "text/plain; charset=utf-8", "Ollama is running", 17);
        hn_tally_answer(s->tally, "/", 200);
        return;
    }
    if (!s->p.ui) {
        hn_serve_tell(s, x, "/", 404, NULL, "this server has no page: it was started with --no-ui");
        return;
    }
    /* a list, each perhaps weak behind a proxy: the hash is nobody else's */
    bool packed = p->gzip_len && takes_gzip(hn_exchange_header(x, "accept-encoding"));
    char hash[66], etag[80];
    snprintf(hash, sizeof hash, "%.65s", p->etag); /* and the quote before it */
    snprintf(etag, sizeof etag, "%s%s\"", hash, packed ? "-gzip" : "");
    bool same = seen && (strstr(seen, hash) || strcmp(seen, "*") == 0);
    hn_exchange_set_header(x, "etag", etag);
    hn_exchange_set_header(x, "cache-control", "no-cache");
    hn_exchange_set_header(x, "content-security-policy", p->csp);
    hn_exchange_set_header(x, "referrer-policy", "no-referrer");
    hn_exchange_set_header(x, "x-content-type-options", "nosniff");
    hn_exchange_set_header(x, "vary", "accept-encoding");
    if (packed && !same) hn_exchange_set_header(x, "content-encoding", "gzip");
    hn_exchange_reply(x, same ? 304 : 200, "text/html; charset=utf-8",
                      same     ? ""
                      : packed ? p->gzip
                               : p->bytes,
                      same     ? 0
                      : packed ? p->gzip_len
                               : p->len);
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
