/* Conversations of OpenAI's chat: messages, tools and which of them, reasoning. Owns what these fields may be; refuses
 * to know the answer. */
#include "serve/ask_fields.h"

/* ---- content ----------------------------------------------------------------------------- */

/* A string, or parts of text. */
static bool read_content(hn_turns *t, const json_t *v, const char *path)
{
    hn_fields *f = t->f;
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    const char *type;
    t->has_content = true;
    if (json_is_string(v)) {
        hn_turn_text(t, json_string_value(v), json_string_length(v));
        return true;
    }
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "a string or an array of parts");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *part = json_array_get(v, i);
        if (!hn_field_type(f, part, hn_field_element(at, path, i), &type)) return false;
        bool refusal = strcmp(type, "refusal") == 0;
        if (!refusal && strcmp(type, "text") != 0)
            return hn_field_refused(f, hn_field_path(sub, at, "type"), "hone reads text; expected parts of type text");
        const json_t *s = hn_field_get(part, refusal ? "refusal" : "text");
        hn_field_path(sub, at, refusal ? "refusal" : "text");
        if (!s) return hn_field_missing(f, sub, "a string");
        if (!json_is_string(s)) return hn_field_wrong(f, sub, s, "a string");
        hn_turn_text(t, json_string_value(s), json_string_length(s));
    }
    return true;
}

static bool read_calls(hn_turns *t, const json_t *v, const char *path)
{
    hn_fields *f = t->f;
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array");
    for (size_t i = 0; i < json_array_size(v); i++) {
        char at[HN_ASK_PATH], sub[HN_ASK_PATH], deep[HN_ASK_PATH];
        const json_t *call = json_array_get(v, i), *fn, *id, *name, *args;
        const char *id_text, *name_text, *args_text = "{}";
        hn_field_element(at, path, i);
        if (!hn_field_object(f, call, at)) return false;

        const json_t *type = hn_field_get(call, "type");
        if (type && strcmp(hn_json_text_of(call, "type"), "function") != 0)
            return hn_field_refused(f, hn_field_path(sub, at, "type"), "expected function");
        if (!(id = hn_field_get(call, "id"))) return hn_field_missing(f, hn_field_path(sub, at, "id"), "a string");
        if (!hn_field_text(f, id, hn_field_path(sub, at, "id"), &id_text)) return false;
        hn_field_path(sub, at, "function");
        if (!(fn = hn_field_get(call, "function")))
            return hn_field_missing(f, sub, "an object with name and arguments");
        if (!hn_field_object(f, fn, sub)) return false;
        if (!(name = hn_field_get(fn, "name")))
            return hn_field_missing(f, hn_field_path(deep, sub, "name"), "a string");
        if (!hn_field_text(f, name, hn_field_path(deep, sub, "name"), &name_text)) return false;

        size_t n = 2;
        if ((args = hn_field_get(fn, "arguments")) && json_is_string(args)) {
            args_text = json_string_value(args);
            n = json_string_length(args);
        } else if (args) {
            if (!json_is_object(args))
                return hn_field_wrong(f, hn_field_path(deep, sub, "arguments"), args, "the text of a JSON object");
            if (!hn_field_json(f, args, &args_text)) return false;
            n = strlen(args_text);
        }
        if (!hn_turn_call(t, id_text, name_text, args_text, n)) return false;
    }
    return true;
}

static bool read_answer(hn_turns *t, const json_t *m, const char *path)
{
    static const char *const thoughts[] = { "reasoning_content", "reasoning", "thinking", NULL };
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const json_t *v;
    for (size_t i = 0; thoughts[i]; i++) {
        if (!(v = hn_field_get(m, thoughts[i]))) continue;
        if (!json_is_string(v)) return hn_field_wrong(f, hn_field_path(at, path, thoughts[i]), v, "a string");
        hn_turn_reasoning(t, json_string_value(v), json_string_length(v));
        break;
    }
    if ((v = hn_field_get(m, "tool_calls")) && !read_calls(t, v, hn_field_path(at, path, "tool_calls"))) return false;
    if ((v = hn_field_get(m, "function_call")))
        return hn_field_refused(f, hn_field_path(at, path, "function_call"), "expected tool_calls");
    if ((v = hn_field_get(m, "audio"))) return hn_field_refused(f, hn_field_path(at, path, "audio"), NULL);
    if (!hn_field_get(m, "content") && (v = hn_field_get(m, "refusal"))) {
        if (!json_is_string(v)) return hn_field_wrong(f, hn_field_path(at, path, "refusal"), v, "a string");
        hn_turn_text(t, json_string_value(v), json_string_length(v));
    }
    return true;
}

/* ---- messages ---------------------------------------------------------------------------- */

static const hn_field message_fields[] = {
    { .name = "role", .kind = HN_FIELD_LATER },
    { .name = "content", .kind = HN_FIELD_LATER },
    { .name = "name", .kind = HN_FIELD_LATER },
    { .name = "tool_calls", .kind = HN_FIELD_LATER },
    { .name = "tool_call_id", .kind = HN_FIELD_LATER },
    { .name = "reasoning_content", .kind = HN_FIELD_LATER },
    { .name = "reasoning", .kind = HN_FIELD_LATER },
    { .name = "thinking", .kind = HN_FIELD_LATER },
    { .name = "refusal", .kind = HN_FIELD_LATER },
    { .name = "function_call", .kind = HN_FIELD_LATER },
    { .name = "audio", .kind = HN_FIELD_LATER },
    { .name = "annotations", .kind = HN_FIELD_PASSED },
    { .name = "id", .kind = HN_FIELD_PASSED },
    { .name = "timestamp", .kind = HN_FIELD_PASSED },
    { 0 },
};

static bool read_message(hn_turns *t, const json_t *m, const char *path)
{
    static const char *const roles[] = { "system", "developer", "user", "assistant", "tool", NULL };
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *role, *id;
    const json_t *v;
    if (!hn_fields_read(f, m, path, (const hn_field *const[]){ message_fields, NULL })) return false;
    hn_field_path(at, path, "role");
    if (!(v = hn_field_get(m, "role"))) return hn_field_missing(f, at, "system, developer, user, assistant or tool");
    if (!hn_field_one_of(f, v, at, roles, &role)) return false;
    bool answer = role == roles[3], result = role == roles[4];
    hn_turn_open(t, role);

    if ((v = hn_field_get(m, "name")) && !hn_field_text(f, v, hn_field_path(at, path, "name"), &t->name)) return false;
    if (answer && !read_answer(t, m, path)) return false;
    if (result) {
        hn_field_path(at, path, "tool_call_id");
        if (!(v = hn_field_get(m, "tool_call_id"))) return hn_field_missing(f, at, "the id of the call it answers");
        if (!hn_field_text(f, v, at, &id)) return false;
        if (!hn_turn_answers(t, id)) return hn_field_range(f, at, v, "the id of a call in a message before");
    }
    if ((v = hn_field_get(m, "content"))) return read_content(t, v, hn_field_path(at, path, "content"));
    if (answer && (t->n_calls || t->has_content || t->reasoning.n))
        return true; /* it may have ended while it thought */
    return hn_field_missing(f, hn_field_path(at, path, "content"),
                            answer ? "a string, or tool_calls" : "a string or an array of parts");
}

static bool read_messages(hn_turns *t, const json_t *v)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    if (!v) return hn_field_missing(f, "messages", "an array of messages");
    if (!json_is_array(v)) return hn_field_wrong(f, "messages", v, "an array of messages");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *before = t->role;
        if (!read_message(t, json_array_get(v, i), hn_field_element(at, "messages", i))) return false;
        if (before && i + 1 == json_array_size(v) && !strcmp(before, "assistant") && !strcmp(t->role, "assistant"))
            return hn_refuse(f->refusal, 400, "out_of_range", at,
                             "the last two messages are both of role assistant; expected at most one at the end");
    }
    return true;
}

/* ---- tools ------------------------------------------------------------------------------- */

bool hn_tools_read(hn_tools *t, const json_t *v, bool typed)
{
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *type;
    if (!v) return true;
    if (!json_is_array(v)) return hn_field_wrong(f, "tools", v, "an array of tools");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const json_t *o = json_array_get(v, i), *fn;
        hn_field_element(at, "tools", i);
        if (!hn_field_object(f, o, at)) return false;
        bool said = typed || hn_field_get(o, "type");
        if (said && !hn_field_type(f, o, at, &type)) return false;
        if (said && strcmp(type, "function") != 0) {
            if (!hn_tool_other(t, at, "function")) return false;
            continue;
        }
        hn_field_path(sub, at, "function");
        if (!(fn = hn_field_get(o, "function"))) return hn_field_missing(f, sub, "an object with a name");
        if (!hn_field_object(f, fn, sub) || !hn_tool_add(t, fn, "parameters", sub)) return false;
    }
    return true;
}

/* {"type":"allowed_tools","allowed_tools":{"mode":"auto"|"required","tools":[…]}} */
static bool read_allowed(hn_tools *t, const json_t *o, const char *path)
{
    static const char *const modes[] = { "auto", "required", NULL };
    char at[HN_ASK_PATH], sub[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *mode;
    const json_t *inner = hn_field_get(o, "allowed_tools"), *list;
    hn_field_path(at, path, "allowed_tools");
    if (!inner) inner = o; /* as the Responses API has it */
    else path = at;
    if (!hn_field_object(f, inner, path)) return false;
    const json_t *m = hn_field_get(inner, "mode");
    hn_field_path(sub, path, "mode");
    if (!m) return hn_field_missing(f, sub, "auto or required");
    if (!hn_field_one_of(f, m, sub, modes, &mode)) return false;

    list = hn_field_get(inner, "tools");
    hn_field_path(sub, path, "tools");
    if (!list) return hn_field_missing(f, sub, "an array of tools");
    if (!json_is_array(list)) return hn_field_wrong(f, sub, list, "an array of tools");
    for (size_t i = 0; i < json_array_size(list); i++) {
        char entry[HN_ASK_PATH], deep[HN_ASK_PATH];
        const json_t *e = json_array_get(list, i), *fn = hn_field_get(e, "function");
        const json_t *name = hn_field_get(json_is_object(fn) ? fn : e, "name");
        hn_field_element(entry, sub, i);
        if (!hn_field_object(f, e, entry)) return false;
        if (!hn_tool_pick(t, name, hn_field_path(deep, entry, "name"))) return false;
    }
    if (json_array_size(list) == 0) return hn_field_range(f, sub, list, "at least one tool");
    f->ask->tool_choice = mode == modes[0] ? HN_TOOLS_AUTO : HN_TOOLS_REQUIRED;
    return true;
}

bool hn_tool_choice_read(hn_tools *t, const json_t *v)
{
    static const char *const words[] = { "auto", "none", "required", NULL };
    static const hn_tool_choice choices[] = { HN_TOOLS_AUTO, HN_TOOLS_NONE, HN_TOOLS_REQUIRED };
    static const char path[] = "tool_choice";
    hn_fields *f = t->f;
    const char *word, *type;
    if (!v) return true;
    if (json_is_string(v)) {
        if (!hn_field_one_of(f, v, path, words, &word)) return false;
        for (size_t i = 0; words[i]; i++)
            if (word == words[i]) f->ask->tool_choice = choices[i];
        return true;
    }
    if (!json_is_object(v)) return hn_field_wrong(f, path, v, "auto, none, required or an object");
    if (!hn_field_type(f, v, path, &type)) return false;
    if (strcmp(type, "allowed_tools") == 0) return read_allowed(t, v, path);
    if (strcmp(type, "function") != 0)
        return hn_field_refused(f, "tool_choice.type", "expected function or allowed_tools");
    const json_t *fn = hn_field_get(v, "function");
    return json_is_object(fn) ? hn_tool_pick(t, hn_field_get(fn, "name"), "tool_choice.function.name")
                              : hn_tool_pick(t, hn_field_get(v, "name"), "tool_choice.name");
}

/* ---- fields ------------------------------------------------------------------------------ */

bool hn_field_effort_by(hn_fields *f, const char *path)
{
    f->ask->effort_param = hn_arena_strndup(f->ask->arena, path, strlen(path));
    return f->ask->effort_param || hn_field_lost(f);
}

bool hn_field_effort(hn_fields *f, const json_t *v, const char *path)
{
    static const char *const efforts[] = { "none", "minimal", "low", "medium", "high", "xhigh", "max", NULL };
    if (!hn_field_one_of(f, v, path, efforts, &f->ask->effort)) return false;
    if (f->ask->effort == efforts[0]) f->ask->effort = "off";
    return hn_field_effort_by(f, path);
}

static bool read_format(hn_fields *f, const json_t *v, const char *path)
{
    static const char *const formats[] = { "auto", "none", "deepseek", NULL };
    const char *format;
    if (!hn_field_one_of(f, v, path, formats, &format)) return false;
    f->ask->reasoning_in_text = format == formats[1];
    return true;
}

static bool read_budget(hn_fields *f, const json_t *v, const char *path)
{
    return hn_field_int(f, v, path, -1, INT64_MAX, &f->ask->reasoning_budget);
}

static bool read_variables(hn_fields *f, const json_t *v, const char *path)
{
    return hn_field_object(f, v, path) && hn_field_json(f, v, &f->ask->variables);
}

static bool read_logprobs(hn_fields *f, const json_t *v, const char *path)
{
    bool wanted;
    if (!hn_field_bool(f, v, path, &wanted)) return false;
    f->logprobs = wanted;
    return true;
}

static bool read_top(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (!hn_field_int(f, v, path, 0, HN_ASK_TOP, &n)) return false;
    f->top = (int32_t)n;
    return true;
}

/* llama-server's name of both. */
static bool read_probs(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (!hn_field_int(f, v, path, 0, HN_ASK_TOP, &n)) return false;
    if (n > 0) f->ask->top_logprobs = (int32_t)n; /* which logprobs and top_logprobs overrule */
    return true;
}

static bool read_parse(hn_fields *f, const json_t *v, const char *path)
{
    bool wanted;
    if (!hn_field_bool(f, v, path, &wanted)) return false;
    return wanted || hn_field_refused(f, path, "how calls are parsed is the server's; expected tool_choice \"none\"");
}

static bool read_generation(hn_fields *f, const json_t *v, const char *path)
{
    bool b;
    if (!hn_field_bool(f, v, path, &b)) return false;
    f->generation = b;
    return true;
}

static bool read_continue(hn_fields *f, const json_t *v, const char *path)
{
    bool b;
    if (!hn_field_bool(f, v, path, &b)) return false;
    f->continued = b;
    return true;
}

/* As some services have it: thinking on or off, whatever the template calls it. */
static bool read_thinking(hn_fields *f, const json_t *v, const char *path)
{
    bool on;
    if (!hn_field_bool(f, v, path, &on)) return false;
    if (on && f->ask->effort) return true; /* it says how much, too */
    f->ask->effort = on ? "on" : "off";
    return hn_field_effort_by(f, path);
}

/* {"effort", "enabled", "max_tokens"}, as routers of requests have it. */
static bool read_reasoning(hn_fields *f, const json_t *o, const char *path)
{
    static const hn_field fields[] = {
        { .name = "effort", .kind = HN_FIELD_CALL, .fn = hn_field_effort },
        { .name = "enabled", .kind = HN_FIELD_CALL, .fn = read_thinking },
        { .name = "max_tokens", .kind = HN_FIELD_CALL, .fn = read_budget },
        { .name = "summary", .kind = HN_FIELD_PASSED },
        { 0 },
    };
    return hn_fields_read(f, o, path, (const hn_field *const[]){ fields, NULL });
}

/* Nothing but text. */
static bool read_modalities(hn_fields *f, const json_t *v, const char *path)
{
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array of strings");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *s = json_string_value(json_array_get(v, i));
        if (!s || strcmp(s, "text") != 0) return hn_field_refused(f, path, "expected [\"text\"]");
    }
    return true;
}

#define CALL(text, function) .name = text, .kind = HN_FIELD_CALL, .fn = function
#define REFUSED(text, reason) .name = text, .kind = HN_FIELD_REFUSED, .why = reason
#define NEUTRAL(text, reason) .name = text, .kind = HN_FIELD_NEUTRAL, .why = reason

const hn_field hn_fields_chat[] = {
    { .name = "messages", .kind = HN_FIELD_LATER },
    { .name = "tools", .kind = HN_FIELD_LATER },
    { .name = "tool_choice", .kind = HN_FIELD_LATER },
    { .name = "parallel_tool_calls", .kind = HN_FIELD_BOOL, HN_AT(parallel_calls) },
    { CALL("max_tokens", hn_field_max_tokens) },
    { CALL("max_completion_tokens", hn_field_max_tokens) },
    { CALL("n_predict", hn_field_max_tokens) },
    { CALL("logprobs", read_logprobs) },
    { CALL("top_logprobs", read_top) },
    { CALL("n_probs", read_probs) },
    { CALL("reasoning_effort", hn_field_effort) },
    { CALL("reasoning", read_reasoning) },
    { CALL("enable_thinking", read_thinking) },
    { CALL("reasoning_format", read_format) },
    { CALL("reasoning_budget", read_budget) },
    { CALL("thinking_budget_tokens", read_budget) },
    { CALL("reasoning_budget_tokens", read_budget) },
    { NEUTRAL("reasoning_budget_message", "the end mark alone is put where the budget ends") },
    { CALL("parse_tool_calls", read_parse) },
    { NEUTRAL("generation_prompt", "expected a last message of role assistant") },
    { NEUTRAL("post_sampling_probs", "expected /completion") },
    { NEUTRAL("echo", "the answer begins behind what was sent") },
    { CALL("chat_template_kwargs", read_variables) },
    { CALL("add_generation_prompt", read_generation) },
    { CALL("continue_final_message", read_continue) },
    { CALL("modalities", read_modalities) },
    { REFUSED("audio", NULL) },
    { REFUSED("functions", "expected tools") },
    { REFUSED("function_call", "expected tool_choice") },
    { REFUSED("prediction", NULL) },
    { REFUSED("web_search_options", NULL) },
    { REFUSED("chat_template", "the server's is used; expected chat_template_kwargs, or hone serve --chat-template") },
    { 0 },
};

bool hn_chat_read(hn_fields *f)
{
    hn_turns turns = { .f = f };
    hn_tools tools = { .f = f };
    bool ok = hn_turns_end(&turns, read_messages(&turns, hn_field_get(f->root, "messages")));
    ok = ok && hn_tools_read(&tools, hn_field_get(f->root, "tools"), true) &&
         hn_tool_choice_read(&tools, hn_field_get(f->root, "tool_choice"));
    return hn_tools_end(&tools, ok);
}
