/* chat_ids: ids of calls as a template wants them. Clients send what their API, another model or they themselves made
 * of them; a call whose id does not fit gets one by its place in the conversation, so that one conversation is one
 * prompt by whichever route it comes. */
#include "base/json_tree.h"
#include "text/chat.h"

#include <stdlib.h>

enum { NINE = 9, ID_MAX = 192 };

typedef struct ids {
    bool named;             /* functions.NAME:7, as Kimi K2 counts them; else nine letters and digits, as Mistral's */
    json_t *known, *used;   /* as it came: as it fits; those that fit, of the whole conversation */
    const json_t *answered; /* the calls of the last answer, */
    size_t n_results;       /* and how many results came after it */
    uint64_t number;        /* of the next call */
    bool lost;
} ids;

static bool fits(const ids *x, const char *id, const json_t *name)
{
    static const char digits[] = "0123456789",
                      sign[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    size_t n = strlen(id), k = json_string_length(name), head = strlen("functions.");
    if (!x->named) return n == NINE && strspn(id, sign) == n;
    return n > head + k + 1 && memcmp(id, "functions.", head) == 0 &&
           memcmp(id + head, json_string_value(name), k) == 0 && id[head + k] == ':' &&
           strspn(id + head + k + 1, digits) == n - head - k - 1;
}

static void make(const ids *x, char *out, const json_t *name)
{
    static const char sign[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if (x->named) {
        int n = 128; /* whole characters */
        while (n > 0 && (json_string_length(name) > 128) && (json_string_value(name)[n] & 0xC0) == 0x80) n--;
        snprintf(out, ID_MAX, "functions.%.*s:%llu", n, json_string_value(name), (unsigned long long)x->number);
        return;
    }
    uint64_t h = hn_mix64(x->number + 0x63616C6Cu);
    for (size_t i = 0; i < NINE; i++, h /= 62) out[i] = sign[h % 62];
    out[NINE] = 0;
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

static void fit_call(ids *x, json_t *call)
{
    const json_t *f = json_object_get(call, "function"), *name = json_object_get(json_is_object(f) ? f : call, "name");
    const char *came = text_of(json_object_get(call, "id"));
    char own[ID_MAX];
    json_t *id;
    if (!json_is_object(call) || !json_is_string(name)) return;
    if (fits(x, came, name)) {
        x->number++;
        x->lost |= json_object_set_new(x->known, came, json_string(came)) != 0;
        return;
    }
    do {
        make(x, own, name);
        x->number++;
    } while (json_object_get(x->used, own));
    id = json_string(own);
    x->lost |= !id || (*came && json_object_set(x->known, came, id) != 0) || json_object_set(call, "id", id) != 0;
    json_decref(id);
}

/* The id of the call that it answers; one that names none answers those before it in turn. */
static void fit_result(ids *x, json_t *m)
{
    const char *came = text_of(json_object_get(m, "tool_call_id"));
    json_t *id = json_object_get(x->known, came);
    if (!*came) id = json_object_get(json_array_get(x->answered, x->n_results), "id");
    x->n_results++;
    if (id) x->lost |= json_object_set(m, "tool_call_id", id) != 0;
}

bool hn_chat_fit_ids(const hn_jinja *t, json_t *messages)
{
    size_t i, k;
    json_t *m, *call;
    ids x = { .named = hn_jinja_says(t, "tool_call_argument_begin") };
    if (!x.named && !hn_jinja_says(t, "[TOOL_CALLS]")) return true;
    x.known = json_object();
    x.used = json_object();
    x.lost = !x.known || !x.used;
    json_array_foreach(messages, i, m) mark_used(&x, json_object_get(m, "tool_calls"));
    json_array_foreach(messages, i, m)
    {
        json_t *calls = json_object_get(m, "tool_calls");
        json_array_foreach(calls, k, call) fit_call(&x, call);
        if (hn_json_is(json_object_get(m, "role"), "tool")) fit_result(&x, m);
        if (!json_array_size(calls)) continue;
        x.answered = calls;
        x.n_results = 0;
    }
    json_decref(x.known);
    json_decref(x.used);
    return !x.lost;
}
