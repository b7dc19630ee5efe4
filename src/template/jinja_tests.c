/* jinja_tests: what may follow `is`, and be named in select and reject. */
#include "template/jinja_priv.h"

#include "base/utf8.h"

#include <math.h>

#define T(name) static bool name(hn_jrun *r, hn_jval v, hn_jval *a)

T(t_defined) { return v.kind != HN_J_UNDEF; }
T(t_undefined) { return v.kind == HN_J_UNDEF; }
T(t_none) { return v.kind == HN_J_NONE; }
T(t_string) { return v.kind == HN_J_STR; }
T(t_mapping) { return v.kind == HN_J_DICT; }
T(t_iterable)
{
    return v.kind == HN_J_STR || v.kind == HN_J_LIST || v.kind == HN_J_TUPLE || v.kind == HN_J_DICT ||
           v.kind == HN_J_UNDEF || v.kind == HN_J_LOOP;
}
T(t_sequence) { return t_iterable(r, v, a) && v.kind != HN_J_LOOP && !((v.kind == HN_J_LIST) && v.u.l->view); }
T(t_number) { return hn_jv_is_num(v); }
T(t_integer) { return v.kind == HN_J_INT; }
T(t_float) { return v.kind == HN_J_FLOAT; }
T(t_boolean) { return v.kind == HN_J_BOOL; }
T(t_true) { return v.kind == HN_J_BOOL && v.u.b; }
T(t_false) { return v.kind == HN_J_BOOL && !v.u.b; }
T(t_callable)
{
    return v.kind == HN_J_FUNC || v.kind == HN_J_METHOD || v.kind == HN_J_MACRO || v.kind == HN_J_LOOP ||
           v.kind == HN_J_JOINER || v.kind == HN_J_UNDEF;
}

static bool divisible(hn_jrun *r, hn_jval v, hn_jval by)
{
    hn_jval m = hn_jj_binary(r, '%', v, by);
    return hn_jv_is_num(m) && hn_jv_num(m) == 0;
}
T(t_even) { return divisible(r, v, HN_JINT(2)); }
T(t_odd)
{
    hn_jval m = hn_jj_binary(r, '%', v, HN_JINT(2));
    return hn_jv_is_num(m) && hn_jv_num(m) == 1;
}
T(t_divisibleby) { return divisible(r, v, a[0]); }
T(t_in) { return hn_jj_contains(r, a[0], v); }
T(t_eq) { return hn_jv_equal(r, v, a[0]); }
T(t_ne) { return !hn_jv_equal(r, v, a[0]); }
T(t_lt) { return hn_jv_compare(r, v, a[0], "<") == -1; }
T(t_gt) { return hn_jv_compare(r, v, a[0], ">") == 1; }
T(t_le)
{
    int c = hn_jv_compare(r, v, a[0], "<=");
    return c == -1 || c == 0;
}
T(t_ge)
{
    int c = hn_jv_compare(r, v, a[0], ">=");
    return c == 1 || c == 0;
}
T(t_sameas)
{
    if (v.kind != a[0].kind) return false;
    if (v.kind == HN_J_LIST || v.kind == HN_J_TUPLE) return v.u.l == a[0].u.l;
    if (v.kind == HN_J_DICT) return v.u.d == a[0].u.d;
    if (v.kind == HN_J_UNDEF) return v.u.u == a[0].u.u;
    return hn_jv_equal(r, v, a[0]);
}

/* Text in which some letter has a case, and all that do have this one. */
static bool all_case(hn_jrun *r, hn_jval v, hn_class other)
{
    const hn_jstr *s = hn_jv_text(r, v);
    bool any = false;
    size_t used;
    hn_jj_bytes(r, s->len);
    for (size_t i = 0; i < s->len; i += used) {
        hn_class c = hn_class_of(hn_class_table_get(), hn_jj_cp(s->p + i, s->len - i, &used));
        if (c == other) return false;
        any |= c == HN_CLASS_UPPER || c == HN_CLASS_LOWER;
    }
    return any;
}
T(t_lower) { return all_case(r, v, HN_CLASS_UPPER); }
T(t_upper) { return all_case(r, v, HN_CLASS_LOWER); }
T(t_escaped) { return v.kind == HN_J_STR && v.u.s->markup; }
T(t_filter) { return v.kind == HN_J_STR && hn_jj_has_filter(v.u.s); }
T(t_test);

static const hn_jtest tests[] = {
    { "!=", "other", t_ne },
    { "<", "other", t_lt },
    { "<=", "other", t_le },
    { "==", "other", t_eq },
    { ">", "other", t_gt },
    { ">=", "other", t_ge },
    { "boolean", "", t_boolean },
    { "callable", "", t_callable },
    { "defined", "", t_defined },
    { "divisibleby", "num", t_divisibleby },
    { "eq", "other", t_eq },
    { "equalto", "other", t_eq },
    { "escaped", "", t_escaped },
    { "even", "", t_even },
    { "false", "", t_false },
    { "filter", "", t_filter },
    { "float", "", t_float },
    { "ge", "other", t_ge },
    { "greaterthan", "other", t_gt },
    { "gt", "other", t_gt },
    { "in", "seq", t_in },
    { "integer", "", t_integer },
    { "iterable", "", t_iterable },
    { "le", "other", t_le },
    { "lessthan", "other", t_lt },
    { "lower", "", t_lower },
    { "lt", "other", t_lt },
    { "mapping", "", t_mapping },
    { "ne", "other", t_ne },
    { "none", "", t_none },
    { "number", "", t_number },
    { "odd", "", t_odd },
    { "sameas", "other", t_sameas },
    { "sequence", "", t_sequence },
    { "string", "", t_string },
    { "test", "", t_test },
    { "true", "", t_true },
    { "undefined", "", t_undefined },
    { "upper", "", t_upper },
    { 0 },
};

static const hn_jtest *find(const hn_jstr *name)
{
    for (const hn_jtest *t = tests; t->name; t++)
        if (hn_js_is(name, t->name)) return t;
    return NULL;
}
T(t_test) { return v.kind == HN_J_STR && find(v.u.s) != NULL; }

bool hn_jj_test(hn_jrun *r, const hn_jstr *name, hn_jval self, const hn_jargs *args)
{
    const hn_jtest *t = find(name);
    hn_jval a[HN_J_MAX_PARAM + 1] = { { 0 } };
    if (!t) HN_JFAIL(r, "No test named '%s'.", HN_ESC(name->p, name->len));
    hn_jj_bind(r, "test", t->name, t->params, args, a);
    return t->fn(r, self, a);
}
