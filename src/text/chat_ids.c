/* chat_ids: ids of calls as a template wants them. Clients send what their API, another model or they themselves made
 * of them; a call whose id does not fit gets one by its place in the conversation, so that one conversation is one
 * prompt by whichever route it comes. */
#include "base/json_tree.h"
#include "text/calls.h"

#include <stdlib.h>

enum { ID_MAX = 192 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

hn_call_ids hn_call_ids_of(const hn_jinja *t)
{
    if (hn_jinja_says(t, "tool_call_argument_begin")) return HN_CALL_IDS_DOTTED;
    return hn_jinja_says(t, "[TOOL_CALLS]") ? HN_CALL_IDS_NINE : HN_CALL_IDS_ANY;
}

void hn_call_letters(char *out, size_t n, uint64_t h)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = letters[h % (sizeof letters - 1)];
        h = hn_mix64(h + (uint64_t)i + 1);
    }
    out[n] = 0;
}

typedef struct ids {
    hn_call_ids want;
    json_t *known;          /* as it came: [how many had their result, those that fit, …] */
    json_t *turn;           /* as they came of the last answer */
    json_t *used;           /* those that fit, of the whole conversation */
    const json_t *answered; /* the calls of the last answer: */
    json_t *had;            /* ids of those that had a result, */
    size_t next;            /* and the calls before this one had */
    uint64_t number;        /* of the next call */
    bool lost;
} ids;

static bool fits(const ids *x, const char *id, const json_t *name)
{
    static const char digits[] = "0123456789";
    size_t n = strlen(id), k = json_string_length(name), head = strlen(HN_CALL_DOTTED);
    if (x->want == HN_CALL_IDS_NINE) return n == HN_CALL_NINE && strspn(id, letters) == n;
    return n > head + k + 1 && memcmp(id, HN_CALL_DOTTED, head) == 0 &&
           memcmp(id + head, json_string_value(name), k) == 0 && id[head + k] == ':' &&
           strspn(id + head + k + 1, digits) == n - head - k - 1;
}

static void make(const ids *x, char *out, const json_t *name)
{
    if (x->want == HN_CALL_IDS_DOTTED) {
        int n = HN_CALL_NAME_MAX; /* whole characters */
        bool more = json_string_length(name) > (size_t)n;
        while (n > 0 && more && (json_string_value(name)[n] & 0xC0) == 0x80) n--;
        snprintf(out, ID_MAX, HN_CALL_DOTTED "%.*s:%llu", n, json_string_value(name), (unsigned long long)x->number);
        return;
    }
    hn_call_letters(out, HN_CALL_NINE, hn_mix64(x->number + 0x63616C6Cu));
}

static const char *text_of(const json_t *v) { return json_is_string(v) ? json_string_value(v) : ""; }

/* Of all calls: what one of them has, no other gets. */
static void mark_used(ids *x, const json_t *calls)
{
    size_t i;
    json_t *call;
    json_array_foreach(calls, i, call)
    {
        const char *id = text_of(json_object_get(call, "id"));
        x->lost |= json_object_set_new(x->used, id, json_true()) != 0;
    }
}

/* The result of the call that came so is of this id. Several calls of one answer may have come with the same: their
 * results come in their order. What calls of earlier answers had is theirs no more. */
static void know(ids *x, const char *came, json_t *id)
{
    json_t *queue = json_object_get(x->turn, came) ? json_object_get(x->known, came) : NULL;
    if (!*came) return;
    if (!queue) {
        queue = json_pack("[i]", 0);
        x->lost |= json_object_set_new(x->turn, came, json_true()) != 0;
        x->lost |= !queue || json_object_set_new(x->known, came, queue) != 0;
    }
    x->lost = x->lost || json_array_append(queue, id) != 0;
}

static void fit_call(ids *x, json_t *call)
{
    const json_t *f = json_object_get(call, "function"), *name = json_object_get(json_is_object(f) ? f : call, "name");
    json_t *came = json_object_get(call, "id"), *id;
    char own[ID_MAX];
    if (!json_is_object(call) || !json_is_string(name)) return;
    if (fits(x, text_of(came), name)) {
        x->number++;
        know(x, text_of(came), came);
        return;
    }
    do {
        make(x, own, name);
        x->number++;
    } while (json_object_get(x->used, own));
    id = json_string(own);
    x->lost |= !id;
    if (id) know(x, text_of(came), id);
    x->lost |= json_object_set_new(call, "id", id) != 0;
}

/* The id of the call that it answers; one that names none that is known answers the first that has no result yet. */
static void fit_result(ids *x, json_t *m)
{
    json_t *queue = json_object_get(x->known, text_of(json_object_get(m, "tool_call_id"))),
           *next = json_array_get(queue, 0), *id = NULL;
    for (; !queue && x->next < json_array_size(x->answered); x->next++) {
        id = json_object_get(json_array_get(x->answered, x->next), "id");
        if (!json_object_get(x->had, text_of(id))) break;
        id = NULL;
    }
    if (!queue && !id) x->next++; /* one without an id */
    if (queue) {
        json_int_t at = json_integer_value(next) + 1;
        id = json_array_get(queue, (size_t)at);
        if ((size_t)at + 1 < json_array_size(queue)) json_integer_set(next, at);
    }
    if (id) x->lost |= json_object_set_new(x->had, text_of(id), json_true()) != 0;
    if (id) x->lost |= json_object_set(m, "tool_call_id", id) != 0;
}

bool hn_chat_fit_ids(const hn_jinja *t, json_t *messages)
{
    size_t i, k;
    json_t *m, *call;
    ids x = { .want = hn_call_ids_of(t) };
    if (x.want == HN_CALL_IDS_ANY) return true;
    x.known = json_object();
    x.turn = json_object();
    x.used = json_object();
    x.had = json_object();
    x.lost = !x.known || !x.turn || !x.used || !x.had;
    json_array_foreach(messages, i, m) mark_used(&x, json_object_get(m, "tool_calls"));
    json_array_foreach(messages, i, m)
    {
        json_t *calls = json_object_get(m, "tool_calls");
        if (json_array_size(calls)) json_object_clear(x.turn);
        json_array_foreach(calls, k, call) fit_call(&x, call);
        if (hn_json_is(json_object_get(m, "role"), "tool")) fit_result(&x, m);
        if (!json_array_size(calls)) continue;
        x.answered = calls;
        x.next = 0;
        json_object_clear(x.had);
    }
    json_decref(x.known);
    json_decref(x.turn);
    json_decref(x.used);
    json_decref(x.had);
    return !x.lost;
}
