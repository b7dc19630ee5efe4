/* chat_calls: tools for models whose template has no place for them. What may be called stands in the system message,
 * with the form of a call; calls that were made, and what came of them, become what assistant and user said. Owns these
 * words; the form itself is call_format.c's, by which calls are read and held. */
#include "base/json_tree.h"
#include "text/call_values.h"
#include "text/calls.h"

#include <stdlib.h>

static const char offered[] = "You can call functions. These are there, each with a JSON schema of its arguments:\n",
                  form[] = "\n\nTo call one or more of them, answer with nothing but a JSON object of this form:\n"
                           "{\"tool_calls\": [{\"name\": \"NAME\", \"arguments\": {}}]}\n"
                           "What they return comes in the next message. Where no function helps, answer in words.",
                  as_taught[] = "\n\nCall them in the form that you know.";

/* What is written: messages, and a user's turn that is still being put together of results. */
typedef struct pen {
    json_t *out;
    hn_grown text, user;
    json_t *names; /* id of a call: name of its function */
    bool open;     /* user */
    hone_status st;
} pen;

static void put(pen *p, hn_grown *to, const char *s, size_t n)
{
    if (p->st == HONE_OK) p->st = hn_grown_put(to, s, n, NULL);
}

static void put_text(pen *p, hn_grown *to, const char *s) { put(p, to, s, strlen(s)); }

/* What a message says. */
static void put_content(pen *p, hn_grown *to, const json_t *m)
{
    json_t *said = hn_chat_said(json_object_get(m, "content"), hn_json_is(json_object_get(m, "role"), "assistant"));
    if (!said) p->st = HONE_E_NOMEM;
    else put(p, to, json_string_value(said), json_string_length(said));
    json_decref(said);
}

static void put_value(pen *p, hn_grown *to, const json_t *v)
{
    char *s = v ? hn_json_dump(v, JSON_COMPACT | JSON_ENCODE_ANY) : strdup("null");
    if (!s) p->st = HONE_E_NOMEM;
    else put_text(p, to, s);
    free(s);
}

/* Takes m. */
static void add(pen *p, json_t *m)
{
    if (p->st == HONE_OK && (!m || json_array_append(p->out, m) != 0)) p->st = HONE_E_NOMEM;
    json_decref(m);
}

static void add_said(pen *p, const char *role, const hn_grown *text)
{
    if (p->st == HONE_OK)
        add(p, json_pack("{s:s, s:o}", "role", role, "content", json_stringn(text->p ? text->p : "", text->n)));
}

static void close_user(pen *p)
{
    if (p->open) add_said(p, "user", &p->user);
    p->open = false;
    p->user.n = 0;
}

static const json_t *function_of(const json_t *o)
{
    const json_t *f = json_object_get(o, "function");
    return json_is_object(f) ? f : o;
}

/* ---- what may be called ---------------------------------------------------------------------------------- */

static void describe(pen *p, const json_t *tools, bool own)
{
    size_t i;
    json_t *tool;
    put_text(p, &p->text, offered);
    json_array_foreach(tools, i, tool)
    {
        put_text(p, &p->text, "\n");
        put_value(p, &p->text, function_of(tool));
    }
    put_text(p, &p->text, own ? form : as_taught);
}

/* The system message, with the tools behind what it says; m NULL: there is none. */
static void add_system(pen *p, const json_t *m, const json_t *tools, bool own)
{
    const json_t *role = json_object_get(m, "role");
    p->text.n = 0;
    put_content(p, &p->text, m);
    if (p->text.n) put_text(p, &p->text, "\n\n");
    describe(p, tools, own);
    add_said(p, m ? json_string_value(role) : "system", &p->text);
}

/* ---- what was called ------------------------------------------------------------------------------------- */

static void put_arguments(pen *p, const json_t *args)
{
    const json_t *text = json_is_string(args) ? args : NULL;
    if (text && json_string_length(text))
        p->st = p->st == HONE_OK
                    ? hn_call_json_or_string(&p->text, json_string_value(text), json_string_length(text), NULL)
                    : p->st;
    else if (json_is_object(args)) put_value(p, &p->text, args);
    else put_text(p, &p->text, "{}");
}

/* The answer with this text, without its calls. */
static void add_as_text(pen *p, const json_t *m)
{
    json_t *copy = json_object(), *content, *value; /* json_copy loses members unnoticed */
    const char *key;
    content = p->st == HONE_OK ? json_stringn(p->text.p, p->text.n) : NULL;
    json_object_foreach((json_t *)m, key, value)
    {
        bool kept = strcmp(key, "tool_calls") != 0 && strcmp(key, "content") != 0;
        if (kept && (!copy || json_object_set(copy, key, value) != 0)) p->st = HONE_E_NOMEM;
    }
    if (!copy || !content || json_object_set(copy, "content", content) != 0) p->st = HONE_E_NOMEM;
    json_decref(content);
    if (p->st == HONE_OK) add(p, copy);
    else json_decref(copy);
}

static void add_answer(pen *p, const json_t *m)
{
    size_t i;
    json_t *call;
    p->text.n = 0;
    put_content(p, &p->text, m);
    if (p->text.n) put_text(p, &p->text, "\n\n");
    put_text(p, &p->text, "{\"tool_calls\": [");
    json_array_foreach(json_object_get(m, "tool_calls"), i, call)
    {
        const json_t *f = function_of(call), *id = json_object_get(call, "id");
        json_t *name = json_object_get(f, "name");
        put_text(p, &p->text, i ? ", {\"name\": " : "{\"name\": ");
        put_value(p, &p->text, name);
        put_text(p, &p->text, ", \"arguments\": ");
        put_arguments(p, json_object_get(f, "arguments"));
        put_text(p, &p->text, "}");
        if (json_is_string(id) && json_is_string(name) && !memchr(json_string_value(id), 0, json_string_length(id)) &&
            json_object_set(p->names, json_string_value(id), name) != 0)
            p->st = HONE_E_NOMEM;
    }
    put_text(p, &p->text, "]}");
    add_as_text(p, m);
}

static void put_keyword_value(pen *p, const json_t *value)
{
    if (json_is_null(value)) put_text(p, &p->text, "None");
    else if (json_is_boolean(value)) put_text(p, &p->text, json_is_true(value) ? "True" : "False");
    else put_value(p, &p->text, value);
}

/* K=V of the member that stands at j; a value with a number that no tree holds is as it came. */
static hone_status put_member(pen *p, hn_jread *j)
{
    hn_jread_text key;
    json_t *value;
    size_t at = p->text.n;
    hone_status st = hn_jread_key(j, &key);
    if (st != HONE_OK) return st;
    put(p, &p->text, key.raw, key.n_raw);
    if (p->st != HONE_OK) return p->st;
    hn_jread_unescape(p->text.p + at, &key);
    p->text.n = at + key.n;
    put_text(p, &p->text, "=");
    hn_jread_peek(j);
    const char *from = j->p;
    if ((st = hn_jread_skip(j)) != HONE_OK) return st;
    st = hn_json_tree(&value, from, (size_t)(j->p - from), NULL, "arguments", NULL);
    if (st == HONE_E_NOMEM) p->st = st;
    else if (st == HONE_OK) put_keyword_value(p, value);
    else put(p, &p->text, from, (size_t)(j->p - from));
    json_decref(value);
    return p->st;
}

/* The same of all members of a text; what is no object is no arguments. */
static void put_members(pen *p, const json_t *text)
{
    const hn_json_rules rules = { .flags = HN_JSON_DIGITS };
    hn_jread j;
    bool more;
    size_t before = p->text.n;
    hone_status st =
        hn_jread_begin(&j, json_string_value(text), json_string_length(text), &rules, "arguments", NULL, NULL);
    if (st == HONE_OK) st = hn_jread_open(&j, '{', &more);
    while (st == HONE_OK && more) {
        st = put_member(p, &j);
        if (st == HONE_OK) st = hn_jread_next(&j, '{', &more);
        if (st == HONE_OK && more) put_text(p, &p->text, ", ");
    }
    if (st == HONE_OK) st = hn_jread_end(&j);
    if (st == HONE_E_NOMEM) p->st = st;
    if (st != HONE_OK) p->text.n = before;
}

/* K=V, and again. */
static void put_keywords(pen *p, const json_t *args)
{
    json_t *read = NULL, *value;
    const char *key, *between = "";
    if (json_is_string(args)) {
        hone_status st =
            hn_json_tree(&read, json_string_value(args), json_string_length(args), NULL, "arguments", NULL);
        if (st == HONE_E_NOMEM) p->st = st;
        else if (st != HONE_OK) put_members(p, args);
        args = read;
    }
    json_object_foreach((json_t *)args, key, value)
    {
        put_text(p, &p->text, between);
        put_text(p, &p->text, key);
        put_text(p, &p->text, "=");
        put_keyword_value(p, value);
        between = ", ";
    }
    json_decref(read);
}

static void add_bracketed(pen *p, const json_t *m)
{
    size_t i;
    json_t *call;
    p->text.n = 0;
    put_content(p, &p->text, m);
    put_text(p, &p->text, HN_CALL_BRACKET);
    json_array_foreach(json_object_get(m, "tool_calls"), i, call)
    {
        const json_t *f = function_of(call), *name = json_object_get(f, "name");
        put_text(p, &p->text, i ? ", " : "");
        if (json_is_string(name)) put(p, &p->text, json_string_value(name), json_string_length(name));
        put_text(p, &p->text, "(");
        put_keywords(p, json_object_get(f, "arguments"));
        put_text(p, &p->text, ")");
    }
    put_text(p, &p->text, HN_CALL_BRACKET_END);
    add_as_text(p, m);
}

static void take_result(pen *p, const json_t *m)
{
    const json_t *id = json_object_get(m, "tool_call_id"), *name = json_object_get(m, "name");
    if (!json_is_string(name)) name = json_is_string(id) ? json_object_get(p->names, json_string_value(id)) : NULL;
    if (p->open) put_text(p, &p->user, "\n\n");
    p->open = true;
    put_text(p, &p->user, "Result");
    if (json_is_string(name)) {
        put_text(p, &p->user, " of ");
        put(p, &p->user, json_string_value(name), json_string_length(name));
    }
    put_text(p, &p->user, ":\n");
    put_content(p, &p->user, m);
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

static void take_message(pen *p, json_t *m)
{
    const json_t *role = json_object_get(m, "role");
    if (hn_json_is(role, "tool")) {
        take_result(p, m);
        return;
    }
    if (p->open && hn_json_is(role, "user")) { /* two turns of one person in a row are not for every template */
        put_text(p, &p->user, "\n\n");
        put_content(p, &p->user, m);
        return;
    }
    close_user(p);
    if (json_array_size(json_object_get(m, "tool_calls"))) add_answer(p, m);
    else add(p, json_incref(m));
}

json_t *hn_chat_own_calls(const json_t *messages, const json_t *tools, bool own)
{
    pen p = { .out = json_array(), .names = json_object() };
    size_t i, n = json_array_size(messages), first = 0;
    if (!p.out || !p.names) p.st = HONE_E_NOMEM;
    if (json_array_size(tools)) {
        const json_t *m = json_array_get(messages, 0), *role = json_object_get(m, "role");
        first = hn_json_is(role, "system") || hn_json_is(role, "developer");
        add_system(&p, first ? m : NULL, tools, own);
    }
    for (i = first; i < n && p.st == HONE_OK; i++) {
        json_t *m = json_array_get(messages, i);
        if (own) take_message(&p, m);
        else add(&p, json_incref(m));
    }
    close_user(&p);
    free(p.text.p);
    free(p.user.p);
    json_decref(p.names);
    if (p.st == HONE_OK) return p.out;
    json_decref(p.out);
    return NULL;
}

json_t *hn_chat_bracketed_calls(const json_t *messages)
{
    pen p = { .out = json_array() };
    size_t i;
    json_t *m;
    if (!p.out) p.st = HONE_E_NOMEM;
    json_array_foreach(messages, i, m)
    {
        if (json_array_size(json_object_get(m, "tool_calls"))) add_bracketed(&p, m);
        else add(&p, json_incref(m));
    }
    free(p.text.p);
    if (p.st == HONE_OK) return p.out;
    json_decref(p.out);
    return NULL;
}
