/* chat_turns: conversations as templates take them that refuse them as they are: system messages one, and first; turns
 * of one person in one; no system message at all. Owns how two messages become one; refuses to know templates. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "text/chat.h"

#include <stdlib.h>

/* ---- contents -------------------------------------------------------------------------------------------- */

json_t *hn_chat_joined(const json_t *parts, const char *between)
{
    size_t n = 0, room = 1, i;
    json_t *p;
    json_array_foreach(parts, i, p) room += strlen(between) + json_string_length(json_object_get(p, "text"));
    char *s = malloc(room);
    if (!s) return NULL;

    json_array_foreach(parts, i, p)
    {
        const json_t *text = json_object_get(p, "text");
        if (!json_is_string(text)) continue;
        size_t gap = n ? strlen(between) : 0;
        memcpy(s + n, between, gap);
        memcpy(s + n + gap, json_string_value(text), json_string_length(text));
        n += gap + json_string_length(text);
    }
    json_t *all = json_stringn(s, n);
    free(s);
    return all;
}

static bool is_empty(const json_t *content) { return !json_string_length(content) && !json_array_size(content); }

/* Content behind parts, as a part or as those that it is. */
static bool add_parts(json_t *parts, json_t *content)
{
    if (json_is_array(content)) return json_array_extend(parts, content) == 0;
    return json_array_append_new(parts, json_pack("{s:s, s:O}", "type", "text", "text", content)) == 0;
}

/* One content behind the other: texts with a blank line between them, parts after parts. New; NULL: out of memory. */
static json_t *one_content(json_t *a, json_t *b)
{
    if (is_empty(a) || is_empty(b)) return json_incref(is_empty(b) ? a : b);
    json_t *parts = json_array(), *text;
    if (!parts || !add_parts(parts, a) || !add_parts(parts, b)) {
        json_decref(parts);
        return NULL;
    }
    if (!json_is_string(a) || !json_is_string(b)) return parts;
    text = hn_chat_joined(parts, "\n\n");
    json_decref(parts);
    return text;
}

/* ---- messages -------------------------------------------------------------------------------------------- */

static bool is(const json_t *m, const char *role) { return hn_json_is(json_object_get(m, "role"), role); }
static bool is_rule(const json_t *m) { return is(m, "system") || is(m, "developer"); }

static bool set_role(json_t *m, const char *role) { return json_object_set_new(m, "role", json_string(role)) == 0; }

/* Whether the text of a member of that name is something said, of which more can be said. */
static bool is_said(const char *key)
{
    static const char *const keys[] = { "content", "reasoning_content", "thinking", "reasoning", NULL };
    for (const char *const *k = keys; *k; k++)
        if (strcmp(key, *k) == 0) return true;
    return false;
}

/* Message i takes in the one behind it: what both say, one after the other, and what the other alone has. */
static bool take_next(json_t *messages, size_t i)
{
    json_t *m = json_array_get(messages, i), *next = json_array_get(messages, i + 1), *value;
    const char *key;
    json_object_foreach(next, key, value)
    {
        json_t *mine = json_object_get(m, key);
        if (mine && !is_said(key)) continue;
        if (json_object_set_new(m, key, mine ? one_content(mine, value) : json_incref(value)) != 0) return false;
    }
    return json_array_remove(messages, i + 1) == 0;
}

/* One system message, and first: the others that stand there become part of it, later ones are the user's. */
static bool system_first(json_t *messages, bool *changed)
{
    size_t i;
    json_t *m;
    if (is_rule(json_array_get(messages, 0)) && !is(json_array_get(messages, 0), "system")) {
        *changed = true;
        if (!set_role(json_array_get(messages, 0), "system")) return false;
    }
    while (is_rule(json_array_get(messages, 0)) && is_rule(json_array_get(messages, 1))) {
        *changed = true;
        if (!take_next(messages, 0)) return false;
    }
    json_array_foreach(messages, i, m)
    {
        if (!i || !is_rule(m)) continue;
        *changed = true;
        if (!set_role(m, "user")) return false;
    }
    return true;
}

/* Whether a and b are turns of one person, and words alone. */
static bool one_turn(const json_t *a, const json_t *b)
{
    if (is(a, "user")) return is(b, "user");
    return is(a, "assistant") && is(b, "assistant") && !json_array_size(json_object_get(a, "tool_calls")) &&
           !json_array_size(json_object_get(b, "tool_calls"));
}

static bool in_turn(json_t *messages, bool *changed)
{
    for (size_t i = 0; i + 1 < json_array_size(messages);) {
        if (!one_turn(json_array_get(messages, i), json_array_get(messages, i + 1))) {
            i++;
            continue;
        }
        *changed = true;
        if (!take_next(messages, i)) return false;
    }
    return true;
}

/* The system text in front of the first user text; where an answer comes first, it is what the user began with. */
static bool without_system(json_t *messages, bool *changed)
{
    json_t *system = json_array_get(messages, 0), *next = json_array_get(messages, 1);
    if (!is(system, "system") || !(is(next, "user") || is(next, "assistant"))) return true;
    *changed = true;
    return set_role(system, "user") && (!is(next, "user") || take_next(messages, 0));
}

bool hn_chat_arrange(json_t *messages, hn_chat_order order, bool *changed)
{
    *changed = false;
    switch (order) {
    case HN_CHAT_SYSTEM_FIRST: return system_first(messages, changed);
    case HN_CHAT_IN_TURN: return in_turn(messages, changed);
    default: return without_system(messages, changed);
    }
}

/* ---- what must not be lost ------------------------------------------------------------------------------- */

static bool says(const hn_jinja_text *t, const json_t *text)
{
    const char *s = json_string_value(text);
    size_t n = json_string_length(text), begin = 0;
    while (n && strchr(" \t\r\n", s[n - 1])) n--;
    while (begin < n && strchr(" \t\r\n", s[begin])) begin++;
    return begin == n || memmem(t->text, t->len, s + begin, n - begin);
}

bool hn_chat_instructs(const hn_jinja_text *t, const json_t *messages)
{
    size_t i, k;
    json_t *m, *part;
    json_array_foreach(messages, i, m)
    {
        const json_t *content = json_object_get(m, "content");
        if (!is_rule(m)) continue;
        if (json_is_string(content) && !says(t, content)) return false;
        json_array_foreach(content, k, part)
        {
            if (!says(t, json_object_get(part, "text"))) return false;
        }
    }
    return true;
}

bool hn_chat_mark_rules(json_t *messages)
{
    size_t i;
    json_t *m;
    json_array_foreach(messages, i, m)
    {
        char mark[48];
        if (!is_rule(m)) continue;
        snprintf(mark, sizeof mark, "hone-probe-rule-%zu.", i);
        json_t *content = json_is_array(json_object_get(m, "content"))
                              ? json_pack("[{s:s, s:s}]", "type", "text", "text", mark)
                              : json_string(mark);
        if (json_object_set_new(m, "content", content) != 0) return false;
    }
    return true;
}
