/* Bodies of ollama's /api/chat, /api/generate and /api/embed. Owns what these fields may be; refuses to know the
 * answer. */
#include "serve/ask_fields.h"
#include "serve/voice_ollama.h"
#include "serve/voice_parts.h"

#include <math.h>

/* ---- fields ------------------------------------------------------------------------------ */

#define PASSED(text)                          \
    {                                         \
        .name = text, .kind = HN_FIELD_PASSED \
    }
#define LATER(text)                          \
    {                                        \
        .name = text, .kind = HN_FIELD_LATER \
    }
#define CALL(text, function)                                \
    {                                                       \
        .name = text, .kind = HN_FIELD_CALL, .fn = function \
    }

/* A context that fits ours changes no answer. More than that is what most programs ask for, whatever they send: it is
 * named, and a conversation that does not fit is refused as such. */
static bool read_context_size(hn_fields *f, const json_t *v, const char *path)
{
    char expected[96];
    int64_t n;
    if (!hn_field_int(f, v, path, 0, INT64_MAX, &n)) return false;
    if (n <= f->limits->n_ctx) return true;
    snprintf(expected, sizeof expected, "at most %d, which hone serve -c sets", f->limits->n_ctx);
    if (f->limits->strict_fields) return hn_field_range(f, path, v, expected);
    hn_field_ignored(f, path);
    return true;
}

/* None above zero is no limit there. */
static bool read_num_predict(hn_fields *f, const json_t *v, const char *path)
{
    int64_t n;
    if (!hn_field_int(f, v, path, INT64_MIN, INT64_MAX, &n)) return false;
    return n <= 0 || hn_field_max_native(f, v, path);
}

static bool read_options(hn_fields *f, const json_t *o, const char *path)
{
    static const hn_field options[] = {
        CALL("num_predict", read_num_predict),
        CALL("num_ctx", read_context_size),
        { .name = "n", .kind = HN_FIELD_NEUTRAL, .lo = 1, .hi = 1 },
        { .name = "n_cmpl", .kind = HN_FIELD_NEUTRAL, .lo = 1, .hi = 1 },
        PASSED("num_keep"),
        PASSED("numa"),
        PASSED("num_batch"),
        PASSED("num_gpu"),
        PASSED("main_gpu"),
        PASSED("low_vram"),
        PASSED("f16_kv"),
        PASSED("logits_all"),
        PASSED("vocab_only"),
        PASSED("use_mmap"),
        PASSED("use_mlock"),
        PASSED("embedding_only"),
        PASSED("num_thread"),
        PASSED("draft_num_predict"),
        { .name = "penalize_newline", .kind = HN_FIELD_PASSED },
        { 0 },
    };
    return hn_fields_read(f, o, path, (const hn_field *const[]){ options, hn_fields_sampling, NULL });
}

/* "", "json" or a schema */
static bool read_format(hn_fields *f, const json_t *v, const char *path)
{
    if (!json_is_string(v)) return hn_field_schema(f, v, path);
    if (json_string_length(v) == 0) return true;
    if (strcmp(json_string_value(v), "json") != 0) return hn_field_range(f, path, v, "\"json\" or a JSON schema");
    return hn_field_form(f, path, HONE_GRAMMAR_JSON_OBJECT, NULL);
}

static bool read_think(hn_fields *f, const json_t *v, const char *path)
{
    static const char *const levels[] = { "low", "medium", "high", "max", NULL };
    if (json_is_boolean(v)) f->ask->effort = json_is_true(v) ? "on" : "off";
    else if (!hn_field_one_of(f, v, path, levels, &f->ask->effort)) return false;
    return hn_field_effort_by(f, path);
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
    f->top = n > 0 ? (int32_t)n : -1; /* clients send 0 where nothing is wanted */
    return true;
}

/* Seconds, or "5m", "1h30m", "300ms"; below zero: for ever. */
static bool read_keep_alive(hn_fields *f, const json_t *v, const char *path)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = { { "ns", 1e-6 }, { "us", 1e-3 }, { "ms", 1 }, { "s", 1000 }, { "m", 60e3 }, { "h", 3600e3 } };
    enum { N_UNITS = sizeof units / sizeof *units };
    double ms = json_number_value(v) * 1000;
    if (json_is_string(v)) {
        const char *s = json_string_value(v), *p = s;
        bool minus = *p == '-', whole = false;
        ms = 0;
        if (*p == '-' || *p == '+') p++;
        while (*p) {
            double number = 0, scale = 1;
            size_t u = 0, n;
            const char *from = p;
            for (; *p >= '0' && *p <= '9'; p++) number = number * 10 + (*p - '0');
            if (*p == '.')
                for (p++; *p >= '0' && *p <= '9'; p++) number += (*p - '0') * (scale /= 10);
            n = strspn(p, "nusmh");
            while (u < N_UNITS && (strlen(units[u].name) != n || memcmp(units[u].name, p, n) != 0)) u++;
            if (*p == 0 && from == s) u = 3; /* a number alone: seconds */
            whole = p > from && u < N_UNITS;
            if (!whole) break;
            ms += number * units[u].ms;
            p += n;
        }
        if (!whole) return hn_field_range(f, path, v, "seconds, or a duration as \"5m\"");
        if (minus) ms = -ms;
    } else if (!json_is_number(v)) {
        return hn_field_wrong(f, path, v, "a number of seconds, or a duration as \"5m\"");
    }
    f->ask->keep_alive_ms = ms < 0 || ms >= 0x1p62 ? INT64_MAX : (int64_t)ms;
    return true;
}

static const hn_field shared_fields[] = {
    { .name = "model", .kind = HN_FIELD_TEXT, HN_AT(model) },
    { .name = "stream", .kind = HN_FIELD_BOOL, HN_AT(stream) },
    CALL("options", read_options),
    CALL("format", read_format),
    CALL("think", read_think),
    CALL("logprobs", read_logprobs),
    CALL("top_logprobs", read_top),
    CALL("keep_alive", read_keep_alive),
    PASSED("shift"),
    { 0 },
};

/* ---- /api/chat --------------------------------------------------------------------------- */

static const hn_field chat_fields[] = {
    LATER("messages"),
    LATER("tools"),
    PASSED("truncate"), /* nothing is cut silently */
    { 0 },
};

static const hn_field message_fields[] = {
    LATER("role"),
    LATER("content"),
    LATER("thinking"),
    LATER("tool_calls"),
    LATER("tool_name"),
    LATER("tool_call_id"),
    { .name = "images", .kind = HN_FIELD_NEUTRAL, .why = "hone reads text" },
    { 0 },
};

static bool read_calls(hn_turns *t, const json_t *v, const char *path, int *made)
{
    hn_fields *f = t->f;
    if (!json_is_array(v)) return hn_field_wrong(f, path, v, "an array");
    for (size_t i = 0; i < json_array_size(v); i++) {
        char at[HN_ASK_PATH], sub[HN_ASK_PATH], deep[HN_ASK_PATH], own[32];
        const char *id = own, *name, *arguments = "{}";
        const json_t *call = json_array_get(v, i), *fn, *m;
        if (!hn_field_object(f, call, hn_field_element(at, path, i))) return false;
        hn_field_path(sub, at, "function");
        if (!(fn = hn_field_get(call, "function")))
            return hn_field_missing(f, sub, "an object with name and arguments");
        if (!hn_field_object(f, fn, sub)) return false;
        hn_field_path(deep, sub, "name");
        if (!(m = hn_field_get(fn, "name"))) return hn_field_missing(f, deep, "a string");
        if (!hn_field_text(f, m, deep, &name)) return false;
        if ((m = hn_field_get(fn, "arguments"))) {
            if (!hn_field_object(f, m, hn_field_path(deep, sub, "arguments"))) return false;
            if (!hn_field_json(f, m, &arguments)) return false;
        }
        snprintf(own, sizeof own, "call_%d", (*made)++);
        if ((m = hn_field_get(call, "id")) && !hn_field_text(f, m, hn_field_path(deep, at, "id"), &id)) return false;
        if (!hn_turn_call(t, id, name, arguments, strlen(arguments))) return false;
    }
    return true;
}

/* Results name their tool, or nothing: the oldest call without one is meant. */
static bool read_result(hn_turns *t, const json_t *m, const char *path)
{
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *id = NULL;
    const json_t *v = hn_field_get(m, "tool_name");
    if (v && !hn_field_text(f, v, hn_field_path(at, path, "tool_name"), &t->name)) return false;
    if ((v = hn_field_get(m, "tool_call_id"))) {
        if (!hn_field_text(f, v, hn_field_path(at, path, "tool_call_id"), &id)) return false;
        if (!hn_turn_answers(t, id)) return hn_field_range(f, at, v, "the id of a call in a message before");
        return true;
    }
    if (!(id = hn_turn_unanswered(t, t->name))) id = hn_turn_unanswered(t, NULL);
    if (id) hn_turn_answers(t, id);
    return true;
}

static bool read_message(hn_turns *t, const json_t *m, const char *path, int *made)
{
    static const char *const roles[] = { "system", "user", "assistant", "tool", NULL };
    char at[HN_ASK_PATH];
    hn_fields *f = t->f;
    const char *role;
    if (!hn_fields_read(f, m, path, (const hn_field *const[]){ message_fields, NULL })) return false;
    const json_t *v = hn_field_get(m, "role");
    hn_field_path(at, path, "role");
    if (!v) return hn_field_missing(f, at, "system, user, assistant or tool");
    if (!hn_field_one_of(f, v, at, roles, &role)) return false;
    hn_turn_open(t, role);
    if (role == roles[3] && !read_result(t, m, path)) return false;
    if (role == roles[2] && (v = hn_field_get(m, "thinking"))) {
        if (!json_is_string(v)) return hn_field_wrong(f, hn_field_path(at, path, "thinking"), v, "a string");
        hn_turn_reasoning(t, json_string_value(v), json_string_length(v));
    }
    if (role == roles[2] && (v = hn_field_get(m, "tool_calls")) &&
        !read_calls(t, v, hn_field_path(at, path, "tool_calls"), made))
        return false;
    if (!(v = hn_field_get(m, "content"))) return true; /* "" */
    if (!json_is_string(v)) return hn_field_wrong(f, hn_field_path(at, path, "content"), v, "a string");
    if (json_string_length(v) || !t->n_calls) hn_turn_text(t, json_string_value(v), json_string_length(v));
    return true;
}

static bool read_messages(hn_turns *t, const json_t *list)
{
    char at[HN_ASK_PATH];
    int made = 0;
    if (!json_is_array(list)) return hn_field_wrong(t->f, "messages", list, "an array of messages");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!read_message(t, json_array_get(list, i), hn_field_element(at, "messages", i), &made)) return false;
    return true;
}

static bool read_chat(hn_fields *f)
{
    hn_ask *a = f->ask;
    hn_turns turns = { .f = f };
    hn_tools tools = { .f = f };
    const json_t *list = hn_field_get(f->root, "messages");
    a->stream = true;
    if (!hn_fields_read(f, f->root, "", (const hn_field *const[]){ shared_fields, chat_fields, NULL })) return false;
    if (!hn_fields_agree(f)) return false;
    if (!list || (json_is_array(list) && json_array_size(list) == 0)) {
        a->kind = HN_ASK_LOAD;
        return true;
    }
    return hn_turns_end(&turns, read_messages(&turns, list)) &&
           hn_tools_end(&tools, hn_tools_read(&tools, hn_field_get(f->root, "tools"), false));
}

/* ---- /api/generate ----------------------------------------------------------------------- */

static const hn_field generate_fields[] = {
    LATER("prompt"),
    LATER("suffix"),
    LATER("system"),
    LATER("raw"),
    LATER("context"),
    PASSED("truncate"),
    { .name = "template", .kind = HN_FIELD_NEUTRAL, .why = "the server's is used" },
    { .name = "images", .kind = HN_FIELD_NEUTRAL, .why = "hone reads text" },
    { 0 },
};

static bool read_generate(hn_fields *f)
{
    static const char *const names[] = { "prompt", "suffix", "system" };
    hn_ask *a = f->ask;
    hn_turns turns = { .f = f };
    const json_t *texts[3], *v;
    bool raw = false;
    a->stream = true;
    if (!hn_fields_read(f, f->root, "", (const hn_field *const[]){ shared_fields, generate_fields, NULL }))
        return false;
    if (!hn_fields_agree(f)) return false;
    for (size_t i = 0; i < 3; i++) {
        texts[i] = hn_field_get(f->root, names[i]);
        if (texts[i] && !json_is_string(texts[i])) return hn_field_wrong(f, names[i], texts[i], "a string");
        if (json_string_length(texts[i]) == 0) texts[i] = NULL;
    }
    if ((v = hn_field_get(f->root, "raw")) && !hn_field_bool(f, v, "raw", &raw)) return false;
    if ((v = hn_field_get(f->root, "context")) && !hn_field_ids(f, v, "context", &a->context, &a->n_context))
        return false;

    if (!texts[0]) {
        a->kind = HN_ASK_LOAD;
        return true;
    }
    if (texts[1]) {
        a->kind = HN_ASK_INFILL;
        if (a->n_context)
            return hn_field_refused(f, "context", "it goes on with a conversation; suffix has a gap filled");
        return hn_field_text(f, texts[0], "prompt", &a->prefix) && hn_field_text(f, texts[1], "suffix", &a->suffix);
    }
    a->return_context = true;
    if (raw) {
        a->kind = HN_ASK_TEXT;
        a->add_special = a->n_context == 0;
        return hn_field_prompts(f, texts[0], "prompt", 1);
    }
    a->kind = HN_ASK_CHAT;
    if (texts[2]) {
        hn_turn_open(&turns, "system");
        hn_turn_text(&turns, json_string_value(texts[2]), json_string_length(texts[2]));
    }
    hn_turn_open(&turns, "user");
    hn_turn_text(&turns, json_string_value(texts[0]), json_string_length(texts[0]));
    return hn_turns_end(&turns, true);
}

/* ---- /api/embed -------------------------------------------------------------------------- */

static const hn_field embed_fields[] = {
    { .name = "model", .kind = HN_FIELD_TEXT, HN_AT(model) },
    { .name = "truncate", .kind = HN_FIELD_BOOL, HN_AT(truncate) },
    { .name = "dimensions", .kind = HN_FIELD_INT, HN_AT(dimensions), .lo = 0, .hi = 1 << 20 },
    CALL("options", read_options),
    CALL("keep_alive", read_keep_alive),
    { 0 },
};

static bool read_embed(hn_fields *f)
{
    hn_ask *a = f->ask;
    bool old = a->voice == &hn_voice_ollama_embedding; /* /api/embeddings: one text, by another name */
    const hn_field what[] = { LATER(old ? "prompt" : "input"), { 0 } };
    const json_t *input = hn_field_get(f->root, what->name);
    a->truncate = a->add_special = true;
    if (!hn_fields_read(f, f->root, "", (const hn_field *const[]){ what, embed_fields, NULL })) return false;
    if (old && input && !json_is_string(input)) return hn_field_wrong(f, "prompt", input, "a string");
    if (!input || (json_is_array(input) && json_array_size(input) == 0) || (old && json_string_length(input) == 0)) {
        a->kind = HN_ASK_LOAD;
        return true;
    }
    if (old) return hn_field_prompts(f, input, "prompt", 1);
    if (!json_is_string(input) && !json_is_array(input))
        return hn_field_wrong(f, "input", input, "a string or an array of strings");
    return hn_field_prompts(f, input, "input", HN_ASK_INPUTS);
}

bool hn_ollama_parse(hn_ask *a, hn_ask_kind kind, const char *body, size_t len, const hn_limits *l, hn_refusal *r)
{
    hn_fields f;
    a->kind = kind;
    bool ok = hn_fields_begin(&f, a, body, len, l, r) && (kind == HN_ASK_EMBED  ? read_embed(&f)
                                                          : kind == HN_ASK_TEXT ? read_generate(&f)
                                                                                : read_chat(&f));
    return hn_fields_end(&f, ok);
}
