/* The GGUF writer: version 3, little-endian, offsets the running padded sum, as every
 * reader takes it. Refuses to know what the tensors hold, whose sizes come from the type
 * table, and how a file comes to be whole (base/file.h). */
#include "base/file.h"
#include "gguf/gguf.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct bytes {
    unsigned char *p;
    size_t n, cap;
} bytes;

typedef struct out_tensor {
    hone_str name; /* first, as hn_index wants; owned */
    hn_type type;
    int32_t n_dim;
    uint64_t ne[4], n_bytes, offset;
} out_tensor;

struct hn_gguf_writer {
    bytes kv;      /* encoded entries */
    hone_str *key; /* [n_kv], owned */
    size_t n_kv, cap_kv;
    hn_index key_ix;
    out_tensor *t;
    size_t n_t, cap_t;
    hn_index t_ix;
    uint64_t align, data_bytes; /* padded sum of the tensors so far */
    /* from write_begin on */
    enum { OPEN, WRITING, FAILED, DONE } state;
    hn_file *file;
    char label[512];
    size_t i_t;    /* tensor being written */
    uint64_t done; /* bytes of it given */
};

/* ---- encoding ------------------------------------------------------------------------- */

static bool reserve(bytes *b, uint64_t more)
{
    if (more > SIZE_MAX / 4 || b->n > SIZE_MAX / 4) return false;
    size_t want = b->n + (size_t)more;
    if (want <= b->cap) return true;
    size_t cap = b->cap ? b->cap : 1024;
    while (cap < want) cap *= 2;
    unsigned char *p = realloc(b->p, cap);
    if (!p) return false;
    b->p = p;
    b->cap = cap;
    return true;
}

/* Space is reserved by the caller. */
static void add_raw(bytes *b, const void *p, size_t n)
{
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void add_u32(bytes *b, uint32_t v)
{
    unsigned char c[4] = { (unsigned char)v, (unsigned char)(v >> 8), (unsigned char)(v >> 16),
                           (unsigned char)(v >> 24) };
    add_raw(b, c, 4);
}

static void add_u64(bytes *b, uint64_t v)
{
    add_u32(b, (uint32_t)v);
    add_u32(b, (uint32_t)(v >> 32));
}

static void add_str(bytes *b, const char *s, size_t n)
{
    add_u64(b, n);
    add_raw(b, s, n);
}

/* ---- metadata --------------------------------------------------------------------------- */

hone_status hn_gguf_writer_new(hn_gguf_writer **out, hone_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return HN_FAIL(err, HONE_E_NOMEM, "gguf writer");
    (*out)->align = HN_GGUF_DEFAULT_ALIGN;
    return HONE_OK;
}

static hone_status is_open(const hn_gguf_writer *w, const char *name, hone_error *err)
{
    return w->state == OPEN ? HONE_OK
                            : HN_FAIL(err, HONE_E_ARG, "'%s' put after the file was begun", HN_ESC(name, strlen(name)));
}

/* Takes key into the index and makes room for an entry whose value has n_value bytes
 * after the type. On success the key and type are encoded already. */
static hone_status begin_entry(hn_gguf_writer *w, const char *key, size_t key_len, hone_kv_type type, uint64_t n_value,
                               hone_error *err)
{
    const char *fault = hn_gguf_key_fault(key, key_len);
    if (fault) return HN_FAIL(err, HONE_E_ARG, "metadata key '%s' %s", HN_ESC(key, key_len), fault);
    if (w->n_kv == HN_GGUF_MAX_KV)
        return HN_FAIL(err, HONE_E_ARG, "metadata key '%s': more than %d entries", HN_ESC(key, key_len),
                       HN_GGUF_MAX_KV);
    uint64_t n = 8 + key_len + 4 + n_value;
    if (n > HN_GGUF_MAX_METADATA || w->kv.n > HN_GGUF_MAX_METADATA - n)
        return HN_FAIL(err, HONE_E_ARG, "metadata key '%s': %" PRIu64 " bytes more exceed %d of metadata",
                       HN_ESC(key, key_len), n, HN_GGUF_MAX_METADATA);
    if (w->n_kv == w->cap_kv) {
        size_t cap = w->cap_kv ? 2 * w->cap_kv : 64;
        hone_str *k = realloc(w->key, cap * sizeof *k);
        if (!k) return HN_FAIL(err, HONE_E_NOMEM, "metadata key '%s'", HN_ESC(key, key_len));
        w->key = k;
        w->cap_kv = cap;
    }
    char *copy = malloc(key_len);
    int64_t dup = -1;
    w->key[w->n_kv] = (hone_str){ copy, key_len };
    if (copy) memcpy(copy, key, key_len);
    if (!copy || !reserve(&w->kv, n) || !hn_index_add(&w->key_ix, w->key, sizeof *w->key, (uint32_t)w->n_kv, &dup)) {
        free(copy);
        return HN_FAIL(err, HONE_E_NOMEM, "metadata key '%s': %" PRIu64 " bytes", HN_ESC(key, key_len), n);
    }
    if (dup >= 0) {
        free(copy);
        return HN_FAIL(err, HONE_E_ARG, "metadata key '%s' is already there", HN_ESC(key, key_len));
    }
    w->n_kv++;
    add_str(&w->kv, key, key_len);
    add_u32(&w->kv, type);
    return HONE_OK;
}

static bool is_alignment(const char *key, size_t len) { return len == 17 && memcmp(key, "general.alignment", 17) == 0; }

static hone_status set_alignment(hn_gguf_writer *w, uint32_t a, hone_error *err)
{
    if (a < HN_GGUF_MIN_ALIGN || a > HN_GGUF_MAX_ALIGN || (a & (a - 1)))
        return HN_FAIL(err, HONE_E_ARG,
                       "metadata key 'general.alignment' is %" PRIu32 ", expected a power of two from %d to %d", a,
                       HN_GGUF_MIN_ALIGN, HN_GGUF_MAX_ALIGN);
    if (w->n_t) return HN_FAIL(err, HONE_E_ARG, "metadata key 'general.alignment' put after %zu tensors", w->n_t);
    w->align = a;
    return HONE_OK;
}

static hone_status put_scalar(hn_gguf_writer *w, const char *key, hone_kv_type type, uint64_t bits, hone_error *err)
{
    hone_status st = is_open(w, key, err);
    if (st != HONE_OK) return st;
    size_t n = strlen(key);
    if (is_alignment(key, n)) {
        if (type != HONE_KV_U32)
            return HN_FAIL(err, HONE_E_ARG, "metadata key 'general.alignment' is %s, expected u32",
                           hn_gguf_type_name(type));
        if (hn_index_find(&w->key_ix, w->key, sizeof *w->key, key, n) < 0 &&
            (st = set_alignment(w, (uint32_t)bits, err)) != HONE_OK)
            return st;
    }
    uint32_t size = hn_gguf_type_size(type);
    if ((st = begin_entry(w, key, n, type, size, err)) != HONE_OK) return st;
    if (size == 1) w->kv.p[w->kv.n++] = (unsigned char)bits;
    else if (size == 4) add_u32(&w->kv, (uint32_t)bits);
    else add_u64(&w->kv, bits);
    return HONE_OK;
}

hone_status hn_gguf_put_u32(hn_gguf_writer *w, const char *key, uint32_t v, hone_error *err)
{
    return put_scalar(w, key, HONE_KV_U32, v, err);
}
hone_status hn_gguf_put_i32(hn_gguf_writer *w, const char *key, int32_t v, hone_error *err)
{
    return put_scalar(w, key, HONE_KV_I32, (uint32_t)v, err);
}
hone_status hn_gguf_put_u64(hn_gguf_writer *w, const char *key, uint64_t v, hone_error *err)
{
    return put_scalar(w, key, HONE_KV_U64, v, err);
}
hone_status hn_gguf_put_f32(hn_gguf_writer *w, const char *key, float v, hone_error *err)
{
    return put_scalar(w, key, HONE_KV_F32, hn_f32_bits(v), err);
}
hone_status hn_gguf_put_bool(hn_gguf_writer *w, const char *key, bool v, hone_error *err)
{
    return put_scalar(w, key, HONE_KV_BOOL, v, err);
}

static hone_status not_alignment(const char *key, const char *type, hone_error *err)
{
    return is_alignment(key, strlen(key))
               ? HN_FAIL(err, HONE_E_ARG, "metadata key 'general.alignment' is %s, expected u32", type)
               : HONE_OK;
}

hone_status hn_gguf_put_str(hn_gguf_writer *w, const char *key, const char *s, size_t len, hone_error *err)
{
    hone_status st = is_open(w, key, err);
    if (st != HONE_OK || (st = not_alignment(key, "a string", err)) != HONE_OK) return st;
    if (len > HN_GGUF_MAX_STRING)
        return HN_FAIL(err, HONE_E_ARG, "metadata key '%s': string of %zu bytes, at most %d expected",
                       HN_ESC(key, strlen(key)), len, HN_GGUF_MAX_STRING);
    if ((st = begin_entry(w, key, strlen(key), HONE_KV_STRING, 8 + (uint64_t)len, err)) != HONE_OK) return st;
    add_str(&w->kv, s, len);
    return HONE_OK;
}

static hone_status array_ok(const hn_gguf_writer *w, const char *key, uint64_t count, hone_error *err)
{
    hone_status st = is_open(w, key, err);
    if (st != HONE_OK || (st = not_alignment(key, "an array", err)) != HONE_OK) return st;
    if (count > HN_GGUF_MAX_ARRAY)
        return HN_FAIL(err, HONE_E_ARG, "metadata key '%s': array of %" PRIu64 " elements, at most %d expected",
                       HN_ESC(key, strlen(key)), count, HN_GGUF_MAX_ARRAY);
    return HONE_OK;
}

hone_status hn_gguf_put_array(hn_gguf_writer *w, const char *key, hone_kv_type elem, const void *data, uint64_t count,
                              hone_error *err)
{
    hone_status st = array_ok(w, key, count, err);
    if (st != HONE_OK) return st;
    uint32_t size = hn_gguf_type_size(elem);
    if (!size)
        return HN_FAIL(err, HONE_E_ARG, "metadata key '%s': array of %s, expected elements of fixed size",
                       HN_ESC(key, strlen(key)), hn_gguf_type_name(elem));
    const unsigned char *src = data;
    for (uint64_t i = 0; elem == HONE_KV_BOOL && i < count; i++)
        if (src[i] > 1)
            return HN_FAIL(err, HONE_E_ARG, "metadata key '%s': bool %" PRIu64 " is %u, expected 0 or 1",
                           HN_ESC(key, strlen(key)), i, src[i]);
    if ((st = begin_entry(w, key, strlen(key), HONE_KV_ARRAY, 12 + count * size, err)) != HONE_OK) return st;
    add_u32(&w->kv, elem);
    add_u64(&w->kv, count);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    add_raw(&w->kv, src, (size_t)(count * size));
#else
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t j = size; j-- > 0;) w->kv.p[w->kv.n++] = src[i * size + j];
#endif
    return HONE_OK;
}

hone_status hn_gguf_put_str_array(hn_gguf_writer *w, const char *key, const hone_str *s, uint64_t count,
                                  hone_error *err)
{
    hone_status st = array_ok(w, key, count, err);
    if (st != HONE_OK) return st;
    uint64_t n = 12;
    for (uint64_t i = 0; i < count; i++) {
        if (s[i].len > HN_GGUF_MAX_STRING)
            return HN_FAIL(err, HONE_E_ARG, "metadata key '%s': string %" PRIu64 " of %zu bytes, at most %d expected",
                           HN_ESC(key, strlen(key)), i, s[i].len, HN_GGUF_MAX_STRING);
        n += 8 + s[i].len; /* at most 2^24 times 2^26 */
    }
    if ((st = begin_entry(w, key, strlen(key), HONE_KV_ARRAY, n, err)) != HONE_OK) return st;
    add_u32(&w->kv, HONE_KV_STRING);
    add_u64(&w->kv, count);
    for (uint64_t i = 0; i < count; i++) add_str(&w->kv, s[i].ptr, s[i].len);
    return HONE_OK;
}

static bool listed(const char *const *list, hone_str key)
{
    for (; list && *list; list++)
        if (strlen(*list) == key.len && memcmp(*list, key.ptr, key.len) == 0) return true;
    return false;
}

static bool begins(hone_str key, const char *with)
{
    size_t n = strlen(with);
    return key.len >= n && memcmp(key.ptr, with, n) == 0;
}

static hone_status put_entry(hn_gguf_writer *w, const hone_kv *kv, hone_str raw, hone_error *err)
{
    hone_status st;
    size_t head = 8 + kv->key.len + 4;
    if ((st = is_open(w, "metadata", err)) != HONE_OK) return st;
    if (is_alignment(kv->key.ptr, kv->key.len) && (st = set_alignment(w, (uint32_t)kv->v.u, err)) != HONE_OK) return st;
    if ((st = begin_entry(w, kv->key.ptr, kv->key.len, kv->type, raw.len - head, err)) != HONE_OK) return st;
    add_raw(&w->kv, raw.ptr + head, raw.len - head);
    return HONE_OK;
}

hone_status hn_gguf_put_all(hn_gguf_writer *w, const hn_gguf *g, const char *const *except, hone_error *err)
{
    hone_status st = HONE_OK;
    for (uint64_t i = 0; i < hn_gguf_n_kv(g) && st == HONE_OK; i++) {
        hone_kv kv;
        hn_gguf_kv(g, i, &kv);
        if (!begins(kv.key, "split.") && !listed(except, kv.key)) st = put_entry(w, &kv, hn_gguf_kv_raw(g, i), err);
    }
    return st;
}

hone_status hn_gguf_put_filed(hn_gguf_writer *w, const hn_gguf *g, const char *const *except, const char *beginning,
                              hone_error *err)
{
    hone_status st = HONE_OK;
    for (uint64_t i = 0; i < hn_gguf_n_kv_in_file(g) && st == HONE_OK; i++) {
        hone_kv kv;
        hone_str raw = hn_gguf_kv_in_file(g, i, &kv);
        if (begins(kv.key, "split.") || listed(except, kv.key) || (beginning && begins(kv.key, beginning))) continue;
        st = put_entry(w, &kv, raw, err);
    }
    return st;
}

/* ---- tensor descriptions ------------------------------------------------------------------- */

hone_status hn_gguf_put_tensor(hn_gguf_writer *w, const char *name, hn_type type, const uint64_t *ne, int n_dim,
                               hone_error *err)
{
    hone_status st = is_open(w, name, err);
    if (st != HONE_OK) return st;
    size_t len = strlen(name);
    const char *fault = hn_gguf_name_fault(name, len, HN_GGUF_MAX_NAME_WRITE), *esc = HN_ESC(name, len);
    if (fault) return HN_FAIL(err, HONE_E_ARG, "tensor name '%s' %s", esc, fault);
    if (w->n_t == HN_GGUF_MAX_TENSORS)
        return HN_FAIL(err, HONE_E_ARG, "tensor '%s': more than %d tensors", esc, HN_GGUF_MAX_TENSORS);
    const hn_type_info *ti = hn_type_get((uint32_t)type);
    if (!ti) return HN_FAIL(err, HONE_E_ARG, "tensor '%s': unknown type %d", esc, (int)type);
    if (n_dim < 1 || n_dim > 4)
        return HN_FAIL(err, HONE_E_ARG, "tensor '%s': %d dimensions, expected 1 to 4", esc, n_dim);
    out_tensor t = { .type = type, .n_dim = n_dim, .ne = { 1, 1, 1, 1 }, .offset = w->data_bytes };
    uint64_t n = 1, end;
    for (int i = 0; i < n_dim; i++) {
        t.ne[i] = ne[i];
        if (ne[i] == 0 || ne[i] > HN_GGUF_MAX_DIM_SIZE || !hn_mul_u64(n, ne[i], &n) || n > HN_GGUF_MAX_ELEMS)
            return HN_FAIL(err, HONE_E_ARG, "tensor '%s': dimension %d is %" PRIu64 ": zero, or too large", esc, i,
                           ne[i]);
    }
    if (ne[0] % ti->block_elems)
        return HN_FAIL(err, HONE_E_ARG,
                       "tensor '%s': rows of %" PRIu64 " elements, type %s needs a multiple of %" PRIu32, esc, ne[0],
                       ti->name, ti->block_elems);
    if (!hn_tensor_nbytes(ti, t.ne, 4, &t.n_bytes) || !hn_add_u64(w->data_bytes, t.n_bytes, &end) ||
        !hn_round_up(end, w->align, &end) || end > INT64_MAX / 2)
        return HN_FAIL(err, HONE_E_ARG, "tensor '%s': too large", esc);
    if (w->n_t == w->cap_t) {
        size_t cap = w->cap_t ? 2 * w->cap_t : 64;
        out_tensor *p = realloc(w->t, cap * sizeof *p);
        if (!p) return HN_FAIL(err, HONE_E_NOMEM, "tensor '%s'", esc);
        w->t = p;
        w->cap_t = cap;
    }
    char *copy = strdup(name);
    int64_t dup = -1;
    t.name = (hone_str){ copy, len };
    w->t[w->n_t] = t;
    if (!copy || !hn_index_add(&w->t_ix, w->t, sizeof *w->t, (uint32_t)w->n_t, &dup)) {
        free(copy);
        return HN_FAIL(err, HONE_E_NOMEM, "tensor '%s'", esc);
    }
    if (dup >= 0) {
        free(copy);
        return HN_FAIL(err, HONE_E_ARG, "tensor '%s' is already there", esc);
    }
    w->n_t++;
    w->data_bytes = end;
    return HONE_OK;
}

static uint64_t directory_bytes(const hn_gguf_writer *w)
{
    uint64_t n = 24 + (uint64_t)w->kv.n;
    for (size_t i = 0; i < w->n_t; i++) n += 8 + w->t[i].name.len + 4 + 8 * (uint64_t)w->t[i].n_dim + 4 + 8;
    return n;
}

uint64_t hn_gguf_write_size(const hn_gguf_writer *w)
{
    uint64_t n = directory_bytes(w);
    return w->n_t ? ((n + w->align - 1) & ~(w->align - 1)) + w->data_bytes : n;
}

hone_status hn_gguf_write_keys(const hn_gguf_writer *w, void **out, size_t *n, hone_error *err)
{
    bytes b = { 0 };
    *out = NULL;
    if (!reserve(&b, 24 + (uint64_t)w->kv.n)) return HN_FAIL(err, HONE_E_NOMEM, "metadata of %zu keys", w->n_kv);
    add_raw(&b, "GGUF", 4);
    add_u32(&b, 3);
    add_u64(&b, 0);
    add_u64(&b, w->n_kv);
    add_raw(&b, w->kv.p, w->kv.n);
    *out = b.p;
    *n = b.n;
    return HONE_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

static hone_status fail_and_remove(hn_gguf_writer *w, hone_status st)
{
    hn_file_drop(w->file);
    w->file = NULL;
    w->state = FAILED;
    return st;
}

static hone_status write_directory(hn_gguf_writer *w, hone_error *err)
{
    bytes h = { 0 };
    uint64_t n = directory_bytes(w);
    if (!reserve(&h, n - w->kv.n)) return HN_FAIL(err, HONE_E_NOMEM, "%s: directory of %zu tensors", w->label, w->n_t);
    add_raw(&h, "GGUF", 4);
    add_u32(&h, 3);
    add_u64(&h, w->n_t);
    add_u64(&h, w->n_kv);
    hone_status st = hn_file_put(w->file, h.p, h.n, err);
    if (st == HONE_OK) st = hn_file_put(w->file, w->kv.p, w->kv.n, err);
    h.n = 0;
    for (size_t i = 0; i < w->n_t; i++) {
        const out_tensor *t = &w->t[i];
        add_str(&h, t->name.ptr, t->name.len);
        add_u32(&h, (uint32_t)t->n_dim);
        for (int32_t k = 0; k < t->n_dim; k++) add_u64(&h, t->ne[k]);
        add_u32(&h, (uint32_t)t->type);
        add_u64(&h, t->offset);
    }
    if (st == HONE_OK) st = hn_file_put(w->file, h.p, h.n, err);
    if (st == HONE_OK && w->n_t) st = hn_file_put(w->file, NULL, -n & (w->align - 1), err);
    free(h.p);
    return st;
}

hone_status hn_gguf_write_begin(hn_gguf_writer *w, const char *path, hone_error *err)
{
    hone_status st;
    if (w->state != OPEN) return HN_FAIL(err, HONE_E_ARG, "gguf writer begun twice");
    if (!path || !*path) return HN_FAIL(err, HONE_E_ARG, "no file name given to write to");
    hn_escape(w->label, sizeof w->label, path, strlen(path));
    const hn_file_want want = { .n_bytes = hn_gguf_write_size(w) };
    if ((st = hn_file_begin(&w->file, path, &want, err)) != HONE_OK) return fail_and_remove(w, st);
    w->state = WRITING;
    if ((st = write_directory(w, err)) != HONE_OK) return fail_and_remove(w, st);
    return HONE_OK;
}

hone_status hn_gguf_write_data(hn_gguf_writer *w, const void *data, uint64_t n, hone_error *err)
{
    hone_status st;
    if (w->state != WRITING)
        return HN_FAIL(err, HONE_E_ARG, "gguf writer: data given %s",
                       w->state == OPEN ? "before write_begin" : "after the end");
    if (n == 0) return HONE_OK;
    if (w->i_t == w->n_t) {
        st = HN_FAIL(err, HONE_E_ARG, "%s: %" PRIu64 " bytes of data after the last of %zu tensors", w->label, n,
                     w->n_t);
        return fail_and_remove(w, st);
    }
    const out_tensor *t = &w->t[w->i_t];
    if (n > t->n_bytes - w->done) {
        st = HN_FAIL(err, HONE_E_ARG, "%s: tensor '%s': %" PRIu64 " bytes of data given, %" PRIu64 " expected",
                     w->label, HN_ESC(t->name.ptr, t->name.len), w->done + n, t->n_bytes);
        return fail_and_remove(w, st);
    }
    if ((st = hn_file_put(w->file, data, n, err)) != HONE_OK) return fail_and_remove(w, st);
    w->done += n;
    if (w->done == t->n_bytes) {
        st = hn_file_put(w->file, NULL, -t->n_bytes & (w->align - 1), err);
        if (st != HONE_OK) return fail_and_remove(w, st);
        w->done = 0;
        w->i_t++;
    }
    return HONE_OK;
}

hone_status hn_gguf_write_end(hn_gguf_writer *w, hone_error *err)
{
    hone_status st;
    if (w->state != WRITING)
        return HN_FAIL(err, HONE_E_ARG, "gguf writer: ended %s", w->state == OPEN ? "before write_begin" : "twice");
    if (w->i_t < w->n_t) {
        const out_tensor *t = &w->t[w->i_t];
        st = HN_FAIL(err, HONE_E_ARG, "%s: tensor '%s': %" PRIu64 " bytes of data given, %" PRIu64 " expected",
                     w->label, HN_ESC(t->name.ptr, t->name.len), w->done, t->n_bytes);
        return fail_and_remove(w, st);
    }
    if ((st = hn_file_end(w->file, err)) != HONE_OK) return fail_and_remove(w, st);
    w->state = DONE;
    return HONE_OK;
}

void hn_gguf_writer_free(hn_gguf_writer *w)
{
    if (!w) return;
    hn_file_drop(w->file);
    for (size_t i = 0; i < w->n_kv; i++) free((void *)(uintptr_t)w->key[i].ptr);
    for (size_t i = 0; i < w->n_t; i++) free((void *)(uintptr_t)w->t[i].name.ptr);
    free(w->key);
    free(w->t);
    free(w->kv.p);
    hn_index_free(&w->key_ix);
    hn_index_free(&w->t_ix);
    free(w);
}
