/* Orders of orders.h: a list of the event thread, and their way back to it. */
#include "serve/orders.h"

/* ---- the way there and back ------------------------------------------------------------------------------------- */

static void on_gone(void *arg)
{
    hn_order *o = arg;
    o->gone = true;
    atomic_store(&o->wanted, false);
    hn_shelf_stir(o->server->shelf);
}

void hn_order_begin(hn_order *o, hn_server *s, hn_exchange *x)
{
    o->server = s;
    o->x = x;
    o->deadline = hn_serve_ns() + (uint64_t)s->p.timeout_s * 1000000000;
    atomic_store(&o->wanted, true);
    o->next = s->orders;
    o->at = &s->orders;
    if (s->orders) s->orders->at = &o->next;
    s->orders = o;
    s->n_orders++;
    hn_exchange_on_gone(x, on_gone, o);
}

void hn_order_on_crew(hn_order *o, hn_crew *crew, void (*fn)(void *o))
{
    o->task = (hn_task){ .fn = fn, .arg = o };
    hn_crew_do(crew, &o->task);
}

void hn_order_on_desk(hn_order *o, void (*fn)(void *o))
{
    o->task = (hn_task){ .fn = fn, .arg = o };
    hn_desk_do(o->server->desk, &o->task);
}

static void send_written(hn_server *s, hn_exchange *x, const char *route, const char *type, hn_bytes *b)
{
    if (!hn_bytes_ok(b)) hn_exchange_refuse(x, 500, "out_of_memory", "no memory for the answer");
    else hn_exchange_reply(x, 200, type ? type : "application/json", b->p, b->n);
    hn_tally_answer(s->tally, route, hn_bytes_ok(b) ? 200 : 500);
}

static void send_refused(hn_server *s, hn_exchange *x, const char *route, const hn_refusal *r)
{
    hn_serve_refuse(s, x, r);
    hn_tally_answer(s->tally, route, r->status);
}

void hn_order_withdraw(hn_order *o, bool now)
{
    hn_refusal r;
    atomic_store(&o->wanted, false);
    o->withdrawn = true;
    if (!now || o->gone || o->answered) return;
    hn_refuse_withdrawn(&r);
    o->answered = true; /* first: with the answer the connection's next request is heard, which may withdraw, too */
    send_refused(o->server, o->x, o->route, &r);
}

static void come_back(void *arg)
{
    hn_order *o = arg;
    hn_server *s = o->server;
    *o->at = o->next;
    if (o->next) o->next->at = o->at;
    s->n_orders--;
    if (!o->ok && o->late && !s->drain_end && o->why.status == 503)
        hn_refuse(&o->why, 504, "timeout", NULL, "there was no room for it within %d s; expected other requests to end",
                  s->p.timeout_s);
    else if (!o->ok && o->withdrawn && !s->drain_end && o->why.status == 503) hn_refuse_withdrawn(&o->why);
    hn_bytes b = { 0 };
    hn_exchange *x = o->answered ? NULL : o->x;
    const bool gone = o->gone, ok = o->ok;
    const char *route = o->route, *type = o->type;
    const hn_refusal why = o->why;
    if (x && !gone && ok) o->write(o, &b);
    o->drop(o); /* first: with the answer the connection's next request is heard, which may unload what this one took */
    if (!x) return;
    if (gone) hn_exchange_end(x, false);
    else if (ok) send_written(s, x, route, type, &b);
    else send_refused(s, x, route, &why);
    hn_bytes_free(&b);
}

void hn_order_back(hn_order *o)
{
    hn_server *s = o->server; /* o is gone as soon as the event thread has it */
    hn_serve_back(s, &o->task, come_back, o);
    hn_serve_wake(s);
}

void hn_order_tick(hn_server *s, uint64_t now)
{
    for (hn_order *o = s->orders; o; o = o->next) {
        if (o->late || now < o->deadline) continue;
        o->late = true;
        atomic_store(&o->wanted, false);
        hn_shelf_stir(s->shelf);
    }
}

void hn_order_stop_all(hn_server *s)
{
    for (hn_order *o = s->orders; o; o = o->next) atomic_store(&o->wanted, false);
    hn_shelf_stir(s->shelf);
}

/* ---- bodies ----------------------------------------------------------------------------------------------------- */

enum { MOST_BODY = 64 << 10 }; /* bytes: the event thread reads it, and a tree takes many times that */

bool hn_order_body(hn_exchange *x, bool may_be_empty, json_t **out, hn_refusal *r)
{
    const hn_json_rules rules = { .max_depth = 8, .flags = HN_JSON_UNIQUE, .fault = HONE_E_ARG };
    hone_str body = hn_exchange_body(x);
    hone_error err;
    *out = NULL;
    if (!body.len && may_be_empty) return true;
    if (body.len > MOST_BODY)
        return hn_refuse(r, 413, "body_too_large", NULL, "the body has %zu bytes; expected %d at most here", body.len,
                         (int)MOST_BODY);
    hone_status st = hn_json_tree(out, body.ptr ? body.ptr : "", body.len, &rules, "body", &err);
    hn_exchange_drop_body(x);
    if (st == HONE_E_NOMEM) return hn_refuse(r, 500, "out_of_memory", NULL, "no memory for this request");
    return st == HONE_OK || hn_refuse(r, 400, "invalid_json", NULL, "%s", err.message);
}

bool hn_order_members(hn_server *s, hn_exchange *x, const json_t *o, const hn_field *known, const char *also,
                      hn_refusal *r)
{
    const hn_field *const tables[] = { known, NULL };
    hn_fields f = { .limits = &s->p.limits, .refusal = r };
    if (o && !json_is_object(o))
        return hn_refuse(r, 400, "invalid_type", NULL, "the body is %s; expected an object", hn_json_kind(o));
    if (*also) hn_field_ignored(&f, also);
    bool ok = !o || hn_fields_read(&f, o, "", tables);
    if (ok && f.ignored.n) {
        hn_bytes_add(&f.ignored, "", 1);
        if (hn_bytes_ok(&f.ignored)) hn_exchange_set_header(x, "x-hone-ignored", f.ignored.p);
    }
    hn_bytes_free(&f.ignored);
    return ok;
}

bool hn_order_text(const json_t *o, const char *name, const char *expected, const char **out, hn_refusal *r)
{
    const json_t *v = hn_field_get(o, name);
    *out = json_string_value(v);
    if (*out && **out) return true;
    return hn_refuse(r, 400, v && !*out ? "invalid_type" : "missing_field", name, "%s is %s; expected %s", name,
                     !v     ? "missing"
                     : *out ? "empty"
                            : hn_json_kind(v),
                     expected);
}
