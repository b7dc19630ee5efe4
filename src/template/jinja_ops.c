/* jinja_ops: operators, attributes, items and slices of values, as Python and Jinja2
 * define them. */
#include "template/jinja_priv.h"

#include <math.h>

/* ---- arithmetic ----------------------------------------------------------------------------------- */

static const char *op_text(int op)
{
    return op == '+'               ? "+"
           : op == '-'             ? "-"
           : op == '*'             ? "*"
           : op == '/'             ? "/"
           : op == '%'             ? "%"
           : op == HN_JOP_FLOORDIV ? "//"
                                   : "** or pow()";
}

static _Noreturn void overflow(hn_jrun *r) { HN_JFAIL(r, "integer beyond 64 bits"); }
static _Noreturn void by_zero(hn_jrun *r) { HN_JFAIL(r, "division by zero"); }

static hn_jval int_power(hn_jrun *r, int64_t base, int64_t e)
{
    if (e < 0) {
        if (base == 0) HN_JFAIL(r, "0.0 cannot be raised to a negative power");
        return HN_JFLOAT(pow((double)base, (double)e));
    }
    int64_t x = 1;
    while (e) {
        if (e & 1 && __builtin_mul_overflow(x, base, &x)) overflow(r);
        e >>= 1;
        if (e && __builtin_mul_overflow(base, base, &base)) overflow(r);
    }
    return HN_JINT(x);
}

/* a / b rounded once, as Python divides integers; not after a and b were rounded themselves. */
static double int_ratio(int64_t a, int64_t b)
{
    const uint64_t exact = 1ull << 53;
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
    if (x <= exact && y <= exact) return (double)a / (double)b;
    if (!x) return (double)a / (double)b;
    uint64_t q = 0, rest = x % y; /* 55 bits or more of the quotient, and whether there is more */
    int e = 0;
    for (q = x / y; q < 1ull << 62; e--) {
        bool one = rest >= y - rest;
        q = q << 1 | one;
        rest = one ? rest - (y - rest) : rest << 1;
    }
    double m = ldexp((double)(q | (rest != 0)), e);
    return (a < 0) != (b < 0) ? -m : m;
}

static hn_jval int_op(hn_jrun *r, int op, int64_t a, int64_t b)
{
    int64_t x;
    switch (op) {
    case '+':
        if (__builtin_add_overflow(a, b, &x)) overflow(r);
        return HN_JINT(x);
    case '-':
        if (__builtin_sub_overflow(a, b, &x)) overflow(r);
        return HN_JINT(x);
    case '*':
        if (__builtin_mul_overflow(a, b, &x)) overflow(r);
        return HN_JINT(x);
    case '/':
        if (!b) by_zero(r);
        return HN_JFLOAT(int_ratio(a, b));
    case HN_JOP_POW: return int_power(r, a, b);
    default: break;
    }
    if (!b) by_zero(r);
    if (b == -1) { /* INT64_MIN / -1 traps */
        if (op == '%') return HN_JINT(0);
        if (__builtin_sub_overflow((int64_t)0, a, &x)) overflow(r);
        return HN_JINT(x);
    }
    int64_t q = a / b, m = a % b;
    if (m && (m < 0) != (b < 0)) q--, m += b;
    return HN_JINT(op == '%' ? m : q);
}

static hn_jval float_op(hn_jrun *r, int op, double a, double b)
{
    double m;
    switch (op) {
    case '+': return HN_JFLOAT(a + b);
    case '-': return HN_JFLOAT(a - b);
    case '*': return HN_JFLOAT(a * b);
    case '/':
        if (b == 0) by_zero(r);
        return HN_JFLOAT(a / b);
    case HN_JOP_POW:
        if (a == 0 && b < 0) HN_JFAIL(r, "0.0 cannot be raised to a negative power");
        if (a < 0 && b != floor(b)) HN_JUNSUPPORTED(r, "complex numbers");
        m = pow(a, b);
        if (isinf(m) && isfinite(a) && isfinite(b)) HN_JFAIL(r, "the power is beyond the range of floats");
        return HN_JFLOAT(m);
    default: break;
    }
    if (b == 0) by_zero(r);
    m = fmod(a, b);
    double q = (a - m) / b; /* before m gets b's sign: what Python rounds */
    if (m != 0 && (m < 0) != (b < 0)) m += b, q -= 1;
    if (op == '%') return HN_JFLOAT(m == 0 ? copysign(0, b) : m);
    double w = floor(q);
    return HN_JFLOAT(q == 0 ? copysign(0, a / b) : q - w > 0.5 ? w + 1 : w);
}

static hn_jval repeat(hn_jrun *r, hn_jval v, int64_t n)
{
    if (v.kind == HN_J_STR) return HN_JSTR(hn_js_repeat(r, v.u.s, n));
    hn_jlist *l = hn_jl_new(r, 0);
    for (; n > 0 && v.u.l->n; n--) {
        hn_jj_charge(r, v.u.l->n);
        for (size_t i = 0; i < v.u.l->n; i++) hn_jl_push(r, l, v.u.l->v[i]);
    }
    return v.kind == HN_J_LIST ? HN_JLIST(l) : HN_JTUPLE(l);
}

static bool is_seq(hn_jval v)
{
    return v.kind == HN_J_STR || ((v.kind == HN_J_LIST || v.kind == HN_J_TUPLE) && !v.u.l->view);
}
static bool is_range(hn_jval v) { return v.kind == HN_J_LIST && v.u.l->range; }
static bool is_int(hn_jval v) { return v.kind == HN_J_INT || v.kind == HN_J_BOOL; }

hn_jval hn_jj_binary(hn_jrun *r, int op, hn_jval a, hn_jval b)
{
    if (a.kind == HN_J_UNDEF) hn_jv_fail_undef(r, a);
    if (op == '%' && a.kind == HN_J_STR) return hn_jj_percent(r, a.u.s, b);
    if (b.kind == HN_J_UNDEF) hn_jv_fail_undef(r, b);
    if (hn_jv_is_num(a) && hn_jv_is_num(b)) {
        hn_jval v = is_int(a) && is_int(b) ? int_op(r, op, hn_jv_int(a), hn_jv_int(b))
                                           : float_op(r, op, hn_jv_num(a), hn_jv_num(b));
        v.input = a.input || b.input;
        return v;
    }
    if (op == '+' && a.kind == b.kind && is_seq(a) && is_seq(b) && !is_range(a) && !is_range(b)) {
        if (a.kind == HN_J_STR) {
            if (!a.u.s->markup && !b.u.s->markup) return HN_JSTR(hn_js_concat(r, a.u.s, b.u.s));
            return HN_JSTR(hn_js_mark(r, hn_js_concat(r, hn_js_escape(r, a.u.s), hn_js_escape(r, b.u.s)), true));
        }
        hn_jlist *l = hn_jl_new(r, a.u.l->n + b.u.l->n);
        hn_jj_charge(r, a.u.l->n + b.u.l->n);
        for (size_t i = 0; i < a.u.l->n; i++) hn_jl_push(r, l, a.u.l->v[i]);
        for (size_t i = 0; i < b.u.l->n; i++) hn_jl_push(r, l, b.u.l->v[i]);
        return a.kind == HN_J_LIST ? HN_JLIST(l) : HN_JTUPLE(l);
    }
    if (op == '*' && is_seq(a) && !is_range(a) && is_int(b)) return repeat(r, a, hn_jv_int(b));
    if (op == '*' && is_int(a) && is_seq(b) && !is_range(b)) return repeat(r, b, hn_jv_int(a));
    if (op == '+' && is_seq(a) && !is_range(a))
        HN_JFAIL(r, "can only concatenate %s (not \"%s\") to %s", hn_jv_type(a), hn_jv_type(b), hn_jv_type(a));
    HN_JFAIL(r, "unsupported operand type(s) for %s: '%s' and '%s'", op_text(op), hn_jv_type(a), hn_jv_type(b));
}

bool hn_jj_contains(hn_jrun *r, hn_jval in, hn_jval x)
{
    switch (in.kind) {
    case HN_J_STR:
        if (x.kind == HN_J_UNDEF) hn_jv_fail_undef(r, x);
        if (x.kind != HN_J_STR) HN_JFAIL(r, "'in <string>' requires string as left operand, not %s", hn_jv_type(x));
        hn_js_charge_find(r, in.u.s, x.u.s);
        return hn_js_find(in.u.s, 0, in.u.s->len, x.u.s) != SIZE_MAX;
    case HN_J_DICT: return hn_jd_get(r, in.u.d, x) != NULL;
    case HN_J_LIST:
    case HN_J_TUPLE:
        if (in.u.l->spent) return false;
        in.u.l->spent = in.u.l->lazy;
        for (size_t i = 0; i < in.u.l->n; i++) {
            hn_jj_charge(r, 1);
            if (hn_jv_equal(r, in.u.l->v[i], x)) return true;
        }
        return false;
    case HN_J_UNDEF: return false;
    default: HN_JFAIL(r, "argument of type '%s' is not iterable", hn_jv_type(in));
    }
}

/* ---- attributes ------------------------------------------------------------------------------------- */

static hn_jval neighbour(hn_jrun *r, const hn_jloop *l, bool next)
{
    if (next ? l->i + 1 < l->n : l->i > 0) return l->v[next ? l->i + 1 : l->i - 1];
    return hn_jv_undef_name(r, hn_js_lit(HN_JC(r), next ? "loop.nextitem" : "loop.previtem"));
}

static hn_jval bound(hn_jrun *r, hn_jval self, const hn_jfunc *f)
{
    hn_jbound *b = hn_jj_alloc(HN_JC(r), sizeof *b);
    *b = (hn_jbound){ f, self };
    return HN_JV(HN_J_METHOD, bound, b);
}

static hn_jval macro_attribute(hn_jrun *r, const hn_jmacro *m, const hn_jstr *name)
{
    if (hn_js_is(name, "name")) return m->name ? HN_JSTR((hn_jstr *)m->name) : HN_JNONE;
    if (hn_js_is(name, "catch_varargs")) return HN_JBOOL(m->def->flag & 1);
    if (hn_js_is(name, "catch_kwargs")) return HN_JBOOL(m->def->flag & 2);
    if (hn_js_is(name, "caller")) return HN_JBOOL(m->def->flag & 4);
    if (!hn_js_is(name, "arguments")) return HN_JNIL;
    hn_jlist *l = hn_jl_new(r, m->def->n);
    for (uint32_t i = 0; i < m->def->n; i++) hn_jl_push(r, l, HN_JSTR((hn_jstr *)r->t->syms[m->def->list[i]->sym]));
    return HN_JTUPLE(l);
}

/* What Python's getattr gives; HN_JNIL: no such attribute. */
hn_jval hn_jj_getattr(hn_jrun *r, hn_jval v, const hn_jstr *name)
{
    if (v.kind == HN_J_LOOP) {
        const hn_jloop *l = v.u.loop;
        if (hn_js_is(name, "index")) return HN_JINT((int64_t)l->i + 1);
        if (hn_js_is(name, "index0")) return HN_JINT((int64_t)l->i);
        if (hn_js_is(name, "revindex")) return HN_JINT((int64_t)(l->n - l->i));
        if (hn_js_is(name, "revindex0")) return HN_JINT((int64_t)(l->n - l->i) - 1);
        if (hn_js_is(name, "first")) return HN_JBOOL(l->i == 0);
        if (hn_js_is(name, "last")) return HN_JBOOL(l->i + 1 == l->n);
        if (hn_js_is(name, "length")) return HN_JINT((int64_t)l->n);
        if (hn_js_is(name, "depth")) return HN_JINT(l->depth);
        if (hn_js_is(name, "depth0")) return HN_JINT((int64_t)l->depth - 1);
        if (hn_js_is(name, "previtem")) return neighbour(r, l, false);
        if (hn_js_is(name, "nextitem")) return neighbour(r, l, true);
    }
    if (v.kind == HN_J_MACRO) {
        hn_jval x = macro_attribute(r, v.u.m, name);
        if (x.kind != HN_J_NIL) return x;
    }
    if (v.kind == HN_J_TUPLE && v.u.l->group && hn_js_is(name, "grouper")) return v.u.l->v[0];
    if (v.kind == HN_J_TUPLE && v.u.l->group && hn_js_is(name, "list")) return v.u.l->v[1];
    if (v.kind == HN_J_CYCLER && hn_js_is(name, "current")) return v.u.cycle->l->v[v.u.cycle->at];
    const hn_jfunc *f = hn_jj_method(r, v, name);
    return f ? bound(r, v, f) : HN_JNIL;
}

/* v[key] without attributes; HN_JNIL: nothing there. */
static hn_jval item(hn_jrun *r, hn_jval v, hn_jval key)
{
    if (v.kind == HN_J_DICT || v.kind == HN_J_NS) {
        if (key.kind == HN_J_LIST || key.kind == HN_J_DICT || key.kind > HN_J_DICT) return HN_JNIL;
        hn_jval *x = hn_jd_get(r, v.u.d, key);
        return x ? *x : HN_JNIL;
    }
    if (!is_seq(v) || !is_int(key)) return HN_JNIL;
    int64_t i = hn_jv_int(key), n = v.kind == HN_J_STR ? (int64_t)hn_js_chars(r, v.u.s) : (int64_t)v.u.l->n;
    if (i < 0) i += n;
    if (i < 0 || i >= n) return HN_JNIL;
    if (v.kind != HN_J_STR) return v.u.l->v[i];
    size_t used, off = hn_js_offset(v.u.s, (size_t)i);
    if (v.u.s->n_char != v.u.s->len) hn_jj_charge(r, off / 4);
    hn_jj_cp(v.u.s->p + off, v.u.s->len - off, &used);
    return HN_JSTR(hn_js_part(r, v.u.s, off, used));
}

hn_jval hn_jj_attr(hn_jrun *r, hn_jval v, const hn_jstr *name)
{
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    hn_jval x = hn_jj_getattr(r, v, name), key = HN_JSTR((hn_jstr *)name);
    if (x.kind == HN_J_NIL) x = item(r, v, key);
    return x.kind == HN_J_NIL ? hn_jv_undef_key(r, v, key) : x;
}

hn_jval hn_jj_index(hn_jrun *r, hn_jval v, hn_jval key)
{
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    hn_jval x = item(r, v, key);
    if (x.kind == HN_J_NIL && key.kind == HN_J_STR) x = hn_jj_getattr(r, v, key.u.s);
    return x.kind == HN_J_NIL ? hn_jv_undef_key(r, v, key) : x;
}

/* The attribute argument of filters: "a.b", "a.0", or a number. */
hn_jval hn_jj_path(hn_jrun *r, hn_jval v, hn_jval path) { return hn_jj_path_or(r, v, path, HN_JNIL); }

hn_jval hn_jj_path_or(hn_jrun *r, hn_jval v, hn_jval path, hn_jval absent)
{
    bool use = absent.kind != HN_J_NIL && absent.kind != HN_J_NONE;
    if (path.kind != HN_J_STR) {
        v = hn_jj_index(r, v, path);
        return use && v.kind == HN_J_UNDEF ? absent : v;
    }
    hn_jlist *parts = hn_js_split(r, path.u.s, hn_js_lit(HN_JC(r), "."), -1, false);
    for (size_t i = 0; i < parts->n; i++) {
        hn_jval k = parts->v[i];
        bool digits = k.u.s->len > 0 && k.u.s->len < 10;
        int64_t number = 0;
        for (size_t j = 0; digits && j < k.u.s->len; j++) {
            digits = k.u.s->p[j] >= '0' && k.u.s->p[j] <= '9';
            number = number * 10 + (k.u.s->p[j] - '0');
        }
        if (digits) k = HN_JINT(number);
        v = hn_jj_index(r, v, k);
        if (use && v.kind == HN_J_UNDEF) v = absent;
    }
    return v;
}

/* ---- slices ------------------------------------------------------------------------------------------ */

static int64_t bound_of(hn_jrun *r, hn_jval v, int64_t absent)
{
    if (v.kind == HN_J_NONE) return absent;
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (!is_int(v)) HN_JFAIL(r, "slice indices must be integers or None, not %s", hn_jv_type(v));
    return hn_jv_int(v);
}

hn_jval hn_jj_slice(hn_jrun *r, hn_jval v, hn_jval from, hn_jval to, hn_jval step)
{
    if (v.kind == HN_J_UNDEF) hn_jv_fail_undef(r, v);
    if (!is_seq(v)) HN_JFAIL(r, "'%s' object is not subscriptable by a slice", hn_jv_type(v));
    int64_t n = v.kind == HN_J_STR ? (int64_t)hn_js_chars(r, v.u.s) : (int64_t)v.u.l->n, d = bound_of(r, step, 1);
    if (d == 0) HN_JFAIL(r, "slice step cannot be zero");
    int64_t a = bound_of(r, from, d > 0 ? 0 : n - 1), e = bound_of(r, to, d > 0 ? n : -1), lo = d > 0 ? 0 : -1,
            hi = d > 0 ? n : n - 1;
    if (from.kind != HN_J_NONE && a < 0) a += n;
    if (to.kind != HN_J_NONE && e < 0) e += n;
    a = a < lo ? lo : a > hi ? hi : a;
    e = e < lo ? lo : e > hi ? hi : e;
    if (v.kind == HN_J_STR && d == 1) {
        size_t x = hn_js_offset(v.u.s, (size_t)a), y = e > a ? hn_js_offset(v.u.s, (size_t)e) : x;
        if (v.u.s->n_char != v.u.s->len) hn_jj_charge(r, (x + y) / 4); /* counted from the front */
        return HN_JSTR(hn_js_part(r, v.u.s, x, y - x));
    }
    size_t all;
    hn_jval *items = hn_jv_items(r, v, &all);
    hn_jlist *l = hn_jl_new(r, 0);
    l->range = v.kind == HN_J_LIST && v.u.l->range;
    hn_jbuf b = { 0 };
    for (int64_t i = a; (d > 0 ? i < e : i > e) && (size_t)i < all;) {
        hn_jj_charge(r, 1);
        if (v.kind == HN_J_STR) hn_jb_str(r, &b, items[i].u.s);
        else hn_jl_push(r, l, items[i]);
        if (__builtin_add_overflow(i, d, &i)) break;
    }
    if (v.kind == HN_J_STR) return HN_JSTR(hn_js_mark(r, hn_jb_done(r, &b), v.u.s->markup));
    return v.kind == HN_J_LIST ? HN_JLIST(l) : HN_JTUPLE(l);
}
