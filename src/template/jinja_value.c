/* jinja_value: memory, limits and failure of the template interpreter; its values: how
 * they are made, compared and printed. Refuses to know syntax. */
#include "template/jinja_priv.h"

#include "base/guard.h"
#include "base/utf8.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <utf8proc.h>

/* ---- failure and memory --------------------------------------------------------------------- */

_Noreturn void hn_jj_fail(hn_jcore *c, hone_status code, uint32_t pos, const char *fmt, ...)
{
    char text[800];
    size_t line = 1, col = 1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < pos && i < c->src_len; i++) {
        if (c->src[i] == '\n') line++, col = 1;
        else if (((unsigned char)c->src[i] & 0xC0) != 0x80) col++;
    }
    c->st = HN_FAIL(c->err, code, "%s:%zu:%zu: %s", c->name, line, col, text);
    longjmp(c->trap, 1);
}

void hn_jj_limits(hn_jinja_limits *out, const hn_jinja_limits *in)
{
    static const hn_jinja_limits def = {
        .steps = 20 * 1000 * 1000, .depth = 800, .output_bytes = 64 << 20, .memory_bytes = 256 << 20
    };
    *out = in ? *in : def;
    if (!out->steps) out->steps = def.steps;
    if (!out->depth) out->depth = def.depth;
    if (!out->output_bytes) out->output_bytes = def.output_bytes;
    if (!out->memory_bytes) out->memory_bytes = def.memory_bytes;
}

void *hn_jj_alloc(hn_jcore *c, size_t n)
{
    enum { BLOCK = 16 * 1024, LARGE = 4096 };
    const uint64_t beside = HN_ISOLATE ? 256 : 0; /* what a block for each costs */
    if (n > c->lim.memory_bytes || c->memory + beside > c->lim.memory_bytes - n)
        hn_jj_fail(c, HONE_E_FORMAT, c->pos, "the template needs more than the %llu bytes of memory it may use",
                   (unsigned long long)c->lim.memory_bytes);
    c->memory += n + beside;
    void *p;
    size_t exact = n;
    n = n ? (n + 15) & ~(size_t)15 : 16;
    if (HN_ISOLATE) {
        p = hn_arena_alloc(c->arena, exact);
    } else if (n > LARGE) {
        p = hn_arena_alloc(c->arena, n);
    } else {
        if (n > c->left) {
            c->cur = hn_arena_alloc(c->arena, BLOCK);
            c->left = c->cur ? BLOCK : 0;
        }
        p = c->cur;
        if (p) c->cur += n, c->left -= n;
    }
    if (!p) hn_jj_fail(c, HONE_E_NOMEM, c->pos, "out of memory");
    return p;
}

void *hn_jj_array(hn_jcore *c, size_t n, size_t elem)
{
    if (n > SIZE_MAX / elem) n = SIZE_MAX / elem; /* beyond any limit */
    return hn_jj_alloc(c, n * elem);
}

void *hn_jj_grow(hn_jcore *c, void *p, size_t n, size_t *cap, size_t elem)
{
    if (n < *cap) return p;
    size_t k = *cap ? *cap * 2 : 4;
    void *q = hn_jj_array(c, k, elem);
    if (n) memcpy(q, p, n * elem);
    *cap = k;
    return q;
}

void hn_jj_enter(hn_jcore *c, uint32_t pos)
{
    if (++c->depth > c->lim.depth) hn_jj_fail(c, HONE_E_FORMAT, pos, "nested deeper than %u levels", c->lim.depth);
}

void hn_jj_charge(hn_jrun *r, uint64_t steps)
{
    r->steps += steps;
    if (r->steps > r->c.lim.steps)
        HN_JFAIL(r, "the template takes more than the %llu steps it may take", (unsigned long long)r->c.lim.steps);
}

/* ---- strings -------------------------------------------------------------------------------------- */

hn_jstr *hn_js_view(hn_jcore *c, const char *p, size_t len, bool input)
{
    hn_jstr *s = hn_jj_alloc(c, sizeof *s);
    *s = (hn_jstr){ .p = p, .len = len, .n_char = SIZE_MAX, .input = input };
    return s;
}

hn_jstr *hn_js_copy(hn_jcore *c, const char *p, size_t len, bool input)
{
    char *q = hn_jj_alloc(c, len); /* no NUL behind: strings are bytes with a length */
    if (len) memcpy(q, p, len);
    return hn_js_view(c, q, len, input);
}

hn_jstr *hn_js_lit(hn_jcore *c, const char *literal) { return hn_js_view(c, literal, strlen(literal), false); }

hn_jstr *hn_js_part(hn_jrun *r, const hn_jstr *s, size_t off, size_t len)
{
    hn_jstr *t = hn_js_view(HN_JC(r), s->p + off, len, s->input);
    if (s->fl) t->fl = s->fl + off;
    t->markup = s->markup;
    return t;
}

hn_jstr *hn_js_mark(hn_jrun *r, const hn_jstr *s, bool markup)
{
    if (s->markup == markup) return (hn_jstr *)s;
    hn_jstr *t = hn_js_part(r, s, 0, s->len);
    t->markup = markup;
    return t;
}

hn_jstr *hn_js_escape(hn_jrun *r, const hn_jstr *s)
{
    hn_jbuf b = { 0 };
    if (s->markup) return (hn_jstr *)s;
    for (size_t i = 0; i < s->len; i++) {
        const char *e = s->p[i] == '&'    ? "&amp;"
                        : s->p[i] == '<'  ? "&lt;"
                        : s->p[i] == '>'  ? "&gt;"
                        : s->p[i] == '"'  ? "&#34;"
                        : s->p[i] == '\'' ? "&#39;"
                                          : NULL;
        bool input = s->fl ? s->fl[i] : s->input;
        hn_jb_put(r, &b, e ? e : s->p + i, e ? strlen(e) : 1, input);
    }
    return hn_js_mark(r, hn_jb_done(r, &b), true);
}

hn_jstr *hn_js_concat(hn_jrun *r, const hn_jstr *a, const hn_jstr *b)
{
    hn_jbuf buf = { 0 };
    hn_jb_str(r, &buf, a);
    hn_jb_str(r, &buf, b);
    return hn_jb_done(r, &buf);
}

uint32_t hn_jj_cp(const char *p, size_t n, size_t *used)
{
    int32_t cp = hn_utf8_next((const unsigned char *)p, n, used);
    if (cp >= 0) return (uint32_t)cp;
    *used = 1;
    return 0xFFFD;
}

size_t hn_jj_utf8_fault(const char *p, size_t n)
{
    size_t used;
    for (size_t i = 0; i < n; i += used)
        if ((unsigned char)p[i] < 0x80) used = 1;
        else if (hn_utf8_next((const unsigned char *)p + i, n - i, &used) < 0) return i;
    return n;
}

size_t hn_js_chars(hn_jrun *r, const hn_jstr *s)
{
    if (s->n_char == SIZE_MAX) {
        size_t n = 0;
        for (size_t i = 0; i < s->len; i++) n += ((unsigned char)s->p[i] & 0xC0) != 0x80;
        hn_jj_bytes(r, s->len);
        ((hn_jstr *)s)->n_char = n; /* a cache; strings of a parsed template are counted when made */
    }
    return s->n_char;
}

size_t hn_js_offset(const hn_jstr *s, size_t chars)
{
    if (s->n_char == s->len) return chars < s->len ? chars : s->len;
    size_t i = 0;
    while (i < s->len && chars--) do
            i++;
        while (i < s->len && ((unsigned char)s->p[i] & 0xC0) == 0x80);
    return i;
}

bool hn_js_any_input(const hn_jstr *s) { return s->fl ? memchr(s->fl, 1, s->len) != NULL : s->input && s->len; }
bool hn_js_is(const hn_jstr *s, const char *text) { return s->len == strlen(text) && memcmp(s->p, text, s->len) == 0; }

bool hn_jj_is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* ---- text being written ------------------------------------------------------------------------------ */

static void room(hn_jrun *r, hn_jbuf *b, size_t n)
{
    if (n <= b->cap - b->len) return;
    size_t cap = b->cap ? b->cap : 32;
    while (cap - b->len < n) cap *= 2;
    char *p = hn_jj_alloc(HN_JC(r), cap);
    if (b->len) memcpy(p, b->p, b->len);
    b->p = p;
    if (b->fl) {
        uint8_t *fl = hn_jj_alloc(HN_JC(r), cap);
        memcpy(fl, b->fl, b->len);
        b->fl = fl;
    }
    b->cap = cap;
}

/* Makes room for n bytes of unlike origin. */
static void mix(hn_jrun *r, hn_jbuf *b)
{
    if (b->fl) return;
    b->fl = hn_jj_alloc(HN_JC(r), b->cap);
    memset(b->fl, b->input, b->len);
}

static void count_out(hn_jrun *r, hn_jbuf *b, size_t n)
{
    hn_jj_bytes(r, n);
    if (b != r->out) return;
    r->out_bytes += n;
    if (r->out_bytes > r->c.lim.output_bytes)
        HN_JFAIL(r, "the template writes more than the %llu bytes it may write",
                 (unsigned long long)r->c.lim.output_bytes);
}

void hn_jb_put(hn_jrun *r, hn_jbuf *b, const char *p, size_t n, bool input)
{
    if (!n) return;
    count_out(r, b, n);
    room(r, b, n);
    if (!b->len) b->input = input;
    if (b->fl || b->input != input) {
        mix(r, b);
        memset(b->fl + b->len, input, n);
    }
    memcpy(b->p + b->len, p, n);
    b->len += n;
}

void hn_jb_str(hn_jrun *r, hn_jbuf *b, const hn_jstr *s)
{
    if (!s->fl) {
        hn_jb_put(r, b, s->p, s->len, s->input);
        return;
    }
    if (!s->len) return;
    count_out(r, b, s->len);
    room(r, b, s->len);
    mix(r, b);
    memcpy(b->fl + b->len, s->fl, s->len);
    memcpy(b->p + b->len, s->p, s->len);
    b->len += s->len;
}

void hn_jb_lit(hn_jrun *r, hn_jbuf *b, const char *literal) { hn_jb_put(r, b, literal, strlen(literal), false); }

void hn_jb_cp(hn_jrun *r, hn_jbuf *b, uint32_t cp, bool input)
{
    char u[4];
    hn_jb_put(r, b, u, hn_utf8_put(u, cp), input);
}

hn_jstr *hn_jb_done(hn_jrun *r, hn_jbuf *b)
{
    hn_jstr *s = hn_js_view(HN_JC(r), b->p ? b->p : "", b->len, b->input);
    s->fl = b->fl;
    if (b->p) hn_guard(b->p + b->len, b->cap - b->len); /* room that is no part of the text */
    b->cap = b->len;
    return s;
}

/* ---- lists --------------------------------------------------------------------------------------------- */

hn_jlist *hn_jl_new(hn_jrun *r, size_t cap)
{
    hn_jlist *l = hn_jj_alloc(HN_JC(r), sizeof *l);
    if (cap) l->v = hn_jj_array(HN_JC(r), cap, sizeof *l->v);
    l->cap = cap;
    return l;
}

hn_jval hn_jl_lazy(hn_jlist *l)
{
    l->lazy = true;
    l->view = "generator";
    return HN_JLIST(l);
}

void hn_jl_push(hn_jrun *r, hn_jlist *l, hn_jval v)
{
    l->v = hn_jj_grow(HN_JC(r), l->v, l->n, &l->cap, sizeof *l->v);
    l->v[l->n++] = v;
}

/* ---- dicts: entries in order of insertion, and beyond a few of them an index ---------------------------- */

enum { DICT_FEW = 8 };

/* Equal keys hash alike: 1, 1.0 and true do. */
static uint64_t hash_key(hn_jrun *r, hn_jval k)
{
    switch (k.kind) {
    case HN_J_STR: hn_jj_bytes(r, k.u.s->len); return hn_fnv1a(HN_FNV_INIT, k.u.s->p, k.u.s->len);
    case HN_J_NONE: return 3;
    case HN_J_BOOL:
    case HN_J_INT: return hn_mix64((uint64_t)hn_jv_int(k));
    case HN_J_FLOAT:
        if (k.u.f >= -0x1p63 && k.u.f < 0x1p63 && k.u.f == floor(k.u.f)) return hn_mix64((uint64_t)(int64_t)k.u.f);
        return hn_fnv1a(HN_FNV_INIT, &k.u.f, sizeof k.u.f);
    case HN_J_TUPLE: {
        uint64_t h = 7;
        hn_jj_enter(HN_JC(r), r->c.pos);
        for (size_t i = 0; i < k.u.l->n; i++) h = hn_mix64(h ^ hash_key(r, k.u.l->v[i]));
        r->c.depth--;
        return h;
    }
    case HN_J_UNDEF: return 5;
    default: HN_JFAIL(r, "unhashable type: '%s'", hn_jv_type(k));
    }
}

hn_jdict *hn_jd_new(hn_jrun *r) { return hn_jj_alloc(HN_JC(r), sizeof(hn_jdict)); }

/* Position of key, or n. */
static size_t dict_at(hn_jrun *r, const hn_jdict *d, hn_jval key, uint64_t h)
{
    if (!d->n_slot) {
        hn_jj_charge(r, 1);
        for (size_t i = 0; i < d->n; i++)
            if (d->e[i].hash == h && hn_jv_equal(r, d->e[i].k, key)) return i;
        return d->n;
    }
    for (size_t i = h & (d->n_slot - 1);; i = (i + 1) & (d->n_slot - 1)) {
        hn_jj_charge(r, 1);
        if (!d->slot[i]) return d->n;
        const hn_jentry *e = &d->e[d->slot[i] - 1];
        if (e->hash == h && hn_jv_equal(r, e->k, key)) return d->slot[i] - 1;
    }
}

static void reindex(hn_jrun *r, hn_jdict *d)
{
    size_t want = d->cap * 2;
    if (d->n_slot < want) {
        d->slot = hn_jj_array(HN_JC(r), want, sizeof *d->slot);
        d->n_slot = want;
    } else {
        memset(d->slot, 0, d->n_slot * sizeof *d->slot);
    }
    hn_jj_charge(r, d->n);
    for (size_t k = 0; k < d->n; k++) {
        size_t i = d->e[k].hash & (d->n_slot - 1);
        while (d->slot[i]) {
            hn_jj_charge(r, 1);
            i = (i + 1) & (d->n_slot - 1);
        }
        d->slot[i] = (uint32_t)k + 1;
    }
}

hn_jval *hn_jd_get(hn_jrun *r, const hn_jdict *d, hn_jval key)
{
    size_t i = dict_at(r, d, key, hash_key(r, key));
    return i < d->n ? &d->e[i].v : NULL;
}

hn_jval *hn_jd_find(hn_jrun *r, const hn_jdict *d, const char *key)
{
    hn_jstr s = { .p = key, .len = strlen(key), .n_char = SIZE_MAX };
    return hn_jd_get(r, d, HN_JSTR(&s));
}

void hn_jd_set(hn_jrun *r, hn_jdict *d, hn_jval key, hn_jval v)
{
    uint64_t h = hash_key(r, key);
    size_t i = dict_at(r, d, key, h);
    if (i < d->n) {
        d->e[i].v = v;
        return;
    }
    if (d->n >= UINT32_MAX / 4) HN_JFAIL(r, "a dict of more than %u entries", UINT32_MAX / 4);
    size_t cap = d->cap;
    d->e = hn_jj_grow(HN_JC(r), d->e, d->n, &d->cap, sizeof *d->e);
    d->e[d->n++] = (hn_jentry){ key, v, h };
    if (d->n <= DICT_FEW) return;
    if (d->cap != cap || !d->n_slot) {
        reindex(r, d);
        return;
    }
    size_t at = h & (d->n_slot - 1);
    while (d->slot[at]) at = (at + 1) & (d->n_slot - 1);
    d->slot[at] = (uint32_t)d->n;
}

bool hn_jd_pop(hn_jrun *r, hn_jdict *d, hn_jval key, hn_jval *out)
{
    size_t i = dict_at(r, d, key, hash_key(r, key));
    if (i >= d->n) return false;
    *out = d->e[i].v;
    hn_jj_charge(r, d->n);
    memmove(d->e + i, d->e + i + 1, (d->n - i - 1) * sizeof *d->e);
    d->n--;
    if (d->n_slot) reindex(r, d);
    return true;
}

/* ---- undefined --------------------------------------------------------------------------------------------- */

hn_jval hn_jv_undef_name(hn_jrun *r, const hn_jstr *name)
{
    hn_jundef *u = hn_jj_alloc(HN_JC(r), sizeof *u);
    u->name = name;
    return HN_JV(HN_J_UNDEF, u, u);
}

hn_jval hn_jv_undef_key(hn_jrun *r, hn_jval of, hn_jval key)
{
    hn_jundef *u = hn_jj_alloc(HN_JC(r), sizeof *u);
    u->of = of.kind;
    u->key = key;
    return HN_JV(HN_J_UNDEF, u, u);
}

_Noreturn void hn_jv_fail_undef(hn_jrun *r, hn_jval v)
{
    const hn_jundef *u = v.u.u;
    hn_jval of = { .kind = u->of };
    if (u->name) HN_JFAIL(r, "'%s' is undefined", HN_ESC(u->name->p, u->name->len));
    const char *type = u->of == HN_J_NONE    ? "None"
                       : u->of == HN_J_UNDEF ? "Undefined"
                                             : hn_jv_type(of),
               *object = u->of == HN_J_NONE ? "" : " object";
    if (u->key.kind == HN_J_STR)
        HN_JFAIL(r, "'%s%s' has no attribute '%s'", type, object, HN_ESC(u->key.u.s->p, u->key.u.s->len));
    if (u->key.kind == HN_J_NIL) HN_JFAIL(r, "no value: the sequence is empty, or no branch of a condition applied");
    hn_jstr *k = hn_jv_text(r, u->key);
    HN_JFAIL(r, "%s%s has no element %s", type, object, HN_ESC(k->p, k->len));
}

/* ---- kinds, truth, numbers -------------------------------------------------------------------------------- */

const char *hn_jv_type(hn_jval v)
{
    static const char *const names[] = {
        [HN_J_NIL] = "missing",   [HN_J_UNDEF] = "Undefined", [HN_J_NONE] = "NoneType",    [HN_J_BOOL] = "bool",
        [HN_J_INT] = "int",       [HN_J_FLOAT] = "float",     [HN_J_STR] = "str",          [HN_J_LIST] = "list",
        [HN_J_TUPLE] = "tuple",   [HN_J_DICT] = "dict",       [HN_J_NS] = "Namespace",     [HN_J_MACRO] = "Macro",
        [HN_J_FUNC] = "function", [HN_J_METHOD] = "method",   [HN_J_LOOP] = "LoopContext", [HN_J_CYCLER] = "Cycler",
        [HN_J_JOINER] = "Joiner",
    };
    if (v.kind == HN_J_LIST && v.u.l && v.u.l->range) return "range";
    return v.kind == HN_J_LIST && v.u.l && v.u.l->view ? v.u.l->view : names[v.kind];
}

bool hn_jv_truth(hn_jval v)
{
    switch (v.kind) {
    case HN_J_NIL:
    case HN_J_UNDEF:
    case HN_J_NONE: return false;
    case HN_J_BOOL: return v.u.b;
    case HN_J_INT: return v.u.i != 0;
    case HN_J_FLOAT: return v.u.f != 0;
    case HN_J_STR: return v.u.s->len != 0;
    case HN_J_LIST:
    case HN_J_TUPLE: return v.u.l->lazy || v.u.l->n != 0;
    case HN_J_DICT: return v.u.d->n != 0;
    default: return true;
    }
}

bool hn_jv_is_num(hn_jval v) { return v.kind == HN_J_BOOL || v.kind == HN_J_INT || v.kind == HN_J_FLOAT; }
double hn_jv_num(hn_jval v) { return v.kind == HN_J_FLOAT ? v.u.f : (double)hn_jv_int(v); }
int64_t hn_jv_int(hn_jval v) { return v.kind == HN_J_BOOL ? v.u.b : v.u.i; }

/* Exact: 2^53 + 1 is not 2^53 as a float. 2: unordered. */
static int compare_num(hn_jval a, hn_jval b)
{
    if (a.kind == HN_J_FLOAT && b.kind == HN_J_FLOAT)
        return a.u.f < b.u.f ? -1 : a.u.f > b.u.f ? 1 : a.u.f == b.u.f ? 0 : 2;
    if (a.kind != HN_J_FLOAT && b.kind != HN_J_FLOAT) {
        int64_t x = hn_jv_int(a), y = hn_jv_int(b);
        return x < y ? -1 : x > y;
    }
    if (a.kind == HN_J_FLOAT) {
        int c = compare_num(b, a);
        return c == 2 ? 2 : -c;
    }
    int64_t x = hn_jv_int(a);
    double y = b.u.f;
    if (isnan(y)) return 2;
    if (y >= 0x1p63) return -1;
    if (y < -0x1p63) return 1;
    double whole = floor(y);
    int64_t w = (int64_t)whole;
    return x < w ? -1 : x > w ? 1 : y > whole ? -1 : 0;
}

static bool equal_lists(hn_jrun *r, const hn_jlist *a, const hn_jlist *b)
{
    if (a == b) return true;
    if (a->n != b->n || a->lazy || b->lazy || a->range != b->range) return false;
    for (size_t i = 0; i < a->n && i < b->n; i++)
        if (!hn_jv_equal(r, a->v[i], b->v[i])) return false;
    return true;
}

static bool equal_dicts(hn_jrun *r, const hn_jdict *a, const hn_jdict *b)
{
    if (a == b) return true;
    if (a->n != b->n) return false;
    for (size_t i = 0; i < a->n; i++) {
        size_t k = dict_at(r, b, a->e[i].k, a->e[i].hash);
        if (k >= b->n || !hn_jv_equal(r, a->e[i].v, b->e[k].v)) return false;
    }
    return true;
}

bool hn_jv_equal(hn_jrun *r, hn_jval a, hn_jval b)
{
    if (hn_jv_is_num(a) && hn_jv_is_num(b)) return compare_num(a, b) == 0;
    if (a.kind != b.kind) return false;
    bool eq;
    switch (a.kind) {
    case HN_J_UNDEF:
    case HN_J_NONE: return true;
    case HN_J_STR:
        if (a.u.s->len != b.u.s->len) return false;
        hn_jj_bytes(r, a.u.s->len);
        return hn_js_eq(a.u.s, b.u.s);
    case HN_J_LIST:
    case HN_J_TUPLE:
    case HN_J_DICT:
        hn_jj_charge(r, 1);
        hn_jj_enter(HN_JC(r), r->c.pos);
        eq = a.kind == HN_J_DICT ? equal_dicts(r, a.u.d, b.u.d) : equal_lists(r, a.u.l, b.u.l);
        r->c.depth--;
        return eq;
    case HN_J_FUNC: return a.u.fn == b.u.fn;
    case HN_J_METHOD: return a.u.bound->fn == b.u.bound->fn && hn_jv_equal(r, a.u.bound->self, b.u.bound->self);
    default: return a.u.d == b.u.d; /* identity */
    }
}

int hn_jv_compare(hn_jrun *r, hn_jval a, hn_jval b, const char *op)
{
    if (hn_jv_is_num(a) && hn_jv_is_num(b)) return compare_num(a, b);
    if (a.kind == HN_J_UNDEF) hn_jv_fail_undef(r, a);
    if (b.kind == HN_J_UNDEF) hn_jv_fail_undef(r, b);
    if (a.kind == HN_J_STR && b.kind == HN_J_STR) { /* UTF-8 sorts like its code points */
        size_t n = a.u.s->len < b.u.s->len ? a.u.s->len : b.u.s->len;
        hn_jj_bytes(r, n);
        int c = memcmp(a.u.s->p, b.u.s->p, n);
        return c ? (c < 0 ? -1 : 1) : a.u.s->len < b.u.s->len ? -1 : a.u.s->len > b.u.s->len;
    }
    if (a.kind == b.kind && (a.kind == HN_J_LIST || a.kind == HN_J_TUPLE) && !a.u.l->view && !b.u.l->view &&
        !a.u.l->range && !b.u.l->range) {
        int c = 0;
        hn_jj_enter(HN_JC(r), r->c.pos);
        for (size_t i = 0; c == 0 && i < a.u.l->n && i < b.u.l->n; i++) {
            hn_jj_charge(r, 1);
            if (!hn_jv_equal(r, a.u.l->v[i], b.u.l->v[i])) c = hn_jv_compare(r, a.u.l->v[i], b.u.l->v[i], op);
        }
        r->c.depth--;
        return c ? c : a.u.l->n < b.u.l->n ? -1 : a.u.l->n > b.u.l->n;
    }
    HN_JFAIL(r, "'%s' not supported between instances of '%s' and '%s'", op, hn_jv_type(a), hn_jv_type(b));
}

void hn_jj_sort(hn_jrun *r, hn_jval *key, hn_jval *v, size_t n, bool reverse)
{
    /* merge sort from runs of one; reverse keeps equal elements in their order, as Python does */
    hn_jval *k2 = hn_jj_array(HN_JC(r), n + 1, sizeof *k2), *v2 = hn_jj_array(HN_JC(r), n + 1, sizeof *v2), *k = key,
            *x = v;
    for (size_t w = 1; w < n; w *= 2) {
        for (size_t a = 0; a < n; a += 2 * w) {
            size_t i = a, m = a + w < n ? a + w : n, j = m, e = a + 2 * w < n ? a + 2 * w : n;
            for (size_t o = a; o < e; o++) {
                hn_jj_charge(r, 1);
                int c = i < m && j < e ? hn_jv_compare(r, k[j], k[i], "<") : 0;
                bool right = i >= m || (j < e && (reverse ? c == 1 : c == -1));
                k2[o] = right ? k[j] : k[i];
                v2[o] = right ? x[j++] : x[i++];
            }
        }
        hn_jval *t = k;
        k = k2;
        k2 = t;
        t = x;
        x = v2;
        v2 = t;
    }
    if (x != v && n) memcpy(v, x, n * sizeof *v);
}

/* ---- printing ---------------------------------------------------------------------------------------------- */

double hn_jj_strtod(const char *s, char **end)
{
    const char *point = localeconv()->decimal_point, *dot = strchr(s, '.');
    if (!dot || strcmp(point, ".") == 0) return strtod(s, end);
    char buf[512];
    size_t before = (size_t)(dot - s);
    int n = snprintf(buf, sizeof buf, "%.*s%s%s", (int)before, s, point, dot + 1);
    if (before > sizeof buf || n < 0 || (size_t)n >= sizeof buf)
        return strtod(s, end); /* digits before the point decide */
    char *e;
    double x = strtod(buf, &e);
    size_t used = (size_t)(e - buf);
    if (end) *end = (char *)s + (used <= before ? used : used - strlen(point) + 1);
    return x;
}

void hn_jj_float_text(char dst[40], double x)
{
    if (isnan(x) || isinf(x)) {
        snprintf(dst, 40, "%s", isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
        return;
    }
    char e[48], digits[24];
    int prec = 0, nd = 0;
    for (; prec < 17; prec++) { /* shortest that reads back */
        snprintf(e, sizeof e, "%.*e", prec, x);
        if (strtod(e, NULL) == x) break;
    }
    const char *p = e;
    bool neg = *p == '-';
    if (neg) p++;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9' && nd < 20) digits[nd++] = *p;
    int ex = *p == 'e' ? (int)strtol(p + 1, NULL, 10) : 0; /* x = d.ddd * 10^ex */
    while (nd > 1 && digits[nd - 1] == '0') nd--;
    char *o = dst;
    if (neg) *o++ = '-';
    if (ex < -4 || ex >= 16) {
        *o++ = digits[0];
        if (nd > 1) {
            *o++ = '.';
            memcpy(o, digits + 1, (size_t)nd - 1);
            o += nd - 1;
        }
        snprintf(o, 14, "e%c%02d", ex < 0 ? '-' : '+', ex < 0 ? -ex : ex);
        return;
    }
    if (ex < 0) {
        *o++ = '0';
        *o++ = '.';
        for (int i = -1; i > ex; i--) *o++ = '0';
        memcpy(o, digits, (size_t)nd);
        o += nd;
    } else {
        for (int i = 0; i <= ex; i++) *o++ = i < nd ? digits[i] : '0';
        *o++ = '.';
        if (nd > ex + 1) {
            memcpy(o, digits + ex + 1, (size_t)(nd - ex - 1));
            o += nd - ex - 1;
        } else {
            *o++ = '0';
        }
    }
    *o = 0;
}

/* Python's str.isprintable for one character. */
static bool printable(uint32_t cp)
{
    if (cp < 0x80) return cp >= 0x20 && cp != 0x7F;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS: return false;
    default: return true;
    }
}

static void repr_str(hn_jrun *r, hn_jbuf *b, const hn_jstr *s)
{
    bool single = memchr(s->p, '\'', s->len) != NULL, dbl = memchr(s->p, '"', s->len) != NULL;
    char q = single && !dbl ? '"' : '\'', esc[16];
    hn_jb_put(r, b, &q, 1, false);
    size_t used;
    for (size_t i = 0; i < s->len; i += used) {
        uint32_t cp = hn_jj_cp(s->p + i, s->len - i, &used);
        bool input = s->fl ? s->fl[i] : s->input;
        if (cp == '\\' || cp == (unsigned char)q) snprintf(esc, sizeof esc, "\\%c", (int)cp);
        else if (cp == '\n' || cp == '\r' || cp == '\t')
            snprintf(esc, sizeof esc, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
        else if (printable(cp)) {
            hn_jb_put(r, b, s->p + i, used, input);
            continue;
        } else if (cp < 0x100) snprintf(esc, sizeof esc, "\\x%02x", (unsigned)cp);
        else if (cp < 0x10000) snprintf(esc, sizeof esc, "\\u%04x", (unsigned)cp);
        else snprintf(esc, sizeof esc, "\\U%08x", (unsigned)cp);
        hn_jb_put(r, b, esc, strlen(esc), input);
    }
    hn_jb_put(r, b, &q, 1, false);
}

static void repr_items(hn_jrun *r, hn_jbuf *b, const hn_jlist *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (i) hn_jb_lit(r, b, ", ");
        hn_jv_repr(r, b, l->v[i]);
    }
}

void hn_jv_repr(hn_jrun *r, hn_jbuf *b, hn_jval v)
{
    char num[40];
    hn_jj_enter(HN_JC(r), r->c.pos);
    hn_jj_charge(r, 1);
    switch (v.kind) {
    case HN_J_NIL: break;
    case HN_J_UNDEF: hn_jb_lit(r, b, "Undefined"); break;
    case HN_J_NONE: hn_jb_lit(r, b, "None"); break;
    case HN_J_BOOL: hn_jb_lit(r, b, v.u.b ? "True" : "False"); break;
    case HN_J_INT:
        snprintf(num, sizeof num, "%lld", (long long)v.u.i);
        hn_jb_put(r, b, num, strlen(num), v.input);
        break;
    case HN_J_FLOAT:
        if (v.digits) {
            hn_jb_str(r, b, r->digits[v.digits - 1]);
            break;
        }
        hn_jj_float_text(num, v.u.f);
        hn_jb_put(r, b, num, strlen(num), v.input);
        break;
    case HN_J_STR:
        if (v.u.s->markup) hn_jb_lit(r, b, "Markup(");
        repr_str(r, b, v.u.s);
        if (v.u.s->markup) hn_jb_lit(r, b, ")");
        break;
    case HN_J_LIST:
        if (v.u.l->range) HN_JUNSUPPORTED(r, "printing a range without the filter list");
        if (v.u.l->lazy)
            HN_JUNSUPPORTED(r, "printing a generator (of map, select and their like) without the filter list");
        if (v.u.l->view) {
            hn_jb_lit(r, b, v.u.l->view);
            hn_jb_lit(r, b, "(");
        }
        hn_jb_lit(r, b, "[");
        repr_items(r, b, v.u.l);
        hn_jb_lit(r, b, v.u.l->view ? "])" : "]");
        break;
    case HN_J_TUPLE:
        hn_jb_lit(r, b, "(");
        repr_items(r, b, v.u.l);
        hn_jb_lit(r, b, v.u.l->n == 1 ? ",)" : ")");
        break;
    case HN_J_NS:
    case HN_J_DICT:
        hn_jb_lit(r, b, v.kind == HN_J_NS ? "<Namespace {" : "{");
        for (size_t i = 0; i < v.u.d->n; i++) {
            if (i) hn_jb_lit(r, b, ", ");
            hn_jv_repr(r, b, v.u.d->e[i].k);
            hn_jb_lit(r, b, ": ");
            hn_jv_repr(r, b, v.u.d->e[i].v);
        }
        hn_jb_lit(r, b, v.kind == HN_J_NS ? "}>" : "}");
        break;
    case HN_J_MACRO:
        hn_jb_lit(r, b, "<Macro ");
        if (v.u.m->name) repr_str(r, b, v.u.m->name);
        else hn_jb_lit(r, b, "anonymous");
        hn_jb_lit(r, b, ">");
        break;
    case HN_J_LOOP:
        snprintf(num, sizeof num, "<LoopContext %zu/%zu>", v.u.loop->i + 1, v.u.loop->n);
        hn_jb_lit(r, b, num);
        break;
    default: HN_JUNSUPPORTED(r, "printing a %s", hn_jv_type(v));
    }
    r->c.depth--;
}

hn_jstr *hn_jv_text(hn_jrun *r, hn_jval v)
{
    if (v.kind == HN_J_STR) return v.u.s;
    if (v.kind == HN_J_UNDEF || v.kind == HN_J_NIL) return hn_js_lit(HN_JC(r), "");
    hn_jbuf b = { 0 };
    hn_jv_repr(r, &b, v);
    return hn_jb_done(r, &b);
}

/* ---- walking ------------------------------------------------------------------------------------------------- */

hn_jval *hn_jv_items(hn_jrun *r, hn_jval v, size_t *n)
{
    switch (v.kind) {
    case HN_J_UNDEF: *n = 0; return NULL;
    case HN_J_LIST:
    case HN_J_TUPLE:
        *n = v.u.l->spent ? 0 : v.u.l->n;
        v.u.l->spent = v.u.l->lazy;
        return v.u.l->v;
    case HN_J_DICT: {
        *n = v.u.d->n;
        hn_jval *k = hn_jj_array(HN_JC(r), *n + 1, sizeof *k);
        for (size_t i = 0; i < *n; i++) k[i] = v.u.d->e[i].k;
        return k;
    }
    case HN_J_STR: {
        const hn_jstr *s = v.u.s;
        size_t used, o = 0;
        *n = hn_js_chars(r, s);
        hn_jval *c = hn_jj_array(HN_JC(r), *n + 1, sizeof *c);
        for (size_t i = 0; i < s->len && o < *n; i += used) {
            hn_jj_cp(s->p + i, s->len - i, &used);
            c[o++] = HN_JSTR(hn_js_mark(r, hn_js_part(r, s, i, used), false));
        }
        *n = o;
        return c;
    }
    default: HN_JFAIL(r, "'%s' object is not iterable", hn_jv_type(v));
    }
}

hn_jlist *hn_jv_list(hn_jrun *r, hn_jval v)
{
    size_t n;
    hn_jval *e = hn_jv_items(r, v, &n);
    hn_jlist *l = hn_jl_new(r, n);
    hn_jj_charge(r, n);
    if (n) memcpy(l->v, e, n * sizeof *e);
    l->n = n;
    return l;
}
