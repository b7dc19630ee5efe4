/* hone_file: the public view of a GGUF file. Owns nothing but a few marks that make
 * string arrays quick to index; refuses to know what the entries mean. */
#include "gguf/identity.h"
#include "base/floats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Strings and nested arrays have no fixed size, so every MARK-th element's place is
 * noted at open: any element is then at most MARK - 1 steps away, and the handle stays
 * immutable (threads may share it). */
enum { MARK = 16 };

struct hone_file {
    hn_gguf *g;
    uint64_t **mark; /* [n_kv]; NULL for scalars and arrays of fixed-size elements */
};

static bool step(const hn_gguf_array *a, uint64_t *pos, hone_str *s, hn_gguf_array *inner)
{
    return a->elem_type == HONE_KV_STRING ? hn_gguf_next_str(a, pos, s) : hn_gguf_next_array(a, pos, inner);
}

static bool make_marks(hone_file *f, uint64_t kv)
{
    hn_gguf_array a, inner;
    hone_str s;
    if (!hn_gguf_kv_array(f->g, kv, &a) || hn_gguf_type_size(a.elem_type) || a.count <= MARK) return true;
    uint64_t *m = malloc((a.count + MARK - 1) / MARK * sizeof *m), pos = 0;
    if (!m) return false;
    for (uint64_t i = 0; i < a.count; i++) {
        if (i % MARK == 0) m[i / MARK] = pos;
        step(&a, &pos, &s, &inner);
    }
    f->mark[kv] = m;
    return true;
}

hone_status hone_file_open(hone_file **out, const char *path, hone_error *err)
{
    hone_status st;
    if (out) *out = NULL;
    HN_NEED(err, out, "a place for the file");
    HN_NEED(err, path, "the path of a GGUF file");
    hone_file *f = calloc(1, sizeof *f);
    if (!f) return HN_FAIL(err, HONE_E_NOMEM, "file handle");
    if ((st = hn_gguf_open(&f->g, path, err)) != HONE_OK) goto fail;
    uint64_t n = hn_gguf_n_kv(f->g);
    f->mark = calloc(n ? n : 1, sizeof *f->mark);
    bool ok = f->mark != NULL;
    for (uint64_t i = 0; ok && i < n; i++) ok = make_marks(f, i);
    if (!ok) {
        st = HN_FAIL(err, HONE_E_NOMEM, "marks of %" PRIu64 " metadata entries", n);
        goto fail;
    }
    *out = f;
    return HONE_OK;
fail:
    hone_file_close(f);
    return st;
}

void hone_file_close(hone_file *f)
{
    if (!f) return;
    if (f->mark)
        for (uint64_t i = 0; i < hn_gguf_n_kv(f->g); i++) free(f->mark[i]);
    free(f->mark);
    hn_gguf_close(f->g);
    free(f);
}

uint32_t hone_file_version(const hone_file *f) { return f ? hn_gguf_version(f->g) : 0; }
uint64_t hone_file_size(const hone_file *f) { return f ? hn_gguf_size(f->g) : 0; }
int32_t hone_file_n_parts(const hone_file *f) { return f ? hn_gguf_n_parts(f->g) : 0; }
uint64_t hone_file_n_kv(const hone_file *f) { return f ? hn_gguf_n_kv(f->g) : 0; }
uint64_t hone_file_n_tensors(const hone_file *f) { return f ? hn_gguf_n_tensors(f->g) : 0; }

void hone_file_kv(const hone_file *f, uint64_t i, hone_kv *out)
{
    if (!out) return;
    *out = (hone_kv){ .key = { "", 0 } };
    if (f && i < hn_gguf_n_kv(f->g)) hn_gguf_kv(f->g, i, out);
}

static uint64_t load_le(const unsigned char *p, uint32_t n)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < n; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

static void widen(hone_kv *out, uint64_t u)
{
    switch (out->type) {
    case HONE_KV_U8:
    case HONE_KV_U16:
    case HONE_KV_U32:
    case HONE_KV_U64: out->v.u = u; break;
    case HONE_KV_I8: out->v.i = (int8_t)(uint8_t)u; break;
    case HONE_KV_I16: out->v.i = (int16_t)(uint16_t)u; break;
    case HONE_KV_I32: out->v.i = (int32_t)(uint32_t)u; break;
    case HONE_KV_I64: out->v.i = (int64_t)u; break;
    case HONE_KV_F32: out->v.f = (double)hn_bits_f32((uint32_t)u); break;
    case HONE_KV_F64: memcpy(&out->v.f, &u, sizeof u); break;
    case HONE_KV_BOOL: out->v.b = u != 0; break;
    case HONE_KV_STRING:
    case HONE_KV_ARRAY: break;
    }
}

bool hone_file_kv_elem(const hone_file *f, uint64_t kv, uint64_t i, hone_kv *out)
{
    hn_gguf_array a, inner = { 0 };
    hone_kv entry;
    if (!out) return false;
    *out = (hone_kv){ .key = { "", 0 } };
    if (!f || kv >= hn_gguf_n_kv(f->g) || !hn_gguf_kv_array(f->g, kv, &a) || i >= a.count) return false;
    hn_gguf_kv(f->g, kv, &entry);
    *out = (hone_kv){ .key = entry.key, .type = a.elem_type, .elem_type = a.elem_type, .count = 1 };
    uint32_t size = hn_gguf_type_size(a.elem_type);
    if (size) {
        widen(out, load_le(a.data + i * size, size));
        return true;
    }
    uint64_t pos = f->mark[kv] ? f->mark[kv][i / MARK] : 0;
    for (uint64_t k = f->mark[kv] ? i % MARK : i;; k--) {
        if (!step(&a, &pos, &out->v.s, &inner)) return false;
        if (k == 0) break;
    }
    if (a.elem_type == HONE_KV_ARRAY) {
        out->elem_type = inner.elem_type;
        out->count = inner.count;
    }
    return true;
}

void hone_file_tensor(const hone_file *f, uint64_t i, hone_tensor_info *out)
{
    if (!out) return;
    *out = (hone_tensor_info){ .name = { "", 0 }, .type_name = "" };
    if (!f || i >= hn_gguf_n_tensors(f->g)) return;
    const hn_gguf_tensor *t = hn_gguf_tensor_at(f->g, i);
    *out = (hone_tensor_info){ .name = t->name,
                               .type = (uint32_t)t->type,
                               .type_name = hn_type_get((uint32_t)t->type)->name,
                               .n_dim = t->n_dim,
                               .offset = t->offset,
                               .n_bytes = t->n_bytes,
                               .part = t->part };
    memcpy(out->ne, t->ne, sizeof out->ne);
}

int64_t hone_file_find_tensor(const hone_file *f, const char *name)
{
    const hn_gguf_tensor *t = f && name ? hn_gguf_find_tensor(f->g, name) : NULL;
    return t ? t - hn_gguf_tensor_at(f->g, 0) : -1;
}

hone_status hone_file_read_f32(const hone_file *f, uint64_t i, uint64_t first, uint64_t n, float *dst, hone_error *err)
{
    HN_FLOATS;
    HN_NEED(err, f, "an open file");
    if (n) HN_NEED(err, dst, "room for n elements");
    const char *path = HN_ESC(hn_gguf_path(f->g), strlen(hn_gguf_path(f->g)));
    if (i >= hn_gguf_n_tensors(f->g))
        return HN_FAIL(err, HONE_E_ARG, "%s: tensor %" PRIu64 ", expected less than %" PRIu64, path, i,
                       hn_gguf_n_tensors(f->g));
    const hn_gguf_tensor *t = hn_gguf_tensor_at(f->g, i);
    const hn_type_info *ti = hn_type_get((uint32_t)t->type);
    uint64_t total = t->n_bytes / ti->block_bytes * ti->block_elems;
    if (first % ti->block_elems || n % ti->block_elems)
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: tensor '%s': elements from %" PRIu64 ", %" PRIu64
                       " of them, expected multiples of %s's block of %" PRIu32,
                       path, HN_ESC(t->name.ptr, t->name.len), first, n, ti->name, ti->block_elems);
    if (!hn_in_range(first, n, total))
        return HN_FAIL(err, HONE_E_ARG,
                       "%s: tensor '%s': elements from %" PRIu64 ", %" PRIu64 " of them, but it has %" PRIu64, path,
                       HN_ESC(t->name.ptr, t->name.len), first, n, total);
    if (n) ti->dequantize(dst, (const unsigned char *)t->data + first / ti->block_elems * ti->block_bytes, (int64_t)n);
    return HONE_OK;
}

hone_status hone_file_check(const hone_file *f, hone_error *err)
{
    HN_NEED(err, f, "an open file");
    return hn_gguf_check_data(f->g, err);
}

bool hone_type_block(uint32_t type, uint32_t *elems, uint32_t *bytes, const char **name)
{
    const hn_type_info *ti = hn_type_get(type);
    if (elems) *elems = ti ? ti->block_elems : 0;
    if (bytes) *bytes = ti ? ti->block_bytes : 0;
    if (name) *name = ti ? ti->name : NULL;
    return ti != NULL;
}

hone_status hone_file_identity(const hone_file *f, bool kept_only, char *hex, const hone_progress *pr, hone_error *err)
{
    hn_identity id;
    hone_status st = HONE_OK;
    HN_NEED(err, hex, "room for 65 characters");
    hex[0] = 0;
    HN_NEED(err, f, "an open file");
    bool known = hn_identity_known(f->g, &id);
    int e = known ? 0 : errno;
    if (known) hn_hex(hex, id.content, sizeof id.content);
    else if (kept_only && e)
        st = HN_FAIL(err, HONE_E_IO, "%s: what is known of it cannot be read: %s",
                     HN_ESC(hn_gguf_path(f->g), strlen(hn_gguf_path(f->g))), strerror(e));
    else if (!kept_only && (st = hn_identity_of(f->g, &id, NULL, pr, err)) == HONE_OK)
        hn_hex(hex, id.content, sizeof id.content);
    return st;
}
