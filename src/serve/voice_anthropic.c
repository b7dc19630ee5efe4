/* The voice of /v1/messages and its count_tokens. Owns the shapes of Anthropic's API and what becomes of its blocks;
 * refuses to know models. */
#include "serve/ask_fields.h"
#include "serve/voice_parts.h"

#include <stdlib.h>

/* ---- body to ask ------------------------------------------------------------------------- */

static bool read_stops(hn_fields *f, const json_t *v, const char *path)
{
    char at[HN_ASK_PATH];
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array of strings");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *s = json_array_get(v, i);
        if (json_is_string(s) && !json_string_length(s))
            return hn_field_range(f, hn_field_element(at, path, i), s, "a string that is not empty");
    }
    return hn_field_stop(f, v, path);
}

/* {"type":"enabled","budget_tokens":N} | disabled | adaptive | between_tools */
static bool read_thinking(hn_fields *f, const json_t *o, const char *path)
{
    static const char *const types[] = { "enabled", "disabled", "adaptive", "between_tools", NULL };
    static const hn_field fields[] = {
        { .name = "type", .kind = HN_FIELD_LATER },
        { .name = "budget_tokens", .kind = HN_FIELD_LATER },
        { .name = "display", .kind = HN_FIELD_PASSED },
        { 0 },
    };
    char at[HN_ASK_PATH];
    const char *type;
    const json_t *budget = hn_field_get(o, "budget_tokens");
    if (!hn_fields_read(f, o, path, (const hn_field *const[]){ fields, NULL })) return false;
    if (!hn_field_type(f, o, path, &type)) return false;
    if (!hn_field_one_of(f, hn_field_get(o, "type"), hn_field_path(at, path, "type"), types, &type)) return false;
    bool enabled = type == types[0], disabled = type == types[1];
    if (disabled || (enabled && !f->ask->effort)) {
        f->ask->effort = disabled ? "off" : "on";
        if (!hn_field_effort_by(f, path)) return false;
    }
    if (!enabled || !budget) return true;
    hn_field_path(at, path, "budget_tokens");
    return hn_field_int(f, budget, at, 1, INT64_MAX, &f->ask->reasoning_budget);
}

static bool read_output_format(hn_fields *f, const json_t *o, const char *path)
{
    static const char *const types[] = { "json_schema", NULL };
    char at[HN_ASK_PATH];
    const char *type;
    const json_t *schema = hn_field_get(o, "schema");
    if (!hn_field_type(f, o, path, &type)) return false;
    if (!hn_field_one_of(f, hn_field_get(o, "type"), hn_field_path(at, path, "type"), types, &type)) return false;
    hn_field_path(at, path, "schema");
    return schema ? hn_field_schema(f, schema, at) : hn_field_missing(f, at, "a JSON schema");
}

static bool read_output_effort(hn_fields *f, const json_t *v, const char *path)
{
    const char *before = f->ask->effort, *said_by = f->ask->effort_param;
    if (!hn_field_effort(f, v, path)) return false;
    if (!before || strcmp(before, "off") != 0) return true;
    f->ask->effort = before; /* thinking is disabled */
    f->ask->effort_param = said_by;
    return true;
}

static bool read_output_config(hn_fields *f, const json_t *o, const char *path)
{
    static const hn_field fields[] = {
        { .name = "effort", .kind = HN_FIELD_CALL, .fn = read_output_effort },
        { .name = "format", .kind = HN_FIELD_CALL, .fn = read_output_format },
        { 0 },
    };
    return hn_fields_read(f, o, path, (const hn_field *const[]){ fields, NULL });
}

static bool read_max_tokens(hn_fields *f, const json_t *v, const char *path)
{
    return hn_field_int(f, v, path, 1, INT64_MAX, &f->ask->max_tokens);
}

#define PASSED(text)                          \
    {                                         \
        .name = text, .kind = HN_FIELD_PASSED \
    }

static const hn_field message_api[] = {
    { .name = "model", .kind = HN_FIELD_TEXT, HN_AT(model) },
    { .name = "messages", .kind = HN_FIELD_LATER },
    { .name = "system", .kind = HN_FIELD_LATER },
    { .name = "tools", .kind = HN_FIELD_LATER },
    { .name = "tool_choice", .kind = HN_FIELD_LATER },
    { .name = "max_tokens", .kind = HN_FIELD_CALL, .fn = read_max_tokens },
    { .name = "stream", .kind = HN_FIELD_BOOL, HN_AT(stream) },
    { .name = "stop_sequences", .kind = HN_FIELD_CALL, .fn = read_stops },
    { .name = "temperature", .kind = HN_FIELD_REAL, HN_AT(sampling.temp), .lo = 0, .hi = 1 },
    { .name = "thinking", .kind = HN_FIELD_CALL, .fn = read_thinking },
    { .name = "output_config", .kind = HN_FIELD_CALL, .fn = read_output_config },
    { .name = "output_format", .kind = HN_FIELD_CALL, .fn = read_output_format },
    { .name = "container", .kind = HN_FIELD_REFUSED },
    { .name = "mcp_servers", .kind = HN_FIELD_NEUTRAL, .why = "hone reaches no other servers" },
    { .name = "n", .kind = HN_FIELD_NEUTRAL, .lo = 1, .hi = 1 },
    { .name = "n_cmpl", .kind = HN_FIELD_NEUTRAL, .lo = 1, .hi = 1 },
    { .name = "stop", .kind = HN_FIELD_REFUSED, .why = "expected stop_sequences" },
    PASSED("speed"),
    PASSED("diagnostics"),
    PASSED("cache_control"),
    PASSED("metadata"),
    PASSED("service_tier"),
    PASSED("context_management"),
    PASSED("inference_geo"),
    { 0 },
};

/* ---- conversations ----------------------------------------------------------------------- */

/* The text of a block, and where it is. */
static bool block_text(hn_fields *f, const json_t *block, const char *path, const char *name, const json_t **s)
{
    char at[HN_ASK_PATH];
    *s = hn_field_get(block, name);
    hn_field_path(at, path, name);
    if (!*s) return hn_field_missing(f, at, "a string");
    return json_is_string(*s) || hn_field_wrong(f, at, *s, "a string");
}

/* Refuses a block or a source of this type. */
static bool refuse_type(hn_fields *f, const char *type, const char *path, const char *expected)
{
    char at[HN_ASK_PATH], why[400];
    snprintf(why, sizeof why, "hone reads text and this is '%s'; expected %s", HN_ESC(type, strlen(type)), expected);
    return hn_field_refused(f, hn_field_path(at, path, "type"), why);
}

/* A line of what stands in front of a document, if o has it. */
static bool add_line(hn_fields *f, hn_bytes *to, const json_t *o, const char *path, const char *name)
{
    char at[HN_ASK_PATH];
    const json_t *v = hn_field_get(o, name);
    if (!v) return true;
    if (!json_is_string(v)) return hn_field_wrong(f, hn_field_path(at, path, name), v, "a string");
    hn_bytes_add(to, json_string_value(v), json_string_length(v));
    if (json_string_length(v)) hn_bytes_text(to, "\n");
    return true;
}

/* A string, or blocks of text on lines of their own. */
static bool add_texts(hn_fields *f, hn_bytes *to, const json_t *v, const char *path)
{
    if (json_is_string(v)) hn_bytes_add(to, json_string_value(v), json_string_length(v));
    else if (!json_is_array(v)) return hn_field_wrong(f, path, v, "a string or an array of blocks");
    for (size_t i = 0; i < json_array_size(v); i++) {
        char at[HN_ASK_PATH];
        const char *type;
        const json_t *block = json_array_get(v, i), *s;
        if (!hn_field_type(f, block, hn_field_element(at, path, i), &type)) return false;
        if (strcmp(type, "text") != 0) return refuse_type(f, type, at, "blocks of type text");
        if (!block_text(f, block, at, "text", &s)) return false;
        if (i) hn_bytes_text(to, "\n");
        hn_bytes_add(to, json_string_value(s), json_string_length(s));
    }
    return true;
}

/* {"type":"text","media_type":"text/plain","data"} | {"type":"content","content"} */
static bool add_source(hn_fields *f, hn_bytes *to, const json_t *block, const char *path)
{
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    const char *type;
    const json_t *o = hn_field_get(block, "source"), *media = hn_field_get(o, "media_type"), *v;
    hn_field_path(at, path, "source");
    if (!o) return hn_field_missing(f, at, "an object");
    if (!hn_field_type(f, o, at, &type)) return false;
    if (strcmp(type, "content") == 0) {
        v = hn_field_get(o, "content");
        hn_field_path(sub, at, "content");
        return v ? add_texts(f, to, v, sub) : hn_field_missing(f, sub, "a string or an array of blocks");
    }
    if (strcmp(type, "text") != 0) return refuse_type(f, type, at, "a source of type text or content");
    if (media && strcmp(hn_json_text_of(o, "media_type"), "text/plain") != 0)
        return hn_field_range(f, hn_field_path(sub, at, "media_type"), media, "text/plain");
    if (!block_text(f, o, at, "data", &v)) return false;
    hn_bytes_add(to, json_string_value(v), json_string_length(v));
    return true;
}

/* A document or the result of a search: its title and what else is said of it, a line each, and its text. Answers cite
 * nothing. */
static bool read_document(hn_turns *t, const json_t *block, const char *path, bool search)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    hn_bytes text = { 0 };
    const json_t *content = hn_field_get(block, "content");
    bool ok =
        add_line(f, &text, block, path, "title") && add_line(f, &text, block, path, search ? "source" : "context");
    hn_field_path(at, path, "content");
    if (ok && search)
        ok = content ? add_texts(f, &text, content, at) : hn_field_missing(f, at, "an array of blocks of type text");
    else if (ok) ok = add_source(f, &text, block, path);
    if (ok && json_is_true(hn_field_get(hn_field_get(block, "citations"), "enabled")))
        hn_field_ignored(f, hn_field_path(at, path, "citations"));
    if (ok && text.lost) ok = hn_field_lost(f);
    if (ok) hn_turn_text(t, text.p ? text.p : "", text.n);
    hn_bytes_free(&text);
    return ok;
}

/* A block of text into the open turn. documents: those that are text, too. first: what stands in place of the text;
 * NULL: itself. */
static bool read_block(hn_turns *t, const json_t *block, const char *type, const char *path, const char *first,
                       const char *documents)
{
    const json_t *s;
    bool search = strcmp(type, "search_result") == 0;
    if (documents && (search || strcmp(type, "document") == 0)) return read_document(t, block, path, search);
    if (strcmp(type, "text") != 0) return refuse_type(t->f, type, path, documents ? documents : "blocks of type text");
    if (!block_text(t->f, block, path, "text", &s)) return false;
    hn_turn_text(t, first ? first : json_string_value(s), json_string_length(s));
    return true;
}

/* A string, or blocks of text, into the open turn. first: what stands in place of the first text; NULL: itself.
 * documents: what is expected where these are taken, too; NULL: they are not. */
static bool read_texts(hn_turns *t, const json_t *v, const char *path, const char *first, const char *documents)
{
    hn_fields *f = t->f;
    if (json_is_string(v)) {
        hn_turn_text(t, first ? first : json_string_value(v), json_string_length(v));
        return true;
    }
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "a string or an array of blocks");
    for (size_t i = 0; i < json_array_size(v); i++) {
        char at[HN_ASK_PATH];
        const char *type;
        const json_t *block = json_array_get(v, i);
        if (!hn_field_type(f, block, hn_field_element(at, path, i), &type)) return false;
        if (!read_block(t, block, type, at, i == 0 ? first : NULL, documents)) return false;
    }
    return true;
}

/* The system prompt. Claude Code begins it with a line whose mark cch=XXXXX; is another in each request, and would keep
 * every conversation from sharing its prefix with the one before: the mark becomes fffff. */
static bool read_system(hn_turns *t, const json_t *v)
{
    static const char billing[] = "x-anthropic-billing-header:", mark[] = "cch=";
    enum { MARK = 5 };
    hn_fields *f = t->f;
    const json_t *first = json_is_array(v) ? hn_field_get(json_array_get(v, 0), "text") : v;
    size_t n = json_string_length(first);
    const char *s = json_string_value(first);
    if (!v) return true;
    hn_turn_open(t, "system");
    if (!s || n < sizeof billing - 1 || memcmp(s, billing, sizeof billing - 1) != 0) {
        if (!read_texts(t, v, "system", NULL, NULL)) return false;
        hn_turn_drop_empty(t);
        return true;
    }

    char *own = hn_arena_strndup(f->ask->arena, s, n);
    if (!own) return hn_field_lost(f);
    char *at = strstr(own, mark);
    if (at && strlen(at) >= sizeof mark + MARK && at[sizeof mark - 1 + MARK] == ';')
        memset(at + sizeof mark - 1, 'f', MARK);
    return read_texts(t, v, "system", own, NULL);
}

/* An id that an answer of ours had here (tool_use), as the model and the other APIs have it; others' stay. */
static bool own_id(hn_fields *f, const char **id)
{
    static const char mark[] = "toolu_", usual[] = "call_";
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    enum { MARK = sizeof mark - 1, USUAL = 24 }; /* letters and digits behind call_ in the ids that are made here */
    if (strncmp(*id, mark, MARK) != 0 || !(*id)[MARK]) return true;
    const char *rest = *id + MARK;
    size_t n = strlen(rest);
    if (n != USUAL || strspn(rest, letters) != n) { /* functions.get_weather:12 has as many bytes */
        *id = rest;
        return true;
    }
    char *own = hn_arena_alloc(f->ask->arena, sizeof usual + n);
    if (!own) return hn_field_lost(f);
    memcpy(own, usual, sizeof usual - 1);
    memcpy(own + sizeof usual - 1, rest, n + 1);
    *id = own;
    return true;
}

static bool read_result(hn_turns *t, const json_t *block, const char *path)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *id;
    const json_t *v = hn_field_get(block, "tool_use_id");
    hn_field_path(at, path, "tool_use_id");
    if (!v) return hn_field_missing(f, at, "the id of the call it answers");
    if (!hn_field_text(f, v, at, &id) || !own_id(f, &id)) return false;
    hn_turn_open(t, "tool");
    if (!hn_turn_answers(t, id)) return hn_field_range(f, at, v, "the id of a tool_use in a message before");
    v = hn_field_get(block, "content");
    return !v || read_texts(t, v, hn_field_path(at, path, "content"), NULL, "text, document or search_result");
}

static bool read_use(hn_turns *t, const json_t *block, const char *path)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *id, *name, *input = "{}";
    const json_t *v = hn_field_get(block, "id");
    hn_field_path(at, path, "id");
    if (!v) return hn_field_missing(f, at, "a string");
    if (!hn_field_text(f, v, at, &id) || !own_id(f, &id)) return false;
    hn_field_path(at, path, "name");
    if (!(v = hn_field_get(block, "name"))) return hn_field_missing(f, at, "a string");
    if (!hn_field_text(f, v, at, &name)) return false;
    if ((v = hn_field_get(block, "input"))) {
        if (!hn_field_object(f, v, hn_field_path(at, path, "input")) || !hn_field_json(f, v, &input)) return false;
    }
    return hn_turn_call(t, id, name, input, strlen(input));
}

static bool read_answer_block(hn_turns *t, const json_t *block, const char *type, const char *path)
{
    const json_t *s;
    hn_turn_join(t, "assistant");
    if (strcmp(type, "tool_use") == 0) return read_use(t, block, path);
    if (strcmp(type, "redacted_thinking") == 0) return true;
    if (strcmp(type, "thinking") == 0) {
        if (!block_text(t->f, block, path, "thinking", &s)) return false;
        hn_turn_reasoning(t, json_string_value(s), json_string_length(s));
        return true;
    }
    if (strcmp(type, "text") != 0) return refuse_type(t->f, type, path, "text, thinking or tool_use");
    if (!block_text(t->f, block, path, "text", &s)) return false;
    hn_turn_text(t, json_string_value(s), json_string_length(s));
    return true;
}

/* results: those blocks alone, which come before what the user says; else the others. */
static bool read_user_block(hn_turns *t, const json_t *block, const char *type, const char *path, bool results)
{
    bool result = strcmp(type, "tool_result") == 0;
    if (result != results) return true;
    if (result) return read_result(t, block, path);
    hn_turn_join(t, "user");
    return read_block(t, block, type, path, NULL, "text, document, search_result or tool_result");
}

/* What the system says between turns: text, where it stands. How long it is to be shown, and another effort from there
 * on, are named among what is passed over. */
static bool read_system_message(hn_turns *t, const json_t *m, const json_t *content, const char *path)
{
    char at[HN_ASK_PATH];
    const json_t *clear = hn_field_get(m, "clear_at"), *config = hn_field_get(m, "output_config");
    bool never = clear && strcmp(hn_json_text_of(m, "clear_at"), "never") == 0;
    if (clear && !never) hn_field_ignored(t->f, hn_field_path(at, path, "clear_at"));
    if (json_object_size(config)) hn_field_ignored(t->f, hn_field_path(at, path, "output_config"));
    hn_field_path(at, path, "content");
    if (!content) return json_object_size(config) || hn_field_missing(t->f, at, "a string or an array of blocks");
    hn_turn_join(t, "system");
    return read_texts(t, content, at, NULL, NULL);
}

static bool read_message(hn_turns *t, const json_t *m, const char *path)
{
    static const char *const roles[] = { "user", "assistant", "system", NULL };
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *role, *type;
    if (!hn_field_object(f, m, path)) return false;
    const json_t *v = hn_field_get(m, "role"), *content = hn_field_get(m, "content");
    hn_field_path(at, path, "role");
    if (!v) return hn_field_missing(f, at, "user, assistant or system");
    if (!hn_field_one_of(f, v, at, roles, &role)) return false;
    if (role == roles[2]) return read_system_message(t, m, content, path);
    hn_field_path(at, path, "content");
    if (!content) return hn_field_missing(f, at, "a string or an array of blocks");
    if (json_is_string(content)) {
        hn_turn_join(t, role);
        return read_texts(t, content, at, NULL, NULL);
    }
    if (!json_is_array(content)) return hn_field_wrong(f, at, content, "a string or an array of blocks");
    size_t n = json_array_size(content);
    if (n == 0) hn_turn_join(t, role);
    for (int pass = 0; pass < (role == roles[0] ? 2 : 1); pass++) {
        for (size_t i = 0; i < n; i++) {
            const json_t *block = json_array_get(content, i);
            if (!hn_field_type(f, block, hn_field_element(sub, at, i), &type)) return false;
            bool ok = role == roles[0] ? read_user_block(t, block, type, sub, pass == 0)
                                       : read_answer_block(t, block, type, sub);
            if (!ok) return false;
        }
    }
    return true;
}

static bool read_conversation(hn_turns *t)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const json_t *list = hn_field_get(f->root, "messages");
    if (!list) return hn_field_missing(f, "messages", "an array of messages");
    if (!json_is_array(list)) return hn_field_wrong(f, "messages", list, "an array of messages");
    if (json_array_size(list) == 0) return hn_field_missing(f, "messages", "at least one message");
    if (!read_system(t, hn_field_get(f->root, "system"))) return false;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_message(t, json_array_get(list, i), hn_field_element(at, "messages", i))) return false;
    return true;
}

/* ---- tools ------------------------------------------------------------------------------- */

static bool read_tools(hn_tools *t)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const json_t *list = hn_field_get(f->root, "tools");
    if (!list) return true;
    if (!json_is_array(list)) return hn_field_wrong(f, "tools", list, "an array of tools");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *o = json_array_get(list, i), *type = hn_field_get(o, "type");
        hn_field_element(at, "tools", i);
        if (!hn_field_object(f, o, at)) return false;
        if (type && strcmp(hn_json_text_of(o, "type"), "custom") != 0) {
            if (!hn_tool_other(t, at, "custom")) return false;
            continue;
        }
        if (!hn_tool_add(t, o, "input_schema", at)) return false;
    }
    return true;
}

static bool read_choice(hn_tools *t)
{
    static const char *const types[] = { "auto", "any", "none", "tool", NULL };
    static const hn_tool_choice choices[] = { HN_TOOLS_AUTO, HN_TOOLS_REQUIRED, HN_TOOLS_NONE, HN_TOOLS_AUTO };
    hn_fields *f = t->f;
    const char *type;
    const json_t *o = hn_field_get(f->root, "tool_choice"), *v;
    if (!o) return true;
    if (!hn_field_type(f, o, "tool_choice", &type)) return false;
    if (!hn_field_one_of(f, hn_field_get(o, "type"), "tool_choice.type", types, &type)) return false;
    for (size_t i = 0; types[i]; i++)
        if (type == types[i]) f->ask->tool_choice = choices[i];
    if (type == types[3] && !hn_tool_pick(t, hn_field_get(o, "name"), "tool_choice.name")) return false;
    if (!(v = hn_field_get(o, "disable_parallel_tool_use"))) return true;
    bool one;
    if (!hn_field_bool(f, v, "tool_choice.disable_parallel_tool_use", &one)) return false;
    f->ask->parallel_calls = !one;
    return true;
}

static bool read_body(hn_fields *f)
{
    static const hn_field *const tables[] = { message_api, hn_fields_sampling, hn_fields_own, NULL };
    hn_ask *a = f->ask;
    hn_turns turns = { .f = f };
    hn_tools tools = { .f = f };
    a->sampling.temp = 1;
    if (!hn_fields_read(f, f->root, "", tables) || !hn_fields_chain(f)) return false;
    if (!a->effort && !hn_field_get(f->root, "thinking")) { /* programs that ask for no thoughts expect none */
        a->effort = "off";
        a->effort_unsaid = true;
    }
    if (a->kind == HN_ASK_CHAT && !hn_field_get(f->root, "max_tokens"))
        return hn_field_missing(f, "max_tokens", "a number of tokens, at least 1");
    return hn_turns_end(&turns, read_conversation(&turns)) &&
           hn_tools_end(&tools, read_tools(&tools) && read_choice(&tools));
}

static bool parse_as(hn_ask *a, hn_ask_kind kind, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = kind;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_body(&f));
}

static bool parse(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return parse_as(a, HN_ASK_CHAT, body, len, l, r);
}

static bool parse_count(hn_ask *a, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    return parse_as(a, HN_ASK_COUNT, body, len, l, r);
}

/* ---- pieces ------------------------------------------------------------------------------ */

/* "usage":{…}; what came from the cache is told apart. */
static void usage(hn_bytes *o, const hn_usage *u)
{
    hn_bytes_printf(o,
                    "\"usage\":{\"input_tokens\":%d,\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":%d,"
                    "\"output_tokens\":%d,\"output_tokens_details\":{\"thinking_tokens\":%d}}",
                    u->prompt - u->cached, u->cached, u->completion, u->reasoning);
}

/* A message up to its content's bracket. */
static void head(hn_bytes *o, const hn_head *h)
{
    hn_bytes_text(o, "{\"id\":\"msg_");
    hn_bytes_escaped(o, h->id, strlen(h->id));
    hn_bytes_text(o, "\",\"type\":\"message\",\"role\":\"assistant\"");
    hn_part_text(o, "model", h->model);
    hn_bytes_text(o, ",\"content\":[");
}

/* "stop_reason":…,"stop_sequence":… */
static void reason(hn_bytes *o, hn_why why, const char *word, int32_t calls)
{
    static const char *const reasons[] = {
        [HN_WHY_EOG] = "end_turn",      [HN_WHY_WORD] = "stop_sequence",
        [HN_WHY_LENGTH] = "max_tokens", [HN_WHY_CONTEXT] = "model_context_window_exceeded",
        [HN_WHY_CALLS] = "tool_use",
    };
    if (calls > 0 && (why == HN_WHY_EOG || why == HN_WHY_WORD)) why = HN_WHY_CALLS;
    hn_part_text(o, "stop_reason", reasons[why]);
    hn_part_text(o, "stop_sequence", why == HN_WHY_WORD ? word : NULL);
}

/* Ids of calls begin as this API's do. */
static void tool_use(hn_bytes *o, const hn_say *s)
{
    const char *id = s->call_id ? s->call_id : "";
    if (strncmp(id, "call_", 5) == 0) id += 5;
    hn_bytes_text(o, "{\"type\":\"tool_use\",\"id\":\"toolu_");
    hn_bytes_escaped(o, id, strlen(id));
    hn_bytes_text(o, "\"");
    hn_part_text(o, "name", s->name);
    hn_bytes_text(o, ",\"input\":");
}

/* ---- a stream ---------------------------------------------------------------------------- */

typedef struct messages_state {
    int32_t index;    /* of the block that is open, or comes next */
    hn_say_kind open; /* TEXT, REASONING or CALL; END: none */
    int32_t calls;    /* complete ones */
    hn_why why;
    char *word; /* the stop string */
} messages_state;

static void event(hn_bytes *o, const char *type)
{
    hn_bytes_printf(o, "event: %s\ndata: {\"type\":\"%s\"", type, type);
}

static void event_end(hn_bytes *o) { hn_bytes_text(o, "}\n\n"); }

static void drop(void *state)
{
    messages_state *st = state;
    if (!st) return;
    free(st->word);
    free(st);
}

static bool begin(const hn_ask *a, const hn_head *h, hn_bytes *o, void **state)
{
    messages_state *st = calloc(1, sizeof *st);
    *state = st;
    if (!st) return false;
    st->open = HN_SAY_END;
    st->why = HN_WHY_LENGTH;
    event(o, "message_start");
    hn_bytes_text(o, ",\"message\":");
    head(o, h);
    hn_bytes_text(o, "],\"stop_reason\":null,\"stop_sequence\":null,");
    usage(o, &(hn_usage){ .prompt = a->n_prompt_tokens });
    hn_bytes_text(o, "}");
    event_end(o);
    return hn_bytes_ok(o);
}

static void close_block(messages_state *st, hn_bytes *o)
{
    if (st->open == HN_SAY_END) return;
    if (st->open == HN_SAY_REASONING) {
        event(o, "content_block_delta");
        hn_bytes_printf(o, ",\"index\":%d,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"\"}", st->index);
        event_end(o);
    }
    event(o, "content_block_stop");
    hn_bytes_printf(o, ",\"index\":%d", st->index++);
    event_end(o);
    st->open = HN_SAY_END;
}

/* A block of this kind, which s begins. */
static void open_block(messages_state *st, const hn_say *s, hn_bytes *o)
{
    if (st->open == s->kind && s->kind != HN_SAY_CALL) return;
    close_block(st, o);
    st->open = s->kind;
    event(o, "content_block_start");
    hn_bytes_printf(o, ",\"index\":%d,\"content_block\":", st->index);
    if (s->kind == HN_SAY_TEXT) hn_bytes_text(o, "{\"type\":\"text\",\"text\":\"\"}");
    if (s->kind == HN_SAY_REASONING) hn_bytes_text(o, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}");
    if (s->kind == HN_SAY_CALL) {
        tool_use(o, s);
        hn_bytes_text(o, "{}}");
    }
    event_end(o);
}

/* A delta of s [n], which belong together. */
static void delta(messages_state *st, const hn_say *s, size_t n, hn_bytes *o)
{
    static const char *const types[] = { [HN_SAY_TEXT] = "\"text_delta\",\"text\":",
                                         [HN_SAY_REASONING] = "\"thinking_delta\",\"thinking\":",
                                         [HN_SAY_ARGUMENTS] = "\"input_json_delta\",\"partial_json\":" };
    event(o, "content_block_delta");
    hn_bytes_printf(o, ",\"index\":%d,\"delta\":{\"type\":%s", st->index, types[s->kind]);
    hn_say_joined(o, s, n, s->prompt, s->choice, s->kind, -1);
    hn_bytes_text(o, "}");
    event_end(o);
}

static bool say(const hn_ask *a, const hn_head *h, void *state, const hn_say *s, size_t n, hn_bytes *o)
{
    messages_state *st = state;
    for (size_t i = 0, k; i < n; i += k) {
        k = hn_say_run(s + i, n - i);
        switch (s[i].kind) {
        case HN_SAY_TEXT:
        case HN_SAY_REASONING:
            open_block(st, s + i, o);
            delta(st, s + i, k, o);
            break;
        case HN_SAY_CALL: open_block(st, s + i, o); break;
        case HN_SAY_ARGUMENTS: delta(st, s + i, k, o); break;
        case HN_SAY_CALL_END:
            st->calls++;
            close_block(st, o);
            break;
        case HN_SAY_END:
            close_block(st, o);
            st->why = s[i].why;
            if (s[i].why != HN_WHY_WORD || !s[i].stop_word) break;
            if (!(st->word = strdup(s[i].stop_word))) return false;
            break;
        case HN_SAY_ALIVE:
            event(o, "ping");
            event_end(o);
            break;
        case HN_SAY_ECHO:
        case HN_SAY_PROGRESS: break;
        }
    }
    return hn_bytes_ok(o);
}

static bool end(const hn_ask *a, const hn_head *h, void *state, const hn_usage *u, hn_bytes *o)
{
    messages_state *st = state;
    close_block(st, o);
    event(o, "message_delta");
    hn_bytes_text(o, ",\"delta\":{");
    reason(o, st->why, st->word, st->calls);
    hn_bytes_text(o, "},");
    usage(o, u);
    event_end(o);
    event(o, "message_stop");
    event_end(o);
    return hn_bytes_ok(o);
}

static bool fail(const hn_ask *a, const hn_head *h, void *state, const hn_refusal *r, hn_bytes *o)
{
    hn_bytes_text(o, "event: error\ndata: ");
    hn_refusal_body("/v1/messages", r, h->request_id, o);
    hn_bytes_text(o, "\n\n");
    return hn_bytes_ok(o);
}

/* ---- no stream --------------------------------------------------------------------------- */

/* Blocks as a stream would open them. */
static void blocks(hn_bytes *o, const hn_say *s, size_t n)
{
    hn_say_kind open = HN_SAY_END;
    for (size_t i = 0, k; i < n; i += k) {
        k = hn_say_run(s + i, n - i);
        bool text = s[i].kind == HN_SAY_TEXT || s[i].kind == HN_SAY_REASONING;
        if (text && open != s[i].kind) {
            if (open != HN_SAY_END) hn_bytes_text(o, open == HN_SAY_REASONING ? "\",\"signature\":\"\"}" : "\"}");
            hn_bytes_comma(o);
            hn_bytes_text(o, s[i].kind == HN_SAY_TEXT ? "{\"type\":\"text\",\"text\":\""
                                                      : "{\"type\":\"thinking\",\"thinking\":\"");
            open = s[i].kind;
        }
        for (size_t e = 0; text && e < k; e++) hn_bytes_escaped(o, s[i + e].text, s[i + e].len);
        if (s[i].kind != HN_SAY_CALL && s[i].kind != HN_SAY_END) continue;
        if (open != HN_SAY_END) hn_bytes_text(o, open == HN_SAY_REASONING ? "\",\"signature\":\"\"}" : "\"}");
        open = HN_SAY_END;
        if (s[i].kind == HN_SAY_END) break;
        hn_bytes arguments = { 0 };
        hn_say_raw(&arguments, s, n, s[i].prompt, s[i].choice, HN_SAY_ARGUMENTS, s[i].call);
        hn_bytes_comma(o);
        tool_use(o, s + i);
        hn_arguments_object(o, arguments.p, arguments.n);
        hn_bytes_text(o, "}");
        o->lost |= arguments.lost;
        hn_bytes_free(&arguments);
    }
    if (open != HN_SAY_END) hn_bytes_text(o, open == HN_SAY_REASONING ? "\",\"signature\":\"\"}" : "\"}");
}

static bool whole(const hn_ask *a, const hn_head *h, const hn_say *s, size_t n, const hn_usage *u, hn_bytes *o)
{
    const hn_say *last = hn_say_last(s, n, 0, 0);
    head(o, h);
    blocks(o, s, n);
    hn_bytes_text(o, "]");
    reason(o, last->why, last->stop_word, hn_say_calls(s, n, 0, 0, true));
    hn_bytes_text(o, ",");
    usage(o, u);
    hn_bytes_text(o, "}");
    return hn_bytes_ok(o);
}

static bool found(const hn_ask *a, const hn_head *h, const hn_found *f, hn_bytes *o)
{
    hn_bytes_printf(o, "{\"input_tokens\":%d}", f->n_tokens);
    return hn_bytes_ok(o);
}

const hn_voice hn_voice_messages = {
    .name = "anthropic.messages",
    .stream_type = hn_sse,
    .parse = parse,
    .begin = begin,
    .say = say,
    .end = end,
    .fail = fail,
    .drop = drop,
    .whole = whole,
};

const hn_voice hn_voice_messages_count = { .name = "anthropic.count", .parse = parse_count, .found = found };
