/* data_record: one record of data, an object of strings, into samples. Owns the kinds of records and plain completions;
 * refuses to know files. What the kinds are:
 *     {"messages": […], "tools": […]}                a conversation
 *     {"conversations": [{"from": …, "value": …}]}   the same in ShareGPT's words
 *     {"instruction": …, "input": …, "output": …}    Alpaca: a question and its answer
 *     {"prompt": …, "completion": …}                 side by side as they stand, without a template
 *     {"text": …}                                    a text
 * The first readable record with keys of one decides for its file, in this order; other keys are ignored. Strings may
 * hold any character, also U+0000. */
#include "text/chat.h"
#include "train/data_parts.h"

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

static hone_status put_completion(hn_data_reader *r, const json_t *o)
{
    hone_status st;
    const json_t *p = text_of(r, o, "prompt", true, &st), *c = p ? text_of(r, o, "completion", false, &st) : NULL;
    return c ? put_pair(r, json_string_value(p), json_string_length(p), json_string_value(c), json_string_length(c))
             : st;
}

static hone_status no_memory(hn_data_reader *r)
{
    return HN_FAIL(r->err, HONE_E_NOMEM, "%s:%lld: record", r->path, (long long)r->line);
}

static hone_status put_chat(hn_data_reader *r, const json_t *o)
{
    const json_t *list = json_object_get(o, "messages"), *tools = json_object_get(o, "tools");
    if (!json_is_array(list))
        return hn_data_bad(r, list ? "\"%s\" is %s, expected an array" : "\"%s\" is %s", "messages", type_name(list));
    if (!json_array_size(list)) return hn_data_bad(r, "\"messages\" is empty");
    if (tools && !json_is_array(tools) && !json_is_null(tools))
        return hn_data_bad(r, "\"tools\" is %s, expected an array", type_name(tools));
    return hn_data_conversation(r, list, json_is_array(tools) ? tools : NULL);
}

static const char *role_of(const json_t *from)
{
    static const struct {
        const char *from, *role;
    } roles[] = {
        { "human", "user" },      { "user", "user" },         { "gpt", "assistant" },  { "assistant", "assistant" },
        { "model", "assistant" }, { "chatgpt", "assistant" }, { "bing", "assistant" }, { "bard", "assistant" },
        { "system", "system" },   { "tool", "tool" },         { "function", "tool" },  { "observation", "tool" },
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (hn_json_is(from, roles[i].from)) return roles[i].role;
    return NULL;
}

static hone_status put_sharegpt(hn_data_reader *r, const json_t *o)
{
    const json_t *list = json_object_get(o, "conversations");
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return hn_data_bad(r, list ? "\"%s\" is %s, expected an array" : "\"%s\" is %s", "conversations",
                           type_name(list));
    if (!n) return hn_data_bad(r, "\"conversations\" is empty");
    for (size_t i = 0; i < n; i++) {
        const json_t *m = json_array_get(list, i), *from = json_object_get(m, "from"),
                     *value = json_object_get(m, "value");
        if (!json_is_string(from) || !json_is_string(value))
            return hn_data_bad(r, "conversations[%zu]: expected an object with strings \"from\" and \"value\"", i);
        if (!role_of(from))
            return hn_data_bad(r, "conversations[%zu].from is '%s', expected human, gpt, system or tool", i,
                               HN_ESC(json_string_value(from), json_string_length(from)));
    }
    json_t *all = json_array();
    bool ok = all != NULL;
    for (size_t i = 0; i < n && ok; i++) {
        const json_t *m = json_array_get(list, i);
        ok = json_array_append_new(all, json_pack("{s:s, s:O}", "role", role_of(json_object_get(m, "from")), "content",
                                                  json_object_get(m, "value"))) == 0;
    }
    hone_status st = ok ? hn_data_conversation(r, all, NULL) : no_memory(r);
    json_decref(all);
    return st;
}

/* Instruction and input make the question; without a chat template they stand under the headings of Alpaca's own
 * prompts. */
static hone_status put_alpaca(hn_data_reader *r, const json_t *o)
{
    hone_status st;
    const json_t *q = text_of(r, o, "instruction", false, &st), *a = q ? text_of(r, o, "output", false, &st) : NULL,
                 *in = json_object_get(o, "input");
    if (!a) return st;
    if (in && !json_is_null(in) && !text_of(r, o, "input", true, &st)) return st;
    bool chat = hn_data_has_template(r), more = json_string_length(in) > 0;
    size_t n = json_string_length(q) + json_string_length(in) + 64, len = 0;
    char *s = malloc(n);
    if (!s) return no_memory(r);
    const char *const part[] = { chat ? "" : "### Instruction:\n", json_string_value(q),
                                 !more  ? ""
                                 : chat ? "\n\n"
                                        : "\n\n### Input:\n",
                                 more ? json_string_value(in) : "", chat ? "" : "\n\n### Response:\n" };
    for (size_t i = 0; i < 5; i++) {
        size_t k = i == 1 ? json_string_length(q) : i == 3 && more ? json_string_length(in) : strlen(part[i]);
        memcpy(s + len, part[i], k);
        len += k;
    }
    if (!chat) {
        st = put_pair(r, s, len, json_string_value(a), json_string_length(a));
    } else {
        json_t *text = json_stringn(s, len), *all = text ? json_pack("[{s:s, s:O}, {s:s, s:O}]", "role", "user",
                                                                     "content", text, "role", "assistant", "content", a)
                                                         : NULL;
        st = all ? hn_data_conversation(r, all, NULL) : no_memory(r);
        json_decref(all);
        json_decref(text);
    }
    free(s);
    return st;
}

static hn_data_kind kind_of(const json_t *o)
{
    static const struct {
        const char *a, *b;
        hn_data_kind k;
    } kinds[] = {
        { "messages", NULL, HN_DATA_CHAT },
        { "conversations", NULL, HN_DATA_SHAREGPT },
        { "instruction", "output", HN_DATA_ALPACA },
        { "prompt", "completion", HN_DATA_COMPLETION },
        { "text", NULL, HN_DATA_TEXT },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (json_object_get(o, kinds[i].a) && (!kinds[i].b || json_object_get(o, kinds[i].b))) return kinds[i].k;
    return HN_DATA_NONE;
}

/* All strings of a record that samples would be made of. */
static hone_status take_strings(hn_data_reader *r, const json_t *j)
{
    static const char *const keys[] = { "text",   "prompt",   "completion",    "instruction", "input",
                                        "output", "messages", "conversations", "content",     "value" };
    hone_status st = HONE_OK;
    size_t i;
    json_t *x;
    if (json_is_string(j)) return r->take(r, json_string_value(j), json_string_length(j));
    json_array_foreach(j, i, x) if (st == HONE_OK) st = take_strings(r, x);
    for (i = 0; json_is_object(j) && i < sizeof keys / sizeof *keys && st == HONE_OK; i++)
        if ((x = json_object_get(j, keys[i]))) st = take_strings(r, x);
    return st;
}

hone_status hn_data_record(hn_data_reader *r, const json_t *o, hn_data_kind *k)
{
    if (!json_is_object(o)) return hn_data_bad(r, "%s, expected an object", type_name(o));
    if (r->take) return take_strings(r, o);
    if (*k == HN_DATA_NONE) *k = kind_of(o);
    switch (*k) {
    case HN_DATA_CHAT: return put_chat(r, o);
    case HN_DATA_SHAREGPT: return put_sharegpt(r, o);
    case HN_DATA_ALPACA: return put_alpaca(r, o);
    case HN_DATA_COMPLETION: return put_completion(r, o);
    case HN_DATA_TEXT: return put_text(r, o);
    default:
        return hn_data_bad(r, "no record that hone trains on; expected the keys \"messages\", \"conversations\", "
                              "\"instruction\" and \"output\","
                              " \"prompt\" and \"completion\", or \"text\"");
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
