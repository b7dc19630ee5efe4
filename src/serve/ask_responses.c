/* Bodies of /v1/responses: items of a conversation, flat tools, text.format. Owns what these fields may be and what is
 * repeated of them in the answer; refuses to know how that is said. */
#include "serve/ask_fields.h"
#include "serve/voice_responses.h"

/* ---- fields ------------------------------------------------------------------------------ */

static bool read_reasoning(hn_fields *f, const json_t *o, const char *path)
{
    static const hn_field fields[] = {
        { .name = "effort", .kind = HN_FIELD_CALL, .fn = hn_field_effort },
        { .name = "summary", .kind = HN_FIELD_PASSED },
        { .name = "generate_summary", .kind = HN_FIELD_PASSED },
        { .name = "context", .kind = HN_FIELD_PASSED },
        { 0 },
    };
    return hn_fields_read(f, o, path, (const hn_field *const[]){ fields, NULL });
}

static bool read_format(hn_fields *f, const json_t *o, const char *path)
{
    static const char *const types[] = { "text", "json_object", "json_schema", NULL };
    char at[HN_ASK_PATH];
    const char *type;
    const json_t *v;
    if (!hn_field_type(f, o, path, &type)) return false;
    if (!hn_field_one_of(f, hn_field_get(o, "type"), hn_field_path(at, path, "type"), types, &type)) return false;
    if (type == types[0]) return true;
    if (type == types[1]) return hn_field_form(f, path, HONE_GRAMMAR_JSON_OBJECT, NULL);
    hn_field_path(at, path, "schema");
    if (!(v = hn_field_get(o, "schema"))) return hn_field_missing(f, at, "a JSON schema");
    if (!hn_field_schema(f, v, at)) return false;
    v = hn_field_get(o, "strict");
    return !v || hn_field_bool(f, v, hn_field_path(at, path, "strict"), &f->ask->form.strict);
}

static bool read_text(hn_fields *f, const json_t *o, const char *path)
{
    static const hn_field fields[] = {
        { .name = "format", .kind = HN_FIELD_CALL, .fn = read_format },
        { .name = "verbosity", .kind = HN_FIELD_PASSED },
        { 0 },
    };
    return hn_fields_read(f, o, path, (const hn_field *const[]){ fields, NULL });
}

static bool read_include(hn_fields *f, const json_t *v, const char *path)
{
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array of strings");
    for (size_t i = 0; i < json_array_size(v); i++) {
        char at[HN_ASK_PATH];
        const char *s;
        if (!hn_field_text(f, json_array_get(v, i), hn_field_element(at, path, i), &s)) return false;
        if (strcmp(s, "message.output_text.logprobs") == 0) {
            if (f->ask->top_logprobs < 0) f->ask->top_logprobs = 0;
        } else if (strcmp(s, "reasoning.encrypted_content") != 0) {
            hn_field_ignored(f, at); /* of tools that hone does not run */
        }
    }
    return true;
}

static bool read_top(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (!hn_field_int(f, v, path, 0, HN_ASK_TOP, &n)) return false;
    if (n > 0) f->ask->top_logprobs = (int32_t)n;
    return true;
}

static bool read_truncation(hn_fields *f, const json_t *v, const char *path)
{
    if (!json_is_string(v)) return hn_field_wrong(f, path, v, "a string");
    return strcmp(json_string_value(v), "disabled") == 0 ||
           hn_field_refused(f, path, "nothing is cut silently; expected disabled");
}

static bool read_max(hn_fields *f, const json_t *v, const char *path)
{
    return hn_field_int(f, v, path, 1, INT64_MAX, &f->ask->max_tokens);
}

#define LATER(text)                          \
    {                                        \
        .name = text, .kind = HN_FIELD_LATER \
    }
#define PASSED(text)                          \
    {                                         \
        .name = text, .kind = HN_FIELD_PASSED \
    }
#define STATELESS "nothing is stored; send the whole list of items"

/* Nothing is stored, which changes no answer; true is what a response without the field has elsewhere. */
static bool read_store(hn_fields *f, const json_t *v, const char *path)
{
    bool store;
    if (!hn_field_bool(f, v, path, &store)) return false;
    if (store && f->limits->strict_fields) return hn_field_refused(f, path, "nothing is stored; expected false");
    if (store) hn_field_ignored(f, path);
    return true;
}

/* By this code programs know that they are to send everything. */
static bool read_previous(hn_fields *f, const json_t *v, const char *path)
{
    const char *id;
    if (!hn_field_text(f, v, path, &id)) return false;
    return hn_refuse(f->refusal, 400, "previous_response_not_found", path, "%s is '%s', which is not here: " STATELESS,
                     path, HN_ESC(id, strlen(id)));
}

static const hn_field response_fields[] = {
    LATER("input"),
    LATER("instructions"),
    LATER("tools"),
    LATER("tool_choice"),
    LATER("metadata"),
    { .name = "max_output_tokens", .kind = HN_FIELD_CALL, .fn = read_max },
    { .name = "parallel_tool_calls", .kind = HN_FIELD_BOOL, HN_AT(parallel_calls) },
    { .name = "reasoning", .kind = HN_FIELD_CALL, .fn = read_reasoning },
    { .name = "text", .kind = HN_FIELD_CALL, .fn = read_text },
    { .name = "include", .kind = HN_FIELD_CALL, .fn = read_include },
    { .name = "top_logprobs", .kind = HN_FIELD_CALL, .fn = read_top },
    { .name = "truncation", .kind = HN_FIELD_CALL, .fn = read_truncation },
    { .name = "chat_template_kwargs", .kind = HN_FIELD_LATER },
    { .name = "store", .kind = HN_FIELD_CALL, .fn = read_store },
    { .name = "previous_response_id", .kind = HN_FIELD_CALL, .fn = read_previous },
    { .name = "conversation", .kind = HN_FIELD_REFUSED, .why = STATELESS },
    { .name = "prompt", .kind = HN_FIELD_REFUSED, .why = "expected input" },
    { .name = "background", .kind = HN_FIELD_NEUTRAL, .why = STATELESS },
    { .name = "n", .kind = HN_FIELD_NEUTRAL, .lo = 1, .hi = 1 },
    { .name = "n_cmpl", .kind = HN_FIELD_NEUTRAL, .lo = 1, .hi = 1 },
    { .name = "max_tokens", .kind = HN_FIELD_REFUSED, .why = "expected max_output_tokens" },
    { .name = "messages", .kind = HN_FIELD_REFUSED, .why = "expected input" },
    PASSED("max_tool_calls"), /* of tools that hone does not run */
    PASSED("client_metadata"),
    { 0 },
};

/* ---- items ------------------------------------------------------------------------------- */

/* A string, or parts of text of these types; thoughts: they are reasoning. */
static bool read_parts(hn_turns *t, const json_t *v, const char *path, const char *const *types, bool thoughts)
{
    hn_fields *f = t->f;
    if (json_is_string(v)) {
        if (thoughts) hn_turn_reasoning(t, json_string_value(v), json_string_length(v));
        else hn_turn_text(t, json_string_value(v), json_string_length(v));
        return true;
    }
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "a string or an array of parts");
    for (size_t i = 0; i < json_array_size(v); i++) {
        char at[HN_ASK_PATH], sub[HN_ASK_PATH];
        const char *type;
        const json_t *part = json_array_get(v, i);
        size_t k = 0;
        if (!hn_field_type(f, part, hn_field_element(at, path, i), &type)) return false;
        while (types[k] && strcmp(types[k], type) != 0) k++;
        if (!types[k])
            return hn_field_refused(f, hn_field_path(sub, at, "type"), "hone reads text; expected parts of text");
        const char *name = strcmp(type, "refusal") == 0 ? "refusal" : "text";
        const json_t *s = hn_field_get(part, name);
        hn_field_path(sub, at, name);
        if (!s) return hn_field_missing(f, sub, "a string");
        if (!json_is_string(s)) return hn_field_wrong(f, sub, s, "a string");
        if (thoughts) hn_turn_reasoning(t, json_string_value(s), json_string_length(s));
        else hn_turn_text(t, json_string_value(s), json_string_length(s));
    }
    return true;
}

static const char *const text_parts[] = { "input_text", "output_text", "text", "refusal", NULL };
static const char *const thought_parts[] = { "reasoning_text", "summary_text", "text", NULL };

static bool read_message(hn_turns *t, const json_t *o, const char *path)
{
    static const char *const roles[] = { "user", "assistant", "system", "developer", NULL };
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *role;
    const json_t *v = hn_field_get(o, "role");
    hn_field_path(at, path, "role");
    if (!v) return hn_field_missing(f, at, "user, assistant, system or developer");
    if (!hn_field_one_of(f, v, at, roles, &role)) return false;
    if (role == roles[1]) hn_turn_join(t, role);
    else hn_turn_open(t, role);
    hn_field_path(at, path, "content");
    if (!(v = hn_field_get(o, "content"))) return hn_field_missing(f, at, "a string or an array of parts");
    return read_parts(t, v, at, text_parts, false);
}

/* What was thought, else its summary; nothing where a provider keeps it for itself. */
static bool read_thoughts(hn_turns *t, const json_t *o, const char *path)
{
    static const char *const names[] = { "content", "summary" };
    char at[HN_ASK_PATH];
    for (size_t i = 0; i < 2; i++) {
        const json_t *v = hn_field_get(o, names[i]);
        if (!v || (json_is_array(v) && json_array_size(v) == 0)) continue;
        hn_turn_join(t, "assistant");
        return read_parts(t, v, hn_field_path(at, path, names[i]), thought_parts, true);
    }
    return true;
}

/* The string at o.name, which must be there. */
static bool text_at(hn_fields *f, const json_t *o, const char *path, const char *name, const char **out)
{
    char at[HN_ASK_PATH];
    const json_t *v = hn_field_get(o, name);
    hn_field_path(at, path, name);
    return v ? hn_field_text(f, v, at, out) : hn_field_missing(f, at, "a string");
}

static bool read_call(hn_turns *t, const json_t *o, const char *path)
{
    const char *id, *name, *arguments;
    if (!text_at(t->f, o, path, "call_id", &id) || !text_at(t->f, o, path, "name", &name) ||
        !text_at(t->f, o, path, "arguments", &arguments))
        return false;
    hn_turn_join(t, "assistant");
    return hn_turn_call(t, id, name, arguments, strlen(arguments));
}

static bool read_output(hn_turns *t, const json_t *o, const char *path)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *id;
    const json_t *v = hn_field_get(o, "output");
    if (!text_at(f, o, path, "call_id", &id)) return false;
    hn_turn_open(t, "tool");
    if (!hn_turn_answers(t, id))
        return hn_field_range(f, hn_field_path(at, path, "call_id"), hn_field_get(o, "call_id"),
                              "the call_id of a function_call before");
    hn_field_path(at, path, "output");
    return v ? read_parts(t, v, at, text_parts, false) : hn_field_missing(f, at, "a string or an array of parts");
}

static bool read_item(hn_turns *t, const json_t *o, const char *path)
{
    static const struct {
        const char *type;
        bool (*read)(hn_turns *t, const json_t *o, const char *path);
    } items[] = { { "message", read_message },
                  { "reasoning", read_thoughts },
                  { "function_call", read_call },
                  { "function_call_output", read_output } };
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *type = "message"; /* what has a role needs no type */
    if (!hn_field_object(f, o, path)) return false;
    if ((hn_field_get(o, "type") || !hn_field_get(o, "role")) && !hn_field_type(f, o, path, &type)) return false;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        if (strcmp(items[i].type, type) == 0) return items[i].read(t, o, path);
    return hn_field_refused(f, hn_field_path(at, path, "type"),
                            strcmp(type, "item_reference") == 0
                                ? STATELESS
                                : "expected message, reasoning, function_call or function_call_output");
}

static bool read_input(hn_turns *t)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const json_t *input = hn_field_get(f->root, "input"), *v = hn_field_get(f->root, "instructions");
    if (v) {
        if (!json_is_string(v)) return hn_field_wrong(f, "instructions", v, "a string");
        hn_turn_open(t, "system");
        hn_turn_text(t, json_string_value(v), json_string_length(v));
        hn_turn_drop_empty(t);
    }
    if (!input) return hn_field_missing(f, "input", "a string or an array of items");
    if (json_is_string(input)) {
        hn_turn_open(t, "user");
        hn_turn_text(t, json_string_value(input), json_string_length(input));
        return true;
    }
    if (!json_is_array(input)) return hn_field_wrong(f, "input", input, "a string or an array of items");
    if (json_array_size(input) == 0) return hn_field_missing(f, "input", "at least one item");
    for (size_t i = 0; i < json_array_size(input); i++)
        if (!read_item(t, json_array_get(input, i), hn_field_element(at, "input", i))) return false;
    return true;
}

/* ---- tools ------------------------------------------------------------------------------- */

/* May tools of other types be passed over? Where the choice names functions alone, or none. */
static bool excludes_others(const json_t *choice)
{
    const char *type = hn_json_text_of(choice, "type");
    return (json_is_string(choice) && strcmp(json_string_value(choice), "none") == 0) || !strcmp(type, "function") ||
           !strcmp(type, "allowed_tools");
}

static bool read_tools(hn_tools *t)
{
    hn_fields *f = t->f;
    const json_t *list = hn_field_get(f->root, "tools"), *choice = hn_field_get(f->root, "tool_choice");
    if (!list) return true;
    if (!json_is_array(list)) return hn_field_wrong(f, "tools", list, "an array of tools");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char at[HN_ASK_PATH];
        const char *type;
        const json_t *o = json_array_get(list, i);
        if (!hn_field_type(f, o, hn_field_element(at, "tools", i), &type)) return false;
        if (strcmp(type, "function") == 0) {
            if (!hn_tool_add(t, o, "parameters", at)) return false;
        } else if (f->limits->lenient_tools || !excludes_others(choice)) {
            if (!hn_tool_other(t, at, "function")) return false;
        }
    }
    return true;
}

/* ---- what the answer repeats ------------------------------------------------------------- */

static void member(hn_fields *f, hn_bytes *o, const json_t *root, const char *name, const char *otherwise)
{
    const json_t *v = hn_field_get(root, name);
    hn_bytes_comma(o);
    hn_bytes_printf(o, "\"%s\":", name);
    if (v) hn_field_value(f, o, v);
    else hn_bytes_text(o, otherwise);
}

/* Fields of the request, in front of which and behind which a comma is to stand. */
static bool repeat(hn_fields *f, hn_response_own *own)
{
    hn_bytes o = { 0 };
    const hn_ask *a = f->ask;
    const json_t *root = f->root, *reasoning = hn_field_get(root, "reasoning"), *text = hn_field_get(root, "text");
    const json_t *effort = hn_field_get(reasoning, "effort"), *format = hn_field_get(text, "format");
    member(f, &o, root, "instructions", "null");
    member(f, &o, root, "max_output_tokens", "null");
    hn_bytes_printf(&o, ",\"parallel_tool_calls\":%s,\"previous_response_id\":null,\"reasoning\":{\"effort\":",
                    a->parallel_calls ? "true" : "false");
    hn_field_value(f, &o, effort);
    hn_bytes_text(&o, ",\"summary\":null},\"store\":false,\"temperature\":");
    hn_bytes_f32(&o, a->sampling.temp);
    hn_bytes_text(&o, ",\"text\":{\"format\":");
    if (format) hn_field_value(f, &o, format);
    else hn_bytes_text(&o, "{\"type\":\"text\"}");
    hn_bytes_text(&o, "}");
    member(f, &o, root, "tool_choice", "\"auto\"");
    member(f, &o, root, "tools", "[]");
    hn_bytes_text(&o, ",\"top_p\":");
    hn_bytes_f32(&o, a->sampling.top_p);
    hn_bytes_printf(&o, ",\"top_logprobs\":%d,\"truncation\":\"disabled\",\"background\":false",
                    a->top_logprobs > 0 ? a->top_logprobs : 0);
    member(f, &o, root, "metadata", "{}");
    own->repeated = hn_bytes_keep(&o, a->arena);
    hn_bytes_free(&o);
    return own->repeated || hn_field_lost(f);
}

static bool read_body(hn_fields *f)
{
    static const hn_field *const tables[] = { response_fields, hn_fields_usual, hn_fields_sampling, hn_fields_own,
                                              NULL };
    hn_turns turns = { .f = f };
    hn_tools tools = { .f = f };
    const json_t *v;
    hn_response_own *own = hn_arena_alloc(f->ask->arena, sizeof *own);
    if (!own) return hn_field_lost(f);
    f->ask->own = own;
    if (!hn_fields_read(f, f->root, "", tables) || !hn_fields_agree(f)) return false;
    if ((v = hn_field_get(f->root, "metadata")) && !hn_field_object(f, v, "metadata")) return false;
    if ((v = hn_field_get(f->root, "chat_template_kwargs")) &&
        !(hn_field_object(f, v, "chat_template_kwargs") && hn_field_json(f, v, &f->ask->variables)))
        return false;
    if (!hn_turns_end(&turns, read_input(&turns))) return false;
    if (!hn_tools_end(&tools, read_tools(&tools) && hn_tool_choice_read(&tools, hn_field_get(f->root, "tool_choice"))))
        return false;
    return repeat(f, own);
}

bool hn_response_parse(hn_ask *a, hn_ask_kind kind, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = kind;
    return hn_fields_end(&f, hn_fields_begin(&f, a, body, len, l, r) && read_body(&f));
}
