/* jinja_filters: the filters of Jinja2 that chat templates use, with the tojson and
 * from_json of the chat template world. */
#include "template/jinja_priv.h"

#include "base/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <utf8proc.h>

#define F(name) static hn_jval name(hn_jrun *r, hn_jval self, hn_jval *a, const hn_jargs *raw)

static bool given(hn_jval v) { return v.kind != HN_J_NIL; }
static bool flag(hn_jval v, bool absent) { return given(v) ? hn_jv_truth(v) : absent; }
static int64_t integer(hn_jrun *r, hn_jval v, int64_t absent, const char *what)
{
    if (!given(v)) return absent;
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (v.kind != HN_J_INT && v.kind != HN_J_BOOL) HN_JFAIL(r, "%s must be an integer, not %s", what, hn_jv_type(v));
    return hn_jv_int(v);
}
static hn_jval first_undef(hn_jrun *r) { return hn_jv_undef_key(r, HN_JNIL, HN_JNIL); }

/* ---- text ------------------------------------------------------------------------------------- */

F(f_upper) { return HN_JSTR(hn_js_case(r, hn_jv_text(r, self), HN_J_UPPER)); }
F(f_lower) { return HN_JSTR(hn_js_case(r, hn_jv_text(r, self), HN_J_LOWER)); }
F(f_capitalize) { return HN_JSTR(hn_js_case(r, hn_jv_text(r, self), HN_J_CAPITALIZE)); }
F(f_title) { return HN_JSTR(hn_js_case(r, hn_jv_text(r, self), HN_J_TITLE_FILTER)); }
F(f_string) { return HN_JSTR(hn_jv_text(r, self)); }
F(f_safe) { return HN_JSTR(hn_js_mark(r, hn_jv_text(r, self), true)); }
F(f_trim)
{
    hn_jstr *chars = given(a[0]) && a[0].kind != HN_J_NONE ? hn_jv_text(r, a[0]) : NULL;
    return HN_JSTR(hn_js_strip(r, hn_jv_text(r, self), chars, HN_J_LEFT | HN_J_RIGHT));
}
F(f_replace)
{
    int64_t n = a[2].kind == HN_J_NONE ? -1 : integer(r, a[2], -1, "count");
    return HN_JSTR(
        hn_js_mark(r, hn_js_replace(r, hn_jv_text(r, self), hn_jv_text(r, a[0]), hn_jv_text(r, a[1]), n), false));
}
F(f_center) { return HN_JSTR(hn_js_pad(r, hn_jv_text(r, self), integer(r, a[0], 80, "width"), ' ', false, 0)); }
F(f_format)
{
    if (raw->n && raw->n_kw) HN_JFAIL(r, "can't handle positional and keyword arguments at the same time");
    hn_jval args;
    if (raw->n_kw) {
        args = HN_JDICT(hn_jd_new(r));
        for (size_t i = 0; i < raw->n_kw; i++)
            hn_jd_set(r, args.u.d, HN_JSTR((hn_jstr *)raw->kw[i].name), raw->kw[i].v);
    } else {
        hn_jlist *l = hn_jl_new(r, raw->n);
        for (size_t i = 0; i < raw->n; i++) hn_jl_push(r, l, raw->v[i]);
        args = HN_JTUPLE(l);
    }
    return hn_jj_percent(r, hn_jv_text(r, self), args);
}

F(f_escape) { return HN_JSTR(hn_js_escape(r, hn_jv_text(r, self))); }
/* Whether a name cannot be that of an attribute: the characters HTML ends one with. */
static bool ends_attr(const hn_jstr *k)
{
    static const char set[] = " \t\n\r\f\v/>=";
    for (size_t i = 0; i < k->len; i++)
        if (memchr(set, k->p[i], sizeof set - 1)) return true;
    return !k->len;
}

F(f_xmlattr)
{
    hn_jbuf b = { 0 };
    if (self.kind != HN_J_DICT) HN_JFAIL(r, "'%s' object has no attribute 'items'", hn_jv_type(self));
    for (size_t i = 0; i < self.u.d->n; i++) {
        hn_jval v = self.u.d->e[i].v;
        if (v.kind == HN_J_NONE || v.kind == HN_J_UNDEF) continue;
        if (self.u.d->e[i].k.kind != HN_J_STR)
            HN_JFAIL(r, "xmlattr: names must be text, not %s", hn_jv_type(self.u.d->e[i].k));
        hn_jstr *k = self.u.d->e[i].k.u.s;
        if (ends_attr(k)) HN_JFAIL(r, "Invalid character in attribute name: '%s'", HN_ESC(k->p, k->len));
        if (b.len || flag(a[0], true)) hn_jb_lit(r, &b, " ");
        hn_jb_str(r, &b, hn_js_escape(r, k));
        hn_jb_lit(r, &b, "=\"");
        hn_jb_str(r, &b, hn_js_escape(r, hn_jv_text(r, v)));
        hn_jb_lit(r, &b, "\"");
    }
    return HN_JSTR(hn_jb_done(r, &b));
}

/* As in Jinja2, line breaks of any kind become newlines. */
F(f_indent)
{
    if (self.kind == HN_J_UNDEF) hn_jv_fail_undef(r, self);
    if (self.kind != HN_J_STR) HN_JFAIL(r, "indent: expected text, not %s", hn_jv_type(self));
    const hn_jstr *s = self.u.s;
    hn_jstr *pad = given(a[0]) && a[0].kind == HN_J_STR
                       ? a[0].u.s
                       : hn_js_repeat(r, hn_js_lit(HN_JC(r), " "), integer(r, a[0], 4, "width"));
    bool first = flag(a[1], false), blank = flag(a[2], false);
    hn_jlist *lines = hn_js_lines(r, hn_js_concat(r, s, hn_js_lit(HN_JC(r), "\n")), false);
    hn_jbuf b = { 0 };
    for (size_t i = 0; i < lines->n; i++) {
        const hn_jstr *line = lines->v[i].u.s;
        if (i) hn_jb_lit(r, &b, "\n");
        if (i ? blank || line->len : first) hn_jb_str(r, &b, pad);
        hn_jb_str(r, &b, line);
    }
    return HN_JSTR(hn_js_mark(r, hn_jb_done(r, &b), s->markup));
}

static hn_jval f_length(hn_jrun *r, hn_jval self, hn_jval *a, const hn_jargs *raw);

F(f_truncate)
{
    bool text = self.kind == HN_J_STR;
    hn_jstr *s = text ? self.u.s : NULL, *end = given(a[2]) ? hn_jv_text(r, a[2]) : hn_js_lit(HN_JC(r), "...");
    int64_t n = integer(r, a[0], 255, "length"), leeway = a[3].kind == HN_J_NONE ? 5 : integer(r, a[3], 5, "leeway"),
            ends = (int64_t)hn_js_chars(r, end);
    if (n < ends) HN_JFAIL(r, "expected length >= %lld, got %lld", (long long)ends, (long long)n);
    if (leeway < 0) HN_JFAIL(r, "expected leeway >= 0, got %lld", (long long)leeway);
    int64_t have = text ? (int64_t)hn_js_chars(r, s) : f_length(r, self, a, raw).u.i;
    if (have <= n || have - n <= leeway) return self;
    if (!text) HN_JFAIL(r, "truncate: expected text, not %s", hn_jv_type(self));
    hn_jstr *cut = hn_js_part(r, s, 0, hn_js_offset(s, (size_t)(n - ends)));
    if (!flag(a[1], false)) cut = hn_js_split(r, cut, hn_js_lit(HN_JC(r), " "), 1, true)->v[0].u.s;
    return hn_jj_binary(r, '+', HN_JSTR(cut), HN_JSTR(end));
}

F(f_wordcount)
{
    const hn_jstr *s = hn_jv_text(r, self);
    int64_t n = 0;
    bool in = false;
    size_t used;
    hn_jj_bytes(r, s->len);
    for (size_t i = 0; i < s->len; i += used) {
        hn_class c = hn_class_of(hn_class_table_get(), hn_jj_cp(s->p + i, s->len - i, &used));
        bool word = s->p[i] == '_' || c == HN_CLASS_UPPER || c == HN_CLASS_LOWER || c == HN_CLASS_LETTER ||
                    c == HN_CLASS_NUMBER;
        n += word && !in;
        in = word;
    }
    return HN_JINT(n);
}

/* ---- numbers ------------------------------------------------------------------------------------- */

/* Digits without the underscores Python allows between them, trimmed; false: too long or misplaced. */
static bool plain_number(hn_jrun *r, const hn_jstr *s, char buf[400])
{
    const hn_jstr *t = hn_js_strip(r, s, NULL, HN_J_LEFT | HN_J_RIGHT);
    size_t n = 0;
    if (t->len >= 399) return false;
    for (size_t i = 0; i < t->len; i++) {
        if (t->p[i] != '_') buf[n++] = t->p[i];
        else if (i == 0 || i + 1 >= t->len || t->p[i - 1] == '_' || t->p[i + 1] == '_') return false;
    }
    buf[n] = 0;
    return n > 0 && strlen(buf) == n;
}

static bool text_to_float(hn_jrun *r, const hn_jstr *s, double *out)
{
    char buf[400], *end;
    if (!plain_number(r, s, buf) || strpbrk(buf, "xXpP(,")) return false; /* strtod takes more than Python's float() */
    *out = hn_jj_strtod(buf, &end);
    return *end == 0;
}

static bool text_to_int(hn_jrun *r, const hn_jstr *s, int base, int64_t *out)
{
    char buf[400], *end, *p = buf;
    if (base != 0 && (base < 2 || base > 36)) HN_JFAIL(r, "int() base must be >= 2 and <= 36, or 0");
    if (!plain_number(r, s, buf)) return false;
    bool neg = *p == '-';
    if (*p == '-' || *p == '+') p++;
    if (*p == '0' && p[1]) {
        int prefix = (p[1] | 32) == 'x' ? 16 : (p[1] | 32) == 'o' ? 8 : (p[1] | 32) == 'b' ? 2 : 0;
        if (prefix && (base == prefix || base == 0)) p += 2, base = prefix;
    }
    if (base == 0) base = 10;
    if (*p == '-' || *p == '+' || *p == ' ' || !*p) return false;
    unsigned long long v = 0;
    for (end = p; *end; end++) {
        int d = *end >= '0' && *end <= '9'                 ? *end - '0'
                : (*end | 32) >= 'a' && (*end | 32) <= 'z' ? (*end | 32) - 'a' + 10
                                                           : 99;
        if (d >= base) return false;
        if (__builtin_mul_overflow(v, (unsigned long long)base, &v) ||
            __builtin_add_overflow(v, (unsigned long long)d, &v) || v > (1ull << 63) - !neg)
            HN_JFAIL(r, "integer beyond 64 bits");
    }
    *out = neg ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

static hn_jval float_to_int(hn_jrun *r, double x, hn_jval absent)
{
    if (!isfinite(x)) return absent;
    if (x >= 0x1p63 || x < -0x1p63) HN_JFAIL(r, "integer beyond 64 bits");
    return HN_JINT((int64_t)x);
}

/* x, made of self. */
static hn_jval from_input(hn_jval x, hn_jval self)
{
    x.input |= self.input || (self.kind == HN_J_STR && hn_js_any_input(self.u.s));
    return x;
}

F(f_int)
{
    hn_jval absent = given(a[0]) ? a[0] : HN_JINT(0);
    int64_t i;
    double x;
    switch (self.kind) {
    case HN_J_UNDEF: hn_jv_fail_undef(r, self);
    case HN_J_BOOL:
    case HN_J_INT: return from_input(HN_JINT(hn_jv_int(self)), self);
    case HN_J_FLOAT:
        if (isinf(self.u.f)) HN_JFAIL(r, "cannot convert float infinity to integer");
        return from_input(float_to_int(r, self.u.f, absent), self);
    case HN_J_STR:
        if (text_to_int(r, self.u.s, (int)integer(r, a[1], 10, "base"), &i)) return from_input(HN_JINT(i), self);
        return text_to_float(r, self.u.s, &x) ? from_input(float_to_int(r, x, absent), self) : absent;
    default: return absent;
    }
}
F(f_float)
{
    hn_jval absent = given(a[0]) ? a[0] : HN_JFLOAT(0.0);
    double x;
    if (self.kind == HN_J_UNDEF) hn_jv_fail_undef(r, self);
    if (hn_jv_is_num(self)) return from_input(HN_JFLOAT(hn_jv_num(self)), self);
    return self.kind == HN_J_STR && text_to_float(r, self.u.s, &x) ? from_input(HN_JFLOAT(x), self) : absent;
}
static hn_jval want_number(hn_jrun *r, hn_jval v)
{
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (!hn_jv_is_num(v)) HN_JFAIL(r, "expected a number, not %s", hn_jv_type(v));
    return v;
}
F(f_abs)
{
    want_number(r, self);
    if (self.kind == HN_J_FLOAT) return from_input(HN_JFLOAT(fabs(self.u.f)), self);
    int64_t i = hn_jv_int(self);
    if (i == INT64_MIN) HN_JFAIL(r, "integer beyond 64 bits");
    return from_input(HN_JINT(i < 0 ? -i : i), self);
}
static hn_jval rounded(hn_jrun *r, hn_jval self, const hn_jval *a)
{
    want_number(r, self);
    int64_t p = integer(r, a[0], 0, "precision");
    const hn_jstr *how = given(a[1]) ? hn_jv_text(r, a[1]) : NULL;
    bool up = how && hn_js_is(how, "ceil"), down = how && hn_js_is(how, "floor");
    if (how && !up && !down && !hn_js_is(how, "common")) HN_JFAIL(r, "method must be common, ceil or floor");
    if (p < -300 || p > 300) HN_JFAIL(r, "precision %lld; expected -300 to 300", (long long)p);
    if (up || down) {
        double scale = pow(10, (double)p), x = hn_jv_num(self) * scale;
        if (!isfinite(x)) HN_JFAIL(r, "cannot convert float %s to integer", isnan(x) ? "NaN" : "infinity");
        return HN_JFLOAT(((up ? ceil(x) : floor(x)) + 0.0) / scale); /* an integer has no -0 */
    }
    if (self.kind != HN_J_FLOAT) {
        if (p >= 0) return HN_JINT(hn_jv_int(self));
        if (p < -18) return HN_JINT(0);
        int64_t unit = 1, i = hn_jv_int(self);
        for (int64_t k = 0; k < -p; k++) unit *= 10;
        int64_t m = i % unit, base = i - m;
        if (m < 0) m += unit, base = base < INT64_MIN + unit ? base : base - unit;
        int64_t q = base / unit, half = m - (unit - m); /* ties to even */
        if (half > 0 || (half == 0 && q % 2 != 0))
            if (__builtin_add_overflow(base, unit, &base)) HN_JFAIL(r, "integer beyond 64 bits");
        return HN_JINT(base);
    }
    if (!isfinite(self.u.f)) return self;
    if (p < 0) { /* by way of the decimal digits, rounded half to even as printf does */
        double unit = pow(10, (double)-p);
        return HN_JFLOAT(nearbyint(self.u.f / unit) * unit);
    }
    char buf[700];
    snprintf(buf, sizeof buf, "%.*f", (int)p, self.u.f);
    return HN_JFLOAT(strtod(buf, NULL));
}
F(f_round) { return from_input(rounded(r, self, a), self); }

/* ---- sequences ---------------------------------------------------------------------------------------- */

F(f_length)
{
    switch (self.kind) {
    case HN_J_STR: return HN_JINT((int64_t)hn_js_chars(r, self.u.s));
    case HN_J_LIST:
    case HN_J_TUPLE:
        if (self.u.l->lazy) HN_JFAIL(r, "object of type 'generator' has no len()");
        return HN_JINT((int64_t)self.u.l->n);
    case HN_J_DICT: return HN_JINT((int64_t)self.u.d->n);
    case HN_J_UNDEF: return HN_JINT(0);
    case HN_J_LOOP: return HN_JINT((int64_t)self.u.loop->n);
    default: HN_JFAIL(r, "object of type '%s' has no len()", hn_jv_type(self));
    }
}
F(f_list) { return HN_JLIST(hn_jv_list(r, self)); }
F(f_first)
{
    size_t n;
    hn_jval *e = hn_jv_items(r, self, &n);
    return n ? e[0] : first_undef(r);
}
F(f_last)
{
    size_t n;
    if (self.kind == HN_J_LIST && self.u.l->lazy) HN_JFAIL(r, "'generator' object is not reversible");
    hn_jval *e = hn_jv_items(r, self, &n);
    return n ? e[n - 1] : first_undef(r);
}
F(f_reverse)
{
    hn_jlist *l = hn_jv_list(r, self);
    for (size_t i = 0; i + 1 < l->n - i; i++) {
        hn_jval t = l->v[i];
        l->v[i] = l->v[l->n - 1 - i];
        l->v[l->n - 1 - i] = t;
    }
    if (self.kind != HN_J_STR) return hn_jl_lazy(l);
    hn_jbuf b = { 0 };
    for (size_t i = 0; i < l->n; i++) hn_jb_str(r, &b, l->v[i].u.s);
    return HN_JSTR(hn_js_mark(r, hn_jb_done(r, &b), self.u.s->markup));
}
F(f_join)
{
    const hn_jstr *sep = given(a[0]) ? hn_jv_text(r, a[0]) : hn_js_lit(HN_JC(r), "");
    size_t n;
    hn_jval *e = hn_jv_items(r, self, &n);
    hn_jbuf b = { 0 };
    for (size_t i = 0; i < n; i++) {
        hn_jj_charge(r, 1);
        if (i) hn_jb_str(r, &b, sep);
        hn_jb_str(r, &b, hn_jv_text(r, given(a[1]) && a[1].kind != HN_J_NONE ? hn_jj_path(r, e[i], a[1]) : e[i]));
    }
    return HN_JSTR(hn_jb_done(r, &b));
}
static hn_jval pairs(hn_jrun *r, hn_jval self)
{
    if (self.kind != HN_J_DICT) HN_JFAIL(r, "Can only get item pairs from a mapping.");
    hn_jargs none = { 0 };
    hn_jval v = hn_jj_func(r, hn_jj_method(r, self, hn_js_lit(HN_JC(r), "items")), self, &none, "method");
    v.u.l->view = NULL;
    return v;
}
F(f_items) { return hn_jl_lazy((self.kind == HN_J_UNDEF ? HN_JLIST(hn_jl_new(r, 0)) : pairs(r, self)).u.l); }

/* Keys for sorting and finding duplicates: an attribute, in lower case unless case counts. */
static hn_jval sort_key(hn_jrun *r, hn_jval v, hn_jval attr, bool case_sensitive)
{
    if (given(attr) && attr.kind == HN_J_STR && memchr(attr.u.s->p, ',', attr.u.s->len)) {
        hn_jlist *names = hn_js_split(r, attr.u.s, hn_js_lit(HN_JC(r), ","), -1, false), *keys = hn_jl_new(r, names->n);
        for (size_t i = 0; i < names->n; i++) hn_jl_push(r, keys, sort_key(r, v, names->v[i], case_sensitive));
        return HN_JLIST(keys);
    }
    if (given(attr) && attr.kind != HN_J_NONE) v = hn_jj_path(r, v, attr);
    return v.kind == HN_J_STR && !case_sensitive ? HN_JSTR(hn_js_case(r, v.u.s, HN_J_LOWER)) : v;
}
static hn_jval *sort_keys(hn_jrun *r, const hn_jlist *l, hn_jval attr, bool case_sensitive)
{
    hn_jval *k = hn_jj_array(HN_JC(r), l->n + 1, sizeof *k);
    for (size_t i = 0; i < l->n; i++) k[i] = sort_key(r, l->v[i], attr, case_sensitive);
    return k;
}
F(f_sort)
{
    hn_jlist *l = hn_jv_list(r, self);
    hn_jval *k = sort_keys(r, l, a[2], flag(a[1], false));
    for (size_t i = 0; i < l->n; i++) { /* lists of one, so that what is undefined equals its like */
        hn_jlist *one = hn_jl_new(r, 1);
        hn_jl_push(r, one, k[i]);
        k[i] = HN_JLIST(one);
    }
    hn_jj_sort(r, k, l->v, l->n, flag(a[0], false));
    return HN_JLIST(l);
}
F(f_dictsort)
{
    if (self.kind == HN_J_UNDEF) hn_jv_fail_undef(r, self);
    if (self.kind != HN_J_DICT) HN_JFAIL(r, "'%s' object has no attribute 'items'", hn_jv_type(self));
    const hn_jstr *by = given(a[1]) ? hn_jv_text(r, a[1]) : NULL;
    if (by && !hn_js_is(by, "key") && !hn_js_is(by, "value"))
        HN_JFAIL(r, "You can only sort by either \"key\" or \"value\"");
    hn_jval items = pairs(r, self);
    hn_jj_sort(r, sort_keys(r, items.u.l, HN_JINT(by && hn_js_is(by, "value")), flag(a[0], false)), items.u.l->v,
               items.u.l->n, flag(a[2], false));
    return items;
}
F(f_unique)
{
    hn_jlist *l = hn_jv_list(r, self), *out = hn_jl_new(r, 0);
    hn_jdict *seen = hn_jd_new(r);
    hn_jval *k = sort_keys(r, l, a[1], flag(a[0], false));
    for (size_t i = 0; i < l->n; i++) {
        if (hn_jd_get(r, seen, k[i])) continue;
        hn_jd_set(r, seen, k[i], HN_JNONE);
        hn_jl_push(r, out, l->v[i]);
    }
    return hn_jl_lazy(out);
}
static hn_jval extreme(hn_jrun *r, hn_jval self, hn_jval *a, int want)
{
    hn_jlist *l = hn_jv_list(r, self);
    hn_jval *k = sort_keys(r, l, a[1], flag(a[0], false));
    size_t best = 0;
    if (!l->n) return first_undef(r);
    for (size_t i = 1; i < l->n; i++)
        if (hn_jv_compare(r, k[i], k[best], want > 0 ? ">" : "<") == want) best = i;
    return l->v[best];
}
F(f_min) { return extreme(r, self, a, -1); }
F(f_max) { return extreme(r, self, a, 1); }
F(f_sum)
{
    size_t n;
    hn_jval *e = hn_jv_items(r, self, &n), total = given(a[1]) ? a[1] : HN_JINT(0);
    for (size_t i = 0; i < n; i++) {
        hn_jj_charge(r, 1);
        total = hn_jj_binary(r, '+', total, given(a[0]) && a[0].kind != HN_J_NONE ? hn_jj_path(r, e[i], a[0]) : e[i]);
    }
    return total;
}
F(f_batch)
{
    hn_jlist *out = hn_jl_new(r, 0), *row = NULL;
    int64_t width = integer(r, a[0], 1, "linecount");
    size_t n;
    hn_jval *e = hn_jv_items(r, self, &n);
    if (width < 1) HN_JFAIL(r, "linecount %lld; expected 1 or more", (long long)width);
    for (size_t i = 0; i < n; i++) {
        hn_jj_charge(r, 1);
        if (!row || (int64_t)row->n == width) {
            row = hn_jl_new(r, 0);
            hn_jl_push(r, out, HN_JLIST(row));
        }
        hn_jl_push(r, row, e[i]);
    }
    while (row && given(a[1]) && a[1].kind != HN_J_NONE && (int64_t)row->n < width) {
        hn_jj_charge(r, 1);
        hn_jl_push(r, row, a[1]);
    }
    return hn_jl_lazy(out);
}
F(f_slice)
{
    hn_jlist *out = hn_jl_new(r, 0);
    int64_t k = integer(r, a[0], 1, "slices");
    size_t n, at = 0;
    hn_jval *e = hn_jv_items(r, self, &n);
    if (k < 1) HN_JFAIL(r, "slices %lld; expected 1 or more", (long long)k);
    size_t each = n / (size_t)k, more = n % (size_t)k;
    for (size_t i = 0; i < (size_t)k; i++) {
        hn_jlist *row = hn_jl_new(r, 0);
        hn_jj_charge(r, 1 + each);
        for (size_t j = 0; j < each + (i < more); j++) hn_jl_push(r, row, e[at++]);
        if (given(a[1]) && a[1].kind != HN_J_NONE && i >= more) hn_jl_push(r, row, a[1]);
        hn_jl_push(r, out, HN_JLIST(row));
    }
    return hn_jl_lazy(out);
}
F(f_groupby)
{
    hn_jlist *l = hn_jv_list(r, self), *out = hn_jl_new(r, 0), *group = NULL;
    bool cs = flag(a[2], false);
    hn_jval *raw_key = hn_jj_array(HN_JC(r), l->n + 1, sizeof *raw_key),
            *k = hn_jj_array(HN_JC(r), l->n + 1, sizeof *k), last = HN_JNIL;
    for (size_t i = 0; i < l->n; i++) {
        raw_key[i] = hn_jj_path_or(r, l->v[i], a[0], a[1]);
        k[i] = sort_key(r, raw_key[i], HN_JNIL, cs);
    }
    hn_jlist *pairs = hn_jl_new(r, l->n);
    for (size_t i = 0; i < l->n; i++) {
        hn_jlist *p = hn_jl_new(r, 3);
        hn_jl_push(r, p, raw_key[i]);
        hn_jl_push(r, p, k[i]);
        hn_jl_push(r, p, l->v[i]);
        hn_jl_push(r, pairs, HN_JTUPLE(p));
    }
    hn_jj_sort(r, k, pairs->v, pairs->n, false);
    for (size_t i = 0; i < pairs->n; i++) {
        hn_jval *p = pairs->v[i].u.l->v;
        if (!group || !hn_jv_equal(r, last, p[1])) {
            hn_jlist *g = hn_jl_new(r, 2);
            group = hn_jl_new(r, 0);
            hn_jl_push(r, g, p[0]);
            hn_jl_push(r, g, HN_JLIST(group));
            g->group = true;
            hn_jl_push(r, out, HN_JTUPLE(g));
            last = p[1];
        }
        hn_jl_push(r, group, p[2]);
    }
    return HN_JLIST(out);
}

/* ---- filters over filters and tests ---------------------------------------------------------------------- */

static const hn_jstr *name_arg(hn_jrun *r, const hn_jargs *raw, size_t i, const char *what)
{
    if (i >= raw->n) HN_JFAIL(r, "%s expects the name of %s", what, i ? "a test" : "an attribute, filter or test");
    if (raw->v[i].kind != HN_J_STR) HN_JFAIL(r, "%s: a name must be a string, not %s", what, hn_jv_type(raw->v[i]));
    return raw->v[i].u.s;
}

F(f_map)
{
    size_t n;
    if (!hn_jv_truth(self)) return hn_jl_lazy(hn_jl_new(r, 0)); /* none too, as in Jinja2 */
    hn_jval *e = hn_jv_items(r, self, &n), attr = HN_JNIL, absent = HN_JNIL;
    hn_jlist *out = hn_jl_new(r, n);
    if (!raw->n) {
        hn_jval got[2];
        hn_jj_bind(r, "filter", "map", "attribute?default", raw, got);
        attr = got[0];
        absent = got[1];
    }
    hn_jargs rest = { raw->n ? raw->v + 1 : NULL, raw->n ? raw->n - 1 : 0, raw->kw, raw->n_kw };
    const hn_jstr *name = raw->n ? name_arg(r, raw, 0, "map") : NULL;
    for (size_t i = 0; i < n; i++) {
        hn_jj_charge(r, 1);
        hn_jval v = name ? hn_jj_filter(r, name, e[i], &rest) : hn_jj_path_or(r, e[i], attr, absent);
        hn_jl_push(r, out, v);
    }
    return hn_jl_lazy(out);
}

static hn_jval choose(hn_jrun *r, hn_jval self, const hn_jargs *raw, bool attr, bool want, const char *what)
{
    size_t n, first = attr;                                     /* where the test's name stands */
    if (!hn_jv_truth(self)) return hn_jl_lazy(hn_jl_new(r, 0)); /* none too, as in Jinja2 */
    hn_jval *e = hn_jv_items(r, self, &n), path = HN_JNIL;
    hn_jlist *out = hn_jl_new(r, 0);
    if (attr) {
        if (!raw->n) HN_JFAIL(r, "%s expects the name of an attribute", what);
        path = raw->v[0];
    }
    const hn_jstr *test = raw->n > first ? name_arg(r, raw, first, what) : NULL;
    hn_jargs rest = { 0 };
    if (test) rest = (hn_jargs){ raw->v + first + 1, raw->n - first - 1, raw->kw, raw->n_kw };
    for (size_t i = 0; i < n; i++) {
        hn_jj_charge(r, 1);
        hn_jval v = attr ? hn_jj_path(r, e[i], path) : e[i];
        if ((test ? hn_jj_test(r, test, v, &rest) : hn_jv_truth(v)) == want) hn_jl_push(r, out, e[i]);
    }
    return hn_jl_lazy(out);
}
F(f_select) { return choose(r, self, raw, false, true, "select"); }
F(f_reject) { return choose(r, self, raw, false, false, "reject"); }
F(f_selectattr) { return choose(r, self, raw, true, true, "selectattr"); }
F(f_rejectattr) { return choose(r, self, raw, true, false, "rejectattr"); }
F(f_attr)
{
    if (a[0].kind != HN_J_STR) HN_JFAIL(r, "attr: a name must be a string, not %s", hn_jv_type(a[0]));
    if (self.kind == HN_J_UNDEF) hn_jv_fail_undef(r, self);
    if (self.kind == HN_J_NS) return hn_jj_attr(r, self, a[0].u.s);
    hn_jval v = hn_jj_getattr(r, self, a[0].u.s); /* never an entry of a dict */
    return v.kind == HN_J_NIL ? hn_jv_undef_key(r, self, a[0]) : v;
}

/* ---- the rest ------------------------------------------------------------------------------------------------ */

F(f_default)
{
    bool falsy = flag(a[1], false);
    if (self.kind != HN_J_UNDEF && !(falsy && !hn_jv_truth(self))) return self;
    return given(a[0]) ? a[0] : HN_JSTR(hn_js_lit(HN_JC(r), ""));
}

F(f_tojson)
{
    hn_json_style st = { .ascii = flag(a[0], false), .sort = flag(a[3], false) };
    if (given(a[1]) && a[1].kind != HN_J_NONE)
        st.indent =
            a[1].kind == HN_J_STR ? a[1].u.s : hn_js_repeat(r, hn_js_lit(HN_JC(r), " "), integer(r, a[1], 0, "indent"));
    st.item_sep = hn_js_lit(HN_JC(r), st.indent ? "," : ", ");
    st.key_sep = hn_js_lit(HN_JC(r), ": ");
    if (given(a[2]) && a[2].kind != HN_J_NONE) {
        size_t n;
        hn_jval *e = hn_jv_items(r, a[2], &n);
        if (n != 2 || e[0].kind != HN_J_STR || e[1].kind != HN_J_STR) HN_JFAIL(r, "separators must be two strings");
        st.item_sep = e[0].u.s;
        st.key_sep = e[1].u.s;
    }
    return HN_JSTR(hn_jj_dump_json(r, self, &st));
}
F(f_from_json)
{
    if (self.kind != HN_J_STR) HN_JFAIL(r, "from_json: the JSON object must be str, not %s", hn_jv_type(self));
    return hn_jj_parse_json(r, self.u.s);
}

static const hn_jfunc filters[] = {
    { "abs", "", f_abs },
    { "attr", "name", f_attr },
    { "batch", "linecount?fill_with", f_batch },
    { "capitalize", "", f_capitalize },
    { "center", "?width", f_center },
    { "count", "", f_length },
    { "d", "?default_value,boolean", f_default },
    { "default", "?default_value,boolean", f_default },
    { "dictsort", "?case_sensitive,by,reverse", f_dictsort },
    { "e", "", f_escape },
    { "escape", "", f_escape },
    { "first", "", f_first },
    { "float", "?default", f_float },
    { "format", "*", f_format },
    { "from_json", "", f_from_json },
    { "groupby", "attribute?default,case_sensitive", f_groupby },
    { "indent", "?width,first,blank", f_indent },
    { "int", "?default,base", f_int },
    { "items", "", f_items },
    { "join", "?d,attribute", f_join },
    { "last", "", f_last },
    { "length", "", f_length },
    { "list", "", f_list },
    { "lower", "", f_lower },
    { "map", "*", f_map },
    { "max", "?case_sensitive,attribute", f_max },
    { "min", "?case_sensitive,attribute", f_min },
    { "reject", "*", f_reject },
    { "rejectattr", "*", f_rejectattr },
    { "replace", "old,new?count", f_replace },
    { "reverse", "", f_reverse },
    { "round", "?precision,method", f_round },
    { "safe", "", f_safe },
    { "select", "*", f_select },
    { "selectattr", "*", f_selectattr },
    { "slice", "slices?fill_with", f_slice },
    { "sort", "?reverse,case_sensitive,attribute", f_sort },
    { "string", "", f_string },
    { "sum", "?attribute,start", f_sum },
    { "title", "", f_title },
    { "tojson", "?ensure_ascii,indent,separators,sort_keys", f_tojson },
    { "trim", "?chars", f_trim },
    { "truncate", "?length,killwords,end,leeway", f_truncate },
    { "unique", "?case_sensitive,attribute", f_unique },
    { "upper", "", f_upper },
    { "wordcount", "", f_wordcount },
    { "xmlattr", "?autospace", f_xmlattr },
    { 0 },
};
static const char *const lacks[] = { "filesizeformat", "forceescape", "pprint",   "random", "striptags",
                                     "urlencode",      "urlize",      "wordwrap", NULL };

static const hn_jfunc *find(const hn_jstr *name)
{
    for (const hn_jfunc *f = filters; f->name; f++)
        if (hn_js_is(name, f->name)) return f;
    return NULL;
}

bool hn_jj_has_filter(const hn_jstr *name) { return find(name) != NULL; }

hn_jval hn_jj_filter(hn_jrun *r, const hn_jstr *name, hn_jval self, const hn_jargs *args)
{
    const hn_jfunc *f = find(name);
    if (f) return hn_jj_func(r, f, self, args, "filter");
    for (const char *const *k = lacks; *k; k++)
        if (hn_js_is(name, *k)) HN_JUNSUPPORTED(r, "the filter '%s' is not supported in chat templates", *k);
    HN_JFAIL(r, "No filter named '%s'.", HN_ESC(name->p, name->len));
}
