/* Models broken on purpose, for the laboratory's proof that it notices. Owns which bytes of a
 * GGUF file to change; knows files through hone.h alone. */
#include "lab/judge/selftest.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>

typedef struct broken {
    const char *path;
    hone_file *f;
    hn_file *out;
    uint64_t data;
} broken;

/* Where the tensor data begins: a multiple of the alignment, before data that ends, padded, with the file. */
static uint64_t data_start(const hone_file *f)
{
    uint64_t end = 0, align = 32;
    for (uint64_t i = 0; i < hone_file_n_kv(f); i++) {
        hone_kv kv;
        hone_file_kv(f, i, &kv);
        if (kv.key.len == 17 && memcmp(kv.key.ptr, "general.alignment", 17) == 0 && kv.v.u) align = kv.v.u;
    }
    for (uint64_t i = 0; i < hone_file_n_tensors(f); i++) {
        hone_tensor_info t;
        hone_file_tensor(f, i, &t);
        if (t.offset + t.n_bytes > end) end = t.offset + t.n_bytes;
    }
    return (hone_file_size(f) - end) / align * align;
}

static hone_status put(broken *b, uint64_t at, const void *bytes, size_t n, hone_error *err)
{
    int e = hn_file_put_at(b->out, at, bytes, n);
    return e ? hn_file_failed(b->out, e, err) : HONE_OK;
}

static hone_status tensor(broken *b, hone_tensor_info *t, const char *name, hone_error *err)
{
    int64_t i = hone_file_find_tensor(b->f, name);
    if (i < 0) return HN_FAIL(err, HONE_E_UNSUPPORTED, "the model has no tensor %s to break", name);
    hone_file_tensor(b->f, (uint64_t)i, t);
    return HONE_OK;
}

/* Rows 10 and 11 of the embeddings become v and −v, many times the size of any other. Whatever comes out
 * of the layers, one of the two wins where the head is the embeddings again; fed back, it points at itself
 * for ever. Other types and heads: all rows the same, so that nothing depends on the prompt. */
static hone_status make_constant(broken *b, hone_error *err)
{
    hone_tensor_info t;
    hone_status st = tensor(b, &t, "token_embd.weight", err);
    if (st != HONE_OK) return st;
    uint64_t rows = t.ne[1], row = t.n_bytes / (rows ? rows : 1);
    bool tied = hone_file_find_tensor(b->f, "output.weight") < 0;
    unsigned char *buf = malloc(row);
    if (!buf) return HN_FAIL(err, HONE_E_NOMEM, "a row of embeddings");
    if (strcmp(t.type_name, "F16") == 0 && tied && rows > 11) {
        for (int sign = 0; sign < 2 && st == HONE_OK; sign++) {
            for (uint64_t i = 0; i + 1 < row; i += 2) {
                buf[i] = 0;
                buf[i + 1] = sign ? 0xC8 : 0x48; /* ±8 */
            }
            st = put(b, b->data + t.offset + (10 + (uint64_t)sign) * row, buf, row, err);
        }
    } else {
        bool ok = hn_file_get_at(b->out, b->data + t.offset, buf, row) == 0;
        if (!ok)
            st = HN_FAIL(err, HONE_E_IO, "%s: a row of embeddings cannot be read", HN_ESC(b->path, strlen(b->path)));
        for (uint64_t r = 1; r < rows && st == HONE_OK; r++) st = put(b, b->data + t.offset + r * row, buf, row, err);
    }
    free(buf);
    return st;
}

static hone_status put_nan(broken *b, hone_error *err)
{
    static const unsigned char nan32[4] = { 0, 0, 0xC0, 0x7F };
    hone_tensor_info t;
    hone_status st = tensor(b, &t, "output_norm.weight", err);
    if (st == HONE_OK && strcmp(t.type_name, "F32") != 0)
        st = HN_FAIL(err, HONE_E_UNSUPPORTED, "output_norm.weight is %s; expected F32", t.type_name);
    return st == HONE_OK ? put(b, b->data + t.offset, nan32, 4, err) : st;
}

/* 32 bytes in the middle of a matrix of the first layer; in F16 the highest bit of the fractions. */
static hone_status change_block(broken *b, hone_error *err)
{
    hone_tensor_info t;
    unsigned char buf[32];
    hone_status st = tensor(b, &t, "blk.0.ffn_down.weight", err);
    if (st != HONE_OK) return st;
    uint64_t at = b->data + t.offset + t.n_bytes / 2 / 32 * 32;
    if (t.n_bytes < 64 || hn_file_get_at(b->out, at, buf, sizeof buf) != 0)
        return HN_FAIL(err, HONE_E_IO, "%s: a block of weights cannot be read", HN_ESC(b->path, strlen(b->path)));
    for (size_t i = 1; i < sizeof buf; i += 2) buf[i] ^= 2;
    return put(b, at, buf, sizeof buf, err);
}

static hone_status copy(hn_file *out, const char *src, const char *dst, hone_error *err)
{
    FILE *in = fopen(src, "rbe");
    size_t cap = 1 << 20, k = 0;
    char *buf = malloc(cap);
    uint64_t at = 0;
    bool ok = in && buf;
    int e = 0;
    for (; ok && !e && (k = fread(buf, 1, cap, in)) > 0; at += k) e = hn_file_put_at(out, at, buf, k);
    ok = ok && !ferror(in);
    if (!ok) e = errno;
    free(buf);
    if (in) fclose(in);
    if (ok) return e ? hn_file_failed(out, e, err) : HONE_OK;
    return HN_FAIL(err, HONE_E_IO, "copying %s to %s: %s", HN_ESC(src, strlen(src)), HN_ESC(dst, strlen(dst)),
                   strerror(e));
}

hone_status hn_break_model(const char *dst, const char *src, hn_break how, hone_error *err)
{
    broken b = { .path = dst };
    hone_status st = hone_file_open(&b.f, src, err);
    if (st == HONE_OK && hone_file_n_parts(b.f) != 1)
        st = HN_FAIL(err, HONE_E_UNSUPPORTED, "%s: a split model; the selftest breaks models of one file",
                     HN_ESC(src, strlen(src)));
    if (st == HONE_OK) st = hn_file_begin(&b.out, dst, &(hn_file_want){ .n_bytes = hone_file_size(b.f) }, err);
    if (st == HONE_OK) st = copy(b.out, src, dst, err);
    if (st == HONE_OK) {
        b.data = data_start(b.f);
        st = how == HN_BREAK_CONSTANT ? make_constant(&b, err)
             : how == HN_BREAK_NAN    ? put_nan(&b, err)
                                      : change_block(&b, err);
    }
    if (st == HONE_OK) st = hn_file_end(b.out, err);
    hn_file_drop(b.out);
    hone_file_close(b.f);
    return st;
}
