/* The GGUF reader: maps files, checks their directory, hands out views. Owns every
 * check that keeps untrusted bytes from reaching the rest of hone; format and checks
 * as in ggml-org/ggml:docs/gguf.md and src/gguf.cpp. Refuses to know what a key or a
 * tensor means, save the handful that shape the container: general.alignment,
 * general.architecture (one value over a split set) and split.*. */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#include "base/mapped.h"
#include "base/os.h"
#include "gguf/gguf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 24,
    MIN_KV_BYTES = 8 + 1 + 4 + 1,        /* key of one byte, value of one byte */
    MIN_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8 /* name of one byte, no dimensions */
};

/* ---- a cursor over the bytes of one file ----------------------------------------------- */

typedef struct reader {
    const unsigned char *p;
    uint64_t size, pos; /* pos <= size, always */
    const char *label;
    const char *item; /* "metadata entry", "tensor", or NULL in the header */
    uint64_t index;
    hone_str name;           /* of the item, once known */
    uint64_t at;             /* where the field being read begins */
    char said[HN_GGUF_SAID]; /* for where(): here, and not in the frame of each function that may fail */
} reader;

/* "FILE: byte 123: metadata entry 3 'key'" */
static const char *where(reader *r)
{
    if (!r->item) snprintf(r->said, sizeof r->said, "%s: byte %" PRIu64, r->label, r->at);
    else if (!r->name.len)
        snprintf(r->said, sizeof r->said, "%s: byte %" PRIu64 ": %s %" PRIu64, r->label, r->at, r->item, r->index);
    else
        snprintf(r->said, sizeof r->said, "%s: byte %" PRIu64 ": %s %" PRIu64 " '%s'", r->label, r->at, r->item,
                 r->index, HN_ESC(r->name.ptr, r->name.len));
    return r->said;
}
#define BAD(r, fmt, ...) HN_FAIL(err, HONE_E_FORMAT, "%s: " fmt, where(r), __VA_ARGS__)
#define UNSUPPORTED(r, fmt, ...) HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: " fmt, where(r), __VA_ARGS__)
#define TRY(x)                                \
    do {                                      \
        hone_status try_st = (x);             \
        if (try_st != HONE_OK) return try_st; \
    } while (0)

/* Appends " (…)" to a message already born; returns st. */
__attribute__((format(printf, 3, 4))) static hone_status add_note(hone_error *err, hone_status st, const char *fmt, ...)
{
    if (!err) return st;
    size_t at = strlen(err->message), cap = sizeof err->message;
    if (at + 4 > cap) return st;
    memcpy(err->message + at, " (", 3);
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->message + at + 2, cap - at - 3, fmt, ap);
    va_end(ap);
    memcpy(err->message + strlen(err->message), ")", 2);
    return st;
}

static uint64_t left(const reader *r) { return r->size - r->pos; }

static hone_status need(reader *r, uint64_t n, const char *what, hone_error *err)
{
    r->at = r->pos;
    if (n <= left(r)) return HONE_OK;
    return BAD(r,
               "%s needs %" PRIu64 " bytes, only %" PRIu64 " are left: the file of %" PRIu64
               " bytes is cut short or damaged",
               what, n, left(r), r->size);
}

static hone_status read_u32(reader *r, uint32_t *out, const char *what, hone_error *err)
{
    TRY(need(r, 4, what, err));
    *out = hn_load_u32(r->p + r->pos);
    r->pos += 4;
    return HONE_OK;
}

static hone_status read_u64(reader *r, uint64_t *out, const char *what, hone_error *err)
{
    TRY(need(r, 8, what, err));
    *out = hn_load_u64(r->p + r->pos);
    r->pos += 8;
    return HONE_OK;
}

static hone_status read_str(reader *r, hone_str *out, uint64_t max, const char *what, hone_error *err)
{
    uint64_t n;
    TRY(read_u64(r, &n, what, err));
    if (n > left(r))
        return BAD(r,
                   "%s of %" PRIu64 " bytes, only %" PRIu64 " are left: the file of %" PRIu64
                   " bytes is cut short or damaged",
                   what, n, left(r), r->size);
    if (n > max) return BAD(r, "%s of %" PRIu64 " bytes, at most %" PRIu64 " expected", what, n, max);
    *out = (hone_str){ (const char *)r->p + r->pos, (size_t)n };
    r->pos += n;
    return HONE_OK;
}

/* ---- metadata ------------------------------------------------------------------------------ */

static hone_status check_bools(reader *r, const unsigned char *p, uint64_t n, hone_error *err)
{
    for (uint64_t i = 0; i < n; i++) {
        if (p[i] <= 1) continue;
        r->at = (uint64_t)(p + i - r->p);
        return BAD(r, "bool byte is %u, expected 0 or 1", p[i]);
    }
    return HONE_OK;
}

/* Reads element type, count and, checking each, the elements. */
static hone_status read_array(reader *r, int depth, hn_gguf_array *out, hone_error *err)
{
    uint32_t et;
    uint64_t n;
    TRY(read_u32(r, &et, "array element type", err));
    if (et >= HN_GGUF_VALUE_TYPES) return BAD(r, "array element type %" PRIu32 ", expected 0 to 12", et);
    TRY(read_u64(r, &n, "array count", err));
    uint64_t smallest = et == HONE_KV_STRING ? 8 : et == HONE_KV_ARRAY ? 12 : hn_gguf_type_size(et);
    if (n > left(r) / smallest)
        return BAD(r,
                   "array of %" PRIu64 " %s elements, at most %" PRIu64 " fit in the %" PRIu64
                   " bytes left: the file is cut short or damaged",
                   n, hn_gguf_type_name(et), left(r) / smallest, left(r));
    if (n > HN_GGUF_MAX_ARRAY)
        return BAD(r, "array of %" PRIu64 " elements, at most %d expected", n, HN_GGUF_MAX_ARRAY);
    *out = (hn_gguf_array){ (hone_kv_type)et, n, r->p + r->pos, 0 };
    if (et == HONE_KV_STRING) {
        hone_str s;
        for (uint64_t i = 0; i < n; i++) {
            hone_status st = read_str(r, &s, HN_GGUF_MAX_STRING, "string in array", err);
            if (st != HONE_OK) return add_note(err, st, "element %" PRIu64 " of %" PRIu64, i, n);
        }
    } else if (et == HONE_KV_ARRAY) {
        if (depth == HN_GGUF_MAX_DEPTH) return BAD(r, "arrays nested more than %d deep", HN_GGUF_MAX_DEPTH);
        hn_gguf_array inner;
        for (uint64_t i = 0; i < n; i++) TRY(read_array(r, depth + 1, &inner, err));
    } else {
        r->pos += n * smallest;
        if (et == HONE_KV_BOOL) TRY(check_bools(r, out->data, n, err));
    }
    out->n_bytes = (uint64_t)(r->p + r->pos - out->data);
    return HONE_OK;
}

static void decode_scalar(const unsigned char *p, hone_kv *kv)
{
    switch (kv->type) {
    case HONE_KV_U8: kv->v.u = p[0]; break;
    case HONE_KV_I8: kv->v.i = (int8_t)p[0]; break;
    case HONE_KV_U16: kv->v.u = (uint16_t)(p[0] | p[1] << 8); break;
    case HONE_KV_I16: kv->v.i = (int16_t)(uint16_t)(p[0] | p[1] << 8); break;
    case HONE_KV_U32: kv->v.u = hn_load_u32(p); break;
    case HONE_KV_I32: kv->v.i = (int32_t)hn_load_u32(p); break;
    case HONE_KV_F32: kv->v.f = (double)hn_bits_f32(hn_load_u32(p)); break;
    case HONE_KV_BOOL: kv->v.b = p[0] != 0; break;
    case HONE_KV_U64: kv->v.u = hn_load_u64(p); break;
    case HONE_KV_I64: kv->v.i = (int64_t)hn_load_u64(p); break;
    case HONE_KV_F64: {
        uint64_t u = hn_load_u64(p);
        memcpy(&kv->v.f, &u, 8);
        break;
    }
    case HONE_KV_STRING:
    case HONE_KV_ARRAY: break;
    }
}

static bool key_is(const hn_gguf_entry *e, const char *key)
{
    return e->kv.key.len == strlen(key) && memcmp(e->kv.key.ptr, key, e->kv.key.len) == 0;
}

static hone_status read_entry(reader *r, hn_gguf_entry *e, hone_error *err)
{
    uint64_t start = r->pos;
    r->name = (hone_str){ 0 };
    TRY(read_str(r, &e->kv.key, HN_GGUF_MAX_KEY, "key", err));
    const char *fault = hn_gguf_key_fault(e->kv.key.ptr, e->kv.key.len);
    if (fault) return BAD(r, "key '%s' %s", HN_ESC(e->kv.key.ptr, e->kv.key.len), fault);
    r->name = e->kv.key;
    uint32_t type;
    TRY(read_u32(r, &type, "value type", err));
    if (type >= HN_GGUF_VALUE_TYPES) return BAD(r, "value type %" PRIu32 ", expected 0 to 12", type);
    e->kv.type = e->kv.elem_type = (hone_kv_type)type;
    e->kv.count = 1;
    if (type == HONE_KV_ARRAY) {
        hn_gguf_array a;
        TRY(read_array(r, 1, &a, err));
        e->kv.elem_type = a.elem_type;
        e->kv.count = a.count;
        e->elems = a.data;
        e->n_bytes = a.n_bytes;
    } else if (type == HONE_KV_STRING) {
        TRY(read_str(r, &e->kv.v.s, HN_GGUF_MAX_STRING, "string value", err));
        if (key_is(e, "general.architecture") && memchr(e->kv.v.s.ptr, 0, e->kv.v.s.len))
            return BAD(r, "value '%s' contains a NUL byte", HN_ESC(e->kv.v.s.ptr, e->kv.v.s.len));
    } else {
        TRY(need(r, hn_gguf_type_size(type), "value", err));
        if (type == HONE_KV_BOOL) TRY(check_bools(r, r->p + r->pos, 1, err));
        decode_scalar(r->p + r->pos, &e->kv);
        r->pos += hn_gguf_type_size(type);
    }
    r->at = r->pos;
    if (r->pos > HN_GGUF_MAX_METADATA)
        return BAD(r, "metadata reaches %" PRIu64 " bytes, at most %d expected", r->pos, HN_GGUF_MAX_METADATA);
    e->raw = r->p + start;
    e->raw_len = r->pos - start;
    return HONE_OK;
}

static hone_status read_metadata(reader *r, hn_gguf_table *t, uint64_t n, hone_error *err)
{
    t->e = calloc(n ? n : 1, sizeof *t->e);
    if (!t->e) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of %" PRIu64 " metadata entries", r->label, n);
    r->item = "metadata entry";
    for (uint64_t i = 0; i < n; i++) {
        r->index = i;
        uint64_t start = r->pos;
        TRY(read_entry(r, &t->e[i], err));
        t->n++;
        int64_t dup;
        if (!hn_index_add(&t->ix, t->e, sizeof *t->e, (uint32_t)i, &dup))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: index of metadata keys", r->label);
        r->at = start;
        if (dup >= 0) return BAD(r, "duplicate key, also entry %" PRId64, dup);
    }
    return HONE_OK;
}

/* ---- tensor directory ------------------------------------------------------------------------- */

static const char *shape(char buf[HN_GGUF_SAID], const uint64_t ne[4], uint32_t n_dim)
{
    int o = snprintf(buf, HN_GGUF_SAID, "[");
    for (uint32_t i = 0; i < n_dim; i++)
        o += snprintf(buf + o, (size_t)(HN_GGUF_SAID - o), "%s%" PRIu64, i ? ", " : "", ne[i]);
    snprintf(buf + o, (size_t)(HN_GGUF_SAID - o), "]");
    return buf;
}
#define SHAPE(ne, n) shape((char[HN_GGUF_SAID]){ 0 }, (ne), (n))

static hone_status read_tensor(reader *r, uint64_t align, hn_gguf_tensor *t, hone_error *err)
{
    r->name = (hone_str){ 0 };
    TRY(read_str(r, &t->name, UINT64_MAX, "tensor name", err));
    const char *fault = hn_gguf_name_fault(t->name.ptr, t->name.len, HN_GGUF_MAX_NAME);
    if (fault) return BAD(r, "name '%s' %s", HN_ESC(t->name.ptr, t->name.len), fault);
    r->name = t->name;
    uint32_t n_dim, type;
    TRY(read_u32(r, &n_dim, "number of dimensions", err));
    if (n_dim > 4) return BAD(r, "%" PRIu32 " dimensions, at most 4 expected", n_dim);
    uint64_t n_elem = 1;
    for (int i = 0; i < 4; i++) t->ne[i] = 1;
    uint64_t dims_at = r->pos;
    for (uint32_t i = 0; i < n_dim; i++) {
        TRY(read_u64(r, &t->ne[i], "dimension", err));
        if (t->ne[i] == 0) return BAD(r, "dimension %" PRIu32 " is 0, expected at least 1", i);
        if (t->ne[i] > HN_GGUF_MAX_DIM_SIZE)
            return BAD(r, "dimension %" PRIu32 " is %" PRIu64 ", at most %" PRIu64 " expected", i, t->ne[i],
                       HN_GGUF_MAX_DIM_SIZE);
    }
    for (int i = 0; i < 4; i++) {
        r->at = dims_at;
        if (!hn_mul_u64(n_elem, t->ne[i], &n_elem) || n_elem > HN_GGUF_MAX_ELEMS)
            return BAD(r, "shape %s has too many elements, at most %" PRIu64 " expected", SHAPE(t->ne, n_dim),
                       HN_GGUF_MAX_ELEMS);
    }
    t->n_dim = n_dim ? (int32_t)n_dim : 1;
    TRY(read_u32(r, &type, "tensor type", err));
    const hn_type_info *ti = hn_type_get(type);
    if (!ti) {
        const char *why = hn_type_why_not(type);
        return UNSUPPORTED(r, "tensor type %" PRIu32 " (%s) is not one hone reads", type, why ? why : "unknown");
    }
    t->type = (hn_type)type;
    if (t->ne[0] % ti->block_elems) {
        r->at = dims_at;
        return BAD(r, "rows of %" PRIu64 " elements, type %s needs a multiple of %" PRIu32, t->ne[0], ti->name,
                   ti->block_elems);
    }
    r->at = dims_at;
    if (!hn_tensor_nbytes(ti, t->ne, 4, &t->n_bytes))
        return BAD(r, "shape %s of type %s has no representable size", SHAPE(t->ne, n_dim), ti->name);
    TRY(read_u64(r, &t->offset, "tensor offset", err));
    if (t->offset % align)
        return BAD(r, "data offset %" PRIu64 " is not a multiple of the alignment %" PRIu64, t->offset, align);
    if (t->offset > INT64_MAX) return BAD(r, "data offset %" PRIu64 " lies beyond any file", t->offset);
    return HONE_OK;
}

typedef struct span {
    uint64_t offset;
    uint32_t i;
} span;

static int by_offset(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

/* Type 42 is 64 elements in 18 bytes, but a fork wrote 128 in 34 under the same id.
 * True if t would fit in `room` bytes only the fork's way. */
static bool is_fork_q2_0(const hn_gguf_tensor *t, uint64_t room)
{
    return t->type == HN_Q2_0 && t->ne[0] % 128 == 0 && t->n_bytes > room && t->n_bytes / 36 * 34 <= room;
}

static hone_status fork_q2_0(reader *r, hone_error *err)
{
    return UNSUPPORTED(r, "%s",
                       "tensor type 42 as a fork wrote it (128 elements in 34 bytes) is not one hone reads; "
                       "expected Q2_0 with 64 elements in 18 bytes");
}

/* With the whole directory known: is every tensor inside the file, and alone there?
 * Any order and gaps are fine; ggml insists on the running sum, older tools did not. */
static hone_status place_tensors(reader *r, hn_gguf_part *p, hn_gguf_tensor *t, hone_error *err)
{
    uint64_t n = p->n_tensor;
    if (!hn_round_up(p->dir_bytes, p->align, &p->data_start))
        return BAD(r, "no data section after a directory of %" PRIu64 " bytes", p->dir_bytes);
    if (n == 0) return HONE_OK;
    span *s = malloc(n * sizeof *s);
    if (!s) return HN_FAIL(err, HONE_E_NOMEM, "%s: order of %" PRIu64 " tensors", r->label, n);
    hone_status st = HONE_OK;
    bool sorted = true;
    uint64_t room = p->size > p->data_start ? p->size - p->data_start : 0, want = 0;
    for (uint64_t i = 0; i < n; i++) {
        /* no sum wraps: offset < 2^63, n_bytes < 2^52, data_start <= size + align */
        uint64_t end = p->data_start + t[i].offset + t[i].n_bytes;
        if (end > want) want = end;
        s[i] = (span){ t[i].offset, (uint32_t)i };
        if (i && s[i].offset < s[i - 1].offset) sorted = false;
    }
    if (!sorted) qsort(s, n, sizeof *s, by_offset);
    for (uint64_t i = 0; i < n; i++) {
        const hn_gguf_tensor *x = &t[s[i].i], *y = i + 1 < n ? &t[s[i + 1].i] : NULL;
        r->index = s[i].i;
        r->name = x->name;
        r->at = p->data_start + x->offset; /* cannot wrap: checked above */
        uint64_t to_end = x->offset < room ? room - x->offset : 0;
        if (y && x->n_bytes > y->offset - x->offset) {
            if (is_fork_q2_0(x, y->offset - x->offset)) st = fork_q2_0(r, err);
            else
                st = BAD(r,
                         "%" PRIu64 " bytes of data overlap tensor %" PRIu32 " '%s', which begins %" PRIu64
                         " bytes later",
                         x->n_bytes, s[i + 1].i, HN_ESC(y->name.ptr, y->name.len), y->offset - x->offset);
            goto done;
        }
        if (x->n_bytes > to_end) {
            if (is_fork_q2_0(x, to_end)) st = fork_q2_0(r, err);
            else
                st = BAD(r,
                         "data of %" PRIu64 " bytes, %" PRIu64 " of them missing: the file has %" PRIu64
                         " bytes, expected at least %" PRIu64 " (cut short by %" PRIu64
                         ", perhaps an unfinished download)",
                         x->n_bytes, x->n_bytes - to_end, p->size, want, want - p->size);
            goto done;
        }
    }
    for (uint64_t i = 0; i < n; i++) t[i].data = p->map + p->data_start + t[i].offset;
done:
    free(s);
    return st;
}

/* ---- one file ------------------------------------------------------------------------------------ */

/* What a file without the magic is, as far as its first bytes tell. */
static const char *what_is(const unsigned char *p, uint64_t n)
{
    static const struct {
        const char *magic, *what;
    } table[] = {
        { "FUGG", "a GGUF file with reversed bytes" },
        { "GGML", "an old GGML file, from before GGUF; convert the original model again" },
        { "ggml", "an old GGML file, from before GGUF; convert the original model again" },
        { "lmgg", "an old GGML file, from before GGUF; convert the original model again" },
        { "tjgg", "an old GGML file (ggjt), from before GGUF; convert the original model again" },
        { "ggjt", "an old GGML file (ggjt), from before GGUF; convert the original model again" },
        { "fmgg", "an old GGML file (ggmf), from before GGUF; convert the original model again" },
        { "ggmf", "an old GGML file (ggmf), from before GGUF; convert the original model again" },
        { "algg", "an old GGML adapter (ggla); convert the adapter again" },
        { "ggla", "an old GGML adapter (ggla); convert the adapter again" },
        { "PK\x03\x04", "a zip archive, perhaps a PyTorch checkpoint" },
        { "version https://git-lfs", "a git-LFS pointer, not the file it stands for; run git lfs pull" },
        { "\x1f\x8b", "a gzip file; unpack it first" },
        { "\x28\xb5\x2f\xfd", "a zstd file; unpack it first" },
        { "\xfd"
          "7zXZ",
          "an xz file; unpack it first" },
        { "7z\xbc\xaf", "a 7z archive; unpack it first" },
        { "\x89HDF", "an HDF5 file" },
        { "\x80\x02", "a Python pickle, perhaps an old PyTorch checkpoint" },
        { "\x7f"
          "ELF",
          "a program" },
        { "{", "a JSON file" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        size_t k = strlen(table[i].magic);
        if (n >= k && memcmp(p, table[i].magic, k) == 0) return table[i].what;
    }
    if (n >= 9 && p[8] == '{' && hn_load_u64(p) <= n - 8) return "a safetensors file";
    uint64_t i = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < n && i < 64 && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r' || p[i] == '\n')) i++;
    if (i < n && p[i] == '<') return "an HTML or XML page, perhaps the error page of a failed download";
    for (i = 0; i < n && i < 64 && p[i] == 0; i++) {}
    if (i == n || i == 64) return "zero bytes, perhaps an unfinished download";
    return NULL;
}

static hone_status read_header(reader *r, hn_gguf_part *p, uint64_t *n_tensor, uint64_t *n_kv, hone_error *err)
{
    if (r->size == 0) return BAD(r, "%s", "the file is empty, expected a GGUF file");
    if (r->size < 4 || memcmp(r->p, "GGUF", 4) != 0) {
        const char *what = what_is(r->p, r->size);
        size_t k = r->size < 8 ? (size_t)r->size : 8;
        return BAD(r, "not a GGUF file: begins with '%s', expected 'GGUF'%s%s", HN_ESC((const char *)r->p, k),
                   what ? "; it looks like " : "", what ? what : "");
    }
    r->pos = 4;
    if (r->size < HEADER_BYTES)
        return BAD(r, "file of %" PRIu64 " bytes, the header alone needs %d: cut short", r->size, HEADER_BYTES);
    TRY(read_u32(r, &p->version, "version", err));
    if (p->version && (p->version & 0xFFFF) == 0)
        return UNSUPPORTED(r,
                           "big-endian GGUF file (version %" PRIu32
                           "); hone reads little-endian ones; convert it with gguf-convert-endian",
                           __builtin_bswap32(p->version));
    if (p->version == 1) return UNSUPPORTED(r, "GGUF version %d, expected 2 or 3; convert the original model again", 1);
    if (p->version == 0) return BAD(r, "GGUF version %d, expected 2 or 3", 0);
    if (p->version > 3) return UNSUPPORTED(r, "GGUF version %" PRIu32 ", expected 2 or 3", p->version);
    TRY(read_u64(r, n_tensor, "tensor count", err));
    uint64_t rest = r->size - HEADER_BYTES;
    if (*n_tensor > rest / MIN_TENSOR_BYTES)
        return BAD(r,
                   "%" PRIu64 " tensors, at most %" PRIu64 " fit in a file of %" PRIu64 " bytes: cut short or damaged",
                   *n_tensor, rest / MIN_TENSOR_BYTES, r->size);
    if (*n_tensor > HN_GGUF_MAX_TENSORS)
        return BAD(r, "%" PRIu64 " tensors, at most %d expected", *n_tensor, HN_GGUF_MAX_TENSORS);
    TRY(read_u64(r, n_kv, "metadata entry count", err));
    if (*n_kv > rest / MIN_KV_BYTES)
        return BAD(r,
                   "%" PRIu64 " metadata entries, at most %" PRIu64 " fit in a file of %" PRIu64
                   " bytes: cut short or damaged",
                   *n_kv, rest / MIN_KV_BYTES, r->size);
    if (*n_kv > HN_GGUF_MAX_KV)
        return BAD(r, "%" PRIu64 " metadata entries, at most %d expected", *n_kv, HN_GGUF_MAX_KV);
    return HONE_OK;
}

/* Not through get_uint: other readers insist on u32 here, and two readers must not
 * see two layouts in one file. */
static hone_status find_alignment(hn_gguf_part *p, hone_error *err)
{
    p->align = HN_GGUF_DEFAULT_ALIGN;
    const hn_gguf_entry *e = hn_gguf_find_entry(&p->kv, "general.alignment");
    if (!e) return HONE_OK;
    uint64_t a = e->kv.v.u;
    if (e->kv.type != HONE_KV_U32 || a < HN_GGUF_MIN_ALIGN || a > HN_GGUF_MAX_ALIGN || (a & (a - 1)))
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: key 'general.alignment' is %s, expected a u32 power of two from %d to %d", p->label,
                       SEEN(&e->kv), HN_GGUF_MIN_ALIGN, HN_GGUF_MAX_ALIGN);
    p->align = a;
    return HONE_OK;
}

/* Reads the directory of part ip, whose map, size and label are set. */
static hone_status read_part(hn_gguf *g, int32_t ip, hone_error *err)
{
    hn_gguf_part *p = &g->parts[ip];
    reader r = { .p = p->map, .size = p->size, .label = p->label };
    uint64_t n_tensor = 0, n_kv = 0;
    TRY(read_header(&r, p, &n_tensor, &n_kv, err));
    TRY(read_metadata(&r, &p->kv, n_kv, err));
    TRY(find_alignment(p, err));
    if (n_tensor > HN_GGUF_MAX_TENSORS - g->n_t)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: more than %d tensors in the split set", p->label, HN_GGUF_MAX_TENSORS);
    if (n_tensor) {
        hn_gguf_tensor *t = realloc(g->t, (g->n_t + n_tensor) * sizeof *t);
        if (!t) return HN_FAIL(err, HONE_E_NOMEM, "%s: table of %" PRIu64 " tensors", p->label, n_tensor);
        g->t = t;
    }
    p->t0 = g->n_t;
    r.item = "tensor";
    for (uint64_t i = 0; i < n_tensor; i++) {
        hn_gguf_tensor *t = &g->t[g->n_t];
        *t = (hn_gguf_tensor){ .part = ip };
        r.index = i;
        uint64_t start = r.pos;
        TRY(read_tensor(&r, p->align, t, err));
        int64_t dup;
        if (!hn_index_add(&g->t_ix, g->t, sizeof *g->t, (uint32_t)g->n_t, &dup))
            return HN_FAIL(err, HONE_E_NOMEM, "%s: index of tensor names", p->label);
        r.at = start;
        if (dup >= 0) return BAD(&r, "duplicate tensor name, also in %s", g->parts[g->t[dup].part].label);
        g->n_t++;
        p->n_tensor++;
    }
    p->dir_bytes = r.pos;
    return place_tensors(&r, p, g->t ? g->t + p->t0 : NULL, err);
}

static char *make_label(const char *path)
{
    enum { KEEP = 300 };
    size_t n = strlen(path), cut = n > KEEP ? n - KEEP : 0;
    char *l = malloc(4 * KEEP + 16);
    if (!l) return NULL;
    size_t o = 0;
    if (cut) { /* the end of a long path tells more */
        memcpy(l, "…", 3);
        o = 3;
    }
    hn_escape(l + o, HN_GGUF_SAID / 2, path + cut, n - cut);
    return l;
}

static const char *kind_of(mode_t m)
{
    return S_ISDIR(m)                 ? "a directory"
           : S_ISFIFO(m)              ? "a pipe"
           : S_ISCHR(m) || S_ISBLK(m) ? "a device"
           : S_ISSOCK(m)              ? "a socket"
                                      : "not a regular file";
}

static hone_status map_file(hn_gguf_part *p, const char *path, hone_error *err)
{
    p->label = make_label(path);
    p->file = strdup(path);
    if (!p->label || !p->file) return HN_FAIL(err, HONE_E_NOMEM, "path of %zu bytes", strlen(path));
    /* O_NONBLOCK: opening a pipe nobody writes to must not wait */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return HN_FAIL(err, HONE_E_IO, "%s: cannot open: %s", p->label, strerror(errno));
    struct stat sb;
    hone_status st = HONE_OK;
    if (fstat(fd, &sb) != 0) st = HN_FAIL(err, HONE_E_IO, "%s: cannot stat: %s", p->label, strerror(errno));
    else if (!S_ISREG(sb.st_mode))
        st = HN_FAIL(err, HONE_E_IO, "%s: is %s, expected a GGUF file", p->label, kind_of(sb.st_mode));
    else if (sb.st_size < 0 || (uint64_t)sb.st_size > SIZE_MAX / 2)
        st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: file of %lld bytes cannot be mapped on this machine", p->label,
                     (long long)sb.st_size);
    else if (sb.st_size == 0) p->map = (const unsigned char *)"";
    else {
        void *m = hn_mapped_open(fd, (size_t)sb.st_size, path);
        if (!m)
            st = HN_FAIL(err, HONE_E_IO, "%s: cannot map %lld bytes: %s", p->label, (long long)sb.st_size,
                         strerror(errno));
        else {
            p->map = m;
            p->size = (uint64_t)sb.st_size;
            hn_stamp_of(&p->stamp, &sb);
            p->mapped = true;
        }
    }
    close(fd);
    return st;
}

/* ---- split sets --------------------------------------------------------------------------------------- */

static void drop_parts(hn_gguf *g)
{
    for (int32_t i = 0; i < g->n_parts; i++) {
        hn_gguf_part *p = &g->parts[i];
        if (p->mapped) hn_mapped_close(p->map, (size_t)p->size);
        free(p->label);
        free(p->file);
        free(p->kv.e);
        hn_index_free(&p->kv.ix);
    }
    free(g->parts);
    free(g->t);
    hn_index_free(&g->t_ix);
    g->parts = NULL;
    g->t = NULL;
    g->n_parts = 0;
    g->n_t = 0;
}

/* split.count, 0 unless more than 1; and split.no. */
static hone_status split_of(const hn_gguf_part *p, uint64_t *no, uint64_t *count, hone_error *err)
{
    *no = *count = 0;
    TRY(hn_gguf_get_uint(p, "split.count", 65535, count, NULL, err));
    TRY(hn_gguf_get_uint(p, "split.no", 65535, no, NULL, err));
    if (*count && *no >= *count)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: key 'split.no' is %" PRIu64 ", expected less than split.count %" PRIu64,
                       p->label, *no, *count);
    if (*count <= 1) *count = 0;
    return HONE_OK;
}

static hone_status check_member(const hn_gguf *g, int32_t ip, uint64_t count, uint64_t *total, bool *has_total,
                                hone_error *err)
{
    const hn_gguf_part *p = &g->parts[ip];
    uint64_t no, c, t = 0;
    bool found;
    TRY(split_of(p, &no, &c, err));
    if (c != count)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: key 'split.count' is %" PRIu64 ", expected %" PRIu64 " as in the other parts", p->label, c,
                       count);
    if (no != (uint64_t)ip)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: key 'split.no' is %" PRIu64 ", expected %" PRId32 " from the file name",
                       p->label, no, ip);
    TRY(hn_gguf_get_uint(p, "split.tensors.count", INT32_MAX, &t, &found, err));
    if (found && *has_total && t != *total)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: key 'split.tensors.count' is %" PRIu64 ", expected %" PRIu64 " as in the other parts",
                       p->label, t, *total);
    if (found) *total = t, *has_total = true;
    const hn_gguf_entry *a = hn_gguf_find_entry(&g->parts[0].kv, "general.architecture"),
                        *b = hn_gguf_find_entry(&p->kv, "general.architecture");
    if (a && b &&
        (a->kv.type != b->kv.type ||
         (a->kv.type == HONE_KV_STRING &&
          (a->kv.v.s.len != b->kv.v.s.len || memcmp(a->kv.v.s.ptr, b->kv.v.s.ptr, a->kv.v.s.len) != 0))))
        return HN_FAIL(err, HONE_E_FORMAT, "%s: key 'general.architecture' is %s, expected %s as in the first part",
                       p->label, SEEN(&b->kv), SEEN(&a->kv));
    return HONE_OK;
}

/* path is part no (from 0) of count: opens them all, in order. Names come from the
 * user's own path and digits alone, never from metadata. */
static hone_status open_set(hn_gguf *g, const char *path, uint64_t no, uint64_t count, hone_error *err)
{
    char suffix[64];
    int k = snprintf(suffix, sizeof suffix, "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", no + 1, count);
    size_t n = strlen(path), stem = n - (size_t)k;
    if (count > HN_GGUF_MAX_PARTS)
        return HN_FAIL(err, HONE_E_FORMAT, "%s: key 'split.count' is %" PRIu64 ", at most %d expected",
                       g->parts[0].label, count, HN_GGUF_MAX_PARTS);
    if (n < (size_t)k || strcmp(path + stem, suffix) != 0)
        return HN_FAIL(err, HONE_E_FORMAT,
                       "%s: this is part %" PRIu64 " of a split set of %" PRIu64
                       "; expected a file name ending in '%s', without which the others cannot be found",
                       g->parts[0].label, no + 1, count, suffix);
    drop_parts(g);
    char *name = malloc(n + sizeof suffix);
    g->parts = calloc(count, sizeof *g->parts);
    if (!name || !g->parts) {
        free(name);
        return HN_FAIL(err, HONE_E_NOMEM, "split set of %" PRIu64 " parts", count);
    }
    memcpy(name, path, stem);
    uint64_t total = 0;
    bool has_total = false;
    hone_status st = HONE_OK;
    for (uint64_t i = 0; i < count && st == HONE_OK; i++) {
        snprintf(name + stem, sizeof suffix, "-%05" PRIu64 "-of-%05" PRIu64 ".gguf", i + 1, count);
        hn_gguf_part *p = &g->parts[g->n_parts++];
        if ((st = map_file(p, name, err)) == HONE_OK && (st = read_part(g, (int32_t)i, err)) == HONE_OK)
            st = check_member(g, (int32_t)i, count, &total, &has_total, err);
        if (st != HONE_OK) add_note(err, st, "part %" PRIu64 " of a split set of %" PRIu64, i + 1, count);
    }
    free(name);
    if (st == HONE_OK && has_total && total != g->n_t)
        st = HN_FAIL(err, HONE_E_FORMAT,
                     "%s: key 'split.tensors.count' is %" PRIu64 ", but the %" PRIu64 " parts hold %" PRIu64 " tensors",
                     g->parts[0].label, total, count, g->n_t);
    return st;
}

/* ---- open and close -------------------------------------------------------------------------------------- */

static hn_gguf *new_handle(const char *path)
{
    hn_gguf *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    g->path = strdup(path);
    g->parts = calloc(1, sizeof *g->parts);
    if (g->path && g->parts) {
        g->n_parts = 1;
        return g;
    }
    hn_gguf_close(g);
    return NULL;
}

hone_status hn_gguf_open(hn_gguf **out, const char *path, hone_error *err)
{
    hone_status st;
    uint64_t no, count;
    *out = NULL;
    if (!path || !*path) return HN_FAIL(err, HONE_E_ARG, "no file name given, expected a GGUF file");
    hn_gguf *g = new_handle(path);
    if (!g) return HN_FAIL(err, HONE_E_NOMEM, "gguf handle");
    if ((st = map_file(&g->parts[0], path, err)) != HONE_OK) goto fail;
    if ((st = read_part(g, 0, err)) != HONE_OK) goto fail;
    if ((st = split_of(&g->parts[0], &no, &count, err)) != HONE_OK) goto fail;
    if (count && (st = open_set(g, path, no, count, err)) != HONE_OK) goto fail;
    *out = g;
    return HONE_OK;
fail:
    hn_gguf_close(g);
    return st;
}

hone_status hn_gguf_parse(hn_gguf **out, const void *bytes, size_t len, const char *name, hone_error *err)
{
    hone_status st;
    uint64_t no, count;
    *out = NULL;
    hn_gguf *g = new_handle(name ? name : "memory");
    if (!g) return HN_FAIL(err, HONE_E_NOMEM, "gguf handle");
    hn_gguf_part *p = &g->parts[0];
    p->map = len ? bytes : (const unsigned char *)"";
    p->size = len;
    p->label = make_label(g->path);
    if (!p->label) st = HN_FAIL(err, HONE_E_NOMEM, "gguf handle");
    else st = read_part(g, 0, err);
    if (st == HONE_OK) st = split_of(p, &no, &count, err);
    if (st == HONE_OK && count)
        st = HN_FAIL(err, HONE_E_UNSUPPORTED,
                     "%s: part %" PRIu64 " of a split set of %" PRIu64 " cannot be read from memory", p->label, no + 1,
                     count);
    if (st != HONE_OK) {
        hn_gguf_close(g);
        return st;
    }
    *out = g;
    return HONE_OK;
}

void hn_gguf_close(hn_gguf *g)
{
    if (!g) return;
    drop_parts(g);
    hn_arena_free(g->own);
    free(g->path);
    free(g);
}
