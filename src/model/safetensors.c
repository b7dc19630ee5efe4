/* safetensors: one file into the list of tensors
 * (huggingface/safetensors: README.md, safetensors/src/tensor.rs). u64 n; n bytes of JSON, an
 * object of names to {dtype, shape, data_offsets}; data, which the ranges must tile without hole,
 * overlap or tail. Knows the container; refuses to know what the tensors mean. */
#include "model/ckpt.h"

#include <stdlib.h>

enum { MAX_HEADER = 100000000, MAX_META = 1 << 16 };

#define TRY(x)                                \
    do {                                      \
        if ((st = (x)) != HONE_OK) return st; \
    } while (0)

static bool is(hone_str s, const char *t) { return s.len == strlen(t) && memcmp(s.ptr, t, s.len) == 0; }

/* ---- one tensor ---------------------------------------------------------------------------- */

static const struct {
    const char *name;
    hn_type type;
} raw_kinds[HN_RAW_KINDS] = {
    [HN_RAW_BOOL] = { "BOOL", HN_I8 },       [HN_RAW_U8] = { "U8", HN_I8 },
    [HN_RAW_I8] = { "I8", HN_I8 },           [HN_RAW_I16] = { "I16", HN_I16 },
    [HN_RAW_U16] = { "U16", HN_I16 },        [HN_RAW_I32] = { "I32", HN_I32 },
    [HN_RAW_U32] = { "U32", HN_I32 },        [HN_RAW_I64] = { "I64", HN_I64 },
    [HN_RAW_U64] = { "U64", HN_I64 },        [HN_RAW_F8_E4M3] = { "F8_E4M3", HN_I8 },
    [HN_RAW_F8_E5M2] = { "F8_E5M2", HN_I8 }, [HN_RAW_F8_E8M0] = { "F8_E8M0", HN_I8 },
};

const char *hn_ckpt_raw_name(hn_ckpt_raw raw) { return raw_kinds[raw].name; }

static hone_status dtype(hn_ckpt_tensor *to, const hn_jread *j, hone_str t, bool takes_raw, hone_error *err)
{
    static const struct {
        const char *name;
        hn_type type;
    } known[] = { { "F32", HN_F32 }, { "BF16", HN_BF16 }, { "F16", HN_F16 }, { "F64", HN_F64 } };
    static const char *const refused[] = { "C64", "F4", "F6_E2M3", "F6_E3M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ" };
    const char *name = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (is(t, known[i].name)) {
            to->type = known[i].type;
            return HONE_OK;
        }
    for (int i = 1; i < HN_RAW_KINDS && !name; i++) {
        if (!is(t, raw_kinds[i].name)) continue;
        to->type = raw_kinds[i].type;
        to->raw = (hn_ckpt_raw)i;
        if (takes_raw) return HONE_OK;
        name = raw_kinds[i].name;
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (is(t, refused[i])) name = refused[i];
    if (name)
        return HN_FAIL(err, HONE_E_UNSUPPORTED,
                       "%s: %s has dtype %s; expected F32, F16, BF16 or F64: convert the unquantized checkpoint",
                       j->name, HN_ESC(to->name.ptr, to->name.len), name);
    return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has dtype \"%s\"; expected F32, F16, BF16 or F64", j->name,
                   HN_ESC(to->name.ptr, to->name.len), HN_ESC(t.ptr, t.len));
}

/* Outermost first in the file. */
static hone_status shape(hn_ckpt_tensor *t, hn_jread *j)
{
    uint64_t d[HN_CKPT_MAX_DIM];
    bool more;
    hone_status st;
    t->n_dim = 0;
    for (st = hn_jread_open(j, '[', &more); st == HONE_OK && more; st = hn_jread_next(j, '[', &more)) {
        if (t->n_dim == HN_CKPT_MAX_DIM) return hn_jread_fail(j, "at most 8 dimensions");
        TRY(hn_jread_u64(j, &d[t->n_dim++]));
    }
    for (int i = 0; i < HN_CKPT_MAX_DIM; i++) t->ne[i] = i < t->n_dim ? d[t->n_dim - 1 - i] : 1;
    return st;
}

static hone_status check_size(const hn_ckpt_tensor *t, const hn_jread *j, uint64_t begin, uint64_t end, uint64_t data,
                              hone_error *err)
{
    uint64_t n = hn_type_get(t->type)->block_bytes;
    const char *name = HN_ESC(t->name.ptr, t->name.len);
    for (int i = 0; i < t->n_dim; i++)
        if (!hn_mul_u64(n, t->ne[i], &n))
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has shape %s: too large", j->name, name, HN_SHAPE(t));
    if (begin > end || end > data)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has data_offsets [%llu, %llu], expected ascending ones up to %llu",
                       j->name, name, (unsigned long long)begin, (unsigned long long)end, (unsigned long long)data);
    if (end - begin != n)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has %llu bytes of data, expected %llu for %s of shape %s", j->name,
                       name, (unsigned long long)(end - begin), (unsigned long long)n,
                       t->raw ? hn_ckpt_raw_name(t->raw) : hn_type_get(t->type)->name, HN_SHAPE(t));
    return HONE_OK;
}

static hone_status read_tensor(hn_ckpt *c, int32_t part, hone_str name, hn_jread *j, uint64_t base, hone_error *err)
{
    hn_ckpt_tensor t = { .name = name, .part = part };
    bool more, seen[3] = { false };
    uint64_t range[2] = { 0 };
    hone_str key, type = { 0 };
    hone_status st;
    for (st = hn_jread_open(j, '{', &more); st == HONE_OK && more; st = hn_jread_next(j, '{', &more)) {
        TRY(hn_jread_key_str(j, &key));
        int k = is(key, "dtype") ? 0 : is(key, "shape") ? 1 : is(key, "data_offsets") ? 2 : -1;
        if (k < 0 || seen[k])
            return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has \"%s\"%s; expected dtype, shape and data_offsets", j->name,
                           HN_ESC(name.ptr, name.len), HN_ESC(key.ptr, key.len), k < 0 ? "" : " twice");
        seen[k] = true;
        if (k == 0) TRY(hn_jread_str(j, &type));
        if (k == 1) TRY(shape(&t, j));
        if (k == 2) {
            TRY(hn_jread_open(j, '[', &more));
            if (!more) return hn_jread_fail(j, "two offsets");
            TRY(hn_jread_u64(j, &range[0]));
            TRY(hn_jread_next(j, '[', &more));
            if (!more) return hn_jread_fail(j, "two offsets");
            TRY(hn_jread_u64(j, &range[1]));
            TRY(hn_jread_next(j, '[', &more));
            if (more) return hn_jread_fail(j, "two offsets");
        }
    }
    if (st != HONE_OK) return st;
    if (!seen[0] || !seen[1] || !seen[2])
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %s has no %s", j->name, HN_ESC(name.ptr, name.len),
                       !seen[0]   ? "dtype"
                       : !seen[1] ? "shape"
                                  : "data_offsets");
    TRY(dtype(&t, j, type, c->takes_raw, err));
    TRY(check_size(&t, j, range[0], range[1], c->part[part].size - base, err));
    t.off = base + range[0];
    t.n_bytes = range[1] - range[0];
    return hn_ckpt_add(c, &t, err);
}

/* ---- one file -------------------------------------------------------------------------------- */

static hone_status skip_metadata(hn_jread *j, hone_error *err)
{
    hone_str *key = NULL, value;
    hn_index ix = { 0 };
    size_t n = 0, cap = 0;
    bool more;
    hone_status st;
    for (st = hn_jread_open(j, '{', &more); st == HONE_OK && more; st = hn_jread_next(j, '{', &more), n++) {
        int64_t dup = -1;
        if (n == cap) {
            cap = cap ? 2 * cap : 16;
            hone_str *p = n < MAX_META ? realloc(key, cap * sizeof *p) : NULL;
            if (!p) {
                st = n < MAX_META ? HN_FAIL(err, HONE_E_NOMEM, "%s: __metadata__", j->name)
                                  : hn_jread_fail(j, "fewer entries of __metadata__");
                break;
            }
            key = p;
        }
        if ((st = hn_jread_key_str(j, &key[n])) != HONE_OK || (st = hn_jread_str(j, &value)) != HONE_OK) break;
        if (!hn_index_add(&ix, key, sizeof *key, (uint32_t)n, &dup))
            st = HN_FAIL(err, HONE_E_NOMEM, "%s: __metadata__", j->name);
        else if (dup >= 0)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: __metadata__ has \"%s\" twice", j->name,
                         HN_ESC(key[n].ptr, key[n].len));
        if (st != HONE_OK) break;
    }
    free(key);
    hn_index_free(&ix);
    return st;
}

static int by_offset(const void *a, const void *b)
{
    const hn_ckpt_tensor *x = *(const hn_ckpt_tensor *const *)a, *y = *(const hn_ckpt_tensor *const *)b;
    if (x->off != y->off) return x->off < y->off ? -1 : 1;
    return x->n_bytes < y->n_bytes ? -1 : x->n_bytes > y->n_bytes; /* empty ones first */
}

/* Tensors [first, c->n) must tile the data. */
static hone_status check_tiling(const hn_ckpt *c, size_t first, uint64_t base, const hn_source *s, hone_error *err)
{
    size_t n = c->n - first;
    hone_status st = HONE_OK;
    const hn_ckpt_tensor **t = malloc((n + 1) * sizeof *t);
    if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: %zu tensors", s->path, n);
    for (size_t i = 0; i < n; i++) t[i] = &c->t[first + i];
    qsort(t, n, sizeof *t, by_offset);
    uint64_t at = base;
    for (size_t i = 0; i < n && st == HONE_OK; i++) {
        if (t[i]->off != at)
            st = HN_FAIL(err, HONE_E_FORMAT, "%s: the data of %s begins at %llu, expected %llu: tensors %s", s->path,
                         HN_ESC(t[i]->name.ptr, t[i]->name.len), (unsigned long long)(t[i]->off - base),
                         (unsigned long long)(at - base), t[i]->off < at ? "overlap" : "leave a hole");
        at += t[i]->n_bytes;
    }
    if (st == HONE_OK && at != s->size)
        st = HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes follow the data of the last tensor, expected none", s->path,
                     (unsigned long long)(s->size - at));
    free(t);
    return st;
}

hone_status hn_safetensors_read(hn_ckpt *c, int32_t part, hone_error *err)
{
    const hn_source *s = &c->part[part];
    unsigned char h[8];
    uint64_t n = 0;
    size_t first = c->n;
    bool more, meta = false;
    hone_str name;
    hn_jread j;
    hone_status st;
    if (s->size < 10)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: %llu bytes, expected a safetensors file of 10 and more", s->path,
                       (unsigned long long)s->size);
    TRY(hn_source_read(s, 0, h, sizeof h, err));
    for (int i = 0; i < 8; i++) n |= (uint64_t)h[i] << 8 * i;
    if (n < 2 || n > s->size - 8)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: its safetensors header claims %llu bytes, expected 2 to the %llu that follow; truncated?",
                       s->path, (unsigned long long)n, (unsigned long long)(s->size - 8));
    if (n > MAX_HEADER)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: its safetensors header claims %llu bytes, expected at most %d", s->path,
                       (unsigned long long)n, MAX_HEADER);
    char *text = malloc((size_t)n + 1);
    if (!text) return HN_FAIL(err, HONE_E_NOMEM, "%s: header of %llu bytes", s->path, (unsigned long long)n);
    if ((st = hn_source_read(s, 8, text, n, err)) != HONE_OK) goto end;
    if ((st = hn_ckpt_json(&j, text, (size_t)n, s->path, "safetensors header", err)) != HONE_OK) goto end;
    for (st = hn_jread_open(&j, '{', &more); st == HONE_OK && more; st = hn_jread_next(&j, '{', &more)) {
        if ((st = hn_jread_key_str(&j, &name)) != HONE_OK) break;
        if (is(name, "__metadata__")) {
            st =
                meta ? HN_FAIL(err, HONE_E_FORMAT, "%s: __metadata__ is there twice", s->path) : skip_metadata(&j, err);
            meta = true;
        } else {
            st = read_tensor(c, part, name, &j, 8 + n, err);
        }
        if (st != HONE_OK) break;
    }
    if (st == HONE_OK) st = hn_jread_end(&j);
    if (st == HONE_OK) st = check_tiling(c, first, 8 + n, s, err);
end:
    free(text);
    return st;
}
