/* call_format: how a template writes calls of tools. Small conversations of words that no template holds are rendered,
 * without calls, with one and with two, and what stands around the words is the format. In the end it has to read back
 * what the template writes for other calls; else the template counts as one without calls, and it is said why. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "base/json_tree.h"
#include "text/call_values.h"
#include "text/calls.h"

#include <stdlib.h>

#define NAME_A "honefnqa"
#define NAME_B "honefnqb"
#define KEY_A "honekeya"
#define KEY_B "honekeyb"
#define ID_A "honeid0a1"
#define ID_B "honeid0b2"
#define VALUE "honevala x"
#define ANSWER "hone-probe-answer-9c24"

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"" NAME_A "\",\"description\":\"d\",\"parameters\":{\"type\":"
    "\"object\",\"properties\":{\"" KEY_A "\":{\"type\":\"string\",\"description\":\"d\"},\"" KEY_B
    "\":{\"type\":\"integer\",\"description\":\"d\"}},\"required\":[]}}},{\"type\":\"function\",\"function\":{\"name\":"
    "\"" NAME_B "\",\"description\":\"d\",\"parameters\":{\"type\":\"object\",\"properties\":{\"" KEY_A
    "\":{\"type\":\"string\",\"description\":\"d\"}},\"required\":[]}}}]";

typedef struct probe {
    const hn_jinja *t;
    hn_chat c;
    json_t *tools;
    bool args_text, null_content, dotted_ids; /* what the template takes */
    char *plain;                              /* the conversation whose answer is text */
    hone_status st;
} probe;

static bool contains(hone_str s, const char *what) { return memmem(s.ptr, s.len, what, strlen(what)) != NULL; }
static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* NULL: no JSON, or no memory, which st tells. */
static json_t *read_json(const char *s, size_t n, hone_status *st)
{
    json_t *o;
    hone_status got = hn_json_tree(&o, s, n, NULL, "call", NULL);
    if (got == HONE_E_NOMEM) *st = got;
    return o;
}

/* ---- renderings ------------------------------------------------------------------------------------------ */

/* Takes the answer. NULL: the template refuses, or *st. */
static char *render(probe *p, json_t *answer)
{
    hn_jinja_text out = { 0 };
    json_t *m = answer ? json_pack("[{s:s, s:s}, o]", "role", "user", "content", "x", answer) : NULL;
    hone_status st = m ? hn_chat_render_as_is(p->t, &p->c, m, true, false, &out, NULL) : HONE_E_NOMEM;
    char *s = NULL;
    if (st == HONE_OK && !memchr(out.text, 0, out.len)) {
        s = out.text;
        out.text = NULL;
    }
    if (st == HONE_E_NOMEM) p->st = st;
    hn_jinja_text_free(&out);
    json_decref(m);
    return s;
}

typedef struct call {
    const char *name, *id, *args; /* JSON */
} call;

static json_t *call_json(probe *p, const call *c, int index)
{
    char id[96];
    snprintf(id, sizeof id, p->dotted_ids ? HN_CALL_DOTTED "%s:%d" : "%s", p->dotted_ids ? c->name : c->id, index);
    json_t *args = p->args_text ? json_string(c->args) : read_json(c->args, strlen(c->args), &p->st);
    return json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function", "function", "name", c->name, "arguments",
                     args);
}

static char *render_calls(probe *p, const call *calls, int n)
{
    json_t *list = json_array(), *m;
    for (int i = 0; i < n && list; i++)
        if (json_array_append_new(list, call_json(p, &calls[i], i)) != 0) {
            json_decref(list);
            list = NULL;
        }
    m = list ? json_pack("{s:s, s:o, s:o}", "role", "assistant", "content",
                         p->null_content ? json_null() : json_string(""), "tool_calls", list)
             : NULL;
    if (!m) p->st = HONE_E_NOMEM;
    return m ? render(p, m) : NULL;
}

/* ---- boundaries ------------------------------------------------------------------------------------------ */

enum { TAG_MAX = 64 };

/* Where the tag begins that `at` is inside of; at: it is in none. */
static size_t tag_begin(const char *s, size_t at)
{
    for (size_t i = at; i-- > 0 && at - i < TAG_MAX;) {
        if (s[i] == '>' || s[i] == ']' || s[i] == '\n') break;
        if (s[i] == '<' || (s[i] == '[' && at > i + 1 && s[i + 1] >= 'A' && s[i + 1] <= 'Z')) return i;
    }
    return at;
}

/* Where the tag ends that `at` is inside of. */
static size_t tag_end(const char *s, size_t n, size_t at)
{
    size_t begin = tag_begin(s, at);
    if (begin == at) return at;
    for (size_t i = at; i < n && i - at < TAG_MAX; i++)
        if (s[i] == (s[begin] == '<' ? '>' : ']')) return i + 1;
    return at;
}

static size_t same_front(hone_str a, hone_str b)
{
    size_t n = 0, most = a.len < b.len ? a.len : b.len;
    while (n < most && a.ptr[n] == b.ptr[n]) n++;
    return n < a.len || n < b.len ? tag_begin(a.ptr, n) : n;
}

static size_t same_back(hone_str a, hone_str b)
{
    size_t n = 0, most = a.len < b.len ? a.len : b.len;
    while (n < most && a.ptr[a.len - 1 - n] == b.ptr[b.len - 1 - n]) n++;
    size_t at = a.len - n, x = n < a.len ? tag_end(a.ptr, a.len, at) : at;
    size_t bt = b.len - n, y = n < b.len ? tag_end(b.ptr, b.len, bt) : bt;
    size_t cut = x - at > y - bt ? x - at : y - bt;
    return n - (cut < n ? cut : n);
}

static hone_str part(hone_str s, size_t begin, size_t end)
{
    return begin < end && end <= s.len ? (hone_str){ s.ptr + begin, end - begin } : (hone_str){ s.ptr, 0 };
}

/* Without tags of reasoning that has nothing in it. */
static hone_str without_thoughts(hone_str s)
{
    for (;;) {
        size_t n = s.len && *s.ptr == '<' ? tag_end(s.ptr, s.len, 1) : 0;
        if (n < 3 || n > s.len || (!contains(part(s, 0, n), "think") && !contains(part(s, 0, n), "THINK"))) return s;
        s.ptr += n, s.len -= n;
        while (s.len && is_blank(*s.ptr)) s.ptr++, s.len--;
    }
}

/* What the template writes for calls where an answer would be. */
static hone_str cut(const probe *p, const char *text)
{
    hone_str plain = { p->plain, strlen(p->plain) }, all = { text, strlen(text) };
    size_t front = same_front(all, plain), back = same_back(all, plain);
    if (front + back > all.len) back = all.len - front;
    hone_str s = part(all, front, all.len - back);
    while (s.len && is_blank(*s.ptr)) s.ptr++, s.len--;
    return without_thoughts(s);
}

static bool keep(char out[HN_CALL_MARK], hone_str s)
{
    if (s.len >= HN_CALL_MARK) return false;
    if (s.len) memcpy(out, s.ptr, s.len);
    out[s.len] = 0;
    return true;
}

static size_t find(hone_str s, size_t from, const char *what)
{
    const char *at = from <= s.len ? memmem(s.ptr + from, s.len - from, what, strlen(what)) : NULL;
    return at ? (size_t)(at - s.ptr) : SIZE_MAX;
}

/* Behind the JSON value that begins at `at`; 0: there is none. */
static size_t json_end(hone_str s, size_t at)
{
    hn_json_scan scan = { 0 };
    size_t i = at;
    if (at >= s.len || (s.ptr[at] != '{' && s.ptr[at] != '"')) return 0;
    while (i < s.len && !scan.done) hn_json_scan_byte(&scan, s.ptr[i++]);
    return scan.done ? i : 0;
}

/* ---- shapes: the core of a call, from its first needle to its last --------------------------------------- */

typedef struct core {
    size_t begin, end;
} core;

/* JSON: the object around the name at `at`. */
static bool json_core(hone_str s, size_t at, core *c)
{
    int depth = 0;
    for (size_t i = at; i-- > 0;) {
        if (s.ptr[i] == '}') depth++;
        else if (s.ptr[i] == '{' && depth-- == 0) {
            c->begin = i;
            c->end = json_end(s, i);
            return c->end > at;
        }
    }
    return false;
}

/* NAMED: from the name, or the id in front of it, to the end of the arguments. */
static bool named_core(const hn_call_format *f, hone_str s, size_t at, const char *id, core *c)
{
    size_t brace = find(s, at, "{"), from = at, k;
    if (f->id == HN_CALL_ID_BEFORE) {
        for (size_t i = find(s, 0, id); i != SIZE_MAX && i < at; i = find(s, i + 1, id)) from = i;
        if (from == at) return false;
    } else if (f->id == HN_CALL_ID_NAME) {
        from = at - strlen(HN_CALL_DOTTED);
    } else if (f->id == HN_CALL_ID_BEHIND && (k = find(s, at, id)) != SIZE_MAX) {
        brace = find(s, k, "{");
    }
    c->begin = from;
    c->end = brace == SIZE_MAX ? 0 : json_end(s, brace);
    return c->end > 0;
}

/* TAGGED: to the end of the last value. */
static bool tagged_core(hone_str s, size_t at, const char *last, core *c)
{
    size_t v = find(s, find(s, at, KEY_B), last);
    c->begin = at;
    c->end = v + strlen(last);
    return v != SIZE_MAX;
}

/* Around the first of one call, and between the first two: the marks of sections and calls. */
static bool split(hn_call_format *f, hone_str pre, hone_str post, const hone_str *between)
{
    if (!between) return f->single = true, keep(f->begin, pre) && keep(f->end, post);
    size_t end = same_front(*between, post);
    hone_str rest = part(*between, end, between->len);
    size_t begin = same_back(rest, pre);
    hone_str sep = part(rest, 0, rest.len - begin);
    return keep(f->end, part(post, 0, end)) && keep(f->begin, part(pre, pre.len - begin, pre.len)) &&
           keep(f->separator, sep) && keep(f->section_begin, part(pre, 0, pre.len - begin)) &&
           keep(f->section_end, part(post, end, post.len));
}

/* ---- JSON ------------------------------------------------------------------------------------------------ */

static bool keep_key(char out[HN_CALL_KEY], const char *key)
{
    size_t n = strlen(key);
    if (n >= HN_CALL_KEY) return false;
    memcpy(out, key, n + 1);
    return true;
}

/* The names of the members of one call. */
static bool json_members(hn_call_format *f, hone_str object, hone_status *st)
{
    json_t *o = read_json(object.ptr, object.len, st), *value;
    const char *key;
    bool ok = o != NULL, behind = false;
    json_object_foreach(o, key, value)
    {
        const char *text = json_string_value(value);
        if (strcmp(key, NAME_A) == 0 && json_is_object(value)) f->name_is_key = true;
        else if (text && strcmp(text, NAME_A) == 0) {
            ok = ok && keep_key(f->name_key, key);
            behind = true;
        } else if (json_is_object(value) || (text && strstr(text, KEY_A))) {
            ok = ok && keep_key(f->args_key, key);
            f->args_text = text != NULL;
        } else if (text && strstr(key, "id")) {
            ok = ok && keep_key(f->id_key, key);
            f->id = HN_CALL_ID_KEY;
            f->id_first = !behind;
            if (strlen(text) == strlen(ID_A)) f->id_length = (uint8_t)strlen(ID_A);
        }
    }
    json_decref(o);
    return ok && (f->name_is_key || (f->name_key[0] && f->args_key[0]));
}

/* ---- tagged arguments ------------------------------------------------------------------------------------ */

/* post: what is behind the last value. *rest: what of it is behind the mark that ends values. */
static bool tagged_marks(hn_call_format *f, hone_str s, core c, hone_str post, size_t *rest)
{
    size_t k1 = find(s, c.begin, KEY_A), v1 = find(s, k1, VALUE), k2 = find(s, v1, KEY_B), v2 = find(s, k2, "7");
    if (k1 == SIZE_MAX || v1 == SIZE_MAX || k2 == SIZE_MAX || v2 == SIZE_MAX) return false;
    hone_str t1 = part(s, c.begin + strlen(NAME_A), k1), t2 = part(s, k1 + strlen(KEY_A), v1),
             t3 = part(s, v1 + strlen(VALUE), k2), t4 = part(s, k2 + strlen(KEY_B), v2);
    if (t2.len == t4.len + 1 && t2.ptr[t2.len - 1] == '"' && t3.len && *t3.ptr == '"') { /* strings are JSON */
        f->quoted = true;
        t2.len--;
        t3.ptr++, t3.len--;
    }
    size_t end = same_front(t3, post), begin;
    hone_str behind = part(t3, end, t3.len);
    begin = same_back(behind, t1);
    hone_str key = part(behind, behind.len - begin, behind.len), name = part(t1, 0, t1.len - begin);
    while (key.len && is_blank(*key.ptr)) { /* it goes with the mark in front of it */
        key.ptr++, key.len--;
        name.len++;
    }
    *rest = end;
    bool other = t2.len != t4.len || memcmp(t2.ptr, t4.ptr, t2.len) != 0;
    return key.len && keep(f->key_begin, key) && keep(f->name_end, name) && keep(f->key_end, t2) &&
           (!other || keep(f->key_end_other, t4)) && keep(f->value_end, part(t3, 0, end));
}

/* ---- the whole ------------------------------------------------------------------------------------------- */

static const char two_args[] = "{\"" KEY_A "\":\"" VALUE "\",\"" KEY_B "\":7}";
static const call first_call = { NAME_A, ID_A, two_args },
                  second_calls[2] = { { NAME_A, ID_A, two_args }, { NAME_B, ID_B, two_args } };

/* Is this rendering of calls another than that of an answer without any? */
static bool differs(probe *p, const char *calls)
{
    json_t *content = p->null_content ? json_null() : json_string("");
    char *none = render(p, json_pack("{s:s, s:o}", "role", "assistant", "content", content));
    bool other = !none || strcmp(calls, none) != 0;
    free(none);
    return other;
}

/* The rendering of one call that shows its name and arguments, in the shape the template takes. *shown: one shows that
 * there is a call at all. */
static char *find_taste(probe *p, bool dots, bool *shown)
{
    *shown = false;
    for (int i = 0; i < 4 && p->st == HONE_OK; i++) {
        p->args_text = i >> 1 & 1;
        p->null_content = i & 1;
        p->dotted_ids = dots;
        char *s = render_calls(p, &first_call, 1);
        hone_str c = s ? cut(p, s) : (hone_str){ "", 0 };
        *shown = *shown || (s && differs(p, s));
        if (contains(c, NAME_A) && contains(c, KEY_A) && !contains(c, "'" KEY_A "'") && !contains(c, "\\\"" KEY_A))
            return s;
        free(s);
    }
    return NULL;
}

/* Where the call's id stands in one that is named before its arguments begin. */
static bool place_id(hn_call_format *f, hone_str one, size_t at)
{
    size_t brace = find(one, at, "{"), id = find(one, 0, ID_A);
    if (brace == SIZE_MAX) return false;
    if (f->id != HN_CALL_ID_NAME && id != SIZE_MAX && id < brace)
        f->id = id < at ? HN_CALL_ID_BEFORE : HN_CALL_ID_BEHIND;
    return true;
}

/* What ends the name, of n bytes, and the id. */
static bool keep_id(hn_call_format *f, hone_str one, size_t at, size_t n, hn_call_ids ids)
{
    size_t brace = find(one, at, "{"), id = find(one, 0, ID_A);
    size_t name_end = f->id == HN_CALL_ID_NAME ? at + n + strlen(":0") : at + n;
    bool ok = true;
    if (f->id == HN_CALL_ID_BEFORE) ok = keep(f->id_end, part(one, id + strlen(ID_A), at));
    if (f->id == HN_CALL_ID_BEHIND)
        ok = keep(f->name_end, part(one, name_end, id)) && keep(f->id_end, part(one, id + strlen(ID_A), brace));
    else ok = ok && keep(f->name_end, part(one, name_end, brace));
    if (f->id == HN_CALL_ID_BEFORE || f->id == HN_CALL_ID_BEHIND)
        f->id_length = ids == HN_CALL_IDS_NINE ? HN_CALL_NINE : 0;
    return ok;
}

static bool shape(hn_call_format *f, hone_str one, const hone_str *two, hone_str source, hn_call_ids ids,
                  hone_status *st)
{
    size_t at = find(one, 0, NAME_A), n = strlen(NAME_A), key = find(one, at, KEY_A), at2 = SIZE_MAX;
    core a = { 0 }, b = { 0 }, first = { 0 };
    if (at == SIZE_MAX || key == SIZE_MAX) return false;
    char before = at ? one.ptr[at - 1] : 0, behind = one.ptr[at + n];
    bool quoted = before == '"' && behind == '"' && (at < 2 || one.ptr[at - 2] != '='), /* and no attribute */
        in_json = one.ptr[key - 1] == '"' && one.ptr[key - 2] != '=';
    if (find(one, 0, HN_CALL_DOTTED NAME_A ":0") != SIZE_MAX && ids == HN_CALL_IDS_DOTTED) {
        f->id = HN_CALL_ID_NAME;
        f->shape = HN_CALLS_NAMED;
    } else if (behind == '(' && one.ptr[key + strlen(KEY_A)] == '=') f->shape = HN_CALLS_PYTHON;
    else if (find(one, at, KEY_A ":<|\"|>") != SIZE_MAX) f->shape = HN_CALLS_GEMMA;
    else if (quoted) f->shape = HN_CALLS_JSON;
    else f->shape = in_json ? HN_CALLS_NAMED : HN_CALLS_TAGGED;
    if (two) {
        at2 = find(*two, 0, NAME_B);
        if (at2 == SIZE_MAX) two = NULL; /* it shows one call only */
    }
    size_t rest = 0;
    hone_str post;
    switch ((hn_call_shape)f->shape) {
    case HN_CALLS_JSON:
        if (!json_core(one, at, &a) ||
            (two && (!json_core(*two, find(*two, 0, NAME_A), &first) || !json_core(*two, at2, &b))))
            return false;
        if (!json_members(f, part(one, a.begin, a.end), st)) return false;
        post = part(one, a.end, one.len);
        break;
    case HN_CALLS_NAMED:
        if (!place_id(f, one, at)) return false;
        if (!named_core(f, one, at, ID_A, &a) ||
            (two && (!named_core(f, *two, find(*two, 0, NAME_A), ID_A, &first) || !named_core(f, *two, at2, ID_B, &b))))
            return false;
        if (!keep_id(f, one, at, n, ids)) return false;
        post = part(one, a.end, one.len);
        break;
    case HN_CALLS_TAGGED:
        if (!tagged_core(one, at, "7", &a) ||
            (two && (!tagged_core(*two, find(*two, 0, NAME_A), "7", &first) || !tagged_core(*two, at2, "7", &b))))
            return false;
        if (!tagged_marks(f, one, a, part(one, a.end, one.len), &rest)) return false;
        f->cdata = contains(source, HN_CALL_CDATA);
        post = part(one, a.end + rest, one.len);
        break;
    default: { /* N bracket … bracket */
        char open = f->shape == HN_CALLS_PYTHON ? '(' : '{', close = open == '(' ? ')' : '}';
        size_t end = find(one, at, (char[]){ close, 0 });
        a = (core){ at, end + 1 };
        if (end == SIZE_MAX || behind != open || !keep(f->name_end, (hone_str){ &behind, 1 })) return false;
        if (two) {
            size_t at1 = find(*two, 0, NAME_A), e1 = find(*two, at1, (char[]){ close, 0 }),
                   e2 = find(*two, at2, (char[]){ close, 0 });
            if (at1 == SIZE_MAX || e1 == SIZE_MAX || e2 == SIZE_MAX) return false;
            first = (core){ at1, e1 + 1 };
            b = (core){ at2, e2 + 1 };
        }
        post = part(one, a.end, one.len);
    }
    }
    hone_str between = two ? part(*two, first.end + rest, b.begin) : (hone_str){ 0 };
    hone_str last = two ? part(*two, b.end + rest, two->len) : post; /* some end the section of several calls only */
    if (!split(f, part(one, 0, a.begin), last.len > post.len ? last : post, two ? &between : NULL)) return false;
    if (f->shape == HN_CALLS_GEMMA) f->section_end[0] = 0; /* the result comes there, which is not the model's */
    f->bare = !f->begin[0] && !f->section_begin[0];
    if (f->bare && f->shape == HN_CALLS_NAMED && contains(source, ">>>all")) { /* Functionary 3.2: the prompt has it */
        f->section_end[0] = f->separator[0] = 0;
        return keep(f->begin, (hone_str){ ">>>", 3 });
    }
    return !f->bare || f->shape == HN_CALLS_JSON;
}

/* ---- reading back ---------------------------------------------------------------------------------------- */

typedef struct heard {
    hn_grown text; /* name, \1, arguments, \2, … */
} heard;

static hone_status hear(void *arg, hone_part what, const char *s, size_t n, int32_t index, const char *id,
                        hone_error *err)
{
    heard *h = arg;
    hone_status st = hn_grown_put(&h->text, s, n, err);
    (void)index, (void)id;
    if (st == HONE_OK && what != HONE_PART_ARGUMENTS)
        st = hn_grown_put(&h->text, what == HONE_PART_CALL_NAME ? "\1" : "\2", 1, err);
    return st;
}

/* Are these the calls? */
static bool are_calls(const char *text, size_t len, const call *calls, int n, hone_status *st)
{
    const char *at = text, *end = text + len;
    for (int i = 0; i < n; i++) {
        const char *one = at < end ? memchr(at, 1, (size_t)(end - at)) : NULL,
                   *two = one ? memchr(one, 2, (size_t)(end - one)) : NULL;
        if (!two || (size_t)(one - at) != strlen(calls[i].name) || memcmp(at, calls[i].name, (size_t)(one - at)) != 0)
            return false;
        json_t *got = read_json(one + 1, (size_t)(two - one - 1), st),
               *want = read_json(calls[i].args, strlen(calls[i].args), st);
        bool same = got && want && json_equal(got, want);
        json_decref(got);
        json_decref(want);
        if (!same) return false;
        at = two + 1;
    }
    return at == end;
}

/* Calls that the reader has to find in what the template writes for them. */
static bool reads_back(probe *p, const hn_call_kit *k, const call *calls, int n)
{
    char *s = render_calls(p, calls, n);
    heard h = { 0 };
    hn_call_reader *r = NULL;
    bool ok = false;
    if (s) {
        hone_str c = cut(p, s);
        hn_call_outcome what = HN_CALLS_MORE;
        hone_status st = hn_call_reader_new(&r, k, 0, hear, &h, NULL);
        while (st == HONE_OK && c.len && what != HN_CALLS_TEXT) { /* sections may follow each other */
            hn_call_begin(r);
            bool again = h.text.n > 0;
            if (k->f.bare && k->begin.n && !again) st = hn_call_feed(r, k->begin.p, k->begin.n, false, &what, NULL);
            if (st == HONE_OK) st = hn_call_feed(r, c.ptr, c.len, true, &what, NULL);
            hone_str rest = hn_call_rest(r);
            size_t used = rest.len < c.len ? c.len - rest.len : c.len;
            c = part(c, used, c.len);
            while (c.len && is_blank(*c.ptr)) c.ptr++, c.len--;
            if (!contains(c, "honefnq")) break; /* the template goes on to the results */
        }
        ok = st == HONE_OK && what == HN_CALLS_DONE && are_calls(h.text.p ? h.text.p : "", h.text.n, calls, n, &p->st);
        if (st == HONE_E_NOMEM) p->st = st;
    }
    hn_call_reader_free(r);
    free(h.text.p);
    free(s);
    return ok;
}

static const struct {
    const char *what;
    call calls[2];
    int n;
    bool escapes; /* templates write Python's literals without their escapes; models do not */
} checks[] = {
    { "one call", { { NAME_A, ID_A, two_args } }, 1, false },
    { "a call without arguments", { { NAME_A, ID_A, "{}" } }, 1, false },
    { "a text of several lines, with quotes",
      { { NAME_A, ID_A, "{\"" KEY_A "\":\"say \\\"a\\\"\\n  <b> {c} 'd'\\\\e \"}" } },
      1,
      true },
    { "an object as argument", { { NAME_A, ID_A, "{\"" KEY_B "\":{\"x\":[1,\"y\",null],\"z\":true}}" } }, 1, false },
    { "a text that looks like a number", { { NAME_A, ID_A, "{\"" KEY_A "\":\"12\"}" } }, 1, false },
    { "two calls", { { NAME_A, ID_A, two_args }, { NAME_B, ID_B, "{\"" KEY_A "\":\"z\"}" } }, 2, false },
};

static void check_all(probe *p, hn_call_format *f)
{
    hn_call_kit *k = NULL;
    hn_call_ask ask = { .tools = p->tools, .bare = true };
    hone_status st = hn_call_kit_new(&k, f, NULL, &ask, NULL);
    if (st != HONE_OK) p->st = st;
    for (size_t i = 0; i < sizeof checks / sizeof *checks && p->st == HONE_OK; i++) {
        if ((checks[i].n > 1 && f->single) || (checks[i].escapes && f->shape == HN_CALLS_PYTHON)) continue;
        if (reads_back(p, k, checks[i].calls, checks[i].n) || p->st != HONE_OK) continue;
        *f = (hn_call_format){ 0 };
        snprintf(f->warning, sizeof f->warning, "its calls cannot be read back: %s", checks[i].what);
        break;
    }
    hn_call_kit_drop(k);
}

static const hn_call_format own_form = { .shape = HN_CALLS_JSON,
                                         .own = true,
                                         .section_begin = "{\"tool_calls\": [",
                                         .separator = ", ",
                                         .section_end = "]}",
                                         .name_key = "name",
                                         .args_key = "arguments" };

static const hn_call_format bracketed = { .shape = HN_CALLS_PYTHON,
                                          .section_begin = HN_CALL_BRACKET,
                                          .separator = ", ",
                                          .section_end = HN_CALL_BRACKET_END,
                                          .name_end = "(" };

/* LFM2 and LFM2.5, which list tools so; those of their templates that write calls are found out. */
static bool is_bracketed(const probe *p) { return p->plain && strstr(p->plain, "\nList of tools: "); }

/* gpt-oss: the reader of headers finds the name (text/reply.h). */
static bool is_harmony(hone_str source) { return contains(source, "<|channel|>") && contains(source, "<|message|>"); }

/* A conversation with tools in it, whose answer is text. */
static probe begin(const hn_jinja *t, const hn_chat *c)
{
    probe p = { .t = t, .c = *c };
    if (!(p.tools = read_json(tools_text, sizeof tools_text - 1, &p.st))) p.st = HONE_E_NOMEM;
    p.c.messages = NULL;
    p.c.tools = p.tools;
    if (p.st == HONE_OK) p.plain = render(&p, json_pack("{s:s, s:s}", "role", "assistant", "content", ANSWER));
    return p;
}

static hone_status end(probe *p, hone_error *err)
{
    free(p->plain);
    json_decref(p->tools);
    return p->st == HONE_OK ? HONE_OK : HN_FAIL(err, p->st, "no memory to look at the chat template");
}

hone_status hn_call_written(const hn_jinja *t, const hn_chat *c, hn_call_habit *habit, hone_error *err)
{
    probe p = begin(t, c);
    bool written = false;
    if (p.plain) free(find_taste(&p, false, &written));
    if (p.plain && is_harmony((hone_str){ p.plain, strlen(p.plain) })) written = true;
    *habit = written ? HN_CALLS_WRITTEN : is_bracketed(&p) ? HN_CALLS_BRACKETED : HN_CALLS_UNWRITTEN;
    return end(&p, err);
}

hone_status hn_call_format_make(hn_call_format *out, const hn_jinja *t, hone_str source, const hn_chat *c,
                                hone_error *err)
{
    *out = (hn_call_format){ 0 };
    if (is_harmony(source)) {
        *out = (hn_call_format){ .shape = HN_CALLS_HARMONY, .single = true };
        return HONE_OK;
    }
    bool shown = false;
    probe p = begin(t, c);
    hn_call_ids ids = hn_call_ids_of(t);
    char *one = p.plain ? find_taste(&p, ids == HN_CALL_IDS_DOTTED, &shown) : NULL,
         *two = one ? render_calls(&p, second_calls, 2) : NULL;
    if (one && p.st == HONE_OK) {
        hone_str c1 = cut(&p, one), c2 = two ? cut(&p, two) : (hone_str){ 0 };
        if (shape(out, c1, two ? &c2 : NULL, source, ids, &p.st)) {
            check_all(&p, out);
        } else {
            *out = (hn_call_format){ 0 };
            snprintf(out->warning, sizeof out->warning, "its calls are of a shape that is not known");
        }
    } else if (p.st == HONE_OK && !shown) {
        *out = is_bracketed(&p) ? bracketed : own_form;
    }
    free(one);
    free(two);
    return end(&p, err);
}

/* ---- for people ------------------------------------------------------------------------------------------ */

json_t *hn_call_format_json(const hn_call_format *f)
{
    static const char *const shapes[] = { "none", "json", "name and json", "tagged", "python", "gemma", "harmony" };
    static const char *const ids[] = { "none", "member", "before the name", "behind the name", "with the name" };
    const struct {
        const char *name, *text;
    } marks[] = { { "section_begin", f->section_begin },
                  { "begin", f->begin },
                  { "id_end", f->id_end },
                  { "name_end", f->name_end },
                  { "name", f->name_key },
                  { "arguments", f->args_key },
                  { "id", f->id_key },
                  { "key_begin", f->key_begin },
                  { "key_end", f->key_end },
                  { "key_end_other", f->key_end_other },
                  { "value_end", f->value_end },
                  { "end", f->end },
                  { "separator", f->separator },
                  { "section_end", f->section_end } };
    json_t *o = json_pack("{s:s, s:s, s:b}", "shape", f->own ? "generic" : shapes[f->shape], "ids", ids[f->id],
                          "single", f->single);
    bool ok = o != NULL;
    for (size_t i = 0; ok && i < sizeof marks / sizeof *marks; i++)
        if (*marks[i].text) ok = json_object_set_new(o, marks[i].name, json_string(marks[i].text)) == 0;
    if (ok && f->cdata) ok = json_object_set_new(o, "cdata", json_true()) == 0;
    if (ok && f->name_is_key) ok = json_object_set_new(o, "name_is_key", json_true()) == 0;
    if (ok && f->warning[0]) ok = json_object_set_new(o, "warning", json_string(f->warning)) == 0;
    if (ok) return o;
    json_decref(o);
    return NULL;
}
