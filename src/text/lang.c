/* Terms are made once each (a table by hash), so a number is a state; derivatives, the search for life and room
 * work on numbers alone. Every piece of work is counted: what is too large ends the same way on every machine. */
#include "base/utf8.h"
#include "text/lang_priv.h"

#include <stdlib.h>

enum { HEIGHT_MAX = 1500 }; /* of a term: how deep the functions below call themselves */

/* ---- memory ----------------------------------------------------------------------------------- */

static void give_up(hn_langs *l, hone_status st, const char *why)
{
    if (l->failed) return;
    l->failed = st;
    l->why = why;
}

static void too_large(hn_langs *l)
{
    give_up(l, HONE_E_UNSUPPORTED, "it needs more memory than a grammar may take");
    l->full = true;
}

static void *grow(hn_langs *l, void *p, size_t old, size_t want)
{
    if (l->failed) return NULL;
    if (want > l->max_bytes - (l->bytes - old)) {
        too_large(l);
        return NULL;
    }
    void *q = realloc(p, want);
    if (!q) give_up(l, HONE_E_NOMEM, "out of memory");
    else l->bytes += want - old;
    return q;
}

static bool spend(hn_langs *l, uint64_t n)
{
    if (l->failed) return false;
    if (l->steps >= n) {
        l->steps -= n;
        return true;
    }
    give_up(l, HONE_E_UNSUPPORTED, "it takes more work than a grammar may");
    return false;
}

bool hn_list_put(hn_langs *l, hn_list *v, uint32_t x)
{
    if (v->n == v->cap) {
        size_t cap = v->cap * 2 + 16;
        uint32_t *p = grow(l, v->data, v->cap * sizeof *p, cap * sizeof *p);
        if (!p) return false;
        v->data = p;
        v->cap = cap;
    }
    v->data[v->n++] = x;
    return true;
}

void hn_list_drop(hn_langs *l, hn_list *v)
{
    l->bytes -= v->cap * sizeof *v->data;
    free(v->data);
    *v = (hn_list){ 0 };
}

static bool more_terms(hn_langs *l)
{
    uint32_t cap = l->cap * 2 + 64;
    size_t each = sizeof *l->t + sizeof *l->fan + sizeof *l->state + sizeof *l->mark;
    if ((cap - l->cap) * each > hn_langs_left(l)) cap = l->cap + l->cap / 8 + 64;
    if ((cap - l->cap) * each > hn_langs_left(l)) { /* all of them or none */
        too_large(l);
        return false;
    }
    hn_term *t = grow(l, l->t, l->cap * sizeof *t, cap * sizeof *t);
    if (t) l->t = t;
    hn_fan **f = t ? grow(l, l->fan, l->cap * sizeof(hn_fan *), cap * sizeof(hn_fan *)) : NULL;
    if (f) l->fan = f;
    hn_lang_state **s = f ? grow(l, l->state, l->cap * sizeof(hn_lang_state *), cap * sizeof(hn_lang_state *)) : NULL;
    if (s) l->state = s;
    uint32_t *m = s ? grow(l, l->mark, l->cap * sizeof *m, cap * sizeof *m) : NULL;
    if (!m) return false;
    l->mark = m;
    for (uint32_t i = l->cap; i < cap; i++) l->fan[i] = NULL, l->state[i] = NULL, l->mark[i] = 0;
    l->cap = cap;
    return true;
}

/* ---- terms -------------------------------------------------------------------------------------- */

static uint64_t hash_of(const hn_langs *l, const hn_term *t)
{
    uint64_t h = hn_mix64(t->kind * 0x9E3779B97F4A7C15u + t->b);
    if (t->kind == K_SET) {
        for (uint32_t i = 0; i < t->b; i++)
            h = hn_mix64(h ^ ((uint64_t)l->range[t->a + i].lo << 32 | l->range[t->a + i].hi));
        return h;
    }
    if (t->kind == K_OR || t->kind == K_AND) {
        for (uint32_t i = 0; i < t->b; i++) h = hn_mix64(h ^ l->kids.data[t->a + i]);
        return h;
    }
    return hn_mix64(h ^ ((uint64_t)t->a << 32 | t->c));
}

static bool same(const hn_langs *l, const hn_term *x, const hn_term *y)
{
    if (x->kind != y->kind || x->b != y->b) return false;
    if (x->kind == K_SET) return memcmp(l->range + x->a, l->range + y->a, x->b * sizeof *l->range) == 0;
    if (x->kind == K_OR || x->kind == K_AND)
        return memcmp(l->kids.data + x->a, l->kids.data + y->a, x->b * sizeof *l->kids.data) == 0;
    return x->a == y->a && x->c == y->c;
}

void hn_langs_hash(hn_langs *l)
{
    memset(l->slot, 0, l->n_slot * sizeof *l->slot);
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t at = (uint32_t)hash_of(l, &l->t[i]) & (l->n_slot - 1);
        while (l->slot[at]) at = (at + 1) & (l->n_slot - 1);
        l->slot[at] = i + 1;
    }
}

static bool more_slots(hn_langs *l)
{
    uint32_t n = l->n_slot ? l->n_slot * 2 : 256;
    uint32_t *slot = grow(l, NULL, 0, n * sizeof *slot);
    if (!slot) return false;
    l->bytes -= l->n_slot * sizeof *slot;
    free(l->slot);
    l->slot = slot;
    l->n_slot = n;
    hn_langs_hash(l);
    return true;
}

static uint32_t plus(uint32_t a, uint32_t b) { return a >= HN_LANG_ENDLESS - b ? HN_LANG_ENDLESS : a + b; }

static uint32_t times(uint32_t n, uint32_t a) { return (uint64_t)n * a >= HN_LANG_ENDLESS ? HN_LANG_ENDLESS : n * a; }

/* What least, need, lasts and counts are, of those of its parts. Where need and least are 0, what is left of any text
 * that may go on is whole: so it is of a complement of what lasts, and of what holds in all of several such. */
static void measure(const hn_langs *l, hn_term *x)
{
    bool of_terms = x->kind == K_CAT || x->kind == K_NOT || x->kind == K_REP;
    const hn_term *a = &l->t[of_terms ? x->a : 0], *b = &l->t[x->kind == K_CAT ? x->b : 0];
    uint32_t unknown = x->accepts ? 0 : HN_LANG_ENDLESS;
    switch ((hn_term_kind)x->kind) {
    case K_NONE: x->least = HN_LANG_ENDLESS; return;
    case K_EMPTY: return;
    case K_SET: x->least = 1; return;
    case K_CAT:
        x->least = plus(a->least, b->least);
        x->need = plus(a->need, b->least) > b->need ? plus(a->need, b->least) : b->need;
        x->lasts = b->lasts;
        x->counts = a->counts;
        return;
    case K_OR:
    case K_AND: {
        bool whole = true;
        x->lasts = true;
        x->least = HN_LANG_ENDLESS;
        for (uint32_t i = 0; i < x->b; i++) {
            const hn_term *k = &l->t[l->kids.data[x->a + i]];
            if (k->least < x->least) x->least = k->least;
            if (k->need > x->need) x->need = k->need;
            whole = whole && k->least == 0 && k->need == 0;
            x->lasts = x->lasts && k->lasts;
            x->counts = x->counts || k->counts;
        }
        if (x->kind == K_OR || whole) return;
        x->least = unknown;
        x->need = HN_LANG_ENDLESS;
        return;
    }
    case K_NOT:
        x->least = unknown;
        x->need = a->lasts ? 0 : HN_LANG_ENDLESS;
        return;
    case K_REP:
        x->least = times(x->b, a->least);
        x->need = plus(a->need, x->b > 1 ? times(x->b - 1, a->least) : 0);
        x->lasts = x->a == HN_LANG_ANY && x->c == HN_LANG_ENDLESS;
        x->counts = x->b > 1 || x->c != HN_LANG_ENDLESS;
        return;
    case K_MOD:
        x->least = unknown;
        x->need = HN_LANG_ENDLESS;
        return;
    }
}

/* The term that is x; what x has in kids or ranges stands at their end, and goes again where the term is known. */
static hn_lang intern(hn_langs *l, hn_term x)
{
    hn_lang id = HN_LANG_NONE;
    if (!spend(l, 1)) return id;
    if (x.height > HEIGHT_MAX) {
        give_up(l, HONE_E_UNSUPPORTED, "it is nested too deeply");
        return id;
    }
    if ((uint64_t)l->n * 2 >= l->n_slot && !more_slots(l)) return id;
    uint32_t at = (uint32_t)hash_of(l, &x) & (l->n_slot - 1);
    for (; l->slot[at]; at = (at + 1) & (l->n_slot - 1))
        if (same(l, &l->t[l->slot[at] - 1], &x)) {
            if (x.kind == K_SET) l->n_range = x.a;
            if (x.kind == K_OR || x.kind == K_AND) l->kids.n = x.a;
            return l->slot[at] - 1;
        }
    if (l->n == l->cap && !more_terms(l)) return id;
    measure(l, &x);
    l->t[l->n] = x;
    l->slot[at] = l->n + 1;
    return l->n++;
}

static uint16_t taller(const hn_langs *l, hn_lang a, hn_lang b)
{
    uint16_t h = l->t[a].height > l->t[b].height ? l->t[a].height : l->t[b].height;
    return (uint16_t)(h + 1);
}

static int by_lo(const void *a, const void *b)
{
    const hn_range *x = a, *y = b;
    return x->lo != y->lo ? (x->lo < y->lo ? -1 : 1) : (x->hi > y->hi) - (x->hi < y->hi);
}

static bool put_range(hn_langs *l, uint32_t lo, uint32_t hi)
{
    if (l->n_range == l->cap_range) {
        size_t cap = l->cap_range * 2 + 64;
        hn_range *r = grow(l, l->range, l->cap_range * sizeof *r, cap * sizeof *r);
        if (!r) return false;
        l->range = r;
        l->cap_range = cap;
    }
    l->range[l->n_range++] = (hn_range){ lo, hi };
    return true;
}

/* The ranges from place `at` of the store on, sorted and joined, as a term. */
static hn_lang set_from(hn_langs *l, size_t at)
{
    size_t n = l->n_range - at, m = 0;
    if (l->failed || n == 0) return HN_LANG_NONE;
    hn_range *r = l->range + at;
    qsort(r, n, sizeof *r, by_lo);
    for (size_t i = 0; i < n; i++) {
        if (m && r[i].lo <= r[m - 1].hi + 1) {
            if (r[i].hi > r[m - 1].hi) r[m - 1].hi = r[i].hi;
        } else {
            r[m++] = r[i];
        }
    }
    l->n_range = at + m;
    return intern(l, (hn_term){ .kind = K_SET, .a = (uint32_t)at, .b = (uint32_t)m, .height = 1 });
}

hn_lang hn_lang_set(hn_langs *l, const hn_range *r, size_t n)
{
    size_t at = l->n_range;
    for (size_t i = 0; i < n; i++) {
        uint32_t lo = r[i].lo, hi = r[i].hi > HN_CP_MAX ? HN_CP_MAX : r[i].hi;
        if (lo < HN_SURROGATE_LO && lo <= hi) put_range(l, lo, hi < HN_SURROGATE_LO ? hi : HN_SURROGATE_LO - 1);
        if (hi > HN_SURROGATE_HI && lo <= hi) put_range(l, lo > HN_SURROGATE_HI ? lo : HN_SURROGATE_HI + 1, hi);
    }
    return set_from(l, at);
}

/* A class of characters is a set again, so that repetitions of it stay free of complements. */
hn_lang hn_lang_others(hn_langs *l, hn_lang set)
{
    static const hn_range all[] = { { 0, HN_SURROGATE_LO - 1 }, { HN_SURROGATE_HI + 1, HN_CP_MAX } };
    size_t at = l->n_range;
    uint32_t n = l->t[set].kind == K_SET ? l->t[set].b : 0;
    for (size_t half = 0; half < 2; half++) {
        uint32_t next = all[half].lo;
        for (uint32_t i = 0; i < n; i++) {
            hn_range r = l->range[l->t[set].a + i];
            if (r.hi < next || r.lo > all[half].hi) continue;
            if (r.lo > next) put_range(l, next, r.lo - 1);
            next = r.hi + 1;
        }
        if (next <= all[half].hi) put_range(l, next, all[half].hi);
    }
    return set_from(l, at);
}

hn_lang hn_lang_char(hn_langs *l, uint32_t cp) { return hn_lang_set(l, &(hn_range){ cp, cp }, 1); }

hn_lang hn_lang_cat(hn_langs *l, hn_lang a, hn_lang b)
{
    if (l->failed || a == HN_LANG_NONE || b == HN_LANG_NONE) return HN_LANG_NONE;
    if (a == HN_LANG_EMPTY) return b;
    if (b == HN_LANG_EMPTY) return a;
    if (a == HN_LANG_ALL && b == HN_LANG_ALL) return a;
    if (l->t[a].kind == K_CAT) { /* to the right: (xy)z = x(yz), by a loop over the spine of a */
        hn_list spine = { 0 };
        while (l->t[a].kind == K_CAT && hn_list_put(l, &spine, l->t[a].a)) a = l->t[a].b;
        hn_lang r = l->failed ? HN_LANG_NONE : hn_lang_cat(l, a, b);
        while (spine.n && !l->failed) r = hn_lang_cat(l, spine.data[--spine.n], r);
        hn_list_drop(l, &spine);
        return l->failed ? HN_LANG_NONE : r;
    }
    const hn_term *x = &l->t[a], *y = &l->t[b];
    return intern(l, (hn_term){ .kind = K_CAT,
                                .accepts = x->accepts && y->accepts,
                                .boolean = x->boolean || y->boolean,
                                .height = x->accepts ? taller(l, a, b) : (uint16_t)(x->height + 1),
                                .a = a,
                                .b = b });
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* x of those kinds that are sets of terms: flat, sorted, each once. */
static void flat(hn_langs *l, hn_term_kind k, const hn_lang *t, size_t n, hn_list *out)
{
    for (size_t i = 0; i < n; i++) {
        const hn_term *x = &l->t[t[i]];
        if (x->kind == k)
            for (uint32_t j = 0; j < x->b; j++) hn_list_put(l, out, l->kids.data[x->a + j]);
        else hn_list_put(l, out, t[i]);
    }
    if (out->n) qsort(out->data, out->n, sizeof *out->data, by_number);
    size_t m = 0;
    for (size_t i = 0; i < out->n; i++)
        if (m == 0 || out->data[m - 1] != out->data[i]) out->data[m++] = out->data[i];
    out->n = m;
    spend(l, m + 1);
}

static hn_lang from_kids(hn_langs *l, hn_term_kind k, const hn_list *v)
{
    size_t at = l->kids.n;
    hn_term x = {
        .kind = (uint8_t)k, .a = (uint32_t)at, .b = (uint32_t)v->n, .accepts = k == K_AND, .boolean = k == K_AND
    };
    for (size_t i = 0; i < v->n; i++) {
        const hn_term *y = &l->t[v->data[i]];
        x.accepts = k == K_OR ? x.accepts || y->accepts : x.accepts && y->accepts;
        x.boolean = x.boolean || y->boolean;
        if (y->height >= x.height) x.height = (uint16_t)(y->height + 1);
        if (!hn_list_put(l, &l->kids, v->data[i])) return HN_LANG_NONE;
    }
    return intern(l, x);
}

static hn_lang or_of(hn_langs *l, hn_list *v)
{
    size_t m = 0, at = l->n_range, n_set = 0;
    bool accepts = false;
    for (size_t i = 0; i < v->n; i++) {
        if (v->data[i] == HN_LANG_ALL) return HN_LANG_ALL;
        accepts = accepts || (v->data[i] != HN_LANG_EMPTY && l->t[v->data[i]].accepts);
        n_set += l->t[v->data[i]].kind == K_SET;
    }
    for (size_t i = 0; i < v->n; i++) {
        hn_lang t = v->data[i];
        if (t == HN_LANG_NONE || (t == HN_LANG_EMPTY && accepts)) continue;
        if (n_set > 1 && l->t[t].kind == K_SET) /* classes of characters are joined */
            for (uint32_t j = 0; j < l->t[t].b; j++) {
                hn_range r = l->range[l->t[t].a + j];
                put_range(l, r.lo, r.hi);
            }
        else v->data[m++] = t;
    }
    v->n = m;
    if (n_set > 1) {
        hn_list_put(l, v, set_from(l, at));
        if (v->n) qsort(v->data, v->n, sizeof *v->data, by_number);
    }
    if (l->failed || v->n == 0) return HN_LANG_NONE;
    return v->n == 1 ? v->data[0] : from_kids(l, K_OR, v);
}

hn_lang hn_lang_or_all(hn_langs *l, const hn_lang *t, size_t n)
{
    hn_list v = { 0 };
    flat(l, K_OR, t, n, &v);
    hn_lang r = l->failed ? HN_LANG_NONE : or_of(l, &v);
    hn_list_drop(l, &v);
    return r;
}

hn_lang hn_lang_or(hn_langs *l, hn_lang a, hn_lang b) { return hn_lang_or_all(l, (hn_lang[]){ a, b }, 2); }

/* The characters that both sets hold. */
static hn_lang meet(hn_langs *l, hn_lang a, hn_lang b)
{
    size_t at = l->n_range;
    uint32_t i = 0, j = 0;
    while (i < l->t[a].b && j < l->t[b].b) {
        hn_range x = l->range[l->t[a].a + i], y = l->range[l->t[b].a + j];
        uint32_t lo = x.lo > y.lo ? x.lo : y.lo, hi = x.hi < y.hi ? x.hi : y.hi;
        if (lo <= hi) put_range(l, lo, hi);
        if (x.hi < y.hi) i++;
        else j++;
    }
    return set_from(l, at);
}

static hn_lang and_of(hn_langs *l, hn_list *v)
{
    size_t m = 0;
    hn_lang set = HN_LANG_NONE;
    bool has_set = false;
    for (size_t i = 0; i < v->n; i++) {
        hn_lang t = v->data[i];
        if (t == HN_LANG_NONE) return HN_LANG_NONE;
        if (t == HN_LANG_ALL) continue;
        if (l->t[t].kind == K_SET) {
            set = has_set ? meet(l, set, t) : t;
            has_set = true;
            if (set == HN_LANG_NONE) return HN_LANG_NONE;
        } else {
            v->data[m++] = t;
        }
    }
    v->n = m;
    if (has_set) hn_list_put(l, v, set);
    if (l->failed) return HN_LANG_NONE;
    if (v->n == 0) return HN_LANG_ALL;
    if (v->n == 1) return v->data[0];
    qsort(v->data, v->n, sizeof *v->data, by_number);
    if (v->data[0] == HN_LANG_EMPTY) { /* then nothing but the empty text is left */
        for (size_t i = 1; i < v->n; i++)
            if (!l->t[v->data[i]].accepts) return HN_LANG_NONE;
        return HN_LANG_EMPTY;
    }
    return from_kids(l, K_AND, v);
}

hn_lang hn_lang_and(hn_langs *l, hn_lang a, hn_lang b)
{
    hn_list v = { 0 };
    flat(l, K_AND, (hn_lang[]){ a, b }, 2, &v);
    hn_lang r = l->failed ? HN_LANG_NONE : and_of(l, &v);
    hn_list_drop(l, &v);
    return r;
}

static hn_lang and_all(hn_langs *l, const hn_lang *t, size_t n)
{
    hn_list v = { 0 };
    flat(l, K_AND, t, n, &v);
    hn_lang r = l->failed ? HN_LANG_NONE : and_of(l, &v);
    hn_list_drop(l, &v);
    return r;
}

hn_lang hn_lang_not(hn_langs *l, hn_lang a)
{
    if (l->failed) return HN_LANG_NONE;
    if (a == HN_LANG_NONE) return HN_LANG_ALL;
    if (a == HN_LANG_ALL) return HN_LANG_NONE;
    if (l->t[a].kind == K_NOT) return l->t[a].a;
    return intern(l, (hn_term){ .kind = K_NOT,
                                .accepts = !l->t[a].accepts,
                                .boolean = true,
                                .height = (uint16_t)(l->t[a].height + 1),
                                .a = a });
}

hn_lang hn_lang_repeat(hn_langs *l, hn_lang a, uint32_t min, uint32_t max)
{
    if (l->failed || min > max) return HN_LANG_NONE;
    if (max == 0 || a == HN_LANG_EMPTY) return HN_LANG_EMPTY;
    if (a == HN_LANG_NONE) return min == 0 ? HN_LANG_EMPTY : HN_LANG_NONE;
    const hn_term *x = &l->t[a];
    if (x->accepts) min = 0;
    if (min == 1 && max == 1) return a;
    if (a == HN_LANG_ALL) return a;
    if (x->kind == K_REP && x->b <= 1 && x->c == HN_LANG_ENDLESS) /* (y*){…} and (y+){…} */
        return hn_lang_repeat(l, x->a, x->b ? min : 0, HN_LANG_ENDLESS);
    if (x->kind == K_REP && x->b == 0 && x->c > 0) { /* (y{0,i}){…,j} = y{0,ij} */
        uint64_t most = max == HN_LANG_ENDLESS ? HN_LANG_ENDLESS : (uint64_t)x->c * max;
        return hn_lang_repeat(l, x->a, 0, most >= HN_LANG_ENDLESS ? HN_LANG_ENDLESS : (uint32_t)most);
    }
    if (x->kind == K_REP && x->b > 0) { /* (y{i,j}){m,n} = y{im,jn} where no number between is left out */
        uint64_t least = (uint64_t)x->b * min, most = HN_LANG_ENDLESS;
        bool endless = x->c == HN_LANG_ENDLESS, all = min == max || (endless && min > 0);
        if (!endless && max != HN_LANG_ENDLESS) most = (uint64_t)x->c * max;
        if (!endless) all = all || (uint64_t)x->c * min + 1 >= least + x->b; /* from m to m + 1, so from there on */
        if (all && least < HN_LANG_ENDLESS)
            return hn_lang_repeat(l, x->a, (uint32_t)least, most >= HN_LANG_ENDLESS ? HN_LANG_ENDLESS : (uint32_t)most);
    }
    return intern(l, (hn_term){ .kind = K_REP,
                                .accepts = min == 0,
                                .boolean = x->boolean,
                                .height = (uint16_t)(x->height + 1),
                                .a = a,
                                .b = min,
                                .c = max });
}

static hn_lang multiple(hn_langs *l, uint32_t m, uint32_t rest, bool point)
{
    return intern(l, (hn_term){ .kind = K_MOD, .accepts = rest == 0, .height = 1, .a = m, .b = rest, .c = point });
}

hn_lang hn_lang_multiple(hn_langs *l, uint32_t m) { return multiple(l, m, 0, true); }

hn_lang hn_lang_text(hn_langs *l, const char *utf8, size_t len)
{
    hn_lang r = HN_LANG_EMPTY;
    while (len && !l->failed) { /* from the end: each character once */
        size_t at = len - 1, used;
        while (at > 0 && ((unsigned char)utf8[at] & 0xC0) == 0x80) at--;
        int32_t cp = hn_utf8_next((const unsigned char *)utf8 + at, len - at, &used);
        r = hn_lang_cat(l, hn_lang_char(l, cp < 0 ? 0xFFFD : (uint32_t)cp), r);
        len = at;
    }
    return r;
}

static int by_text(const void *a, const void *b) { return hn_str_compare(*(const hone_str *)a, *(const hone_str *)b); }

/* Sorted words that are equal up to byte `at`. */
static hn_lang word_tree(hn_langs *l, const hone_str *w, size_t n, size_t at)
{
    hn_list v = { 0 };
    size_t i = 0;
    if (n == 1) return hn_lang_text(l, w->ptr + at, w->len - at);
    for (; i < n && w[i].len == at; i++)
        if (i == 0) hn_list_put(l, &v, HN_LANG_EMPTY);
    while (i < n && !l->failed) {
        size_t used, end = i + 1;
        hn_utf8_next((const unsigned char *)w[i].ptr + at, w[i].len - at, &used);
        while (end < n && w[end].len >= at + used && memcmp(w[end].ptr + at, w[i].ptr + at, used) == 0) end++;
        /* what all of them begin with needs no call of its own */
        size_t same_to = at + used;
        while (end - i > 1 && w[i].len > same_to && w[end - 1].len > same_to) {
            size_t u;
            hn_utf8_next((const unsigned char *)w[i].ptr + same_to, w[i].len - same_to, &u);
            if (w[end - 1].len < same_to + u || memcmp(w[i].ptr + same_to, w[end - 1].ptr + same_to, u) != 0) break;
            same_to += u;
        }
        hn_list_put(
            l, &v, hn_lang_cat(l, hn_lang_text(l, w[i].ptr + at, same_to - at), word_tree(l, w + i, end - i, same_to)));
        i = end;
    }
    hn_lang r = hn_lang_or_all(l, v.data, v.n);
    hn_list_drop(l, &v);
    return r;
}

hn_lang hn_lang_words(hn_langs *l, const hone_str *words, size_t n)
{
    if (n == 0) return HN_LANG_NONE;
    hone_str *w = grow(l, NULL, 0, n * sizeof *w);
    if (!w) return HN_LANG_NONE;
    memcpy(w, words, n * sizeof *w);
    qsort(w, n, sizeof *w, by_text);
    hn_lang r = word_tree(l, w, n, 0);
    l->bytes -= n * sizeof *w;
    free(w);
    return r;
}

/* ---- derivatives ------------------------------------------------------------------------------------ */

/* Places where what a character leads to may change. */
static void cuts(hn_langs *l, hn_lang id, hn_list *out)
{
    hn_term t = l->t[id];
    if (!spend(l, 1)) return;
    switch ((hn_term_kind)t.kind) {
    case K_NONE:
    case K_EMPTY: return;
    case K_SET:
        for (uint32_t i = 0; i < t.b; i++) {
            hn_list_put(l, out, l->range[t.a + i].lo);
            hn_list_put(l, out, l->range[t.a + i].hi + 1);
        }
        return;
    case K_CAT:
        cuts(l, t.a, out);
        if (l->t[t.a].accepts) cuts(l, t.b, out);
        return;
    case K_OR:
    case K_AND:
        for (uint32_t i = 0; i < t.b; i++) cuts(l, l->kids.data[t.a + i], out);
        return;
    case K_NOT:
    case K_REP: cuts(l, t.a, out); return;
    case K_MOD:
        for (uint32_t c = '.'; c <= '9' + 1; c++) hn_list_put(l, out, c); /* '.', '/', '0' … */
        return;
    }
}

static bool in_set(const hn_langs *l, const hn_term *t, uint32_t cp)
{
    uint32_t lo = 0, hi = t->b;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (l->range[t->a + mid].hi < cp) lo = mid + 1;
        else hi = mid;
    }
    return lo < t->b && l->range[t->a + lo].lo <= cp;
}

/* What may follow cp. */
static hn_lang derive(hn_langs *l, hn_lang id, uint32_t cp)
{
    hn_term t = l->t[id]; /* a copy: the store moves */
    if (!spend(l, 1)) return HN_LANG_NONE;
    switch ((hn_term_kind)t.kind) {
    case K_NONE:
    case K_EMPTY: return HN_LANG_NONE;
    case K_SET: return in_set(l, &t, cp) ? HN_LANG_EMPTY : HN_LANG_NONE;
    case K_CAT: {
        hn_lang r = hn_lang_cat(l, derive(l, t.a, cp), t.b);
        return l->t[t.a].accepts ? hn_lang_or(l, r, derive(l, t.b, cp)) : r;
    }
    case K_OR:
    case K_AND: {
        hn_list v = { 0 };
        for (uint32_t i = 0; i < t.b && !l->failed; i++) {
            hn_lang d = derive(l, l->kids.data[t.a + i], cp);
            if (d != HN_LANG_NONE || t.kind == K_AND) hn_list_put(l, &v, d);
        }
        hn_lang r = t.kind == K_OR ? hn_lang_or_all(l, v.data, v.n) : and_all(l, v.data, v.n);
        hn_list_drop(l, &v);
        return r;
    }
    case K_NOT: return hn_lang_not(l, derive(l, t.a, cp));
    case K_REP:
        return hn_lang_cat(l, derive(l, t.a, cp),
                           hn_lang_repeat(l, t.a, t.b ? t.b - 1 : 0, t.c == HN_LANG_ENDLESS ? t.c : t.c - 1));
    case K_MOD:
        if (cp == '.' && t.c) return multiple(l, t.a, t.b, false);
        if (cp < '0' || cp > '9') return HN_LANG_NONE;
        return multiple(l, t.a, (uint32_t)(((uint64_t)t.b * 10 + cp - '0') % t.a), t.c);
    }
    return HN_LANG_NONE;
}

/* All transitions of t, some of them perhaps to terms without a text. */
static const hn_fan *fan_of(hn_langs *l, hn_lang t)
{
    if (l->failed || l->fan[t]) return l->failed ? NULL : l->fan[t];
    hn_list cut = { 0 }, to = { 0 };
    hn_list_put(l, &cut, 0);
    hn_list_put(l, &cut, HN_SURROGATE_LO);
    hn_list_put(l, &cut, HN_SURROGATE_HI + 1);
    cuts(l, t, &cut);
    if (cut.n) qsort(cut.data, cut.n, sizeof *cut.data, by_number);
    for (size_t i = 0; i < cut.n && !l->failed; i++) {
        uint32_t lo = cut.data[i], hi = (i + 1 < cut.n ? cut.data[i + 1] : HN_CP_MAX + 1) - 1;
        if (lo > HN_CP_MAX || lo == HN_SURROGATE_LO || (i + 1 < cut.n && cut.data[i + 1] == lo)) continue;
        hn_lang d = derive(l, t, lo);
        if (d == HN_LANG_NONE) continue;
        if (to.n && to.data[to.n - 1] == d && to.data[to.n - 2] + 1 == lo) {
            to.data[to.n - 2] = hi;
            continue;
        }
        hn_list_put(l, &to, lo);
        hn_list_put(l, &to, hi);
        hn_list_put(l, &to, d);
    }
    size_t n = to.n / 3;
    hn_fan *f = grow(l, NULL, 0, sizeof *f + n * (sizeof *f->range + sizeof *f->to));
    if (f) {
        f->n = (uint32_t)n;
        f->range = (hn_range *)(f + 1);
        f->to = (hn_lang *)(f->range + n);
        for (size_t i = 0; i < n; i++) {
            f->range[i] = (hn_range){ to.data[3 * i], to.data[3 * i + 1] };
            f->to[i] = to.data[3 * i + 2];
        }
        l->fan[t] = f;
    }
    hn_list_drop(l, &cut);
    hn_list_drop(l, &to);
    return f;
}

static bool surely_live(const hn_langs *l, hn_lang t)
{
    return t != HN_LANG_NONE && (l->t[t].accepts || !l->t[t].boolean || l->t[t].life > 0);
}

/* Depth first towards any term that holds a text: what lies on the way there holds one, too; where there is none,
 * nothing that was seen does. */
bool hn_lang_live(hn_langs *l, hn_lang t)
{
    if (l->failed || t == HN_LANG_NONE || l->t[t].life < 0) return false;
    if (surely_live(l, t)) return true;
    hn_list path = { 0 }, next = { 0 }, seen = { 0 };
    bool found = false;
    l->epoch++;
    l->mark[t] = l->epoch;
    hn_list_put(l, &path, t);
    hn_list_put(l, &next, 0);
    hn_list_put(l, &seen, t);
    while (path.n && !found && !l->failed) {
        const hn_fan *f = fan_of(l, path.data[path.n - 1]);
        if (!f) break;
        uint32_t i = next.data[next.n - 1]++;
        if (i >= f->n) {
            path.n--, next.n--;
            continue;
        }
        hn_lang u = f->to[i];
        for (uint32_t k = 0; i == 0 && k < f->n && !found; k++)
            found = surely_live(l, f->to[k]); /* the near ones first */
        if (found) break;
        if (l->t[u].life == 0 && l->mark[u] != l->epoch) {
            l->mark[u] = l->epoch;
            hn_list_put(l, &path, u);
            hn_list_put(l, &next, 0);
            hn_list_put(l, &seen, u);
        }
    }
    if (!l->failed) {
        const hn_list *told = found ? &path : &seen;
        for (size_t i = 0; i < told->n; i++) l->t[told->data[i]].life = found ? 1 : -1;
    }
    hn_list_drop(l, &path);
    hn_list_drop(l, &next);
    hn_list_drop(l, &seen);
    return found && !l->failed;
}

const hn_lang_state *hn_lang_open(hn_langs *l, hn_lang t)
{
    if (l->failed) return NULL;
    if (l->state[t]) return l->state[t];
    const hn_fan *f = fan_of(l, t);
    if (!f) return NULL;
    hn_lang_state *s = grow(l, NULL, 0, sizeof *s + f->n * (sizeof *s->range + sizeof *s->to));
    if (!s) return NULL;
    memset(s->ascii, 0, sizeof s->ascii);
    hn_range *range = (hn_range *)(s + 1);
    hn_lang *to = (hn_lang *)(range + f->n);
    s->n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        if (!hn_lang_live(l, f->to[i])) continue;
        range[s->n] = f->range[i];
        to[s->n++] = f->to[i];
        for (uint32_t c = f->range[i].lo; c < 128 && c <= f->range[i].hi; c++) s->ascii[c] = f->to[i];
    }
    s->range = range;
    s->to = to;
    s->pure = s->n == 2 && range[0].lo == 0 && range[1].hi == HN_CP_MAX && to[0] == t && to[1] == t;
    if (l->failed) {
        l->bytes -= sizeof *s + f->n * (sizeof *s->range + sizeof *s->to);
        free(s);
        return NULL;
    }
    return l->state[t] = s;
}

bool hn_lang_accepts(const hn_langs *l, hn_lang t) { return l->t[t].accepts; }

bool hn_lang_matches(hn_langs *l, hn_lang t, const char *utf8, size_t len)
{
    for (size_t at = 0, used; at < len && t != HN_LANG_NONE; at += used) {
        int32_t cp = hn_utf8_next((const unsigned char *)utf8 + at, len - at, &used);
        if (cp < 0) return false;
        t = derive(l, t, (uint32_t)cp);
    }
    return !l->failed && l->t[t].accepts;
}

/* ---- life --------------------------------------------------------------------------------------------- */

hn_langs *hn_langs_new(size_t max_bytes)
{
    hn_langs *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->max_bytes = max_bytes;
    l->steps = UINT64_MAX;
    hn_range any[] = { { 0, HN_SURROGATE_LO - 1 }, { HN_SURROGATE_HI + 1, HN_CP_MAX } };
    intern(l, (hn_term){ .kind = K_NONE });
    intern(l, (hn_term){ .kind = K_EMPTY, .accepts = true });
    hn_lang one = hn_lang_set(l, any, 2);
    /* the one endless repetition whose own number the rules of hn_lang_repeat name */
    intern(l, (hn_term){ .kind = K_REP, .accepts = true, .height = 2, .a = one, .b = 0, .c = HN_LANG_ENDLESS });
    if (l->failed) {
        hn_langs_free(l);
        return NULL;
    }
    return l;
}

void hn_langs_free(hn_langs *l)
{
    if (!l) return;
    for (uint32_t i = 0; i < l->n; i++) {
        free(l->fan[i]);
        free(l->state[i]);
    }
    free(l->t);
    free(l->slot);
    free(l->kids.data);
    free(l->range);
    free(l->fan);
    free(l->state);
    free(l->mark);
    free(l);
}

size_t hn_langs_bytes(const hn_langs *l) { return l->bytes; }

void hn_langs_lose(hn_langs *l) { give_up(l, HONE_E_NOMEM, "out of memory"); }

void hn_langs_limit(hn_langs *l, size_t max_bytes) { l->max_bytes = max_bytes > l->bytes ? max_bytes : l->bytes; }

size_t hn_langs_left(const hn_langs *l) { return l->max_bytes - l->bytes; }

uint32_t hn_langs_count(const hn_langs *l) { return l->n; }

bool hn_langs_full(const hn_langs *l) { return l->full; }

bool hn_langs_failed(const hn_langs *l) { return l->failed != HONE_OK; }

void hn_langs_allow(hn_langs *l, uint64_t steps)
{
    l->steps = steps;
    l->failed = HONE_OK;
    l->full = false;
}

hone_status hn_langs_check(const hn_langs *l, hone_error *err)
{
    return l->failed ? HN_FAIL(err, l->failed, "grammar: %s", l->why) : HONE_OK;
}
