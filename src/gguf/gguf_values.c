/* gguf_values: what a GGUF file holds, handed out: metadata by key, elements of arrays, tensors by name. The reader
 * (gguf_read.c) has checked it; what is fetched from the mapping again is compared again. */
#include "gguf/gguf_file.h"

#include <inttypes.h>
#include <math.h>

/* ---- value types --------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t size;
} value_types[] = {
    [HONE_KV_U8] = { "u8", 1 },       [HONE_KV_I8] = { "i8", 1 },     [HONE_KV_U16] = { "u16", 2 },
    [HONE_KV_I16] = { "i16", 2 },     [HONE_KV_U32] = { "u32", 4 },   [HONE_KV_I32] = { "i32", 4 },
    [HONE_KV_F32] = { "f32", 4 },     [HONE_KV_BOOL] = { "bool", 1 }, [HONE_KV_STRING] = { "string", 0 },
    [HONE_KV_ARRAY] = { "array", 0 }, [HONE_KV_U64] = { "u64", 8 },   [HONE_KV_I64] = { "i64", 8 },
    [HONE_KV_F64] = { "f64", 8 },
};
_Static_assert(sizeof value_types / sizeof *value_types == HN_GGUF_VALUE_TYPES, "all of them");

uint32_t hn_gguf_type_size(uint32_t type) { return type < HN_GGUF_VALUE_TYPES ? value_types[type].size : 0; }
const char *hn_gguf_type_name(uint32_t type) { return type < HN_GGUF_VALUE_TYPES ? value_types[type].name : "?"; }

/* ---- entries ------------------------------------------------------------------------- */

const hn_gguf_entry *hn_gguf_find_entry(const hn_gguf_table *t, const char *key)
{
    int64_t i = hn_index_find(&t->ix, t->e, sizeof *t->e, key, strlen(key));
    return i < 0 ? NULL : &t->e[i];
}

static bool is_unsigned(hone_kv_type t)
{
    return t == HONE_KV_U8 || t == HONE_KV_U16 || t == HONE_KV_U32 || t == HONE_KV_U64;
}
static bool is_signed(hone_kv_type t)
{
    return t == HONE_KV_I8 || t == HONE_KV_I16 || t == HONE_KV_I32 || t == HONE_KV_I64;
}

const char *hn_gguf_seen(char buf[HN_GGUF_SAID], const hone_kv *kv)
{
    if (is_unsigned(kv->type)) snprintf(buf, HN_GGUF_SAID, "%s %" PRIu64, hn_gguf_type_name(kv->type), kv->v.u);
    else if (is_signed(kv->type)) snprintf(buf, HN_GGUF_SAID, "%s %" PRId64, hn_gguf_type_name(kv->type), kv->v.i);
    else if (kv->type == HONE_KV_BOOL) snprintf(buf, HN_GGUF_SAID, "bool %s", kv->v.b ? "true" : "false");
    else if (kv->type == HONE_KV_STRING) snprintf(buf, HN_GGUF_SAID, "string '%s'", HN_ESC(kv->v.s.ptr, kv->v.s.len));
    else if (kv->type == HONE_KV_ARRAY)
        snprintf(buf, HN_GGUF_SAID, "array of %" PRIu64 " %s", kv->count, hn_gguf_type_name(kv->elem_type));
    else snprintf(buf, HN_GGUF_SAID, "%s %g", hn_gguf_type_name(kv->type), kv->v.f);
    return buf;
}
hone_status hn_gguf_get_uint(const hn_gguf_part *p, const char *key, uint64_t max, uint64_t *out, bool *found,
                             hone_error *err)
{
    const hn_gguf_entry *e = hn_gguf_find_entry(&p->kv, key);
    if (found) *found = e != NULL;
    if (!e) return HONE_OK;
    bool ok = is_unsigned(e->kv.type) ? e->kv.v.u <= max
                                      : is_signed(e->kv.type) && e->kv.v.i >= 0 && (uint64_t)e->kv.v.i <= max;
    if (!ok)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: key '%s' is %s, expected an integer from 0 to %" PRIu64, p->label, key,
                       SEEN(&e->kv), max);
    *out = is_unsigned(e->kv.type) ? e->kv.v.u : (uint64_t)e->kv.v.i;
    return HONE_OK;
}

/* ---- what was read -------------------------------------------------------------------------------------------- */

const char *hn_gguf_path(const hn_gguf *g) { return g->path; }
uint32_t hn_gguf_version(const hn_gguf *g) { return g->parts[0].version; }
int32_t hn_gguf_n_parts(const hn_gguf *g) { return g->n_parts; }
uint64_t hn_gguf_alignment(const hn_gguf *g) { return g->parts[0].align; }
bool hn_gguf_files(const hn_gguf *g, hn_known_file *out)
{
    for (int32_t i = 0; i < g->n_parts; i++) {
        if (!g->parts[i].mapped) return false;
        out[i] = (hn_known_file){ g->parts[i].file, g->parts[i].stamp };
    }
    return true;
}

uint64_t hn_gguf_size(const hn_gguf *g)
{
    uint64_t n = 0;
    for (int32_t i = 0; i < g->n_parts; i++) n += g->parts[i].size;
    return n;
}

uint64_t hn_gguf_fingerprint(const hn_gguf *g)
{
    uint64_t h = HN_FNV_INIT;
    for (int32_t i = 0; i < g->n_parts; i++) h = hn_fnv1a(h, g->parts[i].map, (size_t)g->parts[i].dir_bytes);
    return h;
}

const void *hn_gguf_directory(const hn_gguf *g, int32_t i, uint64_t *n_bytes)
{
    *n_bytes = g->parts[i].dir_bytes;
    return g->parts[i].map;
}

uint64_t hn_gguf_n_kv(const hn_gguf *g) { return g->parts[0].kv.n; }
void hn_gguf_kv(const hn_gguf *g, uint64_t i, hone_kv *out) { *out = g->parts[0].kv.e[i].kv; }

hone_str hn_gguf_kv_raw(const hn_gguf *g, uint64_t i)
{
    const hn_gguf_entry *e = &g->parts[0].kv.e[i];
    return (hone_str){ (const char *)e->raw, (size_t)e->raw_len };
}

bool hn_gguf_kv_array(const hn_gguf *g, uint64_t i, hn_gguf_array *out)
{
    const hn_gguf_entry *e = &g->parts[0].kv.e[i];
    if (e->kv.type != HONE_KV_ARRAY) return false;
    *out = (hn_gguf_array){ e->kv.elem_type, e->kv.count, e->elems, e->n_bytes };
    return true;
}

int64_t hn_gguf_find(const hn_gguf *g, const char *key)
{
    const hn_gguf_table *t = &g->parts[0].kv;
    return hn_index_find(&t->ix, t->e, sizeof *t->e, key, strlen(key));
}

static const hone_kv *present(const hn_gguf *g, const char *key, bool *found)
{
    const hn_gguf_entry *e = hn_gguf_find_entry(&g->parts[0].kv, key);
    if (found) *found = e != NULL;
    return e ? &e->kv : NULL;
}

static hone_status wrong(const hn_gguf *g, const hone_kv *kv, const char *want, hone_error *err)
{
    return HN_FAIL(err, HONE_E_FORMAT, "%s: key '%s' is %s, expected %s", g->parts[0].label,
                   HN_ESC(kv->key.ptr, kv->key.len), SEEN(kv), want);
}

hone_status hn_gguf_get_u32(const hn_gguf *g, const char *key, uint32_t *out, bool *found, hone_error *err)
{
    uint64_t v = 0;
    bool there;
    hone_status st = hn_gguf_get_uint(&g->parts[0], key, UINT32_MAX, &v, &there, err);
    if (found) *found = there;
    if (there && st == HONE_OK) *out = (uint32_t)v;
    return st;
}

hone_status hn_gguf_get_f32(const hn_gguf *g, const char *key, float *out, bool *found, hone_error *err)
{
    const hone_kv *kv = present(g, key, found);
    if (!kv) return HONE_OK;
    if ((kv->type != HONE_KV_F32 && kv->type != HONE_KV_F64) || !isfinite((float)kv->v.f))
        return wrong(g, kv, "a finite f32", err);
    *out = (float)kv->v.f;
    return HONE_OK;
}

hone_status hn_gguf_get_bool(const hn_gguf *g, const char *key, bool *out, bool *found, hone_error *err)
{
    const hone_kv *kv = present(g, key, found);
    if (!kv) return HONE_OK;
    if (kv->type != HONE_KV_BOOL) return wrong(g, kv, "a bool", err);
    *out = kv->v.b;
    return HONE_OK;
}

hone_status hn_gguf_get_str(const hn_gguf *g, const char *key, hone_str *out, bool *found, hone_error *err)
{
    const hone_kv *kv = present(g, key, found);
    if (!kv) return HONE_OK;
    if (kv->type != HONE_KV_STRING) return wrong(g, kv, "a string", err);
    *out = kv->v.s;
    return HONE_OK;
}

hone_status hn_gguf_get_array(const hn_gguf *g, const char *key, hn_gguf_array *out, bool *found, hone_error *err)
{
    const hone_kv *kv = present(g, key, found);
    if (!kv) return HONE_OK;
    if (kv->type != HONE_KV_ARRAY) return wrong(g, kv, "an array", err);
    hn_gguf_kv_array(g, (uint64_t)hn_gguf_find(g, key), out);
    return HONE_OK;
}

/* A walk's position: element number above, byte offset below. Both fit: counts are at
 * most 2^24, metadata at most 2^29 bytes. Lengths are fetched from the mapping again
 * here, so they are compared again; what no longer fits reads as empty. */
enum { POS_SHIFT = 36 };
_Static_assert((uint64_t)HN_GGUF_MAX_METADATA < (uint64_t)1 << POS_SHIFT &&
                   (uint64_t)HN_GGUF_MAX_ARRAY < (uint64_t)1 << (64 - POS_SHIFT),
               "a walk's position");

static bool at_element(const hn_gguf_array *a, uint64_t pos, hone_kv_type type, uint64_t *i, uint64_t *off)
{
    *i = pos >> POS_SHIFT;
    *off = pos & (((uint64_t)1 << POS_SHIFT) - 1);
    return a->elem_type == type && *i < a->count && *off <= a->n_bytes;
}

bool hn_gguf_next_str(const hn_gguf_array *a, uint64_t *pos, hone_str *out)
{
    uint64_t i, off;
    if (!at_element(a, *pos, HONE_KV_STRING, &i, &off)) return false;
    uint64_t rest = a->n_bytes - off, n = rest >= 8 ? hn_load_u64(a->data + off) : UINT64_MAX;
    if (rest < 8 || n > rest - 8) {
        *out = (hone_str){ "", 0 };
        off = a->n_bytes;
    } else {
        *out = (hone_str){ (const char *)a->data + off + 8, (size_t)n };
        off += 8 + n;
    }
    *pos = (i + 1) << POS_SHIFT | off;
    return true;
}

/* Bytes of an array value at p (element type, count, elements), 0 if it does not fit. */
static uint64_t array_bytes(const unsigned char *p, uint64_t size, int depth, hn_gguf_array *out)
{
    if (size < 12 || depth > HN_GGUF_MAX_DEPTH) return 0;
    uint32_t et = hn_load_u32(p);
    uint64_t n = hn_load_u64(p + 4), rest = size - 12, off = 0, k;
    if (et >= HN_GGUF_VALUE_TYPES || n > HN_GGUF_MAX_ARRAY) return 0;
    *out = (hn_gguf_array){ (hone_kv_type)et, n, p + 12, 0 };
    if (hn_gguf_type_size(et)) {
        if (n > rest / hn_gguf_type_size(et)) return 0;
        off = n * hn_gguf_type_size(et);
    } else {
        hn_gguf_array inner;
        for (uint64_t i = 0; i < n; i++, off += k) {
            if (et == HONE_KV_ARRAY) {
                k = array_bytes(out->data + off, rest - off, depth + 1, &inner);
                if (!k) return 0;
            } else {
                if (rest - off < 8) return 0;
                k = hn_load_u64(out->data + off);
                if (k > rest - off - 8) return 0;
                k += 8;
            }
        }
    }
    out->n_bytes = off;
    return 12 + off;
}

bool hn_gguf_next_array(const hn_gguf_array *a, uint64_t *pos, hn_gguf_array *out)
{
    uint64_t i, off;
    if (!at_element(a, *pos, HONE_KV_ARRAY, &i, &off)) return false;
    uint64_t k = array_bytes(a->data + off, a->n_bytes - off, 2, out);
    if (!k) {
        *out = (hn_gguf_array){ HONE_KV_U8, 0, a->data, 0 };
        off = a->n_bytes;
    } else off += k;
    *pos = (i + 1) << POS_SHIFT | off;
    return true;
}

uint64_t hn_gguf_n_tensors(const hn_gguf *g) { return g->n_t; }
const hn_gguf_tensor *hn_gguf_tensor_at(const hn_gguf *g, uint64_t i) { return &g->t[i]; }

const hn_gguf_tensor *hn_gguf_find_tensor(const hn_gguf *g, const char *name)
{
    int64_t i = hn_index_find(&g->t_ix, g->t, sizeof *g->t, name, strlen(name));
    return i < 0 ? NULL : &g->t[i];
}
