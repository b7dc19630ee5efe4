/* gguf_amend: what a handle says of its file, said otherwise: other names of keys and tensors, values that are missing,
 * arrays and tensors cut short. The file stays as it is, and so do its directory, fingerprint and identity; what the
 * file says is kept beside (..._in_file), for whoever writes it on (hn_gguf_put_filed). Owns the memory of what it
 * adds; refuses to know why (model/dialect.c does). Nobody may hold views of entries or tensors meanwhile. */
#include "gguf/gguf_file.h"

#include <inttypes.h>
#include <stdlib.h>

static hone_status no_memory(const hn_gguf *g, hone_error *err)
{
    return HN_FAIL(err, HONE_E_NOMEM, "%s: metadata", g->parts[0].label);
}

static void *own(hn_gguf *g, size_t n)
{
    if (!g->own) g->own = hn_arena_new();
    return g->own ? hn_arena_alloc(g->own, n) : NULL;
}

/* Before the first change of an entry: what the file says of itself does not depend on who reads it. */
static bool keep_filed_kv(hn_gguf *g)
{
    const hn_gguf_table *t = &g->parts[0].kv;
    if (g->filed_kv) return true;
    hn_gguf_entry *e = own(g, (size_t)(t->n + 1) * sizeof *e);
    if (!e) return false;
    if (t->n) memcpy(e, t->e, (size_t)t->n * sizeof *e);
    g->filed_kv = e;
    g->n_filed_kv = t->n;
    return true;
}

/* Of entries that are no longer where, or called as, they were. */
static hone_status index_keys(hn_gguf *g, hone_error *err)
{
    hn_gguf_table *t = &g->parts[0].kv;
    int64_t dup = -1;
    hn_index_free(&t->ix);
    for (uint64_t i = 0; i < t->n; i++) {
        if (!hn_index_add(&t->ix, t->e, sizeof *t->e, (uint32_t)i, &dup)) return no_memory(g, err);
        if (dup >= 0) {
            const hone_str *key = &t->e[i].kv.key;
            return HN_FAIL(err, HONE_E_FORMAT, "%s: key '%s' is there under two names", g->parts[0].label,
                           HN_ESC(key->ptr, key->len));
        }
    }
    return HONE_OK;
}

static hone_status index_tensors(hn_gguf *g, hone_error *err)
{
    int64_t dup = -1;
    hn_index_free(&g->t_ix);
    for (uint64_t i = 0; i < g->n_t; i++) {
        if (!hn_index_add(&g->t_ix, g->t, sizeof *g->t, (uint32_t)i, &dup)) return no_memory(g, err);
        if (dup >= 0)
            return HN_FAIL(err, HONE_E_FORMAT, "%s: tensor %s is there under two names", g->parts[g->t[i].part].label,
                           HN_ESC(g->t[i].name.ptr, g->t[i].name.len));
    }
    return HONE_OK;
}

/* ---- entries as bytes --------------------------------------------------------------------------------------- */

static void put_u32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++) p[i] = (unsigned char)(v >> (8 * i));
}

static void put_u64(unsigned char *p, uint64_t v) { put_u32(p, (uint32_t)v), put_u32(p + 4, (uint32_t)(v >> 32)); }

/* Gives e the bytes an entry of this key and type has in a file; the place of its n bytes of value is returned. */
static unsigned char *make_raw(hn_gguf *g, hn_gguf_entry *e, const char *key, size_t n_key, uint32_t type, uint64_t n)
{
    unsigned char *p = keep_filed_kv(g) ? own(g, 8 + n_key + 4 + (size_t)n) : NULL;
    if (!p) return NULL;
    put_u64(p, n_key);
    memcpy(p + 8, key, n_key);
    put_u32(p + 8 + n_key, type);
    e->raw = p;
    e->raw_len = 8 + n_key + 4 + n;
    e->kv.key = (hone_str){ (const char *)p + 8, n_key };
    return p + 8 + n_key + 4;
}

/* The entry called `to` with the value it had. */
static hone_status rename_entry(hn_gguf *g, hn_gguf_entry *e, const char *to, size_t n_to, hone_error *err)
{
    uint64_t head = 8 + e->kv.key.len + 4, n = e->raw_len - head;
    const unsigned char *value = e->raw + head;
    uint32_t type = hn_load_u32(value - 4);
    unsigned char *p = make_raw(g, e, to, n_to, type, n);
    if (!p) return no_memory(g, err);
    memcpy(p, value, (size_t)n);
    return HONE_OK;
}

/* Place for an entry called key: the one that is there, or a new one. */
static hn_gguf_entry *place(hn_gguf *g, const char *key, bool *is_new)
{
    hn_gguf_table *t = &g->parts[0].kv;
    int64_t i = hn_gguf_find(g, key);
    *is_new = i < 0;
    if (i >= 0) return &t->e[i];
    hn_gguf_entry *e = realloc(t->e, (size_t)(t->n + 1) * sizeof *e);
    if (!e) return NULL;
    t->e = e;
    e[t->n] = (hn_gguf_entry){ 0 };
    return &e[t->n];
}

/* Entry key with n bytes of value of this type, which are written at *value. */
static hone_status set(hn_gguf *g, const char *key, hone_kv_type type, uint64_t n, hn_gguf_entry **out,
                       unsigned char **value, hone_error *err)
{
    bool is_new;
    hn_gguf_entry *e = place(g, key, &is_new);
    if (!e || !(*value = make_raw(g, e, key, strlen(key), (uint32_t)type, n))) return no_memory(g, err);
    e->kv = (hone_kv){ .key = e->kv.key, .type = type };
    e->elems = NULL;
    e->n_bytes = 0;
    *out = e;
    if (!is_new) return index_keys(g, err); /* the key's bytes lie elsewhere now */
    g->parts[0].kv.n++;
    return index_keys(g, err);
}

hone_status hn_gguf_set_u32(hn_gguf *g, const char *key, uint32_t v, hone_error *err)
{
    hn_gguf_entry *e;
    unsigned char *p;
    hone_status st = set(g, key, HONE_KV_U32, 4, &e, &p, err);
    if (st != HONE_OK) return st;
    put_u32(p, v);
    e->kv.v.u = v;
    return HONE_OK;
}

hone_status hn_gguf_set_bool(hn_gguf *g, const char *key, bool v, hone_error *err)
{
    hn_gguf_entry *e;
    unsigned char *p;
    hone_status st = set(g, key, HONE_KV_BOOL, 1, &e, &p, err);
    if (st != HONE_OK) return st;
    *p = v;
    e->kv.v.b = v;
    return HONE_OK;
}

hone_status hn_gguf_set_f32(hn_gguf *g, const char *key, float v, hone_error *err)
{
    hn_gguf_entry *e;
    unsigned char *p;
    uint32_t bits;
    hone_status st = set(g, key, HONE_KV_F32, 4, &e, &p, err);
    if (st != HONE_OK) return st;
    memcpy(&bits, &v, 4);
    put_u32(p, bits);
    e->kv.v.f = (double)v;
    return HONE_OK;
}

hone_status hn_gguf_set_str(hn_gguf *g, const char *key, const char *s, hone_error *err)
{
    hn_gguf_entry *e;
    unsigned char *p;
    size_t n = strlen(s);
    hone_status st = set(g, key, HONE_KV_STRING, 8 + n, &e, &p, err);
    if (st != HONE_OK) return st;
    put_u64(p, n);
    memcpy(p + 8, s, n);
    e->kv.v.s = (hone_str){ (const char *)p + 8, n };
    return HONE_OK;
}

hone_status hn_gguf_set_array(hn_gguf *g, const char *key, hone_kv_type elem, const void *data, uint64_t count,
                              hone_error *err)
{
    hn_gguf_entry *e;
    unsigned char *p;
    uint64_t n = count * hn_gguf_type_size((uint32_t)elem);
    hone_status st = set(g, key, HONE_KV_ARRAY, 12 + n, &e, &p, err);
    if (st != HONE_OK) return st;
    put_u32(p, (uint32_t)elem);
    put_u64(p + 4, count);
    memcpy(p + 12, data, (size_t)n);
    e->kv.elem_type = elem;
    e->kv.count = count;
    e->elems = p + 12;
    e->n_bytes = n;
    return HONE_OK;
}

/* ---- keys --------------------------------------------------------------------------------------------------- */

hone_status hn_gguf_drop_key(hn_gguf *g, const char *key, hone_error *err)
{
    hn_gguf_table *t = &g->parts[0].kv;
    int64_t i = hn_gguf_find(g, key);
    if (i < 0) return HONE_OK;
    if (!keep_filed_kv(g)) return no_memory(g, err);
    memmove(&t->e[i], &t->e[i + 1], (size_t)(t->n - (uint64_t)i - 1) * sizeof *t->e);
    t->n--;
    return index_keys(g, err);
}

hone_status hn_gguf_rename_key(hn_gguf *g, const char *from, const char *to, hone_error *err)
{
    int64_t i = hn_gguf_find(g, from), there = hn_gguf_find(g, to);
    if (i < 0 || there >= 0) return HONE_OK;
    hone_status st = rename_entry(g, &g->parts[0].kv.e[i], to, strlen(to), err);
    return st == HONE_OK ? index_keys(g, err) : st;
}

hone_status hn_gguf_rename_keys(hn_gguf *g, const char *from, const char *to, hone_error *err)
{
    hn_gguf_table *t = &g->parts[0].kv;
    size_t n_from = strlen(from), n_to = strlen(to);
    char key[512];
    for (uint64_t i = 0; i < t->n; i++) {
        hone_str k = t->e[i].kv.key;
        if (k.len <= n_from || memcmp(k.ptr, from, n_from) != 0 || k.len - n_from + n_to > sizeof key) continue;
        memcpy(key, to, n_to);
        memcpy(key + n_to, k.ptr + n_from, k.len - n_from);
        hone_status st = rename_entry(g, &t->e[i], key, k.len - n_from + n_to, err);
        if (st != HONE_OK) return st;
    }
    return index_keys(g, err);
}

hone_status hn_gguf_cut_array(hn_gguf *g, const char *key, uint64_t count, hone_error *err)
{
    hn_gguf_array a;
    hone_str s;
    uint64_t n = 0;
    int64_t i = hn_gguf_find(g, key);
    if (i < 0 || !hn_gguf_kv_array(g, (uint64_t)i, &a) || a.count <= count) return HONE_OK;
    if (a.elem_type == HONE_KV_ARRAY) return HONE_OK;
    if (a.elem_type != HONE_KV_STRING) n = count * hn_gguf_type_size((uint32_t)a.elem_type);
    else
        for (uint64_t k = 0, pos = 0; k < count; k++, n += 8 + s.len)
            if (!hn_gguf_next_str(&a, &pos, &s) || s.len > a.n_bytes - n) return HONE_OK;
    if (n > a.n_bytes) return HONE_OK; /* the file changed meanwhile: as it was */
    hn_gguf_entry *e = &g->parts[0].kv.e[i];
    unsigned char *p = make_raw(g, e, key, strlen(key), HONE_KV_ARRAY, 12 + n);
    if (!p) return no_memory(g, err);
    put_u32(p, (uint32_t)a.elem_type);
    put_u64(p + 4, count);
    memcpy(p + 12, a.data, (size_t)n);
    e->kv.count = count;
    e->elems = p + 12;
    e->n_bytes = n;
    return index_keys(g, err);
}

/* ---- tensors ------------------------------------------------------------------------------------------------ */

/* "blk.7.x": the place of x, else 0. */
static size_t behind_block(hone_str name)
{
    size_t i = 4;
    if (name.len < 6 || memcmp(name.ptr, "blk.", 4) != 0) return 0;
    while (i < name.len && name.ptr[i] >= '0' && name.ptr[i] <= '9') i++;
    return i > 4 && i < name.len && name.ptr[i] == '.' ? i + 1 : 0;
}

const hn_gguf_tensor *hn_gguf_tensor_in_file(const hn_gguf *g, uint64_t i)
{
    return g->filed ? &g->filed[i] : &g->t[i];
}

uint64_t hn_gguf_n_kv_in_file(const hn_gguf *g) { return g->filed_kv ? g->n_filed_kv : g->parts[0].kv.n; }

hone_str hn_gguf_kv_in_file(const hn_gguf *g, uint64_t i, hone_kv *out)
{
    const hn_gguf_entry *e = g->filed_kv ? &g->filed_kv[i] : &g->parts[0].kv.e[i];
    *out = e->kv;
    return (hone_str){ (const char *)e->raw, (size_t)e->raw_len };
}

hone_str hn_gguf_str_in_file(const hn_gguf *g, const char *key)
{
    for (uint64_t i = 0; i < hn_gguf_n_kv_in_file(g); i++) {
        hone_kv kv;
        hn_gguf_kv_in_file(g, i, &kv);
        if (kv.key.len == strlen(key) && !memcmp(kv.key.ptr, key, kv.key.len))
            return kv.type == HONE_KV_STRING ? kv.v.s : (hone_str){ "", 0 };
    }
    return (hone_str){ "", 0 };
}

/* Before the first change: what a file is known by does not depend on who reads it. */
static hone_status keep_filed(hn_gguf *g, hone_error *err)
{
    if (g->filed) return HONE_OK;
    hn_gguf_tensor *t = own(g, (size_t)g->n_t * sizeof *t);
    if (!t) return no_memory(g, err);
    memcpy(t, g->t, (size_t)g->n_t * sizeof *t);
    g->filed = t;
    return HONE_OK;
}

hone_status hn_gguf_rename_tensors(hn_gguf *g, const char *from, const char *to, hone_error *err)
{
    size_t n_from = strlen(from), n_to = strlen(to);
    bool any = false;
    for (uint64_t i = 0; i < g->n_t; i++) {
        hone_str *name = &g->t[i].name;
        size_t at = behind_block(*name);
        if (name->len - at != n_from || memcmp(name->ptr + at, from, n_from) != 0) continue;
        hone_status st = keep_filed(g, err);
        if (st != HONE_OK) return st;
        char *s = own(g, at + n_to + 1);
        if (!s) return no_memory(g, err);
        memcpy(s, name->ptr, at);
        memcpy(s + at, to, n_to);
        *name = (hone_str){ s, at + n_to };
        any = true;
    }
    return any ? index_tensors(g, err) : HONE_OK;
}

hone_status hn_gguf_cut_rows(hn_gguf *g, const char *name, uint64_t rows, hone_error *err)
{
    int64_t i = hn_index_find(&g->t_ix, g->t, sizeof *g->t, name, strlen(name));
    hn_gguf_tensor *t = i < 0 ? NULL : &g->t[i];
    if (!t || t->n_dim != 2 || !rows || t->ne[1] <= rows) return HONE_OK;
    hone_status st = keep_filed(g, err);
    if (st != HONE_OK) return st;
    t->n_bytes = t->n_bytes / t->ne[1] * rows;
    t->ne[1] = rows;
    return HONE_OK;
}
