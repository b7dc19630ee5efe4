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

/* What messages [i, end) have as `key`, one behind the other: texts with a blank line between them, parts after parts.
 * New; NULL: out of memory, or none has any, which *any tells. */
static json_t *gathered(const json_t *messages, size_t i, size_t end, const char *key, bool *any)
{
    json_t *parts = json_array();
    bool texts = true;
    *any = !parts;
    for (; parts && i < end; i++) {
        json_t *said = json_object_get(json_array_get(messages, i), key);
        if (is_empty(said)) continue;
        *any = true;
        texts &= json_is_string(said);
        if (add_parts(parts, said)) continue;
        json_decref(parts);
        parts = NULL;
    }
    json_t *all = texts && *any && parts ? hn_chat_joined(parts, "\n\n") : *any ? json_incref(parts) : NULL;
    json_decref(parts);
    return all;
}

/* ---- messages -------------------------------------------------------------------------------------------- */

static bool is(const json_t *m, const char *role) { return hn_json_is(json_object_get(m, "role"), role); }
static bool is_rule(const json_t *m) { return is(m, "system") || is(m, "developer"); }

static bool set_role(json_t *m, const char *role) { return json_object_set_new(m, "role", json_string(role)) == 0; }

/* Members that are words, of which more can be said: the content, and reasoning under each of its names; NULL: none. */
enum { N_SAID = HN_CHAT_N_REASONING };
static const char *said(int k) { return k == HN_CHAT_REASONING_NONE ? "content" : hn_chat_reasoning_names[k]; }

/* Message i says what messages [i, end) do, and has what any of them has. */
static bool take_in(json_t *messages, size_t i, size_t end)
{
    json_t *m = json_array_get(messages, i), *all[N_SAID], *value;
    const char *key;
    bool ok = true, any;
    for (int k = 0; k < N_SAID; k++) {
        any = false;
        all[k] = said(k) ? gathered(messages, i, end, said(k), &any) : NULL;
        ok &= all[k] || !any;
    }
    for (size_t j = i + 1; ok && j < end; j++) json_object_foreach(json_array_get(messages, j), key, value)
        {
            if (!json_object_get(m, key)) ok &= json_object_set(m, key, value) == 0;
        }
    for (int k = 0; k < N_SAID; k++)
        if (all[k]) ok &= json_object_set_new(m, said(k), all[k]) == 0;
    return ok;
}

typedef bool together_fn(const json_t *a, const json_t *b);

/* Messages that are together with the one before become part of it. One pass, whatever they are. */
static bool join_runs(json_t *messages, together_fn *together, bool *changed)
{
    size_t n = json_array_size(messages), end;
    json_t *kept = json_array();
    bool ok = kept != NULL;
    for (size_t i = 0; ok && i < n; i = end) {
        for (end = i + 1; end < n && together(json_array_get(messages, end - 1), json_array_get(messages, end));) end++;
        if (end > i + 1) *changed = true;
        ok = (end == i + 1 || take_in(messages, i, end)) && json_array_append(kept, json_array_get(messages, i)) == 0;
    }
    if (ok && json_array_size(kept) < n) ok = json_array_clear(messages) == 0 && json_array_extend(messages, kept) == 0;
    json_decref(kept);
    return ok;
}

static bool both_rules(const json_t *a, const json_t *b) { return is_rule(a) && is_rule(b); }

/* One system message, and first: the others that stand there become part of it, later ones are the user's. */
static bool system_first(json_t *messages, bool *changed)
{
    size_t i;
    json_t *m;
    bool head = true, ok = true;
    json_array_foreach(messages, i, m)
    {
        head = head && is_rule(m);
        const char *role = head ? "system" : "user";
        if (!is_rule(m) || is(m, role)) continue;
        *changed = true;
        ok &= set_role(m, role);
    }
    return ok && join_runs(messages, both_rules, changed);
}

/* Whether a and b are turns of one person, and words alone. */
static bool one_turn(const json_t *a, const json_t *b)
{
    if (is(a, "user")) return is(b, "user");
    return is(a, "assistant") && is(b, "assistant") && !json_array_size(json_object_get(a, "tool_calls")) &&
           !json_array_size(json_object_get(b, "tool_calls"));
}

/* Whether b is the user's word behind a tool's result, where Mistral's templates want the answer first. */
static bool behind_result(const json_t *a, const json_t *b) { return is(a, "tool") && is(b, "user"); }

/* Whether an answer says nothing, in no way. */
static bool says_nothing(const json_t *m)
{
    for (int k = 0; k < N_SAID; k++)
        if (said(k) && !is_empty(json_object_get(m, said(k)))) return false;
    return is(m, "assistant") && !json_array_size(json_object_get(m, "tool_calls"));
}

/* Without answers that say nothing but for the last message, which may be the beginning of one; turns on both sides of
 * one that was left out are one. */
static bool spoken(json_t *messages, bool *changed)
{
    for (size_t i = json_array_size(messages); i-- > 1;)
        if (says_nothing(json_array_get(messages, i - 1))) {
            *changed = true;
            if (json_array_remove(messages, i - 1) != 0) return false;
        }
    return !*changed || join_runs(messages, one_turn, changed);
}

/* The system text in front of the first user text; where an answer comes first, it is what the user began with. */
static bool without_system(json_t *messages, bool *changed)
{
    json_t *system = json_array_get(messages, 0), *next = json_array_get(messages, 1);
    if (!is(system, "system") || !(is(next, "user") || is(next, "assistant"))) return true;
    *changed = true;
    if (!set_role(system, "user")) return false;
    return !is(next, "user") || (take_in(messages, 0, 2) && json_array_remove(messages, 1) == 0);
}

bool hn_chat_arrange(json_t *messages, hn_chat_order order, bool *changed)
{
    *changed = false;
    switch (order) {
    case HN_CHAT_SYSTEM_FIRST: return system_first(messages, changed);
    case HN_CHAT_IN_TURN: return join_runs(messages, one_turn, changed);
    case HN_CHAT_IN_RESULT: return join_runs(messages, behind_result, changed);
    case HN_CHAT_SPOKEN: return spoken(messages, changed);
    default: return without_system(messages, changed);
    }
}

/* ---- what must not be lost ------------------------------------------------------------------------------- */

/* Whether text, but for blanks at its ends, is in t from byte *at on; *at is then behind it. */
static bool says(const hn_jinja_text *t, const json_t *text, size_t *at)
{
    const char *s = json_string_value(text);
    size_t n = json_string_length(text), begin = 0;
    while (n && strchr(" \t\r\n", s[n - 1])) n--;
    while (begin < n && strchr(" \t\r\n", s[begin])) begin++;
    if (begin == n) return true;
    const char *found = memmem(t->text + *at, t->len - *at, s + begin, n - begin);
    if (found) *at = (size_t)(found - t->text) + n - begin;
    return found != NULL;
}

bool hn_chat_rule_first(const json_t *messages)
{
    size_t i;
    json_t *m;
    if (!is_rule(json_array_get(messages, 0))) return false;
    json_array_foreach(messages, i, m)
    {
        if (i && is_rule(m)) return false;
    }
    return true;
}

bool hn_chat_instructs(const hn_jinja_text *t, const json_t *messages)
{
    size_t i, k, at = 0;
    json_t *m, *part;
    json_array_foreach(messages, i, m)
    {
        const json_t *content = json_object_get(m, "content");
        if (!is_rule(m)) continue;
        if (json_is_string(content) && !says(t, content, &at)) return false;
        json_array_foreach(content, k, part)
        {
            if (!says(t, json_object_get(part, "text"), &at)) return false;
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
