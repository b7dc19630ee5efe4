/* jinja_methods: methods of strings, lists, dicts, loops, and the global functions. */
#include "template/jinja_priv.h"

#include "base/utf8.h"

#include <utf8proc.h>

static hn_jstr *want_str(hn_jrun *r, hn_jval v, const char *what)
{
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (v.kind != HN_J_STR) HN_JFAIL(r, "%s must be str, not %s", what, hn_jv_type(v));
    return v.u.s;
}
static hn_jstr *opt_str(hn_jrun *r, hn_jval v, const char *what)
{
    return v.kind == HN_J_NIL || v.kind == HN_J_NONE ? NULL : want_str(r, v, what);
}
static int64_t want_int(hn_jrun *r, hn_jval v, int64_t absent, const char *what)
{
    if (v.kind == HN_J_NIL) return absent;
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (v.kind != HN_J_INT && v.kind != HN_J_BOOL) HN_JFAIL(r, "%s must be an integer, not %s", what, hn_jv_type(v));
    return hn_jv_int(v);
}

#define M(name) static hn_jval name(hn_jrun *r, hn_jval self, hn_jval *a, const hn_jargs *raw)
#define S (self.u.s)

/* ---- strings ------------------------------------------------------------------------------------ */

M(s_upper) { return HN_JSTR(hn_js_case(r, S, HN_J_UPPER)); }
M(s_lower) { return HN_JSTR(hn_js_case(r, S, HN_J_LOWER)); }
M(s_title) { return HN_JSTR(hn_js_case(r, S, HN_J_TITLE)); }
M(s_capitalize) { return HN_JSTR(hn_js_case(r, S, HN_J_CAPITALIZE)); }
M(s_swapcase) { return HN_JSTR(hn_js_case(r, S, HN_J_SWAP)); }
M(s_strip) { return HN_JSTR(hn_js_strip(r, S, opt_str(r, a[0], "strip arg"), HN_J_LEFT | HN_J_RIGHT)); }
M(s_lstrip) { return HN_JSTR(hn_js_strip(r, S, opt_str(r, a[0], "lstrip arg"), HN_J_LEFT)); }
M(s_rstrip) { return HN_JSTR(hn_js_strip(r, S, opt_str(r, a[0], "rstrip arg"), HN_J_RIGHT)); }
M(s_split)
{
    return HN_JLIST(hn_js_split(r, S, opt_str(r, a[0], "separator"), want_int(r, a[1], -1, "maxsplit"), false));
}
M(s_rsplit)
{
    return HN_JLIST(hn_js_split(r, S, opt_str(r, a[0], "separator"), want_int(r, a[1], -1, "maxsplit"), true));
}
M(s_replace)
{
    const hn_jstr *old = want_str(r, a[0], "replace() argument 1"), *new_ = want_str(r, a[1], "replace() argument 2");
    return HN_JSTR(hn_js_mark(
        r, hn_js_replace(r, S, old, S->markup ? hn_js_escape(r, new_) : new_, want_int(r, a[2], -1, "count")),
        S->markup));
}
M(s_format) { return hn_jj_format(r, S, raw); }

/* Byte range of the optional arguments start and end, in characters; false: empty beyond the text. */
static bool char_range(hn_jrun *r, const hn_jstr *s, hn_jval from, hn_jval to, size_t *x, size_t *y)
{
    int64_t n = (int64_t)hn_js_chars(r, s), i = want_int(r, from.kind == HN_J_NONE ? HN_JNIL : from, 0, "start"),
            e = want_int(r, to.kind == HN_J_NONE ? HN_JNIL : to, n, "end");
    if (i < 0) i = i + n < 0 ? 0 : i + n;
    if (e < 0) e = e + n < 0 ? 0 : e + n;
    if (e > n) e = n;
    if (i > e) return false;
    *x = hn_js_offset(s, (size_t)i);
    *y = hn_js_offset(s, (size_t)e);
    if (s->n_char != s->len) hn_jj_charge(r, (*x + *y) / 4);
    return true;
}

static bool affix(hn_jrun *r, const hn_jstr *s, hn_jval what, size_t x, size_t y, bool end)
{
    if (what.kind == HN_J_TUPLE) {
        for (size_t i = 0; i < what.u.l->n; i++) {
            hn_jj_charge(r, 1);
            if (affix(r, s, HN_JSTR(want_str(r, what.u.l->v[i], "each prefix or suffix")), x, y, end)) return true;
        }
        return false;
    }
    const hn_jstr *w = want_str(r, what, end ? "endswith first arg" : "startswith first arg");
    return w->len <= y - x && memcmp(s->p + (end ? y - w->len : x), w->p, w->len) == 0;
}
M(s_startswith)
{
    size_t x, y;
    return HN_JBOOL(char_range(r, S, a[1], a[2], &x, &y) && affix(r, S, a[0], x, y, false));
}
M(s_endswith)
{
    size_t x, y;
    return HN_JBOOL(char_range(r, S, a[1], a[2], &x, &y) && affix(r, S, a[0], x, y, true));
}

/* Character position of what, -1: not there. */
static int64_t find(hn_jrun *r, const hn_jstr *s, hn_jval *a, bool right)
{
    size_t x, y;
    const hn_jstr *w = want_str(r, a[0], "what to find");
    if (!char_range(r, s, a[1], a[2], &x, &y)) return -1;
    if (right) hn_js_charge_rfind(r, s, w);
    else hn_js_charge_find(r, s, w);
    size_t k = right ? hn_js_rfind(s, x, y, w) : hn_js_find(s, x, y, w);
    return k == SIZE_MAX ? -1 : (int64_t)hn_js_chars(r, hn_js_part(r, s, 0, k));
}
M(s_find) { return HN_JINT(find(r, S, a, false)); }
M(s_rfind) { return HN_JINT(find(r, S, a, true)); }
static hn_jval found(hn_jrun *r, int64_t at)
{
    if (at < 0) HN_JFAIL(r, "substring not found");
    return HN_JINT(at);
}
M(s_index) { return found(r, find(r, S, a, false)); }
M(s_rindex) { return found(r, find(r, S, a, true)); }
M(s_count)
{
    size_t x, y;
    int64_t n = 0;
    const hn_jstr *w = want_str(r, a[0], "what to count");
    if (!char_range(r, S, a[1], a[2], &x, &y)) return HN_JINT(0);
    if (!w->len) return HN_JINT((int64_t)hn_js_chars(r, hn_js_part(r, S, x, y - x)) + 1);
    for (size_t k; (k = hn_js_find(S, x, y, w)) != SIZE_MAX; x = k + w->len) {
        hn_jj_charge(r, 1);
        n++;
    }
    return HN_JINT(n);
}

static hn_jval join(hn_jrun *r, const hn_jstr *sep, hn_jval items)
{
    size_t n;
    if (items.kind == HN_J_UNDEF) hn_jv_fail_undef(r, items);
    hn_jval *e = hn_jv_items(r, items, &n);
    hn_jbuf b = { 0 };
    for (size_t i = 0; i < n; i++) {
        if (e[i].kind != HN_J_STR && sep->markup) HN_JUNSUPPORTED(r, "joining a %s with markup", hn_jv_type(e[i]));
        if (e[i].kind != HN_J_STR)
            HN_JFAIL(r, "sequence item %zu: expected str instance, %s found", i, hn_jv_type(e[i]));
        hn_jj_charge(r, 1);
        if (i) hn_jb_str(r, &b, sep);
        hn_jb_str(r, &b, sep->markup ? hn_js_escape(r, e[i].u.s) : e[i].u.s);
    }
    return HN_JSTR(hn_js_mark(r, hn_jb_done(r, &b), sep->markup));
}
M(s_join) { return join(r, S, a[0]); }

M(s_splitlines) { return HN_JLIST(hn_js_lines(r, S, a[0].kind != HN_J_NIL && hn_jv_truth(a[0]))); }

static hn_jval three(hn_jrun *r, const hn_jstr *s, size_t a, size_t b)
{
    hn_jlist *l = hn_jl_new(r, 3);
    hn_jl_push(r, l, HN_JSTR(hn_js_part(r, s, 0, a)));
    hn_jl_push(r, l, HN_JSTR(hn_js_part(r, s, a, b - a)));
    hn_jl_push(r, l, HN_JSTR(hn_js_part(r, s, b, s->len - b)));
    return HN_JTUPLE(l);
}
M(s_partition)
{
    const hn_jstr *w = want_str(r, a[0], "separator");
    if (!w->len) HN_JFAIL(r, "empty separator");
    hn_js_charge_find(r, S, w);
    size_t k = hn_js_find(S, 0, S->len, w);
    return k == SIZE_MAX ? three(r, S, S->len, S->len) : three(r, S, k, k + w->len);
}
M(s_rpartition)
{
    const hn_jstr *w = want_str(r, a[0], "separator");
    if (!w->len) HN_JFAIL(r, "empty separator");
    hn_js_charge_rfind(r, S, w);
    size_t k = hn_js_rfind(S, 0, S->len, w);
    return k == SIZE_MAX ? three(r, S, 0, 0) : three(r, S, k, k + w->len);
}
M(s_removeprefix)
{
    const hn_jstr *w = want_str(r, a[0], "prefix");
    bool y = w->len <= S->len && memcmp(S->p, w->p, w->len) == 0;
    return y ? HN_JSTR(hn_js_part(r, S, w->len, S->len - w->len)) : self;
}
M(s_removesuffix)
{
    const hn_jstr *w = want_str(r, a[0], "suffix");
    bool y = w->len <= S->len && memcmp(S->p + S->len - w->len, w->p, w->len) == 0;
    return y ? HN_JSTR(hn_js_part(r, S, 0, S->len - w->len)) : self;
}

/* S padded to the width a[0] with the character a[1]. */
static hn_jval padded(hn_jrun *r, hn_jval self, const hn_jval *a, int side)
{
    size_t used;
    int64_t width = want_int(r, a[0], 0, "width");
    if (a[1].kind == HN_J_NIL) return HN_JSTR(hn_js_pad(r, S, width, ' ', false, side));
    const hn_jstr *s = want_str(r, a[1], "the fill character");
    if (hn_js_chars(r, s) != 1) HN_JFAIL(r, "The fill character must be exactly one character long");
    return HN_JSTR(hn_js_pad(r, S, width, hn_jj_cp(s->p, s->len, &used), hn_js_any_input(s), side));
}
M(s_ljust) { return padded(r, self, a, HN_J_LEFT); }
M(s_rjust) { return padded(r, self, a, HN_J_RIGHT); }
M(s_center) { return padded(r, self, a, 0); }
M(s_zfill)
{
    bool sign = S->len && (S->p[0] == '-' || S->p[0] == '+');
    hn_jstr *head = hn_js_part(r, S, 0, sign), *rest = hn_js_part(r, S, sign, S->len - sign);
    int64_t w = want_int(r, a[0], 0, "width");
    return HN_JSTR(hn_js_mark(
        r, hn_js_concat(r, head, hn_js_pad(r, rest, w > INT64_MIN ? w - sign : w, '0', false, HN_J_RIGHT)), S->markup));
}

/* The is… family: every character of a non-empty text is of a kind. */
static bool all_are(const hn_jstr *s, bool (*is)(uint32_t))
{
    size_t used;
    for (size_t i = 0; i < s->len; i += used)
        if (!is(hn_jj_cp(s->p + i, s->len - i, &used))) return false;
    return s->len > 0;
}
static bool is_alpha(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ||
           k == UTF8PROC_CATEGORY_LM || k == UTF8PROC_CATEGORY_LO;
}
static bool is_decimal(uint32_t c) { return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND; }
static bool is_superscript(uint32_t c)
{
    return c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 || (c >= 0x2074 && c <= 0x2079) ||
           (c >= 0x2080 && c <= 0x2089) || (c >= 0x2460 && c <= 0x2468);
}
static bool is_digit(uint32_t c) { return is_decimal(c) || is_superscript(c); }
static bool is_numeric(uint32_t c)
{
    utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}
static bool is_alnum(uint32_t c) { return is_alpha(c) || is_numeric(c); }
static bool is_ascii(uint32_t c) { return c < 0x80; }
static bool cased(const hn_jstr *s, utf8proc_category_t want)
{
    size_t used;
    bool any = false;
    for (size_t i = 0; i < s->len; i += used) {
        utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)hn_jj_cp(s->p + i, s->len - i, &used));
        if (k == UTF8PROC_CATEGORY_LT || ((k == UTF8PROC_CATEGORY_LU || k == UTF8PROC_CATEGORY_LL) && k != want))
            return false;
        any |= k == want;
    }
    return any;
}
#define IS(name, test)          \
    M(name)                     \
    {                           \
        hn_jj_bytes(r, S->len); \
        return HN_JBOOL(test);  \
    }
IS(s_isalpha, all_are(S, is_alpha))
IS(s_isdecimal, all_are(S, is_decimal))
IS(s_isdigit, all_are(S, is_digit))
IS(s_isnumeric, all_are(S, is_numeric))
IS(s_isalnum, all_are(S, is_alnum))
IS(s_isspace, all_are(S, hn_jj_is_space))
IS(s_isascii, !S->len || all_are(S, is_ascii))
IS(s_isupper, cased(S, UTF8PROC_CATEGORY_LU))
IS(s_islower, cased(S, UTF8PROC_CATEGORY_LL))

static const hn_jfunc str_methods[] = {
    { "capitalize", "", s_capitalize },
    { "center", "width?fillchar", s_center },
    { "count", "sub?start,end", s_count },
    { "endswith", "suffix?start,end", s_endswith },
    { "find", "sub?start,end", s_find },
    { "format", "*", s_format },
    { "index", "sub?start,end", s_index },
    { "isalnum", "", s_isalnum },
    { "isalpha", "", s_isalpha },
    { "isascii", "", s_isascii },
    { "isdecimal", "", s_isdecimal },
    { "isdigit", "", s_isdigit },
    { "islower", "", s_islower },
    { "isnumeric", "", s_isnumeric },
    { "isspace", "", s_isspace },
    { "isupper", "", s_isupper },
    { "join", "iterable", s_join },
    { "ljust", "width?fillchar", s_ljust },
    { "lower", "", s_lower },
    { "lstrip", "?chars", s_lstrip },
    { "partition", "sep", s_partition },
    { "removeprefix", "prefix", s_removeprefix },
    { "removesuffix", "suffix", s_removesuffix },
    { "replace", "old,new?count", s_replace },
    { "rfind", "sub?start,end", s_rfind },
    { "rindex", "sub?start,end", s_rindex },
    { "rjust", "width?fillchar", s_rjust },
    { "rpartition", "sep", s_rpartition },
    { "rsplit", "?sep,maxsplit", s_rsplit },
    { "rstrip", "?chars", s_rstrip },
    { "split", "?sep,maxsplit", s_split },
    { "splitlines", "?keepends", s_splitlines },
    { "startswith", "prefix?start,end", s_startswith },
    { "strip", "?chars", s_strip },
    { "swapcase", "", s_swapcase },
    { "title", "", s_title },
    { "upper", "", s_upper },
    { "zfill", "width", s_zfill },
    { 0 },
};
static const char *const str_lacks[] = { "casefold",    "encode",  "expandtabs", "format_map", "isidentifier",
                                         "isprintable", "istitle", "maketrans",  "translate",  NULL };

/* ---- lists ------------------------------------------------------------------------------------------ */

#define L (self.u.l)

M(l_append)
{
    hn_jl_push(r, L, a[0]);
    return HN_JNONE;
}
M(l_extend)
{
    size_t n;
    hn_jval *e = hn_jv_items(r, a[0], &n);
    for (size_t i = 0; i < n; i++) {
        hn_jj_charge(r, 1);
        hn_jl_push(r, L, e[i]);
    }
    return HN_JNONE;
}
M(l_insert)
{
    int64_t n = (int64_t)L->n, at = want_int(r, a[0], 0, "index");
    if (at < 0) at = at + n < 0 ? 0 : at + n;
    if (at > n) at = n;
    hn_jl_push(r, L, a[1]);
    hn_jj_charge(r, L->n / 8);
    memmove(L->v + at + 1, L->v + at, (size_t)(n - at) * sizeof *L->v);
    L->v[at] = a[1];
    return HN_JNONE;
}
M(l_pop)
{
    int64_t n = (int64_t)L->n, at = want_int(r, a[0], -1, "index");
    if (!n) HN_JFAIL(r, "pop from empty list");
    if (at < 0) at += n;
    if (at < 0 || at >= n) HN_JFAIL(r, "pop index out of range");
    hn_jval v = L->v[at];
    /* loops may be walking the old elements: take new ones */
    hn_jval *e = L->v;
    if (at + 1 < n) {
        hn_jj_charge(r, L->n / 8);
        e = hn_jj_array(HN_JC(r), L->n, sizeof *e);
        memcpy(e, L->v, (size_t)at * sizeof *e);
        memcpy(e + at, L->v + at + 1, (size_t)(n - at - 1) * sizeof *e);
        L->cap = L->n;
    }
    L->v = e;
    L->n--;
    return v;
}
static int64_t position(hn_jrun *r, const hn_jlist *l, hn_jval x)
{
    for (size_t i = 0; i < l->n; i++) {
        hn_jj_charge(r, 1);
        if (hn_jv_equal(r, l->v[i], x)) return (int64_t)i;
    }
    return -1;
}
M(l_index)
{
    int64_t i = position(r, L, a[0]);
    if (i < 0) HN_JFAIL(r, "value is not in list");
    return HN_JINT(i);
}
M(l_count)
{
    int64_t n = 0;
    for (size_t i = 0; i < L->n; i++) {
        hn_jj_charge(r, 1);
        n += hn_jv_equal(r, L->v[i], a[0]);
    }
    return HN_JINT(n);
}
M(l_remove)
{
    hn_jval at = HN_JINT(position(r, L, a[0]));
    if (at.u.i < 0) HN_JFAIL(r, "list.remove(x): x not in list");
    l_pop(r, self, &at, raw);
    return HN_JNONE;
}
M(l_reverse)
{
    hn_jlist *c = hn_jv_list(r, self);
    for (size_t i = 0; i < c->n; i++) L->v[i] = c->v[c->n - 1 - i];
    return HN_JNONE;
}
M(l_copy) { return HN_JLIST(hn_jv_list(r, self)); }
M(l_clear)
{
    L->n = L->cap = 0;
    L->v = NULL;
    return HN_JNONE;
}

static const hn_jfunc list_methods[] = {
    { "append", "object", l_append },
    { "clear", "", l_clear },
    { "copy", "", l_copy },
    { "count", "value", l_count },
    { "extend", "iterable", l_extend },
    { "index", "value", l_index },
    { "insert", "index,object", l_insert },
    { "pop", "?index", l_pop },
    { "remove", "value", l_remove },
    { "reverse", "", l_reverse },
    { 0 },
};
static const char *const list_lacks[] = { "sort", NULL };
static const hn_jfunc tuple_methods[] = { { "count", "value", l_count }, { "index", "value", l_index }, { 0 } };

/* ---- dicts -------------------------------------------------------------------------------------------- */

#define D (self.u.d)

static hn_jval pair(hn_jrun *r, hn_jval k, hn_jval v)
{
    hn_jlist *l = hn_jl_new(r, 2);
    hn_jl_push(r, l, k);
    hn_jl_push(r, l, v);
    return HN_JTUPLE(l);
}
static hn_jval view(hn_jrun *r, const hn_jdict *d, int what, const char *name)
{
    hn_jlist *l = hn_jl_new(r, d->n);
    hn_jj_charge(r, d->n);
    for (size_t i = 0; i < d->n; i++)
        hn_jl_push(r, l, what == 'k' ? d->e[i].k : what == 'v' ? d->e[i].v : pair(r, d->e[i].k, d->e[i].v));
    l->view = name;
    return HN_JLIST(l);
}
M(d_items) { return view(r, D, 'i', "dict_items"); }
M(d_keys) { return view(r, D, 'k', "dict_keys"); }
M(d_values) { return view(r, D, 'v', "dict_values"); }
M(d_get)
{
    hn_jval *v = hn_jd_get(r, D, a[0]);
    return v ? *v : a[1].kind == HN_J_NIL ? HN_JNONE : a[1];
}
M(d_pop)
{
    hn_jval v;
    if (hn_jd_pop(r, D, a[0], &v)) return v;
    if (a[1].kind == HN_J_NIL) HN_JFAIL(r, "pop(): key not found");
    return a[1];
}
M(d_setdefault)
{
    hn_jval *v = hn_jd_get(r, D, a[0]);
    if (v) return *v;
    hn_jval x = a[1].kind == HN_J_NIL ? HN_JNONE : a[1];
    hn_jd_set(r, D, a[0], x);
    return x;
}

static void update(hn_jrun *r, hn_jdict *d, const hn_jargs *raw)
{
    if (raw->n > 1) HN_JFAIL(r, "expected at most 1 argument, got %zu", raw->n);
    if (raw->n && raw->v[0].kind == HN_J_DICT) {
        const hn_jdict *from = raw->v[0].u.d;
        for (size_t i = 0; i < from->n; i++) hn_jd_set(r, d, from->e[i].k, from->e[i].v);
    } else if (raw->n) {
        size_t n, k;
        hn_jval *e = hn_jv_items(r, raw->v[0], &n);
        for (size_t i = 0; i < n; i++) {
            hn_jval *p = hn_jv_items(r, e[i], &k);
            if (k != 2) HN_JFAIL(r, "dictionary update sequence element #%zu has length %zu; 2 is required", i, k);
            hn_jd_set(r, d, p[0], p[1]);
        }
    }
    for (size_t i = 0; i < raw->n_kw; i++) hn_jd_set(r, d, HN_JSTR((hn_jstr *)raw->kw[i].name), raw->kw[i].v);
}
M(d_update)
{
    update(r, D, raw);
    return HN_JNONE;
}
M(d_copy)
{
    hn_jargs args = { .v = &self, .n = 1 };
    hn_jdict *d = hn_jd_new(r);
    update(r, d, &args);
    return HN_JDICT(d);
}
M(d_clear)
{
    *D = (hn_jdict){ 0 };
    return HN_JNONE;
}

static const hn_jfunc dict_methods[] = {
    { "clear", "", d_clear },
    { "copy", "", d_copy },
    { "get", "key?default", d_get },
    { "items", "", d_items },
    { "keys", "", d_keys },
    { "pop", "key?default", d_pop },
    { "setdefault", "key?default", d_setdefault },
    { "update", "*", d_update },
    { "values", "", d_values },
    { 0 },
};
static const char *const dict_lacks[] = { "fromkeys", "popitem", NULL };

/* ---- loops, cycler ------------------------------------------------------------------------------------- */

M(loop_cycle)
{
    if (!raw->n || raw->n_kw) HN_JFAIL(r, "no items for cycling given");
    return raw->v[self.u.loop->i % raw->n];
}
M(loop_changed)
{
    hn_jlist *l = hn_jl_new(r, raw->n);
    for (size_t i = 0; i < raw->n; i++) hn_jl_push(r, l, raw->v[i]);
    hn_jval now = HN_JTUPLE(l), before = self.u.loop->changed;
    self.u.loop->changed = now;
    return HN_JBOOL(before.kind == HN_J_NIL || !hn_jv_equal(r, before, now));
}
static const hn_jfunc loop_methods[] = { { "changed", "*", loop_changed }, { "cycle", "*", loop_cycle }, { 0 } };

M(cycler_next)
{
    hn_jcycle *c = self.u.cycle;
    hn_jval v = c->l->v[c->at];
    c->at = (c->at + 1) % c->l->n;
    return v;
}
M(cycler_reset)
{
    self.u.cycle->at = 0;
    return HN_JNONE;
}
static const hn_jfunc cycler_methods[] = { { "next", "", cycler_next }, { "reset", "", cycler_reset }, { 0 } };

/* ---- finding them -------------------------------------------------------------------------------------- */

const hn_jfunc *hn_jj_method(hn_jrun *r, hn_jval v, const hn_jstr *name)
{
    const hn_jfunc *f = NULL;
    const char *const *lacks = NULL;
    switch (v.kind) {
    case HN_J_STR:
        f = str_methods;
        lacks = str_lacks;
        break;
    case HN_J_LIST:
        if (v.u.l->view) return NULL;
        f = list_methods;
        lacks = list_lacks;
        break;
    case HN_J_TUPLE: f = tuple_methods; break;
    case HN_J_DICT:
        f = dict_methods;
        lacks = dict_lacks;
        break;
    case HN_J_LOOP: f = loop_methods; break;
    case HN_J_CYCLER: f = cycler_methods; break;
    default: return NULL;
    }
    for (; f->name; f++)
        if (hn_js_is(name, f->name)) return f;
    for (; lacks && *lacks; lacks++)
        if (hn_js_is(name, *lacks))
            HN_JUNSUPPORTED(r, "the method '%s' of %s is not supported in chat templates", *lacks, hn_jv_type(v));
    return NULL;
}

/* ---- functions -------------------------------------------------------------------------------------------- */

M(g_raise)
{
    const hn_jstr *s = hn_jv_text(r, a[0]);
    char text[700]; /* the message is for people: shown as it is, in one line */
    size_t n = s->len < sizeof text - 1 ? s->len : sizeof text - 1;
    while (n < s->len && n && ((unsigned char)s->p[n] & 0xC0) == 0x80) n--;
    memcpy(text, s->p, n);
    text[n] = 0;
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7F) text[i] = ' ';
    r->raised = true;
    hn_jj_fail(HN_JC(r), HONE_E_ARG, r->c.pos, "%s", text);
}
M(g_strftime) { return HN_JSTR(hn_jj_strftime(r, want_str(r, a[0], "the format"))); }
M(g_namespace)
{
    hn_jdict *d = hn_jd_new(r);
    update(r, d, raw);
    return HN_JV(HN_J_NS, d, d);
}
M(g_dict)
{
    hn_jdict *d = hn_jd_new(r);
    update(r, d, raw);
    return HN_JDICT(d);
}
M(g_range)
{
    enum { MAX_RANGE = 100000 }; /* of Jinja2's sandbox */
    int64_t from = 0, to = want_int(r, a[0], 0, "range() argument"), step = want_int(r, a[2], 1, "range() step");
    if (a[1].kind != HN_J_NIL) from = to, to = want_int(r, a[1], 0, "range() argument");
    if (step == 0) HN_JFAIL(r, "range() arg 3 must not be zero");
    hn_jlist *l = hn_jl_new(r, 0);
    for (int64_t i = from; step > 0 ? i < to : i > to;) {
        if (l->n >= MAX_RANGE) HN_JFAIL(r, "Range too big. A range may have at most %d elements", MAX_RANGE);
        hn_jl_push(r, l, HN_JINT(i));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    hn_jj_charge(r, l->n);
    l->range = true;
    return HN_JLIST(l);
}
M(g_cycler)
{
    if (!raw->n) HN_JFAIL(r, "at least one item has to be provided");
    hn_jcycle *c = hn_jj_alloc(HN_JC(r), sizeof *c);
    c->l = hn_jl_new(r, raw->n);
    for (size_t i = 0; i < raw->n; i++) hn_jl_push(r, c->l, raw->v[i]);
    return HN_JV(HN_J_CYCLER, cycle, c);
}
M(g_joiner)
{
    hn_jcycle *c = hn_jj_alloc(HN_JC(r), sizeof *c);
    c->sep = a[0].kind == HN_J_NIL ? hn_js_lit(HN_JC(r), ", ") : hn_jv_text(r, a[0]);
    return HN_JV(HN_J_JOINER, cycle, c);
}
M(g_lipsum) { HN_JUNSUPPORTED(r, "the function 'lipsum' is not supported in chat templates"); }

static const hn_jfunc globals[] = {
    { "raise_exception", "message", g_raise },
    { "strftime_now", "format", g_strftime },
    { "namespace", "*", g_namespace },
    { "dict", "*", g_dict },
    { "range", "start?stop,step", g_range },
    { "cycler", "*", g_cycler },
    { "joiner", "?sep", g_joiner },
    { "lipsum", "*", g_lipsum },
    { 0 },
};

const hn_jfunc *hn_jj_global(const hn_jstr *name)
{
    for (const hn_jfunc *f = globals; f->name; f++)
        if (hn_js_is(name, f->name)) return f;
    return NULL;
}
