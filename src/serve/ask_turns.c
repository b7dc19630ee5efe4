/* Conversations as they are handed on: turns and tools in the shape of OpenAI's chat, which hone_chat_params takes,
 * whatever API they came by. Owns how they are written; refuses to know where they stood in a body. */
#include "serve/ask_fields.h"

/* A call that was made in the conversation, and whether a result answered it. */
typedef struct hn_called {
    struct hn_called *next, *chain; /* the one made after it; the one before it of the same hash */
    const char *id, *name;
    bool answered;
} hn_called;

enum {
    CHAINS = 4096,  /* calls are found by id whatever their number: bodies are not friends */
    LOOKED_AT = 128 /* calls in which one of a name is looked for */
};

/* ---- turns ------------------------------------------------------------------------------- */

/* Writes the open turn. */
static void close_turn(hn_turns *t)
{
    hn_bytes *o = &t->json;
    if (!t->role) return;
    if (o->n == 0) hn_bytes_text(o, "[");
    hn_bytes_comma(o);
    hn_bytes_text(o, "{\"role\":");
    hn_bytes_json_text(o, t->role);
    if (t->name) {
        hn_bytes_text(o, ",\"name\":");
        hn_bytes_json_text(o, t->name);
    }
    if (t->call_id) {
        hn_bytes_text(o, ",\"tool_call_id\":");
        hn_bytes_json_text(o, t->call_id);
    }

    /* one part is a string, several are parts */
    hn_bytes_text(o, ",\"content\":");
    if (t->n_parts > 1) {
        hn_bytes_text(o, "[");
        hn_bytes_add(o, t->content.p, t->content.n);
        hn_bytes_text(o, "]");
    } else if (t->n_parts == 1) {
        enum { AROUND = sizeof "{\"type\":\"text\",\"text\":" - 1 };
        if (!t->content.lost) hn_bytes_add(o, t->content.p + AROUND, t->content.n - AROUND - 1);
    } else {
        hn_bytes_text(o, t->has_content || !t->n_calls ? "\"\"" : "null");
    }

    if (t->reasoning.n) {
        hn_bytes_text(o, ",\"reasoning_content\":\"");
        hn_bytes_add(o, t->reasoning.p, t->reasoning.n);
        hn_bytes_text(o, "\"");
    }
    if (t->n_calls) {
        hn_bytes_text(o, ",\"tool_calls\":[");
        hn_bytes_add(o, t->calls.p, t->calls.n);
        hn_bytes_text(o, "]");
    }
    hn_bytes_text(o, "}");
    o->lost |= t->content.lost | t->reasoning.lost | t->calls.lost;

    t->last_role = t->role;
    t->last_calls = t->n_calls > 0;
    t->role = t->call_id = t->name = NULL;
    t->content.n = t->reasoning.n = t->calls.n = 0;
    t->n_parts = t->n_calls = 0;
    t->has_content = t->has_text = false;
    t->n_turns++;
}

void hn_turn_open(hn_turns *t, const char *role)
{
    close_turn(t);
    t->role = role;
}

/* The open turn was none. */
static void drop_turn(hn_turns *t)
{
    t->role = t->call_id = t->name = NULL;
    t->content.n = 0;
    t->n_parts = 0;
    t->has_content = false;
}

void hn_turn_drop_empty(hn_turns *t)
{
    if (t->role && !t->has_text && !t->n_calls && !t->reasoning.n) drop_turn(t);
}

void hn_turn_join(hn_turns *t, const char *role)
{
    if (!t->role || strcmp(t->role, role) != 0) hn_turn_open(t, role);
}

void hn_turn_text(hn_turns *t, const char *s, size_t n)
{
    hn_bytes_text(&t->content, t->n_parts++ ? ",{\"type\":\"text\",\"text\":" : "{\"type\":\"text\",\"text\":");
    hn_bytes_json(&t->content, s, n);
    hn_bytes_text(&t->content, "}");
    t->has_content = true;
    t->has_text |= n > 0;
}

void hn_turn_reasoning(hn_turns *t, const char *s, size_t n)
{
    if (n && t->reasoning.n) hn_bytes_escaped(&t->reasoning, "\n\n", 2);
    hn_bytes_escaped(&t->reasoning, s, n);
}

/* Calls of the ids that share this one's hash, which depends on where memory lies; NULL: out of memory. */
static hn_called **chain_of(hn_turns *t, const char *id)
{
    if (!t->known && !(t->known = hn_arena_alloc(t->f->ask->arena, CHAINS * sizeof *t->known))) return NULL;
    uint64_t h = hn_fnv1a(hn_mix64((uintptr_t)t->known), id, strlen(id));
    return t->known + hn_mix64(h) % CHAINS;
}

bool hn_turn_call(hn_turns *t, const char *id, const char *name, const char *arguments, size_t n)
{
    hn_arena *a = t->f->ask->arena;
    hn_called *c = hn_arena_alloc(a, sizeof *c);
    if (!c || !(c->id = hn_arena_strndup(a, id, strlen(id))) || !(c->name = hn_arena_strndup(a, name, strlen(name))))
        return hn_field_lost(t->f);
    hn_called **chain = chain_of(t, id);
    if (!chain) return hn_field_lost(t->f);
    c->chain = *chain;
    *chain = c;
    if (t->newest) t->newest->next = c;
    else t->waiting = c;
    t->newest = c;
    hn_bytes_text(&t->calls, t->n_calls++ ? ",{\"id\":" : "{\"id\":");
    hn_bytes_json_text(&t->calls, id);
    hn_bytes_text(&t->calls, ",\"type\":\"function\",\"function\":{\"name\":");
    hn_bytes_json_text(&t->calls, name);
    hn_bytes_text(&t->calls, ",\"arguments\":");
    hn_bytes_json(&t->calls, n ? arguments : "{}", n ? n : 2); /* one that was cut before them, or takes none */
    hn_bytes_text(&t->calls, "}}");
    return true;
}

bool hn_turn_answers(hn_turns *t, const char *id)
{
    if (!t->known) return false;
    for (hn_called *c = *chain_of(t, id); c; c = c->chain) {
        if (strcmp(c->id, id) != 0) continue;
        c->answered = true;
        t->call_id = c->id;
        return true;
    }
    return false;
}

const char *hn_turn_unanswered(hn_turns *t, const char *name)
{
    int n = 0;
    while (t->waiting && t->waiting->answered && t->waiting->next) t->waiting = t->waiting->next;
    for (const hn_called *c = t->waiting; c && n < LOOKED_AT; c = c->next, n++)
        if (!c->answered && (!name || strcmp(c->name, name) == 0)) return c->id;
    return NULL;
}

/* Whether the last turn is an answer that goes on. */
static bool settle_end(hn_turns *t)
{
    hn_fields *f = t->f;
    hn_ask *a = f->ask;
    bool answer = t->last_role && strcmp(t->last_role, "assistant") == 0;
    if (f->generation == 1 && f->continued == 1)
        return hn_refuse(f->refusal, 400, "unsupported_parameter", "continue_final_message",
                         "continue_final_message and add_generation_prompt are both true; expected one of them");
    if (f->continued == 1 && !answer)
        return hn_refuse(f->refusal, 400, "out_of_range", "continue_final_message",
                         "the last message is of role %s; expected assistant, which can be continued",
                         t->last_role ? t->last_role : "none");
    a->continue_final = answer && f->continued != 0 && f->generation != 1;
    if (a->continue_final && t->last_calls)
        return hn_refuse(f->refusal, 400, "out_of_range", "messages",
                         "the last message has tool_calls and cannot be continued; expected their results after it");
    a->generation_prompt = !a->continue_final && f->generation != 0;
    return true;
}

/* An answer that has not begun is none to go on with: it is left out, and a new one begins there. */
static void drop_empty_answer(hn_turns *t)
{
    if (!t->role || strcmp(t->role, "assistant") != 0 || !t->n_turns || t->f->continued == 1) return;
    hn_turn_drop_empty(t);
}

bool hn_turns_end(hn_turns *t, bool ok)
{
    hn_fields *f = t->f;
    drop_empty_answer(t);
    close_turn(t);
    if (ok && t->n_turns == 0) ok = hn_field_missing(f, "messages", "at least one message");
    if (ok) ok = settle_end(t);
    if (ok) {
        hn_bytes_text(&t->json, "]");
        ok = (f->ask->messages = hn_bytes_keep(&t->json, f->ask->arena)) || hn_field_lost(f);
    }
    hn_bytes_free(&t->json);
    hn_bytes_free(&t->content);
    hn_bytes_free(&t->reasoning);
    hn_bytes_free(&t->calls);
    return ok;
}

/* ---- tools ------------------------------------------------------------------------------- */

/* Where a name is among those offered, or where it would be; names are a client's, so the hash depends on where memory
 * lies. */
static uint16_t *place_of(hn_tools *t, const char *name)
{
    enum { PLACES = sizeof t->place / sizeof *t->place };
    uint64_t h = hn_fnv1a(hn_mix64((uintptr_t)t->f->ask->arena), name, strlen(name));
    size_t at = hn_mix64(h) % PLACES;
    while (t->place[at] && strcmp(t->name[t->place[at] - 1], name) != 0) at = (at + 1) % PLACES;
    return &t->place[at];
}

/* [A-Za-z0-9_.-]{1,128} */
static bool is_name(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
    return n >= 1 && n <= HN_TOOL_NAME && s[n] == 0;
}

bool hn_tool_other(hn_tools *t, const char *path, const char *expected)
{
    char at[HN_ASK_PATH], why[128];
    if (t->f->limits->lenient_tools) {
        hn_field_ignored(t->f, path);
        return true;
    }
    snprintf(why, sizeof why, "hone runs no tools; expected %s (hone serve --lenient-tools passes over others)",
             expected);
    return hn_field_refused(t->f, hn_field_path(at, path, "type"), why);
}

bool hn_tool_add(hn_tools *t, const json_t *o, const char *schema, const char *path)
{
    hn_fields *f = t->f;
    char at[HN_ASK_PATH];
    const json_t *v = hn_field_get(o, "name");
    const char *name, *text;
    bool strict = false;
    if (!v) return hn_field_missing(f, hn_field_path(at, path, "name"), "the function's name");
    if (!hn_field_text(f, v, hn_field_path(at, path, "name"), &name)) return false;
    if (!is_name(name)) return hn_field_range(f, at, v, "1 to 128 letters, digits, '_', '.' or '-'");
    uint16_t *place = place_of(t, name);
    if (*place) return hn_field_range(f, at, v, "a name that no other tool has");
    if (t->n == HN_ASK_TOOLS)
        return hn_refuse(f->refusal, 400, "out_of_range", "tools", "tools has more than %d entries", HN_ASK_TOOLS);
    t->name[t->n++] = name;
    *place = (uint16_t)t->n;

    hn_bytes_text(&t->json, t->n > 1 ? "," : "[");
    hn_bytes_text(&t->json, "{\"type\":\"function\",\"function\":{\"name\":");
    hn_bytes_json_text(&t->json, name);
    if ((v = hn_field_get(o, "description"))) {
        if (!hn_field_text(f, v, hn_field_path(at, path, "description"), &text)) return false;
        hn_bytes_text(&t->json, ",\"description\":");
        hn_bytes_json_text(&t->json, text);
    }
    if ((v = hn_field_get(o, schema))) {
        if (!hn_field_object(f, v, hn_field_path(at, path, schema))) return false;
        hn_bytes_text(&t->json, ",\"parameters\":");
        hn_field_value(f, &t->json, v);
    }
    if ((v = hn_field_get(o, "strict"))) {
        if (!hn_field_bool(f, v, hn_field_path(at, path, "strict"), &strict)) return false;
    }
    if (v) hn_bytes_text(&t->json, strict ? ",\"strict\":true" : ",\"strict\":false");
    hn_bytes_text(&t->json, "}}");
    return true;
}

bool hn_tool_pick(hn_tools *t, const json_t *name, const char *path)
{
    hn_fields *f = t->f;
    hn_ask *a = f->ask;
    const char *s;
    if (!name) return hn_field_missing(f, path, "a tool's name");
    if (!hn_field_text(f, name, path, &s)) return false;
    if (!*place_of(t, s)) return hn_field_range(f, path, name, "the name of one of tools");
    if (a->n_tool_names == HN_ASK_TOOLS)
        return hn_refuse(f->refusal, 400, "out_of_range", path, "%s: expected at most %d names", path, HN_ASK_TOOLS);
    if (!t->picked && !(t->picked = hn_arena_alloc(a->arena, HN_ASK_TOOLS * sizeof *t->picked)))
        return hn_field_lost(f);
    t->picked[a->n_tool_names++] = s;
    a->tool_names = t->picked;
    a->tool_choice = HN_TOOLS_NAMED;
    return true;
}

bool hn_tools_end(hn_tools *t, bool ok)
{
    hn_fields *f = t->f;
    hn_ask *a = f->ask;
    if (ok && t->n) {
        hn_bytes_text(&t->json, "]");
        ok = (a->tools = hn_bytes_keep(&t->json, a->arena)) || hn_field_lost(f);
    } else if (ok && a->tool_choice == HN_TOOLS_REQUIRED) {
        ok = hn_refuse(f->refusal, 400, "missing_field", "tools", "tool_choice asks for a call; expected tools");
    }
    if (ok && a->tools && a->has_form && a->form.kind != HONE_GRAMMAR_JSON_SCHEMA &&
        a->form.kind != HONE_GRAMMAR_JSON_OBJECT)
        ok = hn_refuse(f->refusal, 400, "unsupported_parameter", a->form_param,
                       "%s cannot hold beside tools; expected a JSON schema, or no tools", a->form_param);
    hn_bytes_free(&t->json);
    return ok;
}
