/* The public chat functions: a model's template behind hone.h. */
#include "base/json_tree.h"
#include "base/floats.h"
#include "engine/engine.h"
#include "text/reply.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct request {
    hn_chat chat;
    json_t *messages, *tools, *variables;
    hn_jinja_time now;
    int now_east;
    char *bos, *eos;
    hn_jinja *t;
    hone_str source;
    const hn_vocab *v;
} request;

static void request_free(request *q)
{
    json_decref(q->messages);
    json_decref(q->tools);
    json_decref(q->variables);
    free(q->bos);
    free(q->eos);
    hn_jinja_free(q->t);
}

/* big: what whole numbers beyond 64 bits become (HN_JSON_…); as_text: as rules have it. */
static hone_status load(json_t **out, const char *text, const char *what, unsigned big, const char *as_text,
                        hone_error *err)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | big, .as_text = as_text, .fault = HONE_E_ARG };
    *out = NULL;
    return text ? hn_json_tree(out, text, strlen(text), &rules, what, err) : HONE_OK;
}

/* Text of a token, "" where there is none, it is not UTF-8, which no template could print, or it holds a NUL. */
static char *token_text(const hn_vocab *v, int32_t id)
{
    size_t n = 0;
    const char *s = v && id >= 0 ? hn_vocab_piece(v, id, true, &n) : NULL;
    if (s && memchr(s, 0, n)) n = 0;
    json_t *utf8 = json_stringn(s ? s : "", n);
    char *copy = utf8 ? strdup(json_string_value(utf8)) : strdup("");
    json_decref(utf8);
    return copy;
}

static hone_status prepare(request *q, const hone_model *m, const hone_chat_params *p, hone_error *err)
{
    hone_status st;
    if ((st = load(&q->messages, p->messages, "messages", 0, "arguments", err)) != HONE_OK ||
        (st = load(&q->tools, p->tools, "tools", HN_JSON_BIG, NULL, err)) != HONE_OK ||
        (st = load(&q->variables, p->variables, "variables", HN_JSON_BIG, NULL, err)) != HONE_OK)
        return st;
    if (p->now && !hn_jinja_parse_time(&q->now, &q->now_east, p->now))
        return HN_FAIL(err, HONE_E_ARG,
                       "now: '%s'; expected a time as in 2026-02-03T04:05:06 or 2026-02-03T04:05:06+01:00",
                       HN_ESC(p->now, strlen(p->now)));
    if (m && (st = hn_model_vocab(m, &q->v, err)) != HONE_OK) return st;
    st = hn_chat_source(&q->source, m ? m->file : NULL, q->v, p->chat_template, json_array_size(q->tools) > 0, err);
    if (st == HONE_OK) st = hn_jinja_parse(&q->t, q->source.ptr, q->source.len, "chat template", NULL, err);
    if (st != HONE_OK) return st;
    q->bos = token_text(q->v, q->v ? hn_vocab_bos(q->v) : -1);
    q->eos = token_text(q->v, q->v ? hn_vocab_eos(q->v) : -1);
    if (!q->bos || !q->eos) return HN_FAIL(err, HONE_E_NOMEM, "chat: out of memory");
    q->chat = (hn_chat){ .messages = q->messages,
                         .tools = q->tools,
                         .variables = q->variables,
                         .bos = q->bos,
                         .eos = q->eos,
                         .now = p->now ? &q->now : NULL,
                         .now_east = q->now_east,
                         .add_generation_prompt = p->add_generation_prompt };
    return HONE_OK;
}

/* Is part [n] the end of text [len], but for white space behind it? n <= len. */
static bool ends_in(const char *text, size_t len, const char *part, size_t n)
{
    size_t at = len - n;
    while (at && strchr(" \t\r\n", text[at + n - 1])) at--;
    return memcmp(text + at, part, n) == 0;
}

/* Ends the text behind what the last message says: the answer goes on from there. What the template writes behind it
 * would end the turn. The last input of a rendering is the last message's content, less white space at its ends. */
static hone_status cut_final(const request *q, hn_jinja_text *t, hone_error *err)
{
    const json_t *last = json_array_get(q->messages, json_array_size(q->messages) - 1),
                 *content = json_object_get(last, "content");
    json_t *said = hn_chat_said(content, true);
    if (!said) return HN_FAIL(err, HONE_E_NOMEM, "chat: out of memory");
    const hone_span *end = t->n_input ? &t->input[t->n_input - 1] : NULL;
    size_t n = end ? end->end - end->begin : 0, len = json_string_length(said);
    bool answer = hn_json_is(json_object_get(last, "role"), "assistant") && len,
         written = n && n <= len && ends_in(json_string_value(said), len, t->text + end->begin, n);
    json_decref(said);
    if (!answer)
        return HN_FAIL(err, HONE_E_ARG,
                       "the last message is to be continued: expected one of the assistant with some "
                       "text as its content");
    if (!written)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "the last message cannot be continued: the chat template does not write it at its end");
    t->len = end->end;
    t->text[t->len] = 0;
    return HONE_OK;
}

/* The conversation's text, as p wants it. */
static hone_status render(const request *q, const hone_chat_params *p, hn_jinja_text *t, hone_error *err)
{
    if (p->continue_final && p->add_generation_prompt)
        return HN_FAIL(err, HONE_E_ARG, "continue_final with add_generation_prompt: the answer begins, or it goes on");
    hone_status st = hn_chat_render(q->t, &q->chat, t, err);
    if (st == HONE_OK && p->continue_final && (st = cut_final(q, t, err)) != HONE_OK) {
        hn_jinja_text_free(t);
        *t = (hn_jinja_text){ 0 };
    }
    return st;
}

hone_status hone_chat_render(const hone_model *m, const hone_chat_params *p, hone_chat_text *out, hone_error *err)
{
    HN_FLOATS;
    request q = { 0 };
    hn_jinja_text t = { 0 };
    if (out) *out = (hone_chat_text){ 0 };
    HN_NEED(err, p, "parameters");
    HN_NEED(err, p->messages, "a JSON array");
    if (!p->chat_template) HN_NEED(err, m, "an open model, or p->chat_template");
    HN_NEED(err, out, "a place for the text");
    hone_status st = prepare(&q, m, p, err);
    if (st == HONE_OK) st = render(&q, p, &t, err);
    if (st == HONE_OK) *out = (hone_chat_text){ t.text, t.len, t.input, t.n_input };
    request_free(&q);
    return st;
}

void hone_chat_text_free(hone_chat_text *t)
{
    if (!t) return;
    free(t->text);
    free(t->input);
    *t = (hone_chat_text){ 0 };
}

hone_status hone_chat_tokenize(const hone_model *m, const hone_chat_params *p, int32_t **ids, size_t *n,
                               hone_error *err)
{
    HN_FLOATS;
    request q = { 0 };
    hn_jinja_text t = { 0 };
    hn_ids list = { 0 };
    if (ids) *ids = NULL;
    if (n) *n = 0;
    HN_NEED(err, m, "an open model");
    HN_NEED(err, p, "parameters");
    HN_NEED(err, p->messages, "a JSON array");
    HN_NEED(err, ids, "a place for the ids");
    HN_NEED(err, n, "a place for their number");
    hone_status st = prepare(&q, m, p, err);
    if (st == HONE_OK) st = render(&q, p, &t, err);
    if (st == HONE_OK) st = hn_chat_encode(q.v, t.text, t.len, t.input, t.n_input, p->trust_input, &list, err);
    if (st == HONE_OK && !list.data && !(list.data = malloc(sizeof *list.data)))
        st = HN_FAIL(err, HONE_E_NOMEM, "token ids");
    if (st == HONE_OK) {
        *ids = list.data;
        *n = list.n;
    } else {
        free(list.data);
    }
    hn_jinja_text_free(&t);
    request_free(&q);
    return st;
}

hone_status hone_chat_mark(const hone_model *m, const hone_chat_params *p, const int32_t *ids, size_t n, size_t *mark,
                           hone_error *err)
{
    if (mark) *mark = 0;
    HN_NEED(err, m, "an open model");
    HN_NEED(err, p, "parameters");
    HN_NEED(err, p->messages, "a JSON array");
    if (n) HN_NEED(err, ids, "a pointer to n ids");
    HN_NEED(err, mark, "a place for the mark");
    size_t n_said = n, same = 0;
    int32_t *said = NULL;
    if (p->add_generation_prompt) {
        hone_chat_params messages = *p;
        messages.add_generation_prompt = false;
        hone_status st = hone_chat_tokenize(m, &messages, &said, &n_said, err);
        if (st != HONE_OK) return st;
    }
    const int32_t *other = said ? said : ids;
    while (same < n && same < n_said && other[same] == ids[same]) same++; /* the last token may reach over the end */
    free(said);
    *mark = same;
    return HONE_OK;
}

hone_status hone_chat_template(const hone_model *m, bool tools, hone_str *source, hone_error *err)
{
    const hn_vocab *v = NULL;
    if (source) *source = (hone_str){ 0 };
    HN_NEED(err, m, "an open model");
    HN_NEED(err, source, "a place for the template");
    hn_model_vocab(m, &v, NULL); /* a tokenizer hone cannot run is no reason to hide the template */
    return hn_chat_source(source, m->file, v, NULL, tools, err);
}

hone_status hone_template_render(const char *source, size_t len, const char *name, const char *context, const char *now,
                                 char **text, size_t *n, hone_error *err)
{
    HN_FLOATS;
    static const char *const trusted[] = { "bos_token", "eos_token", NULL };
    hn_jinja *t = NULL;
    hn_jinja_text out = { 0 };
    hn_jinja_time clock;
    json_t *c = NULL;
    if (text) *text = NULL;
    if (n) *n = 0;
    if (len) HN_NEED(err, source, "a pointer to len bytes");
    HN_NEED(err, name, "a name for messages");
    HN_NEED(err, context, "a JSON object");
    HN_NEED(err, text, "a place for the text");
    HN_NEED(err, n, "a place for its length");
    if (!source) source = "";
    if (now && !hn_jinja_parse_time(&clock, NULL, now))
        return HN_FAIL(err, HONE_E_ARG, "time '%s'; expected one as in 2026-02-03T04:05:06", HN_ESC(now, strlen(now)));
    hone_status st = load(&c, context, "context", 0, NULL, err);
    if (st == HONE_OK && !json_is_object(c))
        st = HN_FAIL(err, HONE_E_ARG, "context: expected a JSON object, variable to value");
    if (st == HONE_OK) st = hn_jinja_parse(&t, source, len, name, NULL, err);
    hn_jinja_vars vars = { .context = c, .trusted = trusted, .trust_roles = true, .now = now ? &clock : NULL };
    if (st == HONE_OK) st = hn_jinja_render(t, &vars, &out, err);
    if (st == HONE_OK) {
        *text = out.text;
        *n = out.len;
        out.text = NULL;
    }
    hn_jinja_text_free(&out);
    hn_jinja_free(t);
    json_decref(c);
    return st;
}

/* ---- answers ------------------------------------------------------------------------------------------------ */

enum { KITS = 16 };

/* Tools as requests offer them: whoever offers the same again shares their grammars, and masks that were computed. */
typedef struct kept_kit {
    char *key;
    hn_call_kit *kit;
    uint64_t used;
} kept_kit;

struct hone_chat_format {
    pthread_mutex_t mu; /* guards kept and clock */
    kept_kit kept[KITS];
    uint64_t clock;
    hn_reply_format f;
    hn_call_format calls;
    const hn_vocab *v;
    char *json;
};

hone_status hone_chat_format_new(hone_chat_format **out, const hone_model *m, const hone_chat_params *p,
                                 hone_error *err)
{
    HN_FLOATS;
    request q = { 0 };
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the format");
    HN_NEED(err, p, "parameters");
    if (!p->chat_template) HN_NEED(err, m, "an open model, or p->chat_template");
    hone_chat_params mine = *p;
    mine.messages = NULL;
    hone_chat_format *f = calloc(1, sizeof *f);
    if (f) pthread_mutex_init(&f->mu, NULL);
    hone_status st = f ? prepare(&q, m, &mine, err) : HN_FAIL(err, HONE_E_NOMEM, "no memory for a chat format");
    if (st == HONE_OK) st = hn_reply_format_make(&f->f, q.t, q.source, &q.chat, q.v, err);
    if (st == HONE_OK) st = hn_call_format_make(&f->calls, q.t, q.source, &q.chat, err);
    if (st == HONE_OK) {
        f->v = q.v;
        json_t *o = hn_reply_format_json(&f->f, q.v), *calls = hn_call_format_json(&f->calls);
        if (!o || !calls || json_object_set(o, "calls", calls) != 0) {
            json_decref(o);
            o = NULL;
        }
        json_decref(calls);
        f->json = o ? hn_json_dump(o, JSON_COMPACT) : NULL;
        json_decref(o);
        if (!f->json) st = HN_FAIL(err, HONE_E_NOMEM, "no memory for a chat format");
    }
    request_free(&q);
    if (st == HONE_OK) *out = f;
    else hone_chat_format_free(f);
    return st;
}

void hone_chat_format_free(hone_chat_format *f)
{
    if (!f) return;
    for (int i = 0; i < KITS; i++) {
        free(f->kept[i].key);
        hn_call_kit_drop(f->kept[i].kit);
    }
    pthread_mutex_destroy(&f->mu);
    free(f->json);
    free(f);
}

const char *hone_chat_format_json(const hone_chat_format *f) { return f ? f->json : NULL; }

hone_status hone_chat_think(const hone_model *m, const hone_chat_params *p, const char *how, char **variables,
                            hone_error *err)
{
    HN_FLOATS;
    request q = { 0 };
    json_t *o = NULL;
    if (variables) *variables = NULL;
    HN_NEED(err, p, "parameters");
    if (!p->chat_template) HN_NEED(err, m, "an open model, or p->chat_template");
    HN_NEED(err, how, "on, off, or an effort");
    HN_NEED(err, variables, "a place for the variables");
    hone_chat_params mine = *p;
    mine.messages = NULL;
    hone_status st = prepare(&q, m, &mine, err);
    if (st == HONE_OK && q.variables && !json_is_object(q.variables))
        st = HN_FAIL(err, HONE_E_ARG, "variables: expected a JSON object");
    if (st == HONE_OK) st = hn_reply_think(&o, q.t, &q.chat, how, err);
    if (st == HONE_OK && !(*variables = hn_json_dump(o, JSON_COMPACT)))
        st = HN_FAIL(err, HONE_E_NOMEM, "no memory for the variables");
    json_decref(o);
    request_free(&q);
    return st;
}

enum { MOST_TOOLS = 1024 };

/* What a kit is made of, malloc'ed. NULL: out of memory. */
static char *kit_key(const hone_reply_params *p)
{
    size_t n = strlen(p->tools) + 8, at = 0;
    for (size_t i = 0; i < p->n_names; i++) n += strlen(p->names[i]) + 1;
    char *key = malloc(n);
    if (!key) return NULL;
    at += (size_t)snprintf(key, n, "%d", p->one_call);
    for (size_t i = 0; i < p->n_names; i++) at += (size_t)snprintf(key + at, n - at, "%c%s", 31, p->names[i]);
    snprintf(key + at, n - at, "%c%c%s", 31, 31, p->tools);
    return key;
}

/* The kit of key, held for the caller; or make (taken over, in place of the one used longest ago). NULL: none. */
static hn_call_kit *keep_kit(hone_chat_format *f, char **key, hn_call_kit *make)
{
    hn_call_kit *found = NULL;
    pthread_mutex_lock(&f->mu);
    kept_kit *oldest = &f->kept[0];
    for (int i = 0; i < KITS && !found; i++) {
        kept_kit *k = &f->kept[i];
        if (k->key && strcmp(k->key, *key) == 0) {
            k->used = ++f->clock;
            found = k->kit;
        }
        if (k->used < oldest->used) oldest = k;
    }
    if (!found && make) {
        free(oldest->key);
        hn_call_kit_drop(oldest->kit);
        *oldest = (kept_kit){ *key, make, ++f->clock };
        *key = NULL;
        found = make;
        make = NULL;
    }
    if (found) hn_call_kit_hold(found);
    pthread_mutex_unlock(&f->mu);
    hn_call_kit_drop(make); /* another thread was faster */
    return found;
}

static hone_status make_kit(hn_call_kit **kit, const hone_reply_params *p, hone_error *err);

/* The tools that p offers, in the format of its template: as they were made before, or anew. */
static hone_status find_kit(hn_call_kit **kit, const hone_reply_params *p, hone_error *err)
{
    char *key = kit_key(p);
    hone_chat_format *f = (hone_chat_format *)p->format; /* what is kept is no part of what it says */
    hone_status st = key ? HONE_OK : HN_FAIL(err, HONE_E_NOMEM, "no memory for tools");
    *kit = key ? keep_kit(f, &key, NULL) : NULL;
    if (st == HONE_OK && !*kit) {
        st = make_kit(kit, p, err);
        if (st == HONE_OK) *kit = keep_kit(f, &key, *kit);
    }
    free(key);
    return st;
}

static hone_status make_kit(hn_call_kit **kit, const hone_reply_params *p, hone_error *err)
{
    json_t *tools = NULL;
    hone_status st = load(&tools, p->tools, "tools", HN_JSON_BIG, NULL, err);
    hn_call_ask ask = {
        .tools = tools, .text = p->tools, .names = p->names, .n_names = p->n_names, .one = p->one_call
    };
    if (st == HONE_OK && json_array_size(tools) > MOST_TOOLS)
        st = HN_FAIL(err, HONE_E_ARG, "%zu tools, expected at most %d", json_array_size(tools), MOST_TOOLS);
    if (st == HONE_OK) st = hn_call_kit_new(kit, &p->format->calls, p->format->v, &ask, err);
    json_decref(tools);
    return st;
}

/* hone_reply is hn_reply under its public name. */
hone_status hone_reply_open(hone_reply **out, const hone_reply_params *p, hone_error *err)
{
    HN_FLOATS;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the answer");
    HN_NEED(err, p, "the parameters");
    HN_NEED(err, p->format, "a chat format");
    HN_NEED(err, p->format->v, "the format of an open model");
    if (p->n_stops > HN_MAX_STOPS)
        return HN_FAIL(err, HONE_E_ARG, "%zu stop strings, expected at most %d", p->n_stops, HN_MAX_STOPS);
    if (p->n_stops) HN_NEED(err, p->stops, "a pointer to n_stops strings");
    HN_NEED_EACH(err, p->stops, p->n_stops, "a string");
    if (p->n_names > MOST_TOOLS)
        return HN_FAIL(err, HONE_E_ARG, "%zu names of tools, expected at most %d", p->n_names, MOST_TOOLS);
    if (p->n_names) HN_NEED(err, p->names, "a pointer to n_names strings");
    HN_NEED_EACH(err, p->names, p->n_names, "the name of a tool");
    if (p->tool_choice > HONE_TOOLS_REQUIRED)
        return HN_FAIL(err, HONE_E_ARG, "tool_choice %d; expected a HONE_TOOLS_…", (int)p->tool_choice);
    if (p->tool_choice == HONE_TOOLS_REQUIRED && !p->tools)
        return HN_FAIL(err, HONE_E_ARG, "tool_choice: a call is required, and there are no tools");
    hone_chat_text none = { 0 };
    const hone_chat_text *prompt = p->prompt ? p->prompt : &none;
    hn_call_kit *kit = NULL;
    hone_status st = HONE_OK;
    if (p->tools && p->tool_choice != HONE_TOOLS_NONE) st = find_kit(&kit, p, err);
    hn_reply_setup s = { .v = p->format->v,
                         .f = &p->format->f,
                         .prompt = prompt->text,
                         .len = prompt->text ? prompt->len : 0,
                         .input = prompt->input,
                         .n_input = prompt->n_input,
                         .stops = p->stops,
                         .n_stops = p->n_stops,
                         .kit = kit,
                         .silent = p->tools && p->tool_choice == HONE_TOOLS_NONE,
                         .required = p->tool_choice == HONE_TOOLS_REQUIRED,
                         .one_call = p->one_call,
                         .id_seed = p->id_seed,
                         .marks_as_text = p->marks_as_text,
                         .form = p->form,
                         .reasoning_budget = p->reasoning_budget };
    if (st == HONE_OK) st = hn_reply_open((hn_reply **)out, &s, err);
    hn_call_kit_drop(kit);
    return st;
}
hone_status hone_reply_new(hone_reply **out, const hone_chat_format *f, const hone_chat_text *prompt,
                           const char *const *stops, size_t n_stops, hone_error *err)
{
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the answer");
    HN_NEED(err, f, "a chat format");
    HN_NEED(err, f->v, "the format of an open model");
    if (n_stops > HN_MAX_STOPS)
        return HN_FAIL(err, HONE_E_ARG, "%zu stop strings, expected at most %d", n_stops, HN_MAX_STOPS);
    if (n_stops) HN_NEED(err, stops, "a pointer to n_stops strings");
    HN_NEED_EACH(err, stops, n_stops, "a string");
    hone_reply_params p = { .format = f, .prompt = prompt, .stops = stops, .n_stops = n_stops, .reasoning_budget = -1 };
    return hone_reply_open(out, &p, err);
}
hone_status hone_reply_mask_within(hone_reply *r, int64_t left, uint64_t *allowed, size_t n_words, bool *all,
                                   hone_error *err)
{
    HN_FLOATS;
    if (all) *all = false;
    HN_NEED(err, r, "an answer");
    if (n_words) HN_NEED(err, allowed, "a pointer to n_words words");
    HN_NEED(err, all, "a place for whether all may come");
    return hn_reply_mask((hn_reply *)r, left, allowed, n_words, all, err);
}

hone_status hone_reply_mask(hone_reply *r, uint64_t *allowed, size_t n_words, bool *all, hone_error *err)
{
    HN_FLOATS;
    if (all) *all = false;
    HN_NEED(err, r, "an answer");
    if (n_words) HN_NEED(err, allowed, "a pointer to n_words words");
    HN_NEED(err, all, "a place for whether all may come");
    return hn_reply_mask((hn_reply *)r, -1, allowed, n_words, all, err);
}
const char *hone_reply_stop(const hone_reply *r) { return r ? hn_reply_stop((const hn_reply *)r) : NULL; }
const char *hone_reply_notes(const hone_reply *r) { return r ? hn_reply_notes((const hn_reply *)r) : NULL; }
void hone_reply_free(hone_reply *r) { hn_reply_free((hn_reply *)r); }
hone_status hone_reply_push(hone_reply *r, int32_t id, const hone_reply_part **parts, size_t *n, hone_reply_end *end,
                            hone_error *err)
{
    HN_FLOATS;
    if (parts) *parts = NULL;
    if (n) *n = 0;
    if (end) *end = HONE_REPLY_GOES_ON;
    HN_NEED(err, r, "an answer");
    HN_NEED(err, parts, "a place for the parts");
    HN_NEED(err, n, "a place for their number");
    HN_NEED(err, end, "a place for whether it ended");
    return hn_reply_push((hn_reply *)r, id, parts, n, end, err);
}
int32_t hone_reply_settled(const hone_reply *r) { return r ? hn_reply_settled((const hn_reply *)r) : 0; }
hone_status hone_reply_flush(hone_reply *r, const hone_reply_part **parts, size_t *n, hone_error *err)
{
    HN_FLOATS;
    if (parts) *parts = NULL;
    if (n) *n = 0;
    HN_NEED(err, r, "an answer");
    HN_NEED(err, parts, "a place for the parts");
    HN_NEED(err, n, "a place for their number");
    return hn_reply_flush((hn_reply *)r, parts, n, err);
}
