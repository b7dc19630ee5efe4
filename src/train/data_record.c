/* data_record: one record of data, an object of strings, into samples. Owns the kinds of records and plain completions;
 * refuses to know files. What the kinds are:
 *     {"messages": […]}                              a conversation
 *     {"conversations": [{"from": …, "value": …}]}   the same in ShareGPT's words, or in those of messages
 *     {"instruction": …, "input": …, "output": …}    Alpaca: a question and its answer, "history": those before it
 *     {"prompt": …, "completion": …}                 side by side as they stand, without a template; two arrays: a
 *                                                    conversation, of which the second is learnt
 *     {"text": …}                                    a text
 * Beside messages there may be a "system" message and "tools". The first readable record with keys of one decides
 * for its file, in this order; other keys are ignored. Strings may hold any character, also U+0000. */
#include "text/chat.h"
#include "train/data_parts.h"

#include <strings.h>

static const char *type_name(const json_t *j)
{
    static const char *const names[] = { "an object", "an array", "a string", "a number",
                                         "a number",  "true",     "false",    "null" };
    return j ? names[json_typeof(j)] : "missing";
}

/* The string of a key, or NULL and *st: the line is bad. */
static const json_t *text_of(hn_data_reader *r, const json_t *o, const char *key, bool may_be_empty, hone_status *st)
{
    const json_t *s = json_object_get(o, key);
    *st = HONE_OK;
    if (!json_is_string(s))
        *st = hn_data_bad(r, s ? "\"%s\" is %s, expected a string" : "\"%s\" is %s", key, type_name(s));
    else if (!may_be_empty && json_string_length(s) == 0) *st = hn_data_bad(r, "\"%s\" is empty", key);
    else return s;
    return NULL;
}

static hone_status put_text(hn_data_reader *r, const json_t *o)
{
    hone_status st;
    const json_t *s = text_of(r, o, "text", false, &st);
    if (!s) return st;
    r->ids.n = 0;
    r->d->stats.n_text++;
    if ((st = hn_data_put_bos(r, &r->ids)) != HONE_OK ||
        (st = hn_data_encode(r, json_string_value(s), json_string_length(s), &r->ids)) != HONE_OK ||
        (st = hn_data_put_eos(r, &r->ids)) != HONE_OK)
        return st;
    return hn_data_put_text(r, true);
}

/* prompt[a] completion[b], of which the second counts: what is after the tokens that the two have in common with the
 * prompt alone. */
static hone_status put_pair(hn_data_reader *r, const char *prompt, size_t a, const char *completion, size_t b)
{
    hone_status st;
    if (a + b > r->cap_text) {
        size_t cap = 2 * (a + b);
        char *p = realloc(r->text, cap);
        if (!p)
            return HN_FAIL(r->err, HONE_E_NOMEM, "%s:%lld: a record of %zu bytes", r->path, (long long)r->line, a + b);
        r->text = p;
        r->cap_text = cap;
    }
    memcpy(r->text, prompt, a);
    memcpy(r->text + a, completion, b);
    r->ids.n = r->other.n = 0;
    r->d->stats.n_pair++;
    if ((st = hn_data_put_bos(r, &r->ids)) != HONE_OK || (st = hn_data_encode(r, r->text, a + b, &r->ids)) != HONE_OK ||
        (st = hn_data_put_eos(r, &r->ids)) != HONE_OK)
        return st;
    if (r->p->mask == HN_MASK_NONE) return hn_data_put(r, NULL);
    if ((st = hn_data_put_bos(r, &r->other)) != HONE_OK || (st = hn_data_encode(r, r->text, a, &r->other)) != HONE_OK ||
        (st = hn_data_targets(r, 0, 1)) != HONE_OK)
        return st;
    memset(r->target, 0, hn_data_common(&r->ids, &r->other));
    return hn_data_put(r, r->target);
}

static hone_status no_memory(hn_data_reader *r)
{
    return HN_FAIL(r->err, HONE_E_NOMEM, "%s:%lld: record", r->path, (long long)r->line);
}

/* ---- conversations ------------------------------------------------------------------------------------------ */

/* s as a value of JSON, which *out owns; NULL: it is none, or *st. */
static json_t *parse_string(hn_data_reader *r, const json_t *s, hone_status *st)
{
    const hn_json_rules rules = { .flags = HN_JSON_UNIQUE | HN_JSON_ALLOW_NUL | HN_JSON_BIG };
    json_t *o = NULL;
    *st = hn_json_tree(&o, json_string_value(s), json_string_length(s), &rules, "a string", NULL);
    *st = *st == HONE_E_NOMEM ? no_memory(r) : HONE_OK;
    return o;
}

/* What stands beside the messages of a record. */
typedef struct beside {
    const json_t *system; /* borrowed, NULL: none */
    json_t *tools;        /* owned, NULL: none */
} beside;

/* An array, or a string with one in it, as tables and some sets of data have them; NULL: none, or an empty one. False:
 * *st. */
static bool read_array(hn_data_reader *r, const json_t *o, const char *key, json_t **out, hone_status *st)
{
    json_t *v = json_object_get(o, key);
    *st = HONE_OK;
    *out = NULL;
    if (!v || json_is_null(v) || (json_is_string(v) && !json_string_length(v))) return true;
    bool text = json_is_string(v);
    json_t *a = text ? parse_string(r, v, st) : json_incref(v);
    if (*st != HONE_OK) return false;
    if (json_is_array(a) && json_array_size(a)) {
        *out = a;
        return true;
    }
    bool none = json_is_array(a);
    json_decref(a);
    if (none) return true;
    *st = text ? hn_data_bad(r, "\"%s\" is a string, and there is no array in it", key)
               : hn_data_bad(r, "\"%s\" is %s, expected an array", key, type_name(v));
    return false;
}

/* False: *st. */
static bool read_beside(hn_data_reader *r, const json_t *o, beside *b, hone_status *st)
{
    const json_t *s = json_object_get(o, "system");
    *st = HONE_OK;
    *b = (beside){ 0 };
    if (s && !json_is_null(s) && !json_is_string(s)) {
        *st = hn_data_bad(r, "\"system\" is %s, expected a string", type_name(s));
        return false;
    }
    b->system = json_string_length(s) ? s : NULL;
    return read_array(r, o, "tools", &b->tools, st);
}

/* OpenAI's mark of answers that are not learnt. Returns the first message with another one, or their number. */
static size_t find_weight(const json_t *messages)
{
    size_t i;
    json_t *m;
    json_array_foreach(messages, i, m)
    {
        const json_t *w = json_object_get(m, "weight");
        double x = json_number_value(w);
        if (w && !json_is_null(w) && !(json_is_number(w) && (x == 0 || x == 1))) break;
    }
    return i;
}

/* Where the messages of this record are from. */
static void stand_at(hn_data_reader *r, hn_data_from a, hn_data_from b, hn_data_from c)
{
    r->from[0] = (hn_data_from){ 0 };
    r->from[1] = a;
    r->from[2] = b;
    r->from[3] = c;
}
static const hn_data_from nowhere;

/* Writes the messages, which are the caller's own and stood at r->from, with what stands beside them. */
static hone_status put_messages(hn_data_reader *r, json_t *all, const beside *b)
{
    char place[HN_DATA_PLACE];
    const json_t *first = json_array_get(all, 0);
    bool has = hn_json_is(json_object_get(first, "role"), "system");
    size_t weight = find_weight(all);
    if (weight < json_array_size(all))
        return hn_data_bad(r, "%s.weight: expected 0 or 1", hn_data_place(r, weight, place));
    if (b->system && has && !json_equal(json_object_get(first, "content"), b->system))
        return hn_data_bad(r, "\"system\" stands beside another system message");
    if (b->system && !has) {
        r->from[0] = (hn_data_from){ "system", 1, HN_DATA_ONE };
        if (json_array_insert_new(all, 0, json_pack("{s:s, s:O}", "role", "system", "content", b->system)) != 0)
            return no_memory(r);
    }
    return hn_data_conversation(r, all, b->tools);
}

/* The messages of a key, owned: an array that is not empty, or a string with one in it. NULL: *st. */
static json_t *read_list(hn_data_reader *r, const json_t *o, const char *key, hone_status *st)
{
    const json_t *v = json_object_get(o, key);
    json_t *list = NULL;
    if (!json_is_array(v) && !json_string_length(v))
        *st = hn_data_bad(r, v ? "\"%s\" is %s, expected an array" : "\"%s\" is %s", key,
                          json_is_string(v) ? "an empty string" : type_name(v));
    else if (read_array(r, o, key, &list, st) && !list) *st = hn_data_bad(r, "\"%s\" is empty", key);
    return list;
}

static hone_status put_chat(hn_data_reader *r, const json_t *o)
{
    beside b;
    hone_status st;
    json_t *list = read_list(r, o, "messages", &st);
    if (list && read_beside(r, o, &b, &st)) {
        json_t *all = json_array();
        stand_at(r, (hn_data_from){ "messages", json_array_size(list), HN_DATA_EACH }, nowhere, nowhere);
        st = json_array_extend(all, list) == 0 ? put_messages(r, all, &b) : no_memory(r);
        json_decref(all);
        json_decref(b.tools);
    }
    json_decref(list);
    return st;
}

/* Adds those messages of a key to all, whose answers are read, not learnt, or all as they are. False: *st. */
static bool add_turns(hn_data_reader *r, const json_t *o, const char *key, bool learnt, json_t *all, hone_status *st)
{
    json_t *list = read_list(r, o, key, st), *m;
    size_t i;
    bool ok = true;
    json_array_foreach(list, i, m)
    {
        bool marked = !learnt && json_is_object(m);
        json_t *own = marked ? json_object() : json_incref(m);
        if (marked) ok = json_object_update(own, m) == 0 && json_object_set_new(own, "weight", json_integer(0)) == 0;
        if (!(ok = json_array_append_new(all, own) == 0 && ok)) break;
    }
    if (!ok) *st = no_memory(r);
    ok = ok && list;
    json_decref(list);
    return ok;
}

/* TRL's: a conversation, and how it goes on. */
static hone_status put_turns(hn_data_reader *r, const json_t *o)
{
    beside b;
    hone_status st;
    json_t *all = json_array();
    if (!all) return no_memory(r);
    size_t n = 0;
    bool ok = add_turns(r, o, "prompt", false, all, &st) && (n = json_array_size(all)) > 0 &&
              add_turns(r, o, "completion", true, all, &st);
    if (ok && read_beside(r, o, &b, &st)) {
        stand_at(r, (hn_data_from){ "prompt", n, HN_DATA_EACH },
                 (hn_data_from){ "completion", json_array_size(all) - n, HN_DATA_EACH }, nowhere);
        st = put_messages(r, all, &b);
        json_decref(b.tools);
    }
    json_decref(all);
    return st;
}

/* Are they a conversation: an array, or, of a cell, a string with an array of messages in it? False also: *st. */
static bool are_turns(hn_data_reader *r, const json_t *prompt, hone_status *st)
{
    *st = HONE_OK;
    if (json_is_array(prompt)) return true;
    const char *s = r->cells ? json_string_value(prompt) : NULL;
    if (!s || s[strspn(s, " \t\r\n")] != '[') return false;
    json_t *list = parse_string(r, prompt, st), *m;
    size_t i;
    bool all = json_array_size(list) > 0;
    json_array_foreach(list, i, m) { all = all && json_is_string(json_object_get(m, "role")); }
    json_decref(list);
    return all;
}

static hone_status put_completion(hn_data_reader *r, const json_t *o)
{
    hone_status st;
    if (are_turns(r, json_object_get(o, "prompt"), &st)) return put_turns(r, o);
    if (st != HONE_OK) return st;
    const json_t *p = text_of(r, o, "prompt", true, &st), *c = p ? text_of(r, o, "completion", false, &st) : NULL;
    return c ? put_pair(r, json_string_value(p), json_string_length(p), json_string_value(c), json_string_length(c))
             : st;
}

/* The role of a word of ShareGPT's; *calls: its value is calls of functions. NULL: none. */
static const char *role_of(const json_t *from, bool *calls)
{
    static const struct {
        const char *from, *role;
    } roles[] = {
        { "human", "user" },      { "user", "user" },         { "gpt", "assistant" },  { "assistant", "assistant" },
        { "model", "assistant" }, { "chatgpt", "assistant" }, { "bing", "assistant" }, { "bard", "assistant" },
        { "system", "system" },   { "tool", "tool" },         { "function", "tool" },  { "observation", "tool" },
    };
    *calls = hn_json_is(from, "function_call");
    if (*calls) return "assistant";
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (hn_json_is(from, roles[i].from)) return roles[i].role;
    return NULL;
}

/* {"name": …, "arguments": …} or an array of them, as a string, in the words of messages. NULL: it is none, or *st. */
static json_t *read_calls(hn_data_reader *r, const json_t *value, hone_status *st)
{
    json_t *said = parse_string(r, value, st), *out = json_array(), *one;
    size_t n = json_is_array(said) ? json_array_size(said) : 1;
    bool ok = said && out && n, room = out != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        one = json_is_array(said) ? json_array_get(said, i) : said;
        json_t *name = json_object_get(one, "name"), *args = json_object_get(one, "arguments");
        ok = json_is_string(name) && args;
        if (ok)
            ok = room = json_array_append_new(out, json_pack("{s:s, s:{s:O, s:O}}", "type", "function", "function",
                                                             "name", name, "arguments", args)) == 0;
    }
    json_decref(said);
    if (!room && *st == HONE_OK) *st = no_memory(r);
    if (ok) return out;
    json_decref(out);
    return NULL;
}

/* What stands beside a turn's role and words, weight, calls, reasoning, is the message's. False: no memory. */
static bool keep_others(json_t *m, const json_t *turn)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)turn, key, value)
    {
        bool read = strcmp(key, "from") == 0 || strcmp(key, "value") == 0 || strcmp(key, "role") == 0;
        if (!read && !json_object_get(m, key) && json_object_set_nocheck(m, key, value) != 0) return false;
    }
    return true;
}

/* Turn i of ShareGPT's as a message, owned; NULL: *st. */
static json_t *read_turn(hn_data_reader *r, json_t *turn, size_t i, hone_status *st)
{
    json_t *from = json_object_get(turn, "from"), *value = json_object_get(turn, "value"), *list, *m;
    bool calls, message = !from && json_is_string(json_object_get(turn, "role"));
    *st = HONE_OK;
    if (message) from = json_object_get(turn, "role"), value = json_object_get(turn, "content");
    const char *role = role_of(from, &calls);
    if (message && (!role || hn_json_is(from, role))) return json_incref(turn);
    bool silent = (!value || json_is_null(value)) && json_array_size(json_object_get(turn, "tool_calls"));
    if (!json_is_string(from) || !(json_is_string(value) || silent)) {
        *st = hn_data_bad(r, "conversations[%zu]: expected an object with strings \"from\" and \"value\"", i);
        return NULL;
    }
    if (!role) {
        *st = hn_data_bad(r,
                          "conversations[%zu].from is '%s', expected human, gpt, system, tool, function_call or "
                          "observation",
                          i, HN_ESC(json_string_value(from), json_string_length(from)));
        return NULL;
    }
    if (!calls || silent) {
        m = json_pack("{s:s, s:O*}", "role", role, "content", silent ? NULL : value);
    } else {
        list = read_calls(r, value, st);
        if (!list && *st == HONE_OK)
            *st =
                hn_data_bad(r, "conversations[%zu].value: expected JSON with \"name\" and \"arguments\" of a call", i);
        if (!list) return NULL;
        m = json_pack("{s:s, s:s, s:o}", "role", role, "content", "", "tool_calls", list);
    }
    if (m && keep_others(m, turn)) return m;
    json_decref(m);
    *st = no_memory(r);
    return NULL;
}

/* Functions stand there without the {"type": "function", …} around them that templates expect. False: no memory. */
static bool wrap_tools(json_t **tools)
{
    json_t *out = *tools ? json_array() : NULL, *one;
    size_t i;
    bool ok = !*tools || out;
    json_array_foreach(*tools, i, one)
    {
        bool bare = json_is_object(one) && json_object_get(one, "name") && !json_object_get(one, "function");
        if (!ok) break;
        json_t *t = bare ? json_pack("{s:s, s:O}", "type", "function", "function", one) : json_incref(one);
        ok = json_array_append_new(out, t) == 0;
    }
    json_decref(*tools);
    *tools = out;
    return ok;
}

static hone_status put_sharegpt(hn_data_reader *r, const json_t *o)
{
    beside b = { 0 };
    hone_status st;
    json_t *list = read_list(r, o, "conversations", &st), *all = json_array(), *m = all;
    bool ok = all != NULL;
    if (list && read_beside(r, o, &b, &st)) {
        for (size_t i = 0; i < json_array_size(list) && ok && m; i++)
            if ((m = read_turn(r, json_array_get(list, i), i, &st))) ok = json_array_append_new(all, m) == 0;
        if (!ok || !wrap_tools(&b.tools)) st = no_memory(r);
        else if (m) {
            stand_at(r, (hn_data_from){ "conversations", json_array_size(all), HN_DATA_EACH }, nowhere, nowhere);
            st = put_messages(r, all, &b);
        }
    }
    json_decref(list);
    json_decref(all);
    json_decref(b.tools);
    return st;
}

/* ---- Alpaca ------------------------------------------------------------------------------------------------- */

/* Appends len bytes and more to r->text, where *n are. */
static bool add_text(hn_data_reader *r, size_t *n, const char *s, size_t len)
{
    if (len > r->cap_text - *n) {
        size_t cap = 2 * (*n + len);
        char *p = realloc(r->text, cap);
        if (!p) return false;
        r->text = p;
        r->cap_text = cap;
    }
    memcpy(r->text + *n, s, len);
    *n += len;
    return true;
}
static bool add_words(hn_data_reader *r, size_t *n, const char *s) { return add_text(r, n, s, strlen(s)); }
static bool add_string(hn_data_reader *r, size_t *n, const json_t *s)
{
    return add_text(r, n, json_string_value(s), json_string_length(s));
}

/* A question and its answers before it, [[q, a], …]. Returns the first that is none, or their number. */
static size_t find_no_pair(const json_t *history)
{
    size_t i;
    json_t *one;
    json_array_foreach(history, i, one) if (json_array_size(one) != 2 || !json_is_string(json_array_get(one, 0)) ||
                                            !json_is_string(json_array_get(one, 1))) break;
    return i;
}

typedef struct alpaca {
    const json_t *question, *in, *answer; /* in NULL: none */
    json_t *history;                      /* owned, NULL: none */
    beside b;
} alpaca;

static hone_status put_alpaca_chat(hn_data_reader *r, const alpaca *x)
{
    size_t n = 0, i;
    json_t *all = json_array(), *one;
    bool ok =
        all && add_string(r, &n, x->question) && (!x->in || (add_words(r, &n, "\n\n") && add_string(r, &n, x->in)));
    json_array_foreach(x->history, i, one)
    {
        const char *const roles[] = { "user", "assistant" };
        for (size_t k = 0; k < 2 && ok; k++)
            ok = json_array_append_new(
                     all, json_pack("{s:s, s:O}", "role", roles[k], "content", json_array_get(one, k))) == 0;
    }
    ok = ok &&
         json_array_append_new(all, json_pack("{s:s, s:o}", "role", "user", "content", json_stringn(r->text, n))) == 0;
    ok = ok && json_array_append_new(all, json_pack("{s:s, s:O}", "role", "assistant", "content", x->answer)) == 0;
    stand_at(r, (hn_data_from){ "history", 2 * json_array_size(x->history), HN_DATA_PAIRS },
             (hn_data_from){ "instruction", 1, HN_DATA_ONE }, (hn_data_from){ "output", 1, HN_DATA_ONE });
    hone_status st = ok ? put_messages(r, all, &x->b) : no_memory(r);
    json_decref(all);
    return st;
}

/* Without a chat template: under the headings of Alpaca's own prompts. */
static hone_status put_alpaca_text(hn_data_reader *r, const alpaca *x)
{
    size_t n = 0, i;
    json_t *one;
    if (x->b.tools) return hn_data_bad(r, "\"tools\", and the model has no chat template that would show them");
    bool ok = !x->b.system || (add_string(r, &n, x->b.system) && add_words(r, &n, "\n\n"));
    json_array_foreach(x->history, i, one) ok = ok && add_words(r, &n, "### Instruction:\n") &&
                                                add_string(r, &n, json_array_get(one, 0)) &&
                                                add_words(r, &n, "\n\n### Response:\n") &&
                                                add_string(r, &n, json_array_get(one, 1)) && add_words(r, &n, "\n\n");
    ok = ok && add_words(r, &n, "### Instruction:\n") && add_string(r, &n, x->question);
    ok = ok && (!x->in || (add_words(r, &n, "\n\n### Input:\n") && add_string(r, &n, x->in)));
    ok = ok && add_words(r, &n, "\n\n### Response:\n");
    char *prompt = ok ? malloc(n) : NULL; /* put_pair makes r->text anew */
    if (!prompt) return no_memory(r);
    memcpy(prompt, r->text, n);
    hone_status st = put_pair(r, prompt, n, json_string_value(x->answer), json_string_length(x->answer));
    free(prompt);
    return st;
}

static hone_status put_alpaca(hn_data_reader *r, const json_t *o)
{
    hone_status st;
    const json_t *in = json_object_get(o, "input");
    bool asks = json_string_length(in) > 0; /* alone it is the question */
    alpaca x = { .question = text_of(r, o, "instruction", asks, &st) };
    if (!x.question || !(x.answer = text_of(r, o, "output", false, &st))) return st;
    if (in && !json_is_null(in) && !text_of(r, o, "input", true, &st)) return st;
    if (asks && !json_string_length(x.question)) x.question = in;
    else if (asks) x.in = in;
    if (!read_beside(r, o, &x.b, &st)) return st;
    size_t pairs;
    if (read_array(r, o, "history", &x.history, &st)) {
        if ((pairs = find_no_pair(x.history)) < json_array_size(x.history))
            st = hn_data_bad(r, "history[%zu]: expected a question and its answer, an array of two strings", pairs);
        else if (!hn_data_has_template(r)) st = put_alpaca_text(r, &x);
        else if (!wrap_tools(&x.b.tools)) st = no_memory(r);
        else st = put_alpaca_chat(r, &x);
    }
    json_decref(x.history);
    json_decref(x.b.tools);
    return st;
}

/* ---- records ------------------------------------------------------------------------------------------------ */

/* What is empty or null is not there. */
static bool is_said(const json_t *x)
{
    if (json_is_string(x)) return json_string_length(x) > 0;
    return x && !json_is_null(x) && (!json_is_array(x) || json_array_size(x));
}

/* said: its keys say something, but a question or prompt, which may be empty. Else keys alone count. */
static hn_data_kind kind_of(const json_t *o, bool said)
{
    static const struct {
        const char *what, *of;
        hn_data_kind k;
    } kinds[] = {
        { "messages", NULL, HN_DATA_CHAT },
        { "conversations", NULL, HN_DATA_SHAREGPT },
        { "output", "instruction", HN_DATA_ALPACA },
        { "completion", "prompt", HN_DATA_COMPLETION },
        { "text", NULL, HN_DATA_TEXT },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *what = json_object_get(o, kinds[i].what),
                     *of = kinds[i].of ? json_object_get(o, kinds[i].of) : what;
        if (said ? is_said(what) && of && !json_is_null(of) : what && of) return kinds[i].k;
    }
    return HN_DATA_NONE;
}

/* An answer that was asked for and is no good, as sets for KTO mark it; of a text a label is something else. */
static bool is_rejected(const hn_data_reader *r, const json_t *o, hn_data_kind k)
{
    static const char *const keys[] = { "label", "kto_tag" };
    bool no = false;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && k != HN_DATA_TEXT; i++) {
        const json_t *label = json_object_get(o, keys[i]);
        const char *s = r->cells ? json_string_value(label) : NULL;
        no = no || json_is_false(label) || (s && strcasecmp(s, "false") == 0);
    }
    return no;
}

/* A conversation that ends with a question, and two answers to choose from beside it. */
static bool is_choice(const json_t *o)
{
    static const char *const lists[] = { "messages", "conversations" }, *const keys[] = { "role", "from" },
                             *const asks[] = { "user", "human" };
    const json_t *yes = json_object_get(o, "chosen"), *no = json_object_get(o, "rejected");
    bool asked = false;
    for (size_t i = 0; i < 2; i++) {
        const json_t *list = json_object_get(o, lists[i]), *last = json_array_get(list, json_array_size(list) - 1);
        for (size_t k = 0; k < 4; k++) asked = asked || hn_json_is(json_object_get(last, keys[k / 2]), asks[k % 2]);
    }
    return asked && yes && no && !json_is_null(yes) && !json_is_null(no);
}

/* Strings of a list of messages, which may be a string with one in it; of one message its words. */
static hone_status take_words(hn_data_reader *r, const json_t *j)
{
    static const char *const keys[] = { "content", "value", "text" };
    hone_status st = HONE_OK;
    size_t i;
    json_t *x;
    if (json_is_string(j)) return r->take(r, json_string_value(j), json_string_length(j));
    json_array_foreach(j, i, x) if (st == HONE_OK) st = take_words(r, x);
    for (i = 0; json_is_object(j) && i < sizeof keys / sizeof *keys && st == HONE_OK; i++)
        if ((x = json_object_get(j, keys[i]))) st = take_words(r, x);
    return st;
}

/* All strings of a record that samples of its kind would be made of. */
static hone_status take_strings(hn_data_reader *r, const json_t *o, hn_data_kind k)
{
    static const char *const keys[][5] = {
        [HN_DATA_CHAT] = { "messages", "system" },
        [HN_DATA_SHAREGPT] = { "conversations", "system" },
        [HN_DATA_ALPACA] = { "history", "system", "instruction", "input", "output" },
        [HN_DATA_COMPLETION] = { "prompt", "completion", "system" }, /* the last beside turns */
        [HN_DATA_TEXT] = { "text" },
    };
    hone_status st = HONE_OK;
    const bool turns = k == HN_DATA_COMPLETION && are_turns(r, json_object_get(o, "prompt"), &st);
    for (size_t i = 0; i < 5 && keys[k][i] && st == HONE_OK; i++) {
        json_t *x = json_object_get(o, keys[k][i]), *list = NULL;
        bool listed = i == 0 && (k == HN_DATA_CHAT || k == HN_DATA_SHAREGPT || k == HN_DATA_ALPACA);
        if (k == HN_DATA_COMPLETION && i == 2 && !turns) break;
        if (k == HN_DATA_COMPLETION) listed = turns && i < 2;
        if (st == HONE_OK && listed && json_is_string(x)) list = parse_string(r, x, &st);
        if (st == HONE_OK && x) st = take_words(r, json_is_array(list) ? list : x);
        json_decref(list);
    }
    return st;
}

/* What it has in place of the keys of a kind. */
static hone_status no_record(hn_data_reader *r, const json_t *o)
{
    enum { MOST = 6 };
    char seen[300] = "none";
    size_t at = 0, n = 0;
    const char *key;
    json_t *x;
    json_object_foreach((json_t *)(uintptr_t)o, key, x)
    {
        char name[40];
        hn_escape(name, sizeof name, key, strlen(key));
        if (n++ < MOST) at += (size_t)snprintf(seen + at, sizeof seen - at, "%s\"%s\"", at ? ", " : "", name);
    }
    if (n > MOST) snprintf(seen + at, sizeof seen - at, " and %zu more", n - MOST);
    return hn_data_bad(r,
                       "no record that hone trains on: its keys are %s; expected \"messages\", \"conversations\", "
                       "\"instruction\" and \"output\", \"prompt\" and \"completion\", or \"text\"",
                       seen);
}

hone_status hn_data_record(hn_data_reader *r, const json_t *o, hn_data_kind *k)
{
    if (!json_is_object(o)) return hn_data_bad(r, "%s, expected an object", type_name(o));
    if (*k == HN_DATA_NONE) *k = kind_of(o, true);
    hn_data_kind now = *k == HN_DATA_NONE ? kind_of(o, false) : *k; /* this one's alone: to say what it lacks */
    if (now != HN_DATA_NONE && is_rejected(r, o, now)) {
        r->d->stats.n_rejected++;
        return HONE_OK;
    }
    if ((now == HN_DATA_CHAT || now == HN_DATA_SHAREGPT) && is_choice(o))
        return hn_data_bad(r,
                           "\"chosen\" and \"rejected\": preferences, which hone does not train; expected the answer "
                           "to learn as the conversation's last one");
    if (r->take) return take_strings(r, o, now);
    switch (now) {
    case HN_DATA_CHAT: return put_chat(r, o);
    case HN_DATA_SHAREGPT: return put_sharegpt(r, o);
    case HN_DATA_ALPACA: return put_alpaca(r, o);
    case HN_DATA_COMPLETION: return put_completion(r, o);
    case HN_DATA_TEXT: return put_text(r, o);
    default: return no_record(r, o);
    }
}

/* The record as a value; *o NULL with HONE_OK: a bad one that may be left out. */
static hone_status parse_record(hn_data_reader *r, const char *s, size_t n, json_t **o)
{
    const hn_json_rules rules = { .flags = HN_JSON_UNIQUE | HN_JSON_ALLOW_NUL | HN_JSON_BIG };
    hn_jread j;
    hone_error err;
    *o = NULL;
    hone_status st = hn_jread_begin(&j, s, n, &rules, r->path, NULL, &err);
    if (st == HONE_OK) st = hn_json_build(o, &j);
    if (st == HONE_E_NOMEM) return no_memory(r);
    if (st == HONE_OK) return HONE_OK;
    size_t line, column, left = (size_t)(s + n - j.at);
    hn_jread_where(&j, &line, &column);
    return hn_data_bad(r, "not JSON: column %zu: expected %s%s%s", column, j.expected,
                       left ? ", seen " : ", where it ends", HN_ESC(j.at, left < 16 ? left : 16));
}

hone_status hn_data_json_record(hn_data_reader *r, const char *s, size_t n, hn_data_kind *k)
{
    json_t *o;
    r->d->stats.n_line++;
    hone_status st = parse_record(r, s, n, &o);
    if (st != HONE_OK || !o) return st;
    st = hn_data_record(r, o, k);
    json_decref(o);
    return st;
}
