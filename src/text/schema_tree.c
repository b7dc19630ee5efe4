/* The reader of schemas, their pointers, and decimal numbers of any size. */
#include "text/schema_tree.h"
#include "base/utf8.h"

#include <stdlib.h>

/* ---- reading ----------------------------------------------------------------------------------- */

typedef struct reader {
    hn_jread j;
    hn_arena *arena;
    uint32_t n;
} reader;

static hone_status no_memory(reader *r) { return HN_FAIL(r->j.err, HONE_E_NOMEM, "%s", r->j.name); }

static hone_status copy(reader *r, const hn_jread_text *t, hone_str *out)
{
    char *s = hn_arena_alloc(r->arena, t->n + 1);
    if (!s) return no_memory(r);
    hn_jread_unescape(s, t);
    *out = (hone_str){ s, t->n };
    return HONE_OK;
}

static hone_status value(reader *r, hn_jnode *x);

static int by_key(const void *a, const void *b)
{
    return hn_str_compare((*(hn_jnode *const *)a)->key, (*(hn_jnode *const *)b)->key);
}

static int key_to(const void *key, const void *b)
{
    return hn_str_compare(*(const hone_str *)key, (*(hn_jnode *const *)b)->key);
}

/* Sorts the members by their keys, of which no two may be the same; where they are many, they stay so. */
static hone_status sort_keys(reader *r, hn_jnode *o)
{
    enum { MANY = 16 };
    hone_status st = HONE_OK;
    if (o->n < 2) return HONE_OK;
    bool stay = o->n >= MANY;
    hn_jnode **list = stay ? hn_arena_alloc(r->arena, o->n * sizeof *list) : malloc(o->n * sizeof *list);
    if (!list) return no_memory(r);
    uint32_t n = 0;
    for (hn_jnode *x = o->first; x; x = x->next) list[n++] = x;
    qsort(list, n, sizeof *list, by_key);
    for (uint32_t i = 1; i < n && st == HONE_OK; i++)
        if (hn_str_same(list[i - 1]->key, list[i]->key))
            st = HN_FAIL(r->j.err, HONE_E_ARG, "%s: %s: the key is there twice", r->j.name, HN_JPOINTER(list[i]));
    if (stay) o->by_key = list;
    else free(list);
    return st;
}

static hone_status children(reader *r, hn_jnode *x, char bracket)
{
    bool more;
    hone_status st = hn_jread_open(&r->j, bracket, &more);
    hn_jnode **at = &x->first;
    while (st == HONE_OK && more) {
        hn_jnode *c = hn_arena_alloc(r->arena, sizeof *c);
        if (!c) return no_memory(r);
        c->parent = x;
        c->index = x->n++;
        *at = c;
        at = &c->next;
        if (bracket == '{') {
            hn_jread_text t;
            if ((st = hn_jread_key(&r->j, &t)) == HONE_OK) st = copy(r, &t, &c->key);
        }
        if (st == HONE_OK) st = value(r, c);
        if (st == HONE_OK) st = hn_jread_next(&r->j, bracket, &more);
    }
    return st == HONE_OK && bracket == '{' ? sort_keys(r, x) : st;
}

static hone_status value(reader *r, hn_jnode *x)
{
    hn_jread_item it;
    char c = hn_jread_peek(&r->j);
    const char *at = r->j.p;
    x->number = r->n++;
    if (c == '{' || c == '[') {
        x->kind = c == '{' ? HN_J_OBJECT : HN_J_ARRAY;
        return children(r, x, c);
    }
    hone_status st = hn_jread_scalar(&r->j, &it);
    if (st != HONE_OK) return st;
    switch (it.kind) {
    case HN_JSON_BOOL: x->kind = it.truth ? HN_J_TRUE : HN_J_FALSE; return HONE_OK;
    case HN_JSON_NUMBER:
        x->kind = HN_J_NUMBER;
        x->str = (hone_str){ at, (size_t)(r->j.p - at) };
        return HONE_OK;
    case HN_JSON_STRING: x->kind = HN_J_STRING; return copy(r, &it.str, &x->str);
    default: x->kind = HN_J_NULL; return HONE_OK;
    }
}

hone_status hn_jtree(hn_jnode **out, hn_arena *arena, const char *text, size_t len, int max_depth, const char *name,
                     hone_error *err)
{
    *out = NULL;
    hn_json_rules rules = { .max_depth = max_depth, .flags = HN_JSON_ALLOW_NUL | HN_JSON_BIG, .fault = HONE_E_ARG };
    reader r = { .arena = arena };
    char *own = hn_arena_strndup(arena, text, len); /* numbers keep pointing into it */
    hn_jnode *root = hn_arena_alloc(arena, sizeof *root);
    if (!own || !root) return HN_FAIL(err, HONE_E_NOMEM, "%s", name);
    hone_status st = hn_jread_begin(&r.j, own, len, &rules, name, NULL, err);
    if (st == HONE_OK) st = value(&r, root);
    if (st == HONE_OK) st = hn_jread_end(&r.j);
    if (st == HONE_OK) *out = root;
    return st;
}

/* ---- looking ------------------------------------------------------------------------------------ */

bool hn_str_same(hone_str a, hone_str b) { return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0); }

bool hn_str_is(hone_str a, const char *b) { return a.len == strlen(b) && memcmp(a.ptr, b, a.len) == 0; }

const hn_jnode *hn_jget_str(const hn_jnode *o, hone_str key)
{
    if (!o || o->kind != HN_J_OBJECT) return NULL;
    if (o->by_key) {
        hn_jnode *const *found = bsearch(&key, o->by_key, o->n, sizeof *o->by_key, key_to);
        return found ? *found : NULL;
    }
    for (const hn_jnode *x = o->first; x; x = x->next)
        if (hn_str_same(x->key, key)) return x;
    return NULL;
}

const hn_jnode *hn_jget(const hn_jnode *o, const char *key) { return hn_jget_str(o, (hone_str){ key, strlen(key) }); }

void hn_jdrop(hn_jnode *o, hn_jnode **at)
{
    hn_jnode *x = *at;
    *at = x->next;
    o->n--;
    if (!o->by_key) return;
    uint32_t i = 0;
    while (o->by_key[i] != x) i++;
    memmove(o->by_key + i, o->by_key + i + 1, (o->n - i) * sizeof(hn_jnode *));
}

static bool read_into(hn_dec *d, char *digit, hone_str text);

/* Numbers of which one has more digits than hn_dec takes are equal only if their texts are. */
static bool same_number(const hn_jnode *a, const hn_jnode *b)
{
    enum { LONGEST = 2 * HN_DEC_MAX + 64 }; /* with a sign, a point and an exponent */
    char digits[2][LONGEST];
    hn_dec x, y;
    if (hn_str_same(a->str, b->str)) return true;
    if (a->str.len >= LONGEST || b->str.len >= LONGEST) return false;
    return read_into(&x, digits[0], a->str) && read_into(&y, digits[1], b->str) && hn_dec_compare(&x, &y) == 0;
}

bool hn_jequal(const hn_jnode *a, const hn_jnode *b)
{
    if (a->kind != b->kind || a->n != b->n) return false;
    switch (a->kind) {
    case HN_J_NUMBER: return same_number(a, b);
    case HN_J_STRING: return hn_str_same(a->str, b->str);
    case HN_J_ARRAY:
        for (const hn_jnode *x = a->first, *y = b->first; x; x = x->next, y = y->next)
            if (!hn_jequal(x, y)) return false;
        return true;
    case HN_J_OBJECT:
        for (const hn_jnode *x = a->first; x; x = x->next) {
            const hn_jnode *y = hn_jget_str(b, x->key);
            if (!y || !hn_jequal(x, y)) return false;
        }
        return true;
    default: return true;
    }
}

static uint32_t key_hash(hone_str k)
{
    uint64_t h = k.len;
    for (size_t i = 0; i < k.len; i++) h = hn_mix64(h ^ (unsigned char)k.ptr[i]);
    return (uint32_t)h;
}

bool hn_keyset_put(hn_keyset *k, hn_arena *arena, hone_str key, uint32_t *at)
{
    if (k->n == k->cap) {
        uint32_t cap = k->cap * 2 + 16, n_slot = 32;
        while (n_slot < cap * 2) n_slot *= 2;
        hone_str *v = hn_arena_alloc(arena, cap * sizeof *v);
        uint32_t *slot = hn_arena_alloc(arena, n_slot * sizeof *slot);
        if (!v || !slot) return false;
        if (k->n) memcpy(v, k->v, k->n * sizeof *v);
        *k = (hn_keyset){ .v = v, .n = k->n, .cap = cap, .slot = slot, .n_slot = n_slot };
        for (uint32_t i = 0; i < k->n; i++) {
            uint32_t p = key_hash(v[i]) & (n_slot - 1);
            while (slot[p]) p = (p + 1) & (n_slot - 1);
            slot[p] = i + 1;
        }
    }
    uint32_t p = key_hash(key) & (k->n_slot - 1);
    for (; k->slot[p]; p = (p + 1) & (k->n_slot - 1))
        if (hn_str_same(k->v[k->slot[p] - 1], key)) {
            *at = k->slot[p] - 1;
            return true;
        }
    k->slot[p] = k->n + 1;
    k->v[k->n] = key;
    *at = k->n++;
    return true;
}

char *hn_jpointer(char *dst, size_t cap, const hn_jnode *x)
{
    const hn_jnode *path[300];
    int n = 0;
    for (; x->parent && n < 300; x = x->parent) path[n++] = x;
    size_t at = 0;
    dst[0] = 0;
    while (n-- > 0 && at + 1 < cap) {
        char part[128], raw[64];
        const hn_jnode *p = path[n];
        if (p->parent->kind == HN_J_ARRAY) {
            snprintf(part, sizeof part, "%u", p->index);
        } else {
            size_t k = 0;
            for (size_t i = 0; i < p->key.len && k + 3 < sizeof raw; i++) {
                char c = p->key.ptr[i];
                if (c == '~' || c == '/') raw[k++] = '~', raw[k++] = c == '~' ? '0' : '1';
                else raw[k++] = c;
            }
            hn_escape(part, sizeof part, raw, k);
        }
        int w = snprintf(dst + at, cap - at, "/%s", part);
        at += w < 0 ? 0 : (size_t)w < cap - at ? (size_t)w : cap - at - 1;
    }
    return dst;
}

/* One token of a pointer, "~1" and "~0" undone, is the key. */
static bool token_is(hone_str token, hone_str key)
{
    size_t k = 0;
    for (size_t i = 0; i < token.len; i++, k++) {
        char c = token.ptr[i];
        if (c == '~' && i + 1 < token.len) c = token.ptr[++i] == '1' ? '/' : '~';
        if (k >= key.len || key.ptr[k] != c) return false;
    }
    return k == key.len;
}

const hn_jnode *hn_jfollow(const hn_jnode *root, hone_str pointer)
{
    const hn_jnode *x = root;
    size_t at = 0;
    while (x && at < pointer.len) {
        if (pointer.ptr[at] != '/') return NULL;
        size_t end = ++at;
        while (end < pointer.len && pointer.ptr[end] != '/') end++;
        hone_str token = { pointer.ptr + at, end - at };
        const hn_jnode *c = x->kind == HN_J_OBJECT || x->kind == HN_J_ARRAY ? x->first : NULL;
        char number[16];
        if (x->kind == HN_J_OBJECT && !memchr(token.ptr, '~', token.len)) c = hn_jget_str(x, token);
        else
            for (; c; c = c->next) {
                if (x->kind == HN_J_ARRAY) snprintf(number, sizeof number, "%u", c->index);
                if (x->kind == HN_J_OBJECT ? token_is(token, c->key) : hn_str_is(token, number)) break;
            }
        x = c;
        at = end;
    }
    return x;
}

/* ---- decimal numbers ------------------------------------------------------------------------------ */

/* digit: room for text.len + 1 */
static bool read_into(hn_dec *d, char *digit, hone_str text)
{
    const char *p = text.ptr, *end = p + text.len;
    uint32_t n = 0;
    int64_t point = 0, exponent = 0;
    bool behind = false, minus = false;
    *d = (hn_dec){ .negative = *p == '-', .digit = digit };
    for (p += *p == '-'; p < end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            behind = true;
            continue;
        }
        if (n || *p != '0') {
            digit[n++] = *p;
            point += !behind;
        } else {
            point -= behind;
        }
    }
    if (p < end) {
        minus = *++p == '-';
        if (*p == '-' || *p == '+') p++;
        for (; p < end; p++)
            if (exponent < 1000000) exponent = exponent * 10 + (*p - '0');
    }
    while (n && digit[n - 1] == '0') n--;
    point += minus ? -exponent : exponent;
    d->n = n;
    if (n == 0) {
        d->negative = false;
        point = 0;
    }
    d->point = (int32_t)point;
    return point <= HN_DEC_MAX && (int64_t)n - point <= HN_DEC_MAX;
}

bool hn_dec_read(hn_dec *d, hn_arena *arena, hone_str text)
{
    char *digit = hn_arena_alloc(arena, text.len + 1);
    *d = (hn_dec){ 0 };
    return digit && read_into(d, digit, text);
}

static int compare_size(const hn_dec *a, const hn_dec *b)
{
    if (a->n == 0 || b->n == 0) return (a->n > 0) - (b->n > 0);
    if (a->point != b->point) return a->point < b->point ? -1 : 1;
    int c = memcmp(a->digit, b->digit, a->n < b->n ? a->n : b->n);
    return c ? (c < 0 ? -1 : 1) : (a->n > b->n) - (a->n < b->n);
}

int hn_dec_compare(const hn_dec *a, const hn_dec *b)
{
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    return a->negative ? -compare_size(a, b) : compare_size(a, b);
}

bool hn_dec_whole(const hn_dec *d) { return d->n == 0 || d->point >= (int32_t)d->n; }

uint32_t hn_dec_rest(const hn_dec *a, uint32_t m)
{
    uint64_t r = 0;
    for (int32_t i = 0; i < a->point; i++) r = (r * 10 + (i < (int32_t)a->n ? (uint64_t)(a->digit[i] - '0') : 0)) % m;
    return (uint32_t)r;
}
