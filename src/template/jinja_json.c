/* jinja_json: JSON into values of the template interpreter and out again. Writing is
 * Python's json.dumps, as the filter tojson of chat templates is defined. */
#include "base/json_tree.h"
#include "template/jinja_priv.h"

#include <math.h>

/* ---- reading ---------------------------------------------------------------------------------- */

/* A number to all that reckon, written as it came. Beyond as many as can be told apart it is its double. */
static hn_jval long_number(hn_jrun *r, const char *digits)
{
    hn_jval v = { .kind = HN_J_FLOAT, .input = r->json_input, .u.f = hn_jj_strtod(digits, NULL) };
    if (r->n_digits == UINT16_MAX) return v;
    r->digits = hn_jj_grow(HN_JC(r), r->digits, r->n_digits, &r->cap_digits, sizeof *r->digits);
    r->digits[r->n_digits++] = hn_js_copy(HN_JC(r), digits, strlen(digits), r->json_input);
    v.digits = (uint16_t)r->n_digits;
    return v;
}

hn_jval hn_jv_from_json(hn_jrun *r, const json_t *j)
{
    hn_jval v = HN_JNONE;
    hn_jj_enter(HN_JC(r), r->c.pos);
    hn_jj_charge(r, 1);
    switch (json_typeof(j)) {
    case JSON_NULL: break;
    case JSON_TRUE: v = HN_JBOOL(true); break;
    case JSON_FALSE: v = HN_JBOOL(false); break;
    case JSON_INTEGER: v = (hn_jval){ .kind = HN_J_INT, .input = r->json_input, .u.i = json_integer_value(j) }; break;
    case JSON_REAL: v = (hn_jval){ .kind = HN_J_FLOAT, .input = r->json_input, .u.f = json_real_value(j) }; break;
    case JSON_STRING:
        hn_jj_bytes(r, json_string_length(j));
        if (hn_json_digits(j)) v = long_number(r, hn_json_digits(j));
        else v = HN_JSTR(hn_js_copy(HN_JC(r), json_string_value(j), json_string_length(j), r->json_input));
        break;
    case JSON_ARRAY: {
        size_t n = json_array_size(j);
        hn_jlist *l = hn_jl_new(r, n);
        for (size_t i = 0; i < n; i++) hn_jl_push(r, l, hn_jv_from_json(r, json_array_get(j, i)));
        v = HN_JLIST(l);
        break;
    }
    case JSON_OBJECT: {
        hn_jdict *d = hn_jd_new(r);
        for (void *it = json_object_iter((json_t *)j); it; it = json_object_iter_next((json_t *)j, it)) {
            const char *k = json_object_iter_key(it);
            hn_jd_set(r, d, HN_JSTR(hn_js_copy(HN_JC(r), k, strlen(k), r->json_input)),
                      hn_jv_from_json(r, json_object_iter_value(it)));
        }
        v = HN_JDICT(d);
        break;
    }
    }
    r->c.depth--;
    return v;
}

/* The filter from_json. What is made from input is input. The parser's tree is not in the
 * arena; where a failure jumps to, it is freed. */
hn_jval hn_jj_parse_json(hn_jrun *r, const hn_jstr *s)
{
    const hn_json_rules rules = { .flags = HN_JSON_ALLOW_NUL | HN_JSON_DIGITS };
    hone_error e;
    hn_jj_bytes(r, s->len * 32); /* a tree takes many times the room of its text */
    if (s->len > r->c.lim.memory_bytes / 32) HN_JFAIL(r, "from_json: %zu bytes of JSON are too many here", s->len);
    hone_status st = hn_json_tree(&r->tree, s->p, s->len, &rules, "from_json", &e);
    if (st == HONE_E_NOMEM) hn_jj_fail(HN_JC(r), HONE_E_NOMEM, r->c.pos, "from_json: out of memory");
    if (st != HONE_OK) HN_JFAIL(r, "%s", e.message);
    bool before = r->json_input;
    r->json_input = hn_js_any_input(s);
    hn_jval v = hn_jv_from_json(r, r->tree);
    r->json_input = before;
    json_decref(r->tree);
    r->tree = NULL;
    return v;
}

/* ---- writing ------------------------------------------------------------------------------------- */

typedef struct dump {
    hn_jrun *r;
    hn_jbuf b;
    const hn_json_style *st;
    bool input; /* met a string that came from input */
} dump;

static void put_str(dump *d, const hn_jstr *s)
{
    char esc[16];
    size_t used, from = 0;
    if (hn_js_any_input(s)) d->input = true;
    hn_jb_lit(d->r, &d->b, "\"");
    for (size_t i = 0; i < s->len; i += used) {
        unsigned char c = (unsigned char)s->p[i];
        used = 1;
        if (c < 0x20 || c == '"' || c == '\\' || (c == 0x7F && d->st->ascii)) {
            const char *known = c == '"'    ? "\\\""
                                : c == '\\' ? "\\\\"
                                : c == '\n' ? "\\n"
                                : c == '\r' ? "\\r"
                                : c == '\t' ? "\\t"
                                : c == '\b' ? "\\b"
                                : c == '\f' ? "\\f"
                                            : NULL;
            if (known) snprintf(esc, sizeof esc, "%s", known);
            else snprintf(esc, sizeof esc, "\\u%04x", c);
        } else if (c < 0x80 || !d->st->ascii) {
            continue;
        } else {
            uint32_t cp = hn_jj_cp(s->p + i, s->len - i, &used);
            if (cp < 0x10000) snprintf(esc, sizeof esc, "\\u%04x", (unsigned)cp);
            else
                snprintf(esc, sizeof esc, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((cp - 0x10000) >> 10)),
                         (unsigned)(0xDC00 + ((cp - 0x10000) & 0x3FF)));
        }
        hn_jb_put(d->r, &d->b, s->p + from, i - from, false);
        hn_jb_lit(d->r, &d->b, esc);
        from = i + used;
    }
    hn_jb_put(d->r, &d->b, s->p + from, s->len - from, false);
    hn_jb_lit(d->r, &d->b, "\"");
}

static void put_scalar(dump *d, hn_jval v, bool quoted)
{
    char num[40];
    const char *text = num;
    if (v.kind == HN_J_STR) {
        put_str(d, v.u.s);
        return;
    }
    if (v.input) d->input = true;
    if (v.kind == HN_J_FLOAT && v.digits && !quoted) {
        hn_jb_str(d->r, &d->b, d->r->digits[v.digits - 1]);
        return;
    }
    switch (v.kind) {
    case HN_J_NONE: text = "null"; break;
    case HN_J_BOOL: text = v.u.b ? "true" : "false"; break;
    case HN_J_INT: snprintf(num, sizeof num, "%lld", (long long)v.u.i); break;
    case HN_J_FLOAT:
        hn_jj_float_text(num, v.u.f);
        if (!isfinite(v.u.f)) text = isnan(v.u.f) ? "NaN" : v.u.f < 0 ? "-Infinity" : "Infinity";
        break;
    default:
        if (quoted)
            hn_jj_fail(HN_JC(d->r), HONE_E_FORMAT, d->r->c.pos, "keys must be str, int, float, bool or None, not %s",
                       hn_jv_type(v));
        hn_jj_fail(HN_JC(d->r), HONE_E_FORMAT, d->r->c.pos, "Object of type %s is not JSON serializable",
                   hn_jv_type(v));
    }
    if (quoted) hn_jb_lit(d->r, &d->b, "\"");
    hn_jb_lit(d->r, &d->b, text);
    if (quoted) hn_jb_lit(d->r, &d->b, "\"");
}

static void new_line(dump *d, uint32_t level)
{
    if (!d->st->indent) return;
    hn_jb_lit(d->r, &d->b, "\n");
    while (level--) hn_jb_put(d->r, &d->b, d->st->indent->p, d->st->indent->len, false);
}

static void put(dump *d, hn_jval v, uint32_t level)
{
    hn_jrun *r = d->r;
    bool dict = v.kind == HN_J_DICT;
    if (!dict && v.kind != HN_J_LIST && v.kind != HN_J_TUPLE) {
        put_scalar(d, v, false);
        return;
    }
    if (!dict && (v.u.l->range || (v.u.l->view && !v.u.l->lazy)))
        hn_jj_fail(HN_JC(r), HONE_E_FORMAT, r->c.pos, "Object of type %s is not JSON serializable", hn_jv_type(v));
    size_t n = dict ? v.u.d->n : v.u.l->n;
    hn_jb_lit(r, &d->b, dict ? "{" : "[");
    hn_jj_enter(HN_JC(r), r->c.pos);
    hn_jval *keys = NULL, *vals = NULL;
    if (dict && d->st->sort) {
        keys = hn_jj_array(HN_JC(r), n + 1, sizeof *keys);
        vals = hn_jj_array(HN_JC(r), n + 1, sizeof *vals);
        for (size_t i = 0; i < n; i++) keys[i] = v.u.d->e[i].k, vals[i] = v.u.d->e[i].v;
        hn_jval *k2 = hn_jj_array(HN_JC(r), n + 1, sizeof *k2);
        if (n) memcpy(k2, keys, n * sizeof *k2);
        hn_jj_sort(r, k2, vals, n, false);
        k2 = hn_jj_array(HN_JC(r), n + 1, sizeof *k2);
        if (n) memcpy(k2, keys, n * sizeof *k2);
        hn_jj_sort(r, k2, keys, n, false);
    }
    for (size_t i = 0; i < n; i++) {
        hn_jj_charge(r, 1);
        if (i) hn_jb_str(r, &d->b, d->st->item_sep);
        new_line(d, level + 1);
        if (dict) {
            put_scalar(d, keys ? keys[i] : v.u.d->e[i].k, true);
            hn_jb_str(r, &d->b, d->st->key_sep);
        }
        put(d, dict ? (vals ? vals[i] : v.u.d->e[i].v) : v.u.l->v[i], level + 1);
    }
    r->c.depth--;
    if (n) new_line(d, level);
    hn_jb_lit(r, &d->b, dict ? "}" : "]");
}

/* Punctuation around what came from input could complete a special token with it, so the
 * whole counts as input as soon as any of it is. */
hn_jstr *hn_jj_dump_json(hn_jrun *r, hn_jval v, const hn_json_style *style)
{
    bool seps = hn_js_any_input(style->item_sep) || hn_js_any_input(style->key_sep) ||
                (style->indent && hn_js_any_input(style->indent));
    dump d = { .r = r, .st = style, .input = seps };
    put(&d, v, 0);
    hn_jstr *s = hn_js_view(HN_JC(r), d.b.p, d.b.len, d.input);
    return s;
}
